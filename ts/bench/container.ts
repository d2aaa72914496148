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
import { locate } from '../store/path.js';

/** What is measured, and for how long. */
export interface BenchOptions extends LongOptions {
  /** Records of a batch, 1 .. 2^24; 256 unless given. */
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
  /** Calls that were timed; for single records those too. */
  readonly batches: number;
  /**
   * Records of all timed calls by the sum of their times, times the calls that ran at one time: what lies
   * between calls (drawing ids, turns of the event loop) is not in it, garbage that was collected within one is.
   */
  readonly recordsPerSecond: number;
  /** Bytes of items, unpacked, in a second, of the same time. */
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

/** Ids are drawn ahead, some batches of them: more than these would be the machine's memory, and no benchmark. */
const batchSizeMax = 2 ** 24;

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
  if (batchSize > batchSizeMax) {
    const text = `batchSize must be ${batchSizeMax} or less, got ${batchSize}`;
    throw new ArgumentRangeError('batchSize', text);
  }
  if (seed < 0) throw new ArgumentRangeError('seed', `seed must be 0 or more, got ${seed}`);
  if (typeof seconds !== 'number') {
    throw new ArgumentTypeError('seconds', `seconds must be a number, got ${show(seconds)}`);
  }
  if (!(seconds > 0 && seconds <= 86_400)) {
    throw new ArgumentRangeError(
      'seconds',
      `seconds must be more than 0, 86,400 at most, got ${show(seconds)}`,
    );
  }
  return { batchSize, seconds, seed };
}

const ahead = 4;

/**
 * Reads a container in each way that a program may ask, one after the other, for the same time each, after a
 * tenth of it that is not counted. `onProgress` counts ways, not records.
 *
 * @param source a container; of a folder of them the command line calls this for each of `containersAt(folder)`
 * @throws LoaderxError as `open` and `gather`; ABORTED; TypeError, RangeError (INVALID_ARGUMENT) for options that
 *   cannot be, and for a container without records
 */
export async function bench(
  source: string | URL,
  options: BenchOptions = {},
): Promise<BenchResult> {
  const known = knownFields(options, [...longFields, 'batchSize', 'seconds', 'seed']);
  const work = longWorkOf(known);
  const { batchSize, seconds, seed } = benchNumbers(options);
  const memoryBefore = processMemory();
  const blocksBefore = process.resourceUsage().fsRead;
  const startMs = performance.now();
  await using reader = open(source);
  const path = locate(source).shown;
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
          ids: singles(draw),
          ask: (ids) => asked.record(Number(ids[0])).data.byteLength,
        },
      ],
    ];
    const results: BenchWay[] = [];
    for (const [index, [name, ask]] of ways.entries()) {
      if (work.signal?.aborted === true) throw givenUp(path, work.signal);
      results.push(await measured(name, ask, (seconds * 1000) / ways.length, work.signal));
      work.onProgress({ recordsDone: index + 1, recordsTotal: ways.length, bytesDone: 0 });
    }
    if (work.signal?.aborted === true) throw givenUp(path, work.signal);
    return {
      path,
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

/** Each id of a draw alone: drawing a whole batch for one id would be most of the time. */
function singles(draw: () => BigUint64Array): () => BigUint64Array {
  let drawn: BigUint64Array = new BigUint64Array(0);
  let at = 0;
  return () => {
    if (at === drawn.length) {
      drawn = draw();
      at = 0;
    }
    at += 1;
    return drawn.subarray(at - 1, at);
  };
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
  let callsMs = 0;
  const run = async (untilMs: number, isTimed: boolean): Promise<void> => {
    let turnedMs = performance.now();
    let nowMs: number;
    do {
      const some = ids();
      const beginMs = performance.now();
      const answer = ask(some);
      // Several runs add to it: it must not be read before the answer is there.
      const came = typeof answer === 'number' ? answer : await answer;
      nowMs = performance.now();
      if (isTimed) {
        latencies.push(nowMs - beginMs);
        callsMs += nowMs - beginMs;
        bytes += came;
        records += some.length;
      }
      // Without a pause, calls on this thread would let nothing else run, Ctrl-C neither.
      if (nowMs - turnedMs > 50) {
        await turn();
        turnedMs = performance.now();
      }
    } while (nowMs < untilMs && signal?.aborted !== true);
  };
  for (const isTimed of [false, true]) {
    const untilMs = performance.now() + (isTimed ? lengthMs : lengthMs / 10);
    await Promise.all(Array.from({ length: lanes }, () => run(untilMs, isTimed)));
  }
  // The lanes are never idle but while ids are drawn: their rate is that of one, times their number.
  const seconds = callsMs / 1000 / lanes;
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
