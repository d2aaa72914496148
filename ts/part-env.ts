/**
 * Which part of a build this process makes, as the scheduler that started it says.
 *
 * ```text
 *   Open MPI             OMPI_COMM_WORLD_RANK             of OMPI_COMM_WORLD_SIZE
 *   Slurm array          (SLURM_ARRAY_TASK_ID - _MIN) / _STEP   of SLURM_ARRAY_TASK_COUNT
 *   AWS Batch array      AWS_BATCH_JOB_ARRAY_INDEX        of AWS_BATCH_JOB_ARRAY_SIZE
 *   Kubernetes, Indexed  JOB_COMPLETION_INDEX             of what the caller says, or JOB_COMPLETIONS
 *   GNU parallel         PARALLEL_SEQ - 1                 of what the caller says, or JOB_COMPLETIONS
 * ```
 *
 * Two that are there at once must agree, since a part too many is a part that nobody makes. Only two give
 * way: one that started a single process has divided nothing, and PARALLEL_SEQ, which has no count and is
 * handed on to whatever is started below, counts where nothing else is.
 */
import { ArgumentRangeError, ArgumentTypeError, show } from './errors.js';
import { type Part, partsMax } from './parts.js';
import { knownFields } from './store/fields.js';
import { integerIn, type Variables } from './variables.js';

/** How {@link partFromEnv} looks. */
export interface PartFromEnvOptions {
  /**
   * Parts in all. Needed where the scheduler sets only an index (Kubernetes, GNU parallel); elsewhere it
   * must agree with what the scheduler says.
   */
  readonly of?: number | undefined;
  /**
   * The variable that holds the number of parts where the scheduler sets only an index; `JOB_COMPLETIONS`
   * unless given.
   */
  readonly ofVariable?: string | undefined;
  /** The variables; `process.env` unless given. */
  readonly env?: Variables | undefined;
}

/** What one scheduler says. */
interface Told {
  readonly by: string;
  /** The variable that has the index. */
  readonly name: string;
  readonly part: number;
  /** The variable that has the count, and the count; of schedulers that set one. */
  readonly count?: { readonly name: string; readonly of: number };
}

/**
 * The part that the scheduler of this process assigned, counted from 0: Open MPI, a Slurm array, an AWS Batch
 * array, an Indexed Job of Kubernetes, or GNU parallel, in this order. Several at once must agree; a scheduler
 * that started one process alone gives way to the others, and GNU parallel to all.
 *
 * An array of Slurm may begin anywhere and have a step, but no holes. Kubernetes and GNU parallel set no
 * count: it comes from `options.of`, or from the variable `options.ofVariable`.
 *
 * @throws TypeError, RangeError with the variable or option as `field`: missing, no number, out of range, or
 *   against what another says; also where no scheduler has set any
 */
export function partFromEnv(options: PartFromEnvOptions = {}): Part {
  const { of, ofVariable, env } = checked(options);
  const found = [openMpi, slurm, awsBatch, kubernetes].flatMap((ask) => ask(env) ?? []);
  const several = found.filter(({ count }) => count?.of !== 1);
  const [first, ...others] = several.length > 0 ? several : found;
  const told = first ?? gnuParallel(env);
  if (told === undefined) throw nobody(env, ofVariable);
  const part = partOfAll(told, of, ofVariable, env);
  for (const other of others) {
    const { part: index, of: all } = partOfAll(other, of, ofVariable, env);
    if (index === part.part && all === part.of) continue;
    throw new ArgumentRangeError(
      other.name,
      `${told.by} (${told.name}) makes this part ${part.part} of ${part.of}, and ${other.by} (${other.name}) part ${index} of ${all}: unset the variables of one, or say which part it is`,
    );
  }
  return part;
}

interface Checked {
  readonly of: number | undefined;
  readonly ofVariable: string;
  readonly env: Variables;
}

function checked(options: unknown): Checked {
  const fields = knownFields(options, ['of', 'ofVariable', 'env']);
  const { of, ofVariable = 'JOB_COMPLETIONS', env = process.env } = fields;
  if (of !== undefined && (typeof of !== 'number' || !Number.isSafeInteger(of))) {
    throw new ArgumentTypeError('of', `of must be an integer, got ${show(of)}`);
  }
  if (of !== undefined && (of < 1 || of > partsMax)) {
    throw new ArgumentRangeError('of', `there are 1 to ${partsMax} parts, got ${of}`);
  }
  if (typeof ofVariable !== 'string' || ofVariable === '') {
    throw new ArgumentTypeError(
      'ofVariable',
      `ofVariable must be the name of a variable, got ${show(ofVariable)}`,
    );
  }
  if (typeof env !== 'object' || env === null) {
    throw new ArgumentTypeError('env', `env must be an object of variables, got ${show(env)}`);
  }
  return { of, ofVariable, env: env as Variables };
}

/** The part, once it is known of how many. */
function partOfAll(told: Told, of: number | undefined, ofVariable: string, env: Variables): Part {
  if (told.count !== undefined) {
    const { name, of: count } = told.count;
    if (of !== undefined && of !== count) {
      throw new ArgumentRangeError(
        'of',
        `there are to be ${of} parts, and ${told.by} says ${name}=${count}`,
      );
    }
    return inRange(told, count, name);
  }
  const counted = integerIn(env, ofVariable);
  if (of !== undefined && counted !== undefined && of !== counted) {
    throw new ArgumentRangeError('of', `there are to be ${of} parts, and ${ofVariable}=${counted}`);
  }
  const count = of ?? counted;
  if (count === undefined) {
    throw new ArgumentTypeError(
      ofVariable,
      `${told.name} is set, and ${told.by} does not tell how many parts there are: give their number, or set ${ofVariable}`,
    );
  }
  return inRange(told, count, of === undefined ? ofVariable : 'of');
}

function inRange({ name, part, by }: Told, of: number, countName: string): Part {
  if (of < 1 || of > partsMax) {
    throw new ArgumentRangeError(
      countName,
      `there are 1 to ${partsMax} parts, and ${countName} is ${of}`,
    );
  }
  if (part < of) return { part, of };
  throw new ArgumentRangeError(
    name,
    `${name} makes this part ${part} by ${by}, and ${countName} is ${of}: parts go from 0 to ${of - 1}`,
  );
}

// ---- schedulers ----

function openMpi(env: Variables): Told | undefined {
  return pair(env, 'Open MPI', 'OMPI_COMM_WORLD_RANK', 'OMPI_COMM_WORLD_SIZE');
}

function awsBatch(env: Variables): Told | undefined {
  return pair(env, 'AWS Batch', 'AWS_BATCH_JOB_ARRAY_INDEX', 'AWS_BATCH_JOB_ARRAY_SIZE');
}

/** A scheduler that sets an index from 0 and a count. */
function pair(env: Variables, by: string, name: string, countName: string): Told | undefined {
  const part = integerIn(env, name);
  const of = integerIn(env, countName);
  if (part === undefined && of === undefined) return undefined;
  if (part === undefined) throw half(by, countName, name);
  if (of === undefined) throw half(by, name, countName);
  return { by, name, part, count: { name: countName, of } };
}

function half(by: string, there: string, missing: string): ArgumentTypeError {
  return new ArgumentTypeError(missing, `${there} is set, as ${by} does, and ${missing} is not`);
}

function kubernetes(env: Variables): Told | undefined {
  const name = 'JOB_COMPLETION_INDEX';
  const part = integerIn(env, name);
  return part === undefined ? undefined : { by: 'Kubernetes', name, part };
}

function gnuParallel(env: Variables): Told | undefined {
  const name = 'PARALLEL_SEQ';
  const sequence = integerIn(env, name);
  if (sequence === undefined) return undefined;
  if (sequence === 0) {
    throw new ArgumentRangeError(name, `${name} is 0, and GNU parallel counts from 1`);
  }
  return { by: 'GNU parallel', name, part: sequence - 1 };
}

function slurm(env: Variables): Told | undefined {
  const by = 'a Slurm array';
  const nameOf = (what: string): string => `SLURM_ARRAY_TASK_${what}`;
  const [id, of, least, most, step = 1] = ['ID', 'COUNT', 'MIN', 'MAX', 'STEP'].map((what) =>
    integerIn(env, nameOf(what)),
  );
  if (id === undefined) {
    if (of !== undefined) throw half(by, nameOf('COUNT'), nameOf('ID'));
    return undefined;
  }
  if (of === undefined) throw half(by, nameOf('ID'), nameOf('COUNT'));
  if (least === undefined) throw half(by, nameOf('ID'), nameOf('MIN'));
  if (most === undefined) throw half(by, nameOf('ID'), nameOf('MAX'));
  if (step === 0) throw new ArgumentRangeError(nameOf('STEP'), `${nameOf('STEP')} is 0`);
  if (id < least || id > most) {
    throw new ArgumentRangeError(
      nameOf('ID'),
      `${nameOf('ID')} is ${id}, and ids of this array go from ${least} to ${most}`,
    );
  }
  // Which id is which part can be told only where they are evenly spaced.
  if (Math.floor((most - least) / step) + 1 !== of || (id - least) % step !== 0) {
    throw new ArgumentRangeError(
      nameOf('COUNT'),
      `the array has ${of} tasks from ${least} to ${most} in steps of ${step}, so it has holes, and its tasks cannot be numbered: submit all of it (parts that are there end at once)`,
    );
  }
  if (of === 1 && id !== 0) {
    throw new ArgumentRangeError(
      nameOf('COUNT'),
      `the array has one task, ${id}, which would be all of the build: to make a part again submit the whole array (parts that are there end at once)`,
    );
  }
  const count = { name: nameOf('COUNT'), of };
  return { by, name: nameOf('ID'), part: (id - least) / step, count };
}

function nobody(env: Variables, ofVariable: string): ArgumentTypeError {
  if (integerIn(env, ofVariable) !== undefined) {
    return new ArgumentTypeError(
      'JOB_COMPLETION_INDEX',
      `${ofVariable} is set and JOB_COMPLETION_INDEX is not: a Job of Kubernetes sets it with completionMode: Indexed`,
    );
  }
  return new ArgumentTypeError(
    'env',
    'no scheduler tells which part this is: SLURM_ARRAY_TASK_ID, JOB_COMPLETION_INDEX, AWS_BATCH_JOB_ARRAY_INDEX, OMPI_COMM_WORLD_RANK and PARALLEL_SEQ are not set',
  );
}
