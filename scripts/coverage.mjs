// @ts-check
// What of ts/ the TypeScript tests run, line by line: a table, whose first row is the whole.
//
//     npm run coverage -- [test/NAME.test.ts]...
//
// Counted by c8. Processes that tests start use dist/ and are not counted, so the figures are a lower
// bound. The exit code is that of the tests.
import { bootstrap, build } from './build.mjs';
import { run } from './child.mjs';
import { entry, inRoot } from './script.mjs';

await entry(import.meta, async (files) => {
  await build(await bootstrap());
  const counted = ['--all', '--include', 'ts/**/*.ts', '--reporter', 'text', '--clean'];
  return await run(process.execPath, [
    ...[inRoot('node_modules', 'c8', 'bin', 'c8.js'), ...counted],
    ...['--temp-directory', inRoot('build', 'coverage')],
    ...[process.execPath, inRoot('node_modules', 'tap', 'dist', 'esm', 'run.mjs')],
    ...['--reporter=terse', ...files],
  ]);
});
