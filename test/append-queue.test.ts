// One build's life, held to its rules by a native side that does what the test says, when it says.
import t from 'tap';
import { ArgumentRangeError } from '../ts/errors.js';
import type { Native, StoreHandle } from '../ts/native/binding.js';
import { AppendQueue, type Turn, type Window } from '../ts/store/append-queue.js';
import { Handle } from '../ts/store/handle.js';

interface Waiting {
  resolve(): void;
  reject(error: Error): void;
}

function nativeError(status: number, message: string): Error {
  return Object.assign(new Error(message), { status, fileKind: 0 });
}

/** Records what is asked of it; asynchronous calls wait until the test lets them go. */
class FakeNative {
  readonly log: string[] = [];
  readonly waiting: Waiting[] = [];
  runningCount = 0;

  #start(what: string): Promise<void> {
    this.log.push(what);
    this.runningCount += 1;
    if (this.runningCount > 1) this.log.push('OVERLAP');
    return new Promise<void>((resolve, reject) => {
      this.waiting.push({ resolve, reject });
    }).finally(() => {
      this.runningCount -= 1;
    });
  }

  append(_: StoreHandle, __: Uint8Array, ___: unknown, count: number): Promise<void> {
    return this.#start(`append ${count}`);
  }
  appendFile(_: StoreHandle, path: string, offset: number, count: number): Promise<void> {
    return this.#start(`appendFile ${path} ${offset} ${count}`);
  }
  appendSync(_: StoreHandle, __: Uint8Array, ___: unknown, count: number): void {
    this.#note(`appendSync ${count}`);
  }
  publish(_: StoreHandle, durable: boolean): Promise<void> {
    return this.#start(`publish${durable ? ' durable' : ''}`);
  }
  publishSync(): void {
    this.#note('publishSync');
  }
  mark(): void {
    this.#note('mark');
  }
  rewind(): void {
    this.#note('rewind');
  }
  closeSync(): void {
    this.#note('close');
  }

  #note(what: string): void {
    this.log.push(this.runningCount > 0 ? `${what} WHILE RUNNING` : what);
  }

  /** Ends the oldest call. */
  async finish(error?: Error): Promise<void> {
    const first = this.waiting.shift();
    if (first === undefined) throw new Error('nothing runs');
    if (error === undefined) first.resolve();
    else first.reject(error);
    await settled();
  }
}

/** After everything that promises can do by themselves. */
function settled(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(resolve);
  });
}

function make(): { native: FakeNative; queue: AppendQueue } {
  const native = new FakeNative();
  const handle = new Handle(native as unknown as Native, {} as StoreHandle, '/a', 'writer');
  return { native, queue: new AppendQueue(handle) };
}

function window(recordCount: number): Window {
  return { records: new Uint8Array(recordCount), ends: undefined, recordCount, recordBytes: 1 };
}

/** A job of windows of these sizes. */
function putting(...counts: readonly number[]): (turn: Turn) => Promise<number> {
  return async (turn) => {
    for (const count of counts) await turn.put(window(count));
    return counts.reduce((sum, count) => sum + count, 0);
  };
}

/** A job of one window of this size, on one thread. */
function puttingSync(count: number): (turn: Turn) => number {
  return (turn) => {
    turn.putSync(window(count));
    return count;
  };
}

/** How a promise ended, without waiting for it. */
function watch(promise: Promise<unknown>): { outcome: string } {
  const watched = { outcome: 'pending' };
  promise.then(
    () => {
      watched.outcome = 'ok';
    },
    (error: Error & { code?: string }) => {
      watched.outcome = error.code ?? error.message;
    },
  );
  return watched;
}

const noSpace = (): Error => nativeError(-6, 'no space left');
const badArgument = (): Error => new ArgumentRangeError('batch', 'detached');

t.test('appends follow each other in call order, one native call at a time', async (t) => {
  const { native, queue } = make();
  const first = watch(queue.append(putting(1, 2)));
  const second = watch(queue.append(putting(3)));
  t.same(native.log, ['mark', 'append 1'], 'the first begins at once');
  await native.finish();
  t.same(native.log.slice(2), ['append 2']);
  t.equal(queue.length, 0, 'half an append does not count');
  await native.finish();
  t.equal(first.outcome, 'ok');
  t.equal(queue.length, 3);
  t.same(native.log.slice(3), ['mark', 'append 3']);
  await native.finish();
  t.equal(second.outcome, 'ok');
  t.equal(queue.length, 6);
  t.notOk(native.log.includes('OVERLAP'));
});

t.test('a window is prepared while the one before it runs', async (t) => {
  const { native, queue } = make();
  const prepared: number[] = [];
  void queue.append(async (turn) => {
    for (const count of [1, 2, 3]) {
      prepared.push(count);
      await turn.put(window(count));
    }
    return 6;
  });
  await settled();
  t.same(prepared, [1, 2], 'the second is ready, the third is not begun');
  for (let call = 0; call < 3; call += 1) await native.finish();
  t.equal(queue.length, 6);
});

t.test('synchronous calls while asynchronous ones are under way are BUSY', async (t) => {
  const { native, queue } = make();
  const running = queue.append(putting(1));
  t.throws(() => queue.appendSync(() => 1), { code: 'BUSY' });
  t.throws(() => queue.closeSync(false), { code: 'BUSY' });
  await native.finish();
  await running;
  queue.appendSync((turn) => {
    turn.putSync(window(4));
    t.throws(() => queue.appendSync(() => 1), { code: 'BUSY' }, 'nor in each other');
    t.throws(() => queue.closeSync(false), { code: 'BUSY' });
    return 4;
  });
  t.equal(queue.length, 5);
});

t.test('close waits for what is queued, publishes, and releases once', async (t) => {
  const { native, queue } = make();
  void queue.append(putting(1));
  void queue.append(putting(2));
  const closed = queue.close(true);
  t.equal(queue.close(false), closed, 'a second close is the same one');
  t.throws(() => queue.assertAccepts(), { code: 'CLOSED' });
  await native.finish();
  await native.finish();
  t.same(native.log.at(-1), 'publish durable');
  await native.finish();
  await closed;
  t.equal(queue.length, 3);
  queue.closeSync(false);
  queue.abort();
  queue.dispose();
  t.same(
    native.log.filter((line) => line.startsWith('close')),
    ['close'],
  );
});

t.test('a failed native append poisons: what waits and what comes is BUILD_FAILED', async (t) => {
  const { native, queue } = make();
  const failing = watch(queue.append(putting(1, 2)));
  const waiting = watch(queue.append(putting(3)));
  await native.finish(noSpace());
  t.equal(failing.outcome, 'IO');
  t.equal(waiting.outcome, 'BUILD_FAILED');
  t.same(native.log, ['mark', 'append 1'], 'nothing more was written, nothing rewound');
  await t.rejects(queue.append(putting(1)), {
    code: 'BUILD_FAILED',
    message: /no space left/,
    cause: { code: 'IO' },
  });
  await t.rejects(queue.close(false), { code: 'BUILD_FAILED', cause: { code: 'IO' } });
  await t.rejects(queue.close(false), { code: 'BUILD_FAILED' });
  t.throws(() => queue.closeSync(false), { code: 'BUILD_FAILED' });
  t.equal(native.log.at(-1), 'close', 'the build is discarded');
  t.equal(queue.length, 0);
});

t.test('windows of a file keep the same order; what is wrong with it names it', async (t) => {
  const { native, queue } = make();
  const file = { path: '/b', name: 'b', recordBytes: 2, recordCount: 3 };
  const running = watch(
    queue.append(async (turn) => {
      await turn.put(window(1));
      await turn.putFile({ ...file, offsetBytes: 10 });
      await turn.putFile({ ...file, offsetBytes: 16 });
      return 7;
    }),
  );
  await native.finish();
  t.same(native.log, ['mark', 'append 1', 'appendFile /b 10 3']);
  await native.finish();
  const cut = Object.assign(nativeError(-5, 'it became shorter'), { fileKind: 6 });
  await native.finish(cut);
  t.equal(running.outcome, 'MALFORMED');
  t.same(native.log.slice(3), ['appendFile /b 16 3']);
  await t.rejects(queue.append(putting(1)), {
    code: 'BUILD_FAILED',
    cause: { code: 'MALFORMED', path: 'b', message: 'b: it became shorter' },
  });
});

t.test('the same on one thread', async (t) => {
  const { native, queue } = make();
  native.appendSync = () => {
    throw noSpace();
  };
  t.throws(() => queue.appendSync(puttingSync(1)), { code: 'IO' });
  t.throws(() => queue.appendSync(() => 1), { code: 'BUILD_FAILED' });
  t.throws(() => queue.closeSync(false), { code: 'BUILD_FAILED' });
  t.same(native.log, ['mark', 'close']);
});

t.test('a failure that is noticed while the next window is prepared', async (t) => {
  const { native, queue } = make();
  let release: () => void = () => {};
  const pause = new Promise<void>((resolve) => {
    release = resolve;
  });
  const failing = watch(
    queue.append(async (turn) => {
      await turn.put(window(1));
      await pause;
      throw badArgument();
    }),
  );
  await native.finish(noSpace());
  release();
  await settled();
  t.equal(failing.outcome, 'INVALID_ARGUMENT', 'the caller hears what the caller did');
  await t.rejects(queue.append(putting(1)), { code: 'BUILD_FAILED', cause: { code: 'IO' } });
  t.notOk(native.log.includes('rewind'));
});

t.test('an argument error after some windows goes back to the mark', async (t) => {
  const { native, queue } = make();
  const wrong = watch(
    queue.append(async (turn) => {
      await turn.put(window(1));
      throw badArgument();
    }),
  );
  await settled();
  t.equal(wrong.outcome, 'pending', 'the window in flight is waited for');
  await native.finish();
  t.equal(wrong.outcome, 'INVALID_ARGUMENT');
  t.same(native.log, ['mark', 'append 1', 'rewind']);
  const good = queue.append(putting(2));
  await native.finish();
  await good;
  t.equal(queue.length, 2);
  queue.appendSync(puttingSync(1));
  t.throws(() =>
    queue.appendSync((turn) => {
      turn.putSync(window(1));
      throw badArgument();
    }),
  );
  t.equal(native.log.at(-1), 'rewind');
  t.equal(queue.length, 3);
});

t.test('an argument error before any window touches nothing', async (t) => {
  const { native, queue } = make();
  await t.rejects(
    queue.append(async () => {
      throw badArgument();
    }),
    { code: 'INVALID_ARGUMENT' },
  );
  t.same(native.log, []);
});

t.test('an iterable that throws: harmless before the first window, poison after it', async (t) => {
  for (const windows of [0, 1]) {
    const { native, queue } = make();
    const reason = new Error('thrown by the caller');
    const throwing = queue.append(async (turn) => {
      for (let count = 0; count < windows; count += 1) await turn.put(window(1));
      return turn.pull(() => {
        throw reason;
      });
    });
    const outcome = throwing.catch((error: unknown) => error);
    await settled();
    if (windows > 0) await native.finish();
    t.equal(await outcome, reason, 'it comes out as it is');
    t.notOk(native.log.includes('rewind'));
    if (windows === 0) {
      queue.assertAccepts();
    } else {
      await t.rejects(queue.close(false), { code: 'BUILD_FAILED', cause: reason });
      t.equal(native.log.at(-1), 'close');
    }
  }
});

t.test('abort while nothing runs releases at once', async (t) => {
  const { native, queue } = make();
  queue.abort();
  queue.abort();
  t.same(native.log, ['close']);
  await t.rejects(queue.append(putting(1)), { code: 'CLOSED' });
  t.throws(() => queue.appendSync(() => 1), { code: 'CLOSED' });
  await t.rejects(queue.close(false), { code: 'CLOSED' });
  t.throws(() => queue.closeSync(false), { code: 'CLOSED' });
});

t.test('abort while a call runs waits for it, and drops what waits', async (t) => {
  const { native, queue } = make();
  const running = watch(queue.append(putting(1, 2)));
  const waiting = watch(queue.append(putting(3)));
  const closing = watch(queue.close(false));
  queue.abort();
  await settled();
  t.same(native.log, ['mark', 'append 1'], 'nothing is released under a running call');
  const disposed = watch(queue.disposeAsync());
  await settled();
  t.equal(disposed.outcome, 'pending');
  await native.finish();
  t.same(
    [running.outcome, waiting.outcome, closing.outcome, disposed.outcome],
    ['CLOSED', 'CLOSED', 'CLOSED', 'ok'],
  );
  t.same(native.log, ['mark', 'append 1', 'close']);
});

t.test('abort cannot take back a publication that has begun', async (t) => {
  const { native, queue } = make();
  const closing = watch(queue.close(false));
  queue.abort();
  await native.finish();
  t.equal(closing.outcome, 'ok');
  t.same(native.log, ['publish', 'close']);
});

t.test('a failed publication discards the build and stays failed', async (t) => {
  const { native, queue } = make();
  const closing = t.rejects(queue.close(false), { code: 'EXISTS', path: '/a' });
  await native.finish(nativeError(-2, 'the path is taken'));
  await closing;
  await t.rejects(queue.close(false), { code: 'EXISTS' });
  t.throws(() => queue.closeSync(false), { code: 'EXISTS' });
  t.same(native.log, ['publish', 'close']);
});

t.test('leaving a scope discards, unless a close was asked for', async (t) => {
  const discarded = make();
  discarded.queue.dispose();
  t.same(discarded.native.log, ['close']);
  const closing = make();
  const closed = closing.queue.close(false);
  closing.queue.dispose();
  const disposed = watch(closing.queue.disposeAsync());
  await closing.native.finish();
  await closed;
  await settled();
  t.equal(disposed.outcome, 'ok');
  t.same(closing.native.log, ['publish', 'close']);
});

t.test('close inside the iterable ends the append, and publishes what was before', async (t) => {
  const { native, queue } = make();
  queue.appendSync(puttingSync(5));
  let closing = { outcome: '' };
  const append = watch(
    queue.append(async (turn) => {
      await turn.put(window(1));
      await turn.settle();
      turn.pull(() => {
        closing = watch(queue.close(false));
      });
      t.fail('the turn goes on');
      return 1;
    }),
  );
  await native.finish();
  t.equal(append.outcome, 'CLOSED');
  t.same(native.log.slice(-2), ['rewind', 'publish']);
  await native.finish();
  t.equal(closing.outcome, 'ok');
  t.equal(queue.length, 5);
});

t.test(
  'close outside an async iterable waits for it; inside it does not wait for itself',
  async (t) => {
    const outside = make();
    let go: () => void = () => {};
    const gate = new Promise<void>((resolve) => {
      go = resolve;
    });
    const append = watch(
      outside.queue.append(async (turn) => {
        await turn.pullAsync(() => gate);
        return 0;
      }),
    );
    const closing = watch(outside.queue.close(false));
    await settled();
    t.equal(append.outcome, 'pending');
    go();
    await settled();
    t.equal(append.outcome, 'ok');
    await outside.native.finish();
    t.equal(closing.outcome, 'ok');

    const inside = make();
    const stuck = watch(
      inside.queue.append(async (turn) => {
        await turn.pullAsync(async () => {
          await Promise.resolve();
          await inside.queue.close(false);
        });
        return 0;
      }),
    );
    await settled();
    t.equal(stuck.outcome, 'CLOSED');
    await inside.native.finish();
    t.same(inside.native.log, ['publish', 'close']);
  },
);

t.test('an append inside the async iterable of another one is BUSY, not a deadlock', async (t) => {
  const { queue } = make();
  await t.rejects(
    queue.append(async (turn) => {
      await turn.pullAsync(async () => {
        await Promise.resolve();
        await queue.append(putting(1));
      });
      return 0;
    }),
    { code: 'BUSY' },
  );
  queue.assertAccepts();
});

t.test('abort ends the wait for an async iterable that never goes on', async (t) => {
  const { native, queue } = make();
  const append = watch(
    queue.append(async (turn) => {
      try {
        await turn.pullAsync(() => new Promise<void>(() => {}));
      } finally {
        await turn.leave(() => new Promise<void>(() => {}));
      }
      return 0;
    }),
  );
  await settled();
  queue.abort();
  await settled();
  t.equal(append.outcome, 'CLOSED');
  t.same(native.log, ['close']);
});
