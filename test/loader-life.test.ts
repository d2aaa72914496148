// How loaders end: with the process, before it, in threads, forgotten; and that nothing is left.
//
//     LOADERX_TEARDOWN_COUNT=200   processes and threads of each kind, fewer unless given
//     LOADERX_FULL=1          100,000 batches, 10,000,000 records, 1,000 loaders of each kind

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import * as loaderx from '../ts/index.js';
import { DataLoader, Dense, ndarray } from '../ts/index.js';
import { answerOf, inParallel, runChild } from './support/child.js';
import { isFull, limitMs } from './support/limits.js';
import { failureOf } from './support/outcome.js';
import { Scratch } from './support/scratch.js';
import { buildStreams } from './support/streams.mjs';

const scratch = new Scratch(t);
const endMs = limitMs(2000);
const repeats = Number(process.env.LOADERX_TEARDOWN_COUNT ?? 1);
const root = scratch.fresh('data');
await buildStreams(loaderx, root, 1003);
const collecting = { nodeArgs: ['--expose-gc'] };

/** Runs one way of leaving `repeats` times: each ending, and the slowest. */
async function endings(args: readonly string[]): Promise<{ ends: object; slowestMs: number }> {
  const ends: Record<string, number> = {};
  let slowestMs = 0;
  await inParallel(repeats, 2, async () => {
    const { code, signal, stderr, ms } = await runChild('loaders', ['leave', root, ...args]);
    const complaint = /^(?:\w*Error: .*|.*Warning: .*)$/m.exec(stderr)?.[0] ?? stderr.trim();
    const text = `${code ?? signal} ${complaint}`.trim();
    ends[text] = (ends[text] ?? 0) + 1;
    slowestMs = Math.max(slowestMs, ms);
  });
  return { ends, slowestMs };
}

t.test('a script that forgets close, or breaks, ends by itself (B38)', async (t) => {
  const kinds = ['none', 'function', 'later', 'pool'];
  let turn = 0;
  for (const workers of [0, 1, 4, 16]) {
    for (const prefetch of [1, 64]) {
      for (const how of ['forget', 'break', 'next']) {
        turn += 1;
        for (const kind of isFull ? kinds : [kinds[turn % 4] ?? 'none']) {
          const { ends, slowestMs } = await endings([how, `${workers}`, `${prefetch}`, kind]);
          const name = `${how}, ${kind}, workers ${workers}, prefetch ${prefetch}`;
          t.strictSame(ends, { 0: repeats }, name);
          t.ok(slowestMs < endMs, `${name}: ${Math.round(slowestMs)} ms`);
        }
      }
    }
  }
});

t.test('listeners of the process in either order, and a gather that nobody awaits', async (t) => {
  for (const how of ['listeners first', 'listeners last', 'gather']) {
    const { ends } = await endings([how, '4', '4', 'none']);
    t.strictSame(ends, { 0: repeats }, how);
  }
});

t.test('leaving with work in flight: the right exit code, no signal', async (t) => {
  const ways: readonly (readonly [string, string])[] = [
    ['process.exit', '7'],
    ['throw', '1 Error: of the program'],
    ['reject', '1 RangeError: of the program'],
    ['loop', '1 TypeError: of the loop'],
    ['close', '0'],
    ['close twice', '0'],
  ];
  for (const [how, end] of ways) {
    for (const kind of ['none', 'later', 'pool']) {
      const { ends, slowestMs } = await endings([how, '4', '8', kind]);
      t.strictSame(ends, { [end]: repeats }, `${how}, ${kind}`);
      t.ok(slowestMs < endMs, `${how}, ${kind}: ${Math.round(slowestMs)} ms`);
    }
  }
});

t.test('threads that are terminated while their loaders work', async (t) => {
  const count = Math.max(20, repeats);
  const answer = await answerOf(t, 'loaders', ['terminated', root, String(count)]);
  const { ends, slowestMs } = answer as { ends: object; slowestMs: number };
  t.strictSame(ends, { 1: count });
  t.ok(slowestMs < endMs, `${Math.round(slowestMs)} ms`);
});

t.test('loaders in several threads at once', async (t) => {
  t.strictSame(await answerOf(t, 'loaders', ['inWorkers', root, '4']), { right: 4 });
});

interface Holdings {
  readonly descriptors: number;
  readonly threads: number;
  readonly heap: number;
  readonly rss: number;
}

t.test('loaders made and broken off after one batch leave nothing (B49)', async (t) => {
  for (const [kind, count] of [
    ['function', 1000],
    ['pool', isFull ? 1000 : 30],
  ] as const) {
    const args = ['brokenOff', root, String(count), kind];
    const { before, after } = (await answerOf(t, 'loaders', args, collecting)) as {
      before: Holdings;
      after: Holdings;
    };
    t.equal(after.descriptors, before.descriptors, `${kind}: descriptors`);
    t.equal(after.threads, before.threads, `${kind}: threads`);
    const heap = after.heap - before.heap;
    t.ok(heap < 2 ** 20, `${kind}: ${heap} bytes of heap more after ${count}`);
    // V8 makes its young generation larger when much is made and dropped, and keeps it so: when it
    // does depends on how busy the machine is.
    const resident = after.rss - before.rss;
    t.ok(resident < (isFull ? 64 : 256) * 2 ** 20, `${kind}: ${resident} bytes resident more`);
  }
});

t.test('loaders that are dropped without close are collected, their threads too', async (t) => {
  const args = ['dropped', root, isFull ? '200' : '20'];
  const { alive, before, after } = (await answerOf(t, 'loaders', args, collecting)) as {
    alive: number;
    before: Holdings;
    after: Holdings;
  };
  t.equal(alive, 0);
  // Lanes of the native core come with the first gathers, and stay.
  t.ok(after.threads <= before.threads + 2, `${before.threads} and ${after.threads} threads`);
  t.ok(after.descriptors <= before.descriptors, 'descriptors');
});

t.test('many small batches: nothing grows with them', async (t) => {
  const [count, from] = isFull ? [100_000, 5000] : [8000, 2500];
  const args = ['growth', root, String(count), String(from)];
  const { heapSlope, rssSlope } = (await answerOf(t, 'loaders', args, collecting)) as {
    heapSlope: number;
    rssSlope: number;
  };
  t.ok(heapSlope < 1024, `heap: ${heapSlope.toFixed(1)} bytes a batch`);
  // Over few batches the resident size is that of a process that gets going.
  if (isFull) t.ok(rssSlope < 1024, `resident: ${rssSlope.toFixed(1)} bytes a batch`);
});

t.test('batches of 1 MiB, dense and ragged: resident bytes stay (B41)', async (t) => {
  const args = ['largeGrowth', scratch.folder(), isFull ? '100000' : '1200'];
  const { most, rssSlope } = (await answerOf(t, 'loaders', args)) as {
    most: number;
    rssSlope: number;
  };
  // 4 ahead and one with the consumer, 2 MiB each.
  const inFlightBytes = 5 * 2 * 2 ** 20;
  // A batch that leaks every time is 2 GiB in the short run.
  t.ok(most < (isFull ? 4 : 20) * inFlightBytes, `${most} bytes more at most`);
  // Over 1,200 batches one buffer that is made late is a slope of a batch's size.
  if (isFull) t.ok(rssSlope < 1024, `${rssSlope.toFixed(1)} bytes a batch`);
});

t.test('two loaders beside a libuv pool of one thread that is busy (B55)', async (t) => {
  const env = { UV_THREADPOOL_SIZE: '1' };
  const count = isFull ? '10000' : '300';
  t.strictSame(await answerOf(t, 'loaders', ['busy', root, count], { env }), [0, 0]);
});

t.test('a throw in the loop body of large batches: the user’s error, soon (B53)', async (t) => {
  const at = scratch.fresh();
  await runChild('loaders', ['buildLarge', at, isFull ? '10000000' : '300000']);
  const { code, stderr, ms } = await runChild('loaders', ['largeThrow', at]);
  t.equal(code, 1);
  t.match(stderr, /RangeError: of the loop/);
  t.ok(ms < endMs, `${Math.round(ms)} ms`);
});

t.test('one bad frame fails exactly the batches that hold it (B95)', async (t) => {
  const at = scratch.fresh();
  const count = 200;
  const items = 256;
  const writer = Dense.create(at, {
    dtype: 'uint32',
    itemShape: [items],
    codec: 'zstd',
    dataShards: 1,
  });
  const data = new Uint32Array(count * items).map((_, index) => Math.floor(index / items) * 3);
  await writer.append(ndarray('uint32', [count, items], data));
  await writer.close();
  const bad = 77;
  const file = path.join(at, 'data_0.zr');
  const bytes = readFileSync(file);
  const magic = Buffer.from('28b52ffd', 'hex');
  let found = -1;
  for (let record = 0; record <= bad; record += 1) found = bytes.indexOf(magic, found + 1);
  bytes[found] = 0;
  writeFileSync(file, bytes);

  const steps = 1000;
  const options = { length: count, batchSize: 8, mode: 'iid', seed: 1 } as const;
  const sampler = new loaderx.Sampler(options);
  const holding = Array.from({ length: steps }, () => sampler.draw().includes(BigInt(bad)));
  sampler.close();
  const reader = Dense.open(at);
  for (const order of ['step', 'completion'] as const) {
    const loader = new DataLoader({ reader }, { ...{ batchSize: 8, mode: 'iid', seed: 1 }, order });
    const failed: number[] = [];
    let right = 0;
    while (loader.step < steps) {
      const call = loader.next();
      const failure = await call.then(
        ({ value: batch }) => {
          const values = batch?.reader.data as Uint32Array;
          if (values.length === 8 * items && !values.includes(bad * 3)) right += 1;
          return undefined;
        },
        (error: unknown) => error,
      );
      if (failure === undefined) continue;
      t.match(failure, { code: 'CODEC', record: bad, file: 'data_0.zr', path: at });
      const { failedStep = -1 } = loader;
      failed.push(failedStep);
      if (order === 'completion') break;
      await loader.seek(failedStep + 1);
    }
    if (order === 'step') {
      const wanted = holding.flatMap((holds, step) => (holds ? [step] : []));
      t.ok(wanted.length > 20);
      t.strictSame(failed, wanted, 'no more and no fewer');
      t.equal(right, steps - wanted.length);
    } else {
      t.ok(holding[failed[0] ?? -1], 'as they come: one that holds it');
    }
    await loader.close();
  }
  t.equal((await failureOf(() => reader.gather([bad]))).record, bad);
  await reader.close();
});
