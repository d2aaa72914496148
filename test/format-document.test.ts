// docs/format.md says what lies on the disk: its tables of fields, its schemas and its ragged record are
// held against containers made here. (The integrity file's tables are, by digest.test.ts.)
import { readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { Dense, ndarray, Ragged } from '../ts/index.js';
import { blocksOf } from './support/markdown.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const document = readFileSync(path.resolve(import.meta.dirname, '../docs/format.md'), 'utf8');
const chapter = (name: string): string =>
  document.split(/^## /m).find((part) => part.startsWith(`${name}\n`)) ?? '';

/** The bytes that a block writes out: pairs of digits, up to the first line or word that has none. */
const bytesOf = (text: string): Buffer =>
  Buffer.concat(
    text
      .split('\n')
      .map((line) => /^(?:[0-9a-f]{2}(?:\s+|$))*/.exec(line)?.[0] ?? '')
      .map((digits) => Buffer.from(digits.replace(/\s/g, ''), 'hex')),
  );

/** Offset and size of each field in the chapter's tables. */
function fieldsOf(text: string): Map<string, { readonly offset: number; readonly size: number }> {
  const rows = text.matchAll(/^\| (\d+) \| (\d+) \| `?([a-z_]+)`? \|/gm);
  return new Map(
    [...rows].map(([, offset, size, name = '']) => [
      name,
      { offset: Number(offset), size: Number(size) },
    ]),
  );
}

t.test('the page and the table are as drawn', async (t) => {
  const place = scratch.fresh();
  const writer = Dense.create(place, {
    ...{ dtype: 'float32', itemShape: [2, 3], codec: 'zstd', dataShards: 3 },
  });
  const count = 5;
  await writer.append(ndarray('float32', [count, 2, 3], new Float32Array(count * 6).fill(0.5)));
  await writer.close();
  const page = readFileSync(path.join(place, 'meta.zr'));
  const fields = fieldsOf(chapter('meta.zr'));
  const field = (name: string): Buffer => {
    const { offset, size } = fields.get(name) ?? { offset: -1, size: 0 };
    return page.subarray(offset, offset + size);
  };
  const number = (name: string): number =>
    field(name).readUIntLE(0, Math.min(6, field(name).length));
  const schema = bytesOf(blocksOf(chapter('Schema'))[0]?.code ?? '');

  t.equal(number('length'), count);
  t.equal(number('schema_length'), schema.length);
  t.equal(schema.length, 31, 'as the document says');
  t.equal(number('data_shards'), 3);
  t.equal(number('codec'), 1);
  t.equal(number('reserved'), 0);
  const tails = field('tails');
  for (const shard of [0, 1, 2]) {
    const { length } = readFileSync(path.join(place, `data_${shard}.zr`));
    t.equal(Number(tails.readBigUInt64LE(8 * shard)), length, `tail ${shard}`);
  }
  t.ok(
    tails.subarray(24).every((byte) => byte === 0),
    'the other tails are zero',
  );
  t.strictSame(Buffer.from(field('schema').subarray(0, schema.length)), schema);
  t.equal(page.length, 4096 + 16 * count);
  const stored = readFileSync(path.join(place, 'data_1.zr'));
  const second = page.subarray(4096 + 16 * 4, 4096 + 16 * 5); // record 4, the second of data_1.zr
  t.equal(Number(second.readBigUInt64LE(0)) + second.readUInt32LE(8), stored.length);
  t.equal(second.readUInt32LE(12), 24, 'bytes after decoding');
});

t.test('schemas of dialect 2.8 and a ragged record are as written there', async (t) => {
  const [, json = ''] = blocksOf(chapter('Schema')).map(({ code }) => code);
  const [dense = '', ragged = ''] = [...json.matchAll(/^(\{.*?\}) /gm)].map(([, text]) => text);
  const schemaOf = (place: string): string => {
    const page = readFileSync(path.join(place, 'meta.zr'));
    return page.subarray(2056, 2056 + page.readUInt16LE(8)).toString();
  };
  const options = { codec: 'raw', dataShards: 1, dialect: '2.8' } as const;
  const densePlace = scratch.fresh();
  const first = Dense.create(densePlace, {
    ...options,
    dtype: 'float32',
    itemShape: [2, 3],
  });
  await first.append(ndarray('float32', [1, 2, 3], new Float32Array(6)));
  await first.close();
  t.equal(schemaOf(densePlace), dense);

  const record = ndarray('int32', [2, 1], Int32Array.of(0x01020304, -2));
  for (const [dialect, wordBytes] of [
    ['2.8', 4],
    ['2.4', 8],
  ] as const) {
    const place = scratch.fresh();
    const writer = Ragged.create(place, { ...options, dialect, dtype: 'int32', ndim: 2 });
    await writer.append([record]);
    await writer.close();
    if (dialect === '2.8') t.equal(schemaOf(place), ragged);
    const stored = readFileSync(path.join(place, 'data_0.zr'));
    const items = Buffer.from(record.data.buffer);
    t.strictSame(stored.subarray(2 * wordBytes), items, dialect);
    if (dialect === '2.8') continue;
    const written = bytesOf(
      /shape \(2, 1\): +(.*)$/m.exec(chapter('Records'))?.[1]?.replace(/i0.*/, '') ?? '',
    );
    t.equal(written.length, 2 * wordBytes, 'the dimensions are written out');
    t.strictSame(Buffer.from(stored.subarray(0, 2 * wordBytes)), written);
  }
});
