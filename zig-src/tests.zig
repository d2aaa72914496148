//! Entry of the native tests: every file with tests, once.

comptime {
    _ = @import("fault.zig");
    _ = @import("signals.zig");
    _ = @import("executor.zig");
    _ = @import("topology.zig");
    _ = @import("zstd.zig");
    _ = @import("dict.zig");
    _ = @import("frame.zig");
    _ = @import("buffer.zig");
    _ = @import("pad.zig");
    _ = @import("sampler.zig");
    _ = @import("sampler/iid.zig");
    _ = @import("sampler/feistel.zig");
    _ = @import("store.zig");
    _ = @import("store/format.zig");
    _ = @import("store/plan.zig");
    _ = @import("store/parts.zig");
    _ = @import("store/codec.zig");
    _ = @import("store/scratch.zig");
    _ = @import("store/copy.zig");
    _ = @import("store/map.zig");
    _ = @import("store/checksum.zig");
    _ = @import("store/volume.zig");
    _ = @import("store/append.zig");
    _ = @import("store/append_file.zig");
    _ = @import("store/gather.zig");
    _ = @import("store/residence.zig");
    _ = @import("store/reserve.zig");
    _ = @import("store/verify.zig");
    _ = @import("napi/thunk.zig");
    _ = @import("store_test.zig");
    _ = @import("capi/exports.zig");
    _ = @import("capi/header_test.zig");
    _ = @import("capi/memory_test.zig");
    _ = @import("testing/refusing.zig"); // zstd's memory, whichever tests are chosen.
    _ = @import("fuzz/replay_test.zig");
    _ = @import("tidy.zig");
}
