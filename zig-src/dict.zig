//! Trains one dictionary from samples that lie back to back.

const std = @import("std");
const zstd = @import("zstd.zig");
const fault_module = @import("fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

/// zstd trains on the first three quarters of the samples, of which it wants at least 5, and tries
/// the result on the rest. It works on sequences of 8 bytes: with fewer in the training part it
/// divides by zero or counts below zero, so the bounds are checked here, before it is called.
pub const samples_min = 7;
pub const training_bytes_min = 8;

/// The most samples one training takes: zstd counts them with 32 bits.
pub const samples_max = std.math.maxInt(u32);

/// Returns how many bytes of `target` the dictionary takes.
pub fn train(gpa: std.mem.Allocator, target: []u8, samples: [*]const u8, sample_bytes: []const u64, fault: *Fault) Error!usize {
    if (sample_bytes.len > samples_max) {
        return fault.fail(error.TooLarge, .none, "{d} samples; a dictionary is trained from fewer than 2^32", .{sample_bytes.len});
    }
    var total: u64 = 0;
    var training: u64 = 0;
    const training_count: usize = @intFromFloat(@as(f64, @floatFromInt(sample_bytes.len)) * 0.75); // As zstd computes it.
    const sizes = gpa.alloc(usize, sample_bytes.len) catch return fault.outOfMemory("sample sizes", sample_bytes.len * @sizeOf(usize));
    defer gpa.free(sizes);
    for (sample_bytes, sizes, 0..) |bytes, *size, i| {
        if (i == training_count) training = total;
        if (bytes == 0) return fault.fail(error.Dictionary, .none, "a sample has no bytes", .{});
        size.* = std.math.cast(usize, bytes) orelse return fault.outOfMemory("a sample", bytes);
        total = std.math.add(u64, total, bytes) catch return fault.outOfMemory("samples", std.math.maxInt(u64));
    }
    if (sample_bytes.len < samples_min or training < training_bytes_min) {
        return fault.fail(error.Dictionary, .none, "a dictionary needs at least {d} samples with {d} bytes in the first three quarters of them; got {d} samples of {d} bytes in all", .{ samples_min, training_bytes_min, sample_bytes.len, total });
    }
    const total_bytes = std.math.cast(usize, total) orelse return fault.outOfMemory("samples", total);
    var refusal: []const u8 = "";
    return zstd.trainDictionary(target, samples[0..total_bytes], sizes, &refusal) catch |err| switch (err) {
        error.OutOfMemory => fault.outOfMemory("dictionary training", total),
        error.Refused => fault.fail(error.Dictionary, .none, "no dictionary can be trained from {d} samples of {d} bytes in all: {s}", .{ sample_bytes.len, total, refusal }),
    };
}

test "too few samples say what is needed and what came" {
    var target: [1024]u8 = undefined;
    var fault: Fault = .{};
    const samples: [60]u8 = @splat('x');
    try std.testing.expectError(error.Dictionary, train(std.testing.allocator, &target, &samples, &.{ 10, 10, 10 }, &fault));
    try std.testing.expect(std.mem.indexOf(u8, fault.message(), "got 3 samples of 30 bytes") != null);
    try std.testing.expectError(error.Dictionary, train(std.testing.allocator, &target, &samples, &.{}, &fault));
}

test "no size of tiny or degenerate samples raises a signal" {
    var target: [32 << 10]u8 = undefined;
    var samples: [4096]u8 = undefined;
    var sizes: [40]u64 = undefined;
    var prng: std.Random.DefaultPrng = .init(0xd1c7);
    const random = prng.random();
    for (0..400) |round| {
        // All alike, random, or from a small alphabet; from one byte to a hundred a sample.
        for (&samples) |*byte| byte.* = switch (round % 3) {
            0 => 0,
            1 => random.int(u8),
            else => random.uintLessThan(u8, 3),
        };
        const count = random.uintAtMost(usize, sizes.len);
        for (sizes[0..count]) |*size| size.* = random.intRangeAtMost(u64, 1, 1 + round / 4);
        var fault: Fault = .{};
        const bytes = train(std.testing.allocator, &target, &samples, sizes[0..count], &fault) catch |err| {
            try std.testing.expectEqual(error.Dictionary, err);
            continue;
        };
        try std.testing.expect(bytes >= 1);
        try std.testing.expect(bytes <= target.len);
    }
}
