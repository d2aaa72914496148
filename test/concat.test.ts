// Several containers as one reader: what it gives equals what one container of the same records gives, for
// every mixture of codecs, shards and dialects; its life; and what is refused. Random cases print their seed.
//
//     LOADERX_SEED=text   the same cases again
import { randomBytes } from 'node:crypto';
import { truncateSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import {
  type CreateOptions,
  concat,
  DataLoader,
  Dense,
  type DenseBatch,
  type DenseReader,
  digest,
  logicalDigest,
  type NdArray,
  ndarray,
  open,
  Ragged,
  type RaggedReader,
  trainDict,
} from '../ts/index.js';
import { Random } from './interop/random.mjs';
import { codeOf, failureOf } from './support/outcome.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const seed = process.env.LOADERX_SEED ?? randomBytes(4).toString('hex');
t.comment(`LOADERX_SEED=${seed}`);

/** Parts of 0 records and more, of all forms. */
const sizes = [300, 0, 1, 77, 513, 4];
const total = sizes.reduce((sum, size) => sum + size, 0);

async function formsOf(sample: NdArray | Iterable<NdArray>): Promise<readonly CreateOptions[]> {
  const dictBytes = await trainDict(sample as NdArray);
  return [
    { codec: 'raw', dataShards: 1 },
    { codec: 'zstd', dataShards: 3, dialect: '2.8' },
    { codec: 'zstd_dict', dictBytes, dataShards: 2 },
    { codec: 'raw', dataShards: 5, dialect: '2.8' },
    { codec: 'zstd', dataShards: 255 },
    { codec: 'raw', dataShards: 2, dialect: '2.4' },
  ];
}

function denseRecords(first: number, count: number): NdArray<'float32'> {
  const data = Float32Array.from({ length: count * 12 }, (_, at) => (first * 12 + at) % 1009);
  return ndarray('float32', [count, 3, 4], data);
}

function raggedRecord(id: number): NdArray<'int32'> {
  // Some large enough to be decoded in place, next to small ones.
  const length = id % 97 === 5 ? 40_000 + id : 1 + ((id * 7) % 23);
  return ndarray(
    'int32',
    [length],
    Int32Array.from({ length }, (_, at) => id * 31 + (at % 50)),
  );
}

async function denseParts(folder: string): Promise<string[]> {
  const forms = await formsOf(denseRecords(0, 500));
  const paths: string[] = [];
  let first = 0;
  for (const [index, size] of sizes.entries()) {
    const place = path.join(folder, `part-${index}`);
    const form = forms[index % forms.length] as CreateOptions;
    const writer = Dense.create(place, { ...form, dtype: 'float32', itemShape: [3, 4] });
    if (size > 0) await writer.append(denseRecords(first, size));
    await writer.close({ integrity: index % 2 === 0 });
    paths.push(place);
    first += size;
  }
  return paths;
}

async function raggedParts(folder: string): Promise<string[]> {
  const forms = await formsOf(Array.from({ length: 600 }, (_, id) => raggedRecord(id)));
  const paths: string[] = [];
  let first = 0;
  for (const [index, size] of sizes.entries()) {
    const place = path.join(folder, `part-${index}`);
    const form = forms[index % forms.length] as CreateOptions;
    const writer = Ragged.create(place, { ...form, dtype: 'int32', ndim: 1 });
    const records = Array.from({ length: size }, (_, at) => raggedRecord(first + at));
    if (size > 0) await writer.append(records);
    await writer.close();
    paths.push(place);
    first += size;
  }
  return paths;
}

function idLists(random: Random): number[][] {
  const edges: number[] = [];
  let at = 0;
  for (const size of sizes) {
    if (size > 0) edges.push(at, at + size - 1);
    at += size;
  }
  return [
    [],
    [total - 1],
    edges,
    Array.from({ length: total }, (_, id) => id),
    Array.from({ length: total }, (_, id) => total - 1 - id),
    ...Array.from({ length: 20 }, () =>
      Array.from({ length: 1 + random.between(0, 299) }, () => random.between(0, total - 1)),
    ),
  ];
}

for (const mapped of ['1', '0']) {
  t.test(
    `every gather of a dense set gives what one container gives, maps ${mapped}`,
    async (t) => {
      process.env.LOADERX_MAP = mapped;
      t.teardown(() => {
        delete process.env.LOADERX_MAP;
      });
      const random = new Random(`${seed}-dense-${mapped}`);
      const folder = scratch.folder();
      const paths = await denseParts(folder);
      const writer = Dense.create(path.join(folder, 'whole'), {
        ...{ codec: 'raw', dtype: 'float32', itemShape: [3, 4] },
      });
      await writer.append(denseRecords(0, total));
      await writer.close();
      const members = paths.map((place) => Dense.open(place, { dtype: 'float32' }));
      await using set = concat(members);
      await using whole = Dense.open(path.join(folder, 'whole'), { dtype: 'float32' });
      t.match(
        [set.kind, set.dtype, set.itemShape, set.length, set.hasDict],
        ['dense', 'float32', [3, 4], total, true],
      );
      t.same(
        set.parts.map(({ length, codec, dataShards }) => [length, codec, dataShards]),
        members.map(({ length, codec, dataShards }) => [length, codec, dataShards]),
      );
      const out = ndarray('float32', [5, 3, 4], new Float32Array(60));
      for (const ids of idLists(random)) {
        const expected = await whole.gather(ids);
        t.same((await set.gather(ids)).data, expected.data, `${ids.length} ids`);
        t.same(set.gatherSync(ids).data, expected.data);
      }
      const five = [0, 300, 301, total - 1, 300];
      t.same(set.gatherSync(five, { out }).data, whole.gatherSync(five).data);
      t.same((await set.gather(five, { out })).data, whole.gatherSync(five).data);
      t.same(set.record(302).data, whole.record(302).data);
      t.same((await set.slice(290, 310, 3)).data, (await whole.slice(290, 310, 3)).data);
      let at = 0;
      for await (const batch of set.batches(100)) at += batch.shape[0] ?? 0;
      t.equal(at, total);
      t.equal(await logicalDigest(set), (await digest(whole.path, { dryRun: true })).logicalDigest);
      t.equal(await codeOf(() => set.gatherSync([total])), 'OUT_OF_RANGE');
      for (const member of members) await member.close();
      t.same(
        set.gatherSync(five).data,
        whole.gatherSync(five).data,
        'members are closed by themselves',
      );
    },
  );

  t.test(
    `every gather of a ragged set gives what one container gives, maps ${mapped}`,
    async (t) => {
      process.env.LOADERX_MAP = mapped;
      t.teardown(() => {
        delete process.env.LOADERX_MAP;
      });
      const random = new Random(`${seed}-ragged-${mapped}`);
      const folder = scratch.folder();
      const paths = await raggedParts(folder);
      const writer = Ragged.create(path.join(folder, 'whole'), {
        ...{ codec: 'raw', dtype: 'int32', ndim: 1 },
      });
      await writer.append(Array.from({ length: total }, (_, id) => raggedRecord(id)));
      await writer.close();
      const members = paths.map((place) => Ragged.open(place, { dtype: 'int32' }));
      await using set = concat(members);
      await using whole = Ragged.open(path.join(folder, 'whole'), { dtype: 'int32' });
      for (const member of members) await member.close();
      for (const ids of idLists(random)) {
        const expected = await whole.gather(ids);
        for (const batch of [await set.gather(ids), set.gatherSync(ids)]) {
          t.same(batch.offsets, expected.offsets, `${ids.length} ids`);
          t.same(batch.dims, expected.dims);
          t.ok(
            Buffer.from(batch.values.buffer, 0, batch.values.byteLength).equals(
              Buffer.from(expected.values.buffer, 0, expected.values.byteLength),
            ),
          );
        }
      }
      t.same(set.record(5).data, raggedRecord(5).data);
      t.equal(await logicalDigest(set), (await digest(whole.path, { dryRun: true })).logicalDigest);
    },
  );
}

t.test('a loader draws the same batches from a set as from one container', async (t) => {
  const folder = scratch.folder();
  const paths = await denseParts(folder);
  const set = concat(paths.map((place) => Dense.open(place)));
  const writer = Dense.create(path.join(folder, 'whole'), {
    ...{ codec: 'zstd', dtype: 'float32', itemShape: [3, 4] },
  });
  await writer.append(denseRecords(0, total));
  await writer.close();
  const whole = open(path.join(folder, 'whole')) as DenseReader;
  const drawn = async (reader: DenseReader): Promise<string[]> => {
    await using loader = new DataLoader(
      { image: reader },
      { batchSize: 64, mode: 'cyclic', seed: 5 },
    );
    const seen: string[] = [];
    for await (const batch of loader) {
      const { data } = batch.image;
      seen.push(Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('base64'));
      batch[Symbol.dispose]();
      if (seen.length === 40) break;
    }
    return seen;
  };
  t.same(await drawn(set), await drawn(whole));
  await set.close();
  await whole.close();
});

t.test('what is no set is refused', async (t) => {
  const folder = scratch.folder();
  const dense = (
    name: string,
    options: { dtype: 'uint8' | 'int8'; itemShape: number[] },
  ): string => {
    const writer = Dense.create(path.join(folder, name), { codec: 'raw', ...options });
    writer.appendSync({
      dtype: options.dtype,
      shape: [2, ...options.itemShape],
      data: new (options.dtype === 'uint8' ? Uint8Array : Int8Array)(
        2 * (options.itemShape[0] ?? 1),
      ),
    } as NdArray<'uint8'>);
    writer.closeSync();
    return path.join(folder, name);
  };
  const one = open(dense('one', { dtype: 'uint8', itemShape: [4] }));
  const other = open(dense('dtype', { dtype: 'int8', itemShape: [4] }));
  const shape = open(dense('shape', { dtype: 'uint8', itemShape: [5] }));
  const ragged = Ragged.create(path.join(folder, 'ragged'), {
    codec: 'raw',
    dtype: 'uint8',
    ndim: 1,
  });
  ragged.closeSync();
  const raggedReader = open(path.join(folder, 'ragged'));
  for (const [reader, field] of [
    [other, 'dtype'],
    [shape, 'itemShape'],
    [raggedReader, 'kind'],
  ] as const) {
    const failure = await failureOf(() => concat([one, reader]));
    t.match(failure, { code: 'SCHEMA', field, path: reader.path });
  }
  for (const wrong of [undefined, [], [{}], [one, null], 'text']) {
    t.equal(await codeOf(() => concat(wrong as never)), 'INVALID_ARGUMENT');
  }
  const set = concat([one, one]);
  t.equal(set.length, 4);
  t.equal(await codeOf(() => concat([set])), 'INVALID_ARGUMENT', 'a set of sets');
  t.equal(await codeOf(() => concat([one], { nonsense: 1 } as never)), 'INVALID_ARGUMENT');
  one.closeSync();
  t.equal(await codeOf(() => concat([one])), 'CLOSED');
  t.equal(((await set.gather([0, 3])) as DenseBatch).shape[0], 2, 'one reader twice, closed once');
  await set.close();
  t.equal(await codeOf(() => set.gatherSync([0])), 'CLOSED');
  await set.close();
  for (const reader of [other, shape, raggedReader]) reader.closeSync();
});

t.test('damage in a part names the part, and the record in it', async (t) => {
  const folder = scratch.folder();
  const paths = await denseParts(folder);
  const set = concat(paths.map((place) => Dense.open(place)));
  const damaged = paths[3] ?? '';
  // Part 3 begins at record 301; it is raw, with 5 shards: record 76 of it is the last of shard 1.
  truncateSync(path.join(damaged, 'data_1.zr'), 10);
  t.same(set.gatherSync([0, 300]).shape, [2, 3, 4], 'the others are read');
  for (const failure of [
    await failureOf(() => set.gatherSync([0, 301 + 76])),
    await failureOf(() => set.gather([0, 301 + 76])),
  ]) {
    t.match(failure, { code: 'MALFORMED', path: damaged, file: 'data_1.zr', record: 76, shard: 1 });
    t.match(failure, { message: /part-3: / });
  }
  await set.close();
});

t.test('parts that are held against their integrity files stay so', async (t) => {
  const folder = scratch.folder();
  const paths = await denseParts(folder);
  const kept = paths.filter((_, index) => index % 2 === 0);
  const members = kept.map((place) => Dense.open(place, { verify: 'digest' }));
  const set: DenseReader = concat(members);
  t.same((await set.gather([0, 300, 301])).shape, [3, 3, 4]);
  await set.close();
  for (const member of members) await member.close();
});

t.test('kinds are told apart by types', (t) => {
  const check = (dense: DenseReader<'uint8'>[], ragged: RaggedReader<'int32'>[]): void => {
    const one: DenseReader<'uint8'> = concat(dense);
    const other: RaggedReader<'int32'> = concat(ragged);
    void [one, other];
  };
  t.type(check, 'function');
  t.end();
});
