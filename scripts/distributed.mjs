// @ts-check
// Builds in parts by the engines that are installed here, for real: a Redis and BullMQ workers, Slurm's daemons,
// Kubernetes' manifests as local processes, mpirun and torchrun. All of it listens on the loopback alone and is
// gone at the end. What is not installed is skipped, with the reason.
//
//     npm run test:distributed
//     npm run test:distributed -- --only bullmq        or slurm, kubernetes, ranks
//     npm run test:distributed -- --only bullmq --play killed
//     npm run test:distributed -- --times 20           over and over, until one fails
import { bootstrap, build } from './build.mjs';
import { Failure } from './script.mjs';
import { closingLine, countingEntry, sum } from './tally.mjs';

/** @typedef {import('./tally.mjs').Tally} Tally */

/** @type {Readonly<Record<string, (play?: string) => Promise<Tally>>>} */
const engines = {
  kubernetes: async () => (await import('./distributed/kubernetes.mjs')).kubernetes(),
  ranks: async () => (await import('./distributed/ranks.mjs')).ranks(),
  slurm: async () => (await import('./distributed/slurm.mjs')).slurm(),
  bullmq: async (play) => (await import('./distributed/queue.mjs')).queue(play),
};

const usage = `npm run test:distributed -- [--only ${Object.keys(engines).join('|')}] [--play NAME] [--times N]`;

/** @param {string[]} args */
function wishesOf(args) {
  let names = Object.keys(engines);
  let times = 1;
  /** @type {string | undefined} */
  let play;
  for (let index = 0; index < args.length; index += 2) {
    const [name, value = ''] = args.slice(index, index + 2);
    if (name === '--only' && Object.hasOwn(engines, value)) names = [value];
    else if (name === '--play') play = value;
    else if (name === '--times' && /^[1-9]\d{0,3}$/.test(value)) times = Number(value);
    else throw new Failure(`test:distributed does not know ${name} ${value}`, usage);
  }
  return { names, times, play };
}

await countingEntry(import.meta, async (args) => {
  const { names, times, play } = wishesOf(args);
  await build(await bootstrap());
  /** @type {Tally[]} */
  const tallies = [];
  for (let time = 1; time <= times; time += 1) {
    for (const name of names) {
      const startMs = Date.now();
      process.stdout.write(`\n== ${name}${times > 1 ? `, run ${time} of ${times}` : ''}\n`);
      const tally = (await engines[name]?.(play)) ?? { passed: 0, failed: 1, skipped: 0 };
      const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
      process.stdout.write(`== ${name}: ${closingLine(tally)} (${seconds} s)\n`);
      tallies.push(tally);
    }
    if (sum(tallies).failed > 0) break;
  }
  process.stdout.write('\n');
  return sum(tallies);
});
