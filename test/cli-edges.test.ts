// The command line and the functions behind it at their edges: records that are large, texts that a terminal
// would obey, folders that cannot be looked into, files that are none, settings that are misspelt.
import { execFileSync, spawnSync } from 'node:child_process';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { main } from '../ts/cli/main.js';
import type { Output } from '../ts/cli/terminal.js';
import { plain } from '../ts/cli/text.js';
import {
  contactSheet,
  containersAt,
  Dense,
  type DType,
  diff,
  digest,
  logicalDigest,
  type NdArray,
  ndarray,
  open,
  Ragged,
  recode,
  showArray,
  trainDict,
  verify,
} from '../ts/index.js';
import { loadTransform } from '../ts/loader/transform-module.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const posix = process.platform === 'win32' ? { skip: 'links, pipes and users of POSIX' } : {};

class Stream implements Output {
  text = '';
  readonly columns: number;
  /** How much is taken before nobody reads any more. */
  readonly #room: number;

  constructor(columns = 60, room = Infinity) {
    this.columns = columns;
    this.#room = room;
  }

  get isClosed(): boolean {
    return this.text.length > this.#room;
  }

  write(text: string): void {
    this.text += text;
  }
}

async function run(args: readonly string[], stdout = new Stream()) {
  const stderr = new Stream();
  const code = await main(args, { stdout, stderr, env: {} });
  return { code, out: stdout.text, err: stderr.text };
}

function dense<D extends DType>(array: NdArray<D>, place = scratch.fresh()): string {
  const { dtype, shape } = array;
  const writer = Dense.create(place, { dtype, itemShape: shape.slice(1), codec: 'raw' });
  writer.appendSync(array);
  writer.closeSync();
  return place;
}

function bytes(length: number, value: number): NdArray<'uint8'> {
  return ndarray('uint8', [length], new Uint8Array(length).fill(value));
}

const small = dense(ndarray('uint8', [6, 4], new Uint8Array(24).fill(9)));

// ---- large records ----

t.test('what is shown bounds the work, however large the record is', async (t) => {
  const lines = showArray(bytes(2 ** 27, 97), { as: 'text', columns: 40 }).split('\n');
  t.same([lines.length, lines[0], lines[11]], [12, 'a'.repeat(40), `${'a'.repeat(39)}…`]);
  t.equal(showArray(bytes(2 ** 27, 97)).split('\n').length, 12, 'unless told, too');
  // A letter of three bytes that the first MiB cuts in two.
  const euros = ndarray('uint8', [3 * 2 ** 19], Buffer.from('€'.repeat(2 ** 19)));
  t.match(showArray(euros), /^€{80}\n/);
  const picture = ndarray('uint8', [2 ** 13, 2 ** 13], new Uint8Array(2 ** 26).fill(255));
  t.equal(showArray(picture).split('\n')[0], '@'.repeat(48));
  for (const dtype of ['numpy:|S8388608', 'numpy:|V8388608'] as const) {
    const text = showArray(ndarray(dtype, [1], new Uint8Array(2 ** 23).fill(65)));
    t.ok(text.length < 1000 && text.endsWith('…'), dtype);
  }
  const big = ndarray('numpy:>i8', [2], new Uint8Array(16).fill(1));
  t.match(showArray(big), '72340172838076673');
});

t.test('head --json: numbers, bounded, a record at a time', async (t) => {
  const place = scratch.fresh();
  const writer = Dense.create(place, { dtype: 'uint8', itemShape: [2 ** 20], codec: 'raw' });
  writer.appendSync(ndarray('uint8', [20, 2 ** 20], new Uint8Array(20 * 2 ** 20).fill(5)));
  writer.closeSync();
  const { code, out, err } = await run(['head', place, '--json', '-n', '9']);
  t.same([code, err], [0, '']);
  const { records } = JSON.parse(out) as {
    readonly records: { id: number; data: number[]; itemsLeftOut: number; shape: number[] }[];
  };
  t.same(
    records.map(({ id, data, itemsLeftOut }) => [id, data.length, data[0], itemsLeftOut]),
    Array.from({ length: 9 }, (_, id) => [id, 262_144, 5, 2 ** 20 - 262_144]),
  );
  t.ok(out.length < 9 * 600_000, 'an item takes two letters');
  // Whoever had enough of it ends it.
  const closed = await run(['head', place, '--json', '-n', '20'], new Stream(60, 1000));
  t.equal(closed.code, 0);
  t.ok(closed.out.length < 10 * 600_000, 'and no more is read');

  const half = dense(ndarray('float16', [1, 3], Uint16Array.of(0x3c00, 0x7c00, 0xc100)));
  t.same(JSON.parse((await run(['head', half, '--json'])).out).records[0].data, [
    1,
    'Infinity',
    -2.5,
  ]);
  const big = dense(ndarray('numpy:>i2', [1, 2], Uint8Array.of(0, 1, 0, 2)));
  t.same(JSON.parse((await run(['head', big, '--json'])).out).records[0].data, [1, 2]);
  const none = await run(['head', small, '-n', '0', '--json']);
  t.match(JSON.parse(none.out), { records: [], facts: { records: 6 } });
});

t.test('head: a record that cannot be read, behind others that can', async (t) => {
  const place = scratch.fresh();
  const writer = Dense.create(place, { dtype: 'uint8', itemShape: [2 ** 20], codec: 'zstd' });
  writer.appendSync(ndarray('uint8', [20, 2 ** 20], new Uint8Array(20 * 2 ** 20)));
  writer.closeSync();
  const meta = readFileSync(path.join(place, 'meta.zr'));
  meta.fill(0xff, 4096 + 19 * 16, 4096 + 20 * 16);
  writeFileSync(path.join(place, 'meta.zr'), meta);
  const { code, out } = await run(['head', place, '--json', '-n', '20']);
  t.equal(code, 3);
  const answer = JSON.parse(out) as { records: object[]; error: object };
  t.ok(answer.records.length > 0 && answer.records.length < 20, 'JSON all the same');
  t.match(answer.error, { code: 'MALFORMED', record: 19 });
});

t.test('pictures: long ones are none unless told, narrow terminals are narrow', async (t) => {
  const long = ndarray('uint8', [8, 2000], new Uint8Array(16_000).fill(200));
  t.match(showArray(long), /^200 200 .*…/, 'a table');
  t.equal(showArray(long, { as: 'picture' }).split('\n').length, 1);
  const wide = ndarray('uint8', [8, 2 ** 22], new Uint8Array(2 ** 25));
  t.match(showArray(wide), /^0 0 .*…/);
  const square = ndarray('uint8', [40, 40], new Uint8Array(1600).fill(255));
  t.equal(showArray(square, { columns: 10 }).split('\n')[0], '@'.repeat(10));
  const { out } = await run(['head', dense({ ...square, shape: [1, 40, 40] })], new Stream(11));
  t.match(out, /\n@{10}\n/);
});

// ---- terminals ----

t.test('what a terminal would obey does not reach it', async (t) => {
  const signs = '\u0007\u001b\u007f\u0085\u009b\u061c\u200e\u200f\u202a\u202e\u2066\u2069';
  t.equal(plain(`a${signs}b`), `a${'\ufffd'.repeat(signs.length)}b`);
  const obeyed = /[\u0080-\u009f\u202a-\u202e\u2066-\u2069]/;
  const text = Buffer.from('one\u009b2Jtwo\u202ethree\u2066');
  const place = scratch.fresh('a\u202eb');
  const writer = Ragged.create(place, { dtype: 'uint8', ndim: 1, codec: 'raw' });
  writer.appendSync([ndarray('uint8', [text.length], text)]);
  writer.closeSync();
  const shown = await run(['head', place]);
  t.match(shown.out, /one\ufffd2Jtwo\ufffdthree\ufffd/);
  const stored = new Uint8Array(40);
  stored.set(text);
  const strings = dense(ndarray('numpy:|S40', [1], stored));
  t.match((await run(['head', strings])).out, /one\\u009b2Jtwo\\u202ethree\\u2066/);
  for (const args of [['info'], ['verify'], ['head'], ['digest', '--dry-run']]) {
    for (const more of [[], ['--json']]) {
      const { out, err } = await run([...args, place, ...more]);
      t.notMatch(`${out}${err}`, obeyed, [...args, ...more].join(' '));
      if (more.length > 0) t.match(JSON.stringify(JSON.parse(out)), 'a\u202eb', 'and is the same');
    }
  }
  const missing = await run(['diff', place, `${place}\u202e`, '--json']);
  t.notMatch(missing.out, obeyed);
});

// ---- readers with a bound ----

t.test('what is read in pieces fits the reader’s bound', async (t) => {
  const images = dense(
    ndarray(
      'uint8',
      [300, 64],
      Uint8Array.from({ length: 19_200 }, (_, at) => at),
    ),
  );
  const texts = scratch.fresh();
  const writer = Ragged.create(texts, { dtype: 'uint8', ndim: 1, codec: 'raw' });
  writer.appendSync(
    Array.from({ length: 300 }, (_, id) => {
      const line = Buffer.from(`line ${id} of several hundred lines, `.repeat(2 + (id % 3)));
      return ndarray('uint8', [line.length], new Uint8Array(line));
    }),
  );
  writer.closeSync();
  for (const place of [images, texts]) {
    await using whole = open(place);
    await using narrow = open(place, { maxBatchBytes: 200 });
    t.equal(await logicalDigest(narrow), await logicalDigest(whole));
    t.same(await trainDict(narrow), await trainDict(whole));
    await using none = open(place, { maxBatchBytes: 20 });
    await t.rejects(
      logicalDigest(none),
      { code: 'TOO_LARGE' },
      'one record is too large by itself',
    );
  }
});

t.test('LOADERX_LANES that is no number from 1 to 1024 is told of', (t) => {
  const index = JSON.stringify(new URL('../dist/index.js', import.meta.url).href);
  const script = `const { configure } = await import(${index}); configure(); configure();`;
  const cases = ['abc', '0', '-1', '4.5', '99999', ' 4', '4', ''];
  for (const lanes of cases) {
    const { status, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
      encoding: 'utf8',
      env: { ...process.env, LOADERX_LANES: lanes },
    });
    const warnings = stderr.match(/LOADERX_LANES must be a whole number, 1 to 1024/g) ?? [];
    t.same([status, warnings.length], [0, lanes === '4' || lanes === '' ? 0 : 1], lanes);
  }
  t.end();
});

t.test('a transform module with a syntax error is named', async (t) => {
  const file = scratch.fresh('broken.mjs');
  writeFileSync(file, 'export default (batch) => { const = ; };\n');
  const { href } = pathToFileURL(file);
  const error = await loadTransform(href).catch((thrown: unknown) => thrown as Error);
  t.ok(error instanceof SyntaxError, 'the original error');
  t.match(error, { message: `the transform module ${href} does not load: Unexpected token` });
  t.match((error as Error).stack, href);
});

// ---- folders and files that are not what they seem ----

t.test('a container that cannot be looked into is not passed over', posix, async (t) => {
  const folder = scratch.folder();
  cpSync(small, path.join(folder, 'a'), { recursive: true });
  writeFileSync(path.join(folder, 'notes.txt'), '');
  mkdirSync(path.join(folder, 'empty'));
  symlinkSync('nowhere', path.join(folder, 'dangling'));
  t.same(containersAt(folder), [`${folder}/a`]);
  // A link to itself cannot be looked into by anybody.
  symlinkSync('b', path.join(folder, 'b'));
  t.same(containersAt(folder), [`${folder}/a`, `${folder}/b`]);
  for (const args of [['verify'], ['info'], ['digest', '--dry-run']]) {
    const { code, out, err } = await run([...args, folder]);
    t.not(code, 0, args.join(' '));
    t.match(`${out}${err}`, `${folder}/b`, `${args[0]} names it`);
  }
});

t.test('nor is one that belongs to somebody else', posix, async (t) => {
  const folder = scratch.folder();
  const closed = path.join(folder, 'closed');
  cpSync(small, path.join(folder, 'a'), { recursive: true });
  cpSync(small, closed, { recursive: true });
  chmodSync(closed, 0);
  const isRoot = process.geteuid?.() === 0;
  const nobody = 65_534;
  const above = [scratch.root, folder];
  if (isRoot) for (const place of above) chmodSync(place, 0o755);
  if (isRoot) chownSync(path.join(folder, 'a'), nobody, nobody);
  try {
    if (isRoot) process.seteuid?.(nobody);
    t.same(containersAt(folder), [`${folder}/a`, `${folder}/closed`]);
    const { code, out, err } = await run(['verify', folder]);
    t.not(code, 0);
    t.match(`${out}${err}`, 'closed');
    t.match(out, /^ok .*\/a /m);
    t.equal((await run(['info', folder])).code, 3);
  } finally {
    if (isRoot) process.seteuid?.(0);
    chmodSync(closed, 0o755);
  }
});

t.test('an integrity file that is none is a fault, and stays', posix, async (t) => {
  const makers: readonly (readonly [string, (file: string) => void])[] = [
    ['a folder', (file) => mkdirSync(file)],
    ['a pipe', (file) => execFileSync('mkfifo', [file])],
    ['a device', (file) => symlinkSync('/dev/null', file)],
  ];
  for (const [what, make] of makers) {
    const place = scratch.fresh();
    cpSync(small, place, { recursive: true });
    const file = path.join(place, 'integrity.zr');
    make(file);
    const before = lstatSync(file).mode;
    const message = `integrity.zr is ${what}, and must be a regular file`;
    const report = await verify(place);
    t.match(report, { ok: false, integrity: 'unusable', faults: [{ code: 'INTEGRITY' }] }, what);
    t.match(report.faults[0]?.message, message);
    for (const replace of [false, true]) {
      await t.rejects(digest(place, { replace }), { code: 'INTEGRITY', message });
    }
    await t.rejects(recode(place, scratch.fresh(), { codec: 'raw' }), { message });
    t.match((await run(['digest', place])).err, message);
    t.match((await run(['info', place])).out, /integrity\.zr is damaged/);
    t.equal(lstatSync(file).mode, before, 'it is as it was');
    rmSync(file, { recursive: true });
  }
});

t.test('nothing is written into a container', async (t) => {
  const place = dense(ndarray('uint8', [8, 8, 8], new Uint8Array(512)));
  const meta = readFileSync(path.join(place, 'meta.zr'));
  for (const name of ['meta.zr', 'sheet.png']) {
    const file = path.join(place, name);
    const made = await run(['head', place, '--png', file, '--force']);
    t.match(made, { code: 3, err: /is a container, and nothing is written into one/ });
    const trained = await run(['train-dict', small, '-o', file, '--force']);
    t.equal(trained.code, 3);
  }
  if (process.platform !== 'win32') {
    const link = scratch.fresh('link.png');
    symlinkSync(path.join(place, 'meta.zr'), link);
    t.equal((await run(['head', place, '--png', link, '--force'])).code, 3, 'behind a link, too');
  }
  t.ok(readFileSync(path.join(place, 'meta.zr')).equals(meta));
  const inside = path.join(place, 'sub');
  for (const target of [inside, `${inside}/`, Buffer.from(inside)]) {
    await t.rejects(recode(place, target, { codec: 'raw' }), {
      name: 'RangeError',
      ...{ code: 'INVALID_ARGUMENT', field: 'target', message: /inside of a container/ },
    });
  }
  t.match(await run(['recode', place, inside, '--codec', 'raw']), { code: 2 });
  t.notOk(existsSync(inside));
});

// ---- several containers ----

t.test('info compares what it has seen', async (t) => {
  const missing = scratch.fresh('nope');
  const partly = await run(['info', small, missing, small]);
  t.match(partly.out, /1 container could not be looked at; the rest: 6 records each\.\n$/);
  const json = async (...paths: string[]): Promise<Record<string, unknown>> =>
    JSON.parse((await run(['info', '--json', ...paths])).out);
  t.notOk('sameLength' in (await json(missing)), 'nothing is said of none');
  t.notOk('sameLength' in (await json(small, missing)));
  t.equal((await json(small, small)).sameLength, true);
  const other = dense(ndarray('int8', [1], new Int8Array(1)));
  t.equal((await json(small, other, missing)).sameLength, false);
});

// ---- what cannot be meant ----

t.test('command lines: what is wrong, on one line', async (t) => {
  const lines: readonly (readonly [string[], RegExp])[] = [
    [['head', small, '-n', '-1'], /: -n wants a value; .* is given as -n-VALUE$/],
    [['verify', small, '--faults', '-1'], /: --faults wants a value; .*--faults=-VALUE$/],
    [['verify', small, '--faults=-1'], /--faults wants a whole number, got -1$/],
    [['head', small, '--columns', '3'], /--columns is for --png, which is missing$/],
    [['head', small, '--force'], /--force is for --png, which is missing$/],
    [['head', small, '--as', 'text', '--png', scratch.fresh()], /a sheet is of pictures$/],
    [['info', small, '--json=yes'], /does not take an argument$/],
  ];
  for (const [args, pattern] of lines) {
    const { code, out, err } = await run(args);
    t.same([code, out], [2, ''], args.join(' '));
    t.match(err.split('\n')[0], pattern);
    t.notMatch(err, '\ufffd');
    t.equal(err.split('\n').length, 3, 'and where the help is');
  }
});

t.test('arguments that cannot be: an error with code and field', async (t) => {
  const picture = ndarray('uint8', [8, 8], new Uint8Array(64));
  const wrong = (field: string | RegExp) => ({
    name: 'TypeError',
    code: 'INVALID_ARGUMENT',
    field,
  });
  const sheets: readonly (readonly [unknown, unknown, string])[] = [
    [undefined, undefined, 'arrays'],
    [5, undefined, 'arrays'],
    [{ length: 1 }, undefined, 'arrays'],
    [new Array(5), undefined, 'arrays[0]'],
    [[picture, undefined], undefined, 'arrays[1]'],
    [[picture], { colums: 3 }, 'colums'],
    [[picture], 3, 'options'],
  ];
  for (const [arrays, options, field] of sheets) {
    t.throws(() => contactSheet(arrays as NdArray[], options as object), wrong(field));
  }
  t.throws(() => contactSheet(new Array(200_000).fill(picture)), {
    name: 'RangeError',
    ...{ code: 'TOO_LARGE', field: 'arrays' },
  });
  for (const options of [undefined, {}]) {
    await t.rejects(recode(small, scratch.fresh(), options as never), wrong('codec'));
  }

  const gone = new Uint8Array(Buffer.from(small));
  structuredClone(gone.buffer, { transfer: [gone.buffer] });
  await t.rejects(verify(gone), wrong('path'));
  class Liar extends Uint8Array {
    override get length(): number {
      return 4;
    }
    override get byteLength(): number {
      return 2 ** 40;
    }
  }
  const data = new Liar(16);
  t.throws(() => ndarray('uint8', [4], data), wrong('data'));
  t.throws(() => showArray({ dtype: 'uint8', shape: [4], data }), wrong('array.data'));
  const ids = Object.defineProperty(Uint32Array.of(1, 2), 'length', { value: 1 });
  const reader = Dense.open(small);
  await t.rejects(reader.gather(ids), wrong('ids'));
  await reader.close();
  class Elsewhere extends Uint8Array {
    override *[Symbol.iterator](): ArrayIterator<number> {}
  }
  const honest = new Elsewhere(Buffer.from(small));
  t.equal((await verify(honest)).ok, true, 'a path is what its memory says');
});

t.test('long items that read alike are told apart by a few bytes', async (t) => {
  const one = new Uint8Array(2 ** 20).fill(65);
  const other = Uint8Array.from(one);
  other[2 ** 19] = 66;
  const a = dense(ndarray('numpy:|S1048576', [1], one));
  const b = dense(ndarray('numpy:|S1048576', [1], other));
  const { first } = await diff(a, b);
  t.match(first, { a: /^byte 524288: 0x4141/, b: /^byte 524288: 0x4241/ });
  t.ok((first?.a.length ?? 0) < 200);
});
