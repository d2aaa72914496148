// @ts-check
// A worker: as many of these as there are machines, restarted by whatever restarts things there.
//
//     REDIS_HOST=127.0.0.1 REDIS_PORT=6379 node examples/bullmq/worker.mjs
import { worker } from 'loaderx/bullmq';

const connection = { host: process.env.REDIS_HOST, port: Number(process.env.REDIS_PORT ?? 6379) };
/** While Redis is away the same is told again and again: once is enough. */
let trouble = '';
/** @param {import('loaderx/bullmq').WorkerEvent} event */
function tell(event) {
  const again = event.kind === 'trouble' && event.message === trouble;
  trouble = event.kind === 'trouble' ? event.message : '';
  if (!again) console.log(JSON.stringify(event));
}

const crew = await worker({ connection, onEvent: tell }).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await crew.close();
    process.exit(0);
  });
}
