//! Builds the addon, its tests and its prebuilds. `npm run build` and `npm test` call this with
//! everything in place; alone it wants Zig 0.17.1, `.deps/zstd` and `node_modules`, which
//! `node scripts/toolchain.mjs` and `node scripts/dependencies.mjs` fetch.
//!
//!     zig build              build/Release/loaderx.node for this machine
//!     zig build test         every Zig test, in Debug and in ReleaseFast
//!     zig build test-exe     the same tests as programs in zig-out/bin, for a debugger or valgrind;
//!                            -Dtests=debug is one of the two alone, here and above
//!     zig build prebuilds    prebuilds/<platform>-<arch>/ for every row of `targets`
//!     zig build targets      those rows as build/targets.json, for scripts/
//!     zig build bench-limits zig-out/bin/bench-limits, what the machine can do at most: `npm run bench`
//!     zig build allocations  zig-out/lib/liballocations.so, which watches memory: `npm run mutate`
//!     zig build faults       zig-out/lib/libfaults.so, which makes calls to the system fail: `npm run faults`
//!     zig build visited      zig-out/bin/visited, which sees what a program runs: `npm run coverage`
//!     zig build core         zig-out/lib/libzrecord.a, the core alone, checks on: `npm run sanitize`
//!     zig build teardown     zig-out/bin/teardown, a C program over the core: `npm run sanitize`
//!     zig build fuzz-core    zig-out/lib/libloaderx-fuzz.a, what fuzzers call: `npm run fuzz`
//!     zig build fmt          formatting, checked
//!
//!     zig-src/root.zig ─┐
//!     zstd's C files ───┼─ static libraries ─┐
//!     zig-src/napi/*.cc ────────────────────┴─ loaderx.node

const std = @import("std");

/// One row per supported platform. Everything else reads them here: `zig build targets` writes them to
/// build/targets.json, by which scripts/ examine, run and pack the files. The name of the folder and
/// the tag of the C library in `file` are what node-gyp-build looks for; hosts with another library
/// skip a tagged file instead of crashing in it.
const targets = [_]Platform{
    // Node 20 itself needs glibc 2.28, or macOS 11 on Apple's own processors.
    .{ .name = "linux-x64", .folder = "linux-x64", .file = "loaderx.glibc.node", .triple = "x86_64-linux-gnu.2.28", .cpu = "x86_64" },
    .{ .name = "linux-arm64", .folder = "linux-arm64", .file = "loaderx.glibc.node", .triple = "aarch64-linux-gnu.2.28", .cpu = "generic" },
    .{ .name = "linux-x64-musl", .folder = "linux-x64", .file = "loaderx.musl.node", .triple = "x86_64-linux-musl", .cpu = "x86_64" },
    .{ .name = "linux-arm64-musl", .folder = "linux-arm64", .file = "loaderx.musl.node", .triple = "aarch64-linux-musl", .cpu = "generic" },
    .{ .name = "darwin-arm64", .folder = "darwin-arm64", .file = "loaderx.node", .triple = "aarch64-macos.11.0", .cpu = "apple_m1" },
    .{ .name = "darwin-x64", .folder = "darwin-x64", .file = "loaderx.node", .triple = "x86_64-macos.11.0", .cpu = "x86_64" },
    .{ .name = "win32-x64", .folder = "win32-x64", .file = "loaderx.node", .triple = "x86_64-windows-gnu", .cpu = "x86_64" },
    .{ .name = "win32-arm64", .folder = "win32-arm64", .file = "loaderx.node", .triple = "aarch64-windows-gnu", .cpu = "generic" },
};

const Platform = struct {
    /// What people call it: the folder, and the C library where it is not the usual one.
    name: []const u8,
    /// `<process.platform>-<process.arch>` of Node.
    folder: []const u8,
    file: []const u8,
    /// With the oldest libc or system it must run on.
    triple: []const u8,
    /// The least CPU it must run on: never the build machine's. What newer ones do faster is chosen
    /// while running.
    cpu: []const u8,

    fn query(platform: Platform) std.Target.Query {
        return std.Build.parseTargetQuery(.{
            .arch_os_abi = platform.triple,
            .cpu_features = platform.cpu,
        }) catch @panic("a row of `targets` has a bad triple or CPU");
    }
};

const shim_files = [_][]const u8{ "module.cc", "value.cc", "work.cc", "calls.cc" };
const shim_flags = [_][]const u8{
    "-std=c++17",
    "-Wall",
    "-Wextra",
    "-fno-exceptions",
    "-fno-rtti",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    // Without it the headers want `__imp_napi_*` on Windows; napi/win_napi.zig has the plain names.
    "-DNAPI_EXTERN=",
    "-DNAPI_VERSION=9",
    "-DNODE_ADDON_API_DISABLE_CPP_EXCEPTIONS",
    "-DNODE_ADDON_API_DISABLE_DEPRECATED",
    // A worker that is terminated with work in flight must not abort the process.
    "-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS",
};

/// Everything but the legacy decoders, which the container format never meets.
const zstd_files = [_][]const u8{
    "common/debug.c",
    "common/entropy_common.c",
    "common/error_private.c",
    "common/fse_decompress.c",
    "common/pool.c",
    "common/threading.c",
    "common/xxhash.c",
    "common/zstd_common.c",
    "compress/fse_compress.c",
    "compress/hist.c",
    "compress/huf_compress.c",
    "compress/zstd_compress.c",
    "compress/zstd_compress_literals.c",
    "compress/zstd_compress_sequences.c",
    "compress/zstd_compress_superblock.c",
    "compress/zstd_double_fast.c",
    "compress/zstd_fast.c",
    "compress/zstd_lazy.c",
    "compress/zstd_ldm.c",
    "compress/zstd_opt.c",
    "compress/zstd_preSplit.c",
    "compress/zstdmt_compress.c",
    "decompress/huf_decompress.c",
    "decompress/zstd_ddict.c",
    "decompress/zstd_decompress.c",
    "decompress/zstd_decompress_block.c",
    "dictBuilder/cover.c",
    "dictBuilder/divsufsort.c",
    "dictBuilder/fastcover.c",
    "dictBuilder/zdict.c",
};
const zstd_flags = [_][]const u8{
    "-std=c11",
    "-DXXH_NAMESPACE=ZSTD_",
    "-DZSTD_LEGACY_SUPPORT=0",
    "-DZSTD_TRACE=0",
    "-DDEBUGLEVEL=0",
    // Its functions belong to the addon alone: the host may carry a zstd of its own.
    "-fvisibility=hidden",
    "-DZSTDLIB_VISIBLE=",
    "-DZSTDERRORLIB_VISIBLE=",
    "-DZDICTLIB_VISIBLE=",
    "-DZSTDLIB_HIDDEN=",
    // With these clang's zstd is as fast as gcc's (docs/performance.md, "zstd: how it is compiled"). Its loops are
    // unrolled by hand, and pointers to bytes may be aliases of all anyway.
    "-fno-unroll-loops",
    "-fno-strict-aliasing",
    "-mllvm",
    "-two-entry-phi-node-folding-threshold=0",
};

/// What the tests may be built with besides: one at a time.
const Sanitizers = struct {
    thread: bool = false,
    undefined_c: bool = false,
    valgrind: bool = false,
    /// zstd asks zig-src/testing/refusing.zig for memory, and not libc.
    memory: bool = false,
};

pub fn build(b: *std.Build) void {
    const sources: Sources = .init(b);
    const target = hostTarget(b);
    const optimize = b.option(std.builtin.Optimize, "optimize", "Of the addon for this machine; default: fast") orelse .fast;
    const filters = b.option([]const []const u8, "test-filter", "Only tests whose name contains this") orelse &.{};
    const test_mode = b.option(std.builtin.Optimize, "tests", "Tests in this mode alone; default: debug and fast");
    const sanitizers: Sanitizers = .{
        .thread = b.option(bool, "tsan", "Tests with ThreadSanitizer in the core and in zstd") orelse false,
        .undefined_c = b.option(bool, "ubsan", "Tests with UndefinedBehaviorSanitizer in zstd (Debug only)") orelse false,
        .valgrind = b.option(bool, "valgrind", "Tests that valgrind understands") orelse false,
    };

    // Both places are in the checkout and not under the install prefix: node-gyp-build looks there.
    const host = addon(b, sources, target, optimize);
    const install = b.addUpdateSourceFiles();
    install.addCopyFileToSource(host.getEmittedBin(), "build/Release/loaderx.node");
    b.getInstallStep().dependOn(&install.step);

    const only = b.option([]const []const u8, "only", "Of the prebuilds, those with these names; default: all") orelse &.{};
    const prebuilds = b.addUpdateSourceFiles();
    for (targets) |platform| {
        if (only.len > 0 and !isAmong(only, platform.name)) continue;
        const library = addon(b, sources, b.resolveTargetQuery(platform.query()), .fast);
        const path = b.pathJoin(&.{ "prebuilds", platform.folder, platform.file });
        prebuilds.addCopyFileToSource(library.getEmittedBin(), path);
    }
    b.step("prebuilds", "prebuilds/<platform>-<arch>/ for every supported platform").dependOn(&prebuilds.step);

    const table = b.addUpdateSourceFiles();
    table.addBytesToSource(b.fmt("{f}\n", .{std.json.fmt(targets, .{ .whitespace = .indent_2 })}), "build/targets.json");
    b.step("targets", "build/targets.json, the table of supported platforms").dependOn(&table.step);

    addTests(b, sources, target, filters, test_mode, sanitizers);

    addNativeTools(b, sources, target, sanitizers);

    const limits = b.addInstallArtifact(benchLimits(b, sources, target), .{});
    b.step("bench-limits", "The benchmark's limits, with the addon's zstd").dependOn(&limits.step);

    b.step("fmt", "Check the formatting").dependOn(&b.addFmt(.{
        .check = true,
        .paths = b.pathList(&.{ "zig-src", "build.zig", "build.zig.zon" }),
    }).step);
}

fn addTests(
    b: *std.Build,
    sources: Sources,
    target: std.Build.ResolvedTarget,
    filters: []const []const u8,
    mode: ?std.builtin.Optimize,
    sanitizers: Sanitizers,
) void {
    const run_all = b.step("test", "Every Zig test, in Debug and in ReleaseFast");
    const install_all = b.step("test-exe", "The test programs, in zig-out/bin");

    var watched = sanitizers;
    watched.memory = true;
    const zstd = zstdLibrary(b, sources, target, watched);
    for ([_]std.builtin.Optimize{ .debug, .fast }) |optimize| {
        // Only a Debug build carries the run-time part of UndefinedBehaviorSanitizer.
        if (sanitizers.undefined_c and optimize != .debug) continue;
        if (mode != null and mode != optimize) continue;

        const module = b.createModule(.{
            .root_source_file = b.path("zig-src/tests.zig"),
            .target = target,
            .optimize = optimize,
            .link_libc = true,
            .sanitize_thread = if (sanitizers.thread) true else null,
            .valgrind = if (sanitizers.valgrind) true else null,
        });
        module.linkLibrary(zstd);
        for ([_][]const u8{ "page", "gather", "dictionary" }) |name| {
            const corpus = b.path(b.fmt("test/fuzz/corpus/{s}.txt", .{name}));
            module.addAnonymousImport(b.fmt("corpus-{s}", .{name}), .{ .root_source_file = corpus });
        }
        const tests = b.addTest(.{
            .name = b.fmt("zig-{t}", .{optimize}),
            .root_module = module,
            .filters = filters,
        });
        const run = b.addRunArtifact(tests);
        // They touch files, threads and the clock: an earlier success proves nothing.
        run.has_side_effects = true;
        run_all.dependOn(&run.step);
        install_all.dependOn(&b.addInstallArtifact(tests, .{}).step);
    }
}

fn isAmong(names: []const []const u8, wanted: []const u8) bool {
    return for (names) |name| {
        if (std.mem.eql(u8, name, wanted)) break true;
    } else false;
}

/// What looks at the core from outside: none of it is in the package.
fn addNativeTools(b: *std.Build, sources: Sources, target: std.Build.ResolvedTarget, sanitizers: Sanitizers) void {
    const allocations = b.addLibrary(.{
        .name = "allocations",
        .linkage = .dynamic,
        .root_module = b.createModule(.{ .target = target, .optimize = .fast, .link_libc = true, .sanitize_c = .off }),
    });
    allocations.root_module.addCSourceFile(.{ .file = b.path("test/native/allocations.c"), .flags = &.{ "-std=c11", "-Wall", "-Wextra" } });
    b.step("allocations", "A library that watches memory").dependOn(&b.addInstallArtifact(allocations, .{}).step);

    const faults = b.addLibrary(.{
        .name = "faults",
        .linkage = .dynamic,
        .root_module = b.createModule(.{ .target = target, .optimize = .fast, .link_libc = true, .sanitize_c = .off }),
    });
    faults.root_module.addCSourceFile(.{ .file = b.path("test/native/faults.c"), .flags = &.{ "-std=c11", "-Wall", "-Wextra" } });
    b.step("faults", "A library that makes system calls and allocations fail").dependOn(&b.addInstallArtifact(faults, .{}).step);

    const visited = b.createModule(.{ .target = target, .optimize = .fast, .link_libc = true, .sanitize_c = .off });
    visited.addCSourceFile(.{ .file = b.path("test/native/visited.c"), .flags = &.{ "-std=c11", "-Wall", "-Wextra" } });
    const visitor = b.addExecutable(.{ .name = "visited", .root_module = visited });
    b.step("visited", "What sees which places a program comes by").dependOn(&b.addInstallArtifact(visitor, .{}).step);

    const core = checkedLibrary(b, "zrecord", b.path("zig-src/root.zig"), target, sanitizers);
    b.step("core", "The core alone, with its checks").dependOn(&b.addInstallArtifact(core, .{}).step);

    const harness = b.createModule(.{ .target = target, .optimize = .debug, .link_libc = true });
    harness.addCSourceFile(.{ .file = b.path("test/native/teardown.c"), .flags = &.{ "-std=c11", "-Wall", "-Wextra" } });
    harness.addIncludePath(b.path("zig-src/capi"));
    harness.linkLibrary(core);
    harness.linkLibrary(zstdLibrary(b, sources, target, .{}));
    const teardown = b.addExecutable(.{ .name = "teardown", .root_module = harness });
    b.step("teardown", "Stores opened, used and closed in odd orders").dependOn(&b.addInstallArtifact(teardown, .{}).step);

    const fuzz = checkedLibrary(b, "loaderx-fuzz", b.path("zig-src/fuzz.zig"), target, .{});
    // For the run-time part of AFL++, which is linked with the driver.
    fuzz.sanitize_coverage_trace_pc_guard = true;
    b.step("fuzz-core", "What fuzzers call, with coverage").dependOn(&b.addInstallArtifact(fuzz, .{}).step);
}

/// The core for a C linker other than Zig's, optimised, with every safety check.
fn checkedLibrary(b: *std.Build, name: []const u8, root: std.Build.LazyPath, target: std.Build.ResolvedTarget, sanitizers: Sanitizers) *std.Build.Step.Compile {
    const library = b.addLibrary(.{
        .name = name,
        .linkage = .static,
        .root_module = b.createModule(.{
            .root_source_file = root,
            .target = target,
            .optimize = .safe,
            .link_libc = true,
            .pic = true,
            .valgrind = if (sanitizers.valgrind) true else null,
        }),
    });
    library.bundle_compiler_rt = true;
    return library;
}

/// Where the code comes from that is not in this repository.
const Sources = struct {
    zstd: std.Build.LazyPath,
    node_api_headers: std.Build.LazyPath,
    node_addon_api: std.Build.LazyPath,

    fn init(b: *std.Build) Sources {
        const zstd = b.option([]const u8, "zstd", "zstd's lib/ folder, relative to the checkout") orelse
            ".deps/zstd/1.5.7/lib";
        const modules = b.option([]const u8, "node-modules", "node_modules, relative to the checkout") orelse
            "node_modules";
        return .{
            .zstd = b.path(zstd),
            .node_api_headers = b.path(b.pathJoin(&.{ modules, "node-api-headers" })),
            .node_addon_api = b.path(b.pathJoin(&.{ modules, "node-addon-api" })),
        };
    }
};

/// The addon for this machine equals the prebuilt one, CPU and libc included, so that what is tested
/// is what is published. A machine without a row gets its own system and the least CPU of its kind.
fn hostTarget(b: *std.Build) std.Build.ResolvedTarget {
    const host = &b.graph.host.result;
    const default: std.Target.Query = for (targets) |platform| {
        const query = platform.query();
        if (query.cpu_arch == host.cpu.arch and query.os_tag == host.os.tag and
            (host.os.tag != .linux or query.abi == host.abi)) break query;
    } else .{ .cpu_model = .baseline };
    return b.standardTargetOptions(.{ .default_target = default });
}

fn addon(
    b: *std.Build,
    sources: Sources,
    target: std.Build.ResolvedTarget,
    optimize: std.builtin.Optimize,
) *std.Build.Step.Compile {
    const strip = optimize != .debug;
    const windows = target.result.os.tag == .windows;

    const core = b.addLibrary(.{
        .name = "zrecord",
        .linkage = .static,
        .root_module = b.createModule(.{
            .root_source_file = b.path("zig-src/root.zig"),
            .target = target,
            .optimize = optimize,
            .link_libc = true,
            .pic = true,
            .strip = strip,
        }),
    });
    dropUnused(core);

    const shim = b.createModule(.{
        .root_source_file = if (windows) b.path("zig-src/napi/win_napi.zig") else null,
        .target = target,
        .optimize = optimize,
        .link_libc = true,
        .link_libcpp = true,
        .pic = true,
        .strip = strip,
    });
    if (windows) shim.addAnonymousImport("node_api_def", .{
        .root_source_file = sources.node_api_headers.path(b, "def/node_api.def"),
    });
    shim.addIncludePath(sources.node_api_headers.path(b, "include"));
    shim.addIncludePath(sources.node_addon_api);
    shim.addCSourceFiles(.{ .root = b.path("zig-src/napi"), .files = &shim_files, .flags = &shim_flags });
    shim.linkLibrary(core);
    shim.linkLibrary(zstdLibrary(b, sources, target, .{}));

    const library = b.addLibrary(.{ .name = "loaderx", .linkage = .dynamic, .root_module = shim });
    library.linker_allow_shlib_undefined = true; // napi_* come from the process that loads it
    dropUnused(library);
    if (target.result.os.tag == .linux) library.setVersionScript(b.path("zig-src/napi/exports.map"));
    return library;
}

/// For the same machine and with the same zstd as the addon, so that its rates are the addon's limit.
fn benchLimits(b: *std.Build, sources: Sources, target: std.Build.ResolvedTarget) *std.Build.Step.Compile {
    const module = b.createModule(.{ .target = target, .optimize = .fast, .link_libc = true });
    module.addCSourceFile(.{ .file = b.path("bench/limits/limits.c"), .flags = &.{ "-std=c11", "-Wall", "-Wextra" } });
    module.addIncludePath(sources.zstd);
    module.linkLibrary(zstdLibrary(b, sources, target, .{}));
    return b.addExecutable(.{ .name = "bench-limits", .root_module = module });
}

/// Always optimised: it is as slow as it is uninteresting to step through otherwise.
fn zstdLibrary(
    b: *std.Build,
    sources: Sources,
    target: std.Build.ResolvedTarget,
    sanitizers: Sanitizers,
) *std.Build.Step.Compile {
    const module = b.createModule(.{
        .target = target,
        .optimize = .fast,
        .link_libc = true,
        .pic = true,
        .strip = true,
        .omit_frame_pointer = true,
        .sanitize_c = if (sanitizers.undefined_c) .full else .off,
        .sanitize_thread = if (sanitizers.thread) true else null,
    });
    module.addCSourceFiles(.{ .root = sources.zstd, .files = &zstd_files, .flags = &zstd_flags });
    if (sanitizers.memory) for ([_][]const u8{ "malloc", "calloc", "free" }) |name| {
        module.addCMacro(name, b.fmt("zr_test_{s}", .{name}));
    };
    // The assembly is for the System V calling convention; elsewhere the C loops do the same.
    if (target.result.cpu.arch == .x86_64 and target.result.os.tag != .windows) {
        module.addAssemblyFile(sources.zstd.path(b, "decompress/huf_decompress_amd64.S"));
    } else {
        module.addCMacro("ZSTD_DISABLE_ASM", "1");
    }
    const library = b.addLibrary(.{ .name = "zstd", .linkage = .static, .root_module = module });
    dropUnused(library);
    return library;
}

/// Lets the linker leave out every function and constant that nothing reaches: 8 % of the addon.
fn dropUnused(library: *std.Build.Step.Compile) void {
    library.link_function_sections = true;
    library.link_data_sections = true;
    library.link_gc_sections = true;
}
