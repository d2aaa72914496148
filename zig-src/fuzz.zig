//! Root of the library that fuzzers call: test/fuzz/driver.c feeds it, scripts/fuzz.mjs builds and
//! runs both. A promise that does not hold ends the process, which is what a fuzzer looks for.

const std = @import("std");
const page = @import("fuzz/page.zig");
const gather = @import("fuzz/gather.zig");
const dictionary = @import("fuzz/dictionary.zig");

pub const std_options: std.Options = .{ .signal_stack_size = null };

/// So that what is read or written outside of a block is seen where malloc is watched.
const gpa = std.heap.c_allocator;

var world: gather.World = undefined;
var has_world = false;

/// `target` as in `npm run fuzz`; `folder` is an empty one on a fast file system.
export fn loaderx_fuzz(target: [*:0]const u8, folder: [*:0]const u8, input: [*]const u8, input_bytes: usize) void {
    const name = std.mem.span(target);
    const bytes = input[0..input_bytes];
    const result = if (std.mem.eql(u8, name, "page"))
        page.run(bytes)
    else if (std.mem.eql(u8, name, "dictionary"))
        dictionary.run(gpa, bytes)
    else if (std.mem.eql(u8, name, "gather")) blk: {
        if (!has_world) {
            world.init(std.Io.Threaded.global_single_threaded.io(), gpa, std.mem.span(folder));
            has_world = true;
        }
        break :blk gather.run(&world, bytes);
    } else error.NoSuchTarget;
    result catch |err| std.debug.panic("{s}: {t}", .{ name, err });
}
