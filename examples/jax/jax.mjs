// @ts-check
// The transform hands each batch to jax-js: what the loop gets are its arrays.
//
//     npm run example -- jax
//
// `np.array` copies into the memory of WebAssembly; of a GPU, where there is one, it would be a copy too: there
// is no pinned memory to read records into.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DataLoader, Dense } from 'loaderx';
import { writeDigits } from '../digits.mjs';

// Node 20 has no `navigator`, which jax-js asks for a GPU.
if (!('navigator' in globalThis)) Object.assign(globalThis, { navigator: {} });
const jax = await import('@jax-js/jax');
const { jit, nn, numpy: np, valueAndGrad } = jax;
await jax.init('wasm');
jax.defaultDevice('wasm');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-jax-'));
await writeDigits(folder);
const image = Dense.open(path.join(folder, 'image'), { dtype: 'uint8', itemShape: [28, 28] });
const label = Dense.open(path.join(folder, 'label'), { dtype: 'uint8', itemShape: [] });

const loader = new DataLoader(
  { image, label },
  {
    ...{ batchSize: 128, seed: 1 },
    // Made when the loop asks, so that no arrays are left over when it ends: jax-js counts references.
    transformWorkers: 0,
    transform: (batch) => ({
      pixels: np
        .array(Float32Array.from(batch.image.data, (byte) => byte / 255))
        .reshape([-1, 784]),
      labels: np.array(Int32Array.from(batch.label.data), { dtype: np.int32 }),
    }),
  },
);

// Logistic regression. A function consumes its arrays; `.ref` is one more use.
const loss = (weight, pixels, labels) =>
  nn
    .logSoftmax(np.dot(pixels, weight))
    .mul(nn.oneHot(labels, 10))
    .sum()
    .mul(-1 / 128);
const step = jit((weight, pixels, labels) => {
  const [value, gradient] = valueAndGrad(loss)(weight.ref, pixels, labels);
  return { weight: weight.sub(gradient.mul(0.2)), value };
});

let weight = np.zeros([784, 10]);
const losses = [];
for await (const { pixels, labels } of loader) {
  const made = step(weight, pixels, labels);
  weight = made.weight;
  losses.push((await made.value.data())[0]);
  if (loader.step === 200) break;
}
weight.dispose();
const [first, last] = [losses[0], losses.slice(-20).reduce((sum, one) => sum + one, 0) / 20];
console.log(`jax-js: loss ${first.toFixed(3)} at first, ${last.toFixed(3)} after 200 batches`);
assert.ok(last < 0.6);
await image.close();
await label.close();
fs.rmSync(folder, { recursive: true });
