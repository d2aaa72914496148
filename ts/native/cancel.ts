/**
 * An `AbortSignal` as the native side sees it: a word of memory that becomes 1, which running lanes
 * look at between records.
 */
import { LoaderxError } from '../errors.js';
import { onAbort } from '../signal.js';

/** What was given up, as messages call it. */
export interface Subject {
  readonly path?: string;
  readonly what: string;
}

/**
 * Runs native work that `signal` can end.
 *
 * The promise settles when the native work has ended, never before, so its memory is free then.
 *
 * @param subject the work, and the container that it is about
 * @param run gets the cancel word, or undefined without a signal
 * @param discard gives back what `run` made when the signal came too late to stop it; without it
 *   such a result is returned, since the work is done
 * @throws LoaderxError ABORTED with the signal's reason as `cause`
 */
export async function cancellable<T>(
  signal: AbortSignal | undefined,
  subject: Subject,
  run: (cancel: Uint32Array | undefined) => Promise<T>,
  discard?: (result: T) => void,
): Promise<T> {
  if (signal === undefined) return run(undefined);
  if (signal.aborted) throw abortedError(signal, subject);
  const cancel = new Uint32Array(1);
  const forget = onAbort(signal, () => Atomics.store(cancel, 0, 1));
  try {
    const result = await run(cancel);
    if (!signal.aborted || discard === undefined) return result;
    discard(result);
    throw abortedError(signal, subject);
  } catch (error) {
    if (error instanceof LoaderxError && error.code === 'ABORTED') {
      throw abortedError(signal, subject);
    }
    throw error;
  } finally {
    forget();
  }
}

/** The error of work that was given up; the signal's reason is its cause. */
export function abortedError(signal: AbortSignal, { path, what }: Subject): LoaderxError {
  const place = path === undefined ? {} : { path };
  const said = path === undefined ? what : `${path}: ${what}`;
  return new LoaderxError('ABORTED', `${said} was aborted`, place, { cause: signal.reason });
}
