// The bootstrap's failures: each says what is missing and what to do. Run in a copy of scripts/ with
// nothing fetched, with a PATH that holds only what the case allows.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { inRoot } from '../../scripts/script.mjs';

interface Case {
  name: string;
  /** Programs on PATH: name → shell script. */
  programs?: Record<string, string>;
  env?: NodeJS.ProcessEnv;
  says: (RegExp | string)[];
}

const python = (pip: string) => `case "$*" in
  -c*) exit 0 ;;
  "-m pip --version") echo pip 23 ;;
  *) ${pip} ;;
esac`;

const cases: Case[] = [
  { name: 'no python', says: [/there is no Python 3\.8/, /Install python3 with pip/, /ZIG/] },
  {
    name: 'python without pip',
    programs: { python3: 'test "$1" = -c' },
    says: [/python3 has none/, /python3-pip/, /point ZIG at it/],
  },
  {
    name: 'no network',
    programs: {
      python3: python(
        'echo "Failed to establish a new connection: host=\'secret.example\' https://user:pw@index.example/x" >&2; exit 1',
      ),
    },
    says: [/could not reach its package index/, /pip config list/, '<address>'],
  },
  {
    name: 'no file for the platform',
    programs: { python3: python('echo "ERROR: No matching distribution found" >&2; exit 1') },
    says: [/there is no ziglang 0\.17\.1 for this platform/, /point ZIG at it/],
  },
  {
    name: 'pip finds another hash',
    programs: { python3: python('echo "THESE PACKAGES DO NOT MATCH THE HASHES" >&2; exit 1') },
    says: [/is not the one that scripts\/toolchain\.lock\.json names/, /It was not used/],
  },
  {
    name: 'pip lets another hash through',
    programs: {
      python3: python(
        'while [ "$1" != --dest ]; do shift; done; /bin/mkdir "$2"; echo fake > "$2/zig.whl"',
      ),
    },
    says: [/is not the one that/, /zig\.whl has sha256 [0-9a-f]{64}/],
  },
  {
    name: 'ZIG of another version',
    programs: { oldzig: 'echo 0.16.0' },
    env: { ZIG: 'oldzig' },
    says: [/ZIG=oldzig is Zig 0\.16\.0/, /built with Zig 0\.17\.1, exactly/, /unset ZIG/],
  },
  {
    name: 'ZIG that is not there',
    env: { ZIG: '/no/such/zig' },
    says: [/ZIG=\/no\/such\/zig cannot be run/],
  },
];

t.test('failures', { skip: process.platform === 'win32' && 'shell scripts' }, async (t) => {
  for (const { name, programs = {}, env = {}, says } of cases) {
    const { output, status, clone } = bootstrap(t, programs, env);
    for (const text of says) t.match(output, text, name);
    t.equal(status, 1, `${name}: exit code`);
    t.notMatch(output, /\.mjs:\d+/, `${name}: no stack`);
    t.notMatch(output, /secret|user:pw/, `${name}: no addresses`);
    t.same(left(clone), [], `${name}: nothing is left behind`);
  }
});

t.test(
  'a Zig on PATH is taken if it is the pinned one',
  { skip: process.platform === 'win32' && 'shell scripts' },
  async (t) => {
    const other = bootstrap(t, { zig: 'echo 0.16.0' }, {});
    t.match(other.output, /there is no Python/, 'else one is fetched');
    const pinned = bootstrap(t, { zig: 'echo 0.17.1' }, {});
    t.match(pinned.output, /backports-zstd .* is fetched/, 'only zstd is missing then');
  },
);

function bootstrap(t: Test, programs: Record<string, string>, env: NodeJS.ProcessEnv) {
  const clone = t.testdir({ programs: {} });
  fs.cpSync(inRoot('scripts'), path.join(clone, 'scripts'), { recursive: true });
  for (const [name, script] of Object.entries(programs)) {
    fs.writeFileSync(path.join(clone, 'programs', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  }
  const { stdout, stderr, status } = spawnSync(
    process.execPath,
    [path.join(clone, 'scripts/toolchain.mjs')],
    { encoding: 'utf8', env: { PATH: path.join(clone, 'programs'), ...env } },
  );
  return { output: stdout + stderr, status, clone };
}

function left(clone: string) {
  const deps = path.join(clone, '.deps');
  return fs.existsSync(deps) ? fs.readdirSync(deps) : [];
}
