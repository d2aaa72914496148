// @ts-check
// Formats everything that `npm run lint` checks, and applies Biome's safe fixes.
//
//     npm run format
import { bootstrap } from './build.mjs';
import { run } from './child.mjs';
import { entry, inRoot } from './script.mjs';

await entry(import.meta, async () => {
  const { zig } = await bootstrap();
  const biome = inRoot('node_modules', '@biomejs', 'biome', 'bin', 'biome');
  const codes = [
    await run(zig, ['fmt', 'zig-src', 'build.zig', 'build.zig.zon']),
    await run(process.execPath, [biome, 'check', '--write', '--colors=off']),
  ];
  return codes.every((code) => code === 0) ? 0 : 1;
});
