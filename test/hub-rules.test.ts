// Which files of a repository are the data: names, patterns, cards and layouts, as functions of texts.
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { type Card, cardOf } from '../ts/converter/hub/card.js';
import { convertedFilesOf, type DataFiles, dataFilesOf } from '../ts/converter/hub/data-files.js';
import { globOf } from '../ts/converter/hub/glob.js';
import {
  byCodePoint,
  isSplitName,
  repoOf,
  revisionOf,
  whyUnsafe,
} from '../ts/converter/hub/names.js';
import type { LoaderxError } from '../ts/errors.js';
import { readCase } from './support/converter-fixtures.js';
import { fixture, withoutFixtures } from './support/fixtures.js';
import { failureOf } from './support/outcome.js';

const codeOf = (run: () => unknown): string => {
  try {
    run();
    return 'done';
  } catch (error) {
    const { code, field } = error as LoaderxError;
    return field === undefined ? code : `${code} ${field}`;
  }
};

t.test('patterns', async (t) => {
  const cases: readonly (readonly [string, readonly string[], readonly string[]])[] = [
    ['*', ['a', 'a.b', '.a'], ['a/b']],
    ['a*', ['a', 'ab'], ['ba', 'a/b']],
    ['*b*d', ['bd', 'abcd', 'abbbdd'], ['bdx', 'db']],
    ['?.x', ['a.x', '?.x', '😀.x'], ['.x', 'aa.x']],
    ['**', ['a', 'a/b/c'], []],
    ['a/**', ['a/b', 'a/b/c'], ['a', 'b/a']],
    ['**/a', ['a', 'b/a', 'b/c/a'], ['ab', 'a/b']],
    ['a/**/b', ['a/b', 'a/x/b', 'a/x/y/b'], ['ab', 'a/xb', 'a/b/c']],
    ['**/**/a', ['a', 'x/y/z/a'], ['b']],
    ['**/x*/**', ['x/a', 'b/x1/c/d'], ['x', 'b/x1']],
    ['[0-9]', ['0', '5', '9'], ['a', '10', '/']],
    ['[!0-9]', ['a'], ['0']],
    ['[]a]', [']', 'a'], ['b']],
    ['[-._ 0-9]', ['-', '.', '_', ' ', '7'], ['a']],
    ['[a-]', ['a', '-'], ['b']],
    ['[^a]', ['^', 'a'], ['b']],
    ['[z-a]', [], ['a', 'm', 'z']],
    ['[', ['['], ['a']],
    ['a[1', ['a[1'], ['a1']],
    ['{a,b}', ['{a,b}'], ['a']],
    ['a+(b)', ['a+(b)'], ['abb']],
  ];
  for (const [pattern, fits, misses] of cases) {
    const glob = globOf(pattern);
    for (const one of fits) t.equal(glob?.matches(one), true, `${pattern} is ${one}`);
    for (const one of misses) t.equal(glob?.matches(one), false, `${pattern} is not ${one}`);
  }
  t.equal(globOf('a**/b'), undefined, '** is a whole part or nothing');
});

t.test('a pattern made to take for ever does not', async (t) => {
  const name = 'a'.repeat(200);
  t.equal(globOf(`${'*a'.repeat(100)}b`)?.matches(name), false);
  const folders = `${'a/'.repeat(200)}c`;
  t.equal(globOf(`${'**/a/'.repeat(100)}b`)?.matches(folders), false);
});

t.test('repositories and revisions', async (t) => {
  for (const repo of ['a', 'fx/a', 'A-b_c.d/e.f-g', '0/1']) t.equal(repoOf(repo), repo);
  const badRepos = [
    ...['', '/', 'a/', '/a', 'a/b/c', '..', 'a/..', '../../x', '/abs', 'C:\\x', 'D:x', '\\\\h\\s'],
    ...[
      'a b',
      'a--b/c',
      'a/-b',
      'a/b.',
      'a/b?c',
      'a/b#c',
      'a/b%2e',
      'ä/b',
      'a/b.git',
      'x'.repeat(97),
    ],
    ...['hf://a/b', 'datasets/a/b', 'a/b\n', 'a/b@main', null, undefined, 7],
  ];
  for (const repo of badRepos)
    t.equal(
      codeOf(() => repoOf(repo)),
      'INVALID_ARGUMENT repo',
      String(repo),
    );
  for (const [repo, hint] of [
    ['hf://a/b', ': say "a/b"'],
    ['datasets/a/b', ': say "a/b"'],
    ['hf://datasets/a/b@v1', ': say "a/b", and revision "v1" by its own option'],
    ['a/b@main', ': say "a/b", and revision "main" by its own option'],
    ['a/b/c', ''],
  ] as const) {
    const failure = await failureOf(() => repoOf(repo));
    t.ok(failure.message.endsWith(`got ${JSON.stringify(repo)}${hint}`), failure.message);
  }

  for (const revision of [
    'main',
    'v1.0',
    'feature/x',
    'refs/pr/1',
    'refs/convert/parquet',
    'größe',
    '0'.repeat(40),
  ]) {
    t.equal(revisionOf(revision), revision);
  }
  const badRevisions = [
    ...[
      '',
      '..',
      'a..b',
      '../../x',
      'a/../../x',
      '/abs',
      'C:\\x',
      'D:x',
      '\\\\h\\s',
      'a//b',
      'a/',
      '.a',
      'a/.b',
    ],
    ...[
      'a b',
      'a?b',
      'a*',
      'a[',
      'a^',
      'a~1',
      'a.lock',
      'a.',
      '-a',
      '@{u}x@{',
      'a\0',
      'a\n',
      'x'.repeat(256),
      7,
      null,
    ],
  ];
  for (const revision of badRevisions) {
    t.equal(
      codeOf(() => revisionOf(revision)),
      'INVALID_ARGUMENT revision',
      String(revision),
    );
  }
});

t.test('paths of a repository that would leave the cache (B88)', async (t) => {
  const everywhere = [
    '../../x',
    'a/../../x',
    '/abs',
    'C:\\x',
    'D:x',
    '\\\\h\\s',
    'a\\b',
    '',
    '.',
    'a//b',
    'a/./b',
    'a\0',
    'a\nb',
    'c:/x',
  ];
  for (const one of everywhere) {
    for (const platform of ['linux', 'win32', 'darwin'] as const) {
      t.ok(whyUnsafe(one, platform), `${JSON.stringify(one)} on ${platform}`);
    }
  }
  for (const one of ['?.parquet', 'ab:c', 'con', 'data/aux.parquet', 'a ', 'a/b.', 'COM1.x', '<']) {
    t.ok(whyUnsafe(one, 'win32'), `${one} on Windows`);
    t.equal(whyUnsafe(one, 'linux'), undefined, `${one} elsewhere`);
  }
  for (const one of ['a', '..a', 'data/c#/a b%20[1]@x.parquet', 'config', '__proto__']) {
    t.equal(whyUnsafe(one, 'win32'), undefined, one);
  }
});

t.test('names of splits', async (t) => {
  for (const name of ['train', 'train.clean.100', 'dev_2', '2024', 'größe', '_'])
    t.ok(isSplitName(name), name);
  for (const name of [
    '',
    'all',
    'a-b',
    'a/b',
    '..',
    'a b',
    '.a',
    'a.',
    'a..b',
    '../../x',
    '/abs',
    'C:\\x',
    'D:x',
    'a\n',
    '❤',
  ]) {
    t.notOk(isSplitName(name), name);
  }
});

t.test('strings are in order of their code points', async (t) => {
  t.strictSame(['b', '😀', '\uff5e', '10', '2', 'a'].sort(byCodePoint), [
    '10',
    '2',
    'a',
    'b',
    '\uff5e',
    '😀',
  ]);
});

// ---- cards ----

const card = (yaml: string): Card => cardOf('fx/a', { card: `---\n${yaml}\n---\n# Text\n` });

t.test('cards that say nothing', async (t) => {
  const texts = [
    '',
    '# Text',
    '---\n---\n',
    '---\n# only a remark\n---\n',
    'x\n---\na: 1\n---\n',
    '---\na: 1\n',
  ];
  for (const text of texts)
    t.strictSame(cardOf('fx/a', { card: text }).configs, [], JSON.stringify(text));
  t.strictSame(cardOf('fx/a', {}).configs, []);
});

t.test('cards are read as Python reads them', async (t) => {
  const one = cardOf('fx/a', {
    card: '\uFEFF---\r\nconfigs:\r\n- config_name: x\r\n  data_files: x/*\r\n---\r\n',
    addition: 'dataset_info: {features: [{name: a, dtype: int8}]}',
    oldInfos: '{"fx--a": {"features": {"b": {"dtype": "int8", "_type": "Value"}}}, "other": {}}',
  });
  t.match(one.configs, [{ name: 'x', dataFiles: 'x/*' }]);
  t.strictSame([...one.infos.keys()], ['fx--a', 'other', 'default']);
  t.strictSame([...cardOf('fx/a', { oldInfos: '{"fx--a": {}}' }).infos.keys()], ['default']);
  const infos = card('dataset_info:\n- {config_name: a, features: []}\n- {features: [1]}').infos;
  t.strictSame([...infos.keys()], ['a', 'default']);
  t.equal(
    card('configs:\n- {config_name: a, default: yes}').configs[0]?.isDefault,
    true,
    'YAML 1.1',
  );
  const names = card('configs: [{config_name: y, data_files: n}, {config_name: N, data_files: Y}]');
  t.match(names.configs, [
    { name: 'y', dataFiles: 'n' },
    { name: 'N', dataFiles: 'Y' },
  ]);
});

t.test('cards that cannot be followed say why', async (t) => {
  const faulty = [
    ...[
      'a: [',
      '- a',
      'just text',
      'a: 1\na: 2',
      'configs: 7',
      'configs: [a]',
      'configs: [{default: true}]',
    ],
    `${'a: &a [x,x,x,x,x,x,x,x,x,x]\n'}b: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c]`,
  ];
  for (const yaml of faulty)
    t.equal(
      codeOf(() => card(yaml)),
      'MALFORMED',
      yaml,
    );
  t.equal(
    codeOf(() => cardOf('fx/a', { oldInfos: '{' })),
    'MALFORMED',
  );
  const { constructor: maker } = card(
    '__proto__: {polluted: 1}\ndataset_info: {__proto__: {x: 1}}',
  );
  t.equal(maker, Object);
  t.notOk('polluted' in {});
});

// ---- which files ----

const noCard: Card = { configs: [], infos: new Map() };

const splitsOf = ({ splits }: DataFiles): Record<string, readonly string[]> =>
  Object.fromEntries(splits);

const chosen = (paths: readonly string[], from: Card = noCard, config?: string) =>
  splitsOf(dataFilesOf({ name: 'fx/a', paths, card: from }, config));

t.test('the usual layouts', async (t) => {
  t.strictSame(
    chosen([
      'data/train-00000-of-00002.parquet',
      'data/train-00001-of-00002.parquet',
      'data/x.y-00000-of-00001-abc.parquet',
      'other.parquet',
    ]),
    {
      train: ['data/train-00000-of-00002.parquet', 'data/train-00001-of-00002.parquet'],
      'x.y': ['data/x.y-00000-of-00001-abc.parquet'],
    },
    'numbered files in data/',
  );
  t.strictSame(
    Object.keys(
      chosen(
        ['b', 'test', 'a', 'validation', 'train'].map(
          (split) => `data/${split}-00000-of-00001.parquet`,
        ),
      ),
    ),
    ['train', 'validation', 'test', 'a', 'b'],
  );
  t.strictSame(
    chosen(['x/train/a.parquet', 'x/my-test 2/b/c.parquet', 'z.parquet']),
    { train: ['x/train/a.parquet'], test: ['x/my-test 2/b/c.parquet'] },
    'folders',
  );
  t.strictSame(
    chosen(['x/my_train.parquet', 'dev-1.parquet', 'evaluated.parquet']),
    { train: ['x/my_train.parquet'], validation: ['dev-1.parquet'] },
    'words',
  );
  t.strictSame(
    chosen([
      'b.parquet',
      'a/10.parquet',
      'a/2.parquet',
      '.hidden/x.parquet',
      '__x/y.parquet',
      '.x.parquet',
    ]),
    { train: ['a/10.parquet', 'a/2.parquet', 'b.parquet'] },
    'all',
  );
  t.strictSame(
    chosen(['?.parquet', 'data/c#/a b%20[1]@x.parquet']),
    { train: ['?.parquet', 'data/c#/a b%20[1]@x.parquet'] },
    'odd names',
  );
  t.equal(
    codeOf(() => chosen(['data/a-b-00000-of-00001.parquet'])),
    'UNSUPPORTED',
    'a split that may not be called so',
  );
  t.equal(
    codeOf(() => chosen([])),
    'NOT_FOUND',
  );
  t.equal(
    codeOf(() => chosen(['README.md', '.gitattributes'])),
    'NOT_FOUND',
  );
});

t.test('what most files are is what a split is', async (t) => {
  t.strictSame(chosen(['a.csv', 'b.parquet']), { train: ['b.parquet'] }, 'Parquet before others');
  t.equal(
    codeOf(() => chosen(['a.csv', 'b.csv', 'c.parquet'])),
    'UNSUPPORTED',
  );
  t.equal(
    codeOf(() => chosen(['a.png', 'metadata.parquet'])),
    'UNSUPPORTED',
    'pictures and their list',
  );
  t.strictSame(chosen(['metadata.parquet']), { train: ['metadata.parquet'] });
  t.equal(
    codeOf(() => chosen(['a.parquet', 'b.parquet', 'c.parquet.gz'])),
    'UNSUPPORTED',
  );
  t.equal(
    codeOf(() => chosen(['a.parquet', 'b.parquet', 'c.zip'])),
    'UNSUPPORTED',
  );
  t.equal(
    codeOf(() => chosen(['train/a.csv', 'test/b.parquet'])),
    'UNSUPPORTED',
  );
});

t.test('files that the card names', async (t) => {
  const paths = [
    'data/c#/a b%20[1]@x.parquet',
    'data/c#/a b%201@x.parquet',
    '?.parquet',
    'q.parquet',
    'd/train-00000-of-00001.parquet',
  ];
  const files = (yaml: string, config?: string) =>
    chosen(paths, card(`configs:\n- {config_name: one, data_files: ${yaml}}`), config);
  t.strictSame(
    files('"data/c#/a b%20[1]@x.parquet"'),
    { train: [paths[0]] },
    'a name is itself, not a pattern',
  );
  t.strictSame(files('"?.parquet"'), { train: ['?.parquet'] });
  t.strictSame(files('"./data//c#/*"'), { train: [paths[1], paths[0]] });
  t.strictSame(
    files('["q.parquet", "?.parquet", "q.*"]'),
    { train: ['q.parquet', '?.parquet', 'q.parquet'] },
    'in the order of the card',
  );
  t.strictSame(files('[{split: b, path: q.parquet}, {split: a, path: ["?.parquet"]}]'), {
    b: ['q.parquet'],
    a: ['?.parquet'],
  });
  const wrong: readonly (readonly [string, string])[] = [
    ['gone.parquet', 'NOT_FOUND'],
    ['"gone/*"', 'NOT_FOUND'],
    ['[{split: a, path: q.parquet}, {split: b, path: "gone/*"}]', 'NOT_FOUND'],
    ['../../x', 'MALFORMED'],
    ['/abs/*', 'MALFORMED'],
    ['"C:\\\\x"', 'MALFORMED'],
    ['"D:x"', 'MALFORMED'],
    ['"https://h.test/x.parquet"', 'MALFORMED'],
    ['"a**/x"', 'MALFORMED'],
    ['{train: q.parquet}', 'MALFORMED data_files'],
    ['[[q.parquet]]', 'MALFORMED data_files'],
    ['[{split: a}]', 'MALFORMED data_files'],
    ['[{split: a, path: q.parquet, more: 1}]', 'MALFORMED data_files'],
    ['[{split: "../../x", path: q.parquet}]', 'MALFORMED data_files'],
    ['[{split: /abs, path: q.parquet}]', 'MALFORMED data_files'],
    ['[{split: "C:\\\\x", path: q.parquet}]', 'MALFORMED data_files'],
    ['[{split: all, path: q.parquet}]', 'MALFORMED data_files'],
    ['[{split: a, path: q.parquet}, {split: a, path: q.parquet}]', 'MALFORMED data_files'],
  ];
  for (const [yaml, code] of wrong)
    t.equal(
      codeOf(() => files(yaml)),
      code,
      yaml,
    );
  const folder = (dir: string) =>
    chosen(paths, card(`configs:\n- {config_name: one, data_dir: ${dir}}`));
  t.strictSame(folder('d'), { train: ['d/train-00000-of-00001.parquet'] });
  t.strictSame(folder('"data/c#/"'), { train: [paths[1], paths[0]] });
  for (const dir of ['..', '/abs', '"C:\\\\x"', 'D:x', 'a/../..', '7']) {
    t.equal(
      codeOf(() => folder(dir)),
      'MALFORMED data_dir',
      dir,
    );
  }
});

t.test('configs', async (t) => {
  const paths = ['a.parquet', 'b.parquet'];
  const two = card(
    'configs:\n- {config_name: a, data_files: a.parquet}\n- {config_name: b, data_files: b.parquet}',
  );
  t.strictSame(chosen(paths, two, 'b'), { train: ['b.parquet'] });
  for (const config of [
    undefined,
    'nosuch',
    '',
    '../../x',
    '/abs',
    'C:\\x',
    '__proto__',
    'toString',
  ]) {
    t.equal(
      codeOf(() => chosen(paths, two, config)),
      'INVALID_ARGUMENT config',
      String(config),
    );
  }
  t.throws(() => chosen(paths, two), { message: /one of "a", "b"/ });
  t.equal(
    codeOf(() => chosen(paths, noCard, 'a')),
    'INVALID_ARGUMENT config',
  );
  t.strictSame(chosen(paths, noCard, 'default'), { train: paths });
  const twice = card('configs:\n- {config_name: a, default: true}\n- {config_name: default}');
  t.equal(
    codeOf(() => chosen(paths, twice)),
    'MALFORMED',
  );
});

t.test("the hub's Parquet copy", async (t) => {
  const copy = (
    paths: readonly string[],
    config?: string,
    preferred?: string,
    allowPartial = false,
  ) => splitsOf(convertedFilesOf({ name: 'fx/a', paths }, config, { preferred, allowPartial }));
  const paths = [
    'en/test/0000.parquet',
    'en/train/0001.parquet',
    'en/train/0000.parquet',
    'de/x/0000.parquet',
    'x.parquet',
    'en/a/b/c.parquet',
    '.gitattributes',
  ];
  const en = {
    train: ['en/train/0000.parquet', 'en/train/0001.parquet'],
    test: ['en/test/0000.parquet'],
  };
  t.strictSame(copy(paths, 'en'), en);
  t.strictSame(Object.keys(copy(paths, 'en')), ['train', 'test']);
  t.strictSame(copy(paths, undefined, 'en'), en, "the default of the repository's own card");
  t.equal(
    codeOf(() => copy(paths)),
    'INVALID_ARGUMENT config',
  );
  t.equal(
    codeOf(() => copy(paths, 'fr')),
    'INVALID_ARGUMENT config',
  );
  t.strictSame(copy(['only/x/0000.parquet']), { x: ['only/x/0000.parquet'] });
  t.strictSame(copy(['default/x/0000.parquet', 'b/x/0000.parquet']), {
    x: ['default/x/0000.parquet'],
  });
  const partial = ['default/partial-train/0000.parquet'];
  t.throws(() => copy(partial), { code: 'UNSUPPORTED', message: /only a part of split "train"/ });
  t.strictSame(copy(partial, undefined, undefined, true), { 'partial-train': partial });
});

// ---- what Python's client chose ----

const readIf = (file: string): string | undefined =>
  existsSync(file) ? readFileSync(file, 'utf8') : undefined;

const python = { skip: withoutFixtures };

t.test('every case of the fixtures has the splits that Python found', python, async (t) => {
  const fixtures = fixture('converter');
  for (const name of readdirSync(fixtures).filter((one) => !one.includes('.'))) {
    const folder = path.join(fixtures, name);
    const { refs, calls } = readCase(name);
    for (const call of calls) {
      const { config, revision } = call;
      const about = `${name}, config ${config}, revision ${revision}`;
      const ref = refs[revision] ?? Object.values(refs).find(({ commit }) => commit === revision);
      // Revisions and the copy are the client's, and so are other tests'.
      if (ref === undefined || name === 'converted-branch') continue;
      const repo = path.join(folder, ref.folder);
      const paths = readdirSync(repo, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map((entry) =>
          path.relative(repo, path.join(entry.parentPath, entry.name)).split(path.sep).join('/'),
        );
      const choose = () =>
        dataFilesOf(
          { name, paths, card: cardOf(name, { card: readIf(path.join(repo, 'README.md')) }) },
          config ?? undefined,
        );
      const result = call.result ?? calls[call.result_as_call ?? -1]?.result;
      const isAboutFiles =
        /\bconfig\b|BuilderConfig|data_files|splits are|`all`|No task/i.test(
          call.error?.message ?? '',
        ) && call.note?.includes('as good') !== true;
      if (result !== undefined) {
        t.strictSame([...choose().splits.keys()].sort(), Object.keys(result).sort(), about);
      } else if (isAboutFiles) {
        t.not(codeOf(choose), 'done', `${about}: ${call.error?.message}`);
      }
    }
  }
});
