// What a benchmark tells: every way of asking, of both kinds of containers, and what cannot be meant. Never how fast.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';

import { bench, benchLoader, configure, Dense, ndarray, Ragged } from '../ts/index.js';
import { told } from './support/command.js';
import { codeOf, failureOf } from './support/outcome.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const raw = { codec: 'raw' } as const;

async function dense(container: string, count: number): Promise<string> {
  const writer = Dense.create(container, { ...raw, dtype: 'float32', itemShape: [3] });
  await writer.append(ndarray('float32', [count, 3], new Float32Array(count * 3)));
  await writer.close();
  return container;
}

async function ragged(container: string, count: number): Promise<string> {
  const writer = Ragged.create(container, { codec: 'zstd', dtype: 'int16', ndim: 1 });
  await writer.append(
    Array.from({ length: count }, (_, at) =>
      ndarray('int16', [1 + (at % 7)], new Int16Array(1 + (at % 7))),
    ),
  );
  await writer.close();
  return container;
}

t.test('each way of asking, of both kinds', async (t) => {
  for (const make of [dense, ragged]) {
    for (const count of [1, 1000]) {
      const container = await make(scratch.fresh(), count);
      const told: number[] = [];
      const result = await bench(container, {
        seconds: 0.06,
        batchSize: 16,
        seed: 3,
        onProgress: ({ recordsDone }) => told.push(recordsDone),
      });
      t.match(result, { path: container, records: count, batchSize: Math.min(16, count), seed: 3 });
      t.equal(result.ways.length, 6);
      for (const { name, batches, recordsPerSecond, bytesPerSecond, ...of } of result.ways) {
        t.ok(batches > 0 && recordsPerSecond > 0 && bytesPerSecond > 0, name);
        const size = name.startsWith('one') ? 1 : Math.min(16, count);
        // Half of the calls took p50 or more, so this is the most that calls one after the other can give.
        if (!name.includes('at a time')) {
          t.ok(
            recordsPerSecond <= (2 * size * 1000) / of.p50Ms + 1e-6,
            `${name}: of the same calls`,
          );
        }
        if (make === dense) t.ok(Math.abs(bytesPerSecond / recordsPerSecond - 12) < 1e-6, name);
        t.ok(of.p50Ms > 0 && of.p50Ms <= of.p95Ms && of.p95Ms <= of.p99Ms, name);
      }
      t.ok(result.memoryAfter.residentBytes > 0);
      t.strictSame(told, [1, 2, 3, 4, 5, 6]);
    }
  }
});

t.test('a loader over several containers', async (t) => {
  const folder = scratch.folder();
  const paths = [
    await dense(path.join(folder, 'a'), 500),
    await ragged(path.join(folder, 'b'), 500),
  ];
  const result = await benchLoader(paths, { seconds: 0.1, batchSize: 32, prefetch: 2 });
  t.match(result, { paths, batchSize: 32 });
  t.ok(result.batchesPerSecond > 0 && result.bytesPerSecond > 0 && result.firstBatchMs > 0);
  const { stats } = result;
  const sum = stats.drawMs + stats.gatherMs + stats.transformMs + stats.consumerMs + stats.dataMs;
  t.ok(Math.abs(sum - stats.elapsedMs) < 1, 'times of the loader add up');

  const lanes = configure().lanes;
  const said = await told(
    'bench',
    folder,
    '--loader',
    '--seconds',
    '0.1',
    '--lanes',
    '1',
    '--batch',
    '8',
  );
  t.match(said, {
    code: 0,
    err: '',
    out: /batches of 8, 1 lane, seed 42\n.* batches\/s, .*it waited for gathers/s,
  });
  t.equal(configure().lanes, lanes, 'lanes are as before');
  const json = await told('bench', folder, '--seconds', '0.06', '--json');
  t.match(JSON.parse(json.out), { lanes, containers: [{ records: 500 }, { records: 500 }] });
  const text = await told('bench', folder, '--seconds', '0.06');
  t.match(text.out, /float32, raw\n.*random, sync.*int16, zstd\n.*memory /s);
  const loader = JSON.parse(
    (await told('bench', folder, '--loader', '--seconds', '0.05', '--json')).out,
  );
  t.match(loader, { lanes, paths: [String, String], stats: { batches: Number } });
});

t.test('what cannot be meant', async (t) => {
  const container = await dense(scratch.fresh(), 10);
  for (const options of [
    { seconds: 0 },
    { seconds: Number.NaN },
    { seconds: '1' },
    { batchSize: 0 },
    { batchSize: 1.5 },
    { batchSize: 2 ** 29 },
    { seed: -1 },
    { frob: 1 },
  ]) {
    t.equal(await codeOf(() => bench(container, options as never)), 'INVALID_ARGUMENT');
    t.equal(await codeOf(() => benchLoader([container], options as never)), 'INVALID_ARGUMENT');
  }
  t.match(await failureOf(() => benchLoader('train' as never)), {
    code: 'INVALID_ARGUMENT',
    field: 'paths',
  });
  const few = await told('bench', container, '--seconds', '0.001');
  t.match(few.out, /too few calls to be trusted, less than 100: sequential, async/);
  t.match(await bench(pathToFileURL(container), { seconds: 0.01 }), { path: container });
  t.equal(await codeOf(() => bench('no-such')), 'NOT_FOUND');
  t.equal(await codeOf(() => benchLoader(['no-such'])), 'NOT_FOUND');
  for (const paths of [null, container, [1], [container, container]]) {
    t.equal(await codeOf(() => benchLoader(paths as never)), 'INVALID_ARGUMENT');
  }
  const aborted = { signal: AbortSignal.abort() };
  t.equal(await codeOf(() => bench(container, aborted)), 'ABORTED');
  t.equal(await codeOf(() => benchLoader([container], aborted)), 'ABORTED');
  const other = await dense(scratch.fresh(), 11);
  t.equal(await codeOf(() => benchLoader([container, other])), 'INVALID_ARGUMENT');
  for (const [args, said] of [
    [['--batch', 'x'], /--batch wants a whole number/],
    [['--batch', '0'], /batchSize must be 1 or more/],
    [['--seconds', '-1'], /--seconds/],
    [['--seconds', 'x'], /--seconds wants a number of seconds/],
    [['--lanes', '0'], /lanes must be 1 to/],
    [['--prefetch', '2'], /--prefetch is for --loader/],
  ] as const) {
    t.match(await told('bench', container, ...args), { code: 2, err: said });
  }
});
