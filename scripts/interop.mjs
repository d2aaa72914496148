// @ts-check
// Holds this package against the real Python loaderx, both of its generations: each reads what the
// other wrote, the files of the same records are compared, dictionaries and index sequences too, and
// both hold readers and writers on the same paths.
//
//     npm run interop -- [--seed TEXT] [--count N] [--only PART]... [--case PART:INDEX]
//
// Python 3.10 or later is needed; for loaderx 2.8.19, Python 3.12 (without one that part is skipped).
// The packages come with pip, into .deps/. The last line is `N passed, N failed(, N skipped)`.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { trainDictionaries } from '../test/interop/dictionaries.mjs';
import { exchangeContainers } from '../test/interop/exchange.mjs';
import { Group, table } from '../test/interop/ledger.mjs';
import { holdLocks } from '../test/interop/locks.mjs';
import { drawSamplers } from '../test/interop/samplers.mjs';
import { PythonWorker } from '../test/interop/worker.mjs';
import { bootstrap, build } from './build.mjs';
import { ensurePythonEnvironment } from './python-environment.mjs';
import { Failure, inRoot } from './script.mjs';
import { countingEntry, sum } from './tally.mjs';

/** @typedef {import('../test/interop/exchange.mjs').Setting} Setting */
/** @typedef {import('./python-environment.mjs').Environment} Environment */

/**
 * @typedef {object} Generation
 * @property {'2.4' | '2.8'} dialect
 * @property {string} version
 * @property {'loaderx_2_4' | 'loaderx_2_8'} module of the worker's operations
 * @property {readonly [number, number]} pythonMin
 * @property {string} probe
 */

/** @type {Record<'2.4' | '2.8', Generation>} */
export const generations = {
  2.4: {
    dialect: '2.4',
    version: 'Python loaderx 2.4.6',
    module: 'loaderx_2_4',
    pythonMin: [3, 10],
    probe: 'import loaderx.zrecord, loaderx.zsampler, loaderx.utils',
  },
  2.8: {
    dialect: '2.8',
    version: 'Python loaderx 2.8.19',
    module: 'loaderx_2_8',
    pythonMin: [3, 12],
    probe: 'import loaderx.zrecord, loaderx.sampler',
  },
};

/** Cases of each part, given how many containers are exchanged. @param {number} count */
const amounts = (count) => ({
  containers: { 2.4: count, 2.8: Math.ceil(count / 2) },
  dictionaries: { 2.4: Math.ceil(count / 15), 2.8: Math.ceil(count / 60) },
  samplers: { 2.4: count * 5, 2.8: count * 5 },
});

/** @typedef {(setting: Setting, startPython: () => PythonWorker) => Promise<Group[]>} Part */

/** @type {Record<string, {part: Part, amount: (count: number, dialect: '2.4' | '2.8') => number}>} */
const parts = {
  exchange: {
    part: exchangeContainers,
    amount: (count, dialect) => amounts(count).containers[dialect],
  },
  dictionaries: {
    part: trainDictionaries,
    amount: (count, dialect) => amounts(count).dictionaries[dialect],
  },
  locks: { part: holdLocks, amount: () => 0 },
  samplers: {
    part: drawSamplers,
    amount: (count, dialect) => amounts(count).samplers[dialect],
  },
};

/** @param {Generation} generation @returns {Environment | null} null: no Python is new enough */
export function environmentOf({ dialect, pythonMin, probe }) {
  return ensurePythonEnvironment({
    name: `python-${dialect}`,
    versionMin: pythonMin,
    hashed: inRoot('test', 'interop', `loaderx-${dialect}.txt`),
    pinned: inRoot('test', 'interop', `requirements-${dialect}.txt`),
    probe,
  });
}

/** The built package. @returns {Promise<import('../test/interop/ours.mjs').Loaderx>} */
export async function builtPackage() {
  await build(await bootstrap());
  return import(pathToFileURL(inRoot('dist', 'index.js')).href);
}

const partNames = Object.keys(parts).flatMap((name) => [`${name}-2.4`, `${name}-2.8`]);
const usage = `npm run interop -- [--seed TEXT] [--count N] [--only PART]... [--case PART:INDEX]
PART: ${partNames.join(' ')}`;

/** @param {string[]} args */
function parse(args) {
  const options = { seed: randomBytes(4).toString('hex'), count: 600 };
  /** @type {string[]} */
  const only = [];
  /** @type {{part: string, index: number} | undefined} */
  let single;
  for (let index = 0; index < args.length; index += 2) {
    const [name, value] = [args[index], args[index + 1]];
    if (value === undefined) throw new Failure(`${name} wants a value`, usage);
    if (name === '--seed') options.seed = value;
    else if (name === '--count' && /^[1-9]\d{0,5}$/.test(value)) options.count = Number(value);
    else if (name === '--only') only.push(value);
    else if (name === '--case' && /^[a-z]+-2\.[48]:\d+$/.test(value)) {
      const [part = '', number] = value.split(':');
      single = { part, index: Number(number) };
      only.push(part);
    } else throw new Failure(`npm run interop does not know ${name} ${value}`, usage);
  }
  for (const part of only) {
    if (!partNames.includes(part)) throw new Failure(`there is no part ${part}`, usage);
  }
  return { ...options, only, single };
}

/**
 * @param {Generation} generation
 * @param {ReturnType<typeof parse>} options
 * @param {Setting['loaderx']} loaderx
 * @param {string} folder
 * @returns {Promise<Group[]>}
 */
async function proveAgainst(generation, options, loaderx, folder) {
  const { dialect, version, module } = generation;
  const names = Object.keys(parts).filter(
    (name) => options.only.length === 0 || options.only.includes(`${name}-${dialect}`),
  );
  if (names.length === 0) return [];
  const environment = environmentOf(generation);
  if (environment === null) {
    const reason = `no Python ${generation.pythonMin.join('.')} or later: PATH, PYTHON and pyenv's versions were tried`;
    if (dialect === '2.4') throw new Failure(`${version} cannot be run: ${reason}`);
    return names.map((name) => {
      const group = new Group(`${name} with ${version}`);
      group.skip(reason);
      return group;
    });
  }
  const startPython = () => new PythonWorker(environment, module);
  const python = startPython();
  /** @type {Group[]} */
  const groups = [];
  try {
    const about = await python.call('about');
    process.stdout.write(
      `loaderx ${about.loaderx}, NumPy ${about.numpy}, Python ${about.python}, ${about.lanes} lanes\n`,
    );
    for (const name of names) {
      const known = parts[name];
      if (known === undefined) continue;
      const partFolder = path.join(folder, `${name}-${dialect}`);
      fs.mkdirSync(partFolder);
      const setting = {
        ...{ loaderx, python, dialect, version, lanes: about.lanes, folder: partFolder },
        seed: options.seed,
        count: known.amount(options.count, dialect),
        isWanted: (/** @type {string} */ part, /** @type {number} */ index) =>
          options.single === undefined ||
          (options.single.part === part && options.single.index === index),
      };
      groups.push(...(await wholePart(name, version, () => known.part(setting, startPython))));
    }
    const ending = new Group(`the process of ${version} ends well`);
    await ending.check('exit code 0', () => python.end());
    groups.push(ending);
  } finally {
    await python.kill();
  }
  return groups;
}

/**
 * A part that breaks down has failed; the others still run.
 *
 * @param {string} name
 * @param {string} version
 * @param {() => Promise<Group[]>} body
 */
async function wholePart(name, version, body) {
  try {
    return await body();
  } catch (error) {
    const group = new Group(`${name} with ${version}`);
    await group.check('runs to its end', () => Promise.reject(error));
    return [group];
  }
}

/** @param {string[]} args */
async function interop(args) {
  const options = parse(args);
  const loaderx = await builtPackage();
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-interop-'));
  process.stdout.write(`seed ${options.seed}, count ${options.count}\n`);
  const groups = [];
  for (const generation of Object.values(generations)) {
    groups.push(...(await proveAgainst(generation, options, loaderx, folder)));
  }
  process.stdout.write(`\n${table(groups)}\nseed ${options.seed}\n`);
  const tally = sum(groups.map((group) => group.tally));
  if (tally.failed === 0) fs.rmSync(folder, { recursive: true, force: true });
  else process.stdout.write(`the containers of the failed cases are in ${folder}\n`);
  return tally;
}

await countingEntry(import.meta, interop);
