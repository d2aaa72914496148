// @ts-check
// Running other programs: either quietly, for their answer, or passing on what they say as they say
// it. Neither gives the child our stdin, so nothing here ever waits for a keyboard.
import { spawn, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import { createInterface } from 'node:readline';
import { Failure, root } from './script.mjs';

/**
 * @typedef {object} Options
 * @property {string} [cwd] default: the checkout
 * @property {NodeJS.ProcessEnv} [env] added to ours
 */

/**
 * Runs a program and returns what it said.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Options} [options]
 * @returns {{ok: boolean, missing: boolean, stdout: string, output: string}} `missing`: there is no
 *   such program; `output`: stdout and stderr, and why it could not be started
 */
export function ask(command, args, options = {}) {
  const answer = spawnSync(command, args, {
    cwd: options.cwd ?? root,
    env: { ...process.env, ...options.env },
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
    maxBuffer: 64 * 1024 * 1024,
    windowsHide: true,
  });
  return {
    ok: answer.status === 0,
    missing: answer.error !== undefined && 'code' in answer.error && answer.error.code === 'ENOENT',
    stdout: (answer.stdout ?? '').trim(),
    output: [answer.stdout, answer.stderr, answer.error?.message].filter(Boolean).join('\n').trim(),
  };
}

/**
 * Runs a program and passes its output on, line by line, stdout and stderr both to our stdout so
 * that they stay in order.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Options & {onLine?: (line: string) => void, quiet?: boolean}} [options] `onLine` sees each
 *   line too; `quiet`: only `onLine` does
 * @returns {Promise<number>} the exit code; 1 when a signal ended it
 */
export function run(command, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, {
      cwd: options.cwd ?? root,
      env: { ...process.env, ...options.env },
      stdio: ['ignore', 'pipe', 'pipe'],
      windowsHide: true,
    });
    for (const stream of [child.stdout, child.stderr]) {
      createInterface({ input: stream, crlfDelay: Number.POSITIVE_INFINITY }).on('line', (line) => {
        if (!options.quiet) process.stdout.write(`${line}\n`);
        options.onLine?.(line);
      });
    }
    child.on('error', (error) => reject(new Failure(`cannot run ${command}: ${error.message}`)));
    child.on('close', (code, signal) => {
      if (signal !== null) process.stdout.write(`${command}: ended by ${signal}\n`);
      resolve(code ?? 1);
    });
  });
}

/**
 * Runs a program with its output in a file, for programs that cannot write to a pipe (Node under
 * wine), and ends it when it takes too long.
 *
 * @param {string} command
 * @param {readonly string[]} args
 * @param {Options & {file: string, secondsMax: number}} options
 * @returns {{ok: boolean, output: string}}
 */
export function runIntoFile(command, args, { file, secondsMax, cwd = root, env = {} }) {
  const target = fs.openSync(file, 'w');
  const { status, error } = spawnSync(command, args, {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', target, target],
    timeout: secondsMax * 1000,
    killSignal: 'SIGKILL',
    windowsHide: true,
  });
  fs.closeSync(target);
  const output = [fs.readFileSync(file, 'utf8').trim(), error?.message].filter(Boolean).join('\n');
  return { ok: status === 0, output };
}

/**
 * The command that runs npm: the npm that started us, else the one on PATH.
 *
 * @returns {[command: string, ...args: string[]]}
 */
export function npm() {
  const self = process.env.npm_execpath;
  if (self !== undefined && /npm-cli\.[cm]?js$/.test(self)) return [process.execPath, self];
  // npm is a batch file on Windows, which only a shell can run.
  return process.platform === 'win32' ? ['cmd.exe', '/d', '/s', '/c', 'npm'] : ['npm'];
}
