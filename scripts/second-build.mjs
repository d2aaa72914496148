// @ts-check
// The whole build once more: in a copy of the same sources at another path, with the compiler's caches
// of this checkout out of reach. What comes out must be the same, byte for byte.
import fs from 'node:fs';
import path from 'node:path';
import { ask, run } from './child.mjs';
import { depsFolder, Failure, inRoot } from './script.mjs';
import { pack, sha256Of } from './tarball.mjs';

/** @typedef {import('./checks.mjs').Checks} Checks */
/** @typedef {import('./targets.mjs').Target} Target */

/**
 * @param {object} release
 * @param {readonly Target[]} release.targets
 * @param {string} release.tarball of the first build
 * @param {string} release.zig
 * @param {boolean} release.isFromNothing whether the compiler's own libraries (libc++, start code) are
 *   built again too, which takes as long again
 * @param {Checks} release.checks
 */
export async function buildAgain({ targets, tarball, zig, isFromNothing, checks }) {
  const folder = inRoot('build', 'again');
  fs.rmSync(folder, { recursive: true, force: true });
  const listed = ask('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard']);
  if (!listed.ok) throw new Failure('git does not list the sources', listed.output);
  for (const name of listed.stdout.split('\0').filter((name) => name !== '')) {
    if (!fs.existsSync(inRoot(name))) continue;
    const copy = path.join(folder, name);
    fs.mkdirSync(path.dirname(copy), { recursive: true });
    fs.copyFileSync(inRoot(name), copy);
  }
  // What was fetched by hash is not fetched again.
  fs.symlinkSync(depsFolder, path.join(folder, '.deps'), 'dir');
  fs.cpSync(inRoot('node_modules'), path.join(folder, 'node_modules'), {
    recursive: true,
    verbatimSymlinks: true,
  });

  const cache = path.join(folder, 'cache');
  const env = {
    ZIG: zig,
    ZIG_LOCAL_CACHE_DIR: path.join(cache, 'local'),
    ...(isFromNothing ? { ZIG_GLOBAL_CACHE_DIR: path.join(cache, 'global') } : {}),
  };
  process.stdout.write('building everything again, in another folder: minutes\n');
  const addons = await run(zig, ['build', 'prebuilds', '--color', 'off'], { cwd: folder, env });
  checks.check('second build', 'zig build prebuilds', addons === 0 ? '' : 'see above');
  const different = targets.filter(({ prebuilt }) => {
    const again = path.join(folder, prebuilt);
    return !fs.existsSync(again) || sha256Of(again) !== sha256Of(inRoot(prebuilt));
  });
  checks.check(
    'second build',
    `the addons are identical${isFromNothing ? ', libc++ built again too' : ''}`,
    different.map(({ name }) => name).join(', '),
  );

  const script = [
    "const { buildDist } = await import('./scripts/dist.mjs');",
    "const { collectLicences } = await import('./scripts/licences.mjs');",
    'await buildDist(); collectLicences(process.env.ZIG);',
  ].join('\n');
  const dist = await run(process.execPath, ['--input-type=module', '-e', script], {
    cwd: folder,
    env,
  });
  checks.check('second build', 'dist/ and licences/', dist === 0 ? '' : 'see above');
  const packed = pack(folder, cache);
  const isSame = sha256Of(packed) === sha256Of(tarball);
  checks.check('second build', 'the tarball is identical', isSame ? '' : packed);
  if (isSame) fs.rmSync(folder, { recursive: true, force: true });
}
