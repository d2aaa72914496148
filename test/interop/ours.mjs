// @ts-check
// A plan written with this package, and a container held to its plan through every way of reading.
import assert from 'node:assert/strict';
import { dimensionBytes, gathered, product, recordBytes } from './plan.mjs';

/** @typedef {typeof import('../../ts/index.js')} Loaderx */
/** @typedef {import('../../ts/index.js').NdArray} NdArray */
/** @typedef {import('../../ts/index.js').DenseReader} DenseReader */
/** @typedef {import('../../ts/index.js').DenseWriter} DenseWriter */
/** @typedef {import('../../ts/index.js').RaggedReader} RaggedReader */
/** @typedef {import('../../ts/index.js').RaggedBatch<import('../../ts/index.js').DType>} RaggedBatch */
/** @typedef {import('./plan.mjs').Append} Append */
/** @typedef {import('./plan.mjs').Plan} Plan */
/** @typedef {import('./random.mjs').Random} Random */

/** Bytes of a typed array, where they are. @param {ArrayBufferView} view */
export function bytesOf(view) {
  return Buffer.from(view.buffer, view.byteOffset, view.byteLength);
}

/**
 * Records `from` to `to` as one array on the plan's memory.
 *
 * @param {Plan} plan
 * @param {number} from
 * @param {number} to
 * @param {readonly number[]} shape
 * @returns {NdArray}
 */
function arrayOf({ combination: { dtype }, items, starts }, from, to, shape) {
  const start = starts[from] ?? 0;
  const bytes = (starts[to] ?? 0) - start;
  const elements = bytes / dtype.array.BYTES_PER_ELEMENT;
  const data = new dtype.array(items.buffer, items.byteOffset + start, elements);
  // The table of dtypes pairs names with arrays as the package does; the compiler cannot see it.
  return /** @type {NdArray} */ ({ dtype: dtype.ours, shape, data });
}

/** @param {Plan} plan @param {number} from @param {number} to */
function* recordsOf(plan, from, to) {
  for (let id = from; id < to; id += 1) yield arrayOf(plan, id, id + 1, plan.shapes[id] ?? []);
}

/** @param {Plan} plan @param {number} from @param {number} to */
async function* recordsLater(plan, from, to) {
  for (const record of recordsOf(plan, from, to)) {
    if (record.shape[0] === 1) await null;
    yield record;
  }
}

/**
 * Writes the plan. Un-awaited appends follow each other wherever the plan has several in a row.
 *
 * @param {Loaderx} loaderx
 * @param {string} path
 * @param {Plan} plan
 * @param {'2.4' | '2.8'} dialect
 * @param {RaggedReader | undefined} twin a reader of the same records, whose batches can be appended
 */
export async function writeOurs(loaderx, path, plan, dialect, twin) {
  const { combination, itemShape, ndim, dictionary } = plan;
  const common = {
    dtype: combination.dtype.ours,
    dataShards: combination.shards,
    dialect,
    ...(combination.codec === 'zstd_dict'
      ? { codec: combination.codec, dictBytes: dictionary ?? new Uint8Array() }
      : { codec: combination.codec }),
  };
  if (combination.kind === 'dense') {
    const writer = loaderx.Dense.create(path, { ...common, itemShape });
    await appendAll(writer, plan, (from, to) => arrayOf(plan, from, to, [to - from, ...itemShape]));
    await finish(writer, plan);
    return;
  }
  const writer = loaderx.Ragged.create(path, { ...common, ndim });
  await appendAll(writer, plan, (from, to, append) => {
    if (append.form === 'generator') return recordsOf(plan, from, to);
    if (append.form === 'dict_values' && append.isAsync) return recordsLater(plan, from, to);
    if (append.form === 'stacked' && twin !== undefined)
      return twin.gatherSync(idsBetween(from, to));
    return [...recordsOf(plan, from, to)];
  });
  await finish(writer, plan);
}

/** @param {number} from @param {number} to */
function idsBetween(from, to) {
  return Uint32Array.from({ length: to - from }, (_, index) => from + index);
}

/**
 * @template Input
 * @param {{append(input: Input): Promise<void>, appendSync(input: any): void}} writer
 * @param {Plan} plan
 * @param {(from: number, to: number, append: Append) => Input} input
 */
async function appendAll(writer, plan, input) {
  /** @type {Promise<void>[]} */
  let running = [];
  let from = 0;
  for (const append of plan.appends) {
    const to = from + append.count;
    if (append.isAsync) {
      running.push(writer.append(input(from, to, append)));
    } else {
      await Promise.all(running);
      running = [];
      writer.appendSync(input(from, to, append));
    }
    from = to;
  }
  await Promise.all(running);
}

/**
 * A third of the containers has an integrity file from the beginning.
 *
 * @param {Pick<DenseWriter, 'close' | 'closeSync' | 'length'>} writer
 * @param {Plan} plan
 */
async function finish(writer, plan) {
  assert.equal(writer.length, plan.shapes.length, 'the length of the writer');
  const options = { integrity: plan.items.length % 3 === 0 };
  if (plan.appends.length % 2 === 0) await writer.close(options);
  else writer.closeSync(options);
}

/**
 * Opens a container and holds it to its plan: what it says of itself, and every record's bytes and
 * shape through every way of reading.
 *
 * @param {Loaderx} loaderx
 * @param {string} path
 * @param {Plan} plan
 * @param {'2.4' | '2.8'} dialect
 * @param {Random} random
 */
export async function checkOurs(loaderx, path, plan, dialect, random) {
  const { combination, itemShape, ndim, shapes } = plan;
  const reader = random.chance(0.5)
    ? loaderx.open(path)
    : loaderx[combination.kind === 'dense' ? 'Dense' : 'Ragged'].open(path);
  try {
    assert.deepEqual(
      {
        kind: reader.kind,
        dtype: reader.dtype,
        ndim: reader.ndim,
        itemShape: reader.kind === 'dense' ? [...reader.itemShape] : null,
        length: reader.length,
        codec: reader.codec,
        dataShards: reader.dataShards,
        hasDict: reader.hasDict,
        dialect: reader.dialect,
      },
      {
        kind: combination.kind,
        dtype: combination.dtype.ours,
        ndim,
        itemShape: combination.kind === 'dense' ? itemShape : null,
        length: shapes.length,
        codec: combination.codec,
        dataShards: combination.shards,
        hasDict: combination.codec === 'zstd_dict',
        dialect,
      },
      'what the reader says of the container',
    );
    await checkReads(reader, plan, random);
  } finally {
    await reader.close();
  }
}

/** @param {DenseReader | RaggedReader} reader @param {Plan} plan @param {Random} random */
async function checkReads(reader, plan, random) {
  const length = plan.shapes.length;
  const all = [...plan.shapes.keys()];
  checkBatch(await reader.slice(), plan, all, 'slice()');

  const picks = randomIds(length, random);
  const asked = random.pick([picks, Uint32Array.from(picks), BigUint64Array.from(picks, BigInt)]);
  checkBatch(await reader.gather(asked), plan, picks, 'gather(random ids)');
  checkBatch(reader.gatherSync(asked), plan, picks, 'gatherSync(random ids)');

  const start = random.between(0, length);
  const end = random.between(0, length + 3);
  const step = random.pick([1, 2, 3, 7]);
  const sliced = all.filter((id) => id >= start && id < end && (id - start) % step === 0);
  const words = `slice(${start}, ${end}, ${step})`;
  checkBatch(await reader.slice(start, end, step), plan, sliced, words);

  for (const id of picks.slice(0, 3)) {
    checkArray(reader.record(id), plan, [id], plan.shapes[id] ?? [], `record(${id})`);
  }

  let from = 0;
  const count = random.magnitude(Math.max(1, Math.floor(length / 40)), length + 1);
  for await (const batch of reader.batches(count)) {
    const to = Math.min(length, from + count);
    checkBatch(batch, plan, all.slice(from, to), `batches(${count}) from ${from}`);
    from = to;
  }
  assert.equal(from, length, `batches(${count}) ends at the length`);
}

/** Ids in no order, some more than once. @param {number} length @param {Random} random */
export function randomIds(length, random) {
  if (length === 0) return [];
  const count = random.magnitude(1, Math.min(200, length * 2));
  return Array.from({ length: count }, () => random.between(0, length - 1));
}

/**
 * @param {NdArray | RaggedBatch} batch
 * @param {Plan} plan
 * @param {readonly number[]} ids
 * @param {string} call
 */
function checkBatch(batch, plan, ids, call) {
  if (plan.combination.kind === 'dense') {
    const shape = [ids.length, ...plan.itemShape];
    checkArray(/** @type {NdArray} */ (batch), plan, ids, shape, call);
  } else {
    checkRagged(/** @type {RaggedBatch} */ (batch), plan, ids, call);
  }
}

/**
 * @param {NdArray} array
 * @param {Plan} plan
 * @param {readonly number[]} ids of the records it holds
 * @param {readonly number[]} shape
 * @param {string} call
 */
function checkArray(array, plan, ids, shape, call) {
  const { dtype } = plan.combination;
  assert.equal(array.dtype, dtype.ours, `dtype of ${call}`);
  assert.deepEqual([...array.shape], shape, `shape of ${call}`);
  assert.equal(array.data.constructor, dtype.array, `typed array of ${call}`);
  assert.ok(bytesOf(array.data).equals(gathered(plan, ids)), `bytes of ${call} differ`);
}

const recordsCheckedMax = 300;

/** @param {RaggedBatch} batch @param {Plan} plan @param {readonly number[]} ids @param {string} call */
function checkRagged(batch, plan, ids, call) {
  const { dtype } = plan.combination;
  assert.equal(batch.dtype, dtype.ours, `dtype of ${call}`);
  assert.equal(batch.length, ids.length, `length of ${call}`);
  assert.equal(batch.values.constructor, dtype.array, `typed array of ${call}`);
  assert.ok(bytesOf(batch.values).equals(gathered(plan, ids)), `bytes of ${call} differ`);
  const dims = Buffer.from(BigUint64Array.from([...batch.dims], BigInt).buffer);
  assert.ok(dims.equals(dimensionBytes(plan, ids)), `dims of ${call} differ`);
  let end = 0;
  for (let index = 0; index <= ids.length; index += 1) {
    if (batch.offsets[index] !== end) assert.equal(batch.offsets[index], end, `offsets of ${call}`);
    end += product(plan.shapes[ids[index] ?? -1] ?? []) * elementsOf(dtype);
  }
  const stride = Math.max(1, Math.ceil(ids.length / recordsCheckedMax));
  for (let index = 0; index < ids.length; index += stride) {
    const id = ids[index] ?? -1;
    checkArray(batch.at(index), plan, [id], plan.shapes[id] ?? [], `${call}.at(${index})`);
  }
  if (ids.length > recordsCheckedMax) return;
  let index = 0;
  for (const record of batch) {
    const bytes = recordBytes(plan, ids[index] ?? -1);
    assert.ok(bytesOf(record.data).equals(bytes), `record ${index} of ${call} differs`);
    index += 1;
  }
  assert.equal(index, ids.length, `records of ${call}`);
}

/** Typed-array elements of one item. @param {import('./dtypes.mjs').Exchanged} dtype */
function elementsOf(dtype) {
  return dtype.itemBytes / dtype.array.BYTES_PER_ELEMENT;
}
