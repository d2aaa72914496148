//! Lanes: the process's one budget of native threads.
//!
//! Two ways in:
//!   submit  one task, later, on a lane: how an asynchronous call leaves the JavaScript thread.
//!   fanOut  many tasks of one call, now: the caller is the first lane, parked lanes help.
//!
//! A caller of fanOut never waits for work that nobody has begun: it runs tasks itself until none is
//! left, then waits only for helpers that are inside a task. So nested use (a submitted task that
//! fans out) cannot deadlock, and with no lane to be had everything still runs, on the caller.
//!
//! Lanes are made on demand, up to the budget, and parked when idle. They are never joined: the addon
//! stays mapped for the life of the process.

const std = @import("std");
const signals = @import("signals.zig");
const assert = std.debug.assert;
const Io = std.Io;

pub const lanes_max = 1024;

/// How long a lane that has just worked looks for more before it parks: about 50 µs. Waking a parked one
/// takes 11 to 18.
const lane_spins = 2000;

/// How long a caller spins for its last helpers before it parks: about 50 µs.
const caller_spins = 2000;

pub const Executor = struct {
    io: Io,
    gpa: std.mem.Allocator,
    mutex: Io.Mutex = .init,
    /// Signalled when there is work to take, or a lane should leave.
    work: Io.Condition = .init,
    /// Calls that fan out, newest first: what has begun is finished before new work starts.
    fan_outs: ?*FanOut = null,
    submitted_first: ?*Submitted = null,
    submitted_last: ?*Submitted = null,
    /// The budget. Read without the mutex by planners; a stale value only changes how work is cut.
    lane_budget: std.atomic.Value(u32),
    lanes_alive: u32 = 0,
    /// Parked.
    lanes_idle: u32 = 0,
    /// Lanes that look for work before they park, at most one: they take a core from somebody. Every piece
    /// of new work that a looking lane will find needs no signal.
    lanes_looking: u32 = 0,
    /// Changed whenever there is new work, for those who look.
    news: std.atomic.Value(u32) = .init(0),

    pub fn init(io: Io, gpa: std.mem.Allocator, lane_budget: u32) Executor {
        assert(lane_budget >= 1);
        return .{ .io = io, .gpa = gpa, .lane_budget = .init(lane_budget) };
    }

    pub fn lanes(executor: *const Executor) u32 {
        return executor.lane_budget.load(.monotonic);
    }

    pub fn setLanes(executor: *Executor, lane_count: u32) void {
        assert(lane_count >= 1);
        assert(lane_count <= lanes_max);
        executor.mutex.lockUncancelable(executor.io);
        defer executor.mutex.unlock(executor.io);
        executor.lane_budget.store(lane_count, .monotonic);
        executor.work.broadcast(executor.io); // Lanes over the budget leave.
    }

    const Submitted = struct {
        next: ?*Submitted,
        run: *const fn (context: ?*anyopaque) callconv(.c) void,
        context: ?*anyopaque,
    };

    /// Runs `run(context)` once on a lane. Fails only when there is no memory or no thread to be had
    /// and no lane exists; then nothing was queued.
    pub fn submit(
        executor: *Executor,
        run: *const fn (context: ?*anyopaque) callconv(.c) void,
        context: ?*anyopaque,
    ) error{ OutOfMemory, NoThread }!void {
        const task = try executor.gpa.create(Submitted);
        task.* = .{ .next = null, .run = run, .context = context };
        executor.mutex.lockUncancelable(executor.io);
        defer executor.mutex.unlock(executor.io);
        if (executor.lanes_idle == 0 and executor.lanes_looking == 0) executor.addLane();
        if (executor.lanes_alive == 0) {
            executor.gpa.destroy(task);
            return error.NoThread;
        }
        if (executor.submitted_last) |last| last.next = task else executor.submitted_first = task;
        executor.submitted_last = task;
        if (!executor.lookerTakes()) executor.work.signal(executor.io);
    }

    /// Leaves one piece of new work to a lane that looks for it, if there is one. Wants the mutex.
    fn lookerTakes(executor: *Executor) bool {
        if (executor.lanes_looking == 0) return false;
        executor.lanes_looking -= 1;
        _ = executor.news.fetchAdd(1, .release);
        return true;
    }

    const FanOut = struct {
        next: ?*FanOut,
        run: *const fn (context: *anyopaque, task: u32) void,
        context: *anyopaque,
        task_count: u32,
        claimed: std.atomic.Value(u32) = .init(0),
        /// Lanes inside this call besides the caller. Written under the mutex.
        helpers: std.atomic.Value(u32) = .init(0),
        helpers_max: u32,
        done: Io.Condition = .init,

        fn work(call: *FanOut) void {
            while (true) {
                const task = call.claimed.fetchAdd(1, .monotonic);
                // fetchAdd past the end is harmless: task_count + lanes_max stays far below 2^32.
                if (task >= call.task_count) return;
                call.run(call.context, task);
            }
        }

        fn wanted(call: *const FanOut) bool {
            return call.helpers.load(.monotonic) < call.helpers_max and call.claimed.load(.monotonic) < call.task_count;
        }
    };

    /// Runs `run(context, task)` for task 0 .. task_count - 1 on the caller and up to `lane_limit - 1`
    /// lanes, and returns when all have ended. Tasks are claimed in order.
    pub fn fanOut(
        executor: *Executor,
        comptime Context: type,
        context: *Context,
        task_count: u32,
        lane_limit: u32,
        comptime run: fn (context: *Context, task: u32) void,
    ) void {
        assert(task_count <= std.math.maxInt(u32) - 2 * lanes_max);
        const helpers_max = @min(@min(lane_limit, executor.lanes()), task_count) -| 1;
        if (helpers_max == 0) {
            for (0..task_count) |task| run(context, @intCast(task));
            return;
        }
        const Erased = struct {
            fn erased(pointer: *anyopaque, task: u32) void {
                run(@ptrCast(@alignCast(pointer)), task);
            }
        };
        var call: FanOut = .{
            .next = null,
            .run = Erased.erased,
            .context = context,
            .task_count = task_count,
            .helpers_max = helpers_max,
        };
        {
            executor.mutex.lockUncancelable(executor.io);
            defer executor.mutex.unlock(executor.io);
            call.next = executor.fan_outs;
            executor.fan_outs = &call;
            var called: u32 = if (executor.lookerTakes()) 1 else 0;
            var awake: u32 = 0;
            while (called < helpers_max) : (called += 1) {
                if (awake >= executor.lanes_idle) executor.addLane();
                awake += 1;
                executor.work.signal(executor.io);
            }
        }
        call.work();
        // The last helpers usually end within a record or two; a park and a wake would cost more.
        var spins: u32 = 0;
        while (call.helpers.load(.acquire) > 0 and spins < caller_spins) : (spins += 1) std.atomic.spinLoopHint();
        executor.mutex.lockUncancelable(executor.io);
        defer executor.mutex.unlock(executor.io);
        // Nobody new may enter: the call lives on this stack.
        var link = &executor.fan_outs;
        while (link.*.? != &call) link = &link.*.?.next;
        link.* = call.next;
        while (call.helpers.load(.acquire) > 0) call.done.waitUncancelable(executor.io, &executor.mutex);
    }

    /// One more lane if the budget and the system allow. Wants the mutex.
    fn addLane(executor: *Executor) void {
        if (executor.lanes_alive >= executor.lanes()) return;
        // std's thread entry keeps a signal stack in thread-local storage: less than 1 MiB does not fit.
        const thread = std.Thread.spawn(.{ .stack_size = 1 << 20, .allocator = executor.gpa }, laneMain, .{executor}) catch return;
        thread.detach();
        executor.lanes_alive += 1;
    }

    fn laneMain(executor: *Executor) void {
        signals.blockForLane();
        executor.mutex.lockUncancelable(executor.io);
        defer executor.mutex.unlock(executor.io);
        var worked = false;
        while (true) {
            if (executor.takeFanOut()) |call| {
                _ = call.helpers.fetchAdd(1, .monotonic);
                executor.mutex.unlock(executor.io);
                call.work();
                executor.mutex.lockUncancelable(executor.io);
                if (call.helpers.load(.monotonic) == 1) call.done.signal(executor.io);
                // The caller spins on this without the mutex, but takes it before it leaves: `call` lives
                // until we have let go of the mutex.
                _ = call.helpers.fetchSub(1, .release);
            } else if (executor.lanes_alive > executor.lanes()) {
                executor.lanes_alive -= 1;
                return;
            } else if (executor.takeSubmitted()) |task| {
                executor.mutex.unlock(executor.io);
                const run = task.run;
                const context = task.context;
                executor.gpa.destroy(task);
                run(context);
                executor.mutex.lockUncancelable(executor.io);
            } else if (worked and executor.lanes_looking == 0 and executor.lanes() > 1) {
                worked = false;
                executor.look();
                continue;
            } else {
                executor.lanes_idle += 1;
                executor.work.waitUncancelable(executor.io, &executor.mutex);
                executor.lanes_idle -= 1;
            }
            worked = true;
        }
    }

    /// Looks for new work for a moment. Wants the mutex, and lets go of it meanwhile. Afterwards there may
    /// be work or not: a piece that was left to this lane is in its queue all the same.
    fn look(executor: *Executor) void {
        executor.lanes_looking += 1;
        const before = executor.news.load(.monotonic);
        executor.mutex.unlock(executor.io);
        var spins: u32 = 0;
        while (executor.news.load(.acquire) == before and spins < lane_spins) : (spins += 1) std.atomic.spinLoopHint();
        executor.mutex.lockUncancelable(executor.io);
        if (executor.news.load(.monotonic) == before) executor.lanes_looking -= 1;
    }

    fn takeFanOut(executor: *Executor) ?*FanOut {
        var at = executor.fan_outs;
        while (at) |call| : (at = call.next) {
            if (call.wanted()) return call;
        }
        return null;
    }

    fn takeSubmitted(executor: *Executor) ?*Submitted {
        const task = executor.submitted_first orelse return null;
        executor.submitted_first = task.next;
        if (executor.submitted_first == null) executor.submitted_last = null;
        return task;
    }
};

/// Lanes are detached and outlive a test, so an executor under test must never be freed.
fn testExecutor(lane_budget: u32) !*Executor {
    const executor = try std.heap.page_allocator.create(Executor);
    executor.* = .init(std.testing.io, std.heap.page_allocator, lane_budget);
    return executor;
}

test "tasks run once each, nested, with and without lanes" {
    for ([_]u32{ 1, 2, 5 }) |lane_budget| {
        const Call = struct {
            executor: *Executor,
            counts: [64]std.atomic.Value(u32) = @splat(.init(0)),
            fn inner(call: *@This(), task: u32) void {
                _ = call.counts[task].fetchAdd(1, .monotonic);
            }
            fn outer(call: *@This(), _: u32) void {
                call.executor.fanOut(@This(), call, 64, 8, inner);
            }
        };
        const executor = try testExecutor(lane_budget);
        for (0..50) |_| {
            var call: Call = .{ .executor = executor };
            executor.fanOut(Call, &call, 10, 8, Call.outer);
            for (&call.counts) |*count| try std.testing.expectEqual(@as(u32, 10), count.load(.monotonic));
        }
    }
}

test "lanes over a lowered budget leave" {
    const executor = try testExecutor(4);
    const Call = struct {
        fn run(_: *@This(), _: u32) void {
            std.Thread.yield() catch {};
        }
    };
    var call: Call = .{};
    executor.fanOut(Call, &call, 100, 4, Call.run);
    executor.setLanes(1);
    while (true) {
        executor.mutex.lockUncancelable(executor.io);
        defer executor.mutex.unlock(executor.io);
        if (executor.lanes_alive <= 1) break;
    }
    executor.fanOut(Call, &call, 100, 4, Call.run);
}

test "submitted tasks run on a lane" {
    const executor = try testExecutor(2);
    const Flag = struct {
        thread: std.atomic.Value(usize) = .init(0),
        fn run(context: ?*anyopaque) callconv(.c) void {
            const flag: *@This() = @ptrCast(@alignCast(context));
            flag.thread.store(std.Thread.getCurrentId(), .release);
        }
    };
    var flag: Flag = .{};
    try executor.submit(Flag.run, &flag);
    while (flag.thread.load(.acquire) == 0) std.Thread.yield() catch {};
    try std.testing.expect(flag.thread.load(.acquire) != std.Thread.getCurrentId());
}

test "what is submitted while a lane looks for work runs without a signal" {
    const executor = try testExecutor(2);
    const Count = struct {
        done: std.atomic.Value(u32) = .init(0),
        fn run(context: ?*anyopaque) callconv(.c) void {
            const count: *@This() = @ptrCast(@alignCast(context));
            _ = count.done.fetchAdd(1, .release);
        }
        fn task(_: *@This(), _: u32) void {}
    };
    var count: Count = .{};
    for (1..2000) |round| {
        // At every distance from the end of the work before, looking or parked by then.
        for (0..round % 97 * 40) |_| std.atomic.spinLoopHint();
        if (round % 3 == 0) executor.fanOut(Count, &count, 2, 2, Count.task);
        try executor.submit(Count.run, &count);
        while (count.done.load(.acquire) < round) std.Thread.yield() catch {};
    }
}
