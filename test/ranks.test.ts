// Many readers of one stream over a set: examples/ranks/ as it is, by each launcher that is installed, and
// worlds from 1 to 64 ranks within this process.
import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { concat, DataLoader, Dense, type DenseReader, makeSet, ndarray } from '../ts/index.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const examples = path.resolve(import.meta.dirname, '..', 'examples', 'ranks');

t.test('the example: parts by processes, four ranks, and a world that grows', (t) => {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    [path.join(examples, 'ranks.mjs')],
    { encoding: 'utf8' },
  );
  t.equal(status, 0, stderr);
  t.match(stdout, /four ranks together read what one process reads\n/);
  t.match(stdout, /grew from 3 to 4 ranks at step 10, and the stream went on\n/);
  t.end();
});

/** A set of parts of uneven sizes, and one container of the same records. */
async function makeBoth(folder: string): Promise<{ set: string; whole: string }> {
  const records = (first: number, count: number) =>
    ndarray(
      'uint32',
      [count, 2],
      Uint32Array.from({ length: count * 2 }, (_, at) => Math.imul(first * 2 + at, 0x9e3779b1)),
    );
  const sizes = [100, 1, 399, 250, 250];
  const places: string[] = [];
  let first = 0;
  for (const [index, size] of sizes.entries()) {
    const place = path.join(folder, `p${index}`);
    const codec = index % 2 === 0 ? 'raw' : 'zstd';
    const writer = Dense.create(place, { codec, dtype: 'uint32', itemShape: [2] });
    await writer.append(records(first, size));
    await writer.close();
    places.push(place);
    first += size;
  }
  const whole = path.join(folder, 'whole');
  const writer = Dense.create(whole, { codec: 'raw', dtype: 'uint32', itemShape: [2] });
  await writer.append(records(0, first));
  await writer.close();
  const set = path.join(folder, 'set.json');
  await makeSet(places, set);
  return { set, whole };
}

async function stepsOf(
  record: DenseReader,
  steps: number,
  shard: { rank: number; world: number },
): Promise<Buffer[]> {
  await using loader = new DataLoader({ record }, { batchSize: 100, seed: 3, shard });
  const seen: Buffer[] = [];
  for (let step = 0; step < steps; step += 1) {
    const { value } = await loader.next();
    if (value === undefined) throw new Error('the stream has ended');
    const { data } = value.record;
    seen.push(Buffer.from(Uint8Array.from(new Uint8Array(data.buffer, 0, data.byteLength))));
    value.record[Symbol.dispose]();
  }
  return seen;
}

t.test('worlds of 1 to 64 ranks over a set: no difference', async (t) => {
  const { set, whole } = await makeBoth(scratch.folder());
  const one = Dense.open(whole);
  const steps = 3;
  const expected = await stepsOf(one, steps, { rank: 0, world: 1 });
  const many = Dense.open(set);
  let differences = 0;
  for (let world = 1; world <= 64; world += 1) {
    const ranks = await Promise.all(
      Array.from({ length: world }, (_, rank) => stepsOf(many, steps, { rank, world })),
    );
    for (let step = 0; step < steps; step += 1) {
      const together = Buffer.concat(ranks.map((seen) => seen[step] ?? Buffer.alloc(0)));
      if (!together.equals(expected[step] ?? Buffer.alloc(0))) differences += 1;
    }
  }
  t.equal(differences, 0, `${64 * steps} steps`);
  const again = concat([many, one].map(() => Dense.open(whole)));
  t.equal(again.length, 2 * one.length);
  for (const reader of [again, many, one]) await reader.close();
});

/** @param harmless what it can be asked for: torchrun has no --version, mpirun helps only who may run it */
function isInstalled(program: string, harmless: string): boolean {
  return spawnSync(program, [harmless], { stdio: 'ignore' }).status === 0;
}

/** Four ranks by a launcher, against one process. */
async function launched(t: Test, command: string, args: readonly string[]): Promise<void> {
  const folder = scratch.folder();
  const { set } = await makeBoth(folder);
  const out = path.join(folder, 'out');
  mkdirSync(out);
  const rank = [process.execPath, path.join(examples, 'rank.mjs'), set, out, '0', '5'];
  const [alone = '', ...rest] = rank;
  t.equal(spawnSync(alone, rest, { stdio: 'inherit' }).status, 0);
  const four = spawnSync(command, [...args, ...rank], { encoding: 'utf8' });
  t.equal(four.status, 0, four.stderr);
  t.equal(readdirSync(out).length, 5 * (1 + 4));
  const read = (world: number, index: number, step: number): Buffer =>
    readFileSync(path.join(out, `step-${step}.rank-${world}-${index}`));
  for (let step = 0; step < 5; step += 1) {
    const together = Buffer.concat([0, 1, 2, 3].map((index) => read(4, index, step)));
    t.ok(together.equals(read(1, 0, step)), `step ${step}`);
  }
}

const torchrun = 'torchrun';
t.test(
  'four ranks by torchrun',
  { skip: isInstalled(torchrun, '--help') ? false : 'torchrun is not installed' },
  (t) =>
    launched(t, torchrun, [
      ...['--nnodes=1', '--nproc-per-node=4', '--master-addr=127.0.0.1', '--master-port=29511'],
      '--no-python',
    ]),
);

// It listens on all addresses, so it gets a network of its own.
const alone = ['--net', 'sh', '-c', 'ip link set lo up && exec "$@"', 'sh'];
const whyNot = !isInstalled('mpirun', '--version')
  ? 'mpirun is not installed'
  : spawnSync('unshare', [...alone, 'true'], { stdio: 'ignore' }).status !== 0 &&
    'no network of its own can be made for mpirun here';
t.test('four ranks by mpirun', { skip: whyNot }, (t) =>
  launched(t, 'unshare', [...alone, 'mpirun', '--allow-run-as-root', '--oversubscribe', '-n', '4']),
);
