// Large raw records of a list are written from where they lie; the files are those of packed ones.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { type DType, type NdArray, ndarray, Ragged } from '../ts/index.js';
import { failureOf } from './support/outcome.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

/** The same numbers for the same seed. */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state % below;
  };
}

function filesOf(at: string): Record<string, string> {
  const files = readdirSync(at).sort();
  return Object.fromEntries(
    files.map((name) => [name, readFileSync(path.join(at, name)).toString('base64')]),
  );
}

const constructors = { uint8: Uint8Array, int16: Int16Array, float64: Float64Array } as const;
type Tested = keyof typeof constructors;

function records(dtype: Tested, ndim: number, seed: number): NdArray<Tested>[] {
  const random = randomOf(seed);
  const kind = constructors[dtype];
  return Array.from({ length: 60 }, (_, index) => {
    // Small ones among large ones, in runs and alone.
    const isLarge = index % 20 < 12 ? random(4) > 0 : random(4) === 0;
    const rows = 1 + random(isLarge ? 40_000 : 40);
    const bytes = new Uint8Array(rows * kind.BYTES_PER_ELEMENT);
    for (let at = 0; at < bytes.length; at += 1) bytes[at] = random(251);
    const shape = ndim === 1 ? [rows] : [rows, ...new Array(ndim - 1).fill(1)];
    return ndarray(dtype, shape, new kind(bytes.buffer)) as NdArray<Tested>;
  });
}

for (const [dtype, ndim, dataShards, dialect] of [
  ['uint8', 1, 4, '2.4'],
  ['uint8', 3, 1, '2.4'],
  ['int16', 2, 7, '2.4'],
  ['float64', 1, 4, '2.8'],
] as const) {
  t.test(
    `${dtype} of ${ndim}, ${dataShards} shards, ${dialect}: files as of an iterable`,
    async (t) => {
      const all = records(dtype, ndim, dataShards);
      const build = async (
        write: (writer: ReturnType<typeof Ragged.create<DType>>) => Promise<void> | void,
      ): Promise<Record<string, string>> => {
        const at = scratch.fresh();
        const writer = Ragged.create<DType>(at, { dtype, ndim, codec: 'raw', dataShards, dialect });
        await write(writer);
        await writer.close();
        return filesOf(at);
      };
      const packed = await build((writer) => writer.append(new Set(all)));
      t.strictSame(await build((writer) => writer.append(all)), packed, 'append');
      t.strictSame(await build((writer) => writer.appendSync(all)), packed, 'appendSync');
      const inTwo = await build(async (writer) => {
        const first = writer.append(all.slice(0, 21));
        await Promise.all([first, writer.append(all.slice(21))]);
      });
      t.strictSame(inTwo, packed, 'two appends, the second one made meanwhile');
    },
  );
}

const large = (fill: number): NdArray<'uint8'> =>
  ndarray('uint8', [50_000], new Uint8Array(50_000).fill(fill));

t.test('memory that is taken away while the list is looked at', async (t) => {
  for (const mode of ['append', 'appendSync'] as const) {
    const writer = Ragged.create(scratch.fresh(), { dtype: 'uint8', ndim: 1, codec: 'raw' });
    await writer.append([large(1)]);
    const victim = large(2);
    const thief = {
      dtype: 'uint8' as const,
      data: new Uint8Array(50_000),
      get shape() {
        structuredClone(victim.data.buffer, { transfer: [victim.data.buffer as ArrayBuffer] });
        return [50_000];
      },
    };
    const failure = await failureOf(() => writer[mode]([victim, thief]));
    t.match(failure, { name: 'RangeError', code: 'INVALID_ARGUMENT' }, mode);
    t.match(failure?.message, /^records\[0\] was detached/);
    t.equal(writer.length, 1, 'nothing of it was kept');
    await writer.append([large(3)]);
    await writer.close();
    using reader = Ragged.open(writer.path);
    t.strictSame([reader.length, reader.record(1).data[49_999]], [2, 3]);
  }
});

t.test(
  'an odd record among large ones is refused, and nothing of the append is kept',
  async (t) => {
    for (const mode of ['append', 'appendSync'] as const) {
      const writer = Ragged.create(scratch.fresh(), { dtype: 'uint8', ndim: 1, codec: 'raw' });
      const odd = { dtype: 'uint8' as const, shape: [3], data: new Uint8Array(50_000) };
      const failure = await failureOf(() => writer[mode]([large(1), large(2), odd]));
      t.match(failure, { code: 'INVALID_ARGUMENT', field: 'records[2].data' }, mode);
      t.equal(writer.length, 0);
      await writer.append([large(4)]);
      await writer.close();
      using reader = Ragged.open(writer.path);
      t.strictSame([reader.length, reader.record(0).data[0]], [1, 4]);
    }
  },
);

t.test('shared memory and lists that change while they are appended', async (t) => {
  const writer = Ragged.create(scratch.fresh(), { dtype: 'uint8', ndim: 1, codec: 'raw' });
  const shared = new Uint8Array(new SharedArrayBuffer(50_000)).fill(5);
  const list = [large(1), ndarray('uint8', [50_000], shared as never), large(2)];
  const running = writer.append(list);
  list.length = 2;
  list[1] = large(9);
  await running;
  await writer.close();
  using reader = Ragged.open(writer.path);
  t.ok(reader.length >= 2, 'what the list has when its turn comes');
  t.equal(reader.record(0).data[0], 1);
});

t.test('a record that is another one each time it is looked at', async (t) => {
  const small = new Uint8Array([7, 7, 7]);
  for (const mode of ['append', 'appendSync'] as const) {
    for (let period = 2; period <= 5; period += 1) {
      const writer = Ragged.create(scratch.fresh(), { dtype: 'uint8', ndim: 1, codec: 'raw' });
      let looks = 0;
      let data = small;
      const moody = {
        dtype: 'uint8' as const,
        get shape() {
          looks += 1;
          data = looks % period === 0 ? small : new Uint8Array(50_000);
          return [data.length];
        },
        get data() {
          return data;
        },
      };
      await writer[mode]([moody, large(2)]);
      await writer.close();
      using reader = Ragged.open(writer.path);
      t.equal(reader.length, 2, `${mode}, every ${period}th`);
      t.ok([3, 50_000].includes(reader.record(0).data.length));
      t.equal(reader.record(1).data[49_999], 2);
    }
  }
});
