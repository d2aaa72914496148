/**
 * Containers as the columns of a Parquet file: the way to tables, Arrow and `datasets`.
 *
 * ```text
 * dense  [28, 28] uint8    list of 28 lists of 28 uint8, the lengths being fixed in Arrow's schema
 * dense  []       int64    int64, a class label where a `classes.json` has its names
 * ragged rank 2   int16    list of lists of int16
 * ```
 *
 * A page's items go into the file as they lie in memory, so each bit is kept. Of packages, hyparquet-writer 0.17.0
 * was tried: it writes 0 for -0 and one NaN for another, takes 183 MiB for 3 MB of pictures in lists, and writes 2
 * million items a second. A page is in memory at one time, and what it is made of.
 */
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { dtypeOf } from '../dtype.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { containerName, containersAt, info } from '../inspect/info.js';
import { givenUp } from '../signal.js';
import type { DenseReader, RaggedReader } from '../store/capability.js';
import { rangeArray } from '../store/ids.js';
import { open } from '../store/open.js';
import { idPieces } from '../store/walk.js';
import { arrowSchema } from './arrow-schema.js';
import { classNames } from './classes.js';
import { type ExportOptions, type ExportResult, exportWork, Meter, written } from './npy.js';
import { levelRun, levelRuns, type Thrift, thriftBytes } from './parquet-bytes.js';
import { TargetFile } from './target.js';

/** How pages are packed. */
export type ParquetCompression = 'gzip' | 'none';

/** How a Parquet file is written. */
export interface ExportParquetOptions extends ExportOptions {
  /** `'gzip'` unless given. */
  readonly compression?: ParquetCompression | undefined;
}

/** Items of a page: 1 MiB of int32. A record is never spread over two. */
const pageItems = 256 * 1024;
/** A record must fit into one page, and no reader takes much more. */
const recordItemBytesMax = 512 * 2 ** 20;
/** What a page's header can tell. */
const pageBytesMax = 2 ** 31 - 1;
/** Of the items of a row group. */
const groupBytes = 64 * 2 ** 20;
const groupRowsMax = 2 ** 20;

/**
 * Writes containers of equal counts to a Parquet file: those of a folder by their names, or one. What
 * `importFiles` makes of it has the same logical digests. Row groups have about 64 MiB.
 *
 * @param source a container, or a folder of containers
 * @throws TypeError (INVALID_ARGUMENT) for options that cannot be; LoaderxError as `open` and `gather`; MALFORMED
 *   for a `classes.json` that holds no names, UNSUPPORTED for dtypes that Parquet has not (complex numbers,
 *   bfloat16, 8-bit floats, other byte orders, times, text of NumPy), SOURCE for counts that differ and for a
 *   truth value that is neither 0 nor 1, TOO_LARGE for a record of more than 512 MiB, EXISTS where anything is at
 *   `file` (without `force`) and in a folder that is a container, IO, ABORTED. The file is complete, or not there
 */
export async function exportParquet(
  source: string,
  file: string,
  options: ExportParquetOptions = {},
): Promise<ExportResult> {
  const { force, ...work } = exportWork(options, ['compression']);
  const packer = packers[compressionOf(options.compression)];
  const paths = containersAt(source);
  const columns: Column[] = [];
  const target = await TargetFile.begin(file, force);
  try {
    for (const each of paths) columns.push(await columnAt(each));
    const rowCount = countOf(columns);
    const meter = new Meter(work, rowCount * columns.length);
    const out = new Out(target);
    await out.write(Buffer.from('PAR1'));
    const rowBytes = columns.reduce((sum, { itemBytes }) => sum + itemBytes, 0) / rowCount;
    const groupRows = Math.max(1, Math.min(groupRowsMax, Math.floor(groupBytes / rowBytes)));
    const groups: Group[] = [];
    for (let first = 0; first < rowCount; first += groupRows) {
      const count = Math.min(groupRows, rowCount - first);
      const chunks: Chunk[] = [];
      for (const column of columns) {
        chunks.push(await writeChunk(out, column, first, count, packer, work.signal));
        meter.add(count, Math.round((column.itemBytes / rowCount) * count));
      }
      groups.push({ chunks, rowCount: count });
    }
    await out.write(footerOf(columns, rowCount, groups, packer.codec));
    await target.publish();
  } catch (error) {
    await target.discard();
    if (work.signal?.aborted === true) throw givenUp(source, work.signal);
    throw error;
  } finally {
    await Promise.all(columns.map(({ reader }) => reader.close()));
  }
  return { path: file, ...(await written(paths)) };
}

// ---- columns ----

interface Column {
  readonly path: string;
  readonly name: string;
  readonly reader: DenseReader | RaggedReader;
  readonly leaf: LeafForm;
  /** The fixed length of the lists of each level; null for any. */
  readonly lists: readonly (number | null)[];
  /** Of all records. */
  readonly itemBytes: number;
  /** What labels stand for. */
  readonly classes: readonly string[] | undefined;
}

/** How an item is stored. */
interface LeafForm {
  /** Parquet's own number of the type; the length of its values, and what stands for what they mean. */
  readonly type: number;
  readonly typeLength?: number;
  readonly convertedType?: number;
  readonly logicalType?: Thrift;
  /** The bytes of values of Parquet, of items back to back. */
  readonly plain: (items: Uint8Array, at: Place) => Uint8Array;
}

interface Place {
  readonly column: Column;
  readonly firstRow: number;
}

const asTheyAre = (items: Uint8Array): Uint8Array => items;

const physical = { bool: 0, int32: 1, int64: 2, float: 4, double: 5, fixed: 7 } as const;

function integer(bits: number, isSigned: boolean, plain: LeafForm['plain']): LeafForm {
  // UINT_8 is 11, and the others follow.
  const convertedType = 11 + Math.log2(bits / 8) + (isSigned ? 4 : 0);
  const logical: Thrift = {
    struct: [
      [1, { byte: bits }],
      [2, { flag: isSigned }],
    ],
  };
  return {
    type: bits === 64 ? physical.int64 : physical.int32,
    convertedType,
    logicalType: { struct: [[10, logical]] },
    plain,
  };
}

function widened(
  arrayOf: new (buffer: ArrayBufferLike, offset: number, length: number) => ArrayLike<number>,
  itemBytes: number,
): LeafForm['plain'] {
  return ({ buffer, byteOffset, byteLength }) => {
    const wide = new Int32Array(new arrayOf(buffer, byteOffset, byteLength / itemBytes));
    return new Uint8Array(wide.buffer);
  };
}

const leaves: ReadonlyMap<string, LeafForm> = new Map<string, LeafForm>([
  ['bool', { type: physical.bool, plain: bitsOf }],
  ['int8', integer(8, true, widened(Int8Array, 1))],
  ['uint8', integer(8, false, widened(Uint8Array, 1))],
  ['int16', integer(16, true, widened(Int16Array, 2))],
  ['uint16', integer(16, false, widened(Uint16Array, 2))],
  ['int32', integer(32, true, asTheyAre)],
  ['uint32', integer(32, false, asTheyAre)],
  ['int64', integer(64, true, asTheyAre)],
  ['uint64', integer(64, false, asTheyAre)],
  [
    'float16',
    {
      type: physical.fixed,
      typeLength: 2,
      logicalType: { struct: [[15, { struct: [] }]] },
      plain: asTheyAre,
    },
  ],
  ['float32', { type: physical.float, plain: asTheyAre }],
  ['float64', { type: physical.double, plain: asTheyAre }],
]);

/** Bytes of so many values as Parquet keeps them. */
function plainBytesOf({ type, typeLength }: LeafForm, valueCount: number): number {
  if (type === physical.bool) return Math.ceil(valueCount / 8);
  const isWide = type === physical.int64 || type === physical.double;
  return valueCount * (typeLength ?? (isWide ? 8 : 4));
}

function bitsOf(items: Uint8Array, { column, firstRow }: Place): Uint8Array {
  const bits = new Uint8Array(Math.ceil(items.length / 8));
  for (let at = 0; at < items.length; at += 1) {
    const item = items[at] as number;
    if (item > 1) {
      throw new LoaderxError(
        'SOURCE',
        `${column.path}: from record ${firstRow} on there is a bool whose byte is ${item}, and Parquet keeps 0 and 1`,
        { path: column.path, record: firstRow },
      );
    }
    bits[at >> 3] = (bits[at >> 3] as number) | (item << (at & 7));
  }
  return bits;
}

async function columnAt(containerPath: string): Promise<Column> {
  const { logicalBytes } = await info(containerPath);
  const reader = open(containerPath);
  try {
    return await columnOf(containerPath, reader, logicalBytes);
  } catch (error) {
    await reader.close();
    throw error;
  }
}

async function columnOf(
  containerPath: string,
  reader: DenseReader | RaggedReader,
  itemBytes: number,
): Promise<Column> {
  const { dtype } = reader;
  const leaf = leaves.get(dtype);
  if (leaf === undefined) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `${containerPath}: Parquet has no ${dtype}: .npy and .npz keep all that NumPy has`,
      { path: containerPath, field: 'dtype' },
    );
  }
  const lists =
    reader.kind === 'dense' ? reader.itemShape : new Array<number | null>(reader.ndim).fill(null);
  const mayBeClass = dtype === 'int64' && lists.length === 0;
  return {
    path: containerPath,
    name: containerName(containerPath),
    reader,
    leaf,
    lists,
    itemBytes,
    classes: mayBeClass ? await classNames(containerPath) : undefined,
  };
}

function countOf(columns: readonly Column[]): number {
  const [first] = columns as readonly [Column];
  const twin = columns.find(({ name }, at) => columns.findIndex((one) => one.name === name) < at);
  if (twin !== undefined) {
    const text = `${twin.path}: another container is called ${twin.name} too, and columns have names of their own`;
    throw new LoaderxError('SOURCE', text, { path: twin.path });
  }
  const other = columns.find(({ reader }) => reader.length !== first.reader.length);
  if (other === undefined) return first.reader.length;
  throw new LoaderxError(
    'SOURCE',
    `${first.path} has ${first.reader.length} records, and ${other.path} has ${other.reader.length}: columns of a table have as many`,
    { path: other.path },
  );
}

// ---- pages ----

/** The file, and how far it is. */
class Out {
  position = 0;
  readonly #target: TargetFile;

  constructor(target: TargetFile) {
    this.#target = target;
  }

  async write(bytes: Uint8Array): Promise<void> {
    await this.#target.write(bytes);
    this.position += bytes.byteLength;
  }
}

interface Packer {
  /** Parquet's own number of it. */
  readonly codec: number;
  readonly pack: (bytes: Uint8Array) => Promise<Uint8Array>;
}

const gzipped = promisify(gzip);

const packers: Readonly<Record<ParquetCompression, Packer>> = {
  gzip: { codec: 2, pack: (bytes) => gzipped(bytes) },
  none: { codec: 0, pack: async (bytes) => bytes },
};

function compressionOf(value: unknown): ParquetCompression {
  if (value === undefined) return 'gzip';
  if (value === 'gzip' || value === 'none') return value;
  throw new ArgumentTypeError(
    'compression',
    `compression must be ${Object.keys(packers).join(' or ')}, got ${show(value)}`,
  );
}

async function writeChunk(
  out: Out,
  column: Column,
  first: number,
  count: number,
  packer: Packer,
  signal: AbortSignal | undefined,
): Promise<Chunk> {
  const { reader } = column;
  const from = out.position;
  let valueCount = 0;
  let unpacked = 0;
  const ids = rangeArray({ first, step: 1, count });
  const pageBytes = pageItems * dtypeOf(reader.dtype).itemBytes;
  let row = first;
  for (const piece of idPieces(reader, ids, pageBytes)) {
    signal?.throwIfAborted();
    const batch = await reader.gather(piece);
    const page = await pageOf(column, batch, row, piece.length, packer);
    // What is stored may be the batch's own memory.
    for (const bytes of page.pieces) await out.write(bytes);
    batch[Symbol.dispose]();
    valueCount += page.valueCount;
    unpacked += page.unpackedBytes;
    row += piece.length;
  }
  const storedBytes = out.position - from;
  return { column, from, valueCount, unpackedBytes: unpacked, storedBytes };
}

type Batch = Awaited<ReturnType<(DenseReader | RaggedReader)['gather']>>;

interface Page {
  readonly pieces: readonly Uint8Array[];
  readonly valueCount: number;
  readonly unpackedBytes: number;
}

async function pageOf(
  column: Column,
  batch: Batch,
  firstRow: number,
  rowCount: number,
  { pack }: Packer,
): Promise<Page> {
  const { path: own, lists, leaf } = column;
  const data = 'offsets' in batch ? batch.values : batch.data;
  if (data.byteLength > recordItemBytesMax) {
    throw new LoaderxError(
      'TOO_LARGE',
      `${own}: record ${firstRow} has ${data.byteLength} bytes, and ${recordItemBytesMax} is the most for a page of Parquet`,
      { path: own, record: firstRow },
    );
  }
  const items = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  const valueCount = data.byteLength / dtypeOf(batch.dtype).itemBytes;
  const rank = lists.length;
  const repetitions =
    'offsets' in batch
      ? raggedLevels(batch.dims, rank, rowCount, valueCount)
      : denseLevels(lists as readonly number[], rowCount, valueCount);
  const repeated = rank === 0 ? new Uint8Array(0) : levelRuns(repetitions, rank);
  // Nothing is null, on no level.
  const defined = levelRun(2 * rank + 1, valueCount);
  const levelBytes = repeated.byteLength + defined.byteLength;
  // Before memory for it is taken: small integers grow to 4 bytes.
  const pageBytes = levelBytes + plainBytesOf(leaf, valueCount);
  if (pageBytes > pageBytesMax) {
    throw new LoaderxError(
      'TOO_LARGE',
      `${own}: record ${firstRow} would have ${pageBytes} bytes in Parquet, and ${pageBytesMax} is the most for a page`,
      { path: own, record: firstRow },
    );
  }
  const plain = leaf.plain(items, { column, firstRow });
  const packed = await pack(plain);
  const isPacked = packed.byteLength < plain.byteLength;
  const stored = isPacked ? packed : plain;
  const header = thriftBytes({
    struct: [
      [1, { i32: words.dataPageV2 }],
      [2, { i32: levelBytes + plain.byteLength }],
      [3, { i32: levelBytes + stored.byteLength }],
      [
        8,
        {
          struct: [
            [1, { i32: valueCount }],
            [2, { i32: 0 }],
            [3, { i32: rowCount }],
            [4, { i32: words.plain }],
            [5, { i32: defined.byteLength }],
            [6, { i32: repeated.byteLength }],
            [7, { flag: isPacked }],
          ],
        },
      ],
    ],
  });
  return {
    pieces: [header, repeated, defined, stored],
    valueCount,
    unpackedBytes: header.byteLength + levelBytes + plain.byteLength,
  };
}

/** The level of lists that goes on with each item: 0 for a new record. */
function denseLevels(shape: readonly number[], rowCount: number, valueCount: number): Uint8Array {
  const levels = new Uint8Array(valueCount);
  const perRow = valueCount / rowCount;
  const own = levels.subarray(0, perRow);
  markLevels(own, shape);
  for (let row = 1; row < rowCount; row += 1) levels.set(own, row * perRow);
  return levels;
}

function raggedLevels(
  dims: Uint32Array | Float64Array,
  rank: number,
  rowCount: number,
  valueCount: number,
): Uint8Array {
  const levels = new Uint8Array(valueCount);
  let at = 0;
  for (let row = 0; row < rowCount; row += 1) {
    const shape = Array.from(dims.subarray(row * rank, (row + 1) * rank));
    const count = shape.reduce((product, size) => product * size, 1);
    markLevels(levels.subarray(at, at + count), shape);
    at += count;
  }
  return levels;
}

/** Those of one record: the innermost lists go on but where a list of a level above begins. */
function markLevels(levels: Uint8Array, shape: readonly number[]): void {
  levels.fill(shape.length);
  let step = 1;
  for (let level = shape.length - 1; level > 0; level -= 1) {
    step *= shape[level] as number;
    for (let at = 0; at < levels.length; at += step) levels[at] = level;
  }
  levels[0] = 0;
}

// ---- the footer ----

/** A column of a row group. */
interface Chunk {
  readonly column: Column;
  readonly from: number;
  readonly valueCount: number;
  readonly unpackedBytes: number;
  readonly storedBytes: number;
}

interface Group {
  readonly chunks: readonly Chunk[];
  readonly rowCount: number;
}

/** Numbers that stand for words in Parquet. */
const words = {
  optional: 1,
  repeated: 2,
  list: 3,
  plain: 0,
  rle: 3,
  dataPageV2: 3,
} as const;

function footerOf(
  columns: readonly Column[],
  rowCount: number,
  groups: readonly Group[],
  codec: number,
): Uint8Array {
  const arrow = columns.map(({ name, reader, lists }) => ({ name, dtype: reader.dtype, lists }));
  const huggingface = JSON.stringify({ info: { features: featuresOf(columns) } });
  const metadata = thriftBytes({
    struct: [
      [1, { i32: 2 }],
      [2, { list: schemaOf(columns) }],
      [3, { i64: rowCount }],
      [4, { list: groups.map((group) => groupOf(group, codec)) }],
      [
        5,
        {
          list: [
            pairOf('ARROW:schema', arrowSchema(arrow, { huggingface })),
            pairOf('huggingface', huggingface),
          ],
        },
      ],
      [6, { text: 'loaderx' }],
    ],
  });
  const footer = Buffer.alloc(metadata.length + 8);
  footer.set(metadata);
  footer.writeUInt32LE(metadata.length, metadata.length);
  footer.write('PAR1', metadata.length + 4, 'latin1');
  return footer;
}

function pairOf(key: string, value: string): Thrift {
  return {
    struct: [
      [1, { text: key }],
      [2, { text: value }],
    ],
  };
}

function schemaOf(columns: readonly Column[]): Thrift[] {
  const root: Thrift = {
    struct: [
      [4, { text: 'schema' }],
      [5, { i32: columns.length }],
    ],
  };
  const schema = [root];
  for (const { name, lists, leaf } of columns) {
    let own = name;
    for (const _length of lists) {
      schema.push({
        struct: [
          [3, { i32: words.optional }],
          [4, { text: own }],
          [5, { i32: 1 }],
          [6, { i32: words.list }],
          [10, { struct: [[3, { struct: [] }]] }],
        ],
      });
      schema.push({
        struct: [
          [3, { i32: words.repeated }],
          [4, { text: 'list' }],
          [5, { i32: 1 }],
        ],
      });
      own = 'element';
    }
    const { type, typeLength, convertedType, logicalType } = leaf;
    schema.push({
      struct: [
        [1, { i32: type }],
        [2, typeLength === undefined ? undefined : { i32: typeLength }],
        [3, { i32: words.optional }],
        [4, { text: own }],
        [6, convertedType === undefined ? undefined : { i32: convertedType }],
        [10, logicalType],
      ],
    });
  }
  return schema;
}

function groupOf({ chunks, rowCount }: Group, codec: number): Thrift {
  const sum = (of: (chunk: Chunk) => number): number =>
    chunks.reduce((total, chunk) => total + of(chunk), 0);
  return {
    struct: [
      [1, { list: chunks.map((chunk) => chunkOf(chunk, codec)) }],
      [2, { i64: sum(({ unpackedBytes }) => unpackedBytes) }],
      [3, { i64: rowCount }],
      [5, { i64: chunks[0]?.from ?? 0 }],
      [6, { i64: sum(({ storedBytes }) => storedBytes) }],
    ],
  };
}

function chunkOf(
  { column, from, valueCount, unpackedBytes, storedBytes }: Chunk,
  codec: number,
): Thrift {
  const { name, leaf, lists } = column;
  const place = [name, ...lists.flatMap(() => ['list', 'element'])];
  return {
    struct: [
      [2, { i64: 0 }],
      [
        3,
        {
          struct: [
            [1, { i32: leaf.type }],
            [2, { list: [{ i32: words.plain }, { i32: words.rle }] }],
            [3, { list: place.map((text) => ({ text })) }],
            [4, { i32: codec }],
            [5, { i64: valueCount }],
            [6, { i64: unpackedBytes }],
            [7, { i64: storedBytes }],
            [9, { i64: from }],
          ],
        },
      ],
    ],
  };
}

/** As `datasets` declares them; older versions know no `List`, and newer ones still take `Sequence`. */
function featuresOf(columns: readonly Column[]): Readonly<Record<string, unknown>> {
  const features: Record<string, unknown> = Object.create(null);
  for (const { name, reader, lists, classes } of columns) {
    let feature: unknown =
      classes === undefined
        ? { dtype: reader.dtype, _type: 'Value' }
        : { names: classes, _type: 'ClassLabel' };
    for (const length of [...lists].reverse()) {
      feature = { feature, ...(length === null ? {} : { length }), _type: 'Sequence' };
    }
    features[name] = feature;
  }
  return features;
}
