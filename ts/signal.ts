/**
 * `AbortSignal`s: the checked option, and one listener for everything that waits.
 */
import { ArgumentTypeError, LoaderxError, show } from './errors.js';

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

/** What waits for a signal: one listener for all, since Node takes many on one signal for a leak. */
interface Waiting {
  readonly acts: Set<() => void>;
  readonly listener: () => void;
}

const waiting = new WeakMap<AbortSignal, Waiting>();

/** Calls `act` once the signal says so; what is returned takes that back. */
export function onAbort(signal: AbortSignal, act: () => void): () => void {
  const { acts, listener } = waiting.get(signal) ?? listenTo(signal);
  acts.add(act);
  return () => {
    acts.delete(act);
    if (acts.size > 0) return;
    signal.removeEventListener('abort', listener);
    waiting.delete(signal);
  };
}

function listenTo(signal: AbortSignal): Waiting {
  const acts = new Set<() => void>();
  const listener = (): void => {
    for (const act of [...acts]) act();
  };
  signal.addEventListener('abort', listener, { once: true });
  const made = { acts, listener };
  waiting.set(signal, made);
  return made;
}

/** What long work on a path rejects with that its signal has ended. */
export function givenUp(path: string, signal: AbortSignal | undefined): LoaderxError {
  const cause: unknown = signal?.reason;
  return new LoaderxError('ABORTED', `${path}: given up`, { path }, { cause });
}

/**
 * Does work on a path that looks at the signal itself; whatever it rejects with after the signal has ended is
 * ABORTED.
 */
export async function unlessGivenUp<T>(
  path: string,
  signal: AbortSignal | undefined,
  work: () => Promise<T>,
): Promise<T> {
  if (isAborted(signal)) throw givenUp(path, signal);
  try {
    return await work();
  } catch (error) {
    throw isAborted(signal) ? givenUp(path, signal) : error;
  }
}

/** A call, since the compiler takes for certain what it has seen of `aborted` before. */
export function isAborted(signal: AbortSignal | undefined): boolean {
  return signal?.aborted === true;
}
