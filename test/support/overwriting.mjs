// @ts-check
// Gathers while another thread writes noise into the data files and puts them right again: what nobody
// promises anything about but that the process lives.
//
//     node overwriting.mjs FOLDER GATHERS
//
// One JSON text: how often a gather came to `right`, `other data` or a code.
import fs from 'node:fs';
import path from 'node:path';
import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { Random } from '../interop/random.mjs';

const count = 200;

if (isMainThread) {
  const { loaderx } = await import('./package.mjs');
  const [folder = '', gathers = '1000'] = process.argv.slice(2);
  /** @param {number} id */
  const recordOf = (id) =>
    Uint8Array.from({ length: 300 + (id % 500) }, (_, at) => ((at * at) >> (id % 5)) % 29);
  const sources = Array.from({ length: count }, (_, id) => recordOf(id));
  const dictBytes = await loaderx.trainDict(sources);
  /** @type {Record<string, number>} */
  const ends = {};
  for (const codec of /** @type {const} */ (['zstd', 'zstd_dict', 'raw'])) {
    const at = path.join(folder, codec);
    const writer = loaderx.Ragged.create(at, {
      ...(codec === 'zstd_dict' ? { codec, dictBytes } : { codec }),
      ...{ dtype: 'uint8', ndim: 1, dataShards: 1 },
    });
    await writer.append(sources.map((data) => loaderx.ndarray('uint8', [data.length], data)));
    await writer.close();
    const stop = new Int32Array(new SharedArrayBuffer(4));
    const worker = new Worker(new URL(import.meta.url), {
      workerData: { file: path.join(at, 'data_0.zr'), stop },
    });
    await new Promise((resolve) => worker.once('message', resolve));
    const reader = loaderx.Ragged.open(at, { dtype: 'uint8' });
    const random = new Random('ids', codec);
    for (let gather = 0; gather < Number(gathers); gather += 1) {
      const ids = Array.from({ length: 16 }, () => random.between(0, count - 1));
      const end = await endOf(reader, ids);
      ends[end] = (ends[end] ?? 0) + 1;
    }
    Atomics.store(stop, 0, 1);
    await new Promise((resolve) => worker.once('exit', resolve));
    // It left everything as it was.
    const whole = await endOf(reader, [...sources.keys()]);
    if (whole !== 'right') throw new Error(`${codec}: ${whole} in the end`);
    await reader.close();
  }
  process.stdout.write(JSON.stringify(ends));

  /** @param {import('../../ts/index.js').RaggedReader} reader @param {number[]} ids */
  async function endOf(reader, ids) {
    try {
      const batch = await reader.gather(ids);
      const isRight = batch
        .toArray()
        .every(
          ({ data }, at) =>
            Buffer.compare(
              new Uint8Array(data.buffer, data.byteOffset, data.byteLength),
              sources[ids[at] ?? 0] ?? new Uint8Array(),
            ) === 0,
        );
      return isRight ? 'right' : 'other data';
    } catch (error) {
      if (!(error instanceof loaderx.LoaderxError)) throw error;
      return error.code;
    }
  }
} else {
  const { parentPort } = await import('node:worker_threads');
  /** @type {{file: string, stop: Int32Array}} */
  const { file, stop } = workerData;
  const whole = fs.readFileSync(file);
  const open = fs.openSync(file, 'r+');
  const random = new Random('noise', file.length);
  const noise = Buffer.alloc(24);
  parentPort?.postMessage('begun');
  while (Atomics.load(stop, 0) === 0) {
    const at = random.between(0, whole.length - noise.length);
    random.fill(noise);
    fs.writeSync(open, noise, 0, random.between(1, noise.length), at);
    fs.writeSync(open, whole, at, noise.length, at);
  }
  fs.writeSync(open, whole, 0, whole.length, 0);
  fs.closeSync(open);
}
