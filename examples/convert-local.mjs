// @ts-check
// Files that lie here become containers: a table and an array are read together as the columns of one data
// set, and nothing appears unless all of it does.
//
//     npm run example -- convert-local
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DataLoader, Dense, LoaderxError } from 'loaderx';
import { importFiles } from 'loaderx/importers';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-local-'));
const inFolder = (/** @type {string} */ name) => path.join(folder, name);

// What somebody might have: measurements as CSV, and pictures as NumPy saves them, float32[300, 4, 4].
const rows = Array.from({ length: 300 }, (_, i) => `${i},${i / 4},${i % 3 === 0}`);
fs.writeFileSync(inFolder('table.csv'), `id,weight,is_red\n${rows.join('\n')}\n`);
const header = `{'descr': '<f4', 'fortran_order': False, 'shape': (300, 4, 4), }`.padEnd(117);
const pictures = Float32Array.from({ length: 300 * 16 }, (_, at) => Math.floor(at / 16));
fs.writeFileSync(
  inFolder('picture.npy'),
  Buffer.concat([
    Buffer.from(`\x93NUMPY\x01\x00\x76\x00${header}\n`, 'latin1'),
    Buffer.from(pictures.buffer),
  ]),
);

const sources = [inFolder('table.csv'), inFolder('picture.npy')];
const { containers } = await importFiles(sources, inFolder('data'), { codec: 'zstd' });
for (const { column, dtype, records } of containers) console.log(`${column}: ${dtype}, ${records}`);

const columnOf = (/** @type {string} */ name) => path.join(inFolder('data'), name);
const streams = {
  id: Dense.open(columnOf('id'), { dtype: 'int64', itemShape: [] }),
  picture: Dense.open(columnOf('picture'), { dtype: 'float32', itemShape: [4, 4] }),
};
for await (const { id, picture } of new DataLoader(streams, { batchSize: 50, once: true })) {
  id.data.forEach((one, at) => {
    assert.equal(Number(one), picture.data[at * 16]);
  });
}
console.log('each row has its picture');

// One that does not fit is refused by name, row and column, and nothing is left behind.
fs.writeFileSync(inFolder('bad.csv'), 'id,weight\n1,2.5\n2,\n');
const refused = await importFiles([inFolder('bad.csv')], inFolder('bad'), { codec: 'raw' }).catch(
  (/** @type {unknown} */ error) => error,
);
assert.ok(refused instanceof LoaderxError);
console.log(`${refused.code}: column ${refused.field}, record ${refused.record}`);
assert.equal(fs.existsSync(inFolder('bad')), false);
for (const reader of Object.values(streams)) await reader.close();
fs.rmSync(folder, { recursive: true });
