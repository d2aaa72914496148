/**
 * A gathered ragged batch: one buffer of items, and where each record lies in it.
 *
 *     values   a a a | b | c c c c        offsets  0 3 4 8        dims (ndim 2)  3 1 | 1 1 | 2 2
 *
 * Views are made eagerly where they are asked for: a typed array costs less than any machinery that
 * would avoid it.
 */
import type { DataOf, DType, DTypeInfo, NativeOf } from '../dtype.js';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { type NdArray, nativeInfo, swappedData } from '../ndarray.js';
import type { PadOptions, RaggedBatch } from './capability.js';
import { give, keep, transferred } from './memory.js';
import { padRecords } from './pad.js';
import { listOf, PlainArray } from './young.js';

/** The packed form as a gather makes it. */
export interface Packed {
  /** Holds the items from byte 0; may be longer than they are. */
  readonly buffer: ArrayBuffer;
  readonly payloadBytes: number;
  /** In items, one more than records. */
  readonly offsets: Uint32Array | Float64Array;
  readonly dims: Uint32Array | Float64Array;
}

/** `leaving`: disposed of while a gather fills it. */
type State = 'ready' | 'filling' | 'leaving' | 'disposed';

export class RaggedBatchView<D extends DType> implements RaggedBatch<D> {
  readonly dtype: D;
  readonly ndim: number;
  readonly info: DTypeInfo;
  #state: State = 'ready';
  #values: DataOf<D>;
  #offsets: Uint32Array | Float64Array;
  #dims: Uint32Array | Float64Array;

  constructor(info: DTypeInfo<D>, ndim: number, packed: Packed) {
    this.dtype = info.name;
    this.ndim = ndim;
    this.info = info;
    this.#values = valuesOf(info, packed);
    this.#offsets = elementOffsets(packed.offsets, info.itemElements);
    this.#dims = packed.dims;
  }

  get length(): number {
    return this.#offsets.length - 1;
  }

  get values(): DataOf<D> {
    return this.#values;
  }

  get offsets(): Uint32Array | Float64Array {
    return this.#offsets;
  }

  get dims(): Uint32Array | Float64Array {
    return this.#dims;
  }

  at(index: number): NdArray<D> {
    this.assertReady();
    if (typeof index !== 'number' || !Number.isInteger(index)) {
      throw new ArgumentTypeError('index', `index must be an integer, got ${show(index)}`);
    }
    if (index < 0 || index >= this.length) {
      throw new ArgumentRangeError(
        'index',
        `index is ${index}, and the batch has ${this.length} records; nothing counts from the end`,
        'OUT_OF_RANGE',
      );
    }
    return this.#view(index);
  }

  toArray(): NdArray<D>[] {
    this.assertReady();
    const { dtype, ndim } = this;
    const { constructorOf } = this.info;
    const offsets = this.#offsets;
    const dims = this.#dims;
    const { buffer, byteOffset } = this.#values;
    const elementBytes = constructorOf.BYTES_PER_ELEMENT;
    const list = listOf<NdArray<D>>();
    let start = offsets[0] ?? 0;
    for (let index = 0; index < offsets.length - 1; index += 1) {
      this.#assertBounds(index);
      const end = offsets[index + 1] ?? start;
      const at = byteOffset + start * elementBytes;
      const data = new constructorOf(buffer, at, end - start) as DataOf<D>;
      list.push(new PlainArray(dtype, shapeAt(dims, ndim, index), data));
      start = end;
    }
    return list;
  }

  *[Symbol.iterator](): Generator<NdArray<D>, void, undefined> {
    for (let index = 0; index < this.length; index += 1) {
      this.assertReady();
      yield this.#view(index);
    }
  }

  pad(options: PadOptions): { data: NdArray<D>; mask: NdArray<'bool'> } {
    this.assertReady();
    for (let index = 0; index < this.length; index += 1) this.assertRecord(index);
    const { shape, items, mask } = padRecords(this, options);
    return {
      data: { dtype: this.dtype, shape, data: items as DataOf<D> },
      mask: { dtype: 'bool', shape, data: mask },
    };
  }

  toNative(): RaggedBatch<NativeOf<D>> {
    this.assertReady();
    const native = nativeInfo(this.info);
    // A native batch is its own native form; NativeOf says so for each dtype, one by one.
    if (native === this.info) return this as unknown as RaggedBatch<NativeOf<D>>;
    const values = swappedData(this.info, this.#values, native);
    const perItem = this.info.itemElements;
    return new RaggedBatchView(native, this.ndim, {
      buffer: values.buffer as ArrayBuffer,
      payloadBytes: values.byteLength,
      offsets: this.#offsets.map((offset) => offset / perItem),
      dims: this.#dims.slice(),
    }) as unknown as RaggedBatch<NativeOf<D>>;
  }

  [Symbol.dispose](): void {
    if (this.#state === 'ready') give(this.#values.buffer);
    this.#state = this.#state === 'filling' || this.#state === 'leaving' ? 'leaving' : 'disposed';
  }

  /** Throws CLOSED where there is nothing to see: disposed, being filled, or detached by the caller. */
  assertReady(): void {
    const isGone = this.#values.length !== (this.#offsets[this.length] ?? 0);
    if (this.#state === 'ready' && !isGone) return;
    const why =
      this.#state === 'filling'
        ? 'is being filled'
        : 'was disposed, or its memory was transferred away';
    throw new LoaderxError('CLOSED', `the batch ${why}`);
  }

  /** `offsets` and `dims` are the caller's to read; whoever has written to them is told. */
  assertRecord(index: number): void {
    this.#assertBounds(index);
    let elements = this.info.itemElements;
    for (let axis = 0; axis < this.ndim; axis += 1) {
      elements *= this.#dims[index * this.ndim + axis] ?? 0;
    }
    const start = this.#offsets[index] ?? 0;
    if (elements === (this.#offsets[index + 1] ?? 0) - start && elements > 0) return;
    throw new ArgumentRangeError(
      'dims',
      `the dimensions of record ${index} of the batch are not those of its items: dims or offsets were written to`,
    );
  }

  #assertBounds(index: number): void {
    const start = this.#offsets[index] ?? 0;
    const end = this.#offsets[index + 1] ?? 0;
    if (start <= end && end <= this.#values.length) return;
    throw new ArgumentRangeError(
      'offsets',
      `record ${index} of the batch lies from ${start} to ${end} of ${this.#values.length}: offsets were written to`,
    );
  }

  /** Takes the batch's memory for a gather that fills it. Its views become empty. */
  beginFill(): ArrayBuffer | undefined {
    if (this.#state === 'filling' || this.#state === 'leaving') {
      throw new LoaderxError('BUSY', 'out is being filled by another gather');
    }
    const isDisposed = this.#state === 'disposed';
    this.#state = 'filling';
    const { buffer } = this.#values;
    return isDisposed ? undefined : transferred(buffer);
  }

  /** Ends a fill. Without `packed` it failed, and the batch is disposed. */
  endFill(packed: Packed | undefined): void {
    const wasDisposed = this.#state === 'leaving';
    this.#state = packed === undefined || wasDisposed ? 'disposed' : 'ready';
    if (packed === undefined) return;
    if (wasDisposed) {
      keep(packed.buffer);
      return;
    }
    this.#values = valuesOf(this.info, packed) as DataOf<D>;
    this.#offsets = elementOffsets(packed.offsets, this.info.itemElements);
    this.#dims = packed.dims;
  }

  #view(index: number): NdArray<D> {
    this.#assertBounds(index);
    const { constructorOf } = this.info;
    const start = this.#offsets[index] ?? 0;
    const end = this.#offsets[index + 1] ?? start;
    const values = this.#values;
    const byteOffset = values.byteOffset + start * constructorOf.BYTES_PER_ELEMENT;
    const data = new constructorOf(values.buffer, byteOffset, end - start) as DataOf<D>;
    return new PlainArray(this.dtype, shapeAt(this.#dims, this.ndim, index), data);
  }
}

/** The shape of record `index`. */
export function shapeAt(dims: Uint32Array | Float64Array, ndim: number, index: number): number[] {
  if (ndim === 1) return listOf(dims[index] ?? 0);
  const shape = listOf<number>();
  for (let axis = index * ndim; axis < (index + 1) * ndim; axis += 1) shape.push(dims[axis] ?? 0);
  return shape;
}

/** The items of a packed result, as the dtype's typed array. */
export function valuesOf<D extends DType>(info: DTypeInfo<D>, packed: Packed): DataOf<D> {
  const { constructorOf } = info;
  const length = packed.payloadBytes / constructorOf.BYTES_PER_ELEMENT;
  return new constructorOf(packed.buffer, 0, length) as DataOf<D>;
}

/** Offsets in items become offsets in elements of `values`. */
function elementOffsets(
  offsets: Uint32Array | Float64Array,
  perItem: number,
): Uint32Array | Float64Array {
  if (perItem === 1) return offsets;
  const last = (offsets[offsets.length - 1] ?? 0) * perItem;
  const wide = last < 2 ** 32 ? new Uint32Array(offsets.length) : new Float64Array(offsets.length);
  for (let index = 0; index < offsets.length; index += 1) {
    wide[index] = (offsets[index] ?? 0) * perItem;
  }
  return wide;
}
