//! Every input of the kept corpora (test/fuzz/corpus) once: what fuzzers found worth keeping, and what
//! once failed. A line of a corpus is one input in hexadecimal digits.

const std = @import("std");
const testing = std.testing;
const page = @import("page.zig");
const gather = @import("gather.zig");
const dictionary = @import("dictionary.zig");

const inputs_min = 20;

fn Corpus(comptime text: []const u8) type {
    return struct {
        lines: std.mem.TokenIterator(u8, .scalar) = std.mem.tokenizeScalar(u8, text, '\n'),
        buffer: [1 << 16]u8 = undefined,
        count: usize = 0,

        fn next(corpus: *@This()) !?[]const u8 {
            const line = corpus.lines.next() orelse return null;
            corpus.count += 1;
            return try std.fmt.hexToBytes(&corpus.buffer, line);
        }
    };
}

fn failed(corpus: anytype, err: anyerror) anyerror {
    std.debug.print("input {d} of the corpus: {t}\n", .{ corpus.count, err });
    return err;
}

test "the corpus of pages" {
    var corpus: Corpus(@embedFile("corpus-page")) = .{};
    while (try corpus.next()) |input| page.run(input) catch |err| return failed(corpus, err);
    try testing.expect(corpus.count >= inputs_min);
}

test "the corpus of dictionaries and frames" {
    var corpus: Corpus(@embedFile("corpus-dictionary")) = .{};
    while (try corpus.next()) |input| dictionary.run(testing.allocator, input) catch |err| return failed(corpus, err);
    try testing.expect(corpus.count >= inputs_min);
}

test "the corpus of locations and stored bytes" {
    var tmp = testing.tmpDir(.{});
    defer tmp.cleanup();
    var path: [512]u8 = undefined;
    const path_bytes = try tmp.dir.realPath(testing.io, &path);
    var world: gather.World = undefined;
    world.init(testing.io, testing.allocator, path[0..path_bytes]);
    defer world.deinit();
    var corpus: Corpus(@embedFile("corpus-gather")) = .{};
    while (try corpus.next()) |input| gather.run(&world, input) catch |err| return failed(corpus, err);
    try testing.expect(corpus.count >= inputs_min);
}
