// What the package says where it cannot load its native part: dist/ as npm would lay it, with no file
// for any platform, or with the wrong ones. The whole of it, from the tarball, is `npm run test:release`.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { inRoot } from '../scripts/script.mjs';

// A package of its own: in ours, the name would mean ours.
const app = t.testdir({ 'package.json': '{}', node_modules: { loaderx: { prebuilds: {} } } });
const installed = path.join(app, 'node_modules', 'loaderx');
fs.cpSync(inRoot('dist'), path.join(installed, 'dist'), { recursive: true });
fs.copyFileSync(inRoot('package.json'), path.join(installed, 'package.json'));
fs.copyFileSync(inRoot('test/install/failure.mjs'), path.join(app, 'failure.mjs'));

/** `prebuilds/` of the installed package, as file names by folder. */
function carry(prebuilds: Record<string, readonly string[]>) {
  fs.rmSync(path.join(installed, 'prebuilds'), { recursive: true, force: true });
  for (const [folder, files] of Object.entries(prebuilds)) {
    fs.mkdirSync(path.join(installed, 'prebuilds', folder), { recursive: true });
    for (const file of files) fs.writeFileSync(path.join(installed, 'prebuilds', folder, file), '');
  }
}

function fails(args: readonly string[], env: NodeJS.ProcessEnv = {}): string {
  const answer = spawnSync(process.execPath, ['failure.mjs', ...args], {
    cwd: app,
    env: { ...process.env, npm_config_arch: undefined, npm_config_platform: undefined, ...env },
    encoding: 'utf8',
  });
  const { code, message } = JSON.parse(answer.stdout);
  t.equal(code, 'UNSUPPORTED');
  t.match(
    message,
    /; covered are linux-x64 .*, win32-arm64, and elsewhere a source build is `git clone`/,
  );
  t.notMatch(message, /\n|\. [A-Z]/, 'one sentence');
  return message;
}

t.test('a platform that is not covered', async (t) => {
  carry({ 'linux-x64': ['loaderx.glibc.node'] });
  t.match(fails(['sunos', 's390x']), /: there is no file for sunos-s390x in .*prebuilds;/);
  t.match(fails(['linux', 'riscv64', 'musl']), /no file for linux-riscv64 \(musl\) in/);
});

t.test('a covered one whose file is not there', async (t) => {
  carry({ 'linux-x64': ['loaderx.glibc.node'], 'linux-arm64': ['loaderx.musl.node'] });
  const missing = /: the file for (.*) is missing from .*prebuilds, so install loaderx again;/;
  t.equal(missing.exec(fails(['win32', 'arm64']))?.[1], 'win32-arm64');
  // node-gyp-build finds the other library's file for these: it must not be loaded.
  t.equal(missing.exec(fails(['linux', 'x64', 'musl']))?.[1], 'linux-x64 (musl)');
  t.equal(missing.exec(fails(['linux', 'arm64', 'glibc']))?.[1], 'linux-arm64 (glibc 2.36)');
});

t.test("npm's settings for another machine", async (t) => {
  carry({ 'linux-x64': ['loaderx.glibc.node'], 'linux-arm64': ['loaderx.glibc.node'] });
  const asked =
    /npm_config_arch ask for linux-arm64, and this is linux-x64 \(glibc 2.36\), so unset/;
  t.match(fails(['linux', 'x64', 'glibc'], { npm_config_arch: 'arm64' }), asked);
  carry({});
  t.match(fails(['linux', 'x64', 'glibc'], { npm_config_arch: 'arm64' }), asked);
});

t.test('a file that is no addon', async (t) => {
  const library = process.platform === 'linux' ? '.glibc' : '';
  const folder = `${process.platform}-${process.arch}`;
  carry({ [folder]: [`loaderx${library}.node`, 'loaderx.musl.node'] });
  const said = fails([]);
  t.match(said, new RegExp(`loaderx[.a-z]* is there and could not be loaded on ${folder}`));
});

t.test('LOADERX_ADDON', async (t) => {
  const nowhere = path.join(app, 'nowhere.node');
  t.match(
    fails([], { LOADERX_ADDON: nowhere }),
    `LOADERX_ADDON names ${nowhere}, where there is no`,
  );
});
