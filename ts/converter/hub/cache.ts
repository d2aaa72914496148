/**
 * The cache on disk, shared with Python's client:
 *
 * ```text
 * CACHE/datasets--owner--name/
 *   refs/main                    the commit it was last seen at
 *   trees/COMMIT.json            the commit's list of files
 *   blobs/ETAG                   content; ETAG.….incomplete while it is loaded
 *   snapshots/COMMIT/data/x.parquet -> ../../../../blobs/ETAG
 * ```
 *
 * What is at a name is always whole: content and lists are made under names of their own in `blobs/` and
 * renamed. Below CACHE nothing is written through a symbolic link, so no file outside of it changes; content
 * that is itself a link (Python may share it between repositories) is only read.
 */
import { createHash, randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { LoaderxError, show } from '../../errors.js';
import { fileOf, type HubFile } from './client.js';
import { isCommit } from './names.js';

/** A file of a snapshot whose list is not known: only its path is. */
export interface FoundFile {
  readonly path: string;
  readonly bytes: number;
}

export class HubCache {
  /** The repository's folder. */
  readonly folder: string;
  readonly #root: string;
  readonly #repo: string;

  constructor(cacheFolder: string, repo: string) {
    this.#root = cacheFolder;
    this.#repo = repo;
    this.folder = path.join(cacheFolder, `datasets--${repo.replaceAll('/', '--')}`);
  }

  /** The commit that a revision was last seen at. */
  refOf(revision: string): string | undefined {
    const commit = readIfThere(path.join(this.folder, 'refs', ...revision.split('/')))?.trim();
    return isCommit(commit) ? commit : undefined;
  }

  writeRef(revision: string, commit: string): void {
    if (this.refOf(revision) === commit) return;
    const parts = revision.split('/');
    this.#writeWhole(['refs', ...parts.slice(0, -1)], parts.at(-1) ?? '', commit);
  }

  /** The list of a commit's files, if it was written whole. */
  filesOf(commit: string): readonly HubFile[] | undefined {
    const text = readIfThere(path.join(this.folder, 'trees', `${commit}.json`));
    if (text === undefined) return undefined;
    try {
      const { format_version: version, files } = JSON.parse(text) as {
        readonly format_version?: unknown;
        readonly files?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
      };
      if (version !== 1 || files === undefined) return undefined;
      const entries = Object.entries(files).map(([path, entry]) =>
        fileOf({
          path,
          size: entry.size,
          oid: entry.blob_id,
          ...(entry.lfs_sha256 === undefined
            ? {}
            : { lfs: { oid: entry.lfs_sha256, size: entry.lfs_size } }),
          xetHash: entry.xet_hash,
        }),
      );
      return entries.every((entry) => entry !== undefined) ? entries : undefined;
    } catch {
      // Another version's, or damaged: it is asked for again.
      return undefined;
    }
  }

  writeFiles(commit: string, files: readonly HubFile[]): void {
    const entries = files.map(({ path, bytes, etag, gitId, xetHash }) => [
      path,
      {
        size: bytes,
        blob_id: gitId ?? etag,
        ...(etag.length === 64 ? { lfs_sha256: etag, lfs_size: bytes } : {}),
        ...(xetHash === undefined ? {} : { xet_hash: xetHash }),
      },
    ]);
    const text = JSON.stringify({ format_version: 1, files: Object.fromEntries(entries) }, null, 1);
    this.#writeWhole(['trees'], `${commit}.json`, text);
  }

  /** What is in a commit's snapshot, or undefined where there is none. */
  snapshotOf(commit: string): readonly FoundFile[] | undefined {
    const folder = path.join(this.folder, 'snapshots', commit);
    let names: readonly string[];
    try {
      names = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' });
    } catch {
      return undefined;
    }
    return names.flatMap((name) => {
      const stat = statIfThere(path.join(folder, name));
      if (stat?.isFile() !== true) return [];
      return [{ path: name.split(path.sep).join('/'), bytes: stat.size }];
    });
  }

  /** Where a file of a snapshot is, or would be. */
  pathOf(commit: string, file: string): string {
    return path.join(this.folder, 'snapshots', commit, ...file.split('/'));
  }

  /** Where the snapshot's file is, if it is there and of the right content and size. */
  find(commit: string, { path: name, bytes, etag }: HubFile): string | undefined {
    const file = this.pathOf(commit, name);
    const stat = statIfThere(file);
    if (stat?.isFile() !== true || stat.size !== bytes) return undefined;
    const target = readLinkIfLink(file);
    return target === undefined || path.basename(target) === etag ? file : undefined;
  }

  /**
   * Where to read a file from, if it is there: its content, by its own name. Two paths of a repository may be
   * one on a file system that folds case, so a snapshot's file is read only where there is no content.
   */
  placeOf(commit: string, file: HubFile): string | undefined {
    return this.hasBlob(file.etag, file.bytes) ? this.#blob(file.etag) : this.find(commit, file);
  }

  /** Whether content of this name and size is there, for whatever commit. */
  hasBlob(etag: string, bytes: number): boolean {
    const stat = statIfThere(this.#blob(etag));
    return stat?.isFile() === true && stat.size === bytes;
  }

  /**
   * Opens a file to load content into. It holds what an attempt before, of this process or of one that has
   * ended, had loaded of it.
   */
  begin(etag: string): Incomplete {
    const folder = this.#makeFolder(['blobs']);
    const file = path.join(folder, ownName(etag));
    // Whoever renames it first has it; there is seldom more than one.
    const left = namesIn(folder).filter((name) => name.startsWith(`${etag}.`));
    left.find((name) => isLeftBehind(folder, name) && isRenamed(path.join(folder, name), file));
    const noFollow = fs.constants.O_NOFOLLOW ?? 0;
    const flags = fs.constants.O_RDWR | fs.constants.O_CREAT | noFollow;
    return new Incomplete(
      file,
      attempted(file, 'opening', () => fs.openSync(file, flags, 0o666)),
    );
  }

  /** Puts loaded content at its name. Where another process has done so meanwhile, that is as good. */
  finish(etag: string, bytes: number, incomplete: Incomplete): void {
    incomplete.close();
    const blob = this.#blob(etag);
    if (isRenamed(incomplete.path, blob) || this.hasBlob(etag, bytes)) return;
    attempted(blob, 'renaming', () => fs.renameSync(incomplete.path, blob));
  }

  /** Makes the snapshot's file from content that is there; returns its path. */
  link(commit: string, { path: name, etag }: HubFile): string {
    const parts = name.split('/');
    const folder = this.#makeFolder(['snapshots', commit, ...parts.slice(0, -1)]);
    const blobs = this.#makeFolder(['blobs']);
    const file = path.join(folder, parts.at(-1) ?? '');
    const own = path.join(blobs, ownName(`link.${etag}`));
    const target = path.relative(folder, this.#blob(etag));
    attempted(file, 'linking', () => {
      try {
        fs.symlinkSync(target, own);
      } catch (error) {
        // Windows without the right to it, and file systems that have none.
        const { code = '' } = error as NodeJS.ErrnoException;
        if (!['EPERM', 'ENOSYS', 'ENOTSUP', 'EOPNOTSUPP', 'EINVAL', 'UNKNOWN'].includes(code))
          throw error;
        fs.copyFileSync(this.#blob(etag), own, fs.constants.COPYFILE_FICLONE);
      }
      fs.renameSync(own, file);
    });
    return file;
  }

  #blob(etag: string): string {
    return path.join(this.folder, 'blobs', etag);
  }

  #writeWhole(folder: readonly string[], name: string, text: string): void {
    const own = path.join(this.#makeFolder(['blobs']), ownName(name));
    const file = path.join(this.#makeFolder(folder), name);
    attempted(file, 'writing', () => {
      fs.writeFileSync(own, text, { flag: 'wx' });
      try {
        fs.renameSync(own, file);
      } catch (error) {
        fs.rmSync(own, { force: true });
        throw error;
      }
    });
  }

  /** Makes a folder below the repository's, level by level. None of them may be a link. */
  #makeFolder(parts: readonly string[]): string {
    attempted(this.#root, 'making the cache folder', () =>
      fs.mkdirSync(this.#root, { recursive: true }),
    );
    let folder = this.#root;
    for (const part of [path.basename(this.folder), ...parts]) {
      folder = path.join(folder, part);
      const at = folder;
      const stat = attempted(at, 'making the folder', () => {
        try {
          fs.mkdirSync(at);
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
        }
        return fs.lstatSync(at);
      });
      if (stat.isDirectory()) continue;
      throw new LoaderxError(
        'UNSUPPORTED',
        `${folder}: it is ${stat.isSymbolicLink() ? 'a link' : 'no folder'}, and the cache of ${show(this.#repo)} would be written through it; remove it, or give another cacheDir`,
        { path: folder },
      );
    }
    return folder;
  }
}

/** Content that is being loaded. */
export class Incomplete {
  readonly path: string;
  readonly #fd: number;
  #isOpen = true;

  constructor(path: string, fd: number) {
    this.path = path;
    this.#fd = fd;
  }

  get bytes(): number {
    return attempted(this.path, 'looking at it', () => fs.fstatSync(this.#fd).size);
  }

  /** Reads from a position; fewer bytes than wanted only at the end. */
  read(target: Uint8Array, position: number): Promise<number> {
    return new Promise((resolve, reject) => {
      fs.read(this.#fd, target, 0, target.length, position, (error, count) => {
        if (error !== null) reject(diskError(this.path, 'reading', error));
        else resolve(count);
      });
    });
  }

  write(data: Uint8Array, position: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const step = (done: number): void => {
        fs.write(this.#fd, data, done, data.length - done, position + done, (error, written) => {
          if (error !== null) reject(diskError(this.path, 'writing', error));
          else if (done + written < data.length) step(done + written);
          else resolve();
        });
      };
      step(0);
    });
  }

  /** Begins anew. */
  empty(): void {
    attempted(this.path, 'emptying', () => fs.ftruncateSync(this.#fd, 0));
  }

  close(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    attempted(this.path, 'closing', () => fs.closeSync(this.#fd));
  }

  /** Closes it, and leaves what was loaded to whoever loads the same content next. */
  leave(): void {
    if (!this.#isOpen) return;
    this.close();
    isRenamed(this.path, this.path.replace(/-\d+(-[0-9a-f]{8}\.incomplete)$/, '-0$1'));
  }

  /** Closes and removes it. */
  discard(): void {
    this.close();
    fs.rmSync(this.path, { force: true });
  }
}

// ---- names of what is not whole ----

/** Files of another machine that shares the cache cannot be told to be left behind. */
const machine = createHash('sha256').update(os.hostname()).digest('hex').slice(0, 8);

/** In `blobs/`, and with the ending that Python's cleaning removes. */
function ownName(name: string): string {
  return `${name}.loaderx-${machine}-${process.pid}-${randomBytes(4).toString('hex')}.incomplete`;
}

/** Whether nobody loads into the file any more: it was left, its process ended, or it is from yesterday. */
function isLeftBehind(folder: string, name: string): boolean {
  const [, host, pid] = /\.loaderx-([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.incomplete$/.exec(name) ?? [];
  if (pid === undefined) return false;
  if (pid === '0') return true;
  // No loading waits as long as a day for its next byte.
  const stat = statIfThere(path.join(folder, name));
  if (stat !== undefined && Date.now() - stat.mtimeMs > 24 * 3600 * 1000) return true;
  if (host !== machine) return false;
  try {
    process.kill(Number(pid), 0);
    return false;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ESRCH';
  }
}

function isRenamed(from: string, to: string): boolean {
  try {
    fs.renameSync(from, to);
    return true;
  } catch {
    return false;
  }
}

// ---- the disk ----

/** Runs a call of the file system; its failure names the path, and what to do. */
function attempted<T>(file: string, doing: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    throw diskError(file, doing, error);
  }
}

function diskError(file: string, doing: string, cause: unknown): LoaderxError {
  const osCode = (cause as NodeJS.ErrnoException).code ?? 'EUNKNOWN';
  const advice =
    osCode === 'ENOSPC' || osCode === 'EDQUOT'
      ? '; the cache of the hub is on a full disk: make room, or set HF_HUB_CACHE or cacheDir to another'
      : '';
  return new LoaderxError(
    'IO',
    `${file}: ${doing} failed (${osCode})${advice}`,
    { path: file, osCode },
    { cause },
  );
}

const isAbsent = (error: unknown): boolean =>
  ['ENOENT', 'ENOTDIR', 'ELOOP'].includes((error as NodeJS.ErrnoException).code ?? '');

function readIfThere(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (error) {
    if (isAbsent(error) || (error as NodeJS.ErrnoException).code === 'EISDIR') return undefined;
    throw diskError(file, 'reading', error);
  }
}

/** Through links. */
function statIfThere(file: string): fs.Stats | undefined {
  try {
    return fs.statSync(file);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw diskError(file, 'looking at it', error);
  }
}

function readLinkIfLink(file: string): string | undefined {
  try {
    return fs.readlinkSync(file);
  } catch {
    return undefined;
  }
}

function namesIn(folder: string): readonly string[] {
  return attempted(folder, 'listing', () => fs.readdirSync(folder));
}
