// @ts-check
// Holds a build open until it is killed: `node holder.mjs PATH DIALECT`. Says so once it does.
import { pathToFileURL } from 'node:url';
import { inRoot } from '../../scripts/script.mjs';

const [, , target, dialect] = process.argv;
if (target === undefined || (dialect !== '2.4' && dialect !== '2.8')) {
  throw new Error('holder.mjs wants a path and a dialect');
}
/** @type {import('./ours.mjs').Loaderx} */
const loaderx = await import(pathToFileURL(inRoot('dist', 'index.js')).href);
const writer = loaderx.Dense.create(target, {
  dtype: 'uint8',
  itemShape: [],
  codec: 'raw',
  dialect,
});
await writer.append({ dtype: 'uint8', shape: [2], data: Uint8Array.of(1, 2) });
process.stdout.write('holding\n');
setInterval(() => writer.length, 1000);
