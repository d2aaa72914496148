/**
 * Files as importers read them: from the beginning to the end, or anywhere in them, into memory that is used
 * again.
 */
import fs from 'node:fs';
import { createInterface } from 'node:readline';
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

/** The lines of a text file, without their ends. @throws LoaderxError NOT_FOUND, IO */
export async function* textLines(path: string): AsyncGenerator<string, void, undefined> {
  const file = fs.createReadStream(path, { highWaterMark: 256 * 1024, encoding: 'utf8' });
  const opened = new Promise<void>((resolve, reject) => {
    file.once('open', () => resolve());
    file.once('error', reject);
  });
  try {
    // Before anybody listens for lines, so that a file that is not there is told here.
    await opened;
    yield* createInterface({ input: file, crlfDelay: Number.POSITIVE_INFINITY });
  } catch (cause) {
    throw readingFailed(path, cause);
  } finally {
    file.destroy();
  }
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
