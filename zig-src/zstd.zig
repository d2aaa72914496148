//! The only file that sees zstd's C. Version 1.5.7 is part of the format's promise: its frames are
//! bit for bit those of the original (other versions differ in some).

const std = @import("std");

pub const CCtx = opaque {};
pub const DCtx = opaque {};
pub const CDict = opaque {};
pub const DDict = opaque {};

/// Gives zstd memory from an allocator of ours. Must stay where it is while anything made with it lives.
pub const Memory = struct {
    gpa: std.mem.Allocator,
    /// An allocation failed: tells a NULL for want of memory from a NULL for bad input.
    exhausted: bool = false,

    /// Before every block: its whole size, which zstd does not tell when it frees.
    const header_bytes = 16;

    fn custom(memory: *Memory) CustomMem {
        return .{ .alloc = alloc, .free = free, .context = memory };
    }

    fn alloc(context: ?*anyopaque, bytes: usize) callconv(.c) ?*anyopaque {
        const memory: *Memory = @ptrCast(@alignCast(context));
        const whole = std.math.add(usize, bytes, header_bytes) catch return null;
        const block = memory.gpa.alignedAlloc(u8, .@"16", whole) catch {
            memory.exhausted = true;
            return null;
        };
        std.mem.writeInt(usize, block[0..@sizeOf(usize)], whole, .little);
        return block.ptr + header_bytes;
    }

    fn free(context: ?*anyopaque, address: ?*anyopaque) callconv(.c) void {
        const memory: *Memory = @ptrCast(@alignCast(context));
        const block: [*]align(16) u8 = @alignCast(@as([*]u8, @ptrCast(address orelse return)) - header_bytes);
        memory.gpa.free(block[0..std.mem.readInt(usize, block[0..@sizeOf(usize)], .little)]);
    }
};

/// ZSTD_customMem
const CustomMem = extern struct {
    alloc: *const fn (?*anyopaque, usize) callconv(.c) ?*anyopaque,
    free: *const fn (?*anyopaque, ?*anyopaque) callconv(.c) void,
    context: ?*anyopaque,
};

pub const level = 3;
/// ZSTD_c_compressionLevel
const parameter_compression_level = 100;
/// ZSTD_reset_session_and_parameters
const reset_session_and_parameters = 3;
/// ZSTD_dlm_byRef, ZSTD_dct_auto
const load_by_reference = 1;
const content_auto = 0;
/// ZSTD_error_memory_allocation
const error_memory_allocation = 64;

pub extern fn ZSTD_versionNumber() c_uint;
pub extern fn ZSTD_compressBound(usize) usize;
pub extern fn ZSTD_isError(usize) c_uint;
pub extern fn ZSTD_getErrorName(usize) [*:0]const u8;
extern fn ZSTD_getErrorCode(usize) c_uint;
extern fn ZSTD_createCCtx_advanced(CustomMem) ?*CCtx;
extern fn ZSTD_freeCCtx(?*CCtx) usize;
extern fn ZSTD_createDCtx_advanced(CustomMem) ?*DCtx;
extern fn ZSTD_freeDCtx(?*DCtx) usize;
extern fn ZSTD_CCtx_reset(*CCtx, c_uint) usize;
extern fn ZSTD_CCtx_setParameter(*CCtx, c_uint, c_int) usize;
extern fn ZSTD_CCtx_refCDict(*CCtx, ?*const CDict) usize;
extern fn ZSTD_compress2(*CCtx, [*]u8, usize, [*]const u8, usize) usize;
extern fn ZSTD_decompressDCtx(*DCtx, [*]u8, usize, [*]const u8, usize) usize;
extern fn ZSTD_decompress_usingDDict(*DCtx, [*]u8, usize, [*]const u8, usize, *const DDict) usize;
extern fn ZSTD_createCDict_byReference([*]const u8, usize, c_int) ?*CDict;
extern fn ZSTD_freeCDict(?*CDict) usize;
extern fn ZSTD_createDDict_advanced([*]const u8, usize, c_uint, c_uint, CustomMem) ?*DDict;
extern fn ZSTD_freeDDict(?*DDict) usize;
extern fn ZDICT_trainFromBuffer([*]u8, usize, [*]const u8, [*]const usize, c_uint) usize;
extern fn ZDICT_isError(usize) c_uint;
extern fn ZDICT_getErrorName(usize) [*:0]const u8;

pub const Refused = error{ OutOfMemory, Refused };

/// zstd's word for a refusal, for a message.
pub fn errorName(code: usize) []const u8 {
    return std.mem.span(ZSTD_getErrorName(code));
}

fn check(code: usize, refusal: *[]const u8) Refused!usize {
    if (ZSTD_isError(code) == 0) return code;
    refusal.* = errorName(code);
    return if (ZSTD_getErrorCode(code) == error_memory_allocation) error.OutOfMemory else error.Refused;
}

pub fn createCompressor(memory: *Memory) error{OutOfMemory}!*CCtx {
    return ZSTD_createCCtx_advanced(memory.custom()) orelse error.OutOfMemory;
}

pub fn freeCompressor(context: *CCtx) void {
    _ = ZSTD_freeCCtx(context);
}

pub fn createDecompressor(memory: *Memory) error{OutOfMemory}!*DCtx {
    return ZSTD_createDCtx_advanced(memory.custom()) orelse error.OutOfMemory;
}

pub fn freeDecompressor(context: *DCtx) void {
    _ = ZSTD_freeDCtx(context);
}

/// Borrows `dict`. Not from an allocator of ours: a CDict that is made with one has no level, which
/// zstd takes for "use its parameters for records of any size", and then records of 128 KiB and more
/// get other frames than the original's.
pub fn createCompressionDict(dict: []const u8) error{OutOfMemory}!*CDict {
    return ZSTD_createCDict_byReference(dict.ptr, dict.len, level) orelse error.OutOfMemory;
}

pub fn freeCompressionDict(dict: *CDict) void {
    _ = ZSTD_freeCDict(dict);
}

/// Borrows `dict` for its life. Refused: it starts like a trained dictionary but is damaged.
pub fn createDecompressionDict(memory: *Memory, dict: []const u8) Refused!*DDict {
    return ZSTD_createDDict_advanced(dict.ptr, dict.len, load_by_reference, content_auto, memory.custom()) orelse
        if (memory.exhausted) error.OutOfMemory else error.Refused;
}

pub fn freeDecompressionDict(dict: *DDict) void {
    _ = ZSTD_freeDDict(dict);
}

/// Level 3, everything else at its default: each frame that follows is one whole record.
pub fn configure(context: *CCtx, dict: ?*const CDict, refusal: *[]const u8) Refused!void {
    _ = try check(ZSTD_CCtx_reset(context, reset_session_and_parameters), refusal);
    _ = try check(ZSTD_CCtx_setParameter(context, parameter_compression_level, level), refusal);
    if (dict) |prepared| _ = try check(ZSTD_CCtx_refCDict(context, prepared), refusal);
}

pub fn compressBound(bytes: usize) usize {
    return ZSTD_compressBound(bytes);
}

pub fn compress(context: *CCtx, target: []u8, source: []const u8, refusal: *[]const u8) Refused!usize {
    return check(ZSTD_compress2(context, target.ptr, target.len, source.ptr, source.len), refusal);
}

pub fn decompress(context: *DCtx, dict: ?*const DDict, target: []u8, source: []const u8, refusal: *[]const u8) Refused!usize {
    const code = if (dict) |prepared|
        ZSTD_decompress_usingDDict(context, target.ptr, target.len, source.ptr, source.len, prepared)
    else
        ZSTD_decompressDCtx(context, target.ptr, target.len, source.ptr, source.len);
    return check(code, refusal);
}

/// Fast cover with zstd's defaults: deterministic for given samples.
pub fn trainDictionary(target: []u8, samples: []const u8, sample_bytes: []const usize, refusal: *[]const u8) Refused!usize {
    const code = ZDICT_trainFromBuffer(target.ptr, target.len, samples.ptr, sample_bytes.ptr, @intCast(sample_bytes.len));
    if (ZDICT_isError(code) == 0) return code;
    refusal.* = std.mem.span(ZDICT_getErrorName(code));
    return if (ZSTD_getErrorCode(code) == error_memory_allocation) error.OutOfMemory else error.Refused;
}

test "the pinned version is linked" {
    try std.testing.expectEqual(@as(c_uint, 10507), ZSTD_versionNumber());
}
