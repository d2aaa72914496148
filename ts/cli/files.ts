/** Dictionaries in files of their own. */
import fs from 'node:fs';
import { fileError } from './command.js';

/** What a dictionary file holds. */
export function bytesOf(file: string): Uint8Array {
  try {
    return new Uint8Array(fs.readFileSync(file));
  } catch (error) {
    throw fileError(file, 'reading it', error);
  }
}

/** Writes a dictionary; an older file stays unless `force`. */
export function write(file: string, bytes: Uint8Array, force: boolean): void {
  try {
    fs.writeFileSync(file, bytes, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    throw fileError(file, 'writing it', error);
  }
}
