/**
 * Looks at everything that can be wrong with a container, and tells all of it.
 *
 *     integrity.zr   its own hash; page and dictionary against it
 *     open           page, tails, files, dictionary, schema: the first fault ends it
 *     layout         all locations together: records that lie over others, bytes that no record names
 *     records        each location, stored bytes against their word, frame, dimensions; on all lanes
 *
 * Faults are what a reader could fall over or be deceived by. Warnings are what readers do not mind:
 * bytes that belong to no record.
 */
import { type ErrorCode, type ErrorRecord, fromNative, LoaderxError } from '../errors.js';
import type { CheckResult } from '../native/binding.js';
import { cancellable } from '../native/cancel.js';
import {
  differenceOf,
  type OpenedStore,
  openContainer,
  partLocation,
  setAt,
  setFormOf,
} from '../store/container.js';
import { knownFields } from '../store/fields.js';
import { fileBytes, isRegularFile, isThere, withFile } from '../store/folder.js';
import {
  changedParts,
  checkedRecords,
  formOf,
  readDict,
  readIntegrityAsync,
  readIntegrityFacts,
} from '../store/integrity.js';
import { type IntegrityFacts, integrityName, wordsFor } from '../store/integrity-file.js';
import { type ContainerPath, type Location, locate } from '../store/path.js';
import type { LongOptions, LongWork } from './progress.js';
import { countOf, longFields, longWorkOf } from './settings.js';

/** How a container is verified. */
export interface VerifyOptions extends LongOptions {
  /** Faults and warnings that are told one by one; 1000 unless given. All are counted. */
  readonly faultsMax?: number | undefined;
}

/**
 * One thing that is wrong: as an error of a gather would say it. `path` is the report's; of a set's report it
 * is `part`, the container that the fault is in, where `record` counts.
 */
export type VerifyFault = Omit<ErrorRecord, 'name' | 'path'> & {
  /** Of a set's report: the container that the fault is in. */
  readonly part?: string;
};

/** Something that no reader minds, and that no writer of this package leaves. */
export interface VerifyWarning {
  /** The file's name in its container. */
  readonly file: string;
  /** What is odd about it. */
  readonly message: string;
  /** How many bytes are. */
  readonly bytes: number;
  /** Of a set's report: the container that the file is in. */
  readonly part?: string;
}

/** What was found. It can be given to `JSON.stringify`. */
export interface VerifyReport {
  /** The container or set, as it was named. */
  readonly path: string;
  /** Whether there is no fault. */
  readonly ok: boolean;
  /** Records of the container; undefined where it does not open. */
  readonly records: number | undefined;
  /** Bytes in its data files; undefined where it does not open. */
  readonly storedBytes: number | undefined;
  /** All of them are counted, the first `faultsMax` told. */
  readonly faultCount: number;
  /** In the order they were found. */
  readonly faults: readonly VerifyFault[];
  /** In the order they were found. */
  readonly warnings: readonly VerifyWarning[];
  /**
   * `'checked'`: every byte that a reader uses was held against the integrity file; `'none'`: there is
   * none, so changed bytes of a raw record, and some in a frame, are not noticed; `'unusable'`: it is
   * damaged or not this container's, which is a fault.
   */
  readonly integrity: 'checked' | 'none' | 'unusable';
  /** As the integrity file says it; not computed anew. */
  readonly logicalDigest?: string;
  /** Of a set: its containers, in order. Their integrity is the set's where it is the same for all. */
  readonly parts?: readonly VerifyPart[];
}

/** One container of a set's report. */
export interface VerifyPart {
  /** Below the folder of the set's file. */
  readonly path: string;
  /** Whether it has no fault. */
  readonly ok: boolean;
  /** Its records; undefined where it does not open. */
  readonly records: number | undefined;
  /** As in the report. */
  readonly integrity: VerifyReport['integrity'];
}

/** Faults told one by one unless `faultsMax` says otherwise. */
const faultsDefault = 1000;
const faultsLimit = 65_536;

/**
 * Verifies a container: its structure, every frame and every ragged record, and the integrity file if
 * there is one. Of a set, whose file is at the path, each of its containers, and what the file says of them:
 * their form, lengths, and the logical digests of those with an integrity file. Faults are in the report,
 * they are not thrown.
 *
 * @throws LoaderxError NOT_FOUND where nothing is at the path, LOCKED while a live writer holds the path,
 *   ABORTED, OUT_OF_MEMORY; UNSUPPORTED where the package itself does not run
 */
export async function verify(path: ContainerPath, options?: VerifyOptions): Promise<VerifyReport> {
  const fields = knownFields(options, [...longFields, 'faultsMax']);
  const work = longWorkOf(fields);
  const faultsMax = countOf(fields.faultsMax, 'faultsMax', faultsDefault, faultsLimit);
  const container = locate(path);
  if (isRegularFile(container)) {
    const report = await verifySet(container, faultsMax, work);
    if (report !== undefined) return report;
  }
  return verifyContainer(container, faultsMax, work);
}

async function verifyContainer(
  container: Location,
  faultsMax: number,
  work: LongWork,
): Promise<VerifyReport> {
  const found = new Findings(container.shown, faultsMax);
  const facts = await integrityFacts(container, found, work);
  if (facts !== undefined) checkParts(container, facts, found);
  const opened = openedStore(container, found);
  if (opened !== undefined) {
    found.dataShards = opened.dataShards;
    try {
      await checkOpened(container, opened, facts, found, work);
    } finally {
      await opened.handle.close();
    }
  }
  return found.report(opened, facts);
}

/** Undefined where the file is none of a set. */
async function verifySet(
  location: Location,
  faultsMax: number,
  work: LongWork,
): Promise<VerifyReport | undefined> {
  const found = new Findings(location.shown, faultsMax);
  let set: ReturnType<typeof setAt>;
  try {
    set = setAt(location);
    if (set === undefined) return undefined;
  } catch (error) {
    found.add(error);
    return found.report(undefined, undefined);
  }
  const parts: VerifyPart[] = [];
  const { form, length: recordsTotal } = set;
  let storedBytes = 0;
  let recordsBefore = 0;
  for (const { path: part, length, logicalDigest } of set.parts) {
    const container = partLocation(location, part);
    const add = (code: ErrorCode, field: string, message: string): void => {
      found.addToPart(part, new LoaderxError(code, message, { field }));
    };
    if (!isThere(container)) {
      add('NOT_FOUND', 'path', 'there is no such folder');
      parts.push({ path: part, ok: false, records: undefined, integrity: 'none' });
      continue;
    }
    const before = found.faultCount;
    const report = await verifyContainer(container, found.room, {
      signal: work.signal,
      onProgress: (progress) =>
        work.onProgress({
          recordsDone: recordsBefore + progress.recordsDone,
          recordsTotal,
          bytesDone: storedBytes + progress.bytesDone,
        }),
    });
    found.addReport(part, report);
    if (report.records !== undefined) {
      const opened = openContainer(container);
      const difference = differenceOf(form, setFormOf(opened.schema));
      opened.handle.closeSync();
      if (difference !== undefined) {
        const { field, found: holds, wanted } = difference;
        add('SCHEMA', field, `it holds ${field} ${holds}, and the set ${wanted}`);
      }
      if (report.records !== length) {
        add('MALFORMED', 'length', `it has ${report.records} records, and the set says ${length}`);
      }
    }
    if (report.logicalDigest !== undefined && report.logicalDigest !== logicalDigest) {
      const said = `its integrity file says ${report.logicalDigest}, and the set ${logicalDigest}`;
      add('INTEGRITY', 'logicalDigest', `another logical digest: ${said}`);
    }
    storedBytes += report.storedBytes ?? 0;
    recordsBefore += length;
    const { records, integrity } = report;
    parts.push({ path: part, ok: found.faultCount === before, records, integrity });
  }
  const integrities = new Set(parts.map(({ integrity }) => integrity));
  found.integrity = integrities.has('unusable')
    ? 'unusable'
    : integrities.has('none')
      ? 'none'
      : 'checked';
  const isWhole = parts.every(({ records }) => records !== undefined);
  return {
    ...found.report(undefined, undefined),
    records: isWhole ? recordsTotal : undefined,
    storedBytes: isWhole ? storedBytes : undefined,
    parts,
  };
}

/** What is found, told in the order of the checks. */
class Findings {
  integrity: VerifyReport['integrity'] = 'none';
  faultCount = 0;
  readonly faults: VerifyFault[] = [];
  readonly warnings: VerifyWarning[] = [];
  /** Once the container is open: what tells a record's shard. */
  dataShards: number | undefined;
  readonly #path: string;
  readonly #faultsMax: number;

  constructor(path: string, faultsMax: number) {
    this.#path = path;
    this.#faultsMax = faultsMax;
  }

  /** How many more faults are told. */
  get room(): number {
    return this.#faultsMax - this.faults.length;
  }

  /** Takes a fault in. Throws what says nothing about the container. */
  add(error: unknown): void {
    if (!(error instanceof LoaderxError) || isAboutUs(error)) throw error;
    this.faultCount += 1;
    if (this.room === 0) return;
    const { name: _, path: __, ...fault } = error.toJSON();
    const shard = fault.shard ?? this.#shardOf(fault.record);
    this.faults.push({
      ...fault,
      ...(shard === undefined ? {} : { shard }),
      message: this.#reason(fault),
    });
  }

  /** What the error says besides where: the fields say that. */
  #reason({ message, file, record, osCode }: VerifyFault): string {
    const prefix = `${this.#path}: `;
    const said = message.startsWith(prefix) ? message.slice(prefix.length) : message;
    const place = [file, record === undefined ? undefined : `record ${record}`, osCode];
    const suffix = ` (${place.filter((part) => part !== undefined).join(', ')})`;
    if (!said.endsWith(suffix)) return said;
    return `${said.slice(0, -suffix.length)}${osCode === undefined ? '' : ` (${osCode})`}`;
  }

  #shardOf(record: VerifyFault['record']): number | undefined {
    if (record === undefined || this.dataShards === undefined) return undefined;
    return Number(BigInt(record) % BigInt(this.dataShards));
  }

  /** A fault of a set's container. */
  addToPart(part: string, error: unknown): void {
    const before = this.faults.length;
    this.add(error);
    const fault = this.faults[before];
    if (fault !== undefined) this.faults[before] = { ...fault, part };
  }

  /** What a set's container came to. */
  addReport(part: string, { faultCount, faults, warnings }: VerifyReport): void {
    this.faultCount += faultCount;
    this.faults.push(...faults.slice(0, this.room).map((fault) => ({ ...fault, part })));
    const room = this.#faultsMax - this.warnings.length;
    this.warnings.push(...warnings.slice(0, room).map((warning) => ({ ...warning, part })));
  }

  addAll(result: CheckResult): void {
    for (const fault of result.faults) this.add(fromNative(fault));
    this.faultCount += result.faultCount - result.faults.length;
  }

  warn(file: string, bytes: number, message: string): void {
    if (this.warnings.length < this.#faultsMax) this.warnings.push({ file, message, bytes });
  }

  report(opened: OpenedStore | undefined, facts: IntegrityFacts | undefined): VerifyReport {
    return {
      path: this.#path,
      ok: this.faultCount === 0,
      records: opened?.recordCount,
      storedBytes: opened?.storedBytes,
      faultCount: this.faultCount,
      faults: this.faults,
      warnings: this.warnings,
      integrity: this.integrity,
      ...(facts === undefined ? {} : { logicalDigest: facts.logicalDigest }),
    };
  }
}

/** Errors that are no fault of the container. */
function isAboutUs(error: LoaderxError): boolean {
  switch (error.code) {
    case 'ABORTED':
    case 'OUT_OF_MEMORY':
    case 'LOCKED':
    case 'UNEXPECTED':
    case 'CLOSED':
    case 'BUSY':
      return true;
    case 'UNSUPPORTED':
      // Of a stored dtype it names the field; of this platform it names none.
      return error.field === undefined;
    default:
      return false;
  }
}

async function integrityFacts(
  container: Location,
  found: Findings,
  { signal }: LongWork,
): Promise<IntegrityFacts | undefined> {
  try {
    return await readIntegrityFacts(container, signal);
  } catch (error) {
    found.integrity = 'unusable';
    found.add(error);
    return undefined;
  }
}

/** Page and dictionary against the integrity file, before anything of them is believed. */
function checkParts(container: Location, facts: IntegrityFacts, found: Findings): void {
  const page = new Uint8Array(pageBytes);
  let dict: Uint8Array | undefined;
  try {
    if (withFile(container, 'meta.zr', (file) => file.read(page, 0)) !== pageBytes) return;
    dict = readDict(container);
  } catch {
    // What cannot be read does not open either, which says it better.
    return;
  }
  for (const { file, reason } of changedParts(facts, page, dict)) {
    found.add(new LoaderxError('INTEGRITY', reason, { file }));
  }
}

function openedStore(container: Location, found: Findings): OpenedStore | undefined {
  try {
    return openContainer(container);
  } catch (error) {
    // Nothing at all is no faulty container, but a path that is wrong.
    if (!isThere(container)) throw error;
    found.add(error);
    return undefined;
  }
}

async function checkOpened(
  container: Location,
  opened: OpenedStore,
  facts: IntegrityFacts | undefined,
  found: Findings,
  work: LongWork,
): Promise<void> {
  const words = await wordsOf(container, opened, facts, found, work);
  const over = await checkLayout(container, opened, found, work);
  await checkRecords(opened, words, over, found, work);
}

async function wordsOf(
  container: Location,
  { recordCount }: OpenedStore,
  facts: IntegrityFacts | undefined,
  found: Findings,
  { signal }: LongWork,
): Promise<BigUint64Array | undefined> {
  if (facts === undefined) return undefined;
  if (facts.recordCount !== recordCount) {
    found.integrity = 'unusable';
    // Its own hash is right, so it is the page that says something else.
    if (found.faultCount > 0) return undefined;
    const reason = `it counts ${recordCount} records, and ${integrityName} vouches for ${facts.recordCount}`;
    found.add(new LoaderxError('INTEGRITY', reason, { file: 'meta.zr' }));
    return undefined;
  }
  const { words } = await readIntegrityAsync(container, recordCount, signal);
  found.integrity = 'checked';
  return words;
}

const pageBytes = 4096;
const tailsAt = 16;
const schemaAt = 2056;

/** Bits of the records that lie over others; undefined when there are none. */
async function checkLayout(
  container: Location,
  { handle, recordCount, dataShards }: OpenedStore,
  found: Findings,
  { signal }: LongWork,
): Promise<Uint8Array | undefined> {
  const over = new Uint8Array(Math.ceil(recordCount / 8));
  const unused = new BigUint64Array(dataShards);
  const result = await cancellable(
    signal,
    { path: handle.path, what: 'the check of its layout' },
    (cancel) =>
      handle.start((native, store) => native.checkLayout(store, over, unused, found.room, cancel)),
  );
  found.addAll(result);
  for (const [shard, bytes] of unused.entries()) {
    if (bytes === 0n) continue;
    found.warn(`data_${shard}.zr`, Number(bytes), 'bytes that no record names');
  }
  warnOfRest(
    container,
    handle.call((native, store) => native.storePage(store)),
    recordCount,
    found,
  );
  return result.faultCount === 0 ? undefined : over;
}

/** What lies behind the ends: readers do not look there. */
function warnOfRest(
  container: Location,
  page: Uint8Array,
  recordCount: number,
  found: Findings,
): void {
  const view = new DataView(page.buffer, page.byteOffset, page.byteLength);
  const schemaBytes = view.getUint16(8, true);
  const padding = page.subarray(schemaAt + schemaBytes);
  const junkBytes = padding.filter((byte) => byte !== 0).byteLength;
  if (junkBytes > 0) found.warn('meta.zr', junkBytes, 'bytes behind the schema that are not zero');

  const tableEnd = pageBytes + recordCount * 16;
  const metaRest = (fileBytes(container, 'meta.zr') ?? 0) - tableEnd;
  if (metaRest > 0) found.warn('meta.zr', metaRest, 'bytes behind the location table');
  const dataShards = view.getUint8(10);
  for (let shard = 0; shard < dataShards; shard += 1) {
    const file = `data_${shard}.zr`;
    const tail = Number(view.getBigUint64(tailsAt + shard * 8, true));
    const rest = (fileBytes(container, file) ?? 0) - tail;
    if (rest > 0) found.warn(file, rest, 'bytes behind its tail');
  }
}

async function checkRecords(
  { handle, schema, recordCount, storedBytes }: OpenedStore,
  words: BigUint64Array | undefined,
  over: Uint8Array | undefined,
  found: Findings,
  { signal, onProgress }: LongWork,
): Promise<void> {
  const { recordBytes, geometry } = formOf(schema);
  // Whole bytes of `over`.
  const most = Math.ceil(checkedRecords(recordCount, storedBytes) / 8) * 8;
  for (let first = 0; first < recordCount; first += most) {
    const count = Math.min(most, recordCount - first);
    const result = await cancellable(
      signal,
      { path: handle.path, what: 'the check of its records' },
      (cancel) =>
        handle.start((native, store) =>
          native.checkRecords(
            store,
            first,
            count,
            recordBytes,
            geometry,
            words === undefined ? 0 : 1,
            words === undefined ? undefined : wordsFor(words, first),
            over?.subarray(first / 8),
            found.room,
            cancel,
          ),
        ),
    );
    found.addAll(result);
    const recordsDone = first + count;
    onProgress({
      recordsDone,
      recordsTotal: recordCount,
      bytesDone: Math.round((storedBytes * recordsDone) / recordCount),
    });
  }
}
