// Random sequences of create, append, close, slice and gather, held against plain arrays.
//
//     LOADERX_SEED=…          the seed, printed below
//     LOADERX_MODEL_FIRST=…   the first sequence, 0 unless given
//     LOADERX_MODEL_COUNT=…   how many, 2,000 unless given
//
// A sequence depends on the seed and its number only, so that one that fails runs alone:
// LOADERX_SEED=S LOADERX_MODEL_FIRST=N LOADERX_MODEL_COUNT=1 npx tap test/model.test.ts
import { existsSync, rmSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { dtypeOf } from '../ts/dtype.js';
import {
  Dense,
  type DenseReader,
  type DenseWriter,
  type DType,
  type Ids,
  type NdArray,
  open,
  Ragged,
  type RaggedBatch,
  type RaggedReader,
  type RaggedWriter,
} from '../ts/index.js';
import { Random } from './interop/random.mjs';
import { codeOf, outcomeOfError } from './support/outcome.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
const first = Number(process.env.LOADERX_MODEL_FIRST ?? 0);
const count = Number(process.env.LOADERX_MODEL_COUNT ?? 2000);
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same sequences again`);

const dtypes: readonly DType[] = [
  'bool',
  'uint8',
  'int16',
  'float16',
  'uint32',
  'float32',
  'int64',
  'float64',
  'complex128',
  'numpy:>f4',
  'numpy:|S5',
  'numpy:<U3',
  'numpy:<M8[ns]',
  'numpy:<f16',
  'bfloat16',
  'float8_e5m2',
];

/** A record as the model keeps it. */
interface Record {
  readonly shape: readonly number[];
  readonly bytes: Buffer;
}

type Writer = DenseWriter | RaggedWriter;
type Reader = DenseReader | RaggedReader;

/** Where a sequence and the model differ; the message says at what. */
class Difference extends Error {}

function same(what: string, actual: unknown, expected: unknown): void {
  if (!Object.is(actual, expected)) {
    throw new Difference(`${what}: ${String(actual)}, and the model has ${String(expected)}`);
  }
}

class Sequence {
  readonly #random: Random;
  readonly #at: string;
  readonly #dtype: DType;
  readonly #itemBytes: number;
  readonly #isDense: boolean;
  readonly #itemShape: readonly number[];
  readonly #ndim: number;
  /** Committed records. */
  readonly #records: Record[] = [];
  #isClosing = false;
  /** What was done, for the message of a difference. */
  readonly log: string[] = [];

  constructor(number: number, folder: string) {
    const random = new Random(seed, 'model', number);
    this.#random = random;
    this.#at = path.join(folder, `s${number}`);
    this.#dtype = random.pick(dtypes);
    this.#itemBytes = dtypeOf(this.#dtype).itemBytes;
    this.#isDense = random.chance(0.5);
    this.#itemShape = random.pick([[], [1], [3], [2, 2], [5, 1, 2], [40]]);
    this.#ndim = random.between(1, 3);
  }

  async run(): Promise<void> {
    const outcome = await this.#build();
    if (outcome === 'discarded') {
      same('what is at the path', existsSync(this.#at), false);
      if (this.#random.chance(0.5)) return;
      this.#records.length = 0;
      if ((await this.#build()) === 'discarded') return;
    }
    await this.#read();
    rmSync(this.#at, { recursive: true });
  }

  // ---- building ----

  async #build(): Promise<'published' | 'discarded'> {
    const random = this.#random;
    const writer = this.#create();
    same('code of a second create', await codeOf(() => this.#create().abort()), 'LOCKED');
    const appendCount = random.magnitude(1, 9) - 1;
    let running: Promise<void>[] = [];
    for (let append = 0; append < appendCount; append += 1) {
      if (random.chance(0.15)) await this.#appendWrong(writer);
      const records = this.#newRecords();
      if (running.length === 0 && random.chance(0.4)) {
        this.log.push(`appendSync ${records.length}`);
        this.#appendSync(writer, records);
      } else {
        this.log.push(`append ${records.length}`);
        running.push(this.#append(writer, records));
        if (random.chance(0.6)) {
          await Promise.all(running);
          running = [];
        }
      }
      this.#records.push(...records);
      if (running.length === 0) same('length', writer.length, this.#records.length);
    }
    if (random.chance(0.1)) {
      this.log.push('abort');
      writer.abort();
      await Promise.allSettled(running);
      await writer[Symbol.asyncDispose]();
      return 'discarded';
    }
    if (running.length === 0 && random.chance(0.4)) {
      this.log.push('closeSync');
      writer.closeSync();
    } else {
      this.log.push('close');
      await writer.close();
    }
    await Promise.all(running);
    same('length after close', writer.length, this.#records.length);
    same(
      'append after close',
      await codeOf(() => this.#append(writer, this.#newRecords())),
      'CLOSED',
    );
    return 'published';
  }

  #create(): Writer {
    const random = this.#random;
    const dataShards = random.pick([1, 2, 3, 4, 7]);
    const codec = random.pick(['raw', 'raw', 'zstd', 'zstd_dict'] as const);
    const dictBytes = Buffer.from('a dictionary of any bytes, which need not be trained');
    const { numpy, name28 } = dtypeOf(this.#dtype);
    const isNewer = numpy === undefined || (name28 !== undefined && random.chance(0.3));
    const options = {
      dtype: this.#dtype,
      dataShards,
      dialect: isNewer ? '2.8' : '2.4',
      ...(codec === 'zstd_dict' ? { codec, dictBytes } : { codec }),
    } as const;
    this.log.push(
      `${this.#isDense ? `Dense [${this.#itemShape}]` : `Ragged ${this.#ndim}`} ${this.#dtype} ${codec} ${dataShards}`,
    );
    return this.#isDense
      ? Dense.create(this.#at, { ...options, itemShape: this.#itemShape })
      : Ragged.create(this.#at, { ...options, ndim: this.#ndim });
  }

  #newRecords(): Record[] {
    const random = this.#random;
    const recordCount = random.chance(0.02) ? random.between(100, 600) : random.magnitude(1, 30);
    return Array.from({ length: recordCount }, () => {
      const shape = this.#isDense ? this.#itemShape : this.#raggedShape();
      const itemCount = shape.reduce((product, size) => product * size, 1);
      const bytes = Buffer.alloc(itemCount * this.#itemBytes);
      // Half of them compress well.
      if (random.chance(0.5)) random.fill(bytes);
      else bytes.fill(random.u32());
      return { shape, bytes };
    });
  }

  #raggedShape(): number[] {
    const random = this.#random;
    const long = random.chance(0.01) ? 2000 : 12;
    return Array.from({ length: this.#ndim }, (_, axis) =>
      random.magnitude(1, axis === 0 ? long : 4),
    );
  }

  #array(records: readonly Record[], shape: readonly number[]): NdArray {
    const { constructorOf } = dtypeOf(this.#dtype);
    // Sometimes in the middle of other memory.
    const lead = this.#random.chance(0.3) ? 32 : 0;
    const bytes = records.reduce((sum, record) => sum + record.bytes.length, 0);
    const memory = new Uint8Array(lead + bytes);
    let at = lead;
    for (const record of records) {
      memory.set(record.bytes, at);
      at += record.bytes.length;
    }
    const data = new constructorOf(memory.buffer, lead, bytes / constructorOf.BYTES_PER_ELEMENT);
    return { dtype: this.#dtype, shape, data };
  }

  #append(writer: Writer, records: readonly Record[]): Promise<void> {
    if (writer.kind === 'dense') return writer.append(this.#denseBatch(records));
    const arrays = records.map((record) => this.#array([record], record.shape));
    if (this.#random.chance(0.2)) return writer.append(slowly(arrays));
    return writer.append(this.#random.chance(0.3) ? arrays.values() : arrays);
  }

  #appendSync(writer: Writer, records: readonly Record[]): void {
    if (writer.kind === 'dense') writer.appendSync(this.#denseBatch(records));
    else writer.appendSync(records.map((record) => this.#array([record], record.shape)));
  }

  #denseBatch(records: readonly Record[]): NdArray {
    return this.#array(records, [records.length, ...this.#itemShape]);
  }

  /** An append that is refused and changes nothing. */
  async #appendWrong(writer: Writer): Promise<void> {
    const records = this.#newRecords();
    if (writer.kind === 'dense') {
      const shape = this.#random.pick([[], [records.length], [0, ...this.#itemShape], [1, 9, 9]]);
      if (String(shape) === String([records.length, ...this.#itemShape])) return;
      this.log.push('append wrong shape');
      const wrong = { ...this.#denseBatch(records), shape };
      same('code', await codeOf(() => writer.append(wrong)), 'INVALID_ARGUMENT');
      return;
    }
    this.log.push('append wrong record');
    const arrays = records.map((record) => this.#array([record], record.shape));
    const wrong = { ...this.#array([], []), shape: Array(this.#ndim).fill(0) };
    const at = this.#random.between(0, arrays.length);
    arrays.splice(at, 0, wrong);
    same('code', await codeOf(() => writer.append(arrays)), 'INVALID_ARGUMENT');
  }

  // ---- reading ----

  async #read(): Promise<void> {
    const random = this.#random;
    const reader = random.chance(0.5)
      ? open(this.#at)
      : this.#isDense
        ? Dense.open(this.#at, { dtype: this.#dtype, itemShape: this.#itemShape })
        : Ragged.open(this.#at, { dtype: this.#dtype, ndim: this.#ndim });
    same('kind', reader.kind, this.#isDense ? 'dense' : 'ragged');
    same('dtype', reader.dtype, this.#dtype);
    same('length of the reader', reader.length, this.#records.length);
    const running: Promise<void>[] = [];
    const stepCount = random.between(1, 6);
    for (let step = 0; step < stepCount; step += 1) {
      const done = this.#step(reader);
      if (random.chance(0.5)) await done;
      else running.push(done);
    }
    if (random.chance(0.5)) {
      await Promise.all(running);
      this.log.push('closeSync');
      reader.closeSync();
    } else {
      this.log.push('close');
      this.#isClosing = true;
      await reader.close();
      await Promise.all(running);
    }
    same('gather after close', await codeOf(() => reader.gather([])), 'CLOSED');
  }

  #step(reader: Reader): Promise<void> {
    const length = this.#records.length;
    const steps: readonly (() => Promise<void>)[] = [
      () => this.#gather(reader),
      () => this.#gather(reader),
      () => this.#gatherOut(reader),
      () => this.#slice(reader),
      () => this.#batches(reader),
      () => this.#one(reader),
      async () => {
        const wrong = this.#random.pick([-1, length, length + 2 ** 32, 2 ** 53]);
        this.log.push(`gather wrong ${wrong}`);
        same('code', await codeOf(() => reader.gather([wrong])), 'OUT_OF_RANGE');
      },
    ];
    return this.#random.pick(steps)();
  }

  #ids(): number[] {
    const length = this.#records.length;
    if (length === 0) return [];
    const wanted = this.#random.chance(0.05) ? 1000 : this.#random.magnitude(1, 40) - 1;
    return Array.from({ length: wanted }, () => this.#random.between(0, length - 1));
  }

  #list(ids: readonly number[]): Ids {
    return this.#random.pick<() => Ids>([
      () => ids,
      () => Uint32Array.from(ids),
      () => BigUint64Array.from(ids, BigInt),
    ])();
  }

  async #gather(reader: Reader): Promise<void> {
    const ids = this.#ids();
    const list = this.#list(ids);
    const isSync = this.#random.chance(0.5);
    const dispose = this.#random.chance(0.5);
    this.log.push(`gather${isSync ? 'Sync' : ''} [${ids}]`);
    const batch = isSync ? reader.gatherSync(list) : await reader.gather(list);
    this.#check(batch, ids);
    if (dispose) batch[Symbol.dispose]();
  }

  async #gatherOut(reader: Reader): Promise<void> {
    const ids = this.#ids();
    const isSync = this.#random.chance(0.5);
    this.log.push(`gather${isSync ? 'Sync' : ''} out [${ids}]`);
    if (reader.kind === 'dense') {
      const { constructorOf, itemElements } = dtypeOf(this.#dtype);
      const shape = [ids.length, ...this.#itemShape];
      const elements = shape.reduce((product, size) => product * size, itemElements);
      const bytes = elements * constructorOf.BYTES_PER_ELEMENT;
      const buffer = this.#random.chance(0.5)
        ? new ArrayBuffer(bytes)
        : new SharedArrayBuffer(bytes);
      const out: NdArray = { dtype: this.#dtype, shape, data: new constructorOf(buffer) };
      const given = isSync ? reader.gatherSync(ids, { out }) : await reader.gather(ids, { out });
      same('what is given', given, out);
      this.#check(out, ids);
      return;
    }
    const out = reader.gatherSync(this.#ids());
    const given = isSync ? reader.gatherSync(ids, { out }) : await reader.gather(ids, { out });
    same('what is given', given, out);
    this.#check(out, ids);
  }

  async #slice(reader: Reader): Promise<void> {
    const random = this.#random;
    const length = this.#records.length;
    const bound = (): number | undefined =>
      random.chance(0.3) ? undefined : random.between(0, length + 3);
    const start = bound();
    const end = bound();
    const step = random.chance(0.3) ? undefined : random.pick([1, 2, 3, 100, -1, -2, -100]);
    this.log.push(`slice ${start} ${end} ${step}`);
    const batch = await reader.slice(start, end, step);
    const all = Array.from({ length }, (_, id) => id);
    this.#check(
      batch,
      step !== undefined && step < 0 ? down(all, step, start, end) : up(all, step ?? 1, start, end),
    );
  }

  async #batches(reader: Reader): Promise<void> {
    const size = this.#random.magnitude(1, 50);
    const stopAfter = this.#random.chance(0.2) ? 1 : Number.POSITIVE_INFINITY;
    this.log.push(`batches ${size}`);
    let id = 0;
    let batchCount = 0;
    try {
      for await (const batch of reader.batches(size)) {
        const expected = Math.min(size, this.#records.length - id);
        this.#check(
          batch,
          Array.from({ length: expected }, (_, index) => id + index),
        );
        id += expected;
        batchCount += 1;
        if (batchCount === stopAfter) return;
      }
    } catch (error) {
      // A batch that is asked for after close is refused; a gather that runs is not.
      if (this.#isClosing && outcomeOfError(error) === 'LoaderxError CLOSED') return;
      throw error;
    }
    same('records of all batches', id, this.#records.length);
  }

  async #one(reader: Reader): Promise<void> {
    const length = this.#records.length;
    if (length === 0) return;
    const id = this.#random.between(0, length - 1);
    this.log.push(`record ${id}`);
    this.#checkOne(reader.record(id), id);
  }

  #check(batch: NdArray | RaggedBatch, ids: readonly number[]): void {
    same('dtype of the batch', batch.dtype, this.#dtype);
    if ('values' in batch) {
      same('records of the batch', batch.length, ids.length);
      ids.forEach((id, index) => {
        this.#checkOne(batch.at(index), id);
      });
      same('bytes of the batch', batch.values.byteLength, this.#bytesOf(ids));
      return;
    }
    same('shape of the batch', String(batch.shape), String([ids.length, ...this.#itemShape]));
    const bytes = Buffer.from(batch.data.buffer, batch.data.byteOffset, batch.data.byteLength);
    const expected = Buffer.concat(ids.map((id) => this.#records[id]?.bytes ?? Buffer.alloc(0)));
    if (!bytes.equals(expected)) throw new Difference(`items of records [${ids}]`);
  }

  #checkOne({ dtype, shape, data }: NdArray, id: number): void {
    const expected = this.#records[id];
    same('dtype of the record', dtype, this.#dtype);
    same(`shape of record ${id}`, String(shape), String(expected?.shape));
    const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
    if (expected === undefined || !bytes.equals(expected.bytes)) {
      throw new Difference(`items of record ${id}`);
    }
  }

  #bytesOf(ids: readonly number[]): number {
    return ids.reduce((sum, id) => sum + (this.#records[id]?.bytes.length ?? 0), 0);
  }
}

function up(all: readonly number[], step: number, start = 0, end = all.length): number[] {
  return all.filter((id) => id >= start && id < end && (id - start) % step === 0);
}

function down(all: readonly number[], step: number, start = all.length - 1, end = -1): number[] {
  const top = Math.min(start, all.length - 1);
  return all.filter((id) => id <= top && id > end && (top - id) % -step === 0).reverse();
}

async function* slowly<T>(list: readonly T[]): AsyncGenerator<T, void, undefined> {
  for (const item of list) {
    await null;
    yield item;
  }
}

t.test(`${count} sequences against plain arrays`, { timeout: 0 }, async (t) => {
  const folder = scratch.folder();
  let failedCount = 0;
  let next = first;
  const lane = async (): Promise<void> => {
    while (next < first + count && failedCount < 5) {
      const number = next;
      next += 1;
      const sequence = new Sequence(number, folder);
      try {
        await sequence.run();
      } catch (error) {
        failedCount += 1;
        t.comment(sequence.log.join('; '));
        t.comment(error instanceof Error ? error.stack : error);
        t.fail(
          `LOADERX_SEED=${seed} LOADERX_MODEL_FIRST=${number} LOADERX_MODEL_COUNT=1: ${error}`,
        );
      }
    }
  };
  // Several at a time: containers of one process must not get in each other's way.
  await Promise.all([lane(), lane(), lane(), lane()]);
  t.equal(failedCount, 0, `sequences ${first} to ${next - 1}`);
});
