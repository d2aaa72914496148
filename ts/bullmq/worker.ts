/**
 * The side that works: takes parts from the queue, and makes each in a child process.
 *
 * This process does nothing but wait, so its locks are renewed whatever a part does. A worker that dies takes
 * its children with it; its parts are given to others when their locks have run out.
 */
import { setTimeout as wait } from 'node:timers/promises';
import type { Job, Queue, Worker } from 'bullmq';
import {
  ArgumentTypeError,
  type ErrorCode,
  isArgumentError,
  LoaderxError,
  show,
} from '../errors.js';
import { partName } from '../parts.js';
import { knownFields } from '../store/fields.js';
import { runTask } from './child.js';
import { loadBullmq } from './peers.js';
import {
  clientOptions,
  type Place,
  placeFields,
  placeOf,
  type QueuePlace,
  unreachable,
  wholeOf,
} from './place.js';
import {
  type ConversionSpec,
  type MadeColumn,
  madeColumnsOf,
  type PartData,
  partDataOf,
  type SetsData,
  specOf,
} from './spec.js';
import type { MadePart, MadeSet, Task } from './task.js';

/** How a worker works. */
export interface WorkerOptions extends QueuePlace {
  /** Parts at a time, each in a process; 1 unless given. */
  readonly concurrency?: number | undefined;
  /**
   * Milliseconds after which a job is taken from a worker that has not been heard of; 30,000 unless given.
   * A dead worker's part begins anew after up to twice that.
   */
  readonly lockMs?: number | undefined;
  /** How often a job may be taken from dead workers; 3 unless given. */
  readonly stallsMax?: number | undefined;
  /** Further flags of Node for the processes, such as `--max-old-space-size=4096`. */
  readonly execArgv?: readonly string[] | undefined;
  /** Is told what happens. */
  readonly onEvent?: ((event: WorkerEvent) => void) | undefined;
}

/** What a worker tells: of its jobs, each a part or the sets of a conversion, and of its connection. */
export type WorkerEvent =
  | {
      /** A process for the job is being started. */
      readonly kind: 'started';
      /** `ID-3` for part 3 of the conversion ID, `ID` for its sets. */
      readonly job: string;
      /** From 1 on; being put back, or taken from a dead worker, does not count. */
      readonly attempt: number;
    }
  | {
      /** What it makes is complete. */
      readonly kind: 'done';
      /** `ID-3` for part 3 of the conversion ID, `ID` for its sets. */
      readonly job: string;
      /** Whether the part was in the target already, and nothing was made; false for sets. */
      readonly wasThere: boolean;
    }
  | {
      /** This try failed; BullMQ may give it another one. */
      readonly kind: 'failed';
      /** `ID-3` for part 3 of the conversion ID, `ID` for its sets. */
      readonly job: string;
      /** Which part, why, and the error's code in brackets where it has one. */
      readonly message: string;
    }
  | {
      /** It is built by another process, or this worker ends: it is put back. */
      readonly kind: 'postponed';
      /** `ID-3` for part 3 of the conversion ID, `ID` for its sets. */
      readonly job: string;
      /** Which of the two. */
      readonly message: string;
    }
  | {
      /** It was taken from a worker that is not heard of. */
      readonly kind: 'stalled';
      /** `ID-3` for part 3 of the conversion ID, `ID` for its sets. */
      readonly job: string;
    }
  | {
      /** Redis is away, or a lock was lost; the worker goes on. */
      readonly kind: 'trouble';
      /** As the client of Redis, or BullMQ, said it. */
      readonly message: string;
    };

/** A worker at its work. */
export interface PartWorker {
  /**
   * Takes no more, and waits for what runs. What takes longer than `timeoutMs` is stopped and put back. All
   * processes are gone when it resolves. Calling it again gives the same outcome.
   *
   * @throws TypeError, RangeError (INVALID_ARGUMENT), at once, for a `timeoutMs` that is no integer of 0 or more
   */
  close(options?: {
    /** Milliseconds; 30,000 unless given. */
    readonly timeoutMs?: number | undefined;
  }): Promise<void>;
  /** As `close` without options. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Begins to work on the conversions of a queue, until it is closed.
 *
 * @throws TypeError, RangeError (INVALID_ARGUMENT) with the `field`; LoaderxError UNSUPPORTED without bullmq and
 *   ioredis, NETWORK where Redis cannot be reached at the beginning (afterwards it may be away)
 */
export async function worker(options: WorkerOptions): Promise<PartWorker> {
  const fields = knownFields(options, [
    ...[...placeFields, 'concurrency', 'lockMs', 'stallsMax', 'execArgv'],
    'onEvent',
  ]);
  const { execArgv = [], onEvent } = fields;
  if (!Array.isArray(execArgv) || execArgv.some((each) => typeof each !== 'string')) {
    throw new ArgumentTypeError(
      'execArgv',
      `execArgv must be a list of texts, got ${show(execArgv)}`,
    );
  }
  if (onEvent !== undefined && typeof onEvent !== 'function') {
    throw new ArgumentTypeError('onEvent', `onEvent must be a function, got ${show(onEvent)}`);
  }
  const settings: Settings = {
    place: placeOf(fields),
    concurrency: wholeOf(fields, 'concurrency', 1, 1),
    lockMs: wholeOf(fields, 'lockMs', 30_000, 100),
    stallsMax: wholeOf(fields, 'stallsMax', 3, 0),
    execArgv,
    tell: (onEvent as WorkerOptions['onEvent']) ?? (() => {}),
  };
  const crew = new Crew(settings, await loadBullmq());
  try {
    await crew.ready();
    return crew;
  } catch (error) {
    await crew.close({ timeoutMs: 0 });
    throw error;
  }
}

interface Settings {
  readonly place: Place;
  readonly concurrency: number;
  readonly lockMs: number;
  readonly stallsMax: number;
  readonly execArgv: readonly string[];
  readonly tell: (event: WorkerEvent) => void;
}

/** What a second try does not change. */
const hopeless: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(['INVALID_ARGUMENT', 'OUT_OF_RANGE', 'TOO_LARGE', 'SCHEMA', 'SOURCE', 'CODEC'] as const),
  ...(['DICTIONARY', 'UNSUPPORTED', 'GATED', 'UNAUTHORIZED', 'UNEXPECTED'] as const),
]);

const connectMsMax = 10_000;
/** How often a running job is asked whether it was cancelled. */
const cancelPollMs = 500;
/** A part that another process builds is looked at again after a while. */
const lockedMs = 2000;
const closeMsMax = 30_000;

class Crew implements PartWorker {
  readonly #settings: Settings;
  readonly #bullmq: Awaited<ReturnType<typeof loadBullmq>>;
  readonly #sets: Queue<SetsData, readonly MadeSet[]>;
  readonly #workers: readonly Worker[];
  readonly #running = new Set<Promise<unknown>>();
  readonly #closing = new AbortController();
  #trouble: unknown;
  #isOver = false;
  #closed: Promise<void> | undefined;

  constructor(settings: Settings, bullmq: Awaited<ReturnType<typeof loadBullmq>>) {
    this.#settings = settings;
    this.#bullmq = bullmq;
    const { place, concurrency, lockMs, stallsMax } = settings;
    const { prefix } = place;
    // Blocking calls wait for Redis without end; BullMQ asks for that.
    const client = clientOptions(place, () => this.#isOver);
    const connection = { ...client, maxRetriesPerRequest: null };
    this.#sets = new bullmq.Queue(place.sets, { connection, prefix });
    const common = {
      ...{ connection, prefix, autorun: false, lockDuration: lockMs, stalledInterval: lockMs },
      // After Redis was away a result is reported at once, not after half a lock's time.
      ...{ maxStalledCount: stallsMax, runRetryDelay: 1000, drainDelay: 2 },
    };
    const parts = new bullmq.Worker<PartData, MadePart>(
      place.parts,
      (job, token) => this.#tracked(() => this.#part(job, token)),
      { ...common, concurrency },
    );
    const sets = new bullmq.Worker<SetsData, readonly MadeSet[]>(
      place.sets,
      (job, token) => this.#tracked(() => this.#makeSets(job, token)),
      { ...common, concurrency: 1 },
    );
    this.#workers = [parts, sets];
    const trouble = (error: Error): void => {
      this.#trouble = error;
      settings.tell({ kind: 'trouble', message: error.message });
    };
    this.#sets.on('error', trouble);
    for (const each of this.#workers) {
      each.on('error', trouble);
      each.on('stalled', (job) => settings.tell({ kind: 'stalled', job }));
    }
  }

  async ready(): Promise<void> {
    const all = Promise.all(this.#workers.map((each) => each.waitUntilReady()));
    all.catch(() => {});
    const timer = new AbortController();
    try {
      await Promise.race([
        all,
        wait(connectMsMax, undefined, { signal: timer.signal }).then(() => {
          throw unreachable(this.#settings.place, this.#trouble);
        }),
      ]);
    } catch (error) {
      throw error instanceof LoaderxError ? error : unreachable(this.#settings.place, error);
    } finally {
      timer.abort();
    }
    for (const each of this.#workers) {
      each.run().catch((error: Error) => {
        this.#settings.tell({ kind: 'trouble', message: error.message });
      });
    }
  }

  async #tracked<T>(work: () => Promise<T>): Promise<T> {
    const promise = work();
    this.#running.add(promise);
    try {
      return await promise;
    } finally {
      this.#running.delete(promise);
    }
  }

  async #part(job: Job<PartData, MadePart>, token: string | undefined): Promise<MadePart> {
    const { run, part } = this.#ofThisVersion(() => partDataOf(job.data));
    const parent = await this.#bullmq.Job.fromId<SetsData>(this.#sets, run);
    if (parent === undefined) throw this.#hopeless(`conversion ${run} is gone`);
    const spec = this.#checked(parent.data);
    const made = await this.#run({ kind: 'part', spec, part }, run, job, token);
    return made as MadePart;
  }

  async #makeSets(
    job: Job<SetsData, readonly MadeSet[]>,
    token: string | undefined,
  ): Promise<readonly MadeSet[]> {
    const failures = Object.values(await job.getIgnoredChildrenFailures());
    if (failures.length > 0) {
      await job.removeUnprocessedChildren();
      const more = failures.length - 1;
      const others = more === 0 ? '' : `; and ${more} more ${more === 1 ? 'part' : 'parts'}`;
      throw this.#hopeless(`${failures.sort()[0]}${others}`);
    }
    const spec = this.#checked(job.data);
    const children = await job.getChildrenValues<MadePart>();
    const parts = Object.values(children).sort((a, b) => a.part - b.part);
    const columns = this.#columnsOf(parts);
    const made = await this.#run({ kind: 'sets', spec, columns }, job.id ?? '', job, token);
    return made as readonly MadeSet[];
  }

  /** What all parts have made. */
  #columnsOf(parts: readonly MadePart[]): readonly MadeColumn[] {
    const [first, ...rest] = parts;
    const text = (part: MadePart): string =>
      JSON.stringify(
        this.#ofThisVersion(() => madeColumnsOf(part?.columns)).map(({ split, column }) => [
          split ?? null,
          column,
        ]),
      );
    const other = rest.find((part) => first !== undefined && text(part) !== text(first));
    if (first === undefined || other !== undefined) {
      throw this.#hopeless(
        `part ${other?.part ?? 0} has other columns than part ${first?.part ?? 0} (SCHEMA)`,
      );
    }
    return this.#ofThisVersion(() => madeColumnsOf(first.columns));
  }

  #checked(data: SetsData | null | undefined): ConversionSpec {
    const cancelled = data?.cancelled;
    if (cancelled !== undefined) throw this.#hopeless(`it was cancelled (${cancelled})`);
    return this.#ofThisVersion(() => specOf(data?.spec));
  }

  /** Whoever can write to Redis may have put anything there: it is refused, and not tried again. */
  #ofThisVersion<T>(check: () => T): T {
    try {
      return check();
    } catch (error) {
      throw this.#hopeless(`the job is none of this version: ${messageOf(error)}`);
    }
  }

  /** A failure that no further try will mend. */
  #hopeless(message: string): Error {
    return new this.#bullmq.UnrecoverableError(message);
  }

  /** Runs a task of `job`, and turns what becomes of it into what BullMQ is to know. */
  async #run(
    task: Task,
    run: string,
    job: Job,
    token: string | undefined,
  ): Promise<MadePart | readonly MadeSet[]> {
    const { execArgv, tell } = this.#settings;
    const id = job.id ?? '';
    const stopping = new AbortController();
    const stop = (): void => stopping.abort('the worker ends');
    this.#closing.signal.addEventListener('abort', stop, { once: true });
    const asking = this.#askForCancel(run, stopping);
    tell({ kind: 'started', job: id, attempt: job.attemptsMade + 1 });
    try {
      if (this.#closing.signal.aborted) stop();
      const result = await runTask(task, {
        execArgv,
        signal: stopping.signal,
        // It matters to nobody when Redis is away for one of them.
        onProgress: ({ recordsDone, recordsTotal }) => {
          job.updateProgress({ recordsDone, recordsTotal }).catch(() => {});
        },
      });
      tell({ kind: 'done', job: id, wasThere: 'wasThere' in result && result.wasThere });
      return result;
    } catch (error) {
      throw await this.#failure(error, task, job, token);
    } finally {
      clearInterval(asking);
      this.#closing.signal.removeEventListener('abort', stop);
    }
  }

  /** Stops a task once its conversion was cancelled, or is not there any more. */
  #askForCancel(run: string, stopping: AbortController): NodeJS.Timeout {
    let isAsking = false;
    return setInterval(async () => {
      if (isAsking) return;
      isAsking = true;
      try {
        const parent = await this.#bullmq.Job.fromId<SetsData>(this.#sets, run);
        const reason = parent === undefined ? 'it was removed' : parent.data.cancelled;
        if (reason !== undefined) stopping.abort(`it was cancelled (${reason})`);
      } catch {
        // Redis is away; it is asked again.
      } finally {
        isAsking = false;
      }
    }, cancelPollMs);
  }

  async #failure(
    error: unknown,
    task: Task,
    job: Job,
    token: string | undefined,
  ): Promise<unknown> {
    const { tell } = this.#settings;
    const id = job.id ?? '';
    const message = messageOf(error);
    const code = error instanceof LoaderxError || isArgumentError(error) ? error.code : undefined;
    if (code === 'ABORTED' || code === 'BUILD_FAILED') await removeRest(task);
    const isEnding = code === 'ABORTED' && this.#closing.signal.aborted;
    if (isEnding || code === 'LOCKED') {
      tell({ kind: 'postponed', job: id, message });
      await job.moveToDelayed(Date.now() + (isEnding ? 1 : lockedMs), token);
      return new this.#bullmq.DelayedError();
    }
    const name = task.kind === 'part' ? `part ${task.part} of ${task.spec.parts}` : 'the sets';
    const text = `${name}: ${message}${code === undefined ? '' : ` (${code})`}`;
    tell({ kind: 'failed', job: id, message: text });
    const isHopeless = code === 'ABORTED' || (code !== undefined && hopeless.has(code));
    return isHopeless ? this.#hopeless(text) : new Error(text);
  }

  close(options: { readonly timeoutMs?: number | undefined } = {}): Promise<void> {
    this.#closed ??= this.#close(
      wholeOf(knownFields(options, ['timeoutMs']), 'timeoutMs', closeMsMax, 0),
    );
    return this.#closed;
  }

  async #close(timeoutMs: number): Promise<void> {
    const all = [...this.#workers, this.#sets];
    const closing = Promise.allSettled(all.map((each) => each.close()));
    const isOver = await beforeLong(closing, timeoutMs);
    if (isOver) return;
    this.#closing.abort();
    // Children end, or are killed, whether Redis is there or not.
    await Promise.allSettled(this.#running);
    // With Redis away this waits for it; the clients give up by themselves then.
    this.#isOver = true;
    await beforeLong(closing, 2000);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

/** Removes what a part's process has left that was killed. The next one would, if there is a next one. */
async function removeRest(task: Task): Promise<void> {
  if (task.kind !== 'part') return;
  const { part, spec } = task;
  try {
    const { Staging } = await import('../converter/staging.js');
    Staging.sweep(spec.target, partName({ part, of: spec.parts }));
  } catch {
    // What matters is why the process ended.
  }
}

/** Whether it settles in that time. */
async function beforeLong(work: Promise<unknown>, ms: number): Promise<boolean> {
  const timer = new AbortController();
  try {
    return await Promise.race([
      work.then(() => true),
      wait(ms, false, { signal: timer.signal }).catch(() => false),
    ]);
  } finally {
    timer.abort();
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
