// The long form: folders of pictures beside Pillow, Parquet files of ours as pyarrow reads them. Arrays beside NumPy
// are in import-npy.test.ts, tables in import-tables.test.ts.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { ask } from '../scripts/child.mjs';
import { ensurePythonEnvironment } from '../scripts/python-environment.mjs';
import { type DType, dtypeOf } from '../ts/dtype.js';
import { npyBytes } from '../ts/exporters/npy.js';
import { exportParquet } from '../ts/exporters/parquet.js';
import { importFiles } from '../ts/importers/import.js';
import { Dense, type NdArray, open, Ragged } from '../ts/index.js';
import { told } from './support/command.js';
import { bytesOf } from './support/hub.js';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
if (isFull) t.setTimeout(3_600_000);
const here = path.join(import.meta.dirname, 'importers');
const raw = { codec: 'raw' } as const;

function sha256(...pieces: readonly ArrayBufferView[]): string {
  const hash = createHash('sha256');
  for (const { buffer, byteOffset, byteLength } of pieces) {
    hash.update(new Uint8Array(buffer as ArrayBuffer, byteOffset, byteLength));
  }
  return hash.digest('hex');
}

function pythonEnvironment(): ReturnType<typeof ensurePythonEnvironment> {
  return ensurePythonEnvironment({
    name: 'importers',
    versionMin: [3, 10],
    pinned: path.join(here, 'requirements.txt'),
    probe: 'import numpy, pyarrow.parquet, PIL.Image',
  });
}

/** What a script of test/importers answers; undefined where there is no Python for it. */
function answerOf(t: Test, script: string, ...args: readonly string[]): unknown {
  const environment = pythonEnvironment();
  if (environment === null) {
    t.pass('skipped: there is no Python 3.10');
    return undefined;
  }
  const { python, env } = environment;
  const answer = ask(python, [path.join(here, script), ...args], { env });
  if (!answer.ok) throw new Error(answer.output);
  return JSON.parse(answer.stdout);
}

const long = { skip: isFull ? false : 'the long form: LOADERX_FULL=1' };

interface Seen {
  readonly name: string;
  readonly mode: string;
  readonly shape: readonly number[];
  readonly sha256: string;
  readonly fitted: string;
}

t.test(
  'folders of pictures are what Pillow reads; resized, as near as kernels go',
  long,
  async (t) => {
    const folder = scratch.folder();
    const [height, width] = [48, 64];
    const seen = answerOf(t, 'pictures.py', folder, String(height), String(width)) as
      | Seen[]
      | undefined;
    if (seen === undefined) return;
    const all = path.join(folder, 'pictures');
    for (const mode of new Set(seen.map((each) => each.mode))) {
      const own = seen.filter((each) => each.mode === mode);
      const source = scratch.folder();
      for (const { name } of own) copyFileSync(path.join(all, name), path.join(source, name));
      const target = scratch.fresh('out');
      await importFiles(source, target, raw);
      await using reader = open(path.join(target, 'image'));
      for (const [id, name] of readdirSync(source).sort().entries()) {
        const wanted = own.find((each) => each.name === name);
        const { shape, data } = reader.record(id);
        t.strictSame([name, shape, sha256(data)], [name, wanted?.shape, wanted?.sha256]);
      }
    }
    const target = scratch.fresh('out');
    await importFiles(all, target, { ...raw, size: [height, width], mode: 'RGB' });
    await using reader = open(path.join(target, 'image'));
    const names = readdirSync(all).sort();
    let worst = 0;
    let worstMean = 0;
    let equal = 0;
    for (const [id, name] of names.entries()) {
      const pixels = reader.record(id).data as Uint8Array;
      const wanted = Buffer.from(seen.find((each) => each.name === name)?.fitted ?? '', 'base64');
      t.equal(pixels.length, wanted.length);
      let most = 0;
      let sum = 0;
      for (const [at, pixel] of pixels.entries()) {
        const difference = Math.abs(pixel - (wanted[at] ?? 0));
        most = Math.max(most, difference);
        sum += difference;
      }
      const mean = sum / pixels.length;
      if (most === 0) equal += 1;
      worst = Math.max(worst, most);
      worstMean = Math.max(worstMean, mean);
      t.comment(`${name}: ${most} at most, ${mean.toFixed(3)} on average`);
    }
    t.comment(
      `${equal} of ${names.length} equal, ${worst} at most, ${worstMean.toFixed(3)} on average at most`,
    );
    t.ok(worstMean < meanMax, 'docs/importing.md has the figures');
  },
);

/** Of the 256 steps of a channel; what is measured is in docs/importing.md. */
const meanMax = 8;

t.test('Parquet files are what pyarrow reads', long, async (t) => {
  const dtypes = [
    ...['bool', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64'],
    ...['float16', 'float32', 'float64'],
  ] as readonly DType[];
  const folder = scratch.folder();
  const wanted = new Map<string, { dims: readonly unknown[]; sha256: string }>();
  const itemsOf = (dtype: DType, shape: readonly number[], seed: number): NdArray => {
    const { itemBytes, constructorOf } = dtypeOf(dtype);
    const count = shape.reduce((product, size) => product * size, 1);
    const bytes = Uint8Array.from(bytesOf(count * itemBytes, seed));
    if (dtype === 'bool') for (const [at, byte] of bytes.entries()) bytes[at] = byte & 1;
    return { dtype, shape, data: new constructorOf(bytes.buffer) } as NdArray;
  };
  const count = 50;
  for (const dtype of dtypes) {
    for (const shape of [[], [1], [7], [3, 2], [2, 3, 4]]) {
      const name = `${dtype}-${shape.join('x')}`;
      const writer = Dense.create(path.join(folder, name), { ...raw, dtype, itemShape: shape });
      const items = itemsOf(dtype, [count, ...shape], shape.length + 1);
      await writer.append(items);
      await writer.close();
      wanted.set(name, { dims: shape, sha256: sha256(items.data) });
    }
    const name = `${dtype}-ragged`;
    const writer = Ragged.create(path.join(folder, name), { ...raw, dtype, ndim: 2 });
    const records = Array.from({ length: count }, (_, at) =>
      itemsOf(dtype, [1 + (at % 3), 1 + (at % 4)], at + 1),
    );
    await writer.append(records);
    await writer.close();
    const rows = records.map(({ shape }) => shape[0]);
    const inner = records.flatMap(({ shape }) => new Array(shape[0]).fill(shape[1]));
    wanted.set(name, { dims: [rows, inner], sha256: sha256(...records.map(({ data }) => data)) });
  }
  for (const compression of ['gzip', 'none'] as const) {
    const file = scratch.fresh('a.parquet');
    await exportParquet(folder, file, { compression });
    const read = answerOf(t, 'read-parquet.py', file) as
      | Record<string, { dims: unknown[]; sha256: string; dtype: string }>
      | undefined;
    if (read === undefined) return;
    for (const [name, { dims, sha256: sum }] of wanted) {
      const own = read[name];
      t.strictSame(
        [name, own?.dtype, own?.dims, own?.sha256],
        [name, name.split('-')[0], dims, sum],
      );
    }
  }
});

t.test('what the help of cat says to Python, Python does in a pipe', long, async (t) => {
  const environment = pythonEnvironment();
  if (environment === null) return;
  const container = scratch.fresh('c');
  const writer = Dense.create(container, { ...raw, dtype: 'int16', itemShape: [2] });
  await writer.append({ dtype: 'int16', shape: [2, 2], data: Int16Array.of(1, 2, 3, -4) });
  await writer.close();
  const pieces: Uint8Array[] = [];
  for await (const bytes of npyBytes(container)) pieces.push(Uint8Array.from(bytes));
  const { out } = await told('cat', '--help');
  const said = /np\.load\(.*?\(\)\)\)/.exec(out)?.[0] ?? '';
  const program = `import io, sys, numpy as np; print(${said}.tolist())`;
  const { python, env } = environment;
  const { stdout } = spawnSync(python, ['-c', program], { env, input: Buffer.concat(pieces) });
  t.equal(stdout.toString().trim(), '[[1, 2], [3, -4]]');
});
