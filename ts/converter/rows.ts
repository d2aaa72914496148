/**
 * Rows of a batch, checked against the layout of their column: what comes out can be appended as it is.
 *
 * A dataset may be anybody's, so nothing of a batch is believed: kinds, lengths and offsets are checked once,
 * here, and an error names column and row.
 */
import { type Data, type DTypeInfo, dtypeOf, typedArrayName } from '../dtype.js';
import { LoaderxError, show } from '../errors.js';
import { arrayItems, type NdArray } from '../ndarray.js';
import type { ArrayColumn, ColumnValues, NumberColumn } from './dataset.js';
import { type FileColumn, type FilePlace, isFileColumn } from './file-column.js';
import type { Layout } from './layout.js';

/** Rows of numbers: record i is the items `starts[i]` to `starts[i + 1]`. */
export interface NumberRows {
  readonly kind: 'numbers';
  readonly rowCount: number;
  readonly values: Data;
  /** Undefined for dense records, which all have the same number of items. */
  readonly starts: Uint32Array | undefined;
  /** Dimensions of ragged records, one after the other. */
  readonly dims: Uint32Array | undefined;
}

/** Rows of bytes, lists of such where there are `starts`. */
export interface ByteRows {
  readonly kind: 'bytes';
  readonly rowCount: number;
  readonly bytes: readonly (Uint8Array | null)[];
  readonly starts: Uint32Array | undefined;
  /** What messages call each of them. */
  readonly names: readonly string[] | undefined;
}

/** Rows that tell their own shapes. */
export interface ArrayRows {
  readonly kind: 'arrays';
  readonly rowCount: number;
  readonly arrays: readonly NdArray[];
}

/** Rows of a dense column that lie in a file, as a raw container has them. */
export interface FileRows {
  readonly kind: 'file';
  readonly rowCount: number;
  readonly place: FilePlace;
  readonly offsetBytes: number;
  readonly recordBytes: number;
}

export type CheckedRows = NumberRows | ByteRows | ArrayRows | FileRows;

/** Where rows are: for messages. */
export interface Place {
  readonly column: string;
  /** The number, in the split, of the first row. */
  readonly firstRow: number;
}

/** @throws LoaderxError SOURCE, with `field` and, where a row is at fault, `record` */
export function checkedRows(
  layout: Layout,
  values: ColumnValues,
  rowCount: number,
  place: Place,
): CheckedRows {
  if (isFileColumn(values)) return fileRows(layout, values, rowCount, place);
  if (layout.kind === 'text' || layout.kind === 'image') {
    if (!('bytes' in values) || !Array.isArray(values.bytes)) {
      throw columnError(place, 'bytes of each row are wanted');
    }
    const isList = layout.kind === 'image' && layout.isList;
    const starts = isList ? offsetsOf(values.offsets, 0, rowCount, place) : undefined;
    const count = starts === undefined ? rowCount : (starts[rowCount] ?? 0);
    if (values.bytes.length !== count) {
      throw columnError(place, `${values.bytes.length} values came, and ${count} are wanted`);
    }
    for (let index = 0; index < count; index += 1) {
      const each: unknown = values.bytes[index];
      // What is missing is told with its row, where it is written.
      if (each === null || each === undefined || typedArrayName(each) === 'Uint8Array') continue;
      throw columnError(place, `value ${index} must be a Uint8Array, got ${show(each)}`);
    }
    const names = isList ? undefined : values.names;
    return { kind: 'bytes', rowCount, bytes: values.bytes, starts, names };
  }
  if (layout.kind === 'arrays') return anyArrays(values, rowCount, place);
  const info = dtypeOf(layout.dtype);
  const rows = numbersOf(layout, info, values, rowCount, place);
  if (info.name === 'bool') assertBools(rows, place);
  return rows;
}

function fileRows(
  layout: Layout,
  { place: file, offsetBytes, recordBytes }: FileColumn,
  rowCount: number,
  place: Place,
): FileRows {
  const wanted = layout.kind === 'dense' ? recordBytesOf(layout) : undefined;
  if (recordBytes !== wanted) {
    throw columnError(place, `records of ${recordBytes} bytes in a file are not what it holds`);
  }
  return { kind: 'file', rowCount, place: file, offsetBytes, recordBytes };
}

/** Whether rows can be stored as they lie in a file. Those of bools are looked at first. */
export function takesFiles(layout: Layout): boolean {
  return layout.kind === 'dense' && layout.dtype !== 'bool';
}

function recordBytesOf({ dtype, itemShape }: Layout & { readonly kind: 'dense' }): number {
  return itemShape.reduce((product, size) => product * size, dtypeOf(dtype).itemBytes);
}

/** Bools are bytes, of which only 0 and 1 are any. */
function assertBools(rows: NumberRows, place: Place): void {
  const bytes = rows.values as Uint8Array;
  for (let index = 0; index < bytes.length; index += 1) {
    const byte = bytes[index] as number;
    if (byte > 1) throw columnError(place, `value ${index} is ${byte}, and bool is 0 or 1`);
  }
}

function numbersOf(
  layout: Extract<Layout, { readonly kind: 'dense' | 'ragged' }>,
  info: DTypeInfo,
  values: ColumnValues,
  rowCount: number,
  place: Place,
): NumberRows {
  if ('arrays' in values) return fromArrays(layout, info, values, rowCount, place);
  if (!('values' in values) || typedArrayName(values.values) !== info.constructorOf.name) {
    const came =
      'values' in values ? (typedArrayName(values.values) ?? show(values.values)) : 'none';
    throw columnError(place, `${info.constructorOf.name} is wanted for ${info.name}, got ${came}`);
  }
  return layout.kind === 'dense'
    ? denseRows(layout.itemShape, info.itemElements, values, rowCount, place)
    : raggedRows(layout.sizes, values, rowCount, place);
}

export function rowError(place: Place, row: number, reason: string): LoaderxError {
  const { column, firstRow } = place;
  const record = firstRow + row;
  return new LoaderxError('SOURCE', `column ${show(column)}, row ${record}: ${reason}`, {
    field: column,
    record,
  });
}

function columnError({ column, firstRow }: Place, reason: string): LoaderxError {
  return new LoaderxError(
    'SOURCE',
    `column ${show(column)}, in the batch from row ${firstRow} on: ${reason}`,
    { field: column },
  );
}

/** One level's offsets, checked: `count + 1` positions that never fall. */
function offsetsOf(
  offsets: readonly Uint32Array[] | undefined,
  level: number,
  count: number,
  place: Place,
): Uint32Array {
  const list = offsets?.[level];
  if (typedArrayName(list) !== 'Uint32Array' || list === undefined) {
    throw columnError(place, `a Uint32Array is wanted as offsets[${level}], got ${show(list)}`);
  }
  if (list.length !== count + 1) {
    throw columnError(place, `offsets[${level}] has ${list.length} positions for ${count} lists`);
  }
  let before = list[0] as number;
  let isSound = before === 0;
  for (let index = 1; index <= count; index += 1) {
    const position = list[index] as number;
    if (position < before) isSound = false;
    before = position;
  }
  if (!isSound) throw columnError(place, `offsets[${level}] must begin with 0 and never fall`);
  return list;
}

function denseRows(
  itemShape: readonly number[],
  itemElements: number,
  { values, offsets }: NumberColumn,
  rowCount: number,
  place: Place,
): NumberRows {
  const perRow = itemShape.reduce((product, size) => product * size, itemElements);
  if (offsets !== undefined && offsets.length > 0) {
    let count = rowCount;
    let listsPerRow = 1;
    for (const [level, size] of itemShape.entries()) {
      const list = offsetsOf(offsets, level, count, place);
      for (let index = 0; index < count; index += 1) {
        const length = (list[index + 1] as number) - (list[index] as number);
        if (length === size) continue;
        throw rowError(
          place,
          Math.floor(index / listsPerRow),
          `has a list of ${length}, and ${size} is declared`,
        );
      }
      count *= size;
      listsPerRow *= size;
    }
  }
  if (values.length !== rowCount * perRow) {
    throw columnError(place, `${values.length} items came, and ${rowCount * perRow} are wanted`);
  }
  return { kind: 'numbers', rowCount, values, starts: undefined, dims: undefined };
}

function raggedRows(
  sizes: readonly (number | null)[],
  { values, offsets }: NumberColumn,
  rowCount: number,
  place: Place,
): NumberRows {
  const rank = sizes.length;
  const dims = new Uint32Array(rowCount * rank);
  const starts = new Uint32Array(rowCount + 1);
  const lists: Uint32Array[] = [];
  let count = rowCount;
  for (let level = 0; level < rank; level += 1) {
    const list = offsetsOf(offsets, level, count, place);
    lists.push(list);
    count = list[count] as number;
  }
  if (values.length !== count) {
    throw columnError(place, `${values.length} items came, and offsets speak of ${count}`);
  }
  const [outer] = lists as [Uint32Array];
  for (let row = 0; row < rowCount; row += 1) {
    // The lists of this row at a level: from `first` on, `many`.
    let first = row;
    let many = 1;
    for (let level = 0; level < rank; level += 1) {
      const list = rank === 1 ? outer : (lists[level] as Uint32Array);
      const begin = list[first] as number;
      const end = list[first + many] as number;
      const length = (list[first + 1] as number) - begin;
      if (length === 0) {
        throw rowError(place, row, 'is an empty list, and a record of a container has an item');
      }
      const size = sizes[level] as number | null;
      if (size !== null && size !== length) {
        throw rowError(place, row, `has a list of ${length}, and ${size} is declared`);
      }
      for (let index = 1; index < many; index += 1) {
        const other = (list[first + index + 1] as number) - (list[first + index] as number);
        if (other === length) continue;
        throw rowError(
          place,
          row,
          `has lists of ${length} and of ${other} side by side: a record is an array, whose rows have one length`,
        );
      }
      dims[row * rank + level] = length;
      first = begin;
      many = end - begin;
    }
    starts[row + 1] = first + many;
  }
  return { kind: 'numbers', rowCount, values, starts, dims };
}

function fromArrays(
  layout: Layout & { readonly kind: 'dense' | 'ragged' },
  info: DTypeInfo,
  { arrays }: ArrayColumn,
  rowCount: number,
  place: Place,
): NumberRows {
  if (!Array.isArray(arrays) || arrays.length !== rowCount) {
    throw columnError(place, `${show(arrays)} came, and ${rowCount} arrays are wanted`);
  }
  const sizes = layout.kind === 'dense' ? layout.itemShape : layout.sizes;
  const parts = (arrays as readonly NdArray[]).map((array, row) => {
    let checked: { shape: readonly number[]; data: Data };
    try {
      checked = arrayItems(array, 'the array', info);
    } catch (cause) {
      throw rowError(place, row, cause instanceof Error ? cause.message : String(cause));
    }
    const { shape } = checked;
    const fits =
      shape.length === sizes.length &&
      sizes.every((size, axis) => size === null || size === shape[axis]);
    if (!fits || checked.data.length === 0) {
      const wanted = sizes.map((size) => size ?? 'n');
      throw rowError(
        place,
        row,
        `has shape ${show(shape)}, and ${show(wanted)} is wanted, not empty`,
      );
    }
    return checked;
  });
  const length = parts.reduce((sum, { data }) => sum + data.length, 0);
  const values = new info.constructorOf(new ArrayBuffer(length * info.itemBytes));
  const starts = new Uint32Array(rowCount + 1);
  const dims = new Uint32Array(rowCount * sizes.length);
  let at = 0;
  for (const [row, { shape, data }] of parts.entries()) {
    // Of one dtype, as was checked.
    (values as Uint8Array).set(data as Uint8Array, at);
    at += data.length;
    starts[row + 1] = at;
    dims.set(shape, row * sizes.length);
  }
  return layout.kind === 'dense'
    ? { kind: 'numbers', rowCount, values, starts: undefined, dims: undefined }
    : { kind: 'numbers', rowCount, values, starts, dims };
}

function anyArrays(values: ColumnValues, rowCount: number, place: Place): ArrayRows {
  const arrays = 'arrays' in values ? values.arrays : undefined;
  if (!Array.isArray(arrays) || arrays.length !== rowCount) {
    throw columnError(place, `${show(arrays)} came, and ${rowCount} arrays are wanted`);
  }
  for (const [row, array] of (arrays as readonly NdArray[]).entries()) {
    let length: number;
    try {
      ({
        data: { length },
      } = arrayItems(array, 'the array'));
    } catch (cause) {
      throw rowError(place, row, cause instanceof Error ? cause.message : String(cause));
    }
    if (length === 0) {
      throw rowError(place, row, 'is empty, and a record of a container has an item');
    }
  }
  return { kind: 'arrays', rowCount, arrays };
}

/** Rows `from` to `to`, in the same memory. */
export function sliceRows(rows: CheckedRows, from: number, to: number): CheckedRows {
  if (from === 0 && to === rows.rowCount) return rows;
  const rowCount = to - from;
  if (rows.kind === 'file') {
    return { ...rows, rowCount, offsetBytes: rows.offsetBytes + from * rows.recordBytes };
  }
  if (rows.kind === 'arrays') return { ...rows, rowCount, arrays: rows.arrays.slice(from, to) };
  if (rows.kind === 'bytes') {
    const first = rows.starts?.[from] ?? from;
    const last = rows.starts?.[to] ?? to;
    const starts = rows.starts === undefined ? undefined : rebased(rows.starts, from, to);
    const bytes = rows.bytes.slice(first, last);
    return { kind: 'bytes', rowCount, bytes, starts, names: rows.names?.slice(first, last) };
  }
  const { values, starts, dims } = rows;
  if (starts === undefined || dims === undefined) {
    const perRow = values.length / rows.rowCount;
    return { ...rows, rowCount, values: values.subarray(from * perRow, to * perRow) };
  }
  const rank = dims.length / rows.rowCount;
  return {
    kind: 'numbers',
    rowCount,
    values: values.subarray(starts[from] ?? 0, starts[to] ?? 0),
    starts: rebased(starts, from, to),
    dims: dims.subarray(from * rank, to * rank),
  };
}

function rebased(starts: Uint32Array, from: number, to: number): Uint32Array {
  const first = starts[from] ?? 0;
  const own = starts.slice(from, to + 1);
  if (first !== 0) for (let index = 0; index < own.length; index += 1) own[index]! -= first;
  return own;
}

/** Bytes of the items of all rows. */
export function bytesOf(rows: CheckedRows): number {
  if (rows.kind === 'numbers') return rows.values.byteLength;
  if (rows.kind === 'file') return rows.rowCount * rows.recordBytes;
  let bytes = 0;
  if (rows.kind === 'arrays') {
    for (const { data } of rows.arrays) bytes += data.byteLength;
    return bytes;
  }
  for (const each of rows.bytes) bytes += each?.byteLength ?? 0;
  return bytes;
}

/** Rows of several pieces as one, in memory of their own that begins with the first item. */
export function joinedRows(pieces: readonly NumberRows[]): NumberRows {
  const [only] = pieces as [NumberRows];
  if (pieces.length === 1 && (only.starts === undefined || ownsMemory(only.values))) return only;
  const rowCount = pieces.reduce((sum, piece) => sum + piece.rowCount, 0);
  const length = pieces.reduce((sum, { values }) => sum + values.length, 0);
  const arrayOf = only.values.constructor as DTypeInfo['constructorOf'];
  const values = new arrayOf(new ArrayBuffer(length * arrayOf.BYTES_PER_ELEMENT));
  const isRagged = only.starts !== undefined;
  const rank = (only.dims?.length ?? 0) / only.rowCount;
  const starts = isRagged ? new Uint32Array(rowCount + 1) : undefined;
  const dims = isRagged ? new Uint32Array(rowCount * rank) : undefined;
  let at = 0;
  let row = 0;
  for (const piece of pieces) {
    (values as Uint8Array).set(piece.values as Uint8Array, at);
    if (starts !== undefined && piece.starts !== undefined) {
      for (let index = 1; index <= piece.rowCount; index += 1) {
        starts[row + index] = at + (piece.starts[index] as number);
      }
    }
    if (dims !== undefined && piece.dims !== undefined) dims.set(piece.dims, row * rank);
    at += piece.values.length;
    row += piece.rowCount;
  }
  return { kind: 'numbers', rowCount, values, starts, dims };
}

/** Whether the items begin where their memory does, which nobody else could detach. */
function ownsMemory({ buffer, byteOffset }: Data): boolean {
  return byteOffset === 0 && buffer instanceof ArrayBuffer;
}
