/**
 * What lies in a folder: containers, and files of sets, which stand for containers.
 *
 *     out/part-00000-of-00002/image    a container, deeper: not listed
 *     out/image.json                   a set of such: the container `image`
 */
import fs from 'node:fs';
import nodePath from 'node:path';
import { LoaderxError } from '../errors.js';
import { isAbsence, isContainerFolder, isFileOfContainer, isRegularFile } from './folder.js';
import { type Location, locate } from './path.js';
import { looksLikeSet, readSetFile } from './set-file.js';

/**
 * The containers at a path: those directly in it, by name, where it is a folder of containers; else the
 * path itself, whatever is there. A set's file (`image.json`) counts as a container, and containers that lie
 * beside it and are parts of it are not listed a second time. A folder with any file of a container counts as
 * one, also where its `meta.zr` is gone, and so does one that cannot be looked into: what is broken must not be
 * passed over.
 */
export function containersAt(path: string): string[] {
  const entries = entriesOf(path);
  if (!Array.isArray(entries) || entries.some(({ name }) => isFileOfContainer(name))) return [path];
  // Every system takes slashes, and what is printed is the same on all of them.
  const folder = path.endsWith('/') ? path : `${path}/`;
  const seen = entries.filter(({ name }) => !name.startsWith('.'));
  const sets = seen
    .map(({ name }) => name)
    .filter((name) => name.endsWith('.json') && isSetFile(`${folder}${name}`));
  const parts = new Set(sets.flatMap((name) => partsOf(`${folder}${name}`)));
  const inner = seen
    .filter((entry) => !entry.isFile() && !parts.has(entry.name))
    .map(({ name }) => name)
    .filter((name) => mayBeContainer(`${folder}${name}`));
  const names = [...inner, ...sets].sort();
  return names.length === 0 ? [path] : names.map((name) => `${folder}${name}`);
}

/** What a container is called by its path: the last name, of a set's file without `.json`. */
export function containerName(path: string): string {
  const name = nodePath.basename(nodePath.resolve(path));
  return name.endsWith('.json') && isRegularFile(locate(path)) ? name.slice(0, -5) : name;
}

const namesShown = 5;

/**
 * In place of an error that says that a folder holds no `meta.zr`, where the folder is no container at all:
 * one that says what the folder is. Other errors stay as they are.
 */
export function noContainerError(error: unknown, { shown, native }: Location): unknown {
  if (!(error instanceof LoaderxError) || error.code !== 'NOT_FOUND') return error;
  if (error.file !== 'meta.zr') return error;
  const place = { path: shown, file: error.file };
  const folder = typeof native === 'string' ? native : Buffer.from(native);
  if (isContainerFolder(folder)) {
    // The sentence names the file already.
    return new LoaderxError('NOT_FOUND', `${shown}: the folder holds no meta.zr`, place);
  }
  const inner = typeof folder === 'string' ? containersAt(folder) : [];
  const names = inner
    .filter((each) => each !== folder)
    .map((each) => nodePath.posix.basename(each));
  const said =
    names.length === 0
      ? `the folder is no container, and holds none${typeof folder === 'string' ? splitsHint(folder) : ''}`
      : `the folder is no container, and holds the containers ${listed(names)}: name one`;
  return new LoaderxError('NOT_FOUND', `${shown}: ${said}`, place);
}

const foldersLookedAt = 64;

/** A conversion has a folder of containers for each split. */
function splitsHint(folder: string): string {
  const entries = entriesOf(folder);
  if (typeof entries === 'string') return '';
  const names = entries
    .filter((entry) => entry.isDirectory())
    .slice(0, foldersLookedAt)
    .map(({ name }) => name)
    .filter((name) => containersAt(`${folder}/${name}`)[0] !== `${folder}/${name}`)
    .sort();
  if (names.length === 0) return '';
  return `; its folders ${listed(names)} do: name one`;
}

/** The first few, and how many more there are. */
function listed(names: readonly string[]): string {
  const more = names.length > namesShown ? `, and ${names.length - namesShown} more` : '';
  return `${names.slice(0, namesShown).join(', ')}${more}`;
}

function isSetFile(path: string): boolean {
  return isRegularFile(locate(path)) && looksLikeSet(path);
}

/** The paths of a set's parts, below its folder; none where the file is broken: whoever opens it says how. */
function partsOf(path: string): string[] {
  try {
    return (readSetFile(path, path)?.parts ?? []).map((part) => part.path);
  } catch {
    return [];
  }
}

function mayBeContainer(path: string): boolean {
  const entries = entriesOf(path);
  if (entries === 'unknown') return true;
  return entries !== 'none' && entries.some(({ name }) => isFileOfContainer(name));
}

/**
 * What is in a folder; `'none'` where there is no folder, `'unknown'` where it cannot be looked into. Whoever
 * opens it says why.
 */
function entriesOf(path: string): readonly fs.Dirent[] | 'none' | 'unknown' {
  try {
    return fs.readdirSync(path, { withFileTypes: true });
  } catch (error) {
    return isAbsence(error) ? 'none' : 'unknown';
  }
}
