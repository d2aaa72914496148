// A conversion that is killed, or runs out of room: no partial root, and a rerun is as if nothing had been.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
// The long forms take longer than a file is given.
if (isFull) t.setTimeout(3_600_000);
const program = path.join(import.meta.dirname, 'support', 'converting.mjs');
// More than one flush of each column, in the middle of a split too.
const rows = isFull ? 70_000 : 34_000;
const moments = isFull ? 100 : 5;

/** Every file below a folder, with its bytes' hash. */
function filesOf(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((name) => statSync(path.join(folder, name)).isFile())
    .map((name) => {
      const bytes = readFileSync(path.join(folder, name));
      return `${name} ${createHash('sha256').update(bytes).digest('hex')}`;
    })
    .sort();
}

/** Converts in a child; what it said, and whether it was killed after `lines` lines. */
function runUntil(target: string, lines: number): Promise<{ said: string[]; signal: unknown }> {
  const child = spawn(process.execPath, [program, target, String(rows)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part: string) => {
    text += part;
    if (text.split('\n').length > lines) child.kill('SIGKILL');
  });
  return new Promise((resolve) => {
    child.on('close', (_code, signal) => resolve({ said: text.trim().split('\n'), signal }));
  });
}

t.test('killed at any moment', async (t) => {
  const undisturbed = scratch.fresh('out');
  const whole = await runUntil(undisturbed, Number.POSITIVE_INFINITY);
  t.equal(whole.said.at(-1), 'done');
  const wanted = filesOf(undisturbed);
  t.equal(wanted.length, 2 * 3 * 3, 'two splits of three containers');
  // Spread over the whole run, the last ones at its end, where containers close and the root is moved.
  const linesTotal = whole.said.length;
  let killed = 0;
  for (let moment = 0; moment < moments; moment += 1) {
    const target = scratch.fresh('out');
    const folder = path.dirname(target);
    const { signal } = await runUntil(target, Math.ceil(((moment + 1) * linesTotal) / moments) - 1);
    if (signal === 'SIGKILL') killed += 1;
    if (existsSync(target)) {
      t.strictSame(filesOf(target), wanted, `moment ${moment}: the root is whole`);
      rmSync(target, { recursive: true });
    }
    const again = await runUntil(target, Number.POSITIVE_INFINITY);
    t.equal(again.said.at(-1), 'done', `moment ${moment}: a rerun`);
    t.strictSame(filesOf(target), wanted, `moment ${moment}: equals an undisturbed one`);
    t.strictSame(readdirSync(folder), ['out'], `moment ${moment}: and what was left is gone`);
    rmSync(folder, { recursive: true });
  }
  t.ok(killed > moments / 2, `${killed} of ${moments} were killed`);
});

t.test('the disk is full', async (t) => {
  const folder = scratch.folder();
  const target = path.join(folder, 'out');
  const within = (bytes: string, count: number) =>
    spawnSync(
      'unshare',
      [
        ...['--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])],
        ...['/bin/sh', '-c', `mount -t tmpfs -o size=${bytes} tmpfs "$0" && exec "$@"`, folder],
        ...[process.execPath, program, target, String(count)],
      ],
      { encoding: 'utf8' },
    );
  const enough = within('64m', 10);
  if (enough.error !== undefined || !enough.stdout.endsWith('done\n')) {
    t.pass('a small disk', { skip: 'nothing can be mounted here' });
    return;
  }
  for (const size of ['64k', '300k', '1m', '2m']) {
    const { stdout } = within(size, rows);
    const failure = JSON.parse(stdout.trim().split('\n').at(-1) ?? '');
    t.match(failure, { code: 'IO', osCode: 'ENOSPC', left: [] }, `${size}: ${failure.message}`);
    t.ok(failure.message.includes(target) || failure.message.includes('.out.convert-'), size);
  }
});
