// Child processes of tests: plain Node programs in this folder that use the built package.
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';
import { isFull } from './limits.js';

/** A child that takes this long hangs; a long form may want hours. */
const hangMs = isFull ? 3 * 3_600_000 : 280_000;

/** How a child ended. */
export interface Ending {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly ms: number;
}

export interface ChildOptions {
  readonly env?: Readonly<Record<string, string>>;
  readonly nodeArgs?: readonly string[];
  /** A command that runs `node` and its arguments, which are put behind it. */
  readonly prefix?: readonly string[];
  /** The child is killed after this long; its ending then shows the signal. */
  readonly timeoutMs?: number;
}

export interface Child {
  readonly process: ChildProcess;
  readonly ended: Promise<Ending>;
  /** Resolves when `text` has come on stdout, or rejects when the child ends without it. */
  said(text: string): Promise<void>;
  /** The next line of stdout; rejects when the child ends without one. */
  line(): Promise<string>;
  /** Writes a line to stdin. */
  tell(line: string): void;
}

/**
 * The test runner gives every process that is started its own NODE_OPTIONS, whatever was asked for. Its hooks would
 * be in each thread of the child, and keep some KiB of each.
 */
const withoutHooks = process.platform === 'win32' ? [] : ['env', '-u', 'NODE_OPTIONS'];

/** Starts `test/support/NAME.mjs` with `args`. */
export function startChild(
  name: string,
  args: readonly string[],
  options: ChildOptions = {},
): Child {
  const file = fileURLToPath(new URL(`./${name}.mjs`, import.meta.url));
  const { prefix = [], nodeArgs = [], timeoutMs = hangMs } = options;
  const node = [...withoutHooks, process.execPath, ...nodeArgs];
  const [command = '', ...rest] = [...prefix, ...node, file, ...args];
  const startMs = performance.now();
  const child = spawn(command, rest, { stdio: 'pipe', env: environment(options.env) });
  let stdout = '';
  let stderr = '';
  let readChars = 0;
  const waiters = new Set<() => void>();
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    stdout += text;
    for (const waiter of waiters) waiter();
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    stderr += text;
  });
  const timer = setTimeout(() => child.kill('SIGKILL'), timeoutMs);
  const ended = new Promise<Ending>((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr, ms: performance.now() - startMs });
    });
  });
  /** What `look` makes of stdout, as soon as it makes something of it. */
  const wait = <T>(what: string, look: () => T | undefined): Promise<T> =>
    new Promise((resolve, reject) => {
      const check = (): void => {
        const found = look();
        if (found === undefined) return;
        waiters.delete(check);
        resolve(found);
      };
      waiters.add(check);
      check();
      ended.then(() => {
        reject(new Error(`${name} ended before it said ${what}: ${stdout}${stderr}`));
      }, reject);
    });
  return {
    process: child,
    ended,
    said: (text) => wait(text, () => (stdout.includes(text) ? true : undefined)).then(() => {}),
    line: () =>
      wait('a line', () => {
        const end = stdout.indexOf('\n', readChars);
        if (end < 0) return undefined;
        const line = stdout.slice(readChars, end);
        readChars = end + 1;
        return line;
      }),
    tell: (line) => {
      child.stdin.write(`${line}\n`);
    },
  };
}

/** Runs `test/support/NAME.mjs` to its end. */
export function runChild(
  name: string,
  args: readonly string[],
  options?: ChildOptions,
): Promise<Ending> {
  return startChild(name, args, options).ended;
}

/** The last line that a child which ends well says, parsed. */
export async function answerOf(
  t: Test,
  name: string,
  args: readonly string[],
  options: ChildOptions = {},
): Promise<unknown> {
  const ending = await runChild(name, args, options);
  const { code, signal, stdout, stderr } = ending;
  t.strictSame([code, signal, stderr], [0, null, ''], `${args[0]} ends well`);
  const [last = ''] = stdout.trim().split('\n').slice(-1);
  return last === '' ? undefined : JSON.parse(last);
}

/**
 * Ours without what makes Node compile TypeScript, as children are plain JavaScript, and without what makes
 * it write down its coverage, for which a child may have no room.
 */
function environment(extra: Readonly<Record<string, string>> = {}): NodeJS.ProcessEnv {
  const { NODE_OPTIONS: _, NODE_V8_COVERAGE: __, ...inherited } = process.env;
  return { ...inherited, ...extra };
}

/** Runs `count` tasks, `width` at a time, in order of their index. */
export async function inParallel(
  count: number,
  width: number,
  task: (index: number) => Promise<void>,
): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const index = next;
      next += 1;
      await task(index);
    }
  };
  await Promise.all(Array.from({ length: Math.min(width, count) }, lane));
}
