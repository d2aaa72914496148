/**
 * What an answer of the hub that is no success means, and the error that says so.
 *
 * Messages hold no token, no URL with a query (it may be signed), and from the hub's own text only what is
 * short and printable. The client's own errors are not passed on, for they may hold all of these.
 */
import { LoaderxError, show } from '../../errors.js';
import type { Token } from './settings.js';

/** An answer that is no success. */
export interface Refusal {
  readonly status: number;
  /** `X-Error-Code`, such as `GatedRepo`. */
  readonly errorCode: string | undefined;
  /** `X-Error-Message`, or the text of the body. */
  readonly said: string;
  /** How long the hub wants to be left alone, in seconds, if it said so. */
  readonly waitSeconds: number | undefined;
}

/** What was asked for. */
export interface Asked {
  readonly repo: string;
  readonly endpoint: string;
  readonly token: Token | undefined;
  /** What about it: a revision or a file. */
  readonly what: { readonly revision: string } | { readonly file: string } | undefined;
}

/** Whether the same request may go well a little later. */
export function isPassing(status: number): boolean {
  return [408, 429, 500, 502, 503, 504].includes(status);
}

/** Reads the refusal's headers; `body` is its text, as far as it was read. */
export function refusalOf(response: Response, body: string): Refusal {
  return {
    status: response.status,
    errorCode: response.headers.get('x-error-code') ?? undefined,
    said: response.headers.get('x-error-message') ?? errorIn(body),
    waitSeconds: waitSecondsOf(response.headers),
  };
}

function errorIn(body: string): string {
  try {
    const { error } = JSON.parse(body) as { readonly error?: unknown };
    return typeof error === 'string' ? error : '';
  } catch {
    return '';
  }
}

/** `Retry-After: 30`, `Retry-After: date`, or `RateLimit: "api";r=0;t=30`. */
function waitSecondsOf(headers: Headers): number | undefined {
  const after = headers.get('retry-after') ?? '';
  if (/^\d{1,9}$/.test(after)) return Number(after);
  const date = Date.parse(after);
  if (!Number.isNaN(date)) return Math.max(0, Math.ceil((date - Date.now()) / 1000));
  const reset = /(?:^|;)\s*t=(\d{1,9})\b/.exec(headers.get('ratelimit') ?? '')?.[1];
  return reset === undefined ? undefined : Number(reset);
}

/** The error that a refusal is for the caller. */
export function refusedError(refusal: Refusal, asked: Asked): LoaderxError {
  const { status, errorCode } = refusal;
  const { repo, endpoint, token, what } = asked;
  const said = quote(refusal.said, token);
  const page = `${endpoint}/datasets/${repo}`;
  const fail = (
    code: ConstructorParameters<typeof LoaderxError>[0],
    text: string,
    field?: string,
  ): LoaderxError =>
    new LoaderxError(code, `${repo}: ${text}`, {
      path: repo,
      ...(field === undefined ? {} : { field }),
      ...(what !== undefined && 'file' in what ? { file: what.file } : {}),
    });

  if (status === 429) {
    const wait = refusal.waitSeconds === undefined ? 'later' : `in ${refusal.waitSeconds} seconds`;
    const more = token === undefined ? ' A token raises the limit.' : '';
    return fail(
      'RATE_LIMITED',
      `the hub has had too many requests (429); try again ${wait}, what was loaded is kept.${more}`,
    );
  }
  if (errorCode === 'GatedRepo' && (status === 401 || status === 403)) {
    return fail(
      'GATED',
      token === undefined
        ? `only who has agreed to its conditions may read it: agree on ${page}, and give that account's token (HF_TOKEN, or the option token)`
        : `the account of the token from ${token.from} may not read it: agree to the conditions on ${page}, or wait until its owner has let you in${said}`,
    );
  }
  if (errorCode === 'RevisionNotFound') {
    const revision = what !== undefined && 'revision' in what ? what.revision : undefined;
    return fail(
      'NOT_FOUND',
      revision === undefined
        ? `its commit is not there any more${said}`
        : `it has no branch, tag or commit ${show(revision)}`,
      'revision',
    );
  }
  if (errorCode === 'EntryNotFound') {
    const file = what !== undefined && 'file' in what ? what.file : undefined;
    return fail(
      'NOT_FOUND',
      file === undefined ? `what was asked for is not there${said}` : `${show(file)} is not there`,
    );
  }
  if (status === 401) {
    if (token !== undefined && errorCode !== 'RepoNotFound') {
      return fail(
        'UNAUTHORIZED',
        `the hub does not take the token from ${token.from}; it may be mistyped or expired${said}`,
      );
    }
    return fail(
      'UNAUTHORIZED',
      token === undefined
        ? `there is no such dataset, or it is private; without a token the hub does not say which. Check the name, or give a token (HF_TOKEN, or the option token)`
        : `there is no such dataset, or the account of the token from ${token.from} may not see it`,
    );
  }
  if (status === 404) {
    return fail(
      'NOT_FOUND',
      token === undefined
        ? `there is no such dataset on ${endpoint}`
        : `there is no such dataset on ${endpoint}, or it is private and the account of the token from ${token.from} may not see it`,
      'repo',
    );
  }
  if (status === 403) {
    return fail(
      'UNAUTHORIZED',
      token === undefined
        ? `the hub does not allow it without a token${said}`
        : `the token from ${token.from} does not allow it${said}`,
    );
  }
  return fail('NETWORK', `the hub answered with status ${status}${said}; try again later`);
}

/** The hub's own words, as far as they can be shown. */
function quote(said: string, token: Token | undefined): string {
  const bare = withoutSecrets(said, token).trim();
  return bare === '' ? '' : ` (the hub says ${show(bare.slice(0, 200))})`;
}

/** A text without the token and without what follows the ? of a URL. */
export function withoutSecrets(text: string, token: Token | undefined): string {
  const bare = token === undefined ? text : text.replaceAll(token.value, '…');
  return bare
    .replace(/(https?:\/\/[^\s?"'<>]*)\?[^\s"'<>]*/gi, '$1?…')
    .replace(/\bhf_\w+/g, 'hf_…');
}

/** An error about what came over the network, or did not come. */
export function networkError(repo: string, why: string, cause?: unknown): LoaderxError {
  const osCode = osCodeOf(cause);
  return new LoaderxError(
    'NETWORK',
    `${repo}: ${why}${osCode === undefined ? '' : ` (${osCode})`}`,
    { path: repo, ...(osCode === undefined ? {} : { osCode }) },
    cause === undefined ? {} : { cause },
  );
}

/** The system's name for what went wrong, wherever in the chain of causes it stands. */
export function osCodeOf(error: unknown): string | undefined {
  for (let at: unknown = error, depth = 0; depth < 5; depth += 1) {
    if (typeof at !== 'object' || at === null) return undefined;
    const { code, cause } = at as { readonly code?: unknown; readonly cause?: unknown };
    if (typeof code === 'string' && /^[A-Z][A-Z0-9_]+$/.test(code)) return code;
    at = cause;
  }
  return undefined;
}
