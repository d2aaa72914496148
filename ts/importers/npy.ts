/**
 * `.npy` files as datasets of one column: a record is what lies along the first axis.
 *
 * The header is read by this package's own parser, since no npm package reads all versions, orders and byte
 * orders without taking the whole file into memory. Items go from the file into blocks that are appended as
 * they are; those of the other byte order are turned round in place, those in Fortran order are picked
 * together record by record. What a container stores as the file has it is copied by the core, from file to file.
 */

import type { Dataset, Feature, Features, RowBatch } from '../converter/dataset.js';
import { FileColumn, type FilePlace, fileColumnsOf } from '../converter/file-column.js';
import type { Data } from '../dtype.js';
import { LoaderxError } from '../errors.js';
import type { NdArray } from '../ndarray.js';
import { Blocks, type ByteFile, type ByteSource, type ByteStream } from './bytes.js';
import { headerOf, headerPlace, type NpyHeader, prefixBytes } from './npy-header.js';

/** Items that are read and written at one time; more where one record has more. */
const blockBytes = 8 * 2 ** 20;
const blockRows = 32_768;

/** Items that are told of at one time, where they go from file to file: for progress, and for a signal. */
const stretchBytes = 64 * 2 ** 20;

/**
 * @param column the name of the only column
 * @throws LoaderxError MALFORMED, UNSUPPORTED, TOO_LARGE, SOURCE for an array that has no records, NOT_FOUND,
 *   IO
 */
export async function npyDataset(source: ByteSource, column: string): Promise<Dataset> {
  const header = await checkedHeader(source);
  const { dtype, shape } = header;
  const [rowCount = 0, ...itemShape] = shape;
  const feature: Feature =
    itemShape.length === 0 ? { kind: 'value', dtype } : { kind: 'array', shape: itemShape, dtype };
  return rowsOf(source, header, new Map([[column, feature]]), { first: 0, end: rowCount });
}

/** Records `first` to `end - 1`. */
interface Rows {
  readonly first: number;
  readonly end: number;
}

function rowsOf(source: ByteSource, header: NpyHeader, features: Features, rows: Rows): Dataset {
  const { first, end } = rows;
  const [column = ''] = features.keys();
  return {
    features,
    rowCount: end - first,
    range: (from, to) => rowsOf(source, header, features, { first: first + from, end: first + to }),
    batches(options) {
      const signal = options?.signal;
      if (header.isFortran) return fortranBatches(source, header, column, rows, signal);
      const { place } = source;
      return place !== undefined && header.swapBytes === 1 && fileColumnsOf(options).has(column)
        ? fileBatches(place, header, column, rows, signal)
        : plainBatches(source, header, column, rows, signal);
    },
  };
}

/** What an `.npy` file says of itself. */
export async function checkedHeader(source: ByteSource): Promise<NpyHeader> {
  const { name, byteLength } = source;
  const stream = await source.open();
  let header: NpyHeader;
  try {
    header = await readHeader(name, stream);
  } finally {
    await stream.close();
  }
  const { shape } = header;
  assertLength(name, byteLength, header);
  const fault =
    shape.length === 0
      ? 'its array is a single item (shape ()), and records lie along a first axis'
      : shape[0] === 0
        ? `its array of shape (${shape.join(', ')}) has no records`
        : shape.includes(0)
          ? `its records, of shape (${shape.slice(1).join(', ')}), are empty`
          : undefined;
  if (fault !== undefined) throw new LoaderxError('SOURCE', `${name}: ${fault}`, { path: name });
  return header;
}

function assertLength(
  name: string,
  byteLength: number,
  { dataOffset, dataBytes }: NpyHeader,
): void {
  const wanted = dataOffset + dataBytes;
  if (byteLength === wanted) return;
  const reason =
    byteLength < wanted
      ? 'it is cut off'
      : 'what follows its array, np.load would leave out without a word';
  throw new LoaderxError(
    'MALFORMED',
    `${name}: it has ${byteLength} bytes, and its header tells of ${wanted}: ${reason}`,
    { path: name },
  );
}

async function readHeader(name: string, stream: ByteStream): Promise<NpyHeader> {
  // Version 1 has two bytes less before its text.
  const first = new Uint8Array(prefixBytes);
  const came = await stream.fill(first);
  const place = headerPlace(name, first.subarray(0, came));
  const text = new Uint8Array(place.to - place.from);
  const early = first.subarray(place.from, Math.min(came, place.to));
  text.set(early);
  const rest = text.subarray(early.byteLength);
  if ((await stream.fill(rest)) < rest.byteLength) {
    throw new LoaderxError('MALFORMED', `${name}: it ends within its header`, { path: name });
  }
  return headerOf(name, place, text);
}

/** The items of an array in C order, one stretch after the other. */
export interface NpyItems extends AsyncDisposable {
  readonly header: NpyHeader;
  /** The next ones, in memory of their own. */
  read(count: number): Promise<Data>;
  /** Passes over so many. */
  skip(count: number): Promise<void>;
}

/** @throws LoaderxError MALFORMED where the file is shorter than its header says */
export async function npyItems(source: ByteSource): Promise<NpyItems> {
  const stream = await source.open();
  const header = await readHeader(source.name, stream);
  const { info, swapBytes } = header;
  return {
    header,
    async read(count) {
      const bytes = new Uint8Array(count * info.itemBytes);
      if ((await stream.fill(bytes)) < bytes.byteLength) throw cutOff(source);
      turned(Buffer.from(bytes.buffer), swapBytes);
      return new info.constructorOf(bytes.buffer);
    },
    skip: (count) => stream.skip(count * info.itemBytes),
    [Symbol.asyncDispose]: () => stream.close(),
  };
}

// ---- an array that lies in memory ----

/**
 * What the first bytes of an `.npy` file say.
 *
 * @param head gives the first bytes of it, at most as many as are asked for
 * @throws as {@link npyDataset}; SOURCE for an array without items
 */
export async function npyForm(
  name: string,
  byteLength: number,
  head: (bytesMax: number) => Promise<Uint8Array>,
): Promise<NpyHeader> {
  const place = headerPlace(name, await head(prefixBytes));
  const first = await head(place.to);
  if (first.byteLength < place.to) {
    throw new LoaderxError('MALFORMED', `${name}: it ends within its header`, { path: name });
  }
  const header = headerOf(name, place, first.subarray(place.from, place.to));
  assertLength(name, byteLength, header);
  if (header.shape.includes(0)) {
    throw new LoaderxError(
      'SOURCE',
      `${name}: its array of shape (${header.shape.join(', ')}) is empty, and a record of a container has an item`,
      { path: name },
    );
  }
  return header;
}

/** The array of an `.npy` file, in this machine's byte order and in C order. @throws as {@link npyForm} */
export async function npyArray(name: string, file: Uint8Array): Promise<NdArray> {
  const header = await npyForm(name, file.byteLength, async (most) => file.subarray(0, most));
  const { dtype, info, shape, dataOffset, dataBytes, swapBytes } = header;
  const { itemBytes, constructorOf } = info;
  let items = new Uint8Array(dataBytes);
  items.set(file.subarray(dataOffset, dataOffset + dataBytes));
  turned(Buffer.from(items.buffer), swapBytes);
  if (header.isFortran) {
    const [rowCount = 1, ...rest] = shape;
    const columnCount = dataBytes / itemBytes / rowCount;
    const places = new Places(rest);
    const records = new Uint8Array(dataBytes);
    for (let at = 0; at < columnCount; at += 1) {
      scatter(
        items.buffer,
        at * rowCount,
        records.buffer,
        places.next(),
        rowCount,
        columnCount,
        itemBytes,
      );
    }
    items = records;
  }
  return { dtype, shape, data: new constructorOf(items.buffer) };
}

function recordsOfBlock({ info, shape }: NpyHeader): { rows: number; recordBytes: number } {
  const recordBytes = shape.slice(1).reduce((product, size) => product * size, info.itemBytes);
  const rows = Math.min(blockRows, Math.max(1, Math.floor(blockBytes / recordBytes)));
  return { rows: Math.min(rows, shape[0] ?? 1), recordBytes };
}

async function* plainBatches(
  source: ByteSource,
  header: NpyHeader,
  column: string,
  wanted: Rows,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  const { rows, recordBytes } = recordsOfBlock(header);
  const blocks = new Blocks(rows * recordBytes);
  const stream = await source.open();
  try {
    await readHeader(source.name, stream);
    await stream.skip(wanted.first * recordBytes);
    for (let first = wanted.first; first < wanted.end; first += rows) {
      signal?.throwIfAborted();
      const count = Math.min(rows, wanted.end - first);
      const block = blocks.take();
      const bytes = new Uint8Array(block, 0, count * recordBytes);
      if ((await stream.fill(bytes)) < bytes.byteLength) throw cutOff(source);
      yield batchOf(header, column, blocks, block, count, recordBytes);
    }
  } finally {
    await stream.close();
  }
}

/** Nothing is read here. */
async function* fileBatches(
  place: FilePlace,
  header: NpyHeader,
  column: string,
  wanted: Rows,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  const { recordBytes } = recordsOfBlock(header);
  const rows = Math.max(1, Math.floor(stretchBytes / recordBytes));
  for (let first = wanted.first; first < wanted.end; first += rows) {
    signal?.throwIfAborted();
    const rowCount = Math.min(rows, wanted.end - first);
    const values = new FileColumn(place, header.dataOffset + first * recordBytes, recordBytes);
    yield { rowCount, columns: new Map([[column, values.asValues()]]) };
  }
}

function cutOff({ name }: ByteSource): LoaderxError {
  return new LoaderxError('MALFORMED', `${name}: it became shorter while it was read`, {
    path: name,
  });
}

function batchOf(
  { info, swapBytes }: NpyHeader,
  column: string,
  blocks: Blocks,
  block: ArrayBuffer,
  rowCount: number,
  recordBytes: number,
): RowBatch {
  const byteLength = rowCount * recordBytes;
  turned(Buffer.from(block, 0, byteLength), swapBytes);
  const values: Data = new info.constructorOf(
    block,
    0,
    byteLength / info.constructorOf.BYTES_PER_ELEMENT,
  );
  return {
    rowCount,
    columns: new Map([[column, { values }]]),
    done: () => blocks.give(block),
  };
}

function turned(bytes: Buffer, swapBytes: number): void {
  if (swapBytes === 2) bytes.swap16();
  else if (swapBytes === 4) bytes.swap32();
  else if (swapBytes === 8) bytes.swap64();
}

// ---- Fortran order ----

/** Columns of at most so many bytes are read whole, several at a time. */
const wholeColumnBytes = 256 * 1024;
const slabBytes = 2 ** 20;

/**
 * Items of one place of all records lie together in the file, as a column of the table whose rows are records:
 *
 * ```text
 * file     a0 a1 a2 a3 | b0 b1 b2 b3 | c0 c1 c2 c3          records 1 to 2: a1 b1 c1, a2 b2 c2
 * ```
 *
 * So each block of records takes a piece of each column. Short columns are read whole for each block; of long
 * ones only the piece is.
 */
async function* fortranBatches(
  source: ByteSource,
  header: NpyHeader,
  column: string,
  wanted: Rows,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  const { rows, recordBytes } = recordsOfBlock(header);
  const [rowCount = 0, ...itemShape] = header.shape;
  const { itemBytes } = header.info;
  const columnCount = recordBytes / itemBytes;
  const columnBytes = rowCount * itemBytes;
  const blocks = new Blocks(rows * recordBytes);
  const file = await source.openFile();
  try {
    for (let first = wanted.first; first < wanted.end; first += rows) {
      const count = Math.min(rows, wanted.end - first);
      const block = blocks.take();
      const isWhole = columnBytes <= wholeColumnBytes || count === rowCount;
      // A slab is some whole columns, or the piece of one that this block needs.
      const perSlab = isWhole ? Math.max(1, Math.floor(slabBytes / columnBytes)) : 1;
      const slab = new Uint8Array(isWhole ? perSlab * columnBytes : count * itemBytes);
      const places = new Places(itemShape);
      for (let at = 0; at < columnCount; at += perSlab) {
        signal?.throwIfAborted();
        const many = Math.min(perSlab, columnCount - at);
        const position = at * columnBytes + (isWhole ? 0 : first * itemBytes);
        const bytes = isWhole ? slab.subarray(0, many * columnBytes) : slab;
        await read(source, file, bytes, header.dataOffset + position);
        for (let each = 0; each < many; each += 1) {
          const from = isWhole ? each * rowCount + first : 0;
          scatter(slab.buffer, from, block, places.next(), count, columnCount, itemBytes);
        }
      }
      yield batchOf(header, column, blocks, block, count, recordBytes);
    }
  } finally {
    await file.close();
  }
}

async function read(
  source: ByteSource,
  file: ByteFile,
  bytes: Uint8Array,
  position: number,
): Promise<void> {
  if ((await file.fillAt(bytes, position)) < bytes.byteLength) throw cutOff(source);
}

/** Where items lie in a record in C order, one after the other as Fortran order has them. */
class Places {
  readonly #shape: readonly number[];
  readonly #strides: readonly number[];
  readonly #index: number[];
  #place = 0;

  constructor(shape: readonly number[]) {
    this.#shape = shape;
    const strides = shape.map(() => 1);
    for (let axis = shape.length - 2; axis >= 0; axis -= 1) {
      strides[axis] = (strides[axis + 1] as number) * (shape[axis + 1] as number);
    }
    this.#strides = strides;
    this.#index = shape.map(() => 0);
  }

  next(): number {
    const place = this.#place;
    for (const [axis, size] of this.#shape.entries()) {
      const stride = this.#strides[axis] as number;
      const index = (this.#index[axis] as number) + 1;
      if (index < size) {
        this.#index[axis] = index;
        this.#place += stride;
        break;
      }
      this.#index[axis] = 0;
      this.#place -= (index - 1) * stride;
    }
    return place;
  }
}

/** Puts `count` items that lie together into the same place of as many records. */
function scatter(
  source: ArrayBuffer,
  from: number,
  target: ArrayBuffer,
  place: number,
  count: number,
  recordItems: number,
  itemBytes: number,
): void {
  const width = Math.min(itemBytes, 4);
  const arrayOf = width === 4 ? Uint32Array : width === 2 ? Uint16Array : Uint8Array;
  // Integers, even of floats: a NaN that is handled as a number may lose its payload.
  const words = itemBytes / width;
  const items = new arrayOf(source);
  const records = new arrayOf(target);
  for (let word = 0; word < words; word += 1) {
    let at = place * words + word;
    let taken = from * words + word;
    for (let row = 0; row < count; row += 1) {
      records[at] = items[taken] as number;
      at += recordItems * words;
      taken += words;
    }
  }
}
