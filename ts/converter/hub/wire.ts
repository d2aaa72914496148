/**
 * The one way to the hub. `@huggingface/hub` makes the requests; this is the `fetch` that it is given, and
 * holds what it leaves open:
 *
 * - The token goes to the hub's own origin (scheme, host and port) and nowhere else, whatever a redirect or
 *   a `Link` header says. So the client is never told the token.
 * - An answer that does not begin or go on for some seconds is given up.
 * - Answers about files are read to their end, and asked for again where that may help. Content comes in
 *   one attempt, which its caller repeats from where it broke off.
 * - What is no success becomes an error of this package.
 */
import { LoaderxError, show } from '../../errors.js';
import {
  type Asked,
  isPassing,
  networkError,
  osCodeOf,
  type Refusal,
  refusalOf,
  refusedError,
} from './failure.js';
import type { HubSettings, Surroundings } from './settings.js';

const redirectsMax = 10;
/** Of one page of a listing; real ones have some hundred KiB. */
const answerBytesMax = 64 * 1024 * 1024;
const refusalBytesMax = 64 * 1024;
const attemptsMax = 5;
/** A longer wait is the caller's to decide on. */
const waitSecondsMax = 60;

/** A failure that may be gone when the same is tried again. */
export class Passing extends Error {
  readonly failure: LoaderxError;
  readonly waitSeconds: number | undefined;

  constructor(failure: LoaderxError, waitSeconds?: number) {
    super(failure.message);
    this.failure = failure;
    this.waitSeconds = waitSeconds;
  }
}

/** What one answer must be: a file's bytes from some place on to the end. */
export interface Expected {
  readonly file: string;
  /** The file's size, and where to begin. */
  readonly bytes: number;
  readonly from: number;
  /** The name of its content, as the listing has it. */
  readonly etag: string;
}

/** What the answers before said the content is, so that a later one cannot be of another. */
export interface Seen {
  etag?: string;
}

type Fetch = typeof globalThis.fetch;

export interface WireOptions {
  readonly settings: HubSettings;
  readonly repo: string;
  readonly around: Surroundings;
  readonly signal: AbortSignal;
}

export class Wire {
  readonly #settings: HubSettings;
  readonly #origin: string;
  readonly #repo: string;
  readonly #wait: Surroundings['wait'];
  readonly #signal: AbortSignal;
  #wasReached = false;

  constructor({ settings, repo, around, signal }: WireOptions) {
    this.#settings = settings;
    this.#origin = new URL(settings.endpoint).origin;
    this.#repo = repo;
    this.#wait = around.wait;
    this.#signal = signal;
  }

  /** A `fetch` for answers about `what`: whole, repeated where that may help, successes only. */
  whole(what: Asked['what']): Fetch {
    return async (input, init) => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#readWhole(addressOf(input), init, what);
        } catch (error) {
          await this.pause(error, attempt);
        }
      }
    };
  }

  /**
   * A `fetch` for one attempt at content. Its body is exactly the expected bytes, or fails; a server that
   * sends all of the file is heard out.
   *
   * @param failed gets what went wrong, which the client passes on as a text
   */
  content(expected: Expected, seen: Seen, failed: (error: unknown) => void): Fetch {
    return async (input, init) => {
      try {
        return await this.#startContent(addressOf(input), init, expected, seen, failed);
      } catch (error) {
        failed(error);
        throw error;
      }
    };
  }

  /**
   * Waits before the next attempt.
   *
   * @param attempt how many have failed in a row
   * @throws what is no {@link Passing}, or has lasted too long
   */
  async pause(error: unknown, attempt: number): Promise<void> {
    this.throwIfAborted();
    if (!(error instanceof Passing)) throw error;
    const seconds = error.waitSeconds === undefined ? 2 ** (attempt - 1) : error.waitSeconds + 1;
    if (attempt >= attemptsMax || seconds > waitSecondsMax) throw error.failure;
    try {
      await this.#wait(seconds * 1000, this.#signal);
    } catch (cause) {
      this.throwIfAborted();
      throw cause;
    }
  }

  /** @throws LoaderxError ABORTED */
  throwIfAborted(): void {
    if (!this.#signal.aborted) return;
    throw new LoaderxError(
      'ABORTED',
      `${this.#repo}: given up; what was loaded is kept`,
      { path: this.#repo },
      { cause: this.#signal.reason },
    );
  }

  async #readWhole(
    address: string,
    init: RequestInit | undefined,
    what: Asked['what'],
  ): Promise<Response> {
    const patience = new Patience(this.#signal, this.#settings.metadataIdleMs);
    try {
      const { response } = await this.#send(address, init, patience);
      if (!response.ok) throw await this.#refused(response, what);
      const body = await bytesOf(response, answerBytesMax, patience);
      if (body === undefined) throw this.#error('the hub answers a question with too many bytes');
      return new Response(body, { status: response.status, headers: response.headers });
    } catch (error) {
      throw this.#explained(error, patience);
    } finally {
      patience.end();
    }
  }

  async #startContent(
    address: string,
    init: RequestInit | undefined,
    expected: Expected,
    seen: Seen,
    failed: (error: unknown) => void,
  ): Promise<Response> {
    const patience = new Patience(this.#signal, this.#settings.contentIdleMs);
    try {
      const headers = new Headers(init?.headers);
      if (expected.from > 0 && seen.etag !== undefined && !seen.etag.startsWith('W/')) {
        headers.set('if-range', seen.etag);
      }
      const { response, linkedEtag } = await this.#send(address, { ...init, headers }, patience);
      if (!response.ok) throw await this.#refused(response, { file: expected.file });
      const skip = this.#checkContent(response, linkedEtag, expected, seen);
      const explain = (error: unknown): unknown => this.#explained(error, patience);
      const body = contentOf(response, skip, patience, (error) => {
        const explained = explain(error);
        failed(explained);
        return explained;
      });
      return new Response(ReadableStream.from(body) as ReadableStream<Uint8Array>);
    } catch (error) {
      patience.end();
      throw this.#explained(error, patience);
    }
  }

  /** @returns how many bytes come before those that are wanted */
  #checkContent(
    response: Response,
    linkedEtag: string | undefined,
    { file, bytes, from, etag }: Expected,
    seen: Seen,
  ): number {
    const wrong = (why: string): LoaderxError => this.#error(`${show(file)}: ${why}`);
    if (linkedEtag !== undefined && linkedEtag !== etag) {
      throw wrong(`the hub serves the content ${show(linkedEtag)} where its list has ${etag}`);
    }
    const tag = response.headers.get('etag') ?? undefined;
    if (tag !== undefined && seen.etag !== undefined && tag !== seen.etag) {
      throw wrong(`its content changed while it was read, from ${seen.etag} to ${show(tag)}`);
    }
    if (tag !== undefined) seen.etag = tag;

    const encoding = response.headers.get('content-encoding') ?? 'identity';
    if (response.status === 206) {
      const range = response.headers.get('content-range') ?? 'no range';
      const wanted = `bytes ${from}-${bytes - 1}/${bytes}`;
      if (range !== wanted || encoding !== 'identity') {
        throw wrong(`the hub answers with ${show(range)} where ${show(wanted)} was asked for`);
      }
      return 0;
    }
    if (response.status !== 200) throw wrong(`the hub answers with status ${response.status}`);
    const length = response.headers.get('content-length');
    if (length !== null && encoding === 'identity' && Number(length) !== bytes) {
      throw wrong(`the hub sends ${show(length)} bytes where its list has ${bytes}`);
    }
    return from;
  }

  /** Sends a request and follows where it is sent on to. */
  async #send(
    address: string,
    init: RequestInit | undefined,
    patience: Patience,
  ): Promise<{ readonly response: Response; readonly linkedEtag: string | undefined }> {
    this.throwIfAborted();
    let url = new URL(address);
    if (url.origin !== this.#origin) {
      throw this.#error(`the hub's list goes on at another host, ${url.host}`);
    }
    let linkedEtag: string | undefined;
    for (let redirects = 0; redirects <= redirectsMax; redirects += 1) {
      const headers = new Headers(init?.headers);
      headers.delete('authorization');
      const isHub = url.origin === this.#origin;
      if (isHub && this.#settings.token !== undefined) {
        headers.set('authorization', `Bearer ${this.#settings.token.value}`);
      }
      // Encoded content has other lengths than the list, and no ranges.
      headers.set('accept-encoding', 'identity');
      headers.set('user-agent', 'loaderx');
      const response = await fetch(url, {
        ...init,
        headers,
        redirect: 'manual',
        signal: patience.signal,
      });
      patience.touch();
      this.#wasReached = true;
      // It stands on the hub's answer, not on that of the storage behind it.
      const linked = isHub ? response.headers.get('x-linked-etag') : null;
      if (linked !== null) linkedEtag = linked.replace(/^W\//, '').replaceAll('"', '');
      if (![301, 302, 303, 307, 308].includes(response.status)) return { response, linkedEtag };
      await response.body?.cancel();
      url = this.#next(url, response.headers.get('location'));
    }
    throw this.#error('the hub sends from one address to the next without end');
  }

  #next(from: URL, location: string | null): URL {
    const host = from.host;
    if (location === null || !URL.canParse(location, from.href)) {
      throw this.#error(`${host} sends on to an address that is none`);
    }
    const next = new URL(location, from.href);
    const isWeb = next.protocol === 'https:' || next.protocol === 'http:';
    if (!isWeb || next.username !== '' || next.password !== '') {
      throw this.#error(`${host} sends on to an address that is not of the web`);
    }
    if (from.protocol === 'https:' && next.protocol === 'http:') {
      throw this.#error(`${host} sends on to ${next.host} without encryption`);
    }
    return next;
  }

  async #refused(response: Response, what: Asked['what']): Promise<LoaderxError | Passing> {
    const patience = new Patience(this.#signal, this.#settings.metadataIdleMs);
    let body = '';
    try {
      const bytes = await bytesOf(response, refusalBytesMax, patience);
      body = new TextDecoder().decode(bytes ?? new Uint8Array(0));
    } catch {
      // The status is enough.
    } finally {
      patience.end();
    }
    const refusal: Refusal = refusalOf(response, body);
    const { endpoint, token } = this.#settings;
    const error = refusedError(refusal, { repo: this.#repo, endpoint, token, what });
    return isPassing(refusal.status) ? new Passing(error, refusal.waitSeconds) : error;
  }

  /** What a failed attempt says: ours as it is, the network's as something that may pass. */
  #explained(error: unknown, patience: Patience): unknown {
    if (error instanceof LoaderxError || error instanceof Passing) return error;
    if (this.#signal.aborted) return error;
    const { host } = new URL(this.#settings.endpoint);
    if (patience.isOver) {
      const seconds = patience.idleMs / 1000;
      return new Passing(this.#error(`nothing came from ${host} for ${seconds} seconds`));
    }
    if (!this.#wasReached && isUnreachable(error)) {
      return networkError(
        this.#repo,
        `${host} cannot be reached; HF_HUB_OFFLINE=1 reads what is in the cache`,
        error,
      );
    }
    return new Passing(networkError(this.#repo, `the connection to ${host} broke off`, error));
  }

  #error(why: string): LoaderxError {
    return networkError(this.#repo, why);
  }
}

/** Whether there is no such host, or none that answers: not a connection that broke. */
function isUnreachable(error: unknown): boolean {
  const code = osCodeOf(error) ?? '';
  return /^(?:ENOTFOUND|EAI_AGAIN|ECONNREFUSED|EHOSTUNREACH|ENETUNREACH)$|CERT|SIGNED|TLS|SSL/.test(
    code,
  );
}

function addressOf(input: string | URL | Request): string {
  return input instanceof Request ? input.url : String(input);
}

/** A signal that is aborted with the caller's, or when nothing has come for a while. */
class Patience {
  readonly idleMs: number;
  readonly signal: AbortSignal;
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  #isOver = false;
  #isResting = false;

  constructor(outer: AbortSignal, idleMs: number) {
    this.idleMs = idleMs;
    this.signal = AbortSignal.any([outer, this.#controller.signal]);
    this.#timer = setTimeout(() => {
      if (this.#isResting) return;
      this.#isOver = true;
      this.#controller.abort();
    }, idleMs);
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Something came. */
  touch(): void {
    this.#isResting = false;
    this.#timer.refresh();
  }

  /** Nothing is waited for until the next touch. */
  rest(): void {
    this.#isResting = true;
  }

  end(): void {
    clearTimeout(this.#timer);
  }
}

async function bytesOf(
  response: Response,
  bytesMax: number,
  patience: Patience,
): Promise<Uint8Array<ArrayBuffer> | undefined> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
    patience.touch();
    bytes += chunk.length;
    // Leaving the loop cancels the body.
    if (bytes > bytesMax) return undefined;
    chunks.push(chunk);
  }
  const whole = new Uint8Array(bytes);
  let at = 0;
  for (const chunk of chunks) {
    whole.set(chunk, at);
    at += chunk.length;
  }
  return whole;
}

async function* contentOf(
  response: Response,
  skip: number,
  patience: Patience,
  explain: (error: unknown) => unknown,
): AsyncGenerator<Uint8Array> {
  let left = skip;
  try {
    for await (const chunk of (response.body ?? []) as AsyncIterable<Uint8Array>) {
      patience.touch();
      const wanted = left === 0 ? chunk : chunk.subarray(Math.min(left, chunk.length));
      left -= Math.min(left, chunk.length);
      // While the reader writes, nothing is late.
      patience.rest();
      if (wanted.length > 0) yield wanted;
      patience.touch();
    }
  } catch (error) {
    throw explain(error);
  } finally {
    patience.end();
  }
}
