// @ts-check
// Proves one addon file on the platform it was built for, without the facade:
//
//     node smoke.mjs ADDON.node SCRATCH-FOLDER
//
// It reads containers of the Python package (smoke-golden.json, bytes as text), writes one container
// per codec and reads it back, loads the addon in workers of which one is ended amid its gathers, and
// leaves with gathers in flight. The last line is `smoke: N checks passed`; anything else, and an exit
// code other than 0, is a failure. Plain JavaScript without packages: it also runs in Nodes under
// qemu and wine.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { isMainThread, Worker, workerData } from 'node:worker_threads';

/** @typedef {import('../../ts/native/binding.js').Native} Native */

const require = createRequire(import.meta.url);

/** @param {string} file @returns {Native} */
const load = (file) => require(path.resolve(file));

if (isMainThread) {
  const [addonFile, scratch] = process.argv.slice(2);
  if (addonFile === undefined || scratch === undefined) {
    throw new Error('usage: node smoke.mjs ADDON.node SCRATCH-FOLDER');
  }
  try {
    let count = 0;
    await prove(load(addonFile), addonFile, path.resolve(scratch), (name) => {
      count += 1;
      console.log(`ok ${name}`);
    });
    console.log(`smoke: ${count} checks passed`);
    // Nothing after this may fail: the process ends while lanes read, with this very exit code.
    startGathers(load(addonFile), path.resolve(scratch, 'written-zstd'));
    process.exit(0);
  } catch (error) {
    console.log(`FAILED: ${error instanceof Error ? error.stack : error}`);
    process.exitCode = 1;
  }
} else {
  const { addonFile, container, ids, recordBytes } = workerData;
  const native = load(addonFile);
  const { parentPort } = await import('node:worker_threads');
  if (ids === undefined) {
    startGathers(native, container);
    parentPort?.postMessage('reading');
    await new Promise(() => setInterval(() => {}, 1000));
  }
  const store = native.storeOpen(container);
  const target = new Uint8Array(ids.length * recordBytes);
  await native.gatherFixed(store, ids, recordBytes, target, undefined, false);
  native.closeSync(store);
  parentPort?.postMessage(target);
}

/**
 * Starts more gathers than lanes can have done by the next line.
 *
 * @param {Native} native
 * @param {string} container 64 records of 300 bytes
 */
function startGathers(native, container) {
  const [recordBytes, idCount] = [300, 20_000];
  const store = native.storeOpen(container);
  const ids = BigUint64Array.from({ length: idCount }, (_, index) => BigInt(index % 64));
  const gathers = Array.from({ length: 40 }, () =>
    native.gatherFixed(
      store,
      ids,
      recordBytes,
      new Uint8Array(idCount * recordBytes),
      undefined,
      false,
    ),
  );
  return { store, gathers };
}

/**
 * @param {Native} native
 * @param {string} addonFile
 * @param {string} scratch
 * @param {(name: string) => void} passed
 */
async function prove(native, addonFile, scratch, passed) {
  const header = new URL('../../zig-src/capi/zrecord.h', import.meta.url);
  const [, version] = /ZR_ABI_VERSION (\d+)u/.exec(fs.readFileSync(header, 'utf8')) ?? [];
  assert.equal(native.abiVersion(), Number(version));
  passed('the ABI version');
  assert.ok(native.laneCount() >= 1);
  passed('lanes');

  const golden = JSON.parse(
    fs.readFileSync(new URL('./smoke-golden.json', import.meta.url), 'utf8'),
  );
  for (const container of golden.containers) {
    await readGolden(native, container, path.join(scratch, container.name));
    passed(`golden ${container.name}`);
  }

  const recordBytes = 300;
  const records = someRecords(64, recordBytes);
  const dict = await train(native);
  passed('a trained dictionary');
  for (const [codec, name] of ['raw', 'zstd', 'zstd_dict'].entries()) {
    const container = path.join(scratch, `written-${name}`);
    await writeAndRead(
      native,
      container,
      codec,
      codec === 2 ? dict : undefined,
      records,
      recordBytes,
    );
    passed(`written and read: ${name}`);
  }

  assert.throws(() => native.storeOpen(path.join(scratch, 'nothing-here')), { status: -3 });
  passed('an absent container is NOT_FOUND');

  const container = path.join(scratch, 'written-zstd');
  const ids = BigUint64Array.from([63n, 0n, 31n]);
  const worker = new Worker(new URL(import.meta.url), {
    workerData: { addonFile, container, ids, recordBytes },
  });
  const seen = await new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
  assert.deepEqual(seen, picked(records, ids, recordBytes));
  await worker.terminate();
  passed('a worker that read and ended');

  const reader = new Worker(new URL(import.meta.url), { workerData: { addonFile, container } });
  await new Promise((resolve, reject) => {
    reader.once('message', resolve).once('error', reject);
  });
  assert.equal(await reader.terminate(), 1);
  passed('a worker that was ended amid its gathers');

  const sampler = native.samplerCreate(10n, 4n, 7n, 0, 24);
  const drawn = new BigUint64Array(native.samplerBatch(sampler));
  native.samplerDraw(sampler, drawn);
  assert.deepEqual(drawn, BigUint64Array.from([0n, 1n, 2n, 3n]));
  native.samplerClose(sampler);
  passed('a sampler');
}

/**
 * @param {Native} native
 * @param {any} golden one container of smoke-golden.json
 * @param {string} folder where to put it
 */
async function readGolden(native, golden, folder) {
  fs.mkdirSync(folder, { recursive: true });
  for (const [name, { bytes, parts }] of Object.entries(golden.files)) {
    const content = Buffer.alloc(bytes);
    for (const { at, hex } of parts) content.write(hex, at, 'hex');
    fs.writeFileSync(path.join(folder, name), content);
  }

  const store = native.storeOpen(folder);
  const info = native.storeInfo(store);
  assert.equal(info.recordCount, BigInt(golden.length));
  assert.equal(info.codec, golden.codec);
  assert.equal(info.dataShards, golden.dataShards);
  const ids = BigUint64Array.from({ length: golden.length }, (_, id) => BigInt(id));
  for (const items of await readBothWays(native, store, ids, golden)) {
    assert.equal(createHash('sha256').update(items).digest('hex'), golden.sha256);
  }
  native.closeSync(store);
}

/**
 * The items of all records, once by the synchronous and once by the asynchronous function.
 *
 * @param {Native} native
 * @param {import('../../ts/native/binding.js').StoreHandle} store
 * @param {BigUint64Array} ids
 * @param {any} golden
 */
async function readBothWays(native, store, ids, { ragged, recordBytes }) {
  if (ragged === undefined) {
    const now = new Uint8Array(ids.length * recordBytes);
    const later = new Uint8Array(ids.length * recordBytes);
    native.gatherFixedSync(store, ids, recordBytes, now);
    await native.gatherFixed(store, ids, recordBytes, later, undefined, false);
    return [now, later];
  }
  const bytesMax = 2 ** 20;
  return [
    native.gatherRaggedSync(store, ids, ragged, bytesMax, undefined),
    await native.gatherRagged(store, ids, ragged, bytesMax, undefined, undefined, false),
  ].map(({ buffer, payloadBytes }) => new Uint8Array(buffer, 0, payloadBytes));
}

/**
 * @param {Native} native
 * @param {string} container
 * @param {number} codec
 * @param {Uint8Array | undefined} dict
 * @param {Uint8Array} records
 * @param {number} recordBytes
 */
async function writeAndRead(native, container, codec, dict, records, recordBytes) {
  const count = records.length / recordBytes;
  const half = (count / 2) * recordBytes;
  const schema = new TextEncoder().encode('opaque here');
  const build = native.storeCreate(container, codec, 3, schema, dict);
  native.appendSync(build, records.subarray(0, half), undefined, count / 2, recordBytes);
  await native.append(build, records.slice(half), undefined, count / 2, recordBytes);
  assert.equal(fs.existsSync(container), false, 'nothing is there before publication');
  await native.publish(build, true, undefined);
  native.closeSync(build);

  const store = native.storeOpen(container);
  assert.deepEqual(Buffer.from(native.storeInfo(store).schema), Buffer.from(schema));
  const ids = BigUint64Array.from({ length: count }, (_, id) => BigInt(count - 1 - id));
  const target = new Uint8Array(records.length);
  await native.gatherFixed(store, ids, recordBytes, target, undefined, false);
  assert.deepEqual(target, picked(records, ids, recordBytes));
  native.closeSync(store);
}

/** @param {Native} native */
async function train(native) {
  const sampleBytes = 400;
  const samples = someRecords(500, sampleBytes);
  const lengths = new BigUint64Array(500).fill(BigInt(sampleBytes));
  const dict = await native.trainDict(samples, lengths, 4096);
  assert.equal(Buffer.from(dict.subarray(0, 4)).toString('hex'), '37a430ec', 'magic of zstd');
  return dict;
}

/** Repetitive text with a little noise, the same every time. @param {number} count @param {number} bytes */
function someRecords(count, bytes) {
  const words = ['amber', 'birch', 'cedar', 'delta', 'ember', 'fjord', 'grove', 'heath'];
  let state = 12345;
  const records = Buffer.alloc(count * bytes);
  for (let at = 0; at < records.length; ) {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    at += records.write(`${words[(state >>> 16) & 7]}=${(state >>> 20) & 63};`, at);
  }
  return new Uint8Array(records);
}

/** @param {Uint8Array} records @param {BigUint64Array} ids @param {number} recordBytes */
function picked(records, ids, recordBytes) {
  const target = new Uint8Array(ids.length * recordBytes);
  ids.forEach((id, index) => {
    const at = Number(id) * recordBytes;
    target.set(records.subarray(at, at + recordBytes), index * recordBytes);
  });
  return target;
}
