//! Is all of a container in memory?
//!
//! Then a gather waits for no disk: an asynchronous one that is small is done at once on its caller
//! instead of waking a lane and being woken by it, which for small records costs more than the gather.
//!
//! Every batch reports here; every so often a lane surveys the map, a slice of it at a time between
//! other work: it asks the system which pages are in memory, and enters those in the page tables so that
//! no first touch costs a fault later. The first page that is not in memory ends a survey. What it found
//! counts for some seconds; a lane that had to wait for the disk meanwhile takes it back at once.
//!
//!     nothing ── enough batches ──▶ queued ──▶ a lane surveys ─┬▶ all there: resident until `expires_ns`
//!        ▲                            └ slice by slice         └▶ a hole: absent until `due_ns`
//!        └───────────────────────────── in due time ────────────────────────┘

const std = @import("std");
const assert = std.debug.assert;
const map_module = @import("map.zig");
const executor_module = @import("../executor.zig");
const Map = map_module.Map;

/// Batches before the first survey: a container that is opened for a look is not worth one.
const batches_first = 2;
/// Batches between two looks at the clock.
const batches_between = 16;
/// A survey gives way to other work after this.
const slice_ns = std.time.ns_per_ms;
/// A verdict holds for a hundred times what it cost, within these.
const valid_ns_min = 1 * std.time.ns_per_s;
const valid_ns_max = 60 * std.time.ns_per_s;
/// Beyond this a survey would cost too much: never resident.
const map_bytes_max = 64 << 30;

pub const Residence = struct {
    executor: *executor_module.Executor,
    /// Resident while the clock is below; 0: not.
    expires_ns: std.atomic.Value(u64) = .init(0),
    /// When the next survey may begin.
    due_ns: std.atomic.Value(u64) = .init(0),
    /// Until the clock is looked at.
    batches_left: std.atomic.Value(u32) = .init(batches_first),
    /// Pages below are in the page tables. Written by surveys only.
    entered_bytes: usize = 0,
    /// Guards `survey`.
    lock: std.atomic.Value(bool) = .init(false),
    survey: ?*Survey = null,

    /// False: what the system says of pages in memory cannot be trusted or would cost too much.
    pub fn canTell(map: *const Map) bool {
        return map.bytes <= map_bytes_max and map.canTellResidence();
    }

    pub fn isResident(residence: *const Residence, now_ns: u64) bool {
        const expires_ns = residence.expires_ns.load(.monotonic);
        return expires_ns != 0 and now_ns < expires_ns;
    }

    /// As `isResident`, without a look at the clock: a verdict that has grown old is not taken back yet.
    pub fn isThought(residence: *const Residence) bool {
        return residence.expires_ns.load(.monotonic) != 0;
    }

    /// Reports a batch that was taken from `map`.
    pub fn tick(residence: *Residence, map: *const Map) void {
        const left = residence.batches_left.load(.monotonic);
        if (left > 0) return residence.batches_left.store(left - 1, .monotonic);
        residence.batches_left.store(batches_between, .monotonic);
        const now_ns = map_module.nowNs();
        if (now_ns < residence.due_ns.load(.monotonic)) return;
        residence.acquire();
        defer residence.release();
        if (residence.survey != null) return;
        // A cancelled survey outlives the store, so its memory is the executor's.
        const gpa = residence.executor.gpa;
        const survey = gpa.create(Survey) catch return;
        survey.* = .{ .gpa = gpa, .residence = residence, .map = map };
        residence.executor.submit(Survey.run, survey) catch return gpa.destroy(survey);
        residence.survey = survey;
    }

    /// A lane had to wait for the disk.
    pub fn disprove(residence: *Residence) void {
        residence.expires_ns.store(0, .monotonic);
        residence.due_ns.store(map_module.nowNs() + valid_ns_min, .monotonic);
    }

    /// Waits for a survey that runs, at most a slice; one that is queued will find itself cancelled.
    pub fn deinit(residence: *Residence) void {
        // The lock is free while this thread gives way: a survey wants it to end.
        while (residence.isSurveying()) std.Thread.yield() catch {};
    }

    /// Tells the survey to stop. False: there is none any more.
    fn isSurveying(residence: *Residence) bool {
        residence.acquire();
        defer residence.release();
        const survey = residence.survey orelse return false;
        survey.stopped.store(true, .monotonic);
        if (survey.state.cmpxchgStrong(.queued, .cancelled, .acq_rel, .acquire) != null) return true;
        residence.survey = null;
        return false;
    }

    /// How much of the map was entered, once no survey is going on.
    pub fn enteredBytes(residence: *Residence) u64 {
        while (true) : (std.Thread.yield() catch {}) {
            residence.acquire();
            defer residence.release();
            if (residence.survey == null) return residence.entered_bytes;
        }
    }

    fn acquire(residence: *Residence) void {
        while (residence.lock.swap(true, .acquire)) std.atomic.spinLoopHint();
    }

    fn release(residence: *Residence) void {
        residence.lock.store(false, .release);
    }
};

/// One look at the whole map. Belongs to whoever runs it; its residence is there unless `state` became
/// `cancelled` while it was queued.
const Survey = struct {
    gpa: std.mem.Allocator,
    residence: *Residence,
    map: *const Map,
    state: std.atomic.Value(State) = .init(.queued),
    stopped: std.atomic.Value(bool) = .init(false),
    at_bytes: usize = 0,
    spent_ns: u64 = 0,

    const State = enum(u8) { queued, running, cancelled };

    fn run(context: ?*anyopaque) callconv(.c) void {
        const survey: *Survey = @ptrCast(@alignCast(context.?));
        const gpa = survey.gpa;
        if (survey.state.cmpxchgStrong(.queued, .running, .acq_rel, .acquire) != null) {
            gpa.destroy(survey); // Cancelled, and the store is gone.
            return;
        }
        const residence = survey.residence;
        const begun_ns = map_module.nowNs();
        var verdict: ?bool = null;
        while (verdict == null) {
            verdict = survey.step();
            if (verdict == null and map_module.nowNs() - begun_ns >= slice_ns) break;
        }
        const now_ns = map_module.nowNs();
        survey.spent_ns += now_ns - begun_ns;
        residence.acquire();
        assert(residence.survey == survey);
        if (verdict == null and !survey.stopped.load(.monotonic)) {
            // The rest comes after whatever waits for a lane.
            survey.state.store(.queued, .release);
            if (residence.executor.submit(Survey.run, survey)) |_| {
                residence.release();
                return;
            } else |_| {}
        }
        if (verdict) |is_resident| {
            const valid_ns = std.math.clamp(survey.spent_ns *| 100, valid_ns_min, valid_ns_max);
            residence.expires_ns.store(if (is_resident) now_ns + valid_ns else 0, .monotonic);
            // Renewed before it ends, so that a busy reader does not fall back to lanes every so often.
            residence.due_ns.store(now_ns + if (is_resident) valid_ns / 2 else valid_ns, .monotonic);
        }
        residence.survey = null;
        residence.release();
        gpa.destroy(survey);
    }

    /// True: all pages were looked at and are in memory. False: one is not. Null: go on.
    fn step(survey: *Survey) ?bool {
        if (survey.stopped.load(.monotonic)) return false;
        const map = survey.map;
        const residence = survey.residence;
        const bytes = @min(map_module.survey_bytes, map.bytes - survey.at_bytes);
        if (!map.isInMemory(survey.at_bytes, bytes)) return false;
        const end = survey.at_bytes + bytes;
        if (end > residence.entered_bytes) {
            if (!map.enter(survey.at_bytes, bytes)) return false;
            residence.entered_bytes = end;
        }
        survey.at_bytes = end;
        return if (end == map.bytes) true else null;
    }
};
