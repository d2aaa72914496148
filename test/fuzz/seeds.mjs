// @ts-check
// The first inputs of each native target, made of intact containers: what a fuzzer begins with when
// there is no corpus yet, and what every new corpus is built on. The targets' inputs are described in
// zig-src/fuzz.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makeSeeds } from '../mutate/seeds.mjs';
import { bytesOf } from '../support/files.mjs';
import { loaderx } from '../support/package.mjs';
import { makeLocation, readLocation, readPage, schemaAt, u32 } from '../support/page.mjs';

/** @typedef {import('../mutate/seeds.mjs').Seed} Seed */

const codecs = /** @type {const} */ (['raw', 'zstd', 'zstd_dict']);
/** What the first bytes of an input can say. */
const dictBytesMax = 255 * 8;

/** @param {number} value */
const u16 = (value) => u32(value).subarray(0, 2);

/** @returns {Promise<Map<string, Buffer[]>>} inputs by target */
export async function firstInputs() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-fuzz-seeds-'));
  try {
    const seeds = (await makeSeeds(loaderx, folder)).filter((seed) => !seed.isLarge);
    return new Map([
      ['page', seeds.map(pageOf)],
      ['gather', seeds.flatMap(gatherOf)],
      ['dictionary', seeds.flatMap(dictionaryOf)],
    ]);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** The page up to the end of its schema. @param {Seed} seed */
function pageOf({ files }) {
  const meta = bytesOf(files, 'meta.zr');
  return Buffer.from(meta.subarray(0, schemaAt + readPage(meta).schema.length));
}

/** @param {Seed} seed */
function dictOf({ files, codec }) {
  return codec === 'zstd_dict' ? bytesOf(files, 'dict.zr') : Buffer.alloc(0);
}

/** The shards one after the other: every shard of the target holds all of it. @param {Seed} seed @returns {Buffer[]} */
function gatherOf(seed) {
  const { files, kind, codec, shards, dialect } = seed;
  const dict = dictOf(seed);
  if (dict.length > dictBytesMax) return [];
  const padded = Buffer.alloc(Math.ceil(dict.length / 8) * 8);
  dict.copy(padded);
  const meta = bytesOf(files, 'meta.zr');
  const data = Array.from({ length: shards }, (_, shard) => bytesOf(files, `data_${shard}.zr`));
  const starts = data.map((_, shard) =>
    data.slice(0, shard).reduce((sum, { length }) => sum + length, 0),
  );
  const count = Number(readPage(meta).length);
  const locations = Array.from({ length: count }, (_, id) => {
    const location = readLocation(meta, id);
    return makeLocation({
      ...location,
      offset: location.offset + BigInt(starts[id % shards] ?? 0),
    });
  });
  const ragged = kind === 'ragged' ? 1 | (dialect === '2.4' ? 2 : 0) : 0;
  const head = Buffer.from([ragged | (codecs.indexOf(codec) << 2), shards - 1, count, 1]);
  // Records of 48 bytes, or items of 2.
  const size = u16(kind === 'ragged' ? 1 : 48);
  const rest = Buffer.from([padded.length / 8, 0]);
  return [Buffer.concat([head, size, rest, ...locations, padded, ...data])];
}

/** A frame read, a record written, a training. @param {Seed} seed @returns {Buffer[]} */
function dictionaryOf(seed) {
  const { files, codec } = seed;
  if (codec === 'raw') return [];
  const meta = bytesOf(files, 'meta.zr');
  const dict = dictOf(seed);
  const { offset, stored, logical } = readLocation(meta, 0);
  const data = bytesOf(files, 'data_0.zr');
  const frame = data.subarray(Number(offset), Number(offset) + stored);
  const sizes = Buffer.alloc(20, 24);
  return [
    Buffer.concat([Buffer.from([0]), u16(dict.length), u16(logical), dict, frame]),
    Buffer.concat([Buffer.from([1]), u16(dict.length), dict, frame]),
    Buffer.concat([Buffer.from([2]), u16(1024), Buffer.from([20]), sizes, data]),
  ];
}
