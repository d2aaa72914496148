// @ts-check
// Reads a container, checks it and tries to build beside it, and says what came of each: for media that
// cannot be written to and file systems that have no locks.
//
//     node media.mjs CONTAINER SHA256     the hash of all its records in order
//
// One JSON text: {"read", "record", "verify", "build", "osCode"}, each `ok` or a code, and what is in
// the folder afterwards.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { batchOf, loaderx } from './package.mjs';

const [container = '', expected = ''] = process.argv.slice(2);

/** @param {() => unknown} act */
async function codeOf(act) {
  try {
    const answer = await act();
    return { code: answer === false ? 'other data' : 'ok' };
  } catch (error) {
    if (!(error instanceof loaderx.LoaderxError)) throw error;
    return { code: error.code, osCode: error.osCode };
  }
}

const read = await codeOf(async () => {
  const reader = loaderx.Dense.open(container, { dtype: 'uint32' });
  const { data } = await reader.slice();
  await reader.close();
  return createHash('sha256').update(Buffer.from(data.buffer)).digest('hex') === expected;
});
const record = await codeOf(() => {
  const reader = loaderx.open(container);
  reader.record(0);
  reader.closeSync();
});
const verify = await codeOf(async () => (await loaderx.verify(container)).ok);
const build = await codeOf(async () => {
  const writer = loaderx.Dense.create(path.join(path.dirname(container), 'another'), {
    ...{ codec: 'raw', dtype: 'uint32', itemShape: [12] },
  });
  await writer.append(batchOf(0, 3, 12));
  await writer.close();
});
const left = fs.readdirSync(path.dirname(container)).sort();
process.stdout.write(
  JSON.stringify({
    ...{ read: read.code, record: record.code, verify: verify.code },
    ...{ build: build.code, osCode: build.osCode, left },
  }),
);
