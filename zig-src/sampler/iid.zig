//! Independent draws with replacement: every id of 0 .. length - 1 is equally likely, at every place.
//!
//! A 64-bit random word x becomes the id `floor(x * length / 2^64)`, the high half of a 128-bit
//! product. 2^64 words do not divide evenly over `length` ids; the low half of the product tells
//! which words are surplus: exactly those with `low < threshold`, where
//! `threshold = 2^64 mod length`. They are refused and the next word is taken (Lemire's method).
//!
//!     word --x length--> [ high: the id | low: refused when below threshold ]
//!
//! Two streams of words exist, one for each generation of Python loaderx:
//!
//! | type      | stream | words come from                  | a far step costs           |
//! |-----------|--------|----------------------------------|----------------------------|
//! | `Chained` | 2.4    | one Sfc64 generator, in a chain  | every draw before it       |
//! | `Keyed`   | 2.8    | a hash of (seed, position)       | nothing                    |
//!
//! The numbers are a contract with the Python package. Nothing here may change what comes out.

const std = @import("std");
const assert = std.debug.assert;

const golden: u64 = 0x9E37_79B9_7F4A_7C15;
const retry_stride: u64 = 0xD1B5_4A32_D192_ED03;

/// The SplitMix64 finaliser. The generator of std adds its increment first, hence the subtraction.
inline fn mix64(value: u64) u64 {
    var splitmix: std.Random.SplitMix64 = .init(value -% golden);
    return splitmix.next();
}

/// Maps words to ids below `length`.
const Bound = struct {
    length: u64,
    /// Below `length`; 0 when `length` is a power of two, so that no word is refused.
    threshold: u64,

    fn init(length: u64) Bound {
        assert(length > 0);
        return .{ .length = length, .threshold = (0 -% length) % length };
    }

    inline fn accepts(bound: Bound, word: u64) bool {
        return word *% bound.length >= bound.threshold;
    }

    inline fn id(bound: Bound, word: u64) u64 {
        return @intCast(std.math.mulWide(u64, word, bound.length) >> 64);
    }
};

/// Sfc64 with the counter variant and the shifts of `std.Random.Sfc64`, whose `next` is private and
/// whose counter must not pass 2^64.
const Generator = struct {
    a: u64,
    b: u64,
    c: u64,
    counter: u64 = 1,

    fn init(seed: u64) Generator {
        var generator: Generator = .{ .a = seed, .b = seed, .c = seed };
        for (0..12) |_| _ = generator.next();
        return generator;
    }

    inline fn next(generator: *Generator) u64 {
        const word = generator.a +% generator.b +% generator.counter;
        generator.counter +%= 1;
        generator.a = generator.b ^ (generator.b >> 11);
        generator.b = generator.c *% 9;
        generator.c = std.math.rotl(u64, generator.c, 24) +% word;
        return word;
    }
};

/// Stream 2.4. The position is the generator's state, so it can only walk forward.
pub const Chained = struct {
    bound: Bound,
    seed: u64,
    generator: Generator,
    /// Ids drawn since seeding. Wide, so that it never wraps back to a position it is not at.
    position: u128 = 0,

    /// Words between two looks at the cancel word: well under a millisecond.
    const cancel_stride_words = 1 << 16;

    pub fn init(length: u64, seed: u64) Chained {
        return .{ .bound = .init(length), .seed = seed, .generator = .init(seed) };
    }

    pub fn fill(chained: *Chained, ids: []u64) void {
        const bound = chained.bound;
        var generator = chained.generator; // A copy stays in registers; `ids` might alias a field.
        var filled: usize = 0;
        // Each word is written, and the place is kept only if the word is accepted: the loop has no
        // branch that depends on random data, and costs the same at any rate of refusal.
        while (filled < ids.len) {
            const word = generator.next();
            ids[filled] = bound.id(word);
            filled += @intFromBool(bound.accepts(word));
        }
        chained.generator = generator;
        chained.position += ids.len;
    }

    /// Goes to the id number `target`. Walks there from here, or from the start if that lies behind.
    /// Aborted: `cancel` became non-zero; the position is as before.
    pub fn seek(chained: *Chained, target: u64, cancel: ?*const u32) error{Aborted}!void {
        const ahead = chained.position <= target;
        var generator: Generator = if (ahead) chained.generator else .init(chained.seed);
        var left: u64 = if (ahead) target - @as(u64, @intCast(chained.position)) else target;
        while (left > 0) {
            if (cancel) |word| if (@atomicLoad(u32, word, .monotonic) != 0) return error.Aborted;
            // `left` goes down by at most one per word, so these words cannot overshoot.
            const word_count = @min(left, cancel_stride_words);
            for (0..@intCast(word_count)) |_| {
                left -= @intFromBool(chained.bound.accepts(generator.next()));
            }
        }
        chained.generator = generator;
        chained.position = target;
    }
};

/// Stream 2.8. Every position has its own words: word r of a position is a hash of both.
pub const Keyed = struct {
    bound: Bound,
    seed: u64,

    pub fn init(length: u64, seed: u64) Keyed {
        return .{ .bound = .init(length), .seed = seed };
    }

    /// The ids at `position`, `position` + 1, ...
    pub fn fill(keyed: *const Keyed, position: u128, ids: []u64) void {
        var rest = ids;
        var at = position;
        while (rest.len > 0) {
            // The high half of the position makes the key; one run has one key.
            const low: u64 = @truncate(at);
            const run = rest[0..@intCast(@min(rest.len, (1 << 64) - @as(u128, low)))];
            const high: u64 = @intCast(at >> 64);
            const key = mix64((high *% golden) ^ keyed.seed);
            for (run, 0..) |*id, index| {
                const base = ((low +% index) *% golden) ^ key;
                var word = mix64(base);
                var retry: u64 = 0;
                while (!keyed.bound.accepts(word)) {
                    retry +%= retry_stride;
                    word = mix64(base ^ retry);
                }
                id.* = keyed.bound.id(word);
            }
            rest = rest[run.len..];
            at += run.len;
        }
    }
};

const testing = std.testing;

fn expectChained(length: u64, seed: u64, from: u64, comptime expected: []const u64) !void {
    var chained: Chained = .init(length, seed);
    try chained.seek(from, null);
    var ids: [expected.len]u64 = undefined;
    chained.fill(&ids);
    try testing.expectEqualSlices(u64, expected, &ids);
}

fn expectKeyed(length: u64, seed: u64, from: u128, comptime expected: []const u64) !void {
    const keyed: Keyed = .init(length, seed);
    var ids: [expected.len]u64 = undefined;
    keyed.fill(from, &ids);
    try testing.expectEqualSlices(u64, expected, &ids);
}
// Vectors of the Python packages loaderx 2.4.6 (chained) and 2.8.19 (keyed).
test "chained: the numbers of Python loaderx 2.4.6" {
    const last = std.math.maxInt(u64);
    try expectChained(1, 42, 0, &.{ 0, 0, 0, 0, 0 });
    try expectChained(10, 42, 0, &.{ 5, 4, 4, 6, 1 });
    try expectChained(10, 0, 10, &.{ 9, 2, 4, 1, 0 });
    try expectChained(1_000_000, 42, 0, &.{ 520079, 433306, 412626, 601933, 163992 });
    try expectChained(1_000_000, last, 5000, &.{ 756300, 294406, 559175, 119355, 592942 });
    try expectChained((1 << 33) + 7, 42, 0, &.{ 4467445786, 3722075318, 3544431117, 5170572206 });
    try expectChained((1 << 63) + 1, 1, 0, &.{
        2287800123443150277,
        7169833988011103392,
        84976632207804620,
        1517750040026659818,
    });
    try expectChained((1 << 63) + 1, 1, 15, &.{
        1903514969189036504,
        6597454524929351386,
        6313592457568933175,
        2322433363252260364,
    });
    try expectChained(last, 42, 0, &.{ 9593766767639209230, 7993095875549472147 });
}

test "keyed: the numbers of Python loaderx 2.8.19" {
    const last = std.math.maxInt(u64);
    try expectKeyed(1, 42, 0, &.{ 0, 0, 0, 0, 0 });
    try expectKeyed(10, 42, 0, &.{ 5, 0, 5, 4, 8 });
    try expectKeyed(1_000_000, 42, 0, &.{ 593422, 11268, 548437, 497870, 812743 });
    try expectKeyed(1_000_000, last, 5_000_000_000_000, &.{ 160413, 182545, 805581, 968881 });
    try expectKeyed((1 << 33) + 7, 42, 0, &.{ 5097459699, 96793863, 4711042968, 4276673725 });
    try expectKeyed((1 << 63) + 1, 1, 0, &.{
        4420853700253916478,
        269010410620613907,
        2644803923310565824,
        8938781431687102758,
    });
    try expectKeyed(last, 42, 5 * @as(u128, last), &.{ 17272349379648761901, 16005118208969777280 });
    // Nine positions before 2^64, five behind.
    try expectKeyed(1_000_003, 5, (1 << 64) - 9, &.{
        137922, 347630, 559171, 917779, 903869, 998328, 911652,
        212547, 316791, 760961, 214878, 657511, 49169,  584503,
    });
}

test "the generator is that of std" {
    for ([_]u64{ 0, 1, 42, std.math.maxInt(u64) }) |seed| {
        var ours: Generator = .init(seed);
        var theirs: std.Random.Sfc64 = .init(seed);
        for (0..100) |_| try testing.expectEqual(theirs.random().int(u64), ours.next());
    }
}

test "a threshold refuses the surplus words and no others" {
    try testing.expectEqual(0, Bound.init(1).threshold);
    try testing.expectEqual(0, Bound.init(1 << 63).threshold);
    try testing.expectEqual(1, Bound.init(3).threshold);
    try testing.expectEqual(1, Bound.init(std.math.maxInt(u64)).threshold);
    try testing.expectEqual((1 << 63) - 1, Bound.init((1 << 63) + 1).threshold);

    try testing.expect(Bound.init(8).accepts(0));
    // Three ids: one word of 2^64 is surplus. The next low half, 1, belongs to the inverse of 3.
    const third = 0xAAAA_AAAA_AAAA_AAAB;
    try testing.expectEqual(1, @as(u64, third) *% 3);
    try testing.expect(!Bound.init(3).accepts(0));
    try testing.expect(Bound.init(3).accepts(third));
}

test "chained: pieces of a fill equal the whole, and a seek equals the fills it skips" {
    var prng: std.Random.DefaultPrng = .init(testing.random_seed);
    const random = prng.random();
    for (0..100) |_| {
        // Long lengths refuse up to half of the words: there a position is not a count of words.
        const length = random.int(u64) >> random.int(u6) | 1;
        const seed = random.int(u64);
        var whole: [300]u64 = undefined;
        var once: Chained = .init(length, seed);
        once.fill(&whole);

        var pieces: [300]u64 = undefined;
        var walker: Chained = .init(length, seed);
        const cut = random.uintAtMost(usize, pieces.len);
        walker.fill(pieces[0..cut]);
        walker.fill(pieces[cut..]);
        try testing.expectEqualSlices(u64, &whole, &pieces);

        // Forward and backward, from wherever the walker is.
        for (0..4) |_| {
            const target = random.uintLessThan(usize, whole.len);
            const count = random.uintAtMost(usize, whole.len - target);
            try walker.seek(target, null);
            walker.fill(pieces[0..count]);
            try testing.expectEqualSlices(u64, whole[target..][0..count], pieces[0..count]);
        }
    }
}

test "chained: a cancelled seek leaves the position" {
    var expected: [3]u64 = undefined;
    var undisturbed: Chained = .init(1000, 7);
    undisturbed.fill(&expected);
    undisturbed.fill(&expected);

    var chained: Chained = .init(1000, 7);
    var ids: [3]u64 = undefined;
    chained.fill(&ids);
    const cancel: u32 = 1;
    try testing.expectError(error.Aborted, chained.seek(std.math.maxInt(u64), &cancel));
    try testing.expectError(error.Aborted, chained.seek(1, &cancel));
    chained.fill(&ids);
    try testing.expectEqualSlices(u64, &expected, &ids);
}

test "keyed: a fill over 2^64 positions equals its two sides" {
    const keyed: Keyed = .init(1_000_003, 5);
    const edge: u128 = 1 << 64;
    var whole: [9]u64 = undefined;
    var pieces: [9]u64 = undefined;
    for (0..10) |before| {
        const start = edge - before;
        keyed.fill(start, &whole);
        for (&pieces, 0..) |*id, index| keyed.fill(start + index, id[0..1]);
        try testing.expectEqualSlices(u64, &whole, &pieces);
    }
}
