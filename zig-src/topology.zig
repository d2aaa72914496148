//! How many lanes this process should have: max(physical cores, 3/4 of the logical CPUs), the
//! original's rule, within what the process may use (affinity mask, cgroup quota).

const std = @import("std");
const builtin = @import("builtin");
const Io = std.Io;

pub fn laneCount(io: Io) u32 {
    const logical = logicalCount();
    const physical = physicalCount(io, logical);
    return @min(laneRule(physical, logical), quotaCount(io));
}

fn laneRule(physical: u32, logical: u32) u32 {
    return @max(1, @max(physical, logical * 3 / 4));
}

/// CPUs that the process may run on.
fn logicalCount() u32 {
    const count = std.Thread.getCpuCount() catch return 1;
    return @intCast(@max(1, @min(count, 4096)));
}

fn physicalCount(io: Io, logical: u32) u32 {
    return switch (builtin.os.tag) {
        .linux => physicalCountLinux(io, logical),
        .macos => physicalCountDarwin() orelse logical,
        else => logical,
    };
}

/// A core is known by its first hardware thread: CPUs of the affinity mask that share a list of
/// siblings are one core.
fn physicalCountLinux(io: Io, logical: u32) u32 {
    const mask = std.posix.sched_getaffinity(0) catch return logical;
    const words = std.mem.asBytes(&mask);
    var seen: std.StaticBitSet(cpus_max) = .empty;
    var count: u32 = 0;
    for (0..@min(words.len * 8, cpus_max)) |cpu| {
        if (words[cpu / 8] >> @intCast(cpu % 8) & 1 == 0) continue;
        var path_buffer: [96]u8 = undefined;
        const path = std.fmt.bufPrint(&path_buffer, "/sys/devices/system/cpu/cpu{d}/topology/thread_siblings_list", .{cpu}) catch return logical;
        var content: [256]u8 = undefined;
        const list = readSmall(io, path, &content) orelse return logical;
        const first = leadingNumber(list) orelse return logical;
        if (first >= cpus_max) return logical;
        if (seen.isSet(@intCast(first))) continue;
        seen.set(@intCast(first));
        count += 1;
    }
    return @max(1, @min(count, logical));
}

const cpus_max = 4096;

extern "c" fn sysctlbyname(name: [*:0]const u8, old: ?*anyopaque, old_bytes: ?*usize, new: ?*const anyopaque, new_bytes: usize) c_int;

fn physicalCountDarwin() ?u32 {
    if (builtin.os.tag != .macos) return null;
    var count: c_int = 0;
    var bytes: usize = @sizeOf(c_int);
    if (sysctlbyname("hw.physicalcpu", &count, &bytes, null, 0) != 0 or count < 1) return null;
    return @intCast(count);
}

/// CPUs' worth of time that the cgroup grants, rounded up; maxInt when it sets no limit.
fn quotaCount(io: Io) u32 {
    const unlimited = std.math.maxInt(u32);
    if (builtin.os.tag != .linux) return unlimited;
    var content: [4096]u8 = undefined;
    const groups = readSmall(io, "/proc/self/cgroup", &content) orelse return unlimited;
    var lines = std.mem.tokenizeScalar(u8, groups, '\n');
    while (lines.next()) |line| {
        // Version 2 has one line: "0::/path". A container usually sees its own group as the root.
        if (!std.mem.startsWith(u8, line, "0::")) continue;
        return @min(quotaOf(io, line["0::".len..]), quotaOf(io, ""));
    }
    return unlimited;
}

fn quotaOf(io: Io, group: []const u8) u32 {
    const unlimited = std.math.maxInt(u32);
    var path_buffer: [1024]u8 = undefined;
    const path = std.fmt.bufPrint(&path_buffer, "/sys/fs/cgroup{s}/cpu.max", .{group}) catch return unlimited;
    var content: [128]u8 = undefined;
    return parseQuota(readSmall(io, path, &content) orelse return unlimited);
}

/// "200000 100000": microseconds of CPU per period; "max 100000": no limit.
fn parseQuota(text: []const u8) u32 {
    const unlimited = std.math.maxInt(u32);
    var fields = std.mem.tokenizeAny(u8, text, " \n");
    const quota = std.fmt.parseInt(u64, fields.next() orelse return unlimited, 10) catch return unlimited;
    const period = std.fmt.parseInt(u64, fields.next() orelse return unlimited, 10) catch return unlimited;
    if (period == 0) return unlimited;
    return @intCast(@max(1, @min(std.math.divCeil(u64, quota, period) catch return unlimited, 4096)));
}

fn leadingNumber(text: []const u8) ?u64 {
    var end: usize = 0;
    while (end < text.len and std.ascii.isDigit(text[end])) end += 1;
    return std.fmt.parseInt(u64, text[0..end], 10) catch null;
}

/// Files of /proc and /sys tell no size: one read of what fits.
fn readSmall(io: Io, path: []const u8, buffer: []u8) ?[]const u8 {
    const file = Io.Dir.cwd().openFile(io, path, .{}) catch return null;
    defer file.close(io);
    const bytes = file.readPositionalAll(io, buffer, 0) catch return null;
    return buffer[0..bytes];
}

test "the rule and the quota" {
    try std.testing.expectEqual(@as(u32, 2), laneRule(2, 2));
    try std.testing.expectEqual(@as(u32, 18), laneRule(12, 24));
    try std.testing.expectEqual(@as(u32, 1), laneRule(1, 1));
    try std.testing.expectEqual(@as(u32, 2), parseQuota("150000 100000\n"));
    try std.testing.expectEqual(@as(u32, 1), parseQuota("1000 100000\n"));
    try std.testing.expectEqual(@as(u32, std.math.maxInt(u32)), parseQuota("max 100000\n"));
    try std.testing.expectEqual(@as(?u64, 12), leadingNumber("12-13\n"));
    try std.testing.expect(laneCount(std.testing.io) >= 1);
}
