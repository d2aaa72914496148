// @ts-check
// The Node side of the bench's protocol: one JSON object per line on stdin, one answer per line on
// stdout, in order. README.md describes it. A backend module says how it writes and gathers; what is
// measured, and how, is the same for all of them and is here.
import fs from 'node:fs';
import { createInterface } from 'node:readline';
import { Workload } from '../workload.mjs';

/** @typedef {import('../workload.mjs').Items} Items */

/**
 * @typedef {object} Job
 * @property {Workload} workload
 * @property {string} target the folder that the backend has for itself
 * @property {string} variant the codec, mostly
 * @property {string} mode
 */

/** @typedef {Uint32Array | BigUint64Array} BatchIds */

/**
 * One way of gathering.
 *
 * @typedef {object} Mode
 * @property {(ids: any) => any} gather takes `Uint32Array`, or what `ids` says; the timed call
 * @property {boolean} [isAsync] `gather` gives a promise
 * @property {'u64'} [ids] ids are a `BigUint64Array`, as a sampler draws them
 * @property {(batch: any) => void} [release] gives the batch back; not timed
 * @property {(batch: any) => Items | {shape: readonly number[], data: Items}[]} expose the gathered
 *   items, for the comparison with the source
 */

/**
 * @typedef {object} Opened
 * @property {Record<string, Mode>} modes
 * @property {() => unknown} close
 */

/**
 * @typedef {object} Backend
 * @property {() => Record<string, string> | Promise<Record<string, string>>} about versions; throws
 *   when a package is not there
 * @property {(job: Job) => Promise<() => unknown>} [prepareWrite] makes the source ready and gives
 *   the function whose time is the write: from the first record handed over to the logical finish
 * @property {(job: Job) => Promise<Opened>} [open]
 * @property {(job: Job & {seconds: number}) => unknown} [measure] in place of `open`: gathers and
 *   times by itself
 * @property {() => unknown} [finish] after the write, not timed
 */

/** @param {Backend} backend */
export function serve(backend) {
  /** @type {{job: Job, opened: Opened} | undefined} */
  let reading;

  /** @type {Record<string, (request: any) => Promise<unknown>>} */
  const operations = {
    about: async () => ({ node: process.version, ...(await backend.about()) }),
    write: async (request) => {
      const built = { seconds: await write(backend, jobOf(request)), builds: 1 };
      if (request.seconds === undefined) return built;
      // Timed as gathers are: what came first has warmed code and memory, if it took long enough for that.
      if (built.seconds < request.seconds * warmShare) {
        await writes(backend, request, request.seconds * warmShare - built.seconds);
      }
      return writes(backend, request, request.seconds);
    },
    open: async (request) => {
      const job = jobOf(request);
      if (backend.measure !== undefined) return { records: job.workload.records };
      const opened = await backend.open?.(job);
      if (opened === undefined) throw new Error('this backend does not read');
      reading = { job, opened };
      return { records: job.workload.records };
    },
    verify: async ({ mode, secondsMax }) => {
      if (backend.measure !== undefined) return { records: 0, isWhole: false };
      if (reading === undefined) throw new Error('nothing is open');
      return verify(reading.job.workload, modeOf(reading.opened, mode), secondsMax);
    },
    gather: async (request) => {
      if (backend.measure !== undefined) {
        return backend.measure({ ...jobOf(request), seconds: request.seconds });
      }
      if (reading === undefined) throw new Error('nothing is open');
      const { mode, seconds, from } = request;
      return time(reading.job.workload, modeOf(reading.opened, mode), seconds, from ?? 0);
    },
    close: async () => {
      await reading?.opened.close();
      reading = undefined;
      return {};
    },
  };
  listen(operations);
}

/**
 * Answers requests until stdin ends. Used by backends and probes alike.
 *
 * @param {Record<string, (request: any) => unknown>} operations
 */
export function listen(operations) {
  let last = Promise.resolve();
  createInterface({ input: process.stdin }).on('line', (line) => {
    last = last.then(async () => {
      /** @type {unknown} */
      let answer;
      try {
        const request = JSON.parse(line);
        const operation = operations[request.op];
        if (operation === undefined) throw new Error(`there is no operation ${request.op}`);
        answer = { result: (await operation(request)) ?? null };
      } catch (error) {
        answer = { error: error instanceof Error ? (error.stack ?? error.message) : String(error) };
      }
      process.stdout.write(`${JSON.stringify(answer)}\n`);
    });
  });
}

/** Seconds of one build. @param {Backend} backend @param {Job} job */
async function write(backend, job) {
  const timed = await backend.prepareWrite?.(job);
  if (timed === undefined) throw new Error('this backend does not write');
  const start = performance.now();
  await timed();
  const seconds = (performance.now() - start) / 1000;
  await backend.finish?.();
  return seconds;
}

/**
 * Builds that take `secondsMin` together, one after the other, each in place of the one before.
 *
 * @param {Backend} backend
 * @param {{workload: string, target: string, variant: string, mode: string}} request
 * @param {number} secondsMin
 */
async function writes(backend, request, secondsMin) {
  const job = jobOf(request);
  let [seconds, builds] = [0, 0];
  while (seconds < secondsMin || builds === 0) {
    fs.rmSync(job.target, { recursive: true });
    fs.mkdirSync(job.target);
    seconds += await write(backend, job);
    builds += 1;
  }
  return { seconds, builds };
}

/**
 * The workload of the last request, with what it has in memory: a build that is timed would else also pay for the
 * garbage of making its source.
 *
 * @type {{ folder: string, workload: Workload } | undefined}
 */
let latest;

/** @param {{workload: string, target: string, variant: string, mode: string}} request @returns {Job} */
function jobOf({ workload: folder, target, variant, mode }) {
  if (latest?.folder !== folder) latest = { folder, workload: new Workload(folder) };
  return { workload: latest.workload, target, variant, mode };
}

/** @param {Opened} opened @param {string} name */
function modeOf(opened, name) {
  const mode = opened.modes[name];
  if (mode === undefined) throw new Error(`there is no mode ${name}`);
  return mode;
}

/** @param {Mode} mode @param {Uint32Array} ids @returns {BatchIds} */
function idsFor(mode, ids) {
  return mode.ids === 'u64' ? BigUint64Array.from(ids, BigInt) : ids;
}

/**
 * The check plan, then every record once, in order: dtype, shape, order and each byte. It ends early
 * after `secondsMax`, for backends that would take minutes.
 *
 * @param {Workload} workload
 * @param {Mode} mode
 * @param {number} secondsMax
 */
async function verify(workload, mode, secondsMax) {
  const { records, batch } = workload;
  const end = performance.now() + secondsMax * 1000;
  const plan = workload.plan('check');
  for (let from = 0; from < plan.length; from += batch) {
    await check(workload, mode, plan.subarray(from, from + batch));
  }
  let swept = 0;
  while (swept < records && performance.now() < end) {
    const from = swept;
    const length = Math.min(batch, records - from);
    const ids = Uint32Array.from({ length }, (_, index) => from + index);
    await check(workload, mode, ids);
    swept += length;
  }
  return { records: plan.length + swept, isWhole: swept === records };
}

/** @param {Workload} workload @param {Mode} mode @param {Uint32Array} ids */
async function check(workload, mode, ids) {
  const gathered = await mode.gather(idsFor(mode, ids));
  const exposed = mode.expose(gathered);
  const isDense = workload.geometry === 'dense';
  if (isDense !== ArrayBuffer.isView(exposed)) throw new Error('a batch of the wrong geometry');
  if (ArrayBuffer.isView(exposed)) {
    if (exposed.length < ids.length * workload.recordItems) throw new Error('a batch too short');
  } else if (exposed.length !== ids.length) {
    throw new Error(`${exposed.length} records for ${ids.length} ids`);
  }
  ids.forEach((id, index) => {
    const bytes = workload.bytes(id);
    const { data, shape } = ArrayBuffer.isView(exposed)
      ? {
          data: exposed.subarray(index * workload.recordItems, (index + 1) * workload.recordItems),
          shape: workload.itemShape,
        }
      : (exposed[index] ?? { data: new Uint8Array(), shape: [] });
    const got = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    if (data.constructor !== workload.array) throw new Error(`record ${id} has another dtype`);
    if (String(shape) !== String(workload.shapeOf(id))) {
      throw new Error(`record ${id} has shape ${shape}, not ${workload.shapeOf(id)}`);
    }
    if (!bytes.equals(got)) throw new Error(`record ${id}, asked for at ${index}, differs`);
  });
  mode.release?.(gathered);
}

/** A slow backend is timed this often at least. */
const callsMin = 5;
/** Of the wanted seconds; not recorded. */
const warmShare = 0.2;

/**
 * Gathers batch after batch of the plan until the calls alone have taken `seconds`. The batch is
 * released outside of the calls.
 *
 * @param {Workload} workload
 * @param {Mode} mode
 * @param {number} seconds
 * @param {number} from batch of the plan to begin with
 */
async function time(workload, mode, seconds, from) {
  // Converted as a whole before anything is timed: the ids of a batch are a view, as Python's are.
  const plan = idsFor(mode, workload.plan('time'));
  const batches = plan.length / workload.batch;
  const idsOf = (/** @type {number} */ number) => {
    const at = (number % batches) * workload.batch;
    return plan.subarray(at, at + workload.batch);
  };
  const warm = mode.isAsync ? timeAsync : timeSync;
  const { next } = await warm(mode, idsOf, from, seconds * warmShare);
  const { times, next: end } = await warm(mode, idsOf, next, seconds);

  let bytes = 0;
  for (let number = next; number < end; number += 1) {
    for (const id of idsOf(number)) bytes += workload.bytesOf(Number(id));
  }
  return { ...summary(times), records: times.length * workload.batch, bytes };
}

/** @param {Mode} mode @param {(number: number) => BatchIds} idsOf @param {number} from @param {number} seconds */
function timeSync(mode, idsOf, from, seconds) {
  /** @type {number[]} */
  const times = [];
  let total = 0;
  let next = from;
  while (total < seconds * 1000 || times.length < callsMin) {
    const ids = idsOf(next);
    const start = performance.now();
    const gathered = mode.gather(ids);
    const elapsed = performance.now() - start;
    mode.release?.(gathered);
    times.push(elapsed);
    total += elapsed;
    next += 1;
  }
  return { times, next };
}

/** @param {Mode} mode @param {(number: number) => BatchIds} idsOf @param {number} from @param {number} seconds */
async function timeAsync(mode, idsOf, from, seconds) {
  /** @type {number[]} */
  const times = [];
  let total = 0;
  let next = from;
  while (total < seconds * 1000 || times.length < callsMin) {
    const ids = idsOf(next);
    const start = performance.now();
    const gathered = await mode.gather(ids);
    const elapsed = performance.now() - start;
    mode.release?.(gathered);
    times.push(elapsed);
    total += elapsed;
    next += 1;
  }
  return { times, next };
}

/** @param {readonly number[]} times in ms */
export function summary(times) {
  const sorted = Float64Array.from(times).sort();
  const total = sorted.reduce((sum, each) => sum + each, 0);
  const at = (/** @type {number} */ share) => sorted[Math.floor((sorted.length - 1) * share)] ?? 0;
  return {
    calls: times.length,
    seconds: total / 1000,
    minMs: at(0),
    p50Ms: at(0.5),
    p95Ms: at(0.95),
    meanMs: total / times.length,
  };
}
