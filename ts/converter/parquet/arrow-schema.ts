/**
 * The Arrow schema that Arrow's writers keep in a Parquet file (`ARROW:schema`): what Parquet's own types do
 * not say, fixed lengths of lists and extension types above all.
 *
 * It is a FlatBuffers message in base64. Only the tables that types need are read, straight from the bytes;
 * anything unexpected means that the file has no such schema.
 */
import type { Feature } from '../dataset.js';

/** Columns by name; undefined where the text is no Arrow schema. */
export function arrowFeatures(base64: string): ReadonlyMap<string, Feature> | undefined {
  try {
    const bytes = Buffer.from(base64, 'base64');
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    // A marker and a length come before the message; older writers leave out the marker.
    const start = view.getInt32(0, true) === -1 ? 8 : 4;
    const message = new Table(view, start + view.getUint32(start, true));
    const schema = message.table(2);
    if (message.u8(1) !== schemaMessage || schema === undefined) return undefined;
    const columns = new Map<string, Feature>();
    for (const field of schema.tables(1)) columns.set(field.text(0), featureOf(field, 0));
    return columns;
  } catch {
    // What is read beyond the end is a RangeError of the view.
    return undefined;
  }
}

const schemaMessage = 1;
const depthMax = 64;

function featureOf(field: Table, depth: number): Feature {
  if (depth > depthMax) throw new RangeError('nested too deeply');
  const extension = extensionOf(field);
  if (extension !== undefined) return extension;
  const type = field.table(3);
  const children = (): Feature[] => field.tables(5).map((child) => featureOf(child, depth + 1));
  const item = (): Feature => children()[0] ?? { kind: 'unsupported', name: 'list' };
  switch (field.u8(2)) {
    case 1:
      return value('null');
    case 2:
      return value(`${type?.u8(1) === 1 ? '' : 'u'}int${type?.i32(0) ?? 0}`);
    case 3:
      return value(['float16', 'float32', 'float64'][type?.u8(0) ?? 0] ?? 'float');
    case 4:
    case 15:
    case 19:
    case 23:
      return value('binary');
    case 5:
    case 20:
    case 24:
      return value('string');
    case 6:
      return value('bool');
    case 7:
      return value('decimal');
    case 8:
      return value('date');
    case 9:
      return value('time');
    case 10:
      return value('timestamp');
    case 18:
      return value('duration');
    case 12:
    case 21:
    case 25:
    case 26:
      return { kind: 'list', item: item() };
    case 16:
      return { kind: 'list', item: item(), length: type?.i32(0) ?? 0 };
    case 13: {
      const names = field.tables(5).map((child) => child.text(0));
      const features = children();
      return {
        kind: 'struct',
        fields: new Map(names.map((name, index) => [name, features[index] as Feature])),
      };
    }
    case 17:
      return { kind: 'unsupported', name: 'map' };
    default:
      return { kind: 'unsupported', name: `Arrow type ${field.u8(2)}` };
  }
}

function value(dtype: string): Feature {
  return { kind: 'value', dtype };
}

/** `datasets` writes its arrays as extension types: the shape and the dtype as JSON. */
function extensionOf(field: Table): Feature | undefined {
  const metadata = new Map(field.tables(6).map((pair) => [pair.text(0), pair.text(1)]));
  const name = metadata.get('ARROW:extension:name') ?? '';
  const text = metadata.get('ARROW:extension:metadata');
  if (!/\bArray[2-5]DExtensionType$/.test(name) || text === undefined) return undefined;
  try {
    const [shape, dtype] = JSON.parse(text) as readonly unknown[];
    if (!Array.isArray(shape) || typeof dtype !== 'string') return undefined;
    if (!shape.every((size) => size === null || Number.isInteger(size))) return undefined;
    return { kind: 'array', shape: shape as readonly (number | null)[], dtype };
  } catch {
    return undefined;
  }
}

/** A FlatBuffers table: its fields by number. */
class Table {
  readonly #view: DataView;
  readonly #at: number;
  readonly #fieldsAt: number;
  readonly #fieldsBytes: number;

  constructor(view: DataView, at: number) {
    this.#view = view;
    this.#at = at;
    this.#fieldsAt = at - view.getInt32(at, true);
    this.#fieldsBytes = view.getUint16(this.#fieldsAt, true);
  }

  /** Where a field lies; 0 where it is left out. */
  #find(field: number): number {
    const entry = 4 + field * 2;
    if (entry >= this.#fieldsBytes) return 0;
    const offset = this.#view.getUint16(this.#fieldsAt + entry, true);
    return offset === 0 ? 0 : this.#at + offset;
  }

  u8(field: number): number {
    const at = this.#find(field);
    return at === 0 ? 0 : this.#view.getUint8(at);
  }

  i32(field: number): number {
    const at = this.#find(field);
    return at === 0 ? 0 : this.#view.getInt32(at, true);
  }

  table(field: number): Table | undefined {
    const at = this.#find(field);
    return at === 0 ? undefined : new Table(this.#view, this.#follow(at));
  }

  tables(field: number): Table[] {
    const at = this.#find(field);
    if (at === 0) return [];
    const list = this.#follow(at);
    const count = this.#view.getUint32(list, true);
    if (count > this.#view.byteLength / 4) throw new RangeError('longer than the message');
    const tables: Table[] = [];
    for (let index = 0; index < count; index += 1) {
      tables.push(new Table(this.#view, this.#follow(list + 4 + index * 4)));
    }
    return tables;
  }

  text(field: number): string {
    const at = this.#find(field);
    if (at === 0) return '';
    const start = this.#follow(at);
    const bytes = this.#view.getUint32(start, true);
    const { buffer, byteOffset, byteLength } = this.#view;
    if (start + 4 + bytes > byteLength) throw new RangeError('longer than the message');
    return Buffer.from(buffer, byteOffset + start + 4, bytes).toString('utf8');
  }

  #follow(at: number): number {
    return at + this.#view.getUint32(at, true);
  }
}
