// @ts-check
// Threads and endings, in a process of their own (workers.test.ts, teardown.test.ts):
//
//     node lifetimes.mjs COMMAND CONTAINER ARGUMENT…
//
// CONTAINER is a folder of three, one of each codec, of the same 2,000 records of 256 uint32
// (support/package.mjs tells their items).
// Workers run this very file.
import { writeSync } from 'node:fs';
import { pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const items = 256;
const recordCount = 2000;
const codecs = /** @type {const} */ (['raw', 'zstd', 'zstd_dict']);

/** @typedef {typeof import('./package.mjs')} Package */

/** Loaded by a command that wants it, so that a process can do without. @returns {Promise<Package>} */
const usePackage = () => import('./package.mjs');

/** @param {unknown} line */
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** @param {number} count @param {number} salt */
function someIds(count, salt) {
  return Uint32Array.from({ length: count }, (_, index) => {
    return (Math.imul(index + 1, 2654435761) ^ Math.imul(salt + 1, 40503)) >>> 0;
  }).map((id) => id % recordCount);
}

/**
 * Gathers `rounds` batches of `size`, awaited and not in turn, and checks every item.
 *
 * @param {string} at
 * @param {number} rounds
 * @param {number} size
 * @param {number} salt
 */
async function mismatches(at, rounds, size, salt) {
  const { loaderx, holds } = await usePackage();
  const readers = codecs.map((codec) => loaderx.Dense.open(`${at}/${codec}`, { dtype: 'uint32' }));
  const out = loaderx.ndarray('uint32', [size, items], new Uint32Array(size * items));
  let wrong = 0;
  for (let round = 0; round < rounds; round += 1) {
    const ids = someIds(size, salt * 1_000_003 + round);
    const reader = readers[round % readers.length];
    if (reader === undefined) throw new Error('there is no reader');
    const options = round % 5 === 0 ? {} : { out };
    const batch =
      round % 2 === 0 ? await reader.gather(ids, options) : reader.gatherSync(ids, options);
    if (!holds(batch.data, ids, items)) wrong += 1;
  }
  for (const reader of readers) await reader.close();
  return wrong;
}

/**
 * Starts work that takes a while and returns at once.
 *
 * @param {string} at
 */
async function startWork(at) {
  const { loaderx } = await usePackage();
  const reader = loaderx.Dense.open(`${at}/zstd`, { dtype: 'uint32' });
  const ids = someIds(1024, 7); // 1 MiB
  const running = Array.from({ length: 8 }, () => reader.gather(ids));
  const sampler = new loaderx.Sampler({ length: 2 ** 40, batchSize: 1000, mode: 'iid' });
  running.push(/** @type {never} */ (sampler.seekAsync(200)));
  for (const promise of running) promise.catch(() => {});
  return { reader, running };
}

/** How a worker ends: what its parent sees. @typedef {{code: number, error?: string}} WorkerEnd */

/**
 * @param {Record<string, unknown>} data
 * @param {(worker: Worker) => void} [act]
 * @returns {Promise<WorkerEnd & {messages: unknown[]}>}
 */
function runWorker(data, act) {
  return new Promise((resolve) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: data, execArgv: [] });
    /** @type {unknown[]} */
    const messages = [];
    /** @type {string | undefined} */
    let error;
    worker.on('message', (message) => messages.push(message));
    worker.on('error', (failure) => {
      error = String(failure);
    });
    worker.on('exit', (code) =>
      resolve({ code, messages, ...(error === undefined ? {} : { error }) }),
    );
    act?.(worker);
  });
}

/** What a worker does. @type {Record<string, (data: any) => unknown>} */
const roles = {
  /** @param {{at: string, rounds: number, size: number, salt: number}} data */
  async gather({ at, rounds, size, salt }) {
    parentPort?.postMessage(await mismatches(at, rounds, size, salt));
  },
  /** Starts work, says so, and ends as it is told. @param {{at: string, how: string}} data */
  async leave({ at, how }) {
    await startWork(at);
    parentPort?.postMessage('started');
    if (how === 'process.exit') process.exit(7);
    if (how === 'uncaught') throw new Error('of the worker');
    if (how === 'terminate') await sleep(60_000);
  },
  /** Gathers in an exit handler. @param {{at: string}} data */
  async exitHandler({ at }) {
    const { loaderx, holds } = await usePackage();
    const reader = loaderx.Dense.open(`${at}/zstd`, { dtype: 'uint32' });
    const ids = someIds(50, 1);
    process.on('exit', () => {
      const isRight = holds(reader.gatherSync(ids).data, ids, items);
      parentPort?.postMessage(isRight);
    });
    await startWork(at);
  },
};

/** What the process does. @type {Record<string, (at: string, ...args: string[]) => unknown>} */
const commands = {
  /** Makes the containers. */
  async make(at) {
    const { loaderx, batchOf, recordOf } = await usePackage();
    const dictBytes = await loaderx.trainDict(
      Array.from({ length: 200 }, (_, id) => new Uint8Array(recordOf(id, items).buffer)),
    );
    for (const codec of codecs) {
      const writer = loaderx.Dense.create(`${at}/${codec}`, {
        ...(codec === 'zstd_dict' ? { codec, dictBytes } : { codec }),
        dtype: 'uint32',
        itemShape: [items],
      });
      await writer.append(batchOf(0, recordCount, items));
      await writer.close();
    }
  },

  /** Main and `count` workers at once. `main` is `yes` when the main thread uses the package too. */
  async together(at, count, rounds, main) {
    const size = 256;
    const running = Array.from({ length: Number(count) }, (_, salt) =>
      runWorker({ role: 'gather', at, rounds: Number(rounds), size, salt }),
    );
    const wrongInMain = main === 'yes' ? await mismatches(at, Number(rounds), size, 999) : 0;
    const ends = await Promise.all(running);
    say({
      codes: [...new Set(ends.map(({ code }) => code))],
      wrong: ends.reduce((sum, { messages }) => sum + Number(messages[0]), wrongInMain),
    });
  },

  /** Workers one after the other, never the main thread. */
  async inARow(at, count) {
    let wrong = 0;
    for (let salt = 0; salt < Number(count); salt += 1) {
      const { code, messages } = await runWorker({ role: 'gather', at, rounds: 3, size: 8, salt });
      if (code !== 0 || messages[0] !== 0) wrong += 1;
    }
    say({ wrong });
  },

  /** Workers that end with work in flight, `width` at a time. */
  async leaving(at, how, count, width) {
    /** @type {Record<string, number>} */
    const ends = {};
    let slowestMs = 0;
    let next = 0;
    const lane = async () => {
      while (next < Number(count)) {
        const number = next;
        next += 1;
        let startMs = performance.now();
        const { code, error } = await runWorker({ role: 'leave', at, how }, (worker) => {
          worker.on('message', () => {
            startMs = performance.now();
            if (how !== 'terminate') return;
            setTimeout(() => worker.terminate(), number % 21);
          });
        });
        slowestMs = Math.max(slowestMs, performance.now() - startMs);
        const end = error === undefined ? String(code) : `${code} ${error}`;
        ends[end] = (ends[end] ?? 0) + 1;
      }
    };
    await Promise.all(Array.from({ length: Number(width) }, lane));
    const alive = await mismatches(at, 4, 256, 5);
    say({ ends, slowestMs, wrong: alive });
  },

  /** Workers whose exit handlers gather. */
  async workerExitHandlers(at, count) {
    let right = 0;
    for (let number = 0; number < Number(count); number += 1) {
      const { code, messages } = await runWorker({ role: 'exitHandler', at });
      if (code === 0 && messages[0] === true) right += 1;
    }
    say({ right });
  },

  /** The process ends with work in flight, in its main thread and in a worker. */
  async leave(at, how, withWorker) {
    if (withWorker === 'worker') {
      await new Promise((resolve) => {
        void runWorker({ role: 'leave', at, how: 'terminate' }, (worker) => {
          worker.on('message', (message) => {
            worker.unref();
            resolve(message);
          });
        });
      });
    }
    const { reader } = await startWork(at);
    process.on('exit', () => reader.length);
    say('started');
    await sleep(Number(process.pid % 5));
    if (how === 'process.exit') process.exit(7);
    if (how === 'uncaught') throw new Error('of the program');
    if (how === 'exit in a callback') {
      void reader.gather(someIds(10, 1)).then(() => process.exit(7));
    }
    // Otherwise the end of the program: running work is waited for.
  },

  /** Gathers in an exit handler, with work in flight. */
  async exitHandler(at, how) {
    const { loaderx, holds } = await usePackage();
    const reader = loaderx.Dense.open(`${at}/zstd`, { dtype: 'uint32' });
    await startWork(at);
    process.on('exit', () => {
      const ids = someIds(500, 3);
      say({ right: holds(reader.gatherSync(ids).data, ids, items) });
      reader.gather(ids).catch(() => {});
    });
    say('started');
    if (how === 'process.exit') process.exit(0);
    if (how === 'uncaught') throw new Error('of the program');
  },

  /** Two copies of the package: `other` is the folder of the second one. */
  async twoCopies(at, other) {
    const { loaderx, holds } = await usePackage();
    /** @type {typeof loaderx} */
    const second = await import(pathToFileURL(`${other}/dist/index.js`).href);
    if (second.Dense === loaderx.Dense) throw new Error('it is the same copy');
    const ids = someIds(256, 4);
    let wrong = 0;
    for (let round = 0; round < 50; round += 1) {
      const readers = [loaderx, second].map(({ Dense }) =>
        Dense.open(`${at}/zstd`, { dtype: 'uint32' }),
      );
      const batches = await Promise.all(readers.map((reader) => reader.gather(ids)));
      wrong += batches.filter(({ data }) => !holds(data, ids, items)).length;
      for (const reader of readers) reader.closeSync();
    }
    const worker = await runWorker({ role: 'gather', at, rounds: 5, size: 64, salt: 1 });
    say({ wrong, worker: worker.messages[0] });
  },
};

if (isMainThread) {
  const [command = '', at = '', ...args] = process.argv.slice(2);
  const run = commands[command];
  if (run === undefined) throw new Error(`there is no command ${command}`);
  await run(at, ...args);
} else {
  await roles[workerData.role]?.(workerData);
}
