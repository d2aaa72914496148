/**
 * One Parquet file: its footer, its columns as a tree of features, and bytes at a place.
 *
 * Footers are read by hyparquet. Whatever it throws at damaged bytes becomes MALFORMED with the file's name.
 */
import fs from 'node:fs/promises';
import {
  type ColumnMetaData,
  type FileMetaData,
  parquetMetadata,
  parquetSchema,
  type SchemaElement,
  type SchemaTree,
} from 'hyparquet';
import { LoaderxError, show } from '../../errors.js';
import type { Feature, FileName } from '../dataset.js';
import { declared, featuresOfMetadata } from '../features.js';
import { arrowFeatures } from './arrow-schema.js';
import type { Physical } from './encodings.js';

/** A primitive column, which Parquet stores as a run of pages. */
export interface Leaf {
  /** Its position among the file's primitive columns. */
  readonly index: number;
  readonly physical: Physical;
  /** Of the values: a dtype of containers for numbers, else what `datasets` calls it. */
  readonly dtype: string;
  readonly maxDefinition: number;
  /** The definition level at which an element of each level of lists is there, outermost first. */
  readonly listDefinitions: readonly number[];
}

/** A column of the file, or what lies inside of one. */
export type Column =
  | { readonly kind: 'leaf'; readonly leaf: Leaf; readonly feature: Feature }
  | { readonly kind: 'list'; readonly item: Column; readonly feature: Feature }
  | {
      readonly kind: 'struct';
      readonly fields: ReadonlyMap<string, Column>;
      readonly feature: Feature;
    }
  | { readonly kind: 'other'; readonly feature: Feature };

/** A run of rows of a file. */
export interface RowGroup {
  readonly rowCount: number;
  /** One for each leaf. */
  readonly chunks: readonly (ColumnMetaData | undefined)[];
}

/** A footer may be large, and hyparquet takes it as one piece of memory. */
const footerBytesMax = 2 ** 30;
const magic = Buffer.from('PAR1');
const magicEncrypted = Buffer.from('PARE');

/** An open Parquet file. Every error names it. */
export class ParquetFile {
  readonly name: string;
  readonly rowCount: number;
  readonly groups: readonly RowGroup[];
  /** By name, in the file's order. */
  readonly columns: ReadonlyMap<string, Column>;
  /** What each column is, by the file's own word. */
  readonly features: ReadonlyMap<string, Feature>;
  readonly #handle: fs.FileHandle;
  readonly #bytes: number;

  private constructor(name: string, handle: fs.FileHandle, bytes: number, metadata: FileMetaData) {
    this.name = name;
    this.#handle = handle;
    this.#bytes = bytes;
    this.groups = metadata.row_groups.map(({ num_rows, columns }) => ({
      rowCount: count(num_rows),
      chunks: columns.map(({ meta_data, file_path }) =>
        (file_path ?? '') === '' ? meta_data : undefined,
      ),
    }));
    this.rowCount = this.groups.reduce((sum, { rowCount }) => sum + rowCount, 0);
    const texts = new Map(metadata.key_value_metadata?.map(({ key, value }) => [key, value ?? '']));
    const schema = texts.get('ARROW:schema') ?? '';
    const arrow = schema === '' ? undefined : arrowFeatures(schema);
    if (schema !== '' && arrow === undefined) {
      // Without it a list of fixed length would pass for one of any.
      throw malformed(name, 'its ARROW:schema cannot be read');
    }
    const named = featuresOfMetadata(texts.get('huggingface') ?? '');
    this.columns = columnsOf(parquetSchema(metadata));
    this.features = new Map(
      [...this.columns].map(([column, { feature }]) => {
        const own = refined(feature, arrow?.get(column));
        return [column, declared(own, named?.get(column))];
      }),
    );
  }

  /** @throws LoaderxError MALFORMED, UNSUPPORTED for what is no Parquet file or an encrypted one; IO */
  static async open({ path, name }: FileName): Promise<ParquetFile> {
    const handle = await fs.open(path, 'r').catch((cause: unknown) => {
      throw systemError(name, 'opening it', cause);
    });
    try {
      const { size } = await handle.stat();
      const metadata = footerOf(name, await footerBytes(name, handle, size));
      try {
        return new ParquetFile(name, handle, size, metadata);
      } catch (cause) {
        if (cause instanceof LoaderxError) throw cause;
        throw malformed(name, 'its footer is damaged', cause);
      }
    } catch (error) {
      await handle.close();
      throw error;
    }
  }

  /** Bytes `start` to `end`, which are inside of the file. */
  async read(start: number, end: number): Promise<Uint8Array> {
    if (start < 0 || end > this.#bytes || start > end) {
      throw malformed(this.name, `bytes ${start} to ${end} are wanted of ${this.#bytes}`);
    }
    return readExactly(this.name, this.#handle, start, end - start);
  }

  close(): Promise<void> {
    return this.#handle.close();
  }
}

async function readExactly(
  name: string,
  handle: fs.FileHandle,
  start: number,
  bytes: number,
): Promise<Buffer> {
  const target = Buffer.allocUnsafeSlow(bytes);
  let done = 0;
  while (done < bytes) {
    const { bytesRead } = await handle
      .read(target, done, bytes - done, start + done)
      .catch((cause: unknown) => {
        throw systemError(name, 'reading it', cause);
      });
    if (bytesRead === 0) throw malformed(name, 'it became shorter while it was read');
    done += bytesRead;
  }
  return target;
}

/** The footer with its length and the magic number behind it. */
async function footerBytes(name: string, handle: fs.FileHandle, size: number): Promise<Buffer> {
  if (size < 12) throw malformed(name, `it has ${size} bytes, which is no Parquet file`);
  const tail = await readExactly(name, handle, size - 8, 8);
  const sign = tail.subarray(4);
  if (sign.equals(magicEncrypted)) {
    throw new LoaderxError('UNSUPPORTED', `${name}: it is encrypted, which is not read here`, {
      path: name,
    });
  }
  if (!sign.equals(magic)) {
    throw malformed(name, 'it does not end as a Parquet file: is it one, and complete?');
  }
  const footer = tail.readUInt32LE(0);
  if (footer > size - 12) {
    throw malformed(name, `its footer would have ${footer} bytes, and the file has ${size}`);
  }
  if (footer > footerBytesMax) {
    throw new LoaderxError(
      'TOO_LARGE',
      `${name}: its footer has ${footer} bytes, and ${footerBytesMax} is the most`,
      { path: name },
    );
  }
  return readExactly(name, handle, size - 8 - footer, footer + 8);
}

function footerOf(name: string, bytes: Buffer): FileMetaData {
  try {
    // What hyparquet gives for text and times of statistics is of no use here.
    return parquetMetadata(new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength), {
      geoparquet: false,
    });
  } catch (cause) {
    throw malformed(name, 'its footer is damaged', cause);
  }
}

/** A count of the footer as a number. Throws where it cannot be one. */
export function count(value: unknown): number {
  const number = Number(value);
  if (Number.isSafeInteger(number) && number >= 0) return number;
  throw new RangeError(`${show(value)} is no count`);
}

export function malformed(name: string, reason: string, cause?: unknown): LoaderxError {
  const said = cause instanceof Error ? ` (${cause.message})` : '';
  return new LoaderxError('MALFORMED', `${name}: ${reason}${said}`, { path: name }, { cause });
}

function systemError(name: string, doing: string, cause: unknown): LoaderxError {
  const osCode = String((cause as { readonly code?: unknown } | null)?.code ?? 'EUNKNOWN');
  const place = { path: name, osCode };
  return new LoaderxError('IO', `${name}: ${doing} failed (${osCode})`, place, { cause });
}

// ---- the schema ----

function columnsOf(root: SchemaTree): ReadonlyMap<string, Column> {
  let leafCount = 0;
  const columns = new Map<string, Column>();

  /** `definition` and `lists`: levels above the node; a list's own are counted by its repeated child. */
  const visit = (node: SchemaTree, definition: number, lists: readonly number[]): Column => {
    const { element, children } = node;
    if (typeof element.name !== 'string') throw new Error('a column has no name');
    const repeated = element.repetition_type === 'REPEATED';
    const own = definition + (element.repetition_type === 'REQUIRED' ? 0 : 1);
    const ownLists = repeated ? [...lists, own] : lists;
    const inner = (): Column => {
      if (element.type !== undefined && children.length === 0) {
        const leaf = leafOf(element, leafCount, own, ownLists);
        leafCount += 1;
        return { kind: 'leaf', leaf, feature: primitive(leaf.dtype) };
      }
      const annotation = element.logical_type?.type ?? element.converted_type;
      const [only] = children;
      if (annotation === 'LIST' && children.length === 1 && only !== undefined) {
        return visit(only, own, ownLists);
      }
      const fields = new Map<string, Column>();
      for (const child of children) {
        fields.set(child.element.name, visit(child, own, ownLists));
      }
      if (annotation === 'MAP' || annotation === 'MAP_KEY_VALUE') {
        return { kind: 'other', feature: { kind: 'unsupported', name: 'map' } };
      }
      const features = [...fields].map(([name, { feature }]) => [name, feature] as const);
      return { kind: 'struct', fields, feature: { kind: 'struct', fields: new Map(features) } };
    };
    const column = inner();
    if (!repeated) return column;
    const item = isWrapper(node) ? firstOf(column) : column;
    return { kind: 'list', item, feature: { kind: 'list', item: item.feature } };
  };

  for (const child of root.children) {
    const { name } = child.element;
    if (columns.has(name)) throw new Error(`column ${show(name)} is there twice`);
    columns.set(name, visit(child, 0, []));
  }
  return columns;
}

/** Whether a repeated group only holds the element of a list, as the format has it today. */
function isWrapper({ element, children }: SchemaTree): boolean {
  if (element.type !== undefined || children.length !== 1) return false;
  return element.name !== 'array' && !element.name.endsWith('_tuple');
}

function firstOf(column: Column): Column {
  if (column.kind !== 'struct') return column;
  const [first] = column.fields.values();
  return first ?? column;
}

function primitive(dtype: string): Feature {
  return { kind: 'value', dtype };
}

function leafOf(
  element: SchemaElement,
  index: number,
  maxDefinition: number,
  listDefinitions: readonly number[],
): Leaf {
  if (maxDefinition > 255) throw new Error('more than 255 levels');
  const physical = physicalOf(element);
  if (physical.type === 'FIXED' && !(physical.width >= 1)) {
    throw new Error(`values of ${physical.width} bytes`);
  }
  return {
    index,
    physical,
    dtype: dtypeOfElement(element),
    maxDefinition,
    listDefinitions,
  };
}

function physicalOf({ type, type_length = 0 }: SchemaElement): Physical {
  switch (type) {
    case 'BOOLEAN':
      return { type, width: 1 };
    case 'INT32':
    case 'FLOAT':
      return { type, width: 4 };
    case 'INT64':
    case 'DOUBLE':
      return { type, width: 8 };
    case 'FIXED_LEN_BYTE_ARRAY':
      return { type: 'FIXED', width: type_length };
    case 'INT96':
      return { type: 'FIXED', width: 12 };
    default:
      return { type: 'BYTES', width: 0 };
  }
}

const convertedTypes: ReadonlyMap<string, string> = new Map([
  ['UTF8', 'string'],
  ['JSON', 'string'],
  ['INT_8', 'int8'],
  ['INT_16', 'int16'],
  ['INT_32', 'int32'],
  ['INT_64', 'int64'],
  ['UINT_8', 'uint8'],
  ['UINT_16', 'uint16'],
  ['UINT_32', 'uint32'],
  ['UINT_64', 'uint64'],
  ['DATE', 'date'],
  ['DECIMAL', 'decimal'],
  ['TIME_MILLIS', 'time'],
  ['TIME_MICROS', 'time'],
  ['TIMESTAMP_MILLIS', 'timestamp'],
  ['TIMESTAMP_MICROS', 'timestamp'],
  ['INTERVAL', 'interval'],
]);

const logicalTypes: ReadonlyMap<string, string> = new Map([
  ['STRING', 'string'],
  ['JSON', 'string'],
  ['DECIMAL', 'decimal'],
  ['DATE', 'date'],
  ['TIME', 'time'],
  ['TIMESTAMP', 'timestamp'],
  ['NULL', 'null'],
  ['UUID', 'uuid'],
]);

const plainTypes: ReadonlyMap<string, string> = new Map([
  ['BOOLEAN', 'bool'],
  ['INT32', 'int32'],
  ['INT64', 'int64'],
  ['INT96', 'timestamp'],
  ['FLOAT', 'float32'],
  ['DOUBLE', 'float64'],
  ['BYTE_ARRAY', 'binary'],
  ['FIXED_LEN_BYTE_ARRAY', 'binary'],
]);

function dtypeOfElement(element: SchemaElement): string {
  const { type = 'BYTE_ARRAY', type_length, converted_type, logical_type } = element;
  const byType = plainTypes.get(type) ?? 'binary';
  if (logical_type?.type === 'INTEGER') {
    const { bitWidth, isSigned } = logical_type;
    return checkedInteger(`${isSigned ? '' : 'u'}int${bitWidth}`, type);
  }
  if (logical_type?.type === 'FLOAT16') return type_length === 2 ? 'float16' : byType;
  const logical = logicalTypes.get(logical_type?.type ?? '');
  if (logical !== undefined) return logical;
  const converted = convertedTypes.get(converted_type ?? '');
  if (converted === undefined) return byType;
  return /^u?int\d/.test(converted) ? checkedInteger(converted, type) : converted;
}

/** An integer type that does not go with the physical one would read beyond values. */
function checkedInteger(dtype: string, type: string): string {
  const wants = dtype.endsWith('64') ? 'INT64' : 'INT32';
  if (!/^u?int(8|16|32|64)$/.test(dtype) || type !== wants) {
    throw new Error(`${dtype} in values of ${type}`);
  }
  return dtype;
}

/** What Arrow's schema adds to Parquet's; the latter holds where both cannot be of one column. */
function refined(own: Feature, arrow: Feature | undefined): Feature {
  if (arrow === undefined) return own;
  switch (arrow.kind) {
    case 'value':
      // Bytes are what has no other type; Parquet's own may know one, as of a UUID.
      if (own.kind !== 'value' || arrow.dtype === 'binary') return own;
      return losesDigits(own.dtype, arrow.dtype) ? own : arrow;
    case 'list': {
      if (own.kind !== 'list') return own;
      const item = refined(own.item, arrow.item);
      return arrow.length === undefined
        ? { kind: 'list', item }
        : { kind: 'list', item, length: arrow.length };
    }
    case 'struct': {
      if (own.kind !== 'struct') return own;
      const fields = [...own.fields].map(
        ([name, each]) => [name, refined(each, arrow.fields.get(name))] as const,
      );
      return { kind: 'struct', fields: new Map(fields) };
    }
    case 'array': {
      let leaf = own;
      for (const _size of arrow.shape) {
        if (leaf.kind !== 'list') return own;
        leaf = leaf.item;
      }
      return leaf.kind === 'value' && !losesDigits(leaf.dtype, arrow.dtype) ? arrow : own;
    }
    default:
      return own;
  }
}

/**
 * Floats that Arrow's schema calls narrower than they lie in the file: damaged, or of another file. A card alone may
 * ask for fewer digits.
 */
function losesDigits(stored: string, named: string): boolean {
  const floats = ['float16', 'float32', 'float64'];
  return floats.includes(named) && floats.indexOf(named) < floats.indexOf(stored);
}
