// What the demo does when something is not as it was written: it says so and ends with 1. That it
// says nothing when all is well is in readme.test.ts.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { ndarray } from '../ts/index.js';

const root = path.resolve(import.meta.dirname, '..');
const streamsFile = new URL('../examples/streams.mjs', import.meta.url).href;
const { denseStream, raggedStream } = await import(streamsFile);

const pixels = (...values: number[]) => Uint8Array.from(values);

t.test('a record that differs is named', async (t) => {
  const stream = denseStream('image', ndarray('uint8', [3, 2], pixels(1, 2, 3, 4, 5, 6)));
  const batch = (shape: number[], data: Uint8Array) => ({ dtype: 'uint8', shape, data });
  stream.check(batch([2, 2], pixels(5, 6, 1, 2)), [2, 0]);
  t.throws(() => stream.check(batch([2, 2], pixels(5, 6, 1, 9)), [2, 0]), {
    message: 'image: record 0 differs from its source from byte 1 on: 2 was written, 9 was read',
  });
  t.throws(() => stream.check(batch([1, 2], pixels(5, 6)), [2, 0]), /the batch has shape \[1,2\]/);
  t.throws(() => stream.check(batch([2, 2], pixels(1, 2, 5, 6)), [2, 0]), /record 2 differs/);
});

t.test('so is a ragged one, its shape included', async (t) => {
  const record = (...shape: [number, number]) =>
    ndarray('uint8', shape, new Uint8Array(shape[0] * shape[1]).fill(shape[0]));
  const stream = raggedStream('ink', [record(1, 2), record(3, 2)]);
  const batch = (...records: unknown[]) => ({ toArray: () => records });
  stream.check(batch(record(3, 2), record(1, 2)), [1, 0]);
  t.throws(() => stream.check(batch(record(1, 2), record(1, 2)), [1, 0]), /record 1 has shape/);
  t.throws(() => stream.check(batch(record(3, 2)), [1, 0]), /2 records asked for, 1 came/);
  t.throws(() => stream.check(batch({ ...record(3, 2), shape: [2, 3] }), [1]), {
    message: 'ink: record 1 has shape [2,3], its source [3,2]',
  });
});

/** @param patch code that runs before the demo */
function demo(patch: string, ...args: string[]) {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--import', `data:text/javascript,${encodeURIComponent(patch)}`, 'examples/demo.mjs', ...args],
    { cwd: root, encoding: 'utf8', env: { ...process.env, NODE_OPTIONS: '' } },
  );
  return { status, stderr };
}

t.test('a difference ends the demo with 1', async (t) => {
  // No two records are equal any more.
  const kept = path.join(t.testdir(), 'kept');
  const { status, stderr } = demo('Buffer.prototype.equals = () => false', '--keep', kept);
  t.equal(status, 1);
  t.match(stderr, /^\s*DIFFERENCE {2}image: record 0 differs from its source/);
  t.strictSame(readdirSync(kept), ['image-raw'], '--keep keeps what there is');
});

t.test('a path that is taken ends it with what to do', async (t) => {
  const kept = t.testdir();
  mkdirSync(path.join(kept, 'image-raw'));
  const { status, stderr } = demo('', '--keep', kept);
  t.equal(status, 1);
  t.match(stderr, /^\s*EXISTS {2}.*image-raw: something is at the path already/);
});
