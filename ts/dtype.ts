/**
 * What an item is: its name here, its NumPy string, its typed array, its bytes.
 *
 * A dtype has exactly one name. The plain ones (`'float32'`) are little-endian numbers; every other
 * NumPy dtype is `'numpy:'` and its array-interface string with the byte order written out:
 *
 * | name                         | stored as           | typed array                                  |
 * | ---------------------------- | ------------------- | -------------------------------------------- |
 * | `bool`, `uint8`, `float8_*`  | 1 byte              | `Uint8Array`                                 |
 * | `float16`, `bfloat16`        | 2 bytes             | `Uint16Array` of the bits                    |
 * | `int64`, `uint64`            | 8 bytes             | `BigInt64Array`, `BigUint64Array`            |
 * | `complex64`, `complex128`    | 8, 16 bytes         | `Float32Array`, `Float64Array`, (re, im, …)  |
 * | `numpy:<M8[ns]`, `numpy:<m8` | 8 bytes             | `BigInt64Array` (NaT is -2^63)               |
 * | `numpy:>f4`, `numpy:|S5`, …  | as NumPy stores it  | `Uint8Array` of the stored bytes             |
 */
import { ArgumentTypeError, show } from './errors.js';

/** Integers, floats and bool, as both dialects have them. */
export type NumberDType =
  | 'bool'
  | 'int8'
  | 'uint8'
  | 'int16'
  | 'uint16'
  | 'int32'
  | 'uint32'
  | 'int64'
  | 'uint64'
  | 'float16'
  | 'float32'
  | 'float64';

/**
 * The name of a dtype. `float8_*` are `e4m3fn`, `e4m3fnuz`, `e5m2`, `e5m2fnuz` and `e8m0fnu`;
 * they and `bfloat16` exist in the 2.8 dialect only, `numpy:` ones in the 2.4 dialect only.
 */
export type DType =
  | NumberDType
  | 'complex64'
  | 'complex128'
  | 'bfloat16'
  | `float8_${string}`
  | `numpy:${string}`;

/**
 * The typed array of a dtype's items. It never depends on the Node version. `D` stands left of each
 * `extends` only, so that an array of one dtype is an array of any.
 */
export type DataOf<D extends DType> = DataByName[D];

/** A lookup and not a condition: so `NdArray<'uint8'>` is an `NdArray`. */
interface DataByName {
  bool: Uint8Array;
  int8: Int8Array;
  uint8: Uint8Array;
  int16: Int16Array;
  uint16: Uint16Array;
  int32: Int32Array;
  uint32: Uint32Array;
  int64: BigInt64Array;
  uint64: BigUint64Array;
  float16: Uint16Array;
  float32: Float32Array;
  float64: Float64Array;
  complex64: Float32Array;
  complex128: Float64Array;
  bfloat16: Uint16Array;
  'numpy:<f16': Uint8Array;
  'numpy:<c32': Uint8Array;
  [float8: `float8_${string}`]: Uint8Array;
  [foreign: `numpy:${string}`]: BigInt64Array | Uint8Array;
  [time: `numpy:<M8${string}` | `numpy:<m8${string}`]: BigInt64Array;
  [big: `numpy:>${string}`]: Uint8Array;
  [bytes: `numpy:|${string}`]: Uint8Array;
  [text: `numpy:<U${string}`]: Uint8Array;
}

interface SwappedNames {
  'numpy:>i2': 'int16';
  'numpy:>u2': 'uint16';
  'numpy:>i4': 'int32';
  'numpy:>u4': 'uint32';
  'numpy:>i8': 'int64';
  'numpy:>u8': 'uint64';
  'numpy:>f2': 'float16';
  'numpy:>f4': 'float32';
  'numpy:>f8': 'float64';
  'numpy:>c8': 'complex64';
  'numpy:>c16': 'complex128';
}

/** The dtype that `toNative()` gives: little-endian, where a typed array exists for it. */
export type NativeOf<D extends DType> = D extends keyof SwappedNames
  ? SwappedNames[D]
  : D extends `numpy:>M8${infer Unit}`
    ? `numpy:<M8${Unit}`
    : D extends `numpy:>m8${infer Unit}`
      ? `numpy:<m8${Unit}`
      : D extends `numpy:${infer Text}`
        ? string extends Text
          ? DType
          : D
        : D;

/** Every typed array that holds items. */
export type Data = DataOf<DType>;

/** The constructor of a typed array that holds items. */
export interface DataConstructor {
  readonly name: string;
  readonly BYTES_PER_ELEMENT: number;
  new (buffer: ArrayBufferLike, byteOffset?: number, length?: number): Data;
}

/** One dtype, worked out. */
export interface DTypeInfo<D extends DType = DType> {
  readonly name: D;
  /** NumPy's kind letter; `'V'` for the 2.8 dialect's float8 and bfloat16, as NumPy has it. */
  readonly kind: 'b' | 'i' | 'u' | 'f' | 'c' | 'M' | 'm' | 'S' | 'U' | 'V';
  /** NumPy's array-interface string; undefined where the 2.4 dialect has no such dtype. */
  readonly numpy: string | undefined;
  /** The name in the 2.8 dialect; undefined where that dialect has no such dtype. */
  readonly name28: string | undefined;
  /** Bytes of one item, 1 or more. */
  readonly itemBytes: number;
  readonly constructorOf: DataConstructor;
  /** Typed-array elements of one item: 2 for complex, `itemBytes` for stored bytes, else 1. */
  readonly itemElements: number;
  /** Bytes that are reversed as one number by `toNative`; 1 where the order is native already. */
  readonly swapBytes: number;
  /** What `toNative` makes of it; itself where it is native; undefined where no typed array fits. */
  readonly nativeName: DType | undefined;
}

function plain<D extends DType>(
  name: D,
  numpy: string | undefined,
  kind: DTypeInfo['kind'],
  itemBytes: number,
  constructorOf: DataConstructor,
  in28 = true,
): DTypeInfo<D> {
  return Object.freeze({
    name,
    kind,
    numpy,
    name28: in28 ? name : undefined,
    itemBytes,
    constructorOf,
    itemElements: itemBytes / constructorOf.BYTES_PER_ELEMENT,
    swapBytes: 1,
    nativeName: name,
  });
}

const plainTypes: readonly DTypeInfo[] = [
  plain('bool', '|b1', 'b', 1, Uint8Array),
  plain('int8', '|i1', 'i', 1, Int8Array),
  plain('uint8', '|u1', 'u', 1, Uint8Array),
  plain('int16', '<i2', 'i', 2, Int16Array),
  plain('uint16', '<u2', 'u', 2, Uint16Array),
  plain('int32', '<i4', 'i', 4, Int32Array),
  plain('uint32', '<u4', 'u', 4, Uint32Array),
  plain('int64', '<i8', 'i', 8, BigInt64Array),
  plain('uint64', '<u8', 'u', 8, BigUint64Array),
  plain('float16', '<f2', 'f', 2, Uint16Array),
  plain('float32', '<f4', 'f', 4, Float32Array),
  plain('float64', '<f8', 'f', 8, Float64Array),
  plain('complex64', '<c8', 'c', 8, Float32Array),
  plain('complex128', '<c16', 'c', 16, Float64Array),
  plain('bfloat16', undefined, 'V', 2, Uint16Array),
  plain('float8_e4m3fn', undefined, 'V', 1, Uint8Array),
  plain('float8_e4m3fnuz', undefined, 'V', 1, Uint8Array),
  plain('float8_e5m2', undefined, 'V', 1, Uint8Array),
  plain('float8_e5m2fnuz', undefined, 'V', 1, Uint8Array),
  plain('float8_e8m0fnu', undefined, 'V', 1, Uint8Array),
];

const byName: ReadonlyMap<string, DTypeInfo> = new Map(plainTypes.map((info) => [info.name, info]));
const byNumpy: ReadonlyMap<string, DTypeInfo> = new Map(
  plainTypes.flatMap((info) => (info.numpy === undefined ? [] : [[info.numpy, info]])),
);

/** Why a NumPy string names no dtype that can be held. */
export interface DTypeRefusal {
  /** `'MALFORMED'`: NumPy refuses it too, or never stores it. `'UNSUPPORTED'`: NumPy takes it. */
  readonly code: 'MALFORMED' | 'UNSUPPORTED';
  /** The end of a sentence that begins with the text. */
  readonly reason: string;
}

/** Whether a lookup ended in a refusal. */
export function isRefusal(found: DTypeInfo | DTypeRefusal): found is DTypeRefusal {
  return 'reason' in found;
}

function refusal(code: DTypeRefusal['code'], reason: string): DTypeRefusal {
  return { code, reason };
}

/** NumPy's names and letters whose meaning is the same on every platform it runs on here. */
const aliases: ReadonlyMap<string, string> = new Map([
  ...['?', 'bool', 'bool_'].map((text) => [text, '|b1'] as const),
  ...['b', 'byte', 'int8'].map((text) => [text, '|i1'] as const),
  ...['B', 'ubyte', 'uint8'].map((text) => [text, '|u1'] as const),
  ...['h', 'short', 'int16'].map((text) => [text, '<i2'] as const),
  ...['H', 'ushort', 'uint16'].map((text) => [text, '<u2'] as const),
  ...['i', 'intc', 'int32'].map((text) => [text, '<i4'] as const),
  ...['I', 'uintc', 'uint32'].map((text) => [text, '<u4'] as const),
  ...['q', 'n', 'p', 'longlong', 'int64', 'int', 'int_', 'intp'].map((t) => [t, '<i8'] as const),
  ...['Q', 'N', 'P', 'ulonglong', 'uint64', 'uint', 'uintp'].map((t) => [t, '<u8'] as const),
  ...['e', 'half', 'float16'].map((text) => [text, '<f2'] as const),
  ...['f', 'single', 'float32'].map((text) => [text, '<f4'] as const),
  ...['d', 'double', 'float', 'float64'].map((text) => [text, '<f8'] as const),
  ...['g', 'longdouble', 'float128'].map((text) => [text, '<f16'] as const),
  ...['F', 'csingle', 'complex64'].map((text) => [text, '<c8'] as const),
  ...['D', 'cdouble', 'complex', 'complex128'].map((text) => [text, '<c16'] as const),
  ...['G', 'clongdouble', 'complex256'].map((text) => [text, '<c32'] as const),
  ...['M', 'datetime64'].map((text) => [text, '<M8'] as const),
  ...['m', 'timedelta64'].map((text) => [text, '<m8'] as const),
  ['c', '|S1'],
]);

const platformDependent = new Set(['l', 'L', 'long', 'ulong']);
const objectNames = new Set(['O', 'O8', 'object', 'object_', 'T']);
const sizeless = new Set(['S', 'U', 'V', 'a', 'str', 'str_', 'bytes', 'bytes_', 'void', 'unicode']);
const orderedPattern = /^([<>=|]?)(.+)$/s;
const numberPattern = /^([iufcb])(\d{1,4})$/;
const flexiblePattern = /^([SUVa])(\d{1,10})$/;
const timePattern = /^(?:([Mm])8|(datetime64|timedelta64))(?:\[(\d{0,10})(\p{L}{1,7})\])?$/u;
const dividedTimePattern = /^(?:[Mm]8|datetime64|timedelta64)\[[^\]]*\/\d+\]$/;
const timeUnits = new Set('Y M W D h m s ms us ns ps fs as generic'.split(' '));
const itemBytesMax = 2 ** 31 - 1;

/**
 * Reads a dtype text of a container's schema as NumPy does: `<f4`, and also `float32`, `f4`, `=f4`,
 * `|f4`. Structured, object and zero-size dtypes are refused, as the original refuses them, and
 * texts that mean different things on different platforms (`long`).
 */
export function dtypeFromNumpy(text: string): DTypeInfo | DTypeRefusal {
  const exact = byNumpy.get(text);
  if (exact !== undefined) return exact;
  if (/[,(){}]/.test(text) || /^\d+\D/.test(text)) {
    return refusal('UNSUPPORTED', 'is a structured dtype or a subarray, which no container holds');
  }
  const match = orderedPattern.exec(text);
  if (match === null) return refusal('MALFORMED', 'is no NumPy dtype');
  const order = match[1] ?? '';
  const body = match[2] ?? '';
  if (objectNames.has(body)) return refusal('UNSUPPORTED', 'holds Python objects, not items');
  if (sizeless.has(body)) return refusal('MALFORMED', 'has items of zero bytes');
  if (platformDependent.has(body)) {
    return refusal('UNSUPPORTED', 'has 4 or 8 bytes, depending on the platform that wrote it');
  }
  // NumPy takes a byte order before a letter or a sized kind, but not before a word.
  const alias = order === '' || body.length === 1 ? aliases.get(body) : undefined;
  if (alias !== undefined) return withOrder(order, alias.slice(1));
  return withOrder(order, body);
}

/** `body` is a kind with its size: `f4`, `U3`, `M8[ns]`. */
function withOrder(order: string, body: string): DTypeInfo | DTypeRefusal {
  const side = order === '>' ? '>' : '<';
  const number = numberPattern.exec(body);
  if (number !== null) {
    const sized = `${number[1]}${Number(number[2])}`;
    const single = byNumpy.get(`|${sized}`);
    if (single !== undefined) return single;
    const little = byNumpy.get(`<${sized}`);
    if (little !== undefined) return side === '<' ? little : swapped(little, sized);
    if (sized === 'f16' || sized === 'c32') {
      return storedBytes(`${side}${sized}`, sized === 'f16' ? 'f' : 'c', sized === 'f16' ? 16 : 32);
    }
    return refusal('MALFORMED', 'is no NumPy dtype');
  }
  const flexible = flexiblePattern.exec(body);
  if (flexible !== null) {
    const kind = flexible[1] === 'a' ? 'S' : (flexible[1] as 'S' | 'U' | 'V');
    const count = Number(flexible[2]);
    const itemBytes = kind === 'U' ? count * 4 : count;
    if (itemBytes === 0) return refusal('MALFORMED', 'has items of zero bytes');
    if (itemBytes > itemBytesMax) return refusal('MALFORMED', 'has items of 2 GiB or more');
    return storedBytes(`${kind === 'U' ? side : '|'}${kind}${count}`, kind, itemBytes);
  }
  const time = timePattern.exec(body);
  if (time !== null) {
    const kind = (time[1] ?? (time[2] === 'datetime64' ? 'M' : 'm')) as 'M' | 'm';
    return timeType(side, kind, time[3], time[4]);
  }
  if (dividedTimePattern.test(body)) {
    return refusal('UNSUPPORTED', 'has a divided time unit, which no container is written with');
  }
  return refusal('MALFORMED', 'is no NumPy dtype');
}

function swapped(little: DTypeInfo, sized: string): DTypeInfo {
  return Object.freeze({
    name: `numpy:>${sized}` as const,
    kind: little.kind,
    numpy: `>${sized}`,
    name28: undefined,
    itemBytes: little.itemBytes,
    constructorOf: Uint8Array,
    itemElements: little.itemBytes,
    swapBytes: little.constructorOf.BYTES_PER_ELEMENT,
    nativeName: little.name,
  });
}

function storedBytes(numpy: string, kind: DTypeInfo['kind'], itemBytes: number): DTypeInfo {
  return Object.freeze({
    name: `numpy:${numpy}` as const,
    kind,
    numpy,
    name28: undefined,
    itemBytes,
    constructorOf: Uint8Array,
    itemElements: itemBytes,
    swapBytes: 1,
    nativeName: undefined,
  });
}

function timeType(
  side: '<' | '>',
  kind: 'M' | 'm',
  countText: string | undefined,
  unitText: string | undefined,
): DTypeInfo | DTypeRefusal {
  const unit = unitText === 'μs' ? 'us' : unitText;
  if (unit !== undefined && !timeUnits.has(unit)) {
    return refusal('MALFORMED', 'has a time unit that NumPy does not know');
  }
  const count = countText === undefined || countText === '' ? 1 : Number(countText);
  if (count > 2 ** 31 - 1) return refusal('MALFORMED', 'has a time unit that is too long');
  const generic = unit === undefined || unit === 'generic';
  const suffix = generic ? '' : `[${count === 1 ? '' : count}${unit}]`;
  const little = `<${kind}8${suffix}`;
  if (side === '<') return plain(`numpy:${little}`, little, kind, 8, BigInt64Array, false);
  return Object.freeze({
    name: `numpy:>${kind}8${suffix}` as const,
    kind,
    numpy: `>${kind}8${suffix}`,
    name28: undefined,
    itemBytes: 8,
    constructorOf: Uint8Array,
    itemElements: 8,
    swapBytes: 8,
    nativeName: `numpy:${little}` as const,
  });
}

/** Reads a dtype name of the 2.8 dialect. There are no aliases. */
export function dtypeFromName28(text: string): DTypeInfo | DTypeRefusal {
  const found = byName.get(text);
  if (found !== undefined) return found;
  return refusal('MALFORMED', 'is no dtype of the 2.8 dialect');
}

/**
 * The dtype a caller names. Only the one name of each dtype is taken; another spelling is refused
 * with the name to use, so that the name alone decides the typed array.
 */
export function dtypeOf<D extends DType>(name: D, field?: string): DTypeInfo<D>;
export function dtypeOf(name: unknown, field?: string): DTypeInfo;
export function dtypeOf(name: unknown, field = 'dtype'): DTypeInfo {
  if (typeof name !== 'string') {
    throw new ArgumentTypeError(field, `${field} must be a dtype name, got ${show(name)}`);
  }
  const found = byName.get(name);
  if (found !== undefined) return found;
  const isNumpy = name.startsWith('numpy:');
  const parsed = dtypeFromNumpy(isNumpy ? name.slice('numpy:'.length) : name);
  if (isRefusal(parsed)) {
    const known = isNumpy ? parsed.reason : 'is no dtype';
    throw new ArgumentTypeError(field, `${field} ${show(name)} ${known}`);
  }
  if (parsed.name === name) return parsed;
  throw new ArgumentTypeError(field, `${field} ${show(name)} is called ${show(parsed.name)} here`);
}

const tagOf = Object.getOwnPropertyDescriptor(
  Object.getPrototypeOf(Uint8Array.prototype),
  Symbol.toStringTag,
)?.get as (this: unknown) => string | undefined;

const viewPrototype = Object.getPrototypeOf(Uint8Array.prototype) as object;

function viewGetter(name: 'length' | 'byteLength' | 'byteOffset' | 'buffer') {
  const { get } = Object.getOwnPropertyDescriptor(viewPrototype, name) as {
    readonly get: (this: unknown) => unknown;
  };
  return get;
}

const lengthOf = viewGetter('length');
const byteLengthOf = viewGetter('byteLength');
const byteOffsetOf = viewGetter('byteOffset');
const bufferOf = viewGetter('buffer');

/** The least and the greatest value of a dtype of integers, times or truth values. */
export function integerRange({ kind, itemBytes }: DTypeInfo): readonly [bigint, bigint] {
  if (kind === 'b') return [0n, 1n];
  const bits = BigInt(itemBytes * 8);
  const isSigned = kind === 'i' || kind === 'M' || kind === 'm';
  return isSigned ? [-(1n << (bits - 1n)), (1n << (bits - 1n)) - 1n] : [0n, (1n << bits) - 1n];
}

/** Whether what a typed array says of its memory is so: a subclass may say anything. */
export function isHonest(data: Data): boolean {
  // One by one: this is asked of every record that is appended.
  return (
    data.length === lengthOf.call(data) &&
    data.byteLength === byteLengthOf.call(data) &&
    data.byteOffset === byteOffsetOf.call(data) &&
    data.buffer === bufferOf.call(data)
  );
}

/** How many elements a typed array has, whatever it says. */
export function trueLength(data: Data): number {
  return lengthOf.call(data) as number;
}

/** The bytes of a typed array, wherever it says that they are. */
export function trueBytes(data: Data): Uint8Array {
  const buffer = bufferOf.call(data) as ArrayBuffer;
  return new Uint8Array(
    buffer,
    byteOffsetOf.call(data) as number,
    byteLengthOf.call(data) as number,
  );
}

/** `'Uint8Array'` and so on, also for one of another realm; undefined for anything else. */
export function typedArrayName(value: unknown): string | undefined {
  return tagOf.call(value);
}
