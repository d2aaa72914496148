/**
 * Rows of text files (CSV, JSON lines) as columns.
 *
 * ```text
 * first pass    all rows: which columns there are, what each holds, how many rows
 * second pass   all rows again: values into typed arrays, each held against its dtype
 * ```
 *
 * So a dtype is that of the whole column: int64 where all are whole numbers (uint64 where they need it),
 * float64 where one is not, bool, text; or the one that the caller names, which must keep every value.
 */
import type { ColumnValues, Dataset, Feature, RowBatch } from '../converter/dataset.js';
import { type Data, dtypeOf } from '../dtype.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import type { NdArray } from '../ndarray.js';
import { type Cell, isDecimal, misfit, Padded, type TableDType, tableDTypes } from './cells.js';

/** A row as it stands in a file. */
export interface TableRow {
  /** Its line, the first one being 1. */
  readonly line: number;
  readonly cells: ReadonlyMap<string, Cell>;
}

/** A file of rows. */
export interface TableFile {
  /** What messages call it. */
  readonly name: string;
  /**
   * All rows from the first on; each call begins anew.
   *
   * @param texts columns that are text, once that is known: their cells come as they are written
   */
  rows(signal: AbortSignal | undefined, texts?: ReadonlySet<string>): AsyncIterable<TableRow>;
}

/** Dtypes by column; `*` stands for all others. */
export type TableDTypes = Readonly<Record<string, TableDType>>;

export interface TableOptions {
  readonly dtypes?: TableDTypes | undefined;
  /** The columns that are looked at; all, unless given. */
  readonly columns?: readonly string[] | undefined;
  readonly signal?: AbortSignal | undefined;
}

const batchRows = 8192;
const batchBytes = 4 * 2 ** 20;

/** What a column has shown so far. */
interface Seen {
  kind: 'bool' | 'number' | 'text' | 'list' | undefined;
  /** Of numbers, also within lists. */
  hasDecimal: boolean;
  isNegative: boolean;
  isWide: boolean;
  /** The first number with a leading zero, which makes text of a column that has no dtype. */
  padded: { readonly row: number; readonly text: string } | undefined;
  /** The row that settled the kind. */
  row: number;
}

/**
 * @throws LoaderxError SOURCE for a null, a column that is missing in a row, and values of two kinds, with
 *   `field` and `record`; MALFORMED for what is no such file; NOT_FOUND, IO
 */
export async function tableDataset(
  file: TableFile,
  options: TableOptions,
): Promise<{
  readonly dataset: Dataset;
  /** All columns of the file, also those that are not wanted. */
  readonly names: readonly string[];
  /** Of columns of digits that are text nonetheless, why. */
  readonly reasons: ReadonlyMap<string, string>;
}> {
  const { signal } = options;
  const dtypes = checkedDTypes(options.dtypes);
  const seen = new Map<string, Seen>();
  const names: string[] = [];
  let rowCount = 0;
  for await (const row of file.rows(signal)) {
    if (rowCount === 0) {
      for (const name of row.cells.keys()) {
        names.push(name);
        if (options.columns?.includes(name) === false) continue;
        const none = { hasDecimal: false, isNegative: false, isWide: false, row: 0 };
        const padded = undefined;
        seen.set(name, { kind: undefined, padded, ...none });
      }
    }
    for (const name of row.cells.keys()) {
      if (seen.has(name) || options.columns?.includes(name) === false) continue;
      throw faultOf(file, name, rowCount, row.line, 'is a column that the first row has not');
    }
    for (const [name, column] of seen) {
      look(column, cellOf(file, row, name, rowCount), rowCount, (reason) =>
        faultOf(file, name, rowCount, row.line, reason),
      );
    }
    rowCount += 1;
  }
  if (rowCount === 0) {
    throw new LoaderxError('SOURCE', `${file.name}: there are no rows`, { path: file.name });
  }
  const columns = new Map<string, TableDType | 'text'>();
  for (const [name, column] of seen) {
    const wanted = Object.hasOwn(dtypes, name) ? dtypes[name] : dtypes['*'];
    if (column.kind === 'text' && Object.hasOwn(dtypes, name)) {
      throw new LoaderxError(
        'SOURCE',
        `${file.name}: column ${show(name)}, row ${column.row}: is text, and dtypes says ${wanted}`,
        { path: file.name, field: name, record: column.row },
      );
    }
    columns.set(name, settled(column, wanted));
  }
  const features = new Map<string, Feature>();
  for (const [name, dtype] of columns) {
    features.set(
      name,
      seen.get(name)?.kind === 'list'
        ? { kind: 'arrays' }
        : { kind: 'value', dtype: dtype === 'text' ? 'string' : dtype },
    );
  }
  const dataset: Dataset = {
    features,
    rowCount,
    batches: (request) => batches(file, columns, seen, request?.columns, request?.signal),
  };
  const reasons = new Map<string, string>();
  for (const [name, { kind, padded }] of seen) {
    if (kind !== 'number' || padded === undefined || columns.get(name) !== 'text') continue;
    reasons.set(
      name,
      `row ${padded.row} has ${padded.text.slice(0, 60)}, and no number keeps its leading zero; dtypes makes numbers of it`,
    );
  }
  return { dataset, names, reasons };
}

function checkedDTypes(dtypes: unknown): TableDTypes {
  if (dtypes === undefined) return {};
  if (typeof dtypes !== 'object' || dtypes === null) {
    throw new ArgumentTypeError('dtypes', `dtypes must be an object, got ${show(dtypes)}`);
  }
  for (const dtype of Object.values(dtypes)) {
    if ((tableDTypes as readonly unknown[]).includes(dtype)) continue;
    throw new ArgumentTypeError(
      'dtypes',
      `dtypes are ${tableDTypes.join(', ')}, got ${show(dtype)}`,
    );
  }
  return dtypes as TableDTypes;
}

function faultOf(
  { name: file }: TableFile,
  column: string,
  row: number,
  line: number,
  reason: string,
): LoaderxError {
  return new LoaderxError(
    'SOURCE',
    `${file}: column ${show(column)}, row ${row} (line ${line}): ${reason}`,
    { path: file, field: column, record: row },
  );
}

function cellOf(file: TableFile, row: TableRow, name: string, index: number): Cell {
  const cell = row.cells.get(name);
  if (cell === undefined) throw faultOf(file, name, index, row.line, 'is missing');
  if (cell === null) {
    throw faultOf(file, name, index, row.line, 'is null or empty, and containers hold no nulls');
  }
  return cell;
}

function look(seen: Seen, cell: Cell, row: number, fault: (reason: string) => LoaderxError): void {
  const kind = kindOf(cell, fault);
  if (seen.kind === undefined) {
    seen.kind = kind;
    seen.row = row;
  } else if (kind !== seen.kind) {
    throw fault(`is ${kindText(kind)}, and row ${seen.row} has ${kindText(seen.kind)}`);
  }
  if (cell instanceof Padded) {
    seen.padded ??= { row, text: cell.text };
    lookNumber(seen, cell.number);
  } else if (kind === 'number') lookNumber(seen, cell);
  // An escape of JSON makes one, and its bytes would be those of another sign.
  if (kind === 'text' && /\p{Surrogate}/u.test(cell as string)) {
    throw fault('has half of a surrogate pair, which UTF-8 has no bytes for');
  }
  if (kind === 'list') lookList(seen, cell as readonly Cell[], fault);
}

function kindOf(cell: Cell, fault: (reason: string) => LoaderxError): NonNullable<Seen['kind']> {
  if (typeof cell === 'boolean') return 'bool';
  if (typeof cell === 'number' || typeof cell === 'bigint' || isDecimal(cell)) return 'number';
  if (cell instanceof Padded) return 'number';
  if (typeof cell === 'string') return 'text';
  if (Array.isArray(cell)) return 'list';
  throw fault(`is ${(cell as { unsupported: string }).unsupported}, which no container holds`);
}

function kindText(kind: Seen['kind']): string {
  return { bool: 'a truth value', number: 'a number', text: 'text', list: 'a list' }[
    kind ?? 'text'
  ];
}

function lookNumber(seen: Seen, cell: Cell): void {
  if (isDecimal(cell)) {
    seen.hasDecimal = true;
    return;
  }
  if ((cell as number | bigint) < 0) seen.isNegative = true;
  if (typeof cell === 'bigint' && cell >= 2n ** 63n) seen.isWide = true;
}

function lookList(
  seen: Seen,
  list: readonly Cell[],
  fault: (reason: string) => LoaderxError,
): void {
  for (const cell of list) {
    if (Array.isArray(cell)) lookList(seen, cell, fault);
    else if (cell === null) throw fault('has null in a list, and containers hold no nulls');
    else if (kindOf(cell, fault) === 'number') lookNumber(seen, cell);
    else throw fault('is a list of something else than numbers');
  }
}

function settled(seen: Seen, wanted: TableDType | undefined): TableDType | 'text' {
  if (seen.kind === 'text') return 'text';
  if (wanted !== undefined) return wanted;
  if (seen.padded !== undefined) return 'text';
  if (seen.kind === 'bool') return 'bool';
  if (seen.hasDecimal) return 'float64';
  return seen.isWide && !seen.isNegative ? 'uint64' : 'int64';
}

async function* batches(
  file: TableFile,
  columns: ReadonlyMap<string, TableDType | 'text'>,
  seen: ReadonlyMap<string, Seen>,
  wanted: readonly string[] | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  const names = wanted ?? [...columns.keys()];
  const builders = names.map((name) => {
    const dtype = columns.get(name) ?? 'text';
    const isList = seen.get(name)?.kind === 'list';
    const values: Value[] = [];
    return { name, dtype, isList, values };
  });
  let index = 0;
  let rows = 0;
  let bytes = 0;
  const taken = (): RowBatch => {
    const batch = {
      rowCount: rows,
      columns: new Map(
        builders.map(({ name, dtype, values }) => [name, columnOf(dtype, values.splice(0))]),
      ),
    };
    rows = 0;
    bytes = 0;
    return batch;
  };
  const texts = new Set([...columns].flatMap(([name, dtype]) => (dtype === 'text' ? [name] : [])));
  for await (const row of file.rows(signal, texts)) {
    signal?.throwIfAborted();
    for (const { name, dtype, isList, values } of builders) {
      const fault = (reason: string): LoaderxError => faultOf(file, name, index, row.line, reason);
      const value = keptValue(dtype, isList, cellOf(file, row, name, index), fault);
      values.push(value);
      bytes += typeof value === 'object' ? sizeOf(value) : 8;
    }
    index += 1;
    rows += 1;
    if (rows === batchRows || bytes >= batchBytes) yield taken();
  }
  if (rows > 0) yield taken();
}

type Value = number | bigint | Uint8Array | NdArray;

function sizeOf(value: Uint8Array | NdArray): number {
  return 'data' in value ? value.data.byteLength : value.byteLength;
}

function keptValue(
  dtype: TableDType | 'text',
  isList: boolean,
  cell: Cell,
  fault: (reason: string) => LoaderxError,
): Value {
  if (dtype === 'text') {
    if (typeof cell !== 'string') throw fault('changed its kind while it was read');
    return Buffer.from(cell);
  }
  if (isList) return arrayOf(dtype, cell, fault);
  return itemOf(dtype, cell, fault);
}

function itemOf(
  dtype: TableDType,
  cell: Cell,
  fault: (reason: string) => LoaderxError,
): number | bigint {
  const reason = misfit(cell, dtype);
  if (reason !== undefined) {
    const text = isDecimal(cell) ? cell.text : String(cell);
    throw fault(`${text.slice(0, 60)} ${reason}`);
  }
  const value = isDecimal(cell) ? cell.value : (cell as number | bigint | boolean);
  return dtype.endsWith('64') && !dtype.startsWith('f') ? BigInt(value) : Number(value);
}

/** A list of lists as an array: all lists of a level have one length. */
function arrayOf(dtype: TableDType, cell: Cell, fault: (reason: string) => LoaderxError): NdArray {
  const shape: number[] = [];
  for (let level: Cell = cell; Array.isArray(level); level = level[0] as Cell) {
    if (level.length === 0)
      throw fault('has an empty list, and a record of a container has an item');
    shape.push(level.length);
  }
  const items: (number | bigint)[] = [];
  const walk = (level: Cell, depth: number): void => {
    if (depth === shape.length) {
      if (Array.isArray(level)) throw fault('has lists of different depths side by side');
      items.push(itemOf(dtype, level, fault));
      return;
    }
    if (!Array.isArray(level) || level.length !== shape[depth]) {
      throw fault('has lists of different lengths side by side: a record is an array');
    }
    for (const each of level) walk(each as Cell, depth + 1);
  };
  walk(cell, 0);
  return { dtype, shape, data: dataOf(dtype, items) };
}

function dataOf(dtype: TableDType, items: readonly (number | bigint)[]): Data {
  const { itemBytes, constructorOf } = dtypeOf(dtype);
  const data = new constructorOf(new ArrayBuffer(items.length * itemBytes));
  for (const [index, item] of items.entries()) data[index] = item;
  return data;
}

function columnOf(dtype: TableDType | 'text', values: readonly Value[]): ColumnValues {
  if (dtype === 'text') return { bytes: values as Uint8Array[] };
  if (typeof values[0] === 'object') return { arrays: values as NdArray[] };
  return { values: dataOf(dtype, values as (number | bigint)[]) };
}
