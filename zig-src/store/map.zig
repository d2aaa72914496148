//! A container's files as memory, and the guard that keeps a failing page a typed error.
//!
//! One region of address space per store, all files in it at page boundaries:
//!
//!     | meta.zr .... | data_0.zr .... | data_1.zr .... | ...
//!
//! Copying from it costs no system call per record, which is what makes small records fast. The price:
//! where a file was truncated, or the disk fails, a load raises SIGBUS. The handler here looks the
//! address up among *our* regions, marks the region broken, puts zero pages over the whole of it and
//! returns, so the load goes on. Whoever copied asks `intact` afterwards and, if not, does the batch
//! again by positional reads, which also give the exact error. Nothing jumps and nothing unwinds, so
//! this works inside zstd and on every thread. A broken region stays broken: its store reads from then on.
//!
//! A truncation inside a page gives zeros without a signal; `intact` compares sizes to see it.
//!
//! A fault that is not ours goes to whoever handled SIGBUS before, or ends the process as it would have
//! without us. The handler is installed once over a foreign one, never twice: two libraries that each
//! insist would chain to each other for ever. Where somebody else stands in front, stores read.
//!
//! Linux only. On macOS exception ports and V8 come first, Windows raises structured exceptions
//! instead: both read.

const std = @import("std");
const builtin = @import("builtin");
const assert = std.debug.assert;
const linux = std.os.linux;
const posix = std.posix;

pub const supported = builtin.os.tag == .linux and @sizeOf(usize) == 8;

const page_bytes = std.heap.page_size_max;

pub const Map = struct {
    slot: *Slot,
    base: [*]const u8,
    bytes: usize,
    /// offsets[0] is meta.zr, offsets[1 + s] shard s.
    offsets: []usize,
    /// All files belong to this process's user, or may be anybody's to it.
    owned: bool,

    /// The table and the committed part of every shard. Null: not here, then the store reads.
    pub fn init(gpa: std.mem.Allocator, meta: std.Io.File, meta_bytes: u64, data: []const std.Io.File, tails: []const u64) ?Map {
        if (!supported) return null;
        assert(data.len == tails.len);
        const offsets = gpa.alloc(usize, 1 + data.len) catch return null;
        var kept = false;
        defer if (!kept) gpa.free(offsets);
        var total: u64 = 0;
        for (offsets, 0..) |*offset, i| {
            offset.* = std.math.cast(usize, total) orelse return null;
            const bytes = if (i == 0) meta_bytes else tails[i - 1];
            if (bytes > region_bytes_max) return null;
            total += std.mem.alignForward(u64, bytes, page_bytes);
            if (total > region_bytes_max) return null;
        }
        const region = linux.mmap(null, @intCast(total), .{}, .{ .TYPE = .PRIVATE, .ANONYMOUS = true, .NORESERVE = true }, -1, 0);
        if (linux.errno(region) != .SUCCESS) return null;
        const base: [*]u8 = @ptrFromInt(region);
        const slot = Slot.take(base, @intCast(total)) orelse {
            _ = linux.munmap(base, @intCast(total));
            return null;
        };
        for (offsets, 0..) |offset, i| {
            const bytes = if (i == 0) meta_bytes else tails[i - 1];
            if (bytes == 0) continue;
            const file = if (i == 0) meta else data[i - 1];
            const place = linux.mmap(base + offset, @intCast(bytes), .{ .READ = true }, .{ .TYPE = .SHARED, .FIXED = true, .NORESERVE = true }, file.handle, 0);
            if (linux.errno(place) != .SUCCESS) {
                slot.give();
                _ = linux.munmap(base, @intCast(total));
                return null;
            }
        }
        kept = true;
        var owned = isOwned(meta);
        for (data) |file| owned = owned and isOwned(file);
        return .{ .slot = slot, .base = base, .bytes = @intCast(total), .offsets = offsets, .owned = owned };
    }

    /// Wants no lane inside.
    pub fn deinit(map: *Map, gpa: std.mem.Allocator) void {
        map.slot.give();
        if (supported) _ = linux.munmap(map.base, map.bytes);
        gpa.free(map.offsets);
        map.* = undefined;
    }

    pub fn metaBytes(map: *const Map) [*]const u8 {
        return map.base;
    }

    pub fn dataBytes(map: *const Map, shard: u32) [*]const u8 {
        return map.base + map.offsets[1 + shard];
    }

    /// May the map be used for a batch now? Costs one system call (0.2 µs).
    pub fn usable(map: *const Map) bool {
        if (map.slot.broken.load(.monotonic)) return false;
        return arm();
    }

    /// After a batch: was everything that was copied really the files'?
    pub fn isBroken(map: *const Map) bool {
        return map.slot.broken.load(.seq_cst);
    }

    /// Can the system's word on pages in memory be trusted? Of a file that is neither ours nor writable to
    /// us it says that all are.
    pub fn canTellResidence(map: *const Map) bool {
        return supported and map.owned;
    }

    /// Is a part of the region in memory? `at` is a multiple of `survey_bytes`, `bytes` at most that.
    pub fn isInMemory(map: *const Map, at: usize, bytes: usize) bool {
        if (!supported) return false;
        assert(at % survey_bytes == 0);
        assert(bytes <= survey_bytes);
        assert(at + bytes <= map.bytes);
        var pages: [survey_bytes / std.heap.page_size_min]u8 = undefined;
        if (linux.errno(linux.mincore(@constCast(map.base + at), bytes, &pages)) != .SUCCESS) return false;
        const page_count = std.math.divCeil(usize, bytes, std.heap.pageSize()) catch unreachable;
        for (pages[0..page_count]) |page| if (page & 1 == 0) return false;
        return true;
    }

    /// Enters a part of the region in the page tables, so that touching it costs no fault. False: it
    /// cannot be read. Pages that are not in memory are read from disk.
    pub fn enter(map: *const Map, at: usize, bytes: usize) bool {
        if (!supported) return false;
        const populate_read = 22; // MADV_POPULATE_READ, since Linux 5.14; std does not name it
        return switch (linux.errno(linux.madvise(@constCast(map.base + at), bytes, populate_read))) {
            .SUCCESS, .INVAL => true, // An older system does without.
            else => false,
        };
    }

    /// Asks the system to read a range ahead, whole pages around it.
    pub fn willNeed(map: *const Map, address: [*]const u8, bytes: usize) void {
        if (!supported) return;
        _ = map;
        const from = std.mem.alignBackward(usize, @intFromPtr(address), page_bytes);
        _ = linux.madvise(@ptrFromInt(from), @intFromPtr(address) + bytes - from, linux.MADV.WILLNEED);
    }
};

/// How much a survey looks at in one go (residence.zig): a bit of stack holds the answer.
pub const survey_bytes = 2 << 20;

/// 2^46: half of what a process has on the narrowest of our targets.
const region_bytes_max: u64 = 1 << 46;

/// The size of an open file, by the cheapest call that tells it.
pub fn sizeOf(file: std.Io.File) ?u64 {
    if (!supported) return null;
    const end: i64 = @bitCast(linux.lseek(file.handle, 0, linux.SEEK.END));
    return if (end < 0) null else @intCast(end);
}

fn isOwned(file: std.Io.File) bool {
    var about: linux.Statx = undefined;
    if (linux.errno(linux.statx(file.handle, "", linux.AT.EMPTY_PATH, .{ .UID = true }, &about)) != .SUCCESS) return false;
    const user = linux.geteuid();
    return user == 0 or about.uid == user;
}

/// A clock that only goes forward. Costs no system call.
pub fn nowNs() u64 {
    if (!supported) return 0;
    var now: linux.timespec = undefined;
    if (linux.errno(linux.clock_gettime(.MONOTONIC, &now)) != .SUCCESS) return 0;
    return @as(u64, @intCast(now.sec)) * std.time.ns_per_s + @as(u64, @intCast(now.nsec));
}

/// Was memory never touched? Then the system is about to clear its pages. Asks for one in the middle:
/// what was made in one piece is touched in one piece.
pub fn isUntouched(memory: []const u8) bool {
    if (!supported) return false;
    const middle = std.mem.alignBackward(usize, @intFromPtr(memory.ptr) + memory.len / 2, std.heap.pageSize());
    var pages: [1]u8 = .{1};
    if (linux.errno(linux.mincore(@ptrFromInt(middle), 1, &pages)) != .SUCCESS) return false;
    return pages[0] & 1 == 0;
}

/// Pages that this thread had to wait for the disk for, so far.
pub fn majorFaults() i64 {
    if (!supported) return 0;
    var usage: linux.rusage = undefined;
    if (linux.errno(linux.getrusage(linux.rusage.THREAD, &usage)) != .SUCCESS) return 0;
    return usage.majflt;
}

const Slot = struct {
    base: std.atomic.Value(usize) = .init(0),
    bytes: std.atomic.Value(usize) = .init(0),
    broken: std.atomic.Value(bool) = .init(false),
    taken: std.atomic.Value(bool) = .init(false),

    fn take(base: [*]const u8, bytes: usize) ?*Slot {
        for (&slots) |*slot| {
            if (slot.taken.load(.monotonic) or slot.taken.swap(true, .acquire)) continue;
            slot.broken.store(false, .monotonic);
            slot.base.store(@intFromPtr(base), .monotonic);
            slot.bytes.store(bytes, .release); // The handler trusts a slot with bytes.
            return slot;
        }
        return null;
    }

    fn give(slot: *Slot) void {
        slot.bytes.store(0, .seq_cst);
        slot.taken.store(false, .release);
    }
};

/// More stores open at once than this, and the later ones read.
var slots: [1024]Slot = @splat(.{});

/// Who handled SIGBUS when we installed. Changes only while our handler is not installed.
var previous: posix.Sigaction = undefined;
var installed_over_function = false;
var install_lock: std.atomic.Value(bool) = .init(false);

/// True while SIGBUS is ours, which it makes so unless somebody else's function stands there.
pub fn arm() bool {
    if (!supported) return false;
    var current: posix.Sigaction = undefined;
    posix.sigaction(.BUS, null, &current);
    if (isOurs(&current)) return true;
    while (install_lock.swap(true, .acquire)) std.atomic.spinLoopHint();
    defer install_lock.store(false, .release);
    posix.sigaction(.BUS, null, &current);
    if (isOurs(&current)) return true;
    if (isFunction(&current)) {
        if (installed_over_function) return false;
        installed_over_function = true;
    }
    previous = current;
    const ours: posix.Sigaction = .{
        .handler = .{ .sigaction = onBus },
        .mask = posix.sigemptyset(),
        .flags = posix.SA.SIGINFO | posix.SA.ONSTACK | posix.SA.RESTART,
    };
    posix.sigaction(.BUS, &ours, null);
    return true;
}

fn isOurs(action: *const posix.Sigaction) bool {
    return action.flags & posix.SA.SIGINFO != 0 and action.handler.sigaction == &onBus;
}

fn isFunction(action: *const posix.Sigaction) bool {
    return action.handler.handler != posix.SIG.DFL and action.handler.handler != posix.SIG.IGN;
}

fn onBus(signal: posix.SIG, info: *const posix.siginfo_t, context: ?*anyopaque) callconv(.c) void {
    if (info.code > 0) { // A real fault; a signal that was sent has no address.
        const address = @intFromPtr(info.fields.sigfault.addr);
        for (&slots) |*slot| {
            const bytes = slot.bytes.load(.acquire);
            if (bytes == 0) continue;
            const base = slot.base.load(.monotonic);
            if (address -% base >= bytes) continue;
            slot.broken.store(true, .seq_cst); // Before the pages change under a copying lane.
            const zeros = linux.mmap(@ptrFromInt(base), bytes, .{ .READ = true }, .{ .TYPE = .PRIVATE, .ANONYMOUS = true, .FIXED = true, .NORESERVE = true }, -1, 0);
            if (linux.errno(zeros) != .SUCCESS) break;
            return;
        }
    }
    chain(signal, info, context);
}

/// What would have happened without us.
fn chain(signal: posix.SIG, info: *const posix.siginfo_t, context: ?*anyopaque) void {
    const before = previous;
    if (isFunction(&before)) {
        // Its mask and flags are honoured as the system would have.
        var old_mask: posix.sigset_t = undefined;
        posix.sigprocmask(posix.SIG.BLOCK, &before.mask, &old_mask);
        defer posix.sigprocmask(posix.SIG.SETMASK, &old_mask, null);
        if (before.flags & posix.SA.NODEFER != 0) {
            var only = posix.sigemptyset();
            posix.sigaddset(&only, signal);
            posix.sigprocmask(posix.SIG.UNBLOCK, &only, null);
        }
        if (before.flags & posix.SA.SIGINFO != 0) {
            before.handler.sigaction.?(signal, info, context);
        } else {
            before.handler.handler.?(signal);
        }
        return;
    }
    const sent = info.code <= 0;
    if (sent and before.handler.handler == posix.SIG.IGN) return;
    // The default action. A fault raises the signal anew when the handler returns; a sent signal is
    // sent again.
    const default: posix.Sigaction = .{ .handler = .{ .handler = posix.SIG.DFL }, .mask = posix.sigemptyset(), .flags = 0 };
    posix.sigaction(signal, &default, null);
    if (sent) _ = linux.tgkill(linux.getpid(), linux.gettid(), signal);
}

test "a truncated file reads as zeros, marked broken; the rest of the process is untouched" {
    if (!supported) return error.SkipZigTest;
    const testing = std.testing;
    const io = testing.io;
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    const file = try tmp.dir.createFile(io, "f", .{ .read = true });
    defer file.close(io);
    const content: [1 << 16]u8 = @splat('x');
    try file.writePositionalAll(io, &content, 0);
    var map = Map.init(testing.allocator, file, 4096, &.{file}, &.{content.len}) orelse return error.MapRefused;
    defer map.deinit(testing.allocator);
    try testing.expect(map.usable());
    try testing.expectEqual(@as(u8, 'x'), map.dataBytes(0)[60_000]);
    try testing.expectEqual(@as(?u64, content.len), sizeOf(file));
    try file.setLength(io, 4096);
    const Toucher = struct {
        fn touch(bytes: [*]const u8, seen: *u8) void {
            seen.* = @as(*const volatile u8, @ptrCast(&bytes[60_000])).*;
        }
    };
    var seen: u8 = 1;
    const thread = try std.Thread.spawn(.{}, Toucher.touch, .{ map.dataBytes(0), &seen });
    thread.join();
    try testing.expectEqual(@as(u8, 0), seen);
    try testing.expect(map.isBroken());
    try testing.expect(!map.usable());
}
