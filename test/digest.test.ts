// The logical digest is what docs/format.md says, whatever the files look like; an integrity file has the
// bytes that the document gives it; and Python opens containers that have one.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import {
  type CodecOptions,
  Dense,
  type Dialect,
  type DType,
  digest,
  logicalDigest,
  type NdArray,
  ndarray,
  open,
  Ragged,
  trainDict,
  verify,
} from '../ts/index.js';
import { codeOf, failureOf } from './support/outcome.js';
import { locationAt, pageBytes, readLocation, readPage } from './support/page.mjs';
import { beside, Scratch } from './support/scratch.js';
import { wyhash } from './support/wyhash.mjs';

const scratch = new Scratch(t);
const root = path.resolve(import.meta.dirname, '..');

// ---- what it is made of ----

function bytesOf(data: ArrayBufferView): Buffer {
  return Buffer.from(data.buffer as ArrayBuffer, data.byteOffset, data.byteLength);
}

/** The definition, again. */
function expectedDigest(
  kind: 'dense' | 'ragged',
  dtype: string,
  shape: string,
  records: readonly NdArray[],
): string {
  const hash = createHash('sha256');
  hash.update(`loaderx logical digest 1\n${kind}\n${dtype}\n${shape}\n${records.length}\n`);
  for (const record of records) {
    if (kind === 'ragged') {
      for (const size of record.shape) {
        const dim = Buffer.alloc(8);
        dim.writeBigUInt64LE(BigInt(size));
        hash.update(dim);
      }
    }
    hash.update(bytesOf(record.data));
  }
  return hash.digest('hex');
}

async function digestAt(place: string): Promise<string> {
  const reader = open(place);
  try {
    return await logicalDigest(reader);
  } finally {
    await reader.close();
  }
}

t.test('the logical digest is SHA-256 of what the document says', async (t) => {
  const dense = scratch.fresh();
  const data = Float32Array.from({ length: 70 * 6 }, (_, index) => index / 3);
  const writer = Dense.create(dense, { dtype: 'float32', itemShape: [2, 3], codec: 'zstd' });
  writer.appendSync(ndarray('float32', [70, 2, 3], data));
  writer.closeSync();
  const rows = Array.from({ length: 70 }, (_, id) =>
    ndarray('float32', [2, 3], data.subarray(id * 6, id * 6 + 6)),
  );
  t.equal(await digestAt(dense), expectedDigest('dense', 'float32', '2,3', rows));

  const scalars = scratch.fresh();
  const times = Dense.create(scalars, { dtype: 'numpy:<M8[ns]', itemShape: [], codec: 'raw' });
  times.appendSync(ndarray('numpy:<M8[ns]', [3], BigInt64Array.of(1n, -5n, 2n ** 60n)));
  times.closeSync();
  t.equal(
    await digestAt(scalars),
    expectedDigest('dense', 'numpy:<M8[ns]', '', [
      ...[1n, -5n, 2n ** 60n].map((time) => ndarray('numpy:<M8[ns]', [], BigInt64Array.of(time))),
    ]),
  );

  // Ragged records around every size at which the way there changes.
  const sizes = [1, 2, 3, 16_000, 17_000, 70_000, 5, 300_000, 1, 1, 65_536, 9];
  const records = sizes.map((size, seed) =>
    ndarray(
      'int32',
      [size, 1],
      Int32Array.from({ length: size }, (_, at) => at * (seed + 1)),
    ),
  );
  for (const dialect of ['2.4', '2.8'] as const) {
    const ragged = scratch.fresh();
    const build = Ragged.create(ragged, { dtype: 'int32', ndim: 2, codec: 'zstd', dialect });
    await build.append(records);
    await build.close();
    t.equal(await digestAt(ragged), expectedDigest('ragged', 'int32', '2', records), dialect);
  }

  const empty = scratch.fresh();
  await Ragged.create(empty, { dtype: 'bool', ndim: 3, codec: 'raw' }).close();
  t.equal(await digestAt(empty), expectedDigest('ragged', 'bool', '3', []), 'nothing');
});

t.test('whatever is another record is another digest', async (t) => {
  const seen = new Map<string, string>();
  const add = async (name: string, make: (place: string) => void): Promise<void> => {
    const place = scratch.fresh();
    make(place);
    const found = await digestAt(place);
    t.notOk(seen.has(found), `${name} is not ${seen.get(found)}`);
    seen.set(found, name);
  };
  const dense = (dtype: 'int8' | 'uint8', itemShape: number[], values: number[]) => {
    return (place: string): void => {
      const writer = Dense.create(place, { dtype, itemShape, codec: 'raw' });
      const count = values.length / itemShape.reduce((product, size) => product * size, 1);
      const data = dtype === 'int8' ? Int8Array.from(values) : Uint8Array.from(values);
      writer.appendSync({ dtype, shape: [count, ...itemShape], data } as NdArray<'int8'>);
      writer.closeSync();
    };
  };
  const ragged = (ndim: number, shapes: number[][]) => {
    return (place: string): void => {
      const writer = Ragged.create(place, { dtype: 'uint8', ndim, codec: 'raw' });
      let next = 1;
      writer.appendSync(
        shapes.map((shape) => {
          const length = shape.reduce((product, size) => product * size, 1);
          const data = Uint8Array.from({ length }, () => next++);
          return ndarray('uint8', shape, data);
        }),
      );
      writer.closeSync();
    };
  };
  await add('four bytes', dense('uint8', [1], [1, 2, 3, 4]));
  await add('of another dtype', dense('int8', [1], [1, 2, 3, 4]));
  await add('of another shape', dense('uint8', [2], [1, 2, 3, 4]));
  await add('of a shape of two', dense('uint8', [1, 2], [1, 2, 3, 4]));
  await add('in another order', dense('uint8', [1], [1, 2, 4, 3]));
  await add('of another value', dense('uint8', [1], [1, 2, 3, 5]));
  await add('one less', dense('uint8', [1], [1, 2, 3]));
  await add('ragged', ragged(1, [[1], [1], [1], [1]]));
  await add('ragged in two', ragged(1, [[2], [2]]));
  await add('ragged in others', ragged(1, [[1], [3]]));
  await add(
    'ragged of two dimensions',
    ragged(2, [
      [2, 1],
      [1, 2],
    ]),
  );
  await add(
    'ragged the other way',
    ragged(2, [
      [1, 2],
      [2, 1],
    ]),
  );
});

// ---- what leaves no trace in it ----

const rebuilds = 12;

t.test('equal over rebuilds, codecs, shards and dialects', async (t) => {
  const count = 53;
  const dense = Int16Array.from({ length: count * 12 }, (_, index) => (index * 7) % 300);
  const texts = Array.from({ length: count }, (_, id) => {
    const length = 3 + ((id * id) % 31);
    return ndarray(
      'uint16',
      [length],
      Uint16Array.from({ length }, (_, at) => (at * id) % 50),
    );
  });
  const dictBytes = await trainDict(
    Array.from({ length: 60 }, (_, id) =>
      Uint8Array.from({ length: 90 }, (_, at) => (at * id) % 50),
    ),
  );
  const codecs: CodecOptions[] = [
    { codec: 'raw' },
    { codec: 'zstd' },
    { codec: 'zstd_dict', dictBytes },
  ];
  const found = { dense: new Set<string>(), ragged: new Set<string>() };
  let made = 0;
  for (const codec of codecs) {
    for (const dataShards of [1, 4, 255]) {
      for (const dialect of ['2.4', '2.8'] as const) {
        for (let rebuild = 0; rebuild < rebuilds; rebuild += 1) {
          // Other appends each time: the records are the same.
          const cuts = [0, ...cutsOf(rebuild, count), count];
          const denseAt = scratch.fresh();
          const options = { ...codec, dataShards, dialect };
          const writer = Dense.create(denseAt, { ...options, dtype: 'int16', itemShape: [3, 4] });
          const raggedAt = scratch.fresh();
          const ragged = Ragged.create(raggedAt, { ...options, dtype: 'uint16', ndim: 1 });
          for (let cut = 1; cut < cuts.length; cut += 1) {
            const [from = 0, until = 0] = [cuts[cut - 1], cuts[cut]];
            const part = dense.subarray(from * 12, until * 12);
            const batch = ndarray('int16', [until - from, 3, 4], part);
            if (rebuild % 2 === 0) writer.appendSync(batch);
            else await writer.append(batch);
            await ragged.append(texts.slice(from, until));
          }
          await writer.close();
          await ragged.close();
          found.dense.add(await digestAt(denseAt));
          found.ragged.add(await digestAt(raggedAt));
          made += 2;
          rmSync(path.dirname(denseAt), { recursive: true });
          rmSync(path.dirname(raggedAt), { recursive: true });
        }
      }
    }
  }
  t.equal(made, rebuilds * 3 * 3 * 2 * 2);
  t.equal(found.dense.size, 1, 'dense: one digest');
  t.equal(found.ragged.size, 1, 'ragged: one digest');
  t.ok(found.ragged.has(expectedDigest('ragged', 'uint16', '1', texts)));
});

/** Where the appends of a rebuild end. */
function cutsOf(rebuild: number, count: number): number[] {
  if (rebuild === 0) return [];
  return Array.from({ length: count - 1 }, (_, index) => index + 1).filter(
    (at) => (at * 2_654_435_761) % 13 < rebuild,
  );
}

// ---- the integrity file ----

interface Container {
  readonly files: ReadonlyMap<string, Buffer>;
  readonly count: number;
}

function readContainer(place: string): Container {
  const files = new Map(
    readdirSync(place).map((name) => [name, readFileSync(path.join(place, name))]),
  );
  const meta = files.get('meta.zr') as Buffer;
  return { files, count: Number(meta.readBigUInt64LE(0)) };
}

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Holds every byte of an integrity file against what docs/format.md says of it. */
function checkFile(t: Test, place: string, expected: string): void {
  const { files, count } = readContainer(place);
  const meta = files.get('meta.zr') as Buffer;
  const side = files.get('integrity.zr') as Buffer;
  const dict = files.get('dict.zr');
  const shards = readPage(meta).dataShards;
  const blocks = Math.ceil(count / 4096);
  t.equal(side.length, 128 + 8 * (count + blocks) + 32, 'as long as it should be');
  t.equal(side.toString('latin1', 0, 8), 'lxintegr');
  t.equal(side.readUInt32LE(8), 1, 'version');
  t.equal(side.readUInt32LE(12), 4096, 'records of a block');
  t.equal(side.readBigUInt64LE(16), BigInt(count));
  t.equal(side.readBigUInt64LE(24), BigInt(dict?.length ?? 0));
  t.equal(side.toString('hex', 32, 64), expected, 'logical digest');
  t.equal(side.toString('hex', 64, 96), sha256(meta.subarray(0, pageBytes)), 'page');
  t.equal(side.toString('hex', 96, 128), dict === undefined ? '0'.repeat(64) : sha256(dict));
  t.equal(side.toString('hex', side.length - 32), sha256(side.subarray(0, -32)), 'its own');
  let wrong = 0;
  for (let id = 0; id < count; id += 1) {
    const entry = meta.subarray(locationAt(id), locationAt(id) + 16);
    const { offset, stored } = readLocation(meta, id);
    const data = files.get(`data_${id % shards}.zr`) as Buffer;
    const bytes = data.subarray(Number(offset), Number(offset) + stored);
    const word = wyhash(wyhash(0n, entry), bytes);
    if (side.readBigUInt64LE(128 + 8 * (id + Math.floor(id / 4096) + 1)) !== word) wrong += 1;
  }
  for (let block = 0; block < blocks; block += 1) {
    const first = block * 4096;
    const end = Math.min(count, first + 4096);
    const word = wyhash(0n, meta.subarray(locationAt(first), locationAt(end)));
    if (side.readBigUInt64LE(128 + 8 * block * 4097) !== word) wrong += 1;
  }
  t.equal(wrong, 0, `${count + blocks} words`);
}

t.test('wyhash gives its published values', async (t) => {
  const published: readonly (readonly [bigint, string, bigint])[] = [
    [0n, '', 0x0409638ee2bde459n],
    [1n, 'a', 0xa8412d091b5fe0a9n],
    [2n, 'abc', 0x32dd92e4b2915153n],
    [3n, 'message digest', 0x8619124089a3a16bn],
    [4n, 'abcdefghijklmnopqrstuvwxyz', 0x7a43afb61d7f5f40n],
    [6n, '1234567890'.repeat(8), 0xc39cab13b115aad3n],
  ];
  for (const [seed, text, hash] of published) t.equal(wyhash(seed, Buffer.from(text)), hash, text);
});

async function makeDense(
  place: string,
  codec: CodecOptions,
  count: number,
  close: Parameters<ReturnType<typeof Dense.create>['close']>[0] | 'sync',
): Promise<void> {
  const writer = Dense.create(place, { ...codec, dtype: 'int16', itemShape: [31], dataShards: 3 });
  const data = Int16Array.from({ length: count * 31 }, (_, index) => (index * index) % 777);
  if (count > 0) await writer.append(ndarray('int16', [count, 31], data));
  if (close === 'sync') writer.closeSync({ integrity: true });
  else await writer.close(close);
}

t.test('the file is byte for byte what the document says, whoever makes it', async (t) => {
  const dictBytes = new TextEncoder().encode('some words that records may begin with'.repeat(4));
  for (const codec of [
    { codec: 'raw' },
    { codec: 'zstd' },
    { codec: 'zstd_dict', dictBytes },
  ] as const) {
    for (const count of [0, 1, 77, 9000]) {
      if (count === 9000 && codec.codec !== 'raw') continue;
      await t.test(`${codec.codec}, ${count} records`, async (t) => {
        const later = scratch.fresh();
        await makeDense(later, codec, count, {});
        t.equal(existsSync(path.join(later, 'integrity.zr')), false, 'only when it is asked for');
        const made = await digest(later);
        t.match(made, { integrity: 'written', records: count, path: later });
        checkFile(t, later, made.logicalDigest);
        const bytes = readFileSync(path.join(later, 'integrity.zr'));
        for (const how of [
          { integrity: true },
          { integrity: true, durable: true },
          'sync',
        ] as const) {
          const atOnce = scratch.fresh();
          await makeDense(atOnce, codec, count, how);
          t.ok(bytes.equals(readFileSync(path.join(atOnce, 'integrity.zr'))), JSON.stringify(how));
          t.same(beside(atOnce), [path.basename(atOnce)], 'nothing else is left');
        }
        t.ok((await verify(later)).ok);
      });
    }
  }
});

t.test('digest keeps a file that fits and never vouches for damage', async (t) => {
  const place = scratch.fresh();
  await makeDense(place, { codec: 'raw' }, 20, {});
  const dry = await digest(place, { dryRun: true });
  t.match(dry, { integrity: 'none' });
  t.notOk(existsSync(path.join(place, 'integrity.zr')), 'a dry run writes nothing');
  t.match(await digest(place), { integrity: 'written', logicalDigest: dry.logicalDigest });
  const names = readdirSync(place).sort();
  const progress: number[] = [];
  const onProgress = ({ recordsDone }: { recordsDone: number }): void => {
    progress.push(recordsDone);
  };
  t.match(await digest(place, { onProgress }), { integrity: 'kept' });
  t.equal(progress.at(-1), 20);

  const data = path.join(place, 'data_1.zr');
  const before = readFileSync(data);
  const after = Buffer.from(before);
  after[70] = (after[70] ?? 0) ^ 4;
  writeFileSync(data, after);
  const refusal = await failureOf(() => digest(place));
  t.match(refusal, { code: 'INTEGRITY', file: 'data_1.zr', record: 4, path: place });
  t.match(refusal.message, /replace the file only if the container is right/);
  t.match(await digest(place, { dryRun: true }), { integrity: 'none' }, 'a dry run only looks');
  t.match(await digest(place, { replace: true }), { integrity: 'written' });
  t.ok((await verify(place)).ok, 'what is there now is what is vouched for');
  writeFileSync(data, before);
  t.notOk((await verify(place)).ok);

  const side = path.join(place, 'integrity.zr');
  writeFileSync(side, 'no such file');
  t.match(await failureOf(() => digest(place)), { code: 'INTEGRITY', file: 'integrity.zr' });
  t.match(await digest(place, { replace: true }), { integrity: 'written' });
  t.same(readdirSync(place).sort(), names, 'no temporary file is left');
});

t.test('a container with a fault gets no file', async (t) => {
  const place = scratch.fresh();
  await makeDense(place, { codec: 'zstd' }, 20, {});
  const meta = readFileSync(path.join(place, 'meta.zr'));
  meta.writeUInt32LE(1, locationAt(11) + 8);
  writeFileSync(path.join(place, 'meta.zr'), meta);
  t.match(await failureOf(() => digest(place)), { code: 'CODEC', record: 11 });
  t.notOk(existsSync(path.join(place, 'integrity.zr')));
});

t.test('digest: wrong arguments, and what the system refuses', async (t) => {
  const place = scratch.fresh();
  await makeDense(place, { codec: 'raw' }, 3, {});
  t.equal(await codeOf(() => digest(`${place}-not`)), 'NOT_FOUND');
  t.equal(await codeOf(() => digest(place, { signal: AbortSignal.abort() })), 'ABORTED');
  // @ts-expect-error It is a boolean.
  t.match(await failureOf(() => digest(place, { replace: 1 })), { field: 'replace' });
  // @ts-expect-error It is a reader.
  t.match(await failureOf(() => logicalDigest(place)), { field: 'reader' });
  const mayDoAll = process.platform === 'win32' || process.getuid?.() === 0;
  if (!mayDoAll) {
    chmodSync(place, 0o555);
    const refusal = await failureOf(() => digest(place));
    t.match(refusal, { code: 'IO', osCode: 'EACCES', file: 'integrity.zr' });
    chmodSync(place, 0o755);
  }
  const writer = Dense.create(scratch.fresh(), { dtype: 'int8', itemShape: [], codec: 'raw' });
  // @ts-expect-error It is a boolean.
  t.match(await failureOf(() => writer.close({ integrity: 'yes' })), { field: 'integrity' });
  writer.abort();
});

t.test('a build that is aborted while it is read back: nothing, or all of it', async (t) => {
  const outcomes = { CLOSED: 0, ok: 0 };
  for (const turns of [0, 1, 2, 3, 5, 8, 13, 21, 34, 55]) {
    const place = scratch.fresh();
    const writer = Dense.create(place, { dtype: 'uint8', itemShape: [2 ** 16], codec: 'zstd' });
    await writer.append(ndarray('uint8', [400, 2 ** 16], new Uint8Array(400 * 2 ** 16)));
    const closing = writer.close({ integrity: true });
    for (let turn = 0; turn < turns; turn += 1) {
      await new Promise((resolve) => setImmediate(resolve));
    }
    writer.abort();
    const outcome = await codeOf(() => closing);
    t.equal(await codeOf(() => writer.close()), outcome, 'the same outcome again');
    if (outcome === 'ok') {
      // Publication had begun.
      t.match(await verify(place), { ok: true, integrity: 'checked' });
      outcomes.ok += 1;
    } else {
      t.equal(outcome, 'CLOSED');
      t.same(beside(place), [], 'nothing is at the path or beside it');
      outcomes.CLOSED += 1;
    }
  }
  t.ok(outcomes.CLOSED > 0, 'at once it can only be closed');
  t.comment(JSON.stringify(outcomes));
});

// ---- Python ----

/** Reads a container with Python loaderx alone and computes the digest as docs/format.md defines it. */
const script = `
import hashlib, sys
import numpy
generation, kind, path, dtype, shape = sys.argv[1:]
if generation == "2.4":
    from loaderx.zrecord import Dense, Ragged
    store = (Dense if kind == "dense" else Ragged).open(path)
    count = len(store)
    records = [store[i] for i in range(count)]
else:
    from loaderx import Allocator
    from loaderx.zrecord import DenseStore, RaggedStore
    store = (DenseStore if kind == "dense" else RaggedStore)(path)
    count = len(store)
    batch = store.bind(Allocator("cpu"))[:]
    if kind == "dense":
        records = list(numpy.from_dlpack(batch))
    else:
        records, values, at = [], numpy.from_dlpack(batch.values), 0
        for size in numpy.from_dlpack(batch.shapes).tolist():
            length = int(numpy.prod(size))
            records.append(values[at:at + length].reshape(size))
            at += length
digest = hashlib.sha256(f"loaderx logical digest 1\\n{kind}\\n{dtype}\\n{shape}\\n{count}\\n".encode())
for record in records:
    if kind == "ragged":
        digest.update(numpy.array(record.shape, "<u8").tobytes())
    digest.update(numpy.ascontiguousarray(record).tobytes())
print(digest.hexdigest())
`;

for (const dialect of ['2.4', '2.8'] as const) {
  const installed = path.join(root, '.deps', `python-${dialect}`, 'installed.json');
  const skip = existsSync(installed) ? false : `npm run interop installs Python loaderx ${dialect}`;
  t.test(
    `Python ${dialect} opens containers with the file, and computes the same digest`,
    { skip },
    async (t) => {
      const { environment } = JSON.parse(readFileSync(installed, 'utf8')) as {
        readonly environment: { readonly python: string; readonly env: NodeJS.ProcessEnv };
      };
      const codecs: CodecOptions[] = [
        { codec: 'raw' },
        { codec: 'zstd' },
        { codec: 'zstd_dict', dictBytes: new TextEncoder().encode('0123456789'.repeat(9)) },
      ];
      for (const codec of codecs) {
        for (const kind of ['dense', 'ragged'] as const) {
          const place = scratch.fresh();
          const [dtype, shape] = await makeForPython(place, codec, kind, dialect);
          t.ok(existsSync(path.join(place, 'integrity.zr')));
          const said = execFileSync(
            environment.python,
            ['-c', script, dialect, kind, place, dtype, shape],
            { env: { ...process.env, ...environment.env }, encoding: 'utf8' },
          );
          t.equal(said.trim(), await digestAt(place), `${kind} ${codec.codec}`);
        }
      }
    },
  );
}

async function makeForPython(
  place: string,
  codec: CodecOptions,
  kind: 'dense' | 'ragged',
  dialect: Dialect,
): Promise<[dtype: DType, shape: string]> {
  const options = { ...codec, dialect, dataShards: 3 };
  if (kind === 'dense') {
    const writer = Dense.create(place, { ...options, dtype: 'float32', itemShape: [4, 5] });
    const data = Float32Array.from({ length: 200 }, (_, index) => Math.sin(index));
    await writer.append(ndarray('float32', [10, 4, 5], data));
    await writer.close({ integrity: true });
    return ['float32', '4,5'];
  }
  const writer = Ragged.create(place, { ...options, dtype: 'int64', ndim: 2 });
  await writer.append(
    Array.from({ length: 10 }, (_, id) =>
      ndarray('int64', [1 + (id % 3), 2], new BigInt64Array(2 * (1 + (id % 3))).fill(BigInt(id))),
    ),
  );
  await writer.close({ integrity: true });
  return ['int64', '2'];
}
