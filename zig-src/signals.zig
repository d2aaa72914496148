//! What signals may do to threads that do our work.

const std = @import("std");
const builtin = @import("builtin");
const linux = std.os.linux;
const posix = std.posix;

/// For lanes. Signals sent to the process are for the host's own threads. Those that a thread raises by
/// its own doing stay open: blocked, they would kill the process at once.
pub fn blockForLane() void {
    if (builtin.os.tag == .windows) return;
    var set = posix.sigfillset();
    for ([_]posix.SIG{ .BUS, .SEGV, .FPE, .ILL, .ABRT, .TRAP }) |signal| posix.sigdelset(&set, signal);
    posix.sigprocmask(posix.SIG.BLOCK, &set, null);
}

/// SIGXFSZ held back on this thread: for one of the host's that is about to write. A write past a file size
/// limit (`ulimit -f`) raises it in the thread that writes. Node ignores it, but what handles every signal that ends a
/// process (the package signal-exit does) would then end it, where a failed write is an error like others.
pub const FileSizeLimit = struct {
    /// Null: not held, because the system tells the process instead, or because the host holds it already.
    before: ?posix.sigset_t,

    pub fn hold() FileSizeLimit {
        if (builtin.os.tag == .linux) {
            const set = only(.XFSZ);
            var before: posix.sigset_t = undefined;
            posix.sigprocmask(posix.SIG.BLOCK, &set, &before);
            return .{ .before = if (posix.sigismember(&before, .XFSZ)) null else before };
        } else return .{ .before = null };
    }

    pub fn release(held: FileSizeLimit) void {
        if (builtin.os.tag == .linux) {
            const before = held.before orelse return;
            // What came meanwhile must not arrive after all.
            const set = only(.XFSZ);
            const now: linux.timespec = .{ .sec = 0, .nsec = 0 };
            _ = linux.syscall4(.rt_sigtimedwait, @intFromPtr(&set), 0, @intFromPtr(&now), kernel_set_bytes);
            posix.sigprocmask(posix.SIG.SETMASK, &before, null);
        }
    }
};

/// The kernel's signal set; a C library's may be longer.
const kernel_set_bytes = 8;

fn only(signal: posix.SIG) posix.sigset_t {
    var set = posix.sigemptyset();
    posix.sigaddset(&set, signal);
    return set;
}

test "a file size limit that is met while it is held is forgotten" {
    if (builtin.os.tag != .linux) return error.SkipZigTest;
    const Host = struct {
        var calls: u32 = 0;
        fn handler(_: posix.SIG) callconv(.c) void {
            calls += 1;
        }
    };
    var before: posix.Sigaction = undefined;
    const action: posix.Sigaction = .{ .handler = .{ .handler = Host.handler }, .mask = posix.sigemptyset(), .flags = 0 };
    posix.sigaction(.XFSZ, &action, &before);
    defer posix.sigaction(.XFSZ, &before, null);

    const held: FileSizeLimit = .hold();
    try posix.raise(.XFSZ);
    const inner: FileSizeLimit = .hold();
    try std.testing.expectEqual(null, inner.before);
    inner.release();
    held.release();
    try std.testing.expectEqual(0, Host.calls);
    try posix.raise(.XFSZ);
    try std.testing.expectEqual(1, Host.calls);
}
