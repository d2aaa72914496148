// Files that are cut while they are read: a typed error that names the file, from every thread; the
// process lives, what is intact is read, and what is put back is read again. And signals that are
// not ours end where they would have ended without us.

import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { answerOf, inParallel, runChild } from './support/child.js';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const root = fileURLToPath(new URL('..', import.meta.url));
const onWindows = process.platform === 'win32' ? 'files in use cannot be cut there' : false;

/** Containers of every kind; children cut copies of them. */
const folder = scratch.folder();

t.before(async () => {
  const { code, stderr } = await runChild('truncation', ['make', folder]);
  if (code !== 0) throw new Error(stderr);
});

interface Cut {
  readonly kind: string;
  readonly name: string;
  readonly what: string;
  readonly ends: readonly string[];
}

for (const place of [
  'main thread',
  'asynchronous gather',
  'several at once',
  'worker',
  '8 workers',
]) {
  t.test(`a file is cut, seen from: ${place}`, { skip: onWindows }, async (t) => {
    const ending = await runChild('truncation', ['cut', folder, place]);
    t.strictSame([ending.code, ending.signal, ending.stderr], [0, null, '']);
    const lines = ending.stdout.trim().split('\n');
    t.equal(lines.pop(), '"alive"', 'the process lives');
    t.equal(lines.length, 32, '4 kinds of containers, 2 files, 4 cuts');
    for (const line of lines) {
      const { kind, name, what, ends } = JSON.parse(line) as Cut;
      const refused = `MALFORMED ${name}`;
      // Of a table that was cut to nothing, no entry is left to find even an intact record by.
      const rest = name === 'meta.zr' && what === 'to zero' ? refused : 'right';
      t.strictSame(
        ends,
        ['right', refused, refused, rest, 'right'],
        `${kind}, ${name} cut ${what}: before, all, all again, the intact, put back`,
      );
    }
  });
}

t.test('files are cut while gathers run', { skip: onWindows }, async (t) => {
  const ends = (await answerOf(t, 'truncation', ['race', folder, '200'])) as object;
  t.strictSame(
    Object.keys(ends).filter((end) => end !== 'right' && end !== 'MALFORMED FILE'),
    [],
    'each gather is right or names the file that was cut',
  );
  t.comment(JSON.stringify(ends));
  t.equal(Object.keys(ends).length, 2, 'both came');
});

t.test('noise is written into the files while gathers run', { skip: onWindows }, async (t) => {
  const gathers = isFull ? 50_000 : 500;
  const args = [scratch.folder(), String(gathers)];
  const ends = (await answerOf(t, 'overwriting', args)) as Record<string, number>;
  t.comment(JSON.stringify(ends));
  const known = ['right', 'other data', 'CODEC', 'MALFORMED'];
  t.strictSame(
    Object.keys(ends).filter((end) => !known.includes(end)),
    [],
    'records or typed errors, and the process lives',
  );
  t.equal(
    Object.values(ends).reduce((sum, count) => sum + count, 0),
    3 * gathers,
  );
});

t.test('a container that is removed is read on', { skip: onWindows }, async (t) => {
  t.strictSame(await answerOf(t, 'truncation', ['unlinked', folder]), ['right', 'right']);
});

t.test('more readers than there are maps', async (t) => {
  const prefix =
    process.platform === 'win32' ? [] : ['/bin/sh', '-c', 'ulimit -n 20000; exec "$@"', 'sh'];
  t.strictSame(await answerOf(t, 'truncation', ['many', folder], { prefix }), ['right']);
});

/** A second copy of the package, in a folder of its own. */
function secondCopy(): string {
  const copy = path.join(scratch.folder(), 'loaderx');
  mkdirSync(copy);
  for (const part of ['dist', path.join('build', 'Release')]) {
    cpSync(path.join(root, part), path.join(copy, part), { recursive: true });
  }
  writeFileSync(path.join(copy, 'package.json'), readFileSync(path.join(root, 'package.json')));
  symlinkSync(path.join(root, 'node_modules'), path.join(copy, 'node_modules'));
  return copy;
}

t.test('a SIGBUS that somebody sends', { skip: onWindows }, async (t) => {
  const copy = secondCopy();
  const deadly: readonly (readonly string[])[] = [
    [],
    ['use'],
    ['listen', 'unlisten', 'use'],
    ['use', 'listen', 'unlisten'],
    ['use', copy],
  ];
  const heard: readonly (readonly string[])[] = [
    ['listen', 'use'],
    ['use', 'listen'],
    ['use', 'listen', 'unlisten', 'listen'],
    ['use', copy, 'listen'],
    ['listen', copy, 'use'],
  ];
  const name = (steps: readonly string[]): string => steps.join(', ').replace(copy, 'second copy');
  await inParallel(deadly.length, 2, async (index) => {
    const steps = deadly[index] ?? [];
    const { signal, stdout } = await runChild('truncation', ['signal', folder, ...steps]);
    t.strictSame(
      [signal, stdout],
      ['SIGBUS', '"ready"\n'],
      `[${name(steps)}]: it ends the process`,
    );
  });
  await inParallel(heard.length, 2, async (index) => {
    const steps = heard[index] ?? [];
    t.strictSame(
      await answerOf(t, 'truncation', ['signal', folder, ...steps]),
      { heard: 1, ends: ['MALFORMED data_1.zr', 'right'] },
      `[${name(steps)}]: the listener hears it, and a file that is cut is still a typed error`,
    );
  });
});

t.test('two copies of the package, one file that is cut', { skip: onWindows }, async (t) => {
  const ends = ['MALFORMED data_1.zr', 'right'];
  t.strictSame(await answerOf(t, 'truncation', ['twoCopies', folder, secondCopy()]), [ends, ends]);
});
