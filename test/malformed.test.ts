// Damaged containers, kind by kind: what each comes to, that intact records are still read, and that
// nothing else happens. The table is support/damage.ts.

import { createHash } from 'node:crypto';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { type BaseName, makeBases } from './support/bases.js';
import {
  type Damage,
  type Record as DamagedRecord,
  damages,
  type Expected,
} from './support/damage.js';
import { edited, type Files, writeFiles } from './support/files.mjs';
import { fixture, readFixture, withoutFixtures } from './support/fixtures.js';
import { limitMs } from './support/limits.js';
import { type Observed, observe, type Read } from './support/observe.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

/** Generous for a busy machine; a container of this size takes a millisecond. */
const msMax = limitMs(2000);

/** Records of an intact container. */
async function intactReads(place: string): Promise<readonly Read[]> {
  const observed = await observe(place);
  if (observed.open !== 'accepts') throw observed.error;
  return observed.records.map((record) => {
    if (typeof record === 'string') throw new Error(`${place} is not intact: ${record}`);
    return record;
  });
}

/** What each record of a damaged container is, told against the intact one. */
function compared(observed: Observed, base: readonly Read[]): string {
  if (observed.open !== 'accepts') return `open: ${observed.open}`;
  const records = observed.records.map((record, id) => {
    if (typeof record === 'string') return record;
    return JSON.stringify(record) === JSON.stringify(base[id]) ? 'same' : 'other';
  });
  return `records: ${records.join(' ')}`;
}

function wanted(expected: Expected, recordCount: number): string {
  if (expected.open !== 'accepts') return `open: ${expected.open}`;
  const records: DamagedRecord[] = Array.from(
    { length: expected.length ?? recordCount },
    (_, id) => expected.records.get(id) ?? expected.every,
  );
  return `records: ${records.join(' ')}`;
}

async function check(
  t: Test,
  damage: Damage,
  expected: Expected,
  place: string,
  base: readonly Read[],
): Promise<Observed> {
  const startMs = performance.now();
  const observed = await observe(place, damage.openAs);
  const ms = performance.now() - startMs;
  t.equal(
    compared(observed, base),
    wanted(expected, base.length),
    `${damage.name}: ${damage.what}${damage.differs === undefined ? '' : ` (${damage.differs})`}`,
  );
  if (ms > msMax) t.fail(`${damage.name} took ${ms} ms`);
  return observed;
}

t.test('containers of our own, damaged', async (t) => {
  const bases = await makeBases(scratch.folder());
  const reads = new Map<BaseName, readonly Read[]>();
  const place = scratch.folder();
  for (const [name, files] of bases) {
    const base = path.join(place, name);
    writeFiles(base, files);
    reads.set(name, await intactReads(base));
  }
  t.equal(
    new Set(damages.map(({ name }) => name)).size,
    damages.length,
    'every name is there once',
  );
  for (const damage of damages) {
    if (damage.isPosix && process.platform === 'win32') {
      t.pass(damage.name, { skip: 'this platform has no such files' });
      continue;
    }
    const files = bases.get(damage.base) as Files;
    const damaged = path.join(place, damage.name);
    writeFiles(damaged, edited(files, damage.edits(files)));
    const observed = await check(t, damage, damage.expected, damaged, reads.get(damage.base) ?? []);
    if (observed.open !== 'accepts') {
      t.match(observed.error.message, new RegExp(`^${damaged}: .{10,}`, 's'), 'says what is wrong');
    }
  }
});

t.test(
  'a container whose files are links is read',
  { skip: process.platform === 'win32' },
  async (t) => {
    const bases = await makeBases(scratch.folder());
    const folder = scratch.folder();
    const there = path.join(folder, 'there');
    writeFiles(there, bases.get('base_dense_raw') as Files);
    const links = path.join(folder, 'links');
    mkdirSync(links);
    for (const name of ['meta.zr', 'data_0.zr', 'data_1.zr']) {
      symlinkSync(path.join(there, name), path.join(links, name));
    }
    symlinkSync(links, path.join(folder, 'link'));
    t.same(await intactReads(path.join(folder, 'link')), await intactReads(there));
  },
);

t.test('paths that are no container', async (t) => {
  const folder = scratch.folder();
  const file = path.join(folder, 'file');
  writeFileSync(file, 'no container');
  const empty = path.join(folder, 'empty');
  mkdirSync(empty);
  for (const [place, code] of [
    [path.join(folder, 'nothing'), 'NOT_FOUND'],
    [path.join(folder, 'nothing', 'below'), 'NOT_FOUND'],
    [empty, 'NOT_FOUND'],
    [file, 'IO'],
    [path.join(file, 'below'), 'IO'],
  ] as const) {
    const observed = await observe(place);
    t.equal(observed.open, code, path.relative(folder, place));
  }
  const observed = await observe(file);
  t.equal(observed.open === 'accepts' ? '' : observed.error.osCode, 'ENOTDIR');
});

t.test(
  'names of stray files are shown without what a terminal obeys',
  { skip: process.platform === 'win32' ? 'there are no such names there' : false },
  async (t) => {
    const bases = await makeBases(scratch.folder());
    const place = path.join(scratch.folder(), 'store');
    writeFiles(place, bases.get('base_dense_raw') as Files);
    const name = Buffer.from('data_\u001b]0;taken\u0007\n\u202e.zr');
    writeFileSync(Buffer.concat([Buffer.from(`${place}/`), name, Buffer.from([0xff])]), '');
    const observed = await observe(place);
    const message = observed.open === 'accepts' ? '' : observed.error.message;
    t.equal(observed.open, 'MALFORMED');
    t.match(message, /the folder holds data_\\x1b\]0;taken\\x07\\x0a\\xe2\\x80\\xae\.zr\\xff, /);
  },
);

// ---- the shared fixtures ----

interface Manifest {
  readonly bases: Readonly<{
    [name: string]: {
      readonly kind: 'dense' | 'ragged';
      readonly records: readonly { readonly sha256: string; readonly dims: readonly number[] }[];
    };
  }>;
  readonly cases: readonly {
    readonly name: string;
    readonly base: BaseName;
    readonly kind: 'dense' | 'ragged';
    readonly recommended: string;
  }[];
}

/** Whether an outcome is what the fixtures advise. */
function follows(observed: Observed, recommended: string, base: readonly Read[]): boolean {
  const ways = recommended.split(/ or (?=error|accept|refuse|wrong|at read)/);
  return ways.some((way) => followsOne(observed, way, base));
}

function followsOne(observed: Observed, way: string, base: readonly Read[]): boolean {
  if (way.includes('at open') || way.startsWith('refuse')) return observed.open !== 'accepts';
  if (observed.open !== 'accepts') return false;
  const { records } = observed;
  if (way.startsWith('at read') || way.startsWith('error at read')) {
    const named = /records? ([\d, ]+\d|\d)/.exec(way)?.[1]?.split(', ').map(Number);
    const failed = records.flatMap((record, id) => (typeof record === 'string' ? [id] : []));
    const others = records.filter(
      (record, id) =>
        typeof record === 'object' && JSON.stringify(record) !== JSON.stringify(base[id]),
    );
    if (others.length > 0) return false;
    return named === undefined ? failed.length > 0 : String(failed) === String(named);
  }
  // accept, or wrong data that nothing can detect
  return records.every((record) => typeof record === 'object');
}

t.test('containers of the original, damaged', { skip: withoutFixtures }, async (t) => {
  const manifest = readFixture<Manifest>('malformed/manifest.json');
  const reads = new Map<string, readonly Read[]>();
  for (const [name, { records }] of Object.entries(manifest.bases)) {
    const base = await intactReads(fixture(`malformed/${name}`));
    reads.set(name, base);
    t.same(
      base.map(({ bytes }) => createHash('sha256').update(bytes, 'hex').digest('hex')),
      records.map(({ sha256 }) => sha256),
      `${name}: every record's hash`,
    );
    t.same(
      base.map(({ shape }) => shape),
      records.map(({ dims }) => dims),
      `${name}: dims`,
    );
  }
  t.equal(manifest.cases.length, 198);
  const known = new Map(damages.map((damage) => [damage.name, damage]));
  for (const { name, base, recommended } of manifest.cases) {
    const damage = known.get(name);
    if (damage === undefined) {
      t.fail(`${name} is not in the table`);
      continue;
    }
    t.equal(damage.base, base, `${name} is made of the same base`);
    const intact = reads.get(base) ?? [];
    const expected = damage.ofFixture ?? damage.expected;
    const observed = await check(t, damage, expected, fixture(`malformed/${name}`), intact);
    const isAdvised = follows(observed, recommended, intact);
    if (damage.differs === undefined) t.ok(isAdvised, `${name}: as advised: ${recommended}`);
    else t.comment(`${name}: ${damage.differs} (advised: ${recommended})`);
  }
});
