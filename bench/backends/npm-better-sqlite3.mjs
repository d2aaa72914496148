// @ts-check
// npm better-sqlite3: one row per record under its id, one transaction, no sync, files mapped.
import { copyingModes, packed, peer, peerVersion } from './peer.mjs';
import { serve } from './serve.mjs';

const { default: Database } = await peer('better-sqlite3');
/** @type {any} */
let database;

/** @param {string} target */
function opened(target) {
  database = new Database(`${target}/records.sqlite`);
  database.pragma('journal_mode = OFF');
  database.pragma('synchronous = OFF');
  database.pragma('mmap_size = 2147418112');
  return database;
}

serve({
  about: () => peerVersion('better-sqlite3'),
  async prepareWrite({ workload, target }) {
    opened(target).exec('CREATE TABLE records (id INTEGER PRIMARY KEY, data BLOB NOT NULL)');
    const insert = database.prepare('INSERT INTO records VALUES (?, ?)');
    workload.items;
    return database.transaction(() => {
      for (let id = 0; id < workload.records; id += 1) insert.run(id, packed(workload, id));
    });
  },
  finish: () => database.close(),
  async open({ workload, target }) {
    const select = opened(target).prepare('SELECT data FROM records WHERE id = ?').pluck();
    return {
      modes: copyingModes(workload, (id) => select.get(id)),
      close: () => database.close(),
    };
  },
});
