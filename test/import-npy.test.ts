// Arrays of NumPy as containers and back: dtypes, byte orders, orders, versions and shapes that NumPy writes,
// all items compared with NumPy's own; and what is no array of numbers refused by name.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { ask } from '../scripts/child.mjs';
import { ensurePythonEnvironment } from '../scripts/python-environment.mjs';
import { exportNpy, exportNpz, npyBytes } from '../ts/exporters/npy.js';
import { importFiles, surveyFiles } from '../ts/importers/import.js';
import { NoLiteral, parseLiteral } from '../ts/importers/literal.js';
import { npyHeader } from '../ts/importers/npy-header.js';
import { Dense, logicalDigest, ndarray, open, Ragged } from '../ts/index.js';
import { isFull } from './support/limits.js';
import { codeOf, failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

interface Wanted {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly sha256: string;
}

interface Fixtures {
  readonly arrays: readonly (Wanted & { readonly name: string; readonly npy: string })[];
  readonly refused: Readonly<Record<string, string>>;
  readonly archives: readonly {
    readonly name: string;
    readonly npz: string;
    readonly columns: Readonly<Record<string, Wanted>>;
  }[];
}

const here = path.join(import.meta.dirname, 'importers');
const fixtures = JSON.parse(readFileSync(path.join(here, 'arrays.json'), 'utf8')) as Fixtures;
const scratch = new Scratch(t);
if (isFull) t.setTimeout(3_600_000);

const raw = { codec: 'raw' } as const;

/** A container in the words of {@link Wanted}. */
async function held(container: string): Promise<Wanted> {
  await using reader = open(container);
  const ids = Array.from({ length: reader.length }, (_, id) => id);
  if (reader.kind !== 'dense') throw new Error('a dense container is wanted');
  const { data, dtype, shape } = await reader.gather(ids);
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { dtype, shape, sha256: createHash('sha256').update(bytes).digest('hex') };
}

function fileOf(name: string, bytes: Uint8Array): string {
  const file = scratch.fresh(name);
  writeFileSync(file, bytes);
  return file;
}

async function compared(t: Test, file: string, wanted: Wanted): Promise<void> {
  const { dtype, shape, sha256 } = wanted;
  const target = scratch.fresh('out');
  const { isSingle, containers } = await importFiles(file, target, raw);
  t.strictSame([isSingle, containers.length], [true, 1]);
  t.strictSame(await held(target), { dtype, shape, sha256 });
}

t.test('everything that NumPy writes of plain numbers', async (t) => {
  t.ok(fixtures.arrays.length >= 40, `${fixtures.arrays.length} arrays`);
  for (const { name, npy, ...wanted } of fixtures.arrays) {
    await t.test(name, (t) => compared(t, fileOf('a.npy', Buffer.from(npy, 'base64')), wanted));
  }
});

const python = (): ReturnType<typeof ensurePythonEnvironment> =>
  ensurePythonEnvironment({
    name: 'parquet',
    versionMin: [3, 10],
    pinned: path.join(import.meta.dirname, 'parquet', 'requirements.txt'),
    probe: 'import numpy, pyarrow.parquet',
  });

t.test(
  'the whole matrix',
  { skip: isFull ? false : 'the long form: LOADERX_FULL=1' },
  async (t) => {
    const environment = python();
    if (environment === null) {
      t.pass('skipped: there is no Python 3.10');
      return;
    }
    const folder = scratch.folder();
    const script = path.join(here, 'make-arrays.py');
    const answer = ask(environment.python, [script, 'long', folder], { env: environment.env });
    t.ok(answer.ok, answer.ok ? 'written' : answer.output);
    const expected = JSON.parse(
      readFileSync(path.join(folder, 'expected.json'), 'utf8'),
    ) as readonly (Wanted & {
      readonly file: string;
    })[];
    t.ok(expected.length > 400);
    for (const { file, dtype, shape, sha256 } of expected) {
      await compared(t, path.join(folder, file), { dtype, shape, sha256 });
    }
    // And NumPy reads what is written here.
    const source = scratch.fresh('back.npz');
    const target = scratch.fresh('back');
    writeFileSync(source, Buffer.from(fixtures.archives[0]?.npz ?? '', 'base64'));
    await importFiles(source, target, { codec: 'zstd' });
    const npz = scratch.fresh('again.npz');
    await exportNpz(target, npz);
    const loaded = ask(environment.python, [script, 'load', npz], { env: environment.env });
    t.strictSame(loaded.ok && JSON.parse(loaded.stdout), fixtures.archives[0]?.columns);
  },
);

t.test('records of a Fortran array that is larger than a block and a column', async (t) => {
  // 70,000 records of 5 int16 and a second one of 3 x 100,000 float64, whose columns are short.
  for (const [count, shape] of [
    [70_000, [5]],
    [3, [100_000]],
    [200_000, [3, 2]],
  ] as const) {
    const perRecord = shape.reduce((product, size) => product * size, 1);
    const items = new Int16Array(count * perRecord);
    const wanted = new Int16Array(items.length);
    const order = fortranPlaces(shape);
    for (const [column, place] of order.entries()) {
      for (let row = 0; row < count; row += 1) {
        const value = (row * 31 + place * 7) % 32_749;
        items[column * count + row] = value;
        wanted[row * perRecord + place] = value;
      }
    }
    const header = Buffer.from(npyHeader('int16', [count, ...shape]));
    header.write('True, ', header.indexOf('False,'), 'latin1');
    const file = fileOf('f.npy', Buffer.concat([header, Buffer.from(items.buffer)]));
    const target = scratch.fresh('f');
    await importFiles(file, target, raw);
    const sha256 = createHash('sha256').update(Buffer.from(wanted.buffer)).digest('hex');
    t.strictSame(await held(target), { dtype: 'int16', shape: [count, ...shape], sha256 });
  }
});

/** Where in C order each item lies, in the order of Fortran. */
function fortranPlaces(shape: readonly number[]): number[] {
  const total = shape.reduce((product, size) => product * size, 1);
  return Array.from({ length: total }, (_, column) => {
    let rest = column;
    const index = shape.map((size) => {
      const at = rest % size;
      rest = Math.floor(rest / size);
      return at;
    });
    return index.reduce((place, at, axis) => place * (shape[axis] ?? 1) + at, 0);
  });
}

t.test('what holds no plain numbers is refused, and nothing stays behind', async (t) => {
  const wanted: Readonly<Record<string, readonly [string, RegExp]>> = {
    object: ['UNSUPPORTED', /object.*pickled.*never read/],
    structured: ['UNSUPPORTED', /structured \("shape", "b\}", "über"\)/],
    nested: ['UNSUPPORTED', /structured/],
    text: [
      'UNSUPPORTED',
      /"<U3" is none that is read: bool, integers, float16 to float64, complex64 and complex128/,
    ],
    bytes: [
      'UNSUPPORTED',
      /"\|S3" is none that is read: bool, integers, float16 to float64, complex64 and complex128/,
    ],
    void: ['UNSUPPORTED', /none that is read/],
    datetime: [
      'UNSUPPORTED',
      /"<M8\[ns\]" is none that is read: bool, integers, float16 to float64, complex64 and complex128/,
    ],
    longdouble: [
      'UNSUPPORTED',
      /"<f16" is none that is read: bool, integers, float16 to float64, complex64 and complex128/,
    ],
    scalar: ['SOURCE', /single item/],
    empty: ['SOURCE', /has no records/],
    'empty-records': ['SOURCE', /are empty/],
  };
  t.strictSame(Object.keys(fixtures.refused).sort(), Object.keys(wanted).sort());
  for (const [name, [code, message]] of Object.entries(wanted)) {
    const file = fileOf('x.npy', Buffer.from(fixtures.refused[name] ?? '', 'base64'));
    const target = scratch.fresh('out');
    const error = await failureOf(() => importFiles(file, target, raw));
    t.equal(error.code, code, name);
    t.match(error.message, message, name);
    t.match(error.message, file, 'the file is named');
    t.strictSame(beside(target), []);
    t.equal(await codeOf(() => surveyFiles(file, target)), code, 'the dry run says so too');
  }
});

/** A file of a header's text and some bytes behind it. */
function withHeader(text: string, major = 1, items = Buffer.alloc(0)): Buffer {
  const bytes = Buffer.from(text, major === 3 ? 'utf8' : 'latin1');
  const head = Buffer.alloc(major === 1 ? 10 : 12);
  head.write('\x93NUMPY', 'latin1');
  head[6] = major;
  if (major === 1) head.writeUInt16LE(bytes.length, 8);
  else head.writeUInt32LE(bytes.length, 8);
  return Buffer.concat([head, bytes, items]);
}

t.test('headers that nobody writes, and some that old programs do', async (t) => {
  const eight = Buffer.from([1, 0, 0, 0, 2, 0, 0, 0]);
  const good = "{'descr': '<i4', 'fortran_order': False, 'shape': (2,)}";
  const cases: readonly (readonly [string, Buffer, string])[] = [
    ['no padding, no newline', withHeader(good, 1, eight), 'ok'],
    [
      'two bytes',
      withHeader("{'descr':'|u1','fortran_order':False,'shape':(2,)}", 1, eight.subarray(0, 2)),
      'ok',
    ],
    [
      'Python 2',
      withHeader("{'descr': '<i4', 'fortran_order': False, 'shape': (2L,)}", 1, eight),
      'ok',
    ],
    [
      'other order of keys',
      withHeader(`{"shape": (2,), 'fortran_order': False, "descr": "<i4",}`, 2, eight),
      'ok',
    ],
    [
      'a list as shape',
      withHeader("{'descr': '<i4', 'fortran_order': False, 'shape': [2]}", 1, eight),
      'ok',
    ],
    ['1 MiB of blanks', withHeader(good.padEnd(2 ** 20), 2, eight), 'ok'],
    ['more than 1 MiB', withHeader(good.padEnd(2 ** 20 + 1), 2, eight), 'TOO_LARGE'],
    ['a key too many', withHeader(good.replace('}', ", 'x': 1}"), 1, eight), 'MALFORMED'],
    ['a key twice', withHeader(good.replace('}', ", 'descr': '<f4'}"), 1, eight), 'MALFORMED'],
    ['a key missing', withHeader("{'descr': '<i4', 'shape': (2,)}", 1, eight), 'MALFORMED'],
    [
      'code',
      withHeader("{'descr': __import__('os'), 'fortran_order': False, 'shape': (2,)}"),
      'MALFORMED',
    ],
    [
      'a sum',
      withHeader("{'descr': '<i4', 'fortran_order': False, 'shape': (1+1,)}", 1, eight),
      'MALFORMED',
    ],
    [
      'a size below 0',
      withHeader("{'descr': '<i4', 'fortran_order': False, 'shape': (-2,)}"),
      'MALFORMED',
    ],
    [
      'sizes past all files',
      withHeader("{'descr': '<i4', 'fortran_order': False, 'shape': (99999999, 99999999)}"),
      'MALFORMED',
    ],
    [
      'a size past 2^53',
      withHeader("{'descr': '<i4', 'fortran_order': False, 'shape': (9007199254740993,)}"),
      'MALFORMED',
    ],
    [
      'True as order',
      withHeader("{'descr': '<i4', 'fortran_order': 1, 'shape': (2,)}", 1, eight),
      'MALFORMED',
    ],
    ['deep', withHeader(`{'descr': ${'('.repeat(1000)}`), 'MALFORMED'],
    ['no end', withHeader("{'descr': '<i4"), 'MALFORMED'],
    ['no UTF-8', withHeader(good, 3, eight).fill(0xff, 14, 15), 'MALFORMED'],
    ['a dtype that is none', withHeader(good.replace('<i4', '<i3'), 1, eight), 'MALFORMED'],
    ['a subarray', withHeader(good.replace("'<i4'", "('<i4', (2,))"), 1, eight), 'UNSUPPORTED'],
    ['version 4', withHeader(good, 4, eight), 'UNSUPPORTED'],
    ['a byte too few', withHeader(good, 1, eight.subarray(1)), 'MALFORMED'],
    [
      'an array behind the array',
      Buffer.concat([withHeader(good, 1, eight), withHeader(good, 1, eight)]),
      'MALFORMED',
    ],
    ['no magic', Buffer.from('NUMPY and more of it'), 'MALFORMED'],
    ['nothing', Buffer.alloc(0), 'MALFORMED'],
    ['the magic alone', Buffer.from('\x93NUMPY', 'latin1'), 'MALFORMED'],
    ['half a header', withHeader(good).subarray(0, 30), 'MALFORMED'],
  ];
  for (const [name, bytes, code] of cases) {
    const file = fileOf('x.npy', bytes);
    t.equal(await codeOf(() => importFiles(file, scratch.fresh('out'), raw)), code, name);
  }
});

t.test('literals of Python', async (t) => {
  const parsed: readonly (readonly [string, unknown])[] = [
    ["'a\\'b\\x41\\u00fc\\n'", "a'bAü\n"],
    ['(1)', 1],
    ['(1,)', [1]],
    ['()', []],
    ['[True, False, None]', [true, false, null]],
    ['123456789012345678901', 123456789012345678901n],
    [' -7 ', -7],
  ];
  for (const [text, value] of parsed) t.strictSame(parseLiteral(text), value, text);
  for (const text of ['', '1 2', 'x', "'a", '{1: 2}', '(1, 2', "'\\q'", '1e5', '{"a" 1}', '(,)']) {
    t.throws(() => parseLiteral(text), NoLiteral, text);
  }
});

t.test('archives: each array a column, Fortran order from a deflated member too', async (t) => {
  for (const { name, npz, columns } of fixtures.archives) {
    const file = fileOf('x.npz', Buffer.from(npz, 'base64'));
    const target = scratch.fresh('out');
    const { isSingle, containers } = await importFiles(file, target, { ...raw, integrity: true });
    t.strictSame([isSingle, containers.map(({ column }) => column)], [false, Object.keys(columns)]);
    for (const [column, wanted] of Object.entries(columns)) {
      t.strictSame(await held(path.join(target, column)), wanted, `${name} ${column}`);
    }
    t.strictSame(
      (await importFiles(file, scratch.fresh('one'), { ...raw, columns: ['label'] })).containers
        .length,
      1,
    );
  }
});

t.test('archives that are damaged say so', async (t) => {
  const whole = Buffer.from(fixtures.archives[1]?.npz ?? '', 'base64');
  const end = whole.lastIndexOf('PK\x05\x06');
  const directory = whole.readUInt32LE(end + 16);
  const changed = (at: number, ...bytes: number[]): Buffer => {
    const copy = Buffer.from(whole);
    copy.set(bytes, at);
    return copy;
  };
  const member = 30 + whole.readUInt16LE(26) + whole.readUInt16LE(28);
  const cases: readonly (readonly [string, Buffer, string])[] = [
    ['cut off', whole.subarray(0, -5), 'MALFORMED'],
    ['nothing', Buffer.alloc(0), 'MALFORMED'],
    ['no zip', Buffer.from('x'.repeat(100)), 'MALFORMED'],
    ['a byte of a member', changed(member + 40, (whole[member + 40] ?? 0) ^ 0x10), 'MALFORMED'],
    ['its CRC', changed(directory + 16, 1, 2, 3, 4), 'MALFORMED'],
    ['its method', changed(directory + 10, 12), 'UNSUPPORTED'],
    ['encrypted', changed(directory + 8, 1), 'UNSUPPORTED'],
    ['its place', changed(directory + 42, 5), 'MALFORMED'],
    ['the directory', changed(directory, 0), 'MALFORMED'],
    ['its place in the end', changed(end + 16, 0xff, 0xff, 0, 0), 'MALFORMED'],
  ];
  for (const [name, bytes, code] of cases) {
    const file = fileOf('x.npz', bytes);
    const target = scratch.fresh('out');
    t.equal(await codeOf(() => importFiles(file, target, raw)), code, name);
    t.strictSame(beside(target), [], name);
  }
});

t.test('several sources are columns of one data set', async (t) => {
  const save = (name: string, count: number): string =>
    fileOf(name, Buffer.concat([npyHeader('uint8', [count]), Buffer.alloc(count, 7)]));
  const [a, b, c] = [save('a.npy', 10), save('b.npy', 10), save('c.npy', 11)];
  const target = scratch.fresh('out');
  const error = await failureOf(() => importFiles({ x: a, y: c }, target, raw));
  t.match(error, { code: 'SOURCE', message: /"x" has 10 rows, and column "y" has 11/ });
  t.strictSame(beside(target), []);
  const { containers } = await importFiles({ x: a, y: b }, target, raw);
  t.strictSame(
    containers.map(({ column, records }) => [column, records]),
    [
      ['x', 10],
      ['y', 10],
    ],
  );
  t.strictSame(readdirSync(target).sort(), ['x', 'y']);
  t.equal(await codeOf(() => importFiles({ x: a, y: b }, target, raw)), 'EXISTS');
  const listed = await surveyFiles([a, b], 'nowhere');
  t.strictSame(
    listed.containers.map(({ column, itemBytes }) => [column, itemBytes]),
    [
      ['a', 10],
      ['b', 10],
    ],
  );
  t.equal(await codeOf(() => importFiles([a, a], scratch.fresh('o'), raw)), 'SOURCE');
  t.equal(await codeOf(() => importFiles([], scratch.fresh('o'), raw)), 'INVALID_ARGUMENT');
  const unknown = fileOf('x.bin', Buffer.alloc(8));
  t.equal(await codeOf(() => importFiles(unknown, scratch.fresh('o'), raw)), 'INVALID_ARGUMENT');
  t.equal(await codeOf(() => importFiles('x.bin', scratch.fresh('o'), raw)), 'NOT_FOUND');
  t.equal(await codeOf(() => importFiles('no.npy', scratch.fresh('o'), raw)), 'NOT_FOUND');
  t.equal(
    await codeOf(() => importFiles(scratch.root, scratch.fresh('o'), { ...raw, format: 'npy' })),
    'UNSUPPORTED',
  );
});

t.test('zstd_dict trains a dictionary for each column on the way', async (t) => {
  const count = 2000;
  const bytes = Buffer.from(Array.from({ length: count * 64 }, (_, i) => (i % 64) * (i >> 10)));
  const a = fileOf('a.npy', Buffer.concat([npyHeader('uint8', [count, 64]), bytes]));
  const target = scratch.fresh('out');
  await importFiles(a, target, { codec: 'zstd_dict' });
  await using reader = open(target);
  t.ok(reader.hasDict);
  t.strictSame(beside(target), ['out'], 'the sample is gone');
  const few = fileOf('few.npy', Buffer.concat([npyHeader('uint8', [3]), Buffer.alloc(3)]));
  const error = await failureOf(() =>
    importFiles(few, scratch.fresh('few'), { codec: 'zstd_dict' }),
  );
  t.match(error, { code: 'DICTIONARY', field: 'few' });
});

t.test('an abort leaves nothing', async (t) => {
  const stop = new AbortController();
  const file = fileOf(
    'a.npy',
    Buffer.concat([npyHeader('uint8', [40, 2 ** 20]), Buffer.alloc(40 * 2 ** 20)]),
  );
  const target = scratch.fresh('out');
  const running = importFiles(file, target, {
    ...raw,
    signal: stop.signal,
    onProgress: () => stop.abort(),
  });
  t.equal(await codeOf(() => running), 'ABORTED');
  t.strictSame(beside(target), []);
});

t.test('export and import again: equal logical digests', async (t) => {
  const folder = scratch.fresh('data');
  mkdirSync(folder);
  const at = (name: string): string => path.join(folder, name);
  const dense = Dense.create(at('dense'), { dtype: 'float16', itemShape: [3, 2], codec: 'zstd' });
  await dense.append(
    ndarray(
      'float16',
      [500, 3, 2],
      Uint16Array.from({ length: 3000 }, (_, i) => i * 21),
    ),
  );
  await dense.close();
  const plain = Dense.create(at('plain'), { dtype: 'complex128', itemShape: [], codec: 'raw' });
  await plain.append(
    ndarray(
      'complex128',
      [500],
      Float64Array.from({ length: 1000 }, (_, i) => i / 3),
    ),
  );
  await plain.close();
  const ragged = Ragged.create(at('ragged'), { dtype: 'int32', ndim: 2, codec: 'raw' });
  await ragged.append(
    Array.from({ length: 500 }, (_, i) => {
      const shape = [1 + (i % 3), 1 + (i % 5)];
      const length = (shape[0] ?? 0) * (shape[1] ?? 0);
      return ndarray('int32', shape, new Int32Array(length).fill(i));
    }),
  );
  await ragged.close();
  const digest = async (where: string): Promise<string> => {
    await using reader = open(where);
    return await logicalDigest(reader);
  };

  const npz = scratch.fresh('all.npz');
  const exported = await exportNpz(folder, npz);
  t.strictSame(
    exported.containers.map(({ records }) => records),
    [500, 500, 500],
  );
  const back = scratch.fresh('back');
  await importFiles(npz, back, { codec: 'zstd', dataShards: 2 });
  for (const name of ['dense', 'plain', 'ragged']) {
    t.equal(await digest(path.join(back, name)), await digest(at(name)), name);
  }
  const npy = scratch.fresh('dense.npy');
  await exportNpy(at('dense'), npy);
  const pieces: Buffer[] = [];
  for await (const piece of npyBytes(at('dense'))) pieces.push(Buffer.from(piece));
  t.ok(Buffer.concat(pieces).equals(readFileSync(npy)), 'the stream has the bytes of the file');
  const again = scratch.fresh('again');
  await importFiles(npy, again, raw);
  t.equal(await digest(again), await digest(at('dense')));

  t.equal(await codeOf(() => exportNpy(at('ragged'), scratch.fresh('r.npy'))), 'UNSUPPORTED');
  t.equal(await codeOf(() => exportNpy(at('dense'), npy)), 'EXISTS');
  t.equal(await codeOf(() => exportNpy(at('dense'), npy, { force: true })), 'ok');
  t.equal(await codeOf(() => exportNpy(at('dense'), path.join(at('plain'), 'x.npy'))), 'EXISTS');
  t.equal(await codeOf(() => exportNpy('nothing', scratch.fresh('x.npy'))), 'NOT_FOUND');
  t.notOk(existsSync(path.join(at('plain'), 'x.npy')));
});
