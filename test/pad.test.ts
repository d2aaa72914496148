// Padding: places, mask, and the value as each dtype stores it.
import t from 'tap';
import { type DType, dtypeOf } from '../ts/dtype.js';
import { padRecords, smallFloatBits } from '../ts/store/pad.js';
import { RaggedBatchView } from '../ts/store/ragged-views.js';

/** A batch of records of these shapes whose items count up from 1. */
function batch(dtype: DType, shapes: readonly (readonly number[])[]): RaggedBatchView<DType> {
  const info = dtypeOf(dtype);
  const sizes = shapes.map((shape) => shape.reduce((product, size) => product * size, 1));
  const items = sizes.reduce((sum, size) => sum + size, 0);
  const buffer = new ArrayBuffer(items * info.itemBytes);
  const values = new info.constructorOf(buffer);
  for (let index = 0; index < values.length; index += 1) {
    values[index] = (typeof values[index] === 'bigint' ? BigInt(index + 1) : index + 1) as never;
  }
  const offsets = new Uint32Array(sizes.length + 1);
  sizes.forEach((size, index) => {
    offsets[index + 1] = (offsets[index] ?? 0) + size;
  });
  const dims = Uint32Array.from(shapes.flat());
  return new RaggedBatchView(info, shapes[0]?.length ?? 1, {
    buffer,
    payloadBytes: buffer.byteLength,
    offsets,
    dims,
  });
}

t.test('a value that would become an infinity, and a rank above the highest', async (t) => {
  for (const dtype of ['float16', 'float32', 'bfloat16', 'complex64', 'numpy:>f4'] as const) {
    for (const value of [1e300, -1e300]) {
      t.throws(() => batch(dtype, [[1]]).pad({ value }), {
        name: 'RangeError',
        ...{ code: 'INVALID_ARGUMENT', field: 'value', message: /is too large for/ },
      });
    }
    batch(dtype, [[1]]).pad({ value: Infinity });
  }
  t.equal(batch('float16', [[1], [2]]).pad({ value: 65_504 }).data.data[1], 0x7bff);
  batch('float64', [[1]]).pad({ value: 1e300 });
  const deep = batch('int8', [new Array<number>(64).fill(1)]);
  t.throws(() => deep.pad({ value: 0 }), { code: 'UNSUPPORTED', field: 'ndim' });
  t.equal(batch('int8', [new Array<number>(63).fill(1)]).pad({ value: 0 }).data.shape.length, 64);
});

t.test('one axis', async (t) => {
  const { data, mask } = batch('int32', [[2], [1], [3]]).pad({ value: -1 });
  t.same(data, {
    dtype: 'int32',
    shape: [3, 3],
    data: Int32Array.of(1, 2, -1, 3, -1, -1, 4, 5, 6),
  });
  t.same(mask, {
    dtype: 'bool',
    shape: [3, 3],
    data: Uint8Array.of(1, 1, 0, 1, 0, 0, 1, 1, 1),
  });
});

t.test('a longer length, by number and by list', async (t) => {
  for (const length of [4, [4]]) {
    const { data } = batch('uint8', [[2], [3]]).pad({ value: 9, length });
    t.same([...data.data], [1, 2, 9, 9, 3, 4, 5, 9]);
    t.same(data.shape, [2, 4]);
  }
});

/** What padding gives, item by item. */
function slowly(shapes: readonly (readonly number[])[], sizes: readonly number[]): number[] {
  const cells = sizes.reduce((product, size) => product * size, 1);
  let next = 1;
  return shapes.flatMap((shape) => {
    const padded = new Array<number>(cells).fill(0);
    const count = shape.reduce((product, size) => product * size, 1);
    for (let item = 0; item < count; item += 1) {
      let rest = item;
      const position = [...shape]
        .reverse()
        .map((size) => {
          const at = rest % size;
          rest = Math.floor(rest / size);
          return at;
        })
        .reverse();
      const target = position.reduce((at, index, axis) => at * (sizes[axis] ?? 1) + index, 0);
      padded[target] = next;
      next += 1;
    }
    return padded;
  });
}

t.test('many axes, against a slow copy', async (t) => {
  for (const shapes of [
    [
      [2, 3],
      [1, 1],
      [3, 2],
    ],
    [
      [2, 1, 3],
      [1, 2, 2],
    ],
    [
      [1, 2, 1, 2],
      [2, 1, 2, 1],
      [1, 1, 1, 1],
    ],
  ]) {
    const sizes = (shapes[0] ?? []).map((_, axis) =>
      Math.max(...shapes.map((shape) => shape[axis] ?? 0)),
    );
    const { data, mask } = batch('float64', shapes).pad({ value: 0 });
    const expected = slowly(shapes, sizes);
    t.same([...data.data], expected);
    t.same(
      [...mask.data],
      expected.map((item) => (item > 0 ? 1 : 0)),
    );
    t.same(data.shape, [shapes.length, ...sizes]);
  }
  const wide = batch('int16', [
    [1, 2],
    [2, 1],
  ]).pad({ value: 0, length: [3, 3] });
  t.same(wide.data.shape, [2, 3, 3]);
});

t.test('an empty batch', async (t) => {
  const { data, mask } = batch('int8', []).pad({ value: 0 });
  t.same(
    [data.shape, mask.shape],
    [
      [0, 0],
      [0, 0],
    ],
  );
});

t.test('the value as each dtype stores it', async (t) => {
  const cases: readonly (readonly [DType, number | bigint, readonly number[]])[] = [
    ['bool', 1, [1]],
    ['int8', -2, [0xfe]],
    ['uint16', 0x0102, [2, 1]],
    ['int32', -1, [255, 255, 255, 255]],
    ['uint32', 2 ** 32 - 1, [255, 255, 255, 255]],
    ['int64', -1, new Array(8).fill(255)],
    ['uint64', 2n ** 64n - 1n, new Array(8).fill(255)],
    ['int64', -(2n ** 63n), [0, 0, 0, 0, 0, 0, 0, 128]],
    ['float16', 1, [0x00, 0x3c]],
    ['bfloat16', -1, [0x80, 0xbf]],
    ['float32', 1, [0, 0, 128, 63]],
    ['float64', -2, [0, 0, 0, 0, 0, 0, 0, 192]],
    ['complex64', 1, [0, 0, 128, 63, 0, 0, 0, 0]],
    ['numpy:>i2', 0x0102, [1, 2]],
    ['numpy:>f4', 1, [63, 128, 0, 0]],
    ['numpy:>c8', 1, [63, 128, 0, 0, 0, 0, 0, 0]],
    ['numpy:>u8', 1n, [0, 0, 0, 0, 0, 0, 0, 1]],
    ['numpy:<M8[ns]', -(2n ** 63n), [0, 0, 0, 0, 0, 0, 0, 128]],
    ['numpy:>m8[s]', 1, [0, 0, 0, 0, 0, 0, 0, 1]],
    ['numpy:|S3', 0, [0, 0, 0]],
    ['float8_e5m2', 0, [0]],
    ['numpy:<f16', 0n, new Array(16).fill(0)],
    ['float32', -0, [0, 0, 0, 128]],
  ];
  for (const [dtype, value, bytes] of cases) {
    const { items } = padRecords(batch(dtype, [[1], [2]]), { value });
    const width = bytes.length;
    const all = new Uint8Array(items.buffer, items.byteOffset, items.byteLength);
    t.same([...all.subarray(width, 2 * width)], bytes, `${dtype} ${value}`);
  }
});

t.test('what cannot be padded', async (t) => {
  const pad = (dtype: DType, options: unknown) => () =>
    batch(dtype, [[1], [3]]).pad(options as { value: number });
  for (const [dtype, value] of [
    ['int8', 128],
    ['uint8', -1],
    ['bool', 2],
    ['int32', 0.5],
    ['int64', 2 ** 60],
    ['uint64', 2n ** 64n],
  ] as const) {
    t.throws(pad(dtype, { value }), {
      name: 'RangeError',
      code: 'INVALID_ARGUMENT',
      field: 'value',
    });
  }
  for (const [dtype, value] of [
    ['float32', 1n],
    ['int8', '0'],
    ['int8', undefined],
    ['numpy:|S3', 32],
    ['float8_e4m3fn', 1],
    ['numpy:<f16', 1],
  ] as const) {
    t.throws(pad(dtype, { value }), {
      name: 'TypeError',
      code: 'INVALID_ARGUMENT',
      field: 'value',
    });
  }
  t.throws(pad('int8', { value: 0, length: 2 }), {
    name: 'RangeError',
    field: 'length',
    message: 'record 1 of the batch has 3 items on axis 0, and length is 2: nothing is cut off',
  });
  t.throws(pad('int8', { value: 0, length: [3, 1] }), { name: 'RangeError', field: 'length' });
  t.throws(pad('int8', { value: 0, length: 3.5 }), { name: 'TypeError', field: 'length' });
  t.throws(pad('int8', { value: 0, length: 2 ** 52 }), { name: 'RangeError', code: 'TOO_LARGE' });
  t.throws(pad('int8', { value: 0, fill: 1 }), { name: 'TypeError', field: 'fill' });
});

t.test('small floats round to the nearest, ties to even', async (t) => {
  // The inverse is simple: every finite float16 must come back as its own bits.
  const value16 = (bits: number): number => {
    const exponent = (bits >> 10) & 31;
    const mantissa = bits & 1023;
    const size = exponent === 0 ? mantissa * 2 ** -24 : (1024 + mantissa) * 2 ** (exponent - 25);
    return bits & 0x8000 ? -size : size;
  };
  let wrong = 0;
  for (let bits = 0; bits < 0x10000; bits += 1) {
    if (((bits >> 10) & 31) === 31) continue;
    if (smallFloatBits(value16(bits), 5, 10) !== bits) wrong += 1;
    const next = bits + 1;
    if (((next >> 10) & 31) === 31 || (next & 0x7fff) === 0) continue;
    const middle = (value16(bits) + value16(next)) / 2;
    if (smallFloatBits(middle, 5, 10) !== (bits % 2 === 0 ? bits : next)) wrong += 1;
  }
  t.equal(wrong, 0, 'all float16 numbers and the middles between them');

  const words = new Uint32Array(1);
  const single = new Float32Array(words.buffer);
  for (let upper = 0; upper < 0x10000; upper += 1) {
    words[0] = upper * 0x10000;
    if (Number.isFinite(single[0]) && smallFloatBits(single[0] ?? 0, 8, 7) !== upper) wrong += 1;
  }
  t.equal(wrong, 0, 'all bfloat16 numbers');
  t.equal(smallFloatBits(65504, 5, 10), 0x7bff);
  t.equal(smallFloatBits(65519.99, 5, 10), 0x7bff);
  t.equal(smallFloatBits(65520, 5, 10), 0x7c00, 'over the middle to infinity');
  t.equal(smallFloatBits(1e300, 5, 10), 0x7c00);
  t.equal(smallFloatBits(Number.NEGATIVE_INFINITY, 5, 10), 0xfc00);
  t.equal(smallFloatBits(Number.NaN, 5, 10), 0x7e00);
  t.equal(smallFloatBits(Number.NaN, 8, 7), 0x7fc0);
  t.equal(smallFloatBits(2 ** -25, 5, 10), 0, 'half of the least, to even');
  t.equal(smallFloatBits(2 ** -25 * 1.01, 5, 10), 1);
  t.equal(smallFloatBits(5e-324, 5, 10), 0);
});
