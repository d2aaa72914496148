// @ts-check
// One run of the loader bench: which rows there are, in which order, and what each process is asked.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { root } from '../../scripts/script.mjs';
import { Backend } from '../client.mjs';
import { inBench, safeName, workloadFolder } from '../paths.mjs';
import { watchMemory } from '../processes.mjs';
import { messageOf, repeatDisturbed, say } from '../run.mjs';
import { median } from '../statistics.mjs';
import { isQuickRow, limitRows, loaders, workloadName, writers } from './catalogue.mjs';

/** @typedef {import('./catalogue.mjs').Loader} Loader */
/** @typedef {import('./catalogue.mjs').Runtime} Runtime */
/** @typedef {import('../client.mjs').Command} Command */
/** @typedef {import('../client.mjs').Foreign} Foreign */
/** @typedef {import('../environment.mjs').Environments} Environments */
/** @typedef {import('../processes.mjs').Memory} Memory */

/**
 * @typedef {object} Options
 * @property {string} data
 * @property {(loader: string) => boolean} isWanted
 * @property {(part: Job['part']) => boolean} isPartWanted
 * @property {boolean} isQuick
 * @property {number} rounds
 * @property {number} seconds of timed turns in each row and round
 * @property {number} repeats how often a disturbed row is measured again
 * @property {number} disturbedCores more than this taken by others makes a row disturbed
 * @property {number} deadlineMs of `performance.now()`; no row begins after it
 */

/**
 * Memory of a row's processes, in MiB, while it warmed up and while it was watched after being timed.
 *
 * @typedef {object} RowMemory
 * @property {number} bareMib anonymous memory of the runtime, before any package was loaded
 * @property {number} baseMib the same with its packages, before anything was opened
 * @property {number} steadyPss the middle of what was seen after the timed turns
 * @property {number} peakPss
 * @property {number} peakRss
 * @property {number} peakAnonymous
 * @property {number} peakFiles
 */

/**
 * One measurement.
 *
 * @typedef {object} Sample
 * @property {'loader' | 'transform' | 'limits' | 'order'} part
 * @property {string} backend
 * @property {string} variant
 * @property {string} mode
 * @property {number} round
 * @property {number} attempt
 * @property {boolean} isUsed the least disturbed attempt of its round
 * @property {Foreign} foreignCores
 * @property {number} batchesPerS
 * @property {number} [p50Ms]
 * @property {number} [p95Ms]
 * @property {number} [batches]
 * @property {RowMemory} [memory]
 * @property {{ticks: number, p50Ms: number, p99Ms: number, maxMs: number}} [delays] of the event loop
 * @property {Record<string, number>} [stats] what the loader says of itself
 * @property {number} [completionBatchesPerS] of part `order`, beside `batchesPerS` in step order
 */

/**
 * One row to be measured.
 *
 * @typedef {object} Job
 * @property {Sample['part']} part
 * @property {string} name
 * @property {string} variant
 * @property {string} mode
 * @property {Command} command
 * @property {string} target the folder of its container
 */

const seed = 42;
const mib = 2 ** 20;
const watchEveryMs = 20;
const checkedBatches = 8;

/** Several passes over the records, so that every page was seen and every buffer was made. */
const warmBatches = { loader: 32, transform: 4 };
const timedBatchesMin = { loader: 20, transform: 5 };
const order = /** @type {const} */ ({
  modes: ['step-disposed', 'completion-disposed'],
  segments: 12,
  segmentSecondsShare: 0.25,
  warmBatches: 10,
});

export class LoaderRun {
  /** @type {Sample[]} */
  samples = [];
  /** @type {{workload: string, what: string, reason: string}[]} */
  missing = [];
  /** @type {Record<string, Record<string, string>>} */
  versions = {};
  facts;
  #options;
  #environments;
  #folder;
  /** Rows that failed once, or whose store could not be made. @type {Set<string>} */
  #failed = new Set();
  /** @type {Set<string>} */
  #checked = new Set();
  /** Hashes of what the transform made of the same photos. @type {Map<string, string>} */
  #hashes = new Map();

  /** @param {Options} options @param {Environments} environments */
  constructor(options, environments) {
    this.#options = options;
    this.#environments = environments;
    this.#folder = workloadFolder(options.data, workloadName);
    const facts = JSON.parse(fs.readFileSync(path.join(this.#folder, 'workload.json'), 'utf8'));
    this.facts = {
      records: Number(facts.records),
      payloadBytes: Number(facts.payload_bytes),
      batch: Number(facts.batch),
      batchMib: (Number(facts.payload_bytes) / Number(facts.records) / mib) * Number(facts.batch),
    };
  }

  /** Asks every wanted loader for its versions; those that cannot be run are named. */
  async ask() {
    const there = [];
    for (const loader of loaders) {
      const { isWanted, isPartWanted, isQuick } = this.#options;
      if (!isPartWanted(loader.part) || !isWanted(loader.name)) continue;
      if (isQuick && loader.runtime === 'loaders') continue;
      const command = this.#command(loader.runtime, loader.file);
      const name = [loader.name, ...(loader.part === 'transform' ? loader.modes : [])].join(' ');
      if ('missing' in command) {
        this.#miss(name, command.missing);
        continue;
      }
      const backend = new Backend(command);
      try {
        this.versions[name] = (await backend.call('about')).result;
        there.push({ loader, command });
      } catch (error) {
        this.#miss(name, messageOf(error));
      } finally {
        await backend.end();
      }
    }
    return there;
  }

  /** @param {readonly {loader: Loader, command: Command}[]} there @param {() => void} save */
  async measure(there, save) {
    const { rounds } = this.#options;
    fs.rmSync(inBench('loader-stores'), { recursive: true, force: true });
    await this.#write(there);
    for (let round = 1; round <= rounds && !this.#isLate(); round += 1) {
      say(`round ${round} of ${rounds}`);
      await this.#all(rotated([...this.#jobs(there)], round, rounds), round);
      save();
    }
    fs.rmSync(inBench('loader-stores'), { recursive: true, force: true });
  }

  /** The containers that the rows read. @param {readonly {loader: Loader}[]} there */
  async #write(there) {
    /** @type {Map<string, {store: string, variant: string}>} */
    const stores = new Map();
    const add = (/** @type {string} */ store, /** @type {readonly string[]} */ variants) => {
      for (const variant of variants) stores.set(`${store} ${variant}`, { store, variant });
    };
    for (const { loader } of there) if (loader.store !== null) add(loader.store, loader.variants);
    if (this.#wantsOrder()) add('ours', ['raw', 'zstd']);
    if (this.#wantsLimits()) add('ours', ['zstd']);
    for (const { store, variant } of stores.values()) {
      const writer = writers[store];
      if (writer === undefined) throw new Error(`nobody writes ${store}`);
      const command = this.#writerCommand(writer);
      try {
        if ('missing' in command) throw new Error(command.missing);
        say(`  writing ${store} ${variant}`);
        await this.#writeOne(command, storeFolder(store, variant), variant);
      } catch (error) {
        this.#failed.add(storeFolder(store, variant));
        this.#miss(`${store} ${variant}`, messageOf(error));
      }
    }
    // Written back now, so that it does not disturb what comes next.
    spawnSync('sync');
  }

  /** @param {Command} command @param {string} target @param {string} variant */
  async #writeOne(command, target, variant) {
    fs.mkdirSync(target, { recursive: true });
    const backend = new Backend(command);
    try {
      await backend.call('write', { workload: this.#folder, target, variant, mode: 'sync' });
    } finally {
      await backend.end();
    }
  }

  /** @param {readonly {loader: Loader, command: Command}[]} there @returns {Generator<Job>} */
  *#jobs(there) {
    const { isQuick } = this.#options;
    for (const { loader, command } of there) {
      const { part, name, store } = loader;
      for (const variant of loader.variants) {
        for (const mode of loader.modes) {
          if (isQuick && !isQuickRow(loader, variant, mode)) continue;
          const target = storeFolder(store ?? 'none', variant);
          yield { part, name, variant, mode, command, target };
        }
      }
    }
    if (this.#wantsLimits()) {
      const command = this.#nodeCommand(path.join('backends', 'limits.mjs'));
      for (const row of limitRows(os.availableParallelism())) {
        const target = storeFolder('ours', 'zstd');
        yield { part: 'limits', name: 'limits', command, target, ...row };
      }
    }
    if (this.#wantsOrder()) {
      const command = this.#nodeCommand(path.join('loader', 'ours.mjs'));
      for (const variant of ['raw', 'zstd']) {
        const target = storeFolder('ours', variant);
        yield { part: 'order', name: 'ours', variant, mode: 'step/completion', command, target };
      }
    }
  }

  #wantsLimits() {
    return this.#options.isPartWanted('limits') && this.#options.isWanted('limits');
  }

  #wantsOrder() {
    return this.#options.isPartWanted('order') && this.#options.isWanted('order');
  }

  /** Measures each once, then those that were disturbed again. @param {Job[]} jobs @param {number} round */
  async #all(jobs, round) {
    await repeatDisturbed(jobs, this.#options.repeats, async (job, attempt) => {
      const { part, name, variant, mode, target } = job;
      const key = [part, name, variant, mode].join(' ');
      if (this.#failed.has(key) || this.#failed.has(target)) return false;
      if (this.#isLate()) {
        if (round === 1 && attempt === 1) this.#miss(key, 'the time was over');
        return false;
      }
      try {
        await this.#check(job, key);
        const sample = await this.#sample(job, round, attempt);
        this.#keep(sample);
        show(sample);
        return (sample.foreignCores ?? 0) > this.#options.disturbedCores;
      } catch (error) {
        this.#failed.add(key);
        this.#miss(key, messageOf(error));
        return false;
      }
    });
  }

  /** Compares what a loader delivers with the source, once, in a process of its own. @param {Job} job @param {string} key */
  async #check(job, key) {
    if (job.part === 'limits' || job.part === 'order' || this.#checked.has(key)) return;
    const backend = new Backend(job.command);
    try {
      const request = { ...this.#request(job), batches: checkedBatches };
      const { result } = await backend.call('check', request);
      this.#checked.add(key);
      if (result.hash === undefined) return;
      const known = this.#hashes.get(job.part) ?? result.hash;
      if (known !== result.hash) throw new Error('it makes other photos than the rest');
      this.#hashes.set(job.part, known);
    } finally {
      await backend.end();
    }
  }

  /** @param {Job} job */
  #request({ target, variant, mode }) {
    const { batch } = this.facts;
    return { workload: this.#folder, target, variant, mode, batch, seed };
  }

  /** @param {Job} job @param {number} round @param {number} attempt @returns {Promise<Sample>} */
  async #sample(job, round, attempt) {
    const { part, name, variant, mode } = job;
    const backend = new Backend(job.command);
    const head = { part, backend: name, variant, mode, round, attempt, isUsed: true };
    try {
      if (part === 'limits') return { ...head, ...(await this.#limit(backend, job)) };
      if (part === 'order') return { ...head, ...(await this.#order(backend, job)) };
      const { seconds } = this.#options;
      const base = this.#request(job);
      const warm = { ...base, seconds: seconds * 0.2, batches: warmBatches[part] };
      const started = await watched(backend, 'start', warm);
      const timed = {
        ...{ seconds, batches: timedBatchesMin[part], withDelays: part === 'transform' },
      };
      const { result, foreign } = await backend.call('time', timed);
      const hold = { seconds: seconds * 0.5, batches: timedBatchesMin[part] };
      const held = await watched(backend, 'hold', hold);
      await backend.call('close');
      return {
        ...{ ...head, ...result, foreignCores: foreign },
        memory: rowMemory(started, held.samples),
      };
    } finally {
      await backend.end();
    }
  }

  /** @param {Backend} backend @param {Job} job */
  async #limit(backend, job) {
    const request = { ...this.#request(job), seconds: this.#options.seconds, from: 0 };
    const { result, foreign } = await backend.call('gather', request);
    const batchesPerS = result.bytes / mib / result.seconds / this.facts.batchMib;
    return { batchesPerS, p50Ms: result.p50Ms, p95Ms: result.p95Ms, foreignCores: foreign };
  }

  /** @param {Backend} backend @param {Job} job */
  async #order(backend, job) {
    const { modes, segments, segmentSecondsShare } = order;
    const { result, foreign } = await backend.call('compare', {
      ...{ ...this.#request(job), modes, segments, batches: order.warmBatches },
      segmentSeconds: this.#options.seconds * segmentSecondsShare,
    });
    const [step, completion] = modes.map((mode) => result[mode].batchesPerS);
    return { batchesPerS: step, completionBatchesPerS: completion, foreignCores: foreign };
  }

  /** Of the attempts of a round the least disturbed one counts. @param {Sample} sample */
  #keep(sample) {
    for (const other of this.samples) {
      const isSame =
        other.round === sample.round &&
        other.part === sample.part &&
        other.backend === sample.backend &&
        other.variant === sample.variant &&
        other.mode === sample.mode;
      if (!isSame || !other.isUsed) continue;
      if ((other.foreignCores ?? 0) <= (sample.foreignCores ?? 0)) sample.isUsed = false;
      else other.isUsed = false;
    }
    this.samples.push(sample);
  }

  #isLate() {
    return performance.now() > this.#options.deadlineMs;
  }

  /** @param {string} what @param {string} reason */
  #miss(what, reason) {
    this.missing.push({ workload: workloadName, what, reason });
    say(`  missing: ${what}: ${reason}`);
  }

  /** @param {string} file in bench/ @returns {Command} */
  #nodeCommand(file) {
    return { program: process.execPath, args: [path.join(root, 'bench', file)], env: {} };
  }

  /** @param {Runtime} runtime @param {string} file @returns {Command | {missing: string}} */
  #command(runtime, file) {
    if (runtime === 'node') return this.#nodeCommand(path.join('loader', file));
    return this.#pythonCommand(runtime, path.join('loader', 'session.py'), file);
  }

  /** @param {{runtime: Runtime, file: string}} writer @returns {Command | {missing: string}} */
  #writerCommand({ runtime, file }) {
    if (runtime === 'node') return this.#nodeCommand(path.join('backends', file));
    const module = path.join(root, 'bench', 'backends', file);
    return this.#pythonCommand(runtime, path.join('backends', 'serve.py'), module);
  }

  /** @param {Exclude<Runtime, 'node'>} runtime @param {string} script in bench/ @param {string} module @returns {Command | {missing: string}} */
  #pythonCommand(runtime, script, module) {
    const python = this.#environments.python[runtime];
    if ('missing' in python) return python;
    const { environment } = python;
    const args = ['-B', '-X', 'utf8', path.join(root, 'bench', script), module];
    return { program: environment.python, args, env: environment.env };
  }
}

/** @param {Backend} backend @param {string} op @param {Record<string, unknown>} request */
async function watched(backend, op, request) {
  const { pid } = backend;
  if (pid === undefined) throw new Error('it could not be started');
  const { result, samples } = await watchMemory(pid, watchEveryMs, () => backend.call(op, request));
  return { result: result.result, samples };
}

/** @param {{result: {bareMib: number, baseMib: number}, samples: Memory[]}} started @param {readonly Memory[]} held @returns {RowMemory} */
function rowMemory({ result, samples }, held) {
  const all = [...samples, ...held];
  const peak = (/** @type {keyof Memory} */ field) => Math.max(...all.map((each) => each[field]));
  return {
    ...{ bareMib: result.bareMib, baseMib: result.baseMib },
    steadyPss: median(held.map(({ pss }) => pss)),
    peakPss: peak('pss'),
    peakRss: peak('rss'),
    peakAnonymous: peak('anonymous'),
    peakFiles: peak('files'),
  };
}

/** Begins elsewhere in every round, so that no row always follows the same other. @template T @param {T[]} list @param {number} round @param {number} rounds */
function rotated(list, round, rounds) {
  const at = Math.floor((list.length * (round - 1)) / rounds);
  return [...list.slice(at), ...list.slice(0, at)];
}

/** @param {string} store @param {string} variant */
function storeFolder(store, variant) {
  return inBench('loader-stores', safeName(`${store}-${variant}`));
}

/** @param {Sample} sample */
function show({ part, backend, variant, mode, batchesPerS, p95Ms, memory, attempt, ...rest }) {
  const name = `${part} ${backend}-${variant} ${mode}`;
  const tail = [];
  if (p95Ms !== undefined) tail.push(`p95 ${p95Ms.toFixed(2)} ms`);
  if (memory !== undefined) tail.push(`peak PSS ${memory.peakPss.toFixed(0)} MiB`);
  if (memory !== undefined) tail.push(`anonymous ${memory.peakAnonymous.toFixed(0)}`);
  if (rest.delays !== undefined) tail.push(`delay p99 ${rest.delays.p99Ms.toFixed(1)} ms`);
  if (rest.completionBatchesPerS !== undefined) {
    tail.push(`completion ${rest.completionBatchesPerS.toFixed(2)}`);
  }
  if (rest.foreignCores !== null) tail.push(`others ${rest.foreignCores.toFixed(2)} cores`);
  if (attempt > 1) tail.push(`attempt ${attempt}`);
  say(`  ${name.padEnd(46)}${batchesPerS.toFixed(2).padStart(9)} batches/s  ${tail.join('  ')}`);
}
