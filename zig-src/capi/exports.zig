//! C to Zig types and errors to statuses; no decisions. The contract is `zrecord.h`.
//!
//! The process has one executor, one pool of lane memory and one way to do I/O. They are made at the
//! first call that needs them and live as long as the process.

const std = @import("std");
const builtin = @import("builtin");
const Io = std.Io;
const store_module = @import("../store.zig");
const FileSizeLimit = @import("../signals.zig").FileSizeLimit;
const executor_module = @import("../executor.zig");
const topology = @import("../topology.zig");
const dict = @import("../dict.zig");
const frame = @import("../frame.zig");
const buffer = @import("../buffer.zig");
const pad = @import("../pad.zig");
const sampler_module = @import("../sampler.zig");
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;
const Store = store_module.Store;
const Sampler = sampler_module.Sampler;

/// Whose memory it is. Tests set theirs before the first call, and see it refused.
fn memory() std.mem.Allocator {
    return if (builtin.is_test) memory_in_tests else std.heap.c_allocator;
}

pub var memory_in_tests: std.mem.Allocator = std.heap.c_allocator;

pub const abi_version = 7;
pub const no_record = std.math.maxInt(u64);
pub const no_shard = std.math.maxInt(u32);
pub const no_part = std.math.maxInt(u32);

pub const Status = enum(i32) {
    ok = 0,
    out_of_memory = -1,
    exists = -2,
    not_found = -3,
    locked = -4,
    malformed = -5,
    io = -6,
    codec = -7,
    out_of_range = -8,
    too_large = -9,
    build_failed = -10,
    unexpected = -11,
    not_published = -12,
    dictionary = -13,
    aborted = -14,
    unsupported = -15,
    integrity = -16,

    fn of(err: Error) Status {
        return switch (err) {
            error.OutOfMemory => .out_of_memory,
            error.Exists => .exists,
            error.NotFound => .not_found,
            error.Locked => .locked,
            error.Malformed => .malformed,
            error.InputOutput => .io,
            error.Codec => .codec,
            error.OutOfRange => .out_of_range,
            error.TooLarge => .too_large,
            error.BuildFailed => .build_failed,
            error.NotPublished => .not_published,
            error.Dictionary => .dictionary,
            error.Aborted => .aborted,
            error.Unsupported => .unsupported,
            error.Integrity => .integrity,
            error.Unexpected => .unexpected,
        };
    }
};

pub const FileKind = enum(u32) { none = 0, folder = 1, meta = 2, data = 3, dict = 4, integrity = 5, source = 6 };

pub const CError = extern struct {
    status: i32,
    file_kind: u32,
    shard_index: u32,
    part_index: u32,
    record_id: u64,
    os_code: [24]u8,
    message: [256]u8,
};

/// Copies a failure out and gives its status.
fn report(err: Error, fault: *const Fault, error_out: ?*CError) i32 {
    const status = @backingInt(Status.of(err));
    const out = error_out orelse return status;
    out.* = .{
        .status = status,
        .file_kind = @backingInt(@as(FileKind, switch (fault.place) {
            .none => .none,
            .folder => .folder,
            .meta => .meta,
            .data => .data,
            .dict => .dict,
            .integrity => .integrity,
            .source => .source,
        })),
        .shard_index = if (fault.place == .data) fault.place.data else no_shard,
        .part_index = fault.part orelse no_part,
        .record_id = fault.record orelse no_record,
        .os_code = @splat(0),
        .message = @splat(0),
    };
    const os_bytes = @min(fault.os_code.len, out.os_code.len - 1);
    @memcpy(out.os_code[0..os_bytes], fault.os_code[0..os_bytes]);
    const message = fault.message();
    const message_bytes = @min(message.len, out.message.len - 1);
    @memcpy(out.message[0..message_bytes], message[0..message_bytes]);
    return status;
}

// ---- the process ----

pub const Process = struct {
    executor: executor_module.Executor,
    pool: store_module.Pool,

    var instance: Process = undefined;
    var state: std.atomic.Value(State) = .init(.none);
    const State = enum(u32) { none, making, made };

    /// Installs no signal handlers and makes no threads; thread-safe for files, locks and conditions.
    fn io() Io {
        return Io.Threaded.global_single_threaded.io();
    }

    pub fn get() *Process {
        if (state.load(.acquire) == .made) return &instance;
        if (state.cmpxchgStrong(.none, .making, .acquire, .acquire) == null) {
            const lanes = lanesFromEnvironment() orelse topology.laneCount(io());
            instance = .{
                .executor = .init(io(), memory(), lanes),
                // Callers and lanes may hold a lease each; more than that is a burst.
                .pool = .init(io(), memory(), lanes + 2),
            };
            state.store(.made, .release);
        }
        while (state.load(.acquire) != .made) std.Thread.yield() catch {};
        return &instance;
    }

    fn context() store_module.Context {
        const process = get();
        return .{ .io = io(), .gpa = memory(), .executor = &process.executor, .pool = &process.pool, .map_files = mapsFromEnvironment() };
    }

    /// Asked at every open, so that a benchmark can compare both ways.
    fn mapsFromEnvironment() bool {
        const text = std.mem.span(std.c.getenv("LOADERX_MAP") orelse return true);
        return !std.mem.eql(u8, text, "0");
    }

    fn lanesFromEnvironment() ?u32 {
        const text = std.mem.span(std.c.getenv("LOADERX_LANES") orelse return null);
        const lanes = std.fmt.parseInt(u32, text, 10) catch return null;
        if (lanes < 1 or lanes > executor_module.lanes_max) return null;
        return lanes;
    }
};

export fn zr_abi_version() u32 {
    return abi_version;
}

export fn zr_executor_lanes() u32 {
    return Process.get().executor.lanes();
}

export fn zr_executor_set_lanes(lane_count: u32, error_out: ?*CError) i32 {
    if (lane_count < 1 or lane_count > executor_module.lanes_max) {
        var fault: Fault = .{};
        const err = fault.fail(error.OutOfRange, .none, "{d} lanes; must be 1 .. {d}", .{ lane_count, executor_module.lanes_max });
        return report(err, &fault, error_out);
    }
    Process.get().executor.setLanes(lane_count);
    return 0;
}

export fn zr_executor_submit(run: *const fn (?*anyopaque) callconv(.c) void, context: ?*anyopaque, error_out: ?*CError) i32 {
    Process.get().executor.submit(run, context) catch {
        var fault: Fault = .{};
        const err = fault.fail(error.OutOfMemory, .none, "no memory or no thread for a lane", .{});
        return report(err, &fault, error_out);
    };
    return 0;
}

// ---- store ----

pub const CreateOptions = extern struct {
    path: [*]const u8,
    path_bytes: u64,
    schema: [*]const u8,
    schema_bytes: u64,
    dict: ?[*]const u8,
    dict_bytes: u64,
    codec: u32,
    data_shards: u32,
};

pub const StoreInfo = extern struct {
    record_count: u64,
    stored_bytes: u64,
    dict_bytes: u64,
    schema: [*]const u8,
    schema_bytes: u32,
    codec: u32,
    data_shards: u32,
    reserved: u32,
};

pub const RaggedGeometry = extern struct {
    ndim: u32,
    dim_bytes: u32,
    item_bytes: u64,
};

export fn zr_store_create(options: *const CreateOptions, store_out: *?*Store, error_out: ?*CError) i32 {
    store_out.* = null;
    var fault: Fault = .{};
    const limit: FileSizeLimit = .hold();
    defer limit.release();
    store_out.* = Store.create(Process.context(), .{
        .path = options.path[0..@intCast(options.path_bytes)],
        .codec = @fromBackingInt(@intCast(options.codec)),
        .data_shards = options.data_shards,
        .schema = options.schema[0..@intCast(options.schema_bytes)],
        .dict = if (options.dict) |bytes| bytes[0..@intCast(options.dict_bytes)] else &.{},
    }, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_append(store: *Store, records: [*]const u8, ends: ?[*]const u64, record_count: u64, record_bytes: u64, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    const spans: store_module.Spans = .{ .bytes = records, .ends = ends, .record_bytes = record_bytes, .count = record_count };
    const limit: FileSizeLimit = .hold();
    defer limit.release();
    store.append(spans, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_append_pieces(store: *Store, headers: [*]const u8, header_bytes: u64, rests: [*]const [*]const u8, ends: [*]const u64, record_count: u64, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    if (store.volume.codec != .raw) {
        const err = fault.fail(error.Unsupported, .none, "records in pieces are appended raw", .{});
        return report(err, &fault, error_out);
    }
    const spans: store_module.Spans = .{ .bytes = headers, .ends = ends, .record_bytes = 0, .count = record_count, .rests = rests, .header_bytes = header_bytes };
    const limit: FileSizeLimit = .hold();
    defer limit.release();
    store.append(spans, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_append_file(store: *Store, path: [*]const u8, path_bytes: u64, offset_bytes: u64, record_bytes: u64, record_count: u64, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    const limit: FileSizeLimit = .hold();
    defer limit.release();
    store.appendFile(.{
        .path = path[0..@intCast(path_bytes)],
        .offset = offset_bytes,
        .record_bytes = record_bytes,
        .count = record_count,
    }, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_mark(store: *Store) void {
    store.mark();
}

export fn zr_store_rewind(store: *Store) void {
    store.rewind();
}

pub const publish_durable: u32 = 1;

export fn zr_store_publish(store: *Store, flags: u32, integrity: ?[*]const u8, integrity_bytes: u64, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    const side: []const u8 = if (integrity) |bytes| bytes[0..@intCast(integrity_bytes)] else &.{};
    const limit: FileSizeLimit = .hold();
    defer limit.release();
    store.publish(flags & publish_durable != 0, side, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_open(path: [*]const u8, path_bytes: u64, store_out: *?*Store, error_out: ?*CError) i32 {
    store_out.* = null;
    var fault: Fault = .{};
    store_out.* = Store.open(Process.context(), path[0..@intCast(path_bytes)], &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_join(members: [*]const *Store, dim_bytes: [*]const u8, member_count: u64, ndim: u32, store_out: *?*Store, error_out: ?*CError) i32 {
    store_out.* = null;
    var fault: Fault = .{};
    const count: usize = @intCast(member_count);
    store_out.* = Store.join(Process.context(), members[0..count], dim_bytes[0..count], ndim, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_get_info(store: *const Store, info_out: *StoreInfo) void {
    const info = store.info();
    info_out.* = .{
        .record_count = info.record_count,
        .stored_bytes = info.stored_bytes,
        .dict_bytes = info.dict_bytes,
        .schema = info.schema.ptr,
        .schema_bytes = @intCast(info.schema.len),
        .codec = @backingInt(info.codec),
        .data_shards = info.data_shards,
        .reserved = 0,
    };
}

export fn zr_store_gather_fixed(store: *Store, ids: [*]const u64, id_count: u64, record_bytes: u64, target: [*]u8, cancel: ?*const u32, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    const bytes: usize = @intCast(id_count * record_bytes); // The target exists, so the product does not wrap.
    store.gatherFixed(ids[0..@intCast(id_count)], record_bytes, target[0..bytes], cancel, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_gather_ragged(
    store: *Store,
    ids: [*]const u64,
    id_count: u64,
    geometry: *const RaggedGeometry,
    payload_bytes_max: u64,
    alloc: *const fn (?*anyopaque, u64) callconv(.c) ?[*]u8,
    alloc_context: ?*anyopaque,
    offsets_out: [*]u64,
    dims_out: [*]u64,
    cancel: ?*const u32,
    error_out: ?*CError,
) i32 {
    var fault: Fault = .{};
    const count: usize = @intCast(id_count);
    store.gatherRagged(
        ids[0..count],
        .{ .ndim = geometry.ndim, .dim_bytes = geometry.dim_bytes, .item_bytes = geometry.item_bytes },
        payload_bytes_max,
        .{ .context = alloc_context, .call = alloc },
        offsets_out[0 .. count + 1],
        dims_out[0 .. count * geometry.ndim],
        cancel,
        &fault,
    ) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_quick_bytes(store: *const Store) u64 {
    return store.quickBytes();
}

export fn zr_store_logical_bytes(store: *Store, ids: [*]const u64, id_count: u64, bytes_out: [*]u64, cancel: ?*const u32, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    const count: usize = @intCast(id_count);
    store.logicalBytes(ids[0..count], bytes_out[0..count], cancel, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_page(store: *const Store, page_out: *[store_module.page_bytes]u8, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    store.readPage(page_out, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

export fn zr_store_expect(store: *Store, words: [*]const u64, word_count: u64, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    store.expect(words[0..@intCast(word_count)], &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

pub const WordsUse = enum(u32) { none = 0, compare = 1, make = 2 };

pub const CheckOptions = extern struct {
    first: u64,
    count: u64,
    record_bytes: u64,
    geometry: ?*const RaggedGeometry,
    words: ?[*]u64,
    skip: ?[*]const u8,
    words_use: u32,
    reserved: u32,
};

/// What a check found, in the caller's memory.
const FaultSink = struct {
    faults: store_module.Faults,
    out: [*]CError,

    /// Null: no memory.
    fn init(out: [*]CError, room: u64) ?FaultSink {
        const found = memory().alloc(store_module.Found, @intCast(room)) catch return null;
        return .{ .faults = .{ .io = Process.io(), .room = found }, .out = out };
    }

    fn deliver(sink: *const FaultSink, count_out: *u64) void {
        for (sink.faults.list(), 0..) |*found, i| _ = report(found.err, &found.fault, &sink.out[i]);
        count_out.* = sink.faults.count;
    }

    fn deinit(sink: *FaultSink) void {
        memory().free(sink.faults.room);
    }
};

export fn zr_store_check_records(store: *Store, options: *const CheckOptions, faults_out: [*]CError, faults_max: u64, fault_count_out: *u64, cancel: ?*const u32, error_out: ?*CError) i32 {
    fault_count_out.* = 0;
    var fault: Fault = .{};
    var sink = FaultSink.init(faults_out, faults_max) orelse return report(fault.outOfMemory("faults", faults_max), &fault, error_out);
    defer sink.deinit();
    const words: []u64 = if (options.words) |words| words[0..@intCast(store_module.wordCount(options.first, options.count))] else &.{};
    store.checkRecords(.{
        .first = options.first,
        .count = options.count,
        .geometry = if (options.geometry) |geometry|
            .{ .ragged = .{ .ndim = geometry.ndim, .dim_bytes = geometry.dim_bytes, .item_bytes = geometry.item_bytes } }
        else
            .{ .fixed = options.record_bytes },
        .words = switch (@as(WordsUse, @fromBackingInt(options.words_use))) {
            .none => .none,
            .compare => .{ .expected = words },
            .make => .{ .made = words },
        },
        .skip = if (options.skip) |bits| bits[0..@intCast((options.count + 7) / 8)] else null,
    }, &sink.faults, cancel, &fault) catch |err| return report(err, &fault, error_out);
    sink.deliver(fault_count_out);
    return 0;
}

export fn zr_store_check_layout(store: *Store, over_out: [*]u8, unused_out: [*]u64, faults_out: [*]CError, faults_max: u64, fault_count_out: *u64, cancel: ?*const u32, error_out: ?*CError) i32 {
    fault_count_out.* = 0;
    var fault: Fault = .{};
    var sink = FaultSink.init(faults_out, faults_max) orelse return report(fault.outOfMemory("faults", faults_max), &fault, error_out);
    defer sink.deinit();
    const info = store.info();
    const over = over_out[0..@intCast((info.record_count + 7) / 8)];
    store.checkLayout(over, unused_out[0..info.data_shards], &sink.faults, cancel, &fault) catch |err| return report(err, &fault, error_out);
    sink.deliver(fault_count_out);
    return 0;
}

export fn zr_store_close(store: ?*Store) void {
    if (store) |open| open.close();
}

// ---- memory ----

pub const Buffer = extern struct {
    data: ?[*]align(buffer.alignment) u8,
    data_bytes: u64,
};

export fn zr_buffer_alloc(data_bytes: u64, buffer_out: *Buffer) i32 {
    buffer_out.* = .{ .data = null, .data_bytes = 0 };
    const bytes = buffer.alloc(memory(), data_bytes) catch return @backingInt(Status.out_of_memory);
    buffer_out.* = .{ .data = bytes.ptr, .data_bytes = bytes.len };
    return 0;
}

export fn zr_memory_prefer_large_pages(data: [*]u8, data_bytes: u64) void {
    buffer.preferLargePages(data[0..@intCast(data_bytes)]);
}

export fn zr_buffer_free(owned: Buffer) void {
    if (owned.data) |data| buffer.free(memory(), data[0..@intCast(owned.data_bytes)]);
}

// ---- padding ----

pub const PadRequest = extern struct {
    values: [*]const u8,
    values_bytes: u64,
    dims: [*]const u64,
    record_count: u64,
    sizes: [*]const u64,
    item: [*]const u8,
    item_bytes: u64,
    target: [*]u8,
    target_bytes: u64,
    mask: [*]u8,
    mask_bytes: u64,
    ndim: u32,
    reserved: u32,
};

export fn zr_pad(request: *const PadRequest, error_out: ?*CError) i32 {
    var fault: Fault = .{};
    pad.pad(.{
        .values = request.values[0..@intCast(request.values_bytes)],
        .dims = request.dims[0..@intCast(request.record_count * request.ndim)],
        .record_count = @intCast(request.record_count),
        .sizes = request.sizes[0..request.ndim],
        .item = request.item[0..@intCast(request.item_bytes)],
        .target = request.target[0..@intCast(request.target_bytes)],
        .mask = request.mask[0..@intCast(request.mask_bytes)],
    }, &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

// ---- dictionary ----

export fn zr_dict_train(samples: [*]const u8, sample_bytes: [*]const u64, sample_count: u64, dict_out: [*]u8, dict_bytes_max: u64, dict_bytes_out: *u64, error_out: ?*CError) i32 {
    dict_bytes_out.* = 0;
    var fault: Fault = .{};
    dict_bytes_out.* = dict.train(memory(), dict_out[0..@intCast(dict_bytes_max)], samples, sample_bytes[0..@intCast(sample_count)], &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

// ---- frames of other files ----

export fn zr_frame_decompress(source: [*]const u8, source_bytes: u64, target: [*]u8, target_bytes: u64, written_out: *u64, error_out: ?*CError) i32 {
    written_out.* = 0;
    var fault: Fault = .{};
    written_out.* = frame.decompress(memory(), target[0..@intCast(target_bytes)], source[0..@intCast(source_bytes)], &fault) catch |err| return report(err, &fault, error_out);
    return 0;
}

// ---- sampler ----

pub const SamplerOptions = extern struct {
    length: u64,
    batch_size: u64,
    seed: u64,
    mode: u32,
    stream: u32,
};

export fn zs_sampler_create(options: *const SamplerOptions, sampler_out: *?*Sampler, error_out: ?*CError) i32 {
    sampler_out.* = null;
    var fault: Fault = .{};
    const sampler = memory().create(Sampler) catch {
        return report(fault.outOfMemory("a sampler", @sizeOf(Sampler)), &fault, error_out);
    };
    sampler.* = Sampler.init(.{
        .length = options.length,
        .batch_size = options.batch_size,
        .seed = options.seed,
        .mode = @fromBackingInt(@intCast(options.mode)),
        .stream = @fromBackingInt(@intCast(options.stream)),
    }) catch {
        memory().destroy(sampler);
        return report(fault.fail(error.OutOfRange, .none, "length and batch size must be 1 or more", .{}), &fault, error_out);
    };
    sampler_out.* = sampler;
    return 0;
}

export fn zs_sampler_batch(sampler: *const Sampler) u64 {
    return sampler.batch();
}

export fn zs_sampler_step(sampler: *const Sampler) u64 {
    return sampler.step();
}

export fn zs_sampler_draw(sampler: *Sampler, ids_out: [*]u64, error_out: ?*CError) i32 {
    sampler.draw(ids_out[0..@intCast(sampler.batch())]) catch {
        var fault: Fault = .{};
        return report(fault.fail(error.OutOfRange, .none, "the last step, 2^64-1, was drawn", .{}), &fault, error_out);
    };
    return 0;
}

export fn zs_sampler_seek(sampler: *Sampler, step: u64, cancel: ?*const u32, error_out: ?*CError) i32 {
    sampler.seek(step, cancel) catch {
        var fault: Fault = .{};
        return report(fault.fail(error.Aborted, .none, "the seek was aborted", .{}), &fault, error_out);
    };
    return 0;
}

export fn zs_sampler_destroy(sampler: ?*Sampler) void {
    if (sampler) |owned| memory().destroy(owned);
}
