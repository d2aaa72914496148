// @ts-check
// The bill of materials of a release, in CycloneDX: what is in the tarball, what is linked into the
// addons and folded into dist/, and what npm installs beside it. Written and validated by CycloneDX's
// own library.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { foldedPackages } from './dist.mjs';
import { zigLibFolder } from './licences.mjs';
import { Failure, inRoot } from './script.mjs';
import { sha256Of } from './tarball.mjs';
import { pins } from './toolchain.mjs';

/** @typedef {import('./targets.mjs').Target} Target */

/**
 * @typedef {object} Part
 * @property {string} name
 * @property {string} version
 * @property {string} licence SPDX
 * @property {string} purl
 * @property {string} how it came in
 */

/** @param {string} zig @returns {Part[]} */
function parts(zig) {
  const lock = JSON.parse(fs.readFileSync(inRoot('package-lock.json'), 'utf8')).packages;
  const manifest = JSON.parse(fs.readFileSync(inRoot('package.json'), 'utf8'));
  /** @param {string} name @param {string} how @returns {Part} */
  const npmPart = (name, how) => {
    const { version, license } = lock[`node_modules/${name}`];
    return { name, version, licence: license, purl: `pkg:npm/${name}@${version}`, how };
  };
  const llvm = llvmVersion(zig);
  const llvmLicence = 'Apache-2.0 WITH LLVM-exception';
  return [
    ...Object.keys(manifest.dependencies).map((name) =>
      npmPart(name, 'installed beside it by npm'),
    ),
    ...foldedPackages.map((name) => npmPart(name, 'folded into dist/')),
    npmPart('node-addon-api', 'linked into every addon'),
    npmPart('node-api-headers', 'linked into every addon'),
    generic('zstd', pins.zstd.version, 'BSD-3-Clause', 'linked into every addon'),
    generic('zig', pins.zig.version, 'MIT', 'its standard library and compiler-rt, in every addon'),
    generic('libc++', llvm, llvmLicence, 'linked into every addon'),
    generic('libc++abi', llvm, llvmLicence, 'linked into every addon'),
    generic('libunwind', llvm, llvmLicence, 'linked into every addon'),
    generic(
      'mingw-w64',
      `zig-${pins.zig.version}`,
      'ZPL-2.1',
      'start code of the addons for Windows',
    ),
    generic('musl', `zig-${pins.zig.version}`, 'MIT', 'start code of the addons for musl'),
    generic('glibc', '2.28', 'LGPL-2.1-or-later', 'start code of the addons for glibc'),
  ];
}

/** @param {string} name @param {string} version @param {string} licence @param {string} how @returns {Part} */
function generic(name, version, licence, how) {
  const purl = `pkg:generic/${encodeURIComponent(name)}@${version}`;
  return { name, version, licence, purl, how };
}

/** libc++ has LLVM's version: 220108 is 22.1.8. @param {string} zig */
function llvmVersion(zig) {
  const config = path.join(zigLibFolder(zig), 'libcxx', 'include', '__config');
  const number = /_LIBCPP_VERSION (\d+)/.exec(fs.readFileSync(config, 'utf8'))?.[1];
  if (number === undefined) throw new Failure('libc++ does not say its version');
  const value = Number(number);
  return `${Math.floor(value / 10000)}.${Math.floor(value / 100) % 100}.${value % 100}`;
}

/**
 * @param {object} release
 * @param {string} release.file where it goes
 * @param {string} release.version
 * @param {string} release.tarball
 * @param {readonly Target[]} release.targets
 * @param {string} release.zig
 * @param {string} release.tools
 * @returns {Promise<{components: number, reason: string}>} `reason`: why it is not valid; empty: it is
 */
export async function writeSbom({ file, version, tarball, targets, zig, tools }) {
  const require = createRequire(path.join(tools, 'x'));
  /** @type {string} of no literal type: the release tools are not there when types are checked */
  const library = '@cyclonedx/cyclonedx-library';
  const { Enums, Models, Serialize, Spec, Validation } = require(library);
  const sha256 = (/** @type {string} */ of) =>
    new Models.HashDictionary([[Enums.HashAlgorithm['SHA-256'], sha256Of(of)]]);

  const bom = new Models.Bom();
  bom.metadata.component = new Models.Component(Enums.ComponentType.Library, 'loaderx', {
    bomRef: 'loaderx',
    version,
    purl: `pkg:npm/loaderx@${version}`,
    hashes: sha256(tarball),
    licenses: new Models.LicenseRepository([new Models.SpdxLicense('MIT')]),
  });
  const needs = bom.metadata.component.dependencies;
  for (const { name, version: own, licence, purl, how } of parts(zig)) {
    const isExpression = licence.includes(' ');
    const component = new Models.Component(Enums.ComponentType.Library, name, {
      bomRef: purl,
      version: own,
      purl,
      description: how,
      licenses: new Models.LicenseRepository([
        isExpression ? new Models.LicenseExpression(licence) : new Models.SpdxLicense(licence),
      ]),
    });
    bom.components.add(component);
    needs.add(component.bomRef);
  }
  for (const target of targets) {
    const prebuilt = target.prebuilt.replaceAll(path.sep, '/');
    bom.components.add(
      new Models.Component(Enums.ComponentType.File, prebuilt, {
        bomRef: prebuilt,
        version,
        hashes: sha256(inRoot(target.prebuilt)),
        description: `${target.triple}, at least a ${target.cpu}`,
      }),
    );
  }

  const serializer = new Serialize.JsonSerializer(
    new Serialize.JSON.Normalize.Factory(Spec.Spec1dot6),
  );
  const text = serializer.serialize(bom, { sortLists: true, space: 2 });
  fs.writeFileSync(file, `${text}\n`);
  const problem = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(text);
  return {
    components: bom.components.size,
    reason: problem === null ? '' : JSON.stringify(problem),
  };
}
