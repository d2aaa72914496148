// Options that have nothing to be for are refused, for every kind of file; those that have are taken.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { exportNpz } from '../ts/exporters/npy.js';
import { exportParquet } from '../ts/exporters/parquet.js';
import {
  type ImportFormat,
  importFiles,
  importFormats,
  type ReadOptions,
  surveyFiles,
} from '../ts/importers/import.js';
import { npyHeader } from '../ts/importers/npy-header.js';
import { Dense, ndarray } from '../ts/index.js';
import { encodePng } from '../ts/inspect/png.js';
import { told } from './support/command.js';
import { failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';
import { tarOf } from './support/tar.mjs';

const scratch = new Scratch(t);
const png = encodePng(4, 3, 3, new Uint8Array(36).fill(9));

function written(name: string, bytes: Uint8Array | string): string {
  const file = scratch.fresh(name);
  writeFileSync(file, bytes);
  return file;
}

function npy(): Buffer {
  return Buffer.concat([npyHeader('uint8', [2]), Buffer.from([1, 2])]);
}

async function npz(): Promise<string> {
  const file = scratch.fresh('x.npz');
  await exportNpz(await container(), file);
  return file;
}

async function container(): Promise<string> {
  const target = path.join(scratch.folder(), 'a');
  const writer = Dense.create(target, { codec: 'raw', dtype: 'uint8', itemShape: [] });
  await writer.append(ndarray('uint8', [2], Uint8Array.of(1, 2)));
  await writer.close();
  return target;
}

async function parquet(): Promise<string> {
  const file = scratch.fresh('x.parquet');
  await exportParquet(await container(), file);
  return file;
}

function folder(): string {
  const made = scratch.fresh('pictures');
  mkdirSync(made);
  writeFileSync(path.join(made, '0.png'), png);
  return made;
}

type Option = 'dtypes' | 'size' | 'layout' | 'mode' | 'pictures';

const values: Readonly<Record<Option, ReadOptions>> = {
  dtypes: { dtypes: { '*': 'int32' } },
  size: { size: [2, 2] },
  layout: { layout: 'HWC' },
  mode: { mode: 'RGB' },
  pictures: { pictures: 'ragged' },
};
const all = Object.keys(values) as readonly Option[];
const ofPictures = all.filter((name) => name !== 'dtypes');

t.test('an option is for some kinds of files, and refused with the others', async (t) => {
  const kinds: readonly (readonly [ImportFormat, string, readonly Option[]])[] = [
    ['npy', written('x.npy', npy()), []],
    ['npz', await npz(), []],
    ['csv', written('x.csv', 'a\n1\n'), ['dtypes']],
    ['tsv', written('x.tsv', 'a\tb\n1\t2\n'), ['dtypes']],
    ['jsonl', written('x.jsonl', '{"a":1}\n'), ['dtypes']],
    ['parquet', await parquet(), []],
    ['text', written('x.txt', 'one\n'), []],
    ['images', folder(), ofPictures],
    ['webdataset', written('x.tar', tarOf([{ name: 'a.png', bytes: png }])), ofPictures],
    ['webdataset', written('n.tar', tarOf([{ name: 'a.cls', bytes: '1' }])), []],
  ];
  t.strictSame([...new Set(kinds.map(([kind]) => kind))].sort(), [...importFormats].sort());
  for (const [kind, file, taken] of kinds) {
    for (const name of all) {
      const target = scratch.fresh('out');
      const options: ReadOptions = { strings: 'utf8', ...values[name] };
      const what = `${kind} ${name}`;
      if (taken.includes(name)) {
        await t.resolves(surveyFiles(file, target, options), what);
        continue;
      }
      const error = await failureOf(() => importFiles(file, target, { ...options, codec: 'raw' }));
      t.match(error, { code: 'INVALID_ARGUMENT', field: name }, what);
      t.ok(error.message.startsWith(`${name} is for `), what);
      t.ok(error.message.includes(`${file} is ${kind}`), what);
      t.strictSame(beside(target), []);
    }
  }
});

t.test('of several files one is enough, if the column is its own', async (t) => {
  const sources = [written('x.csv', 'b\n1\n2\n'), written('x.npy', npy())];
  await t.resolves(surveyFiles(sources, 'out', { dtypes: { b: 'int8' } }));
  t.match(await failureOf(() => surveyFiles(sources, 'out', { dtypes: { x: 'int8' } })), {
    code: 'INVALID_ARGUMENT',
    field: 'dtypes',
    message: /column "x" is of another file/,
  });
});

t.test('two options that cannot both be', async (t) => {
  const text = written('x.txt', 'one\n');
  const tokenizer = { encode: () => [1] };
  t.match(await failureOf(() => surveyFiles(text, 'out', { strings: 'utf8', tokenizer })), {
    code: 'INVALID_ARGUMENT',
    field: 'strings',
  });
  await t.resolves(surveyFiles(text, 'out', { strings: 'refuse', tokenizer }));
  const both = { size: [2, 2], pictures: 'ragged' } as const;
  t.match(await failureOf(() => surveyFiles(folder(), 'out', both)), {
    code: 'INVALID_ARGUMENT',
    field: 'pictures',
  });
  const table = written('x.csv', 'a,b\n1,one\n');
  const rows = { strings: 'utf8', dtypes: { b: 'int8' } } as const;
  t.match(await failureOf(() => surveyFiles(table, 'out', rows)), {
    code: 'SOURCE',
    field: 'b',
    message: /x\.csv: column "b", row 0: is text, and dtypes says int8/,
  });
  await t.resolves(surveyFiles(table, 'out', { strings: 'utf8', dtypes: { '*': 'int8' } }));
});

t.test('the command line says it in its own words', async (t) => {
  const array = written('x.npy', npy());
  const pictures = folder();
  for (const [args, message] of [
    [[array, 'out', '--dtypes', 'a=int8'], `--dtypes is for CSV, TSV and JSON lines, and ${array}`],
    [[array, 'out', '--size', '2'], '--size is for folders of pictures and tar archives'],
    [[array, 'out', '--layout', 'HWC'], '--layout is for folders of pictures'],
    [[array, 'out', '--mode', 'L'], '--mode is for folders of pictures'],
    [[array, 'out', '--pictures', 'ragged'], '--pictures is for pictures'],
    [[pictures, 'out', '--layout', 'CHW'], '--layout CHW is for pictures of a size'],
    [[pictures, 'out', '--pictures', 'ragged', '--size', '2'], '--pictures ragged is for'],
    [[array, 'out', '--strings', 'utf8', '--tokenizer', 'x'], '--strings keeps the bytes of text'],
    [[pictures, 'out', '--mode', 'CMYK'], '--mode is L, RGB or RGBA, got "CMYK"'],
    [[pictures, 'out', '--mode', 'CMYK', '--size', '2'], '--mode is L, RGB or RGBA'],
  ] as const) {
    const { code, out, err } = await told('import', ...args, '--codec', 'raw');
    t.match({ code, out }, { code: 2, out: '' });
    t.ok(err.startsWith(`loaderx import: ${message}`), err);
  }
});
