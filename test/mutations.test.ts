// Four hundred random edits of containers that the original wrote, with what the original made of
// each (the shared fixtures). We may refuse what it delivers; we never deliver what it refuses, and
// never other data than it does.
import { createHash } from 'node:crypto';
import path from 'node:path';
import t from 'tap';
import { type Edit, edited, readFiles, writeFiles } from './support/files.mjs';
import { fixture, readFixture, withoutFixtures } from './support/fixtures.js';
import { type Observed, observe, type Read } from './support/observe.js';
import { Scratch } from './support/scratch.js';

interface Mutation {
  readonly base: string;
  readonly kind: 'dense' | 'ragged';
  readonly edits: readonly Edit[];
  /** `accepts`, or the error that the original raised. */
  readonly open: string;
  readonly length?: number;
  /** The first 16: `same`, an error, or what came instead. */
  readonly records?: readonly (string | readonly [sha256: string, dims: readonly number[]])[];
}

interface Manifest {
  readonly bases: Readonly<{ [name: string]: { readonly kind: 'dense' | 'ragged' } }>;
}

const scratch = new Scratch(t);

/**
 * Where the two differ. `refusedOnly`: records that the original delivered otherwise than they were
 * written, and we refuse.
 */
interface Difference {
  readonly faults: readonly string[];
  readonly refusedOnly: number;
}

/** Items as they are hashed in the fixtures: little-endian. Bases hold single-byte or `<` dtypes. */
function hashOf(read: Read): string {
  return createHash('sha256').update(read.bytes, 'hex').digest('hex');
}

function difference(mutation: Mutation, observed: Observed, base: readonly Read[]): Difference {
  if (observed.open !== 'accepts') {
    // What the original opened we may only refuse where we say why: no such case is known but a
    // build that was never published and a field that is there twice.
    const isStricter = mutation.open === 'accepts' && observed.open !== 'NOT_PUBLISHED';
    return {
      faults: isStricter ? [`refused at open: ${observed.error.message}`] : [],
      refusedOnly: 0,
    };
  }
  if (mutation.open !== 'accepts') {
    return { faults: [`opened, and the original says ${mutation.open}`], refusedOnly: 0 };
  }
  const faults: string[] = [];
  let refusedOnly = 0;
  if (observed.records.length !== mutation.length) {
    faults.push(`${observed.records.length} records, and the original has ${mutation.length}`);
  }
  for (const [id, theirs] of (mutation.records ?? []).entries()) {
    const ours = observed.records[id];
    if (ours === undefined) continue;
    if (typeof theirs === 'string' && theirs !== 'same') {
      if (typeof ours !== 'string') faults.push(`record ${id} is read, and not by the original`);
      continue;
    }
    const before = base[id];
    const [sha256, dims] =
      typeof theirs === 'string' && before !== undefined
        ? [hashOf(before), before.shape]
        : (theirs as readonly [string, readonly number[]]);
    if (typeof ours === 'string') {
      if (theirs === 'same') faults.push(`record ${id} is intact and refused with ${ours}`);
      else refusedOnly += 1;
    } else if (hashOf(ours) !== sha256 || String(ours.shape) !== String(dims)) {
      faults.push(`record ${id} is other data than the original delivers`);
    }
  }
  return { faults, refusedOnly };
}

t.test('random edits beside the original', { skip: withoutFixtures }, async (t) => {
  const { cases } = readFixture<{ readonly cases: readonly Mutation[] }>('mutations.json');
  const { bases } = readFixture<Manifest>('malformed/manifest.json');
  const files = new Map(
    Object.keys(bases).map((name) => [name, readFiles(fixture(`malformed/${name}`))]),
  );
  const intact = new Map<string, readonly Read[]>();
  for (const name of files.keys()) {
    const observed = await observe(fixture(`malformed/${name}`));
    if (observed.open !== 'accepts') throw observed.error;
    intact.set(name, observed.records as readonly Read[]);
  }

  t.equal(cases.length, 400);
  const folder = scratch.folder();
  let refusedOnly = 0;
  for (const [index, mutation] of cases.entries()) {
    const base = files.get(mutation.base);
    if (base === undefined) throw new Error(`there is no ${mutation.base}`);
    const place = path.join(folder, String(index));
    writeFiles(place, edited(base, mutation.edits));
    const observed = await observe(place, mutation.kind);
    const found = difference(mutation, observed, intact.get(mutation.base) ?? []);
    refusedOnly += found.refusedOnly;
    t.same(found.faults, [], `${index}: ${mutation.base} ${JSON.stringify(mutation.edits)}`);
  }
  t.comment(`${refusedOnly} records that the original delivers otherwise than written are refused`);
});
