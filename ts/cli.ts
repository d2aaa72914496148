#!/usr/bin/env node
/** `npx loaderx`: the functions of this package for a terminal. All of it is in cli/. */
import { main } from './cli/main.js';

// Whoever reads may have had enough: `loaderx info … | head -1`.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
  process.exit(0);
});

try {
  process.exitCode = await main(process.argv.slice(2), process);
} catch (error) {
  // 1 would say that something is wrong with a container.
  process.stderr.write(`loaderx: a defect of this package, please report it:\n`);
  process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  process.exitCode = 3;
}
