// @ts-check
// What of ts/ the TypeScript tests run, line by line: a table, whose last row but one is the whole.
//
//     npm run coverage -- [test/NAME.test.ts]...
//
// tap counts with c8. Processes that tests start use dist/ and are not counted, so the figures are
// a lower bound. The exit code is that of the tests.
import { bootstrap, build } from './build.mjs';
import { run } from './child.mjs';
import { entry, inRoot } from './script.mjs';

await entry(import.meta, async (files) => {
  await build(await bootstrap());
  return await run(process.execPath, [
    inRoot('node_modules', 'tap', 'dist', 'esm', 'run.mjs'),
    ...['--no-disable-coverage', '--allow-incomplete-coverage', '--show-full-coverage'],
    ...['--coverage-report=text', '--reporter=terse'],
    ...files,
  ]);
});
