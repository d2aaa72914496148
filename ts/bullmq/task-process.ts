/**
 * The program of a worker's child: it makes one part, or the sets, and ends. So a busy loop of a conversion
 * cannot keep the worker from renewing its lock, and memory that a part has used goes with it.
 *
 * It never outlives its worker: see life-thread.ts.
 */
import fs from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import { type ConvertOptions, conversion } from '../converter/convert.js';
import type { DatasetSplits } from '../converter/dataset.js';
import { Staging } from '../converter/staging.js';
import { isArgumentError, LoaderxError } from '../errors.js';
import { makeSet } from '../inspect/set.js';
import { partName } from '../parts.js';
import { Concat } from '../store/concat.js';
import type { MadeColumn } from './spec.js';
import { type ConversionSpec, hubScheme } from './spec.js';
import type { Answer, MadePart, MadeSet, Order, Task } from './task.js';

const progressMs = 500;

// The worker decides what becomes of a part; Ctrl-C and a service manager's signal reach both.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
process.once('disconnect', () => process.exit(1));
new Worker(new URL('./life-thread.js', import.meta.url)).unref();

const aborting = new AbortController();

process.on('message', (order: Order) => {
  if (order.kind === 'abort') aborting.abort(new Error(order.reason));
  else void answerTo(order.task);
});
const ready: Answer = { kind: 'ready' };
process.send?.(ready);

async function answerTo(task: Task): Promise<void> {
  let answer: Answer;
  try {
    const result = task.kind === 'part' ? await makePart(task) : await makeSets(task);
    answer = { kind: 'done', result };
  } catch (error) {
    const isOurs = error instanceof LoaderxError || isArgumentError(error);
    const { name, message } = error instanceof Error ? error : new Error(String(error));
    answer = { kind: 'failed', error: isOurs ? error.toJSON() : { name, message } };
  }
  process.send?.(answer, () => process.exit(0));
}

async function makePart({ spec, part }: Task & { kind: 'part' }): Promise<MadePart> {
  const { signal } = aborting;
  let toldMs = 0;
  const made = await conversion(await datasetOf(spec, signal), spec.target, {
    ...convertOptions(spec),
    part: { part, of: spec.parts },
    signal,
    onProgress: ({ recordsDone, recordsTotal }) => {
      const nowMs = Date.now();
      if (nowMs - toldMs < progressMs) return;
      toldMs = nowMs;
      const answer: Answer = { kind: 'progress', recordsDone, recordsTotal };
      process.send?.(answer);
    },
  });
  const columns = made.columns.map(({ split, column }) => ({ split, column }));
  return { part, columns, wasThere: made.wasThere === true };
}

async function datasetOf(spec: ConversionSpec, signal: AbortSignal): Promise<DatasetSplits> {
  const { source, revision, config, splits } = spec;
  if (source.startsWith(hubScheme)) {
    const { huggingface } = await import('../converter/hub.js');
    return huggingface(source.slice(hubScheme.length), { revision, config, splits, signal });
  }
  const { parquetFolder } = await import('../converter/parquet.js');
  return parquetFolder(source, { signal });
}

function convertOptions(spec: ConversionSpec): ConvertOptions {
  const { codec, dict, dataShards, integrity, splits, columns, strings, names, pictures } = spec;
  const form = { codec, ...(dict === undefined ? {} : { dictBytes: fs.readFileSync(dict) }) };
  return {
    ...(form as ConvertOptions),
    ...{ dataShards, integrity, splits, columns, strings, names, pictures },
  };
}

/** One set for each column of each split; and nothing of dead processes stays in the target. */
async function makeSets({ spec, columns }: Task & { kind: 'sets' }): Promise<MadeSet[]> {
  const { target, parts: of } = spec;
  const { signal } = aborting;
  const made: MadeSet[] = [];
  for (const each of columns) {
    const { split, column } = each;
    const parts = Array.from({ length: of }, (_, part) =>
      path.join(target, partName({ part, of }), ...(split === undefined ? [] : [split]), column),
    );
    const file = setPath(target, each);
    made.push({ ...each, path: file, records: await setAt(file, parts, signal) });
  }
  Staging.sweep(target);
  return made;
}

/** `SPLIT.COLUMN.json`. */
function setPath(target: string, { split, column }: MadeColumn): string {
  return path.join(target, `${split === undefined ? '' : `${split}.`}${column}.json`);
}

/** Makes the set, unless it is there: then it must be the same one. */
async function setAt(file: string, parts: readonly string[], signal: AbortSignal): Promise<number> {
  try {
    return (await makeSet(parts, file, { signal })).records;
  } catch (error) {
    if (!(error instanceof LoaderxError) || error.code !== 'EXISTS') throw error;
    await using reader = Concat.open(file);
    const found = reader.parts.map((part) => path.resolve(part.path));
    if (found.length === parts.length && found.every((part, at) => part === parts[at])) {
      return reader.length;
    }
    throw error;
  }
}
