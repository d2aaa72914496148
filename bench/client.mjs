// @ts-check
// A backend's or probe's process, seen from the driver: one request, one answer, and how much
// processor time the rest of the machine took meanwhile.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import { createInterface } from 'node:readline';
import { root } from '../scripts/script.mjs';
import { ticksPerSecond, treeSeconds } from './processes.mjs';

/** A request that takes longer has hung. */
const answerMsMax = 20 * 60_000;
const endMsMax = 20_000;
const saidCharsMax = 4000;

/**
 * @typedef {object} Command how a backend is started
 * @property {string} program
 * @property {string[]} args
 * @property {NodeJS.ProcessEnv} env added to ours
 */

/** Processor time of others while something was measured, in cores. @typedef {number | null} Foreign */

export class Backend {
  #child;
  #said = '';
  /** @type {{resolve: (value: any) => void, reject: (error: Error) => void} | undefined} */
  #waiting;
  /** @type {Error | undefined} */
  #over;
  /** @type {Promise<void>} */
  #ended;

  /** @param {Command} command */
  constructor({ program, args, env }) {
    this.#child = spawn(program, args, {
      cwd: root,
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    this.#child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      this.#said = (this.#said + text).slice(-saidCharsMax);
    });
    this.#child.stdin.on('error', () => {});
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#take(line));
    this.#ended = new Promise((resolve) => {
      this.#child.on('error', (error) => {
        this.#fail(new Error(`cannot run ${program}: ${error.message}`));
        resolve();
      });
      this.#child.on('close', (code, signal) => {
        this.#fail(new Error(`it ended (${signal ?? `exit code ${code}`}) ${this.#said.trim()}`));
        resolve();
      });
    });
  }

  /**
   * @param {string} op
   * @param {Record<string, unknown>} [parameters]
   * @returns {Promise<{result: any, foreign: Foreign}>}
   */
  async call(op, parameters = {}) {
    if (this.#over !== undefined) throw this.#over;
    const before = processorSeconds(this.#child.pid);
    const start = performance.now();
    const timer = setTimeout(() => {
      this.#fail(new Error(`no answer to ${op} in ${answerMsMax / 60_000} minutes`));
      this.#child.kill('SIGKILL');
    }, answerMsMax);
    try {
      const result = await new Promise((resolve, reject) => {
        this.#waiting = { resolve, reject };
        this.#child.stdin.write(`${JSON.stringify({ op, ...parameters })}\n`);
      });
      const seconds = (performance.now() - start) / 1000;
      const after = processorSeconds(this.#child.pid);
      return { result, foreign: foreignCores(before, after, seconds) };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Undefined when it could not be started. */
  get pid() {
    return this.#child.pid;
  }

  /** Lets it end by itself; ends it when it does not. */
  async end() {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), endMsMax);
    this.#child.stdin.end();
    await this.#ended;
    clearTimeout(timer);
  }

  /** @param {string} line */
  #take(line) {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    /** @type {any} */
    let answer;
    try {
      answer = JSON.parse(line);
    } catch {
      answer = { error: `it said ${line}` };
    }
    if ('error' in answer) {
      const error = new Error(shortened(answer.error));
      if (waiting === undefined) this.#over ??= error;
      else waiting.reject(error);
    } else waiting?.resolve(answer.result);
  }

  /** @param {Error} error */
  #fail(error) {
    this.#over ??= error;
    this.#waiting?.reject(this.#over);
    this.#waiting = undefined;
  }
}

/** The line of a Python or JavaScript stack that says what happened. @param {string} text */
function shortened(text) {
  const lines = text.trim().split('\n');
  return (lines[0]?.startsWith('Traceback') ? lines.at(-1) : lines[0]) ?? text;
}

/**
 * Seconds that all processors were busy, stolen time included, and those of this process and of the
 * child with all processes below it. Null where there is no /proc.
 *
 * @param {number | undefined} pid
 */
function processorSeconds(pid) {
  try {
    const [user, nice, system, , , irq, softirq, steal] =
      fs
        .readFileSync('/proc/stat', 'utf8')
        .split('\n', 1)[0]
        ?.trim()
        .split(/\s+/)
        .slice(1)
        .map(Number) ?? [];
    const { user: ownUser, system: ownSystem } = process.cpuUsage();
    const busy = [user, nice, system, irq, softirq, steal].reduce(
      (sum, each) => (sum ?? 0) + (each ?? 0),
      0,
    );
    return {
      busy: (busy ?? 0) / ticksPerSecond,
      own: (pid === undefined ? 0 : treeSeconds(pid)) + (ownUser + ownSystem) / 1e6,
    };
  } catch {
    return null;
  }
}

/**
 * @param {ReturnType<typeof processorSeconds>} before
 * @param {ReturnType<typeof processorSeconds>} after
 * @param {number} seconds
 * @returns {Foreign}
 */
function foreignCores(before, after, seconds) {
  if (before === null || after === null || seconds < 0.05) return null;
  return Math.max(0, (after.busy - before.busy - (after.own - before.own)) / seconds);
}
