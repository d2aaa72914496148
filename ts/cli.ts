#!/usr/bin/env node
/** `npx loaderx`: the functions of this package for a terminal. All of it is in cli/. */
import { main } from './cli/main.js';
import { SafeOutput } from './cli/output.js';

// 1 would say that something is wrong with a container.
const couldNotBeDone = 3;

const stdout = new SafeOutput(process.stdout);
const stderr = new SafeOutput(process.stderr);
let code: number;
try {
  code = await main(process.argv.slice(2), {
    stdout,
    stderr,
    env: process.env,
    on: (event, listener) => process.on(event, listener),
    off: (event, listener) => process.off(event, listener),
  });
} catch (error) {
  stderr.write('loaderx: a defect of this package, please report it:\n');
  stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
  code = couldNotBeDone;
}
await stdout.settled();
if (stdout.failure !== undefined) {
  stderr.write(`loaderx: stdout: writing the answer failed (${stdout.failure})\n`);
  code = couldNotBeDone;
}
process.exitCode = code;
