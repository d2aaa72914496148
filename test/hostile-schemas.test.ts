// Schemas by the hundred thousand, through the schema function and through `open`, in a process with
// a heap of 64 MB: each is taken or refused with an error of the family, and nothing is left behind.
import t from 'tap';
import { Dense } from '../ts/index.js';
import { runChild } from './support/child.js';
import { Scratch } from './support/scratch.js';

const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same schemas again`);
/** Behind each of the 65 536 beginnings. LOADERX_TAILS=200 is the whole of it, and takes a minute. */
const tails = Number(process.env.LOADERX_TAILS ?? 30);

interface Flood {
  readonly fed: number;
  readonly taken: number;
  readonly refused: number;
  readonly wrong: readonly string[];
  readonly grewBytes: number;
  readonly cpuMs: number;
}

t.test('hostile schemas', async (t) => {
  const container = new Scratch(t).fresh();
  Dense.create(container, { dtype: 'int16', itemShape: [2, 12], codec: 'raw' }).closeSync();
  const task = { seed, tails, generated: 100_000, opened: 20_000, container };
  const { code, signal, stdout, stderr } = await runChild('schema-flood', [JSON.stringify(task)], {
    nodeArgs: ['--expose-gc', '--max-old-space-size=64'],
    timeoutMs: 280_000,
  });
  t.same({ code, signal, stderr }, { code: 0, signal: null, stderr: '' }, 'the process lives');
  const flood = JSON.parse(stdout) as Flood;
  t.comment(stdout.trimEnd());
  t.same(flood.wrong, [], 'each was taken as a sound schema or refused with a typed error');
  t.equal(flood.fed, 120_000 + 65_536 * tails);
  t.equal(flood.taken + flood.refused, flood.fed);
  t.ok(flood.taken > 5000, 'some are right, so the others are near to it');
  t.ok(flood.grewBytes < 2 ** 20, `the heap grew by ${flood.grewBytes} bytes`);
});
