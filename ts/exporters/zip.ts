/**
 * A zip file whose members are stored as they come, as `np.savez` writes them: nothing is known of a member
 * before it is through, so its CRC stands behind it. 64-bit sizes throughout, since arrays are large.
 */
import { crc32 } from 'node:zlib';
import { LoaderxError, show } from '../errors.js';

interface Entry {
  readonly name: Buffer;
  readonly offset: number;
  readonly crc: number;
  readonly bytes: number;
}

/** Sizes stand behind the bytes, and names are UTF-8. */
const flags = 0x0808;
const version = 45;
/** 1980-01-01: the same records give the same file. */
const date = 0x0021;

export class ZipWriter {
  readonly #write: (bytes: Uint8Array) => Promise<void>;
  readonly #entries: Entry[] = [];
  readonly #names = new Set<string>();
  #offset = 0;

  /** @param write takes the next bytes of the file; they may change when it resolves */
  constructor(write: (bytes: Uint8Array) => Promise<void>) {
    this.#write = write;
  }

  /** @throws LoaderxError SOURCE where there is a member of that name */
  async add(name: string, pieces: AsyncIterable<Uint8Array>): Promise<void> {
    if (this.#names.has(name)) {
      throw new LoaderxError('SOURCE', `two members would be called ${show(name)}`, {
        field: name,
      });
    }
    this.#names.add(name);
    const nameBytes = Buffer.from(name);
    const offset = this.#offset;
    const header = Buffer.alloc(30 + nameBytes.length + 20);
    header.writeUInt32LE(0x04034b50, 0);
    header.writeUInt16LE(version, 4);
    header.writeUInt16LE(flags, 6);
    header.writeUInt16LE(date, 12);
    header.writeUInt32LE(0xffffffff, 18);
    header.writeUInt32LE(0xffffffff, 22);
    header.writeUInt16LE(nameBytes.length, 26);
    header.writeUInt16LE(20, 28);
    nameBytes.copy(header, 30);
    // Room for the sizes, which says that those behind the bytes have 64 bits.
    header.writeUInt16LE(1, 30 + nameBytes.length);
    header.writeUInt16LE(16, 32 + nameBytes.length);
    await this.#put(header);
    let crc = 0;
    let bytes = 0;
    for await (const piece of pieces) {
      crc = crc32(piece, crc);
      bytes += piece.byteLength;
      await this.#put(piece);
    }
    const descriptor = Buffer.alloc(24);
    descriptor.writeUInt32LE(0x08074b50, 0);
    descriptor.writeUInt32LE(crc, 4);
    descriptor.writeBigUInt64LE(BigInt(bytes), 8);
    descriptor.writeBigUInt64LE(BigInt(bytes), 16);
    await this.#put(descriptor);
    this.#entries.push({ name: nameBytes, offset, crc, bytes });
  }

  /** Writes the directory. */
  async end(): Promise<void> {
    const from = this.#offset;
    for (const entry of this.#entries) await this.#put(directoryEntry(entry));
    const size = this.#offset - from;
    const count = BigInt(this.#entries.length);
    const end = Buffer.alloc(56 + 20 + 22);
    end.writeUInt32LE(0x06064b50, 0);
    end.writeBigUInt64LE(44n, 4);
    end.writeUInt16LE(version, 12);
    end.writeUInt16LE(version, 14);
    end.writeBigUInt64LE(count, 24);
    end.writeBigUInt64LE(count, 32);
    end.writeBigUInt64LE(BigInt(size), 40);
    end.writeBigUInt64LE(BigInt(from), 48);
    end.writeUInt32LE(0x07064b50, 56);
    end.writeBigUInt64LE(BigInt(from + size), 64);
    end.writeUInt32LE(1, 72);
    end.writeUInt32LE(0x06054b50, 76);
    end.fill(0xff, 84, 96);
    await this.#put(end);
  }

  async #put(bytes: Uint8Array): Promise<void> {
    await this.#write(bytes);
    this.#offset += bytes.byteLength;
  }
}

function directoryEntry({ name, offset, crc, bytes }: Entry): Buffer {
  const entry = Buffer.alloc(46 + name.length + 28);
  entry.writeUInt32LE(0x02014b50, 0);
  entry.writeUInt16LE(version, 4);
  entry.writeUInt16LE(version, 6);
  entry.writeUInt16LE(flags, 8);
  entry.writeUInt16LE(date, 14);
  entry.writeUInt32LE(crc, 16);
  entry.fill(0xff, 20, 28);
  entry.writeUInt16LE(name.length, 28);
  entry.writeUInt16LE(28, 30);
  entry.writeUInt32LE(0xffffffff, 42);
  name.copy(entry, 46);
  const extra = 46 + name.length;
  entry.writeUInt16LE(1, extra);
  entry.writeUInt16LE(24, extra + 2);
  entry.writeBigUInt64LE(BigInt(bytes), extra + 4);
  entry.writeBigUInt64LE(BigInt(bytes), extra + 12);
  entry.writeBigUInt64LE(BigInt(offset), extra + 20);
  return entry;
}
