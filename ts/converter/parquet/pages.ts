/**
 * One column of one row group, page by page.
 *
 * A page is what lies in memory, never the row group: files with a single row group of many gigabytes are
 * read like all others. The file is read in pieces of {@link pieceBytes} or a page, whichever is more.
 */
import zlib from 'node:zlib';
import type { ColumnMetaData, Encoding } from 'hyparquet';
import { LoaderxError, show } from '../../errors.js';
import { decompressed } from './codecs.js';
import {
  bitWidthOf,
  Damaged,
  readHybrid,
  readValues,
  Source,
  UnknownEncoding,
  type Values,
} from './encodings.js';
import { count, type Leaf, malformed, type ParquetFile } from './file.js';
import { type Caster, Unfit } from './numbers.js';
import { type PageHeader, readPageHeader } from './page-header.js';

/** How a column is read. */
export interface Reading {
  /** As messages call it. */
  readonly column: string;
  readonly leaf: Leaf;
  /** Of numbers; undefined for bytes. */
  readonly number:
    | { readonly dtype: string; readonly width: number; readonly cast: Caster }
    | undefined;
}

/** A data page, decoded. */
export interface Page {
  /** Values, nulls and empty lists together. */
  readonly entryCount: number;
  /** Levels of each entry, or the one level that all have. */
  readonly repetition: Uint8Array | number;
  readonly definition: Uint8Array | number;
  /** Of the entries that are at the highest definition level. */
  readonly valueCount: number;
  readonly values: Values;
  /** Whether values are of the declared dtype already. */
  readonly isCast: boolean;
}

const pieceBytes = 1024 * 1024;
const headerBytesMin = 64 * 1024;
const headerBytesMax = 64 * 1024 * 1024;

export class Pages {
  readonly #file: ParquetFile;
  readonly #column: string;
  readonly #leaf: Leaf;
  readonly #chunk: ColumnMetaData;
  readonly #cast: Caster | undefined;
  readonly #pageBytesMax: number;
  readonly #end: number;
  /** Where the next page's header is in the file. */
  #at: number;
  /** A piece of the file, from `#pieceAt` on. */
  #piece: Uint8Array = new Uint8Array(0);
  #pieceAt = 0;
  #entriesLeft: number;
  #dictionary: Values | undefined;
  /** Bytes of a value of the dictionary, which is cast as a whole where all of it can be. */
  #dictionaryWidth = 0;
  #dictionaryIsCast = false;

  constructor(
    file: ParquetFile,
    { column, leaf, number }: Reading,
    chunk: ColumnMetaData,
    pageBytesMax: number,
  ) {
    this.#file = file;
    this.#column = column;
    this.#leaf = leaf;
    this.#cast = number?.cast;
    this.#chunk = chunk;
    this.#pageBytesMax = pageBytesMax;
    const data = this.#count(chunk.data_page_offset);
    const dictionary = this.#count(chunk.dictionary_page_offset ?? 0n);
    // Some writers say 0 where there is none.
    this.#at = dictionary > 0 ? Math.min(dictionary, data) : data;
    this.#end = this.#at + this.#count(chunk.total_compressed_size);
    this.#entriesLeft = this.#count(chunk.num_values);
  }

  /** The next data page; undefined after the last one. */
  async next(): Promise<Page | undefined> {
    while (this.#entriesLeft > 0) {
      const header = await this.#header();
      const packed = await this.#bytes(this.#at, header.packedBytes);
      this.#at += header.packedBytes;
      const page = this.#checked(() => this.#decoded(header, packed));
      if (page === undefined) continue;
      this.#entriesLeft -= page.entryCount;
      return page;
    }
    return undefined;
  }

  /** An error about this column. */
  damaged(reason: string, cause?: unknown): LoaderxError {
    const { name } = this.#file;
    const message = `${name}: column ${show(this.#column)}: ${reason}`;
    return new LoaderxError(
      'MALFORMED',
      message,
      { path: name, field: this.#column },
      cause === undefined ? {} : { cause },
    );
  }

  async #header(): Promise<PageHeader> {
    const left = this.#end - this.#at;
    if (left <= 0) throw this.damaged(`it ends ${this.#entriesLeft} values too early`);
    for (let size = headerBytesMin; ; size *= 8) {
      const bytes = await this.#bytes(this.#at, Math.min(size, left));
      let header: PageHeader;
      try {
        header = readPageHeader(bytes);
      } catch (cause) {
        // Headers hold the least and the greatest value, which may be long texts.
        if (size < left && size < headerBytesMax) continue;
        throw this.damaged('a page has a damaged header', cause);
      }
      this.#at += header.headerBytes;
      this.#checked(() => this.#assertBounded(header));
      return header;
    }
  }

  /** Throws where a page is larger than what there is, or than the limit. */
  #assertBounded(header: PageHeader): void {
    if (header.packedBytes > this.#end - this.#at) {
      throw new Damaged(`a page of ${header.packedBytes} bytes goes beyond the column's end`);
    }
    // What is decoded, if every entry were a value: a few bytes can say that there are 2^31 of them.
    const decodedBytes = header.entryCount * Math.max(this.#leaf.physical.width, 1);
    const bytes = Math.max(header.bytes, header.packedBytes, decodedBytes);
    if (bytes > this.#pageBytesMax) {
      const { name } = this.#file;
      throw new LoaderxError(
        'TOO_LARGE',
        `${name}: column ${show(this.#column)} has a page of ${bytes} bytes, and limits.pageBytes is ${this.#pageBytesMax}`,
        { path: name, field: this.#column },
      );
    }
  }

  #decoded(header: PageHeader, packed: Uint8Array): Page | undefined {
    const { crc, type, bytes, encoding, entryCount } = header;
    if (crc !== undefined && (zlib.crc32(packed) | 0) !== crc) {
      throw new Damaged('the checksum of a page does not match its bytes');
    }
    const { codec } = this.#chunk;
    const { physical } = this.#leaf;
    switch (type) {
      case 'dictionary': {
        const source = new Source(decompressed(codec, packed, bytes));
        // Its encoding is PLAIN, which the first version called PLAIN_DICTIONARY.
        this.#setDictionary(readValues(source, 'PLAIN', physical, entryCount, undefined, 0));
        return undefined;
      }
      case 'data': {
        const source = new Source(decompressed(codec, packed, bytes));
        const { maxDefinition, listDefinitions } = this.#leaf;
        const { definitionEncoding, repetitionEncoding } = header;
        const levels = (max: number, by: Encoding): Uint8Array | number => {
          if (max === 0) return 0;
          if (by !== 'RLE') throw new UnknownEncoding(`levels of the encoding ${by} are not read`);
          return levelsOf(source.part(source.u32()), max, entryCount);
        };
        const repetition = levels(listDefinitions.length, repetitionEncoding);
        const definition = levels(maxDefinition, definitionEncoding);
        return this.#page(entryCount, repetition, definition, source, encoding);
      }
      case 'data2': {
        const { definitionBytes, repetitionBytes, isPacked } = header;
        const { maxDefinition, listDefinitions } = this.#leaf;
        const whole = new Source(packed);
        const levels = (max: number, length: number): Uint8Array | number => {
          const part = whole.part(length);
          return max === 0 ? 0 : levelsOf(part, max, entryCount);
        };
        const repetition = levels(listDefinitions.length, repetitionBytes);
        const definition = levels(maxDefinition, definitionBytes);
        const rest = packed.subarray(whole.at);
        const plain = bytes - definitionBytes - repetitionBytes;
        if (plain < 0) throw new Damaged('a page is smaller than its levels');
        const values = isPacked ? decompressed(codec, rest, plain) : rest;
        return this.#page(entryCount, repetition, definition, new Source(values), encoding);
      }
      case 'index':
        return undefined;
    }
  }

  /** Casting each value of a dictionary once is much less than casting all that refer to it. */
  #setDictionary(values: Values): void {
    const { width } = this.#leaf.physical;
    this.#dictionary = values;
    this.#dictionaryWidth = width;
    this.#dictionaryIsCast = false;
    if (this.#cast === undefined || !(values instanceof Uint8Array) || values.length === 0) return;
    try {
      const cast = this.#cast(values);
      this.#dictionary = cast;
      this.#dictionaryWidth = (cast.length * width) / values.length;
      this.#dictionaryIsCast = true;
    } catch (error) {
      // A value does not fit. Whether a row has it, and which, is seen when pages are cast.
      if (!(error instanceof Unfit)) throw error;
    }
  }

  #page(
    entryCount: number,
    repetition: Uint8Array | number,
    definition: Uint8Array | number,
    source: Source,
    encoding: Encoding,
  ): Page | undefined {
    // An empty page would otherwise be read again and again.
    if (entryCount === 0) return undefined;
    if (entryCount > this.#entriesLeft)
      throw new Damaged('it has more values than its footer says');
    const { maxDefinition, physical } = this.#leaf;
    const valueCount = countOf(definition, maxDefinition, entryCount);
    const values = readValues(
      source,
      encoding,
      physical,
      valueCount,
      this.#dictionary,
      this.#dictionaryWidth,
    );
    const isCast = this.#dictionaryIsCast && encoding.endsWith('_DICTIONARY');
    return { entryCount, repetition, definition, valueCount, values, isCast };
  }

  /** Bytes of the column, which has them. */
  async #bytes(at: number, bytes: number): Promise<Uint8Array> {
    const offset = at - this.#pieceAt;
    if (offset < 0 || offset + bytes > this.#piece.length) {
      const end = Math.min(this.#end, at + Math.max(bytes, pieceBytes));
      this.#piece = await this.#file.read(at, end);
      this.#pieceAt = at;
    }
    const from = at - this.#pieceAt;
    return this.#piece.subarray(from, from + bytes);
  }

  #count(value: unknown): number {
    try {
      return count(value);
    } catch (cause) {
      throw malformed(this.#file.name, 'its footer is damaged', cause);
    }
  }

  /** Runs what reads untrusted bytes; what it throws is told with its place. */
  #checked<T>(act: () => T): T {
    try {
      return act();
    } catch (cause) {
      if (cause instanceof LoaderxError) throw cause;
      if (cause instanceof UnknownEncoding) {
        const { name } = this.#file;
        throw new LoaderxError(
          'UNSUPPORTED',
          `${name}: column ${show(this.#column)}: ${cause.message}`,
          { path: name, field: this.#column },
          { cause },
        );
      }
      throw this.damaged(cause instanceof Error ? cause.message : String(cause), cause);
    }
  }
}

function levelsOf(source: Source, max: number, entryCount: number): Uint8Array | number {
  const target = new Uint8Array(entryCount);
  const same = readHybrid(source, bitWidthOf(max), target);
  if (same !== undefined) {
    if (same > max) throw new Damaged(`a level of ${same}, and ${max} is the highest`);
    return same;
  }
  // Bits may say more than there are levels, unless all that they can say is one.
  if ((max & (max + 1)) !== 0) {
    let highest = 0;
    for (let index = 0; index < entryCount; index += 1) {
      const level = target[index] as number;
      if (level > highest) highest = level;
    }
    if (highest > max) throw new Damaged(`a level of ${highest}, and ${max} is the highest`);
  }
  return target;
}

function countOf(levels: Uint8Array | number, level: number, entryCount: number): number {
  if (typeof levels === 'number') return levels === level ? entryCount : 0;
  let sum = 0;
  for (let index = 0; index < entryCount; index += 1) {
    if (levels[index] === level) sum += 1;
  }
  return sum;
}
