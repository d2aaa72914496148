// The table of platforms in build.zig, and what else says which they are.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import t from 'tap';
import { inRoot } from '../../scripts/script.mjs';
import { fromRow, ownTarget, readTargets } from '../../scripts/targets.mjs';
import { ensureZig } from '../../scripts/toolchain.mjs';
import { coveredPlatforms } from '../../ts/native/load.js';

const targets = await readTargets(await ensureZig());

t.test('what is built is what is said to be covered', async (t) => {
  const covered = coveredPlatforms.flatMap((entry) => {
    const [, folder = '', libraries = ''] = /^(\S+)(?: \((.*)\))?$/.exec(entry) ?? [];
    if (libraries === '') return [folder];
    t.match(libraries, /^glibc \d+\.\d+ or newer, or musl$/);
    return [folder, `${folder}-musl`];
  });
  t.same(targets.map(({ name }) => name).sort(), covered.sort());
  for (const { name, folder, libc, least } of targets) {
    t.equal(name, libc === 'musl' ? `${folder}-musl` : folder);
    if (libc !== 'glibc') continue;
    const entry = coveredPlatforms.find((text) => text.startsWith(`${folder} `));
    t.match(entry, `(${least} or newer, `, name);
  }
  const readme = fs.readFileSync(inRoot('README.md'), 'utf8');
  for (const { folder } of targets) t.match(readme, folder, `README.md names ${folder}`);
});

t.test('node-gyp-build understands the names', async (t) => {
  const gyp = createRequire(import.meta.url)('node-gyp-build');
  for (const { folder, file, platform, arch, libc } of targets) {
    const tuple = gyp.parseTuple(folder);
    t.same(tuple.platform, platform);
    t.same(tuple.architectures, [arch]);
    t.equal(gyp.parseTags(file).libc ?? '', libc, file);
  }
});

t.test('triples', async (t) => {
  const row = { name: 'a', folder: 'linux-x64', file: 'a.node', cpu: 'x86_64' };
  const read = (triple: string, folder = row.folder) => fromRow({ ...row, triple, folder });
  t.match(read('x86_64-linux-gnu.2.28'), { libc: 'glibc', least: 'glibc 2.28', format: 'ELF' });
  t.match(read('x86_64-linux-musl'), { libc: 'musl', least: '', arch: 'x64' });
  t.match(read('aarch64-macos.11.0', 'darwin-arm64'), { least: 'macOS 11.0', format: 'Mach-O' });
  t.match(read('aarch64-windows-gnu', 'win32-arm64'), { libc: '', least: '', format: 'PE' });
  t.throws(() => read('riscv64-linux-gnu'), /riscv64-linux-gnu/);
  t.throws(() => read('x86_64-linux-gnu.2.28', 'linux-arm64'), /linux-x64, not linux-arm64/);
});

t.test('the row of this machine', async (t) => {
  const own = ownTarget(targets);
  t.equal(own?.folder, `${process.platform}-${process.arch}`);
});
