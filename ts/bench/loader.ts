/** How fast a loader gives batches here and now, and what waits for what. */
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import { longFields, longWorkOf } from '../inspect/settings.js';
import { DataLoader, type LoaderStats } from '../loader/data-loader.js';
import { givenUp } from '../signal.js';
import type { DenseReader, RaggedReader } from '../store/capability.js';
import { knownFields } from '../store/fields.js';
import { open } from '../store/open.js';
import { type BenchOptions, benchNumbers, type ProcessMemory, processMemory } from './container.js';

/** What is measured, and for how long: from the first batch that is asked for. */
export interface LoaderBenchOptions extends BenchOptions {
  /** Batches drawn and not yet delivered, 1 or more; 4 unless given. */
  readonly prefetch?: number | undefined;
}

/** What {@link benchLoader} measured. */
export interface LoaderBenchResult {
  /** The containers, as they were named. */
  readonly paths: readonly string[];
  /** Records of a batch, of each container. */
  readonly batchSize: number;
  /** The seed that the ids were of. */
  readonly seed: number;
  /** Milliseconds until the first batch came; the containers were open then. */
  readonly firstBatchMs: number;
  /** Batches that came: one has the records of all containers. */
  readonly batchesPerSecond: number;
  /** Ids in a second: a record of each container counts as one. */
  readonly recordsPerSecond: number;
  /** Bytes of items in a second, of all containers; those gathered ahead count too. */
  readonly bytesPerSecond: number;
  /** What waited for what, in the loader's own words. */
  readonly stats: LoaderStats;
  /** Before containers were opened. */
  readonly memoryBefore: ProcessMemory;
  /** When the loader had ended. */
  readonly memoryAfter: ProcessMemory;
}

/**
 * Takes batches of a loader over all containers, at the same random ids, as fast as they come. `onProgress` counts
 * milliseconds, not records.
 *
 * @param paths containers with as many records
 * @throws LoaderxError as `open` and `gather`; ABORTED; TypeError, RangeError (INVALID_ARGUMENT) for options that
 *   cannot be, and for no containers, empty ones, or different counts; LoaderxError TOO_LARGE for a batch
 *   over the readers' bound
 */
export async function benchLoader(
  paths: readonly string[],
  options: LoaderBenchOptions = {},
): Promise<LoaderBenchResult> {
  const fields = [...longFields, 'batchSize', 'seconds', 'seed', 'prefetch'];
  const { onProgress, signal } = longWorkOf(knownFields(options, fields));
  const { batchSize, seconds, seed } = benchNumbers(options);
  const { prefetch } = options;
  assertPaths(paths);
  const memoryBefore = processMemory();
  // A folder may be called `__proto__`.
  const readers: Record<string, DenseReader | RaggedReader> = Object.create(null);
  try {
    for (const path of paths) readers[path] = open(path);
    await using loader = new DataLoader(readers, {
      ...{ batchSize, seed, mode: 'iid' },
      ...(prefetch === undefined ? {} : { prefetch }),
    });
    const totalMs = Math.round(seconds * 1000);
    const startMs = performance.now();
    let firstBatchMs: number | undefined;
    let batches = 0;
    let elapsedMs = 0;
    for await (const batch of loader) {
      batch[Symbol.dispose]();
      elapsedMs = performance.now() - startMs;
      firstBatchMs ??= elapsedMs;
      batches += 1;
      onProgress({
        recordsDone: Math.min(totalMs, Math.round(elapsedMs)),
        recordsTotal: totalMs,
        bytesDone: loader.stats().bytes,
      });
      if (elapsedMs >= totalMs || signal?.aborted === true) break;
    }
    if (signal?.aborted === true) throw givenUp(paths.join(', '), signal);
    const stats = loader.stats();
    const rate = 1000 / elapsedMs;
    return {
      ...{ paths, batchSize, seed, firstBatchMs: firstBatchMs ?? 0 },
      batchesPerSecond: batches * rate,
      recordsPerSecond: batches * batchSize * rate,
      bytesPerSecond: stats.bytes * rate,
      ...{ stats, memoryBefore, memoryAfter: processMemory() },
    };
  } finally {
    await Promise.all(Object.values(readers).map((reader) => reader.close()));
  }
}

/** Each container is a stream of its path: twice the same one would be one stream. */
function assertPaths(paths: unknown): void {
  if (!Array.isArray(paths) || !paths.every((each) => typeof each === 'string')) {
    throw new ArgumentTypeError(
      'paths',
      `paths must be a list of containers, got ${show(paths)}: containersAt lists those of a folder`,
    );
  }
  const twice = paths.find((each, at) => paths.indexOf(each) !== at);
  if (twice === undefined) return;
  throw new ArgumentRangeError('paths', `${twice} is there twice: each container is read once`);
}
