//! What integrity.zr holds of a container's records: 64 bits for each, which tell an accident at about
//! the speed of memory. They do not stop a forger, who can make others.
//!
//! Records are taken in blocks of 4096 (the last may be shorter). A block of n records has n + 1 words:
//!
//!     | table | record 0 | record 1 | ... | record n - 1 |
//!
//!     table   wyhash, seed 0, of the block's 16 n bytes of the location table
//!     record  wyhash of the stored bytes, seeded with the wyhash, seed 0, of the record's 16 location bytes
//!
//! A record's word vouches for its location and its bytes together, which is all that a gather asks. Of
//! the two, the table's word says which has changed.

const std = @import("std");
const format = @import("format.zig");
const copy = @import("copy.zig");
const Wyhash = std.hash.Wyhash;

pub const block_records = 4096;

/// Words of a container of `length` records.
pub fn wordCount(length: u64) u64 {
    return length + (std.math.divCeil(u64, length, block_records) catch unreachable); // Not by zero.
}

/// Where the word of a record is.
pub fn wordIndex(record: u64) u64 {
    return tableIndex(record / block_records) + 1 + record % block_records;
}

/// Where the table's word of a block is.
pub fn tableIndex(block: u64) u64 {
    return block * (block_records + 1);
}

/// The word of a record.
pub fn of(location: format.Location, stored: []const u8) u64 {
    if (stored.len <= whole_bytes_max) return Wyhash.hash(seedOf(location), stored);
    var running: Running = .init(location);
    running.update(stored);
    return running.final();
}

/// Copies the stored bytes, and gives the record's word.
pub fn copied(location: format.Location, target: []u8, stored: []const u8, streaming: bool) u64 {
    if (stored.len > whole_bytes_max) {
        var running: Running = .init(location);
        running.copyFrom(target, stored, streaming);
        return running.final();
    }
    if (streaming) copy.stream(target, stored) else copy.plain(target, stored);
    return of(location, stored);
}

/// A record's word from its bytes in pieces.
pub const Running = struct {
    hash: Wyhash,

    pub fn init(location: format.Location) Running {
        return .{ .hash = .init(seedOf(location)) };
    }

    /// The processor's own prefetchers stop at every page, and the hash waits for each line in turn:
    /// asked for ahead, memory gives a third more.
    pub fn update(running: *Running, bytes: []const u8) void {
        if (bytes.len <= whole_bytes_max) return running.hash.update(bytes);
        var at: usize = 0;
        while (at < bytes.len) {
            const end = @min(bytes.len, at + 2 * piece_bytes);
            prefetchAhead(bytes, at, end);
            running.hash.update(bytes[at..end]);
            at = end;
        }
    }

    /// Copies and takes in. A piece is hashed right after it was copied, from the first cache, while
    /// the memory is busy with what comes next, which hides most of the hash. A small
    /// piece, so that the processor still has copies of the last one under way when the next begins.
    pub fn copyFrom(running: *Running, target: []u8, bytes: []const u8, streaming: bool) void {
        var at: usize = 0;
        // Streaming wants aligned targets: up to there at once, so that all later pieces are.
        var end = @min(bytes.len, piece_bytes + copy.bytesToAligned(target));
        while (at < bytes.len) {
            prefetchAhead(bytes, at, end);
            if (streaming) copy.stream(target[at..end], bytes[at..end]) else copy.plain(target[at..end], bytes[at..end]);
            running.hash.update(bytes[at..end]);
            at = end;
            end = @min(bytes.len, at + piece_bytes);
        }
    }

    pub fn final(running: *Running) u64 {
        return running.hash.final();
    }
};

/// Asks for the bytes `ahead_bytes` after `bytes[at..end]`.
fn prefetchAhead(bytes: []const u8, at: usize, end: usize) void {
    var line = at + ahead_bytes;
    const until = @min(bytes.len, end + ahead_bytes);
    while (line < until) : (line += 64) @prefetch(bytes.ptr + line, .{});
}

/// The word of a block's table, from its bytes in pieces.
pub const Table = struct {
    hash: Wyhash = .init(0),

    pub fn update(table: *Table, bytes: []const u8) void {
        table.hash.update(bytes);
    }

    pub fn final(table: *Table) u64 {
        return table.hash.final();
    }
};

fn seedOf(location: format.Location) u64 {
    return Wyhash.hash(0, std.mem.asBytes(&location));
}

/// Whole rounds of the hash (48 bytes) and whole blocks of a streaming copy (128).
const piece_bytes = 384;
const ahead_bytes = 4 * piece_bytes;
/// Up to here a record is copied whole and then hashed from the first cache.
const whole_bytes_max = 10 * piece_bytes;

test "a word is the same however it is made" {
    var stored: [3 * whole_bytes_max + 77]u8 = undefined;
    var prng: std.Random.DefaultPrng = .init(11);
    prng.random().bytes(&stored);
    var memory: [stored.len + 16]u8 = undefined;
    for ([_]usize{ 1, 16, 47, 48, 49, piece_bytes, piece_bytes + 1, whole_bytes_max, whole_bytes_max + 1, stored.len }) |bytes| {
        const location: format.Location = .{ .offset = 12, .phys_length = @intCast(bytes), .logic_length = 9 };
        const word = of(location, stored[0..bytes]);
        try std.testing.expectEqual(Wyhash.hash(seedOf(location), stored[0..bytes]), word);
        for ([_]bool{ false, true }) |streaming| {
            // Targets of any alignment.
            for (0..16) |shift| {
                const target = memory[shift..];
                @memset(&memory, 0);
                try std.testing.expectEqual(word, copied(location, target[0..bytes], stored[0..bytes], streaming));
                copy.fence();
                try std.testing.expectEqualSlices(u8, stored[0..bytes], target[0..bytes]);
            }
        }
        var running: Running = .init(location);
        running.update(stored[0..@min(bytes, 8)]);
        if (bytes > 8) running.copyFrom(memory[8..bytes], stored[8..bytes], false);
        try std.testing.expectEqual(word, running.final());
    }
}

test "words are those that files hold: another hash is another format" {
    const location: format.Location = .{ .offset = 0, .phys_length = 5, .logic_length = 5 };
    try std.testing.expectEqual(@as(u64, 9326960635195869012), of(location, "hello"));
    const moved: format.Location = .{ .offset = 1, .phys_length = 5, .logic_length = 5 };
    try std.testing.expect(of(moved, "hello") != of(location, "hello"));
    // The public test vectors of this hash.
    try std.testing.expectEqual(@as(u64, 0x32dd92e4b2915153), Wyhash.hash(2, "abc"));
    try std.testing.expectEqual(@as(u64, 0x8619124089a3a16b), Wyhash.hash(3, "message digest"));
}

test "words have places of their own" {
    try std.testing.expectEqual(@as(u64, 0), wordCount(0));
    try std.testing.expectEqual(@as(u64, 2), wordCount(1));
    try std.testing.expectEqual(@as(u64, 4097), wordCount(4096));
    try std.testing.expectEqual(@as(u64, 4099), wordCount(4097));
    try std.testing.expectEqual(@as(u64, 4096), wordIndex(4095));
    try std.testing.expectEqual(@as(u64, 4097), tableIndex(1));
    try std.testing.expectEqual(@as(u64, 4098), wordIndex(4096));
    try std.testing.expectEqual(wordCount(10_000) - 1, wordIndex(9_999));
}
