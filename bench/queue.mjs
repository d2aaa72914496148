// @ts-check
// What a queue costs beside the work: a conversion in 8 parts by loaderx/bullmq, against the same processes started
// directly, two at a time both. The fixed cost is that of 8 parts of next to nothing.
//
//     node bench/queue.mjs [--rows N] [--rounds N]
//
// Wants redis-server and a quiet machine. Rounds alternate; the median of each is compared, and the claim is
//
//     queue  ≤  direct × 1.05 + (queue - direct of next to nothing)
import { fork, spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { freePort, numbersFile } from '../scripts/distributed/scene.mjs';
import { rowsOfFile } from '../test/support/parquet-file.mjs';

/** @type {typeof import('../ts/bullmq.js')} */
const { enqueueConversion, worker } = await import(
  new URL('../dist/bullmq.js', import.meta.url).href
);

const { values } = parseArgs({
  options: {
    rows: { type: 'string', default: '16000000' },
    rounds: { type: 'string', default: '5' },
  },
});
const rows = Number(values.rows);
const rounds = Number(values.rounds);
const parts = 8;
const concurrency = 2;
const cli = path.resolve(import.meta.dirname, '..', 'dist', 'cli.js');
const concat = path.resolve(import.meta.dirname, '..', 'examples', 'concat-parts.mjs');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-queue-'));
const port = await freePort();
const redis = spawn(
  'redis-server',
  [
    ...['--bind', '127.0.0.1', '--port', String(port), '--dir', folder, '--save', ''],
    ...['--maxmemory-policy', 'noeviction'],
  ],
  { stdio: 'ignore' },
);
const connection = { port };

/** @param {string[]} args @returns {Promise<void>} */
const run = (args) =>
  new Promise((resolve, reject) => {
    const [program = '', ...rest] = args;
    const child = fork(program, rest, { stdio: 'ignore' });
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${args} ${code}`))));
  });

/** @param {string} source @param {string} target */
async function direct(source, target) {
  const waiting = Array.from({ length: parts }, (_, part) => part);
  const work = async () => {
    for (let part = waiting.shift(); part !== undefined; part = waiting.shift()) {
      const words = ['convert', source, target, '--codec', 'zstd', '--integrity'];
      await run([cli, ...words, '--part', `${part}/${parts}`]);
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  await run([concat, target, String(parts)]);
}

/** @param {string} source @param {string} target */
async function queued(source, target) {
  const spec = { source, target, parts, codec: /** @type {const} */ ('zstd'), integrity: true };
  const conversion = await enqueueConversion(spec, { connection });
  await conversion.done({ pollMs: 20 });
  await conversion.remove();
  await conversion.close();
}

/** @param {readonly number[]} ms */
const median = (ms) => ms.toSorted((a, b) => a - b)[Math.floor(ms.length / 2)] ?? Number.NaN;

/** @param {string} source */
async function compare(source) {
  /** @type {{ direct: number[], queued: number[] }} */
  const times = { direct: [], queued: [] };
  for (let round = 0; round < rounds; round += 1) {
    for (const [name, build] of /** @type {const} */ ([
      ['direct', direct],
      ['queued', queued],
    ])) {
      const target = path.join(folder, 'out');
      const startMs = performance.now();
      await build(source, target);
      times[name].push(performance.now() - startMs);
      fs.rmSync(target, { recursive: true });
    }
  }
  return { direct: median(times.direct), queued: median(times.queued) };
}

/** A folder of Parquet files. @param {string} name @param {number} count */
async function sourceOf(name, count) {
  const source = path.join(folder, name);
  fs.mkdirSync(source);
  for (let file = 0; file * rowsOfFile < count; file += 1) {
    const at = path.join(source, `train-${String(file).padStart(5, '0')}.parquet`);
    fs.writeFileSync(at, numbersFile(file + 1));
  }
  return source;
}

await wait(500);
const crew = await worker({ connection, concurrency });
try {
  const fixed = await compare(await sourceOf('little', 8));
  const whole = await compare(await sourceOf('whole', rows));
  const fixedMs = fixed.queued - fixed.direct;
  const limitMs = whole.direct * 1.05 + Math.max(0, fixedMs);
  const text = (/** @type {number} */ ms) => `${(ms / 1000).toFixed(2)} s`;
  console.log(`next to nothing   direct ${text(fixed.direct)}   queue ${text(fixed.queued)}`);
  console.log(`${rows} rows   direct ${text(whole.direct)}   queue ${text(whole.queued)}`);
  console.log(`limit ${text(limitMs)}: ${whole.queued <= limitMs ? 'kept' : 'PASSED'}`);
} finally {
  await crew.close();
  redis.kill('SIGTERM');
  fs.rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
}
