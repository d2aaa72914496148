// @ts-check
// Loaders in a process of their own, which runs plain JavaScript: pools of workers, and endings.
//
//     node loaders.mjs COMMAND ARGUMENT…
//
// Each command says what came of it as one line of JSON. Workers run this very file.
import assert from 'node:assert/strict';
import { pbkdf2 } from 'node:crypto';
import { readdirSync, readFileSync, renameSync, writeFileSync, writeSync } from 'node:fs';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { loaderx } from './package.mjs';
import { buildStreams, closeStreams, expectedIds, hashOf, idsOf, openStreams } from './streams.mjs';

const { DataLoader, Dense, ndarray, Ragged } = loaderx;

/** @typedef {'sequential' | 'iid' | 'cyclic'} Mode */
/** @typedef {import('./streams.mjs').StreamsBatch} StreamsBatch */

const length = 1003;
const batchSize = 16;
const modes = /** @type {const} */ (['sequential', 'iid', 'cyclic']);

/** @param {unknown} line */
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);

/** @param {number} ms */
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** A module of `transforms/`. @param {string} name */
const moduleOf = (name) => new URL(`./transforms/${name}.mjs`, import.meta.url);

/** A module by its text. @param {string} text */
const inlineModule = (text) => new URL(`data:text/javascript,${encodeURIComponent(text)}`);

/** What a promise came to. @param {Promise<unknown>} promise */
const outcomeOf = (promise) =>
  promise.then(
    (value) => ({ value }),
    (/** @type {unknown} */ error) => ({ error }),
  );

/** Descriptors, threads, and memory of this process (Linux). */
function holdings() {
  const { rss, heapUsed } = process.memoryUsage();
  return {
    descriptors: readdirSync('/proc/self/fd').length,
    threads: readdirSync('/proc/self/task').length,
    heap: heapUsed,
    rss,
  };
}

/** Collects what can be collected. Wants --expose-gc. */
async function collect() {
  for (let round = 0; round < 4; round += 1) {
    globalThis.gc?.();
    await sleep(20);
  }
}

/** @type {Record<string, (...args: string[]) => Promise<unknown> | unknown>} */
const commands = {
  async build(root, count) {
    await buildStreams(loaderx, root, Number(count));
  },

  /** Every step of every setting; a new loader each `renewal` steps, a seek at the others. */
  async resume(root, renewal) {
    const streams = openStreams(loaderx, root);
    let wrong = 0;
    let compared = 0;
    let pools = 0;
    for (const mode of modes) {
      const expected = expectedIds(loaderx, { length, batchSize, mode }, 500).map(hashOf);
      for (const transformWorkers of [0, 1, 4]) {
        for (const prefetch of [1, 8]) {
          const make = (/** @type {number} */ step) => {
            pools += 1;
            const transform = moduleOf('hash');
            const options = { batchSize, mode, step, transform, transformWorkers, prefetch };
            return new DataLoader(streams, options);
          };
          let loader = make(0);
          for (let step = 0; step < 500; step += 1) {
            if (step % Number(renewal) === 0) {
              await loader.close();
              loader = make(loader.step);
            } else {
              await loader.seek(loader.step);
            }
            const { value } = await loader.next();
            compared += 1;
            if (/** @type {unknown} */ (value) !== expected[step]) wrong += 1;
          }
          await loader.close();
        }
      }
    }
    await closeStreams(streams);
    return { wrong, compared, pools };
  },

  /** Trains from the saved state on, and is killed at step `killAt`, before or after saving it. */
  async train(root, mode, statePath, steps, killAt) {
    const streams = openStreams(loaderx, root);
    /** @type {{step: number, hashes: number[]}} */
    let state = { step: 0, hashes: [] };
    try {
      state = JSON.parse(readFileSync(statePath, 'utf8'));
    } catch {
      // The first time.
    }
    if (state.step === Number(steps)) return;
    const loader = new DataLoader(streams, {
      batchSize,
      mode: /** @type {Mode} */ (mode),
      step: state.step,
      transform: async (batch, { step }) => {
        await sleep(step % 3);
        return hashOf(idsOf(batch));
      },
    });
    const kill = Number(killAt);
    for await (const hash of loader) {
      const step = loader.step - 1;
      if (step === kill && kill % 2 === 0) process.kill(process.pid, 'SIGKILL');
      state = { step: loader.step, hashes: [...state.hashes.slice(0, step), hash] };
      writeFileSync(`${statePath}.new`, JSON.stringify(state));
      renameSync(`${statePath}.new`, statePath);
      if (step === kill) process.kill(process.pid, 'SIGKILL');
      if (state.step === Number(steps)) break;
    }
  },

  /** What a pool's transform returns, and what of it crosses. */
  async results(root) {
    const streams = openStreams(loaderx, root);
    const expected = expectedIds(loaderx, { length, batchSize, mode: 'cyclic' }, 40);
    for (const transformWorkers of [1, 3]) {
      const loader = new DataLoader(streams, {
        batchSize,
        seed: 42,
        transform: /** @type {any} */ (moduleOf('kinds')),
        transformWorkers,
      });
      for (const [step, ids] of expected.entries()) {
        const { value } = /** @type {{value: any}} */ (await loader.next());
        checkKind(step, ids, value);
        if (loader.stats().inFlight > 4) throw new Error('more than prefetch in flight');
      }
      await loader.close();
      assert.equal(loader.stats().buffersAlive <= 40 * 2, true);
    }
    await closeStreams(streams);
    return { checked: 80 };
  },

  /** Random numbers are the same in a pool, on this thread, and on any rank. */
  async randomness(root) {
    const streams = openStreams(loaderx, root);
    /** @param {object} options @returns {Promise<number[][]>} */
    const run = async (options) => {
      const transform = /** @type {any} */ (moduleOf('random'));
      const loader = new DataLoader(streams, { batchSize: 24, seed: 7n, transform, ...options });
      /** @type {any[]} */
      const lists = [];
      for (let step = 0; step < 5; step += 1) lists.push((await loader.next()).value);
      await loader.close();
      return lists;
    };
    const base = await run({ transformWorkers: 0 });
    for (const transformWorkers of [1, 4]) assert.deepEqual(await run({ transformWorkers }), base);
    const ranks = await Promise.all(
      [0, 1, 2, 3, 4].map((rank) => run({ transformWorkers: 1, shard: { rank, world: 5 } })),
    );
    const joined = base.map((_, step) => ranks.flatMap((lists) => lists[step] ?? []));
    assert.deepEqual(joined, base);
    await closeStreams(streams);
    return { checked: base.length };
  },

  /** What a pool's transform throws. */
  async errors(root) {
    const streams = openStreams(loaderx, root);
    const transform = /** @type {any} */ (moduleOf('throws'));
    const loader = new DataLoader(streams, { batchSize, transform, transformWorkers: 2 });
    const seen = [];
    for (let step = 1; step < 24; step += 2) {
      await loader.seek(step - 1);
      assert.equal((await loader.next()).value, step - 1);
      const outcome = await outcomeOf(loader.next());
      if (!('error' in outcome)) throw new Error(`step ${step} did not fail`);
      assert.equal(loader.failedStep, step);
      assert.deepEqual(await loader.next(), { done: true, value: undefined });
      seen.push(describe(outcome.error));
    }
    await loader.close();
    await closeStreams(streams);
    return seen;
  },

  /** Modules that do not load, results that do not cross, workers that die. */
  async deaths(root) {
    const streams = openStreams(loaderx, root);
    /** @type {Record<string, unknown>} */
    const seen = {};
    const from3 = (/** @type {string} */ act) =>
      `export default async (batch, {step}) => { if (step === 3) { ${act} } return step; }`;
    /** @type {[string, URL][]} */
    const cases = [
      ['missing', new URL('./transforms/no-such-module.mjs', import.meta.url)],
      ['syntax', inlineModule('export default (batch => {')],
      ['throws at load', inlineModule('throw new RangeError("at load")')],
      ['no default', inlineModule('export const transform = () => 1')],
      ['default is no function', inlineModule('export default {}')],
      ['returns a function', inlineModule(from3('return () => 1;'))],
      [
        'returns what it disposed of',
        inlineModule(from3('batch[Symbol.dispose](); return batch;')),
      ],
      [
        'returns its own array twice',
        inlineModule('const mean = new Float32Array(3); export default () => ({ mean })'),
      ],
      ['exit', inlineModule(from3('process.exit(5);'))],
      ['exit 0', inlineModule(from3('process.exit(0);'))],
      [
        'uncaught',
        inlineModule(
          from3('setTimeout(() => { throw new TypeError("late"); }); await new Promise(() => {});'),
        ),
      ],
      [
        'unhandled',
        inlineModule(
          from3('Promise.reject(new RangeError("nobody")); await new Promise(() => {});'),
        ),
      ],
    ];
    for (const [name, module] of cases) {
      const transform = /** @type {any} */ (module);
      const loader = new DataLoader(streams, { batchSize, transform, transformWorkers: 2 });
      let delivered = 0;
      /** @type {{value: any} | {error: unknown}} */
      let outcome;
      do {
        outcome = await outcomeOf(loader.next());
        if ('value' in outcome) delivered += 1;
      } while ('value' in outcome && delivered < 20);
      assert.deepEqual(await loader.next(), { done: true, value: undefined }, name);
      const error = 'error' in outcome ? describe(outcome.error) : 'none';
      seen[name] = { delivered, failedStep: loader.failedStep, error };
      if (delivered === 3) {
        await loader.seek(4);
        assert.equal((await loader.next()).value, 4, `${name}: later steps are reached by seek`);
      }
      await loader.close();
    }
    await closeStreams(streams);
    return seen;
  },

  /** Transforms that never end: closing ends them. */
  async stuck(root) {
    const streams = openStreams(loaderx, root);
    const ms = [];
    for (const text of [
      'export default () => new Promise(() => {})',
      'export default () => { for (;;); }',
      'for (;;);',
      'await new Promise(() => {})',
    ]) {
      const transform = /** @type {any} */ (inlineModule(text));
      const loader = new DataLoader(streams, { batchSize, transform, transformWorkers: 2 });
      const waiting = loader.next();
      await sleep(200);
      const startMs = performance.now();
      await loader.close();
      ms.push(performance.now() - startMs);
      assert.deepEqual(await waiting, { done: true, value: undefined });
    }
    await closeStreams(streams);
    return { slowestMs: Math.max(...ms) };
  },

  /** A pool's `signal`, seen by a transform that a seek makes needless. */
  async signal(root) {
    const streams = openStreams(loaderx, root);
    const transform = /** @type {any} */ (
      inlineModule(`export default (batch, {step, signal}) => step < 100
        ? new Promise((resolve) => signal.addEventListener('abort', () => resolve(-1)))
        : step`)
    );
    const loader = new DataLoader(streams, { batchSize, transform, transformWorkers: 2 });
    const waiting = loader.next();
    await sleep(300);
    await loader.seek(100);
    const result = await waiting;
    await loader.close();
    await closeStreams(streams);
    return result;
  },

  /** Loaders made and broken off after one batch. */
  async brokenOff(root, count, kind) {
    const streams = openStreams(loaderx, root);
    const transform = kind === 'pool' ? /** @type {any} */ (moduleOf('hash')) : undefined;
    const round = async () => {
      const loader = new DataLoader(streams, { batchSize, transform, transformWorkers: 2 });
      for await (const _ of loader) break;
    };
    const warmUp = Math.max(3, Number(count) / 10);
    for (let index = 0; index < warmUp; index += 1) await round();
    await collect();
    const before = holdings();
    for (let index = 0; index < Number(count); index += 1) await round();
    // What V8 keeps of code comes and goes by some MiB; what is leaked stays.
    let after = holdings();
    for (
      let tries = 0;
      tries < 20 && (tries === 0 || after.heap > before.heap + 2 ** 19);
      tries += 1
    ) {
      await collect();
      after = holdings();
    }
    await closeStreams(streams);
    return { before, after };
  },

  /** Loaders that are dropped without close: collected, threads and all. */
  async dropped(root, count) {
    const streams = openStreams(loaderx, root);
    const one = async (/** @type {number} */ index) => {
      const transform = index % 10 === 0 ? /** @type {any} */ (moduleOf('hash')) : undefined;
      const loader = new DataLoader(streams, { batchSize, transform, transformWorkers: 2 });
      // Collected while it waits it would never get its batch.
      await Promise.all([loader.next(), collect()]);
      return new WeakRef(loader);
    };
    const before = holdings();
    const refs = [];
    for (let index = 0; index < Number(count); index += 1) refs.push(await one(index));
    for (let round = 0; round < 50; round += 1) {
      await collect();
      if (refs.every((ref) => ref.deref() === undefined)) break;
    }
    const alive = refs.filter((ref) => ref.deref() !== undefined).length;
    for (let round = 0; round < 50 && holdings().threads > before.threads + 2; round += 1) {
      await collect();
    }
    const after = holdings();
    await closeStreams(streams);
    return { alive, before, after };
  },

  /** Many batches: what grows with them. */
  async growth(root, count, from) {
    const streams = openStreams(loaderx, root);
    const loader = new DataLoader(streams, {
      batchSize,
      transform: (batch, { step }) => ({ step, image: batch.image, text: batch.text }),
    });
    const startStep = Number(from);
    /** @type {[step: number, heap: number, rss: number][]} */
    const samples = [];
    for (let step = 0; step <= Number(count); step += 1) {
      const { value } = await loader.next();
      assert.equal(value?.step, step);
      if (step % 2 === 0) {
        value?.image[Symbol.dispose]();
        value?.text[Symbol.dispose]();
      }
      if (step >= startStep && step % 500 === 0) {
        await collect();
        const { heapUsed, rss } = process.memoryUsage();
        samples.push([step, heapUsed, rss]);
      }
    }
    await loader.close();
    await closeStreams(streams);
    return { heapSlope: slope(samples, 1), rssSlope: slope(samples, 2) };
  },

  /** Batches of 1 MiB of either geometry, disposed of by the consumer: resident bytes. */
  async largeGrowth(at, count) {
    const recordBytes = 65_536;
    const records = 64;
    const dense = Dense.create(`${at}/photo`, {
      dtype: 'uint8',
      itemShape: [recordBytes],
      codec: 'raw',
    });
    const bytes = new Uint8Array(records * recordBytes).map((_, index) => index % 251);
    await dense.append(ndarray('uint8', [records, recordBytes], bytes));
    await dense.close();
    const ragged = Ragged.create(`${at}/words`, { dtype: 'uint8', ndim: 1, codec: 'raw' });
    const lists = Array.from({ length: records }, (_, id) => {
      const size = recordBytes - 4096 + ((id * 977) % 8192);
      return ndarray('uint8', [size], bytes.slice(id, id + size));
    });
    await ragged.append(lists);
    await ragged.close();
    const photo = Dense.open(`${at}/photo`);
    const words = Ragged.open(`${at}/words`);
    const loader = new DataLoader(
      { photo, words },
      { batchSize: 16, transform: ({ photo, words }) => ({ parts: [photo, words] }) },
    );
    /** @type {[step: number, heap: number, rss: number][]} */
    const samples = [];
    let base = 0;
    let most = 0;
    for (let step = 0; step < Number(count); step += 1) {
      const { value } = await loader.next();
      for (const part of value?.parts ?? []) part[Symbol.dispose]();
      const { rss, heapUsed } = process.memoryUsage();
      // Every page of the maps was touched by then, and every buffer made.
      if (step === 100) base = rss;
      if (step > 100) most = Math.max(most, rss - base);
      if (step > 100 && step % 20 === 0) samples.push([step, heapUsed, rss]);
    }
    await loader.close();
    await Promise.all([photo.close(), words.close()]);
    return { most, rssSlope: slope(samples, 2) };
  },

  /** Two loaders and a libuv pool that is busy. */
  async busy(root, count) {
    const streams = openStreams(loaderx, root);
    let isOver = false;
    const keepBusy = () => {
      if (!isOver) pbkdf2('a', 'b', 200_000, 32, 'sha256', keepBusy);
    };
    for (let index = 0; index < 4; index += 1) keepBusy();
    const run = async (/** @type {number} */ seed) => {
      const loader = new DataLoader(streams, { batchSize, seed, mode: 'iid' });
      const steps = Number(count);
      const expected = expectedIds(loaderx, { length, batchSize, mode: 'iid', seed }, steps);
      let wrong = 0;
      for (const ids of expected) {
        const { value } = await loader.next();
        if (value === undefined || String(idsOf(value)) !== String(ids)) wrong += 1;
        value?.[Symbol.dispose]();
      }
      await loader.close();
      return wrong;
    };
    const wrong = await Promise.all([run(1), run(2)]);
    isOver = true;
    await closeStreams(streams);
    return wrong;
  },

  /** The same loader in several threads. */
  async inWorkers(root, count) {
    const answers = await Promise.all(
      Array.from({ length: Number(count) }, () => workerAnswer({ act: 'hashes', root })),
    );
    const expected = expectedIds(loaderx, { length, batchSize, mode: 'cyclic' }, 50).map(hashOf);
    for (const answer of answers) assert.deepEqual(answer, expected);
    return { right: answers.length };
  },

  /** Threads that are ended while their loaders work. */
  async terminated(root, count) {
    /** @type {Record<string, number>} */
    const ends = {};
    let slowestMs = 0;
    for (let index = 0; index < Number(count); index += 1) {
      const kind = index % 2 === 0 ? 'function' : 'pool';
      const worker = new Worker(new URL(import.meta.url), {
        workerData: { act: 'endless', root, kind },
      });
      await new Promise((resolve) => worker.once('message', resolve));
      await sleep(index % 20);
      const startMs = performance.now();
      const code = await worker.terminate();
      slowestMs = Math.max(slowestMs, performance.now() - startMs);
      ends[code] = (ends[code] ?? 0) + 1;
    }
    const streams = openStreams(loaderx, root);
    idsOf({ image: await streams.image.gather([1, 2]), text: await streams.text.gather([1, 2]) });
    await closeStreams(streams);
    return { ends, slowestMs };
  },

  /** Takes one batch, and leaves in some way with work in flight. */
  async leave(root, how, workers, prefetch, kind) {
    const streams = openStreams(loaderx, root);
    const transforms = {
      none: undefined,
      function: (/** @type {StreamsBatch} */ batch) => hashOf(idsOf(batch)),
      later: async (/** @type {StreamsBatch} */ batch) => {
        await sleep(1);
        return hashOf(idsOf(batch));
      },
      pool: moduleOf('hash'),
    };
    const loader = new DataLoader(streams, {
      batchSize,
      transform: /** @type {any} */ (transforms[/** @type {'none'} */ (kind)]),
      transformWorkers: Number(workers),
      prefetch: Number(prefetch),
    });
    if (how === 'listeners first') {
      process.on('exit', () => {});
      process.on('beforeExit', () => {});
    }
    if (how === 'break') {
      for await (const _ of loader) break;
      return;
    }
    await loader.next();
    if (how === 'listeners last') {
      process.on('beforeExit', () => {});
      process.on('exit', () => {});
    }
    if (how === 'next') void loader.next();
    if (how === 'gather') void streams.image.gather(new Uint32Array(200_000).fill(3));
    if (how === 'close') await loader.close();
    if (how === 'close twice') await Promise.all([loader.close(), loader.close()]);
    if (how === 'process.exit') process.exit(7);
    if (how === 'throw') {
      setImmediate(() => {
        throw new Error('of the program');
      });
    }
    if (how === 'reject') throw new RangeError('of the program');
    if (how === 'loop') for await (const _ of loader) throw new TypeError('of the loop');
  },

  /** A large batch of many records, and a loop body that throws. */
  async largeThrow(path) {
    const reader = Dense.open(path);
    const loader = new DataLoader({ reader }, { batchSize: 40_960 });
    for await (const { reader: batch } of loader) {
      if (batch.shape[0] === 40_960) throw new RangeError('of the loop');
    }
  },

  async buildLarge(path, count) {
    const writer = Dense.create(path, { dtype: 'uint8', itemShape: [], codec: 'raw' });
    const slice = 100_000;
    for (let from = 0; from < Number(count); from += slice) {
      const size = Math.min(slice, Number(count) - from);
      await writer.append(ndarray('uint8', [size], new Uint8Array(size).fill(from / slice)));
    }
    await writer.close();
  },
};

/** Bytes per step, by least squares. @param {number[][]} samples @param {number} column */
function slope(samples, column) {
  const xs = samples.map(([step = 0]) => step);
  const ys = samples.map((sample) => sample[column] ?? 0);
  const meanOf = (/** @type {number[]} */ list) =>
    list.reduce((sum, value) => sum + value, 0) / list.length;
  const meanX = meanOf(xs);
  const meanY = meanOf(ys);
  let over = 0;
  let under = 0;
  for (const [index, x] of xs.entries()) {
    over += (x - meanX) * ((ys[index] ?? 0) - meanY);
    under += (x - meanX) ** 2;
  }
  return over / under;
}

/** @param {unknown} error @returns {object} */
function describe(error) {
  if (!(error instanceof Error)) return { thrown: error === undefined ? 'undefined' : error };
  const { name, message, cause, stack = '' } = error;
  const { code, extra, errors, loaderxStep, field } = /** @type {any} */ (error);
  return {
    class: error.constructor.name,
    name,
    message,
    ...(cause === undefined ? {} : { cause: describe(cause) }),
    ...(errors === undefined ? {} : { errors: errors.map(describe) }),
    ...(code === undefined ? {} : { code }),
    ...(extra === undefined ? {} : { extra }),
    ...(field === undefined ? {} : { field }),
    ...(loaderxStep === undefined ? {} : { step: loaderxStep }),
    hasStack: stack.includes('throws.mjs'),
  };
}

/** What transforms/kinds.mjs made of a step. @param {number} step @param {number[]} ids @param {any} value */
function checkKind(step, ids, value) {
  switch (step % 10) {
    case 0:
      assert.deepEqual(idsOf(value), ids, 'the batch itself');
      value[Symbol.dispose]();
      assert.equal(value.image.data.length, 0);
      break;
    case 1:
      assert.deepEqual(idsOf(value.inner.batch), ids, 'the batch in something');
      assert.equal(value.step, step);
      break;
    case 2:
      assert.deepEqual(idsOf({ image: value[0], text: value[1].text }), ids, 'its streams');
      assert.equal(value[0].toNative().dtype, 'uint32');
      assert.equal(value[1].text.at(0).shape[0], 1 + ((ids[0] ?? 0) % 5));
      break;
    case 3:
      assert.deepEqual([...value], ids, 'a new array');
      break;
    case 4:
      assert.deepEqual(
        [...value.half],
        ids.slice(0, 1).flatMap((id) => [id, id * 7 + 1]),
      );
      assert.equal(value.same, value.half, 'twice the same stays the same');
      break;
    case 5:
      assert.deepEqual([...value.map.get('ids')], ids, 'in a map');
      assert.deepEqual([...value.set], ['a', 1n]);
      assert.equal(value.when.getTime(), step);
      break;
    case 6:
      assert.equal(Buffer.from(value).toString(), `step ${step}`, 'a pooled Buffer');
      break;
    case 7:
      assert.equal(value, undefined);
      break;
    case 8:
      assert.equal(value.batch, undefined);
      assert.deepEqual(value.list, [1, 'two', null, undefined, 3n, true]);
      assert.equal(value.self, value, 'a cycle');
      assert.equal(value.shared.byteLength, 8);
      assert.deepEqual([...value.wasm.slice(0, 2)], [7, 0], 'memory that cannot be moved');
      break;
    default:
      assert.deepEqual(idsOf(value.one), ids, 'the same batch in two places');
      assert.deepEqual(idsOf(value.other), ids);
  }
}

/** @param {Record<string, unknown>} data @returns {Promise<unknown>} */
function workerAnswer(data) {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: data });
    worker.once('message', resolve);
    worker.once('error', reject);
  });
}

/** @param {{act: string, root: string, kind?: string}} data */
async function actAsWorker({ act, root, kind }) {
  const streams = openStreams(loaderx, root);
  if (act === 'hashes') {
    const hashes = [];
    for await (const batch of new DataLoader(streams, { batchSize })) {
      hashes.push(hashOf(idsOf(batch)));
      if (hashes.length === 50) break;
    }
    await closeStreams(streams);
    parentPort?.postMessage(hashes);
    return;
  }
  const transform = kind === 'pool' ? /** @type {any} */ (moduleOf('hash')) : undefined;
  const loader = new DataLoader(streams, {
    batchSize,
    prefetch: 8,
    transform,
    transformWorkers: 2,
  });
  await loader.next();
  parentPort?.postMessage('started');
  for await (const _ of loader);
}

if (isMainThread) {
  const [command = '', ...args] = process.argv.slice(2);
  const act = commands[command];
  if (act === undefined) throw new Error(`there is no command ${command}`);
  const answer = await act(...args);
  if (answer !== undefined) say(answer);
} else {
  await actAsWorker(workerData);
}
