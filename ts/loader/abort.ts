/**
 * How a step's work ends before its time, and what its error is given to say.
 */
import { LoaderxError } from '../errors.js';

/** Tells the work of one step that nobody wants it any more. */
export class Abort {
  /** Element 0 becomes 1. */
  readonly cancel = new Uint32Array(1);
  readonly #step: number;
  #isAborted = false;
  #controller: AbortController | undefined;
  #onAbort: (() => void) | undefined;

  constructor(step: number) {
    this.#step = step;
  }

  get isAborted(): boolean {
    return this.#isAborted;
  }

  /** Made where it is asked for. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#isAborted) this.#tell();
    }
    return this.#controller.signal;
  }

  /** Calls `act` on abort, at once if it was; one at a time. */
  onAbort(act: (() => void) | undefined): void {
    this.#onAbort = act;
    if (this.#isAborted) act?.();
  }

  abort(): void {
    if (this.#isAborted) return;
    this.#isAborted = true;
    Atomics.store(this.cancel, 0, 1);
    this.#tell();
    this.#onAbort?.();
  }

  #tell(): void {
    this.#controller?.abort(
      new LoaderxError('ABORTED', `step ${this.#step} is not wanted any more`),
    );
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
