/**
 * Random numbers for transforms: a pure function of (seed, step, position in the global batch).
 *
 * The generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3",
 * 2011): ten rounds turn a 128-bit counter under a 64-bit key into 128 random bits, so any place of
 * any sequence is computed at once, in any thread, and two places share nothing.
 *
 *     key      seed, low and high half
 *     counter  word 0  block of the sequence, 0, 1, 2, …: four numbers each
 *              word 1  position in the global batch; 0 for the sequence of the whole step
 *              word 2  step, low 32 bits
 *              word 3  step, high 21 bits; bit 31 is set for the sequence of the whole step
 *
 * A number takes the next 32-bit word: `uint32` one, `float` two, `normal` four, `int` one and, so
 * that no value is likelier than another, now and then one more. These numbers are part of the
 * contract: they stay the same in later versions.
 */
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';

/** One endless sequence of random numbers. */
export interface Random {
  /** An integer 0 .. 2^32 - 1. */
  uint32(): number;
  /** A number 0 <= x < 1 with 53 random bits. */
  float(): number;
  /**
   * An integer 0 .. below - 1, each equally likely.
   *
   * @param below 1 .. 2^32
   * @throws TypeError, RangeError for anything else
   */
  int(below: number): number;
  /** A number of the normal distribution with mean 0 and standard deviation 1. */
  normal(): number;
}

/**
 * The random numbers of a step. Drawn from directly, they are those of the whole step: equal on
 * every rank, whatever part of the batch it has. `at(i)` gives those of one record.
 */
export interface Rng extends Random {
  /**
   * A sequence of its own for record `index` of this batch, from its beginning. It depends on where
   * the record stands in the global batch, so it is the same in a world of any size.
   *
   * @throws TypeError, RangeError for an index that the batch does not have
   */
  at(index: number): Random;
}

const word = 2 ** 32;

class Sequence implements Random {
  readonly #keyLow: number;
  readonly #keyHigh: number;
  readonly #position: number;
  readonly #stepLow: number;
  readonly #stepHigh: number;
  readonly #words = new Uint32Array(4);
  #block = 0;
  #taken = 4;

  constructor(seed: bigint, position: number, stepLow: number, stepHigh: number) {
    this.#keyLow = Number(seed & 0xffff_ffffn);
    this.#keyHigh = Number((seed >> 32n) & 0xffff_ffffn);
    this.#position = position;
    this.#stepLow = stepLow;
    this.#stepHigh = stepHigh;
  }

  uint32(): number {
    if (this.#taken === 4) {
      const words = this.#words;
      words[0] = this.#block;
      words[1] = this.#position;
      words[2] = this.#stepLow;
      words[3] = this.#stepHigh;
      philox(words, this.#keyLow, this.#keyHigh);
      this.#block += 1;
      this.#taken = 0;
    }
    const value = this.#words[this.#taken] ?? 0;
    this.#taken += 1;
    return value;
  }

  float(): number {
    const high = this.uint32() >>> 5;
    const low = this.uint32() >>> 6;
    return (high * 2 ** 26 + low) / 2 ** 53;
  }

  int(below: number): number {
    if (typeof below !== 'number' || !Number.isInteger(below)) {
      throw new ArgumentTypeError('below', `below must be an integer, got ${show(below)}`);
    }
    if (below < 1 || below > word) {
      throw new ArgumentRangeError('below', `below must be 1 to 2^32, got ${below}`);
    }
    if (below === word) return this.uint32();
    // The high half of x * below; the few x that would make some values likelier are drawn anew.
    const uneven = word % below;
    for (;;) {
      const x = this.uint32();
      if (Math.imul(x, below) >>> 0 >= uneven) return highHalf(x, below);
    }
  }

  normal(): number {
    const radius = Math.sqrt(-2 * Math.log(1 - this.float()));
    return radius * Math.cos(2 * Math.PI * this.float());
  }
}

class StepRng extends Sequence implements Rng {
  readonly #seed: bigint;
  readonly #step: number;
  readonly #first: number;
  readonly #count: number;

  constructor(seed: bigint, step: number, first: number, count: number) {
    super(seed, 0, step >>> 0, (Math.floor(step / word) | 0x8000_0000) >>> 0);
    this.#seed = seed;
    this.#step = step;
    this.#first = first;
    this.#count = count;
  }

  at(index: number): Random {
    if (typeof index !== 'number' || !Number.isInteger(index)) {
      throw new ArgumentTypeError('index', `index must be an integer, got ${show(index)}`);
    }
    if (index < 0 || index >= this.#count) {
      throw new ArgumentRangeError(
        'index',
        `index is ${index}, and the batch has ${this.#count} records`,
        'OUT_OF_RANGE',
      );
    }
    const step = this.#step;
    return new Sequence(this.#seed, this.#first + index, step >>> 0, Math.floor(step / word));
  }
}

/**
 * The generator of a batch.
 *
 * @param first where its first record stands in the global batch
 * @param count its records
 */
export function rngOf(seed: bigint, step: number, first: number, count: number): Rng {
  return new StepRng(seed, step, first, count);
}

/** Ten rounds over the counter in `words`, in place. */
export function philox(words: Uint32Array, keyLow: number, keyHigh: number): void {
  let [c0 = 0, c1 = 0, c2 = 0, c3 = 0] = words;
  let k0 = keyLow;
  let k1 = keyHigh;
  for (let round = 0; round < 10; round += 1) {
    const high0 = highHalf(0xd251_1f53, c0);
    const low0 = Math.imul(0xd251_1f53, c0);
    const high1 = highHalf(0xcd9e_8d57, c2);
    const low1 = Math.imul(0xcd9e_8d57, c2);
    c0 = (high1 ^ c1 ^ k0) >>> 0;
    c1 = low1 >>> 0;
    c2 = (high0 ^ c3 ^ k1) >>> 0;
    c3 = low0 >>> 0;
    k0 = (k0 + 0x9e37_79b9) >>> 0;
    k1 = (k1 + 0xbb67_ae85) >>> 0;
  }
  words[0] = c0;
  words[1] = c1;
  words[2] = c2;
  words[3] = c3;
}

/** The upper 32 bits of a product of two u32. Each partial sum stays below 2^32. */
function highHalf(a: number, b: number): number {
  const aLow = a & 0xffff;
  const aHigh = a >>> 16;
  const bLow = b & 0xffff;
  const bHigh = b >>> 16;
  const middle = aHigh * bLow + ((aLow * bLow) >>> 16);
  const carried = aLow * bHigh + (middle & 0xffff);
  return (aHigh * bHigh + (middle >>> 16) + (carried >>> 16)) >>> 0;
}
