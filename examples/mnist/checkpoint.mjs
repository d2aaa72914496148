// @ts-check
// A checkpoint is a ragged container, `step-NNNNNN`: the arrays of the state, then the curves so far. It
// appears at its path complete or not at all, so a run that was killed while it wrote one goes on from the
// one before.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { ndarray, Ragged } from 'loaderx';

/**
 * @typedef {object} Checkpoint
 * @property {number} step of the loader: how many batches were trained on
 * @property {Float32Array[]} state
 * @property {number[]} losses of each step
 * @property {[number, number][]} accuracies step, and the part of the test digits that is read rightly
 */

const nameOf = (/** @type {number} */ step) => `step-${String(step).padStart(6, '0')}`;

/** @param {string} folder @param {Checkpoint} checkpoint @param {readonly (readonly number[])[]} shapes */
export async function saveCheckpoint(folder, { step, state, losses, accuracies }, shapes) {
  const writer = Ragged.create(path.join(folder, nameOf(step)), {
    ...{ codec: 'raw', dtype: 'float32', ndim: 2 },
  });
  await writer.append([
    ...state.map((data, at) => ndarray('float32', shapes[at] ?? [], data)),
    ndarray('float32', [1, losses.length], Float32Array.from(losses)),
    ndarray('float32', [accuracies.length, 2], Float32Array.from(accuracies.flat())),
  ]);
  await writer.close({ durable: true });
}

/** The newest, or the one of a step. @param {string} folder @param {number} [wanted] @returns {Promise<Checkpoint | null>} */
export async function loadCheckpoint(folder, wanted) {
  const names = fs.existsSync(folder) ? fs.readdirSync(folder).sort() : [];
  const published = names.filter((name) => /^step-\d+$/.test(name));
  const name = wanted === undefined ? published.at(-1) : nameOf(wanted);
  if (name === undefined) return null;
  const reader = Ragged.open(path.join(folder, name), { dtype: 'float32', ndim: 2 });
  const arrays = (await reader.slice()).toArray().map(({ data }) => data.slice());
  await reader.close();
  const [losses, flat] = arrays.splice(-2);
  /** @type {[number, number][]} */
  const accuracies = [];
  for (let at = 0; at < flat.length; at += 2) accuracies.push([flat[at], flat[at + 1]]);
  return { step: Number(name.slice(5)), state: arrays, losses: [...losses], accuracies };
}

/** One number for a state: equal when every bit of it is. @param {readonly Float32Array[]} state */
export function hashOf(state) {
  const hash = createHash('sha256');
  for (const data of state) hash.update(data);
  return hash.digest('hex');
}
