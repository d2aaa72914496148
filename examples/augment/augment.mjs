// @ts-check
// Augmentation in worker threads. It draws its random numbers from the step and the record's place in the
// batch, so one thread and four give the same pictures.
//
//     npm run example -- augment
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DataLoader, Dense, ndarray } from 'loaderx';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-augment-'));
const place = path.join(folder, 'picture');
const count = 512;
const pixels = Uint8Array.from({ length: count * 32 * 32 * 3 }, (_, at) => (at * 7) % 253);
const writer = Dense.create(place, { dtype: 'uint8', itemShape: [32, 32, 3], codec: 'zstd' });
await writer.append(ndarray('uint8', [count, 32, 32, 3], pixels));
await writer.close();

/** A hash of the first 20 batches. @param {number} transformWorkers */
async function run(transformWorkers) {
  const picture = Dense.open(place, { dtype: 'uint8', itemShape: [32, 32, 3] });
  const transform = new URL('./crop.mjs', import.meta.url);
  const loader = new DataLoader(
    { picture },
    { batchSize: 64, seed: 2, transform, transformWorkers },
  );
  const hash = createHash('sha256');
  // A module's result is whatever it returns: its type is said here.
  const pictures = /** @type {AsyncIterable<import('loaderx').NdArray<'float32'>>} */ (
    /** @type {unknown} */ (loader)
  );
  for await (const { data, shape } of pictures) {
    if (loader.step === 1) console.log(`${transformWorkers} workers: float32 [${shape}]`);
    hash.update(data);
    if (loader.step === 20) break;
  }
  await picture.close();
  return hash.digest('hex');
}

const [one, four, here] = [await run(1), await run(4), await run(0)];
assert.equal(one, four);
assert.equal(one, here);
console.log('one worker, four, and none: the same pictures');
fs.rmSync(folder, { recursive: true });
