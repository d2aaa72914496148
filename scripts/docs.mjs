// @ts-check
// The API reference of all entry points, in build/api/index.html. Whatever is exported and says nothing of
// itself, and every link that leads nowhere, fails it.
//
//     npm run docs
//
// The last line is `N passed, N failed`: one check.
import { run } from './child.mjs';
import { ensureDependencies } from './dependencies.mjs';
import { inRoot } from './script.mjs';
import { countingEntry, single } from './tally.mjs';

await countingEntry(import.meta, async () => {
  await ensureDependencies();
  const typedoc = inRoot('node_modules', 'typedoc', 'bin', 'typedoc');
  return single(
    (await run(process.execPath, [typedoc, '--options', inRoot('typedoc.json')])) === 0,
  );
});
