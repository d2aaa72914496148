// What is written down in two places must agree, and what users install must stay as small as it was
// promised.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import t from 'tap';
import { inRoot } from '../../scripts/script.mjs';
import { pins } from '../../scripts/toolchain.mjs';

const read = (name: string) => fs.readFileSync(inRoot(name), 'utf8');
const manifest = JSON.parse(read('package.json'));
const lock = JSON.parse(read('package-lock.json'));
const zon = read('build.zig.zon');

t.test('versions', async (t) => {
  t.equal(/\.version = "([^"]*)"/.exec(zon)?.[1], manifest.version, 'build.zig.zon');
  t.equal(lock.version, manifest.version, 'package-lock.json');
  t.equal(/\.minimum_zig_version = "([^"]*)"/.exec(zon)?.[1], pins.zig.version, 'Zig');
  t.match(read('build.zig'), `.deps/zstd/${pins.zstd.version}/lib`, 'zstd');
  const zstdHeader = read(`.deps/zstd/${pins.zstd.version}/lib/zstd.h`);
  const [major, minor, release] = ['MAJOR', 'MINOR', 'RELEASE'].map(
    (part) => new RegExp(`ZSTD_VERSION_${part} +(\\d+)`).exec(zstdHeader)?.[1],
  );
  t.equal(`${major}.${minor}.${release}`, pins.zstd.version, 'the sources of zstd say so too');
});

t.test('what users install', async (t) => {
  t.same(Object.keys(manifest.dependencies), ['node-gyp-build'], 'one package');
  const lifecycle = ['preinstall', 'install', 'postinstall', 'prepare', 'prepublish'];
  t.same(
    Object.keys(manifest.scripts).filter((name) => lifecycle.includes(name)),
    [],
  );
  t.notOk(fs.existsSync(inRoot('binding.gyp')), 'npm would build it');
  t.notOk(lock.packages['node_modules/node-gyp-build'].hasInstallScript);
  for (const [name, version] of Object.entries({
    ...manifest.dependencies,
    ...manifest.devDependencies,
  })) {
    t.match(version, /^\d+\.\d+\.\d+$/, `${name} is pinned exactly`);
  }
});

t.test('lock files name versions and hashes, and no addresses', async (t) => {
  const own = ['jax', 'mnist', 'onnx', 'tfjs'].map((name) => `examples/${name}/package-lock.json`);
  for (const file of ['package-lock.json', 'scripts/release-tools/package-lock.json', ...own]) {
    const packages = Object.entries<{ resolved?: string; integrity?: string }>(
      JSON.parse(read(file)).packages,
    );
    t.ok(packages.length > (file.startsWith('examples/') ? 1 : 100), file);
    for (const [name, { resolved, integrity }] of packages) {
      if (name === '') continue;
      if (resolved !== undefined) t.fail(`${file}: ${name} has the address ${resolved}`);
      if (integrity === undefined) t.fail(`${file}: ${name} has no hash`);
    }
  }
});

t.test('ESM and CommonJS get the same module', async (t) => {
  // By its own name, through package.json's `exports`: what dist/ holds.
  const name: string = manifest.name;
  const entry: unknown = await import(name);
  t.equal(createRequire(import.meta.url)(name), entry);
});
