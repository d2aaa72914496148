// @ts-check
// The platforms that are built for: the table of build.zig, and what its triples promise.
import fs from 'node:fs';
import path from 'node:path';
import { run } from './child.mjs';
import { Failure, inRoot } from './script.mjs';

/**
 * @typedef {object} Target
 * @property {string} name as people call it: `linux-x64-musl`
 * @property {string} folder in prebuilds/: `<process.platform>-<process.arch>`
 * @property {string} file
 * @property {string} triple Zig's, with the oldest system
 * @property {string} cpu the least one
 * @property {string} platform as in `process.platform`
 * @property {string} arch as in `process.arch`
 * @property {'glibc' | 'musl' | ''} libc empty where a platform has but one
 * @property {'ELF' | 'Mach-O' | 'PE'} format
 * @property {string} least the newest system it may ask for: `glibc 2.28`, `macOS 11.0`, or empty
 * @property {string} prebuilt the file's path in the checkout
 */

const systems = /** @type {const} */ ({
  linux: { platform: 'linux', format: 'ELF' },
  macos: { platform: 'darwin', format: 'Mach-O' },
  windows: { platform: 'win32', format: 'PE' },
});
/** @type {Record<string, string>} */
const arches = { x86_64: 'x64', aarch64: 'arm64' };

/** @param {string} zig @returns {Promise<Target[]>} */
export async function readTargets(zig) {
  if ((await run(zig, ['build', 'targets', '--color', 'off'])) !== 0) {
    throw new Failure('build.zig does not give its table', 'The compiler said why, above.');
  }
  const rows = JSON.parse(fs.readFileSync(inRoot('build', 'targets.json'), 'utf8'));
  return rows.map(fromRow);
}

/**
 * @param {{name: string, folder: string, file: string, triple: string, cpu: string}} row
 * @returns {Target}
 */
export function fromRow(row) {
  // x86_64-linux-gnu.2.28, aarch64-linux-musl, aarch64-macos.11.0, x86_64-windows-gnu
  const parts = /^(\w+)-(linux|macos|windows)(?:\.([\d.]+))?(?:-(gnu|musl)(?:\.([\d.]+))?)?$/.exec(
    row.triple,
  );
  const arch = arches[parts?.[1] ?? ''];
  if (parts === null || arch === undefined) {
    throw new Failure(`build.zig has the triple ${row.triple}, which the scripts do not know`);
  }
  const [, , system, systemVersion, abi, libcVersion] = parts;
  const { platform, format } = systems[/** @type {keyof typeof systems} */ (system)];
  /** @type {Target['libc']} */
  let libc = '';
  let least = systemVersion === undefined ? '' : `macOS ${systemVersion}`;
  if (platform === 'linux') {
    libc = abi === 'musl' ? 'musl' : 'glibc';
    if (libcVersion !== undefined) least = `glibc ${libcVersion}`;
  }
  if (row.folder !== `${platform}-${arch}`) {
    throw new Failure(`${row.name} of build.zig is for ${platform}-${arch}, not ${row.folder}`);
  }
  return {
    ...row,
    platform,
    arch,
    libc,
    format,
    least,
    prebuilt: path.join('prebuilds', row.folder, row.file),
  };
}

/** The row whose addon this very Node would load. @param {readonly Target[]} targets */
export function ownTarget(targets) {
  const libc = process.platform === 'linux' ? ownLibc() : '';
  return targets.find(
    (target) =>
      target.platform === process.platform && target.arch === process.arch && target.libc === libc,
  );
}

/** @returns {'glibc' | 'musl'} */
function ownLibc() {
  const report = /** @type {{header?: {glibcVersionRuntime?: string}} | undefined} */ (
    /** @type {unknown} */ (process.report?.getReport())
  );
  return report?.header?.glibcVersionRuntime === undefined ? 'musl' : 'glibc';
}
