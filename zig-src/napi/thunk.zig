//! The jump that stands for one function of the host: a few instructions that lead to wherever a table
//! says and touch nothing else, so that arguments, stack and return address reach the host's function
//! as they were. x16 is the register that AArch64's calling conventions leave to such jumps.

const std = @import("std");
const builtin = @import("builtin");

/// Assembly that defines `name` as a jump to where entry `index` of `table` points, both symbols being
/// global.
pub fn source(
    comptime arch: std.Target.Cpu.Arch,
    comptime name: []const u8,
    comptime table: []const u8,
    comptime index: usize,
) []const u8 {
    const offset = index * 8;
    return switch (arch) {
        .x86_64 => std.fmt.comptimePrint(
            \\.globl {s}
            \\.p2align 4
            \\{s}:
            \\  jmpq *{s}+{d}(%rip)
            \\
        , .{ name, name, table, offset }),
        // The offset is in the load and not in the address: COFF has little room for it there.
        .aarch64 => std.fmt.comptimePrint(
            \\.globl {s}
            \\.p2align 4
            \\{s}:
            \\  adrp x16, {s}
            \\  add x16, x16, :lo12:{s}
            \\  ldr x16, [x16, #{d}]
            \\  br x16
            \\
        , .{ name, name, table, table, offset }),
        else => @compileError("no jump is written for this processor"),
    };
}

// Mach-O's assembler names the two halves of an address otherwise, and no addon for it needs jumps.
// Zig's own backend, which Debug builds for x86-64 use, leaves assembly between functions out.
const is_testable = builtin.os.tag != .macos and builtin.zig_backend == .stage2_llvm and
    (builtin.cpu.arch == .x86_64 or builtin.cpu.arch == .aarch64);

comptime {
    if (builtin.is_test and is_testable) _ = in_test;
}

const in_test = struct {
    const Function = fn (u64, f64, u64, u64, u64, u64, u64, u64, u64, u64) callconv(.c) u64;

    extern fn loaderx_test_thunk_0(u64, f64, u64, u64, u64, u64, u64, u64, u64, u64) u64;
    extern fn loaderx_test_thunk_1(u64, f64, u64, u64, u64, u64, u64, u64, u64, u64) u64;
    extern fn loaderx_test_thunk_199(u64, f64, u64, u64, u64, u64, u64, u64, u64, u64) u64;

    /// More entries than Node-API has functions: the last offset is among the tested.
    var table: [200]*const Function = @splat(&target(7));

    comptime {
        @export(&table, .{ .name = "loaderx_test_table" });
        asm (".text\n" ++
                source(builtin.cpu.arch, "loaderx_test_thunk_0", "loaderx_test_table", 0) ++
                source(builtin.cpu.arch, "loaderx_test_thunk_1", "loaderx_test_table", 1) ++
                source(builtin.cpu.arch, "loaderx_test_thunk_199", "loaderx_test_table", 199));
    }

    /// Takes arguments in registers of both kinds and on the stack.
    fn target(comptime own: u64) Function {
        return struct {
            fn function(a: u64, b: f64, c: u64, d: u64, e: u64, f: u64, g: u64, h: u64, i: u64, j: u64) callconv(.c) u64 {
                return own + a + @as(u64, @intFromFloat(b)) + 3 * c + 5 * d + 7 * e + 11 * f + 13 * g + 17 * h + 19 * i + 23 * j;
            }
        }.function;
    }

    test "a jump reaches the function of its entry with all arguments" {
        table[0] = &target(1_000_000);
        table[1] = &target(2_000_000);
        table[199] = &target(3_000_000);
        const thunks = [_]*const Function{ &loaderx_test_thunk_0, &loaderx_test_thunk_1, &loaderx_test_thunk_199 };
        for (thunks, 1..) |thunk, which| {
            const sum = 1 + 2 + 3 * 3 + 5 * 4 + 7 * 5 + 11 * 6 + 13 * 7 + 17 * 8 + 19 * 9 + 23 * 10;
            try std.testing.expectEqual(which * 1_000_000 + sum, thunk(1, 2.0, 3, 4, 5, 6, 7, 8, 9, 10));
        }
    }
};
