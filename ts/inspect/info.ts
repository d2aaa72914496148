/**
 * What a container is and how large, without reading a record: page, table, and the sizes of its files.
 */
import type { DTypeInfo } from '../dtype.js';
import { LoaderxError } from '../errors.js';
import { recordBytesOf } from '../schema.js';
import { givenUp } from '../signal.js';
import { type JoinedPart, type OpenedStore, openStore } from '../store/container.js';
import { knownFields } from '../store/fields.js';
import { fileBytes } from '../store/folder.js';
import { rangeArray } from '../store/ids.js';
import { readDict, readIntegrityFacts } from '../store/integrity.js';
import { integrityName } from '../store/integrity-file.js';
import { type ContainerPath, type Location, locate } from '../store/path.js';
import { type ContainerFacts, factsOf } from './facts.js';
import type { LongOptions, LongWork } from './progress.js';
import { longFields, longWorkOf } from './settings.js';

/** A container's dictionary. */
export interface DictInfo {
  /** Of `dict.zr`. */
  readonly bytes: number;
  /** The id that a trained one carries and its frames name; undefined for raw content. */
  readonly id?: number;
}

/** How long ragged records are, in items. */
export interface LengthInfo {
  /** Items of the shortest record. */
  readonly min: number;
  /** A tenth of the records have no more items than this. */
  readonly p10: number;
  /** The median. */
  readonly p50: number;
  /** A tenth of the records have more items than this. */
  readonly p90: number;
  /** Items of the longest record. */
  readonly max: number;
  /** Items of all records by their number. */
  readonly mean: number;
  /** Records in each of equally wide bins from `min` to `max`. */
  readonly histogram: readonly number[];
  /** Records that were looked at: all of them, or evenly spread ones. */
  readonly records: number;
}

/** What a container is. It can be given to `JSON.stringify`. */
export interface ContainerInfo extends ContainerFacts {
  /** The container, as it was named. */
  readonly path: string;
  /** Bytes of the items of all records. */
  readonly logicalBytes: number;
  /** Bytes of all records as they are stored: the data files up to their tails. */
  readonly storedBytes: number;
  /** Bytes of all files. */
  readonly diskBytes: number;
  /** `logicalBytes / storedBytes`; undefined for an empty container. */
  readonly ratio?: number;
  /** With codec `zstd_dict`. */
  readonly dict?: DictInfo;
  /** Of a ragged container that is not empty. */
  readonly lengths?: LengthInfo;
  /**
   * Whether it has an integrity file, and the logical digest that stands there. `'damaged'`: the file's own
   * hash does not fit; `verify` says more.
   */
  readonly integrity: 'none' | 'present' | 'damaged';
  /** 64 hexadecimal digits; undefined without an integrity file. */
  readonly logicalDigest?: string;
  /** The releases of loaderx that open it. */
  readonly openedBy: readonly string[];
  /** Of a set: its containers. Codec, shards and dialect above are those of the first. */
  readonly parts?: readonly JoinedPart[];
}

const histogramBins = 16;
/** Records whose lengths are held in memory: 4 bytes each. */
const lengthsMax = 2 ** 24;
const lookupRecords = 65_536;

/**
 * What a container is.
 *
 * @throws LoaderxError as `open`; IO, ABORTED
 */
export async function info(path: ContainerPath, options?: LongOptions): Promise<ContainerInfo> {
  const work = longWorkOf(knownFields(options, longFields));
  const container = locate(path);
  const opened = openStore(path);
  try {
    return await infoOf(container, opened, work);
  } finally {
    await opened.handle.close();
  }
}

async function infoOf(
  container: Location,
  opened: OpenedStore,
  work: LongWork,
): Promise<ContainerInfo> {
  const facts = factsOf(opened);
  const { schema, recordCount, storedBytes } = opened;
  const measured =
    schema.kind === 'dense'
      ? { bytes: recordCount * recordBytesOf(schema.dtype, schema.itemShape), lengths: undefined }
      : await measureRagged(opened, schema.dtype, schema.ndim, work);
  const { parts } = opened;
  const isDict = parts === undefined && facts.codec === 'zstd_dict';
  const dict = isDict ? dictInfo(container) : undefined;
  return {
    path: container.shown,
    ...facts,
    logicalBytes: measured.bytes,
    storedBytes,
    diskBytes:
      parts === undefined
        ? diskBytesOf(container, facts)
        : parts.reduce((sum, part) => sum + diskBytesOf(locate(part.path), part), 0),
    ...(storedBytes === 0 ? {} : { ratio: measured.bytes / storedBytes }),
    ...(dict === undefined ? {} : { dict }),
    ...(measured.lengths === undefined ? {} : { lengths: measured.lengths }),
    ...(parts === undefined
      ? await integrityInfo(container, work)
      : { integrity: await integrityOfAll(parts, work) }),
    openedBy: [
      'loaderx for Node',
      ...(parts !== undefined
        ? []
        : [facts.dialect === '2.4' ? 'Python loaderx 2.4.x' : 'Python loaderx 2.8.x']),
    ],
    ...(parts === undefined ? {} : { parts }),
  };
}

function dictInfo(container: Location): DictInfo {
  const bytes = readDict(container) ?? new Uint8Array(0);
  const isTrained = [0x37, 0xa4, 0x30, 0xec].every((byte, at) => bytes[at] === byte);
  if (!isTrained || bytes.byteLength < 8) return { bytes: bytes.byteLength };
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return { bytes: bytes.byteLength, id: view.getUint32(4, true) };
}

function diskBytesOf(container: Location, { dataShards }: { readonly dataShards: number }): number {
  const data = Array.from({ length: dataShards }, (_, shard) => `data_${shard}.zr`);
  let total = 0;
  for (const name of ['meta.zr', 'dict.zr', integrityName, ...data]) {
    total += fileBytes(container, name) ?? 0;
  }
  return total;
}

async function integrityInfo(
  container: Location,
  { signal }: LongWork,
): Promise<Pick<ContainerInfo, 'integrity'> & Partial<Pick<ContainerInfo, 'logicalDigest'>>> {
  try {
    const facts = await readIntegrityFacts(container, signal);
    if (facts === undefined) return { integrity: 'none' };
    return { integrity: 'present', logicalDigest: facts.logicalDigest };
  } catch (error) {
    if (error instanceof LoaderxError && error.code === 'INTEGRITY')
      return { integrity: 'damaged' };
    throw error;
  }
}

/** `'present'` where every container has one that is sound. */
async function integrityOfAll(
  parts: readonly JoinedPart[],
  work: LongWork,
): Promise<ContainerInfo['integrity']> {
  let all: ContainerInfo['integrity'] = 'present';
  for (const { path } of parts) {
    const { integrity } = await integrityInfo(locate(path), work);
    if (integrity === 'damaged') return 'damaged';
    if (integrity === 'none') all = 'none';
  }
  return all;
}

/** Sizes of all records by the table, a part at a time; the event loop is let go in between. */
async function measureRagged(
  { handle, schema, recordCount }: OpenedStore,
  dtype: DTypeInfo,
  ndim: number,
  { onProgress, signal }: LongWork,
): Promise<{ bytes: number; lengths: LengthInfo | undefined }> {
  const storedHeaderBytes = ndim * (schema.dialect === '2.4' ? 8 : 4);
  const stride = Math.max(1, Math.ceil(recordCount / lengthsMax));
  const lengths = new Uint32Array(Math.ceil(recordCount / stride));
  let itemBytes = 0;
  for (let first = 0; first < recordCount; first += lookupRecords) {
    if (signal?.aborted === true) throw givenUp(handle.path, signal);
    const count = Math.min(lookupRecords, recordCount - first);
    const ids = rangeArray({ first, step: 1, count });
    const logical = handle.call((native, store) => native.logicalBytesSync(store, ids));
    for (const [index, bytes] of logical.entries()) {
      const own = Math.max(0, Number(bytes) - storedHeaderBytes);
      itemBytes += own;
      const id = first + index;
      if (id % stride === 0) lengths[id / stride] = own / dtype.itemBytes;
    }
    const recordsDone = first + count;
    onProgress({ recordsDone, recordsTotal: recordCount, bytesDone: recordsDone * 16 });
    await new Promise<void>((resolve) => {
      setImmediate(resolve);
    });
  }
  return { bytes: itemBytes, lengths: lengthInfo(lengths) };
}

function lengthInfo(lengths: Uint32Array): LengthInfo | undefined {
  const count = lengths.length;
  if (count === 0) return undefined;
  lengths.sort();
  const at = (share: number): number => lengths[Math.round(share * (count - 1))] ?? 0;
  const min = at(0);
  const max = at(1);
  const histogram = new Array<number>(Math.min(histogramBins, max - min + 1)).fill(0);
  let sum = 0;
  for (const length of lengths) {
    sum += length;
    const bin = Math.floor(((length - min) / (max - min + 1)) * histogram.length);
    histogram[bin] = (histogram[bin] ?? 0) + 1;
  }
  return {
    min,
    p10: at(0.1),
    p50: at(0.5),
    p90: at(0.9),
    max,
    mean: sum / count,
    histogram,
    records: count,
  };
}

export { assertNoContainer } from '../store/folder.js';
export { containerName, containersAt } from '../store/listing.js';
