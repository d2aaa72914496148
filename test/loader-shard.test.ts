// Ranks: slices that add up to the whole batch, and the launchers that say which slice is whose.
import t from 'tap';
import { shardFromEnv } from '../ts/index.js';
import { type CheckedShard, shardOf, sliceOf, type Uneven } from '../ts/loader/shard.js';
import { failureOf, outcomeOf } from './support/outcome.js';

const shard = (rank: number, world: number, uneven: Uneven): CheckedShard => ({
  rank,
  world,
  uneven,
});

t.test("'allow': slices of worlds 1 to 64 add up, differ by one at most", async (t) => {
  for (let world = 1; world <= 64; world += 1) {
    for (const count of [0, 1, 2, 3, 63, 64, 65, 256, 1000, 4097]) {
      let at = 0;
      let least = Number.POSITIVE_INFINITY;
      let most = 0;
      for (let rank = 0; rank < world; rank += 1) {
        const { from, to } = sliceOf(shard(rank, world, 'allow'), count);
        const isRight =
          from === at &&
          from === Number((BigInt(rank) * BigInt(count)) / BigInt(world)) &&
          to >= from;
        if (!isRight) t.fail(`rank ${rank} of ${world}, batch of ${count}: ${from} to ${to}`);
        at = to;
        least = Math.min(least, to - from);
        most = Math.max(most, to - from);
      }
      t.ok(at === count && most - least <= 1, `a batch of ${count} among ${world}`);
    }
  }
});

t.test('large numbers are divided exactly', async (t) => {
  for (const count of [2 ** 31 - 1, 2 ** 40 + 7, 2 ** 44 - 1]) {
    for (const world of [3, 7, 255, 509]) {
      const { from, to } = sliceOf(shard(world - 1, world, 'allow'), count);
      t.equal(to, count);
      t.equal(BigInt(from), (BigInt(world - 1) * BigInt(count)) / BigInt(world));
    }
  }
});

t.test("'drop': equal slices, the rest left out", async (t) => {
  for (let world = 1; world <= 64; world += 1) {
    const each = Math.floor(1000 / world);
    for (let rank = 0; rank < world; rank += 1) {
      const { from, to } = sliceOf(shard(rank, world, 'drop'), 1000);
      if (from !== rank * each || to - from !== each) t.fail(`rank ${rank} of ${world}`);
    }
  }
  t.pass('64 worlds');
});

t.test('shards that cannot be', async (t) => {
  const cases: readonly (readonly [unknown, string])[] = [
    [null, 'TypeError INVALID_ARGUMENT'],
    [3, 'TypeError INVALID_ARGUMENT'],
    [{ rank: 0 }, 'TypeError INVALID_ARGUMENT'],
    [{ world: 1 }, 'TypeError INVALID_ARGUMENT'],
    [{ rank: 1, world: 1 }, 'RangeError INVALID_ARGUMENT'],
    [{ rank: -1, world: 1 }, 'RangeError INVALID_ARGUMENT'],
    [{ rank: 0, world: 0 }, 'RangeError INVALID_ARGUMENT'],
    [{ rank: 0.5, world: 2 }, 'TypeError INVALID_ARGUMENT'],
    [{ rank: '0', world: 2 }, 'TypeError INVALID_ARGUMENT'],
    [{ rank: 0, world: 2, uneven: 'pad' }, 'TypeError INVALID_ARGUMENT'],
    [{ rank: 0, world: 2, size: 2 }, 'TypeError INVALID_ARGUMENT'],
    [{ rank: 0, world: 2 }, 'ok'],
    [undefined, 'ok'],
  ];
  for (const [value, outcome] of cases) {
    t.equal(await outcomeOf(() => shardOf(value)), outcome, JSON.stringify(value));
  }
});

t.test('options that cannot be, and an index without its world', async (t) => {
  const wrong: readonly (readonly [unknown, string])[] = [
    [null, 'options'],
    ['x', 'options'],
    [[], 'options'],
    [{ evn: {} }, 'evn'],
    [{ env: null }, 'env'],
    [{ env: 3 }, 'env'],
    [{ env: {}, world: '2' }, 'world'],
    [{ env: {}, worldVariable: 3 }, 'worldVariable'],
    [{ env: { RANK: 3 } }, 'RANK'],
    [{ env: { RANK: '1' } }, 'WORLD_SIZE'],
    [{ env: { SLURM_PROCID: '3' } }, 'SLURM_NTASKS'],
  ];
  for (const [options, field] of wrong) {
    const error = { name: 'TypeError', code: 'INVALID_ARGUMENT', field };
    t.throws(() => shardFromEnv(options as object), error, JSON.stringify(options));
  }
});

t.test('launchers', async (t) => {
  const cases: readonly (readonly [string, Record<string, string>, object])[] = [
    ['none', {}, { rank: 0, world: 1 }],
    ['torchrun', { RANK: '3', WORLD_SIZE: '8', LOCAL_RANK: '1' }, { rank: 3, world: 8 }],
    ['Slurm', { SLURM_PROCID: '2', SLURM_NTASKS: '4' }, { rank: 2, world: 4 }],
    ['a batch script of Slurm', { SLURM_PROCID: '0' }, { rank: 0, world: 1 }],
    ['Open MPI', { OMPI_COMM_WORLD_RANK: '1', OMPI_COMM_WORLD_SIZE: '2' }, { rank: 1, world: 2 }],
    [
      'mpirun inside a Slurm job',
      {
        OMPI_COMM_WORLD_RANK: '5',
        OMPI_COMM_WORLD_SIZE: '6',
        SLURM_PROCID: '0',
        SLURM_NTASKS: '1',
      },
      { rank: 5, world: 6 },
    ],
    [
      'torchrun inside a Slurm job',
      { RANK: '5', WORLD_SIZE: '6', SLURM_PROCID: '1', SLURM_NTASKS: '2' },
      { rank: 5, world: 6 },
    ],
    [
      'Kubernetes with a variable',
      { JOB_COMPLETION_INDEX: '7', JOB_COMPLETIONS: '9' },
      { rank: 7, world: 9 },
    ],
    ['empty values are none', { RANK: '', WORLD_SIZE: '' }, { rank: 0, world: 1 }],
  ];
  for (const [name, env, expected] of cases) t.strictSame(shardFromEnv({ env }), expected, name);

  const index = { JOB_COMPLETION_INDEX: '1', PARTS: '4' };
  t.strictSame(shardFromEnv({ env: index, world: 3 }), { rank: 1, world: 3 }, 'world as option');
  t.strictSame(shardFromEnv({ env: index, worldVariable: 'PARTS' }), { rank: 1, world: 4 });
  t.strictSame(
    shardFromEnv({ env: { ...index, WORLD_SIZE: '5' }, worldVariable: 'WORLD_SIZE' }),
    { rank: 1, world: 5 },
    'a world in the variable of another launcher',
  );
  t.strictSame(shardFromEnv({ env: { RANK: '0', WORLD_SIZE: '2' }, uneven: 'drop' }), {
    rank: 0,
    world: 2,
    uneven: 'drop',
  });
  t.strictSame(shardFromEnv({ env: {}, world: 1 }), { rank: 0, world: 1 });
});

t.test('launchers that say half or nonsense', async (t) => {
  const cases: readonly (readonly [string, object, string])[] = [
    ['no world', { env: { RANK: '3' } }, 'WORLD_SIZE'],
    ['no rank', { env: { WORLD_SIZE: '3' } }, 'RANK'],
    ['no number', { env: { RANK: 'x', WORLD_SIZE: '3' } }, 'RANK'],
    ['negative', { env: { RANK: '-1', WORLD_SIZE: '3' } }, 'RANK'],
    ['out of range', { env: { RANK: '3', WORLD_SIZE: '3' } }, 'RANK'],
    ['no world of a Job', { env: { JOB_COMPLETION_INDEX: '0' } }, 'world'],
    ['another world', { env: { RANK: '0', WORLD_SIZE: '3' }, world: 4 }, 'world'],
    ['a world and no launcher', { env: {}, world: 4 }, 'world'],
    [
      'index past the world',
      { env: { JOB_COMPLETION_INDEX: '4' }, world: 4 },
      'JOB_COMPLETION_INDEX',
    ],
  ];
  for (const [name, options, field] of cases) {
    const failure = await failureOf(() => shardFromEnv(options));
    t.equal(failure.code, 'INVALID_ARGUMENT', name);
    t.equal(failure.field, field, name);
  }
});
