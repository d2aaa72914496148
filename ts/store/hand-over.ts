/**
 * Batches on their way to another thread: taken apart into what `postMessage` carries, and put
 * together on the other side around the same memory.
 */

import type { Data, DType } from '../dtype.js';
import { dtypeOf } from '../dtype.js';
import type { DenseBatch, RaggedBatch } from './capability.js';
import { DenseBatchView } from './dense-views.js';
import { keep, takeAllKept } from './memory.js';
import { RaggedBatchView } from './ragged-views.js';

/** A batch in parts. The memory of `data` is the batch's own. */
export type BatchParts =
  | {
      readonly kind: 'dense';
      readonly dtype: DType;
      readonly shape: readonly number[];
      readonly data: Data;
    }
  | {
      readonly kind: 'ragged';
      readonly dtype: DType;
      readonly ndim: number;
      readonly data: Data;
      /** In items. */
      readonly offsets: Uint32Array | Float64Array;
      readonly dims: Uint32Array | Float64Array;
    };

/** The parts of a gathered batch; undefined for any other value. */
export function partsOf(value: object): BatchParts | undefined {
  if (value instanceof DenseBatchView) {
    const { dtype, shape, data } = value as DenseBatchView<DType>;
    return { kind: 'dense', dtype, shape, data };
  }
  if (value instanceof RaggedBatchView) {
    const { dtype, ndim, info, values, offsets, dims } = value as RaggedBatchView<DType>;
    const perItem = info.itemElements;
    return {
      kind: 'ragged',
      dtype,
      ndim,
      data: values,
      offsets: perItem === 1 ? offsets : offsets.map((offset) => offset / perItem),
      dims,
    };
  }
  return undefined;
}

/** The batch that `parts` are of. */
export function batchFrom(parts: BatchParts): DenseBatch | RaggedBatch {
  const { data } = parts;
  if (parts.kind === 'dense') return new DenseBatchView(parts.dtype, parts.shape, data);
  return new RaggedBatchView(dtypeOf(parts.dtype), parts.ndim, {
    // Always a whole buffer from byte 0: that is how a gather makes it.
    buffer: data.buffer as ArrayBuffer,
    payloadBytes: data.byteLength,
    offsets: parts.offsets,
    dims: parts.dims,
  });
}

/** Bytes of a batch's items; 0 for any other value. */
export function itemBytesOf(value: object): number {
  if (value instanceof DenseBatchView) return (value as DenseBatchView<DType>).data.byteLength;
  if (value instanceof RaggedBatchView) return (value as RaggedBatchView<DType>).values.byteLength;
  return 0;
}

/** The memory that a batch's items are in; undefined for any other value. */
export function memoryOf(value: object): ArrayBufferLike | undefined {
  if (value instanceof DenseBatchView) return (value as DenseBatchView<DType>).data.buffer;
  if (value instanceof RaggedBatchView) return (value as RaggedBatchView<DType>).values.buffer;
  return undefined;
}

/** Takes memory back that came from another thread, where nobody has it any more. */
export function takeBack(memory: readonly ArrayBuffer[]): void {
  for (const buffer of memory) keep(buffer);
}

/** All memory that is kept on this thread, for another thread that has more use for it. */
export function spareMemory(): ArrayBuffer[] {
  return takeAllKept();
}
