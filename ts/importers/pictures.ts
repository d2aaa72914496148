/**
 * A folder of pictures: `image`, and `label` where they lie in folders of classes.
 *
 * ```text
 * folder/cat/1.png  folder/dog/2.jpg     image, and label 0 (cat) and 1 (dog); classes.json has the names
 * folder/1.png      folder/2.jpg         image alone
 * ```
 *
 * Classes are folders right below, in plain order of their names, and so are the pictures of each. A picture is
 * decoded as the converter does it; with a size it is cut to that shape in its middle and resized by sharp.
 */
import type { Dirent } from 'node:fs';
import fs from 'node:fs/promises';
import path from 'node:path';
import type { Dataset, Feature, RowBatch } from '../converter/dataset.js';
import { type Colours, resized } from '../converter/images/resize.js';
import { decodeImage } from '../converter/images.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import type { NdArray } from '../ndarray.js';
import { readingFailed } from './bytes.js';

export interface PictureOptions {
  /** Height and width that all get; their own unless given. */
  readonly size?: readonly [height: number, width: number] | undefined;
  /**
   * Where the channels of a picture of a size lie: behind its rows and columns, unless given. Of mode `L` records
   * are `[H, W]`, and `[1, H, W]` with `'CHW'`.
   */
  readonly layout?: 'HWC' | 'CHW' | undefined;
  /** The mode that all get: `RGB` unless given where there is a size, else their own. */
  readonly mode?: 'L' | 'RGB' | 'RGBA' | undefined;
}

const ends = /\.(png|jpe?g|webp)$/i;

/** Whether a file is taken for a picture, by its name. */
export function isPictureName(name: string): boolean {
  return !name.startsWith('.') && ends.test(name);
}

const batchRows = 256;
const batchBytes = 8 * 2 ** 20;
const colours: readonly string[] = ['L', 'RGB', 'RGBA'] satisfies readonly Colours[];
/** Pictures that are decoded at one time. */
const atOnce = 8;

interface PictureFile {
  readonly path: string;
  readonly name: string;
  readonly label: number;
}

/** What becomes of every picture. */
export interface PictureRule {
  readonly feature: Feature;
  /** Makes a record of a picture; where there is none, pictures are decoded as the converter does it. */
  readonly sized?: (bytes: Uint8Array) => Promise<NdArray>;
  /** Bytes of such a record. */
  readonly recordBytes: number;
}

/** @throws TypeError for options that cannot be */
export function pictureRule({ size, layout = 'HWC', mode }: PictureOptions): PictureRule {
  const isSize =
    size === undefined ||
    (Array.isArray(size) &&
      size.length === 2 &&
      size.every((each) => Number.isInteger(each) && each > 0));
  if (!isSize) {
    throw new ArgumentTypeError(
      'size',
      `size must be [height, width] in pixels, got ${show(size)}`,
    );
  }
  if (layout !== 'HWC' && layout !== 'CHW') {
    throw new ArgumentTypeError('layout', `layout must be 'HWC' or 'CHW', got ${show(layout)}`);
  }
  if (size === undefined && layout === 'CHW') {
    throw new ArgumentTypeError(
      'layout',
      "layout: 'CHW' is for pictures of a size, and none is given",
    );
  }
  if (mode !== undefined && !colours.includes(mode)) {
    throw new ArgumentTypeError('mode', `mode is L, RGB or RGBA, got ${show(mode)}`);
  }
  if (size === undefined) {
    return {
      feature: mode === undefined ? { kind: 'image' } : { kind: 'image', mode },
      recordBytes: 0,
    };
  }
  const own = mode ?? 'RGB';
  return {
    feature: { kind: 'array', dtype: 'uint8', shape: shapeOf(size, own, layout) },
    sized: (bytes) => sized(bytes, size, own, layout),
    recordBytes: size[0] * size[1] * own.length,
  };
}

/**
 * @throws LoaderxError SOURCE where there is no picture, or pictures lie both beside and in folders of classes;
 *   NOT_FOUND, IO; TypeError for options that cannot be
 */
export async function pictureDataset(folder: string, options: PictureOptions): Promise<Dataset> {
  const rule = pictureRule(options);
  const { files, classes } = await picturesIn(folder);
  const features = new Map<string, Feature>([['image', rule.feature]]);
  if (classes.length > 0) features.set('label', { kind: 'class-label', names: classes });
  return datasetOf(features, rule, files, 0);
}

function datasetOf(
  features: ReadonlyMap<string, Feature>,
  rule: PictureRule,
  files: readonly PictureFile[],
  firstRow: number,
): Dataset {
  const { sized, recordBytes } = rule;
  return {
    features,
    rowCount: files.length,
    range: (first, end) => datasetOf(features, rule, files.slice(first, end), firstRow + first),
    batches: (request) =>
      sized === undefined
        ? encodedBatches(files, request?.signal)
        : sizedBatches(files, firstRow, sized, recordBytes, request?.signal),
  };
}

function shapeOf(
  [height, width]: readonly [number, number],
  mode: string,
  layout: 'HWC' | 'CHW',
): readonly number[] {
  const channels = mode.length;
  if (mode === 'L' && layout === 'HWC') return [height, width];
  return layout === 'HWC' ? [height, width, channels] : [channels, height, width];
}

async function picturesIn(
  folder: string,
): Promise<{ files: readonly PictureFile[]; classes: readonly string[] }> {
  const top = await sortedNames(folder, folder);
  const own = top.filter(({ isFolder, name }) => !isFolder && ends.test(name));
  const classes: string[] = [];
  const files: PictureFile[] = [];
  for (const { name, isFolder } of top) {
    if (!isFolder) continue;
    const inside = await sortedNames(path.join(folder, name), folder);
    const pictures = inside.filter((each) => !each.isFolder && ends.test(each.name));
    if (pictures.length === 0) continue;
    for (const picture of pictures) {
      const at = path.join(folder, name, picture.name);
      files.push({ path: at, name: at, label: classes.length });
    }
    classes.push(name);
  }
  if (own.length > 0 && files.length > 0) {
    throw new LoaderxError(
      'SOURCE',
      `${folder}: ${own[0]?.name} and others lie beside folders of pictures such as ${classes[0]}, and have no class`,
      { path: folder },
    );
  }
  for (const { name } of own) {
    files.push({ path: path.join(folder, name), name: path.join(folder, name), label: 0 });
  }
  if (files.length === 0) {
    throw new LoaderxError('SOURCE', `${folder}: there is no PNG, JPEG or WebP picture in it`, {
      path: folder,
    });
  }
  return { files, classes };
}

async function sortedNames(
  folder: string,
  shown: string,
): Promise<readonly { readonly name: string; readonly isFolder: boolean }[]> {
  try {
    const entries = await fs.readdir(folder, { withFileTypes: true });
    const shownEntries = entries.filter(({ name }) => !name.startsWith('.'));
    for (const entry of shownEntries) {
      if (ends.test(entry.name)) await assertPlain(path.join(folder, entry.name), entry);
    }
    return shownEntries
      .map((entry) => ({ name: entry.name, isFolder: entry.isDirectory() }))
      .sort((one, other) => (one.name < other.name ? -1 : 1));
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === 'ENOTDIR') {
      throw new LoaderxError('SOURCE', `${folder}: it is no folder, and pictures lie in one`, {
        path: folder,
      });
    }
    throw readingFailed(shown, cause);
  }
}

/** A pipe would be waited for without end. */
async function assertPlain(at: string, entry: Dirent): Promise<void> {
  const isPlain = entry.isFile() || entry.isDirectory();
  if (isPlain || (entry.isSymbolicLink() && (await fs.stat(at)).isFile())) return;
  throw new LoaderxError('UNSUPPORTED', `${at}: it is no plain file`, { path: at });
}

function labelsOf(files: readonly PictureFile[]): BigInt64Array {
  return BigInt64Array.from(files, ({ label }) => BigInt(label));
}

async function bytesOf({ path: at, name }: PictureFile): Promise<Uint8Array> {
  try {
    return await fs.readFile(at);
  } catch (cause) {
    throw readingFailed(name, cause);
  }
}

async function* encodedBatches(
  files: readonly PictureFile[],
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  for (let first = 0; first < files.length; ) {
    const bytes: Uint8Array[] = [];
    let held = 0;
    while (first + bytes.length < files.length && bytes.length < batchRows && held < batchBytes) {
      signal?.throwIfAborted();
      const picture = await bytesOf(files[first + bytes.length] as PictureFile);
      bytes.push(picture);
      held += picture.byteLength;
    }
    const some = files.slice(first, first + bytes.length);
    first += bytes.length;
    yield {
      rowCount: some.length,
      columns: new Map([
        ['image', { bytes, names: some.map(({ name }) => name) }],
        ['label', { values: labelsOf(some) }],
      ]),
    };
  }
}

async function* sizedBatches(
  files: readonly PictureFile[],
  firstRow: number,
  made: (bytes: Uint8Array) => Promise<NdArray>,
  recordBytes: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  const rows = Math.max(1, Math.min(batchRows, Math.floor(batchBytes / recordBytes)));
  for (let first = 0; first < files.length; first += rows) {
    const some = files.slice(first, first + rows);
    const arrays = await severalAtOnce(some, signal, async (file, index) => {
      try {
        return await made(await bytesOf(file));
      } catch (error) {
        throw placed(error, file.name, 'image', firstRow + first + index);
      }
    });
    yield {
      rowCount: some.length,
      columns: new Map<string, { arrays: NdArray[] } | { values: BigInt64Array }>([
        ['image', { arrays }],
        ['label', { values: labelsOf(some) }],
      ]),
    };
  }
}

/** Some at one time, in their order. None goes on in the background when one has failed. */
export async function severalAtOnce<T, R>(
  items: readonly T[],
  signal: AbortSignal | undefined,
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  for (let at = 0; at < items.length; at += atOnce) {
    signal?.throwIfAborted();
    const group = items.slice(at, at + atOnce).map((item, index) => work(item, at + index));
    for (const result of await Promise.allSettled(group)) {
      if (result.status === 'rejected') throw result.reason;
      results.push(result.value);
    }
  }
  return results;
}

async function sized(
  bytes: Uint8Array,
  size: readonly [number, number],
  mode: Colours,
  layout: 'HWC' | 'CHW',
): Promise<NdArray> {
  const picture = await decodeImage(bytes, { mode });
  const array = await resized(picture, size, mode);
  return layout === 'HWC' ? array : channelsFirst(array);
}

function channelsFirst({ shape, data }: NdArray<'uint8'>): NdArray<'uint8'> {
  // Of grey, [H, W], there is one channel.
  const [height = 0, width = 0, channels = 1] = shape;
  const pixels = height * width;
  const planes = new Uint8Array(data.length);
  for (let channel = 0; channel < channels; channel += 1) {
    const from = channel * pixels;
    for (let pixel = 0; pixel < pixels; pixel += 1) {
      planes[from + pixel] = data[pixel * channels + channel] as number;
    }
  }
  return { dtype: 'uint8', shape: [channels, height, width], data: planes };
}

/** The same error with its file, column and row. */
export function placed(error: unknown, name: string, column: string, row: number): unknown {
  if (!(error instanceof LoaderxError)) return error;
  return new LoaderxError(
    error.code,
    `${name}: column ${show(column)}, row ${row}: ${error.message}`,
    { path: name, field: column, record: row },
    { cause: error },
  );
}
