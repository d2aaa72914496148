// The one check of every array, and the change to native byte order.
import vm from 'node:vm';
import t from 'tap';
import type { DType } from '../ts/dtype.js';
import { dtypeOf } from '../ts/dtype.js';
import { arrayParts, type NdArray, ndarray, toNative } from '../ts/ndarray.js';

t.test('ndarray checks and copies no item', async (t) => {
  const data = new Float32Array(6);
  const shape = [2, 3];
  const array = ndarray('float32', shape, data);
  t.equal(array.data, data);
  t.same(array, { dtype: 'float32', shape: [2, 3], data });
  shape[0] = 9;
  t.same(array.shape, [2, 3], 'the shape is its own');
  t.same(ndarray('bool', [], new Uint8Array(1)).shape, []);
  t.same(ndarray('int8', [0, 5], new Int8Array(0)).shape, [0, 5], 'nothing is an array too');
  t.equal(ndarray('complex64', [3], new Float32Array(6)).data.length, 6);
  t.equal(ndarray('numpy:|S5', [2], new Uint8Array(10)).data.length, 10);
  t.equal(ndarray('numpy:<M8[ns]', [2], new BigInt64Array(2)).data.length, 2);
  t.ok(ndarray('uint8', [3], Buffer.from('abc')), 'a Buffer is a Uint8Array');
  t.ok(ndarray('uint8', [3], new Uint8Array(new SharedArrayBuffer(3))));
});

t.test('each part that does not fit is named', async (t) => {
  const make = (dtype: unknown, shape: unknown, data: unknown) => () =>
    ndarray(dtype as 'uint8', shape as number[], data as Uint8Array);
  const bytes = new Uint8Array(6);
  const cases: readonly (readonly [() => unknown, string, string, string])[] = [
    [make('uint7', [6], bytes), 'TypeError', 'dtype', 'dtype "uint7" is no'],
    [make(undefined, [6], bytes), 'TypeError', 'dtype', 'got undefined'],
    [make('uint8', 6, bytes), 'TypeError', 'shape', 'shape must be a list of integers, got 6'],
    [make('uint8', new Uint32Array([6]), bytes), 'TypeError', 'shape', 'must be a list'],
    [make('uint8', [6.5], bytes), 'TypeError', 'shape', 'shape[0] must be an integer, got 6.5'],
    [make('uint8', ['6'], bytes), 'TypeError', 'shape', 'got "6"'],
    [make('uint8', [6n], bytes), 'TypeError', 'shape', 'got 6n'],
    [make('uint8', new Array(1), bytes), 'TypeError', 'shape', 'got undefined'],
    [make('uint8', [-6], bytes), 'RangeError', 'shape', 'must be 0 or more'],
    [make('uint8', [2 ** 53], bytes), 'RangeError', 'shape', 'at most 2^53 - 1'],
    [make('uint8', new Array(65).fill(1), bytes), 'RangeError', 'shape', 'has 65 dimensions'],
    [make('uint8', [5], bytes), 'RangeError', 'data', 'has 6 elements, and shape [5]'],
    [make('uint8', [2, 2 ** 40, 2 ** 40], bytes), 'RangeError', 'data', 'wants'],
    [make('uint8', [6], [0, 0, 0, 0, 0, 0]), 'TypeError', 'data', 'must be a Uint8Array'],
    [make('uint8', [6], new Uint8ClampedArray(6)), 'TypeError', 'data', 'got Uint8ClampedArray'],
    [make('uint8', [6], new Int8Array(6)), 'TypeError', 'data', 'got Int8Array'],
    [make('uint8', [6], new DataView(new ArrayBuffer(6))), 'TypeError', 'data', 'Uint8Array'],
    [make('uint8', [6], undefined), 'TypeError', 'data', 'got undefined'],
    [make('complex64', [6], new Float32Array(6)), 'RangeError', 'data', 'wants 12'],
    [make('numpy:>f4', [6], new Float32Array(6)), 'TypeError', 'data', 'must be a Uint8Array'],
    [make('int64', [1], new BigUint64Array(1)), 'TypeError', 'data', 'must be a BigInt64Array'],
  ];
  for (const [run, name, field, text] of cases) {
    t.throws(run, { name, code: 'INVALID_ARGUMENT', field, message: text }, text);
  }
});

t.test('what helps is said, and only where it does', async (t) => {
  const message = (run: () => unknown): string => {
    try {
      run();
    } catch (error) {
      return (error as Error).message;
    }
    throw new Error('nothing is thrown');
  };
  // An object with none of the three is no array at all; one that lacks a part is told which.
  t.match(
    message(() => arrayParts({}, 'batch')),
    'ndarray() makes one',
  );
  for (const part of [{ dtype: 'uint8' }, { shape: [1] }, { data: new Uint8Array(1) }]) {
    t.notMatch(
      message(() => arrayParts(part, 'batch')),
      'ndarray() makes one',
    );
  }
  // The largest size that is a number is one; it only is too many.
  const size = Number.MAX_SAFE_INTEGER;
  t.match(
    message(() => ndarray('uint8', [size], new Uint8Array(1))),
    `wants ${size}`,
  );
  const half = message(() => ndarray('float16', [1], new Float32Array(1) as never));
  t.match(half, 'data must be a Uint16Array for "float16", got Float32Array');
  t.notMatch(half, 'give its bits');
});

t.test('a batch of another dtype is refused, not converted', async (t) => {
  const wanted = dtypeOf('float32');
  const array = (dtype: DType, data: unknown) => ({ dtype, shape: [2], data }) as NdArray;
  t.same(arrayParts(array('float32', new Float32Array(2)), 'batch', wanted).shape, [2]);
  t.throws(() => arrayParts(array('float64', new Float64Array(2)), 'batch', wanted), {
    name: 'TypeError',
    field: 'batch.dtype',
    message: 'batch.dtype is "float64", and the container holds "float32": nothing is converted',
  });
  t.throws(() => arrayParts(array('numpy:>f4', new Uint8Array(8)), 'batch', wanted), {
    name: 'TypeError',
    field: 'batch.dtype',
  });
  for (const value of [undefined, null, 3, 'x', [], new Float32Array(2), () => 1]) {
    t.throws(() => arrayParts(value, 'batch', wanted), {
      name: 'TypeError',
      code: 'INVALID_ARGUMENT',
      field: 'batch',
    });
  }
});

t.test('arrays of another realm are arrays', async (t) => {
  const foreign = vm.runInNewContext(
    '({ dtype: "int16", shape: [2], data: new Int16Array([1, 2]) })',
  ) as NdArray<'int16'>;
  t.same([...arrayParts(foreign, 'batch').bytes], [1, 0, 2, 0]);
});

t.test('a detached array says so', async (t) => {
  const data = new Uint8Array(4);
  const array = ndarray('uint8', [4], data);
  structuredClone(data.buffer, { transfer: [data.buffer] });
  t.throws(() => arrayParts(array, 'batch'), { message: 'was its memory transferred' });
});

t.test('an array that lies about itself is refused', async (t) => {
  for (const [name, value] of [
    ['length', 9],
    ['byteLength', 9],
    ['byteOffset', 1],
    ['buffer', new ArrayBuffer(9)],
  ] as const) {
    const lying = Object.defineProperty(new Uint8Array(4), name, { value });
    t.throws(() => ndarray('uint8', [4], lying), {
      name: 'TypeError',
      field: 'data',
      message: 'data says another length or memory of itself than it has: give a plain Uint8Array',
    });
  }
});

t.test('bytes are a view of the caller, wherever it begins', async (t) => {
  const whole = new Uint8Array([9, 9, 1, 2, 3, 9]);
  const parts = arrayParts(ndarray('uint8', [3], whole.subarray(2, 5)), 'batch');
  t.same([...parts.bytes], [1, 2, 3]);
  t.equal(parts.bytes.buffer, whole.buffer);
});

t.test('toNative reverses each number and nothing else', async (t) => {
  const swapped = toNative(
    ndarray('numpy:>f4', [2], new Uint8Array([63, 128, 0, 0, 192, 0, 0, 0])),
  );
  t.same(swapped, { dtype: 'float32', shape: [2], data: new Float32Array([1, -2]) });

  const shorts = toNative(ndarray('numpy:>u2', [2], new Uint8Array([1, 2, 3, 4])));
  t.same([...shorts.data], [0x0102, 0x0304]);
  const longs = toNative(ndarray('numpy:>i8', [1], new Uint8Array([255, 0, 0, 0, 0, 0, 0, 1])));
  t.same([...longs.data], [-(2n ** 56n) + 1n]);
  const complex = new Uint8Array(16);
  new DataView(complex.buffer).setFloat64(0, 1.5);
  new DataView(complex.buffer).setFloat64(8, -2.5);
  t.same([...toNative(ndarray('numpy:>c16', [], complex)).data], [1.5, -2.5]);
  const complexSingle = new Uint8Array(8);
  new DataView(complexSingle.buffer).setFloat32(0, 1.5);
  new DataView(complexSingle.buffer).setFloat32(4, -2.5);
  t.same([...toNative(ndarray('numpy:>c8', [], complexSingle)).data], [1.5, -2.5]);
  const time = toNative(ndarray('numpy:>M8[ns]', [1], new Uint8Array([128, 0, 0, 0, 0, 0, 0, 0])));
  t.same(time, { dtype: 'numpy:<M8[ns]', shape: [1], data: new BigInt64Array([-(2n ** 63n)]) });
  const nan = new Uint8Array([0x7f, 0xa0, 0x12, 0x34]);
  const kept = toNative(ndarray('numpy:>f4', [1], nan));
  t.same([...new Uint8Array(kept.data.buffer)], [0x34, 0x12, 0xa0, 0x7f], 'a NaN keeps its bits');
  t.same([...nan], [0x7f, 0xa0, 0x12, 0x34], 'the original is untouched');
});

t.test('what is native already is returned; what has no typed array is refused', async (t) => {
  const plain = ndarray('float32', [1], new Float32Array(1));
  t.equal(toNative(plain), plain);
  const brain = ndarray('bfloat16', [1], new Uint16Array(1));
  t.equal(toNative(brain), brain);
  const time = ndarray('numpy:<m8[s]', [1], new BigInt64Array(1));
  t.equal(toNative(time), time);
  for (const dtype of [
    'numpy:|S5',
    'numpy:>U3',
    'numpy:|V8',
    'numpy:>f16',
    'numpy:<c32',
  ] as const) {
    const array = ndarray(dtype, [0], new Uint8Array(0));
    t.throws(() => toNative(array), { name: 'LoaderxError', code: 'UNSUPPORTED' }, dtype);
  }
});
