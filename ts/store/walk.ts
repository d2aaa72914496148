/**
 * All records of a container in order, in pieces of bounded memory: what everything that looks at a
 * whole container goes by.
 */
import { dtypeOf } from '../dtype.js';
import { recordBytesOf } from '../schema.js';
import { onAbort } from '../signal.js';
import type { DenseBatch, DenseReader, RaggedBatch, RaggedReader } from './capability.js';
import { type IdRange, rangeArray } from './ids.js';
import { type BoundedReader, batchBytesMaxOf, payloadBytesOf, type SizedReader } from './sizes.js';

/** Items of about this many bytes are held at one time; a record that is larger, alone. */
export const pieceBytes = 8 * 2 ** 20;

/** Records whose sizes are asked for at one time. */
const lookupRecords = 4096;
/** A native call that long keeps the thread for a millisecond. */
const pieceRecordsMax = 65_536;

/** Consecutive ranges that cover all records of `reader`, each of at most about `bytes` of items. */
export function rangesOf(
  reader: DenseReader | RaggedReader,
  bytes: number = pieceBytes,
): Iterable<IdRange> {
  const most = boundOf(reader, bytes);
  if (reader.kind === 'dense') return denseRanges(reader, most);
  // Every ragged reader of this package has that door.
  return raggedRanges(reader.length, reader as RaggedReader & SizedReader, most);
}

function* denseRanges(reader: DenseReader, bytes: number): Generator<IdRange, void, undefined> {
  const recordBytes = recordBytesOf(dtypeOf(reader.dtype), reader.itemShape);
  const most = Math.min(pieceRecordsMax, Math.max(1, Math.floor(bytes / recordBytes)));
  for (let first = 0; first < reader.length; first += most) {
    yield { first, step: 1, count: Math.min(most, reader.length - first) };
  }
}

function* raggedRanges(
  length: number,
  reader: SizedReader,
  bytes: number,
): Generator<IdRange, void, undefined> {
  let first = 0;
  let count = 0;
  let heldBytes = 0;
  for (let from = 0; from < length; from += lookupRecords) {
    const size = Math.min(lookupRecords, length - from);
    for (const recordBytes of reader[payloadBytesOf](
      rangeArray({ first: from, step: 1, count: size }),
    )) {
      if (count > 0 && (heldBytes + recordBytes > bytes || count === pieceRecordsMax)) {
        yield { first, step: 1, count };
        first += count;
        count = 0;
        heldBytes = 0;
      }
      count += 1;
      heldBytes += recordBytes;
    }
  }
  if (count > 0) yield { first, step: 1, count };
}

/** Parts of `ids` one after the other, each of at most about `bytes` of items. Ids are below `length`. */
export function* idPieces(
  reader: DenseReader | RaggedReader,
  ids: BigUint64Array,
  bytes: number = pieceBytes,
): Generator<BigUint64Array, void, undefined> {
  const most = boundOf(reader, bytes);
  let first = 0;
  let heldBytes = 0;
  for (let from = 0; from < ids.length; from += lookupRecords) {
    const some = ids.subarray(from, from + lookupRecords);
    for (const [index, recordBytes] of sizesOf(reader, some).entries()) {
      const at = from + index;
      if (at > first && heldBytes + recordBytes > most) {
        yield ids.subarray(first, at);
        first = at;
        heldBytes = 0;
      }
      heldBytes += recordBytes;
    }
  }
  if (first < ids.length) yield ids.subarray(first);
}

function sizesOf(reader: DenseReader | RaggedReader, ids: BigUint64Array): readonly number[] {
  if (reader.kind === 'ragged') return (reader as RaggedReader & SizedReader)[payloadBytesOf](ids);
  const recordBytes = recordBytesOf(dtypeOf(reader.dtype), reader.itemShape);
  return new Array<number>(ids.length).fill(recordBytes);
}

/** The reader's own bound on a batch holds here too: what is read in pieces is never refused for it. */
function boundOf(reader: DenseReader | RaggedReader, bytes: number): number {
  return Math.min(bytes, (reader as Partial<BoundedReader>)[batchBytesMaxOf] ?? bytes);
}

/** A range of records and what they are. Whoever gets it disposes the batch. */
export interface Piece {
  readonly first: number;
  readonly count: number;
  readonly batch: DenseBatch | RaggedBatch;
}

/**
 * All records in order, one piece read ahead. The batches' memory is bounded by two pieces.
 *
 * @throws what a gather throws; LoaderxError ABORTED when `signal` is
 */
export async function* walk(
  reader: DenseReader | RaggedReader,
  signal?: AbortSignal,
  bytes: number = pieceBytes,
): AsyncGenerator<Piece, void, undefined> {
  const stop = new AbortController();
  const forget = signal === undefined ? ignore : onAbort(signal, () => stop.abort(signal.reason));
  if (signal?.aborted === true) stop.abort(signal.reason);
  const ranges = rangesOf(reader, bytes)[Symbol.iterator]();
  const next = (): Promise<Piece> | undefined => {
    const step = ranges.next();
    if (step.done === true) return undefined;
    const reading = read(reader, step.value, stop.signal);
    // It may fail while the consumer is busy; it is told when it asks for this piece.
    reading.catch(ignore);
    return reading;
  };
  let ahead: Promise<Piece> | undefined;
  try {
    ahead = next();
    while (ahead !== undefined) {
      const piece: Piece = await ahead;
      ahead = undefined;
      ahead = next();
      yield piece;
    }
  } finally {
    forget();
    stop.abort();
    await ahead?.then(({ batch }) => batch[Symbol.dispose](), ignore);
  }
}

/** As `walk`, on this thread. */
export function* walkSync(reader: DenseReader | RaggedReader): Generator<Piece, void, undefined> {
  for (const range of rangesOf(reader)) {
    const { first, count } = range;
    yield { first, count, batch: reader.gatherSync(rangeArray(range)) };
  }
}

async function read(
  reader: DenseReader | RaggedReader,
  range: IdRange,
  signal: AbortSignal,
): Promise<Piece> {
  const { first, count } = range;
  return { first, count, batch: await reader.gather(rangeArray(range), { signal }) };
}

function ignore(): void {}
