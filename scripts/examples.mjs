// @ts-check
// Runs the examples. Those that hand over to other libraries have packages of their own, pinned by a lock
// file beside them; they are installed there the first time.
//
//     npm run example -- NAME [ARGUMENTS]     one of them, with the terminal as it is
//     npm run example                         their names
//     npm run examples [-- NAME...]           all of them, or these, and whether each does what it says
//
// The last line of `npm run examples` is `N passed, N failed(, N skipped)`.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from './build.mjs';
import { installLocked } from './dependencies.mjs';
import { entry, explain, Failure, inRoot, root } from './script.mjs';
import { closingLine, exitCode, single, sum } from './tally.mjs';

/** By name; `examples/NAME.mjs`, or `examples/NAME/NAME.mjs`. @returns {Map<string, string>} name to file */
export function examplesByName() {
  /** @type {Map<string, string>} */
  const found = new Map();
  for (const entry of fs.readdirSync(inRoot('examples'), { withFileTypes: true })) {
    const { name } = entry;
    const file = entry.isDirectory()
      ? inRoot('examples', name, `${name}.mjs`)
      : inRoot('examples', name);
    if (!file.endsWith('.mjs') || !fs.existsSync(file)) continue;
    // What the head of a program says how to start it is what makes it one.
    if (/^\/\/ +npm run (?:example|demo)\b/m.test(fs.readFileSync(file, 'utf8'))) {
      found.set(path.basename(file, '.mjs'), file);
    }
  }
  return found;
}

/** Installs an example's own packages, and links this one beside them. @param {string} file */
async function installPackages(file) {
  const folder = path.dirname(file);
  if (!fs.existsSync(path.join(folder, 'package.json'))) return;
  const modules = path.join(folder, 'node_modules');
  await installLocked(folder, modules);
  const link = path.join(modules, 'loaderx');
  if (!fs.existsSync(link)) fs.symlinkSync(root, link, 'junction');
}

/** The Python that `npm run interop` has made, unless the caller names one. @returns {NodeJS.ProcessEnv} */
function python() {
  const record = inRoot('.deps', 'python-2.4', 'installed.json');
  if (process.env.PYTHON !== undefined || !fs.existsSync(record)) return {};
  const { environment } = JSON.parse(fs.readFileSync(record, 'utf8'));
  return { ...environment.env, PYTHON: environment.python };
}

/** @param {string} file @param {readonly string[]} args @param {import('node:child_process').StdioOptions} stdio */
const start = (file, args, stdio) =>
  spawnSync(process.execPath, [file, ...args], {
    ...{ cwd: root, stdio, encoding: 'utf8' },
    env: { ...process.env, ...python() },
  });

/** @param {string} name @returns {string} */
function fileOf(name) {
  const examples = examplesByName();
  const file = examples.get(name);
  if (file !== undefined) return file;
  throw new Failure(
    name === '' ? 'which example?' : `there is no example ${name}`,
    `npm run example -- NAME [ARGUMENTS]\n${[...examples.keys()].join('\n')}`,
  );
}

/** @typedef {{status: number | null, stdout: string, stderr: string}} Ended */

/**
 * The long example, three times: killed, run again to the end, and without a break. @param {string} file
 *
 * @returns {string | null} what is wrong
 */
function checkMnist(file) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-mnist-'));
  try {
    const run = (/** @type {string[]} */ ...args) =>
      start(file, args, ['ignore', 'pipe', 'inherit']);
    const [broken, whole] = [path.join(folder, 'broken'), path.join(folder, 'whole')];
    const killed = run('--out', broken, '--kill-at', '900');
    if (killed.signal !== 'SIGKILL') return `it was to be killed, and ended with ${killed.status}`;
    const resumed = run('--out', broken);
    process.stdout.write(resumed.stdout);
    if (resumed.status !== 0) return `resumed, it ended with ${resumed.status}`;
    if (!/resumed at step 750/.test(resumed.stdout)) return 'it did not resume at step 750';
    const hashOf = (/** @type {Ended} */ { stdout }) => /sha256 (\w{64})/.exec(stdout)?.[1] ?? '';
    const wanted = hashOf(run('--out', whole, '--train-only'));
    if (wanted === '' || hashOf(resumed) !== wanted)
      return 'killed and resumed it gave other weights';
    process.stdout.write('killed at step 900 and resumed: the same state as without a break\n');
    const missing = ['report.html', 'loss.png', 'latent.png', 'samples.png'].filter(
      (name) => !fs.existsSync(path.join(broken, name)),
    );
    return missing.length > 0 ? `it did not draw ${missing.join(', ')}` : null;
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** Runs one and says how it ended. @param {string} name */
async function check(name) {
  const file = fileOf(name);
  process.stdout.write(`\n== ${name}\n`);
  const startMs = Date.now();
  let wrong = null;
  let skip;
  try {
    await installPackages(file);
    if (name === 'mnist') {
      wrong = checkMnist(file);
    } else {
      const { status, stdout } = start(file, [], ['ignore', 'pipe', 'inherit']);
      process.stdout.write(stdout);
      skip = /^skipped: (.*)$/m.exec(stdout)?.[1];
      if (status !== 0) wrong = `it ended with ${status}`;
    }
  } catch (error) {
    wrong = explain(error);
  }
  const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
  if (wrong !== null) process.stdout.write(`FAILED  ${name}: ${wrong}\n`);
  process.stdout.write(`== ${name}: ${seconds} s\n`);
  if (wrong === null && skip !== undefined) return { passed: 0, failed: 0, skipped: 1 };
  return single(wrong === null);
}

await entry(import.meta, async ([first = '', ...args]) => {
  if (first !== '--check') {
    const file = fileOf(first);
    await build(await bootstrap());
    await installPackages(file);
    return start(file, args, 'inherit').status ?? 1;
  }
  await build(await bootstrap());
  const tallies = [];
  for (const name of args.length > 0 ? args : examplesByName().keys()) {
    tallies.push(await check(name));
  }
  const tally = sum(tallies);
  process.stdout.write(`\n${closingLine(tally)}\n`);
  return exitCode(tally);
});
