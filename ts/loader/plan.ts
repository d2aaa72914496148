/**
 * Which records each step takes, on this rank.
 *
 *     step 7, batch of 10, rank 1 of 4:   sampler  a b c d e f g h i j
 *                                         ids          c d e              first 2
 *
 * With `once`, steps are consecutive stretches of all records, the last one short, and then it ends.
 */
import { ArgumentRangeError } from '../errors.js';
import type { Sampler } from '../sampler.js';
import { type CheckedShard, sliceOf } from './shard.js';

/** One step, drawn. */
export interface Drawn {
  readonly step: number;
  /** Record ids, this rank's. Nobody changes them. */
  readonly ids: BigUint64Array;
  /** Where the first of them stands in the global batch. */
  readonly first: number;
}

/** More ids than this to skip are skipped off this thread: about 2 ms. */
const nearIds = 2_000_000;

export class StepPlan {
  readonly #sampler: Sampler;
  readonly #shard: CheckedShard;
  /** Records of one pass; undefined: without an end. */
  readonly #passRecords: number | undefined;
  /** The step that the next draw takes. */
  #step = 0;

  /** Owns `sampler`, which is at step 0; with `passRecords` it must be a sequential one. */
  constructor(sampler: Sampler, shard: CheckedShard, passRecords: number | undefined) {
    this.#sampler = sampler;
    this.#shard = shard;
    this.#passRecords = passRecords;
    if (shard.uneven !== 'allow') this.#assertDivides();
  }

  /**
   * Throws where there is no such step.
   *
   * @throws RangeError OUT_OF_RANGE
   */
  assertHas(step: number): void {
    if (this.#passRecords === undefined) return;
    const steps = Math.ceil(this.#passRecords / this.#sampler.batchSize);
    if (step <= steps) return;
    throw new ArgumentRangeError(
      'step',
      `step is ${step}, and the pass has ${steps} steps`,
      'OUT_OF_RANGE',
    );
  }

  /**
   * Makes `step` the next one.
   *
   * @throws LoaderxError ABORTED when `signal` ends it
   */
  async seek(step: number, signal: AbortSignal): Promise<void> {
    if (step !== this.#step) {
      const { mode, stream, batchSize } = this.#sampler;
      const isFar = mode === 'iid' && stream === '2.4' && step * batchSize > nearIds;
      if (isFar) await this.#sampler.seekAsync(step, { signal });
      else this.#sampler.seek(step);
    }
    this.#step = step;
  }

  /**
   * The next step; undefined after the last.
   *
   * @throws RangeError OUT_OF_RANGE past step 2^53 - 1
   */
  draw(): Drawn | undefined {
    const step = this.#step;
    const count = this.#countAt(step);
    if (count === 0) return undefined;
    if (!Number.isSafeInteger(step)) {
      throw new ArgumentRangeError('step', `step ${step} is beyond 2^53 - 1`, 'OUT_OF_RANGE');
    }
    const { from, to } = sliceOf(this.#shard, count);
    const ids = this.#sampler.draw().slice(from, to);
    this.#step = step + 1;
    return { step, ids, first: from };
  }

  close(): void {
    this.#sampler.close();
  }

  /** Records of the whole batch of a step. A batch that 'drop' leaves nothing of is none. */
  #countAt(step: number): number {
    const { batchSize } = this.#sampler;
    if (this.#passRecords === undefined) return batchSize;
    const count = Math.max(0, Math.min(batchSize, this.#passRecords - step * batchSize));
    return this.#shard.uneven === 'drop' && count < this.#shard.world ? 0 : count;
  }

  #assertDivides(): void {
    const { world, uneven } = this.#shard;
    const { batchSize } = this.#sampler;
    const lastCount = this.#passRecords === undefined ? 0 : this.#passRecords % batchSize;
    const counts = lastCount === 0 ? [batchSize] : [batchSize, lastCount];
    for (const count of counts) {
      if (uneven === 'error' && count % world !== 0) {
        throw new ArgumentRangeError(
          'shard',
          `a batch of ${count} records cannot be divided evenly among ${world} ranks: choose another batchSize, or uneven 'allow' or 'drop'`,
        );
      }
    }
    if (batchSize < world) {
      throw new ArgumentRangeError(
        'shard',
        `a batch of ${batchSize} records leaves nothing for ${world} ranks with uneven '${uneven}'`,
      );
    }
  }
}
