// @ts-check
// Random numbers that come again: the same seed and name give the same numbers on every machine.
import { createHash } from 'node:crypto';

/** The generator Sfc32, seeded with a hash of texts, so that every case has a stream of its own. */
export class Random {
  #a;
  #b;
  #c;
  #counter;

  /** @param {...(string | number)} names the seed and what the numbers are for */
  constructor(...names) {
    const hash = createHash('sha256').update(names.join('/')).digest();
    this.#a = hash.readInt32LE(0);
    this.#b = hash.readInt32LE(4);
    this.#c = hash.readInt32LE(8);
    this.#counter = hash.readInt32LE(12);
    for (let round = 0; round < 12; round += 1) this.u32();
  }

  /** 0 to 2^32 - 1. */
  u32() {
    const value = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + value) | 0;
    return value >>> 0;
  }

  /** 0 to 2^64 - 1. */
  u64() {
    return (BigInt(this.u32()) << 32n) | BigInt(this.u32());
  }

  /** A whole number from `from` to `to`, both included. @param {number} from @param {number} to */
  between(from, to) {
    return from + Math.floor((this.u32() / 2 ** 32) * (to - from + 1));
  }

  /** Like `between`, with all magnitudes equally likely. @param {number} from @param {number} to */
  magnitude(from, to) {
    const span = Math.log(to + 1) - Math.log(from);
    const value = Math.floor(Math.exp(Math.log(from) + (this.u32() / 2 ** 32) * span));
    return Math.min(to, Math.max(from, value));
  }

  /** @param {number} probability */
  chance(probability) {
    return this.u32() / 2 ** 32 < probability;
  }

  /** @template T @param {readonly T[]} items @returns {T} */
  pick(items) {
    const item = items[this.between(0, items.length - 1)];
    if (item === undefined) throw new RangeError('there is nothing to pick from');
    return item;
  }

  /** A new list in random order. @template T @param {readonly T[]} items @returns {T[]} */
  shuffled(items) {
    const keyed = items.map((item) => ({ item, key: this.u32() }));
    return keyed.sort((left, right) => left.key - right.key).map(({ item }) => item);
  }

  /** @param {Uint8Array} bytes */
  fill(bytes) {
    let index = 0;
    for (; index + 4 <= bytes.length; index += 4) {
      const word = this.u32();
      bytes[index] = word;
      bytes[index + 1] = word >>> 8;
      bytes[index + 2] = word >>> 16;
      bytes[index + 3] = word >>> 24;
    }
    for (; index < bytes.length; index += 1) bytes[index] = this.u32();
  }
}
