// @ts-check
// The addon for this machine: build/Release/loaderx.node, where node-gyp-build finds it before any
// prebuilt one.
import { run } from './child.mjs';
import { Failure } from './script.mjs';

/** What takes longer than this is a build, and says so. */
const quietMs = 3000;
const wordMs = 60_000;

/** Builds what changed: Zig's own cache knows, and says so in a twentieth of a second. @param {string} zig */
export async function buildAddon(zig) {
  const say = (/** @type {string} */ text) => process.stdout.write(`${text}\n`);
  const startMs = Date.now();
  let words = setTimeout(() => {
    say('building the addon (with zstd and libc++ the first time: minutes of two cores)');
    words = setInterval(
      () =>
        say(`still building the addon, ${Math.round((Date.now() - startMs) / 60_000)} min so far`),
      wordMs,
    );
  }, quietMs);
  try {
    if ((await run(zig, ['build', '--color', 'off'])) !== 0) {
      throw new Failure('the addon does not build', 'The compiler said why, above.');
    }
  } finally {
    clearTimeout(words);
  }
}
