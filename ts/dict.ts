/**
 * Training a dictionary: which records are looked at, and their bytes back to back.
 *
 * The sample is the original's, so the same records give the same dictionary, byte for byte:
 *
 * - an array or a dense reader: `k = min(n, max(1, floor(4 MiB / record bytes)))` records, evenly
 *   strided, both ends included;
 * - a ragged reader: the same with the mean payload of the first 32 records, taken in order until the
 *   next one would pass 4 MiB;
 * - an iterable: its leading records, until the next one would pass 4 MiB.
 */
import { type DType, isHonest, typedArrayName } from './dtype.js';
import { ArgumentRangeError, ArgumentTypeError, fromNative, LoaderxError, show } from './errors.js';
import { native } from './native/load.js';
import { arrayParts, type NdArray } from './ndarray.js';
import type { DenseReader, RaggedReader } from './store/capability.js';
import { payloadBytesOf, type SizedReader } from './store/sizes.js';
import { idPieces } from './store/walk.js';

/** Most bytes of a trained dictionary. */
export const dictBytesMax = 32_768;
/** Most bytes of the sample. */
export const sampleBytesMax = 4 * 1024 * 1024;

const meanRecords = 32;
/** Ids whose sizes are looked up at one time. */
const lookupRecords = 4096;

/** What a dictionary can be trained on. */
export type DictSource =
  | NdArray
  | Iterable<NdArray | Uint8Array>
  | DenseReader<DType>
  | RaggedReader<DType>;

/** Samples back to back. */
interface Sample {
  readonly bytes: Uint8Array;
  readonly recordBytes: readonly number[];
}

/**
 * Trains one dictionary for `codec: 'zstd_dict'`. The same source gives the same bytes.
 *
 * @param source an array of rank 1 or more (records along axis 0), an iterable of records, or an open reader
 * @returns at most 32 KiB
 * @throws TypeError, RangeError for what is no source, or an empty record; LoaderxError DICTIONARY for
 *   too few records, too little data or a record over 4 MiB, saying what is needed and what came
 */
export async function trainDict(source: DictSource): Promise<Uint8Array> {
  const { bytes, recordBytes } = await sampleOf(source);
  const sizes = BigUint64Array.from(recordBytes, BigInt);
  try {
    return await native().trainDict(bytes, sizes, dictBytesMax);
  } catch (error) {
    throw fromNative(error);
  }
}

async function sampleOf(source: unknown): Promise<Sample> {
  if (typeof source !== 'object' || source === null || typedArrayName(source) !== undefined) {
    const isBytes = typedArrayName(source) !== undefined;
    const hint = isBytes ? ': give a list of records, or ndarray() of rank 2' : '';
    throw new ArgumentTypeError(
      'source',
      `source must be an array, an iterable of records or an open reader, got ${show(source)}${hint}`,
    );
  }
  const candidate = source as Partial<Record<PropertyKey, unknown>>;
  if (typeof candidate.gather === 'function') {
    if (candidate.kind === 'dense') return sampleDense(source as DenseReader);
    if (typeof candidate[payloadBytesOf] === 'function') {
      return sampleRagged(source as RaggedReader & SizedReader);
    }
  }
  if (typeof candidate[Symbol.iterator] === 'function') {
    return sampleIterable(source as Iterable<unknown>);
  }
  if (typeof candidate.append === 'function') {
    throw new ArgumentTypeError('source', 'source is a writer: train on the records themselves');
  }
  return sampleArray(source);
}

function sampleArray(source: object): Sample {
  const { shape, bytes } = arrayParts(source, 'source');
  const [count] = shape;
  if (count === undefined) {
    throw new ArgumentTypeError('source', 'source is a single item: records lie along axis 0');
  }
  if (count === 0) throw nothingToTrainOn();
  const size = bytes.byteLength / count;
  if (size === 0) throw new ArgumentRangeError('source', 'source has records of zero bytes');
  assertWithinBudget(size, 0);
  const ids = strided(count, size);
  const sample = new Uint8Array(ids.length * size);
  ids.forEach((id, index) => {
    sample.set(bytes.subarray(id * size, (id + 1) * size), index * size);
  });
  return { bytes: sample, recordBytes: ids.map(() => size) };
}

async function sampleDense(reader: DenseReader): Promise<Sample> {
  if (reader.length === 0) throw nothingToTrainOn();
  const one = reader.record(0);
  const size = one.data.byteLength;
  assertWithinBudget(size, 0);
  const ids = strided(reader.length, size);
  return {
    bytes: await gathered(reader, ids, ids.length * size),
    recordBytes: ids.map(() => size),
  };
}

async function sampleRagged(reader: RaggedReader & SizedReader): Promise<Sample> {
  if (reader.length === 0) throw nothingToTrainOn();
  const firstIds = Array.from({ length: Math.min(reader.length, meanRecords) }, (_, id) => id);
  const firstSizes = reader[payloadBytesOf](idsOf(firstIds));
  const total = firstSizes.reduce((sum, size) => sum + size, 0);
  const mean = Math.max(1, Math.floor(total / firstSizes.length));

  const chosen: number[] = [];
  const recordBytes: number[] = [];
  let budget = sampleBytesMax;
  const ids = strided(reader.length, mean);
  lookup: for (let from = 0; from < ids.length; from += lookupRecords) {
    const some = ids.slice(from, from + lookupRecords);
    const sizes = reader[payloadBytesOf](idsOf(some));
    for (const [index, size] of sizes.entries()) {
      if (chosen.length === 0) assertWithinBudget(size, some[index] ?? 0);
      if (size > budget) break lookup;
      budget -= size;
      chosen.push(some[index] ?? 0);
      recordBytes.push(size);
    }
  }
  return { bytes: await gathered(reader, chosen, sampleBytesMax - budget), recordBytes };
}

/** The items of these records, back to back: gathered in batches as large as the reader allows. */
async function gathered(
  reader: DenseReader | RaggedReader,
  ids: readonly number[],
  bytes: number,
): Promise<Uint8Array> {
  const sample = new Uint8Array(bytes);
  let at = 0;
  for (const some of idPieces(reader, idsOf(ids))) {
    const batch = await reader.gather(some);
    const items = 'offsets' in batch ? batch.values : batch.data;
    sample.set(new Uint8Array(items.buffer, items.byteOffset, items.byteLength), at);
    at += items.byteLength;
    batch[Symbol.dispose]();
  }
  return sample;
}

function sampleIterable(source: Iterable<unknown>): Sample {
  const records: Uint8Array[] = [];
  let usedBytes = 0;
  let index = 0;
  for (const record of source) {
    const bytes = recordBytesOf(record, index);
    if (bytes.byteLength === 0) {
      throw new ArgumentRangeError('source', `record ${index} of source is empty`);
    }
    if (index === 0) assertWithinBudget(bytes.byteLength, 0);
    if (usedBytes + bytes.byteLength > sampleBytesMax) break;
    // Copied at once: the iterable may use the same memory for the next record.
    records.push(new Uint8Array(bytes));
    usedBytes += bytes.byteLength;
    index += 1;
  }
  if (records.length === 0) throw nothingToTrainOn();
  const sample = new Uint8Array(usedBytes);
  let at = 0;
  for (const record of records) {
    sample.set(record, at);
    at += record.byteLength;
  }
  return { bytes: sample, recordBytes: records.map((record) => record.byteLength) };
}

function recordBytesOf(record: unknown, index: number): Uint8Array {
  if (typedArrayName(record) === 'Uint8Array') {
    if (isHonest(record as Uint8Array)) return record as Uint8Array;
    throw new ArgumentTypeError(
      'source',
      `record ${index} of source says another length of itself than it has`,
    );
  }
  return arrayParts(record, `record ${index} of source`).bytes;
}

/**
 * The sampled indices of `count` records of `recordBytes`: `np.linspace(0, count - 1, k)` cut to
 * integers, repeats left out. NumPy multiplies by the step as a float64 and sets the last one.
 */
export function strided(count: number, recordBytes: number): number[] {
  const wanted = Math.min(count, Math.max(1, Math.floor(sampleBytesMax / recordBytes)));
  if (wanted === 1) return [0];
  const step = (count - 1) / (wanted - 1);
  const indices: number[] = [];
  for (let index = 0; index < wanted; index += 1) {
    const at = index === wanted - 1 ? count - 1 : Math.floor(index * step);
    if (at !== indices[indices.length - 1]) indices.push(at);
  }
  return indices;
}

function idsOf(ids: readonly number[]): BigUint64Array {
  return BigUint64Array.from(ids, BigInt);
}

function nothingToTrainOn(): LoaderxError {
  return new LoaderxError(
    'DICTIONARY',
    'a dictionary needs 7 records or more to train on, and 0 came',
    { field: 'source' },
  );
}

function assertWithinBudget(recordBytes: number, record: number): void {
  if (recordBytes <= sampleBytesMax) return;
  throw new LoaderxError(
    'DICTIONARY',
    `a dictionary is trained on at most 4 MiB, and record ${record} alone has ${recordBytes} bytes: records this large need no dictionary`,
    { field: 'source', record },
  );
}
