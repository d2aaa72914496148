// @ts-check
// How fast a large .npy file becomes a container, beside the plain append of the same records from memory, and how
// much memory it takes above what the process had:
//
//     npm run bench:import -- [--mib N] [--rounds N] [--codec raw|zstd]
//
// Both run in processes of their own, in turn; what is shown is the median. Appending writes from one block that is
// in memory already, so that the quotient is what reading a file costs.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from '../scripts/build.mjs';
import { ask } from '../scripts/child.mjs';
import { entry, Failure } from '../scripts/script.mjs';

const recordBytes = 3 * 224 * 224;

/** @param {string[]} args */
function parse(args) {
  const options = { mib: 1024, rounds: 5, codec: 'raw' };
  for (let index = 0; index < args.length; index += 2) {
    const [name, value = ''] = [args[index], args[index + 1]];
    if (name === '--mib') options.mib = Number(value);
    else if (name === '--rounds') options.rounds = Number(value);
    else if (name === '--codec') options.codec = value;
    else throw new Failure(`the bench does not know ${name} ${value}`);
  }
  return options;
}

/** @param {readonly number[]} values */
function median(values) {
  const sorted = [...values].sort((one, other) => one - other);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

const url = (/** @type {string} */ name) =>
  JSON.stringify(new URL(`../dist/${name}.js`, import.meta.url).href);

/** @param {string} work */
const program = (work) => `
  const peak = () => process.resourceUsage().maxRSS * 1024;
  ${work}
  const base = peak();
  const start = performance.now();
  await run();
  const seconds = (performance.now() - start) / 1000;
  console.log(JSON.stringify({ seconds, memoryBytes: peak() - base }));
`;

/** @param {string} work */
function measured(work) {
  const answer = ask(process.execPath, ['--input-type=module', '-e', program(work)]);
  if (!answer.ok) throw new Failure('a run failed', answer.output);
  return /** @type {{ seconds: number, memoryBytes: number }} */ (JSON.parse(answer.stdout));
}

await entry(import.meta, async (args) => {
  const { mib, rounds, codec } = parse(args);
  await build(await bootstrap());
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-bench-import-'));
  try {
    const count = Math.floor((mib * 2 ** 20) / recordBytes);
    const file = path.join(folder, 'x.npy');
    const text = `{'descr': '|u1', 'fortran_order': False, 'shape': (${count}, 3, 224, 224), }`;
    const head = Buffer.alloc(10);
    head.write('\x93NUMPY\x01', 'latin1');
    head.writeUInt16LE(118, 8);
    fs.writeFileSync(file, Buffer.concat([head, Buffer.from(`${text.padEnd(117)}\n`)]));
    const block = Buffer.alloc(recordBytes * 16, 'a picture of no colours at all ');
    for (let done = 0; done < count; done += 16) {
      fs.appendFileSync(file, block.subarray(0, Math.min(16, count - done) * recordBytes));
    }
    const target = JSON.stringify(path.join(folder, 'out'));
    const appending = `
      import { Dense } from ${url('index')};
      const rows = 32;
      const data = new Uint8Array(rows * ${recordBytes}).fill(97);
      const run = async () => {
        const writer = Dense.create(${target}, { dtype: 'uint8', itemShape: [3, 224, 224], codec: '${codec}' });
        for (let done = 0; done < ${count}; done += rows) {
          const n = Math.min(rows, ${count} - done);
          await writer.append({ dtype: 'uint8', shape: [n, 3, 224, 224], data: data.subarray(0, n * ${recordBytes}) });
        }
        await writer.close();
      };`;
    const importing = `
      import { importFiles } from ${url('importers')};
      const run = () => importFiles(${JSON.stringify(file)}, ${target}, { codec: '${codec}' });`;
    /** @type {Record<string, { seconds: number, memoryBytes: number }[]>} */
    const runs = { append: [], import: [] };
    for (let round = 0; round < rounds; round += 1) {
      for (const [name, work] of Object.entries({ append: appending, import: importing })) {
        runs[name]?.push(measured(work));
        fs.rmSync(path.join(folder, 'out'), { recursive: true, force: true });
      }
    }
    const rates = Object.entries(runs).map(([name, all]) => {
      const rate = mib / median(all.map(({ seconds }) => seconds));
      const memory = median(all.map(({ memoryBytes }) => memoryBytes)) / 2 ** 20;
      process.stdout.write(
        `${name}  ${rate.toFixed(0)} MiB/s, ${memory.toFixed(1)} MiB above base\n`,
      );
      return rate;
    });
    process.stdout.write(`quotient ${((rates[1] ?? 0) / (rates[0] ?? 1)).toFixed(2)}\n`);
    return 0;
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
});
