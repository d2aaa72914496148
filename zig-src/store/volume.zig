//! The open files of one container and what is known of them: the physical state that append and
//! gather work on. Every read and write of a container goes through here, so every failure names its
//! file.

const std = @import("std");
const Io = std.Io;
const format = @import("format.zig");
const codec = @import("codec.zig");
const map_module = @import("map.zig");
const residence_module = @import("residence.zig");
const reserve = @import("reserve.zig");
const checksum = @import("checksum.zig");
const scratch = @import("scratch.zig");
const parts = @import("parts.zig");
const executor = @import("../executor.zig");
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

pub const meta_name = "meta.zr";
pub const dict_name = "dict.zr";
pub const integrity_name = "integrity.zr";
pub const data_prefix = "data_";

pub fn dataName(buffer: *[16]u8, shard: u32) []const u8 {
    return std.fmt.bufPrint(buffer, data_prefix ++ "{d}.zr", .{shard}) catch unreachable; // 3 digits at most
}

/// The volumes of a set, one id space over them.
pub const Table = parts.Table(Volume);

pub const no_part = std.math.maxInt(u32);

/// Where a record is: in which volume, and its id there.
pub const Home = struct {
    volume: *Volume,
    record: u64,
    /// Of a set: the part's place in its table; else `no_part`.
    part: u32,
};

/// Every so many batches of a set its parts count one: with many of them, counting costs as much as copying.
const batches_per_tick = 4;

/// Copied in some tens of microseconds, or decoded in some hundreds (docs/performance.md).
const quick_bytes_max = 512 << 10;

/// Pieces that are written with one call from where they lie; std.Io hands no more than 8 at a time to
/// the system. More are packed first: they are small, and many calls cost more.
pub const pieces_max = 8;

/// Below this, asking for blocks costs more than it saves.
const reserved_bytes_min = 1 << 20;

/// Of a reader that was just opened.
pub const advised_batches_first = 16;

pub const Volume = struct {
    io: Io,
    gpa: std.mem.Allocator,
    executor: *executor.Executor,
    pool: *scratch.Pool,

    codec: format.Codec,
    shard_count: u32,
    /// Records 0 .. length - 1 exist. Grows only when an append has wholly succeeded.
    length: u64 = 0,
    /// tails[s]: the committed end of shard s. Nothing past it is ever read.
    tails: [format.shards_max]u64 = @splat(0),
    dict: ?codec.Dict = null,

    meta: Io.File,
    data: []Io.File,
    /// Builds only: blocks are asked for ahead of large writes.
    reserves: bool = false,
    /// Readers only, and only where it can be had. Null: every read is positional.
    map: ?map_module.Map = null,
    /// Stored bytes of all records, where there is a map.
    map_stored_bytes: u64 = 0,
    /// Whether all of the map is in memory. Null: there is no map, or that cannot be told.
    residence: ?residence_module.Residence = null,
    /// Null: the records lie in the files below. Else this volume is a set: it has no files of its own, its
    /// `codec` is raw if that of every part is, and its records are those of its parts.
    table: ?*const Table = null,
    /// Of a set: how many batches it has told its parts' residences of, or not.
    batches_told: std.atomic.Value(u32) = .init(0),
    /// Readers only: what every record read is held against (checksum.zig). Null: nothing is.
    words: ?[]const u64 = null,
    /// Batches that are still to ask for their pages ahead of copying: the first ones, as nobody knows yet where the
    /// files are, and some more when a lane had to wait for the disk; counted down by batches.
    advised_batches: std.atomic.Value(u32) = .init(advised_batches_first),

    pub fn shardOf(volume: *const Volume, record: u64) u32 {
        return @intCast(record % volume.shard_count);
    }

    pub fn dictionary(volume: *const Volume) ?*const codec.Dict {
        return if (volume.dict) |*dict| dict else null;
    }

    /// The length once `count` more records are there.
    pub fn lengthAfter(volume: *const Volume, count: u64, fault: *Fault) Error!u64 {
        const length = std.math.add(u64, volume.length, count) catch {
            return fault.fail(error.TooLarge, .none, "the record count would pass 2^64", .{});
        };
        _ = format.tableEnd(length, fault) catch {
            return fault.fail(error.TooLarge, .meta, "{d} records do not fit in a location table", .{length});
        };
        return length;
    }

    /// Wants an id below `length`.
    pub fn home(volume: *Volume, id: u64) Home {
        const table = volume.table orelse return .{ .volume = volume, .record = id, .part = no_part };
        const index = table.indexOf(id);
        const part = &table.parts[index];
        return .{ .volume = part.owner, .record = id - part.start, .part = index };
    }

    /// The map, when it can be used for a batch now. Not of a set.
    pub fn usableMap(volume: *const Volume) ?*const map_module.Map {
        const map = if (volume.map) |*there| there else return null;
        return if (map.usable()) map else null;
    }

    /// Can a batch be gathered from maps now? Of a set: from those of all parts.
    pub fn mapsForBatch(volume: *Volume) bool {
        const table = volume.table orelse {
            const map = volume.usableMap() orelse return false;
            if (volume.residence) |*residence| residence.tick(map);
            return true;
        };
        if (!map_module.arm()) return false;
        for (table.parts) |part| if (!part.owner.isMapSound()) return false;
        if (volume.batches_told.fetchAdd(1, .monotonic) % batches_per_tick == 0) {
            for (table.parts) |part| if (part.owner.residence) |*residence| residence.tick(&part.owner.map.?);
        }
        return true;
    }

    fn isMapSound(volume: *const Volume) bool {
        return if (volume.map) |*map| !map.isBroken() else false;
    }

    /// Up to how many bytes of records a gather takes well below a millisecond and waits for no disk.
    /// 0: none.
    pub fn quickBytes(volume: *const Volume) u64 {
        if (volume.table) |table| {
            if (!map_module.arm()) return 0;
            const now_ns = map_module.nowNs();
            for (table.parts) |part| {
                const residence = if (part.owner.residence) |*there| there else return 0;
                if (!residence.isResident(now_ns) or !part.owner.isMapSound()) return 0;
            }
        } else {
            const residence = if (volume.residence) |*there| there else return 0;
            if (!residence.isResident(map_module.nowNs()) or volume.usableMap() == null) return 0;
        }
        return quick_bytes_max;
    }

    /// A lane had to wait for the disk.
    pub fn disproveResidence(volume: *Volume) void {
        if (volume.table) |table| {
            for (table.parts) |part| if (part.owner.residence) |*residence| residence.disprove();
        } else if (volume.residence) |*residence| residence.disprove();
    }

    /// Fills `target` from `meta.zr`. The table was measured at open, so a short read means that the
    /// file was cut since.
    pub fn readMeta(volume: *const Volume, target: []u8, offset: u64, fault: *Fault) Error!void {
        const bytes = volume.meta.readPositionalAll(volume.io, target, offset) catch |err| {
            return fault.failOs(err, .meta, "reading the location table");
        };
        if (bytes != target.len) {
            return fault.fail(error.Malformed, .meta, "meta.zr ends at byte {d}, inside its location table: it was cut after it was opened", .{offset + bytes});
        }
    }

    /// Fills `target` with the stored bytes of `record`; its location was checked against the tail.
    pub fn readData(volume: *const Volume, shard: u32, target: []u8, offset: u64, record: u64, fault: *Fault) Error!void {
        const bytes = volume.data[shard].readPositionalAll(volume.io, target, offset) catch |err| {
            const result = fault.failOs(err, .{ .data = shard }, "reading a record");
            fault.record = record;
            return result;
        };
        if (bytes != target.len) {
            return fault.failRecord(error.Malformed, .{ .data = shard }, record, "data_{d}.zr ends at byte {d}, inside record {d}: it was cut after it was opened", .{ shard, offset + bytes, record });
        }
    }

    pub fn writeMeta(volume: *const Volume, source: []const u8, offset: u64, fault: *Fault) Error!void {
        volume.meta.writePositionalAll(volume.io, source, offset) catch |err| {
            return fault.failOs(err, .meta, "writing meta.zr");
        };
    }

    /// The locations of consecutive records, from `record` on.
    pub fn writeLocations(volume: *const Volume, record: u64, locations: []const format.Location, fault: *Fault) Error!void {
        try volume.writeMeta(std.mem.sliceAsBytes(locations), format.locationOffset(record), fault);
    }

    pub fn writeData(volume: *const Volume, shard: u32, source: []const u8, offset: u64, fault: *Fault) Error!void {
        volume.data[shard].writePositionalAll(volume.io, source, offset) catch |err| {
            return fault.failOs(err, .{ .data = shard }, "writing records");
        };
    }

    /// Says that `bytes` will be written to a shard from `offset` on. Only makes it faster.
    pub fn reserveData(volume: *const Volume, shard: u32, offset: u64, bytes: u64) void {
        if (volume.reserves and bytes >= reserved_bytes_min) reserve.ask(volume.data[shard], offset, bytes);
    }

    /// Writes `pieces` back to back. They are used up.
    pub fn writeDataPieces(volume: *const Volume, shard: u32, pieces: [][]const u8, offset: u64, fault: *Fault) Error!void {
        var left = pieces;
        var at = offset;
        while (left.len > 0) {
            var written = volume.data[shard].writePositional(volume.io, left, at) catch |err| {
                return fault.failOs(err, .{ .data = shard }, "writing records");
            };
            at += written;
            while (left.len > 0 and written >= left[0].len) {
                written -= left[0].len;
                left = left[1..];
            }
            if (left.len > 0) left[0] = left[0][written..];
        }
    }

    /// Holds a record's stored bytes against its word, where there are words.
    pub fn vouchFor(volume: *const Volume, record: u64, location: format.Location, stored: []const u8, fault: *Fault) Error!void {
        if (volume.words != null) try volume.vouch(record, checksum.of(location, stored), fault);
    }

    /// Holds what `record` came to against its word. Wants words.
    pub fn vouch(volume: *const Volume, record: u64, found: u64, fault: *Fault) Error!void {
        const words = volume.words.?;
        if (words[@intCast(checksum.wordIndex(record))] == found) return;
        const block = record / checksum.block_records;
        const moved = try volume.tableChanged(block, words[@intCast(checksum.tableIndex(block))], fault);
        return volume.notVouched(record, moved, fault);
    }

    pub fn prefetchWord(volume: *const Volume, record: u64) void {
        const words = volume.words orelse return;
        @prefetch(&words[@intCast(checksum.wordIndex(record))], .{});
    }

    /// The word of a block's table as it is on disk now.
    pub fn tableWord(volume: *const Volume, block: u64, fault: *Fault) Error!u64 {
        var table: checksum.Table = .{};
        var record = block * checksum.block_records;
        const end = @min(volume.length, record + checksum.block_records);
        while (record < end) {
            var locations: [256]format.Location = undefined;
            const part = locations[0..@intCast(@min(locations.len, end - record))];
            try volume.readMeta(std.mem.sliceAsBytes(part), format.locationOffset(record), fault);
            table.update(std.mem.sliceAsBytes(part));
            record += part.len;
        }
        return table.final();
    }

    pub fn tableChanged(volume: *const Volume, block: u64, expected: u64, fault: *Fault) Error!bool {
        return try volume.tableWord(block, fault) != expected;
    }

    /// The error of a record that is not what its word vouches for.
    pub fn notVouched(volume: *const Volume, record: u64, table_changed: bool, fault: *Fault) Error {
        if (table_changed) {
            return fault.failRecord(error.Integrity, .meta, record, "the location of record {d} is not the one that integrity.zr vouches for", .{record});
        }
        const shard = volume.shardOf(record);
        return fault.failRecord(error.Integrity, .{ .data = shard }, record, "the stored bytes of record {d} are not those that integrity.zr vouches for", .{record});
    }

    /// The location of `record` as the map shows it now. Read once into a copy: what was checked is
    /// what is used.
    pub fn mappedLocation(map: *const map_module.Map, record: u64) format.Location {
        const at: *const volatile [2]u64 = @ptrCast(@alignCast(map.metaBytes() + @as(usize, @intCast(format.locationOffset(record)))));
        const second = at[1];
        return .{ .offset = at[0], .phys_length = @truncate(second), .logic_length = @truncate(second >> 32) };
    }

    /// After a batch from maps: were no pages replaced? A file cut inside a page reads as zeros without that: whoever
    /// gathered asks for what could have deceived it (gather.zig, Suspects).
    pub fn mapsHeld(volume: *const Volume) bool {
        const table = volume.table orelse return volume.isMapSound();
        for (table.parts) |part| if (!part.owner.isMapSound()) return false;
        return true;
    }

    /// Touches the last page of a shard: if the file was cut before it, the map is broken after that.
    pub fn touchShard(volume: *const Volume, shard: u32) void {
        const tail = volume.tails[shard];
        if (tail == 0) return;
        const address = volume.map.?.dataBytes(shard) + @as(usize, @intCast(tail - 1));
        _ = @as(*const volatile u8, @ptrCast(address)).*;
    }

    /// Whether a record, whose location was checked, has bytes in the last page of its shard.
    pub fn isAtEnd(volume: *const Volume, location: format.Location, shard: u32) bool {
        const last_page = std.mem.alignBackward(u64, volume.tails[shard] - 1, std.heap.page_size_max);
        return location.offset + location.phys_length > last_page;
    }

    /// Whether the entry of a record, below the length, has bytes in the last page of the table.
    pub fn isEntryAtEnd(volume: *const Volume, record: u64) bool {
        const last_page = std.mem.alignBackward(u64, format.locationOffset(volume.length) - 1, std.heap.page_size_max);
        return format.locationOffset(record + 1) > last_page;
    }

    pub fn isTableWhole(volume: *const Volume) bool {
        return (map_module.sizeOf(volume.meta) orelse 0) >= format.locationOffset(volume.length);
    }

    pub fn isShardWhole(volume: *const Volume, shard: u32) bool {
        return (map_module.sizeOf(volume.data[shard]) orelse 0) >= volume.tails[shard];
    }

    /// After all of a map was read: did every byte come from the files as they were at open? Their sizes are asked. Not
    /// of a set.
    pub fn mapHeld(volume: *const Volume, map: *const map_module.Map) bool {
        if (map.isBroken() or !volume.isTableWhole()) return false;
        for (0..volume.shard_count) |shard| if (!volume.isShardWhole(@intCast(shard))) return false;
        return true;
    }
};
