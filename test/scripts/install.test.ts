import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { installFolder } from '../../scripts/install.mjs';

const leftovers = () => fs.readdirSync('.deps').filter((name) => name.startsWith('incoming-'));

/** What is left now and was not before; what a killed install had left may be gone by now. */
const newLeftovers = (before: readonly string[]) =>
  leftovers().filter((name) => !before.includes(name));

/** Prepares a folder with one file, slowly enough for others to come in between. */
function preparing(content: string) {
  return async (scratch: string) => {
    const folder = path.join(scratch, 'made');
    fs.mkdirSync(folder);
    await sleep(20);
    fs.writeFileSync(path.join(folder, 'content'), content);
    return folder;
  };
}

const contentOf = (folder: string) => {
  const file = path.join(folder, 'content');
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null;
};

t.test('many at the same time: one result, whole', async (t) => {
  const target = path.join(t.testdir(), 'deep', 'target');
  const before = leftovers();
  await Promise.all(
    Array.from({ length: 8 }, () =>
      installFolder({
        target,
        isCurrent: () => contentOf(target) === 'new',
        prepare: preparing('new'),
      }),
    ),
  );
  t.equal(contentOf(target), 'new');
  t.same(newLeftovers(before), [], 'nothing is left behind');
});

t.test('an outdated folder is replaced', async (t) => {
  const target = path.join(t.testdir({ target: { content: 'old', stray: '' } }), 'target');
  await installFolder({
    target,
    isCurrent: () => contentOf(target) === 'new',
    prepare: preparing('new'),
  });
  t.same(fs.readdirSync(target), ['content']);
  t.equal(contentOf(target), 'new');
});

t.test('what is current is not made again', async (t) => {
  const target = path.join(t.testdir({ target: { content: 'new' } }), 'target');
  await installFolder({
    target,
    isCurrent: () => contentOf(target) === 'new',
    prepare: () => t.fail('prepared again') as never,
  });
  t.equal(contentOf(target), 'new');
});

t.test('a failure leaves the old folder and no rubbish', async (t) => {
  const target = path.join(t.testdir({ target: { content: 'old' } }), 'target');
  const before = leftovers();
  await t.rejects(
    installFolder({
      target,
      isCurrent: () => false,
      prepare: () => {
        throw new Error('no network');
      },
    }),
    { message: 'no network' },
  );
  t.equal(contentOf(target), 'old');
  t.same(newLeftovers(before), []);
});
