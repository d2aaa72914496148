/**
 * Turns of the event loop. A small gather of a container that is in memory is done before its call
 * returns; a loop that awaits nothing else would then never let the event loop turn, and timers and
 * sockets would wait for its end. So a turn has a share of such work, and the gather that uses it up is
 * answered in the next turn: a turn costs a few microseconds, a lane's answer more than most such gathers.
 * Calls beyond the share, made without waiting for any, go to lanes.
 */
import { setImmediate as nextTurn } from 'node:timers/promises';

/** A turn's share: so many gathers, and so long together. */
export const atOnceMax = 16;
const atOnceMsMax = 1;

/** Decoding this much takes some tens of microseconds. */
const smallDecodedBytes = 16 * 1024;

let doneThisTurn = 0;
let msThisTurn = 0;
/** Gathers of this thread that are not answered yet. */
let runningCount = 0;

/**
 * Runs a gather, at once where that is best.
 *
 * @param decodedBytes about how many bytes are decoded; 0 where they are copied. More than a few are decoded at once
 *   only while no other gather runs: who has several under way has work to do meanwhile
 * @param start makes the call; `atOnce`: it may be done before that returns, if it is small enough
 */
export async function gatherInTurn<T>(
  decodedBytes: number,
  start: (atOnce: boolean) => Promise<T>,
): Promise<T> {
  const atOnce = takeShare() && (decodedBytes <= smallDecodedBytes || runningCount === 0);
  runningCount += 1;
  try {
    const startMs = performance.now();
    const running = start(atOnce);
    if (atOnce) msThisTurn += performance.now() - startMs;
    const result = await running;
    if (isUsedUp()) await nextTurn();
    return result;
  } finally {
    runningCount -= 1;
  }
}

/** May one more call be done at once in this turn of the event loop? Counts it. */
export function takeShare(): boolean {
  if (doneThisTurn === 0) setImmediate(beginTurn).unref();
  const isLeft = !isUsedUp();
  doneThisTurn += 1;
  return isLeft;
}

function isUsedUp(): boolean {
  return doneThisTurn >= atOnceMax || msThisTurn >= atOnceMsMax;
}

function beginTurn(): void {
  doneThisTurn = 0;
  msThisTurn = 0;
}
