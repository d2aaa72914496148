/**
 * How many pictures are decoded at one time: enough for all cores, and not more than memory is set aside
 * for. What is decoded counts until it is written.
 */
import { availableParallelism } from 'node:os';

/** Decoded bytes in flight, over all columns; a picture that is larger goes alone. */
const bytesMax = 64 * 2 ** 20;
/** A picture waits for its thread, its pixels, and those before it: several for each core. */
const picturesMax = Math.max(8, 4 * availableParallelism());

interface Waiter {
  readonly bytes: number;
  readonly go: () => void;
}

let bytesOut = 0;
let picturesOut = 0;
const waiting: Waiter[] = [];

/** Waits until there is room for a picture of `bytes`. First come, first served. */
async function takeRoom(bytes: number): Promise<void> {
  if (waiting.length > 0 || !hasRoom(bytes)) {
    await new Promise<void>((go) => {
      waiting.push({ bytes, go });
    });
    return;
  }
  count(bytes);
}

/** Gives back what `takeRoom` took. */
function giveRoom(bytes: number): void {
  bytesOut -= bytes;
  picturesOut -= 1;
  for (let next = waiting[0]; next !== undefined && hasRoom(next.bytes); next = waiting[0]) {
    waiting.shift();
    count(next.bytes);
    next.go();
  }
}

function hasRoom(bytes: number): boolean {
  return picturesOut === 0 || (picturesOut < picturesMax && bytesOut + bytes <= bytesMax);
}

function count(bytes: number): void {
  bytesOut += bytes;
  picturesOut += 1;
}

/** One job, and the bytes of its result. */
export interface Job<Result> {
  readonly bytes: number;
  readonly run: () => Promise<Result>;
}

/**
 * The results of jobs in their order, some of them begun ahead. A result holds its room until the next one is
 * asked for. When the consumer leaves, what runs is waited for, and nothing more is begun.
 *
 * @param prepare tells the job of each input; what it throws is thrown in its turn
 */
export async function* inOrder<Input, Result>(
  inputs: readonly Input[],
  prepare: (input: Input, index: number) => Job<Result>,
): AsyncGenerator<Result, void, undefined> {
  const running: Promise<{ readonly result: Result; readonly bytes: number }>[] = [];
  let isLeft = false;
  const begin = async (input: Input, index: number) => {
    const { bytes, run } = prepare(input, index);
    await takeRoom(bytes);
    try {
      if (isLeft) throw new Error('nobody waits for it any more');
      return { result: await run(), bytes };
    } catch (error) {
      giveRoom(bytes);
      throw error;
    }
  };
  let begun = 0;
  try {
    for (const _ of inputs) {
      for (; begun < inputs.length && running.length < picturesMax; begun += 1) {
        const job = begin(inputs[begun] as Input, begun);
        // It may fail before its turn.
        job.catch(ignore);
        running.push(job);
      }
      const next = running.shift();
      if (next === undefined) return;
      const { result, bytes } = await next;
      try {
        yield result;
      } finally {
        giveRoom(bytes);
      }
    }
  } finally {
    isLeft = true;
    for (const job of running) await job.then(({ bytes }) => giveRoom(bytes), ignore);
  }
}

function ignore(): void {}
