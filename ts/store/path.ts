/**
 * Where a container is: what the caller said, as errors show it and as the native side takes it.
 *
 * The native side gets an absolute path, so that a build is published where it was begun even when
 * the process changes its folder meanwhile. On POSIX the path is only put behind the current folder,
 * never rewritten: `a/../b` goes through `a`, as for every other program.
 */
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { typedArrayName } from '../dtype.js';
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';

/** A path, a `file:` URL, or on POSIX the bytes of a path that is not UTF-8. */
export type ContainerPath = string | URL | Uint8Array;

export interface Location {
  /** As the caller named it; bytes that are not UTF-8 are escaped. */
  readonly shown: string;
  readonly native: string | Uint8Array;
}

const onWindows = process.platform === 'win32';
const slash = 0x2f;

/**
 * @throws TypeError for anything but a string, a `file:` URL or bytes, and for an empty path;
 *   RangeError where no file system could have it (a NUL, half a surrogate pair)
 */
export function locate(value: unknown): Location {
  if (typeof value === 'string') return locateText(value);
  if (isUrl(value)) return locateText(pathOfUrl(value));
  if (typedArrayName(value) === 'Uint8Array') return locateBytes(value as Uint8Array);
  throw new ArgumentTypeError(
    'path',
    `path must be a string, a file: URL or bytes, got ${show(value)}`,
  );
}

/** As `locate`, for what Node makes beside containers: its path must be text. */
export function locateUtf8(value: unknown): Location & { readonly native: string } {
  const { shown, native } = locate(value);
  if (typeof native === 'string') return { shown, native };
  throw new ArgumentTypeError('path', 'path must be text that is UTF-8');
}

/** By its members: a URL may be of another realm. */
function isUrl(value: unknown): value is URL {
  if (typeof value !== 'object' || value === null) return false;
  const { href, protocol, searchParams } = value as Partial<Record<keyof URL, unknown>>;
  return typeof href === 'string' && typeof protocol === 'string' && searchParams !== undefined;
}

function pathOfUrl(url: URL): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw new ArgumentTypeError('path', `path must be a file: URL of a local file, got ${url}`, {
      cause,
    });
  }
}

function locateText(text: string): Location {
  if (text === '') throw new ArgumentRangeError('path', 'path is empty');
  if (text.includes('\0')) {
    throw new ArgumentRangeError('path', `path ${show(text)} has a NUL character in it`);
  }
  if (/\p{Surrogate}/u.test(text)) {
    throw new ArgumentRangeError(
      'path',
      `path ${show(text)} has half a surrogate pair in it; give such a name as bytes`,
    );
  }
  if (onWindows) return { shown: text, native: path.resolve(text) };
  const trimmed = text.replace(/(?<=.)\/+$/s, '');
  const folder = trimmed.startsWith('/') ? undefined : currentFolder();
  return { shown: text, native: folder === undefined ? trimmed : `${folder}/${trimmed}` };
}

function locateBytes(bytes: Uint8Array): Location {
  // Copied first: the caller's memory may be shared or change. By its memory, whatever its class says.
  let copy: Buffer;
  try {
    copy = Buffer.from(new Uint8Array(bytes).buffer);
  } catch (cause) {
    throw new ArgumentTypeError('path', 'path is bytes whose memory was transferred away', {
      cause,
    });
  }
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(copy);
  } catch {
    if (onWindows) {
      throw new ArgumentRangeError('path', 'path is not UTF-8, and on Windows it must be');
    }
    return locateForeignBytes(copy);
  }
  return locateText(text);
}

function locateForeignBytes(bytes: Buffer): Location {
  const shown = bytes
    .toString('latin1')
    .replace(/[\x80-\xff]/g, (char) => `\\x${char.charCodeAt(0).toString(16)}`);
  if (bytes.includes(0)) {
    throw new ArgumentRangeError('path', `path ${show(shown)} has a NUL byte in it`);
  }
  let end = bytes.length;
  while (end > 1 && bytes[end - 1] === slash) end -= 1;
  const trimmed = bytes.subarray(0, end);
  const folder = bytes[0] === slash ? undefined : currentFolder();
  if (folder === undefined) return { shown, native: trimmed };
  return { shown, native: Buffer.concat([Buffer.from(`${folder}/`), trimmed]) };
}

/** Undefined when the current folder was removed: then the operating system shall say so. */
function currentFolder(): string | undefined {
  try {
    const folder = process.cwd();
    return folder === '/' ? '' : folder;
  } catch {
    return undefined;
  }
}
