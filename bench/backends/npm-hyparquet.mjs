// @ts-check
// npm hyparquet: one BYTE_ARRAY column, uncompressed, pages of about 128 KiB with an offset index,
// so that a row costs the read of its page and not of its row group.
import { freshBytes, itemsOf, packed, peer, peerVersion } from './peer.mjs';
import { serve } from './serve.mjs';

const hyparquet = await peer('hyparquet');
const writer = await peer('hyparquet-writer');
const pageBytes = 128 * 1024;

serve({
  about: () => ({ ...peerVersion('hyparquet'), ...peerVersion('hyparquet-writer') }),
  async prepareWrite({ workload, target }) {
    const data = Array.from({ length: workload.records }, (_, id) => packed(workload, id));
    return () =>
      writer.parquetWriteFile({
        filename: `${target}/records.parquet`,
        codec: 'UNCOMPRESSED',
        statistics: false,
        pageSize: pageBytes,
        rowGroupSize: 10_000,
        columnData: [
          { name: 'records', data, type: 'BYTE_ARRAY', nullable: false, encoding: 'PLAIN' },
        ],
      });
  },
  async open({ workload, target }) {
    const { geometry, recordItems, itemBytes, ndim } = workload;
    const file = await hyparquet.asyncBufferFromFile(`${target}/records.parquet`);
    const metadata = await hyparquet.parquetMetadataAsync(file);
    const stored = async (/** @type {number} */ id) => {
      /** @type {any} */
      let row;
      await hyparquet.parquetRead({
        file,
        metadata,
        rowStart: id,
        rowEnd: id + 1,
        useOffsetIndex: true,
        utf8: false,
        onComplete: (/** @type {any[][]} */ rows) => {
          row = rows[0]?.[0];
        },
      });
      return /** @type {Uint8Array} */ (row);
    };
    const gather = async (/** @type {Uint32Array} */ ids) => {
      const rows = await Promise.all(Array.from(ids, stored));
      if (geometry === 'dense') {
        const recordBytes = recordItems * itemBytes;
        const batch = freshBytes(ids.length * recordBytes);
        rows.forEach((row, index) => {
          batch.set(row, index * recordBytes);
        });
        return itemsOf(workload, batch);
      }
      return rows.map((row) => {
        const sizes = new DataView(row.buffer, row.byteOffset, ndim * 4);
        const shape = Array.from({ length: ndim }, (_, axis) => sizes.getUint32(axis * 4, true));
        const data = freshBytes(row.length - ndim * 4);
        data.set(row.subarray(ndim * 4));
        return { shape, data: itemsOf(workload, data) };
      });
    };
    return { modes: { fresh: { isAsync: true, gather, expose: (batch) => batch } }, close() {} };
  },
});
