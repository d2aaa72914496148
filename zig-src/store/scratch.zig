//! Lane memory: a lease holds one zstd context of each kind and one growing buffer.
//!
//! Contexts are costly to make (a compressor at level 3 takes about 1 MiB), so released leases are
//! kept for the next call, but never more than `kept_max`, and a buffer that one huge record had
//! blown up is given back at once.

const std = @import("std");
const Io = std.Io;
const zstd = @import("../zstd.zig");
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

/// A kept buffer is at most this large.
const kept_buffer_bytes_max = 4 << 20;

pub const Lease = struct {
    next: ?*Lease = null,
    gpa: std.mem.Allocator,
    memory: zstd.Memory,
    compressor: ?*zstd.CCtx = null,
    decompressor: ?*zstd.DCtx = null,
    buffer: []u8 = &.{},

    /// At least `bytes` of scratch; what was in it before is lost.
    pub fn scratch(lease: *Lease, bytes: u64, fault: *Fault) Error![]u8 {
        if (bytes > lease.buffer.len) {
            const wanted = std.math.cast(usize, bytes) orelse return fault.outOfMemory("scratch", bytes);
            lease.gpa.free(lease.buffer);
            lease.buffer = &.{};
            lease.buffer = lease.gpa.alloc(u8, wanted) catch return fault.outOfMemory("scratch", bytes);
        }
        return lease.buffer[0..@intCast(bytes)];
    }

    pub fn compressorFor(lease: *Lease, fault: *Fault) Error!*zstd.CCtx {
        if (lease.compressor == null) {
            lease.compressor = zstd.createCompressor(&lease.memory) catch return fault.outOfMemory("a compressor", 1 << 20);
        }
        return lease.compressor.?;
    }

    pub fn decompressorFor(lease: *Lease, fault: *Fault) Error!*zstd.DCtx {
        if (lease.decompressor == null) {
            lease.decompressor = zstd.createDecompressor(&lease.memory) catch return fault.outOfMemory("a decompressor", 100 << 10);
        }
        return lease.decompressor.?;
    }

    fn destroy(lease: *Lease) void {
        const gpa = lease.gpa;
        if (lease.compressor) |context| zstd.freeCompressor(context);
        if (lease.decompressor) |context| zstd.freeDecompressor(context);
        gpa.free(lease.buffer);
        gpa.destroy(lease);
    }
};

pub const Pool = struct {
    io: Io,
    gpa: std.mem.Allocator,
    kept_max: u32,
    mutex: Io.Mutex = .init,
    kept_first: ?*Lease = null,
    kept_count: u32 = 0,

    pub fn init(io: Io, gpa: std.mem.Allocator, kept_max: u32) Pool {
        return .{ .io = io, .gpa = gpa, .kept_max = kept_max };
    }

    pub fn take(pool: *Pool, fault: *Fault) Error!*Lease {
        {
            pool.mutex.lockUncancelable(pool.io);
            defer pool.mutex.unlock(pool.io);
            if (pool.kept_first) |lease| {
                pool.kept_first = lease.next;
                pool.kept_count -= 1;
                return lease;
            }
        }
        const lease = pool.gpa.create(Lease) catch return fault.outOfMemory("a lane's lease", @sizeOf(Lease));
        lease.* = .{ .gpa = pool.gpa, .memory = .{ .gpa = pool.gpa } };
        return lease;
    }

    pub fn give(pool: *Pool, lease: *Lease) void {
        if (lease.buffer.len > kept_buffer_bytes_max) {
            lease.gpa.free(lease.buffer);
            lease.buffer = &.{};
        }
        {
            pool.mutex.lockUncancelable(pool.io);
            defer pool.mutex.unlock(pool.io);
            if (pool.kept_count < pool.kept_max) {
                lease.next = pool.kept_first;
                pool.kept_first = lease;
                pool.kept_count += 1;
                return;
            }
        }
        lease.destroy();
    }

    pub fn deinit(pool: *Pool) void {
        while (pool.kept_first) |lease| {
            pool.kept_first = lease.next;
            lease.destroy();
        }
        pool.kept_count = 0;
    }
};

test "leases are kept up to the bound and huge buffers are not" {
    var pool: Pool = .init(std.testing.io, std.testing.allocator, 1);
    defer pool.deinit();
    var fault: Fault = .{};
    const a = try pool.take(&fault);
    const b = try pool.take(&fault);
    _ = try a.scratch(kept_buffer_bytes_max + 1, &fault);
    pool.give(a);
    pool.give(b);
    try std.testing.expectEqual(@as(u32, 1), pool.kept_count);
    try std.testing.expectEqual(@as(usize, 0), pool.kept_first.?.buffer.len);
}
