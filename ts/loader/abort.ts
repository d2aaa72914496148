/**
 * How a step's work ends before its time, and what its error is given to say.
 */
import { LoaderxError } from '../errors.js';

/** Tells the work of one step that nobody wants it any more. */
export class Abort {
  /** Element 0 becomes 1. */
  readonly cancel = new Uint32Array(1);
  readonly #step: number;
  #reason: LoaderxError | undefined;
  #controller: AbortController | undefined;
  #onAbort: (() => void) | undefined;

  constructor(step: number) {
    this.#step = step;
  }

  get isAborted(): boolean {
    return this.#reason !== undefined;
  }

  /** Made where it is asked for. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** Calls `act` on abort, at once if it was; one at a time. */
  onAbort(act: (() => void) | undefined): void {
    this.#onAbort = act;
    if (this.isAborted) act?.();
  }

  abort(): void {
    if (this.isAborted) return;
    this.#reason = new LoaderxError('ABORTED', `step ${this.#step} is not wanted any more`);
    Atomics.store(this.cancel, 0, 1);
    this.#controller?.abort(this.#reason);
    this.#onAbort?.();
  }
}

/**
 * Notes the step on an error that is an object, under a name of its own and out of sight. What
 * cannot take it (a string, a frozen object) stays as it is.
 */
export function attachStep(error: unknown, step: number): void {
  if ((typeof error !== 'object' && typeof error !== 'function') || error === null) return;
  try {
    Reflect.defineProperty(error, 'loaderxStep', {
      value: step,
      enumerable: false,
      configurable: true,
      writable: true,
    });
  } catch {
    // A proxy may refuse by throwing.
  }
}
