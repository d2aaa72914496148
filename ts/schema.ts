/**
 * What a container says about its records, in both dialects.
 *
 * | dialect | bytes                                                       | ragged dimensions |
 * | ------- | ----------------------------------------------------------- | ----------------- |
 * | 2.4     | MsgPack `{dtype, ndim}` or `{dtype, ndim, item_shape}`      | u64 each          |
 * | 2.8     | JSON `{"dtype", "ndim"}` or `{"dtype", "item_shape"}`       | u32 each          |
 *
 * The first byte tells them apart: `{` begins JSON and no MsgPack map. A container says whether it
 * is dense or ragged only through its set of fields. What is written equals Python's byte for byte.
 */
import { Packr } from 'msgpackr';
import {
  type DTypeInfo,
  type DTypeRefusal,
  dtypeFromName28,
  dtypeFromNumpy,
  isRefusal,
} from './dtype.js';
import { type ErrorPlace, LoaderxError, show } from './errors.js';
import { schemaBytesMax, walkSchema } from './schema-walk.js';

/** Which generation of Python's loaderx reads the container: 2.4.x or 2.8.x, never both. */
export type Dialect = '2.4' | '2.8';

/** Every record has the same shape. */
export interface DenseSchema {
  readonly kind: 'dense';
  readonly dialect: Dialect;
  readonly dtype: DTypeInfo;
  /** At most 63 positive integers; `[]` for scalar records. */
  readonly itemShape: readonly number[];
}

/** Every record has a shape of its own, all of the same rank. */
export interface RaggedSchema {
  readonly kind: 'ragged';
  readonly dialect: Dialect;
  readonly dtype: DTypeInfo;
  /** 1 .. 64. */
  readonly ndim: number;
}

export type Schema = DenseSchema | RaggedSchema;

/** Most bytes of a record, dimensions included. */
export const recordBytesMax = 2 ** 31;
/** Highest rank of a dense record. */
export const denseRankMax = 63;
/** Highest rank of a ragged record. */
export const raggedRankMax = 64;

/** Bytes of one stored dimension of a ragged record. */
export function dimBytesOf(dialect: Dialect): 4 | 8 {
  return dialect === '2.4' ? 8 : 4;
}

/** Bytes of a dense record; Infinity or an imprecise number where it is far too large. */
export function recordBytesOf(dtype: DTypeInfo, itemShape: readonly number[]): number {
  let bytes = dtype.itemBytes;
  for (const size of itemShape) {
    if (size === 0) return 0;
    bytes *= size;
  }
  return bytes;
}

// Plain maps with the shortest headers, as Python's msgpack writes them. Maps are decoded to `Map`,
// so no key of a file ever becomes a property. Integers
// above 2^53 lose digits, which does not matter: every limit is far below.
const msgpack = new Packr({
  useRecords: false,
  variableMapSize: true,
  mapsAsObjects: false,
  int64AsType: 'number',
});

/** The schema's bytes. The schema is valid: `create` made it. */
export function encodeSchema(schema: Schema): Uint8Array {
  if (schema.dialect === '2.8') return encodeJson(schema);
  const { numpy } = schema.dtype;
  if (numpy === undefined) throw new TypeError(`${schema.dtype.name} is not of the 2.4 dialect`);
  const fields =
    schema.kind === 'dense'
      ? { dtype: numpy, ndim: schema.itemShape.length, item_shape: schema.itemShape }
      : { dtype: numpy, ndim: schema.ndim };
  return Uint8Array.from(msgpack.encode(fields));
}

function encodeJson(schema: Schema): Uint8Array {
  const { name28 } = schema.dtype;
  if (name28 === undefined) {
    throw new TypeError(`${schema.dtype.name} is not of the 2.8 dialect`);
  }
  const last =
    schema.kind === 'dense'
      ? `"item_shape": [${schema.itemShape.join(', ')}]`
      : `"ndim": ${schema.ndim}`;
  return new TextEncoder().encode(`{"dtype": "${name28}", ${last}}`);
}

/**
 * Reads the schema of a container.
 *
 * @param place goes into errors: the container's path and file
 * @throws LoaderxError MALFORMED, or UNSUPPORTED for a dtype that NumPy knows and no container holds
 */
export function decodeSchema(bytes: Uint8Array, place: ErrorPlace = {}): Schema {
  const fail = failWith(place);
  const isJson = bytes[0] === 0x7b;
  const fields = isJson ? jsonFields(bytes, fail) : msgpackFields(bytes, place);

  const dtypeText = fields.get('dtype');
  if (typeof dtypeText !== 'string') {
    throw fail('dtype', `dtype must be a text, is ${show(dtypeText)}`);
  }
  const dtype = isJson ? dtypeFromName28(dtypeText) : dtypeFromNumpy(dtypeText);
  if (isRefusal(dtype)) throw refused(dtypeText, dtype, place);

  const isDense = fields.has('item_shape');
  const wanted = isJson
    ? ['dtype', isDense ? 'item_shape' : 'ndim']
    : ['dtype', 'ndim', ...(isDense ? ['item_shape'] : [])];
  if (fields.size !== wanted.length || wanted.some((name) => !fields.has(name))) {
    const came = show([...fields.keys()]);
    throw fail('schema', `the schema must have ${show(wanted)}, has ${came}`);
  }

  const dialect: Dialect = isJson ? '2.8' : '2.4';
  if (!isDense) {
    const ndim = integerOf(fields.get('ndim'), 1, raggedRankMax);
    if (ndim === undefined) {
      throw fail('ndim', `ndim must be 1 to ${raggedRankMax}, is ${show(fields.get('ndim'))}`);
    }
    return { kind: 'ragged', dialect, dtype, ndim };
  }
  const itemShape = itemShapeOf(fields.get('item_shape'));
  if (itemShape === undefined) {
    throw fail(
      'item_shape',
      `item_shape must be at most ${denseRankMax} positive integers, is ${show(fields.get('item_shape'))}`,
    );
  }
  if (!isJson && fields.get('ndim') !== itemShape.length) {
    throw fail(
      'ndim',
      `ndim is ${show(fields.get('ndim'))}, and item_shape has ${itemShape.length} dimensions`,
    );
  }
  const recordBytes = recordBytesOf(dtype, itemShape);
  if (recordBytes > recordBytesMax) {
    throw fail('item_shape', `a record of ${recordBytes} bytes is over the limit of 2^31`);
  }
  return { kind: 'dense', dialect, dtype, itemShape };
}

type Fail = (field: string, reason: string) => LoaderxError;

function failWith(place: ErrorPlace): Fail {
  const prefix = place.path === undefined ? '' : `${place.path}: `;
  return (field, reason) =>
    new LoaderxError('MALFORMED', `${prefix}the schema is damaged: ${reason}`, { ...place, field });
}

function refused(text: string, why: DTypeRefusal, place: ErrorPlace): LoaderxError {
  const prefix = place.path === undefined ? '' : `${place.path}: `;
  return new LoaderxError(why.code, `${prefix}the stored dtype ${show(text)} ${why.reason}`, {
    ...place,
    field: 'dtype',
  });
}

function msgpackFields(bytes: Uint8Array, place: ErrorPlace): ReadonlyMap<string, unknown> {
  walkSchema(bytes, place);
  return msgpack.decode(bytes) as Map<string, unknown>;
}

/**
 * JSON text of exactly one flat object. `JSON.parse` alone would take a repeated key, and would not
 * tell 2.0 from 2; so what is left after the strings are cut out may hold digits and structure only,
 * and as many colons as there are keys.
 */
function jsonFields(bytes: Uint8Array, fail: Fail): ReadonlyMap<string, unknown> {
  if (bytes.length > schemaBytesMax) throw fail('schema', `it is over ${schemaBytesMax} bytes`);
  let text: string;
  let value: unknown;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
    value = JSON.parse(text);
  } catch {
    throw fail('schema', 'it is no JSON text');
  }
  const bare = text.replace(/"(?:[^"\\]|\\.)*"/g, '');
  if (!/^\{[\s\d,:[\]-]*\}\s*$/.test(bare)) {
    throw fail('schema', 'it is no flat object of texts, integers and lists of integers');
  }
  const keys = Object.keys(value as object);
  if (bare.split(':').length - 1 !== keys.length) {
    throw fail('schema', 'it has a field twice');
  }
  return new Map(Object.entries(value as object));
}

function integerOf(value: unknown, least: number, most: number): number | undefined {
  if (typeof value !== 'number' || !Number.isInteger(value)) return undefined;
  return value >= least && value <= most ? value : undefined;
}

function itemShapeOf(value: unknown): readonly number[] | undefined {
  if (!Array.isArray(value) || value.length > denseRankMax) return undefined;
  const shape: number[] = [];
  for (const size of value) {
    const checked = integerOf(size, 1, recordBytesMax);
    if (checked === undefined) return undefined;
    shape.push(checked);
  }
  return shape;
}
