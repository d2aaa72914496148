/**
 * Which part of each batch belongs to which process.
 *
 * The batch of a step is drawn whole on every rank, since that costs next to nothing, and rank r of
 * W takes its slice. A batch of 10 among 4 ranks:
 *
 *     'allow'  0 1 | 2 3 4 | 5 6 | 7 8 9     entries ⌊r·10/4⌋ .. ⌊(r+1)·10/4⌋ - 1
 *     'drop'   0 1 | 2 3 | 4 5 | 6 7         ⌊10/4⌋ each, the rest is left out
 *     'error'  refused when the loader is made
 */
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import { integerIn } from '../variables.js';

/** What happens where a batch cannot be divided evenly. */
export type Uneven = 'allow' | 'drop' | 'error';

/** One process among `world` that share each batch. */
export interface Shard {
  /** 0 .. world - 1. */
  readonly rank: number;
  /** Processes in all, 1 or more. */
  readonly world: number;
  /**
   * `'allow'` (unless given): slices differ by one record at most, and may be empty where a batch has
   * fewer records than there are ranks. `'drop'`: all slices are equal, and up to `world - 1` records
   * of each batch are left out. `'error'`: such a loader cannot be made.
   */
  readonly uneven?: Uneven | undefined;
}

/** A checked shard. */
export type CheckedShard = Required<{
  readonly [Key in keyof Shard]: Exclude<Shard[Key], undefined>;
}>;

/** All of it, to one process. */
export const wholeWorld: CheckedShard = { rank: 0, world: 1, uneven: 'allow' };

/** The checked `shard` of a loader. */
export function shardOf(shard: unknown): CheckedShard {
  if (shard === undefined) return wholeWorld;
  if (typeof shard !== 'object' || shard === null) {
    throw new ArgumentTypeError('shard', `shard must be {rank, world}, got ${show(shard)}`);
  }
  for (const key of Object.keys(shard)) {
    if (key === 'rank' || key === 'world' || key === 'uneven') continue;
    throw new ArgumentTypeError(
      'shard',
      `there is no shard.${key}; known are rank, world and uneven`,
    );
  }
  const { rank, world, uneven = 'allow' } = shard as Readonly<Record<string, unknown>>;
  const size = wholeNumber(world, 'shard.world');
  if (size < 1) {
    throw new ArgumentRangeError('shard', `shard.world must be 1 or more, got ${size}`);
  }
  const place = wholeNumber(rank, 'shard.rank');
  if (place < 0 || place >= size) {
    throw new ArgumentRangeError(
      'shard',
      `shard.rank must be 0 to ${size - 1} in a world of ${size}, got ${place}`,
    );
  }
  return { rank: place, world: size, uneven: unevenOf(uneven) };
}

function unevenOf(uneven: unknown): Uneven {
  if (uneven === 'allow' || uneven === 'drop' || uneven === 'error') return uneven;
  throw new ArgumentTypeError(
    'shard',
    `uneven must be 'allow', 'drop' or 'error', got ${show(uneven)}`,
  );
}

function wholeNumber(value: unknown, name: string): number {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  throw new ArgumentTypeError('shard', `${name} must be an integer, got ${show(value)}`);
}

/** Entries `from` up to `to` of a batch. */
export interface Slice {
  readonly from: number;
  readonly to: number;
}

/** The entries of a batch of `count` that the rank takes. */
export function sliceOf(shard: CheckedShard, count: number): Slice {
  const { rank, world, uneven } = shard;
  if (uneven === 'drop') {
    const each = whole(count, world);
    return { from: rank * each, to: (rank + 1) * each };
  }
  return { from: whole(rank * count, world), to: whole((rank + 1) * count, world) };
}

/** a / b rounded down, exact for integers: a quotient of doubles may round up to an integer. */
function whole(a: number, b: number): number {
  return (a - (a % b)) / b;
}

/** How {@link shardFromEnv} looks. */
export interface ShardFromEnvOptions {
  /**
   * Processes in all. Needed where the launcher sets only an index (Kubernetes); elsewhere it must
   * agree with what the launcher says.
   */
  readonly world?: number | undefined;
  /** The variable that holds the world for Kubernetes; `JOB_COMPLETIONS` unless given. */
  readonly worldVariable?: string | undefined;
  /** Handed on into the result. */
  readonly uneven?: Uneven | undefined;
  /** The variables; `process.env` unless given. */
  readonly env?: Readonly<Record<string, string | undefined>> | undefined;
}

/** A launcher that tells both numbers, most specific first: mpirun and torchrun run inside Slurm. */
const launchers: readonly (readonly [name: string, rank: string, world: string])[] = [
  ['torchrun', 'RANK', 'WORLD_SIZE'],
  ['Open MPI', 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE'],
  ['Slurm', 'SLURM_PROCID', 'SLURM_NTASKS'],
];

const kubernetesIndex = 'JOB_COMPLETION_INDEX';

/**
 * The shard that the launcher of this process assigned: torchrun (`RANK`, `WORLD_SIZE`), Open MPI
 * (`OMPI_COMM_WORLD_RANK`, `OMPI_COMM_WORLD_SIZE`), Slurm's srun (`SLURM_PROCID`, `SLURM_NTASKS`), or
 * an Indexed Job of Kubernetes (`JOB_COMPLETION_INDEX`, and the world from `options.world` or from
 * the variable `options.worldVariable`). Without any of them: rank 0 of 1.
 *
 * @throws TypeError, RangeError naming the variable that is missing, no number, or out of range
 */
export function shardFromEnv(options: ShardFromEnvOptions = {}): Shard {
  const { world, worldVariable = 'JOB_COMPLETIONS', uneven, env = process.env } = checked(options);
  const found = fromLaunchers(env, world, worldVariable);
  const shard = { ...found, ...(uneven === undefined ? {} : { uneven }) };
  shardOf(shard);
  return shard;
}

function checked(options: unknown): ShardFromEnvOptions {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new ArgumentTypeError('options', `options must be an object, got ${show(options)}`);
  }
  const known = ['world', 'worldVariable', 'uneven', 'env'];
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown !== undefined) {
    throw new ArgumentTypeError(
      unknown,
      `there is no option ${show(unknown)} here; known are ${known.join(', ')}`,
    );
  }
  const { env, world, worldVariable } = options as Readonly<Record<string, unknown>>;
  if (env !== undefined && (typeof env !== 'object' || env === null)) {
    throw new ArgumentTypeError('env', `env must be an object of variables, got ${show(env)}`);
  }
  if (worldVariable !== undefined && typeof worldVariable !== 'string') {
    throw new ArgumentTypeError(
      'worldVariable',
      `worldVariable must be a string, got ${show(worldVariable)}`,
    );
  }
  if (world !== undefined && (typeof world !== 'number' || !Number.isSafeInteger(world))) {
    throw new ArgumentTypeError('world', `world must be an integer, got ${show(world)}`);
  }
  return options;
}

function fromLaunchers(
  env: Readonly<Record<string, string | undefined>>,
  world: number | undefined,
  worldVariable: string,
): { readonly rank: number; readonly world: number } {
  for (const [launcher, rankName, worldName] of launchers) {
    const rank = integerIn(env, rankName);
    const size = integerIn(env, worldName);
    if (rank === undefined) continue;
    if (size === undefined) {
      // A batch script of Slurm has the index 0 without being one of several.
      if (launcher === 'Slurm' && rank === 0) continue;
      throw new ArgumentTypeError(
        worldName,
        `${rankName} is ${rank}, as ${launcher} sets it, and ${worldName} is not set`,
      );
    }
    if (world !== undefined && world !== size) {
      throw new ArgumentRangeError(
        'world',
        `world is ${show(world)}, and ${launcher} says ${worldName}=${size}`,
      );
    }
    return inRange(rank, size, rankName, worldName);
  }
  const index = integerIn(env, kubernetesIndex);
  if (index !== undefined) {
    const size = world ?? integerIn(env, worldVariable);
    if (size !== undefined) return inRange(index, size, kubernetesIndex, 'the world');
    throw new ArgumentTypeError(
      'world',
      `${kubernetesIndex} is ${index}, and Kubernetes does not tell how many there are: give {world}, or set ${worldVariable} in the Job`,
    );
  }
  const lone = launchers.find(([launcher, , name]) => {
    return launcher !== 'Slurm' && integerIn(env, name) !== undefined;
  });
  if (lone !== undefined) {
    throw new ArgumentTypeError(
      lone[1],
      `${lone[2]} is set, as ${lone[0]} does, and ${lone[1]} is not`,
    );
  }
  if (world !== undefined && world !== 1) {
    throw new ArgumentRangeError(
      'world',
      `world is ${show(world)}, and no launcher tells which rank of it this process is`,
    );
  }
  return { rank: 0, world: 1 };
}

function inRange(rank: number, world: number, rankName: string, worldName: string) {
  if (rank < world) return { rank, world };
  throw new ArgumentRangeError(
    rankName,
    `${rankName} is ${rank}, and ${worldName} is ${show(world)}: ranks go from 0 to one less`,
  );
}
