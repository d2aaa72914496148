// A hub on loopback, in two hosts as the real one: the hub itself, and the storage that it sends readers of
// large files on to. It speaks what ts/converter/hub asks and what Python's client asks.
import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';

/** One request, as it came. */
export interface Request {
  readonly host: 'hub' | 'storage';
  readonly method: string;
  /** With its query, as it stands in the request. */
  readonly url: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** What a test answers itself. */
export interface Answer {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
}

export interface HubServerOptions {
  /** Entries of one page of a list. */
  readonly pageEntries?: number;
  /** Who may read; everybody unless given. */
  readonly token?: string;
}

type Files = ReadonlyMap<string, Uint8Array>;

interface Repo {
  readonly refs: Map<string, string>;
  readonly commits: Map<string, Files>;
}

/** Files in git's large file storage: everything but text. */
const isLarge = (path: string): boolean => !/\.(md|json|yaml|csv|txt)$/.test(path);

export const sha256 = (data: Uint8Array): string => createHash('sha256').update(data).digest('hex');

export const gitId = (data: Uint8Array): string =>
  createHash('sha1').update(`blob ${data.length}\0`).update(data).digest('hex');

export const etagOf = (path: string, data: Uint8Array): string =>
  isLarge(path) ? sha256(data) : gitId(data);

export class HubServer {
  readonly requests: Request[] = [];
  /** May answer instead of the server; `'cut'` closes the connection without a word. */
  intercept: ((request: Request) => Answer | 'cut' | undefined) | undefined;
  /** After how many bytes of its body a content answer is cut off; undefined lets it be whole. */
  cutAt: ((request: Request, path: string, bytes: number) => number | undefined) | undefined;
  /** Called before content is answered. */
  onContent: ((path: string) => void | Promise<void>) | undefined;
  /** False: Range is not understood, and all of a file comes. */
  hasRanges = true;
  readonly #repos = new Map<string, Repo>();
  readonly #hub: Server;
  readonly #storage: Server;
  readonly #pageEntries: number;
  readonly #token: string | undefined;

  private constructor({ pageEntries = 1000, token }: HubServerOptions) {
    this.#pageEntries = pageEntries;
    this.#token = token;
    const serve =
      (host: Request['host']) =>
      (message: IncomingMessage, response: ServerResponse): void => {
        this.#serve(host, message, response).catch((error: unknown) => {
          response.destroy(error as Error);
        });
      };
    this.#hub = createServer(serve('hub'));
    this.#storage = createServer(serve('storage'));
  }

  /** A running server, which ends with the test. */
  static async start(t: Test, options: HubServerOptions = {}): Promise<HubServer> {
    const server = new HubServer(options);
    for (const one of [server.#hub, server.#storage]) {
      await new Promise<void>((resolve) => one.listen(0, '127.0.0.1', resolve));
    }
    t.teardown(() => server.stop());
    return server;
  }

  /** Nothing listens any more. */
  async stop(): Promise<void> {
    for (const one of [this.#hub, this.#storage]) {
      if (!one.listening) continue;
      const closed = new Promise((resolve) => one.close(resolve));
      one.closeAllConnections();
      await closed;
    }
  }

  get endpoint(): string {
    return `http://127.0.0.1:${(this.#hub.address() as AddressInfo).port}`;
  }

  /** By another name than the hub, and on another port. */
  get storageOrigin(): string {
    return `http://localhost:${(this.#storage.address() as AddressInfo).port}`;
  }

  /** Makes a commit, called `as` or by its content, and moves the branch or tag to it. */
  commit(
    id: string,
    revision: string,
    files: Readonly<Record<string, string | Uint8Array>>,
    as?: string,
  ): string {
    const entries = new Map(
      Object.entries(files).map(([path, data]) => [
        path,
        typeof data === 'string' ? Buffer.from(data) : data,
      ]),
    );
    const hash = createHash('sha1').update(`${id} ${revision}`);
    for (const [path, data] of entries) hash.update(path).update(data);
    const commit = as ?? hash.digest('hex');
    const repo = this.#repos.get(id) ?? { refs: new Map(), commits: new Map() };
    this.#repos.set(id, repo);
    repo.commits.set(commit, entries);
    repo.refs.set(revision, commit);
    return commit;
  }

  deleteRef(id: string, revision: string): void {
    this.#repos.get(id)?.refs.delete(revision);
  }

  /** Requests of one host since the last call. */
  taken(host?: Request['host']): readonly Request[] {
    return this.requests.splice(0).filter((request) => host === undefined || request.host === host);
  }

  async #serve(
    host: Request['host'],
    message: IncomingMessage,
    response: ServerResponse,
  ): Promise<void> {
    const { method = '', url = '', headers } = message;
    const request: Request = { host, method, url, headers };
    this.requests.push(request);
    let body = '';
    for await (const chunk of message) body += chunk;
    const instead = this.intercept?.(request);
    if (instead === 'cut') {
      message.socket.destroy();
    } else if (instead !== undefined) {
      response.writeHead(instead.status, instead.headers);
      response.end(instead.body);
    } else if (host === 'storage') {
      await this.#storageAnswer(request, response);
    } else if (this.#token !== undefined && headers.authorization !== `Bearer ${this.#token}`) {
      fail(response, 401, 'RepoNotFound', 'Repository not found');
    } else {
      await this.#hubAnswer(request, body, response);
    }
  }

  async #hubAnswer(request: Request, body: string, response: ServerResponse): Promise<void> {
    const url = new URL(request.url, this.endpoint);
    const path = url.pathname;
    const [, id = ''] =
      /^\/(?:api\/)?datasets\/((?:[^/]+\/)?[^/]+)\/(?:revision|tree|paths-info|resolve)\//.exec(
        path,
      ) ??
      /^\/api\/datasets\/([^/]+\/[^/]+)$/.exec(path) ??
      /^\/api\/resolve-cache\/datasets\/((?:[^/]+\/)?[^/]+)\/[0-9a-f]{40}\//.exec(path) ??
      [];
    const repo = this.#repos.get(id);
    if (repo === undefined) return fail(response, 404, 'RepoNotFound', 'Repository not found');
    const rest = path.slice(path.indexOf(`datasets/${id}`) + `datasets/${id}`.length);

    const [, question = 'revision', tail = 'main'] =
      /^\/(revision|tree|paths-info|resolve)\/(.*)$/s.exec(rest) ?? [];
    if (path.startsWith('/api/resolve-cache/')) {
      const [, commit = '', file = ''] = /^\/([0-9a-f]{40})\/(.*)$/s.exec(rest) ?? [];
      const name = decodeURIComponent(file);
      const data = repo.commits.get(commit)?.get(name);
      if (data === undefined) return fail(response, 404, 'EntryNotFound', 'Entry not found');
      response.setHeader('X-Repo-Commit', commit);
      return this.#sendContent(request, name, data, response, { etag: `"${gitId(data)}"` });
    }

    const revisions = [...repo.refs.keys(), ...repo.commits.keys()].sort(
      (left, right) => right.length - left.length,
    );
    const forms = revisions.flatMap((name) =>
      [name, encodeURIComponent(name)].map((form) => [name, form]),
    );
    const found = forms.find(([, form = '']) => tail === form || tail.startsWith(`${form}/`));
    const [revision = '', form = ''] = found ?? [];
    const commit = repo.refs.get(revision) ?? revision;
    const files = repo.commits.get(commit);
    if (files === undefined) {
      return fail(response, 404, 'RevisionNotFound', `Invalid rev id: ${tail}`);
    }
    const inside = tail.slice(form.length + 1);
    switch (question) {
      case 'revision':
        return sendJson(response, {
          _id: '1',
          id,
          sha: commit,
          private: false,
          gated: false,
          downloads: 0,
          likes: 0,
          lastModified: '2026-01-01T00:00:00.000Z',
          siblings: [...files.keys()].map((rfilename) => ({ rfilename })),
        });
      case 'tree':
        return this.#sendTree(url, inside, files, response);
      case 'paths-info': {
        const { paths } = JSON.parse(body) as { readonly paths: readonly string[] };
        return sendJson(
          response,
          paths.flatMap((one) => {
            const data = files.get(one);
            return data === undefined ? [] : [entryOf(one, data)];
          }),
        );
      }
      default:
        return this.#sendResolved(request, id, commit, decodeURIComponent(inside), files, response);
    }
  }

  #sendTree(url: URL, folder: string, files: Files, response: ServerResponse): void {
    const inside = [...files].filter(([path]) => folder === '' || path.startsWith(`${folder}/`));
    if (inside.length === 0 && folder !== '') {
      fail(response, 404, 'EntryNotFound', `${folder} does not exist`);
      return;
    }
    const folders = new Set(
      inside.flatMap(([path]) => {
        const parts = path.split('/');
        return parts.slice(0, -1).map((_, depth) => parts.slice(0, depth + 1).join('/'));
      }),
    );
    folders.delete(folder);
    let entries: object[] = [
      ...[...folders].map((path) => ({ type: 'directory', oid: '0'.repeat(40), size: 0, path })),
      ...inside.map(([path, data]) => entryOf(path, data)),
    ];
    if (url.searchParams.get('recursive') !== 'true') {
      const depth = folder === '' ? 1 : folder.split('/').length + 1;
      entries = entries.filter(
        (entry) => (entry as { path: string }).path.split('/').length === depth,
      );
    }
    const from = Number(url.searchParams.get('cursor') ?? 0);
    const end = from + this.#pageEntries;
    if (end < entries.length) {
      url.searchParams.set('cursor', String(end));
      response.setHeader('Link', `<${url.href}>; rel="next"`);
    }
    sendJson(response, entries.slice(from, end));
  }

  async #sendResolved(
    request: Request,
    id: string,
    commit: string,
    path: string,
    files: Files,
    response: ServerResponse,
  ): Promise<void> {
    const data = files.get(path);
    if (data === undefined) return fail(response, 404, 'EntryNotFound', 'Entry not found');
    const name = path.split('/').map(encodeURIComponent).join('/');
    if (!isLarge(path)) {
      response.writeHead(307, {
        ETag: `"${gitId(data)}"`,
        'X-Repo-Commit': commit,
        Location: `/api/resolve-cache/datasets/${id}/${commit}/${name}`,
        'Content-Length': request.method === 'HEAD' ? data.length : 0,
      });
      response.end();
      return;
    }
    const etag = sha256(data);
    response.writeHead(302, {
      ETag: `"${etag}"`,
      'X-Repo-Commit': commit,
      'X-Linked-Etag': `"${etag}"`,
      'X-Linked-Size': data.length,
      'Accept-Ranges': 'bytes',
      Location: `${this.storageOrigin}/${id}/${commit}/${name}?signature=secret-of-the-url`,
    });
    response.end();
  }

  async #storageAnswer(request: Request, response: ServerResponse): Promise<void> {
    const { pathname, searchParams } = new URL(request.url, this.storageOrigin);
    // As signed addresses do.
    if (request.headers.authorization !== undefined) {
      return fail(response, 400, undefined, 'Only one authorization is allowed');
    }
    if (searchParams.get('signature') !== 'secret-of-the-url') {
      return fail(response, 403, undefined, 'no signature');
    }
    const [, id = '', commit = '', name = ''] =
      /^\/((?:[^/]+\/)?[^/]+)\/([0-9a-f]{40})\/(.*)$/s.exec(pathname) ?? [];
    const path = decodeURIComponent(name);
    const data = this.#repos.get(id)?.commits.get(commit)?.get(path);
    if (data === undefined) return fail(response, 404, undefined, 'no such key');
    await this.#sendContent(request, path, data, response, {
      etag: `"storage-${sha256(data).slice(0, 8)}"`,
    });
  }

  async #sendContent(
    request: Request,
    path: string,
    data: Uint8Array,
    response: ServerResponse,
    { etag }: { readonly etag: string },
  ): Promise<void> {
    await this.onContent?.(path);
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(String(request.headers.range ?? '')) ?? [];
    let part = data;
    const ifRange = request.headers['if-range'];
    if (first !== undefined && this.hasRanges && (ifRange === undefined || ifRange === etag)) {
      const from = Number(first);
      if (from >= data.length) {
        response.writeHead(416, { 'Content-Range': `bytes */${data.length}` });
        response.end();
        return;
      }
      part = data.subarray(from, last === '' ? data.length : Number(last) + 1);
      response.statusCode = 206;
      response.setHeader('Content-Range', `bytes ${from}-${from + part.length - 1}/${data.length}`);
    }
    response.setHeader('ETag', etag);
    response.setHeader('Content-Length', part.length);
    if (this.hasRanges) response.setHeader('Accept-Ranges', 'bytes');
    if (request.method === 'HEAD') {
      response.end();
      return;
    }
    const cut = this.cutAt?.(request, path, part.length);
    if (cut === undefined) {
      response.end(part);
      return;
    }
    response.write(part.subarray(0, cut), () => response.socket?.end());
    if (cut === 0) response.socket?.destroy();
  }
}

function entryOf(path: string, data: Uint8Array): object {
  if (!isLarge(path)) return { type: 'file', oid: gitId(data), size: data.length, path };
  const pointer = Buffer.from(
    `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256(data)}\nsize ${data.length}\n`,
  );
  return {
    type: 'file',
    oid: gitId(pointer),
    size: data.length,
    lfs: { oid: sha256(data), size: data.length, pointerSize: pointer.length },
    path,
  };
}

function sendJson(response: ServerResponse, value: unknown): void {
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.end(JSON.stringify(value));
}

function fail(
  response: ServerResponse,
  status: number,
  errorCode: string | undefined,
  text: string,
): void {
  response.writeHead(status, {
    'Content-Type': 'application/json; charset=utf-8',
    'X-Request-Id': 'r-1',
    ...(errorCode === undefined ? {} : { 'X-Error-Code': errorCode }),
    'X-Error-Message': text,
  });
  response.end(JSON.stringify({ error: text }));
}
