// Ragged records as they are stored, and where windows end.
import t from 'tap';
import { dtypeOf } from '../ts/dtype.js';
import { ndarray } from '../ts/ndarray.js';
import type { Window } from '../ts/store/append-queue.js';
import { RaggedPacker } from '../ts/store/ragged-pack.js';

function bytesOf(window: Window | undefined): string {
  return Buffer.from(window?.records ?? []).toString('hex');
}

t.test('dimensions, then items, in both dialects', async (t) => {
  const record = ndarray('int16', [2, 1], Int16Array.of(1, -1));
  const other = ndarray('int16', [1, 3], Int16Array.of(2, 3, 4));
  for (const [dimBytes, hex, ends] of [
    [
      8,
      '0200000000000000 0100000000000000 0100ffff 0100000000000000 0300000000000000 020003000400',
      [20n, 42n],
    ],
    [4, '02000000 01000000 0100ffff 01000000 03000000 020003000400', [12n, 26n]],
  ] as const) {
    const packer = new RaggedPacker(dtypeOf('int16'), 2, dimBytes);
    for (const item of [record, other]) packer.add(packer.checked(item));
    const window = packer.takeWindow();
    t.equal(bytesOf(window), hex.replaceAll(' ', ''));
    t.same([...(window?.ends ?? [])], ends);
    t.equal(window?.recordCount, 2);
    t.equal(packer.takeWindow(), undefined);
    packer.release();
  }
});

/** Packs records of these sizes and returns the windows' record counts. */
function windows(sizes: Iterable<number>): number[] {
  const packer = new RaggedPacker(dtypeOf('uint8'), 1, 8);
  const counts: number[] = [];
  const flush = (): void => {
    const window = packer.takeWindow();
    if (window !== undefined) counts.push(window.recordCount);
  };
  for (const size of sizes) {
    const record = packer.checked(ndarray('uint8', [size], new Uint8Array(size)));
    if (packer.isFullFor(record)) flush();
    packer.add(record);
  }
  flush();
  packer.release();
  return counts;
}

t.test('windows end after 32,768 records of the append', async (t) => {
  t.same(windows(new Array(32_768).fill(1)), [32_768]);
  t.same(windows(new Array(32_769).fill(1)), [32_768, 1]);
  t.same(windows(new Array(70_000).fill(1)), [32_768, 32_768, 4464]);
});

t.test('and at about 8 MiB, of large records at 32, one record at least', async (t) => {
  const mebibyte = 2 ** 20;
  t.same(windows([33 * mebibyte, 33 * mebibyte, 1]), [1, 1, 1]);
  t.same(windows([mebibyte, 32 * mebibyte, mebibyte]), [1, 1, 1]);
  t.same(windows(new Array(40).fill(mebibyte)), [31, 9]);
  t.same(windows(new Array(300).fill(mebibyte / 16)), [128, 128, 44]);
  t.same(windows(new Array(300).fill(mebibyte / 32)), [255, 45]);
  // A window cut short by bytes does not move where the next one by count ends.
  const sizes = [8 * mebibyte, ...new Array<number>(40_000).fill(1)];
  t.same(windows(sizes), [128, 32_640, 7233]);
});

t.test('a window stays as it is while the next one is packed', async (t) => {
  const packer = new RaggedPacker(dtypeOf('uint8'), 1, 4);
  const add = (value: number): void => {
    packer.add(packer.checked(ndarray('uint8', [3], new Uint8Array(3).fill(value))));
  };
  add(1);
  const first = packer.takeWindow();
  const before = bytesOf(first);
  for (let count = 0; count < 100_000; count += 1) add(2);
  t.equal(bytesOf(first), before);
  const second = packer.takeWindow();
  t.equal(second?.recordCount, 100_000);
  add(3);
  t.equal(second?.records.at(-1), 2, 'the third is in the memory of the first');
  packer.release();
});

t.test('records that do not fit are named by their place in the append', async (t) => {
  const packer = new RaggedPacker(dtypeOf('float32'), 2, 8);
  packer.add(packer.checked(ndarray('float32', [1, 1], new Float32Array(1))));
  const cases: readonly (readonly [unknown, string, string])[] = [
    [ndarray('float32', [1], new Float32Array(1)), 'RangeError', 'records[1] has shape [1], and'],
    [ndarray('float32', [0, 4], new Float32Array(0)), 'RangeError', 'a record has an item'],
    [ndarray('float64', [1, 1], new Float64Array(1)), 'TypeError', 'records[1].dtype is "float64"'],
    [new Float32Array(1), 'TypeError', 'records[1] must be an array'],
    [[1, 2], 'TypeError', 'records[1] must be an array'],
    [undefined, 'TypeError', 'records[1] must be an array {dtype, shape, data}, got undefined'],
  ];
  for (const [record, name, message] of cases) {
    t.throws(() => packer.checked(record), { name, code: 'INVALID_ARGUMENT', message });
  }
  t.equal(packer.recordCount, 1);
});

t.test('a record over 2^31 bytes with its dimensions is TOO_LARGE', async (t) => {
  const packer = new RaggedPacker(dtypeOf('uint8'), 1, 8);
  // Memory that nobody touches costs nothing.
  const items = new Uint8Array(2 ** 31);
  const sized = (size: number) => ({
    ...{ dims: [size], dimsAt: 0, items: items.subarray(0, size) },
    itemBytes: size,
  });
  packer.assertRecordFits(sized(2 ** 31 - 8));
  t.throws(() => packer.assertRecordFits(sized(2 ** 31 - 7)), {
    name: 'RangeError',
    code: 'TOO_LARGE',
    field: 'records[0]',
  });
});
