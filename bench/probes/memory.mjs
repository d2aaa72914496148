// @ts-check
// Anonymous memory of the process while it gathers, above what it had before it opened the container.
// Mapped file pages, which the system takes back at will, are told apart.

import { listen } from '../backends/serve.mjs';
import { ndarray } from '../loaderx.mjs';
import { batches, denseStore, openAny, residentMib } from './store.mjs';

listen({
  prepare({ workload, target, codec }) {
    denseStore(workload, target, codec);
    return {};
  },
  async measure({ workload: folder, target, seconds, codec, mode }) {
    const { path, workload } = denseStore(folder, target, codec);
    const plan = batches(workload);
    plan.next();
    const { dtype, array, batch: count, recordItems, itemShape } = workload;
    globalThis.gc?.();
    const base = residentMib();
    const requested = count * recordItems * array.BYTES_PER_ELEMENT;
    const reader = openAny(path);
    const [when, kind] = mode.split('-');
    const memory = when === 'await' ? new SharedArrayBuffer(requested) : new ArrayBuffer(requested);
    /** @type {any} the compiler does not take shared memory for both kinds of array at once */
    const make = array;
    const out =
      kind === 'out' ? ndarray(dtype, [count, ...itemShape], new make(memory)) : undefined;
    const options = out === undefined ? {} : { out };
    let [peak, files, calls] = [0, 0, 0];
    const end = performance.now() + seconds * 1000;
    while (performance.now() < end || calls < 20) {
      const ids = plan.next().value;
      const batch =
        when === 'await' ? await reader.gather(ids, options) : reader.gatherSync(ids, options);
      const now = residentMib();
      peak = Math.max(peak, now.anonymous);
      files = Math.max(files, now.files);
      if (kind === 'disposed') batch[Symbol.dispose]();
      calls += 1;
    }
    await reader.close();
    return {
      calls,
      requestedMib: requested / 2 ** 20,
      baseMib: base.anonymous,
      peakAboveBaseMib: peak - base.anonymous,
      filesAboveBaseMib: files - base.files,
    };
  },
});
