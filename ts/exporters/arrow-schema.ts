/**
 * The Arrow schema that Arrow's writers keep in a Parquet file (`ARROW:schema`), for what Parquet's own types do
 * not say: lists of a fixed length. It is a FlatBuffers message in base64, which converter/parquet/arrow-schema
 * reads; the package for FlatBuffers wants code that is generated, and these are five tables.
 *
 * ```text
 * list of fields   u16 its bytes, u16 bytes of the table, then for each field u16: its place in the table, or 0
 * table            i32 bytes from the list to here, then the fields; of another table, u32: bytes from there to it
 * ```
 */

/** A column: what its items are, and the lengths of the lists around them, outermost first; null for any. */
export interface ArrowColumn {
  readonly name: string;
  /** `bool`, an integer or a float. */
  readonly dtype: string;
  readonly lists: readonly (number | null)[];
}

/**
 * The schema as Parquet files keep it.
 *
 * @param metadata what Arrow shall keep beside it: it looks at no other metadata of the file then
 */
export function arrowSchema(
  columns: readonly ArrowColumn[],
  metadata: Readonly<Record<string, string>>,
): string {
  const pairs = Object.entries(metadata).map(([key, value]) => [{ text: key }, { text: value }]);
  const fields = columns.map(({ name, dtype, lists }) => fieldOf(name, dtype, lists));
  const message = messageOf([
    { bytes: 2, value: metadataVersion },
    { bytes: 1, value: schemaMessage },
    { table: [absent, { tables: fields }, { tables: pairs }] },
  ]);
  const padded = Math.ceil(message.length / 8) * 8;
  const bytes = Buffer.alloc(8 + padded);
  bytes.writeInt32LE(-1, 0);
  bytes.writeUInt32LE(padded, 4);
  message.copy(bytes, 8);
  return bytes.toString('base64');
}

const metadataVersion = 4;
const schemaMessage = 1;
const types = { int: 2, float: 3, bool: 6, list: 12, fixedSizeList: 16 } as const;

function fieldOf(name: string, dtype: string, lists: ArrowColumn['lists']): Table {
  const [length, ...inner] = lists;
  const [type, settings] = length === undefined ? leafOf(dtype) : listOf(length);
  const children = length === undefined ? [] : [fieldOf('element', dtype, inner)];
  const isNullable = { bytes: 1, value: 1 } as const;
  return [
    { text: name },
    isNullable,
    { bytes: 1, value: type },
    { table: settings },
    absent,
    { tables: children },
  ];
}

function listOf(length: number | null): [number, Table] {
  if (length === null) return [types.list, []];
  return [types.fixedSizeList, [{ bytes: 4, value: length }]];
}

function leafOf(dtype: string): [number, Table] {
  if (dtype === 'bool') return [types.bool, []];
  const bits = Number(/\d+$/.exec(dtype)?.[0]);
  if (dtype.startsWith('float')) return [types.float, [{ bytes: 2, value: Math.log2(bits) - 4 }]];
  const isSigned = dtype.startsWith('u') ? 0 : 1;
  return [
    types.int,
    [
      { bytes: 4, value: bits },
      { bytes: 1, value: isSigned },
    ],
  ];
}

// ---- FlatBuffers ----

type Field =
  | { readonly bytes: 1 | 2 | 4; readonly value: number }
  | { readonly text: string }
  | { readonly table: Table }
  | { readonly tables: readonly Table[] }
  | undefined;

/** Fields by number. */
type Table = readonly Field[];

const absent = undefined;

/** What is pointed at lies behind what points at it, so everything is written in one go. */
function messageOf(root: Table): Buffer {
  let bytes = Buffer.alloc(256);
  let end = 0;

  const grow = (count: number, align: number): number => {
    const at = Math.ceil(end / align) * align;
    end = at + count;
    if (end > bytes.length) bytes = Buffer.concat([bytes, Buffer.alloc(end)]);
    return at;
  };
  const put = (at: number, value: number, count: 1 | 2 | 4): void => {
    bytes.writeUIntLE(value, at, count);
  };
  const point = (from: number, to: number): void => put(from, to - from, 4);

  const writeText = (text: string): number => {
    const encoded = Buffer.from(text);
    const at = grow(4 + encoded.length + 1, 4);
    put(at, encoded.length, 4);
    encoded.copy(bytes, at + 4);
    return at;
  };
  const writeTables = (tables: readonly Table[]): number => {
    const at = grow(4 + 4 * tables.length, 4);
    put(at, tables.length, 4);
    for (const [index, table] of tables.entries()) {
      const place = at + 4 + 4 * index;
      point(place, writeTable(table));
    }
    return at;
  };
  const writeTable = (table: Table): number => {
    const listBytes = 4 + 2 * table.length;
    let tableBytes = 4;
    const places = table.map((field) => {
      if (field === undefined) return 0;
      const count = 'bytes' in field ? field.bytes : 4;
      const place = Math.ceil(tableBytes / count) * count;
      tableBytes = place + count;
      return place;
    });
    // The list may begin at an odd word; the table may not.
    const room = grow(listBytes + 4 + tableBytes, 4);
    const at = Math.ceil((room + listBytes) / 4) * 4;
    const list = at - listBytes;
    put(list, listBytes, 2);
    put(list + 2, tableBytes, 2);
    for (const [index, place] of places.entries()) put(list + 4 + 2 * index, place, 2);
    put(at, listBytes, 4);
    for (const [index, field] of table.entries()) {
      if (field === undefined) continue;
      const place = at + (places[index] as number);
      if ('bytes' in field) put(place, field.value, field.bytes);
      else if ('text' in field) point(place, writeText(field.text));
      else if ('table' in field) point(place, writeTable(field.table));
      else point(place, writeTables(field.tables));
    }
    return at;
  };

  const start = grow(4, 4);
  point(start, writeTable(root));
  return bytes.subarray(0, end);
}
