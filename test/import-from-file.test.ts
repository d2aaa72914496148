// Arrays that lie in a file as a raw container stores them: the core copies them from file to file. The containers
// are those that go through memory, and a file that changes meanwhile is an error that names it.
import { createHash, randomBytes } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  statSync,
  truncateSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import t from 'tap';
import type { Dataset } from '../ts/converter/dataset.js';
import { fileColumnsOf, isFileColumn, withFileColumns } from '../ts/converter/file-column.js';
import { convert } from '../ts/converter.js';
import { fileSource } from '../ts/importers/bytes.js';
import { importFiles } from '../ts/importers/import.js';
import { npyDataset } from '../ts/importers/npy.js';
import { npyHeader } from '../ts/importers/npy-header.js';
import { Dense, verify } from '../ts/index.js';
import { appendFileRecords } from '../ts/store/dense.js';
import { codeOf, failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

const raw = { codec: 'raw' } as const;

function npyFile(
  dtype: Parameters<typeof npyHeader>[0],
  shape: readonly number[],
  bytes: Uint8Array,
): string {
  const file = scratch.fresh('x.npy');
  writeFileSync(file, Buffer.concat([npyHeader(dtype, shape), bytes]));
  return file;
}

/** An array of zeros, of so many records of 1 MiB, which takes no room on disk. */
function largeFile(count: number): string {
  const file = npyFile('uint8', [count, 2 ** 20], Buffer.alloc(0));
  truncateSync(file, statSync(file).size + count * 2 ** 20);
  return file;
}

/** The bytes of every file of a container, by name. */
function filesOf(container: string): Record<string, string> {
  const found: Record<string, string> = {};
  for (const name of readdirSync(container).sort()) {
    const bytes = readFileSync(path.join(container, name));
    found[name] = `${bytes.length} ${createHash('sha256').update(bytes).digest('hex')}`;
  }
  return found;
}

/** The dataset of a file, whose rows always come through memory. */
async function throughMemory(file: string): Promise<Dataset> {
  const dataset = await npyDataset(await fileSource(file), 'x');
  return {
    ...dataset,
    batches: ({ columns, signal } = {}) =>
      dataset.batches({
        ...(columns === undefined ? {} : { columns }),
        ...(signal === undefined ? {} : { signal }),
      }),
  };
}

t.test('containers are those of rows that go through memory', async (t) => {
  const cases: readonly (readonly [Parameters<typeof npyHeader>[0], readonly number[], number])[] =
    [
      ['uint8', [1], 1],
      ['uint8', [70_000], 1],
      ['uint8', [700, 3], 3],
      ['float16', [33_000, 4], 8],
      ['float64', [1000], 8],
      ['complex64', [500, 2], 16],
      ['int32', [3000, 14, 14], 784],
      ['uint8', [40, 150_528], 150_528],
      ['uint8', [3, 2 ** 21 + 1], 2 ** 21 + 1],
      ['bool', [1000, 2], 2],
    ];
  for (const [dtype, shape, recordBytes] of cases) {
    const bytes = randomBytes((shape[0] ?? 0) * recordBytes);
    if (dtype === 'bool')
      for (const index of bytes.keys()) bytes[index] = bytes.readUInt8(index) & 1;
    const file = npyFile(dtype, shape, bytes);
    for (const dataShards of [1, 4, 7]) {
      const form = { ...raw, dataShards, integrity: true };
      const [one, other] = [scratch.fresh('one'), scratch.fresh('other')];
      const progress: number[] = [];
      await importFiles(file, one, { ...form, onProgress: (at) => progress.push(at.bytesDone) });
      await convert(await throughMemory(file), other, form);
      const name = `${dtype} [${shape}], ${dataShards} shards`;
      t.strictSame(filesOf(one), filesOf(path.join(other, 'x')), name);
      t.equal(progress.at(-1), bytes.length, 'all bytes are told of');
    }
  }
});

t.test('parts, and columns side by side', async (t) => {
  const bytes = randomBytes(1000 * 640);
  const file = npyFile('float32', [1000, 160], bytes);
  for (const part of [0, 1, 2]) {
    const [one, other] = [scratch.fresh('one'), scratch.fresh('other')];
    const options = { ...raw, part: { part, of: 3 } };
    const made = await importFiles({ x: file, y: file }, one, options);
    await convert(await throughMemory(file), other, options);
    const folder = path.basename(made.path);
    const wanted = filesOf(path.join(other, folder, 'x'));
    for (const column of ['x', 'y']) t.strictSame(filesOf(path.join(one, folder, column)), wanted);
  }
});

t.test('only who stores rows as they are is given their place', async (t) => {
  const asked = (column: string) => withFileColumns({}, new Set([column]));
  const isPlace = async (file: string, column: string): Promise<boolean> => {
    const dataset = await npyDataset(await fileSource(file), 'x');
    for await (const { columns } of dataset.batches(asked(column))) {
      return isFileColumn(columns.get('x'));
    }
    throw new Error('there are rows');
  };
  const plain = npyFile('int16', [4, 2], Buffer.alloc(16));
  t.equal(await isPlace(plain, 'x'), true);
  t.equal(await isPlace(plain, 'y'), false, 'nobody asked for it');
  const text = readFileSync(plain, 'latin1');
  const turned = scratch.fresh('turned.npy');
  writeFileSync(turned, text.replace("'<i2'", "'>i2'"), 'latin1');
  t.equal(await isPlace(turned, 'x'), false, 'another byte order');
  const fortran = scratch.fresh('fortran.npy');
  writeFileSync(fortran, text.replace('False, ', 'True,  '), 'latin1');
  t.equal(await isPlace(fortran, 'x'), false, 'another order');

  // What a conversion asks for, of a dataset of anybody's.
  const seen: string[][] = [];
  const spy = (dtype: string): Dataset => ({
    features: new Map([['x', { kind: 'value', dtype }]]),
    async *batches(options) {
      seen.push([...fileColumnsOf(options)]);
      const values = dtype === 'bool' ? new Uint8Array(1) : new Int16Array(1);
      yield { rowCount: 1, columns: new Map([['x', { values }]]) };
    },
  });
  await convert(spy('int16'), scratch.fresh('a'), raw);
  await convert(spy('int16'), scratch.fresh('b'), { codec: 'zstd' });
  await convert(spy('bool'), scratch.fresh('c'), raw);
  t.strictSame(seen, [['x'], [], []]);
});

t.test('a file that is cut, gone or another one while it is read', async (t) => {
  // The first rows are converted, then the file changes.
  const changes: readonly (readonly [string, (file: string) => void, string])[] = [
    ['cut', (file) => truncateSync(file, 66 * 2 ** 20), 'MALFORMED'],
    ['emptied', (file) => truncateSync(file, 0), 'MALFORMED'],
    ['gone', (file) => unlinkSync(file), 'NOT_FOUND'],
    [
      'another',
      (file) => {
        copyFileSync(file, `${file}.new`);
        renameSync(`${file}.new`, file);
      },
      'MALFORMED',
    ],
  ];
  for (const [name, change, code] of changes) {
    const file = largeFile(70);
    const target = scratch.fresh('out');
    let isChanged = false;
    const error = await failureOf(() =>
      importFiles(file, target, {
        ...raw,
        onProgress() {
          if (!isChanged) change(file);
          isChanged = true;
        },
      }),
    );
    t.match(error, { code, path: file }, name);
    t.notOk(error instanceof Error && 'file' in error, 'no file of a container');
    t.ok(error instanceof Error && error.message.startsWith(`${file}: `), name);
    t.strictSame(beside(target), [], 'nothing stays behind');
    t.notOk(existsSync(target));
  }
});

t.test('an abort between stretches leaves nothing', async (t) => {
  const file = largeFile(140);
  const stop = new AbortController();
  const target = scratch.fresh('out');
  let told = 0;
  const running = importFiles(file, target, {
    ...raw,
    signal: stop.signal,
    onProgress() {
      told += 1;
      if (told === 2) stop.abort();
    },
  });
  t.equal(await codeOf(() => running), 'ABORTED');
  t.strictSame(beside(target), []);
});

t.test('the writer: order, refusals, and a build that is over', async (t) => {
  const file = scratch.fresh('records');
  const bytes = randomBytes(600);
  writeFileSync(file, bytes);
  const place = { path: file, name: 'records' };
  const create = { dtype: 'uint8', itemShape: [6] } as const;

  const target = scratch.fresh('order');
  const writer = Dense.create(target, { ...create, ...raw });
  const before = { dtype: 'uint8', shape: [2, 6], data: new Uint8Array(12).fill(1) } as const;
  const appends = [
    writer.append(before),
    appendFileRecords(writer, { ...place, offsetBytes: 60, recordCount: 90 }),
    writer.append(before),
  ];
  await Promise.all(appends);
  t.equal(writer.length, 94);
  await writer.close({ integrity: true });
  t.equal((await verify(target)).ok, true);
  await using reader = Dense.open(target);
  const { data } = await reader.slice(2, 92);
  t.strictSame(Buffer.from(data as Uint8Array), bytes.subarray(60));

  const compressed = Dense.create(scratch.fresh('zstd'), { ...create, codec: 'zstd' });
  t.throws(
    () => appendFileRecords(compressed, { ...place, offsetBytes: 0, recordCount: 1 }),
    TypeError,
  );
  compressed.abort();

  const failed = Dense.create(scratch.fresh('failed'), { ...create, ...raw });
  const tooMany = { ...place, offsetBytes: 1, recordCount: 100 };
  t.match(await failureOf(() => appendFileRecords(failed, tooMany)), {
    code: 'MALFORMED',
    path: 'records',
    message: /^records: .* 600 bytes, and the records that are wanted end at byte 601/,
  });
  t.equal(await codeOf(() => failed.append(before)), 'BUILD_FAILED');
  t.equal(await codeOf(() => failed.close()), 'BUILD_FAILED');
  const gone = Dense.create(scratch.fresh('gone'), { ...create, ...raw });
  const nowhere = { path: `${file}.no`, name: 'nowhere', offsetBytes: 0, recordCount: 1 };
  t.match(await failureOf(() => appendFileRecords(gone, nowhere)), {
    code: 'NOT_FOUND',
    path: 'nowhere',
  });
  gone.abort();
});
