/**
 * Files as importers read them: from the beginning to the end, or anywhere in them, into memory that is used
 * again.
 */
import { isUtf8 } from 'node:buffer';
import fs from 'node:fs';
import type { FilePlace } from '../converter/file-column.js';
import { LoaderxError } from '../errors.js';
import { locateUtf8 } from '../store/path.js';

/** Bytes one after the other. */
export interface ByteStream {
  /** Fills the target as far as there are bytes; how many came. Fewer than wanted only at the end. */
  fill(target: Uint8Array): Promise<number>;
  /** Passes over so many bytes. */
  skip(bytes: number): Promise<void>;
  close(): Promise<void>;
}

/** Bytes that can be read anywhere. */
export interface ByteFile extends ByteStream {
  /** As `fill`, from `position` on; what `fill` reads next stays as it is. */
  fillAt(target: Uint8Array, position: number): Promise<number>;
}

/** Where bytes come from: each opening begins anew. */
export interface ByteSource {
  /** What messages call it. */
  readonly name: string;
  readonly byteLength: number;
  /** The file whose bytes these are, from its first to its last; undefined where they are made of others. */
  readonly place?: FilePlace;
  open(): Promise<ByteStream>;
  /** The same bytes in a file; one of its own that goes when it is closed, where there is none yet. */
  openFile(): Promise<ByteFile>;
}

/** A failure of the file system, as an error of this package. Others stay as they are. */
export function readingFailed(name: string, cause: unknown): unknown {
  const { code, syscall } = (cause ?? {}) as NodeJS.ErrnoException;
  if (cause instanceof LoaderxError || code === undefined || syscall === undefined) return cause;
  const reason = code === 'ENOENT' ? 'there is no such file' : `reading it failed (${code})`;
  return new LoaderxError(
    code === 'ENOENT' ? 'NOT_FOUND' : 'IO',
    `${name}: ${reason}`,
    { path: name, osCode: code },
    { cause },
  );
}

/**
 * Longer stretches are read as two at once: what the system has in memory it copies, and one core copies no faster
 * than about 8 GiB/s.
 */
const inHalvesBytesMin = 1024 * 1024;

/** @throws LoaderxError NOT_FOUND, IO */
export async function openBytes(path: string, name: string): Promise<ByteFile> {
  let handle: fs.promises.FileHandle;
  try {
    handle = await fs.promises.open(path, 'r');
  } catch (cause) {
    throw readingFailed(name, cause);
  }
  let position = 0;
  const fillPart = async (target: Uint8Array, from: number): Promise<number> => {
    let done = 0;
    try {
      while (done < target.byteLength) {
        const { bytesRead } = await handle.read(
          target,
          done,
          target.byteLength - done,
          from + done,
        );
        if (bytesRead === 0) break;
        done += bytesRead;
      }
    } catch (cause) {
      throw readingFailed(name, cause);
    }
    return done;
  };
  const fillAt = async (target: Uint8Array, from: number): Promise<number> => {
    if (target.byteLength < inHalvesBytesMin) return fillPart(target, from);
    const half = target.byteLength >> 1;
    const halves = await Promise.allSettled([
      fillPart(target.subarray(0, half), from),
      fillPart(target.subarray(half), from + half),
    ]);
    let done = 0;
    for (const [index, result] of halves.entries()) {
      if (result.status === 'rejected') throw result.reason;
      // What comes after a gap is none of it.
      if (done === index * half) done += result.value;
    }
    return done;
  };
  return {
    fillAt,
    async fill(target) {
      const done = await fillAt(target, position);
      position += done;
      return done;
    },
    async skip(bytes) {
      position += bytes;
    },
    close: () => handle.close(),
  };
}

/**
 * A file of the file system.
 *
 * @throws LoaderxError NOT_FOUND, IO; UNSUPPORTED for what is no plain file
 */
export async function fileSource(path: string): Promise<ByteSource> {
  const name = path;
  try {
    const stat = await fs.promises.stat(path, { bigint: true });
    if (!stat.isFile()) {
      throw new LoaderxError('UNSUPPORTED', `${name}: it is no plain file`, { path: name });
    }
    const open = (): Promise<ByteFile> => openBytes(path, name);
    const source = { name, byteLength: Number(stat.size), open, openFile: open };
    // Names that are no Unicode, which Windows has, are Node's alone.
    if (/\p{Surrogate}/u.test(path)) return source;
    const { native } = locateUtf8(path);
    return { ...source, place: { path: native, name, assertSame: () => assertSame(path, stat) } };
  } catch (cause) {
    throw readingFailed(name, cause);
  }
}

/**
 * Throws where a path leads to another file than before. Not where the file was changed: what it has is taken.
 *
 * @throws LoaderxError MALFORMED, NOT_FOUND, IO
 */
async function assertSame(path: string, before: fs.BigIntStats): Promise<void> {
  let now: fs.BigIntStats;
  try {
    now = await fs.promises.stat(path, { bigint: true });
  } catch (cause) {
    throw readingFailed(path, cause);
  }
  if (now.ino === before.ino && now.dev === before.dev) return;
  // Not every file system numbers its files for good.
  if (now.size === before.size && now.mtimeNs === before.mtimeNs) return;
  throw new LoaderxError('MALFORMED', `${path}: another file took its place while it was read`, {
    path,
  });
}

const textBlockBytes = 256 * 1024;

/**
 * The bytes of a text file, held to be UTF-8: blocks that end behind a character, without a byte order mark.
 *
 * @throws LoaderxError MALFORMED with the line of the first byte that is no UTF-8; NOT_FOUND, IO
 */
export async function* utf8Blocks(path: string): AsyncGenerator<Buffer, void, undefined> {
  const file = fs.createReadStream(path, { highWaterMark: textBlockBytes });
  /** The beginning of a character whose end is in the next block. */
  let rest: Buffer = Buffer.alloc(0);
  let start: Buffer | undefined;
  const ends = { lines: 0, isAfterReturn: false };
  try {
    for await (const read of file as AsyncIterable<Buffer>) {
      const block = rest.length === 0 ? read : Buffer.concat([rest, read]);
      const whole = block.subarray(0, block.length - begunBytes(block));
      rest = Buffer.from(block.subarray(whole.length));
      if (whole.length === 0) continue;
      if (!isUtf8(whole)) throw notUtf8(path, start ?? whole, ends.lines + lineWithin(whole, ends));
      const isFirst = start === undefined;
      start ??= Buffer.from(whole.subarray(0, 2));
      countEnds(whole, ends);
      const hasMark = isFirst && whole.indexOf(byteOrderMark) === 0;
      const text = hasMark ? whole.subarray(byteOrderMark.length) : whole;
      if (text.length > 0) yield text;
    }
    if (rest.length > 0) throw notUtf8(path, start ?? rest, ends.lines + 1);
  } catch (cause) {
    throw readingFailed(path, cause);
  } finally {
    file.destroy();
  }
}

const byteOrderMark = Buffer.from('\ufeff');

/** How many bytes at the end of a block begin a character that ends behind it. */
function begunBytes(block: Buffer): number {
  for (let count = 1; count <= Math.min(3, block.length); count += 1) {
    const byte = block[block.length - count] as number;
    // 10xxxxxx goes on; the first byte of a character says how many it has.
    if ((byte & 0xc0) === 0x80) continue;
    const wanted = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : byte >= 0xc0 ? 2 : 1;
    return wanted > count ? count : 0;
  }
  return 0;
}

const lineFeed = 0x0a;
const carriageReturn = 0x0d;

/** `\n`, `\r\n` and `\r` end lines, as in {@link textLines}. */
function countEnds(block: Uint8Array, ends: { lines: number; isAfterReturn: boolean }): void {
  let { lines, isAfterReturn } = ends;
  for (const byte of block) {
    if (byte === carriageReturn || (byte === lineFeed && !isAfterReturn)) lines += 1;
    isAfterReturn = byte === carriageReturn;
  }
  ends.lines = lines;
  ends.isAfterReturn = isAfterReturn;
}

/** Which line of a block has the first byte that is no UTF-8, the line that the block begins in being 1. */
function lineWithin(block: Buffer, before: { readonly isAfterReturn: boolean }): number {
  // No byte of a longer character ends a line, so each line is UTF-8 or not by itself.
  let from = 0;
  for (;;) {
    const length = block
      .subarray(from)
      .findIndex((byte) => byte === lineFeed || byte === carriageReturn);
    if (length === -1 || !isUtf8(block.subarray(from, from + length))) break;
    from += length + 1;
  }
  const ends = { lines: 0, isAfterReturn: before.isAfterReturn };
  countEnds(block.subarray(0, from), ends);
  return ends.lines + 1;
}

function notUtf8(path: string, start: Buffer, line: number): LoaderxError {
  const advice = isGzip(start)
    ? 'it is packed by gzip: unpack it first'
    : 'convert it first, with iconv for instance';
  return new LoaderxError('MALFORMED', `${path}: line ${line} is no UTF-8: ${advice}`, { path });
}

function isGzip(start: Buffer): boolean {
  return start[0] === 0x1f && start[1] === 0x8b;
}

/**
 * The lines of a text file, without their ends: `\n`, `\r\n` and `\r`, and no other sign ends one.
 *
 * @throws LoaderxError MALFORMED for what is no UTF-8, NOT_FOUND, IO
 */
export async function* textLines(path: string): AsyncGenerator<string, void, undefined> {
  /** What is there of a line whose end is not. */
  let begun: string[] = [];
  /** Whether the last block ended in `\r`, so that `\n` at the beginning of the next one ends nothing. */
  let isAfterReturn = false;
  for await (const block of utf8Blocks(path)) {
    const text = block.toString('utf8', isAfterReturn && block[0] === lineFeed ? 1 : 0);
    isAfterReturn = block[block.length - 1] === carriageReturn;
    const pieces = text.split(/\r\n|\n|\r/);
    const last = pieces.pop() as string;
    for (const piece of pieces) {
      begun.push(piece);
      yield begun.join('');
      begun = [];
    }
    if (last !== '') begun.push(last);
  }
  if (begun.length > 0) yield begun.join('');
}

/** Blocks of memory that go round: touching new memory costs more than reading into it. */
export class Blocks {
  readonly #bytes: number;
  readonly #free: ArrayBuffer[] = [];

  constructor(bytes: number) {
    this.#bytes = bytes;
  }

  take(): ArrayBuffer {
    return this.#free.pop() ?? new ArrayBuffer(this.#bytes);
  }

  give(block: ArrayBuffer): void {
    this.#free.push(block);
  }
}
