// @ts-check
// Opens damaged containers by the thousand and holds what comes of each against a second reader:
// test/mutate makes and opens them, test/reference reads them with Python.
//
//     npm run mutate -- [--count N] [--seed S] [--children N] [--only INDEX]
//
// The same seed gives the same mutants. With --only one mutant is made and its folder kept. NumPy and
// zstandard come with pip into .deps/; without a Python nothing is compared. The last line is
// `N passed, N failed`.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from './build.mjs';
import { ask } from './child.mjs';
import {
  ensurePythonEnvironment,
  findPython,
  installedPythonEnvironment,
} from './python-environment.mjs';
import { Failure, inRoot } from './script.mjs';
import { countingEntry, single } from './tally.mjs';
import { ensureZig } from './toolchain.mjs';

/** @typedef {import('./python-environment.mjs').Environment} Environment */
/** @typedef {import('../test/mutate/pool.mjs').Report} Report */

/** @type {import('./python-environment.mjs').Wanted} */
const wanted = {
  name: 'python-reference',
  versionMin: [3, 10],
  pinned: inRoot('test', 'reference', 'requirements.txt'),
  probe: 'import numpy, zstandard',
};

/** A Python for the reference reader with all it can use. Null: there is no Python. @returns {Environment | null} */
export function referencePython() {
  return ensurePythonEnvironment(wanted);
}

/**
 * The same without fetching anything: what an earlier run installed, else any Python, whose reader
 * then cannot tell dtypes and frames apart, and says so.
 *
 * @returns {Environment | null}
 */
export function referencePythonAtHand() {
  const installed = installedPythonEnvironment(wanted);
  if (installed !== null) return installed;
  const python = findPython([3, 8]);
  return python === null ? null : { python, env: {} };
}

/** The library that says how large allocations are, built. Null: not on this system. @returns {Promise<string | null>} */
export async function memoryWatcher() {
  const hasGlibc = 'glibcVersionRuntime' in /** @type {any} */ (process.report.getReport()).header;
  if (process.platform !== 'linux' || !hasGlibc) return null;
  const args = ['build', 'allocations', '--color', 'off'];
  const { ok, output } = ask(await ensureZig(), args);
  if (!ok) throw new Failure('test/native/allocations.c does not build', output);
  return inRoot('zig-out', 'lib', 'liballocations.so');
}

const usage = 'npm run mutate -- [--count N] [--seed S] [--children N] [--only INDEX]';

/** @param {string[]} args */
function parse(args) {
  const options = {
    ...{ count: 100_000, seed: randomBytes(4).toString('hex'), only: -1 },
    children: Math.max(1, Math.floor(os.availableParallelism() / 2)),
  };
  for (let index = 0; index < args.length; index += 2) {
    const [name, value] = [args[index], args[index + 1]];
    if (value === undefined) throw new Failure(`${name} wants a value`, usage);
    if (name === '--seed') options.seed = value;
    else if (!/^\d{1,9}$/.test(value)) throw new Failure(`${name} wants a number`, usage);
    else if (name === '--count') options.count = Number(value);
    else if (name === '--children') options.children = Math.max(1, Number(value));
    else if (name === '--only') options.only = Number(value);
    else throw new Failure(`npm run mutate does not know ${name}`, usage);
  }
  return options;
}

/** What was run and what came of it, for a person. @param {Report} report */
export function described(report) {
  const { mutants, opened, records, recordsRefused, refusals, findings } = report;
  const rate = Math.round(mutants / report.seconds);
  const lines = [
    `${mutants} mutants in ${report.seconds.toFixed(1)} s (${rate} a second)`,
    `  ${opened} opened; of their ${records} records ${recordsRefused} were refused`,
    ...[...refusals].sort().map(([what, count]) => `  ${what}: ${count}`),
    `  ${report.compared} outcomes equal the reference's or are shown below, ${report.untold} it could not tell`,
    `  most memory of a child: ${mebibytes(report.childBytesMax)}; most that 16 mutants added: ${mebibytes(report.growthBytesMax)}`,
    `  most that one allocation was larger than what was asked for: ${report.beyondBytesMax} bytes`,
    `  ${findings.length} findings`,
  ];
  for (const { index, what, base, edits } of findings.slice(0, 20)) {
    lines.push(`mutant ${index} of ${base}: ${what}`, `  ${JSON.stringify(edits).slice(0, 2000)}`);
  }
  return lines.join('\n');
}

/** @param {number} bytes */
function mebibytes(bytes) {
  return `${(bytes / 2 ** 20).toFixed(1)} MiB`;
}

/** Makes one mutant and keeps its folder. @param {string} seed @param {number} index */
async function keepOne(seed, index) {
  const { mutantOf } = await import('../test/mutate/mutator.mjs');
  const { makeSeeds } = await import('../test/mutate/seeds.mjs');
  const { edited, writeFiles } = await import('../test/support/files.mjs');
  const { loaderx } = await import('../test/support/package.mjs');
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-mutant-'));
  const seeds = await makeSeeds(loaderx, path.join(folder, 'seeds'));
  const mutant = mutantOf(seeds, seed, index);
  const place = path.join(folder, String(index));
  writeFiles(place, edited(mutant.seed.files, mutant.edits));
  process.stdout.write(`${mutant.seed.name} ${JSON.stringify(mutant.edits)}\n${place}\n`);
}

/** @param {string[]} args */
async function mutate(args) {
  const { count, seed, children, only } = parse(args);
  await build(await bootstrap());
  if (only >= 0) {
    await keepOne(seed, only);
    return single(true);
  }
  const { runMutants } = await import('../test/mutate/pool.mjs');
  const python = referencePython();
  const watcher = await memoryWatcher();
  process.stdout.write(`seed ${seed}, ${count} mutants, ${children} at a time\n`);
  if (python === null) process.stdout.write('there is no Python: nothing is compared\n');
  const report = await runMutants({
    ...{ count, run: seed, children, python, watcher },
    onProgress: (done) => process.stdout.write(`${done} of ${count}\n`),
  });
  process.stdout.write(`${described(report)}\nseed ${seed}\n`);
  const failed = new Set(report.findings.map(({ index }) => index)).size;
  return { passed: report.mutants - failed, failed, skipped: 0 };
}

await countingEntry(import.meta, mutate);
