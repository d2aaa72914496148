// @ts-check
// What the engines of `npm run test:distributed` share: a folder, a source and its digest, counted checks, and
// processes that are all gone at the end.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { fileOfNumbers, rowsOfFile } from '../../test/support/parquet-file.mjs';
import { Failure, inRoot } from '../script.mjs';

/** @type {typeof import('../../ts/index.js')} */
const loaderx = await import(new URL('../../dist/index.js', import.meta.url).href);
/** @type {typeof import('../../ts/converter.js')} */
const converter = await import(new URL('../../dist/converter.js', import.meta.url).href);

export const cli = inRoot('dist', 'cli.js');

/** How long anything here may take before it is taken for stuck. */
const stuckMs = 60_000;

/** Those that have not ended. @type {Set<Scene>} */
const scenes = new Set();

/** A place for one engine's checks. */
export class Scene {
  /** @type {{ passed: number, failed: number, skipped: number }} */
  tally = { passed: 0, failed: 0, skipped: 0 };
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-distributed-'));
  source = path.join(this.folder, 'parquet');
  /** The digest of a build by one process. */
  digest = '';
  records = 0;
  #name;
  /** @type {import('node:child_process').ChildProcess[]} */
  #children = [];

  /** @param {string} name */
  constructor(name) {
    this.#name = name;
    scenes.add(this);
  }

  /** Makes the source, and the build that all others are held against. */
  async begin() {
    fs.mkdirSync(this.source);
    const files = 8;
    for (let file = 0; file < files; file += 1) {
      const bytes = numbersFile(file + 1);
      fs.writeFileSync(path.join(this.source, `train-${file}.parquet`), bytes);
    }
    this.records = files * rowsOfFile;
    const whole = path.join(this.folder, 'whole');
    const dataset = await converter.parquetFolder(this.source);
    await converter.convert(dataset, whole, { codec: 'raw' });
    this.digest = await digestAt(path.join(whole, 'train', 'x'));
  }

  /** @param {boolean} ok @param {string} what @param {unknown} [seen] */
  check(ok, what, seen) {
    if (ok) this.tally.passed += 1;
    else this.tally.failed += 1;
    const detail = ok || seen === undefined ? '' : `: ${JSON.stringify(seen)}`;
    process.stdout.write(`${ok ? 'ok      ' : 'FAILED  '}${this.#name}: ${what}${detail}\n`);
  }

  /** @param {string} why */
  skip(why) {
    this.tally.skipped += 1;
    process.stdout.write(`skipped ${this.#name}: ${why}\n`);
  }

  /** A folder of its own. @param {string} name */
  at(name) {
    return path.join(this.folder, name);
  }

  /**
   * The target of a build that is over: the set, all parts once, the records of a single build, and nothing half.
   *
   * @param {string} target @param {number} parts @param {string} what
   */
  async checkTarget(target, parts, what) {
    const names = fs.existsSync(target) ? fs.readdirSync(target).sort() : [];
    const wanted = Array.from({ length: parts }, (_, part) =>
      loaderx.partName({ part, of: parts }),
    );
    this.check(
      names.join() === [...wanted, 'train.x.json'].join(),
      `${what}: the parts and their set, and nothing else`,
      names,
    );
    const set = path.join(target, 'train.x.json');
    if (!fs.existsSync(set)) return;
    const reader = loaderx.open(set);
    this.check(reader.length === this.records, `${what}: each record once`, reader.length);
    await reader.close();
    this.check((await digestAt(set)) === this.digest, `${what}: the digest of a single build`);
  }

  /**
   * Starts a program that is ended with the scene.
   *
   * @param {string} command @param {readonly string[]} args @param {NodeJS.ProcessEnv} [env]
   */
  start(command, args, env = {}) {
    const child = spawn(command, args, {
      cwd: this.folder,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    const program = new Program(child, `${path.basename(command)} ${args.join(' ')}`);
    this.#children.push(child);
    return program;
  }

  /**
   * Waits for something that happens by itself.
   *
   * @param {() => boolean | Promise<boolean>} is @param {string} what
   */
  async until(is, what, ms = stuckMs) {
    const endMs = Date.now() + ms;
    while (!(await is())) {
      if (Date.now() > endMs)
        throw new Failure(`${this.#name}: ${what} did not happen in ${ms} ms`);
      await wait(20);
    }
  }

  /** Ends all of it at once, for a run that is ended itself. */
  kill() {
    for (const child of this.#children) child.kill('SIGKILL');
    for (const { pid } of this.processes()) process.kill(pid, 'SIGKILL');
    fs.rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Ends what was started, and looks for whatever else is left of it. */
  async end() {
    scenes.delete(this);
    for (const child of this.#children) {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
    }
    try {
      await this.until(() => this.processes().length === 0, 'the end of all processes', 5000);
      this.check(true, 'no process is left');
    } catch {
      this.check(false, 'no process is left', this.processes());
      for (const { pid } of this.processes()) process.kill(pid, 'SIGKILL');
    }
    fs.rmSync(this.folder, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Processes that speak of this scene's folder. @returns {{ pid: number, line: string }[]} */
  processes() {
    return fs.readdirSync('/proc').flatMap((name) => {
      const pid = Number(name);
      if (!Number.isInteger(pid) || pid === process.pid) return [];
      try {
        const line = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ');
        return line.includes(this.folder) ? [{ pid, line }] : [];
      } catch {
        return [];
      }
    });
  }
}

for (const [signal, code] of /** @type {const} */ ([
  ['SIGINT', 130],
  ['SIGTERM', 143],
])) {
  process.once(signal, () => {
    for (const scene of scenes) scene.kill();
    process.exit(code);
  });
}

/** A program that runs. */
class Program {
  output = '';
  /** @type {Promise<number | null>} */
  ended;

  /** @param {import('node:child_process').ChildProcess} child @param {string} line */
  constructor(child, line) {
    this.child = child;
    this.line = line;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text) => {
        this.output += text;
      });
    }
    this.ended = new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('close', (code) => resolve(code));
    });
    this.ended.catch(() => {});
  }

  /** What it said as JSON, line by line. @returns {Record<string, unknown>[]} */
  get events() {
    return this.output.split('\n').flatMap((line) => {
      try {
        return [JSON.parse(line)];
      } catch {
        return [];
      }
    });
  }
}

/** @param {string} place */
async function digestAt(place) {
  return (await loaderx.digest(place, { dryRun: true })).logicalDigest;
}

/** The program, or why there is none. @param {string} name */
export function programAt(name) {
  const folders = [
    ...(process.env.PATH ?? '').split(path.delimiter),
    '/usr/sbin',
    '/usr/local/sbin',
  ];
  return folders.map((folder) => path.join(folder, name)).find((file) => fs.existsSync(file));
}

/** A port of the loopback that nobody listens on. @returns {Promise<number>} */
export async function freePort() {
  const { createServer } = await import('node:net');
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const address = server.address();
      const port = typeof address === 'object' && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}

/** @param {number} seed */
export function numbersFile(seed) {
  const numbers = new Uint32Array(rowsOfFile);
  for (let row = 0; row < rowsOfFile; row += 1) {
    numbers[row] = Math.imul(seed * rowsOfFile + row, 0x9e3779b1);
  }
  return fileOfNumbers(new Uint8Array(numbers.buffer));
}
