//! No memory at any allocation of any exported operation: OUT_OF_MEMORY, or the work is done without; what
//! was taken is given back, and the same call works afterwards. Also the memory that zstd takes by itself.
//!
//! Each exported function has a row; those that need no memory must not ask for any.

const std = @import("std");
const testing = std.testing;
const exports = @import("exports.zig");
const frame = @import("../frame.zig");
const refusing = @import("../testing/refusing.zig");

extern fn zr_abi_version() u32;
extern fn zr_executor_lanes() u32;
extern fn zr_executor_set_lanes(u32, ?*exports.CError) i32;
extern fn zr_executor_submit(*const fn (?*anyopaque) callconv(.c) void, ?*anyopaque, ?*exports.CError) i32;
extern fn zr_store_create(*const exports.CreateOptions, *?*Handle, ?*exports.CError) i32;
extern fn zr_store_append_pieces(*Handle, [*]const u8, u64, [*]const [*]const u8, [*]const u64, u64, ?*exports.CError) i32;
extern fn zr_store_append(*Handle, [*]const u8, ?[*]const u64, u64, u64, ?*exports.CError) i32;
extern fn zr_store_append_file(*Handle, [*]const u8, u64, u64, u64, u64, ?*exports.CError) i32;
extern fn zr_store_mark(*Handle) void;
extern fn zr_store_rewind(*Handle) void;
extern fn zr_store_publish(*Handle, u32, ?[*]const u8, u64, ?*exports.CError) i32;
extern fn zr_store_open([*]const u8, u64, *?*Handle, ?*exports.CError) i32;
extern fn zr_store_join([*]const *Handle, [*]const u8, u64, u32, *?*Handle, ?*exports.CError) i32;
extern fn zr_store_get_info(*const Handle, *exports.StoreInfo) void;
extern fn zr_store_gather_fixed(*Handle, [*]const u64, u64, u64, [*]u8, ?*const u32, ?*exports.CError) i32;
const Alloc = *const fn (?*anyopaque, u64) callconv(.c) ?[*]u8;
extern fn zr_store_gather_ragged(*Handle, [*]const u64, u64, *const exports.RaggedGeometry, u64, Alloc, ?*anyopaque, [*]u64, [*]u64, ?*const u32, ?*exports.CError) i32;
extern fn zr_store_quick_bytes(*const Handle) u64;
extern fn zr_store_logical_bytes(*Handle, [*]const u64, u64, [*]u64, ?*const u32, ?*exports.CError) i32;
extern fn zr_store_page(*const Handle, [*]u8, ?*exports.CError) i32;
extern fn zr_store_expect(*Handle, [*]const u64, u64, ?*exports.CError) i32;
extern fn zr_store_check_records(*Handle, *const exports.CheckOptions, [*]exports.CError, u64, *u64, ?*const u32, ?*exports.CError) i32;
extern fn zr_store_check_layout(*Handle, [*]u8, [*]u64, [*]exports.CError, u64, *u64, ?*const u32, ?*exports.CError) i32;
extern fn zr_store_close(?*Handle) void;
extern fn zr_buffer_alloc(u64, *exports.Buffer) i32;
extern fn zr_memory_prefer_large_pages([*]u8, u64) void;
extern fn zr_buffer_free(exports.Buffer) void;
extern fn zr_pad(*const exports.PadRequest, ?*exports.CError) i32;
extern fn zr_dict_train([*]const u8, [*]const u64, u64, [*]u8, u64, *u64, ?*exports.CError) i32;
extern fn zr_frame_decompress([*]const u8, u64, [*]u8, u64, *u64, ?*exports.CError) i32;
extern fn zs_sampler_create(*const exports.SamplerOptions, *?*Handle, ?*exports.CError) i32;
extern fn zs_sampler_batch(*const Handle) u64;
extern fn zs_sampler_step(*const Handle) u64;
extern fn zs_sampler_draw(*Handle, [*]u64, ?*exports.CError) i32;
extern fn zs_sampler_seek(*Handle, u64, ?*const u32, ?*exports.CError) i32;
extern fn zs_sampler_destroy(?*Handle) void;
extern "c" fn setenv([*:0]const u8, [*:0]const u8, c_int) c_int;

const Handle = opaque {};

const count = 12;
const record_bytes = 700;
const dims_bytes = 8;
const dictionary = "common words of all records, again and again";

/// Where a row's call is made: what is there before it, and what it leaves.
const World = struct {
    codec: u32,
    root: []const u8,
    path_buffer: [512]u8 = undefined,
    /// A writer or a reader.
    store: ?*Handle = null,
    /// The reader twice, as one.
    joined: ?*Handle = null,
    sampler: ?*Handle = null,
    buffer: exports.Buffer = .{ .data = null, .data_bytes = 0 },
    failure: exports.CError = undefined,
    source: [count * record_bytes]u8,
    target: [count * record_bytes]u8 = undefined,
    ids: [count]u64,
    words: [count + 1]u64 = @splat(0),
    faults: [4]exports.CError = undefined,
    numbers: [1024]u64 = undefined,

    fn path(world: *World, name: []const u8) []const u8 {
        return std.fmt.bufPrint(&world.path_buffer, "{s}/{s}", .{ world.root, name }) catch unreachable;
    }

    fn create(world: *World) i32 {
        const at = world.path("new");
        return zr_store_create(&.{
            .path = at.ptr,
            .path_bytes = at.len,
            .schema = "the schema",
            .schema_bytes = 10,
            .dict = if (world.codec == 2) dictionary else null,
            .dict_bytes = if (world.codec == 2) dictionary.len else 0,
            .codec = world.codec,
            .data_shards = 2,
        }, &world.store, &world.failure);
    }

    /// Fixed records, or the same bytes as ragged ones of one dimension.
    fn append(world: *World) i32 {
        return zr_store_append(world.store.?, &world.source, null, count, record_bytes, &world.failure);
    }

    /// The same bytes, each record as its first byte and the rest. Unsupported where that is not raw.
    fn appendPieces(world: *World) i32 {
        var headers: [count]u8 = undefined;
        var rests: [count][*]const u8 = undefined;
        var ends: [count]u64 = undefined;
        for (0..count) |i| {
            headers[i] = world.source[i * record_bytes];
            rests[i] = world.source[i * record_bytes ..][1..].ptr;
            ends[i] = (i + 1) * record_bytes;
        }
        const status = zr_store_append_pieces(world.store.?, &headers, 1, &rests, &ends, count, &world.failure);
        const refused = @backingInt(exports.Status.unsupported);
        return if (world.codec != 0 and status == refused) 0 else status;
    }

    /// Of a build that is raw; there is nothing to do for another.
    fn appendFile(world: *World) i32 {
        if (world.codec != 0) return 0;
        const at = world.path("records");
        return zr_store_append_file(world.store.?, at.ptr, at.len, 0, record_bytes, count, &world.failure);
    }

    fn open(world: *World) i32 {
        const at = world.path("old");
        return zr_store_open(at.ptr, at.len, &world.store, &world.failure);
    }

    fn close(world: *World) void {
        zr_store_close(world.joined);
        world.joined = null;
        zr_store_close(world.store);
        world.store = null;
        zs_sampler_destroy(world.sampler);
        world.sampler = null;
        zr_buffer_free(world.buffer);
        world.buffer = .{ .data = null, .data_bytes = 0 };
        // Leases are kept for the next call: here they would look like a leak.
        exports.Process.get().pool.deinit();
    }

    fn ok(status: i32) !void {
        try testing.expectEqual(@as(i32, 0), status);
    }

    // ---- what is there before ----

    fn nothing(_: *World) !void {}
    fn created(world: *World) !void {
        try ok(world.create());
    }
    fn appended(world: *World) !void {
        try ok(world.create());
        try ok(world.append());
    }
    fn opened(world: *World) !void {
        try ok(world.open());
    }
    fn sampled(world: *World) !void {
        try ok(world.createSampler());
    }
    fn buffered(world: *World) !void {
        try ok(world.allocBuffer());
    }

    // ---- the calls ----

    fn facts(world: *World) i32 {
        const version = zr_abi_version();
        return if (version == exports.abi_version and zr_executor_lanes() == 1) 0 else world.failure.status;
    }
    fn join(world: *World) i32 {
        const status = zr_store_join(&.{ world.store.?, world.store.? }, &.{ 0, 0 }, 2, 0, &world.joined, &world.failure);
        if (status != 0) return status;
        return zr_store_gather_fixed(world.joined.?, &world.ids, count, record_bytes, &world.target, null, &world.failure);
    }
    fn setLanes(world: *World) i32 {
        return zr_executor_set_lanes(1, &world.failure);
    }
    fn markAndRewind(world: *World) i32 {
        zr_store_mark(world.store.?);
        zr_store_rewind(world.store.?);
        return 0;
    }
    fn publish(world: *World) i32 {
        return zr_store_publish(world.store.?, exports.publish_durable, "integrity", 9, &world.failure);
    }
    fn getInfo(world: *World) i32 {
        var info: exports.StoreInfo = undefined;
        zr_store_get_info(world.store.?, &info);
        return if (info.record_count == count) 0 else -1;
    }
    fn gatherFixed(world: *World) i32 {
        @memset(&world.target, 0);
        const status = zr_store_gather_fixed(world.store.?, &world.ids, count, record_bytes, &world.target, null, &world.failure);
        if (status == 0 and !std.mem.eql(u8, &world.source, &world.target)) return -100;
        return status;
    }
    fn gatherRagged(world: *World) i32 {
        const geometry: exports.RaggedGeometry = .{ .ndim = 1, .dim_bytes = dims_bytes, .item_bytes = 1 };
        var dims: [count]u64 = undefined;
        const status = zr_store_gather_ragged(world.store.?, &world.ids, count, &geometry, 1 << 30, allocTarget, world, &world.numbers, &dims, null, &world.failure);
        if (status != 0) return status;
        for (dims) |dim| if (dim != record_bytes - dims_bytes) return -100;
        return 0;
    }
    fn allocTarget(context: ?*anyopaque, bytes: u64) callconv(.c) ?[*]u8 {
        const world: *World = @ptrCast(@alignCast(context));
        if (zr_buffer_alloc(bytes, &world.buffer) != 0) return null;
        return world.buffer.data;
    }
    fn quickBytes(world: *World) i32 {
        _ = zr_store_quick_bytes(world.store.?);
        return 0;
    }
    fn logicalBytes(world: *World) i32 {
        return zr_store_logical_bytes(world.store.?, &world.ids, count, &world.numbers, null, &world.failure);
    }
    fn page(world: *World) i32 {
        return zr_store_page(world.store.?, &world.target, &world.failure);
    }
    fn expect(world: *World) i32 {
        return zr_store_expect(world.store.?, &world.words, count + 1, &world.failure);
    }
    fn checkRecords(world: *World) i32 {
        var found: u64 = 0;
        const options: exports.CheckOptions = .{
            .first = 0,
            .count = count,
            .record_bytes = record_bytes,
            .geometry = null,
            .words = &world.words,
            .skip = null,
            .words_use = @backingInt(exports.WordsUse.make),
            .reserved = 0,
        };
        const status = zr_store_check_records(world.store.?, &options, &world.faults, world.faults.len, &found, null, &world.failure);
        return if (status == 0 and found > 0) world.faults[0].status else status;
    }
    fn checkLayout(world: *World) i32 {
        var over: [2]u8 = @splat(0);
        var found: u64 = 0;
        const status = zr_store_check_layout(world.store.?, &over, &world.numbers, &world.faults, world.faults.len, &found, null, &world.failure);
        return if (status == 0 and found > 0) world.faults[0].status else status;
    }
    fn closeStore(world: *World) i32 {
        zr_store_close(world.store);
        world.store = null;
        return 0;
    }
    fn allocBuffer(world: *World) i32 {
        world.failure.message[0] = 'x'; // It has no error to fill: the status says it all.
        return zr_buffer_alloc(3 << 20, &world.buffer);
    }
    fn preferLargePages(world: *World) i32 {
        zr_memory_prefer_large_pages(world.buffer.data.?, world.buffer.data_bytes);
        return 0;
    }
    fn freeBuffer(world: *World) i32 {
        zr_buffer_free(world.buffer);
        world.buffer = .{ .data = null, .data_bytes = 0 };
        return 0;
    }
    fn padRecords(world: *World) i32 {
        const dims = [_]u64{ 3, 5 };
        const sizes = [_]u64{6};
        var mask: [12]u8 = undefined;
        return zr_pad(&.{
            .values = &world.source,
            .values_bytes = 8,
            .dims = &dims,
            .record_count = 2,
            .sizes = &sizes,
            .item = "\x00",
            .item_bytes = 1,
            .target = &world.target,
            .target_bytes = 12,
            .mask = &mask,
            .mask_bytes = mask.len,
            .ndim = 1,
            .reserved = 0,
        }, &world.failure);
    }
    fn train(world: *World) i32 {
        var sizes: [count * 10]u64 = @splat(record_bytes / 10);
        var dict_bytes: u64 = 0;
        return zr_dict_train(&world.source, &sizes, sizes.len, &world.target, 2048, &dict_bytes, &world.failure);
    }
    fn decompress(world: *World) i32 {
        var written: u64 = 0;
        const status = zr_frame_decompress(frame.hello_frame, frame.hello_frame.len, &world.target, 5, &written, &world.failure);
        return if (status == 0 and written != 5) -100 else status;
    }
    fn createSampler(world: *World) i32 {
        const options: exports.SamplerOptions = .{ .length = 100, .batch_size = 10, .seed = 1, .mode = 2, .stream = 24 };
        return zs_sampler_create(&options, &world.sampler, &world.failure);
    }
    fn useSampler(world: *World) i32 {
        const sampler = world.sampler.?;
        if (zs_sampler_batch(sampler) != 10) return -100;
        const drawn = zs_sampler_draw(sampler, &world.numbers, &world.failure);
        if (drawn != 0) return drawn;
        if (zs_sampler_step(sampler) != 1) return -100;
        return zs_sampler_seek(sampler, 7, null, &world.failure);
    }
    fn destroySampler(world: *World) i32 {
        zs_sampler_destroy(world.sampler);
        world.sampler = null;
        return 0;
    }
};

const Row = struct {
    names: []const []const u8,
    before: *const fn (*World) anyerror!void,
    call: *const fn (*World) i32,
    /// Most calls need memory, in some codec at least; these must not ask for any.
    takes_none: bool = false,
    /// No store is part of it, so that it is tried once.
    is_alone: bool = false,
};

const rows = [_]Row{
    .{ .names = &.{ "zr_abi_version", "zr_executor_lanes" }, .before = World.nothing, .call = World.facts, .takes_none = true, .is_alone = true },
    .{ .names = &.{"zr_executor_set_lanes"}, .before = World.nothing, .call = World.setLanes, .takes_none = true, .is_alone = true },
    .{ .names = &.{"zr_store_create"}, .before = World.nothing, .call = World.create },
    .{ .names = &.{"zr_store_append"}, .before = World.created, .call = World.append },
    .{ .names = &.{"zr_store_append_pieces"}, .before = World.created, .call = World.appendPieces },
    .{ .names = &.{"zr_store_append_file"}, .before = World.created, .call = World.appendFile },
    .{ .names = &.{ "zr_store_mark", "zr_store_rewind" }, .before = World.appended, .call = World.markAndRewind, .takes_none = true },
    .{ .names = &.{"zr_store_publish"}, .before = World.appended, .call = World.publish, .takes_none = true },
    .{ .names = &.{"zr_store_open"}, .before = World.nothing, .call = World.open },
    .{ .names = &.{"zr_store_join"}, .before = World.opened, .call = World.join },
    .{ .names = &.{"zr_store_get_info"}, .before = World.opened, .call = World.getInfo, .takes_none = true },
    .{ .names = &.{"zr_store_gather_fixed"}, .before = World.opened, .call = World.gatherFixed },
    .{ .names = &.{"zr_store_gather_ragged"}, .before = World.opened, .call = World.gatherRagged },
    .{ .names = &.{"zr_store_quick_bytes"}, .before = World.opened, .call = World.quickBytes, .takes_none = true },
    .{ .names = &.{"zr_store_logical_bytes"}, .before = World.opened, .call = World.logicalBytes, .takes_none = true },
    .{ .names = &.{"zr_store_page"}, .before = World.opened, .call = World.page, .takes_none = true },
    .{ .names = &.{"zr_store_expect"}, .before = World.opened, .call = World.expect },
    .{ .names = &.{"zr_store_check_records"}, .before = World.opened, .call = World.checkRecords },
    .{ .names = &.{"zr_store_check_layout"}, .before = World.opened, .call = World.checkLayout },
    .{ .names = &.{"zr_store_close"}, .before = World.opened, .call = World.closeStore, .takes_none = true },
    .{ .names = &.{"zr_buffer_alloc"}, .before = World.nothing, .call = World.allocBuffer, .is_alone = true },
    .{ .names = &.{"zr_memory_prefer_large_pages"}, .before = World.buffered, .call = World.preferLargePages, .takes_none = true, .is_alone = true },
    .{ .names = &.{"zr_buffer_free"}, .before = World.buffered, .call = World.freeBuffer, .takes_none = true, .is_alone = true },
    .{ .names = &.{"zr_pad"}, .before = World.nothing, .call = World.padRecords, .takes_none = true, .is_alone = true },
    .{ .names = &.{"zr_dict_train"}, .before = World.nothing, .call = World.train, .is_alone = true },
    .{ .names = &.{"zr_frame_decompress"}, .before = World.nothing, .call = World.decompress, .is_alone = true },
    .{ .names = &.{"zs_sampler_create"}, .before = World.nothing, .call = World.createSampler, .is_alone = true },
    .{ .names = &.{ "zs_sampler_batch", "zs_sampler_step", "zs_sampler_draw", "zs_sampler_seek" }, .before = World.sampled, .call = World.useSampler, .takes_none = true, .is_alone = true },
    .{ .names = &.{"zs_sampler_destroy"}, .before = World.sampled, .call = World.destroySampler, .takes_none = true, .is_alone = true },
};

/// In a test of its own: what it takes lives as long as a lane.
const elsewhere = "zr_executor_submit";

test "every exported function is in the table" {
    const source = @embedFile("exports.zig");
    var named: usize = 1; // `elsewhere`
    for (rows) |row| {
        for (row.names) |name| {
            var buffer: [96]u8 = undefined;
            const text = try std.fmt.bufPrint(&buffer, "\nexport fn {s}(", .{name});
            try testing.expectEqual(@as(usize, 1), std.mem.count(u8, source, text));
            named += 1;
        }
    }
    try testing.expect(std.mem.indexOf(u8, source, "\nexport fn " ++ elsewhere ++ "(") != null);
    try testing.expectEqual(std.mem.count(u8, source, "\nexport fn "), named);
}

test "no memory at any allocation of any exported operation" {
    exports.memory_in_tests = refusing.allocator;
    var tmp = testing.tmpDir(.{ .iterate = true });
    defer tmp.cleanup();
    var root_buffer: [256]u8 = undefined;
    const root = root_buffer[0..try tmp.dir.realPath(testing.io, &root_buffer)];
    try World.ok(zr_executor_set_lanes(1, null)); // All on this thread, in one order.

    const world = try testing.allocator.create(World);
    defer testing.allocator.destroy(world);
    var refused: [rows.len]usize = @splat(0);
    for ([_][*:0]const u8{ "1", "0" }) |maps| {
        _ = setenv("LOADERX_MAP", maps, 1);
        for (0..3) |codec| {
            world.* = .{ .codec = @intCast(codec), .root = root, .source = undefined, .ids = undefined };
            for (&world.ids, 0..) |*id, i| id.* = i;
            for (0..count) |record| {
                const bytes = world.source[record * record_bytes ..][0..record_bytes];
                for (bytes, 0..) |*byte, i| byte.* = @truncate(i / 9 * (record + 3) + i % 5);
                std.mem.writeInt(u64, bytes[0..8], record_bytes - dims_bytes, .little);
            }
            try tmp.dir.writeFile(testing.io, .{ .sub_path = "records", .data = &world.source });
            tmp.dir.deleteTree(testing.io, "old") catch {};
            try World.appended(world);
            try World.ok(world.publish());
            world.close();
            try tmp.dir.rename("new", tmp.dir, "old", testing.io);

            for (&rows, &refused) |row, *times| {
                if (row.is_alone and (codec > 0 or maps[0] == '0')) continue;
                for ([_]bool{ false, true }) |lasting| times.* += try refuseEach(row, world, tmp.dir, lasting);
            }
        }
    }
    _ = setenv("LOADERX_MAP", "1", 1);
    for (&rows, refused) |row, times| {
        if (times > 0 and row.takes_none) return error.TakesMemory;
        if (times == 0 and !row.takes_none) return error.TakesNoMemory;
    }
}

/// How many allocations were refused. `lasting`: all later ones too.
fn refuseEach(row: Row, world: *World, folder: std.Io.Dir, lasting: bool) !usize {
    errdefer std.debug.print("{s}, codec {d}, lasting {}\n", .{ row.names[0], world.codec, lasting });
    const held_before = refusing.heldBytes();
    var at: usize = 0;
    while (true) : (at += 1) {
        errdefer std.debug.print("allocation {d}\n", .{at});
        try row.before(world);
        world.failure.message[0] = 0;
        refusing.arm(at, lasting);
        const status = row.call(world);
        const seen = refusing.disarm();
        if (status != 0) {
            try testing.expect(seen.refusals > 0);
            try testing.expectEqual(@backingInt(exports.Status.out_of_memory), status);
            try testing.expect(world.failure.message[0] != 0);
        }
        world.close();
        folder.deleteTree(testing.io, "new") catch {};
        try testing.expectEqual(held_before, refusing.heldBytes());
        if (seen.refusals == 0) {
            try testing.expectEqual(@as(i32, 0), status);
            return at;
        }
        // It was for want of memory alone.
        try row.before(world);
        try World.ok(row.call(world));
        world.close();
        folder.deleteTree(testing.io, "new") catch {};
        try testing.expectEqual(held_before, refusing.heldBytes());
    }
}

var submitted_runs: std.atomic.Value(u32) = .init(0);

fn submittedRun(_: ?*anyopaque) callconv(.c) void {
    _ = submitted_runs.fetchAdd(1, .release);
}

test "no memory for work on a lane" {
    exports.memory_in_tests = refusing.allocator;
    var at: u32 = 0;
    while (true) : (at += 1) {
        var failure: exports.CError = undefined;
        refusing.arm(at, true);
        const status = zr_executor_submit(submittedRun, null, &failure);
        const seen = refusing.disarm();
        if (seen.refusals == 0) break;
        try testing.expectEqual(@backingInt(exports.Status.out_of_memory), status);
        try testing.expect(failure.message[0] != 0);
        try testing.expectEqual(@as(u32, 0), submitted_runs.load(.acquire));
    }
    try testing.expect(at > 0);
    while (submitted_runs.load(.acquire) == 0) std.Thread.yield() catch {};
}
