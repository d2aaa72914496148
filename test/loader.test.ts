// What a loader gives, in which order, within which bounds, and what it says when something fails.

import { setTimeout as sleep, setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import * as loaderx from '../ts/index.js';
import { DataLoader, type DataLoaderOptions, Dense, LoaderxError, Sampler } from '../ts/index.js';
import { limitMs } from './support/limits.js';
import { codeOf, failureOf, outcomeOf } from './support/outcome.js';
import { Scratch } from './support/scratch.js';
import {
  buildStreams,
  closeStreams,
  expectedIds,
  idsOf,
  openStreams,
  type Streams,
  type StreamsBatch,
} from './support/streams.mjs';

const scratch = new Scratch(t);
const length = 1003;
const root = scratch.fresh('data');
await buildStreams(loaderx, root, length);
const streams: Streams = openStreams(loaderx, root);
t.teardown(() => closeStreams(streams));

let unhandledCount = 0;
process.on('unhandledRejection', () => {
  unhandledCount += 1;
});

const modes = ['sequential', 'iid', 'cyclic'] as const;

type Options<R> = DataLoaderOptions<loaderx.BatchOf<Streams>, R>;

/** Takes `count` results; what is a batch is disposed of after `read`. */
async function take<R, T>(
  loader: AsyncIterator<R, undefined>,
  count: number,
  read: (result: R) => T,
): Promise<T[]> {
  const results: T[] = [];
  for (let index = 0; index < count; index += 1) {
    const { done, value } = await loader.next();
    if (done === true) break;
    results.push(read(value));
    if (value !== null && typeof value === 'object' && Symbol.dispose in value) {
      (value as unknown as Disposable)[Symbol.dispose]();
    }
  }
  return results;
}

const ids = (batch: StreamsBatch): number[] => idsOf(batch);

/** Lets everything that can go on without the consumer go on. */
async function settle(loader: { stats(): { readonly inFlight: number } }): Promise<void> {
  let before = -1;
  for (let calm = 0; calm < 6; ) {
    await sleep(5);
    const { inFlight } = loader.stats();
    calm = inFlight === before ? calm + 1 : 0;
    before = inFlight;
  }
}

t.test('the batches of every mode are what the sampler draws, all streams aligned', async (t) => {
  for (const mode of modes) {
    const expected = expectedIds(loaderx, { length, batchSize: 16, mode, seed: 5 }, 150);
    const loader = new DataLoader(streams, { batchSize: 16, mode, seed: 5 });
    t.strictSame(await take(loader, 150, ids), expected, mode);
    t.equal(loader.step, 150);
    await loader.close();
  }
});

t.test('defaults are those of the original: 256, cyclic, 42, from step 0', async (t) => {
  const loader = new DataLoader(streams);
  const expected = expectedIds(loaderx, { length, batchSize: 256, mode: 'cyclic', seed: 42 }, 6);
  t.equal(loader.step, 0);
  t.strictSame(await take(loader, 6, ids), expected);
  await loader.close();
});

t.test('a batch is an object of the streams, whatever they are called', async (t) => {
  const names = ['b', 'a', '__proto__', 'constructor', 'toString', '7', 'ü'];
  const odd: Record<string, loaderx.Stream> = {};
  for (const name of names) {
    Object.defineProperty(odd, name, { value: streams.image, enumerable: true });
  }
  const loader = new DataLoader(odd, { batchSize: 4 });
  const { value: batch } = await loader.next();
  t.strictSame(Object.keys(batch ?? {}).sort(), [...names].sort());
  t.strictSame(
    Object.keys(batch ?? {}).filter((name) => name !== '7'),
    names.filter((name) => name !== '7'),
    'in the order of the streams, as far as objects keep it',
  );
  for (const value of Object.values(batch ?? {})) t.equal(value.dtype, 'uint32');
  await loader.close();
});

t.test('disposing of a batch disposes of every stream of it', async (t) => {
  const loader = new DataLoader(streams, { batchSize: 4 });
  const { value: batch } = await loader.next();
  if (batch === undefined) throw new Error('no batch');
  batch[Symbol.dispose]();
  t.equal(batch.image.data.length, 0);
  t.throws(() => batch.text.at(0), { code: 'CLOSED' });
  batch[Symbol.dispose]();
  await loader.close();
});

t.test('streams that cannot be', async (t) => {
  const other = scratch.fresh('other');
  await buildStreams(loaderx, other, 7);
  const short = openStreams(loaderx, other);
  const writer = Dense.create(scratch.fresh(), { dtype: 'uint8', itemShape: [], codec: 'raw' });
  const closed = Dense.open(`${root}/image`);
  await closed.close();
  const emptyPath = scratch.fresh();
  const empty = Dense.create(emptyPath, { dtype: 'uint8', itemShape: [], codec: 'raw' });
  await empty.close();
  const emptyReader = Dense.open(emptyPath);
  const cases: readonly (readonly [string, unknown, string])[] = [
    ['nothing', undefined, 'TypeError INVALID_ARGUMENT'],
    ['null', null, 'TypeError INVALID_ARGUMENT'],
    ['a list', [streams.image], 'TypeError INVALID_ARGUMENT'],
    ['a reader itself', streams.image, 'TypeError INVALID_ARGUMENT'],
    ['no streams', {}, 'RangeError INVALID_ARGUMENT'],
    ['a writer', { a: writer }, 'TypeError INVALID_ARGUMENT'],
    ['a closed reader', { a: closed }, 'LoaderxError CLOSED'],
    ['an array', { a: new Uint8Array(3) }, 'TypeError INVALID_ARGUMENT'],
    ['null as reader', { a: null }, 'TypeError INVALID_ARGUMENT'],
    ['a look-alike', { a: { ...streams.image } }, 'TypeError INVALID_ARGUMENT'],
    ['unequal lengths', { a: streams.image, b: short.text }, 'RangeError INVALID_ARGUMENT'],
    ['empty containers', { a: emptyReader }, 'RangeError INVALID_ARGUMENT'],
  ];
  for (const [name, value, outcome] of cases) {
    t.equal(await outcomeOf(() => new DataLoader(value as Streams)), outcome, name);
  }
  const failure = await failureOf(() => new DataLoader({ a: streams.image, b: short.text }));
  t.match(failure.message, /"a" has 1003 records, and "b" has 7/);
  t.match((await failureOf(() => new DataLoader({ a: writer as never }))).message, /writer/);
  // A sampler alone has no default; a loader has.
  const mode = 'x' as never;
  t.match(await failureOf(() => new DataLoader(streams, { mode })), {
    code: 'INVALID_ARGUMENT',
    field: 'mode',
    message: /^mode must be 'sequential', 'iid' or 'cyclic', got "x"$/,
  });
  const without = { length: 3, batchSize: 1 } as never;
  t.match(await failureOf(() => new Sampler(without)), { message: /; there is no default$/ });
  writer.abort();
  await Promise.all([closeStreams(short), emptyReader.close()]);
});

t.test('options that cannot be', async (t) => {
  const type = 'TypeError INVALID_ARGUMENT';
  const range = 'RangeError INVALID_ARGUMENT';
  const cases: readonly (readonly [object | null, string])[] = [
    [null, type],
    [{ batchsize: 3 }, type],
    [{ batchSize: 0 }, range],
    [{ batchSize: 1.5 }, type],
    [{ batchSize: '8' }, type],
    [{ batchSize: null }, type],
    [{ mode: 'random' }, type],
    [{ mode: 2 }, type],
    [{ seed: -1 }, range],
    [{ seed: 2 ** 53 }, range],
    [{ seed: 2n ** 64n }, range],
    [{ seed: Number.NaN }, type],
    [{ seed: 2n ** 64n - 1n }, 'ok'],
    [{ step: -1 }, range],
    [{ step: 0.5 }, type],
    [{ step: 3n }, type],
    [{ step: 2 ** 53 }, range],
    [{ step: Number.POSITIVE_INFINITY }, type],
    [{ step: 2 ** 53 - 1 }, 'ok'],
    [{ prefetch: 0 }, range],
    [{ prefetch: true }, type],
    [{ prefetch: -2 }, range],
    [{ maxBytes: 0 }, range],
    [{ maxBytes: '1G' }, type],
    [{ order: 'any' }, type],
    [{ once: 1 }, type],
    [{ once: true, mode: 'iid' }, type],
    [{ once: true, mode: 'sequential' }, 'ok'],
    [{ once: true, batchSize: 100, step: 11 }, 'ok'],
    [{ once: true, batchSize: 100, step: 12 }, 'RangeError OUT_OF_RANGE'],
    [{ signal: {} }, type],
    [{ shard: { rank: 2, world: 2 } }, range],
    [{ shard: { rank: 0, world: 3, uneven: 'error' } }, range],
    [{ shard: { rank: 0, world: 4, uneven: 'error' } }, 'ok'],
    [{ shard: { rank: 0, world: 300, uneven: 'drop' } }, range],
    [{ shard: { rank: 0, world: 300 } }, 'ok'],
    [{ once: true, batchSize: 8, shard: { rank: 0, world: 4, uneven: 'error' } }, range],
    [{ transform: 'x.mjs' }, type],
    [{ transform: null }, type],
    [{ transform: {} }, type],
    [{ transformWorkers: -1 }, range],
    [{ transformWorkers: 1.5 }, type],
    [{ transformWorkers: 0 }, 'ok'],
    [{ transformWorkers: 5000 }, range],
  ];
  for (const [options, outcome] of cases) {
    const made = async (): Promise<void> => {
      await new DataLoader(streams, options as Options<unknown>).close();
    };
    t.equal(await outcomeOf(made), outcome, String(options && Object.entries(options).join()));
  }
});

t.test(
  'step order holds with transforms that overtake each other; completion does not',
  async (t) => {
    const expected = expectedIds(loaderx, { length, batchSize: 4, mode: 'cyclic' }, 500);
    const transform = async (
      batch: StreamsBatch,
      { step, rng }: loaderx.TransformContext,
    ): Promise<{ step: number; ids: number[] }> => {
      await sleep(1 + rng.int(5));
      return { step, ids: idsOf(batch) };
    };
    const ordered = new DataLoader(streams, { batchSize: 4, transform, prefetch: 8 });
    const inOrder = await take(ordered, 500, (result) => result);
    t.equal(inOrder.filter(({ step }, at) => step !== at).length, 0, 'displaced of 500');
    t.strictSame(
      inOrder.map((result) => result.ids),
      expected,
    );
    await ordered.close();

    const order = 'completion';
    const free = new DataLoader(streams, { batchSize: 4, transform, prefetch: 8, order });
    const seen = new Set<number>();
    let lowestRight = 0;
    const delivered = await take(free, 500, (result) => {
      seen.add(result.step);
      let lowest = 0;
      while (seen.has(lowest)) lowest += 1;
      if (free.step === lowest) lowestRight += 1;
      return result;
    });
    t.equal(lowestRight, 500, 'step is the lowest that was not delivered');
    t.ok(delivered.filter(({ step }, at) => step !== at).length > 100, 'as they come');
    t.equal(seen.size, 500, 'none twice');
    for (const result of delivered) {
      if (result.step < 500 && String(result.ids) !== String(expected[result.step])) {
        t.fail(`step ${result.step} has other ids`);
      }
    }
    await free.close();
  },
);

t.test('prefetch bounds what is drawn and not delivered, in whatever stage', async (t) => {
  for (const prefetch of [1, 2, 5, 64]) {
    for (const transformWorkers of [1, 4]) {
      let started = 0;
      let running = 0;
      let runningMost = 0;
      const loader = new DataLoader(streams, {
        batchSize: 4,
        prefetch,
        transformWorkers,
        transform: async (batch) => {
          started += 1;
          running += 1;
          runningMost = Math.max(runningMost, running);
          await turn();
          running -= 1;
          return batch;
        },
      });
      t.equal(loader.stats().inFlight, 0, 'nothing begins before somebody asks');
      await take(loader, 3, ids);
      await settle(loader);
      const name = `prefetch ${prefetch}, workers ${transformWorkers}`;
      t.equal(loader.stats().inFlight, prefetch, `${name}: full`);
      t.equal(started, 3 + prefetch, `${name}: a consumer that stops reading stops the producers`);
      t.ok(runningMost <= transformWorkers, `${name}: ${runningMost} at once`);
      await loader.close();
      t.equal(loader.stats().inFlight, 0);
    }
  }
});

t.test(
  'a transform that is stuck holds the batches behind it back, within the bound',
  async (t) => {
    const released = new Map<number, () => void>();
    const loader = new DataLoader(streams, {
      batchSize: 4,
      prefetch: 6,
      transformWorkers: 3,
      transform: async (_, { step }) => {
        if (step % 10 === 0) {
          await new Promise<void>((resolve) => {
            released.set(step, resolve);
          });
        }
        return step;
      },
    });
    const first = loader.next();
    await settle(loader);
    t.equal(loader.stats().inFlight, 6, 'others are made meanwhile');
    released.get(0)?.();
    t.equal((await first).value, 0);
    t.strictSame(await take(loader, 5, (step) => step), [1, 2, 3, 4, 5]);
    await settle(loader);
    released.get(10)?.();
    t.strictSame(await take(loader, 5, (step) => step), [6, 7, 8, 9, 10]);
    await loader.close();
  },
);

t.test('uneven transforms keep the workers busy and the order (every 10th is slow)', async (t) => {
  let alive = 0;
  let aliveMost = 0;
  const loader = new DataLoader(streams, {
    batchSize: 8,
    prefetch: 8,
    transform: async (batch, { step }) => {
      await sleep(step % 10 === 3 ? 60 : 1);
      return { step, ids: idsOf(batch) };
    },
  });
  const expected = expectedIds(loaderx, { length, batchSize: 8, mode: 'cyclic' }, 100);
  for (let step = 0; step < 100; step += 1) {
    const { value } = await loader.next();
    alive = loader.stats().inFlight;
    aliveMost = Math.max(aliveMost, alive);
    t.equal(value?.step, step);
    t.strictSame(value?.ids, expected[step]);
    if (step === 50) {
      await sleep(150);
      t.equal(loader.stats().inFlight, 8, 'the consumer sleeps: full, no more');
    }
  }
  t.ok(aliveMost <= 8, `${aliveMost} in flight`);
  await loader.close();
});

t.test('maxBytes is a budget of bytes instead', async (t) => {
  const batchBytes = 16 * 12;
  for (const [maxBytes, inFlight] of [
    [1, 1],
    [batchBytes, 1],
    [batchBytes * 5 + 1, 5],
    [batchBytes * 40, 40],
  ] as const) {
    const loader = new DataLoader({ image: streams.image }, { batchSize: 16, maxBytes });
    await take(loader, 20, ({ image }) => image.data[0]);
    await settle(loader);
    // One more may have been drawn, and waits without memory.
    const { inFlight: found, buffersAlive } = loader.stats();
    t.ok(found === inFlight || found === inFlight + 1, `${maxBytes} bytes: ${found}`);
    t.ok(buffersAlive <= inFlight, `${maxBytes} bytes: ${buffersAlive} buffers`);
    await loader.close();
  }
  const both = new DataLoader(streams, { batchSize: 16, maxBytes: 1e9, prefetch: 3 });
  await take(both, 2, ids);
  await settle(both);
  t.equal(both.stats().inFlight, 3, 'with prefetch, both hold');
  await both.close();
});

t.test('the budget counts what the transform makes of a batch', async (t) => {
  const grown = 100_000;
  const loader = new DataLoader(streams, {
    batchSize: 4,
    maxBytes: grown * 3,
    transform: () => ({ data: new Uint8Array(grown) }),
  });
  await take(loader, 10, () => undefined);
  await settle(loader);
  const { inFlight } = loader.stats();
  t.ok(inFlight >= 2 && inFlight <= 4, `${inFlight} batches of ${grown} bytes`);
  await loader.close();
});

t.test('memory of disposed batches is used again', async (t) => {
  const count = 600;
  const path = scratch.fresh();
  const writer = Dense.create(path, { dtype: 'uint8', itemShape: [64, 1024], codec: 'raw' });
  for (let id = 0; id < count; id += 60) {
    const data = new Uint8Array(60 * 65_536).fill(id / 60);
    await writer.append({ dtype: 'uint8', shape: [60, 64, 1024], data });
  }
  await writer.close();
  const photo = Dense.open(path);
  // 1 MiB each: 4 ahead, one with the consumer, a spare one.
  const loader = new DataLoader({ photo }, { batchSize: 16 });
  const base = process.memoryUsage().arrayBuffers;
  let most = 0;
  for (let step = 0; step < 200; step += 1) {
    const { value: batch } = await loader.next();
    t.equal(batch?.photo.data.length, 1 << 20);
    batch?.[Symbol.dispose]();
    most = Math.max(most, process.memoryUsage().arrayBuffers - base);
    if (loader.stats().buffersAlive > 5) t.fail(`${loader.stats().buffersAlive} buffers`);
  }
  t.ok(most < 8 * 2 ** 20, `${most} bytes at most for 200 batches of 1 MiB`);
  await loader.close();
  t.equal(loader.stats().buffersAlive, 0, 'closing frees what was made ahead');
  await photo.close();
});

class Odd extends Error {
  readonly extra: number;
  constructor(message: string, extra: number) {
    super(message, { cause: new TypeError('why') });
    this.extra = extra;
  }
}

const guarded = new Proxy(new Error('behind a proxy'), {
  defineProperty() {
    throw new Error('the trap');
  },
});

/** Things that a transform may throw. */
const thrown: readonly (readonly [string, unknown])[] = [
  ['a subclass with cause', new Odd('odd', 7)],
  ['undefined', undefined],
  ['null', null],
  ['a string', 'text'],
  ['a number', 0],
  ['a frozen object', Object.freeze({ frozen: true })],
  ['a frozen error', Object.freeze(new Error('frozen'))],
  ['a proxy', guarded],
  ['an AggregateError', new AggregateError([new Error('one'), 2], 'several')],
  ['a function', () => 1],
  ['a LoaderxError', new LoaderxError('CLOSED', 'mine')],
];

t.test('what a transform throws reaches the consumer once, in its place, as it is', async (t) => {
  const ways: readonly (readonly [string, (error: unknown) => unknown])[] = [
    [
      'throws',
      (error) => {
        throw error;
      },
    ],
    ['rejects', (error) => Promise.reject(error)],
    [
      'rejects later',
      async (error) => {
        await sleep(1);
        throw error;
      },
    ],
  ];
  for (const [what, error] of thrown) {
    for (const [way, raise] of ways) {
      for (const transformWorkers of [0, 1, 4]) {
        const loader = new DataLoader(streams, {
          batchSize: 4,
          transformWorkers,
          transform: (_, { step }) => (step >= 5 ? raise(error) : step),
        });
        const name = `${what}, ${way}, workers ${transformWorkers}`;
        const before = await take(loader, 5, (step) => step);
        t.strictSame(before, [0, 1, 2, 3, 4], `${name}: those before it come first`);
        let caught: unknown = 'nothing was thrown';
        await loader.next().catch((reason: unknown) => {
          caught = reason;
        });
        t.ok(Object.is(caught, error), `${name}: the same`);
        t.equal(loader.failedStep, 5, `${name}: its step`);
        t.equal(loader.step, 5, `${name}: not delivered`);
        t.strictSame(
          await loader.next(),
          { done: true, value: undefined },
          `${name}: then the end`,
        );
        await loader.close();
        t.strictSame(await loader.next(), { done: true, value: undefined });
      }
    }
  }
  const marked = thrown[0]?.[1] as { readonly loaderxStep?: number };
  t.equal(marked.loaderxStep, 5, 'the step is on the error');
  t.notOk(Object.keys(marked).includes('loaderxStep'), 'out of sight');
});

t.test('after an error, a seek goes on', async (t) => {
  const transform = (batch: StreamsBatch, { step }: loaderx.TransformContext): number[] => {
    if (step % 7 === 6) throw new Error(`step ${step}`);
    return idsOf(batch);
  };
  const expected = expectedIds(loaderx, { length, batchSize: 4, mode: 'iid' }, 60);
  for (const order of ['step', 'completion'] as const) {
    const loader = new DataLoader(streams, { batchSize: 4, mode: 'iid', transform, order });
    const got: (number[] | string)[] = [];
    while (loader.step < 60) {
      try {
        for await (const result of loader) {
          got.push(result);
          if (got.length >= 60) break;
        }
        if (got.length >= 60) break;
      } catch (error) {
        const { failedStep } = loader;
        got.push((error as Error).message);
        t.equal((error as { readonly loaderxStep?: number }).loaderxStep, failedStep);
        await loader.seek((failedStep ?? 0) + 1);
        t.equal(loader.failedStep, undefined);
      }
    }
    if (order === 'step') {
      const wanted = expected.map((list, step) => (step % 7 === 6 ? `step ${step}` : list));
      t.strictSame(got, wanted);
    } else {
      t.equal(got.filter((result) => typeof result === 'string').length > 0, true);
    }
    await loader.close();
  }
});

t.test('several calls of next at once get consecutive steps, or the error once', async (t) => {
  const loader = new DataLoader(streams, {
    batchSize: 4,
    transform: (_, { step }) => {
      if (step === 9) throw new Error('nine');
      return step;
    },
  });
  const calls = Array.from({ length: 14 }, () => loader.next());
  const results = await Promise.allSettled(calls);
  const seen = results.map((result) =>
    result.status === 'rejected'
      ? (result.reason as Error).message
      : result.value.done === true
        ? 'done'
        : result.value.value,
  );
  t.strictSame(seen, [0, 1, 2, 3, 4, 5, 6, 7, 8, 'nine', 'done', 'done', 'done', 'done']);
  await loader.close();
});

t.test('what a transform returns is delivered unchanged', async (t) => {
  const returned: readonly unknown[] = [
    undefined,
    null,
    0,
    '',
    false,
    Symbol.iterator,
    () => 1,
    new Map(),
    streams,
  ];
  const loader = new DataLoader(streams, {
    batchSize: 4,
    transform: (batch, { step }) => (step < returned.length ? returned[step] : batch),
  });
  const got = await take(loader, returned.length, (result) => result).catch(() => []);
  for (const [index, value] of returned.entries())
    t.ok(Object.is(got[index], value), String(index));
  const { value: batch } = await loader.next();
  t.equal(idsOf(batch as StreamsBatch).length, 4, 'the batch itself');
  await loader.close();
});

t.test('a reader that is closed under a running loader', async (t) => {
  const own = openStreams(loaderx, root);
  const loader = new DataLoader(own, { batchSize: 4 });
  await take(loader, 3, ids);
  await settle(loader);
  await closeStreams(own);
  const outcomes: string[] = [];
  for (let call = 0; call < 10; call += 1) {
    outcomes.push(await codeOf(async () => (await loader.next()).done && outcomes.push('done')));
  }
  t.strictSame(outcomes.slice(0, 5), ['ok', 'ok', 'ok', 'ok', 'CLOSED']);
  t.ok(outcomes.includes('done'));
  await loader.close();
});

t.test(
  'leaving a loop closes: break, return, throw in the body, a labelled continue',
  async (t) => {
    const { failure, loader: thrownAt } = await (async () => {
      const loader = new DataLoader(streams, { batchSize: 4 });
      try {
        for await (const batch of loader) {
          if (idsOf(batch).length === 4) throw new RangeError('mine');
        }
        return { loader, failure: undefined };
      } catch (error) {
        return { loader, failure: error };
      }
    })();
    t.match(failure, { name: 'RangeError', message: 'mine' });
    t.equal(await codeOf(() => thrownAt.seek(0)), 'CLOSED');

    const broken = new DataLoader(streams, { batchSize: 4 });
    let count = 0;
    for await (const batch of broken) {
      count += idsOf(batch).length;
      if (count === 12) break;
    }
    t.equal(broken.step, 3, 'the checkpoint is still there');
    t.equal(broken.stats().inFlight, 0);
    for await (const _ of broken) t.fail('a closed loader gives nothing');
    t.strictSame(await broken.return(), { done: true, value: undefined });
    const mine = new Error('mine');
    t.equal(await failureOf(() => broken.throw(mine)), mine);
    await broken.close();

    await (async () => {
      const loader = new DataLoader(streams, { batchSize: 4 });
      await take(loader, 1, ids);
      await loader[Symbol.asyncDispose]();
      t.strictSame(await loader.next(), { done: true, value: undefined });
    })();
  },
);

t.test('close waits for what runs, and tells it', async (t) => {
  let aborted = 0;
  let running = 0;
  let settled = 0;
  const loader = new DataLoader(streams, {
    batchSize: 4,
    prefetch: 6,
    transform: async (_, { step, signal }) => {
      if (step === 0) return step;
      running += 1;
      await new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => {
          aborted += 1;
          setTimeout(resolve, 20);
        });
      });
      settled += 1;
      return step;
    },
  });
  await loader.next();
  const waiting = loader.next();
  await settle(loader);
  t.equal(running, 4);
  const [, result] = await Promise.all([loader.close(), waiting]);
  t.strictSame(result, { done: true, value: undefined }, 'whoever waits is let go');
  t.strictSame([aborted, settled], [4, 4]);
  await loader.close();
  t.equal(running, 4, 'and nothing begins any more');
});

t.test('inside its own transform a loader can be closed, and not waited for', async (t) => {
  const outcomes: string[] = [];
  for (const isAsync of [false, true]) {
    const loader: DataLoader<Streams, number> = new DataLoader(streams, {
      batchSize: 4,
      transform: (_, { step }): number | Promise<number> => {
        if (step < 2) return step;
        const act = async (): Promise<number> => {
          if (isAsync) await sleep(2);
          if (step === 2) {
            outcomes.push(await codeOf(() => loader.next()));
            outcomes.push(await codeOf(() => loader.seek(0)));
          }
          await loader.close();
          return step;
        };
        return act();
      },
    });
    const results = await take(loader, 10, (step) => step);
    t.ok(results.length <= 2, 'the end came');
    await loader.close();
  }
  t.strictSame(outcomes, ['BUSY', 'BUSY', 'BUSY', 'BUSY']);
});

t.test('transforms begin in step order, whichever gather ends first', async (t) => {
  const begun: number[] = [];
  const loader = new DataLoader(streams, {
    batchSize: 4,
    prefetch: 8,
    transform: (_, { step }) => begun.push(step),
  });
  await take(loader, 300, (count) => count);
  await loader.close();
  t.strictSame(
    begun,
    begun.map((_, index) => index),
  );
});

t.test('a loader inside the transform of another one', async (t) => {
  const inner = new DataLoader(streams, { batchSize: 2, transform: (batch) => idsOf(batch) });
  const outer = new DataLoader(streams, {
    batchSize: 4,
    transformWorkers: 1,
    transform: async () => (await inner.next()).value,
  });
  const expected = expectedIds(loaderx, { length, batchSize: 2, mode: 'cyclic' }, 20);
  t.strictSame(await take(outer, 20, (list) => list), expected);
  await Promise.all([outer.close(), inner.close()]);
});

t.test('AbortSignal: told once, with the reason; everything ends', async (t) => {
  const before = new DataLoader(streams, { signal: AbortSignal.abort('early') });
  const failure = await failureOf(() => before.next());
  t.match(failure, { name: 'LoaderxError', code: 'ABORTED', cause: 'early' });
  t.strictSame(await before.next(), { done: true, value: undefined });

  const stop = new AbortController();
  const idle = new DataLoader(streams, { batchSize: 4, signal: stop.signal });
  await take(idle, 2, ids);
  stop.abort(new Error('idle'));
  t.match(await failureOf(() => idle.next()), { code: 'ABORTED', loaderxStep: 2 });
  t.strictSame(await idle.next(), { done: true, value: undefined });
  t.equal(await codeOf(() => idle.seek(3)), 'CLOSED');
  t.equal(idle.step, 2);

  const late = new AbortController();
  const waiting = new DataLoader(streams, {
    batchSize: 4,
    signal: late.signal,
    transform: (_, { signal }) =>
      new Promise<never>((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason as Error));
      }),
  });
  const calls = [waiting.next(), waiting.next()];
  await settle(waiting);
  late.abort();
  const [first, second] = await Promise.allSettled(calls);
  t.match(first, { status: 'rejected', reason: { code: 'ABORTED' } });
  t.match(second, { status: 'fulfilled', value: { done: true } });
  await waiting.close();
  late.abort();
});

t.test('seek goes anywhere, also back, also while batches are made', async (t) => {
  for (const mode of modes) {
    const expected = expectedIds(loaderx, { length, batchSize: 8, mode }, 400);
    const loader = new DataLoader(streams, {
      batchSize: 8,
      mode,
      transform: async (batch, { step }) => {
        if (step % 3 === 0) await turn();
        return idsOf(batch);
      },
    });
    for (const step of [0, 399, 5, 200, 200, 1, 377]) {
      await loader.seek(step);
      t.equal(loader.step, step);
      t.strictSame(await take(loader, 1, (list) => list), [expected[step]], `${mode} ${step}`);
    }
    const all = [3, 99, 7].map((step) => loader.seek(step));
    t.equal(loader.step, 7, 'the last of several wins');
    await Promise.all(all);
    t.strictSame(await take(loader, 2, (list) => list), expected.slice(7, 9));
    const waiting = loader.next();
    await loader.seek(50);
    t.strictSame((await waiting).value, expected[50], 'whoever waits gets the new step');
    for (const step of [-1, 0.5, 2 ** 53, '3', undefined]) {
      t.match(await codeOf(() => loader.seek(step as number)), 'INVALID_ARGUMENT', String(step));
    }
    t.strictSame(
      await take(loader, 1, (list) => list),
      [expected[51]],
      'a refused seek: no change',
    );
    await loader.close();
    t.equal(await codeOf(() => loader.seek(1)), 'CLOSED');
  }
});

t.test('a far seek of iid runs beside the event loop, and closing ends it', async (t) => {
  const loader = new DataLoader(streams, { batchSize: 256, mode: 'iid', step: 2 ** 45 });
  const waiting = loader.next();
  await sleep(30);
  const startMs = performance.now();
  await loader.close();
  t.ok(performance.now() - startMs < limitMs(1500));
  t.strictSame(await waiting, { done: true, value: undefined });
  t.equal(loader.step, 2 ** 45);
});

t.test('the last steps there are', async (t) => {
  const last = 2 ** 53 - 1;
  const loader = new DataLoader(streams, { batchSize: 4, mode: 'cyclic', step: last - 1 });
  const sampler = new loaderx.Sampler({ length, batchSize: 4, mode: 'cyclic', step: last - 1 });
  const expected = [0, 1].map(() => Array.from(sampler.draw(), Number));
  t.strictSame(await take(loader, 2, ids), expected);
  t.match(await failureOf(() => loader.next()), { code: 'OUT_OF_RANGE' });
  t.strictSame(await loader.next(), { done: true, value: undefined });
  await loader.close();
  sampler.close();
});

t.test('once: one exact pass in order, the last batch short', async (t) => {
  for (const batchSize of [1, 100, 1003, 5000]) {
    for (const prefetch of [1, 8]) {
      const loader = new DataLoader(streams, { once: true, batchSize, prefetch });
      const all: number[] = [];
      let batches = 0;
      for await (const batch of loader) {
        all.push(...idsOf(batch));
        batches += 1;
      }
      t.equal(batches, Math.ceil(length / batchSize), `${batchSize} at a time`);
      t.strictSame(all, [...Array(length).keys()]);
      t.equal(loader.step, batches);
      t.strictSame(await loader.next(), { done: true, value: undefined });
      if (batches > 3) {
        await loader.seek(batches - 2);
        t.equal((await take(loader, 9, ids)).length, 2, 'a seek goes back into the pass');
      }
      t.equal(await codeOf(() => loader.seek(batches + 1)), 'OUT_OF_RANGE');
      await loader.close();
    }
  }
  const resumed = new DataLoader(streams, { once: true, batchSize: 100, step: 9 });
  t.strictSame(
    (await take(resumed, 9, ids)).map((list) => [list.length, list[0]]),
    [
      [100, 900],
      [3, 1000],
    ],
  );
  await resumed.close();
});

t.test('once among ranks', async (t) => {
  for (const world of [1, 2, 3, 7]) {
    const parts: number[][][] = [];
    for (let rank = 0; rank < world; rank += 1) {
      const loader = new DataLoader(streams, {
        once: true,
        batchSize: 100,
        shard: { rank, world },
      });
      parts.push(await take(loader, 99, ids));
      await loader.close();
    }
    const all = Array.from({ length: 11 }, (_, step) => parts.flatMap((part) => part[step] ?? []));
    t.strictSame(all.flat(), [...Array(length).keys()], `${world} ranks`);
  }
  // The last batch has 3 records: among 2 one each, among 7 none.
  for (const [world, steps, last] of [
    [2, 11, 1],
    [7, 10, 14],
  ] as const) {
    const shard = { rank: world - 1, world, uneven: 'drop' } as const;
    const loader = new DataLoader(streams, { once: true, batchSize: 100, shard });
    const lists = await take(loader, 99, ids);
    t.strictSame([lists.length, lists.at(-1)?.length], [steps, last], `drop among ${world}`);
    await loader.close();
  }
});

t.test(
  'worlds 1 to 64: slices join to the batch of one rank, and the world may change',
  async (t) => {
    const options = { batchSize: 40, mode: 'cyclic', seed: 3 } as const;
    const expected = expectedIds(loaderx, { length, ...options }, 3);
    let empty = 0;
    for (let world = 1; world <= 64; world += 1) {
      const joined: number[][] = [[], [], []];
      for (let rank = 0; rank < world; rank += 1) {
        const loader = new DataLoader(streams, { ...options, shard: { rank, world }, prefetch: 1 });
        for (const part of joined) {
          const { value: batch } = await loader.next();
          if (batch === undefined) throw new Error('no batch');
          const list = idsOf(batch);
          if (list.length === 0) empty += 1;
          part.push(...list);
        }
        await loader.close();
      }
      t.strictSame(joined, expected, `${world} ranks`);
    }
    t.ok(empty > 0, 'more ranks than records: some have none');

    const changed: number[][] = [];
    for (let step = 0; step < 12; step += 1) {
      const world = 1 + (step % 5);
      const whole: number[] = [];
      for (let rank = 0; rank < world; rank += 1) {
        const loader = new DataLoader(streams, { ...options, shard: { rank, world }, step });
        whole.push(...((await take(loader, 1, ids))[0] ?? []));
        await loader.close();
      }
      changed.push(whole);
    }
    t.strictSame(changed, expectedIds(loaderx, { length, ...options }, 12));
  },
);

t.test('augmentation depends on seed, step and place alone', async (t) => {
  const transform = (
    batch: StreamsBatch,
    { rng }: loaderx.TransformContext,
  ): { records: number[]; whole: number } => ({
    records: idsOf(batch).map((_, index) => rng.at(index).uint32()),
    whole: rng.uint32(),
  });
  const run = async (options: Options<unknown>, steps: number) => {
    const loader = new DataLoader(streams, { batchSize: 24, seed: 9, ...options, transform });
    const results = await take(loader, steps, (result) => result);
    await loader.close();
    return results;
  };
  const base = await run({}, 6);
  for (const transformWorkers of [0, 1, 4]) {
    for (const prefetch of [1, 8]) {
      t.strictSame(await run({ transformWorkers, prefetch }, 6), base);
    }
  }
  t.strictSame(await run({ step: 4 }, 2), base.slice(4));
  for (const world of [2, 5, 24]) {
    const parts = await Promise.all(
      Array.from({ length: world }, (_, rank) => run({ shard: { rank, world } }, 6)),
    );
    for (const [step, { records, whole }] of base.entries()) {
      t.strictSame(
        parts.flatMap((part) => part[step]?.records ?? []),
        records,
        `${world} ranks`,
      );
      for (const part of parts) t.equal(part[step]?.whole, whole, 'of the step: equal everywhere');
    }
  }
  t.notSame(await run({ seed: 10 }, 1), base.slice(0, 1));
});

t.test('0 workers: transforms run when the consumer asks, for what it asks', async (t) => {
  const steps: number[] = [];
  const loader = new DataLoader(streams, {
    batchSize: 4,
    transformWorkers: 0,
    transform: (_, { step }) => {
      steps.push(step);
      return step;
    },
  });
  for (let step = 0; step < 5; step += 1) {
    t.equal((await loader.next()).value, step);
    await settle(loader);
    t.equal(steps.length, step + 1);
  }
  await loader.close();
});

t.test('transforms that block have turns of the event loop between them', async (t) => {
  const gaps: number[] = [];
  let last = performance.now();
  let count = 0;
  const loader = new DataLoader(streams, {
    batchSize: 4,
    prefetch: 16,
    transform: () => {
      count += 1;
      const until = performance.now() + 4;
      while (performance.now() < until);
      return 0;
    },
  });
  let isOver = false;
  const watch = (async () => {
    while (!isOver) {
      await turn();
      gaps.push(performance.now() - last);
      last = performance.now();
    }
  })();
  await loader.next();
  while (count < 17) await sleep(5);
  isOver = true;
  await watch;
  const blocked = gaps.filter((gap) => gap >= 3.5).length;
  t.ok(blocked >= 16, `17 transforms, ${blocked} turns with one each`);
  await loader.close();
});

t.test('stage times add up to the time on the wall', async (t) => {
  const kinds: readonly (readonly [string, Options<unknown>])[] = [
    ['no transform', {}],
    ['a sync transform', { transform: (batch) => idsOf(batch).length }],
    ['an async one', { transform: () => sleep(2) }],
    ['on demand', { transform: () => sleep(2), transformWorkers: 0 }],
    ['as they come', { transform: () => sleep(2), order: 'completion' }],
    ['a byte budget', { maxBytes: 500 }],
  ];
  for (const [name, options] of kinds) {
    const loader = new DataLoader(streams, { batchSize: 16, prefetch: 3, ...options });
    t.equal(loader.stats().elapsedMs, 0);
    // The loader's time begins in the first call: after the one and before the other of these.
    const beforeMs = performance.now();
    let next = loader.next();
    const afterMs = performance.now();
    for (let step = 0; step < 40; step += 1) {
      await next;
      if (step % 4 === 0) await sleep(3);
      if (step === 20) await loader.seek(100);
      if (step < 39) next = loader.next();
    }
    const shortestMs = performance.now() - afterMs;
    const stats = loader.stats();
    const longestMs = performance.now() - beforeMs;
    const { drawMs, gatherMs, transformMs, consumerMs, dataMs } = stats;
    const sum = drawMs + gatherMs + transformMs + consumerMs + dataMs;
    const { elapsedMs } = stats;
    t.ok(Math.abs(sum - elapsedMs) < elapsedMs * 0.02, `${name}: ${sum} of ${elapsedMs} ms`);
    const isBetween = elapsedMs >= shortestMs - 0.1 && elapsedMs <= longestMs + 0.1;
    t.ok(isBetween, `${name}: ${elapsedMs}, between ${shortestMs} and ${longestMs}`);
    t.ok(consumerMs >= 10 * 2.5, `${name}: the consumer slept`);
    for (const time of [drawMs, gatherMs, transformMs, consumerMs, dataMs]) t.ok(time >= 0);
    t.equal(stats.batches, 40);
    t.ok(stats.work.gatherMs > 0 && stats.work.drawMs > 0);
    t.ok(stats.bytes >= 40 * 16 * 12);
    await loader.close();
    const after = loader.stats();
    await sleep(10);
    t.equal(loader.stats().elapsedMs, after.elapsedMs, 'it stands still after the end');
    t.equal(JSON.parse(JSON.stringify(after)).batches, 40, 'plain data');
  }
});

t.test('observing changes nothing (B47)', async (t) => {
  const expected = expectedIds(loaderx, { length, batchSize: 4, mode: 'iid' }, 30);
  const [one, other] = [0, 1].map(() => new DataLoader(streams, { batchSize: 4, mode: 'iid' }));
  if (one === undefined || other === undefined) throw new Error('no loaders');
  for (let step = 0; step < 30; step += 1) {
    for (let look = 0; look < 100; look += 1) {
      one.stats();
      t.equal(one.step, step);
      JSON.stringify(one);
    }
    const [a] = await take(one, 1, ids);
    const [b] = await take(other, 1, ids);
    if (String(a) !== String(b) || String(a) !== String(expected[step])) t.fail(`step ${step}`);
  }
  await Promise.all([one.close(), other.close()]);
});

t.test('fewer records than a batch, more shards than records (B52)', async (t) => {
  const tiny = scratch.fresh('tiny');
  await buildStreams(loaderx, tiny, 3, { dataShards: 255 });
  const three = openStreams(loaderx, tiny);
  for (const mode of modes) {
    const loader = new DataLoader(three, { batchSize: 8, mode });
    const expected = expectedIds(loaderx, { length: 3, batchSize: 8, mode }, 50);
    const lists = await take(loader, 50, ids);
    t.strictSame(lists, expected, mode);
    for (const list of lists) t.equal(list.length, mode === 'cyclic' ? 3 : 8);
    await loader.close();
  }
  await closeStreams(three);
});

t.test('many loaders over the same readers, made and broken off', async (t) => {
  const expected = expectedIds(loaderx, { length, batchSize: 8, mode: 'cyclic' }, 20);
  const loaders = Array.from({ length: 20 }, () => new DataLoader(streams, { batchSize: 8 }));
  const all = await Promise.all(loaders.map((loader) => take(loader, 20, ids)));
  for (const lists of all) t.strictSame(lists, expected);
  await Promise.all(loaders.map((loader) => loader.close()));
  for (let round = 0; round < 300; round += 1) {
    const loader = new DataLoader(streams, { batchSize: 8 });
    for await (const batch of loader) {
      if (String(idsOf(batch)) !== String(expected[0])) t.fail(`round ${round}`);
      break;
    }
    if (loader.stats().inFlight !== 0) t.fail('something is left');
  }
  t.equal((await streams.image.gather([1])).data[0], 1, 'the readers are the caller’s');
});

t.test('a consumer that lets go of a promise brings nothing down', async (t) => {
  const loader = new DataLoader(streams, {
    batchSize: 4,
    transform: () => {
      throw new Error('nobody listens');
    },
  });
  void loader.next();
  await settle(loader);
  const stop = new AbortController();
  const other = new DataLoader(streams, { signal: stop.signal });
  void other.next();
  stop.abort();
  await sleep(10);
  await Promise.all([loader.close(), other.close()]);
  await sleep(20);
  t.equal(unhandledCount, 0, 'no rejection was left unhandled in all of this file');
});
