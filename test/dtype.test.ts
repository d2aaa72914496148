// The dtype table: one name per dtype, NumPy's string, the typed array; what a reader understands.
import vm from 'node:vm';
import t from 'tap';
import {
  type DTypeInfo,
  dtypeFromName28,
  dtypeFromNumpy,
  dtypeOf,
  isRefusal,
  typedArrayName,
} from '../ts/dtype.js';

function found(text: string): DTypeInfo {
  const info = dtypeFromNumpy(text);
  if (isRefusal(info)) throw new Error(`${text} ${info.reason}`);
  return info;
}

/** name, NumPy string, item bytes, typed array, elements of an item, what toNative makes of it */
const table: readonly (readonly [string, string, number, string, number, string | undefined])[] = [
  ['bool', '|b1', 1, 'Uint8Array', 1, 'bool'],
  ['int8', '|i1', 1, 'Int8Array', 1, 'int8'],
  ['uint8', '|u1', 1, 'Uint8Array', 1, 'uint8'],
  ['int16', '<i2', 2, 'Int16Array', 1, 'int16'],
  ['uint16', '<u2', 2, 'Uint16Array', 1, 'uint16'],
  ['int32', '<i4', 4, 'Int32Array', 1, 'int32'],
  ['uint32', '<u4', 4, 'Uint32Array', 1, 'uint32'],
  ['int64', '<i8', 8, 'BigInt64Array', 1, 'int64'],
  ['uint64', '<u8', 8, 'BigUint64Array', 1, 'uint64'],
  ['float16', '<f2', 2, 'Uint16Array', 1, 'float16'],
  ['float32', '<f4', 4, 'Float32Array', 1, 'float32'],
  ['float64', '<f8', 8, 'Float64Array', 1, 'float64'],
  ['complex64', '<c8', 8, 'Float32Array', 2, 'complex64'],
  ['complex128', '<c16', 16, 'Float64Array', 2, 'complex128'],
  ['numpy:>i2', '>i2', 2, 'Uint8Array', 2, 'int16'],
  ['numpy:>u2', '>u2', 2, 'Uint8Array', 2, 'uint16'],
  ['numpy:>i4', '>i4', 4, 'Uint8Array', 4, 'int32'],
  ['numpy:>u4', '>u4', 4, 'Uint8Array', 4, 'uint32'],
  ['numpy:>i8', '>i8', 8, 'Uint8Array', 8, 'int64'],
  ['numpy:>u8', '>u8', 8, 'Uint8Array', 8, 'uint64'],
  ['numpy:>f2', '>f2', 2, 'Uint8Array', 2, 'float16'],
  ['numpy:>f4', '>f4', 4, 'Uint8Array', 4, 'float32'],
  ['numpy:>f8', '>f8', 8, 'Uint8Array', 8, 'float64'],
  ['numpy:>c8', '>c8', 8, 'Uint8Array', 8, 'complex64'],
  ['numpy:>c16', '>c16', 16, 'Uint8Array', 16, 'complex128'],
  ['numpy:<f16', '<f16', 16, 'Uint8Array', 16, undefined],
  ['numpy:>f16', '>f16', 16, 'Uint8Array', 16, undefined],
  ['numpy:<c32', '<c32', 32, 'Uint8Array', 32, undefined],
  ['numpy:>c32', '>c32', 32, 'Uint8Array', 32, undefined],
  ['numpy:<M8', '<M8', 8, 'BigInt64Array', 1, 'numpy:<M8'],
  ['numpy:<M8[ns]', '<M8[ns]', 8, 'BigInt64Array', 1, 'numpy:<M8[ns]'],
  ['numpy:<M8[25us]', '<M8[25us]', 8, 'BigInt64Array', 1, 'numpy:<M8[25us]'],
  ['numpy:<m8', '<m8', 8, 'BigInt64Array', 1, 'numpy:<m8'],
  ['numpy:<m8[s]', '<m8[s]', 8, 'BigInt64Array', 1, 'numpy:<m8[s]'],
  ['numpy:>M8[ns]', '>M8[ns]', 8, 'Uint8Array', 8, 'numpy:<M8[ns]'],
  ['numpy:>m8[3D]', '>m8[3D]', 8, 'Uint8Array', 8, 'numpy:<m8[3D]'],
  ['numpy:|S5', '|S5', 5, 'Uint8Array', 5, undefined],
  ['numpy:|S70000', '|S70000', 70_000, 'Uint8Array', 70_000, undefined],
  ['numpy:<U3', '<U3', 12, 'Uint8Array', 12, undefined],
  ['numpy:>U3', '>U3', 12, 'Uint8Array', 12, undefined],
  ['numpy:|V8', '|V8', 8, 'Uint8Array', 8, undefined],
];

t.test('each dtype: name, NumPy string, typed array, both ways', async (t) => {
  for (const [name, numpy, itemBytes, array, itemElements, nativeName] of table) {
    for (const info of [dtypeOf(name), found(numpy)]) {
      t.match(info, { name, numpy, itemBytes, itemElements, nativeName }, name);
      t.equal(info.constructorOf.name, array, `${name} is a ${array}`);
      t.equal(info.itemBytes, info.itemElements * info.constructorOf.BYTES_PER_ELEMENT);
    }
    t.equal(dtypeOf(name).name28 !== undefined, !name.startsWith('numpy:'), `${name} in 2.8`);
  }
});

t.test('swapBytes is the width of the numbers that are reversed', async (t) => {
  for (const [name, width] of [
    ['numpy:>i2', 2],
    ['numpy:>f4', 4],
    ['numpy:>c8', 4],
    ['numpy:>c16', 8],
    ['numpy:>M8[ns]', 8],
    ['int32', 1],
    ['numpy:|S5', 1],
  ] as const) {
    t.equal(dtypeOf(name).swapBytes, width, name);
  }
});

t.test('a reader understands every spelling that NumPy stores or takes', async (t) => {
  const spellings: readonly (readonly [string, string])[] = [
    // As in the table of the original's behaviour.
    ...(
      '?:|b1 i1:|i1 u1:|u1 i2:<i2 u2:<u2 i4:<i4 u4:<u4 i8:<i8 u8:<u8 f2:<f2 f4:<f4 f8:<f8 g:<f16 ' +
      'c8:<c8 c16:<c16 G:<c32 >i4:>i4 >u2:>u2 >f8:>f8 >c16:>c16 >?:|b1 >i1:|i1 =i4:<i4 ' +
      'M8[ns]:<M8[ns] M8[25us]:<M8[25us] M8:<M8 m8[s]:<m8[s] >M8[ns]:>M8[ns] S5:|S5 U3:<U3 ' +
      '>U3:>U3 V8:|V8 S70000:|S70000 ' +
      // And what else NumPy takes.
      'int32:<i4 float64:<f8 bool:|b1 bool_:|b1 half:<f2 single:<f4 double:<f8 longdouble:<f16 ' +
      'byte:|i1 ubyte:|u1 short:<i2 intc:<i4 longlong:<i8 int:<i8 uint:<u8 float:<f8 ' +
      'complex:<c16 csingle:<c8 complex256:<c32 float128:<f16 h:<i2 H:<u2 q:<i8 Q:<u8 e:<f2 ' +
      'd:<f8 F:<c8 D:<c16 b:|i1 B:|u1 >d:>f8 |i4:<i4 |f8:<f8 <u1:|u1 >u1:|u1 <b1:|b1 i04:<i4 ' +
      '<S5:|S5 =S5:|S5 >V8:|V8 |U3:<U3 a5:|S5 c:|S1 |M8[ns]:<M8[ns] M8[1ns]:<M8[ns] ' +
      'M8[generic]:<M8 M8[μs]:<M8[us] M8[03D]:<M8[3D] M8[2147483647s]:<M8[2147483647s] datetime64[ns]:<M8[ns] ' +
      'timedelta64[s]:<m8[s] >datetime64[ns]:>M8[ns] datetime64:<M8 M:<M8 m:<m8'
    )
      .split(' ')
      .map((pair) => {
        const at = pair.lastIndexOf(':');
        return [pair.slice(0, at), pair.slice(at + 1)] as const;
      }),
  ];
  t.ok(spellings.length > 80);
  for (const [text, stored] of spellings) t.equal(found(text).numpy, stored, text);
});

t.test('what a reader refuses, and why', async (t) => {
  const refused: Record<string, readonly string[]> = {
    MALFORMED: [
      ...['', '|', '<', 'w', 'i3', 'i16', 'f1', 'f12', 'c4', 'c24', 'b2', '?1', 'INT32', 'i4 '],
      ...[' i4', '!i4', '<int32', '>uint8', '|complex64', 'bfloat16', 'M4', 'M8[', 'M8[]', 'M8[B]'],
      ...['M8[ns]x', 'M8[foo]', 'M8[2147483648s]', 'S', 'U', 'V', 'S0', 'U0', 'V0', 'a', 'str'],
      ...['bytes', 'void', 'S2147483648', 'U536870912', 'V99999999999', 'float8_e5m2', 'ié4'],
    ],
    UNSUPPORTED: [
      ...['O', '|O', 'object', 'T', 'i4,f4', '<i4,', '(2,)i4', '2i4', '5S', "{'names':[]}"],
      ...['l', 'L', 'long', '<l', 'M8[us/1000]', 'm8[D/24]'],
    ],
  };
  for (const [code, texts] of Object.entries(refused)) {
    for (const text of texts) {
      const result = dtypeFromNumpy(text);
      t.ok(isRefusal(result), `${JSON.stringify(text)} is refused`);
      t.match(result, { code }, `${JSON.stringify(text)} is ${code}`);
    }
  }
});

t.test('the 2.8 dialect has its fixed names and no others', async (t) => {
  const names =
    'bool int8 uint8 int16 uint16 int32 uint32 int64 uint64 float16 float32 float64 complex64 ' +
    'complex128 bfloat16 float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float8_e8m0fnu';
  for (const name of names.split(' ')) {
    const info = dtypeFromName28(name);
    t.match(info, { name, name28: name }, name);
    if (!isRefusal(info) && info.kind === 'V')
      t.equal(info.numpy, undefined, `${name} is not in 2.4`);
  }
  t.equal(dtypeOf('bfloat16').constructorOf, Uint16Array);
  t.equal(dtypeOf('float8_e5m2').constructorOf, Uint8Array);
  for (const name of ['<f4', 'f4', 'float8_e3m4', 'float128', 'Float32', '', 'numpy:>f4']) {
    t.match(dtypeFromName28(name), { code: 'MALFORMED' }, name);
  }
});

t.test('a caller has one name for each dtype', async (t) => {
  for (const [given, hint] of [
    ['<f4', '"float32"'],
    ['f4', '"float32"'],
    ['numpy:<f4', '"float32"'],
    ['numpy:int32', '"int32"'],
    ['>f4', '"numpy:>f4"'],
    ['numpy:S5', '"numpy:|S5"'],
    ['numpy:M8[1ns]', '"numpy:<M8[ns]"'],
    ['datetime64[ns]', '"numpy:<M8[ns]"'],
    ['half', '"float16"'],
  ] as const) {
    t.throws(
      () => dtypeOf(given),
      { name: 'TypeError', code: 'INVALID_ARGUMENT', field: 'dtype', message: `called ${hint}` },
      given,
    );
  }
  for (const given of [
    'float31',
    'numpy:',
    'numpy:|O',
    'numpy:i4,f4',
    'float8_e1m1',
    '',
    'x'.repeat(1e6),
  ]) {
    t.throws(() => dtypeOf(given), { name: 'TypeError', code: 'INVALID_ARGUMENT' });
  }
  for (const given of [undefined, null, 1, 5n, Float32Array, ['f4'], { dtype: 'float32' }]) {
    t.throws(() => dtypeOf(given), { name: 'TypeError', code: 'INVALID_ARGUMENT' });
  }
  t.throws(() => dtypeOf(7, 'batch.dtype'), { message: 'batch.dtype must be a dtype name, got 7' });
});

t.test('typed arrays are known by what they are, not by where they come from', async (t) => {
  t.equal(typedArrayName(new Float32Array(1)), 'Float32Array');
  t.equal(typedArrayName(Buffer.alloc(1)), 'Uint8Array');
  t.equal(typedArrayName(vm.runInNewContext('new BigInt64Array(2)')), 'BigInt64Array');
  t.equal(typedArrayName({ [Symbol.toStringTag]: 'Uint8Array' }), undefined);
  t.equal(typedArrayName(new DataView(new ArrayBuffer(8))), undefined);
  for (const value of [undefined, null, 1, 'Uint8Array', [], new ArrayBuffer(1)]) {
    t.equal(typedArrayName(value), undefined);
  }
});
