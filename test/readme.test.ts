// The documents say what is so: every program of the README runs, prints what it says it prints, and
// has the types it claims; the demo's output is the one that is shown; tables and links are complete.
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

const root = path.resolve(import.meta.dirname, '..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const readme = read('README.md');

interface Block {
  readonly language: string;
  readonly line: number;
  readonly code: string;
}

/** Fenced blocks, in order. */
function blocksOf(markdown: string): Block[] {
  const blocks: Block[] = [];
  const lines = markdown.split('\n');
  for (let at = 0; at < lines.length; at += 1) {
    const opening = /^```(\S*)$/.exec(lines[at] ?? '');
    if (opening === null) continue;
    const end = lines.indexOf('```', at + 1);
    if (end < 0) throw new Error(`line ${at + 1}: the block does not end`);
    const code = `${lines.slice(at + 1, end).join('\n')}\n`;
    blocks.push({ language: opening[1] ?? '', line: at + 1, code });
    at = end;
  }
  return blocks;
}

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

const documents = readdirSync(root, { recursive: false, encoding: 'utf8' })
  .filter((name) => name.endsWith('.md'))
  .concat(readdirSync(path.join(root, 'docs')).map((name) => `docs/${name}`))
  .filter((name) => name.endsWith('.md'));

/** The anchor that a heading gets. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s-]/gu, '')
    .trim()
    .replace(/\s/g, '-');

const anchorsOf = (markdown: string): string[] =>
  [...markdown.matchAll(/^#{1,6} (.*)$/gm)].map((match) => anchorOf(match[1] ?? ''));

t.test('links lead somewhere, and nothing names one machine', (t) => {
  for (const document of documents) {
    const text = read(document);
    for (const [, target = ''] of text.matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^[a-z]+:/.test(target)) continue;
      const [file = '', anchor] = target.split('#');
      const absolute =
        file === '' ? path.join(root, document) : path.resolve(root, path.dirname(document), file);
      const isThere = existsSync(absolute);
      t.ok(isThere, `${document}: ${target}`);
      if (!isThere || anchor === undefined) continue;
      t.ok(anchorsOf(readFileSync(absolute, 'utf8')).includes(anchor), `${document}: ${target}`);
    }
    t.notMatch(
      text,
      /(?<![\w.])\/(?:home|Users|work|tmp|root)\//,
      `${document}: no path of a machine`,
    );
  }
  t.end();
});
