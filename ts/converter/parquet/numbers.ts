/**
 * Numbers of a file as numbers of the declared dtype. Same bits stay as they are; a cast keeps every value or
 * fails at the one that it cannot keep. Floats alone may lose digits, where a card asks for narrower ones.
 */
import { dtypeOf, integerRange } from '../../dtype.js';
import { alignedWords, type Physical } from './encodings.js';

/** Dtypes that a container takes from a dataset, with their bytes. */
export const numberBytes: ReadonlyMap<string, number> = new Map([
  ['bool', 1],
  ['int8', 1],
  ['uint8', 1],
  ['int16', 2],
  ['uint16', 2],
  ['int32', 4],
  ['uint32', 4],
  ['int64', 8],
  ['uint64', 8],
  ['float16', 2],
  ['float32', 4],
  ['float64', 8],
]);

/** A value that the declared dtype does not hold. The caller knows its row. */
export class Unfit extends Error {
  override readonly name = 'Unfit';
  /** Its position among the values. */
  readonly index: number;

  constructor(index: number, value: number | bigint, dtype: string) {
    super(`${value} does not fit ${dtype}`);
    this.index = index;
  }
}

/** Turns values as they lie in a file into bytes of the dtype. */
export type Caster = (values: Uint8Array) => Uint8Array;

/**
 * @param stored what the file's values are
 * @param dtype what they are declared to be
 * @returns undefined where there is no such cast
 */
export function casterOf(physical: Physical, stored: string, dtype: string): Caster | undefined {
  const bytes = numberBytes.get(stored);
  if (bytes === undefined || !numberBytes.has(dtype)) return undefined;
  if (stored === dtype) {
    if (bytes === physical.width) return same;
    // INT32 holds the narrow integers; the file's word that they are narrow is checked.
    return physical.type === 'INT32' ? narrowing(dtype) : undefined;
  }
  const from = physical.type === 'INT32' && bytes < 4 ? 'int32' : stored;
  const isFloat = (name: string): boolean => name.startsWith('float');
  if (isFloat(from)) return isFloat(dtype) ? floatCaster(from, dtype) : truncating(from, dtype);
  return isFloat(dtype) ? fromInteger(from, dtype) : integerCaster(from, dtype);
}

/** 32-bit integers as the narrow ones that they are; a loop of its own, since most small integers come so. */
function narrowing(dtype: string): Caster {
  const arrayOf = { int8: Int8Array, uint8: Uint8Array, int16: Int16Array, uint16: Uint16Array }[
    dtype as 'int8' | 'uint8' | 'int16' | 'uint16'
  ];
  return (values) => {
    const wide = alignedWords(values);
    const narrow = new arrayOf(wide.length);
    for (let index = 0; index < wide.length; index += 1) {
      const value = (wide[index] as number) | 0;
      narrow[index] = value;
      if (narrow[index] !== value) throw new Unfit(index, value, dtype);
    }
    return new Uint8Array(narrow.buffer);
  };
}

function same(values: Uint8Array): Uint8Array {
  return values;
}

type Reader = (index: number) => number | bigint;

function aligned(values: Uint8Array, width: number): Uint8Array {
  return values.byteOffset % width === 0 ? values : Uint8Array.from(values);
}

/** How a value of a dtype is read. 64-bit integers are bigints, everything else numbers. */
function readerOf(dtype: string, values: Uint8Array): Reader {
  const width = numberBytes.get(dtype) ?? 1;
  const { buffer, byteOffset, byteLength } = aligned(values, width);
  const length = byteLength / width;
  switch (dtype) {
    case 'int8':
      return at(new Int8Array(buffer, byteOffset, length));
    case 'int16':
      return at(new Int16Array(buffer, byteOffset, length));
    case 'uint16':
      return at(new Uint16Array(buffer, byteOffset, length));
    case 'int32':
      return at(new Int32Array(buffer, byteOffset, length));
    case 'uint32':
      return at(new Uint32Array(buffer, byteOffset, length));
    case 'int64':
      return at(new BigInt64Array(buffer, byteOffset, length));
    case 'uint64':
      return at(new BigUint64Array(buffer, byteOffset, length));
    case 'float16': {
      const bits = new Uint16Array(buffer, byteOffset, length);
      return (index) => halfToNumber(bits[index] ?? 0);
    }
    case 'float32':
      return at(new Float32Array(buffer, byteOffset, length));
    case 'float64':
      return at(new Float64Array(buffer, byteOffset, length));
    default:
      return at(new Uint8Array(buffer, byteOffset, length));
  }
}

function at(array: ArrayLike<number> | ArrayLike<bigint>): Reader {
  return (index) => array[index] as number | bigint;
}

type Writer = (index: number, value: number) => void;

function writerOf(dtype: string, buffer: ArrayBuffer): Writer {
  switch (dtype) {
    case 'int8':
      return into(new Int8Array(buffer));
    case 'int16':
      return into(new Int16Array(buffer));
    case 'uint16':
      return into(new Uint16Array(buffer));
    case 'int32':
      return into(new Int32Array(buffer));
    case 'uint32':
      return into(new Uint32Array(buffer));
    case 'int64':
    case 'uint64': {
      const wide = new BigInt64Array(buffer);
      return (index, value) => {
        wide[index] = BigInt(value);
      };
    }
    case 'float16': {
      const bits = new Uint16Array(buffer);
      return (index, value) => {
        bits[index] = numberToHalf(value);
      };
    }
    case 'float32':
      return into(new Float32Array(buffer));
    case 'float64':
      return into(new Float64Array(buffer));
    default:
      return into(new Uint8Array(buffer));
  }
}

function into(array: { [index: number]: number }): Writer {
  return (index, value) => {
    array[index] = value;
  };
}

function integerCaster(from: string, dtype: string): Caster {
  const [least, most] = integerRange(dtypeOf(dtype));
  const [fromLeast, fromMost] = integerRange(dtypeOf(from));
  const [low, high] = [Number(least), Number(most)];
  const width = numberBytes.get(dtype) ?? 1;
  const fromWide = numberBytes.get(from) === 8;
  const mustCheck = fromLeast < least || fromMost > most;
  return (values) => {
    const read = readerOf(from, values);
    const length = values.byteLength / (numberBytes.get(from) ?? 1);
    const buffer = new ArrayBuffer(length * width);
    if (fromWide && width === 8) {
      // int64 and uint64: the bits stay, and only the upper one says whether the value does.
      const words = alignedWords(values);
      for (let index = 0; mustCheck && index < length; index += 1) {
        if ((words[index * 2 + 1] as number) >>> 31 === 1) {
          throw new Unfit(index, read(index), dtype);
        }
      }
      new Uint8Array(buffer).set(values);
      return new Uint8Array(buffer);
    }
    const write = writerOf(dtype, buffer);
    for (let index = 0; index < length; index += 1) {
      const value = read(index);
      if (mustCheck && (value < low || value > high)) throw new Unfit(index, value, dtype);
      write(index, Number(value));
    }
    return new Uint8Array(buffer);
  };
}

/** Greatest integer up to which a float dtype has all of them. */
const exactIntegers: ReadonlyMap<string, number> = new Map([
  ['float16', 2 ** 11],
  ['float32', 2 ** 24],
  ['float64', 2 ** 53],
]);

function fromInteger(from: string, dtype: string): Caster {
  const most = exactIntegers.get(dtype) ?? 0;
  return casting(from, dtype, (value, index) => {
    if (value > most || value < -most) throw new Unfit(index, value, dtype);
    return Number(value);
  });
}

function truncating(from: string, dtype: string): Caster {
  const [least, most] = integerRange(dtypeOf(dtype));
  return casting(from, dtype, (value, index) => {
    const number = Number(value);
    // 2^63 is a double and no int64, so the comparison is of integers.
    if (!Number.isInteger(number) || BigInt(number) < least || BigInt(number) > most) {
      throw new Unfit(index, number, dtype);
    }
    return number;
  });
}

function floatCaster(from: string, dtype: string): Caster {
  return casting(from, dtype, (value) => Number(value));
}

function casting(
  from: string,
  dtype: string,
  convert: (value: number | bigint, index: number) => number,
): Caster {
  const width = numberBytes.get(dtype) ?? 1;
  return (values) => {
    const read = readerOf(from, values);
    const length = values.byteLength / (numberBytes.get(from) ?? 1);
    const buffer = new ArrayBuffer(length * width);
    const write = writerOf(dtype, buffer);
    for (let index = 0; index < length; index += 1) write(index, convert(read(index), index));
    return new Uint8Array(buffer);
  };
}

function halfToNumber(bits: number): number {
  const sign = bits >> 15 === 0 ? 1 : -1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 0) return sign * fraction * 2 ** -24;
  if (exponent === 31) return fraction === 0 ? sign * Number.POSITIVE_INFINITY : Number.NaN;
  return sign * (1024 + fraction) * 2 ** (exponent - 25);
}

/** To the nearest, ties to even. */
function numberToHalf(value: number): number {
  if (Number.isNaN(value)) return 0x7e00;
  const sign = value < 0 || Object.is(value, -0) ? 0x8000 : 0;
  const size = Math.abs(value);
  if (size >= 65520) return sign | 0x7c00;
  if (size < 2 ** -14) return sign | toEven(size * 2 ** 24);
  const exponent = Math.floor(Math.log2(size));
  // log2 may round up just below a power of two.
  const floor = 2 ** exponent > size ? exponent - 1 : exponent;
  // Rounding up to 2048 carries into the exponent by itself.
  return sign | ((floor + 14) * 1024 + toEven(size * 2 ** (10 - floor)));
}

function toEven(value: number): number {
  const floor = Math.floor(value);
  const rest = value - floor;
  if (rest > 0.5 || (rest === 0.5 && floor % 2 === 1)) return floor + 1;
  return floor;
}
