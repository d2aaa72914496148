// @ts-check
// Parts are built by processes of their own, read as one, and a stream over them is shared by four ranks;
// in the middle of another run the world grows from three ranks to four.
//
//     npm run example -- ranks
//
// Exit code 1 when anything differs from what one process reads.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { makeSet, partName } from 'loaderx';
import { recordCount } from './build.mjs';

const parts = 7;
const steps = 20;
const program = (/** @type {string} */ name) => path.join(import.meta.dirname, name);

/**
 * Runs a program of this folder.
 *
 * @param {string} name
 * @param {readonly (string | number)[]} args
 * @param {Record<string, string>} env
 * @returns {Promise<void>}
 */
function run(name, args, env = {}) {
  const child = spawn(process.execPath, [program(name), ...args.map(String)], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`${name} ended with ${code}`));
    });
  });
}

/** All ranks of a world, as a launcher would start them. @param {number} world @param {readonly (string | number)[]} args */
async function runWorld(world, args) {
  const ranks = Array.from({ length: world }, (_, rank) => rank);
  await Promise.all(
    ranks.map((rank) => run('rank.mjs', args, { RANK: String(rank), WORLD_SIZE: String(world) })),
  );
}

/** What a world wrote of a step, put together. @param {string} folder @param {number} world @param {number} step */
function together(folder, world, step) {
  const ranks = Array.from({ length: world }, (_, rank) => rank);
  return Buffer.concat(
    ranks.map((rank) => fs.readFileSync(path.join(folder, `step-${step}.rank-${world}-${rank}`))),
  );
}

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-ranks-'));
try {
  const built = path.join(folder, 'built');
  const out = path.join(folder, 'out');
  fs.mkdirSync(out);
  await Promise.all(
    Array.from({ length: parts }, (_, part) => run('build.mjs', [built, part, parts])),
  );
  const set = path.join(built, 'record.json');
  const places = Array.from({ length: parts }, (_, part) =>
    path.join(built, partName({ part, of: parts }), 'record'),
  );
  const { records } = await makeSet(places, set);
  console.log(`${parts} processes built ${records} records in ${parts} parts`);
  if (records !== recordCount) throw new Error(`${recordCount} records were wanted`);

  await runWorld(1, [set, out, 0, steps]);
  await runWorld(4, [set, out, 0, steps]);
  const grown = path.join(folder, 'grown');
  fs.mkdirSync(grown);
  await runWorld(3, [set, grown, 0, steps / 2]);
  await runWorld(4, [set, grown, steps / 2, steps]);

  let bytes = 0;
  for (let step = 0; step < steps; step += 1) {
    const alone = together(out, 1, step);
    const shared = together(out, 4, step);
    const afterGrowth = together(grown, step < steps / 2 ? 3 : 4, step);
    if (!alone.equals(shared)) throw new Error(`step ${step}: four ranks read something else`);
    if (!alone.equals(afterGrowth)) throw new Error(`step ${step}: differs after the world grew`);
    bytes += alone.byteLength;
  }
  console.log(`${steps} batches, ${bytes} bytes: four ranks together read what one process reads`);
  console.log(`the world grew from 3 to 4 ranks at step ${steps / 2}, and the stream went on`);
} finally {
  fs.rmSync(folder, { recursive: true, force: true });
}
