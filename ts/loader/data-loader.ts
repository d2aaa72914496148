/**
 * Batches for training: the same streams, options and step give the same batch, everywhere.
 *
 *     plan (which ids) ─▶ gather (all streams) ─▶ transform ─▶ the consumer, in step order
 *
 * This is the front: it checks, puts the parts together and has no logic of its own. The pipeline
 * never refers to the loader, so a loader that is dropped is collected, and its work ends then.
 */
import { LoaderxError } from '../errors.js';
import { Sampler, type SamplerMode } from '../sampler.js';
import { onAbort } from '../signal.js';
import {
  Batch,
  type BatchOf,
  BufferCensus,
  bytesIn,
  gatherBatch,
  type NamedStream,
  type Stream,
} from './batch.js';
import { type Settings, settingsOf, stepOf, streamsOf } from './options.js';
import { type Drawn, StepPlan } from './plan.js';
import { Pipeline, type Stages } from './prefetch.js';
import type { Shard } from './shard.js';
import { FunctionTransformer, type TransformContext, type Transformer } from './transform.js';
import { TransformPool } from './transform-pool.js';

/** Makes what the consumer gets of a batch. */
export type Transform<B, R> = (batch: B, context: TransformContext) => R | Promise<R>;

/** What a loader is told. */
export interface DataLoaderOptions<B, R> {
  /** Records of a batch, over all ranks; 256 unless given. */
  readonly batchSize?: number | undefined;
  /** How records are chosen; `'cyclic'` unless given. See {@link Sampler}. */
  readonly mode?: SamplerMode | undefined;
  /** 0 .. 2^64 - 1; 42 unless given. */
  readonly seed?: number | bigint | undefined;
  /** The first step; 0 unless given. `loader.step` of another loader resumes it exactly. */
  readonly step?: number | undefined;
  /** Batches drawn and not yet delivered, in whatever stage; 4 unless given. */
  readonly prefetch?: number | undefined;
  /**
   * Bytes of the batches drawn and not yet delivered, instead of `prefetch` (with both, both hold).
   * One batch is always made, however large it is.
   */
  readonly maxBytes?: number | undefined;
  /**
   * `'step'` (unless given): batches come in step order. `'completion'`: as they get ready; then
   * `loader.step` is the lowest step that was not delivered, and resuming there gives those after it
   * that had been delivered once more.
   */
  readonly order?: 'step' | 'completion' | undefined;
  /** One pass over all records in order, the last batch short, and then the end. */
  readonly once?: boolean | undefined;
  /** Which part of each batch is this process's. */
  readonly shard?: Shard | undefined;
  /**
   * A function that runs on this thread, or the URL of a module whose default export runs in a pool
   * of threads. There memory is moved, not copied: what the batch holds goes over, and typed arrays
   * of the result come back.
   */
  readonly transform?: URL | Transform<B, R> | undefined;
  /**
   * Transforms at one time, and threads of the pool; 4 unless given. 0: on this thread, function or
   * module, and only when the consumer asks for the batch.
   */
  readonly transformWorkers?: number | undefined;
  /** Closes the loader: whoever waits for a batch, or asks next, is told ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** Where time and memory went. Times are in milliseconds. */
export interface LoaderStats {
  /** From the first `next` until now, or until the loader ended. The five below add up to it. */
  readonly elapsedMs: number;
  /** Ids were drawn. */
  readonly drawMs: number;
  /** The consumer waited, and its batch was being gathered. */
  readonly gatherMs: number;
  /** The consumer waited for the transform of its batch, or a function transformed on this thread. */
  readonly transformMs: number;
  /** The consumer worked, and the loader waited for it. */
  readonly consumerMs: number;
  /** The consumer waited, and its batch was in no stage: a seek, or the byte budget. */
  readonly dataMs: number;
  /** What each stage took of all batches together, whether anybody waited for it or not. */
  readonly work: {
    /** Milliseconds of drawing ids. */
    readonly drawMs: number;
    /** Milliseconds of gathering. */
    readonly gatherMs: number;
    /** Milliseconds of transforming. */
    readonly transformMs: number;
  };
  /** Batches delivered. */
  readonly batches: number;
  /** Bytes of the items that were gathered. */
  readonly bytes: number;
  /** Batches drawn and not delivered. */
  readonly inFlight: number;
  /** Buffers of gathered batches that are held by the loader, a transform, or the consumer. */
  readonly buffersAlive: number;
}

/**
 * An endless async iterator over batches of named readers, gathered at the same ids.
 *
 * Leaving a `for await` loop early closes the loader. A batch's memory is the consumer's: disposing
 * of the batch gives it to a later one at the cost of a microsecond; dropping it costs the garbage
 * collector's time and fresh memory for a later one.
 */
export class DataLoader<const S extends Readonly<Record<string, Stream>>, R = BatchOf<S>>
  implements AsyncIterableIterator<R, undefined, undefined>, AsyncDisposable
{
  readonly #pipeline: Pipeline<Drawn, Batch, unknown>;
  readonly #plan: StepPlan;
  readonly #meter: Meter;
  readonly #end: () => Promise<void>;

  /**
   * @param streams open readers of one length, by name
   * @throws TypeError, RangeError (`code: 'INVALID_ARGUMENT'`) for streams or options that cannot be;
   *   LoaderxError CLOSED for a closed reader
   */
  constructor(streams: S, options?: DataLoaderOptions<BatchOf<S>, R>) {
    const { named, length } = streamsOf(streams);
    const settings = settingsOf(options);
    const { batchSize, mode, seed, step, once, signal } = settings;
    const sampler = new Sampler({ length, batchSize, mode, seed });
    this.#plan = new StepPlan(sampler, settings.shard, once ? length : undefined);
    this.#plan.assertHas(step);
    const meter = new Meter(named.length);
    const transformer = transformerOf(settings, meter);
    const stages = stagesOf(named, this.#plan, transformer, meter);
    const pipeline = new Pipeline(
      stages,
      { countMax: settings.prefetch, bytesMax: settings.maxBytes, order: settings.order },
      step,
    );
    this.#pipeline = pipeline;
    this.#meter = meter;
    this.#end = endOf(pipeline, this.#plan, signal);
    dropped.register(this, this.#end, pipeline);
  }

  /** The next step to deliver: the whole checkpoint. */
  get step(): number {
    return this.#pipeline.step;
  }

  /**
   * The step whose error ended the iteration, until a `seek`; undefined when none did. An error that
   * is an object also has it as `loaderxStep`.
   */
  get failedStep(): number | undefined {
    return this.#pipeline.failedStep;
  }

  /**
   * The next batch, as the transform made it. After the last, after an error, and after `close`:
   * `done`.
   *
   * @throws what reading or the transform threw, once, where its batch would have come; then the
   *   iteration has ended, and `seek` makes it go on. LoaderxError ABORTED, BUSY inside the transform
   */
  next(): Promise<IteratorResult<R, undefined>> {
    // R is what the transform returns, or the batch itself: the options' type says so.
    return this.#pipeline.next(this) as Promise<IteratorResult<R, undefined>>;
  }

  /**
   * Makes `step` the next to deliver; batches made ahead are given up. Resolves when it is in place.
   *
   * @throws TypeError, RangeError for a step that cannot be; LoaderxError CLOSED, BUSY inside the
   *   transform
   */
  async seek(step: number): Promise<void> {
    const target = stepOf(step);
    this.#plan.assertHas(target);
    await this.#pipeline.seek(target);
  }

  /** What happened so far. Asking changes nothing. */
  stats(): LoaderStats {
    const { elapsedMs, times, work, deliveredCount, undeliveredCount } = this.#pipeline.report();
    return {
      elapsedMs,
      drawMs: times.draw,
      gatherMs: times.gather,
      transformMs: times.transform,
      consumerMs: times.consumer,
      dataMs: times.data,
      work: { drawMs: work.draw, gatherMs: work.gather, transformMs: work.transform },
      batches: deliveredCount,
      bytes: this.#meter.bytes,
      inFlight: undeliveredCount,
      buffersAlive: this.#meter.buffersAlive,
    };
  }

  /**
   * Ends the loader: no more batches, and those made ahead are freed. Resolves when nothing runs any
   * more. The readers stay open. Harmless twice.
   */
  close(): Promise<void> {
    return this.#end();
  }

  /** As a `for await` loop that is left early does: closes. */
  async return(): Promise<IteratorResult<R, undefined>> {
    await this.#end();
    return { done: true, value: undefined };
  }

  /** Closes, and rejects with `error`. */
  async throw(error?: unknown): Promise<IteratorResult<R, undefined>> {
    await this.#end();
    throw error;
  }

  /** The loader itself: it is iterated once. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** As `close`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.#end();
  }
}

/** Ends what a loader left behind that was dropped without `close`. By pipeline. */
const dropped = new FinalizationRegistry<() => Promise<void>>((end) => {
  void end();
});

/** Closes once, for whatever reason. Refers to the parts, not to the loader. */
function endOf(
  pipeline: Pipeline<Drawn, Batch, unknown>,
  plan: StepPlan,
  signal: AbortSignal | undefined,
): () => Promise<void> {
  let forget: (() => void) | undefined;
  const release = (): void => {
    forget?.();
    dropped.unregister(pipeline);
    plan.close();
  };
  const end = async (): Promise<void> => {
    await pipeline.close();
    release();
  };
  const abort = (): void => {
    const cause: unknown = signal?.reason;
    pipeline.fail(new LoaderxError('ABORTED', 'the loader was aborted', {}, { cause }));
    void end();
  };
  if (signal?.aborted === true) abort();
  else if (signal !== undefined) forget = onAbort(signal, abort);
  return end;
}

function transformerOf(settings: Settings, meter: Meter): Transformer | undefined {
  const { transform, transformWorkers, seed } = settings;
  if (transform === undefined) return undefined;
  if (typeof transform === 'function' || transformWorkers === 0) {
    return new FunctionTransformer(transform, transformWorkers, seed);
  }
  const pool = new TransformPool(transform, transformWorkers, seed, (result) => {
    meter.cameBack(result);
  });
  meter.awayCount = () => pool.awayCount;
  return pool;
}

function stagesOf(
  streams: readonly NamedStream[],
  plan: StepPlan,
  transform: Transformer | undefined,
  meter: Meter,
): Stages<Drawn, Batch, unknown> {
  return {
    seek: (step, signal) => plan.seek(step, signal),
    draw: () => plan.draw(),
    bytesOf: ({ ids }) => {
      let bytes = 0;
      for (const { source } of streams) bytes += source.batchBytes(ids);
      return bytes;
    },
    gather: async ({ ids }, { cancel }) => {
      const batch = await gatherBatch(streams, ids, cancel);
      meter.gathered(batch);
      return batch;
    },
    transform,
    resultBytesOf: bytesIn,
    discard: (result) => {
      if (result instanceof Batch) result[Symbol.dispose]();
    },
  };
}

/** Counts what was gathered. */
class Meter {
  /** Batches whose memory is on another thread, and so empty here. */
  awayCount: () => number = () => 0;
  readonly #census = new BufferCensus();
  readonly #streamCount: number;
  #bytes = 0;

  constructor(streamCount: number) {
    this.#streamCount = streamCount;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get buffersAlive(): number {
    return this.#census.alive() + this.awayCount() * this.#streamCount;
  }

  gathered(batch: Batch): void {
    this.#bytes += bytesIn(batch);
    this.#census.add(batch);
  }

  /** A result that came from another thread. */
  cameBack(result: unknown): void {
    this.#census.add(result);
  }
}
