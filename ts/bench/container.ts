/**
 * How fast a container is read here and now: rates, latencies, memory, and what each way of asking costs.
 *
 * ```text
 * open, first batch                                as the files lie: nothing is dropped from the page cache
 * then for the same time each
 *   sequential, async          in order, new memory
 *   random, async              any ids
 *   random, 4 at a time        as a program asks that is ahead of itself
 *   random, async, into out    memory that is there already
 *   random, sync               on this thread
 *   one record, sync
 * ```
 */
import fs from 'node:fs';
import { setImmediate as turn } from 'node:timers/promises';
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import type { LongOptions } from '../inspect/progress.js';
import { longFields, longWorkOf } from '../inspect/settings.js';
import { Sampler } from '../sampler.js';
import { givenUp } from '../signal.js';
import type { DenseBatch, DenseReader, RaggedBatch } from '../store/capability.js';
import { knownFields } from '../store/fields.js';
import { open } from '../store/open.js';

/** What is measured, and for how long. */
export interface BenchOptions extends LongOptions {
  /** Records of a batch; 256 unless given. */
  readonly batchSize?: number | undefined;
  /** How long in all, more than 0, 86,400 at most; 6 unless given. Each way makes one call at least. */
  readonly seconds?: number | undefined;
  /** Of the random ids, 0 .. 2^53 - 1; 42 unless given. */
  readonly seed?: number | undefined;
}

/** What one way of asking came to. */
export interface BenchWay {
  /** Such as `random, sync`: for people, not stable. */
  readonly name: string;
  /** Calls that were made; for single records those too. */
  readonly batches: number;
  /** Over all calls that ran at one time. */
  readonly recordsPerSecond: number;
  /** Bytes of items, unpacked, in a second. */
  readonly bytesPerSecond: number;
  /** Milliseconds that half of the calls did not pass. */
  readonly p50Ms: number;
  /** Milliseconds that 95 of 100 calls did not pass. */
  readonly p95Ms: number;
  /** Milliseconds that 99 of 100 calls did not pass. */
  readonly p99Ms: number;
}

/** The memory of this process at one time. */
export interface ProcessMemory {
  /** What lies in the machine's memory, pages of files among it. */
  readonly residentBytes: number;
  /** Of them, those that are no pages of files; undefined but on Linux. */
  readonly anonymousBytes: number | undefined;
}

/** What {@link bench} measured of one container. */
export interface BenchResult {
  /** The container, as it was named. */
  readonly path: string;
  /** How many it has. */
  readonly records: number;
  /** Records of a batch: what was asked for, or all where there are fewer. */
  readonly batchSize: number;
  /** The seed that the ids were of. */
  readonly seed: number;
  /** Milliseconds of opening it. */
  readonly openMs: number;
  /** Milliseconds of one gather of random ids, before any other. */
  readonly firstBatchMs: number;
  /** What this process read from disks meanwhile; 0 where all was in the page cache. */
  readonly diskBytes: number;
  /** In the order in which they were measured. */
  readonly ways: readonly BenchWay[];
  /** Before it was opened. */
  readonly memoryBefore: ProcessMemory;
  /** While it was still open. */
  readonly memoryAfter: ProcessMemory;
}

/** The checked numbers of options of a benchmark. */
export function benchNumbers(options: Pick<BenchOptions, 'batchSize' | 'seconds' | 'seed'>): {
  readonly batchSize: number;
  readonly seconds: number;
  readonly seed: number;
} {
  const { batchSize = 256, seconds = 6, seed = 42 } = options;
  for (const [field, value] of Object.entries({ batchSize, seed })) {
    if (!Number.isSafeInteger(value)) {
      throw new ArgumentTypeError(field, `${field} must be an integer, got ${show(value)}`);
    }
  }
  if (batchSize < 1) {
    throw new ArgumentRangeError('batchSize', `batchSize must be 1 or more, got ${batchSize}`);
  }
  if (seed < 0) throw new ArgumentRangeError('seed', `seed must be 0 or more, got ${seed}`);
  if (typeof seconds !== 'number' || !(seconds > 0 && seconds <= 86_400)) {
    throw new ArgumentRangeError(
      'seconds',
      `seconds must be more than 0, 86,400 at most, got ${show(seconds)}`,
    );
  }
  return { batchSize, seconds, seed };
}

const ahead = 4;

/**
 * Reads a container in each way that a program may ask, one after the other, for the same time each. `onProgress`
 * counts ways, not records.
 *
 * @throws LoaderxError as `open` and `gather`; ABORTED; TypeError, RangeError (INVALID_ARGUMENT) for options that
 *   cannot be, and for a container without records
 */
export async function bench(source: string, options: BenchOptions = {}): Promise<BenchResult> {
  const known = knownFields(options, [...longFields, 'batchSize', 'seconds', 'seed']);
  const work = longWorkOf(known);
  const { batchSize, seconds, seed } = benchNumbers(options);
  const memoryBefore = processMemory();
  const blocksBefore = process.resourceUsage().fsRead;
  const startMs = performance.now();
  await using reader = open(source);
  const openMs = performance.now() - startMs;
  // Ways take any of both kinds, and give back what they got.
  const asked = reader as DenseReader;
  const count = Math.min(batchSize, reader.length);
  const random = new Sampler({ length: reader.length, batchSize: count, mode: 'iid', seed });
  const inOrder = new Sampler({
    length: reader.length,
    batchSize: count,
    mode: 'sequential',
    seed,
  });
  try {
    const draw = (): BigUint64Array => random.draw();
    const firstMs = performance.now();
    (await asked.gather(draw()))[Symbol.dispose]();
    const firstBatchMs = performance.now() - firstMs;
    const ways: readonly (readonly [string, Ask])[] = [
      ['sequential, async', { ids: () => inOrder.draw(), ask: (ids) => given(asked.gather(ids)) }],
      ['random, async', { ids: draw, ask: (ids) => given(asked.gather(ids)) }],
      [
        `random, ${ahead} at a time`,
        // The sampler lends its memory until the next draw.
        { ids: () => draw().slice(), ask: (ids) => given(asked.gather(ids)), ahead },
      ],
      ['random, async, into out', { ids: draw, ask: intoOut(asked, await asked.gather(draw())) }],
      ['random, sync', { ids: draw, ask: (ids) => givenNow(asked.gatherSync(ids)) }],
      [
        'one record, sync',
        {
          ids: () => draw().subarray(0, 1),
          ask: (ids) => asked.record(Number(ids[0])).data.byteLength,
        },
      ],
    ];
    const results: BenchWay[] = [];
    for (const [index, [name, ask]] of ways.entries()) {
      if (work.signal?.aborted === true) throw givenUp(source, work.signal);
      results.push(await measured(name, ask, (seconds * 1000) / ways.length, work.signal));
      work.onProgress({ recordsDone: index + 1, recordsTotal: ways.length, bytesDone: 0 });
    }
    if (work.signal?.aborted === true) throw givenUp(source, work.signal);
    return {
      path: source,
      records: reader.length,
      ...{ batchSize: count, seed, openMs, firstBatchMs },
      diskBytes: (process.resourceUsage().fsRead - blocksBefore) * 512,
      ways: results,
      memoryBefore,
      memoryAfter: processMemory(),
    };
  } finally {
    random.close();
    inOrder.close();
  }
}

type Batch = DenseBatch | RaggedBatch;

/** Asks for some records, and tells how many bytes of items came. */
interface Ask {
  readonly ids: () => BigUint64Array;
  readonly ask: (ids: BigUint64Array) => number | Promise<number>;
  /** Calls that run at one time; 1 unless given. */
  readonly ahead?: number;
}

function itemBytesOf(batch: Batch): number {
  return 'offsets' in batch ? batch.values.byteLength : batch.data.byteLength;
}

async function given(gathering: Promise<Batch>): Promise<number> {
  return givenNow(await gathering);
}

function givenNow(batch: Batch): number {
  const bytes = itemBytesOf(batch);
  batch[Symbol.dispose]();
  return bytes;
}

function intoOut(reader: DenseReader, first: Batch): Ask['ask'] {
  let out = first as DenseBatch;
  return async (ids) => {
    out = (await reader.gather(ids, { out })) as typeof out;
    return itemBytesOf(out);
  };
}

async function measured(
  name: string,
  { ids, ask, ahead: lanes = 1 }: Ask,
  lengthMs: number,
  signal: AbortSignal | undefined,
): Promise<BenchWay> {
  const latencies: number[] = [];
  let records = 0;
  let bytes = 0;
  const startMs = performance.now();
  const run = async (): Promise<void> => {
    let turnedMs = startMs;
    do {
      const some = ids();
      const beginMs = performance.now();
      const answer = ask(some);
      // Several runs add to it: it must not be read before the answer is there.
      const came = typeof answer === 'number' ? answer : await answer;
      bytes += came;
      const nowMs = performance.now();
      latencies.push(nowMs - beginMs);
      records += some.length;
      // Without a pause, calls on this thread would let nothing else run, Ctrl-C neither.
      if (nowMs - turnedMs > 50) {
        await turn();
        turnedMs = performance.now();
      }
    } while (performance.now() - startMs < lengthMs && signal?.aborted !== true);
  };
  await Promise.all(Array.from({ length: lanes }, run));
  const seconds = (performance.now() - startMs) / 1000;
  latencies.sort((one, other) => one - other);
  const at = (share: number): number =>
    latencies[Math.min(latencies.length - 1, Math.floor(share * latencies.length))] ?? 0;
  return {
    name,
    batches: latencies.length,
    recordsPerSecond: records / seconds,
    bytesPerSecond: bytes / seconds,
    p50Ms: at(0.5),
    p95Ms: at(0.95),
    p99Ms: at(0.99),
  };
}

/** What the process has of the machine's memory. */
export function processMemory(): ProcessMemory {
  const residentBytes = process.memoryUsage.rss();
  let text = '';
  try {
    text = fs.readFileSync('/proc/self/status', 'utf8');
  } catch {
    // Only Linux has it.
  }
  const anonymous = /^RssAnon:\s+(\d+) kB$/m.exec(text)?.[1];
  return {
    residentBytes,
    anonymousBytes: anonymous === undefined ? undefined : Number(anonymous) * 1024,
  };
}
