/**
 * Columns of encoded pictures, written decoded.
 *
 * A column is dense for as long as all of its pictures have one size. At the first other size what is
 * written goes, piece by piece, into a ragged container, and the rest follows it there. So the whole column
 * settles what it becomes, and no more than some batches are in memory.
 */
import { LoaderxError } from '../errors.js';
import type { CreateOptions } from '../store/capability.js';
import type { ImageColumn } from './dataset.js';

/** What a picture may be at most. */
export interface ImageLimits {
  /**
   * Height × width of one picture, as its header says it: what has more is refused before any memory is
   * taken for it. 178,956,970 unless given, which is where Python's decoder stops too.
   */
  readonly maxPixels?: number | undefined;
}

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
  readonly limits?: ImageLimits | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** A column of pictures, or of lists of pictures. */
export interface PictureColumn extends ImageColumn {
  /**
   * Decodes and writes the next rows, on all cores, in order.
   *
   * @param images encoded pictures
   * @param firstRow the first row's number in the split
   * @param offsets for a column of lists: row i is the pictures `offsets[i]` to `offsets[i + 1]`, stacked
   *   along a new first axis; they must be alike
   * @throws LoaderxError with `field` (the column) and `record` (the row): MALFORMED for a picture that is
   *   damaged, UNSUPPORTED for a format or mode that is not read, TOO_LARGE over the limits, SCHEMA for a
   *   null, an empty list, or a picture of another rank or dtype than those before; and UNSUPPORTED where
   *   `sharp` is needed and not installed, ABORTED, and what appending to a container throws
   */
  append(
    images: readonly (Uint8Array | null)[],
    firstRow: number,
    offsets?: Uint32Array,
  ): Promise<void>;
}

/** Begins a column of pictures. Its container is created with the first batch. */
export function createImageColumn(options: ImageColumnOptions): PictureColumn {
  throw new LoaderxError('UNSUPPORTED', `${options.path}: pictures are not converted yet`);
}
