// @ts-check
// Converts one part of a folder of Parquet files, in a process of its own that may be killed:
//
//     node part.mjs SOURCE TARGET PART OF
//
// Says `begun` once rows were read, and `done`, or the failure's code. With STOP in the environment it waits
// for ever when it has begun.
import { writeSync } from 'node:fs';

/** @type {typeof import('../../ts/converter.js')} */
const { convert, parquetFolder } = await import(
  new URL('../../dist/converter.js', import.meta.url).href
);

const [source = '', target = '', part = '', of = ''] = process.argv.slice(2);
const dataset = await parquetFolder(source);
let hasBegun = false;
try {
  await convert(dataset, target, {
    codec: 'zstd',
    part: { part: Number(part), of: Number(of) },
    onProgress: () => {
      if (hasBegun) return;
      hasBegun = true;
      writeSync(1, 'begun\n');
      if (process.env.STOP !== undefined)
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    },
  });
  writeSync(1, 'done\n');
} catch (error) {
  writeSync(1, `${/** @type {{ code?: string }} */ (error).code}\n`);
}
