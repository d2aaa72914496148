/**
 * Parquet files as a dataset.
 *
 * Every split is its files in their order. Features are those that the caller gives (a card has them), else
 * those of the first file of the first split; all other files are cast to them, by name, and keep every value
 * or fail. A file must have the columns that are declared, no fewer and no more.
 */
import fs from 'node:fs/promises';
import path from 'node:path';
import { type Data, dtypeOf } from '../dtype.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import type {
  BatchOptions,
  ColumnValues,
  Dataset,
  DatasetSource,
  DatasetSplits,
  Feature,
  Features,
  FileName,
  RowBatch,
} from './dataset.js';
import { featureText } from './features.js';
import { Cursor, type Rows } from './parquet/cursor.js';
import {
  type Column,
  count,
  type Leaf,
  malformed,
  ParquetFile,
  type RowGroup,
} from './parquet/file.js';
import { casterOf, numberBytes } from './parquet/numbers.js';
import { Pages, type Reading } from './parquet/pages.js';

/** What a file may ask for. */
export interface ParquetLimits {
  /**
   * Bytes of one page, decompressed and decoded: what says that it has more is refused (TOO_LARGE) before memory
   * is taken for it. 512 MiB unless given; pages have some MiB in usual files, and at least one value.
   */
  readonly pageBytes?: number | undefined;
}

/** How files become a dataset. */
export interface ParquetOptions {
  /** What the columns are declared to be ({@link featuresOfCard}); else the first file says it. */
  readonly features?: Features | undefined;
  /** What a file may cost in memory. */
  readonly limits?: ParquetLimits | undefined;
  /** Where they come from: passed on. */
  readonly source?: DatasetSource | undefined;
  /** Ends the reading: it rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

const pageBytesDefault = 512 * 1024 * 1024;

/** Batches are of this many rows, and of about this many decoded bytes. */
const batchRows = 32_768;
const batchBytes = 32 * 1024 * 1024;

/**
 * Local Parquet files as splits.
 *
 * Footers are read at once, so what no cast can bring together fails here; rows are read when they are wanted.
 *
 * @param files of each split, in the order of their rows; `name` is what messages call a file
 * @throws LoaderxError MALFORMED for what is no Parquet file, SOURCE where a file and what is declared cannot
 *   go together, UNSUPPORTED, IO, ABORTED
 */
export async function parquetSplits(
  files: ReadonlyMap<string, readonly FileName[]>,
  options: ParquetOptions = {},
): Promise<DatasetSplits> {
  const { limits, signal, source } = options;
  const pageBytesMax = limits?.pageBytes ?? pageBytesDefault;
  if (!Number.isSafeInteger(pageBytesMax) || pageBytesMax < 1) {
    throw new ArgumentTypeError(
      'limits.pageBytes',
      `limits.pageBytes must be a positive integer, got ${show(pageBytesMax)}`,
    );
  }
  let { features } = options;
  const splits = new Map<string, Dataset>();
  for (const [split, names] of files) {
    const parts: Part[] = [];
    for (const name of names) {
      signal?.throwIfAborted();
      const file = await ParquetFile.open(name);
      try {
        features ??= file.features;
        planOf(file, features, split);
        parts.push({ file: name, rowCount: file.rowCount });
      } finally {
        await file.close();
      }
    }
    const rowCount = parts.reduce((sum, part) => sum + part.rowCount, 0);
    const all = { first: 0, end: rowCount };
    splits.set(split, new ParquetDataset(features ?? new Map(), parts, pageBytesMax, all));
  }
  return source === undefined ? { splits } : { splits, source };
}

interface Part {
  readonly file: FileName;
  readonly rowCount: number;
}

/** Rows of all files, `end` not among them. */
interface RowRange {
  readonly first: number;
  readonly end: number;
}

class ParquetDataset implements Dataset {
  readonly features: Features;
  readonly rowCount: number;
  readonly #parts: readonly Part[];
  readonly #pageBytesMax: number;
  readonly #rows: RowRange;

  constructor(features: Features, parts: readonly Part[], pageBytesMax: number, rows: RowRange) {
    this.features = features;
    this.rowCount = rows.end - rows.first;
    this.#parts = parts;
    this.#pageBytesMax = pageBytesMax;
    this.#rows = rows;
  }

  range(first: number, end: number): Dataset {
    const from = this.#rows.first + first;
    const rows = { first: from, end: from + end - first };
    return new ParquetDataset(this.features, this.#parts, this.#pageBytesMax, rows);
  }

  async *batches(options: BatchOptions = {}): AsyncGenerator<RowBatch, void, undefined> {
    const { columns, signal } = options;
    let firstRow = 0;
    for (const { file: name, rowCount } of this.#parts) {
      // A file without rows contributes none; it may have no row group at all.
      if (rowCount === 0) continue;
      if (firstRow >= this.#rows.end) break;
      if (firstRow + rowCount <= this.#rows.first) {
        firstRow += rowCount;
        continue;
      }
      const file = await ParquetFile.open(name);
      try {
        const plan = planOf(file, this.features);
        const wanted =
          columns === undefined ? plan : plan.filter(({ column }) => columns.includes(column));
        if (file.rowCount !== rowCount) throw malformed(name.name, 'it changed meanwhile');
        for (const group of file.groups) {
          // Groups before and behind are not read.
          const from = Math.max(0, this.#rows.first - firstRow);
          const until = Math.min(group.rowCount, this.#rows.end - firstRow);
          if (from < until) {
            const rows = { first: from, end: until };
            for await (const batch of this.#group(file, group, wanted, firstRow, rows)) {
              signal?.throwIfAborted();
              yield batch;
            }
          }
          firstRow += group.rowCount;
        }
      } finally {
        await file.close();
      }
    }
  }

  async *#group(
    file: ParquetFile,
    group: RowGroup,
    plan: readonly Reading[],
    firstRow: number,
    rows: RowRange,
  ): AsyncGenerator<RowBatch, void, undefined> {
    if (group.rowCount === 0) return;
    const cursors = plan.map((reading) => {
      const chunk = group.chunks[reading.leaf.index];
      if (chunk === undefined) {
        throw malformed(file.name, `column ${show(reading.column)} lies in another file`);
      }
      const pages = new Pages(file, reading, chunk, this.#pageBytesMax);
      return new Cursor(pages, reading, firstRow, Number(chunk.num_values) / group.rowCount);
    });
    const rowsMax = rowsOfBatch(file, group, plan);
    // A group has no way in but its beginning: pages before the range are read, and let go of.
    for (let done = 0; done < rows.first; done += rowsMax) {
      const rowCount = Math.min(rowsMax, rows.first - done);
      await allOf(cursors.map((cursor) => cursor.take(rowCount)));
    }
    for (let done = rows.first; done < rows.end; done += rowsMax) {
      const rowCount = Math.min(rowsMax, rows.end - done);
      const taken = await allOf(cursors.map((cursor) => cursor.take(rowCount)));
      const columns = new Map<string, ColumnValues>();
      for (const [index, { column, number }] of plan.entries()) {
        columns.set(column, valuesOf(taken[index] as Rows, number?.dtype));
      }
      yield { rowCount, columns };
    }
    if (rows.end === group.rowCount) {
      await allOf(cursors.map((cursor) => cursor.assertEnd()));
    }
  }
}

/** As Promise.all, but nothing runs any more when it rejects. */
async function allOf<T>(promises: readonly Promise<T>[]): Promise<T[]> {
  const results = await Promise.allSettled(promises);
  return results.map((result) => {
    if (result.status === 'rejected') throw result.reason;
    return result.value;
  });
}

/** Rows of which all columns together have about {@link batchBytes}: the footer knows how many values there are. */
function rowsOfBatch(file: ParquetFile, group: RowGroup, plan: readonly Reading[]): number {
  let bytes = 0;
  for (const { leaf, number } of plan) {
    const chunk = group.chunks[leaf.index];
    try {
      const values = count(chunk?.num_values ?? 0);
      bytes += number === undefined ? count(chunk?.total_uncompressed_size) : values * number.width;
      bytes += values > group.rowCount ? group.rowCount * 4 : 0;
    } catch (cause) {
      throw malformed(file.name, 'its footer is damaged', cause);
    }
  }
  const rows = Math.floor(batchBytes / Math.max(1, bytes / group.rowCount));
  return Math.max(1, Math.min(batchRows, rows));
}

function valuesOf({ numbers, bytes, offsets }: Rows, dtype: string | undefined): ColumnValues {
  if (numbers === undefined || dtype === undefined) {
    return offsets.length === 0 ? { bytes } : { bytes, offsets };
  }
  const { constructorOf, itemBytes } = dtypeOf(dtype as string, 'dtype');
  const values: Data = new constructorOf(
    numbers.buffer,
    numbers.byteOffset,
    numbers.byteLength / itemBytes,
  );
  return { values, offsets };
}

/**
 * How the columns of a file are read as what is declared.
 *
 * Columns that no container holds are left out: `convert` refuses them by name, unless they are not wanted.
 */
function planOf(file: ParquetFile, features: Features, split = ''): Reading[] {
  for (const name of file.columns.keys()) {
    if (features.has(name)) continue;
    throw sourceError(file, name, split, `column ${show(name)} is not among the declared ones`);
  }
  const plan: Reading[] = [];
  for (const [column, feature] of features) {
    const there = file.columns.get(column);
    if (there === undefined)
      throw sourceError(file, column, split, `column ${show(column)} is missing`);
    const own = file.features.get(column) ?? there.feature;
    const wanted = leafFeature(feature);
    if (wanted === undefined) continue;
    const leaf = leafFor(there, wanted.depth, wanted.leaf.kind === 'image');
    const found = leaf === undefined ? undefined : readingOf(column, leaf, wanted.leaf, own);
    if (found === undefined) {
      throw sourceError(
        file,
        column,
        split,
        `column ${show(column)} is ${featureText(own)}, which cannot be read as ${featureText(feature)}`,
      );
    }
    plan.push(found);
  }
  return plan;
}

function sourceError(
  file: ParquetFile,
  field: string,
  split: string,
  reason: string,
): LoaderxError {
  return new LoaderxError('SOURCE', `${file.name} (split ${show(split)}): ${reason}`, {
    path: file.name,
    field,
  });
}

/** What lies in all lists of a feature; undefined for what no container holds. */
function leafFeature(feature: Feature): { leaf: Feature; depth: number } | undefined {
  let depth = 0;
  let leaf = feature;
  while (leaf.kind === 'list') {
    leaf = leaf.item;
    depth += 1;
  }
  if (leaf.kind === 'array') {
    return { leaf: { kind: 'value', dtype: leaf.dtype }, depth: depth + leaf.shape.length };
  }
  if (leaf.kind === 'struct' || leaf.kind === 'unsupported') return undefined;
  if (leaf.kind === 'value' && !numberBytes.has(leaf.dtype)) {
    if (!['string', 'binary'].includes(leaf.dtype)) return undefined;
  }
  return { leaf, depth };
}

function leafFor(column: Column, depth: number, isImage: boolean): Leaf | undefined {
  if (column.kind === 'list') {
    return depth === 0 ? undefined : leafFor(column.item, depth - 1, isImage);
  }
  if (depth !== 0) return undefined;
  if (column.kind === 'leaf') return column.leaf;
  if (column.kind !== 'struct' || !isImage) return undefined;
  const bytes = column.fields.get('bytes');
  return bytes?.kind === 'leaf' ? bytes.leaf : undefined;
}

function readingOf(column: string, leaf: Leaf, wanted: Feature, own: Feature): Reading | undefined {
  const dtype =
    wanted.kind === 'class-label' ? 'int64' : wanted.kind === 'value' ? wanted.dtype : '';
  const width = numberBytes.get(dtype);
  if (width === undefined) {
    const isBytes = leaf.dtype === 'string' || leaf.dtype === 'binary';
    if (!isBytes || (wanted.kind === 'value' && dtype !== leaf.dtype)) return undefined;
    return { column, leaf, number: undefined };
  }
  // Times in integers are no numbers; Arrow's schema says so where Parquet's types do not.
  const inner = leafFeature(own)?.leaf;
  if (inner === undefined) return undefined;
  const cast = casterOf(leaf.physical, leaf.dtype, dtype);
  return cast === undefined ? undefined : { column, leaf, number: { width, cast, dtype } };
}

// ---- folders ----

/** How a folder is read. */
export interface ParquetFolderOptions extends ParquetOptions {}

/** Words in a file's or folder's name that say which split it is of. */
const splitWords: readonly (readonly [string, readonly string[]])[] = [
  ['train', ['train', 'training']],
  ['validation', ['validation', 'valid', 'dev', 'val']],
  ['test', ['test', 'testing', 'eval', 'evaluation']],
];

/**
 * The Parquet files of a local folder, and of those inside of it, as splits.
 *
 * Splits are found by names, as `datasets` finds them: `data/NAME-00000-of-00001.parquet`; else a folder, else
 * a file with a whole word such as `train`, `dev` or `test` in its name; else all files are `train`. Names that
 * begin with `.` or `__` are passed over. A path to one file is a split `train` of that file.
 *
 * @throws LoaderxError NOT_FOUND where there is no Parquet file, and as {@link parquetSplits}
 */
export async function parquetFolder(
  folder: string,
  options: ParquetFolderOptions = {},
): Promise<DatasetSplits> {
  const root = path.resolve(folder);
  const names = await filesBelow(root, folder);
  const files = new Map<string, FileName[]>();
  for (const [split, members] of splitsOf(names)) {
    files.set(
      split,
      members.map((name) => ({ path: path.join(root, name), name: path.join(folder, name) })),
    );
  }
  return parquetSplits(files, { source: { name: folder }, ...options });
}

/** Paths below the folder with `/`, in plain order. */
async function filesBelow(root: string, shown: string): Promise<string[]> {
  const stat = await fs.stat(root).catch((cause: unknown) => {
    throw notFound(shown, 'there is nothing', cause);
  });
  if (stat.isFile()) return [''];
  const entries = await fs.readdir(root, { recursive: true, withFileTypes: true });
  const names = entries
    .filter((entry) => entry.isFile() || entry.isSymbolicLink())
    .map((entry) => {
      // `path` is what Node 20.11 and older call it.
      const parent = entry.parentPath ?? (entry as { readonly path?: string }).path ?? root;
      return path.relative(root, path.join(parent, entry.name)).split(path.sep).join('/');
    })
    .filter((name) => /\.parquet$/i.test(name))
    .filter((name) => !name.split('/').some((part) => /^(\.|__)/.test(part)));
  if (names.length === 0) throw notFound(shown, 'there is no Parquet file');
  return names.sort(byCodeUnits);
}

function byCodeUnits(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}

function notFound(shown: string, reason: string, cause?: unknown): LoaderxError {
  return new LoaderxError('NOT_FOUND', `${shown}: ${reason}`, { path: shown }, { cause });
}

/** Files by split, in the order of splits. */
export function splitsOf(names: readonly string[]): Map<string, string[]> {
  const sharded = new Map<string, string[]>();
  for (const name of names) {
    const match = /^data\/(\w+(?:\.\w+)*)-\d{5}-of-\d{5}[^/]*\.[^/]*$/u.exec(name);
    if (match?.[1] !== undefined) add(sharded, match[1], name);
  }
  if (sharded.size > 0) return ordered(sharded);
  for (const part of [folderOf, fileOf]) {
    const byWord = new Map<string, string[]>();
    for (const name of names) {
      const split = splitWords.find(([, words]) => words.some((word) => hasWord(part(name), word)));
      if (split !== undefined) add(byWord, split[0], name);
    }
    if (byWord.size > 0) return ordered(byWord);
  }
  return new Map([['train', [...names]]]);
}

function folderOf(name: string): string[] {
  return name.split('/').slice(0, -1);
}

function fileOf(name: string): string[] {
  return name.split('/').slice(-1);
}

function hasWord(parts: readonly string[], word: string): boolean {
  return parts.some((part) => new RegExp(`(^|[-._ 0-9])${word}($|[-._ 0-9])`).test(part));
}

function add(map: Map<string, string[]>, key: string, name: string): void {
  const list = map.get(key);
  if (list === undefined) map.set(key, [name]);
  else list.push(name);
}

/** train, validation, test, and then by name. */
function ordered(splits: Map<string, string[]>): Map<string, string[]> {
  const rank = (split: string): number => {
    const index = splitWords.findIndex(([name]) => name === split);
    return index < 0 ? splitWords.length : index;
  };
  const entries = [...splits].sort(
    ([one], [other]) => rank(one) - rank(other) || byCodeUnits(one, other),
  );
  return new Map(entries);
}
