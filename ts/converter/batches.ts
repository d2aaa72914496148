/**
 * The batches of a dataset, one by one. A dataset may be anybody's: what it gives is checked, what it throws
 * is passed on, and nothing that never settles keeps a conversion that was given up.
 */
import { LoaderxError, show } from '../errors.js';
import { onAbort } from '../signal.js';
import type { BatchOptions, Dataset, RowBatch } from './dataset.js';

/**
 * How long one that was told to end may take to: long enough to close its files, so that nothing of it runs any
 * more when the conversion rejects. One that does not heed the signal is left behind.
 */
const leaveMs = 1000;

/**
 * Gives what the dataset gives. Ends it when it is left early, and when the signal says so.
 *
 * @throws what the dataset throws; LoaderxError SOURCE where it gives no iterable, or something else than batches;
 *   the reason of the signal
 */
export async function* batchesOf(
  dataset: Dataset,
  request: BatchOptions,
): AsyncGenerator<RowBatch, void, undefined> {
  const { signal } = request;
  signal?.throwIfAborted();
  const iterator = iteratorOf(attempt(() => dataset.batches(request)));
  /** Whether it is owed a `return()`. */
  let isOpen = true;
  try {
    for (;;) {
      // An iterable that throws is owed nothing more; one that was left behind is told, and not waited for.
      isOpen = false;
      const step: unknown = await orGivenUp(
        attemptAsync(() => iterator.next()),
        signal,
        () => attemptAsync(() => iterator.return?.()).catch(ignore),
      );
      isOpen = true;
      if (typeof step !== 'object' || step === null) {
        throw new LoaderxError(
          'SOURCE',
          `a step of batches() must be an object, got ${show(step)}`,
        );
      }
      const { done, value } = attempt(() => {
        const { done: isDone, value: given } = step as Partial<Record<'done' | 'value', unknown>>;
        return { done: isDone, value: given };
      });
      if (done) {
        isOpen = false;
        return;
      }
      // The rest of it is checked by those who know the columns.
      yield value as RowBatch;
    }
  } finally {
    // All rows are there, or none are wanted any more: what it throws or waits for now is its own affair.
    if (isOpen) await soon(attemptAsync(() => iterator.return?.()));
  }
}

interface AnyIterator {
  next(): unknown;
  return?(): unknown;
}

function iteratorOf(batches: unknown): AnyIterator {
  const source = (batches ?? {}) as Partial<AsyncIterable<unknown> & Iterable<unknown>>;
  const open: unknown = source[Symbol.asyncIterator] ?? source[Symbol.iterator];
  const iterator: unknown =
    typeof open === 'function' ? attempt(() => (open as () => unknown).call(source)) : undefined;
  if (typeof (iterator as Partial<AnyIterator> | null | undefined)?.next === 'function') {
    return iterator as AnyIterator;
  }
  throw new LoaderxError(
    'SOURCE',
    `batches() of a dataset must give an async iterable of batches, got ${show(batches)}`,
  );
}

/**
 * As the promise; rejects when the signal has ended and the promise does not settle soon after.
 *
 * @param left is called then
 */
function orGivenUp<T>(
  promise: Promise<T>,
  signal: AbortSignal | undefined,
  left: () => unknown,
): Promise<T> {
  if (signal === undefined) return promise;
  return new Promise((resolve, reject) => {
    let timer: NodeJS.Timeout | undefined;
    const leave = (): void => {
      timer = setTimeout(() => {
        reject(signal.reason);
        left();
      }, leaveMs);
    };
    const forget = signal.aborted ? ignore : onAbort(signal, leave);
    if (signal.aborted) leave();
    promise.then(resolve, reject).finally(() => {
      forget();
      clearTimeout(timer);
    });
  });
}

/** Waits for it, but not for ever. */
async function soon(promise: Promise<unknown>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise((resolve) => {
    timer = setTimeout(resolve, leaveMs);
  });
  await Promise.race([promise.catch(ignore), late]);
  clearTimeout(timer);
}

/** What is thrown may be anything; an error has a message. */
function attempt<T>(step: () => T): T {
  try {
    return step();
  } catch (thrown) {
    throw asError(thrown);
  }
}

async function attemptAsync(step: () => unknown): Promise<unknown> {
  try {
    return await step();
  } catch (thrown) {
    throw asError(thrown);
  }
}

/** What came out of a dataset as an error; what is none becomes one of SOURCE. */
export function asError(thrown: unknown): unknown {
  if (typeof thrown === 'object' && thrown !== null) return thrown;
  return new LoaderxError('SOURCE', `the dataset threw ${show(thrown)}`, {}, { cause: thrown });
}

function ignore(): void {}
