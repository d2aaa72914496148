// Datasets to containers: what Python's converter makes of the shared fixtures, datasets made by hand, and
// what a conversion leaves behind when it fails.
import { existsSync, mkdirSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { type ConvertProgress, convert } from '../ts/converter/convert.js';
import type { ColumnValues, Dataset, Feature, RowBatch } from '../ts/converter/dataset.js';
import type { NumberDType } from '../ts/dtype.js';
import { LoaderxError } from '../ts/errors.js';
import { ndarray } from '../ts/ndarray.js';
import { Dense } from '../ts/store/dense.js';
import { open } from '../ts/store/open.js';
import { Ragged } from '../ts/store/ragged.js';
import { datasetOf, differences, readCase } from './support/converter-fixtures.js';
import { fixture, withoutFixtures } from './support/fixtures.js';
import { failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

/** A new empty folder. */
function scratchOf(t: Test): string {
  return new Scratch(t).folder();
}

/** Which files a configuration means, and what a split may be called, is the hub's part. */
const ofTheHub =
  /^(configs-|names-splits|converted-branch|revisions)|^(empty-things no_columns|empty-things nothing)/;
/** Pictures have tests of their own. */
const pictures = /^images-|^whole-dataset|^nulls-lists image_/;

t.test('the shared fixtures of Python', { skip: withoutFixtures }, async (t) => {
  const folder = scratchOf(t);
  for (const name of readdirSync(fixture('converter')).sort()) {
    if (!existsSync(fixture(`converter/${name}/expected.json`))) continue;
    const { calls } = readCase(name);
    for (const [index, call] of calls.entries()) {
      const title = `${name} ${call.config ?? ''} ${call.revision} ${call.codec}`;
      if (ofTheHub.test(`${name} ${call.config ?? call.revision}`)) continue;
      if (pictures.test(title)) continue;
      const target = path.join(folder, `${name}-${index}`);
      const wanted = call.result ?? calls[call.result_as_call ?? -1]?.result;
      // Where the original is wrong: a loss that is refused, or rows that it cannot read.
      const mustFail = call.error !== undefined || /^(refuse|check)/.test(call.better ?? '');
      const mustPass = /^(skip|an empty row group)/.test(call.better ?? '');
      try {
        const dataset = await datasetOf(name, call);
        const names = name === 'names-odd' ? 'any' : 'portable';
        await convert(dataset, target, { codec: call.codec, names });
      } catch (error) {
        if (!(error instanceof LoaderxError)) throw error;
        t.ok(mustFail && !mustPass, `${title}: ${error.message}`);
        if (/nam(e|ing) the column and/.test(call.better ?? '')) {
          t.type(error.field, 'string', `${title} names the column`);
          if (/column and (the first )?row/.test(call.better ?? ''))
            t.type(error.record, 'number', `${title} names the row`);
        }
        t.notOk(existsSync(target), `${title} leaves no root`);
        continue;
      }
      t.ok(!mustFail || mustPass, `${title} converts`);
      if (mustPass) {
        t.strictSame(
          await numbersOf(path.join(target, 'train/x')),
          expectedRows(call.better ?? ''),
        );
        continue;
      }
      t.strictSame(
        readdirSync(target).sort(),
        Object.keys(wanted ?? {}).sort(),
        `${title}: splits`,
      );
      for (const [split, columns] of Object.entries(wanted ?? {})) {
        const there = readdirSync(path.join(target, split)).sort();
        t.strictSame(there, Object.keys(columns).sort(), `${title}: columns of ${split}`);
        for (const [column, entry] of Object.entries(columns)) {
          const found = differences(path.join(target, split, column), {
            ...entry,
            codec: call.codec,
          });
          t.strictSame(found, [], `${title}: ${split}/${column}`);
        }
      }
    }
  }
  const odd = (name: string): boolean => name.startsWith('names-odd');
  t.strictSame(
    leftovers(folder).filter((name) => !odd(name)),
    [],
  );
});

/** `records 0..4` or `the records are 0..2`: what the case's column x then holds is its row numbers' own. */
function expectedRows(better: string): number {
  return Number(/0\.\.(\d)/.exec(better)?.[1]) + 1;
}

async function numbersOf(container: string): Promise<number> {
  const reader = open(container);
  const { length } = reader;
  await reader.close();
  return length;
}

function leftovers(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
    path.basename(name).startsWith('.'),
  );
}

/** A dataset of these columns, in batches of some rows. */
function datasetFrom(features: Record<string, Feature>, batches: readonly RowBatch[]): Dataset {
  return {
    features: new Map(Object.entries(features)),
    async *batches() {
      yield* batches;
    },
  };
}

function batch(rowCount: number, columns: Record<string, RowBatchColumn>): RowBatch {
  return { rowCount, columns: new Map(Object.entries(columns)) };
}
type RowBatchColumn = RowBatch['columns'] extends ReadonlyMap<string, infer V> ? V : never;

const int32: Feature = { kind: 'value', dtype: 'int32' };

t.test('a dataset made by hand', async (t) => {
  const root = path.join(scratchOf(t), 'a/b/out');
  const told: ConvertProgress[] = [];
  const dataset = datasetFrom(
    {
      id: int32,
      pair: { kind: 'list', item: int32, length: 2 },
      list: { kind: 'list', item: { kind: 'value', dtype: 'float64' } },
      picture: { kind: 'array', shape: [null, null, 3], dtype: 'uint8' },
      label: { kind: 'class-label', names: ['no', 'yes'] },
    },
    [
      batch(2, {
        id: { values: Int32Array.of(1, -2) },
        pair: { values: Int32Array.of(1, 2, 3, 4) },
        list: { values: Float64Array.of(0.5, 1.5, 2.5), offsets: [Uint32Array.of(0, 1, 3)] },
        picture: {
          arrays: [
            ndarray('uint8', [1, 2, 3], Uint8Array.of(1, 2, 3, 4, 5, 6)),
            ndarray('uint8', [1, 1, 3], Uint8Array.of(7, 8, 9)),
          ],
        },
        label: { values: BigInt64Array.of(1n, -1n) },
      }),
      batch(0, {
        id: { values: new Int32Array(0) },
        pair: { values: new Int32Array(0) },
        list: { values: new Float64Array(0), offsets: [new Uint32Array(1)] },
        picture: { arrays: [] },
        label: { values: new BigInt64Array(0) },
      }),
      batch(1, {
        id: { values: Int32Array.of(3) },
        pair: { values: Int32Array.of(5, 6), offsets: [Uint32Array.of(0, 2)] },
        list: { values: Float64Array.of(-0), offsets: [Uint32Array.of(0, 1)] },
        picture: { arrays: [ndarray('uint8', [1, 1, 3], Uint8Array.of(0, 0, 1))] },
        label: { values: BigInt64Array.of(0n) },
      }),
    ],
  );
  const made = await convert(dataset, root, {
    codec: 'zstd',
    dataShards: 2,
    integrity: true,
    onProgress: (progress) => told.push(progress),
  });
  t.equal(made, root);
  const id = Dense.open(path.join(root, 'id'), { dtype: 'int32', itemShape: [], verify: 'digest' });
  t.strictSame([...id.gatherSync([0, 1, 2]).data], [1, -2, 3]);
  t.equal(id.dataShards, 2);
  const pair = Dense.open(path.join(root, 'pair'), { dtype: 'int32', itemShape: [2] });
  t.strictSame([...pair.gatherSync([2, 0]).data], [5, 6, 1, 2]);
  const list = Ragged.open(path.join(root, 'list'), { dtype: 'float64', ndim: 1 });
  t.strictSame(
    list
      .gatherSync([0, 1, 2])
      .toArray()
      .map(({ data }) => [...data]),
    [[0.5], [1.5, 2.5], [-0]],
  );
  const picture = Ragged.open(path.join(root, 'picture'), { dtype: 'uint8', ndim: 3 });
  t.strictSame(picture.record(0).shape, [1, 2, 3]);
  t.strictSame([...picture.record(1).data], [7, 8, 9]);
  const label = Dense.open(path.join(root, 'label'), { dtype: 'int64' });
  t.strictSame([...label.gatherSync([0, 1, 2]).data], [1n, -1n, 0n]);
  for (const reader of [id, pair, list, picture, label]) reader.closeSync();
  t.strictSame(
    told.map(({ recordsDone, recordsTotal, split }) => [recordsDone, recordsTotal, split]),
    [
      [2, 2, undefined],
      [2, 2, undefined],
      [3, 3, undefined],
    ],
  );
  t.equal(statSync(root).mode & 0o777, 0o777 & ~process.umask(), 'the root is as any folder');
  t.strictSame(leftovers(path.dirname(root)), []);
});

t.test('records do not depend on how batches fall', async (t) => {
  const folder = scratchOf(t);
  const rowCount = 70_001;
  const value = (row: number): number => Math.imul(row, 0x9e3779b1);
  const sizes = [4096, 32_768, 40_000, 70_001];
  for (const size of sizes) {
    const root = path.join(folder, String(size));
    const dataset: Dataset = {
      features: new Map<string, Feature>([
        ['x', int32],
        ['v', { kind: 'list', item: int32 }],
      ]),
      async *batches() {
        for (let from = 0; from < rowCount; from += size) {
          const count = Math.min(size, rowCount - from);
          const values = Int32Array.from({ length: count }, (_, index) => value(from + index));
          const offsets = Uint32Array.from({ length: count + 1 }, (_, index) => index);
          yield batch(count, { x: { values }, v: { values, offsets: [offsets] } });
        }
      },
    };
    await convert(dataset, root, { codec: 'raw', dataShards: 3 });
    const files = ['x', 'v'].map((column) => {
      const reader = open(path.join(root, column));
      const { length } = reader;
      const ids = [0, 1, 32_767, 32_768, 40_000, rowCount - 1];
      const [first] = [reader.gatherSync(ids)];
      const items = 'values' in first ? first.values : first.data;
      t.strictSame(
        [...(items as Int32Array)],
        ids.map((id) => value(id) | 0),
        `${size} ${column}`,
      );
      reader.closeSync();
      return length;
    });
    t.strictSame(files, [rowCount, rowCount]);
  }
});

t.test('columns, splits, strings', async (t) => {
  const folder = scratchOf(t);
  const text: Feature = { kind: 'value', dtype: 'string' };
  const bytes = ['a', 'größe', '日本'].map((word) => new TextEncoder().encode(word));
  const one = datasetFrom({ x: int32, text, also: { kind: 'unsupported', name: 'audio' } }, [
    batch(3, { x: { values: Int32Array.of(1, 2, 3) }, text: { bytes } }),
  ]);
  await t.rejects(convert(one, path.join(folder, 'a'), { codec: 'raw' }), {
    code: 'UNSUPPORTED',
    field: 'text',
  });
  await t.rejects(
    convert(one, path.join(folder, 'a'), { codec: 'raw', strings: 'utf8' }),
    { code: 'UNSUPPORTED', field: 'also' },
    'audio',
  );
  const two = {
    splits: new Map([
      ['train', one],
      ['test', one],
    ]),
  };
  const root = path.join(folder, 'b');
  await convert(two, root, {
    codec: 'zstd',
    strings: 'utf8',
    columns: ['text', 'x'],
    splits: ['test'],
  });
  t.strictSame(readdirSync(root), ['test']);
  t.strictSame(readdirSync(path.join(root, 'test')), ['text', 'x']);
  const reader = Ragged.open(path.join(root, 'test/text'), { dtype: 'uint8', ndim: 1 });
  t.strictSame(
    reader
      .gatherSync([0, 1, 2])
      .toArray()
      .map(({ data }) => new TextDecoder().decode(data)),
    ['a', 'größe', '日本'],
  );
  reader.closeSync();
  for (const [column, wanted] of [
    [[bytes[0], null], 'is null'],
    [[bytes[0], new Uint8Array(0)], 'is empty'],
  ] as const) {
    const dataset = datasetFrom({ text }, [batch(2, { text: { bytes: column as never } })]);
    await t.rejects(
      convert(dataset, path.join(folder, 'c'), { codec: 'raw', strings: 'utf8' }),
      { code: 'SOURCE', field: 'text', record: 1, message: new RegExp(wanted) },
      wanted,
    );
  }
  t.notOk(existsSync(path.join(folder, 'c')));
  t.strictSame(leftovers(folder), []);
});

t.test('what a batch cannot be, by column and row', async (t) => {
  const folder = scratchOf(t);
  const list: Feature = { kind: 'list', item: int32 };
  const deep: Feature = { kind: 'list', item: list };
  const pair: Feature = { kind: 'list', item: int32, length: 2 };
  const values = Int32Array.of(1, 2, 3);
  const cases: readonly (readonly [string, Feature, unknown, Record<string, unknown>])[] = [
    ['other array', int32, { values: Float64Array.of(1, 2) }, { message: /Int32Array is wanted/ }],
    ['too few', int32, { values: Int32Array.of(1) }, { message: /1 items came, and 2/ }],
    ['no offsets', list, { values }, { message: /Uint32Array is wanted as offsets\[0\]/ }],
    ['empty', list, { values, offsets: [Uint32Array.of(0, 3, 3)] }, { record: 11 }],
    ['falling', list, { values, offsets: [Uint32Array.of(0, 3, 2)] }, { message: /never fall/ }],
    ['beyond', list, { values, offsets: [Uint32Array.of(0, 1, 4)] }, { message: /speak of 4/ }],
    ['short pair', pair, { values, offsets: [Uint32Array.of(0, 2, 3)] }, { record: 11 }],
    [
      'uneven',
      deep,
      { values, offsets: [Uint32Array.of(0, 1, 3), Uint32Array.of(0, 1, 2, 3)] },
      undefined as never,
    ],
    [
      'uneven',
      deep,
      { values, offsets: [Uint32Array.of(0, 2, 3), Uint32Array.of(0, 2, 3, 3)] },
      { record: 10, message: /side by side/ },
    ],
    ['no arrays', int32, { arrays: [1, 2] }, { record: 10 }],
    ['none', int32, undefined, { message: /no column "x"/ }],
  ];
  for (const [what, feature, column, wanted] of cases) {
    const dataset = datasetFrom({ x: feature }, [
      batch(10, { x: fill(feature, 10) }),
      batch(2, column === undefined ? {} : { x: column as RowBatchColumn }),
    ]);
    const done = convert(dataset, path.join(folder, 'out'), { codec: 'raw' });
    if (wanted === undefined) {
      await done;
      const reader = open(path.join(folder, 'out/x'));
      t.equal(reader.length, 12);
      reader.closeSync();
      rmSync(path.join(folder, 'out'), { recursive: true });
      continue;
    }
    await t.rejects(done, { code: 'SOURCE', field: 'x', ...wanted }, what);
    t.strictSame(readdirSync(folder), [], what);
  }
});

/** Sound rows of a feature of int32. */
function fill(feature: Feature, rowCount: number): RowBatchColumn {
  const offsets: Uint32Array[] = [];
  let count = rowCount;
  for (let inner = feature; inner.kind === 'list'; inner = inner.item) {
    const { length = 1 } = inner;
    offsets.push(Uint32Array.from({ length: count + 1 }, (_, index) => index * length));
    count *= length;
  }
  return { values: new Int32Array(count), offsets };
}

t.test('options that cannot be', async (t) => {
  const folder = scratchOf(t);
  const target = path.join(folder, 'out');
  const dataset = datasetFrom({ x: int32 }, [batch(1, { x: { values: Int32Array.of(1) } })]);
  const wrong: readonly unknown[] = [
    {},
    { codec: 'gzip' },
    { codec: 'zstd_dict' },
    { codec: 'raw', dictBytes: Uint8Array.of(1) },
    { codec: 'raw', dataShards: 0 },
    { codec: 'raw', integrity: 1 },
    { codec: 'raw', columns: [] },
    { codec: 'raw', columns: ['x', 'x'] },
    { codec: 'raw', columns: 'x' },
    { codec: 'raw', splits: ['train'] },
    { codec: 'raw', strings: 'latin1' },
    { codec: 'raw', names: 'odd' },
    { codec: 'raw', onProgress: 1 },
    { codec: 'raw', signal: {} },
    { codec: 'raw', shards: 2 },
  ];
  for (const options of wrong) {
    await t.rejects(
      convert(dataset, target, options as never),
      { code: 'INVALID_ARGUMENT' },
      JSON.stringify(options),
    );
    t.strictSame(readdirSync(folder), [], 'nothing is written');
  }
  await t.rejects(convert(undefined as never, target, { codec: 'raw' }), {
    code: 'INVALID_ARGUMENT',
  });
  await t.rejects(convert({ features: {} } as never, target, { codec: 'raw' }), {
    code: 'INVALID_ARGUMENT',
  });
  await t.rejects(convert(dataset, target, { codec: 'raw', columns: ['y'] }), {
    code: 'SOURCE',
    field: 'y',
  });
  await t.rejects(convert({ splits: new Map() }, target, { codec: 'raw' }), { code: 'SOURCE' });
  await t.rejects(convert(datasetFrom({ x: int32 }, []), target, { codec: 'raw' }), {
    code: 'SOURCE',
    message: /no rows/,
  });
  t.strictSame(readdirSync(folder), []);
});

t.test('names are held to the rules of all systems, before anything is written', async (t) => {
  const folder = scratchOf(t);
  const target = path.join(folder, 'out');
  const dataset = (...columns: string[]): Dataset =>
    datasetFrom(Object.fromEntries(columns.map((column) => [column, int32])), []);
  const splits = (name: string) => ({ splits: new Map([[name, dataset('x')]]) });
  const never = [
    '',
    '.',
    '..',
    '../../x',
    'a/../../x',
    '/abs',
    '\\\\h\\s',
    'a\0b',
    'n'.repeat(201),
  ];
  const unportable = ['C:\\x', 'C:x', 'D:x', 'a:b', 'con', 'NUL', 'aux.txt', 'com1', 'LPT¹.x'];
  unportable.push('a\nb', 'a\u0085', 'x.', 'x ', 'q?', '<', '"', '|', '*', '__proto__');
  for (const name of [...never, ...unportable]) {
    const odd = new Map([[name, int32]]);
    for (const each of [{ ...dataset('x'), features: odd }, splits(name)]) {
      await t.rejects(
        convert(each, target, { codec: 'raw' }),
        { code: 'SOURCE', field: name, message: /folder/ },
        JSON.stringify(name),
      );
    }
  }
  for (const [one, other] of [
    ['a', 'A'],
    ['größe', 'GRÖSSE'.replace('SS', 'ẞ')],
    ['é', 'e\u0301'],
  ] as const) {
    await t.rejects(convert(dataset(one, other), target, { codec: 'raw' }), {
      code: 'SOURCE',
      message: /one name/,
    });
  }
  t.strictSame(readdirSync(folder), []);
  const fine = ['a.b', '...x', '.hidden', 'with space', '日本語', '-rf', '~', '%2F', 'constructor'];
  const data = datasetFrom(Object.fromEntries(fine.map((column) => [column, int32])), [
    batch(1, Object.fromEntries(fine.map((column) => [column, { values: Int32Array.of(1) }]))),
  ]);
  await convert(data, target, { codec: 'raw' });
  t.strictSame(readdirSync(target).sort(), [...fine].sort());
});

t.test('the target is whole or not there', async (t) => {
  const folder = scratchOf(t);
  const target = path.join(folder, 'out');
  const one = batch(1, { x: { values: Int32Array.of(1) } });
  const dataset = datasetFrom({ x: int32 }, [one]);

  for (const make of [() => mkdirSync(target), () => writeFileSync(target, '')]) {
    make();
    await t.rejects(convert(dataset, target, { codec: 'raw' }), { code: 'EXISTS', path: target });
    t.strictSame(readdirSync(folder), ['out']);
    rmSync(target, { recursive: true });
  }

  const failure = new Error('the source fails');
  const failing: Dataset = {
    features: dataset.features,
    async *batches() {
      yield one;
      throw failure;
    },
  };
  await t.rejects(convert(failing, target, { codec: 'raw' }), failure);
  t.strictSame(readdirSync(folder), []);

  const stop = new AbortController();
  const endless: Dataset = {
    features: dataset.features,
    async *batches() {
      for (let count = 0; ; count += 1) {
        if (count === 5) stop.abort(new Error('enough'));
        yield one;
      }
    },
  };
  await t.rejects(convert(endless, target, { codec: 'raw', signal: stop.signal }), {
    code: 'ABORTED',
    cause: { message: 'enough' },
  });
  t.strictSame(readdirSync(folder), []);
  await t.rejects(convert(dataset, target, { codec: 'raw', signal: stop.signal }), {
    code: 'ABORTED',
  });

  // Two at once: the second is refused while the first is alive.
  let inside = false;
  const slow: Dataset = {
    features: dataset.features,
    async *batches() {
      inside = true;
      await t.rejects(convert(dataset, target, { codec: 'raw' }), { code: 'LOCKED' });
      yield one;
    },
  };
  await convert(slow, target, { codec: 'raw' });
  t.ok(inside);
  t.strictSame(readdirSync(folder), ['out']);
});

const numberTypes: readonly NumberDType[] = ['bool', 'int8', 'uint16', 'float16', 'float64'];

t.test('every number has its dtype', async (t) => {
  const folder = scratchOf(t);
  for (const dtype of numberTypes) {
    const target = path.join(folder, dtype);
    const constructors = {
      bool: Uint8Array,
      int8: Int8Array,
      uint16: Uint16Array,
      float16: Uint16Array,
      float64: Float64Array,
    };
    const values = new constructors[dtype as keyof typeof constructors](2);
    const dataset = datasetFrom({ x: { kind: 'value', dtype } }, [batch(2, { x: { values } })]);
    await convert(dataset, target, { codec: 'raw' });
    const reader = open(path.join(target, 'x'));
    t.equal(reader.dtype, dtype);
    reader.closeSync();
  }
});

t.test('what is no bool, and what are no bytes, is refused with its column', async (t) => {
  const scratch = new Scratch(t);
  const one = (feature: Feature, values: unknown): Dataset => ({
    features: new Map([['x', feature]]),
    async *batches() {
      yield { rowCount: 2, columns: new Map([['x', values as ColumnValues]]) };
    },
  });
  const bool: Feature = { kind: 'value', dtype: 'bool' };
  const text: Feature = { kind: 'value', dtype: 'string' };
  const cases: readonly (readonly [Feature, unknown, string])[] = [
    [bool, { values: Uint8Array.of(1, 7) }, 'value 1 is 7, and bool is 0 or 1'],
    [text, { bytes: ['abc', 'de'] }, 'value 0 must be a Uint8Array, got "abc"'],
    [text, { bytes: [Buffer.from('abc'), [1, 2]] }, 'value 1 must be a Uint8Array'],
    [text, { bytes: [Buffer.from('abc'), { length: 2 }] }, 'value 1 must be a Uint8Array'],
  ];
  for (const [feature, values, message] of cases) {
    const target = scratch.fresh();
    const failure = await failureOf(() =>
      convert(one(feature, values), target, { codec: 'raw', strings: 'utf8' }),
    );
    t.match(failure, { code: 'SOURCE', field: 'x' });
    t.ok(failure.message.includes(message), failure.message);
    t.strictSame(beside(target), []);
  }
});

t.test('a dataset that lies is told so, and leaves nothing', async (t) => {
  const folder = scratchOf(t);
  const target = path.join(folder, 'out');
  const sound = { rowCount: 1, columns: new Map([['x', { values: Int32Array.of(1) }]]) };
  const giving = (...steps: readonly unknown[]): unknown => ({
    async *[Symbol.asyncIterator]() {
      yield* steps;
    },
  });
  const cases: readonly (readonly [string, () => unknown, string])[] = [
    ['nothing', () => null, 'must give an async iterable of batches, got null'],
    ['a number', () => 7, 'must give an async iterable of batches, got 7'],
    ['an iterator that is none', () => ({ [Symbol.asyncIterator]: () => ({}) }), 'async iterable'],
    [
      'a step that is none',
      () => ({ [Symbol.iterator]: () => ({ next: () => 5 }) }),
      'must be an object, got 5',
    ],
    ['no batch', () => giving(sound, undefined), 'the batch from row 1 on must be {rowCount'],
    [
      'a column map that is none',
      () => giving({ rowCount: 1, columns: Object.create(Map.prototype) }),
      'must be {rowCount',
    ],
    [
      'a step that throws no error',
      () => ({
        [Symbol.iterator]: () => ({
          next: () => ({
            get done() {
              throw 'd';
            },
          }),
        }),
      }),
      'the dataset threw "d"',
    ],
    [
      'a batch that throws no error',
      () =>
        giving({
          get rowCount() {
            throw null;
          },
        }),
      'the dataset threw null',
    ],
    [
      'a null column',
      () => giving({ rowCount: 1, columns: new Map([['x', null]]) }),
      'has null as column "x"',
    ],
    ['a done that is none', () => giving({ ...sound, done: 5 }), 'done?: function'],
    [
      'nothing thrown, at once',
      () => {
        throw undefined;
      },
      'the dataset threw undefined',
    ],
    [
      'nothing thrown, later',
      async function* () {
        yield sound;
        throw undefined;
      },
      'the dataset threw undefined',
    ],
    [
      'memory that is taken away',
      async function* () {
        const data = Int32Array.of(1, 2);
        yield { rowCount: 2, columns: new Map([['x', { values: data }]]) };
        structuredClone(data.buffer, { transfer: [data.buffer] });
        yield sound;
      },
      'detached or resized before it was written',
    ],
  ];
  for (const [what, batches, message] of cases) {
    const dataset = { features: new Map([['x', int32]]), batches } as unknown as Dataset;
    const failure = await failureOf(() => convert(dataset, target, { codec: 'raw' }));
    t.match(failure, { code: 'SOURCE' }, what);
    t.ok(failure.message.includes(message), `${what}: ${failure.message}`);
    t.strictSame(readdirSync(folder), [], what);
  }
  const circle = { kind: 'list', item: undefined as unknown };
  circle.item = circle;
  const knot = { kind: 'struct', fields: new Map<string, unknown>() };
  knot.fields.set('a', knot).set('b', knot);
  let deep: Feature = int32;
  for (let depth = 0; depth < 20_000; depth += 1) deep = { kind: 'list', item: deep };
  for (const [feature, message] of [
    [null, 'must be {kind, …} as Feature has it, got null'],
    [{ kind: 'struct' }, 'must be {kind, …}'],
    [{ kind: 'array', dtype: 'int8' }, 'must be {kind, …}'],
    [circle, 'one that holds itself'],
    [knot, 'one that holds itself'],
    [deep, 'nested more than 100 deep'],
    [{ kind: 'value', dtype: Symbol('x') }, 'must be {kind, …}'],
  ] as const) {
    const dataset = { ...datasetFrom({}, []), features: new Map([['x', feature]]) };
    const failure = await failureOf(() =>
      convert(dataset as unknown as Dataset, target, { codec: 'raw' }),
    );
    t.match(failure, { code: 'INVALID_ARGUMENT', field: 'dataset' });
    t.ok(failure.message.includes(message), failure.message);
  }
  t.strictSame(readdirSync(folder), []);
});

t.test('a rowCount that is wrong is an error, with and without parts', async (t) => {
  const folder = scratchOf(t);
  const target = path.join(folder, 'out');
  for (const rowCount of [8n, -1, 1.5, Number.NaN, '3']) {
    const dataset = { ...datasetFrom({ x: int32 }, []), rowCount } as unknown as Dataset;
    const failure = await failureOf(() => convert(dataset, target, { codec: 'raw' }));
    t.match(failure, { code: 'INVALID_ARGUMENT', field: 'dataset' }, String(rowCount));
  }
  for (const rowCount of [2, 4]) {
    const dataset = {
      ...datasetFrom({ x: int32 }, [batch(3, { x: { values: Int32Array.of(1, 2, 3) } })]),
      rowCount,
    };
    await t.rejects(convert(dataset, target, { codec: 'raw' }), {
      code: 'SOURCE',
      message: new RegExp(`has 3 rows, and its rowCount says ${rowCount}`),
    });
    t.strictSame(readdirSync(folder), []);
  }
  const short = {
    ...datasetFrom({ x: int32 }, [batch(3, { x: { values: Int32Array.of(1, 2, 3) } })]),
    rowCount: 9,
  };
  await t.rejects(convert(short, target, { codec: 'raw', part: { part: 1, of: 2 } }), {
    code: 'SOURCE',
  });
  t.strictSame(readdirSync(folder), [], 'no folder of parts without one');
});

t.test('what never settles is left behind once the signal says so', async (t) => {
  const folder = scratchOf(t);
  const target = path.join(folder, 'out');
  const never = (): Promise<never> => new Promise(() => {});
  const one = batch(1, { x: { values: Int32Array.of(1) } });
  for (const heedless of [
    { next: never, return: never },
    { next: async () => ({ done: false, value: one }), return: never },
    { next: never },
  ]) {
    const stop = new AbortController();
    let asked = 0;
    const dataset = {
      features: new Map([['x', int32]]),
      batches: () => ({
        [Symbol.asyncIterator]: () => ({
          ...heedless,
          next: () => {
            asked += 1;
            if (asked === 3 || heedless.next === never) setImmediate(() => stop.abort());
            return heedless.next();
          },
        }),
      }),
    } as unknown as Dataset;
    await t.rejects(convert(dataset, target, { codec: 'raw', signal: stop.signal }), {
      code: 'ABORTED',
    });
    t.strictSame(readdirSync(folder), []);
  }
  // One that is left since its batch is none, without a signal.
  const stubborn = {
    features: new Map([['x', int32]]),
    batches: () => ({
      [Symbol.asyncIterator]: () => ({ next: () => ({ done: false, value: null }), return: never }),
    }),
  } as unknown as Dataset;
  await t.rejects(convert(stubborn, target, { codec: 'raw' }), { code: 'SOURCE' });
  t.strictSame(readdirSync(folder), []);
  // One that heeds it is waited for.
  const stop = new AbortController();
  let isClosed = false;
  const heeding: Dataset = {
    features: new Map([['x', int32]]),
    async *batches(options) {
      try {
        yield one;
        setImmediate(() => stop.abort());
        await new Promise((_, reject) => {
          options?.signal?.addEventListener('abort', () => setTimeout(reject, 20));
        });
      } finally {
        isClosed = true;
      }
    },
  };
  await t.rejects(convert(heeding, target, { codec: 'raw', signal: stop.signal }), {
    code: 'ABORTED',
  });
  t.ok(isClosed);
});
