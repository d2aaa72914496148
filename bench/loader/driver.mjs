// @ts-check
// Measures this package's DataLoader beside other loaders, on dense photos, in one interleaved run.
// ../README.md describes the method.
//
//     npm run bench:loader                       everything: half an hour; tables into docs/benchmarks.md
//     npm run bench:loader -- --quick            two minutes: ours, loaderx 2.4.6, bare threads, limits
//     npm run bench:loader -- --only transform   one part: loader, transform, order, limits; may be repeated
//     npm run bench:loader -- --report FILE      tables of an earlier result again
//
//     --loaders a,b    these only ('limits' and 'order' are two)    --data DIR     instead of .bench/data
//     --rounds N       default 3                                    --seconds S    default 3
//     --repeats N      of disturbed rows, default 2                 --disturbed C  cores, default 0.15
//     --docs           write docs/benchmarks.md, which otherwise only a full run does
import fs from 'node:fs';
import path from 'node:path';
import { entry, Failure, shown } from '../../scripts/script.mjs';
import { Arguments, commonDefaults, conclude, resultFile, takeCommon } from '../arguments.mjs';
import { ensureEnvironments } from '../environment.mjs';
import { machineLimits, machineTable } from '../machine.mjs';
import { workloadFolder } from '../paths.mjs';
import { say } from '../run.mjs';
import { loaders, quick, workloadName, writers } from './catalogue.mjs';
import { goals, markdown } from './report.mjs';
import { LoaderRun } from './run.mjs';

/** @typedef {import('./report.mjs').Result} Result */
/** @typedef {import('./run.mjs').Job['part']} Part */

const usage =
  'npm run bench:loader -- [--quick] [--only PART]... [--loaders A,B] [--rounds N] [--seconds S] [--repeats N] [--disturbed CORES] [--data DIR] [--docs] | --report FILE';

/** @type {readonly Part[]} */
const parts = ['loader', 'transform', 'order', 'limits'];

/** A quick run begins no row after this. */
const quickSecondsMax = 100;
const quickSecondsPerRow = 0.5;

/** @param {string[]} args */
function parse(args) {
  const options = {
    ...commonDefaults,
    only: /** @type {Part[]} */ ([]),
    loaders: /** @type {string[] | undefined} */ (undefined),
    report: /** @type {string | undefined} */ (undefined),
  };
  const rest = new Arguments(args, usage);
  for (let arg = rest.next(); arg !== undefined; arg = rest.next()) {
    if (takeCommon(arg, rest, options)) continue;
    if (arg === '--only') {
      const part = /** @type {Part} */ (rest.value(arg));
      if (!parts.includes(part)) throw new Failure(`there is no part ${part}`, parts.join(' '));
      options.only.push(part);
    } else if (arg === '--loaders') {
      const known = [...new Set(loaders.map(({ name }) => name)), 'limits', 'order'];
      options.loaders = rest.names(arg, known, 'loader');
    } else if (arg === '--report') options.report = rest.value(arg);
    else throw new Failure(`npm run bench:loader does not know ${arg}`, usage);
  }
  return options;
}

/** @param {ReturnType<typeof parse>} options */
async function bench(options) {
  const { isQuick, data, only } = options;
  const isFull = !isQuick && only.length === 0 && options.loaders === undefined;
  if (!fs.existsSync(path.join(workloadFolder(data, workloadName), 'workload.json'))) {
    throw new Failure(
      `there is no ${workloadName} in ${shown(data)}`,
      'Make it with: npm run bench:prepare',
    );
  }
  const isWanted = (/** @type {string} */ name) =>
    options.loaders?.includes(name) ?? (isQuick ? quick.loaders.includes(name) : true);
  const isPartWanted = (/** @type {Part} */ part) => only.length === 0 || only.includes(part);
  // What is installed is decided by what is wanted: a quick run asks for few packages.
  const wantsRuntime = (/** @type {string} */ runtime) =>
    runtime !== 'node' && // the npm peers of the other bench: no loader needs them
    loaders.some((each) => {
      if (!isWanted(each.name) || !isPartWanted(each.part)) return false;
      if (isQuick && each.runtime === 'loaders') return false;
      const writer = each.store === null ? undefined : writers[each.store];
      return each.runtime === runtime || writer?.runtime === runtime;
    });
  const environments = await ensureEnvironments(wantsRuntime);
  const startMs = performance.now();
  const settings = {
    ...{ data, isWanted, isPartWanted, isQuick },
    rounds: options.rounds ?? (isQuick ? 1 : 3),
    seconds: options.seconds ?? (isQuick ? quickSecondsPerRow : 3),
    repeats: options.repeats ?? (isQuick ? 0 : 2),
    disturbedCores: options.disturbedCores,
    deadlineMs: isQuick ? startMs + quickSecondsMax * 1000 : Number.POSITIVE_INFINITY,
  };
  const run = new LoaderRun(settings, environments);
  const there = await run.ask();

  const { date, folder, name, save: saveResult } = resultFile('loader-');
  /** @type {Result} */
  const result = {
    date,
    machine: machineTable(folder),
    machineLimits: machineLimits(path.join(workloadFolder(data, workloadName), 'records.npy')),
    options: { ...settings, data: undefined, deadlineMs: undefined },
    facts: run.facts,
    versions: run.versions,
    samples: run.samples,
    missing: run.missing,
  };
  const save = () => saveResult(result);
  await run.measure(there, save);
  save();
  say(`\n${name}`);
  tell(result, isFull || options.docs);
  say(`${((performance.now() - startMs) / 1000).toFixed(0)} s`);
}

/** @param {Result} result @param {boolean} intoDocs */
function tell(result, intoDocs) {
  const docs = { name: /** @type {const} */ ('bench:loader'), markdown: () => markdown(result) };
  conclude(goals(result), result.missing, intoDocs ? docs : undefined);
}

await entry(import.meta, async (args) => {
  const options = parse(args);
  if (options.report !== undefined) {
    tell(JSON.parse(fs.readFileSync(options.report, 'utf8')), true);
  } else await bench(options);
  return 0;
});
