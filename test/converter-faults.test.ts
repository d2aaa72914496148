// Faults that users of comparable converters met (B70 to B82), on files that lie here: what holds a null or
// cannot be kept fails by the names of its column and row, with nothing published; the rest is exact.
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { convert } from '../ts/converter/convert.js';
import type { DatasetSplits, Feature } from '../ts/converter/dataset.js';
import { featureText } from '../ts/converter/features.js';
import { parquetSplits } from '../ts/converter/parquet.js';
import { open } from '../ts/store/open.js';
import { Scratch } from './support/scratch.js';

interface File {
  readonly name: string;
  /** Where the first null is; -1 where there is none. */
  readonly row?: number;
  /** Of files about empty row groups. */
  readonly rows?: number;
  readonly parquet: string;
}

const scratch = new Scratch(t);
const json = path.join(import.meta.dirname, 'parquet', 'nulls.json');
const files = JSON.parse(readFileSync(json, 'utf8')) as readonly File[];

/** The same file twice: rows are counted over the whole split. */
async function datasetOf({ parquet }: File, times: number): Promise<DatasetSplits> {
  const file = scratch.fresh('x.parquet');
  writeFileSync(file, Buffer.from(parquet, 'base64'));
  const parts = Array.from({ length: times }, (_, index) => ({ path: file, name: `${index}` }));
  return parquetSplits(new Map([['train', parts]]));
}

t.test(
  'B73, B77: nulls fail by column and row, and what only could have some converts',
  async (t) => {
    const nulls = files.filter((file) => file.row !== undefined);
    t.equal(nulls.length, 16);
    for (const file of nulls) {
      const folder = scratch.folder();
      const target = path.join(folder, 'out');
      const done = convert(await datasetOf(file, 1), target, { codec: 'raw', strings: 'utf8' });
      if (file.row === -1) {
        await done;
        const reader = open(path.join(target, 'train/x'));
        t.equal(reader.length, file.name.startsWith('lists') ? 2 : 3);
        await reader.close();
        continue;
      }
      const wanted = { code: 'SOURCE', field: 'x', record: file.row, message: 'hold no nulls' };
      await t.rejects(done, wanted, file.name);
      t.strictSame(readdirSync(folder), [], `${file.name}: nothing is left`);
    }
  },
);

t.test('B77: row groups and files without rows add none', async (t) => {
  for (const file of files.filter(({ rows }) => rows !== undefined)) {
    const target = scratch.fresh();
    const done = convert(await datasetOf(file, 2), target, { codec: 'raw' });
    if (file.rows === 0) {
      await t.rejects(done, { code: 'SOURCE' }, `${file.name}: there is nothing to convert`);
      t.notOk(existsSync(target));
      continue;
    }
    await done;
    const reader = open(path.join(target, 'train/x'));
    const { data } = reader.kind === 'dense' ? reader.gatherSync([0, 1, 2, 3, 4, 5]) : { data: [] };
    t.strictSame([...data], [0, 1, 0, 0, 1, 0], file.name);
    await reader.close();
  }
});

t.test(
  'B75: dicts in lists fail by column, whatever is in them, and are not nested anew',
  async (t) => {
    const number: Feature = { kind: 'value', dtype: 'int32' };
    const struct = (inner: Feature): Feature => ({
      kind: 'struct',
      fields: new Map([['a', inner]]),
    });
    const list = (item: Feature): Feature => ({ kind: 'list', item });
    for (const feature of [
      struct(number),
      list(struct(number)),
      list(list(struct(list(number)))),
      struct(struct(number)),
    ]) {
      const target = scratch.fresh();
      const features = new Map([
        ['good', number],
        ['x', feature],
      ]);
      // Its type alone decides: no row is asked for.
      const batches = (): never => {
        throw new Error('rows are read');
      };
      await t.rejects(
        convert({ features, batches }, target, { codec: 'raw' }),
        { code: 'UNSUPPORTED', field: 'x', message: featureText(feature) },
        featureText(feature),
      );
      t.notOk(existsSync(target));
    }
  },
);

t.test('B82: class labels are kept as they are', async (t) => {
  const values = BigInt64Array.of(-1n, -100n, 3n, 0n, 2n ** 62n);
  const feature: Feature = { kind: 'class-label', names: ['cat', 'dog', 'hen'] };
  const target = scratch.fresh();
  await convert(
    {
      features: new Map([['x', feature]]),
      async *batches() {
        yield { rowCount: values.length, columns: new Map([['x', { values }]]) };
      },
    },
    target,
    { codec: 'raw' },
  );
  const reader = open(path.join(target, 'x'));
  t.equal(reader.dtype, 'int64');
  t.strictSame(reader.kind === 'dense' && [...reader.gatherSync([0, 1, 2, 3, 4]).data], [
    ...values,
  ]);
  await reader.close();
});
