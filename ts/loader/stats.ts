/**
 * Where the time went.
 *
 * Stages of different batches overlap, so their times cannot add up to the clock on the wall. What
 * does is this: each moment is counted once, by what keeps the consumer from having its batch.
 *
 *     the consumer has a batch, and works          consumer
 *     it waits, and its batch is being gathered    gather
 *     … or transformed, or waits for its turn      transform
 *     … or is in no stage: a seek, a byte budget   data
 *     this thread draws, starts a gather or runs   draw, gather, transform: nobody else runs then
 *     a transform function
 */

/** What a moment is counted as. */
export type Stage = 'draw' | 'gather' | 'transform' | 'consumer' | 'data';

/** Milliseconds by stage. */
export type StageTimes = { readonly [Name in Stage]: number };

export class StageClock {
  readonly #totals: { -readonly [Name in Stage]: number } = {
    draw: 0,
    gather: 0,
    transform: 0,
    consumer: 0,
    data: 0,
  };
  #elapsedMs = 0;
  #startedMs = 0;
  #stage: Stage | undefined;
  #sinceMs = 0;

  /** What is going on from now on; undefined: nothing that counts. */
  switchTo(stage: Stage | undefined): void {
    if (stage === this.#stage) return;
    const nowMs = performance.now();
    if (this.#stage === undefined) this.#startedMs = nowMs;
    else this.#totals[this.#stage] += nowMs - this.#sinceMs;
    if (stage === undefined) this.#elapsedMs += nowMs - this.#startedMs;
    this.#stage = stage;
    this.#sinceMs = nowMs;
  }

  /** Times so far, and the wall time they are of. */
  read(): { readonly elapsedMs: number; readonly times: StageTimes } {
    const times = { ...this.#totals };
    if (this.#stage === undefined) return { elapsedMs: this.#elapsedMs, times };
    const nowMs = performance.now();
    times[this.#stage] += nowMs - this.#sinceMs;
    return { elapsedMs: this.#elapsedMs + nowMs - this.#startedMs, times };
  }
}
