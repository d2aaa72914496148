/**
 * A container that settles while it is written whether its records are all of one shape.
 *
 * ```text
 * nothing yet ──first batch──► dense ──another shape──► ragged
 *      └──────two shapes in the first batch──────────────►┘
 * ```
 *
 * From dense to ragged, what is written is published under another name beside the path, read back piece by
 * piece into the ragged container, and removed.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { type DType, dtypeOf } from '../../dtype.js';
import { LoaderxError, show } from '../../errors.js';
import type { NdArray } from '../../ndarray.js';
import { givenUp } from '../../signal.js';
import type { CreateOptions, DenseWriter, RaggedWriter } from '../../store/capability.js';
import { Dense } from '../../store/dense.js';
import { Ragged } from '../../store/ragged.js';

/** Records of one append: as many as one window of the store has, or about as many bytes. */
const batchRecordsMax = 32_768;
const batchBytes = 8 * 2 ** 20;

/** Of what is read back at one time. */
const pieceBytes = 16 * 2 ** 20;

interface RecordForm {
  readonly dtype: DType;
  readonly shape: readonly number[];
}

export interface SettlingOptions {
  /** The column's name, for errors. */
  readonly column: string;
  readonly path: string;
  readonly create: CreateOptions;
  readonly integrity: boolean;
  /** Ragged from the first record on, whatever comes. */
  readonly ragged: boolean;
  readonly signal: AbortSignal | undefined;
}

/**
 * What is said of a record that is not like the first one.
 *
 * @param name what else the record is called, such as the file that a picture was
 */
export function unlikeFirst(
  place: { readonly column: string; readonly row: number; readonly name: string | undefined },
  own: { readonly dtype: string; readonly shape: readonly number[] },
  first: { readonly dtype: string; readonly shape: readonly number[] },
): LoaderxError {
  const { column, row, name } = place;
  const file = name === undefined ? '' : `${name}: `;
  // Grey pictures have two axes, others three. Whoever names pictures has the option.
  const advice =
    name !== undefined && own.dtype === 'uint8' && first.dtype === 'uint8'
      ? "; mode: 'RGB' makes them alike"
      : '';
  return new LoaderxError(
    'SOURCE',
    `${file}column ${show(column)}, row ${row}: the record is ${own.dtype} ${show(own.shape)}, and the first one is ${first.dtype} ${show(first.shape)}: all records of a column have one dtype and one rank${advice}`,
    { ...(name === undefined ? {} : { path: name }), field: column, record: row },
  );
}

/** Two batches are in memory at most: one is gathered while the other is written. */
export class SettlingWriter {
  readonly #options: SettlingOptions;
  #first: RecordForm | undefined;
  #isRagged: boolean;
  #writer: DenseWriter | RaggedWriter | undefined;
  #batch: NdArray[] = [];
  #batchBytes = 0;
  #writing: Promise<void> = Promise.resolve();
  /** Records of a dense append, side by side. Used again, since touching new memory costs more than copying. */
  #stack = new ArrayBuffer(0);
  /** Where the dense container is, from when it is closed until it is read back. */
  #aside: string | undefined;
  #isEnded = false;

  constructor(options: SettlingOptions) {
    this.#options = options;
    this.#isRagged = options.ragged;
  }

  /**
   * Takes the next record, whose memory must not change any more. Resolves when there is room for another.
   *
   * @param row for errors
   * @param name for errors: what the record is called besides
   * @throws LoaderxError SOURCE for another dtype or rank than the first record's; what appending throws
   */
  async add(record: NdArray, row: number, name?: string): Promise<void> {
    this.#first ??= { dtype: record.dtype, shape: record.shape };
    const { dtype, shape } = this.#first;
    if (record.dtype !== dtype || record.shape.length !== shape.length) {
      throw unlikeFirst({ column: this.#options.column, row, name }, record, this.#first);
    }
    if (!this.#isRagged && !sameShape(record.shape, shape)) {
      await this.#writing;
      await this.#becomeRagged(this.#first);
    }
    this.#batch.push(record);
    this.#batchBytes += record.data.byteLength;
    if (this.#batch.length >= batchRecordsMax || this.#batchBytes >= batchBytes)
      await this.#flush();
  }

  /** Writes what is left and publishes. Throws SOURCE when no record came. */
  async close(): Promise<void> {
    const { column, integrity } = this.#options;
    if (this.#first === undefined) {
      throw new LoaderxError('SOURCE', `column ${show(column)} has no rows`, { field: column });
    }
    await this.#flush();
    await this.#writing;
    await this.#writer?.close({ integrity });
    this.#isEnded = true;
  }

  /** Leaves nothing, unless it is closed already. */
  async abort(): Promise<void> {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#batch = [];
    this.#writer?.abort();
    await this.#writing.catch(ignore);
    await this.#writer?.[Symbol.asyncDispose]();
    if (this.#aside !== undefined) await fs.rm(this.#aside, { recursive: true, force: true });
  }

  async #flush(): Promise<void> {
    await this.#writing;
    const batch = this.#batch;
    if (batch.length === 0) return;
    this.#batch = [];
    this.#batchBytes = 0;
    this.#writing = this.#write(batch);
    // It may fail while nobody waits; whoever waits next is told.
    this.#writing.catch(ignore);
  }

  async #write(batch: readonly NdArray[]): Promise<void> {
    const [{ dtype, shape } = fail()] = batch;
    const { path: target, create } = this.#options;
    this.#writer ??= this.#isRagged
      ? Ragged.create(target, { ...create, dtype, ndim: shape.length })
      : Dense.create(target, { ...create, dtype, itemShape: shape });
    if (this.#writer.kind === 'ragged') await this.#writer.append(batch);
    else await this.#writer.append(this.#stacked(batch));
  }

  /** Valid until the next call. One append runs at one time. */
  #stacked(batch: readonly NdArray[]): NdArray {
    const bytes = batch.reduce((sum, { data }) => sum + data.byteLength, 0);
    if (this.#stack.byteLength < bytes) this.#stack = Buffer.allocUnsafeSlow(bytes).buffer;
    return stacked(batch, this.#stack);
  }

  /** After all writing. Does what has to be done at the first other shape, once. */
  async #becomeRagged({ dtype, shape }: RecordForm): Promise<void> {
    this.#isRagged = true;
    const dense = this.#writer;
    if (dense === undefined) return;
    const { path: target, create, signal } = this.#options;
    await dense.close();
    this.#writer = undefined;
    // From here on it is there, and has to go.
    this.#aside = target;
    // Beside the target, so that renaming is enough; short, so that it is no longer than a name may be.
    const aside = path.join(path.dirname(target), `.dense-${randomBytes(6).toString('hex')}`);
    await fs.rename(target, aside);
    this.#aside = aside;
    const writer = Ragged.create(target, { ...create, dtype, ndim: shape.length });
    this.#writer = writer;
    const recordBytes = shape.reduce((bytes, size) => bytes * size, dtypeOf(dtype).itemBytes);
    const count = Math.min(batchRecordsMax, Math.max(1, Math.floor(pieceBytes / recordBytes)));
    for (let first = 0; first < dense.length; first += count) {
      if (signal?.aborted === true) throw givenUp(target, signal);
      // Opened anew each time: what a reader has read stays mapped, and so in the process's memory.
      const reader = Dense.open(aside);
      try {
        const batch = await reader.slice(first, Math.min(first + count, dense.length));
        await writer.append(records(batch));
        batch[Symbol.dispose]();
      } finally {
        await reader.close();
      }
    }
    await fs.rm(aside, { recursive: true });
    this.#aside = undefined;
  }
}

function sameShape(one: readonly number[], other: readonly number[]): boolean {
  return one.length === other.length && one.every((size, axis) => size === other[axis]);
}

/** Arrays of one shape as one array, along a new first axis; in `memory` where that is given. */
export function stacked(arrays: readonly NdArray[], memory?: ArrayBuffer): NdArray {
  const [{ dtype, shape, data: first } = fail()] = arrays;
  if (arrays.length === 1) return { dtype, shape: [1, ...shape], data: first } as NdArray;
  const length = first.length * arrays.length;
  const buffer = memory ?? new ArrayBuffer(length * first.BYTES_PER_ELEMENT);
  const bytes = new Uint8Array(buffer);
  let at = 0;
  for (const { data } of arrays) {
    bytes.set(new Uint8Array(data.buffer, data.byteOffset, data.byteLength), at);
    at += data.byteLength;
  }
  const { constructorOf } = dtypeOf(dtype);
  return {
    dtype,
    shape: [arrays.length, ...shape],
    data: new constructorOf(buffer, 0, length),
  } as NdArray;
}

/** The opposite: views of a batch's records. */
function* records({ dtype, shape: [count = 0, ...shape], data }: NdArray): Generator<NdArray> {
  const size = data.length / count;
  for (let index = 0; index < count; index += 1) {
    const view = data.subarray(index * size, (index + 1) * size);
    yield { dtype, shape, data: view } as NdArray;
  }
}

function fail(): never {
  throw new LoaderxError('UNEXPECTED', 'a column of pictures lost track of what it writes');
}

function ignore(): void {}
