// @ts-check
// The API reference of all entry points, in build/api/index.html. Whatever is exported and says nothing of
// itself, and every link that leads nowhere, fails it.
//
//     npm run docs
//
// The last line is `N passed, N failed`: one check.
import fs from 'node:fs';
import { run } from './child.mjs';
import { ensureDependencies } from './dependencies.mjs';
import { inRoot } from './script.mjs';
import { countingEntry, single } from './tally.mjs';

/** The sources of what package.json exports. */
function entryPoints() {
  /** @type {{exports: Record<string, string | {default: string}>}} */
  const { exports } = JSON.parse(fs.readFileSync(inRoot('package.json'), 'utf8'));
  return Object.values(exports).flatMap((target) =>
    typeof target === 'string'
      ? []
      : [inRoot(target.default.replace(/^\.\/dist\/(.*)\.js$/, 'ts/$1.ts'))],
  );
}

await countingEntry(import.meta, async () => {
  await ensureDependencies();
  const typedoc = inRoot('node_modules', 'typedoc', 'bin', 'typedoc');
  const args = ['--options', inRoot('typedoc.json'), ...entryPoints()];
  return single((await run(process.execPath, [typedoc, ...args])) === 0);
});
