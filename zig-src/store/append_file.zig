//! Runs an append of raw records that lie in a file: lanes copy them from file to file, each through a
//! scratch that stays in the processor's cache, so that memory sees what is read and what is written and
//! nothing between.
//!
//!     lane: read a block of consecutive records with one call
//!           write each shard's part of it where it belongs; fill the block's entries of the locations
//!     then, with every payload of the window written: one write of its locations
//!
//! Records are of one size and stored as they are, so the place of each is known beforehand and nobody
//! waits for one. The files are those of `append.zig` with the same records in memory.
//!
//! Length and tails advance only when every window has succeeded, as there.

const std = @import("std");
const assert = std.debug.assert;
const Io = std.Io;
const format = @import("format.zig");
const plan = @import("plan.zig");
const volume_module = @import("volume.zig");
const Volume = volume_module.Volume;
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

/// Records one after the other in an open file.
pub const Source = struct {
    file: Io.File,
    /// Where the first one begins.
    offset: u64,
    record_bytes: u64,
    count: u64,
};

/// What one shard gets of a block: with an eighth of it at a time, copying takes a fifth to a half longer
/// (docs/performance.md).
const part_bytes = 512 << 10;
/// A lane reads a block at once, and with room to pack a part of it that has to stay below what is kept of its
/// memory.
const block_bytes_max = 3 << 20;
/// Of a record that is larger than a block.
const piece_bytes_max = 1 << 20;

/// How a window is cut. A task is a block, which is some consecutive records; or a piece of a record that is
/// larger than one. The last blocks are a quarter as large, so that no lane is left alone with a large one.
const Cut = struct {
    /// Records of a block.
    records: u64,
    /// Tasks of a record; more than 1 only where blocks are of one record.
    pieces: u64,
    /// How many blocks are whole.
    whole: u64,
    task_count: u32,

    fn of(record_bytes: u64, record_count: u64, shard_count: u64, lane_count: u64) Cut {
        const block_bytes = @min(shard_count * part_bytes, block_bytes_max);
        if (record_bytes > block_bytes) {
            const pieces = std.math.divCeil(u64, record_bytes, piece_bytes_max) catch unreachable;
            // At most 2^15 records of 2^11 pieces each.
            return .{ .records = 1, .pieces = pieces, .whole = record_count, .task_count = @intCast(record_count * pieces) };
        }
        const records = block_bytes / record_bytes;
        const whole = (record_count / records) -| lane_count;
        const rest = std.math.divCeil(u64, record_count - whole * records, lastRecords(records)) catch unreachable;
        return .{ .records = records, .pieces = 1, .whole = whole, .task_count = @intCast(whole + rest) };
    }

    fn lastRecords(records: u64) u64 {
        return @max(1, records / 4);
    }

    /// The records of a block, within a window of `record_count`.
    fn block(cut: Cut, task: u32, record_count: u64) struct { first: u64, count: usize } {
        if (task < cut.whole) return .{ .first = task * cut.records, .count = @intCast(cut.records) };
        const most = lastRecords(cut.records);
        const first = cut.whole * cut.records + (task - cut.whole) * most;
        return .{ .first = first, .count = @intCast(@min(most, record_count - first)) };
    }
};

pub fn append(volume: *Volume, source: Source, fault: *Fault) Error!void {
    assert(volume.codec == .raw);
    assert(source.count >= 1);
    assert(source.record_bytes >= 1);
    assert(source.record_bytes <= format.record_bytes_max);
    const length_after = try volume.lengthAfter(source.count, fault);
    try assertLongEnough(volume.io, source, fault);
    var tails_after: [format.shards_max]u64 = @splat(0);
    for (0..volume.shard_count) |index| {
        const shard: u32 = @intCast(index);
        tails_after[shard] = volume.tails[shard] + source.record_bytes * recordsOf(volume, shard, source.count);
        if (tails_after[shard] > format.file_offset_max) {
            return fault.fail(error.TooLarge, .{ .data = shard }, "data_{d}.zr would pass any file offset", .{shard});
        }
    }
    const gpa = volume.gpa;
    const window_count_max: usize = @intCast(@min(source.count, plan.window_records));
    const locations = gpa.alloc(format.Location, window_count_max) catch return fault.outOfMemory("locations", window_count_max * format.location_bytes);
    defer gpa.free(locations);
    var run: Run = .{
        .volume = volume,
        .source = source,
        .locations = locations,
        .cut = undefined,
        .window = undefined,
    };
    var window_index: u64 = 0;
    while (plan.window(source.count, window_index)) |window| : (window_index += 1) {
        run.window = window;
        run.cut = .of(source.record_bytes, window.count, volume.shard_count, volume.executor.lanes());
        for (run.reserved[0..volume.shard_count]) |*reserved| reserved.* = .init(false);
        volume.executor.fanOut(Run, &run, run.cut.task_count, std.math.maxInt(u32), Run.task);
        try run.first.result(fault);
        try volume.writeLocations(volume.length + window.first, locations[0..@intCast(window.count)], fault);
    }
    volume.tails = tails_after;
    volume.length = length_after;
}

/// Before anything is written. It may still become shorter.
fn assertLongEnough(io: Io, source: Source, fault: *Fault) Error!void {
    const size = source.file.length(io) catch |err| return fault.failOs(err, .source, "measuring it");
    const bytes = std.math.mul(u64, source.record_bytes, source.count) catch std.math.maxInt(u64);
    const end = std.math.add(u64, source.offset, bytes) catch std.math.maxInt(u64);
    if (size >= end and end <= format.file_offset_max) return;
    return fault.fail(error.Malformed, .source, "it became shorter while it was read: it has {d} bytes, and the records that are wanted end at byte {d}", .{ size, end });
}

/// How many of the first `count` records of an append fall to a shard: the first at the index at which
/// round-robin comes to it, then every shard_count-th.
fn recordsOf(volume: *const Volume, shard: u32, count: u64) u64 {
    const shard_count: u64 = volume.shard_count;
    const first = (shard + shard_count - volume.length % shard_count) % shard_count;
    return count / shard_count + @intFromBool(first < count % shard_count);
}

const Run = struct {
    volume: *Volume,
    source: Source,
    cut: Cut,
    window: plan.Window,
    /// Entry i belongs to record window.first + i; lanes fill disjoint entries.
    locations: []format.Location,
    /// Whether blocks were asked for: whoever comes to a shard first in a window asks.
    reserved: [format.shards_max]std.atomic.Value(bool) = @splat(.init(false)),

    first: fault_module.First = .{},

    fn task(run: *Run, index: u32) void {
        if (run.first.isSet()) return;
        var fault: Fault = .{};
        const result = if (run.cut.pieces == 1) run.copyBlock(index, &fault) else run.copyPiece(index, &fault);
        result catch |err| run.first.set(run.volume.io, err, &fault);
    }

    /// Where a record's bytes begin in its shard, by its index in the append. Those of a shard are
    /// shard_count apart, so index / shard_count counts them from 0.
    fn placeOf(run: *const Run, index: u64, shard: u32) u64 {
        return run.volume.tails[shard] + index / run.volume.shard_count * run.source.record_bytes;
    }

    fn shardOf(run: *const Run, index: u64) u32 {
        return run.volume.shardOf(run.volume.length + index);
    }

    fn fillLocation(run: *Run, index: u64, place: u64) void {
        const bytes: u32 = @intCast(run.source.record_bytes);
        run.locations[@intCast(index - run.window.first)] = .{ .offset = place, .phys_length = bytes, .logic_length = bytes };
    }

    fn reserve(run: *Run, shard: u32) void {
        if (run.reserved[shard].load(.monotonic) or run.reserved[shard].swap(true, .monotonic)) return;
        const record_bytes = run.source.record_bytes;
        const before = recordsOf(run.volume, shard, run.window.first);
        const count = recordsOf(run.volume, shard, run.window.first + run.window.count) - before;
        run.volume.reserveData(shard, run.volume.tails[shard] + before * record_bytes, count * record_bytes);
    }

    /// Reads what lies `at` bytes behind the first record.
    fn read(run: *Run, target: []u8, at: u64, fault: *Fault) Error!void {
        const offset = run.source.offset + at;
        const bytes = run.source.file.readPositionalAll(run.volume.io, target, offset) catch |err| return fault.failOs(err, .source, "reading it");
        if (bytes == target.len) return;
        return fault.fail(error.Malformed, .source, "it became shorter while it was read: it ends at byte {d}", .{offset + bytes});
    }

    fn copyPiece(run: *Run, task_index: u32, fault: *Fault) Error!void {
        const pieces = run.cut.pieces;
        const record_bytes = run.source.record_bytes;
        const index = run.window.first + task_index / pieces;
        const piece = task_index % pieces;
        const shard = run.shardOf(index);
        const from = plan.blockStart(record_bytes, pieces, piece);
        const to = plan.blockStart(record_bytes, pieces, piece + 1);
        const volume = run.volume;
        const lease = try volume.pool.take(fault);
        defer volume.pool.give(lease);
        const bytes = try lease.scratch(to - from, fault);
        try run.read(bytes, index * record_bytes + from, fault);
        run.reserve(shard);
        const place = run.placeOf(index, shard);
        try volume.writeData(shard, bytes, place + from, fault);
        if (piece == 0) run.fillLocation(index, place);
    }

    fn copyBlock(run: *Run, task_index: u32, fault: *Fault) Error!void {
        const volume = run.volume;
        const record_bytes: usize = @intCast(run.source.record_bytes);
        const wanted = run.cut.block(task_index, run.window.count);
        const first = run.window.first + wanted.first;
        const count = wanted.count;
        const part_count = @min(count, volume.shard_count);
        const part_records_max = std.math.divCeil(usize, count, volume.shard_count) catch unreachable;
        // What lies in one shard lies there as it does in the block.
        const is_packed = part_count > 1 and part_records_max > volume_module.pieces_max;
        const lease = try volume.pool.take(fault);
        defer volume.pool.give(lease);
        const bytes = count * record_bytes;
        const scratch = try lease.scratch(if (is_packed) bytes + part_records_max * record_bytes else bytes, fault);
        const block = scratch[0..bytes];
        try run.read(block, first * record_bytes, fault);
        for (0..part_count) |turn| {
            // Lanes that work side by side begin with other shards: writes to one file wait for each other.
            const from = (turn + task_index) % part_count;
            const shard = run.shardOf(first + from);
            const place = run.placeOf(first + from, shard);
            var at = place;
            var k = from;
            while (k < count) : (k += volume.shard_count) {
                run.fillLocation(first + k, at);
                at += record_bytes;
            }
            run.reserve(shard);
            if (part_count == 1) {
                try volume.writeData(shard, block, place, fault);
            } else if (is_packed) {
                try volume.writeData(shard, run.packPart(block, from, scratch[bytes..]), place, fault);
            } else {
                var pieces: [volume_module.pieces_max][]const u8 = undefined;
                var piece_count: usize = 0;
                k = from;
                while (k < count) : (k += volume.shard_count) {
                    pieces[piece_count] = block[k * record_bytes ..][0..record_bytes];
                    piece_count += 1;
                }
                try volume.writeDataPieces(shard, pieces[0..piece_count], place, fault);
            }
        }
    }

    /// Every shard_count-th record of a block, from number `from` on, back to back in `target`.
    fn packPart(run: *const Run, block: []const u8, from: usize, target: []u8) []const u8 {
        const record_bytes: usize = @intCast(run.source.record_bytes);
        const step = run.volume.shard_count * record_bytes;
        var at: usize = 0;
        var taken = from * record_bytes;
        while (taken < block.len) : (taken += step) {
            @memcpy(target[at..][0..record_bytes], block[taken..][0..record_bytes]);
            at += record_bytes;
        }
        return target[0..at];
    }
};

test "the tasks of a window are all its records, each once, in bounds" {
    for ([_]u64{ 1, 3, 784, 2 << 10, 147 << 10, part_bytes, block_bytes_max, block_bytes_max + 1, 5 << 20, format.record_bytes_max }) |record_bytes| {
        for ([_]u64{ 1, 4, 255 }) |shard_count| {
            for ([_]u64{ 1, 2, 13, 100, plan.window_records }) |record_count| {
                const cut: Cut = .of(record_bytes, record_count, shard_count, 2);
                if (cut.pieces > 1) {
                    try std.testing.expectEqual(record_count * cut.pieces, cut.task_count);
                    try std.testing.expect(record_bytes <= cut.pieces * piece_bytes_max);
                    continue;
                }
                var next: u64 = 0;
                for (0..cut.task_count) |task| {
                    const block = cut.block(@intCast(task), record_count);
                    try std.testing.expectEqual(next, block.first);
                    try std.testing.expect(block.count >= 1);
                    try std.testing.expect(block.count * record_bytes <= block_bytes_max);
                    next += block.count;
                }
                try std.testing.expectEqual(record_count, next);
            }
        }
    }
}
