// Which records a dictionary is trained on: NumPy's linspace, index for index.
import { createHash } from 'node:crypto';
import t from 'tap';
import { strided, trainDict } from '../ts/dict.js';

// Records, bytes of each, how many are taken, and the hash of their indices as NumPy 2.4.6 gives
// them: np.unique(np.linspace(0, n - 1, k).astype(np.int64)), joined by commas.
const recorded: readonly (readonly [number, number, number, string])[] = [
  [1, 10, 1, '5feceb66ffc86f38'],
  [7, 1, 7, '594a7c1b42ceaed6'],
  [1000, 4096, 1000, 'a1002f575c7074b1'],
  [1025, 4096, 1024, '3f8c43579b7b1d55'],
  [100_000, 784, 5349, 'a3bdbbecdd86066d'],
  [1_000_000, 572, 7332, '84924b7bd21c83ee'],
  [12_345_678, 37, 113_359, '369fe9a9f3e138df'],
  [2 ** 33 + 7, 2048, 2048, 'c4aa759d00222a15'],
  [10 ** 12, 100_000, 41, '01647a44c1b08bf6'],
  [2 ** 53 - 1, 147_456, 28, 'd170a190e007aad6'],
  [3, 4_194_304, 1, '5feceb66ffc86f38'],
];

t.test('the sampled indices are those of NumPy', async (t) => {
  for (const [count, recordBytes, taken, hash] of recorded) {
    const indices = strided(count, recordBytes);
    t.equal(indices.length, taken);
    const text = createHash('sha256').update(indices.join(',')).digest('hex');
    t.equal(text.slice(0, 16), hash, `${count} records of ${recordBytes} bytes`);
  }
});

t.test('ends are included, indices ascend, the budget holds', async (t) => {
  for (const [count, recordBytes] of [
    [2, 1],
    [5000, 1000],
    [4_194_305, 1],
    [100, 4_000_000],
  ] as const) {
    const indices = strided(count, recordBytes);
    t.equal(indices[0], 0);
    if (indices.length > 1) t.equal(indices.at(-1), count - 1);
    t.ok(indices.every((id, index) => index === 0 || id > (indices[index - 1] ?? 0)));
    t.ok(indices.length * recordBytes <= 4 * 2 ** 20);
  }
});

t.test('what is no source', async (t) => {
  for (const source of [undefined, null, 3, 'text', new Uint8Array(100), {}, { dtype: 'int8' }]) {
    await t.rejects(trainDict(source as never), { name: 'TypeError', code: 'INVALID_ARGUMENT' });
  }
  const single = { dtype: 'uint8', shape: [], data: new Uint8Array(1) } as const;
  await t.rejects(trainDict(single), { name: 'TypeError', message: /along axis 0/ });
  await t.rejects(trainDict([new Uint8Array(3), new Uint8Array(0)]), {
    name: 'RangeError',
    message: 'record 1 of source is empty',
  });
  await t.rejects(trainDict([new Float32Array(1) as never]), { name: 'TypeError' });
  const hollow = { dtype: 'uint8', shape: [3, 0], data: new Uint8Array(0) } as const;
  await t.rejects(trainDict(hollow), { name: 'RangeError', message: /zero bytes/ });
});

t.test('too little to train on says what is needed and what came', async (t) => {
  const none = { dtype: 'uint8', shape: [0, 4], data: new Uint8Array(0) } as const;
  for (const source of [[], none]) {
    await t.rejects(trainDict(source), {
      name: 'LoaderxError',
      code: 'DICTIONARY',
      message: /7 records or more .* 0 came/,
    });
  }
  await t.rejects(trainDict([new Uint8Array(4 * 2 ** 20 + 1)]), {
    code: 'DICTIONARY',
    message: /record 0 alone has 4194305 bytes/,
  });
});
