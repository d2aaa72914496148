// The program and whoever reads it: a closed output is silent and changes neither work nor exit code; an
// output that cannot be written is exit code 3 and one line on stderr.
import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { Dense, ndarray } from '../ts/index.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const program = path.resolve(import.meta.dirname, '..', 'dist', 'cli.js');

/** A container of 64 records, and a copy that has a fault for each of them. */
function containers(): { readonly sound: string; readonly faulty: string } {
  const sound = scratch.fresh('sound');
  const writer = Dense.create(sound, { dtype: 'uint8', itemShape: [4], codec: 'raw' });
  writer.appendSync(ndarray('uint8', [64, 4], new Uint8Array(256).fill(7)));
  writer.closeSync();
  const faulty = scratch.fresh('faulty');
  cpSync(sound, faulty, { recursive: true });
  const meta = readFileSync(path.join(faulty, 'meta.zr'));
  meta.fill(0xff, 4096, 4096 + 64 * 16);
  writeFileSync(path.join(faulty, 'meta.zr'), meta);
  return { sound, faulty };
}

const { sound, faulty } = containers();
const posix = process.platform === 'win32' ? { skip: 'shells and devices of POSIX' } : {};
const withFull = existsSync('/dev/full') ? {} : { skip: 'there is no /dev/full' };

/** A shell line in which `loaderx` is the program; `$1` … are the arguments. */
function shell(line: string, ...args: readonly string[]) {
  const loaderx = `loaderx() { ${JSON.stringify(process.execPath)} ${JSON.stringify(program)} "$@"; }; `;
  // What observes this test would write files of its own from there.
  const whole = `unset NODE_OPTIONS; ${loaderx}${line}`;
  const ended = spawnSync('sh', ['-c', whole, 'sh', ...args], { encoding: 'utf8' });
  return { code: ended.status, out: ended.stdout, err: ended.stderr };
}

t.test(
  'an output that was closed: the work is done, the exit code is the command’s',
  posix,
  (t) => {
    // The reader is gone before the first line is written.
    const closed = (line: string, ...args: readonly string[]) =>
      shell(`{ sleep 0.2; ${line}; echo $? >&2; } | true`, ...args);
    t.match(closed('loaderx verify "$1" "$1" --faults 1000', faulty), { err: '1\n' });
    t.match(closed('loaderx verify "$1"', sound), { err: '0\n' });
    t.match(closed('loaderx verify --json "$1"', faulty), { err: '1\n' });
    t.match(closed('loaderx diff "$1" "$2"', sound, faulty), { err: /3\n$/ });
    t.match(closed('loaderx info "$1" "$1"', sound), { err: '0\n' });
    t.match(closed('loaderx head "$1" 0-63', sound), { err: '0\n' });
    t.match(closed('loaderx --help'), { err: '0\n' });
    const copies = Array.from({ length: 4 }, () => {
      const copy = scratch.fresh('copy');
      cpSync(sound, copy, { recursive: true });
      return copy;
    });
    t.match(closed('loaderx digest "$@"', ...copies), { err: '0\n' });
    for (const copy of copies) t.ok(existsSync(path.join(copy, 'integrity.zr')), 'has its file');
    const target = scratch.fresh();
    t.match(closed('loaderx recode "$1" "$2" --codec zstd', sound, target), { err: '0\n' });
    t.ok(existsSync(path.join(target, 'meta.zr')));
    t.end();
  },
);

t.test('an output that is full: exit code 3 and one line', withFull, (t) => {
  const target = scratch.fresh();
  const lines = [
    ...['info "$1"', 'info "$1" "$1"', 'info --json "$1"', '--help', 'info --help', '--version'],
    ...['verify "$1"', 'verify "$2"', 'verify --json "$2"', 'digest "$1" --dry-run', 'head "$1"'],
    ...['head --json "$1"', 'diff "$1" "$1"', 'recode "$1" "$3" --codec raw'],
  ];
  for (const line of lines) {
    const { code, err } = shell(`loaderx ${line} > /dev/full`, sound, faulty, target);
    t.equal(code, 3, line);
    t.equal(err, 'loaderx: stdout: writing the answer failed (ENOSPC)\n', line);
  }
  t.ok(existsSync(path.join(target, 'meta.zr')), 'what it was to do is done');
  t.equal(shell('loaderx frob > /dev/full').code, 2, 'nothing was to be written there');
  t.match(shell('loaderx verify "$1" 2> /dev/full', sound), { code: 0, out: /^ok/ });
  t.match(shell('loaderx info "$1" 2> /dev/full', scratch.fresh()), { code: 3 });
  t.end();
});

t.test('a file that takes a part of what is written is one that takes too little', posix, (t) => {
  const file = scratch.fresh('out');
  // Blocks are of 512 or 1024 bytes; the signal that comes with the limit is not to end it.
  const limited = `trap '' XFSZ; ulimit -f 1; loaderx info --help > "$1"`;
  const { code, err } = shell(`${limited}; code=$?; echo $code >&2`, file);
  t.equal(code, 0);
  if (readFileSync(file).byteLength > 1024) {
    t.comment('no limit here');
  } else {
    t.equal(err, 'loaderx: stdout: writing the answer failed (EFBIG)\n3\n');
  }
  t.end();
});
