/**
 * Names that come from a caller or from the hub, held to a form before anything is asked or written: a
 * repository's id and a revision become part of a URL and of a folder, a file's path becomes a path below
 * the cache. What is refused is refused on every platform.
 */
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../../errors.js';

/** The hub's own rule: one or two parts of letters, digits, `-`, `_` and `.`. */
const repoPart = /^(?![-.])(?!.*(?:--|\.\.))[A-Za-z0-9._-]{1,96}(?<![-.])$/;

/** Checks a repository's id, `owner/name`; some old datasets have only a name. */
export function repoOf(repo: unknown): string {
  if (typeof repo !== 'string') {
    throw new ArgumentTypeError('repo', `repo must be a string, owner/name, got ${show(repo)}`);
  }
  const parts = repo.split('/');
  if (parts.length <= 2 && parts.every((part) => repoPart.test(part)) && !repo.endsWith('.git')) {
    return repo;
  }
  throw new ArgumentRangeError(
    'repo',
    `repo must be the id of a dataset, owner/name, got ${show(repo)}${hintOf(repo)}`,
  );
}

/** What other programs call a dataset of the hub. */
function hintOf(repo: string): string {
  const [id = '', revision] = repo.replace(/^(?:hf:\/\/)?(?:datasets\/)?/, '').split('@');
  const isId = id.split('/').length <= 2 && id.split('/').every((part) => repoPart.test(part));
  if (!isId || id === repo) return '';
  const given = revision === undefined ? '' : `, and revision ${show(revision)} by its own option`;
  return `: say ${show(id)}${given}`;
}

const commitForm = /^[0-9a-f]{40}$/;

/** Whether a revision is a commit, written out. */
export function isCommit(revision: unknown): revision is string {
  return typeof revision === 'string' && commitForm.test(revision);
}

// What git lets no reference be called, and what would leave the folder of references.
const notInReference = /[\p{Cc} ~^:?*[\\]|\.\.|\/\/|@\{|^[-/]|[/.]$|(?:^|\/)\.|\.lock(?:\/|$)/u;

/** Checks a branch, tag, `refs/…` or commit. */
export function revisionOf(revision: unknown): string {
  if (typeof revision !== 'string') {
    throw new ArgumentTypeError(
      'revision',
      `revision must be a branch, a tag or a commit, got ${show(revision)}`,
    );
  }
  if (revision !== '' && revision.length <= 255 && !notInReference.test(revision)) return revision;
  throw new ArgumentRangeError(
    'revision',
    `revision must be a branch, a tag or a commit, and git has none called ${show(revision)}`,
  );
}

/** Names that Windows gives to devices, with any extension. */
const windowsDevice = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\.|$)/i;

/**
 * Why a path of a repository cannot be one below a folder, or undefined where it can.
 *
 * Refused everywhere: what leads out of the folder on any platform. On Windows also what cannot be a file
 * there.
 */
export function whyUnsafe(path: string, platform: NodeJS.Platform): string | undefined {
  if (path === '' || path.includes('\0')) return 'is no path';
  if (path.startsWith('/') || path.includes('\\') || /^[A-Za-z]:/.test(path)) {
    return 'is absolute, has a drive or a backslash';
  }
  const parts = path.split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..')) {
    return 'leads elsewhere';
  }
  if (/\p{Cc}/u.test(path)) return 'has a control character';
  if (platform !== 'win32') return undefined;
  const cannotBe = (part: string): boolean =>
    /[<>:"|?*]/.test(part) || /[. ]$/.test(part) || windowsDevice.test(part);
  return parts.some(cannotBe) ? 'cannot be the name of a file on Windows' : undefined;
}

/** Refuses a path of a repository that would not stay below the cache. */
export function assertSafePath(repo: string, path: string, platform: NodeJS.Platform): void {
  const why = whyUnsafe(path, platform);
  if (why === undefined) return;
  throw new LoaderxError(
    'UNSUPPORTED',
    `${repo}: the hub lists a file called ${show(path)}, which ${why}; nothing was written`,
    { path: repo, file: path },
  );
}

// Letters, digits and underscores, in words joined by dots: the rule of `datasets`.
const splitForm = /^[\p{L}\p{N}_]+(?:\.[\p{L}\p{N}_]+)*$/u;

/** Whether a split may be called so. `all` stands for all of them together in `datasets`. */
export function isSplitName(name: string): boolean {
  return splitForm.test(name) && name !== 'all';
}

/** Compares strings by code points, as Python sorts them; JavaScript would by UTF-16 units. */
export function byCodePoint(left: string, right: string): number {
  return Buffer.compare(Buffer.from(left), Buffer.from(right));
}
