//! The order of a cycle: a keyed permutation of 0 .. length - 1 that needs no list.
//!
//! A position is split into two halves of `half` bits and goes through four Feistel rounds. They
//! permute 0 .. 4^half - 1, a domain at least `length` and under 4 * `length` wide (2 bits at
//! least). A result outside of 0 .. length - 1 goes through again, until it falls inside
//! ("cycle walking"), which makes it a permutation of exactly the ids:
//!
//!     position -> [ left | right ]                        f(round, right) = the low `half` bits of
//!     4 times:    [ right | left ^ f(round, right) ]        mix64(right * golden ^ key(round))
//!     id       <- [ left | right ]  if below length, else the four rounds again
//!
//! Two ways compute the same rounds:
//!
//! * Hashed: twelve 64-bit multiplications per pass. One pass is a long dependent chain, so `lanes`
//!   positions go through it side by side.
//! * Tabulated: `f` has only 4 * 2^half values. Once a cycle has given as many ids as that table
//!   costs, it is made, and a pass is four loads: about four times as fast. For a length of a
//!   million it is 8 KiB and costs 3 us, once per cycle.
//!
//! The table of at most 64 KiB (half 13, 67 million ids) is part of the struct: nothing is
//! allocated, and pages that a smaller table does not need are never touched.
//!
//! The numbers are a contract with the Python package. Nothing here may change what comes out.

const std = @import("std");
const assert = std.debug.assert;

const golden: u64 = 0x9E37_79B9_7F4A_7C15;
const round_stride: u64 = 0xD1B5_4A32_D192_ED03;
const round_count = 4;

/// Tables above this stop fitting into the first two cache levels next to the caller's data.
const tabulated_half_max = 13;

/// Ids that are worked on together: their indices fit the stack and their values the first cache.
const block_ids = 1024;

comptime {
    assert(tabulated_half_max <= 16); // Table entries are u16.
    assert(block_ids <= 1 << 16); // Indices into a block are u16.
}

/// The SplitMix64 finaliser. The generator of std adds its increment first, hence the subtraction.
inline fn mix64(value: u64) u64 {
    var splitmix: std.Random.SplitMix64 = .init(value -% golden);
    return splitmix.next();
}

/// The four rounds by their definition.
const Hashed = struct {
    half: u6,
    mask: u64,
    key: u64,

    const lanes = 8;

    inline fn round(hashed: Hashed, comptime index: u64, right: u64) u64 {
        return mix64((right *% golden) ^ (hashed.key ^ (index *% round_stride))) & hashed.mask;
    }

    inline fn pass(hashed: Hashed, comptime count: usize, values: [count]u64) [count]u64 {
        var left: [count]u64 = undefined;
        var right: [count]u64 = undefined;
        inline for (0..count) |lane| {
            left[lane] = values[lane] >> hashed.half;
            right[lane] = values[lane] & hashed.mask;
        }
        inline for (0..round_count) |index| {
            inline for (0..count) |lane| {
                const next = left[lane] ^ hashed.round(index, right[lane]);
                left[lane] = right[lane];
                right[lane] = next;
            }
        }
        var result: [count]u64 = undefined;
        inline for (0..count) |lane| result[lane] = (left[lane] << hashed.half) | right[lane];
        return result;
    }
};

/// The four rounds by table: entry `right` of `rounds[index]` is f(index, right).
const Tabulated = struct {
    half: u6,
    mask: u64,
    rounds: [round_count][]const u16,

    const lanes = 4;

    inline fn pass(tabulated: Tabulated, comptime count: usize, values: [count]u64) [count]u64 {
        var result: [count]u64 = undefined;
        inline for (0..count) |lane| {
            var left = values[lane] >> tabulated.half;
            var right = values[lane] & tabulated.mask;
            inline for (0..round_count) |index| {
                const next = left ^ tabulated.rounds[index][@intCast(right)];
                left = right;
                right = next;
            }
            result[lane] = (left << tabulated.half) | right;
        }
        return result;
    }
};

pub const Permutation = struct {
    length: u64,
    seed: u64,
    half: u6,
    /// The cycle that `key`, `hashed_ids` and the table are of.
    cycle: u64,
    key: u64,
    /// Ids of this cycle that were computed without a table.
    hashed_ids: u64,
    has_table: bool,
    /// The rounds back to back, 2^half entries each.
    table: [round_count << tabulated_half_max]u16,

    /// Inline, so that the result is made in place: a copy would cost more than a short batch.
    pub inline fn init(length: u64, seed: u64) Permutation {
        assert(length > 0);
        const bits: u7 = 64 - @as(u7, @clz(length - 1));
        var permutation: Permutation = .{
            .length = length,
            .seed = seed,
            .half = @intCast((bits + 1) / 2),
            .cycle = undefined,
            .key = undefined,
            .hashed_ids = undefined,
            .has_table = undefined,
            .table = undefined,
        };
        permutation.turn(0);
        return permutation;
    }

    /// The ids at the positions `first`, `first` + 1, ... of a cycle; all are below `length`.
    pub fn fill(permutation: *Permutation, cycle: u64, first: u64, ids: []u64) void {
        assert(first <= permutation.length);
        assert(ids.len <= permutation.length - first);
        if (permutation.length == 1) return @memset(ids, 0);
        if (cycle != permutation.cycle) permutation.turn(cycle);

        if (permutation.wantsTable(ids.len)) {
            if (!permutation.has_table) permutation.tabulate();
            walk(permutation.tabulated(), permutation.length, first, ids);
        } else {
            walk(permutation.hashed(), permutation.length, first, ids);
            permutation.hashed_ids +|= ids.len;
        }
    }

    fn hashed(permutation: *const Permutation) Hashed {
        return .{
            .half = permutation.half,
            .mask = (@as(u64, 1) << permutation.half) - 1,
            .key = permutation.key,
        };
    }

    fn tabulated(permutation: *const Permutation) Tabulated {
        assert(permutation.has_table);
        const entry_count = permutation.entryCount();
        var rounds: [round_count][]const u16 = undefined;
        inline for (&rounds, 0..) |*round, index| {
            round.* = permutation.table[index * entry_count ..][0..entry_count];
        }
        return .{ .half = permutation.half, .mask = entry_count - 1, .rounds = rounds };
    }

    /// Entries of one round's table.
    fn entryCount(permutation: *const Permutation) usize {
        assert(permutation.half <= tabulated_half_max);
        return @as(usize, 1) << @intCast(permutation.half);
    }

    fn turn(permutation: *Permutation, cycle: u64) void {
        permutation.cycle = cycle;
        permutation.key = mix64((cycle *% golden) ^ permutation.seed);
        permutation.hashed_ids = 0;
        permutation.has_table = false;
    }

    /// A table costs 2^half hashed passes, and an id costs 4^half / length of them. So it pays for
    /// itself at length / 2^half ids. To wait for as many is at most twice as dear as to know
    /// beforehand how many will come, and a few ids after a seek never pay for a table.
    fn wantsTable(permutation: *const Permutation, id_count: usize) bool {
        if (permutation.has_table) return true;
        if (permutation.half > tabulated_half_max) return false;
        return permutation.hashed_ids +| id_count >= permutation.length >> permutation.half;
    }

    fn tabulate(permutation: *Permutation) void {
        const network = permutation.hashed();
        const entry_count = permutation.entryCount();
        for (0..entry_count) |right| {
            inline for (0..round_count) |index| {
                const entry = &permutation.table[index * entry_count + right];
                entry.* = @intCast(network.round(index, right));
            }
        }
        permutation.has_table = true;
    }
};

fn walk(network: anytype, length: u64, first: u64, ids: []u64) void {
    var done: usize = 0;
    while (done < ids.len) {
        const block = ids[done..][0..@min(block_ids, ids.len - done)];
        var outside: [block_ids]u16 = undefined;
        var outside_count = pass(.positions, network, length, first + done, block, &outside, block.len);
        while (outside_count > 0) {
            outside_count = pass(.outside, network, length, 0, block, &outside, outside_count);
        }
        done += block.len;
    }
}

const Source = enum {
    /// The positions `first`, `first` + 1, ...: one for each place of the block.
    positions,
    /// The values of the block at the places that `outside` lists.
    outside,
};

/// One pass over `count` values. Results go to their places in the block; the places of those that
/// are not below `length` are listed in `outside`, in order, and counted.
inline fn pass(
    comptime source: Source,
    network: anytype,
    length: u64,
    first: u64,
    block: []u64,
    outside: *[block_ids]u16,
    count: usize,
) usize {
    const lanes = @TypeOf(network).lanes;
    var done: usize = 0;
    var kept: usize = 0;
    while (done + lanes <= count) : (done += lanes) {
        kept = passLanes(lanes, source, network, length, first, block, outside, done, kept);
    }
    while (done < count) : (done += 1) {
        kept = passLanes(1, source, network, length, first, block, outside, done, kept);
    }
    return kept;
}

inline fn passLanes(
    comptime lanes: usize,
    comptime source: Source,
    network: anytype,
    length: u64,
    first: u64,
    block: []u64,
    outside: *[block_ids]u16,
    done: usize,
    kept_before: usize,
) usize {
    var places: [lanes]u16 = undefined;
    var values: [lanes]u64 = undefined;
    inline for (0..lanes) |lane| switch (source) {
        .positions => {
            places[lane] = @intCast(done + lane);
            values[lane] = first + done + lane;
        },
        .outside => {
            places[lane] = outside[done + lane];
            values[lane] = block[places[lane]];
        },
    };
    const results = network.pass(lanes, values);
    // Every place is listed, and the list grows only if its value is outside: so no branch depends
    // on random data. `kept` never passes what was read, so the list can be the one being read.
    var kept = kept_before;
    inline for (0..lanes) |lane| {
        block[places[lane]] = results[lane];
        outside[kept] = places[lane];
        kept += @intFromBool(results[lane] >= length);
    }
    return kept;
}

const testing = std.testing;

/// What `Permutation.fill` must equal: the definition, one position at a time.
fn reference(length: u64, seed: u64, cycle: u64, position: u64) u64 {
    if (length < 2) return 0;
    const bits: u7 = 64 - @as(u7, @clz(length - 1));
    const half: u6 = @intCast((bits + 1) / 2);
    const mask = (@as(u64, 1) << half) - 1;
    const key = mix64((cycle *% golden) ^ seed);
    var value = position;
    while (true) {
        var left = value >> half;
        var right = value & mask;
        for (0..round_count) |round| {
            const mixed = mix64((right *% golden) ^ key ^ (@as(u64, round) *% round_stride));
            const next = (left ^ mixed) & mask;
            left = right;
            right = next;
        }
        value = (left << half) | right;
        if (value < length) return value;
    }
}

/// The position of an id: the same walk backward.
fn referenceInverse(length: u64, seed: u64, cycle: u64, id: u64) u64 {
    if (length < 2) return 0;
    const bits: u7 = 64 - @as(u7, @clz(length - 1));
    const half: u6 = @intCast((bits + 1) / 2);
    const mask = (@as(u64, 1) << half) - 1;
    const key = mix64((cycle *% golden) ^ seed);
    var value = id;
    while (true) {
        var left = value >> half;
        var right = value & mask;
        for (0..round_count) |undone| {
            const round: u64 = round_count - 1 - undone;
            const mixed = mix64((left *% golden) ^ key ^ (round *% round_stride));
            const before = (right ^ mixed) & mask;
            right = left;
            left = before;
        }
        value = (left << half) | right;
        if (value < length) return value;
    }
}

fn expectFill(length: u64, seed: u64, cycle: u64, comptime expected: []const u64) !void {
    var permutation: Permutation = .init(length, seed);
    var ids: [expected.len]u64 = undefined;
    permutation.fill(cycle, 0, &ids);
    try testing.expectEqualSlices(u64, expected, &ids);
}

test "the numbers of Python loaderx 2.4.6" {
    const last = std.math.maxInt(u64);
    try expectFill(1, 42, 3, &.{0});
    try expectFill(2, 42, 0, &.{ 0, 1 });
    try expectFill(3, 0, 5, &.{ 0, 2, 1 });
    try expectFill(10, 42, 0, &.{ 4, 9, 2, 3, 0, 7, 8, 5, 6, 1 });
    try expectFill(10, 42, 1, &.{ 6, 7, 3, 4, 1, 0, 5, 2, 9, 8 });
    try expectFill(10, last, last, &.{ 9, 7, 6, 1, 2, 5, 4, 3, 0, 8 });
    try expectFill(1_000_000, 42, 0, &.{ 275888, 638135, 277477, 571341, 712264, 95391, 406573 });
    try expectFill((1 << 26) + 1, 7, 9, &.{ 43074625, 41093133, 44272505, 8909434, 59375535 });
    try expectFill((1 << 33) + 7, 42, 1, &.{ 1642379407, 7155900468, 6955629865, 6489911572 });
    try expectFill(last, last, 2, &.{ 1442214646231571634, 12497308880873062850, 7033522017769840099 });
}

test "every length up to 2048 is permuted" {
    var permutation: Permutation = undefined;
    var ids: [2048]u64 = undefined;
    for (1..ids.len + 1) |length| {
        permutation = .init(length, length *% golden);
        permutation.fill(length, 0, ids[0..length]);
        var seen: std.StaticBitSet(ids.len) = .empty;
        for (ids[0..length]) |id| {
            try testing.expect(id < length);
            try testing.expect(!seen.isSet(id));
            seen.set(id);
        }
    }
}

test "lengths up to 2^40: every id leads back to its position" {
    var prng: std.Random.DefaultPrng = .init(testing.random_seed);
    const random = prng.random();
    var permutation: Permutation = undefined;
    for (0..100) |_| {
        const length = (random.int(u40) >> random.uintLessThan(u6, 40)) + @as(u64, 1);
        const seed = random.int(u64);
        const cycle = random.int(u64);
        permutation = .init(length, seed);
        for (0..20) |_| {
            var ids: [13]u64 = undefined;
            const count = @min(ids.len, length);
            const first = random.uintAtMost(u64, length - count);
            permutation.fill(cycle, first, ids[0..count]);
            for (ids[0..count], first..) |id, position| {
                try testing.expect(id < length);
                try testing.expectEqual(position, referenceInverse(length, seed, cycle, id));
            }
        }
    }
}

test "both ways and every split give the same ids" {
    var prng: std.Random.DefaultPrng = .init(testing.random_seed);
    const random = prng.random();
    const seed = random.int(u64);
    var permutation: Permutation = undefined;
    // Both sides of each change of `half`, up to where no table is made and to the last length.
    const lengths = [_]u64{
        2,             3,             4,                     5,
        16,            17,            1000,                  (1 << 20) - 1,
        1 << 20,       (1 << 20) + 1, 1 << 26,               (1 << 26) + 1,
        (1 << 33) + 7, 1 << 62,       (1 << 62) + (1 << 61), std.math.maxInt(u64),
    };
    for (lengths) |length| {
        permutation = .init(length, seed);
        var ids: [block_ids + 100]u64 = undefined;
        for (0..12) |_| {
            // Few cycles, so that their tables are met again, dropped and made anew.
            const cycle = random.uintLessThan(u64, 3);
            const count = @min(random.uintAtMost(usize, ids.len), length);
            const first = random.uintAtMost(u64, length - count);
            permutation.fill(cycle, first, ids[0..count]);
            for (ids[0..count], first..) |id, position| {
                try testing.expectEqual(reference(length, seed, cycle, position), id);
            }
        }
        // A table is there exactly if the cycle gave enough ids for it.
        permutation.turn(5);
        permutation.fill(5, 0, ids[0..1]);
        const pays_at = length >> permutation.half;
        try testing.expectEqual(pays_at <= 1, permutation.has_table);
        for (0..@intCast(@min(pays_at, 20_000))) |_| permutation.fill(5, 0, ids[0..1]);
        try testing.expectEqual(permutation.half <= tabulated_half_max, permutation.has_table);
        try testing.expectEqual(reference(length, seed, 5, 0), ids[0]);
    }
}
