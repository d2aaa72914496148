/**
 * One native store and the calls on it.
 *
 *     open ── close() ──▶ closing ── last call ends ──▶ closed
 *       └──────────── closeSync(), nothing running ──────▶
 *
 * Invariant: the native store is closed once, and only while no call on it runs. Every native
 * failure leaves here as a `LoaderxError` that names the container.
 */
import { fromNative, LoaderxError } from '../errors.js';
import type { Native, StoreHandle } from '../native/binding.js';

export class Handle {
  readonly native: Native;
  /** The container, as the caller named it. */
  readonly path: string;
  readonly #store: StoreHandle;
  readonly #noun: 'reader' | 'writer';
  readonly #parts: readonly string[] | undefined;
  #state: 'open' | 'closing' | 'closed' = 'open';
  #runningCount = 0;
  #onIdle: (() => void) | undefined;
  #closing: Promise<void> | undefined;

  /** `parts`: the paths of joined containers, which failures in them name. */
  constructor(
    native: Native,
    store: StoreHandle,
    path: string,
    noun: 'reader' | 'writer',
    parts?: readonly string[],
  ) {
    this.native = native;
    this.path = path;
    this.#store = store;
    this.#noun = noun;
    this.#parts = parts;
  }

  /** Calls in flight. */
  get runningCount(): number {
    return this.#runningCount;
  }

  /** Throws CLOSED once a close was asked for. */
  assertOpen(): void {
    if (this.#state !== 'open') throw this.closedError();
  }

  closedError(): LoaderxError {
    return new LoaderxError('CLOSED', `${this.path}: the ${this.#noun} is closed`, {
      path: this.path,
    });
  }

  busyError(what: string): LoaderxError {
    return new LoaderxError('BUSY', `${this.path}: ${what}`, { path: this.path });
  }

  /** A call that ends before it returns. Throws CLOSED: a caller's getter may have closed it. */
  call<T>(run: (native: Native, store: StoreHandle) => T): T {
    this.assertOpen();
    try {
      return run(this.native, this.#store);
    } catch (error) {
      throw fromNative(error, this.path, this.#parts);
    }
  }

  /**
   * A call that runs on; the store outlives it. Rejects with CLOSED as `call`.
   *
   * @param source the file that the call takes records from, which failures of it name
   */
  async start<T>(
    run: (native: Native, store: StoreHandle) => Promise<T> | T,
    source?: string,
  ): Promise<T> {
    this.assertOpen();
    this.#runningCount += 1;
    try {
      return await run(this.native, this.#store);
    } catch (error) {
      throw fromNative(error, this.path, this.#parts, source);
    } finally {
      this.#runningCount -= 1;
      if (this.#runningCount === 0) this.#onIdle?.();
    }
  }

  /** Refuses new calls at once; resolves when the running ones have ended and the store is closed. */
  close(): Promise<void> {
    this.#closing ??= this.#closeWhenIdle();
    return this.#closing;
  }

  async #closeWhenIdle(): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'closing';
    if (this.#runningCount > 0) {
      await new Promise<void>((resolve) => {
        this.#onIdle = resolve;
      });
    }
    this.#release();
  }

  /** Closes now. Throws BUSY while calls run. */
  closeSync(): void {
    if (this.#state === 'closed') return;
    if (this.#runningCount > 0) {
      throw this.busyError(
        `the ${this.#noun} cannot be closed at once while ${this.#runningCount} calls run; await close()`,
      );
    }
    this.#release();
  }

  #release(): void {
    this.#state = 'closed';
    try {
      this.native.closeSync(this.#store);
    } catch (error) {
      throw fromNative(error, this.path, this.#parts);
    }
  }
}
