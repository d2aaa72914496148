//! zstd frames that are no records: pages of other files. The decoder is the records' own, with everything that it
//! refuses; a context for each call, since pages are large.

const std = @import("std");
const zstd = @import("zstd.zig");
const fault_module = @import("fault.zig");
const Error = fault_module.Error;
const Fault = fault_module.Fault;

/// How many bytes of `target` the frames in `source` fill. Nothing is written past its end.
pub fn decompress(gpa: std.mem.Allocator, target: []u8, source: []const u8, fault: *Fault) Error!usize {
    var memory: zstd.Memory = .{ .gpa = gpa };
    const context = zstd.createDecompressor(&memory) catch return fault.outOfMemory("decompression", target.len);
    defer zstd.freeDecompressor(context);
    var refusal: []const u8 = "";
    return zstd.decompress(context, null, target, source, &refusal) catch |err| switch (err) {
        error.OutOfMemory => fault.outOfMemory("decompression", target.len),
        error.Refused => fault.fail(error.Codec, .none, "zstd: {s}", .{refusal}),
    };
}

/// "hello" as a frame of one raw block.
pub const hello_frame = "\x28\xb5\x2f\xfd\x20\x05\x29\x00\x00hello";

test "frames, one after the other; what is damaged, cut or too long is refused" {
    const gpa = std.testing.allocator;
    var fault: Fault = .{};
    var target: [10]u8 = undefined;
    try std.testing.expectEqual(5, try decompress(gpa, &target, hello_frame, &fault));
    try std.testing.expectEqual(10, try decompress(gpa, &target, hello_frame ++ hello_frame, &fault));
    try std.testing.expectEqualStrings("hellohello", &target);
    try std.testing.expectError(error.Codec, decompress(gpa, target[0..4], hello_frame, &fault));
    for (0..hello_frame.len - 1) |bytes| {
        if (bytes == 0) continue;
        try std.testing.expectError(error.Codec, decompress(gpa, &target, hello_frame[0..bytes], &fault));
    }
    try std.testing.expectError(error.Codec, decompress(gpa, &target, hello_frame ++ "x", &fault));
    try std.testing.expect(std.mem.startsWith(u8, fault.message(), "zstd: "));
}
