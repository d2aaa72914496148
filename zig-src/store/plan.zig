//! Geometry to commands, with no I/O: an append becomes windows of shard chunks, a gather becomes
//! blocks of ids. Checked as plain data by the tests below.
//!
//! Worked example. Five records of 300 KiB, two shards, codec raw, first id 10:
//!
//!     window 0: ids 10 .. 14
//!       shard 0: ids 10, 12, 14   ->  chunks [10], [12], [14]   (two would pass 512 KiB, and the last ones are smaller)
//!       shard 1: ids 11, 13       ->  chunks [11], [13]
//!     order of chunks: round-robin over shards: [10] [11] [12] [13] [14]
//!
//! Within a shard chunks are in id order and are committed in that order, so the files of one
//! sequence of appends are the same every time, whatever lane finishes first.

const std = @import("std");
const assert = std.debug.assert;

/// Records per append window; the original's number, so that windows coincide.
pub const window_records = 32_768;
/// A chunk stops growing here; the original's number for raw records.
pub const chunk_bytes = 512 << 10;

/// The records of one append: sizes of fixed records, or the ends of varying ones.
///
/// Either all bytes lie back to back in `bytes`, or, with `rests`, only the first `header_bytes` of each record do and
/// the rest of record i begins at rests[i].
pub const Spans = struct {
    bytes: [*]const u8,
    /// ends[i] is where record i ends, its rest counted; null: every record has record_bytes.
    ends: ?[*]const u64,
    record_bytes: u64,
    count: u64,
    rests: ?[*]const [*]const u8 = null,
    header_bytes: u64 = 0,

    pub fn start(spans: Spans, index: u64) u64 {
        assert(index <= spans.count);
        const ends = spans.ends orelse return index * spans.record_bytes;
        return if (index == 0) 0 else ends[index - 1];
    }

    pub fn size(spans: Spans, index: u64) u64 {
        assert(index < spans.count);
        const from = spans.start(index);
        const to = if (spans.ends) |ends| ends[index] else from + spans.record_bytes;
        assert(from < to);
        return to - from;
    }

    /// Wants records back to back.
    pub fn record(spans: Spans, index: u64) []const u8 {
        assert(spans.rests == null);
        return spans.bytes[spans.start(index)..][0..spans.size(index)];
    }

    /// A record in one or two pieces, the second one empty where there is one.
    pub fn pieces(spans: Spans, index: u64) [2][]const u8 {
        const rests = spans.rests orelse return .{ spans.record(index), &.{} };
        return .{
            spans.bytes[index * spans.header_bytes ..][0..spans.header_bytes],
            rests[index][0 .. spans.size(index) - spans.header_bytes],
        };
    }

    pub fn totalBytes(spans: Spans) u64 {
        return spans.start(spans.count);
    }
};

/// A run of consecutive records of one shard: indices first, first + stride, ... of the append.
pub const Chunk = struct {
    first: u64,
    count: u32,
    /// Position among the chunks of its shard in this window: the order of commits.
    sequence: u32,
    bytes: u64,
};

pub const Window = struct {
    first: u64,
    count: u64,
};

/// Window `index` of an append of `record_count` records; null: there are no more.
pub fn window(record_count: u64, index: u64) ?Window {
    const first = index * window_records;
    if (first >= record_count) return null;
    return .{ .first = first, .count = @min(window_records, record_count - first) };
}

/// How large chunks may get.
pub const Limit = struct {
    bytes_max: u64,
    /// Chunks shrink to this towards the end of a window, so that no lane is left with a large one alone.
    bytes_min: u64,
    lane_count: u32,

    /// Raw chunks cost a write each, which is dear where it is small. Compressed ones are cheap beside their
    /// coding, and also shrink so that a small append still occupies every lane; the original's rule.
    pub fn of(compressed: bool, spans: Spans, lane_count: u32) Limit {
        const shares = @min(spans.count, lane_count);
        const share = std.math.divCeil(u64, spans.totalBytes(), shares) catch unreachable;
        const bytes_max = if (compressed) @min(chunk_bytes, share) else chunk_bytes;
        const bytes_min: u64 = if (compressed) 32 << 10 else 128 << 10;
        return .{ .bytes_max = bytes_max, .bytes_min = @min(bytes_min, bytes_max), .lane_count = lane_count };
    }

    /// With `left` bytes of the window not yet cut.
    fn next(limit: Limit, left: u64) u64 {
        return std.math.clamp(left / (2 * limit.lane_count), limit.bytes_min, limit.bytes_max);
    }
};

/// At most this many chunks come out of any window of `spans`. Two that follow each other in a shard have
/// more than bytes_min together, and each is of one record at least.
pub fn chunksMax(spans: Spans, shard_count: u32, limit: Limit) usize {
    const by_bytes = spans.totalBytes() * 2 / limit.bytes_min + shard_count;
    return @intCast(@min(by_bytes, @min(spans.count, window_records)));
}

/// Cuts a window into chunks, round-robin over the shards. `base_id` is the id of append index 0.
/// Returns how many of `chunks` (at least chunksMax) were filled.
pub fn cut(spans: Spans, win: Window, base_id: u64, shard_count: u32, limit: Limit, chunks: []Chunk) usize {
    assert(chunks.len >= chunksMax(spans, shard_count, limit));
    assert(limit.bytes_min >= 1);
    assert(limit.bytes_max >= limit.bytes_min);
    // next[s]: the next record of shard s, as an index into the append.
    var next: [255]u64 = undefined;
    const end = win.first + win.count;
    var left = spans.start(end) - spans.start(win.first);
    for (0..shard_count) |shard| {
        const shift = (shard + shard_count - (base_id + win.first) % shard_count) % shard_count;
        next[shard] = win.first + shift;
    }
    var filled: usize = 0;
    var sequence: u32 = 0;
    var more = true;
    while (more) : (sequence += 1) {
        more = false;
        for (0..shard_count) |shard| {
            if (next[shard] >= end) continue;
            more = true;
            const bytes_max = limit.next(left);
            var chunk: Chunk = .{ .first = next[shard], .count = 0, .sequence = sequence, .bytes = 0 };
            while (next[shard] < end) {
                const record_bytes = spans.size(next[shard]);
                if (chunk.count > 0 and chunk.bytes + record_bytes > bytes_max) break;
                chunk.bytes += record_bytes;
                chunk.count += 1;
                next[shard] += shard_count;
            }
            left -= chunk.bytes;
            chunks[filled] = chunk;
            filled += 1;
        }
    }
    return filled;
}

/// Where block `index` of `block_count` begins when `count` items are dealt evenly.
pub fn blockStart(count: u64, block_count: u64, index: u64) u64 {
    assert(block_count >= 1);
    assert(index <= block_count);
    return @intCast(@as(u128, count) * index / block_count);
}

test "every record is in exactly one chunk, ids ascend, bytes stay in the limit" {
    var prng: std.Random.DefaultPrng = .init(0x10adE4);
    const random = prng.random();
    const gpa = std.testing.allocator;
    for (0..200) |_| {
        const count = random.intRangeAtMost(u64, 1, 3000);
        const shard_count = random.intRangeAtMost(u32, 1, 255);
        const base_id = random.int(u32);
        const bytes_max = random.intRangeAtMost(u64, 1, 4000);
        const limit: Limit = .{
            .bytes_max = bytes_max,
            .bytes_min = random.intRangeAtMost(u64, 1, bytes_max),
            .lane_count = random.intRangeAtMost(u32, 1, 9),
        };
        const ends = try gpa.alloc(u64, count);
        defer gpa.free(ends);
        var at: u64 = 0;
        for (ends) |*end| {
            at += random.intRangeAtMost(u64, 1, 900);
            end.* = at;
        }
        const spans: Spans = .{ .bytes = undefined, .ends = ends.ptr, .record_bytes = 0, .count = count };
        const seen = try gpa.alloc(bool, count);
        defer gpa.free(seen);
        @memset(seen, false);
        // Windows of any size, as if each were full.
        var first: u64 = 0;
        while (first < count) {
            const win: Window = .{ .first = first, .count = random.intRangeAtMost(u64, 1, count - first) };
            first += win.count;
            const chunks = try gpa.alloc(Chunk, chunksMax(spans, shard_count, limit));
            defer gpa.free(chunks);
            const filled = cut(spans, win, base_id, shard_count, limit, chunks);
            var sequence_next: [255]u32 = @splat(0);
            for (chunks[0..filled]) |chunk| {
                const shard = (base_id + chunk.first) % shard_count;
                try std.testing.expectEqual(sequence_next[shard], chunk.sequence);
                sequence_next[shard] += 1;
                var bytes: u64 = 0;
                for (0..chunk.count) |k| {
                    const index = chunk.first + k * shard_count;
                    try std.testing.expectEqual(shard, (base_id + index) % shard_count);
                    try std.testing.expect(index >= win.first and index < win.first + win.count);
                    try std.testing.expect(!seen[index]);
                    seen[index] = true;
                    bytes += spans.size(index);
                }
                try std.testing.expectEqual(bytes, chunk.bytes);
                try std.testing.expect(bytes <= bytes_max or chunk.count == 1);
            }
        }
        try std.testing.expect(std.mem.allEqual(bool, seen, true));
    }
}

test "a chunk may be filled to its limit" {
    const spans: Spans = .{ .bytes = undefined, .ends = null, .record_bytes = 5, .count = 5 };
    const win = window(spans.count, 0).?;
    var chunks: [5]Chunk = undefined;
    for ([_][2]u64{ .{ 10, 3 }, .{ 9, 5 }, .{ 14, 3 }, .{ 15, 2 }, .{ 4, 5 }, .{ 25, 1 } }) |case| {
        const limit: Limit = .{ .bytes_max = case[0], .bytes_min = case[0], .lane_count = 1 };
        try std.testing.expectEqual(@as(usize, @intCast(case[1])), cut(spans, win, 0, 1, limit, &chunks));
    }
}

test "windows cover an append, and none is empty" {
    for ([_]u64{ 1, window_records - 1, window_records, window_records + 1, 3 * window_records }) |count| {
        var covered: u64 = 0;
        var index: u64 = 0;
        while (window(count, index)) |win| : (index += 1) {
            try std.testing.expectEqual(covered, win.first);
            try std.testing.expect(win.count >= 1);
            covered += win.count;
        }
        try std.testing.expectEqual(count, covered);
    }
}

test "blocks cover all items once" {
    for ([_]u64{ 1, 2, 7, 256, 1000 }) |count| {
        for ([_]u64{ 1, 2, 3, 8 }) |blocks| {
            try std.testing.expectEqual(@as(u64, 0), blockStart(count, blocks, 0));
            try std.testing.expectEqual(count, blockStart(count, blocks, blocks));
            for (0..blocks) |i| try std.testing.expect(blockStart(count, blocks, i) <= blockStart(count, blocks, i + 1));
        }
    }
}
