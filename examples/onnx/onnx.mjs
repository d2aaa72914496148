// @ts-check
// The transform runs a model with onnxruntime-node: what the loop gets are its answers. The runtime works on
// threads of its own, so the transform is a function on this one, and several batches are in flight.
//
//     npm run example -- onnx
//
// onnxruntime-node brings its CPU library in the package: no install script has to run.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { DataLoader, Dense } from 'loaderx';
import proto from 'onnx-proto';
import ort from 'onnxruntime-node';
import { writeDigits } from '../digits.mjs';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-onnx-'));
await writeDigits(folder);
const image = Dense.open(path.join(folder, 'image'), { dtype: 'uint8', itemShape: [28, 28] });
const label = Dense.open(path.join(folder, 'label'), { dtype: 'uint8', itemShape: [] });

/** A model file that takes a digit for the one whose mean picture is nearest. @returns {Promise<Uint8Array>} */
async function nearestMean() {
  const weight = new Float32Array(784 * 10);
  const bias = new Float32Array(10);
  const counts = new Array(10).fill(0);
  for await (const batch of new DataLoader({ image, label }, { batchSize: 500, once: true })) {
    batch.label.data.forEach((digit, at) => {
      counts[digit] += 1;
      for (let pixel = 0; pixel < 784; pixel += 1) {
        weight[pixel * 10 + digit] += batch.image.data[at * 784 + pixel] / 255;
      }
    });
    batch[Symbol.dispose]();
  }
  weight.forEach((sum, at) => {
    weight[at] = sum / counts[at % 10];
    bias[at % 10] -= weight[at] ** 2 / 2;
  });
  const { ModelProto, TensorProto } = proto.onnx;
  const constant = (
    /** @type {string} */ name,
    /** @type {number[]} */ dims,
    /** @type {Float32Array} */ data,
  ) => ({
    ...{ name, dims, dataType: TensorProto.DataType.FLOAT },
    rawData: new Uint8Array(data.buffer),
  });
  const value = (/** @type {string} */ name, /** @type {number} */ width) => ({
    name,
    type: {
      tensorType: {
        elemType: TensorProto.DataType.FLOAT,
        shape: { dim: [{ dimParam: 'n' }, { dimValue: width }] },
      },
    },
  });
  return ModelProto.encode({
    irVersion: 8,
    opsetImport: [{ domain: '', version: 13 }],
    graph: {
      name: 'nearest-mean',
      node: [
        { opType: 'MatMul', input: ['pixels', 'weight'], output: ['product'] },
        { opType: 'Add', input: ['product', 'bias'], output: ['scores'] },
      ],
      initializer: [constant('weight', [784, 10], weight), constant('bias', [10], bias)],
      input: [value('pixels', 784)],
      output: [value('scores', 10)],
    },
  }).finish();
}

const session = await ort.InferenceSession.create(await nearestMean());
const loader = new DataLoader(
  { image, label },
  {
    ...{ batchSize: 256, once: true },
    async transform(batch) {
      const pixels = Float32Array.from(batch.image.data, (byte) => byte / 255);
      const count = batch.label.data.length;
      const input = new ort.Tensor('float32', pixels, [count, 784]);
      const { scores } = await session.run({ pixels: input });
      return { scores: /** @type {Float32Array} */ (scores.data), labels: batch.label.data };
    },
  },
);
let right = 0;
for await (const { scores, labels } of loader) {
  labels.forEach((digit, at) => {
    const own = scores.subarray(at * 10, at * 10 + 10);
    if (own.indexOf(Math.max(...own)) === digit) right += 1;
  });
}
console.log(`onnxruntime: ${right} of ${label.length} digits are nearest to the mean of their own`);
assert.ok(right > 0.75 * label.length);
await session.release();
await image.close();
await label.close();
fs.rmSync(folder, { recursive: true });
