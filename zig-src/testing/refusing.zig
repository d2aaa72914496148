//! Memory that refuses: of the allocations of one thread the n-th fails, once or from then on. What is
//! held is counted, so that a test sees a leak by comparing before with after.
//!
//! The suite's zstd is compiled with these functions in place of malloc, calloc and free (build.zig), so
//! that what it does not take from an allocator of ours is refused and counted too.

const std = @import("std");

const backing = std.heap.c_allocator;
/// Before every block for zstd: its whole size.
const header_bytes = 16;

/// Bytes that are allocated and not freed.
var held_bytes: std.atomic.Value(usize) = .init(0);

var armed_thread: std.atomic.Value(std.Thread.Id) = .init(0);
/// Of the armed thread alone.
var calls: usize = 0;
var refuse_at: usize = 0;
var refuses_on = false;
var refusals: usize = 0;

/// Counts the calling thread's allocations from zero; number `at` is refused, and with `lasting` all after it.
pub fn arm(at: usize, lasting: bool) void {
    calls = 0;
    refuse_at = at;
    refuses_on = lasting;
    refusals = 0;
    armed_thread.store(std.Thread.getCurrentId(), .release);
}

pub const Seen = struct { calls: usize, refusals: usize };

/// Nothing is refused any more.
pub fn disarm() Seen {
    armed_thread.store(0, .release);
    return .{ .calls = calls, .refusals = refusals };
}

pub fn heldBytes() usize {
    return held_bytes.load(.acquire);
}

fn isRefused() bool {
    if (armed_thread.load(.acquire) != std.Thread.getCurrentId()) return false;
    const call = calls;
    calls += 1;
    if (call != refuse_at and !(refuses_on and call > refuse_at)) return false;
    refusals += 1;
    return true;
}

pub const allocator: std.mem.Allocator = .{ .ptr = undefined, .vtable = &.{
    .alloc = alloc,
    .resize = resize,
    .remap = remap,
    .free = free,
} };

fn alloc(_: *anyopaque, bytes: usize, alignment: std.mem.Alignment, address: usize) ?[*]u8 {
    if (isRefused()) return null;
    const block = backing.rawAlloc(bytes, alignment, address) orelse return null;
    _ = held_bytes.fetchAdd(bytes, .acq_rel);
    return block;
}

/// Never in place: every growth is an allocation that can be refused.
fn resize(_: *anyopaque, _: []u8, _: std.mem.Alignment, _: usize, _: usize) bool {
    return false;
}

fn remap(_: *anyopaque, _: []u8, _: std.mem.Alignment, _: usize, _: usize) ?[*]u8 {
    return null;
}

fn free(_: *anyopaque, block: []u8, alignment: std.mem.Alignment, address: usize) void {
    _ = held_bytes.fetchSub(block.len, .acq_rel);
    backing.rawFree(block, alignment, address);
}

export fn zr_test_malloc(bytes: usize) ?*anyopaque {
    const whole = std.math.add(usize, bytes, header_bytes) catch return null;
    const block = allocator.alignedAlloc(u8, .@"16", whole) catch return null;
    std.mem.writeInt(usize, block[0..@sizeOf(usize)], whole, .little);
    return block.ptr + header_bytes;
}

export fn zr_test_calloc(count: usize, bytes: usize) ?*anyopaque {
    const wanted = std.math.mul(usize, count, bytes) catch return null;
    const block = zr_test_malloc(wanted) orelse return null;
    @memset(@as([*]u8, @ptrCast(block))[0..wanted], 0);
    return block;
}

export fn zr_test_free(address: ?*anyopaque) void {
    const block: [*]align(16) u8 = @alignCast(@as([*]u8, @ptrCast(address orelse return)) - header_bytes);
    allocator.free(block[0..std.mem.readInt(usize, block[0..@sizeOf(usize)], .little)]);
}
