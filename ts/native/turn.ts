/**
 * Turns of the event loop. A small gather of a container that is in memory is done before its call
 * returns; a loop that awaits nothing else would then never let the event loop turn, and timers and
 * sockets would wait for its end. So only so many are done within one turn; the next ones go to a lane,
 * whose answer comes in a later turn.
 */

/** Each takes some tens of microseconds: a millisecond or so together. */
export const atOnceMax = 16;

let doneThisTurn = 0;

/** May one more call be done at once in this turn of the event loop? Counts it. */
export function mayRunAtOnce(): boolean {
  if (doneThisTurn === 0) setImmediate(beginTurn).unref();
  doneThisTurn += 1;
  return doneThisTurn <= atOnceMax;
}

function beginTurn(): void {
  doneThisTurn = 0;
}
