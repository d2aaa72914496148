// A loop that awaits nothing but small gathers, which are done at once, still lets the event loop turn.
import { syncBuiltinESMExports } from 'node:module';
import timers from 'node:timers/promises';
import t from 'tap';
import { configure, Dense, ndarray, Ragged } from '../ts/index.js';
import { atOnceMax } from '../ts/native/turn.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

t.test('timers and immediates run beside a loop of gathers', async (t) => {
  const at = scratch.fresh();
  const writer = Dense.create(at, { dtype: 'uint32', itemShape: [4], codec: 'raw' });
  const count = 1000;
  await writer.append(
    ndarray(
      'uint32',
      [count, 4],
      new Uint32Array(count * 4).map((_, index) => index),
    ),
  );
  await writer.close();
  const reader = Dense.open(at);
  let turns = 0;
  let isOver = false;
  const turn = (): void => {
    turns += 1;
    if (!isOver) setImmediate(turn);
  };
  setImmediate(turn);
  const rounds = 5000;
  for (let round = 0; round < rounds; round += 1) {
    const { data } = await reader.gather([round % count]);
    if (data[3] !== (round % count) * 4 + 3) t.fail(`record ${round % count}`);
  }
  isOver = true;
  t.ok(turns >= Math.floor(rounds / (atOnceMax + 1)), `${turns} turns`);
  await reader.close();
});

t.test('a compressed append ends where a test has replaced timers', async (t) => {
  const { setTimeout } = timers;
  t.teardown(() => {
    timers.setTimeout = setTimeout;
    syncBuiltinESMExports();
  });
  timers.setTimeout = () => new Promise(() => {});
  syncBuiltinESMExports();
  const [count, bytes] = [20, 1024 * 1024 * 2];
  const items = new Uint8Array(count * bytes);
  const dense = Dense.create(scratch.fresh(), {
    dtype: 'uint8',
    itemShape: [bytes],
    codec: 'zstd',
  });
  await dense.append(ndarray('uint8', [count, bytes], items));
  t.equal(dense.length, count);
  await dense.close();
  const ragged = Ragged.create(scratch.fresh(), { dtype: 'uint8', ndim: 1, codec: 'zstd' });
  await ragged.append(
    Array.from({ length: count }, (_, index) =>
      ndarray('uint8', [bytes], items.subarray(index * bytes, (index + 1) * bytes)),
    ),
  );
  t.equal(ragged.length, count);
  await ragged.close();
});

t.test('lanes: told, set, refused', (t) => {
  const { lanes } = configure();
  t.ok(lanes >= 1);
  t.strictSame(configure({ lanes: lanes + 1 }), { lanes: lanes + 1 });
  t.strictSame(configure({ lanes }), { lanes });
  t.strictSame(configure({}), { lanes });
  for (const [wrong, name] of [
    [{ lanes: 0 }, 'RangeError'],
    [{ lanes: 1025 }, 'RangeError'],
    [{ lanes: 1.5 }, 'TypeError'],
    [{ lanes: '2' }, 'TypeError'],
    [{ lane: 2 }, 'TypeError'],
    [null, 'TypeError'],
  ] as const) {
    t.throws(() => configure(wrong as never), { name, code: 'INVALID_ARGUMENT' });
  }
  t.strictSame(configure(), { lanes });
  t.end();
});
