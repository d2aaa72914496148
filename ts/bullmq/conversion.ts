/**
 * The side that asks: a conversion as a flow of jobs, and what has become of it.
 *
 * ```text
 *   RUN (queue NAME-sets)            waits for its children, then makes the sets
 *   ├── RUN-0 (queue NAME)           part 0
 *   ├── RUN-1                        part 1 …
 *   └── …                            one that fails for good lets RUN begin at once: it fails, and says why
 * ```
 *
 * Whatever is known of a run lies in Redis, so it can be looked at, waited for and cancelled from anywhere.
 */
import { randomUUID } from 'node:crypto';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import type { FlowProducer, Job, Queue } from 'bullmq';
import { ArgumentTypeError, type ErrorCode, errorCodes, LoaderxError, show } from '../errors.js';
import { givenUp, signalOf } from '../signal.js';
import { knownFields } from '../store/fields.js';
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
  hubScheme,
  idForm,
  type PartData,
  type SetsData,
  specOf,
} from './spec.js';
import type { MadeSet, PartProgress } from './task.js';

/** How a conversion is enqueued. */
export interface EnqueueOptions extends QueuePlace {
  /**
   * Its name: a letter, then letters, digits, `_`, `-` or `.`, 100 at most; a random one unless given. The same
   * one again finds the conversion that is there.
   */
  readonly id?: string | undefined;
  /** How often a part is tried, 1 or more; 3 unless given. What cannot go well is not tried again. */
  readonly attempts?: number | undefined;
  /** Milliseconds before the second try, doubled before each further one; 1,000 unless given. */
  readonly backoffMs?: number | undefined;
}

/** How long {@link QueuedConversion.done} waits. */
export interface DoneOptions {
  /** Milliseconds between two looks; 500 unless given. */
  readonly pollMs?: number | undefined;
  /** Ends the waiting, not the conversion. */
  readonly signal?: AbortSignal | undefined;
}

/** How {@link QueuedConversion.cancel} goes about it. */
export interface CancelOptions {
  /** Why; parts that are stopped say so. */
  readonly reason?: string | undefined;
  /** Milliseconds for running parts to end; 60,000 unless given. */
  readonly timeoutMs?: number | undefined;
}

/** What a conversion made. */
export interface ConversionResult {
  /** The folder of the parts and their sets: an absolute path. */
  readonly target: string;
  /** One for each column of each split. */
  readonly sets: readonly MadeSet[];
}

/** How far a conversion has come. */
export interface ConversionProgress {
  /** How many there are in all. */
  readonly parts: number;
  /** Those that are complete, also those that were there already. */
  readonly partsDone: number;
  /** Those that failed for good: no further try comes. */
  readonly partsFailed: number;
  /** Parts that are being made. */
  readonly running: readonly (PartProgress & {
    /** Which one, counted from 0. */
    readonly part: number;
  })[];
}

/** A conversion in a queue. */
export interface QueuedConversion {
  /** The name that {@link findConversion} finds it by. */
  readonly id: string;
  /** What was asked for, its paths absolute. */
  readonly spec: ConversionSpec;
  /**
   * Waits until all parts and their sets are there. Redis may be away meanwhile.
   *
   * @throws TypeError, RangeError (INVALID_ARGUMENT) for options that cannot be; LoaderxError with the code and
   *   message of a part that failed for good, or of the sets; ABORTED when the conversion was cancelled or
   *   removed, or the signal says so; CLOSED after `close`; BUILD_FAILED where there is no code
   */
  done(options?: DoneOptions): Promise<ConversionResult>;
  /**
   * How far it is now.
   *
   * @throws LoaderxError NETWORK; NOT_FOUND when it is not in the queue any more
   */
  progress(): Promise<ConversionProgress>;
  /**
   * Stops running parts, drops waiting ones, and takes the conversion out of the queue. Parts that are complete
   * stay in the target: the next conversion of the same goes on from them. Does nothing where it is not in the
   * queue any more.
   *
   * @throws TypeError, RangeError (INVALID_ARGUMENT) for options that cannot be; LoaderxError BUSY when a part has
   *   not ended in time; NETWORK
   */
  cancel(options?: CancelOptions): Promise<void>;
  /**
   * Takes what is over out of the queue: its jobs would stay there.
   *
   * @throws LoaderxError BUSY while a worker makes one of its parts, or the sets; NETWORK
   */
  remove(): Promise<void>;
  /** Closes the connections to Redis; the conversion goes on. */
  close(): Promise<void>;
  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Puts a conversion into a queue: one job for each part, and a last one that makes a set of each column. Workers
 * ({@link worker}) do them.
 *
 * @param spec relative paths are of this process's working folder; workers must see the same files there
 * @throws TypeError, RangeError (INVALID_ARGUMENT) with the `field`; LoaderxError UNSUPPORTED without bullmq and
 *   ioredis, NETWORK where Redis cannot be reached, EXISTS when another conversion has the id
 */
export async function enqueueConversion(
  spec: ConversionSpec,
  options: EnqueueOptions,
): Promise<QueuedConversion> {
  const checked = specOf(spec);
  const fields = knownFields(options, [...placeFields, 'id', 'attempts', 'backoffMs']);
  const place = placeOf(fields);
  const id = idOf(fields.id);
  const attempts = wholeOf(fields, 'attempts', 3, 1);
  const backoffMs = wholeOf(fields, 'backoffMs', 1000, 0);
  const whole = absolute(checked);
  const link = await Link.open(place);
  try {
    const before = await link.find(id);
    if (before !== undefined) {
      if (JSON.stringify(before.data.spec) === JSON.stringify(whole)) {
        return new Conversion(link, id, whole);
      }
      throw new LoaderxError('EXISTS', `${id}: another conversion in the queue has this id`);
    }
    const backoff = { type: 'exponential', delay: backoffMs };
    const data: SetsData = { spec: whole };
    const adding = link.flows.add({
      name: 'sets',
      queueName: place.sets,
      data,
      opts: { jobId: id, attempts, backoff },
      children: Array.from({ length: whole.parts }, (_, part) => {
        const of: PartData = { run: id, part };
        const opts = { jobId: `${id}-${part}`, attempts, backoff, continueParentOnFailure: true };
        return { name: 'part', queueName: place.parts, data: of, opts };
      }),
    });
    await link.within(adding, addMsMax);
    return new Conversion(link, id, whole);
  } catch (error) {
    await link.close();
    throw error;
  }
}

/**
 * A conversion that somebody has enqueued, by its id; `undefined` where none is in the queue.
 *
 * @throws TypeError, RangeError (INVALID_ARGUMENT) with the `field`, also of a job that another version enqueued;
 *   LoaderxError UNSUPPORTED without bullmq and ioredis, NETWORK where Redis cannot be reached
 */
export async function findConversion(
  id: string,
  options: QueuePlace,
): Promise<QueuedConversion | undefined> {
  const place = placeOf(knownFields(options, placeFields));
  const checked = idOf(id);
  const link = await Link.open(place);
  let found: QueuedConversion | undefined;
  try {
    const job = await link.find(checked);
    if (job !== undefined) found = new Conversion(link, checked, specOf(job.data.spec));
    return found;
  } finally {
    if (found === undefined) await link.close();
  }
}

function idOf(id: unknown = `c-${randomUUID()}`): string {
  if (typeof id === 'string' && idForm.test(id)) return id;
  throw new ArgumentTypeError(
    'id',
    `id must be a letter, then up to 99 letters, digits, _, - or ., got ${show(id)}`,
  );
}

function absolute(spec: ConversionSpec): ConversionSpec {
  const { source, target, dict } = spec;
  return {
    ...spec,
    source: source.startsWith(hubScheme) ? source : path.resolve(source),
    target: path.resolve(target),
    ...(dict === undefined ? {} : { dict: path.resolve(dict) }),
  };
}

const connectMsMax = 10_000;
/** Tens of thousands of jobs are added at once. */
const addMsMax = 120_000;

type SetsJob = Job<SetsData, readonly MadeSet[]>;

/** The queues of one place. */
class Link {
  readonly place: Place;
  readonly flows: FlowProducer;
  readonly parts: Queue<PartData>;
  readonly sets: Queue<SetsData, readonly MadeSet[]>;
  readonly #find: (id: string) => Promise<SetsJob | undefined>;
  /** What the client said last; it says nothing to those who wait. */
  trouble: unknown;
  #isOver = false;

  private constructor(place: Place, bullmq: Awaited<ReturnType<typeof loadBullmq>>) {
    const connection = clientOptions(place, () => this.#isOver);
    const options = { connection, prefix: place.prefix };
    this.place = place;
    this.flows = new bullmq.FlowProducer(options);
    this.parts = new bullmq.Queue(place.parts, options);
    this.sets = new bullmq.Queue(place.sets, options);
    this.#find = async (id) => bullmq.Job.fromId<SetsData, readonly MadeSet[]>(this.sets, id);
    const remember = (error: unknown): void => {
      this.trouble = error;
    };
    this.flows.on('error', remember);
    for (const queue of [this.parts, this.sets]) (queue as Queue).on('error', remember);
  }

  static async open(place: Place): Promise<Link> {
    const link = new Link(place, await loadBullmq());
    try {
      await link.within(Promise.all([link.parts.waitUntilReady(), link.sets.waitUntilReady()]));
      return link;
    } catch (error) {
      await link.close();
      throw error;
    }
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  async find(id: string): Promise<SetsJob | undefined> {
    return (await this.within(this.#find(id))) ?? undefined;
  }

  /** A client that has lost Redis waits for it without end; those who ask it do not. */
  async within<T>(work: Promise<T>, ms = connectMsMax): Promise<T> {
    const timer = new AbortController();
    // It may fail when nobody waits for it any more.
    work.catch(() => {});
    try {
      return await Promise.race([
        work,
        wait(ms, undefined, { signal: timer.signal }).then(() => {
          throw unreachable(this.place, this.trouble);
        }),
      ]);
    } catch (error) {
      if (error instanceof LoaderxError) throw error;
      throw isOfConnection(error) ? unreachable(this.place, error) : error;
    } finally {
      timer.abort();
    }
  }

  async close(): Promise<void> {
    this.#isOver = true;
    const all = [this.flows, this.parts, this.sets];
    // With Redis away this waits for it; the clients give up by themselves then.
    const closing = Promise.allSettled(all.map((each) => each.close()));
    const timer = new AbortController();
    await Promise.race([closing, wait(1000, undefined, { signal: timer.signal }).catch(() => {})]);
    timer.abort();
  }
}

/** Whether an error is that Redis was away. */
export function isOfConnection(error: unknown): boolean {
  const { code, message } = (error ?? {}) as {
    readonly code?: unknown;
    readonly message?: unknown;
  };
  if (typeof code === 'string') return /^E[A-Z]+$/.test(code);
  return typeof message === 'string' && /connection is closed|ECONN|max retries/i.test(message);
}

class Conversion implements QueuedConversion {
  readonly id: string;
  readonly spec: ConversionSpec;
  readonly #link: Link;

  constructor(link: Link, id: string, spec: ConversionSpec) {
    this.id = id;
    this.spec = spec;
    this.#link = link;
  }

  async done(options: DoneOptions = {}): Promise<ConversionResult> {
    const fields = knownFields(options, ['pollMs', 'signal']);
    const pollMs = wholeOf(fields, 'pollMs', 500, 1);
    const signal = signalOf(fields.signal);
    for (;;) {
      if (this.#link.isOver) throw new LoaderxError('CLOSED', `${this.id}: it is closed`);
      const job = await this.#look();
      if (job === undefined) throw this.#gone();
      if (job !== 'away' && job.finishedOn !== undefined) {
        if (job.failedReason !== undefined && job.failedReason !== '') throw failureOf(job);
        return { target: this.spec.target, sets: job.returnvalue };
      }
      try {
        await wait(pollMs, undefined, { ...(signal === undefined ? {} : { signal }) });
      } catch {
        throw givenUp(this.spec.target, signal);
      }
    }
  }

  /** The last job; `'away'` while Redis is. */
  async #look(): Promise<SetsJob | undefined | 'away'> {
    try {
      return await this.#link.find(this.id);
    } catch (error) {
      if (error instanceof LoaderxError && error.code === 'NETWORK') return 'away';
      throw error;
    }
  }

  async progress(): Promise<ConversionProgress> {
    const job = await this.#link.find(this.id);
    if (job === undefined) {
      throw new LoaderxError('NOT_FOUND', `${this.id}: it is not in the queue any more`);
    }
    const { parts } = this.spec;
    const [counts, active] = await this.#link.within(
      Promise.all([
        job.getDependenciesCount({ processed: true, ignored: true }),
        this.#link.parts.getActive(),
      ]),
    );
    const running = active
      .filter(({ data }) => data.run === this.id)
      .map(({ data: { part }, progress }) => ({ part, ...progressOf(progress) }));
    const { processed = 0, ignored = 0 } = counts;
    return { parts, partsDone: processed, partsFailed: ignored, running };
  }

  async cancel(options: CancelOptions = {}): Promise<void> {
    const fields = knownFields(options, ['reason', 'timeoutMs']);
    const { reason = 'cancelled' } = fields;
    if (typeof reason !== 'string') {
      throw new ArgumentTypeError('reason', `reason must be a text, got ${show(reason)}`);
    }
    const timeoutMs = wholeOf(fields, 'timeoutMs', 60_000, 0);
    const job = await this.#link.find(this.id);
    if (job === undefined) return;
    await this.#link.within(job.updateData({ ...job.data, cancelled: reason }));
    await this.#link.within(job.removeUnprocessedChildren());
    const endMs = Date.now() + timeoutMs;
    for (;;) {
      if (await this.#removed()) return;
      if (Date.now() >= endMs) {
        throw new LoaderxError(
          'BUSY',
          `${this.id}: a part of it has not ended ${timeoutMs} ms after it was told to; call cancel again`,
        );
      }
      await wait(100);
    }
  }

  async remove(): Promise<void> {
    if (await this.#removed()) return;
    throw new LoaderxError('BUSY', `${this.id}: parts of it are being made; cancel it first`);
  }

  /** Whether none of its jobs is there any more. One that a worker holds cannot be removed. */
  async #removed(): Promise<boolean> {
    const { within } = this.#link;
    const job = await this.#link.find(this.id);
    if (job === undefined) return true;
    try {
      await within.call(this.#link, job.remove({ removeChildren: true }));
      return true;
    } catch (error) {
      if (error instanceof LoaderxError) throw error;
      return false;
    }
  }

  #gone(): LoaderxError {
    const { target } = this.spec;
    return new LoaderxError(
      'ABORTED',
      `${target}: conversion ${this.id} was cancelled, or removed from the queue`,
      { path: target },
    );
  }

  async close(): Promise<void> {
    await this.#link.close();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }
}

function progressOf(progress: unknown): PartProgress {
  const { recordsDone, recordsTotal } = (progress ?? {}) as Partial<PartProgress>;
  return { recordsDone: recordsDone ?? 0, recordsTotal: recordsTotal ?? 0 };
}

/** What the last job failed with, as an error of the family. */
function failureOf(job: SetsJob): LoaderxError {
  const { spec, cancelled } = job.data;
  const place = { path: spec.target };
  if (cancelled !== undefined) {
    return new LoaderxError('ABORTED', `${spec.target}: it was cancelled (${cancelled})`, place);
  }
  const reason = job.failedReason ?? '';
  const named = /\(([A-Z_]+)\)(?:; |$)/.exec(reason)?.[1];
  const code: ErrorCode = errorCodes.find((each) => each === named) ?? 'BUILD_FAILED';
  return new LoaderxError(code, `${spec.target}: ${reason}`, place);
}
