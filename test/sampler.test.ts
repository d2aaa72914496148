// The sampler: index for index the Python package's, at every step, and nothing else.
//
// `golden/sampler.txt` is made by a second implementation (scripts/make-sampler-golden.py). The
// vectors recorded from the Python packages themselves are read when the project's shared folder
// lies beside the repository.
import { existsSync, readFileSync } from 'node:fs';
import t from 'tap';
import { LoaderxError, Sampler, type SamplerMode, type SamplerOptions } from '../ts/index.js';
import { Random } from './interop/random.mjs';

const modes = ['sequential', 'iid', 'cyclic'] as const;
const streams = ['2.4', '2.8'] as const;
type StreamName = (typeof streams)[number];

const last = 2n ** 64n - 1n;
const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same random cases again`);

/** A sampler for the time of `use`. */
function withSampler<R>(options: SamplerOptions, use: (sampler: Sampler) => R): R {
  const sampler = new Sampler(options);
  try {
    return use(sampler);
  } finally {
    sampler.close();
  }
}

/** The next `count` batches, copied. */
function draws(sampler: Sampler, count: number): bigint[][] {
  return Array.from({ length: count }, () => [...sampler.draw()]);
}

function equalIds(actual: ArrayLike<bigint>, expected: readonly bigint[]): boolean {
  return actual.length === expected.length && expected.every((id, index) => id === actual[index]);
}

/** The first `count` ids, in one array; `count` is a multiple of the batch. */
function stretch(sampler: Sampler, count: number): BigUint64Array {
  const ids = new BigUint64Array(count);
  for (let filled = 0; filled < count; ) {
    const batch = sampler.draw();
    ids.set(batch, filled);
    filled += batch.length;
  }
  return ids;
}

/** Whether no id comes twice. */
function distinct(ids: BigUint64Array): boolean {
  const sorted = ids.slice().sort();
  return sorted.every((id, index) => index === 0 || id !== sorted[index - 1]);
}

/**
 * How many standard deviations the chi-square statistic of `counts` is from what a uniform choice
 * gives (Wilson and Hilferty). Beyond 3.29 on either side lies p < 0.001: too uneven, or too even.
 */
function deviation(counts: ArrayLike<number>): number {
  const list = Array.from(counts);
  const expected = list.reduce((sum, count) => sum + count, 0) / list.length;
  const square = list.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
  const freedom = list.length - 1;
  const spread = 2 / (9 * freedom);
  return (Math.cbrt(square / freedom) - (1 - spread)) / Math.sqrt(spread);
}

const deviationMax = 3.29;

/** Counts of `ids` in equal parts of 0 .. length - 1. */
function binned(ids: BigUint64Array, length: bigint, binCount: number): Uint32Array {
  const counts = new Uint32Array(binCount);
  for (const id of ids) {
    const bin = Number((id * BigInt(binCount)) / length);
    counts[bin] = (counts[bin] ?? 0) + 1;
  }
  return counts;
}

/** How often each id below `length` came: the low halves alone, which is much faster. */
function counted(ids: BigUint64Array, length: number): Uint32Array {
  const counts = new Uint32Array(length);
  const halves = new Uint32Array(ids.buffer, ids.byteOffset, ids.length * 2);
  for (let low = 0; low < halves.length; low += 2) {
    const id = halves[low] ?? 0;
    counts[id] = (counts[id] ?? 0) + 1;
  }
  return counts;
}

interface GoldenCase {
  readonly options: SamplerOptions;
  readonly batches: readonly (readonly bigint[])[];
}

function goldenCases(): GoldenCase[] {
  const text = readFileSync(new URL('golden/sampler.txt', import.meta.url), 'utf8');
  const lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  return lines.map((line) => {
    const [head = '', tail = ''] = line.split(': ');
    const [stream, mode, length = '', batchSize, seedText = '', step = ''] = head.split(' ');
    return {
      options: {
        length: BigInt(length),
        batchSize: Number(batchSize),
        mode: mode as SamplerMode,
        seed: BigInt(seedText),
        step: BigInt(step),
        stream: stream as StreamName,
      },
      batches: tail.split(' / ').map((batch) => batch.split(' ').map((id) => BigInt(id))),
    };
  });
}

t.test('every golden batch, by `step` and by seek', async (t) => {
  const cases = goldenCases();
  t.ok(cases.length > 300, `${cases.length} cases are read`);
  const wrong: string[] = [];
  for (const { options, batches } of cases) {
    const { step = 0n, ...rest } = options;
    const begun = withSampler(options, (sampler) => draws(sampler, batches.length));
    const sought = withSampler(rest, (sampler) => {
      sampler.draw();
      sampler.seek(step);
      return draws(sampler, batches.length);
    });
    for (const given of [begun, sought]) {
      if (batches.every((batch, index) => equalIds(given[index] ?? [], batch))) continue;
      wrong.push(Object.values(options).join(' '));
    }
  }
  t.same(wrong, []);
});

// Integers above 2^53 are decimal strings in the recorded vectors.
type Recorded = number | string;
const fixture = (name: string): URL => new URL(`../../shared/fixtures/${name}`, import.meta.url);

interface Recording24 {
  readonly cases: readonly {
    readonly mode: SamplerMode;
    readonly length: Recorded;
    readonly batch: number;
    readonly seed: Recorded;
    readonly ops: readonly { readonly seek?: Recorded; readonly next?: readonly Recorded[] }[];
  }[];
}

const recorded24 = fixture('sampler.json');
t.test(
  'every draw recorded from loaderx 2.4.6',
  { skip: existsSync(recorded24) ? false : 'no shared folder beside the repository' },
  async (t) => {
    const { cases } = JSON.parse(readFileSync(recorded24, 'utf8')) as Recording24;
    let drawCount = 0;
    const wrong: string[] = [];
    for (const { mode, length, batch, seed: caseSeed, ops } of cases) {
      const options = { length: BigInt(length), batchSize: batch, mode, seed: BigInt(caseSeed) };
      withSampler(options, (sampler) => {
        for (const op of ops) {
          if (op.seek !== undefined) sampler.seek(BigInt(op.seek));
          if (op.next === undefined) continue;
          drawCount += 1;
          const step = sampler.step;
          if (!equalIds(sampler.draw(), op.next.map(BigInt))) {
            wrong.push(`${mode} ${length} ${batch} ${caseSeed} at ${step}`);
          }
        }
      });
    }
    t.ok(drawCount > 1000, `${drawCount} draws are compared`);
    t.same(wrong, []);
  },
);

interface Recording28 {
  readonly cases: readonly {
    readonly mode: SamplerMode;
    readonly length: Recorded;
    readonly batch: number;
    readonly seed: Recorded;
    readonly step: Recorded;
    readonly next: readonly Recorded[];
  }[];
}

const recorded28 = fixture('sampler-2.8.json');
t.test(
  'every draw recorded from loaderx 2.8.19',
  { skip: existsSync(recorded28) ? false : 'no shared folder beside the repository' },
  async (t) => {
    const { cases } = JSON.parse(readFileSync(recorded28, 'utf8')) as Recording28;
    const wrong: string[] = [];
    for (const { mode, length, batch, seed: caseSeed, step, next } of cases) {
      const options: SamplerOptions = {
        length: BigInt(length),
        batchSize: batch,
        mode,
        seed: BigInt(caseSeed),
        step: BigInt(step),
        stream: '2.8',
      };
      const right = withSampler(options, (sampler) => equalIds(sampler.draw(), next.map(BigInt)));
      if (!right) wrong.push(`${mode} ${length} ${batch} ${caseSeed} at ${step}`);
    }
    t.ok(cases.length > 200, `${cases.length} draws are compared`);
    t.same(wrong, []);
  },
);

t.test('cyclic: every length up to 2,048 is permuted', async (t) => {
  const random = new Random(seed, 'lengths up to 2048');
  const wrong: string[] = [];
  const seen = new Uint32Array(2048);
  let mark = 0;
  for (let length = 1; length <= 2048; length += 1) {
    // A batch of everything shows the whole permutation; a smaller one every full batch of it.
    for (const batchSize of [length, random.between(1, length)]) {
      const cycle = random.between(0, 5);
      const stepCount = Math.floor(length / batchSize);
      const options: SamplerOptions = {
        length,
        batchSize,
        mode: 'cyclic',
        seed: random.u64(),
        step: cycle * stepCount,
      };
      mark += 1;
      withSampler(options, (sampler) => {
        for (let step = 0; step < stepCount; step += 1) {
          for (const id of sampler.draw()) {
            const index = Number(id);
            if (index >= length || seen[index] === mark) wrong.push(`${length} / ${batchSize}`);
            else seen[index] = mark;
          }
        }
      });
    }
  }
  t.same(wrong, []);
});

t.test('cyclic: 100 random lengths up to 2^40', async (t) => {
  const random = new Random(seed, 'lengths up to 2^40');
  const idCountMax = 1 << 15;
  const wrong: string[] = [];
  let wholeCount = 0;
  for (let round = 0; round < 100; round += 1) {
    const length = random.magnitude(2, 2 ** 40);
    const batchSize = random.magnitude(1, Math.min(length, 1024));
    const stepsPerCycle = Math.floor(length / batchSize);
    const stepCount = Math.min(stepsPerCycle, Math.ceil(idCountMax / batchSize));
    if (stepCount === stepsPerCycle) wholeCount += 1;
    const cycle = random.between(0, 1000);
    const options: SamplerOptions = { length, batchSize, mode: 'cyclic', seed: random.u64() };
    withSampler(options, (sampler) => {
      // A stretch somewhere in the cycle, and the end of it, without counting a step twice.
      const first = random.between(0, Math.floor((stepsPerCycle - stepCount) / 2));
      const parts = [stretchFrom(first, stepCount)];
      if (first + 2 * stepCount <= stepsPerCycle) {
        parts.push(stretchFrom(stepsPerCycle - stepCount, stepCount));
      }
      const ids = new BigUint64Array(parts.reduce((sum, part) => sum + part.length, 0));
      parts.reduce((filled, part) => {
        ids.set(part, filled);
        return filled + part.length;
      }, 0);
      if (!distinct(ids) || ids.some((id) => id >= BigInt(length))) {
        wrong.push(JSON.stringify(sampler));
      }

      function stretchFrom(step: number, count: number): BigUint64Array {
        sampler.seek(BigInt(cycle) * BigInt(stepsPerCycle) + BigInt(step));
        return stretch(sampler, count * batchSize);
      }
    });
  }
  t.same(wrong, []);
  t.ok(wholeCount > 0, `${wholeCount} of the 100 were seen as a whole`);
});

t.test('iid and cyclic reach ids over 2^32, and every part alike', async (t) => {
  for (const length of [2n ** 33n + 7n, last]) {
    for (const mode of ['iid', 'cyclic'] as const) {
      for (const stream of streams) {
        const ids = withSampler({ length, batchSize: 8000, mode, stream }, (sampler) =>
          stretch(sampler, 1_000_000),
        );
        const name = `${mode} of ${length}, stream ${stream}`;
        t.ok(
          ids.every((id) => id < length),
          `${name}: all below the length`,
        );
        t.ok(
          ids.some((id) => id >= 2n ** 32n),
          `${name}: some over 2^32`,
        );
        t.ok(Math.abs(deviation(binned(ids, length, 64))) < deviationMax, `${name}: even`);
        if (mode === 'cyclic') t.ok(distinct(ids), `${name}: distinct`);
      }
    }
  }
});

t.test('iid: chi-square over all ids of small and odd lengths', async (t) => {
  for (const length of [2, 3, 7, 1000, 65_537]) {
    for (const stream of streams) {
      for (const caseSeed of [0, 42, last]) {
        const ids = withSampler(
          { length, batchSize: 8192, mode: 'iid', seed: caseSeed, stream },
          (sampler) => stretch(sampler, 8192 * 100),
        );
        const distance = deviation(counted(ids, length));
        t.ok(Math.abs(distance) < deviationMax, `${length}, seed ${caseSeed}, stream ${stream}`);
      }
    }
  }
});

t.test('a sampler at step k gives what one gives that drew k times', async (t) => {
  for (const [length, batchSize] of [
    [10, 3],
    [12, 4],
    [1000, 64],
    [5, 5],
    [1, 1],
    [3, 8],
    [2n ** 40n, 7],
  ] as const) {
    for (const mode of modes) {
      for (const stream of streams) {
        const stepCount = Math.min(64, 4 * Math.max(1, Math.floor(Number(length) / batchSize)));
        const options: SamplerOptions = { length, batchSize, mode, seed: 7, stream };
        const wrong: number[] = [];
        withSampler(options, (walker) => {
          for (let step = 0; step < stepCount; step += 1) {
            const atStep = walker.step;
            const expected = [...walker.draw()];
            const right = withSampler({ ...options, step }, (fresh) => {
              const began = fresh.step;
              const first = equalIds(fresh.draw(), expected);
              fresh.seek(stepCount);
              fresh.seek(BigInt(step));
              return began === atStep && first && equalIds(fresh.draw(), expected);
            });
            if (!right || atStep !== BigInt(step)) wrong.push(step);
          }
        });
        t.same(wrong, [], `${mode} of ${length} by ${batchSize}, stream ${stream}`);
      }
    }
  }
});

t.test('a batch above the length: ids again, or whole cycles', async (t) => {
  for (const stream of streams) {
    const options = { length: 3, batchSize: 8, stream };
    t.same(
      withSampler({ ...options, mode: 'sequential' }, (sampler) => draws(sampler, 2)),
      [
        [0n, 1n, 2n, 0n, 1n, 2n, 0n, 1n],
        [2n, 0n, 1n, 2n, 0n, 1n, 2n, 0n],
      ],
    );
    const independent = withSampler({ ...options, mode: 'iid' }, (sampler) => draws(sampler, 100));
    t.ok(independent.every((batch) => batch.length === 8 && batch.every((id) => id < 3n)));
    t.equal(new Set(independent.flat()).size, 3);
    const cycles = withSampler({ ...options, mode: 'cyclic' }, (sampler) => draws(sampler, 100));
    t.ok(cycles.every((batch) => equalIds(batch.slice().sort(), [0n, 1n, 2n])));
    t.ok(new Set(cycles.map(String)).size > 1, 'cycles differ');
    // The original makes a batch this large fail; here only the ids that come need memory.
    const huge = { length: 3, batchSize: Number.MAX_SAFE_INTEGER, mode: 'cyclic', stream } as const;
    t.equal(
      withSampler(huge, (sampler) => sampler.draw().length),
      3,
    );
  }
});

// That another process gives the same ids is what the golden batches show.
t.test('cycles of one seed differ, and so do seeds', async (t) => {
  const options = { length: 100, batchSize: 100, mode: 'cyclic' } as const;
  const sameCycles: number[] = [];
  const firstCycles = new Set<string>();
  for (let caseSeed = 0; caseSeed < 1000; caseSeed += 1) {
    const [first, second] = withSampler({ ...options, seed: caseSeed }, (sampler) =>
      draws(sampler, 2),
    );
    if (String(first) === String(second)) sameCycles.push(caseSeed);
    firstCycles.add(String(first));
  }
  t.same(sameCycles, []);
  t.equal(firstCycles.size, 1000);
});

t.test('seeds are exact in all 64 bits, as number or bigint; 42 when not given', async (t) => {
  const first = (caseSeed: number | bigint | undefined, mode: SamplerMode, stream: StreamName) =>
    String(
      withSampler(
        {
          length: 2 ** 40,
          batchSize: 16,
          mode,
          stream,
          ...(caseSeed === undefined ? {} : { seed: caseSeed }),
        },
        (sampler) => [...sampler.draw()],
      ),
    );
  for (const stream of streams) {
    for (const mode of ['iid', 'cyclic'] as const) {
      t.equal(first(1, mode, stream), first(1n, mode, stream));
      t.equal(first(undefined, mode, stream), first(42, mode, stream));
      const odd = [0, 1, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n, last - 1n, last];
      t.equal(new Set(odd.map((caseSeed) => first(caseSeed, mode, stream))).size, odd.length);
    }
  }
});

t.test('the last steps: stream 2.4 goes on, 2.8 ends', async (t) => {
  for (const mode of modes) {
    const options: SamplerOptions = { length: 10, batchSize: 3, mode, stream: '2.8', step: last };
    withSampler(options, (sampler) => {
      const batch = [...sampler.draw()];
      t.throws(() => sampler.draw(), { name: 'LoaderxError', code: 'OUT_OF_RANGE' });
      t.equal(sampler.step, last, 'there is no later step to stand at');
      sampler.seek(last);
      t.same([...sampler.draw()], batch, 'a seek makes it draw again');
    });
    if (mode === 'iid') continue; // There the last step is centuries of draws away.
    withSampler({ ...options, stream: '2.4' }, (sampler) => {
      sampler.draw();
      t.equal(sampler.step, 0n);
      t.equal(sampler.draw().length, 3);
    });
  }
});

t.test('a draw is borrowed until the next one', async (t) => {
  withSampler({ length: 100, batchSize: 4, mode: 'sequential' }, (sampler) => {
    const first = sampler.draw();
    t.ok(first instanceof BigUint64Array);
    t.same([...first], [0n, 1n, 2n, 3n]);
    const second = sampler.draw();
    t.equal(second, first, 'the same array');
    t.same([...second], [4n, 5n, 6n, 7n]);
  });
});

t.test('iteration is endless and moves the sampler itself', async (t) => {
  withSampler({ length: 10, batchSize: 2, mode: 'sequential' }, (sampler) => {
    let count = 0;
    for (const ids of sampler) {
      t.same([...ids], [BigInt((2 * count) % 10), BigInt((2 * count + 1) % 10)]);
      count += 1;
      if (count === 7) break;
    }
    t.equal(sampler.step, 7n, 'leaving the loop leaves the sampler open, where it stands');
    for (const ids of sampler) {
      t.same([...ids], [4n, 5n]);
      break;
    }
    t.equal(sampler.step, 8n);
  });
});

t.test('observing a sampler changes nothing', async (t) => {
  for (const mode of modes) {
    const options = { length: 1000, batchSize: 10, mode };
    const expected = withSampler(options, (sampler) => draws(sampler, 20));
    withSampler(options, (sampler) => {
      const given = expected.map(() => {
        for (let look = 0; look < 100; look += 1) void sampler.step;
        void JSON.stringify(sampler);
        return [...sampler.draw()];
      });
      t.same(given, expected, mode);
    });
  }
});

t.test('seekAsync goes where seek goes, while the event loop turns', async (t) => {
  for (const mode of modes) {
    for (const stream of streams) {
      const options: SamplerOptions = { length: 1_000_003, batchSize: 1000, mode, stream };
      const expected = withSampler({ ...options, step: 50_000 }, (sampler) => draws(sampler, 2));
      const sampler = new Sampler(options);
      let turnCount = 0;
      let settled = false;
      const turn = (): void => {
        turnCount += 1;
        if (!settled) setImmediate(turn);
      };
      setImmediate(turn);
      t.equal(await sampler.seekAsync(50_000), undefined);
      settled = true;
      t.equal(sampler.step, 50_000n);
      t.same(draws(sampler, 2), expected, `${mode}, stream ${stream}`);
      // 50 million draws take tens of milliseconds.
      if (mode === 'iid' && stream === '2.4') t.ok(turnCount > 10, 'the loop was not blocked');
      await sampler.seekAsync(49_999n);
      t.equal(sampler.step, 49_999n, 'and back');
      sampler.close();
    }
  }
});

t.test('an aborted seekAsync leaves the sampler where it was', async (t) => {
  const options: SamplerOptions = { length: 1000, batchSize: 256, mode: 'iid' };
  const expected = withSampler(options, (sampler) => draws(sampler, 4));
  const sampler = new Sampler(options);
  t.same(draws(sampler, 2), expected.slice(0, 2));
  const reason = new Error('enough');
  const controller = new AbortController();
  const far = sampler.seekAsync(10 ** 15, { signal: controller.signal }); // Years.
  const busy = { name: 'LoaderxError', code: 'BUSY' };
  t.throws(() => sampler.draw(), busy);
  t.throws(() => sampler.seek(0), busy);
  await t.rejects(sampler.seekAsync(0), busy);
  setTimeout(() => controller.abort(reason), 20);
  const error: unknown = await far.then(
    () => undefined,
    (caught: unknown) => caught,
  );
  t.ok(error instanceof LoaderxError);
  t.match(error, { code: 'ABORTED', cause: reason });
  t.equal(sampler.step, 2n);
  t.same(draws(sampler, 1), expected.slice(2, 3));
  await t.rejects(sampler.seekAsync(10 ** 15, { signal: controller.signal }), {
    code: 'ABORTED',
    cause: reason,
  });
  await t.rejects(sampler.seekAsync(0, { signal: AbortSignal.abort() }), { code: 'ABORTED' });
  t.equal(sampler.step, 3n);
  t.same(draws(sampler, 1), expected.slice(3));
  sampler.close();
});

t.test('wrong arguments are typed errors that name the argument', async (t) => {
  const good: SamplerOptions = { length: 10, batchSize: 3, mode: 'iid' };
  const notNumbers: readonly unknown[] = ['1', null, true, {}, [1], Symbol('one'), () => 1];
  const notWhole: readonly unknown[] = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53];

  const refusal = (run: () => unknown): { kind: string; code?: unknown; field?: unknown } => {
    try {
      run();
    } catch (error) {
      const kind = error instanceof TypeError ? 'TypeError' : 'RangeError';
      if (error instanceof TypeError || error instanceof RangeError) {
        t.doesNotThrow(() => JSON.stringify(error), 'an argument error is JSON-safe');
        return { kind, ...('code' in error ? { code: error.code } : {}), ...fieldOf(error) };
      }
      throw error;
    }
    return { kind: 'accepted' };
  };
  const fieldOf = (error: object): { field?: unknown } =>
    'field' in error ? { field: error.field } : {};
  const make = (change: Record<string, unknown>) => () =>
    new Sampler({ ...good, ...change } as unknown as SamplerOptions);

  for (const field of ['length', 'batchSize', 'seed', 'step']) {
    for (const value of notNumbers) {
      t.match(
        refusal(make({ [field]: value })),
        { kind: 'TypeError', code: 'INVALID_ARGUMENT', field },
        `${field} ${String(value)}`,
      );
    }
    for (const value of notWhole) {
      t.match(
        refusal(make({ [field]: value })),
        { kind: /^(Type|Range)Error$/, code: /^(INVALID_ARGUMENT|OUT_OF_RANGE)$/, field },
        `${field} ${String(value)}`,
      );
    }
  }
  for (const field of ['length', 'seed', 'step']) {
    for (const value of [-1n, last + 1n]) {
      t.match(
        refusal(make({ [field]: value })),
        { kind: 'RangeError', field },
        `${field} ${value}`,
      );
    }
  }
  for (const field of ['length', 'batchSize']) {
    t.match(refusal(make({ [field]: 0 })), { kind: 'RangeError', field }, `${field} 0`);
    t.match(refusal(make({ [field]: undefined })), { kind: 'TypeError', field }, `no ${field}`);
  }
  t.match(refusal(make({ length: 0n })), { kind: 'RangeError', field: 'length' });
  t.match(refusal(make({ batchSize: Number.MAX_SAFE_INTEGER })), {
    kind: 'RangeError',
    code: /^(TOO_LARGE|OUT_OF_RANGE|INVALID_ARGUMENT)$/,
    field: 'batchSize',
  });
  for (const [field, value] of [
    ['mode', 'random'],
    ['mode', 1],
    ['mode', undefined],
    ['stream', '2.5'],
    ['stream', 2.4],
  ] as const) {
    t.match(
      refusal(make({ [field]: value })),
      { kind: /^(Type|Range)Error$/, code: 'INVALID_ARGUMENT', field },
      `${field} ${String(value)}`,
    );
  }
  for (const options of [undefined, null, 10]) {
    t.match(
      refusal(() => new Sampler(options as unknown as SamplerOptions)),
      {
        kind: 'TypeError',
        code: 'INVALID_ARGUMENT',
      },
    );
  }

  const sampler = new Sampler(good);
  sampler.seek(5);
  for (const value of [...notNumbers, ...notWhole, -1n, last + 1n, undefined]) {
    const step = value as number;
    const kind = /^(Type|Range)Error$/;
    t.match(
      refusal(() => sampler.seek(step)),
      { kind, field: 'step' },
      `seek ${String(value)}`,
    );
    await t.rejects(sampler.seekAsync(step), { name: kind, field: 'step' });
  }
  const signal = 'soon' as unknown as AbortSignal;
  await t.rejects(sampler.seekAsync(1, { signal }), { name: 'TypeError', field: 'signal' });
  t.equal(sampler.step, 5n, 'none of them moved it');
  t.equal(sampler.draw().length, 3, 'and it draws');
  sampler.close();
});

t.test('a closed sampler says so', async (t) => {
  const closed = { name: 'LoaderxError', code: 'CLOSED' };
  const sampler = new Sampler({ length: 10, batchSize: 3, mode: 'cyclic' });
  sampler.draw();
  sampler.close();
  sampler.close();
  t.throws(() => sampler.draw(), closed);
  t.throws(() => sampler.seek(1), closed);
  await t.rejects(sampler.seekAsync(1), closed);
  t.throws(() => sampler[Symbol.iterator]().next(), closed);

  const scoped = new Sampler({ length: 10, batchSize: 3, mode: 'cyclic' });
  scoped[Symbol.dispose]();
  t.throws(() => scoped.draw(), closed);
});

t.test('state and errors survive JSON', async (t) => {
  const step = 2n ** 53n + 1n;
  const options: SamplerOptions = {
    length: last,
    batchSize: 3,
    mode: 'cyclic',
    seed: step,
    step,
    stream: '2.8',
  };
  withSampler(options, (sampler) => {
    t.type(sampler.step, 'bigint');
    t.equal(sampler.step, step, 'a step above 2^53 is exact');
    const saved = JSON.parse(JSON.stringify({ sampler, step: String(sampler.step) })) as {
      sampler: Record<string, unknown>;
      step: string;
    };
    t.same(saved.sampler, {
      length: String(last),
      batchSize: 3,
      mode: 'cyclic',
      seed: String(step),
      step: String(step),
      stream: '2.8',
    });
    const expected = draws(sampler, 2);
    const resumed = withSampler({ ...options, step: BigInt(saved.step) }, (copy) => draws(copy, 2));
    t.same(resumed, expected);

    sampler.seek(last);
    sampler.draw();
    let failure: unknown;
    try {
      sampler.draw();
    } catch (error) {
      failure = error;
    }
    t.match(JSON.parse(JSON.stringify(failure)), { code: 'OUT_OF_RANGE', message: String });
  });
});
