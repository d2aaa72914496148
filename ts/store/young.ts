/**
 * What is made anew for each record of each batch, so that it always begins in V8's young generation.
 *
 * V8 notes of every literal in code, `{…}` and `[…]`, how long what it makes lives. Where that was long (a program
 * that keeps its first batches, or makes much garbage between them), it makes later ones in old space at once. There
 * a dead object still keeps what it names until the next full collection, so that the views of every dropped batch
 * are copied at each scavenge, and full collections follow each other: 256 views took 100 µs instead of 60
 * (docs/performance.md). What constructors and rest parameters make has no such note.
 */
import type { DataOf, DType } from '../dtype.js';
import type { NdArray } from '../ndarray.js';

/** A list of these items. */
export function listOf<T>(...items: T[]): T[] {
  return items;
}

interface PlainArray {
  new <D extends DType>(dtype: D, shape: readonly number[], data: DataOf<D>): NdArray<D>;
}

/** Makes a plain object: what it makes has no other prototype than a literal has. */
export const PlainArray = function (
  this: { -readonly [Field in keyof NdArray]: NdArray[Field] },
  dtype: DType,
  shape: readonly number[],
  data: DataOf<DType>,
) {
  this.dtype = dtype;
  this.shape = shape;
  this.data = data;
} as unknown as PlainArray;
(PlainArray as unknown as { prototype: object }).prototype = Object.prototype;
