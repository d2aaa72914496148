// @ts-check
// Builds and reading under fire, as the whole process lives through it:
//
//     kills    a build is killed before, after and in the midst of each call that changes something;
//              6 configurations
//     moments  processes that build without end are killed at random moments (--count)
//     errors   each call of a build and of reading fails, once and from then on, in 8 ways
//     memory   each allocation of the addon is refused, once and from then on
//
//     npm run faults -- [--only kills|moments|errors|memory]... [--of dense|ragged]
//                       [--count N] [--minutes N] [--seed S]
//
// --of takes the builds whose names begin so (dense-raw, ragged). --minutes ends the random moments early. Linux with glibc (test/native/faults.c). Each configuration
// and part counts; the last line is `N passed, N failed`.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from './build.mjs';
import { ask } from './child.mjs';
import { Failure, inRoot } from './script.mjs';
import { countingEntry, single, sum } from './tally.mjs';
import { ensureZig } from './toolchain.mjs';

/** @typedef {import('../test/faults/runs.mjs').Report} Report */

const usage =
  'npm run faults -- [--only kills|moments|errors|memory]... [--of dense|ragged] [--count N] [--minutes N] [--seed S]';

/** test/native/faults.c, built. Null: not on this system. @returns {Promise<string | null>} */
export async function faultsLibrary() {
  const hasGlibc = 'glibcVersionRuntime' in /** @type {any} */ (process.report.getReport()).header;
  if (process.platform !== 'linux' || !hasGlibc) return null;
  if (process.arch !== 'x64' && process.arch !== 'arm64') return null;
  const { ok, output } = ask(await ensureZig(), ['build', 'faults', '--color', 'off']);
  if (!ok) throw new Failure('test/native/faults.c does not build', output);
  return inRoot('zig-out', 'lib', 'libfaults.so');
}

const partNames = ['kills', 'moments', 'errors', 'memory'];

/** @param {string[]} args */
function parse(args) {
  const only = new Set();
  const options = { of: '', count: 1000, minutes: Number.POSITIVE_INFINITY };
  let seed = randomBytes(4).toString('hex');
  for (let index = 0; index < args.length; index += 2) {
    const [name, value = ''] = [args[index], args[index + 1]];
    if (name === '--only' && partNames.includes(value)) only.add(value);
    else if (name === '--seed' && value !== '') seed = value;
    else if (name === '--of' && /^(?:dense|ragged)/.test(value)) options.of = value;
    else if (name === '--count' && /^\d{1,7}$/.test(value)) options.count = Number(value);
    else if (name === '--minutes' && /^\d{1,5}$/.test(value)) options.minutes = Number(value);
    else throw new Failure(`npm run faults does not know ${name} ${value}`, usage);
  }
  return {
    ...options,
    seed,
    wants: (/** @type {string} */ part) => only.size === 0 || only.has(part),
  };
}

/** @param {string} what @param {() => Promise<Report>} run */
async function told(what, run) {
  const startMs = Date.now();
  const { cases, ended, wrong } = await run();
  const ok = wrong.length === 0 && cases > 0;
  const seconds = ((Date.now() - startMs) / 1000).toFixed(1);
  process.stdout.write(`${ok ? 'ok' : 'NOT OK'}: ${what}: ${cases} cases in ${seconds} s\n`);
  for (const [how, times] of Object.entries(ended).sort()) {
    process.stdout.write(`    ${how}: ${times}\n`);
  }
  for (const fault of wrong.slice(0, 20)) process.stdout.write(`    ${fault}\n`);
  return single(ok);
}

/** @param {string[]} args */
async function faults(args) {
  const { of, count, minutes, seed, wants } = parse(args);
  await build(await bootstrap());
  const library = await faultsLibrary();
  if (library === null) throw new Failure('this wants Linux with glibc, on x64 or arm64');
  const runs = await import('../test/faults/runs.mjs');
  const { builds: all } = await import('../test/faults/life.mjs');
  const builds = all.filter(({ name }) => name.startsWith(of));
  if (builds.length === 0) throw new Failure(`no build is named ${of}…`, usage);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-faults-'));
  const fresh = () => fs.mkdtempSync(path.join(folder, 'run-'));
  const results = [];
  process.stdout.write(`seed ${seed}\n`);
  try {
    for (const kind of builds) {
      if (!wants('kills')) break;
      results.push(
        await told(`${kind.name} killed at every call`, () =>
          runs.killAtEveryCall(library, kind, fresh()),
        ),
      );
    }
    for (const kind of builds) {
      if (!wants('errors')) break;
      for (const phase of /** @type {const} */ (['build', 'read'])) {
        results.push(
          await told(`${kind.name}, each call of ${phase} fails`, () =>
            runs.failEveryCall(library, kind, fresh(), phase, runs.failures),
          ),
        );
      }
    }
    for (const kind of builds) {
      if (!wants('memory')) break;
      results.push(
        await told(`${kind.name}, each allocation is refused`, () =>
          runs.refuseEveryAllocation(library, kind, fresh()),
        ),
      );
    }
    if (wants('moments')) {
      const end = Date.now() + minutes * 60_000;
      const run = { folder: fresh(), seed, kills: count, done: () => Date.now() > end };
      results.push(
        await told(`killed at random moments, seed ${seed}`, () =>
          runs.killAtRandomMoments({
            ...run,
            onProgress: (kills) => {
              if (kills % 100 === 0) process.stdout.write(`${kills} of ${count}\n`);
            },
          }),
        ),
      );
    }
    return sum(results);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

await countingEntry(import.meta, faults);
