// @ts-check
// Everything that a checkout needs to be used, from nothing: the toolchain, the npm packages, the
// addon, dist/. What is there and current is left alone.
//
//     npm run build
import { buildAddon } from './addon.mjs';
import { ensureDependencies } from './dependencies.mjs';
import { buildDist } from './dist.mjs';
import { entry } from './script.mjs';
import { ensureToolchain } from './toolchain.mjs';

/** What the build stands on. @returns {Promise<{zig: string}>} */
export async function bootstrap() {
  const { zig } = await ensureToolchain();
  await ensureDependencies();
  return { zig };
}

/** @param {{zig: string}} tools */
export async function build({ zig }) {
  await buildAddon(zig);
  await buildDist();
}

await entry(import.meta, async () => {
  await build(await bootstrap());
  process.stdout.write('build/Release/loaderx.node and dist/ are up to date\n');
  return 0;
});
