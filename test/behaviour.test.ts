// What a user of Python's loaderx 2.4.6 can observe, row by row, and what happens here.
//
// Each case names its row, what the original does, and what we do. The two must be of one kind, or
// the case says why they differ: that is checked too, so the list of differences is complete for
// what is tried here. Sampler rows are in sampler.test.ts.
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import t, { type Test } from 'tap';
import { dtypeOf } from '../ts/dtype.js';
import {
  Dense,
  type DenseReader,
  type DenseWriter,
  type DType,
  type NdArray,
  ndarray,
  open,
  Ragged,
  type RaggedReader,
  type RaggedWriter,
  trainDict,
} from '../ts/index.js';
import { Random } from './interop/random.mjs';
import { runChild } from './support/child.js';
import { codeOf, failureOf, outcomeOf, outcomeOfError } from './support/outcome.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same random cases again`);

/** What the original raises; Z(n) is its own error class with that code. */
type Original =
  | 'accepted'
  | 'TypeError'
  | 'ValueError'
  | 'IndexError'
  | 'RuntimeError'
  | 'its own error'
  | 'Z(-1)'
  | 'Z(-2)'
  | 'Z(-7)'
  | 'Z(-9)'
  | 'Z(-12)'
  | 'Z(-13)';

const wrongArgument = ['TypeError INVALID_ARGUMENT', 'RangeError INVALID_ARGUMENT'];

/** Our outcomes that are of the original's kind. */
const sameKind: Readonly<Record<Original, readonly string[]>> = {
  accepted: ['ok'],
  TypeError: wrongArgument,
  ValueError: [...wrongArgument, 'RangeError TOO_LARGE'],
  IndexError: ['RangeError OUT_OF_RANGE'],
  RuntimeError: ['LoaderxError CLOSED'],
  'its own error': ['its own error'],
  'Z(-1)': ['LoaderxError OUT_OF_MEMORY'],
  'Z(-2)': ['LoaderxError IO'],
  'Z(-7)': ['LoaderxError CODEC'],
  'Z(-9)': ['LoaderxError DICTIONARY'],
  'Z(-12)': ['LoaderxError EXISTS'],
  'Z(-13)': ['LoaderxError LOCKED'],
};

interface Case<Subject> {
  /** The row of the page, and what of it is tried. */
  readonly row: string;
  readonly original: Original;
  readonly ours: string;
  /** Why ours is of another kind. */
  readonly differs?: string;
  readonly act: (subject: Subject, t: Test) => unknown;
}

/** Checks what the case says about itself. */
function judge(
  t: Test,
  { row, original, ours, differs }: Omit<Case<never>, 'act'>,
  came: string,
): void {
  t.equal(came, ours, `${row}: ${original} in Python, ${ours} here`);
  const isSame = sameKind[original].includes(ours);
  t.equal(differs === undefined, isSame, `${row}: a difference has a reason, and only that`);
}

const anyway = <T>(value: T): never => value as never;

// ---- creating ----

const dense = { codec: 'raw', dtype: 'float32', itemShape: [2] } as const;
const ragged = { codec: 'raw', dtype: 'float32', ndim: 1 } as const;

/** A dense build with some options changed, whatever they are. */
function createDense(at: unknown, change: object = {}): DenseWriter {
  return Dense.create(at as string, anyway({ ...dense, ...change }));
}

function createRagged(at: unknown, change: object = {}): RaggedWriter {
  return Ragged.create(at as string, anyway({ ...ragged, ...change }));
}

function published(at: string): string {
  const writer = Dense.create(at, dense);
  writer.appendSync(ndarray('float32', [3, 2], Float32Array.of(1, 2, 3, 4, 5, 6)));
  writer.closeSync();
  return at;
}

type CreateAct = (at: string, t: Test) => DenseWriter | RaggedWriter;
type CreateCase = Omit<Case<string>, 'act'> & { readonly act: CreateAct };

/** Cases of one option, dense and ragged alike where `both`. */
function option(
  row: string,
  values: readonly (readonly [shown: string, change: object])[],
  verdict: { original: Original; ours: string; differs?: string },
  kinds: readonly ('dense' | 'ragged')[] = ['dense', 'ragged'],
): CreateCase[] {
  return kinds.flatMap((kind) =>
    values.map(([shown, change]) => ({
      row: `${kind} ${row}: ${shown}`,
      ...verdict,
      act: (at) => (kind === 'dense' ? createDense(at, change) : createRagged(at, change)),
    })),
  );
}

const accepted = { original: 'accepted', ours: 'ok' } as const;
const refusedType = { original: 'TypeError', ours: 'TypeError INVALID_ARGUMENT' } as const;
const refusedValue = { original: 'ValueError', ours: 'TypeError INVALID_ARGUMENT' } as const;
const refusedRange = { original: 'ValueError', ours: 'RangeError INVALID_ARGUMENT' } as const;
const noDefault = 'there is no default dtype: it is written out';
const listsOnly = 'a shape is a list of numbers, of one kind for the compiler';
const oneName = 'a dtype has one name, so that the name alone decides the typed array';

const createCases: readonly CreateCase[] = [
  { row: 'path: text', ...accepted, act: (at) => createDense(at) },
  {
    row: 'path: a path object (a file: URL)',
    ...accepted,
    act: (at) => createDense(pathToFileURL(at)),
  },
  {
    row: 'path: bytes',
    original: 'TypeError',
    ours: 'ok',
    differs: 'on POSIX a name need not be UTF-8, and then only bytes can say it',
    act: (at) => createDense(Buffer.from(at)),
  },
  {
    row: 'path: parents are made',
    ...accepted,
    act: (at) => createDense(path.join(at, 'a', 'b', 'store')),
  },
  {
    row: 'path: an existing empty folder',
    original: 'accepted',
    ours: 'LoaderxError EXISTS',
    differs: 'publishing is one rename that replaces nothing',
    act: (at) => {
      mkdirSync(at);
      return createDense(at);
    },
  },
  {
    row: 'path: an existing folder that is not empty',
    original: 'Z(-12)',
    ours: 'LoaderxError EXISTS',
    act: (at) => {
      mkdirSync(path.join(at, 'x'), { recursive: true });
      return createDense(at);
    },
  },
  {
    row: 'path: a published container',
    original: 'Z(-12)',
    ours: 'LoaderxError EXISTS',
    act: (at) => createDense(published(at)),
  },
  {
    row: 'path: a container that somebody reads',
    original: 'Z(-13)',
    ours: 'LoaderxError EXISTS',
    differs: 'it is there, read or not: waiting for the reader would not help',
    act: (at) => {
      using _reader = open(published(at));
      return createDense(at);
    },
  },
  {
    row: 'path: somebody builds there',
    original: 'Z(-13)',
    ours: 'LoaderxError LOCKED',
    act: (at) => {
      using _other = createDense(at);
      return createDense(at);
    },
  },
  {
    row: 'path: a file',
    original: 'Z(-2)',
    ours: 'LoaderxError EXISTS',
    differs: 'anything at the path is in the way, and the code says so',
    act: (at) => {
      writeFileSync(at, 'x');
      return createDense(at);
    },
  },
  {
    row: 'path: a symbolic link to nowhere',
    original: 'Z(-2)',
    ours: 'LoaderxError EXISTS',
    differs: 'anything at the path is in the way, and the code says so',
    act: (at) => {
      symlinkSync(`${at}-nowhere`, at);
      return createDense(at);
    },
  },
  {
    row: 'path: below a file',
    original: 'Z(-2)',
    ours: 'LoaderxError IO',
    act: (at) => {
      writeFileSync(at, 'x');
      return createDense(path.join(at, 'store'));
    },
  },
  {
    row: 'path: a NUL character',
    original: 'Z(-2)',
    ours: 'RangeError INVALID_ARGUMENT',
    differs: 'no file system can have it, so it is an argument error',
    act: (at) => createDense(`${at}\0x`),
  },
  {
    row: 'path: empty',
    original: 'Z(-2)',
    ours: 'RangeError INVALID_ARGUMENT',
    differs: 'no file system can have it, so it is an argument error',
    act: () => createDense(''),
  },
  ...[undefined, null, 3, true, ['a'], {}, new URL('http://host/a'), new Map()].map(
    (value): CreateCase => ({
      row: `path: ${value instanceof URL ? value.href : String(value)}`,
      ...refusedType,
      act: () => createDense(value),
    }),
  ),

  ...option(
    'codec',
    [
      ['raw', { codec: 'raw' }],
      ['zstd', { codec: 'zstd' }],
      ['zstd_dict', { codec: 'zstd_dict', dictBytes: Uint8Array.of(1) }],
    ],
    accepted,
  ),
  ...option(
    'codec',
    [
      ['other case', { codec: 'RAW' }],
      ['another name', { codec: 'lz4' }],
      ['None', { codec: null }],
      ['bytes', { codec: Buffer.from('raw') }],
      ['a number', { codec: 0 }],
    ],
    refusedValue,
  ),
  ...option('codec', [['left out', { codec: undefined }]], refusedType),

  ...option(
    'data_shards',
    [
      ['1', { dataShards: 1 }],
      ['255', { dataShards: 255 }],
    ],
    accepted,
  ),
  ...option('data_shards', [['left out', { dataShards: undefined }]], accepted),
  ...option(
    'data_shards',
    [
      ['0', { dataShards: 0 }],
      ['-1', { dataShards: -1 }],
      ['256', { dataShards: 256 }],
    ],
    refusedRange,
  ),
  ...option(
    'data_shards',
    [
      ['bool', { dataShards: true }],
      ['float', { dataShards: 1.5 }],
      ['NaN', { dataShards: Number.NaN }],
      ['text', { dataShards: '4' }],
      ['None', { dataShards: null }],
    ],
    refusedValue,
  ),

  ...option(
    'dtype',
    [
      ['None', { dtype: null }],
      ['left out', { dtype: undefined }],
    ],
    {
      original: 'accepted',
      ours: 'TypeError INVALID_ARGUMENT',
      differs: noDefault,
    },
  ),
  ...option(
    'dtype',
    [
      ['structured', { dtype: 'numpy:i4,f8' }],
      ['a subarray', { dtype: 'numpy:(2,)f4' }],
      ['an object', { dtype: 'numpy:O' }],
      ['variable-width text', { dtype: 'numpy:T' }],
      ['S of no size', { dtype: 'numpy:S' }],
      ['U of no size', { dtype: 'numpy:U0' }],
      ['V of no size', { dtype: 'numpy:|V0' }],
    ],
    refusedValue,
  ),
  ...option(
    'dtype',
    [
      ['unknown text', { dtype: 'float12' }],
      ['empty text', { dtype: '' }],
      ['a number', { dtype: 4 }],
      ['a class', { dtype: Float32Array }],
      ['another object', { dtype: {} }],
    ],
    refusedType,
  ),

  ...option(
    'item_shape',
    [
      ['scalars', { itemShape: [] }],
      ['a list', { itemShape: [2, 3] }],
      ['63 dimensions', { itemShape: Array(63).fill(1) }],
      ['2^31 bytes', { dtype: 'uint8', itemShape: [2 ** 31] }],
      ['one byte', { dtype: 'uint8', itemShape: [1] }],
    ],
    accepted,
    ['dense'],
  ),
  ...option(
    'item_shape',
    [
      ['a set', { itemShape: new Set([2]) }],
      ['a generator', { itemShape: [2].values() }],
      ['a typed array', { itemShape: Uint32Array.of(2) }],
    ],
    { original: 'accepted', ours: 'TypeError INVALID_ARGUMENT', differs: listsOnly },
    ['dense'],
  ),
  ...option(
    'item_shape',
    [
      ['an int', { itemShape: 3 }],
      ['text', { itemShape: '23' }],
      ['a text dimension', { itemShape: ['2'] }],
      ['a float dimension', { itemShape: [1.5] }],
      ['a bool dimension', { itemShape: [true] }],
      ['a hole', { itemShape: Array(2) }],
      ['left out', { itemShape: undefined }],
    ],
    refusedValue,
    ['dense'],
  ),
  ...option(
    'item_shape',
    [
      ['negative', { itemShape: [-1] }],
      ['a zero dimension', { itemShape: [2, 0] }],
      ['64 dimensions', { itemShape: Array(64).fill(1) }],
    ],
    refusedRange,
    ['dense'],
  ),
  ...option(
    'item_shape',
    [
      ['2^31 + 1 bytes', { dtype: 'uint8', itemShape: [2 ** 31 + 1] }],
      ['far over 2^31', { itemShape: [2 ** 30, 2 ** 30, 2 ** 30, 2 ** 30] }],
    ],
    { original: 'ValueError', ours: 'RangeError TOO_LARGE' },
    ['dense'],
  ),

  ...option(
    'ndim',
    [
      ['1', { ndim: 1 }],
      ['64', { ndim: 64 }],
    ],
    accepted,
    ['ragged'],
  ),
  ...option(
    'ndim',
    [
      ['0', { ndim: 0 }],
      ['65', { ndim: 65 }],
      ['negative', { ndim: -1 }],
    ],
    refusedRange,
    ['ragged'],
  ),
  ...option(
    'ndim',
    [
      ['bool', { ndim: true }],
      ['float', { ndim: 1.5 }],
      ['None', { ndim: null }],
      ['text', { ndim: '1' }],
    ],
    refusedValue,
    ['ragged'],
  ),
  ...option('ndim', [['left out', { ndim: undefined }]], refusedType, ['ragged']),

  ...option(
    'dict_bytes',
    [
      ['one byte', { codec: 'zstd_dict', dictBytes: Uint8Array.of(7) }],
      ['a Buffer (bytearray)', { codec: 'zstd_dict', dictBytes: Buffer.from('abc') }],
      ['1 MiB, no magic', { codec: 'zstd_dict', dictBytes: new Uint8Array(2 ** 20).fill(5) }],
      [
        'shared memory',
        { codec: 'zstd_dict', dictBytes: new Uint8Array(new SharedArrayBuffer(8)) },
      ],
    ],
    accepted,
  ),
  ...option(
    'dict_bytes',
    [
      [
        'a DataView (memoryview)',
        { codec: 'zstd_dict', dictBytes: new DataView(new ArrayBuffer(8)) },
      ],
      ['an ArrayBuffer', { codec: 'zstd_dict', dictBytes: new ArrayBuffer(8) }],
    ],
    {
      original: 'accepted',
      ours: 'TypeError INVALID_ARGUMENT',
      differs: 'bytes are a Uint8Array, and nothing is converted',
    },
  ),
  ...option(
    'dict_bytes',
    [
      ['with raw', { codec: 'raw', dictBytes: Uint8Array.of(1) }],
      ['with zstd, even empty', { codec: 'zstd', dictBytes: new Uint8Array(0) }],
      ['missing', { codec: 'zstd_dict' }],
      ['a list of numbers', { codec: 'zstd_dict', dictBytes: [1, 2, 3] }],
      ['other items', { codec: 'zstd_dict', dictBytes: Uint16Array.of(1, 2) }],
    ],
    refusedValue,
  ),
  ...option(
    'dict_bytes',
    [['empty', { codec: 'zstd_dict', dictBytes: new Uint8Array(0) }]],
    refusedRange,
  ),
  ...option('dict_bytes', [['text', { codec: 'zstd_dict', dictBytes: 'abc' }]], refusedType),
  ...option(
    'dict_bytes',
    [['a damaged trained dictionary', { codec: 'zstd_dict', dictBytes: damagedDictionary() }]],
    {
      original: 'Z(-1)',
      ours: 'LoaderxError DICTIONARY',
      differs: 'it is the dictionary that is unusable, not memory that is short',
    },
  ),
  ...option('an option that is not known', [['', { datashards: 4 }]], refusedType),
];

/** The magic number and the id of a trained dictionary, and then nothing of use. */
function damagedDictionary(): Uint8Array {
  const bytes = new Uint8Array(64).fill(0xff);
  bytes.set([0x37, 0xa4, 0x30, 0xec, 1, 0, 0, 0]);
  return bytes;
}

t.test('create', async (t) => {
  for (const one of createCases) {
    const at = scratch.fresh();
    let writer: DenseWriter | RaggedWriter | undefined;
    let before: string[] = [];
    const came = await outcomeOf(() => {
      try {
        writer = one.act(at, t);
      } finally {
        before = tree(path.dirname(at)).filter((name) => !name.includes('.build-'));
      }
    });
    judge(t, one, came);
    if (writer === undefined) {
      t.strictSame(tree(path.dirname(at)), before, `${one.row}: nothing is left on disk`);
      continue;
    }
    t.notOk(
      existsSync(writer.path) && writer.path === at,
      `${one.row}: nothing is at the path yet`,
    );
    writer.abort();
    t.notOk(
      tree(path.dirname(at)).some((name) => name.includes('.build-')),
      `${one.row}: abort leaves nothing`,
    );
  }
});

/** Every name below a folder. */
function tree(folder: string): string[] {
  return (readdirSync(folder, { recursive: true }) as string[]).sort();
}

t.test('create: Dense() and Ragged() themselves are no constructors', (t) => {
  for (const [name, thing] of Object.entries({ Dense, Ragged })) {
    const make = thing as unknown as { new (): unknown; (): unknown };
    t.throws(() => new make(), TypeError, `new ${name}()`);
    t.throws(() => make(), TypeError, `${name}()`);
  }
  t.end();
});

t.test('create: an error names the option', async (t) => {
  const changes: readonly (readonly [field: string, change: object])[] = [
    ['codec', { codec: 'gzip' }],
    ['dataShards', { dataShards: 999 }],
    ['dtype', { dtype: 'f4' }],
    ['itemShape', { itemShape: [0] }],
    ['dictBytes', { dictBytes: Uint8Array.of(1) }],
    ['dialect', { dialect: '2.5' }],
    ['shards', { shards: 4 }],
  ];
  for (const [field, change] of changes) {
    const error = await failureOf(() => createDense(scratch.fresh(), change));
    t.equal(error.field, field);
    t.match(error.message, field);
    t.same(JSON.parse(JSON.stringify(error)).code, error.code, `${field}: JSON-safe`);
  }
});

// ---- dtypes ----

/** Python's spelling, what is stored, and the name here. */
const spellings: readonly (readonly [python: string, stored: string, ours: DType])[] = [
  ['?', '|b1', 'bool'],
  ['i1', '|i1', 'int8'],
  ['u1', '|u1', 'uint8'],
  ['i2', '<i2', 'int16'],
  ['u2', '<u2', 'uint16'],
  ['i4', '<i4', 'int32'],
  ['u4', '<u4', 'uint32'],
  ['i8', '<i8', 'int64'],
  ['u8', '<u8', 'uint64'],
  ['f2', '<f2', 'float16'],
  ['f4', '<f4', 'float32'],
  ['f8', '<f8', 'float64'],
  ['g', '<f16', 'numpy:<f16'],
  ['c8', '<c8', 'complex64'],
  ['c16', '<c16', 'complex128'],
  ['G', '<c32', 'numpy:<c32'],
  ['>i4', '>i4', 'numpy:>i4'],
  ['>u2', '>u2', 'numpy:>u2'],
  ['>f8', '>f8', 'numpy:>f8'],
  ['>c16', '>c16', 'numpy:>c16'],
  ['>?', '|b1', 'bool'],
  ['>i1', '|i1', 'int8'],
  ['=i4', '<i4', 'int32'],
  ['M8[ns]', '<M8[ns]', 'numpy:<M8[ns]'],
  ['M8[25us]', '<M8[25us]', 'numpy:<M8[25us]'],
  ['M8', '<M8', 'numpy:<M8'],
  ['m8[s]', '<m8[s]', 'numpy:<m8[s]'],
  ['>M8[ns]', '>M8[ns]', 'numpy:>M8[ns]'],
  ['S5', '|S5', 'numpy:|S5'],
  ['U3', '<U3', 'numpy:<U3'],
  ['>U3', '>U3', 'numpy:>U3'],
  ['V8', '|V8', 'numpy:|V8'],
  ['S70000', '|S70000', 'numpy:|S70000'],
];

/** The dtype text of a container's MsgPack schema. */
function storedDtype(at: string): string {
  const page = readFileSync(path.join(at, 'meta.zr'));
  const text = page.toString('latin1', 2056, 2056 + page.readUInt16LE(8));
  const start = text.indexOf('\xa5dtype') + '\xa5dtype'.length;
  const length = text.charCodeAt(start) & 0x1f;
  return text.slice(start + 1, start + 1 + length);
}

function randomItems(random: Random, dtype: DType, count: number): NdArray {
  const info = dtypeOf(dtype);
  const bytes = new Uint8Array(count * info.itemBytes);
  random.fill(bytes);
  return { dtype, shape: [count], data: new info.constructorOf(bytes.buffer) };
}

function bytesOf({ data }: NdArray): Buffer {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength);
}

t.test('dtypes: every spelling of the page', async (t) => {
  const random = new Random(seed, 'spellings');
  for (const [python, stored, ours] of spellings) {
    const items = randomItems(random, ours, 5);

    const denseAt = scratch.fresh();
    const denseWriter = Dense.create(denseAt, { codec: 'zstd', dtype: ours, itemShape: [] });
    denseWriter.appendSync(items);
    denseWriter.closeSync();
    t.equal(storedDtype(denseAt), stored, `${python}: stored as ${stored}`);
    using denseReader = Dense.open(denseAt, { dtype: ours });
    t.equal(denseReader.dtype, ours);
    t.ok(
      bytesOf(await denseReader.slice()).equals(bytesOf(items)),
      `${python}: dense, bit for bit`,
    );

    const raggedAt = scratch.fresh();
    const raggedWriter = Ragged.create(raggedAt, { codec: 'zstd', dtype: ours, ndim: 1 });
    raggedWriter.appendSync([items]);
    raggedWriter.closeSync();
    t.equal(storedDtype(raggedAt), stored);
    using raggedReader = Ragged.open(raggedAt, { dtype: ours });
    const record = raggedReader.record(0);
    t.strictSame(record.shape, [5]);
    t.ok(bytesOf(record).equals(bytesOf(items)), `${python}: ragged, bit for bit`);
  }
});

t.test(`dtypes: ${oneName}`, async (t) => {
  const others = spellings.flatMap(([python, stored, ours]) =>
    [python, stored, `numpy:${python}`, `numpy:${stored}`]
      .filter((text) => text !== ours)
      .map((text) => [text, ours] as const),
  );
  for (const [text, ours] of others) {
    const error = await failureOf(() => createDense(scratch.fresh(), { dtype: text }));
    t.equal(outcomeOfError(error), 'TypeError INVALID_ARGUMENT', text);
    t.match(error.message, JSON.stringify(ours), `${text}: the message names ${ours}`);
  }
});

// ---- a writer's facts ----

t.test('writer: its facts are readable, also after close', async (t) => {
  const denseAt = scratch.fresh();
  const denseWriter = Dense.create(denseAt, { ...dense, dataShards: 3 });
  const raggedAt = scratch.fresh();
  const dictBytes = Buffer.from('some bytes');
  const raggedWriter = Ragged.create(raggedAt, { ...ragged, codec: 'zstd_dict', dictBytes });
  const facts = (): unknown[] => [
    [denseWriter.kind, denseWriter.dtype, denseWriter.itemShape, denseWriter.ndim],
    [denseWriter.codec, denseWriter.dataShards, denseWriter.path, denseWriter.hasDict],
    [raggedWriter.kind, raggedWriter.dtype, raggedWriter.ndim, raggedWriter.codec],
    [raggedWriter.dataShards, raggedWriter.path, raggedWriter.hasDict],
  ];
  const expected = [
    ['dense', 'float32', [2], 1],
    ['raw', 3, denseAt, false],
    ['ragged', 'float32', 1, 'zstd_dict'],
    [4, raggedAt, true],
  ];
  t.strictSame(facts(), expected);
  t.equal(denseWriter.length, 0);
  await denseWriter.append(ndarray('float32', [1, 2], new Float32Array(2)));
  t.equal(denseWriter.length, 1, 'length counts records that are written');
  denseWriter.closeSync();
  raggedWriter.closeSync();
  t.strictSame(facts(), expected);
  t.equal(denseWriter.length, 1);
});

t.test('writer: it cannot be read (RuntimeError in Python; here it does not even compile)', (t) => {
  for (const writer of [createDense(scratch.fresh()), createRagged(scratch.fresh())]) {
    for (const name of ['gather', 'gatherSync', 'slice', 'record', 'batches', Symbol.iterator]) {
      t.notOk(name in writer, `${writer.kind}: ${String(name)}`);
    }
    writer.abort();
  }
  t.end();
});

// ---- appending, dense ----

interface Appending {
  /** `append` or `appendSync` of a writer. */
  append(batch: unknown): unknown;
}

/** A container of [3] float32 and one of scalars. */
interface DenseSubject {
  readonly vectors: Appending;
  readonly scalars: Appending;
}

const two = Float32Array.of(1, 2, 3, 4, 5, 6);

const denseAppendCases: readonly Case<DenseSubject>[] = [
  {
    row: 'C order',
    ...accepted,
    act: ({ vectors }) => vectors.append(ndarray('float32', [2, 3], two)),
  },
  {
    row: 'strided, reversed, … (a typed array has no strides: a view into other memory)',
    ...accepted,
    act: ({ vectors }) => {
      const data = new Float32Array([9, ...two, 9]).subarray(1, 7);
      return vectors.append({ dtype: 'float32', shape: [2, 3], data });
    },
  },
  {
    row: 'read-only (a frozen object)',
    ...accepted,
    act: ({ vectors }) =>
      vectors.append(Object.freeze({ dtype: 'float32', shape: Object.freeze([2, 3]), data: two })),
  },
  {
    row: 'memory-mapped (shared memory)',
    ...accepted,
    act: ({ vectors }) => {
      const data = new Float32Array(new SharedArrayBuffer(24));
      data.set(two);
      return vectors.append({ dtype: 'float32', shape: [2, 3], data });
    },
  },
  {
    row: 'an ndarray subclass (an instance of another class, fields by getters)',
    ...accepted,
    act: ({ vectors }) => {
      class Mine {
        get dtype(): 'float32' {
          return 'float32';
        }
        get shape(): number[] {
          return [2, 3];
        }
        get data(): Float32Array {
          return two;
        }
      }
      return vectors.append(new Mine());
    },
  },
  {
    row: 'masked array: the mask is ignored (so is any other field)',
    ...accepted,
    act: ({ vectors }) => {
      const masked = { dtype: 'float32', shape: [2, 3], data: two, mask: [1, 0] } as const;
      return vectors.append(masked);
    },
  },
  {
    row: '0-d array on a scalar store',
    original: 'accepted',
    ours: 'RangeError INVALID_ARGUMENT',
    differs: 'a record without its leading axis is refused for every item shape alike',
    act: ({ scalars }) => scalars.append({ dtype: 'int64', shape: [], data: BigInt64Array.of(1n) }),
  },
  ...[
    [[1, 2, 3]],
    [1, 2, 3],
    two,
    Buffer.alloc(24),
    new DataView(two.buffer),
    two.buffer,
    null,
    undefined,
    3,
    'abc',
    {},
    { dtype: 'float32', shape: [2, 3] },
    { dtype: 'float32', data: two },
    { shape: [2, 3], data: two },
    { dtype: 'float32', shape: '23', data: two },
    { dtype: 'float32', shape: [2, '3'], data: two },
    { dtype: 'float32', shape: [2, 3], data: [...two] },
    { dtype: 'float32', shape: [2, 3], data: two.buffer },
  ].map(
    (value, index): Case<DenseSubject> => ({
      row: `list, tuple, bytes, memoryview, None, a scalar (${index})`,
      ...refusedType,
      act: ({ vectors }) => vectors.append(value),
    }),
  ),
  {
    row: 'n = 0',
    ...refusedRange,
    act: ({ vectors }) => vectors.append(ndarray('float32', [0, 3], new Float32Array(0))),
  },
  ...[[3], [2, 4], [2, 3, 1], [1, 2, 3], [6], [], [3, 2]].map(
    (shape): Case<DenseSubject> => ({
      row: `a bare record, another shape, another rank: [${shape}]`,
      ...refusedRange,
      act: ({ vectors }) => {
        const length = shape.reduce((product, size) => product * size, 1);
        return vectors.append({ dtype: 'float32', shape, data: new Float32Array(length) });
      },
    }),
  ),
  {
    row: 'items that are not as many as the shape says',
    ...refusedRange,
    act: ({ vectors }) =>
      vectors.append({ dtype: 'float32', shape: [2, 3], data: new Float32Array(5) }),
  },
  ...(
    [
      ['float32', 'float64'],
      ['float32', 'int32'],
      ['float32', 'numpy:>f4'],
      ['bool', 'uint8'],
      ['uint8', 'bool'],
      ['float16', 'uint16'],
      ['int64', 'uint64'],
      ['numpy:<M8[ns]', 'numpy:<M8[us]'],
      ['numpy:<M8[ns]', 'numpy:<m8[ns]'],
      ['numpy:<M8[ns]', 'int64'],
      ['numpy:|S5', 'numpy:|S4'],
      ['numpy:|S8', 'numpy:|V8'],
      ['numpy:<U3', 'numpy:>U3'],
    ] as const
  ).map(
    ([held, given]): Case<DenseSubject> => ({
      row: `other dtype, byte order, unit, width: ${given} for ${held}`,
      ...refusedValue,
      act: async (_, t) => {
        const writer = createDense(scratch.fresh(), { dtype: held, itemShape: [] });
        const items = randomItems(new Random(seed, given), given, 2);
        try {
          await writer.append(items);
        } finally {
          t.equal(writer.length, 0);
          writer.abort();
        }
      },
    }),
  ),
  {
    row: 'another typed array for the dtype',
    ...refusedType,
    act: ({ vectors }) =>
      vectors.append({ dtype: 'float32', shape: [1, 3], data: new Float64Array(3) }),
  },
  {
    row: 'alias types of equal layout (longlong for int64)',
    original: 'accepted',
    ours: 'TypeError INVALID_ARGUMENT',
    differs: oneName,
    act: ({ scalars }) =>
      scalars.append({ dtype: 'longlong', shape: [1], data: BigInt64Array.of(1n) }),
  },
];

t.test('append, dense', async (t) => {
  for (const mode of ['append', 'appendSync'] as const) {
    for (const one of denseAppendCases) {
      const at = scratch.fresh();
      const vectors: DenseWriter = Dense.create(at, { ...dense, itemShape: [3] });
      const scalars: DenseWriter = Dense.create(scratch.fresh(), {
        ...dense,
        dtype: 'int64',
        itemShape: [],
      });
      const subject = { vectors: appending(vectors, mode), scalars: appending(scalars, mode) };
      const before = ndarray('float32', [1, 3], Float32Array.of(-1, -2, -3));
      vectors.appendSync(before);
      const came = await outcomeOf(() => one.act(subject, t));
      judge(t, { ...one, row: `${mode}, ${one.row}` }, came);
      const added = came === 'ok' ? 2 : 0;
      t.equal(vectors.length, 1 + added, `${one.row}: length`);
      t.equal(scalars.length, 0);
      await vectors.append(before);
      await vectors.close();
      scalars.closeSync();
      using reader = Dense.open(at);
      const expected = [...before.data, ...(added > 0 ? two : []), ...before.data];
      t.strictSame([...(await reader.slice()).data], expected, `${one.row}: the writer went on`);
    }
  }
});

function appending(writer: DenseWriter, mode: 'append' | 'appendSync'): Appending {
  return { append: (batch) => writer[mode](anyway(batch)) };
}

// ---- appending, ragged ----

const rows = [
  ndarray('float32', [1, 2], Float32Array.of(1, 2)),
  ndarray('float32', [2, 1], Float32Array.of(3, 4)),
];

class UserError extends Error {}

interface RaggedSubject {
  readonly writer: RaggedWriter<'float32'>;
  /** `append` or `appendSync` of the writer. */
  append(records: unknown): unknown;
}

interface RaggedCase extends Case<RaggedSubject> {
  /** Not for `appendSync`. */
  readonly asyncOnly?: boolean;
  /** Items that an accepted case adds; those of `rows` unless given. */
  readonly values?: readonly number[];
}

const raggedAppendCases: readonly RaggedCase[] = [
  { row: 'a list', ...accepted, act: ({ append }) => append(rows) },
  { row: 'a generator', ...accepted, act: ({ append }) => append(rows.values()) },
  {
    row: 'dict values',
    ...accepted,
    act: ({ append }) => append(new Map(rows.map((row, index) => [index, row])).values()),
  },
  { row: 'a set', ...accepted, act: ({ append }) => append(new Set(rows)) },
  {
    row: 'the same array twice',
    ...accepted,
    values: [1, 2, 1, 2],
    act: ({ append }) => append([rows[0], rows[0]]),
  },
  {
    row: 'an async iterable (there is none in Python)',
    ...accepted,
    asyncOnly: true,
    act: ({ append }) => append(asynchronous(rows)),
  },
  {
    row: 'a gathered batch',
    ...accepted,
    act: async ({ append }) => append(batchOfRows()),
  },
  {
    row: 'a higher-rank array, its rows are the records',
    original: 'accepted',
    ours: 'TypeError INVALID_ARGUMENT',
    differs: 'an array {dtype, shape, data} is no iterable: rows of one shape are Dense',
    act: ({ append }) => append(ndarray('float32', [2, 1, 2], new Float32Array(4))),
  },
  {
    row: 'strided, … (views into one memory)',
    ...accepted,
    act: ({ append }) => {
      const data = Float32Array.of(0, 1, 2, 0, 3, 4, 0);
      return append([
        { dtype: 'float32', shape: [1, 2], data: data.subarray(1, 3) },
        { dtype: 'float32', shape: [2, 1], data: data.subarray(4, 6) },
      ]);
    },
  },
  { row: 'an empty iterable', ...refusedRange, act: ({ append }) => append([]) },
  {
    row: 'an empty async iterable',
    ...refusedRange,
    asyncOnly: true,
    act: ({ append }) => append(asynchronous([])),
  },
  ...[undefined, null, 3, {}, rows[0], Symbol('x'), () => rows].map(
    (value, index): Case<RaggedSubject> => ({
      row: `not iterable (${index})`,
      ...refusedType,
      act: ({ append }) => append(value),
    }),
  ),
  ...[[1, 2], Buffer.alloc(8), 3, 'ab', null, undefined, new Float32Array(2), {}].map(
    (value, index): Case<RaggedSubject> => ({
      row: `an element that is no array (${index})`,
      ...refusedType,
      act: ({ append }) => append([rows[0], value]),
    }),
  ),
  { row: 'text', ...refusedType, act: ({ append }) => append('ab') },
  { row: 'bytes', ...refusedType, act: ({ append }) => append(Buffer.alloc(8)) },
  ...(
    [
      ['another dtype', { dtype: 'float64', shape: [1, 1], data: new Float64Array(1) }],
      ['another byte order', { dtype: 'numpy:>f4', shape: [1, 1], data: new Uint8Array(4) }],
    ] as const
  ).map(
    ([what, value]): Case<RaggedSubject> => ({
      row: what,
      ...refusedValue,
      act: ({ append }) => append([rows[0], value]),
    }),
  ),
  ...(
    [
      ['a lower rank', { dtype: 'float32', shape: [2], data: new Float32Array(2) }],
      ['a higher rank', { dtype: 'float32', shape: [1, 2, 1], data: new Float32Array(2) }],
      ['a zero-size record', { dtype: 'float32', shape: [0, 2], data: new Float32Array(0) }],
    ] as const
  ).map(
    ([what, value]): Case<RaggedSubject> => ({
      row: what,
      ...refusedRange,
      act: ({ append }) => append([rows[0], value]),
    }),
  ),
  {
    row: 'dimensions and payload over 2^31 bytes together',
    original: 'ValueError',
    ours: 'RangeError TOO_LARGE',
    act: ({ append }) => {
      // Never touched, so it takes no memory.
      const data = new Float32Array(2 ** 29 - 1);
      return append([rows[0], { dtype: 'float32', shape: [1, data.length], data }]);
    },
  },
  {
    row: 'the iterable raises',
    original: 'its own error',
    ours: 'its own error',
    act: async ({ append }) => {
      const mine = new UserError('mine');
      const error = await failureOf(() =>
        append(
          (function* () {
            yield rows[0];
            throw mine;
          })(),
        ),
      );
      throw error === mine ? new OwnError() : error;
    },
  },
  {
    row: 'the async iterable raises',
    original: 'its own error',
    ours: 'its own error',
    asyncOnly: true,
    act: async ({ append }) => {
      const mine = new UserError('mine');
      const error = await failureOf(() =>
        append(
          (async function* () {
            yield rows[0];
            throw mine;
          })(),
        ),
      );
      throw error === mine ? new OwnError() : error;
    },
  },
];

/** Stands for "the very error that the caller's code threw". */
class OwnError extends Error {
  override readonly name = 'its own error';
}

async function* asynchronous<T>(items: readonly T[]): AsyncGenerator<T, void, undefined> {
  for (const item of items) {
    await Promise.resolve();
    yield item;
  }
}

/** The rows as a reader gives them. */
function batchOfRows() {
  const at = scratch.fresh();
  const writer = Ragged.create(at, { ...ragged, ndim: 2 });
  writer.appendSync(rows);
  writer.closeSync();
  using reader = Ragged.open(at);
  return reader.gatherSync([0, 1]);
}

t.test('append, ragged', async (t) => {
  for (const mode of ['append', 'appendSync'] as const) {
    for (const one of raggedAppendCases) {
      if (mode === 'appendSync' && one.asyncOnly === true) continue;
      const at = scratch.fresh();
      const writer = Ragged.create(at, { ...ragged, ndim: 2 });
      const append =
        mode === 'append'
          ? (records: unknown) => writer.append(anyway(records))
          : (records: unknown) => writer.appendSync(anyway(records));
      const before = ndarray('float32', [1, 1], Float32Array.of(-1));
      writer.appendSync([before]);
      const came = await outcomeOf(() => one.act({ writer, append }, t));
      judge(t, { ...one, row: `${mode}, ${one.row}` }, came);
      const added = came === 'ok' ? rows.length : 0;
      t.equal(writer.length, 1 + added, `${one.row}: length`);
      await writer.append([before]);
      await writer.close();
      using reader = Ragged.open(at);
      const expected = [-1, ...(added > 0 ? (one.values ?? [1, 2, 3, 4]) : []), -1];
      t.strictSame([...(await reader.slice()).values], expected, `${one.row}: the writer went on`);
    }
  }
});

t.test('append, ragged: the iterable closes the writer (RuntimeError in Python)', async (t) => {
  for (const mode of ['append', 'appendSync'] as const) {
    const at = scratch.fresh();
    const writer = Ragged.create(at, { ...ragged, ndim: 2 });
    await writer.append([ndarray('float32', [1, 1], Float32Array.of(-1))]);
    const closing: Promise<void>[] = [];
    const records = (function* () {
      yield rows[0] as NdArray<'float32'>;
      closing.push(writer.close());
      yield rows[1] as NdArray<'float32'>;
    })();
    t.equal(
      await outcomeOf(() => writer[mode](records)),
      'LoaderxError CLOSED',
      `${mode}: CLOSED, as RuntimeError there`,
    );
    await Promise.all(closing);
    t.equal(closing.length, 1);
    using reader = Ragged.open(at);
    t.equal(reader.length, 1, `${mode}: all or nothing; what was there is published`);
  }
});

t.test('append, ragged: the iterable is consumed once and completely', async (t) => {
  const writer = Ragged.create(scratch.fresh(), { ...ragged, ndim: 2 });
  let opened = 0;
  let pulled = 0;
  const source = {
    *[Symbol.iterator]() {
      opened += 1;
      for (const row of rows) {
        pulled += 1;
        yield row;
      }
    },
  };
  await writer.append(source);
  writer.appendSync(source);
  t.strictSame([opened, pulled, writer.length], [2, 4, 4]);
  writer.abort();
});

t.test(
  'append, ragged: a closed writer is noticed before the records (after them in Python)',
  async (t) => {
    const writer = createRagged(scratch.fresh());
    writer.abort();
    t.equal(await codeOf(() => writer.append(anyway(3))), 'CLOSED');
    t.equal(await codeOf(() => writer.appendSync(anyway([{}]))), 'CLOSED');
  },
);

// ---- reading ----

interface ReadSubject {
  /** 10 records of [2] float32: record i is [i, i + 0.5]. */
  readonly dense: DenseReader<'float32'>;
  /** 10 scalars of int64: i. */
  readonly scalars: DenseReader<'int64'>;
  /** 10 records: i + 1 times the item i. */
  readonly ragged: RaggedReader<'uint8'>;
}

const recordCount = 10;

function makeReaders(): ReadSubject {
  const denseAt = scratch.fresh();
  const denseWriter = Dense.create(denseAt, dense);
  const scalarsAt = scratch.fresh();
  const scalarWriter = Dense.create(scalarsAt, { codec: 'raw', dtype: 'int64', itemShape: [] });
  const raggedAt = scratch.fresh();
  const raggedWriter = Ragged.create(raggedAt, { codec: 'zstd', dtype: 'uint8', ndim: 1 });
  for (let id = 0; id < recordCount; id += 1) {
    denseWriter.appendSync(ndarray('float32', [1, 2], Float32Array.of(id, id + 0.5)));
    scalarWriter.appendSync(ndarray('int64', [1], BigInt64Array.of(BigInt(id))));
    raggedWriter.appendSync([ndarray('uint8', [id + 1], new Uint8Array(id + 1).fill(id))]);
  }
  for (const writer of [denseWriter, scalarWriter, raggedWriter]) writer.closeSync();
  return {
    dense: Dense.open(denseAt, { dtype: 'float32' }),
    scalars: Dense.open(scalarsAt, { dtype: 'int64' }),
    ragged: Ragged.open(raggedAt, { dtype: 'uint8' }),
  };
}

/** Whether both geometries give the records `ids` for `index`. */
async function gives(t: Test, readers: ReadSubject, index: unknown, ids: readonly number[]) {
  const batch = await readers.dense.gather(anyway(index));
  t.strictSame(batch.shape, [ids.length, 2]);
  t.strictSame(
    [...batch.data],
    ids.flatMap((id) => [id, id + 0.5]),
  );
  t.strictSame([...readers.dense.gatherSync(anyway(index)).data], [...batch.data]);
  const records = await readers.ragged.gather(anyway(index));
  t.strictSame(
    records.toArray().map(({ shape, data }) => [...shape, data[0]]),
    ids.map((id) => [id + 1, id]),
  );
  t.equal(readers.ragged.gatherSync(anyway(index)).length, ids.length);
}

/** Both geometries refuse, in `gather` and `gatherSync`, with one outcome; it is thrown. */
async function refuses(t: Test, readers: ReadSubject, index: unknown): Promise<never> {
  const error = await failureOf(() => readers.dense.gather(anyway(index)));
  const outcome = outcomeOfError(error);
  t.equal(await outcomeOf(() => readers.dense.gatherSync(anyway(index))), outcome);
  t.equal(await outcomeOf(() => readers.ragged.gather(anyway(index))), outcome);
  t.equal(await outcomeOf(() => readers.ragged.gatherSync(anyway(index))), outcome);
  throw error;
}

async function refusesOne(t: Test, readers: ReadSubject, id: unknown): Promise<never> {
  const error = await failureOf(() => readers.dense.record(anyway(id)));
  t.equal(await outcomeOf(() => readers.ragged.record(anyway(id))), outcomeOfError(error));
  throw error;
}

async function refusesSlice(t: Test, readers: ReadSubject, ...parts: unknown[]): Promise<never> {
  const error = await failureOf(() => readers.dense.slice(...(parts as number[])));
  t.equal(
    await outcomeOf(() => readers.ragged.slice(...(parts as number[]))),
    outcomeOfError(error),
  );
  throw error;
}

const lists =
  'ids are a list of numbers, a Uint32Array or a BigUint64Array, so that none is converted';
const noMasks = 'masks are not offered: ids say which records are meant';

const readCases: readonly Case<ReadSubject>[] = [
  {
    row: 'int in range: an array of item_shape',
    ...accepted,
    act: ({ dense, ragged }, t) => {
      t.strictSame(dense.record(3).shape, [2]);
      t.strictSame([...dense.record(3).data], [3, 3.5]);
      t.equal(dense.record(3).dtype, 'float32');
      t.strictSame(ragged.record(3).shape, [4]);
      t.strictSame([...ragged.record(3).data], [3, 3, 3, 3]);
    },
  },
  {
    row: 'int on a scalar store (a NumPy scalar there; an array of shape [] here)',
    ...accepted,
    act: ({ scalars }, t) => {
      const record = scalars.record(7);
      t.strictSame(record.shape, []);
      t.strictSame([...record.data], [7n]);
    },
  },
  {
    row: 'a slice whose ends are out of range is clipped',
    ...accepted,
    act: async ({ dense, ragged }, t) => {
      t.strictSame((await dense.slice(8, 99)).shape, [2, 2]);
      t.strictSame((await dense.slice(99)).shape, [0, 2]);
      t.equal((await ragged.slice(0, 10 ** 15)).length, recordCount);
    },
  },
  {
    row: 'a slice with a negative step',
    ...accepted,
    act: async ({ scalars, ragged }, t) => {
      t.strictSame([...(await scalars.slice(8, 1, -3)).data], [8n, 5n, 2n]);
      t.strictSame([...(await scalars.slice(undefined, undefined, -4)).data], [9n, 5n, 1n]);
      t.strictSame([...(await ragged.slice(2, undefined, -1)).dims], [3, 2, 1]);
    },
  },
  {
    row: 'a slice whose start is negative',
    original: 'IndexError',
    ours: 'RangeError OUT_OF_RANGE',
    act: (readers, t) => refusesSlice(t, readers, -1),
  },
  {
    row: 'a slice whose stop is negative',
    original: 'IndexError',
    ours: 'RangeError OUT_OF_RANGE',
    act: (readers, t) => refusesSlice(t, readers, 5, -1, -1),
  },
  { row: 'slice step 0', ...refusedRange, act: (readers, t) => refusesSlice(t, readers, 0, 5, 0) },
  ...[1.5, '1', true, null, 1n, Number.NaN].flatMap((part): Case<ReadSubject>[] => [
    {
      row: `slice start ${String(part)}`,
      ...refusedType,
      act: (readers, t) => refusesSlice(t, readers, part),
    },
    {
      row: `slice end ${String(part)}`,
      ...refusedType,
      act: (readers, t) => refusesSlice(t, readers, 0, part),
    },
    {
      row: `slice step ${String(part)}`,
      ...refusedType,
      act: (readers, t) => refusesSlice(t, readers, 0, 5, part),
    },
  ]),
  {
    row: 'a list, in the order asked for, repeats allowed',
    ...accepted,
    act: (readers, t) => gives(t, readers, [7, 0, 7, 9], [7, 0, 7, 9]),
  },
  {
    row: 'uint32 array',
    ...accepted,
    act: (readers, t) => gives(t, readers, Uint32Array.of(4, 2), [4, 2]),
  },
  {
    row: 'uint64 array',
    ...accepted,
    act: (readers, t) => gives(t, readers, BigUint64Array.of(4n, 2n), [4, 2]),
  },
  {
    row: 'an array with a stride (a view into other memory)',
    ...accepted,
    act: (readers, t) => gives(t, readers, Uint32Array.of(99, 4, 2, 99).subarray(1, 3), [4, 2]),
  },
  ...[
    Int32Array.of(1),
    Uint8Array.of(1),
    Uint16Array.of(1),
    BigInt64Array.of(1n),
    new Set([1]),
  ].map(
    (value): Case<ReadSubject> => ({
      row: `an integer array of another type: ${value.constructor.name}`,
      original: value instanceof Set ? 'TypeError' : 'accepted',
      ours: 'TypeError INVALID_ARGUMENT',
      ...(value instanceof Set ? {} : { differs: lists }),
      act: (readers, t) => refuses(t, readers, value),
    }),
  ),
  {
    row: 'a nested list',
    original: 'accepted',
    ours: 'TypeError INVALID_ARGUMENT',
    differs: 'flattening it would hide a mistake',
    act: (readers, t) => refuses(t, readers, [[1, 2], [3]]),
  },
  {
    row: '0-d integer array',
    original: 'accepted',
    ours: 'TypeError INVALID_ARGUMENT',
    differs: 'one record is record(id)',
    act: (readers, t) => refuses(t, readers, ndarray('int64', [], BigInt64Array.of(1n))),
  },
  { row: 'an empty list', ...accepted, act: (readers, t) => gives(t, readers, [], []) },
  {
    row: 'an empty array',
    ...accepted,
    act: async (readers, t) => {
      await gives(t, readers, new Uint32Array(0), []);
      await gives(t, readers, new BigUint64Array(0), []);
    },
  },
  {
    row: 'an empty float array',
    original: 'accepted',
    ours: 'TypeError INVALID_ARGUMENT',
    differs: lists,
    act: (readers, t) => refuses(t, readers, new Float64Array(0)),
  },
  {
    row: 'a list of booleans of length N',
    original: 'accepted',
    ours: 'TypeError INVALID_ARGUMENT',
    differs: noMasks,
    act: (readers, t) => refuses(t, readers, Array(recordCount).fill(true)),
  },
  {
    row: 'booleans of another length',
    original: 'IndexError',
    ours: 'TypeError INVALID_ARGUMENT',
    differs: noMasks,
    act: (readers, t) => refuses(t, readers, [true]),
  },
  ...[true, false, 1.5, '3', null, undefined, Symbol.iterator, [1].values(), {}].map(
    (value, index): Case<ReadSubject> => ({
      row: `True, False, float, str, None, …, set, generator, dict as one record (${index})`,
      ...refusedType,
      act: (readers, t) => refusesOne(t, readers, value),
    }),
  ),
  ...[true, 1, 1.5, '3', null, undefined, new Set([1]), [1].values(), {}, Buffer.of(1)].map(
    (value, index): Case<ReadSubject> => ({
      row: `True, False, float, str, None, …, set, generator, dict, bytes as a set (${index})`,
      ...refusedType,
      act: (readers, t) => refuses(t, readers, value),
    }),
  ),
  ...[[1.5], ['3'], [1, undefined], [null], [{}], [3n], Array(2)].map(
    (value, index): Case<ReadSubject> => ({
      row: `a list of floats, strings, objects (${index})`,
      ...refusedType,
      act: (readers, t) => refuses(t, readers, value),
    }),
  ),
  ...[-1, recordCount, 2 ** 32, 2 ** 53, 2 ** 63].flatMap((id): Case<ReadSubject>[] => [
    {
      row: `negative or not below N: ${id}`,
      original: 'IndexError',
      ours: 'RangeError OUT_OF_RANGE',
      act: (readers, t) => refusesOne(t, readers, id),
    },
    {
      row: `negative or not below N in a list: ${id}`,
      original: 'IndexError',
      ours: 'RangeError OUT_OF_RANGE',
      act: (readers, t) => refuses(t, readers, [0, id]),
    },
  ]),
  {
    row: 'int from 2^64 on',
    original: 'TypeError',
    ours: 'RangeError OUT_OF_RANGE',
    differs: 'it is a number that is out of range like any other',
    act: (readers, t) => refusesOne(t, readers, 2 ** 64),
  },
  {
    row: 'a gather on an empty container of anything',
    original: 'IndexError',
    ours: 'RangeError OUT_OF_RANGE',
    act: async (_, t) => {
      const at = scratch.fresh();
      Dense.create(at, dense).closeSync();
      using reader = Dense.open(at);
      t.equal(reader.length, 0);
      t.strictSame((await reader.slice()).shape, [0, 2]);
      await reader.gather([0]);
    },
  },
];

t.test('reading', async (t) => {
  const readers = makeReaders();
  for (const one of readCases) judge(t, one, await outcomeOf(() => one.act(readers, t)));
  for (const reader of Object.values(readers)) await reader.close();
});

t.test(
  'reading: what is given is new, writable, contiguous, and of the stored dtype',
  async (t) => {
    const readers = makeReaders();
    const batch = await readers.dense.gather([1, 1, 2]);
    batch.data.fill(-7);
    t.strictSame([...(await readers.dense.gather([1])).data], [1, 1.5], 'the store is unchanged');
    t.equal(batch.data.buffer.byteLength, batch.data.byteLength, 'memory of its own');
    t.equal(batch.dtype, 'float32');

    const records = await readers.ragged.gather([2, 2]);
    const [first, second] = records.toArray();
    first?.data.fill(9);
    t.strictSame([...(second?.data ?? [])], [2, 2, 2], 'a repeated id gives separate memory');
    t.equal(first?.data.buffer, second?.data.buffer, 'views into one buffer');
    for (const { data } of records) t.equal(data.byteOffset % data.BYTES_PER_ELEMENT, 0, 'aligned');
    t.strictSame([...readers.ragged.record(2).data], [2, 2, 2], 'the store is unchanged');

    let seen = 0;
    for await (const one of readers.scalars.batches(1)) {
      t.equal(one.data[0], BigInt(seen));
      seen += 1;
    }
    t.equal(seen, readers.scalars.length, 'iteration goes by index');
    t.throws(() => structuredClone(readers.dense), 'no pickling');
    for (const reader of Object.values(readers)) reader.closeSync();
  },
);

t.test('reading: one failing record fails the whole call, and says which', async (t) => {
  const at = scratch.fresh();
  const writer = Dense.create(at, {
    codec: 'zstd',
    dtype: 'uint8',
    itemShape: [100],
    dataShards: 2,
  });
  const data = new Uint8Array(1000).map((_, index) => index);
  await writer.append(ndarray('uint8', [10, 100], data));
  await writer.close();
  // Record 3 is the second of shard 1; its frame's magic number is destroyed.
  const meta = readFileSync(path.join(at, 'meta.zr'));
  const offset = Number(meta.readBigUInt64LE(4096 + 16 * 3));
  const shard = readFileSync(path.join(at, 'data_1.zr'));
  shard.fill(0, offset, offset + 4);
  writeFileSync(path.join(at, 'data_1.zr'), shard);
  using reader = Dense.open(at);
  for (const call of [() => reader.gather([0, 3, 1]), () => reader.gatherSync([0, 3, 1])]) {
    const error = await failureOf(call);
    t.equal(outcomeOfError(error), 'LoaderxError CODEC', 'decode error, Z(-7) in Python');
    t.strictSame([error.record, error.file, error.shard], [3, 'data_1.zr', 1]);
    t.equal(error.path, at);
  }
  t.equal((await reader.gather([0, 1, 2, 5])).data[0], 0, 'the others are still read');
});

t.test('reading: facts of a reader', async (t) => {
  const readers = makeReaders();
  t.strictSame(
    [readers.dense.kind, readers.dense.dtype, readers.dense.itemShape, readers.dense.ndim],
    ['dense', 'float32', [2], 1],
  );
  t.strictSame(
    [readers.dense.codec, readers.dense.dataShards, readers.dense.hasDict],
    ['raw', 4, false],
  );
  t.strictSame(
    [readers.ragged.kind, readers.ragged.ndim, readers.ragged.codec],
    ['ragged', 1, 'zstd'],
  );
  t.equal(readers.dense.length, recordCount);
  t.equal(readers.dense.dialect, '2.4');
  for (const reader of Object.values(readers)) await reader.close();
});

// ---- closing ----

t.test('closing: idempotent, and what a closed reader still tells', async (t) => {
  const { dense: reader, scalars, ragged } = makeReaders();
  await reader.close();
  await reader.close();
  reader.closeSync();
  t.strictSame(
    [reader.dtype, reader.itemShape, reader.codec, reader.dataShards, reader.hasDict],
    ['float32', [2], 'raw', 4, false],
  );
  t.equal(reader.length, recordCount, 'length too (RuntimeError in Python): it cannot change');
  for (const call of [
    () => reader.gather([0]),
    () => reader.gatherSync([0]),
    () => reader.record(0),
    () => reader.slice(),
    () => reader.batches(1),
  ]) {
    t.equal(await outcomeOf(call), 'LoaderxError CLOSED', 'RuntimeError in Python');
  }
  t.doesNotThrow(() => {
    using _again = reader;
  }, 'entering a scope with a closed reader works');
  scalars.closeSync();
  ragged.closeSync();
});

t.test('closing: a writer publishes, once', async (t) => {
  const at = scratch.fresh();
  const writer = createDense(at);
  await writer.append(ndarray('float32', [1, 2], new Float32Array(2)));
  t.equal(await codeOf(() => open(at)), 'NOT_FOUND', 'nothing is there before');
  await writer.close();
  await writer.close();
  writer.closeSync();
  t.equal(await codeOf(() => writer.append(anyway({}))), 'CLOSED', 'RuntimeError in Python');
  using reader = open(at);
  t.equal(reader.length, 1);
});

t.test('closing: what Python publishes by accident is discarded here', async (t) => {
  const unlucky = scratch.fresh();
  const mine = new UserError('in the scope');
  const came = await failureOf(() => {
    using writer = createDense(unlucky);
    writer.appendSync(ndarray('float32', [1, 2], new Float32Array(2)));
    throw mine;
  });
  t.equal(came, mine);
  t.strictSame(readdirSync(path.dirname(unlucky)), [], 'a scope left by an exception');

  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const lost = scratch.fresh();
  (() => {
    createDense(lost).appendSync(ndarray('float32', [1, 2], new Float32Array(2)));
  })();
  for (let round = 0; round < 100 && readdirSync(path.dirname(lost)).length > 0; round += 1) {
    collect();
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  t.strictSame(readdirSync(path.dirname(lost)), [], 'a writer that is garbage collected');

  for (const how of ['exit', 'end', 'kill']) {
    const at = scratch.fresh();
    const { code, signal, stderr } = await runChild('leaver', [at, how]);
    t.strictSame([code, signal], how === 'kill' ? [null, 'SIGKILL'] : [0, null], stderr);
    t.equal(await codeOf(() => open(at)), 'NOT_FOUND', `a process that ends by ${how}`);
    const writer = createDense(at);
    writer.closeSync();
    t.strictSame(readdirSync(path.dirname(at)), ['store'], `${how}: its path is free`);
  }
});

// ---- train_dict ----

const words = Array.from({ length: 400 }, (_, index) =>
  Buffer.from(`{"id": ${index}, "name": "number ${index}", "parity": ${index % 2}}`),
);

interface TrainSubject {
  readonly dense: DenseReader;
  readonly ragged: RaggedReader;
}

const nothing = 'it says how many records are needed and how many came';

const trainCases: readonly Case<TrainSubject>[] = [
  {
    row: 'an array of rank 1 or more',
    ...accepted,
    act: async (_, t) => {
      const data = new Uint32Array(20_000).map((_, index) => index % 700);
      await trains(t, ndarray('uint32', [200, 100], data));
      await trains(t, ndarray('uint32', [20_000], data));
    },
  },
  { row: 'an iterable of bytes', ...accepted, act: (_, t) => trains(t, words) },
  { row: 'an iterator of bytes', ...accepted, act: (_, t) => trains(t, words.values()) },
  {
    row: 'an iterable of arrays',
    ...accepted,
    act: (_, t) =>
      trains(
        t,
        words.map((word) => ndarray('uint8', [word.length], Uint8Array.from(word))),
      ),
  },
  ...[[1, 2, 3], ['a', 'b'], [[1], [2]], 'text'].map(
    (value): Case<TrainSubject> => ({
      row: `anything NumPy makes an array of: ${JSON.stringify(value)}`,
      original: 'accepted',
      ours: 'TypeError INVALID_ARGUMENT',
      differs: 'records are bytes or arrays, and nothing is converted',
      act: (_, t) => trains(t, value),
    }),
  ),
  { row: 'an open dense reader', ...accepted, act: ({ dense }, t) => trains(t, dense) },
  { row: 'an open ragged reader', ...accepted, act: ({ ragged }, t) => trains(t, ragged) },
  {
    row: 'a writer',
    ...refusedValue,
    act: async () => {
      using writer = createDense(scratch.fresh());
      await trainDict(anyway(writer));
    },
  },
  ...(['dense', 'ragged'] as const).map(
    (kind): Case<TrainSubject> => ({
      row: `a closed ${kind} reader`,
      original: 'ValueError',
      ours: 'LoaderxError CLOSED',
      differs: 'a closed reader says so, whatever it is asked',
      act: async (readers) => {
        const reader = open(readers[kind].path);
        reader.closeSync();
        await trainDict(reader);
      },
    }),
  ),
  ...(
    [
      ['array', () => ndarray('uint8', [0, 4], new Uint8Array(0))],
      ['iterable', () => []],
      ['reader', () => emptyReader()],
    ] as const
  ).map(
    ([what, make]): Case<TrainSubject> => ({
      row: `an empty ${what}`,
      original: 'ValueError',
      ours: 'LoaderxError DICTIONARY',
      differs: nothing,
      act: () => trainDict(anyway(make())),
    }),
  ),
  {
    row: 'object items',
    ...refusedValue,
    act: () => trainDict(anyway(Array(10).fill({}))),
  },
  {
    row: 'zero-byte records',
    ...refusedRange,
    act: () => trainDict([...words, new Uint8Array(0)]),
  },
  {
    row: 'an array of zero-byte records',
    ...refusedRange,
    act: () => trainDict(ndarray('uint8', [4, 0], new Uint8Array(0))),
  },
  {
    row: 'a first record over 4 MiB',
    original: 'ValueError',
    ours: 'LoaderxError DICTIONARY',
    differs: 'it says what the limit is and how large the record',
    act: () => trainDict([new Uint8Array(4 * 2 ** 20 + 1)]),
  },
  {
    row: '0-d array',
    ...refusedType,
    act: () => trainDict(ndarray('float32', [], new Float32Array(1))),
  },
  { row: 'None', ...refusedType, act: () => trainDict(anyway(null)) },
  { row: 'nothing', ...refusedType, act: () => trainDict(anyway(undefined)) },
  {
    row: 'fewer than 7 samples',
    original: 'Z(-9)',
    ours: 'LoaderxError DICTIONARY',
    act: () => trainDict(words.slice(0, 6)),
  },
  {
    row: 'too few bytes',
    original: 'Z(-9)',
    ours: 'LoaderxError DICTIONARY',
    act: () => trainDict(Array.from({ length: 7 }, () => Uint8Array.of(1))),
  },
  {
    row: 'a plain bytes object',
    original: 'accepted',
    ours: 'TypeError INVALID_ARGUMENT',
    differs: 'each byte as a record of 8 is an accident',
    act: (_, t) => trains(t, Buffer.concat(words)),
  },
];

async function trains(t: Test, source: unknown): Promise<void> {
  const dict = await trainDict(anyway(source));
  t.ok(dict.length >= 1 && dict.length <= 32_768, 'at most 32,768 bytes');
  t.equal(dict.constructor, Uint8Array);
}

function emptyReader() {
  const at = scratch.fresh();
  createDense(at).closeSync();
  return open(at);
}

t.test('train_dict', async (t) => {
  const denseAt = scratch.fresh();
  const denseWriter = Dense.create(denseAt, { codec: 'raw', dtype: 'uint8', itemShape: [40] });
  const raggedAt = scratch.fresh();
  const raggedWriter = Ragged.create(raggedAt, { codec: 'raw', dtype: 'uint8', ndim: 1 });
  const padded = words.map((word) => Uint8Array.from({ length: 40 }, (_, at) => word[at] ?? 32));
  await denseWriter.append(
    ndarray('uint8', [padded.length, 40], Uint8Array.from(padded.flatMap((p) => [...p]))),
  );
  await raggedWriter.append(
    words.map((word) => ndarray('uint8', [word.length], Uint8Array.from(word))),
  );
  denseWriter.closeSync();
  raggedWriter.closeSync();
  using dense = Dense.open(denseAt);
  using ragged = Ragged.open(raggedAt);
  for (const one of trainCases) judge(t, one, await outcomeOf(() => one.act({ dense, ragged }, t)));
});

t.test('train_dict: a path is not taken (Python writes the bytes there too)', async (t) => {
  const file = path.join(mkdtempSync(path.join(scratch.root, 'dict-')), 'dict.zr');
  const train = trainDict as unknown as (source: unknown, file: string) => Promise<Uint8Array>;
  await train(words, file);
  t.notOk(existsSync(file), 'the caller writes what it is given');
});
