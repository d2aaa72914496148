// @ts-check
// What is not a row of a table: the price of a call, index sequences, the event loop, memory, opening,
// small records, cold files, a busy pool, integrity files. Each probe is a process of its own, as backends are.
import fs from 'node:fs';
import path from 'node:path';
import { root } from '../scripts/script.mjs';
import { Backend } from './client.mjs';
import { inBench, workloadFolder } from './paths.mjs';
import { messageOf, say } from './run.mjs';

/** @typedef {import('./run.mjs').Run} Run */
/** @typedef {import('./catalogue.mjs').Entry['runtime']} Runtime */

const batches = [256, 1024, 8192];
const coldRounds = 3;
const memoryModes = [
  'await-disposed',
  'await-dropped',
  'await-out',
  'sync-disposed',
  'sync-dropped',
  'sync-out',
];

/**
 * @typedef {object} Probe
 * @property {string} name of the result
 * @property {string} file in probes/
 * @property {Runtime} [runtime]
 * @property {Record<string, unknown>} [parameters]
 * @property {NodeJS.ProcessEnv} [env]
 * @property {'vision_dense' | 'tokens_dense' | 'mnist_dense'} [workload]
 * @property {boolean} [prepares] its container is made by a process of its own
 */

/** @returns {Probe[]} */
function probes() {
  const photos = /** @type {const} */ ('vision_dense');
  const tokens = /** @type {const} */ ('tokens_dense');
  /** @type {Probe[]} */
  const list = [
    { name: 'one record', file: 'one-record.mjs' },
    { name: 'sampler', file: 'sampler.mjs', parameters: { batches } },
    { name: 'sampler python', file: 'sampler.py', runtime: 'loaderx-2.4', parameters: { batches } },
    { name: 'open', file: 'open.mjs', prepares: true },
    { name: 'small records', file: 'small-records.mjs', prepares: true },
  ];
  for (const kind of ['disposed', 'dropped']) {
    for (const codec of ['raw', 'zstd']) {
      const name = `event loop ${codec} ${kind}`;
      list.push({
        ...{ name, file: 'event-loop.mjs', workload: photos },
        ...{ prepares: true, parameters: { codec, kind } },
      });
    }
  }
  for (const [workload, codec] of /** @type {const} */ ([
    [photos, 'raw'],
    [photos, 'zstd'],
    [tokens, 'raw'],
  ])) {
    for (const mode of memoryModes) {
      const name = `memory ${workload} ${codec} ${mode}`;
      list.push({
        name,
        file: 'memory.mjs',
        workload,
        prepares: true,
        parameters: { codec, mode },
      });
    }
  }
  for (let round = 0; round < coldRounds; round += 1) {
    for (const workload of [photos, tokens]) {
      for (const codec of ['raw', 'zstd']) {
        for (const way of ['map', 'reads']) {
          const name = `cold ${workload} ${codec} ${way} ${round}`;
          const env = way === 'map' ? {} : { LOADERX_MAP: '0' };
          const parameters = { codec, round };
          list.push({ name, file: 'cold.mjs', workload, prepares: true, parameters, env });
        }
      }
    }
  }
  for (const workload of [photos, tokens]) {
    list.push({
      name: `busy pool ${workload}`,
      file: 'busy-pool.mjs',
      workload,
      prepares: true,
      parameters: { codec: 'raw' },
      env: { UV_THREADPOOL_SIZE: '1' },
    });
  }
  for (const workload of [photos, tokens, /** @type {const} */ ('mnist_dense'), undefined]) {
    for (const codec of ['raw', 'zstd']) {
      const name = `integrity ${workload ?? 'small'} ${codec}`;
      const what = workload === undefined ? {} : { workload };
      list.push({ name, file: 'integrity.mjs', prepares: true, parameters: { codec }, ...what });
    }
  }
  return list;
}

/**
 * @param {Run} run
 * @param {object} options
 * @param {string} options.data
 * @param {number} options.seconds
 * @param {string | undefined} options.only probes whose name begins so
 * @param {number} options.repeats of probes that other programs disturbed
 * @param {number} options.disturbedCores
 * @returns {Promise<Record<string, any>>} by name; `{missing}` where a probe cannot be run
 */
export async function measureExtras(run, options) {
  const { data, seconds, only } = options;
  const target = inBench('stores', 'extras');
  fs.rmSync(target, { recursive: true, force: true });
  fs.mkdirSync(target, { recursive: true });
  /** @type {Record<string, any>} */
  const results = {};
  /** Containers that are made. @type {Set<string>} */
  const prepared = new Set();
  for (const probe of probes()) {
    if (only !== undefined && !probe.name.startsWith(only)) continue;
    const { name, file, runtime = 'node', env = {} } = probe;
    const command = run.commandFor(runtime, path.join(root, 'bench', 'probes', file));
    if ('missing' in command) {
      results[name] = command;
      say(`  missing: ${name}: ${command.missing}`);
      continue;
    }
    const parameters = {
      target,
      seconds,
      ...probe.parameters,
      ...(probe.workload === undefined ? {} : { workload: workloadFolder(data, probe.workload) }),
    };
    const start = () => new Backend({ ...command, env: { ...command.env, ...env } });
    try {
      const key = [file, probe.workload, probe.parameters?.codec].join(' ');
      if (probe.prepares && !prepared.has(key)) {
        const maker = start();
        await maker.call('prepare', parameters).finally(() => maker.end());
        prepared.add(key);
      }
      results[name] = await leastDisturbed(start, parameters, options);
      say(`  ${name}: ${JSON.stringify(rounded(results[name]))}`);
    } catch (error) {
      results[name] = { missing: messageOf(error) };
      say(`  missing: ${name}: ${messageOf(error)}`);
    }
  }
  fs.rmSync(target, { recursive: true, force: true });
  return results;
}

/**
 * @param {() => Backend} start
 * @param {Record<string, unknown>} parameters
 * @param {{repeats: number, disturbedCores: number}} options
 */
async function leastDisturbed(start, parameters, { repeats, disturbedCores }) {
  /** @type {any} */
  let best;
  for (let attempt = 0; attempt <= repeats; attempt += 1) {
    const backend = start();
    const { result, foreign } = await backend
      .call('measure', parameters)
      .finally(() => backend.end());
    if (best === undefined || (foreign ?? 0) < (best.foreignCores ?? 0)) {
      best = { ...result, foreignCores: foreign };
    }
    if ((foreign ?? 0) <= disturbedCores) break;
  }
  return best;
}

/** @param {any} value @returns {any} */
function rounded(value) {
  if (typeof value === 'number') return Number(value.toPrecision(3));
  if (Array.isArray(value)) return value.map(rounded);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, rounded(each)]));
}
