// @ts-check
// What the system says about processes, in /proc: which belong together, the processor time they took
// and the memory they hold. Linux only; elsewhere nothing is known.
import fs from 'node:fs';

/** Ticks of /proc in a second: the kernel shows 100 whatever it uses itself. */
export const ticksPerSecond = 100;

/** The fields of /proc/PID/stat after the program's name, which may hold anything. @param {string} pid */
function statOf(pid) {
  try {
    return fs
      .readFileSync(`/proc/${pid}/stat`, 'utf8')
      .replace(/^.*\) /s, '')
      .split(' ');
  } catch {
    return undefined; // it has ended
  }
}

/** A process and all that descend from it and run. @param {number} root @returns {number[]} */
export function processTree(root) {
  /** @type {Map<number, number[]>} */
  const children = new Map();
  let names;
  try {
    names = fs.readdirSync('/proc');
  } catch {
    return [root];
  }
  for (const name of names) {
    if (!/^\d+$/.test(name)) continue;
    const parent = Number(statOf(name)?.[1]);
    children.set(parent, [...(children.get(parent) ?? []), Number(name)]);
  }
  const tree = [root];
  for (const pid of tree) tree.push(...(children.get(pid) ?? []));
  return tree;
}

/**
 * Processor time of a process and of all that descend from it: those that run, and those that were
 * waited for.
 *
 * @param {number} root
 */
export function treeSeconds(root) {
  let ticks = 0;
  for (const pid of processTree(root)) {
    const fields = statOf(String(pid))?.slice(11, 15) ?? [];
    ticks += fields.reduce((sum, each) => sum + Number(each), 0);
  }
  return ticks / ticksPerSecond;
}

/**
 * Memory in MiB. A page that several processes share counts in each of them by its share (PSS), so
 * sums over a tree of processes count it once; only `rss` counts it in each.
 *
 * @typedef {object} Memory
 * @property {number} pss
 * @property {number} rss
 * @property {number} anonymous of nobody else: memory of no file, and shared memory
 * @property {number} files pages of mapped files, which the system takes back at will
 */

/** @param {readonly number[]} pids @returns {Memory} those that have ended count nothing */
export function memoryOf(pids) {
  const memory = { pss: 0, rss: 0, anonymous: 0, files: 0 };
  for (const pid of pids) {
    let text;
    try {
      text = fs.readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
    } catch {
      continue;
    }
    const mib = (/** @type {string} */ field) =>
      Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(text)?.[1] ?? 0) / 1024;
    memory.pss += mib('Pss');
    memory.rss += mib('Rss');
    memory.anonymous += mib('Pss_Anon') + mib('Pss_Shmem');
    memory.files += mib('Pss_File');
  }
  return memory;
}

/** Memory of this process that is of no file, in MiB: what `Memory.anonymous` is for one process. */
export function ownAnonymousMib() {
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  const mib = (/** @type {string} */ field) =>
    Number(new RegExp(`^${field}:\\s+(\\d+) kB`, 'm').exec(status)?.[1] ?? Number.NaN) / 1024;
  return mib('RssAnon') + mib('RssShmem');
}

/** Looks for new processes of the tree this often; reading all of /proc takes milliseconds. */
const treeEveryMs = 250;

/**
 * Watches the memory of a process and its descendants while `body` runs.
 *
 * @template T
 * @param {number} root
 * @param {number} everyMs
 * @param {() => Promise<T>} body
 * @returns {Promise<{result: T, samples: Memory[]}>}
 */
export async function watchMemory(root, everyMs, body) {
  /** @type {Memory[]} */
  const samples = [];
  let tree = processTree(root);
  let treeMs = performance.now();
  const timer = setInterval(() => {
    if (performance.now() - treeMs > treeEveryMs) {
      tree = processTree(root);
      treeMs = performance.now();
    }
    samples.push(memoryOf(tree));
  }, everyMs);
  try {
    const result = await body();
    samples.push(memoryOf(processTree(root)));
    return { result, samples };
  } finally {
    clearInterval(timer);
  }
}
