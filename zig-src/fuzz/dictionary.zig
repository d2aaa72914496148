//! Dictionaries, frames and training samples from anybody. The first byte says which:
//!
//!     0  a dictionary and a frame are read         dict_bytes u16, record_bytes u16, dictionary, frame
//!     1  a dictionary is written with, then read   dict_bytes u16, dictionary, record
//!     2  a dictionary is trained                   dict_bytes u16, count u8, sizes u8 each, samples

const std = @import("std");
const zstd = @import("../zstd.zig");
const codec = @import("../store/codec.zig");
const dict_module = @import("../dict.zig");
const fault_module = @import("../fault.zig");
const Fault = fault_module.Fault;
const Allocator = std.mem.Allocator;

pub fn run(gpa: Allocator, input: []const u8) !void {
    if (input.len < 3) return;
    const dict_bytes = std.mem.readInt(u16, input[1..3], .little);
    const rest = input[3..];
    switch (input[0] % 3) {
        0 => try read(gpa, dict_bytes, rest),
        1 => try write(gpa, dict_bytes, rest),
        else => try train(gpa, dict_bytes, rest),
    }
}

fn read(gpa: Allocator, dict_bytes: u16, input: []const u8) !void {
    if (input.len < 2) return;
    const record_bytes = @max(1, std.mem.readInt(u16, input[0..2], .little));
    const dict_part = input[2..][0..@min(dict_bytes, input.len - 2)];
    const frame_part = input[2 + dict_part.len ..];
    if (frame_part.len == 0) return;
    // Blocks of their own, so that a step outside is seen where malloc is watched.
    const frame = try gpa.dupe(u8, frame_part);
    defer gpa.free(frame);

    var fault: Fault = .{};
    var dict: ?codec.Dict = null;
    defer if (dict) |*d| d.deinit(gpa);
    if (dict_bytes > 0) {
        dict = codec.Dict.init(gpa, try gpa.dupe(u8, dict_part), .read, &fault) catch |err| return refused(err, error.Dictionary, &fault);
    }
    const used: ?*const codec.Dict = if (dict) |*d| d else null;
    var memory: zstd.Memory = .{ .gpa = gpa };
    const context = try zstd.createDecompressor(&memory);
    defer zstd.freeDecompressor(context);

    var outcomes: [2]?u64 = undefined;
    for (&outcomes) |*outcome| {
        const target = try gpa.alloc(u8, record_bytes);
        defer gpa.free(target);
        outcome.* = if (codec.decode(context, used, target, frame, 0, 0, &fault)) |_|
            std.hash.Wyhash.hash(0, target)
        else |err| blk: {
            try refused(err, error.Codec, &fault);
            break :blk null;
        };
        // Whatever that was, the context is as good as new for the next record.
        var good: [known.len]u8 = undefined;
        codec.decode(context, null, &good, known_frame, 0, 0, &fault) catch return error.ContextSpoiled;
        if (!std.mem.eql(u8, &good, known)) return error.ContextSpoiled;
    }
    if (outcomes[0] != outcomes[1]) return error.NotTheSameTwice;
}

const known = "as it was";
/// A frame of one raw block that holds `known`.
const known_frame = "\x28\xb5\x2f\xfd\x20\x09\x49\x00\x00as it was";

fn write(gpa: Allocator, dict_bytes: u16, input: []const u8) !void {
    const dict_part = input[0..@min(dict_bytes, input.len)];
    const record = input[dict_part.len..];
    if (record.len == 0) return;
    var fault: Fault = .{};
    var dict = codec.Dict.init(gpa, try gpa.dupe(u8, dict_part), .write, &fault) catch |err| return refused(err, error.Dictionary, &fault);
    defer dict.deinit(gpa);
    var memory: zstd.Memory = .{ .gpa = gpa };
    const compressor = try zstd.createCompressor(&memory);
    defer zstd.freeCompressor(compressor);
    const decompressor = try zstd.createDecompressor(&memory);
    defer zstd.freeDecompressor(decompressor);

    try codec.configure(compressor, &dict, &fault);
    const frame = try gpa.alloc(u8, zstd.compressBound(record.len));
    defer gpa.free(frame);
    const frame_bytes = try codec.encode(compressor, frame, record, &fault);
    const back = try gpa.alloc(u8, record.len);
    defer gpa.free(back);
    try codec.decode(decompressor, &dict, back, frame[0..frame_bytes], 0, 0, &fault);
    if (!std.mem.eql(u8, back, record)) return error.OtherRecord;
}

fn train(gpa: Allocator, dict_bytes: u16, input: []const u8) !void {
    if (input.len < 1) return;
    const count: usize = @min(input[0], input.len - 1);
    var sizes: [255]u64 = undefined;
    var total: usize = 0;
    for (sizes[0..count], input[1..][0..count]) |*size, byte| {
        size.* = byte;
        total += byte;
    }
    // As many bytes as the sizes say: what is missing is zero.
    const samples = try gpa.alloc(u8, total);
    defer gpa.free(samples);
    const given = input[1 + count ..];
    @memset(samples, 0);
    @memcpy(samples[0..@min(total, given.len)], given[0..@min(total, given.len)]);

    var fault: Fault = .{};
    var trained: [2]?u64 = undefined;
    for (&trained) |*outcome| {
        const target = try gpa.alloc(u8, @as(usize, dict_bytes) + 1);
        defer gpa.free(target);
        outcome.* = if (dict_module.train(gpa, target, samples.ptr, sizes[0..count], &fault)) |bytes| blk: {
            if (bytes < 1 or bytes > target.len) return error.OddSize;
            var dict = codec.Dict.init(gpa, try gpa.dupe(u8, target[0..bytes]), .write, &fault) catch return error.UnusableDictionary;
            dict.deinit(gpa);
            break :blk std.hash.Wyhash.hash(0, target[0..bytes]);
        } else |err| blk: {
            try refused(err, error.Dictionary, &fault);
            break :blk null;
        };
    }
    if (trained[0] != trained[1]) return error.NotTheSameTwice;
}

/// A refusal is the one error that may come, with words.
fn refused(err: fault_module.Error, expected: fault_module.Error, fault: *const Fault) !void {
    if (err != expected) return error.ForeignError;
    if (fault.message().len == 0) return error.SilentRefusal;
}
