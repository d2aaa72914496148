// Containers made to cost much for few bytes: every size that can lie, lies. Each is answered at once
// and in little memory, or read where it is valid.

import { truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { type CodecOptions, Dense, ndarray, open, Ragged } from '../ts/index.js';
import { runChild } from './support/child.js';
import { bytesOf, type Edit, edited, type Files, readFiles, writeFiles } from './support/files.mjs';
import {
  blockHeader,
  frame,
  repeatedBlocks,
  skippable,
  storedBlocks,
  storedFrame,
} from './support/frames.mjs';
import { isFull } from './support/limits.js';
import { locationAt, makeLocation, schemaAt, tailAt, u32, u64 } from './support/page.mjs';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const folder = scratch.folder();

/** Processor time of an answer. Wall time would tell how busy the machine is. */
/** Of processor time, which other programs lengthen too. */
const cpuMsMax = isFull ? 100 : 2000;
/** Beside the records that were asked for. */
const addedBytesMax = 64 * 2 ** 20;
const mebi = 2 ** 20;

interface Bomb {
  readonly name: string;
  readonly path: string;
  readonly ids?: readonly number[];
  readonly maxBatchBytes?: number;
  /** `opened LENGTH`, `read BYTES` or a code. */
  readonly expected: string;
  /** What was asked for: this much memory may be used. */
  readonly requestedBytes?: number;
}

interface Cost {
  readonly name: string;
  readonly outcome: string;
  readonly cpuMs: number;
  readonly addedBytes: number;
}

const bombs: Bomb[] = [];

let made = 0;

/** A dense container of `recordBytes` bytes a record and one shard, of which one record is appended. */
function dense(codec: CodecOptions, recordBytes: number): Files {
  made += 1;
  const place = path.join(folder, `base-${made}`);
  const writer = Dense.create(place, {
    ...codec,
    dtype: 'uint8',
    itemShape: [recordBytes],
    dataShards: 1,
  });
  writer.appendSync(ndarray('uint8', [1, recordBytes], new Uint8Array(recordBytes)));
  writer.closeSync();
  return readFiles(place);
}

/** A ragged container of `ndim` dimensions and one shard, of one small record. */
function ragged(codec: CodecOptions, ndim: number, dialect: '2.4' | '2.8' = '2.4'): Files {
  made += 1;
  const place = path.join(folder, `base-${made}`);
  const writer = Ragged.create(place, { ...codec, dtype: 'uint8', ndim, dataShards: 1, dialect });
  const shape = Array.from({ length: ndim }, () => 1);
  writer.appendSync([ndarray('uint8', shape, new Uint8Array(1))]);
  writer.closeSync();
  return readFiles(place);
}

/** Records as they are stored, each with the size it declares. Replaces all that were there. */
function withRecords(
  files: Files,
  records: readonly { readonly stored: Buffer; readonly logical: number }[],
): Files {
  const edits: Edit[] = [];
  let offset = 0;
  for (const [id, { stored, logical }] of records.entries()) {
    const location = makeLocation({ offset: BigInt(offset), stored: stored.length, logical });
    edits.push(put('meta.zr', locationAt(id), location));
    offset += stored.length;
  }
  const data = Buffer.concat(records.map(({ stored }) => stored));
  return edited(files, [
    ...edits,
    put('meta.zr', 0, u64(BigInt(records.length))),
    put('meta.zr', tailAt(0), u64(BigInt(offset))),
    { file: 'data_0.zr', content: data.toString('hex') },
  ]);
}

function put(file: string, at: number, bytes: Buffer): Edit {
  return { file, at, bytes: bytes.toString('hex') };
}

/** Another schema of at most the bytes there is room for. */
function withSchema(files: Files, bytes: Buffer): Files {
  return edited(files, [
    put('meta.zr', 8, u32(bytes.length).subarray(0, 2)),
    put('meta.zr', schemaAt, bytes),
  ]);
}

function add(name: string, files: Files, bomb: Omit<Bomb, 'name' | 'path'>): string {
  made += 1;
  const place = path.join(folder, `bomb-${made}`);
  writeFiles(place, files);
  bombs.push({ name, path: place, ...bomb });
  return place;
}

const raw: CodecOptions = { codec: 'raw' };
const zstd: CodecOptions = { codec: 'zstd' };
const dict: CodecOptions = { codec: 'zstd_dict', dictBytes: new Uint8Array(64).fill(7) };

// ---- lengths and tails ----

for (const length of [
  ...[31n, 32n, 40n, 53n, 59n, 60n, 63n].flatMap((bits) => [(1n << bits) - 1n, 1n << bits]),
  (1n << 64n) - 16n,
  (1n << 64n) - 1n,
]) {
  const files = edited(dense(raw, 12), [put('meta.zr', 0, u64(length))]);
  add(`length ${length}`, files, { expected: 'MALFORMED' });
}
for (const tail of [1n << 31n, 1n << 40n, (1n << 63n) - 1n, 1n << 63n, (1n << 64n) - 1n]) {
  const files = edited(dense(raw, 12), [put('meta.zr', tailAt(0), u64(tail))]);
  add(`tail ${tail}`, files, { expected: 'MALFORMED' });
}

// ---- locations ----

for (const [name, location] of [
  ['offset 2^63', { offset: 1n << 63n, stored: 12, logical: 12 }],
  ['offset + size = 2^64', { offset: -12n, stored: 12, logical: 12 }],
  ['offset + size wraps to 0', { offset: -12n, stored: 24, logical: 24 }],
  ['stores 2^32 - 1', { offset: 0n, stored: 2 ** 32 - 1, logical: 2 ** 32 - 1 }],
  ['stores 2^31', { offset: 0n, stored: 2 ** 31, logical: 2 ** 31 }],
] as const) {
  const edit = put('meta.zr', locationAt(0), makeLocation(location));
  add(`raw: ${name}`, edited(dense(raw, 12), [edit]), { ids: [0], expected: 'MALFORMED' });
  add(`ragged: ${name}`, edited(ragged(raw, 1), [edit]), { ids: [0], expected: 'MALFORMED' });
}
for (const logical of [2 ** 20, 2 ** 30, 2 ** 31, 2 ** 31 + 1, 2 ** 32 - 1]) {
  const stored = storedFrame(Buffer.alloc(9));
  const expected = logical > 2 ** 31 ? 'MALFORMED' : 'CODEC';
  for (const [name, codec] of [
    ['zstd', zstd],
    ['dict', dict],
  ] as const) {
    add(
      `ragged ${name}: a frame of 9 bytes that declares ${logical}`,
      withRecords(ragged(codec, 1), [{ stored, logical }]),
      { ids: [0], expected },
    );
  }
}
// Enough stored bytes to make the claim possible, so that only decoding tells.
const padding = skippable(Buffer.alloc(80_000));
add(
  'ragged: 80 KB that declare 2 GiB and hold 9 bytes',
  withRecords(ragged(zstd, 1), [
    { stored: Buffer.concat([padding, storedFrame(Buffer.alloc(9))]), logical: 2 ** 31 },
  ]),
  { ids: [0], expected: 'CODEC' },
);
add(
  'ragged: the same behind a small record',
  withRecords(ragged(zstd, 1), [
    { stored: storedFrame(Buffer.concat([u64(1n), Buffer.alloc(1)])), logical: 9 },
    { stored: Buffer.concat([padding, storedFrame(Buffer.alloc(9))]), logical: 2 ** 31 },
  ]),
  { ids: [0, 1], expected: 'CODEC' },
);
add(
  'ragged: 2 GiB over maxBatchBytes',
  withRecords(ragged(zstd, 1), [{ stored: padding, logical: 2 ** 31 }]),
  { ids: [0], maxBatchBytes: 2 ** 20, expected: 'TOO_LARGE' },
);
add(
  'dense: a schema of 2 GiB a record, of which 12 bytes are there',
  withSchema(
    dense(raw, 12),
    Buffer.concat([
      Buffer.from('83a56474797065a37c7531a46e64696d01aa6974656d5f736861706591ce80000000', 'hex'),
    ]),
  ),
  { ids: [0], expected: 'MALFORMED' },
);

// ---- products that wrap ----

function denseSchema(...sizes: readonly bigint[]): Buffer {
  const packed = sizes.map((size) => Buffer.concat([Buffer.from([0xcf]), u64(size).reverse()]));
  const head = Buffer.from('83a56474797065a33c6638a46e64696d', 'hex');
  const shape = Buffer.concat([
    Buffer.from([sizes.length]),
    Buffer.from('aa6974656d5f7368617065', 'hex'),
    Buffer.from(sizes.length < 16 ? [0x90 | sizes.length] : [0xdc, 0, sizes.length]),
  ]);
  return Buffer.concat([head, shape, ...packed]);
}

for (const sizes of [
  [1n << 61n],
  [1n << 61n, 8n],
  [1n << 32n, 1n << 32n],
  [(1n << 63n) + 1n, 2n],
  [1n << 31n, 1n << 31n, 4n],
  [(1n << 64n) - 1n, (1n << 64n) - 1n],
  Array.from({ length: 63 }, () => 1n << 31n),
  Array.from({ length: 63 }, () => 2n),
]) {
  add(
    `dense: sizes ${sizes.slice(0, 3).join(' × ')}${sizes.length > 3 ? ' × …' : ''}`,
    withSchema(dense(raw, 12), denseSchema(...sizes)),
    { expected: 'MALFORMED' },
  );
}

const top = (1n << 64n) - 1n;
for (const [ndim, dims] of [
  [2, [1n << 63n, 2n]],
  [2, [(1n << 63n) + 3n, 2n]],
  [2, [1n << 32n, 1n << 32n]],
  [2, [top, top]],
  [3, [1n << 22n, 1n << 21n, 1n << 21n]],
  [64, Array.from({ length: 64 }, () => top)],
  [64, Array.from({ length: 64 }, () => 2n)],
] as const) {
  for (const items of [1, 6, 12]) {
    const record = Buffer.concat([...dims.map(u64), Buffer.alloc(items)]);
    const what = `${ndim} dimensions of ${dims[0]} for ${items} bytes`;
    add(
      `ragged raw: ${what}`,
      withRecords(ragged(raw, ndim), [{ stored: record, logical: record.length }]),
      { ids: [0], expected: 'MALFORMED' },
    );
    const compressed = { stored: storedFrame(record), logical: record.length };
    add(`ragged zstd: ${what}`, withRecords(ragged(zstd, ndim), [compressed]), {
      ids: [0],
      expected: 'MALFORMED',
    });
  }
}
for (const dims of [
  [2 ** 31, 2],
  [2 ** 16, 2 ** 16],
  [2 ** 32 - 1, 2 ** 32 - 1],
]) {
  const record = Buffer.concat([...dims.map(u32), Buffer.alloc(6)]);
  add(
    `ragged 2.8: dimensions ${dims.join(' × ')} for 6 bytes`,
    withRecords(ragged(raw, 2, '2.8'), [{ stored: record, logical: record.length }]),
    { ids: [0], expected: 'MALFORMED' },
  );
}

// ---- frames that promise ----

const record64 = Buffer.alloc(64, 5);
const frames: readonly (readonly [string, Buffer, string])[] = [
  ...[40n, 43n, 62n, 63n].map(
    (bits) =>
      [
        `declares 2^${bits} bytes`,
        frame(storedBlocks(record64), { contentSize: 1n << bits }),
        'CODEC',
      ] as const,
  ),
  ['declares 2^64 - 2 bytes', frame(storedBlocks(record64), { contentSize: -2n & top }), 'CODEC'],
  [
    'declares a terabyte, and a window of 2 GiB',
    frame(storedBlocks(record64), { contentSize: 1n << 40n, window: 0xa8 }),
    'CODEC',
  ],
  ['a window of 2 GiB', frame(storedBlocks(record64), { window: 0xa8 }), 'read 64'],
  ['a window of 3.75 TiB', frame(storedBlocks(record64), { window: 0xff }), 'CODEC'],
  ['16 KiB of repeats: half a gigabyte', frame(repeatedBlocks(5, 2 ** 29)), 'CODEC'],
  ['repeats of the right size', frame(repeatedBlocks(5, 64)), 'read 64'],
  [
    'a hundred thousand empty frames',
    Buffer.concat([
      ...Array.from({ length: 100_000 }, () =>
        frame(storedBlocks(Buffer.alloc(0)), { contentSize: 0, contentSizeBytes: 1 }),
      ),
      storedFrame(record64),
    ]),
    'read 64',
  ],
  [
    'a skippable frame of 2^32 - 1 bytes that is not there',
    Buffer.concat([Buffer.from('502a4d18ffffffff', 'hex'), storedFrame(record64)]),
    'CODEC',
  ],
  [
    'a block of 2^21 - 1 bytes that is not there',
    frame([blockHeader(0, 2 ** 21 - 1, true), record64]),
    'CODEC',
  ],
  [
    'a repeat of 2^21 - 1 bytes',
    frame([blockHeader(1, 2 ** 21 - 1, true), Buffer.from([5])]),
    'CODEC',
  ],
  [
    'two frames in one record',
    Buffer.concat([storedFrame(record64.subarray(0, 1)), storedFrame(record64.subarray(1))]),
    'read 64',
  ],
  ['no content size', frame(storedBlocks(record64)), 'read 64'],
  ['a known bad frame', Buffer.from('28b52ffde06c06060663636363', 'hex'), 'CODEC'],
];
for (const [what, stored, expected] of frames) {
  add(`a frame: ${what}`, withRecords(dense(zstd, 64), [{ stored, logical: 64 }]), {
    ids: [0],
    expected,
  });
}
for (const logical of [16, 2 ** 31]) {
  const stored = Buffer.from('28b52ffde06c06060663636363', 'hex');
  add(
    `a known bad frame that declares ${logical}`,
    withRecords(ragged(zstd, 1), [{ stored, logical }]),
    {
      ids: [0],
      expected: 'CODEC',
    },
  );
}

// ---- many records at the same bytes ----

const shared = storedFrame(Buffer.concat([u64(BigInt(mebi)), Buffer.alloc(mebi)]));
const overlapping = ((): Files => {
  const files = ragged(zstd, 1);
  const location = makeLocation({ offset: 0n, stored: shared.length, logical: mebi + 8 });
  const count = 100_000;
  const meta = bytesOf(files, 'meta.zr').subarray(0, locationAt(0));
  const table = Buffer.concat(Array.from({ length: count }, () => location));
  return edited(files, [
    { file: 'meta.zr', content: Buffer.concat([meta, table]).toString('hex') },
    put('meta.zr', 0, u64(BigInt(count))),
    put('meta.zr', tailAt(0), u64(BigInt(shared.length))),
    { file: 'data_0.zr', content: shared.toString('hex') },
  ]);
})();
const every = Array.from({ length: 100_000 }, (_, id) => id);
const overlap = add('100 000 records at one MiB: all', overlapping, {
  ids: every,
  expected: 'TOO_LARGE',
});
bombs.push({
  name: '100 000 records at one MiB: sixteen of them',
  path: overlap,
  ids: every.filter((id) => id % 6250 === 0),
  expected: `read ${16 * mebi}`,
  requestedBytes: 16 * mebi,
});

// ---- large, and valid ----

const eightMebi = Buffer.alloc(8 * mebi);
for (let at = 0; at < eightMebi.length; at += 4096) eightMebi.writeUInt32LE(at, at);
for (const [what, stored] of [
  ['no content size', frame(storedBlocks(eightMebi))],
  [
    'two frames',
    Buffer.concat([
      storedFrame(eightMebi.subarray(0, 3 * mebi)),
      frame(storedBlocks(eightMebi.subarray(3 * mebi))),
    ]),
  ],
] as const) {
  const place = add(
    `8 MiB in a record: ${what}`,
    withRecords(dense(zstd, eightMebi.length), [{ stored, logical: eightMebi.length }]),
    { ids: [0], expected: `read ${eightMebi.length}`, requestedBytes: eightMebi.length },
  );
  t.test(`8 MiB in a record: ${what}: every byte`, async (t) => {
    const reader = open(place);
    const batch = await reader.gather([0]);
    if (!('data' in batch)) throw new Error('it is dense');
    t.ok(Buffer.from(batch.data.buffer).equals(eightMebi));
    await reader.close();
  });
}

// ---- files that are larger than any disk ----

/** Whether the file system takes a file of holes this large. */
function sparse(file: string, bytes: number): boolean {
  try {
    truncateSync(file, bytes);
    return true;
  } catch {
    return false;
  }
}

const skipped: string[] = [];
{
  const count = 2 ** 33 + 7;
  const files = edited(dense(raw, 12), [put('meta.zr', 0, u64(BigInt(count)))]);
  const name = `a table of ${count} records, all holes`;
  const place = add(name, files, { expected: `opened ${count}` });
  if (sparse(path.join(place, 'meta.zr'), locationAt(count))) {
    bombs.push({ name: `${name}: its last`, path: place, ids: [count - 1], expected: 'MALFORMED' });
    bombs.push({ name: `${name}: its first`, path: place, ids: [0], expected: 'read 12' });
  } else {
    bombs.pop();
    skipped.push(name);
  }
}
{
  const bytes = 2 ** 40;
  const location = makeLocation({ offset: BigInt(bytes - 12), stored: 12, logical: 12 });
  const files = edited(dense(raw, 12), [
    put('meta.zr', tailAt(0), u64(BigInt(bytes))),
    put('meta.zr', locationAt(0), location),
  ]);
  const name = 'a data file of a terabyte of holes';
  const place = add(name, files, { ids: [0], expected: 'read 12' });
  if (!sparse(path.join(place, 'data_0.zr'), bytes)) {
    bombs.pop();
    skipped.push(name);
  }
}
{
  const name = 'a dictionary of a terabyte of holes';
  const place = add(name, dense(dict, 12), { expected: 'TOO_LARGE' });
  if (!sparse(path.join(place, 'dict.zr'), 2 ** 40)) {
    bombs.pop();
    skipped.push(name);
  }
}

t.test('bombs', async (t) => {
  for (const name of skipped) t.pass(name, { skip: 'the file system has no files that large' });
  const file = path.join(folder, 'cases.json');
  // The first one warms up: it is asked for twice.
  const [first] = bombs;
  writeFileSync(file, JSON.stringify([first, ...bombs]));
  const { code, signal, stdout, stderr } = await runChild('bomb', [file], { timeoutMs: 120_000 });
  t.same({ code, signal, stderr }, { code: 0, signal: null, stderr: '' }, 'the process lives');
  const costs = stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Cost)
    .slice(1);
  t.equal(costs.length, bombs.length);
  let [cpuMs, addedBytes] = [0, 0];
  for (const [index, bomb] of bombs.entries()) {
    const cost = costs[index];
    if (cost === undefined) continue;
    const { name, expected, requestedBytes = 0 } = bomb;
    t.equal(cost.outcome, expected, name);
    // What is read costs what reading costs.
    if (requestedBytes === 0) t.ok(cost.cpuMs < cpuMsMax, `${name}: ${cost.cpuMs} ms`);
    const added = cost.addedBytes - requestedBytes;
    t.ok(added < addedBytesMax, `${name}: ${added} bytes beside what was asked for`);
    cpuMs = Math.max(cpuMs, requestedBytes === 0 ? cost.cpuMs : 0);
    addedBytes = Math.max(addedBytes, added);
  }
  t.comment(
    `${bombs.length} bombs; the longest ${cpuMs.toFixed(1)} ms, the largest ${(addedBytes / mebi).toFixed(1)} MiB`,
  );
});
