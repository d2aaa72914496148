// @ts-check
// Real handwritten digits become containers, a DataLoader feeds a small network from them, and what each of
// its layers makes of the test digits becomes containers again, which are projected to a plane and drawn.
//
//     npm run example -- mnist [--out FOLDER] [--steps N] [--seed N] [--from STEP] [--kill-at STEP] [--train-only]
//
// Run again, it goes on where it was: stop it whenever you like, the weights come out the same to the bit, on
// one version of Node. (20 and 22 differ: it seems that jax-js can round a product and a sum once from 22 on.)
// `--from` goes back to the checkpoint of a step; `--kill-at` ends the process at one, as a power cut would.
import fs from 'node:fs';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { DataLoader, Dense, ndarray, open } from 'loaderx';
import { readDigits } from '../digits.mjs';
import { hashOf, loadCheckpoint, saveCheckpoint } from './checkpoint.mjs';
import {
  initialState,
  layers,
  represent,
  stateShapes,
  tensor,
  trainStep,
  valuesOf,
} from './model.mjs';
import { project } from './project.mjs';
import { writeReport } from './report.mjs';

const batchSize = 128;
const stepsPerCheckpoint = 250;
const testEvery = 5; // every fifth picture of each digit is kept for the test

const { values: options } = parseArgs({
  options: {
    out: { type: 'string', default: path.join(import.meta.dirname, 'out') },
    steps: { type: 'string', default: '1500' },
    seed: { type: 'string', default: '1' },
    from: { type: 'string' },
    'kill-at': { type: 'string' },
    'train-only': { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
if (options.help) {
  console.log(
    'usage: npm run example -- mnist [--out FOLDER] [--steps N] [--seed N] [--from STEP] [--kill-at STEP] [--train-only]\n' +
      'Run again, it goes on where it was; remove the folder (examples/mnist/out) to begin afresh.',
  );
  process.exit(0);
}
const steps = Number(options.steps);
const seed = Number(options.seed);
const killAt = Number(options['kill-at'] ?? Number.NaN);
const inOut = (/** @type {string[]} */ ...parts) => path.join(options.out, ...parts);

const began = performance.now();
/** @param {string} text */
const say = (text) =>
  console.log(`${((performance.now() - began) / 1000).toFixed(1).padStart(6)} s  ${text}`);

/** Digits to containers: train and test, image and label each. */
async function prepare() {
  if (fs.existsSync(inOut('digits'))) return;
  const { count, image, label } = await readDigits();
  const pixelCount = image.data.length / count;
  // Under another name until all four are there.
  const staging = inOut('digits.incomplete');
  fs.rmSync(staging, { recursive: true, force: true });
  for (const split of ['train', 'test']) {
    const ids = Array.from({ length: count }, (_, id) => id).filter(
      (id) => (id % testEvery === 0) === (split === 'test'),
    );
    const pixels = new Uint8Array(ids.length * pixelCount);
    ids.forEach((id, at) => {
      pixels.set(image.data.subarray(id * pixelCount, (id + 1) * pixelCount), at * pixelCount);
    });
    const streams = {
      image: ndarray('uint8', [ids.length, 28, 28], pixels),
      label: ndarray(
        'uint8',
        [ids.length],
        Uint8Array.from(ids, (id) => label.data[id]),
      ),
    };
    for (const [name, items] of Object.entries(streams)) {
      const [, ...itemShape] = items.shape;
      const writer = Dense.create(path.join(staging, split, name), {
        ...{ dtype: 'uint8', itemShape, codec: itemShape.length > 0 ? 'zstd' : 'raw' },
      });
      await writer.append(items);
      await writer.close();
    }
    say(`${split}: ${ids.length} digits written`);
  }
  fs.renameSync(staging, inOut('digits'));
}

const digits = (/** @type {string} */ split) => ({
  image: Dense.open(inOut('digits', split, 'image'), { dtype: 'uint8', itemShape: [28, 28] }),
  label: Dense.open(inOut('digits', split, 'label'), { dtype: 'uint8', itemShape: [] }),
});

/** @param {Record<string, import('loaderx').Reader>} streams */
const closeAll = (streams) => Promise.all(Object.values(streams).map((stream) => stream.close()));

/** The test digits once, in order, with what each layer makes of them. @param {import('./model.mjs').Tensor[]} state */
async function* representations(state) {
  const streams = digits('test');
  for await (const batch of new DataLoader(streams, { batchSize: 256, once: true })) {
    const pixels = Float32Array.from(batch.image.data, (byte) => byte / 255);
    const labels = batch.label.data.slice();
    batch[Symbol.dispose]();
    yield { labels, values: [pixels, ...(await represent(state, pixels, labels.length))] };
  }
  await closeAll(streams);
}

/** The digit with the largest logit. @param {Float32Array} logits @param {number} at */
function readOf(logits, at) {
  const own = logits.subarray(at * 10, at * 10 + 10);
  return own.indexOf(Math.max(...own));
}

/** The part of the test digits that is read rightly. @param {import('./model.mjs').Tensor[]} state */
async function accuracyOf(state) {
  let right = 0;
  let count = 0;
  for await (const { labels, values } of representations(state)) {
    labels.forEach((label, at) => {
      if (readOf(values.at(-1), at) === label) right += 1;
    });
    count += labels.length;
  }
  return right / count;
}

/** Trains up to `steps`, from the newest checkpoint or the one of `--from`. */
async function train() {
  const folder = inOut('checkpoints');
  const wanted = options.from === undefined ? undefined : Number(options.from);
  const saved = wanted === 0 ? null : await loadCheckpoint(folder, wanted);
  for (const name of fs.existsSync(folder) ? fs.readdirSync(folder) : []) {
    // What a run after `--from` left is made again.
    if (Number(name.slice(5)) > (saved?.step ?? 0))
      fs.rmSync(path.join(folder, name), { recursive: true });
  }
  const { losses, accuracies } = saved ?? { losses: [], accuracies: [] };
  let state = saved?.state.map((data, at) => tensor(data, stateShapes[at])) ?? initialState(seed);
  if (saved !== null) say(`resumed at step ${saved.step}`);

  const streams = digits('train');
  const loader = new DataLoader(streams, {
    ...{ batchSize, seed, step: saved?.step ?? 0 },
    ...{ transform: new URL('./augment.mjs', import.meta.url), transformWorkers: 2 },
  });
  // A checkpoint is a container, which is there whole or not at all: nothing has to be finished first.
  const stop = () => {
    const kept = loader.step - (loader.step % stepsPerCheckpoint);
    say(`stopped at step ${loader.step}; the same command goes on at ${kept}`);
    process.exit(130);
  };
  process.once('SIGINT', stop);
  while (loader.step < steps) {
    const { value: batch } = await loader.next();
    const rate = 0.1 * (1 - (loader.step - 1) / steps);
    const made = trainStep(
      state,
      tensor(batch.pixels, [batchSize, 784]),
      tensor(batch.labels, [batchSize]),
      tensor(Float32Array.of(rate), []),
    );
    state = made.state;
    const [loss] = await made.loss.data();
    losses.push(loss);
    if (loader.step === killAt) process.kill(process.pid, 'SIGKILL');
    if (loader.step % stepsPerCheckpoint === 0 || loader.step === steps) {
      const accuracy = await accuracyOf(state);
      accuracies.push([loader.step, accuracy]);
      const values = await Promise.all(state.map(valuesOf));
      await saveCheckpoint(
        folder,
        { step: loader.step, state: values, losses, accuracies },
        stateShapes,
      );
      say(
        `step ${loader.step}: loss ${loss.toFixed(3)}, test accuracy ${(accuracy * 100).toFixed(2)} %`,
      );
    }
  }
  process.off('SIGINT', stop);
  const { gatherMs, transformMs, consumerMs, elapsedMs } = loader.stats();
  if (elapsedMs > 0) {
    const share = (/** @type {number} */ ms) => `${((ms / elapsedMs) * 100).toFixed(0)} %`;
    say(
      `of the time, the network worked ${share(consumerMs)}, and waited ${share(gatherMs)} for reading and ${share(transformMs)} for the transform`,
    );
  }
  await loader.close();
  await closeAll(streams);
  return { state, losses, accuracies };
}

/** What each layer makes of the test digits, as containers aligned with theirs. @param {import('./model.mjs').Tensor[]} state */
async function writeLayers(state) {
  fs.rmSync(inOut('layers'), { recursive: true, force: true });
  const writers = layers.map(({ name, width }) =>
    Dense.create(inOut('layers', name), { dtype: 'float32', itemShape: [width], codec: 'zstd' }),
  );
  for await (const { labels, values } of representations(state)) {
    for (const [at, writer] of writers.entries()) {
      const shape = [labels.length, layers[at].width];
      await writer.append(ndarray('float32', shape, values[at]));
    }
  }
  for (const writer of writers) await writer.close();
  say(`layers of the test digits written: ${layers.map(({ name }) => name).join(', ')}`);
}

/**
 * What the layers make of the test digits, as containers and as pictures.
 *
 * @param {Awaited<ReturnType<typeof train>>} trained
 * @param {string} hash
 */
async function draw({ state, losses, accuracies }, hash) {
  await writeLayers(state);

  const test = digits('test');
  const pictures = await test.image.slice();
  const { data: labels } = await test.label.slice();
  await closeAll(test);
  const logits = open(inOut('layers', 'logits'));
  const { data: logitValues } = await logits.slice();
  await logits.close();

  const projections = await project(inOut('layers'), layers, say);
  await writeReport(options.out, {
    ...{ losses, accuracies, labels, pictures, projections, steps, hash },
    reads: Array.from(labels, (_, at) => readOf(logitValues, at)),
  });
  say(`pictures: ${path.relative(process.cwd(), inOut('report.html'))}`);
}

await fs.promises.mkdir(options.out, { recursive: true });
await prepare();
const trained = await train();
const hash = hashOf(await Promise.all(trained.state.map(valuesOf)));
if (!options['train-only']) await draw(trained, hash);

const [, accuracy] = trained.accuracies.at(-1);
console.log(`test accuracy ${(accuracy * 100).toFixed(2)} %`);
console.log(`state after step ${steps}: sha256 ${hash}`);
process.exitCode = accuracy < 0.95 ? 1 : 0;
