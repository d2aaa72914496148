// @ts-check
// A container as files in memory: read once, damaged as often as wanted, written where a test opens it.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

/**
 * What stands at a name instead of a regular file. `dangling` and `loop` are symbolic links, `device`
 * is a link to one that never ends.
 *
 * @typedef {'folder' | 'pipe' | 'device' | 'dangling' | 'loop'} Odd
 */

/** Each name in the folder. @typedef {Map<string, Buffer | Odd>} Files */

/**
 * One change to one file; bytes are hex. Overwriting past the end and a longer `truncate` fill with
 * zeros. The first two forms are those of `mutations.json`.
 *
 * @typedef {{file: string, at: number, bytes: string}
 *   | {file: string, truncate: number}
 *   | {file: string, content: string}
 *   | {file: string, becomes: Odd | 'missing'}} Edit
 */

/** Everything in a folder; folders inside it are only named. @param {string} folder @returns {Files} */
export function readFiles(folder) {
  /** @type {Files} */
  const files = new Map();
  for (const entry of fs.readdirSync(folder, { withFileTypes: true })) {
    files.set(
      entry.name,
      entry.isDirectory() ? 'folder' : fs.readFileSync(path.join(folder, entry.name)),
    );
  }
  return files;
}

/** Makes the folder, which must not be there, and all of `files` in it. @param {string} folder @param {Files} files */
export function writeFiles(folder, files) {
  fs.mkdirSync(folder);
  for (const [name, content] of files) put(folder, name, content);
}

/**
 * Turns a folder that holds `before` into one that holds `after`. Unchanged content is told by
 * identity, so files that an edit did not touch cost nothing.
 *
 * @param {string} folder
 * @param {Files} before
 * @param {Files} after
 */
export function switchFiles(folder, before, after) {
  for (const [name, content] of before) {
    const next = after.get(name);
    if (next === content || (Buffer.isBuffer(content) && Buffer.isBuffer(next))) continue;
    remove(path.join(folder, name));
  }
  for (const [name, content] of after) {
    const there = before.get(name);
    if (there === content) continue;
    if (Buffer.isBuffer(there) && Buffer.isBuffer(content)) {
      overwrite(path.join(folder, name), there.length, content);
    } else {
      put(folder, name, content);
    }
  }
}

/**
 * Writes over a file in place. Cutting it to nothing first, as `writeFileSync` does, makes some file
 * systems wait for the disk when it is closed.
 *
 * @param {string} file
 * @param {number} bytesThere
 * @param {Buffer} content
 */
function overwrite(file, bytesThere, content) {
  const handle = fs.openSync(file, 'r+');
  fs.writeSync(handle, content, 0, content.length, 0);
  if (content.length < bytesThere) fs.ftruncateSync(handle, content.length);
  fs.closeSync(handle);
}

/** @param {string} file */
function remove(file) {
  fs.rmSync(file, { recursive: true, force: true });
}

/** @param {string} folder @param {string} name @param {Buffer | Odd} content */
function put(folder, name, content) {
  const file = path.join(folder, name);
  if (content === 'folder') fs.mkdirSync(file);
  else if (content === 'pipe') makePipe(file);
  else if (content === 'device') fs.symlinkSync('/dev/zero', file);
  else if (content === 'dangling') fs.symlinkSync('nowhere', file);
  else if (content === 'loop') fs.symlinkSync(name, file);
  else fs.writeFileSync(file, content);
}

/** @param {string} file */
function makePipe(file) {
  const made = spawnSync('mkfifo', [file]);
  if (made.status !== 0) throw new Error(`mkfifo ${file}: ${made.error ?? made.stderr}`);
}

/** A copy of `files` with the edits made in order. @param {Files} files @param {readonly Edit[]} edits @returns {Files} */
export function edited(files, edits) {
  const result = new Map(files);
  for (const edit of edits) editOne(result, edit);
  return result;
}

/** @param {Files} files @param {Edit} edit */
export function editOne(files, edit) {
  const { file } = edit;
  if ('becomes' in edit) {
    files.delete(file);
    if (edit.becomes !== 'missing') files.set(file, edit.becomes);
  } else if ('content' in edit) {
    files.set(file, Buffer.from(edit.content, 'hex'));
  } else {
    const before = files.get(file) ?? Buffer.alloc(0);
    if (typeof before === 'string') throw new TypeError(`${file} is a ${before} and has no bytes`);
    files.set(
      file,
      'truncate' in edit ? resized(before, edit.truncate) : overwritten(before, edit),
    );
  }
}

/** @param {Buffer} before @param {number} bytes */
function resized(before, bytes) {
  const after = Buffer.alloc(bytes);
  before.copy(after, 0, 0, bytes);
  return after;
}

/** @param {Buffer} before @param {{at: number, bytes: string}} edit */
function overwritten(before, { at, bytes }) {
  const part = Buffer.from(bytes, 'hex');
  const after = resized(before, Math.max(before.length, at + part.length));
  part.copy(after, at);
  return after;
}

/** The bytes of a regular file. @param {Files} files @param {string} name @returns {Buffer} */
export function bytesOf(files, name) {
  const content = files.get(name);
  if (!Buffer.isBuffer(content)) throw new TypeError(`${name} is ${content ?? 'not there'}`);
  return content;
}
