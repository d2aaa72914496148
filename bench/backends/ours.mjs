// @ts-check
// This package, as built in dist/. Two ways of treating a batch are rows of their own: disposed of
// outside the timer, so that its memory is used again, and simply dropped.
import { Dense, ndarray, open, Ragged, trainDict } from '../loaderx.mjs';
import { serve } from './serve.mjs';

/** @typedef {import('./serve.mjs').Mode} Mode */
/** @typedef {import('../workload.mjs').Workload} Workload */

/** @param {Workload} workload @param {string} variant */
async function codecOf(workload, variant) {
  if (variant !== 'zstd_dict') return { codec: /** @type {'raw' | 'zstd'} */ (variant) };
  const source = workload.arrays();
  return { codec: /** @type {const} */ ('zstd_dict'), dictBytes: await trainDict(source) };
}

serve({
  about: () => ({ loaderx: 'this checkout' }),

  async prepareWrite({ workload, target, variant, mode }) {
    const { dtype, itemShape, ndim, records } = workload;
    const codec = await codecOf(workload, variant);
    const path = `${target}/store`;
    const isSync = mode === 'sync';
    if (workload.geometry === 'dense') {
      const writer = Dense.create(path, { ...codec, dtype, itemShape });
      const batch = { dtype, shape: [records, ...itemShape], data: workload.items };
      return async () => {
        if (isSync) writer.appendSync(batch);
        else await writer.append(batch);
        if (isSync) writer.closeSync();
        else await writer.close();
      };
    }
    const writer = Ragged.create(path, { ...codec, dtype, ndim });
    const source = workload.arrays();
    return async () => {
      if (isSync) writer.appendSync(source);
      else await writer.append(source);
      if (isSync) writer.closeSync();
      else await writer.close();
    };
  },

  async open({ workload, target }) {
    /** @type {any} */
    const reader = open(`${target}/store`);
    const modes = workload.geometry === 'dense' ? dense(reader, workload) : ragged(reader);
    return { modes, close: () => reader.close() };
  },
});

/**
 * @param {any} reader
 * @param {Workload} workload
 * @returns {Record<string, Mode>}
 */
function dense(reader, { batch, dtype, array, itemShape, recordItems }) {
  const expose = (/** @type {any} */ gathered) => gathered.data;
  const release = (/** @type {any} */ gathered) => gathered[Symbol.dispose]();
  // An asynchronous gather writes at once only to memory that JavaScript cannot take away.
  /** @type {any} the compiler does not take shared memory for both kinds of array at once */
  const make = array;
  const shared = new make(new SharedArrayBuffer(batch * recordItems * array.BYTES_PER_ELEMENT));
  const own = new array(batch * recordItems);
  const intoFirst = (/** @type {any} */ memory, /** @type {number} */ count) =>
    ndarray(dtype, [count, ...itemShape], memory.subarray(0, count * recordItems));
  // Whole batches, which are timed, go into an array made once.
  const [sharedOut, ownOut] = [intoFirst(shared, batch), intoFirst(own, batch)];
  const outOf = (/** @type {any} */ whole, /** @type {any} */ memory, /** @type {any} */ ids) =>
    ids.length === batch ? whole : intoFirst(memory, ids.length);
  const common = { ids: /** @type {const} */ ('u64'), expose };
  const later = { ...common, isAsync: true };
  return {
    'await-disposed': { ...later, release, gather: (ids) => reader.gather(ids) },
    'await-dropped': { ...later, gather: (ids) => reader.gather(ids) },
    'await-out': {
      ...later,
      gather: (ids) => reader.gather(ids, { out: outOf(sharedOut, shared, ids) }),
    },
    'await-out-own': {
      ...later,
      gather: (ids) => reader.gather(ids, { out: outOf(ownOut, own, ids) }),
    },
    'sync-disposed': { ...common, release, gather: (ids) => reader.gatherSync(ids) },
    'sync-dropped': { ...common, gather: (ids) => reader.gatherSync(ids) },
    'sync-out': {
      ...common,
      gather: (ids) => reader.gatherSync(ids, { out: outOf(ownOut, own, ids) }),
    },
  };
}

/**
 * `-views`: an array of each of the records is made inside the timer, as backends that give a list
 * do; without it the batch stays packed.
 *
 * @param {any} reader
 * @returns {Record<string, Mode>}
 */
function ragged(reader) {
  const expose = (/** @type {any} */ gathered) => gathered.toArray();
  const release = (/** @type {any} */ gathered) => gathered[Symbol.dispose]();
  /** @type {any} the batch whose memory `out` fills again and again */
  let out;
  const outSync = (/** @type {any} */ ids) => {
    out = out === undefined ? reader.gatherSync(ids) : reader.gatherSync(ids, { out });
    return out;
  };
  const outLater = async (/** @type {any} */ ids) => {
    out = out === undefined ? await reader.gather(ids) : await reader.gather(ids, { out });
    return out;
  };
  const common = { ids: /** @type {const} */ ('u64'), expose };
  /** @type {Record<string, Mode>} */
  const packed = {
    'await-disposed': { ...common, isAsync: true, release, gather: (ids) => reader.gather(ids) },
    'await-dropped': { ...common, isAsync: true, gather: (ids) => reader.gather(ids) },
    'await-out': { ...common, isAsync: true, gather: outLater },
    'sync-disposed': { ...common, release, gather: (ids) => reader.gatherSync(ids) },
    'sync-dropped': { ...common, gather: (ids) => reader.gatherSync(ids) },
    'sync-out': { ...common, gather: outSync },
  };
  /** @type {Record<string, Mode>} */
  const viewed = {};
  for (const [name, mode] of Object.entries(packed)) {
    const viewsLater = async (/** @type {any} */ ids) => withViews(await mode.gather(ids));
    const views = (/** @type {any} */ ids) => withViews(mode.gather(ids));
    viewed[`${name}-views`] = {
      ...mode,
      gather: mode.isAsync ? viewsLater : views,
      expose: ({ views: made }) => made,
      ...(mode.release === undefined
        ? {}
        : { release: (gathered) => mode.release?.(gathered.batch) }),
    };
  }
  return { ...packed, ...viewed };
}

/** @param {any} batch */
function withViews(batch) {
  return { batch, views: batch.toArray() };
}
