//! The bytes of `meta.zr`: one static page, then the location table. No I/O.
//!
//!     offset  size  field
//!          0     8  length         u64, number of records
//!          8     2  schema_length  u16, 1 .. 2040; 0 while a build of ours is not published
//!         10     1  data_shards    u8, 1 .. 255
//!         11     1  codec          u8, 0 raw, 1 zstd, 2 zstd with a dictionary
//!         12     4  reserved       zero
//!         16  2040  tails          255 x u64; slot s is the committed end of data_s.zr, unused ones zero
//!       2056  2040  schema         schema_length bytes, then padding that nobody reads
//!       4096  16 n  locations      record i at 4096 + 16 i: offset u64, phys_length u32, logic_length u32
//!
//! All integers are little-endian. Record i lives in shard `i % data_shards`; `offset` counts within
//! that shard's file. There is no magic number, no version and no checksum, so every field is checked.

const std = @import("std");
const builtin = @import("builtin");
const assert = std.debug.assert;
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

pub const page_bytes = 4096;
pub const tails_offset = 16;
pub const schema_offset = 2056;
pub const schema_bytes_max = 2040;
pub const shards_max = 255;
pub const location_bytes = 16;
pub const record_bytes_max: u64 = 1 << 31;
/// A dictionary is loaded whole by every reader, so its size is bounded. The original trains 32 KiB.
pub const dict_bytes_max: u64 = 48 << 20;
/// File offsets are signed 64-bit numbers for the operating system.
pub const file_offset_max: u64 = std.math.maxInt(i64);

pub const Codec = enum(u8) { raw = 0, zstd = 1, zstd_dict = 2 };

pub const Header = extern struct {
    length: u64,
    schema_length: u16,
    data_shards: u8,
    codec: u8,
    reserved: [4]u8,
};

pub const Location = extern struct {
    offset: u64,
    phys_length: u32,
    logic_length: u32,
};

comptime {
    // The structs are copied to and from disk as they are in memory.
    if (builtin.cpu.arch.endian() != .little) @compileError("loaderx stores are little-endian; a big-endian host is not supported");
    assert(@sizeOf(Header) == 16);
    assert(@sizeOf(Location) == location_bytes);
    assert(tails_offset == @sizeOf(Header));
    assert(tails_offset + shards_max * 8 == schema_offset);
    assert(schema_offset + schema_bytes_max == page_bytes);
}

/// A page that passed every check that needs no file size.
pub const Page = struct {
    length: u64,
    codec: Codec,
    data_shards: u32,
    schema_length: u32,
    schema: [schema_bytes_max]u8,
    tails: [shards_max]u64,

    pub fn schemaBytes(page: *const Page) []const u8 {
        return page.schema[0..page.schema_length];
    }
};

pub fn parsePage(bytes: *const [page_bytes]u8, page: *Page, fault: *Fault) Error!void {
    const header = std.mem.bytesToValue(Header, bytes[0..@sizeOf(Header)]);
    if (header.length == 0 and header.schema_length == 0) {
        // What a build of ours shows until it is published.
        return fault.fail(error.NotPublished, .meta, "the page is blank: a build that was never published", .{});
    }
    page.codec = switch (header.codec) {
        0 => .raw,
        1 => .zstd,
        2 => .zstd_dict,
        else => return fault.fail(error.Malformed, .meta, "codec byte is {d}, known are 0, 1 and 2", .{header.codec}),
    };
    if (header.schema_length == 0 or header.schema_length > schema_bytes_max) {
        return fault.fail(error.Malformed, .meta, "schema_length is {d}, must be 1 .. {d}", .{ header.schema_length, schema_bytes_max });
    }
    if (header.data_shards == 0) {
        return fault.fail(error.Malformed, .meta, "data_shards is 0, must be 1 .. 255", .{});
    }
    if (!std.mem.allEqual(u8, &header.reserved, 0)) {
        return fault.fail(error.Malformed, .meta, "reserved header bytes 12 .. 15 are not zero", .{});
    }
    page.length = header.length;
    page.data_shards = header.data_shards;
    page.schema_length = header.schema_length;
    @memcpy(std.mem.sliceAsBytes(&page.tails), bytes[tails_offset..schema_offset]);
    page.schema = bytes[schema_offset..page_bytes].*;
    for (page.tails, 0..) |tail, shard| {
        if (shard >= page.data_shards) {
            if (tail != 0) return fault.fail(error.Malformed, .meta, "tail slot {d} is {d}, but there are only {d} shards", .{ shard, tail, page.data_shards });
        } else if (tail > file_offset_max) {
            return fault.fail(error.Malformed, .meta, "tail of shard {d} is {d}, past any file offset", .{ shard, tail });
        }
    }
    _ = try tableEnd(page.length, fault);
}

/// Where the location table of `length` records ends in `meta.zr`.
pub fn tableEnd(length: u64, fault: *Fault) Error!u64 {
    const records_max = (file_offset_max - page_bytes) / location_bytes;
    if (length > records_max) {
        return fault.fail(error.Malformed, .meta, "length is {d}, its table would pass any file offset", .{length});
    }
    return page_bytes + length * location_bytes;
}

pub fn locationOffset(record: u64) u64 {
    return page_bytes + record * location_bytes;
}

/// The page of a published store. `schema.len` is 1 .. 2040 and `tails.len` is the shard count.
pub fn encodePage(bytes: *[page_bytes]u8, length: u64, codec: Codec, schema: []const u8, tails: []const u64) void {
    assert(schema.len >= 1);
    assert(schema.len <= schema_bytes_max);
    assert(tails.len >= 1);
    assert(tails.len <= shards_max);
    @memset(bytes, 0);
    const header: Header = .{
        .length = length,
        .schema_length = @intCast(schema.len),
        .data_shards = @intCast(tails.len),
        .codec = @backingInt(codec),
        .reserved = @splat(0),
    };
    @memcpy(bytes[0..@sizeOf(Header)], std.mem.asBytes(&header));
    @memcpy(bytes[tails_offset..][0 .. tails.len * 8], std.mem.sliceAsBytes(tails));
    @memcpy(bytes[schema_offset..][0..schema.len], schema);
}

/// The most bytes that `phys_length` bytes of zstd frames can decode to: a block takes at least four
/// bytes (a three-byte header and one byte) and gives at most 128 KiB (RFC 8878, 3.1.1.2). A claim
/// above it is refused before anything is allocated for it.
pub fn decodedBytesMax(phys_length: u32) u64 {
    return (@as(u64, phys_length) / 4 + 1) * (128 << 10);
}

/// Checks a location against its shard's frontier: what it names lies inside committed bytes, and
/// its sizes are possible. Whether the bytes decode is for the codec to say.
pub fn checkLocation(location: Location, record: u64, shard: u32, tail: u64, codec: Codec, fault: *Fault) Error!void {
    if (location.phys_length == 0) {
        return fault.failRecord(error.Malformed, .meta, record, "location of record {d} stores 0 bytes", .{record});
    }
    if (location.logic_length == 0 or location.logic_length > record_bytes_max) {
        return fault.failRecord(error.Malformed, .meta, record, "location of record {d} declares {d} bytes, must be 1 .. 2^31", .{ record, location.logic_length });
    }
    if (location.phys_length > tail or location.offset > tail - location.phys_length) {
        return fault.failRecord(error.Malformed, .meta, record, "location of record {d} ends past the tail of shard {d} ({d} + {d} > {d})", .{
            record, shard, location.offset, location.phys_length, tail,
        });
    }
    switch (codec) {
        .raw => if (location.phys_length != location.logic_length) {
            return fault.failRecord(error.Malformed, .meta, record, "location of raw record {d} stores {d} bytes but declares {d}", .{ record, location.phys_length, location.logic_length });
        },
        .zstd, .zstd_dict => if (location.logic_length > decodedBytesMax(location.phys_length)) {
            return fault.failRecord(error.Codec, .{ .data = shard }, record, "record {d} declares {d} bytes, more than {d} stored bytes can decode to", .{ record, location.logic_length, location.phys_length });
        },
    }
}

pub const ndim_max = 64;

/// A ragged record: `ndim` dimensions of `dim_bytes` each, then the items.
pub const RaggedGeometry = struct {
    ndim: u32,
    /// 4 or 8
    dim_bytes: u32,
    item_bytes: u64,

    pub fn headerBytes(geometry: RaggedGeometry) u32 {
        return geometry.ndim * geometry.dim_bytes;
    }

    /// Bytes of the items of a record of `logic_length` bytes; only whole ones, and at least one.
    pub fn payloadBytes(geometry: RaggedGeometry, logic_length: u32, record: u64, fault: *Fault) Error!u64 {
        const header_bytes = geometry.headerBytes();
        if (logic_length < header_bytes) {
            return fault.failRecord(error.Malformed, .meta, record, "location of record {d} declares {d} bytes, its {d} dimensions alone take {d}", .{ record, logic_length, geometry.ndim, header_bytes });
        }
        const payload_bytes = logic_length - header_bytes;
        if (payload_bytes == 0 or payload_bytes % geometry.item_bytes != 0) {
            return fault.failRecord(error.Malformed, .meta, record, "record {d} has {d} bytes of items, not a positive multiple of the item size {d}", .{ record, payload_bytes, geometry.item_bytes });
        }
        return payload_bytes;
    }

    /// Takes a record's dimensions in; their product must account for every byte of its items.
    pub fn dimensions(geometry: RaggedGeometry, header: []const u8, payload_bytes: u64, dims: []u64, record: u64, shard: u32, fault: *Fault) Error!void {
        assert(dims.len == geometry.ndim);
        var bytes: u64 = geometry.item_bytes;
        var overflowed = false;
        for (dims, 0..) |*dim, axis| {
            const at = header[axis * geometry.dim_bytes ..];
            dim.* = switch (geometry.dim_bytes) {
                4 => std.mem.readInt(u32, at[0..4], .little),
                else => std.mem.readInt(u64, at[0..8], .little),
            };
            const product = @mulWithOverflow(bytes, dim.*);
            bytes = product[0];
            overflowed = overflowed or product[1] != 0;
        }
        if (overflowed or bytes != payload_bytes) {
            return fault.failRecord(error.Malformed, .{ .data = shard }, record, "the dimensions of record {d} do not fit its {d} bytes of items", .{ record, payload_bytes });
        }
    }
};

/// The size that a dense record must have.
pub fn checkFixed(location: Location, record_bytes: u64, record: u64, fault: *Fault) Error!void {
    if (location.logic_length == record_bytes) return;
    return fault.failRecord(error.Malformed, .meta, record, "location of record {d} declares {d} bytes, the schema's records have {d}", .{ record, location.logic_length, record_bytes });
}

test "a page round-trips" {
    var bytes: [page_bytes]u8 = undefined;
    encodePage(&bytes, 7, .zstd, "schema", &.{ 11, 22 });
    var page: Page = undefined;
    var fault: Fault = .{};
    try parsePage(&bytes, &page, &fault);
    try std.testing.expectEqual(@as(u64, 7), page.length);
    try std.testing.expectEqual(Codec.zstd, page.codec);
    try std.testing.expectEqual(@as(u32, 2), page.data_shards);
    try std.testing.expectEqualStrings("schema", page.schemaBytes());
    try std.testing.expectEqual(@as(u64, 22), page.tails[1]);
    try std.testing.expectEqual(@as(u64, 0), page.tails[2]);
}

test "every broken header field is refused" {
    const Case = struct { offset: usize, value: u8, expected: Error };
    const cases = [_]Case{
        .{ .offset = 11, .value = 3, .expected = error.Malformed }, // codec
        .{ .offset = 11, .value = 255, .expected = error.Malformed },
        .{ .offset = 8, .value = 0, .expected = error.Malformed }, // schema_length 0 with records
        .{ .offset = 9, .value = 8, .expected = error.Malformed }, // schema_length over 2040
        .{ .offset = 10, .value = 0, .expected = error.Malformed }, // data_shards
        .{ .offset = 12, .value = 1, .expected = error.Malformed }, // reserved
        .{ .offset = 15, .value = 1, .expected = error.Malformed },
        .{ .offset = 7, .value = 0x80, .expected = error.Malformed }, // length 2^63
        .{ .offset = 23, .value = 0x80, .expected = error.Malformed }, // tail 2^63
        .{ .offset = 16 + 2 * 8, .value = 1, .expected = error.Malformed }, // first unused tail
        .{ .offset = 16 + 254 * 8, .value = 1, .expected = error.Malformed }, // last tail
    };
    for (cases) |case| {
        var bytes: [page_bytes]u8 = undefined;
        encodePage(&bytes, 5, .raw, "schema", &.{ 11, 22 });
        bytes[case.offset] = case.value;
        var page: Page = undefined;
        var fault: Fault = .{};
        try std.testing.expectError(case.expected, parsePage(&bytes, &page, &fault));
        try std.testing.expect(fault.message().len > 0);
    }
    var blank: [page_bytes]u8 = @splat(0);
    blank[10] = 4;
    var page: Page = undefined;
    var fault: Fault = .{};
    try std.testing.expectError(error.NotPublished, parsePage(&blank, &page, &fault));
}

test "locations are checked against the frontier without overflow" {
    var fault: Fault = .{};
    const good: Location = .{ .offset = 90, .phys_length = 10, .logic_length = 10 };
    try checkLocation(good, 0, 0, 100, .raw, &fault);
    const bad = [_]Location{
        .{ .offset = 0, .phys_length = 0, .logic_length = 10 },
        .{ .offset = 0, .phys_length = 10, .logic_length = 0 },
        .{ .offset = 91, .phys_length = 10, .logic_length = 10 },
        .{ .offset = std.math.maxInt(u64) - 5, .phys_length = 10, .logic_length = 10 },
        .{ .offset = 0, .phys_length = 10, .logic_length = 11 },
        .{ .offset = 0, .phys_length = 10, .logic_length = (1 << 31) + 1 },
        .{ .offset = 0, .phys_length = std.math.maxInt(u32), .logic_length = 10 },
    };
    // Sizes of no record, where the codec would allow them.
    for ([_]u32{ 0, (1 << 31) + 1 }) |bytes| {
        const location: Location = .{ .offset = 0, .phys_length = 1 << 30, .logic_length = bytes };
        try std.testing.expectError(error.Malformed, checkLocation(location, 0, 0, 1 << 30, .zstd, &fault));
    }
    for (bad) |location| {
        try std.testing.expectError(error.Malformed, checkLocation(location, 0, 0, 100, .raw, &fault));
    }
    const bomb: Location = .{ .offset = 0, .phys_length = 16, .logic_length = 1 << 31 };
    try std.testing.expectError(error.Codec, checkLocation(bomb, 0, 0, 100, .zstd, &fault));
}

test "the largest that is allowed is taken" {
    const records_max = (file_offset_max - page_bytes) / location_bytes;
    const longest: [schema_bytes_max]u8 = @splat('s');
    var bytes: [page_bytes]u8 = undefined;
    encodePage(&bytes, records_max, .raw, &longest, &.{file_offset_max});
    var page: Page = undefined;
    var fault: Fault = .{};
    try parsePage(&bytes, &page, &fault);
    try std.testing.expectEqual(@as(u64, records_max), page.length);
    try std.testing.expectEqual(@as(u64, file_offset_max), page.tails[0]);
    try std.testing.expectEqualStrings(&longest, page.schemaBytes());
    try std.testing.expectError(error.Malformed, tableEnd(records_max + 1, &fault));
}

test "the size of a record is held against its geometry" {
    var fault: Fault = .{};
    const location: Location = .{ .offset = 0, .phys_length = 10, .logic_length = 10 };
    try checkFixed(location, 10, 0, &fault);
    for ([_]u64{ 9, 11 }) |wrong| try std.testing.expectError(error.Malformed, checkFixed(location, wrong, 0, &fault));

    for ([_]u32{ 4, 8 }) |dim_bytes| {
        const geometry: RaggedGeometry = .{ .ndim = 2, .dim_bytes = dim_bytes, .item_bytes = 4 };
        const header_bytes = geometry.headerBytes();
        try std.testing.expectEqual(@as(u64, 24), try geometry.payloadBytes(header_bytes + 24, 0, &fault));
        for ([_]u32{ 0, header_bytes - 1, header_bytes, header_bytes + 1, header_bytes + 23 }) |wrong| {
            try std.testing.expectError(error.Malformed, geometry.payloadBytes(wrong, 0, &fault));
        }
        var header: [16]u8 = @splat(0);
        var dims: [2]u64 = undefined;
        header[0] = 2;
        header[dim_bytes] = 3;
        try geometry.dimensions(header[0..header_bytes], 24, &dims, 0, 0, &fault);
        try std.testing.expectEqual([2]u64{ 2, 3 }, dims);
        for ([_]u64{ 20, 23, 25, 28 }) |wrong| {
            try std.testing.expectError(error.Malformed, geometry.dimensions(header[0..header_bytes], wrong, &dims, 0, 0, &fault));
        }
        // 2^33 · 2^31 · 4: beyond 64 bits, where the low ones fit.
        if (dim_bytes == 8) {
            header[0] = 0;
            header[4] = 2;
            header[8] = 0;
            header[11] = 0x80;
            try std.testing.expectError(error.Malformed, geometry.dimensions(&header, 0, &dims, 0, 0, &fault));
        }
    }
}
