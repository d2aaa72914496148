// Columns of pictures: dense while all are of one size, ragged from the first other one on, and errors that
// name column and row. How single pictures are decoded is in images.test.ts.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { crc32, deflateSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { decodeImage } from '../ts/converter/images/decode.js';
import { createImageColumn, type ImageColumnOptions } from '../ts/converter/images.js';
import { LoaderxError } from '../ts/errors.js';
import { type NdArray, open, verify } from '../ts/index.js';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

const colourTypes = { grey: 0, rgb: 2, rgba: 6 } as const;
const channels = { grey: 1, rgb: 3, rgba: 4 } as const;

interface Look {
  readonly kind?: keyof typeof colourTypes;
  readonly bits?: 1 | 8 | 16;
}

function chunk(kind: string, body: Uint8Array): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.byteLength);
  const named = Buffer.concat([Buffer.from(kind, 'latin1'), body]);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(named));
  return Buffer.concat([length, named, check]);
}

/** A PNG of one shade. Its size is what it says, its pixels are `shade`. */
function png(height: number, width: number, shade: number, look: Look = {}): Buffer {
  const { kind = 'rgb', bits = 8 } = look;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = bits;
  header[9] = colourTypes[kind];
  const row = Buffer.alloc(1 + Math.ceil((width * channels[kind] * bits) / 8), shade);
  row[0] = 0;
  const lines = Buffer.concat(Array.from({ length: height }, () => row));
  return Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(lines)),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

type Rows = readonly (Uint8Array | null)[];
type Options = Partial<Omit<ImageColumnOptions, 'path' | 'column'>>;

/** The container of a column `image` that got `rows`, `count` at a time. */
async function written(rows: Rows, options: Options = {}, count = 7): Promise<string> {
  const target = scratch.fresh('image');
  const column = createImageColumn({
    column: 'image',
    path: target,
    create: { codec: 'zstd' },
    ...options,
  });
  try {
    for (let first = 0; first < rows.length; first += count) {
      await column.append(rows.slice(first, first + count), first);
    }
    await column.close();
  } finally {
    await column.abort();
  }
  return target;
}

async function recordsOf(target: string): Promise<{ kind: string; records: NdArray[] }> {
  const reader = open(target);
  const records = Array.from({ length: reader.length }, (_, id) => reader.record(id));
  await reader.close();
  return { kind: reader.kind, records };
}

/** Each record has one shape and one shade. */
function look({ dtype, shape, data }: NdArray): string {
  const shades = new Set<unknown>(data as Iterable<unknown>);
  return `${dtype} ${shape.join('x')} ${[...shades].join(',')}`;
}

async function failure(t: Test, rows: Rows, options?: Options): Promise<LoaderxError> {
  const target = scratch.fresh('image');
  const column = createImageColumn({
    column: 'image',
    path: target,
    create: { codec: 'raw' },
    ...options,
  });
  let error: unknown;
  try {
    await column.append(rows, 100);
    await column.close();
  } catch (reason) {
    error = reason;
  }
  await column.abort();
  await column.abort();
  t.strictSame(beside(target), [], 'nothing is left');
  if (!(error instanceof LoaderxError)) throw new Error('it did not fail', { cause: error });
  return error;
}

t.test('pictures of one size are dense', async (t) => {
  const rows = Array.from({ length: 40 }, (_, row) => png(5, 6, row));
  const { kind, records } = await recordsOf(await written(rows));
  t.equal(kind, 'dense');
  t.strictSame(
    records.map(look),
    rows.map((_, row) => `uint8 5x6x3 ${row}`),
  );
});

for (const [what, count, at] of [
  ['second', 40, 1],
  ['middle', 40, 20],
  ['last', 40, 39],
] as const) {
  t.test(`another size at the ${what} row makes it ragged`, async (t) => {
    const rows = Array.from({ length: count }, (_, row) => png(row === at ? 9 : 5, 6, row));
    const { kind, records } = await recordsOf(await written(rows));
    t.equal(kind, 'ragged');
    t.strictSame(
      records.map(look),
      rows.map((_, row) => `uint8 ${row === at ? 9 : 5}x6x3 ${row}`),
    );
  });
}

// 3 MiB decoded: three fill a batch, so that batches are written as dense by these rows.
for (const codec of ['raw', 'zstd'] as const) {
  for (const at of [8, 14]) {
    t.test(`another size at row ${at} of large pictures, ${codec}`, async (t) => {
      const rows = Array.from({ length: 16 }, (_, row) => png(row < at ? 1024 : 1023, 1024, row));
      const target = await written(rows, { create: { codec, dataShards: 3 }, integrity: true });
      const { kind, records } = await recordsOf(target);
      t.equal(kind, 'ragged');
      t.strictSame(
        records.map(({ shape, data }) => [shape[0], data[0], data[data.length - 1]]),
        rows.map((_, row) => [row < at ? 1024 : 1023, row, row]),
      );
      t.strictSame(beside(target), ['image'], 'the dense container is gone');
      t.equal((await verify(target)).ok, true);
      const reader = open(target, { verify: 'digest' });
      t.equal(reader.dataShards, 3);
      await reader.close();
    });
  }
}

t.test('the dense container aside needs no longer name than the column', async (t) => {
  const folder = scratch.folder();
  const name = 'n'.repeat(255);
  const column = createImageColumn({
    column: name,
    path: path.join(folder, name),
    create: { codec: 'raw' },
  });
  const rows = Array.from({ length: 9 }, (_, row) => png(row < 7 ? 1024 : 1, 1024, row));
  await column.append(rows, 0);
  await column.close();
  t.strictSame(readdirSync(folder), [name]);
});

t.test('order is kept, whatever takes long', async (t) => {
  const rows = Array.from({ length: 60 }, (_, row) =>
    row % 7 === 0 ? png(600, 500, row) : png(1 + (row % 3), 2, row),
  );
  const { records } = await recordsOf(await written(rows, {}, 60));
  t.strictSame(
    records.map(({ data }) => data[0]),
    rows.map((_, row) => row),
  );
});

t.test('RGB beside RGBA is ragged, as in the original', async (t) => {
  const { kind, records } = await recordsOf(
    await written([png(4, 5, 1), png(4, 5, 2, { kind: 'rgba' })]),
  );
  t.equal(kind, 'ragged');
  t.strictSame(records.map(look), ['uint8 4x5x3 1', 'uint8 4x5x4 2']);
});

t.test('16 bits and 1 bit keep their dtype', async (t) => {
  const deep = await recordsOf(await written([png(4, 5, 3, { kind: 'rgb', bits: 16 })]));
  t.strictSame(deep.records.map(look), ['uint16 4x5x3 771']);
  const flat = await recordsOf(await written([png(4, 8, 255, { kind: 'grey', bits: 1 })]));
  t.strictSame(flat.records.map(look), ['bool 4x8 255']);
});

t.test('a mode that the feature asks for', async (t) => {
  const rows = [png(4, 5, 7), png(4, 5, 8, { kind: 'grey' })];
  const { kind, records } = await recordsOf(await written(rows, { mode: 'L' }));
  t.equal(kind, 'dense');
  t.strictSame(records.map(look), ['uint8 4x5 7', 'uint8 4x5 8']);
});

t.test('B80: what does not fit fails, naming column and row', async (t) => {
  const good = png(4, 5, 1);
  const grey = png(4, 5, 1, { kind: 'grey' });
  const deep = png(4, 5, 1, { kind: 'grey', bits: 16 });
  const cases: readonly (readonly [Rows, string, number, RegExp])[] = [
    [[good, null], 'SOURCE', 101, /null/],
    [[good, good, grey], 'SOURCE', 102, /\[4, 5\].*\[4, 5, 3\]/],
    [[grey, good], 'SOURCE', 101, /\[4, 5, 3\].*\[4, 5\]/],
    [[grey, deep], 'SOURCE', 101, /uint16.*uint8/],
    [[good, new Uint8Array(0)], 'MALFORMED', 101, /no bytes/],
    [[good, Buffer.from('a cat')], 'MALFORMED', 101, /no picture/],
    [[good.subarray(0, -30), good], 'MALFORMED', 100, /PNG/],
    [[good, Buffer.from('GIF89a')], 'UNSUPPORTED', 101, /GIF/],
    [[good, png(1, 1, 0), Buffer.from('GIF89a'), null], 'UNSUPPORTED', 102, /GIF/],
    [[], 'SOURCE', -1, /no rows/],
  ];
  for (const [rows, code, row, says] of cases) {
    const error = await failure(t, rows);
    t.equal(error.code, code, error.message);
    t.match(error.message, says);
    t.match(error.message, /column "image"/);
    t.equal(error.field, 'image');
    if (row >= 0) {
      t.equal(error.record, row);
      t.match(error.message, new RegExp(`row ${row}\\b`));
    }
  }
});

t.test('B80: each mode has its rank', { timeout: 60_000 }, async (t) => {
  const cases = JSON.parse(
    readFileSync(path.join(import.meta.dirname, 'golden', 'images.json'), 'utf8'),
  ) as readonly { readonly name: string; readonly bytes: string }[];
  for (const [name, dtype, itemShape] of [
    ['png grey 8 7x13', 'uint8', [7, 13]],
    ['png la 8 7x13', 'uint8', [7, 13, 2]],
    ['png rgb 8 7x13', 'uint8', [7, 13, 3]],
    ['png rgba 8 7x13', 'uint8', [7, 13, 4]],
    ['png palette 8 7x13', 'uint8', [7, 13]],
    ['png grey 1 7x13', 'bool', [7, 13]],
    ['jpeg CMYK', 'uint8', [21, 19, 4]],
    ['jpeg EXIF 6', 'uint8', [19, 21, 3]],
  ] as const) {
    const bytes = cases.find((each) => each.name === name)?.bytes ?? '';
    const reader = open(await written([Buffer.from(bytes, 'base64')]));
    t.match(reader, { kind: 'dense', dtype, itemShape }, name);
    await reader.close();
  }
});

t.test('a picture that breaks after batches were written leaves nothing', async (t) => {
  const rows: Uint8Array[] = Array.from({ length: 20 }, (_, row) => png(1024, 1024, row));
  const error = await failure(t, [...rows, png(3, 3, 1), Buffer.from('a cat')]);
  t.equal(error.record, 121);
});

t.test('what is announced is held against the limit before it is decoded', async (t) => {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(30_000, 0);
  header.writeUInt32BE(20_000, 4);
  header.set([8, 2, 0, 0, 0], 8);
  const bomb = Buffer.concat([
    Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(Buffer.alloc(1000))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
  const error = await failure(t, [bomb]);
  t.equal(error.code, 'TOO_LARGE');
  t.match(error.message, /30000 by 20000.*maxPixels/);
  t.equal(error.record, 100);

  const rows = [png(10, 10, 1)];
  t.equal((await failure(t, rows, { limits: { maxPixels: 99 } })).code, 'TOO_LARGE');
  t.equal((await recordsOf(await written(rows, { limits: { maxPixels: 100 } }))).records.length, 1);
  for (const maxPixels of [0, 1.5, -1, '9' as unknown as number]) {
    await t.rejects(decodeImage(png(1, 1, 1), { limits: { maxPixels } }), /maxPixels must be/);
  }
  // Its pixels are missing, whatever is allowed.
  const raised = await failure(t, [bomb], { limits: { maxPixels: 600_000_000 } });
  t.equal(raised.code, 'MALFORMED');
});

t.test('lists of pictures are stacked', async (t) => {
  const target = scratch.fresh('image');
  const create = { codec: 'zstd' } as const;
  const column = createImageColumn({ column: 'image', path: target, create });
  const pictures = [1, 2, 3, 4, 5].map((shade) => png(2, 3, shade));
  await column.append(pictures, 0, Uint32Array.of(0, 2, 3, 5));
  await column.append(pictures.slice(0, 2), 3, Uint32Array.of(0, 2));
  await column.close();
  const { kind, records } = await recordsOf(target);
  t.equal(kind, 'ragged');
  t.strictSame(records.map(look), [
    'uint8 2x2x3x3 1,2',
    'uint8 1x2x3x3 3',
    'uint8 2x2x3x3 4,5',
    'uint8 2x2x3x3 1,2',
  ]);

  const even = createImageColumn({ column: 'image', path: scratch.fresh('image'), create });
  await even.append(pictures.slice(0, 4), 0, Uint32Array.of(0, 2, 4));
  await even.close();

  for (const [list, offsets, row, says] of [
    [pictures, [0, 2, 2, 5], 11, /empty/],
    [[...pictures.slice(0, 2), png(2, 4, 1)], [0, 1, 3], 11, /differ/],
    [[...pictures.slice(0, 2), null], [0, 2, 3], 11, /null/],
  ] as const) {
    const target = scratch.fresh('image');
    const column = createImageColumn({ column: 'image', path: target, create });
    await t.rejects(column.append(list, 10, Uint32Array.from(offsets)), {
      record: row,
      message: says,
    });
    await column.abort();
    t.strictSame(beside(target), []);
  }
});

t.test('a signal ends it, and nothing is left', async (t) => {
  const target = scratch.fresh('image');
  const controller = new AbortController();
  const column = createImageColumn({
    column: 'image',
    path: target,
    create: { codec: 'raw' },
    signal: controller.signal,
  });
  const rows = Array.from({ length: 30 }, (_, row) => png(1024, 1024, row));
  await column.append(rows.slice(0, 10), 0);
  const appending = column.append(rows, 10);
  controller.abort(new Error('enough'));
  await t.rejects(appending, { code: 'ABORTED', cause: { message: 'enough' } });
  await column.abort();
  t.strictSame(beside(target), []);
});

t.test('what is at the path already stays', async (t) => {
  const target = scratch.fresh('image');
  writeFileSync(target, 'mine');
  const create = { codec: 'raw' } as const;
  const column = createImageColumn({ column: 'image', path: target, create });
  await column.append([png(1, 1, 1)], 0);
  await t.rejects(column.close(), { code: 'EXISTS' });
  await column.abort();
  t.equal(readFileSync(target, 'utf8'), 'mine');
});
