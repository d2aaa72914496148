// Parquet files as pyarrow writes them: types × encodings × compressions × page versions, all values compared.
// The short form reads files that lie here as text; the long one (LOADERX_FULL=1) has pyarrow write hundreds.

import { createHash } from 'node:crypto';
import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { deflateRawSync } from 'node:zlib';
import t from 'tap';
import { ask } from '../scripts/child.mjs';
import { ensurePythonEnvironment } from '../scripts/python-environment.mjs';
import { convert } from '../ts/converter/convert.js';
import { arrowFeatures } from '../ts/converter/parquet/arrow-schema.js';
import { decompressed } from '../ts/converter/parquet/codecs.js';
import { readHybrid, Source } from '../ts/converter/parquet/encodings.js';
import { readPageHeader } from '../ts/converter/parquet/page-header.js';
import { parquetFolder, parquetSplits, splitsOf } from '../ts/converter/parquet.js';
import { open } from '../ts/store/open.js';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';

interface Wanted {
  readonly kind: 'dense' | 'ragged';
  readonly dtype: string;
  /** Of a dense record; the rank of ragged ones. */
  readonly shape: number | readonly number[];
  readonly sha256: string;
  readonly dims?: string;
}

interface File {
  readonly name: string;
  readonly rows: number;
  readonly columns: Readonly<Record<string, Wanted>>;
  readonly parquet: string;
}

const here = path.join(import.meta.dirname, 'parquet');
const files = JSON.parse(readFileSync(path.join(here, 'files.json'), 'utf8')) as readonly File[];
const scratch = new Scratch(t);
// The long forms take longer than a file is given.
if (isFull) t.setTimeout(3_600_000);

/** What is in a container, in the words of {@link Wanted}. */
function held(container: string): Wanted & { rows: number } {
  const reader = open(container);
  try {
    const items = createHash('sha256');
    const dims = createHash('sha256');
    const ids = Array.from({ length: reader.length }, (_, id) => id);
    const { dtype, kind, length: rows } = reader;
    const hash = (data: ArrayBufferView): void => {
      items.update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
    };
    if (reader.kind === 'dense') {
      hash(reader.gatherSync(ids).data);
      return { kind, dtype, shape: reader.itemShape, sha256: items.digest('hex'), rows };
    }
    const batch = reader.gatherSync(ids);
    hash(batch.values);
    dims.update(new Uint8Array(BigUint64Array.from(batch.dims, BigInt).buffer));
    const sums = { sha256: items.digest('hex'), dims: dims.digest('hex') };
    return { kind: 'ragged', dtype, shape: reader.ndim, ...sums, rows };
  } finally {
    reader.closeSync();
  }
}

/** Converts a file; what each column is, by name. */
async function converted(file: string): Promise<Record<string, Wanted & { rows: number }>> {
  const target = scratch.fresh();
  const dataset = await parquetSplits(new Map([['train', [{ path: file, name: file }]]]));
  await convert(dataset, target, { codec: 'raw', dataShards: 1, strings: 'utf8' });
  const columns = [...(dataset.splits.get('train')?.features.keys() ?? [])];
  const found = columns.map((column) => [column, held(path.join(target, 'train', column))]);
  rmSync(target, { recursive: true });
  return Object.fromEntries(found);
}

function wantedOf({ columns, rows }: Omit<File, 'parquet'>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(columns).map(([name, wanted]) => [name, { ...wanted, rows }]),
  );
}

t.test('files that pyarrow wrote (B70, B78)', async (t) => {
  t.ok(files.length >= 15);
  for (const file of files) {
    const where = scratch.fresh('x.parquet');
    writeFileSync(where, Buffer.from(file.parquet, 'base64'));
    t.strictSame(await converted(where), wantedOf(file), file.name);
  }
});

t.test(
  'everything that pyarrow writes',
  { skip: isFull ? false : 'the long form: LOADERX_FULL=1' },
  async (t) => {
    const environment = ensurePythonEnvironment({
      name: 'parquet',
      versionMin: [3, 10],
      pinned: path.join(here, 'requirements.txt'),
      probe: 'import pyarrow.parquet',
    });
    if (environment === null) {
      t.pass('skipped: there is no Python 3.10');
      return;
    }
    const folder = scratch.folder();
    const script = path.join(here, 'make-parquet.py');
    const answer = ask(environment.python, [script, 'long', folder], { env: environment.env });
    t.ok(answer.ok, answer.ok ? 'written' : answer.output);
    const expected = JSON.parse(readFileSync(path.join(folder, 'expected.json'), 'utf8'));
    for (const file of expected as readonly File[]) {
      const found = await converted(path.join(folder, file.name));
      t.strictSame(found, wantedOf(file), file.name);
    }
  },
);

// ---- damage: every error is one of the package's, whatever bytes come ----

const expectedCodes = ['MALFORMED', 'UNSUPPORTED', 'TOO_LARGE', 'SOURCE'];

t.test('damaged files are errors, never other values unseen', async (t) => {
  let seed = 1;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return Math.floor((seed / 2 ** 32) * below);
  };
  const rounds = isFull ? 1000 : 60;
  const codes = new Map<string, number>();
  for (let round = 0; round < rounds; round += 1) {
    const file = files[random(files.length)] as File;
    const bytes = Buffer.from(file.parquet, 'base64');
    const where = scratch.fresh('x.parquet');
    const cut = round % 10 === 0 ? random(bytes.length) : bytes.length;
    for (let count = 0; count < 1 + (round % 3); count += 1) {
      bytes[random(bytes.length)] = random(256);
    }
    writeFileSync(where, bytes.subarray(0, cut));
    let code = 'read';
    try {
      await converted(where);
    } catch (error) {
      code = (error as { readonly code?: string }).code ?? String((error as Error).stack);
    }
    codes.set(code, (codes.get(code) ?? 0) + 1);
    if (code === 'read') continue;
    if (!expectedCodes.includes(code)) t.fail(`${file.name}, round ${round}: ${code}`);
  }
  t.ok(codes.has('MALFORMED'), JSON.stringify([...codes]));
});

t.test(
  'an ARROW:schema that cannot be read, or that calls floats narrower, changes nothing unseen',
  async (t) => {
    const file = files.find(({ name }) => name === 'NONE 1.0') as File;
    const whole = Buffer.from(file.parquet, 'base64');
    const at = whole.indexOf('ARROW:schema') + 'ARROW:schema'.length;
    const [text = ''] = /[A-Za-z0-9+/]{64,}={0,2}/.exec(whole.toString('latin1', at)) ?? [];
    const from = whole.indexOf(text, at);
    const schema = Buffer.from(text, 'base64');
    const where = scratch.fresh('x.parquet');
    /** The dtypes of the file's floats, with these bytes as its schema. */
    const floats = async (bytes: Buffer): Promise<string[]> => {
      const changed = Buffer.from(whole);
      changed.write(bytes.toString('base64'), from, 'latin1');
      writeFileSync(where, changed);
      const named = [{ path: where, name: 'x.parquet' }];
      const { splits } = await parquetSplits(new Map([['train', named]]));
      const [dataset] = [...splits.values()];
      return [...(dataset?.features ?? [])].flatMap(([name, feature]) =>
        feature.kind === 'value' && /^float/.test(feature.dtype)
          ? [`${name} ${feature.dtype}`]
          : [],
      );
    };
    const sound = await floats(schema);
    t.ok(sound.length >= 2, sound.join());
    await t.rejects(floats(Buffer.alloc(schema.length, 1)), {
      code: 'MALFORMED',
      path: 'x.parquet',
      message: /ARROW:schema cannot be read/,
    });
    // Each 2 may be the precision of a float64.
    let changed = 0;
    for (const [index, byte] of schema.entries()) {
      if (byte !== 2) continue;
      const mutant = Buffer.from(schema);
      mutant[index] = 1;
      const found = await floats(mutant).catch((error: { readonly code?: string }) => error.code);
      if (found === 'MALFORMED') continue;
      changed += 1;
      t.strictSame(found, sound, `byte ${index}`);
    }
    t.ok(changed > 0);
  },
);

// As duckdb 2.0.1 writes `select 7::tinyint x, interval 1 day i`, and pyarrow 26 a column of pa.uuid() beside x.
const intervals = [
  'UEFSMRUAFQgVCCwVAhUAFQYVBgAABwAAABUAFRgVGCwVAhUAFQYVBgAAAAAAAAEAAAAAAAAAFQIZPDUAGA1kdWNrZGJf',
  'c2NoZW1hFQQAFQIlABgBeCUeABUOFRgVABgBaSUqABYCGRwZLCYAHBUCGRUAGRgBeBUAFgIWKhYqJgg8GAQHAAAAGAQH',
  'AAAAFgAoBAcAAAAYBAcAAAAREQAZHBUAFQAVAgAAACYAHBUOGRUAGRgBaRUAFgIWOhY6JjJJHBUAFQAVAgAAABZkFgIm',
  'CBZkABkcGBxkdWNrZGIuaW50ZXJ2YWxfYmxvb21fZmlsdGVyGA1ub3JtYWxpemVkLXYxABgoRHVja0RCIHZlcnNpb24g',
  'djIuMC4xIChidWlsZCA4ZDc4MTE0ZTkwKRksHAAAHAAAAAABAABQQVIx',
].join('');
const uuids = [
  'UEFSMRUEFSAVIEwVAhUAEgAAYWFhYWFhYWFhYWFhYWFhYRUAFRIVEiwVBBUQFQYVBhw2ACgQYWFhYWFhYWFhYWFhYWFh',
  'YRgQYWFhYWFhYWFhYWFhYWFhYRERAAAAAgAAAAQBAQQAFQQVEBUQTBUEFQASAAAHAAAACAAAABUAFRIVEiwVBBUQFQYV',
  'BhwYBAgAAAAYBAcAAAAWACgECAAAABgEBwAAABERAAAAAgAAAAQBAQMCFQQZPDUAGAZzY2hlbWEVBAAVDhUgFQIYBHV1',
  'aWRs7AAAABUCJQIYAXglHkysEwgRAAAAFgQZHBksJgAcFQ4ZNQAGEBkYBHV1aWQVABYEFsQBFsQBJkQmCBw2ACgQYWFh',
  'YWFhYWFhYWFhYWFhYRgQYWFhYWFhYWFhYWFhYWFhYRERABksFQQVABUCABUAFRAVAgA8KQYZJgAEAAAAJgAcFQIZNQAG',
  'EBkYAXgVABYEFpwBFpwBJvgBJswBHBgECAAAABgEBwAAABYAKAQIAAAAGAQHAAAAEREAGSwVBBUAFQIAFQAVEBUCADwp',
  'BhkmAAQAAAAW4AIWBCYIFuACABkcGAxBUlJPVzpzY2hlbWEYwAMvLy8vLzBnQkFBQVFBQUFBQUFBS0FBd0FCZ0FGQUFn',
  'QUNnQUFBQUFCQkFBTUFBQUFDQUFJQUFBQUJBQUlBQUFBQkFBQUFBSUFBQUJnQUFBQUZBQUFBQkFBRkFBSUFBWUFCd0FN',
  'QUFBQUVBQVFBQUFBQUFBQkFoQUFBQUFjQUFBQUJBQUFBQUFBQUFBQkFBQUFlQUFBQUFnQURnQUlBQWNBQ0FBQUFBQUFB',
  'QUVJQUFBQUFBQVNBQmdBQ0FBR0FBY0FEQUFBQUJBQUZBQVNBQUFBQUFBQkR4UUFBQUNnQUFBQUNBQUFBQlFBQUFBQUFB',
  'QUFCQUFBQUhWMWFXUUFBQUFBQWdBQUFFZ0FBQUFFQUFBQXlQLy8veGdBQUFBRUFBQUFDZ0FBQUdGeWNtOTNMblYxYVdR',
  'QUFCUUFBQUJCVWxKUFZ6cGxlSFJsYm5OcGIyNDZibUZ0WlFBQUFBQUlBQXdBQkFBSUFBZ0FBQUFRQUFBQUJBQUFBQUFB',
  'QUFBQUFBQUFHQUFBQUVGU1VrOVhPbVY0ZEdWdWMybHZianB0WlhSaFpHRjBZUUFBQmdBSUFBUUFCZ0FBQUJBQUFBQUFB',
  'QUFBABggcGFycXVldC1jcHAtYXJyb3cgdmVyc2lvbiAyNi4wLjEZLBwAABwAAAD8AgAAUEFSMQ==',
].join('');

t.test('a column of a type that no container holds does not refuse its file', async (t) => {
  for (const [file, name, rowCount] of [
    [intervals, 'i', 1],
    [uuids, 'uuid', 2],
  ] as const) {
    const where = scratch.fresh('x.parquet');
    writeFileSync(where, Buffer.from(file, 'base64'));
    const dataset = await parquetSplits(new Map([['train', [{ path: where, name: 'x.parquet' }]]]));
    await t.rejects(convert(dataset, scratch.fresh(), { codec: 'raw' }), {
      code: 'UNSUPPORTED',
      field: name,
    });
    const target = scratch.fresh();
    await convert(dataset, target, { codec: 'raw', columns: ['x'] });
    const reader = open(path.join(target, 'train/x'));
    t.match(reader, { length: rowCount, dtype: 'int8' });
    reader.closeSync();
  }
});

t.test('a page that says it is huge is refused before memory is taken', async (t) => {
  const [file] = files as [File];
  const where = scratch.fresh('x.parquet');
  writeFileSync(where, Buffer.from(file.parquet, 'base64'));
  const dataset = await parquetSplits(new Map([['train', [{ path: where, name: 'x.parquet' }]]]), {
    limits: { pageBytes: 16 },
  });
  await t.rejects(convert(dataset, scratch.fresh(), { codec: 'raw', strings: 'utf8' }), {
    code: 'TOO_LARGE',
    path: 'x.parquet',
    message: /limits\.pageBytes is 16/,
  });
  await t.rejects(parquetSplits(new Map(), { limits: { pageBytes: 0 } }), {
    code: 'INVALID_ARGUMENT',
  });
});

// ---- pieces ----

t.test('decompressing gives exactly what the header says, or fails', async (t) => {
  const plain = Buffer.from('Parquet, Parquet, Parquet.'.repeat(3));
  // A literal of 9 bytes, a match of 4 + 13 at distance 9, and so on: by hand, from the format.
  const block = Buffer.concat([
    Buffer.from([0x9f, ...Buffer.from('Parquet, '), 9, 0, 2 - 2]),
    Buffer.from([0x10, 0x21]),
  ]);
  const text = `${'Parquet, '.repeat(4).slice(0, 9 + 19)}!`;
  t.equal(Buffer.from(decompressed('LZ4_RAW', block, text.length)).toString(), text);
  for (const bytes of [text.length - 1, text.length + 1]) {
    t.throws(() => decompressed('LZ4_RAW', block, bytes), /LZ4/);
  }
  const framed = Buffer.alloc(8);
  framed.writeUInt32BE(text.length, 0);
  framed.writeUInt32BE(block.length, 4);
  const twice = Buffer.concat([framed, block, framed, block]);
  t.equal(Buffer.from(decompressed('LZ4', twice, 2 * text.length)).toString(), text + text);
  t.equal(Buffer.from(decompressed('LZ4', block, text.length)).toString(), text, 'without frame');
  t.throws(() => decompressed('GZIP', deflateRawSync(plain), plain.length));
  // "hello" in a raw block, and with the checksum of its content, as zstd 1.5.7 writes it.
  const hello = Buffer.from('28b52ffd2005290000' + '68656c6c6f', 'hex');
  const summed = Buffer.from('28b52ffd2405290000' + '68656c6c6f' + 'a36d9f88', 'hex');
  for (const frame of [hello, summed]) {
    t.equal(Buffer.from(decompressed('ZSTD', frame, 5)).toString(), 'hello');
    for (const bytes of [4, 6]) t.throws(() => decompressed('ZSTD', frame, bytes), /zstd|header/);
    t.throws(() => decompressed('ZSTD', frame.subarray(0, -1), 5), /zstd/);
  }
  t.equal(Buffer.from(decompressed('ZSTD', Buffer.concat([hello, summed]), 10)).length, 10);
  summed[9] = 0x69;
  t.throws(() => decompressed('ZSTD', summed, 5), /zstd: .*checksum/, 'its content differs');
  t.throws(() => decompressed('ZSTD', Buffer.alloc(0), 5), /without a frame/);
  t.throws(() => decompressed('UNCOMPRESSED', plain, plain.length + 1), /header says/);
  t.throws(() => decompressed('LZO', plain, 1), /not known/);
});

t.test('headers and schemas of noise', async (t) => {
  t.throws(() => readPageHeader(new Uint8Array(0)));
  t.throws(() => readPageHeader(Uint8Array.of(0)));
  t.throws(() => readPageHeader(new Uint8Array(1000).fill(0x1c)));
  t.equal(arrowFeatures(''), undefined);
  t.equal(arrowFeatures('AAAA'.repeat(20)), undefined);
  t.equal(arrowFeatures('/////'.repeat(20)), undefined);
});

t.test('splits by the names of files', async (t) => {
  const found = (...names: string[]): unknown => [...splitsOf(names)];
  t.strictSame(found('a.parquet', 'b.parquet'), [['train', ['a.parquet', 'b.parquet']]]);
  t.strictSame(found('data/train-00000-of-00001.parquet', 'other/x.parquet'), [
    ['train', ['data/train-00000-of-00001.parquet']],
  ]);
  t.strictSame(found('x-dev.parquet', 'test.parquet', 'training/x.parquet'), [
    ['train', ['training/x.parquet']],
  ]);
  t.strictSame(found('x-dev.parquet', 'test.parquet', 'latest.parquet'), [
    ['validation', ['x-dev.parquet']],
    ['test', ['test.parquet']],
  ]);
});

t.test('a folder, and files whose names are odd', async (t) => {
  const folder = scratch.folder();
  const file = files.find(({ name }) => name === 'version 1.0') as File;
  mkdirSync(path.join(folder, 'data/c#'), { recursive: true });
  for (const name of [
    'data/c#/a b%20[1]@x.parquet',
    '?.parquet',
    '.hidden.parquet',
    '__x.parquet',
  ]) {
    writeFileSync(path.join(folder, name), Buffer.from(file.parquet, 'base64'));
  }
  const { splits, source } = await parquetFolder(folder);
  t.strictSame([...splits.keys()], ['train']);
  t.equal(splits.get('train')?.rowCount, 2 * file.rows);
  t.strictSame(source, { name: folder });
  const one = await parquetFolder(path.join(folder, '?.parquet'));
  t.equal(one.splits.get('train')?.rowCount, file.rows);
  const empty = scratch.folder();
  await t.rejects(parquetFolder(empty), { code: 'NOT_FOUND', path: empty });
  await t.rejects(parquetFolder(path.join(empty, 'no')), { code: 'NOT_FOUND' });
});

t.test('a run says no more than its bits can', (t) => {
  const read = (width: number, value: number): number | undefined =>
    readHybrid(new Source(Uint8Array.of(16, value)), width, new Uint8Array(8));
  t.equal(read(1, 1), 1);
  t.throws(() => read(1, 220), { name: 'Damaged', message: /a run of 220/ });
  t.equal(read(3, 7), 7);
  t.throws(() => read(3, 8), { name: 'Damaged' });
  t.equal(read(8, 255), 255);
  t.end();
});
