/**
 * An array as the rest of the package takes and gives it: a dtype, a shape, and a typed array of
 * the items in C order. Any object with these three fields will do; {@link arrayParts} is the one
 * check that all of them pass.
 */
import {
  type Data,
  type DataOf,
  type DType,
  type DTypeInfo,
  dtypeOf,
  isHonest,
  type NativeOf,
  typedArrayName,
} from './dtype.js';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from './errors.js';

/** Items in C order. `data.length` is the product of `shape`, times 2 for complex dtypes, times the item's bytes for dtypes that are held as stored bytes. */
export interface NdArray<D extends DType = DType> {
  /** Of the items. */
  readonly dtype: D;
  /** Non-negative integers; empty for a single item. */
  readonly shape: readonly number[];
  /** The items in C order, as many as `shape` multiplies to (of complex dtypes twice as many numbers). */
  readonly data: DataOf<D>;
}

/** An {@link NdArray} taken apart and checked. */
export interface ArrayParts {
  readonly info: DTypeInfo;
  /** A copy: the caller's may change. */
  readonly shape: readonly number[];
  readonly data: Data;
  /** The items' bytes, a view of the caller's memory. */
  readonly bytes: Uint8Array;
}

/** Highest rank: that of a batch of records of the highest rank. */
export const rankMax = 64;

/**
 * Makes an {@link NdArray} of parts: checks them once and copies no item.
 *
 * @param dtype what the items are
 * @param shape non-negative integers, at most 64; `[]` is one item
 * @param data the typed array of this dtype ({@link DataOf}), of exactly the length that `shape` asks for
 * @throws TypeError, RangeError with `code: 'INVALID_ARGUMENT'` where a part does not fit
 */
export function ndarray<D extends DType>(
  dtype: D,
  shape: readonly number[],
  data: DataOf<D>,
): NdArray<D> {
  const parts = arrayParts({ dtype, shape, data }, '');
  return { dtype, shape: parts.shape, data };
}

/**
 * Checks an array that a caller gave, and reads each of its fields once.
 *
 * @param field how messages call the array; `''` where its parts are arguments of their own
 * @param wanted the dtype it must have, where there is one
 */
export function arrayParts(value: unknown, field: string, wanted?: DTypeInfo): ArrayParts {
  const { info, shape, data } = arrayItems(value, field, wanted);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { info, shape, data, bytes };
}

/** As {@link arrayParts}, without a view of the bytes: one object less for each of many small arrays. */
export function arrayItems(
  value: unknown,
  field: string,
  wanted?: DTypeInfo,
): Omit<ArrayParts, 'bytes'> {
  if (typeof value !== 'object' || value === null) {
    throw new ArgumentTypeError(
      field,
      `${field} must be an array {dtype, shape, data}, got ${show(value)}`,
    );
  }
  const { dtype, shape, data } = value as Partial<Record<string, unknown>>;
  if (dtype === undefined && shape === undefined && data === undefined) {
    throw new ArgumentTypeError(
      field,
      `${field} must be an array {dtype, shape, data}, got ${show(value)}; ndarray() makes one`,
    );
  }
  const prefix = field === '' ? '' : `${field}.`;
  const isWanted = wanted !== undefined && dtype === wanted.name;
  const info = isWanted ? wanted : dtypeOf(dtype, `${prefix}dtype`);
  if (wanted !== undefined && info.name !== wanted.name) {
    throw new ArgumentTypeError(
      `${prefix}dtype`,
      `${prefix}dtype is ${show(dtype)}, and the container holds ${show(wanted?.name)}: nothing is converted`,
    );
  }
  const checkedShape = shapeOf(shape, `${prefix}shape`);
  const checkedData = dataFor(info, data, `${prefix}data`);
  const length = elementCount(checkedShape, info);
  if (checkedData.length !== length) {
    const hint = checkedData.length === 0 ? ' (was its memory transferred or given back?)' : '';
    throw new ArgumentRangeError(
      `${prefix}data`,
      `${prefix}data has ${checkedData.length} elements${hint}, and shape ${show(checkedShape)} of ${show(info.name)} wants ${length}`,
    );
  }
  return { info, shape: checkedShape, data: checkedData };
}

/** A checked copy of a shape. */
function shapeOf(shape: unknown, field: string): readonly number[] {
  if (!Array.isArray(shape)) {
    throw new ArgumentTypeError(field, `${field} must be a list of integers, got ${show(shape)}`);
  }
  if (shape.length > rankMax) {
    throw new ArgumentRangeError(
      field,
      `${field} has ${shape.length} dimensions, and ${rankMax} is the most`,
    );
  }
  const copy: number[] = [];
  for (let axis = 0; axis < shape.length; axis += 1) {
    const size: unknown = shape[axis];
    if (typeof size !== 'number' || !Number.isInteger(size)) {
      throw new ArgumentTypeError(field, `${field}[${axis}] must be an integer, got ${show(size)}`);
    }
    if (size < 0 || size > Number.MAX_SAFE_INTEGER) {
      throw new ArgumentRangeError(
        field,
        `${field}[${axis}] must be 0 or more, and at most 2^53 - 1, got ${show(size)}`,
      );
    }
    copy.push(size + 0);
  }
  return copy;
}

/** Elements of the typed array for a shape; above 2^53 it is only known to be too many. */
export function elementCount(shape: readonly number[], info: DTypeInfo): number {
  let count = info.itemElements;
  for (const size of shape) {
    if (size === 0) return 0;
    count *= size;
  }
  return count;
}

function dataFor(info: DTypeInfo, data: unknown, field: string): Data {
  const came = typedArrayName(data);
  if (came === info.constructorOf.name) {
    if (isHonest(data as Data)) return data as Data;
    throw new ArgumentTypeError(
      field,
      `${field} says another length or memory of itself than it has: give a plain ${came}`,
    );
  }
  const hint =
    came === 'Float16Array' && info.name === 'float16'
      ? ': give its bits, new Uint16Array(a.buffer, a.byteOffset, a.length)'
      : '';
  throw new ArgumentTypeError(
    field,
    `${field} must be a ${info.constructorOf.name} for ${show(info.name)}, got ${came ?? show(data)}${hint}`,
  );
}

/**
 * The same numbers in the machine's byte order: a big-endian array becomes its little-endian twin
 * (`numpy:>f4` a `float32`) in new memory; an array that is native already is returned as it is.
 *
 * @throws LoaderxError UNSUPPORTED where no typed array holds the items (`numpy:|S5`, long double)
 */
export function toNative<D extends DType>(array: NdArray<D>): NdArray<NativeOf<D>> {
  const { info, shape, data } = arrayParts(array, 'array');
  const native = nativeInfo(info);
  // The dtype's name decides both the typed array and NativeOf; the compiler cannot see that.
  if (native === info) return array as unknown as NdArray<NativeOf<D>>;
  return {
    dtype: native.name,
    shape,
    data: swappedData(info, data, native),
  } as unknown as NdArray<NativeOf<D>>;
}

/** The dtype `toNative` gives. Throws UNSUPPORTED where there is none. */
export function nativeInfo(info: DTypeInfo): DTypeInfo {
  if (info.nativeName === undefined) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `no typed array holds ${show(info.name)}: read the stored bytes in data`,
      { field: 'dtype' },
    );
  }
  return info.nativeName === info.name ? info : dtypeOf(info.nativeName);
}

/** The items of `data` with each number's bytes reversed, in new memory. */
export function swappedData(info: DTypeInfo, data: Data, native: DTypeInfo): Data {
  const swapped = Buffer.allocUnsafeSlow(data.byteLength);
  swapped.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  if (info.swapBytes === 2) swapped.swap16();
  else if (info.swapBytes === 4) swapped.swap32();
  else if (info.swapBytes === 8) swapped.swap64();
  const { constructorOf } = native;
  return new constructorOf(swapped.buffer, 0, swapped.byteLength / constructorOf.BYTES_PER_ELEMENT);
}
