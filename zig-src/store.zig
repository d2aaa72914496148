//! A container's life: a build is created, appended to and published once; a reader opens what was
//! published. Which of the two a handle is, the facade knows and guards; here it decides what close does.
//!
//! Publishing. A build of `DIR/NAME` lives in the hidden sibling `DIR/.NAME.build-RANDOM`:
//!
//!   1. the folder is made, then meta.zr in it, exclusively locked until close: that lock says "alive";
//!   2. its page stays blank (schema_length 0), which neither we nor the original open;
//!   3. publish cuts the files to their tails, writes the page, and renames the folder to NAME in one
//!      step that refuses to replace anything.
//!
//! A sibling whose lock is free is what a killed process left: the next create of NAME removes it. The
//! remover holds the lock while it deletes and deletes meta.zr last, so a folder without meta.zr is
//! empty; a creator that loses this race (its meta.zr is gone or locked) begins again under another name.

const std = @import("std");
const builtin = @import("builtin");
const assert = std.debug.assert;
const Io = std.Io;
const format = @import("store/format.zig");
const plan = @import("store/plan.zig");
const codec = @import("store/codec.zig");
const map_module = @import("store/map.zig");
const residence_module = @import("store/residence.zig");
const reserve = @import("store/reserve.zig");
const scratch = @import("store/scratch.zig");
const volume_module = @import("store/volume.zig");
const append_module = @import("store/append.zig");
const append_file = @import("store/append_file.zig");
const gather_module = @import("store/gather.zig");
const checksum = @import("store/checksum.zig");
const verify_module = @import("store/verify.zig");
const windows = @import("store/windows.zig");
const executor_module = @import("executor.zig");
const fault_module = @import("fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;
const Volume = volume_module.Volume;

pub const Codec = format.Codec;
pub const Spans = plan.Spans;
pub const Cancel = gather_module.Cancel;
pub const Alloc = gather_module.Alloc;
pub const RaggedGeometry = gather_module.RaggedGeometry;
pub const Pool = scratch.Pool;
pub const record_bytes_max = format.record_bytes_max;
pub const page_bytes = format.page_bytes;
pub const Found = verify_module.Found;
pub const Faults = verify_module.Faults;
pub const Range = verify_module.Range;
pub const wordCount = verify_module.wordCount;

/// Renaming a folder with open files in it fails on Windows, so there they are closed first.
const rename_wants_closed_files = builtin.os.tag == .windows;

/// What a process needs to run stores: where they do I/O, take memory and find lanes.
pub const Context = struct {
    io: Io,
    gpa: std.mem.Allocator,
    executor: *executor_module.Executor,
    pool: *scratch.Pool,
    /// Readers may copy from maps of their files, past `io`. Off, every byte goes through `io`.
    map_files: bool = true,
};

pub const CreateOptions = struct {
    path: []const u8,
    codec: Codec,
    data_shards: u32,
    schema: []const u8,
    dict: []const u8 = &.{},
};

pub const Info = struct {
    record_count: u64,
    stored_bytes: u64,
    dict_bytes: u64,
    schema: []const u8,
    codec: Codec,
    data_shards: u32,
};

pub const Store = struct {
    volume: Volume,
    schema_buffer: [format.schema_bytes_max]u8,
    schema_bytes: u32,
    /// Null: a reader.
    build: ?Build,
    /// Of several readers that are read as one.
    set: ?Set = null,
    /// Whoever opened it, and each set that it is in.
    owners: std.atomic.Value(u32) = .init(1),

    const Set = struct {
        members: []*Store,
        parts: []volume_module.Table.Part,
        table: ?volume_module.Table,
    };

    const Build = struct {
        parent: Io.Dir,
        folder: Io.Dir,
        sibling: []u8,
        name: []u8,
        /// How many of the folders above the path were made for it.
        made_parents: u32,
        failed: bool = false,
        state: enum { building, published, discarded } = .building,
        files_open: bool = true,
        marked_length: u64 = 0,
        marked_tails: [format.shards_max]u64 = @splat(0),
    };

    // ---- build ----

    pub fn create(context: Context, options: CreateOptions, fault: *Fault) Error!*Store {
        assert(options.schema.len >= 1);
        assert(options.schema.len <= format.schema_bytes_max);
        assert(options.data_shards >= 1);
        assert(options.data_shards <= format.shards_max);
        assert((options.codec == .zstd_dict) == (options.dict.len > 0));
        const io = context.io;
        const gpa = context.gpa;
        if (options.dict.len > format.dict_bytes_max) {
            return fault.fail(error.TooLarge, .dict, "the dictionary has {d} bytes, at most {d} are allowed", .{ options.dict.len, format.dict_bytes_max });
        }
        const where = try splitPath(options.path, fault);
        try refuseExisting(io, options.path, fault);

        // The dictionary is judged before anything is made on disk.
        var dict: ?codec.Dict = null;
        errdefer if (dict) |*d| d.deinit(gpa);
        if (options.codec == .zstd_dict) {
            const bytes = gpa.dupe(u8, options.dict) catch return fault.outOfMemory("the dictionary", options.dict.len);
            dict = try .init(gpa, bytes, .write, fault);
        }

        const store = gpa.create(Store) catch return fault.outOfMemory("a store", @sizeOf(Store));
        errdefer gpa.destroy(store);
        const name = gpa.dupe(u8, where.name) catch return fault.outOfMemory("a name", where.name.len);
        errdefer gpa.free(name);
        const data = gpa.alloc(Io.File, options.data_shards) catch return fault.outOfMemory("file handles", options.data_shards * @sizeOf(Io.File));
        errdefer gpa.free(data);

        const made_parents = missingFolders(io, where.parent);
        const parent = try openParent(io, where.parent, fault);
        errdefer parent.close(io);
        var prefix_buffer: [Io.Dir.max_name_bytes]u8 = undefined;
        const prefix = siblingPrefix(&prefix_buffer, name);
        try removeDeadSiblings(io, parent, prefix, fault);

        const birth = try makeSibling(context, parent, prefix, fault);
        errdefer {
            birth.folder.close(io);
            gpa.free(birth.sibling);
        }
        var opened: usize = 0;
        errdefer discardFiles(io, parent, birth.folder, birth.sibling, birth.meta, data[0..opened]);

        var page: [format.page_bytes]u8 = @splat(0);
        birth.meta.writePositionalAll(io, &page, 0) catch |err| return fault.failOs(err, .meta, "writing the page");
        for (data, 0..) |*file, shard| {
            var name_buffer: [16]u8 = undefined;
            // Readable too: a build may be asked for its words before it is published.
            file.* = birth.folder.createFile(io, volume_module.dataName(&name_buffer, @intCast(shard)), .{ .read = true, .exclusive = true }) catch |err| {
                return fault.failOs(err, .{ .data = @intCast(shard) }, "creating a data file");
            };
            opened += 1;
        }
        if (dict) |d| try writeWhole(io, birth.folder, volume_module.dict_name, .dict, d.bytes, false, fault);

        store.* = .{
            .volume = .{
                .io = io,
                .gpa = gpa,
                .executor = context.executor,
                .pool = context.pool,
                .codec = options.codec,
                .shard_count = options.data_shards,
                .dict = dict,
                .meta = birth.meta,
                .data = data,
                .reserves = options.codec == .raw and reserve.pays(data[0]),
            },
            .schema_buffer = undefined,
            .schema_bytes = @intCast(options.schema.len),
            .build = .{ .parent = parent, .folder = birth.folder, .sibling = birth.sibling, .name = name, .made_parents = made_parents },
        };
        @memcpy(store.schema_buffer[0..options.schema.len], options.schema);
        return store;
    }

    pub fn append(store: *Store, spans: Spans, fault: *Fault) Error!void {
        const build = &store.build.?;
        if (build.failed) return failedBefore(fault);
        if (build.state != .building) return publishedBefore(fault);
        append_module.append(&store.volume, spans, fault) catch |err| {
            build.failed = true;
            return err;
        };
    }

    /// Records of a raw build as they lie in a file, from byte `offset` of it on.
    pub const FileRecords = struct { path: []const u8, offset: u64, record_bytes: u64, count: u64 };

    /// As `append`, of records that lie in a file. A codec but raw is refused by who calls.
    pub fn appendFile(store: *Store, records: FileRecords, fault: *Fault) Error!void {
        const build = &store.build.?;
        if (build.failed) return failedBefore(fault);
        if (build.state != .building) return publishedBefore(fault);
        store.appendFromFile(records, fault) catch |err| {
            build.failed = true;
            return err;
        };
    }

    fn appendFromFile(store: *Store, records: FileRecords, fault: *Fault) Error!void {
        const io = store.volume.io;
        const file = openRegular(io, Io.Dir.cwd(), records.path, .source, fault) catch |err| return switch (err) {
            error.NotFound => fault.fail(error.NotFound, .source, "there is no such file", .{}),
            else => err,
        };
        defer file.close(io);
        return append_file.append(&store.volume, .{
            .file = file,
            .offset = records.offset,
            .record_bytes = records.record_bytes,
            .count = records.count,
        }, fault);
    }

    fn publishedBefore(fault: *Fault) Error {
        return fault.fail(error.BuildFailed, .none, "the container is published; nothing is appended to it any more", .{});
    }

    fn failedBefore(fault: *Fault) Error {
        return fault.fail(error.BuildFailed, .none, "an earlier append of this build failed; build it again", .{});
    }

    /// Saves the state that rewind goes back to.
    pub fn mark(store: *Store) void {
        const build = &store.build.?;
        build.marked_length = store.volume.length;
        build.marked_tails = store.volume.tails;
    }

    /// Records after the mark were written past the frontier it restores: the next append overwrites them.
    pub fn rewind(store: *Store) void {
        const build = &store.build.?;
        assert(build.marked_length <= store.volume.length);
        store.volume.length = build.marked_length;
        store.volume.tails = build.marked_tails;
    }

    /// `integrity`: what integrity.zr is to hold; empty: there is to be none.
    pub fn publish(store: *Store, durable: bool, integrity: []const u8, fault: *Fault) Error!void {
        const build = &store.build.?;
        if (build.failed or build.state != .building) return failedBefore(fault);
        build.failed = true; // A publication that does not end well is not tried again.
        const volume = &store.volume;
        const io = volume.io;
        for (volume.data, 0..) |file, shard| {
            // Longer than its tail only after a rewind.
            file.setLength(io, volume.tails[shard]) catch |err| return fault.failOs(err, .{ .data = @intCast(shard) }, "cutting a data file to its length");
            if (durable) file.sync(io) catch |err| return fault.failOs(err, .{ .data = @intCast(shard) }, "syncing a data file");
        }
        const table_end = try format.tableEnd(volume.length, fault);
        volume.meta.setLength(io, table_end) catch |err| return fault.failOs(err, .meta, "cutting meta.zr to its length");
        // Everything else reaches the disk before the page that vouches for it: killed between the page and
        // the rename, the hidden folder is a whole container under another name.
        if (integrity.len > 0) try writeWhole(io, build.folder, volume_module.integrity_name, .integrity, integrity, durable, fault);
        if (durable) {
            if (volume.dict != null) try syncDict(io, build.folder, fault);
            volume.meta.sync(io) catch |err| return fault.failOs(err, .meta, "syncing meta.zr");
        }
        var page: [format.page_bytes]u8 = undefined;
        format.encodePage(&page, volume.length, volume.codec, store.schema(), volume.tails[0..volume.shard_count]);
        try volume.writeMeta(&page, 0, fault);
        if (durable) {
            volume.meta.sync(io) catch |err| return fault.failOs(err, .meta, "syncing meta.zr");
            syncFolder(build.folder, io) catch |err| return fault.failOs(err, .folder, "syncing the build folder");
        }
        if (rename_wants_closed_files) store.closeFiles();
        try renameIntoPlace(io, build.parent, build.sibling, build.name, fault);
        build.state = .published;
        build.failed = false;
        // From here the container is at its path; a failed sync of the parent is still an error.
        if (durable) try syncParents(io, build.parent, build.made_parents, fault);
    }

    // ---- read ----

    pub fn open(context: Context, path: []const u8, fault: *Fault) Error!*Store {
        const io = context.io;
        const gpa = context.gpa;
        const folder = Io.Dir.cwd().openDir(io, path, .{ .iterate = true }) catch |err| return switch (err) {
            error.FileNotFound => fault.fail(error.NotFound, .folder, "there is no such folder", .{}),
            error.NotDir => blk: {
                const result = fault.fail(error.InputOutput, .folder, "it is a file; a container is a folder", .{});
                fault.os_code = "ENOTDIR";
                break :blk result;
            },
            else => fault.failOs(err, .folder, "opening the folder"),
        };
        defer folder.close(io);
        const meta = openRegular(io, folder, volume_module.meta_name, .meta, fault) catch |err| return switch (err) {
            error.NotFound => fault.fail(error.NotFound, .meta, "the folder holds no meta.zr", .{}),
            else => err,
        };
        errdefer meta.close(io);
        try lockShared(io, meta, fault);

        var bytes: [format.page_bytes]u8 = undefined;
        const read = meta.readPositionalAll(io, &bytes, 0) catch |err| return fault.failOs(err, .meta, "reading the page");
        if (read != bytes.len) {
            return fault.fail(error.Malformed, .meta, "meta.zr has {d} bytes, its page alone takes {d}", .{ read, bytes.len });
        }
        const page = gpa.create(format.Page) catch return fault.outOfMemory("a page", @sizeOf(format.Page));
        defer gpa.destroy(page);
        try format.parsePage(&bytes, page, fault);
        try refuseStrayData(io, folder, page.data_shards, fault);

        const data = gpa.alloc(Io.File, page.data_shards) catch return fault.outOfMemory("file handles", page.data_shards * @sizeOf(Io.File));
        errdefer gpa.free(data);
        var opened: usize = 0;
        errdefer Io.File.closeMany(io, data[0..opened]);
        var payload_present = false;
        for (data, 0..) |*file, shard| {
            const place: fault_module.Place = .{ .data = @intCast(shard) };
            var name_buffer: [16]u8 = undefined;
            const name = volume_module.dataName(&name_buffer, @intCast(shard));
            file.* = openRegular(io, folder, name, place, fault) catch |err| return switch (err) {
                error.NotFound => fault.fail(error.Malformed, place, "{s} is missing, the page promises {d} shards", .{ name, page.data_shards }),
                else => err,
            };
            opened += 1;
            const size = file.length(io) catch |err| return fault.failOs(err, place, "measuring a data file");
            if (size < page.tails[shard]) {
                return fault.fail(error.Malformed, place, "{s} has {d} bytes, its tail says {d}", .{ name, size, page.tails[shard] });
            }
            payload_present = payload_present or size > 0;
        }
        const table_end = try format.tableEnd(page.length, fault);
        const meta_bytes = meta.length(io) catch |err| return fault.failOs(err, .meta, "measuring meta.zr");
        if (meta_bytes < table_end) {
            return fault.fail(error.Malformed, .meta, "meta.zr has {d} bytes, the table of {d} records ends at {d}", .{ meta_bytes, page.length, table_end });
        }
        if (page.length == 0 and (payload_present or meta_bytes > table_end)) {
            // What a killed build of the original leaves: everything written, nothing counted.
            return fault.fail(error.NotPublished, .meta, "the page counts no records but payloads or locations are there: a build that was never published", .{});
        }
        var dict = try readDict(context, folder, page.codec, fault);
        errdefer if (dict) |*d| d.deinit(gpa);

        const store = gpa.create(Store) catch return fault.outOfMemory("a store", @sizeOf(Store));
        store.* = .{
            .volume = .{
                .io = io,
                .gpa = gpa,
                .executor = context.executor,
                .pool = context.pool,
                .codec = page.codec,
                .shard_count = page.data_shards,
                .length = page.length,
                .tails = page.tails,
                .dict = dict,
                .meta = meta,
                .data = data,
            },
            .schema_buffer = page.schema,
            .schema_bytes = page.schema_length,
            .build = null,
        };
        if (context.map_files and page.length > 0) {
            store.volume.map = .init(gpa, meta, table_end, data, page.tails[0..page.data_shards]);
            for (page.tails[0..page.data_shards]) |tail| store.volume.map_stored_bytes +|= tail;
            if (store.volume.map) |*map| {
                if (residence_module.Residence.canTell(map)) store.volume.residence = .{ .executor = context.executor };
            }
        }
        return store;
    }

    /// Reads the records of several readers as one sequence, in their order. Files, maps and words are
    /// those of the members, which stay open as long as the set is, whoever closes them. `dim_bytes`: of
    /// ragged members, of each; else zeros. Sizes of records are told as the first member counts them.
    pub fn join(context: Context, members: []const *Store, dim_bytes: []const u8, ndim: u32, fault: *Fault) Error!*Store {
        assert(members.len >= 1);
        assert(members.len == dim_bytes.len);
        const gpa = context.gpa;
        const wanted_bytes = members.len * @sizeOf(volume_module.Table.Part);
        const kept = gpa.dupe(*Store, members) catch return fault.outOfMemory("a set", wanted_bytes);
        errdefer gpa.free(kept);
        const room = gpa.alloc(volume_module.Table.Part, members.len) catch return fault.outOfMemory("a set", wanted_bytes);
        errdefer gpa.free(room);
        const store = gpa.create(Store) catch return fault.outOfMemory("a store", @sizeOf(Store));
        errdefer gpa.destroy(store);

        var whole: Volume = .{
            .io = context.io,
            .gpa = gpa,
            .executor = context.executor,
            .pool = context.pool,
            .codec = .raw,
            .shard_count = 1,
            .meta = undefined,
            .data = &.{},
        };
        var part_count: usize = 0;
        var shard_count: u32 = 0;
        for (members, dim_bytes, 0..) |member, bytes, index| {
            assert(member.build == null and member.set == null);
            const volume = &member.volume;
            const end = std.math.add(u64, whole.length, volume.length) catch {
                return fault.fail(error.TooLarge, .none, "the parts hold more records than can be counted", .{});
            };
            if (volume.length > 0) {
                room[part_count] = .{
                    .owner = volume,
                    .start = whole.length,
                    .end = end,
                    .dim_bytes = bytes,
                    .extra_bytes = (@as(i32, dim_bytes[0]) - bytes) * @as(i32, @intCast(ndim)),
                    .shard_base = shard_count,
                    .member = @intCast(index),
                };
                part_count += 1;
                if (volume.codec != .raw) whole.codec = .zstd;
                whole.map_stored_bytes +|= volume.map_stored_bytes;
            }
            shard_count +|= volume.shard_count;
            whole.length = end;
        }
        const table: ?volume_module.Table = if (part_count == 0) null else volume_module.Table.init(gpa, room[0..part_count]) catch return fault.outOfMemory("a set", wanted_bytes);
        store.* = .{
            .volume = whole,
            .schema_buffer = members[0].schema_buffer,
            .schema_bytes = members[0].schema_bytes,
            .build = null,
            .set = .{ .members = kept, .parts = room, .table = table },
        };
        if (store.set.?.table) |*made| store.volume.table = made;
        for (kept) |member| _ = member.owners.fetchAdd(1, .monotonic);
        return store;
    }

    pub fn gatherFixed(store: *Store, ids: []const u64, record_bytes: u64, target: []u8, cancel: Cancel, fault: *Fault) Error!void {
        return gather_module.fixed(&store.volume, ids, record_bytes, target, cancel, fault);
    }

    pub fn gatherRagged(
        store: *Store,
        ids: []const u64,
        geometry: RaggedGeometry,
        payload_bytes_max: u64,
        alloc: Alloc,
        offsets: []u64,
        dims: []u64,
        cancel: Cancel,
        fault: *Fault,
    ) Error!void {
        return gather_module.ragged(&store.volume, ids, geometry, payload_bytes_max, alloc, offsets, dims, cancel, fault);
    }

    /// Up to how many bytes a gather may be done where it is called without holding anybody up: some tens
    /// of microseconds, and no wait for a disk. 0: none.
    pub fn quickBytes(store: *const Store) u64 {
        return store.volume.quickBytes();
    }

    pub fn logicalBytes(store: *Store, ids: []const u64, bytes_out: []u64, cancel: Cancel, fault: *Fault) Error!void {
        return gather_module.logicalBytes(&store.volume, ids, bytes_out, cancel, fault);
    }

    /// From now on every record that is gathered is held against its word. `words` are those of
    /// checksum.zig for the whole container, and are copied. Wants no gather in flight.
    pub fn expect(store: *Store, words: []const u64, fault: *Fault) Error!void {
        const volume = &store.volume;
        assert(store.build == null);
        assert(words.len == checksum.wordCount(volume.length));
        const copy = volume.gpa.dupe(u64, words) catch return fault.outOfMemory("checksums", words.len * @sizeOf(u64));
        if (volume.words) |old| volume.gpa.free(old);
        volume.words = copy;
    }

    // ---- both ----

    /// The page: of a build as it would be published now, of a reader as it is on disk now.
    pub fn readPage(store: *const Store, target: *[format.page_bytes]u8, fault: *Fault) Error!void {
        const volume = &store.volume;
        if (store.build == null) return volume.readMeta(target, 0, fault);
        format.encodePage(target, volume.length, volume.codec, store.schema(), volume.tails[0..volume.shard_count]);
    }

    pub fn checkRecords(store: *Store, range: Range, faults: *Faults, cancel: Cancel, fault: *Fault) Error!void {
        return verify_module.records(&store.volume, range, faults, cancel, fault);
    }

    pub fn checkLayout(store: *Store, over: []u8, unused: []u64, faults: *Faults, cancel: Cancel, fault: *Fault) Error!void {
        return verify_module.layout(&store.volume, over, unused, faults, cancel, fault);
    }

    pub fn schema(store: *const Store) []const u8 {
        return store.schema_buffer[0..store.schema_bytes];
    }

    pub fn info(store: *const Store) Info {
        var stored_bytes: u64 = 0;
        for (store.volume.tails) |tail| stored_bytes +|= tail;
        return .{
            .record_count = store.volume.length,
            .stored_bytes = stored_bytes,
            .dict_bytes = if (store.volume.dict) |dict| dict.bytes.len else 0,
            .schema = store.schema(),
            .codec = store.volume.codec,
            .data_shards = store.volume.shard_count,
        };
    }

    /// A reader is released, once no set has it any more; a build that was not published is discarded.
    pub fn close(store: *Store) void {
        if (store.owners.fetchSub(1, .acq_rel) > 1) return;
        const gpa = store.volume.gpa;
        const io = store.volume.io;
        if (store.set) |*set| {
            for (set.members) |member| member.close();
            if (set.table) |*table| table.deinit(gpa);
            gpa.free(set.parts);
            gpa.free(set.members);
            return gpa.destroy(store);
        }
        if (store.build) |*build| {
            if (build.state == .building) {
                if (build.files_open) {
                    discardFiles(io, build.parent, build.folder, build.sibling, store.volume.meta, store.volume.data);
                } else {
                    removeFolder(io, build.parent, build.folder, build.sibling);
                }
                build.state = .discarded;
                build.files_open = false;
            }
            store.closeFiles();
            build.folder.close(io);
            build.parent.close(io);
            gpa.free(build.sibling);
            gpa.free(build.name);
        } else {
            if (store.volume.residence) |*residence| residence.deinit();
            if (store.volume.map) |*map| map.deinit(gpa);
            Io.File.closeMany(io, store.volume.data);
            store.volume.meta.close(io);
        }
        if (store.volume.dict) |*dict| dict.deinit(gpa);
        if (store.volume.words) |words| gpa.free(words);
        gpa.free(store.volume.data);
        gpa.destroy(store);
    }

    fn closeFiles(store: *Store) void {
        const build = &store.build.?;
        if (!build.files_open) return;
        build.files_open = false;
        Io.File.closeMany(store.volume.io, store.volume.data);
        store.volume.meta.close(store.volume.io);
    }
};

// ---- paths and siblings ----

const Where = struct { parent: []const u8, name: []const u8 };

fn splitPath(path: []const u8, fault: *Fault) Error!Where {
    const name = std.fs.path.basename(path);
    if (name.len == 0 or std.mem.eql(u8, name, ".") or std.mem.eql(u8, name, "..")) {
        return fault.fail(error.Exists, .folder, "the path names no new folder", .{});
    }
    // A container of such a name would be removed by the next build of its path.
    if (isAnySibling(name)) {
        return fault.fail(error.Unsupported, .folder, "the name is of the kind that unfinished builds have; choose another", .{});
    }
    return .{ .parent = std.fs.path.dirname(path) orelse "", .name = name };
}

/// Opened, and made only if it is not there. Not by `createDirPath`: it takes a link to a folder for
/// something in the way, and never ends where no folder can be made.
fn openParent(io: Io, path: []const u8, fault: *Fault) Error!Io.Dir {
    const cwd = Io.Dir.cwd();
    const parent_path = if (path.len > 0) path else ".";
    if (cwd.openDir(io, parent_path, .{ .iterate = true })) |parent| {
        return parent;
    } else |err| if (err != error.FileNotFound) {
        return fault.failOs(err, .folder, "opening the parent folder");
    }
    makeFolders(io, parent_path) catch |err| return fault.failOs(err, .folder, "making the parent folder");
    return cwd.openDir(io, parent_path, .{ .iterate = true }) catch |err| return fault.failOs(err, .folder, "opening the parent folder");
}

/// Makes a folder and those above it that are not there.
fn makeFolders(io: Io, path: []const u8) Io.Dir.CreateDirError!void {
    const cwd = Io.Dir.cwd();
    makeFolder(io, path) catch |err| {
        if (err != error.FileNotFound) return err;
        // From the top down: what is there already is passed over.
        var above = std.fs.path.componentIterator(path);
        var part = above.first();
        while (part) |each| : (part = above.next()) {
            if (cwd.access(io, each.path, .{})) |_| continue else |_| {}
            try makeFolder(io, each.path);
        }
    };
}

fn makeFolder(io: Io, path: []const u8) Io.Dir.CreateDirError!void {
    // Somebody else may make it at the same time.
    Io.Dir.cwd().createDir(io, path, .default_dir) catch |err| if (err != error.PathAlreadyExists) return err;
}

/// Whatever is at the path, even an empty folder or a dangling link, is in the way.
fn refuseExisting(io: Io, path: []const u8, fault: *Fault) Error!void {
    _ = Io.Dir.cwd().statFile(io, path, .{ .follow_symlinks = false }) catch |err| return switch (err) {
        error.FileNotFound => {},
        else => fault.failOs(err, .folder, "looking at the path"),
    };
    return fault.fail(error.Exists, .folder, "something is at the path already; a build wants a new one", .{});
}

const sibling_random_bytes = 6;
const sibling_random_digits = sibling_random_bytes * 2;
/// ".NAME.build-" and the digits must fit a file name; a longer NAME is cut and told apart by a hash.
const sibling_name_bytes_max = 200;

/// ".NAME.build-": what all siblings of one path begin with, and only they (NAME ends before the digits).
fn siblingPrefix(buffer: *[Io.Dir.max_name_bytes]u8, name: []const u8) []const u8 {
    if (name.len <= sibling_name_bytes_max) {
        return std.fmt.bufPrint(buffer, ".{s}.build-", .{name}) catch unreachable; // 200 and 8 bytes
    }
    var cut: usize = sibling_name_bytes_max;
    while (cut > 0 and name[cut] & 0xC0 == 0x80) cut -= 1; // Not inside a UTF-8 sequence.
    return std.fmt.bufPrint(buffer, ".{s}~{x:0>8}.build-", .{ name[0..cut], std.hash.Crc32.hash(name) }) catch unreachable;
}

const Birth = struct { folder: Io.Dir, meta: Io.File, sibling: []u8 };

fn makeSibling(context: Context, parent: Io.Dir, prefix: []const u8, fault: *Fault) Error!Birth {
    const io = context.io;
    const attempts_max = 100;
    for (0..attempts_max) |_| {
        var random: [sibling_random_bytes]u8 = undefined;
        io.random(&random);
        const sibling = std.fmt.allocPrint(context.gpa, "{s}{x}", .{ prefix, &random }) catch return fault.outOfMemory("a name", prefix.len);
        const born = bornAlive(io, parent, sibling, fault) catch |err| {
            context.gpa.free(sibling);
            return err;
        };
        if (born) |alive| return .{ .folder = alive.folder, .meta = alive.meta, .sibling = sibling };
        context.gpa.free(sibling);
    }
    return fault.fail(error.Locked, .folder, "other builds of the same path kept removing this one as it began", .{});
}

/// Null: another creator took this sibling for a dead one; try another name. Frees nothing.
fn bornAlive(io: Io, parent: Io.Dir, sibling: []const u8, fault: *Fault) Error!?struct { folder: Io.Dir, meta: Io.File } {
    parent.createDir(io, sibling, .default_dir) catch |err| return switch (err) {
        error.PathAlreadyExists => null,
        else => fault.failOs(err, .folder, "making the build folder"),
    };
    const folder = parent.openDir(io, sibling, .{ .iterate = true, .follow_symlinks = false }) catch |err| return switch (err) {
        error.FileNotFound => null,
        else => {
            const failure = fault.failOs(err, .folder, "opening the build folder");
            parent.deleteDir(io, sibling) catch {};
            return failure;
        },
    };
    errdefer folder.close(io);
    const meta = folder.createFile(io, volume_module.meta_name, .{ .read = true, .exclusive = true }) catch |err| {
        if (err == error.FileNotFound) {
            folder.close(io);
            return null;
        }
        const failure = fault.failOs(err, .meta, "creating meta.zr");
        parent.deleteDir(io, sibling) catch {};
        return failure;
    };
    const locked = tryLock(io, meta, .exclusive) catch |err| {
        const failure = switch (err) {
            // The second is what ENOLCK has become: a network file system without a lock service says that.
            error.FileLocksUnsupported, error.SystemResources => fault.fail(error.Unsupported, .meta, "this file system has no locks, which a build needs; build elsewhere and move the result", .{}),
            else => fault.failOs(err, .meta, "locking meta.zr"),
        };
        discardFiles(io, parent, folder, sibling, meta, &.{});
        return failure;
    };
    // Locked by a remover, or removed between its creation and our lock: then its name is gone.
    if (locked) {
        if (folder.statFile(io, volume_module.meta_name, .{})) |_| {
            return .{ .folder = folder, .meta = meta };
        } else |err| if (err != error.FileNotFound) {
            const failure = fault.failOs(err, .meta, "looking at meta.zr");
            discardFiles(io, parent, folder, sibling, meta, &.{});
            return failure;
        }
    }
    meta.close(io);
    folder.close(io);
    return null;
}

/// Removes what killed builds of this path left. A live one is LOCKED.
fn removeDeadSiblings(io: Io, parent: Io.Dir, prefix: []const u8, fault: *Fault) Error!void {
    var entries = parent.iterate();
    fault_module.forgetErrno();
    while (entries.next(io) catch |err| return fault.failOs(err, .folder, "listing the parent folder")) |entry| {
        if (!isSibling(entry.name, prefix)) continue;
        // A link of such a name is nobody's build: what it leads to is not touched.
        const folder = parent.openDir(io, entry.name, .{ .iterate = true, .follow_symlinks = false }) catch continue; // Gone, or not ours.
        defer folder.close(io);
        const meta = folder.openFile(io, volume_module.meta_name, .{ .mode = .read_write }) catch {
            // Not born yet or wholly removed: empty, and its maker notices when it goes.
            parent.deleteDir(io, entry.name) catch {};
            continue;
        };
        const dead = tryLock(io, meta, .exclusive) catch false;
        if (!dead) {
            meta.close(io);
            return fault.fail(error.Locked, .folder, "a live build of this path is going on in {s}", .{entry.name});
        }
        discardFiles(io, parent, folder, entry.name, meta, &.{});
    }
}

fn isSibling(name: []const u8, prefix: []const u8) bool {
    return std.mem.startsWith(u8, name, prefix) and isRandom(name[prefix.len..]);
}

/// Whether builds of some path have such a name.
fn isAnySibling(name: []const u8) bool {
    const marker = ".build-";
    if (name.len < 1 + marker.len + sibling_random_digits or name[0] != '.') return false;
    const prefix = name[0 .. name.len - sibling_random_digits];
    return std.mem.endsWith(u8, prefix, marker) and isRandom(name[prefix.len..]);
}

fn isRandom(digits: []const u8) bool {
    if (digits.len != sibling_random_digits) return false;
    for (digits) |digit| if (!std.ascii.isHex(digit)) return false;
    return true;
}

/// Removes a build's folder while its lock is held, and closes its files. Best effort: what cannot be
/// removed is a dead sibling for the next create.
fn discardFiles(io: Io, parent: Io.Dir, folder: Io.Dir, sibling: []const u8, meta: Io.File, data: []const Io.File) void {
    Io.File.closeMany(io, data);
    if (rename_wants_closed_files) {
        // There a locked, open file cannot be removed either.
        meta.close(io);
        return removeFolder(io, parent, folder, sibling);
    }
    removeFolder(io, parent, folder, sibling);
    meta.close(io);
}

/// Everything that a build makes, meta.zr last; a foreign file stays, and the folder with it.
fn removeFolder(io: Io, parent: Io.Dir, folder: Io.Dir, sibling: []const u8) void {
    for (0..format.shards_max) |shard| {
        var name_buffer: [16]u8 = undefined;
        folder.deleteFile(io, volume_module.dataName(&name_buffer, @intCast(shard))) catch |err| {
            if (err == error.FileNotFound) break; // Data files are made in order.
        };
    }
    folder.deleteFile(io, volume_module.dict_name) catch {};
    folder.deleteFile(io, volume_module.integrity_name) catch {};
    folder.deleteFile(io, volume_module.meta_name) catch {};
    parent.deleteDir(io, sibling) catch {};
}

fn renameIntoPlace(io: Io, parent: Io.Dir, sibling: []const u8, name: []const u8, fault: *Fault) Error!void {
    renamePreserve(io, parent, sibling, name) catch |err| switch (err) {
        error.PathAlreadyExists, error.DirNotEmpty => return taken(fault),
        // No such rename here (an old kernel, some file systems; a folder cannot be hard-linked
        // instead). Then the name is claimed by making it, and an empty folder may be replaced in one
        // step. A kill between the two leaves that empty folder.
        error.OperationUnsupported, error.PermissionDenied, error.AccessDenied => {
            parent.createDir(io, name, .default_dir) catch |claim| return switch (claim) {
                error.PathAlreadyExists => taken(fault),
                else => fault.failOs(claim, .folder, "claiming the path"),
            };
            parent.rename(sibling, parent, name, io) catch |move| {
                const failure = switch (move) {
                    error.DirNotEmpty => taken(fault),
                    else => fault.failOs(move, .folder, "moving the build to its path"),
                };
                parent.deleteDir(io, name) catch {};
                return failure;
            };
        },
        else => return fault.failOs(err, .folder, "moving the build to its path"),
    };
}

fn taken(fault: *Fault) Error {
    return fault.fail(error.Exists, .folder, "another build or folder took the path meanwhile", .{});
}

fn syncFolder(folder: Io.Dir, io: Io) Io.File.SyncError!void {
    if (builtin.os.tag == .windows) return; // There is no such operation, nor a need: NTFS journals names.
    const as_file: Io.File = .{ .handle = folder.handle, .flags = .{ .nonblocking = false } };
    return as_file.sync(io);
}

/// The parent, for the container's name, and each folder above it that holds the name of a new one.
fn syncParents(io: Io, parent: Io.Dir, made_parents: u32, fault: *Fault) Error!void {
    syncFolder(parent, io) catch |err| return fault.failOs(err, .folder, "syncing the parent folder");
    if (builtin.os.tag == .windows) return;
    var folder = parent;
    defer if (folder.handle != parent.handle) folder.close(io);
    for (0..made_parents) |_| {
        const above = folder.openDir(io, "..", .{ .iterate = true }) catch |err| return fault.failOs(err, .folder, "opening a folder above it");
        if (folder.handle != parent.handle) folder.close(io);
        folder = above;
        syncFolder(folder, io) catch |err| return fault.failOs(err, .folder, "syncing a folder above it");
    }
}

/// How many folders of a path are not there yet. Where one cannot be looked at, those below it.
fn missingFolders(io: Io, path: []const u8) u32 {
    var count: u32 = 0;
    var at = path;
    while (at.len > 0) : (count += 1) {
        if (Io.Dir.cwd().statFile(io, at, .{})) |_| break else |err| if (err != error.FileNotFound) break;
        at = std.fs.path.dirname(at) orelse return count + 1;
    }
    return count;
}

fn syncDict(io: Io, folder: Io.Dir, fault: *Fault) Error!void {
    const file = folder.openFile(io, volume_module.dict_name, .{ .mode = .read_write }) catch |err| return fault.failOs(err, .dict, "opening dict.zr");
    defer file.close(io);
    file.sync(io) catch |err| return fault.failOs(err, .dict, "syncing dict.zr");
}

fn writeWhole(io: Io, folder: Io.Dir, comptime name: []const u8, place: fault_module.Place, bytes: []const u8, durable: bool, fault: *Fault) Error!void {
    const file = folder.createFile(io, name, .{ .exclusive = true }) catch |err| return fault.failOs(err, place, "creating " ++ name);
    defer file.close(io);
    file.writePositionalAll(io, bytes, 0) catch |err| return fault.failOs(err, place, "writing " ++ name);
    if (durable) file.sync(io) catch |err| return fault.failOs(err, place, "syncing " ++ name);
}

// ---- opening ----

/// Only regular files (or links to them) are opened: a FIFO would hang, a device is not a container.
fn openRegular(io: Io, folder: Io.Dir, name: []const u8, place: fault_module.Place, fault: *Fault) Error!Io.File {
    const stat = folder.statFile(io, name, .{}) catch |err| return switch (err) {
        error.FileNotFound => error.NotFound,
        else => fault.failOs(err, place, "looking at a file"),
    };
    if (stat.kind != .file) return fault.fail(error.Malformed, place, "{s} is a {s}, not a file", .{ std.fs.path.basename(name), kindName(stat.kind) });
    return folder.openFile(io, name, .{}) catch |err| return switch (err) {
        error.FileNotFound => error.NotFound,
        else => fault.failOs(err, place, "opening a file"),
    };
}

fn kindName(kind: Io.File.Kind) []const u8 {
    return switch (kind) {
        .directory => "folder",
        .named_pipe => "pipe",
        .unix_domain_socket => "socket",
        .block_device, .character_device => "device",
        else => "special file",
    };
}

fn lockShared(io: Io, meta: Io.File, fault: *Fault) Error!void {
    const locked = tryLock(io, meta, .shared) catch |err| switch (err) {
        // A published container never changes, so a file system without locks may be read from.
        error.FileLocksUnsupported, error.SystemResources => return,
        else => return fault.failOs(err, .meta, "locking meta.zr"),
    };
    if (!locked) return fault.fail(error.Locked, .meta, "a live build holds the container", .{});
}

/// A stray data file means that page and folder do not belong together.
fn refuseStrayData(io: Io, folder: Io.Dir, shard_count: u32, fault: *Fault) Error!void {
    var entries = folder.iterate();
    fault_module.forgetErrno();
    while (entries.next(io) catch |err| return fault.failOs(err, .folder, "listing the folder")) |entry| {
        if (!std.mem.startsWith(u8, entry.name, volume_module.data_prefix)) continue;
        if (isDataName(entry.name, shard_count)) continue;
        // A name may hold what moves a terminal's cursor, and need not be text at all.
        return fault.fail(error.Malformed, .folder, "the folder holds {f}, which does not belong to {d} shards", .{ std.ascii.hexEscape(entry.name, .lower), shard_count });
    }
}

fn isDataName(name: []const u8, shard_count: u32) bool {
    const digits = name[volume_module.data_prefix.len..];
    if (!std.mem.endsWith(u8, digits, ".zr")) return false;
    const number = digits[0 .. digits.len - ".zr".len];
    if (number.len == 0 or number.len > 3) return false;
    if (number.len > 1 and number[0] == '0') return false;
    var shard: u32 = 0;
    for (number) |digit| {
        if (!std.ascii.isDigit(digit)) return false;
        shard = shard * 10 + (digit - '0');
    }
    return shard < shard_count;
}

fn readDict(context: Context, folder: Io.Dir, store_codec: Codec, fault: *Fault) Error!?codec.Dict {
    const io = context.io;
    const file = openRegular(io, folder, volume_module.dict_name, .dict, fault) catch |err| switch (err) {
        error.NotFound => {
            if (store_codec != .zstd_dict) return null;
            return fault.fail(error.Dictionary, .dict, "dict.zr is missing, the codec needs it for every record", .{});
        },
        else => return err,
    };
    defer file.close(io);
    if (store_codec != .zstd_dict) {
        return fault.fail(error.Dictionary, .dict, "dict.zr is there, but the codec uses no dictionary", .{});
    }
    const size = file.length(io) catch |err| return fault.failOs(err, .dict, "measuring dict.zr");
    if (size > format.dict_bytes_max) {
        return fault.fail(error.TooLarge, .dict, "dict.zr has {d} bytes, at most {d} are loaded", .{ size, format.dict_bytes_max });
    }
    const bytes = context.gpa.alloc(u8, @intCast(size)) catch return fault.outOfMemory("the dictionary", size);
    const read = file.readPositionalAll(io, bytes, 0) catch |err| {
        const failure = fault.failOs(err, .dict, "reading dict.zr");
        context.gpa.free(bytes);
        return failure;
    };
    if (read != bytes.len) {
        context.gpa.free(bytes);
        return fault.fail(error.Malformed, .dict, "dict.zr was cut while it was read", .{});
    }
    return try .init(context.gpa, bytes, .read, fault);
}

// ---- what Windows does its own way (store/windows.zig says why) ----

fn tryLock(io: Io, meta: Io.File, kind: enum { shared, exclusive }) Io.File.LockError!bool {
    if (builtin.os.tag == .windows) return windows.tryLock(meta, kind == .exclusive);
    return meta.tryLock(io, if (kind == .exclusive) .exclusive else .shared);
}

fn renamePreserve(io: Io, parent: Io.Dir, sibling: []const u8, name: []const u8) Io.Dir.RenamePreserveError!void {
    if (builtin.os.tag == .windows) return windows.renamePreserve(parent, sibling, name);
    fault_module.forgetErrno();
    return parent.renamePreserve(sibling, parent, name, io);
}
