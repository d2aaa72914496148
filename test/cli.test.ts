// The command line: words in, text, exit code and files out. Most of it runs in this process, with streams
// that remember; what only a process has (pipes, signals, the program file) runs `dist/cli.js`.
import { spawn, spawnSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { commands, main } from '../ts/cli/main.js';
import { type Output, progressLine, Terminal } from '../ts/cli/terminal.js';
import { barsText, bytesText, plain, secondsText, tableLines } from '../ts/cli/text.js';
import { exportNpz } from '../ts/exporters/npy.js';
import { npyHeader } from '../ts/importers/npy-header.js';
import { Dense, ndarray, open, Ragged, verify } from '../ts/index.js';
import { Scratch } from './support/scratch.js';
import { tarOf } from './support/tar.mjs';

const scratch = new Scratch(t);
const root = path.resolve(import.meta.dirname, '..');
const program = path.join(root, 'dist', 'cli.js');

// ---- a terminal that remembers ----

class Stream implements Output {
  text = '';
  readonly isTTY: boolean;
  readonly columns = 60;
  onWrite: (() => void) | undefined;

  constructor(isTTY: boolean) {
    this.isTTY = isTTY;
  }

  write(text: string): void {
    this.text += text;
    this.onWrite?.();
  }

  getColorDepth(): number {
    return 24;
  }
}

interface Ran {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface Around {
  readonly isTTY?: boolean;
  readonly env?: Readonly<Record<string, string>>;
  /** Ctrl-C as soon as anybody would hear it. */
  readonly interrupt?: boolean;
}

async function run(args: readonly string[], around: Around = {}): Promise<Ran> {
  const [stdout, stderr] = [new Stream(around.isTTY === true), new Stream(around.isTTY === true)];
  const code = await main(args, {
    stdout,
    stderr,
    env: around.env ?? {},
    on: (_, listener) => {
      if (around.interrupt === true) listener();
    },
    off: () => {},
  });
  return { code, out: stdout.text, err: stderr.text };
}

// ---- containers to look at ----

/** A folder with what the examples of the help speak of. Pictures are of one colour each. */
async function dataSet(): Promise<string> {
  const folder = scratch.folder();
  const at = (name: string): string => path.join(folder, name);
  const image = Dense.create(at('train/image'), {
    ...{ dtype: 'uint8', itemShape: [3, 8, 8], codec: 'raw', dataShards: 2 },
  });
  const pixels = new Uint8Array(120 * 192);
  for (let id = 0; id < 120; id += 1) pixels.fill(id, id * 192, (id + 1) * 192);
  await image.append(ndarray('uint8', [120, 3, 8, 8], pixels));
  await image.close();
  const text = Ragged.create(at('train/text'), { dtype: 'uint8', ndim: 1, codec: 'zstd' });
  await text.append(
    Array.from({ length: 120 }, (_, id) => {
      const data = new TextEncoder().encode(`line ${id} of one hundred and twenty `.repeat(3));
      return ndarray('uint8', [data.length], data);
    }),
  );
  await text.close();
  const parquet = JSON.parse(readFileSync(path.join(root, 'test/parquet/files.json'), 'utf8'));
  mkdirSync(at('parquet'));
  writeFileSync(at('parquet/train.parquet'), Buffer.from(parquet[0].parquet, 'base64'));
  const npy = Buffer.concat([npyHeader('uint8', [120]), Buffer.alloc(120, 1)]);
  for (const name of ['pictures.npy', 'x.npy', 'y.npy']) writeFileSync(at(name), npy);
  const rows = Array.from({ length: 9 }, (_, row) => `${row},${row / 4}`);
  writeFileSync(at('rows.csv'), ['id,price', ...rows, ''].join('\n'));
  await exportNpz(at('train'), at('mnist.npz'));
  writeFileSync(at('notes.txt'), 'a line\n\nand one more\n');
  writeFileSync(
    at('letters.mjs'),
    'export const encode = (text) => Array.from(text, (sign) => sign.codePointAt(0));\n' +
      'export const decode = (ids) => String.fromCodePoint(...ids);\n',
  );
  mkdirSync(at('shards'));
  for (const shard of [0, 1]) {
    const samples = [0, 1, 2].map((id) => ({ name: `${id}.cls`, bytes: `${shard}` }));
    writeFileSync(at(`shards/digits-00000${shard}.tar`), tarOf(samples));
  }
  mkdirSync(at('backup'));
  cpSync(at('train/image'), at('backup/image'), { recursive: true });
  cpSync(at('train/image'), at('a'), { recursive: true });
  return folder;
}

/** A copy of a container in which one bit of one byte is another. */
function flipped(source: string, file: string, byte: number): string {
  const copy = scratch.fresh('flipped');
  cpSync(source, copy, { recursive: true });
  const bytes = readFileSync(path.join(copy, file));
  bytes[byte] = (bytes[byte] ?? 0) ^ 1;
  writeFileSync(path.join(copy, file), bytes);
  return copy;
}

const folder = await dataSet();
const image = path.join(folder, 'train', 'image');
const text = path.join(folder, 'train', 'text');

// ---- help ----

t.test('every command explains itself, and its examples run as they stand', async (t) => {
  const overview = await run([]);
  t.equal(overview.code, 2, 'no command is no use');
  t.same(await run(['--help']), { ...overview, code: 0 });
  t.same(await run(['help']), { ...overview, code: 0 });
  t.match(overview.out, /Exit codes: 0 done; 1 .*; 2 .*\n?.*3 .*130/);
  const version = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')).version;
  t.same(await run(['--version']), { code: 0, out: `${version}\n`, err: '' });

  const before = process.cwd();
  t.teardown(() => process.chdir(before));
  for (const command of commands) {
    t.match(overview.out, `  ${command.name} `, 'is in the overview');
    const help = await run([command.name, '--help']);
    t.match(help, { code: 0, err: '' });
    t.same(await run(['help', command.name]), help);
    for (const title of ['Options:', 'Examples:', 'Exit codes:', '--json', '--color']) {
      t.ok(help.out.includes(title), `${command.name} --help: ${title}`);
    }
    for (const line of help.out.split('\n')) t.ok(line.length <= 100, line);
    for (const name of Object.keys(command.options)) t.match(help.out, `--${name}`);
    t.ok(command.examples.length > 0, `${command.name} has examples`);
    for (const [line] of command.examples) {
      t.match(help.out, `npx loaderx ${line}`);
      const copy = path.join(scratch.folder(), 'copy');
      cpSync(folder, copy, { recursive: true });
      if (line.includes('--dry-run'))
        cpSync(path.join(copy, 'a'), path.join(copy, 'b'), { recursive: true });
      // Tests go to no hub; test/hub-load.test.ts has one of its own.
      if (line.includes('hf://')) continue;
      process.chdir(copy);
      const { code, out, err } = await run(line.split(' '));
      t.same([code, err], [0, ''], line);
      t.ok(out.length > 0, `${line}: says something`);
      process.chdir(before);
    }
  }
});

t.test('what cannot be meant: exit code 2, and where the help is', async (t) => {
  const target = scratch.fresh();
  const lines: readonly (readonly [string[], RegExp])[] = [
    [['frobnicate'], /there is no command frobnicate/],
    [['info'], /PATH is missing/],
    [['info', image, '--frob'], /Unknown option '--frob'/],
    [['info', image, '--color', 'maybe'], /--color wants auto or always or never, got maybe/],
    [['head'], /PATH is missing/],
    [['head', image, 'first'], /first is no id/],
    [['head', image, '7-3'], /7-3 goes down/],
    [['head', image, '120'], /ids go from 0 to 119/],
    [['head', image, '-n', 'x'], /--count wants a whole number, got x/],
    [['head', image, '--as', 'sound'], /--as wants/],
    [['head', text, '--png', target], /is no picture/],
    [['head', image, '--as', 'text'], /array is no text/],
    [['verify'], /PATH is missing/],
    [['concat'], /PART is missing/],
    [['concat', image], /-o SET.json is missing/],
    [['merge', image], /-o TARGET is missing/],
    [['convert', folder, target, '--codec', 'raw', '--part', '3'], /--part wants K\/N/],
    [['convert', folder, target, '--codec', 'raw', '--part', 'env8'], /--part wants K\/N/],
    [['convert', folder, target, '--codec', 'raw', '--part', 'env'], /--part env: no scheduler/],
    [['convert', folder, target, '--codec', 'raw', '--part', 'env/0'], /1 to 65536 parts/],
    [['verify', image, '--faults', '-1'], /--faults/],
    [['digest'], /PATH is missing/],
    [['diff', image], /A B is missing/],
    [['diff', image, image, image], /is too much/],
    [['recode', image, target], /--codec is missing: there is no default/],
    [['recode', image, '--codec', 'raw'], /SOURCE TARGET is missing/],
    [['convert', folder, target], /--codec is missing/],
    [['convert', folder, '--codec', 'raw'], /SOURCE TARGET is missing/],
    [['convert', folder, target, '--codec', 'raw', '--strings', 'x'], /--strings wants/],
    [['convert', folder, target, '--codec', 'raw', '--config', 'x'], /are of the hub/],
    [['recode', image, target, '--codec', 'gzip'], /--codec wants raw or zstd or zstd_dict/],
    [['recode', image, target, '--codec', 'raw', '--shards', '256'], /1 to 255, got 256/],
    [['recode', image, target, '--codec', 'raw', '--dialect', '3'], /--dialect wants 2.4 or 2.8/],
    [['recode', image, target, '--codec', 'raw', '--dict', thisFile()], /takes no dictBytes/],
    [['train-dict', image], /-o FILE is missing/],
    [['train-dict', '-o', target], /SOURCE is missing/],
    [['import', image], /SOURCE or TARGET is missing/],
    [['import', image, target], /--codec is missing/],
    [['import', `a=${image}`, image, target, '--codec', 'raw'], /has no name, and others have/],
    [['import', image, target, '--codec', 'raw', '--dtypes', 'x'], /--dtypes wants COLUMN=DTYPE/],
    [['import', thisFile(), target, '--codec', 'raw'], /does not tell what kind of file/],
    [['export', image], /SOURCE TARGET is missing/],
    [['export', image, target], /does not tell what it is to be/],
    [['cat'], /PATH is missing/],
  ];
  for (const [args, pattern] of lines) {
    const { code, out, err } = await run(args);
    const line = args.map((word) => path.basename(word)).join(' ');
    t.same([code, out], [2, ''], line);
    t.match(err, pattern, line);
    t.match(err, /--help|known are/, `${line}: what to do`);
  }
  t.notOk(existsSync(target), 'nothing was made');
});

t.test('what an import wants is said in words of the command line', async (t) => {
  const place = scratch.folder();
  const put = (name: string, bytes: string | Uint8Array): string => {
    const file = path.join(place, name);
    writeFileSync(file, bytes);
    return file;
  };
  const target = path.join(place, 'out');
  const csv = put('a.csv', 'id,word\n1,x\n');
  const tar = put(
    'a.tar',
    tarOf([
      { name: '0.cls', bytes: '1' },
      { name: '0.json', bytes: '{}' },
    ]),
  );
  const cases: readonly (readonly [number, readonly string[], RegExp])[] = [
    [3, [csv], /--strings utf8 .*--tokenizer PACKAGE .*leave it out .*with --columns$/m],
    [3, [put('a.txt', 'x\n')], /--strings utf8 .*--tokenizer PACKAGE makes tokens of it$/m],
    [3, [put('b.csv', 'con\n1\n')], /; --names any takes/],
    [2, [put('a.what', 'x')], /--format says it/],
    [3, [path.join(place, 'none.what')], /none\.what: there is no such file/],
    [3, [tar], /leave others out by naming those that are wanted with --columns$/m],
    [3, [tar, '--columns', 'cls,json'], /"json" is among those of --columns: leave it out there$/m],
    [3, [csv, '--columns', 'idd'], /there is no column "idd"; there are "id", "word"$/m],
    [2, [csv, '--dtypes', 'idd=int8'], /--dtypes has "idd", .*there are "id", "word"$/m],
    [3, [put('c.csv', 'id\n1\n'), '--part', '1/2'], /1 rows, too few for 2 parts/],
  ];
  for (const [wanted, [source = '', ...options], pattern] of cases) {
    for (const manner of [['--codec', 'raw'], ['--dry-run']]) {
      const { code, err } = await run(['import', source, target, ...manner, ...options]);
      const line = [path.basename(source), ...manner, ...options].join(' ');
      t.equal(code, wanted, line);
      t.match(err, pattern, line);
    }
  }
  const { out } = await run(['import', csv, target, '--dry-run', '--json']);
  t.match(JSON.parse(out), { error: { code: 'UNSUPPORTED', message: /--strings utf8/ } });
  t.match((await run(['import', '--help'])).out, /or env\[\/N\]/);
});

t.test('--part env: the part that the scheduler says', async (t) => {
  const target = path.join(scratch.folder(), 'out');
  const convert = (part: string, env: Readonly<Record<string, string>>): Promise<Ran> =>
    run(
      [
        'convert',
        path.join(folder, 'parquet'),
        target,
        '--codec',
        'raw',
        '--strings',
        'utf8',
        '--part',
        part,
      ],
      { env },
    );
  t.match(await convert('env/2', { JOB_COMPLETION_INDEX: '1' }), { code: 0 });
  t.match(await convert('env', { OMPI_COMM_WORLD_RANK: '0', OMPI_COMM_WORLD_SIZE: '2' }), {
    code: 0,
  });
  t.same(readdirSync(target), ['part-00000-of-00002', 'part-00001-of-00002']);
  const wrong = await convert('env/3', { OMPI_COMM_WORLD_RANK: '0', OMPI_COMM_WORLD_SIZE: '2' });
  t.match(wrong, { code: 2, err: /to be 3 parts, and Open MPI says OMPI_COMM_WORLD_SIZE=2/ });
});

/** This file: any that is there. */
function thisFile(): string {
  return path.join(import.meta.dirname, 'cli.test.ts');
}

// ---- answers ----

t.test('with --json every command answers in JSON, and says nothing else', async (t) => {
  const dict = path.join(scratch.folder(), 'text.dict');
  const lines: readonly (readonly [string[], object])[] = [
    [
      ['info', path.join(folder, 'train')],
      { containers: [{ records: 120 }, {}], sameLength: true },
    ],
    [['head', text, '1'], { facts: { kind: 'ragged' }, records: [{ id: 1, dtype: 'uint8' }] }],
    [['head', image, '--png', path.join(scratch.folder(), 'x.png')], { records: 5 }],
    [['verify', image, text], { containers: [{ ok: true, integrity: 'none' }, { ok: true }] }],
    [['digest', image, '--dry-run'], { containers: [{ logicalDigest: /^[\da-f]{64}$/ }] }],
    [['diff', image, path.join(folder, 'a')], { equal: true, compared: 120 }],
    [['recode', text, scratch.fresh(), '--codec', 'raw'], { target: { codec: 'raw' } }],
    [
      [
        'convert',
        path.join(folder, 'parquet'),
        scratch.fresh(),
        '--codec',
        'raw',
        '--columns',
        'bool',
      ],
      { columns: [{ split: 'train', column: 'bool', rowCount: 9 }] },
    ],
    [['train-dict', text, '-o', dict], { file: dict, id: Number, bytes: Number }],
    [
      ['concat', image, path.join(folder, 'a'), '-o', path.join(folder, 'both.json')],
      { records: 240, parts: [{ path: 'train/image', length: 120 }, { path: 'a' }] },
    ],
    [['merge', image, image, '-o', scratch.fresh()], { target: { codec: 'raw', records: 240 } }],
    [
      ['import', path.join(folder, 'x.npy'), scratch.fresh(), '--dry-run'],
      { dryRun: true, isSingle: true, containers: [{ dtype: 'uint8', records: 120 }] },
    ],
    [['export', image, path.join(scratch.folder(), 'x.npy'), '--force'], { itemBytes: Number }],
    [['bench', image, '--seconds', '0.06'], { containers: [{ records: 120, ways: [{}] }] }],
    [['cat', image], { path: image, descr: '|u1', shape: [120, 3, 8, 8], bytes: 23_168 }],
  ];
  t.same(new Set(lines.map(([[name]]) => name)).size, commands.length, 'all commands');
  for (const [args, answer] of lines) {
    for (const isTTY of [false, true]) {
      if (
        isTTY &&
        args.some((word) =>
          ['recode', 'train-dict', 'convert', 'concat', 'merge', '--png'].includes(word),
        )
      )
        continue;
      const { code, out, err } = await run([...args, '--json'], { isTTY });
      t.same([code, err], [0, ''], `${args[0]} --json`);
      t.match(JSON.parse(out), answer, `${args[0]} --json`);
    }
  }
  const wrong = await run(['info', scratch.fresh(), '--json']);
  t.match(wrong, { code: 3, err: '' });
  t.match(JSON.parse(wrong.out), { containers: [], errors: [{ code: 'NOT_FOUND', path: String }] });
  const unreadable = await run(['diff', image, scratch.fresh(), '--json']);
  t.match(unreadable, { code: 3, err: '' });
  t.match(JSON.parse(unreadable.out), { error: { code: 'NOT_FOUND' } });
  const unmeant = await run(['diff', image, '--json']);
  t.match(unmeant, { code: 2, err: '' });
  t.match(JSON.parse(unmeant.out), { error: { code: 'INVALID_ARGUMENT' } });
});

t.test('numbers that JSON has not are texts', async (t) => {
  const place = scratch.fresh();
  const writer = Dense.create(place, { dtype: 'float64', itemShape: [3], codec: 'raw' });
  writer.appendSync(ndarray('float64', [1, 3], Float64Array.of(Number.NaN, -Infinity, 0.5)));
  writer.closeSync();
  const { out } = await run(['head', place, '--json']);
  t.same(JSON.parse(out).records[0].data, ['NaN', '-Infinity', 0.5]);
  const big = scratch.fresh();
  const bigs = Dense.create(big, { dtype: 'int64', itemShape: [], codec: 'raw' });
  bigs.appendSync(ndarray('int64', [1], BigInt64Array.of(2n ** 60n + 1n)));
  bigs.closeSync();
  t.same(JSON.parse((await run(['head', big, '--json'])).out).records[0].data, [
    '1152921504606846977',
  ]);
});

t.test('info: one container, a folder, counts that differ, one that does not open', async (t) => {
  const one = await run(['info', text]);
  t.match(one.out, /records {5}120, ragged uint8 of 1 dimension\n/);
  t.match(one.out, /opened by {3}loaderx for Node, Python loaderx 2\.4\.x/);
  t.match(one.out, /lengths .*median \d+/);
  const table = await run(['info', path.join(folder, 'train')]);
  t.match(table.out, /train\/\n.*records.*\nimage .*\n *text .*\n\nAll have 120 records\.\n$/s);
  const short = scratch.fresh();
  const writer = Dense.create(short, { dtype: 'int8', itemShape: [], codec: 'raw' });
  writer.appendSync(ndarray('int8', [1], Int8Array.of(1)));
  writer.closeSync();
  const differing = await run(['info', image, short]);
  t.equal(differing.code, 0);
  t.match(differing.out, /Record counts differ: 1, 120\.\n$/);
  const partly = await run(['info', image, scratch.fresh(), text]);
  t.equal(partly.code, 3);
  t.match(partly.err, /there is no such folder/);
  t.match(partly.out, /1 container could not be looked at; the rest: 120 records each\.\n$/);
});

t.test('head: numbers, text, pictures, and a contact sheet', async (t) => {
  const first = await run(['head', text, '0', '118-119']);
  t.match(first.out, /120 records, ragged uint8.*record 0 \[\d+\]\nline 0 of.*record 119/s);
  const picture = await run(['head', image, '119', '-n', '1'], { isTTY: true });
  t.match(picture.out, '\u001b[38;2;119;119;119;48;2;119;119;119m▀▀▀▀▀▀▀▀\u001b[0m');
  t.match((await run(['head', image, '119', '--as', 'numbers'])).out, /\[0, :, :\]\n119 119/);
  const sheet = path.join(scratch.folder(), 'sheet.png');
  const made = await run(['head', image, '-n', '9', '--png', sheet]);
  t.match(made, { code: 0, out: /sheet\.png: 9 records of / });
  t.equal(readFileSync(sheet).toString('latin1', 1, 4), 'PNG');
  const again = await run(['head', image, '--png', sheet]);
  t.match(again, { code: 3, err: /it is there already; --force writes over it/ });
  t.equal((await run(['head', image, '--png', sheet, '--force'])).code, 0);
});

t.test('verify: faults, warnings, several containers', async (t) => {
  const place = scratch.fresh();
  cpSync(image, place, { recursive: true });
  t.match(await run(['digest', place]), {
    code: 0,
    out: /^[\da-f]{64} .* integrity\.zr written\n$/,
  });
  t.match(await run(['digest', place]), { code: 0, out: /as its integrity\.zr says/ });
  t.match(await run(['verify', place]), { code: 0, out: /^ok .*every byte as integrity\.zr says/ });
  const bad = flipped(place, 'data_1.zr', 193);
  const found = await run(['verify', bad]);
  t.equal(found.code, 1);
  t.match(
    found.out,
    /^FAULTY .*120 records, .*1 fault, held against integrity\.zr\n {2}fault {4}data_1\.zr, record 3: the stored bytes of record 3 are not those that integrity\.zr vouches for\n$/,
  );
  t.match(await run(['digest', bad]), { code: 1, err: /replace the file only if/ });
  const moved = await run(['verify', flipped(place, 'meta.zr', 4096 + 3 * 16)]);
  t.match(moved.out, /fault {4}meta\.zr, shard 1, record 3: the location/);

  const many = await run(['verify', bad, scratch.fresh(), image]);
  t.equal(many.code, 3, 'one could not be looked at');
  t.match(many.out, /^FAULTY .*\nok /s, 'the others were');
  t.equal((await run(['verify', bad, image])).code, 1);

  const torn = scratch.fresh();
  cpSync(image, torn, { recursive: true });
  const meta = readFileSync(path.join(torn, 'meta.zr'));
  meta.fill(0xff, 4096, 4096 + 40 * 16);
  writeFileSync(path.join(torn, 'meta.zr'), Buffer.concat([meta, Buffer.alloc(5)]));
  const shown = await run(['verify', torn, '--faults', '3']);
  t.equal(shown.out.match(/^ {2}fault /gm)?.length, 3);
  t.match(shown.out, /… and 37 more\n/);
  t.match(shown.out, /warning {2}meta\.zr: 5 bytes behind the location table/);
  t.equal((await run(['verify', torn])).out.match(/^ {2}fault /gm)?.length, 20);
});

t.test('diff: exit code 1, and the first record that differs', async (t) => {
  t.match(await run(['diff', image, path.join(folder, 'a')]), {
    code: 0,
    out: /^equal: 120 records/,
  });
  const other = await run(['diff', image, flipped(image, 'data_0.zr', 192 + 64 + 9)]);
  t.equal(other.code, 1);
  t.match(other.out, /^differ in 1 of 120 records\nfirst: record 2, item \[1, 1, 1\]: 2 and 3\n$/);
  t.match(await run(['diff', image, text]), { code: 1, out: /differ in kind: dense and ragged/ });
});

t.test('recode and train-dict make what they say', async (t) => {
  const dict = path.join(scratch.folder(), 'text.dict');
  t.match(await run(['train-dict', text, '-o', dict]), {
    code: 0,
    out: /bytes?, id \d+, trained on/,
  });
  t.match(await run(['train-dict', text, '-o', dict]), { code: 3, err: /--force/ });
  const target = scratch.fresh();
  const made = await run([
    ...['recode', text, target, '--codec', 'zstd_dict', '--dict', dict, '--shards', '7'],
    ...['--dialect', '2.8', '--integrity', '--durable'],
  ]);
  t.match(made, { code: 0, err: '' });
  t.match(made.out, /to {4}zstd_dict, 7 shards, dialect 2\.8/);
  t.ok(
    readFileSync(dict).equals(readFileSync(path.join(target, 'dict.zr'))),
    'with that dictionary',
  );
  t.match(await verify(target), { ok: true, integrity: 'checked' });
  t.equal((await run(['diff', text, target])).code, 0);
  t.match(await run(['recode', text, target, '--codec', 'raw']), { code: 3, err: /already/ });
  const missing = await run([
    'recode',
    text,
    scratch.fresh(),
    '--codec',
    'zstd_dict',
    '--dict',
    'no',
  ]);
  t.match(missing, { code: 3, err: /no: reading it failed \(ENOENT\)/ });
});

// ---- colours, names, progress ----

t.test('colours are for terminals, and for whoever insists', async (t) => {
  const colour = '\u001b[';
  const colourful = async (args: readonly string[], around: Around): Promise<boolean> =>
    (await run(['info', image, ...args], around)).out.includes(colour);
  t.equal(await colourful([], { isTTY: true }), true);
  t.equal(await colourful([], { isTTY: false }), false);
  t.equal(await colourful([], { isTTY: true, env: { NO_COLOR: '1' } }), false);
  t.equal(await colourful(['--color', 'never'], { isTTY: true }), false);
  t.equal(await colourful(['--color', 'always'], { isTTY: false }), true);
  t.equal(await colourful(['--json'], { isTTY: true }), false);
});

t.test('a stored name cannot move the cursor', async (t) => {
  t.equal(plain('a\u001b[2Jb\r\u009b'), 'a\ufffd[2Jb\ufffd\ufffd');
  const place = path.join(scratch.folder(), process.platform === 'win32' ? 'plain' : 'a\u001b[2Jb');
  cpSync(image, place, { recursive: true });
  for (const args of [['info'], ['head'], ['verify'], ['digest', '--dry-run']]) {
    const { out, err } = await run([...args, place]);
    t.notOk(`${out}${err}`.includes('\u001b'), args.join(' '));
  }
  const { err } = await run(['diff', image, `${place}\u001b[2J`]);
  t.notOk(err.includes('\u001b'), 'nor one that is not there');
});

t.test('progress: on a terminal, after a second, and gone at the end', async (t) => {
  const progress = { recordsDone: 30, recordsTotal: 120, bytesDone: 3 * 2 ** 20 };
  t.equal(
    progressLine('verify a', progress, 1.5),
    'verify a █████░░░░░░░░░░░░░░░  25 %  2.00 MiB/s, 5 s left',
  );
  for (const tells of [true, false]) {
    const stderr = new Stream(true);
    const startMs = performance.now();
    let firstMs = 0;
    const terminal = new Terminal({ stdout: new Stream(true), stderr, env: {} }, false, 'auto');
    await terminal.long('work', async ({ onProgress }) => {
      while (stderr.text === '') {
        if (tells) onProgress?.(progress);
        await new Promise((resolve) => setTimeout(resolve, 10));
        firstMs = performance.now();
      }
    });
    t.ok(firstMs - startMs >= 1000, 'not before a second');
    t.match(stderr.text, tells ? /^\rwork █.*25 %/ : /^\rwork … 1 s/);
    t.ok(stderr.text.endsWith('\r\u001b[K'), 'gone at the end');
    for (const line of stderr.text.split('\r')) t.ok(plain(line).length <= 63, 'fits in the line');
  }
  const piped = new Stream(false);
  const terminal = new Terminal({ stdout: piped, stderr: piped, env: {} }, false, 'auto');
  await terminal.long('work', async ({ onProgress }) => {
    const endMs = performance.now() + 1300;
    while (performance.now() < endMs) {
      onProgress?.(progress);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  });
  t.equal(piped.text, '', 'nothing where nobody looks');
});

t.test('texts', (t) => {
  t.same([0, 999, 1000, 1023, 2 ** 20, 5 * 2 ** 40].map(bytesText), [
    ...['0 B', '999 B', '0.98 KiB', '1.00 KiB', '1.00 MiB', '5.00 TiB'],
  ]);
  t.same([0.2, 59, 120, 7200].map(secondsText), ['1 s', '59 s', '2 min', '2.0 h']);
  t.same([secondsText(100), secondsText(18_000)], ['2 min', '5.0 h']);
  t.equal(barsText([0, 1, 8, 4]), ' ▂█▅');
  t.same(
    tableLines(
      [
        ['a', '1'],
        ['bcd', '100'],
      ],
      new Set([1]),
    ),
    ['a      1', 'bcd  100'],
  );
  t.end();
});

// ---- Ctrl-C ----

t.test('Ctrl-C ends a command in good order', async (t) => {
  const target = scratch.fresh();
  for (const args of [
    ['info', text],
    ['verify', image],
    ['digest', image],
    ['diff', image, path.join(folder, 'a')],
    ['recode', image, target, '--codec', 'zstd', '--integrity'],
  ]) {
    const { code, out, err } = await run(args, { interrupt: true });
    t.same([code, out, err], [130, '', 'loaderx: interrupted\n'], args.join(' '));
  }
  t.same(readdirSync(path.dirname(target)), [], 'and leaves nothing');
  t.notOk(existsSync(path.join(image, 'integrity.zr')));
});

// ---- the program ----

function runProgram(args: readonly string[]): Ran {
  const ended = spawnSync(process.execPath, [program, ...args], { encoding: 'utf8' });
  return { code: ended.status ?? -1, out: ended.stdout, err: ended.stderr };
}

t.test('the program itself', async (t) => {
  t.match(runProgram(['verify', image]), { code: 0, out: /^ok /, err: '' });
  const bad = flipped(image, 'meta.zr', 4096 + 8);
  t.match(runProgram(['verify', bad]), { code: 1, out: /^FAULTY /, err: '' });
  t.match(runProgram(['info', '--frob']), { code: 2, out: '' });
  t.match(runProgram(['info', scratch.fresh()]), { code: 3, out: '' });
  t.match(readFileSync(program, 'utf8'), /^#!\/usr\/bin\/env node\n/);
});

t.test('a reader that has had enough is no error', async (t) => {
  const child = spawn(process.execPath, [program, 'head', image, '0-119', '--json'], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  child.stdout.destroy();
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    err += part;
  });
  const code = await new Promise((resolve) => {
    child.on('close', resolve);
  });
  t.same([code, err], [0, '']);
});

t.test('a process that is told to stop leaves no build behind', async (t) => {
  if (process.platform === 'win32') {
    // Signals of other processes are not delivered there; Ctrl-C above is the same way through.
    return;
  }
  const source = scratch.fresh();
  await makeLarge(t, source);
  // On a busy machine a build may be done before this process gets its turn to stop it: then once more.
  for (let attempt = 0; attempt < 5; attempt += 1) {
    const target = scratch.fresh();
    const child = spawn(process.execPath, [program, 'recode', source, target, '--codec', 'zstd'], {
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let err = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => {
      err += part;
    });
    const ended = new Promise<readonly [number | null, string | null]>((resolve) => {
      child.on('close', (code, signal) => resolve([code, signal]));
    });
    // Once the hidden folder is there it is at work.
    while (readdirSync(path.dirname(target)).length === 0 && child.exitCode === null) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
    child.kill('SIGINT');
    const [code, signal] = await ended;
    if (code === 0) {
      t.match(await verify(target), { ok: true });
      rmSync(target, { recursive: true });
      continue;
    }
    t.same([code, signal, err], [130, null, 'loaderx: interrupted\n']);
    t.same(readdirSync(path.dirname(target)), []);
    return;
  }
  t.fail('it was never stopped in time');
});

/** Enough records to be at work for a while: they do not compress well. */
async function makeLarge(t: Test, place: string): Promise<void> {
  const writer = Dense.create(place, { dtype: 'uint32', itemShape: [2 ** 14], codec: 'raw' });
  let state = 1;
  for (let part = 0; part < 32; part += 1) {
    const data = Uint32Array.from({ length: 64 * 2 ** 14 }, () => {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      return state >>> 7;
    });
    await writer.append(ndarray('uint32', [64, 2 ** 14], data));
  }
  await writer.close();
  const reader = open(place);
  t.equal(reader.length, 2048);
  await reader.close();
  t.teardown(() => rmSync(place, { recursive: true, force: true }));
}
