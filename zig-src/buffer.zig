//! Memory that outlives a call: results of asynchronous gathers whose size only a lane could know.

const std = @import("std");
const builtin = @import("builtin");

/// Cache-line aligned, so that lanes which fill neighbouring buffers do not share lines.
pub const alignment = 64;

pub fn alloc(gpa: std.mem.Allocator, bytes: u64) error{OutOfMemory}![]align(alignment) u8 {
    const wanted = std.math.cast(usize, bytes) orelse return error.OutOfMemory;
    return gpa.alignedAlloc(u8, .fromByteUnits(alignment), wanted);
}

/// Large pages for memory that is about to be touched for the first time, where the system has them: a
/// fault for each 2 MiB instead of each 4 KiB. Only whole large pages inside; contents stay.
pub fn preferLargePages(memory: []u8) void {
    if (builtin.os.tag != .linux) return;
    const from = std.mem.alignForward(usize, @intFromPtr(memory.ptr), large_page_bytes);
    const end = std.mem.alignBackward(usize, @intFromPtr(memory.ptr) + memory.len, large_page_bytes);
    if (from >= end) return;
    std.posix.madvise(@ptrFromInt(from), end - from, std.posix.MADV.HUGEPAGE) catch return; // Then small ones.
}

const large_page_bytes = 2 << 20;

pub fn free(gpa: std.mem.Allocator, buffer: []align(alignment) u8) void {
    gpa.free(buffer);
}
