/**
 * Headers of `.npy` files.
 *
 * ```text
 * 0   93 4E 55 4D 50 59   magic
 * 6   major, minor        1.0, 2.0 or 3.0
 * 8   length              u16 in 1.0, u32 after it
 * 10  text                a Python dictionary, Latin-1 up to 2.0 and UTF-8 in 3.0, blanks and a newline
 *     items               from `8 + size of length + length` on
 * ```
 *
 * The text has exactly three keys: `descr` (a dtype string, or a list where it is structured),
 * `fortran_order` and `shape`.
 */
import { type DType, type DTypeInfo, dtypeFromNumpy, dtypeOf, isRefusal } from '../dtype.js';
import { LoaderxError, show } from '../errors.js';
import { type Literal, NoLiteral, parseLiteral } from './literal.js';

/** What a file's header says. */
export interface NpyHeader {
  /** What the items become: a little-endian number. */
  readonly dtype: DType;
  readonly info: DTypeInfo;
  /** Bytes that are turned round as one number; 1 where they lie in this machine's order. */
  readonly swapBytes: number;
  readonly isFortran: boolean;
  readonly shape: readonly number[];
  /** Where the items begin. */
  readonly dataOffset: number;
  /** Bytes of all items. */
  readonly dataBytes: number;
}

/** Bytes that say how long the header is, at most. */
export const prefixBytes = 12;
/** NumPy reads no more than 10,000 characters unless it is told to trust the file. */
const headerBytesMax = 1024 * 1024;
const rankMax = 64;

const magic = [0x93, 0x4e, 0x55, 0x4d, 0x50, 0x59];

/** Where a header lies, by the first bytes of a file. */
export interface HeaderPlace {
  readonly from: number;
  readonly to: number;
  readonly encoding: 'latin1' | 'utf8';
}

function malformed(name: string, reason: string): LoaderxError {
  return new LoaderxError('MALFORMED', `${name}: ${reason}`, { path: name });
}

/**
 * @param first the file's first {@link prefixBytes}, or all of it if it has fewer
 * @throws LoaderxError MALFORMED, UNSUPPORTED, TOO_LARGE
 */
export function headerPlace(name: string, first: Uint8Array): HeaderPlace {
  if (!magic.every((byte, index) => first[index] === byte)) {
    throw malformed(name, 'it does not begin as an .npy file does');
  }
  const [major = 0, minor = 0] = first.subarray(6, 8);
  if (first.byteLength < 8) throw malformed(name, 'it ends within its header');
  if (major < 1 || major > 3 || minor !== 0) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `${name}: it is of version ${major}.${minor} of the format, and 1.0, 2.0 and 3.0 are known`,
      { path: name },
    );
  }
  const from = major === 1 ? 10 : 12;
  if (first.byteLength < from) throw malformed(name, 'it ends within its header');
  const view = new DataView(first.buffer, first.byteOffset, first.byteLength);
  const length = major === 1 ? view.getUint16(8, true) : view.getUint32(8, true);
  if (length > headerBytesMax) {
    throw new LoaderxError(
      'TOO_LARGE',
      `${name}: its header has ${length} bytes, and ${headerBytesMax} is the most`,
      { path: name },
    );
  }
  return { from, to: from + length, encoding: major === 3 ? 'utf8' : 'latin1' };
}

/**
 * @param text the bytes of the header's text
 * @throws LoaderxError MALFORMED, UNSUPPORTED
 */
export function headerOf(name: string, place: HeaderPlace, text: Uint8Array): NpyHeader {
  const parsed = literalOf(name, place, text);
  for (const key of parsed.keys()) {
    if (key === 'descr' || key === 'fortran_order' || key === 'shape') continue;
    throw malformed(name, `its header has the key ${show(key)}, which is not of the format`);
  }
  const info = itemsOf(name, parsed.get('descr'));
  const isFortran = parsed.get('fortran_order');
  if (typeof isFortran !== 'boolean') {
    throw malformed(
      name,
      `fortran_order is ${showLiteral(isFortran)}, and True or False is wanted`,
    );
  }
  const shape = shapeOf(name, parsed.get('shape'));
  const { itemBytes, swapBytes } = info;
  // Of a refused dtype nothing is left here: numbers in either order.
  const dtype = info.nativeName ?? info.name;
  const dataBytes = shape.reduce((product, size) => product * size, itemBytes);
  if (!Number.isSafeInteger(dataBytes)) {
    throw malformed(name, `its shape ${show(shape)} is of more bytes than a file can have`);
  }
  return {
    dtype,
    info: dtypeOf(dtype),
    swapBytes,
    // One axis, and so no order.
    isFortran: isFortran && shape.filter((size) => size > 1).length > 1,
    shape,
    dataOffset: place.to,
    dataBytes,
  };
}

function literalOf(
  name: string,
  { encoding }: HeaderPlace,
  text: Uint8Array,
): ReadonlyMap<string, Literal> {
  try {
    const decoder = new TextDecoder(encoding === 'utf8' ? 'utf-8' : 'latin1', { fatal: true });
    const parsed = parseLiteral(decoder.decode(text));
    if (parsed instanceof Map) return parsed as ReadonlyMap<string, Literal>;
  } catch (cause) {
    if (!(cause instanceof NoLiteral) && !(cause instanceof TypeError)) throw cause;
    const reason = cause instanceof NoLiteral ? cause.message : 'it is not UTF-8';
    throw malformed(name, `its header cannot be read: ${reason}`);
  }
  throw malformed(name, 'its header is no dictionary');
}

function itemsOf(name: string, descr: Literal | undefined): DTypeInfo {
  if (Array.isArray(descr)) {
    const fields = descr
      .slice(0, 4)
      .map((field) => (Array.isArray(field) ? showLiteral(field[0]) : showLiteral(field)));
    throw unsupported(
      name,
      `its records are structured (${fields.join(', ')}${descr.length > 4 ? ', …' : ''}): save each field as an array of its own`,
    );
  }
  if (typeof descr !== 'string') {
    throw malformed(name, `descr is ${showLiteral(descr)}, and a dtype string is wanted`);
  }
  if (/^[<>=|]?O/.test(descr)) {
    throw unsupported(
      name,
      'its dtype is object: what it holds are pickled Python objects, which are never read; save numbers as an array of a number’s dtype',
    );
  }
  const info = dtypeFromNumpy(descr);
  if (isRefusal(info)) {
    throw info.code === 'UNSUPPORTED'
      ? unsupported(name, `its dtype ${show(descr)} ${info.reason}`)
      : malformed(name, `its dtype ${show(descr)} ${info.reason}`);
  }
  if (!'biufc'.includes(info.kind) || info.nativeName === undefined) {
    throw unsupported(
      name,
      `its dtype ${show(descr)} is none that is read: bool, integers, float16 to float64, complex64 and complex128 are read`,
    );
  }
  return info;
}

function unsupported(name: string, reason: string): LoaderxError {
  return new LoaderxError('UNSUPPORTED', `${name}: ${reason}`, { path: name, field: 'descr' });
}

function shapeOf(name: string, shape: Literal | undefined): readonly number[] {
  const isShape =
    Array.isArray(shape) &&
    shape.length <= rankMax &&
    shape.every((size) => typeof size === 'number' && size >= 0);
  if (!isShape)
    throw malformed(name, `shape is ${showLiteral(shape)}, and a tuple of sizes is wanted`);
  return shape as number[];
}

function showLiteral(value: Literal | undefined): string {
  return value instanceof Map ? 'a dictionary' : show(value);
}

/**
 * The header that NumPy would write for an array in C order.
 *
 * @param dtype a plain dtype, little-endian
 */
export function npyHeader(dtype: DType, shape: readonly number[]): Uint8Array {
  const { numpy } = dtypeOf(dtype);
  const sizes = shape.length === 1 ? `${shape[0]},` : shape.join(', ');
  const text = `{'descr': '${numpy}', 'fortran_order': False, 'shape': (${sizes}), }`;
  // NumPy leaves room to grow the first size in place, and fills up to the next multiple of 64 bytes, with a
  // whole 64 where one is reached already.
  const room = shape.length === 0 ? 0 : Math.max(0, 21 - String(shape[0]).length);
  const length = text.length + room + 1;
  const isLong = length + 64 > 65_535;
  const from = isLong ? 12 : 10;
  const total = (Math.floor((from + length) / 64) + 1) * 64;
  const header = new Uint8Array(total).fill(0x20);
  header.set([...magic, isLong ? 2 : 1, 0]);
  const view = new DataView(header.buffer);
  if (isLong) view.setUint32(8, total - from, true);
  else view.setUint16(8, total - from, true);
  header.set(new TextEncoder().encode(text), from);
  header[total - 1] = 0x0a;
  return header;
}
