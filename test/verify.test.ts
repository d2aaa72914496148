// verify(): what is sound passes, and whatever is wrong is found and named. The kinds of damage are those
// of support/damage.ts; single changed bytes are drawn at random, and the seed is printed.
//
//     LOADERX_SEED=text              the same bytes again
//     LOADERX_VERIFY_CHANGES=10000   single-byte changes, 2,000 unless given
import { randomBytes } from 'node:crypto';
import { cpSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import {
  type CodecOptions,
  Dense,
  type DenseBatch,
  digest,
  info,
  ndarray,
  open,
  Ragged,
  type RaggedBatch,
  trainDict,
  type VerifyReport,
  verify,
} from '../ts/index.js';
import { Random } from './interop/random.mjs';
import { type BaseName, makeBases } from './support/bases.js';
import { type Damage, damages, type Expected } from './support/damage.js';
import { edited, type Files, writeFiles } from './support/files.mjs';
import { fixture, readFixture, withoutFixtures } from './support/fixtures.js';
import { codeOf, failureOf } from './support/outcome.js';
import { locationAt, makeLocation, pageBytes, readLocation } from './support/page.mjs';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const seed = process.env.LOADERX_SEED ?? randomBytes(4).toString('hex');
t.comment(`LOADERX_SEED=${seed}`);

function sound(t: Test, report: VerifyReport, name: string): void {
  t.same([report.ok, report.faultCount, report.faults], [true, 0, []], name);
}

// ---- sound containers ----

t.test('sound containers pass, with and without an integrity file', async (t) => {
  const folder = scratch.folder();
  for (const [name, files] of await makeBases(scratch.folder())) {
    const place = path.join(folder, name);
    writeFiles(place, files);
    const report = await verify(place);
    sound(t, report, name);
    t.same(report.warnings, [], `${name}: no warnings`);
    t.equal(report.integrity, 'none');
    t.ok((report.records ?? 0) > 0);
    const { logicalDigest } = await digest(place);
    const again = await verify(place);
    sound(t, again, `${name} with integrity.zr`);
    t.match(again, { integrity: 'checked', logicalDigest });
  }
});

t.test('empty, and with as many shards as there can be', async (t) => {
  for (const count of [0, 1, 300]) {
    const place = scratch.fresh();
    const writer = Dense.create(place, {
      dtype: 'uint8',
      itemShape: [7],
      codec: 'zstd',
      dataShards: 255,
    });
    if (count > 0) writer.appendSync(ndarray('uint8', [count, 7], new Uint8Array(count * 7)));
    await writer.close({ integrity: true });
    const report = await verify(place);
    sound(t, report, `${count} records`);
    t.match(report, { records: count, integrity: 'checked' });
  }
});

t.test('containers of the original pass', { skip: withoutFixtures }, async (t) => {
  for (const set of ['containers', 'containers-2.8']) {
    const names = readdirSync(fixture(set), { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
    t.ok(names.length > 20);
    for (const name of names) sound(t, await verify(fixture(`${set}/${name}`)), `${set}/${name}`);
  }
});

// ---- every kind of damage ----

/**
 * Damage that the structure does not show: another record, or the same one by other bytes, and nothing
 * that is not of the format. Exactly these pass without an integrity file.
 */
const unseen = new Set([
  'data_bit_flip_raw',
  'frame_literal_flip',
  'dict_content_altered',
  'ragged_dims_swapped_ok',
  'schema_dtype_big',
  'schema_dtype_same_width',
  'json_same_width',
]);

/** Damage to what no reader uses: it passes, with a warning or without, integrity file or not. */
const unused = new Set([
  'meta_trailing_16',
  'meta_trailing_7',
  'data_trailing',
  'extra_unrelated',
  'open_dense_as_ragged',
  'open_ragged_as_dense',
]);

/** Accepted although something is there that no writer leaves: the warning says so. */
const warned = new Map([
  ['meta_trailing_16', 'meta.zr: 16 bytes behind the location table'],
  ['meta_trailing_7', 'meta.zr: 7 bytes behind the location table'],
  ['data_trailing', 'data_0.zr: 8 bytes behind its tail'],
  ['schema_padding_nonzero', 'meta.zr: 4 bytes behind the schema that are not zero'],
  ['length_one_less', 'data_0.zr: 12 bytes that no record names'],
]);

/** What verify must say: a code for opening, or for single records. */
function wantedFaults(expected: Expected, recordCount: number): [string, number | undefined][] {
  if (expected.open !== 'accepts') return [[expected.open, undefined]];
  const wanted: [string, number | undefined][] = [];
  for (let id = 0; id < (expected.length ?? recordCount); id += 1) {
    const record = expected.records.get(id) ?? expected.every;
    if (record !== 'same' && record !== 'other') wanted.push([record, id]);
  }
  return wanted;
}

function checkDamage(
  t: Test,
  damage: Damage,
  expected: Expected,
  report: VerifyReport,
  recordCount: number,
): void {
  const said = report.faults.map(({ code, record }) => [code, record]);
  const about = `${damage.name}: ${damage.what}`;
  const wanted = damage.openAs === undefined ? wantedFaults(expected, recordCount) : [];
  for (const [code, record] of wanted) {
    const isThere = report.faults.some(
      (fault) =>
        fault.record === record && (fault.code === code || /lies over/.test(fault.message)),
    );
    t.ok(isThere, `${about}: ${code} of record ${record} is among ${JSON.stringify(said)}`);
  }
  for (const fault of report.faults) {
    const names = fault.file ?? /folder/.exec(fault.message)?.[0];
    t.ok(names, `${about}: names the file: ${fault.message}`);
    t.notMatch(fault.message, report.path, 'without the path that the report has');
  }
  const isOther =
    expected.open === 'accepts' &&
    (expected.every === 'other' || [...expected.records.values()].includes('other'));
  if (damage.openAs !== undefined && !unused.has(damage.name)) return;
  if (wanted.length === 0 && !isOther) sound(t, report, `${about}: passes`);
  if (wanted.length === 0 && isOther && !unseen.has(damage.name)) {
    t.notOk(report.ok, `${about}: found by its location`);
  }
  if (unseen.has(damage.name)) sound(t, report, `${about}: cannot be told`);
}

async function verifyDamaged(place: string, damage: Damage): Promise<VerifyReport | string> {
  try {
    return await verify(place);
  } catch (error) {
    return `${damage.name}: verify threw ${String(error)}`;
  }
}

t.test('each kind of damage is found and named', async (t) => {
  const folder = scratch.folder();
  const bases = await makeBases(scratch.folder());
  const vouched = new Map<BaseName, Files>();
  const counts = new Map<BaseName, number>();
  for (const [name, files] of bases) {
    const place = path.join(folder, name);
    writeFiles(place, files);
    const { records } = await digest(place);
    counts.set(name, records);
    const side = readFileSync(path.join(place, 'integrity.zr'));
    vouched.set(name, new Map([...files, ['integrity.zr', side]]));
  }
  for (const damage of damages) {
    if (damage.isPosix && process.platform === 'win32') continue;
    const files = bases.get(damage.base) as Files;
    const edits = damage.edits(files);
    const place = path.join(folder, damage.name);
    writeFiles(place, edited(files, edits));
    const report = await verifyDamaged(place, damage);
    if (typeof report === 'string') {
      t.fail(report);
      continue;
    }
    checkDamage(t, damage, damage.expected, report, counts.get(damage.base) ?? 0);
    const warning = warned.get(damage.name);
    if (warning !== undefined) {
      const said = report.warnings.map(
        ({ file, bytes, message }) => `${file}: ${bytes} ${message}`,
      );
      t.ok(said.includes(warning), `${damage.name}: warns: ${said.join('; ')}`);
    }

    // The same with the integrity file of the intact container: nothing that a reader uses can change.
    const second = path.join(folder, `${damage.name}-vouched`);
    writeFiles(second, edited(vouched.get(damage.base) as Files, edits));
    const vouchedReport = await verifyDamaged(second, damage);
    if (typeof vouchedReport === 'string') t.fail(vouchedReport);
    else if (unused.has(damage.name)) sound(t, vouchedReport, `${damage.name}: nobody uses it`);
    else {
      t.notOk(vouchedReport.ok, `${damage.name}: found with an integrity file`);
      const changed = new Set(edits.map(({ file }) => file));
      const named = vouchedReport.faults.some(
        ({ file, message }) =>
          (file !== undefined && changed.has(file)) ||
          [...changed].some((name) => message.includes(name)),
      );
      t.ok(
        named,
        `${damage.name}: names ${[...changed]}: ${JSON.stringify(vouchedReport.faults[0])}`,
      );
    }
    rmSync(place, { recursive: true, force: true });
    rmSync(second, { recursive: true, force: true });
  }
});

interface Manifest {
  readonly cases: readonly {
    readonly name: string;
    readonly base: BaseName;
    readonly recommended: string;
  }[];
  readonly bases: Readonly<{ [name: string]: { readonly records: readonly unknown[] } }>;
}

t.test('damaged containers of the original', { skip: withoutFixtures }, async (t) => {
  const manifest = readFixture<Manifest>('malformed/manifest.json');
  const known = new Map(damages.map((damage) => [damage.name, damage]));
  const sides = new Map<string, Buffer>();
  for (const base of Object.keys(manifest.bases)) {
    const place = path.join(scratch.folder(), base);
    cpSync(fixture(`malformed/${base}`), place, { recursive: true });
    sound(t, await verify(place), base);
    await digest(place);
    sides.set(base, readFileSync(path.join(place, 'integrity.zr')));
  }
  let found = 0;
  for (const { name, base, recommended } of manifest.cases) {
    const damage = known.get(name);
    if (damage === undefined) {
      t.fail(`${name} is not in the table`);
      continue;
    }
    const expected = damage.ofFixture ?? damage.expected;
    const report = await verify(fixture(`malformed/${name}`));
    checkDamage(t, damage, expected, report, manifest.bases[base]?.records.length ?? 0);
    // The fixtures' own words: an error that a reader must meet is one that verify must find.
    if (/^error/.test(recommended) && !/or (accept|wrong)/.test(recommended)) {
      if (damage.differs === undefined && damage.openAs === undefined) {
        t.notOk(report.ok, `${name}: ${recommended}`);
      }
    }
    if (!report.ok) found += 1;

    const place = path.join(scratch.folder(), name);
    cpSync(fixture(`malformed/${name}`), place, { recursive: true, verbatimSymlinks: true });
    writeFileSync(path.join(place, 'integrity.zr'), sides.get(base) ?? '');
    const vouched = await verify(place);
    if (unused.has(name)) sound(t, vouched, `${name}: nobody uses it`);
    else t.notOk(vouched.ok, `${name}: found with an integrity file`);
  }
  t.comment(`${found} of ${manifest.cases.length} found without an integrity file`);
});

// ---- single bytes ----

/** Containers of which each byte is used. */
async function changeable(): Promise<string[]> {
  const places: string[] = [];
  const make = async (
    name: string,
    codec: CodecOptions,
    dialect: '2.4' | '2.8',
    isRagged: boolean,
  ): Promise<void> => {
    const place = scratch.fresh(name);
    const options = { ...codec, dialect, dataShards: 3 } as const;
    const data = Uint8Array.from({ length: 40 * 20 }, (_, index) => (index * index) >> 3);
    if (isRagged) {
      const writer = Ragged.create(place, { ...options, dtype: 'uint8', ndim: 2 });
      await writer.append(
        Array.from({ length: 40 }, (_, id) => {
          const rows = 1 + (id % 4);
          return ndarray('uint8', [rows, 5], data.subarray(id * 20, id * 20 + rows * 5));
        }),
      );
      await writer.close({ integrity: true });
    } else {
      const writer = Dense.create(place, { ...options, dtype: 'uint8', itemShape: [20] });
      await writer.append(ndarray('uint8', [40, 20], data));
      await writer.close({ integrity: true });
    }
    places.push(place);
  };
  const texts = Array.from({ length: 200 }, (_, id) =>
    new TextEncoder().encode(`record ${id} of many that are alike`.repeat(3)),
  );
  const dictBytes = await trainDict(texts);
  await make('dense-raw', { codec: 'raw' }, '2.4', false);
  await make('dense-zstd', { codec: 'zstd' }, '2.8', false);
  await make('ragged-raw', { codec: 'raw' }, '2.8', true);
  await make('ragged-dict', { codec: 'zstd_dict', dictBytes }, '2.4', true);
  return places;
}

/** Which record a byte of a container belongs to: of a location or of stored bytes. */
function recordAt(
  files: ReadonlyMap<string, Buffer>,
  file: string,
  at: number,
): number | undefined {
  const meta = files.get('meta.zr') as Buffer;
  if (file === 'meta.zr') return at < pageBytes ? undefined : Math.floor((at - pageBytes) / 16);
  const shard = /^data_(\d+)\.zr$/.exec(file)?.[1];
  if (shard === undefined) return undefined;
  for (let id = Number(shard); id < 40; id += 3) {
    const { offset, stored } = readLocation(meta, id);
    if (at >= Number(offset) && at < Number(offset) + stored) return id;
  }
  throw new Error(`byte ${at} of ${file} is nobody's`);
}

const changes = Number(process.env.LOADERX_VERIFY_CHANGES ?? 2_000);

t.test(`${changes} changed bytes, each found and named (B96)`, async (t) => {
  const random = new Random(`${seed} changes`);
  const places = await changeable();
  const contents = places.map(
    (place) =>
      new Map(readdirSync(place).map((name) => [name, readFileSync(path.join(place, name))])),
  );
  const perFile = new Map<string, number>();
  let missed = 0;
  for (let change = 0; change < changes; change += 1) {
    const index = random.between(0, places.length - 1);
    const place = places[index] ?? '';
    const files = contents[index] ?? new Map<string, Buffer>();
    const file = random.pick([...files.keys()]);
    const before = files.get(file) as Buffer;
    const at = random.between(0, before.length - 1);
    const byte = (before[at] ?? 0) ^ (1 + random.between(0, 254));
    const after = Buffer.from(before);
    after[at] = byte;
    writeFileSync(path.join(place, file), after);
    const report = await verify(place);
    writeFileSync(path.join(place, file), before);
    const record = recordAt(files, file, at);
    const isNamed = report.faults.some(
      (fault) => fault.file === file && (record === undefined || fault.record === record),
    );
    if (report.ok || !isNamed) {
      missed += 1;
      if (missed <= 5) {
        t.fail(
          `byte ${at} of ${path.basename(place)}/${file} from ${before[at]} to ${byte}: ${JSON.stringify(report.faults)}`,
        );
      }
    }
    const kind = file.replace(/\d+/, 'N');
    perFile.set(kind, (perFile.get(kind) ?? 0) + 1);
  }
  t.equal(missed, 0, `${changes - missed} of ${changes} found and named`);
  t.comment([...perFile].map(([file, count]) => `${file} ${count}`).join(', '));
  for (const place of places)
    sound(t, await verify(place), `${path.basename(place)} is whole again`);
});

// ---- hostile and large ----

t.test('100,000 locations at one frame: found, and not decoded 100,000 times (B15)', async (t) => {
  const place = scratch.fresh();
  const recordBytes = 2 ** 20;
  const count = 100_000;
  const writer = Dense.create(place, {
    dtype: 'uint8',
    itemShape: [recordBytes],
    codec: 'zstd',
    dataShards: 1,
  });
  await writer.append(ndarray('uint8', [1, recordBytes], new Uint8Array(recordBytes).fill(7)));
  await writer.close();
  const meta = readFileSync(path.join(place, 'meta.zr'));
  const location = readLocation(meta, 0);
  const hostile = Buffer.alloc(pageBytes + count * 16);
  meta.copy(hostile, 0, 0, pageBytes);
  hostile.writeBigUInt64LE(BigInt(count), 0);
  for (let id = 0; id < count; id += 1) {
    makeLocation(location).copy(hostile, locationAt(id));
  }
  writeFileSync(path.join(place, 'meta.zr'), hostile);
  const report = await verify(place);
  t.match(report, { ok: false, faultCount: count - 1, records: count });
  t.equal(report.faults.length, 1000, 'told one by one up to faultsMax');
  t.match(report.faults[0], { code: 'MALFORMED', file: 'meta.zr', record: 1 });
  t.match(report.faults[0]?.message, /record 1 lies over record 0 in data_0\.zr/);
  // A frame that cannot be decoded fails once for each time that it is tried.
  const file = path.join(place, 'data_0.zr');
  const frame = readFileSync(file);
  writeFileSync(file, Buffer.concat([frame.subarray(0, 4), Buffer.alloc(frame.length - 4, 0xff)]));
  const tried = await verify(place);
  t.equal(tried.faultCount, count, 'the same, and one frame that was tried: once');
  writeFileSync(file, frame);
  const reader = open(place, { maxBatchBytes: 2 ** 26 });
  t.equal(
    await codeOf(() => reader.gather(Uint32Array.from({ length: count }, (_, id) => id))),
    'TOO_LARGE',
    'and a gather of all is refused before it takes memory',
  );
  await reader.close();
});

t.test(
  'many blocks, in many calls: faults keep their records, and few are told when asked',
  async (t) => {
    const place = scratch.fresh();
    const count = 20_000;
    const writer = Dense.create(place, { dtype: 'int32', itemShape: [3], codec: 'raw' });
    await writer.append(
      ndarray(
        'int32',
        [count, 3],
        Int32Array.from({ length: count * 3 }, (_, index) => index),
      ),
    );
    await writer.close({ integrity: true });
    sound(t, await verify(place), 'whole');
    const wrong = [3, 4095, 4096, 9000, 19_999];
    for (const id of wrong) {
      const file = path.join(place, `data_${id % 4}.zr`);
      const bytes = readFileSync(file);
      const at = Math.floor(id / 4) * 12 + 5;
      bytes[at] = (bytes[at] ?? 0) ^ 0x10;
      writeFileSync(file, bytes);
    }
    const meta = readFileSync(path.join(place, 'meta.zr'));
    meta.writeBigUInt64LE(12n, locationAt(12_345));
    writeFileSync(path.join(place, 'meta.zr'), meta);
    const report = await verify(place);
    const said = report.faults.map(({ code, record, file }) => `${code} ${record} ${file}`);
    t.same(said, [
      'MALFORMED 12345 meta.zr',
      ...wrong.slice(0, 4).map((id) => `INTEGRITY ${id} data_${id % 4}.zr`),
      'INTEGRITY 19999 data_3.zr',
    ]);
    const few = await verify(place, { faultsMax: 2 });
    t.match(few, { faultCount: 6, ok: false });
    t.equal(few.faults.length, 2);
    const none = await verify(place, { faultsMax: 0 });
    t.match(none, { faultCount: 6, ok: false, faults: [] });

    const progress: number[] = [];
    await verify(place, { onProgress: ({ recordsDone }) => progress.push(recordsDone) });
    t.equal(progress.at(-1), count);
    t.same(
      [...progress].sort((a, b) => a - b),
      progress,
      'ascends',
    );
  },
);

t.test('options, and what is no fault', async (t) => {
  const place = scratch.fresh();
  const writer = Dense.create(place, { dtype: 'int32', itemShape: [], codec: 'raw' });
  writer.appendSync(ndarray('int32', [3], new Int32Array(3)));
  await writer.close();
  t.equal(await codeOf(() => verify(path.join(place, 'nothing'))), 'NOT_FOUND');
  t.equal(await codeOf(() => verify(place, { signal: AbortSignal.abort() })), 'ABORTED');
  t.match(await failureOf(() => verify(place, { faultsMax: -1 })), { field: 'faultsMax' });
  t.match(await failureOf(() => verify(place, { faultsMax: 1.5 })), { field: 'faultsMax' });
  // @ts-expect-error There is no such option.
  t.match(await failureOf(() => verify(place, { fast: true })), { field: 'fast' });
  // @ts-expect-error It is a function.
  t.match(await failureOf(() => verify(place, { onProgress: 7 })), { field: 'onProgress' });
  t.equal(
    await codeOf(() =>
      verify(place, {
        onProgress: () => {
          throw new RangeError('enough');
        },
      }),
    ),
    'threw RangeError',
  );
  sound(t, await verify(place), 'the container is released each time');
  rmSync(place, { recursive: true });
});

// ---- readers that verify what they read ----

t.test('a reader that verifies gives what is vouched for, and nothing else', async (t) => {
  for (const place of await changeable()) {
    const name = path.basename(place);
    const plain = open(place);
    const careful = open(place, { verify: 'digest' });
    const all = Array.from({ length: 40 }, (_, id) => id);
    t.same(dataOf(await careful.gather(all)), dataOf(plain.gatherSync(all)), `${name}: async`);
    t.same(dataOf(careful.gatherSync([7, 7, 0])), dataOf(plain.gatherSync([7, 7, 0])), 'sync');
    t.same(careful.record(39), plain.record(39), 'one');
    await plain.close();
    await careful.close();

    const file = path.join(place, 'data_1.zr');
    const before = readFileSync(file);
    const after = Buffer.from(before);
    after[after.length - 1] = (after.at(-1) ?? 0) ^ 1;
    const lastOfShard = 37;
    writeFileSync(file, after);
    const reader = open(place, { verify: 'digest' });
    const failure = await failureOf(() => reader.gather([0, lastOfShard]));
    t.match(failure, {
      code: 'INTEGRITY',
      file: 'data_1.zr',
      shard: 1,
      record: lastOfShard,
      path: place,
    });
    t.match(await failureOf(() => reader.gatherSync([lastOfShard])), { code: 'INTEGRITY' });
    t.match(await failureOf(() => reader.record(lastOfShard)), { code: 'INTEGRITY' });
    t.equal(await codeOf(() => reader.gather([0, 1, 2, 3])), 'ok', 'the others are read');
    await reader.close();
    writeFileSync(file, before);
  }
});

function dataOf(batch: DenseBatch | RaggedBatch): unknown {
  return 'offsets' in batch ? [...batch].map(({ shape, data }) => [shape, data]) : batch.data;
}

t.test('what a reader that verifies is not opened with', async (t) => {
  const [place = ''] = await changeable();
  const opened = (): void => open(place, { verify: 'digest' }).closeSync();
  t.equal(await codeOf(opened), 'ok');
  for (const openAs of [
    () => Dense.open(place, { verify: 'digest', dtype: 'uint8' }).closeSync(),
    () => Dense.open(place, { itemShape: [20], verify: undefined }).closeSync(),
  ]) {
    t.equal(await codeOf(openAs), 'ok');
  }
  // @ts-expect-error There is one way to verify.
  t.match(await failureOf(() => open(place, { verify: true })), { field: 'verify' });

  const side = path.join(place, 'integrity.zr');
  const intact = readFileSync(side);
  for (const [name, bytes, pattern] of [
    ['empty', Buffer.alloc(0), /it has 0 bytes/],
    ['cut', intact.subarray(0, 200), /it has 200 bytes/],
    ['longer', Buffer.concat([intact, Buffer.alloc(8)]), /which are not those of 40 records/],
    ['changed', flipped(intact, 150), /its own hash does not fit it/],
  ] as const) {
    writeFileSync(side, bytes);
    const failure = await failureOf(opened);
    t.match(failure, { code: 'INTEGRITY', file: 'integrity.zr', path: place }, name);
    t.match(failure.message, pattern, name);
    t.match((await verify(place)).integrity, 'unusable', `${name}: verify says so too`);
  }
  // Far longer than its head tells: it is not read to its end, which would take minutes.
  if (process.platform === 'linux') {
    for (const bytes of [intact, Buffer.alloc(0)]) {
      writeFileSync(side, bytes);
      truncateSync(side, 2 ** 36);
      t.match((await verify(place)).integrity, 'unusable');
      t.match((await info(place)).integrity, 'damaged');
      t.equal(await codeOf(() => digest(place)), 'INTEGRITY');
    }
  }
  writeFileSync(side, intact);
  const signal = AbortSignal.abort();
  for (const look of [verify, info, digest]) {
    t.equal(await codeOf(() => look(place, { signal })), 'ABORTED', look.name);
  }
  rmSync(side);
  const without = await failureOf(opened);
  t.match(without, { code: 'INTEGRITY', file: 'integrity.zr' });
  t.match(without.message, /npx loaderx digest/, 'says what to do');
  t.match(await verify(place), { integrity: 'none', ok: true });
  writeFileSync(side, intact);

  const meta = path.join(place, 'meta.zr');
  const page = readFileSync(meta);
  writeFileSync(meta, flipped(page, 4000));
  t.match(
    await failureOf(opened),
    { code: 'INTEGRITY', file: 'meta.zr' },
    'padding that is not zero',
  );
  writeFileSync(meta, flipped(page, locationAt(5) + 4));
  const reader = open(place, { verify: 'digest' });
  t.match(await failureOf(() => reader.gather([5])), { record: 5, file: 'meta.zr' });
  await reader.close();
  writeFileSync(meta, page);
  t.equal(await codeOf(opened), 'ok');
});

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes);
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}
