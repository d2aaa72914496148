// @ts-check
// One record of 4 bytes per call: what a call costs beside the work.

import { listen } from '../backends/serve.mjs';
import { Dense } from '../loaderx.mjs';
import { median } from '../statistics.mjs';

const recordCount = 10_000;
const callsPerBlock = 500;

listen({
  async measure({ target, seconds }) {
    const path = `${target}/one-record`;
    const writer = Dense.create(path, { dtype: 'uint32', itemShape: [], codec: 'raw' });
    const data = Uint32Array.from({ length: recordCount }, (_, id) => id * 3);
    writer.appendSync({ dtype: 'uint32', shape: [recordCount], data });
    writer.closeSync();
    const reader = Dense.open(path, { dtype: 'uint32' });
    const id = 7777;
    const ids = BigUint64Array.of(BigInt(id));
    const list = [id];
    const expect = (/** @type {{data: ArrayLike<number>}} */ { data: got }) => {
      if (got[0] !== id * 3) throw new Error(`record ${id} is ${got[0]}`);
    };
    expect(await reader.gather(ids));
    expect(reader.gatherSync(list));
    expect(reader.record(id));
    /** @type {Record<string, number>} */
    const us = {
      'await gather': await blocks(seconds, async () => {
        for (let call = 0; call < callsPerBlock; call += 1) await reader.gather(ids);
      }),
      gatherSync: await blocks(seconds, () => {
        for (let call = 0; call < callsPerBlock; call += 1) reader.gatherSync(ids);
      }),
      'gatherSync of number[]': await blocks(seconds, () => {
        for (let call = 0; call < callsPerBlock; call += 1) reader.gatherSync(list);
      }),
      record: await blocks(seconds, () => {
        for (let call = 0; call < callsPerBlock; call += 1) reader.record(id);
      }),
    };
    await reader.close();
    return { us };
  },
});

/** µs per call, the median block. @param {number} seconds @param {() => unknown} body */
async function blocks(seconds, body) {
  for (let block = 0; block < 10; block += 1) await body();
  const times = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end || times.length < 5) {
    const start = performance.now();
    await body();
    times.push(((performance.now() - start) * 1000) / callsPerBlock);
    // Between blocks the event loop runs, as it does in a program.
    await new Promise(setImmediate);
  }
  return median(times);
}
