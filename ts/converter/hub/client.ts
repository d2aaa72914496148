/**
 * What is asked of the hub: a revision's commit, a commit's files, a file's bytes. `@huggingface/hub` does
 * the asking, and is loaded when the first question comes; the answers are held to a form here, since
 * commits and etags become names of files.
 */
import { LoaderxError, show } from '../../errors.js';
import { networkError } from './failure.js';
import { isCommit } from './names.js';
import type { HubSettings } from './settings.js';
import type { Seen, Wire } from './wire.js';

/** One file of a commit. */
export interface HubFile {
  readonly path: string;
  readonly bytes: number;
  /** The name of its content: SHA-256 in 64 hexadecimal digits, or git's SHA-1 of it in 40. */
  readonly etag: string;
  /** What Python's list of a commit has besides. */
  readonly gitId?: string;
  readonly xetHash?: string;
}

/** The version of `@huggingface/hub` that the tests talk to. */
export const libraryVersion = '2.17.5';

/** Of one commit; a list that never ends would fill the memory. */
const filesMax = 5_000_000;

type Library = typeof import('@huggingface/hub');

let library: Promise<Library> | undefined;

async function loadLibrary(): Promise<Library> {
  library ??= import('@huggingface/hub');
  try {
    return await library;
  } catch (cause) {
    library = undefined;
    throw new LoaderxError(
      'UNSUPPORTED',
      `datasets of the hub are loaded by the package @huggingface/hub, which cannot be loaded: npm install @huggingface/hub@${libraryVersion}`,
      {},
      { cause },
    );
  }
}

export class HubClient {
  readonly #repo: string;
  readonly #endpoint: string;
  readonly #wire: Wire;

  constructor(repo: string, { endpoint }: HubSettings, wire: Wire) {
    this.#repo = repo;
    this.#endpoint = endpoint;
    this.#wire = wire;
  }

  /**
   * The commit that a revision stands for now.
   *
   * @throws LoaderxError NOT_FOUND with `field` revision where there is none
   */
  async commitOf(revision: string): Promise<string> {
    const { datasetInfo } = await loadLibrary();
    const { sha } = await this.#answer('about a revision', () =>
      datasetInfo({
        name: this.#repo,
        revision,
        additionalFields: ['sha'],
        hubUrl: this.#endpoint,
        fetch: this.#wire.whole({ revision }),
      }),
    );
    if (isCommit(sha) && (!isCommit(revision) || sha === revision)) return sha;
    throw networkError(
      this.#repo,
      `the hub says that revision ${show(revision)} is ${show(sha)}, which is not a commit of it`,
    );
  }

  /** All files of a commit. */
  async filesOf(commit: string): Promise<readonly HubFile[]> {
    const { listFiles } = await loadLibrary();
    return this.#answer('with its list of files', async () => {
      const files = new Map<string, HubFile>();
      const entries = listFiles({
        repo: { type: 'dataset', name: this.#repo },
        revision: commit,
        recursive: true,
        hubUrl: this.#endpoint,
        fetch: this.#wire.whole({ revision: commit }),
      });
      for await (const entry of entries) {
        if (entry.type === 'directory') continue;
        const file = entry.type === 'file' ? fileOf(entry) : undefined;
        if (file === undefined) {
          throw networkError(
            this.#repo,
            `the hub lists ${show(entry.path)} without a size and a hash that can be`,
          );
        }
        files.set(file.path, file);
        if (files.size > filesMax) {
          throw networkError(
            this.#repo,
            `the hub's list has no end, or more than ${filesMax} files`,
          );
        }
      }
      return [...files.values()];
    });
  }

  /**
   * A file's bytes from some place on, in one attempt.
   *
   * @throws Passing where trying again may help; LoaderxError otherwise
   */
  async *read(
    commit: string,
    { path, bytes, etag }: HubFile,
    from: number,
    seen: Seen,
  ): AsyncGenerator<Uint8Array> {
    const { downloadFile } = await loadLibrary();
    let failure: { readonly error: unknown } | undefined;
    try {
      const name = path.split('/').map(encodeURIComponent).join('/');
      const blob = await downloadFile({
        repo: { type: 'dataset', name: this.#repo },
        path: name,
        revision: commit,
        hubUrl: this.#endpoint,
        xet: false,
        // Size and content are known from the list; asking again would cost two requests a file.
        downloadInfo: {
          size: bytes,
          etag,
          url: `${this.#endpoint}/datasets/${this.#repo}/resolve/${commit}/${name}`,
        },
        fetch: this.#wire.content({ file: path, bytes, from, etag }, seen, (error) => {
          failure ??= { error };
        }),
      });
      const stream = blob?.slice(from, bytes).stream() ?? new ReadableStream<Uint8Array>();
      for await (const chunk of stream as unknown as AsyncIterable<Uint8Array>) yield chunk;
    } catch (error) {
      this.#wire.throwIfAborted();
      throw failure === undefined ? error : failure.error;
    }
  }

  /** Runs a call of the client. What it throws of its own is about an answer that it cannot read. */
  async #answer<T>(what: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (cause) {
      this.#wire.throwIfAborted();
      if (cause instanceof LoaderxError) throw cause;
      throw networkError(this.#repo, `the hub answers ${what} in a form that cannot be read`);
    }
  }
}

const shaForm = /^[0-9a-f]{40}$/;
const digestForm = /^[0-9a-f]{64}$/;

/** An entry of a list, as the hub and Python's cache have it; undefined where it cannot be one. */
export function fileOf(entry: {
  readonly path?: unknown;
  readonly size?: unknown;
  readonly oid?: unknown;
  readonly lfs?: { readonly oid?: unknown; readonly size?: unknown } | undefined;
  readonly xetHash?: unknown;
}): HubFile | undefined {
  const { path, oid, lfs, xetHash } = entry;
  const bytes = lfs?.size ?? entry.size;
  const isCount = typeof bytes === 'number' && Number.isSafeInteger(bytes) && bytes >= 0;
  if (typeof path !== 'string' || !isCount) return undefined;
  const isGit = typeof oid === 'string' && shaForm.test(oid);
  const etag = lfs?.oid ?? oid;
  const isEtag = typeof etag === 'string' && (lfs ? digestForm : shaForm).test(etag);
  if (!isEtag) return undefined;
  return {
    path,
    bytes,
    etag,
    ...(isGit ? { gitId: oid } : {}),
    ...(typeof xetHash === 'string' && digestForm.test(xetHash) ? { xetHash } : {}),
  };
}
