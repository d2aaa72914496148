/** What numbers of classes stand for, by the `classes.json` that an import has written beside them. */
import fs from 'node:fs/promises';
import path from 'node:path';
import { LoaderxError, show } from '../errors.js';

/**
 * The names of a container of labels, number i being the i-th; undefined where nothing says it.
 *
 * @throws LoaderxError MALFORMED for names that are no folders'
 */
export async function classNames(labels: string): Promise<readonly string[] | undefined> {
  const file = path.join(path.dirname(path.resolve(labels)), 'classes.json');
  let text: string;
  try {
    text = await fs.readFile(file, 'utf8');
  } catch {
    return undefined;
  }
  let all: Readonly<Record<string, unknown>> | null;
  try {
    all = JSON.parse(text);
  } catch (cause) {
    const place = { path: file };
    throw new LoaderxError('MALFORMED', `${file}: it is no JSON`, place, { cause });
  }
  const names = all?.[path.basename(labels)];
  if (names === undefined) return undefined;
  if (Array.isArray(names) && names.every((name) => isFolderName(name))) return names;
  throw new LoaderxError('MALFORMED', `${file}: ${show(names)} are no names of folders`, {
    path: file,
  });
}

/** Never a way out of the folder. */
function isFolderName(name: unknown): boolean {
  return typeof name === 'string' && !/^\.{0,2}$|[/\\\0]/.test(name);
}
