//! One record in or out. raw is a copy; zstd and zstd_dict make one independent frame per record,
//! always, also where the frame is larger than the record: a store is stored as it was declared.

const std = @import("std");
const zstd = @import("../zstd.zig");
const format = @import("format.zig");
const fault_module = @import("../fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

/// A dictionary, prepared once and shared by all lanes without locks.
pub const Dict = struct {
    bytes: []u8,
    /// On the heap: the prepared forms keep its address, and a Dict moves.
    memory: *zstd.Memory,
    compression: ?*zstd.CDict = null,
    decompression: ?*zstd.DDict = null,

    pub const Use = enum { read, write };

    /// Takes over `bytes`, also on failure.
    pub fn init(gpa: std.mem.Allocator, bytes: []u8, use: Use, fault: *Fault) Error!Dict {
        const memory = gpa.create(zstd.Memory) catch {
            gpa.free(bytes);
            return fault.outOfMemory("a dictionary", @sizeOf(zstd.Memory));
        };
        memory.* = .{ .gpa = gpa };
        var dict: Dict = .{ .bytes = bytes, .memory = memory };
        errdefer dict.deinit(gpa);
        // No build makes an empty dictionary, so the file was cut. (The original opens such a store and
        // fails at every record.)
        if (bytes.len == 0) return fault.fail(error.Dictionary, .dict, "dict.zr is empty", .{});
        // The decompression form is made in both uses: it alone tells a damaged dictionary apart
        // without a byte written.
        dict.decompression = zstd.createDecompressionDict(memory, bytes) catch |err| return switch (err) {
            error.OutOfMemory => fault.outOfMemory("a prepared dictionary", bytes.len),
            error.Refused => fault.fail(error.Dictionary, .dict, "zstd cannot use this dictionary of {d} bytes: it starts like a trained one but is damaged", .{bytes.len}),
        };
        if (use == .write) {
            dict.compression = zstd.createCompressionDict(bytes) catch {
                return fault.outOfMemory("a dictionary's compression tables", bytes.len);
            };
        }
        return dict;
    }

    pub fn deinit(dict: *Dict, gpa: std.mem.Allocator) void {
        if (dict.compression) |prepared| zstd.freeCompressionDict(prepared);
        if (dict.decompression) |prepared| zstd.freeDecompressionDict(prepared);
        gpa.free(dict.bytes);
        gpa.destroy(dict.memory);
        dict.* = undefined;
    }
};

/// Decodes the record stored in `source` into exactly `target`.
pub fn decode(
    context: *zstd.DCtx,
    dict: ?*const Dict,
    target: []u8,
    source: []const u8,
    record: u64,
    shard: u32,
    fault: *Fault,
) Error!void {
    var refusal: []const u8 = "";
    const prepared = if (dict) |d| d.decompression else null;
    const bytes = zstd.decompress(context, prepared, target, source, &refusal) catch |err| return switch (err) {
        error.OutOfMemory => fault.outOfMemory("decoding", target.len),
        error.Refused => fault.failRecord(error.Codec, .{ .data = shard }, record, "record {d} does not decode: {s}", .{ record, refusal }),
    };
    if (bytes != target.len) {
        return fault.failRecord(error.Codec, .{ .data = shard }, record, "record {d} decodes to {d} bytes, its location declares {d}", .{ record, bytes, target.len });
    }
}

/// Sets a compressor up for the frames of one store; encode then makes them.
pub fn configure(context: *zstd.CCtx, dict: ?*const Dict, fault: *Fault) Error!void {
    var refusal: []const u8 = "";
    const prepared = if (dict) |d| d.compression else null;
    zstd.configure(context, prepared, &refusal) catch |err| return refused(err, refusal, fault);
}

/// One frame of `source` at the start of `target`, which holds compressBound(source.len) or more.
pub fn encode(context: *zstd.CCtx, target: []u8, source: []const u8, fault: *Fault) Error!u32 {
    var refusal: []const u8 = "";
    const bytes = zstd.compress(context, target, source, &refusal) catch |err| return refused(err, refusal, fault);
    return @intCast(bytes); // A record has at most 2^31 bytes, its bound stays below 2^32.
}

fn refused(err: zstd.Refused, refusal: []const u8, fault: *Fault) Error {
    return switch (err) {
        error.OutOfMemory => fault.outOfMemory("compression", 0),
        error.Refused => fault.fail(error.Codec, .none, "zstd refused to compress: {s}", .{refusal}),
    };
}

test "a frame round-trips and a wrong size is refused" {
    const gpa = std.testing.allocator;
    var fault: Fault = .{};
    const source = "one record, one frame, one record, one frame";
    var memory: zstd.Memory = .{ .gpa = gpa };
    const compressor = try zstd.createCompressor(&memory);
    defer zstd.freeCompressor(compressor);
    const decompressor = try zstd.createDecompressor(&memory);
    defer zstd.freeDecompressor(decompressor);
    for ([_]bool{ false, true }) |with_dict| {
        var dict: ?Dict = if (with_dict) try .init(gpa, try gpa.dupe(u8, "one record, one frame"), .write, &fault) else null;
        defer if (dict) |*d| d.deinit(gpa);
        const used: ?*const Dict = if (dict) |*d| d else null;
        try configure(compressor, used, &fault);
        var frame: [256]u8 = undefined;
        const bytes = try encode(compressor, &frame, source, &fault);
        var back: [source.len]u8 = undefined;
        try decode(decompressor, used, &back, frame[0..bytes], 0, 0, &fault);
        try std.testing.expectEqualStrings(source, &back);
        try std.testing.expectError(error.Codec, decode(decompressor, used, back[1..], frame[0..bytes], 0, 0, &fault));
        var wide: [source.len + 1]u8 = undefined;
        try std.testing.expectError(error.Codec, decode(decompressor, used, &wide, frame[0..bytes], 0, 0, &fault));
        try std.testing.expectError(error.Codec, decode(decompressor, used, &back, frame[0 .. bytes - 1], 0, 0, &fault));
    }
}

test "a damaged trained dictionary is refused" {
    var fault: Fault = .{};
    const bytes = try std.testing.allocator.dupe(u8, "\x37\xA4\x30\xEC\x01\x00\x00\x00garbage");
    try std.testing.expectError(error.Dictionary, Dict.init(std.testing.allocator, bytes, .read, &fault));
}
