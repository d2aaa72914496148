// @ts-check
// A worker of `loaderx/bullmq` in a process of its own, as scripts/distributed.mjs starts and kills it:
//
//     node worker.mjs PORT
//
// Says each event as a line of JSON. SIGTERM closes it. With FAULTS in the environment its children load
// faults.mjs first.

/** @type {typeof import('../../ts/bullmq.js')} */
const { worker } = await import(new URL('../../dist/bullmq.js', import.meta.url).href);

const [port = ''] = process.argv.slice(2);
const faults =
  process.env.FAULTS === undefined ? [] : [new URL('faults.mjs', import.meta.url).href];
const crew = await worker({
  connection: { port: Number(port) },
  // Short, so that a dead worker's part is not waited for long; the default is half a minute.
  lockMs: 2000,
  execArgv: faults.flatMap((href) => ['--import', href]),
  onEvent: (event) => process.stdout.write(`${JSON.stringify(event)}\n`),
});
process.stdout.write(`${JSON.stringify({ kind: 'ready' })}\n`);
process.once('SIGTERM', async () => {
  await crew.close({ timeoutMs: 500 });
  process.exit(0);
});
