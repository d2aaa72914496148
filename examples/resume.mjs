// @ts-check
// A run is killed in the middle and goes on as if nothing had been: the whole checkpoint of the data is one
// integer, `loader.step`. The run writes down which records it saw, so that this can be looked at.
//
//     npm run example -- resume
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DataLoader, Dense, ndarray } from 'loaderx';

const steps = 40;

/** "Trains": a checkpoint after each fifth step. @param {string} folder @param {string} name @param {number} dieAt */
async function train(folder, name, dieAt) {
  const file = path.join(folder, `${name}.json`);
  /** @type {{step: number, seen: number[]}} */
  const saved = fs.existsSync(file)
    ? JSON.parse(fs.readFileSync(file, 'utf8'))
    : { step: 0, seen: [] };
  const id = Dense.open(path.join(folder, 'id'), { dtype: 'uint32', itemShape: [] });
  const loader = new DataLoader(
    { id },
    { batchSize: 32, mode: 'cyclic', seed: 9, step: saved.step },
  );
  for await (const batch of loader) {
    saved.seen.push(...batch.id.data);
    batch[Symbol.dispose]();
    if (loader.step === dieAt) process.kill(process.pid, 'SIGKILL');
    if (loader.step % 5 === 0) {
      fs.writeFileSync(`${file}.new`, JSON.stringify({ ...saved, step: loader.step }));
      fs.renameSync(`${file}.new`, file);
    }
    if (loader.step >= steps) break;
  }
  await id.close();
}

if (process.argv.length > 2) {
  const [folder = '', name = '', dieAt] = process.argv.slice(2);
  await train(folder, name, Number(dieAt));
} else {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-resume-'));
  const writer = Dense.create(path.join(folder, 'id'), {
    ...{ dtype: 'uint32', itemShape: [], codec: 'raw' },
  });
  await writer.append(
    ndarray(
      'uint32',
      [1000],
      Uint32Array.from({ length: 1000 }, (_, i) => i),
    ),
  );
  await writer.close();

  const run = (/** @type {string} */ name, dieAt = 0) =>
    spawnSync(process.execPath, [import.meta.filename, folder, name, String(dieAt)], {
      stdio: ['ignore', 'inherit', 'inherit'],
    });
  const seen = (/** @type {string} */ name) =>
    JSON.parse(fs.readFileSync(path.join(folder, `${name}.json`), 'utf8'));

  run('whole');
  for (const dieAt of [13, 28]) {
    // Where there are no signals, being killed is an exit code.
    assert.notEqual(run('broken', dieAt).status, 0);
    console.log(`killed at step ${dieAt}, the checkpoint is of step ${seen('broken').step}`);
  }
  run('broken');
  assert.deepEqual(seen('broken'), seen('whole'));
  console.log(
    `${seen('whole').seen.length} records in ${steps} steps: the same as without a break`,
  );
  fs.rmSync(folder, { recursive: true });
}
