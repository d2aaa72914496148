/**
 * Several containers as one reader with one id space: the records of the first, then those of the second, …
 *
 * It is a reader as any other: one native plan looks up each id's container and gathers all records of a
 * batch together, so a batch that comes from many of them costs what it would from one.
 */
import type { DType } from '../dtype.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import type { DenseReader, OpenOptions, RaggedReader } from './capability.js';
import {
  assertAlike,
  type JoinedPart,
  joined,
  nameOf,
  type OpenedReader,
  type OpenedStore,
  openedOf,
  openSetStore,
} from './container.js';
import { denseReader } from './dense.js';
import { knownFields } from './fields.js';
import { batchBytesMaxOf, verifyingOf } from './options.js';
import type { ContainerPath } from './path.js';
import { raggedReader } from './ragged.js';
import { partsMax } from './set-file.js';

/**
 * What a reader of several containers knows of them. Its `codec`, `dataShards` and `dialect` are those of the
 * first; `hasDict` says whether any has one. Errors that are about one container have its `path`, and their
 * `record` is an id in it.
 */
export interface Concatenated {
  /** In the order of their records. */
  readonly parts: readonly JoinedPart[];
}

/** How readers are put together. */
export interface ConcatOptions {
  /** A gather whose records have more bytes than this is refused; 4 GiB unless given. */
  readonly maxBatchBytes?: number | undefined;
}

/**
 * Reads several open readers as one. They may differ in codec, shards and dialect, not in kind, dtype and
 * shape; one may come more than once. Each is closed by whoever opened it, when they like: the files stay open
 * as long as the one that is returned.
 *
 * @param readers at least one, each of this package and of one container
 * @throws TypeError for what is no reader of one container; LoaderxError SCHEMA, with `path` and `field`, for
 *   the first that holds something else than the first of all; CLOSED; TOO_LARGE over 2^53 - 1 records
 */
export function concat<D extends DType>(
  readers: readonly DenseReader<D>[],
  options?: ConcatOptions,
): DenseReader<D> & Concatenated;
export function concat<D extends DType>(
  readers: readonly RaggedReader<D>[],
  options?: ConcatOptions,
): RaggedReader<D> & Concatenated;
export function concat(
  readers: readonly (DenseReader | RaggedReader)[],
  options?: ConcatOptions,
): (DenseReader | RaggedReader) & Concatenated;
export function concat(
  readers: readonly (DenseReader | RaggedReader)[],
  options?: ConcatOptions,
): (DenseReader | RaggedReader) & Concatenated {
  const { maxBatchBytes } = knownFields(options, ['maxBatchBytes']);
  const batchBytesMax = batchBytesMaxOf(maxBatchBytes);
  const members = membersOf(readers);
  if (members.length === 0) throw new ArgumentTypeError('readers', 'readers is empty');
  assertAlike(members);
  return readerOf(joined(members, nameOf(members)), batchBytesMax);
}

/** Readers of several containers. */
export const Concat = {
  /**
   * Opens the containers of a set, whose file `loaderx concat` or {@link makeSet} has made. `open`,
   * `Dense.open` and `Ragged.open` take such a file too.
   *
   * @throws LoaderxError MALFORMED for a file that is none of a set, or does not fit its containers (`field`);
   *   SCHEMA for a container that holds something else; of a missing one NOT_FOUND; as `open`; with
   *   `verify: 'digest'` INTEGRITY, also where a container's integrity file vouches for another content
   *   than the set wants
   */
  open(path: ContainerPath, options?: OpenOptions): (DenseReader | RaggedReader) & Concatenated {
    const { maxBatchBytes, verify } = knownFields(options, ['maxBatchBytes', 'verify']);
    const batchBytesMax = batchBytesMaxOf(maxBatchBytes);
    return readerOf(openSetStore(path, verifyingOf(verify)), batchBytesMax);
  },
} as const;

function membersOf(readers: unknown): OpenedStore[] {
  if (!Array.isArray(readers)) {
    throw new ArgumentTypeError(
      'readers',
      `readers must be a list of readers, got ${show(readers)}`,
    );
  }
  if (readers.length > partsMax) {
    throw new ArgumentTypeError(
      'readers',
      `there are ${readers.length} readers, and ${partsMax} is the most`,
    );
  }
  return readers.map((reader: unknown, index) => {
    const opened = (reader as Partial<OpenedReader> | null | undefined)?.[openedOf];
    if (opened === undefined) {
      throw new ArgumentTypeError(
        'readers',
        `readers[${index}] must be an open reader, got ${show(reader)}`,
      );
    }
    if (opened.parts !== undefined) {
      throw new ArgumentTypeError(
        'readers',
        `readers[${index}] reads several containers itself: give a reader of each`,
      );
    }
    return opened;
  });
}

/** The class of readers has `parts`, and the store has several. */
function readerOf(
  opened: OpenedStore,
  batchBytesMax: number,
): (DenseReader | RaggedReader) & Concatenated {
  const reader =
    opened.schema.kind === 'dense'
      ? denseReader(opened, batchBytesMax)
      : raggedReader(opened, batchBytesMax);
  if (!hasParts(reader)) throw new LoaderxError('UNEXPECTED', 'a set without parts');
  return reader;
}

function hasParts<R extends object>(reader: R): reader is R & Concatenated {
  return (reader as Partial<Concatenated>).parts !== undefined;
}
