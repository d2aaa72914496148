//! Windows: the two operations of a build that `std.Io` asks of the newest Windows alone. Its lock and
//! its rename go to NT calls with parameters that older systems, some file systems and wine answer
//! with "not implemented", which std reports as unexpected. The Win32 functions below do the same
//! everywhere. Both are meant for `meta.zr`'s handle and for a folder whose files are all closed.

const std = @import("std");
const Io = std.Io;
const windows = std.os.windows;

const Overlapped = extern struct {
    internal: usize = 0,
    internal_high: usize = 0,
    offset: u32,
    offset_high: u32,
    event: ?windows.HANDLE = null,
};
extern "kernel32" fn LockFileEx(
    file: windows.HANDLE,
    flags: u32,
    reserved: u32,
    bytes_low: u32,
    bytes_high: u32,
    where: *Overlapped,
) callconv(.winapi) c_int;
extern "kernel32" fn MoveFileExW(from: [*:0]const u16, to: [*:0]const u16, flags: u32) callconv(.winapi) c_int;
extern "kernel32" fn GetFinalPathNameByHandleW(
    file: windows.HANDLE,
    buffer: [*]u16,
    buffer_units: u32,
    flags: u32,
) callconv(.winapi) u32;
extern "kernel32" fn GetLastError() callconv(.winapi) u32;

/// Locks here keep others from reading and writing the locked bytes, so a byte is taken that no file
/// has: the last that an offset can name. (The original locks byte 0, so on Windows the two do not see
/// each other's locks; a build of the original is told by its page, which counts no records.)
pub fn tryLock(file: Io.File, exclusive: bool) error{Unexpected}!bool {
    var where: Overlapped = .{ .offset = 0xffff_fffe, .offset_high = 0x7fff_ffff };
    const fail_immediately = 1;
    const exclusive_lock: u32 = if (exclusive) 2 else 0;
    if (LockFileEx(file.handle, fail_immediately | exclusive_lock, 0, 1, 0, &where) != 0) return true;
    const lock_violation = 33;
    const io_pending = 997;
    return switch (GetLastError()) {
        lock_violation, io_pending => false,
        else => error.Unexpected,
    };
}

pub const MoveError = error{ PathAlreadyExists, AccessDenied, FileNotFound, NameTooLong, Unexpected };

/// Renames a folder within `parent` and never replaces: one atomic step.
pub fn renamePreserve(parent: Io.Dir, from: []const u8, to: []const u8) MoveError!void {
    var from_buffer: [windows.PATH_MAX_WIDE:0]u16 = undefined;
    var to_buffer: [windows.PATH_MAX_WIDE:0]u16 = undefined;
    const from_path = try join(parent, from, &from_buffer);
    const to_path = try join(parent, to, &to_buffer);
    if (MoveFileExW(from_path, to_path, 0) != 0) return;
    return switch (GetLastError()) {
        80, 183 => error.PathAlreadyExists,
        5, 32 => error.AccessDenied,
        2, 3 => error.FileNotFound,
        else => error.Unexpected,
    };
}

fn join(parent: Io.Dir, name: []const u8, buffer: *[windows.PATH_MAX_WIDE:0]u16) MoveError![*:0]const u16 {
    const parent_units = GetFinalPathNameByHandleW(parent.handle, buffer, buffer.len, 0);
    if (parent_units == 0) return error.Unexpected;
    const name_units = std.unicode.calcWtf16LeLen(name) catch return error.Unexpected;
    if (parent_units + 1 + name_units >= buffer.len) return error.NameTooLong;
    buffer[parent_units] = '\\';
    const end = parent_units + 1 + (std.unicode.wtf8ToWtf16Le(buffer[parent_units + 1 ..], name) catch return error.Unexpected);
    buffer[end] = 0;
    return buffer[0..end :0];
}
