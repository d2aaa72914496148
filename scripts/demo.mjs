// @ts-check
// Builds what is missing and runs the demo. Arguments go to it.
//
//     npm run demo
import { spawnSync } from 'node:child_process';
import { bootstrap, build } from './build.mjs';
import { entry, inRoot, root } from './script.mjs';

await entry(import.meta, async (args) => {
  await build(await bootstrap());
  // With the terminal as it is: the demo draws.
  const demo = spawnSync(process.execPath, [inRoot('examples', 'demo.mjs'), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
  return demo.status ?? 1;
});
