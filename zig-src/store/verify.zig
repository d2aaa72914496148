//! Looks at records without giving them to anybody, and never stops at the first fault.
//!
//!   records   each record as a gather would read it (location, size, stored bytes, frame, dimensions),
//!             and its word: held against the one that is given, or written for a new integrity.zr
//!   layout    all locations together: which records lie over others, and which bytes no record names
//!
//! Faults are data here. A call fails only when it was given up or has no memory to go on.
//!
//! Readers accept records that lie over one another, as the original does; nobody writes them, and a
//! small container can make a reader decode the same bytes for ever. So whoever looks at a whole
//! container asks for the layout first and then leaves out the records that lie over others.

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
const Volume = @import("volume.zig").Volume;
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;
const Map = map_module.Map;

pub const Cancel = ?*const u32;

pub const Found = struct {
    err: Error,
    fault: Fault,

    fn record(found: *const Found) u64 {
        return found.fault.record orelse 0;
    }
};

/// The faults with the lowest records, as many as there is room for, and how many there are.
pub const Faults = struct {
    io: Io,
    room: []Found,
    kept: usize = 0,
    count: u64 = 0,
    mutex: Io.Mutex = .init,

    pub fn list(faults: *const Faults) []const Found {
        return faults.room[0..faults.kept];
    }

    fn add(faults: *Faults, err: Error, fault: *const Fault) void {
        faults.mutex.lockUncancelable(faults.io);
        defer faults.mutex.unlock(faults.io);
        faults.count += 1;
        const found: Found = .{ .err = err, .fault = fault.* };
        var at = faults.kept;
        while (at > 0 and faults.room[at - 1].record() > found.record()) at -= 1;
        if (at == faults.room.len) return;
        if (faults.kept < faults.room.len) faults.kept += 1;
        @memmove(faults.room[at + 1 .. faults.kept], faults.room[at .. faults.kept - 1]);
        faults.room[at] = found;
    }

    fn clear(faults: *Faults) void {
        faults.kept = 0;
        faults.count = 0;
    }
};

// ---- records ----

pub const Geometry = union(enum) {
    /// Bytes of each record.
    fixed: u64,
    ragged: format.RaggedGeometry,
};

pub const Words = union(enum) {
    none,
    /// Of the blocks that hold the range, from the block of its first record on.
    expected: []const u64,
    made: []u64,
};

pub const Range = struct {
    first: u64,
    count: u64,
    geometry: Geometry,
    words: Words = .none,
    /// Bit i % 8 of byte i / 8: record `first` + i is left out.
    skip: ?[]const u8 = null,

    fn skips(range: *const Range, id: u64) bool {
        const bits = range.skip orelse return false;
        const at = id - range.first;
        return bits[@intCast(at / 8)] >> @intCast(at % 8) & 1 != 0;
    }

    /// Where a record's word is in `words`.
    fn wordIndex(range: *const Range, id: u64) usize {
        return @intCast(checksum.wordIndex(id) - checksum.tableIndex(range.first / checksum.block_records));
    }

    fn tableIndex(range: *const Range, block: u64) usize {
        return @intCast(checksum.tableIndex(block) - checksum.tableIndex(range.first / checksum.block_records));
    }
};

/// Words that a range wants: those of all blocks it touches, up to its last record's.
pub fn wordCount(first: u64, count: u64) u64 {
    if (count == 0) return 0;
    return checksum.wordIndex(first + count - 1) + 1 - checksum.tableIndex(first / checksum.block_records);
}

/// A block's table word is made with the block's first record.
pub fn records(volume: *Volume, range: Range, faults: *Faults, cancel: Cancel, fault: *Fault) Error!void {
    assert(range.first + range.count <= volume.length);
    if (range.skip) |bits| {
        assert(bits.len * 8 >= range.count);
        assert(range.words != .made);
    }
    switch (range.words) {
        .none => {},
        inline else => |words| assert(words.len >= wordCount(range.first, range.count)),
    }
    if (range.count == 0) return;
    if (volume.usableMap()) |map| {
        const result = pass(volume, map, range, faults, cancel, fault);
        if (volume.mapHeld(map)) return result;
        faults.clear();
    }
    return pass(volume, null, range, faults, cancel, fault);
}

/// Records of one task: enough to be worth the hand-over, few enough to share evenly.
const tasks_per_lane = 16;
/// A record's bytes are prefetched this far ahead, its location further.
const record_ahead = 4;
const location_ahead = 16;
/// Locations are read in batches of at most this many.
const location_batch = 256;

fn pass(volume: *Volume, map: ?*const Map, range: Range, faults: *Faults, cancel: Cancel, fault: *Fault) Error!void {
    var run: Run = .{
        .volume = volume,
        .map = map,
        .range = range,
        .faults = faults,
        .cancel = cancel,
        .task_count = @intCast(@min(range.count, volume.executor.lanes() * tasks_per_lane)),
    };
    volume.executor.fanOut(Run, &run, run.task_count, std.math.maxInt(u32), Run.task);
    if (run.failure) |failure| {
        fault.* = run.fault;
        return failure;
    }
}

const Run = struct {
    volume: *Volume,
    map: ?*const Map,
    range: Range,
    faults: *Faults,
    cancel: Cancel,
    task_count: u32,
    mutex: Io.Mutex = .init,
    gave_up: std.atomic.Value(bool) = .init(false),
    failure: ?Error = null,
    fault: Fault = .{},

    fn task(run: *Run, index: u32) void {
        const range = &run.range;
        const first = range.first + plan.blockStart(range.count, run.task_count, index);
        const end = range.first + plan.blockStart(range.count, run.task_count, index + 1);
        var fault: Fault = .{};
        run.part(first, end, &fault) catch |err| {
            run.mutex.lockUncancelable(run.volume.io);
            defer run.mutex.unlock(run.volume.io);
            if (run.failure == null) {
                run.failure = err;
                run.fault = fault;
            }
            run.gave_up.store(true, .monotonic);
        };
    }

    fn part(run: *Run, first: u64, end: u64, fault: *Fault) Error!void {
        const volume = run.volume;
        const lease = try volume.pool.take(fault);
        defer volume.pool.give(lease);
        var judged: Judged = .{};
        var at = first;
        while (at < end) {
            var locations: [location_batch]format.Location = undefined;
            const count: usize = @intCast(@min(end - at, location_batch));
            const batch = locations[0..count];
            if (run.map) |map| {
                for (batch, 0..) |*location, i| location.* = Volume.mappedLocation(map, at + i);
                for (0..@min(count, record_ahead)) |i| run.prefetch(map, at + i, batch[i]);
            } else {
                volume.readMeta(std.mem.sliceAsBytes(batch), format.locationOffset(at), fault) catch |err| {
                    // The table itself cannot be read: one fault for what it would have said.
                    fault.record = at;
                    if (isFatal(err)) return err;
                    run.faults.add(err, fault);
                    at += count;
                    continue;
                };
            }
            for (batch, 0..) |location, i| {
                if (run.map) |map| if (i + record_ahead < count) run.prefetch(map, at + i + record_ahead, batch[i + record_ahead]);
                const id = at + i;
                try run.proceed(fault);
                if (run.range.skips(id)) continue;
                run.record(id, location, lease, &judged, fault) catch |err| {
                    if (isFatal(err)) return err;
                    run.faults.add(err, fault);
                };
            }
            at += count;
        }
    }

    fn proceed(run: *const Run, fault: *Fault) Error!void {
        if (run.gave_up.load(.monotonic)) return fault.fail(error.Aborted, .none, "given up", .{});
        const word = run.cancel orelse return;
        if (@atomicLoad(u32, word, .monotonic) != 0) return fault.fail(error.Aborted, .none, "aborted", .{});
    }

    fn prefetch(run: *const Run, map: *const Map, id: u64, location: format.Location) void {
        const address = @intFromPtr(map.dataBytes(run.volume.shardOf(id))) +% @as(usize, @truncate(location.offset));
        // Unchecked as yet, so as a number: a prefetch cannot fault.
        if (address != 0) copy.prefetch(@ptrFromInt(address), location.phys_length);
    }

    /// Bytes of a record's items, by a location that is sound.
    fn measured(run: *const Run, id: u64, location: format.Location, fault: *Fault) Error!u64 {
        const volume = run.volume;
        const shard = volume.shardOf(id);
        try format.checkLocation(location, id, shard, volume.tails[shard], volume.codec, fault);
        switch (run.range.geometry) {
            .fixed => |record_bytes| {
                try format.checkFixed(location, record_bytes, id, fault);
                return record_bytes;
            },
            .ragged => |geometry| return geometry.payloadBytes(location.logic_length, id, fault),
        }
    }

    fn record(run: *Run, id: u64, location: format.Location, lease: *Lease, judged: *Judged, fault: *Fault) Error!void {
        const volume = run.volume;
        const range = &run.range;
        const shard = volume.shardOf(id);
        if (range.words == .made and id % checksum.block_records == 0) {
            const block = id / checksum.block_records;
            range.words.made[range.tableIndex(block)] = try volume.tableWord(block, fault);
        }
        const payload_bytes = run.measured(id, location, fault) catch |err| {
            // Where the table is not what it was, that says more than what its nonsense comes to.
            if (range.words != .expected) return err;
            const block = id / checksum.block_records;
            var other: Fault = .{};
            const changed = judged.changed(volume, block, range.words.expected[range.tableIndex(block)], &other) catch return err;
            return if (changed) volume.notVouched(id, true, fault) else err;
        };

        // Scratch: the decoded record, then the stored bytes unless they are mapped.
        const decoded_bytes: u64 = if (volume.codec == .raw) 0 else location.logic_length;
        const stored_bytes: u64 = if (run.map == null) location.phys_length else 0;
        const scratch = try lease.scratch(decoded_bytes + stored_bytes, fault);
        const stored = if (run.map) |map|
            (map.dataBytes(shard) + @as(usize, @intCast(location.offset)))[0..location.phys_length]
        else blk: {
            const bytes = scratch[@intCast(decoded_bytes)..][0..location.phys_length];
            try volume.readData(shard, bytes, location.offset, id, fault);
            break :blk bytes;
        };
        switch (range.words) {
            // Raw bytes say nothing, but a page that the disk cannot give is a fault.
            .none => if (volume.codec == .raw) touch(stored),
            .made => |words| words[range.wordIndex(id)] = checksum.of(location, stored),
            .expected => |words| if (words[range.wordIndex(id)] != checksum.of(location, stored)) {
                const block = id / checksum.block_records;
                const changed = try judged.changed(volume, block, words[range.tableIndex(block)], fault);
                return volume.notVouched(id, changed, fault);
            },
        }
        const bytes = if (volume.codec == .raw) stored else blk: {
            const target = scratch[0..@intCast(decoded_bytes)];
            try codec.decode(try lease.decompressorFor(fault), volume.dictionary(), target, stored, id, shard, fault);
            break :blk target;
        };
        switch (range.geometry) {
            .fixed => {},
            .ragged => |geometry| {
                var dims: [format.ndim_max]u64 = undefined;
                try geometry.dimensions(bytes[0..geometry.headerBytes()], payload_bytes, dims[0..geometry.ndim], id, shard, fault);
            },
        }
    }
};

/// Looks at a byte of every page. The map's guard sees what cannot be read.
fn touch(bytes: []const u8) void {
    var at: usize = 0;
    while (at < bytes.len) : (at += std.heap.page_size_min) {
        std.mem.doNotOptimizeAway(@as(*const volatile u8, &bytes[at]).*);
    }
    std.mem.doNotOptimizeAway(@as(*const volatile u8, &bytes[bytes.len - 1]).*);
}

/// What was found of the last block's table: many records of one block may ask.
const Judged = struct {
    block: u64 = std.math.maxInt(u64),
    is_changed: bool = false,

    fn changed(judged: *Judged, volume: *const Volume, block: u64, expected: u64, fault: *Fault) Error!bool {
        if (judged.block != block) {
            judged.is_changed = try volume.tableChanged(block, expected, fault);
            judged.block = block;
        }
        return judged.is_changed;
    }
};

/// Errors that say nothing about the container.
fn isFatal(err: Error) bool {
    return switch (err) {
        error.OutOfMemory, error.Aborted, error.Unexpected => true,
        else => false,
    };
}

// ---- layout ----

/// Locations that are sorted at one time: 24 bytes each.
const sorted_max = 8 << 20;

/// Finds records that lie over others: each is a fault, and its bit in `over` is set (`over` is zero
/// and has a bit for every record). `unused[s]` becomes the bytes of shard s, up to its tail, that no
/// record names. Locations that name nothing sound are left out: `records` tells of them.
///
/// Where a shard's records lie in id order, as in files of this package, one look at the table is all.
/// Shards for which that does not hold are sorted, a bounded number of locations at one time.
pub fn layout(volume: *Volume, over: []u8, unused: []u64, faults: *Faults, cancel: Cancel, fault: *Fault) Error!void {
    assert(over.len * 8 >= volume.length);
    assert(unused.len == volume.shard_count);
    var ends: [format.shards_max]u64 = @splat(0);
    var in_order: [format.shards_max]bool = @splat(true);
    @memset(unused, 0);
    var table: Table = .{ .volume = volume, .cancel = cancel };
    while (try table.next(fault)) |entry| {
        if (entry.offset < ends[entry.shard]) {
            in_order[entry.shard] = false;
        } else {
            unused[entry.shard] += entry.offset - ends[entry.shard];
            ends[entry.shard] = entry.offset + entry.phys_length;
        }
    }
    for (unused, ends[0..unused.len], volume.tails[0..unused.len]) |*bytes, end, tail| bytes.* += tail - end;

    var from: u32 = 0;
    while (from < volume.shard_count) {
        if (in_order[from]) {
            from += 1;
            continue;
        }
        // As many of the following shards as fit, one at the least.
        const per_shard = volume.length / volume.shard_count + 1;
        const until: u32 = @intCast(@min(volume.shard_count, from + @max(1, sorted_max / per_shard)));
        try sorted(volume, from, until, &in_order, over, unused, faults, cancel, fault);
        from = until;
    }
}

const Entry = struct {
    offset: u64,
    record: u64,
    phys_length: u32,
    shard: u32,

    fn before(_: void, one: Entry, other: Entry) bool {
        if (one.shard != other.shard) return one.shard < other.shard;
        if (one.offset != other.offset) return one.offset < other.offset;
        return one.record < other.record;
    }
};

/// The sound locations of the table, in order.
const Table = struct {
    volume: *const Volume,
    cancel: Cancel,
    batch: [4096]format.Location = undefined,
    batch_first: u64 = 0,
    batch_count: usize = 0,
    at: u64 = 0,

    fn next(table: *Table, fault: *Fault) Error!?Entry {
        const volume = table.volume;
        while (table.at < volume.length) {
            if (table.at == table.batch_first + table.batch_count) try table.fill(fault);
            const record = table.at;
            const location = table.batch[@intCast(record - table.batch_first)];
            table.at += 1;
            const shard = volume.shardOf(record);
            const tail = volume.tails[shard];
            if (location.phys_length == 0 or location.phys_length > tail or location.offset > tail - location.phys_length) continue;
            return .{ .offset = location.offset, .record = record, .phys_length = location.phys_length, .shard = shard };
        }
        return null;
    }

    fn fill(table: *Table, fault: *Fault) Error!void {
        const volume = table.volume;
        if (table.cancel) |word| {
            if (@atomicLoad(u32, word, .monotonic) != 0) return fault.fail(error.Aborted, .none, "aborted", .{});
        }
        table.batch_first = table.at;
        table.batch_count = @intCast(@min(table.batch.len, volume.length - table.at));
        try volume.readMeta(std.mem.sliceAsBytes(table.batch[0..table.batch_count]), format.locationOffset(table.at), fault);
    }
};

/// The shards `from` to `until` that are not in order.
fn sorted(
    volume: *Volume,
    from: u32,
    until: u32,
    in_order: *const [format.shards_max]bool,
    over: []u8,
    unused: []u64,
    faults: *Faults,
    cancel: Cancel,
    fault: *Fault,
) Error!void {
    var entries: std.ArrayList(Entry) = .empty;
    defer entries.deinit(volume.gpa);
    var table: Table = .{ .volume = volume, .cancel = cancel };
    while (try table.next(fault)) |entry| {
        if (entry.shard < from or entry.shard >= until or in_order[entry.shard]) continue;
        entries.append(volume.gpa, entry) catch return fault.outOfMemory("locations", volume.length * @sizeOf(Entry));
    }
    std.mem.sortUnstable(Entry, entries.items, {}, Entry.before);

    var highest: ?Entry = null;
    for (from..until) |shard| {
        if (!in_order[shard]) unused[shard] = volume.tails[shard];
    }
    for (entries.items) |entry| {
        const end = entry.offset + entry.phys_length;
        const under = if (highest) |one| if (one.shard == entry.shard) one else null else null;
        const under_end = if (under) |one| one.offset + one.phys_length else 0;
        if (under != null and entry.offset < under_end) {
            over[@intCast(entry.record / 8)] |= @as(u8, 1) << @intCast(entry.record % 8);
            var found: Fault = .{};
            const err = found.failRecord(error.Malformed, .meta, entry.record, "record {d} lies over record {d} in data_{d}.zr: bytes {d} to {d} belong to both", .{
                entry.record, under.?.record, entry.shard, entry.offset, @min(end, under_end),
            });
            faults.add(err, &found);
            if (end > under_end) unused[entry.shard] -= end - under_end;
        } else {
            unused[entry.shard] -= entry.phys_length;
        }
        if (end > under_end) highest = entry;
    }
}

test "a full list keeps the lowest records, in order" {
    var room: [3]Found = undefined;
    var faults: Faults = .{ .io = std.testing.io, .room = &room };
    for ([_]u64{ 7, 2, 9, 4, 8, 1, 4 }) |record| {
        var fault: Fault = .{};
        faults.add(fault.failRecord(error.Malformed, .meta, record, "record {d}", .{record}), &fault);
    }
    try std.testing.expectEqual(@as(u64, 7), faults.count);
    try std.testing.expectEqual(@as(usize, 3), faults.list().len);
    for ([_]u64{ 1, 2, 4 }, faults.list()) |record, *found| try std.testing.expectEqual(record, found.record());
    var none: Faults = .{ .io = std.testing.io, .room = &.{} };
    var fault: Fault = .{};
    none.add(fault.fail(error.Malformed, .meta, "a fault", .{}), &fault);
    try std.testing.expectEqual(@as(u64, 1), none.count);
}
