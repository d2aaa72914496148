// @ts-check
// Files that are cut under open readers, and signals of others, in a process of their own
// (sigbus.test.ts):
//
//     node truncation.mjs COMMAND FOLDER ARGUMENT…
//
// FOLDER holds one container for each of `kinds`, made by `make`. Workers run this very file.
import {
  closeSync,
  cpSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeSync,
} from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { batchOf, holds, loaderx, recordOf } from './package.mjs';

/** @typedef {import('../../ts/index.js').DenseReader<'uint32'>} DenseReader */
/** @typedef {import('../../ts/index.js').RaggedReader<'uint32'>} RaggedReader */
/** @typedef {DenseReader | RaggedReader} Reader */
/** @typedef {'dense raw' | 'dense zstd' | 'ragged raw' | 'ragged zstd'} Kind */

// Together over 512 KiB, so that several lanes read them.
const items = 128;
const recordCount = 1200;
const shardCount = 4;
const cutShard = 1;
/** @type {readonly Kind[]} */
const kinds = ['dense raw', 'dense zstd', 'ragged raw', 'ragged zstd'];
const pageBytes = 4096;

const all = Array.from({ length: recordCount }, (_, id) => id);
const intact = all.filter((id) => id % shardCount !== cutShard);

/** A copy that may be cut. @param {string} folder @param {Kind} kind */
function copyOf(folder, kind) {
  const at = path.join(folder, `copy-${process.pid}`);
  cpSync(placeOf(folder, kind), at, { recursive: true });
  return at;
}

/** @param {unknown} line */
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);

/** @param {string} folder @param {Kind} kind */
const placeOf = (folder, kind) => path.join(folder, kind.replace(' ', '-'));

/** @param {string} at @returns {Reader} */
function openAny(at) {
  return /** @type {Reader} */ (loaderx.open(at));
}

/** Whether the gathered batch holds the records `ids`. @param {unknown} batch @param {number[]} ids */
function isRight(batch, ids) {
  const { values, data } = /** @type {{values?: Uint32Array, data?: Uint32Array}} */ (batch);
  return holds(values ?? data ?? [], ids, items);
}

/** What a gather came to. @param {() => unknown} act @param {number[]} ids */
async function endOf(act, ids) {
  try {
    return isRight(await act(), ids) ? 'right' : 'WRONG';
  } catch (error) {
    const { code, file } = /** @type {Record<string, unknown>} */ (error);
    return `${code} ${file}`;
  }
}

/** Where the cut file ends, in bytes. @type {Record<string, Record<string, number>>} */
const cuts = {
  [`data_${cutShard}.zr`]: {
    'to a page boundary': 5 * pageBytes,
    'inside a page': 5 * pageBytes + 1000,
    'by one byte': -1,
    'to zero': 0,
  },
  'meta.zr': {
    'to a page boundary': 2 * pageBytes,
    'inside a page': 2 * pageBytes + 1000,
    'by one byte': -1,
    'to zero': 0,
  },
};

/** @param {string} file @param {number} length from the end where negative */
function cut(file, length) {
  truncateSync(file, length < 0 ? readFileSync(file).length + length : length);
}

/** Puts the bytes back into the same file. @param {string} file @param {Buffer} bytes */
function restore(file, bytes) {
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, bytes, 0, bytes.length, 0);
  closeSync(descriptor);
}

/**
 * Where readers are: here or in workers. One container is open at a time.
 *
 * @typedef {{
 *   open(at: string): Promise<void>,
 *   gather(ids: number[]): Promise<string>,
 *   close(): Promise<void>,
 *   end(): Promise<void>,
 * }} Place
 */

/** @type {Record<string, () => Place>} */
const places = {
  'main thread': () => herePlace((reader, ids) => endOf(() => reader.gatherSync(ids), ids)),
  'asynchronous gather': () => herePlace((reader, ids) => endOf(() => reader.gather(ids), ids)),
  'several at once': () =>
    herePlace(async (reader, ids) => {
      const running = Array.from({ length: 6 }, () => endOf(() => reader.gather(ids), ids));
      return [...new Set(await Promise.all(running))].join(', ');
    }),
  worker: () => workerPlace(1),
  '8 workers': () => workerPlace(8),
};

/** @param {(reader: Reader, ids: number[]) => Promise<string>} gather @returns {Place} */
function herePlace(gather) {
  /** @type {Reader | undefined} */
  let reader;
  return {
    async open(at) {
      reader = openAny(at);
    },
    async gather(ids) {
      return reader === undefined ? 'not open' : gather(reader, ids);
    },
    async close() {
      await reader?.close();
    },
    async end() {},
  };
}

/** @param {number} count @returns {Place} */
function workerPlace(count) {
  const workers = Array.from(
    { length: count },
    () => new Worker(new URL(import.meta.url), { execArgv: [] }),
  );
  for (const worker of workers) {
    worker.on('error', (error) => {
      throw error;
    });
  }
  /** @param {unknown} message @returns {Promise<string>} what all workers answer */
  const ask = async (message) => {
    const answers = workers.map(
      (worker) =>
        /** @type {Promise<string>} */ (
          new Promise((resolve) => {
            worker.once('message', resolve);
            worker.postMessage(message);
          })
        ),
    );
    return [...new Set(await Promise.all(answers))].join(', ');
  };
  return {
    async open(at) {
      await ask({ at });
    },
    gather: (ids) => ask({ ids }),
    async close() {
      await ask({});
    },
    async end() {
      await Promise.all(workers.map((worker) => worker.terminate()));
    },
  };
}

/** @type {Record<string, (folder: string, ...args: string[]) => unknown>} */
const commands = {
  async make(folder) {
    for (const kind of kinds) {
      const codec = kind.endsWith('zstd') ? 'zstd' : 'raw';
      const at = placeOf(folder, kind);
      const options = /** @type {const} */ ({ codec, dtype: 'uint32', dataShards: shardCount });
      if (kind.startsWith('dense')) {
        const writer = loaderx.Dense.create(at, { ...options, itemShape: [items] });
        await writer.append(batchOf(0, recordCount, items));
        await writer.close();
      } else {
        const writer = loaderx.Ragged.create(at, { ...options, ndim: 1 });
        await writer.append(
          all.map((id) => loaderx.ndarray('uint32', [items], recordOf(id, items))),
        );
        await writer.close();
      }
    }
  },

  /** Every cut of every file, read from a place. */
  async cut(folder, where) {
    const place = places[where]?.();
    if (place === undefined) throw new Error(`there is no place ${where}`);
    for (const kind of kinds) {
      for (const [name, lengths] of Object.entries(cuts)) {
        for (const [what, length] of Object.entries(lengths)) {
          const at = copyOf(folder, kind);
          const file = path.join(at, name);
          const bytes = readFileSync(file);
          await place.open(at);
          const ends = [await place.gather(all)];
          cut(file, length);
          ends.push(await place.gather(all), await place.gather(all));
          ends.push(await place.gather(name === 'meta.zr' ? [0, 5] : intact));
          restore(file, bytes);
          ends.push(await place.gather(all));
          await place.close();
          rmSync(at, { recursive: true });
          say({ kind, name, what, ends });
        }
      }
    }
    await place.end();
    say('alive');
  },

  /** Files are cut while gathers run: each is right or names the file. */
  async race(folder, rounds) {
    /** @type {Record<string, number>} */
    const ends = {};
    for (let round = 0; round < Number(rounds); round += 1) {
      const at = copyOf(folder, kinds[round % kinds.length] ?? 'dense raw');
      const reader = openAny(at);
      await reader.gather([0]);
      const running = Array.from({ length: 5 }, () => endOf(() => reader.gather(all), all));
      const endAt = performance.now() + (round % 10) / 10;
      while (performance.now() < endAt);
      const name = round % 3 === 0 ? 'meta.zr' : `data_${cutShard}.zr`;
      cut(path.join(at, name), round % 2 === 0 ? 5000 : 0);
      for (const end of await Promise.all(running)) {
        const text = end.replace(name, 'FILE');
        ends[text] = (ends[text] ?? 0) + 1;
      }
      await reader.close();
      rmSync(at, { recursive: true });
    }
    say(ends);
  },

  /** A container that is removed while it is read. */
  async unlinked(folder) {
    const at = copyOf(folder, 'dense raw');
    const reader = openAny(at);
    rmSync(at, { recursive: true });
    say([
      await endOf(() => reader.gather(all), all),
      await endOf(() => reader.gatherSync(all), all),
    ]);
  },

  /** More open stores than there are maps. */
  async many(folder) {
    const readers = Array.from({ length: 1100 }, () => openAny(placeOf(folder, 'dense raw')));
    const ids = [1, recordCount - 1];
    const ends = await Promise.all(readers.map((reader) => endOf(() => reader.gather(ids), ids)));
    for (const reader of readers) reader.closeSync();
    say([...new Set(ends)]);
  },

  /** A SIGBUS that is sent, after `steps`: use, listen, unlisten, second PATH. */
  async signal(folder, ...steps) {
    let heard = 0;
    const listener = () => {
      heard += 1;
    };
    const readers = new Set([loaderx]);
    for (const step of steps) {
      if (step === 'listen') process.on('SIGBUS', listener);
      else if (step === 'unlisten') process.off('SIGBUS', listener);
      else if (step === 'use') await gatherOnce(folder);
      else readers.add(await import(pathToFileURL(path.join(step, 'dist', 'index.js')).href));
    }
    for (const { open } of readers) open(placeOf(folder, 'dense raw')).gatherSync(all);
    say('ready');
    process.kill(process.pid, 'SIGBUS');
    // A listener runs in the next turn of the loop; without one the process is gone.
    for (let turn = 0; turn < 100 && heard === 0; turn += 1) {
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    say({ heard, ends: await cutOnce(folder, [...readers]) });
  },

  /** A cut under two copies of the package. */
  async twoCopies(folder, other) {
    const second = await import(pathToFileURL(path.join(other, 'dist', 'index.js')).href);
    say([await cutOnce(folder, [loaderx, second]), await cutOnce(folder, [second, loaderx])]);
  },
};

/** @param {string} folder */
async function gatherOnce(folder) {
  const reader = openAny(placeOf(folder, 'dense raw'));
  await reader.gather(all);
  await reader.close();
}

/** A file is cut under one reader of each copy. @param {string} folder @param {(typeof loaderx)[]} copies */
async function cutOnce(folder, copies) {
  const at = copyOf(folder, 'dense raw');
  const readers = copies.map(({ open }) => /** @type {Reader} */ (open(at)));
  for (const reader of readers) await reader.gather(all);
  cut(path.join(at, `data_${cutShard}.zr`), 0);
  const ends = [];
  for (const reader of readers) {
    ends.push(await endOf(() => reader.gather(all), all));
    ends.push(await endOf(() => reader.gatherSync(intact), intact));
    await reader.close();
  }
  rmSync(at, { recursive: true });
  return [...new Set(ends)];
}

if (isMainThread) {
  const [command = '', folder = '', ...args] = process.argv.slice(2);
  const run = commands[command];
  if (run === undefined) throw new Error(`there is no command ${command}`);
  await run(folder, ...args);
} else {
  /** @type {Reader | undefined} */
  let reader;
  parentPort?.on('message', async ({ at, ids }) => {
    if (at !== undefined) reader = openAny(at);
    else if (ids === undefined) await reader?.close();
    const end = ids === undefined ? 'done' : await endOf(() => reader?.gather(ids), ids);
    parentPort?.postMessage(end);
  });
}
