//! A store as the C ABI uses it: builds, publication, reading, damage, and life beside others.

const std = @import("std");
const Io = std.Io;
const testing = std.testing;
const store_module = @import("store.zig");
const scratch = @import("store/scratch.zig");
const format = @import("store/format.zig");
const verify = @import("store/verify.zig");
const map_module = @import("store/map.zig");
const executor_module = @import("executor.zig");
const Fault = @import("fault.zig").Fault;
const Store = store_module.Store;

/// A scratch folder with a context; lanes are detached, so the executor is never freed.
const Fixture = struct {
    tmp: testing.TmpDir,
    root: [256]u8,
    root_bytes: usize,
    executor: *executor_module.Executor,
    pool: scratch.Pool,
    /// Readers copy from maps, or everything goes through std.Io.
    map_files: bool = true,
    fault: Fault = .{},

    var shared_executor: ?*executor_module.Executor = null;

    fn init(fixture: *Fixture) !void {
        if (shared_executor == null) {
            shared_executor = try std.heap.page_allocator.create(executor_module.Executor);
            shared_executor.?.* = .init(testing.io, std.heap.page_allocator, 4);
        }
        fixture.* = .{
            .tmp = testing.tmpDir(.{ .iterate = true }),
            .root = undefined,
            .root_bytes = 0,
            .executor = shared_executor.?,
            .pool = .init(testing.io, testing.allocator, 4),
        };
        fixture.root_bytes = try fixture.tmp.dir.realPath(testing.io, &fixture.root);
    }

    fn deinit(fixture: *Fixture) void {
        fixture.pool.deinit();
        fixture.tmp.cleanup();
    }

    fn context(fixture: *Fixture) store_module.Context {
        return .{ .io = testing.io, .gpa = testing.allocator, .executor = fixture.executor, .pool = &fixture.pool, .map_files = fixture.map_files };
    }

    fn path(fixture: *const Fixture, buffer: []u8, name: []const u8) []const u8 {
        return std.fmt.bufPrint(buffer, "{s}/{s}", .{ fixture.root[0..fixture.root_bytes], name }) catch unreachable;
    }

    fn create(fixture: *Fixture, name: []const u8, codec: store_module.Codec, data_shards: u32) !*Store {
        var buffer: [512]u8 = undefined;
        return Store.create(fixture.context(), .{
            .path = fixture.path(&buffer, name),
            .codec = codec,
            .data_shards = data_shards,
            .schema = "the schema",
            .dict = if (codec == .zstd_dict) "common words of all records" else &.{},
        }, &fixture.fault);
    }

    fn open(fixture: *Fixture, name: []const u8) !*Store {
        var buffer: [512]u8 = undefined;
        return Store.open(fixture.context(), fixture.path(&buffer, name), &fixture.fault);
    }
};

fn fill(bytes: []u8, seed: u64) void {
    var prng: std.Random.DefaultPrng = .init(seed);
    // Half noise, half pattern: compressible, but no two records alike.
    for (bytes, 0..) |*byte, i| byte.* = if (i % 2 == 0) @truncate(i / 7) else prng.random().uintLessThan(u8, 9);
}

const PackedTarget = struct {
    bytes: [1 << 20]u8 align(16) = undefined,
    used: u64 = 0,

    fn alloc(context: ?*anyopaque, payload_bytes: u64) callconv(.c) ?[*]u8 {
        const target: *PackedTarget = @ptrCast(@alignCast(context));
        if (payload_bytes > target.bytes.len) return null;
        target.used = payload_bytes;
        return &target.bytes;
    }
};

test "fixed records round-trip: codecs, shards, several appends, any ids" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const record_bytes = 100;
    const count = 700;
    const source = try testing.allocator.alloc(u8, record_bytes * count);
    defer testing.allocator.free(source);
    fill(source, 1);
    for ([_]store_module.Codec{ .raw, .zstd, .zstd_dict }) |codec| {
        for ([_]u32{ 1, 3, 255 }) |shards| {
            var name_buffer: [64]u8 = undefined;
            const name = try std.fmt.bufPrint(&name_buffer, "{t}-{d}", .{ codec, shards });
            const build = try fixture.create(name, codec, shards);
            var at: u64 = 0;
            for ([_]u64{ 1, 7, 400, 3, 289 }) |records| {
                try build.append(.{ .bytes = source.ptr + at * record_bytes, .ends = null, .record_bytes = record_bytes, .count = records }, &fixture.fault);
                at += records;
            }
            try testing.expectEqual(@as(u64, count), at);
            try testing.expectError(error.NotFound, fixture.open(name));
            try build.publish(false, &.{}, &fixture.fault);
            build.close();

            const reader = try fixture.open(name);
            defer reader.close();
            try testing.expectEqual(@as(u64, count), reader.info().record_count);
            try testing.expectEqualStrings("the schema", reader.schema());
            const all = try testing.allocator.alloc(u8, source.len);
            defer testing.allocator.free(all);
            var ids: [count]u64 = undefined;
            for (&ids, 0..) |*id, i| id.* = i;
            try reader.gatherFixed(&ids, record_bytes, all, null, &fixture.fault);
            try testing.expectEqualSlices(u8, source, all);
            const some = [_]u64{ 699, 0, 0, 350, 699 };
            try reader.gatherFixed(&some, record_bytes, all[0 .. some.len * record_bytes], null, &fixture.fault);
            for (some, 0..) |id, i| {
                try testing.expectEqualSlices(u8, source[id * record_bytes ..][0..record_bytes], all[i * record_bytes ..][0..record_bytes]);
            }
            try testing.expectError(error.OutOfRange, reader.gatherFixed(&.{ 0, 700 }, record_bytes, all[0 .. 2 * record_bytes], null, &fixture.fault));
            try testing.expectEqual(@as(?u64, 700), fixture.fault.record);
            // At the end of a run of ids, whose locations are read at once.
            try testing.expectError(error.OutOfRange, reader.gatherFixed(&.{ 698, 699, 700 }, record_bytes, all[0 .. 3 * record_bytes], null, &fixture.fault));
            fixture.map_files = false;
            defer fixture.map_files = true;
            const by_reads = try fixture.open(name);
            defer by_reads.close();
            try testing.expectError(error.OutOfRange, by_reads.gatherFixed(&.{ 698, 699, 700 }, record_bytes, all[0 .. 3 * record_bytes], null, &fixture.fault));
            const cancelled: u32 = 1;
            try testing.expectError(error.Aborted, reader.gatherFixed(&some, record_bytes, all[0 .. some.len * record_bytes], &cancelled, &fixture.fault));
        }
    }
}

test "ragged records round-trip with their dimensions" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const gpa = testing.allocator;
    const target = try gpa.create(PackedTarget);
    defer gpa.destroy(target);
    // Two dimensions each; one record is above the size that raw reads go straight for.
    const shapes = [_][2]u64{ .{ 1, 3 }, .{ 300, 301 }, .{ 2, 2 }, .{ 7, 1 }, .{ 5, 40 } };
    for ([_]store_module.Codec{ .raw, .zstd, .zstd_dict }) |codec| {
        for ([_]u32{ 4, 8 }) |dim_bytes| {
            var packed_records: std.ArrayList(u8) = .empty;
            defer packed_records.deinit(gpa);
            var ends: [shapes.len]u64 = undefined;
            for (shapes, &ends, 0..) |shape, *end, seed| {
                for (shape) |dim| try packed_records.appendSlice(gpa, std.mem.asBytes(&dim)[0..dim_bytes]);
                const items = try packed_records.addManyAsSlice(gpa, @intCast(shape[0] * shape[1] * 2));
                fill(items, seed);
                end.* = packed_records.items.len;
            }
            var name_buffer: [64]u8 = undefined;
            const name = try std.fmt.bufPrint(&name_buffer, "ragged-{t}-{d}", .{ codec, dim_bytes });
            const build = try fixture.create(name, codec, 2);
            try build.append(.{ .bytes = packed_records.items.ptr, .ends = &ends, .record_bytes = 0, .count = shapes.len }, &fixture.fault);
            try build.publish(true, &.{}, &fixture.fault);
            build.close();

            const reader = try fixture.open(name);
            defer reader.close();
            const ids = [_]u64{ 4, 1, 1, 0, 3, 2 };
            var offsets: [ids.len + 1]u64 = undefined;
            var dims: [ids.len * 2]u64 = undefined;
            const geometry: store_module.RaggedGeometry = .{ .ndim = 2, .dim_bytes = dim_bytes, .item_bytes = 2 };
            const alloc: store_module.Alloc = .{ .context = target, .call = PackedTarget.alloc };
            try reader.gatherRagged(&ids, geometry, 1 << 20, alloc, &offsets, &dims, null, &fixture.fault);
            try testing.expectEqual(target.used, offsets[ids.len]);
            // As many bytes as were allowed, and not one more.
            const payload_bytes = offsets[ids.len];
            try reader.gatherRagged(&ids, geometry, payload_bytes, alloc, &offsets, &dims, null, &fixture.fault);
            try testing.expectError(error.TooLarge, reader.gatherRagged(&ids, geometry, payload_bytes - 1, alloc, &offsets, &dims, null, &fixture.fault));
            var sizes: [ids.len]u64 = undefined;
            try reader.logicalBytes(&ids, &sizes, null, &fixture.fault);
            for (ids, sizes) |id, bytes| try testing.expectEqual(ends[id] - (if (id == 0) 0 else ends[id - 1]), bytes);
            for (ids, 0..) |id, i| {
                try testing.expectEqualSlices(u64, &shapes[id], dims[i * 2 ..][0..2]);
                const from = (if (id == 0) 0 else ends[id - 1]) + 2 * dim_bytes;
                try testing.expectEqualSlices(u8, packed_records.items[from..ends[id]], target.bytes[offsets[i]..offsets[i + 1]]);
            }
            try testing.expectError(error.TooLarge, reader.gatherRagged(&ids, geometry, 1000, alloc, &offsets, &dims, null, &fixture.fault));
            const wrong: store_module.RaggedGeometry = .{ .ndim = 1, .dim_bytes = dim_bytes, .item_bytes = 2 };
            try testing.expectError(error.Malformed, reader.gatherRagged(ids[0..1], wrong, 1 << 20, alloc, offsets[0..2], dims[0..1], null, &fixture.fault));
        }
    }
}

test "ragged gathers agree with the source: sizes around every threshold, from maps and by reads" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const gpa = testing.allocator;
    var prng: std.Random.DefaultPrng = .init(0x5eed);
    const random = prng.random();
    const count = 60;
    for ([_]store_module.Codec{ .raw, .zstd, .zstd_dict }) |codec| {
        var records: std.ArrayList(u8) = .empty;
        defer records.deinit(gpa);
        var ends: [count]u64 = undefined;
        for (&ends, 0..) |*end, seed| {
            // Below, at and above the sizes where another way of reading begins.
            const items: u64 = switch (random.uintLessThan(u32, 4)) {
                0 => random.intRangeAtMost(u64, 1, 30), // also fewer bytes than the dimensions take
                1 => random.intRangeAtMost(u64, (128 << 10) - 20, (128 << 10) + 20),
                2 => random.intRangeAtMost(u64, 60_000, 70_000),
                else => random.intRangeAtMost(u64, 150_000, 400_000),
            };
            try records.appendSlice(gpa, std.mem.asBytes(&items));
            fill(try records.addManyAsSlice(gpa, @intCast(items)), seed);
            end.* = records.items.len;
        }
        var name_buffer: [32]u8 = undefined;
        const name = try std.fmt.bufPrint(&name_buffer, "{t}", .{codec});
        const build = try fixture.create(name, codec, 3);
        try build.append(.{ .bytes = records.items.ptr, .ends = &ends, .record_bytes = 0, .count = count }, &fixture.fault);
        try build.publish(false, &.{}, &fixture.fault);
        build.close();
        for ([_]bool{ true, false }) |map_files| {
            fixture.map_files = map_files;
            const reader = try fixture.open(name);
            defer reader.close();
            for (0..12) |round| {
                var ids: [24]u64 = undefined;
                const asked = ids[0..if (round == 0) 1 else random.intRangeAtMost(usize, 1, ids.len)];
                for (asked) |*id| id.* = random.uintLessThan(u64, count);
                var offsets: [ids.len + 1]u64 = undefined;
                var dims: [ids.len]u64 = undefined;
                var target: HeapTarget = .{};
                defer target.deinit();
                const alloc: store_module.Alloc = .{ .context = &target, .call = HeapTarget.alloc };
                try reader.gatherRagged(asked, .{ .ndim = 1, .dim_bytes = 8, .item_bytes = 1 }, 1 << 30, alloc, offsets[0 .. asked.len + 1], dims[0..asked.len], null, &fixture.fault);
                for (asked, 0..) |id, i| {
                    const from = (if (id == 0) 0 else ends[id - 1]) + 8;
                    const expected = records.items[from..ends[id]];
                    try testing.expectEqual(expected.len, dims[i]);
                    try testing.expectEqualSlices(u8, expected, target.bytes[offsets[i]..offsets[i + 1]]);
                }
            }
        }
    }
}

/// Memory of exactly the size that was asked for, so that a write past it is found.
const HeapTarget = struct {
    bytes: []u8 = &.{},

    fn alloc(context: ?*anyopaque, bytes: u64) callconv(.c) ?[*]u8 {
        const target: *HeapTarget = @ptrCast(@alignCast(context));
        std.debug.assert(target.bytes.len == 0); // Asked once.
        target.bytes = testing.allocator.alloc(u8, @intCast(bytes)) catch return null;
        return target.bytes.ptr;
    }

    fn deinit(target: *HeapTarget) void {
        testing.allocator.free(target.bytes);
    }
};

test "records in two pieces give the files that whole ones give" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const gpa = testing.allocator;
    var prng: std.Random.DefaultPrng = .init(0x9d1ece5);
    const random = prng.random();
    for ([_]usize{ 40, 3_000, 300_000 }, 0..) |rest_bytes_max, round| {
        const count = 61;
        const header_bytes = 8;
        var whole: std.ArrayList(u8) = .empty;
        defer whole.deinit(gpa);
        var ends: [count]u64 = undefined;
        for (&ends) |*end| {
            const bytes = header_bytes + random.intRangeAtMost(usize, 1, rest_bytes_max);
            try whole.resize(gpa, whole.items.len + bytes);
            end.* = whole.items.len;
        }
        fill(whole.items, round);
        var headers: [count * header_bytes]u8 = undefined;
        var rests: [count][*]const u8 = undefined;
        for (0..count) |i| {
            const record = whole.items[if (i == 0) 0 else ends[i - 1]..ends[i]];
            @memcpy(headers[i * header_bytes ..][0..header_bytes], record[0..header_bytes]);
            rests[i] = record[header_bytes..].ptr;
        }
        for ([_]u32{ 1, 3 }) |shard_count| {
            const spans: store_module.Spans = .{ .bytes = whole.items.ptr, .ends = &ends, .record_bytes = 0, .count = count };
            const pieces: store_module.Spans = .{ .bytes = &headers, .ends = &ends, .record_bytes = 0, .count = count, .rests = &rests, .header_bytes = header_bytes };
            for ([_]store_module.Spans{ spans, pieces }, [_][]const u8{ "whole", "pieces" }) |records, name| {
                const build = try fixture.create(name, .raw, shard_count);
                try build.append(records, &fixture.fault);
                try build.append(spans, &fixture.fault);
                try build.publish(false, &.{}, &fixture.fault);
                build.close();
            }
            for ([_][]const u8{ "meta.zr", "data_0.zr", "data_1.zr", "data_2.zr" }, 0..) |file, index| {
                if (index > shard_count) continue;
                var contents: [2][]u8 = undefined;
                for (&contents, [_][]const u8{ "whole", "pieces" }) |*content, name| {
                    var buffer: [64]u8 = undefined;
                    const path = try std.fmt.bufPrint(&buffer, "{s}/{s}", .{ name, file });
                    content.* = try fixture.tmp.dir.readFileAlloc(testing.io, path, gpa, .unlimited);
                }
                defer for (contents) |content| gpa.free(content);
                try testing.expectEqualSlices(u8, contents[0], contents[1]);
            }
            try fixture.tmp.dir.deleteTree(testing.io, "whole");
            try fixture.tmp.dir.deleteTree(testing.io, "pieces");
        }
    }
}

test "a build is invisible until published, discarded without, and never replaces" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const spans: store_module.Spans = .{ .bytes = "abcdef", .ends = null, .record_bytes = 2, .count = 3 };

    const dropped = try fixture.create("a", .raw, 4);
    try dropped.append(spans, &fixture.fault);
    dropped.close();
    try testing.expectError(error.NotFound, fixture.open("a"));
    try expectEntryCount(&fixture, 0);

    const first = try fixture.create("a", .raw, 4);
    try testing.expectError(error.Locked, fixture.create("a", .raw, 4));
    try first.append(spans, &fixture.fault);
    try fixture.tmp.dir.createDir(testing.io, "a", .default_dir); // Somebody takes the path meanwhile.
    try testing.expectError(error.Exists, first.publish(false, &.{}, &fixture.fault));
    try testing.expectError(error.BuildFailed, first.publish(false, &.{}, &fixture.fault));
    first.close();
    try testing.expectError(error.Exists, fixture.create("a", .raw, 4)); // Even an empty folder.
    try expectEntryCount(&fixture, 1);
    try testing.expectError(error.NotFound, fixture.open("a"));
    try testing.expectError(error.NotFound, fixture.open("nowhere"));
}

test "what a killed build left is removed by the next" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const io = testing.io;
    for ([_][]const u8{ ".a.build-0123456789ab", ".a.build-ffffffffffff", ".a.build-000000000000" }, 0..) |sibling, files| {
        const folder = try fixture.tmp.dir.createDirPathOpen(io, sibling, .{});
        defer folder.close(io);
        if (files >= 1) try folder.writeFile(io, .{ .sub_path = "meta.zr", .data = "" });
        if (files >= 2) try folder.writeFile(io, .{ .sub_path = "data_0.zr", .data = "x" });
    }
    // Not siblings of "a": other names.
    try fixture.tmp.dir.createDir(io, ".a.build-0123", .default_dir);
    try fixture.tmp.dir.createDir(io, ".ab.build-0123456789ab", .default_dir);
    const build = try fixture.create("a", .raw, 1);
    try expectEntryCount(&fixture, 3);
    build.close();
    try expectEntryCount(&fixture, 2);
}

test "names up to the limit of the file system" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const long: [120][2]u8 = @splat("ä".*);
    const name = std.mem.sliceAsBytes(&long);
    const build = try fixture.create(name, .raw, 1);
    try build.append(.{ .bytes = "ab", .ends = null, .record_bytes = 1, .count = 2 }, &fixture.fault);
    try build.publish(false, &.{}, &fixture.fault);
    build.close();
    (try fixture.open(name)).close();
    try expectEntryCount(&fixture, 1);
}

test "rewind forgets records and publish cuts their bytes" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const build = try fixture.create("a", .raw, 2);
    try build.append(.{ .bytes = "aabbcc", .ends = null, .record_bytes = 2, .count = 3 }, &fixture.fault);
    build.mark();
    try build.append(.{ .bytes = "ddeeffgg", .ends = null, .record_bytes = 2, .count = 4 }, &fixture.fault);
    build.rewind();
    try build.append(.{ .bytes = "zz", .ends = null, .record_bytes = 2, .count = 1 }, &fixture.fault);
    try build.publish(false, &.{}, &fixture.fault);
    build.close();
    const reader = try fixture.open("a");
    defer reader.close();
    try testing.expectEqual(@as(u64, 4), reader.info().record_count);
    var target: [8]u8 = undefined;
    try reader.gatherFixed(&.{ 0, 1, 2, 3 }, 2, &target, null, &fixture.fault);
    try testing.expectEqualStrings("aabbcczz", &target);
    const stat = try fixture.tmp.dir.statFile(testing.io, "a/data_1.zr", .{});
    try testing.expectEqual(@as(u64, 4), stat.size);
}

test "the files of a build do not depend on the lanes" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const gpa = testing.allocator;
    const record_bytes = 40_000; // 13 to a chunk: several chunks for each shard
    const count = 150;
    const source = try gpa.alloc(u8, record_bytes * count);
    defer gpa.free(source);
    fill(source, 5);
    var first: ?[]u8 = null;
    defer if (first) |bytes| gpa.free(bytes);
    for (0..4) |round| {
        var name_buffer: [16]u8 = undefined;
        const name = try std.fmt.bufPrint(&name_buffer, "r{d}", .{round});
        const build = try fixture.create(name, .zstd, 2);
        try build.append(.{ .bytes = source.ptr, .ends = null, .record_bytes = record_bytes, .count = count }, &fixture.fault);
        try build.publish(false, &.{}, &fixture.fault);
        build.close();
        var path_buffer: [64]u8 = undefined;
        const path = try std.fmt.bufPrint(&path_buffer, "{s}/data_1.zr", .{name});
        const bytes = try fixture.tmp.dir.readFileAlloc(testing.io, path, gpa, .limited(64 << 20));
        if (first) |expected| {
            defer gpa.free(bytes);
            try testing.expectEqualSlices(u8, expected, bytes);
        } else first = bytes;
    }
}

test "a file cut under an open reader is an error that names it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const record_bytes = 3000; // 12 records: 18,000 bytes, several pages, in each of two shards
    const source = try testing.allocator.alloc(u8, record_bytes * 12);
    defer testing.allocator.free(source);
    fill(source, 9);
    var round: usize = 0;
    for ([_]bool{ true, false }) |map_files| {
        // Inside the last page (zeros without a signal), a page boundary, and nothing left.
        for ([_]u64{ 17_999, 4096, 0 }) |cut| {
            fixture.map_files = map_files;
            var name_buffer: [32]u8 = undefined;
            const name = try std.fmt.bufPrint(&name_buffer, "r{d}", .{round});
            round += 1;
            const build = try fixture.create(name, .raw, 2);
            try build.append(.{ .bytes = source.ptr, .ends = null, .record_bytes = record_bytes, .count = 12 }, &fixture.fault);
            try build.publish(false, &.{}, &fixture.fault);
            build.close();
            const reader = try fixture.open(name);
            defer reader.close();
            var path_buffer: [64]u8 = undefined;
            const file = try fixture.tmp.dir.openFile(testing.io, try std.fmt.bufPrint(&path_buffer, "{s}/data_1.zr", .{name}), .{ .mode = .read_write });
            defer file.close(testing.io);
            try file.setLength(testing.io, cut);
            const target = try testing.allocator.alloc(u8, record_bytes * 12);
            defer testing.allocator.free(target);
            const ids: [12]u64 = .{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
            try testing.expectError(error.Malformed, reader.gatherFixed(&ids, record_bytes, target, null, &fixture.fault));
            try testing.expectEqual(@as(u32, 1), fixture.fault.place.data);
            // Intact records are still read, cut ones named.
            try reader.gatherFixed(&.{ 0, 2, 4 }, record_bytes, target[0 .. 3 * record_bytes], null, &fixture.fault);
            try testing.expectEqualSlices(u8, source[2 * record_bytes ..][0..record_bytes], target[record_bytes..][0..record_bytes]);
            try testing.expectError(error.Malformed, reader.gatherFixed(&.{ 0, 11 }, record_bytes, target[0 .. 2 * record_bytes], null, &fixture.fault));
            try testing.expectEqual(@as(?u64, 11), fixture.fault.record);
            // A file that is whole again is read again.
            try file.writePositionalAll(testing.io, source[11 * record_bytes ..][0..record_bytes], 5 * record_bytes);
            try reader.gatherFixed(&.{11}, record_bytes, target[0..record_bytes], null, &fixture.fault);
            try testing.expectEqualSlices(u8, source[11 * record_bytes ..][0..record_bytes], target[0..record_bytes]);
        }
    }
}

test "joined readers: every id from its own member, and a cut file of one is an error that names it" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const record_bytes = 3000;
    const count = 36;
    const source = try testing.allocator.alloc(u8, record_bytes * count);
    defer testing.allocator.free(source);
    fill(source, 10);
    // A record that ends with zeros is what a cut file could be taken for.
    for (0..count) |id| if (id % 3 == 0) @memset(source[id * record_bytes ..][record_bytes - 500 ..][0..500], 0);
    const target = try testing.allocator.alloc(u8, record_bytes * count);
    defer testing.allocator.free(target);
    const codecs = [_]store_module.Codec{ .raw, .zstd, .raw, .zstd_dict };
    const sizes = [_]u64{ 12, 1, 12, 11 };
    var round: usize = 0;
    for ([_]bool{ true, false }) |map_files| {
        for ([_]?u64{ null, 17_999, 5000, 4096, 0 }) |cut| {
            fixture.map_files = map_files;
            var members: [codecs.len]*Store = undefined;
            var name_buffer: [32]u8 = undefined;
            var first: u64 = 0;
            for (&members, codecs, sizes, 0..) |*member, codec, size, i| {
                const name = try std.fmt.bufPrint(&name_buffer, "j{d}-{d}", .{ round, i });
                const build = try fixture.create(name, codec, 2);
                try build.append(.{ .bytes = source.ptr + first * record_bytes, .ends = null, .record_bytes = record_bytes, .count = size }, &fixture.fault);
                try build.publish(false, &.{}, &fixture.fault);
                build.close();
                member.* = try fixture.open(name);
                first += size;
            }
            const joined = try Store.join(fixture.context(), &members, &.{ 0, 0, 0, 0 }, 0, &fixture.fault);
            defer joined.close();
            // They stay open for the joined one.
            for (members) |member| member.close();
            try testing.expectEqual(@as(u64, count), joined.info().record_count);
            var ids: [count]u64 = undefined;
            for (&ids, 0..) |*id, i| id.* = count - 1 - i;
            try joined.gatherFixed(&ids, record_bytes, target, null, &fixture.fault);
            for (ids, 0..) |id, i| {
                try testing.expectEqualSlices(u8, source[id * record_bytes ..][0..record_bytes], target[i * record_bytes ..][0..record_bytes]);
            }
            try testing.expectError(error.OutOfRange, joined.gatherFixed(&.{ 0, count }, record_bytes, target[0 .. 2 * record_bytes], null, &fixture.fault));
            try testing.expectEqual(@as(?u64, count), fixture.fault.record);
            try testing.expectEqual(@as(?u32, null), fixture.fault.part);
            if (cut) |bytes| {
                // Shard 1 of member 2, which has the records 13 .. 24.
                var path_buffer: [64]u8 = undefined;
                const file = try fixture.tmp.dir.openFile(testing.io, try std.fmt.bufPrint(&path_buffer, "j{d}-2/data_1.zr", .{round}), .{ .mode = .read_write });
                defer file.close(testing.io);
                try file.setLength(testing.io, bytes);
                try testing.expectError(error.Malformed, joined.gatherFixed(&ids, record_bytes, target, null, &fixture.fault));
                try testing.expectEqual(@as(?u32, 2), fixture.fault.part);
                try testing.expectEqual(@as(u32, 1), fixture.fault.place.data);
                // In request order, which goes down: the last record of the shard.
                try testing.expectEqual(@as(?u64, 11), fixture.fault.record);
                try joined.gatherFixed(&.{ 0, 13, 35 }, record_bytes, target[0 .. 3 * record_bytes], null, &fixture.fault);
                try testing.expectEqualSlices(u8, source[35 * record_bytes ..][0..record_bytes], target[2 * record_bytes ..][0..record_bytes]);
            }
            round += 1;
        }
    }
}

/// Changes bytes of a file of a container.
fn overwrite(fixture: *Fixture, path: []const u8, offset: u64, bytes: []const u8) !void {
    const file = try fixture.tmp.dir.openFile(testing.io, path, .{ .mode = .read_write });
    defer file.close(testing.io);
    try file.writePositionalAll(testing.io, bytes, offset);
}

test "every changed byte of a record or of its location is found, named, and kept from gathers" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const record_bytes = 5000; // More than a piece of a hashed copy.
    const count = 60;
    const source = try testing.allocator.alloc(u8, record_bytes * count);
    defer testing.allocator.free(source);
    const target = try testing.allocator.alloc(u8, record_bytes * count);
    defer testing.allocator.free(target);
    fill(source, 21);
    var prng: std.Random.DefaultPrng = .init(22);
    const random = prng.random();
    var ids: [count]u64 = undefined;
    for (&ids, 0..) |*id, i| id.* = i;
    for ([_]store_module.Codec{ .raw, .zstd, .zstd_dict }) |codec| {
        for ([_]bool{ true, false }) |map_files| {
            fixture.map_files = map_files;
            var name_buffer: [32]u8 = undefined;
            const name = try std.fmt.bufPrint(&name_buffer, "{t}-{}", .{ codec, map_files });
            var words: [count + 1]u64 = undefined;
            const build = try fixture.create(name, codec, 3);
            try build.append(.{ .bytes = source.ptr, .ends = null, .record_bytes = record_bytes, .count = count }, &fixture.fault);
            try expectFaultless(build, count, record_bytes, .{ .made = &words }, &fixture.fault);
            try build.publish(false, "what it holds", &fixture.fault);
            var page: [format.page_bytes]u8 = undefined;
            try build.readPage(&page, &fixture.fault);
            build.close();
            var path_buffer: [64]u8 = undefined;
            const side = try fixture.tmp.dir.readFileAlloc(testing.io, try std.fmt.bufPrint(&path_buffer, "{s}/integrity.zr", .{name}), testing.allocator, .limited(100));
            defer testing.allocator.free(side);
            try testing.expectEqualStrings("what it holds", side);

            {
                const reader = try fixture.open(name);
                defer reader.close();
                var page_on_disk: [format.page_bytes]u8 = undefined;
                try reader.readPage(&page_on_disk, &fixture.fault);
                try testing.expectEqualSlices(u8, &page, &page_on_disk);
                try reader.expect(&words, &fixture.fault);
                try reader.gatherFixed(&ids, record_bytes, target, null, &fixture.fault);
                try testing.expectEqualSlices(u8, source, target);
                // A part, with words of its own block, is checked alone.
                var room: [4]store_module.Found = undefined;
                var faults: store_module.Faults = .{ .io = testing.io, .room = &room };
                const part: store_module.Range = .{ .first = 17, .count = 20, .geometry = .{ .fixed = record_bytes }, .words = .{ .expected = &words } };
                try reader.checkRecords(part, &faults, null, &fixture.fault);
                try testing.expectEqual(@as(u64, 0), faults.count);
                const cancelled: u32 = 1;
                try testing.expectError(error.Aborted, reader.checkRecords(part, &faults, &cancelled, &fixture.fault));
            }

            for (0..60) |round| {
                const record = random.uintLessThan(u64, count);
                const in_table = round % 2 == 0;
                const reader = try fixture.open(name);
                defer reader.close();
                try reader.expect(&words, &fixture.fault);
                var entry: [16]u8 = undefined;
                const table = try std.fmt.bufPrint(&path_buffer, "{s}/meta.zr", .{name});
                const meta = try fixture.tmp.dir.openFile(testing.io, table, .{});
                _ = try meta.readPositionalAll(testing.io, &entry, format.locationOffset(record));
                meta.close(testing.io);
                const location = std.mem.bytesToValue(format.Location, &entry);
                var data_path_buffer: [64]u8 = undefined;
                const path = if (in_table) table else try std.fmt.bufPrint(&data_path_buffer, "{s}/data_{d}.zr", .{ name, record % 3 });
                const at = if (in_table) format.locationOffset(record) + random.uintLessThan(u64, 16) else location.offset + random.uintLessThan(u64, location.phys_length);
                var before: [1]u8 = undefined;
                const file = try fixture.tmp.dir.openFile(testing.io, path, .{});
                _ = try file.readPositionalAll(testing.io, &before, at);
                file.close(testing.io);
                try overwrite(&fixture, path, at, &.{before[0] ^ (@as(u8, 1) << random.int(u3))});

                var room: [4]store_module.Found = undefined;
                var faults: store_module.Faults = .{ .io = testing.io, .room = &room };
                try reader.checkRecords(.{ .first = 0, .count = count, .geometry = .{ .fixed = record_bytes }, .words = .{ .expected = &words } }, &faults, null, &fixture.fault);
                try testing.expectEqual(@as(u64, 1), faults.count);
                try testing.expectEqual(@as(?u64, record), room[0].fault.record);
                const expected_place: std.meta.Tag(@TypeOf(room[0].fault.place)) = if (in_table) .meta else .data;
                try testing.expectEqual(expected_place, std.meta.activeTag(room[0].fault.place));
                try testing.expectEqual(error.Integrity, room[0].err);
                if (reader.gatherFixed(&ids, record_bytes, target, null, &fixture.fault)) |_| return error.FaultNotFound else |err| {
                    // A gather stops where a location cannot be, before it asks for the word.
                    try testing.expect(err == error.Integrity or in_table);
                }
                try testing.expectEqual(@as(?u64, record), fixture.fault.record);
                try overwrite(&fixture, path, at, &before);
            }
        }
    }
}

test "words of ragged records: every path of a gather asks for them" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const gpa = testing.allocator;
    const target = try gpa.create(PackedTarget);
    defer gpa.destroy(target);
    const geometry: store_module.RaggedGeometry = .{ .ndim = 1, .dim_bytes = 8, .item_bytes = 1 };
    // Through scratch, straight to its place, in place: first, after another, beside small ones.
    const sizes = [_]u64{ 200_000, 90_000, 3, 150_000, 60_000, 180_000, 40 };
    var bytes: std.ArrayList(u8) = .empty;
    defer bytes.deinit(gpa);
    var ends: [sizes.len]u64 = undefined;
    for (sizes, &ends, 0..) |size, *end, seed| {
        try bytes.appendSlice(gpa, std.mem.asBytes(&size));
        try bytes.resize(gpa, bytes.items.len + size);
        fill(bytes.items[bytes.items.len - size ..], seed);
        end.* = bytes.items.len;
    }
    for ([_]store_module.Codec{ .raw, .zstd }) |codec| {
        for ([_]bool{ true, false }) |map_files| {
            fixture.map_files = map_files;
            var name_buffer: [32]u8 = undefined;
            const name = try std.fmt.bufPrint(&name_buffer, "{t}-{}", .{ codec, map_files });
            const build = try fixture.create(name, codec, 2);
            try build.append(.{ .bytes = bytes.items.ptr, .ends = &ends, .record_bytes = 0, .count = sizes.len }, &fixture.fault);
            var words: [sizes.len + 1]u64 = undefined;
            var room: [4]store_module.Found = undefined;
            var faults: store_module.Faults = .{ .io = testing.io, .room = &room };
            try build.checkRecords(.{ .first = 0, .count = sizes.len, .geometry = .{ .ragged = geometry }, .words = .{ .made = &words } }, &faults, null, &fixture.fault);
            try testing.expectEqual(@as(u64, 0), faults.count);
            try build.publish(false, &.{}, &fixture.fault);
            build.close();

            const reader = try fixture.open(name);
            defer reader.close();
            try reader.expect(&words, &fixture.fault);
            var offsets: [sizes.len + 1]u64 = undefined;
            var dims: [sizes.len]u64 = undefined;
            const ids = [_]u64{ 0, 1, 2, 3, 4, 5, 6 };
            const alloc: store_module.Alloc = .{ .context = target, .call = PackedTarget.alloc };
            try reader.gatherRagged(&ids, geometry, 1 << 30, alloc, &offsets, &dims, null, &fixture.fault);
            // Each record's word in turn is of other bytes.
            for (0..sizes.len) |record| {
                words[1 + record] +%= 1;
                try reader.expect(&words, &fixture.fault);
                try testing.expectError(error.Integrity, reader.gatherRagged(&ids, geometry, 1 << 30, alloc, &offsets, &dims, null, &fixture.fault));
                try testing.expectEqual(@as(?u64, record), fixture.fault.record);
                try testing.expectEqual(@as(u32, @intCast(record % 2)), fixture.fault.place.data);
                words[1 + record] -%= 1;
            }
            // The table's word alone is not asked for; with a record's it says that the location changed.
            words[0] +%= 1;
            try reader.expect(&words, &fixture.fault);
            try reader.gatherRagged(&ids, geometry, 1 << 30, alloc, &offsets, &dims, null, &fixture.fault);
            words[4] +%= 1;
            try reader.expect(&words, &fixture.fault);
            try testing.expectError(error.Integrity, reader.gatherRagged(&ids, geometry, 1 << 30, alloc, &offsets, &dims, null, &fixture.fault));
            try testing.expect(fixture.fault.place == .meta);
        }
    }
}

test "the layout: what lies over what, and what nobody names" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var source: [10 * 100]u8 = undefined;
    fill(&source, 31);
    const build = try fixture.create("layout", .raw, 2);
    try build.append(.{ .bytes = &source, .ends = null, .record_bytes = 100, .count = 10 }, &fixture.fault);
    try build.publish(false, &.{}, &fixture.fault);
    build.close();
    const Case = struct { moved: []const struct { record: u64, offset: u64 }, over: []const u64, unused: [2]u64 };
    const cases = [_]Case{
        .{ .moved = &.{}, .over = &.{}, .unused = .{ 0, 0 } },
        // Chunks in another order, as the original may write them: nothing wrong.
        .{ .moved = &.{ .{ .record = 0, .offset = 400 }, .{ .record = 8, .offset = 0 } }, .over = &.{}, .unused = .{ 0, 0 } },
        // On the same bytes: the later record lies over the earlier one.
        .{ .moved = &.{.{ .record = 5, .offset = 100 }}, .over = &.{5}, .unused = .{ 0, 100 } },
        .{ .moved = &.{.{ .record = 2, .offset = 0 }}, .over = &.{2}, .unused = .{ 100, 0 } },
        // In part: record 0 now reaches into record 2.
        .{ .moved = &.{.{ .record = 0, .offset = 30 }}, .over = &.{2}, .unused = .{ 30, 0 } },
        // All on one place.
        .{
            .moved = &.{ .{ .record = 1, .offset = 0 }, .{ .record = 3, .offset = 0 }, .{ .record = 5, .offset = 0 }, .{ .record = 7, .offset = 0 }, .{ .record = 9, .offset = 0 } },
            .over = &.{ 3, 5, 7, 9 },
            .unused = .{ 0, 400 },
        },
        // A location that names nothing sound is for the other check.
        .{ .moved = &.{.{ .record = 4, .offset = 450 }}, .over = &.{}, .unused = .{ 100, 0 } },
    };
    for (cases) |case| {
        for (0..10) |record| {
            var location: format.Location = .{ .offset = record / 2 * 100, .phys_length = 100, .logic_length = 100 };
            for (case.moved) |moved| if (moved.record == record) {
                location.offset = moved.offset;
            };
            try overwrite(&fixture, "layout/meta.zr", format.locationOffset(record), std.mem.asBytes(&location));
        }
        const reader = try fixture.open("layout");
        defer reader.close();
        var over: [2]u8 = @splat(0);
        var unused: [2]u64 = undefined;
        var room: [8]store_module.Found = undefined;
        var faults: store_module.Faults = .{ .io = testing.io, .room = &room };
        try reader.checkLayout(&over, &unused, &faults, null, &fixture.fault);
        try testing.expectEqual(case.over.len, faults.count);
        var bits: u16 = 0;
        for (case.over, faults.list()) |record, *found| {
            bits |= @as(u16, 1) << @intCast(record);
            try testing.expectEqual(@as(?u64, record), found.fault.record);
        }
        try testing.expectEqual(bits, std.mem.readInt(u16, &over, .little));
        try testing.expectEqual(case.unused, unused);
        // What lies over others can be left out; everything else is still looked at.
        faults.count = 0;
        faults.kept = 0;
        try reader.checkRecords(.{ .first = 0, .count = 10, .geometry = .{ .fixed = 99 }, .skip = &over }, &faults, null, &fixture.fault);
        try testing.expectEqual(10 - case.over.len, faults.count);
        const cancelled: u32 = 1;
        try testing.expectError(error.Aborted, reader.checkLayout(&over, &unused, &faults, &cancelled, &fixture.fault));
    }
}

fn expectEntryCount(fixture: *Fixture, expected: usize) !void {
    var entries = fixture.tmp.dir.iterate();
    var count: usize = 0;
    while (try entries.next(testing.io)) |_| count += 1;
    try testing.expectEqual(expected, count);
}

const faulty_io = @import("testing/faulty_io.zig");

/// One whole life: build, publish durably, open, read all. What it leaves or gives is checked by the caller.
fn wholeLife(fixture: *Fixture, context: store_module.Context, path: []const u8, codec: store_module.Codec, source: []const u8) !void {
    const record_bytes = 500;
    const count = source.len / record_bytes;
    var words: [41]u64 = undefined;
    const build = try Store.create(context, .{
        .path = path,
        .codec = codec,
        .data_shards = 2,
        .schema = "the schema",
        .dict = if (codec == .zstd_dict) "common words of all records" else &.{},
    }, &fixture.fault);
    {
        defer build.close();
        try build.append(.{ .bytes = source.ptr, .ends = null, .record_bytes = record_bytes, .count = count / 2 }, &fixture.fault);
        try build.append(.{ .bytes = source.ptr + count / 2 * record_bytes, .ends = null, .record_bytes = record_bytes, .count = count - count / 2 }, &fixture.fault);
        try expectFaultless(build, count, record_bytes, .{ .made = &words }, &fixture.fault);
        try build.publish(true, std.mem.sliceAsBytes(&words), &fixture.fault);
    }
    const reader = try Store.open(context, path, &fixture.fault);
    defer reader.close();
    try reader.expect(words[0..@intCast(store_module.wordCount(0, count))], &fixture.fault);
    try expectFaultless(reader, count, record_bytes, .{ .expected = &words }, &fixture.fault);
    const target = try testing.allocator.alloc(u8, source.len);
    defer testing.allocator.free(target);
    var ids: [40]u64 = undefined;
    for (ids[0..count], 0..) |*id, i| id.* = i;
    try reader.gatherFixed(ids[0..count], record_bytes, target, null, &fixture.fault);
    try testing.expectEqualSlices(u8, source, target);
}

/// A fault that a check finds is this life's end too.
fn expectFaultless(store: *Store, count: u64, record_bytes: u64, words: verify.Words, fault: *Fault) !void {
    var room: [1]store_module.Found = undefined;
    var faults: store_module.Faults = .{ .io = testing.io, .room = &room };
    try store.checkRecords(.{ .first = 0, .count = count, .geometry = .{ .fixed = record_bytes }, .words = words }, &faults, null, fault);
    if (faults.count == 0) return;
    fault.* = room[0].fault;
    return room[0].err;
}

test "an error at every call to the disk: typed, named, nothing half built opens, the next build works" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    fixture.map_files = false; // Maps read past std.Io; their failures are map.zig's tests.
    var source: [40 * 500]u8 = undefined;
    fill(&source, 11);
    var path_buffer: [512]u8 = undefined;
    const path = fixture.path(&path_buffer, "sub/life");
    var disk: faulty_io.Disk = undefined;
    disk.init(testing.io);
    var context = fixture.context();
    context.io = disk.io();
    for ([_]store_module.Codec{ .raw, .zstd_dict }) |codec| {
        disk.arm(0, .none, false);
        try wholeLife(&fixture, context, path, codec, &source);
        const calls = disk.calls.load(.monotonic);
        try testing.expect(calls > 20);
        for (std.enums.values(faulty_io.Fault)) |kind| {
            if (kind == .none) continue;
            for ([_]bool{ false, true }) |lasting| {
                for (0..calls) |at| {
                    fixture.tmp.dir.deleteTree(testing.io, "sub") catch {};
                    disk.arm(at, kind, lasting);
                    const result = wholeLife(&fixture, context, path, codec, &source);
                    disk.arm(0, .none, false);
                    if (kind == .short) {
                        try result; // Short transfers are the system's right and are carried on with.
                        continue;
                    }
                    if (result) |_| {
                        // Only a call whose failure does not matter (a lock where there are none).
                    } else |err| {
                        try testing.expect(err == error.InputOutput or err == error.Unsupported);
                        try testing.expect(fixture.fault.message().len > 0);
                        if (err == error.InputOutput) {
                            try testing.expect(fixture.fault.os_code.len > 0);
                            try testing.expect(fixture.fault.place != .none);
                        }
                    }
                    // Whatever happened: at the path there is nothing, or everything.
                    if (Store.open(context, path, &fixture.fault)) |reader| {
                        defer reader.close();
                        try testing.expectEqual(@as(u64, 40), reader.info().record_count);
                    } else |err| {
                        try testing.expectEqual(error.NotFound, err);
                        try wholeLife(&fixture, context, path, codec, &source);
                    }
                }
            }
        }
        fixture.tmp.dir.deleteTree(testing.io, "sub") catch {};
    }
}

test "a file system without locks: readers read, a build is refused and leaves nothing" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var source: [10 * 100]u8 = undefined;
    fill(&source, 17);
    const build = try fixture.create("store", .zstd, 2);
    try build.append(.{ .bytes = &source, .ends = null, .record_bytes = 100, .count = 10 }, &fixture.fault);
    try build.publish(false, &.{}, &fixture.fault);
    build.close();
    var disk: faulty_io.Disk = undefined;
    disk.init(testing.io);
    var context = fixture.context();
    context.io = disk.io();
    var path_buffer: [512]u8 = undefined;
    for ([_]Io.File.LockError{ error.FileLocksUnsupported, error.SystemResources }) |lock_error| {
        disk.lock_error = lock_error;
        const reader = try Store.open(context, fixture.path(&path_buffer, "store"), &fixture.fault);
        defer reader.close();
        var target: [10 * 100]u8 = undefined;
        try reader.gatherFixed(&.{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 }, 100, &target, null, &fixture.fault);
        try testing.expectEqualSlices(u8, &source, &target);
        const refused = Store.create(context, .{ .path = fixture.path(&path_buffer, "another"), .codec = .raw, .data_shards = 1, .schema = "s" }, &fixture.fault);
        try testing.expectError(error.Unsupported, refused);
        try testing.expect(fixture.fault.message().len > 0);
        try expectEntryCount(&fixture, 1);
    }
}

test "no memory at any allocation: typed, nothing leaks, nothing opens" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    fixture.map_files = false;
    var source: [40 * 500]u8 = undefined;
    fill(&source, 12);
    var path_buffer: [512]u8 = undefined;
    const path = fixture.path(&path_buffer, "life");
    var disk: faulty_io.Disk = undefined;
    disk.init(testing.io);
    for ([_]store_module.Codec{ .raw, .zstd, .zstd_dict }) |codec| {
        var allocation: usize = 0;
        while (true) : (allocation += 1) {
            fixture.tmp.dir.deleteTree(testing.io, "life") catch {};
            var failing: testing.FailingAllocator = .init(testing.allocator, .{ .fail_index = allocation });
            // One lane, so that the n-th allocation is the same every time; leases are made anew.
            var pool: scratch.Pool = .init(testing.io, failing.allocator(), 0);
            defer pool.deinit();
            const alone = try std.heap.page_allocator.create(executor_module.Executor);
            defer std.heap.page_allocator.destroy(alone);
            alone.* = .init(testing.io, std.heap.page_allocator, 1);
            const context: store_module.Context = .{ .io = disk.io(), .gpa = failing.allocator(), .executor = alone, .pool = &pool, .map_files = false };
            const result = wholeLife(&fixture, context, path, codec, &source);
            if (!failing.has_induced_failure) {
                try result;
                break;
            }
            try testing.expectError(error.OutOfMemory, result);
            try testing.expect(fixture.fault.message().len > 0);
        }
        try testing.expect(allocation > 5);
    }
}

const recorded_io = @import("testing/recorded_io.zig");

/// Replays of each beginning of a build; LOADERX_POWER is for the long run.
fn powerReplays() usize {
    const text = std.mem.span(std.c.getenv("LOADERX_POWER") orelse return 3);
    return std.fmt.parseInt(usize, text, 10) catch 3;
}

test "power is lost at any call: with durable a container is complete or absent, and complete once publish returned" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    fixture.map_files = false;
    var prng: std.Random.DefaultPrng = .init(0x90_3e5);
    const random = prng.random();
    var source: [30 * 500]u8 = undefined;
    fill(&source, 21);
    var replays: usize = 0;
    var complete: usize = 0;
    for ([_]store_module.Codec{ .raw, .zstd, .zstd_dict }) |codec| {
        for ([_]bool{ true, false }) |durable| {
            var root_buffer: [512]u8 = undefined;
            const root = fixture.path(&root_buffer, "recorded");
            try fixture.tmp.dir.createDir(testing.io, "recorded", .default_dir);
            defer fixture.tmp.dir.deleteTree(testing.io, "recorded") catch {};
            var recorder: recorded_io.Recorder = undefined;
            recorder.init(testing.io, root);
            defer recorder.deinit();
            var context = fixture.context();
            context.io = recorder.io();
            var path_buffer: [512]u8 = undefined;
            {
                // Two folders above it are new: their names have to last too.
                const build = try Store.create(context, .{
                    .path = fixture.path(&path_buffer, "recorded/new/folder/store"),
                    .codec = codec,
                    .data_shards = 2,
                    .schema = "the schema",
                    .dict = if (codec == .zstd_dict) "common words of all records" else &.{},
                }, &fixture.fault);
                defer build.close();
                try build.append(.{ .bytes = &source, .ends = null, .record_bytes = 500, .count = 11 }, &fixture.fault);
                try build.append(.{ .bytes = source[11 * 500 ..].ptr, .ends = null, .record_bytes = 500, .count = 19 }, &fixture.fault);
                try build.publish(durable, "what integrity.zr holds", &fixture.fault);
            }
            var broken: usize = 0;
            const calls = recorder.calls.items.len;
            try testing.expect(calls > 20);
            // Without it the record as a whole will do, often enough.
            for (if (durable) 0 else calls..calls + 1) |count| {
                for (0..if (durable) powerReplays() else 40) |_| {
                    fixture.tmp.dir.deleteTree(testing.io, "replay") catch {};
                    try fixture.tmp.dir.createDir(testing.io, "replay", .default_dir);
                    const target = try fixture.tmp.dir.openDir(testing.io, "replay", .{});
                    defer target.close(testing.io);
                    try recorder.replay(count, random, target);
                    const outcome = readReplayed(&fixture, &source);
                    if (!durable) {
                        if (outcome) |_| {} else |_| broken += 1;
                        continue;
                    }
                    replays += 1;
                    const is_complete = try outcome;
                    if (is_complete) complete += 1;
                    if (count == calls) try testing.expect(is_complete);
                }
            }
            // What is tested here is worth something: without `durable` some come out broken.
            if (!durable) try testing.expect(broken > 0);
        }
    }
    try testing.expect(complete > 0);
    if (powerReplays() > 3) std.debug.print("{d} replays, {d} of them complete\n", .{ replays, complete });
}

/// True: all of it. False: there is no such container. An error: something else.
fn readReplayed(fixture: *Fixture, source: []const u8) !bool {
    const reader = fixture.open("replay/new/folder/store") catch |err| return if (err == error.NotFound) false else err;
    defer reader.close();
    var ids: [30]u64 = undefined;
    for (&ids, 0..) |*id, i| id.* = i;
    var target: [30 * 500]u8 = undefined;
    if (reader.info().record_count != ids.len) return error.TestUnexpectedResult;
    try reader.gatherFixed(&ids, 500, &target, null, &fixture.fault);
    if (!std.mem.eql(u8, source, &target)) return error.TestUnexpectedResult;
    var bytes: [100]u8 = undefined;
    const integrity = try fixture.tmp.dir.readFile(testing.io, "replay/new/folder/store/integrity.zr", &bytes);
    if (!std.mem.eql(u8, integrity, "what integrity.zr holds")) return error.TestUnexpectedResult;
    return true;
}

/// A container of `count` records of 64 bytes, opened.
fn openFilled(fixture: *Fixture, name: []const u8, count: u64) !*Store {
    const source = try testing.allocator.alloc(u8, @intCast(64 * count));
    defer testing.allocator.free(source);
    fill(source, 5);
    {
        const build = try fixture.create(name, .raw, 2);
        defer build.close();
        try build.append(.{ .bytes = source.ptr, .ends = null, .record_bytes = 64, .count = count }, &fixture.fault);
        try build.publish(false, &.{}, &fixture.fault);
    }
    return fixture.open(name);
}

test "a container in memory is found to be, by batches alone, until its file changes" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const reader = try openFilled(&fixture, "warm", 50_000);
    defer reader.close();
    if (reader.volume.residence == null) return error.SkipZigTest; // No maps on this system.
    try testing.expectEqual(@as(u64, 0), reader.quickBytes());
    var target: [64]u8 = undefined;
    // Each batch reports; the survey runs beside them. A bound on batches, since time says little.
    for (0..1_000_000) |turn| {
        try reader.gatherFixed(&.{turn % 50_000}, 64, &target, null, &fixture.fault);
        if (reader.quickBytes() > 0) break;
    } else return error.NeverResident;
    const map = &reader.volume.map.?;
    try testing.expectEqual(map.bytes, reader.volume.residence.?.enteredBytes());
    // A lane that had to wait for the disk takes the verdict back.
    reader.volume.residence.?.disprove();
    reader.volume.residence.?.due_ns.store(0, .monotonic); // Not to wait for it here.
    try testing.expectEqual(@as(u64, 0), reader.quickBytes());
    for (0..1_000_000) |_| {
        try reader.gatherFixed(&.{7}, 64, &target, null, &fixture.fault);
        if (reader.quickBytes() > 0) break;
        std.Thread.yield() catch {};
    } else return error.NeverResidentAgain;
    // Pages past a file's new end are not in memory, whatever was found before.
    const file = try fixture.tmp.dir.openFile(testing.io, "warm/data_1.zr", .{ .mode = .read_write });
    defer file.close(testing.io);
    try file.setLength(testing.io, 4096);
    const second = map_module.survey_bytes; // Most of data_1 lies in the second step.
    try testing.expect(!map.isInMemory(second, @min(map.bytes - second, map_module.survey_bytes)));
}

test "readers are closed at any moment of a survey" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    (try openFilled(&fixture, "closed", 100_000)).close();
    var target: [64]u8 = undefined;
    for (0..300) |round| {
        const reader = try fixture.open("closed");
        for (0..8 + round % 3) |id| try reader.gatherFixed(&.{id}, 64, &target, null, &fixture.fault);
        for (0..round * 20) |_| std.atomic.spinLoopHint();
        reader.close();
    }
}

test "few large records are written from where they lie, also when the system takes less than it is given" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    fixture.map_files = false;
    const record_bytes = 60_000;
    const count = 24;
    const source = try testing.allocator.alloc(u8, record_bytes * count);
    defer testing.allocator.free(source);
    fill(source, 17);
    const target = try testing.allocator.alloc(u8, source.len);
    defer testing.allocator.free(target);
    var ids: [count]u64 = undefined;
    for (&ids, 0..) |*id, i| id.* = i;
    var disk: faulty_io.Disk = undefined;
    disk.init(testing.io);
    var context = fixture.context();
    context.io = disk.io();
    var path_buffer: [512]u8 = undefined;
    const path = fixture.path(&path_buffer, "pieces");
    for ([_]u32{ 3, 4, 24 }) |shards| {
        for (0..60) |at| {
            fixture.tmp.dir.deleteTree(testing.io, "pieces") catch {};
            disk.arm(at, .short, at % 2 == 1);
            {
                const build = try Store.create(context, .{ .path = path, .codec = .raw, .data_shards = shards, .schema = "s" }, &fixture.fault);
                defer build.close();
                try build.append(.{ .bytes = source.ptr, .ends = null, .record_bytes = record_bytes, .count = count }, &fixture.fault);
                try build.publish(false, &.{}, &fixture.fault);
            }
            disk.arm(0, .none, false);
            const reader = try Store.open(context, path, &fixture.fault);
            defer reader.close();
            try reader.gatherFixed(&ids, record_bytes, target, null, &fixture.fault);
            try testing.expect(std.mem.eql(u8, source, target));
        }
    }
}

/// A file whose records begin behind so many bytes of something else.
const records_offset = 131;

fn writeRecords(fixture: *Fixture, name: []const u8, records: []const u8) !void {
    const file = try fixture.tmp.dir.createFile(testing.io, name, .{});
    defer file.close(testing.io);
    try file.writePositionalAll(testing.io, &@as([records_offset]u8, @splat('-')), 0);
    try file.writePositionalAll(testing.io, records, records_offset);
}

fn expectSameFiles(fixture: *Fixture, one: []const u8, other: []const u8, shards: u32) !void {
    for (0..shards + 1) |index| {
        var name_buffer: [16]u8 = undefined;
        const name = if (index == shards) "meta.zr" else try std.fmt.bufPrint(&name_buffer, "data_{d}.zr", .{index});
        var contents: [2][]u8 = undefined;
        for (&contents, [_][]const u8{ one, other }) |*bytes, folder| {
            var path_buffer: [64]u8 = undefined;
            bytes.* = try fixture.tmp.dir.readFileAlloc(testing.io, try std.fmt.bufPrint(&path_buffer, "{s}/{s}", .{ folder, name }), testing.allocator, .limited(1 << 30));
        }
        defer for (contents) |bytes| testing.allocator.free(bytes);
        errdefer std.debug.print("{s}\n", .{name});
        try testing.expectEqual(contents[0].len, contents[1].len);
        try testing.expect(std.mem.eql(u8, contents[0], contents[1]));
    }
}

test "records that are appended from a file become the files that they become from memory" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const gpa = testing.allocator;
    const window = 32_768;
    // Counts around the edges of windows and of blocks, which have 512 KiB for each shard, at most 3 MiB.
    const cases = [_]struct { u64, []const u64 }{
        .{ 1, &.{ 1, window - 1, window, window + 1, 2 * window + 5 } },
        .{ 3, &.{ 2, window + 1 } },
        .{ 784, &.{ 668, 669, 2674, 2675, window + 700 } },
        .{ 2 << 10, &.{ 255, 256, 257, 12_300 } },
        .{ 40_000, &.{ 5, 52, 53, 320 } },
        .{ 147 << 10, &.{ 1, 2, 90 } },
        .{ (512 << 10) + 1, &.{13} },
        .{ 5 << 20, &.{ 1, 3 } },
    };
    for (cases) |case| {
        const record_bytes, const counts = case;
        const most = counts[counts.len - 1];
        const source = try gpa.alloc(u8, @intCast(record_bytes * (most + 7)));
        defer gpa.free(source);
        fill(source, record_bytes);
        try writeRecords(&fixture, "records", source);
        var path_buffer: [512]u8 = undefined;
        const path = fixture.path(&path_buffer, "records");
        for (counts, 0..) |count, round| {
            for ([_]u32{ 1, 4, 255 }) |shards| {
                // One of 255 folders for each size will do.
                if (shards == 255 and round + 1 < counts.len) continue;
                errdefer std.debug.print("{d} records of {d} bytes, {d} shards\n", .{ count, record_bytes, shards });
                // Five records from memory, those of the file in two calls, and two from memory.
                const first_half = count / 2;
                for ([_][]const u8{ "memory", "file" }, 0..) |name, from_file| {
                    const build = try fixture.create(name, .raw, shards);
                    defer build.close();
                    try build.append(.{ .bytes = source.ptr, .ends = null, .record_bytes = record_bytes, .count = 5 }, &fixture.fault);
                    var at: u64 = 5;
                    for ([_]u64{ first_half, count - first_half, 2 }, 0..) |records, part| {
                        if (records == 0) continue;
                        if (from_file == 1 and part < 2) {
                            try build.appendFile(.{ .path = path, .offset = records_offset + at * record_bytes, .record_bytes = record_bytes, .count = records }, &fixture.fault);
                        } else {
                            try build.append(.{ .bytes = source.ptr + at * record_bytes, .ends = null, .record_bytes = record_bytes, .count = records }, &fixture.fault);
                        }
                        at += records;
                    }
                    try build.publish(false, &.{}, &fixture.fault);
                }
                try expectSameFiles(&fixture, "memory", "file", shards);
                for ([_][]const u8{ "memory", "file" }) |name| try fixture.tmp.dir.deleteTree(testing.io, name);
            }
        }
    }
}

test "what is no file of enough records is an error that names it, and the build is over" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var source: [1000]u8 = undefined;
    fill(&source, 3);
    try writeRecords(&fixture, "records", &source);
    try fixture.tmp.dir.createDir(testing.io, "folder", .default_dir);
    const cases = [_]struct { []const u8, u64, u64, anyerror }{
        .{ "records", records_offset, 101, error.Malformed },
        .{ "records", records_offset + 1, 100, error.Malformed },
        .{ "records", std.math.maxInt(u64), 1, error.Malformed },
        .{ "records", 0, std.math.maxInt(u64) / 8, error.Malformed },
        .{ "folder", 0, 1, error.Malformed },
        .{ "nothing", 0, 1, error.NotFound },
    };
    for (cases) |case| {
        const name, const offset, const count, const expected = case;
        const build = try fixture.create("a", .raw, 4);
        defer build.close();
        var path_buffer: [512]u8 = undefined;
        const result = build.appendFile(.{ .path = fixture.path(&path_buffer, name), .offset = offset, .record_bytes = 10, .count = count }, &fixture.fault);
        if (count > 1 << 60) {
            // So many have no table, whatever the file holds.
            try testing.expect(if (result) |_| false else |err| err == error.Malformed or err == error.TooLarge);
        } else {
            try testing.expectError(expected, result);
            try testing.expect(fixture.fault.place == .source);
        }
        try testing.expect(fixture.fault.message().len > 0);
        try testing.expectEqual(@as(u64, 0), build.info().record_count);
        try testing.expectError(error.BuildFailed, build.appendFile(.{ .path = "x", .offset = 0, .record_bytes = 1, .count = 1 }, &fixture.fault));
        try testing.expectError(error.BuildFailed, build.publish(false, &.{}, &fixture.fault));
    }
    try expectEntryCount(&fixture, 2);
}

/// A build of a file's records alone: what faults are tried on.
fn fileLife(fixture: *Fixture, context: store_module.Context, path: []const u8, from: []const u8, record_bytes: u64, count: u64) !void {
    const build = try Store.create(context, .{ .path = path, .codec = .raw, .data_shards = 3, .schema = "the schema" }, &fixture.fault);
    defer build.close();
    try build.appendFile(.{ .path = from, .offset = records_offset, .record_bytes = record_bytes, .count = count }, &fixture.fault);
    try build.publish(false, &.{}, &fixture.fault);
}

test "from a file: an error at every call to the disk is typed and names its file, short transfers are carried on with" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    const gpa = testing.allocator;
    var disk: faulty_io.Disk = undefined;
    disk.init(testing.io);
    var context = fixture.context();
    context.io = disk.io();
    var path_buffer: [512]u8 = undefined;
    const path = fixture.path(&path_buffer, "file");
    var from_buffer: [512]u8 = undefined;
    const from = fixture.path(&from_buffer, "records");
    // Packed, in pieces of a block, and of a record.
    for ([_][2]u64{ .{ 5000, 120 }, .{ 100_000, 17 }, .{ 1_600_000, 2 } }) |case| {
        const record_bytes, const count = case;
        const source = try gpa.alloc(u8, @intCast(record_bytes * count));
        defer gpa.free(source);
        fill(source, count);
        try writeRecords(&fixture, "records", source);
        {
            const build = try fixture.create("memory", .raw, 3);
            defer build.close();
            try build.append(.{ .bytes = source.ptr, .ends = null, .record_bytes = record_bytes, .count = count }, &fixture.fault);
            try build.publish(false, &.{}, &fixture.fault);
        }
        defer fixture.tmp.dir.deleteTree(testing.io, "memory") catch {};
        disk.arm(0, .none, false);
        try fileLife(&fixture, context, path, from, record_bytes, count);
        const calls = disk.calls.load(.monotonic);
        try fixture.tmp.dir.deleteTree(testing.io, "file");
        var of_source: usize = 0;
        for ([_]faulty_io.Fault{ .short, .input_output, .no_space }) |kind| {
            for (0..calls) |at| {
                disk.arm(at, kind, at % 2 == 1);
                const result = fileLife(&fixture, context, path, from, record_bytes, count);
                disk.arm(0, .none, false);
                defer fixture.tmp.dir.deleteTree(testing.io, "file") catch {};
                if (result) |_| {
                    try expectSameFiles(&fixture, "memory", "file", 3);
                } else |err| {
                    try testing.expect(kind != .short);
                    try testing.expect(err == error.InputOutput or err == error.Unsupported);
                    try testing.expect(fixture.fault.os_code.len > 0 or err == error.Unsupported);
                    try testing.expect(fixture.fault.place != .none);
                    if (fixture.fault.place == .source) of_source += 1;
                    try testing.expectError(error.NotFound, fixture.open("file"));
                }
            }
        }
        // Looked at, opened, measured, read.
        try testing.expect(of_source >= 8);
    }
}

test "from a file: one that is cut while it is read is told by its reads" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var source: [4000]u8 = undefined;
    fill(&source, 8);
    try writeRecords(&fixture, "records", &source);
    const file = try fixture.tmp.dir.openFile(testing.io, "records", .{ .mode = .read_write });
    defer file.close(testing.io);
    const append_file = @import("store/append_file.zig");
    const build = try fixture.create("a", .raw, 2);
    defer build.close();
    const cutting = struct {
        var inner: Io = undefined;
        var vtable: Io.VTable = undefined;
        fn length(userdata: ?*anyopaque, of: Io.File) Io.File.LengthError!u64 {
            const bytes = try inner.vtable.fileLength(userdata, of);
            inner.vtable.fileSetLength(userdata, of, bytes - 1) catch unreachable;
            return bytes;
        }
    };
    cutting.inner = testing.io;
    cutting.vtable = testing.io.vtable.*;
    cutting.vtable.fileLength = cutting.length;
    build.volume.io = .{ .userdata = testing.io.userdata, .vtable = &cutting.vtable };
    defer build.volume.io = testing.io;
    try testing.expectError(error.Malformed, append_file.append(&build.volume, .{ .file = file, .offset = records_offset, .record_bytes = 40, .count = 100 }, &fixture.fault));
    try testing.expect(fixture.fault.place == .source);
    try testing.expectEqual(@as(u64, 0), build.info().record_count);
}

test "from a file: no memory at any allocation is typed, and nothing leaks" {
    var fixture: Fixture = undefined;
    try fixture.init();
    defer fixture.deinit();
    var source: [60 * 5000]u8 = undefined;
    fill(&source, 12);
    try writeRecords(&fixture, "records", &source);
    var path_buffer: [512]u8 = undefined;
    const path = fixture.path(&path_buffer, "file");
    var from_buffer: [512]u8 = undefined;
    const from = fixture.path(&from_buffer, "records");
    const alone = try std.heap.page_allocator.create(executor_module.Executor);
    defer std.heap.page_allocator.destroy(alone);
    alone.* = .init(testing.io, std.heap.page_allocator, 1);
    var allocation: usize = 0;
    while (true) : (allocation += 1) {
        fixture.tmp.dir.deleteTree(testing.io, "file") catch {};
        var failing: testing.FailingAllocator = .init(testing.allocator, .{ .fail_index = allocation });
        var pool: scratch.Pool = .init(testing.io, failing.allocator(), 0);
        defer pool.deinit();
        const context: store_module.Context = .{ .io = testing.io, .gpa = failing.allocator(), .executor = alone, .pool = &pool, .map_files = false };
        const result = fileLife(&fixture, context, path, from, 5000, 60);
        if (!failing.has_induced_failure) {
            try result;
            break;
        }
        try testing.expectError(error.OutOfMemory, result);
        try testing.expect(fixture.fault.message().len > 0);
    }
    try testing.expect(allocation > 5);
}
