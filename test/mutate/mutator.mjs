// @ts-check
// Damages a container where it hurts: each kind of edit knows the format and aims at a field, a
// boundary or a structure. Which edits a mutant gets follows from the run's seed and the mutant's
// number alone, so that any mutant can be made again.
import { Random } from '../interop/random.mjs';
import { bytesOf, editOne } from '../support/files.mjs';
import { frame, repeatedBlocks, skippable, storedBlocks, storedFrame } from '../support/frames.mjs';
import {
  locationAt,
  locationBytes,
  makeLocation,
  pageBytes,
  readLocation,
  readPage,
  schemaAt,
  schemaBytesMax,
  tailAt,
  u32,
  u64,
} from '../support/page.mjs';

/** @typedef {import('../support/files.mjs').Edit} Edit */
/** @typedef {import('../support/files.mjs').Files} Files */
/** @typedef {import('./seeds.mjs').Seed} Seed */

const meta = 'meta.zr';

/** Where arithmetic on 64 and 32 bits, doubles, and signed numbers changes. */
const boundaries = [
  ...[0n, 1n, 2n, 7n, 8n, 15n, 16n, 127n, 128n, 255n, 256n, 2040n, 2041n, 4095n, 4096n],
  ...[0xffffn, 0x1_0000n, 1n << 30n, (1n << 31n) - 1n, 1n << 31n, (1n << 31n) + 1n],
  ...[(1n << 32n) - 1n, 1n << 32n, (1n << 53n) - 1n, 1n << 53n, 1n << 59n, 1n << 60n],
  ...[(1n << 63n) - 4096n, (1n << 63n) - 1n, 1n << 63n, -4096n, -16n, -1n],
];

/** Texts that are dtypes, once were, or nearly are. */
const dtypes = [
  ...['<i2', '<u2', '<i4', '<f4', '<f8', '<c16', '>i2', '>f8', '|u1', '|b1', '|S5', '<U3', '|V8'],
  ...['<M8[ns]', '<m8[s]', '>M8[us]', '<M8[25us]', '<m8', '<f16', '<c32', '<f2', 'int16', 'i2'],
  ...['=i2', '|i2', '!i2', '<i3', '<i16', '<f1', '|O', 'O', 'l', 'long', 'int', 'p', 'q', 'e', 'g'],
  ...['S', 'U', 'V', 'S0', '|S0', '<U0', '|V0', 'a5', 'M8', 'M8[', 'M8[xs]', '<M8[0s]', '<m8[-1s]'],
  ...['i2,i2', '(2,)i2', '2i2', 'float64', 'complex128', 'datetime64[ns]', 'str', 'bytes_', 'void'],
  ...['?', '>?', 'b', 'B', '<B', 'c', '>c', 'T', 'f8 ', ' f8', '<<i2', '<', '', 'i', 'i02', 'f4\0'],
  ...['|S2147483647', '<U536870911', '|V4294967296', '<f४', 'ƒ4', 'bfloat16', '<i2\n'],
];

const dtypes28 = [
  ...['bool', 'int8', 'int16', 'uint32', 'float64', 'bfloat16', 'float8_e4m3fn', 'float8_e8m0fnu'],
  ...[
    'complex128',
    'float8_e3m4',
    'Int16',
    'int16 ',
    '<i2',
    'float',
    '',
    '__proto__',
    'constructor',
  ],
];

/** A container while it is damaged: edits are made one after the other, each on what is there by then. */
class Work {
  /** @type {Edit[]} */
  edits = [];

  /** @param {Seed} seed @param {Random} random */
  constructor(seed, random) {
    this.seed = seed;
    this.random = random;
    this.files = new Map(seed.files);
  }

  /** @param {Edit} edit */
  edit(edit) {
    editOne(this.files, edit);
    this.edits.push(edit);
  }

  /** @param {string} file @param {number} at @param {Buffer} bytes */
  put(file, at, bytes) {
    this.edit({ file, at, bytes: bytes.toString('hex') });
  }

  /** Bytes of a file; empty where damage took it. @param {string} file @returns {Buffer} */
  bytes(file) {
    return Buffer.isBuffer(this.files.get(file)) ? bytesOf(this.files, file) : Buffer.alloc(0);
  }

  /** The page as the seed had it: damage aims at what was right. */
  get page() {
    return readPage(bytesOf(this.seed.files, meta));
  }

  get length() {
    return Number(this.page.length);
  }

  /** @param {number} id */
  location(id) {
    return readLocation(bytesOf(this.seed.files, meta), id);
  }

  /** @param {number} id */
  shardOf(id) {
    return id % this.seed.shards;
  }

  /** The stored bytes of a record in the seed. @param {number} id @returns {Buffer} */
  stored(id) {
    const { offset, stored } = this.location(id);
    const data = bytesOf(this.seed.files, `data_${this.shardOf(id)}.zr`);
    return data.subarray(Number(offset), Number(offset) + stored);
  }

  anyRecord() {
    return this.random.between(0, this.length - 1);
  }

  anyShard() {
    return this.random.between(0, this.seed.shards - 1);
  }

  /** A 64-bit number near `current`, at a boundary, or anywhere. @param {bigint} current */
  number(current) {
    const { random } = this;
    if (random.chance(0.4)) return current + BigInt(random.between(-20, 20));
    if (random.chance(0.7)) return random.pick(boundaries) + BigInt(random.between(-1, 1));
    return random.u64() >> BigInt(random.between(0, 63));
  }

  /** Stores `bytes` behind the tail and points the record at them. @param {number} id @param {Buffer} bytes @param {number} logical */
  store(id, bytes, logical) {
    const shard = this.shardOf(id);
    const file = `data_${shard}.zr`;
    const offset = this.bytes(file).length;
    this.put(file, offset, bytes);
    this.put(meta, tailAt(shard), u64(BigInt(offset + bytes.length)));
    const location = { offset: BigInt(offset), stored: bytes.length, logical };
    this.put(meta, locationAt(id), makeLocation(location));
  }

  /** @param {Buffer} bytes */
  schema(bytes) {
    const fitting = bytes.subarray(0, schemaBytesMax);
    this.put(meta, 8, u32(fitting.length).subarray(0, 2));
    this.put(meta, schemaAt, fitting);
  }
}

/** @typedef {(work: Work) => void} Kind */

/** Each kind of damage and how often it is taken. @type {readonly [weight: number, name: string, kind: Kind][]} */
const kinds = [
  [4, 'length', (work) => work.put(meta, 0, u64(work.number(work.page.length)))],
  [
    3,
    'schema_length',
    (work) => {
      const length = Number(BigInt.asUintN(16, work.number(BigInt(work.page.schema.length))));
      work.put(meta, 8, u32(length).subarray(0, 2));
    },
  ],
  [
    3,
    'shards',
    (work) => {
      const near = work.seed.shards + work.random.between(-2, 2);
      const shards = work.random.chance(0.7) ? near : work.random.between(0, 255);
      work.put(meta, 10, Buffer.from([shards & 0xff]));
    },
  ],
  [
    3,
    'codec',
    (work) => {
      work.put(
        meta,
        11,
        Buffer.from([
          work.random.chance(0.8) ? work.random.between(0, 3) : work.random.u32() & 0xff,
        ]),
      );
    },
  ],
  [
    1,
    'reserved',
    (work) => work.put(meta, work.random.between(12, 15), Buffer.from([work.random.u32() & 0xff])),
  ],
  [
    6,
    'tail',
    (work) => {
      const shard = work.anyShard();
      work.put(meta, tailAt(shard), u64(work.number(work.page.tails[shard] ?? 0n)));
    },
  ],
  [
    1,
    'unused tail',
    (work) => {
      const slot = work.random.between(work.seed.shards, 254);
      work.put(meta, tailAt(slot), u64(work.number(0n)));
    },
  ],
  [
    8,
    'schema byte',
    (work) => {
      const at = schemaAt + work.random.between(0, work.page.schema.length - 1);
      work.put(meta, at, Buffer.from([work.random.u32() & 0xff]));
    },
  ],
  [4, 'schema bytes', (work) => work.schema(spliced(work.random, work.page.schema))],
  [
    12,
    'schema',
    (work) => work.schema(work.seed.dialect === '2.4' ? msgpackSchema(work) : jsonSchema(work)),
  ],
  [
    18,
    'location',
    (work) => {
      const id = work.anyRecord();
      const before = work.location(id);
      const field = work.random.pick(/** @type {const} */ (['offset', 'stored', 'logical']));
      const value = BigInt.asUintN(
        field === 'offset' ? 64 : 32,
        work.number(BigInt(before[field])),
      );
      const after = { ...before, [field]: field === 'offset' ? value : Number(value) };
      // A raw record's two sizes are one: damage that keeps them equal goes further.
      if (field !== 'offset' && work.random.chance(0.4))
        after.stored = after.logical = Number(value);
      work.put(meta, locationAt(id), makeLocation(after));
    },
  ],
  [
    3,
    'location of another',
    (work) => {
      work.put(meta, locationAt(work.anyRecord()), makeLocation(work.location(work.anyRecord())));
    },
  ],
  [
    2,
    'locations overlap',
    (work) => {
      const id = work.anyRecord();
      const before = work.location(id);
      const grown = before.stored + work.random.between(0, 60);
      const offset = before.offset - BigInt(work.random.between(0, Number(before.offset)));
      work.put(
        meta,
        locationAt(id),
        makeLocation({ offset, stored: grown, logical: before.logical }),
      );
    },
  ],
  [
    14,
    'stored byte',
    (work) => {
      const id = work.anyRecord();
      const { offset, stored } = work.location(id);
      const at = Number(offset) + work.random.between(0, stored - 1);
      const file = `data_${work.shardOf(id)}.zr`;
      const before = work.bytes(file)[at] ?? 0;
      const after = work.random.chance(0.6)
        ? before ^ (1 << work.random.between(0, 7))
        : work.random.u32();
      work.put(file, at, Buffer.from([after & 0xff]));
    },
  ],
  [
    8,
    'frame header',
    (work) => {
      const id = work.anyRecord();
      const at = Number(work.location(id).offset) + work.random.between(0, 12);
      work.put(`data_${work.shardOf(id)}.zr`, at, Buffer.from([work.random.u32() & 0xff]));
    },
  ],
  [
    6,
    'stored run',
    (work) => {
      const id = work.anyRecord();
      const { offset, stored } = work.location(id);
      const run = Buffer.alloc(work.random.between(1, stored));
      if (work.random.chance(0.5)) work.random.fill(run);
      else run.fill(work.random.pick([0, 0xff]));
      work.put(`data_${work.shardOf(id)}.zr`, Number(offset), run);
    },
  ],
  [
    8,
    'dimensions',
    (work) => {
      const id = work.anyRecord();
      const dimBytes = work.seed.dialect === '2.4' ? 8 : 4;
      const dims = Buffer.concat(
        [0, 1].map(() => u64(work.number(BigInt(work.random.between(1, 6)))).subarray(0, dimBytes)),
      );
      const items = Buffer.alloc(work.random.between(0, 40));
      const record = Buffer.concat([dims, items]);
      work.store(id, work.seed.codec === 'raw' ? record : storedFrame(record), record.length);
    },
  ],
  [14, 'frame', (work) => craftedFrame(work)],
  [5, 'dictionary', (work) => damagedDictionary(work)],
  [
    5,
    'cut or grow',
    (work) => {
      const file = work.random.pick([...work.seed.files.keys()]);
      const bytes = work.bytes(file).length;
      const by = work.random.chance(0.6)
        ? work.random.between(-20, 20)
        : work.random.between(-bytes, 600);
      work.edit({ file, truncate: Math.max(0, bytes + by) });
    },
  ],
  [
    2,
    'file',
    (work) => {
      const file = work.random.pick([...work.seed.files.keys()]);
      work.edit({
        file,
        becomes: work.random.pick(/** @type {const} */ (['missing', 'folder', 'dangling', 'loop'])),
      });
    },
  ],
  [
    2,
    'stray file',
    (work) => {
      const shard = work.random.between(0, 300);
      const file = work.random.pick([
        `data_${shard}.zr`,
        `data_0${shard}.zr`,
        'data_',
        'data_.zr',
        'data_0.zr.tmp',
        'data_0.ZR',
        'data',
        'dict.zr',
        'notes.txt',
        'data_-1.zr',
        'data_١.zr',
      ]);
      if (!work.files.has(file))
        work.edit({ file, content: work.random.chance(0.5) ? '' : '00ff' });
    },
  ],
  [
    3,
    'page bytes',
    (work) => {
      const bytes = Buffer.alloc(work.random.between(1, 12));
      work.random.fill(bytes);
      work.put(meta, work.random.between(0, pageBytes - 1), bytes);
    },
  ],
  [
    3,
    'table bytes',
    (work) => {
      const bytes = Buffer.alloc(work.random.between(1, 24));
      work.random.fill(bytes);
      work.put(meta, pageBytes + work.random.between(0, work.length * locationBytes - 1), bytes);
    },
  ],
];

const weights = kinds.reduce((sum, [weight]) => sum + weight, 0);

/** @param {Random} random @returns {Kind} */
function anyKind(random) {
  let left = random.between(0, weights - 1);
  for (const [weight, , kind] of kinds) {
    left -= weight;
    if (left < 0) return kind;
  }
  throw new RangeError('unreachable: weights are counted');
}

/**
 * The mutant of a number: which container, and its edits.
 *
 * @param {readonly Seed[]} seeds
 * @param {string} run the seed of the run
 * @param {number} index
 * @returns {{seed: Seed, edits: readonly Edit[]}}
 */
export function mutantOf(seeds, run, index) {
  const random = new Random('mutant', run, index);
  const seed = random.pick(seeds);
  const work = new Work(seed, random);
  do {
    const kind = anyKind(random);
    try {
      kind(work);
    } catch (error) {
      // An earlier edit took the file that this one aims at.
      if (!(error instanceof TypeError)) throw error;
    }
  } while (work.edits.length < 6 && random.chance(0.35));
  return { seed, edits: work.edits };
}

/** Bytes put in, taken out or doubled. @param {Random} random @param {Buffer} bytes */
function spliced(random, bytes) {
  const at = random.between(0, bytes.length);
  const until = Math.min(bytes.length, at + random.between(0, 4));
  const extra = Buffer.alloc(random.between(0, 4));
  random.fill(extra);
  const middle = random.chance(0.3) ? bytes.subarray(0, until) : extra;
  return Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(until)]);
}

// ---- schemas ----

/** @param {string} value */
function packedText(value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([
    bytes.length < 32
      ? Buffer.from([0xa0 | bytes.length])
      : Buffer.from([0xd9, bytes.length & 0xff]),
    bytes,
  ]);
}

/** An integer in one of its spellings. @param {Random} random @param {bigint} value */
function packedInteger(random, value) {
  const width = random.pick([0, 1, 2, 4, 8]);
  if (width === 0 || random.chance(0.5)) return Buffer.from([Number(BigInt.asUintN(7, value))]);
  const isSigned = random.chance(0.3);
  const tag = { 1: 0xcc, 2: 0xcd, 4: 0xce, 8: 0xcf }[width] ?? 0xcf;
  const bytes = u64(value).subarray(0, width).reverse();
  return Buffer.concat([Buffer.from([isSigned ? tag + 4 : tag]), bytes]);
}

/** A size, as often as not the right one. @param {Random} random @param {number} right */
function size(random, right) {
  return random.chance(0.6) ? BigInt(right) : random.pick(boundaries);
}

/** @param {Work} work */
function msgpackSchema({ random, seed }) {
  const isDense = random.chance(0.9) === (seed.kind === 'dense');
  const shape = random.chance(0.6)
    ? [2, 12]
    : Array.from({ length: random.between(0, 70) }, () => 1);
  const fields = [
    [packedText('dtype'), packedText(random.chance(0.4) ? '<i2' : random.pick(dtypes))],
    [packedText('ndim'), packedInteger(random, size(random, isDense ? shape.length : 2))],
  ];
  if (isDense) {
    const sizes = shape.map((right) => packedInteger(random, size(random, right)));
    const head = shape.length < 16 ? [0x90 | shape.length] : [0xdc, 0, shape.length];
    fields.push([packedText('item_shape'), Buffer.concat([Buffer.from(head), ...sizes])]);
  }
  if (random.chance(0.1))
    fields.push([packedText(random.pick(['user', 'ndim', '__proto__'])), Buffer.from([1])]);
  if (random.chance(0.05)) fields.pop();
  const shuffled = random.chance(0.3) ? random.shuffled(fields) : fields;
  const count = random.chance(0.95) ? shuffled.length : random.between(0, 15);
  const head = random.chance(0.9) ? [0x80 | count] : [0xde, 0, count];
  return Buffer.concat([Buffer.from(head), ...shuffled.flat()]);
}

/** @param {Work} work */
function jsonSchema({ random, seed }) {
  const isDense = random.chance(0.9) === (seed.kind === 'dense');
  const shape = random.chance(0.6)
    ? [2, 12]
    : Array.from({ length: random.between(0, 70) }, () => 1);
  const dtype = JSON.stringify(random.chance(0.4) ? 'int16' : random.pick(dtypes28));
  const number = (/** @type {number} */ right) =>
    random.chance(0.9)
      ? String(size(random, right))
      : random.pick(['1.0', '1e0', 'true', 'null', '"1"', '-0', '01', '[1]', '{}', '+1', 'NaN']);
  const fields = [
    `"dtype": ${dtype}`,
    isDense ? `"item_shape": [${shape.map(number).join(', ')}]` : `"ndim": ${number(2)}`,
  ];
  if (random.chance(0.1))
    fields.push(random.pick(['"user": 1', '"dtype": "int16"', '"__proto__": 1', '"ndim": 2']));
  if (random.chance(0.05)) fields.pop();
  const text = `{${(random.chance(0.3) ? random.shuffled(fields) : fields).join(random.pick([', ', ',', ' ,\n']))}}`;
  return Buffer.from(
    random.chance(0.9) ? text : `${text}${random.pick([' ', '\n', '\0', 'x', '{}', ','])}`,
  );
}

// ---- frames ----

/** A whole frame, or several, of a kind that no compressor at level 3 makes. @param {Work} work */
function craftedFrame(work) {
  const { random } = work;
  const id = work.anyRecord();
  const { logical } = work.location(id);
  const content = Buffer.alloc(logical);
  if (random.chance(0.5)) random.fill(content);
  if (work.seed.kind === 'ragged' && random.chance(0.8)) {
    // Dimensions that fit, so that the frame is what decides.
    const header = work.seed.dialect === '2.4' ? 16 : 8;
    const items = Math.floor((logical - header) / 2);
    const dims = [1n, BigInt(items)].map((dim) => u64(dim).subarray(0, header / 2));
    Buffer.concat(dims).copy(content);
  }
  const half = random.between(0, logical);
  const declared = random.chance(0.7) ? BigInt(logical) : work.number(BigInt(logical));
  const contentSizeBytes = random.pick(/** @type {const} */ ([1, 2, 4, 8]));
  const frames = random.pick([
    () => [storedFrame(content, { contentSize: declared, contentSizeBytes })],
    () => [storedFrame(content, { contentSizeBytes, window: random.u32() & 0xff })],
    () => [storedFrame(content, { checksum: random.chance(0.7) ? true : 1n })],
    () => [storedFrame(content, { dictionaryId: random.pick([0, 1, 0x8000_0000]) })],
    () => [frame(storedBlocks(content), { window: random.pick([0, 0x50, 0xa8, 0xff]) })],
    () => [storedFrame(content.subarray(0, half)), storedFrame(content.subarray(half))],
    () => [frame(storedBlocks(content.subarray(0, half))), work.stored(id)],
    () => [skippable(content.subarray(0, half)), storedFrame(content)],
    () => [
      storedFrame(content),
      skippable(content.subarray(0, half)),
      storedFrame(Buffer.alloc(0)),
    ],
    () => [work.stored(id), work.stored(work.anyRecord())],
    () => [frame(repeatedBlocks(7, random.pick([logical, logical + 1, 131_072, 1_000_000])))],
    () => [frame(storedBlocks(content).slice(0, 1), { contentSize: declared })],
  ])();
  const bytes = Buffer.concat(frames);
  const isCut = random.chance(0.1);
  const stored = isCut ? bytes.subarray(0, random.between(1, bytes.length)) : bytes;
  if (stored.length > 0)
    work.store(id, stored, random.chance(0.9) ? logical : random.between(1, 2000));
}

// ---- dictionaries ----

/** @param {Work} work */
function damagedDictionary(work) {
  const { random } = work;
  const file = 'dict.zr';
  const before = work.bytes(file);
  if (before.length === 0) {
    work.edit({ file, content: random.pick(['', '00', '37a430ec', '37a430ec0100000000']) });
    return;
  }
  const at = random.between(
    0,
    random.chance(0.5) ? Math.min(150, before.length - 1) : before.length - 1,
  );
  const way = random.between(0, 3);
  if (way === 0) work.edit({ file, truncate: at });
  else if (way === 1) work.edit({ file, content: before.subarray(at).toString('hex') });
  else {
    const bytes = Buffer.alloc(random.between(1, 8));
    random.fill(bytes);
    work.put(file, at, bytes);
  }
}
