// The short form of `npm run mutate`: twenty thousand damaged containers, opened and read in child
// processes, and held against the reference reader where there is a Python.
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { described, memoryWatcher, referencePythonAtHand } from '../scripts/mutate.mjs';
import { runMutants } from './mutate/pool.mjs';

const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same mutants again`);
const python = referencePythonAtHand();
const watcher = await memoryWatcher();

t.test('mutants of intact containers', async (t) => {
  const count = 20_000;
  const report = await runMutants({ count, run: seed, children: 2, python, watcher });
  t.comment(described(report));
  t.equal(report.mutants, count, 'every mutant was opened');
  t.same(report.findings, [], 'no signal, no hang, no error outside the family, no difference');
  // A mutator that only makes rubbish would find nothing.
  t.ok(report.opened > count * 0.3, 'many still open');
  t.ok(report.opened < count * 0.8, 'many do not');
  t.ok(report.recordsRefused > count * 0.2, 'of those that open, many records are refused');
  t.ok(report.childBytesMax < 256 * 2 ** 20, 'memory of a child');
  t.ok(report.beyondBytesMax < 2 ** 20, 'no allocation far over what was asked for');
  t.ok(watcher === null || report.beyondBytesMax > 0, 'allocations were counted');
});

t.test('the reference reader judged all of it', async (t) => {
  if (python === null) {
    t.pass('compared', { skip: 'there is no Python 3' });
    return;
  }
  const { compared, untold } = await runMutants({
    ...{ count: 500, run: seed, children: 1, python },
  });
  // Of 500 mutants about as many outcomes can be told without NumPy, three thousand with all of it.
  t.ok(compared > 200, `it judged ${compared} opens and records`);
  t.pass('nothing is beyond it', {
    skip: untold > 0 && 'without NumPy and zstandard, which `npm run mutate` installs, part is',
  });
});

t.test('the harness finds what is there to be found', async (t) => {
  const addon = fileURLToPath(new URL('./support/faulty-addon.cjs', import.meta.url));
  for (const [fault, what] of [
    ['signal', /^ended by SIGSEGV/],
    ['hang', /^it hangs$/],
    ['foreign', /^foreign error: /],
    ['hungry', /^address space grew by /],
  ] as const) {
    const env = { LOADERX_ADDON: addon, LOADERX_FAULT: fault };
    const count = fault === 'hungry' ? 900 : 310;
    const report = await runMutants({ count, run: '1', children: 1, python: null, env });
    t.match(report.findings[0]?.what, what, fault);
    // The 300th open: containers are opened once each, and by nobody else.
    if (fault === 'hungry') {
      const watched = await runMutants({
        count,
        run: '1',
        children: 1,
        python: null,
        watcher,
        env,
      });
      const what = /^asked for \d+ bytes more at once than the \d+ declared$/;
      t.equal(what.test(watched.findings[0]?.what ?? ''), watcher !== null, 'one allocation');
    }
    if (fault !== 'hungry')
      t.equal(report.findings[0]?.index, 299, `${fault}: the mutant's number`);
    t.equal(report.mutants, count - (fault === 'signal' || fault === 'hang' ? 1 : 0), 'the others');
  }
  if (python === null) return;
  const env = { LOADERX_ADDON: addon, LOADERX_FAULT: 'wrong' };
  const report = await runMutants({ count: 1200, run: '1', children: 1, python, env });
  const differs = /^record \d+: ours [\da-f]{16}, the reference's [\da-f]{16}$/;
  t.ok(
    report.findings.some(({ what }) => differs.test(what)),
    'wrong data',
  );
});
