//! The rules of this folder as data, and the tests that hold every file to them:
//!
//!   rooms    what each file may import: nothing that stands below it in the table, nothing unlisted
//!   powers   words with reach (system calls, assembly, exports) and the files that may use them
//!   style    what the formatter leaves open
//!
//! Tests may open any door: what is inside a `test`, in `*_test.zig`, `testing/` and `fuzz/` is held to
//! the style alone. A file that is in no table fails, so a new one gets its row with its first commit.

const std = @import("std");
const mem = std.mem;
const testing = std.testing;

const Room = struct {
    file: []const u8,
    /// Files relative to this folder, and modules. Exact: what is listed is used.
    imports: []const []const u8,
    source: [:0]const u8,
};

fn room(comptime file: []const u8, comptime imports: []const []const u8) Room {
    return .{ .file = file, .imports = imports, .source = @embedFile(file) };
}

/// From the ground up: a room imports only rooms above it here, so there are no circles.
const rooms = [_]Room{
    // The ground: these know nothing of containers.
    room("fault.zig", &.{ "std", "builtin" }),
    room("zstd.zig", &.{"std"}),
    room("buffer.zig", &.{ "std", "builtin" }),
    room("pad.zig", &.{ "std", "fault.zig" }),
    room("signals.zig", &.{ "std", "builtin" }),
    room("executor.zig", &.{ "std", "signals.zig" }),
    room("topology.zig", &.{ "std", "builtin" }),
    room("sampler/iid.zig", &.{"std"}),
    room("sampler/feistel.zig", &.{"std"}),
    room("sampler.zig", &.{ "std", "sampler/iid.zig", "sampler/feistel.zig" }),
    room("dict.zig", &.{ "std", "fault.zig", "zstd.zig" }),
    room("frame.zig", &.{ "std", "fault.zig", "zstd.zig" }),
    // What a container is, piece by piece. format and plan do no I/O.
    room("store/format.zig", &.{ "std", "builtin", "fault.zig" }),
    room("store/plan.zig", &.{"std"}),
    room("store/parts.zig", &.{"std"}),
    room("store/copy.zig", &.{ "std", "builtin" }),
    room("store/map.zig", &.{ "std", "builtin" }),
    room("store/reserve.zig", &.{ "std", "builtin" }),
    room("store/scratch.zig", &.{ "std", "fault.zig", "zstd.zig" }),
    room("store/codec.zig", &.{ "std", "fault.zig", "zstd.zig", "store/format.zig" }),
    room("store/checksum.zig", &.{ "std", "store/format.zig", "store/copy.zig" }),
    room("store/residence.zig", &.{ "std", "executor.zig", "store/map.zig" }),
    room("store/volume.zig", &.{ "std", "fault.zig", "executor.zig", "store/format.zig", "store/codec.zig", "store/map.zig", "store/residence.zig", "store/reserve.zig", "store/scratch.zig", "store/checksum.zig", "store/parts.zig" }),
    // The four crossings, where the pieces meet. They do not know each other.
    room("store/append.zig", &.{ "std", "fault.zig", "zstd.zig", "store/format.zig", "store/plan.zig", "store/codec.zig", "store/scratch.zig", "store/volume.zig" }),
    room("store/append_file.zig", &.{ "std", "fault.zig", "store/format.zig", "store/plan.zig", "store/volume.zig" }),
    room("store/gather.zig", &.{ "std", "fault.zig", "store/format.zig", "store/plan.zig", "store/codec.zig", "store/copy.zig", "store/checksum.zig", "store/map.zig", "store/scratch.zig", "store/volume.zig" }),
    room("store/verify.zig", &.{ "std", "fault.zig", "store/format.zig", "store/plan.zig", "store/codec.zig", "store/copy.zig", "store/checksum.zig", "store/map.zig", "store/scratch.zig", "store/volume.zig" }),
    room("store/windows.zig", &.{"std"}),
    // The front of the core, and its one door.
    room("store.zig", &.{ "std", "builtin", "fault.zig", "executor.zig", "store/format.zig", "store/plan.zig", "store/codec.zig", "store/map.zig", "store/residence.zig", "store/reserve.zig", "store/scratch.zig", "store/volume.zig", "store/append.zig", "store/append_file.zig", "store/gather.zig", "store/checksum.zig", "store/verify.zig", "store/windows.zig" }),
    room("capi/exports.zig", &.{ "std", "builtin", "fault.zig", "buffer.zig", "pad.zig", "signals.zig", "executor.zig", "topology.zig", "sampler.zig", "dict.zig", "frame.zig", "store.zig" }),
    room("root.zig", &.{ "std", "capi/exports.zig" }),
    // Outside the door: sees the header, not the core.
    room("napi/thunk.zig", &.{ "std", "builtin" }),
    room("napi/win_napi.zig", &.{ "std", "builtin", "napi/thunk.zig", "node_api_def" }),
};

/// C and C++: `#include` of everything but the C++ standard library, whose headers have no suffix.
const c_rooms = [_]Room{
    room("capi/zrecord.h", &.{ "stddef.h", "stdint.h" }),
    room("napi/value.h", &.{ "napi.h", "capi/zrecord.h" }),
    room("napi/work.h", &.{"napi/value.h"}),
    room("napi/calls.h", &.{"napi.h"}),
    room("napi/value.cc", &.{"napi/value.h"}),
    room("napi/work.cc", &.{"napi/work.h"}),
    room("napi/calls.cc", &.{ "napi/calls.h", "napi/value.h", "napi/work.h" }),
    room("napi/module.cc", &.{ "napi.h", "windows.h", "dlfcn.h", "napi/calls.h", "napi/value.h", "napi/work.h" }),
};

const Power = struct {
    /// Consecutive tokens.
    words: []const []const u8,
    files: []const []const u8,
    because: []const u8,
};

/// Who may use words with reach. Exact: each file listed uses the word.
const powers = [_]Power{
    .{ .words = &.{ "os", ".", "linux" }, .files = &.{ "store/map.zig", "store/reserve.zig", "signals.zig" }, .because = "I/O goes through std.Io, so that a failing one can take its place" },
    .{ .words = &.{ "std", ".", "posix" }, .files = &.{ "store/map.zig", "signals.zig", "topology.zig", "buffer.zig" }, .because = "I/O goes through std.Io, so that a failing one can take its place" },
    .{ .words = &.{"Threaded"}, .files = &.{"capi/exports.zig"}, .because = "who does the I/O is decided in one place" },
    .{ .words = &.{"c_allocator"}, .files = &.{"capi/exports.zig"}, .because = "whose memory it is is decided in one place" },
    .{ .words = &.{"getenv"}, .files = &.{"capi/exports.zig"}, .because = "settings come in through one door" },
    .{ .words = &.{"spawn"}, .files = &.{"executor.zig"}, .because = "the process has one budget of threads" },
    .{ .words = &.{"asm"}, .files = &.{ "store/copy.zig", "napi/thunk.zig", "napi/win_napi.zig" }, .because = "assembly is kept in few places" },
    .{ .words = &.{ "extern", "fn" }, .files = &.{ "zstd.zig", "napi/thunk.zig" }, .because = "C is seen by as few files as it has libraries: zstd, and the host that Windows looks for" },
    .{ .words = &.{ "extern", "\"c\"", "fn" }, .files = &.{"topology.zig"}, .because = "what std has is not declared again" },
    .{ .words = &.{ "export", "fn" }, .files = &.{ "capi/exports.zig", "napi/win_napi.zig" }, .because = "the C ABI is one file" },
    .{ .words = &.{ "debug", ".", "print" }, .files = &.{}, .because = "a library does not write to its host's terminal" },
    .{ .words = &.{ "std", ".", "log" }, .files = &.{}, .because = "a library does not write to its host's terminal" },
    .{ .words = &.{"@panic"}, .files = &.{}, .because = "a library does not end its host: assert what is ours, return what is not" },
    .{ .words = &.{"@setRuntimeSafety"}, .files = &.{}, .because = "checks are those of the build mode" },
    .{ .words = &.{"threadlocal"}, .files = &.{}, .because = "state has an owner that can be seen" },
};

/// What tests.zig gathers may be in files of no room.
fn isTestFile(file: []const u8) bool {
    return mem.endsWith(u8, file, "_test.zig") or mem.startsWith(u8, file, "testing/") or
        mem.startsWith(u8, file, "fuzz/") or mem.eql(u8, file, "fuzz.zig") or
        mem.eql(u8, file, "tests.zig") or mem.eql(u8, file, "tidy.zig");
}

// ---- reading sources ----

/// The tokens of a Zig file that are not inside a `test`.
const Code = struct {
    source: [:0]const u8,
    tokenizer: std.zig.Tokenizer,

    fn init(source: [:0]const u8) Code {
        return .{ .source = source, .tokenizer = .init(source) };
    }

    fn next(code: *Code) ?[]const u8 {
        while (true) {
            const token = code.tokenizer.next();
            switch (token.tag) {
                .eof => return null,
                .keyword_test => code.skipBlock(),
                else => return code.source[token.loc.start..token.loc.end],
            }
        }
    }

    fn skipBlock(code: *Code) void {
        var depth: usize = 0;
        while (true) {
            switch (code.tokenizer.next().tag) {
                .eof => return,
                .l_brace => depth += 1,
                .r_brace => {
                    depth -= 1;
                    if (depth == 0) return;
                },
                else => {},
            }
        }
    }
};

/// What a Zig file imports or embeds outside its tests, resolved, each once.
fn zigImports(arena: mem.Allocator, file: []const u8, source: [:0]const u8) ![]const []const u8 {
    var found: std.ArrayList([]const u8) = .empty;
    var code: Code = .init(source);
    while (code.next()) |word| {
        if (!mem.eql(u8, word, "@import") and !mem.eql(u8, word, "@embedFile")) continue;
        if (!mem.eql(u8, code.next() orelse "", "(")) return error.ImportNotUnderstood;
        const literal = code.next() orelse "";
        if (literal.len < 2 or literal[0] != '"') return error.ImportNotUnderstood;
        try addOnce(arena, &found, try resolve(arena, file, literal[1 .. literal.len - 1]));
    }
    return found.items;
}

fn cIncludes(arena: mem.Allocator, file: []const u8, source: []const u8) ![]const []const u8 {
    var found: std.ArrayList([]const u8) = .empty;
    var lines = mem.tokenizeScalar(u8, source, '\n');
    while (lines.next()) |line| {
        const directive = mem.trimStart(u8, line, " ");
        if (!mem.startsWith(u8, directive, "#include")) continue;
        const name = mem.trim(u8, directive["#include".len..], " ");
        if (name.len < 2) return error.ImportNotUnderstood;
        const inner = name[1 .. name.len - 1];
        if (name[0] == '"') {
            try addOnce(arena, &found, try resolve(arena, file, inner));
        } else if (mem.indexOfScalar(u8, inner, '.') != null) {
            try addOnce(arena, &found, inner);
        }
    }
    return found.items;
}

fn resolve(arena: mem.Allocator, file: []const u8, import: []const u8) ![]const u8 {
    if (mem.indexOfScalar(u8, import, '.') == null) return import; // A module.
    return std.fs.path.resolvePosix(arena, &.{ std.fs.path.dirnamePosix(file) orelse "", import });
}

fn addOnce(arena: mem.Allocator, list: *std.ArrayList([]const u8), name: []const u8) !void {
    if (!contains(list.items, name)) try list.append(arena, name);
}

fn contains(list: []const []const u8, name: []const u8) bool {
    for (list) |item| if (mem.eql(u8, item, name)) return true;
    return false;
}

fn countWords(source: [:0]const u8, words: []const []const u8) usize {
    var count: usize = 0;
    var matched: usize = 0;
    var code: Code = .init(source);
    while (code.next()) |word| {
        matched = if (mem.eql(u8, word, words[matched])) matched + 1 else @intFromBool(mem.eql(u8, word, words[0]));
        if (matched < words.len) continue;
        count += 1;
        matched = 0;
    }
    return count;
}

// ---- faults, counted and printed ----

const Report = struct {
    count: usize = 0,
    is_quiet: bool = false,

    fn add(report: *Report, comptime format: []const u8, arguments: anytype) void {
        report.count += 1;
        if (!report.is_quiet) std.debug.print("zig-src/" ++ format ++ "\n", arguments);
    }

    fn expectClean(report: *const Report) !void {
        if (report.count > 0) return error.NotTidy;
    }
};

fn checkImports(report: *Report, file: []const u8, allowed: []const []const u8, found: []const []const u8) void {
    for (found) |import| {
        if (!contains(allowed, import)) report.add("{s} imports {s}, which its row in tidy.zig does not allow", .{ file, import });
    }
    for (allowed) |import| {
        if (!contains(found, import)) report.add("{s} does not import {s}: its row in tidy.zig says so", .{ file, import });
    }
}

/// Columns that code may take; texts of messages do not count.
const columns_max = 200;

fn checkStyle(report: *Report, file: []const u8, source: []const u8) void {
    if (mem.endsWith(u8, file, ".zig") and !mem.startsWith(u8, source, "//!")) {
        report.add("{s}:1: a file opens with what it is about (//!)", .{file});
    }
    if (!mem.endsWith(u8, source, "\n") or mem.endsWith(u8, source, "\n\n")) {
        report.add("{s}: a file ends with one newline", .{file});
    }
    var lines = mem.splitScalar(u8, source, '\n');
    var number: usize = 0;
    while (lines.next()) |line| {
        number += 1;
        if (mem.indexOfAny(u8, line, "\t\r") != null) report.add("{s}:{d}: a tab or a carriage return", .{ file, number });
        if (mem.endsWith(u8, line, " ")) report.add("{s}:{d}: blanks at the end", .{ file, number });
        if (codeColumns(line) > columns_max) report.add("{s}:{d}: more than {d} columns", .{ file, number, columns_max });
        for (later_words) |word| {
            if (mem.indexOf(u8, line, word) != null) report.add("{s}:{d}: {s}: do it or file an issue", .{ file, number, word });
        }
    }
    for (vague_rooms) |name| {
        var parts = mem.splitAny(u8, file, "/.");
        while (parts.next()) |part| {
            if (mem.eql(u8, part, name)) report.add("{s}: a room of this name fills up with everything", .{file});
        }
    }
}

// Written apart, so that this file passes.
const later_words = [_][]const u8{ "TO" ++ "DO", "FIX" ++ "ME", "XX" ++ "X" };
const vague_rooms = [_][]const u8{ "utils", "util", "common", "types", "helpers", "misc" };

fn codeColumns(line: []const u8) usize {
    var columns: usize = 0;
    var in_text = false;
    for (line, 0..) |byte, at| {
        if (byte == '"' and (at == 0 or line[at - 1] != '\\')) in_text = !in_text;
        if (!in_text) columns += 1;
    }
    return columns;
}

// ---- the tests ----

test "every file imports what its row says, no more and no less" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    var report: Report = .{};
    for (rooms) |it| checkImports(&report, it.file, it.imports, try zigImports(arena, it.file, it.source));
    for (c_rooms) |it| checkImports(&report, it.file, it.imports, try cIncludes(arena, it.file, it.source));
    try report.expectClean();
}

test "imports point down only" {
    var report: Report = .{};
    for (rooms, 0..) |it, index| {
        for (it.imports) |import| {
            if (!mem.endsWith(u8, import, ".zig")) continue;
            for (rooms[0..index]) |lower| {
                if (mem.eql(u8, lower.file, import)) break;
            } else report.add("{s} imports {s}, which does not stand above it in tidy.zig", .{ it.file, import });
        }
    }
    try report.expectClean();
}

test "words with reach are used where they may be" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    var report: Report = .{};
    for (powers) |power| {
        const words = try mem.join(arena_state.allocator(), " ", power.words);
        for (rooms) |it| {
            const uses = countWords(it.source, power.words) > 0;
            const may = contains(power.files, it.file);
            if (uses and !may) report.add("{s} uses {s}, but {s}", .{ it.file, words, power.because });
            if (may and !uses) report.add("{s} does not use {s}: tidy.zig lists it", .{ it.file, words });
        }
    }
    try report.expectClean();
}

test "style" {
    var report: Report = .{};
    for (rooms) |it| checkStyle(&report, it.file, it.source);
    for (c_rooms) |it| checkStyle(&report, it.file, it.source);
    checkStyle(&report, "tidy.zig", @embedFile("tidy.zig"));
    checkStyle(&report, "tests.zig", @embedFile("tests.zig"));
    try report.expectClean();
}

test "every file is in a table, and every test is run" {
    const io = testing.io;
    // Elsewhere, as when the test program is started by hand, there is nothing to list.
    const folder = std.Io.Dir.cwd().openDir(io, "zig-src", .{ .iterate = true }) catch return error.SkipZigTest;
    defer folder.close(io);
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const run = try zigImports(arena, "tests.zig", @embedFile("tests.zig"));

    var report: Report = .{};
    var is_listed = false;
    var walker = try folder.walk(arena);
    while (try walker.next(io)) |entry| {
        if (entry.kind != .file or !isSource(entry.basename)) continue;
        const file = try arena.dupe(u8, entry.path);
        mem.replaceScalar(u8, file, std.fs.path.sep, '/');
        is_listed = is_listed or mem.eql(u8, file, "tidy.zig");
        const source = try folder.readFileAllocOptions(io, file, arena, .limited(16 << 20), .of(u8), 0);
        if (isTestFile(file)) {
            checkStyle(&report, file, source);
        } else if (findRoom(file) == null) {
            report.add("{s} has no row in tidy.zig", .{file});
        }
        if (mem.endsWith(u8, file, ".zig") and hasTests(source) and !contains(run, file) and !mem.eql(u8, file, "tests.zig")) {
            report.add("{s} has tests that tests.zig does not import", .{file});
        }
    }
    try testing.expect(is_listed);
    try report.expectClean();
}

fn isSource(name: []const u8) bool {
    for ([_][]const u8{ ".zig", ".cc", ".c", ".h" }) |suffix| if (mem.endsWith(u8, name, suffix)) return true;
    return false;
}

fn findRoom(file: []const u8) ?*const Room {
    for (&rooms) |*it| if (mem.eql(u8, it.file, file)) return it;
    for (&c_rooms) |*it| if (mem.eql(u8, it.file, file)) return it;
    return null;
}

fn hasTests(source: [:0]const u8) bool {
    var tokenizer: std.zig.Tokenizer = .init(source);
    while (true) switch (tokenizer.next().tag) {
        .eof => return false,
        .keyword_test => return true,
        else => {},
    };
}

test "the checks see what they are for" {
    var arena_state: std.heap.ArenaAllocator = .init(testing.allocator);
    defer arena_state.deinit();
    const arena = arena_state.allocator();
    const source =
        \\//! @import("in_a_comment.zig")
        \\const a = @import("../up.zig");
        \\const b = @import("beside.zig").inner;
        \\const text = "@import(\"in_a_text.zig\")";
        \\test "doors are open here" {
        \\    const c = @import("anywhere.zig");
        \\    if (true) { std.debug.print("", .{}); }
        \\}
        \\fn late() void { std.debug.print("", .{}); }
        \\const std = @import("std");
    ;
    const found = try zigImports(arena, "store/x.zig", source);
    try testing.expectEqual(@as(usize, 3), found.len);
    try testing.expectEqualStrings("up.zig", found[0]);
    try testing.expectEqualStrings("store/beside.zig", found[1]);
    try testing.expectEqualStrings("std", found[2]);
    try testing.expectEqual(@as(usize, 1), countWords(source, &.{ "debug", ".", "print" }));

    var report: Report = .{ .is_quiet = true };
    checkImports(&report, "store/x.zig", &.{ "up.zig", "std", "never.zig" }, found);
    try testing.expectEqual(@as(usize, 2), report.count); // beside.zig is not allowed, never.zig not there

    const includes = try cIncludes(arena, "napi/x.cc", "#include <new>\n#include <zstd.h>\n  #include \"../capi/zrecord.h\"\n");
    try testing.expectEqual(@as(usize, 2), includes.len);
    try testing.expectEqualStrings("capi/zrecord.h", includes[1]);

    const wide: [columns_max + 1]u8 = @splat('b');
    const untidy = [_][]const u8{
        "const x = 1;\n", // no opening comment
        "//! a\n\n", // two newlines at the end
        "//! a", // none
        "//! a\n\tb\n",
        "//! a\r\n",
        "//! a \n",
        "//! a\n" ++ wide ++ "\n",
        "//! a " ++ later_words[0] ++ "\n",
    };
    for (untidy) |text| {
        report = .{ .is_quiet = true };
        checkStyle(&report, "x.zig", text);
        try testing.expectEqual(@as(usize, 1), report.count);
    }
    report = .{ .is_quiet = true };
    checkStyle(&report, "store/utils.zig", "//! a\n");
    try testing.expectEqual(@as(usize, 1), report.count);
    report = .{ .is_quiet = true };
    checkStyle(&report, "x.zig", "//! a\nfail(\"" ++ wide ++ "\");\n");
    try testing.expectEqual(@as(usize, 0), report.count);
}
