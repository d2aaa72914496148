/**
 * The bytes of `integrity.zr`, the side file that vouches for a container's other files.
 *
 *     offset  size  field
 *          0     8  "lxintegr"
 *          8     4  version, 1
 *         12     4  records of a block, 4096
 *         16     8  number of records
 *         24     8  bytes of dict.zr; 0 without one
 *         32    32  logical digest (SHA-256)
 *         64    32  SHA-256 of the page, bytes 0 .. 4095 of meta.zr
 *         96    32  SHA-256 of dict.zr; zeros without one
 *        128     8 n  words: for each block of records one for its part of the location table, then one
 *                     for the location and the stored bytes of each record (zig-src/store/checksum.zig)
 *    128 + 8 n    32  SHA-256 of everything before
 *
 * Integers are little-endian. The last field vouches for the file itself, so no single change in a
 * container passes unseen.
 */
import { createHash } from 'node:crypto';
import { type ErrorPlace, LoaderxError } from '../errors.js';

/** The file's name: no reader of the format minds it, as it begins with neither of theirs. */
export const integrityName = 'integrity.zr';

const magic = new TextEncoder().encode('lxintegr');
const version = 1;
/** Records of a block. */
export const blockRecords = 4096;
const hashBytes = 32;
/** Bytes before the words. */
export const headBytes = 128;

/** What the file says besides its words. Hashes are hexadecimal. */
export interface IntegrityFacts {
  readonly recordCount: number;
  readonly dictBytes: number;
  readonly logicalDigest: string;
  readonly pageHash: string;
  /** 64 zeros without a dictionary. */
  readonly dictHash: string;
}

/** Words of a container of that many records. */
export function wordCountOf(recordCount: number): number {
  return recordCount + Math.ceil(recordCount / blockRecords);
}

/** The words that a check of records `first` to `first + count` wants: of the blocks that hold them. */
export function wordsFor(words: BigUint64Array, first: number): BigUint64Array {
  return words.subarray(Math.floor(first / blockRecords) * (blockRecords + 1));
}

/** Bytes of the file of a container of that many records. */
export function integrityBytesOf(recordCount: number): number {
  return headBytes + wordCountOf(recordCount) * 8 + hashBytes;
}

/** A file in the making: its words are filled in first, in place. */
export class IntegrityDraft {
  readonly words: BigUint64Array;
  readonly #bytes: Uint8Array;

  /** @throws LoaderxError OUT_OF_MEMORY */
  constructor(recordCount: number) {
    const buffer = memoryFor(integrityBytesOf(recordCount));
    this.#bytes = new Uint8Array(buffer);
    this.words = new BigUint64Array(buffer, headBytes, wordCountOf(recordCount));
  }

  /** The whole file. */
  finish(facts: IntegrityFacts): Uint8Array {
    const bytes = this.#bytes;
    const view = new DataView(bytes.buffer);
    bytes.set(magic);
    view.setUint32(8, version, true);
    view.setUint32(12, blockRecords, true);
    view.setBigUint64(16, BigInt(facts.recordCount), true);
    view.setBigUint64(24, BigInt(facts.dictBytes), true);
    bytes.set(Buffer.from(facts.logicalDigest, 'hex'), 32);
    bytes.set(Buffer.from(facts.pageHash, 'hex'), 64);
    bytes.set(Buffer.from(facts.dictHash, 'hex'), 96);
    const end = bytes.byteLength - hashBytes;
    bytes.set(createHash('sha256').update(bytes.subarray(0, end)).digest(), end);
    return bytes;
  }
}

/** Reads a file of which the hash was found to be right. */
export function factsOf(head: Uint8Array, fileBytes: number, place: ErrorPlace): IntegrityFacts {
  const view = new DataView(head.buffer, head.byteOffset, head.byteLength);
  const isOurs = magic.every((byte, index) => head[index] === byte);
  if (!isOurs) throw damaged(place, 'it does not begin as one');
  const said = view.getUint32(8, true);
  if (said !== version || view.getUint32(12, true) !== blockRecords) {
    throw damaged(place, `it is of version ${said}, and version ${version} is known here`);
  }
  const recordCount = Number(view.getBigUint64(16, true));
  const dictBytes = Number(view.getBigUint64(24, true));
  if (!Number.isSafeInteger(recordCount) || integrityBytesOf(recordCount) !== fileBytes) {
    throw damaged(place, `its ${fileBytes} bytes are not those of ${recordCount} records`);
  }
  const hex = (from: number): string =>
    Buffer.from(head.subarray(from, from + hashBytes)).toString('hex');
  return {
    recordCount,
    dictBytes,
    logicalDigest: hex(32),
    pageHash: hex(64),
    dictHash: hex(96),
  };
}

/** The file's own hash, fed as it is read. */
export class SelfHash {
  readonly #hash = createHash('sha256');
  readonly #fileBytes: number;
  #at = 0;
  readonly #last = Buffer.alloc(hashBytes);

  /** @throws LoaderxError INTEGRITY for a file that is too short to be one */
  constructor(fileBytes: number, place: ErrorPlace) {
    if (fileBytes < headBytes + hashBytes) throw damaged(place, `it has only ${fileBytes} bytes`);
    this.#fileBytes = fileBytes;
  }

  update(bytes: Uint8Array): void {
    const hashed = this.#fileBytes - hashBytes;
    const part = Math.min(bytes.byteLength, Math.max(0, hashed - this.#at));
    this.#hash.update(bytes.subarray(0, part));
    const rest = bytes.subarray(part);
    if (rest.byteLength > 0) this.#last.set(rest, this.#at + part - hashed);
    this.#at += bytes.byteLength;
  }

  /** @throws LoaderxError INTEGRITY */
  assertRight(place: ErrorPlace): void {
    if (this.#at === this.#fileBytes && this.#hash.digest().equals(this.#last)) return;
    throw damaged(place, 'its own hash does not fit it');
  }
}

/** The error of a file that cannot be trusted. */
export function damaged(place: ErrorPlace, reason: string): LoaderxError {
  const subject = place.path === undefined ? '' : `${place.path}: `;
  return new LoaderxError('INTEGRITY', `${subject}${integrityName} is damaged: ${reason}`, {
    ...place,
    file: integrityName,
  });
}

/** SHA-256, hexadecimal. */
export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

/** `dictHash` where there is no dictionary. */
export const noHash = '0'.repeat(hashBytes * 2);

/** Zeroed memory. Throws LoaderxError OUT_OF_MEMORY. */
export function memoryFor(bytes: number): ArrayBuffer {
  try {
    return new ArrayBuffer(bytes);
  } catch (cause) {
    throw new LoaderxError(
      'OUT_OF_MEMORY',
      `no memory for ${integrityName}, which takes ${bytes} bytes`,
      {},
      { cause },
    );
  }
}
