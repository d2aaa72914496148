/** `npx loaderx bench`: how fast containers are read here and now. */
import { type BenchResult, bench, benchNumbers, type ProcessMemory } from '../bench/container.js';
import type { LoaderBenchResult } from '../bench/loader.js';
import { configure } from '../configure.js';
import { containersAt, info } from '../inspect/info.js';
import {
  assertCount,
  type Command,
  exitCodes,
  isGiven,
  numberOf,
  type OptionValues,
  textOf,
  UsageError,
} from './command.js';
import type { Terminal } from './terminal.js';
import { bytesText, countText, digits3, grouped, plain, tableLines } from './text.js';

export const benchCommand: Command = {
  name: 'bench',
  summary: 'how fast containers are read: rates, latencies, memory',
  usage: 'PATH',
  about: [
    'Reads a container, or each of a folder, for some seconds in each way that a program may ask, and',
    'tells records and bytes a second, what a call takes (of 100 calls 50, 95 and 99 took no more), and',
    'memory. Batches are given back after use. Files are read as they lie: what came from the disk is',
    'told, and nothing is dropped from the page cache. With --loader a DataLoader reads all containers',
    'of PATH at the same ids, and what waited for what is told.',
  ],
  options: {
    loader: { type: 'boolean', help: 'a DataLoader over all containers instead' },
    batch: { type: 'string', value: 'N', help: 'records of a batch (256)' },
    seconds: { type: 'string', value: 'N', help: 'how long, for each container (6)' },
    lanes: { type: 'string', value: 'N', help: 'native threads that may work at one time' },
    prefetch: { type: 'string', value: 'N', help: 'batches that a loader makes ahead (4)' },
    seed: { type: 'string', value: 'N', help: 'of the ids (42)' },
  },
  examples: [
    ['bench train/image --seconds 1', 'one container'],
    ['bench train/image --batch 32 --lanes 1 --seconds 1', 'smaller batches, on one thread'],
    ['bench train --loader --seconds 1', 'as a training loop reads it'],
  ],
  exits: [[0, 'it was measured']],
  run: async (positionals, values, terminal) => {
    assertCount(positionals, 1, 1, 'PATH');
    const [path = ''] = positionals;
    const batchSize = numberOf(values, 'batch');
    const seed = numberOf(values, 'seed');
    const seconds = secondsOf(values);
    const lanes = numberOf(values, 'lanes');
    const prefetch = numberOf(values, 'prefetch');
    const isLoader = isGiven(values, 'loader');
    if (prefetch !== undefined && !isLoader) throw new UsageError('--prefetch is for --loader');
    const settings = benchNumbers({ batchSize, seconds, seed });
    const before = configure();
    const used = lanes === undefined ? before : configure({ lanes });
    try {
      if (isLoader) {
        const { benchLoader } = await import('../bench/loader.js');
        const result = await terminal.long(`bench ${plain(path)}`, (long) =>
          benchLoader(containersAt(path), { ...settings, prefetch, ...long }),
        );
        if (terminal.json) terminal.answer({ ...used, ...result });
        else for (const line of loaderLines(result, used.lanes, terminal)) terminal.line(line);
        return exitCodes.done;
      }
      const results: BenchResult[] = [];
      for (const each of containersAt(path)) {
        const result = await terminal.long(`bench ${plain(each)}`, (long) =>
          bench(each, { ...settings, ...long }),
        );
        results.push(result);
        if (terminal.json) continue;
        if (results.length > 1) terminal.line();
        for (const line of await linesOf(result, used.lanes, terminal)) terminal.line(line);
      }
      if (terminal.json) terminal.answer({ ...used, containers: results });
      return exitCodes.done;
    } finally {
      configure(before);
    }
  },
};

function secondsOf(values: OptionValues): number | undefined {
  const text = textOf(values, 'seconds');
  if (text === undefined) return undefined;
  if (!/^\d{1,5}(\.\d{1,3})?$/.test(text)) {
    throw new UsageError(`--seconds wants a number of seconds, got ${text}`);
  }
  return Number(text);
}

async function linesOf(result: BenchResult, lanes: number, terminal: Terminal): Promise<string[]> {
  const { path, records, batchSize, seed, openMs, firstBatchMs, diskBytes, ways } = result;
  const { kind, dtype, codec } = await info(path);
  const title = ['', 'records/s', 'MiB/s', 'p50 ms', 'p95 ms', 'p99 ms', 'calls'];
  const rows = ways.map((way) => [
    way.name,
    grouped(Math.round(way.recordsPerSecond)),
    digits3(way.bytesPerSecond / 2 ** 20),
    ...[way.p50Ms, way.p95Ms, way.p99Ms].map((ms) => ms.toFixed(3)),
    grouped(way.batches),
  ]);
  const from =
    diskBytes === 0
      ? 'all of it was in the page cache'
      : `${bytesText(diskBytes)} came from the disk, the rest from the page cache`;
  return [
    `${terminal.style('green', plain(path))}: ${countText(records, 'record')}, ${kind} ${dtype}, ${codec}`,
    `batches of ${grouped(batchSize)}, ${countText(lanes, 'lane')}, seed ${seed}`,
    `open ${openMs.toFixed(2)} ms, first batch ${firstBatchMs.toFixed(2)} ms; ${from}`,
    ...tableLines([title, ...rows], new Set([1, 2, 3, 4, 5, 6])).map(indented),
    ...fewCallsLines(ways),
    memoryLine(result.memoryBefore, result.memoryAfter),
  ];
}

/** Below these, the p99 of a way is its slowest call, and its rate a matter of luck. */
const callsMin = 100;

function fewCallsLines(ways: BenchResult['ways']): string[] {
  const few = ways.filter(({ batches }) => batches < callsMin).map(({ name }) => name);
  if (few.length === 0) return [];
  return [
    `too few calls to be trusted, less than ${callsMin}: ${few.join('; ')}; try more --seconds`,
  ];
}

function indented(line: string): string {
  return `  ${line}`.trimEnd();
}

function memoryLine(before: ProcessMemory, after: ProcessMemory): string {
  const of = ({ residentBytes, anonymousBytes }: ProcessMemory): string =>
    anonymousBytes === undefined
      ? bytesText(residentBytes)
      : `${bytesText(residentBytes)} (${bytesText(anonymousBytes)} of it anonymous)`;
  return `memory ${of(before)} before, ${of(after)} after`;
}

// ---- with a loader ----

function loaderLines(result: LoaderBenchResult, lanes: number, terminal: Terminal): string[] {
  const { paths, batchSize, seed, firstBatchMs, stats } = result;
  const { elapsedMs } = stats;
  const waits: readonly (readonly [string, number])[] = [
    ['it waited for gathers', stats.gatherMs],
    ['it waited for transforms', stats.transformMs],
    ['it waited for its turn, or for memory', stats.dataMs],
    ['ids were drawn', stats.drawMs],
    ['it had its batch', stats.consumerMs],
  ];
  const rows = waits.map(([what, ms]) => [
    what,
    `${((ms / Math.max(elapsedMs, 1e-9)) * 100).toFixed(1)} %`,
  ]);
  const names = paths.map((path) => plain(path)).join(', ');
  return [
    `${terminal.style('green', names)}: a loader, batches of ${grouped(batchSize)}, ${countText(lanes, 'lane')}, seed ${seed}`,
    `${digits3(result.batchesPerSecond)} batches/s, ${grouped(Math.round(result.recordsPerSecond))} records/s, ${digits3(result.bytesPerSecond / 2 ** 20)} MiB/s; first batch ${firstBatchMs.toFixed(2)} ms`,
    'Of the time of who takes the batches:',
    ...tableLines(rows, new Set([1])).map(indented),
    `gathers took ${digits3(stats.work.gatherMs / Math.max(1, stats.batches))} ms a batch, whoever waited for them`,
    memoryLine(result.memoryBefore, result.memoryAfter),
  ];
}
