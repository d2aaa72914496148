// @ts-check
// npm lmdb: one value per record under its u32 id, in one transaction, no sync.
import { copyingModes, packed, peer, peerVersion } from './peer.mjs';
import { serve } from './serve.mjs';

const { open } = await peer('lmdb');
/** @type {any} */
let database;

/** @param {string} target @param {number} bytes */
function opened(target, bytes) {
  return open({
    path: `${target}/lmdb`,
    encoding: 'binary',
    keyEncoding: 'uint32',
    noSync: true,
    noMetaSync: true,
    mapSize: bytes * 4 + 2 ** 26,
  });
}

serve({
  about: () => peerVersion('lmdb'),
  async prepareWrite({ workload, target }) {
    database = opened(target, workload.payloadBytes);
    workload.items;
    return () =>
      database.transactionSync(() => {
        for (let id = 0; id < workload.records; id += 1) database.putSync(id, packed(workload, id));
      });
  },
  finish: () => database.close(),
  async open({ workload, target }) {
    database = opened(target, workload.payloadBytes);
    return {
      modes: copyingModes(workload, (id) => database.getBinaryFast(id)),
      close: () => database.close(),
    };
  },
});
