//! Locations, stored bytes and a dictionary from anybody, through open, every way of gathering, and
//! the checks. The page is sound (page.zig is about it); what follows it is the input:
//!
//!     0  bit 0: ragged, bit 1: dimensions of 8 bytes, bits 2 and 3: codec (3 is 1)
//!     1  shards, 1 + n % 4
//!     2  records, n % 16
//!     3  ragged: dimensions of a record, 1 + n % 5
//!     4  u16; fixed: bytes of a record, ragged: bytes of an item, 1 + n % 16
//!     6  bytes of the dictionary, times 8
//!     7  bytes that the last shard's tail is short of its file
//!     8  16 bytes for each record: its location; the dictionary; the rest, which every shard holds
//!
//! Held against one another: records alone, all at once and backwards, from the map, by reads, and
//! with checksums attached; what the checks say; and for raw records a second reading of the rules.

const std = @import("std");
const Io = std.Io;
const store_module = @import("../store.zig");
const scratch = @import("../store/scratch.zig");
const format = @import("../store/format.zig");
const verify = @import("../store/verify.zig");
const executor_module = @import("../executor.zig");
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;
const Store = store_module.Store;

const records_max = 15;
/// Items of one gather: enough for every path, little enough for thousands of inputs a second.
const payload_bytes_max = 1 << 20;

/// One folder, whose files are written anew for each input.
pub const World = struct {
    io: Io,
    gpa: std.mem.Allocator,
    folder: []const u8,
    executor: *executor_module.Executor,
    pool: scratch.Pool,

    /// Must stay where it is. One lane: everything runs on the caller, the same way each time.
    pub fn init(world: *World, io: Io, gpa: std.mem.Allocator, folder: []const u8) void {
        // Never freed: a survey's lane stays when the world is gone.
        const executor = std.heap.page_allocator.create(executor_module.Executor) catch @panic("no memory");
        executor.* = .init(io, std.heap.page_allocator, 1);
        world.* = .{
            .io = io,
            .gpa = gpa,
            .folder = folder,
            .executor = executor,
            .pool = .init(io, gpa, 2),
        };
    }

    pub fn deinit(world: *World) void {
        world.pool.deinit();
    }

    fn context(world: *World, map_files: bool) store_module.Context {
        return .{ .io = world.io, .gpa = world.gpa, .executor = world.executor, .pool = &world.pool, .map_files = map_files };
    }

    fn write(world: *World, folder: Io.Dir, name: []const u8, parts: []const []const u8) !void {
        const file = try folder.createFile(world.io, name, .{});
        defer file.close(world.io);
        var at: u64 = 0;
        for (parts) |part| {
            try file.writePositionalAll(world.io, part, at);
            at += part.len;
        }
    }
};

const Case = struct {
    codec: format.Codec,
    shards: u32,
    count: u64,
    /// Null: every record has `record_bytes`.
    ragged: ?format.RaggedGeometry,
    record_bytes: u64,
    locations: []const u8,
    dict: []const u8,
    data: []const u8,
    tails: [4]u64,

    fn of(input: []const u8) ?Case {
        if (input.len < 8) return null;
        const word = std.mem.readInt(u16, input[4..6], .little);
        var rest = input[8..];
        const count = @min(input[2] % (records_max + 1), rest.len / format.location_bytes);
        const locations = rest[0 .. count * format.location_bytes];
        rest = rest[locations.len..];
        const codec: format.Codec = switch (input[0] >> 2 & 3) {
            0 => .raw,
            2 => .zstd_dict,
            else => .zstd,
        };
        const dict_bytes = if (codec == .zstd_dict) @min(@as(usize, input[6]) * 8, rest.len) else 0;
        const data = rest[dict_bytes..];
        const shards = 1 + @as(u32, input[1] % 4);
        var tails: [4]u64 = @splat(0);
        for (tails[0..shards]) |*tail| tail.* = data.len;
        tails[shards - 1] -|= input[7];
        return .{
            .codec = codec,
            .shards = shards,
            .count = count,
            .ragged = if (input[0] & 1 == 0) null else .{
                .ndim = 1 + input[3] % 5,
                .dim_bytes = if (input[0] & 2 == 0) 4 else 8,
                .item_bytes = 1 + word % 16,
            },
            .record_bytes = @max(1, word),
            .locations = locations,
            .dict = rest[0..dict_bytes],
            .data = data,
            .tails = tails,
        };
    }

    fn write(case: *const Case, world: *World) !void {
        const folder = try Io.Dir.cwd().openDir(world.io, world.folder, .{});
        defer folder.close(world.io);
        var page: [format.page_bytes]u8 = undefined;
        format.encodePage(&page, case.count, case.codec, "s", case.tails[0..case.shards]);
        try world.write(folder, "meta.zr", &.{ &page, case.locations });
        for ([_][]const u8{ "data_0.zr", "data_1.zr", "data_2.zr", "data_3.zr" }, 0..) |name, shard| {
            if (shard < case.shards) {
                try world.write(folder, name, &.{case.data});
            } else {
                folder.deleteFile(world.io, name) catch |err| if (err != error.FileNotFound) return err;
            }
        }
        if (case.codec == .zstd_dict) {
            try world.write(folder, "dict.zr", &.{case.dict});
        } else {
            folder.deleteFile(world.io, "dict.zr") catch |err| if (err != error.FileNotFound) return err;
        }
    }

    fn location(case: *const Case, id: u64) format.Location {
        return std.mem.bytesToValue(format.Location, case.locations[@intCast(id * format.location_bytes)..][0..format.location_bytes]);
    }

    /// What a raw record comes to by the format's rules, without a line of the code under test.
    fn expected(case: *const Case, id: u64) Outcome {
        const place = case.location(id);
        const end = @as(u128, place.offset) + place.phys_length;
        if (place.phys_length == 0 or place.phys_length != place.logic_length) return .{ .refused = error.Malformed };
        if (place.logic_length > 1 << 31 or end > case.tails[@intCast(id % case.shards)]) return .{ .refused = error.Malformed };
        const bytes = case.data[@intCast(place.offset)..@intCast(end)];
        const geometry = case.ragged orelse {
            if (bytes.len != case.record_bytes) return .{ .refused = error.Malformed };
            return .{ .read = std.hash.Wyhash.hash(0, bytes) };
        };
        const header_bytes = geometry.ndim * geometry.dim_bytes;
        if (bytes.len <= header_bytes) return .{ .refused = error.Malformed };
        const items = bytes[header_bytes..];
        var dims: [5]u64 = undefined;
        var product: u128 = geometry.item_bytes;
        for (dims[0..geometry.ndim], 0..) |*dim, axis| {
            const at = bytes[axis * geometry.dim_bytes ..];
            dim.* = if (geometry.dim_bytes == 4) std.mem.readInt(u32, at[0..4], .little) else std.mem.readInt(u64, at[0..8], .little);
            // Larger than any record stays larger, except times zero.
            product = if (dim.* == 0) 0 else @min(product * dim.*, 1 << 62);
        }
        for (dims[0..geometry.ndim]) |dim| if (dim == 0) return .{ .refused = error.Malformed };
        if (product != items.len) return .{ .refused = error.Malformed };
        return .{ .read = hashOf(dims[0..geometry.ndim], items) };
    }
};

/// What one record comes to: the hash of its dimensions and items, or a refusal.
const Outcome = union(enum) {
    read: u64,
    refused: Error,

    fn equals(one: Outcome, other: Outcome) bool {
        return switch (one) {
            .read => |hash| other == .read and other.read == hash,
            .refused => |err| other == .refused and other.refused == err,
        };
    }
};

fn hashOf(dims: []const u64, items: []const u8) u64 {
    return std.hash.Wyhash.hash(std.hash.Wyhash.hash(0, std.mem.sliceAsBytes(dims)), items);
}

pub fn run(world: *World, input: []const u8) !void {
    const case = Case.of(input) orelse return;
    try case.write(world);
    var first: ?Look = null;
    for ([_]bool{ true, false }) |map_files| {
        const look = try lookAt(world, &case, map_files);
        // The map and reads must not differ.
        if (first) |before| try before.expectEqual(&look) else first = look;
    }
}

/// All that was found in one way of reading.
const Look = struct {
    opened: ?Error = null,
    count: usize = 0,
    outcomes: [records_max]Outcome = undefined,
    fault_count: u64 = 0,
    words: [records_max + 1]u64 = @splat(0),
    over: [2]u8 = @splat(0),
    unused: [4]u64 = @splat(0),

    fn expectEqual(one: *const Look, other: *const Look) !void {
        if (!isSame(one.opened, other.opened) or one.count != other.count) return error.OtherOpening;
        for (one.outcomes[0..one.count], other.outcomes[0..one.count]) |a, b| if (!a.equals(b)) return error.OtherRecord;
        if (one.fault_count != other.fault_count or !std.mem.eql(u64, &one.words, &other.words)) return error.OtherCheck;
        if (!std.mem.eql(u8, &one.over, &other.over) or !std.mem.eql(u64, &one.unused, &other.unused)) return error.OtherLayout;
    }
};

/// Two optionals compared by `!=` are compared with what stands behind a null by Debug's code generator,
/// as valgrind saw.
fn isSame(one: ?Error, other: ?Error) bool {
    const before = one orelse return other == null;
    const after = other orelse return false;
    return before == after;
}

fn lookAt(world: *World, case: *const Case, map_files: bool) !Look {
    var look: Look = .{};
    var fault: Fault = .{};
    const store = Store.open(world.context(map_files), world.folder, &fault) catch |err| {
        // Its page is sound: only a dictionary that is none, and payload without records, are refused.
        const may = err == error.Dictionary and case.codec == .zstd_dict or err == error.NotPublished and case.count == 0;
        if (!may or fault.message().len == 0) return error.ForeignRefusal;
        look.opened = err;
        return look;
    };
    defer store.close();
    look.count = @intCast(case.count);

    var too_large = false;
    for (look.outcomes[0..look.count], 0..) |*outcome, id| {
        outcome.* = try alone(world, case, store, id);
        if (outcome.* == .refused and outcome.refused == error.TooLarge) too_large = true;
        if (case.codec == .raw and !outcome.equals(case.expected(id))) return error.NotTheRules;
    }
    try together(world, case, store, look.outcomes[0..look.count], false);

    // A record that no gather here may hold would cost the check its memory too.
    if (!too_large) try check(world, case, store, &look);
    var room: [records_max]store_module.Found = undefined;
    var faults: store_module.Faults = .{ .io = world.io, .room = &room };
    try store.checkLayout(&look.over, look.unused[0..case.shards], &faults, null, &fault);
    if (@popCount(look.over[0]) + @popCount(look.over[1]) != faults.count) return error.OtherLayout;
    try expectLayout(case, &look);
    return look;
}

/// Bytes of longer files are not counted one by one.
const counted_bytes_max = 1024;

/// A bit is set exactly where an earlier record, by offset and then by number, reaches into a later one.
fn expectLayout(case: *const Case, look: *const Look) !void {
    var covered: [4]u64 = @splat(0);
    for (0..case.shards) |shard| {
        if (case.data.len > counted_bytes_max) break;
        for (0..case.tails[shard]) |byte| {
            for (0..case.count) |id| {
                if (id % case.shards != shard or !isInside(case, id)) continue;
                const place = case.location(id);
                if (byte < place.offset or byte >= place.offset + place.phys_length) continue;
                covered[shard] += 1;
                break;
            }
        }
        if (look.unused[shard] != case.tails[shard] - covered[shard]) return error.OtherUnused;
    }
    for (0..case.count) |id| {
        const place = case.location(id);
        var is_over = false;
        for (0..case.count) |under| {
            if (under == id or under % case.shards != id % case.shards or !isInside(case, under) or !isInside(case, id)) continue;
            const other = case.location(under);
            const is_earlier = other.offset < place.offset or other.offset == place.offset and under < id;
            if (is_earlier and other.offset + other.phys_length > place.offset) is_over = true;
        }
        if (is_over != (look.over[id / 8] >> @intCast(id % 8) & 1 == 1)) return error.OtherOver;
    }
}

fn isInside(case: *const Case, id: usize) bool {
    const place = case.location(id);
    return place.phys_length > 0 and @as(u128, place.offset) + place.phys_length <= case.tails[id % case.shards];
}

fn check(world: *World, case: *const Case, store: *Store, look: *Look) !void {
    if (look.count == 0) return;
    var fault: Fault = .{};
    var room: [records_max]store_module.Found = undefined;
    var faults: store_module.Faults = .{ .io = world.io, .room = &room };
    const words = look.words[0..@intCast(store_module.wordCount(0, case.count))];
    const geometry: verify.Geometry = if (case.ragged) |ragged| .{ .ragged = ragged } else .{ .fixed = case.record_bytes };
    try store.checkRecords(.{ .first = 0, .count = case.count, .geometry = geometry, .words = .{ .made = words } }, &faults, null, &fault);
    look.fault_count = faults.count;
    var refused: u64 = 0;
    for (look.outcomes[0..look.count], 0..) |outcome, id| {
        if (outcome == .read) continue;
        const found = &faults.list()[@intCast(refused)];
        if (found.fault.record != id or found.err != outcome.refused) return error.OtherFault;
        refused += 1;
    }
    if (refused != faults.count) return error.OtherFault;

    // Held against their own words, records are what they were; a changed word is seen.
    try store.expect(words, &fault);
    try together(world, case, store, look.outcomes[0..look.count], true);
    for (look.outcomes[0..look.count], 0..) |outcome, id| {
        if (outcome == .refused) continue;
        words[id + 1] ^= 1;
        defer words[id + 1] ^= 1;
        try store.expect(words, &fault);
        const other = try alone(world, case, store, id);
        if (!other.equals(.{ .refused = error.Integrity })) return error.ForgedWord;
        break;
    }
}

/// One record.
fn alone(world: *World, case: *const Case, store: *Store, id: u64) !Outcome {
    var batch: Batch = .{ .gpa = world.gpa };
    defer batch.free();
    batch.gather(case, store, &.{id}) catch |err| {
        try batch.expectSpeaking(err, &.{id});
        return .{ .refused = err };
    };
    return .{ .read = batch.hash(case, 0) };
}

/// All records, forwards and then backwards, in one gather; then those alone that can be read.
fn together(world: *World, case: *const Case, store: *Store, outcomes: []const Outcome, has_words: bool) !void {
    var ids: [2 * records_max]u64 = undefined;
    for ([_]bool{ false, true }) |only_readable| {
        var count: usize = 0;
        for ([_]bool{ false, true }) |backwards| {
            for (0..outcomes.len) |at| {
                const id = if (backwards) outcomes.len - 1 - at else at;
                if (only_readable and outcomes[id] == .refused) continue;
                ids[count] = id;
                count += 1;
            }
        }
        if (count == 0) return;
        var batch: Batch = .{ .gpa = world.gpa };
        defer batch.free();
        batch.gather(case, store, ids[0..count]) catch |err| {
            try batch.expectSpeaking(err, ids[0..count]);
            // Together they may be too much.
            if (err == error.TooLarge) continue;
            const id = batch.fault.record.?;
            // With words a damaged record may be refused for what it is instead, or for its word.
            const same = outcomes[@intCast(id)].equals(.{ .refused = err }) or
                has_words and outcomes[@intCast(id)] == .refused and err == error.Integrity;
            if (!same) return error.OtherThanAlone;
            continue;
        };
        for (ids[0..count], 0..) |id, at| {
            if (!outcomes[@intCast(id)].equals(.{ .read = batch.hash(case, at) })) return error.OtherThanAlone;
        }
    }
}

/// One gather and its memory, which is exactly as large as was asked for.
const Batch = struct {
    gpa: std.mem.Allocator,
    fault: Fault = .{},
    target: []align(16) u8 = &.{},
    asked: bool = false,
    offsets: [2 * records_max + 1]u64 = undefined,
    dims: [2 * records_max * 5]u64 = undefined,

    fn free(batch: *Batch) void {
        batch.gpa.free(batch.target);
    }

    fn gather(batch: *Batch, case: *const Case, store: *Store, ids: []const u64) Error!void {
        const geometry = case.ragged orelse {
            batch.target = try batch.gpa.alignedAlloc(u8, .@"16", @intCast(ids.len * case.record_bytes));
            return store.gatherFixed(ids, case.record_bytes, batch.target, null, &batch.fault);
        };
        const alloc_call: store_module.Alloc = .{ .context = batch, .call = alloc };
        try store.gatherRagged(ids, geometry, payload_bytes_max, alloc_call, batch.offsets[0 .. ids.len + 1], batch.dims[0 .. ids.len * geometry.ndim], null, &batch.fault);
    }

    fn alloc(context: ?*anyopaque, bytes: u64) callconv(.c) ?[*]u8 {
        const batch: *Batch = @ptrCast(@alignCast(context));
        // Asked once, and never for more than the bound and a record's dimensions.
        if (batch.asked or bytes > payload_bytes_max + 5 * 8) return null;
        batch.asked = true;
        batch.target = batch.gpa.alignedAlloc(u8, .@"16", @intCast(bytes)) catch return null;
        return batch.target.ptr;
    }

    /// A refusal names its record, one that was asked for, and speaks.
    fn expectSpeaking(batch: *const Batch, err: Error, ids: []const u64) !void {
        switch (err) {
            error.Malformed, error.Codec, error.Integrity => {
                const id = batch.fault.record orelse return error.NamelessRefusal;
                if (std.mem.indexOfScalar(u64, ids, id) == null) return error.NamelessRefusal;
            },
            error.TooLarge => {},
            else => return error.ForeignError,
        }
        if (batch.fault.message().len == 0) return error.SilentRefusal;
    }

    fn hash(batch: *const Batch, case: *const Case, at: usize) u64 {
        const geometry = case.ragged orelse {
            const bytes: usize = @intCast(case.record_bytes);
            return std.hash.Wyhash.hash(0, batch.target[at * bytes ..][0..bytes]);
        };
        const dims = batch.dims[at * geometry.ndim ..][0..geometry.ndim];
        return hashOf(dims, batch.target[@intCast(batch.offsets[at])..@intCast(batch.offsets[at + 1])]);
    }
};
