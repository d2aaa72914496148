// Rows of the list of known faults that have no better place: each test is one row, named by its
// number. docs/testing.md says where the others are.
import { createHash } from 'node:crypto';
import { readFileSync, statSync, truncateSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { Dense, ndarray, open, Ragged } from '../ts/index.js';
import { runChild } from './support/child.js';
import { edited, readFiles, writeFiles } from './support/files.mjs';
import { failureOf, outcomeOfError } from './support/outcome.js';
import { locationAt, makeLocation } from './support/page.mjs';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const mebi = 2 ** 20;

t.test('B10: one record far larger than all others, at the end', async (t) => {
  const at = scratch.fresh();
  const sizes = [...Array.from({ length: 40 }, () => 10), mebi];
  const records = sizes.map((bytes, id) =>
    Uint8Array.from({ length: bytes }, (_, item) => (item * item + id * 7) >> (item % 3)),
  );
  const writer = Ragged.create(at, { codec: 'zstd', dtype: 'uint8', ndim: 1, dataShards: 3 });
  await writer.append(records.map((data) => ndarray('uint8', [data.length], data)));
  await writer.close();
  await using reader = Ragged.open(at, { dtype: 'uint8' });
  const last = records.length - 1;
  for (const ids of [[last], [last, last], [...records.keys()], [last, 0, last, 1]]) {
    const batch = await reader.gather(ids);
    t.ok(
      batch.toArray().every(({ data }, index) => {
        const expected = records[ids[index] ?? 0] ?? new Uint8Array();
        return Buffer.compare(data, expected) === 0;
      }),
      `records ${ids.length > 4 ? 'all' : ids.join()}`,
    );
  }
});

t.test('B11: a data file that is cut: its name, its tail and its size', async (t) => {
  for (const codec of ['raw', 'zstd'] as const) {
    const whole = scratch.fresh();
    const writer = Dense.create(whole, { codec, dtype: 'uint32', itemShape: [50], dataShards: 3 });
    const data = Uint32Array.from({ length: 30 * 50 }, (_, at) => at);
    writer.appendSync(ndarray('uint32', [30, 50], data));
    writer.closeSync();
    const files = readFiles(whole);
    const bytes = statSync(path.join(whole, 'data_1.zr')).size;
    for (const left of [bytes - 1, bytes >> 1, 0]) {
      const cut = scratch.fresh();
      writeFiles(cut, edited(files, [{ file: 'data_1.zr', truncate: left }]));
      const error = await failureOf(() => open(cut));
      t.equal(outcomeOfError(error), 'LoaderxError MALFORMED', `${codec}: ${left} of ${bytes}`);
      t.equal(error.file, 'data_1.zr');
      t.equal(error.shard, 1);
      t.ok(error.message.includes(`${left} bytes`), 'the size it has');
      t.ok(error.message.includes(`${bytes}`), 'the tail it should have');
    }
    // The same below an open reader: from then on no byte of the lost part is delivered.
    await using reader = Dense.open(whole, { dtype: 'uint32' });
    truncateSync(path.join(whole, 'data_1.zr'), 0);
    const error = await failureOf(() => reader.gather([0, 1]));
    t.equal(outcomeOfError(error), 'LoaderxError MALFORMED', `${codec}: cut while it is open`);
    t.equal(error.file, 'data_1.zr');
  }
});

t.test('B13: a schema of four megabytes a record, a location of four bytes', async (t) => {
  for (const codec of ['raw', 'zstd'] as const) {
    const at = scratch.fresh();
    const side = 1000;
    const writer = Dense.create(at, {
      ...{ codec, dtype: 'float32', itemShape: [side, side], dataShards: 1 },
    });
    writer.appendSync(ndarray('float32', [1, side, side], new Float32Array(side * side)));
    writer.closeSync();
    for (const [stored, logical] of [
      [4, 4],
      [4, 4 * side * side],
    ] as const) {
      const place = scratch.fresh();
      const bytes = makeLocation({ offset: 0n, stored, logical }).toString('hex');
      const edit = { file: 'meta.zr', at: locationAt(0), bytes };
      writeFiles(place, edited(readFiles(at), [edit]));
      await using reader = open(place);
      for (const gather of [() => reader.gatherSync([0]), () => reader.gather([0])]) {
        const error = await failureOf(gather);
        const expected = codec === 'raw' || logical === 4 ? 'MALFORMED' : 'CODEC';
        t.equal(outcomeOfError(error), `LoaderxError ${expected}`, `${codec}: ${logical} declared`);
        t.equal(error.record, 0);
      }
    }
  }
});

t.test('B18: schemas that promise millions of values, under a heap of 64 MB', async (t) => {
  const at = scratch.fresh();
  Dense.create(at, { dtype: 'int16', itemShape: [2], codec: 'raw' }).closeSync();
  const { code, signal, stdout, stderr } = await runChild('schema-promises', [at], {
    nodeArgs: ['--expose-gc', '--max-old-space-size=64'],
  });
  t.same({ code, signal, stderr }, { code: 0, signal: null, stderr: '' }, 'the process lives');
  const answers = JSON.parse(stdout) as readonly { code: string; grewBytes: number }[];
  t.equal(answers.length, 4);
  for (const { code: refusal, grewBytes } of answers) {
    t.equal(refusal, 'MALFORMED');
    t.ok(grewBytes < mebi, `${grewBytes} bytes`);
  }
});

// Once on Node 20 and once on Node 24 by hand, which gave the same files; here each Node is held to them.
t.test('B72: float16 gives the same files and the same values on every Node', async (t) => {
  const at = scratch.fresh();
  const bits = Uint16Array.of(0, 0x3c00, 0x7bff, 1, 0x8000, 0x7c00, 0x7e01, 0xbc00);
  const options = { dtype: 'float16', itemShape: [4], codec: 'raw', dataShards: 2 } as const;
  const writer = Dense.create(at, options);
  writer.appendSync(ndarray('float16', [2, 4], bits));
  // A Node that has such arrays says how they are given.
  const Float16: unknown = Reflect.get(globalThis, 'Float16Array');
  if (typeof Float16 === 'function') {
    const values: unknown = Reflect.construct(Float16, [[1, 2, 3, 4]]);
    const error = await failureOf(() => writer.appendSync(values as never));
    t.equal(error.name, 'TypeError');
  }
  writer.closeSync();
  const hash = createHash('sha256');
  for (const file of ['meta.zr', 'data_0.zr', 'data_1.zr']) {
    hash.update(readFileSync(path.join(at, file)));
  }
  t.equal(hash.digest('hex'), '587ba365f73d203c70ea5da5ef56bdc31be14fcf0eb1d9bbffa6daa0e90406b9');
  await using reader = Dense.open(at, { dtype: 'float16' });
  const { data } = reader.gatherSync([0, 1]);
  t.ok(data instanceof Uint16Array, 'bits, on every Node');
  t.same(data, bits);
});
