//! Runs a gather: any ids, in the order asked for, duplicates allowed, into the caller's memory.
//!
//! A lane takes a block of the request, looks up the locations of its ids, checks each against its
//! shard's frontier, and copies or decodes every record straight to its place. Ragged records are
//! first measured by their locations, so that one target of the exact size exists before any payload
//! is touched.
//!
//! Two sources of bytes. From the map (map.zig), where there is one: no system call per record, the
//! next records prefetched while one is copied. Else by positional reads, one for a run of consecutive
//! locations and one or two for a record. A batch from the map that turns out not to have been the
//! files' bytes is done again by reads, which find the same damage and name it.
//!
//! Where the container's words are attached (checksum.zig), each record is held against its own before
//! its bytes count: while they are copied, or before they are decoded.
//!
//! The volume may be a set (volume.zig): then every id is looked for among its parts, and each record is
//! read as its own part has it.
//!
//! A gather fails as a whole. Of several failures the one lowest in the request is reported, so that
//! the same damage gives the same error whatever the lanes did.

const std = @import("std");
const assert = std.debug.assert;
const Io = std.Io;
const format = @import("format.zig");
const plan = @import("plan.zig");
const codec = @import("codec.zig");
const copy = @import("copy.zig");
const checksum = @import("checksum.zig");
const map_module = @import("map.zig");
const Lease = @import("scratch.zig").Lease;
const volume_module = @import("volume.zig");
const Volume = volume_module.Volume;
const Home = volume_module.Home;
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

pub const Cancel = ?*const u32;

pub const RaggedGeometry = format.RaggedGeometry;

/// Memory for `bytes` >= 1; null: none to be had. Called on the caller's thread.
pub const Alloc = struct {
    context: ?*anyopaque,
    call: *const fn (context: ?*anyopaque, bytes: u64) callconv(.c) ?[*]u8,
};

// The numbers below were measured on two cores; docs/performance.md has them.

/// Waking a parked lane costs 11 .. 18 µs: below these sizes the caller is faster alone.
const raw_fan_out_bytes_min = 512 << 10;
const zstd_fan_out_bytes_min = 32 << 10;
const read_fan_out_ids_min = 64;
/// Streaming stores pay for large records in large batches only.
const stream_record_bytes_min = 32 << 10;
const stream_batch_bytes_min = 2 << 20;
/// How far ahead locations are prefetched.
const location_ahead = 32;
/// How far ahead records are: so many that about this much is on its way, as memory that is not in a cache
/// answers after some 100 ns, the time of several small copies.
const ahead_bytes = 8 << 10;
const record_ahead_min = 4;
const record_ahead_max = 16;
/// After a lane waited for the disk, this many batches ask for their pages before copying.
const advised_batches_after_fault = volume_module.advised_batches_first;
/// A batch of fewer records is not asked whether it waited for the disk.
const fault_watch_ids_min = 8;
/// Locations are read in batches of at most this many.
const location_batch = 256;
/// Raw ragged records above this are read straight to their place, below it with one read into scratch.
const direct_bytes_min = 64 << 10;
/// Compressed ragged records above this decode in place, below it through scratch.
const in_place_bytes_min = 128 << 10;

// ---- fixed records ----

/// Record ids[i] to target[i * record_bytes ...]; the caller sized the target.
pub fn fixed(volume: *Volume, ids: []const u64, record_bytes: u64, target: []u8, cancel: Cancel, fault: *Fault) Error!void {
    assert(record_bytes >= 1);
    assert(target.len == ids.len * record_bytes);
    var cut = false;
    if (volume.mapsForBatch()) {
        const result = fixedFrom(volume, true, ids, record_bytes, target, cancel, &cut, fault);
        if (!cut and volume.mapsHeld()) {
            // What fails is done again, since nobody asked whether the tables are whole.
            if (result) |_| return else |_| {}
        }
    }
    return fixedFrom(volume, false, ids, record_bytes, target, cancel, &cut, fault);
}

fn fixedFrom(volume: *Volume, mapped: bool, ids: []const u64, record_bytes: u64, target: []u8, cancel: Cancel, cut: *bool, fault: *Fault) Error!void {
    var run: Fixed = .{
        .outcome = .{ .io = volume.io, .cancel = cancel },
        .volume = volume,
        .mapped = mapped,
        .advised = takeAdvice(volume, mapped),
        .stream = streams(record_bytes, target),
        .ids = ids,
        .record_bytes = record_bytes,
        .target = target,
        .block_count = blockCount(volume, mapped, ids.len, target.len),
    };
    volume.executor.fanOut(Fixed, &run, run.block_count, std.math.maxInt(u32), Fixed.block);
    cut.* = run.outcome.cut.load(.monotonic);
    return run.outcome.result(fault);
}

/// Pages that the system clears at their first touch are in the cache then: streaming stores would drive
/// them out again, a plain copy finds them there.
fn streams(record_bytes: u64, target: []const u8) bool {
    if (record_bytes < stream_record_bytes_min or target.len < stream_batch_bytes_min) return false;
    return !map_module.isUntouched(target);
}

const Fixed = struct {
    outcome: Outcome,
    volume: *Volume,
    mapped: bool,
    advised: bool,
    stream: bool,
    ids: []const u64,
    record_bytes: u64,
    target: []u8,
    block_count: u32,

    fn block(run: *Fixed, task: u32) void {
        var at = plan.blockStart(run.ids.len, run.block_count, task);
        const end = plan.blockStart(run.ids.len, run.block_count, task + 1);
        var fault: Fault = .{};
        const result = if (run.mapped) run.fromMap(&at, end, &fault) else run.byReads(&at, end, &fault);
        result catch |err| run.outcome.fail(at, err, &fault);
    }

    fn fromMap(run: *Fixed, at: *u64, end: u64, fault: *Fault) Error!void {
        const volume = run.volume;
        const lease: ?*Lease = if (volume.codec == .raw) null else try volume.pool.take(fault);
        defer if (lease) |taken| volume.pool.give(taken);
        defer if (run.stream) copy.fence();
        const ids = run.ids[0..@intCast(end)];
        if (run.advised) advise(volume, ids[@intCast(at.*)..]);
        const watch: Watch = .begin(volume, end - at.*);
        defer watch.end(volume);
        var suspects: Suspects = .init(volume);
        defer suspects.ask(&run.outcome);
        var k: usize = @intCast(at.*);
        var ahead: Ahead = .{ .volume = volume, .ids = ids, .records = recordAhead(volume) };
        ahead.begin(k);
        const look_at = k + fault_watch_ids_min;
        while (k < ids.len) : (k += 1) {
            at.* = k;
            if (k == look_at and !run.advised and watch.waited()) advise(volume, ids[k..]);
            try run.outcome.proceed(k, fault);
            ahead.step(k);
            if (ids[k] >= volume.length) return outOfRange(volume, ids[k], fault);
            const home = ahead.home(k);
            fault.part = memberOf(volume, home);
            const owner = home.volume;
            const id = home.record;
            const map = &owner.map.?;
            const location = Volume.mappedLocation(map, id);
            const shard = owner.shardOf(id);
            try run.check(owner, location, id, shard, fault);
            const source = (map.dataBytes(shard) + @as(usize, @intCast(location.offset)))[0..location.phys_length];
            const target = run.target[k * run.record_bytes ..][0..@intCast(run.record_bytes)];
            if (owner.codec != .raw) {
                try owner.vouchFor(id, location, source, fault);
                try codec.decode(try lease.?.decompressorFor(fault), owner.dictionary(), target, source, id, shard, fault);
            } else if (owner.words != null) {
                try owner.vouch(id, checksum.copied(location, target, source, run.stream), fault);
            } else if (run.stream) {
                copy.stream(target, source);
            } else {
                copy.plain(target, source);
            }
            suspects.look(home, location, shard, source);
        }
    }

    fn byReads(run: *Fixed, at: *u64, end: u64, fault: *Fault) Error!void {
        const volume = run.volume;
        const lease = try volume.pool.take(fault);
        defer volume.pool.give(lease);
        while (at.* < end) {
            var locations: [location_batch]format.Location = undefined;
            const ids = run.ids[@intCast(at.*)..@intCast(@min(end, at.* + location_batch))];
            try readLocations(volume, ids, locations[0..ids.len], fault);
            for (ids, locations[0..ids.len]) |wanted, location| {
                try run.outcome.proceed(at.*, fault);
                const home = try homeOf(volume, wanted, fault);
                const owner = home.volume;
                const id = home.record;
                const shard = owner.shardOf(id);
                try run.check(owner, location, id, shard, fault);
                const target = run.target[@intCast(at.* * run.record_bytes)..][0..@intCast(run.record_bytes)];
                if (owner.codec == .raw) {
                    try owner.readData(shard, target, location.offset, id, fault);
                    try owner.vouchFor(id, location, target, fault);
                } else {
                    const stored = try lease.scratch(location.phys_length, fault);
                    try owner.readData(shard, stored, location.offset, id, fault);
                    try owner.vouchFor(id, location, stored, fault);
                    try codec.decode(try lease.decompressorFor(fault), owner.dictionary(), target, stored, id, shard, fault);
                }
                at.* += 1;
            }
        }
    }

    fn check(run: *const Fixed, owner: *const Volume, location: format.Location, id: u64, shard: u32, fault: *Fault) Error!void {
        try format.checkLocation(location, id, shard, owner.tails[shard], owner.codec, fault);
        try format.checkFixed(location, run.record_bytes, id, fault);
    }
};

// ---- ragged records ----

/// Packs the items of ids[i] at payload + offsets[i]; its dimensions go to dims[i * ndim ...].
/// `offsets` has ids.len + 1 entries, `dims` ids.len * ndim. What `alloc` gives may be asked to hold a
/// little more than the items; the items begin at its first byte.
pub fn ragged(
    volume: *Volume,
    ids: []const u64,
    geometry: RaggedGeometry,
    payload_bytes_max: u64,
    alloc: Alloc,
    offsets: []u64,
    dims: []u64,
    cancel: Cancel,
    fault: *Fault,
) Error!void {
    assert(offsets.len == ids.len + 1);
    assert(dims.len == ids.len * geometry.ndim);
    offsets[0] = 0;
    if (ids.len == 0) return;
    const locations = volume.gpa.alloc(format.Location, ids.len) catch return fault.outOfMemory("locations", ids.len * format.location_bytes);
    defer volume.gpa.free(locations);
    const homes: []Home = if (volume.table == null) &.{} else volume.gpa.alloc(Home, ids.len) catch return fault.outOfMemory("locations", ids.len * @sizeOf(Home));
    defer volume.gpa.free(homes);
    var run: Ragged = .{
        .outcome = .{ .io = volume.io, .cancel = cancel },
        .volume = volume,
        .ids = ids,
        .locations = locations,
        .homes = homes,
        .geometry = geometry,
        .payload_bytes_max = payload_bytes_max,
        .offsets = offsets,
        .dims = dims,
        .alloc = alloc,
    };
    if (volume.mapsForBatch()) {
        run.mapped = true;
        const result = run.whole(fault);
        if (!run.outcome.cut.load(.monotonic) and volume.mapsHeld()) {
            if (result) |_| return else |_| {}
        }
        run.mapped = false;
        run.outcome = .{ .io = volume.io, .cancel = cancel };
    }
    return run.whole(fault);
}

const Ragged = struct {
    outcome: Outcome,
    volume: *Volume,
    mapped: bool = false,
    advised: bool = false,
    stream: bool = false,
    ids: []const u64,
    locations: []format.Location,
    /// Of a set; else empty. Filled with the locations.
    homes: []Home,
    geometry: RaggedGeometry,
    payload_bytes_max: u64,
    offsets: []u64,
    dims: []u64,
    alloc: Alloc,
    target: ?[*]u8 = null,
    target_bytes: u64 = 0,
    block_count: u32 = 1,
    phase: Phase = .rest,

    /// A compressed record decodes with its dimensions in front of its items, but only the items have
    /// a place in the target. Small ones go through scratch. Large ones decode in place, their
    /// dimensions onto the end of the record before. So that nobody needs that end meanwhile, large
    /// records of even position go first (their neighbours, of odd position, are not yet there),
    /// then those of odd position (which save and restore what is now the end of a finished
    /// neighbour), then all others. A neighbour smaller than the dimensions would be reached across:
    /// beside such a one a large record goes through scratch too.
    const Phase = enum { large_even, large_odd, rest };

    fn whole(run: *Ragged, fault: *Fault) Error!void {
        const volume = run.volume;
        try measure(volume, run.mapped, run.ids, run.locations, run.homes, run.outcome.cancel, fault);
        const any_in_place = try run.layOut(fault);
        const total = run.offsets[run.ids.len];
        run.advised = takeAdvice(volume, run.mapped);
        run.stream = streams(total / run.ids.len, run.target.?[0..@intCast(run.target_bytes)]);
        run.block_count = blockCount(volume, run.mapped, run.ids.len, total);
        if (any_in_place) {
            run.phase = .large_even;
            volume.executor.fanOut(Ragged, run, run.block_count, std.math.maxInt(u32), block);
            run.phase = .large_odd;
            volume.executor.fanOut(Ragged, run, run.block_count, std.math.maxInt(u32), block);
        }
        run.phase = .rest;
        volume.executor.fanOut(Ragged, run, run.block_count, std.math.maxInt(u32), block);
        return run.outcome.result(fault);
    }

    /// Offsets from the locations, and the target. True: there are records that decode in place.
    fn layOut(run: *Ragged, fault: *Fault) Error!bool {
        for (run.locations, 0..) |location, i| {
            const home = run.homeAt(i);
            fault.part = memberOf(run.volume, home);
            const payload_bytes = try run.geometryOf(home).payloadBytes(location.logic_length, home.record, fault);
            run.offsets[i + 1] = run.offsets[i] + payload_bytes; // Below 2^31 each; a request has far fewer than 2^33 ids.
            if (run.offsets[i + 1] > run.payload_bytes_max) {
                return fault.fail(error.TooLarge, .none, "the records asked for hold more than {d} bytes", .{run.payload_bytes_max});
            }
        }
        const total = run.offsets[run.ids.len];
        // The first record has nothing before it: it decodes with its items too far right, and they move.
        const wanted = if (run.inPlace(0)) total + run.geometryOf(run.homeAt(0)).headerBytes() else total;
        if (run.target == null) {
            run.target = run.alloc.call(run.alloc.context, wanted) orelse return fault.outOfMemory("the gathered records", wanted);
            run.target_bytes = wanted;
        } else if (wanted != run.target_bytes) {
            // A second pass, by reads, over a table that changed after the first.
            return fault.fail(error.Malformed, .meta, "the location table changed while it was read", .{});
        }
        for (0..run.ids.len) |i| if (run.inPlace(i)) return true;
        return false;
    }

    /// Wants an id that was measured.
    fn homeAt(run: *const Ragged, index: usize) Home {
        return if (run.homes.len > 0) run.homes[index] else run.volume.home(run.ids[index]);
    }

    /// The parts of a set may be of two dialects, which differ in the bytes of a dimension.
    fn geometryOf(run: *const Ragged, home: Home) RaggedGeometry {
        var geometry = run.geometry;
        if (run.volume.table) |table| geometry.dim_bytes = table.parts[home.part].dim_bytes;
        return geometry;
    }

    /// Wants the offsets laid out.
    fn inPlace(run: *const Ragged, index: usize) bool {
        if (run.volume.codec == .raw or run.locations[index].logic_length <= in_place_bytes_min) return false;
        if (run.volume.table != null and run.homeAt(index).volume.codec == .raw) return false;
        // Of the wider dialect, whatever a neighbour's is.
        const header_bytes = if (run.volume.table == null) run.geometry.headerBytes() else run.geometry.ndim * @sizeOf(u64);
        if (index > 0) return run.offsets[index] - run.offsets[index - 1] >= header_bytes;
        // The first lies over the beginning of the second, on whose end the third's dimensions may lie.
        return run.ids.len == 1 or run.offsets[2] - run.offsets[1] >= 2 * header_bytes;
    }

    fn inPhase(run: *const Ragged, index: usize) bool {
        if (!run.inPlace(index)) return run.phase == .rest;
        return run.phase == if (index % 2 == 0) Phase.large_even else Phase.large_odd;
    }

    /// Blocks are dealt by bytes: the first record whose offset reaches the block's share.
    fn blockStart(run: *const Ragged, index: u32) usize {
        if (index == run.block_count) return run.ids.len;
        const share = plan.blockStart(run.offsets[run.ids.len], run.block_count, index);
        const Compare = struct {
            fn order(wanted: u64, offset: u64) std.math.Order {
                return std.math.order(wanted, offset);
            }
        };
        return std.sort.lowerBound(u64, run.offsets[0..run.ids.len], share, Compare.order);
    }

    fn block(run: *Ragged, task: u32) void {
        var at = run.blockStart(task);
        const end = run.blockStart(task + 1);
        if (at >= end) return;
        var fault: Fault = .{};
        run.records(&at, end, &fault) catch |err| run.outcome.fail(at, err, &fault);
    }

    fn records(run: *Ragged, at: *usize, end: usize, fault: *Fault) Error!void {
        const volume = run.volume;
        const lease: ?*Lease = if (run.mapped and volume.codec == .raw) null else try volume.pool.take(fault);
        defer if (lease) |taken| volume.pool.give(taken);
        defer if (run.stream) copy.fence();
        const watch: Watch = .begin(volume, if (run.mapped) end - at.* else 0);
        defer watch.end(volume);
        var suspects: Suspects = .init(volume);
        defer if (run.mapped) suspects.ask(&run.outcome);
        const record_ahead = recordAhead(volume);
        if (run.mapped) {
            if (run.advised) run.adviseBlock(at.*, end);
            for (at.*..@min(end, at.* + record_ahead)) |index| run.prefetchRecord(index);
        }
        const look_at = at.* + fault_watch_ids_min;
        while (at.* < end) : (at.* += 1) {
            const index = at.*;
            if (index == look_at and !run.advised and watch.waited()) run.adviseBlock(index, end);
            if (run.mapped and index + record_ahead < end) run.prefetchRecord(index + record_ahead);
            if (!run.inPhase(index)) continue;
            try run.outcome.proceed(index, fault);
            const home = run.homeAt(index);
            fault.part = memberOf(run.volume, home);
            if (home.volume.codec == .raw) try run.raw(home, index, lease, fault) else try run.compressed(home, index, lease.?, fault);
            if (run.mapped) suspects.look(home, run.locations[index], home.volume.shardOf(home.record), run.stored(home, index));
        }
    }

    fn stored(run: *const Ragged, home: Home, index: usize) []const u8 {
        const location = run.locations[index];
        const map = &home.volume.map.?;
        const shard = home.volume.shardOf(home.record);
        return (map.dataBytes(shard) + @as(usize, @intCast(location.offset)))[0..location.phys_length];
    }

    fn prefetchRecord(run: *const Ragged, index: usize) void {
        const home = run.homeAt(index);
        const bytes = run.stored(home, index);
        copy.prefetch(bytes.ptr, bytes.len);
        home.volume.prefetchWord(home.record);
    }

    fn adviseBlock(run: *const Ragged, from: usize, end: usize) void {
        for (from..end) |index| {
            const home = run.homeAt(index);
            const bytes = run.stored(home, index);
            home.volume.map.?.willNeed(bytes.ptr, bytes.len);
        }
    }

    fn itemsOf(run: *const Ragged, index: usize) []u8 {
        return run.target.?[run.offsets[index]..run.offsets[index + 1]];
    }

    fn raw(run: *Ragged, home: Home, index: usize, lease: ?*Lease, fault: *Fault) Error!void {
        const volume = home.volume;
        const id = home.record;
        const location = run.locations[index];
        const target = run.itemsOf(index);
        const header_bytes = run.geometryOf(home).headerBytes();
        if (run.mapped) {
            const source = run.stored(home, index);
            try run.dimensions(home, index, source[0..header_bytes], fault);
            if (volume.words != null) {
                var running: checksum.Running = .init(location);
                running.update(source[0..header_bytes]);
                running.copyFrom(target, source[header_bytes..], run.stream);
                try volume.vouch(id, running.final(), fault);
            } else if (run.stream) copy.stream(target, source[header_bytes..]) else copy.plain(target, source[header_bytes..]);
        } else if (target.len > direct_bytes_min) {
            var header: [format.ndim_max * 8]u8 = undefined;
            const shard = volume.shardOf(id);
            try volume.readData(shard, header[0..header_bytes], location.offset, id, fault);
            try run.dimensions(home, index, header[0..header_bytes], fault);
            try volume.readData(shard, target, location.offset + header_bytes, id, fault);
            if (volume.words != null) {
                var running: checksum.Running = .init(location);
                running.update(header[0..header_bytes]);
                running.update(target);
                try volume.vouch(id, running.final(), fault);
            }
        } else {
            const record = try lease.?.scratch(location.phys_length, fault);
            try volume.readData(volume.shardOf(id), record, location.offset, id, fault);
            try volume.vouchFor(id, location, record, fault);
            try run.dimensions(home, index, record[0..header_bytes], fault);
            copy.plain(target, record[header_bytes..]);
        }
    }

    fn compressed(run: *Ragged, home: Home, index: usize, lease: *Lease, fault: *Fault) Error!void {
        const volume = home.volume;
        const id = home.record;
        const shard = volume.shardOf(id);
        const location = run.locations[index];
        const target = run.itemsOf(index);
        const header_bytes = run.geometryOf(home).headerBytes();
        const in_place = run.inPlace(index);
        // Scratch: the decoded record unless it decodes in place, then the frame unless it is mapped.
        const decoded_bytes: u64 = if (in_place) 0 else location.logic_length;
        const frame_bytes: u64 = if (run.mapped) 0 else location.phys_length;
        const scratch = try lease.scratch(decoded_bytes + frame_bytes, fault);
        const frame = if (run.mapped) run.stored(home, index) else blk: {
            const bytes = scratch[@intCast(decoded_bytes)..];
            try volume.readData(shard, bytes, location.offset, id, fault);
            break :blk bytes;
        };
        try volume.vouchFor(id, location, frame, fault);
        const context = try lease.decompressorFor(fault);
        if (!in_place) {
            const record = scratch[0..@intCast(decoded_bytes)];
            try codec.decode(context, volume.dictionary(), record, frame, id, shard, fault);
            try run.dimensions(home, index, record[0..header_bytes], fault);
            copy.plain(target, record[header_bytes..]);
        } else if (index == 0) {
            const record = target.ptr[0..location.logic_length];
            try codec.decode(context, volume.dictionary(), record, frame, id, shard, fault);
            try run.dimensions(home, index, record[0..header_bytes], fault);
            @memmove(target, record[header_bytes..]);
        } else {
            const record = (target.ptr - header_bytes)[0..location.logic_length];
            var neighbour: [format.ndim_max * 8]u8 = undefined;
            @memcpy(neighbour[0..header_bytes], record[0..header_bytes]);
            try codec.decode(context, volume.dictionary(), record, frame, id, shard, fault);
            try run.dimensions(home, index, record[0..header_bytes], fault);
            if (run.phase == .large_odd) @memcpy(record[0..header_bytes], neighbour[0..header_bytes]);
        }
    }

    fn dimensions(run: *Ragged, home: Home, index: usize, header: []const u8, fault: *Fault) Error!void {
        const ndim = run.geometry.ndim;
        const id = home.record;
        const payload_bytes = run.offsets[index + 1] - run.offsets[index];
        try run.geometryOf(home).dimensions(header, payload_bytes, run.dims[index * ndim ..][0..ndim], id, home.volume.shardOf(id), fault);
    }
};

// ---- sizes only ----

/// Each record's size after decoding, from the checked locations alone.
pub fn logicalBytes(volume: *Volume, ids: []const u64, bytes_out: []u64, cancel: Cancel, fault: *Fault) Error!void {
    assert(bytes_out.len == ids.len);
    var done: usize = 0;
    while (done < ids.len) {
        var locations: [location_batch]format.Location = undefined;
        const part = ids[done..@min(ids.len, done + location_batch)];
        try measure(volume, false, part, locations[0..part.len], &.{}, cancel, fault);
        for (part, locations[0..part.len], bytes_out[done..][0..part.len]) |id, location, *bytes| {
            const extra = if (volume.table) |table| table.parts[volume.home(id).part].extra_bytes else 0;
            bytes.* = @intCast(@max(0, @as(i64, location.logic_length) + extra));
        }
        done += part.len;
    }
}

// ---- locations ----

/// Locations of `ids`, checked. `homes`: what becomes their homes too; or empty.
fn measure(volume: *Volume, mapped: bool, ids: []const u64, locations: []format.Location, homes: []Home, cancel: Cancel, fault: *Fault) Error!void {
    var run: Measure = .{
        .outcome = .{ .io = volume.io, .cancel = cancel },
        .volume = volume,
        .mapped = mapped,
        .ids = ids,
        .locations = locations,
        .homes = homes,
        // From the map an entry costs some nanoseconds; only very many are worth a second lane.
        .block_count = if (!mapped or ids.len >= 1 << 16) blockCount(volume, false, ids.len, 0) else 1,
    };
    volume.executor.fanOut(Measure, &run, run.block_count, std.math.maxInt(u32), Measure.block);
    return run.outcome.result(fault);
}

const Measure = struct {
    outcome: Outcome,
    volume: *Volume,
    mapped: bool,
    ids: []const u64,
    locations: []format.Location,
    homes: []Home,
    block_count: u32,

    fn block(run: *Measure, task: u32) void {
        var at = plan.blockStart(run.ids.len, run.block_count, task);
        const end = plan.blockStart(run.ids.len, run.block_count, task + 1);
        var fault: Fault = .{};
        run.check(&at, end, &fault) catch |err| run.outcome.fail(at, err, &fault);
    }

    fn check(run: *Measure, at: *u64, end: u64, fault: *Fault) Error!void {
        const volume = run.volume;
        while (at.* < end) {
            const stop = @min(end, at.* + location_batch);
            const ids = run.ids[@intCast(at.*)..@intCast(stop)];
            const locations = run.locations[@intCast(at.*)..@intCast(stop)];
            try run.outcome.proceed(at.*, fault);
            if (run.mapped) {
                var ahead: Ahead = .{ .volume = volume, .ids = ids, .records = 0 };
                ahead.begin(0);
                for (ids, locations, 0..) |id, *location, i| {
                    ahead.step(i);
                    if (id >= volume.length) return outOfRange(volume, id, fault);
                    const home = ahead.home(i);
                    location.* = Volume.mappedLocation(&home.volume.map.?, home.record);
                }
            } else {
                try readLocations(volume, ids, locations, fault);
            }
            for (ids, locations) |id, location| {
                const home = try homeOf(volume, id, fault);
                if (run.homes.len > 0) run.homes[@intCast(at.*)] = home;
                const owner = home.volume;
                const shard = owner.shardOf(home.record);
                try format.checkLocation(location, home.record, shard, owner.tails[shard], owner.codec, fault);
                at.* += 1;
            }
        }
    }
};

/// Locations as stored, one read for each run of consecutive ids.
fn readLocations(volume: *Volume, ids: []const u64, locations: []format.Location, fault: *Fault) Error!void {
    assert(ids.len == locations.len);
    var at: usize = 0;
    while (at < ids.len) {
        const home = try homeOf(volume, ids[at], fault);
        const owner = home.volume;
        // A run past the end of all records is seen here, one past the end of a part begins anew.
        const left = owner.length - home.record;
        var run: usize = 1;
        while (run < left and at + run < ids.len and ids[at + run] == ids[at] + run) run += 1;
        try owner.readMeta(std.mem.sliceAsBytes(locations[at..][0..run]), format.locationOffset(home.record), fault);
        at += run;
    }
}

/// Where a record is. From here on, what goes wrong is told of its part.
fn homeOf(volume: *Volume, id: u64, fault: *Fault) Error!Home {
    if (id >= volume.length) return outOfRange(volume, id, fault);
    const home = volume.home(id);
    fault.part = memberOf(volume, home);
    return home;
}

fn memberOf(volume: *const Volume, home: Home) ?u32 {
    const table = volume.table orelse return null;
    return table.parts[home.part].member;
}

fn outOfRange(volume: *const Volume, id: u64, fault: *Fault) Error {
    fault.part = null;
    return fault.failRecord(error.OutOfRange, .none, id, "record id {d} is not below the record count {d}", .{ id, volume.length });
}

// ---- the map: prefetch and advice. A prefetch of a nonsense address does nothing. ----

/// What lies before the record that is being copied: entries of the table and records on their way into
/// the cache, and of a set the records' homes, which are looked up once each.
const Ahead = struct {
    volume: *Volume,
    ids: []const u64,
    /// How many records; 0: entries alone.
    records: usize,
    ring: [2 * location_ahead]Home = undefined,

    fn begin(ahead: *Ahead, from: usize) void {
        for (from..@min(ahead.ids.len, from + location_ahead)) |k| ahead.location(k);
        for (from..@min(ahead.ids.len, from + ahead.records)) |k| ahead.record(k);
    }

    /// Wants a call for each k in turn.
    fn step(ahead: *Ahead, k: usize) void {
        if (k + location_ahead < ahead.ids.len) ahead.location(k + location_ahead);
        if (ahead.records > 0 and k + ahead.records < ahead.ids.len) ahead.record(k + ahead.records);
    }

    /// Of an id below the length, from k on as far as is looked ahead.
    fn home(ahead: *const Ahead, k: usize) Home {
        if (ahead.volume.table != null) return ahead.ring[k % ahead.ring.len];
        return .{ .volume = ahead.volume, .record = ahead.ids[k], .part = volume_module.no_part };
    }

    fn location(ahead: *Ahead, k: usize) void {
        const id = ahead.ids[k];
        if (id >= ahead.volume.length) return;
        const there = ahead.volume.home(id);
        if (ahead.volume.table != null) ahead.ring[k % ahead.ring.len] = there;
        @prefetch(there.volume.map.?.metaBytes() + @as(usize, @intCast(format.locationOffset(there.record))), .{});
        there.volume.prefetchWord(there.record);
    }

    fn record(ahead: *const Ahead, k: usize) void {
        if (ahead.ids[k] >= ahead.volume.length) return;
        const there = ahead.home(k);
        const map = &there.volume.map.?;
        const entry = Volume.mappedLocation(map, there.record);
        const address = @intFromPtr(map.dataBytes(there.volume.shardOf(there.record))) +% @as(usize, @truncate(entry.offset));
        // Unchecked as yet, so as a number: a prefetch cannot fault.
        if (address != 0) copy.prefetch(@ptrFromInt(address), entry.phys_length);
    }
};

/// Shards that could have deceived a lane, which asks for them after it has copied. Asking all that it came to
/// would cost more than copying, with few records or many parts.
///
/// A file that was cut inside a page reads as zeros to the end of that page, without a signal; pages behind
/// it raise one. So a record is what it was unless its last byte is zero. If it is, the shard's last page is
/// touched: that raises the signal where the cut lies before it. Only of a record that lies in that very
/// page the shard's size has to be asked.
///
/// A cut location table deceives nobody: an entry that lost bytes other than zeros is none that a record could be
/// read by, so the gather fails, and is done again by reads. Of a container by itself its size is asked all the same
/// where an entry of its last page was used, so that the loss of zeros is told too; of a set, whose tables may be
/// many and small, it is not.
const Suspects = struct {
    volume: *const Volume,
    /// By the numbers that shards have; of a set, those that its parts have for them. Only words below `word_count`
    /// are defined.
    touched: [words_max]Word = undefined,
    asked: [words_max]Word = undefined,
    word_count: u32,
    any: bool = false,
    /// An entry of the table's last page was used.
    entry: bool = false,
    cut: bool = false,

    const Word = u64;
    const Bit = std.math.Log2Int(Word);
    /// Shards behind are asked for at each record.
    const told_apart_max = 8192;
    const words_max = told_apart_max / @bitSizeOf(Word);

    fn init(volume: *const Volume) Suspects {
        const shard_count = if (volume.table) |table| shards: {
            const last = table.parts[table.parts.len - 1];
            break :shards last.shard_base +| last.owner.shard_count;
        } else volume.shard_count;
        const word_count = std.math.divCeil(u32, @min(shard_count, told_apart_max), @bitSizeOf(Word)) catch unreachable;
        var suspects: Suspects = .{ .volume = volume, .word_count = word_count };
        @memset(suspects.touched[0..word_count], 0);
        @memset(suspects.asked[0..word_count], 0);
        return suspects;
    }

    /// Wants a call after the record was copied or decoded. `stored`: its bytes in the map.
    fn look(suspects: *Suspects, home: Home, location: format.Location, shard: u32, stored: []const u8) void {
        if (suspects.volume.table == null and home.volume.isEntryAtEnd(home.record)) suspects.entry = true;
        // As it is now: a cut since then shows itself here.
        const last: *const volatile u8 = &stored[stored.len - 1];
        if (last.* != 0) return;
        const number = if (suspects.volume.table) |table| table.parts[home.part].shard_base +| shard else shard;
        if (number >= told_apart_max) {
            suspects.cut = suspects.cut or !home.volume.isShardWhole(shard);
            return;
        }
        suspects.any = true;
        const bits = if (home.volume.isAtEnd(location, shard)) &suspects.asked else &suspects.touched;
        bits[number / @bitSizeOf(Word)] |= maskOf(number);
    }

    fn ask(suspects: *Suspects, outcome: *Outcome) void {
        if (suspects.any) {
            if (suspects.volume.table) |table| {
                for (table.parts) |part| suspects.askShards(part.owner, part.shard_base);
            } else {
                suspects.askShards(suspects.volume, 0);
            }
        }
        if (suspects.entry and !suspects.volume.isTableWhole()) suspects.cut = true;
        if (suspects.cut) outcome.cut.store(true, .monotonic);
    }

    fn askShards(suspects: *Suspects, owner: *const Volume, base: u32) void {
        for (0..owner.shard_count) |shard| {
            const number = base +| @as(u32, @intCast(shard));
            if (number >= told_apart_max) return;
            const word = number / @bitSizeOf(Word);
            if (suspects.touched[word] & maskOf(number) != 0) owner.touchShard(@intCast(shard));
            if (suspects.asked[word] & maskOf(number) != 0 and !owner.isShardWhole(@intCast(shard))) suspects.cut = true;
        }
    }

    fn maskOf(number: u32) Word {
        return @as(Word, 1) << @as(Bit, @truncate(number));
    }
};

/// By the average stored size, which is that of most records or of none; then it matters little.
fn recordAhead(volume: *const Volume) usize {
    const bytes = @max(1, volume.map_stored_bytes / @max(1, volume.length));
    return @intCast(std.math.clamp(ahead_bytes / bytes, record_ahead_min, record_ahead_max));
}

/// Asks for the pages of all records of a block at once: a deep queue for the disk instead of one
/// fault after the other.
fn advise(volume: *Volume, ids: []const u64) void {
    for (ids) |id| {
        if (id >= volume.length) return;
        const home = volume.home(id);
        const owner = home.volume;
        const map = &owner.map.?;
        const location = Volume.mappedLocation(map, home.record);
        const shard = owner.shardOf(home.record);
        const tail = owner.tails[shard];
        if (location.phys_length > tail or location.offset > tail - location.phys_length) continue;
        map.willNeed(map.dataBytes(shard) + @as(usize, @intCast(location.offset)), location.phys_length);
    }
}

/// Whether this batch asks for its pages; asking costs 0.65 µs a record on warm data, so only the first batches
/// do, and those after one that waited.
fn takeAdvice(volume: *Volume, mapped: bool) bool {
    if (!mapped) return false;
    const left = volume.advised_batches.load(.monotonic);
    if (left == 0) return false;
    const is_resident = if (volume.residence) |*residence| residence.isThought() else false;
    volume.advised_batches.store(if (is_resident) 0 else left - 1, .monotonic);
    if (is_resident) return false;
    return true;
}

/// Notices that a lane waited for the disk.
const Watch = struct {
    before: ?i64,

    fn begin(volume: *const Volume, id_count: u64) Watch {
        if (id_count < fault_watch_ids_min or volume.advised_batches.load(.monotonic) > 1) return .{ .before = null };
        return .{ .before = map_module.majorFaults() };
    }

    /// Whether it did so far. A fault reads around it as much as the disk's read-ahead, often some MiB: after the first
    /// few the rest is asked for, record by record.
    fn waited(watch: Watch) bool {
        const before = watch.before orelse return false;
        return map_module.majorFaults() > before;
    }

    fn end(watch: Watch, volume: *Volume) void {
        if (!watch.waited()) return;
        volume.advised_batches.store(advised_batches_after_fault, .monotonic);
        volume.disproveResidence();
    }
};

/// How many blocks a request is cut into. Large or uneven records are cut finer than there are lanes.
fn blockCount(volume: *const Volume, mapped: bool, id_count: u64, bytes: u64) u32 {
    const lanes = volume.executor.lanes();
    const worth_it = switch (volume.codec) {
        .raw => bytes >= raw_fan_out_bytes_min,
        .zstd, .zstd_dict => bytes >= zstd_fan_out_bytes_min,
    } or (!mapped and id_count >= read_fan_out_ids_min);
    if (lanes == 1 or id_count <= 1 or !worth_it) return 1;
    // A frame's time does not follow its size, and the last one alone is some per cent of a large batch.
    const is_large = bytes >= 4 << 20;
    const per_lane: u32 = if (volume.codec == .raw) (if (is_large) 8 else 1) else if (is_large) 32 else 4;
    return @intCast(@min(id_count, lanes * per_lane));
}

/// What came of a gather, shared by its lanes.
const Outcome = struct {
    io: Io,
    cancel: Cancel,
    mutex: Io.Mutex = .init,
    /// Lowest failed position in the request; lanes above it give up.
    failed_at: std.atomic.Value(u64) = .init(std.math.maxInt(u64)),
    failure: Error = error.Unexpected,
    fault: Fault = .{},
    /// A file was found to be shorter than at open.
    cut: std.atomic.Value(bool) = .init(false),

    /// Called before each record: an error when the gather was given up or cannot succeed any more.
    fn proceed(outcome: *Outcome, at: u64, fault: *Fault) Error!void {
        if (outcome.failed_at.load(.monotonic) < at) return fault.fail(error.Aborted, .none, "given up", .{});
        if (outcome.cancel) |word| {
            if (@atomicLoad(u32, word, .monotonic) != 0) return fault.fail(error.Aborted, .none, "aborted", .{});
        }
    }

    fn fail(outcome: *Outcome, at: u64, err: Error, fault: *const Fault) void {
        outcome.mutex.lockUncancelable(outcome.io);
        defer outcome.mutex.unlock(outcome.io);
        if (at >= outcome.failed_at.load(.monotonic)) return;
        outcome.failure = err;
        outcome.fault = fault.*;
        outcome.failed_at.store(at, .monotonic);
    }

    fn result(outcome: *const Outcome, fault: *Fault) Error!void {
        if (outcome.failed_at.load(.monotonic) == std.math.maxInt(u64)) return;
        fault.* = outcome.fault;
        return outcome.failure;
    }
};
