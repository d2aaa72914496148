//! Disk blocks asked for ahead of large writes.
//!
//! ext4 puts off choosing blocks until it writes back, and keeps an account of each page until then. Asked
//! for all blocks at once it has little to do per page: writing to two files at a time takes 0.6 of the
//! time (docs/performance.md). Nothing depends on it: where it is not done, or fails, a write does
//! what it always does. Only where it was measured; others copy, or clear pages, or ask a server.

const std = @import("std");
const builtin = @import("builtin");
const linux = std.os.linux;

const supported = builtin.os.tag == .linux and @sizeOf(usize) == 8;

/// Of statfs(2): what ext2, ext3 and ext4 call themselves.
const ext_magic = 0xEF53;
/// FALLOC_FL_KEEP_SIZE: the file's length stays what was written.
const keep_size = 1;

/// Whether asking ahead is known to pay where `file` is.
pub fn pays(file: std.Io.File) bool {
    if (!supported) return false;
    // struct statfs begins with its type, a word; the rest is not looked at.
    var about: [64]usize = @splat(0);
    if (linux.errno(linux.syscall2(.fstatfs, @as(usize, @bitCast(@as(isize, file.handle))), @intFromPtr(&about))) != .SUCCESS) return false;
    return about[0] == ext_magic;
}

/// Asks for the blocks of `bytes` from `offset` on. What is not written to them in the end goes when the file is cut
/// to its length.
pub fn ask(file: std.Io.File, offset: u64, bytes: u64) void {
    if (!supported) return;
    const end = std.math.add(u64, offset, bytes) catch return;
    if (end > std.math.maxInt(i64)) return;
    _ = linux.fallocate(file.handle, keep_size, @intCast(offset), @intCast(bytes));
}

test "blocks are asked for without a change of the length" {
    if (!supported) return error.SkipZigTest;
    const io = std.testing.io;
    var folder = std.testing.tmpDir(.{});
    defer folder.cleanup();
    const file = try folder.dir.createFile(io, "data", .{ .read = true });
    defer file.close(io);
    ask(file, 0, 1 << 20);
    ask(file, std.math.maxInt(u64), 2);
    try std.testing.expectEqual(0, try file.length(io));
    _ = pays(file);
}
