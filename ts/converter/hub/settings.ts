/**
 * Where the hub is, who asks, and where files are kept: from the options, from the variables that Python's
 * client has, and from what its login left.
 */
import fs from 'node:fs';
import path from 'node:path';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../../errors.js';

/** What is around the call. Tests put other things there. */
export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly homeFolder: string;
  readonly platform: NodeJS.Platform;
  /** Resolves after so many milliseconds; rejects when the signal is aborted. */
  readonly wait: (ms: number, signal: AbortSignal) => Promise<void>;
}

/** A token, and what messages call the place it is from. It never stands in a message itself. */
export interface Token {
  readonly value: string;
  readonly from: string;
}

export interface HubSettings {
  /** The hub's base address, without a slash at its end. */
  readonly endpoint: string;
  readonly token: Token | undefined;
  readonly cacheFolder: string;
  /** No request may be made. */
  readonly isOffline: boolean;
  /** How long an answer about files may take to begin or go on, and one with content. */
  readonly metadataIdleMs: number;
  readonly contentIdleMs: number;
}

/** The options that settings come from, as they were given. */
export interface SettingOptions {
  readonly token?: unknown;
  readonly endpoint?: unknown;
  readonly cacheDir?: unknown;
}

const defaultEndpoint = 'https://huggingface.co';

/**
 * @throws ArgumentTypeError, ArgumentRangeError for options and variables that cannot be; LoaderxError IO
 *   where the login's file is there and cannot be read
 */
export function settingsOf(options: SettingOptions, around: Surroundings): HubSettings {
  const { env } = around;
  const home = expanded(
    given(env.HF_HOME) ??
      path.join(given(env.XDG_CACHE_HOME) ?? path.join(around.homeFolder, '.cache'), 'huggingface'),
    around,
  );
  const cacheDir = textOption('cacheDir', options.cacheDir);
  const cache =
    cacheDir ??
    given(env.HF_HUB_CACHE) ??
    given(env.HUGGINGFACE_HUB_CACHE) ??
    path.join(home, 'hub');
  return {
    endpoint: endpointOf(options.endpoint, env),
    token: tokenOf(options.token, home, around),
    cacheFolder: path.resolve(cacheDir === undefined ? expanded(cache, around) : cache),
    isOffline: isTrue(given(env.HF_HUB_OFFLINE) ?? env.TRANSFORMERS_OFFLINE),
    metadataIdleMs: millisecondsOf(env.HF_HUB_ETAG_TIMEOUT),
    contentIdleMs: millisecondsOf(env.HF_HUB_DOWNLOAD_TIMEOUT),
  };
}

/** An empty variable is as good as none. */
function given(value: string | undefined): string | undefined {
  return value === undefined || value === '' ? undefined : value;
}

function isTrue(value: string | undefined): boolean {
  return ['1', 'ON', 'YES', 'TRUE'].includes(value?.toUpperCase() ?? '');
}

function millisecondsOf(value: string | undefined): number {
  const seconds = /^\d{1,6}$/.test(value ?? '') ? Number(value) : 0;
  return (seconds === 0 ? 10 : seconds) * 1000;
}

function expanded(folder: string, { homeFolder }: Surroundings): string {
  return folder === '~' || folder.startsWith('~/')
    ? path.join(homeFolder, folder.slice(1))
    : folder;
}

function textOption(field: string, value: unknown): string | undefined {
  if (value === undefined) return undefined;
  if (typeof value !== 'string') {
    throw new ArgumentTypeError(field, `${field} must be a string, got ${show(value)}`);
  }
  if (value === '' || value.includes('\0')) {
    throw new ArgumentRangeError(field, `${field} must be a path, got ${show(value)}`);
  }
  return value;
}

function endpointOf(option: unknown, env: Surroundings['env']): string {
  const isOption = option !== undefined;
  const said = isOption ? option : (given(env.HF_ENDPOINT) ?? defaultEndpoint);
  const where = isOption ? 'endpoint' : 'HF_ENDPOINT';
  if (typeof said !== 'string') {
    throw new ArgumentTypeError('endpoint', `endpoint must be a string, got ${show(said)}`);
  }
  const url = URL.canParse(said) ? new URL(said) : undefined;
  const isHub =
    url !== undefined &&
    (url.protocol === 'https:' || url.protocol === 'http:') &&
    url.username === '' &&
    url.password === '' &&
    url.search === '' &&
    url.hash === '';
  if (isHub) return url.href.replace(/\/+$/, '');
  // The address may hold a password, so it is not shown.
  throw new ArgumentRangeError(
    'endpoint',
    `${where} must be the address of a hub, http(s)://HOST, without user, password, query and fragment`,
  );
}

function tokenOf(option: unknown, home: string, around: Surroundings): Token | undefined {
  if (option === null) return undefined;
  if (option !== undefined) {
    if (typeof option !== 'string') {
      throw new ArgumentTypeError('token', `token must be a string or null, got ${typeof option}`);
    }
    return checkedToken({ value: option, from: 'the option token' });
  }
  const { env } = around;
  if (isTrue(env.HF_HUB_DISABLE_IMPLICIT_TOKEN)) return undefined;
  for (const name of ['HF_TOKEN', 'HUGGING_FACE_HUB_TOKEN']) {
    const value = env[name]?.trim() ?? '';
    if (value !== '') return checkedToken({ value, from: name });
  }
  const file = expanded(given(env.HF_TOKEN_PATH) ?? path.join(home, 'token'), around);
  const value = readIfThere(file)?.trim() ?? '';
  return value === '' ? undefined : checkedToken({ value, from: file });
}

/** A header can carry it. What is wrong with it is said without it. */
function checkedToken(token: Token): Token {
  if (/^[\x21-\x7e]+$/.test(token.value)) return token;
  throw new ArgumentRangeError(
    'token',
    `the token from ${token.from} is empty or has blanks or other signs that no token has`,
  );
}

function readIfThere(file: string): string | undefined {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch (cause) {
    const osCode = (cause as NodeJS.ErrnoException).code ?? 'EUNKNOWN';
    if (osCode === 'ENOENT' || osCode === 'ENOTDIR') return undefined;
    throw new LoaderxError(
      'IO',
      `${file}: the login's token cannot be read (${osCode}); token: null asks without one`,
      { path: file, osCode },
      { cause },
    );
  }
}
