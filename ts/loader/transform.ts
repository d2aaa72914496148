/**
 * What happens to a batch between gathering and delivery.
 *
 * A transform runs as a function on this thread ({@link FunctionTransformer}) or as a module in a
 * pool of threads (`transform-pool.ts`). To the pipeline both look alike.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import type { Abort } from './abort.js';
import type { Batch } from './batch.js';
import type { Drawn } from './plan.js';
import { type Rng, rngOf } from './rng.js';
import { loadTransform, type TransformFunction } from './transform-module.js';

/** What a transform gets beside the batch. */
export interface TransformContext {
  /** The batch's step. */
  readonly step: number;
  /** Random numbers that depend on seed, step and a record's place in the global batch alone. */
  readonly rng: Rng;
  /** Aborted when nobody wants the result any more: the loader closes, seeks, or has failed. */
  readonly signal: AbortSignal;
}

/** Runs transforms. It can be used again after `stop`. */
export interface Transformer {
  /** Transforms at one time. */
  readonly countMax: number;
  /** A transform begins only when the consumer waits for that very batch. */
  readonly isOnDemand: boolean;
  /** The result, or a promise of it when it is not there yet. */
  run(batch: Batch, drawn: Drawn, abort: Abort): unknown;
  /** Whether somebody waits: only then do transforms keep the process alive. */
  hold(isWaitedFor: boolean): void;
  /** Ends what can be ended from outside, and frees threads. */
  stop(): Promise<void>;
  /** Whether the caller runs inside a transform of this loader. */
  isInside(): boolean;
}

/** The transforms that the running code is inside of, innermost first. */
interface Inside {
  readonly transformer: FunctionTransformer;
  readonly outer: Inside | undefined;
}

/** One for all loaders: each that is ever used costs every promise of the process a little. */
const inside = new AsyncLocalStorage<Inside>();

/** Runs a function on this thread. */
export class FunctionTransformer implements Transformer {
  readonly countMax: number;
  readonly isOnDemand: boolean;
  readonly #seed: bigint;
  #transform: TransformFunction | undefined;
  readonly #module: URL | undefined;

  /** `workers` 0: one at a time, on demand. */
  constructor(transform: TransformFunction | URL, workers: number, seed: bigint) {
    this.countMax = Math.max(1, workers);
    this.isOnDemand = workers === 0;
    this.#seed = seed;
    if (transform instanceof URL) this.#module = transform;
    else this.#transform = transform;
  }

  run(batch: Batch, drawn: Drawn, abort: Abort): unknown {
    const context = new Context(this.#seed, drawn, abort);
    const transform = this.#transform;
    if (transform !== undefined) return this.#call(transform, batch, context);
    return this.#runModule(batch, context);
  }

  hold(): void {}

  async stop(): Promise<void> {}

  isInside(): boolean {
    let level = inside.getStore();
    while (level !== undefined && level.transformer !== this) level = level.outer;
    return level !== undefined;
  }

  async #runModule(batch: Batch, context: TransformContext): Promise<unknown> {
    const transform = await loadTransform(this.#module?.href ?? '');
    this.#transform = transform;
    return this.#call(transform, batch, context);
  }

  #call(transform: TransformFunction, batch: Batch, context: TransformContext): unknown {
    return inside.run({ transformer: this, outer: inside.getStore() }, transform, batch, context);
  }
}

/** Made where it is asked for: most transforms use neither. */
class Context implements TransformContext {
  readonly step: number;
  readonly #seed: bigint;
  readonly #drawn: Drawn;
  readonly #abort: Abort;
  #rng: Rng | undefined;

  constructor(seed: bigint, drawn: Drawn, abort: Abort) {
    this.step = drawn.step;
    this.#seed = seed;
    this.#drawn = drawn;
    this.#abort = abort;
  }

  get rng(): Rng {
    const { step, first, ids } = this.#drawn;
    this.#rng ??= rngOf(this.#seed, step, first, ids.length);
    return this.#rng;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }
}
