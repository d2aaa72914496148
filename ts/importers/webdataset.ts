/**
 * Tar archives of samples, as WebDataset has them: a sample is the members that follow one another under one key,
 * and what stands behind the key says what a member is.
 *
 * ```text
 * train/000017.jpg    key train/000017, column jpg
 * train/000017.cls                      column cls
 * train/000018.jpg    key train/000018  …
 * ```
 *
 * The key ends before the first dot of the file's name. Archives are read twice: once their headers, to see how
 * many samples there are and of what form, and then all of what is wanted. A place is kept of every so many
 * samples, so that a part begins where it begins. No name is ever a path here.
 */
import { isUtf8 } from 'node:buffer';
import fs from 'node:fs';
import path from 'node:path';
import type { ColumnValues, Dataset, Feature, RowBatch } from '../converter/dataset.js';
import type { DType } from '../dtype.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import type { NdArray } from '../ndarray.js';
import { readingFailed } from './bytes.js';
import { npyArray, npyForm } from './npy.js';
import {
  type PictureOptions,
  type PictureRule,
  pictureRule,
  placed,
  severalAtOnce,
} from './pictures.js';
import { shownName, type TarMember, tarMembers } from './tar.js';

export interface WebDatasetOptions extends PictureOptions {
  readonly columns?: readonly string[] | undefined;
  readonly limits?: MemberLimits | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** What a member may be at most. */
export interface MemberLimits {
  /** Bytes of a member of a tar archive, each of which lies in memory as a whole; 512 MiB unless given. */
  readonly memberBytes?: number | undefined;
}

const memberBytesDefault = 512 * 2 ** 20;
/** Of a number written in digits. */
const numberBytesMax = 64;
const batchRows = 1024;
const batchBytes = 8 * 2 ** 20;
/** Samples from one kept place to the next. */
const markRows = 1024;

/** Ends of names of archives. */
export const tarEnds = /\.(tar|tar\.gz|tgz)$/i;

type Kind = 'array' | 'picture' | 'number' | 'text';

const kinds: Readonly<Record<string, Kind>> = {
  npy: 'array',
  png: 'picture',
  jpg: 'picture',
  jpeg: 'picture',
  webp: 'picture',
  cls: 'number',
  cls2: 'number',
  class: 'number',
  count: 'number',
  index: 'number',
  inx: 'number',
  id: 'number',
  txt: 'text',
  text: 'text',
  transcript: 'text',
};

/** What a column has shown: of arrays their form, which for ragged ones is that of the first. */
interface Seen {
  readonly kind: Kind;
  readonly dtype: DType;
  readonly shape: readonly number[];
  isRagged: boolean;
}

interface Archive {
  readonly path: string;
  readonly rowCount: number;
  /** Where samples 0, {@link markRows}, … begin. */
  readonly marks: readonly number[];
}

/** Names of the archives of a folder, in plain order; undefined where it has none. */
export async function archivesIn(folder: string): Promise<readonly string[] | undefined> {
  try {
    const entries = await fs.promises.readdir(folder, { withFileTypes: true });
    const names = entries
      .filter((entry) => !entry.isDirectory() && tarEnds.test(entry.name))
      .map(({ name }) => name)
      .filter((name) => !name.startsWith('.'))
      .sort();
    return names.length === 0 ? undefined : names.map((name) => path.join(folder, name));
  } catch (cause) {
    throw readingFailed(folder, cause);
  }
}

/**
 * @param paths archives, in the order of their samples
 * @throws LoaderxError MALFORMED for a damaged archive or array, UNSUPPORTED for members of a kind that is not
 *   read, SOURCE for samples that differ or have a member twice, for an empty member, and where there are no
 *   samples, TOO_LARGE for a member over the limit, NOT_FOUND, IO; TypeError (INVALID_ARGUMENT) for options that
 *   cannot be
 */
export async function webDataset(
  paths: readonly string[],
  options: WebDatasetOptions,
): Promise<{
  readonly dataset: Dataset;
  /** All columns of the first sample, also those that are not wanted. */
  readonly names: readonly string[];
  /** Whether a column is pictures. */
  readonly hasPictures: boolean;
}> {
  const { columns, signal } = options;
  const rule = pictureRule(options);
  const memberBytesMax = options.limits?.memberBytes ?? memberBytesDefault;
  if (!Number.isSafeInteger(memberBytesMax) || memberBytesMax < 1) {
    throw new ArgumentTypeError(
      'limits.memberBytes',
      `limits.memberBytes must be a positive integer, got ${show(memberBytesMax)}`,
    );
  }
  const archives: Archive[] = [];
  const seen = new Map<string, Seen>();
  let names: readonly string[] = [];
  let firstKey = '';
  let row = 0;
  for (const archive of paths) {
    const marks: number[] = [];
    let rowCount = 0;
    const take = (member: TarMember, column: string): Promise<Seen> =>
      formOf(member, column, row, memberBytesMax, columns !== undefined);
    for await (const sample of samplesOf(archive, { purpose: 'headers', columns, signal }, take)) {
      if (row === 0) {
        names = [...sample.there];
        firstKey = sample.key;
      }
      try {
        assertAlike(archive, sample, row === 0 ? undefined : seen, row);
      } catch (error) {
        const cause = error as LoaderxError;
        await assertTogether(archive, sample.key, cause, signal);
        await assertTogether(paths[0] as string, firstKey, cause, signal);
        throw error;
      }
      for (const [column, form] of sample.members) {
        const own = seen.get(column);
        if (own === undefined) seen.set(column, form);
        else addForm(archive, sample, column, own, form, row);
      }
      if (rowCount % markRows === 0) marks.push(sample.at);
      rowCount += 1;
      row += 1;
    }
    archives.push({ path: archive, rowCount, marks });
  }
  if (row === 0) {
    const name = paths.join(', ');
    throw new LoaderxError('SOURCE', `${name}: there are no samples`, { path: paths[0] ?? name });
  }
  const features = new Map<string, Feature>();
  for (const [column, form] of seen) features.set(column, featureOf(form, rule));
  const hasPictures = [...seen.values()].some(({ kind }) => kind === 'picture');
  const plan = { seen, features, rule, memberBytesMax };
  return { dataset: datasetOf(archives, plan, 0, row), names, hasPictures };
}

interface Plan {
  readonly seen: ReadonlyMap<string, Seen>;
  readonly features: ReadonlyMap<string, Feature>;
  readonly rule: PictureRule;
  readonly memberBytesMax: number;
}

/** Rows from `first` to `end - 1`. */
function datasetOf(archives: readonly Archive[], plan: Plan, first: number, end: number): Dataset {
  return {
    features: plan.features,
    rowCount: end - first,
    range: (from, to) => datasetOf(archives, plan, first + from, first + to),
    batches: (request) => batches(archives, plan, first, end, request?.columns, request?.signal),
  };
}

function featureOf({ kind, dtype, shape, isRagged }: Seen, rule: PictureRule): Feature {
  if (kind === 'picture') return rule.feature;
  if (kind === 'number') return { kind: 'value', dtype: 'int64' };
  if (kind === 'text') return { kind: 'value', dtype: 'string' };
  if (!isRagged) {
    return shape.length === 0 ? { kind: 'value', dtype } : { kind: 'array', shape, dtype };
  }
  // Of complex numbers no list is declared.
  if (dtype.startsWith('complex')) return { kind: 'arrays' };
  let feature: Feature = { kind: 'value', dtype };
  for (const _size of shape) feature = { kind: 'list', item: feature };
  return feature;
}

// ---- samples ----

interface Sample<T> {
  readonly key: string;
  /** Where its first member begins in the archive. */
  readonly at: number;
  /** What was taken of its members, by column. */
  readonly members: ReadonlyMap<string, T>;
  /** The columns of all of its members, also of those that are not wanted. */
  readonly there: ReadonlySet<string>;
}

interface SampleOptions {
  readonly purpose: 'headers' | 'all';
  readonly from?: number;
  /** The columns that are taken; all, unless given. */
  readonly columns: readonly string[] | undefined;
  readonly signal: AbortSignal | undefined;
}

/** The samples of an archive, of whose members something is taken while they are there. */
async function* samplesOf<T>(
  archive: string,
  { columns, ...options }: SampleOptions,
  take: (member: TarMember, column: string) => Promise<T>,
): AsyncGenerator<Sample<T>, void, undefined> {
  let key: string | undefined;
  let at = 0;
  let members = new Map<string, T>();
  let there = new Set<string>();
  for await (const member of tarMembers(archive, options)) {
    const split = splitName(member.name);
    if (split === 'passed over') continue;
    if (split === 'no text') {
      throw refusal(archive, member, 'has a name whose end is no UTF-8');
    }
    if (split === undefined) {
      // Who names columns has said what is not wanted.
      if (columns !== undefined) continue;
      throw refusal(archive, member, 'has no dot in its name, which would end a key');
    }
    if (split.key !== key) {
      if (key !== undefined) yield { key, at, members, there };
      key = split.key;
      at = member.at;
      members = new Map();
      there = new Set();
    }
    const { column } = split;
    if (there.has(column)) {
      throw new LoaderxError(
        'SOURCE',
        `${member.shown}: sample ${shownName(key)} has a member ${show(column)} already`,
        { path: archive, field: column },
      );
    }
    there.add(column);
    if (columns?.includes(column) === false) continue;
    members.set(column, await take(member, column));
  }
  if (key !== undefined) yield { key, at, members, there };
}

/** The key ends before the first dot of the last part. Names that are hidden or WebDataset's own are no samples. */
function splitName(
  name: string,
): { readonly key: string; readonly column: string } | 'passed over' | 'no text' | undefined {
  const file = name.slice(name.lastIndexOf('/') + 1);
  if (file.startsWith('.') || /^__[^/]*__($|\/)/.test(name)) return 'passed over';
  const dot = file.indexOf('.');
  if (dot === -1 || dot === file.length - 1) return undefined;
  const key = name.slice(0, name.length - file.length + dot);
  const end = Buffer.from(file.slice(dot + 1), 'latin1');
  // Others would become one column.
  if (!isUtf8(end)) return 'no text';
  return { key, column: end.toString('utf8').toLowerCase() };
}

function refusal(
  archive: string,
  member: TarMember,
  reason: string,
  advice = '; leave others out by naming the columns that are wanted',
): LoaderxError {
  const ends = Object.keys(kinds).map((end) => `.${end}`);
  return new LoaderxError(
    'UNSUPPORTED',
    `${member.shown} ${reason}: ${ends.join(', ')} are read${advice}`,
    { path: archive, field: member.name },
  );
}

function kindOf(column: string): Kind | undefined {
  const end = column.slice(column.lastIndexOf('.') + 1);
  return Object.hasOwn(kinds, end) ? kinds[end] : undefined;
}

/** All samples have the members of the first one. */
function assertAlike(
  archive: string,
  { key, members }: Sample<unknown>,
  seen: ReadonlyMap<string, unknown> | undefined,
  row: number,
): void {
  const fault = (column: string, reason: string): LoaderxError =>
    new LoaderxError('SOURCE', `${archive}: sample ${shownName(key)} (row ${row}) has ${reason}`, {
      path: archive,
      field: column,
      record: row,
    });
  if (seen === undefined) return;
  for (const column of seen.keys()) {
    if (!members.has(column))
      throw fault(column, `no member ${show(column)}, and the first one has`);
  }
  for (const column of members.keys()) {
    if (!seen.has(column))
      throw fault(column, `a member ${show(column)}, and the first one has none`);
  }
}

/**
 * Where samples differ, one of them may be in pieces, as archives are that have files in the order of their folder.
 * Looked for only then, by reading the headers once more: so no keys are kept.
 */
async function assertTogether(
  archive: string,
  key: string,
  { field, record }: LoaderxError,
  signal: AbortSignal | undefined,
): Promise<void> {
  let pieces = 0;
  const options = { purpose: 'headers', columns: [], signal } as const;
  for await (const sample of samplesOf(archive, options, async () => undefined)) {
    if (sample.key === key) pieces += 1;
    if (pieces < 2) continue;
    throw new LoaderxError(
      'SOURCE',
      `${archive}: the members of sample ${shownName(key)} do not stand beside each other, and what follows one another under one key is a sample: tar --sort=name makes such an archive`,
      {
        path: archive,
        ...(field === undefined ? {} : { field }),
        ...(record === undefined ? {} : { record }),
      },
    );
  }
}

/** What a member becomes, by its first bytes. */
async function formOf(
  member: TarMember,
  column: string,
  row: number,
  memberBytesMax: number,
  isWanted: boolean,
): Promise<Seen> {
  const { archive } = member;
  const kind = kindOf(column);
  if (kind === undefined) {
    const advice = isWanted
      ? `, and ${show(column)} is among the columns that are wanted`
      : undefined;
    throw refusal(archive, member, 'is of a kind that is not read', advice);
  }
  assertSize(archive, member, column, row, memberBytesMax);
  try {
    if (kind === 'array') {
      const header = await npyForm(member.shown, member.byteLength, (most) => member.head(most));
      return { kind, dtype: header.dtype, shape: header.shape, isRagged: false };
    }
    if (kind === 'number') numberIn(await member.head(numberBytesMax), member);
  } catch (error) {
    throw inSample(error, archive, column, row);
  }
  return { kind, dtype: 'uint8', shape: [], isRagged: false };
}

function assertSize(
  archive: string,
  member: TarMember,
  column: string,
  row: number,
  memberBytesMax: number,
): void {
  const most = kindOf(column) === 'number' ? numberBytesMax : memberBytesMax;
  const { byteLength, shown } = member;
  const place = { path: archive, field: column, record: row };
  if (byteLength === 0) {
    throw new LoaderxError('SOURCE', `${shown} (row ${row}) is empty`, place);
  }
  if (byteLength <= most) return;
  const what = most === numberBytesMax ? 'a whole number has' : 'limits.memberBytes allows';
  throw new LoaderxError(
    'TOO_LARGE',
    `${shown} (row ${row}) has ${byteLength} bytes, and ${what} ${most} at most`,
    place,
  );
}

/** The same error with its column and row; the member is named already. */
function inSample(error: unknown, archive: string, column: string, row: number): unknown {
  if (!(error instanceof LoaderxError)) return error;
  return new LoaderxError(
    error.code,
    `column ${show(column)}, row ${row}: ${error.message}`,
    { path: archive, field: column, record: row },
    { cause: error },
  );
}

function addForm(
  archive: string,
  { key }: Sample<unknown>,
  column: string,
  seen: Seen,
  { dtype, shape }: Seen,
  row: number,
): void {
  if (dtype !== seen.dtype || shape.length !== seen.shape.length) {
    throw new LoaderxError(
      'SOURCE',
      `${archive}: sample ${shownName(key)} (row ${row}) has a ${show(column)} that is ${dtype} of shape [${shape.join(', ')}], and the first one is ${seen.dtype} of [${seen.shape.join(', ')}]: all of a column have one dtype and one rank`,
      { path: archive, field: column, record: row },
    );
  }
  if (shape.some((size, axis) => size !== seen.shape[axis])) seen.isRagged = true;
}

function numberIn(bytes: Uint8Array, { shown }: TarMember): bigint {
  const text = Buffer.from(bytes).toString('latin1').trim();
  const value = /^[+-]?\d{1,20}$/.test(text) ? BigInt(text) : undefined;
  if (value !== undefined && BigInt.asIntN(64, value) === value) return value;
  throw new LoaderxError('SOURCE', `${shown}: ${show(text)} is no whole number of int64`, {
    path: shown,
  });
}

// ---- rows ----

/** A member that is held, with its name for messages. */
interface Held {
  readonly bytes: Uint8Array;
  readonly member: TarMember;
}

async function* batches(
  archives: readonly Archive[],
  plan: Plan,
  first: number,
  end: number,
  wanted: readonly string[] | undefined,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  const columns = wanted ?? [...plan.seen.keys()];
  const expected = new Map(columns.map((column) => [column, undefined]));
  const { recordBytes } = plan.rule;
  const rowsMax = recordBytes === 0 ? batchRows : Math.max(1, Math.floor(batchBytes / recordBytes));
  let held: Sample<Held>[] = [];
  let bytes = 0;
  let base = 0;
  for (const { path: archive, rowCount, marks } of archives) {
    const from = Math.max(0, first - base);
    const until = Math.min(rowCount, end - base);
    if (from < until) {
      const mark = Math.floor(from / markRows);
      const options = { purpose: 'all', from: marks[mark] as number, columns, signal } as const;
      let row = base + mark * markRows;
      const take = async (member: TarMember, column: string): Promise<Held> => {
        assertSize(archive, member, column, row, plan.memberBytesMax);
        // Rows before the range are passed over.
        return { member, bytes: row < base + from ? nothing : await member.bytes() };
      };
      for await (const sample of samplesOf(archive, options, take)) {
        assertAlike(archive, sample, expected, row);
        row += 1;
        if (row <= base + from) continue;
        held.push(sample);
        for (const each of sample.members.values()) bytes += each.bytes.byteLength;
        if (held.length >= rowsMax || held.length >= batchRows || bytes >= batchBytes) {
          yield await batchOf(held, columns, plan, row - held.length, signal);
          held = [];
          bytes = 0;
        }
        if (row === base + until) break;
      }
      if (row !== base + until) {
        throw new LoaderxError('MALFORMED', `${archive}: it changed while it was read`, {
          path: archive,
        });
      }
    }
    base += rowCount;
  }
  if (held.length > 0) yield await batchOf(held, columns, plan, end - held.length, signal);
}

const nothing = new Uint8Array(0);

async function batchOf(
  samples: readonly Sample<Held>[],
  columns: readonly string[],
  plan: Plan,
  firstRow: number,
  signal: AbortSignal | undefined,
): Promise<RowBatch> {
  const made = new Map<string, ColumnValues>();
  for (const column of columns) {
    const members = samples.map((sample) => sample.members.get(column) as Held);
    made.set(column, await valuesOf(members, column, plan, firstRow, signal));
  }
  return { rowCount: samples.length, columns: made };
}

async function valuesOf(
  held: readonly Held[],
  column: string,
  { rule: { sized }, seen }: Plan,
  firstRow: number,
  signal: AbortSignal | undefined,
): Promise<ColumnValues> {
  const each = async <T>(work: (held: Held) => Promise<T>): Promise<T[]> =>
    severalAtOnce(held, signal, async (one, index) => {
      try {
        return await work(one);
      } catch (error) {
        const { archive, shown } = one.member;
        const isNamed = error instanceof LoaderxError && error.message.startsWith(shown);
        throw isNamed
          ? inSample(error, archive, column, firstRow + index)
          : placed(error, shown, column, firstRow + index);
      }
    });
  const { kind } = seen.get(column) as Seen;
  switch (kind) {
    case 'array':
      return { arrays: await each(({ bytes, member }) => npyArray(member.shown, bytes)) };
    case 'number': {
      const numbers = await each(async ({ bytes, member }) => numberIn(bytes, member));
      return { values: BigInt64Array.from(numbers) };
    }
    case 'picture': {
      if (sized !== undefined) {
        const arrays: NdArray[] = await each(({ bytes }) => sized(bytes));
        return { arrays };
      }
      const names = held.map(({ member }) => member.shown);
      return { bytes: held.map(({ bytes }) => bytes), names };
    }
    case 'text':
      return { bytes: held.map(({ bytes }) => bytes) };
  }
}
