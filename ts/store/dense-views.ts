/**
 * A gathered dense batch.
 */
import type { DataOf, DType, NativeOf } from '../dtype.js';
import { type NdArray, toNative } from '../ndarray.js';
import { give } from './memory.js';

/** Gathered records: memory of their own, and what they are. */
export class DenseBatchView<D extends DType> implements NdArray<D>, Disposable {
  readonly dtype: D;
  readonly shape: readonly number[];
  readonly data: DataOf<D>;

  constructor(dtype: D, shape: readonly number[], data: DataOf<D>) {
    this.dtype = dtype;
    this.shape = shape;
    this.data = data;
  }

  toNative(): NdArray<NativeOf<D>> {
    return toNative<D>(this);
  }

  [Symbol.dispose](): void {
    give(this.data.buffer);
  }
}
