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
import { writeDocs } from '../docs.mjs';
import { ensureEnvironments } from '../environment.mjs';
import { machineLimits, machineTable } from '../machine.mjs';
import { dataFolder, inBench, workloadFolder } from '../paths.mjs';
import { goalLines, grouped } from '../report.mjs';
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
    isQuick: false,
    only: /** @type {Part[]} */ ([]),
    loaders: /** @type {string[] | undefined} */ (undefined),
    rounds: /** @type {number | undefined} */ (undefined),
    seconds: /** @type {number | undefined} */ (undefined),
    repeats: /** @type {number | undefined} */ (undefined),
    disturbedCores: 0.15,
    data: dataFolder,
    docs: false,
    report: /** @type {string | undefined} */ (undefined),
  };
  const rest = [...args];
  const value = (/** @type {string} */ name) => {
    const next = rest.shift();
    if (next === undefined || next.startsWith('--')) {
      throw new Failure(`${name} wants a value`, usage);
    }
    return next;
  };
  const number = (/** @type {string} */ name) => {
    const text = value(name);
    if (!/^\d+(\.\d+)?$/.test(text)) throw new Failure(`${name} ${text} is no number`, usage);
    return Number(text);
  };
  for (let arg = rest.shift(); arg !== undefined; arg = rest.shift()) {
    if (arg === '--quick') options.isQuick = true;
    else if (arg === '--docs') options.docs = true;
    else if (arg === '--only') {
      const part = /** @type {Part} */ (value(arg));
      if (!parts.includes(part)) throw new Failure(`there is no part ${part}`, parts.join(' '));
      options.only.push(part);
    } else if (arg === '--loaders') {
      options.loaders = value(arg).split(',');
      const known = [...new Set(loaders.map(({ name }) => name)), 'limits', 'order'];
      const strange = options.loaders.filter((name) => !known.includes(name));
      if (strange.length > 0) throw new Failure(`there is no loader ${strange}`, known.join(', '));
    } else if (arg === '--rounds') options.rounds = Math.max(1, Math.floor(number(arg)));
    else if (arg === '--seconds') options.seconds = number(arg);
    else if (arg === '--repeats') options.repeats = Math.floor(number(arg));
    else if (arg === '--disturbed') options.disturbedCores = number(arg);
    else if (arg === '--data') options.data = path.resolve(value(arg));
    else if (arg === '--report') options.report = value(arg);
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

  const folder = inBench('results');
  fs.mkdirSync(folder, { recursive: true });
  const date = new Date().toISOString();
  const file = path.join(folder, `loader-${date.replaceAll(/[:.]/g, '-')}.json`);
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
  const save = () => fs.writeFileSync(file, `${JSON.stringify(result, null, 1)}\n`);
  await run.measure(there, save);
  save();
  say(`\n${shown(file)}`);
  conclude(result, isFull || options.docs);
  say(`${((performance.now() - startMs) / 1000).toFixed(0)} s`);
}

/** @param {Result} result @param {boolean} intoDocs */
function conclude(result, intoDocs) {
  const reached = goals(result);
  for (const line of goalLines(reached)) say(line);
  for (const { what, reason } of grouped(result.missing)) say(`not measured: ${what}: ${reason}`);
  const of = (/** @type {string} */ verdict) =>
    reached.filter((goal) => goal.verdict === verdict).length;
  say(`goals: ${of('yes')} reached, ${of('NO')} not reached, ${of('not measured')} not measured`);
  if (intoDocs) writeDocs('bench:loader', markdown(result));
}

await entry(import.meta, async (args) => {
  const options = parse(args);
  if (options.report !== undefined) {
    conclude(JSON.parse(fs.readFileSync(options.report, 'utf8')), true);
  } else await bench(options);
  return 0;
});
