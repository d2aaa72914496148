// @ts-check
// One run: which rows there are, in which order, and what each process is asked. README.md says how a
// row is measured; this file is where it happens.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { root } from '../scripts/script.mjs';
import { entries, isRagged, limitRows, limitsStore, quick } from './catalogue.mjs';
import { Backend } from './client.mjs';
import { inBench, safeName, workloadFolder } from './paths.mjs';

/** @typedef {import('./catalogue.mjs').Entry} Entry */
/** @typedef {import('./catalogue.mjs').WorkloadName} WorkloadName */
/** @typedef {import('./client.mjs').Command} Command */
/** @typedef {import('./client.mjs').Foreign} Foreign */
/** @typedef {import('./environment.mjs').Environments} Environments */

/**
 * @typedef {object} Options
 * @property {string} data
 * @property {readonly WorkloadName[]} workloads
 * @property {(backend: string) => boolean} isWanted
 * @property {boolean} isQuick
 * @property {boolean} writes append is timed
 * @property {boolean} gathers gather is timed
 * @property {number} rounds
 * @property {number} seconds of timed calls in each row and round
 * @property {number} repeats how often a disturbed row is measured again
 * @property {number} disturbedCores more than this taken by others makes a row disturbed
 * @property {number} deadlineMs of `performance.now()`; no row begins after it
 */

/**
 * One measurement. `mode` is empty for a write of a backend that has one way of writing.
 *
 * @typedef {object} Sample
 * @property {string} workload
 * @property {'write' | 'gather'} op
 * @property {string} backend
 * @property {string} variant
 * @property {string} mode
 * @property {number} round
 * @property {number} attempt
 * @property {boolean} isUsed the least disturbed attempt of its round
 * @property {Foreign} foreignCores
 * @property {number} mibPerS
 * @property {number} krecPerS
 * @property {number} [p50MibPerS] at the median call
 * @property {number} [p50Ms]
 * @property {number} [p95Ms]
 * @property {number} [calls]
 * @property {number} seconds
 */

/**
 * @typedef {object} Store what one backend wrote
 * @property {string} workload
 * @property {string} backend
 * @property {string} variant
 * @property {number} diskBytes allocated blocks
 * @property {number} ratio payload bytes per stored byte
 * @property {number} [sweptRecords] when the sweep before timing was not the whole
 */

/**
 * One row to be measured.
 *
 * @typedef {object} RowJob
 * @property {'write' | 'gather'} op
 * @property {WorkloadName} workload
 * @property {string} name of the backend
 * @property {string} variant
 * @property {string} mode
 * @property {Command} command
 * @property {string} store its folder
 * @property {boolean} [isFigure] of a write: it is compared, and so done again and again
 */

/** What was not measured. @typedef {{workload: string, what: string, reason: string}} Missing */

const mib = 2 ** 20;

/** Sweeps of backends that need longer end early; `ours` and Python's loaderx never need it. */
const sweepSecondsMax = 60;
/** In later rounds the sweep only warms; what it would find it has found in the first. */
const laterSweepSecondsMax = 3;

export class Run {
  /** @type {Sample[]} */
  samples = [];
  /** @type {Store[]} */
  stores = [];
  /** @type {Missing[]} */
  missing = [];
  /** @type {Record<string, Record<string, string>>} */
  versions = {};
  #options;
  #environments;
  /** Rows that failed once are not tried again. @type {Set<string>} */
  #failed = new Set();

  /** @param {Options} options @param {Environments} environments */
  constructor(options, environments) {
    this.#options = options;
    this.#environments = environments;
  }

  /** Asks every wanted backend for its versions; those that cannot be run are named. */
  async ask() {
    /** @type {Entry[]} */
    const there = [];
    for (const entry of entries) {
      if (!this.#options.isWanted(entry.name)) continue;
      const command = this.command(entry);
      const reason =
        'missing' in command ? command.missing : await this.#aboutFailure(entry.name, command);
      if (reason === null) there.push(entry);
      else this.#miss('all', entry.name, reason);
    }
    return there;
  }

  /** @param {string} name @param {Command} command @returns {Promise<string | null>} */
  async #aboutFailure(name, command) {
    const backend = new Backend(command);
    try {
      this.versions[name] = (await backend.call('about')).result;
      return null;
    } catch (error) {
      return messageOf(error);
    } finally {
      await backend.end();
    }
  }

  /** @param {Entry} entry @returns {Command | {missing: string}} */
  command({ runtime, file, isPeer }) {
    return this.commandFor(runtime, path.join(root, 'bench', 'backends', file), isPeer);
  }

  /**
   * @param {Entry['runtime']} runtime
   * @param {string} file
   * @param {boolean} [isPeer]
   * @returns {Command | {missing: string}}
   */
  commandFor(runtime, file, isPeer = false) {
    if (runtime === 'node') {
      const { nodeMissing } = this.#environments;
      if (isPeer && nodeMissing !== null) return { missing: nodeMissing };
      return { program: process.execPath, args: [file], env: {} };
    }
    const python = this.#environments.python[runtime];
    if ('missing' in python) return python;
    const serve = path.join(root, 'bench', 'backends', 'serve.py');
    return {
      program: python.environment.python,
      args: ['-B', '-X', 'utf8', serve, file],
      env: python.environment.env,
    };
  }

  /** @param {RowJob} job */
  #missedInTime({ op, workload, name, variant, mode }) {
    this.#miss(workload, `${op} ${name} ${variant} ${mode}`.trimEnd(), 'the time was over');
  }

  /** @param {string} workload @param {string} what @param {string} reason */
  #miss(workload, what, reason) {
    this.missing.push({ workload, what, reason });
    say(`  missing: ${what}: ${reason}`);
  }

  /**
   * Everything of the wanted workloads, round by round. A full run finishes one workload after the
   * other, so that what is compared was measured within minutes; a quick one goes through all of
   * them in every round, so that the clock cuts none off.
   *
   * @param {readonly Entry[]} there
   * @param {() => void} save
   */
  async measure(there, save) {
    const { workloads, rounds, isQuick } = this.#options;
    const groups = isQuick ? [workloads] : workloads.map((name) => [name]);
    // What a run that was ended left behind.
    fs.rmSync(inBench('stores'), { recursive: true, force: true });
    for (const group of groups) {
      for (let round = 1; round <= rounds && !this.#isLate(); round += 1) {
        for (const workload of group) {
          if (!this.#isLate()) say(`${workload}, round ${round} of ${rounds}`);
          await this.#round(workload, round, there);
          save();
        }
      }
      for (const workload of group) removeStores(workload);
    }
  }

  #isLate() {
    return performance.now() > this.#options.deadlineMs;
  }

  /** @param {WorkloadName} workload @param {number} round @param {readonly Entry[]} there */
  async #round(workload, round, there) {
    const jobs = [...this.#writes(workload, round, there)];
    // Gathers read what the writes of the first round made, so those come first.
    await this.#all(rotated(jobs, round), round);
    if (!this.#options.gathers) return;
    await this.#all(rotated([...this.#gathers(workload, there)], round), round);
  }

  /** @param {WorkloadName} workload @param {number} round @param {readonly Entry[]} there @returns {Generator<RowJob>} */
  *#writes(workload, round, there) {
    for (const entry of there) {
      const isFigure = this.#options.writes && entry.isWrittenEachRound === true;
      if (round > 1 && (!isFigure || this.#options.isQuick)) continue;
      for (const variant of entry.variants) {
        const left = entry.leftOut?.(workload, variant);
        if (left) {
          if (round === 1) this.#miss(workload, `${entry.name} ${variant}`, left);
          continue;
        }
        const modes = this.#options.isQuick ? [''] : (entry.writeModes ?? ['']);
        for (const mode of modes) {
          yield { ...this.#job('write', workload, entry, variant, mode), isFigure };
        }
      }
    }
  }

  /** @param {WorkloadName} workload @param {readonly Entry[]} there @returns {Generator<RowJob>} */
  *#gathers(workload, there) {
    for (const entry of there) {
      for (const variant of entry.variants) {
        if (entry.leftOut?.(workload, variant)) continue;
        for (const mode of entry.modes(workload, variant)) {
          if (this.#options.isQuick && !isQuickMode(workload, mode)) continue;
          yield this.#job('gather', workload, entry, variant, mode);
        }
      }
    }
    if (!this.#options.isWanted('limits')) return;
    const command = this.commandFor('node', path.join(root, 'bench', 'backends', 'limits.mjs'));
    if ('missing' in command) return;
    const threads = os.availableParallelism();
    for (const row of limitRows(workload, threads, this.#environments.hasGcc)) {
      const store = storeFolder(workload, limitsStore, row.variant);
      if (row.variant.startsWith('zstd') && !fs.existsSync(store)) continue;
      yield { op: 'gather', workload, name: 'limits', command, store, ...row };
    }
  }

  /**
   * @param {'write' | 'gather'} op
   * @param {WorkloadName} workload
   * @param {Entry} entry
   * @param {string} variant
   * @param {string} mode
   * @returns {RowJob}
   */
  #job(op, workload, entry, variant, mode) {
    const command = /** @type {Command} */ (this.command(entry));
    const store = storeFolder(workload, entry.name, variant);
    return { op, workload, name: entry.name, variant, mode, command, store };
  }

  /**
   * Measures each once, then those that were disturbed again.
   *
   * @param {RowJob[]} jobs
   * @param {number} round
   */
  async #all(jobs, round) {
    await repeatDisturbed(jobs, this.#options.repeats, async (job, attempt) => {
      if (this.#isLate()) {
        if (round === 1 && attempt === 1) this.#missedInTime(job);
        return false;
      }
      const key = [job.workload, job.name, job.variant, job.mode].join(' ');
      const store = [job.workload, job.name, job.variant].join(' ');
      if (this.#failed.has(key) || this.#failed.has(store)) return false;
      try {
        const sample = await this.#sample(job, round, attempt);
        return (sample.foreignCores ?? 0) > this.#options.disturbedCores;
      } catch (error) {
        // Without its store none of a backend's rows can be measured.
        this.#failed.add(job.op === 'write' ? store : key);
        this.#miss(job.workload, `${job.name} ${job.variant} ${job.mode}`, messageOf(error));
        return false;
      }
    });
  }

  /** @param {RowJob} job @param {number} round @param {number} attempt */
  async #sample(job, round, attempt) {
    const { op, workload, name, variant, mode, store, isFigure = false } = job;
    const parameters = {
      workload: workloadFolder(this.#options.data, workload),
      target: store,
      variant,
      mode,
    };
    const backend = new Backend(job.command);
    /** @type {{result: any, foreign: Foreign}} */
    let answer;
    let sweptRecords;
    try {
      if (op === 'write') {
        fs.rmSync(store, { recursive: true, force: true });
        fs.mkdirSync(store, { recursive: true });
        // A write that is no figure is done once, for the gathers.
        const seconds = isFigure ? { seconds: this.#options.seconds } : {};
        answer = await backend.call('write', { ...parameters, ...seconds });
      } else {
        await backend.call('open', parameters);
        const secondsMax = round === 1 ? sweepSecondsMax : laterSweepSecondsMax;
        const { result: swept } = await backend.call('verify', { mode, secondsMax });
        if (round === 1 && !swept.isWhole) sweptRecords = swept.records;
        const from = round * 1000;
        const { seconds } = this.#options;
        answer = await backend.call('gather', { ...parameters, seconds, from });
        await backend.call('close');
      }
    } finally {
      await backend.end();
    }
    const facts = this.facts(workload);
    const { result, foreign } = answer;
    const bytes = op === 'write' ? facts.payloadBytes * result.builds : result.bytes;
    const records = op === 'write' ? facts.records * result.builds : result.records;
    /** @type {Sample} */
    const sample = {
      ...{ workload, op, backend: name, variant, mode, round, attempt, isUsed: true },
      foreignCores: foreign,
      mibPerS: bytes / mib / result.seconds,
      krecPerS: records / 1000 / result.seconds,
      seconds: result.seconds,
    };
    if (op === 'gather') {
      const { p50Ms, p95Ms, calls } = result;
      const p50MibPerS = (bytes / calls / mib / p50Ms) * 1000;
      Object.assign(sample, { p50Ms, p95Ms, calls, p50MibPerS });
    }
    this.#keep(sample);
    if (op === 'write') await this.#stored(sample, store, facts.payloadBytes);
    if (op === 'gather' && name !== 'limits' && sweptRecords !== undefined) {
      const written = this.stores.find((each) => isOf(each, sample));
      if (written !== undefined) written.sweptRecords = sweptRecords;
    }
    show(sample);
    return sample;
  }

  /** Of the attempts of a round the least disturbed one counts. @param {Sample} sample */
  #keep(sample) {
    const others = this.samples.filter(
      (each) =>
        each.isUsed &&
        each.round === sample.round &&
        each.op === sample.op &&
        each.mode === sample.mode &&
        isOf(each, sample),
    );
    for (const other of others) {
      if ((other.foreignCores ?? 0) <= (sample.foreignCores ?? 0)) sample.isUsed = false;
      else other.isUsed = false;
    }
    this.samples.push(sample);
  }

  /** @param {Sample} sample @param {string} folder @param {number} payloadBytes */
  async #stored({ workload, backend, variant }, folder, payloadBytes) {
    // Written back now, so that it does not disturb what comes next.
    spawnSync('sync');
    const diskBytes = allocatedBytes(folder);
    const known = this.stores.find((each) => isOf(each, { workload, backend, variant }));
    if (known === undefined) {
      this.stores.push({ workload, backend, variant, diskBytes, ratio: payloadBytes / diskBytes });
    }
  }

  /** @param {WorkloadName} workload */
  facts(workload) {
    const file = path.join(workloadFolder(this.#options.data, workload), 'workload.json');
    const facts = JSON.parse(fs.readFileSync(file, 'utf8'));
    return {
      payloadBytes: Number(facts.payload_bytes),
      records: Number(facts.records),
      batch: Number(facts.batch),
    };
  }
}

/** @param {{workload: string, backend: string, variant: string}} one @param {{workload: string, backend: string, variant: string}} other */
function isOf(one, other) {
  return (
    one.workload === other.workload &&
    one.backend === other.backend &&
    one.variant === other.variant
  );
}

/** @param {WorkloadName} workload @param {string} mode */
function isQuickMode(workload, mode) {
  if (!quick.modes.includes(mode)) return false;
  return mode === 'fresh' || mode.endsWith('-views') === isRagged(workload);
}

/** Begins elsewhere in every round, so that no row always follows the same other. @template T @param {T[]} list @param {number} round */
function rotated(list, round) {
  const at = Math.floor((list.length * (round - 1)) / 3) % Math.max(1, list.length);
  return [...list.slice(at), ...list.slice(0, at)];
}

/** @param {string} workload @param {string} backend @param {string} variant */
function storeFolder(workload, backend, variant) {
  return inBench('stores', workload, safeName(`${backend}-${variant}`));
}

/** @param {string} workload */
function removeStores(workload) {
  fs.rmSync(inBench('stores', workload), { recursive: true, force: true });
}

/** Blocks that the file system gave to the files below a folder. @param {string} folder */
function allocatedBytes(folder) {
  const blockBytes = 512; // the unit of st_blocks
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((item) => item.isFile() && !item.parentPath.endsWith('/twin'))
    .reduce(
      (sum, item) => sum + fs.statSync(path.join(item.parentPath, item.name)).blocks * blockBytes,
      0,
    );
}

/** @param {unknown} error */
export function messageOf(error) {
  return (error instanceof Error ? error.message : String(error)).split('\n')[0] ?? '';
}

/** @param {string} text */
export function say(text) {
  process.stdout.write(`${text}\n`);
}

/** @param {Sample} sample */
function show({ op, backend, variant, mode, mibPerS, p50Ms, foreignCores, attempt }) {
  const rate = `${mibPerS.toFixed(mibPerS < 100 ? 1 : 0)} MiB/s`.padStart(13);
  const call = p50Ms === undefined ? '' : `  p50 ${p50Ms.toFixed(3)} ms`;
  const others = foreignCores === null ? '' : `  others ${foreignCores.toFixed(2)} cores`;
  const again = attempt === 1 ? '' : `  attempt ${attempt}`;
  const name = `${op} ${backend}-${variant}${mode === '' ? '' : ` ${mode}`}`;
  say(`  ${name.padEnd(46)}${rate}${call}${others}${again}`);
}

/**
 * Does each job once, then those again that others disturbed, up to `repeats` times.
 *
 * @template Job
 * @param {readonly Job[]} jobs
 * @param {number} repeats
 * @param {(job: Job, attempt: number) => Promise<boolean>} perform attempts count from 1; resolves to
 *   whether the job was disturbed
 */
export async function repeatDisturbed(jobs, repeats, perform) {
  let pending = jobs;
  for (let attempt = 1; attempt <= repeats + 1; attempt += 1) {
    const disturbed = [];
    for (const job of pending) if (await perform(job, attempt)) disturbed.push(job);
    pending = disturbed;
  }
}
