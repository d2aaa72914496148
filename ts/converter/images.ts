/**
 * Columns of encoded pictures, written decoded.
 *
 * A column is dense for as long as all of its pictures have one size. At the first other size what is
 * written goes, piece by piece, into a ragged container, and the rest follows it there. So the whole column
 * settles what it becomes, and no more than some batches are in memory.
 */
import { LoaderxError, show } from '../errors.js';
import { givenUp } from '../signal.js';
import type { CreateOptions } from '../store/capability.js';
import type { ImageColumn } from './dataset.js';
import {
  decodedBytes,
  decodePicture,
  type ImageLimits,
  maxPixelsOf,
  readPicture,
} from './images/decode.js';
import { modeOf, type Picture, pictureOf } from './images/pixels.js';
import { SettlingWriter, stacked } from './images/settling.js';
import { inOrder } from './images/threads.js';

export { type DecodeImageOptions, decodeImage, type ImageLimits } from './images/decode.js';

/** How a column of pictures is written. */
export interface ImageColumnOptions {
  /** The column's name, for errors. */
  readonly column: string;
  /** Where the container will be. Its folder may hold another, short-lived one (`.dense-…`) beside it. */
  readonly path: string;
  readonly create: CreateOptions;
  /** As for `close` of a writer. */
  readonly integrity?: boolean | undefined;
  /** The mode that the feature asks for, `Image(mode='L')`: pictures of other modes are converted. */
  readonly mode?: string | undefined;
  /** Ragged whatever sizes come; else as the pictures decide. */
  readonly ragged?: boolean | undefined;
  readonly limits?: ImageLimits | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A column of pictures, or of lists of pictures. */
export interface PictureColumn extends ImageColumn {
  /**
   * Decodes and writes the next rows, on all cores, in order. One call at a time.
   *
   * @param images encoded pictures
   * @param firstRow the first row's number in the split
   * @param offsets for a column of lists: row i is the pictures `offsets[i]` to `offsets[i + 1]`, stacked
   *   along a new first axis; they must be alike
   * @param names what messages call each picture, besides its row
   * @throws LoaderxError with `field` (the column) and `record` (the row): MALFORMED for a picture that is
   *   damaged, UNSUPPORTED for a format or mode that is not read, TOO_LARGE over the limits, SOURCE for a
   *   null, an empty list, or a picture of another rank or dtype than those before; and UNSUPPORTED where
   *   `sharp` is needed and not installed, ABORTED, and what appending to a container throws
   */
  append(
    images: readonly (Uint8Array | null)[],
    firstRow: number,
    offsets?: Uint32Array,
    names?: readonly string[],
  ): Promise<void>;
}

/**
 * Begins a column of pictures. Its container is created with the first batch.
 *
 * @throws TypeError, RangeError for limits that cannot be
 */
export function createImageColumn(options: ImageColumnOptions): PictureColumn {
  return new Column(options);
}

class Column implements PictureColumn {
  readonly #options: ImageColumnOptions;
  readonly #maxPixels: number;
  readonly #writer: SettlingWriter;

  constructor(options: ImageColumnOptions) {
    const { column, path, create, integrity = false, ragged = false, limits, signal } = options;
    this.#options = options;
    this.#maxPixels = maxPixelsOf(limits);
    this.#writer = new SettlingWriter({ column, path, create, integrity, ragged, signal });
  }

  async append(
    images: readonly (Uint8Array | null)[],
    firstRow: number,
    offsets?: Uint32Array,
    names?: readonly string[],
  ): Promise<void> {
    if (offsets === undefined) {
      let row = firstRow;
      for await (const picture of this.#decoded(images, (index) => firstRow + index, names)) {
        await this.#writer.add(picture, row, names?.[row - firstRow]);
        row += 1;
      }
      return;
    }
    // Pictures are begun ahead of those that are written, each in their order.
    const aheadOf = rowsOf(offsets);
    const rowOf = rowsOf(offsets);
    let list: Picture[] = [];
    let index = 0;
    for (let at = 0; at + 1 < offsets.length; at += 1) {
      if (offsets[at] === offsets[at + 1]) throw this.#fault(firstRow + at, 'the list is empty');
    }
    for await (const picture of this.#decoded(images, (each) => firstRow + aheadOf(each))) {
      const at = rowOf(index);
      const [first = picture] = list;
      if (picture.dtype !== first.dtype || String(picture.shape) !== String(first.shape)) {
        throw this.#fault(
          firstRow + at,
          `its pictures differ: ${first.dtype} ${show(first.shape)} and ${picture.dtype} ${show(picture.shape)}`,
        );
      }
      list.push(picture);
      index += 1;
      if (index < (offsets[at + 1] ?? 0)) continue;
      await this.#writer.add(stacked(list), firstRow + at);
      list = [];
    }
  }

  close(): Promise<void> {
    return this.#writer.close();
  }

  abort(): Promise<void> {
    return this.#writer.abort();
  }

  #decoded(
    images: readonly (Uint8Array | null)[],
    rowOf: (index: number) => number,
    names?: readonly string[],
  ): AsyncGenerator<Picture, void, undefined> {
    const { mode, path, signal } = this.#options;
    return inOrder(images, (bytes, index) => {
      const row = rowOf(index);
      if (signal?.aborted === true) {
        throw givenUp(path, signal);
      }
      if (bytes === null)
        throw this.#fault(row, 'there is no picture (null): fill or drop the row');
      try {
        const file = readPicture(bytes, this.#maxPixels);
        const run = (): Promise<Picture> =>
          decodePicture(file, mode).catch((error: unknown) => {
            throw this.#placed(row, error, names?.[index]);
          });
        return { bytes: decodedBytes(file), run };
      } catch (error) {
        throw this.#placed(row, error, names?.[index]);
      }
    });
  }

  #placed(row: number, error: unknown, name: string | undefined): unknown {
    if (!(error instanceof LoaderxError)) return error;
    return placedError(error, this.#options.column, row, name);
  }

  #fault(row: number, what: string): LoaderxError {
    const { column } = this.#options;
    return new LoaderxError('SOURCE', `column ${show(column)}, row ${row}: ${what}`, {
      field: column,
      record: row,
    });
  }
}

/** The list that a picture is of. To be asked for pictures in their order. */
function rowsOf(offsets: Uint32Array): (picture: number) => number {
  let row = 0;
  return (picture) => {
    while (picture >= (offsets[row + 1] ?? Number.POSITIVE_INFINITY)) row += 1;
    return row;
  };
}

/**
 * What a picture becomes, by its headers alone.
 *
 * @throws LoaderxError as decoding does, of what headers tell; with `field` and `record`
 */
export function pictureForm(
  bytes: Uint8Array,
  mode: string | undefined,
  limits: ImageLimits | undefined,
  {
    column,
    row,
    name,
  }: { readonly column: string; readonly row: number; readonly name: string | undefined },
): { readonly dtype: string; readonly shape: readonly number[]; readonly byteLength: number } {
  try {
    const file = readPicture(bytes, maxPixelsOf(limits));
    const isTurned = file.orientation >= 5;
    const [width, height] = isTurned ? [file.height, file.width] : [file.width, file.height];
    const own = modeOf(mode) ?? file.mode;
    const { dtype, shape, data } = pictureOf({ mode: own, width, height, data: noSamples });
    const pixels = shape.reduce((product, size) => product * size, 1);
    return { dtype, shape, byteLength: pixels * (dtype === 'uint16' ? 2 : 1) + data.length };
  } catch (error) {
    if (!(error instanceof LoaderxError)) throw error;
    throw placedError(error, column, row, name);
  }
}

/** The same error with its column and row, and the picture's name where it has one. */
function placedError(
  error: LoaderxError,
  column: string,
  row: number,
  name: string | undefined,
): LoaderxError {
  const file = name === undefined ? '' : `${name}: `;
  return new LoaderxError(
    error.code,
    `${file}column ${show(column)}, row ${row}: ${error.message}`,
    { ...(name === undefined ? {} : { path: name }), field: column, record: row },
    { cause: error.cause ?? error },
  );
}

const noSamples = new Uint8Array(0);
