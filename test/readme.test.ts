// The README says what is so: every program of the README runs, prints what it says it prints, and
// has the types it claims; the demo's output is the one that is shown; the table of errors is complete.
// Links and commands are looked at in documents.test.ts.
//
// A program's output stands in its comments: `// → text`, one for each line it prints. The programs run
// in order in one folder, as a reader would try them.
import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { transformSync } from 'esbuild';
import t from 'tap';
import ts from 'typescript';
import { errorCodes } from '../ts/errors.js';
import { type Block, blocksOf } from './support/markdown.js';

const root = path.resolve(import.meta.dirname, '..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const readme = read('README.md');

const blocks = blocksOf(readme);
const printed = (block: Block): string[] =>
  [...block.code.matchAll(/(?:\/\/|#) → (.*)$/gm)].map((match) => match[1] ?? '');

const folder = mkdtempSync(path.join(tmpdir(), 'loaderx-readme-'));
t.teardown(() => rmSync(folder, { recursive: true, force: true }));
// A project that has the package installed, as npm would link a checkout.
writeFileSync(path.join(folder, 'package.json'), '{ "type": "module" }\n');
mkdirSync(path.join(folder, 'node_modules'));
symlinkSync(root, path.join(folder, 'node_modules', 'loaderx'), 'junction');

/** Runs a program in the folder; its lines, or what it failed with. */
function run(command: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): string[] {
  const ended = spawnSync(command, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...process.env, NODE_OPTIONS: '', NO_COLOR: '1', ...env },
  });
  if (ended.status === 0) return ended.stdout.split('\n').slice(0, -1);
  return [`exit code ${ended.status}`, ended.stderr, ended.stdout];
}

t.test('the programs run and print what they say', async (t) => {
  for (const block of blocks) {
    if (block.language !== 'js' && block.language !== 'ts') continue;
    const file = path.join(folder, `line-${block.line}.mjs`);
    const code =
      block.language === 'js'
        ? block.code
        : transformSync(block.code, { loader: 'ts', format: 'esm', target: 'node20' }).code;
    writeFileSync(file, code);
    t.strictSame(run(process.execPath, [file]), printed(block), `README.md:${block.line}`);
  }
});

t.test('the command lines print what is shown', { skip: process.platform === 'win32' }, (t) => {
  const ours = `"${process.execPath}" "${path.join(root, 'dist', 'cli.js')}"`;
  let count = 0;
  for (const { language, line, code } of blocks) {
    if (language !== 'console') continue;
    for (const part of code.split(/^\$ /m).slice(1)) {
      const [command = '', ...shown] = part.split('\n');
      const lines = run('sh', ['-c', command.replace('npx loaderx', ours)]);
      t.strictSame(lines, shown.slice(0, -1), `README.md:${line}: ${command}`);
      count += 1;
    }
  }
  t.ok(count > 0, 'there are some');
  t.end();
});

t.test('the Python program reads what the programs before it wrote', (t) => {
  const block = blocks.find(({ language }) => language === 'python');
  const record = path.join(root, '.deps', 'python-2.4', 'installed.json');
  if (block === undefined) throw new Error('README.md has no Python program');
  t.ok(printed(block).length > 0, 'it prints something');
  if (!existsSync(record)) {
    t.pass(`README.md:${block.line}`, { skip: 'npm run interop installs Python loaderx' });
  } else {
    const { environment } = JSON.parse(readFileSync(record, 'utf8')) as {
      environment: { python: string; env: NodeJS.ProcessEnv };
    };
    const lines = run(environment.python, ['-c', block.code], environment.env);
    t.strictSame(lines, printed(block), `README.md:${block.line}`);
  }
  t.end();
});

t.test('the TypeScript programs have the types they claim', (t) => {
  const files = blocks
    .filter(({ language }) => language === 'ts')
    .map(({ line, code }) => {
      const file = path.join(folder, `line-${line}.ts`);
      writeFileSync(file, code);
      return file;
    });
  t.ok(files.length > 0, 'there are some');
  const program = ts.createProgram(files, {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts'],
    typeRoots: [path.join(root, 'node_modules', '@types')],
    types: ['node'],
    strict: true,
    noEmit: true,
    skipLibCheck: true,
  });
  const faults = ts.getPreEmitDiagnostics(program).map(({ file, start, messageText }) => {
    const line = file?.getLineAndCharacterOfPosition(start ?? 0).line ?? 0;
    return `${path.basename(file?.fileName ?? '')} +${line + 1}: ${ts.flattenDiagnosticMessageText(messageText, '\n')}`;
  });
  t.strictSame(faults, []);
  t.end();
});

/** What differs from run to run (rates, times, and how many batches fitted into them) as `~`. */
function withoutRates(output: readonly string[]): string[] {
  return output.map((line) =>
    line
      .replace(/^((?:image|label|ink) .*?\d\.\d\d)(?: +[\d.,]+){3}$/, '$1 ~')
      .replace(/ in [\d.]+ s$/, ' in ~ s')
      .replace(/^[\d,]+ records were read/, '~ records were read'),
  );
}

t.test('the demo prints what the README shows', (t) => {
  const shown = blocks.find(({ code }) => code.includes('handwritten digits of the npm package'));
  const demo = path.join(root, 'examples', 'demo.mjs');
  const temporary = path.join(folder, 'temporary');
  mkdirSync(temporary);
  const places = { TMPDIR: temporary, TEMP: temporary, TMP: temporary };
  t.strictSame(
    withoutRates(run(process.execPath, [demo], places)),
    withoutRates((shown?.code ?? '').split('\n').slice(0, -1)),
    'the same but for rates: if the demo was changed, show its new output',
  );
  t.strictSame(readdirSync(temporary), [], 'its temporary folder is gone');
  t.end();
});

t.test('the table of errors has every code once', (t) => {
  const inTable = [...readme.matchAll(/^\| `([A-Z_]+)` \|/gm)].map((match) => match[1] ?? '');
  t.strictSame(inTable.sort(), [...errorCodes].sort());
  t.end();
});

/** The rows of the README's comparison: backend and kind in docs/benchmarks.md. */
const compared: Readonly<Record<string, readonly [string, string, string?]>> = {
  'loaderx, batches given back': ['ours-raw', 'await-disposed', 'await-disposed-views'],
  'loaderx, batches dropped': ['ours-raw', 'await-dropped', 'await-dropped-views'],
  'loaderx 2.4.6 for Python': ['loaderx-2.4.6-raw', 'fresh'],
  'NumPy, memory-mapped': ['npy-mmap-raw', 'fresh'],
  '`fs.readSync`': ['node-fs-raw', 'fresh'],
  '`@riaskov/mmap-io`': ['npm-mmap-io-raw', 'fresh'],
  '`apache-arrow`': ['npm-apache-arrow-raw', 'fresh'],
  '`lmdb`': ['npm-lmdb-raw', 'fresh'],
  '`better-sqlite3`': ['npm-better-sqlite3-raw', 'fresh'],
  '`h5wasm`': ['npm-h5wasm-raw', 'fresh'],
  '`zarrita`': ['npm-zarrita-raw', 'fresh'],
  '`hyparquet`': ['npm-hyparquet-raw', 'fresh'],
};
const chapters = [
  'digits, dense uint8[28,28]',
  'tokens, dense int32[512]',
  'tokens, ragged int32[16..512]',
  'photos, dense uint8[3,224,224]',
];

t.test('the figures are those of docs/benchmarks.md', (t) => {
  const parts = read('docs/benchmarks.md').split(/^### /m);
  const cells = (line: string): string[] => line.split('|').map((cell) => cell.trim());
  for (const [name, [backend, kind, kindOfRagged]] of Object.entries(compared)) {
    const figures = chapters.map((chapter) => {
      const part = parts.find(
        (one) => one.startsWith(`${chapter}\n`) && one.includes('| ours-raw |'),
      );
      const wanted = chapter.includes('ragged') ? (kindOfRagged ?? kind) : kind;
      const rows = part?.split('\n').map(cells) ?? [];
      return rows.find((row) => row[1] === backend && row[2] === wanted)?.[3]?.replace(' \\*', '');
    });
    t.ok(
      readme.includes(`| ${name} | ${figures.join(' | ')} |\n`),
      `${name}: ${figures.join(' | ')}`,
    );
  }
  t.end();
});
