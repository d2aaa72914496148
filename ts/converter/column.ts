/**
 * One column on its way into its container.
 */
import type { Data, DType } from '../dtype.js';
import { dtypeOf } from '../dtype.js';
import { LoaderxError, show } from '../errors.js';
import type { CreateOptions, DenseWriter, RaggedWriter } from '../store/capability.js';
import { appendFileRecords, Dense } from '../store/dense.js';
import { Ragged } from '../store/ragged.js';
import { RaggedBatchView } from '../store/ragged-views.js';
import { SettlingWriter } from './images/settling.js';
import type { ImageLimits, PictureColumn } from './images.js';
import type { Layout } from './layout.js';
import {
  type ByteRows,
  type CheckedRows,
  type FileRows,
  joinedRows,
  type NumberRows,
  rowError,
} from './rows.js';

/** How all containers of a conversion are made. */
export interface ColumnOptions {
  readonly create: CreateOptions;
  readonly integrity: boolean;
  readonly imageLimits: ImageLimits | undefined;
  /** Columns of pictures are ragged whatever sizes come. */
  readonly raggedPictures: boolean;
  readonly signal: AbortSignal | undefined;
}

/** A container that takes checked rows. */
export interface ColumnWriter {
  readonly layout: Layout;
  /** Rows that were written. */
  readonly rowCount: number;
  /** @param firstRow the number, in the split, of the first row of the first piece */
  write(pieces: readonly CheckedRows[], firstRow: number): Promise<void>;
  close(): Promise<void>;
  abort(): Promise<void>;
}

/** Pieces are put together up to this many bytes: appending costs something each time. */
const joinBytesMax = 8 * 1024 * 1024;

/** Begins the container of a column at `path`. */
export async function createColumn(
  column: string,
  path: string,
  layout: Layout,
  options: ColumnOptions,
): Promise<ColumnWriter> {
  const { create } = options;
  switch (layout.kind) {
    case 'dense': {
      const { dtype, itemShape } = layout;
      return new DenseColumn(layout, Dense.create(path, { ...create, dtype, itemShape }), options);
    }
    case 'ragged': {
      const { dtype, sizes } = layout;
      const writer = Ragged.create(path, { ...create, dtype, ndim: sizes.length });
      return new RaggedColumn(column, layout, writer, options);
    }
    case 'text': {
      const writer = Ragged.create(path, { ...create, dtype: 'uint8', ndim: 1 });
      return new RaggedColumn(column, layout, writer, options);
    }
    case 'arrays': {
      const { integrity, raggedPictures: ragged, signal } = options;
      const writer = new SettlingWriter({ column, path, create, integrity, ragged, signal });
      return new ArrayColumnWriter(layout, writer);
    }
    case 'image': {
      // Decoders are optional, and many datasets have no pictures.
      const { createImageColumn } = await import('./images.js');
      const { integrity, imageLimits: limits, raggedPictures: ragged, signal } = options;
      const settings = {
        ...{ column, path, create, integrity, ragged, mode: layout.mode, limits, signal },
      };
      return new PictureColumnWriter(layout, createImageColumn(settings));
    }
  }
}

/** Neighbouring pieces, as long as they are small together; those that lie in a file by themselves. */
function* joined(
  pieces: readonly CheckedRows[],
): Generator<NumberRows | FileRows, void, undefined> {
  let group: NumberRows[] = [];
  let bytes = 0;
  for (const piece of pieces) {
    if (piece.kind === 'file') {
      if (group.length > 0) yield joinedRows(group);
      group = [];
      bytes = 0;
      yield piece;
      continue;
    }
    if (piece.kind !== 'numbers') throw new TypeError('numbers are wanted here');
    if (group.length > 0 && bytes + piece.values.byteLength > joinBytesMax) {
      yield joinedRows(group);
      group = [];
      bytes = 0;
    }
    group.push(piece);
    bytes += piece.values.byteLength;
  }
  if (group.length > 0) yield joinedRows(group);
}

class DenseColumn implements ColumnWriter {
  readonly layout: Layout & { readonly kind: 'dense' };
  readonly #writer: DenseWriter;
  readonly #options: ColumnOptions;

  constructor(
    layout: Layout & { readonly kind: 'dense' },
    writer: DenseWriter<DType>,
    options: ColumnOptions,
  ) {
    this.layout = layout;
    this.#writer = writer;
    this.#options = options;
  }

  get rowCount(): number {
    return this.#writer.length;
  }

  async write(pieces: readonly CheckedRows[]): Promise<void> {
    const { dtype, itemShape } = this.layout;
    for (const rows of joined(pieces)) {
      if (rows.kind === 'file') {
        await this.#appendFile(rows);
        continue;
      }
      const { rowCount, values } = rows;
      await this.#writer.append({ dtype, shape: [rowCount, ...itemShape], data: values as never });
    }
  }

  async #appendFile({ place, offsetBytes, rowCount: recordCount }: FileRows): Promise<void> {
    const { path, name } = place;
    await appendFileRecords(this.#writer, { path, name, offsetBytes, recordCount });
    // Afterwards: what was opened before it was another one is told here.
    await place.assertSame();
  }

  close(): Promise<void> {
    return this.#writer.close({ integrity: this.#options.integrity });
  }

  async abort(): Promise<void> {
    await this.#writer[Symbol.asyncDispose]();
  }
}

class RaggedColumn implements ColumnWriter {
  readonly layout: Layout & { readonly kind: 'ragged' | 'text' };
  readonly #column: string;
  readonly #writer: RaggedWriter;
  readonly #options: ColumnOptions;

  constructor(
    column: string,
    layout: Layout & { readonly kind: 'ragged' | 'text' },
    writer: RaggedWriter<DType>,
    options: ColumnOptions,
  ) {
    this.#column = column;
    this.layout = layout;
    this.#writer = writer;
    this.#options = options;
  }

  get rowCount(): number {
    return this.#writer.length;
  }

  async write(pieces: readonly CheckedRows[], firstRow: number): Promise<void> {
    if (this.layout.kind === 'ragged') {
      for (const rows of joined(pieces)) {
        if (rows.kind === 'file') throw new TypeError('lists are wanted here');
        await this.#append(rows);
      }
      return;
    }
    let row = firstRow;
    for (const piece of pieces) {
      if (piece.kind !== 'bytes') throw new TypeError('bytes are wanted here');
      for (const rows of this.#texts(piece, row)) await this.#append(rows);
      row += piece.rowCount;
    }
  }

  async #append({ values, starts, dims }: NumberRows): Promise<void> {
    if (starts === undefined || dims === undefined) throw new TypeError('lists are wanted here');
    const { ndim, dtype } = this.#writer;
    const packed = {
      buffer: bufferOf(values),
      payloadBytes: values.byteLength,
      offsets: starts,
      dims,
    };
    await this.#writer.append(new RaggedBatchView(dtypeOf(dtype), ndim, packed));
  }

  /** Texts put side by side, some MiB at a time: a dictionary of a few long ones may stand for very many. */
  *#texts(piece: ByteRows, firstRow: number): Generator<NumberRows, void, undefined> {
    const { bytes, rowCount } = piece;
    let from = 0;
    while (from < rowCount) {
      let to = from;
      let length = 0;
      while (to < rowCount) {
        const text = bytes[to];
        const place = { column: this.#column, firstRow };
        if (text === null || text === undefined) {
          throw rowError(place, to, 'is null, and containers hold no nulls');
        }
        if (text.length === 0) {
          throw rowError(place, to, 'is empty, and a record of a container has an item');
        }
        if (to > from && length + text.length > joinBytesMax) break;
        length += text.length;
        to += 1;
      }
      yield joinedTexts(bytes.slice(from, to) as Uint8Array[], length);
      from = to;
    }
  }

  close(): Promise<void> {
    return this.#writer.close({ integrity: this.#options.integrity });
  }

  async abort(): Promise<void> {
    await this.#writer[Symbol.asyncDispose]();
  }
}

function joinedTexts(texts: readonly Uint8Array[], length: number): NumberRows {
  const values = new Uint8Array(length);
  const starts = new Uint32Array(texts.length + 1);
  const dims = new Uint32Array(texts.length);
  let at = 0;
  for (const [index, text] of texts.entries()) {
    values.set(text, at);
    at += text.length;
    starts[index + 1] = at;
    dims[index] = text.length;
  }
  return { kind: 'numbers', rowCount: texts.length, values, starts, dims };
}

/** Memory whose first byte is the first item's. */
function bufferOf(values: Data): ArrayBuffer {
  const { buffer, byteOffset, byteLength } = values;
  if (byteOffset === 0 && buffer instanceof ArrayBuffer) return buffer;
  return Uint8Array.from(new Uint8Array(buffer, byteOffset, byteLength)).buffer;
}

class PictureColumnWriter implements ColumnWriter {
  readonly layout: Layout;
  rowCount = 0;
  readonly #column: PictureColumn;

  constructor(layout: Layout, column: PictureColumn) {
    this.layout = layout;
    this.#column = column;
  }

  async write(pieces: readonly CheckedRows[], firstRow: number): Promise<void> {
    let row = firstRow;
    for (const piece of pieces) {
      if (piece.kind !== 'bytes') throw new TypeError('bytes are wanted here');
      const { bytes, rowCount, starts, names } = piece;
      await this.#column.append(bytes, row, starts, names);
      row += rowCount;
      this.rowCount += rowCount;
    }
  }

  close(): Promise<void> {
    return this.#column.close();
  }

  abort(): Promise<void> {
    return this.#column.abort();
  }
}

class ArrayColumnWriter implements ColumnWriter {
  readonly layout: Layout;
  rowCount = 0;
  readonly #writer: SettlingWriter;

  constructor(layout: Layout, writer: SettlingWriter) {
    this.layout = layout;
    this.#writer = writer;
  }

  async write(pieces: readonly CheckedRows[], firstRow: number): Promise<void> {
    let row = firstRow;
    for (const piece of pieces) {
      if (piece.kind !== 'arrays') throw new TypeError('arrays are wanted here');
      for (const array of piece.arrays) {
        await this.#writer.add(array, row);
        row += 1;
      }
      this.rowCount += piece.rowCount;
    }
  }

  close(): Promise<void> {
    return this.#writer.close();
  }

  abort(): Promise<void> {
    return this.#writer.abort();
  }
}

/** What a column was written as, in a word for messages. */
export function unequalCounts(
  split: string,
  column: string,
  rows: number,
  wanted: number,
): LoaderxError {
  return new LoaderxError(
    'UNEXPECTED',
    `column ${show(column)} of ${show(split)} has ${rows} records of ${wanted} rows: please report it`,
    { field: column },
  );
}
