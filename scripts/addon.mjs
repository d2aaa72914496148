// @ts-check
// The addon for this machine: build/Release/loaderx.node, where node-gyp-build finds it before any
// prebuilt one.
import fs from 'node:fs';
import { run } from './child.mjs';
import { Failure, inRoot } from './script.mjs';

/** Builds what changed: Zig's own cache knows, and says so in a twentieth of a second. @param {string} zig */
export async function buildAddon(zig) {
  if (!fs.existsSync(inRoot('build', 'Release', 'loaderx.node'))) {
    process.stdout.write('building the addon (the first time, with zstd and libc++: minutes)\n');
  }
  if ((await run(zig, ['build', '--color', 'off'])) !== 0) {
    throw new Failure('the addon does not build', 'The compiler said why, above.');
  }
}
