//! Which ids a step takes: batch after batch, a pure function of (options, step).
//!
//! | mode       | a batch                                                  | seek                      |
//! |------------|----------------------------------------------------------|---------------------------|
//! | sequential | the next `batch_size` ids, from the start after the end  | constant time             |
//! | iid        | `batch_size` independent ids                             | 2.4: a walk over ids      |
//! | cyclic     | the next ids of a shuffled cycle; no id twice in a cycle | constant time             |
//!
//! A cycle has `length / batch_size` full batches; the ids that would make the last, short batch
//! are left out, other ones in each cycle. A batch larger than `length` takes one whole cycle.
//!
//! `stream` names the generation of Python loaderx whose numbers come out, index for index. They
//! differ in iid, and in what happens at the end of 64 bits:
//!
//! * 2.4 counts in 64 bits and wraps. A sequential seek with step * batch_size beyond 2^64 goes
//!   where the wrapped product points, and draws that pass the last step go on.
//! * 2.8 has no position beyond the step. Products are 128 bits wide and a draw past the last step
//!   is refused.
//!
//! A sampler is one value without allocations, about 64 KiB (a table of `feistel.zig`, touched
//! only as far as used). It has one owner at a time.

const std = @import("std");
const assert = std.debug.assert;
const iid = @import("sampler/iid.zig");
const feistel = @import("sampler/feistel.zig");

pub const Mode = enum(u32) { sequential = 0, iid = 1, cyclic = 2 };

pub const Stream = enum(u32) { v2_4 = 24, v2_8 = 28 };

pub const Options = struct {
    /// Ids are 0 .. length - 1; at least 1.
    length: u64,
    /// At least 1.
    batch_size: u64,
    /// Not used by `sequential`.
    seed: u64,
    mode: Mode,
    stream: Stream,
};

pub const Sampler = struct {
    options: Options,
    /// The step that the next draw takes.
    step_next: u64,
    /// Stream 2.8: the last step was drawn. `step_next` is still that step.
    exhausted: bool,
    source: Source,

    const Source = union(enum) {
        sequential: Sequential,
        chained: iid.Chained,
        keyed: iid.Keyed,
        cyclic: Cyclic,
    };

    /// Stands at step 0. OutOfRange: length or batch size is 0.
    /// Inline, like those below it: else each level copies 64 KiB of table that nobody has filled.
    pub inline fn init(options: Options) error{OutOfRange}!Sampler {
        if (options.length == 0 or options.batch_size == 0) return error.OutOfRange;
        return .{
            .options = options,
            .step_next = 0,
            .exhausted = false,
            .source = switch (options.mode) {
                .sequential => .{ .sequential = .{ .cursor = 0 } },
                .iid => switch (options.stream) {
                    .v2_4 => .{ .chained = .init(options.length, options.seed) },
                    .v2_8 => .{ .keyed = .init(options.length, options.seed) },
                },
                .cyclic => .{ .cyclic = .init(options) },
            },
        };
    }

    /// How many ids a draw gives.
    pub fn batch(sampler: *const Sampler) u64 {
        const options = &sampler.options;
        return switch (options.mode) {
            .sequential, .iid => options.batch_size,
            .cyclic => @min(options.batch_size, options.length),
        };
    }

    /// The step that the next draw takes; 2^64 - 1 if that was drawn and there is no next.
    pub fn step(sampler: *const Sampler) u64 {
        return sampler.step_next;
    }

    /// Writes the `batch()` ids of the step and goes to the next one.
    /// OutOfRange: stream 2.8 after step 2^64 - 1.
    pub fn draw(sampler: *Sampler, ids: []u64) error{OutOfRange}!void {
        assert(ids.len == sampler.batch());
        if (sampler.exhausted) return error.OutOfRange;

        const options = &sampler.options;
        switch (sampler.source) {
            .sequential => |*sequential| switch (options.stream) {
                .v2_4 => sequential.fill(.wrapping, options.length, ids),
                .v2_8 => sequential.fill(.exact, options.length, ids),
            },
            .chained => |*chained| chained.fill(ids),
            .keyed => |*keyed| keyed.fill(std.math.mulWide(u64, sampler.step_next, options.batch_size), ids),
            .cyclic => |*cyclic| cyclic.fill(ids),
        }

        switch (options.stream) {
            .v2_4 => sampler.step_next +%= 1,
            .v2_8 => if (sampler.step_next == std.math.maxInt(u64)) {
                sampler.exhausted = true;
            } else {
                sampler.step_next += 1;
            },
        }
    }

    /// The next draw takes `target`. Constant time, except iid of stream 2.4, which walks over every
    /// id between here and there, or from step 0 if it lies behind: about 1 ns each.
    /// Aborted: `cancel` was non-zero before or during the walk; the position is as before.
    pub fn seek(sampler: *Sampler, target: u64, cancel: ?*const u32) error{Aborted}!void {
        if (cancel) |word| if (@atomicLoad(u32, word, .monotonic) != 0) return error.Aborted;

        const options = &sampler.options;
        switch (sampler.source) {
            .sequential => |*sequential| sequential.cursor = switch (options.stream) {
                .v2_4 => target *% options.batch_size % options.length,
                .v2_8 => @intCast(std.math.mulWide(u64, target, options.batch_size) % options.length),
            },
            .chained => |*chained| try chained.seek(target *% options.batch_size, cancel),
            .keyed => {},
            .cyclic => |*cyclic| cyclic.seek(target, options.batch_size),
        }
        sampler.step_next = target;
        sampler.exhausted = false;
    }
};

const Sequential = struct {
    /// The id that the next draw begins with.
    cursor: u64,

    const Count = enum {
        /// Each draw counts on from `cursor` in 64 bits, and the id is the count modulo `length`:
        /// past 2^64 - 1 comes id 0, whatever the length.
        wrapping,
        exact,
    };

    fn fill(sequential: *Sequential, count: Count, length: u64, ids: []u64) void {
        const count_left = std.math.maxInt(u64) - sequential.cursor;
        const head_len = switch (count) {
            .wrapping => if (ids.len > count_left) count_left + 1 else ids.len,
            .exact => ids.len,
        };
        sequential.cursor = fillFrom(sequential.cursor, length, ids[0..@intCast(head_len)]);
        if (count == .wrapping and ids.len > count_left) {
            sequential.cursor = fillFrom(0, length, ids[@intCast(head_len)..]);
        }
    }

    /// Returns the id that comes next.
    fn fillFrom(id_first: u64, length: u64, ids: []u64) u64 {
        var id_next = id_first;
        var rest = ids;
        while (rest.len > 0) {
            const run = rest[0..@intCast(@min(rest.len, length - id_next))];
            for (run, 0..) |*id, index| id.* = id_next + index;
            id_next += run.len;
            if (id_next == length) id_next = 0;
            rest = rest[run.len..];
        }
        return id_next;
    }
};

const Cyclic = struct {
    permutation: feistel.Permutation,
    /// Positions of a cycle that are drawn: whole batches, or all of them if there is not even one.
    usable: u64,
    cycle: u64,
    /// The position in the cycle that the next draw begins with; below `usable`.
    cursor: u64,

    inline fn init(options: Options) Cyclic {
        const length = options.length;
        return .{
            .permutation = .init(length, options.seed),
            .usable = if (length < options.batch_size) length else length - length % options.batch_size,
            .cycle = 0,
            .cursor = 0,
        };
    }

    /// `ids` is one batch: `usable` is a multiple of it, so that it never spans two cycles.
    fn fill(cyclic: *Cyclic, ids: []u64) void {
        assert(ids.len <= cyclic.usable - cyclic.cursor);
        cyclic.permutation.fill(cyclic.cycle, cyclic.cursor, ids);
        cyclic.cursor += ids.len;
        if (cyclic.cursor == cyclic.usable) {
            cyclic.cursor = 0;
            cyclic.cycle +%= 1;
        }
    }

    fn seek(cyclic: *Cyclic, step: u64, batch_size: u64) void {
        const steps_per_cycle = @max(1, cyclic.usable / batch_size);
        cyclic.cycle = step / steps_per_cycle;
        // A batch larger than the cycle has one step per cycle: the remainder is 0.
        cyclic.cursor = step % steps_per_cycle * batch_size;
    }
};

const testing = std.testing;

fn expectDraws(options: Options, from: u64, comptime expected: []const []const u64) !void {
    var sampler: Sampler = try .init(options);
    try sampler.seek(from, null);
    var ids: [16]u64 = undefined;
    for (expected) |batch| {
        try testing.expectEqual(batch.len, sampler.batch());
        try sampler.draw(ids[0..batch.len]);
        try testing.expectEqualSlices(u64, batch, ids[0..batch.len]);
    }
    try testing.expectEqual(from +% expected.len, sampler.step());
}

const last = std.math.maxInt(u64);

// All vectors of this file come from the Python packages.
test "stream 2.4: the batches of Python loaderx 2.4.6" {
    var options: Options = .{
        .length = 10,
        .batch_size = 4,
        .seed = 42,
        .mode = .sequential,
        .stream = .v2_4,
    };
    try expectDraws(options, 0, &.{
        &.{ 0, 1, 2, 3 },
        &.{ 4, 5, 6, 7 },
        &.{ 8, 9, 0, 1 },
        &.{ 2, 3, 4, 5 },
    });
    options.mode = .iid;
    options.length = 1000;
    try expectDraws(options, 0, &.{
        &.{ 520, 433, 412, 601 },
        &.{ 163, 713, 142, 216 },
        &.{ 192, 882, 657, 126 },
    });
    options.mode = .cyclic;
    options.length = 10;
    options.batch_size = 3;
    try expectDraws(options, 0, &.{
        &.{ 4, 9, 2 },
        &.{ 3, 0, 7 },
        &.{ 8, 5, 6 },
        &.{ 6, 7, 3 },
        &.{ 4, 1, 0 },
    });
    try expectDraws(options, 3, &.{ &.{ 6, 7, 3 }, &.{ 4, 1, 0 } });
}

test "stream 2.4 counts in 64 bits and goes on past the last step" {
    var options: Options = .{
        .length = 10,
        .batch_size = 3,
        .seed = 1,
        .mode = .sequential,
        .stream = .v2_4,
    };
    try expectDraws(options, last - 1, &.{ &.{ 0, 1, 2 }, &.{ 3, 4, 5 }, &.{ 6, 7, 8 } });
    options.mode = .cyclic;
    try expectDraws(options, last, &.{ &.{ 0, 6, 7 }, &.{ 9, 2, 1 } });
    // The count passes 2^64 - 1 within a batch: id 0 comes twice.
    options.mode = .sequential;
    options.length = last;
    options.batch_size = 7;
    try expectDraws(options, last / 7 - 1, &.{
        &.{ last - 8, last - 7, last - 6, last - 5, last - 4, last - 3, last - 2 },
        &.{ last - 1, 0, 0, 1, 2, 3, 4 },
        &.{ 5, 6, 7, 8, 9, 10, 11 },
    });
}

test "stream 2.8: the batches of Python loaderx 2.8.19" {
    var options: Options = .{
        .length = 1000,
        .batch_size = 4,
        .seed = 42,
        .mode = .iid,
        .stream = .v2_8,
    };
    try expectDraws(options, 0, &.{
        &.{ 593, 11, 548, 497 },
        &.{ 812, 123, 644, 661 },
        &.{ 152, 191, 17, 805 },
    });
    options.mode = .cyclic;
    options.length = 10;
    options.batch_size = 3;
    try expectDraws(options, 2, &.{ &.{ 8, 5, 6 }, &.{ 6, 7, 3 } });
    // Products are exact, so a far step is where counting would have led.
    options.mode = .sequential;
    try expectDraws(options, last - 2, &.{ &.{ 9, 0, 1 }, &.{ 2, 3, 4 } });
    options.length = last - 2;
    options.batch_size = 7;
    try expectDraws(options, last - 1, &.{&.{ 7, 8, 9, 10, 11, 12, 13 }});
}

test "stream 2.8 refuses to draw after the last step, until a seek" {
    for ([_]Mode{ .sequential, .iid, .cyclic }) |mode| {
        var sampler: Sampler = try .init(.{
            .length = 1000,
            .batch_size = 4,
            .seed = 42,
            .mode = mode,
            .stream = .v2_8,
        });
        var ids: [4]u64 = undefined;
        try sampler.seek(last, null);
        try sampler.draw(&ids);
        const drawn = ids;
        try testing.expectError(error.OutOfRange, sampler.draw(&ids));
        try testing.expectEqual(last, sampler.step());
        try testing.expectEqualSlices(u64, &drawn, &ids);
        try sampler.seek(last, null);
        try sampler.draw(&ids);
        try testing.expectEqualSlices(u64, &drawn, &ids);
        try testing.expectError(error.OutOfRange, sampler.draw(&ids));
    }
}

test "a batch larger than the length: whole cycles, or ids again" {
    var options: Options = .{
        .length = 3,
        .batch_size = 8,
        .seed = 42,
        .mode = .sequential,
        .stream = .v2_4,
    };
    try expectDraws(options, 1, &.{ &.{ 2, 0, 1, 2, 0, 1, 2, 0 }, &.{ 1, 2, 0, 1, 2, 0, 1, 2 } });
    options.length = 5;
    options.mode = .cyclic;
    try expectDraws(options, 0, &.{
        &.{ 4, 1, 2, 3, 0 },
        &.{ 0, 2, 3, 4, 1 },
        &.{ 2, 3, 1, 4, 0 },
    });
    options.mode = .iid;
    const sampler: Sampler = try .init(options);
    try testing.expectEqual(8, sampler.batch());
    options.mode = .cyclic;
    options.batch_size = last;
    try expectDraws(options, 2, &.{&.{ 2, 3, 1, 4, 0 }});
}

test "lengths and batch sizes of 0 are refused" {
    var options: Options = .{
        .length = 0,
        .batch_size = 1,
        .seed = 0,
        .mode = .cyclic,
        .stream = .v2_4,
    };
    try testing.expectError(error.OutOfRange, Sampler.init(options));
    options.length = 1;
    options.batch_size = 0;
    try testing.expectError(error.OutOfRange, Sampler.init(options));
}

test "a sampler at step k equals one that drew k times" {
    var prng: std.Random.DefaultPrng = .init(testing.random_seed);
    const random = prng.random();
    for (0..60) |_| {
        const options: Options = .{
            .length = (random.int(u64) >> random.int(u6)) | 1,
            .batch_size = random.intRangeAtMost(u64, 1, 40),
            .seed = random.int(u64),
            .mode = random.enumValue(Mode),
            .stream = random.enumValue(Stream),
        };
        var drawn: Sampler = try .init(options);
        var sought: Sampler = try .init(options);
        var ids_drawn: [40]u64 = undefined;
        var ids_sought: [40]u64 = undefined;
        const batch: usize = @intCast(drawn.batch());
        for (0..50) |step| {
            try testing.expectEqual(step, drawn.step());
            try drawn.draw(ids_drawn[0..batch]);
            try sought.seek(random.uintAtMost(u64, 60), null); // From ahead as well as from behind.
            try sought.seek(step, null);
            try sought.draw(ids_sought[0..batch]);
            try testing.expectEqualSlices(u64, ids_drawn[0..batch], ids_sought[0..batch]);
        }
    }
}

test "a cancelled seek leaves the position, in every mode" {
    for ([_]Mode{ .sequential, .iid, .cyclic }) |mode| {
        for ([_]Stream{ .v2_4, .v2_8 }) |stream| {
            const options: Options = .{
                .length = 1000,
                .batch_size = 4,
                .seed = 42,
                .mode = mode,
                .stream = stream,
            };
            var sampler: Sampler = try .init(options);
            var undisturbed: Sampler = try .init(options);
            const cancel: u32 = 1;
            var ids: [4]u64 = undefined;
            var expected: [4]u64 = undefined;
            for (0..3) |step| {
                try testing.expectError(error.Aborted, sampler.seek(last, &cancel));
                try testing.expectError(error.Aborted, sampler.seek(0, &cancel));
                try testing.expectEqual(step, sampler.step());
                try sampler.draw(&ids);
                try undisturbed.draw(&expected);
                try testing.expectEqualSlices(u64, &expected, &ids);
            }
        }
    }
}

test "a running seek is cancelled" {
    if (@import("builtin").single_threaded) return error.SkipZigTest;
    var sampler: Sampler = try .init(.{
        .length = 1000,
        .batch_size = 256,
        .seed = 42,
        .mode = .iid,
        .stream = .v2_4,
    });
    const Canceller = struct {
        fn run(word: *u32) void {
            @atomicStore(u32, word, 1, .monotonic);
        }
    };
    var cancel: u32 = 0;
    const thread = try std.Thread.spawn(.{}, Canceller.run, .{&cancel});
    defer thread.join();
    // Would take centuries.
    try testing.expectError(error.Aborted, sampler.seek(last, &cancel));
    try testing.expectEqual(0, sampler.step());
}
