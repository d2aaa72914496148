// @ts-check
// What was checked and how it went: one group per row of the table at the end.

/** @typedef {import('../../scripts/tally.mjs').Tally} Tally */

const failuresShownMax = 5;

/** One row: a claim, and the cases it was tried on. */
export class Group {
  passed = 0;
  failed = 0;
  skipped = 0;
  elapsedMs = 0;
  /** What is worth telling beside the counts. @type {string} */
  note = '';

  /** @param {string} claim */
  constructor(claim) {
    this.claim = claim;
  }

  /**
   * Runs one case. It passes unless `body` throws; a failure is printed and does not end the run.
   *
   * @param {string} name says how to get it again
   * @param {() => Promise<void> | void} body
   * @returns {Promise<boolean>} whether it passed
   */
  async check(name, body) {
    const startMs = performance.now();
    try {
      await body();
      this.passed += 1;
      return true;
    } catch (error) {
      this.failed += 1;
      if (this.failed <= failuresShownMax) {
        // Of what Python raised the message has Python's trace; ours would say nothing more.
        const isTold = error instanceof Error && error.name === 'PythonError';
        const text = error instanceof Error && !isTold ? error.stack : String(error);
        process.stdout.write(`\nFAILED ${this.claim}: ${name}\n${text}\n`);
      }
      return false;
    } finally {
      this.elapsedMs += performance.now() - startMs;
    }
  }

  /** @param {string} reason */
  skip(reason) {
    this.skipped += 1;
    this.note = reason;
  }

  /** @returns {Tally} */
  get tally() {
    return { passed: this.passed, failed: this.failed, skipped: this.skipped };
  }
}

/** @param {readonly Group[]} groups @returns {string} */
export function table(groups) {
  const width = Math.max(...groups.map((group) => group.claim.length));
  const rows = groups.map((group) => {
    const counts = [group.passed, group.failed, group.skipped].map((n) => String(n).padStart(7));
    const seconds = (group.elapsedMs / 1000).toFixed(1).padStart(7);
    return `${group.claim.padEnd(width)} ${counts.join(' ')} ${seconds} s  ${group.note}`.trimEnd();
  });
  const head = `${'group'.padEnd(width)}  passed  failed skipped    time`;
  return [head, ...rows].join('\n');
}
