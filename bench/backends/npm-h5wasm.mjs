// @ts-check
// npm h5wasm: HDF5 compiled to WebAssembly, contiguous data sets, a slice per record. Ragged: one
// data set of all items; offsets and shapes are read when opening.
import { freshBytes, itemsOf, peer, peerVersion } from './peer.mjs';
import { serve } from './serve.mjs';

const h5wasm = await peer('h5wasm/node');
await h5wasm.ready;

serve({
  about: () => peerVersion('h5wasm'),
  async prepareWrite({ workload, target }) {
    const { geometry, records, itemShape, items, dtype } = workload;
    return () => {
      const file = new h5wasm.File(`${target}/records.h5`, 'w');
      const shape = geometry === 'dense' ? [records, ...itemShape] : [items.length];
      file.create_dataset({
        name: 'records',
        data: items,
        shape,
        dtype: dtype === 'int32' ? '<i' : '<B',
      });
      if (geometry === 'ragged') {
        const offsets = Float64Array.from({ length: records + 1 }, (_, id) => workload.start(id));
        file.create_dataset({ name: 'offsets', data: offsets });
        file.create_dataset({ name: 'shapes', data: workload.shapes });
      }
      file.close();
    };
  },
  async open({ workload, target }) {
    const file = new h5wasm.File(`${target}/records.h5`, 'r');
    const records = file.get('records');
    const { geometry, recordItems, itemBytes, itemShape, ndim } = workload;
    if (geometry === 'dense') {
      const rest = itemShape.map(() => []);
      const gather = (/** @type {Uint32Array} */ ids) => {
        const batch = itemsOf(workload, freshBytes(ids.length * recordItems * itemBytes));
        for (let index = 0; index < ids.length; index += 1) {
          const id = ids[index] ?? 0;
          batch.set(records.slice([[id, id + 1], ...rest]), index * recordItems);
        }
        return batch;
      };
      return {
        modes: { fresh: { gather, expose: (batch) => batch } },
        close: () => file.close(),
      };
    }
    const offsets = file.get('offsets').value;
    const shapes = file.get('shapes').value;
    const gather = (/** @type {Uint32Array} */ ids) =>
      Array.from(ids, (id) => ({
        shape: [...shapes.subarray(id * ndim, (id + 1) * ndim)],
        data: records.slice([[offsets[id], offsets[id + 1]]]),
      }));
    return { modes: { fresh: { gather, expose: (batch) => batch } }, close: () => file.close() };
  },
});
