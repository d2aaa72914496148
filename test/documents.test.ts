// All documents: their links lead somewhere, what they import is exported, and the commands they name are
// there. What the README shows is run besides, by readme.test.ts, and what docs/cli.md shows by
// transcripts.test.ts.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { transformSync } from 'esbuild';
import t from 'tap';
import { commands } from '../ts/cli/main.js';
import { anchorsOf, blocksOf, targetsOf } from './support/markdown.js';

const root = path.resolve(import.meta.dirname, '..');
const read = (file: string): string => readFileSync(path.join(root, file), 'utf8');
const markdownIn = (folder: string): string[] =>
  readdirSync(path.join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => path.posix.join(folder, name));
const manifest = JSON.parse(read('package.json')) as {
  exports: Record<string, unknown>;
  scripts: Record<string, string>;
};
const documents = [...markdownIn('.'), ...markdownIn('docs'), 'bench/README.md'];

t.test('links lead somewhere, and nothing names one machine', (t) => {
  for (const document of documents) {
    const text = read(document);
    for (const target of targetsOf(text)) {
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

const languages = ['', 'console', 'js', 'python', 'sh', 'text', 'ts'];
/** What each entry of the package exports, by the name it is imported by. */
async function entries(): Promise<Map<string, object>> {
  const { exports } = manifest;
  const names = Object.keys(exports).filter((name) => !name.endsWith('.json'));
  return new Map(
    await Promise.all(
      names.map(async (name): Promise<[string, object]> => {
        const file = name === '.' ? 'index' : path.basename(name);
        return [path.posix.join('loaderx', name), await import(`../ts/${file}.js`)];
      }),
    ),
  );
}

t.test('programs can be read, and what they import is exported', async (t) => {
  const exported = await entries();
  t.ok(exported.has('loaderx/converter'), 'entries have the names that are imported');
  for (const document of documents) {
    for (const { language, line, code } of blocksOf(read(document))) {
      const place = `${document}:${line}`;
      t.ok(languages.includes(language), `${place}: ${language}`);
      if (language !== 'js' && language !== 'ts') continue;
      t.doesNotThrow(() => transformSync(code, { loader: language, format: 'esm' }), place);
      for (const [, names = '', from = ''] of code.matchAll(
        /^import \{([^}]*)\} from '(loaderx[^']*)'/gm,
      )) {
        const module = exported.get(from) ?? {};
        for (const name of names.split(',').map((one) => one.trim())) {
          if (name === '' || name.startsWith('type ')) continue;
          t.ok(name in module, `${place}: ${from} exports ${name}`);
        }
      }
    }
  }
});

/** What npm itself knows, and what else a reader of these documents has. */
const npmKnows = ['audit', 'ci', 'config', 'deprecate', 'install', 'pack', 'publish', 'version'];
const shellKnows = [
  ...[
    'bash',
    'cd',
    'cp',
    'docker',
    'git',
    'kubectl',
    'mkdir',
    'mpirun',
    'parallel',
    'pip',
    'python3',
  ],
  ...['sbatch', 'seq', 'sh', 'squeue', 'srun', 'torchrun', 'xargs'],
];

/** What is wrong with a command, if anything is: it is looked up, not run. */
function faultOf(command: string): string | undefined {
  const words = command
    .replace(/^\s*\$ /, '')
    .split(/\s+/)
    .filter((word) => !/^[A-Z_]+=/.test(word));
  const [program = '', first = '', second = ''] = words;
  const missing = (file: string): string | undefined =>
    existsSync(path.join(root, file)) ? undefined : `there is no ${file}`;
  if (program === 'npm' && first === 'run') {
    return second in manifest.scripts || second === '' ? undefined : `there is no script ${second}`;
  }
  if (program === 'npm' && first === 'test') {
    return words.filter((word) => word.startsWith('test/') && !/[A-Z*]/.test(word)).map(missing)[0];
  }
  if (program === 'npm' && first === '--prefix') return undefined;
  if (program === 'npm') return npmKnows.includes(first) ? undefined : `npm has no ${first}`;
  if (program === 'npx' && first === 'loaderx') {
    const isKnown = second === '' || commands.some(({ name }) => name === second);
    return isKnown ? undefined : `there is no command ${second}`;
  }
  if (program === 'node' && /^(?:bench|examples|scripts|test)\//.test(first)) return missing(first);
  if (program === 'node' && first.endsWith('.mjs')) return undefined; // the reader's own
  return shellKnows.includes(program) ? undefined : `what is ${program}?`;
}

t.test('commands are there', (t) => {
  for (const document of documents) {
    const text = read(document);
    for (const { language, line, code } of blocksOf(text)) {
      if (language !== 'sh') continue;
      const commands = code
        .replace(/\\\n/g, ' ')
        .split('\n')
        .flatMap((one) => one.replace(/(^|\s)#.*$/, '').split(/ && | \| /))
        .map((one) => one.trim())
        .filter((one) => one !== '' && !one.startsWith('<'));
      for (const command of commands) {
        t.equal(faultOf(command), undefined, `${document}:${line}: ${command}`);
      }
    }
    for (const [, command = ''] of text.matchAll(/`((?:npm|npx loaderx|node) [^`\n]+)`/g)) {
      t.equal(faultOf(command), undefined, `${document}: ${command}`);
    }
  }
  t.end();
});

/** Rooms of the core and what each may import, as `zig-src/tidy.zig` holds them. */
function zigRooms(): string[] {
  const table = /const rooms = \[_\]Room\{(.*?)\n\};/s.exec(read('zig-src/tidy.zig'))?.[1] ?? '';
  return [...table.matchAll(/room\("([^"]+)",\s*&\.\{(.*?)\}\)/gs)].map(
    ([, file = '', list = '']) => {
      const imports = [...list.matchAll(/"([^"]+)"/g)].map(([, name = '']) => name);
      return `${bare(file)}: ${imports
        .filter((name) => !['std', 'builtin'].includes(name))
        .map(bare)
        .sort()}`;
    },
  );
}
const bare = (file: string): string => file.replace(/\.zig$/, '');

t.test('docs/rooms.md has the import table of the core', (t) => {
  const names = (cell: string): string[] =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
  const [, table = ''] = read('docs/rooms.md').split(/^\| room in `zig-src\/` .*$/m);
  const shown = [...table.matchAll(/^\| (`.*?) \| (.*) \|$/gm)].flatMap(
    ([, rooms = '', imports = '']) =>
      names(rooms).map((room) => `${room}: ${names(imports).sort()}`),
  );
  const wanted = zigRooms();
  t.ok(wanted.length > 20, 'tidy.zig was understood');
  t.strictSame(shown.filter((row) => !row.startsWith('napi/*')).sort(), wanted.sort());
  t.end();
});
