// @ts-check
// Reads what a loader would see of a shared library: ELF (Linux), Mach-O (macOS) and PE (Windows),
// 64 bit, little-endian. Enough to judge a cross-compiled addon on a machine that cannot load it.
// Offsets are the formats' own; each reader names the structures it walks.
import { createHash } from 'node:crypto';
import { Failure } from './script.mjs';

/**
 * @typedef {object} SharedLibrary
 * @property {'ELF' | 'Mach-O' | 'PE'} format
 * @property {'x64' | 'arm64' | string} machine as in `process.arch`, else the format's number
 * @property {string[]} exports the functions it shows, sorted
 * @property {string[]} libraries the files it wants beside it, sorted
 * @property {Import[]} imports what it wants from them or from the process, sorted; not what it can do
 *   without (weak symbols)
 * @property {string} least the oldest system it asks for: `glibc 2.28`, `macOS 11.0`, or empty
 * @property {string} [signature] Mach-O only: empty if the code signature's page hashes are right,
 *   else what is wrong; arm64 Macs load no unsigned code
 */

/**
 * @typedef {object} Import
 * @property {string} name
 * @property {string} from the library it is asked of; empty: of whoever has it
 */

/** @param {Buffer} file @returns {SharedLibrary} @throws {Failure} if it is none of the three */
export function readSharedLibrary(file) {
  const magic = file.length >= 64 ? file.readUInt32BE(0) : 0;
  try {
    if (magic === 0x7f454c46) return readElf(file);
    if (magic === 0xcffaedfe) return readMachO(file);
    if (magic >>> 16 === 0x4d5a) return readPe(file);
  } catch (error) {
    if (error instanceof RangeError) throw new Failure('the library ends too early');
    throw error;
  }
  throw new Failure('neither ELF nor Mach-O nor PE');
}

/** ELF: file header → section headers → .dynsym, .dynamic, .gnu.version, .gnu.version_r. @param {Buffer} file */
function readElf(file) {
  const [elfClass, byteOrder] = [file.readUInt8(4), file.readUInt8(5)];
  const type = file.readUInt16LE(16);
  if (elfClass !== 2 || byteOrder !== 1) throw new Failure('not a 64-bit little-endian ELF file');
  if (type !== 3) throw new Failure(`ELF type ${type} is not a shared library`);

  const tableAt = offset(file, 40);
  const entryBytes = file.readUInt16LE(58);
  const sections = Array.from({ length: file.readUInt16LE(60) }, (_, index) => {
    const at = tableAt + index * entryBytes;
    return {
      type: file.readUInt32LE(at + 4),
      start: offset(file, at + 24),
      bytes: offset(file, at + 32),
      link: file.readUInt32LE(at + 40),
      info: file.readUInt32LE(at + 44),
    };
  });
  const section = (/** @type {number} */ kind) => sections.find((item) => item.type === kind);
  const stringsOf = (/** @type {{link: number}} */ item) => sections[item.link]?.start ?? 0;
  const [dynamicKind, symbolsKind, needsKind, versionsKind] = [6, 11, 0x6ffffffe, 0x6fffffff];

  const libraries = [];
  const dynamic = section(dynamicKind);
  for (let at = dynamic?.start ?? 0; dynamic && at < dynamic.start + dynamic.bytes; at += 16) {
    const [needed, end] = [1, 0];
    const tag = offset(file, at);
    if (tag === needed) libraries.push(string(file, stringsOf(dynamic) + offset(file, at + 8)));
    if (tag === end) break;
  }

  /** @type {{name: string, from: string, index: number}[]} */
  const versions = [];
  const needs = section(needsKind);
  let needAt = needs?.start ?? 0;
  for (let left = needs?.info ?? 0; needs && left > 0; left -= 1) {
    const from = string(file, stringsOf(needs) + file.readUInt32LE(needAt + 4));
    let versionAt = needAt + file.readUInt32LE(needAt + 8);
    for (let count = file.readUInt16LE(needAt + 2); count > 0; count -= 1) {
      const name = string(file, stringsOf(needs) + file.readUInt32LE(versionAt + 8));
      versions.push({ name, from, index: file.readUInt16LE(versionAt + 6) });
      versionAt += file.readUInt32LE(versionAt + 12);
    }
    needAt += file.readUInt32LE(needAt + 12);
  }

  const exports = [];
  /** @type {Import[]} */
  const imports = [];
  const symbols = section(symbolsKind);
  const versionOf = section(versionsKind);
  const symbolCount = symbols === undefined ? 0 : Math.floor(symbols.bytes / 24);
  for (let index = 0; symbols && index < symbolCount; index += 1) {
    const at = symbols.start + index * 24;
    const isDefined = file.readUInt16LE(at + 6) !== 0;
    const [local, global] = [0, 1];
    const binding = file.readUInt8(at + 4) >>> 4;
    const isShown = (file.readUInt8(at + 5) & 3) === 0;
    if (isDefined ? binding === local || !isShown : binding !== global) continue;
    const name = string(file, stringsOf(symbols) + file.readUInt32LE(at));
    if (isDefined) {
      exports.push(name);
    } else {
      const version = versionOf && file.readUInt16LE(versionOf.start + index * 2) & 0x7fff;
      const from = versions.find((candidate) => candidate.index === version)?.from ?? '';
      imports.push({ name, from });
    }
  }

  const glibc = versions
    .filter(({ name }) => name.startsWith('GLIBC_'))
    .map(({ name }) => name.slice('GLIBC_'.length))
    .sort(compareVersions)
    .at(-1);

  return library({
    format: 'ELF',
    machine: machineName(file.readUInt16LE(18), { 62: 'x64', 183: 'arm64' }),
    exports,
    libraries,
    imports,
    least: glibc === undefined ? '' : `glibc ${glibc}`,
  });
}

/** Mach-O: header → load commands → symbols, libraries, least system. @param {Buffer} file */
function readMachO(file) {
  const type = file.readUInt32LE(12);
  if (type !== 6 && type !== 8) throw new Failure(`Mach-O type ${type} is not a shared library`);
  const [symbolsCommand, libraryCommand, buildCommand, signatureCommand] = [0x2, 0xc, 0x32, 0x1d];
  const headerBytes = 32;
  /** @type {string[]} */
  const exports = [];
  /** @type {string[]} */
  const libraries = [];
  /** @type {{name: string, library: number}[]} */
  const wanted = [];
  let least = '';
  let signature = 'there is no code signature';
  let at = headerBytes;
  for (let left = file.readUInt32LE(16); left > 0; left -= 1) {
    const command = file.readUInt32LE(at);
    if (command === symbolsCommand) {
      const symbolsAt = file.readUInt32LE(at + 8);
      const stringsAt = file.readUInt32LE(at + 16);
      for (let index = 0; index < file.readUInt32LE(at + 12); index += 1) {
        const symbol = symbolsAt + index * 16;
        const kind = file.readUInt8(symbol + 4);
        const [isDebug, isPrivate] = [(kind & 0xe0) !== 0, (kind & 0x10) !== 0];
        const [isDefined, isExternal] = [(kind & 0x0e) !== 0, (kind & 0x01) !== 0];
        if (isDebug || isPrivate || !isExternal) continue;
        const name = string(file, stringsAt + file.readUInt32LE(symbol)).replace(/^_/, '');
        const description = file.readUInt16LE(symbol + 6);
        const isWeak = (description & 0x40) !== 0;
        if (isDefined) exports.push(name);
        else if (!isWeak) wanted.push({ name, library: description >>> 8 });
      }
    } else if (command === libraryCommand) {
      libraries.push(string(file, at + file.readUInt32LE(at + 8)));
    } else if (command === buildCommand) {
      const version = file.readUInt32LE(at + 12);
      least = `macOS ${version >>> 16}.${(version >>> 8) & 0xff}`;
    } else if (command === signatureCommand) {
      signature = checkSignature(file, file.readUInt32LE(at + 8));
    }
    at += file.readUInt32LE(at + 4);
  }
  const machine = machineName(file.readUInt32LE(4), { 16777223: 'x64', 16777228: 'arm64' });
  // Libraries are counted from 1, in the order of their commands; other numbers mean "any".
  const imports = wanted.map(({ name, library }) => ({ name, from: libraries[library - 1] ?? '' }));
  return {
    ...library({ format: 'Mach-O', machine, exports, libraries, imports, least }),
    signature,
  };
}

/**
 * The signature holds a hash of each page of the file (all big-endian): super blob → code directory
 * → hashes.
 *
 * @param {Buffer} file
 * @param {number} superBlob
 * @returns {string} empty: every hash is right
 */
function checkSignature(file, superBlob) {
  const directoryMagic = 0xfade0c02;
  for (let index = 0; index < file.readUInt32BE(superBlob + 8); index += 1) {
    const directory = superBlob + file.readUInt32BE(superBlob + 16 + index * 8);
    if (file.readUInt32BE(directory) !== directoryMagic) continue;
    const hashesAt = directory + file.readUInt32BE(directory + 16);
    const pageCount = file.readUInt32BE(directory + 28);
    const codeBytes = file.readUInt32BE(directory + 32);
    const hashBytes = file.readUInt8(directory + 36);
    const hashKind = file.readUInt8(directory + 37);
    const pageBytes = 2 ** file.readUInt8(directory + 39);
    const sha256 = 2;
    if (hashKind !== sha256) return `the code signature has hashes of kind ${hashKind}`;
    if (pageCount !== Math.ceil(codeBytes / pageBytes)) return 'the code signature misses pages';
    for (let page = 0; page < pageCount; page += 1) {
      const content = file.subarray(page * pageBytes, Math.min((page + 1) * pageBytes, codeBytes));
      const hash = createHash('sha256').update(content).digest();
      const at = hashesAt + page * hashBytes;
      if (!hash.equals(file.subarray(at, at + hashBytes))) {
        return `the code signature's hash of page ${page} is wrong`;
      }
    }
    return '';
  }
  return 'the code signature has no code directory';
}

/** PE: COFF header → optional header → export and import directories. @param {Buffer} file */
function readPe(file) {
  const coff = file.readUInt32LE(60) + 4;
  if (file.readUInt32BE(coff - 4) !== 0x50450000) throw new Failure('MZ without PE');
  const isDll = (file.readUInt16LE(coff + 18) & 0x2000) !== 0;
  const optional = coff + 20;
  if (!isDll || file.readUInt16LE(optional) !== 0x20b) throw new Failure('not a 64-bit DLL');

  const sectionsAt = optional + file.readUInt16LE(coff + 16);
  const sections = Array.from({ length: file.readUInt16LE(coff + 2) }, (_, index) => {
    const at = sectionsAt + index * 40;
    return {
      address: file.readUInt32LE(at + 12),
      bytes: Math.max(file.readUInt32LE(at + 8), file.readUInt32LE(at + 16)),
      start: file.readUInt32LE(at + 20),
    };
  });
  /** From an address in memory to a place in the file. @param {number} address */
  const place = (address) => {
    const home = sections.find(
      (section) => address >= section.address && address < section.address + section.bytes,
    );
    if (home === undefined) throw new Failure(`address ${address} is in no section`);
    return address - home.address + home.start;
  };
  const directory = (/** @type {number} */ index) => file.readUInt32LE(optional + 112 + index * 8);

  const exports = [];
  if (directory(0) !== 0) {
    const table = place(directory(0));
    const count = file.readUInt32LE(table + 24);
    const names = count === 0 ? 0 : place(file.readUInt32LE(table + 32));
    for (let index = 0; index < count; index += 1) {
      exports.push(string(file, place(file.readUInt32LE(names + index * 4))));
    }
  }
  const libraries = [];
  /** @type {Import[]} */
  const imports = [];
  if (directory(1) !== 0) {
    for (let at = place(directory(1)); file.readUInt32LE(at + 12) !== 0; at += 20) {
      const from = string(file, place(file.readUInt32LE(at + 12)));
      libraries.push(from);
      for (let slot = place(file.readUInt32LE(at)); offset(file, slot) !== 0; slot += 8) {
        const isOrdinal = file.readUInt32LE(slot + 4) >>> 31 === 1;
        const name = isOrdinal
          ? `#${file.readUInt16LE(slot)}`
          : string(file, place(file.readUInt32LE(slot)) + 2);
        imports.push({ name, from });
      }
    }
  }
  const machine = machineName(file.readUInt16LE(coff), { 34404: 'x64', 43620: 'arm64' });
  return library({ format: 'PE', machine, exports, libraries, imports, least: '' });
}

/** @param {Omit<SharedLibrary, 'signature'>} found @returns {SharedLibrary} */
function library(found) {
  const byName = (/** @type {Import} */ a, /** @type {Import} */ b) => (a.name < b.name ? -1 : 1);
  return {
    ...found,
    exports: found.exports.sort(),
    libraries: found.libraries.sort(),
    imports: found.imports.sort(byName),
  };
}

/** A 64-bit file offset; none here comes near 2^53. @param {Buffer} file @param {number} at */
function offset(file, at) {
  return Number(file.readBigUInt64LE(at));
}

/** A NUL-ended string. @param {Buffer} file @param {number} at */
function string(file, at) {
  const end = file.indexOf(0, at);
  if (at < 0 || at >= file.length || end < 0) throw new RangeError('string outside the file');
  return file.toString('latin1', at, end);
}

/** @param {number} value @param {Record<number, string>} known */
function machineName(value, known) {
  return known[value] ?? `machine 0x${value.toString(16)}`;
}

/** Orders `2.9` before `2.28`. @param {string} a @param {string} b */
export function compareVersions(a, b) {
  const [left, right] = [a.split('.').map(Number), b.split('.').map(Number)];
  for (let index = 0; index < Math.max(left.length, right.length); index += 1) {
    const difference = (left[index] ?? 0) - (right[index] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}
