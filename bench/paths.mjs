// @ts-check
// Where the bench keeps what it fetches, makes and measures: all of it in .bench/, not in git.
import path from 'node:path';
import { inRoot } from '../scripts/script.mjs';

/** @param {...string} parts */
export const inBench = (...parts) => inRoot('.bench', ...parts);

/** The folder of the sources and workloads that prepare.mjs makes. */
export const dataFolder = inBench('data');

/** Built by environment.mjs. @param {boolean} isGcc */
export function limitsProgram(isGcc) {
  return isGcc ? inBench('bench-limits-gcc') : inRoot('zig-out', 'bin', 'bench-limits');
}

/** The name of a folder for a row's store. @param {string} name */
export const safeName = (name) => name.replaceAll(/[^\w.-]/g, '_');

/** @param {string} data @param {string} name */
export const workloadFolder = (data, name) => path.join(data, 'workloads', name);
