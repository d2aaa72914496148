// @ts-check
// The compiler and the C sources that the build needs and this repository does not carry: Zig and
// zstd, exactly the versions of toolchain.lock.json, checked by hash, in .deps/. A version that is
// there costs a look at the disk, not a process.
//
//     node scripts/toolchain.mjs     fetches what is missing, prints the path of zig
import fs from 'node:fs';
import path from 'node:path';
import { untar, unzip } from './archive.mjs';
import { ask } from './child.mjs';
import { installFolder } from './install.mjs';
import { fetchPackage } from './python-package.mjs';
import { depsFolder, entry, Failure, inRoot, shown } from './script.mjs';

/** @typedef {import('./python-package.mjs').Pin} Pin */

/**
 * @typedef {object} NodePin a Node to try the addon in, as an npm package
 * @property {string} version
 * @property {string} package
 * @property {string} program
 * @property {string} integrity
 */

/** @type {{zig: Pin, zstd: Pin, muslNode: Pin, node: Record<string, NodePin[]>}} */
export const pins = JSON.parse(fs.readFileSync(inRoot('scripts', 'toolchain.lock.json'), 'utf8'));

const zigFile = process.platform === 'win32' ? 'zig.exe' : 'zig';

/**
 * Everything the Zig build needs from outside.
 *
 * @returns {Promise<{zig: string}>} the compiler's path
 * @throws {Failure} what is missing and what to do
 */
export async function ensureToolchain() {
  const zig = await ensureZig();
  await ensureZstd();
  return { zig };
}

/**
 * Finds the pinned Zig: `$ZIG`, on PATH, in .deps; else fetches it.
 *
 * @returns {Promise<string>}
 */
export async function ensureZig() {
  const { version } = pins.zig;
  const wanted = process.env.ZIG;
  if (wanted !== undefined && wanted !== '') {
    const found = zigVersion(wanted);
    if (found === version) return wanted;
    throw new Failure(
      found === null ? `ZIG=${wanted} cannot be run` : `ZIG=${wanted} is Zig ${found}`,
      `This checkout is built with Zig ${version}, exactly. Point ZIG at it, or unset ZIG and it is fetched.`,
    );
  }

  const onPath = findOnPath(zigFile);
  if (onPath !== null && zigVersion(onPath) === version) return onPath;

  const target = path.join(depsFolder, 'zig', version);
  const zig = path.join(target, zigFile);
  await installPackage(pins.zig, {
    label: `Zig ${version} (about 100 MB, once)`,
    kind: 'wheel',
    target,
    witness: zigFile,
    unpack: unzip,
    place: (name) => afterPrefix(name, `${pins.zig.folderInPackage}/`),
    otherwise: `install Zig ${version} by other means and point ZIG at it`,
  });
  return zig;
}

/**
 * The zstd sources that build.zig compiles.
 *
 * @returns {Promise<string>} their lib/ folder
 */
export async function ensureZstd() {
  const { version, folderInPackage } = pins.zstd;
  const target = path.join(depsFolder, 'zstd', version);
  await installPackage(pins.zstd, {
    label: `the sources of zstd ${version}`,
    kind: 'sources',
    target,
    witness: path.join('lib', 'zstd.h'),
    unpack: untar,
    // The names start with a folder that is named after the package and its version.
    place: (name) => afterPrefix(name.slice(name.indexOf('/') + 1), `${folderInPackage}/`),
    otherwise: `unpack zstd ${version} into ${shown(target)} by other means`,
  });
  return path.join(target, 'lib');
}

/**
 * @param {Pin} pin
 * @param {object} how
 * @param {string} how.label
 * @param {'wheel' | 'sources'} how.kind
 * @param {string} how.target
 * @param {string} how.witness a file of it that must be there
 * @param {typeof unzip} how.unpack
 * @param {(name: string) => string | null} how.place
 * @param {string} how.otherwise
 */
async function installPackage(pin, { label, kind, target, witness, unpack, place, otherwise }) {
  await installFolder({
    target,
    // A folder appears here by rename only, so it is whole; its name says the version.
    isCurrent: () => fs.existsSync(path.join(target, witness)),
    prepare: (scratch) => {
      process.stdout.write(`fetching ${label}\n`);
      const archive = fetchPackage(pin, { kind, folder: scratch, otherwise });
      const folder = path.join(scratch, 'unpacked');
      unpack(archive, folder, place);
      if (!fs.existsSync(path.join(folder, witness))) {
        throw new Failure(
          `${pin.package} ${pin.packageVersion} has no ${pin.folderInPackage}/${witness}`,
        );
      }
      return folder;
    },
  });
}

/** @param {string} name @param {string} prefix */
function afterPrefix(name, prefix) {
  return name.startsWith(prefix) ? name.slice(prefix.length) : null;
}

/** @param {string} zig @returns {string | null} null: it cannot be run */
function zigVersion(zig) {
  const answer = ask(zig, ['version']);
  return answer.ok ? answer.stdout : null;
}

/** @param {string} file @returns {string | null} */
export function findOnPath(file) {
  for (const folder of (process.env.PATH ?? '').split(path.delimiter)) {
    const candidate = path.join(folder, file);
    if (folder !== '' && fs.statSync(candidate, { throwIfNoEntry: false })?.isFile())
      return candidate;
  }
  return null;
}

await entry(import.meta, async () => {
  const { zig } = await ensureToolchain();
  process.stdout.write(`${zig}\n`);
  return 0;
});
