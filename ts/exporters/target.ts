/**
 * The file that an export makes: complete at its path, or not there.
 *
 * It is written under a hidden name beside its path and moved there at the end, so that nobody takes a part of
 * it for the whole.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs/promises';
import path from 'node:path';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { assertNoContainer, moveToFree, takenError } from '../store/folder.js';

export class TargetFile {
  readonly path: string;
  readonly #part: string;
  readonly #handle: fs.FileHandle;
  readonly #force: boolean;
  #isClosed = false;

  private constructor(target: string, part: string, handle: fs.FileHandle, force: boolean) {
    this.path = target;
    this.#part = part;
    this.#handle = handle;
    this.#force = force;
  }

  /**
   * @param force whether a file that is there already is replaced
   * @throws TypeError for what is no path; LoaderxError EXISTS, IO
   */
  static async begin(target: string, force: boolean): Promise<TargetFile> {
    assertPath(target);
    assertOutside(target);
    try {
      if (!force && (await isThere(target))) {
        throw takenError(target, 'force (--force) writes over it');
      }
      const part = hiddenBeside(target);
      return new TargetFile(target, part, await fs.open(part, 'wx'), force);
    } catch (cause) {
      throw writingFailed(target, cause);
    }
  }

  /** The next bytes; they may change when it resolves. */
  async write(bytes: Uint8Array): Promise<void> {
    try {
      let done = 0;
      while (done < bytes.byteLength) {
        const { bytesWritten } = await this.#handle.write(bytes, done, bytes.byteLength - done);
        done += bytesWritten;
      }
    } catch (cause) {
      throw writingFailed(this.path, cause);
    }
  }

  /** Moves the file to its path. */
  async publish(): Promise<void> {
    try {
      await this.#close();
      if (this.#force) await fs.rename(this.#part, this.path);
      else moveToFree(this.#part, this.path, this.path);
    } catch (cause) {
      await this.discard();
      throw writingFailed(this.path, cause);
    }
  }

  /** Leaves nothing. */
  async discard(): Promise<void> {
    await this.#close();
    await fs.rm(this.#part, { force: true });
  }

  async #close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    await this.#handle.close();
  }
}

function assertPath(target: unknown): void {
  if (typeof target === 'string' && target !== '' && !target.includes('\0')) return;
  throw new ArgumentTypeError('file', `file must be the path of a file, got ${show(target)}`);
}

/** The name under which an export grows. */
export function hiddenBeside(target: string): string {
  const hidden = `.${path.basename(target)}.export-${randomBytes(6).toString('hex')}`;
  return path.join(path.dirname(path.resolve(target)), hidden);
}

export function assertOutside(target: string): void {
  assertNoContainer(path.dirname(path.resolve(target)), target, path.dirname(target));
}

export async function isThere(target: string): Promise<boolean> {
  return (await fs.lstat(target).catch(() => undefined)) !== undefined;
}

/** What the file system said, as an error of this package. Others stay as they are. */
export function writingFailed(target: string, cause: unknown): unknown {
  const { code, syscall } = (cause ?? {}) as NodeJS.ErrnoException;
  if (cause instanceof LoaderxError || code === undefined || syscall === undefined) return cause;
  const lost = code === 'ENOENT' ? `, its folder ${path.dirname(target)} is not there` : '';
  return new LoaderxError(
    'IO',
    `${target}: writing it failed${lost} (${code})`,
    { path: target, osCode: code },
    { cause },
  );
}
