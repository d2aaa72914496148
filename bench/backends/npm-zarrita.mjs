// @ts-check
// npm zarrita: Zarr 3 in a folder, uncompressed, chunks of about 128 KiB (one record at least).
// Ragged: one array of all items; offsets and shapes are those of the source, in memory.
import { freshBytes, itemsOf, peer, peerVersion } from './peer.mjs';
import { serve } from './serve.mjs';

const zarr = await peer('zarrita');
const { default: FileSystemStore } = await peer('@zarrita/storage/fs');
const chunkBytes = 128 * 1024;

serve({
  about: () => peerVersion('zarrita'),
  async prepareWrite({ workload, target }) {
    const { geometry, records, recordItems, itemShape, items, itemBytes, dtype } = workload;
    const isDense = geometry === 'dense';
    const rows = Math.max(1, Math.floor(chunkBytes / (recordItems * itemBytes)));
    return async () => {
      const root = zarr.root(new FileSystemStore(target));
      const shape = isDense ? [records, ...itemShape] : [items.length];
      const array = await zarr.create(root.resolve('/records'), {
        shape,
        chunkShape: isDense ? [rows, ...itemShape] : [chunkBytes / itemBytes],
        dtype,
      });
      const stride = shape.map((_, axis) => shape.slice(axis + 1).reduce((a, b) => a * b, 1));
      await zarr.set(array, null, { data: items, shape, stride });
    };
  },
  async open({ workload, target }) {
    const array = await zarr.open(zarr.root(new FileSystemStore(target)).resolve('/records'), {
      kind: 'array',
    });
    const { geometry, recordItems, itemBytes, itemShape } = workload;
    const rest = itemShape.map(() => null);
    const dense = async (/** @type {Uint32Array} */ ids) => {
      const batch = itemsOf(workload, freshBytes(ids.length * recordItems * itemBytes));
      await Promise.all(
        Array.from(ids, async (id, index) => {
          const { data } = await zarr.get(array, [id, ...rest]);
          batch.set(data, index * recordItems);
        }),
      );
      return batch;
    };
    const ragged = (/** @type {Uint32Array} */ ids) =>
      Promise.all(
        Array.from(ids, async (id) => {
          const range = zarr.slice(workload.start(id), workload.start(id + 1));
          const { data } = await zarr.get(array, [range]);
          return { shape: workload.shapeOf(id), data };
        }),
      );
    const gather = geometry === 'dense' ? dense : ragged;
    return { modes: { fresh: { isAsync: true, gather, expose: (batch) => batch } }, close() {} };
  },
});
