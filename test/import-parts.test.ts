// Parts of imports: for every kind of file all parts together are the whole, whatever their number.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { exportNpz } from '../ts/exporters/npy.js';
import { exportParquet } from '../ts/exporters/parquet.js';
import {
  type ImportOptions,
  type ImportSources,
  importFiles,
  surveyFiles,
} from '../ts/importers/import.js';
import { npyHeader } from '../ts/importers/npy-header.js';
import { concat, Dense, logicalDigest, ndarray, open, partName, Ragged } from '../ts/index.js';
import { encodePng } from '../ts/inspect/png.js';
import { bytesOf } from './support/hub.js';
import { codeOf, failureOf } from './support/outcome.js';
import { Scratch } from './support/scratch.js';
import { tarOf } from './support/tar.mjs';

const scratch = new Scratch(t);
const raw = { codec: 'raw' } as const;
const count = 130;

async function digestOf(containers: readonly string[]): Promise<string> {
  await using reader = concat(containers.map((container) => open(container)));
  return await logicalDigest(reader);
}

function npy(fortran: boolean): Buffer {
  const header = Buffer.from(npyHeader('int16', [count, 3, 2]));
  if (fortran) header.write('True, ', header.indexOf('False,'), 'latin1');
  return Buffer.concat([header, bytesOf(count * 12, 3)]);
}

function written(name: string, bytes: Uint8Array | string): string {
  const file = scratch.fresh(name);
  writeFileSync(file, bytes);
  return file;
}

async function raggedContainer(): Promise<string> {
  const container = path.join(scratch.folder(), 'words');
  const writer = Ragged.create(container, { ...raw, dtype: 'int32', ndim: 1 });
  await writer.append(
    Array.from({ length: count }, (_, at) =>
      ndarray('int32', [1 + (at % 4)], new Int32Array(1 + (at % 4)).fill(at)),
    ),
  );
  await writer.close();
  return container;
}

function pictures(): string {
  const folder = scratch.folder();
  for (let at = 0; at < count; at += 1) {
    const place = path.join(folder, `class-${at % 3}`);
    mkdirSync(place, { recursive: true });
    writeFileSync(
      path.join(place, `${at}.png`),
      encodePng(3 + (at % 2), 2, 1, bytesOf(8, at).subarray(0, (3 + (at % 2)) * 2)),
    );
  }
  return folder;
}

interface Kind {
  readonly name: string;
  readonly sources: ImportSources;
  readonly columns: readonly string[];
  readonly options?: Partial<ImportOptions>;
}

async function kinds(): Promise<readonly Kind[]> {
  const container = await raggedContainer();
  const npz = scratch.fresh('a.npz');
  await exportNpz(container, npz);
  const parquet = scratch.fresh('a.parquet');
  await exportParquet(container, parquet);
  const lines = Array.from({ length: count }, (_, at) => at);
  const samples = lines.map((at) => ({ name: `${at}.cls`, bytes: String(at) }));
  return [
    { name: 'npy', sources: written('a.npy', npy(false)), columns: [''] },
    { name: 'npy of Fortran', sources: written('a.npy', npy(true)), columns: [''] },
    {
      name: 'two arrays',
      sources: { x: written('a.npy', npy(false)), y: written('b.npy', npy(true)) },
      columns: ['x', 'y'],
    },
    { name: 'npz', sources: npz, columns: ['words'] },
    { name: 'parquet', sources: parquet, columns: ['words'] },
    {
      name: 'csv',
      sources: written('a.csv', ['id,price', ...lines.map((at) => `${at},${at / 8}`)].join('\n')),
      columns: ['id', 'price'],
    },
    {
      name: 'jsonl',
      sources: written(
        'a.jsonl',
        lines.map((at) => JSON.stringify({ a: [at, at + 1] })).join('\n'),
      ),
      columns: ['a'],
    },
    {
      name: 'text',
      sources: written('a.txt', lines.map((at) => `line ${at}\n\n`).join('')),
      columns: [''],
      options: { strings: 'utf8' },
    },
    {
      name: 'tokens',
      sources: written('a.txt', lines.map((at) => `line ${at}\n`).join('')),
      columns: [''],
      options: { tokenizer: { encode: (text) => Array.from(text, (sign) => sign.charCodeAt(0)) } },
    },
    {
      name: 'pictures',
      sources: pictures(),
      columns: ['image', 'label'],
      options: { pictures: 'ragged' },
    },
    {
      name: 'pictures of a size',
      sources: pictures(),
      columns: ['image', 'label'],
      options: { size: [2, 2], mode: 'L' },
    },
    { name: 'tar', sources: written('a.tar', tarOf(samples)), columns: ['cls'] },
  ];
}

t.test('parts are the whole', async (t) => {
  for (const { name, sources, columns, options } of await kinds()) {
    const whole = scratch.fresh('whole');
    await importFiles(sources, whole, { ...raw, ...options });
    for (const of of [1, 2, 7, 64]) {
      const target = scratch.fresh('parts');
      const places: string[] = [];
      for (let part = 0; part < of; part += 1) {
        const made = await importFiles(sources, target, { ...raw, ...options, part: { part, of } });
        t.equal(made.path, path.join(target, partName({ part, of })));
        places.push(made.path);
      }
      for (const column of columns) {
        const parts = places.map((place) => path.join(place, column));
        const wanted = await digestOf([path.join(whole, column)]);
        t.equal(await digestOf(parts), wanted, `${name}: ${column} of ${of}`);
      }
    }
  }
});

t.test('ragged and dense arrays of one npz, part by part', async (t) => {
  const rows = 5000;
  const folder = scratch.folder();
  const text = Ragged.create(path.join(folder, 'text'), { ...raw, dtype: 'uint8', ndim: 2 });
  await text.append(
    Array.from({ length: rows }, (_, at) => {
      const shape = [1 + (at % 3), 1 + (at % 5)] as const;
      return ndarray('uint8', shape, bytesOf(shape[0] * shape[1], at));
    }),
  );
  await text.close();
  const label = Dense.create(path.join(folder, 'label'), { ...raw, dtype: 'int32', itemShape: [] });
  const numbers = Int32Array.from({ length: rows }, (_, at) => at);
  await label.append(ndarray('int32', [rows], numbers));
  await label.close();
  const npz = scratch.fresh('both.npz');
  await exportNpz(folder, npz);
  for (const of of [2, 3]) {
    const target = scratch.fresh('parts');
    const places: string[] = [];
    for (let part = 0; part < of; part += 1) {
      const { path: place } = await importFiles(npz, target, { ...raw, part: { part, of } });
      const told = await surveyFiles(npz, target, { part: { part, of } });
      t.equal(told.path, place);
      for (const { column, records } of told.containers) {
        await using reader = open(path.join(place, column));
        t.equal(records, reader.length, `dry run: ${column} of part ${part} of ${of}`);
      }
      places.push(place);
    }
    for (const column of ['text', 'label']) {
      const wanted = await digestOf([path.join(folder, column)]);
      t.equal(await digestOf(places.map((place) => path.join(place, column))), wanted);
    }
  }
});

t.test('a dry run tells of the part alone', async (t) => {
  const file = written('a.csv', 'id,word\n1,a\n2,b\n3,c\n4,d\n5,e\n');
  const target = path.join(scratch.folder(), 'pc');
  for (const [part, records, bytes] of [
    [0, 2, 2],
    [1, 3, 3],
  ] as const) {
    const told = await surveyFiles(file, pathToFileURL(target), {
      strings: 'utf8',
      part: { part, of: 2 },
    });
    t.match(told, { path: path.join(target, partName({ part, of: 2 })) });
    t.match(told.containers, [{ records }, { column: 'word', records, itemBytes: bytes }]);
  }
});

t.test('what is there of a part has the columns that are wanted', async (t) => {
  const file = written('a.csv', 'id,price\n1,2\n3,4\n');
  const target = scratch.fresh('parts');
  const part = { part: 0, of: 2 };
  await importFiles(file, pathToFileURL(target), { ...raw, part, columns: ['id'] });
  t.match(await failureOf(() => importFiles(file, target, { ...raw, part })), {
    code: 'EXISTS',
    message: /part-00000-of-00002.*other columns \("id"\), and "id", "price" are wanted: remove it/,
  });
  t.match(await importFiles(file, target, { ...raw, part, columns: ['id'] }), { wasThere: true });
  const single = scratch.fresh('parts');
  await importFiles(written('a.npy', npy(false)), single, { ...raw, part });
  t.equal(await codeOf(() => importFiles(file, single, { ...raw, part })), 'EXISTS');
  t.equal(
    await codeOf(() => importFiles(written('a.npy', npy(false)), target, { ...raw, part })),
    'EXISTS',
  );
});

t.test('a part is made once, and all have one dictionary', async (t) => {
  const file = written('a.npy', npy(false));
  const target = scratch.fresh('parts');
  const options = { codec: 'zstd_dict', part: { part: 1, of: 4 } } as const;
  const first = await importFiles(file, target, options);
  const again = await importFiles(file, target, options);
  t.match(again, { ...first, wasThere: true });
  const last = await importFiles(file, target, { ...options, part: { part: 3, of: 4 } });
  const dicts = [first, last].map((each) => readFileSync(path.join(each.path, 'dict.zr')));
  t.ok(dicts[0]?.equals(dicts[1] ?? Buffer.alloc(0)));
  for (const index of [0, count]) {
    const many = { part: { part: index, of: count + 1 } };
    const few = { code: 'SOURCE', message: /130 rows, too few for 131 parts/ };
    t.match(await failureOf(() => importFiles(file, target, { ...raw, ...many })), few);
    t.match(await failureOf(() => surveyFiles(file, target, many)), few);
  }
  const none = { ...raw, part: { part: 4, of: 4 } };
  t.equal(await codeOf(() => importFiles(file, target, none)), 'INVALID_ARGUMENT');
  const wrong = { ...raw, pictures: 'dense' } as never;
  t.equal(await codeOf(() => importFiles(file, target, wrong)), 'INVALID_ARGUMENT');
});
