// @ts-check
// The intact containers that mutants are made of: both kinds, every codec, one shard and four, and
// four of the 2.8 dialect. Small, so that every byte has a good chance to be hit, and so that a mutant
// costs well under a millisecond. Two more have records large enough to be decoded in place.
import fs from 'node:fs';
import path from 'node:path';
import { Random } from '../interop/random.mjs';
import { readFiles } from '../support/files.mjs';

/** @typedef {import('../support/package.mjs').Loaderx} Loaderx */
/** @typedef {import('../support/files.mjs').Files} Files */

/**
 * @typedef {object} Seed
 * @property {string} name
 * @property {'dense' | 'ragged'} kind
 * @property {'raw' | 'zstd' | 'zstd_dict'} codec
 * @property {number} shards
 * @property {'2.4' | '2.8'} dialect
 * @property {boolean} isLarge
 * @property {Files} files
 */

const recordCount = 9;

/** @type {readonly Omit<Seed, 'name' | 'files' | 'isLarge'>[]} */
const small = [
  .../** @type {const} */ (['dense', 'ragged']).flatMap((kind) =>
    /** @type {const} */ (['raw', 'zstd', 'zstd_dict']).flatMap((codec) =>
      [1, 4].map((shards) => ({ kind, codec, shards, dialect: /** @type {const} */ ('2.4') })),
    ),
  ),
  { kind: 'dense', codec: 'raw', shards: 4, dialect: '2.8' },
  { kind: 'dense', codec: 'zstd', shards: 1, dialect: '2.8' },
  { kind: 'ragged', codec: 'raw', shards: 1, dialect: '2.8' },
  { kind: 'ragged', codec: 'zstd_dict', shards: 4, dialect: '2.8' },
];

/** @type {readonly Omit<Seed, 'name' | 'files'>[]} */
const plans = [
  ...small.map((plan) => ({ ...plan, isLarge: false })),
  { kind: 'ragged', codec: 'zstd', shards: 1, dialect: '2.4', isLarge: true },
  { kind: 'ragged', codec: 'zstd_dict', shards: 4, dialect: '2.8', isLarge: true },
];

/**
 * Writes the seeds with the package, each in a folder of its name. They are the same every time.
 *
 * @param {Loaderx} loaderx
 * @param {string} folder
 * @returns {Promise<Seed[]>}
 */
export async function makeSeeds(loaderx, folder) {
  fs.mkdirSync(folder, { recursive: true });
  const dictionary = await loaderx.trainDict(
    Array.from({ length: 300 }, (_, id) => new Uint8Array(text(id % 37, 60))),
  );
  /** @type {Seed[]} */
  const seeds = [];
  for (const plan of plans) {
    const { kind, codec, shards, dialect, isLarge } = plan;
    const name = `${kind}-${codec}-${shards}-${dialect}${isLarge ? '-large' : ''}`;
    const place = path.join(folder, name);
    // One dictionary is a trained one, the other plain bytes.
    const isTrained = (kind === 'dense') === (shards === 1);
    const dictBytes = isTrained ? dictionary : new Uint8Array(text(0, 100));
    const common = {
      ...(codec === 'zstd_dict' ? { codec, dictBytes } : { codec }),
      ...{ dataShards: shards, dialect },
    };
    if (kind === 'dense') await makeDense(loaderx, place, common);
    else await makeRagged(loaderx, place, common, isLarge);
    seeds.push({ name, ...plan, files: readFiles(place) });
  }
  return seeds;
}

/** Records of 48 bytes of text as int16 [2, 12]. @param {Loaderx} loaderx @param {string} place @param {import('../../ts/index.js').CreateOptions} common */
async function makeDense(loaderx, place, common) {
  const writer = loaderx.Dense.create(place, { ...common, dtype: 'int16', itemShape: [2, 12] });
  const bytes = Buffer.concat(Array.from({ length: recordCount }, (_, id) => text(id, 48)));
  const data = new Int16Array(new Uint8Array(bytes).buffer);
  await writer.append(loaderx.ndarray('int16', [recordCount, 2, 12], data));
  await writer.close();
}

/**
 * Records of text of different lengths, two dimensions. Large ones, which compress well, stand between
 * small ones.
 *
 * @param {Loaderx} loaderx
 * @param {string} place
 * @param {import('../../ts/index.js').CreateOptions} common
 * @param {boolean} isLarge
 */
async function makeRagged(loaderx, place, common, isLarge) {
  const writer = loaderx.Ragged.create(place, { ...common, dtype: 'uint16', ndim: 2 });
  const records = Array.from({ length: recordCount }, (_, id) => {
    const [rows, columns] =
      isLarge && id % 3 !== 1 ? [260 + id, 300] : [1 + (id % 4), 1 + ((id * 5) % 7)];
    const items = text(id, Math.min(2000, rows * columns * 2));
    const bytes = new Uint8Array(rows * columns * 2);
    for (let at = 0; at < bytes.length; at += items.length) {
      bytes.set(items.subarray(0, bytes.length - at), at);
    }
    return loaderx.ndarray('uint16', [rows, columns], new Uint16Array(bytes.buffer));
  });
  await writer.append(records);
  await writer.close();
}

/** Words of a small language, so that frames hold matches. @param {number} first @param {number} bytes @returns {Buffer} */
function text(first, bytes) {
  const random = new Random('text', first);
  let words = '';
  while (words.length < bytes) words += `${word(random.between(0, 20))} `;
  return Buffer.from(words.slice(0, bytes));
}

/** @param {number} number */
function word(number) {
  const random = new Random('word', number);
  return Array.from({ length: random.between(2, 9) }, () =>
    String.fromCharCode(random.between(97, 122)),
  ).join('');
}
