// The long forms of the tests are for a machine that does nothing else: only there may a clock decide.

/** LOADERX_FULL=1: many more cases, and the figures that are promised. */
export const isFull = process.env.LOADERX_FULL === '1';

const hangMs = 60_000;

/**
 * How long something may take: what is promised, in a long form; in `npm test`, on a machine that may be
 * busy, so long that it hangs.
 */
export function limitMs(promisedMs: number): number {
  return isFull ? promisedMs : hangMs;
}
