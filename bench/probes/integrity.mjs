// @ts-check
// What trust costs: a whole `verify` beside the speed of random gathers, and gathers of a reader that
// holds every record to the integrity file beside gathers of one that does not. All of them take turns.
// Without a workload the records are a million of 64 bytes.
import fs from 'node:fs';
import { listen } from '../backends/serve.mjs';
import { Dense, digest, open, Sampler, verify } from '../loaderx.mjs';
import { median } from '../statistics.mjs';
import { Workload } from '../workload.mjs';
import { batches } from './store.mjs';

const rounds = 7;
const batchSize = 256;
const smallCount = 1_000_000;
const smallBytes = 64;

/** The containers with and without the file. @param {any} parameters */
function places({ target, workload, codec }) {
  const name = workload === undefined ? 'small' : new Workload(workload).name;
  return {
    plain: `${target}/${name}-${codec}-plain`,
    vouched: `${target}/${name}-${codec}-vouched`,
  };
}

/** @param {any} parameters */
function source({ workload }) {
  if (workload === undefined) {
    const data = new Uint8Array(smallCount * smallBytes);
    const words = new Uint32Array(data.buffer);
    for (let at = 0; at < words.length; at += 1) words[at] = Math.imul(at, 0x9e37_79b1);
    return {
      dtype: /** @type {const} */ ('uint8'),
      itemShape: [smallBytes],
      count: smallCount,
      data,
    };
  }
  const { dtype, itemShape, records, items } = new Workload(workload);
  return { dtype, itemShape, count: records, data: items };
}

/** Ids of random batches, one after the other. @param {any} parameters @param {number} length */
function* idsOf({ workload }, length) {
  if (workload !== undefined) {
    yield* batches(new Workload(workload));
    return;
  }
  const sampler = new Sampler({ length, batchSize, mode: 'iid', seed: 42 });
  for (;;) yield sampler.draw().slice();
}

listen({
  async prepare(parameters) {
    const { dtype, itemShape, count, data } = source(parameters);
    const { plain, vouched } = places(parameters);
    for (const path of [plain, vouched]) {
      if (fs.existsSync(path)) continue;
      const writer = Dense.create(path, { dtype, itemShape, codec: parameters.codec });
      writer.appendSync(/** @type {any} */ ({ dtype, shape: [count, ...itemShape], data }));
      writer.closeSync();
    }
    const { integrity } = await digest(vouched);
    return { integrity };
  },
  async measure(parameters) {
    const { plain, vouched } = places(parameters);
    // The same files: what differs is only whether they are held against the third.
    const readers = { gather: open(vouched), checked: open(vouched, { verify: 'digest' }) };
    const { length } = readers.gather;
    const ids = idsOf(parameters, length);
    const first = await readers.gather.gather([0]);
    const recordBytes = /** @type {any} */ (first).data.byteLength;
    const mib = (/** @type {number} */ records) => (records * recordBytes) / 2 ** 20;

    /** One call of each kind; the records it looked at. @type {Record<string, () => Promise<number>>} */
    const kinds = {};
    for (const [name, reader] of Object.entries(readers)) {
      kinds[name] = async () => {
        const wanted = ids.next().value ?? new BigUint64Array(0);
        const batch = await reader.gather(wanted);
        batch[Symbol.dispose]();
        return wanted.length;
      };
    }
    for (const [name, path] of Object.entries({ verify: plain, verifyFile: vouched })) {
      kinds[name] = async () => {
        const { ok, integrity } = await verify(path);
        if (!ok || (integrity === 'checked') !== (path === vouched)) throw new Error(`${path}?`);
        return length;
      };
    }

    const shareMs = (parameters.seconds * 1000) / rounds;
    /** MiB/s of each round. @type {Record<string, number[]>} */
    const rates = {};
    for (const act of Object.values(kinds)) await act();
    for (let round = 0; round < rounds; round += 1) {
      const order = Object.keys(kinds);
      if (round % 2 === 1) order.reverse();
      for (const name of order) {
        const act = kinds[name];
        if (act === undefined) continue;
        let [totalMs, records] = [0, 0];
        while (totalMs < shareMs) {
          const startMs = performance.now();
          records += await act();
          totalMs += performance.now() - startMs;
        }
        rates[name] = [...(rates[name] ?? []), mib(records) / (totalMs / 1000)];
      }
    }
    for (const reader of Object.values(readers)) await reader.close();
    /** The median over rounds of the ratio within one. @param {string} a @param {string} b */
    const ratio = (a, b) =>
      median((rates[a] ?? []).map((rate, round) => rate / (rates[b]?.[round] ?? Number.NaN)));
    return {
      records: length,
      recordBytes,
      mibPerS: Object.fromEntries(Object.entries(rates).map(([name, all]) => [name, median(all)])),
      verifyToGather: ratio('verify', 'gather'),
      verifyFileToGather: ratio('verifyFile', 'gather'),
      checkedToGather: ratio('checked', 'gather'),
    };
  },
});
