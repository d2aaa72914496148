//! What a build asks of the disk, recorded, and what of it a loss of power may leave.
//!
//! `Recorder` is `std.Io` that notes each call which changes something below one folder. `replay` makes
//! what a disk may hold after the first calls of a record: what was synced is there, and of everything
//! else some, in any order, and of a write perhaps its beginning alone. A name is synced with the folder
//! that it is in, as POSIX has it, not with its file.

const std = @import("std");
const Io = std.Io;
const File = Io.File;
const Dir = Io.Dir;

const root_node = 0;

const Call = union(enum) {
    make: struct { folder: u32, name: []const u8, node: u32 },
    move: struct { folder: u32, from: []const u8, to: []const u8 },
    write: struct { node: u32, offset: u64, bytes: []const u8 },
    cut: struct { node: u32, bytes: u64 },
    sync: struct { node: u32 },

    /// What has to be synced for this call to last.
    fn object(call: Call) u32 {
        return switch (call) {
            .make => |c| c.folder,
            .move => |c| c.folder,
            .write => |c| c.node,
            .cut => |c| c.node,
            .sync => |c| c.node,
        };
    }
};

pub const Recorder = struct {
    inner: Io,
    vtable: Io.VTable,
    arena: std.heap.ArenaAllocator,
    root: []const u8,
    calls: std.ArrayList(Call) = .empty,
    is_folder: std.ArrayList(bool) = .empty,
    /// Of what is open. A path is that under which it was made or opened.
    open: std.AutoHashMapUnmanaged(Dir.Handle, struct { path: []const u8, node: ?u32 }) = .empty,
    nodes: std.StringHashMapUnmanaged(u32) = .empty,
    lock: std.atomic.Value(bool) = .init(false),

    /// One at a time: the vtable's functions find it here, as their userdata is the inner one's.
    var current: *Recorder = undefined;

    /// `root`: an absolute path. Must stay where it is.
    pub fn init(recorder: *Recorder, inner: Io, root: []const u8) void {
        recorder.* = .{ .inner = inner, .vtable = inner.vtable.*, .arena = .init(std.heap.page_allocator), .root = root };
        const vtable = &recorder.vtable;
        vtable.dirCreateDir = createDir;
        vtable.dirCreateDirPath = createDirPath;
        vtable.dirOpenDir = openDir;
        vtable.dirCreateFile = createFile;
        vtable.dirOpenFile = openFile;
        vtable.dirRenamePreserve = renamePreserve;
        vtable.fileWritePositional = writePositional;
        vtable.fileSetLength = setLength;
        vtable.fileSync = sync;
        current = recorder;
        recorder.is_folder.append(recorder.arena.allocator(), true) catch unreachable;
        recorder.nodes.put(recorder.arena.allocator(), root, root_node) catch unreachable;
    }

    pub fn deinit(recorder: *Recorder) void {
        recorder.arena.deinit();
    }

    pub fn io(recorder: *Recorder) Io {
        return .{ .userdata = recorder.inner.userdata, .vtable = &recorder.vtable };
    }

    fn acquire() *Recorder {
        while (current.lock.swap(true, .acquire)) std.atomic.spinLoopHint();
        return current;
    }

    fn release(recorder: *Recorder) void {
        recorder.lock.store(false, .release);
    }

    fn note(recorder: *Recorder, call: Call) void {
        recorder.calls.append(recorder.arena.allocator(), call) catch unreachable;
    }

    fn pathOf(recorder: *Recorder, dir: Dir, sub_path: []const u8) []const u8 {
        const gpa = recorder.arena.allocator();
        const at: []const u8 = if (recorder.open.get(dir.handle)) |known| known.path else "/";
        return std.fs.path.resolve(gpa, &.{ at, sub_path }) catch unreachable;
    }

    fn made(recorder: *Recorder, path: []const u8, is_folder: bool) void {
        const gpa = recorder.arena.allocator();
        const folder = recorder.nodes.get(std.fs.path.dirname(path).?) orelse return;
        const node: u32 = @intCast(recorder.is_folder.items.len);
        recorder.is_folder.append(gpa, is_folder) catch unreachable;
        recorder.nodes.put(gpa, path, node) catch unreachable;
        recorder.note(.{ .make = .{ .folder = folder, .name = std.fs.path.basename(path), .node = node } });
    }

    fn opened(recorder: *Recorder, handle: Dir.Handle, path: []const u8) void {
        recorder.open.put(recorder.arena.allocator(), handle, .{ .path = path, .node = recorder.nodes.get(path) }) catch unreachable;
    }

    fn nodeOf(recorder: *Recorder, handle: Dir.Handle) ?u32 {
        return if (recorder.open.get(handle)) |known| known.node else null;
    }

    fn createDir(userdata: ?*anyopaque, dir: Dir, path: []const u8, permissions: Dir.Permissions) Dir.CreateDirError!void {
        try current.inner.vtable.dirCreateDir(userdata, dir, path, permissions);
        const recorder = acquire();
        defer recorder.release();
        recorder.made(recorder.pathOf(dir, path), true);
    }
    fn createDirPath(userdata: ?*anyopaque, dir: Dir, path: []const u8, permissions: Dir.Permissions) Dir.CreateDirPathError!Dir.CreatePathStatus {
        const status = try current.inner.vtable.dirCreateDirPath(userdata, dir, path, permissions);
        const recorder = acquire();
        defer recorder.release();
        const whole = recorder.pathOf(dir, path);
        // Each part below the root that is new, from the top.
        var end = recorder.root.len;
        while (end < whole.len) {
            end = std.mem.indexOfScalarPos(u8, whole, end + 1, '/') orelse whole.len;
            if (!recorder.nodes.contains(whole[0..end])) recorder.made(whole[0..end], true);
        }
        return status;
    }
    fn openDir(userdata: ?*anyopaque, dir: Dir, path: []const u8, options: Dir.OpenOptions) Dir.OpenError!Dir {
        const folder = try current.inner.vtable.dirOpenDir(userdata, dir, path, options);
        const recorder = acquire();
        defer recorder.release();
        recorder.opened(folder.handle, recorder.pathOf(dir, path));
        return folder;
    }
    fn createFile(userdata: ?*anyopaque, dir: Dir, path: []const u8, options: Dir.CreateFileOptions) File.OpenError!File {
        const file = try current.inner.vtable.dirCreateFile(userdata, dir, path, options);
        const recorder = acquire();
        defer recorder.release();
        const whole = recorder.pathOf(dir, path);
        recorder.made(whole, false);
        recorder.opened(file.handle, whole);
        return file;
    }
    fn openFile(userdata: ?*anyopaque, dir: Dir, path: []const u8, options: Dir.OpenFileOptions) File.OpenError!File {
        const file = try current.inner.vtable.dirOpenFile(userdata, dir, path, options);
        const recorder = acquire();
        defer recorder.release();
        recorder.opened(file.handle, recorder.pathOf(dir, path));
        return file;
    }
    fn renamePreserve(userdata: ?*anyopaque, old_dir: Dir, old: []const u8, new_dir: Dir, new: []const u8) Dir.RenamePreserveError!void {
        try current.inner.vtable.dirRenamePreserve(userdata, old_dir, old, new_dir, new);
        const recorder = acquire();
        defer recorder.release();
        std.debug.assert(old_dir.handle == new_dir.handle);
        const folder = recorder.nodeOf(old_dir.handle) orelse return;
        const gpa = recorder.arena.allocator();
        recorder.note(.{ .move = .{ .folder = folder, .from = gpa.dupe(u8, old) catch unreachable, .to = gpa.dupe(u8, new) catch unreachable } });
    }
    fn writePositional(userdata: ?*anyopaque, file: File, header: []const u8, data: []const []const u8, splat: usize, offset: u64) File.WritePositionalError!usize {
        const written = try current.inner.vtable.fileWritePositional(userdata, file, header, data, splat, offset);
        const recorder = acquire();
        defer recorder.release();
        const node = recorder.nodeOf(file.handle) orelse return written;
        var at: usize = 0;
        for (data) |piece| {
            const bytes = piece[0..@min(piece.len, written - at)];
            if (bytes.len == 0) break;
            const copy = recorder.arena.allocator().dupe(u8, bytes) catch unreachable;
            recorder.note(.{ .write = .{ .node = node, .offset = offset + at, .bytes = copy } });
            at += bytes.len;
        }
        std.debug.assert(header.len == 0 and at == written);
        return written;
    }
    fn setLength(userdata: ?*anyopaque, file: File, bytes: u64) File.SetLengthError!void {
        try current.inner.vtable.fileSetLength(userdata, file, bytes);
        const recorder = acquire();
        defer recorder.release();
        const node = recorder.nodeOf(file.handle) orelse return;
        recorder.note(.{ .cut = .{ .node = node, .bytes = bytes } });
    }
    fn sync(userdata: ?*anyopaque, file: File) File.SyncError!void {
        _ = userdata; // No power is lost here, so nobody has to wait.
        const recorder = acquire();
        defer recorder.release();
        const node = recorder.nodeOf(file.handle) orelse return;
        recorder.note(.{ .sync = .{ .node = node } });
    }

    /// Makes in `target`, an empty folder, what the first `count` calls may have left.
    pub fn replay(recorder: *Recorder, count: usize, random: std.Random, target: Dir) !void {
        var arena: std.heap.ArenaAllocator = .init(std.heap.page_allocator);
        defer arena.deinit();
        const gpa = arena.allocator();
        const calls = recorder.calls.items[0..count];
        // A call lasts if its object is synced after it. Of the others, more or fewer do.
        const luck = random.uintLessThan(u8, 5);
        var lasting: std.ArrayList(Call) = .empty;
        var lucky: std.ArrayList(Call) = .empty;
        for (calls, 0..) |call, at| {
            if (call == .sync) continue;
            const is_synced = for (calls[at + 1 ..]) |later| {
                if (later == .sync and later.sync.node == call.object()) break true;
            } else false;
            if (is_synced) {
                try lasting.append(gpa, call);
            } else if (random.uintLessThan(u8, 4) < luck) {
                try lucky.append(gpa, call);
            }
        }
        random.shuffle(Call, lucky.items);
        // A name can only be moved where it is.
        for ([_]bool{ true, false }) |makes| {
            for (lucky.items) |call| if ((call == .make) == makes) try lasting.append(gpa, call);
        }

        const nodes = try gpa.alloc(Node, recorder.is_folder.items.len);
        for (nodes) |*node| node.* = .{};
        for (lasting.items, 0..) |call, at| switch (call) {
            .make => |c| try nodes[c.folder].names.put(gpa, c.name, c.node),
            .move => |c| if (nodes[c.folder].names.fetchSwapRemove(c.from)) |moved| {
                try nodes[c.folder].names.put(gpa, c.to, moved.value);
            },
            .cut => |c| try nodes[c.node].resize(gpa, @intCast(c.bytes)),
            .write => |c| {
                const is_torn = at >= lasting.items.len - lucky.items.len and random.uintLessThan(u8, 4) == 0;
                const bytes = if (is_torn) c.bytes[0..random.uintAtMost(usize, c.bytes.len)] else c.bytes;
                const node = &nodes[c.node];
                const end: usize = @intCast(c.offset + bytes.len);
                if (node.bytes.items.len < end) try node.resize(gpa, end);
                @memcpy(node.bytes.items[@intCast(c.offset)..end], bytes);
            },
            .sync => unreachable,
        };
        try recorder.lay(nodes, root_node, target);
    }

    const Node = struct {
        names: std.StringArrayHashMapUnmanaged(u32) = .empty,
        bytes: std.ArrayList(u8) = .empty,

        fn resize(node: *Node, gpa: std.mem.Allocator, bytes: usize) !void {
            const before = node.bytes.items.len;
            try node.bytes.resize(gpa, bytes);
            if (bytes > before) @memset(node.bytes.items[before..], 0);
        }
    };

    fn lay(recorder: *Recorder, nodes: []const Node, at: u32, target: Dir) !void {
        const inner = recorder.inner;
        var names = nodes[at].names.iterator();
        while (names.next()) |entry| {
            const node = entry.value_ptr.*;
            if (recorder.is_folder.items[node]) {
                try target.createDir(inner, entry.key_ptr.*, .default_dir);
                const folder = try target.openDir(inner, entry.key_ptr.*, .{});
                defer folder.close(inner);
                try recorder.lay(nodes, node, folder);
            } else {
                try target.writeFile(inner, .{ .sub_path = entry.key_ptr.*, .data = nodes[node].bytes.items });
            }
        }
    }
};
