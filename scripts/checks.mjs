// @ts-check
// Checks that are said as they are made and kept for a report. A check has passed if it has no reason
// to fail; what cannot be checked here is skipped with the reason, and never counted as passed.

/**
 * @typedef {object} Row
 * @property {string} area what was looked at, as `win32-x64` or `tarball`
 * @property {string} what
 * @property {'passed' | 'failed' | 'skipped'} outcome
 * @property {string} reason empty if it passed
 */

export class Checks {
  /** @type {Row[]} */
  rows = [];

  /** Passes if `reason` is empty. @param {string} area @param {string} what @param {string} reason */
  check(area, what, reason) {
    const outcome = reason === '' ? 'passed' : 'failed';
    this.rows.push({ area, what, outcome, reason });
    process.stdout.write(
      reason === '' ? `ok      ${area}: ${what}\n` : `FAILED  ${area}: ${what}: ${reason}\n`,
    );
  }

  /** @param {string} area @param {string} what @param {string} reason */
  skip(area, what, reason) {
    this.rows.push({ area, what, outcome: 'skipped', reason });
    process.stdout.write(`skipped ${area}: ${what}: ${reason}\n`);
  }

  /** @returns {import('./tally.mjs').Tally} */
  get tally() {
    const count = (/** @type {Row['outcome']} */ outcome) =>
      this.rows.filter((row) => row.outcome === outcome).length;
    return { passed: count('passed'), failed: count('failed'), skipped: count('skipped') };
  }
}
