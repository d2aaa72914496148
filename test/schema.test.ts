// The schema in both dialects: written as Python writes it, read as strictly as it can be.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { dtypeOf } from '../ts/dtype.js';
import { LoaderxError } from '../ts/errors.js';
import {
  type DenseSchema,
  decodeSchema,
  encodeSchema,
  type RaggedSchema,
  recordBytesOf,
  type Schema,
} from '../ts/schema.js';

const place = { path: '/a', file: 'meta.zr' };

function dense(
  dtype: string,
  itemShape: readonly number[],
  dialect: '2.4' | '2.8' = '2.4',
): DenseSchema {
  return { kind: 'dense', dialect, dtype: dtypeOf(dtype), itemShape };
}

function ragged(dtype: string, ndim: number, dialect: '2.4' | '2.8' = '2.4'): RaggedSchema {
  return { kind: 'ragged', dialect, dtype: dtypeOf(dtype), ndim };
}

function hex(...parts: readonly string[]): Uint8Array {
  // `'text'` stands for its bytes.
  return Buffer.concat(
    parts.map((part) =>
      part.startsWith("'")
        ? Buffer.from(part.slice(1, -1))
        : Buffer.from(part.replace(/ /g, ''), 'hex'),
    ),
  );
}

function failure(bytes: Uint8Array): LoaderxError {
  try {
    decodeSchema(bytes, place);
  } catch (error) {
    if (error instanceof LoaderxError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

t.test('MsgPack is written byte for byte as Python writes it', async (t) => {
  const cases: readonly (readonly [Schema, Uint8Array])[] = [
    [
      dense('float32', [2, 3]),
      hex('83 a5', "'dtype'", 'a3', "'<f4'", 'a4', "'ndim'", '02 aa', "'item_shape'", '92 02 03'),
    ],
    [
      dense('bool', []),
      hex('83 a5', "'dtype'", 'a3', "'|b1'", 'a4', "'ndim'", '00 aa', "'item_shape'", '90'),
    ],
    [ragged('int32', 1), hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", '01')],
    [
      dense('uint8', [127, 128, 255, 256]),
      hex(
        '83 a5',
        "'dtype'",
        'a3',
        "'|u1'",
        'a4',
        "'ndim'",
        '04 aa',
        "'item_shape'",
        '94 7f cc80 ccff cd0100',
      ),
    ],
    [
      dense('uint8', [65_535]),
      hex('83 a5', "'dtype'", 'a3', "'|u1'", 'a4', "'ndim'", '01 aa', "'item_shape'", '91 cdffff'),
    ],
    [
      dense('uint8', [2 ** 31]),
      hex(
        '83 a5',
        "'dtype'",
        'a3',
        "'|u1'",
        'a4',
        "'ndim'",
        '01 aa',
        "'item_shape'",
        '91 ce80000000',
      ),
    ],
    [
      dense(
        'int8',
        Array.from({ length: 16 }, () => 1),
      ),
      hex(
        '83 a5',
        "'dtype'",
        'a3',
        "'|i1'",
        'a4',
        "'ndim'",
        '10 aa',
        "'item_shape'",
        'dc0010',
        '01'.repeat(16),
      ),
    ],
    [
      ragged('numpy:<M8[25us]', 64),
      hex('82 a5', "'dtype'", 'a9', "'<M8[25us]'", 'a4', "'ndim'", '40'),
    ],
  ];
  for (const [schema, bytes] of cases) {
    t.equal(
      Buffer.from(encodeSchema(schema)).toString('hex'),
      Buffer.from(bytes).toString('hex'),
      JSON.stringify(schema.dtype.name),
    );
    t.same(decodeSchema(bytes, place), schema);
  }
});

t.test('JSON is written byte for byte as Python writes it', async (t) => {
  const cases: readonly (readonly [Schema, string])[] = [
    [dense('float32', [2, 3], '2.8'), '{"dtype": "float32", "item_shape": [2, 3]}'],
    [dense('float64', [], '2.8'), '{"dtype": "float64", "item_shape": []}'],
    [ragged('int32', 2, '2.8'), '{"dtype": "int32", "ndim": 2}'],
    [ragged('float8_e4m3fnuz', 1, '2.8'), '{"dtype": "float8_e4m3fnuz", "ndim": 1}'],
  ];
  for (const [schema, text] of cases) {
    t.equal(Buffer.from(encodeSchema(schema)).toString(), text);
    t.same(decodeSchema(Buffer.from(text), place), schema);
  }
});

t.test('what is written again is what was there, for any schema', async (t) => {
  for (const dtype of [
    'bool',
    'float16',
    'complex128',
    'numpy:>f8',
    'numpy:|S70000',
    'numpy:<m8[s]',
  ]) {
    for (const shape of [[], [1], [200], [3, 300, 2], Array.from({ length: 63 }, () => 1)]) {
      const schema = dense(dtype, shape);
      if (recordBytesOf(schema.dtype, shape) > 2 ** 31) continue;
      t.same(decodeSchema(encodeSchema(schema)), schema);
    }
    for (const ndim of [1, 2, 63, 64]) {
      t.same(decodeSchema(encodeSchema(ragged(dtype, ndim))), ragged(dtype, ndim));
    }
  }
});

t.test('a dtype of the other dialect cannot be written', async (t) => {
  t.throws(() => encodeSchema(dense('bfloat16', [])), TypeError);
  t.throws(() => encodeSchema(dense('numpy:>f4', [], '2.8')), TypeError);
});

t.test('other encodings of the same values are read', async (t) => {
  const wanted = dense('int32', [3]);
  const cases = {
    'other order': hex(
      '83 aa',
      "'item_shape'",
      '91 03 a4',
      "'ndim'",
      '01 a5',
      "'dtype'",
      'a3',
      "'<i4'",
    ),
    map16: hex(
      'de0003 a5',
      "'dtype'",
      'a3',
      "'<i4'",
      'a4',
      "'ndim'",
      '01 aa',
      "'item_shape'",
      'dc0001 03',
    ),
    'map32, array32': hex(
      'df00000003 a5',
      "'dtype'",
      'a3',
      "'<i4'",
      'a4',
      "'ndim'",
      '01 aa',
      "'item_shape'",
      'dd00000001 03',
    ),
    'str8, str16, str32': hex(
      '83 d905',
      "'dtype'",
      'd903',
      "'<i4'",
      'da0004',
      "'ndim'",
      '01 db0000000a',
      "'item_shape'",
      '91 03',
    ),
    'wide ints': hex(
      '83 a5',
      "'dtype'",
      'a3',
      "'<i4'",
      'a4',
      "'ndim'",
      'cd0001 aa',
      "'item_shape'",
      '91 cf0000000000000003',
    ),
    'signed ints': hex(
      '83 a5',
      "'dtype'",
      'a3',
      "'<i4'",
      'a4',
      "'ndim'",
      'd001 aa',
      "'item_shape'",
      '91 d30000000000000003',
    ),
    alias: hex(
      '83 a5',
      "'dtype'",
      'a5',
      "'int32'",
      'a4',
      "'ndim'",
      '01 aa',
      "'item_shape'",
      '91 03',
    ),
  };
  for (const [what, bytes] of Object.entries(cases))
    t.same(decodeSchema(bytes, place), wanted, what);
  for (const [list, itemShape] of [
    ['90', []],
    ['dc 00 00', []],
    ['91 7f', [127]],
    ['91 cc ff', [255]],
    [`9f${'01'.repeat(15)}`, new Array(15).fill(1)],
  ] as const) {
    const ndim = itemShape.length.toString(16).padStart(2, '0');
    const start = ['83 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", ndim, 'aa', "'item_shape'"];
    const bytes = hex(...start, list);
    t.same(decodeSchema(bytes, place), dense('int32', itemShape), `${list} at the end`);
  }
  t.same(
    decodeSchema(Buffer.from('{ "item_shape" :\t[ 3 ] ,\n"dtype":"int32"}  '), place),
    dense('int32', [3], '2.8'),
    'JSON with other blanks and another order',
  );
  t.same(
    decodeSchema(Buffer.from('{"dtype": "\\u0069nt32", "item_shape": [3]}'), place),
    dense('int32', [3], '2.8'),
    'JSON with an escape',
  );
});

t.test('a schema of JSON may have 2,040 bytes', async (t) => {
  const text = '{"dtype": "int32", "item_shape": [3]}';
  t.match(decodeSchema(Buffer.from(text.padEnd(2040)), place), { itemShape: [3] });
  t.equal(failure(Buffer.from(text.padEnd(2041))).code, 'MALFORMED');
});

t.test('damaged MsgPack is MALFORMED, and says where', async (t) => {
  const head = hex('83 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", '01 aa', "'item_shape'");
  const cases: Record<string, Uint8Array> = {
    empty: hex(''),
    nil: hex('c0'),
    array: hex('93 01 02 03'),
    'empty map': hex('80'),
    'map of 4': hex('84 a1', "'a'", '01 a1', "'b'", '01 a1', "'c'", '01 a1', "'d'", '01'),
    'map of 2^32 - 1': hex('dfffffffff'),
    'more after it': Buffer.concat([head, hex('91 03 00')]),
    'two objects': Buffer.concat([head, hex('91 03'), head, hex('91 03')]),
    'bin key': hex('82 c405', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", '01'),
    'int key': hex('82 01 a3', "'<i4'", 'a4', "'ndim'", '01'),
    'key twice': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a5', "'dtype'", 'a3', "'<i4'"),
    'key twice, other width': hex(
      '82 a5',
      "'dtype'",
      'a3',
      "'<i4'",
      'd905',
      "'dtype'",
      'a3',
      "'<i4'",
    ),
    'unknown key': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'rank'", '01'),
    'extra key': hex('83 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", '01 a1', "'x'", '01'),
    'no dtype': hex('81 a4', "'ndim'", '01'),
    'no ndim': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'aa', "'item_shape'", '91 03'),
    'dtype int': hex('82 a5', "'dtype'", '05 a4', "'ndim'", '01'),
    'dtype list': hex('82 a5', "'dtype'", '91 01 a4', "'ndim'", '01'),
    'dtype not UTF-8': hex('82 a5', "'dtype'", 'a2 ff fe a4', "'ndim'", '01'),
    'key not UTF-8': hex('82 a2 c3 28 01 a4', "'ndim'", '01'),
    'dtype empty': hex('82 a5', "'dtype'", 'a0 a4', "'ndim'", '01'),
    'ndim bool': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", 'c3'),
    'ndim float': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", 'ca3f800000'),
    'ndim text': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", 'a1', "'1'"),
    'ndim 0': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", '00'),
    'ndim -1': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", 'ff'),
    'ndim 65': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", '41'),
    'ndim 2^64 - 1': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", `cf${'f'.repeat(16)}`),
    'ndim list': hex('82 a5', "'dtype'", 'a3', "'<i4'", 'a4', "'ndim'", '91 01'),
    'shape int': Buffer.concat([head, hex('03')]),
    'shape text': Buffer.concat([head, hex('a1', "'3'")]),
    'shape nil': Buffer.concat([head, hex('c0')]),
    'shape map': Buffer.concat([head, hex('81 03 03')]),
    'shape ext': Buffer.concat([head, hex('d4 01 00')]),
    'shape of bool': Buffer.concat([head, hex('91 c3')]),
    'shape of float': Buffer.concat([head, hex('91 cb4008000000000000')]),
    'shape nested': Buffer.concat([head, hex('91 91 03')]),
    'shape deep': Buffer.concat([head, hex('91'.repeat(1000), '03')]),
    'shape negative': Buffer.concat([head, hex('91 ff')]),
    'shape zero': Buffer.concat([head, hex('91 00')]),
    'shape of 2^32 - 1': Buffer.concat([head, hex('ddffffffff 01')]),
    'rank and ndim differ': Buffer.concat([head, hex('92 03 03')]),
    'width 2^31 + 4': Buffer.concat([head, hex('91 ce20000001')]),
    'dimension 2^64 - 1': Buffer.concat([head, hex(`91 cf${'f'.repeat(16)}`)]),
    'rank 64': hex(
      '83 a5',
      "'dtype'",
      'a3',
      "'<i4'",
      'a4',
      "'ndim'",
      '40 aa',
      "'item_shape'",
      'dc0040',
      '01'.repeat(64),
    ),
    'product over 2^64': hex(
      '83 a5',
      "'dtype'",
      'a3',
      "'<i4'",
      'a4',
      "'ndim'",
      '03 aa',
      "'item_shape'",
      '93 ce7fffffff ce7fffffff ce7fffffff',
    ),
    'a schema of 2041 bytes': Buffer.concat([head, hex('91 03'), Buffer.alloc(2010)]),
    'the reserved byte c1': hex('82 a5', "'dtype'", 'c1 a4', "'ndim'", '01'),
    'hostile arrays': hex('dd 01312d00'),
    'hostile, repeated': Buffer.alloc(2040, hex('dc ff ff')),
  };
  for (const [what, bytes] of Object.entries(cases)) {
    const error = failure(bytes);
    t.match(error, { code: 'MALFORMED', path: '/a', file: 'meta.zr' }, what);
    t.match(error.field, /^(schema|dtype|ndim|item_shape)$/, what);
    t.match(error.message, /^\/a: the (schema is damaged|stored dtype)/, what);
  }
  const whole = Buffer.concat([head, hex('91 03')]);
  for (let length = 0; length < whole.length; length += 1) {
    t.equal(failure(whole.subarray(0, length)).code, 'MALFORMED', `cut to ${length} bytes`);
  }
});

t.test('damage is told in the words of who sees it first', async (t) => {
  const int32 = ["'dtype'", 'a5', "'int32'"] as const;
  const cases: readonly (readonly [Uint8Array, string])[] = [
    // An integer, a length and a text that end before they are whole.
    [hex('81 a4', "'ndim'", 'cd 01'), 'the end where a text, an integer or a list must be'],
    [hex('81 a4', "'ndim'", 'da 00'), 'the end where a text, an integer or a list must be'],
    [hex('81 a5', "'dtype'", 'a3', "'f4'"), 'a text that is cut short or not UTF-8'],
    [hex('81 a2 c3 28 01'), 'a field name that is cut short or not UTF-8'],
    [hex('81 a5', "'dtype'", 'a2 c3 28'), 'a text that is cut short or not UTF-8'],
    // The largest of each kind whose length is in its tag.
    [hex('8f'), 'a map of 15 fields'],
    [hex('81 bf', `'${'k'.repeat(31)}'`, '01'), 'dtype must be a text'],
    [hex('81 a5', "'dtype'", '9f', '01'.repeat(14)), 'the end where an integer must be'],
    // A mark at the beginning of a text is part of it.
    [hex('82 a8 efbbbf', ...int32, 'a5', ...int32), 'the schema must have'],
    [Buffer.alloc(2040, 0xc1), 'another kind of value where a map must be'],
    [Buffer.alloc(2041, 0xc1), 'over 2040 bytes'],
  ];
  for (const [bytes, words] of cases) {
    const { code, message } = failure(bytes);
    t.equal(code, 'MALFORMED');
    t.match(message, words);
  }
  const text = '{"dtype": "int32", "ndim": 1}';
  const damaged = Buffer.from(text);
  damaged[11] = 0xff;
  t.match(failure(damaged).message, 'it is no JSON text');
  t.match(failure(Buffer.from(`\ufeff${text}`)).code, 'MALFORMED');
});

t.test('damaged JSON is MALFORMED', async (t) => {
  for (const text of [
    '{',
    '{}',
    '{"dtype": "int32"}',
    '{"item_shape": [3]}',
    '{"dtype": "int32", "ndim": 1, "item_shape": [3]}',
    '{"dtype": "int32", "rank": 1}',
    '{"dtype": "int32", "dtype": "int32", "ndim": 1}',
    '{"dtype": "int32", "d\\u0074ype": "int32", "ndim": 1}',
    '{"dtype": "int32", "ndim": 1.0}',
    '{"dtype": "int32", "ndim": 1e0}',
    '{"dtype": "int32", "ndim": true}',
    '{"dtype": "int32", "ndim": null}',
    '{"dtype": "int32", "ndim": "1"}',
    '{"dtype": "int32", "ndim": 0}',
    '{"dtype": "int32", "ndim": 65}',
    '{"dtype": "int32", "ndim": [1]}',
    '{"dtype": "int32", "item_shape": 3}',
    '{"dtype": "int32", "item_shape": [0]}',
    '{"dtype": "int32", "item_shape": [-1]}',
    '{"dtype": "int32", "item_shape": [[3]]}',
    '{"dtype": "int32", "item_shape": {"0": 3}}',
    '{"dtype": "int32", "item_shape": [3]} {}',
    '{"dtype": "int32", "item_shape": [3]}\0',
    '{"dtype": ["int32"], "item_shape": [3]}',
    '{"dtype": {"a": "b"}, "item_shape": [3]}',
    '{"dtype": "<i4", "item_shape": [3]}',
    '{"dtype": "numpy:>f4", "item_shape": [3]}',
    '{"dtype": "float64", "item_shape": [536870912]}',
    '{"__proto__": "int32", "ndim": 1}',
    '{"dtype": "int32", "__proto__": 1}',
    `{"dtype": "int32", "item_shape": [${'1, '.repeat(63)}1]}`,
    `{"dtype": "int32", "ndim": 1${' '.repeat(2040)}}`,
    '{dtype: "int32", "ndim": 1}',
    "{'dtype': 'int32', 'ndim': 1}",
  ]) {
    t.equal(failure(Buffer.from(text)).code, 'MALFORMED', text.slice(0, 60));
  }
  const notUtf8 = Buffer.from('{"dtype": "int32", "ndim": 1}');
  notUtf8[11] = 0xff;
  t.equal(failure(notUtf8).code, 'MALFORMED');
});

t.test('a dtype that NumPy knows and no container holds is UNSUPPORTED', async (t) => {
  for (const dtype of ['|O', 'i4,f4', 'long']) {
    const bytes = hex(
      '82 a5',
      "'dtype'",
      (0xa0 + dtype.length).toString(16),
      `'${dtype}'`,
      'a4',
      "'ndim'",
      '01',
    );
    t.match(failure(bytes), { code: 'UNSUPPORTED', field: 'dtype', path: '/a' }, dtype);
  }
});

t.test('keys named as prototype members touch no prototype', async (t) => {
  for (const key of ['__proto__', 'constructor', 'toString']) {
    const bytes = hex(
      '82',
      (0xa0 + key.length).toString(16),
      `'${key}'`,
      'a3',
      "'<i4'",
      'a4',
      "'ndim'",
      '01',
    );
    t.equal(failure(bytes).code, 'MALFORMED', key);
  }
  t.same(Object.keys(Object.prototype), []);
  t.equal(Object.getPrototypeOf({}), Object.prototype);
});

t.test('hostile schemas cost nothing to refuse', async (t) => {
  const hostile = [
    hex('dd 01312d00'),
    Buffer.alloc(2040, hex('dc ff ff')),
    Buffer.alloc(2040, hex('df ff ff ff ff')),
    Buffer.alloc(2040, 0x91),
    Buffer.alloc(2040, 0x81),
    Buffer.from(`{"dtype": ${'['.repeat(2000)}`),
    Buffer.from(`{${'"a":1,'.repeat(300)}"a":1}`),
  ];
  for (const bytes of hostile) failure(bytes);
  const before = process.memoryUsage().heapUsed;
  for (const bytes of hostile) t.equal(failure(bytes).code, 'MALFORMED');
  t.ok(process.memoryUsage().heapUsed - before < 2 ** 20, 'less than 1 MiB for all of them');
});

t.test('the recorded containers, where they lie beside the repository', async (t) => {
  const shared = path.resolve(import.meta.dirname, '..', '..', 'shared', 'fixtures');
  if (!existsSync(shared)) {
    t.comment('no shared folder beside the repository');
    return;
  }
  let count = 0;
  for (const folder of ['containers', 'containers-2.8']) {
    for (const name of readdirSync(path.join(shared, folder))) {
      const file = path.join(shared, folder, name, 'meta.zr');
      if (!existsSync(file)) continue;
      const page = readFileSync(file);
      const bytes = page.subarray(2056, 2056 + page.readUInt16LE(8));
      const schema = decodeSchema(bytes, place);
      t.ok(Buffer.from(encodeSchema(schema)).equals(bytes), `${folder}/${name} is written alike`);
      count += 1;
    }
  }
  t.ok(count >= 120, `${count} schemas`);
});
