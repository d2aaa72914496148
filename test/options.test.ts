// What `create`, `open`, `close`, a loader and a conversion are told: each bound met exactly and passed by
// one, each kind of wrong value. Nothing is made here: checks come before that.
import t, { type Test } from 'tap';
import type { Feature } from '../ts/converter/dataset.js';
import { layoutOf } from '../ts/converter/layout.js';
import { assertNames } from '../ts/converter/names.js';
import { dtypeOf } from '../ts/dtype.js';
import { settingsOf, stepOf, streamsOf } from '../ts/loader/options.js';
import {
  batchBytesMaxOf,
  closeSettings,
  createSettings,
  itemShapeOf,
  ndimOf,
  verifyingOf,
} from '../ts/store/options.js';
import { streamOf } from '../ts/store/stream.js';

/** An error of one class, whose message says `text`. */
function refused(t: Test, run: () => unknown, name: string, text: string): void {
  try {
    run();
  } catch (error) {
    const { name: came, message } = error as Error;
    t.equal(came, name, message);
    t.ok(message.includes(text), `${message} says: ${text}`);
    return;
  }
  t.fail(`nothing is thrown that says: ${text}`);
}

const uint8 = dtypeOf('uint8');

// ---- containers ----

t.test('create: codec, shards, dialect, dictionary', async (t) => {
  for (const codec of ['raw', 'zstd'] as const) {
    t.match(createSettings({ codec }, uint8), { codec, dataShards: 4, dialect: '2.4' });
  }
  for (const codec of [undefined, null, 'RAW', 'lz4', 0]) {
    refused(t, () => createSettings({ codec }, uint8), 'TypeError', 'there is no default');
  }
  const create = (fields: object) => createSettings({ codec: 'raw', ...fields }, uint8);
  for (const dataShards of [1, 2, 254, 255]) t.equal(create({ dataShards }).dataShards, dataShards);
  for (const dataShards of [0, -1, 256]) {
    refused(t, () => create({ dataShards }), 'RangeError', `1 to 255, got ${dataShards}`);
  }
  for (const dataShards of [1.5, Number.NaN, '4', 4n, null]) {
    refused(t, () => create({ dataShards }), 'TypeError', 'dataShards must be an integer');
  }
  t.equal(create({ dialect: '2.8' }).dialect, '2.8');
  for (const dialect of ['2.6', 2.4, null]) {
    refused(t, () => create({ dialect }), 'TypeError', "dialect must be '2.4' or '2.8'");
  }
  const old = dtypeOf('numpy:>i4');
  t.equal(createSettings({ codec: 'raw' }, old).dialect, '2.4');
  refused(
    t,
    () => createSettings({ codec: 'raw', dialect: '2.8' }, old),
    'TypeError',
    "dialect: '2.4' has it",
  );
  const young = dtypeOf('bfloat16');
  t.equal(createSettings({ codec: 'raw', dialect: '2.8' }, young).dialect, '2.8');
  refused(t, () => createSettings({ codec: 'raw' }, young), 'TypeError', "dialect: '2.8' has it");
});

t.test('create: a dictionary is copied, for its codec alone', async (t) => {
  const dictBytes = Uint8Array.of(1, 2, 3);
  const { dict } = createSettings({ codec: 'zstd_dict', dictBytes }, uint8);
  dictBytes.fill(0);
  t.same(dict, Uint8Array.of(1, 2, 3));
  t.equal(createSettings({ codec: 'raw' }, uint8).dict, undefined);
  for (const codec of ['raw', 'zstd']) {
    refused(t, () => createSettings({ codec, dictBytes }, uint8), 'TypeError', 'takes no dict');
  }
  const lying = Object.defineProperty(new Uint8Array(4), 'length', { value: 9 });
  for (const wrong of [undefined, null, [1], 'x', new Int8Array(4), new ArrayBuffer(4), lying]) {
    const fields = { codec: 'zstd_dict', dictBytes: wrong };
    refused(t, () => createSettings(fields, uint8), 'TypeError', 'needs dictBytes, a Uint8Array');
  }
  const fields = { codec: 'zstd_dict', dictBytes: new Uint8Array(0) };
  refused(t, () => createSettings(fields, uint8), 'RangeError', 'dictBytes is empty');
});

t.test('create: shapes up to their bounds', async (t) => {
  t.same(itemShapeOf([], uint8), []);
  t.same(itemShapeOf([1], uint8), [1]);
  t.ok(Object.isFrozen(itemShapeOf([2, 3], uint8)));
  for (const wrong of [undefined, 3, '3', { length: 1, 0: 3 }, Uint32Array.of(3)]) {
    refused(t, () => itemShapeOf(wrong, uint8), 'TypeError', 'must be a list of integers');
  }
  for (const size of [1.5, '2', 2n, undefined, Number.POSITIVE_INFINITY]) {
    refused(t, () => itemShapeOf([1, size], uint8), 'TypeError', 'itemShape[1] must be an integer');
  }
  for (const size of [0, -1]) {
    refused(t, () => itemShapeOf([size], uint8), 'RangeError', `1 or more, got ${size}`);
  }
  const most = Array.from({ length: 63 }, () => 1);
  t.equal(itemShapeOf(most, uint8).length, 63);
  refused(t, () => itemShapeOf([...most, 1], uint8), 'RangeError', '63 is the most');
  t.same(itemShapeOf([2 ** 31], uint8), [2 ** 31]);
  refused(t, () => itemShapeOf([2 ** 31 + 1], uint8), 'RangeError', '2^31 is the most');
  refused(t, () => itemShapeOf([2 ** 30, 3], uint8), 'RangeError', '2^31 is the most');
});

t.test('dimensions, bytes of a batch, how to close, what to verify', async (t) => {
  t.equal(ndimOf(1), 1);
  t.equal(ndimOf(64), 64);
  for (const ndim of [0, 65, -1]) refused(t, () => ndimOf(ndim), 'RangeError', `got ${ndim}`);
  for (const ndim of [1.5, '1', 1n, undefined]) {
    refused(t, () => ndimOf(ndim), 'TypeError', 'ndim must be an integer');
  }
  t.equal(batchBytesMaxOf(undefined), 4 * 2 ** 30);
  t.equal(batchBytesMaxOf(1), 1);
  t.equal(batchBytesMaxOf(Number.MAX_SAFE_INTEGER), Number.MAX_SAFE_INTEGER);
  for (const bytes of [0, -1]) {
    refused(t, () => batchBytesMaxOf(bytes), 'RangeError', `1 or more, got ${bytes}`);
  }
  for (const bytes of [2 ** 53, 0.5, '1', null]) {
    refused(t, () => batchBytesMaxOf(bytes), 'TypeError', 'maxBatchBytes must be an integer');
  }
  t.same(closeSettings(undefined), { durable: false, integrity: false });
  t.same(closeSettings({ durable: true }), { durable: true, integrity: false });
  t.same(closeSettings({ durable: false, integrity: true }), { durable: false, integrity: true });
  for (const wrong of [null, 1, 'x', []]) {
    refused(t, () => closeSettings(wrong), 'TypeError', 'options must be an object');
  }
  refused(t, () => closeSettings({ durabel: true }), 'TypeError', 'known are durable, integrity');
  for (const wrong of [0, 'true', null]) {
    refused(t, () => closeSettings({ integrity: wrong }), 'TypeError', 'must be true or false');
  }
  t.equal(verifyingOf(undefined), 'none');
  t.equal(verifyingOf('digest'), 'all');
  for (const wrong of [true, 'all', null]) {
    refused(t, () => verifyingOf(wrong), 'TypeError', "verify must be 'digest'");
  }
});

// ---- loaders ----

t.test('a loader: what it does unless told otherwise', async (t) => {
  const settings = {
    ...{ batchSize: 256, mode: 'cyclic', seed: 42n, step: 0, prefetch: 4, maxBytes: undefined },
    ...{ order: 'step', once: false, signal: undefined, transform: undefined },
    ...{ shard: { rank: 0, world: 1, uneven: 'allow' }, transformWorkers: 4 },
  };
  t.strictSame(settingsOf(undefined), settings);
  t.strictSame(settingsOf({}), settings);
  t.strictSame(settingsOf({ maxBytes: 9 }), { ...settings, maxBytes: 9, prefetch: 1024 });
  t.strictSame(settingsOf({ maxBytes: 9, prefetch: 2 }), { ...settings, maxBytes: 9, prefetch: 2 });
  t.strictSame(settingsOf({ once: true }), { ...settings, once: true, mode: 'sequential' });
});

t.test('a loader: options that are none', async (t) => {
  for (const wrong of [null, 1, 'x', [], () => 0]) {
    refused(t, () => settingsOf(wrong), 'TypeError', 'options must be an object');
  }
  refused(t, () => settingsOf({ batchsize: 1 }), 'TypeError', 'there is no option "batchsize"');
  refused(t, () => settingsOf({ seed: null }), 'TypeError', 'seed is null: leave it out');
});

t.test('a loader: numbers and their bounds', async (t) => {
  const most = Number.MAX_SAFE_INTEGER;
  for (const field of ['batchSize', 'prefetch', 'maxBytes'] as const) {
    for (const value of [1, most]) t.equal(settingsOf({ [field]: value })[field], value);
    for (const value of [0, -1, most + 1]) {
      refused(t, () => settingsOf({ [field]: value }), 'RangeError', `${field} must be 1 to 2^53`);
    }
    for (const value of [0.5, Number.NaN, '1', true]) {
      refused(t, () => settingsOf({ [field]: value }), 'TypeError', 'must be an integer, got');
    }
    refused(t, () => settingsOf({ [field]: 1n }), 'TypeError', 'integer, as number, got 1n');
  }
  for (const step of [0, 1, most]) t.equal(stepOf(step), step);
  t.ok(Object.is(stepOf(-0), 0), 'no negative zero');
  for (const step of [-1, most + 1]) {
    refused(t, () => stepOf(step), 'RangeError', 'step must be 0 to 2^53 - 1');
  }
  for (const transformWorkers of [0, 1, 1024]) {
    t.equal(settingsOf({ transformWorkers }).transformWorkers, transformWorkers);
  }
  refused(t, () => settingsOf({ transformWorkers: 1025 }), 'RangeError', '0 to 1024, got 1025');
  refused(t, () => settingsOf({ transformWorkers: -1 }), 'RangeError', 'must be 0 to 2^53 - 1');
});

t.test('a loader: words, flags, modules', async (t) => {
  for (const order of ['step', 'completion'] as const) t.equal(settingsOf({ order }).order, order);
  refused(t, () => settingsOf({ order: 'steps' }), 'TypeError', "order must be 'step' or");
  t.equal(settingsOf({ once: false }).once, false);
  refused(t, () => settingsOf({ once: 1 }), 'TypeError', 'once must be true or false');
  t.equal(settingsOf({ mode: 'iid' }).mode, 'iid');
  t.equal(settingsOf({ once: true, mode: 'sequential' }).mode, 'sequential');
  refused(t, () => settingsOf({ once: true, mode: 'iid' }), 'TypeError', 'one pass in order');
  const transform = (): number => 1;
  t.equal(settingsOf({ transform }).transform, transform);
  const url = new URL('file:///x.mjs');
  t.equal(settingsOf({ transform: url }).transform, url);
  const foreign = { href: 'file:///x.mjs', protocol: 'file:' };
  t.equal(settingsOf({ transform: foreign }).transform, foreign as URL, 'of another realm');
  for (const wrong of [{ href: 'x' }, { protocol: 'x' }, {}, 1, true]) {
    refused(t, () => settingsOf({ transform: wrong }), 'TypeError', 'must be a function, or the');
  }
  refused(t, () => settingsOf({ transform: './x.js' }), 'TypeError', 'name a module as new URL');
});

t.test('a loader: its streams', async (t) => {
  const reader = (length: number): object => ({
    length,
    [streamOf]: { assertOpen: () => undefined },
  });
  const { named, length } = streamsOf({ a: reader(3), b: reader(3) });
  t.same(
    named.map(({ name }) => name),
    ['a', 'b'],
  );
  t.equal(length, 3);
  for (const wrong of [null, 1, 'x', [reader(1)], undefined]) {
    refused(t, () => streamsOf(wrong), 'TypeError', 'an object of open readers by name');
  }
  refused(t, () => streamsOf({}), 'RangeError', 'streams has no reader');
  refused(t, () => streamsOf({ a: reader(0) }), 'RangeError', 'are empty');
  refused(
    t,
    () => streamsOf({ a: reader(3), b: reader(4) }),
    'RangeError',
    '"a" has 3 records, and "b" has 4',
  );
  for (const wrong of [null, 1, {}]) {
    refused(t, () => streamsOf({ a: wrong }), 'TypeError', 'streams["a"] must be an open reader');
  }
  refused(t, () => streamsOf({ a: { append() {} } }), 'TypeError', 'close the writer, and open');
  try {
    streamsOf({ a: {} });
  } catch (error) {
    t.notOk(String(error).includes('close the writer'), 'said of writers alone');
  }
});

// ---- columns ----

t.test('a column: its container is decided by its type alone', async (t) => {
  const value = (dtype: string): Feature => ({ kind: 'value', dtype });
  const list = (item: Feature, length?: number): Feature =>
    length === undefined ? { kind: 'list', item } : { kind: 'list', item, length };
  const layout = (feature: Feature, strings: 'refuse' | 'utf8' = 'refuse'): unknown =>
    layoutOf('c', feature, strings);
  t.same(layout(value('int32')), { kind: 'dense', dtype: 'int32', itemShape: [] });
  t.same(layout({ kind: 'class-label' }), { kind: 'dense', dtype: 'int64', itemShape: [] });
  t.same(layout(list(value('int8'))), { kind: 'ragged', dtype: 'int8', sizes: [null] });
  t.same(layout(list(value('int8'), 3)), { kind: 'dense', dtype: 'int8', itemShape: [3] });
  t.same(layout(list(list(value('int8')), 3)), { kind: 'ragged', dtype: 'int8', sizes: [3, null] });
  const array = (shape: (number | null)[]): Feature => ({ kind: 'array', shape, dtype: 'uint8' });
  t.same(layout(array([2, 3])), { kind: 'dense', dtype: 'uint8', itemShape: [2, 3] });
  t.same(layout(array([null, 3])), { kind: 'ragged', dtype: 'uint8', sizes: [null, 3] });
  t.same(layout(list(array([2]), 4)), { kind: 'dense', dtype: 'uint8', itemShape: [4, 2] });
  const image: Feature = { kind: 'image', mode: 'RGB' };
  t.same(layout(image), { kind: 'image', mode: 'RGB', isList: false });
  t.same(layout(list(image)), { kind: 'image', mode: 'RGB', isList: true });
  t.same(layout(value('string'), 'utf8'), { kind: 'text' });
  refused(t, () => layout(value('string')), 'LoaderxError', "strings: 'utf8' stores their bytes");
  for (const feature of [
    list(image, 3),
    list(list(image)),
    list(value('string')),
    value('binary'),
    value('timestamp[ns]'),
    { kind: 'struct', fields: new Map() } as Feature,
    { kind: 'unsupported', name: 'Audio' } as Feature,
  ]) {
    refused(t, () => layout(feature, 'utf8'), 'LoaderxError', 'which no container holds');
  }
  for (const feature of [value('null'), list(value('null'))]) {
    refused(t, () => layout(feature), 'LoaderxError', 'row 0: is null, as all of its rows are');
  }
  for (const feature of [list(value('int8'), 0), array([0]), array([2, 0])]) {
    refused(t, () => layout(feature), 'LoaderxError', 'its records are empty');
  }
});

t.test('names of columns: what no rule takes, and how long one may be', async (t) => {
  for (const rule of ['portable', 'any'] as const) {
    for (const [name, fault] of [
      ['', 'is empty'],
      ['.', 'is a folder of its own'],
      ['..', 'is a folder of its own'],
      ['a/b', 'has a separator of paths in it'],
      ['a\\b', 'has a separator of paths in it'],
      ['a\0', 'has a NUL character in it'],
      ['\ud800', 'has half a surrogate pair in it'],
      ['x'.repeat(201), 'has 201 bytes, and 200 is the most'],
      [`${'ä'.repeat(100)}x`, 'has 201 bytes'],
    ] as const) {
      const run = (): void => assertNames('column', ['good', name], rule);
      refused(t, run, 'LoaderxError', `it ${fault}`);
      try {
        run();
      } catch (error) {
        t.notMatch((error as Error).message, "names: 'any'", 'no rule takes it');
      }
    }
    assertNames('column', ['x'.repeat(200), 'ä'.repeat(100), '...x', 'b'], rule);
  }
  if (process.platform === 'win32') return;
  for (const [name, fault] of [
    ['a\t', 'has a control character'],
    ['c:x', 'begins with a drive letter'],
    ['a?', 'has a sign in it that Windows refuses'],
    ['a.', 'ends with a dot or a blank'],
    ['NUL.txt', 'is reserved on Windows'],
    ['__proto__', 'is no name for a property'],
  ] as const) {
    const run = (): void => assertNames('split', [name], 'portable');
    refused(t, run, 'LoaderxError', `it ${fault}`);
    refused(t, run, 'LoaderxError', "names: 'any' takes it on this system");
    assertNames('split', [name], 'any');
  }
  const both = (): void => assertNames('column', ['Straße', 'STRASSE'], 'portable');
  refused(t, both, 'LoaderxError', 'are one name on systems that fold letters');
  assertNames('column', ['Straße', 'STRASSE'], 'any');
});
