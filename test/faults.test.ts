// Whole processes in which something fails at a chosen moment: killed at each call to the system,
// errors at each call, no memory at each allocation. The short form of `npm run faults`.

import { mkdtempSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { faultsLibrary } from '../scripts/faults.mjs';
import { builds } from './faults/life.mjs';
import {
  failEveryCall,
  killAtEveryCall,
  killAtRandomMoments,
  type Report,
  refuseEveryAllocation,
} from './faults/runs.mjs';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same random cases again`);
const library = await faultsLibrary();
const options = { skip: library === null ? 'only on Linux with glibc' : false };
const fresh = (): string => mkdtempSync(path.join(scratch.root, 'run-'));
const [, , denseDict, , , raggedDict] = builds;
const all = isFull ? builds : [];

function check(t: Test, { cases, ended, wrong }: Report, casesMin: number): void {
  t.comment(`${cases} cases: ${JSON.stringify(ended)}`);
  t.strictSame(wrong.slice(0, 20), []);
  t.ok(cases >= casesMin, `${cases} cases, at least ${casesMin}`);
}

for (const build of isFull ? all : builds.slice(0, 1)) {
  t.test(
    `${build.name}: a build killed at each call that changes something`,
    options,
    async (t) => {
      check(t, await killAtEveryCall(library ?? '', build, fresh(), ['killed before']), 25);
    },
  );
}

t.test('ends at a few random moments', options, async (t) => {
  const kills = isFull ? 1000 : 6;
  check(t, await killAtRandomMoments({ folder: fresh(), seed, kills }), kills);
});

for (const build of isFull ? all : [denseDict]) {
  if (build === undefined) throw new Error('there is no such build');
  t.test(`${build.name}: an error at each call`, options, async (t) => {
    const actions = isFull ? undefined : (['ENOSPC', 'short'] as const);
    check(t, await failEveryCall(library ?? '', build, fresh(), 'build', actions), 100);
    check(t, await failEveryCall(library ?? '', build, fresh(), 'read', actions), 80);
  });
}

for (const build of isFull ? all : [raggedDict]) {
  if (build === undefined) throw new Error('there is no such build');
  t.test(`${build.name}: no memory at each allocation`, options, async (t) => {
    check(t, await refuseEveryAllocation(library ?? '', build, fresh()), 50);
  });
}
