// @ts-check
// Three containers that are one data set: record i of each belongs together, whatever its kind, dtype and
// codec, and a loader gives all three at the same ids.
//
//     npm run example -- multi-stream
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DataLoader, Dense, ndarray, Ragged } from 'loaderx';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-streams-'));
const count = 2000;
const place = (/** @type {string} */ name) => path.join(folder, name);

const picture = Dense.create(place('picture'), {
  ...{ dtype: 'uint8', itemShape: [16, 16, 3], codec: 'zstd' },
});
const label = Dense.create(place('label'), { dtype: 'int64', itemShape: [], codec: 'raw' });
const words = Ragged.create(place('words'), { dtype: 'int32', ndim: 1, codec: 'zstd' });
for (let first = 0; first < count; first += 500) {
  const ids = Array.from({ length: 500 }, (_, at) => first + at);
  const pixels = new Uint8Array(500 * 16 * 16 * 3);
  ids.forEach((id, at) => {
    pixels.fill(id % 251, at * 768, (at + 1) * 768);
  });
  await Promise.all([
    picture.append(ndarray('uint8', [500, 16, 16, 3], pixels)),
    label.append(ndarray('int64', [500], BigInt64Array.from(ids, BigInt))),
    words.append(
      ids.map((id) => ndarray('int32', [1 + (id % 9)], new Int32Array(1 + (id % 9)).fill(id))),
    ),
  ]);
}
for (const writer of [picture, label, words]) await writer.close();

const streams = {
  picture: Dense.open(place('picture'), { dtype: 'uint8', itemShape: [16, 16, 3] }),
  label: Dense.open(place('label'), { dtype: 'int64', itemShape: [] }),
  words: Ragged.open(place('words'), { dtype: 'int32', ndim: 1 }),
};
let records = 0;
for await (const batch of new DataLoader(streams, { batchSize: 64, seed: 5, once: true })) {
  batch.label.data.forEach((id, at) => {
    assert.equal(batch.picture.data[at * 768], Number(id) % 251);
    assert.deepEqual(new Set(batch.words.at(at).data), new Set([Number(id)]));
  });
  if (records === 0) {
    console.log(
      `picture [${batch.picture.shape}], label [${batch.label.shape}], words ${batch.words.length}`,
    );
  }
  records += batch.label.data.length;
  batch[Symbol.dispose]();
}
console.log(`${records} records: picture, label and words belong together`);
assert.equal(records, count);
for (const reader of Object.values(streams)) await reader.close();
fs.rmSync(folder, { recursive: true });
