// @ts-check
// What of ts/ the TypeScript tests run, line by line: a table, whose first row is the whole; or what of
// the Zig core the Zig tests run (zig-coverage.mjs).
//
//     npm run coverage -- [test/NAME.test.ts]...
//     npm run coverage -- --zig
//
// Counted by c8, but for files of types alone, of which nothing can be run. Processes that tests start use
// dist/ and are not counted, so the figures are a lower bound. The exit code is that of the tests.
import fs from 'node:fs';
import { bootstrap, build } from './build.mjs';
import { run } from './child.mjs';
import { entry, inRoot, shown } from './script.mjs';
import { filesBelow } from './up-to-date.mjs';
import { zigCoverage } from './zig-coverage.mjs';

/** Files that are nothing once their types are gone. */
async function filesOfTypes() {
  const { transform } = await import('esbuild');
  const files = filesBelow(inRoot('ts'), (file) => file.endsWith('.ts'));
  const codes = await Promise.all(
    files.map((file) => transform(fs.readFileSync(file, 'utf8'), { loader: 'ts' })),
  );
  return files.filter((_, index) => codes[index]?.code.trim() === '').map((file) => shown(file));
}

await entry(import.meta, async (files) => {
  const tools = await bootstrap();
  if (files.includes('--zig')) return zigCoverage(tools.zig);
  await build(tools);
  const counted = ['--all', '--include', 'ts/**/*.ts', '--reporter', 'text', '--clean'];
  const excluded = (await filesOfTypes()).flatMap((file) => ['--exclude', file]);
  return await run(process.execPath, [
    ...[inRoot('node_modules', 'c8', 'bin', 'c8.js'), ...counted, ...excluded],
    ...['--temp-directory', inRoot('build', 'coverage')],
    ...[process.execPath, inRoot('node_modules', 'tap', 'dist', 'esm', 'run.mjs')],
    ...['--reporter=terse', ...files],
  ]);
});
