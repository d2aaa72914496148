// @ts-check
// Writes a container, reads batches of it in any order, and looks at it.
//
//     npm run example -- quickstart
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Dense, info, ndarray, verify } from 'loaderx';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-quickstart-'));
const place = path.join(folder, 'squares');

// Record i is [i, i²].
const writer = Dense.create(place, { dtype: 'uint32', itemShape: [2], codec: 'zstd' });
for (let first = 0; first < 10_000; first += 1000) {
  const data = new Uint32Array(2000);
  for (let at = 0; at < 1000; at += 1) data.set([first + at, (first + at) ** 2], 2 * at);
  await writer.append(ndarray('uint32', [1000, 2], data));
}
await writer.close(); // before this there is nothing at the path

const reader = Dense.open(place, { dtype: 'uint32', itemShape: [2] });
const batch = await reader.gather([9999, 3, 3, 70]);
console.log(`records 9999, 3, 3, 70: [${batch.data}], shape [${batch.shape}]`);
assert.deepEqual([...batch.data], [9999, 9999 ** 2, 3, 9, 3, 9, 70, 4900]);

let sum = 0;
for await (const part of reader.batches(256)) sum += part.data.length / 2;
console.log(`${sum} records read in order`);
assert.equal(sum, reader.length);
await reader.close();

const { codec, records, diskBytes } = await info(place);
console.log(`${records} records, ${codec}, ${diskBytes} bytes on the disk`);
assert.equal((await verify(place)).ok, true);
fs.rmSync(folder, { recursive: true });
