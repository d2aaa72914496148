/**
 * Names of splits and columns as names of folders.
 *
 * They come from strangers, and what one system takes another takes for something else. So a name is held to
 * the rules of all systems on every one, before anything is written: what is converted here can be copied
 * anywhere.
 */
import { LoaderxError, show } from '../errors.js';

/** `'portable'`: what every system takes. `'any'`: also what only this one may take, but never a way out. */
export type NameRule = 'portable' | 'any';

/** Builds are made beside a container under a longer name, and 255 bytes are the most for one. */
const nameBytesMax = 200;

const reserved = /^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³])$/i;

/** What is wrong with a name; undefined where nothing is. */
function faultOf(name: string, rule: NameRule): string | undefined {
  if (name === '') return 'is empty';
  if (name === '.' || name === '..') return 'is a folder of its own';
  if (/[/\\]/.test(name)) return 'has a separator of paths in it';
  if (name.includes('\0')) return 'has a NUL character in it';
  if (/\p{Surrogate}/u.test(name)) return 'has half a surrogate pair in it';
  const bytes = Buffer.byteLength(name);
  if (bytes > nameBytesMax) return `has ${bytes} bytes, and ${nameBytesMax} is the most`;
  if (rule === 'any') return undefined;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  if (/[\u0001-\u001f\u007f-\u009f]/.test(name)) return 'has a control character in it';
  if (/^[a-z]:/i.test(name)) return 'begins with a drive letter';
  if (/[<>:"|?*]/.test(name)) return 'has a sign in it that Windows refuses';
  if (/[. ]$/.test(name)) return 'ends with a dot or a blank, which Windows drops';
  if (reserved.test((name.split('.')[0] ?? '').trimEnd())) return 'is reserved on Windows';
  if (name === '__proto__') return 'is no name for a property of a JavaScript object';
  return undefined;
}

/**
 * @param kind what the names are of
 * @throws LoaderxError SOURCE with `field` for a name that cannot be a folder's, and for two that are one on
 *   systems that fold case or forms of letters
 */
export function assertNames(
  kind: 'split' | 'column',
  names: Iterable<string>,
  rule: NameRule,
): void {
  const effective = process.platform === 'win32' ? 'portable' : rule;
  const seen = new Map<string, string>();
  for (const name of names) {
    const fault = faultOf(name, effective);
    if (fault !== undefined) {
      const hint =
        faultOf(name, 'any') === undefined ? "; names: 'any' takes it on this system" : '';
      throw new LoaderxError(
        'SOURCE',
        `${kind} ${show(name)} cannot be the name of a folder: it ${fault}${hint}`,
        { field: name },
      );
    }
    if (effective === 'any') continue;
    // As file systems fold; by way of upper case, where more letters are one: ß, ẞ and ss.
    const folded = name.normalize('NFC').toLowerCase().toUpperCase().toLowerCase().normalize('NFC');
    const other = seen.get(folded);
    if (other !== undefined) {
      throw new LoaderxError(
        'SOURCE',
        `${kind} ${show(name)} and ${kind} ${show(other)} are one name on systems that fold letters; names: 'any' takes both where they are two`,
        { field: name },
      );
    }
    seen.set(folded, name);
  }
}
