// @ts-check
// A worker: as many of these as there are machines, restarted by whatever restarts things there.
//
//     REDIS_HOST=127.0.0.1 REDIS_PORT=6379 node examples/bullmq/worker.mjs
import { worker } from 'loaderx/bullmq';

const connection = { host: process.env.REDIS_HOST, port: Number(process.env.REDIS_PORT ?? 6379) };
const crew = await worker({ connection, onEvent: (event) => console.log(JSON.stringify(event)) });
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, async () => {
    await crew.close();
    process.exit(0);
  });
}
