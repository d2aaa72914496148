/**
 * Containers of pictures as folders of PNG files, one for each record: `000017.png`. With labels they lie in
 * folders of classes, which `importFiles` takes back.
 */
import fs from 'node:fs/promises';
import path from 'node:path';
import { LoaderxError } from '../errors.js';
import { channelAt, type Picture, pictureOf } from '../inspect/picture.js';
import { encodePng } from '../inspect/png.js';
import type { LongOptions } from '../inspect/progress.js';
import { longFields, longWorkOf } from '../inspect/settings.js';
import type { NdArray } from '../ndarray.js';
import { givenUp } from '../signal.js';
import type { DenseReader, RaggedReader } from '../store/capability.js';
import { knownFields } from '../store/fields.js';
import { takenError } from '../store/folder.js';
import { open } from '../store/open.js';
import { walk } from '../store/walk.js';
import { classNames } from './classes.js';
import { type ExportResult, Meter, written } from './npy.js';
import { assertOutside, hiddenBeside, isThere, writingFailed } from './target.js';

export interface ExportPicturesOptions extends LongOptions {
  /**
   * A dense container of whole numbers, one for each picture: the classes. Their names are those of the
   * `classes.json` beside it that an import has written; the numbers, where there is none.
   */
  readonly labels?: string | undefined;
}

/**
 * Writes each record as a PNG file.
 *
 * @param source a container of uint8 pictures: `[H, W]`, `[H, W, C]` or `[C, H, W]`, C being 1, 3 or 4
 * @param folder made by this call; complete, or not there
 * @throws LoaderxError as `open` and `gather`; UNSUPPORTED for records that are no pictures, SOURCE for labels
 *   that do not go with them, EXISTS, IO, ABORTED
 */
export async function exportPictures(
  source: string,
  folder: string,
  options: ExportPicturesOptions = {},
): Promise<ExportResult> {
  const fields = knownFields(options, [...longFields, 'labels']);
  const work = longWorkOf(fields);
  await using reader = open(source);
  const classes = await classesOf(reader, options.labels);
  assertOutside(folder);
  if (await isThere(folder)) throw takenError(folder, 'name another folder');
  const part = hiddenBeside(folder);
  const digits = Math.max(6, String(reader.length - 1).length);
  const meter = new Meter(work, reader.length);
  try {
    await fs.mkdir(part);
    for (const name of new Set(classes)) await fs.mkdir(path.join(part, name));
    let id = 0;
    for await (const { count, batch } of walk(reader, work.signal)) {
      let bytes = 0;
      for (const array of arraysOf(batch)) {
        const name = `${String(id).padStart(digits, '0')}.png`;
        const file = encodedPicture(source, array, id);
        await fs.writeFile(path.join(part, classes?.[id] ?? '.', name), file);
        bytes += array.data.byteLength;
        id += 1;
      }
      batch[Symbol.dispose]();
      meter.add(count, bytes);
    }
    if (await isThere(folder)) throw takenError(folder, 'name another folder');
    await fs.rename(part, folder);
  } catch (error) {
    await fs.rm(part, { recursive: true, force: true });
    if (work.signal?.aborted === true) throw givenUp(source, work.signal);
    throw writingFailed(folder, error);
  }
  return { path: folder, ...(await written([source])) };
}

type Batch = Awaited<ReturnType<(DenseReader | RaggedReader)['gather']>>;

function* arraysOf(batch: Batch): Generator<NdArray, void, undefined> {
  if ('offsets' in batch) {
    yield* batch;
    return;
  }
  const { dtype, shape, data } = batch;
  const [count = 0, ...own] = shape;
  const perRecord = data.length / count;
  for (let index = 0; index < count; index += 1) {
    const items = data.subarray(index * perRecord, (index + 1) * perRecord);
    yield { dtype, shape: own, data: items as Uint8Array };
  }
}

function encodedPicture(source: string, array: NdArray, id: number): Uint8Array {
  const picture = pictureOf(array, true);
  if (picture === undefined) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `${source}: record ${id} is no picture: ${array.dtype} of shape [${array.shape.join(', ')}], and uint8 of [H, W], [H, W, C] or [C, H, W] with 1, 3 or 4 channels is one`,
      { path: source, record: id },
    );
  }
  return encodePng(picture.width, picture.height, picture.channels, pixelsOf(picture));
}

/** Channels side by side, as files have them. */
function pixelsOf(picture: Picture): Uint8Array {
  const { width, height, channels, data, channelStep } = picture;
  if (channels === 1 || channelStep === 1) return data;
  const pixels = new Uint8Array(width * height * channels);
  let at = 0;
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      for (let channel = 0; channel < channels; channel += 1) {
        pixels[at] = channelAt(picture, x, y, channel);
        at += 1;
      }
    }
  }
  return pixels;
}

/** The folder of each record; undefined without labels. */
async function classesOf(
  pictures: DenseReader | RaggedReader,
  labels: string | undefined,
): Promise<readonly string[] | undefined> {
  if (labels === undefined) return undefined;
  await using reader = open(labels);
  const isNumbers = /^u?int(8|16|32|64)$/.test(reader.dtype);
  if (reader.kind !== 'dense' || reader.itemShape.length > 0 || !isNumbers) {
    throw new LoaderxError('SOURCE', `${labels}: one whole number for each record is wanted`, {
      path: labels,
    });
  }
  if (reader.length !== pictures.length) {
    throw new LoaderxError(
      'SOURCE',
      `${labels} has ${reader.length} records, and ${pictures.path} has ${pictures.length}`,
      { path: labels },
    );
  }
  const names = (await classNames(labels)) ?? [];
  const found: string[] = [];
  for await (const { batch } of walk(reader)) {
    if ('offsets' in batch) break;
    for (const label of batch.data) found.push(nameOf(names, label));
    batch[Symbol.dispose]();
  }
  return found;
}

function nameOf(names: readonly string[], label: number | bigint): string {
  return names[Number(label)] ?? String(label);
}
