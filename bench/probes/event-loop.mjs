// @ts-check
// How long the event loop is held up while batches of photos are gathered, one after the other. A
// timer of 1 ms fires late: the delay is what it is late by.
import { listen } from '../backends/serve.mjs';
import { batches, denseStore, openAny } from './store.mjs';

const intervalMs = 1;

listen({
  prepare({ workload, target, codec }) {
    denseStore(workload, target, codec);
    return {};
  },
  async measure({ workload: folder, target, seconds, codec, kind }) {
    const { path, workload } = denseStore(folder, target, codec);
    const reader = openAny(path);
    const plan = batches(workload);
    const gather = async () => {
      const batch = await reader.gather(plan.next().value);
      if (kind === 'disposed') batch[Symbol.dispose]();
    };
    for (let call = 0; call < 5; call += 1) await gather();
    const idle = await delaysDuring(() => new Promise((resolve) => setTimeout(resolve, 500)));
    let calls = 0;
    const loaded = await delaysDuring(async () => {
      const end = performance.now() + seconds * 1000;
      while (performance.now() < end || calls < 5) {
        await gather();
        calls += 1;
      }
    });
    await reader.close();
    return { calls, idle, loaded };
  },
});

/** @param {() => Promise<unknown>} body */
async function delaysDuring(body) {
  /** @type {number[]} */
  const delays = [];
  let due = performance.now() + intervalMs;
  const timer = setInterval(() => {
    const now = performance.now();
    delays.push(Math.max(0, now - due));
    due = now + intervalMs;
  }, intervalMs);
  await body();
  // What the body held up until its end counts too.
  await new Promise((resolve) => setTimeout(resolve, intervalMs * 2));
  clearInterval(timer);
  delays.sort((a, b) => a - b);
  const at = (/** @type {number} */ share) => delays[Math.floor((delays.length - 1) * share)] ?? 0;
  return { ticks: delays.length, p50Ms: at(0.5), p99Ms: at(0.99), maxMs: at(1) };
}
