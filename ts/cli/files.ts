/** Files that commands read and write beside containers. */
import fs from 'node:fs';
import path from 'node:path';
import { assertNoContainer } from '../inspect/info.js';
import { fileError } from './command.js';

/** What a dictionary file holds. */
export function bytesOf(file: string): Uint8Array {
  try {
    return new Uint8Array(fs.readFileSync(file));
  } catch (error) {
    throw fileError(file, 'reading it', error);
  }
}

/**
 * Writes a file; an older one stays unless `force`. Nothing is written into a container: there it would
 * take the place of what the container is made of.
 */
export function writeOut(file: string, bytes: Uint8Array, force: boolean): void {
  assertNoContainer(folderOf(file), file);
  try {
    fs.writeFileSync(file, bytes, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    throw fileError(file, 'writing it', error);
  }
}

/** The folder that a file of this name would be in, behind links. */
function folderOf(file: string): string {
  try {
    return path.dirname(fs.realpathSync(file));
  } catch {
    return path.dirname(path.resolve(file));
  }
}
