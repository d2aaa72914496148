/**
 * The file of a set: containers that are read as one, written down.
 */
import fs from 'node:fs';
import path from 'node:path';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { assertAlike, openContainer, partsAt, setFormOf } from '../store/container.js';
import { knownFields } from '../store/fields.js';
import { isContainerFolder, moveToFree, takenError } from '../store/folder.js';
import { readIntegrityFacts } from '../store/integrity.js';
import { digestOf } from '../store/logical-digest.js';
import { type ContainerPath, type Location, locateUtf8 } from '../store/path.js';
import { encodeSetFile, partsMax, pathFault, type SetPart } from '../store/set-file.js';
import { readerOf } from './facts.js';
import type { LongOptions, LongWork } from './progress.js';
import { flagOf, longFields, longWorkOf } from './settings.js';

/** How a set's file is made. */
export interface SetOptions extends LongOptions {
  /** Also sync the file and its folder to the disk before it has its name. */
  readonly durable?: boolean | undefined;
}

/** What {@link makeSet} wrote. */
export interface SetResult {
  /** The set's file. */
  readonly path: string;
  /** Records of all parts. */
  readonly records: number;
  /** Its containers, in the order of their records. */
  readonly parts: readonly SetPart[];
}

/**
 * Writes the file of a set: a small JSON file that names containers which `open` then reads as one, in this
 * order. It is moved into place when it is complete, and replaces nothing.
 *
 * Each part's logical digest stands in the file: from the part's integrity file where it has one, else all
 * of it is read. The parts lie below the folder of the file, so that all of it can be moved or copied.
 *
 * Where a part has a name such as `part-00003-of-00064`, by itself or in the folders above it, all of that
 * number must be there, each once, in order.
 *
 * @param parts containers of one kind, dtype and shape; a set's file stands for its parts
 * @throws TypeError, RangeError for parts that are no list, missing, twice there, out of order, or not below
 *   the folder; LoaderxError SCHEMA, with `path` and `field`, for one that holds something else than the
 *   first; EXISTS where anything is at the path; as `open` and `gather`; INTEGRITY, IO, ABORTED
 */
export async function makeSet(
  parts: readonly ContainerPath[],
  target: string | URL,
  options?: SetOptions,
): Promise<SetResult> {
  const fields = knownFields(options, [...longFields, 'durable']);
  const work = longWorkOf(fields);
  const durable = flagOf(fields.durable, 'durable');
  const { shown, native } = locateUtf8(target);
  if (!Array.isArray(parts) || parts.length === 0) {
    throw new ArgumentTypeError('parts', `parts must be a list of paths, got ${show(parts)}`);
  }
  const folder = path.dirname(native);
  if (isContainerFolder(folder)) {
    throw new ArgumentRangeError('path', `path ${show(shown)} is inside of a container`);
  }
  const locations = parts.flatMap((part: ContainerPath) => partsAt(part));
  if (locations.length > partsMax) {
    const text = `there are ${locations.length} parts, and ${partsMax} is the most`;
    throw new ArgumentRangeError('parts', text);
  }
  assertOnce(locations);
  assertNumbers(locations);
  const names = locations.map((location) => nameBelow(folder, location));
  if (fs.lstatSync(native, { throwIfNoEntry: false }) !== undefined) throw takenError(shown);

  const facts = await factsOf(locations, work);
  const listed = facts.lengths.map((length, index) => ({
    path: names[index] ?? '',
    length,
    logicalDigest: facts.digests[index] ?? '',
  }));
  const records = facts.lengths.reduce((sum, length) => sum + length, 0);
  const text = encodeSetFile({ form: facts.form, length: records, parts: listed });
  place(native, shown, text, durable);
  return { path: shown, records, parts: listed };
}

function assertOnce(locations: readonly Location[]): void {
  const seen = new Map<string, number>();
  for (const [index, { native, shown }] of locations.entries()) {
    const real = realPath(native);
    const before = seen.get(real);
    if (before !== undefined) {
      const text = `parts[${index}], ${show(shown)}, is the same container as parts[${before}]`;
      throw new ArgumentRangeError('parts', text);
    }
    seen.set(real, index);
  }
}

function realPath(native: string | Uint8Array): string {
  const name = typeof native === 'string' ? native : Buffer.from(native);
  try {
    return fs.realpathSync(name, { encoding: 'latin1' });
  } catch {
    // Opening it says why.
    return Buffer.from(name).toString('latin1');
  }
}

/** The part of a whole that a path's names tell of, as `partName` gives them. */
function numberOf(shown: string): { readonly part: number; readonly of: number } | undefined {
  for (const name of shown.split(/[/\\]/).reverse()) {
    const match = /^part-(\d{5,})-of-(\d{5,})$/.exec(name);
    if (match !== null) return { part: Number(match[1]), of: Number(match[2]) };
  }
  return undefined;
}

/** Parts that have numbers: all of them are there, in order. */
function assertNumbers(locations: readonly Location[]): void {
  const numbers = locations.map(({ shown }) => numberOf(shown));
  if (numbers.every((number) => number === undefined)) return;
  for (const [index, number] of numbers.entries()) {
    const name = show(locations[index]?.shown);
    if (number === undefined) {
      throw new ArgumentRangeError('parts', `${name} has no number, and others have`);
    }
    if (number.of !== numbers[0]?.of) {
      const text = `${name} is one of ${number.of} parts, and the first one of ${numbers[0]?.of}`;
      throw new ArgumentRangeError('parts', text);
    }
    if (index >= number.of) {
      const text = `${name} is one too many: there are ${number.of} parts, 0 to ${number.of - 1}`;
      throw new ArgumentRangeError('parts', text);
    }
    if (number.part !== index) {
      const text = `${name} is in the place of part ${index} of ${number.of}, counted from 0: all are wanted, in order`;
      throw new ArgumentRangeError('parts', text);
    }
  }
  const [first] = numbers;
  if (first !== undefined && numbers.length !== first.of) {
    const text = `parts ${numbers.length} to ${first.of - 1} of ${first.of} are missing`;
    throw new ArgumentRangeError('parts', text);
  }
}

function nameBelow(folder: string, { native, shown }: Location): string {
  const text = typeof native === 'string' ? native : undefined;
  const name = text === undefined ? '..' : path.relative(folder, text).split(path.sep).join('/');
  if (pathFault(name) === undefined) return name;
  throw new ArgumentRangeError(
    'parts',
    `${show(shown)} is not below the folder of the set's file: put the file into a folder that holds all parts`,
  );
}

interface PartFacts {
  readonly form: ReturnType<typeof setFormOf>;
  readonly lengths: readonly number[];
  readonly digests: readonly string[];
}

/** One part is open at a time, besides the first. */
async function factsOf(locations: readonly Location[], work: LongWork): Promise<PartFacts> {
  const lengths: number[] = [];
  const digests: string[] = [];
  const first = openContainer(locations[0] as Location);
  try {
    // All are looked at before any is read.
    for (const location of locations) {
      const opened = openContainer(location);
      try {
        assertAlike([first, opened]);
        lengths.push(opened.recordCount);
      } finally {
        opened.handle.closeSync();
      }
    }
    const recordsTotal = lengths.reduce((sum, length) => sum + length, 0);
    let recordsBefore = 0;
    let bytesBefore = 0;
    for (const [index, location] of locations.entries()) {
      let bytes = 0;
      digests.push(
        await digestAt(location, work, (recordsDone, bytesDone) => {
          bytes = bytesDone;
          work.onProgress({
            recordsDone: recordsBefore + recordsDone,
            recordsTotal,
            bytesDone: bytesBefore + bytesDone,
          });
        }),
      );
      recordsBefore += lengths[index] ?? 0;
      bytesBefore += bytes;
    }
    return { form: setFormOf(first.schema), lengths, digests };
  } finally {
    await first.handle.close();
  }
}

async function digestAt(
  location: Location,
  work: LongWork,
  onRecords: (recordsDone: number, bytesDone: number) => void,
): Promise<string> {
  const facts = await readIntegrityFacts(location, work.signal);
  if (facts !== undefined) return facts.logicalDigest;
  const opened = openContainer(location);
  try {
    return await digestOf(readerOf(opened), work.signal, onRecords);
  } finally {
    await opened.handle.close();
  }
}

/** Gives a file its name when all of it is there, and never another's. */
function place(native: string, shown: string, text: string, durable: boolean): void {
  const random = Math.random().toString(16).slice(2, 10).padEnd(8, '0');
  const temporary = path.join(path.dirname(native), `.${path.basename(native)}.${random}`);
  try {
    const descriptor = fs.openSync(temporary, 'wx');
    try {
      fs.writeFileSync(descriptor, text);
      if (durable) fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
    moveToFree(temporary, native, shown);
    if (durable) syncFolder(path.dirname(native));
  } catch (cause) {
    if (cause instanceof LoaderxError) throw cause;
    const { code = 'EUNKNOWN' } = cause as NodeJS.ErrnoException;
    throw new LoaderxError(
      'IO',
      `${shown}: writing it failed (${code})`,
      { path: shown, osCode: code },
      { cause },
    );
  } finally {
    fs.rmSync(temporary, { force: true });
  }
}

function syncFolder(folder: string): void {
  if (process.platform === 'win32') return;
  const descriptor = fs.openSync(folder, 'r');
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}
