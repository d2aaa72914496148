// Parts of a build: which rows they have, that all of them are the whole, that they can be killed, run again
// and run twice, and what is refused.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { conversion, convert } from '../ts/converter/convert.js';
import type { Dataset } from '../ts/converter/dataset.js';
import { parquetFolder } from '../ts/converter/parquet.js';
import { Dense, digest, makeSet, ndarray, partName, partRange, writePart } from '../ts/index.js';
import { codeOf, failureOf } from './support/outcome.js';
import { numbersFile, rowsOfFile } from './support/parquet.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const files = 3;
const rowCount = files * rowsOfFile;

function makeSource(): string {
  const source = scratch.folder();
  for (let file = 0; file < files; file += 1) {
    writeFileSync(path.join(source, `train-${file}.parquet`), numbersFile(file + 1));
  }
  return source;
}

async function digestAt(place: string): Promise<string> {
  return (await digest(place, { dryRun: true })).logicalDigest;
}

t.test('rows belong to one part each, in order', async (t) => {
  for (const count of [0, 1, 2, 63, 64, 65, 60_000, 2 ** 53 - 1]) {
    for (const of of [1, 2, 3, 7, 64, 65_536]) {
      const parts = of > 100 ? [0, 1, of - 2, of - 1] : Array.from({ length: of }, (_, at) => at);
      let end: number | undefined;
      for (const part of parts) {
        const range = partRange(count, { part, of });
        if (part === 0) t.equal(range.first, 0);
        if (end !== undefined && of <= 100) t.equal(range.first, end);
        t.ok(range.end - range.first <= Math.ceil(count / of) && range.end >= range.first);
        end = range.end;
      }
      t.equal(end, count);
    }
  }
  t.equal(partName({ part: 3, of: 64 }), 'part-00003-of-00064');
  for (const part of [
    { part: 1, of: 1 },
    { part: -1, of: 2 },
    { part: 0, of: 0 },
    { part: 0.5, of: 2 },
  ]) {
    t.equal(await codeOf(() => partRange(10, part)), 'INVALID_ARGUMENT');
  }
  for (const part of [undefined, null, 3, { part: '0', of: 1 }, { part: 0 }]) {
    t.equal(await codeOf(() => partName(part as never)), 'INVALID_ARGUMENT');
  }
  t.equal(await codeOf(() => partRange(-1, { part: 0, of: 1 })), 'INVALID_ARGUMENT');
  t.equal(await codeOf(() => partRange(1.5, { part: 0, of: 1 })), 'INVALID_ARGUMENT');
});

t.test('parts of a conversion are the whole', async (t) => {
  const source = makeSource();
  const folder = scratch.folder();
  await convert(await parquetFolder(source), path.join(folder, 'whole'), { codec: 'raw' });
  const expected = await digestAt(path.join(folder, 'whole', 'train', 'x'));
  for (const of of [1, 2, 7, 64]) {
    const target = path.join(folder, `by-${of}`);
    const places: string[] = [];
    for (let part = 0; part < of; part += 1) {
      const dataset = await parquetFolder(source);
      const made = await conversion(dataset, target, { codec: 'zstd', part: { part, of } });
      places.push(path.join(made.path, 'train', 'x'));
      const { first, end } = partRange(rowCount, { part, of });
      t.match(made, { columns: [{ split: 'train', column: 'x', rowCount: end - first }] });
      t.equal(made.wasThere, undefined);
    }
    t.same(
      readdirSync(target),
      Array.from({ length: of }, (_, part) => partName({ part, of })),
    );
    const set = path.join(target, 'x.json');
    t.match(await makeSet(places, set), { records: rowCount });
    t.equal(await digestAt(set), expected, `${of} parts`);
  }
});

t.test('a part reads the row groups that it needs, and no more', async (t) => {
  const source = makeSource();
  // What the last file holds is not looked at again once its footer was read.
  const dataset = await parquetFolder(source);
  const last = path.join(source, `train-${files - 1}.parquet`);
  writeFileSync(last, 'no Parquet any more');
  const target = scratch.fresh('out');
  const of = files;
  await convert(dataset, target, { codec: 'raw', part: { part: 0, of } });
  t.ok(existsSync(path.join(target, partName({ part: 0, of }), 'train', 'x', 'meta.zr')));
  t.equal(
    await codeOf(() => convert(dataset, target, { codec: 'raw', part: { part: of - 1, of } })),
    'MALFORMED',
  );
  t.same(readdirSync(target), [partName({ part: 0, of })], 'and nothing is left of the other');
});

/** Rows that know nothing of ranges. */
function plain(rows: number, told: number | undefined = rows): Dataset {
  return {
    features: new Map([['id', { kind: 'value', dtype: 'uint32' }]]),
    ...(told === undefined ? {} : { rowCount: told }),
    async *batches() {
      for (let first = 0; first < rows; first += 100) {
        const count = Math.min(100, rows - first);
        const values = Uint32Array.from({ length: count }, (_, at) => first + at);
        yield { rowCount: count, columns: new Map([['id', { values }]]) };
      }
    },
  };
}

t.test('a dataset that gives no ranges is read from its beginning', async (t) => {
  const target = scratch.fresh('out');
  for (let part = 0; part < 7; part += 1) {
    await convert(plain(1003), target, { codec: 'raw', part: { part, of: 7 } });
    const { first, end } = partRange(1003, { part, of: 7 });
    const reader = Dense.open(path.join(target, partName({ part, of: 7 }), 'id'));
    const { data } = await reader.slice();
    t.same(
      data,
      Uint32Array.from({ length: end - first }, (_, at) => first + at),
    );
    await reader.close();
  }
  const one = { codec: 'raw', part: { part: 6, of: 7 } } as const;
  const elsewhere = scratch.fresh('out');
  t.match(await failureOf(() => convert(plain(900, 1003), elsewhere, one)), {
    code: 'SOURCE',
    message: /has 900 rows, and its rowCount says that there are 1003/,
  });
  const { rowCount: _, ...unknown } = plain(10);
  t.match(await failureOf(() => convert(unknown, elsewhere, one)), { field: 'part' });
  t.match(
    await failureOf(() => convert(plain(5), elsewhere, { ...one, part: { part: 0, of: 7 } })),
    {
      code: 'SOURCE',
      message: /5 rows, too few for 7 parts/,
    },
  );
  t.equal(
    await codeOf(() => convert(plain(5), elsewhere, { ...one, part: { part: 7, of: 7 } })),
    'INVALID_ARGUMENT',
  );
  t.notOk(existsSync(elsewhere), 'nothing is left');
});

function start(source: string, target: string, part: number, of: number, stops: boolean) {
  const program = path.join(import.meta.dirname, 'support', 'part.mjs');
  const child: ChildProcess = spawn(
    process.execPath,
    [program, source, target, String(part), String(of)],
    {
      stdio: ['ignore', 'pipe', 'inherit'],
      env: { ...process.env, ...(stops ? { STOP: '1' } : {}) },
    },
  );
  let said = '';
  const begun = new Promise<void>((resolve) => {
    child.stdout?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      if (said.includes('\n')) resolve();
    });
  });
  const ended = new Promise<string>((resolve) => {
    child.once('close', () => resolve(said.trim().split('\n').at(-1) ?? ''));
  });
  return { child, begun, ended };
}

t.test('a part that is killed leaves nothing, and is made again; twice does no harm', async (t) => {
  const source = makeSource();
  const target = scratch.fresh('out');
  const part = { part: 1, of: 2 };
  const killed = start(source, target, part.part, part.of, true);
  await killed.begun;
  t.notOk(existsSync(path.join(target, partName(part))), 'nothing is there while it is built');
  const meanwhile = await failureOf(async () =>
    convert(await parquetFolder(source), target, { codec: 'raw', part }),
  );
  t.match(meanwhile, { code: 'LOCKED' }, 'another process that builds it is told of');
  killed.child.kill('SIGKILL');
  await killed.ended;
  t.notOk(existsSync(path.join(target, partName(part))), 'nor when it was killed');
  const again = start(source, target, part.part, part.of, false);
  t.equal(await again.ended, 'done');
  t.same(readdirSync(target), [partName(part)], 'and what was left is gone');
  const before = await digestAt(path.join(target, partName(part), 'train', 'x'));
  const third = await conversion(await parquetFolder(source), target, { codec: 'raw', part });
  t.match(third, { wasThere: true, columns: [{ rowCount: rowCount / 2 }] });
  t.equal(await digestAt(path.join(target, partName(part), 'train', 'x')), before);
  await convert(await parquetFolder(source), path.join(target, 'whole'), { codec: 'raw' });
  await convert(await parquetFolder(source), target, { codec: 'raw', part: { part: 0, of: 2 } });
  const names = [0, 1].map((each) =>
    path.join(target, partName({ part: each, of: 2 }), 'train', 'x'),
  );
  await makeSet(names, path.join(target, 'x.json'));
  t.equal(
    await digestAt(path.join(target, 'x.json')),
    await digestAt(path.join(target, 'whole', 'train', 'x')),
  );
});

t.test('a part of a writer of one’s own', async (t) => {
  const target = scratch.fresh('out');
  const build = (part: number) => async (folder: string) => {
    const { first, end } = partRange(10, { part, of: 3 });
    const writer = Dense.create(path.join(folder, 'id'), {
      ...{ codec: 'raw', dtype: 'uint8', itemShape: [] },
    });
    const data = Uint8Array.from({ length: end - first }, (_, at) => first + at);
    await writer.append(ndarray('uint8', [end - first], data));
    await writer.close();
  };
  for (let part = 0; part < 3; part += 1) {
    const made = await writePart(target, { part, of: 3 }, build(part));
    t.match(made, { path: `${target}/${partName({ part, of: 3 })}`, wasThere: false });
  }
  const never = async (): Promise<void> => {
    t.fail('it is there');
  };
  t.match(await writePart(target, { part: 1, of: 3 }, never), { wasThere: true });
  const set = path.join(target, 'id.json');
  const places = [0, 1, 2].map((part) => path.join(target, partName({ part, of: 3 }), 'id'));
  await makeSet(places, set);
  const reader = Dense.open(set);
  t.same(
    (await reader.slice()).data,
    Uint8Array.from({ length: 10 }, (_, id) => id),
  );
  await reader.close();
  const other = scratch.fresh('out');
  const failing = async (folder: string): Promise<void> => {
    mkdirSync(path.join(folder, 'half'));
    throw new Error('no more');
  };
  t.match(await failureOf(() => writePart(other, { part: 0, of: 1 }, failing)), {
    message: 'no more',
  });
  t.notOk(existsSync(other), 'nothing is left');
});
