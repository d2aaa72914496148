/**
 * Integrity files for containers that are there, and what a container holds as one number.
 */
import { ArgumentTypeError, type ErrorPlace, LoaderxError, show } from '../errors.js';
import type { DenseReader, RaggedReader } from '../store/capability.js';
import { type OpenedStore, openStore, partsAt } from '../store/container.js';
import { knownFields } from '../store/fields.js';
import { replaceFile } from '../store/folder.js';
import {
  assertFile,
  hasIntegrity,
  makeIntegrity,
  readDict,
  readIntegrityFacts,
} from '../store/integrity.js';
import { type IntegrityFacts, integrityName } from '../store/integrity-file.js';
import { digestOf, type OnRecords } from '../store/logical-digest.js';
import { type ContainerPath, type Location, locate } from '../store/path.js';
import { readerOf } from './facts.js';
import type { LongOptions, LongWork } from './progress.js';
import { flagOf, longFields, longWorkOf } from './settings.js';
import { type VerifyFault, verify } from './verify.js';

/** What {@link digest} is told. */
export interface DigestOptions extends LongOptions {
  /** Only compute: nothing is written. */
  readonly dryRun?: boolean | undefined;
  /**
   * Write a new integrity file although there is one that says something else, or is damaged. What the
   * container holds now is what it vouches for then, damage included.
   */
  readonly replace?: boolean | undefined;
}

/** What {@link digest} found and did. */
export interface DigestResult {
  /** The container, as it was named. */
  readonly path: string;
  /** Its records. */
  readonly records: number;
  /** 64 hexadecimal digits. */
  readonly logicalDigest: string;
  /** `'written'`: it has an integrity file now; `'kept'`: it had one, and all of it fits. */
  readonly integrity: 'written' | 'kept' | 'none';
  /** Of a set: how many containers it has, and how many of them have an integrity file (not checked here). */
  readonly parts?: {
    /** Containers of the set. */
    readonly count: number;
    /** Of these, those with an integrity file. */
    readonly withIntegrity: number;
  };
}

/**
 * Reads all of a container and gives it an integrity file, which vouches for every byte that a reader
 * uses. A container that has one already is verified against it, and keeps it: so a damaged container
 * is never given a file that vouches for its damage.
 *
 * Of a set, whose file is at the path, the logical digest of the whole is told, and nothing is written:
 * integrity files are its containers'.
 *
 * @throws LoaderxError INTEGRITY where a file is there and does not fit; MALFORMED, CODEC, INTEGRITY with
 *   `record` and `file` for what is wrong with the container; IO, ABORTED, and as `open`
 */
export async function digest(path: ContainerPath, options?: DigestOptions): Promise<DigestResult> {
  const fields = knownFields(options, [...longFields, 'dryRun', 'replace']);
  const work = longWorkOf(fields);
  const dryRun = flagOf(fields.dryRun, 'dryRun');
  const replace = flagOf(fields.replace, 'replace');
  const container = locate(path);
  const opened = openStore(path);
  try {
    if (opened.parts !== undefined) {
      const reader = readerOf(opened);
      const logicalDigest = await digestOf(reader, work.signal, onRecords(reader, work));
      const withIntegrity = partsAt(path).filter(hasIntegrity).length;
      return {
        ...result(container, opened, logicalDigest, 'none'),
        parts: { count: opened.parts.length, withIntegrity },
      };
    }
    // Also where it is to be replaced: it may be a link to something that is needed.
    if (!dryRun) assertFile(container);
    const facts = dryRun || replace ? undefined : await readIntegrityFacts(container, work.signal);
    if (facts !== undefined) return await kept(path, container, opened, facts, work);
    const reader = readerOf(opened);
    if (dryRun) {
      const logicalDigest = await digestOf(reader, work.signal, onRecords(reader, work));
      return result(container, opened, logicalDigest, 'none');
    }
    const { handle, schema, storedBytes } = opened;
    const dict = opened.codec === 'zstd_dict' ? readDict(container) : undefined;
    const source = { handle, schema, reader, storedBytes, dict };
    const made = await makeIntegrity(source, work.signal, onRecords(reader, work));
    replaceFile(container, integrityName, made.bytes);
    return result(container, opened, made.logicalDigest, 'written');
  } finally {
    await opened.handle.close();
  }
}

async function kept(
  path: ContainerPath,
  container: Location,
  opened: OpenedStore,
  facts: IntegrityFacts,
  work: LongWork,
): Promise<DigestResult> {
  const report = await verify(path, { signal: work.signal, faultsMax: 1 });
  const [fault] = report.faults;
  const reader = readerOf(opened);
  const found =
    fault === undefined ? await digestOf(reader, work.signal, onRecords(reader, work)) : undefined;
  if (found === facts.logicalDigest) return result(container, opened, found, 'kept');
  const reason = fault === undefined ? 'its logical digest is another' : reasonOf(fault);
  throw new LoaderxError(
    'INTEGRITY',
    `${container.shown}: it is not what its ${integrityName} vouches for: ${reason}. Verify tells all; replace the file only if the container is right`,
    { ...placeOf(fault), path: container.shown },
  );
}

function reasonOf({ file, message }: VerifyFault): string {
  return file === undefined ? message : `${file}: ${message}`;
}

function placeOf(fault: VerifyFault | undefined): ErrorPlace {
  if (fault === undefined) return {};
  const { file, shard, record } = fault;
  return {
    ...(file === undefined ? {} : { file }),
    ...(shard === undefined ? {} : { shard }),
    ...(record === undefined
      ? {}
      : { record: typeof record === 'string' ? BigInt(record) : record }),
  };
}

function result(
  container: Location,
  opened: OpenedStore,
  logicalDigest: string,
  integrity: DigestResult['integrity'],
): DigestResult {
  return { path: container.shown, records: opened.recordCount, logicalDigest, integrity };
}

function onRecords(reader: DenseReader | RaggedReader, { onProgress }: LongWork): OnRecords {
  const recordsTotal = reader.length;
  return (recordsDone, bytesDone) => onProgress({ recordsDone, recordsTotal, bytesDone });
}

/**
 * The logical digest of an open reader: SHA-256 over dtype, shapes and items in record order, the same for
 * every codec, number of shards, dialect and sequence of appends. docs/format.md defines it.
 *
 * @returns 64 hexadecimal digits
 * @throws what a gather throws; LoaderxError ABORTED
 */
export async function logicalDigest(
  reader: DenseReader | RaggedReader,
  options?: LongOptions,
): Promise<string> {
  const work = longWorkOf(knownFields(options, longFields));
  const candidate = reader as Partial<DenseReader> | null | undefined;
  if (typeof candidate?.gather !== 'function') {
    throw new ArgumentTypeError('reader', `reader must be an open reader, got ${show(reader)}`);
  }
  return digestOf(reader, work.signal, onRecords(reader, work));
}
