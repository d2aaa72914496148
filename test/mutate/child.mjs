// @ts-check
// Opens mutants one after the other with the built package, in every way of reading, and says what
// came of each. One process does many; which one it is at is in a file, so that a crash or a hang has
// a number.
//
//     node child.mjs '{"run": "7", "from": 0, "until": 5000, "folder": "...", "progress": "..."}'
//
// A line of the output is a list: [index, base, edits, outcome, complaints]. Lines of the last
// mutants may come late, never out of order.

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { bytesOf, edited, switchFiles, writeFiles } from '../support/files.mjs';
import { loaderx } from '../support/package.mjs';
import { readLocation } from '../support/page.mjs';
import { mutantOf } from './mutator.mjs';
import { makeSeeds } from './seeds.mjs';

/** @typedef {import('../../ts/index.js').DenseReader} DenseReader */
/** @typedef {import('../../ts/index.js').RaggedReader} RaggedReader */
/** @typedef {import('../support/files.mjs').Files} Files */

/** What a container is: a refusal's code, or [kind, dtype, shape, length]. @typedef {string | [string, string, readonly number[] | number, number]} About */
/** And its records: a refusal's code or a hash. @typedef {[about: About, records: string[]]} Outcome */

/** @type {typeof import('../../ts/dtype.js')} */
const { dtypeOf } = await import(new URL('../../dist/dtype.js', import.meta.url).href);
/** @type {typeof import('../../ts/errors.js')} */
const { errorCodes } = await import(new URL('../../dist/errors.js', import.meta.url).href);

const codes = new Set(errorCodes);
/** A mutant may take this long; one takes a fifth of a millisecond. */
const msMax = 1000;
/** Any one allocation of a call may be this much larger than what the call is asked for. */
const beyondBytesMax = 2 ** 20;
/** Address space that a few mutants may add to a warm process beside what their records declare. */
const growthBytesMax = 64 * 2 ** 20;

/** What is wrong whatever the reference says. @type {string[]} */
let complaints = [];
/** What the last mutants declare for a gather of all records, at most. */
let declaredBytes = 0;

/** The largest single allocation, where a library counts it (test/native/allocations.c). */
class Allocations {
  beyondMax = 0;
  #room = Buffer.alloc(8);
  #zero = Buffer.alloc(8);
  /** @type {number | undefined} */
  #file;

  /** @param {string | undefined} file */
  constructor(file) {
    if (file !== undefined) this.#file = fs.openSync(file, 'r+');
  }

  /**
   * Runs `call`, whose results take `declaredBytes`, and complains when it asked for more at once.
   *
   * @template T
   * @param {number} declaredBytes
   * @param {() => T} call
   * @returns {T}
   */
  during(declaredBytes, call) {
    if (this.#file === undefined) return call();
    fs.writeSync(this.#file, this.#zero, 0, 8, 0);
    try {
      return call();
    } finally {
      fs.readSync(this.#file, this.#room, 0, 8, 0);
      const beyond = Number(this.#room.readBigUInt64LE()) - declaredBytes;
      this.beyondMax = Math.max(this.beyondMax, beyond);
      if (beyond > beyondBytesMax) {
        complaints.push(
          `asked for ${beyond} bytes more at once than the ${declaredBytes} declared`,
        );
      }
    }
  }
}

/** The code of a refusal; a complaint about an error that is not of the family. @param {unknown} error @param {string} place @returns {string} */
function codeOf(error, place) {
  if (!(error instanceof loaderx.LoaderxError)) {
    complaints.push(`foreign error: ${error instanceof Error ? error.stack : String(error)}`);
    return 'FOREIGN';
  }
  if (!codes.has(error.code) || error.code === 'UNEXPECTED' || error.path !== place) {
    complaints.push(`odd error: ${JSON.stringify(error)}`);
  }
  return error.code;
}

/** @param {{shape: readonly number[], data: ArrayBufferView}} record */
function hashOf({ shape, data }) {
  const hash = createHash('sha256').update(JSON.stringify(shape));
  hash.update(new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
  return hash.digest('hex').slice(0, 16);
}

/** @param {string} place @param {Files} files @param {number} index @returns {Promise<Outcome>} */
async function outcomeOf(place, files, index) {
  /** @type {DenseReader | RaggedReader} */
  let reader;
  try {
    reader = allocations.during(0, () => loaderx.open(place));
  } catch (error) {
    return [codeOf(error, place), []];
  }
  const { kind, dtype, length } = reader;
  const stored = reader.dialect === '2.8' ? dtype : (dtypeOf(dtype).numpy ?? dtype);
  const shape = reader.kind === 'dense' ? reader.itemShape : reader.ndim;
  const sizes = sizesOf(reader, bytesOf(files, 'meta.zr'));
  declaredBytes = Math.max(declaredBytes, readings * sum(sizes));
  /** @type {string[]} */
  const records = [];
  for (let id = 0; id < length; id += 1) {
    try {
      records.push(hashOf(allocations.during(sizes[id] ?? 0, () => reader.record(id))));
    } catch (error) {
      records.push(codeOf(error, place));
    }
  }
  await gatherAll(reader, records, sizes, index);
  await reader.close();
  return [[kind, stored, shape, length], records];
}

/**
 * All records at once, some of them twice, and then those alone that can be read.
 *
 * @param {DenseReader | RaggedReader} reader
 * @param {readonly string[]} records
 * @param {readonly number[]} sizes
 * @param {number} index
 */
async function gatherAll(reader, records, sizes, index) {
  const all = records.map((_, id) => id);
  const readable = all.filter((id) => (records[id] ?? '').length === 16);
  const lists = readable.length === all.length ? [[...all].reverse().concat(all)] : [all, readable];
  for (const ids of lists) {
    try {
      const declared = sum(ids.map((id) => sizes[id] ?? 0));
      const batch =
        index % 4 === 0
          ? await reader.gather(ids)
          : allocations.during(declared, () => reader.gatherSync(ids));
      checkBatch(batch, ids, records);
      // Into the same memory once more, in another order.
      if (reader.kind === 'ragged' && 'values' in batch) {
        const backwards = [...ids].reverse();
        checkBatch(reader.gatherSync(backwards, { out: batch }), backwards, records);
      }
    } catch (error) {
      const code = codeOf(error, reader.path);
      const { record } = /** @type {{record?: number}} */ (error);
      const isOfBatch = code === 'TOO_LARGE' && record === undefined;
      if (
        !isOfBatch &&
        (record === undefined || records[record] !== code || !ids.includes(record))
      ) {
        complaints.push(`gather: ${code} of record ${record}, alone ${records[record ?? 0]}`);
      }
    }
  }
}

/** @typedef {Awaited<ReturnType<(DenseReader | RaggedReader)['gather']>>} Batch */

/** @param {Batch} batch @param {readonly number[]} ids @param {readonly string[]} records */
function checkBatch(batch, ids, records) {
  const found = hashesOf(batch, ids.length);
  if (ids.every((id, at) => found[at] === records[id])) return;
  complaints.push(`gathered ${found.join()}, alone ${ids.map((id) => records[id]).join()}`);
}

/** @param {Batch} batch @param {number} count */
function hashesOf(batch, count) {
  if ('toArray' in batch) return batch.toArray().map(hashOf);
  const { data } = batch;
  const width = data.byteLength / Math.max(1, count);
  return Array.from({ length: count }, (_, index) =>
    hashOf({
      shape: batch.shape.slice(1),
      data: new Uint8Array(data.buffer, data.byteOffset + index * width, width),
    }),
  );
}

/** Every record is read alone, and then all of them twice, before anything is collected. */
const readings = 4;

/**
 * Bytes of each record by what the container declares: the schema says it of all, or each location of
 * its own.
 *
 * @param {DenseReader | RaggedReader} reader
 * @param {Buffer} meta
 */
function sizesOf(reader, meta) {
  const { itemBytes } = dtypeOf(reader.dtype);
  return Array.from({ length: reader.length }, (_, id) =>
    reader.kind === 'dense'
      ? reader.itemShape.reduce((product, size) => product * size, itemBytes)
      : readLocation(meta, id).logical,
  );
}

/** @param {readonly number[]} numbers */
function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}

/** Highest address space so far, in bytes; 0 where the system does not tell. */
function peakBytes() {
  if (process.platform !== 'linux') return 0;
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  return Number(/VmPeak:\s*(\d+) kB/.exec(status)?.[1] ?? 0) * 1024;
}

/** Tells a mutant that takes long from a machine that was busy. @param {string} place @param {Files} files @param {number} index */
async function watchAgain(place, files, index) {
  const startCpu = process.cpuUsage();
  await outcomeOf(place, files, index);
  const { user, system } = process.cpuUsage(startCpu);
  if (user + system > msMax * 1000) complaints.push(`takes ${(user + system) / 1000} ms`);
}

/** @type {{run: string, from: number, until: number, folder: string, progress: string, watchesGrowth: boolean}} */
const task = JSON.parse(process.argv[2] ?? '{}');
const allocations = new Allocations(process.env.LOADERX_ALLOCATIONS);
const seeds = await makeSeeds(loaderx, path.join(task.folder, 'seeds'));
const places = new Map(
  seeds.map((seed) => {
    const place = path.join(task.folder, seed.name);
    writeFiles(place, seed.files);
    return [seed.name, place];
  }),
);
const progress = fs.openSync(task.progress, 'w');
const at = new Float64Array(1);

/** Lines that were not written yet. */
let lines = '';
let peak = 0;
let growthMax = 0;
for (let index = task.from; index < task.until; index += 1) {
  at[0] = index;
  fs.writeSync(progress, at, 0, 8, 0);
  const { seed, edits } = mutantOf(seeds, task.run, index);
  const place = places.get(seed.name) ?? '';
  const files = edited(seed.files, edits);
  switchFiles(place, seed.files, files);
  complaints = [];
  const startMs = performance.now();
  const outcome = await outcomeOf(place, files, index);
  if (performance.now() - startMs > msMax) await watchAgain(place, files, index);
  switchFiles(place, files, seed.files);
  // The first ones warm up.
  if (index % 16 === 0) {
    const now = peakBytes();
    const growth = index > task.from + 500 ? Math.max(0, now - peak - declaredBytes) : 0;
    declaredBytes = 0;
    growthMax = Math.max(growthMax, growth);
    if (task.watchesGrowth && growth > growthBytesMax) {
      complaints.push(`address space grew by ${growth} bytes within 16 mutants`);
    }
    peak = Math.max(peak, now);
  }
  lines += `${JSON.stringify([index, seed.name, edits, outcome, complaints])}\n`;
  if (lines.length > 1 << 16) {
    const isTaken = process.stdout.write(lines);
    lines = '';
    if (!isTaken) await new Promise((resolve) => process.stdout.once('drain', resolve));
  }
}
process.stdout.write(lines);
const maxRss = process.resourceUsage().maxRSS * 1024;
const { beyondMax } = allocations;
process.stdout.write(`${JSON.stringify({ maxRss, growthMax, beyondMax })}\n`);
