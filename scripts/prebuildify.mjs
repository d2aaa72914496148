// @ts-check
// prebuildify's own answer to where each addon belongs: it "builds" every target, by a node-gyp that
// hands over what Zig built, and the tree it makes must be ours, name for name and byte for byte.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { promisify } from 'node:util';
import { inRoot } from './script.mjs';
import { sha256Of } from './tarball.mjs';
import { filesBelow } from './up-to-date.mjs';

/** @typedef {import('./checks.mjs').Checks} Checks */
/** @typedef {import('./targets.mjs').Target} Target */

/**
 * @param {readonly Target[]} targets
 * @param {string} scratch a private folder
 * @param {Checks} checks
 */
export async function askPrebuildify(targets, scratch, checks) {
  const require = createRequire(import.meta.url);
  const prebuildify = promisify(require('prebuildify'));
  const cwd = path.join(scratch, 'prebuildify');
  fs.mkdirSync(cwd);
  fs.copyFileSync(inRoot('package.json'), path.join(cwd, 'package.json'));
  // It is called as `node-gyp rebuild …` in `cwd` and has to leave build/Release/*.node there.
  const nodeGyp = path.join(cwd, 'node-gyp');
  fs.writeFileSync(
    nodeGyp,
    `#!/bin/sh
[ "$1" = rebuild ] || exit 1
mkdir -p build/Release && cp "$LOADERX_BUILT" build/Release/loaderx.node
`,
    { mode: 0o755 },
  );
  for (const target of targets) {
    process.env.LOADERX_BUILT = inRoot(target.prebuilt);
    await prebuildify({
      cwd,
      nodeGyp,
      napi: true,
      targets: ['20.19.0'],
      platform: target.platform,
      arch: target.arch,
      libc: target.libc,
      tagLibc: target.libc !== '',
      cache: path.join(cwd, 'cache'),
      quiet: true,
    });
  }
  delete process.env.LOADERX_BUILT;
  const tree = (/** @type {string} */ root) =>
    filesBelow(path.join(root, 'prebuilds'))
      .map((file) => `${path.relative(root, file)} ${sha256Of(file)}`)
      .join('\n');
  const [theirs, ours] = [tree(cwd), tree(inRoot())];
  checks.check(
    'prebuilds',
    'prebuildify, driving every target, makes the same tree',
    theirs === ours ? '' : `it makes\n${theirs}`,
  );
}
