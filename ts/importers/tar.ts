/**
 * Members of a tar archive, one after the other.
 *
 * ```text
 * header of 512 bytes   name, size, kind, sum of its bytes
 * bytes, filled up to 512
 * …
 * two blocks of zeros, and nothing but zeros behind them
 * ```
 *
 * Longer names and sizes stand in members of their own before the one that they are of: PAX's `x`, GNU's `L`.
 *
 * Headers are read here. A member's place is wanted, so that rows are counted, and parts are begun, without the
 * bytes of what lies between; packages give streams, which must be read to their next header. Of those that were
 * tried, modern-tar 0.8.6 takes GNU's sparse files for plain ones, whose bytes are others, and a PAX record that
 * is longer than its member for its end; tar-stream brings four packages. Neither tells where a fault lies.
 */
import fs from 'node:fs';
import { createGunzip } from 'node:zlib';
import { LoaderxError, show } from '../errors.js';
import { type ByteFile, openBytes, readingFailed } from './bytes.js';

/** A plain member of an archive. Its bytes are there until the next one is asked for. */
export interface TarMember {
  /** Its name, a character for each byte: no two names become one by their encoding. */
  readonly name: string;
  readonly archive: string;
  /** What messages call it: archive and member. */
  readonly shown: string;
  readonly byteLength: number;
  /** Where what is about it begins in the (unpacked) archive: reading may begin there. */
  readonly at: number;
  /** Its first bytes, at most so many; may be asked for more of them then. */
  head(bytesMax: number): Promise<Uint8Array>;
  /** All of its bytes, in memory of their own; instead of `head`. */
  bytes(): Promise<Uint8Array>;
}

const blockBytes = 512;
/** Of a name or a PAX header. */
const longBytesMax = 2 ** 20;
/** Of zeros behind the end: tar fills up to a record, of 10 KiB unless it is told otherwise. */
const endBytesMax = 64 * 2 ** 20;
/** Set aside for a member before its bytes have come. */
const believedBytesMax = 512 * 2 ** 20;
/** What is read at one time to look at headers, and to read everything. */
const aheadBytes = { headers: 64 * 1024, all: 512 * 1024 } as const;

export interface TarOptions {
  /** Whether most bytes are wanted, or few. */
  readonly purpose: 'headers' | 'all';
  /** The place of a member: it is the first one. */
  readonly from?: number;
  readonly signal?: AbortSignal | undefined;
}

/**
 * @throws LoaderxError MALFORMED for what is no tar archive or a damaged one, UNSUPPORTED for members that are
 *   no plain files, NOT_FOUND, IO; `path` is the archive
 */
export async function* tarMembers(
  archive: string,
  { purpose, from = 0, signal }: TarOptions,
): AsyncGenerator<TarMember, void, undefined> {
  const flow = /gz$/i.test(archive)
    ? new PackedFlow(archive, signal)
    : await FileFlow.open(archive, aheadBytes[purpose]);
  try {
    await flow.skip(from);
    yield* members(archive, flow, signal);
  } finally {
    await flow.close();
  }
}

async function* members(
  archive: string,
  flow: Flow,
  signal: AbortSignal | undefined,
): AsyncGenerator<TarMember, void, undefined> {
  let long: Long = {};
  let first: number | undefined;
  for (;;) {
    signal?.throwIfAborted();
    const at = flow.position;
    first ??= at;
    const block = await flow.take(blockBytes);
    if (block.byteLength === 0 && at === 0) throw malformed(archive, 'it is empty');
    if (block.byteLength < blockBytes) {
      throw malformed(
        archive,
        `it is cut off at byte ${at}: the blocks of zeros at its end are missing`,
      );
    }
    if (isZeros(block)) {
      if (first !== at) {
        throw malformed(archive, `it ends at byte ${at}, where the member of a header is missing`);
      }
      return assertEnd(archive, flow, signal);
    }
    const header = headerOf(archive, block, at);
    const { kind } = header;
    const byteLength = long.byteLength ?? header.byteLength;
    if (kind === 'long') {
      const bytes = await metadata(archive, flow, header.type, header.byteLength, at);
      long = joined(archive, long, longOf(archive, header.type, bytes, at), at);
      continue;
    }
    const name = long.name ?? header.name;
    const place = first;
    long = {};
    first = undefined;
    const shown = `${archive}, member ${shownName(name)}`;
    if (kind !== 'file' && kind !== 'folder') throw refused(archive, shown, kind);
    // An old archive's folder is a file whose name ends so.
    if (kind === 'folder' || name.endsWith('/')) {
      if (byteLength === 0) continue;
      // Of readers, some pass over so many bytes, and some read the next header there.
      throw malformed(archive, `the header at byte ${at} is a folder's, and tells of bytes in it`);
    }
    if (byteLength > flow.bytesLeft) throw cutOff(archive, shown, byteLength);
    const member = new Member(archive, flow, { name, shown, byteLength, at: place });
    yield member;
    await member.leave();
  }
}

class Member implements TarMember {
  readonly name: string;
  readonly shown: string;
  readonly byteLength: number;
  readonly at: number;
  readonly archive: string;
  readonly #flow: Flow;
  #early: Uint8Array = new Uint8Array(0);
  #taken = 0;

  constructor(
    archive: string,
    flow: Flow,
    { name, shown, byteLength, at }: Pick<TarMember, 'name' | 'shown' | 'byteLength' | 'at'>,
  ) {
    this.archive = archive;
    this.#flow = flow;
    this.name = name;
    this.shown = shown;
    this.byteLength = byteLength;
    this.at = at;
  }

  async head(bytesMax: number): Promise<Uint8Array> {
    const wanted = Math.min(bytesMax, this.byteLength);
    if (wanted > this.#taken) {
      const more = await this.#flow.copy(wanted - this.#taken);
      this.#early = Buffer.concat([this.#early, more]);
      this.#taken = this.#early.byteLength;
      if (this.#taken < wanted) throw cutOff(this.archive, this.shown, this.byteLength);
    }
    return this.#early.subarray(0, wanted);
  }

  async bytes(): Promise<Uint8Array> {
    const bytes = await this.#flow.copy(this.byteLength);
    if (bytes.byteLength < this.byteLength) {
      throw cutOff(this.archive, this.shown, this.byteLength);
    }
    this.#taken = this.byteLength;
    return bytes;
  }

  /** To the next header. */
  async leave(): Promise<void> {
    const left = padded(this.byteLength) - this.#taken;
    if ((await this.#flow.skip(left)) < left) {
      throw cutOff(this.archive, this.shown, this.byteLength);
    }
  }
}

function padded(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes;
}

function malformed(archive: string, reason: string): LoaderxError {
  return new LoaderxError('MALFORMED', `${archive}: ${reason}`, { path: archive });
}

function cutOff(archive: string, shown: string, bytes: number): LoaderxError {
  return new LoaderxError(
    'MALFORMED',
    `${shown}: it is cut off: it has ${bytes} bytes by its header`,
    {
      path: archive,
    },
  );
}

function refused(archive: string, shown: string, kind: string): LoaderxError {
  return new LoaderxError('UNSUPPORTED', `${shown}: it is ${kind}, and plain files are read`, {
    path: archive,
  });
}

/** What messages call a member: as UTF-8, where it is that. */
export function shownName(name: string): string {
  const bytes = Buffer.from(name, 'latin1');
  const text = bytes.toString('utf8');
  return show(text.includes('\ufffd') ? name : text);
}

async function assertEnd(
  archive: string,
  flow: Flow,
  signal: AbortSignal | undefined,
): Promise<void> {
  const from = flow.position;
  for (;;) {
    signal?.throwIfAborted();
    const at = flow.position;
    const rest = await flow.take(zeros.byteLength);
    if (rest.byteLength === 0) return;
    if (at - from > endBytesMax) {
      throw new LoaderxError(
        'TOO_LARGE',
        `${archive}: behind its end, at byte ${from}, there are more than ${endBytesMax} bytes of zeros`,
        { path: archive },
      );
    }
    if (isZeros(rest)) continue;
    throw malformed(
      archive,
      `there is something behind its end, after byte ${at}, which tar would leave out without a word: are several archives put together?`,
    );
  }
}

const zeros = new Uint8Array(64 * 1024);

/** Of no more bytes than `zeros` has. */
function isZeros(bytes: Uint8Array): boolean {
  return Buffer.compare(bytes, zeros.subarray(0, bytes.byteLength)) === 0;
}

// ---- headers ----

interface Header {
  readonly name: string;
  readonly byteLength: number;
  readonly type: string;
  /** `file`, `folder`, `long` for what is about the next member; else what it is, for a message. */
  readonly kind: string;
}

const kinds: Readonly<Record<string, string>> = {
  '\0': 'file',
  '0': 'file',
  '7': 'file',
  '5': 'folder',
  x: 'long',
  g: 'long',
  L: 'long',
  K: 'long',
  '1': 'a link to another member',
  '2': 'a symbolic link',
  '3': 'a device',
  '4': 'a device',
  '6': 'a pipe',
  S: 'a sparse file',
};

function headerOf(archive: string, block: Uint8Array, at: number): Header {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  const sum = octal(bytes.subarray(148, 156));
  let unsigned = 8 * 0x20;
  let signed = 8 * 0x20;
  for (let index = 0; index < blockBytes; index += 1) {
    if (index === 148) index = 156;
    const byte = bytes[index] as number;
    unsigned += byte;
    // Some old programs took bytes for signed ones.
    signed += byte > 127 ? byte - 256 : byte;
  }
  if (sum === undefined || (sum !== unsigned && sum !== signed)) {
    throw malformed(
      archive,
      at === 0
        ? 'it is no tar archive: its first header’s sum is not that of its bytes'
        : `the header at byte ${at} is damaged: its sum is not that of its bytes`,
    );
  }
  const byteLength = sizeOf(bytes.subarray(124, 136));
  if (byteLength === undefined) {
    throw malformed(archive, `the header at byte ${at} has no size that can be`);
  }
  const isPosix = text(bytes, 257, 263) === 'ustar' && bytes[262] === 0;
  const prefix = isPosix ? text(bytes, 345, 500) : '';
  const name = text(bytes, 0, 100);
  const type = String.fromCharCode(bytes[156] as number);
  const kind = kinds[type] ?? `of the unknown kind ${show(type)}`;
  return { name: prefix === '' ? name : `${prefix}/${name}`, byteLength, type, kind };
}

function text(bytes: Buffer, from: number, to: number): string {
  const end = bytes.indexOf(0, from);
  return bytes.toString('latin1', from, end === -1 || end > to ? to : end);
}

function octal(field: Buffer): number | undefined {
  const match = /^ *([0-7]{1,12})[ \0]*$/.exec(field.toString('latin1'));
  return match === null ? undefined : Number.parseInt(match[1] as string, 8);
}

/** In octal digits or, of 8 GiB and more, as a number whose first bit is set. */
function sizeOf(field: Buffer): number | undefined {
  if (((field[0] as number) & 0x80) === 0) return octal(field);
  let size = (field[0] as number) & 0x7f;
  for (const byte of field.subarray(1)) size = size * 256 + byte;
  return Number.isSafeInteger(size) ? size : undefined;
}

/** What stands before a member about it. */
interface Long {
  readonly name?: string;
  readonly byteLength?: number;
}

/** Where two tell of one member, readers differ in which of them they believe. */
function joined(archive: string, before: Long, after: Long, at: number): Long {
  const differs = (['name', 'byteLength'] as const).some(
    (key) => before[key] !== undefined && after[key] !== undefined && before[key] !== after[key],
  );
  if (!differs) return { ...before, ...after };
  throw malformed(
    archive,
    `the header at byte ${at} gives the next member another name or size than the one before it`,
  );
}

async function metadata(
  archive: string,
  flow: Flow,
  type: string,
  byteLength: number,
  at: number,
): Promise<Buffer> {
  if (byteLength > longBytesMax) {
    throw new LoaderxError(
      'TOO_LARGE',
      `${archive}: the header at byte ${at}, of type ${type}, tells of ${byteLength} bytes, and ${longBytesMax} is the most`,
      { path: archive },
    );
  }
  const wanted = padded(byteLength);
  const bytes = Buffer.from(await flow.copy(wanted));
  if (bytes.byteLength < wanted)
    throw malformed(archive, `it is cut off in the header at byte ${at}`);
  const own = bytes.subarray(0, byteLength);
  // Some readers take a name up to its size, and some up to its NUL.
  if (type === 'L' && !own.includes(0) && bytes.length > byteLength && bytes[byteLength] !== 0) {
    throw malformed(archive, `the long name at byte ${at} does not end where its size says`);
  }
  return own;
}

function longOf(archive: string, type: string, bytes: Buffer, at: number): Long {
  if (type === 'K') return {};
  if (type === 'L') {
    const name = text(bytes, 0, bytes.length);
    if (name !== '') return { name };
    throw malformed(archive, `the long name at byte ${at} is empty`);
  }
  const records = paxRecords(archive, bytes, at);
  const sparse = [...records.keys()].find((key) => key.startsWith('GNU.sparse.'));
  const isForAll = type === 'g' && (records.has('path') || records.has('size'));
  if (sparse !== undefined || isForAll) {
    const what = sparse === undefined ? 'a name or a size for all that follow' : 'a sparse file';
    throw new LoaderxError(
      'UNSUPPORTED',
      `${archive}: the header at byte ${at} is of ${what}, which is not read`,
      { path: archive },
    );
  }
  const name = records.get('path');
  const size = records.get('size');
  if (name === '' || (size !== undefined && !/^\d{1,15}$/.test(size))) {
    throw malformed(archive, `the PAX header at byte ${at} has a name or size that cannot be`);
  }
  return {
    ...(name === undefined ? {} : { name }),
    ...(size === undefined ? {} : { byteLength: Number(size) }),
  };
}

/** `18 path=some/name\n`, the length being that of all of it. */
function paxRecords(archive: string, bytes: Buffer, at: number): ReadonlyMap<string, string> {
  const records = new Map<string, string>();
  let from = 0;
  while (from < bytes.length) {
    const said = /^(\d{1,7}) /.exec(bytes.toString('latin1', from, from + 8));
    const length = Number(said?.[1] ?? 0);
    const record = bytes.toString('latin1', from + (said?.[0].length ?? 0), from + length);
    const equals = record.indexOf('=');
    if (from + length > bytes.length || equals < 1 || !record.endsWith('\n')) {
      throw malformed(archive, `the PAX header at byte ${at} is damaged`);
    }
    records.set(record.slice(0, equals), record.slice(equals + 1, -1));
    from += length;
  }
  return records;
}

// ---- bytes ----

/** Bytes from the beginning on, of which some are passed over. */
interface Flow {
  readonly position: number;
  /** How many there are yet, where it is known. */
  readonly bytesLeft: number;
  /** The next ones, fewer only at the end; until the next call. Up to a MiB. */
  take(bytes: number): Promise<Uint8Array>;
  /** As many as that, in memory of their own. */
  copy(bytes: number): Promise<Uint8Array>;
  /** How many were passed over: fewer only at the end. */
  skip(bytes: number): Promise<number>;
  close(): Promise<void>;
}

/** A file, of which what is passed over is not read. */
class FileFlow implements Flow {
  position = 0;
  readonly #file: ByteFile;
  readonly #byteLength: number;
  #window: Uint8Array;
  /** What lies in the window: from `#from` on, so many bytes. */
  #from = 0;
  #held = 0;

  private constructor(file: ByteFile, byteLength: number, aheadBytes: number) {
    this.#file = file;
    this.#byteLength = byteLength;
    this.#window = new Uint8Array(aheadBytes);
  }

  static async open(archive: string, aheadBytes: number): Promise<FileFlow> {
    const file = await openBytes(archive, archive);
    try {
      const { size } = await fs.promises.stat(archive);
      return new FileFlow(file, size, aheadBytes);
    } catch (cause) {
      await file.close();
      throw readingFailed(archive, cause);
    }
  }

  get bytesLeft(): number {
    return this.#byteLength - this.position;
  }

  async take(bytes: number): Promise<Uint8Array> {
    const isHeld = this.position >= this.#from && this.position + bytes <= this.#from + this.#held;
    if (!isHeld) {
      if (bytes > this.#window.byteLength) this.#window = new Uint8Array(bytes);
      this.#from = this.position;
      this.#held = await this.#file.fillAt(this.#window, this.position);
    }
    const at = this.position - this.#from;
    const taken = this.#window.subarray(at, Math.min(at + bytes, this.#held));
    this.position += taken.byteLength;
    return taken;
  }

  async copy(bytes: number): Promise<Uint8Array> {
    if (bytes <= this.#window.byteLength) return Uint8Array.from(await this.take(bytes));
    const target = new Uint8Array(bytes);
    const came = await this.#file.fillAt(target, this.position);
    this.position += came;
    return target.subarray(0, came);
  }

  async skip(bytes: number): Promise<number> {
    const skipped = Math.max(0, Math.min(bytes, this.bytesLeft));
    this.position += skipped;
    return skipped;
  }

  close(): Promise<void> {
    return this.#file.close();
  }
}

/** A file that is packed by gzip: all of it is unpacked, also what is passed over. */
class PackedFlow implements Flow {
  position = 0;
  readonly bytesLeft = Number.POSITIVE_INFINITY;
  readonly #archive: string;
  readonly #source: fs.ReadStream;
  readonly #unpacked: NodeJS.ReadableStream & { destroy(): void };
  readonly #chunks: AsyncIterator<Uint8Array>;
  readonly #signal: AbortSignal | undefined;
  #chunk: Uint8Array = new Uint8Array(0);

  constructor(archive: string, signal: AbortSignal | undefined) {
    this.#archive = archive;
    this.#signal = signal;
    this.#source = fs.createReadStream(archive, { highWaterMark: 256 * 1024 });
    const gunzip = createGunzip({ chunkSize: 256 * 1024 });
    this.#source.on('error', (error) => gunzip.destroy(error));
    this.#unpacked = this.#source.pipe(gunzip);
    this.#chunks = gunzip[Symbol.asyncIterator]();
  }

  async #some(bytesMax: number): Promise<Uint8Array> {
    if (this.#chunk.byteLength === 0) {
      // A little of a file may become very much.
      this.#signal?.throwIfAborted();
      try {
        const step = await this.#chunks.next();
        if (step.done === true) return this.#chunk;
        this.#chunk = step.value;
      } catch (cause) {
        throw this.#failed(cause);
      }
    }
    const some = this.#chunk.subarray(0, bytesMax);
    this.#chunk = this.#chunk.subarray(some.byteLength);
    this.position += some.byteLength;
    return some;
  }

  #failed(cause: unknown): unknown {
    const { code, syscall } = (cause ?? {}) as NodeJS.ErrnoException;
    if (syscall !== undefined) return readingFailed(this.#archive, cause);
    const archive = this.#archive;
    return new LoaderxError(
      'MALFORMED',
      `${archive}: it cannot be unpacked (${code ?? String(cause)})`,
      { path: archive },
      { cause },
    );
  }

  take(bytes: number): Promise<Uint8Array> {
    return this.copy(bytes);
  }

  /** A size that a header tells is not believed beyond what may be set aside: untouched, it takes no memory. */
  async copy(bytes: number): Promise<Uint8Array> {
    let whole = new Uint8Array(Math.min(bytes, believedBytesMax));
    let came = 0;
    while (came < bytes) {
      const piece = await this.#some(bytes - came);
      if (piece.byteLength === 0) break;
      if (came + piece.byteLength > whole.byteLength) {
        const more = new Uint8Array(Math.min(bytes, whole.byteLength * 2));
        more.set(whole);
        whole = more;
      }
      whole.set(piece, came);
      came += piece.byteLength;
    }
    return whole.subarray(0, came);
  }

  async skip(bytes: number): Promise<number> {
    let skipped = 0;
    while (skipped < bytes) {
      const piece = await this.#some(bytes - skipped);
      if (piece.byteLength === 0) break;
      skipped += piece.byteLength;
    }
    return skipped;
  }

  async close(): Promise<void> {
    this.#source.destroy();
    this.#unpacked.destroy();
  }
}
