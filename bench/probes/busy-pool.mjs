// @ts-check
// libuv's pool of one thread (UV_THREADPOOL_SIZE=1 in the environment): gathers while it is kept busy,
// and reads of a file while gathers run. Neither may wait for the other.
import { pbkdf2 } from 'node:crypto';
import fs from 'node:fs';
import { listen, summary } from '../backends/serve.mjs';
import { batches, denseStore, openAny } from './store.mjs';

listen({
  prepare({ workload, target, codec }) {
    denseStore(workload, target, codec);
    return {};
  },
  async measure({ workload: folder, target, codec, seconds }) {
    const { path, workload } = denseStore(folder, target, codec);
    const reader = openAny(path);
    const plan = batches(workload);
    const gather = async () => {
      const start = performance.now();
      const batch = await reader.gather(plan.next().value);
      const elapsed = performance.now() - start;
      batch[Symbol.dispose]();
      return elapsed;
    };
    const readFile = async () => {
      const start = performance.now();
      await fs.promises.readFile(`${folder}/workload.json`);
      return performance.now() - start;
    };
    for (let call = 0; call < 5; call += 1) await gather();

    const gatherIdle = await repeat(seconds, gather);
    let isBusy = true;
    const busy = keepPoolBusy(() => isBusy);
    const gatherBusy = await repeat(seconds, gather);
    isBusy = false;
    const jobs = await busy;

    const readIdle = await repeat(seconds, readFile);
    let isGathering = true;
    const gathering = (async () => {
      while (isGathering) {
        await gather();
        await new Promise(setImmediate);
      }
    })();
    const readBusy = await repeat(seconds, readFile);
    isGathering = false;
    await gathering;
    await reader.close();
    return { poolJobs: jobs, gatherIdle, gatherBusy, readIdle, readBusy };
  },
});

/** @param {number} seconds @param {() => Promise<number>} timed */
async function repeat(seconds, timed) {
  const times = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end || times.length < 5) times.push(await timed());
  return summary(times);
}

/** One job after the other of some tens of ms, the next one queued always. @param {() => boolean} isWanted */
async function keepPoolBusy(isWanted) {
  let jobs = 0;
  const work = () =>
    new Promise((resolve, reject) => {
      pbkdf2('password', 'salt', 100_000, 64, 'sha512', (error) =>
        error === null ? resolve(undefined) : reject(error),
      );
    });
  const stream = async () => {
    while (isWanted()) {
      await work();
      jobs += 1;
    }
  };
  await Promise.all([stream(), stream()]);
  return jobs;
}
