/**
 * The folder in which a conversion is built: a hidden sibling of its target.
 *
 * ```text
 * OUT                          appears with one rename, complete
 * .OUT.convert-1f3a…           the conversion that is under way
 *   root/                      what becomes OUT
 *   .running.build-…           held by the process that converts: a build of a container that never is
 * ```
 *
 * The build of a container is locked by its process, and the lock goes when the process does. So a later
 * conversion to the same target can tell what a killed one has left, and removes it.
 */
import fs from 'node:fs';
import path from 'node:path';
import { LoaderxError } from '../errors.js';
import { Dense } from '../store/dense.js';
import { takenError } from '../store/folder.js';
import { open } from '../store/open.js';

const marker = '.convert-';
const lockName = 'running';
/** As the constructor's names are. */
const hiddenName = /^\..+\.convert-[0-9a-f]{12}$/;

export class Staging {
  /** Where the result is built. */
  readonly root: string;
  readonly #target: string;
  readonly #folder: string;
  readonly #lock: { [Symbol.asyncDispose](): PromiseLike<void> };

  private constructor(target: string, folder: string) {
    this.#target = target;
    this.#folder = folder;
    fs.mkdirSync(folder, { recursive: true });
    this.#lock = Dense.create(path.join(folder, lockName), {
      codec: 'raw',
      dtype: 'uint8',
      itemShape: [],
      dataShards: 1,
    });
    this.root = path.join(folder, 'root');
    fs.mkdirSync(this.root);
  }

  /**
   * Begins at `target`, whose parents are made. Removes what dead conversions to it have left.
   *
   * @throws LoaderxError EXISTS where anything is at the target, LOCKED where a live conversion builds it, IO
   */
  static begin(target: string): Staging {
    const parent = path.dirname(target);
    const prefix = `.${path.basename(target)}${marker}`;
    assertFree(target);
    try {
      fs.mkdirSync(parent, { recursive: true });
      for (const name of fs.readdirSync(parent)) {
        if (!name.startsWith(prefix)) continue;
        const folder = path.join(parent, name);
        if (isHeld(folder)) {
          throw new LoaderxError('LOCKED', `${target}: another conversion builds it in ${name}`, {
            path: target,
          });
        }
        fs.rmSync(folder, { recursive: true, force: true });
      }
      const random = Math.random().toString(16).slice(2, 14).padEnd(12, '0');
      return new Staging(target, path.join(parent, `${prefix}${random}`));
    } catch (cause) {
      throw asIo(target, 'making its folder', cause);
    }
  }

  /**
   * Removes what dead conversions to `name` in `folder`, or to anything there, have left. Those that live are
   * left alone; where locks do not reach other hosts, theirs look dead.
   *
   * @throws LoaderxError IO
   */
  static sweep(folder: string, name?: string): void {
    try {
      for (const hidden of fs.readdirSync(folder)) {
        const at = path.join(folder, hidden);
        const isOfThis = name === undefined || hidden.startsWith(`.${name}${marker}`);
        if (!hiddenName.test(hidden) || !isOfThis || isHeld(at)) continue;
        fs.rmSync(at, { recursive: true, force: true, maxRetries: 3 });
      }
    } catch (cause) {
      throw asIo(folder, 'removing what was left there', cause);
    }
  }

  /** A folder of that name beside the result, which goes when the rest does. Nothing is there yet. */
  aside(name: string): string {
    return path.join(this.#folder, name);
  }

  /** Moves the result, or only what has this name in it, to the target. */
  async publish(name?: string): Promise<void> {
    assertFree(this.#target);
    try {
      fs.renameSync(name === undefined ? this.root : path.join(this.root, name), this.#target);
    } catch (cause) {
      const { code } = cause as NodeJS.ErrnoException;
      if (code === 'ENOTEMPTY' || code === 'EEXIST' || code === 'ENOTDIR')
        throw takenError(this.#target);
      throw asIo(this.#target, 'moving the result there', cause);
    }
    await this.discard();
  }

  /** Leaves nothing. */
  async discard(): Promise<void> {
    await this.#lock[Symbol.asyncDispose]();
    fs.rmSync(this.#folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

function assertFree(target: string): void {
  if (fs.lstatSync(target, { throwIfNoEntry: false }) !== undefined) throw takenError(target);
}

/** Whether a live process holds the lock of a conversion's folder. */
function isHeld(folder: string): boolean {
  for (const name of fs.readdirSync(folder)) {
    if (!name.startsWith(`.${lockName}.`)) continue;
    try {
      open(path.join(folder, name)).closeSync();
    } catch (error) {
      if (error instanceof LoaderxError && error.code === 'LOCKED') return true;
    }
  }
  return false;
}

/** What the file system said, with the path that it is about. */
export function asIo(target: string, doing: string, cause: unknown): unknown {
  const { code, syscall, path: at } = (cause ?? {}) as NodeJS.ErrnoException;
  if (cause instanceof LoaderxError || syscall === undefined || code === undefined) return cause;
  return new LoaderxError(
    'IO',
    `${target}: ${doing} failed (${code})`,
    { path: at ?? target, osCode: code },
    { cause },
  );
}
