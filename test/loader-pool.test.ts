// Transforms in a pool of threads: what crosses, what fails, what ends. The pools are in a process of
// plain JavaScript (support/loaders.mjs), where starting a thread is quick.

import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import * as loaderx from '../ts/index.js';
import { pack, packThrown, unpack, unpackThrown } from '../ts/loader/crossing.js';
import { answerOf } from './support/child.js';
import { limitMs } from './support/limits.js';
import { Scratch } from './support/scratch.js';
import { buildStreams, closeStreams, idsOf, openStreams } from './support/streams.mjs';

const scratch = new Scratch(t);
const root = scratch.fresh('data');
await buildStreams(loaderx, root, 1003);

t.test('a packed batch is posted without copying, and comes out whole', async (t) => {
  const streams = openStreams(loaderx, root);
  const loader = new loaderx.DataLoader(streams, { batchSize: 500 });
  const { value: batch } = await loader.next();
  if (batch === undefined) throw new Error('no batch');
  const ids = idsOf(batch);
  const { packed, memory } = pack({ deep: [batch], name: 'x' });
  const buffers = [batch.image.data.buffer, batch.text.values.buffer];
  for (const buffer of buffers) t.ok(memory.has(buffer as ArrayBuffer), 'its memory is listed');
  const arrived = structuredClone(packed, { transfer: [...memory] });
  for (const buffer of buffers) t.equal(buffer.byteLength, 0, 'and moved');
  const value = unpack(arrived) as { deep: [typeof batch]; name: string };
  t.equal(value.name, 'x');
  const [out] = value.deep;
  t.strictSame(idsOf(out), ids);
  t.equal(out.text.pad({ value: -1 }).data.shape[0], 500);
  out[Symbol.dispose]();
  t.equal(out.image.data.length, 0);
  await loader.close();
  await closeStreams(streams);
});

t.test('every dtype crosses as it is', async (t) => {
  const dtypes = ['bool', 'int64', 'float16', 'complex64', 'numpy:>f4', 'numpy:|S5'] as const;
  for (const dtype of dtypes) {
    const path = scratch.fresh();
    const writer = loaderx.Ragged.create(path, { dtype, ndim: 2, codec: 'raw' });
    const itemBytes = {
      bool: 1,
      int64: 8,
      float16: 2,
      complex64: 8,
      'numpy:>f4': 4,
      'numpy:|S5': 5,
    }[dtype];
    const bytes = Uint8Array.from({ length: 6 * itemBytes }, (_, at) => at % 2);
    const records = [3, 1, 2].map((rows) => {
      const part = bytes.slice(0, rows * itemBytes);
      return { dtype, shape: [1, rows], data: dataOf(dtype, part) };
    });
    await writer.append(records as never);
    await writer.close();
    const reader = loaderx.Ragged.open(path);
    const batch = await reader.gather([2, 0, 1]);
    const before = batch.toArray().map(({ shape, data }) => [shape, hex(data)]);
    const { packed, memory } = pack(batch);
    const out = unpack(structuredClone(packed, { transfer: [...memory] })) as typeof batch;
    t.strictSame(
      out.toArray().map(({ shape, data }) => [shape, hex(data)]),
      before,
      dtype,
    );
    t.equal(out.dtype, dtype);
    await reader.close();
  }
});

/** The typed array that a dtype wants, over a copy of these bytes. */
function dataOf(dtype: string, bytes: Uint8Array): ArrayBufferView {
  const buffer = bytes.slice().buffer;
  if (dtype === 'int64') return new BigInt64Array(buffer);
  if (dtype === 'float16') return new Uint16Array(buffer);
  if (dtype === 'complex64') return new Float32Array(buffer);
  return new Uint8Array(buffer);
}

function hex({ buffer, byteOffset, byteLength }: ArrayBufferView): string {
  return Buffer.from(buffer, byteOffset, byteLength).toString('hex');
}

t.test('packing leaves the value as it is, and finds memory wherever it can be', async (t) => {
  const own = Symbol('own');
  const plain = { a: [1, { b: 'x' }], d: new Date(3), [own]: 1 };
  t.equal(pack(plain).packed.value, plain, 'what has no batch is not copied');
  class Holder {
    readonly data = new Float32Array(3);
  }
  const views = {
    array: new Uint8Array(3),
    nested: [{ deep: new Float64Array(2) }],
    map: new Map([[new Int8Array(1), new Int16Array(1)]]),
    set: new Set([new BigInt64Array(1)]),
    holder: new Holder(),
    view: new DataView(new ArrayBuffer(5)),
    buffer: new ArrayBuffer(6),
    error: new Error('e', { cause: new Uint32Array(1) }),
  };
  const { memory, pooled } = pack(views);
  const sizes = [...memory].map(({ byteLength }) => byteLength).sort((a, b) => a - b);
  t.strictSame(sizes, [1, 2, 3, 4, 5, 6, 8, 12, 16]);
  t.equal(pooled.size, 0);
  const small = Buffer.from('small');
  t.ok(pack(small).pooled.has(small.buffer as ArrayBuffer), 'a part of a pool');
  t.equal(pack(new SharedArrayBuffer(8)).memory.size, 0, 'shared memory stays');
  const cycle: { self?: unknown } = {};
  cycle.self = cycle;
  t.equal(pack(cycle).packed.value, cycle);
});

t.test('errors cross with what they have', async (t) => {
  const cross = (thrown: unknown): unknown =>
    unpackThrown(structuredClone(packThrown(thrown, 'the transform')));
  const cause = new RangeError('inner');
  const error = Object.assign(new TypeError('outer', { cause }), { extra: { list: [1] } });
  const out = cross(error) as typeof error;
  t.ok(out instanceof TypeError);
  t.equal(out.message, 'outer');
  t.equal(out.stack, error.stack);
  t.strictSame(out.extra, { list: [1] });
  t.ok((out.cause as Error) instanceof RangeError);
  t.strictSame(Object.keys(out), ['extra'], 'what is out of sight stays so');
  const place = { path: '/p', record: 3, shard: 1, file: 'data_1.zr' };
  const mine = cross(new loaderx.LoaderxError('CODEC', 'bad frame', place, { cause }));
  t.ok(mine instanceof loaderx.LoaderxError);
  t.strictSame(JSON.parse(JSON.stringify(mine)), {
    name: 'LoaderxError',
    code: 'CODEC',
    message: 'bad frame',
    ...place,
  });
  for (const value of [undefined, null, 0, 'text', true, 3n, { a: 1 }]) {
    t.strictSame(cross(value), value);
  }
  t.match(cross(Symbol('s')), { code: 'TRANSFORM', message: /a symbol/ });
  let long = new Error('0');
  for (let depth = 1; depth < 100; depth += 1) long = new Error(String(depth), { cause: long });
  t.equal((cross(long) as Error).message, '99', 'an endless chain of causes is cut');
  const loop = new Error('loop');
  loop.cause = loop;
  t.equal((cross(loop) as Error).message, 'loop');
});

t.test('results come back as they were returned', async (t) => {
  t.strictSame(await answerOf(t, 'loaders', ['results', root]), { checked: 80 });
});

t.test('random numbers depend neither on workers nor on ranks', async (t) => {
  t.strictSame(await answerOf(t, 'loaders', ['randomness', root]), { checked: 5 });
});

t.test('what a transform throws in a worker (B37)', async (t) => {
  const seen = (await answerOf(t, 'loaders', ['errors', root])) as Record<string, unknown>[];
  const crossing = { name: 'LoaderxError', code: 'TRANSFORM', field: 'transform' };
  t.match(seen, [
    {
      name: 'Odd',
      message: 'odd',
      extra: 7,
      step: 1,
      hasStack: true,
      cause: { class: 'TypeError', message: 'why', cause: { thrown: 'text' } },
    },
    { thrown: 'undefined' },
    { thrown: null },
    { thrown: 'text' },
    { thrown: { frozen: true } },
    { class: 'Error', message: 'frozen', step: 11, hasStack: true },
    { class: 'RangeError', message: 'behind a proxy', step: 13 },
    {
      class: 'AggregateError',
      message: 'several',
      errors: [{ class: 'TypeError', message: 'one' }, { thrown: 2 }],
      step: 15,
    },
    { ...crossing, message: /throws\.mjs threw a symbol/, step: 17 },
    { ...crossing, message: /throws\.mjs threw a function/, step: 19 },
    { ...crossing, message: /throws\.mjs threw an object/, step: 21 },
    { name: 'AbortError', message: 'gone', step: 23 },
  ]);
  t.equal(seen.length, 12);
});

t.test('modules that do not load, results that do not cross, workers that die (B56)', async (t) => {
  const seen = await answerOf(t, 'loaders', ['deaths', root]);
  const typed = { name: 'LoaderxError', code: 'TRANSFORM', field: 'transform' };
  t.match(seen, {
    missing: { delivered: 0, error: { code: 'ERR_MODULE_NOT_FOUND', message: /no-such-module/ } },
    syntax: { delivered: 0, error: { class: 'SyntaxError' } },
    'throws at load': { delivered: 0, error: { class: 'RangeError', message: 'at load' } },
    'no default': { delivered: 0, error: { ...typed, message: /exports "transform"/ } },
    'default is no function': { delivered: 0, error: { ...typed, message: /is an object/ } },
    'returns a function': { delivered: 3, failedStep: 3, error: typed },
    'returns what it disposed of': { delivered: 3, failedStep: 3, error: typed },
    'returns its own array twice': { error: { ...typed, message: /Return a copy/ } },
    exit: { delivered: 3, failedStep: 3, error: { ...typed, message: /exit code 5/ } },
    'exit 0': { delivered: 3, failedStep: 3, error: { ...typed, message: /exit code 0/ } },
    uncaught: { delivered: 3, failedStep: 3, error: { class: 'TypeError', message: 'late' } },
    unhandled: { delivered: 3, failedStep: 3, error: { class: 'RangeError', message: 'nobody' } },
  });
});

t.test('transforms that never end are ended', async (t) => {
  const { slowestMs } = (await answerOf(t, 'loaders', ['stuck', root])) as { slowestMs: number };
  t.ok(slowestMs < limitMs(2000), `${Math.round(slowestMs)} ms`);
});

t.test('a program that comes as text has a pool too', async (t) => {
  const program = `
    import { loaderx } from ${JSON.stringify(new URL('./support/package.mjs', import.meta.url))};
    const image = loaderx.Dense.open(${JSON.stringify(`${root}/image`)});
    const transform = new URL(${JSON.stringify('data:text/javascript,export default () => 7')});
    const loader = new loaderx.DataLoader({ image }, { transform });
    console.log((await loader.next()).value);
    await loader.close();`;
  const { NODE_OPTIONS: _, ...env } = process.env;
  const { stdout, stderr } = await promisify(execFile)(
    process.execPath,
    ['--input-type=module', '-e', program],
    { env },
  );
  t.strictSame([stdout, stderr], ['7\n', '']);
});

t.test('a worker is told that its batch is not wanted any more', async (t) => {
  t.strictSame(await answerOf(t, 'loaders', ['signal', root]), { done: false, value: 100 });
});
