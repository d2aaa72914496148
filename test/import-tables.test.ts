// CSV, JSON lines and Parquet as containers: what pyarrow reads, all items compared; every number kept or refused
// with its file, column and row.
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { LoaderxError } from '../ts/errors.js';
import { misfit, numberOf, type TableDType } from '../ts/importers/cells.js';
import { type ImportOptions, importFiles, surveyFiles } from '../ts/importers/import.js';
import { open } from '../ts/index.js';
import { codeOf, failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

interface Wanted {
  readonly dtype: string;
  readonly shape: readonly number[];
  readonly sha256: string;
}

interface Fixtures {
  readonly csv: string;
  readonly jsonl: string;
  readonly columns: Readonly<Record<'csv' | 'jsonl', Readonly<Record<string, Wanted>>>>;
}

const here = path.join(import.meta.dirname, 'importers');
const fixtures = JSON.parse(readFileSync(path.join(here, 'tables.json'), 'utf8')) as Fixtures;
const scratch = new Scratch(t);
const raw = { codec: 'raw' } as const;

async function held(container: string): Promise<Wanted> {
  await using reader = open(container);
  if (reader.kind !== 'dense') throw new Error('a dense container is wanted');
  const { data, dtype, shape } = await reader.gather(
    Array.from({ length: reader.length }, (_, id) => id),
  );
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { dtype, shape, sha256: createHash('sha256').update(bytes).digest('hex') };
}

function fileOf(name: string, text: string): string {
  const file = scratch.fresh(name);
  writeFileSync(file, text);
  return file;
}

/** The numbers of a container of scalars. */
async function numbersOf(container: string): Promise<readonly (number | bigint)[]> {
  await using reader = open(container);
  const batch = await reader.gather(Array.from({ length: reader.length }, (_, id) => id));
  return 'offsets' in batch ? [] : Array.from<number | bigint>(batch.data as Float64Array);
}

t.test('what pyarrow reads of numbers', async (t) => {
  for (const kind of ['csv', 'jsonl'] as const) {
    const file = fileOf(`x.${kind}`, fixtures[kind]);
    const wanted = fixtures.columns[kind];
    const target = scratch.fresh('out');
    const dtypes = Object.fromEntries(
      Object.entries(wanted).map(([name, { dtype }]) => [name, dtype as TableDType]),
    );
    const survey = await surveyFiles(file, target, { dtypes });
    t.strictSame(beside(target), []);
    const { containers } = await importFiles(file, target, { ...raw, dtypes });
    for (const [name, each] of Object.entries(wanted)) {
      t.strictSame(await held(path.join(target, name)), each, `${kind} ${name}`);
    }
    t.strictSame(
      survey.containers,
      containers.map(({ diskBytes: _, ...rest }) => rest),
      'the dry run told so',
    );
  }
});

t.test('a column is what all of its rows are', async (t) => {
  const csv =
    'whole,wide,mixed,truth\n1,18446744073709551615,1,True\n-2,0,2.5,false\n3,7,-3e2,TRUE\n';
  const target = scratch.fresh('out');
  await importFiles(fileOf('x.csv', csv), target, raw);
  t.strictSame(await numbersOf(path.join(target, 'whole')), [1n, -2n, 3n]);
  t.strictSame(await numbersOf(path.join(target, 'wide')), [18446744073709551615n, 0n, 7n]);
  t.strictSame(await numbersOf(path.join(target, 'mixed')), [1, 2.5, -300]);
  t.strictSame(await numbersOf(path.join(target, 'truth')), [1, 0, 1]);
  const tsv = scratch.fresh('out');
  await importFiles(fileOf('x.tsv', '\ufeffa\tb\n1\t2\n\n3\t4\n'), tsv, { ...raw, columns: ['b'] });
  t.strictSame(await numbersOf(path.join(tsv, 'b')), [2n, 4n]);
});

t.test('a leading zero makes text of a column, unless a dtype is named', async (t) => {
  const rows = ['98765', '00501', '-012', '0', ' 07 ', '1e3'];
  const plain = ['0', '-10', '10', '1', '1', '1'];
  const decimal = ['0.5', '-0.5', '0e1', '0', '1', '1'];
  const lines = rows.map((code, at) => `${code},${plain[at]},${decimal[at]}`);
  const file = fileOf('x.csv', `code,plain,decimal\n${lines.join('\n')}\n`);
  t.match(await failureOf(() => importFiles(file, scratch.fresh(), raw)), {
    code: 'UNSUPPORTED',
    field: 'code',
    message: /x\.csv: column "code" is string \(row 1 has 00501, .*dtypes makes numbers.*utf8/,
  });
  const target = scratch.fresh('out');
  const { containers } = await importFiles(file, target, { ...raw, strings: 'utf8' });
  t.match(containers, [
    { column: 'code', kind: 'ragged', dtype: 'uint8' },
    { column: 'plain', kind: 'dense', dtype: 'int64' },
    { column: 'decimal', kind: 'dense', dtype: 'float64' },
  ]);
  await using codes = open(path.join(target, 'code'));
  const texts = rows.map((_, id) => Buffer.from(codes.record(id).data as Uint8Array).toString());
  t.strictSame(texts, rows, 'to the byte');
  for (const dtypes of [{ code: 'float64' }, { '*': 'float64' }] as const) {
    const numbers = scratch.fresh('out');
    await importFiles(file, numbers, { ...raw, dtypes });
    t.strictSame(await numbersOf(path.join(numbers, 'code')), [98765, 501, -12, 0, 7, 1000]);
  }
});

t.test('lists of JSON are arrays: dense while all have one shape', async (t) => {
  const lines = [
    {
      same: [
        [1, 2],
        [3, 4],
      ],
      other: [1.5],
      words: 'é',
    },
    {
      same: [
        [5, 6],
        [7, 8],
      ],
      other: [2, 3],
      words: 'two',
    },
  ];
  const file = fileOf('x.jsonl', lines.map((line) => JSON.stringify(line)).join('\n'));
  const target = scratch.fresh('out');
  await importFiles(file, target, { ...raw, strings: 'utf8', dtypes: { same: 'uint8' } });
  await using same = open(path.join(target, 'same'));
  t.match(same, { kind: 'dense', dtype: 'uint8', itemShape: [2, 2], length: 2 });
  await using other = open(path.join(target, 'other'));
  t.match(other, { kind: 'ragged', dtype: 'float64', ndim: 1 });
  t.strictSame(Array.from<number | bigint>(other.record(1).data as Float64Array), [2, 3]);
  await using words = open(path.join(target, 'words'));
  t.equal(Buffer.from(words.record(0).data as Uint8Array).toString(), 'é');
});

t.test('refusals name file, column and row', async (t) => {
  const cases: readonly (readonly [string, string, Partial<ImportOptions>, string, RegExp])[] = [
    ['csv', 'a,b\n1,2\n3,\n', {}, 'SOURCE', /column "b", row 1 \(line 3\): is null or empty/],
    [
      'csv',
      'a\n1\nx\n',
      {},
      'SOURCE',
      /column "a", row 1 \(line 3\): is text, and row 0 has a number/,
    ],
    ['csv', 'a,b\n1,2\n3\n', {}, 'MALFORMED', /line 3/],
    ['csv', 'a\n"1\n', {}, 'MALFORMED', /x\.csv: Quote Not Closed.* line 2/],
    ['csv', 'a,b\n1,x"y\n', {}, 'MALFORMED', /x\.csv: Invalid Opening Quote: .* line 2/],
    ['csv', 'a,b\n1,"x"y\n', {}, 'MALFORMED', /x\.csv: Invalid Closing Quote: .* line 2/],
    ['csv', 'a,b\n1,2,3\n', {}, 'MALFORMED', /x\.csv: .* line 2/],
    ['tsv', 'a\tb\n1\tx"y\n', {}, 'MALFORMED', /x\.tsv: Invalid Opening Quote: .* line 2/],
    ['csv', 'a,a\n1,2\n', {}, 'SOURCE', /"a" is there twice/],
    ['csv', '1,2\n3,4\n', {}, 'SOURCE', /names of columns are wanted/],
    ['csv', 'a\n', {}, 'SOURCE', /no rows/],
    ['csv', '', {}, 'SOURCE', /no rows/],
    ['csv', 'a\nx\ny\n', {}, 'UNSUPPORTED', /x\.csv: column "a" is string.*utf8/],
    ['csv', 'a\n1\n300\n', { dtypes: { a: 'uint8' } }, 'SOURCE', /row 1 .*300 is outside of uint8/],
    ['csv', 'a\n1.5\n', { dtypes: { '*': 'int32' } }, 'SOURCE', /1.5 is no whole number/],
    [
      'csv',
      'a\n16777217\n',
      { dtypes: { a: 'float32' } },
      'SOURCE',
      /not kept by float32, which has 16777216/,
    ],
    ['csv', 'a\n0.5\n9007199254740993\n', {}, 'SOURCE', /row 1 .*not kept by float64/],
    ['csv', 'a\n0.1234567890123456789\n', {}, 'SOURCE', /not kept by float64/],
    ['csv', 'a\n1e400\n', {}, 'SOURCE', /outside of float64/],
    ['csv', 'a\n1e-400\n', {}, 'SOURCE', /which has 0/],
    ['csv', 'a\n-1\n18446744073709551615\n', {}, 'SOURCE', /outside of int64/],
    [
      'csv',
      'a,b\n1,2\n',
      { columns: ['c'] },
      'SOURCE',
      /x\.csv: there is no column "c"; there are "a", "b"$/,
    ],
    [
      'csv',
      'a,b\n1,2\n',
      { dtypes: { c: 'int8' } },
      'INVALID_ARGUMENT',
      /"c".* in \S*x\.csv; there are "a", "b"$/,
    ],
    [
      'jsonl',
      '{"x":1}\n{"x":[3,null]}',
      {},
      'SOURCE',
      /"x", row 1 \(line 2\): is a list, and row 0/,
    ],
    ['jsonl', '{"x":[3,null]}', {}, 'SOURCE', /"x", row 0 \(line 1\): has null in a list/],
    ['jsonl', '{"x":[null]}', {}, 'SOURCE', /row 0 \(line 1\): has null in a list/],
    ['jsonl', '{"x":[[1],[null]]}', {}, 'SOURCE', /row 0 \(line 1\): has null in a list/],
    ['jsonl', `{"x":${'['.repeat(5000)}${']'.repeat(5000)}}`, {}, 'SOURCE', /more than 32 levels/],
    ['jsonl', '{"a":"x"}', {}, 'UNSUPPORTED', /x\.jsonl: column "a" is string/],
    ['jsonl', '{"a":1}', { columns: ['c'] }, 'SOURCE', /x\.jsonl: there is no column "c"/],
    ['jsonl', '{"a":1}\n{"a":null}', {}, 'SOURCE', /"a", row 1 \(line 2\): is null/],
    ['jsonl', '{"a":1}\n{}', {}, 'SOURCE', /row 1 \(line 2\): is missing/],
    ['jsonl', '{"a":1}\n{"a":1,"b":2}', {}, 'SOURCE', /"b", row 1 .*first row has not/],
    ['jsonl', '{"a":1}\n{"a":{"value":1,"text":"1"}}', {}, 'SOURCE', /is an object/],
    ['jsonl', '{"a":[1,2]}\n{"a":[]}', {}, 'SOURCE', /row 1 .*empty list/],
    ['jsonl', '{"a":[[1,2],[3]]}', {}, 'SOURCE', /different lengths/],
    ['jsonl', '{"a":[1,[2]]}', {}, 'SOURCE', /lists? of different|something else/],
    ['jsonl', '{"a":["x"]}', {}, 'SOURCE', /something else than numbers/],
    ['jsonl', '{"a":[1]}\n{"a":[[1]]}', {}, 'SOURCE', /one rank/],
    ['jsonl', '{"a":1}\n{"a":1', {}, 'MALFORMED', /line 2: it is no JSON/],
    ['jsonl', '[1]', {}, 'MALFORMED', /line 1: it is no object/],
    ['parquet', 'PAR1 not', {}, 'MALFORMED', /x\.parquet/],
  ];
  for (const [kind, text, options, code, message] of cases) {
    const file = fileOf(`x.${kind}`, text);
    const target = scratch.fresh('out');
    const error = await failureOf(() => importFiles(file, target, { ...raw, ...options }));
    t.equal(error.code, code, text);
    t.match(error.message, message, text);
    t.strictSame(beside(target), [], 'nothing stays behind');
  }
  t.equal(
    await codeOf(() => importFiles(scratch.fresh('no.csv'), scratch.fresh(), raw)),
    'NOT_FOUND',
  );
  const wrong = { dtypes: { a: 'float16' as TableDType } };
  t.equal(
    await codeOf(() =>
      importFiles(fileOf('x.csv', 'a\n1\n'), scratch.fresh(), { ...raw, ...wrong }),
    ),
    'INVALID_ARGUMENT',
  );
});

t.test('whatever JSON says, an error has a code', async (t) => {
  let seed = 7;
  const random = (below: number): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return (seed >>> 8) % below;
  };
  const simple = [null, true, false, 0, -1, 1.5, 1e300, 2 ** 60, 'x', '', -0, {}, { a: null }];
  const value = (depth: number): unknown => {
    if (depth === 0 || random(3) === 0) return simple[random(simple.length)];
    return Array.from({ length: random(4) }, () => value(depth - 1));
  };
  const file = fileOf('x.jsonl', '');
  let made = 0;
  for (let round = 0; round < 2000; round += 1) {
    const rows = Array.from({ length: 1 + random(2) }, () => ({ x: value(random(4)) }));
    writeFileSync(file, rows.map((row) => JSON.stringify(row)).join('\n'));
    try {
      await surveyFiles(file, 'out', { strings: 'utf8' });
      made += 1;
    } catch (error) {
      if (error instanceof LoaderxError) continue;
      t.fail(`${JSON.stringify(rows)}: ${error}`);
    }
  }
  t.ok(made > 100, 'some are columns');
});

t.test('numbers as programs print them are kept', async (t) => {
  const kept = (text: string, dtype: TableDType): string | undefined =>
    misfit(numberOf(text) ?? null, dtype);
  // A whole number is held to all of its digits, and JavaScript fills some up with zeros.
  const doubleKept = (value: number): boolean =>
    kept(/^-?\d+$/.test(String(value)) ? `${value}e0` : String(value), 'float64') === undefined;
  let seed = 1;
  const random = (): number => {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    return seed;
  };
  const words = new Uint32Array(2);
  const double = new Float64Array(words.buffer);
  const single = new Float32Array(words.buffer);
  let wrong = 0;
  for (let round = 0; round < 20_000; round += 1) {
    words.set([random(), random()]);
    if (Number.isFinite(double[0]) && !doubleKept(double[0] ?? 0)) wrong += 1;
    const float = single[0] ?? 0;
    if (!Number.isFinite(float) || float === 0) continue;
    if (
      kept(String(float), 'float32') !== undefined &&
      kept(float.toPrecision(9), 'float32') !== undefined
    ) {
      wrong += 1;
    }
  }
  for (let power = -1074; power < 1024; power += 1) {
    if (!doubleKept(2 ** power)) wrong += 1;
  }
  t.equal(wrong, 0);
  for (const [text, dtype] of [
    ['0.1', 'float32'],
    ['3.0', 'int8'],
    ['1e3', 'int16'],
    ['1e22', 'float64'],
    ['NaN', 'float32'],
    ['-inf', 'float64'],
    ['9007199254740993', 'int64'],
    ['+5', 'uint8'],
  ] as const) {
    t.equal(kept(text, dtype), undefined, text);
  }
  for (const [text, dtype] of [
    ['0.123456789', 'float32'],
    ['-0', 'int8'],
    ['nan', 'int8'],
    ['9007199254740993', 'float64'],
    ['2', 'bool'],
    ['-1', 'uint64'],
  ] as const) {
    t.type(kept(text, dtype), 'string', text);
  }
});

t.test('columns of a Parquet file', async (t) => {
  const files = JSON.parse(
    readFileSync(path.join(import.meta.dirname, 'parquet', 'files.json'), 'utf8'),
  ) as readonly { readonly rows: number; readonly parquet: string }[];
  const [first] = files;
  const file = scratch.fresh('x.parquet');
  writeFileSync(file, Buffer.from(first?.parquet ?? '', 'base64'));
  const { containers } = await importFiles(file, scratch.fresh('out'), {
    codec: 'zstd',
    strings: 'utf8',
  });
  t.ok(containers.length > 3);
  for (const { records } of containers) t.equal(records, first?.rows);
});
