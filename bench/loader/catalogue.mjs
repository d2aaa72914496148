// @ts-check
// Which loaders there are, what each is measured in, and where their records come from.

/** @typedef {'node' | 'loaderx-2.4' | 'loaderx-2.8' | 'loaders'} Runtime */

/** The workload of all rows. */
export const workloadName = 'vision_dense';

/**
 * @typedef {object} Loader
 * @property {'loader' | 'transform'} part whether there is a transform
 * @property {string} name
 * @property {Runtime} runtime what runs `file`
 * @property {string} file in this folder; of a Python loader a module's name
 * @property {string} model how it works at the same time
 * @property {string | null} store whose containers it reads; null: the source
 * @property {readonly string[]} variants codecs
 * @property {readonly string[]} modes
 */

const codecs = /** @type {const} */ (['raw', 'zstd']);
const torchModes = ['fork-1', 'fork-2', 'fork-4', 'spawn-1', 'spawn-2', 'spawn-4'];

/** In the order of the tables. @type {readonly Loader[]} */
export const loaders = [
  {
    ...{ part: 'loader', name: 'ours', runtime: 'node', file: 'ours.mjs', model: 'lanes' },
    ...{ store: 'ours', variants: codecs },
    modes: ['step-disposed', 'step-dropped', 'completion-disposed', 'completion-dropped'],
  },
  {
    ...{ part: 'loader', name: 'loaderx-2.4.6', runtime: 'loaderx-2.4', file: 'loaderx_2_4' },
    ...{ model: 'threads', store: 'loaderx-2.4.6', variants: codecs, modes: ['threads-4'] },
  },
  {
    ...{ part: 'loader', name: 'loaderx-2.8.19', runtime: 'loaderx-2.8', file: 'loaderx_2_8' },
    ...{ model: 'threads', store: 'loaderx-2.8.19', variants: codecs, modes: ['threads-4'] },
  },
  {
    ...{ part: 'loader', name: 'torch', runtime: 'loaders', file: 'torch_loader' },
    ...{ model: 'processes', store: null, variants: ['raw'], modes: torchModes },
  },
  {
    ...{ part: 'loader', name: 'grain', runtime: 'loaders', file: 'grain_loader' },
    ...{ model: 'processes', store: 'arrayrecord', variants: codecs, modes: ['processes-4'] },
  },
  {
    ...{ part: 'transform', name: 'bare threads', runtime: 'node', file: 'bare-threads.mjs' },
    ...{
      model: 'threads',
      store: null,
      variants: ['raw'],
      modes: ['threads-1', 'threads-2', 'threads-2-moved'],
    },
  },
  {
    ...{ part: 'transform', name: 'ours', runtime: 'node', file: 'ours.mjs', model: 'threads' },
    ...{ store: 'ours', variants: codecs, modes: ['pool-2', 'pool-4', 'function'] },
  },
  {
    ...{ part: 'transform', name: 'loaderx-2.4.6', runtime: 'loaderx-2.4', file: 'loaderx_2_4' },
    ...{ model: 'threads', store: 'loaderx-2.4.6', variants: codecs, modes: ['numpy'] },
  },
  {
    ...{ part: 'transform', name: 'loaderx-2.4.6', runtime: 'loaders', file: 'loaderx_2_4' },
    ...{ model: 'threads', store: 'loaderx-2.4.6', variants: codecs },
    modes: ['numba-gil', 'numba-nogil'],
  },
];

/**
 * Who writes containers, by the store's name: backends of the other bench.
 *
 * @type {Record<string, {runtime: Runtime, file: string}>}
 */
export const writers = {
  ours: { runtime: 'node', file: 'ours.mjs' },
  'loaderx-2.4.6': { runtime: 'loaderx-2.4', file: 'loaderx_2_4.py' },
  'loaderx-2.8.19': { runtime: 'loaderx-2.8', file: 'loaderx_2_8.py' },
  arrayrecord: { runtime: 'loaders', file: 'arrayrecord.py' },
};

/** The limits of the machine: bench-limits. @param {number} threads all that may run */
export function limitRows(threads) {
  const counts = threads === 1 ? [1] : [1, threads];
  return ['copy', 'stream', 'zstd'].flatMap((variant) =>
    counts.map((count) => ({ variant, mode: `kept-${count}` })),
  );
}

/** What `--quick` measures. */
export const quick = {
  loaders: ['ours', 'loaderx-2.4.6', 'bare threads', 'limits', 'order'],
  modes: ['step-disposed', 'step-dropped', 'completion-disposed', 'threads-4', 'threads-2'],
  /** With a transform, containers of this codec alone. */
  transformModes: ['pool-2', 'numpy', 'threads-2', 'threads-2-moved'],
};

/** @param {Loader} loader @param {string} variant @param {string} mode */
export function isQuickRow({ part, name }, variant, mode) {
  if (!quick.loaders.includes(name)) return false;
  if (part === 'loader') return quick.modes.includes(mode);
  return variant === 'raw' && quick.transformModes.includes(mode);
}
