/**
 * An `AbortSignal` as the native side sees it: a word of memory that becomes 1, which running lanes
 * look at between records.
 */
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';

/** The checked `signal` of an options object. */
export function signalOf(signal: unknown): AbortSignal | undefined {
  if (signal === undefined) return undefined;
  const candidate = signal as Partial<AbortSignal> | null;
  if (
    typeof candidate === 'object' &&
    candidate !== null &&
    typeof candidate.aborted === 'boolean' &&
    typeof candidate.addEventListener === 'function' &&
    typeof candidate.removeEventListener === 'function'
  ) {
    return candidate as AbortSignal;
  }
  throw new ArgumentTypeError('signal', `signal must be an AbortSignal, got ${show(signal)}`);
}

/**
 * Runs native work that `signal` can end.
 *
 * The promise settles when the native work has ended, never before, so its memory is free then.
 *
 * @param subject what messages call the work
 * @param run gets the cancel word, or undefined without a signal
 * @param discard gives back what `run` made when the signal came too late to stop it; without it
 *   such a result is returned, since the work is done
 * @throws LoaderxError ABORTED with the signal's reason as `cause`
 */
export async function cancellable<T>(
  signal: AbortSignal | undefined,
  subject: string,
  run: (cancel: Uint32Array | undefined) => Promise<T>,
  discard?: (result: T) => void,
): Promise<T> {
  if (signal === undefined) return run(undefined);
  if (signal.aborted) throw abortedError(signal, subject);
  const cancel = new Uint32Array(1);
  const onAbort = (): void => {
    Atomics.store(cancel, 0, 1);
  };
  signal.addEventListener('abort', onAbort, { once: true });
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
    signal.removeEventListener('abort', onAbort);
  }
}

function abortedError(signal: AbortSignal, subject: string): LoaderxError {
  return new LoaderxError('ABORTED', `${subject} was aborted`, {}, { cause: signal.reason });
}
