// @ts-check
// Converts a dataset of a hub to raw containers, and says how it came out.
//
//     node hub-converter.mjs ENDPOINT REPO CACHE ROOT
//
// `loaded` when the files are in the cache; then one JSON text: {"root"} or {"error"}, and `beside`: what is
// in ROOT's folder afterwards.
import fs from 'node:fs';
import path from 'node:path';

/** @typedef {typeof import('../../ts/converter.js')} Converter */

/** @type {Converter} */
const { convert, huggingface } = await import(
  new URL('../../dist/converter.js', import.meta.url).href
);
const [endpoint = '', repo = '', cacheDir = '', root = ''] = process.argv.slice(2);

/** @type {object} */
let outcome;
try {
  const dataset = await huggingface(repo, { endpoint, cacheDir, token: null });
  process.stdout.write('loaded\n');
  outcome = { root: await convert(dataset, root, { codec: 'raw', dataShards: 1 }) };
} catch (error) {
  outcome = { error };
}
const beside = fs.readdirSync(path.dirname(root));
process.stdout.write(`${JSON.stringify({ ...outcome, beside })}\n`);
