// @ts-check
// The transform hands each batch to TensorFlow.js: what the loop gets are its tensors.
//
//     npm run example -- tfjs
//
// `tf.tensor` takes a typed array and a shape, as a batch has them, and copies it into the backend's memory.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { DataLoader, Dense } from 'loaderx';
import { writeDigits } from '../digits.mjs';

// The builds for Node: the ES modules import folders, which Node does not.
const require = createRequire(import.meta.url);
const tf = require('@tensorflow/tfjs');
const wasm = require('@tensorflow/tfjs-backend-wasm');
wasm.setWasmPaths(`${path.dirname(require.resolve('@tensorflow/tfjs-backend-wasm'))}/`);
await tf.setBackend('wasm');

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-tfjs-'));
await writeDigits(folder);
const image = Dense.open(path.join(folder, 'image'), { dtype: 'uint8', itemShape: [28, 28] });
const label = Dense.open(path.join(folder, 'label'), { dtype: 'uint8', itemShape: [] });

const loader = new DataLoader(
  { image, label },
  {
    ...{ batchSize: 128, seed: 1 },
    // Made when the loop asks, so that no tensors are left over when it ends: they are not collected.
    transformWorkers: 0,
    transform: (batch) => ({
      pixels: tf.tensor(
        Float32Array.from(batch.image.data, (byte) => byte / 255),
        [128, 784],
      ),
      labels: tf.tensor(Int32Array.from(batch.label.data), [128], 'int32'),
    }),
  },
);

// Logistic regression.
const weight = tf.variable(tf.zeros([784, 10]));
const optimizer = tf.train.sgd(0.2);
const losses = [];
for await (const { pixels, labels } of loader) {
  const loss = optimizer.minimize(
    () => tf.losses.softmaxCrossEntropy(tf.oneHot(labels, 10), tf.matMul(pixels, weight)),
    true,
  );
  losses.push((await loss.data())[0]);
  for (const tensor of [pixels, labels, loss]) tensor.dispose();
  if (loader.step === 200) break;
}
const [first, last] = [losses[0], losses.slice(-20).reduce((sum, one) => sum + one, 0) / 20];
console.log(
  `TensorFlow.js: loss ${first.toFixed(3)} at first, ${last.toFixed(3)} after 200 batches`,
);
assert.ok(last < 0.6);
await image.close();
await label.close();
fs.rmSync(folder, { recursive: true });
