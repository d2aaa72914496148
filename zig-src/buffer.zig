//! Memory that outlives a call: results of asynchronous gathers whose size only a lane could know.

const std = @import("std");

/// Cache-line aligned, so that lanes which fill neighbouring buffers do not share lines.
pub const alignment = 64;

pub fn alloc(gpa: std.mem.Allocator, bytes: u64) error{OutOfMemory}![]align(alignment) u8 {
    const wanted = std.math.cast(usize, bytes) orelse return error.OutOfMemory;
    return gpa.alignedAlloc(u8, .fromByteUnits(alignment), wanted);
}

pub fn free(gpa: std.mem.Allocator, buffer: []align(alignment) u8) void {
    gpa.free(buffer);
}
