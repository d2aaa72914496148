// Training a dictionary: what it refuses and how it says so, what it takes from its source, and that
// no sample, however odd, is more than an error. Which records are sampled: dict-sample.test.ts.

import { setImmediate as soon } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { Dense, ndarray, open, Ragged, type RaggedReader, trainDict } from '../ts/index.js';
import { Random } from './interop/random.mjs';
import { answerOf } from './support/child.js';
import { isFull, limitMs } from './support/limits.js';
import { codeOf, failureOf, outcomeOf, outcomeOfError } from './support/outcome.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same random cases again`);

const mib = 2 ** 20;

/** Records that look like what dictionaries are for. */
function lines(count: number, salt = 0): Uint8Array[] {
  return Array.from({ length: count }, (_, index) => {
    const id = index + salt;
    const text = `{"id": ${id}, "kind": "sample", "value": ${(id * 7919) % 1000}, "tag": "t${id % 17}"}`;
    return Uint8Array.from(Buffer.from(text));
  });
}

function raggedReader(records: readonly Uint8Array[]): RaggedReader {
  const at = scratch.fresh();
  const writer = Ragged.create(at, { codec: 'zstd', dtype: 'uint8', ndim: 1 });
  if (records.length > 0) {
    writer.appendSync(records.map((record) => ndarray('uint8', [record.length], record)));
  }
  writer.closeSync();
  return Ragged.open(at);
}

const same = (one: Uint8Array, other: Uint8Array): boolean => Buffer.from(one).equals(other);

t.test('too little to train on: what is needed and what came (B28)', async (t) => {
  using three = raggedReader(lines(3));
  using none = raggedReader([]);
  const sources: readonly (readonly [string, () => unknown, RegExp])[] = [
    [
      '6 records of 256 bytes',
      () => trainDict(Array(6).fill(new Uint8Array(256))),
      /7 .*6 samples/,
    ],
    ['one record of 1 MiB', () => trainDict([new Uint8Array(mib)]), /7 .*1 samples.*1048576 bytes/],
    ['no record', () => trainDict([]), /7 .*0 came/],
    ['an array of no record', () => trainDict(ndarray('uint8', [0], new Uint8Array(0))), /7 .*0/],
    ['a container of 3', () => trainDict(three), /7 .*3 samples/],
    ['an empty container', () => trainDict(none), /7 .*0 came/],
    [
      '7 records of 1 byte',
      () => trainDict(Array(7).fill(Uint8Array.of(1))),
      /8 bytes.*7 samples of 7/,
    ],
    ['a record over 4 MiB', () => trainDict([new Uint8Array(4 * mib + 1)]), /4 MiB.*4194305 bytes/],
    [
      'an array of records over 4 MiB',
      () => trainDict(ndarray('uint8', [2, 4 * mib + 1], new Uint8Array(8 * mib + 2))),
      /4 MiB.*4194305 bytes/,
    ],
  ];
  for (const [what, train, message] of sources) {
    const error = await failureOf(train);
    t.equal(outcomeOfError(error), 'LoaderxError DICTIONARY', what);
    t.match(error.message, message, what);
    t.doesNotThrow(() => JSON.stringify(error));
  }
});

t.test(
  'odd records: a dictionary of at most 32 KiB or DICTIONARY, twice the same (B30)',
  async (t) => {
    const random = new Random(seed, 'odd');
    const noise = (bytes: number): Uint8Array => {
      const record = new Uint8Array(bytes);
      random.fill(record);
      return record;
    };
    const sources: readonly (readonly [string, readonly Uint8Array[]])[] = [
      ['integers as text', Array.from({ length: 5000 }, (_, id) => Buffer.from(String(id)))],
      ['random bytes', Array.from({ length: 500 }, () => noise(300))],
      ['zeros', Array.from({ length: 500 }, () => new Uint8Array(300))],
      ['one distinct byte a record', Array.from({ length: 256 }, (_, id) => Uint8Array.of(id))],
      [
        'each record one byte over and over',
        Array.from({ length: 256 }, (_, id) => new Uint8Array(100).fill(id)),
      ],
      ['the same record', Array(100).fill(noise(500))],
      ['one large, many small', [noise(mib), ...Array.from({ length: 100 }, () => noise(3))]],
      ['lines', lines(2000)],
    ];
    let trained = 0;
    for (const [what, records] of sources) {
      const code = await codeOf(async () => {
        const dict = await trainDict(records);
        trained += 1;
        t.ok(dict.length >= 1 && dict.length <= 32_768, `${what}: ${dict.length} bytes`);
        t.ok(same(dict, await trainDict(records)), `${what}: the same bytes again`);
        await serves(t, what, dict, records.slice(0, 50));
      });
      t.match(code, /^(ok|DICTIONARY)$/, what);
    }
    t.ok(trained >= 3, `${trained} of them can be trained on`);
  },
);

/** A container made with the dictionary gives its records back. */
async function serves(
  t: Test,
  what: string,
  dictBytes: Uint8Array,
  records: readonly Uint8Array[],
) {
  const at = scratch.fresh();
  const writer = Ragged.create(at, { codec: 'zstd_dict', dictBytes, dtype: 'uint8', ndim: 1 });
  await writer.append(
    records.map((record) => ndarray('uint8', [record.length], Uint8Array.from(record))),
  );
  await writer.close();
  await using reader = Ragged.open(at, { dtype: 'uint8' });
  t.equal(reader.hasDict, true);
  const batch = await reader.slice();
  t.ok(
    batch.toArray().every(({ data }, id) => same(data, records[id] ?? new Uint8Array(0))),
    `${what}: records come back`,
  );
}

t.test('every source of the same records gives the same bytes', async (t) => {
  const count = 3000;
  const width = 64;
  const data = new Uint8Array(count * width);
  lines(count).forEach((line, id) => {
    data.set(line.subarray(0, width), id * width);
  });
  const record = (id: number): Uint8Array => data.subarray(id * width, (id + 1) * width);
  const ids = Array.from({ length: count }, (_, id) => id);
  const at = scratch.fresh();
  const writer = Dense.create(at, { codec: 'raw', dtype: 'uint8', itemShape: [width] });
  writer.appendSync(ndarray('uint8', [count, width], data));
  writer.closeSync();
  await using dense = Dense.open(at);
  await using ragged = raggedReader(ids.map(record));
  await using any = open(at);

  const expected = await trainDict(ndarray('uint8', [count, width], data));
  const sources = {
    'an array of another rank': ndarray('uint8', [count, 8, 8], data),
    'a list': ids.map(record),
    'an iterator': ids.map(record).values(),
    'a list of arrays': ids.map((id) => ndarray('uint8', [width], record(id))),
    'a list of arrays of wider items': ids.map((id) =>
      ndarray('uint32', [4, 4], new Uint32Array(Uint8Array.from(record(id)).buffer)),
    ),
    'a dense reader': dense,
    'a ragged reader': ragged,
    'a reader of open()': any,
    'a gathered ragged batch': await ragged.slice(),
    'one buffer that is filled anew': (function* () {
      const buffer = new Uint8Array(width);
      for (const id of ids) {
        buffer.set(record(id));
        yield buffer;
      }
    })(),
  };
  for (const [what, source] of Object.entries(sources)) {
    t.ok(same(await trainDict(source), expected), what);
  }
  const several = await Promise.all([trainDict(dense), trainDict(ragged), trainDict(lines(3000))]);
  t.ok(
    several.slice(0, 2).every((dict) => same(dict, expected)),
    'at the same time',
  );
});

t.test('an iterable is consumed up to 4 MiB, and one record further', async (t) => {
  let pulled = 0;
  let left = 0;
  const endless = {
    *[Symbol.iterator]() {
      try {
        for (;;) {
          pulled += 1;
          yield Uint8Array.from(Buffer.from(`${'some text '.repeat(1638)}${pulled % 9}12`));
        }
      } finally {
        left += 1;
      }
    },
  };
  const recordBytes = 16_383;
  const dict = await trainDict(endless);
  t.equal(pulled, Math.floor((4 * mib) / recordBytes) + 1, 'one record beyond what is used');
  t.equal(left, 1, 'and left as by a for loop');
  t.ok(dict.length > 0);

  const exact = Array.from({ length: 4096 }, (_, id) => new Uint8Array(1024).fill(id % 251));
  const more = [...exact, ...lines(5000)];
  t.ok(same(await trainDict(exact), await trainDict(more)), 'what is over 4 MiB does not matter');

  const mine = new Error('mine');
  const error = await failureOf(() =>
    trainDict(
      (function* () {
        yield* lines(50);
        throw mine;
      })(),
    ),
  );
  t.equal(error, mine, 'what the iterable throws comes out');
  t.equal(
    await outcomeOf(() => trainDict((async function* () {})() as never)),
    'TypeError INVALID_ARGUMENT',
    'an async iterable is refused',
  );
});

t.test('a record of the wrong kind is named', async (t) => {
  for (const [what, record, expected] of [
    ['text', 'abc', 'TypeError INVALID_ARGUMENT'],
    ['a number', 3, 'TypeError INVALID_ARGUMENT'],
    ['a typed array that is no Uint8Array', new Float32Array(4), 'TypeError INVALID_ARGUMENT'],
    ['nothing', undefined, 'TypeError INVALID_ARGUMENT'],
    ['an empty one', new Uint8Array(0), 'RangeError INVALID_ARGUMENT'],
  ] as const) {
    const error = await failureOf(() => trainDict([...lines(30), record] as never));
    t.equal(outcomeOfError(error), expected, what);
    t.match(error.message, 'record 30', what);
  }
});

t.test('a reader that is closed while it is trained on', async (t) => {
  const records = lines(20_000);
  for (let turns = 0; turns < 6; turns += 1) {
    const reader = raggedReader(records);
    const training = trainDict(reader);
    for (let turn = 0; turn < turns; turn += 1) await soon();
    await reader.close();
    t.match(await codeOf(() => training), /^(ok|CLOSED)$/, `after ${turns} turns`);
  }
});

t.test('the event loop runs on while training works', async (t) => {
  const records = lines(30_000);
  const training = trainDict(records);
  let ticks = 0;
  const timer = setInterval(() => {
    ticks += 1;
  }, 1);
  await training;
  clearInterval(timer);
  t.ok(ticks >= 5, `timers fired ${ticks} times`);
});

t.test('no sample, however small or odd, raises a signal', async (t) => {
  const ends = (await answerOf(t, 'trainer', ['degenerate'])) as Record<string, number>;
  const { 'a dictionary': trained = 0, DICTIONARY: refused = 0, ...others } = ends;
  t.strictSame(others, {});
  t.equal(trained + refused, 5 * 16 * 16);
  t.ok(trained > 0 && refused > 0, JSON.stringify(ends));
});

t.test('a large store: the sample is bounded, and so are time and memory (B31)', async (t) => {
  const mibs = isFull ? '5120' : '256';
  const answer = await answerOf(t, 'trainer', ['large', scratch.folder(), mibs]);
  const { records, dictBytes, ms, grownMib } = answer as Record<string, number>;
  t.equal(records, Number(mibs) * 1024);
  t.ok(dictBytes !== undefined && dictBytes > 0 && dictBytes <= 32_768, `${dictBytes} bytes`);
  t.ok(ms !== undefined && ms < limitMs(5000), `${ms} ms`);
  t.ok(grownMib !== undefined && grownMib < 64, `${grownMib} MiB more`);
});
