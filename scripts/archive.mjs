// @ts-check
// Unpacks the two archive formats that packages come in, with nothing but Node: a fresh machine has
// neither unzip nor a tar that is the same everywhere. Both readers take whole archives whose hash
// was checked before; they refuse what they do not understand and never write outside `folder`.
import fs from 'node:fs';
import path from 'node:path';
import zlib from 'node:zlib';
import { Failure } from './script.mjs';

/**
 * Says where a file of the archive goes, relative to the folder, or null to leave it out.
 * @typedef {(name: string) => string | null} Place
 */

/**
 * Unpacks a zip file.
 *
 * @param {Buffer} zip
 * @param {string} folder
 * @param {Place} place
 * @returns {number} how many files were written
 */
export function unzip(zip, folder, place) {
  const endBytes = 22;
  let end = zip.length - endBytes;
  while (end >= 0 && zip.readUInt32LE(end) !== 0x06054b50) end -= 1;
  if (end < 0) throw new Failure('not a zip file: it has no end record');

  const entryCount = zip.readUInt16LE(end + 10);
  let at = zip.readUInt32LE(end + 16);
  if (entryCount === 0xffff || at === 0xffffffff) throw new Failure('zip64 is not understood');

  let written = 0;
  for (let index = 0; index < entryCount; index += 1) {
    if (zip.readUInt32LE(at) !== 0x02014b50) throw new Failure(`zip entry ${index} is damaged`);
    const method = zip.readUInt16LE(at + 10);
    const packedBytes = zip.readUInt32LE(at + 20);
    const bytes = zip.readUInt32LE(at + 24);
    const nameBytes = zip.readUInt16LE(at + 28);
    const mode = zip.readUInt32LE(at + 38) >>> 16;
    const local = zip.readUInt32LE(at + 42);
    const name = zip.toString('utf8', at + 46, at + 46 + nameBytes);
    at += 46 + nameBytes + zip.readUInt16LE(at + 30) + zip.readUInt16LE(at + 32);

    const target = name.endsWith('/') ? null : place(name);
    if (target === null) continue;
    // The local header repeats the name with an extra field of another length.
    const start = local + 30 + zip.readUInt16LE(local + 26) + zip.readUInt16LE(local + 28);
    const packed = zip.subarray(start, start + packedBytes);
    if (method !== 0 && method !== 8) throw new Failure(`${name}: zip method ${method} is unknown`);
    const data = method === 8 ? zlib.inflateRawSync(packed) : packed;
    if (data.length !== bytes) throw new Failure(`${name} has ${data.length} bytes, not ${bytes}`);
    write(folder, target, data, mode);
    written += 1;
  }
  return written;
}

/**
 * Unpacks a gzipped tar file: regular files only.
 *
 * @param {Buffer} tarball
 * @param {string} folder
 * @param {Place} place
 * @returns {number} how many files were written
 */
export function untar(tarball, folder, place) {
  const tar = zlib.gunzipSync(tarball);
  const blockBytes = 512;
  /** @type {string | null} a long name, from a header of its own, for the entry that follows */
  let longName = null;
  let written = 0;
  for (let at = 0; at + blockBytes <= tar.length && tar[at] !== 0; ) {
    const bytes = Number.parseInt(text(tar, at + 124, 12).trim() || '0', 8);
    const type = text(tar, at + 156, 1) || '0';
    const prefix = text(tar, at + 257, 5) === 'ustar' ? text(tar, at + 345, 155) : '';
    const shortName = text(tar, at, 100);
    const mode = Number.parseInt(text(tar, at + 100, 8).trim() || '0', 8);
    const start = at + blockBytes;
    if (!Number.isSafeInteger(bytes) || start + bytes > tar.length) {
      throw new Failure(`${shortName}: the tar file ends inside it`);
    }
    const data = tar.subarray(start, start + bytes);
    at = start + Math.ceil(bytes / blockBytes) * blockBytes;

    if (type === 'L') {
      longName = text(data, 0, data.length);
    } else if (type === 'x') {
      longName = /^\d+ path=([^\n]*)$/m.exec(data.toString('utf8'))?.[1] ?? null;
    } else {
      const name = longName ?? (prefix === '' ? shortName : `${prefix}/${shortName}`);
      longName = null;
      const target = type === '0' ? place(name) : null;
      if (target === null) continue;
      write(folder, target, data, mode);
      written += 1;
    }
  }
  return written;
}

/** The string up to the first NUL. @param {Buffer} from @param {number} at @param {number} bytes */
function text(from, at, bytes) {
  const end = from.subarray(at, at + bytes).indexOf(0);
  return from.toString('utf8', at, at + (end < 0 ? bytes : end));
}

/** @param {string} folder @param {string} name @param {Buffer} data @param {number} mode */
function write(folder, name, data, mode) {
  const file = path.resolve(folder, name);
  if (!file.startsWith(path.resolve(folder) + path.sep)) {
    throw new Failure(`the archive wants to write outside its folder: ${name}`);
  }
  fs.mkdirSync(path.dirname(file), { recursive: true });
  fs.writeFileSync(file, data, { mode: (mode & 0o111) === 0 ? 0o644 : 0o755 });
}
