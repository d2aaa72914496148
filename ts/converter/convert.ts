/**
 * From datasets to containers.
 *
 * ```text
 * for each split, in order
 *   batches ─▶ rows checked ─▶ pending, up to 32,768 rows or 32 MiB ─▶ all columns append at once
 *                              while the lanes write these, the next batches are read
 * ```
 *
 * So about 64 MiB of decoded numbers lie in memory, half of them pending and half being written, and one
 * batch of the source. All of it happens in a hidden sibling of the target ({@link Staging}), which is
 * renamed when the last container is closed: the target is complete or not there.
 */
import fs from 'node:fs';
import path from 'node:path';
import { types } from 'node:util';
import { trainDict } from '../dict.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { type Part, partBuilt, partOf, partRange } from '../parts.js';
import { givenUp, isAborted, signalOf } from '../signal.js';
import type { CodecOptions } from '../store/capability.js';
import { type Fields, knownFields } from '../store/fields.js';
import { open } from '../store/open.js';
import { locateUtf8 } from '../store/path.js';
import { asError, batchesOf } from './batches.js';
import { type ColumnOptions, type ColumnWriter, createColumn, unequalCounts } from './column.js';
import type { ColumnValues, Dataset, DatasetSplits, RowBatch } from './dataset.js';
import { withFileColumns, withoutFileColumns } from './file-column.js';
import type { ImageLimits } from './images.js';
import { type Layout, layoutOf, type StringRule } from './layout.js';
import { assertNames, type NameRule } from './names.js';
import { bytesOf, type CheckedRows, checkedRows, sliceRows, takesFiles } from './rows.js';
import { asIo, Staging } from './staging.js';
import { type SurveyedColumn, Surveyor } from './survey.js';

/** How far a conversion has come. */
export interface ConvertProgress {
  /** Rows that were read so far, over all splits. */
  readonly recordsDone: number;
  /** Rows in all, as far as it is known; never less than `recordsDone`. */
  readonly recordsTotal: number;
  /** Bytes of decoded numbers, texts and encoded pictures so far. */
  readonly bytesDone: number;
  /** The split that is converted; `undefined` where there are none. */
  readonly split: string | undefined;
}

/** How a dataset is converted. */
export type ConvertOptions = CodecOptions & {
  /** Data files of each container, 1 .. 255; 4 unless given. */
  readonly dataShards?: number | undefined;
  /** Also give each container an integrity file. */
  readonly integrity?: boolean | undefined;
  /** The columns that are wanted, in this order; all, unless given. */
  readonly columns?: readonly string[] | undefined;
  /** The splits that are wanted, in this order; all, unless given. */
  readonly splits?: readonly string[] | undefined;
  /**
   * `'utf8'`: a column of strings becomes ragged records of uint8, the bytes of each. Unless given, such a
   * column is refused, as by Python's converter.
   */
  readonly strings?: StringRule | undefined;
  /**
   * `'any'`: names of splits and columns that only this system may take, such as `con` or two that differ by
   * case. Unless given, names are held to the rules of all systems.
   */
  readonly names?: NameRule | undefined;
  /**
   * Only these rows of each split, as {@link partRange} has them: the target is the folder
   * `path/part-00003-of-00064` then. What is there already is taken for done, so running it twice is
   * harmless, by two processes at one time too. `loaderx concat` reads all parts as one.
   */
  readonly part?: Part | undefined;
  /**
   * `'ragged'`: columns of pictures become ragged containers also where all have one size. Wanted for parts of
   * pictures that differ, since those of one part may all be alike.
   */
  readonly pictures?: 'ragged' | undefined;
  /** What a picture may be at most. */
  readonly limits?: ImageLimits | undefined;
  /** Called after every batch, on the event loop. What it throws ends the conversion. */
  readonly onProgress?: ((progress: ConvertProgress) => void) | undefined;
  /** Ends the conversion: it rejects with ABORTED, and nothing stays behind. */
  readonly signal?: AbortSignal | undefined;
};

/** One container of a conversion. */
export interface ConvertedColumn {
  readonly split: string | undefined;
  readonly column: string;
  readonly rowCount: number;
}

/** What a conversion made. */
export interface Converted {
  readonly path: string;
  readonly columns: readonly ConvertedColumn[];
  /** Whether the part was there already, and nothing was done. */
  readonly wasThere?: boolean;
}

const optionFields = [
  ...['codec', 'dictBytes', 'dataShards', 'integrity', 'columns', 'splits', 'strings', 'names'],
  ...['limits', 'onProgress', 'part', 'pictures', 'signal'],
];

/**
 * Converts a dataset to containers below `path`: each column of each split becomes `path/split/column`; those
 * of one {@link Dataset} without splits `path/column`.
 *
 * Numbers and fixed shapes become dense containers, variable lists ragged ones, class labels int64, pictures
 * uint8, uint16 or bool arrays; every value as it is. The root appears complete, by one rename, or not at all.
 *
 * @param dataset of {@link huggingface}, {@link parquetFolder}, or made by hand
 * @returns the root's path; with `part` the part's
 * @throws TypeError, RangeError for options that cannot be; LoaderxError EXISTS when anything is at the path,
 *   LOCKED when another conversion builds it; UNSUPPORTED for a column that no container holds (`field`);
 *   SOURCE for a null, an empty list, a value that does not fit, a name that is no folder's (`field`,
 *   `record`); MALFORMED, TOO_LARGE, IO, ABORTED; nothing stays behind
 */
export async function convert(
  dataset: Dataset | DatasetSplits,
  path: string | URL,
  options: ConvertOptions,
): Promise<string> {
  return (await conversion(dataset, path, options)).path;
}

/** As {@link convert}; tells what was made. */
export async function conversion(
  dataset: Dataset | DatasetSplits,
  target: string | URL,
  options: ConvertOptions,
): Promise<Converted> {
  const settings = settingsOf(knownFields(options, optionFields), options);
  return converted(plansOf(dataset, settings), target, settings, {});
}

/** What importers want done in another way than a conversion. */
export interface Manner {
  /** The only column becomes the target itself, not a container below it. */
  readonly isSingle?: boolean | undefined;
  /** `zstd_dict` without `dictBytes`: each column gets a dictionary that is trained on its first records. */
  readonly trainsDict?: boolean | undefined;
  /** Rows that wait are written as soon as they have so many bytes; 32 MiB unless given. */
  readonly flushBytes?: number | undefined;
  /** The file of the target that tells what class labels stand for; none unless given. */
  readonly classesFile?: string | undefined;
}

/**
 * Several datasets side by side: each column of each becomes `path/column`, all with as many records.
 *
 * @throws as {@link convert}; LoaderxError SOURCE where counts differ, before anything is written if they are
 *   known then
 */
export async function conversionOfAll(
  datasets: readonly Dataset[],
  target: string | URL,
  options: ConvertOptions,
  manner: Manner,
): Promise<Converted> {
  const settings = settingsOf(knownFields(options, optionFields), options);
  return converted(plansBeside(datasets, settings), target, settings, manner);
}

function plansBeside(datasets: readonly Dataset[], settings: Settings): Plan[] {
  const all = datasets.flatMap(({ features }) => [...features.keys()]);
  assertNames('column', settings.columns ?? all, settings.names);
  const twice = all.find((name, index) => all.indexOf(name) !== index);
  if (twice !== undefined) {
    throw new LoaderxError('SOURCE', `column ${show(twice)} comes twice`, { field: twice });
  }
  chosen('column', new Map(all.map((name) => [name, name])), settings.columns);
  const plans: Plan[] = [];
  for (const dataset of datasets) {
    // Each has some of the columns that are wanted, or all of its own.
    const columns = settings.columns?.filter((name) => dataset.features.has(name));
    if (columns?.length === 0) continue;
    plans.push(planOf(undefined, dataset, { ...settings, columns }));
  }
  // Of the wholes: a dataset without ranges is not cut to a part before its rows are read.
  assertEqualCounts(plans.map((plan) => [namesText(plan), plan.whole.rowCount] as const));
  return plans;
}

function namesText({ layouts }: Plan): string {
  const names = [...layouts.keys()];
  return names.length === 1 ? `column ${show(names[0])}` : `columns ${names.map(show).join(', ')}`;
}

function assertEqualCounts(counts: readonly (readonly [string, number | undefined])[]): void {
  const known = counts.filter(([, count]) => count !== undefined);
  const [first] = known;
  const other = known.find(([, count]) => count !== first?.[1]);
  if (first === undefined || other === undefined) return;
  throw new LoaderxError(
    'SOURCE',
    `${first[0]} has ${first[1]} rows, and ${other[0]} has ${other[1]}: streams of one data set are read at the same ids`,
  );
}

/**
 * What {@link conversionOfAll} would make. Where the sizes are declared, nothing is read; otherwise all of it
 * is, with the same checks and errors.
 */
export async function survey(
  datasets: readonly Dataset[],
  options: ConvertOptions,
): Promise<readonly SurveyedColumn[]> {
  const settings = settingsOf(knownFields(options, optionFields), options);
  const plans = plansBeside(datasets, settings);
  const meter = new Meter(plans, settings.onProgress);
  const found: SurveyedColumn[] = [];
  for (const plan of plans) found.push(...(await surveyed(plan, settings, meter)));
  assertEqualCounts(found.map(({ column, records }) => [`column ${show(column)}`, records]));
  return found;
}

async function surveyed(
  { dataset, layouts, firstRow: base, rowCount, skipped, limit }: Plan,
  { signal, column: { imageLimits } }: Settings,
  meter: Meter,
): Promise<SurveyedColumn[]> {
  const forms = [...layouts].map(([column, layout]) => ({
    column,
    layout,
    form: new Surveyor(column, layout, imageLimits),
  }));
  if (rowCount !== undefined && forms.every(({ layout }) => layout.kind === 'dense')) {
    return forms.map(({ form }) => form.ofRows(rowCount));
  }
  let records = 0;
  // Rows that the dataset gave, those before a part's among them.
  let position = 0;
  const request = { columns: [...layouts.keys()], ...(signal === undefined ? {} : { signal }) };
  for await (const batch of batchesOf(dataset, request)) {
    signal?.throwIfAborted();
    const batchRow = base - skipped + position;
    const count = rowsOf(batch, batchRow);
    const from = Math.min(count, Math.max(0, skipped - position));
    const to = limit === undefined ? count : Math.min(count, skipped + limit - position);
    position += count;
    let bytes = 0;
    if (from < to) {
      for (const { column, layout, form } of forms) {
        const rows = sliceRows(checkedColumn(batch, column, layout, count, batchRow), from, to);
        bytes += bytesOf(rows);
        await form.add(rows, batchRow + from);
      }
    }
    batch.done?.();
    records += Math.max(0, to - from);
    meter.add(undefined, Math.max(0, to - from), bytes);
    if (records === limit) break;
  }
  if (records === 0) throw new LoaderxError('SOURCE', 'the dataset has no rows');
  return forms.map(({ form }) => form.found(records));
}

async function converted(
  plans: readonly Plan[],
  target: string | URL,
  settings: Settings,
  manner: Manner,
): Promise<Converted> {
  const { shown, native } = locateUtf8(target);
  const { signal, part } = settings;
  if (isAborted(signal)) throw givenUp(shown, signal);
  if (part === undefined) return await built(native, shown, plans, settings, manner);
  const made = await partBuilt({ native, shown }, part, (folder, own) =>
    built(folder, own, plans, settings, manner),
  );
  return made.built ?? { path: made.path, columns: plans.flatMap(columnsOf), wasThere: true };
}

function columnsOf({ split, layouts, rowCount = 0 }: Plan): ConvertedColumn[] {
  return [...layouts.keys()].map((column) => ({ split, column, rowCount }));
}

async function built(
  native: string,
  shown: string,
  plans: readonly Plan[],
  settings: Settings,
  manner: Manner,
): Promise<Converted> {
  const { signal } = settings;
  const staging = Staging.begin(native);
  try {
    const columns: ConvertedColumn[] = [];
    const meter = new Meter(plans, settings.onProgress);
    for (const plan of plans) {
      const dicts = await dictsOf(plan, staging, settings, manner);
      columns.push(
        ...(await convertSplit(plan, staging.root, { ...settings, ...dicts }, meter, manner)),
      );
    }
    assertEqualCounts(
      new Set(plans.map(({ split }) => split)).size === 1
        ? columns.map(({ column, rowCount }) => [`column ${show(column)}`, rowCount] as const)
        : [],
    );
    if (manner.classesFile !== undefined) {
      writeClasses(plans, path.join(staging.root, manner.classesFile));
    }
    if (isAborted(signal)) throw givenUp(shown, signal);
    const [only] = columns;
    await staging.publish(manner.isSingle === true ? only?.column : undefined);
    return { path: shown, columns };
  } catch (error) {
    await staging.discard();
    if (isAborted(signal)) throw givenUp(shown, signal);
    throw asIo(shown, 'writing it', asError(error));
  }
}

// ---- what is to be done ----

interface Settings {
  readonly column: ColumnOptions;
  /** Dictionaries of single columns, where they have their own. */
  readonly dicts?: ReadonlyMap<string, Uint8Array>;
  readonly columns: readonly string[] | undefined;
  readonly splits: readonly string[] | undefined;
  readonly strings: StringRule;
  readonly names: NameRule;
  readonly part: Part | undefined;
  readonly onProgress: ((progress: ConvertProgress) => void) | undefined;
  readonly signal: AbortSignal | undefined;
}

function settingsOf(fields: Fields, options: ConvertOptions): Settings {
  const { onProgress } = fields;
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw new ArgumentTypeError(
      'onProgress',
      `onProgress must be a function, got ${show(onProgress)}`,
    );
  }
  const { integrity = false } = fields;
  if (typeof integrity !== 'boolean') {
    throw new ArgumentTypeError('integrity', `integrity must be a boolean, got ${show(integrity)}`);
  }
  const signal = signalOf(fields.signal);
  const { codec, dictBytes, dataShards } = fields;
  // `create` judges these, before any row is read.
  const create = {
    codec,
    ...(dictBytes === undefined ? {} : { dictBytes }),
    ...(dataShards === undefined ? {} : { dataShards }),
  } as CodecOptions;
  return {
    column: {
      ...{ create, integrity, imageLimits: options.limits, signal },
      raggedPictures: picturesOf(fields.pictures),
    },
    columns: namesOf(fields.columns, 'columns'),
    splits: namesOf(fields.splits, 'splits'),
    strings: choiceOf(fields.strings, 'strings', ['refuse', 'utf8']),
    names: choiceOf(fields.names, 'names', ['portable', 'any']),
    part: fields.part === undefined ? undefined : partOf(fields.part),
    onProgress: onProgress as Settings['onProgress'],
    signal,
  };
}

function picturesOf(value: unknown): boolean {
  if (value === undefined || value === 'ragged') return value === 'ragged';
  throw new ArgumentTypeError('pictures', `pictures must be 'ragged', got ${show(value)}`);
}

function choiceOf<T extends string>(value: unknown, field: string, choices: readonly [T, T]): T {
  if (value === undefined) return choices[0];
  const found = choices.find((choice) => choice === value);
  if (found !== undefined) return found;
  throw new ArgumentTypeError(
    field,
    `${field} must be '${choices.join("' or '")}', got ${show(value)}`,
  );
}

function namesOf(value: unknown, field: string): readonly string[] | undefined {
  if (value === undefined) return undefined;
  if (!Array.isArray(value) || !value.every((name) => typeof name === 'string')) {
    throw new ArgumentTypeError(field, `${field} must be a list of names, got ${show(value)}`);
  }
  if (value.length === 0) throw new ArgumentTypeError(field, `${field} is empty`);
  if (new Set(value).size !== value.length) {
    throw new ArgumentTypeError(field, `${field} has a name twice: ${show(value)}`);
  }
  return [...value];
}

/** One dataset, and where its columns go. */
interface Plan {
  readonly split: string | undefined;
  readonly dataset: Dataset;
  /** What that is a part of. */
  readonly whole: Dataset;
  readonly layouts: ReadonlyMap<string, Layout>;
  /** Where its rows begin in the split: for messages. */
  readonly firstRow: number;
  /** Rows before it that the dataset gives all the same. */
  readonly skipped: number;
  /** How many rows are wanted: those of a part; undefined: all. */
  readonly limit: number | undefined;
  /** How many rows there will be, where that is known: for progress. */
  readonly rowCount: number | undefined;
}

/** Everything that can be known before a row is read. */
function plansOf(dataset: Dataset | DatasetSplits, settings: Settings): Plan[] {
  if (typeof dataset !== 'object' || dataset === null) {
    throw new ArgumentTypeError('dataset', `dataset must be a Dataset, got ${show(dataset)}`);
  }
  if ('splits' in dataset) {
    const { splits } = dataset;
    if (!(splits instanceof Map)) {
      throw new ArgumentTypeError('dataset', `dataset.splits must be a Map, got ${show(splits)}`);
    }
    assertNames('split', splits.keys(), settings.names);
    if (splits.size === 0) throw new LoaderxError('SOURCE', 'the dataset has no splits');
    const wanted = chosen('split', splits, settings.splits);
    return [...wanted].map(([split, each]) => planOf(split, each, settings));
  }
  if (settings.splits !== undefined) {
    throw new ArgumentTypeError('splits', 'splits are named, and the dataset has none');
  }
  return [planOf(undefined, dataset, settings)];
}

function planOf(split: string | undefined, dataset: Dataset, settings: Settings): Plan {
  const features: unknown = dataset?.features;
  if (!types.isMap(features) || typeof dataset.batches !== 'function') {
    throw new ArgumentTypeError(
      'dataset',
      `dataset must have features, a Map, and batches(), got ${show(dataset)}`,
    );
  }
  const { rowCount } = dataset as { readonly rowCount?: unknown };
  if (rowCount !== undefined && !(Number.isSafeInteger(rowCount) && (rowCount as number) >= 0)) {
    throw new ArgumentTypeError(
      'dataset',
      `rowCount of ${inSplit(split)} must be a whole number, got ${show(rowCount)}`,
    );
  }
  for (const name of features.keys()) {
    if (typeof name === 'string') continue;
    throw new ArgumentTypeError(
      'dataset',
      `the features of ${inSplit(split)} must be named by strings, got ${show(name)}`,
    );
  }
  const wanted = chosen('column', dataset.features, settings.columns);
  assertNames('column', wanted.keys(), settings.names);
  if (wanted.size === 0) {
    throw new LoaderxError('SOURCE', `${inSplit(split)} has no columns`);
  }
  const layouts = new Map<string, Layout>();
  for (const [column, feature] of wanted) {
    layouts.set(column, layoutOf(column, feature, settings.strings));
  }
  return { split, layouts, whole: dataset, ...rowsOfPart(split, dataset, settings.part) };
}

/** The rows of a dataset that are wanted. */
function rowsOfPart(
  split: string | undefined,
  dataset: Dataset,
  part: Part | undefined,
): Pick<Plan, 'dataset' | 'firstRow' | 'skipped' | 'limit' | 'rowCount'> {
  const { rowCount } = dataset;
  if (part === undefined) return { dataset, firstRow: 0, skipped: 0, limit: undefined, rowCount };
  if (rowCount === undefined) {
    throw new ArgumentTypeError(
      'part',
      `part wants a dataset that knows its rowCount, and that of ${inSplit(split)} does not`,
    );
  }
  const { first, end } = partRange(rowCount, part);
  // Said in every part: of a set, none is made where one cannot be.
  if (rowCount < part.of) {
    throw new LoaderxError(
      'SOURCE',
      `${inSplit(split)} has ${rowCount} rows, too few for ${part.of} parts: some would be empty`,
    );
  }
  const own = dataset.range?.(first, end);
  const limit = end - first;
  const rows = { firstRow: first, limit, rowCount: limit };
  return { ...rows, dataset: own ?? dataset, skipped: own === undefined ? first : 0 };
}

function chosen<T>(
  kind: 'split' | 'column',
  all: ReadonlyMap<string, T>,
  names: readonly string[] | undefined,
): ReadonlyMap<string, T> {
  if (names === undefined) return all;
  const found = new Map<string, T>();
  for (const name of names) {
    const value = all.get(name);
    if (value === undefined) {
      throw new LoaderxError(
        'SOURCE',
        `there is no ${kind} ${show(name)}; there are ${[...all.keys()].map(show).join(', ')}`,
        { field: name },
      );
    }
    found.set(name, value);
  }
  return found;
}

function inSplit(split: string | undefined): string {
  return split === undefined ? 'the dataset' : `split ${show(split)}`;
}

// ---- doing it ----

const flushRows = 32_768;
const flushBytes = 32 * 1024 * 1024;

/** Tells how far it is. */
class Meter {
  readonly #tell: ((progress: ConvertProgress) => void) | undefined;
  readonly #total: number;
  #rows = 0;
  #bytes = 0;

  constructor(plans: readonly Plan[], tell: ((progress: ConvertProgress) => void) | undefined) {
    this.#tell = tell;
    this.#total = plans.reduce((sum, { rowCount }) => sum + (rowCount ?? 0), 0);
  }

  add(split: string | undefined, rows: number, bytes: number): void {
    this.#rows += rows;
    this.#bytes += bytes;
    this.#tell?.({
      recordsDone: this.#rows,
      recordsTotal: Math.max(this.#total, this.#rows),
      bytesDone: this.#bytes,
      split,
    });
  }
}

async function convertSplit(
  { split, dataset, layouts, firstRow: base, skipped, limit, rowCount: declared }: Plan,
  root: string,
  settings: Settings,
  meter: Meter,
  manner: Manner,
): Promise<ConvertedColumn[]> {
  const { signal } = settings;
  const bytesMax = manner.flushBytes ?? flushBytes;
  const folder = split === undefined ? root : path.join(root, split);
  const columns: Pending[] = [];
  let writing: Promise<void> | undefined;
  try {
    for (const [column, layout] of layouts) {
      const dictBytes = settings.dicts?.get(column);
      const options: ColumnOptions =
        dictBytes === undefined
          ? settings.column
          : {
              ...settings.column,
              create: { ...settings.column.create, codec: 'zstd_dict', dictBytes },
            };
      const writer = await createColumn(column, path.join(folder, column), layout, options);
      columns.push({ column, layout, writer, pieces: [] });
    }
    let rowCount = 0;
    let pendingRows = 0;
    let pendingBytes = 0;
    let done: (() => void)[] = [];

    const flush = async (): Promise<void> => {
      const firstRow = base + rowCount - pendingRows;
      pendingRows = 0;
      pendingBytes = 0;
      await writing;
      const work = columns.map(({ column, writer, pieces }) =>
        writer.write(
          pieces.splice(0).map((piece) => stillThere(piece, column)),
          firstRow,
        ),
      );
      const written = done;
      done = [];
      writing = allOf(work).then(() => {
        for (const tell of written) tell();
      });
      // It may fail while the next batches are read; the next flush tells.
      writing.catch(ignore);
    };

    const asked = { columns: [...layouts.keys()], ...(signal === undefined ? {} : { signal }) };
    const request = withFileColumns(
      asked,
      new Set(settings.column.create.codec === 'raw' ? columnsAsStored(layouts) : []),
    );
    // Rows that the dataset gave, those before a part's among them.
    let position = 0;
    for await (const batch of batchesOf(dataset, request)) {
      signal?.throwIfAborted();
      const batchRow = base - skipped + position;
      const count = rowsOf(batch, batchRow);
      let at = Math.min(count, Math.max(0, skipped - position));
      const until = limit === undefined ? count : Math.min(count, skipped + limit - position);
      position += count;
      if (limit !== undefined && at >= until) {
        batch.done?.();
        if (rowCount === limit) break;
        continue;
      }
      const checked = columns.map(({ column, layout }) =>
        checkedColumn(batch, column, layout, count, batchRow),
      );
      let bytes = 0;
      const given = until - at;
      // Rows that are in no memory need no bound.
      const rowsMax = checked.every(({ kind }) => kind === 'file') ? given : flushRows;
      while (at < until) {
        const taken = Math.min(until - at, Math.max(1, rowsMax - pendingRows));
        for (const [index, each] of columns.entries()) {
          const piece = sliceRows(checked[index] as CheckedRows, at, at + taken);
          const pieceBytes = bytesOf(piece);
          each.pieces.push({ rows: piece, bytes: pieceBytes });
          pendingBytes += pieceBytes;
          bytes += pieceBytes;
        }
        at += taken;
        pendingRows += taken;
        rowCount += taken;
        if (at === until && batch.done !== undefined) done.push(batch.done);
        if (pendingRows >= rowsMax || pendingBytes >= bytesMax) await flush();
      }
      meter.add(split, given, bytes);
    }
    if (limit !== undefined && rowCount !== limit) {
      throw new LoaderxError(
        'SOURCE',
        `${inSplit(split)} has ${base + rowCount} rows, and its rowCount says that there are ${base + limit} or more`,
      );
    }
    if (rowCount === 0) throw new LoaderxError('SOURCE', `${inSplit(split)} has no rows`);
    if (declared !== undefined && rowCount !== declared) {
      throw new LoaderxError(
        'SOURCE',
        `${inSplit(split)} has ${rowCount} rows, and its rowCount says ${declared}`,
      );
    }
    if (pendingRows > 0) await flush();
    await writing;
    await allOf(columns.map(({ writer }) => writer.close()));
    return columns.map(({ column, writer }) => {
      if (writer.rowCount !== rowCount) {
        throw unequalCounts(split ?? '', column, writer.rowCount, rowCount);
      }
      return { split, column, rowCount };
    });
  } catch (error) {
    await Promise.allSettled([writing, ...columns.map(({ writer }) => writer.abort())]);
    throw error;
  }
}

/** The columns whose rows are stored as a file may have them. */
function columnsAsStored(layouts: ReadonlyMap<string, Layout>): string[] {
  return [...layouts].flatMap(([column, layout]) => (takesFiles(layout) ? [column] : []));
}

function checkedColumn(
  batch: RowBatch,
  column: string,
  layout: Layout,
  count: number,
  firstRow: number,
): CheckedRows {
  const values: unknown = batch.columns.get(column);
  if (typeof values !== 'object' || values === null) {
    const came = values === undefined ? 'has no column' : `has ${show(values)} as column`;
    throw new LoaderxError('SOURCE', `the batch from row ${firstRow} on ${came} ${show(column)}`, {
      field: column,
    });
  }
  return checkedRows(layout, values as ColumnValues, count, { column, firstRow });
}

// ---- dictionaries, and what stands beside containers ----

/** Of what a dictionary is trained on: `trainDict` looks at no more than 4 MiB. */
const sampleBytes = 4 * 1024 * 1024;
const sampleRows = 32_768;

/** The first rows of a dataset. */
function beginningOf(dataset: Dataset): Dataset {
  return {
    features: dataset.features,
    async *batches(options) {
      let bytes = 0;
      let rows = 0;
      for await (const batch of batchesOf(dataset, withoutFileColumns(options))) {
        yield batch;
        rows += batch.rowCount;
        for (const values of batch.columns.values()) bytes += roughBytesOf(values);
        if (bytes >= sampleBytes * batch.columns.size || rows >= sampleRows) return;
      }
    },
  };
}

function roughBytesOf(values: ColumnValues | null | undefined): number {
  // Who writes it says what is wrong with it.
  if (values === null || values === undefined) return 0;
  if ('values' in values) return values.values.byteLength;
  if ('arrays' in values) return values.arrays.reduce((sum, { data }) => sum + data.byteLength, 0);
  return values.bytes.reduce((sum, each) => sum + (each?.byteLength ?? 0), 0);
}

/**
 * A dictionary for each column, trained on its first rows: they are read once before all are, and written
 * beside the result, where the training finds them as records like any other.
 */
async function dictsOf(
  plan: Plan,
  staging: Staging,
  settings: Settings,
  manner: Manner,
): Promise<{ readonly dicts?: ReadonlyMap<string, Uint8Array> }> {
  const { create } = settings.column;
  const isWanted = manner.trainsDict === true && create.codec === 'zstd_dict';
  if (!isWanted || create.dictBytes !== undefined) return {};
  const folder = staging.aside('sample');
  const { dataShards } = create;
  const raw = { codec: 'raw', ...(dataShards === undefined ? {} : { dataShards }) } as const;
  // All parts get the dictionary of the first rows of the whole.
  const beginning = { firstRow: 0, skipped: 0, limit: undefined, rowCount: undefined };
  const sample = { ...plan, ...beginning, dataset: beginningOf(plan.whole) };
  const column = { ...settings.column, create: raw, integrity: false };
  const meter = new Meter([], undefined);
  await convertSplit(sample, folder, { ...settings, column }, meter, manner);
  const dicts = new Map<string, Uint8Array>();
  for (const name of plan.layouts.keys()) {
    await using reader = open(path.join(folder, name));
    try {
      dicts.set(name, await trainDict(reader));
    } catch (cause) {
      if (!(cause instanceof LoaderxError)) throw cause;
      throw new LoaderxError(
        cause.code,
        `column ${show(name)}: ${cause.message}`,
        { field: name },
        { cause },
      );
    }
  }
  fs.rmSync(folder, { recursive: true, force: true });
  return { dicts };
}

/** What class labels stand for, by column: a list of names, of which number i is the i-th. */
function writeClasses(plans: readonly Plan[], file: string): void {
  const classes: Record<string, readonly string[]> = {};
  for (const { dataset, layouts } of plans) {
    for (const column of layouts.keys()) {
      const feature = dataset.features.get(column);
      if (feature?.kind === 'class-label' && feature.names !== undefined) {
        classes[column] = feature.names;
      }
    }
  }
  if (Object.keys(classes).length === 0) return;
  fs.writeFileSync(file, `${JSON.stringify(classes, undefined, 2)}\n`);
}

interface Pending {
  readonly column: string;
  readonly layout: Layout;
  readonly writer: ColumnWriter;
  /** Rows that wait to be written. */
  readonly pieces: Piece[];
}

interface Piece {
  readonly rows: CheckedRows;
  /** Of its items, as they came. */
  readonly bytes: number;
}

/** The rows of a piece, if nobody has taken their memory since they were checked. */
function stillThere({ rows, bytes }: Piece, column: string): CheckedRows {
  if (bytesOf(rows) === bytes) return rows;
  throw new LoaderxError(
    'SOURCE',
    `column ${show(column)}: the memory of a batch was detached or resized before it was written: it is the conversion's until \`done\` is called`,
    { field: column },
  );
}

function rowsOf(batch: RowBatch, firstRow: number): number {
  const { rowCount, columns, done } = batch ?? {};
  const isSound = Number.isSafeInteger(rowCount) && rowCount >= 0 && types.isMap(columns);
  if (!isSound || (done !== undefined && typeof done !== 'function')) {
    throw new LoaderxError(
      'SOURCE',
      `the batch from row ${firstRow} on must be {rowCount, columns: Map, done?: function}, got ${show(batch)}`,
    );
  }
  return rowCount;
}

/** As Promise.all, but nothing runs any more when it rejects. */
async function allOf(promises: readonly Promise<void>[]): Promise<void> {
  for (const result of await Promise.allSettled(promises)) {
    if (result.status === 'rejected') throw result.reason;
  }
}

function ignore(): void {}
