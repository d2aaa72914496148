// .ci/run's verdict, with an npm on PATH that says what the case wants it to say.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { inRoot } from '../../scripts/script.mjs';

/** What `npm test` and `npm run cross` print, and their exit codes. Of the other three parts one passes each. */
interface Case {
  name: string;
  test: [output: string, code: number];
  cross: [output: string, code: number];
  last: string;
  code: number;
  /** What is said once more before the last line. */
  again?: string[];
}

const cases: Case[] = [
  {
    name: 'all is well',
    test: ['ok\n7 passed, 0 failed\n', 0],
    cross: ['12 passed, 0 failed, 3 skipped\n', 0],
    last: '22 passed, 0 failed',
    code: 0,
  },
  {
    name: 'a failed test',
    test: ['FAILED  a > b\n        | expected: 1\nmore\n7 passed, 2 failed\n', 1],
    cross: ['FAILED  win32-x64: runs: no\nok      else\n12 passed, 1 failed\n', 1],
    last: '22 passed, 3 failed',
    code: 1,
    again: ['FAILED  a > b', '        | expected: 1', 'FAILED  win32-x64: runs: no'],
  },
  {
    name: 'a crash before the closing line, after something that looks like one',
    test: ['4 passed, 0 failed\nthen more\n', 139],
    cross: ['12 passed, 0 failed\n', 0],
    last: '15 passed, 1 failed',
    code: 1,
  },
  {
    name: 'a closing line that denies the exit code',
    test: ['7 passed, 0 failed\n', 0],
    cross: ['12 passed, 0 failed\n', 1],
    last: '22 passed, 1 failed',
    code: 1,
  },
  {
    name: 'nothing said',
    test: ['', 0],
    cross: ['', 0],
    last: '3 passed, 2 failed',
    code: 1,
  },
  {
    name: 'no line end after the closing line',
    test: ['7 passed, 0 failed', 0],
    cross: ['1 passed, 0 failed', 0],
    last: '11 passed, 0 failed',
    code: 0,
  },
];

t.test('.ci/run', { skip: process.platform === 'win32' && 'a bash script' }, async (t) => {
  for (const { name, test, cross, last, code, again = [] } of cases) {
    const folder = t.testdir({ '.ci': { run: fs.readFileSync(inRoot('.ci/run')) }, programs: {} });
    const say = ([output, exit]: [string, number]) => `printf '${output}'; exit ${exit}`;
    const others = say(['1 passed, 0 failed\\n', 0]);
    const npm = `#!/bin/sh
case "$1 $2" in test*) ${say(test)} ;; 'run cross') ${say(cross)} ;; *) ${others} ;; esac
`;
    fs.writeFileSync(path.join(folder, 'programs', 'npm'), npm, { mode: 0o755 });
    // A part wants one; it is not run.
    fs.writeFileSync(path.join(folder, 'programs', 'redis-server'), '', { mode: 0o755 });
    const answer = spawnSync('bash', [path.join(folder, '.ci/run')], {
      encoding: 'utf8',
      env: { ...process.env, PATH: `${path.join(folder, 'programs')}:${process.env.PATH}` },
    });
    const lines = answer.stdout.trimEnd().split('\n');
    t.equal(lines.at(-1), last, name);
    t.equal(answer.status, code, `${name}: exit code`);
    t.same(lines.slice(lines.length - 1 - again.length, -1), again, `${name}: what failed`);
    // A count in mid-output may stay; as the last line of its part it is shown with the part's name.
    const bare = lines.filter((line) => /^\d+ passed, \d+ failed$/.test(line));
    t.equal(bare.length, 1, `${name}: one closing line`);
  }
});
