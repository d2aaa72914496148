/**
 * The header of a page: Thrift's compact protocol, as far as headers need it. hyparquet reads the same for
 * itself and does not export it.
 */
import type { Encoding } from 'hyparquet';
import { show } from '../../errors.js';
import { Damaged, Source } from './encodings.js';

export interface PageHeader {
  readonly type: 'data' | 'index' | 'dictionary' | 'data2';
  /** Bytes of the page, decompressed. */
  readonly bytes: number;
  /** Bytes of the page in the file, behind its header. */
  readonly packedBytes: number;
  /** CRC-32 of the page in the file, as a signed number. */
  readonly crc: number | undefined;
  /** Values, nulls and empty lists together. */
  readonly entryCount: number;
  readonly encoding: Encoding;
  readonly definitionEncoding: Encoding;
  readonly repetitionEncoding: Encoding;
  /** Bytes of levels, which a page of the second version says here. */
  readonly definitionBytes: number;
  readonly repetitionBytes: number;
  /** Whether the values of a page of the second version are compressed. */
  readonly isPacked: boolean;
  /** Of the header itself. */
  readonly headerBytes: number;
}

const encodings: readonly Encoding[] = [
  ...(['PLAIN', 'GROUP_VAR_INT', 'PLAIN_DICTIONARY', 'RLE', 'BIT_PACKED'] as const),
  ...(['DELTA_BINARY_PACKED', 'DELTA_LENGTH_BYTE_ARRAY', 'DELTA_BYTE_ARRAY'] as const),
  ...(['RLE_DICTIONARY', 'BYTE_STREAM_SPLIT', 'ALP'] as const),
];
const types: readonly PageHeader['type'][] = ['data', 'index', 'dictionary', 'data2'];

/** Values by the number of their field: integers, booleans, and structs. Texts and lists are passed over. */
type Fields = ReadonlyMap<number, number | boolean | Fields>;

/** @throws Damaged where the bytes are no header, or not all of one */
export function readPageHeader(bytes: Uint8Array): PageHeader {
  const source = new Source(bytes);
  const fields = readStruct(source, 0);
  const type = types[count(fields, 1)];
  if (type === undefined) throw new Damaged(`a page of type ${show(fields.get(1))}`);
  const data = structOf(fields, 5);
  const second = structOf(fields, 8);
  const own = { data, index: new Map(), dictionary: structOf(fields, 7), data2: second }[type];
  const crc = fields.get(4);
  return {
    type,
    bytes: count(fields, 2),
    packedBytes: count(fields, 3),
    crc: typeof crc === 'number' ? crc | 0 : undefined,
    entryCount: type === 'index' ? 0 : count(own, 1),
    encoding: encodingOf(own, type === 'data2' ? 4 : 2, 'PLAIN'),
    definitionEncoding: encodingOf(data, 3, 'RLE'),
    repetitionEncoding: encodingOf(data, 4, 'RLE'),
    definitionBytes: type === 'data2' ? count(second, 5) : 0,
    repetitionBytes: type === 'data2' ? count(second, 6) : 0,
    isPacked: second.get(7) !== false,
    headerBytes: source.at,
  };
}

function structOf(fields: Fields, id: number): Fields {
  const value = fields.get(id);
  return value instanceof Map ? value : new Map();
}

function count(fields: Fields, id: number): number {
  const value = fields.get(id);
  if (typeof value === 'number' && value >= 0 && value < 2 ** 31) return value;
  throw new Damaged(`a page's header has ${show(value)} for a count`);
}

function encodingOf(fields: Fields, id: number, otherwise: Encoding): Encoding {
  const value = fields.get(id);
  if (value === undefined) return otherwise;
  return encodings[Number(value)] ?? (`number ${show(value)}` as Encoding);
}

const depthMax = 16;

function readStruct(source: Source, depth: number): Fields {
  if (depth > depthMax) throw new Damaged("a page's header is nested too deeply");
  const fields = new Map<number, number | boolean | Fields>();
  for (let id = 0; ; ) {
    const byte = source.byte();
    const type = byte & 15;
    if (type === 0) return fields;
    id = byte >> 4 === 0 ? zigzag(source) : id + (byte >> 4);
    const value = readValue(source, type, depth);
    if (value !== undefined) fields.set(id, value);
  }
}

function readValue(
  source: Source,
  type: number,
  depth: number,
): number | boolean | Fields | undefined {
  switch (type) {
    case 1:
      return true;
    case 2:
      return false;
    case 3:
      return source.byte();
    case 4:
    case 5:
      return zigzag(source);
    case 6:
      // Up to ten bytes; no 64-bit field is needed.
      while (source.byte() >= 128);
      return undefined;
    case 7:
      source.take(8);
      return undefined;
    case 8:
      source.take(source.varint());
      return undefined;
    case 9: {
      const head = source.byte();
      const length = head >> 4 === 15 ? source.varint() : head >> 4;
      // A boolean in a list takes a byte.
      const item = (head & 15) <= 2 ? 3 : head & 15;
      for (let index = 0; index < length; index += 1) readValue(source, item, depth + 1);
      return undefined;
    }
    case 12:
      return readStruct(source, depth + 1);
    default:
      throw new Damaged(`a page's header has a field of type ${type}`);
  }
}

function zigzag(source: Source): number {
  const value = source.varint();
  return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
}
