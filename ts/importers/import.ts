/**
 * From files to containers: each kind of file becomes a dataset, and datasets go the way of every conversion.
 *
 * ```text
 * file ── its importer ──▶ Dataset ── converter/convert.ts ──▶ hidden sibling ── one rename ──▶ target
 * ```
 *
 * So names, bounds of memory, dictionaries, progress, publishing and errors are the converter's.
 */
import fs from 'node:fs';
import path from 'node:path';
import { type ConvertOptions, conversionOfAll, type Manner, survey } from '../converter/convert.js';
import type { Dataset, Feature } from '../converter/dataset.js';
import type { StringRule } from '../converter/layout.js';
import type { NameRule } from '../converter/names.js';
import { parquetSplits } from '../converter/parquet.js';
import type { SurveyedColumn } from '../converter/survey.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { info } from '../inspect/info.js';
import { type Part, partName, partShown } from '../parts.js';
import { signalOf, unlessGivenUp } from '../signal.js';
import type { Codec, CodecOptions } from '../store/capability.js';
import { knownFields } from '../store/fields.js';
import { locateUtf8 } from '../store/path.js';
import { fileSource, readingFailed } from './bytes.js';
import { csvFile } from './csv.js';
import { jsonLinesFile } from './jsonl.js';
import { npyDataset } from './npy.js';
import { raggedNpyDataset } from './npy-ragged.js';
import { isPictureName, type PictureOptions, pictureDataset } from './pictures.js';
import { type TableDTypes, type TableFile, tableDataset } from './table.js';
import { hasText, textDataset, textRows, tokenized } from './text.js';
import { loadTokenizer, type Tokenizer } from './tokenizer.js';
import { archivesIn, type MemberLimits, webDataset } from './webdataset.js';
import { zipMembers } from './zip.js';

/** What kind of file a source is. */
export type ImportFormat =
  | 'npy'
  | 'npz'
  | 'csv'
  | 'tsv'
  | 'jsonl'
  | 'parquet'
  | 'images'
  | 'text'
  | 'webdataset';

/** How far an import has come. */
export interface ImportProgress {
  /** Records that are written. */
  readonly recordsDone: number;
  /** As far as it is known; never less than `recordsDone`. */
  readonly recordsTotal: number;
  /** Bytes that are read. */
  readonly bytesDone: number;
}

/** How files are read, whatever becomes of them. */
export interface ReadOptions extends PictureOptions {
  /** What kind of file the sources are; by the ends of their names, unless given. */
  readonly format?: ImportFormat | undefined;
  /** The columns that are wanted, in this order; all, unless given. */
  readonly columns?: readonly string[] | undefined;
  /** Dtypes of columns of CSV, TSV and JSON lines; `*` is for all others. Each must keep every value. */
  readonly dtypes?: TableDTypes | undefined;
  /**
   * `'utf8'`: text becomes ragged records of uint8, its bytes. It is refused unless given. Not together with
   * `tokenizer`.
   */
  readonly strings?: StringRule | undefined;
  /**
   * What makes tokens of text, in all columns that have any: ragged records of int32. `PACKAGE`, or
   * `PACKAGE:EXPORT`, of the user's own, found from the working folder; or an object with `encode`.
   */
  readonly tokenizer?: string | Tokenizer | undefined;
  /** `'any'`: names of columns that only this system may take, such as `con`, or two that differ by case. */
  readonly names?: NameRule | undefined;
  /** What a member of a tar archive may be at most. */
  readonly limits?: MemberLimits | undefined;
  /**
   * Only these records, as `partRange` has them: the target is `target/part-00003-of-00064` then. What is
   * there already is taken for done, and not looked at but for its columns.
   */
  readonly part?: Part | undefined;
  /**
   * `'ragged'`: pictures become ragged even if all are of one size, as those of one part may be. Not together
   * with `size`.
   */
  readonly pictures?: 'ragged' | undefined;
  /** Told now and then. */
  readonly onProgress?: ((progress: ImportProgress) => void) | undefined;
  /** Ends the work: it rejects with ABORTED, and nothing stays behind. */
  readonly signal?: AbortSignal | undefined;
}

/** How files become containers. */
export interface ImportOptions extends ReadOptions {
  /** How records are stored. */
  readonly codec: Codec;
  /** For `codec: 'zstd_dict'`; for each column one is trained on its first records, unless given. */
  readonly dictBytes?: Uint8Array | undefined;
  /** Data files of each container, 1 .. 255; 4 unless given. */
  readonly dataShards?: number | undefined;
  /** Also give each container an integrity file. */
  readonly integrity?: boolean | undefined;
}

/** Files by the names of their columns; or paths, each of which names its own. */
export type ImportSources = string | readonly string[] | Readonly<Record<string, string>>;

/** What an import made, or would make. */
export interface ImportResult {
  /** Where the containers are, or would be. */
  readonly path: string;
  /** One for each column. */
  readonly containers: readonly ImportedContainer[];
  /** Whether the only container is at `path` itself, and not below it. */
  readonly isSingle: boolean;
  /** Whether the part was there already, and nothing was done. */
  readonly wasThere?: boolean;
}

/** One container of an import. */
export interface ImportedContainer extends SurveyedColumn {
  /** Bytes of all its files, where it is made. */
  readonly diskBytes?: number;
}

const readFields = [
  ...['format', 'columns', 'dtypes', 'strings', 'names', 'onProgress', 'signal'],
  ...['size', 'layout', 'mode', 'tokenizer', 'limits', 'part', 'pictures'],
];
const importFields = [...readFields, 'codec', 'dictBytes', 'dataShards', 'integrity'];

/** One source, opened. */
interface Opened {
  readonly datasets: readonly Dataset[];
  /** Whether it has one column by its nature: without a name, it becomes the target itself. */
  readonly isOne: boolean;
  /** All columns it has, where its datasets have only those that are wanted. */
  readonly names?: readonly string[];
  /** Of columns that are text, why, where that is not plain. */
  readonly reasons?: ReadonlyMap<string, string>;
  /** Whether any column is pictures; of others, features say it. */
  readonly hasPictures?: boolean;
}

interface Format {
  /** Ends of names, in lower case. */
  readonly ends: readonly string[];
  /** @param files one; all of that kind, where together they are one source */
  readonly open: (
    file: string,
    column: string,
    options: ReadOptions,
    files: readonly string[],
  ) => Promise<Opened>;
}

const formats: Readonly<Record<ImportFormat, Format>> = {
  npy: {
    ends: ['.npy'],
    open: async (file, column) => ({
      datasets: [await npyDataset(await fileSource(file), column)],
      isOne: true,
    }),
  },
  npz: {
    ends: ['.npz'],
    open: async (file) => {
      const members = await zipMembers(file);
      const datasets: Dataset[] = [];
      for (const [name, source] of members) {
        const column = name.replace(/\.npy$/, '');
        const dims = members.get(`${column}.dims.npy`);
        if (dims !== undefined) datasets.push(await raggedNpyDataset(source, dims, column));
        else if (!isDims(name, members)) datasets.push(await npyDataset(source, column));
      }
      if (datasets.length === 0) {
        throw new LoaderxError('SOURCE', `${file}: there is no array in it`, { path: file });
      }
      return { datasets, isOne: false };
    },
  },
  csv: { ends: ['.csv'], open: (file, _, options) => table(csvFile(file, ','), options) },
  tsv: { ends: ['.tsv', '.tab'], open: (file, _, options) => table(csvFile(file, '\t'), options) },
  jsonl: {
    ends: ['.jsonl', '.ndjson'],
    open: (file, _, options) => table(jsonLinesFile(file), options),
  },
  parquet: {
    ends: ['.parquet'],
    open: async (file, _, { signal }) => {
      await fileSource(file);
      const files = new Map([['all', [{ path: path.resolve(file), name: file }]]]);
      const { splits } = await parquetSplits(files, { signal });
      return { datasets: [...splits.values()], isOne: false };
    },
  },
  text: {
    ends: ['.txt'],
    open: async (file, column, { part, signal }) => {
      await fileSource(file);
      const dataset = textDataset(file, column);
      if (part === undefined) return { datasets: [dataset], isOne: true };
      const rowCount = await textRows(file, signal);
      return { datasets: [{ ...dataset, rowCount }], isOne: true };
    },
  },
  images: {
    ends: [],
    open: async (file, _, options) => ({
      datasets: [await pictureDataset(file, options)],
      isOne: false,
      hasPictures: true,
    }),
  },
  webdataset: {
    ends: ['.tar', '.tar.gz', '.tgz'],
    open: async (_file, _, options, files) => {
      const archives: string[] = [];
      for (const each of files) {
        const own = isFolder(each) ? ((await archivesIn(each)) ?? noArchives(each)) : [each];
        // A pipe of such a name would be waited for without end.
        for (const archive of own) archives.push((await fileSource(archive)).name);
      }
      const { dataset, names, hasPictures } = await webDataset(archives, options);
      return { datasets: [dataset], isOne: false, names, hasPictures };
    },
  },
};

function isFolder(file: string): boolean {
  return fs.statSync(file, { throwIfNoEntry: false })?.isDirectory() === true;
}

function noArchives(folder: string): never {
  throw new LoaderxError('SOURCE', `${folder}: there is no tar archive in it`, { path: folder });
}

/** A folder has archives or pictures. */
async function folderFormat(folder: string): Promise<ImportFormat> {
  if ((await archivesIn(folder)) === undefined) return 'images';
  const names = await fs.promises.readdir(folder);
  const picture = names.find((name) => isPictureName(name));
  if (picture === undefined) return 'webdataset';
  throw new ArgumentTypeError(
    'sources',
    `${folder} has tar archives and pictures, such as ${picture}: format says which are meant, webdataset or images`,
  );
}

async function table(file: TableFile, options: ReadOptions): Promise<Opened> {
  await fileSource(file.name);
  const { dataset, names, reasons } = await tableDataset(file, options);
  return { datasets: [dataset], isOne: false, names, reasons };
}

/** Whether an array says the sizes of another one's records. */
function isDims(name: string, members: ReadonlyMap<string, unknown>): boolean {
  return name.endsWith('.dims.npy') && members.has(name.replace(/\.dims\.npy$/, '.npy'));
}

/** All kinds of files, for help and messages. */
export const importFormats = Object.keys(formats) as readonly ImportFormat[];

/**
 * Makes containers of files. One file that is one array becomes the container `target`; all else containers
 * below it, one for each column, all with as many records. They appear together when all are complete, or not
 * at all. Values are as they were, in this machine's byte order and in C order, or an error says which file,
 * column and row cannot be kept.
 *
 * @param sources paths, or paths by name: `{ image: 'a.npy', label: 'b.npy' }` makes `target/image` and
 *   `target/label`
 * @param target a path, or a `file:` URL
 * @throws TypeError, RangeError (INVALID_ARGUMENT) for arguments that cannot be, and for options that none of the
 *   sources has a use for;
 *   LoaderxError MALFORMED for damaged files, UNSUPPORTED for kinds and dtypes that are not read, SOURCE for values
 *   that no record can be, for counts that differ, for fewer records than parts and for samples of an archive that have not the same members,
 *   EXISTS where anything is at the target (a part that is there is done, if it has the same columns), LOCKED while another process
 *   builds it, DICTIONARY where none can be trained, NOT_FOUND, IO, TOO_LARGE, ABORTED; nothing stays behind
 */
export async function importFiles(
  sources: ImportSources,
  target: string | URL,
  options: ImportOptions,
): Promise<ImportResult> {
  const fields = knownFields(options, importFields);
  if (fields.codec === undefined) {
    throw new ArgumentTypeError('codec', "codec must be 'raw', 'zstd' or 'zstd_dict': none came");
  }
  const signal = signalOf(options.signal);
  const { shown, native } = locateUtf8(target);
  const { datasets, isSingle } = await unlessGivenUp(shown, signal, () =>
    openAll(sources, options, signal),
  );
  const manner: Manner = {
    isSingle,
    trainsDict: true,
    flushBytes,
    classesFile: 'classes.json',
  };
  const made = await conversionOfAll(datasets, target, convertOptions(options), manner);
  const at = options.part === undefined ? native : path.join(native, partName(options.part));
  if (made.wasThere === true) {
    const wanted = isSingle ? [] : made.columns.map(({ column }) => column);
    assertSameColumns(at, made.path, wanted);
  }
  const containers: ImportedContainer[] = [];
  for (const { column } of made.columns) {
    containers.push(await factsOf(isSingle ? at : path.join(at, column), column));
  }
  const { wasThere } = made;
  return { path: made.path, containers, isSingle, ...(wasThere === undefined ? {} : { wasThere }) };
}

/**
 * A part that was there has the columns that are wanted, or it is not what would have been made.
 *
 * @param wanted none: the part is a container itself
 */
function assertSameColumns(folder: string, shown: string, wanted: readonly string[]): void {
  const entries = fs.readdirSync(folder, { withFileTypes: true });
  const there = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  if (there.length === wanted.length && wanted.every((name) => there.includes(name))) return;
  const text = (names: readonly string[]): string =>
    names.length === 0 ? 'one, without a name' : names.map(show).join(', ');
  throw new LoaderxError(
    'EXISTS',
    `${shown}: it is there already, made with other columns (${text(there)}), and ${text(wanted)} are wanted: remove it, or choose another target`,
    { path: shown },
  );
}

/**
 * What {@link importFiles} would make, without writing anything. Of arrays only headers are read; of files that
 * do not declare their sizes, everything.
 *
 * @throws as {@link importFiles}, but for what concerns the target
 */
export async function surveyFiles(
  sources: ImportSources,
  target: string | URL,
  options: ReadOptions = {},
): Promise<ImportResult> {
  knownFields(options, readFields);
  const signal = signalOf(options.signal);
  const { shown } = locateUtf8(target);
  return unlessGivenUp(shown, signal, async () => {
    const { datasets, isSingle } = await openAll(sources, options, signal);
    const containers = await survey(datasets, convertOptions({ ...options, codec: 'raw' }));
    const { part } = options;
    const own = part === undefined ? shown : partShown(shown, part);
    return { path: own, containers, isSingle };
  });
}

/** Rows wait in memory until they have so many bytes, while as many are written. */
const flushBytes = 8 * 2 ** 20;

function convertOptions(options: ImportOptions): ConvertOptions {
  const { codec, dictBytes, dataShards, integrity, columns, strings, names } = options;
  const { onProgress, part, pictures, signal } = options;
  // `create` judges these.
  const form = { codec, ...(dictBytes === undefined ? {} : { dictBytes }) } as CodecOptions;
  const rules = { columns, strings, names, part, pictures };
  return { ...form, dataShards, integrity, ...rules, onProgress, signal };
}

interface AllOpened {
  readonly datasets: readonly Dataset[];
  readonly isSingle: boolean;
}

async function openAll(
  sources: ImportSources,
  options: ReadOptions,
  signal: AbortSignal | undefined,
): Promise<AllOpened> {
  const named = namedSources(sources);
  const { columns } = options;
  if (columns !== undefined && !Array.isArray(columns)) {
    throw new ArgumentTypeError('columns', `columns must be a list of names, got ${show(columns)}`);
  }
  const datasets: Dataset[] = [];
  /** Of all columns, whether they are wanted or not. */
  const names: string[] = [];
  /** The files that they are of. */
  const files = new Map<string, string>();
  const reasons = new Map<string, string>();
  /** Of those, the ones that dtypes can be for. */
  const typedNames: string[] = [];
  let isSingle = false;
  let hasPictures = false;
  const kinds: ImportFormat[] = [];
  for (const [, file] of named) {
    await assertExists(file);
    kinds.push(await formatOf(file, options.format));
  }
  const shownKinds = named.slice(0, 3).map(([, file], at) => `${file} is ${kinds[at]}`);
  const sourcesShown = `${shownKinds.join(', ')}${named.length > 3 ? ', …' : ''}`;
  assertApplies(options, kinds, sourcesShown);
  // Archives are shards of one data set, not columns side by side.
  const archives = named.flatMap(([, file], at) => (kinds[at] === 'webdataset' ? [file] : []));
  for (const [at, [name, file]] of named.entries()) {
    signal?.throwIfAborted();
    const kind = kinds[at] as ImportFormat;
    const isShard = kind === 'webdataset' && name === undefined;
    if (isShard && file !== archives[0]) continue;
    const stem = path.basename(file).replace(/\.[^.]*$/, '');
    const together = isShard ? archives : [file];
    const opened = await formats[kind].open(file, name ?? stem, options, together);
    if (name !== undefined && !opened.isOne) {
      const columns = opened.datasets.flatMap(({ features }) => [...features.keys()]);
      throw new ArgumentTypeError(
        'sources',
        `${file} has columns of its own (${columns.slice(0, 5).join(', ')}): give it without the name ${name}`,
      );
    }
    isSingle = opened.isOne && name === undefined && named.length === 1;
    datasets.push(...opened.datasets);
    const own = opened.names ?? opened.datasets.flatMap(({ features }) => [...features.keys()]);
    names.push(...own);
    for (const column of own) files.set(column, file);
    for (const [column, reason] of opened.reasons ?? []) reasons.set(column, reason);
    if (isTable(kind)) typedNames.push(...own);
    const features = opened.datasets.flatMap((each) => [...each.features.values()]);
    if (opened.hasPictures ?? features.some(isPicture)) hasPictures = true;
  }
  if (!hasPictures) refusePictureOptions(options, `${sourcesShown} without a picture`);
  const shownFiles = named.slice(0, 3).map(([, file]) => file);
  if (named.length > 3) shownFiles.push('…');
  assertThere(names, typedNames, shownFiles.join(', '), options);
  if (options.tokenizer === undefined) {
    if ((options.strings ?? 'refuse') === 'refuse') assertNoText(datasets, files, reasons, columns);
    return { datasets, isSingle };
  }
  const { tokenizer } = options;
  if (!datasets.some(hasText)) {
    throw new ArgumentTypeError('tokenizer', 'a tokenizer is for text, and no column is text');
  }
  const own = typeof tokenizer === 'string' ? await loadTokenizer(tokenizer) : tokenizer;
  if (typeof own?.encode !== 'function') {
    throw new ArgumentTypeError('tokenizer', `tokenizer must have encode, got ${show(own)}`);
  }
  return { datasets: datasets.map((each) => tokenized(each, own)), isSingle };
}

/** Said here and not by the converter, which has no tokenizers. */
function assertNoText(
  datasets: readonly Dataset[],
  files: ReadonlyMap<string, string>,
  reasons: ReadonlyMap<string, string>,
  wanted: readonly string[] | undefined,
): void {
  const all = datasets.flatMap(({ features }) => [...features]);
  const columns = wanted === undefined ? all : all.filter(([name]) => wanted.includes(name));
  const isText = ([, feature]: (typeof all)[number]): boolean =>
    feature.kind === 'value' && feature.dtype === 'string';
  const text = columns.find(isText);
  if (text === undefined) return;
  const others = columns.every(isText)
    ? ''
    : '; or leave it out by naming the columns that are wanted';
  const file = files.get(text[0]) ?? '';
  const reason = reasons.get(text[0]);
  const why = reason === undefined ? '' : ` (${reason})`;
  throw new LoaderxError(
    'UNSUPPORTED',
    `${file}: column ${show(text[0])} is string${why}, which no container holds; strings: 'utf8' stores its bytes, ragged, and a tokenizer makes tokens of it${others}`,
    { path: file, field: text[0] },
  );
}

function isTable(kind: ImportFormat): boolean {
  return kind === 'csv' || kind === 'tsv' || kind === 'jsonl';
}

function isPicture(feature: Feature): boolean {
  return feature.kind === 'list' ? isPicture(feature.item) : feature.kind === 'image';
}

/** Throws for options that would be passed over, before a file is read. */
function assertApplies(
  options: ReadOptions,
  kinds: readonly ImportFormat[],
  sourcesShown: string,
): void {
  const { dtypes, pictures, size, strings, tokenizer } = options;
  if (dtypes !== undefined && !kinds.some(isTable)) {
    throw new ArgumentTypeError(
      'dtypes',
      `dtypes is for CSV, TSV and JSON lines, and ${sourcesShown}`,
    );
  }
  if (tokenizer !== undefined && (strings ?? 'refuse') !== 'refuse') {
    throw new ArgumentTypeError(
      'strings',
      'strings keeps the bytes of text, and a tokenizer makes tokens of it: give one of them',
    );
  }
  if (pictures !== undefined && size !== undefined) {
    throw new ArgumentTypeError(
      'pictures',
      "pictures: 'ragged' is for pictures of their own sizes, and size gives all of them one",
    );
  }
  if (!kinds.some((kind) => kind === 'images' || kind === 'webdataset')) {
    // Those of Parquet are not resized, but they may be ragged.
    const { pictures: _, ...others } = options;
    refusePictureOptions(kinds.includes('parquet') ? others : options, sourcesShown);
  }
}

/** Throws for the first option that is about pictures. */
function refusePictureOptions(
  { size, layout, mode, pictures }: ReadOptions,
  sourcesShown: string,
): void {
  for (const [field, value] of Object.entries({ size, layout, mode })) {
    if (value === undefined) continue;
    throw new ArgumentTypeError(
      field,
      `${field} is for folders of pictures and tar archives with some, and ${sourcesShown}`,
    );
  }
  if (pictures !== undefined) {
    throw new ArgumentTypeError('pictures', `pictures is for pictures, and ${sourcesShown}`);
  }
}

/** What is wanted, and of what a dtype is named, is there. */
function assertThere(
  names: readonly string[],
  typedNames: readonly string[],
  files: string,
  { columns, dtypes }: ReadOptions,
): void {
  const all = names.slice(0, 100).map(show).join(', ');
  const column = columns?.find((name) => !names.includes(name));
  if (column !== undefined) {
    throw new LoaderxError(
      'SOURCE',
      `${files}: there is no column ${show(column)}; there are ${all}`,
      { field: column },
    );
  }
  const typed = Object.keys(dtypes ?? {}).find((name) => name !== '*' && !names.includes(name));
  if (typed !== undefined) {
    throw new ArgumentTypeError(
      'dtypes',
      `dtypes has ${show(typed)}, and there is no such column in ${files}; there are ${all}`,
    );
  }
  const other = Object.keys(dtypes ?? {}).find(
    (name) => name !== '*' && !typedNames.includes(name),
  );
  if (other !== undefined) {
    throw new ArgumentTypeError(
      'dtypes',
      `dtypes is for CSV, TSV and JSON lines, and column ${show(other)} is of another file`,
    );
  }
}

function namedSources(sources: ImportSources): (readonly [string | undefined, string])[] {
  const list: (readonly [string | undefined, unknown])[] =
    typeof sources === 'string'
      ? [[undefined, sources]]
      : Array.isArray(sources)
        ? sources.map((file: unknown) => [undefined, file] as const)
        : typeof sources === 'object' && sources !== null
          ? Object.entries(sources)
          : [];
  if (list.length === 0 || !list.every(([, file]) => typeof file === 'string' && file !== '')) {
    throw new ArgumentTypeError(
      'sources',
      `sources must be a path, a list of paths, or paths by name, got ${show(sources)}`,
    );
  }
  return list as (readonly [string | undefined, string])[];
}

/** Before anything is said of its kind. */
async function assertExists(file: string): Promise<void> {
  try {
    await fs.promises.stat(file);
  } catch (cause) {
    throw readingFailed(file, cause);
  }
}

async function formatOf(file: string, wanted: ImportFormat | undefined): Promise<ImportFormat> {
  const name: unknown = wanted;
  if (name !== undefined) {
    if (typeof name === 'string' && Object.hasOwn(formats, name)) return name as ImportFormat;
    throw new ArgumentTypeError(
      'format',
      `format must be one of ${importFormats.join(', ')}, got ${show(name)}`,
    );
  }
  if (isFolder(file)) return folderFormat(file);
  const lower = file.toLowerCase();
  for (const format of importFormats) {
    if (formats[format].ends.some((end) => lower.endsWith(end))) return format;
  }
  throw new ArgumentTypeError(
    'sources',
    `${file}: its name does not tell what kind of file it is; format says it: ${importFormats.join(', ')}`,
  );
}

async function factsOf(container: string, column: string): Promise<ImportedContainer> {
  const facts = await info(container);
  const { kind, dtype, records, logicalBytes: itemBytes, diskBytes } = facts;
  const shape = facts.itemShape ?? facts.ndim ?? [];
  return { column, kind, dtype, shape, records, itemBytes, diskBytes };
}
