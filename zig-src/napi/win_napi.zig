//! Windows only: where the addon's `napi_*` and `node_api_*` functions come from.
//!
//! On the other systems they are left undefined and the dynamic linker finds them in the process
//! that loads the addon. A Windows DLL must name the file it imports from, and that file is not
//! known: `node.exe` may be renamed, or be Electron, or export nothing because Node lives in
//! `libnode.dll`. So nothing is imported. Each function is a jump through a table (thunk.zig), and
//! `DllMain` fills the table from whichever host is there before any code of the addon runs:
//!
//!     shim: call napi_create_object ──> napi_create_object: jmp *table[17] ──> host's function
//!
//! The names are those of node-api-headers' `node_api.def`. A name that an older host lacks leads to
//! `missing`, which answers `napi_generic_failure` instead of jumping to nowhere.

const std = @import("std");
const builtin = @import("builtin");
const thunk = @import("thunk.zig");
const windows = std.os.windows;

comptime {
    if (builtin.os.tag != .windows) @compileError("win_napi.zig is for Windows targets");
}

/// Every Node-API function, in the order of `node_api.def`.
const names = names: {
    @setEvalBranchQuota(200_000);
    var list: []const [:0]const u8 = &.{};
    var lines = std.mem.tokenizeAny(u8, @embedFile("node_api_def"), "\r\n");
    while (lines.next()) |line| {
        const name = std.mem.trim(u8, line, " \t");
        if (std.mem.startsWith(u8, name, "napi_") or std.mem.startsWith(u8, name, "node_api_")) {
            list = list ++ &[_][:0]const u8{name ++ ""};
        }
    }
    if (list.len < 100) @compileError("node_api.def lists too few functions to be whole");
    break :names list;
};

/// `table[i]` is where `names[i]` jumps to. Written once, by `DllMain`.
export var loaderx_napi_table: [names.len]*const anyopaque = @splat(@ptrCast(&missing));

comptime {
    @setEvalBranchQuota(200_000);
    var text: []const u8 = ".text\n";
    for (names, 0..) |name, index| {
        text = text ++ thunk.source(builtin.cpu.arch, name, "loaderx_napi_table", index);
    }
    asm (text);
}

fn missing() callconv(.c) c_int {
    const napi_generic_failure = 9;
    return napi_generic_failure;
}

const Module = *anyopaque;
extern "kernel32" fn GetModuleHandleW(?[*:0]const u16) callconv(.winapi) ?Module;
extern "kernel32" fn GetProcAddress(Module, [*:0]const u8) callconv(.winapi) ?*const anyopaque;

fn bind() void {
    const hosts = [_]?Module{
        GetModuleHandleW(null), // the program itself: node.exe, electron.exe, any other name
        GetModuleHandleW(std.unicode.utf8ToUtf16LeStringLiteral("libnode.dll")),
    };
    for (names, &loaderx_napi_table) |name, *slot| {
        for (hosts) |host| {
            slot.* = GetProcAddress(host orelse continue, name) orelse continue;
            break;
        }
    }
}

/// `pub export` is needed: when libc is linked, std exports a `DllMain` of its own only for another
/// calling convention, and mingw's start code would then call an empty one.
pub export fn DllMain(
    _: windows.HINSTANCE,
    reason: windows.DWORD,
    _: ?*anyopaque,
) callconv(.winapi) windows.BOOL {
    const dll_process_attach = 1;
    if (reason == dll_process_attach) bind();
    return .TRUE;
}
