// @ts-check
// Token sequences of different lengths, and the two forms that models take them in: padded to one rectangle
// with a mask, or packed back to back with offsets.
//
//     npm run example -- ragged-tokens
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ndarray, Ragged } from 'loaderx';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-tokens-'));
const place = path.join(folder, 'tokens');
const sentences = [
  'records for training',
  'written once',
  'and read in any order',
  'from Node',
  'as many at a time as a batch wants',
];
const vocabulary = [...new Set(sentences.flatMap((sentence) => sentence.split(' ')))];
const tokensOf = (/** @type {string} */ sentence) =>
  Int32Array.from(sentence.split(' '), (word) => vocabulary.indexOf(word) + 1);

const writer = Ragged.create(place, { dtype: 'int32', ndim: 1, codec: 'zstd' });
await writer.append(
  sentences.map(tokensOf).map((tokens) => ndarray('int32', [tokens.length], tokens)),
);
await writer.close();

const reader = Ragged.open(place, { dtype: 'int32', ndim: 1 });
const batch = await reader.gather([4, 1, 0]);

// Padded: [3, 9], zeros where a record has ended, and a mask that says where that is.
const { data, mask } = batch.pad({ value: 0 });
const [rows = 0, columns = 0] = data.shape;
for (let row = 0; row < rows; row += 1) {
  console.log([...data.data.subarray(row * columns, (row + 1) * columns)].join('\t'));
}
const own = mask.data.reduce((sum, one) => sum + one, 0);
console.log(`padded to [${data.shape}]: ${own} of ${mask.data.length} places are a record's own`);
assert.deepEqual(data.shape, [3, 9]);

// Packed: nothing is wasted, and attention is told where sequences begin ("cu_seqlens").
console.log(`packed: ${batch.values.length} tokens, offsets [${batch.offsets}]`);
assert.deepEqual([...batch.offsets], [0, 9, 11, 14]);
assert.equal(own, batch.values.length);

const words = [...batch].map(({ data }) =>
  [...data].map((token) => vocabulary[token - 1]).join(' '),
);
assert.deepEqual(words, [sentences[4], sentences[1], sentences[0]]);
await reader.close();
fs.rmSync(folder, { recursive: true });
