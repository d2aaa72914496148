/**
 * Dense containers as `.npy` files, and folders of containers as `.npz`: the way back to NumPy.
 *
 * ```text
 * dense  X   X.npy         [records, ...itemShape]
 * ragged X   X.npy         items of all records, back to back
 *            X.dims.npy    [records, rank], uint64: the sizes of each record        in .npz only
 * ```
 */
import { type DType, dtypeOf } from '../dtype.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { npyHeader } from '../importers/npy-header.js';
import { containerName, containersAt } from '../inspect/info.js';
import type { LongOptions, LongWork } from '../inspect/progress.js';
import { flagOf, longFields, longWorkOf } from '../inspect/settings.js';
import { givenUp } from '../signal.js';
import type { DenseReader, RaggedReader } from '../store/capability.js';
import { knownFields } from '../store/fields.js';
import { open } from '../store/open.js';
import { walk } from '../store/walk.js';
import { TargetFile } from './target.js';
import { ZipWriter } from './zip.js';

/** How files are written. */
export interface ExportOptions extends LongOptions {
  /** Replaces a file that is there already. */
  readonly force?: boolean | undefined;
}

/** What an export wrote. */
export interface ExportResult {
  /** The file. */
  readonly path: string;
  /** Containers, with the number of their records. */
  readonly containers: readonly {
    /** As it was named. */
    readonly path: string;
    /** Its records. */
    readonly records: number;
  }[];
  /** Bytes of the items of all records. */
  readonly itemBytes: number;
}

/** Checked options of an export. */
export interface ExportWork extends LongWork {
  readonly force: boolean;
}

export function exportWork(options: unknown, fields: readonly string[] = []): ExportWork {
  const known = knownFields(options, [...longFields, 'force', ...fields]);
  return { ...longWorkOf(known), force: flagOf(known.force, 'force') };
}

/** What an `.npy` file of a container is. */
export interface NpyFacts {
  readonly descr: string;
  readonly shape: readonly number[];
  /** Of the whole file. */
  readonly bytes: number;
}

/** What {@link npyBytes} would give. @throws as it does */
export function npyFacts(source: string): NpyFacts {
  const reader = open(source);
  try {
    if (reader.kind === 'ragged') throw raggedRefusal(source);
    const shape = [reader.length, ...reader.itemShape];
    const header = headerFor(source, reader.dtype, shape);
    const { numpy = '', itemBytes } = dtypeOf(reader.dtype);
    const items = shape.reduce((product, size) => product * size, itemBytes);
    return { descr: numpy, shape, bytes: header.byteLength + items };
  } finally {
    reader.closeSync();
  }
}

function raggedRefusal(source: string): LoaderxError {
  return new LoaderxError(
    'UNSUPPORTED',
    `${source}: it is ragged, and one .npy file holds records of one shape: export it as .npz`,
    { path: source },
  );
}

/**
 * The bytes of an `.npy` file of a dense container, as `np.save` writes it. A piece holds until the next one is
 * asked for; two are in memory at one time.
 *
 * @throws LoaderxError as `open` and `gather`; UNSUPPORTED for a ragged container and for a dtype that NumPy
 *   has not; ABORTED
 */
export async function* npyBytes(
  source: string,
  options: LongOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const work = longWorkOf(knownFields(options, longFields));
  await using reader = open(source);
  if (reader.kind === 'ragged') throw raggedRefusal(source);
  yield headerFor(source, reader.dtype, [reader.length, ...reader.itemShape]);
  yield* itemsOf(reader, work, new Meter(work, reader.length));
}

/**
 * Writes a dense container to an `.npy` file, byte for byte as `np.save` does.
 *
 * @throws as {@link npyBytes}; EXISTS, IO. The file is complete, or not there
 */
export async function exportNpy(
  source: string,
  file: string,
  options: ExportOptions = {},
): Promise<ExportResult> {
  const { force, ...work } = exportWork(options);
  const target = await TargetFile.begin(file, force);
  try {
    for await (const bytes of npyBytes(source, work)) await target.write(bytes);
    await target.publish();
  } catch (error) {
    await target.discard();
    throw error;
  }
  return { path: file, ...(await written([source])) };
}

/**
 * Writes containers to an `.npz` file, as `np.savez` does: those of a folder by their names, or one. Of a
 * ragged container there are two arrays, the items of all records back to back and the sizes of each;
 * `importFiles` makes it ragged again.
 *
 * @param source a container, or a folder of containers
 * @throws as {@link npyBytes}; SOURCE where two arrays would have one name; EXISTS, IO. The file is complete,
 *   or not there
 */
export async function exportNpz(
  source: string,
  file: string,
  options: ExportOptions = {},
): Promise<ExportResult> {
  const { force, ...work } = exportWork(options);
  const paths = containersAt(source);
  const target = await TargetFile.begin(file, force);
  try {
    const zip = new ZipWriter((bytes) => target.write(bytes));
    const total = totalOf(paths);
    const meter = new Meter(work, total);
    for (const each of paths) await addContainer(zip, each, work, meter);
    await zip.end();
    await target.publish();
  } catch (error) {
    await target.discard();
    throw error;
  }
  return { path: file, ...(await written(paths)) };
}

function totalOf(paths: readonly string[]): number {
  let total = 0;
  for (const each of paths) {
    const reader = open(each);
    total += reader.length;
    reader.closeSync();
  }
  return total;
}

/** Records and bytes of several containers, of whose items all were written. */
export async function written(
  paths: readonly string[],
): Promise<Pick<ExportResult, 'containers' | 'itemBytes'>> {
  const { info } = await import('../inspect/info.js');
  const facts = await Promise.all(paths.map((each) => info(each)));
  return {
    containers: facts.map(({ path: each, records }) => ({ path: each, records })),
    itemBytes: facts.reduce((sum, { logicalBytes }) => sum + logicalBytes, 0),
  };
}

async function addContainer(
  zip: ZipWriter,
  source: string,
  work: LongWork,
  meter: Meter,
): Promise<void> {
  await using reader = open(source);
  const name = containerName(source);
  if (reader.kind === 'dense') {
    const header = headerFor(source, reader.dtype, [reader.length, ...reader.itemShape]);
    await zip.add(`${name}.npy`, prefixed(header, itemsOf(reader, work, meter)));
    return;
  }
  const { items, dims } = await sizesOf(source, reader);
  await zip.add(
    `${name}.npy`,
    prefixed(headerFor(source, reader.dtype, [items]), itemsOf(reader, work, meter)),
  );
  const header = npyHeader('uint64', [reader.length, reader.ndim]);
  await zip.add(`${name}.dims.npy`, prefixed(header, dims()));
}

/** How many items a ragged container has, and the sizes of its records. */
async function sizesOf(
  source: string,
  reader: RaggedReader,
): Promise<{ items: number; dims: () => AsyncGenerator<Uint8Array, void, undefined> }> {
  const { info } = await import('../inspect/info.js');
  const { logicalBytes } = await info(source);
  return {
    items: logicalBytes / dtypeOf(reader.dtype).itemBytes,
    dims: async function* () {
      for await (const { batch } of walk(reader)) {
        if (!('offsets' in batch)) throw changed();
        const dims = BigUint64Array.from(batch.dims, BigInt);
        batch[Symbol.dispose]();
        yield new Uint8Array(dims.buffer);
      }
    },
  };
}

async function* prefixed(
  first: Uint8Array,
  rest: AsyncIterable<Uint8Array>,
): AsyncGenerator<Uint8Array, void, undefined> {
  yield first;
  yield* rest;
}

async function* itemsOf(
  reader: DenseReader | RaggedReader,
  { signal }: LongWork,
  meter: Meter,
): AsyncGenerator<Uint8Array, void, undefined> {
  try {
    for await (const { count, batch } of walk(reader, signal)) {
      const data = 'offsets' in batch ? batch.values : batch.data;
      yield new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      meter.add(count, data.byteLength);
      batch[Symbol.dispose]();
    }
  } catch (error) {
    if (signal?.aborted === true) throw givenUp(reader.path, signal);
    throw error;
  }
}

/** Tells how far it is, over several containers. */
export class Meter {
  readonly #work: LongWork;
  readonly #total: number;
  #records = 0;
  #bytes = 0;

  constructor(work: LongWork, total: number) {
    this.#work = work;
    this.#total = total;
  }

  add(records: number, bytes: number): void {
    this.#records += records;
    this.#bytes += bytes;
    this.#work.onProgress({
      recordsDone: this.#records,
      recordsTotal: this.#total,
      bytesDone: this.#bytes,
    });
  }
}

function headerFor(source: string, dtype: DType, shape: readonly number[]): Uint8Array {
  if (dtypeOf(dtype).numpy === undefined) {
    throw new LoaderxError('UNSUPPORTED', `${source}: NumPy has no dtype ${show(dtype)}`, {
      path: source,
      field: 'dtype',
    });
  }
  return npyHeader(dtype, shape);
}

function changed(): ArgumentTypeError {
  return new ArgumentTypeError('source', 'source changed its kind while it was read');
}
