// @ts-check
// Two folders of the same records, byte against byte. Where the original's worker lanes race for the
// place of a chunk, the files of two of its own runs differ; there the records' stored bytes count.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';

/** @typedef {import('./plan.mjs').Plan} Plan */

const pageBytes = 4096;
const locationBytes = 16;
const windowRecords = 32_768;
const chunkBytesMax = 512 * 1024;

/**
 * Whether every append has at most one chunk in each shard and window, so that the original writes
 * the same files every time.
 *
 * @param {Plan} plan
 * @param {number} lanes of the original
 */
export function isDeterministic(plan, lanes) {
  let from = 0;
  for (const { count } of plan.appends) {
    if (!isOneChunkPerShard(plan, from, count, lanes)) return false;
    from += count;
  }
  return true;
}

/** @param {Plan} plan @param {number} from @param {number} count @param {number} lanes */
function isOneChunkPerShard(plan, from, count, lanes) {
  const { shards, codec, kind } = plan.combination;
  const headerBytes = kind === 'ragged' ? plan.ndim * 8 : 0;
  const logicalBytes = (/** @type {number} */ first, /** @type {number} */ last) =>
    (plan.starts[last] ?? 0) - (plan.starts[first] ?? 0) + headerBytes * (last - first);
  const share = Math.ceil(logicalBytes(from, from + count) / Math.min(count, lanes));
  const limit = codec === 'raw' ? chunkBytesMax : Math.min(chunkBytesMax, share);

  for (let first = from; first < from + count; first += windowRecords) {
    const end = Math.min(first + windowRecords, from + count);
    const shardBytes = new Float64Array(shards);
    const shardRecords = new Float64Array(shards);
    for (let id = first; id < end; id += 1) {
      const shard = id % shards;
      shardBytes[shard] = (shardBytes[shard] ?? 0) + logicalBytes(id, id + 1);
      shardRecords[shard] = (shardRecords[shard] ?? 0) + 1;
    }
    for (let shard = 0; shard < shards; shard += 1) {
      // A single record is one chunk whatever its size.
      if ((shardRecords[shard] ?? 0) > 1 && (shardBytes[shard] ?? 0) > limit) return false;
    }
  }
  return true;
}

/**
 * Throws at the first file that differs.
 *
 * @param {string} ours
 * @param {string} theirs
 * @param {Plan} plan
 * @param {boolean} isExact whether all bytes count, or only the page and each record's stored bytes
 */
export function compareFolders(ours, theirs, plan, isExact) {
  const names = fs.readdirSync(theirs).sort();
  // Of ours alone, and nothing that a reader of the format looks at.
  const own = fs.readdirSync(ours).filter((name) => name !== 'integrity.zr');
  assert.deepEqual(own.sort(), names, 'names of the files');
  assert.equal(modeOf(ours), modeOf(theirs), 'mode of the folder');
  for (const name of names) {
    const [our, their] = [path.join(ours, name), path.join(theirs, name)];
    assert.equal(modeOf(our), modeOf(their), `mode of ${name}`);
    assert.equal(fs.statSync(our).size, fs.statSync(their).size, `size of ${name}`);
    if (isExact || name === 'dict.zr')
      sameBytes(fs.readFileSync(our), fs.readFileSync(their), name);
  }
  if (isExact) return;
  const [ourMeta, theirMeta] = [ours, theirs].map((folder) => readFile(folder, 'meta.zr'));
  if (ourMeta === undefined || theirMeta === undefined) throw new Error('unreachable');
  sameBytes(ourMeta.subarray(0, pageBytes), theirMeta.subarray(0, pageBytes), 'page of meta.zr');
  const { shards } = plan.combination;
  for (let shard = 0; shard < shards; shard += 1) {
    const name = `data_${shard}.zr`;
    const [ourData, theirData] = [readFile(ours, name), readFile(theirs, name)];
    for (let id = shard; id < plan.shapes.length; id += shards) {
      const where = `record ${id} as stored in ${name}`;
      sameBytes(stored(ourMeta, ourData, id), stored(theirMeta, theirData, id), where);
    }
  }
}

/** @param {string} folder @param {string} name */
function readFile(folder, name) {
  return fs.readFileSync(path.join(folder, name));
}

/** @param {Buffer} meta @param {Buffer} data @param {number} id */
function stored(meta, data, id) {
  const entry = pageBytes + id * locationBytes;
  const offset = Number(meta.readBigUInt64LE(entry));
  return data.subarray(offset, offset + meta.readUInt32LE(entry + 8));
}

/** @param {Buffer} ours @param {Buffer} theirs @param {string} what */
function sameBytes(ours, theirs, what) {
  if (ours.equals(theirs)) return;
  const length = Math.min(ours.length, theirs.length);
  let at = 0;
  while (at < length && ours[at] === theirs[at]) at += 1;
  assert.fail(
    `${what}: ${ours.length} bytes of ours and ${theirs.length} of Python's differ from byte ${at}:
  ours   ${ours.toString('hex', at, at + 24)}
  Python ${theirs.toString('hex', at, at + 24)}`,
  );
}

/** Permissions; Windows has none. @param {string} file */
function modeOf(file) {
  return process.platform === 'win32' ? 0 : fs.statSync(file).mode & 0o777;
}
