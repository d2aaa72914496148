// @ts-check
// Everything between a commit and `npm publish`: addons for every platform, examined and tried; the
// tarball, judged and installed; a second build that must be identical; a bill of materials, hashes
// and a report. Nothing is published. The last line is `N passed, N failed`.
//
//     npm run release               of a clean commit that is tagged v<version>, into build/release/
//     npm run release -- --dry-run  of what is there, into build/release-dry-run/
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from './build.mjs';
import { Checks } from './checks.mjs';
import { ask } from './child.mjs';
import { importMsMax, judgeInstalled, measureImport } from './installed.mjs';
import { judgePackage, judgeTypes, releaseTools } from './judges.mjs';
import { collectLicences } from './licences.mjs';
import { askPrebuildify } from './prebuildify.mjs';
import { buildPrebuilds, examine, tryAll } from './prebuilds.mjs';
import { reportOf } from './release-report.mjs';
import { writeSbom } from './sbom.mjs';
import { entry, explain, Failure, inRoot, shown } from './script.mjs';
import { buildAgain } from './second-build.mjs';
import { closingLine, exitCode } from './tally.mjs';
import { examineTarball, pack, sha256Of } from './tarball.mjs';
import { readTargets } from './targets.mjs';

/** @param {boolean} isDry @param {Checks} checks */
async function release(isDry, checks) {
  const { version } = JSON.parse(fs.readFileSync(inRoot('package.json'), 'utf8'));
  const commit = judgeCommit(version, isDry, checks);
  const folder = inRoot('build', isDry ? 'release-dry-run' : 'release');
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-release-'));
  try {
    const { zig } = await bootstrap();
    await build({ zig });
    const targets = await readTargets(zig);
    await buildPrebuilds(zig, targets, checks);
    for (const target of targets) examine(target, zig, checks);
    collectLicences(zig);
    const tarball = pack(inRoot(), folder);
    examineTarball(tarball, targets, scratch, checks);
    await buildAgain({ targets, tarball, zig, isFromNothing: !isDry, checks });
    await askPrebuildify(targets, scratch, checks);
    const tried = await tryAll(targets, checks, scratch);

    const tools = await releaseTools();
    judgePackage(tarball, tools, checks);
    const app = await judgeInstalled({ tarball, targets, tools, scratch, checks });
    judgeTypes(app, checks);
    const importing = measureImport(app);
    checks.check(
      'budget',
      `import in at most ${importMsMax} ms (best ${importing.bestMs.toFixed(1)}, median ${importing.medianMs.toFixed(1)} of ${importing.runs} processes)`,
      importing.bestMs <= importMsMax ? '' : 'it takes longer',
    );

    const sbom = tarball.replace(/\.tgz$/, '.cdx.json');
    const bill = await writeSbom({ file: sbom, version, tarball, targets, zig, tools });
    checks.check('sbom', `CycloneDX, ${bill.components} components, valid`, bill.reason);
    const listed = [tarball, sbom, ...targets.map(({ prebuilt }) => inRoot(prebuilt))];
    const sums = listed.map((file) => `${sha256Of(file)}  ${nameIn(file, folder)}\n`);
    fs.writeFileSync(path.join(folder, 'SHA256SUMS'), sums.join(''));

    const report = reportOf({ version, commit, targets, tried, tarball, checks });
    fs.writeFileSync(path.join(folder, 'report.md'), report);
    process.stdout.write(`\n${report}\n${shown(folder)}: ${fs.readdirSync(folder).join(', ')}\n`);
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

/**
 * As the list of hashes names a file: beside the list, or in the unpacked tarball beside it.
 *
 * @param {string} file
 * @param {string} folder
 */
function nameIn(file, folder) {
  if (path.dirname(file) === folder) return path.basename(file);
  return `package/${path.relative(inRoot(), file).replaceAll(path.sep, '/')}`;
}

/**
 * A release is of a commit that anybody can get: nothing changed, tagged, and in the changelog.
 *
 * @param {string} version
 * @param {boolean} isDry
 * @param {Checks} checks
 * @returns {string} the commit, as it is shown
 */
function judgeCommit(version, isDry, checks) {
  const head = ask('git', ['rev-parse', 'HEAD']).stdout;
  const changes = ask('git', ['status', '--porcelain']).stdout;
  const changelog = fs.readFileSync(inRoot('CHANGELOG.md'), 'utf8');
  const heading = changelog.split('\n').find((line) => line.startsWith(`## ${version}`));
  checks.check('commit', `CHANGELOG.md has ${version}`, heading === undefined ? 'no heading' : '');
  if (!isDry) {
    checks.check('commit', 'nothing is changed', changes);
    const tags = ask('git', ['tag', '--points-at', 'HEAD']).stdout.split('\n');
    checks.check('commit', `tagged v${version}`, tags.includes(`v${version}`) ? '' : 'it is not');
    const isOpen = heading?.includes('not released') ?? true;
    checks.check('commit', 'CHANGELOG.md has its date', isOpen ? `${heading}` : '');
  }
  return changes === '' ? head : `${head}, with changes`;
}

await entry(import.meta, async (args) => {
  const checks = new Checks();
  try {
    const strange = args.filter((arg) => arg !== '--dry-run');
    if (strange.length > 0) {
      throw new Failure(`npm run release does not know ${strange.join(' ')}`);
    }
    await release(args.includes('--dry-run'), checks);
  } catch (error) {
    checks.check('release', 'to its end', explain(error));
  }
  for (const { area, what, outcome } of checks.rows) {
    if (outcome === 'failed') process.stdout.write(`failed: ${area}: ${what}\n`);
  }
  process.stdout.write(`\n${closingLine(checks.tally)}\n`);
  return exitCode(checks.tally);
});
