// The counts that `npm test` ends with: taken from real output of the two runners.
import t from 'tap';
import {
  closingLine,
  exitCode,
  heldTo,
  readTapFailures,
  readTapTotals,
  readZigSummary,
  single,
  sum,
} from '../../scripts/tally.mjs';

const programs = ['zig-debug', 'zig-fast'];

t.test('the closing line', async (t) => {
  t.equal(closingLine({ passed: 3, failed: 0, skipped: 0 }), '3 passed, 0 failed');
  t.equal(closingLine({ passed: 3, failed: 1, skipped: 2 }), '3 passed, 1 failed, 2 skipped');
  t.same(sum([single(true), single(false), single(true)]), { passed: 2, failed: 1, skipped: 0 });
});

t.test('success takes a passed test and no failed one', async (t) => {
  t.equal(exitCode({ passed: 1, failed: 0, skipped: 5 }), 0);
  t.equal(exitCode({ passed: 9, failed: 1, skipped: 0 }), 1);
  t.equal(exitCode({ passed: 0, failed: 0, skipped: 5 }), 1);
});

t.test('a count is held against the exit code', async (t) => {
  const fine = { passed: 2, failed: 0, skipped: 0 };
  t.same(heldTo(fine, 0), fine);
  t.same(heldTo(fine, 1), { ...fine, failed: 1 }, 'a failure that no test shows');
  t.same(heldTo({ ...fine, failed: 3 }, 1), { ...fine, failed: 3 }, 'no failure twice');
  const nothing = { passed: 0, failed: 0, skipped: 4 };
  t.same(heldTo(nothing, 0), { ...nothing, failed: 1 }, 'only skipped tests');
});

t.test('zig build test', async (t) => {
  const good = [
    'run test zig-debug 9 pass (9 total)',
    'Build Summary: 7/7 steps succeeded; 5/6 tests passed (1 skipped)',
    'test success',
    '+- run test zig-debug 2 pass, 1 skip (3 total) 9s MaxRSS:26M',
    '|  +- compile test zig-debug debug x86_64-linux-gnu.2.28 success 7s MaxRSS:168M',
    '+- run test zig-fast 3 pass (3 total) 5s MaxRSS:20M',
  ];
  t.same(readZigSummary(good, programs), { passed: 5, failed: 0, skipped: 1 });

  const bad = good.map((line) =>
    line.startsWith('+- run test zig-fast')
      ? '+- run test zig-fast 1 pass, 1 skip, 2 fail, 1 crash, 1 timeout (6 total); 1 leaks'
      : line,
  );
  t.same(readZigSummary(bad, programs), { passed: 3, failed: 4, skipped: 2 });

  t.same(
    readZigSummary(good.slice(0, 5), programs),
    { passed: 2, failed: 1, skipped: 1 },
    'a program that did not run is one failed',
  );
  t.same(readZigSummary(['error: no'], programs), { passed: 0, failed: 2, skipped: 0 });
  t.same(
    readZigSummary(
      good.map((line) => line.replace('3 pass (3 total)', 'cached')),
      programs,
    ),
    { passed: 2, failed: 1, skipped: 1 },
    'an earlier success does not count',
  );
});

t.test('tap', async (t) => {
  const lines = [
    'ok 1 - test/a.test.ts # time=12.591ms',
    '    ok 1 - inner # SKIP no tests found',
    '# { total: 4, pass: 1, fail: 3 }',
    'ok 3 - test/empty.test.ts # SKIP no tests found',
    '# { total: 10, pass: 4, fail: 3, todo: 1, skip: 2 }',
    '# time=3625.64ms',
  ];
  t.same(readTapTotals(lines), { passed: 4, failed: 4, skipped: 2 });
  t.same(readTapTotals([]), { passed: 0, failed: 0, skipped: 0 });
});

t.test('what failed, said again', async (t) => {
  const lines = [
    '# Subtest: test/a.test.ts',
    '    # Subtest: outer',
    '        ok 1 - fine',
    '        not ok 2 - should be equal',
    '          ---',
    '          diff: |',
    '            -1',
    '          ...',
    '        not ok 3 - later # TODO',
    '        # Subtest: inner',
    '            not ok 1 - deep',
    '            1..1',
    '        not ok 4 - inner # time=1ms',
    '        1..4',
    '    not ok 1 - outer # time=3.1ms',
    '    ',
    '    # Subtest: well',
    '        ok 1 - fine',
    '    ok 2 - well # time=1ms',
    '    not ok 3 - bare',
    'not ok 1 - test/a.test.ts # time=12.591ms',
    '# Subtest: test/b.test.ts',
    '    ok 1 - fine',
    'not ok 2 - test/b.test.ts # time=300000ms',
    '  ---',
    '  exitCode: 1',
  ];
  t.same(readTapFailures(lines), [
    'FAILED  test/a.test.ts > outer > should be equal',
    '        | diff: |',
    '        |   -1',
    'FAILED  test/a.test.ts > outer > inner > deep',
    'FAILED  test/a.test.ts > bare',
    'FAILED  test/b.test.ts',
    '        | exitCode: 1',
  ]);
  t.same(readTapFailures(['ok 1 - a', '1..1']), []);
});
