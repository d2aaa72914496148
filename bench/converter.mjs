// @ts-check
// Rows a second from a Parquet file to containers, beside Python's converter on the same machine at the
// same time:
//
//     npm run bench:converter -- [--rows N] [--rounds N] [--codec raw|zstd] [--only WORKLOAD]...
//
// Each round runs both once, in processes of their own, first the one and then the other; what is shown is
// the median. A run counts from the file to the closed containers: for Python that is loading the file into
// its Arrow cache, which is empty, and converting; the second figure is its converting alone. Memory is the
// peak above what the process had before.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from '../scripts/build.mjs';
import { ask } from '../scripts/child.mjs';
import { ensurePythonEnvironment } from '../scripts/python-environment.mjs';
import { entry, Failure, inRoot } from '../scripts/script.mjs';
import { inBench } from './paths.mjs';

const workloads = ['numbers', 'tokens', 'vectors', 'arrays', 'pairs', 'pictures'];

/** Pictures take long: of them there are so many times fewer. */
const picturesShare = 20;

/** @param {string[]} args */
function parse(args) {
  const options = { rows: 60_000, rounds: 5, codec: 'raw', only: /** @type {string[]} */ ([]) };
  for (let index = 0; index < args.length; index += 2) {
    const [name, value = ''] = [args[index], args[index + 1]];
    if (name === '--rows') options.rows = Number(value);
    else if (name === '--rounds') options.rounds = Number(value);
    else if (name === '--codec') options.codec = value;
    else if (name === '--only' && workloads.includes(value)) options.only.push(value);
    else throw new Failure(`the bench does not know ${name} ${value}`);
  }
  return options;
}

/** @param {readonly number[]} values */
function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

/** @param {string} program @param {string[]} args @param {NodeJS.ProcessEnv} env */
function measured(program, args, env) {
  const answer = ask(program, args, { env });
  if (!answer.ok) throw new Failure(`${args[0]} failed`, answer.output);
  return /** @type {{seconds: number, convertSeconds?: number, memoryBytes: number}} */ (
    JSON.parse(answer.stdout.trim().split('\n').at(-1) ?? '')
  );
}

await entry(import.meta, async (args) => {
  const { rows: wanted, rounds, codec, only } = parse(args);
  await build(await bootstrap());
  const environment = ensurePythonEnvironment({
    name: 'converter-python',
    parent: inBench(),
    versionMin: [3, 10],
    pinned: inRoot('bench', 'converter', 'requirements.txt'),
    probe: 'import datasets, loaderx.converter',
  });
  if (environment === null) throw new Failure('there is no Python 3.10');
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-bench-converter-'));
  const python = inRoot('bench', 'converter', 'python.py');
  const ours = inRoot('bench', 'converter', 'ours.mjs');
  const mebibytes = (/** @type {number} */ bytes) => `${Math.round(bytes / 2 ** 20)} MiB`;
  process.stdout.write(
    `${wanted} rows, of pictures ${Math.ceil(wanted / picturesShare)}, codec ${codec}, median of ${rounds} rounds\n`,
  );
  try {
    for (const workload of only.length > 0 ? only : workloads) {
      const rows = workload === 'pictures' ? Math.ceil(wanted / picturesShare) : wanted;
      const file = path.join(folder, `${workload}.parquet`);
      const made = ask(environment.python, [python, 'prepare', workload, String(rows), file], {
        env: environment.env,
      });
      if (!made.ok) throw new Failure(`${workload} cannot be made`, made.output);
      /** @type {ReturnType<typeof measured>[]} */
      const own = [];
      /** @type {ReturnType<typeof measured>[]} */
      const theirs = [];
      for (let round = 0; round < rounds; round += 1) {
        const out = path.join(folder, 'out');
        const cache = path.join(folder, 'cache');
        own.push(measured(process.execPath, [ours, file, out, codec], {}));
        fs.rmSync(out, { recursive: true });
        const options = [python, 'convert', file, out, codec, cache];
        theirs.push(measured(environment.python, options, environment.env));
        for (const each of [out, cache]) fs.rmSync(each, { recursive: true, force: true });
      }
      const rate = (/** @type {readonly number[]} */ seconds) => rows / median(seconds);
      const us = rate(own.map(({ seconds }) => seconds));
      const them = rate(theirs.map(({ seconds }) => seconds));
      const alone = rate(theirs.map(({ convertSeconds = 0 }) => convertSeconds));
      const memory = (/** @type {typeof own} */ runs) =>
        mebibytes(median(runs.map(({ memoryBytes }) => memoryBytes)));
      process.stdout.write(
        `${workload.padEnd(8)} ours ${Math.round(us)} rows/s, ${memory(own)}; ` +
          `Python ${Math.round(them)} rows/s, ${memory(theirs)}, its converting alone ${Math.round(alone)}; ` +
          `${(us / them).toFixed(1)} × and ${(us / alone).toFixed(1)} ×\n`,
      );
      fs.rmSync(file);
    }
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
  return 0;
});
