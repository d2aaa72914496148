/**
 * Ragged records on their way in: packed as they are stored, window by window.
 *
 *     record   dims (ndim × u64 or u32, little-endian) │ items
 *     window   record │ record │ …        ends: where each ends
 *
 * A window holds at most 32,768 records, as Python's does, and about 8 MiB; of large records up to
 * 32 MiB, so that the lanes have something to share out; one record at least. It
 * lies in memory that only the packer knows, because lanes read it while the next one is packed:
 * two slabs take turns.
 */
import { types } from 'node:util';
import { type Data, type DTypeInfo, trueBytes, trueLength, typedArrayName } from '../dtype.js';
import { ArgumentRangeError, show } from '../errors.js';
import { arrayItems } from '../ndarray.js';
import { recordBytesMax } from '../schema.js';
import type { Pieces, Window } from './append-queue.js';
import { keep, take } from './memory.js';

const windowRecordsMax = 32_768;
const windowBytesMax = 8 * 1024 * 1024;
/** Of records so large that a window of them has few: at its end a lane waits for another one's record. */
const largeWindowBytesMax = 32 * 1024 * 1024;
const windowRecordsMin = 128;
/** Raw records from here on are written from where they lie: a call for them costs less than a copy. */
const pieceBytesMin = 16 * 1024;
const piecesMax = 256;
const slabBytesMin = 64 * 1024;
const endsMin = 256;

/** A record, checked: its dimensions, and its items. */
export interface RawRecord {
  readonly dims: ArrayLike<number>;
  /** Where the record's dimensions begin in `dims`. */
  readonly dimsAt: number;
  /** All of its items, in the dtype's typed array. */
  readonly items: Data;
  /** Of the items. */
  readonly itemBytes: number;
}

/** A {@link RawRecord} that is used again for each record. */
interface Plain {
  readonly dims: number[];
  readonly dimsAt: 0;
  items: Data;
  itemBytes: number;
}

export class RaggedPacker {
  readonly #info: DTypeInfo;
  readonly #ndim: number;
  readonly #dimBytes: 4 | 8;
  readonly #slabs: [Slab, Slab];
  readonly #plain: Plain;
  /** Of the dtype's typed array; asking a constructor for its name costs as much as packing a small record. */
  readonly #arrayName: string;
  #slabIndex: 0 | 1 = 0;
  #recordCount = 0;
  /** Records of so many bytes are not packed where {@link takePieces} can have them. */
  #pieceBytesMin: number;

  /** `pieces`: records may be taken by {@link takePieces} too. */
  constructor(info: DTypeInfo, ndim: number, dimBytes: 4 | 8, pieces = false) {
    this.#pieceBytesMin = pieces ? pieceBytesMin : Number.POSITIVE_INFINITY;
    this.#info = info;
    this.#ndim = ndim;
    this.#dimBytes = dimBytes;
    this.#slabs = [new Slab(info), new Slab(info)];
    this.#plain = {
      dims: new Array(ndim).fill(0),
      dimsAt: 0,
      items: new info.constructorOf(new ArrayBuffer(0)),
      itemBytes: 0,
    };
    this.#arrayName = info.constructorOf.name;
  }

  /** Records taken so far, over all windows. */
  get recordCount(): number {
    return this.#recordCount;
  }

  /**
   * Adds what an iterable gave, if nothing is odd about it and the window has room: so it is for almost
   * every record, and no object is made. False: nothing was added, and `checked` has the reason, if any.
   *
   * Of the items only what they truly are is read, so it does not matter what they say of themselves.
   */
  addPlain(record: unknown): boolean {
    if (!this.#isPlain(record) || this.isFullFor(this.#plain)) return false;
    if (this.#plain.itemBytes >= this.#pieceBytesMin && this.#isEmpty()) return false;
    this.add(this.#plain);
    return true;
  }

  /** Takes nothing by {@link takePieces} any more. */
  packAll(): void {
    this.#pieceBytesMin = Number.POSITIVE_INFINITY;
  }

  /**
   * Whether {@link takePieces} would take this record: it is large, nothing is odd about it, and the window before it
   * is taken or full.
   */
  isPiece(record: unknown): boolean {
    if (!this.#isPlain(record) || this.#plain.itemBytes < this.#pieceBytesMin) return false;
    if (!this.#isEmpty() && !this.isFullFor(this.#plain)) return false;
    // Another thread could write to shared memory meanwhile.
    return !types.isSharedArrayBuffer(trueBytes(this.#plain.items).buffer);
  }

  /**
   * Large records of a list, as many as follow each other and have `bytesMax` together; none where the first is not
   * one for {@link isPiece}. Wants the window before it taken. They are counted, and still the caller's: what is done
   * with them is done before anybody else runs.
   *
   * @throws RangeError INVALID_ARGUMENT where looking at one took away another one's memory
   */
  takePieces(list: readonly unknown[], from: number, bytesMax: number): Pieces {
    const items: Data[] = [];
    const lengths: number[] = [];
    const dims: number[] = [];
    let bytes = 0;
    for (let index = from; index < list.length && items.length < piecesMax; index += 1) {
      if (!this.isPiece(list[index])) break;
      bytes += this.#plain.itemBytes;
      if (items.length > 0 && bytes > bytesMax) break;
      items.push(this.#plain.items);
      lengths.push(trueLength(this.#plain.items));
      dims.push(...this.#plain.dims);
    }
    for (const [index, each] of items.entries()) {
      if (trueLength(each) !== lengths[index]) throw recordGone(this.#recordCount + index);
    }
    this.#recordCount += items.length;
    // A dimension is at most 2^31, so the upper half of a u64 is zero.
    const wordsPerDim = this.#dimBytes / 4;
    const words = new Uint32Array(dims.length * wordsPerDim);
    for (const [index, size] of dims.entries()) words[index * wordsPerDim] = size;
    const headers = new Uint8Array(words.buffer);
    return { headers, headerBytes: this.#ndim * this.#dimBytes, items };
  }

  #isEmpty(): boolean {
    return this.#slabs[this.#slabIndex].recordCount === 0;
  }

  /** Whether nothing is odd about a record, which is in `#plain` then. */
  #isPlain(record: unknown): boolean {
    if (typeof record !== 'object' || record === null) return false;
    const { dtype, shape, data } = record as Partial<Record<string, unknown>>;
    const info = this.#info;
    if (dtype !== info.name || !Array.isArray(shape) || shape.length !== this.#ndim) return false;
    if (typedArrayName(data) !== this.#arrayName) return false;
    const plain = this.#plain;
    let count = info.itemElements;
    for (let axis = 0; axis < this.#ndim; axis += 1) {
      const size: unknown = shape[axis];
      if (typeof size !== 'number' || !Number.isInteger(size) || size < 1) return false;
      plain.dims[axis] = size;
      count *= size;
    }
    if (count !== trueLength(data as Data)) return false;
    plain.items = data as Data;
    plain.itemBytes = count * info.constructorOf.BYTES_PER_ELEMENT;
    return this.#packedBytes(plain) <= recordBytesMax;
  }

  /**
   * Checks what an iterable gave.
   *
   * @throws TypeError, RangeError for another dtype or rank, an empty record, or one over 2^31 bytes
   */
  checked(record: unknown): RawRecord {
    const name = `records[${this.#recordCount}]`;
    const { shape, data } = arrayItems(record, name, this.#info);
    if (shape.length !== this.#ndim) {
      throw new ArgumentRangeError(
        name,
        `${name} has shape ${show(shape)}, and records of ${this.#ndim} dimensions are appended here`,
      );
    }
    if (data.byteLength === 0) {
      throw new ArgumentRangeError(name, `${name} has shape ${show(shape)}: a record has an item`);
    }
    const raw = { dims: shape, dimsAt: 0, items: data, itemBytes: data.byteLength };
    this.assertRecordFits(raw);
    return raw;
  }

  /** Throws RangeError TOO_LARGE for a record over 2^31 bytes, dimensions included. */
  assertRecordFits(record: RawRecord): void {
    const bytes = this.#packedBytes(record);
    if (bytes <= recordBytesMax) return;
    const name = `records[${this.#recordCount}]`;
    throw new ArgumentRangeError(
      name,
      `${name} has ${bytes} bytes with its dimensions, and 2^31 is the most`,
      'TOO_LARGE',
    );
  }

  /** Whether the window must be taken before this record is added. */
  isFullFor(record: RawRecord): boolean {
    const slab = this.#slabs[this.#slabIndex];
    if (slab.recordCount === 0) return false;
    // Counted over the whole append, so that windows end where Python's do.
    if (this.#recordCount % windowRecordsMax === 0) return true;
    const bytes = slab.usedBytes + this.#packedBytes(record);
    return bytes > (slab.recordCount < windowRecordsMin ? largeWindowBytesMax : windowBytesMax);
  }

  add(record: RawRecord): void {
    const slab = this.#slabs[this.#slabIndex];
    slab.add(record, this.#ndim, this.#dimBytes);
    this.#recordCount += 1;
  }

  /** The window so far, undefined when it is empty. The next one is packed in the other slab. */
  takeWindow(): Window | undefined {
    const slab = this.#slabs[this.#slabIndex];
    if (slab.recordCount === 0) return undefined;
    this.#slabIndex = this.#slabIndex === 0 ? 1 : 0;
    this.#slabs[this.#slabIndex].clear();
    return slab.window();
  }

  /** Gives the slabs' memory back. No window may be in flight. */
  release(): void {
    for (const slab of this.#slabs) slab.release();
    this.#plain.items = new this.#info.constructorOf(new ArrayBuffer(0));
  }

  #packedBytes(record: RawRecord): number {
    return this.#ndim * this.#dimBytes + record.itemBytes;
  }
}

export function recordGone(index: number): ArgumentRangeError {
  const name = `records[${index}]`;
  return new ArgumentRangeError(
    name,
    `${name} was detached or resized while it was appended: nothing of it was kept`,
  );
}

/** Growing memory for one window. */
class Slab {
  recordCount = 0;
  usedBytes = 0;
  #buffer = new ArrayBuffer(0);
  #bytes = new Uint8Array(0);
  /** The same memory as whole items and as 32-bit words: setting from one typed array to another of its kind
   * makes no object, which for small records is most of the time. */
  #items: Data;
  #words = new Uint32Array(0);
  /** 64-bit ends as pairs of 32-bit halves; a window is far below 2^32 bytes. */
  #ends = new Uint32Array(0);
  readonly #info: DTypeInfo;
  readonly #elementBytes: number;

  constructor(info: DTypeInfo) {
    this.#info = info;
    this.#elementBytes = info.constructorOf.BYTES_PER_ELEMENT;
    this.#items = new info.constructorOf(new ArrayBuffer(0));
  }

  add(record: RawRecord, ndim: number, dimBytes: 4 | 8): void {
    const { dims, dimsAt, items, itemBytes } = record;
    this.#reserve(this.usedBytes + ndim * dimBytes + itemBytes);
    let at = this.usedBytes;
    if (at % 4 === 0) {
      const wordsPerDim = dimBytes / 4;
      for (let axis = 0, word = at / 4; axis < ndim; axis += 1, word += wordsPerDim) {
        // A dimension is at most 2^31, so the upper half of a u64 is zero.
        this.#words[word] = dims[dimsAt + axis] ?? 0;
        if (wordsPerDim === 2) this.#words[word + 1] = 0;
      }
    } else {
      this.#addDimsBytewise(at, dims, dimsAt, ndim, dimBytes);
    }
    at += ndim * dimBytes;
    const elementBytes = this.#elementBytes;
    if (at % elementBytes === 0) setItems(this.#items, items, at / elementBytes);
    else this.#bytes.set(trueBytes(items), at);
    this.usedBytes = at + itemBytes;
    if (this.recordCount * 2 === this.#ends.length) {
      const longer = new Uint32Array(Math.max(endsMin * 2, this.#ends.length * 2));
      longer.set(this.#ends);
      this.#ends = longer;
    }
    this.#ends[this.recordCount * 2] = this.usedBytes;
    this.recordCount += 1;
  }

  #addDimsBytewise(
    at: number,
    dims: ArrayLike<number>,
    dimsAt: number,
    ndim: number,
    dimBytes: 4 | 8,
  ): void {
    for (let axis = 0; axis < ndim; axis += 1) {
      const size = dims[dimsAt + axis] ?? 0;
      for (let byte = 0; byte < dimBytes; byte += 1) {
        this.#bytes[at + axis * dimBytes + byte] = byte < 4 ? size >>> (8 * byte) : 0;
      }
    }
  }

  window(): Window {
    return {
      records: this.#bytes.subarray(0, this.usedBytes),
      ends: new BigUint64Array(this.#ends.buffer, 0, this.recordCount),
      recordCount: this.recordCount,
      recordBytes: 0,
    };
  }

  clear(): void {
    this.recordCount = 0;
    this.usedBytes = 0;
  }

  release(): void {
    this.clear();
    keep(this.#buffer);
    this.#use(new ArrayBuffer(0));
  }

  #reserve(bytes: number): void {
    if (bytes <= this.#buffer.byteLength) return;
    // Doubled while small; one large record gets what it needs and no more.
    const doubled = Math.max(
      slabBytesMin,
      Math.min(this.#buffer.byteLength * 2, largeWindowBytesMax),
    );
    const larger = take(Math.max(doubled, bytes));
    new Uint8Array(larger).set(this.#bytes.subarray(0, this.usedBytes));
    keep(this.#buffer);
    this.#use(larger);
  }

  #use(buffer: ArrayBuffer): void {
    this.#buffer = buffer;
    this.#bytes = new Uint8Array(buffer);
    const { constructorOf } = this.#info;
    const elementBytes = constructorOf.BYTES_PER_ELEMENT;
    this.#items = new constructorOf(buffer, 0, Math.floor(buffer.byteLength / elementBytes));
    this.#words = new Uint32Array(buffer, 0, Math.floor(buffer.byteLength / 4));
  }
}

function setItems(target: Data, items: Data, at: number): void {
  // Both are of the dtype's kind; the compiler does not know that it is the same one.
  (target as Uint8Array).set(items as Uint8Array, at);
}
