// @ts-check
// A container to be exchanged, as plain data: what it holds and in which appends it is written. Made
// from random numbers alone, without the package and without Python, so both are held to it.
import { dtypes24, dtypes28, specialNumbers } from './dtypes.mjs';

/** @typedef {import('./dtypes.mjs').Exchanged} Exchanged */
/** @typedef {import('./random.mjs').Random} Random */
/** @typedef {'raw' | 'zstd' | 'zstd_dict'} Codec */

/**
 * @typedef {object} Combination
 * @property {Exchanged} dtype
 * @property {'dense' | 'ragged'} kind
 * @property {Codec} codec
 * @property {number} shards
 */

/**
 * @typedef {object} Append
 * @property {number} count records
 * @property {string} layout how each array lies in memory (Python)
 * @property {string} form what holds a ragged append's records
 * @property {boolean} isAsync whether ours is written with `append` or `appendSync`
 */

/**
 * @typedef {object} Plan
 * @property {Combination} combination
 * @property {readonly number[]} itemShape of dense records
 * @property {number} ndim
 * @property {readonly (readonly number[])[]} shapes of each record; all the same object when dense
 * @property {Uint8Array<ArrayBuffer>} items every record's bytes, back to back, without dimensions
 * @property {Float64Array} starts where each record begins in `items`; one more than records
 * @property {readonly Append[]} appends
 * @property {Uint8Array | undefined} dictionary bytes that zstd uses as they are
 * @property {boolean} isTrainable whether a dictionary trained on the records takes its place
 */

const shardCounts = [1, 2, 4, 7, 255];
/** @type {readonly Codec[]} */
const codecs = ['raw', 'zstd', 'zstd_dict'];
/** @type {readonly ('dense' | 'ragged')[]} */
const kinds = ['dense', 'ragged'];
const raggedRanks = [1, 1, 1, 2, 2, 3, 4, 64];
const layouts = [
  'read_only',
  'writable',
  'fortran',
  'strided',
  'reversed',
  'transposed',
  'subclass',
];
const forms = ['list', 'generator', 'tuple', 'stacked', 'dict_values'];
const itemsBytesMax = 6 * 2 ** 20;

/**
 * The first `count` of all combinations. Every dtype with every codec and geometry comes before any
 * of them comes again with another number of shards.
 *
 * @param {'2.4' | '2.8'} dialect
 * @param {number} count
 * @param {Random} random
 * @returns {Combination[]}
 */
export function combinations(dialect, count, random) {
  const dtypes = dialect === '2.4' ? dtypes24 : dtypes28;
  const triples = random.shuffled(
    dtypes.flatMap((dtype) =>
      kinds.flatMap((kind) => codecs.map((codec) => ({ dtype, kind, codec }))),
    ),
  );
  return Array.from({ length: count }, (_, index) => {
    const round = Math.floor(index / triples.length);
    const triple = triples[index % triples.length];
    const shards = shardCounts[(index + round) % shardCounts.length];
    if (triple === undefined || shards === undefined) throw new RangeError('no combinations');
    return { ...triple, shards };
  });
}

/** How many combinations there are. @param {'2.4' | '2.8'} dialect */
export function combinationCount(dialect) {
  const dtypes = dialect === '2.4' ? dtypes24 : dtypes28;
  return dtypes.length * kinds.length * codecs.length * shardCounts.length;
}

/** @param {Combination} combination @param {Random} random @returns {Plan} */
export function planContainer(combination, random) {
  const { dtype, kind, codec } = combination;
  const size = sizesOf(dtype, codec, random);
  const itemShape = kind === 'dense' ? denseShape(dtype, size.recordBytes, random) : [];
  const ndim = kind === 'dense' ? itemShape.length : random.pick(raggedRanks);

  /** @type {(readonly number[])[]} */
  const shapes = [];
  /** @type {number[]} */
  const starts = [0];
  let end = 0;
  for (let record = 0; record < size.recordCount; record += 1) {
    const shape = kind === 'dense' ? itemShape : raggedShape(dtype, ndim, size.recordBytes, random);
    const bytes = product(shape) * dtype.itemBytes;
    if (end + bytes > itemsBytesMax && shapes.length > 0) break;
    shapes.push(shape);
    end += bytes;
    starts.push(end);
  }
  const items = new Uint8Array(end);
  fillItems(items, dtype, random);
  return {
    combination,
    itemShape,
    ndim,
    shapes,
    items,
    starts: Float64Array.from(starts),
    appends: splitAppends(shapes.length, random),
    dictionary: codec === 'zstd_dict' ? dictionaryBytes(items, random) : undefined,
    isTrainable: codec === 'zstd_dict' && random.chance(0.5),
  };
}

/** @param {Exchanged} dtype @param {Codec} codec @param {Random} random */
function sizesOf(dtype, codec, random) {
  const kind = random.u32() / 2 ** 32;
  if (kind < 0.04) return { recordCount: 0, recordBytes: 100 };
  if (kind < 0.14) return { recordCount: 1, recordBytes: random.magnitude(1, 100_000) };
  // Over one window of 32 768 records.
  if (kind < 0.18) return { recordCount: random.between(32_760, 70_000), recordBytes: 1 };
  // Several chunks in each shard, and frames with a window of their own above 2 MiB. From 128 KiB
  // and six times the dictionary on, zstd fits its parameters to the record, not the dictionary.
  if (kind < (codec === 'zstd_dict' ? 0.3 : 0.22)) {
    return { recordCount: random.between(1, 12), recordBytes: random.magnitude(60_000, 3_000_000) };
  }
  if (kind < 0.45) {
    return { recordCount: random.magnitude(60, 3000), recordBytes: random.magnitude(1, 1500) };
  }
  return {
    recordCount: random.between(2, 60),
    recordBytes: random.magnitude(dtype.itemBytes, dtype.itemBytes * 2000),
  };
}

/** @param {Exchanged} dtype @param {number} recordBytes about @param {Random} random */
function denseShape(dtype, recordBytes, random) {
  const itemCount = Math.max(1, Math.round(recordBytes / dtype.itemBytes));
  const choice = random.u32() / 2 ** 32;
  if (choice < 0.2 && recordBytes < 20_000) return [];
  const rank = choice < 0.85 ? random.between(1, 4) : choice < 0.97 ? random.between(5, 16) : 63;
  return factors(itemCount, rank, random);
}

/** @param {Exchanged} dtype @param {number} ndim @param {number} recordBytes @param {Random} random */
function raggedShape(dtype, ndim, recordBytes, random) {
  const itemCount = Math.max(1, Math.round(recordBytes / dtype.itemBytes));
  return factors(random.between(1, itemCount * 2), ndim, random);
}

/**
 * `rank` whole numbers from 1 up whose product is about `total`, in random order.
 *
 * @param {number} total
 * @param {number} rank
 * @param {Random} random
 */
function factors(total, rank, random) {
  const sizes = new Array(rank).fill(1);
  let rest = total;
  const places = random.shuffled([...sizes.keys()]).slice(0, 5);
  for (const [turn, place] of places.entries()) {
    const size = turn === places.length - 1 ? rest : random.magnitude(1, Math.max(1, rest));
    sizes[place] = size;
    rest = Math.max(1, Math.floor(rest / size));
  }
  return sizes;
}

/** @param {Uint8Array} items @param {Exchanged} dtype @param {Random} random */
function fillItems(items, dtype, random) {
  const style = random.pick(['noise', 'noise', 'few', 'ramp', 'constant', 'words']);
  if (style === 'noise') random.fill(items);
  if (style === 'constant') items.fill(random.between(0, 255));
  if (style === 'few') {
    const values = Array.from({ length: random.between(1, 5) }, () => random.between(0, 255));
    for (let at = 0; at < items.length; at += 1) items[at] = random.pick(values);
  }
  if (style === 'ramp') {
    const step = random.between(1, 9);
    for (let at = 0; at < items.length; at += 1) items[at] = (at >>> step) & 0xff;
  }
  if (style === 'words') {
    const words = Array.from({ length: 12 }, () => {
      const word = new Uint8Array(random.between(3, 24));
      random.fill(word);
      return word;
    });
    for (let at = 0; at < items.length; ) {
      const word = random.pick(words).subarray(0, items.length - at);
      items.set(word, at);
      at += word.length;
    }
  }
  if (dtype.content === 'bool') {
    for (let at = 0; at < items.length; at += 1) items[at] = (items[at] ?? 0) & 1;
  }
  if (dtype.content === 'text') limitCharacters(items, dtype);
  const specials = specialNumbers(dtype);
  const numberCount = items.length / dtype.partBytes;
  const specialCount = Math.min(numberCount, 200, specials.length * 2);
  for (let turn = 0; turn < specialCount; turn += 1) {
    items.set(random.pick(specials), random.between(0, numberCount - 1) * dtype.partBytes);
  }
}

/** Characters are four bytes and at most U+10FFFF; NumPy copies others, and fails to show them.
 *  @param {Uint8Array} items @param {Exchanged} dtype */
function limitCharacters(items, dtype) {
  for (let at = 0; at < items.length; at += 4) {
    const high = dtype.bigEndian ? at : at + 3;
    const next = dtype.bigEndian ? at + 1 : at + 2;
    items[high] = 0;
    items[next] = (items[next] ?? 0) & 0x0f;
  }
}

/** @param {number} recordCount @param {Random} random @returns {Append[]} */
function splitAppends(recordCount, random) {
  const appendCount = Math.min(recordCount, random.pick([1, 1, 2, 3, 4, 6]));
  const cuts = new Set([recordCount]);
  // As many as come out different: fewer is fine.
  for (let turn = 1; turn < appendCount; turn += 1) cuts.add(random.between(1, recordCount));
  let from = 0;
  return [...cuts]
    .sort((left, right) => left - right)
    .filter((cut) => cut > 0)
    .map((cut) => {
      const count = cut - from;
      from = cut;
      return {
        count,
        layout: random.pick(layouts),
        form: random.pick(forms),
        isAsync: random.chance(0.5),
      };
    });
}

/**
 * Not a trained dictionary: bytes that zstd uses as they are. Mostly taken from the data, so that
 * frames do refer to it.
 *
 * @param {Uint8Array} items
 * @param {Random} random
 */
function dictionaryBytes(items, random) {
  const bytes = new Uint8Array(random.pick([1, 7, 8, 9, 200, 4096, 32_768, 131_072, 2 ** 20]));
  random.fill(bytes);
  const from = random.between(0, Math.max(0, items.length - bytes.length));
  bytes.set(items.subarray(from, from + bytes.length));
  return bytes;
}

/** @param {readonly number[]} sizes */
export function product(sizes) {
  return sizes.reduce((result, size) => result * size, 1);
}

/** Record `index`'s bytes. @param {Plan} plan @param {number} index */
export function recordBytes({ items, starts }, index) {
  return items.subarray(starts[index], starts[index + 1]);
}

/** The bytes of records, back to back. @param {Plan} plan @param {readonly number[]} ids */
export function gathered(plan, ids) {
  return Buffer.concat(ids.map((id) => recordBytes(plan, id)));
}

/** All records' dimensions as u64 little-endian. @param {Plan} plan @param {readonly number[]} [ids] */
export function dimensionBytes({ shapes }, ids = [...shapes.keys()]) {
  const flat = ids.flatMap((id) => shapes[id] ?? []);
  return Buffer.from(BigUint64Array.from(flat, BigInt).buffer);
}
