// Containers as Parquet files: every dtype and shape, bit for bit; what Parquet has not refused by name; and what
// pyarrow and datasets make of it.
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { arrowFeatures } from '../ts/converter/parquet/arrow-schema.js';
import { parquetFolder } from '../ts/converter/parquet.js';
import type { DType } from '../ts/dtype.js';
import { dtypeOf } from '../ts/dtype.js';
import { arrowSchema } from '../ts/exporters/arrow-schema.js';
import { exportParquet } from '../ts/exporters/parquet.js';
import { exportPictures } from '../ts/exporters/pictures.js';
import { importFiles } from '../ts/importers/import.js';
import { Dense, logicalDigest, type NdArray, open, Ragged } from '../ts/index.js';
import { bytesOf } from './support/hub.js';
import { codeOf, failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const raw = { codec: 'raw' } as const;

/** Items of every bit pattern: NaNs of all kinds, -0, the largest and the smallest. */
function items(dtype: DType, shape: readonly number[], seed: number): NdArray {
  const { itemBytes, constructorOf } = dtypeOf(dtype);
  const count = shape.reduce((product, size) => product * size, 1);
  const bytes = Uint8Array.from(bytesOf(count * itemBytes, seed));
  if (dtype === 'bool')
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = (bytes[at] ?? 0) & 1;
  // Minus zero, a NaN that signals, one with a payload.
  const odd = { float32: [0x80000000, 0x7f800001, 0xffc12345], float16: [0x80007c01] }[
    dtype as 'float32'
  ];
  if (odd !== undefined && bytes.length >= 12)
    new Uint32Array(bytes.buffer, 0, odd.length).set(odd);
  if (dtype === 'float64' && count >= 2) {
    new BigUint64Array(bytes.buffer, 0, 2).set([0x8000000000000000n, 0x7ff0000000000001n]);
  }
  return { dtype, shape, data: new constructorOf(bytes.buffer) } as NdArray;
}

async function makeDense(
  container: string,
  dtype: DType,
  count: number,
  shape: readonly number[],
): Promise<void> {
  const writer = Dense.create(container, { ...raw, dtype, itemShape: shape });
  await writer.append(items(dtype, [count, ...shape], 7));
  await writer.close();
}

async function makeRagged(
  container: string,
  dtype: DType,
  shapes: readonly (readonly number[])[],
): Promise<void> {
  const writer = Ragged.create(container, { ...raw, dtype, ndim: shapes[0]?.length ?? 1 });
  await writer.append(shapes.map((shape, index) => items(dtype, shape, index + 1)));
  await writer.close();
}

async function digestOf(container: string): Promise<string> {
  await using reader = open(container);
  return await logicalDigest(reader);
}

const dtypes = [
  ...['bool', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64'],
  ...['float16', 'float32', 'float64'],
] as readonly DType[];

const forms: readonly (readonly [string, number, readonly number[]])[] = [
  ['scalar', 1003, []],
  ['one', 5, [1]],
  ['line', 300, [7]],
  ['picture', 40, [5, 4, 3]],
  ['deep', 9, [2, 1, 3, 1, 2]],
];

/** All dtypes in a form, back and forth. */
async function thereAndBack(
  folder: string,
  file: string,
  options = {},
): Promise<readonly string[]> {
  const result = await exportParquet(folder, file, options);
  const target = scratch.fresh('back');
  await importFiles(file, target, raw);
  const differing: string[] = [];
  for (const { path: container } of result.containers) {
    const name = path.basename(container);
    if ((await digestOf(path.join(target, name))) !== (await digestOf(container)))
      differing.push(name);
  }
  return differing;
}

t.test('dense records of every dtype', async (t) => {
  for (const [form, count, shape] of forms) {
    const folder = scratch.folder();
    for (const dtype of dtypes) await makeDense(path.join(folder, dtype), dtype, count, shape);
    for (const compression of ['gzip', 'none'] as const) {
      const file = scratch.fresh('a.parquet');
      t.strictSame(
        await thereAndBack(folder, file, { compression }),
        [],
        `${form}, ${compression}`,
      );
    }
  }
});

t.test('ragged records of every dtype', async (t) => {
  const shapes = Array.from({ length: 60 }, (_, at) => [
    1 + (at % 5),
    1 + ((at * 7) % 11),
    1 + (at % 2),
  ]);
  for (const rank of [1, 2, 3]) {
    const folder = scratch.folder();
    for (const dtype of dtypes) {
      await makeRagged(
        path.join(folder, dtype),
        dtype,
        shapes.map((shape) => shape.slice(0, rank)),
      );
    }
    t.strictSame(await thereAndBack(folder, scratch.fresh('a.parquet')), [], `rank ${rank}`);
  }
  // All of one shape, and yet ragged.
  const folder = scratch.folder();
  await makeRagged(path.join(folder, 'same'), 'int16', [
    [2, 2],
    [2, 2],
  ]);
  t.strictSame(await thereAndBack(folder, scratch.fresh('a.parquet')), []);
});

t.test('several row groups and pages, and records larger than a page', async (t) => {
  const folder = scratch.folder();
  await makeDense(path.join(folder, 'large'), 'uint8', 40, [1300, 1300]);
  await makeDense(path.join(folder, 'small'), 'int64', 40, []);
  const file = scratch.fresh('a.parquet');
  t.strictSame(await thereAndBack(folder, file, { compression: 'none' }), []);
  const { splits } = await parquetFolder(file);
  t.match(splits.get('train'), { rowCount: 40 });
});

t.test('labels have their names, and a folder of pictures comes back', async (t) => {
  const folder = scratch.folder();
  await makeDense(path.join(folder, 'image'), 'uint8', 4, [2, 2]);
  const writer = Dense.create(path.join(folder, 'label'), {
    ...raw,
    dtype: 'int64',
    itemShape: [],
  });
  await writer.append({ dtype: 'int64', shape: [4], data: new BigInt64Array([0n, 1n, 1n, 0n]) });
  await writer.close();
  writeFileSync(path.join(folder, 'classes.json'), JSON.stringify({ label: ['cat', 'dog'] }));
  const file = scratch.fresh('a.parquet');
  t.strictSame(await thereAndBack(folder, file), []);
  const { splits } = await parquetFolder(file);
  t.match(splits.get('train')?.features.get('label'), {
    kind: 'class-label',
    names: ['cat', 'dog'],
  });
  writeFileSync(path.join(folder, 'classes.json'), '{');
  t.equal(await codeOf(() => exportParquet(folder, scratch.fresh('a.parquet'))), 'MALFORMED');
});

t.test('what Parquet has not, and what cannot be a table', async (t) => {
  const target = scratch.fresh('a.parquet');
  for (const dtype of ['complex64', 'complex128', 'numpy:>f4', 'numpy:<M8[ns]'] as const) {
    const container = scratch.fresh('x');
    await makeDense(container, dtype, 3, []);
    t.match(await failureOf(() => exportParquet(container, target)), {
      code: 'UNSUPPORTED',
      field: 'dtype',
      message: /Parquet has no /,
    });
  }
  const newer = scratch.fresh('x');
  const writer = Dense.create(newer, { ...raw, dtype: 'bfloat16', itemShape: [], dialect: '2.8' });
  await writer.append({ dtype: 'bfloat16', shape: [1], data: new Uint16Array(1) });
  await writer.close();
  t.equal(await codeOf(() => exportParquet(newer, target)), 'UNSUPPORTED');
  const truths = scratch.fresh('x');
  const odd = Dense.create(truths, { ...raw, dtype: 'bool', itemShape: [] });
  await odd.append({ dtype: 'bool', shape: [2], data: Uint8Array.of(1, 2) });
  await odd.close();
  t.match(await failureOf(() => exportParquet(truths, target)), {
    code: 'SOURCE',
    message: /a bool whose byte is 2/,
  });
  const folder = scratch.folder();
  await makeDense(path.join(folder, 'a'), 'int8', 3, []);
  await makeDense(path.join(folder, 'b'), 'int8', 4, []);
  t.match(await failureOf(() => exportParquet(folder, target)), {
    code: 'SOURCE',
    message: /has 3 records, and .* has 4/,
  });
  t.equal(await codeOf(() => exportParquet('no-such', target)), 'NOT_FOUND');
  const one = path.join(folder, 'a');
  t.equal(
    await codeOf(() => exportParquet(one, target, { compression: 'zip' as never })),
    'INVALID_ARGUMENT',
  );
  t.equal(
    await codeOf(() => exportParquet(one, target, { signal: AbortSignal.abort() })),
    'ABORTED',
  );
  t.strictSame(beside(target), [], 'nothing stays behind');
  await exportParquet(one, target);
  t.equal(await codeOf(() => exportParquet(one, target)), 'EXISTS');
  await exportParquet(path.join(folder, 'b'), target, { force: true });
  t.ok(existsSync(target));
});

t.test('the schema of Arrow is read as it is written', (t) => {
  const columns = dtypes.flatMap((dtype) =>
    [[], [null], [3], [null, 4, null], [1, 2, 3, 4]].map((lists, at) => ({
      name: `${dtype}${'é'.repeat(at)}`,
      dtype,
      lists,
    })),
  );
  const features = arrowFeatures(arrowSchema(columns, { key: 'value' }));
  for (const { name, dtype, lists } of columns) {
    let wanted: object = { kind: 'value', dtype };
    for (const length of [...lists].reverse()) {
      wanted = { kind: 'list', item: wanted, ...(length === null ? {} : { length }) };
    }
    t.strictSame(features?.get(name), wanted, name);
  }
  t.end();
});

t.test('a target that is no path', async (t) => {
  const container = scratch.fresh('x');
  await makeDense(container, 'int8', 2, []);
  for (const file of [undefined, null, 5, '', 'a\0b']) {
    t.equal(await codeOf(() => exportParquet(container, file as never)), 'INVALID_ARGUMENT');
  }
});

t.test('a container with damaged names of classes is closed again', async (t) => {
  const folder = scratch.folder();
  await makeDense(path.join(folder, 'label'), 'int64', 2, []);
  writeFileSync(path.join(folder, 'classes.json'), '{');
  const file = scratch.fresh('x.parquet');
  const failure = await failureOf(() => exportParquet(path.join(folder, 'label'), file));
  t.match(failure, { code: 'MALFORMED' });
  t.strictSame(beside(file), []);
});

t.test(
  'a record that grows past what a page’s header can tell',
  { skip: process.env.LOADERX_FULL !== '1' && 'LOADERX_FULL=1 takes the GiB that it wants' },
  async (t) => {
    const container = scratch.fresh('huge');
    const writer = Ragged.create(container, { ...raw, dtype: 'uint8', ndim: 1 });
    const count = 512 * 2 ** 20;
    await writer.append([{ dtype: 'uint8', shape: [count], data: new Uint8Array(count) }]);
    await writer.close();
    const file = scratch.fresh('huge.parquet');
    t.match(await failureOf(() => exportParquet(container, file)), {
      code: 'TOO_LARGE',
      message: /would have 21474836\d\d bytes in Parquet/,
    });
    t.strictSame(beside(file), []);
  },
);

t.test('a target that cannot be says what to do', async (t) => {
  const container = scratch.fresh();
  await makeDense(container, 'uint8', 2, [2, 2]);
  const taken = scratch.fresh('x.parquet');
  writeFileSync(taken, 'mine');
  t.match(await failureOf(() => exportParquet(container, taken)), {
    code: 'EXISTS',
    message: `${taken}: something is there already: force (--force) writes over it`,
  });
  t.match(await failureOf(() => exportPictures(container, taken)), {
    code: 'EXISTS',
    message: `${taken}: something is there already: name another folder`,
  });
  const folder = scratch.fresh('none');
  const lost = path.join(folder, 'x.parquet');
  t.match(await failureOf(() => exportParquet(container, lost)), {
    code: 'IO',
    osCode: 'ENOENT',
    message: `${lost}: writing it failed, its folder ${folder} is not there (ENOENT)`,
  });
  t.match(await failureOf(() => exportPictures(container, path.join(folder, 'x'))), {
    message: `its folder ${folder} is not there`,
  });
  const inside = path.relative(process.cwd(), path.join(container, 'x.parquet'));
  const { message } = (await failureOf(() => exportParquet(container, inside))) as Error;
  t.ok(message.startsWith(`${inside}: ${path.dirname(inside)} is a container`), 'as it was named');
});
