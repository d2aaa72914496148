// @ts-check
// What is too large to be part of every run: records of exactly 2 GiB, the most that the format
// holds, in both directions with Python loaderx 2.4.6, and one byte more, which both refuse.
//
//     npm run soak
//
// It takes 8 GiB of disk and 14 GiB of memory. The last line is `N passed, N failed`.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Group, table } from '../test/interop/ledger.mjs';
import { PythonError, PythonWorker } from '../test/interop/worker.mjs';
import { builtPackage, environmentOf, generations } from './interop.mjs';
import { Failure } from './script.mjs';
import { countingEntry, sum } from './tally.mjs';

/** @typedef {import('../test/interop/ours.mjs').Loaderx} Loaderx */

const recordBytesMax = 2 ** 31;
/** A ragged record's one dimension is part of it. */
const dimensionBytes = 8;
const gibibyte = 2 ** 30;
const diskBytesMin = 8 * gibibyte;
const memoryBytesMin = 14 * gibibyte;
const blockBytes = 64 * 2 ** 20;

/**
 * @typedef {object} Scene
 * @property {Loaderx} loaderx
 * @property {PythonWorker} python
 * @property {string} folder
 * @property {Uint8Array<ArrayBuffer>} content 2 GiB and one byte
 * @property {string} items the file that `content` is in
 */

/** @typedef {'dense' | 'ragged'} Kind */

/** Noise, so that a frame is larger than its record. @param {string} file */
function makeContent(file) {
  const content = new Uint8Array(recordBytesMax + 1);
  const noise = randomBytes(blockBytes);
  const descriptor = fs.openSync(file, 'w');
  try {
    for (let from = 0; from < content.length; from += blockBytes) {
      noise.writeDoubleLE(from, 0);
      const block = noise.subarray(0, Math.min(blockBytes, content.length - from));
      content.set(block, from);
      for (let done = 0; done < block.length; ) done += fs.writeSync(descriptor, block, done);
    }
  } finally {
    fs.closeSync(descriptor);
  }
  return content;
}

/** @param {Uint8Array} bytes */
function sha256(bytes) {
  const hash = createHash('sha256');
  for (let from = 0; from < bytes.length; from += blockBytes) {
    hash.update(bytes.subarray(from, from + blockBytes));
  }
  return hash.digest('hex');
}

/** The first bytes of the content, which fill a record to the limit. @param {Scene} scene @param {Kind} kind */
function largest({ content }, kind) {
  const bytes = kind === 'dense' ? recordBytesMax : recordBytesMax - dimensionBytes;
  return content.subarray(0, bytes);
}

/** @param {Scene} scene @param {Kind} kind @param {'raw' | 'zstd'} codec @param {string} target */
async function weWrite(scene, kind, codec, target) {
  const { loaderx } = scene;
  const data = largest(scene, kind);
  if (kind === 'dense') {
    const options = { codec, dataShards: 1, itemShape: [data.length] };
    const writer = loaderx.Dense.create(target, { dtype: 'uint8', ...options });
    writer.appendSync({ dtype: 'uint8', shape: [1, data.length], data });
    await writer.close();
  } else {
    const writer = loaderx.Ragged.create(target, { dtype: 'uint8', ndim: 1, codec, dataShards: 1 });
    await writer.append([{ dtype: 'uint8', shape: [data.length], data }]);
    await writer.close();
  }
}

/** @param {Scene} scene @param {Kind} kind @param {string} target */
async function checkOurReading({ loaderx, ...scene }, kind, target) {
  const wanted = sha256(largest({ loaderx, ...scene }, kind));
  const reader = kind === 'dense' ? loaderx.Dense.open(target) : loaderx.Ragged.open(target);
  try {
    const batch = await reader.gather([0]);
    const bytes = 'values' in batch ? batch.values : batch.data;
    if (!(bytes instanceof Uint8Array)) throw new Error('uint8 is read as a Uint8Array');
    assert.equal(sha256(bytes), wanted, 'SHA-256 of the record');
    batch[Symbol.dispose]();
  } finally {
    await reader.close();
  }
}

/** @param {Scene} scene @param {Kind} kind @param {string} target */
async function checkTheirReading(scene, kind, target) {
  const data = largest(scene, kind);
  const read = await scene.python.call('hash_one', { path: target, kind });
  assert.deepEqual(read, { bytes: data.length, sha256: sha256(data) });
}

/** @param {Scene} scene @param {Kind} kind */
async function checkOurRefusal({ loaderx, content, folder }, kind) {
  const target = path.join(folder, 'refused by us');
  const data =
    kind === 'dense' ? content : content.subarray(0, recordBytesMax - dimensionBytes + 1);
  if (kind === 'dense') {
    const options = /** @type {const} */ ({ dtype: 'uint8', codec: 'raw', dataShards: 1 });
    assert.throws(() => loaderx.Dense.create(target, { ...options, itemShape: [data.length] }), {
      code: 'TOO_LARGE',
    });
    return;
  }
  const writer = loaderx.Ragged.create(target, { dtype: 'uint8', ndim: 1, codec: 'raw' });
  const record = /** @type {const} */ ({ dtype: 'uint8', shape: [data.length], data });
  assert.throws(() => writer.appendSync([record]), { code: 'TOO_LARGE' });
  await assert.rejects(writer.append([record]), { code: 'TOO_LARGE' });
  assert.equal(writer.length, 0);
  writer.abort();
}

/** @param {Scene} scene @param {Kind} kind */
async function checkTheirRefusal({ python, items, folder }, kind) {
  const target = path.join(folder, `refused by Python, ${kind}`);
  const length = kind === 'dense' ? recordBytesMax + 1 : recordBytesMax - dimensionBytes + 1;
  const request = { path: target, kind, codec: 'raw', items, length };
  await assert.rejects(python.call('write_one', request), (error) => {
    return error instanceof PythonError && error.type === 'ValueError';
  });
}

/** @param {Scene} scene @returns {Promise<Group[]>} */
async function exchangeLargest(scene) {
  const reading = new Group('2 GiB: Python writes, we read');
  const writing = new Group('2 GiB: we write, Python reads');
  const refusing = new Group('2 GiB and one byte: refused');
  for (const kind of /** @type {const} */ (['dense', 'ragged'])) {
    for (const codec of /** @type {const} */ (['raw', 'zstd'])) {
      const target = path.join(scene.folder, `${kind} ${codec}`);
      await reading.check(`${kind} ${codec}`, async () => {
        const { length } = largest(scene, kind);
        const request = { path: target, kind, codec, items: scene.items, length };
        const storedBytes = await scene.python.call('write_one', request);
        process.stdout.write(`${kind} ${codec}: ${storedBytes} bytes stored by Python\n`);
        await checkOurReading(scene, kind, target);
      });
      fs.rmSync(target, { recursive: true, force: true });
      await writing.check(`${kind} ${codec}`, async () => {
        await weWrite(scene, kind, codec, target);
        await checkTheirReading(scene, kind, target);
      });
      fs.rmSync(target, { recursive: true, force: true });
    }
    await refusing.check(`${kind}, by us`, () => checkOurRefusal(scene, kind));
    await refusing.check(`${kind}, by Python`, () => checkTheirRefusal(scene, kind));
  }
  return [reading, writing, refusing];
}

/** @param {string} folder */
function assertRoom(folder) {
  const { bavail, bsize } = fs.statfsSync(folder);
  if (bavail * bsize < diskBytesMin) {
    throw new Failure(
      `${folder} has ${Math.floor((bavail * bsize) / gibibyte)} GiB free, and 8 GiB are needed`,
      'Name a folder with more room in TMPDIR.',
    );
  }
  if (os.totalmem() < memoryBytesMin) {
    throw new Failure('the machine has less than 14 GiB of memory, which 2 GiB records take');
  }
}

/** @param {string[]} args */
async function soak(args) {
  if (args.length > 0) throw new Failure(`npm run soak does not know ${args.join(' ')}`);
  const generation = generations['2.4'];
  const environment = environmentOf(generation);
  if (environment === null) throw new Failure('there is no Python 3.10 or later');
  const loaderx = await builtPackage();
  assertRoom(os.tmpdir());
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-soak-'));
  const python = new PythonWorker(environment, generation.module);
  try {
    const items = path.join(folder, 'items');
    const content = makeContent(items);
    const groups = await exchangeLargest({ loaderx, python, folder, content, items });
    process.stdout.write(`\n${table(groups)}\n`);
    return sum(groups.map((group) => group.tally));
  } finally {
    await python.kill();
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

await countingEntry(import.meta, soak);
