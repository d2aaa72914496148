// Resuming: a step is the whole state. Batches after it are the same whatever the settings, and
// whatever ended the process before.
//
//     LOADERX_FULL=1   the pool of workers is made anew for each step, not for each 100th, and
//                           processes are killed in each mode

import { readFileSync, rmSync } from 'node:fs';
import t from 'tap';
import * as loaderx from '../ts/index.js';
import { DataLoader } from '../ts/index.js';
import { answerOf, inParallel, runChild } from './support/child.js';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';
import {
  buildStreams,
  closeStreams,
  expectedIds,
  hashOf,
  idsOf,
  openStreams,
  type Streams,
  type StreamsBatch,
} from './support/streams.mjs';

const scratch = new Scratch(t);
const length = 1003;
const batchSize = 16;
const steps = 500;
const modes = ['sequential', 'iid', 'cyclic'] as const;
const root = scratch.fresh('data');
await buildStreams(loaderx, root, length);
const streams: Streams = openStreams(loaderx, root);
t.teardown(() => closeStreams(streams));

const expected = new Map(
  modes.map((mode) => [mode, expectedIds(loaderx, { length, batchSize, mode }, steps).map(hashOf)]),
);

const hash = (batch: StreamsBatch): number => hashOf(idsOf(batch));
const hashLater = async (batch: StreamsBatch): Promise<number> => {
  await undefined;
  return hash(batch);
};

/** A chain of loaders: each resumes where the one before it stopped, after one batch. */
async function differences(
  mode: (typeof modes)[number],
  settings: (step: number) => { readonly transformWorkers: number; readonly prefetch: number },
): Promise<number> {
  let wrong = 0;
  let step = 0;
  while (step < steps) {
    const transform = step % 2 === 0 ? hash : hashLater;
    const loader = new DataLoader(streams, { batchSize, mode, step, transform, ...settings(step) });
    const { value } = await loader.next();
    if (value !== expected.get(mode)?.[step]) wrong += 1;
    if (loader.step !== step + 1) wrong += 1;
    ({ step } = loader);
    await loader.close();
  }
  return wrong;
}

for (const mode of modes) {
  t.test(`${mode}: 500 steps, resumed at each, functions`, async (t) => {
    for (const transformWorkers of [0, 1, 4]) {
      for (const prefetch of [1, 8]) {
        const name = `workers ${transformWorkers}, prefetch ${prefetch}`;
        t.equal(await differences(mode, () => ({ transformWorkers, prefetch })), 0, name);
      }
    }
    const any = (step: number) => ({ transformWorkers: step % 3, prefetch: 1 + (step % 8) });
    t.equal(await differences(mode, any), 0, 'other settings each time');

    const loader = new DataLoader(streams, { batchSize, mode, transform: hash });
    let wrong = 0;
    for (let step = 0; step < steps; step += 1) {
      const { value } = await loader.next();
      if (value !== expected.get(mode)?.[step]) wrong += 1;
    }
    t.equal(wrong, 0, 'and in one go');
    await loader.close();
  });
}

t.test('500 steps, resumed at each, worker pool', async (t) => {
  const { wrong, compared, pools } = (await answerOf(t, 'loaders', [
    'resume',
    root,
    String(isFull ? 1 : 100),
  ])) as { wrong: number; compared: number; pools: number };
  t.equal(wrong, 0);
  // 3 modes, workers 0, 1 and 4, prefetch 1 and 8.
  t.equal(compared, 18 * steps);
  t.ok(pools >= 18 * (isFull ? steps : 5), `${pools} loaders`);
});

t.test('a process that is killed at each of 50 steps, and resumed (B46)', async (t) => {
  const count = 50;
  const killedModes = isFull ? modes : (['iid'] as const);
  await inParallel(killedModes.length, 2, async (index) => {
    const mode = killedModes[index] ?? 'cyclic';
    const state = scratch.fresh('state.json');
    let killed = 0;
    for (let kill = 0; kill <= count; kill += 1) {
      const { code, signal, stderr } = await runChild('loaders', [
        'train',
        root,
        mode,
        state,
        String(count),
        // Every other time before the state is written, so that a step is done twice.
        kill < count ? String(kill) : 'never',
      ]);
      if (signal === 'SIGKILL') killed += 1;
      else t.strictSame([code, stderr], [0, '']);
    }
    t.equal(killed, count, `${mode}: killed`);
    const { step, hashes } = JSON.parse(readFileSync(state, 'utf8')) as {
      step: number;
      hashes: number[];
    };
    t.equal(step, count);
    t.strictSame(hashes, expected.get(mode)?.slice(0, count), `${mode}: equal`);
    rmSync(state);
  });
});
