// @ts-check
// Counting tests: what a tally is, how it is printed, and how the counts of the Zig and tap runners
// are read. A runner that ends without a count it can be held to has failed.
import { entry, explain } from './script.mjs';

/**
 * @typedef {object} Tally
 * @property {number} passed
 * @property {number} failed
 * @property {number} skipped
 */

/** @param {readonly Tally[]} tallies @returns {Tally} */
export function sum(tallies) {
  const total = { passed: 0, failed: 0, skipped: 0 };
  for (const tally of tallies) {
    total.passed += tally.passed;
    total.failed += tally.failed;
    total.skipped += tally.skipped;
  }
  return total;
}

/** The closing line. @param {Tally} tally */
export function closingLine({ passed, failed, skipped }) {
  return `${passed} passed, ${failed} failed${skipped > 0 ? `, ${skipped} skipped` : ''}`;
}

/** 0 if something passed and nothing failed. @param {Tally} tally */
export function exitCode({ passed, failed }) {
  return passed > 0 && failed === 0 ? 0 : 1;
}

/**
 * `entry` of a script that counts: its last line is the closing line, which the exit code follows. What
 * stops it counts as one failed.
 *
 * @param {ImportMeta} meta `import.meta` of the script
 * @param {(args: string[]) => Promise<Tally>} count
 */
export function countingEntry(meta, count) {
  return entry(meta, async (args) => {
    let tally;
    try {
      tally = await count(args);
    } catch (error) {
      process.stdout.write(`\n${explain(error)}\n\n`);
      tally = single(false);
    }
    process.stdout.write(`${closingLine(tally)}\n`);
    return exitCode(tally);
  });
}

/**
 * A check that passes or fails as a whole.
 *
 * @param {boolean} ok
 * @returns {Tally}
 */
export function single(ok) {
  return ok ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 };
}

/**
 * Holds a runner's count against its exit code: a failure that the count does not show is one more
 * failed, and so is a run of no test at all.
 *
 * @param {Tally} tally
 * @param {number} code
 * @returns {Tally}
 */
export function heldTo(tally, code) {
  const ranNothing = tally.passed === 0 && tally.failed === 0;
  const hidden = tally.failed === 0 && (code !== 0 || ranNothing);
  return hidden ? { ...tally, failed: 1 } : tally;
}

/**
 * Reads the summary tree of `zig build test --summary all`: one line per test program. Programs
 * that did not compile or broke down have no counts there, which is why their names are given.
 *
 * @param {readonly string[]} lines
 * @param {readonly string[]} programs the test programs' names; each must have run a test
 * @returns {Tally}
 */
export function readZigSummary(lines, programs) {
  const tree = lines.slice(lines.findLastIndex((line) => line.startsWith('Build Summary: ')) + 1);
  return sum(
    programs.map((program) => {
      const line = tree.find((candidate) => candidate.includes(`run test ${program} `)) ?? '';
      const count = (/** @type {string} */ what) =>
        Number(new RegExp(`(\\d+) ${what}\\b`).exec(line)?.[1] ?? 0);
      // Leaks and error logs fail a program whose tests all passed: heldTo sees the exit code.
      const failed = count('fail') + count('crash') + count('timeout');
      const tally = { passed: count('pass'), failed, skipped: count('skip') };
      return heldTo(tally, 0);
    }),
  );
}

/**
 * Reads the end of tap's output. `# SKIP no tests found` is how tap reports a file without a test:
 * here that is a failure, since such a file checks nothing.
 *
 * @param {readonly string[]} lines
 * @returns {Tally}
 */
export function readTapTotals(lines) {
  const totals = lines.findLast((line) => /^# \{ total: \d+/.test(line)) ?? '';
  const count = (/** @type {string} */ what) =>
    Number(new RegExp(`\\b${what}: (\\d+)`).exec(totals)?.[1] ?? 0);
  const empty = lines.filter((line) => /^ok \d+ .*# SKIP no tests found/.test(line)).length;
  return {
    passed: count('pass'),
    failed: count('fail') + empty,
    skipped: count('skip') + count('todo') - empty,
  };
}

/**
 * What failed, for the end of a long output: each failed assertion with the file and the subtests
 * that it stands in, and the first lines of what the runner says of it. A subtest that failed without
 * a failed assertion inside (a timeout, a plan not kept) stands for itself.
 *
 * @param {readonly string[]} lines what the tap runner printed
 * @returns {string[]} lines that begin with `FAILED  `, or with `        | ` for what is said of it
 */
export function readTapFailures(lines) {
  /** @type {string[]} */
  const failures = [];
  /** The subtests that are open, outermost first. @type {{name: string, blamed: boolean}[]} */
  const open = [];
  lines.forEach((line, index) => {
    const depth = (/^ */.exec(line)?.[0].length ?? 0) / 4;
    const begun = /^ *# Subtest: (.*)$/.exec(line)?.[1];
    if (begun !== undefined) {
      open.length = Math.min(open.length, depth);
      open.push({ name: begun, blamed: false });
      return;
    }
    const [, not, said = ''] = /^ *(not )?ok \d+(?: - (.*))?$/.exec(line) ?? [];
    if (said === '' && not === undefined) return;
    const name = said.replace(/ # time=.*$/, '');
    const ended = open[depth];
    open.length = Math.min(open.length, depth);
    if (not === undefined || / # (?:TODO|SKIP)\b/i.test(said)) return;
    if (ended?.blamed) return;
    const path = [...open.map((subtest) => subtest.name), name].join(' > ');
    for (const subtest of open) subtest.blamed = true;
    failures.push(`FAILED  ${path}`, ...diagnosis(lines, index + 1).map((it) => `        | ${it}`));
  });
  return failures;
}

const diagnosisLinesMax = 24;

/** The block between `---` and `...` that begins at `start`, without its indent. @param {readonly string[]} lines @param {number} start @returns {string[]} */
function diagnosis(lines, start) {
  const indent = /^( *)---$/.exec(lines[start] ?? '')?.[1];
  if (indent === undefined) return [];
  const length = lines.slice(start + 1).indexOf(`${indent}...`);
  const block = lines.slice(start + 1, length < 0 ? undefined : start + 1 + length);
  return block.slice(0, diagnosisLinesMax).map((line) => line.slice(indent.length));
}
