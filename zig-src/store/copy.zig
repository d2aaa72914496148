//! Copies of large records around the cache. A batch of many megabytes written through the cache
//! costs a read of every target line before it is overwritten; streaming stores skip that and are up
//! to twice as fast. For small records they lose, so callers choose (see gather.zig).

const std = @import("std");
const builtin = @import("builtin");

/// Zig's own backend (Debug builds) has no assembler for these stores; there it is a plain copy.
pub const has_streaming = builtin.cpu.arch == .x86_64 and builtin.zig_backend == .stage2_llvm;

/// Copies; on x86-64 with streaming stores, which `fence` must follow before others may read.
pub fn stream(target: []u8, source: []const u8) void {
    std.debug.assert(target.len == source.len);
    if (!has_streaming) return plain(target, source);
    // Streaming stores want 16-byte aligned targets.
    const head = @min(target.len, bytesToAligned(target));
    plain(target[0..head], source[0..head]);
    const blocks = (target.len - head) / block_bytes;
    var to = target.ptr + head;
    var from = source.ptr + head;
    for (0..blocks) |_| {
        @prefetch(from + 1024, .{});
        @prefetch(from + 1024 + 64, .{});
        asm volatile (
            \\movups (%%rsi), %%xmm0
            \\movups 16(%%rsi), %%xmm1
            \\movups 32(%%rsi), %%xmm2
            \\movups 48(%%rsi), %%xmm3
            \\movups 64(%%rsi), %%xmm4
            \\movups 80(%%rsi), %%xmm5
            \\movups 96(%%rsi), %%xmm6
            \\movups 112(%%rsi), %%xmm7
            \\movntps %%xmm0, (%%rdi)
            \\movntps %%xmm1, 16(%%rdi)
            \\movntps %%xmm2, 32(%%rdi)
            \\movntps %%xmm3, 48(%%rdi)
            \\movntps %%xmm4, 64(%%rdi)
            \\movntps %%xmm5, 80(%%rdi)
            \\movntps %%xmm6, 96(%%rdi)
            \\movntps %%xmm7, 112(%%rdi)
            :
            : [from] "{rsi}" (from),
              [to] "{rdi}" (to),
            : .{ .memory = true, .xmm0 = true, .xmm1 = true, .xmm2 = true, .xmm3 = true, .xmm4 = true, .xmm5 = true, .xmm6 = true, .xmm7 = true });
        to += block_bytes;
        from += block_bytes;
    }
    const done = head + blocks * block_bytes;
    plain(target[done..], source[done..]);
}

/// Bytes before the first place in `target` that streaming stores like.
pub fn bytesToAligned(target: []const u8) usize {
    return (16 - @intFromPtr(target.ptr) % 16) % 16;
}

/// Makes streamed bytes visible to other threads.
pub fn fence() void {
    if (has_streaming) asm volatile ("sfence" ::: .{ .memory = true });
}

pub fn plain(target: []u8, source: []const u8) void {
    @memcpy(target, source);
}

/// Asks for the first lines of a record that is about to be copied.
pub fn prefetch(address: [*]const u8, bytes: usize) void {
    const end = @min(bytes, prefetch_bytes_max);
    var at: usize = 0;
    while (at < end) : (at += 64) @prefetch(address + at, .{});
}

/// The hardware prefetcher takes over where a record is longer.
const prefetch_bytes_max = 2048;
const block_bytes = 128;

test "streamed copies are exact at every alignment and length" {
    var source: [1500]u8 = undefined;
    var prng: std.Random.DefaultPrng = .init(3);
    prng.random().bytes(&source);
    for (0..33) |shift| {
        for ([_]usize{ 0, 1, 15, 16, 127, 128, 129, 400, 1400 }) |bytes| {
            var target: [1500]u8 = @splat(0);
            stream(target[shift..][0..bytes], source[3..][0..bytes]);
            fence();
            try std.testing.expectEqualSlices(u8, source[3..][0..bytes], target[shift..][0..bytes]);
            try std.testing.expectEqual(@as(u8, 0), target[shift + bytes]);
        }
    }
}
