// @ts-check
// Converts a dataset that is made here, in a process of its own that may be killed:
//
//     node converting.mjs TARGET ROWS
//
// Says `batch` for each batch that is asked for and `rows` for each that was taken; at last `done`, or the
// failure as JSON with what is beside the target then.
import { readdirSync, writeSync } from 'node:fs';
import path from 'node:path';

/** @type {typeof import('../../ts/converter.js')} */
const { convert } = await import(new URL('../../dist/converter.js', import.meta.url).href);

const [target = '', rows = ''] = process.argv.slice(2);
const rowCount = Number(rows);
const batchRows = 3000;

/** @param {string} line */
const say = (line) => writeSync(1, `${line}\n`);

/** @param {number} row */
const value = (row) => Math.imul(row, 0x9e3779b1) >>> 0;

/** @type {import('../../ts/converter.js').Dataset} */
const dataset = {
  features: new Map([
    ['id', { kind: 'value', dtype: 'uint32' }],
    ['pair', { kind: 'list', item: { kind: 'value', dtype: 'uint32' }, length: 8 }],
    ['list', { kind: 'list', item: { kind: 'value', dtype: 'uint32' } }],
  ]),
  async *batches() {
    for (let from = 0; from < rowCount; from += batchRows) {
      say('batch');
      const count = Math.min(batchRows, rowCount - from);
      const id = Uint32Array.from({ length: count }, (_, index) => value(from + index));
      const pair = Uint32Array.from({ length: count * 8 }, (_, index) => value(from * 8 + index));
      const offsets = new Uint32Array(count + 1);
      for (let row = 0; row < count; row += 1) {
        offsets[row + 1] = (offsets[row] ?? 0) + 1 + ((from + row) % 5);
      }
      const length = offsets[count] ?? 0;
      const list = Uint32Array.from({ length }, (_, index) => value(from + index));
      yield {
        rowCount: count,
        columns: new Map([
          ['id', { values: id }],
          ['pair', { values: pair }],
          ['list', { values: list, offsets: [offsets] }],
        ]),
      };
    }
    say('batch');
  },
};

try {
  const splits = {
    splits: new Map([
      ['train', dataset],
      ['test', dataset],
    ]),
  };
  await convert(splits, target, { codec: 'zstd', dataShards: 2, onProgress: () => say('rows') });
  say('done');
} catch (error) {
  const { code, osCode, message } = /** @type {Record<string, unknown>} */ (error);
  const parent = path.dirname(target);
  say(JSON.stringify({ code, osCode, message, left: readdirSync(parent) }));
}
