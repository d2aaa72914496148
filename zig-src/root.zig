//! The static library: everything that the C ABI exports, and settings for all of std.

const std = @import("std");

/// std keeps a 256 KiB signal stack in thread-local storage for crash traces. In a library that a
/// host loads, that would enlarge every thread of the host.
pub const std_options: std.Options = .{ .signal_stack_size = null };

comptime {
    _ = @import("capi/exports.zig");
}
