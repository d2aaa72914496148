//! A disk that fails on purpose: `std.Io` with the n-th call that touches storage replaced by an error,
//! once or from then on, or by a short transfer.
//!
//! The calls of a test run are counted first with nothing failing; then each of them is failed in turn.

const std = @import("std");
const Io = std.Io;
const File = Io.File;
const Dir = Io.Dir;

pub const Fault = enum {
    none,
    no_space,
    input_output,
    disk_quota,
    file_too_big,
    read_only,
    too_many_files,
    /// Half of what was asked for is transferred, as the system may at any time.
    short,
};

pub const Disk = struct {
    inner: Io,
    vtable: Io.VTable,
    calls: std.atomic.Value(u64) = .init(0),
    fail_at: u64 = std.math.maxInt(u64),
    fault: Fault = .none,
    lasting: bool = false,
    /// What every attempt to lock says: a file system without locks.
    lock_error: ?File.LockError = null,

    /// One disk at a time: the vtable's functions find it here, as their userdata is the inner one's.
    var current: *Disk = undefined;

    pub fn init(disk: *Disk, inner: Io) void {
        disk.* = .{ .inner = inner, .vtable = inner.vtable.* };
        disk.vtable.dirCreateDir = createDir;
        disk.vtable.dirOpenDir = openDir;
        disk.vtable.dirStatFile = statFile;
        disk.vtable.dirCreateFile = createFile;
        disk.vtable.dirOpenFile = openFile;
        disk.vtable.dirRead = readDir;
        disk.vtable.dirRenamePreserve = renamePreserve;
        disk.vtable.fileLength = length;
        disk.vtable.fileWritePositional = writePositional;
        disk.vtable.fileReadPositional = readPositional;
        disk.vtable.fileSync = sync;
        disk.vtable.fileSetLength = setLength;
        disk.vtable.fileTryLock = tryLock;
        current = disk;
    }

    pub fn io(disk: *Disk) Io {
        return .{ .userdata = disk.inner.userdata, .vtable = &disk.vtable };
    }

    /// Counts from zero again; call `at` fails.
    pub fn arm(disk: *Disk, at: u64, fault: Fault, lasting: bool) void {
        disk.calls.store(0, .monotonic);
        disk.fail_at = at;
        disk.fault = fault;
        disk.lasting = lasting;
    }

    fn strikes(disk: *Disk) bool {
        const call = disk.calls.fetchAdd(1, .monotonic);
        if (disk.fault == .none) return false;
        return call == disk.fail_at or (disk.lasting and call > disk.fail_at);
    }

    /// The error of the armed fault, if the called function knows it; others become an I/O error.
    fn strike(disk: *Disk, comptime Set: type) ?Set {
        if (!disk.strikes()) return null;
        inline for (.{
            .{ Fault.no_space, error.NoSpaceLeft },
            .{ Fault.disk_quota, error.DiskQuota },
            .{ Fault.file_too_big, error.FileTooBig },
            .{ Fault.read_only, error.ReadOnlyFileSystem },
            .{ Fault.too_many_files, error.ProcessFdQuotaExceeded },
            .{ Fault.input_output, error.InputOutput },
        }) |pair| {
            if (disk.fault == pair[0]) {
                if (comptime inSet(Set, pair[1])) return pair[1];
            }
        }
        if (disk.fault == .short) return null; // Transfers handle it; elsewhere there is nothing to shorten.
        if (comptime inSet(Set, error.InputOutput)) return error.InputOutput;
        if (comptime inSet(Set, error.SystemResources)) return error.SystemResources;
        return error.Unexpected;
    }

    fn inSet(comptime Set: type, comptime wanted: anyerror) bool {
        const names = @typeInfo(Set).error_set.error_names.?;
        for (names) |name| if (std.mem.eql(u8, name, @errorName(wanted))) return true;
        return false;
    }

    fn createDir(userdata: ?*anyopaque, dir: Dir, path: []const u8, permissions: Dir.Permissions) Dir.CreateDirError!void {
        if (current.strike(Dir.CreateDirError)) |err| return err;
        return current.inner.vtable.dirCreateDir(userdata, dir, path, permissions);
    }
    fn openDir(userdata: ?*anyopaque, dir: Dir, path: []const u8, options: Dir.OpenOptions) Dir.OpenError!Dir {
        if (current.strike(Dir.OpenError)) |err| return err;
        return current.inner.vtable.dirOpenDir(userdata, dir, path, options);
    }
    fn statFile(userdata: ?*anyopaque, dir: Dir, path: []const u8, options: Dir.StatFileOptions) Dir.StatFileError!File.Stat {
        if (current.strike(Dir.StatFileError)) |err| return err;
        return current.inner.vtable.dirStatFile(userdata, dir, path, options);
    }
    fn createFile(userdata: ?*anyopaque, dir: Dir, path: []const u8, options: Dir.CreateFileOptions) File.OpenError!File {
        if (current.strike(File.OpenError)) |err| return err;
        return current.inner.vtable.dirCreateFile(userdata, dir, path, options);
    }
    fn openFile(userdata: ?*anyopaque, dir: Dir, path: []const u8, options: Dir.OpenFileOptions) File.OpenError!File {
        if (current.strike(File.OpenError)) |err| return err;
        return current.inner.vtable.dirOpenFile(userdata, dir, path, options);
    }
    fn readDir(userdata: ?*anyopaque, reader: *Dir.Reader, entries: []Dir.Entry) Dir.Reader.Error!usize {
        if (current.strike(Dir.Reader.Error)) |err| return err;
        return current.inner.vtable.dirRead(userdata, reader, entries);
    }
    fn renamePreserve(userdata: ?*anyopaque, old_dir: Dir, old: []const u8, new_dir: Dir, new: []const u8) Dir.RenamePreserveError!void {
        if (current.strike(Dir.RenamePreserveError)) |err| return err;
        return current.inner.vtable.dirRenamePreserve(userdata, old_dir, old, new_dir, new);
    }
    fn length(userdata: ?*anyopaque, file: File) File.LengthError!u64 {
        if (current.strike(File.LengthError)) |err| return err;
        return current.inner.vtable.fileLength(userdata, file);
    }
    fn sync(userdata: ?*anyopaque, file: File) File.SyncError!void {
        // Succeeds without waiting for the disk: no test here can see the difference, but feels it.
        _ = .{ userdata, file };
        if (current.strike(File.SyncError)) |err| return err;
    }
    fn setLength(userdata: ?*anyopaque, file: File, bytes: u64) File.SetLengthError!void {
        if (current.strike(File.SetLengthError)) |err| return err;
        return current.inner.vtable.fileSetLength(userdata, file, bytes);
    }
    fn tryLock(userdata: ?*anyopaque, file: File, lock: File.Lock) File.LockError!bool {
        if (current.lock_error) |err| return err;
        if (current.strike(File.LockError)) |err| return err;
        return current.inner.vtable.fileTryLock(userdata, file, lock);
    }
    fn writePositional(userdata: ?*anyopaque, file: File, header: []const u8, data: []const []const u8, splat: usize, offset: u64) File.WritePositionalError!usize {
        if (current.fault == .short) {
            if (current.strikes() and header.len == 0 and data.len >= 1 and data[0].len > 1) {
                // Of several pieces, part of the first or, where there is one more, the first alone.
                const first = if (data.len > 1 and offset % 2 == 0) data[0] else data[0][0 .. data[0].len / 2];
                return current.inner.vtable.fileWritePositional(userdata, file, header, &.{first}, splat, offset);
            }
        } else if (current.strike(File.WritePositionalError)) |err| return err;
        return current.inner.vtable.fileWritePositional(userdata, file, header, data, splat, offset);
    }
    fn readPositional(userdata: ?*anyopaque, file: File, data: []const []u8, offset: u64) File.ReadPositionalError!usize {
        if (current.fault == .short) {
            if (current.strikes() and data.len == 1 and data[0].len > 1) {
                return current.inner.vtable.fileReadPositional(userdata, file, &.{data[0][0 .. data[0].len / 2]}, offset);
            }
        } else if (current.strike(File.ReadPositionalError)) |err| return err;
        return current.inner.vtable.fileReadPositional(userdata, file, data, offset);
    }
};
