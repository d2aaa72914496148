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
import { boundaries, jsonSchema, msgpackSchema, spliced } from './schemas.mjs';

/** @typedef {import('../support/files.mjs').Edit} Edit */
/** @typedef {import('../support/files.mjs').Files} Files */
/** @typedef {import('./seeds.mjs').Seed} Seed */

const meta = 'meta.zr';

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
  [12, 'schema', (work) => work.schema(anySchema(work))],
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
  // Large records cost much, and most damage is the same for them.
  const isLarge = random.chance(0.03);
  const seed = random.pick(seeds.filter((each) => each.isLarge === isLarge));
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

/** A schema of the seed's dialect, mostly of its kind. @param {Work} work */
function anySchema({ random, seed }) {
  const isDense = random.chance(0.9) === (seed.kind === 'dense');
  return seed.dialect === '2.4' ? msgpackSchema(random, isDense) : jsonSchema(random, isDense);
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
