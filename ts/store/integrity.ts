/**
 * Making an integrity file, reading one, and holding a reader to it.
 */
import { setImmediate } from 'node:timers/promises';
import { fromNative, LoaderxError } from '../errors.js';
import type { CheckResult, Native, RaggedGeometry, StoreHandle } from '../native/binding.js';
import { abortedError, cancellable } from '../native/cancel.js';
import { dimBytesOf, recordBytesOf, type Schema } from '../schema.js';
import type { DenseReader, RaggedReader } from './capability.js';
import { fileBytes, type OpenFile, otherThanFile, withFile, withFileAsync } from './folder.js';
import type { Handle } from './handle.js';
import {
  damaged,
  factsOf,
  headBytes,
  IntegrityDraft,
  type IntegrityFacts,
  integrityBytesOf,
  integrityName,
  memoryFor,
  noHash,
  SelfHash,
  sha256,
  wordCountOf,
  wordsFor,
} from './integrity-file.js';
import { digestOf, digestOfSync, type OnRecords } from './logical-digest.js';
import type { Location } from './path.js';

/** Records that one native check looks at, so that a caller hears of it now and then. */
const checkedBytes = 64 * 2 ** 20;

/** What a container's records are, as a native check is told. */
export interface RecordForm {
  /** Of dense records; 0 for ragged ones. */
  readonly recordBytes: number;
  readonly geometry: RaggedGeometry | undefined;
}

export function formOf(schema: Schema): RecordForm {
  if (schema.kind === 'dense') {
    return { recordBytes: recordBytesOf(schema.dtype, schema.itemShape), geometry: undefined };
  }
  const { ndim, dialect, dtype } = schema;
  const geometry = { ndim, dimBytes: dimBytesOf(dialect), itemBytes: dtype.itemBytes };
  return { recordBytes: 0, geometry };
}

/** How many records one native check takes. */
export function checkedRecords(recordCount: number, storedBytes: number): number {
  const mean = storedBytes / Math.max(1, recordCount);
  return Math.max(64, Math.min(2 ** 20, Math.floor(checkedBytes / Math.max(1, mean))));
}

/** What an integrity file is made of: a published container, or a build that is complete. */
export interface IntegritySource {
  readonly handle: Handle;
  readonly schema: Schema;
  /** Reads the same store. */
  readonly reader: DenseReader | RaggedReader;
  readonly storedBytes: number;
  readonly dict: Uint8Array | undefined;
}

/**
 * The integrity file of a container whose records are all sound. Reads all of them twice: each as it is
 * stored, on all lanes, and each as it is meant.
 *
 * @throws the first fault of a record; LoaderxError ABORTED, OUT_OF_MEMORY, IO
 */
export async function makeIntegrity(
  source: IntegritySource,
  signal?: AbortSignal,
  onRecords?: OnRecords,
): Promise<MadeIntegrity> {
  const { handle } = source;
  const draft = new IntegrityDraft(source.reader.length);
  for (const check of checksOf(source, draft.words)) {
    const found = await cancellable(
      signal,
      { path: handle.path, what: 'the check of its records' },
      (cancel) => handle.start((native, store) => check.async(native, store, cancel)),
    );
    assertSound(source, found);
  }
  const logicalDigest = await digestOf(source.reader, signal, onRecords);
  return { bytes: draft.finish(factsFor(source, logicalDigest)), logicalDigest };
}

/** A new integrity file. */
export interface MadeIntegrity {
  readonly bytes: Uint8Array;
  readonly logicalDigest: string;
}

/** As `makeIntegrity`, on this thread. */
export function makeIntegritySync(source: IntegritySource): MadeIntegrity {
  const draft = new IntegrityDraft(source.reader.length);
  for (const check of checksOf(source, draft.words)) {
    assertSound(source, source.handle.call(check.sync));
  }
  const logicalDigest = digestOfSync(source.reader);
  return { bytes: draft.finish(factsFor(source, logicalDigest)), logicalDigest };
}

interface Check {
  readonly sync: (native: Native, store: StoreHandle) => CheckResult;
  readonly async: (
    native: Native,
    store: StoreHandle,
    cancel: Uint32Array | undefined,
  ) => Promise<CheckResult>;
}

/** Checks that make the words of all records, one after the other. */
function* checksOf(source: IntegritySource, words: BigUint64Array): Generator<Check> {
  const { length } = source.reader;
  const { recordBytes, geometry } = formOf(source.schema);
  const most = checkedRecords(length, source.storedBytes);
  for (let first = 0; first < length; first += most) {
    const count = Math.min(most, length - first);
    const part = wordsFor(words, first);
    yield {
      sync: (native, store) =>
        native.checkRecordsSync(store, first, count, recordBytes, geometry, 2, part, undefined, 1),
      async: (native, store, cancel) =>
        native.checkRecords(
          store,
          first,
          count,
          recordBytes,
          geometry,
          2,
          part,
          undefined,
          1,
          cancel,
        ),
    };
  }
}

function assertSound(source: IntegritySource, found: CheckResult): void {
  const [fault] = found.faults;
  if (fault !== undefined) throw fromNative(fault, source.handle.path);
}

function factsFor(source: IntegritySource, logicalDigest: string): IntegrityFacts {
  const { dict, handle, reader } = source;
  return {
    recordCount: reader.length,
    dictBytes: dict?.byteLength ?? 0,
    logicalDigest,
    pageHash: sha256(handle.call((native, store) => native.storePage(store))),
    dictHash: dict === undefined ? noHash : sha256(dict),
  };
}

// ---- reading ----

/** Read with one call. */
const chunkBytes = 4 * 2 ** 20;

/**
 * What a container's integrity file says, once its own hash was found right; undefined without a file. The
 * event loop turns meanwhile.
 *
 * @throws LoaderxError INTEGRITY for a damaged file, IO, ABORTED
 */
export function readIntegrityFacts(
  container: Location,
  signal: AbortSignal | undefined,
): Promise<IntegrityFacts | undefined> {
  assertFile(container);
  return withFileAsync(container, integrityName, async (file) => {
    const { bytes } = file;
    const chunk = Buffer.alloc(Math.min(bytes, chunkBytes));
    const into = (_: number, length: number): Uint8Array => chunk.subarray(0, length);
    return await eventually(readHashed(file, bytes, container, into), container, signal);
  });
}

/** An integrity file with its words. */
export interface Integrity {
  readonly facts: IntegrityFacts;
  readonly words: BigUint64Array;
}

/**
 * The integrity file of a container of `recordCount` records, with its words in memory.
 *
 * @throws LoaderxError INTEGRITY where there is no file, or it is damaged or another container's; IO,
 *   OUT_OF_MEMORY
 */
export function readIntegrity(container: Location, recordCount: number): Integrity {
  assertFile(container);
  const found = withFile(container, integrityName, (file) => {
    const { steps, whole } = readingWhole(file, recordCount, container);
    return { facts: atOnce(steps), words: whole.words };
  });
  if (found === undefined) throw withoutFile(container);
  return found;
}

/** Whether a container has an integrity file, whatever is to be thought of it. */
export function hasIntegrity(container: Location): boolean {
  return (
    fileBytes(container, integrityName) !== undefined ||
    otherThanFile(container, integrityName) !== undefined
  );
}

/** Something of that name which is no file vouches for nothing, and is not to be taken for nothing. */
export function assertFile(container: Location): void {
  const other = otherThanFile(container, integrityName);
  if (other === undefined) return;
  throw new LoaderxError(
    'INTEGRITY',
    `${container.shown}: ${integrityName} is ${other}, and must be a regular file: remove it, or put the file there`,
    { path: container.shown, file: integrityName },
  );
}

/** As `readIntegrity`; the event loop turns meanwhile. Throws ABORTED as well. */
export async function readIntegrityAsync(
  container: Location,
  recordCount: number,
  signal: AbortSignal | undefined,
): Promise<Integrity> {
  assertFile(container);
  const found = await withFileAsync(container, integrityName, async (file) => {
    const { steps, whole } = readingWhole(file, recordCount, container);
    return { facts: await eventually(steps, container, signal), words: whole.words };
  });
  if (found === undefined) throw withoutFile(container);
  return found;
}

function readingWhole(
  file: OpenFile,
  recordCount: number,
  container: Location,
): { steps: Generator<void, IntegrityFacts>; whole: { words: BigUint64Array } } {
  const { bytes } = file;
  if (bytes !== integrityBytesOf(recordCount)) {
    const reason = `it has ${bytes} bytes, which are not those of ${recordCount} records`;
    throw damaged({ path: container.shown }, reason);
  }
  const buffer = memoryFor(bytes);
  const into = (at: number, length: number): Uint8Array => new Uint8Array(buffer, at, length);
  const words = new BigUint64Array(buffer, headBytes, wordCountOf(recordCount));
  return { steps: readHashed(file, bytes, container, into), whole: { words } };
}

/**
 * Reads a whole integrity file a chunk a step, each to where `into` says. Its head is looked at first: a
 * file of another size than it tells of is not read.
 */
function* readHashed(
  file: OpenFile,
  bytes: number,
  container: Location,
  into: (at: number, length: number) => Uint8Array,
): Generator<void, IntegrityFacts> {
  const place = { path: container.shown };
  const hash = new SelfHash(bytes, place);
  const head = new Uint8Array(headBytes);
  file.read(head, 0);
  const facts = factsOf(head, bytes, place);
  for (let at = 0; at < bytes; at += chunkBytes) {
    const target = into(at, Math.min(chunkBytes, bytes - at));
    const read = file.read(target, at);
    hash.update(target.subarray(0, read));
    if (read < target.byteLength) break;
    yield;
  }
  hash.assertRight(place);
  return facts;
}

function atOnce<T>(steps: Generator<void, T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done) return value;
  }
}

async function eventually<T>(
  steps: Generator<void, T>,
  container: Location,
  signal: AbortSignal | undefined,
): Promise<T> {
  for (;;) {
    if (signal?.aborted === true) {
      throw abortedError(signal, {
        path: container.shown,
        what: `reading its ${integrityName}`,
      });
    }
    const { done, value } = steps.next();
    if (done) return value;
    await setImmediate();
  }
}

function withoutFile(container: Location): LoaderxError {
  return new LoaderxError(
    'INTEGRITY',
    `${container.shown}: there is no ${integrityName} to verify by; \`npx loaderx digest\` makes one`,
    { path: container.shown, file: integrityName },
  );
}

/** A part of a container that the integrity file vouches for as a whole, and that is another now. */
export interface ChangedPart {
  readonly file: 'meta.zr' | 'dict.zr';
  readonly reason: string;
}

/** Whether page and dictionary are those that the integrity file vouches for. */
export function changedParts(
  facts: IntegrityFacts,
  page: Uint8Array,
  dict: Uint8Array | undefined,
): ChangedPart[] {
  const changed: ChangedPart[] = [];
  if (sha256(page) !== facts.pageHash) {
    changed.push({
      file: 'meta.zr',
      reason: `its page (bytes 0 to 4095) is not the one that ${integrityName} vouches for`,
    });
  }
  if ((dict === undefined ? noHash : sha256(dict)) !== facts.dictHash) {
    const reason =
      dict === undefined
        ? `it is not there, and ${integrityName} vouches for one of ${facts.dictBytes} bytes`
        : `it is not the one that ${integrityName} vouches for`;
    changed.push({ file: 'dict.zr', reason });
  }
  return changed;
}

/** All bytes of `dict.zr`; undefined where there is none. The native side bounds it at open. */
export function readDict(container: Location): Uint8Array | undefined {
  return withFile(container, 'dict.zr', (file) => {
    const bytes = new Uint8Array(Math.min(file.bytes, dictBytesMax + 1));
    return bytes.subarray(0, file.read(bytes, 0));
  });
}

const dictBytesMax = 48 * 2 ** 20;

/**
 * From now on each record that is gathered is held against the integrity file.
 *
 * @param logicalDigest what the file must say too
 * @throws LoaderxError INTEGRITY where there is no file, it is damaged, or page or dictionary are not
 *   what it vouches for; IO
 */
export function attachIntegrity(
  container: Location,
  handle: Handle,
  recordCount: number,
  logicalDigest?: string,
): void {
  const { facts, words } = readIntegrity(container, recordCount);
  if (logicalDigest !== undefined && facts.logicalDigest !== logicalDigest) {
    throw new LoaderxError(
      'INTEGRITY',
      `${container.shown}: ${integrityName} vouches for the logical digest ${facts.logicalDigest}, and the set wants ${logicalDigest}`,
      { path: container.shown, file: integrityName },
    );
  }
  const page = handle.call((native, store) => native.storePage(store));
  for (const { file, reason } of changedParts(facts, page, readDict(container))) {
    throw new LoaderxError('INTEGRITY', `${container.shown}: ${file}: ${reason}`, {
      path: container.shown,
      file,
    });
  }
  handle.call((native, store) => native.storeExpect(store, words));
}
