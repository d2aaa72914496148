// @ts-check
// Node alone: `fs.readSync` for each record, and `FileHandle.read` for all of a batch at once.
import fs from 'node:fs';
import { freshBytes, itemsOf } from './peer.mjs';
import { fileIn, plainModes, preparePlainWrite } from './plain.mjs';
import { serve } from './serve.mjs';

serve({
  about: () => ({}),
  prepareWrite: preparePlainWrite,
  async open({ workload, target }) {
    const file = fs.openSync(fileIn(target), 'r');
    const modes = plainModes(workload, (bytes, at, from, length) => {
      if (fs.readSync(file, bytes, at, length, from) !== length) throw new Error('a short read');
    });
    const handle = await fs.promises.open(fileIn(target));
    const starts = Float64Array.from(
      { length: workload.records + 1 },
      (_, id) => workload.start(id) * workload.itemBytes,
    );
    modes['await-fresh'] = {
      isAsync: true,
      gather: async (/** @type {Uint32Array} */ ids) => {
        const places = [0];
        for (const id of ids) {
          places.push((places.at(-1) ?? 0) + (starts[id + 1] ?? 0) - (starts[id] ?? 0));
        }
        const target = freshBytes(places.at(-1) ?? 0);
        await Promise.all(
          Array.from(ids, (id, index) => {
            const at = places[index] ?? 0;
            return handle.read(target, at, (places[index + 1] ?? 0) - at, starts[id] ?? 0);
          }),
        );
        return { ids, target, places };
      },
      expose: ({ ids, target, places }) =>
        workload.geometry === 'dense'
          ? itemsOf(workload, target)
          : Array.from(ids, (id, index) => ({
              shape: workload.shapeOf(Number(id)),
              data: itemsOf(workload, target.subarray(places[index], places[index + 1])),
            })),
    };
    const close = async () => {
      fs.closeSync(file);
      await handle.close();
    };
    return { modes, close };
  },
});
