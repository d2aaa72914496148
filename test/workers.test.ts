// Worker threads: the package in main and 16 workers, only in workers, in many workers one after the
// other, and twice in one process. How workers end is in teardown.test.ts.
//
//     LOADERX_WORKER_GATHERS=10000   gathers of each of 8 workers, 500 unless given
//     LOADERX_WORKER_ROW=200         workers one after the other, 40 unless given
//
// What takes longer than five minutes wants LOADERX_FULL=1, and --timeout=0 of tap.
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { answerOf, runChild } from './support/child.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const gathers = process.env.LOADERX_WORKER_GATHERS ?? '500';
const row = process.env.LOADERX_WORKER_ROW ?? '40';
const root = fileURLToPath(new URL('..', import.meta.url));
const at = scratch.fresh();

const run = (t: Test, command: string, ...args: string[]): Promise<unknown> =>
  answerOf(t, 'lifetimes', [command, at, ...args]);

t.before(async () => {
  const { code, stderr } = await runChild('lifetimes', ['make', at]);
  if (code !== 0) throw new Error(stderr);
});

t.test('main and 16 workers (B59)', async (t) => {
  t.strictSame(await run(t, 'together', '16', '20', 'yes'), { codes: [0], wrong: 0 });
});

t.test('16 workers, and never the main thread', async (t) => {
  t.strictSame(await run(t, 'together', '16', '5', 'no'), { codes: [0], wrong: 0 });
});

t.test(`8 workers, ${gathers} gathers of 256 each (B27)`, async (t) => {
  t.strictSame(await run(t, 'together', '8', gathers, 'no'), { codes: [0], wrong: 0 });
});

t.test(`${row} workers one after the other`, async (t) => {
  t.strictSame(await run(t, 'inARow', row), { wrong: 0 });
});

t.test('two copies of the package in one process', async (t) => {
  const copy = path.join(scratch.folder(), 'loaderx');
  mkdirSync(copy);
  cpSync(path.join(root, 'dist'), path.join(copy, 'dist'), { recursive: true });
  cpSync(path.join(root, 'build', 'Release'), path.join(copy, 'build', 'Release'), {
    recursive: true,
  });
  writeFileSync(path.join(copy, 'package.json'), readFileSync(path.join(root, 'package.json')));
  symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  t.strictSame(await run(t, 'twoCopies', copy), { wrong: 0, worker: 0 });
});
