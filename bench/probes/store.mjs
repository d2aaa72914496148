// @ts-check
// A workload as a container of this package, for the probes that read one.
import fs from 'node:fs';
import { Dense, open } from '../loaderx.mjs';
import { Workload } from '../workload.mjs';

/**
 * @param {string} folder the workload's, dense
 * @param {string} target
 * @param {'raw' | 'zstd'} codec
 */
export function denseStore(folder, target, codec) {
  const workload = new Workload(folder);
  const path = `${target}/${workload.name}-${codec}`;
  if (!fs.existsSync(path)) {
    const { dtype, itemShape, records, items } = workload;
    const writer = Dense.create(path, { dtype, itemShape, codec });
    writer.appendSync({ dtype, shape: [records, ...itemShape], data: items });
    writer.closeSync();
  }
  return { path, workload };
}

/** The timed plan, batch after batch, over and over. @param {Workload} workload */
export function* batches(workload) {
  const plan = workload.plan('time');
  for (let at = 0; ; at = (at + workload.batch) % plan.length) {
    yield BigUint64Array.from(plan.subarray(at, at + workload.batch), BigInt);
  }
}

/** @param {string} path @returns {any} */
export const openAny = (path) => open(path);

/** Resident memory of this process in MiB: its own, and pages of files that it has mapped. */
export function residentMib() {
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  const field = (/** @type {string} */ name) =>
    Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1024;
  return { anonymous: field('RssAnon'), files: field('RssFile') };
}
