// @ts-check
// npm apache-arrow: an IPC file in memory, which is its only way to random access without reading
// whole record batches for each record. Opening reads the file; its memory is that of the file.
import fs from 'node:fs';
import { copyingModes, freshBytes, itemsOf, peer, peerVersion } from './peer.mjs';
import { serve } from './serve.mjs';

const arrow = await peer('apache-arrow');

/** @param {import('../workload.mjs').Workload} workload */
function tableOf(workload) {
  const { records, recordItems, itemBytes, ndim, items, dtype } = workload;
  if (workload.geometry === 'dense') {
    const type = new arrow.FixedSizeBinary(recordItems * itemBytes);
    const data = new Uint8Array(items.buffer, items.byteOffset, items.byteLength);
    const column = arrow.makeVector(arrow.makeData({ type, length: records, data }));
    return new arrow.Table({ records: column });
  }
  const item = dtype === 'int32' ? new arrow.Int32() : new arrow.Uint8();
  const child = arrow.makeData({ type: item, length: items.length, data: items });
  const list = new arrow.List(new arrow.Field('item', item, false));
  const valueOffsets = Int32Array.from({ length: records + 1 }, (_, id) => workload.start(id));
  const sizes = Int32Array.from(workload.shapes ?? []);
  const sizesType = new arrow.FixedSizeList(
    ndim,
    new arrow.Field('size', new arrow.Int32(), false),
  );
  const sizesChild = arrow.makeData({
    type: new arrow.Int32(),
    length: sizes.length,
    data: sizes,
  });
  return new arrow.Table({
    records: arrow.makeVector(arrow.makeData({ type: list, length: records, valueOffsets, child })),
    shapes: arrow.makeVector(
      arrow.makeData({ type: sizesType, length: records, child: sizesChild }),
    ),
  });
}

serve({
  about: () => peerVersion('apache-arrow'),
  async prepareWrite({ workload, target }) {
    workload.items;
    return () =>
      fs.writeFileSync(`${target}/records.arrow`, arrow.tableToIPC(tableOf(workload), 'file'));
  },
  async open({ workload, target }) {
    const table = arrow.tableFromIPC(fs.readFileSync(`${target}/records.arrow`));
    const column = table.getChild('records');
    if (workload.geometry === 'dense') {
      return { modes: copyingModes(workload, (id) => column.get(id)), close: () => {} };
    }
    const shapes = table.getChild('shapes');
    const gather = (/** @type {Uint32Array} */ ids) =>
      Array.from(ids, (id) => {
        const view = column.get(id).toArray();
        const bytes = freshBytes(view.byteLength);
        bytes.set(new Uint8Array(view.buffer, view.byteOffset, view.byteLength));
        return { shape: [...shapes.get(id).toArray()], data: itemsOf(workload, bytes) };
      });
    return { modes: { fresh: { gather, expose: (batch) => batch } }, close: () => {} };
  },
});
