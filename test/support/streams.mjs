// @ts-check
// Two streams of one data set, for loaders: every item says which record it is of.
//
//     image  Dense uint32 [3]   id, 7·id + 1, ~id
//     text   Ragged int32       id, 1 + id mod 5 times

/** @typedef {typeof import('../../ts/index.js')} Loaderx */
/** @typedef {import('../../ts/index.js').DenseReader<'uint32'>} Image */
/** @typedef {import('../../ts/index.js').RaggedReader<'int32'>} Text */
/** @typedef {{image: Image, text: Text}} Streams */
/** @typedef {{image: import('../../ts/index.js').DenseBatch<'uint32'>, text: import('../../ts/index.js').RaggedBatch<'int32'>}} StreamsBatch */

/**
 * Builds both containers below `root`.
 *
 * @param {Loaderx} loaderx
 * @param {string} root
 * @param {number} count
 * @param {{codec?: 'raw' | 'zstd', dataShards?: number}} [options]
 */
export async function buildStreams(loaderx, root, count, { codec = 'raw', dataShards = 4 } = {}) {
  const { Dense, Ragged, ndarray } = loaderx;
  const data = new Uint32Array(count * 3);
  for (let id = 0; id < count; id += 1) data.set([id, id * 7 + 1, ~id >>> 0], id * 3);
  const image = Dense.create(`${root}/image`, {
    dtype: 'uint32',
    itemShape: [3],
    codec,
    dataShards,
  });
  await image.append(ndarray('uint32', [count, 3], data));
  await image.close();
  const text = Ragged.create(`${root}/text`, { dtype: 'int32', ndim: 1, codec, dataShards });
  const records = Array.from({ length: count }, (_, id) => {
    const length = 1 + (id % 5);
    return ndarray('int32', [length], new Int32Array(length).fill(id));
  });
  await text.append(records);
  await text.close();
}

/** @param {Loaderx} loaderx @param {string} root @returns {Streams} */
export function openStreams(loaderx, root) {
  return {
    image: loaderx.Dense.open(`${root}/image`, { dtype: 'uint32', itemShape: [3] }),
    text: loaderx.Ragged.open(`${root}/text`, { dtype: 'int32', ndim: 1 }),
  };
}

/** @param {Streams} streams */
export async function closeStreams({ image, text }) {
  await Promise.all([image.close(), text.close()]);
}

/**
 * The ids of a batch, in order. Throws unless every item of both streams is of its record.
 *
 * @param {StreamsBatch} batch @returns {number[]}
 */
export function idsOf({ image, text }) {
  const { data } = image;
  const ids = [];
  if (text.length * 3 !== data.length)
    throw new Error(`${text.length} texts, ${data.length} items`);
  for (let index = 0; index < text.length; index += 1) {
    const id = data[index * 3] ?? -1;
    const words = text.values.subarray(text.offsets[index], text.offsets[index + 1]);
    const isImage = data[index * 3 + 1] === id * 7 + 1 && data[index * 3 + 2] === ~id >>> 0;
    const isText = words.length === 1 + (id % 5) && words.every((word) => word === id);
    if (!isImage || !isText) throw new Error(`entry ${index} is no record ${id}`);
    ids.push(id);
  }
  return ids;
}

/** One number for a list of ids (FNV-1a over their bytes). @param {ArrayLike<number>} ids */
export function hashOf(ids) {
  let hash = 0x811c9dc5;
  for (let index = 0; index < ids.length; index += 1) {
    const id = ids[index] ?? 0;
    for (let shift = 0; shift < 32; shift += 8) {
      hash = Math.imul(hash ^ ((id >>> shift) & 0xff), 0x01000193);
    }
  }
  return hash >>> 0;
}

/**
 * The ids of steps 0 to `steps - 1`, from a sampler alone.
 *
 * @param {Loaderx} loaderx
 * @param {{length: number, batchSize: number, mode: 'sequential' | 'iid' | 'cyclic', seed?: number | bigint}} options
 * @param {number} steps
 * @returns {number[][]}
 */
export function expectedIds(loaderx, options, steps) {
  const sampler = new loaderx.Sampler(options);
  const all = [];
  for (let step = 0; step < steps; step += 1) all.push(Array.from(sampler.draw(), Number));
  sampler.close();
  return all;
}
