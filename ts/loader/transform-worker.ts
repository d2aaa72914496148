/**
 * A thread of a transform pool: the entry that `transform-pool.ts` starts.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { LoaderxError } from '../errors.js';
import { memoryOf, spareMemory } from '../store/hand-over.js';
import type { Batch } from './batch.js';
import {
  type Packed,
  type PackedThrown,
  type Parcel,
  pack,
  packThrown,
  unpack,
} from './crossing.js';
import { rngOf } from './rng.js';
import { loadTransform, type TransformFunction } from './transform-module.js';

/** What a worker is told once. */
export interface WorkerSettings {
  readonly href: string;
  readonly seed: bigint;
}

/** What a worker is asked: one batch, and then, perhaps, to give it up. */
export type WorkerRequest =
  | {
      readonly kind: 'run';
      readonly packed: Packed;
      readonly step: number;
      /** Where the first record stands in the global batch. */
      readonly first: number;
      /** Records of the batch. */
      readonly count: number;
    }
  | { readonly kind: 'abort' };

/** What a worker says, once, and answers. `memory` is for whoever can use it. */
export type WorkerAnswer =
  | { readonly kind: 'loaded' }
  | { readonly kind: 'done'; readonly packed: Packed; readonly memory: readonly ArrayBuffer[] }
  | {
      readonly kind: 'failed';
      readonly thrown: PackedThrown;
      readonly memory: readonly ArrayBuffer[];
    };

const { href, seed } = workerData as WorkerSettings;
const subject = `the transform of ${href}`;
let current: AbortController | undefined;

if (parentPort === null) throw new LoaderxError('UNEXPECTED', 'this module is a thread of a pool');
const port = parentPort;
port.on('message', (request: WorkerRequest) => {
  if (request.kind === 'abort') {
    current?.abort(new LoaderxError('ABORTED', 'the batch is not wanted any more'));
    return;
  }
  void run(request);
});

const loading: Promise<TransformFunction> = loadTransform(href);
loading.then(
  () => post({ kind: 'loaded' }, []),
  // The batch that wants it is told why.
  () => post({ kind: 'loaded' }, []),
);

async function run(request: Extract<WorkerRequest, { readonly kind: 'run' }>): Promise<void> {
  const { packed, step, first, count } = request;
  const controller = new AbortController();
  current = controller;
  const batch = unpack(packed);
  // Taken before the transform sees it: afterwards the batch may hold something else.
  const lent = memoryOfBatch(batch);
  try {
    const transform = await loading;
    // Given up before it began: a transform that only listens for it would never hear of it.
    if (controller.signal.aborted) throw controller.signal.reason;
    const rng = rngOf(seed, step, first, count);
    const result = await transform(batch, { step, rng, signal: controller.signal });
    answer(pack(result), lent);
  } catch (error) {
    // Whatever the transform still does with the batch, its memory stays here.
    post({ kind: 'failed', thrown: packThrown(error, subject), memory: [] }, []);
  }
}

/** The memory of the streams' items. */
function memoryOfBatch(batch: unknown): ReadonlySet<ArrayBuffer> {
  const found = new Set<ArrayBuffer>();
  for (const value of Object.values(batch as Batch)) {
    const memory = memoryOf(value);
    if (memory instanceof ArrayBuffer) found.add(memory);
  }
  return found;
}

function answer(parcel: Parcel, lent: ReadonlySet<ArrayBuffer>): void {
  const { packed, memory, pooled } = parcel;
  for (const buffer of memory) {
    if (!isDetached(buffer)) continue;
    throw new LoaderxError(
      'TRANSFORM',
      `${subject} returned memory that it no longer has: it was disposed of, or went with an earlier result. Return a copy of what the module keeps`,
      { field: 'transform' },
    );
  }
  const spare = [...lent, ...spareMemory()].filter(
    (buffer) => buffer.byteLength > 0 && !memory.has(buffer),
  );
  const moved = [...memory].filter((buffer) => lent.has(buffer) || !pooled.has(buffer));
  try {
    post({ kind: 'done', packed, memory: spare }, [...moved, ...spare]);
  } catch {
    try {
      // Some memory cannot be moved, such as that of WebAssembly: it is copied.
      post({ kind: 'done', packed, memory: [] }, []);
    } catch (cause) {
      const why = cause instanceof Error ? cause.message : String(cause);
      throw new LoaderxError(
        'TRANSFORM',
        `what ${subject} returned cannot be handed to another thread: ${why}`,
        { field: 'transform' },
        { cause },
      );
    }
  }
}

/** Node 20 has no `detached`, but refuses a view of such memory. */
function isDetached(buffer: ArrayBuffer): boolean {
  if (buffer.byteLength > 0) return false;
  try {
    return new Uint8Array(buffer).length > 0;
  } catch {
    return true;
  }
}

function post(message: WorkerAnswer, transfer: readonly ArrayBuffer[]): void {
  port.postMessage(message, transfer);
}
