// Workers and processes that end while work runs: the right exit code, no signal, within 2 s.
//
// LOADERX_FULL=1 ends 200 of each kind, LOADERX_ENDINGS=1000 as many as it says (tap wants --timeout=0
// for either); else there are fewer.
import t from 'tap';
import { answerOf, type Ending, inParallel, runChild, startChild } from './support/child.js';
import { isFull, limitMs } from './support/limits.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const asked = Number(process.env.LOADERX_ENDINGS ?? (isFull ? 200 : 0));
const processCount = asked > 0 ? asked : 5;
const workerCount = asked > 0 ? asked : 40;
const endMs = limitMs(2000);
const at = scratch.fresh();

t.before(async () => {
  const { code, stderr } = await runChild('lifetimes', ['make', at]);
  if (code !== 0) throw new Error(stderr);
});

// ---- workers ----

const workerEndings: readonly (readonly [how: string, end: string])[] = [
  ['terminate', '1'],
  ['process.exit', '7'],
  ['uncaught', '1 Error: of the worker'],
  ['natural', '0'],
];

for (const [how, end] of workerEndings) {
  t.test(`${workerCount} workers that end by ${how} with work in flight (B57)`, async (t) => {
    const { ends, slowestMs, wrong } = (await answerOf(t, 'lifetimes', [
      'leaving',
      at,
      how,
      String(workerCount),
      '4',
    ])) as {
      ends: Record<string, number>;
      slowestMs: number;
      wrong: number;
    };
    t.strictSame(ends, { [end]: workerCount }, 'the right exit code, each time');
    t.ok(slowestMs < endMs, `each within ${endMs / 1000} s (${Math.round(slowestMs)} ms)`);
    t.equal(wrong, 0, 'the main thread gathers after that');
  });
}

t.test('exit handlers of workers gather', async (t) => {
  t.strictSame(await answerOf(t, 'lifetimes', ['workerExitHandlers', at, '8']), { right: 8 });
});

// ---- processes ----

/** Runs one ending many times; how often each exit code, signal and complaint came. */
async function endings(args: readonly string[]): Promise<{ ends: object; slowestMs: number }> {
  const ends: Record<string, number> = {};
  let slowestMs = 0;
  await inParallel(processCount, 2, async () => {
    const child = startChild('lifetimes', args);
    await child.line();
    const startMs = performance.now();
    const ending = await child.ended;
    slowestMs = Math.max(slowestMs, performance.now() - startMs);
    const text = summary(ending);
    ends[text] = (ends[text] ?? 0) + 1;
  });
  return { ends, slowestMs };
}

function summary({ code, signal, stdout, stderr }: Ending): string {
  const complaint = /^\w*Error: .*$/m.exec(stderr)?.[0] ?? stderr.trim();
  return `${code ?? signal} ${stdout.trim().replace('\n', ', ')} ${complaint}`.trim();
}

const cases: readonly (readonly [what: string, args: readonly string[], end: string])[] = [
  ['process.exit', ['leave', at, 'process.exit'], '7 "started"'],
  ['an uncaught error', ['leave', at, 'uncaught'], '1 "started" Error: of the program'],
  ['its natural end', ['leave', at, 'natural'], '0 "started"'],
  ['process.exit in a callback', ['leave', at, 'exit in a callback'], '7 "started"'],
  ['process.exit, a worker working', ['leave', at, 'process.exit', 'worker'], '7 "started"'],
  [
    'an uncaught error, a worker working',
    ['leave', at, 'uncaught', 'worker'],
    '1 "started" Error: of the program',
  ],
  [
    'its natural end, an unreferenced worker working',
    ['leave', at, 'natural', 'worker'],
    '0 "started"',
  ],
  [
    'process.exit, with an exit handler that gathers',
    ['exitHandler', at, 'process.exit'],
    '0 "started", {"right":true}',
  ],
  [
    'an uncaught error, with an exit handler that gathers',
    ['exitHandler', at, 'uncaught'],
    '1 "started", {"right":true} Error: of the program',
  ],
  [
    'its natural end, with an exit handler that gathers',
    ['exitHandler', at, 'natural'],
    '0 "started", {"right":true}',
  ],
];

for (const [what, args, end] of cases) {
  t.test(`${processCount} processes that end by ${what}, with work in flight`, async (t) => {
    const { ends, slowestMs } = await endings(args);
    t.strictSame(ends, { [end]: processCount });
    t.ok(
      slowestMs < endMs,
      `each within ${endMs / 1000} s from where it wanted to (${Math.round(slowestMs)} ms)`,
    );
  });
}
