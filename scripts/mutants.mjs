// @ts-check
// Whether the tests bite: one operator of the code that validates and plans is changed, and the tests
// that are for that file must fail.
//
//     npm run mutants -- [--only ts|zig] [--count N] [--seed S]
//
// ts: the rooms that judge what users give, each with its test files, bundled with the change in it. zig:
// the container's bytes and the plans of appends and gathers, with the tests in those files. --count
// mutants of each are picked by the seed. Survivors are listed: some mean the same as before
// (docs/testing.md says which). The last line is `N passed, N failed`; a survivor has failed.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from './build.mjs';
import { Failure, inRoot } from './script.mjs';
import { countingEntry, single, sum } from './tally.mjs';

const usage = 'npm run mutants -- [--only ts|zig] [--count N] [--seed S]';

/** @typedef {{file: string, at: number, from: string, to: string}} Mutant */

/** What validates, and the tests that are for it. */
const rooms = /** @type {const} */ ({
  'ts/dtype.ts': ['test/dtype.test.ts', 'test/ndarray.test.ts'],
  'ts/ndarray.ts': ['test/ndarray.test.ts'],
  'ts/schema-walk.ts': ['test/schema.test.ts'],
  'ts/schema.ts': ['test/schema.test.ts'],
  'ts/store/ids.ts': ['test/ids.test.ts'],
});
const zigFiles = ['zig-src/store/plan.zig', 'zig-src/store/format.zig'];

/** @type {readonly (readonly [RegExp, string])[]} */
const tsChanges = [
  [/ === /g, ' !== '],
  [/ !== /g, ' === '],
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ \* /g, ' + '],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
];

/** @type {readonly (readonly [RegExp, string])[]} */
const zigChanges = [
  [/ == /g, ' != '],
  [/ != /g, ' == '],
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ and /g, ' or '],
  [/ or /g, ' and '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
];

/**
 * Every change of code, comments and texts aside.
 *
 * @param {string} file
 * @param {readonly (readonly [RegExp, string])[]} changes
 * @returns {Mutant[]}
 */
function mutantsOf(file, changes) {
  const text = fs.readFileSync(inRoot(file), 'utf8');
  const end = file.endsWith('.zig') ? text.search(/^test "/m) : -1;
  const code = blanked(end < 0 ? text : text.slice(0, end));
  return changes.flatMap(([what, to]) =>
    [...code.matchAll(what)].map((match) => ({ file, at: match.index, from: match[0], to })),
  );
}

/** The same length, with blanks in place of comments, texts, types' arrows and imports. @param {string} text */
function blanked(text) {
  const blank = (/** @type {string} */ part) => part.replace(/[^\n]/g, '_');
  return text
    .replace(/\/\*[\s\S]*?\*\//g, blank)
    .replace(/\/\/[^\n]*/g, blank)
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, blank)
    .replace(/^(?:import|export type|type|assert)\b[^;]*;/gm, blank)
    .replace(/\bassert\([^;]*;/g, blank);
}

/** Whether a program ends well; one that a change keeps from ending does not. @param {string} command @param {readonly string[]} args */
function endsWell(command, args) {
  const options = /** @type {const} */ ({
    stdio: 'ignore',
    timeout: 300_000,
    killSignal: 'SIGKILL',
  });
  return spawnSync(command, args, options).status === 0;
}

/** @param {Mutant} mutant */
function changed({ file, at, from, to }) {
  const text = fs.readFileSync(inRoot(file), 'utf8');
  return text.slice(0, at) + to + text.slice(at + from.length);
}

/** @param {Mutant} mutant */
function named({ file, at, from, to }) {
  const before = fs.readFileSync(inRoot(file), 'utf8').slice(0, at);
  const text = fs.readFileSync(inRoot(file), 'utf8').split('\n');
  const line = before.split('\n').length;
  return `${file}:${line}${from}→${to} in: ${text[line - 1]?.trim()}`;
}

/** Whether the tests pass with `mutant` in place of its file; null is none. @typedef {(mutant: Mutant | null, file: string) => Promise<boolean>} Judge */

/** @param {string} folder @returns {Promise<Judge>} */
async function tsJudge(folder) {
  const esbuild = await import('esbuild');
  return async (mutant, file) => {
    const tests = rooms[/** @type {keyof typeof rooms} */ (file)];
    for (const test of tests) {
      const outfile = path.join(folder, `${path.basename(test, '.ts')}.mjs`);
      await esbuild.build({
        entryPoints: [inRoot(test)],
        ...{ bundle: true, format: 'esm', platform: 'node', outfile, logLevel: 'silent' },
        ...{ target: 'node20', packages: 'external' },
        plugins: [
          {
            name: 'mutant',
            setup(build) {
              build.onLoad({ filter: /[/\\]ts[/\\].*\.ts$/ }, ({ path: loaded }) =>
                mutant !== null && loaded === inRoot(mutant.file)
                  ? { contents: changed(mutant), loader: 'ts' }
                  : undefined,
              );
            },
          },
        ],
      });
      if (!endsWell(process.execPath, [outfile])) return false;
    }
    return true;
  };
}

/** @param {string} folder @param {string} zig @returns {Judge} */
function zigJudge(folder, zig) {
  const sources = path.join(folder, 'zig-src');
  fs.cpSync(inRoot('zig-src'), sources, { recursive: true });
  const names = zigFiles.map((file) => file.slice('zig-src/'.length));
  const imports = names.map((name) => `    _ = @import("${name}");\n`).join('');
  fs.writeFileSync(path.join(sources, 'mutants.zig'), `test {\n${imports}}\n`);
  return async (mutant, file) => {
    const place = path.join(folder, file);
    fs.writeFileSync(place, mutant === null ? fs.readFileSync(inRoot(file)) : changed(mutant));
    const ok = endsWell(zig, ['test', path.join(sources, 'mutants.zig'), '-lc']);
    fs.copyFileSync(inRoot(file), place);
    return ok;
  };
}

/** @param {string[]} args */
function parse(args) {
  const options = { only: '', count: 100, seed: randomBytes(4).toString('hex') };
  for (let index = 0; index < args.length; index += 2) {
    const [name, value = ''] = [args[index], args[index + 1]];
    if (name === '--only' && (value === 'ts' || value === 'zig')) options.only = value;
    else if (name === '--seed' && value !== '') options.seed = value;
    else if (name === '--count' && /^\d{1,6}$/.test(value)) options.count = Number(value);
    else throw new Failure(`npm run mutants does not know ${name} ${value}`, usage);
  }
  return options;
}

/** @param {string} part @param {Mutant[]} all @param {number} count @param {string} seed @param {Judge} judge */
async function caught(part, all, count, seed, judge) {
  const { Random } = await import('../test/interop/random.mjs');
  const random = new Random(seed, 'mutants', part);
  for (const file of new Set(all.map((mutant) => mutant.file))) {
    if (!(await judge(null, file))) throw new Failure(`the tests of ${file} fail without a change`);
  }
  const left = [...all];
  const results = [];
  while (left.length > 0 && results.length < count) {
    const [mutant] = left.splice(random.between(0, left.length - 1), 1);
    if (mutant === undefined) break;
    const survives = await judge(mutant, mutant.file);
    if (survives) process.stdout.write(`survives: ${named(mutant)}\n`);
    results.push(single(!survives));
  }
  process.stdout.write(`${part}, seed ${seed}: ${results.length} of ${all.length} mutants\n`);
  return sum(results);
}

/** @param {string[]} args */
async function mutants(args) {
  const { only, count, seed } = parse(args);
  const tools = await bootstrap();
  await build(tools);
  // Inside the checkout, so that packages are found.
  fs.mkdirSync(inRoot('build'), { recursive: true });
  const folder = fs.mkdtempSync(inRoot('build', 'mutants-'));
  try {
    const results = [];
    if (only !== 'zig') {
      const all = Object.keys(rooms).flatMap((file) => mutantsOf(file, tsChanges));
      results.push(await caught('ts', all, count, seed, await tsJudge(folder)));
    }
    if (only !== 'ts') {
      const all = zigFiles.flatMap((file) => mutantsOf(file, zigChanges));
      const zigFolder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-mutants-'));
      try {
        results.push(await caught('zig', all, count, seed, zigJudge(zigFolder, tools.zig)));
      } finally {
        fs.rmSync(zigFolder, { recursive: true, force: true });
      }
    }
    return sum(results);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

await countingEntry(import.meta, mutants);
