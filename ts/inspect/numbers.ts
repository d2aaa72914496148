/**
 * Items as a person reads them: one text for each, whatever the dtype.
 */
import { type DTypeInfo, dtypeOf } from '../dtype.js';
import { quoted } from '../errors.js';
import { type NdArray, toNative } from '../ndarray.js';

/** Gives the text of item `index` of an array. */
export type ItemText = (index: number) => string;

/** How the items of an array are written. */
export function itemTexts(array: NdArray): ItemText {
  const info = dtypeOf(array.dtype);
  if (info.nativeName !== undefined && info.nativeName !== info.name) {
    // One at a time: few are shown of an array that may be large.
    return (index) => itemTexts(toNative(itemsOf(array, info, index, 1)))(0);
  }
  const data: ArrayLike<number | bigint> = array.data;
  const number = (index: number): number => Number(data[index] ?? 0);
  switch (info.kind) {
    case 'b':
      return (index) => (number(index) === 0 ? 'false' : 'true');
    case 'i':
    case 'u':
      return (index) => String(data[index]);
    case 'f':
      if (info.name === 'float16') return (index) => decimal(float16(number(index)));
      if (info.nativeName !== undefined) return (index) => decimal(number(index));
      return storedText(array, info);
    case 'c':
      if (info.nativeName === undefined) return storedText(array, info);
      return (index) => complex(number(index * 2), number(index * 2 + 1));
    case 'M':
    case 'm':
      return timeTexts(data as BigInt64Array, info);
    case 'V': {
      const decode = narrowFloats.get(info.name);
      if (decode !== undefined) return (index) => decimal(decode(number(index)));
      return storedText(array, info);
    }
    default:
      return storedText(array, info);
  }
}

/** Items `first` up to `first + count` of an array, as one dimension. */
function itemsOf(array: NdArray, info: DTypeInfo, first: number, count: number): NdArray {
  const { itemElements } = info;
  const data = array.data.subarray(first * itemElements, (first + count) * itemElements);
  return { dtype: array.dtype, shape: [count], data } as NdArray;
}

/**
 * The first `count` items, or all there are, as numbers: two for a complex one, bigints for what has 64
 * bits, and the stored bytes of dtypes that are no numbers.
 */
export function itemNumbers(array: NdArray, count: number): ArrayLike<number | bigint> {
  const info = dtypeOf(array.dtype);
  const all = array.data.length / info.itemElements;
  const some = itemsOf(array, info, 0, Math.min(count, all));
  if (info.nativeName !== undefined && info.nativeName !== info.name) {
    return itemNumbers(toNative(some), count);
  }
  const decode = info.name === 'float16' ? float16 : narrowFloats.get(info.name);
  return decode === undefined ? some.data : Array.from(some.data as Uint8Array, decode);
}

/** Five significant digits, as short as they can be written. */
function decimal(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? 'nan' : value < 0 ? '-inf' : 'inf';
  return String(Number(value.toPrecision(5)));
}

function complex(real: number, imaginary: number): string {
  const part = decimal(imaginary);
  return `${decimal(real)}${part.startsWith('-') ? '' : '+'}${part}i`;
}

// ---- dtypes held as stored bytes ----

const utf8 = new TextDecoder('utf-8', { fatal: true });
/** Bytes of an item that are shown. */
const itemBytesShown = 256;

function storedText(array: NdArray, info: DTypeInfo): ItemText {
  const bytes = array.data as Uint8Array;
  const { itemBytes } = info;
  const isBig = info.numpy?.startsWith('>') ?? false;
  return (index) => {
    const whole = bytes.subarray(index * itemBytes, (index + 1) * itemBytes);
    const used = info.kind === 'U' || info.kind === 'S' ? withoutZeros(whole) : whole;
    const isCut = used.byteLength > itemBytesShown;
    const end = isCut ? itemBytesShown : info.kind === 'U' ? itemBytes : used.byteLength;
    const item = whole.subarray(0, end);
    const more = isCut ? '…' : '';
    if (info.kind === 'U') return `${quoted(utf32(item, isBig))}${more}`;
    if (info.kind === 'S') {
      try {
        // A letter that the end cuts in two is left out.
        const text = isCut
          ? new TextDecoder('utf-8', { fatal: true }).decode(item, { stream: true })
          : utf8.decode(item);
        return `${quoted(text)}${more}`;
      } catch {
        // Bytes that are no text.
      }
    }
    const hidden = itemBytes > itemBytesShown ? '…' : '';
    return `${Buffer.from(whole.subarray(0, itemBytesShown)).toString('hex')}${hidden}`;
  };
}

function withoutZeros(bytes: Uint8Array): Uint8Array {
  let end = bytes.byteLength;
  while (end > 0 && bytes[end - 1] === 0) end -= 1;
  return bytes.subarray(0, end);
}

function utf32(bytes: Uint8Array, isBig: boolean): string {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  let text = '';
  for (let at = 0; at + 4 <= bytes.byteLength; at += 4) {
    const point = view.getUint32(at, !isBig);
    text += point <= 0x10_ffff ? String.fromCodePoint(point) : '\ufffd';
  }
  return text.replace(/\0+$/, '');
}

// ---- datetimes and durations ----

const notATime = -(2n ** 63n);
const secondsOf: ReadonlyMap<string, bigint> = new Map([
  ['W', 604_800n],
  ['D', 86_400n],
  ['h', 3600n],
  ['m', 60n],
  ['s', 1n],
]);
const digitsOf: ReadonlyMap<string, number> = new Map([
  ['ms', 3],
  ['us', 6],
  ['ns', 9],
  ['ps', 12],
  ['fs', 15],
  ['as', 18],
]);

function timeTexts(data: BigInt64Array, info: DTypeInfo): ItemText {
  const [, countText = '', unit = ''] = /\[(\d*)(\w+)\]$/.exec(info.numpy ?? '') ?? [];
  const count = countText === '' ? 1n : BigInt(countText);
  return (index) => {
    const stored = data[index] ?? 0n;
    if (stored === notATime) return 'NaT';
    const value = stored * count;
    if (info.kind === 'm') return unit === '' ? `${value}` : `${value} ${unit}`;
    return instant(value, unit) ?? `${value} ${unit}`.trimEnd();
  };
}

/** ISO 8601; undefined where no calendar reaches. */
function instant(value: bigint, unit: string): string | undefined {
  if (unit === 'Y') return yearText(1970n + value);
  if (unit === 'M') {
    const months = 1970n * 12n + value;
    const year = floorDivided(months, 12n);
    return `${yearText(year)}-${String(months - year * 12n + 1n).padStart(2, '0')}`;
  }
  const digits = digitsOf.get(unit);
  const perUnit = secondsOf.get(unit);
  if (digits === undefined && perUnit === undefined) return undefined;
  const perSecond = 10n ** BigInt(digits ?? 0);
  const seconds = perUnit === undefined ? floorDivided(value, perSecond) : value * perUnit;
  const date = new Date(Number(seconds) * 1000);
  if (Number.isNaN(date.getTime())) return undefined;
  const text = date.toISOString().replace(/\.000Z$/, '');
  if (unit === 'D' || unit === 'W') return text.slice(0, text.indexOf('T'));
  if (digits === undefined) return text;
  return `${text}.${String(value - seconds * perSecond).padStart(digits, '0')}`;
}

function yearText(year: bigint): string {
  return year < 0n ? `-${String(-year).padStart(4, '0')}` : String(year).padStart(4, '0');
}

function floorDivided(value: bigint, by: bigint): bigint {
  const quotient = value / by;
  return value % by < 0n ? quotient - 1n : quotient;
}

// ---- floats of 8 and 16 bits ----

/** A finite float of so many bits. */
function smallFloat(
  bits: number,
  exponentBits: number,
  mantissaBits: number,
  bias: number,
): number {
  const sign = bits >> (exponentBits + mantissaBits) === 0 ? 1 : -1;
  const exponent = (bits >> mantissaBits) & (2 ** exponentBits - 1);
  const mantissa = bits & (2 ** mantissaBits - 1);
  if (exponent === 0) return sign * mantissa * 2 ** (1 - bias - mantissaBits);
  return sign * (1 + mantissa / 2 ** mantissaBits) * 2 ** (exponent - bias);
}

export function float16(bits: number): number {
  if ((bits & 0x7c00) !== 0x7c00) return smallFloat(bits, 5, 10, 15);
  if ((bits & 0x03ff) !== 0) return Number.NaN;
  return bits >> 15 === 0 ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY;
}

const word = new DataView(new ArrayBuffer(4));

function bfloat16(bits: number): number {
  word.setUint32(0, bits * 65_536);
  return word.getFloat32(0);
}

function float8e5m2(bits: number): number {
  return float16(bits << 8);
}

const narrowFloats: ReadonlyMap<string, (bits: number) => number> = new Map([
  ['bfloat16', bfloat16],
  ['float8_e5m2', float8e5m2],
  ['float8_e4m3fn', (bits) => ((bits & 0x7f) === 0x7f ? Number.NaN : smallFloat(bits, 4, 3, 7))],
  // The "uz" kinds have one zero, and NaN where the other would be.
  ['float8_e4m3fnuz', (bits) => (bits === 0x80 ? Number.NaN : smallFloat(bits, 4, 3, 8))],
  ['float8_e5m2fnuz', (bits) => (bits === 0x80 ? Number.NaN : smallFloat(bits, 5, 2, 16))],
  ['float8_e8m0fnu', (bits) => (bits === 0xff ? Number.NaN : 2 ** (bits - 127))],
]);
