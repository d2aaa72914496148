// The file of a set: made, opened by everything that opens a container, refused in each kind of fault, and
// merged into one container.
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { Worker } from 'node:worker_threads';
import t, { type Test } from 'tap';

import {
  Concat,
  type CreateOptions,
  containersAt,
  Dense,
  type DenseBatch,
  diff,
  digest,
  head,
  info,
  makeSet,
  merge,
  type NdArray,
  ndarray,
  open,
  Ragged,
  recode,
  trainDict,
  verify,
} from '../ts/index.js';
import { told } from './support/command.js';
import { codeOf, failureOf } from './support/outcome.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

function record(id: number): NdArray<'uint16'> {
  const length = 1 + (id % 13);
  return ndarray(
    'uint16',
    [length],
    Uint16Array.from({ length }, (_, at) => id * 3 + at),
  );
}

function rows(first: number, count: number): NdArray<'uint8'> {
  const data = Uint8Array.from({ length: count * 6 }, (_, at) => (first * 6 + at) % 251);
  return ndarray('uint8', [count, 2, 3], data);
}

const forms: readonly CreateOptions[] = [
  { codec: 'raw', dataShards: 1 },
  { codec: 'zstd', dataShards: 3, dialect: '2.8' },
  { codec: 'raw', dataShards: 2 },
];

/** The parts of `total` records, as `part-00000-of-0000n` with a `dense` and a `ragged` container each. */
async function makeParts(folder: string, total: number, of: number): Promise<void> {
  for (let part = 0; part < of; part += 1) {
    const first = Math.floor((part * total) / of);
    const count = Math.floor(((part + 1) * total) / of) - first;
    const root = path.join(folder, partFolder(part, of));
    const form = forms[part % forms.length] as CreateOptions;
    const dense = Dense.create(path.join(root, 'dense'), {
      ...form,
      ...{ dtype: 'uint8', itemShape: [2, 3] },
    });
    const ragged = Ragged.create(path.join(root, 'ragged'), { ...form, dtype: 'uint16', ndim: 1 });
    if (count > 0) {
      await dense.append(rows(first, count));
      await ragged.append(Array.from({ length: count }, (_, at) => record(first + at)));
    }
    await dense.close({ integrity: part % 2 === 0 });
    await ragged.close();
  }
}

function partFolder(part: number, of: number): string {
  const digits = (value: number): string => String(value).padStart(5, '0');
  return `part-${digits(part)}-of-${digits(of)}`;
}

function put(target: object, key: string | number, value: unknown): void {
  Reflect.set(target, key, value);
}

function partsOf(folder: string, name: string): string[] {
  return readdirSync(folder)
    .filter((entry) => entry.startsWith('part-'))
    .sort()
    .map((entry) => path.join(folder, entry, name));
}

async function wholes(folder: string, total: number): Promise<{ dense: string; ragged: string }> {
  const dense = path.join(folder, 'whole-dense');
  const ragged = path.join(folder, 'whole-ragged');
  const one = Dense.create(dense, { codec: 'zstd', dtype: 'uint8', itemShape: [2, 3] });
  await one.append(rows(0, total));
  await one.close();
  const other = Ragged.create(ragged, { codec: 'raw', dtype: 'uint16', ndim: 1 });
  await other.append(Array.from({ length: total }, (_, id) => record(id)));
  await other.close();
  return { dense, ragged };
}

const total = 500;

for (const of of [1, 2, 7, 64]) {
  t.test(`${of} parts hold what one build holds, however they are looked at`, async (t) => {
    const folder = scratch.folder();
    await makeParts(folder, total, of);
    const whole = await wholes(folder, total);
    for (const kind of ['dense', 'ragged'] as const) {
      const file = path.join(folder, `${kind}.json`);
      const made = await makeSet(partsOf(folder, kind), file);
      t.match(made, { path: file, records: total });
      t.equal(made.parts.length, of);
      t.same(JSON.parse(readFileSync(file, 'utf8')).parts, made.parts);
      const expected = (await digest(whole[kind], { dryRun: true })).logicalDigest;
      t.equal((await digest(file)).logicalDigest, expected, 'the digest of the whole');
      t.match(await diff(file, whole[kind]), { equal: true, compared: total });
      t.match(await verify(file), { ok: true, faultCount: 0, records: total, faults: [] });
      const about = await info(file);
      const known = await info(whole[kind]);
      t.match(about, { kind, records: total, logicalBytes: known.logicalBytes });
      t.equal(about.parts?.length, of);
      if (kind === 'ragged')
        t.same(about.lengths, known.lengths, 'two dialects, one count of items');
      t.same(
        (await head(file, { count: 3 })).records,
        (await head(whole[kind], { count: 3 })).records,
      );
      await recode(file, path.join(folder, `${kind}-recoded`), { codec: 'zstd', dataShards: 2 });
      t.match(await diff(path.join(folder, `${kind}-recoded`), whole[kind]), { equal: true });
      await merge(partsOf(folder, kind), path.join(folder, `${kind}-merged`), { codec: 'raw' });
      const merged = await digest(path.join(folder, `${kind}-merged`));
      t.equal(merged.logicalDigest, expected, 'the digest of the merged one');
      for (const reader of [open(file), Concat.open(file)]) {
        t.equal(reader.length, total);
        await reader.close();
      }
    }
    const dense = Dense.open(path.join(folder, 'dense.json'), {
      dtype: 'uint8',
      itemShape: [2, 3],
    });
    t.same(dense.gatherSync([0, total - 1, 77]).data, [
      ...rows(0, 1).data,
      ...rows(total - 1, 1).data,
      ...rows(77, 1).data,
    ]);
    await dense.close();
    t.equal(
      await codeOf(() => Dense.open(path.join(folder, 'dense.json'), { dtype: 'int8' })),
      'SCHEMA',
    );
    t.equal(await codeOf(() => Ragged.open(path.join(folder, 'dense.json'))), 'SCHEMA');
  });
}

t.test('the folder of a set moves as a whole, and workers open it', async (t) => {
  const folder = scratch.folder();
  await makeParts(path.join(folder, 'a'), 100, 3);
  await makeSet(partsOf(path.join(folder, 'a'), 'dense'), path.join(folder, 'a', 'set.json'), {
    durable: true,
  });
  renameSync(path.join(folder, 'a'), path.join(folder, 'b'));
  const file = path.join(folder, 'b', 'set.json');
  const set = Concat.open(file);
  t.equal(set.length, 100);
  await set.close();
  const worker = new Worker(new URL('support/set-worker.mjs', import.meta.url), {
    workerData: { file, ids: [0, 99, 34] },
  });
  const data = await new Promise((resolve, reject) => {
    worker.once('message', resolve).once('error', reject);
  });
  t.same(data, [...rows(0, 1).data, ...rows(99, 1).data, ...rows(34, 1).data]);
  await worker.terminate();
  t.same(
    readdirSync(path.join(folder, 'b')).filter((name) => name.startsWith('.')),
    [],
    'nothing is left beside it',
  );
});

t.test('a set with integrity files is held to them and to its own digests', async (t) => {
  const folder = scratch.folder();
  await makeParts(folder, 100, 2);
  const parts = partsOf(folder, 'dense');
  for (const part of parts) await digest(part);
  const file = path.join(folder, 'set.json');
  await makeSet(parts, file);
  const set = Concat.open(file, { verify: 'digest' });
  t.equal(((await set.slice(0, 2)) as DenseBatch).shape[0], 2);
  await set.close();
  t.match(await verify(file), { ok: true, integrity: 'checked' });
  // Another container of the same form and length, sound by itself.
  const second = parts[1] ?? '';
  rmSync(second, { recursive: true });
  const other = Dense.create(second, { codec: 'raw', dtype: 'uint8', itemShape: [2, 3] });
  other.appendSync(rows(1, 50));
  await other.close({ integrity: true });
  t.match(await failureOf(() => Concat.open(file, { verify: 'digest' })), {
    code: 'INTEGRITY',
    path: second,
  });
  const report = await verify(file);
  t.match(report, { ok: false, faultCount: 1 });
  t.match(report.faults[0], {
    code: 'INTEGRITY',
    field: 'logicalDigest',
    part: path.relative(folder, second),
  });
});

t.test('damage in a part is told of the part', async (t) => {
  const folder = scratch.folder();
  await makeParts(folder, 100, 3);
  const file = path.join(folder, 'set.json');
  const parts = partsOf(folder, 'dense');
  await makeSet(parts, file);
  truncateSync(path.join(parts[2] ?? '', 'data_0.zr'), 7);
  t.match(await failureOf(() => open(file)), { code: 'MALFORMED', path: parts[2], shard: 0 });
  const report = await verify(file);
  t.match(report, { ok: false, records: undefined });
  t.match(report.faults[0], { code: 'MALFORMED', file: 'data_0.zr' });
  t.equal(report.faults[0]?.part, path.relative(folder, parts[2] ?? ''));
  t.same(
    report.parts?.map(({ ok }) => ok),
    [true, true, false],
  );
  rmSync(parts[1] ?? '', { recursive: true });
  t.match(await failureOf(() => open(file)), { code: 'NOT_FOUND', path: parts[1] });
  const without = await verify(file);
  t.match(without.faults[0], { code: 'NOT_FOUND', part: path.relative(folder, parts[1] ?? '') });
});

t.test('parts that are not what they should be make no set', async (t) => {
  const folder = scratch.folder();
  await makeParts(folder, 100, 4);
  const parts = partsOf(folder, 'dense');
  const [a = '', b = '', c = '', d = ''] = parts;
  const file = path.join(folder, 'set.json');
  const refused = async (t: Test, given: unknown, expected: object): Promise<void> => {
    t.match(await failureOf(() => makeSet(given as string[], file)), expected);
    t.notOk(existsSync(file), 'and nothing is written');
  };
  const wrong = { code: 'INVALID_ARGUMENT', field: 'parts' };
  await refused(t, [], wrong);
  await refused(t, 'text', wrong);
  await refused(t, [a, b, d], { ...wrong, message: /in the place of part 2 of 4/ });
  await refused(t, [a, b, c], { ...wrong, message: /parts 3 to 3 of 4 are missing/ });
  await refused(t, [b, a, c, d], {
    ...wrong,
    message: /in the place of part 0 of 4, counted from 0/,
  });
  await refused(t, [a, b, c, d, path.join(folder, partFolder(1, 4), 'ragged')], {
    ...wrong,
    message: /one too many: there are 4 parts, 0 to 3/,
  });
  await refused(t, [a, b, b, d], { ...wrong, message: /is the same container as parts\[1\]/ });
  symlinkSync(a, path.join(folder, 'link'));
  await refused(t, [a, path.join(folder, 'link')], { ...wrong, message: /same container/ });
  await refused(t, [...parts.slice(0, 3), partsOf(folder, 'ragged')[3]], {
    ...{ code: 'SCHEMA', field: 'kind' },
  });
  cpSync(d, path.join(folder, 'plain'), { recursive: true });
  await refused(t, [a, b, c, path.join(folder, 'plain')], { ...wrong, message: /has no number/ });
  cpSync(a, path.join(folder, partFolder(0, 9), 'dense'), { recursive: true });
  await refused(t, [a, path.join(folder, partFolder(0, 9), 'dense')], {
    ...{ ...wrong, message: /one of 9 parts/ },
  });
  const below = path.join(folder, 'below', 'set.json');
  mkdirSync(path.join(folder, 'below'));
  t.match(await failureOf(() => makeSet(parts, below)), {
    ...wrong,
    message: /not below the folder/,
  });
  await refused(t, [...parts.slice(0, 3), path.join(folder, partFolder(3, 4), 'none')], {
    code: 'NOT_FOUND',
  });
  const inside = await failureOf(() => makeSet([a], path.join(a, 'set.json')));
  t.match(inside, { code: 'INVALID_ARGUMENT', field: 'path' });
  await makeSet(parts, file);
  t.match(await failureOf(() => makeSet(parts, file)), { code: 'EXISTS', path: file });
  // A set stands for its parts.
  const again = await makeSet([file], path.join(folder, 'again.json'));
  t.equal(again.parts.length, 4);
});

t.test('each kind of fault in the file is refused, and nothing is opened', async (t) => {
  const folder = scratch.folder();
  await makeParts(folder, 100, 2);
  const file = path.join(folder, 'set.json');
  await makeSet(partsOf(folder, 'dense'), file);
  const text = readFileSync(file, 'utf8');
  type Json = Record<string, unknown> & { parts: Record<string, unknown>[] };
  const edited = (edit: (json: Json) => unknown): string => {
    const json = JSON.parse(text) as Json;
    const result = edit(json);
    return JSON.stringify(result === undefined ? json : result);
  };
  const part = (edit: (part: Record<string, unknown>) => void): string =>
    edited(({ parts }) => edit(parts[1] as Record<string, unknown>));
  const cases: readonly (readonly [string, string | Buffer, string | undefined])[] = [
    ['cut', text.slice(0, -30), undefined],
    ['not UTF-8', Buffer.concat([Buffer.from(text), Buffer.from([0xff])]), undefined],
    ['something behind it', `${text}x`, undefined],
    ['an array in an object', '{"parts": 1}', 'the file'],
    ['another format', edited((json) => put(json, 'format', 'loaderx set 2')), 'format'],
    ['no format', edited((json) => void Reflect.deleteProperty(json, 'format')), 'the file'],
    ['a field too much', edited((json) => put(json, 'more', 1)), 'the file'],
    ['a prototype', text.replace('"kind"', '"__proto__": {"kind": "dense"}, "kind"'), 'the file'],
    [
      'fields of a prototype',
      edited(({ kind: _, ...json }) => json).replace('{', '{"__proto__":{"kind":"dense"},'),
      'the file',
    ],
    ['another kind', edited((json) => put(json, 'kind', 'both')), 'kind'],
    ['both shapes', edited((json) => put(json, 'ndim', 1)), 'kind'],
    ['no dtype', edited((json) => put(json, 'dtype', 'uint7')), 'dtype'],
    ['a dtype of an object', edited((json) => put(json, 'dtype', {})), 'dtype'],
    ['a shape that is none', edited((json) => put(json, 'itemShape', 'x')), 'itemShape'],
    [
      'too many dimensions',
      edited((json) => put(json, 'itemShape', Array(64).fill(1))),
      'itemShape',
    ],
    ['a size of 0', edited((json) => put(json, 'itemShape', [0])), 'itemShape[0]'],
    ['a length of text', edited((json) => put(json, 'length', '100')), 'length'],
    ['another sum', edited((json) => put(json, 'length', 99)), 'length'],
    ['no parts', edited((json) => put(json, 'parts', [])), 'parts'],
    ['parts of no list', edited((json) => put(json, 'parts', {} as never)), 'parts'],
    ['a part that is none', edited((json) => put(json.parts, 1, null)), 'parts[1]'],
    ['a field of a part', part((each) => put(each, 'more', 1)), 'parts[1]'],
    ['a length below 0', part((each) => put(each, 'length', -1)), 'parts[1].length'],
    ['a length with a half', part((each) => put(each, 'length', 1.5)), 'parts[1].length'],
    ['a length too large', part((each) => put(each, 'length', 2 ** 53)), 'parts[1].length'],
    ['a sum too large', part((each) => put(each, 'length', 2 ** 53 - 1)), 'length'],
    [
      'a part twice',
      edited(({ parts }) => put(parts[1] as object, 'path', parts[0]?.path)),
      'parts[1].path',
    ],
    ['no digest', part((each) => put(each, 'logicalDigest', 'x')), 'parts[1].logicalDigest'],
    ...[
      '',
      '/etc',
      '../out',
      'a/../../b',
      './a',
      'a//b',
      'a\\b',
      'C:/x',
      'a\0b',
      '\ud800',
      'x'.repeat(5000),
    ].map(
      (name) =>
        [
          `the path ${JSON.stringify(name.slice(0, 20))}`,
          part((each) => put(each, 'path', name)),
          'parts[1].path',
        ] as const,
    ),
    ['a path of a number', part((each) => put(each, 'path', 1)), 'parts[1].path'],
  ];
  for (const [name, content, field] of cases) {
    writeFileSync(file, content);
    const failure = await failureOf(() => open(file));
    t.match(
      failure,
      { code: 'MALFORMED', path: file, ...(field === undefined ? {} : { field }) },
      name,
    );
    t.equal(await codeOf(() => Concat.open(file)), 'MALFORMED');
    const report = await verify(file);
    t.match(report, { ok: false, faultCount: 1 });
    t.match(report.faults[0], { code: 'MALFORMED' });
  }
  const manyParts = edited((json) => {
    json.parts = Array.from({ length: 65_537 }, (_, at) => ({ ...json.parts[0], path: `p${at}` }));
  });
  writeFileSync(file, manyParts);
  t.match(await failureOf(() => open(file)), { code: 'MALFORMED', field: 'parts' });
  writeFileSync(file, `{${' '.repeat(16 * 2 ** 20)}}`);
  t.match(await failureOf(() => open(file)), { code: 'MALFORMED', message: /at most 16777216/ });
  // What does not fit the containers.
  writeFileSync(
    file,
    edited((json) => put(json, 'dtype', 'int8')),
  );
  t.match(await failureOf(() => open(file)), { code: 'SCHEMA', field: 'dtype' });
  writeFileSync(
    file,
    edited((json) => {
      const [one, other] = json.parts;
      if (one !== undefined) one.length = 49;
      if (other !== undefined) other.length = 51;
    }),
  );
  t.match(await failureOf(() => open(file)), { code: 'MALFORMED', field: 'length' });
  t.match((await verify(file)).faults[0], { code: 'MALFORMED', field: 'length' });
  // A file that is no set at all is told as before.
  writeFileSync(file, 'text');
  t.match(await failureOf(() => open(file)), { code: 'IO', osCode: 'ENOTDIR' });
  t.equal(await codeOf(() => Concat.open(file)), 'MALFORMED');
  t.equal(await codeOf(() => Concat.open(path.join(folder, 'none.json'))), 'IO');
  writeFileSync(file, text);
  if (process.getuid?.() !== 0) {
    chmodSync(file, 0);
    t.match(await failureOf(() => Concat.open(file)), { code: 'IO', osCode: 'EACCES' });
  }
});

t.test('merge keeps the codec that all have, and trains a dictionary anew', async (t) => {
  const folder = scratch.folder();
  const records = Array.from({ length: 600 }, (_, id) => record(id));
  const dictBytes = await trainDict(records);
  for (const part of [0, 1]) {
    const writer = Ragged.create(path.join(folder, `p${part}`), {
      ...{ codec: 'zstd_dict', dictBytes, dtype: 'uint16', ndim: 1 },
    });
    await writer.append(records.slice(part * 300, part * 300 + 300));
    await writer.close();
  }
  const parts = [path.join(folder, 'p0'), path.join(folder, 'p1')];
  const result = await merge(parts, path.join(folder, 'merged'));
  t.match(result, { target: { codec: 'zstd_dict', records: 600 }, source: { records: 600 } });
  const other = path.join(folder, 'p2');
  await recode(parts[1] ?? '', other, { codec: 'raw' });
  const mixed = await failureOf(() => merge([parts[0] ?? '', other], path.join(folder, 'mixed')));
  t.match(mixed, { code: 'INVALID_ARGUMENT', field: 'codec' });
  await merge([parts[0] ?? '', other], path.join(folder, 'mixed'), { codec: 'zstd' });
  t.match(await diff(path.join(folder, 'mixed'), path.join(folder, 'merged')), { equal: true });
  t.equal(await codeOf(() => merge([], path.join(folder, 'x'))), 'INVALID_ARGUMENT');
});

t.test('the folder of a parts build is a folder of its sets', async (t) => {
  const folder = scratch.folder();
  await makeParts(folder, 60, 2);
  const none = await failureOf(() => open(folder));
  const theirs = 'its folders part-00000-of-00002, part-00001-of-00002 do: name one';
  t.match(none, { code: 'NOT_FOUND' });
  t.ok(none.message.endsWith(`: the folder is no container, and holds none; ${theirs}`));
  const empty = await failureOf(() => open(scratch.folder()));
  t.match(empty, { code: 'NOT_FOUND', message: /: the folder is no container, and holds none$/ });

  for (const kind of ['dense', 'ragged']) {
    await makeSet(partsOf(folder, kind), path.join(folder, `${kind}.json`));
  }
  writeFileSync(path.join(folder, 'package.json'), '{ "name": "x" }');
  const files = [`${folder}/dense.json`, `${folder}/ragged.json`];
  t.same(containersAt(folder), files);
  t.match(await told('verify', folder), { code: 0, err: '', out: /dense\.json.*ragged\.json/s });
  t.match(await told('info', folder), { code: 0, err: '', out: /All have 60 records/ });
  t.match(await told('digest', folder), {
    code: 0,
    err: '',
    out: /dense.json {2}a set of 2 parts, 1 without.*ragged.json {2}a set of 2 parts, without integ/s,
  });
  const loaded = await told('bench', folder, '--loader', '--seconds', '0.05', '--json');
  t.match(JSON.parse(loaded.out), { paths: files });
  const table = path.join(folder, 'x.npz');
  t.match(await told('export', folder, table), { code: 0 });
  const bytes = readFileSync(table, 'latin1');
  for (const name of ['dense.npy', 'ragged.npy', 'ragged.dims.npy']) t.ok(bytes.includes(name));
  t.notMatch(bytes, /\.json/);
  const parquet = path.join(folder, 'x.parquet');
  t.match(await told('export', folder, parquet), { code: 0 });
  t.notMatch(
    readFileSync(parquet, 'latin1'),
    /dense\.json/,
    'columns have the names of containers',
  );

  for (const args of [
    ['head', folder],
    ['diff', folder, folder],
    ['export', folder, 'x.npy'],
  ]) {
    const { code, err } = await told(...args);
    t.equal(code, 3, args.join(' '));
    t.match(
      err,
      /the folder is no container, and holds the containers dense.json, ragged.json: name one\n/,
    );
  }

  // Containers that lie beside the set of them are not told a second time.
  const flat = scratch.folder();
  const { dense, ragged } = await wholes(flat, 5);
  await makeSet([dense], path.join(flat, 'all.json'));
  t.same(containersAt(flat), [`${flat}/all.json`, `${flat}/whole-ragged`]);
  rmSync(path.join(ragged, 'meta.zr'));
  t.match(await failureOf(() => open(ragged)), { message: /: the folder holds no meta\.zr$/ });
});
