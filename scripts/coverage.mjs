// @ts-check
// What of ts/ the TypeScript tests run, line by line: a table, whose first row is the whole; or what of
// the Zig core the Zig tests run (zig-coverage.mjs).
//
//     npm run coverage -- [test/NAME.test.ts]...
//     npm run coverage -- --zig
//
// Counted by c8. Processes that tests start use dist/ and are not counted, so the figures are a lower
// bound. The exit code is that of the tests.
import { bootstrap, build } from './build.mjs';
import { run } from './child.mjs';
import { entry, inRoot } from './script.mjs';
import { zigCoverage } from './zig-coverage.mjs';

await entry(import.meta, async (files) => {
  const tools = await bootstrap();
  if (files.includes('--zig')) return zigCoverage(tools.zig);
  await build(tools);
  const counted = ['--all', '--include', 'ts/**/*.ts', '--reporter', 'text', '--clean'];
  return await run(process.execPath, [
    ...[inRoot('node_modules', 'c8', 'bin', 'c8.js'), ...counted],
    ...['--temp-directory', inRoot('build', 'coverage')],
    ...[process.execPath, inRoot('node_modules', 'tap', 'dist', 'esm', 'run.mjs')],
    ...['--reporter=terse', ...files],
  ]);
});
