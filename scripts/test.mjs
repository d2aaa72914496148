// @ts-check
// Every test of this repository, from a fresh clone. The last line is `N passed, N failed`; the exit
// code follows it.
//
//     npm test
//     npm test -- --only zig          one part: zig, ts or lint; may be repeated
//     npm test -- test/dense.test.ts  these tap files only
//
// Each Zig test and each tap assertion counts; a check that is one yes or no (formatting, types)
// counts as one. A step that cannot run counts as one failed.
import os from 'node:os';
import { bootstrap, build } from './build.mjs';
import { run } from './child.mjs';
import { explain, Failure, inRoot } from './script.mjs';
import {
  closingLine,
  countingEntry,
  heldTo,
  readTapFailures,
  readTapTotals,
  readZigSummary,
  single,
  sum,
} from './tally.mjs';

/** @typedef {import('./tally.mjs').Tally} Tally */

/**
 * @typedef {object} Step
 * @property {string} name
 * @property {'lint' | 'zig' | 'ts'} part
 * @property {(tools: {zig: string}, files: readonly string[], failures: string[]) => Promise<Tally>} check
 *   adds to `failures` what is to be said again at the end
 */

/** In this order. `zig-debug` and `zig-fast` are the test programs of build.zig. @type {Step[]} */
const steps = [
  {
    name: 'zig fmt',
    part: 'lint',
    check: ({ zig }) => yesOrNo(zig, ['fmt', '--check', 'zig-src', 'build.zig', 'build.zig.zon']),
  },
  {
    name: 'biome',
    part: 'lint',
    check: () => yesOrNo(process.execPath, [bin('@biomejs/biome', 'bin/biome'), 'check', ...biome]),
  },
  {
    name: 'tsc',
    part: 'lint',
    check: () => {
      const tsc = bin('typescript', 'bin/tsc');
      return yesOrNo(process.execPath, [tsc, '-p', 'tsconfig.test.json', '--pretty', 'false']);
    },
  },
  {
    name: 'zig build test',
    part: 'zig',
    check: async ({ zig }) => {
      /** @type {string[]} */
      const lines = [];
      process.stdout.write('compiling (the first time, with zstd: minutes)\n');
      const args = ['build', 'test', '--summary', 'all', '--color', 'off'];
      const code = await run(zig, args, { onLine: (line) => lines.push(line) });
      return heldTo(readZigSummary(lines, ['zig-debug', 'zig-fast']), code);
    },
  },
  {
    name: 'tap',
    part: 'ts',
    check: async (tools, files, failures) => {
      await build(tools);
      /** @type {string[]} */
      const lines = [];
      const tap = [bin('tap', 'dist/esm/run.mjs'), '--reporter=tap', `--jobs=${jobs()}`, ...files];
      const code = await run(process.execPath, tap, { onLine: (line) => lines.push(line) });
      failures.push(...readTapFailures(lines));
      return heldTo(readTapTotals(lines), code);
    },
  },
];

const biome = ['--error-on-warnings', '--no-errors-on-unmatched', '--colors=off'];

/** @param {string} name @param {string} file a program of an npm package, run by node */
const bin = (name, file) => inRoot('node_modules', name, file);

/** @param {string} command @param {string[]} args */
async function yesOrNo(command, args) {
  return single((await run(command, args)) === 0);
}

/**
 * Test files that run at one time; tap's own default is one. Files share nothing but the machine. Long runs
 * (LOADERX_FULL=1) judge by the clock, and have it for themselves.
 */
const jobs = () => (process.env.LOADERX_FULL === '1' ? 1 : Math.min(4, os.availableParallelism()));

/** @param {string[]} args */
function chosen(args) {
  /** @type {Set<string>} */
  const parts = new Set();
  /** @type {string[]} */
  const files = [];
  for (let index = 0; index < args.length; index += 1) {
    const arg = args[index] ?? '';
    if (arg === '--only') {
      index += 1;
      parts.add(args[index] ?? '');
    } else if (arg.startsWith('-')) {
      throw new Failure(`npm test does not know ${arg}`, usage);
    } else {
      files.push(arg);
    }
  }
  if (files.length > 0) parts.add('ts');
  for (const part of parts) {
    if (!steps.some((step) => step.part === part)) {
      throw new Failure(`--only ${part}: there is no such part`, usage);
    }
  }
  return { files, steps: steps.filter((step) => parts.size === 0 || parts.has(step.part)) };
}

const usage = 'npm test -- [--only zig|ts|lint]... [test/NAME.test.ts]...';

/** @param {Step} step @param {{zig: string}} tools @param {readonly string[]} files */
async function perform(step, tools, files) {
  process.stdout.write(`\n== ${step.name}\n`);
  const startMs = Date.now();
  /** @type {Tally} */
  let tally;
  /** @type {string[]} */
  const failures = [];
  try {
    tally = await step.check(tools, files, failures);
  } catch (error) {
    process.stdout.write(`${explain(error)}\n`);
    tally = single(false);
  }
  const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
  process.stdout.write(`== ${step.name}: ${closingLine(tally)} (${seconds} s)\n`);
  if (tally.failed > 0 && failures.length === 0) failures.push(`FAILED  ${step.name}`);
  return { step, tally, failures };
}

/** @param {string[]} args @returns {Promise<Tally>} */
async function test(args) {
  const { files, steps: wanted } = chosen(args);
  const tools = await bootstrap();
  const results = [];
  for (const step of wanted) results.push(await perform(step, tools, files));
  process.stdout.write('\n');
  // Thousands of lines lie between a failure and the end.
  for (const { failures } of results) {
    for (const line of failures) process.stdout.write(`${line}\n`);
  }
  for (const { step, tally } of results) {
    process.stdout.write(`  ${step.name}: ${closingLine(tally)}\n`);
  }
  return sum(results.map(({ tally }) => tally));
}

await countingEntry(import.meta, test);
