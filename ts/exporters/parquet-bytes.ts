/** What Parquet is made of besides values: Thrift's compact protocol for headers, and runs of levels. */

/** A value of Thrift. Fields of a struct go up by number; those that are undefined are left out. */
export type Thrift =
  | { readonly byte: number }
  | { readonly i32: number }
  | { readonly i64: number }
  | { readonly text: string }
  | { readonly flag: boolean }
  | { readonly list: readonly Thrift[] }
  | { readonly struct: readonly (readonly [id: number, value: Thrift | undefined])[] };

/** A struct as Thrift writes it. */
export function thriftBytes(value: Thrift): Uint8Array {
  const bytes = new Bytes();
  write(bytes, value);
  return bytes.taken();
}

/** Bytes that grow. */
class Bytes {
  #bytes = new Uint8Array(256);
  #end = 0;

  byte(value: number): void {
    this.#room(1);
    this.#bytes[this.#end] = value;
    this.#end += 1;
  }

  /** Seven bits a byte, the lowest first. Of numbers up to 2^53. */
  varint(value: number): void {
    let left = value;
    while (left > 0x7f) {
      this.byte((left % 0x80) | 0x80);
      left = Math.floor(left / 0x80);
    }
    this.byte(left);
  }

  all(some: Uint8Array): void {
    this.#room(some.length);
    this.#bytes.set(some, this.#end);
    this.#end += some.length;
  }

  taken(): Uint8Array {
    return this.#bytes.subarray(0, this.#end);
  }

  #room(count: number): void {
    if (this.#end + count <= this.#bytes.length) return;
    const more = new Uint8Array(Math.max(this.#bytes.length * 2, this.#end + count));
    more.set(this.#bytes);
    this.#bytes = more;
  }
}

const types = { true: 1, false: 2, byte: 3, i32: 5, i64: 6, text: 8, list: 9, struct: 12 } as const;

function typeOf(value: Thrift): number {
  if ('flag' in value) return value.flag ? types.true : types.false;
  if ('byte' in value) return types.byte;
  if ('i32' in value) return types.i32;
  if ('i64' in value) return types.i64;
  if ('text' in value) return types.text;
  return 'list' in value ? types.list : types.struct;
}

/** Numbers are counts and places here: never negative, so twice the value is their zigzag. */
function write(bytes: Bytes, value: Thrift): void {
  if ('byte' in value) bytes.byte(value.byte);
  else if ('i32' in value) bytes.varint(value.i32 * 2);
  else if ('i64' in value) bytes.varint(value.i64 * 2);
  else if ('text' in value) {
    const encoded = Buffer.from(value.text);
    bytes.varint(encoded.length);
    bytes.all(encoded);
  } else if ('list' in value) {
    const { list } = value;
    const type = list[0] === undefined ? types.struct : typeOf(list[0]);
    if (list.length < 15) bytes.byte((list.length << 4) | type);
    else {
      bytes.byte(0xf0 | type);
      bytes.varint(list.length);
    }
    for (const each of list) write(bytes, each);
  } else if ('struct' in value) {
    let last = 0;
    for (const [id, field] of value.struct) {
      if (field === undefined) continue;
      // All structs of Parquet have fewer fields than the delta can tell.
      bytes.byte(((id - last) << 4) | typeOf(field));
      // Of a flag, its type says which it is.
      if (!('flag' in field)) write(bytes, field);
      last = id;
    }
    bytes.byte(0);
  }
}

// ---- levels ----

const runMin = 8;

/**
 * Levels as Parquet keeps them: runs of one level, and groups of eight with as many bits as the highest wants.
 *
 * @param most the highest level there may be, 1 to 255
 */
export function levelRuns(levels: Uint8Array, most: number): Uint8Array {
  const bits = Math.ceil(Math.log2(most + 1));
  const bytes = new Bytes();
  let at = 0;
  let packedFrom = 0;
  const flush = (): void => {
    if (at > packedFrom) packGroups(bytes, levels, packedFrom, at, bits);
  };
  while (at < levels.length) {
    const level = levels[at] as number;
    let end = at + 1;
    while (end < levels.length && levels[end] === level) end += 1;
    if (end - at < runMin) {
      at = Math.min(at + 8, levels.length);
      continue;
    }
    flush();
    bytes.varint((end - at) * 2);
    bytes.byte(level);
    at = end;
    packedFrom = end;
  }
  flush();
  return bytes.taken();
}

/** So many equal levels. */
export function levelRun(level: number, count: number): Uint8Array {
  const bytes = new Bytes();
  bytes.varint(count * 2);
  bytes.byte(level);
  return bytes.taken();
}

function packGroups(
  bytes: Bytes,
  levels: Uint8Array,
  from: number,
  to: number,
  bits: number,
): void {
  const groups = Math.ceil((to - from) / 8);
  bytes.varint(groups * 2 + 1);
  let held = 0;
  let heldBits = 0;
  for (let at = from; at < from + groups * 8; at += 1) {
    held |= (at < to ? (levels[at] as number) : 0) << heldBits;
    heldBits += bits;
    while (heldBits >= 8) {
      bytes.byte(held & 0xff);
      held >>>= 8;
      heldBits -= 8;
    }
  }
}
