// Golden containers: read in every way, and written again from the same appends, byte for byte.
//
// `golden/*.hex` are our own, put together by golden/make.py from the format's description. The
// original's, of both dialects, are read when the project's shared fixtures lie beside the repository.
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { dtypeFromName28, dtypeFromNumpy, isRefusal } from '../ts/dtype.js';
import {
  type CreateOptions,
  Dense,
  type DenseReader,
  type DType,
  type NdArray,
  ndarray,
  open,
  Ragged,
  type RaggedReader,
  toNative,
  trainDict,
} from '../ts/index.js';
import { native } from '../ts/native/load.js';
import { bytesOf, type Files, readFiles } from './support/files.mjs';
import { fixture, readFixture, withoutFixtures } from './support/fixtures.js';
import { locationAt, pageBytes, readLocation, readPage } from './support/page.mjs';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

/** What a container holds, and how it came to be. */
interface About {
  readonly kind: 'dense' | 'ragged';
  readonly dtype: DType;
  readonly itemShape: readonly number[];
  readonly ndim: number;
  readonly codec: 'raw' | 'zstd' | 'zstd_dict';
  readonly dataShards: number;
  readonly dialect: '2.4' | '2.8';
  readonly dictBytes: Uint8Array | undefined;
  /** Records of each append, in order. */
  readonly appends: readonly number[];
}

// ---- reading in every way ----

function openAs(
  place: string,
  { kind, dtype, itemShape, ndim }: About,
): DenseReader | RaggedReader {
  return kind === 'dense'
    ? Dense.open(place, { dtype, itemShape })
    : Ragged.open(place, { dtype, ndim });
}

function bytes(data: ArrayBufferView): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

/** A batch as single records. */
function recordsOf(batch: Awaited<ReturnType<(DenseReader | RaggedReader)['gather']>>): NdArray[] {
  if ('toArray' in batch) return batch.toArray();
  const { dtype, data } = batch;
  const [count = 0, ...shape] = batch.shape;
  const width = count === 0 ? 0 : data.length / count;
  return Array.from({ length: count }, (_, index) => ({
    dtype,
    shape,
    data: data.slice(index * width, (index + 1) * width) as NdArray['data'],
  }));
}

function same(one: readonly NdArray[], other: readonly NdArray[]): boolean {
  return (
    one.length === other.length &&
    one.every((record, index) => {
      const twin = other[index];
      return (
        twin !== undefined &&
        record.dtype === twin.dtype &&
        String(record.shape) === String(twin.shape) &&
        bytes(record.data).equals(bytes(twin.data))
      );
    })
  );
}

/** Every record, read one by one; all other ways of reading are held against them. */
async function readAll(t: Test, place: string, about: About): Promise<readonly NdArray[]> {
  const reader = openAs(place, about);
  const length = about.appends.reduce((sum, count) => sum + count, 0);
  try {
    const found: Partial<Record<string, unknown>> = {};
    for (const field of [
      'kind',
      'dtype',
      'ndim',
      'codec',
      'dataShards',
      'dialect',
      'hasDict',
      'length',
    ] as const) {
      found[field] = reader[field];
    }
    const { kind, dtype, ndim, codec, dataShards, dialect } = about;
    t.same(
      found,
      { kind, dtype, ndim, codec, dataShards, dialect, hasDict: codec === 'zstd_dict', length },
      'what the reader says of it',
    );
    if (reader.kind === 'dense') t.same(reader.itemShape, about.itemShape, 'itemShape');

    const ids = Array.from({ length }, (_, id) => id);
    const all = ids.map((id) => reader.record(id));
    const pick = (chosen: readonly number[]): NdArray[] => chosen.map((id) => all[id] as NdArray);
    const every = (start: number, end: number, step: number): number[] =>
      ids.filter((id) => id >= start && id < end && (id - start) % step === 0);
    const reversed = [...ids].reverse();
    const mixed = ids.map((id) => (id * 7 + 3) % length);

    const anyway = open(place);
    t.ok(same(recordsOf(await anyway.slice()), all), 'open() and slice(): all');
    await anyway.close();
    t.ok(same(recordsOf(await reader.gather(ids)), all), 'gather: all');
    t.ok(same(recordsOf(reader.gatherSync(reversed)), pick(reversed)), 'gatherSync: backwards');
    t.ok(same(recordsOf(await reader.gather(mixed)), pick(mixed)), 'gather: mixed');
    t.ok(same(recordsOf(reader.gatherSync([])), []), 'gatherSync: nothing');
    for (const [start, end, step] of [
      [0, 3, 1],
      [1, length, 2],
      [2, length + 9, 5],
    ] as const) {
      const part = recordsOf(await reader.slice(start, end, step));
      t.ok(same(part, pick(every(start, end, step))), `slice(${start}, ${end}, ${step})`);
    }
    const batched: NdArray[] = [];
    for await (const batch of reader.batches(7)) batched.push(...recordsOf(batch));
    t.ok(same(batched, all), 'batches(7)');
    return all;
  } finally {
    await reader.close();
  }
}

// ---- writing again ----

/** Writes `records` as the container was written. Appends in turn through each kind of call. */
async function rewrite(place: string, about: About, records: readonly NdArray[]): Promise<void> {
  const { kind, dtype, itemShape, ndim, codec, dataShards, dialect, dictBytes } = about;
  const common: CreateOptions = {
    ...(codec === 'zstd_dict' ? { codec, dictBytes: dictBytes ?? new Uint8Array() } : { codec }),
    dataShards,
    dialect,
  };
  const groups: NdArray[][] = [];
  let from = 0;
  for (const count of about.appends) {
    groups.push(records.slice(from, from + count));
    from += count;
  }
  if (kind === 'dense') {
    const writer = Dense.create(place, { ...common, dtype, itemShape });
    for (const [index, group] of groups.entries()) {
      const batch = joined(dtype, itemShape, group);
      if (index % 2 === 0) await writer.append(batch);
      else writer.appendSync(batch);
    }
    await writer.close();
    return;
  }
  const writer = Ragged.create(place, { ...common, dtype, ndim });
  for (const [index, group] of groups.entries()) {
    if (index % 2 === 0) await writer.append(group);
    else writer.appendSync(group.values());
  }
  writer.closeSync();
}

function joined(dtype: DType, itemShape: readonly number[], records: readonly NdArray[]): NdArray {
  const [first] = records;
  if (first === undefined) throw new Error('an append of nothing');
  const all = Buffer.concat(records.map(({ data }) => bytes(data)));
  const maker = first.data.constructor as new (memory: ArrayBuffer) => NdArray['data'];
  // Memory of its own: a Buffer's may be shared and unaligned.
  const memory = new Uint8Array(all).buffer;
  return ndarray(dtype, [records.length, ...itemShape], new maker(memory));
}

const windowRecords = 32_768;
const chunkBytesMax = 512 * 1024;

/**
 * Whether the original writes these files the same every time: no append puts more than one chunk
 * into a shard. Where one does, its lanes race for the places of the chunks.
 */
function isFixed(about: About, logicalBytes: readonly number[], lanes: number): boolean {
  let from = 0;
  return about.appends.every((count) => {
    const end = from + count;
    const sizes = logicalBytes.slice(from, end);
    const total = sizes.reduce((sum, size) => sum + size, 0);
    const share = Math.ceil(total / Math.min(count, lanes));
    const limit = about.codec === 'raw' ? chunkBytesMax : Math.min(chunkBytesMax, share);
    const chunks = new Map<string, { bytes: number; count: number }>();
    for (const [index, size] of sizes.entries()) {
      const window = Math.floor(index / windowRecords);
      const key = `${window}/${(from + index) % about.dataShards}`;
      const chunk = chunks.get(key) ?? { bytes: 0, count: 0 };
      chunks.set(key, { bytes: chunk.bytes + size, count: chunk.count + 1 });
    }
    from = end;
    return [...chunks.values()].every((chunk) => chunk.count === 1 || chunk.bytes <= limit);
  });
}

/** Each record's stored bytes, wherever they lie. */
function storedRecords(files: Files): string[] {
  const meta = bytesOf(files, 'meta.zr');
  const { length, dataShards } = readPage(meta);
  return Array.from({ length: Number(length) }, (_, id) => {
    const { offset, stored, logical } = readLocation(meta, id);
    const data = bytesOf(files, `data_${id % dataShards}.zr`);
    const bytes = data.subarray(Number(offset), Number(offset) + stored);
    return `${logical} ${createHash('sha256').update(bytes).digest('hex')}`;
  });
}

/** Names of files whose bytes are not the same. */
function differing(ours: Files, theirs: Files): string[] {
  const names = new Set([...ours.keys(), ...theirs.keys()]);
  return [...names].filter((name) => {
    const [one, other] = [ours.get(name), theirs.get(name)];
    return !Buffer.isBuffer(one) || !Buffer.isBuffer(other) || !one.equals(other);
  });
}

/** Writes the container again and compares. `isEqual`: every byte must be the same. */
async function checkRewrite(
  t: Test,
  golden: string,
  about: About,
  records: readonly NdArray[],
  lanes: number | 'any',
): Promise<'equal' | 'reordered'> {
  const place = scratch.fresh();
  await rewrite(place, about, records);
  const [ours, theirs] = [readFiles(place), readFiles(golden)];
  const meta = bytesOf(theirs, 'meta.zr');
  t.ok(
    bytesOf(ours, 'meta.zr').subarray(0, pageBytes).equals(meta.subarray(0, pageBytes)),
    'written again: page and schema, byte for byte',
  );
  t.same(storedRecords(ours), storedRecords(theirs), "written again: every record's stored bytes");
  const logicalBytes = records.map((_, id) => readLocation(meta, id).logical);
  const differs = differing(ours, theirs);
  if (lanes === 'any' || isFixed(about, logicalBytes, lanes)) {
    t.same(differs, [], 'written again: table and payloads, byte for byte');
  } else {
    t.equal(bytesOf(ours, 'meta.zr').length, locationAt(records.length), 'size of the table');
  }
  return differs.length === 0 ? 'equal' : 'reordered';
}

// ---- our own ----

const goldenFolder = fileURLToPath(new URL('./golden/', import.meta.url));

interface Golden {
  readonly about: About;
  readonly records: readonly { readonly shape: readonly number[]; readonly hex: string }[];
  readonly files: Files;
}

/** Reads a `.hex` file; golden/make.py says what its lines are. */
function parse(text: string): Golden {
  let create: Partial<About> = {};
  let dictBytes: Uint8Array | undefined;
  const appends: number[] = [];
  const records: { shape: readonly number[]; hex: string }[] = [];
  const files: Files = new Map();
  let content = Buffer.alloc(0);
  for (const line of text.trimEnd().split('\n')) {
    const [word = '', first = '', second = ''] = line.split(' ');
    if (word === '#') continue;
    if (word === 'create') {
      create = JSON.parse(line.slice('create '.length)) as Partial<About>;
    } else if (word === 'dict') {
      dictBytes = Uint8Array.from(Buffer.from(first, 'hex'));
    } else if (word === 'append') {
      appends.push(0);
    } else if (word === 'record') {
      appends.push((appends.pop() ?? 0) + 1);
      records.push({ shape: JSON.parse(first) as number[], hex: second });
    } else if (word === 'file') {
      content = Buffer.alloc(Number(second));
      files.set(first, content);
    } else {
      const at = Number.parseInt(word, 16);
      const part = Buffer.from(first, 'hex');
      if (!/^[\da-f]{4,}$/.test(word) || part.length * 2 !== first.length) {
        throw new Error(`not a line of a golden file: ${line}`);
      }
      if (part.copy(content, at) !== part.length)
        throw new Error(`past the end of the file: ${line}`);
    }
  }
  const {
    kind,
    dtype,
    codec,
    dataShards,
    dialect,
    itemShape = [],
    ndim = itemShape.length,
  } = create;
  if (!kind || !dtype || !codec || !dataShards || !dialect) throw new Error('no create line');
  const about = { kind, dtype, itemShape, ndim, codec, dataShards, dialect, dictBytes, appends };
  return { about, records, files };
}

t.test('our own golden containers', async (t) => {
  const names = readdirSync(goldenFolder).filter((name) => name.endsWith('.hex'));
  const seen = new Set<string>();
  for (const name of names) {
    await t.test(name, async (t) => {
      const { about, records, files } = parse(readFileSync(path.join(goldenFolder, name), 'utf8'));
      seen.add(`${about.kind} ${about.codec} ${about.dialect}`);
      const place = scratch.fresh();
      mkdirSync(place);
      for (const [file, content] of files) writeFileSync(path.join(place, file), content);
      const found = await readAll(t, place, about);
      t.same(
        found.map(({ shape, data }) => ({ shape, hex: bytes(data).toString('hex') })),
        records,
        'every record',
      );
      await checkRewrite(t, place, about, found, 'any');
    });
  }
  t.equal(seen.size, 12, 'both kinds, all codecs, both dialects');
});

// ---- the original's ----

interface ManifestRecord {
  /** Of the items, little-endian. */
  readonly sha256: string;
  readonly bytes: number;
  /** Of the items as they are stored, where they are big-endian. */
  readonly stored_sha256?: string;
  readonly dims?: readonly number[];
}

type Value = string | number | boolean | readonly Value[];

interface ManifestContainer {
  readonly name: string;
  readonly kind: 'dense' | 'ragged';
  readonly dtype: string;
  readonly item_shape?: readonly number[];
  readonly ndim?: number;
  readonly codec: 'raw' | 'zstd' | 'zstd_dict';
  readonly data_shards: number;
  readonly length: number;
  readonly appends?: readonly number[];
  readonly records: Readonly<{ [index: string]: ManifestRecord }>;
  readonly all_sha256?: string;
  readonly all_dims_sha256?: string;
  readonly values?: readonly Value[];
  readonly stored_hex?: readonly string[];
  readonly dict?: { readonly bytes: number; readonly sha256: string; readonly trained_on?: string };
}

function sha256(...parts: readonly Uint8Array[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}

/** The items' bytes with every number little-endian; `U` items are of 4-byte characters. */
function littleEndian(record: NdArray, dtype: string): Buffer {
  if (!dtype.startsWith('>')) return bytes(record.data);
  if (dtype.startsWith('>U')) return Buffer.from(bytes(record.data)).swap32();
  return bytes(toNative(record).data);
}

/** The items as the manifest writes them down; undefined for long doubles, which nothing here reads. */
function valuesOf(record: NdArray, dtype: string): Value[] | undefined {
  const kind = dtype.replace(/^[<>|=]/, '')[0] ?? '';
  const width = Number(/\d+/.exec(dtype)?.[0] ?? 0);
  if (/^.(f16|c32)/.test(dtype)) return undefined;
  const buffer = bytes(record.data);
  if (kind === 'S' || kind === 'V') {
    const items: string[] = [];
    for (let at = 0; at < buffer.length; at += width) {
      const item = buffer.toString('hex', at, at + width);
      // NumPy's S items end before their trailing zeros.
      items.push(
        kind === 'S' ? item.replace(/(?:00)+$/, (zeros) => zeros.slice(zeros.length)) : item,
      );
    }
    return items;
  }
  if (kind === 'U') {
    const little = littleEndian(record, dtype);
    const items: string[] = [];
    for (let at = 0; at < little.length; at += width * 4) {
      const points: number[] = [];
      for (let point = at; point < at + width * 4; point += 4)
        points.push(little.readUInt32LE(point));
      items.push(String.fromCodePoint(...points).replace(/\0+$/, ''));
    }
    return items;
  }
  const { data } = dtype.startsWith('>') ? toNative(record) : record;
  const numbers: Value[] =
    kind === 'f' && width === 2
      ? Array.from(data as Uint16Array, (bits) => shown(halfOf(bits)))
      : Array.from(data as ArrayLike<number | bigint>, (value) =>
          kind === 'b'
            ? value === 1
            : typeof value === 'bigint'
              ? String(value)
              : kind === 'f' || kind === 'c'
                ? shown(value)
                : value,
        );
  if (kind !== 'c') return numbers;
  return Array.from({ length: numbers.length / 2 }, (_, index) =>
    numbers.slice(index * 2, index * 2 + 2),
  );
}

/** A number of 16 bits. */
function halfOf(bits: number): number {
  const sign = bits >> 15 ? -1 : 1;
  const exponent = (bits >> 10) & 0x1f;
  const fraction = bits & 0x3ff;
  if (exponent === 0x1f) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0
    ? sign * fraction * 2 ** -24
    : sign * (1 + fraction / 1024) * 2 ** (exponent - 15);
}

/** A float so that it can be compared as text, however it is spelt. */
function shown(value: number): string {
  return Object.is(value, -0) ? '-0' : String(value);
}

/** The manifest's values flat, floats spelt as {@link shown} does. */
function flat(value: Value, dtype: string): Value[] {
  if (Array.isArray(value)) {
    const isPair = /^.c/.test(dtype) && value.every((part) => typeof part === 'string');
    const parts = (value as readonly Value[]).flatMap((part) => flat(part, dtype));
    return isPair ? [parts] : parts;
  }
  if (/^.[fc]/.test(dtype) && typeof value === 'string') {
    const number = { inf: Infinity, '-inf': -Infinity, nan: Number.NaN }[value] ?? Number(value);
    return [shown(/^.(f4|c8)/.test(dtype) ? Math.fround(number) : number)];
  }
  return [value as Value];
}

async function checkContainer(
  t: Test,
  folder: string,
  manifest: ManifestContainer,
  dialect: '2.4' | '2.8',
): Promise<'equal' | 'reordered'> {
  const place = fixture(`${folder}/${manifest.name}`);
  const info = dialect === '2.4' ? dtypeFromNumpy(manifest.dtype) : dtypeFromName28(manifest.dtype);
  if (isRefusal(info)) throw new Error(`${manifest.dtype} ${info.reason}`);
  const itemShape = manifest.item_shape ?? [];
  const about: About = {
    kind: manifest.kind,
    dtype: info.name,
    itemShape,
    dialect,
    ndim: manifest.ndim ?? itemShape.length,
    codec: manifest.codec,
    dataShards: manifest.data_shards,
    dictBytes:
      manifest.dict === undefined && manifest.codec !== 'zstd_dict' ? undefined : dictOf(place),
    appends: manifest.appends ?? [manifest.length],
  };
  if (manifest.dict !== undefined) {
    t.equal(sha256(about.dictBytes ?? new Uint8Array()), manifest.dict.sha256, 'the dictionary');
  }
  const records = await readAll(t, place, about);
  const little = records.map((record) => littleEndian(record, manifest.dtype));
  for (const [index, wanted] of Object.entries(manifest.records)) {
    const record = records[Number(index)];
    const items = little[Number(index)];
    if (record === undefined || items === undefined) {
      t.fail(`record ${index} is not there`);
      continue;
    }
    const stored = wanted.stored_sha256 ?? wanted.sha256;
    t.equal(sha256(items), wanted.sha256, `record ${index}: hash`);
    t.equal(sha256(bytes(record.data)), stored, `record ${index}: hash as stored`);
    t.equal(items.length, wanted.bytes, `record ${index}: bytes`);
    if (wanted.dims !== undefined) t.same(record.shape, wanted.dims, `record ${index}: dims`);
  }
  if (manifest.all_sha256 !== undefined) t.equal(sha256(...little), manifest.all_sha256, 'all');
  if (manifest.all_dims_sha256 !== undefined) {
    const dims = BigUint64Array.from(
      records.flatMap(({ shape }) => [...shape]),
      BigInt,
    );
    t.equal(sha256(bytes(dims)), manifest.all_dims_sha256, 'all dims');
  }
  if (manifest.stored_hex !== undefined) {
    t.same(
      records.map(({ data }) => bytes(data).toString('hex')),
      manifest.stored_hex,
      'stored',
    );
  }
  for (const [index, value] of (manifest.values ?? []).entries()) {
    const ours = valuesOf(records[index] as NdArray, manifest.dtype);
    if (ours !== undefined) t.same(ours, flat(value, manifest.dtype), `record ${index}: values`);
  }
  if (manifest.dict?.trained_on !== undefined) await checkTraining(t, place, about, records);
  return checkRewrite(t, place, about, records, native().laneCount());
}

function dictOf(place: string): Uint8Array {
  return Uint8Array.from(readFileSync(path.join(place, 'dict.zr')));
}

async function checkTraining(
  t: Test,
  place: string,
  about: About,
  records: readonly NdArray[],
): Promise<void> {
  const wanted = about.dictBytes ?? new Uint8Array();
  const equal = (dict: Uint8Array): boolean => bytes(dict).equals(bytes(wanted));
  const reader = open(place);
  t.ok(equal(await trainDict(reader)), 'trained on the reader: dict.zr byte for byte');
  await reader.close();
  t.ok(equal(await trainDict(records)), 'trained on a list of the records');
  t.ok(equal(await trainDict(records.map(({ data }) => new Uint8Array(bytes(data))))), 'on bytes');
  if (about.kind === 'dense') {
    const array = joined(about.dtype, about.itemShape, records);
    t.ok(equal(await trainDict(array)), 'trained on one array of the records');
  }
}

for (const [folder, dialect, count] of [
  ['containers', '2.4', 90],
  ['containers-2.8', '2.8', 31],
] as const) {
  t.test(`containers of the original, dialect ${dialect}`, { skip: withoutFixtures }, async (t) => {
    const { containers } = readFixture<{ readonly containers: readonly ManifestContainer[] }>(
      `${folder}/manifest.json`,
    );
    t.equal(containers.length, count);
    const outcomes = { equal: 0, reordered: 0 };
    for (const manifest of containers) {
      await t.test(manifest.name, async (t) => {
        outcomes[await checkContainer(t, folder, manifest, dialect)] += 1;
      });
    }
    t.comment(
      `written again with ${native().laneCount()} lanes: ${outcomes.equal} byte for byte, ${outcomes.reordered} with chunks in another order`,
    );
  });
}
