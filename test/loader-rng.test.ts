// Random numbers of transforms: the published generator, and what makes it one sequence per record.
import t from 'tap';
import { philox, type Random, type Rng, rngOf } from '../ts/loader/rng.js';
import { outcomeOf } from './support/outcome.js';

/** Known answers of Philox4x32-10, as the authors publish them: counter, key, result. */
const knownAnswers: readonly (readonly [
  readonly number[],
  readonly number[],
  readonly number[],
])[] = [
  [
    [0, 0, 0, 0],
    [0, 0],
    [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8],
  ],
  [
    [0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff],
    [0xffffffff, 0xffffffff],
    [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd],
  ],
  [
    [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
    [0xa4093822, 0x299f31d0],
    [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
  ],
];

t.test('the published vectors', async (t) => {
  for (const [counter, [low = 0, high = 0], result] of knownAnswers) {
    const words = Uint32Array.from(counter);
    philox(words, low, high);
    t.strictSame([...words], result);
  }
});

/** The ten rounds with big integers, word by word as the paper has them. */
function plainPhilox(counter: readonly bigint[], key: readonly bigint[]): bigint[] {
  let [c0 = 0n, c1 = 0n, c2 = 0n, c3 = 0n] = counter;
  let [k0 = 0n, k1 = 0n] = key;
  const mask = 0xffff_ffffn;
  for (let round = 0; round < 10; round += 1) {
    const p0 = 0xd251_1f53n * c0;
    const p1 = 0xcd9e_8d57n * c2;
    [c0, c1, c2, c3] = [(p1 >> 32n) ^ c1 ^ k0, p1 & mask, (p0 >> 32n) ^ c3 ^ k1, p0 & mask];
    k0 = (k0 + 0x9e37_79b9n) & mask;
    k1 = (k1 + 0xbb67_ae85n) & mask;
  }
  return [c0, c1, c2, c3];
}

const take = (random: Random, count: number): number[] =>
  Array.from({ length: count }, () => random.uint32());

t.test('key and counter are made of seed, step and position as documented', async (t) => {
  const seeds = [0n, 1n, 42n, 2n ** 53n + 1n, 2n ** 64n - 1n];
  const steps = [0, 1, 2 ** 32 - 1, 2 ** 32, 2 ** 53 - 1];
  for (const seed of seeds) {
    for (const step of steps) {
      const [low, high] = [BigInt(step) & 0xffff_ffffn, BigInt(step) >> 32n];
      const key = [seed & 0xffff_ffffn, seed >> 32n];
      const block = (number: bigint, position: bigint, flag: bigint): number[] =>
        plainPhilox([number, position, low, high | flag], key).map(Number);
      const rng = rngOf(seed, step, 100, 50);
      t.strictSame(take(rng, 8), [...block(0n, 0n, 0x8000_0000n), ...block(1n, 0n, 0x8000_0000n)]);
      t.strictSame(take(rng.at(7), 8), [...block(0n, 107n, 0n), ...block(1n, 107n, 0n)]);
    }
  }
});

t.test('a record has its sequence wherever it is, and from the beginning each time', async (t) => {
  const whole = rngOf(9n, 77, 0, 64);
  for (const world of [2, 3, 7, 64]) {
    for (let rank = 0; rank < world; rank += 1) {
      const from = Math.floor((rank * 64) / world);
      const to = Math.floor(((rank + 1) * 64) / world);
      const part = rngOf(9n, 77, from, to - from);
      t.strictSame(take(part, 3), take(rngOf(9n, 77, 0, 64), 3), 'of the whole step');
      for (let index = 0; index < to - from; index += 1) {
        t.strictSame(take(part.at(index), 2), take(whole.at(from + index), 2));
      }
    }
  }
  t.strictSame(take(whole.at(5), 4), take(whole.at(5), 4));
});

t.test('places share nothing', async (t) => {
  const firsts = new Set<number>();
  for (let step = 0; step < 100; step += 1) {
    const rng: Rng = rngOf(1n, step, 0, 40);
    for (let index = 0; index < 40; index += 1) firsts.add(rng.at(index).float());
  }
  t.equal(firsts.size, 4000, 'no two places begin alike');
});

t.test('ranges and their uniformity', async (t) => {
  const rng = rngOf(7n, 3, 0, 1);
  const count = 60_000;
  const bins = new Array<number>(6).fill(0);
  let sum = 0;
  let squares = 0;
  for (let draw = 0; draw < count; draw += 1) {
    const face = rng.int(6);
    bins[face] = (bins[face] ?? 0) + 1;
    const x = rng.float();
    if (x < 0 || x >= 1) t.fail(`float ${x}`);
    const z = rng.normal();
    sum += z;
    squares += z * z;
  }
  const expected = count / 6;
  const chi = bins.reduce((all, bin) => all + (bin - expected) ** 2 / expected, 0);
  // 5 degrees of freedom; the sequence is fixed, so this is no matter of luck.
  t.ok(chi < 20.5, `chi squared ${chi}`);
  t.ok(Math.abs(sum / count) < 0.02, `mean ${sum / count}`);
  t.ok(Math.abs(squares / count - 1) < 0.03, `variance ${squares / count}`);
  t.equal(rng.int(1), 0);
  for (const below of [2 ** 31 + 1, 2 ** 32 - 1, 2 ** 32]) {
    for (let draw = 0; draw < 100; draw += 1) {
      const value = rng.int(below);
      if (!(value >= 0 && value < below)) t.fail(`int(${below}) gave ${value}`);
    }
  }
});

t.test('what cannot be asked', async (t) => {
  const rng = rngOf(0n, 0, 0, 4);
  for (const below of [0, -1, 2 ** 32 + 1]) {
    t.equal(await outcomeOf(() => rng.int(below)), 'RangeError INVALID_ARGUMENT', String(below));
  }
  for (const below of [1.5, Number.NaN, '3', undefined, 3n]) {
    t.equal(await outcomeOf(() => rng.int(below as number)), 'TypeError INVALID_ARGUMENT');
  }
  for (const index of [-1, 4]) {
    t.equal(await outcomeOf(() => rng.at(index)), 'RangeError OUT_OF_RANGE', String(index));
  }
  t.equal(await outcomeOf(() => rng.at(0.5)), 'TypeError INVALID_ARGUMENT');
});
