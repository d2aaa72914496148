/**
 * Which records a step takes: a pure function of the options and the step.
 *
 * | mode         | a step gives                                                                   |
 * | ------------ | ------------------------------------------------------------------------------ |
 * | `sequential` | `batchSize` ids in order, wrapping around at the end                           |
 * | `iid`        | `batchSize` independent ids, repeats and all                                   |
 * | `cyclic`     | `min(batchSize, length)` ids of a permutation, a new one for each cycle;       |
 * |              | the last `length mod batchSize` positions of a cycle are left out              |
 *
 * The sequences equal those of Python's loaderx 2.4.6 index for index. `stream: '2.8'` gives those
 * of the newer package: other numbers in `iid`, and no wrapping of `step × batchSize` at 2^64 in
 * `sequential`.
 */
import { ArgumentRangeError, ArgumentTypeError, fromNative, LoaderxError, show } from './errors.js';
import type { Native, SamplerHandle } from './native/binding.js';
import { cancellable } from './native/cancel.js';
import { native } from './native/load.js';
import { signalOf } from './signal.js';

/** How a sampler chooses. */
export type SamplerMode = 'sequential' | 'iid' | 'cyclic';

/** What a sampler is told. Whole numbers above 2^53 - 1 are given as bigint. */
export interface SamplerOptions {
  /** Records to choose from, 1 .. 2^64 - 1. */
  readonly length: number | bigint;
  /** Ids of one step, 1 or more. */
  readonly batchSize: number | bigint;
  /** There is no default. */
  readonly mode: SamplerMode;
  /** 0 .. 2^64 - 1; 42 unless given. `sequential` does not use it. */
  readonly seed?: number | bigint | undefined;
  /** The first step to draw, 0 unless given. */
  readonly step?: number | bigint | undefined;
  /** Whose `iid` sequence: `'2.4'` unless given. */
  readonly stream?: '2.4' | '2.8' | undefined;
}

/** A sampler as plain data; `BigInt()` reads the numbers that may be above 2^53. */
export interface SamplerRecord {
  /** Decimal digits. */
  readonly length: string;
  /** Ids of one draw. */
  readonly batchSize: number;
  /** How ids are chosen. */
  readonly mode: SamplerMode;
  /** Decimal digits. */
  readonly seed: string;
  /** Decimal digits: the step of the next draw. */
  readonly step: string;
  /** Whose `iid` sequence. */
  readonly stream: '2.4' | '2.8';
}

const modes: readonly SamplerMode[] = ['sequential', 'iid', 'cyclic'];
const seedDefault = 42;
const u64Max = 2n ** 64n - 1n;
const optionNames = ['length', 'batchSize', 'mode', 'seed', 'step', 'stream'];

/** Draws record ids, step after step, without an end. One owner at a time. */
export class Sampler implements Iterable<BigUint64Array>, Disposable {
  /** Records that are drawn from, at least 1. */
  readonly length: bigint;
  /** How ids are chosen. */
  readonly mode: SamplerMode;
  /** 0 .. 2^64 - 1. */
  readonly seed: bigint;
  /** Whose `iid` sequence. */
  readonly stream: '2.4' | '2.8';
  /** Ids of one draw: `batchSize`, but in `cyclic` at most `length`. */
  readonly batchSize: number;
  readonly #native: Native;
  readonly #handle: SamplerHandle;
  #ids: BigUint64Array;
  /** The step while a seek runs elsewhere; undefined when none does. */
  #stepBefore: bigint | undefined;
  #isClosed = false;
  #isReleased = false;

  /**
   * @throws TypeError, RangeError (`code: 'INVALID_ARGUMENT'`) for options that cannot be;
   *   RangeError TOO_LARGE for a batch that no array can hold
   */
  constructor(options: SamplerOptions) {
    const fields = fieldsOf(options);
    this.length = u64(fields.length, 'length', 1n);
    const batchSize = u64(fields.batchSize, 'batchSize', 1n);
    this.mode = modeOf(fields.mode);
    this.seed = u64(fields.seed === undefined ? seedDefault : fields.seed, 'seed', 0n);
    const step = u64(fields.step === undefined ? 0 : fields.step, 'step', 0n);
    this.stream = streamOf(fields.stream === undefined ? '2.4' : fields.stream);

    const drawn = this.mode === 'cyclic' && batchSize > this.length ? this.length : batchSize;
    this.#ids = idsFor(drawn);
    this.batchSize = this.#ids.length;
    this.#native = native();
    this.#handle = translated(() =>
      this.#native.samplerCreate(
        this.length,
        batchSize,
        this.seed,
        modes.indexOf(this.mode),
        this.stream === '2.4' ? 24 : 28,
      ),
    );
    if (step !== 0n) this.seek(step);
  }

  /** The step that the next draw takes; while `seekAsync` runs, the one before. */
  get step(): bigint {
    this.#assertOpen();
    if (this.#stepBefore !== undefined) return this.#stepBefore;
    return translated(() => this.#native.samplerStep(this.#handle));
  }

  /**
   * The ids of this step; the sampler goes on to the next one.
   *
   * @returns an array that is overwritten by the next draw: copy what you keep
   * @throws LoaderxError OUT_OF_RANGE past step 2^64 - 1 of stream 2.8; BUSY while `seekAsync` runs; CLOSED
   */
  draw(): BigUint64Array {
    this.#assertReady();
    // The array is the caller's to look at, so it may have been transferred away.
    if (this.#ids.length !== this.batchSize) this.#ids = idsFor(BigInt(this.batchSize));
    const ids = this.#ids;
    translated(() => this.#native.samplerDraw(this.#handle, ids));
    return ids;
  }

  /**
   * Makes `step` the next one, 0 .. 2^64 - 1. Constant time, but for `iid` of stream 2.4: that one
   * draws its way there from step 0, about 1 ns for each of `step × batchSize` ids, and blocks the
   * thread meanwhile. Far away, use `seekAsync`, or stream 2.8.
   *
   * @throws TypeError, RangeError (INVALID_ARGUMENT) for no such number; LoaderxError BUSY while a
   *   `seekAsync` runs, CLOSED
   */
  seek(step: number | bigint): void {
    this.#assertReady();
    const target = u64(step, 'step', 0n);
    translated(() => this.#native.samplerSeekSync(this.#handle, target));
  }

  /**
   * As `seek`, off this thread. Until it settles the sampler is BUSY.
   *
   * @throws LoaderxError ABORTED when `signal` ends it: the step is as it was; BUSY, CLOSED
   */
  async seekAsync(
    step: number | bigint,
    options?: { readonly signal?: AbortSignal | undefined },
  ): Promise<void> {
    this.#assertReady();
    const target = u64(step, 'step', 0n);
    const signal = signalOf(options?.signal);
    this.#stepBefore = this.step;
    try {
      await cancellable(signal, { what: `the seek to step ${target}` }, async (cancel) => {
        try {
          await this.#native.samplerSeek(this.#handle, target, cancel);
        } catch (error) {
          throw fromNative(error);
        }
      });
    } finally {
      this.#stepBefore = undefined;
      if (this.#isClosed) this.#release();
    }
  }

  /** Draws without an end; each array is valid until the next one. */
  [Symbol.iterator](): Iterator<BigUint64Array, undefined, undefined> & Iterable<BigUint64Array> {
    return {
      next: () => ({ done: false, value: this.draw() }),
      return: () => ({ done: true, value: undefined }),
      [Symbol.iterator]() {
        return this;
      },
    };
  }

  /** What makes an equal sampler at this step, as data that `JSON.stringify` takes. */
  toJSON(): SamplerRecord {
    return {
      length: this.length.toString(),
      batchSize: this.batchSize,
      mode: this.mode,
      seed: this.seed.toString(),
      step: this.step.toString(),
      stream: this.stream,
    };
  }

  /** Releases the sampler; a running `seekAsync` is waited for in the background. Harmless twice. */
  close(): void {
    this.#isClosed = true;
    if (this.#stepBefore === undefined) this.#release();
  }

  /** As `close`. */
  [Symbol.dispose](): void {
    this.close();
  }

  #release(): void {
    if (this.#isReleased) return;
    this.#isReleased = true;
    this.#native.samplerClose(this.#handle);
  }

  #assertOpen(): void {
    if (this.#isClosed) throw new LoaderxError('CLOSED', 'the sampler is closed');
  }

  #assertReady(): void {
    this.#assertOpen();
    if (this.#stepBefore !== undefined) {
      throw new LoaderxError('BUSY', 'the sampler is seeking: await seekAsync first');
    }
  }
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(options: unknown): Fields {
  if (typeof options !== 'object' || options === null) {
    throw new ArgumentTypeError(
      'options',
      `options must be {length, batchSize, mode}, got ${show(options)}`,
    );
  }
  for (const key of Object.keys(options)) {
    if (!optionNames.includes(key)) {
      throw new ArgumentTypeError(
        key,
        `there is no option ${show(key)} here; known are ${optionNames.join(', ')}`,
      );
    }
  }
  return options as Fields;
}

function modeOf(mode: unknown): SamplerMode {
  const found = modes.find((name) => name === mode);
  if (found !== undefined) return found;
  // A loader has one, and brings it.
  const advice = mode === undefined ? '; there is no default' : '';
  throw new ArgumentTypeError(
    'mode',
    `mode must be 'sequential', 'iid' or 'cyclic', got ${show(mode)}${advice}`,
  );
}

function streamOf(stream: unknown): '2.4' | '2.8' {
  if (stream === '2.4' || stream === '2.8') return stream;
  throw new ArgumentTypeError('stream', `stream must be '2.4' or '2.8', got ${show(stream)}`);
}

/** A whole number `least` .. 2^64 - 1, given as number or bigint. */
export function u64(value: unknown, field: string, least: bigint): bigint {
  if (typeof value === 'number') {
    if (!Number.isInteger(value)) {
      throw new ArgumentTypeError(field, `${field} must be an integer, got ${show(value)}`);
    }
    if (!Number.isSafeInteger(value)) {
      throw new ArgumentRangeError(
        field,
        `${field} is ${value}, and a number above 2^53 - 1 is not exact: give it as bigint`,
      );
    }
  } else if (typeof value !== 'bigint') {
    throw new ArgumentTypeError(
      field,
      `${field} must be an integer, number or bigint, got ${show(value)}`,
    );
  }
  const integer = BigInt(value);
  if (integer < least || integer > u64Max) {
    throw new ArgumentRangeError(field, `${field} must be ${least} to 2^64 - 1, got ${integer}`);
  }
  return integer;
}

function idsFor(count: bigint): BigUint64Array {
  try {
    return new BigUint64Array(Number(count));
  } catch {
    throw new ArgumentRangeError(
      'batchSize',
      `a batch of ${count} ids is more than an array can hold`,
      'TOO_LARGE',
    );
  }
}

function translated<T>(call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw fromNative(error);
  }
}
