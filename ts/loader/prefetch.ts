/**
 * Batches made ahead: bounded, in order, and ended cleanly. No I/O here; what the stages do is theirs.
 *
 *     draw ─▶ gathering ─▶ gathered ─▶ transforming ─▶ ready ─▶ the consumer's next()
 *     └────────────────── at most `countMax` entries ─────────┘
 *
 * Everything that happens ends in `#pump`, which starts whatever may start and hands over what is
 * due. It holds that:
 *
 * - entries are in step order, and leave when they are delivered; `step` is the first entry's;
 * - nothing is drawn while a drawn entry waits to be gathered, so no id is drawn before its time;
 * - a failure takes its entry's place and is delivered there, once; then the iteration rests;
 * - an entry nobody wants any more is aborted, and its memory given back when its work has ended;
 * - work that runs is counted, and resting, seeking and closing wait until none does.
 *
 *     open ──failure, end──▶ resting          any ──close──▶ closed
 *      ▲─────────seek──────────┘
 */
import { LoaderxError } from '../errors.js';
import { Abort, attachStep } from './abort.js';
import { StageClock, type StageTimes } from './stats.js';

/** What the pipeline needs to know of a drawn step. */
export interface Draw {
  readonly step: number;
}

/** The work of each stage. */
export interface Stages<D extends Draw, Raw, Out> {
  /** Makes `step` the next to draw. */
  seek(step: number, signal: AbortSignal): Promise<void>;
  /** The next step; undefined at the end. */
  draw(): D | undefined;
  /** Bytes that the batch of a step will have. Asked only with a byte budget. */
  bytesOf(drawn: D): number;
  /** Rejects once its work has ended, never before. */
  gather(drawn: D, abort: Abort): Promise<Raw>;
  readonly transform: TransformStage<D, Raw, Out> | undefined;
  /** Bytes that a result holds. Asked only with a byte budget. */
  resultBytesOf(result: Raw | Out): number;
  /** Gives memory back that no consumer will see. */
  discard(result: Raw | Out): void;
}

export interface TransformStage<D extends Draw, Raw, Out> {
  /** Transforms at one time. */
  readonly countMax: number;
  /** A transform begins only when the consumer waits for its batch. */
  readonly isOnDemand: boolean;
  run(raw: Raw, drawn: D, abort: Abort): Out | Promise<Out>;
  /** Whether somebody waits: only then does the work keep the process alive. */
  hold(isWaitedFor: boolean): void;
  stop(): Promise<void>;
  isInside(): boolean;
}

export interface Bounds {
  /** Batches drawn and not delivered. */
  readonly countMax: number;
  /** Their bytes; a single batch may have more. */
  readonly bytesMax: number | undefined;
  /** `'step'`: in step order. `'completion'`: as they come. */
  readonly order: 'step' | 'completion';
}

type State = 'drawn' | 'gathering' | 'gathered' | 'transforming' | 'ready' | 'failed' | 'dropped';

/** States in which an entry has memory. */
const loaded: ReadonlySet<State> = new Set(['gathering', 'gathered', 'transforming', 'ready']);

class Entry<D extends Draw, Raw, Out> {
  readonly drawn: D;
  readonly abort: Abort;
  state: State = 'drawn';
  bytes: number;
  startedMs = 0;
  raw: Raw | undefined;
  out: Raw | Out | undefined;
  error: unknown;

  constructor(drawn: D, bytes: number) {
    this.drawn = drawn;
    this.bytes = bytes;
    this.abort = new Abort(drawn.step);
  }
}

interface Waiter<Out> {
  /** Not collected while it waits. */
  readonly owner: object;
  readonly resolve: (result: IteratorResult<Out, undefined>) => void;
  readonly reject: (error: unknown) => void;
}

/** Work done, whether anybody waited for it or not. Milliseconds, of all batches together. */
export interface WorkTimes {
  readonly draw: number;
  readonly gather: number;
  readonly transform: number;
}

export interface PipelineReport {
  readonly elapsedMs: number;
  readonly times: StageTimes;
  readonly work: WorkTimes;
  readonly deliveredCount: number;
  readonly undeliveredCount: number;
}

/** Gathers at one time: enough that a lane finds the next one waiting when it is done. */
const gathersMax = 4;

/** Transforms that run at once may keep the event loop this long. A turn costs about 20 µs. */
const blockedMsMax = 1;

/** Without a transform, what comes out is what was gathered. */
export class Pipeline<D extends Draw, Raw, Out> {
  readonly #stages: Stages<D, Raw, Out>;
  readonly #bounds: Bounds;
  readonly #clock = new StageClock();
  readonly #work = { draw: 0, gather: 0, transform: 0 };
  #state: 'open' | 'resting' | 'closed' = 'open';
  /** Drawn and not delivered, in step order. */
  #entries: Entry<D, Raw, Out>[] = [];
  /** Ready or failed ones in the order in which they became so. */
  #finished: Entry<D, Raw, Out>[] = [];
  #waiters: Waiter<Raw | Out>[] = [];
  /** The step that the next draw takes. */
  #nextStep: number;
  /** Where to go before the next draw. */
  #seekTo: number | undefined;
  /** Whether a caller of `seek` is told how it went. */
  #isSeekAsked = false;
  #seeking: Promise<void> | undefined;
  readonly #seekStop = new AbortController();
  #isExhausted = false;
  #failedStep: number | undefined;
  /** Of an abort from outside, which the next `next` is told. */
  #farewell: { readonly error: unknown } | undefined;
  #closing: Promise<void> | undefined;
  #stopping: Promise<void> = Promise.resolve();
  #runningCount = 0;
  #onIdle: (() => void)[] = [];
  #transformingCount = 0;
  #gatheringCount = 0;
  #largestResult = 0;
  #deliveredCount = 0;
  #isHeld = false;
  #isPumping = false;
  /** Time of transforms that ran at once, since the last turn. */
  #blockedMs = 0;
  /** A turn of the event loop that goes on with transforms. */
  #turn: NodeJS.Immediate | undefined;

  constructor(stages: Stages<D, Raw, Out>, bounds: Bounds, step: number) {
    this.#stages = stages;
    this.#bounds = bounds;
    this.#nextStep = step;
    this.#seekTo = step;
  }

  /** The first step that was not delivered. */
  get step(): number {
    return this.#entries[0]?.drawn.step ?? this.#nextStep;
  }

  /** The step whose failure ended the iteration, until a seek. */
  get failedStep(): number | undefined {
    return this.#failedStep;
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }

  /** What is due next, for `owner`, or `done`. */
  next(owner: object): Promise<IteratorResult<Raw | Out, undefined>> {
    const promise = this.#next(owner);
    // A consumer that lost interest in it shall not bring the process down.
    promise.catch(ignore);
    return promise;
  }

  #next(owner: object): Promise<IteratorResult<Raw | Out, undefined>> {
    const farewell = this.#farewell;
    if (farewell !== undefined) {
      this.#farewell = undefined;
      return Promise.reject(farewell.error);
    }
    if (this.#state !== 'open') return Promise.resolve(done);
    if (this.#stages.transform?.isInside() === true) {
      return Promise.reject(
        new LoaderxError('BUSY', "next() inside the loader's own transform would wait for itself"),
      );
    }
    const promise = new Promise<IteratorResult<Raw | Out, undefined>>((resolve, reject) => {
      this.#waiters.push({ owner, resolve, reject });
    });
    this.#pump();
    return promise;
  }

  /** Goes to `step` when what runs has ended. Batches that were made are given up. */
  seek(step: number): Promise<void> {
    if (this.#stages.transform?.isInside() === true) {
      return Promise.reject(
        new LoaderxError('BUSY', "seek() inside the loader's own transform would wait for itself"),
      );
    }
    if (this.#state === 'closed') {
      return Promise.reject(new LoaderxError('CLOSED', 'the loader is closed'));
    }
    this.#giveUp();
    this.#nextStep = step;
    this.#seekTo = step;
    this.#isSeekAsked = true;
    this.#isExhausted = false;
    this.#failedStep = undefined;
    this.#state = 'open';
    return this.#goToStep();
  }

  /** Ends everything. Resolves when nothing runs any more. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    // A transform that closes its own loader cannot wait for itself.
    return this.#stages.transform?.isInside() === true ? Promise.resolve() : this.#closing;
  }

  /** Closes because of `error`, which whoever waits, or asks next, is told. */
  fail(error: unknown): void {
    if (this.#state === 'closed') return;
    attachStep(error, this.step);
    const waiter = this.#waiters.shift();
    if (waiter === undefined) this.#farewell = { error };
    else waiter.reject(error);
    void this.close();
  }

  report(): PipelineReport {
    return {
      ...this.#clock.read(),
      work: { ...this.#work },
      deliveredCount: this.#deliveredCount,
      undeliveredCount: this.#entries.length,
    };
  }

  // ---- what happens -----------------------------------------------------------------------------

  #pump(): void {
    // A transform that runs at once may call back into the loader; the loop below goes on then.
    if (this.#isPumping) return;
    this.#isPumping = true;
    try {
      while (this.#state === 'open' && this.#advance());
    } finally {
      this.#isPumping = false;
    }
    this.#settleMood();
  }

  /** Does one thing that can be done. The consumer comes first, then what is nearest to done. */
  #advance(): boolean {
    return this.#deliver() || this.#startTransform() || this.#startGather() || this.#drawNext();
  }

  #deliver(): boolean {
    const waiter = this.#waiters[0];
    if (waiter === undefined) return false;
    const entry = this.#due();
    if (entry === undefined) {
      if (!this.#isExhausted || this.#entries.length > 0) return false;
      this.#rest();
      return false;
    }
    this.#waiters.shift();
    if (entry.state === 'failed') {
      const { step } = entry.drawn;
      attachStep(entry.error, step);
      this.#failedStep = step;
      waiter.reject(entry.error);
      this.#rest();
      return false;
    }
    remove(this.#entries, entry);
    remove(this.#finished, entry);
    this.#deliveredCount += 1;
    waiter.resolve({ done: false, value: entry.out as Raw | Out });
    return true;
  }

  /** The entry that a waiting consumer is to get now. */
  #due(): Entry<D, Raw, Out> | undefined {
    if (this.#bounds.order === 'completion') return this.#finished[0];
    const first = this.#entries[0];
    return first?.state === 'ready' || first?.state === 'failed' ? first : undefined;
  }

  #startTransform(): boolean {
    const stage = this.#stages.transform;
    if (stage === undefined || this.#turn !== undefined) return false;
    if (this.#transformingCount >= stage.countMax) return false;
    const entry = this.#nextToTransform();
    if (entry === undefined) return false;
    if (stage.isOnDemand && !this.#isAwaited(entry)) return false;
    this.#transformNow(stage, entry);
    return true;
  }

  /** In step order transforms begin in step order too: one that keeps count of its calls may rely on it. */
  #nextToTransform(): Entry<D, Raw, Out> | undefined {
    const isAnyOrder = this.#bounds.order === 'completion';
    for (const entry of this.#entries) {
      if (entry.state === 'gathered') return entry;
      if (!isAnyOrder && (entry.state === 'drawn' || entry.state === 'gathering')) return undefined;
    }
    return undefined;
  }

  #isAwaited(entry: Entry<D, Raw, Out>): boolean {
    if (this.#waiters.length === 0) return false;
    return this.#bounds.order === 'completion' || entry === this.#entries[0];
  }

  #transformNow(stage: TransformStage<D, Raw, Out>, entry: Entry<D, Raw, Out>): void {
    const { raw, drawn, abort } = entry;
    entry.raw = undefined;
    entry.state = 'transforming';
    entry.startedMs = performance.now();
    this.#transformingCount += 1;
    this.#runningCount += 1;
    this.#clock.switchTo('transform');
    let result: Out | Promise<Out>;
    let isPending: boolean;
    try {
      result = stage.run(raw as Raw, drawn, abort);
      isPending = isThenable(result);
    } catch (error) {
      this.#transformEnded(entry);
      this.#failed(entry, error);
      return;
    }
    if (!isPending) {
      this.#blockedMs += this.#transformEnded(entry);
      this.#finish(entry, result as Out);
      // It kept this thread busy: the consumer and everybody else have their turn before the next.
      if (this.#blockedMs >= blockedMsMax) this.#takeTurn();
      return;
    }
    Promise.resolve(result).then(
      (out) => {
        this.#transformEnded(entry);
        this.#finish(entry, out);
        this.#pump();
      },
      (error: unknown) => {
        this.#transformEnded(entry);
        this.#failed(entry, error);
        this.#pump();
      },
    );
  }

  /** The milliseconds that it took. */
  #transformEnded(entry: Entry<D, Raw, Out>): number {
    const ms = performance.now() - entry.startedMs;
    this.#transformingCount -= 1;
    this.#work.transform += ms;
    this.#ended();
    return ms;
  }

  #startGather(): boolean {
    if (this.#gatheringCount >= gathersMax) return false;
    const entry = this.#entries.find(({ state }) => state === 'drawn');
    if (entry === undefined || !this.#fits(entry)) return false;
    entry.state = 'gathering';
    entry.startedMs = performance.now();
    this.#gatheringCount += 1;
    this.#runningCount += 1;
    this.#clock.switchTo('gather');
    this.#stages.gather(entry.drawn, entry.abort).then(
      (raw) => {
        this.#gatherEnded(entry);
        this.#gathered(entry, raw);
        this.#pump();
      },
      (error: unknown) => {
        this.#gatherEnded(entry);
        this.#failed(entry, error);
        this.#pump();
      },
    );
    return true;
  }

  #gatherEnded(entry: Entry<D, Raw, Out>): void {
    this.#gatheringCount -= 1;
    this.#work.gather += performance.now() - entry.startedMs;
    this.#ended();
  }

  #gathered(entry: Entry<D, Raw, Out>, raw: Raw): void {
    if (this.#stages.transform === undefined || entry.abort.isAborted) {
      this.#finish(entry, raw);
      return;
    }
    entry.raw = raw;
    entry.state = 'gathered';
  }

  #drawNext(): boolean {
    if (this.#isExhausted || this.#entries.length >= this.#bounds.countMax) return false;
    // A failure is the last thing that will be delivered.
    if (this.#entries.some(({ state }) => state === 'drawn' || state === 'failed')) return false;
    if (this.#seekTo !== undefined) {
      // Whoever waits is told if it fails.
      this.#goToStep().catch(ignore);
      return false;
    }
    const startMs = performance.now();
    this.#clock.switchTo('draw');
    try {
      const drawn = this.#stages.draw();
      if (drawn === undefined) {
        this.#isExhausted = true;
        return true;
      }
      this.#nextStep = drawn.step + 1;
      const { bytesMax } = this.#bounds;
      const bytes = bytesMax === undefined ? 0 : this.#stages.bytesOf(drawn);
      this.#entries.push(new Entry(drawn, Math.max(bytes, this.#largestResult)));
    } catch (error) {
      this.#tell(error);
    } finally {
      this.#work.draw += performance.now() - startMs;
    }
    return true;
  }

  /** Whether the byte budget has room for one more. */
  #fits(entry: Entry<D, Raw, Out>): boolean {
    const { bytesMax } = this.#bounds;
    if (bytesMax === undefined) return true;
    let bytes = entry.bytes;
    let count = 0;
    for (const other of this.#entries) {
      if (!loaded.has(other.state)) continue;
      bytes += other.bytes;
      count += 1;
    }
    return count === 0 || bytes <= bytesMax;
  }

  // ---- outcomes ---------------------------------------------------------------------------------

  #finish(entry: Entry<D, Raw, Out>, out: Raw | Out): void {
    if (entry.abort.isAborted) {
      this.#stages.discard(out);
      return;
    }
    if (this.#bounds.bytesMax !== undefined) {
      entry.bytes = this.#stages.resultBytesOf(out);
      this.#largestResult = Math.max(this.#largestResult, entry.bytes);
    }
    entry.out = out;
    entry.state = 'ready';
    this.#finished.push(entry);
  }

  #failed(entry: Entry<D, Raw, Out>, error: unknown): void {
    if (entry.abort.isAborted) return;
    entry.error = error;
    entry.state = 'failed';
    this.#finished.push(entry);
    // In step order what comes before it is still delivered, else what is ready already.
    const isOrdered = this.#bounds.order === 'step';
    for (const other of this.#entries) {
      const isWanted = isOrdered
        ? other.drawn.step <= entry.drawn.step
        : other.state === 'ready' || other.state === 'failed';
      if (!isWanted) this.#dropWork(other);
    }
  }

  /** A failure outside of any entry: the consumer is told where the next batch would come. */
  #tell(error: unknown): void {
    this.#seekTo = undefined;
    // It never runs, so its step is all that is ever asked of it.
    const entry = new Entry<D, Raw, Out>({ step: this.#nextStep } as D, 0);
    this.#entries.push(entry);
    this.#failed(entry, error);
  }

  /** Stops an entry's work. It stays in its place, so `step` counts it as not delivered. */
  #dropWork(entry: Entry<D, Raw, Out>): void {
    if (entry.abort.isAborted) return;
    const result = entry.raw ?? entry.out;
    entry.raw = undefined;
    entry.out = undefined;
    entry.state = 'dropped';
    remove(this.#finished, entry);
    entry.abort.abort();
    if (result !== undefined) this.#stages.discard(result);
  }

  /** Nobody wants any entry any more. */
  #giveUp(): void {
    this.#nextStep = this.step;
    const entries = this.#entries;
    this.#entries = [];
    for (const entry of entries) this.#dropWork(entry);
    this.#finished = [];
    clearImmediate(this.#turn);
    this.#turn = undefined;
    this.#blockedMs = 0;
  }

  /** The iteration has ended; a seek makes it go on. */
  #rest(): void {
    this.#state = 'resting';
    this.#giveUp();
    this.#seekTo = this.#nextStep;
    this.#dismiss();
    this.#stopping = this.#stages.transform?.stop() ?? Promise.resolve();
    this.#stopping.catch(ignore);
  }

  #dismiss(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter.resolve(done);
  }

  async #close(): Promise<void> {
    this.#state = 'closed';
    // A reason of its own: the usual one is an error, whose stack would hold on to the loader.
    this.#seekStop.abort('closed');
    this.#giveUp();
    this.#dismiss();
    this.#settleMood();
    await Promise.all([
      this.#stages.transform?.stop(),
      this.#stopping,
      this.#seeking,
      this.#idle(),
    ]);
  }

  /** Carries out the latest seek. All who wait for it share one run. */
  #goToStep(): Promise<void> {
    this.#seeking ??= this.#seekLoop().finally(() => {
      this.#seeking = undefined;
      this.#isSeekAsked = false;
      this.#pump();
    });
    this.#seeking.catch(ignore);
    this.#settleMood();
    return this.#seeking;
  }

  async #seekLoop(): Promise<void> {
    while (this.#seekTo !== undefined && !this.isClosed) {
      const target = this.#seekTo;
      await this.#stopping;
      await this.#idle();
      if (this.isClosed) break;
      try {
        await this.#stages.seek(target, this.#seekStop.signal);
      } catch (error) {
        if (this.isClosed) break;
        if (this.#isSeekAsked) this.#rest();
        else this.#tell(error);
        throw error;
      }
      if (this.#seekTo === target) this.#seekTo = undefined;
    }
  }

  #idle(): Promise<void> {
    if (this.#runningCount === 0) return Promise.resolve();
    return new Promise((resolve) => {
      this.#onIdle.push(resolve);
    });
  }

  #ended(): void {
    this.#runningCount -= 1;
    if (this.#runningCount > 0) return;
    const waiting = this.#onIdle;
    this.#onIdle = [];
    for (const resolve of waiting) resolve();
  }

  // ---- time, and what keeps the process alive ---------------------------------------------------

  #takeTurn(): void {
    this.#turn = setImmediate(() => {
      this.#turn = undefined;
      this.#blockedMs = 0;
      this.#pump();
    });
    if (!this.#isHeld) this.#turn.unref();
  }

  /**
   * After each change: what the time is counted as, and whether transforms keep the process alive,
   * which they do while somebody waits for a batch or a seek.
   */
  #settleMood(): void {
    this.#clock.switchTo(this.#stage());
    const isWaitedFor = this.#waiters.length > 0 || this.#seeking !== undefined;
    if (isWaitedFor === this.#isHeld) return;
    this.#isHeld = isWaitedFor;
    this.#stages.transform?.hold(isWaitedFor);
    if (isWaitedFor) this.#turn?.ref();
    else this.#turn?.unref();
  }

  #stage(): 'gather' | 'transform' | 'consumer' | 'data' | undefined {
    if (this.#state !== 'open') return undefined;
    if (this.#waiters.length === 0) {
      return this.#deliveredCount === 0 && this.#entries.length === 0 ? undefined : 'consumer';
    }
    const entries = this.#bounds.order === 'step' ? this.#entries.slice(0, 1) : this.#entries;
    const isIn = (state: State): boolean => entries.some((entry) => entry.state === state);
    if (isIn('transforming') || isIn('gathered')) return 'transform';
    return isIn('gathering') ? 'gather' : 'data';
  }
}

const done: IteratorReturnResult<undefined> = Object.freeze({ done: true, value: undefined });

function isThenable(value: unknown): boolean {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return false;
  return typeof (value as { readonly then?: unknown }).then === 'function';
}

function remove<T>(list: T[], item: T): void {
  const index = list.indexOf(item);
  if (index >= 0) list.splice(index, 1);
}

function ignore(): void {}
