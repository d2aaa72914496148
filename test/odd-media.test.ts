// Media that cannot be written to, and file systems without locks: readers read there, and a build is
// refused at once and leaves nothing.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { chmodSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { Dense, ndarray } from '../ts/index.js';
import { answerOf } from './support/child.js';
import { itemOf } from './support/package.mjs';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const [count, items] = [500, 12];
const codecs = [
  { codec: 'raw' },
  { codec: 'zstd' },
  { codec: 'zstd_dict', dictBytes: new Uint8Array(100).fill(7) },
] as const;

interface Answer {
  readonly read: string;
  readonly record: string;
  readonly verify: string;
  readonly build: string;
  readonly osCode?: string;
  readonly left: readonly string[];
}

/** A container in a folder of its own, and the hash of its records. */
function made(codec: (typeof codecs)[number]): { readonly at: string; readonly hash: string } {
  const at = scratch.fresh();
  const data = Uint32Array.from({ length: count * items }, (_, index) =>
    itemOf(Math.floor(index / items), index % items),
  );
  const hash = createHash('sha256').update(data).digest('hex');
  const writer = Dense.create(at, { ...codec, dtype: 'uint32', itemShape: [items], dataShards: 3 });
  writer.appendSync(ndarray('uint32', [count, items], data));
  writer.closeSync();
  return { at, hash };
}

async function check(
  t: Test,
  what: string,
  prefixOf: (at: string) => readonly string[],
  build: Pick<Answer, 'build' | 'osCode'>,
): Promise<void> {
  for (const codec of codecs) {
    const { at, hash } = made(codec);
    const prefix = prefixOf(at);
    const answer = (await answerOf(t, 'media', [at, hash], { prefix })) as Answer;
    t.strictSame(
      answer,
      { read: 'ok', record: 'ok', verify: 'ok', ...build, left: [path.basename(at)] },
      `${what}: ${codec.codec}`,
    );
  }
}

/** Runs what follows with the container's folder mounted again, read-only. */
function readOnly(at: string): readonly string[] {
  return [
    ...['unshare', '--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])],
    ...['/bin/sh', '-c', 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'],
    path.dirname(at),
  ];
}

t.test('read-only media (G13)', async (t) => {
  const [command = '', ...rest] = readOnly(scratch.fresh());
  if (process.platform !== 'linux' || spawnSync(command, [...rest, 'true']).status !== 0) {
    t.pass('read-only media', { skip: 'nothing can be mounted here' });
    return;
  }
  await check(t, 'mounted read-only', readOnly, { build: 'IO', osCode: 'EROFS' });
});

t.test('folders and files that may only be read (G13)', async (t) => {
  if (process.platform === 'win32' || process.getuid?.() === 0) {
    t.pass('permissions', { skip: 'this user may write everywhere' });
    return;
  }
  const { at, hash } = made(codecs[0]);
  chmodSync(at, 0o555);
  chmodSync(path.join(at, 'meta.zr'), 0o444);
  chmodSync(path.dirname(at), 0o555);
  const answer = (await answerOf(t, 'media', [at, hash])) as Answer;
  chmodSync(path.dirname(at), 0o755);
  chmodSync(at, 0o755);
  t.strictSame(
    [answer.read, answer.verify, answer.build, answer.osCode],
    ['ok', 'ok', 'IO', 'EACCES'],
  );
});

// What a file system without locks says, in its two ways. (zig-src/store_test.zig has the same without
// a process under trace.)
for (const code of ['EOPNOTSUPP', 'ENOLCK']) {
  t.test(`a file system that answers ${code} to a lock (G13)`, async (t) => {
    const trace = ['strace', '-f', '-qq', '-o', '/dev/null', '-e', 'trace=flock'];
    const inject = [...trace, '-e', `inject=flock:error=${code}`];
    if (
      process.platform !== 'linux' ||
      spawnSync('strace', [...inject.slice(1), 'true']).status !== 0
    ) {
      t.pass(code, { skip: 'strace is not at hand' });
      return;
    }
    await check(t, code, () => inject, { build: 'UNSUPPORTED' });
  });
}
