//! Packed ragged records to one dense array: every byte of it and of its mask is written once, in order.
//!
//!     records of sizes 2 and 3, padded to 4      a a . .   1 1 0 0
//!                                                b b b .   1 1 1 0

const std = @import("std");
const assert = std.debug.assert;
const fault_module = @import("fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

pub const ndim_max = 255;

pub const Request = struct {
    /// Items of all records, back to back.
    values: []const u8,
    /// Of record r: dims[r * ndim ..][0..ndim].
    dims: []const u64,
    record_count: usize,
    /// The padded size of each axis; one for each of 1 .. ndim_max axes.
    sizes: []const u64,
    /// What fills the gaps: one item.
    item: []const u8,
    /// record_count * product(sizes) items.
    target: []u8,
    /// A byte for each item of the target: 1 is a record's own, 0 is filled.
    mask: []u8,
};

/// OutOfRange where the sizes do not cover the dimensions, or the parts do not fit each other.
pub fn pad(request: Request, fault: *Fault) Error!void {
    const ndim = request.sizes.len;
    assert(ndim >= 1);
    assert(ndim <= ndim_max);
    assert(request.item.len >= 1);
    const last = ndim - 1;
    var cells: u64 = request.record_count;
    for (request.sizes) |size| cells = std.math.mul(u64, cells, size) catch return misfit(fault);
    if (cells != request.mask.len) return misfit(fault);
    if ((std.math.mul(u64, cells, request.item.len) catch return misfit(fault)) != request.target.len) return misfit(fault);
    if ((std.math.mul(usize, request.record_count, ndim) catch return misfit(fault)) != request.dims.len) return misfit(fault);

    const item_bytes = request.item.len;
    const run_cells: usize = @intCast(request.sizes[last]);
    var values_at: usize = 0;
    var cell: usize = 0;
    for (0..request.record_count) |record| {
        const dims = request.dims[record * ndim ..][0..ndim];
        for (dims, request.sizes) |dim, size| if (dim > size) return misfit(fault);
        const own: usize = @intCast(dims[last]);
        // An odometer over the outer axes of the padded record.
        var position: [ndim_max]u64 = @splat(0);
        var run_count: u64 = 1;
        for (request.sizes[0..last]) |size| run_count *= size;
        for (0..@intCast(run_count)) |_| {
            const inside = for (position[0..last], dims[0..last]) |at, dim| {
                if (at >= dim) break false;
            } else true;
            const kept = if (inside) own else 0;
            const kept_bytes = kept * item_bytes;
            if (kept_bytes > request.values.len - values_at) return misfit(fault);
            const run = request.target[cell * item_bytes ..][0 .. run_cells * item_bytes];
            @memcpy(run[0..kept_bytes], request.values[values_at..][0..kept_bytes]);
            fill(run[kept_bytes..], request.item);
            @memset(request.mask[cell..][0..kept], 1);
            @memset(request.mask[cell + kept ..][0 .. run_cells - kept], 0);
            values_at += kept_bytes;
            cell += run_cells;
            var axis = last;
            while (axis > 0) {
                axis -= 1;
                position[axis] += 1;
                if (position[axis] < request.sizes[axis]) break;
                position[axis] = 0;
            }
        }
    }
    if (values_at != request.values.len) return misfit(fault);
}

/// `item` over and over; `target` is a whole number of items.
fn fill(target: []u8, item: []const u8) void {
    if (target.len == 0) return;
    if (std.mem.allEqual(u8, item, item[0])) return @memset(target, item[0]);
    @memcpy(target[0..item.len], item);
    var done = item.len;
    while (done < target.len) {
        const more = @min(done, target.len - done);
        @memcpy(target[done..][0..more], target[0..more]);
        done += more;
    }
}

fn misfit(fault: *Fault) Error {
    return fault.fail(error.OutOfRange, .none, "the records, their dimensions and the padded array do not fit each other", .{});
}

test "records of one and of two axes" {
    var fault: Fault = .{};
    var target: [16]u8 = undefined;
    var mask: [8]u8 = undefined;
    // Items of 2 bytes, sizes 2 and 3 to 4.
    try pad(.{ .values = "aabbccddee", .dims = &.{ 2, 3 }, .record_count = 2, .sizes = &.{4}, .item = "-+", .target = &target, .mask = &mask }, &fault);
    try std.testing.expectEqualStrings("aabb-+-+ccddee-+", &target);
    try std.testing.expectEqualSlices(u8, &.{ 1, 1, 0, 0, 1, 1, 1, 0 }, &mask);
    // 1 x 2 and 2 x 1 to 2 x 2.
    try pad(.{ .values = "abcd", .dims = &.{ 1, 2, 2, 1 }, .record_count = 2, .sizes = &.{ 2, 2 }, .item = ".", .target = target[0..8], .mask = &mask }, &fault);
    try std.testing.expectEqualStrings("ab..c.d.", target[0..8]);
    try std.testing.expectEqualSlices(u8, &.{ 1, 1, 0, 0, 1, 0, 1, 0 }, &mask);
}

test "no records, and parts that do not fit" {
    var fault: Fault = .{};
    var none: [0]u8 = .{};
    try pad(.{ .values = "", .dims = &.{}, .record_count = 0, .sizes = &.{7}, .item = "x", .target = &none, .mask = &none }, &fault);
    var target: [4]u8 = undefined;
    var mask: [4]u8 = undefined;
    const sound: Request = .{ .values = "abc", .dims = &.{ 1, 2 }, .record_count = 2, .sizes = &.{2}, .item = "x", .target = &target, .mask = &mask };
    try pad(sound, &fault);
    var wrong = sound;
    wrong.values = "ab";
    try std.testing.expectError(error.OutOfRange, pad(wrong, &fault));
    wrong.values = "abcd";
    try std.testing.expectError(error.OutOfRange, pad(wrong, &fault));
    wrong = sound;
    wrong.dims = &.{ 1, 3 };
    try std.testing.expectError(error.OutOfRange, pad(wrong, &fault));
    wrong = sound;
    wrong.mask = mask[0..3];
    try std.testing.expectError(error.OutOfRange, pad(wrong, &fault));
    wrong = sound;
    wrong.sizes = &.{std.math.maxInt(u64)};
    try std.testing.expectError(error.OutOfRange, pad(wrong, &fault));
}
