/**
 * Files of a container that the native side does not read: the integrity file, and what a check wants to
 * see of the others before the container is opened.
 *
 * Only regular files are opened: a pipe would hang. What the system refuses is a LoaderxError IO that
 * names the file.
 */
import fs from 'node:fs';
import path from 'node:path';
import { LoaderxError } from '../errors.js';
import type { Location } from './path.js';

/** The path of a file of a container. */
export function fileIn(container: Location, name: string): string | Buffer {
  const { native } = container;
  if (typeof native === 'string') return path.join(native, name);
  return Buffer.concat([native, Buffer.from(`/${name}`)]);
}

/** Bytes of a regular file; undefined where there is none of that name. */
export function fileBytes(container: Location, name: string): number | undefined {
  try {
    const stat = fs.statSync(fileIn(container, name));
    return stat.isFile() ? stat.size : undefined;
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw ioError(container, name, 'looking at it', error);
  }
}

/** Whether a container's files have such names. */
export function isFileOfContainer(name: string): boolean {
  return /^(meta|dict|integrity|data_\d{1,3})\.zr$/.test(name);
}

/** Whether a folder is a container, also one of which files are missing. */
export function isContainerFolder(folder: string | Buffer): boolean {
  try {
    return fs.readdirSync(folder, 'utf8').some(isFileOfContainer);
  } catch {
    return false;
  }
}

/**
 * What stands in the place of a file of a container and is none: `'a folder'`, `'a pipe'`; undefined where
 * there is a regular file, or nothing.
 */
export function otherThanFile(container: Location, name: string): string | undefined {
  let stat: fs.Stats;
  try {
    stat = fs.statSync(fileIn(container, name));
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw ioError(container, name, 'looking at it', error);
  }
  if (stat.isFile()) return undefined;
  if (stat.isDirectory()) return 'a folder';
  if (stat.isFIFO()) return 'a pipe';
  return stat.isSocket() ? 'a socket' : 'a device';
}

/** Whether a regular file is at the path, where a container would be a folder. */
export function isRegularFile({ native }: Location): boolean {
  try {
    return fs.statSync(typeof native === 'string' ? native : Buffer.from(native)).isFile();
  } catch {
    return false;
  }
}

/** Whether anything is at the path of a container. */
export function isThere({ native }: Location): boolean {
  return fs.existsSync(typeof native === 'string' ? native : Buffer.from(native));
}

/** An open file, closed when `use` has returned. Undefined where there is no regular file. */
export function withFile<T>(
  container: Location,
  name: string,
  use: (file: OpenFile) => T,
): T | undefined {
  using file = openFile(container, name);
  return file === undefined ? undefined : use(file);
}

/** As `withFile`, until what `use` promises has come. */
export async function withFileAsync<T>(
  container: Location,
  name: string,
  use: (file: OpenFile) => Promise<T>,
): Promise<T | undefined> {
  using file = openFile(container, name);
  return file === undefined ? undefined : await use(file);
}

function openFile(container: Location, name: string): OpenFile | undefined {
  const place = fileIn(container, name);
  try {
    if (!fs.statSync(place).isFile()) return undefined;
    return new OpenFile(container, name, fs.openSync(place, 'r'));
  } catch (error) {
    if (isAbsence(error)) return undefined;
    throw ioError(container, name, 'opening it', error);
  }
}

/** A file that is being read. */
export class OpenFile implements Disposable {
  readonly #container: Location;
  readonly #name: string;
  readonly #descriptor: number;

  constructor(container: Location, name: string, descriptor: number) {
    this.#container = container;
    this.#name = name;
    this.#descriptor = descriptor;
  }

  [Symbol.dispose](): void {
    fs.closeSync(this.#descriptor);
  }

  get bytes(): number {
    return this.#do('measuring it', () => fs.fstatSync(this.#descriptor).size);
  }

  /** Fills `target` from `at`; how much of it was there. */
  read(target: Uint8Array, at: number): number {
    return this.#do('reading it', () => {
      let done = 0;
      while (done < target.byteLength) {
        const count = fs.readSync(
          this.#descriptor,
          target,
          done,
          Math.min(target.byteLength - done, readBytesMax),
          at + done,
        );
        if (count === 0) break;
        done += count;
      }
      return done;
    });
  }

  #do<T>(doing: string, act: () => T): T {
    try {
      return act();
    } catch (error) {
      throw ioError(this.#container, this.#name, doing, error);
    }
  }
}

/** Node reads at most 2^31 - 1 bytes with one call. */
const readBytesMax = 2 ** 30;

/**
 * Puts a whole file into a container, in one step that replaces an older one. Its bytes are on the disk
 * before it has its name, so a power cut leaves the new file, the old one, or none.
 */
export function replaceFile(container: Location, name: string, bytes: Uint8Array): void {
  const random = Math.random().toString(16).slice(2, 10).padEnd(8, '0');
  const temporary = fileIn(container, `.${name}.${random}`);
  try {
    const descriptor = fs.openSync(temporary, 'wx');
    try {
      let done = 0;
      while (done < bytes.byteLength) {
        const length = Math.min(bytes.byteLength - done, readBytesMax);
        done += fs.writeSync(descriptor, bytes, done, length, done);
      }
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
    fs.renameSync(temporary, fileIn(container, name));
  } catch (error) {
    fs.rmSync(temporary, { force: true });
    throw ioError(container, name, 'writing it', error);
  }
}

/** Gives a file another name, behind which nothing is: a rename would replace what is there. */
export function moveToFree(from: string, to: string, shown: string): void {
  try {
    fs.linkSync(from, to);
  } catch {
    // Something is there, or the file system has no second names.
    if (fs.lstatSync(to, { throwIfNoEntry: false }) !== undefined) throw takenError(shown);
    fs.renameSync(from, to);
    return;
  }
  fs.unlinkSync(from);
}

/** Where something is at the path of what is to be made. `remedy` is what to do about it. */
export function takenError(shown: string, remedy?: string): LoaderxError {
  const more = remedy === undefined ? '' : `: ${remedy}`;
  return new LoaderxError('EXISTS', `${shown}: something is there already${more}`, { path: shown });
}

/** Nothing is written into a container: there it would be taken for a part of it. */
export function assertNoContainer(folder: string, shown: string, shownFolder = folder): void {
  if (!isContainerFolder(folder)) return;
  throw new LoaderxError(
    'EXISTS',
    `${shown}: ${shownFolder} is a container, and nothing is written into one: name another folder`,
    { path: shown },
  );
}

/** What the file system said, as an error of this package. */
export function ioError(
  container: Location,
  name: string,
  doing: string,
  cause: unknown,
): LoaderxError {
  const osCode = (cause as { readonly code?: unknown } | null)?.code;
  const code = typeof osCode === 'string' ? osCode : 'EUNKNOWN';
  return new LoaderxError(
    'IO',
    `${container.shown}: ${doing} failed (${name}, ${code})`,
    { path: container.shown, file: name, osCode: code },
    { cause },
  );
}

/** Whether an error of the file system says that nothing is there. */
export function isAbsence(error: unknown): boolean {
  const code = (error as { readonly code?: unknown } | null)?.code;
  return code === 'ENOENT' || code === 'ENOTDIR';
}
