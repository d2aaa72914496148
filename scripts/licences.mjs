// @ts-check
// licences/: the texts that must come with the package, because code under them is linked into the
// prebuilds or folded into dist/. Collected from the very sources that were built.
import fs from 'node:fs';
import path from 'node:path';
import { ask } from './child.mjs';
import { foldedPackages } from './dist.mjs';
import { depsFolder, Failure, inRoot, shown } from './script.mjs';
import { pins } from './toolchain.mjs';

/** @param {string} zig */
export function collectLicences(zig) {
  const zigLib = zigLibFolder(zig);
  /** @type {Record<string, string>} name in licences/ → text */
  const texts = {
    zstd: path.join(depsFolder, 'zstd', pins.zstd.version, 'LICENSE'),
    'node-addon-api': packageLicence('node-addon-api'),
    'node-api-headers': packageLicence('node-api-headers'),
    zig: path.join(path.dirname(zigLib), 'LICENSE'),
    'libc++': path.join(zigLib, 'libcxx', 'LICENSE.TXT'),
    'libc++abi': path.join(zigLib, 'libcxxabi', 'LICENSE.TXT'),
    libunwind: path.join(zigLib, 'libunwind', 'LICENSE.TXT'),
    'mingw-w64': path.join(zigLib, 'libc', 'mingw', 'COPYING'),
    musl: path.join(zigLib, 'libc', 'musl', 'COPYRIGHT'),
    glibc: path.join(zigLib, 'libc', 'glibc', 'LICENSES'),
  };
  for (const name of foldedPackages) texts[name] = packageLicence(name);

  const folder = inRoot('licences');
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder);
  for (const [name, file] of Object.entries(texts)) {
    if (!fs.existsSync(file)) throw new Failure(`the licence of ${name} is not at ${shown(file)}`);
    fs.copyFileSync(file, path.join(folder, `${name}.txt`));
  }
}

/** @param {string} name */
function packageLicence(name) {
  const folder = inRoot('node_modules', name);
  const file = fs.readdirSync(folder).find((candidate) => /^licen[cs]e(\.|$)/i.test(candidate));
  if (file === undefined) throw new Failure(`the npm package ${name} carries no licence text`);
  return path.join(folder, file);
}

/** Where Zig keeps the sources of what it links in. @param {string} zig */
export function zigLibFolder(zig) {
  const folder = /\.lib_dir = "((?:[^"\\]|\\.)*)"/.exec(ask(zig, ['env']).stdout)?.[1];
  if (folder === undefined) throw new Failure('`zig env` does not say where its lib folder is');
  return path.resolve(inRoot(), folder.replaceAll('\\\\', '\\'));
}
