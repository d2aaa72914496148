// @ts-check
// The report of a release, as Markdown: which platform's addon was run where and which only inspected,
// and every check.
import fs from 'node:fs';
import path from 'node:path';
import { inRoot } from './script.mjs';
import { closingLine } from './tally.mjs';
import { sha256Of } from './tarball.mjs';
import { pins } from './toolchain.mjs';

/**
 * @param {object} release
 * @param {string} release.version
 * @param {string} release.commit
 * @param {readonly import('./targets.mjs').Target[]} release.targets
 * @param {import('./prebuilds.mjs').Tried} release.tried
 * @param {string} release.tarball
 * @param {import('./checks.mjs').Checks} release.checks
 * @returns {string}
 */
export function reportOf({ version, commit, targets, tried, tarball, checks }) {
  const lines = [
    `# Release report: loaderx ${version}`,
    '',
    `Commit ${commit}. Built on ${process.platform}-${process.arch} with Zig ${pins.zig.version} and zstd ${pins.zstd.version}.`,
    `${closingLine(checks.tally)}.`,
    '',
    `\`${path.basename(tarball)}\`: ${fs.statSync(tarball).size} bytes, SHA-256 \`${sha256Of(tarball)}\``,
    '',
    '## Platforms',
    '',
    '| platform | oldest system | least CPU | bytes | run | SHA-256 |',
    '|---|---|---|---|---|---|',
  ];
  for (const target of targets) {
    const hosts = tried.get(target.name) ?? [];
    const run = hosts.length > 0 ? hosts.join(', ') : 'only inspected';
    const { size } = fs.statSync(inRoot(target.prebuilt));
    const least = target.least || (target.libc === 'musl' ? 'musl' : "the Node's");
    const hash = sha256Of(inRoot(target.prebuilt)).slice(0, 16);
    lines.push(`| ${target.name} | ${least} | ${target.cpu} | ${size} | ${run} | \`${hash}…\` |`);
  }
  const areas = [...new Set(checks.rows.map(({ area }) => area))];
  for (const area of areas) {
    lines.push('', `## ${area}`, '');
    for (const { what, outcome, reason } of checks.rows.filter((row) => row.area === area)) {
      lines.push(
        outcome === 'passed' ? `- ${what}` : `- **${outcome}**: ${what}: ${reason.trim()}`,
      );
    }
  }
  return `${lines.join('\n')}\n`;
}
