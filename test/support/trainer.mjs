// @ts-check
// Training in a process of its own (train-dict.test.ts):
//
//     node trainer.mjs degenerate
//     node trainer.mjs large FOLDER MIBS
import { readFileSync, writeSync } from 'node:fs';
import { loaderx } from './package.mjs';

/** @param {unknown} line */
const say = (line) => writeSync(1, `${JSON.stringify(line)}\n`);

/** Fills a sample. @type {Record<string, (sample: Uint8Array, index: number) => void>} */
const patterns = {
  zeros: (sample) => sample.fill(0),
  'one byte each': (sample, index) => sample.fill(index),
  counting: (sample) => {
    for (let at = 0; at < sample.length; at += 1) sample[at] = at;
  },
  'two letters': (sample, index) => {
    for (let at = 0; at < sample.length; at += 1)
      sample[at] = (at * 7 + index * 13) % 5 < 2 ? 97 : 98;
  },
  noise: (sample, index) => {
    let state = index + 1;
    for (let at = 0; at < sample.length; at += 1) {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      sample[at] = state >>> 16;
    }
  },
};

/** @type {Record<string, (...args: string[]) => unknown>} */
const commands = {
  /** Every small number of samples of every small size; what each comes to. */
  async degenerate() {
    /** @type {Record<string, number>} */
    const ends = {};
    for (const fill of Object.values(patterns)) {
      for (const count of [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 20, 40, 100]) {
        for (const bytes of [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15, 16, 17, 31, 64, 256]) {
          const samples = Array.from({ length: count }, (_, index) => {
            // Sizes are not all the same either.
            const sample = new Uint8Array(index % 5 === 4 ? Math.ceil(bytes / 2) : bytes);
            fill(sample, index);
            return sample;
          });
          let end;
          try {
            const dict = await loaderx.trainDict(samples);
            end = dict.length >= 1 && dict.length <= 32_768 ? 'a dictionary' : 'a WRONG dictionary';
          } catch (error) {
            end = String(/** @type {{code?: unknown}} */ (error).code ?? error);
          }
          ends[end] = (ends[end] ?? 0) + 1;
        }
      }
    }
    say(ends);
  },

  /** A store of many MiB, trained on. */
  async large(folder, mibs) {
    const items = 256;
    const data = new Uint32Array(8192 * items);
    const batch = loaderx.ndarray('uint32', [8192, items], data);
    const at = `${folder}/large`;
    const writer = loaderx.Dense.create(at, { codec: 'zstd', dtype: 'uint32', itemShape: [items] });
    for (let done = 0; done < Number(mibs); done += 8) {
      for (let record = 0; record < 8192; record += 1) {
        const id = (done / 8) * 8192 + record;
        for (let item = 0; item < 16; item += 1)
          data[record * items + item * 16] = (id >> item) & 255;
      }
      await writer.append(batch);
    }
    await writer.close();
    const reader = loaderx.Dense.open(at);
    const baseKib = memoryKib();
    let peakKib = baseKib;
    const watch = () => {
      peakKib = Math.max(peakKib, memoryKib());
    };
    const timer = setInterval(watch, 1);
    const startMs = performance.now();
    const dict = await loaderx.trainDict(reader);
    const ms = performance.now() - startMs;
    watch();
    clearInterval(timer);
    const grownMib = (peakKib - baseKib) / 1024;
    await reader.close();
    say({ records: writer.length, dictBytes: dict.length, ms, grownMib });
  },
};

/** Memory of our own: mapped pages of files are the system's to take back. */
function memoryKib() {
  if (process.platform !== 'linux') return process.resourceUsage().maxRSS;
  const status = readFileSync('/proc/self/status', 'utf8');
  return Number(/^RssAnon:\s*(\d+) kB$/m.exec(status)?.[1]);
}

const [command = '', ...args] = process.argv.slice(2);
await commands[command]?.(...args);
