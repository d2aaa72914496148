// @ts-check
// Runs mutants in child processes and holds each outcome against the reference reader. A child that
// a signal ends, or that does not come on, is a finding with the number of its mutant; the next child
// goes on behind it.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { loaderx } from '../support/package.mjs';
import { mutantOf } from './mutator.mjs';
import { makeSeeds } from './seeds.mjs';

/** @typedef {import('../../scripts/python-environment.mjs').Environment} Environment */
/** @typedef {import('../support/files.mjs').Edit} Edit */
/** @typedef {import('./child.mjs').Outcome} Outcome */

/**
 * Something that must not be.
 *
 * @typedef {object} Finding
 * @property {number} index of the mutant
 * @property {string} what
 * @property {string} base
 * @property {readonly Edit[]} edits
 */

/**
 * @typedef {object} Report
 * @property {number} mutants
 * @property {number} opened
 * @property {number} records read or refused, of those that opened
 * @property {number} recordsRefused
 * @property {ReadonlyMap<string, number>} refusals how often each code came, at open and of records
 * @property {number} compared records and opens that the reference reader judged too
 * @property {number} untold those it could not judge
 * @property {number} childBytesMax most memory a child had, resident
 * @property {number} growthBytesMax most address space that 16 mutants added to a warm child, beside
 *   what their schemas declare
 * @property {number} beyondBytesMax most that one allocation of a call was larger than the call's
 *   results; 0 where nothing counts
 * @property {number} seconds
 * @property {readonly Finding[]} findings
 */

/**
 * @typedef {object} Options
 * @property {number} count
 * @property {string} run the seed of the run
 * @property {number} children at one time
 * @property {Environment | null} python for the reference reader; null: nothing is compared
 * @property {string | null} [watcher] the library that watches memory; null: allocations are not counted
 * @property {number} [hangCpuMs] processor time of one mutant that is a hang
 * @property {boolean} [watchesGrowth] address space is looked at; not where a sanitizer takes much of it
 * @property {Readonly<Record<string, string>>} [env] added to the children's
 * @property {(done: number) => void} [onProgress]
 */

const childFile = fileURLToPath(new URL('./child.mjs', import.meta.url));
const answerFile = fileURLToPath(new URL('../reference/answer.py', import.meta.url));

/** Mutants of one child; a new process now and then keeps one's leftovers from another's way. */
const perChild = 25_000;
/** Without a step for this long, a child hangs. The machine may be busy: its processor time decides before. */
const hangCpuMsUsual = 1000;
const hangWallMs = 60_000;
const findingsMax = 50;

/**
 * @param {Options} options
 * @returns {Promise<Report>}
 */
export async function runMutants({
  count,
  run,
  children,
  python,
  watcher = null,
  env = {},
  hangCpuMs = hangCpuMsUsual,
  watchesGrowth = true,
  onProgress = () => {},
}) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-mutate-'));
  const seeds = await makeSeeds(loaderx, path.join(folder, 'seeds'));
  const reference = python === null ? null : new Reference(python, seeds);
  const tally = new Tally(reference);
  const startMs = performance.now();

  let next = 0;
  let done = 0;
  const lane = async (/** @type {number} */ number) => {
    while (next < count && tally.findings.length < findingsMax) {
      const from = next;
      next = Math.min(count, from + Math.min(perChild, Math.ceil(count / children)));
      await runRange(from, next, path.join(folder, `lane-${number}`));
    }
  };
  const runRange = async (
    /** @type {number} */ from,
    /** @type {number} */ until,
    /** @type {string} */ place,
  ) => {
    if (from >= until || tally.findings.length >= findingsMax) return;
    fs.rmSync(place, { recursive: true, force: true });
    fs.mkdirSync(place);
    const watched =
      watcher === null
        ? {}
        : { LD_PRELOAD: watcher, LOADERX_ALLOCATIONS: path.join(place, 'allocations') };
    const child = new Child(
      { run, from, until, folder: place, watchesGrowth },
      { ...watched, ...env },
      hangCpuMs,
      (line) => {
        tally.take(line);
        done += 1;
        if (done % 5000 === 0) onProgress(done);
      },
    );
    const { at, told, fault, memory } = await child.ended;
    tally.childBytesMax = Math.max(tally.childBytesMax, memory.maxRss);
    tally.growthBytesMax = Math.max(tally.growthBytesMax, memory.growthMax);
    tally.beyondBytesMax = Math.max(tally.beyondBytesMax, memory.beyondMax);
    if (fault === undefined) return;
    const { seed, edits } = mutantOf(seeds, run, at);
    tally.find(at, seed.name, edits, fault);
    // What the last heap of lines would have told, once more; then the rest.
    await runRange(told, at, place);
    await runRange(at + 1, until, place);
  };
  try {
    await Promise.all(Array.from({ length: children }, (_, number) => lane(number)));
    await reference?.end();
  } finally {
    reference?.kill();
    fs.rmSync(folder, { recursive: true, force: true });
  }
  return tally.report((performance.now() - startMs) / 1000);
}

/** What a child says of itself at its end, in bytes. @typedef {{maxRss: number, growthMax: number, beyondMax: number}} Memory */

/** One process that opens mutants. */
class Child {
  /**
   * `at`: the mutant it ended with; `told`: the first whose line did not come.
   *
   * @type {Promise<{at: number, told: number, fault?: string, memory: Memory}>}
   */
  ended;
  /** @type {Memory} */
  #memory = { maxRss: 0, growthMax: 0, beyondMax: 0 };
  /** The first mutant whose line did not come yet. */
  #told;

  /**
   * @param {{run: string, from: number, until: number, folder: string, watchesGrowth: boolean}} task
   * @param {Readonly<Record<string, string>>} extraEnv
   * @param {number} hangCpuMs
   * @param {(line: readonly [number, string, Edit[], Outcome, string[]]) => void} onLine
   */
  constructor(task, extraEnv, hangCpuMs, onLine) {
    this.#told = task.from;
    const progress = path.join(task.folder, 'progress');
    const { NODE_OPTIONS: _, ...env } = process.env;
    const child = spawn(process.execPath, [childFile, JSON.stringify({ ...task, progress })], {
      stdio: ['ignore', 'pipe', 'pipe'],
      // A heap of malloc for each thread would make address space grow whatever a mutant does.
      env: { ...env, MALLOC_ARENA_MAX: '1', ...extraEnv },
    });
    let said = '';
    child.stderr.setEncoding('utf8').on('data', (text) => {
      said = (said + text).slice(-4000);
    });
    const lines = createInterface({ input: child.stdout });
    lines.on('line', (text) => {
      const line = JSON.parse(text);
      if (!Array.isArray(line)) {
        this.#memory = line;
        return;
      }
      this.#told = line[0] + 1;
      onLine(/** @type {any} */ (line));
    });
    const watch = new Watch(child.pid ?? 0, progress, hangCpuMs);
    const timer = setInterval(() => {
      if (watch.hangs()) child.kill('SIGKILL');
    }, 250);
    const closed = new Promise((resolve) => lines.on('close', resolve));
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('close', async (code, signal) => {
        clearInterval(timer);
        await closed;
        const told = this.#told;
        const end = { at: Math.max(told, watch.read()), told, memory: this.#memory };
        if (watch.isHanging) resolve({ ...end, fault: 'it hangs' });
        else if (signal !== null) resolve({ ...end, fault: `ended by ${signal}: ${said}` });
        else if (code !== 0) resolve({ ...end, fault: `exit code ${code}: ${said}` });
        else resolve(end);
      });
    });
  }
}

/** Sees whether a child goes on, by the number it leaves in a file and the processor time it takes. */
class Watch {
  index = -1;
  isHanging = false;
  #sinceMs = performance.now();
  #sinceCpuMs = 0;

  /** @param {number} pid @param {string} file @param {number} hangCpuMs */
  constructor(pid, file, hangCpuMs) {
    this.hangCpuMs = hangCpuMs;
    this.pid = pid;
    this.file = file;
  }

  hangs() {
    const index = this.read();
    const cpuMs = this.#cpuMs();
    if (index !== this.index) {
      this.index = index;
      this.#sinceMs = performance.now();
      this.#sinceCpuMs = cpuMs;
      return false;
    }
    // Before the first mutant a child starts Node and writes its containers.
    if (index < 0) return false;
    this.isHanging =
      cpuMs - this.#sinceCpuMs > this.hangCpuMs || performance.now() - this.#sinceMs > hangWallMs;
    return this.isHanging;
  }

  read() {
    try {
      const bytes = fs.readFileSync(this.file);
      return bytes.length === 8 ? bytes.readDoubleLE(0) : -1;
    } catch {
      return -1;
    }
  }

  /** Processor time of the child, where the system tells it. */
  #cpuMs() {
    try {
      const fields = fs.readFileSync(`/proc/${this.pid}/stat`, 'utf8').split(') ')[1]?.split(' ');
      return (Number(fields?.[11]) + Number(fields?.[12])) * 10;
    } catch {
      return 0;
    }
  }
}

/** The reference reader: a Python process that answers in order. */
class Reference {
  #child;
  #said = '';
  #failed = '';
  /** Who waits for which answer. @type {((answer: Outcome) => void)[]} */
  #waiting = [];
  /** @type {Promise<void>} */
  #closed;

  /** @param {Environment} python @param {readonly import('./seeds.mjs').Seed[]} seeds */
  constructor(python, seeds) {
    this.#child = spawn(python.python, ['-W', 'ignore', '-B', answerFile], {
      stdio: ['pipe', 'pipe', 'pipe'],
      env: { ...process.env, ...python.env },
    });
    const hex = seeds.map(({ name, files }) => [
      name,
      Object.fromEntries([...files].map(([file, bytes]) => [file, bytes.toString('hex')])),
    ]);
    this.#child.stdin.write(`${JSON.stringify({ load: Object.fromEntries(hex) })}\n`);
    this.#child.stdin.on('error', () => {});
    this.#child.stderr.setEncoding('utf8').on('data', (text) => {
      this.#said = (this.#said + text).slice(-4000);
    });
    createInterface({ input: this.#child.stdout }).on('line', (line) => {
      this.#waiting.shift()?.(JSON.parse(line));
    });
    this.#closed = new Promise((resolve) => {
      this.#child.on('error', (error) => {
        this.#failed = error.message;
        resolve();
      });
      this.#child.on('close', () => resolve());
    });
  }

  /** @param {string} base @param {readonly Edit[]} edits @param {(answer: Outcome) => void} then */
  ask(base, edits, then) {
    this.#waiting.push(then);
    this.#child.stdin.write(`${JSON.stringify({ base, edits })}\n`);
  }

  /** Resolves when every question was answered. */
  async end() {
    this.#child.stdin.end();
    await this.#closed;
    if (this.#waiting.length === 0 && this.#failed === '') return;
    throw new Error(`the reference reader broke down: ${this.#failed}${this.#said}`);
  }

  kill() {
    this.#child.kill();
  }
}

/** Counts outcomes and compares them. */
class Tally {
  mutants = 0;
  opened = 0;
  records = 0;
  recordsRefused = 0;
  compared = 0;
  untold = 0;
  childBytesMax = 0;
  growthBytesMax = 0;
  beyondBytesMax = 0;
  /** @type {Map<string, number>} */
  refusals = new Map();
  /** @type {Finding[]} */
  findings = [];

  /** @param {Reference | null} reference */
  constructor(reference) {
    this.reference = reference;
  }

  /** @param {readonly [number, string, Edit[], Outcome, string[]]} line */
  take([index, base, edits, outcome, complaints]) {
    this.mutants += 1;
    const [about, records] = outcome;
    if (typeof about === 'string') this.#count(`open ${about}`);
    else this.opened += 1;
    for (const record of records) {
      this.records += 1;
      if (record.length === 16) continue;
      this.recordsRefused += 1;
      this.#count(`record ${record}`);
    }
    for (const complaint of complaints) this.find(index, base, edits, complaint);
    this.reference?.ask(base, edits, (answer) => {
      const difference = this.#difference(outcome, answer);
      if (difference !== undefined) this.find(index, base, edits, difference);
    });
  }

  /** @param {string} what */
  #count(what) {
    this.refusals.set(what, (this.refusals.get(what) ?? 0) + 1);
  }

  /** @param {number} index @param {string} base @param {readonly Edit[]} edits @param {string} what */
  find(index, base, edits, what) {
    this.findings.push({ index, what, base, edits });
  }

  /** @param {Outcome} ours @param {Outcome} theirs @returns {string | undefined} */
  #difference([ourAbout, ourRecords], [theirAbout, theirRecords]) {
    if (theirAbout === '?') {
      this.untold += 1;
      return undefined;
    }
    this.compared += 1;
    if (spelled(ourAbout) !== spelled(theirAbout)) {
      return `open: ours ${JSON.stringify(ourAbout)}, the reference's ${JSON.stringify(theirAbout)}`;
    }
    for (const [id, theirs] of theirRecords.entries()) {
      if (theirs === '?') {
        this.untold += 1;
        continue;
      }
      this.compared += 1;
      if (ourRecords[id] === theirs) continue;
      return `record ${id}: ours ${ourRecords[id]}, the reference's ${theirs}`;
    }
    return undefined;
  }

  /** @param {number} seconds @returns {Report} */
  report(seconds) {
    const { mutants, opened, records, recordsRefused, refusals } = this;
    const { compared, untold, childBytesMax, growthBytesMax, beyondBytesMax, findings } = this;
    return {
      ...{ mutants, opened, records, recordsRefused, refusals, seconds },
      ...{ compared, untold, childBytesMax, growthBytesMax, beyondBytesMax, findings },
    };
  }
}

/**
 * A text of what came of an open. A dtype that NumPy takes and no container holds is UNSUPPORTED or
 * MALFORMED: which of the two is not a matter of the format.
 *
 * @param {Outcome[0]} about
 */
function spelled(about) {
  if (about === 'UNSUPPORTED') return 'MALFORMED';
  return typeof about === 'string' ? about : JSON.stringify(about);
}
