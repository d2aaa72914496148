//! One id space over several stores: which of them holds an id.
//!
//! Parts follow each other; an id belongs to the first one that ends behind it. A table over the leading
//! bits of ids names the few parts that come into question, mostly one, so that finding costs some
//! nanoseconds however many parts there are.

const std = @import("std");
const assert = std.debug.assert;

/// How many entries of the first table there are for a part, about.
const buckets_per_part = 8;

pub fn Table(comptime Owner: type) type {
    return struct {
        const Self = @This();

        pub const Part = struct {
            owner: *Owner,
            /// Its records have the ids start .. end - 1.
            start: u64,
            end: u64,
            /// Bytes of each dimension in front of a ragged record; 0 where that does not matter.
            dim_bytes: u32,
            /// What its records' sizes differ by from those of the set's first member, which writes its
            /// dimensions in more or fewer bytes.
            extra_bytes: i32 = 0,
            /// How many shards all parts before it have.
            shard_base: u32 = 0,
            /// Which of the set's members it is; empty members are no parts.
            member: u32 = 0,
        };

        parts: []Part,
        /// buckets[id >> shift] .. buckets[(id >> shift) + 1]: where the id's part is, both included.
        buckets: []u32,
        shift: u6,

        /// `parts` are in order, without gaps, none empty; at least one. They are the caller's to free.
        pub fn init(gpa: std.mem.Allocator, parts: []Part) error{OutOfMemory}!Self {
            assert(parts.len >= 1);
            var start: u64 = 0;
            for (parts) |part| {
                assert(part.start == start and part.end > start);
                start = part.end;
            }
            const last = start - 1;
            var shift: u6 = 0;
            while (last >> shift >= parts.len * buckets_per_part) shift += 1;
            const buckets = try gpa.alloc(u32, @intCast((last >> shift) + 2));
            var at: u32 = 0;
            for (buckets[0 .. buckets.len - 1], 0..) |*bucket, index| {
                while (parts[at].end <= @as(u64, index) << shift) at += 1;
                bucket.* = at;
            }
            buckets[buckets.len - 1] = @intCast(parts.len - 1);
            return .{ .parts = parts, .buckets = buckets, .shift = shift };
        }

        pub fn deinit(self: *Self, gpa: std.mem.Allocator) void {
            gpa.free(self.buckets);
            self.* = undefined;
        }

        /// Wants an id below the last end.
        pub fn indexOf(self: *const Self, id: u64) u32 {
            const bucket: usize = @intCast(id >> self.shift);
            var low = self.buckets[bucket];
            var high = self.buckets[bucket + 1];
            while (low < high) {
                const middle = low + (high - low) / 2;
                if (id < self.parts[middle].end) high = middle else low = middle + 1;
            }
            return low;
        }
    };
}

test "every id is found in its part" {
    const gpa = std.testing.allocator;
    var prng: std.Random.DefaultPrng = .init(0x9a715);
    const random = prng.random();
    var owner: u8 = 0;
    const Tested = Table(u8);
    for (0..200) |_| {
        const parts = try gpa.alloc(Tested.Part, random.intRangeAtMost(usize, 1, 70));
        defer gpa.free(parts);
        var start: u64 = 0;
        for (parts) |*part| {
            // Small ones among large ones.
            const bits = random.intRangeAtMost(u6, 0, 12);
            const end = start + random.intRangeAtMost(u64, 1, @as(u64, 1) << bits);
            part.* = .{ .owner = &owner, .start = start, .end = end, .dim_bytes = 0 };
            start = end;
        }
        var table: Tested = try .init(gpa, parts);
        defer table.deinit(gpa);
        for (parts, 0..) |part, index| {
            for ([_]u64{ part.start, part.start + (part.end - part.start) / 2, part.end - 1 }) |id| {
                try std.testing.expectEqual(index, table.indexOf(id));
            }
        }
    }
}

test "parts of any size up to the end of all ids" {
    const gpa = std.testing.allocator;
    var owner: u8 = 0;
    const last = std.math.maxInt(u64);
    var parts = [_]Table(u8).Part{
        .{ .owner = &owner, .start = 0, .end = 1, .dim_bytes = 0 },
        .{ .owner = &owner, .start = 1, .end = last, .dim_bytes = 0 },
    };
    var table: Table(u8) = try .init(gpa, &parts);
    defer table.deinit(gpa);
    try std.testing.expectEqual(0, table.indexOf(0));
    try std.testing.expectEqual(1, table.indexOf(1));
    try std.testing.expectEqual(1, table.indexOf(last - 1));
}
