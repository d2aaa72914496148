/**
 * Members of a zip file, such as `.npz` is one.
 *
 * ```text
 * member 0, member 1, …      each: local header, name, its bytes
 * directory                  for each member: name, sizes, CRC-32, where its local header lies
 * [64-bit end and locator]   where sizes or counts pass 32 or 16 bits
 * end                        where the directory lies
 * ```
 *
 * The directory is read here: Node has what is difficult, inflating and the CRC, natively. Of the npm
 * packages, zip.js inflates 50 MB in 10 s on Node 20 and brings 318 KB, fflate's streams check no CRC and
 * know no 64-bit sizes, and yauzl is CommonJS, which cannot be folded in.
 */
import fs from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { Readable } from 'node:stream';
import { crc32, createInflateRaw } from 'node:zlib';
import { LoaderxError, show } from '../errors.js';
import { type ByteFile, type ByteSource, type ByteStream, fileSource, openBytes } from './bytes.js';

const endBytes = 22;
const commentBytesMax = 65_535;
const directoryBytesMax = 64 * 2 ** 20;
const chunkBytes = 2 ** 20;

interface Member {
  readonly name: string;
  readonly method: number;
  readonly crc: number;
  readonly storedBytes: number;
  readonly byteLength: number;
  readonly headerOffset: number;
}

/**
 * The members of a zip file by name, in the order of its directory; folders are left out.
 *
 * @throws LoaderxError MALFORMED for what is no zip file or a damaged one, UNSUPPORTED for members that are
 *   encrypted or packed by another method than deflate, NOT_FOUND, IO
 */
export async function zipMembers(zipPath: string): Promise<ReadonlyMap<string, ByteSource>> {
  const archive = await fileSource(zipPath);
  const file = await archive.openFile();
  let members: readonly Member[];
  try {
    members = await directoryOf(archive, file);
  } finally {
    await file.close();
  }
  const sources = new Map<string, ByteSource>();
  for (const member of members) {
    if (member.name.endsWith('/')) continue;
    if (sources.has(member.name)) {
      throw malformed(archive.name, `member ${show(member.name)} is there twice`);
    }
    sources.set(member.name, memberSource(archive, member));
  }
  return sources;
}

function malformed(name: string, reason: string): LoaderxError {
  return new LoaderxError('MALFORMED', `${name}: ${reason}`, { path: name });
}

/** Numbers at places of a buffer that is known to be long enough. */
function u16(bytes: Buffer, at: number): number {
  return bytes.readUInt16LE(at);
}

function u32(bytes: Buffer, at: number): number {
  return bytes.readUInt32LE(at);
}

async function bytesAt(
  { name }: ByteSource,
  file: ByteFile,
  position: number,
  length: number,
): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  if (position < 0 || (await file.fillAt(bytes, position)) < length) {
    throw malformed(name, 'it is cut off, or places in it are not where it says');
  }
  return bytes;
}

async function directoryOf(archive: ByteSource, file: ByteFile): Promise<readonly Member[]> {
  const { name, byteLength } = archive;
  if (byteLength < endBytes) throw malformed(name, 'it is no zip file: it is too short');
  const tailBytes = Math.min(byteLength, endBytes + commentBytesMax);
  const tail = await bytesAt(archive, file, byteLength - tailBytes, tailBytes);
  let at = tailBytes - endBytes;
  while (at >= 0 && !(u32(tail, at) === 0x06054b50 && u16(tail, at + 20) === tailBytes - at - 22)) {
    at -= 1;
  }
  if (at < 0) throw malformed(name, 'it is no zip file, or is cut off: its end is missing');
  let count = u16(tail, at + 10);
  let size = u32(tail, at + 12);
  let offset = u32(tail, at + 16);
  if (count === 0xffff || size === 0xffffffff || offset === 0xffffffff) {
    const locator = await bytesAt(archive, file, byteLength - tailBytes + at - 20, 20);
    if (u32(locator, 0) !== 0x07064b50) throw malformed(name, 'its 64-bit end is missing');
    const end = await bytesAt(archive, file, Number(locator.readBigUInt64LE(8)), 56);
    if (u32(end, 0) !== 0x06064b50) throw malformed(name, 'its 64-bit end is missing');
    count = Number(end.readBigUInt64LE(32));
    size = Number(end.readBigUInt64LE(40));
    offset = Number(end.readBigUInt64LE(48));
  }
  if (size > directoryBytesMax || offset + size > byteLength) {
    throw malformed(name, 'its directory is not where its end says');
  }
  const directory = await bytesAt(archive, file, offset, size);
  const members: Member[] = [];
  let entry = 0;
  for (let index = 0; index < count; index += 1) {
    if (entry + 46 > size || u32(directory, entry) !== 0x02014b50) {
      throw malformed(name, `entry ${index} of its directory is damaged`);
    }
    const nameBytes = u16(directory, entry + 28);
    const extraBytes = u16(directory, entry + 30);
    const end = entry + 46 + nameBytes + extraBytes + u16(directory, entry + 32);
    if (end > size) throw malformed(name, `entry ${index} of its directory is damaged`);
    members.push(memberOf(name, directory.subarray(entry, end), nameBytes, extraBytes));
    entry = end;
  }
  return members;
}

function memberOf(archive: string, entry: Buffer, nameBytes: number, extraBytes: number): Member {
  const flags = u16(entry, 8);
  const method = u16(entry, 10);
  // Without the flag the encoding is said to be that of an old PC; Python and others write UTF-8 or ASCII.
  const name = entry.subarray(46, 46 + nameBytes).toString('utf8');
  if ((flags & 1) !== 0 || (method !== 0 && method !== 8)) {
    const what = (flags & 1) !== 0 ? 'is encrypted' : `is packed by method ${method}`;
    throw new LoaderxError(
      'UNSUPPORTED',
      `${archive}: member ${show(name)} ${what}, and members that are stored or deflated are read`,
      { path: archive, field: name },
    );
  }
  const values = [u32(entry, 24), u32(entry, 20), u32(entry, 42)];
  const extra = entry.subarray(46 + nameBytes, 46 + nameBytes + extraBytes);
  let at = 0;
  while (at + 4 <= extra.length) {
    const id = u16(extra, at);
    const size = u16(extra, at + 2);
    let wide = at + 4;
    at = wide + size;
    if (id !== 1 || at > extra.length) continue;
    for (const [index, value] of values.entries()) {
      if (value !== 0xffffffff || wide + 8 > at) continue;
      values[index] = Number(extra.readBigUInt64LE(wide));
      wide += 8;
    }
  }
  const [byteLength = 0, storedBytes = 0, headerOffset = 0] = values;
  return { name, method, crc: u32(entry, 16), storedBytes, byteLength, headerOffset };
}

function memberSource(archive: ByteSource, member: Member): ByteSource {
  const name = `${archive.name}, member ${show(member.name)}`;
  const open = (): Promise<ByteStream> => openMember(archive, member, name);
  return { name, byteLength: member.byteLength, open, openFile: () => asFile(name, open) };
}

async function openMember(archive: ByteSource, member: Member, name: string): Promise<ByteStream> {
  const file = await archive.openFile();
  try {
    const header = await bytesAt(archive, file, member.headerOffset, 30);
    if (u32(header, 0) !== 0x04034b50) throw malformed(name, 'its local header is not there');
    const from = member.headerOffset + 30 + u16(header, 26) + u16(header, 28);
    if (from + member.storedBytes > archive.byteLength) throw malformed(name, 'it is cut off');
    const raw = stored(archive, file, from, member.storedBytes);
    if (member.method === 0) {
      if (member.storedBytes !== member.byteLength) {
        throw malformed(name, 'it is stored, and its two sizes differ');
      }
      return new Checked(name, member, file, raw);
    }
    const packed = Readable.from(raw);
    const inflate = createInflateRaw({ chunkSize: 256 * 1024 });
    packed.on('error', (error) => inflate.destroy(error));
    return new Checked(name, member, file, packed.pipe(inflate));
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function* stored(
  archive: ByteSource,
  file: ByteFile,
  from: number,
  bytes: number,
): AsyncGenerator<Buffer, void, undefined> {
  for (let done = 0; done < bytes; done += chunkBytes) {
    yield await bytesAt(archive, file, from + done, Math.min(chunkBytes, bytes - done));
  }
}

/** Bytes of a member, held against its size and CRC-32. */
class Checked implements ByteStream {
  readonly #name: string;
  readonly #member: Member;
  readonly #file: ByteFile;
  readonly #chunks: AsyncIterator<Uint8Array>;
  #chunk: Uint8Array = new Uint8Array(0);
  #crc = 0;
  #done = 0;

  constructor(name: string, member: Member, file: ByteFile, chunks: AsyncIterable<Uint8Array>) {
    this.#name = name;
    this.#member = member;
    this.#file = file;
    this.#chunks = chunks[Symbol.asyncIterator]();
  }

  async fill(target: Uint8Array): Promise<number> {
    let filled = 0;
    while (filled < target.byteLength) {
      if (this.#chunk.byteLength === 0 && !(await this.#next())) break;
      const part = this.#chunk.subarray(0, target.byteLength - filled);
      target.set(part, filled);
      filled += part.byteLength;
      this.#chunk = this.#chunk.subarray(part.byteLength);
    }
    // Whoever has the last byte knows that all are right.
    if (this.#done === this.#member.byteLength && this.#chunk.byteLength === 0) await this.#next();
    return filled;
  }

  async skip(bytes: number): Promise<void> {
    const some = new Uint8Array(Math.min(bytes, chunkBytes));
    for (let left = bytes; left > 0; ) {
      const came = await this.fill(some.subarray(0, left));
      if (came === 0) return;
      left -= came;
    }
  }

  async #next(): Promise<boolean> {
    let step: IteratorResult<Uint8Array>;
    try {
      step = await this.#chunks.next();
    } catch (cause) {
      if (cause instanceof LoaderxError) throw cause;
      const { code } = cause as NodeJS.ErrnoException;
      throw new LoaderxError(
        'MALFORMED',
        `${this.#name}: it cannot be unpacked (${code ?? String(cause)})`,
        { path: this.#name },
        { cause },
      );
    }
    const { byteLength, crc } = this.#member;
    if (step.done === true) {
      if (this.#done !== byteLength || this.#crc !== crc) {
        throw malformed(this.#name, 'its bytes are not those that its CRC-32 is of');
      }
      return false;
    }
    this.#chunk = step.value;
    this.#done += step.value.byteLength;
    if (this.#done > byteLength) {
      throw malformed(this.#name, `it has more than the ${byteLength} bytes that it tells of`);
    }
    this.#crc = crc32(step.value, this.#crc);
    return true;
  }

  async close(): Promise<void> {
    await this.#chunks.return?.();
    await this.#file.close();
  }
}

/** A member's bytes in a file of the system's temporary folder, for whoever reads to and fro. */
async function asFile(name: string, open: () => Promise<ByteStream>): Promise<ByteFile> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'loaderx-member-'));
  const remove = (): Promise<void> => fs.rm(folder, { recursive: true, force: true });
  try {
    const target = path.join(folder, 'member');
    const stream = await open();
    try {
      const handle = await fs.open(target, 'wx');
      try {
        const chunk = Buffer.alloc(chunkBytes);
        for (;;) {
          const bytes = await stream.fill(chunk);
          if (bytes === 0) break;
          await handle.writeFile(chunk.subarray(0, bytes));
        }
      } finally {
        await handle.close();
      }
    } finally {
      await stream.close();
    }
    const file = await openBytes(target, name);
    return {
      ...file,
      close: async () => {
        await file.close();
        await remove();
      },
    };
  } catch (error) {
    await remove();
    throw error;
  }
}
