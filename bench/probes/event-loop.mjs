// @ts-check
// How long the event loop is held up while batches of photos are gathered, one after the other.
import { listen } from '../backends/serve.mjs';
import { delaysDuring } from '../delays.mjs';
import { batches, denseStore, openAny } from './store.mjs';

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
