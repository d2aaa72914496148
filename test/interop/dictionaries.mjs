// @ts-check
// Dictionaries: the same data must train to the same bytes, and what one side cannot train on the
// other must refuse too.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Group } from './ledger.mjs';
import { product } from './plan.mjs';
import { Random } from './random.mjs';
import { PythonError } from './worker.mjs';

/** @typedef {import('./exchange.mjs').Setting} Setting */
/** @typedef {import('../../ts/index.js').NdArray} NdArray */

/**
 * Records of one geometry, as bytes.
 *
 * @typedef {object} Sample
 * @property {'uint8' | 'int16' | 'float32'} dtype
 * @property {number} itemBytes
 * @property {readonly number[]} itemShape of all records; empty shapes belong to ragged ones
 * @property {readonly (readonly number[])[]} shapes of each record
 * @property {Uint8Array<ArrayBuffer>} items
 */

const numpyNames = { uint8: '|u1', int16: '<i2', float32: '<f4' };
const itemBytesOf = { uint8: 1, int16: 2, float32: 4 };
const arrayOf = { uint8: Uint8Array, int16: Int16Array, float32: Float32Array };
const mebibyte = 2 ** 20;

/**
 * What is trained on. `array` and `records` are handed over as they are, `bytes` as byte strings,
 * `dense` and `ragged` as an open reader of a container that the other side wrote.
 */
const sources = /** @type {const} */ (['array', 'records', 'bytes', 'dense', 'ragged']);

/** @param {Setting} setting @returns {Promise<Group[]>} */
export async function trainDictionaries(setting) {
  const { version, dialect, seed, count, isWanted } = setting;
  const group = new Group(`dictionaries trained as ${version} trains`);
  const part = `dictionaries-${dialect}`;
  let refusedCount = 0;
  for (let index = 0; index < count; index += 1) {
    if (!isWanted(part, index)) continue;
    const random = new Random(seed, part, index);
    // 2.8 trains on its readers only.
    const known = dialect === '2.4' ? sources : /** @type {const} */ (['dense', 'ragged']);
    const source = known[index % known.length] ?? 'dense';
    const sample = makeSample(source, random);
    const name = `--seed ${seed} --case ${part}:${index} (${source}, ${words(sample)})`;
    const folder = path.join(setting.folder, String(index));
    fs.mkdirSync(folder, { recursive: true });
    await group.check(name, async () => {
      const theirs = await trainTheirs(setting, source, sample, folder);
      const ours = await trainOurs(setting, source, sample, folder);
      if (theirs === null) refusedCount += 1;
      assert.equal(ours === null, theirs === null, 'only one side refused to train');
      if (ours !== null && theirs !== null) {
        assert.ok(
          theirs.equals(ours),
          `${ours.length} bytes of ours, ${theirs.length} of Python's differ`,
        );
      }
    });
    fs.rmSync(folder, { recursive: true, force: true });
  }
  group.note = `${refusedCount} refused by both`;
  return [group];
}

/** @param {Sample} sample */
function words({ dtype, shapes, items, itemShape }) {
  return `${dtype} [${itemShape}], ${shapes.length} records, ${items.length} bytes`;
}

/** @param {typeof sources[number]} source @param {Random} random @returns {Sample} */
function makeSample(source, random) {
  const dtype = random.pick(/** @type {const} */ (['uint8', 'int16', 'float32']));
  const itemBytes = itemBytesOf[dtype];
  const isEven = source === 'array' || source === 'dense';
  // Below 7 samples nothing is trained; over 4 MiB not all are taken.
  const choice = random.u32() / 2 ** 32;
  const totalBytes = random.magnitude(40_000, choice < 0.25 ? 9 * mebibyte : 600_000);
  const recordCount =
    choice > 0.93 ? random.between(1, 6) : random.magnitude(40, Math.min(900_000, totalBytes / 8));
  const itemCount = Math.max(1, Math.round(totalBytes / recordCount / itemBytes));
  const itemShape = isEven ? shapeOf(itemCount, random) : [];

  /** @type {(readonly number[])[]} */
  const shapes = [];
  let bytes = 0;
  for (let record = 0; record < recordCount; record += 1) {
    const shape = isEven ? itemShape : [random.between(1, itemCount * 2)];
    shapes.push(shape);
    bytes += product(shape) * itemBytes;
  }
  return { dtype, itemBytes, itemShape, shapes, items: phrases(bytes, random) };
}

/** @param {number} itemCount @param {Random} random */
function shapeOf(itemCount, random) {
  if (itemCount === 1) return random.pick([[], [1]]);
  const width = random.pick([1, 2, 3]);
  return itemCount % width === 0 && width > 1 ? [itemCount / width, width] : [itemCount];
}

/** Text out of a small vocabulary: there is something to learn. @param {number} bytes @param {Random} random */
function phrases(bytes, random) {
  const vocabulary = Array.from({ length: random.between(20, 400) }, () => {
    const word = new Uint8Array(random.between(4, 30));
    random.fill(word);
    return word;
  });
  const text = new Uint8Array(bytes);
  for (let at = 0; at < bytes; ) {
    const word = random.pick(vocabulary).subarray(0, bytes - at);
    text.set(word, at);
    at += word.length;
    if (at < bytes && random.chance(0.3)) text[at++] = random.between(0, 255);
  }
  return text;
}

/** Record by record. @param {Sample} sample @returns {Generator<NdArray>} */
function* recordsOf({ dtype, itemBytes, shapes, items }) {
  let start = 0;
  for (const shape of shapes) {
    const data = new arrayOf[dtype](items.buffer, start, product(shape));
    yield/** @type {NdArray} */ ({ dtype, shape, data });
    start += product(shape) * itemBytes;
  }
}

/** @param {Sample} sample @returns {NdArray} */
function stacked({ dtype, itemBytes, itemShape, shapes, items }) {
  const data = new arrayOf[dtype](items.buffer, 0, items.length / itemBytes);
  return /** @type {NdArray} */ ({ dtype, shape: [shapes.length, ...itemShape], data });
}

/**
 * @param {Setting} setting
 * @param {typeof sources[number]} source
 * @param {Sample} sample
 * @param {string} folder
 * @returns {Promise<Buffer | null>} null: refused
 */
async function trainTheirs({ python, loaderx, dialect }, source, sample, folder) {
  const target = path.join(folder, 'dictionary');
  const ndim = 1;
  const common = { path: target };
  try {
    if (source === 'dense' || source === 'ragged') {
      const container = path.join(folder, 'ours');
      await writeSample(loaderx, container, source, sample, dialect);
      const request = dialect === '2.4' ? { source: 'reader' } : {};
      await python.call('train', { ...common, ...request, kind: source, items: container });
    } else {
      const items = path.join(folder, 'items');
      fs.writeFileSync(items, sample.items);
      const dims = path.join(folder, 'dims');
      if (source !== 'array') {
        const lengths = BigUint64Array.from(sample.shapes, ([length]) => BigInt(length ?? 1));
        fs.writeFileSync(dims, Buffer.from(lengths.buffer));
      }
      const dtype = numpyNames[sample.dtype];
      const shape = source === 'array' ? { item_shape: sample.itemShape } : { ndim, dims };
      await python.call('train', { ...common, source, dtype, items, ...shape });
    }
  } catch (error) {
    if (error instanceof PythonError && ['ZrecordError', 'ValueError'].includes(error.type))
      return null;
    throw error;
  }
  return fs.readFileSync(target);
}

/**
 * @param {Setting} setting
 * @param {typeof sources[number]} source
 * @param {Sample} sample
 * @param {string} folder
 * @returns {Promise<Uint8Array | null>} null: refused
 */
async function trainOurs({ python, loaderx, dialect }, source, sample, folder) {
  try {
    if (source === 'array') return await loaderx.trainDict(stacked(sample));
    if (source === 'records') return await loaderx.trainDict(recordsOf(sample));
    if (source === 'bytes') {
      const bytes = [...recordsOf(sample)].map(
        ({ data }) => new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
      );
      return await loaderx.trainDict(bytes);
    }
    const container = path.join(folder, 'theirs');
    const items = path.join(folder, 'theirs.items');
    fs.writeFileSync(items, sample.items);
    const dims = path.join(folder, 'theirs.dims');
    const lengths = BigUint64Array.from(sample.shapes, (shape) => BigInt(product(shape)));
    fs.writeFileSync(dims, Buffer.from(lengths.buffer));
    const isDense = source === 'dense';
    await python.call('write', {
      path: container,
      kind: source,
      dtype: dialect === '2.4' ? numpyNames[sample.dtype] : sample.dtype,
      codec: 'raw',
      shards: 3,
      items,
      appends: [{ count: sample.shapes.length, layout: 'read_only', form: 'list' }],
      ...(isDense ? { item_shape: sample.itemShape } : { ndim: 1, dims }),
    });
    const reader = isDense ? loaderx.Dense.open(container) : loaderx.Ragged.open(container);
    try {
      return await loaderx.trainDict(reader);
    } finally {
      await reader.close();
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'DICTIONARY') return null;
    throw error;
  }
}

/**
 * @param {Setting['loaderx']} loaderx
 * @param {string} container
 * @param {'dense' | 'ragged'} kind
 * @param {Sample} sample
 * @param {'2.4' | '2.8'} dialect
 */
async function writeSample(loaderx, container, kind, sample, dialect) {
  const { dtype, itemShape } = sample;
  if (kind === 'dense') {
    const writer = loaderx.Dense.create(container, { dtype, itemShape, codec: 'zstd', dialect });
    await writer.append(
      /** @type {import('../../ts/index.js').NdArray<typeof dtype>} */ (stacked(sample)),
    );
    await writer.close();
  } else {
    const writer = loaderx.Ragged.create(container, { dtype, ndim: 1, codec: 'zstd', dialect });
    await writer.append(
      /** @type {Iterable<import('../../ts/index.js').NdArray<typeof dtype>>} */ (
        recordsOf(sample)
      ),
    );
    await writer.close();
  }
}
