//! The first 4096 bytes of meta.zr from anybody: taken exactly where the format's rules, written down
//! here a second time, allow it, and then saying exactly what stands there.

const std = @import("std");
const format = @import("../store/format.zig");
const Fault = @import("../fault.zig").Fault;

/// The first bytes of a page; the rest is zero.
pub fn run(input: []const u8) !void {
    var bytes: [format.page_bytes]u8 = @splat(0);
    const given = @min(input.len, bytes.len);
    @memcpy(bytes[0..given], input[0..given]);

    var page: format.Page = undefined;
    var fault: Fault = .{};
    const is_taken = if (format.parsePage(&bytes, &page, &fault)) |_| true else |err| blk: {
        if (err != error.Malformed and err != error.NotPublished) return error.ForeignError;
        if (fault.message().len == 0) return error.SilentRefusal;
        break :blk false;
    };
    if (is_taken != isSound(&bytes)) return error.OtherJudgement;
    if (!is_taken) return;

    // What was understood, written again, is what was there; only padding may differ.
    var again: [format.page_bytes]u8 = undefined;
    format.encodePage(&again, page.length, page.codec, page.schemaBytes(), page.tails[0..page.data_shards]);
    const end = format.schema_offset + page.schema_length;
    if (!std.mem.eql(u8, bytes[0..end], again[0..end])) return error.OtherPage;
    if (try format.tableEnd(page.length, &fault) != format.locationOffset(page.length)) return error.OtherTable;
}

/// The rules by their text (docs/format.md), without a line of the code above.
fn isSound(bytes: *const [4096]u8) bool {
    const length = std.mem.readInt(u64, bytes[0..8], .little);
    const schema_length = std.mem.readInt(u16, bytes[8..10], .little);
    const shards = bytes[10];
    if (schema_length < 1 or schema_length > 2040) return false;
    if (shards < 1 or bytes[11] > 2) return false;
    if (std.mem.readInt(u32, bytes[12..16], .little) != 0) return false;
    if (4096 + 16 * @as(u128, length) > std.math.maxInt(i64)) return false;
    for (0..255) |shard| {
        const tail = std.mem.readInt(u64, bytes[16 + 8 * shard ..][0..8], .little);
        if (if (shard < shards) tail > std.math.maxInt(i64) else tail != 0) return false;
    }
    return true;
}
