// @ts-check
// From a layer's container to points in a plane, in two ways: the two directions of largest variance (PCA),
// and UMAP, which keeps neighbours together, from the 30 largest.
import path from 'node:path';
import { Dense } from 'loaderx';
import { PCA } from 'ml-pca';
import { UMAP } from 'umap-js';
import { np, tensor } from './model.mjs';

/** @typedef {{layer: string, method: 'PCA' | 'UMAP', points: number[][]}} Projection */

const componentsMax = 30;

/** Numbers from 0 to 1, the same in each run (mulberry32). */
function seeded() {
  let state = 1;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** The rows in the coordinates of their principal components. @param {Float32Array} data @param {number} width @returns {Promise<number[][]>} */
async function principalComponents(data, width) {
  const rows = tensor(data, [data.length / width, width]);
  const centred = rows.ref.sub(np.mean(rows, 0));
  // The products by jax-js, which is faster at them than the library of the decomposition.
  const covariance = np.dot(np.transpose(centred.ref), centred.ref).mul(width / data.length);
  const pca = new PCA(await covariance.jsAsync(), { isCovarianceMatrix: true });
  const count = Math.min(width, componentsMax);
  const directions = pca
    .getEigenvectors()
    .subMatrix(0, width - 1, 0, count - 1)
    .to1DArray();
  return np.dot(centred, tensor(Float32Array.from(directions), [width, count])).jsAsync();
}

/**
 * @param {string} folder of the layers' containers
 * @param {readonly {name: string, width: number}[]} layers
 * @param {(text: string) => void} say
 * @returns {Promise<Projection[]>}
 */
export async function project(folder, layers, say) {
  /** @type {Projection[]} */
  const projections = [];
  for (const { name, width } of layers) {
    const reader = Dense.open(path.join(folder, name), { dtype: 'float32', itemShape: [width] });
    const { data } = await reader.slice();
    await reader.close();
    const components = await principalComponents(data, width);
    const umap = new UMAP({ random: seeded(), nNeighbors: 15, minDist: 0.1, nEpochs: 200 });
    projections.push(
      { layer: name, method: 'PCA', points: components.map((row) => row.slice(0, 2)) },
      { layer: name, method: 'UMAP', points: umap.fit(components) },
    );
    say(`${name} projected`);
  }
  return projections;
}
