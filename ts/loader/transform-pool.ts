/**
 * Transforms on threads of their own, for work that would keep the event loop busy.
 *
 *     this thread   batch ──memory moved──▶  worker   await module.default(batch, context)
 *                   result ◀──memory moved──          and what memory of the batch is left over
 *
 * A worker has one batch at a time. Workers are made when they are first needed, and keep the
 * process alive only while a consumer waits. A worker that dies takes its batch with it: that batch
 * fails with what killed the worker.
 */
import { Worker } from 'node:worker_threads';
import { LoaderxError } from '../errors.js';
import { takeBack } from '../store/hand-over.js';
import type { Abort } from './abort.js';
import type { Batch } from './batch.js';
import { pack, unpack, unpackThrown } from './crossing.js';
import type { Drawn } from './plan.js';
import type { Transformer } from './transform.js';
import type { WorkerAnswer, WorkerRequest, WorkerSettings } from './transform-worker.js';

interface Task {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** One thread. */
interface Member {
  readonly worker: Worker;
  /** Resolves when its modules are loaded, or it is gone. */
  readonly settled: Promise<void>;
  readonly settle: () => void;
  task: Task | undefined;
}

/** How long a worker that ends is given to load its modules. */
const loadMsMax = 1000;

export class TransformPool implements Transformer {
  readonly countMax: number;
  readonly isOnDemand = false;
  readonly #settings: WorkerSettings;
  readonly #onBack: (result: unknown) => void;
  #members: Member[] = [];
  #isWaitedFor = false;
  /** Of a worker that died without a batch; the next batch is told. */
  #trouble: { readonly error: unknown } | undefined;

  /**
   * @param module its default export is the transform
   * @param workers threads at the most, 1 or more
   * @param onBack is told each result when it has come back
   */
  constructor(module: URL, workers: number, seed: bigint, onBack: (result: unknown) => void) {
    this.countMax = workers;
    this.#onBack = onBack;
    this.#settings = { href: module.href, seed };
  }

  /** Batches whose memory is on another thread. */
  get awayCount(): number {
    return this.#members.filter(({ task }) => task !== undefined).length;
  }

  run(batch: Batch, drawn: Drawn, abort: Abort): Promise<unknown> {
    const trouble = this.#trouble;
    this.#trouble = undefined;
    if (trouble !== undefined) return Promise.reject(trouble.error);
    const member = this.#members.find(({ task }) => task === undefined) ?? this.#hire();
    return new Promise((resolve, reject) => {
      const { packed, memory } = pack(batch);
      const { step, first, ids } = drawn;
      const request: WorkerRequest = { kind: 'run', packed, step, first, count: ids.length };
      member.worker.postMessage(request, [...memory]);
      member.task = { resolve, reject };
      abort.onAbort(() => {
        const stop: WorkerRequest = { kind: 'abort' };
        member.worker.postMessage(stop);
      });
    }).finally(() => abort.onAbort(undefined));
  }

  hold(isWaitedFor: boolean): void {
    this.#isWaitedFor = isWaitedFor;
    for (const { worker } of this.#members) {
      if (isWaitedFor) worker.ref();
      else worker.unref();
    }
  }

  async stop(): Promise<void> {
    const members = this.#members;
    this.#members = [];
    this.#trouble = undefined;
    await Promise.all(
      members.map(async (member) => {
        // The caller waits for the end of the thread, so the process does too.
        member.worker.ref();
        // Node leaves the file open that a thread was reading when it was terminated.
        await beforeLong(member.settled);
        await member.worker.terminate();
        member.task?.reject(this.#gone('was stopped'));
        member.task = undefined;
      }),
    );
  }

  isInside(): boolean {
    return false;
  }

  #hire(): Member {
    const worker = new Worker(new URL('./transform-worker.js', import.meta.url), {
      workerData: this.#settings,
      name: 'loaderx transform',
      ...workerFlags(),
    });
    const member = memberOf(worker);
    worker.on('message', (answer: WorkerAnswer) => this.#answered(member, answer));
    worker.on('messageerror', (cause: unknown) => {
      this.#lose(member, this.#gone('sent what cannot be received here', cause));
    });
    worker.on('error', (error: unknown) => this.#lose(member, error));
    worker.on('exit', (code) => this.#lose(member, this.#gone(`ended with exit code ${code}`)));
    if (!this.#isWaitedFor) worker.unref();
    this.#members.push(member);
    return member;
  }

  #answered(member: Member, answer: WorkerAnswer): void {
    if (answer.kind === 'loaded') {
      member.settle();
      return;
    }
    takeBack(answer.memory);
    const { task } = member;
    member.task = undefined;
    if (answer.kind === 'failed') {
      task?.reject(unpackThrown(answer.thrown));
      return;
    }
    try {
      const result = unpack(answer.packed);
      this.#onBack(result);
      task?.resolve(result);
    } catch (error) {
      task?.reject(error);
    }
  }

  /** A worker that is of no use any more. The first reason counts. */
  #lose(member: Member, error: unknown): void {
    member.settle();
    const index = this.#members.indexOf(member);
    if (index < 0) return;
    this.#members.splice(index, 1);
    const { task } = member;
    member.task = undefined;
    if (task === undefined) this.#trouble = { error };
    else task.reject(error);
    void member.worker.terminate();
  }

  #gone(how: string, cause?: unknown): LoaderxError {
    return new LoaderxError(
      'TRANSFORM',
      `the worker of the transform module ${this.#settings.href} ${how}`,
      { field: 'transform' },
      cause === undefined ? undefined : { cause },
    );
  }
}

/**
 * Workers inherit the flags of node. One of them, for programs that come as text (`node -e`), is
 * refused for a worker that comes from a file.
 */
function workerFlags(): { execArgv?: string[] } {
  const isText = process.execArgv.some((flag) => flag.startsWith('--input-type'));
  return isText ? { execArgv: [] } : {};
}

function memberOf(worker: Worker): Member {
  let settle: () => void = () => {};
  const settled = new Promise<void>((resolve) => {
    settle = resolve;
  });
  return { worker, settled, settle, task: undefined };
}

/** Waits for `promise`, but not beyond {@link loadMsMax}. */
async function beforeLong(promise: Promise<void>): Promise<void> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, loadMsMax);
  });
  await Promise.race([promise, late]);
  clearTimeout(timer);
}
