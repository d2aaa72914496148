//! Runs an append: windows one after the other, the chunks of a window on the lanes.
//!
//!     lane: encode or pack chunk k of shard s in its own scratch
//!           wait until chunk k-1 of shard s has its place, take the next bytes of the shard
//!           write them there; fill the chunk's entries of the window's locations
//!     then, with every payload of the window written: one write of its locations
//!
//! Places are taken in chunk order, so the files do not depend on which lane was faster. The wait is
//! short: chunks are claimed in order, so the one before is already on a lane, and it is the taking of
//! a place that is waited for, not the write.
//!
//! Length and tails advance only when every window has succeeded. What a failed append has written
//! lies past the tails, where nobody reads, and the next append overwrites it.

const std = @import("std");
const assert = std.debug.assert;
const Io = std.Io;
const format = @import("format.zig");
const plan = @import("plan.zig");
const codec = @import("codec.zig");
const zstd = @import("../zstd.zig");
const Lease = @import("scratch.zig").Lease;
const volume_module = @import("volume.zig");
const Volume = volume_module.Volume;
const pieces_max = volume_module.pieces_max;
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

pub fn append(volume: *Volume, spans: plan.Spans, fault: *Fault) Error!void {
    assert(spans.count >= 1);
    assert(spans.rests == null or volume.codec == .raw);
    const length_after = try volume.lengthAfter(spans.count, fault);
    const limit: plan.Limit = .of(volume.codec != .raw, spans, volume.executor.lanes());
    const window_count_max: usize = @intCast(@min(spans.count, plan.window_records));
    const gpa = volume.gpa;
    const chunk_count_max = plan.chunksMax(spans, volume.shard_count, limit);
    const chunks = gpa.alloc(plan.Chunk, chunk_count_max) catch return fault.outOfMemory("an append plan", chunk_count_max * @sizeOf(plan.Chunk));
    defer gpa.free(chunks);
    const locations = gpa.alloc(format.Location, window_count_max) catch return fault.outOfMemory("locations", window_count_max * format.location_bytes);
    defer gpa.free(locations);
    var run: Run = .{
        .volume = volume,
        .spans = spans,
        .chunks = chunks,
        .locations = locations,
        .window = undefined,
        .tails = volume.tails,
    };
    var window_index: u64 = 0;
    while (plan.window(spans.count, window_index)) |window| : (window_index += 1) {
        run.window = window;
        run.committed = @splat(0);
        const count = plan.cut(spans, window, volume.length, volume.shard_count, limit, chunks);
        run.shard_bytes = @splat(0);
        for (chunks[0..count]) |chunk| run.shard_bytes[volume.shardOf(volume.length + chunk.first)] += chunk.bytes;
        volume.executor.fanOut(Run, &run, @intCast(count), std.math.maxInt(u32), Run.chunkTask);
        try run.first.result(fault);
        try volume.writeLocations(volume.length + window.first, locations[0..@intCast(window.count)], fault);
    }
    volume.tails = run.tails;
    volume.length = length_after;
}

const Run = struct {
    volume: *Volume,
    spans: plan.Spans,
    window: plan.Window,
    chunks: []const plan.Chunk,
    /// Entry i belongs to record window.first + i; lanes fill disjoint entries.
    locations: []format.Location,

    /// What the window holds for each shard, before any codec.
    shard_bytes: [format.shards_max]u64 = undefined,

    mutex: Io.Mutex = .init,
    placed: Io.Condition = .init,
    /// Guarded by the mutex: the next free byte and the count of placed chunks, per shard.
    tails: [format.shards_max]u64,
    committed: [format.shards_max]u32 = @splat(0),
    first: fault_module.First = .{},

    fn chunkTask(run: *Run, task: u32) void {
        if (run.first.isSet()) return;
        var fault: Fault = .{};
        run.writeChunk(run.chunks[task], &fault) catch |err| run.fail(err, &fault);
    }

    fn fail(run: *Run, err: Error, fault: *const Fault) void {
        const io = run.volume.io;
        run.first.set(io, err, fault);
        run.mutex.lockUncancelable(io);
        defer run.mutex.unlock(io);
        run.placed.broadcast(io); // Nobody may wait for a place that will never be taken.
    }

    fn writeChunk(run: *Run, chunk: plan.Chunk, fault: *Fault) Error!void {
        const volume = run.volume;
        const shard = volume.shardOf(volume.length + chunk.first);
        // The first chunk of a shard finds its tail at rest: only its own placing moves it.
        if (chunk.sequence == 0) volume.reserveData(shard, run.tails[shard], run.shard_bytes[shard]);
        const piece_count = chunk.count * @as(u64, if (run.spans.rests == null) 1 else 2);
        if (volume.codec == .raw and piece_count <= pieces_max) return run.writePieces(chunk, shard, fault);
        const lease = try volume.pool.take(fault);
        defer volume.pool.give(lease);
        const bytes = switch (volume.codec) {
            .raw => try run.pack(chunk, lease, fault),
            .zstd, .zstd_dict => try run.compress(chunk, lease, fault),
        };
        const place = try run.takePlace(shard, chunk.sequence, bytes.len, fault);
        for (0..chunk.count) |k| run.location(chunk, k).offset += place;
        try volume.writeData(shard, bytes, place, fault);
    }

    /// Few large records: written from where they lie, without a copy.
    fn writePieces(run: *Run, chunk: plan.Chunk, shard: u32, fault: *Fault) Error!void {
        var pieces: [pieces_max][]const u8 = undefined;
        var bytes: u64 = 0;
        var count: usize = 0;
        for (0..chunk.count) |k| {
            const index = run.recordIndex(chunk, k);
            for (run.spans.pieces(index)) |piece| {
                if (piece.len == 0) continue;
                pieces[count] = piece;
                count += 1;
            }
            bytes = run.placeRaw(chunk, k, bytes);
        }
        assert(bytes == chunk.bytes);
        const place = try run.takePlace(shard, chunk.sequence, bytes, fault);
        for (0..chunk.count) |k| run.location(chunk, k).offset += place;
        try run.volume.writeDataPieces(shard, pieces[0..count], place, fault);
    }

    /// Enters a raw record that lies at `at` of its chunk; where the next one does.
    fn placeRaw(run: *Run, chunk: plan.Chunk, k: usize, at: u64) u64 {
        const bytes = run.spans.size(run.recordIndex(chunk, k));
        run.location(chunk, k).* = .{ .offset = at, .phys_length = @intCast(bytes), .logic_length = @intCast(bytes) };
        return at + bytes;
    }

    fn recordIndex(run: *const Run, chunk: plan.Chunk, k: usize) u64 {
        return chunk.first + k * run.volume.shard_count;
    }

    fn location(run: *const Run, chunk: plan.Chunk, k: usize) *format.Location {
        return &run.locations[@intCast(run.recordIndex(chunk, k) - run.window.first)];
    }

    /// The chunk's records back to back; offsets in the locations are within the chunk. One record,
    /// or records that lie back to back already, are borrowed as they are.
    fn pack(run: *Run, chunk: plan.Chunk, lease: *Lease, fault: *Fault) Error![]const u8 {
        const borrowed = run.spans.rests == null and (chunk.count == 1 or run.volume.shard_count == 1);
        const target: []u8 = if (borrowed) &.{} else try lease.scratch(chunk.bytes, fault);
        var at: u64 = 0;
        for (0..chunk.count) |k| {
            if (!borrowed) {
                var to: usize = @intCast(at);
                for (run.spans.pieces(run.recordIndex(chunk, k))) |piece| {
                    @memcpy(target[to..][0..piece.len], piece);
                    to += piece.len;
                }
            }
            at = run.placeRaw(chunk, k, at);
        }
        assert(at == chunk.bytes);
        if (!borrowed) return target;
        const from = run.spans.start(chunk.first);
        return run.spans.bytes[from..][0..@intCast(chunk.bytes)];
    }

    fn compress(run: *Run, chunk: plan.Chunk, lease: *Lease, fault: *Fault) Error![]const u8 {
        const context = try lease.compressorFor(fault);
        try codec.configure(context, run.volume.dictionary(), fault);
        var bound: u64 = 0;
        for (0..chunk.count) |k| bound += zstd.compressBound(run.spans.record(run.recordIndex(chunk, k)).len);
        const target = try lease.scratch(bound, fault);
        var at: usize = 0;
        for (0..chunk.count) |k| {
            const source = run.spans.record(run.recordIndex(chunk, k));
            const bytes = try codec.encode(context, target[at..], source, fault);
            run.location(chunk, k).* = .{ .offset = at, .phys_length = bytes, .logic_length = @intCast(source.len) };
            at += bytes;
        }
        return target[0..at];
    }

    fn takePlace(run: *Run, shard: u32, sequence: u32, bytes: u64, fault: *Fault) Error!u64 {
        const io = run.volume.io;
        run.mutex.lockUncancelable(io);
        defer run.mutex.unlock(io);
        while (run.committed[shard] != sequence) {
            if (run.first.isSet()) return run.first.failure; // Not reported: the first failure was.
            run.placed.waitUncancelable(io, &run.mutex);
        }
        const place = run.tails[shard];
        const end = std.math.add(u64, place, bytes) catch format.file_offset_max + 1;
        if (end > format.file_offset_max) {
            return fault.fail(error.TooLarge, .{ .data = shard }, "data_{d}.zr would pass any file offset", .{shard});
        }
        run.tails[shard] = end;
        run.committed[shard] += 1;
        run.placed.broadcast(io);
        return place;
    }
};
