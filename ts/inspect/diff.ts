/**
 * Whether two containers hold the same: record by record, whatever their files look like.
 */

import { dtypeOf } from '../dtype.js';
import type { NdArray } from '../ndarray.js';
import type { DenseBatch, DenseReader, RaggedBatch, RaggedReader } from '../store/capability.js';
import { openStore } from '../store/container.js';
import { knownFields } from '../store/fields.js';
import { rangeArray } from '../store/ids.js';
import { itemBytesOf } from '../store/logical-digest.js';
import type { ContainerPath } from '../store/path.js';
import { walk } from '../store/walk.js';
import { type ContainerFacts, factsOf, readerOf } from './facts.js';
import { itemTexts } from './numbers.js';
import type { LongOptions, LongWork } from './progress.js';
import { longFields, longWorkOf } from './settings.js';

/** Something that holds for a whole container and differs. */
export interface FactDifference {
  /** Which fact. */
  readonly fact: 'kind' | 'dtype' | 'itemShape' | 'ndim' | 'records';
  /** Of the first container, as text. */
  readonly a: string;
  /** Of the second container, as text. */
  readonly b: string;
}

/** The first record that differs. */
export interface RecordDifference {
  /** Its id. */
  readonly record: number;
  /** Whether the shapes differ, or, in one shape, the items. */
  readonly what: 'shape' | 'items';
  /** The item that differs first, one index for each dimension; with `what: 'items'`. */
  readonly index?: readonly number[];
  /** The shapes, or the two items, as text. */
  readonly a: string;
  /** The same of the second container. */
  readonly b: string;
}

/** What {@link diff} found. */
export interface DiffReport {
  /** Whether both hold the same records: then their logical digests are equal too. */
  readonly equal: boolean;
  /** The first container. */
  readonly a: ContainerFacts;
  /** The second container. */
  readonly b: ContainerFacts;
  /** What differs of the whole containers; empty where nothing does. */
  readonly facts: readonly FactDifference[];
  /** Records that were compared: those that both have; none where kind, dtype or shape differ. */
  readonly compared: number;
  /** How many of them differ. */
  readonly differing: number;
  /** The lowest record that differs, if one does. */
  readonly first?: RecordDifference;
}

/**
 * Compares what two containers hold: kind, dtype, shape, and every record's bytes. Codec, shards, dialect
 * and dictionary do not matter.
 *
 * @throws LoaderxError as `open` and `gather`, for a record that cannot be read; ABORTED
 */
export async function diff(
  a: ContainerPath,
  b: ContainerPath,
  options?: LongOptions,
): Promise<DiffReport> {
  const work = longWorkOf(knownFields(options, longFields));
  const openedA = openStore(a);
  try {
    const openedB = openStore(b);
    try {
      const factsA = factsOf(openedA);
      const factsB = factsOf(openedB);
      const facts = differingFacts(factsA, factsB);
      const isComparable = facts.every(({ fact }) => fact === 'records');
      const found = isComparable
        ? await compare(readerOf(openedA), readerOf(openedB), work)
        : { compared: 0, differing: 0, first: undefined };
      return {
        equal: facts.length === 0 && found.differing === 0,
        a: factsA,
        b: factsB,
        facts,
        compared: found.compared,
        differing: found.differing,
        ...(found.first === undefined ? {} : { first: found.first }),
      };
    } finally {
      await openedB.handle.close();
    }
  } finally {
    await openedA.handle.close();
  }
}

function differingFacts(a: ContainerFacts, b: ContainerFacts): FactDifference[] {
  const found: FactDifference[] = [];
  for (const fact of ['kind', 'dtype', 'itemShape', 'ndim', 'records'] as const) {
    const [ofA, ofB] = [a[fact], b[fact]].map((value) =>
      Array.isArray(value) ? `[${value.join(', ')}]` : String(value ?? 'none'),
    );
    if (ofA !== undefined && ofB !== undefined && ofA !== ofB) found.push({ fact, a: ofA, b: ofB });
  }
  return found;
}

interface Compared {
  compared: number;
  differing: number;
  first: RecordDifference | undefined;
}

/** Compares the records that both have. Ranges are of the reader with fewer. */
async function compare(
  a: DenseReader | RaggedReader,
  b: DenseReader | RaggedReader,
  { signal, onProgress }: LongWork,
): Promise<Compared> {
  const isSwapped = b.length < a.length;
  const [shorter, longer] = isSwapped ? [b, a] : [a, b];
  const found: Compared = { compared: 0, differing: 0, first: undefined };
  let bytesDone = 0;
  for await (const { first, count, batch } of walk(shorter, signal)) {
    const ids = rangeArray({ first, step: 1, count });
    const other: DenseBatch | RaggedBatch = await longer.gather(ids, { signal });
    comparePiece(isSwapped ? other : batch, isSwapped ? batch : other, first, found);
    found.compared += count;
    bytesDone += itemBytesOf(batch);
    batch[Symbol.dispose]();
    other[Symbol.dispose]();
    onProgress({ recordsDone: found.compared, recordsTotal: shorter.length, bytesDone });
  }
  return found;
}

function comparePiece(
  a: DenseBatch | RaggedBatch,
  b: DenseBatch | RaggedBatch,
  first: number,
  found: Compared,
): void {
  const [bytesA, bytesB] = [bytesOf(valuesOf(a)), bytesOf(valuesOf(b))];
  const isRagged = 'offsets' in a && 'offsets' in b;
  const dimsEqual = !isRagged || equalNumbers(a.dims, b.dims);
  if (dimsEqual && bytesA.equals(bytesB)) return;
  const count = isRagged ? a.length : ((a as DenseBatch).shape[0] ?? 0);
  for (let index = 0; index < count; index += 1) {
    const [one, other] = [recordOf(a, index), recordOf(b, index)];
    const sameShape = equalNumbers(one.shape, other.shape);
    if (sameShape && bytesOf(one.data).equals(bytesOf(other.data))) continue;
    found.differing += 1;
    found.first ??= differenceOf(first + index, one, other, sameShape);
  }
}

function differenceOf(
  record: number,
  a: NdArray,
  b: NdArray,
  sameShape: boolean,
): RecordDifference {
  if (!sameShape) {
    return { record, what: 'shape', a: `[${a.shape.join(', ')}]`, b: `[${b.shape.join(', ')}]` };
  }
  const [bytesA, bytesB] = [bytesOf(a.data), bytesOf(b.data)];
  let at = 0;
  while (bytesA[at] === bytesB[at]) at += 1;
  const item = Math.floor(at / dtypeOf(a.dtype).itemBytes);
  const index: number[] = [];
  let rest = item;
  for (const size of [...a.shape].reverse()) {
    index.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  const [textA, textB] = [itemTexts(a)(item), itemTexts(b)(item)];
  if (textA !== textB) return { record, what: 'items', index, a: textA, b: textB };
  // Two numbers that read alike (zeros, NaNs, long fractions): their bytes tell them apart.
  const hex = (bytes: Buffer): string => hexOf(a, bytes, item, at);
  return { record, what: 'items', index, a: hex(bytesA), b: hex(bytesB) };
}

/** Bytes of a long item that are told, from the first one that differs. */
const hexBytesMax = 64;

function hexOf(array: NdArray, bytes: Buffer, item: number, at: number): string {
  const { itemBytes } = dtypeOf(array.dtype);
  const [first, end] = [item * itemBytes, (item + 1) * itemBytes];
  if (itemBytes <= hexBytesMax) return `0x${bytes.toString('hex', first, end)}`;
  const more = at + hexBytesMax < end ? '…' : '';
  return `byte ${at - first}: 0x${bytes.toString('hex', at, Math.min(end, at + hexBytesMax))}${more}`;
}

function valuesOf(batch: DenseBatch | RaggedBatch): ArrayBufferView {
  return 'offsets' in batch ? batch.values : batch.data;
}

function recordOf(batch: DenseBatch | RaggedBatch, index: number): NdArray {
  if ('offsets' in batch) return batch.at(index);
  const [count = 1, ...shape] = batch.shape;
  const width = batch.data.length / count;
  const data = batch.data.subarray(index * width, (index + 1) * width);
  return { dtype: batch.dtype, shape, data };
}

function bytesOf(data: ArrayBufferView): Buffer {
  return Buffer.from(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
}

function equalNumbers(a: ArrayLike<number>, b: ArrayLike<number>): boolean {
  if (a.length !== b.length) return false;
  for (let index = 0; index < a.length; index += 1) if (a[index] !== b[index]) return false;
  return true;
}
