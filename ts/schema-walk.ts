/**
 * Which MsgPack bytes may be a schema, decided before anything is decoded.
 *
 *     map of 1 .. 3    str key    value: str | int | array of at most 63 ints
 *
 * The walk is a single loop over at most 2040 bytes: it keeps no stack, builds no value and follows
 * no count further than the bytes that are there, so a hostile schema costs nothing. What it lets
 * through holds no nil, bool, float, bin, ext, nested map or nested array, no key twice, no text
 * that is not UTF-8, and not one byte after the map.
 */
import { type ErrorPlace, LoaderxError } from './errors.js';

/** Bytes a page has for the schema. */
export const schemaBytesMax = 2040;

const fieldCountMax = 3;
const listLengthMax = 63;

/**
 * Checks that `bytes` are one MsgPack map of the kinds a schema has.
 *
 * @param place goes into the error
 * @throws LoaderxError MALFORMED with `field: 'schema'`
 */
export function walkSchema(bytes: Uint8Array, place: ErrorPlace): void {
  const fail = (reason: string, at: number): LoaderxError =>
    new LoaderxError(
      'MALFORMED',
      `${place.path === undefined ? '' : `${place.path}: `}the schema is damaged: ${reason} at byte ${at}`,
      { ...place, field: 'schema' },
    );
  if (bytes.length > schemaBytesMax) throw fail(`over ${schemaBytesMax} bytes`, schemaBytesMax);

  const reader = new HeadReader(bytes);
  const map = reader.next();
  if (map.kind !== 'map') throw fail(`${map.kind} where a map must be`, 0);
  if (map.value > fieldCountMax) throw fail(`a map of ${map.value} fields`, 0);

  const keys = new Set<string>();
  for (let index = 0; index < map.value; index += 1) {
    const keyAt = reader.at;
    const key = reader.next();
    if (key.kind !== 'str') throw fail(`${key.kind} where a field name must be`, keyAt);
    const name = reader.text(key.value);
    if (name === undefined) throw fail('a field name that is cut short or not UTF-8', keyAt);
    if (keys.has(name)) throw fail('a field that is there twice', keyAt);
    keys.add(name);

    const valueAt = reader.at;
    const value = reader.next();
    if (value.kind === 'str') {
      if (reader.text(value.value) === undefined) {
        throw fail('a text that is cut short or not UTF-8', valueAt);
      }
    } else if (value.kind === 'array') {
      if (value.value > listLengthMax) throw fail(`a list of ${value.value}`, valueAt);
      for (let item = 0; item < value.value; item += 1) {
        const itemAt = reader.at;
        const { kind } = reader.next();
        if (kind !== 'int') throw fail(`${kind} where an integer must be`, itemAt);
      }
    } else if (value.kind !== 'int') {
      throw fail(`${value.kind} where a text, an integer or a list must be`, valueAt);
    }
  }
  if (reader.at !== bytes.length) throw fail('more bytes after the map', reader.at);
}

type HeadKind = 'map' | 'array' | 'str' | 'int' | 'the end' | 'another kind of value';

interface Head {
  readonly kind: HeadKind;
  /** Entries of a map or array, bytes of a str; 0 for an int, whose bytes are passed over. */
  readonly value: number;
}

/** Reads one MsgPack header after the other. */
class HeadReader {
  at = 0;
  readonly #bytes: Uint8Array;
  readonly #utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

  constructor(bytes: Uint8Array) {
    this.#bytes = bytes;
  }

  next(): Head {
    const tag = this.#bytes[this.at];
    if (tag === undefined) return { kind: 'the end', value: 0 };
    this.at += 1;
    if (tag <= 0x7f || tag >= 0xe0) return { kind: 'int', value: 0 };
    if (tag <= 0x8f) return { kind: 'map', value: tag & 0x0f };
    if (tag <= 0x9f) return { kind: 'array', value: tag & 0x0f };
    if (tag <= 0xbf) return { kind: 'str', value: tag & 0x1f };
    switch (tag) {
      case 0xcc:
      case 0xd0:
        return this.#int(1);
      case 0xcd:
      case 0xd1:
        return this.#int(2);
      case 0xce:
      case 0xd2:
        return this.#int(4);
      case 0xcf:
      case 0xd3:
        return this.#int(8);
      case 0xd9:
        return this.#counted('str', 1);
      case 0xda:
        return this.#counted('str', 2);
      case 0xdb:
        return this.#counted('str', 4);
      case 0xdc:
        return this.#counted('array', 2);
      case 0xdd:
        return this.#counted('array', 4);
      case 0xde:
        return this.#counted('map', 2);
      case 0xdf:
        return this.#counted('map', 4);
      default:
        return { kind: 'another kind of value', value: 0 };
    }
  }

  /** The next `length` bytes as text; undefined when they are not there or not UTF-8. */
  text(length: number): string | undefined {
    const end = this.at + length;
    if (end > this.#bytes.length) return undefined;
    try {
      const text = this.#utf8.decode(this.#bytes.subarray(this.at, end));
      this.at = end;
      return text;
    } catch {
      return undefined;
    }
  }

  #int(width: number): Head {
    if (this.at + width > this.#bytes.length) return { kind: 'the end', value: 0 };
    this.at += width;
    return { kind: 'int', value: 0 };
  }

  #counted(kind: 'map' | 'array' | 'str', width: number): Head {
    if (this.at + width > this.#bytes.length) return { kind: 'the end', value: 0 };
    let value = 0;
    for (let index = 0; index < width; index += 1) {
      value = value * 256 + (this.#bytes[this.at + index] ?? 0);
    }
    this.at += width;
    return { kind, value };
  }
}
