//! What went wrong, where: the one error family of the core and the context that travels with it.
//!
//! A Zig error carries only its name. Every fallible function of the core takes a `*Fault`, fills it
//! once at the place that knows most, and returns an `Error`; the C ABI copies both to `zr_error`.

const std = @import("std");
const builtin = @import("builtin");

pub const Error = error{
    OutOfMemory,
    Exists,
    NotFound,
    Locked,
    Malformed,
    InputOutput,
    Codec,
    OutOfRange,
    TooLarge,
    BuildFailed,
    NotPublished,
    Dictionary,
    Aborted,
    Unsupported,
    Integrity,
    Unexpected,
};

pub const Place = union(enum) {
    none,
    folder,
    meta,
    data: u32,
    dict,
    integrity,
    /// The file that records are taken from, which is none of the container's.
    source,
};

pub const Fault = struct {
    place: Place = .none,
    record: ?u64 = null,
    /// Of a set: which part `place` and `record` are of. Whoever goes from part to part says it before.
    part: ?u32 = null,
    /// POSIX errno name ("ENOSPC"), static; empty when the operating system was not involved.
    os_code: []const u8 = "",
    message_buffer: [255]u8 = undefined,
    message_bytes: usize = 0,

    pub fn message(fault: *const Fault) []const u8 {
        return fault.message_buffer[0..fault.message_bytes];
    }

    /// Fills the fault and gives the error back, so that a caller writes `return fault.fail(...)`.
    pub fn fail(
        fault: *Fault,
        err: Error,
        place: Place,
        comptime format: []const u8,
        arguments: anytype,
    ) Error {
        fault.place = place;
        fault.os_code = "";
        fault.record = null;
        fault.write(format, arguments);
        return err;
    }

    pub fn failRecord(
        fault: *Fault,
        err: Error,
        place: Place,
        record: u64,
        comptime format: []const u8,
        arguments: anytype,
    ) Error {
        const result = fault.fail(err, place, format, arguments);
        fault.record = record;
        return result;
    }

    pub fn outOfMemory(fault: *Fault, comptime what: []const u8, bytes: u64) Error {
        return fault.fail(error.OutOfMemory, .none, "no memory for " ++ what ++ " ({d} bytes)", .{bytes});
    }

    /// An error of `std.Io`, in the words of the operating system. Called before anything else is asked
    /// of the system, since what has no name in `std.Io` is told by errno.
    pub fn failOs(fault: *Fault, err: anyerror, place: Place, comptime doing: []const u8) Error {
        const code = if (err == error.Unexpected) errnoCode() else osCode(err);
        fault.place = place;
        fault.record = null;
        fault.os_code = code;
        fault.write(doing ++ " failed: {s}", .{code});
        return switch (err) {
            error.OutOfMemory => error.OutOfMemory,
            else => error.InputOutput,
        };
    }

    fn write(fault: *Fault, comptime format: []const u8, arguments: anytype) void {
        var writer: std.Io.Writer = .fixed(&fault.message_buffer);
        writer.print(format, arguments) catch {}; // A message too long is cut, not lost.
        fault.message_bytes = writer.end;
    }
};

/// The errno name behind an error of `std.Io`. Where several errnos share one Zig error the most
/// usual is named; an errno that `std.Io` has no name for is "EUNKNOWN".
pub fn osCode(err: anyerror) []const u8 {
    return switch (err) {
        error.NoSpaceLeft => "ENOSPC",
        error.DiskQuota => "EDQUOT",
        error.InputOutput, error.HardwareFailure => "EIO",
        error.FileTooBig => "EFBIG",
        error.ReadOnlyFileSystem => "EROFS",
        error.ProcessFdQuotaExceeded => "EMFILE",
        error.SystemFdQuotaExceeded => "ENFILE",
        error.AccessDenied => "EACCES",
        error.PermissionDenied => "EPERM",
        error.FileNotFound => "ENOENT",
        error.NotDir => "ENOTDIR",
        error.IsDir => "EISDIR",
        error.SymLinkLoop => "ELOOP",
        error.NameTooLong => "ENAMETOOLONG",
        error.BadPathName => "EINVAL",
        error.PathAlreadyExists => "EEXIST",
        error.DirNotEmpty => "ENOTEMPTY",
        error.SystemResources, error.OutOfMemory => "ENOMEM",
        error.DeviceBusy, error.FileBusy, error.PipeBusy => "EBUSY",
        error.NoDevice => "ENODEV",
        error.CrossDevice => "EXDEV",
        error.WouldBlock => "EAGAIN",
        error.LinkQuotaExceeded => "EMLINK",
        error.FileLocksUnsupported, error.OperationUnsupported => "EOPNOTSUPP",
        error.Unseekable => "ESPIPE",
        error.BrokenPipe => "EPIPE",
        error.NetworkNotFound => "ENETUNREACH",
        error.NotOpenForReading, error.NotOpenForWriting => "EBADF",
        error.LockViolation => "ELOCK",
        error.Canceled => "ECANCELED",
        else => "EUNKNOWN",
    };
}

const has_errno = builtin.link_libc and builtin.os.tag != .windows;

/// The name of libc's errno, in which a call that `std.Io` reports as unexpected has left its reason.
fn errnoCode() []const u8 {
    if (!has_errno) return osCode(error.Unexpected);
    const code = std.c._errno().*;
    inline for (comptime std.enums.values(std.c.E)) |known| {
        if (known != .SUCCESS and code == @backingInt(known)) return "E" ++ @tagName(known);
    }
    return osCode(error.Unexpected);
}

/// Before calls that `std.Io` makes without libc, so that an older errno is not taken for theirs.
pub fn forgetErrno() void {
    if (has_errno) std.c._errno().* = 0;
}

/// Of several lanes at one work: the failure that came first is the one reported.
pub const First = struct {
    mutex: std.Io.Mutex = .init,
    failed: std.atomic.Value(bool) = .init(false),
    /// Once one is set.
    failure: Error = error.Unexpected,
    fault: Fault = .{},

    pub fn isSet(first: *const First) bool {
        return first.failed.load(.acquire);
    }

    pub fn set(first: *First, io: std.Io, err: Error, fault: *const Fault) void {
        first.mutex.lockUncancelable(io);
        defer first.mutex.unlock(io);
        if (first.failed.load(.monotonic)) return;
        first.fault = fault.*;
        first.failure = err;
        first.failed.store(true, .release);
    }

    pub fn result(first: *const First, fault: *Fault) Error!void {
        if (!first.isSet()) return;
        fault.* = first.fault;
        return first.failure;
    }
};

test "what std.Io has no name for is named by errno" {
    if (!has_errno) return error.SkipZigTest;
    var fault: Fault = .{};
    std.c._errno().* = @backingInt(std.c.E.DQUOT);
    try std.testing.expectEqual(error.InputOutput, fault.failOs(error.Unexpected, .meta, "writing"));
    try std.testing.expectEqualStrings("EDQUOT", fault.os_code);
    forgetErrno();
    try std.testing.expectEqual(error.InputOutput, fault.failOs(error.Unexpected, .meta, "writing"));
    try std.testing.expectEqualStrings("EUNKNOWN", fault.os_code);
}

test "a message that does not fit is cut" {
    var fault: Fault = .{};
    const long: [400]u8 = @splat('x');
    try std.testing.expectEqual(error.Malformed, fault.fail(error.Malformed, .meta, "{s}", .{&long}));
    try std.testing.expectEqual(@as(usize, 255), fault.message().len);
}

test "an operating system error keeps its errno name" {
    var fault: Fault = .{};
    try std.testing.expectEqual(
        error.InputOutput,
        fault.failOs(error.NoSpaceLeft, .{ .data = 3 }, "writing"),
    );
    try std.testing.expectEqualStrings("ENOSPC", fault.os_code);
    try std.testing.expectEqualStrings("writing failed: ENOSPC", fault.message());
    try std.testing.expectEqual(@as(u32, 3), fault.place.data);
}
