// What every method does in every state of a writer and a reader, and what follows from it: order,
// batches and their memory, `out`, signals, ids, slices, limits, and the iterables of an append.
import { getEventListeners } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep, setImmediate as soon } from 'node:timers/promises';
import { inspect } from 'node:util';
import { MessageChannel } from 'node:worker_threads';
import t, { type Test } from 'tap';
import {
  Dense,
  type DenseBatch,
  type DenseReader,
  type DenseWriter,
  LoaderxError,
  type NdArray,
  ndarray,
  open,
  Ragged,
  type RaggedBatch,
  type RaggedReader,
  type RaggedWriter,
} from '../ts/index.js';
import { Random } from './interop/random.mjs';
import { codeOf, failureOf, outcomeOf, outcomeOfError } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same random cases again`);

const anyway = <T>(value: T): never => value as never;

type Kind = 'dense' | 'ragged';
const kinds: readonly Kind[] = ['dense', 'ragged'];

/** `count` records of 2 uint32, the first of value `from`. */
function pairs(from: number, count: number): NdArray<'uint32'> {
  const data = new Uint32Array(count * 2);
  for (let index = 0; index < count; index += 1) {
    data[index * 2] = from + index;
    data[index * 2 + 1] = ~(from + index);
  }
  return { dtype: 'uint32', shape: [count, 2], data };
}

function rowsOf({ data, shape }: NdArray<'uint32'>): NdArray<'uint32'>[] {
  const count = shape[0] ?? 0;
  return Array.from({ length: count }, (_, index) => ({
    dtype: 'uint32',
    shape: [2],
    data: data.subarray(index * 2, index * 2 + 2),
  }));
}

/** A writer that takes `pairs`, whatever its geometry. */
class PairWriter {
  readonly writer: DenseWriter<'uint32'> | RaggedWriter<'uint32'>;
  readonly path: string;

  constructor(kind: Kind, codec: 'raw' | 'zstd' = 'raw', dataShards = 3) {
    this.path = scratch.fresh();
    const options = { codec, dtype: 'uint32', dataShards } as const;
    this.writer =
      kind === 'dense'
        ? Dense.create(this.path, { ...options, itemShape: [2] })
        : Ragged.create(this.path, { ...options, ndim: 1 });
  }

  append(batch: NdArray<'uint32'>): Promise<void> {
    const { writer } = this;
    return writer.kind === 'dense' ? writer.append(batch) : writer.append(rowsOf(batch));
  }

  appendSync(batch: NdArray<'uint32'>): void {
    const { writer } = this;
    if (writer.kind === 'dense') writer.appendSync(batch);
    else writer.appendSync(rowsOf(batch));
  }
}

/** The first item of every record of a container of pairs; checks the second. */
async function firsts(t: Test, at: string): Promise<number[]> {
  await using reader = open(at);
  const batch = await reader.slice();
  const data = 'values' in batch ? batch.values : batch.data;
  const list: number[] = [];
  let whole = true;
  for (let index = 0; index < data.length; index += 2) {
    list.push(Number(data[index]));
    whole &&= data[index + 1] === ~Number(data[index]) >>> 0;
  }
  t.ok(whole, 'every record is whole');
  return list;
}

const upTo = (count: number, from = 0): number[] =>
  Array.from({ length: count }, (_, index) => from + index);

// ---- the state matrix: writers ----

const writerMethods = {
  append: ({ append }) => append(),
  appendSync: ({ appendSync }) => appendSync(),
  close: ({ writer }) => writer.close(),
  closeSync: ({ writer }) => writer.closeSync(),
  abort: ({ writer }) => writer.abort(),
  dispose: ({ writer }) => writer[Symbol.dispose](),
  asyncDispose: ({ writer }) => writer[Symbol.asyncDispose](),
  length: ({ writer }) => writer.length,
} satisfies Record<string, (subject: WriterSubject) => unknown>;

interface WriterSubject {
  readonly writer: DenseWriter | RaggedWriter;
  append(): Promise<void>;
  appendSync(): void;
  /** What the state began and left running. */
  readonly running: readonly Promise<unknown>[];
}

type WriterMethod = keyof typeof writerMethods;

const writerStates: Readonly<Record<string, (kind: Kind) => Promise<WriterSubject>>> = {
  writer: async (kind) => smallBuild(kind),
  'pending append': async (kind) => {
    const subject = smallBuild(kind);
    return { ...subject, running: [subject.append()] };
  },
  'close under way': async (kind) => {
    const subject = smallBuild(kind);
    return { ...subject, running: [subject.append(), subject.writer.close()] };
  },
  'failed build': () => failedBuild(),
  'abort under way': async (kind) => {
    const subject = smallBuild(kind);
    const running = [subject.append()];
    subject.writer.abort();
    return { ...subject, running };
  },
  aborted: async (kind) => {
    const subject = smallBuild(kind);
    subject.writer.abort();
    return subject;
  },
  'closed writer': async (kind) => {
    const subject = smallBuild(kind);
    await subject.writer.close();
    return subject;
  },
};

function smallBuild(kind: Kind): WriterSubject {
  const build = new PairWriter(kind);
  build.appendSync(pairs(0, 1));
  return {
    writer: build.writer as DenseWriter | RaggedWriter,
    append: () => build.append(pairs(1, 1)),
    appendSync: () => build.appendSync(pairs(1, 1)),
    running: [],
  };
}

/** An iterable that throws after its first window ends a build. */
async function failedBuild(): Promise<WriterSubject> {
  const subject = smallBuild('ragged');
  const writer = subject.writer as RaggedWriter;
  // Nine of 4 MiB: more than a window of large records holds.
  const large = ndarray('uint32', [2 ** 20], new Uint32Array(2 ** 20));
  const records = (function* () {
    for (let index = 0; index < 9; index += 1) yield large;
    throw new Error('of the caller');
  })();
  await failureOf(() => writer.append(records));
  return subject;
}

/** For each state and method: what comes of it, and what is at the path when all has ended. */
const writerMatrix: Readonly<Record<string, Readonly<Record<WriterMethod, string>>>> = {
  writer: {
    append: 'ok, nothing',
    appendSync: 'ok, nothing',
    close: 'ok, 1 record',
    closeSync: 'ok, 1 record',
    abort: 'ok, nothing',
    dispose: 'ok, nothing',
    asyncDispose: 'ok, nothing',
    length: 'ok, nothing',
  },
  'pending append': {
    append: 'ok, nothing',
    appendSync: 'BUSY, nothing',
    close: 'ok, 2 records',
    closeSync: 'BUSY, nothing',
    abort: 'ok, nothing',
    dispose: 'ok, nothing',
    asyncDispose: 'ok, nothing',
    length: 'ok, nothing',
  },
  'close under way': {
    append: 'CLOSED, 2 records',
    appendSync: 'CLOSED, 2 records',
    close: 'ok, 2 records',
    closeSync: 'BUSY, 2 records',
    abort: 'ok, nothing',
    dispose: 'ok, 2 records',
    asyncDispose: 'ok, 2 records',
    length: 'ok, 2 records',
  },
  'failed build': {
    append: 'BUILD_FAILED, nothing',
    appendSync: 'BUILD_FAILED, nothing',
    close: 'BUILD_FAILED, nothing',
    closeSync: 'BUILD_FAILED, nothing',
    abort: 'ok, nothing',
    dispose: 'ok, nothing',
    asyncDispose: 'ok, nothing',
    length: 'ok, nothing',
  },
  'abort under way': {
    append: 'CLOSED, nothing',
    appendSync: 'CLOSED, nothing',
    close: 'CLOSED, nothing',
    closeSync: 'CLOSED, nothing',
    abort: 'ok, nothing',
    dispose: 'ok, nothing',
    asyncDispose: 'ok, nothing',
    length: 'ok, nothing',
  },
  aborted: {
    append: 'CLOSED, nothing',
    appendSync: 'CLOSED, nothing',
    close: 'CLOSED, nothing',
    closeSync: 'CLOSED, nothing',
    abort: 'ok, nothing',
    dispose: 'ok, nothing',
    asyncDispose: 'ok, nothing',
    length: 'ok, nothing',
  },
  'closed writer': {
    append: 'CLOSED, 1 record',
    appendSync: 'CLOSED, 1 record',
    close: 'ok, 1 record',
    closeSync: 'ok, 1 record',
    abort: 'ok, 1 record',
    dispose: 'ok, 1 record',
    asyncDispose: 'ok, 1 record',
    length: 'ok, 1 record',
  },
};

t.test('state matrix: writers', async (t) => {
  for (const [state, row] of Object.entries(writerMatrix)) {
    for (const kind of kinds) {
      if (state === 'failed build' && kind === 'dense') continue; // By a full disk: publish.test.ts.
      for (const [method, expected] of Object.entries(row)) {
        const subject = await writerStates[state]?.(kind);
        if (subject === undefined) throw new Error(`no state ${state}`);
        for (const running of subject.running) running.catch(() => {});
        const call = writerMethods[method as WriterMethod];
        const code = await codeOf(() => call(subject));
        await Promise.allSettled(subject.running);
        await subject.writer[Symbol.asyncDispose]();
        const at = subject.writer.path;
        const count = readdirSync(path.dirname(at)).length === 0 ? 0 : open(at).length;
        const left = count === 0 ? 'nothing' : `${count} record${count === 1 ? '' : 's'}`;
        t.equal(`${code}, ${left}`, expected, `${kind}, ${state}: ${method}`);
      }
    }
  }
});

// ---- the state matrix: readers ----

const readerMethods = {
  gather: (reader) => reader.gather([0]),
  gatherSync: (reader) => reader.gatherSync([0]),
  slice: (reader) => reader.slice(),
  record: (reader) => reader.record(0),
  batches: (reader) => reader.batches(2)[Symbol.asyncIterator]().next(),
  close: (reader) => reader.close(),
  closeSync: (reader) => reader.closeSync(),
  dispose: (reader) => reader[Symbol.dispose](),
  asyncDispose: (reader) => reader[Symbol.asyncDispose](),
  length: (reader) => reader.length,
} satisfies Record<string, (reader: DenseReader | RaggedReader) => unknown>;

type ReaderMethod = keyof typeof readerMethods;

const allOk: Readonly<Record<ReaderMethod, string>> = {
  gather: 'ok',
  gatherSync: 'ok',
  slice: 'ok',
  record: 'ok',
  batches: 'ok',
  close: 'ok',
  closeSync: 'ok',
  dispose: 'ok',
  asyncDispose: 'ok',
  length: 'ok',
};

const allClosed: Readonly<Record<ReaderMethod, string>> = {
  ...allOk,
  gather: 'CLOSED',
  gatherSync: 'CLOSED',
  slice: 'CLOSED',
  record: 'CLOSED',
  batches: 'CLOSED',
};

const readerMatrix: Readonly<Record<string, Readonly<Record<ReaderMethod, string>>>> = {
  reader: allOk,
  'busy reader': { ...allOk, closeSync: 'BUSY' },
  'close under way': { ...allClosed, closeSync: 'BUSY' },
  'closed reader': allClosed,
};

/** 64 records of 64 KiB, compressed: a gather of all takes a while. */
function largeContainer(kind: Kind): string {
  const at = scratch.fresh();
  const data = new Uint32Array(64 * 16_384);
  const random = new Random('large');
  for (let index = 0; index < data.length; index += 1) data[index] = random.u32() & 0xff;
  if (kind === 'dense') {
    const writer = Dense.create(at, { codec: 'zstd', dtype: 'uint32', itemShape: [16_384] });
    writer.appendSync(ndarray('uint32', [64, 16_384], data));
    writer.closeSync();
  } else {
    const writer = Ragged.create(at, { codec: 'zstd', dtype: 'uint32', ndim: 1 });
    writer.appendSync(
      upTo(64).map((id) => ndarray('uint32', [16_384], data.slice(id * 16_384, (id + 1) * 16_384))),
    );
    writer.closeSync();
  }
  return at;
}

function itemsOf(batch: NdArray | RaggedBatch): NdArray['data'] {
  return 'values' in batch ? batch.values : batch.data;
}

function sameItems(one: NdArray['data'], other: NdArray['data']): boolean {
  const bytes = (data: NdArray['data']) =>
    Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  return bytes(one).equals(bytes(other));
}

t.test('state matrix: readers', async (t) => {
  for (const kind of kinds) {
    const at = largeContainer(kind);
    const all = upTo(64);
    using first = open(at);
    const expected = itemsOf(first.gatherSync(all));
    for (const [state, row] of Object.entries(readerMatrix)) {
      for (const [method, outcome] of Object.entries(row)) {
        const reader = open(at);
        const isBusy = state === 'busy reader' || state === 'close under way';
        const running = isBusy ? reader.gather(all) : undefined;
        const closing = state === 'close under way' ? reader.close() : undefined;
        if (state === 'closed reader') reader.closeSync();
        const call = readerMethods[method as ReaderMethod];
        t.equal(await codeOf(() => call(reader)), outcome, `${kind}, ${state}: ${method}`);
        const batch = await running;
        if (batch !== undefined)
          t.ok(sameItems(itemsOf(batch), expected), 'what runs is not harmed');
        await closing;
        await reader.close();
        t.equal(await codeOf(() => reader.gather([0])), 'CLOSED');
      }
    }
  }
});

t.test('reader: close waits for what runs, and all ways of closing mix', async (t) => {
  const at = largeContainer('dense');
  const reader = open(at);
  let ended = 0;
  const running = upTo(4).map(() =>
    reader.gather(upTo(64)).then(() => {
      ended += 1;
    }),
  );
  const closing = [reader.close(), reader.close(), reader[Symbol.asyncDispose]()];
  reader[Symbol.dispose]();
  await closing[0];
  await soon();
  t.equal(ended, 4, 'the running ones have ended when close resolves');
  await Promise.all([...closing, ...running]);
  reader.closeSync();
});

t.test('closed inside: an option or an id that closes the reader', async (t) => {
  const at = largeContainer('dense');
  const closers: readonly (readonly [string, (reader: DenseReader) => unknown])[] = [
    [
      'out',
      (reader) =>
        reader.gatherSync([1], {
          get out() {
            reader.closeSync();
            return undefined;
          },
        }),
    ],
    [
      'signal',
      (reader) =>
        reader.gather([1], {
          get signal() {
            reader.closeSync();
            return undefined;
          },
        }),
    ],
    [
      'out.shape',
      (reader) =>
        reader.gather([1], {
          out: {
            dtype: 'uint32',
            get shape() {
              reader.closeSync();
              return [1, 16_384];
            },
            data: new Uint32Array(16_384),
          },
        }),
    ],
    ['ids', (reader) => reader.gatherSync(idsThatRun(() => reader.closeSync()))],
    ['ids, awaited', (reader) => reader.gather(idsThatRun(() => reader.closeSync()))],
  ];
  for (const [what, call] of closers) {
    t.equal(await outcomeOf(() => call(Dense.open(at))), 'LoaderxError CLOSED', what);
  }
  const writer = Dense.create(scratch.fresh(), { codec: 'raw', dtype: 'uint32', itemShape: [2] });
  const batch = {
    dtype: 'uint32',
    shape: [1, 2],
    get data() {
      writer.abort();
      return new Uint32Array(2);
    },
  } as const;
  t.equal(await outcomeOf(() => writer.appendSync(batch)), 'LoaderxError CLOSED', 'a writer');
});

function idsThatRun(act: () => void): number[] {
  return Object.defineProperty([0, 0], 1, {
    get() {
      act();
      return 0;
    },
  });
}

// ---- order ----

t.test('appends that nobody awaits keep their call order', async (t) => {
  for (const kind of kinds) {
    const build = new PairWriter(kind);
    const appends: Promise<void>[] = [];
    for (let index = 0; index < 50; index += 1) {
      appends.push(build.append(pairs(index * 100, (index * 37) % 100 || 1)));
    }
    t.equal(build.writer.length, 0, 'running appends are not counted');
    await build.writer.close();
    await Promise.all(appends);
    const expected = upTo(50).flatMap((index) => upTo((index * 37) % 100 || 1, index * 100));
    t.strictSame(await firsts(t, build.path), expected, kind);
  }
});

t.test('a slow async iterable holds up what was called after it', async (t) => {
  const build = new PairWriter('ragged');
  const writer = build.writer as RaggedWriter<'uint32'>;
  const slow = (async function* () {
    for (const row of rowsOf(pairs(0, 5))) {
      await sleep(2);
      yield row;
    }
  })();
  const first = writer.append(slow);
  const second = build.append(pairs(5, 2));
  const order: string[] = [];
  first.then(() => order.push('first'));
  second.then(() => order.push('second'));
  await writer.close();
  t.strictSame(order, ['first', 'second']);
  t.strictSame(await firsts(t, build.path), upTo(7));
});

t.test('16 appends of 1,000 at once, 3 shards (B07)', async (t) => {
  for (const kind of kinds) {
    for (const codec of ['raw', 'zstd'] as const) {
      const build = new PairWriter(kind, codec, 3);
      await Promise.all(upTo(16).map((index) => build.append(pairs(index * 1000, 1000))));
      t.equal(build.writer.length, 16_000);
      await build.writer.close();
      t.strictSame(await firsts(t, build.path), upTo(16_000), `${kind}, ${codec}`);
    }
  }
});

t.test('appends of 1, 7, 4096, 3 records, 5 shards, against one of all (B08)', async (t) => {
  for (const kind of kinds) {
    for (const codec of ['raw', 'zstd'] as const) {
      const parts = new PairWriter(kind, codec, 5);
      let from = 0;
      for (const count of [1, 7, 4096, 3]) {
        await parts.append(pairs(from, count));
        from += count;
      }
      t.equal(await outcomeOf(() => parts.append(pairs(0, 0))), 'RangeError INVALID_ARGUMENT');
      await parts.writer.close();
      const whole = new PairWriter(kind, codec, 5);
      await whole.append(pairs(0, from));
      await whole.writer.close();
      const records = await firsts(t, parts.path);
      t.strictSame(records, upTo(from), `${kind}, ${codec}`);
      t.strictSame(await firsts(t, whole.path), records);
    }
  }
});

// ---- scopes ----

t.test('a scope discards what was not closed', async (t) => {
  for (const kind of kinds) {
    let at: string;
    {
      const build = new PairWriter(kind);
      at = build.path;
      using writer = build.writer;
      build.appendSync(pairs(0, 1));
      t.equal(writer.length, 1);
    }
    t.strictSame(beside(at), [], `${kind}: using`);
    {
      const build = new PairWriter(kind);
      at = build.path;
      await using _writer = build.writer;
      build.append(pairs(0, 5)).catch(() => {});
    }
    t.strictSame(beside(at), [], `${kind}: await using, with an append that runs`);
    {
      const build = new PairWriter(kind);
      at = build.path;
      await using writer = build.writer;
      build.append(pairs(0, 5)).catch(() => {});
      writer.close().catch(() => {});
    }
    t.strictSame(
      beside(at),
      ['store'],
      `${kind}: await using waits for a close that was asked for`,
    );
    t.strictSame(await firsts(t, at), upTo(5));
    {
      using reader = open(at);
      t.equal(reader.length, 5);
      at = reader.path;
      {
        await using second = open(at);
        void second.slice();
      }
    }
  }
});

// ---- batches and their memory ----

t.test('results are independent and writable', async (t) => {
  for (const kind of kinds) {
    const at = largeContainer(kind);
    using reader = open(at);
    const expected = itemsOf(reader.gatherSync([1, 2]));
    const made = [
      await reader.gather([1, 2]),
      await reader.gather([1, 2]),
      reader.gatherSync([1, 2]),
      await reader.slice(1, 3),
    ];
    for (const batch of made) {
      t.ok(sameItems(itemsOf(batch), expected));
      itemsOf(batch).fill(anyway(7));
    }
    const buffers = new Set(made.map((batch) => itemsOf(batch).buffer));
    t.equal(buffers.size, made.length, 'each in memory of its own');
    t.ok(sameItems(itemsOf(await reader.gather([1, 2])), expected), 'the container is unchanged');
    const one = reader.record(1);
    one.data.fill(anyway(7));
    t.notOk(sameItems(reader.record(1).data, one.data));
  }
});

t.test('a disposed batch gives its memory to the next one, and its views are empty', async (t) => {
  const denseAt = largeContainer('dense');
  using reader = Dense.open(denseAt, { dtype: 'uint32' });
  const expected = reader.gatherSync([5, 6]).data.slice();
  const old = await reader.gather([1, 2]);
  const view = old.data.subarray(3);
  old[Symbol.dispose]();
  old[Symbol.dispose]();
  t.strictSame([old.data.length, view.length], [0, 0], 'emptied');
  const next = await reader.gather([5, 6]);
  t.ok(sameItems(next.data, expected));
  t.equal(view.length, 0, 'and they stay empty');
  {
    using scoped = reader.gatherSync([5, 6]);
    t.ok(sameItems(scoped.data, expected));
  }
  t.equal(
    await outcomeOf(() => reader.gather([1, 2], { out: old })),
    'RangeError INVALID_ARGUMENT',
  );

  const raggedAt = largeContainer('ragged');
  using ragged = Ragged.open(raggedAt, { dtype: 'uint32' });
  const batch = await ragged.gather([5, 6]);
  t.ok(sameItems(batch.values, expected));
  const [record] = batch;
  batch[Symbol.dispose]();
  batch[Symbol.dispose]();
  t.equal(record?.data.length, 0);
  t.equal(batch.values.length, 0);
  for (const call of [
    () => batch.at(0),
    () => batch.toArray(),
    () => [...batch],
    () => batch.pad({ value: 0 }),
    () => batch.toNative(),
  ]) {
    t.equal(await outcomeOf(call), 'LoaderxError CLOSED');
  }
  t.ok(sameItems((await ragged.gather([5, 6])).values, expected));
});

t.test('memory that was given back never shows in another batch', async (t) => {
  // Many batches of one size class, disposed at random: each must hold its own records.
  const random = new Random(seed, 'memory');
  for (const kind of kinds) {
    const at = largeContainer(kind);
    await using reader = open(at);
    const truth = upTo(64).map((id) => Uint32Array.from(reader.record(id).data as Uint32Array));
    let wrong = 0;
    const check = (batch: NdArray | RaggedBatch, ids: readonly number[]): void => {
      const items = itemsOf(batch) as Uint32Array;
      ids.forEach((id, index) => {
        const part = items.subarray(index * 16_384, (index + 1) * 16_384);
        if (!sameItems(part, truth[id] ?? new Uint32Array(0))) wrong += 1;
      });
    };
    for (let round = 0; round < 40; round += 1) {
      const lists = upTo(3).map(() => upTo(2).map(() => random.between(0, 63)));
      const batches = await Promise.all(
        lists.map(async (ids) =>
          random.chance(0.5) ? reader.gatherSync(ids) : reader.gather(ids),
        ),
      );
      batches.forEach((batch, index) => {
        check(batch, lists[index] ?? []);
        if (random.chance(0.7)) batch[Symbol.dispose]();
      });
    }
    t.equal(wrong, 0, kind);
  }
});

// ---- out: dense ----

interface ResizableBuffer extends ArrayBuffer {
  resize(bytes: number): void;
}

function resizable(bytes: number, bytesMax: number): ResizableBuffer {
  const maker = ArrayBuffer as unknown as new (
    bytes: number,
    options: { maxByteLength: number },
  ) => ResizableBuffer;
  return new maker(bytes, { maxByteLength: bytesMax });
}

function growable(bytes: number, bytesMax: number): SharedArrayBuffer {
  const maker = SharedArrayBuffer as unknown as new (
    bytes: number,
    options: { maxByteLength: number },
  ) => SharedArrayBuffer;
  return new maker(bytes, { maxByteLength: bytesMax });
}

/** Takes the memory away, as posting it to a worker does. */
function detach(buffer: ArrayBufferLike): void {
  structuredClone(buffer, { transfer: [buffer as ArrayBuffer] });
}

t.test('out: where a dense gather writes', async (t) => {
  const at = largeContainer('dense');
  await using reader = Dense.open(at, { dtype: 'uint32' });
  const ids = [9, 3, 9];
  const shape = [3, 16_384];
  const expected = reader.gatherSync(ids).data;
  const targets: readonly (readonly [string, () => Uint32Array])[] = [
    ['plain memory', () => new Uint32Array(3 * 16_384)],
    ['shared memory', () => new Uint32Array(new SharedArrayBuffer(expected.byteLength))],
    [
      'shared memory that can grow',
      () => new Uint32Array(growable(expected.byteLength, expected.byteLength * 2)),
    ],
    [
      'memory that can be resized',
      () => new Uint32Array(resizable(expected.byteLength, expected.byteLength * 2)),
    ],
    ['the middle of other memory', () => new Uint32Array(3 * 16_384 + 7).subarray(3, -4)],
    [
      'a slice of shared memory',
      () => new Uint32Array(new SharedArrayBuffer(expected.byteLength + 64), 32, expected.length),
    ],
  ];
  for (const [what, make] of targets) {
    for (const how of ['gather', 'gatherSync'] as const) {
      const out = ndarray('uint32', shape, make());
      const whole = new Uint8Array(out.data.buffer);
      const { byteOffset, byteLength } = out.data;
      const given = await reader[how](ids, { out });
      t.equal(given, out, `${how} into ${what}: it is returned`);
      t.ok(sameItems(out.data, expected), `${how} into ${what}`);
      const around = [...whole.subarray(0, byteOffset), ...whole.subarray(byteOffset + byteLength)];
      t.ok(
        around.every((byte) => byte === 0),
        `${how} into ${what}: nothing around it changed`,
      );
    }
  }
  const plain = { dtype: 'uint32', shape, data: new Uint32Array(3 * 16_384) } as const;
  t.equal(await reader.gather(ids, { out: plain }), plain, 'any object will do');
  const earlier = await reader.gather([1, 1, 1]);
  await reader.gather(ids, { out: earlier });
  t.ok(sameItems(earlier.data, expected), 'an earlier batch');
  const empty = ndarray('uint32', [0, 16_384], new Uint32Array(0));
  t.equal(await reader.gather([], { out: empty }), empty, 'no ids');
});

t.test('out: a slice of the Buffer pool', async (t) => {
  const at = scratch.fresh();
  const writer = Dense.create(at, { codec: 'raw', dtype: 'uint8', itemShape: [10] });
  writer.appendSync(ndarray('uint8', [3, 10], Uint8Array.from(upTo(30))));
  writer.closeSync();
  await using reader = Dense.open(at, { dtype: 'uint8' });
  for (const how of ['gather', 'gatherSync'] as const) {
    const before = Buffer.allocUnsafe(16).fill(0xaa);
    const out = ndarray('uint8', [2, 10], Buffer.allocUnsafe(20));
    const after = Buffer.allocUnsafe(16).fill(0xbb);
    t.ok(out.data.buffer.byteLength > 1000, 'it is of the pool');
    await reader[how]([2, 0], { out });
    t.strictSame([...out.data], [...upTo(10, 20), ...upTo(10)], how);
    t.ok(before.every((byte) => byte === 0xaa) && after.every((byte) => byte === 0xbb));
  }
});

t.test('out: what is refused, and what it holds is left alone', async (t) => {
  const at = largeContainer('dense');
  await using reader = Dense.open(at, { dtype: 'uint32' });
  const data = (): Uint32Array => new Uint32Array(16_384).fill(5);
  const gone = ndarray('uint32', [1, 16_384], data());
  detach(gone.data.buffer);
  const shrunk = resizable(16_384 * 4, 16_384 * 8);
  const tracking = ndarray('uint32', [1, 16_384], new Uint32Array(shrunk));
  shrunk.resize(16_384 * 4 - 4);
  const outs: readonly (readonly [string, unknown, string])[] = [
    [
      'too small',
      ndarray('uint32', [1, 16_383], data().subarray(1)),
      'RangeError INVALID_ARGUMENT',
    ],
    ['too large', ndarray('uint32', [2, 8192], data()), 'RangeError INVALID_ARGUMENT'],
    ['flat', ndarray('uint32', [16_384], data()), 'RangeError INVALID_ARGUMENT'],
    [
      'fewer items than its shape says',
      { dtype: 'uint32', shape: [1, 16_384], data: data().subarray(1) },
      'RangeError INVALID_ARGUMENT',
    ],
    [
      'another dtype',
      ndarray('int32', [1, 16_384], new Int32Array(16_384)),
      'TypeError INVALID_ARGUMENT',
    ],
    [
      'another typed array',
      { dtype: 'uint32', shape: [1, 16_384], data: new Int32Array(16_384) },
      'TypeError INVALID_ARGUMENT',
    ],
    ['a bare typed array', data(), 'TypeError INVALID_ARGUMENT'],
    ['null', null, 'TypeError INVALID_ARGUMENT'],
    ['detached', gone, 'RangeError INVALID_ARGUMENT'],
    ['shrunk', tracking, 'RangeError INVALID_ARGUMENT'],
  ];
  for (const [what, out, expected] of outs) {
    for (const how of ['gather', 'gatherSync'] as const) {
      const error = await failureOf(() => reader[how]([1], { out: anyway(out) }));
      t.equal(outcomeOfError(error), expected, `${how}: ${what}`);
      t.match(error.field, /^out/, 'it names out');
    }
    const items = (out as Partial<NdArray> | null)?.data as Uint32Array | undefined;
    if (out === gone || items === undefined) continue;
    t.ok(
      [...items].every((item) => item === 5 || item === 0),
      `${what}: left alone`,
    );
  }
  const options: readonly unknown[] = [null, 3, 'out', [1], { outs: 1 }, { out: undefined, x: 1 }];
  for (const wrong of options) {
    t.equal(
      await outcomeOf(() => reader.gather([1], anyway(wrong))),
      'TypeError INVALID_ARGUMENT',
      `options ${JSON.stringify(wrong)}`,
    );
  }
});

t.test('out: memory taken away while it is to be filled', async (t) => {
  const at = largeContainer('dense');
  await using reader = Dense.open(at, { dtype: 'uint32' });
  const ids = upTo(64);
  const length = 64 * 16_384;
  const takers: readonly (readonly [string, () => Uint32Array, (data: Uint32Array) => void])[] = [
    ['detached', () => new Uint32Array(length), (data) => detach(data.buffer)],
    [
      'posted to another thread',
      () => new Uint32Array(length),
      (data) => {
        const { port1 } = new MessageChannel();
        port1.postMessage(data, [data.buffer as ArrayBuffer]);
        port1.close();
      },
    ],
    [
      'resized',
      () => new Uint32Array(resizable(length * 4, length * 8)),
      (data) => (data.buffer as ResizableBuffer).resize(16),
    ],
  ];
  for (const [what, make, take] of takers) {
    const out = ndarray('uint32', [64, 16_384], make());
    const running = reader.gather(ids, { out });
    take(out.data);
    t.equal(await outcomeOf(() => running), 'LoaderxError INVALID_ARGUMENT', what);
  }
  t.equal((await reader.gather(ids)).data.length, length, 'the reader goes on');
});

t.test('out: several gathers into one memory, each into its part', async (t) => {
  const at = largeContainer('dense');
  await using reader = Dense.open(at, { dtype: 'uint32' });
  const expected = reader.gatherSync(upTo(64)).data;
  for (const buffer of [
    new ArrayBuffer(expected.byteLength),
    new SharedArrayBuffer(expected.byteLength),
  ]) {
    await Promise.all(
      upTo(16).map((part) => {
        const data = new Uint32Array(buffer, part * 4 * 65_536, 65_536);
        const ids = upTo(4, part * 4);
        return reader.gather(ids, { out: ndarray('uint32', [4, 16_384], data) });
      }),
    );
    t.ok(sameItems(new Uint32Array(buffer), expected));
  }
});

// ---- out: ragged ----

t.test('out: a ragged batch is filled anew', async (t) => {
  const at = largeContainer('ragged');
  await using reader = Ragged.open(at, { dtype: 'uint32' });
  const expected = reader.gatherSync([3, 4]).values.slice();
  for (const how of ['gather', 'gatherSync'] as const) {
    const batch = await reader.gather([0, 1]);
    const [old] = batch;
    t.equal(await reader[how]([3, 4], { out: batch }), batch, `${how}: it is returned`);
    t.ok(sameItems(batch.values, expected));
    t.equal(old?.data.length, 0, 'its old views are empty');
    await reader[how]([3], { out: batch });
    t.strictSame([batch.length, ...batch.dims], [1, 16_384], 'fewer records');
    await reader[how](upTo(64), { out: batch });
    t.equal(batch.values.length, 64 * 16_384, 'more than it had room for');
    await reader[how]([], { out: batch });
    t.equal(batch.length, 0, 'none');
    batch[Symbol.dispose]();
    await reader[how]([3, 4], { out: batch });
    t.ok(sameItems(batch.values, expected), 'after it was disposed');
    detach(batch.values.buffer);
    t.equal(await outcomeOf(() => batch.at(0)), 'LoaderxError CLOSED');
    await reader[how]([3, 4], { out: batch });
    t.ok(sameItems(batch.values, expected), 'after its memory was taken away');
    t.equal(await codeOf(() => reader[how]([99], { out: batch })), 'OUT_OF_RANGE');
    t.ok(sameItems(batch.values, expected), 'an argument error leaves it alone');
  }
});

t.test('out: what a ragged gather refuses', async (t) => {
  const at = largeContainer('ragged');
  await using reader = Ragged.open(at, { dtype: 'uint32' });
  const otherAt = scratch.fresh();
  const writer = Ragged.create(otherAt, { codec: 'raw', dtype: 'int32', ndim: 1 });
  writer.appendSync([ndarray('int32', [1], Int32Array.of(1))]);
  writer.closeSync();
  await using other = Ragged.open(otherAt);
  const foreign = other.gatherSync([0]);
  for (const out of [foreign, new Uint32Array(4), {}, null, reader.record(0)]) {
    t.equal(
      await outcomeOf(() => reader.gather([0], { out: anyway(out) })),
      'TypeError INVALID_ARGUMENT',
    );
  }
  t.equal(foreign.values[0], 1, 'a refused one is left alone');
  const batch = reader.gatherSync([0]);
  const running = reader.gather(upTo(64), { out: batch });
  t.equal(await outcomeOf(() => reader.gather([0], { out: batch })), 'LoaderxError BUSY');
  t.equal(await outcomeOf(() => reader.gatherSync([0], { out: batch })), 'LoaderxError BUSY');
  t.equal(await outcomeOf(() => batch.at(0)), 'LoaderxError CLOSED');
  await running;
  t.equal(batch.length, 64);
  const disposed = reader.gather([1], { out: batch });
  batch[Symbol.dispose]();
  t.equal(
    await outcomeOf(() => reader.gather([0], { out: batch })),
    'LoaderxError BUSY',
    'disposed of, but still being filled',
  );
  batch[Symbol.dispose]();
  await disposed;
  t.equal(
    await outcomeOf(() => batch.at(0)),
    'LoaderxError CLOSED',
    'disposed while it was filled',
  );
});

// ---- signals ----

t.test('signal: aborted before', async (t) => {
  for (const kind of kinds) {
    using reader = open(largeContainer(kind));
    const reason = new Error('mine');
    const error = await failureOf(() => reader.gather([0], { signal: AbortSignal.abort(reason) }));
    t.equal(outcomeOfError(error), 'LoaderxError ABORTED');
    t.equal(error.cause, reason, 'the reason is the cause');
    const plain = await failureOf(() => reader.gather([0], { signal: AbortSignal.abort() }));
    t.equal((plain.cause as Error).name, 'AbortError');
    t.equal(
      await codeOf(() => reader.gather([999], { signal: AbortSignal.abort() })),
      'OUT_OF_RANGE',
      'wrong ids come first',
    );
  }
});

t.test('signal: aborted while the gather runs', async (t) => {
  for (const kind of kinds) {
    await using reader = open(largeContainer(kind));
    const ids = upTo(2000).map((index) => index % 64);
    // Another program may take the processor at any of these moments: then once more.
    let endsEarly = false;
    for (let attempt = 0; attempt < 100 && !endsEarly; attempt += 1) {
      const startMs = performance.now();
      (await reader.gather(ids))[Symbol.dispose]();
      const wholeMs = performance.now() - startMs;
      const controller = new AbortController();
      const running = reader.gather(ids, { signal: controller.signal });
      await soon();
      const abortMs = performance.now();
      controller.abort(attempt);
      const error = await failureOf(() => running);
      endsEarly = performance.now() - abortMs <= wholeMs / 2;
      t.equal(outcomeOfError(error), 'LoaderxError ABORTED');
      t.equal(error.cause, attempt, 'any reason');
      t.equal(getEventListeners(controller.signal, 'abort').length, 0, 'no listener is left');
    }
    t.ok(endsEarly, `${kind}: it ends early`);
    const signal = new AbortController().signal;
    const batch = await reader.gather([7], { signal });
    t.ok(sameItems(itemsOf(batch), itemsOf(reader.gatherSync([7]))), 'the reader goes on');
    t.equal(getEventListeners(signal, 'abort').length, 0);
  }
});

t.test('a batch whose offsets or dimensions were written to is refused', async (t) => {
  await using reader = Ragged.open(largeContainer('ragged'));
  const changes: readonly ((batch: RaggedBatch) => void)[] = [
    (batch) => (batch.dims[0] = (batch.dims[0] ?? 0) + 1),
    (batch) => (batch.dims[1] = 0),
    (batch) => (batch.offsets[1] = 2 ** 32 - 1),
    (batch) => (batch.offsets[1] = (batch.offsets[1] ?? 0) + 1),
    (batch) => (batch.offsets[2] = 0),
  ];
  for (const [index, change] of changes.entries()) {
    const batch = reader.gatherSync([1, 2, 3, 4]);
    change(batch as RaggedBatch);
    const at = scratch.fresh();
    const { dtype, ndim } = reader;
    for (const append of ['append', 'appendSync'] as const) {
      const writer = Ragged.create(at, { codec: 'raw', dtype, ndim });
      t.match(await outcomeOf(() => writer[append](batch)), /^RangeError INVALID_ARGUMENT/);
      t.equal(writer.length, 0, `change ${index}`);
      writer.abort();
      await writer[Symbol.asyncDispose]();
    }
    t.match(await outcomeOf(() => batch.pad({ value: 0 })), /^RangeError INVALID_ARGUMENT/);
    for (let record = 0; record < 4; record += 1) {
      t.match(await outcomeOf(() => batch.at(record)), /^(ok|RangeError INVALID_ARGUMENT)/);
    }
  }
});

t.test('ids whose memory was transferred away are no empty list', async (t) => {
  using reader = open(largeContainer('dense'));
  for (const ids of [Uint32Array.of(1, 2), BigUint64Array.of(1n, 2n)]) {
    structuredClone(ids.buffer, { transfer: [ids.buffer] });
    t.equal(await outcomeOf(() => reader.gather(ids)), 'TypeError INVALID_ARGUMENT');
    t.equal(await outcomeOf(() => reader.gatherSync(ids)), 'TypeError INVALID_ARGUMENT');
  }
  t.equal((reader.gatherSync(new Uint32Array(0)) as DenseBatch).shape[0], 0);
});

t.test('one signal for many gathers: no warning of a leak, and one listener', async (t) => {
  using reader = open(largeContainer('dense'));
  const warnings: Error[] = [];
  const onWarning = (warning: Error): number => warnings.push(warning);
  process.on('warning', onWarning);
  const controller = new AbortController();
  const { signal } = controller;
  const ids = upTo(64);
  const all = upTo(30).map(() => reader.gather(ids, { signal }));
  t.equal(getEventListeners(signal, 'abort').length, 1);
  controller.abort('enough');
  for (const outcome of await Promise.allSettled(all)) {
    if (outcome.status === 'fulfilled') continue;
    t.match(outcome.reason, { code: 'ABORTED', cause: 'enough', path: reader.path });
  }
  await soon();
  process.off('warning', onWarning);
  t.same(warnings, []);
  t.equal(getEventListeners(signal, 'abort').length, 0);
});

t.test('signal: what is no signal', async (t) => {
  using reader = open(largeContainer('dense'));
  for (const signal of [null, 3, {}, new AbortController(), { aborted: false }]) {
    const error = await failureOf(() => reader.gather([0], { signal: anyway(signal) }));
    t.equal(outcomeOfError(error), 'TypeError INVALID_ARGUMENT');
    t.equal(error.field, 'signal');
  }
});

t.test(
  'signal: an aborted gather leaves out disposed or unspecified, never half alive',
  async (t) => {
    await using ragged = Ragged.open(largeContainer('ragged'), { dtype: 'uint32' });
    const batch = ragged.gatherSync([1]);
    const controller = new AbortController();
    const running = ragged.gather(upTo(64), { out: batch, signal: controller.signal });
    controller.abort();
    t.equal(await codeOf(() => running), 'ABORTED');
    await ragged.gather([2], { out: batch });
    t.ok(sameItems(batch.values, ragged.record(2).data as Uint32Array), 'it can be filled again');
  },
);

// ---- ids ----

t.test('ids: what is refused, before anything is allocated (B36)', async (t) => {
  const at = scratch.fresh();
  const writer = Dense.create(at, { codec: 'raw', dtype: 'uint8', itemShape: [] });
  writer.appendSync(
    ndarray(
      'uint8',
      [1000],
      new Uint8Array(1000).map((_, id) => id),
    ),
  );
  writer.closeSync();
  await using reader = Dense.open(at, { dtype: 'uint8' });
  const wrong: readonly (readonly [string, unknown, string])[] = [
    ['-1', [-1], 'RangeError OUT_OF_RANGE'],
    ['length', [1000], 'RangeError OUT_OF_RANGE'],
    ['2^32', [2 ** 32], 'RangeError OUT_OF_RANGE'],
    ['2^32 + 1', [2 ** 32 + 1], 'RangeError OUT_OF_RANGE'],
    ['2^53 + 1', [2 ** 53 + 1], 'RangeError OUT_OF_RANGE'],
    ['1e300', [1e300], 'RangeError OUT_OF_RANGE'],
    ['1.5', [1.5], 'TypeError INVALID_ARGUMENT'],
    ['NaN', [Number.NaN], 'TypeError INVALID_ARGUMENT'],
    ['Infinity', [Number.POSITIVE_INFINITY], 'TypeError INVALID_ARGUMENT'],
    ["'3'", ['3'], 'TypeError INVALID_ARGUMENT'],
    ['3n', [3n], 'TypeError INVALID_ARGUMENT'],
    ['true', [true], 'TypeError INVALID_ARGUMENT'],
    ['a hole', Object.assign(new Array(3), { 0: 0, 2: 1 }), 'TypeError INVALID_ARGUMENT'],
    ['holes only', new Array(5), 'TypeError INVALID_ARGUMENT'],
    ['a hole of 2^32 - 1', new Array(2 ** 32 - 1), 'TypeError INVALID_ARGUMENT'],
    ['length in a Uint32Array', Uint32Array.of(0, 1000), 'RangeError OUT_OF_RANGE'],
    ['2^32 - 1 in a Uint32Array', Uint32Array.of(2 ** 32 - 1), 'RangeError OUT_OF_RANGE'],
    ['length in a BigUint64Array', BigUint64Array.of(0n, 1000n), 'RangeError OUT_OF_RANGE'],
    ['2^32 in a BigUint64Array', BigUint64Array.of(2n ** 32n), 'RangeError OUT_OF_RANGE'],
    ['2^64 - 1 in a BigUint64Array', BigUint64Array.of(2n ** 64n - 1n), 'RangeError OUT_OF_RANGE'],
    ['an Int32Array', Int32Array.of(1), 'TypeError INVALID_ARGUMENT'],
    ['a Float64Array', Float64Array.of(1), 'TypeError INVALID_ARGUMENT'],
    ['a Buffer', Buffer.of(1), 'TypeError INVALID_ARGUMENT'],
    ['an array-like', { length: 1, 0: 1 }, 'TypeError INVALID_ARGUMENT'],
    ['an iterable', new Set([1]), 'TypeError INVALID_ARGUMENT'],
    ['nothing', undefined, 'TypeError INVALID_ARGUMENT'],
  ];
  for (const [what, ids, expected] of wrong) {
    for (const how of ['gather', 'gatherSync'] as const) {
      const error = await failureOf(() => reader[how](anyway(ids)));
      t.equal(outcomeOfError(error), expected, `${how}: ${what}`);
      t.equal(error.field, 'ids');
    }
  }
  const last = await failureOf(() => reader.gather([0, 5, 1000, -1]));
  t.equal(last.record, 1000, 'the first wrong id is named');
  t.match(last.message, 'ids[2] is 1000, and ids go from 0 to 999');
  const first = await reader.gather([-0]);
  t.equal(first.data[0], 0, '-0 is 0');
  t.strictSame([...(await reader.gather(Object.freeze([999, 0]) as number[])).data], [231, 0]);
  for (const [what, id, expected] of [
    ['3n', 3n, 'TypeError INVALID_ARGUMENT'],
    ["'3'", '3', 'TypeError INVALID_ARGUMENT'],
    ['-1', -1, 'RangeError OUT_OF_RANGE'],
    ['1000', 1000, 'RangeError OUT_OF_RANGE'],
    ['0.5', 0.5, 'TypeError INVALID_ARGUMENT'],
  ] as const) {
    t.equal(await outcomeOf(() => reader.record(anyway(id))), expected, `record(${what})`);
  }
  t.equal(reader.record(-0).data[0], 0);
});

t.test('ids: 10 million, in each kind of list', async (t) => {
  const at = scratch.fresh();
  const writer = Dense.create(at, { codec: 'raw', dtype: 'uint8', itemShape: [] });
  writer.appendSync(
    ndarray(
      'uint8',
      [1000],
      new Uint8Array(1000).map((_, id) => id),
    ),
  );
  writer.closeSync();
  await using reader = Dense.open(at, { dtype: 'uint8' });
  const count = 10_000_000;
  const words = new Uint32Array(count);
  const numbers = new Array<number>(count);
  const bigints = new BigUint64Array(count);
  const halves = new Uint32Array(bigints.buffer);
  const expected = new Uint8Array(count);
  for (let index = 0; index < count; index += 1) {
    const id = (index * 7) % 1000;
    words[index] = id;
    numbers[index] = id;
    halves[index * 2] = id;
    expected[index] = id;
  }
  const lists = [words, numbers, bigints];
  for (const ids of lists) {
    t.ok(sameItems((await reader.gather(ids)).data, expected), ids.constructor.name);
  }
  const wrong = words.slice();
  wrong[count - 1] = 1000;
  t.equal(await codeOf(() => reader.gather(wrong)), 'OUT_OF_RANGE', 'the last of them wrong');
});

t.test(
  'ids: a list that changes while it is read gives an error or a record, never more',
  async (t) => {
    await using reader = Dense.open(largeContainer('dense'), { dtype: 'uint32' });
    let asked = 0;
    const shifty = Object.defineProperty([0, 0], 1, {
      get() {
        asked += 1;
        return asked > 1 ? 2 ** 31 : 1;
      },
    });
    t.equal(await codeOf(() => reader.gather(shifty)), 'OUT_OF_RANGE');
    const ids = [1, 2, 3];
    const running = reader.gather(ids);
    ids.fill(50);
    t.ok(sameItems((await running).data, reader.gatherSync([1, 2, 3]).data), 'ids were copied');
  },
);

// ---- slices ----

/** What Python's `list(range(length))[start:end:step]` gives. */
function pythonSlice(length: number, start?: number, end?: number, step = 1): number[] {
  const ids: number[] = [];
  if (step > 0) {
    for (let id = start ?? 0; id < Math.min(end ?? length, length); id += step) ids.push(id);
  } else {
    for (let id = Math.min(start ?? length - 1, length - 1); id > (end ?? -1); id += step) {
      ids.push(id);
    }
  }
  return ids;
}

t.test('slice: as Python does', async (t) => {
  const random = new Random(seed, 'slice');
  for (const length of [0, 1, 2, 7, 50]) {
    const at = scratch.fresh();
    const writer = Dense.create(at, { codec: 'raw', dtype: 'uint8', itemShape: [] });
    if (length > 0) writer.appendSync(ndarray('uint8', [length], Uint8Array.from(upTo(length))));
    writer.closeSync();
    await using reader = Dense.open(at, { dtype: 'uint8' });
    const bounds = [undefined, 0, 1, length - 1, length, length + 1, 2 ** 40].filter(
      (bound) => bound === undefined || bound >= 0,
    );
    const steps = [undefined, 1, 2, 3, 100, 2 ** 40, -1, -2, -3, -100, -(2 ** 40)];
    let wrong = 0;
    for (const start of bounds) {
      for (const end of bounds) {
        for (const step of steps) {
          const { data, shape } = await reader.slice(start, end, step);
          const expected = pythonSlice(length, start, end, step);
          const isSame =
            data.length === expected.length && expected.every((id, at) => data[at] === id);
          if (!isSame || shape[0] !== expected.length) {
            wrong += 1;
            t.fail(`slice(${start}, ${end}, ${step}) of ${length} gives [${data}]`);
          }
        }
      }
    }
    for (let round = 0; round < 50; round += 1) {
      const start = random.between(0, 60);
      const end = random.between(0, 60);
      const step = random.pick([-5, -2, -1, 1, 2, 5]);
      const { data } = await reader.slice(start, end, step);
      if (String([...data]) !== String(pythonSlice(length, start, end, step))) wrong += 1;
    }
    t.equal(wrong, 0, `length ${length}`);
  }
});

// ---- batches ----

t.test('batches: all records in order', async (t) => {
  for (const kind of kinds) {
    const build = new PairWriter(kind, 'zstd');
    build.appendSync(pairs(0, 103));
    build.writer.closeSync();
    await using reader = open(build.path);
    for (const size of [1, 10, 50, 102, 103, 104, 10_000]) {
      const counts: number[] = [];
      const seen: number[] = [];
      for await (const batch of reader.batches(size)) {
        const items = itemsOf(batch as NdArray | RaggedBatch) as Uint32Array;
        counts.push(items.length / 2);
        for (let at = 0; at < items.length; at += 2) seen.push(items[at] ?? -1);
      }
      t.strictSame(seen, upTo(103), `${kind}, ${size} at a time`);
      t.ok(counts.slice(0, -1).every((count) => count === Math.min(size, 103)));
      t.equal(counts.at(-1), 103 % size || Math.min(size, 103));
    }
    const twice = reader.batches(60);
    let total = 0;
    for await (const batch of twice) total += itemsOf(batch as NdArray | RaggedBatch).length;
    t.equal(total, 206);
  }
});

t.test('batches: what is refused, empty containers, and leaving early', async (t) => {
  for (const kind of kinds) {
    const empty = new PairWriter(kind);
    empty.writer.closeSync();
    await using none = open(empty.path);
    for await (const _ of none.batches(3)) t.fail('an empty container has no batch');
    for (const [count, expected] of [
      [0, 'RangeError INVALID_ARGUMENT'],
      [-1, 'RangeError INVALID_ARGUMENT'],
      [1.5, 'TypeError INVALID_ARGUMENT'],
      ['2', 'TypeError INVALID_ARGUMENT'],
      [undefined, 'TypeError INVALID_ARGUMENT'],
      [2n, 'TypeError INVALID_ARGUMENT'],
    ] as const) {
      t.equal(await outcomeOf(() => none.batches(anyway(count))), expected, `batches(${count})`);
    }

    const reader = open(largeContainer(kind));
    for await (const _ of reader.batches(16)) break;
    await failureOf(async () => {
      for await (const _ of reader.batches(16)) throw new Error('of the consumer');
    });
    let count = 0;
    const code = await codeOf(async () => {
      for await (const _ of reader.batches(16)) {
        count += 1;
        if (count === 1) void reader.close();
      }
    });
    t.equal(code, 'CLOSED', `${kind}: the reader is closed midway`);
    t.ok(count >= 1 && count <= 2, 'what was read ahead may still come');
    await reader.close();
  }
});

// ---- limits ----

t.test('maxBatchBytes', async (t) => {
  for (const kind of kinds) {
    const build = new PairWriter(kind, 'zstd');
    build.appendSync(pairs(0, 100));
    build.writer.closeSync();
    await using reader = open(build.path, { maxBatchBytes: 80 });
    const ten = upTo(10);
    t.equal(itemsOf(await reader.gather(ten)).length, 20, `${kind}: exactly as much`);
    for (const call of [
      () => reader.gather(upTo(11)),
      () => reader.gatherSync(upTo(11)),
      () => reader.slice(0, 11),
      () => reader.slice(),
    ]) {
      const error = await failureOf(call);
      t.equal(outcomeOfError(error), 'LoaderxError TOO_LARGE', kind);
      t.equal(error.path, build.path);
    }
    t.equal(
      await codeOf(async () => {
        for await (const _ of reader.batches(11)) t.fail('too large a batch came');
      }),
      'TOO_LARGE',
    );
    t.equal(itemsOf(reader.gatherSync(ten)).length, 20, 'the reader goes on');
    await using tiny = open(build.path, { maxBatchBytes: 7 });
    t.equal(await codeOf(() => tiny.record(0)), 'TOO_LARGE', `${kind}: one record`);
    t.equal(await codeOf(() => tiny.gather([])), 'ok', `${kind}: none`);
  }
  const at = largeContainer('dense');
  for (const [value, expected] of [
    [0, 'RangeError INVALID_ARGUMENT'],
    [-1, 'RangeError INVALID_ARGUMENT'],
    [1.5, 'TypeError INVALID_ARGUMENT'],
    ['1', 'TypeError INVALID_ARGUMENT'],
    [Number.POSITIVE_INFINITY, 'TypeError INVALID_ARGUMENT'],
    [null, 'TypeError INVALID_ARGUMENT'],
  ] as const) {
    for (const opens of [open, Dense.open, Ragged.open]) {
      t.equal(
        await outcomeOf(() => opens(at, { maxBatchBytes: anyway(value) })),
        expected,
        String(value),
      );
    }
  }
  using huge = Dense.open(at, { maxBatchBytes: Number.MAX_SAFE_INTEGER });
  t.equal(huge.length, 64);
});

// ---- the iterables of a ragged append ----

class UserError extends Error {}

t.test('iterable: throwing in the first window leaves the writer as it was', async (t) => {
  for (const how of ['append', 'appendSync', 'async'] as const) {
    const build = new PairWriter('ragged');
    const writer = build.writer as RaggedWriter<'uint32'>;
    build.appendSync(pairs(0, 2));
    const mine = new UserError('mine');
    const error = await failureOf(() =>
      appendOf(writer, how, throwing(rowsOf(pairs(9, 100)), mine)),
    );
    t.equal(error, mine, `${how}: the very error`);
    t.equal(writer.length, 2);
    build.appendSync(pairs(2, 2));
    await writer.close();
    t.strictSame(await firsts(t, build.path), upTo(4));
  }
});

t.test('iterable: throwing after the first window ends the build', async (t) => {
  for (const how of ['append', 'appendSync', 'async'] as const) {
    const build = new PairWriter('ragged');
    const writer = build.writer as RaggedWriter<'uint32'>;
    build.appendSync(pairs(0, 2));
    const mine = new UserError('mine');
    const records = throwing(rowsOf(pairs(0, 40_000)), mine);
    t.equal(await failureOf(() => appendOf(writer, how, records)), mine, `${how}: the very error`);
    t.equal(writer.length, 2);
    for (const call of [() => build.append(pairs(2, 1)), () => writer.close()]) {
      const error = await failureOf(call);
      t.equal(outcomeOfError(error), 'LoaderxError BUILD_FAILED', how);
      t.equal(error.cause, mine, 'its cause');
      t.match(error.message, 'mine');
    }
    t.strictSame(beside(build.path), [], 'nothing is left');
  }
});

t.test('iterable: what waits behind a failed append is refused too', async (t) => {
  const build = new PairWriter('ragged');
  const writer = build.writer as RaggedWriter<'uint32'>;
  const mine = new UserError('mine');
  const outcomes = await Promise.allSettled([
    build.append(pairs(0, 5)),
    writer.append(throwing(rowsOf(pairs(5, 40_000)), mine) as Iterable<NdArray<'uint32'>>),
    build.append(pairs(9, 1)),
    writer.close(),
  ]);
  t.strictSame(
    outcomes.map((one) => (one.status === 'fulfilled' ? 'ok' : outcomeOfError(one.reason))),
    ['ok', 'Error', 'LoaderxError BUILD_FAILED', 'LoaderxError BUILD_FAILED'],
  );
  t.strictSame(beside(build.path), []);
});

function throwing(rows: readonly NdArray<'uint32'>[], error: Error): Generator<NdArray<'uint32'>> {
  return (function* () {
    yield* rows;
    throw error;
  })();
}

function appendOf(
  writer: RaggedWriter<'uint32'>,
  how: 'append' | 'appendSync' | 'async',
  records: Iterable<NdArray<'uint32'>>,
): unknown {
  if (how === 'appendSync') return writer.appendSync(records);
  if (how === 'append') return writer.append(records);
  return writer.append(
    (async function* () {
      yield* records;
    })(),
  );
}

t.test('iterable: record 40,000 wrong leaves the writer as it was', async (t) => {
  for (const how of ['append', 'appendSync', 'async'] as const) {
    const build = new PairWriter('ragged');
    const writer = build.writer as RaggedWriter<'uint32'>;
    build.appendSync(pairs(0, 10));
    let left = 0;
    const records = (function* () {
      try {
        yield* rowsOf(pairs(77, 40_000));
        yield anyway({ dtype: 'uint32', shape: [1, 1], data: new Uint32Array(1) });
        t.fail('nobody asks for more');
      } finally {
        left += 1;
      }
    })();
    const error = await failureOf(() => appendOf(writer, how, records));
    t.equal(outcomeOfError(error), 'RangeError INVALID_ARGUMENT', how);
    t.match(error.message, 'records[40000]');
    t.equal(left, 1, 'the iterable is left as by a for loop');
    t.equal(writer.length, 10);
    await build.append(pairs(10, 30));
    build.appendSync(pairs(40, 5));
    await writer.close();
    t.strictSame(await firsts(t, build.path), upTo(45));

    const clean = new PairWriter('ragged');
    clean.appendSync(pairs(0, 10));
    await clean.append(pairs(10, 30));
    clean.appendSync(pairs(40, 5));
    await clean.writer.close();
    for (const name of readdirSync(clean.path)) {
      const bytes = readFileSync(path.join(build.path, name));
      t.ok(bytes.equals(readFileSync(path.join(clean.path, name))), `${how}: ${name} is as if`);
    }
  }
});

t.test('a dense batch that is taken away midway leaves the writer as it was', async (t) => {
  const at = scratch.fresh();
  const writer = Dense.create(at, { codec: 'zstd', dtype: 'uint32', itemShape: [2 ** 18] });
  const one = ndarray('uint32', [1, 2 ** 18], new Uint32Array(2 ** 18).fill(1));
  await writer.append(one);
  const batch = ndarray('uint32', [40, 2 ** 18], new Uint32Array(40 * 2 ** 18));
  const running = writer.append(batch);
  detach(batch.data.buffer);
  t.equal(await outcomeOf(() => running), 'RangeError INVALID_ARGUMENT');
  t.equal(writer.length, 1);
  await writer.append(one);
  await writer.close();
  using reader = Dense.open(at);
  t.equal(reader.length, 2);
  t.ok((await reader.slice()).data.every((item) => item === 1));
});

t.test('a record that changes its size while it waits leaves the writer as it was', async (t) => {
  for (const bytes of [0, 1, 5]) {
    const at = scratch.fresh();
    const writer = Ragged.create(at, { codec: 'raw', dtype: 'uint8', ndim: 1 });
    await writer.append([ndarray('uint8', [2], Uint8Array.of(1, 2))]);
    const memory = resizable(4, 8);
    const last = {
      dtype: 'uint8' as const,
      shape: [4],
      // After it was looked at: it has to wait, since a window ends before it.
      get data(): Uint8Array<ArrayBuffer> {
        queueMicrotask(() => memory.resize(bytes));
        return new Uint8Array(memory);
      },
    };
    const records: NdArray<'uint8'>[] = new Array(32_768).fill(
      ndarray('uint8', [1], Uint8Array.of(3)),
    );
    const error = await failureOf(() => writer.append([...records, last]));
    t.equal(outcomeOfError(error), 'RangeError INVALID_ARGUMENT', `${bytes} bytes`);
    t.match(error.message, 'records[32768] was detached or resized');
    t.equal(writer.length, 1);
    await writer.close();
    using reader = Ragged.open(at);
    t.same([...reader.gatherSync([0]).values], [1, 2]);
  }
});

t.test('iterable: closing, aborting and appending from inside', async (t) => {
  const rows = rowsOf(pairs(0, 3));
  const inside: readonly (readonly [
    string,
    (writer: RaggedWriter<'uint32'>) => unknown,
    string,
    readonly string[],
  ])[] = [
    ['await close()', (writer) => writer.close(), 'LoaderxError CLOSED', ['store']],
    ['abort()', (writer) => writer.abort(), 'LoaderxError CLOSED', []],
    ['await append()', (writer) => writer.append(rows), 'LoaderxError BUSY', []],
    ['appendSync()', (writer) => writer.appendSync(rows), 'LoaderxError BUSY', []],
    ['closeSync()', (writer) => writer.closeSync(), 'LoaderxError BUSY', []],
    ['await asyncDispose', (writer) => writer[Symbol.asyncDispose](), 'LoaderxError CLOSED', []],
  ];
  for (const [what, act, expected, left] of inside) {
    const build = new PairWriter('ragged');
    const writer = build.writer as RaggedWriter<'uint32'>;
    build.appendSync(pairs(0, 1));
    const records = (async function* () {
      yield* rows;
      await act(writer);
      yield* rows;
    })();
    t.equal(await outcomeOf(() => writer.append(records)), expected, `async, ${what}`);
    await writer[Symbol.asyncDispose]();
    t.strictSame(beside(build.path), left, what);
  }

  for (const how of ['append', 'appendSync'] as const) {
    for (const [what, act, expected, left] of [
      ['abort()', (writer: RaggedWriter) => writer.abort(), 'LoaderxError CLOSED', []],
      ['appendSync()', (writer: RaggedWriter) => writer.appendSync(rows), 'LoaderxError BUSY', []],
      ['closeSync()', (writer: RaggedWriter) => writer.closeSync(), 'LoaderxError BUSY', []],
    ] as const) {
      const build = new PairWriter('ragged');
      const writer = build.writer as RaggedWriter;
      build.appendSync(pairs(0, 1));
      const records = (function* () {
        yield* rows;
        act(writer);
        yield* rows;
      })();
      t.equal(await outcomeOf(() => writer[how](records)), expected, `${how}, ${what}`);
      await writer[Symbol.asyncDispose]();
      t.strictSame(beside(build.path), left, what);
    }
  }

  const build = new PairWriter('ragged');
  const writer = build.writer as RaggedWriter<'uint32'>;
  const later: Promise<void>[] = [];
  await writer.append(
    (function* () {
      yield* rows;
      later.push(build.append(pairs(3, 2)));
    })(),
  );
  await Promise.all(later);
  await writer.close();
  t.strictSame(await firsts(t, build.path), upTo(5), 'an append from a generator comes after it');
});

t.test(
  'iterable: one that never goes on does not hold an abort',
  { timeout: 10_000 },
  async (t) => {
    const build = new PairWriter('ragged');
    const writer = build.writer as RaggedWriter<'uint32'>;
    const stuck = writer.append(
      (async function* () {
        yield* rowsOf(pairs(0, 3));
        await new Promise(() => {});
      })(),
    );
    const waiting = build.append(pairs(3, 1));
    const closing = writer.close();
    await soon();
    writer.abort();
    for (const promise of [stuck, waiting, closing]) {
      t.equal(await codeOf(() => promise), 'CLOSED');
    }
    await writer[Symbol.asyncDispose]();
    t.strictSame(beside(build.path), []);
  },
);

t.test('iterable: what breaks the iteration protocol', async (t) => {
  const build = new PairWriter('ragged');
  const writer = build.writer as RaggedWriter<'uint32'>;
  const broken: readonly (readonly [string, unknown])[] = [
    ['no iterator', { [Symbol.iterator]: () => undefined }],
    ['no result', { [Symbol.iterator]: () => ({ next: () => undefined }) }],
    ['no next', { [Symbol.iterator]: () => ({}) }],
    ['no async iterator', { [Symbol.asyncIterator]: () => 3 }],
    ['no async result', { [Symbol.asyncIterator]: () => ({ next: async () => 3 }) }],
  ];
  for (const [what, records] of broken) {
    const error = await failureOf(() => writer.append(anyway(records)));
    t.ok(error instanceof TypeError, what);
  }
  t.equal(
    await outcomeOf(() => writer.appendSync(anyway((async function* () {})()))),
    'TypeError INVALID_ARGUMENT',
    'an async iterable cannot be waited for',
  );
  const rejects = {
    [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new UserError('mine')) }),
  };
  t.match(await failureOf(() => writer.append(rejects)), { message: 'mine' });
  build.appendSync(pairs(0, 1));
  await writer.close();
  t.strictSame(await firsts(t, build.path), [0], 'the writer went on');
});

t.test('a gathered batch as input: disposed midway, or of another kind', async (t) => {
  const at = largeContainer('ragged');
  await using reader = Ragged.open(at, { dtype: 'uint32' });
  const batch = reader.gatherSync(upTo(64).concat(upTo(64), upTo(64)));
  const copyAt = scratch.fresh();
  const writer = Ragged.create(copyAt, { codec: 'raw', dtype: 'uint32', ndim: 1 });
  const running = writer.append(batch);
  batch[Symbol.dispose]();
  t.match(
    await codeOf(() => running),
    /^(CLOSED|INVALID_ARGUMENT)$/,
    'disposed while it is appended',
  );
  t.equal(writer.length, 0);
  t.equal(await codeOf(() => writer.append(batch)), 'CLOSED', 'disposed before');
  const again = reader.gatherSync([1, 2, 3]);
  await writer.append(again);
  writer.appendSync(again);
  await writer.close();
  await using copy = Ragged.open(copyAt, { dtype: 'uint32' });
  const expected = reader.gatherSync([1, 2, 3, 1, 2, 3]).values;
  t.ok(sameItems((await copy.slice()).values, expected));
  const other = Ragged.create(scratch.fresh(), { codec: 'raw', dtype: 'int32', ndim: 1 });
  t.equal(await outcomeOf(() => other.append(anyway(again))), 'TypeError INVALID_ARGUMENT');
  const deeper = Ragged.create(scratch.fresh(), { codec: 'raw', dtype: 'uint32', ndim: 2 });
  t.equal(await outcomeOf(() => deeper.append(again)), 'TypeError INVALID_ARGUMENT');
  other.abort();
  deeper.abort();
});

// ---- errors ----

t.test('errors are JSON-safe (B35)', async (t) => {
  const errors = [
    await failureOf(() => open(scratch.fresh())),
    await failureOf(() => open(largeContainer('dense')).gather([99])),
    await failureOf(() => open(largeContainer('dense')).gather(BigUint64Array.of(2n ** 60n))),
    await failureOf(() => open(largeContainer('dense'), { maxBatchBytes: 1 }).gather([0])),
    await failureOf(() => Dense.create(scratch.fresh(), anyway({}))),
  ];
  for (const error of errors) {
    const record = JSON.parse(JSON.stringify(error)) as Record<string, unknown>;
    t.equal(record.code, error.code);
    t.equal(record.message, error.message);
    t.equal(record.name, error.name);
  }
  t.equal(errors[0] instanceof LoaderxError, true);
  t.equal(JSON.parse(JSON.stringify(errors[2])).record, String(2n ** 60n));
});

t.test('what is printed or made JSON is what a container says about itself', (t) => {
  const common = ['path', 'dtype', 'codec', 'dataShards', 'hasDict', 'dialect', 'kind'];
  for (const kind of ['dense', 'ragged'] as const) {
    using reader = open(largeContainer(kind));
    const own = kind === 'dense' ? 'itemShape' : 'ndim';
    const facts = JSON.parse(JSON.stringify(reader)) as Record<string, unknown>;
    t.same(Object.keys(facts).sort(), [...common, 'length', own].sort());
    for (const [name, value] of Object.entries(facts)) {
      t.same(value, (reader as unknown as Record<string, unknown>)[name], name);
    }
    const text = inspect(reader, { depth: 9 });
    t.ok(text.split('\n').length < 20);
    t.match(text, /StoreReader \{/);
    t.throws(() => structuredClone(reader), 'it cannot be sent to another thread');
  }
  const writer = Ragged.create(scratch.fresh(), { codec: 'raw', dtype: 'int8', ndim: 1 });
  t.same(Object.keys(JSON.parse(JSON.stringify(writer))).sort(), [...common, 'ndim'].sort());
  t.ok(inspect(writer, { depth: 9 }).split('\n').length < 20);
  writer.abort();
  t.end();
});

t.test('the event loop runs on while a gather works', async (t) => {
  await using reader = open(largeContainer('dense'));
  const running = reader.gather(upTo(3000).map((index) => index % 64));
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 1);
  await running;
  clearInterval(timer);
  t.ok(ticks >= 2, `timers fired ${ticks} times`);
});
