// @ts-check
// What test/native/faults.c is told and what it tells: the file that it maps.
import fs from 'node:fs';

const bytes = { head: 64, prefix: 1024, entry: 32 };
const entriesMax = 1000;
const fileBytes = bytes.head + bytes.prefix + entriesMax * bytes.entry;

const modes = { off: 0, calls: 1, writes: 2, allocations: 3 };

/** What may be done at a call; the numbers below are Linux's. */
export const actions = {
  nothing: 0,
  EINTR: 4,
  EIO: 5,
  ENOMEM: 12,
  EMFILE: 24,
  EFBIG: 27,
  ENOSPC: 28,
  EROFS: 30,
  EDQUOT: 122,
  'killed before': 10_000,
  'killed after': 10_001,
  'killed midway': 10_002,
  short: 10_003,
};

/** @typedef {keyof typeof actions} Action */

/**
 * @typedef {object} Order
 * @property {'calls' | 'writes' | 'allocations'} mode what is counted: every trapped call, those that change
 *   something, or allocations of the addon
 * @property {string} [prefix] only calls about this folder and what is in it
 * @property {number} [at] the call to act at, from 0; none: they are counted only
 * @property {Action} [action]
 * @property {boolean} [lasting] from then on at every call
 */

/** @typedef {{count: number, struck: number, calls: string[]}} Told `calls`: what the first 1,000 were */

export class Faults {
  /** @type {number} */
  #descriptor;

  /** @param {string} file made if it is not there */
  constructor(file) {
    this.#descriptor = fs.openSync(file, fs.constants.O_RDWR | fs.constants.O_CREAT);
    if (fs.fstatSync(this.#descriptor).size < fileBytes) {
      fs.ftruncateSync(this.#descriptor, fileBytes);
    }
  }

  /** Counts from 0 from now on. @param {Order} order */
  arm({ mode, prefix = '', at = 2 ** 40, action = 'nothing', lasting = false }) {
    const head = Buffer.alloc(6 * 8);
    const words = [modes.off, 0, at, actions[action], lasting ? 1 : 0, 0];
    words.forEach((word, index) => {
      head.writeBigUInt64LE(BigInt(word), index * 8);
    });
    fs.writeSync(this.#descriptor, head, 0, head.length, 0);
    const path = Buffer.from(`${prefix}\0`);
    fs.writeSync(this.#descriptor, path, 0, path.length, bytes.head);
    this.#setMode(modes[mode]);
  }

  /** @returns {Told} */
  disarm() {
    this.#setMode(modes.off);
    return this.told();
  }

  /** @returns {Told} */
  told() {
    const page = Buffer.alloc(fileBytes);
    fs.readSync(this.#descriptor, page, 0, fileBytes, 0);
    const count = Number(page.readBigUInt64LE(8));
    const calls = Array.from({ length: Math.min(count, entriesMax) }, (_, index) => {
      const at = bytes.head + bytes.prefix + index * bytes.entry;
      const name = page.toString('utf8', at + 2, at + bytes.entry).replace(/\0.*$/s, '');
      const call = page.readUInt16LE(at);
      return `${callNames[process.arch]?.[call] ?? call} ${name}`;
    });
    return { count, struck: Number(page.readBigUInt64LE(40)), calls };
  }

  /** From whose code allocations are counted. Wants to be in the process itself. @param {string} library */
  watch(library) {
    const ranges = fs
      .readFileSync('/proc/self/maps', 'utf8')
      .split('\n')
      .filter((line) => line.endsWith(library) && / r-xp /.test(line))
      .map((line) => line.split(/[- ]/, 2).map((text) => BigInt(`0x${text}`)));
    const [range] = ranges;
    if (ranges.length !== 1 || range === undefined)
      throw new Error(`${library} is not loaded once`);
    const words = Buffer.alloc(16);
    range.forEach((word, index) => {
      words.writeBigUInt64LE(word, index * 8);
    });
    fs.writeSync(this.#descriptor, words, 0, words.length, 48);
  }

  close() {
    fs.closeSync(this.#descriptor);
  }

  /** @param {number} mode */
  #setMode(mode) {
    const word = Buffer.alloc(8);
    word.writeBigUInt64LE(BigInt(mode));
    fs.writeSync(this.#descriptor, word, 0, word.length, 0);
  }
}

/** @type {Record<string, Record<number, string>>} */
const callNames = {
  x64: {
    ...{ 9: 'mmap', 17: 'pread64', 18: 'pwrite64', 73: 'flock', 74: 'fsync', 75: 'fdatasync' },
    ...{ 77: 'ftruncate', 217: 'getdents64', 257: 'openat', 258: 'mkdirat', 263: 'unlinkat' },
    ...{ 264: 'renameat', 265: 'linkat', 285: 'fallocate', 295: 'preadv', 296: 'pwritev' },
    ...{ 316: 'renameat2', 327: 'preadv2', 328: 'pwritev2', 332: 'statx' },
  },
  arm64: {
    ...{ 222: 'mmap', 67: 'pread64', 68: 'pwrite64', 32: 'flock', 82: 'fsync', 83: 'fdatasync' },
    ...{ 46: 'ftruncate', 61: 'getdents64', 56: 'openat', 34: 'mkdirat', 35: 'unlinkat' },
    ...{ 38: 'renameat', 37: 'linkat', 47: 'fallocate', 69: 'preadv', 70: 'pwritev' },
    ...{ 276: 'renameat2', 286: 'preadv2', 287: 'pwritev2', 291: 'statx' },
  },
};
