/**
 * One build, from its first append to its publication: what makes call order record order.
 *
 *     append ─▶ [ turn │ turn │ turn │ close ]      one turn works at a time
 *
 * A turn belongs to one append call. It may put several windows of records, and it is all or
 * nothing: the build is marked before the first window, and
 *
 * - an argument error later on, or the writer closed from inside the iterable, takes it back to the mark;
 * - a native failure, or an iterable that throws after its first window, poisons the build: what
 *   waits and what comes is refused with BUILD_FAILED.
 *
 * Invariant: the native store is released once, when no native call runs on it.
 */
import { AsyncLocalStorage } from 'node:async_hooks';
import { LoaderxError } from '../errors.js';
import type { Native, StoreHandle } from '../native/binding.js';
import type { Handle } from './handle.js';

/** Records for one native append. */
export interface Window {
  /** Records back to back, in memory that stays private until the append has settled. */
  readonly records: Uint8Array;
  /** Where each record ends; undefined for fixed records of `recordBytes`. */
  readonly ends: BigUint64Array | undefined;
  readonly recordCount: number;
  /** Bytes of a fixed record; 0 with `ends`. */
  readonly recordBytes: number;
}

/** Records that stay where the caller has them, for one native append of a raw build. */
export interface Pieces {
  /** The dimensions of each record as they are stored, `headerBytes` each. */
  readonly headers: Uint8Array;
  readonly headerBytes: number;
  readonly items: readonly ArrayBufferView[];
}

/** Records for one native append that lie in a file, back to back. */
export interface FileWindow {
  /** As the native side takes it. */
  readonly path: string;
  /** What messages call it. */
  readonly name: string;
  readonly offsetBytes: number;
  readonly recordCount: number;
  readonly recordBytes: number;
}

type State = 'open' | 'closing' | 'closed' | 'aborted';

export class AppendQueue {
  readonly #handle: Handle;
  #state: State = 'open';
  #length = 0;
  /** Asynchronous turns that wait or work, the publishing one included. */
  #pendingCount = 0;
  #syncRunning = false;
  #publishing = false;
  #tail: Promise<void> = Promise.resolve();
  #turn: Turn | undefined;
  #poison: { readonly cause: unknown } | undefined;
  /** Ends what a close does before it publishes. */
  #sealing: AbortController | undefined;
  #closing: Promise<void> | undefined;
  #closeFailure: { readonly error: unknown } | undefined;

  constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** Records of completed appends. */
  get length(): number {
    return this.#length;
  }

  /** Throws CLOSED or BUILD_FAILED where an append would be refused. */
  assertAccepts(): void {
    if (this.#state !== 'open') throw this.#handle.closedError();
    this.#assertSound();
  }

  /** Queues an append. `work` puts its windows through the turn and returns the record count. */
  async append(work: (turn: Turn) => Promise<number>): Promise<void> {
    this.assertAccepts();
    if (this.#turn?.isInsideAsync() === true) {
      throw this.#handle.busyError('an append cannot be made inside the iterable of another one');
    }
    await this.#queued(async () => {
      this.#assertNotAborted();
      this.#assertSound();
      const turn = new Turn(this.#handle);
      this.#turn = turn;
      try {
        const count = await work(turn);
        await turn.settle();
        this.#assertNotAborted();
        this.#length += count;
      } catch (error) {
        await turn.settleQuietly();
        this.#undo(turn, error);
        throw error;
      } finally {
        this.#turn = undefined;
        turn.end();
      }
    });
  }

  /** Appends on this thread. Throws BUSY while asynchronous appends are under way. */
  appendSync(work: (turn: Turn) => number): void {
    this.assertAccepts();
    if (this.#pendingCount > 0 || this.#syncRunning) {
      throw this.#handle.busyError('appendSync cannot overlap an append that is under way');
    }
    const turn = new Turn(this.#handle);
    this.#turn = turn;
    this.#syncRunning = true;
    try {
      const count = work(turn);
      this.#assertNotAborted();
      this.#length += count;
    } catch (error) {
      this.#undo(turn, error);
      throw error;
    } finally {
      this.#turn = undefined;
      this.#syncRunning = false;
      this.#releaseIfAborted();
    }
  }

  /**
   * Publishes after everything that is queued. Each call has the same outcome.
   *
   * @param seal looks at the complete build and gives its integrity file; undefined: it gets none
   */
  close(durable: boolean, seal?: (signal: AbortSignal) => Promise<Uint8Array>): Promise<void> {
    if (this.#closing !== undefined) return this.#closing;
    if (this.#state === 'aborted') return Promise.reject(this.#handle.closedError());
    this.#turn?.interruptIfInside(this.#handle.closedError());
    this.#state = 'closing';
    this.#closing = this.#queued(async () => {
      this.#assertNotAborted();
      this.#publishing = seal === undefined;
      try {
        this.#assertSound();
        const integrity = seal === undefined ? undefined : await this.#sealed(seal);
        this.#publishing = true;
        await this.#handle.start((native, store) => native.publish(store, durable, integrity));
      } catch (error) {
        this.#closeFailure = { error };
        throw error;
      } finally {
        this.#finish();
      }
    });
    return this.#closing;
  }

  async #sealed(seal: (signal: AbortSignal) => Promise<Uint8Array>): Promise<Uint8Array> {
    const stop = new AbortController();
    this.#sealing = stop;
    try {
      return await seal(stop.signal);
    } finally {
      this.#sealing = undefined;
      this.#assertNotAborted();
    }
  }

  /** Publishes now. Throws BUSY while asynchronous appends or a close are under way. */
  closeSync(durable: boolean, seal?: () => Uint8Array): void {
    if (this.#state === 'aborted') throw this.#handle.closedError();
    if (this.#pendingCount > 0 || this.#syncRunning) {
      throw this.#handle.busyError('closeSync cannot overlap an append or close that is under way');
    }
    if (this.#state === 'closed') {
      if (this.#closeFailure !== undefined) throw this.#closeFailure.error;
      return;
    }
    try {
      this.#assertSound();
      const integrity = seal?.();
      this.#handle.call((native, store) => native.publishSync(store, durable, integrity));
      this.#closing = Promise.resolve();
    } catch (error) {
      this.#closeFailure = { error };
      this.#closing = Promise.reject(error);
      this.#closing.catch(ignore);
      throw error;
    } finally {
      this.#finish();
    }
  }

  /** Discards the build, unless it is published or being published. */
  abort(): void {
    if (this.#state === 'closed' || this.#state === 'aborted' || this.#publishing) return;
    this.#state = 'aborted';
    this.#turn?.interrupt(this.#handle.closedError());
    this.#sealing?.abort();
    this.#releaseIfAborted();
  }

  /** What leaving a scope does: discards, unless a close was asked for. */
  dispose(): void {
    if (this.#state === 'open') this.abort();
  }

  /** As `dispose`, and waits until nothing runs. The outcome of a close is its own promise's. */
  async disposeAsync(): Promise<void> {
    this.dispose();
    await this.#closing?.catch(ignore);
    await this.#tail;
  }

  /** Runs `work` after everything that was queued before it. */
  async #queued(work: () => Promise<void>): Promise<void> {
    const before = this.#tail;
    let end: () => void = ignore;
    this.#tail = new Promise((resolve) => {
      end = resolve;
    });
    const mustWait = this.#pendingCount > 0 || this.#syncRunning;
    this.#pendingCount += 1;
    try {
      if (mustWait) await before;
      await work();
    } finally {
      this.#pendingCount -= 1;
      this.#releaseIfAborted();
      end();
    }
  }

  /** After a failed turn: back to the mark, or poison. */
  #undo(turn: Turn, error: unknown): void {
    if (turn.nativeFailure !== undefined) this.#poison = turn.nativeFailure;
    else if (turn.windowCount > 0 && turn.iterableThrew) this.#poison = { cause: error };
    else if (turn.windowCount > 0 && this.#state !== 'aborted') {
      this.#handle.call((native, store) => native.rewind(store));
    }
  }

  #assertNotAborted(): void {
    if (this.#state === 'aborted') throw this.#handle.closedError();
  }

  #assertSound(): void {
    if (this.#poison === undefined) return;
    const { path } = this.#handle;
    const { cause } = this.#poison;
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new LoaderxError(
      'BUILD_FAILED',
      `${path}: an earlier append failed, so the build cannot be published: ${reason}`,
      { path },
      { cause },
    );
  }

  #releaseIfAborted(): void {
    if (this.#state !== 'aborted' || this.#pendingCount > 0 || this.#syncRunning) return;
    this.#handle.closeSync();
  }

  #finish(): void {
    this.#state = 'closed';
    this.#publishing = false;
    this.#handle.closeSync();
  }
}

/** One append call's access to the build. */
export class Turn {
  /** Windows that were handed to the native side. */
  windowCount = 0;
  /** Set when the native side refused a window. */
  nativeFailure: { readonly cause: unknown } | undefined;
  /** Whether the caller's iterable threw. */
  iterableThrew = false;
  readonly #handle: Handle;
  #inFlight: Promise<void> | undefined;
  #interruption: Error | undefined;
  #pulling = false;
  #scope: AsyncLocalStorage<true> | undefined;
  #rejectPull: ((reason: Error) => void) | undefined;

  constructor(handle: Handle) {
    this.#handle = handle;
  }

  /** Hands a window over once the one before it is done; does not wait for this one. */
  put(window: Window): Promise<void> {
    return this.#put(() => this.#handle.start((native, store) => appendTo(native, store, window)));
  }

  /** As `put`, of records that lie in a file. Only of raw builds. */
  putFile(window: FileWindow): Promise<void> {
    const { path, name, offsetBytes, recordCount, recordBytes } = window;
    return this.#put(() =>
      this.#handle.start(
        (native, store) => native.appendFile(store, path, offsetBytes, recordCount, recordBytes),
        name,
      ),
    );
  }

  async #put(start: () => Promise<void>): Promise<void> {
    if (this.#inFlight !== undefined) await this.settle();
    this.#begin();
    this.#inFlight = start().catch((cause: unknown) => {
      this.nativeFailure = { cause };
      throw cause;
    });
    // It may fail while nobody waits for it; settle() tells.
    this.#inFlight.catch(ignore);
  }

  /** Hands a window over and waits for it on this thread. */
  putSync(window: Window): void {
    this.#begin();
    const { records, ends, recordCount, recordBytes } = window;
    try {
      this.#handle.call((native, store) =>
        native.appendSync(store, records, ends, recordCount, recordBytes),
      );
    } catch (cause) {
      this.nativeFailure = { cause };
      throw cause;
    }
  }

  /** As `putSync`, of records that are not packed. */
  putPiecesSync({ headers, headerBytes, items }: Pieces): void {
    this.#begin();
    try {
      this.#handle.call((native, store) =>
        native.appendPiecesSync(store, headers, headerBytes, items, items.length),
      );
    } catch (cause) {
      this.nativeFailure = { cause };
      throw cause;
    }
  }

  /** Waits for the window that is in flight, and throws what it failed with. */
  async settle(): Promise<void> {
    const running = this.#inFlight;
    this.#inFlight = undefined;
    await running;
  }

  /** Waits for the window that is in flight; `nativeFailure` says how it ended. */
  async settleQuietly(): Promise<void> {
    await this.#inFlight?.catch(ignore);
  }

  /** Runs a step of the caller's iterable. It may throw, or close or abort the writer. */
  pull<T>(step: () => T): T {
    this.#throwIfInterrupted();
    this.#pulling = true;
    let value: T;
    try {
      value = step();
    } catch (error) {
      this.iterableThrew = true;
      throw error;
    } finally {
      this.#pulling = false;
    }
    this.#throwIfInterrupted();
    return value;
  }

  /**
   * Runs a step of the caller's async iterable. It ends early when the writer is aborted, or closed
   * from inside: the step may itself be waiting for that.
   */
  async pullAsync<T>(step: () => Promise<T>): Promise<T> {
    this.#throwIfInterrupted();
    let value: T;
    try {
      value = await this.#waitFor(step);
    } catch (error) {
      if (this.#interruption === undefined) this.iterableThrew = true;
      throw error;
    }
    this.#throwIfInterrupted();
    return value;
  }

  /** Runs the last step of an async iterable that is left early; what it throws is ignored. */
  async leave(step: () => Promise<void>): Promise<void> {
    if (this.#interruption === undefined) await this.#waitFor(step).catch(ignore);
    // It may be in the middle of a step that waits for this turn: then nobody waits for it.
    else step().catch(ignore);
  }

  async #waitFor<T>(step: () => Promise<T>): Promise<T> {
    // Only this tells a close() inside the iterable, which would wait for itself, from one outside.
    this.#scope ??= new AsyncLocalStorage();
    const running = this.#scope.run(true, step);
    try {
      return await new Promise<T>((resolve, reject) => {
        this.#rejectPull = reject;
        running.then(resolve, reject);
        if (this.#interruption !== undefined) reject(this.#interruption);
      });
    } finally {
      this.#rejectPull = undefined;
    }
  }

  isInsideAsync(): boolean {
    return this.#scope?.getStore() === true;
  }

  /** Ends the turn at its next step when the call comes from inside the iterable it consumes. */
  interruptIfInside(reason: Error): void {
    if (this.#pulling || this.isInsideAsync()) this.interrupt(reason);
  }

  /** Ends the turn at its next step. */
  interrupt(reason: Error): void {
    this.#interruption ??= reason;
    this.#rejectPull?.(reason);
  }

  end(): void {
    this.#scope?.disable();
  }

  #begin(): void {
    this.#throwIfInterrupted();
    if (this.windowCount === 0) this.#handle.call((native, store) => native.mark(store));
    this.windowCount += 1;
  }

  #throwIfInterrupted(): void {
    if (this.#interruption !== undefined) throw this.#interruption;
  }
}

function appendTo(native: Native, store: StoreHandle, window: Window): Promise<void> {
  const { records, ends, recordCount, recordBytes } = window;
  return native.append(store, records, ends, recordCount, recordBytes);
}

function ignore(): void {}
