// Which part a process makes: by the variables of each scheduler, together, by halves, and by nonsense.
import { spawnSync } from 'node:child_process';
import path from 'node:path';
import t from 'tap';
import { type PartFromEnvOptions, partFromEnv } from '../ts/index.js';

type Variables = Readonly<Record<string, string>>;

const slurm = (id: number, count = 8, min = 0, max = 7, step = 1): Variables => ({
  SLURM_ARRAY_JOB_ID: '12',
  SLURM_ARRAY_TASK_ID: String(id),
  SLURM_ARRAY_TASK_COUNT: String(count),
  SLURM_ARRAY_TASK_MIN: String(min),
  SLURM_ARRAY_TASK_MAX: String(max),
  SLURM_ARRAY_TASK_STEP: String(step),
  // Batch scripts have them, whatever they are.
  SLURM_PROCID: '0',
  SLURM_NTASKS: '1',
});
const mpi = (rank: string, size: string): Variables => ({
  OMPI_COMM_WORLD_RANK: rank,
  OMPI_COMM_WORLD_SIZE: size,
});
const batch = (index: string, size: string): Variables => ({
  AWS_BATCH_JOB_ARRAY_INDEX: index,
  AWS_BATCH_JOB_ARRAY_SIZE: size,
});
const without = (env: Variables, ...names: string[]): Variables =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !names.includes(name)));

type Row = readonly [what: string, env: Variables, result: string, rest?: PartFromEnvOptions];

t.test('what each scheduler says', (t) => {
  const rows: readonly Row[] = [
    ['Slurm', slurm(3), '3/8'],
    ['Slurm, the last', slurm(7), '7/8'],
    ['Slurm from 1', slurm(1, 8, 1, 8), '0/8'],
    ['Slurm in steps', slurm(4, 2, 0, 4, 4), '1/2'],
    ['Slurm in steps, the end off them', slurm(6, 3, 2, 10, 4), '1/3'],
    ['Slurm without a step', without(slurm(5), 'SLURM_ARRAY_TASK_STEP'), '5/8'],
    ['Slurm, one task', slurm(0, 1, 0, 0), '0/1'],
    ['Slurm agrees with the caller', slurm(3), '3/8', { of: 8 }],
    ['AWS Batch', batch('9', '10'), '9/10'],
    ['Kubernetes by the caller', { JOB_COMPLETION_INDEX: '2' }, '2/5', { of: 5 }],
    ['Kubernetes by a variable', { JOB_COMPLETION_INDEX: '2', JOB_COMPLETIONS: '3' }, '2/3'],
    [
      'Kubernetes by another variable',
      { JOB_COMPLETION_INDEX: '2', PARTS: '4', JOB_COMPLETIONS: '9' },
      '2/4',
      { ofVariable: 'PARTS' },
    ],
    ['Open MPI', mpi('1', '4'), '1/4'],
    ['GNU parallel counts from 1', { PARALLEL_SEQ: '1' }, '0/8', { of: 8 }],
    ['its slot means nothing', { PARALLEL_SEQ: '8', PARALLEL_JOBSLOT: '2' }, '7/8', { of: 8 }],
    ['most parts', batch('65535', '65536'), '65535/65536'],
    ['leading zeros', batch('007', '0010'), '7/10'],
    // Several at once.
    ['mpirun of one inside of an array', { ...slurm(3), ...mpi('0', '1') }, '3/8'],
    ['an array of one around mpirun', { ...slurm(0, 1, 0, 0), ...mpi('2', '4') }, '2/4'],
    ['two of one', { ...slurm(0, 1, 0, 0), ...mpi('0', '1') }, '0/1'],
    ['two that agree', { ...slurm(3), ...batch('3', '8') }, '3/8'],
    ['PARALLEL_SEQ that was handed on', { ...slurm(3), PARALLEL_SEQ: '6' }, '3/8'],
    ['an empty variable is none', { ...slurm(3), ...batch('', '') }, '3/8'],
    ['JOB_COMPLETIONS of no concern', { ...slurm(3), JOB_COMPLETIONS: '5' }, '3/8'],
  ];
  for (const [what, env, result, rest] of rows) {
    const { part, of } = partFromEnv({ env, ...rest });
    t.equal(`${part}/${of}`, result, what);
  }
  t.end();
});

t.test('what cannot be is refused, by the name of the variable', (t) => {
  const id = 'SLURM_ARRAY_TASK_ID';
  const rows: readonly Row[] = [
    ['nothing at all', {}, 'env'],
    ['a count alone does not tell', {}, 'env', { of: 8 }],
    ['Slurm outside of an array', { SLURM_JOB_ID: '4', SLURM_PROCID: '1' }, 'env'],
    // By halves.
    ['an id alone', { [id]: '3' }, 'SLURM_ARRAY_TASK_COUNT'],
    ['no id', without(slurm(3), id), id],
    ['no least', without(slurm(3), 'SLURM_ARRAY_TASK_MIN'), 'SLURM_ARRAY_TASK_MIN'],
    ['no most', without(slurm(3), 'SLURM_ARRAY_TASK_MAX'), 'SLURM_ARRAY_TASK_MAX'],
    ['no rank', { OMPI_COMM_WORLD_SIZE: '2' }, 'OMPI_COMM_WORLD_RANK'],
    ['no size', { OMPI_COMM_WORLD_RANK: '1' }, 'OMPI_COMM_WORLD_SIZE'],
    ['no index', { AWS_BATCH_JOB_ARRAY_SIZE: '2' }, 'AWS_BATCH_JOB_ARRAY_INDEX'],
    ['no array size', { AWS_BATCH_JOB_ARRAY_INDEX: '2' }, 'AWS_BATCH_JOB_ARRAY_SIZE'],
    ['a Job that is not Indexed', { JOB_COMPLETIONS: '8' }, 'JOB_COMPLETION_INDEX'],
    ['an index of how many', { JOB_COMPLETION_INDEX: '1' }, 'JOB_COMPLETIONS'],
    ['by that name', { JOB_COMPLETION_INDEX: '1' }, 'PARTS', { ofVariable: 'PARTS' }],
    ['GNU parallel without a count', { PARALLEL_SEQ: '1' }, 'JOB_COMPLETIONS'],
    // Out of range.
    ['an index past the count', { JOB_COMPLETION_INDEX: '3' }, 'JOB_COMPLETION_INDEX', { of: 3 }],
    ['a rank past the size', mpi('4', '4'), 'OMPI_COMM_WORLD_RANK'],
    ['more jobs than parts', { PARALLEL_SEQ: '9' }, 'PARALLEL_SEQ', { of: 8 }],
    ['GNU parallel from 0', { PARALLEL_SEQ: '0' }, 'PARALLEL_SEQ', { of: 8 }],
    ['a world of none', mpi('0', '0'), 'OMPI_COMM_WORLD_SIZE'],
    ['too many parts', batch('1', '65537'), 'AWS_BATCH_JOB_ARRAY_SIZE'],
    ['an id before the array', slurm(0, 8, 1, 8), id],
    ['an id behind it', slurm(9, 8, 1, 8), id],
    ['an array with holes', slurm(1, 3, 1, 7), 'SLURM_ARRAY_TASK_COUNT'],
    ['an id between steps', slurm(2, 2, 0, 4, 4), 'SLURM_ARRAY_TASK_COUNT'],
    ['a step of none', slurm(0, 8, 0, 7, 0), 'SLURM_ARRAY_TASK_STEP'],
    ['one task of a former array', slurm(3, 1, 3, 3), 'SLURM_ARRAY_TASK_COUNT'],
    // Against each other.
    ['another count', slurm(3), 'of', { of: 9 }],
    ['some tasks of a former array', slurm(3, 3, 3, 5), 'of', { of: 8 }],
    ['two counts', { JOB_COMPLETION_INDEX: '1', JOB_COMPLETIONS: '8' }, 'of', { of: 9 }],
    ['an array of mpiruns', { ...slurm(3), ...mpi('0', '2') }, id],
    ['another index', { ...slurm(3), ...batch('4', '8') }, 'AWS_BATCH_JOB_ARRAY_INDEX'],
    [
      'Kubernetes says another',
      { ...batch('3', '8'), JOB_COMPLETION_INDEX: '2', JOB_COMPLETIONS: '8' },
      'JOB_COMPLETION_INDEX',
    ],
    // Options.
    ['of that is none', slurm(3), 'of', { of: 0 }],
    ['of that is no integer', slurm(3), 'of', { of: 1.5 }],
    ['of that is text', slurm(3), 'of', { of: '8' as never }],
    ['a variable without a name', slurm(3), 'ofVariable', { ofVariable: '' }],
    ['an unknown option', slurm(3), 'parts', { parts: 8 } as never],
  ];
  for (const [what, env, field, rest] of rows) {
    t.throws(() => partFromEnv({ env, ...rest }), { code: 'INVALID_ARGUMENT', field }, what);
  }
  const code = 'INVALID_ARGUMENT';
  t.throws(() => partFromEnv({ env: null as never }), { code, field: 'env' });
  t.throws(() => partFromEnv(7 as never), { code, field: 'options' });
  t.end();
});

t.test('values that are no numbers', (t) => {
  const hostile = [
    ...['-1', '+1', '1.0', '1e3', '0x1', ' 1', '1 ', '1\n', '½', '١', 'NaN', 'Infinity', '1_0'],
    ...['9007199254740993', '99999999999999999999', '$(id)', '; rm -rf /', '\u202e1', '\0', '1/8'],
  ];
  const names = [
    ...Object.keys(slurm(3)).filter((name) => name.startsWith('SLURM_ARRAY_TASK')),
    ...Object.keys(mpi('0', '1')),
    ...Object.keys(batch('0', '1')),
    ...['JOB_COMPLETION_INDEX', 'PARALLEL_SEQ'],
  ];
  for (const name of names) {
    const whole: Variables = name.startsWith('SLURM')
      ? slurm(3)
      : name.startsWith('OMPI')
        ? mpi('3', '8')
        : name.startsWith('AWS')
          ? batch('3', '8')
          : {};
    for (const value of hostile) {
      const error = (() => {
        try {
          partFromEnv({ env: { ...whole, [name]: value }, of: 8 });
          return undefined;
        } catch (thrown) {
          return thrown;
        }
      })();
      t.match(
        error,
        { name: 'TypeError', code: 'INVALID_ARGUMENT', field: name },
        `${name}=${value}`,
      );
      t.notMatch((error as Error).message, /\p{Cc}|\u202e/u, 'and shown without its controls');
    }
  }
  const inherited = Object.create({ JOB_COMPLETION_INDEX: '3' }) as Variables;
  t.throws(
    () => partFromEnv({ env: inherited, of: 8 }),
    { code: 'INVALID_ARGUMENT', field: 'env' },
    'what is inherited',
  );
  t.end();
});

t.test('the variables of this process', (t) => {
  const program = `
    import { partFromEnv } from ${JSON.stringify(new URL('../dist/index.js', import.meta.url).href)};
    console.log(JSON.stringify(partFromEnv()));
  `;
  const { stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', program], {
    encoding: 'utf8',
    env: { PATH: process.env.PATH, ...slurm(6) },
    cwd: path.resolve(import.meta.dirname, '..'),
  });
  t.same(JSON.parse(stdout), { part: 6, of: 8 });
  t.end();
});
