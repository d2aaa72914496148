//! `zrecord.h` is written by hand and read by people; this keeps it equal to what is exported:
//! every value, every struct size and offset, every function's name.

const std = @import("std");
const exports = @import("exports.zig");

const header = @embedFile("zrecord.h");

fn expectDeclared(comptime text: []const u8) !void {
    if (std.mem.indexOf(u8, header, text) == null) {
        std.debug.print("zrecord.h does not declare: {s}\n", .{text});
        return error.HeaderDiffers;
    }
}

test "statuses and kinds have the header's values" {
    inline for (@typeInfo(exports.Status).@"enum".field_names, std.enums.values(exports.Status)) |name, status| {
        var buffer: [64]u8 = undefined;
        const upper = std.ascii.upperString(&buffer, name);
        var line: [96]u8 = undefined;
        const text = try std.fmt.bufPrint(&line, "ZR_{s} = {d},", .{ upper, @backingInt(status) });
        try std.testing.expect(std.mem.indexOf(u8, header, text) != null);
    }
    try expectDeclared("ZR_FILE_NONE = 0, ZR_FILE_FOLDER = 1, ZR_FILE_META = 2, ZR_FILE_DATA = 3, ZR_FILE_DICT = 4");
    try expectDeclared("ZR_FILE_INTEGRITY = 5, ZR_FILE_SOURCE = 6");
    try expectDeclared("ZR_WORDS_NONE = 0, ZR_WORDS_COMPARE = 1, ZR_WORDS_MAKE = 2");
    try expectDeclared("ZR_PAGE_BYTES = 4096, ZR_BLOCK_RECORDS = 4096");
    try expectDeclared("ZR_CODEC_RAW = 0, ZR_CODEC_ZSTD = 1, ZR_CODEC_ZSTD_DICT = 2");
    try expectDeclared("ZS_SEQUENTIAL = 0, ZS_IID = 1, ZS_CYCLIC = 2");
    try expectDeclared("ZS_STREAM_2_4 = 24, ZS_STREAM_2_8 = 28");
    try expectDeclared("ZR_PUBLISH_DURABLE = 1");
    try expectDeclared(std.fmt.comptimePrint("#define ZR_ABI_VERSION {d}u", .{exports.abi_version}));
}

test "structs have the layout that a C compiler gives the header's" {
    // The offsets follow from the header by the rules all our targets share: natural alignment.
    try std.testing.expectEqual(@as(usize, 304), @sizeOf(exports.CError));
    try std.testing.expectEqual(@as(usize, 16), @offsetOf(exports.CError, "record_id"));
    try std.testing.expectEqual(@as(usize, 48), @offsetOf(exports.CError, "message"));
    try std.testing.expectEqual(@as(usize, 56), @sizeOf(exports.CreateOptions));
    try std.testing.expectEqual(@as(usize, 48), @offsetOf(exports.CreateOptions, "codec"));
    try std.testing.expectEqual(@as(usize, 48), @sizeOf(exports.StoreInfo));
    try std.testing.expectEqual(@as(usize, 24), @offsetOf(exports.StoreInfo, "schema"));
    try std.testing.expectEqual(@as(usize, 16), @sizeOf(exports.RaggedGeometry));
    try std.testing.expectEqual(@as(usize, 56), @sizeOf(exports.CheckOptions));
    try std.testing.expectEqual(@as(usize, 48), @offsetOf(exports.CheckOptions, "words_use"));
    try std.testing.expectEqual(@as(usize, 16), @sizeOf(exports.Buffer));
    try std.testing.expectEqual(@as(usize, 32), @sizeOf(exports.SamplerOptions));
    try std.testing.expectEqual(@as(usize, 96), @sizeOf(exports.PadRequest));
    try expectDeclared("char os_code[24];");
    try expectDeclared("char message[256];");
}

test "every function of the header is exported, and no other" {
    const source = @embedFile("exports.zig");
    var declared: usize = 0;
    var lines = std.mem.tokenizeScalar(u8, header, '\n');
    while (lines.next()) |line| {
        if (line[0] == ' ' or line[0] == '/' or std.mem.startsWith(u8, line, "typedef")) continue;
        const open = std.mem.indexOfScalar(u8, line, '(') orelse continue;
        const start = (std.mem.lastIndexOfAny(u8, line[0..open], " *") orelse continue) + 1;
        const name = line[start..open];
        if (!std.mem.startsWith(u8, name, "zr_") and !std.mem.startsWith(u8, name, "zs_")) continue;
        declared += 1;
        var buffer: [96]u8 = undefined;
        const text = try std.fmt.bufPrint(&buffer, "export fn {s}(", .{name});
        if (std.mem.indexOf(u8, source, text) == null) {
            std.debug.print("exports.zig lacks {s}\n", .{name});
            return error.HeaderDiffers;
        }
    }
    try std.testing.expectEqual(std.mem.count(u8, source, "\nexport fn "), declared);
}
