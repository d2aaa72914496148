// @ts-check
// Enqueues a conversion, and waits for it. Ctrl-C cancels it.
//
//     REDIS_HOST=127.0.0.1 REDIS_PORT=6379 node examples/bullmq/convert.mjs SOURCE TARGET PARTS
import { enqueueConversion } from 'loaderx/bullmq';

const [source = '', target = '', parts = ''] = process.argv.slice(2);
if (parts === '') {
  console.error('usage: node examples/bullmq/convert.mjs SOURCE TARGET PARTS');
  process.exit(2);
}
const connection = { host: process.env.REDIS_HOST, port: Number(process.env.REDIS_PORT ?? 6379) };
const conversion = await enqueueConversion(
  { source, target, parts: Number(parts), codec: 'zstd', integrity: true },
  { connection },
).catch((error) => {
  console.error(error.message);
  process.exit(1);
});
process.once('SIGINT', () => conversion.cancel({ reason: 'Ctrl-C' }));
try {
  const { sets } = await conversion.done();
  for (const { path, records } of sets) console.log(`${path}: ${records} records`);
  await conversion.remove();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
} finally {
  await conversion.close();
}
