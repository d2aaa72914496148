/**
 * Encoded values of a page, decoded to bytes.
 *
 * Numbers stay what they are in the file, little-endian bits in one run of bytes: nothing is a JavaScript
 * number on its way, so NaN payloads and 64-bit integers come through, and nothing is allocated for a
 * value. hyparquet decodes to arrays of boxed values; that took most of a conversion's time
 * (docs/converter.md has the figures), so it reads footers and headers here, and pages are read by this room.
 *
 * Whatever a page says is checked before memory is read or made for it: `Damaged` says what is wrong.
 */
import type { Encoding } from 'hyparquet';

/** What a page holds cannot be, or is not known here. The caller says in which column and file. */
export class Damaged extends Error {
  override readonly name = 'Damaged';
}

/** An encoding that is not read here. */
export class UnknownEncoding extends Error {
  override readonly name = 'UnknownEncoding';
}

/** Bytes of a page that are still to be read: `at` up to `end`. */
export class Source {
  readonly bytes: Uint8Array;
  at: number;
  readonly end: number;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  /** The position of the next `count` bytes, which are taken. */
  take(count: number): number {
    const { at } = this;
    if (count < 0 || count > this.end - at) {
      throw new Damaged(`the page ends ${count - (this.end - at)} bytes too early`);
    }
    this.at = at + count;
    return at;
  }

  byte(): number {
    return this.bytes[this.take(1)] ?? 0;
  }

  u32(): number {
    const at = this.take(4);
    const { bytes } = this;
    const low = (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16);
    return (low | ((bytes[at + 3] ?? 0) << 24)) >>> 0;
  }

  /** An unsigned LEB128 number below 2^53. */
  varint(): number {
    let value = 0;
    for (let scale = 1; scale < 2 ** 53; scale *= 128) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
    throw new Damaged('a number of the page is too long');
  }

  part(count: number): Source {
    const at = this.take(count);
    return new Source(this.bytes, at, at + count);
  }
}

/** Bits that one number below `max + 1` takes. */
export function bitWidthOf(max: number): number {
  return 32 - Math.clz32(max);
}

type Counts = Uint8Array | Uint32Array;

/**
 * Parquet's hybrid of runs and bit-packed groups.
 *
 * @returns the one value that all have, where a single run says so; then `target` is as it was
 */
export function readHybrid(source: Source, width: number, target: Counts): number | undefined {
  const { length } = target;
  if (width === 0) return 0;
  if (width > 32) throw new Damaged(`numbers of ${width} bits`);
  const valueBytes = (width + 7) >> 3;
  const { bytes } = source;
  let done = 0;
  while (done < length) {
    const header = source.varint();
    if (header % 2 === 1) {
      const groups = (header - 1) / 2;
      // The last group may be cut off where its values are not needed.
      const packedBytes = Math.min(groups * width, source.end - source.at);
      const count = Math.min(groups * 8, length - done);
      if (Math.ceil((count * width) / 8) > packedBytes) {
        throw new Damaged('a bit-packed group is cut short');
      }
      unpack(bytes, source.take(packedBytes), width, target, done, count);
      done += count;
    } else {
      const count = Math.min(header / 2, length - done);
      let value = 0;
      const at = source.take(valueBytes);
      for (let byte = 0; byte < valueBytes; byte += 1) {
        value |= (bytes[at + byte] ?? 0) << (8 * byte);
      }
      value >>>= 0;
      if (width < 32 && value >>> width !== 0) {
        throw new Damaged(`a run of ${value}, which is more than ${width} bits`);
      }
      if (count === length) return value;
      if (count === 0) throw new Damaged('a run of no values');
      target.fill(value, done, done + count);
      done += count;
    }
  }
  return undefined;
}

function unpack(
  bytes: Uint8Array,
  from: number,
  width: number,
  target: Counts,
  first: number,
  count: number,
): void {
  if (width === 1) {
    for (let index = 0; index < count; index += 1) {
      target[first + index] = ((bytes[from + (index >> 3)] as number) >> (index & 7)) & 1;
    }
    return;
  }
  if (width === 8) {
    for (let index = 0; index < count; index += 1) {
      target[first + index] = bytes[from + index] as number;
    }
    return;
  }
  const mask = width === 32 ? -1 : (1 << width) - 1;
  for (let done = 0; done < count; done += unpackedAtOnce) {
    const wanted = Math.min(unpackedAtOnce, count - done);
    copyPacked(bytes, from + (done * width) / 8, Math.ceil((wanted * width) / 8));
    let word = 0;
    let shift = 0;
    for (let index = 0; index < wanted; index += 1) {
      // In two steps, since a shift by 32 is one by 0. Bits beyond the value are masked off.
      const upper = ((packedWords[word + 1] as number) << 1) << (31 - shift);
      const lower = (packedWords[word] as number) >>> shift;
      target[first + done + index] = (lower | upper) & mask;
      shift += width;
      word += shift >> 5;
      shift &= 31;
    }
  }
}

/** Values that are unpacked from whole words, which is twice as fast as byte by byte; a multiple of 32. */
const unpackedAtOnce = 4096;
/** Their bytes, at most 32 bits each, where they can be seen as words; one more is read behind them. */
const packedWords = new Int32Array(unpackedAtOnce + 1);
const packedBytes = new Uint8Array(packedWords.buffer);

function copyPacked(bytes: Uint8Array, at: number, count: number): void {
  // Levels come in many small groups, for which a call costs more than the bytes.
  if (count > 64) packedBytes.set(bytes.subarray(at, at + count));
  else for (let byte = 0; byte < count; byte += 1) packedBytes[byte] = bytes[at + byte] as number;
}

/** Up to 32 bits from bit `bit` behind byte `from` on. What lies past the array is zero. */
function bitsAt(bytes: Uint8Array, from: number, bit: number, width: number): number {
  const at = from + Math.floor(bit / 8);
  const shift = bit % 8;
  let word =
    (bytes[at] ?? 0) |
    ((bytes[at + 1] ?? 0) << 8) |
    ((bytes[at + 2] ?? 0) << 16) |
    ((bytes[at + 3] ?? 0) << 24);
  if (shift > 0) word = (word >>> shift) | ((bytes[at + 4] ?? 0) << (32 - shift));
  return width === 32 ? word >>> 0 : word & ((1 << width) - 1);
}

/** How values lie in a file. */
export interface Physical {
  readonly type: 'BOOLEAN' | 'INT32' | 'INT64' | 'FLOAT' | 'DOUBLE' | 'FIXED' | 'BYTES';
  /** Bytes of a decoded value; 1 for BOOLEAN, 0 for BYTES, whose values differ. */
  readonly width: number;
}

/** Decoded values: fixed ones back to back, or one array for each. */
export type Values = Uint8Array | readonly Uint8Array[];

/**
 * The values of a page.
 *
 * @param count how many there are: levels have said so
 * @param dictionaryWidth bytes of a value of the dictionary; 0 for bytes
 * @throws Damaged, UnknownEncoding
 */
export function readValues(
  source: Source,
  encoding: Encoding,
  physical: Physical,
  count: number,
  dictionary: Values | undefined,
  dictionaryWidth: number,
): Values {
  const { type, width } = physical;
  switch (encoding) {
    case 'PLAIN':
      if (type === 'BYTES') return plainBytes(source, count);
      if (type === 'BOOLEAN') return plainBits(source, count);
      return fixed(source, count, width);
    case 'PLAIN_DICTIONARY':
    case 'RLE_DICTIONARY':
      return fromDictionary(source, count, dictionaryWidth, dictionary);
    case 'RLE':
      if (type !== 'BOOLEAN') break;
      return runs(source.part(source.u32()), count);
    case 'BYTE_STREAM_SPLIT':
      if (type === 'BOOLEAN' || type === 'BYTES') break;
      return joinedStreams(source, count, width);
    case 'DELTA_BINARY_PACKED':
      if (type !== 'INT32' && type !== 'INT64') break;
      return readDeltas(source, count, width as 4 | 8);
    case 'DELTA_LENGTH_BYTE_ARRAY':
      if (type !== 'BYTES') break;
      return slices(source, lengths(source, count));
    case 'DELTA_BYTE_ARRAY':
      return withPrefixes(source, count, type === 'FIXED' ? width : 0);
    default:
  }
  throw new UnknownEncoding(`the encoding ${encoding} of ${type} is not read here`);
}

function fixed(source: Source, count: number, width: number): Uint8Array {
  const at = source.take(count * width);
  return source.bytes.subarray(at, at + count * width);
}

function plainBits(source: Source, count: number): Uint8Array {
  const target = new Uint8Array(count);
  unpack(source.bytes, source.take((count + 7) >> 3), 1, target, 0, count);
  return target;
}

function runs(source: Source, count: number): Uint8Array {
  const target = new Uint8Array(count);
  const same = readHybrid(source, 1, target);
  if (same !== undefined) target.fill(same);
  return target;
}

function plainBytes(source: Source, count: number): Uint8Array[] {
  const values: Uint8Array[] = [];
  for (let index = 0; index < count; index += 1) {
    const length = source.u32();
    const at = source.take(length);
    values.push(source.bytes.subarray(at, at + length));
  }
  return values;
}

/** Memory for the ids of one page, which nobody sees once its values are there. */
let idsMemory = new Uint32Array(0);
const idsKeptMax = 4 * 1024 * 1024;

function idsOf(count: number): Uint32Array {
  if (count > idsKeptMax) return new Uint32Array(count);
  if (count > idsMemory.length) idsMemory = new Uint32Array(Math.min(count * 2, idsKeptMax));
  return idsMemory.subarray(0, count);
}

function fromDictionary(
  source: Source,
  count: number,
  width: number,
  dictionary: Values | undefined,
): Values {
  if (dictionary === undefined)
    throw new Damaged('a page refers to a dictionary that is not there');
  const known = width === 0 ? dictionary.length : dictionary.length / width;
  if (count === 0) return dictionary instanceof Uint8Array ? new Uint8Array(0) : [];
  const ids = idsOf(count);
  const same = readHybrid(source, source.byte(), ids);
  if (same !== undefined) ids.fill(same);
  assertBelow(ids, known);
  if (!(dictionary instanceof Uint8Array)) {
    const values: Uint8Array[] = [];
    for (const id of ids) values.push(dictionary[id] as Uint8Array);
    return values;
  }
  return gathered(dictionary, signed(ids), width);
}

function assertBelow(ids: Uint32Array, known: number): void {
  const all = signed(ids);
  const last = known - 1;
  // Its sign is that of an id that is none: a loop without branches.
  let signs = 0;
  for (let index = 0; index < all.length; index += 1) {
    const id = all[index] as number;
    signs |= id | (last - id);
  }
  if (signs >= 0) return;
  const wrong = ids.find((id) => id >= known) ?? 0;
  throw new Damaged(`a page refers to entry ${wrong} of a dictionary of ${known}`);
}

/** The same words as integers that V8 does not have to hold as floats: several times as fast. */
function signed(words: Uint32Array): Int32Array {
  return new Int32Array(words.buffer, words.byteOffset, words.length);
}

/** Moves values as words, whatever they mean. */
function gathered(dictionary: Uint8Array, ids: Int32Array, width: number): Uint8Array {
  const count = ids.length;
  if (width === 4 || width === 8) {
    const words = signed(alignedWords(dictionary));
    // Every byte is written below.
    const target = new Int32Array(Buffer.allocUnsafeSlow(count * width).buffer);
    if (width === 4) {
      for (let index = 0; index < count; index += 1) {
        target[index] = words[ids[index] as number] as number;
      }
    } else {
      for (let index = 0; index < count; index += 1) {
        const id = (ids[index] as number) * 2;
        target[index * 2] = words[id] as number;
        target[index * 2 + 1] = words[id + 1] as number;
      }
    }
    return new Uint8Array(target.buffer);
  }
  const target = new Uint8Array(count * width);
  if (width === 1) {
    for (let index = 0; index < count; index += 1) {
      target[index] = dictionary[ids[index] as number] as number;
    }
    return target;
  }
  for (let index = 0; index < count; index += 1) {
    const id = (ids[index] as number) * width;
    for (let byte = 0; byte < width; byte += 1) {
      target[index * width + byte] = dictionary[id + byte] as number;
    }
  }
  return target;
}

/** The bytes as 32-bit words; copied only where they do not lie so that they can be seen as words. */
export function alignedWords(bytes: Uint8Array): Uint32Array {
  const own = bytes.byteOffset % 4 === 0 ? bytes : Uint8Array.from(bytes);
  return new Uint32Array(own.buffer, own.byteOffset, own.byteLength >> 2);
}

function joinedStreams(source: Source, count: number, width: number): Uint8Array {
  const at = source.take(count * width);
  const { bytes } = source;
  const target = new Uint8Array(count * width);
  for (let stream = 0; stream < width; stream += 1) {
    const from = at + stream * count;
    for (let index = 0; index < count; index += 1) {
      target[index * width + stream] = bytes[from + index] as number;
    }
  }
  return target;
}

/** A 64-bit integer as two words, since BigInt arithmetic for each value is some ten times as slow. */
interface Wide {
  low: number;
  high: number;
}

function zigzag(source: Source): Wide {
  let low = 0;
  let high = 0;
  for (let shift = 0; ; shift += 7) {
    if (shift > 63) throw new Damaged('a number of the page is too long');
    const byte = source.byte();
    const bits = byte & 127;
    if (shift < 32) low |= bits << shift;
    if (shift > 25) high |= shift < 32 ? bits >>> (32 - shift) : bits << (shift - 32);
    if (byte < 128) break;
  }
  const sign = -(low & 1);
  return { low: ((low >>> 1) | (high << 31)) ^ sign, high: (high >>> 1) ^ sign };
}

/** Integers as blocks of differences; arithmetic wraps, as the format wants it. */
function readDeltas(source: Source, count: number, width: 4 | 8): Uint8Array {
  const blockValues = source.varint();
  const miniblocks = source.varint();
  const total = source.varint();
  const perMiniblock = blockValues / miniblocks;
  if (blockValues === 0 || blockValues > 2 ** 24 || perMiniblock % 8 !== 0) {
    throw new Damaged(`${miniblocks} miniblocks in a block of ${blockValues} differences`);
  }
  if (total !== count) throw new Damaged(`${total} differences for ${count} values`);
  let { low, high } = zigzag(source);
  const wordsPerValue = width / 4;
  const target = new Uint32Array(count * wordsPerValue);
  const { bytes } = source;
  let done = 0;
  const put = (): void => {
    if (wordsPerValue === 1) target[done] = low;
    else {
      target[done * 2] = low;
      target[done * 2 + 1] = high;
    }
    done += 1;
  };
  if (count > 0) put();
  while (done < count) {
    const least = zigzag(source);
    const widthsAt = source.take(miniblocks);
    for (let block = 0; block < miniblocks && done < count; block += 1) {
      const bits = bytes[widthsAt + block] ?? 0;
      if (bits > 64) throw new Damaged(`differences of ${bits} bits`);
      const wanted = Math.min(perMiniblock, count - done);
      // Some writers leave out the end of the last miniblock.
      const packed = Math.min((perMiniblock / 8) * bits, source.end - source.at);
      if (packed * 8 < wanted * bits) throw new Damaged('a miniblock is cut short');
      const at = source.take(packed);
      for (let index = 0; index < wanted; index += 1) {
        const bit = index * bits;
        const lowBits = bits === 0 ? 0 : bitsAt(bytes, at, bit, Math.min(bits, 32));
        // low + least.low + lowBits, with what is carried to the upper word.
        const sum = (low >>> 0) + (least.low >>> 0) + (lowBits >>> 0);
        if (wordsPerValue === 2) {
          const highBits = bits > 32 ? bitsAt(bytes, at, bit + 32, bits - 32) : 0;
          high = (high + least.high + highBits + Math.floor(sum / 2 ** 32)) | 0;
        }
        low = sum | 0;
        put();
      }
    }
  }
  return new Uint8Array(target.buffer);
}

function lengths(source: Source, count: number): Int32Array {
  const decoded = readDeltas(source, count, 4);
  return new Int32Array(decoded.buffer, 0, count);
}

function slices(source: Source, sizes: Int32Array): Uint8Array[] {
  const values: Uint8Array[] = [];
  for (const size of sizes) {
    const at = source.take(size);
    values.push(source.bytes.subarray(at, at + size));
  }
  return values;
}

const decodedBytesMax = 2 ** 30;

/** Each value is some first bytes of the one before, and what follows. `width`: of fixed ones, else 0. */
function withPrefixes(source: Source, count: number, width: number): Values {
  const prefixes = lengths(source, count);
  const suffixes = slices(source, lengths(source, count));
  // A few bytes can repeat a long value often.
  const bytes = prefixes.reduce((sum, size) => sum + size, 0);
  if (bytes > decodedBytesMax) throw new Damaged(`a page of ${bytes} bytes in repeated prefixes`);
  const joined = width === 0 ? undefined : new Uint8Array(count * width);
  const values: Uint8Array[] = [];
  let before = new Uint8Array(0);
  for (let index = 0; index < count; index += 1) {
    const prefix = prefixes[index] ?? 0;
    const suffix = suffixes[index] ?? new Uint8Array(0);
    if (prefix < 0 || prefix > before.length)
      throw new Damaged('a value repeats more than there is');
    const value = new Uint8Array(prefix + suffix.length);
    value.set(before.subarray(0, prefix));
    value.set(suffix, prefix);
    before = value;
    if (joined === undefined) values.push(value);
    else {
      if (value.length !== width) throw new Damaged(`a value of ${value.length} bytes`);
      joined.set(value, index * width);
    }
  }
  return joined ?? values;
}
