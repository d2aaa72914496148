/**
 * Files into the cache: several at a time, each from where an attempt before broke off, and each held
 * against its size and hash before it stands at its name.
 */
import { createHash, type Hash } from 'node:crypto';
import { show } from '../../errors.js';
import type { HubCache, Incomplete } from './cache.js';
import type { HubClient, HubFile } from './client.js';
import { networkError } from './failure.js';
import { Passing, type Seen, type Wire } from './wire.js';

/** Files at a time: enough to keep a line busy, few enough for the hub's patience. */
const lanes = 4;
/** Of one file, when each made some way: a server that gives a byte a time is not heard out. */
const attemptsMax = 1000;
const chunkBytes = 1024 * 1024;

/** What is needed to load. */
export interface Loading {
  readonly repo: string;
  readonly cache: HubCache;
  readonly client: HubClient;
  readonly wire: Wire;
  /** Ends what the wire does, when one file has failed. */
  readonly stop: () => void;
}

/** How far it has come. Totals hold from the first call on; files that were in the cache count as done. */
export interface HubProgress {
  /** Files that are here. */
  readonly filesDone: number;
  /** Files that are wanted. */
  readonly filesTotal: number;
  /** Bytes that are here. */
  readonly bytesDone: number;
  /** Bytes of all files that are wanted. */
  readonly bytesTotal: number;
}

/**
 * Loads what is not in the cache yet.
 *
 * @returns where the files are, in their order
 * @throws what went wrong first, when all lanes have stopped
 */
export async function loadFiles(
  loading: Loading,
  commit: string,
  files: readonly HubFile[],
  onProgress: (progress: HubProgress) => void,
): Promise<readonly string[]> {
  // Two paths may have one content, and one path two places in the list.
  const byEtag = new Map<string, HubFile[]>();
  for (const file of files) byEtag.set(file.etag, [...(byEtag.get(file.etag) ?? []), file]);
  const jobs = [...byEtag.values()];
  const done = jobs.map(() => 0);
  const bytesTotal = jobs.reduce((sum, [file]) => sum + (file?.bytes ?? 0), 0);
  let jobsDone = 0;
  const tell = (): void => {
    const bytesDone = done.reduce((sum, bytes) => sum + bytes, 0);
    onProgress({ filesDone: jobsDone, filesTotal: jobs.length, bytesDone, bytesTotal });
  };

  const paths = new Map<string, string>();
  let next = 0;
  let failure: { readonly error: unknown } | undefined;
  const lane = async (): Promise<void> => {
    while (next < jobs.length && failure === undefined) {
      const index = next;
      next += 1;
      const [first, ...others] = jobs[index] ?? [];
      if (first === undefined) continue;
      try {
        paths.set(
          first.path,
          await loadFile(loading, commit, first, (bytes) => {
            done[index] = bytes;
            tell();
          }),
        );
        for (const { path, bytes, etag } of others) {
          const file = { path, bytes, etag };
          paths.set(path, loading.cache.find(commit, file) ?? loading.cache.link(commit, file));
        }
        done[index] = first.bytes;
        jobsDone += 1;
        tell();
      } catch (error) {
        failure ??= { error };
        loading.stop();
      }
    }
  };
  await Promise.all(Array.from({ length: Math.min(lanes, jobs.length) }, lane));
  if (failure !== undefined) throw failure.error;
  return files.map((file) => loading.cache.placeOf(commit, file) ?? paths.get(file.path) ?? '');
}

async function loadFile(
  loading: Loading,
  commit: string,
  file: HubFile,
  onBytes: (bytes: number) => void,
): Promise<string> {
  const { cache } = loading;
  const found = cache.find(commit, file);
  if (found !== undefined) return found;
  if (!cache.hasBlob(file.etag, file.bytes)) {
    await loadBlob(loading, commit, file, onBytes);
  }
  return cache.link(commit, file);
}

async function loadBlob(
  loading: Loading,
  commit: string,
  file: HubFile,
  onBytes: (bytes: number) => void,
): Promise<void> {
  const { cache, repo } = loading;
  const incomplete = cache.begin(file.etag);
  try {
    const had = incomplete.bytes;
    let isRight = false;
    if (had <= file.bytes) isRight = await loadInto(loading, commit, file, incomplete, onBytes);
    // What was there before may be what is wrong; what came just now is not asked for again.
    if (!isRight && had > 0) {
      incomplete.empty();
      isRight = await loadInto(loading, commit, file, incomplete, onBytes);
    }
    if (!isRight) {
      incomplete.discard();
      throw networkError(
        repo,
        `${show(file.path)}: what came is not what the hub's list has, by its hash ${file.etag}`,
      );
    }
    cache.finish(file.etag, file.bytes, incomplete);
  } catch (error) {
    incomplete.leave();
    throw error;
  }
}

/** Loads the rest of a file. @returns whether all of it has the hash of its name */
async function loadInto(
  { repo, client, wire }: Loading,
  commit: string,
  file: HubFile,
  incomplete: Incomplete,
  onBytes: (bytes: number) => void,
): Promise<boolean> {
  const hash = hashFor(file);
  let bytes = await hashBeginning(incomplete, hash);
  const seen: Seen = {};
  let failures = 0;
  for (let attempt = 0; bytes < file.bytes; attempt += 1) {
    const before = bytes;
    try {
      for await (const chunk of client.read(commit, file, bytes, seen)) {
        wire.throwIfAborted();
        if (bytes + chunk.length > file.bytes) {
          throw networkError(repo, `${show(file.path)}: more came than the hub's list has`);
        }
        await incomplete.write(chunk, bytes);
        hash.update(chunk);
        bytes += chunk.length;
        onBytes(bytes);
      }
      if (bytes < file.bytes) {
        throw new Passing(networkError(repo, `${show(file.path)}: it broke off at ${bytes} bytes`));
      }
    } catch (error) {
      if (error instanceof Passing && bytes > before && attempt < attemptsMax) {
        // It gets on, so there is nothing to wait for.
        wire.throwIfAborted();
        failures = 0;
        if (error.waitSeconds === undefined) continue;
      }
      failures += 1;
      await wire.pause(error, failures);
    }
  }
  return hash.digest('hex') === file.etag;
}

/** SHA-256 of the content, or git's SHA-1 of what is not in its store for large files. */
function hashFor({ etag, bytes }: HubFile): Hash {
  return etag.length === 64 ? createHash('sha256') : createHash('sha1').update(`blob ${bytes}\0`);
}

/** Takes up what is there. @returns how many bytes that are */
async function hashBeginning(incomplete: Incomplete, hash: Hash): Promise<number> {
  const chunk = new Uint8Array(chunkBytes);
  for (let bytes = 0; ; ) {
    const count = await incomplete.read(chunk, bytes);
    if (count === 0) return bytes;
    hash.update(chunk.subarray(0, count));
    bytes += count;
  }
}
