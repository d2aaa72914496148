// @ts-check
// Measures this package beside others, on real data, in one interleaved run. README.md describes the
// method, the workloads and the protocol that backends speak.
//
//     npm run bench                            everything: about an hour; tables into docs/benchmarks.md
//     npm run bench -- --quick                 three minutes: loaderx 2.4.6, NumPy's map and LMDB beside ours
//     npm run bench -- --only tokens_dense     one workload, every backend; may be repeated
//     npm run bench -- --extras [NAME]         the probes alone, or those whose name begins so
//     npm run bench -- --report FILE...        tables of earlier results again; several are merged
//
//     --backends a,b   these only ('limits' is one)        --data DIR     instead of .bench/data
//     --rounds N       default 3                           --seconds S    default 2
//     --write          append only                         --gather       gather only
//     --repeats N      of disturbed rows, default 2        --disturbed C  cores, default 0.15
//     --docs           write docs/benchmarks.md, which otherwise only a full run does
import fs from 'node:fs';
import path from 'node:path';
import { entry, Failure, shown } from '../scripts/script.mjs';
import { Arguments, commonDefaults, conclude, resultFile, takeCommon } from './arguments.mjs';
import { entries, quick, workloads } from './catalogue.mjs';
import { ensureEnvironments } from './environment.mjs';
import { measureExtras } from './extras.mjs';
import { machineLimits, machineTable } from './machine.mjs';
import { workloadFolder } from './paths.mjs';
import { goals, markdown } from './report.mjs';
import { Run, say } from './run.mjs';

/** @typedef {import('./catalogue.mjs').WorkloadName} WorkloadName */
/** @typedef {import('./report.mjs').Result} Result */

const workloadNames = /** @type {WorkloadName[]} */ (Object.keys(workloads));
const usage =
  'npm run bench -- [--quick] [--only WORKLOAD]... [--backends A,B] [--rounds N] [--seconds S] [--write] [--gather] [--extras [NAME]] [--repeats N] [--disturbed CORES] [--data DIR] [--docs] | --report FILE...';

/** A quick run begins no row after this. */
const quickSecondsMax = 165;
const quickSecondsPerRow = 0.15;

/** @param {string[]} args */
function parse(args) {
  const options = {
    ...commonDefaults,
    only: /** @type {WorkloadName[]} */ ([]),
    backends: /** @type {string[] | undefined} */ (undefined),
    parts: /** @type {Set<'write' | 'gather' | 'extras'>} */ (new Set()),
    extras: /** @type {string | undefined} */ (undefined),
    reports: /** @type {string[]} */ ([]),
  };
  const rest = new Arguments(args, usage);
  for (let arg = rest.next(); arg !== undefined; arg = rest.next()) {
    if (takeCommon(arg, rest, options)) continue;
    if (arg === '--write') options.parts.add('write');
    else if (arg === '--gather') options.parts.add('gather');
    else if (arg === '--extras') {
      options.parts.add('extras');
      options.extras = rest.optional() ?? options.extras;
    } else if (arg === '--only') {
      const name = /** @type {WorkloadName} */ (rest.value(arg));
      if (!workloadNames.includes(name)) {
        throw new Failure(`there is no workload ${name}`, workloadNames.join(' '));
      }
      options.only.push(name);
    } else if (arg === '--backends') {
      const known = [...entries.map(({ name }) => name), 'limits'];
      options.backends = rest.names(arg, known, 'backend');
    } else if (arg === '--report') {
      options.reports.push(rest.value(arg));
      for (let file = rest.optional(); file !== undefined; file = rest.optional()) {
        options.reports.push(file);
      }
    } else throw new Failure(`npm run bench does not know ${arg}`, usage);
  }
  return options;
}

/** @param {ReturnType<typeof parse>} options */
async function bench(options) {
  const startMs = performance.now();
  const { isQuick, data, only, parts } = options;
  const isFull =
    !isQuick && only.length === 0 && options.backends === undefined && parts.size === 0;
  const wants = (/** @type {'write' | 'gather' | 'extras'} */ part) =>
    parts.size === 0 ? part !== 'extras' || isFull : parts.has(part);
  const chosen = only.length === 0 ? workloadNames : only;
  const there = chosen.filter((name) =>
    fs.existsSync(path.join(workloadFolder(data, name), 'workload.json')),
  );
  if (there.length === 0) {
    throw new Failure(
      `there are no workloads in ${shown(data)}`,
      'Make them with: npm run bench:prepare',
    );
  }
  const isWanted = (/** @type {string} */ name) =>
    options.backends?.includes(name) ?? (isQuick ? quick.backends.includes(name) : true);
  const settings = {
    data,
    workloads: there,
    isWanted,
    isQuick,
    writes: wants('write'),
    gathers: wants('gather'),
    rounds: options.rounds ?? 3,
    seconds: options.seconds ?? (isQuick ? quickSecondsPerRow : 2),
    repeats: options.repeats ?? (isQuick ? 0 : 2),
    disturbedCores: options.disturbedCores,
    deadlineMs: isQuick ? startMs + quickSecondsMax * 1000 : Number.POSITIVE_INFINITY,
  };
  // What is installed is decided by what is wanted: a quick run asks for few packages.
  const measuresRows = wants('write') || wants('gather');
  const environments = await ensureEnvironments((name) => {
    if (name === 'loaderx-2.4' && wants('extras')) return true;
    if (!measuresRows) return false;
    if (name === 'gcc') return isWanted('limits');
    if (name === 'node') return entries.some((each) => each.isPeer && isWanted(each.name));
    return entries.some((each) => each.runtime === name && isWanted(each.name));
  });
  const run = new Run(settings, environments);
  const measured = measuresRows ? await run.ask() : [];
  for (const name of chosen) {
    if (!there.includes(name)) {
      run.missing.push({ workload: name, what: 'the workload', reason: 'it is not prepared' });
      say(`  missing: ${name}: it is not prepared`);
    }
  }

  const { date, folder, name, save: saveResult } = resultFile('');
  const first = /** @type {WorkloadName} */ (there[0]);
  const source = ['values.npy', 'records.npy']
    .map((name) => path.join(workloadFolder(data, first), name))
    .find((name) => fs.existsSync(name));
  /** @type {Result} */
  const result = {
    date,
    machine: machineTable(folder),
    machineLimits: source === undefined ? null : machineLimits(source),
    options: { ...settings, data: undefined, deadlineMs: undefined },
    workloads: Object.fromEntries(there.map((name) => [name, run.facts(name)])),
    versions: run.versions,
    samples: run.samples,
    stores: run.stores,
    missing: run.missing,
    extras: {},
  };
  const save = () => saveResult(result);
  if (measuresRows) await run.measure(measured, save);
  if (wants('extras')) {
    result.extras = await measureExtras(run, {
      data,
      seconds: settings.seconds,
      only: options.extras,
      repeats: settings.repeats,
      disturbedCores: settings.disturbedCores,
    });
  }
  save();
  say(`\n${name}`);
  tell(result, isFull || options.docs);
  say(`${((performance.now() - startMs) / 1000).toFixed(0)} s`);
}

/** @param {Result} result @param {boolean} intoDocs */
function tell(result, intoDocs) {
  const docs = { name: /** @type {const} */ ('bench'), markdown: () => markdown(result) };
  conclude(goals(result), result.missing, intoDocs ? docs : undefined);
}

/**
 * Several results as one: of a workload or probe that is in two of them the later file's counts.
 *
 * @param {readonly string[]} files
 * @returns {Result}
 */
function merged(files) {
  /** @type {Result[]} */
  const results = files.map((file) => JSON.parse(fs.readFileSync(file, 'utf8')));
  const last = results.at(-1);
  if (last === undefined) throw new Failure('--report wants a file', usage);
  /** Which result a workload is taken from. @type {Map<string, Result>} */
  const from = new Map();
  for (const result of results) {
    for (const { workload } of result.samples) from.set(workload, result);
  }
  const part = (/** @type {'samples' | 'stores'} */ name) =>
    results.flatMap((result) =>
      /** @type {any[]} */ (result[name]).filter(({ workload }) => from.get(workload) === result),
    );
  const checkouts = [...new Set(results.map(({ machine }) => machine.checkout))];
  return {
    ...last,
    machine: { ...last.machine, checkout: checkouts.join(', ') },
    runs: results.map(({ date, options }) => ({ date, options })),
    workloads: Object.assign({}, ...results.map(({ workloads: each }) => each)),
    versions: Object.assign({}, ...results.map(({ versions }) => versions)),
    extras: Object.assign({}, ...results.map(({ extras }) => extras)),
    missing: results.flatMap(({ missing }) => missing),
    samples: part('samples'),
    stores: part('stores'),
  };
}

await entry(import.meta, async (args) => {
  const options = parse(args);
  if (options.reports.length > 0) tell(merged(options.reports), true);
  else await bench(options);
  return 0;
});
