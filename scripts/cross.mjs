// @ts-check
// Builds the addon for every platform and examines each file as its loader would; where a host for
// it is at hand, the addon also reads and writes real containers there. The last line is
// `N passed, N failed`.
//
//     npm run cross
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap } from './build.mjs';
import { Checks } from './checks.mjs';
import { collectLicences } from './licences.mjs';
import { buildPrebuilds, examine, tryAll } from './prebuilds.mjs';
import { entry, explain, Failure } from './script.mjs';
import { closingLine, exitCode } from './tally.mjs';
import { readTargets } from './targets.mjs';

/** @param {Checks} checks */
async function cross(checks) {
  const { zig } = await bootstrap();
  const targets = await readTargets(zig);
  await buildPrebuilds(zig, targets, checks);
  for (const target of targets) examine(target, zig, checks);
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-cross-'));
  try {
    await tryAll(targets, checks, scratch);
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
  collectLicences(zig);
  checks.check('licences', 'of all that is linked in', '');
}

await entry(import.meta, async (args) => {
  const checks = new Checks();
  try {
    if (args.length > 0) {
      throw new Failure(`npm run cross takes no arguments, not ${args.join(' ')}`);
    }
    await cross(checks);
  } catch (error) {
    checks.check('cross', 'to its end', explain(error));
  }
  process.stdout.write(`\n${closingLine(checks.tally)}\n`);
  return exitCode(checks.tally);
});
