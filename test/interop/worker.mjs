// @ts-check
// A Python process that does one thing after the other for us: worker.py.
import { spawn } from 'node:child_process';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const folder = path.dirname(fileURLToPath(import.meta.url));

/** A request that takes longer has hung: 2 GiB records need about a minute. */
const answerMsMax = 600_000;
const endMsMax = 20_000;
const saidCharsMax = 4000;

/** What Python raised. */
export class PythonError extends Error {
  /** @param {{type: string, code: number | null, message: string, trace: string}} answer */
  constructor({ type, code, message, trace }) {
    super(`Python raised ${type}${code === null ? '' : ` (code ${code})`}: ${message}\n${trace}`);
    this.name = 'PythonError';
    this.type = type;
    this.code = code;
  }
}

/** One long-lived Python process. Requests are answered in the order they were made. */
export class PythonWorker {
  #child;
  #said = '';
  /** @type {{resolve: (value: any) => void, reject: (error: Error) => void, timer: NodeJS.Timeout}[]} */
  #waiting = [];
  /** @type {Error | undefined} */
  #over;
  /** @type {Promise<void>} */
  #ended;

  /**
   * @param {import('../../scripts/python-environment.mjs').Environment} environment
   * @param {'loaderx_2_4' | 'loaderx_2_8'} module the operations
   */
  constructor(environment, module) {
    const script = path.join(folder, 'worker.py');
    this.#child = spawn(environment.python, ['-X', 'utf8', '-B', script, module], {
      env: { ...process.env, ...environment.env },
      stdio: ['pipe', 'pipe', 'pipe'],
      windowsHide: true,
    });
    this.#child.stderr.setEncoding('utf8').on('data', (/** @type {string} */ text) => {
      this.#said = (this.#said + text).slice(-saidCharsMax);
    });
    // Writing to a process that is gone: its end says more than EPIPE does.
    this.#child.stdin.on('error', () => {});
    createInterface({ input: this.#child.stdout }).on('line', (line) => this.#take(line));
    this.#ended = new Promise((resolve) => {
      this.#child.on('error', (error) => {
        this.#fail(new Error(`cannot run ${environment.python}: ${error.message}`));
        resolve();
      });
      this.#child.on('close', (code, signal) => {
        this.#fail(new Error(`Python ended (${signal ?? `exit code ${code}`}). ${this.#said}`));
        resolve();
      });
    });
  }

  /**
   * @param {string} op an operation of the module
   * @param {Record<string, unknown>} [parameters] JSON
   * @returns {Promise<any>} what it returned, from JSON
   */
  call(op, parameters = {}) {
    if (this.#over !== undefined) return Promise.reject(this.#over);
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        this.#fail(new Error(`Python did not answer ${op} in ${answerMsMax / 1000} s`));
        this.kill();
      }, answerMsMax);
      this.#waiting.push({ resolve, reject, timer });
      this.#child.stdin.write(`${JSON.stringify({ op, ...parameters })}\n`);
    });
  }

  /** Ends it at once, as a crash would. Locks are freed when the promise resolves. */
  async kill() {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  /** Lets it end by itself. @returns {Promise<void>} rejects if it does not, or ends badly */
  async end() {
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), endMsMax);
    this.#child.stdin.end();
    await this.#ended;
    clearTimeout(timer);
    if (this.#child.exitCode !== 0) throw this.#over ?? new Error('Python did not end well');
  }

  /** @param {string} line */
  #take(line) {
    const request = this.#waiting.shift();
    if (request === undefined) return;
    clearTimeout(request.timer);
    const answer = JSON.parse(line);
    if ('error' in answer) request.reject(new PythonError(answer.error));
    else request.resolve(answer.result);
  }

  /** @param {Error} error */
  #fail(error) {
    this.#over ??= error;
    for (const request of this.#waiting.splice(0)) {
      clearTimeout(request.timer);
      request.reject(this.#over);
    }
  }
}
