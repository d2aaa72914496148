/**
 * How much of an asynchronous append is written at once, on the caller's thread.
 *
 * Raw records are written straight from the caller's memory as long as the system takes a slice of them at the speed of
 * memory: a copy would cost as much. Once it waits for the disk, lanes wait instead.
 */
import { setTimeout } from 'node:timers/promises';
import type { Turn } from './append-queue.js';

/** Bytes of one slice of an asynchronous append; of a staged one, one record at least. */
export const sliceBytes = 8 * 1024 * 1024;
const atOnceMsMax = 8;
/** Each slice begins and ends with one lane alone, so they double while the next would take half of that time. */
const atOnceBytesMax = 4 * sliceBytes;

/**
 * Lets lanes begin what was just handed over, until they are done at the latest: where a test has replaced timers,
 * that is all there is to wait for. A lane that this thread wakes is put on this thread's processor by the
 * system, and waits there while this thread copies the next slice: the other lane has nothing to do all that time.
 */
export function letLanesBegin(turn: Turn): Promise<void> {
  return Promise.race([setTimeout(1), turn.settleQuietly()]);
}

export class Pace {
  #bytesMax = sliceBytes;

  /** What the next slice may have. */
  get bytesMax(): number {
    return this.#bytesMax;
  }

  /** Writes a slice. False: it took too long, and the rest is for lanes. */
  run(write: () => void): boolean {
    const startMs = performance.now();
    write();
    const ms = performance.now() - startMs;
    if (this.#bytesMax < atOnceBytesMax && ms * 4 <= atOnceMsMax) this.#bytesMax *= 2;
    return ms <= atOnceMsMax;
  }
}
