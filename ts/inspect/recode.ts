/**
 * The same records in another form: codec, shards, dialect, dictionary. Two pieces of records are in memory
 * at one time, however large the container is.
 */

import path from 'node:path';
import { trainDict } from '../dict.js';
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import type { Dialect } from '../schema.js';
import { givenUp, onAbort } from '../signal.js';
import type {
  Codec,
  CodecOptions,
  CreateOptions,
  DenseBatch,
  DenseReader,
  DenseWriter,
  RaggedBatch,
  RaggedReader,
  RaggedWriter,
} from '../store/capability.js';
import { type OpenedStore, openParts, openStore } from '../store/container.js';
import { Dense } from '../store/dense.js';
import { type Fields, knownFields } from '../store/fields.js';
import { isContainerFolder } from '../store/folder.js';
import { itemBytesOf } from '../store/logical-digest.js';
import { type ContainerPath, locate } from '../store/path.js';
import { Ragged } from '../store/ragged.js';
import { walk } from '../store/walk.js';
import { type ContainerFacts, factsOf, readerOf } from './facts.js';
import type { LongOptions, LongWork } from './progress.js';
import { flagOf, longFields, longWorkOf } from './settings.js';

/** The new form. What is left out stays as it is at the source, but the codec, which has to be said. */
export interface RecodeOptions extends LongOptions {
  /** Of the new container. */
  readonly codec: Codec;
  /** For `codec: 'zstd_dict'`; trained on the source unless given. */
  readonly dictBytes?: Uint8Array | undefined;
  /** Data files of the new container, 1 .. 255; as many as the source's unless given. */
  readonly dataShards?: number | undefined;
  /** Which Python loaderx reads the new container; the source's unless given. */
  readonly dialect?: Dialect | undefined;
  /** As for `close` of a writer. */
  readonly durable?: boolean | undefined;
  /** As for `close` of a writer. */
  readonly integrity?: boolean | undefined;
}

/** What {@link recode} made. */
export interface RecodeResult {
  /** What was read. */
  readonly source: ContainerFacts;
  /** What was written. */
  readonly target: ContainerFacts;
  /** Bytes of the items of all records. */
  readonly itemBytes: number;
  /** Bytes of the data files of both. */
  readonly sourceBytes: number;
  /** Bytes of all records as the new container stores them. */
  readonly targetBytes: number;
  /** Of the dictionary, where there is one. */
  readonly dictBytes?: number;
}

/**
 * Writes the records of a container, in the same order, to a new one. The logical digests of both are
 * equal. The new container appears when it is complete, or not at all. A source with an integrity file is
 * held to it.
 *
 * @throws TypeError, RangeError for options that cannot be, such as a dialect that lacks the dtype;
 *   LoaderxError as `open`, `gather`, `create` and `close`; INTEGRITY where the source is not what its
 *   integrity file vouches for; DICTIONARY where none can be trained; ABORTED
 */
export async function recode(
  source: ContainerPath,
  target: ContainerPath,
  options: RecodeOptions,
): Promise<RecodeResult> {
  const { fields, work, closing } = settingsOf(options);
  if (fields.codec === undefined) {
    throw new ArgumentTypeError('codec', "codec must be 'raw', 'zstd' or 'zstd_dict': none came");
  }
  assertOutside(target);
  // Damage must not be copied into a container that looks sound.
  const opened = openStore(source, 'present');
  try {
    return await written(opened, target, fields, closing, work);
  } finally {
    await opened.handle.close();
  }
}

/** How containers are merged: as {@link RecodeOptions}, where the codec may be left out as well. */
export interface MergeOptions extends Omit<RecodeOptions, 'codec'> {
  /** That of the parts unless given, where all have the same; of `zstd_dict` a dictionary is trained anew. */
  readonly codec?: Codec | undefined;
}

/**
 * Writes the records of several containers, one after the other, to a new one. Its logical digest is that of
 * a single build of all of them. Memory stays bounded, as for {@link recode}; a part with an integrity file is
 * held to it.
 *
 * @param parts containers of one kind, dtype and shape, or files of sets, which stand for their parts
 * @throws as {@link recode}; LoaderxError SCHEMA, with `path` and `field`, for a part that holds something else
 */
export async function merge(
  parts: readonly ContainerPath[],
  target: ContainerPath,
  options?: MergeOptions,
): Promise<RecodeResult> {
  const { fields, work, closing } = settingsOf(options);
  assertOutside(target);
  const opened = openParts(parts, 'present');
  try {
    const codecs = new Set((opened.parts ?? []).map(({ codec }) => codec));
    if (fields.codec === undefined && codecs.size > 1) {
      throw new ArgumentTypeError(
        'codec',
        `codec must be said: the parts have ${[...codecs].join(', ')}`,
      );
    }
    const codec = fields.codec ?? opened.codec;
    return await written(opened, target, { ...fields, codec }, closing, work);
  } finally {
    await opened.handle.close();
  }
}

interface Settings {
  readonly fields: Fields;
  readonly work: LongWork;
  readonly closing: Closing;
}

/** The codec and what belongs to it are judged later. */
function settingsOf(options: unknown): Settings {
  const fields = knownFields(options, [
    ...longFields,
    ...['codec', 'dictBytes', 'dataShards', 'dialect', 'durable', 'integrity'],
  ]);
  const work = longWorkOf(fields);
  const durable = flagOf(fields.durable, 'durable');
  const integrity = flagOf(fields.integrity, 'integrity');
  return { fields, work, closing: { durable, integrity } };
}

/** Writes all records of an opened container to a new one. */
async function written(
  opened: OpenedStore,
  target: ContainerPath,
  fields: Fields,
  closing: Closing,
  work: LongWork,
): Promise<RecodeResult> {
  const facts = factsOf(opened);
  const reader = readerOf(opened);
  const codec = await codecOf(fields.codec, fields.dictBytes, reader);
  const create: CreateOptions = {
    ...codec,
    // `create` judges both.
    dataShards: (fields.dataShards ?? facts.dataShards) as number,
    dialect: (fields.dialect ?? facts.dialect) as Dialect,
  };
  const itemBytes = await copy(reader, target, create, closing, work);
  const made = openStore(target);
  try {
    return {
      source: facts,
      target: factsOf(made),
      itemBytes,
      sourceBytes: opened.storedBytes,
      targetBytes: made.storedBytes,
      ...(codec.codec === 'zstd_dict' ? { dictBytes: codec.dictBytes.byteLength } : {}),
    };
  } finally {
    await made.handle.close();
  }
}

/** Nothing is built inside of a container: who removes or copies that would take the other for a part. */
function assertOutside(target: ContainerPath): void {
  const { native, shown } = locate(target);
  const folder =
    typeof native === 'string'
      ? path.dirname(native)
      : Buffer.from(native).subarray(0, Math.max(1, native.lastIndexOf(slash)));
  if (!isContainerFolder(folder)) return;
  throw new ArgumentRangeError(
    'target',
    `target ${show(shown)} is inside of a container: name a path beside it`,
  );
}

const slash = 0x2f;

async function codecOf(
  codec: unknown,
  dictBytes: unknown,
  reader: DenseReader | RaggedReader,
): Promise<CodecOptions> {
  if (codec !== 'zstd_dict' || dictBytes !== undefined) {
    // `create` judges both.
    return { codec, ...(dictBytes === undefined ? {} : { dictBytes }) } as CodecOptions;
  }
  return { codec, dictBytes: await trainDict(reader) };
}

interface Closing {
  readonly durable: boolean;
  readonly integrity: boolean;
}

/** Copies all records; the bytes of their items. */
async function copy(
  reader: DenseReader | RaggedReader,
  target: ContainerPath,
  create: CreateOptions,
  closing: Closing,
  { signal, onProgress }: LongWork,
): Promise<number> {
  const { dtype } = reader;
  const writer: DenseWriter | RaggedWriter =
    reader.kind === 'dense'
      ? Dense.create(target, { ...create, dtype, itemShape: reader.itemShape })
      : Ragged.create(target, { ...create, dtype, ndim: reader.ndim });
  const forget = signal === undefined ? ignore : onAbort(signal, () => writer.abort());
  try {
    let bytesDone = 0;
    for await (const { first, count, batch } of walk(reader, signal)) {
      await append(writer, batch);
      bytesDone += itemBytesOf(batch);
      batch[Symbol.dispose]();
      onProgress({ recordsDone: first + count, recordsTotal: reader.length, bytesDone });
    }
    await writer.close(closing);
    return bytesDone;
  } catch (error) {
    if (signal?.aborted === true) throw givenUp(reader.path, signal);
    throw error;
  } finally {
    forget();
    await writer[Symbol.asyncDispose]();
  }
}

async function append(
  writer: DenseWriter | RaggedWriter,
  batch: DenseBatch | RaggedBatch,
): Promise<void> {
  if (writer.kind === 'dense') {
    if ('offsets' in batch) throw kindsDiffer();
    await writer.append(batch);
  } else {
    if (!('offsets' in batch)) throw kindsDiffer();
    await writer.append(batch);
  }
}

function ignore(): void {}

function kindsDiffer(): ArgumentTypeError {
  return new ArgumentTypeError('source', 'source changed its kind while it was read');
}
