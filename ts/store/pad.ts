/**
 * Ragged records in one dense array, the gaps filled, with a mask of what is a record's own.
 *
 * Options are checked here; the native side then writes array and mask in one pass.
 */
import { type Data, type DTypeInfo, integerRange } from '../dtype.js';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { native } from '../native/load.js';
import { rankMax } from '../ndarray.js';
import type { PadOptions } from './capability.js';
import { knownFields } from './fields.js';
import { wordsOf } from './ids.js';

/** What is padded: the packed form of a batch. */
export interface PadSource {
  readonly info: DTypeInfo;
  readonly ndim: number;
  readonly length: number;
  readonly values: Data;
  readonly offsets: Uint32Array | Float64Array;
  readonly dims: Uint32Array | Float64Array;
}

export interface Padded {
  readonly shape: readonly number[];
  readonly items: Data;
  readonly mask: Uint8Array;
}

/** Pads. Throws TypeError, RangeError for options that do not fit the dtype or the records. */
export function padRecords(source: PadSource, options: PadOptions): Padded {
  const fields = knownFields(options, ['value', 'length']);
  if (source.ndim >= rankMax) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `records of ${source.ndim} dimensions would be an array of ${source.ndim + 1}, and ${rankMax} is the most: take them one by one`,
      { field: 'ndim' },
    );
  }
  const item = itemBytesOf(source.info, fields.value);
  const sizes = sizesOf(source, fields.length);
  const { info, length, values, dims } = source;
  const cellCount = sizes.reduce((product, size) => product * size, 1);
  const itemCount = length * cellCount;
  const bytes = bytesOf(itemCount * info.itemBytes);
  const mask = new Uint8Array(itemCount);
  native().pad(
    new Uint8Array(values.buffer, values.byteOffset, values.byteLength),
    wordsOf(dims),
    wordsOf(sizes),
    item,
    bytes,
    mask,
  );
  const items = new info.constructorOf(
    bytes.buffer,
    0,
    bytes.byteLength / info.constructorOf.BYTES_PER_ELEMENT,
  );
  return { shape: [length, ...sizes], items, mask };
}

function bytesOf(length: number): Uint8Array {
  try {
    return new Uint8Array(length);
  } catch {
    throw new ArgumentRangeError('length', `the padded array has ${length} bytes`, 'TOO_LARGE');
  }
}

/** The padded size of each axis. */
function sizesOf(source: PadSource, length: unknown): number[] {
  const { ndim, dims } = source;
  const largest = new Array<number>(ndim).fill(0);
  for (let index = 0; index < dims.length; index += 1) {
    largest[index % ndim] = Math.max(largest[index % ndim] ?? 0, dims[index] ?? 0);
  }
  if (length === undefined) return largest;
  const asked: readonly unknown[] = Array.isArray(length) ? length : [length, ...largest.slice(1)];
  if (asked.length !== ndim) {
    throw new ArgumentRangeError(
      'length',
      `length has ${asked.length} sizes, and the records have ${ndim} axes`,
    );
  }
  return asked.map((size, axis) => {
    if (typeof size !== 'number' || !Number.isSafeInteger(size)) {
      throw new ArgumentTypeError('length', `length must be an integer, got ${show(size)}`);
    }
    const needed = largest[axis] ?? 0;
    if (size < needed) {
      const record = firstAbove(source, axis, size);
      throw new ArgumentRangeError(
        'length',
        `record ${record} of the batch has ${dims[record * ndim + axis] ?? 0} items on axis ${axis}, and length is ${size}: nothing is cut off`,
      );
    }
    return size;
  });
}

function firstAbove(source: PadSource, axis: number, size: number): number {
  let record = 0;
  while ((source.dims[record * source.ndim + axis] ?? Infinity) <= size) record += 1;
  return record;
}

/** One item with this value, as it is stored. */
function itemBytesOf(info: DTypeInfo, value: unknown): Uint8Array {
  if (typeof value !== 'number' && typeof value !== 'bigint') {
    throw new ArgumentTypeError('value', `value must be a number or bigint, got ${show(value)}`);
  }
  const bytes = new Uint8Array(info.itemBytes);
  const isZero = value === 0n || Object.is(value, 0);
  if (isZero) return bytes;
  const view = new DataView(bytes.buffer);
  const isLittle = info.swapBytes === 1;
  if (info.name === 'bfloat16') {
    const bits = smallFloatBits(numberOf(info, value), 8, 7);
    assertFinite(info, Number(value), (bits & 0x7fff) === 0x7f80 ? Infinity : 0);
    view.setUint16(0, bits, true);
    return bytes;
  }
  if (info.nativeName === undefined || info.kind === 'V') {
    throw new ArgumentTypeError(
      'value',
      `${show(info.name)} has no numbers here: only value 0 (zero bytes) pads it, got ${show(value)}`,
    );
  }
  switch (info.kind) {
    case 'f':
      setFloat(view, info, info.itemBytes, numberOf(info, value), isLittle);
      return bytes;
    case 'c':
      setFloat(view, info, info.itemBytes / 2, numberOf(info, value), isLittle);
      return bytes;
    default:
      setInteger(view, info, integerOf(info, value), isLittle);
      return bytes;
  }
}

function numberOf(info: DTypeInfo, value: number | bigint): number {
  if (typeof value === 'number') return value;
  throw new ArgumentTypeError(
    'value',
    `value must be a number for ${show(info.name)}, got ${value}n`,
  );
}

function setFloat(
  view: DataView,
  info: DTypeInfo,
  width: number,
  value: number,
  isLittle: boolean,
): void {
  if (width === 8) {
    view.setFloat64(0, value, isLittle);
  } else if (width === 4) {
    assertFinite(info, value, Math.fround(value));
    view.setFloat32(0, value, isLittle);
  } else {
    const bits = smallFloatBits(value, 5, 10);
    assertFinite(info, value, (bits & 0x7fff) === 0x7c00 ? Infinity : 0);
    view.setUint16(0, bits, isLittle);
  }
}

/** A number must not become an infinity on its way. */
function assertFinite(info: DTypeInfo, value: number, stored: number): void {
  if (!Number.isFinite(value) || Number.isFinite(stored)) return;
  throw new ArgumentRangeError('value', `value ${value} is too large for ${show(info.name)}`);
}

function integerOf(info: DTypeInfo, value: number | bigint): bigint {
  if (typeof value === 'number' && !Number.isSafeInteger(value)) {
    throw new ArgumentRangeError(
      'value',
      `value must be an integer for ${show(info.name)}, got ${value}`,
    );
  }
  const integer = BigInt(value);
  const [least, most] = integerRange(info);
  if (integer < least || integer > most) {
    throw new ArgumentRangeError(
      'value',
      `value ${integer} does not fit ${show(info.name)}, which holds ${least} to ${most}`,
    );
  }
  return integer;
}

function setInteger(view: DataView, info: DTypeInfo, value: bigint, isLittle: boolean): void {
  const low = Number(BigInt.asUintN(32, value));
  switch (info.itemBytes) {
    case 1:
      view.setUint8(0, low & 0xff);
      break;
    case 2:
      view.setUint16(0, low & 0xffff, isLittle);
      break;
    case 4:
      view.setUint32(0, low, isLittle);
      break;
    default:
      view.setBigUint64(0, BigInt.asUintN(64, value), isLittle);
  }
}

/** The bits of a 16-bit float nearest to `value`, ties to even: float16 (5, 10) or bfloat16 (8, 7). */
export function smallFloatBits(value: number, exponentBits: number, mantissaBits: number): number {
  const exponentMax = 2 ** exponentBits - 1;
  const bias = (exponentMax - 1) / 2;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const one = 2 ** mantissaBits;
  if (Number.isNaN(value)) return exponentMax * one + one / 2;
  const size = Math.abs(value);
  if (size === Infinity) return sign + exponentMax * one;
  // Below the normal range the exponent stays and the mantissa loses its leading 1.
  const exponent = Math.max(Math.floor(Math.log2(size)), 1 - bias);
  const corrected = size < 2 ** exponent ? Math.max(exponent - 1, 1 - bias) : exponent;
  const mantissa = roundToEven((size / 2 ** corrected) * one);
  const bits = (corrected + bias - 1) * one + mantissa;
  return sign + Math.min(bits, exponentMax * one);
}

function roundToEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest < 0.5) return floor;
  if (rest > 0.5) return floor + 1;
  return floor % 2 === 0 ? floor : floor + 1;
}
