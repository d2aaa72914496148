// Publication: a container is at its path complete, or nothing is there. Killed builds, failing disks,
// competing processes, descriptors, names. Numbers in brackets are those of the list of known faults.

import { spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import t, { type Test } from 'tap';
import { Dense, type DenseReader, type DenseWriter, ndarray, open, Ragged } from '../ts/index.js';
import { Random } from './interop/random.mjs';
import { type Child, inParallel, runChild, startChild } from './support/child.js';
import { isFull } from './support/limits.js';
import { codeOf, failureOf, outcomeOf, outcomeOfError } from './support/outcome.js';
import { itemOf } from './support/package.mjs';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const seed = process.env.LOADERX_SEED ?? String(Math.floor(Math.random() * 2 ** 32));
t.comment(`seed ${seed}: LOADERX_SEED=${seed} makes the same random cases again`);
/** The larger numbers of the list of known faults. */

const onLinux = process.platform === 'linux';
const linuxOnly = { skip: onLinux ? false : 'only where /proc is' };
const posixOnly = { skip: process.platform === 'win32' ? 'only on POSIX' : false };
/** Items of a record of support/builder.mjs. */
const items = 12;

function create(at: string | URL | Uint8Array, dataShards = 3): DenseWriter<'uint32'> {
  return Dense.create(at, { codec: 'raw', dtype: 'uint32', itemShape: [items], dataShards });
}

function records(from: number, count: number) {
  const data = new Uint32Array(count * items);
  for (let at = 0; at < data.length; at += 1) {
    data[at] = itemOf(from + Math.floor(at / items), at % items);
  }
  return ndarray('uint32', [count, items], data);
}

/** Whether the container at `at` holds records 0 .. count - 1, and no other. */
async function isWhole(at: string | URL | Uint8Array, count: number): Promise<boolean> {
  await using reader = Dense.open(at, { dtype: 'uint32' });
  const { data } = await reader.slice();
  const expected = records(0, count).data;
  return reader.length === count && Buffer.from(data.buffer).equals(Buffer.from(expected.buffer));
}

const unpublishedCodes = ['NOT_FOUND', 'NOT_PUBLISHED', 'MALFORMED', 'LOCKED'];

/** Nothing of ours is at the path, and it can be built there at once without leftovers. */
async function assertFree(t: Test, at: string, what: string): Promise<void> {
  t.equal(await codeOf(() => open(at)), 'NOT_FOUND', `${what}: nothing opens`);
  const writer = create(at);
  writer.appendSync(records(0, 7));
  writer.closeSync();
  t.ok(await isWhole(at, 7), `${what}: the path is free`);
  const name = path.basename(at);
  t.strictSame(
    beside(at).filter((other) => other.startsWith(`.${name}.build-`)),
    [],
    `${what}: no leftovers after that`,
  );
}

// ---- killed ----

t.test('200 builds killed at random moments, several in each process', async (t) => {
  const random = new Random(seed, 'kill');
  const wanted = isFull ? 1000 : 200;
  const laneCount = 6;
  const delays = Array.from({ length: wanted }, () => random.between(0, 15_000) / 1000);
  let midway = 0;
  let publishedCount = 0;
  let killCount = 0;
  const wrong: string[] = [];
  await inParallel(delays.length, 2, async (kill) => {
    if (midway >= wanted) return;
    killCount += 1;
    const folder = scratch.folder();
    const child = startChild('builder', ['loop', folder, String(laneCount)]);
    await child.line();
    await sleep(delays[kill] ?? 0);
    child.process.kill('SIGKILL');
    const { signal } = await child.ended;
    if (signal !== 'SIGKILL') wrong.push(`kill ${kill}: it ended by ${signal}`);

    const names = readdirSync(folder);
    for (let lane = 0; lane < laneCount; lane += 1) {
      const published = names.filter((name) => name.startsWith(`${lane}-`));
      const hidden = names.filter((name) => name.startsWith(`.${lane}-`));
      const next = `${lane}-${published.length}`;
      publishedCount += published.length;
      midway += hidden.length;
      if (hidden.length > 1) wrong.push(`kill ${kill}: ${hidden.length} hidden folders`);
      for (let build = 0; build < published.length; build += 1) {
        if (!(await isWhole(path.join(folder, `${lane}-${build}`), 20))) {
          wrong.push(`kill ${kill}: ${lane}-${build} is not what was built`);
        }
      }
      for (const name of hidden) {
        if (!name.startsWith(`.${next}.build-`)) wrong.push(`kill ${kill}: ${name}`);
        // One that was complete but for the rename opens by its hidden name: then it is whole.
        const code = await codeOf(() => open(path.join(folder, name)).close());
        const isComplete = code === 'ok' && (await isWhole(path.join(folder, name), 20));
        if (!isComplete && !unpublishedCodes.includes(code)) {
          wrong.push(`kill ${kill}: ${name} opens: ${code}`);
        }
      }
      const at = path.join(folder, next);
      const code = await codeOf(() => open(at));
      if (code !== 'NOT_FOUND') wrong.push(`kill ${kill}: the killed build opens: ${code}`);
      const writer = create(at);
      writer.appendSync(records(0, 7));
      await writer.close();
      if (!(await isWhole(at, 7))) wrong.push(`kill ${kill}: the path is not free`);
    }
    const left = readdirSync(folder).filter((name) => name.startsWith('.'));
    if (left.length > 0) wrong.push(`kill ${kill}: left over are ${left}`);
  });
  t.strictSame(wrong, []);
  t.comment(`${killCount} kills hit ${midway} builds midway; ${publishedCount} were whole before`);
  t.ok(midway >= wanted, `${midway} builds were hit midway`);
});

t.test('a build that kills its process at a chosen moment (B01)', async (t) => {
  const moments = [
    'create',
    'append 0',
    'append 3',
    'inside append',
    'before close',
    'inside close',
    'inside durable close',
  ];
  await inParallel(moments.length, 2, async (index) => {
    const when = moments[index] ?? '';
    const at = scratch.fresh();
    const { signal, stderr } = await runChild('builder', ['suicide', at, when]);
    t.equal(signal, 'SIGKILL', `${when} ${stderr}`);
    if (when.startsWith('inside') && existsSync(at)) {
      t.ok(when.endsWith('close'), 'only a close publishes');
      t.ok(await isWhole(at, 100), `${when}: it was published whole`);
    } else {
      await assertFree(t, at, when);
    }
  });
});

t.test('an exception in user code inside the scope (B03)', async (t) => {
  const scopes: readonly (readonly [string, (at: string) => unknown])[] = [
    [
      'using',
      (at) => {
        using writer = create(at);
        writer.appendSync(records(0, 5));
        throw new Error('mine');
      },
    ],
    [
      'await using',
      async (at) => {
        await using writer = create(at);
        await writer.append(records(0, 5));
        throw new Error('mine');
      },
    ],
    [
      'await using, appends under way',
      async (at) => {
        await using writer = create(at);
        writer.append(records(0, 50_000)).catch(() => {});
        writer.append(records(0, 50_000)).catch(() => {});
        throw new Error('mine');
      },
    ],
    [
      'try and finally',
      async (at) => {
        const writer = create(at);
        try {
          await writer.append(records(0, 5));
          throw new Error('mine');
        } finally {
          writer.abort();
        }
      },
    ],
    [
      'ragged',
      async (at) => {
        await using writer = Ragged.create(at, { codec: 'zstd', dtype: 'uint32', ndim: 1 });
        await writer.append([ndarray('uint32', [3], new Uint32Array(3))]);
        throw new Error('mine');
      },
    ],
  ];
  for (const [what, scope] of scopes) {
    const at = scratch.fresh();
    t.match(await failureOf(() => scope(at)), { message: 'mine' }, what);
    t.strictSame(beside(at), [], `${what}: nothing is left`);
    await assertFree(t, at, what);
  }
});

// ---- a disk that is full ----

interface FullDisk {
  readonly failure: { code: string; osCode: string; file: string; message: string };
  readonly after: readonly string[];
  readonly left: readonly string[];
  readonly opened: string;
  readonly again: boolean;
}

function checkFullDisk(t: Test, stdout: string, osCode: string, at: string): void {
  const { failure, after, left, opened, again } = JSON.parse(stdout) as FullDisk;
  t.strictSame([failure.code, failure.osCode], ['IO', osCode]);
  t.match(failure.file, /^(data_0|meta)\.zr$/, 'it names the file');
  t.match(failure.message, at, 'and the container');
  t.strictSame(
    after,
    Array(4).fill('BUILD_FAILED'),
    'append, appendSync, close, closeSync after it',
  );
  t.strictSame(left, [], 'nothing is left, the space is free again');
  t.equal(opened, 'NOT_FOUND');
  t.ok(again, 'the path is free');
}

t.test('a disk of 256 KiB (B02)', async (t) => {
  const disk = scratch.folder();
  const mounted = [
    'unshare',
    '--mount',
    ...(process.getuid?.() === 0 ? [] : ['--map-root-user']),
    '/bin/sh',
    '-c',
    'mount -t tmpfs -o size=256k none "$0" && exec "$@"',
    disk,
  ];
  const [command = '', ...rest] = mounted;
  if (!onLinux || spawnSync(command, [...rest, 'true']).status !== 0) {
    t.pass('a disk that is full', { skip: 'a tmpfs cannot be mounted here' });
    return;
  }
  const at = path.join(disk, 'store');
  const { code, stdout, stderr } = await runChild('builder', ['full', at], { prefix: mounted });
  t.equal(code, 0, stderr);
  checkFullDisk(t, stdout, 'ENOSPC', at);
});

for (const how of ['async', 'sync']) {
  t.test(`a file size limit, ${how}`, posixOnly, async (t) => {
    const at = scratch.fresh();
    const prefix = ['/bin/sh', '-c', 'ulimit -f 400; exec "$@"', 'sh'];
    const { code, stdout, stderr } = await runChild('builder', ['full', at, how], { prefix });
    t.equal(code, 0, stderr);
    checkFullDisk(t, stdout, 'EFBIG', at);
  });
}

t.test('the build that failed works on a disk that is large enough', async (t) => {
  const at = scratch.fresh();
  const writer = create(at, 1);
  for (let append = 0; append < 3; append += 1) await writer.append(records(append * 2500, 2500));
  await writer.close();
  t.ok(await isWhole(at, 7500));
});

// ---- several processes ----

interface RaceEnd {
  readonly won: boolean;
  readonly stage?: string;
  readonly code?: string;
}

t.test('two processes create one path, round after round (B05)', async (t) => {
  const rounds = isFull ? 500 : 200;
  const random = new Random(seed, 'race');
  const racers: readonly [Child, Child] = [
    startChild('builder', ['race']),
    startChild('builder', ['race']),
  ];
  for (const racer of racers) await racer.line();
  const folder = scratch.folder();
  const losses: Record<string, number> = {};
  const wrong: string[] = [];
  for (let round = 0; round < rounds; round += 1) {
    const at = path.join(folder, `r${round}`);
    const firsts = [0, 1000];
    racers.forEach((racer, index) => {
      const waitUs = random.chance(0.5) ? 0 : random.between(0, 800);
      const buildUs = random.chance(0.5) ? random.between(0, 1) : random.between(0, 1500);
      racer.tell(JSON.stringify({ at, first: firsts[index], waitUs, buildUs }));
    });
    const ends = await Promise.all(
      racers.map(async (racer) => JSON.parse(await racer.line()) as RaceEnd),
    );
    const winners = ends.filter((end) => end.won);
    if (winners.length !== 1) wrong.push(`round ${round}: ${JSON.stringify(ends)}`);
    for (const { won, stage, code } of ends) {
      if (won) continue;
      const how = `${code} at ${stage}`;
      losses[how] = (losses[how] ?? 0) + 1;
      if (code !== 'EXISTS' && code !== 'LOCKED') wrong.push(`round ${round}: ${how}`);
    }
    const first = firsts[ends.findIndex((end) => end.won)] ?? -1;
    using reader = Dense.open(at, { dtype: 'uint32' });
    const { data } = reader.gatherSync([0, 1, 2]);
    if (reader.length !== 3 || String(data) !== String(records(first, 3).data)) {
      wrong.push(`round ${round}: the data is not the winner's`);
    }
  }
  for (const { process } of racers) process.kill();
  t.strictSame(wrong, []);
  t.strictSame(
    readdirSync(folder).filter((name) => name.startsWith('.')),
    [],
    'no leftovers',
  );
  t.comment(`losers: ${JSON.stringify(losses)}`);
  t.ok(Object.keys(losses).length >= 2, 'the two met in more than one way');
});

t.test('a reader that tries during a build (B06)', async (t) => {
  const at = scratch.fresh();
  const child = startChild('builder', ['slow', at]);
  await child.said('begun');
  const [sibling = ''] = beside(at);
  const codes: Record<string, number> = {};
  let isClosed = false;
  child.said('closed').then(
    () => {
      isClosed = true;
    },
    () => {},
  );
  let length: number | undefined;
  while (length === undefined) {
    const wasClosed = isClosed;
    const code = await codeOf(() => {
      using reader = open(at);
      length = reader.length;
    });
    if (code !== 'ok') {
      codes[code] = (codes[code] ?? 0) + 1;
      t.notOk(wasClosed, 'after close it opens');
    }
    if (codes.NOT_FOUND === 3) {
      t.equal(await codeOf(() => open(path.join(path.dirname(at), sibling))), 'LOCKED');
      t.equal(await codeOf(() => create(at)), 'LOCKED', 'the path is being built');
    }
    await sleep(2);
  }
  t.equal(length, 150, 'the full length and no other');
  // Between the rename and the end of close() the builder still holds its lock.
  const { NOT_FOUND: absent = 0, LOCKED: _locked, ...others } = codes;
  t.strictSame(others, {});
  t.ok(absent > 10, 'it tried often');
  t.ok(await isWhole(at, 150));
  t.equal((await child.ended).code, 0);
});

t.test('many readers in many processes, half of them killed (B22)', async (t) => {
  const at = scratch.fresh();
  const writer = create(at);
  writer.appendSync(records(0, 500));
  writer.closeSync();
  const { first, second } = isFull ? { first: 50, second: 10 } : { first: 10, second: 3 };
  const start = (): Child => startChild('builder', ['readers', at, '20']);
  const children = Array.from({ length: first }, start);
  const opened = await Promise.all(children.map((child) => child.line()));
  t.strictSame(opened, Array(first).fill('{"right":20}'));
  const kept = children.filter((child, index) => {
    if (index % 2 === 0) child.process.kill('SIGKILL');
    return index % 2 !== 0;
  });
  await Promise.all(children.filter((_, index) => index % 2 === 0).map(({ ended }) => ended));
  const later = Array.from({ length: second }, start);
  t.strictSame(
    await Promise.all(later.map((child) => child.line())),
    Array(second).fill('{"right":20}'),
    'nothing is stale',
  );
  for (const child of [...kept, ...later]) child.tell('end');
  for (const child of [...kept, ...later]) t.equal((await child.ended).code, 0);
  t.ok(await isWhole(at, 500));
});

t.test('a writer that is killed, a writer that lives (B23)', async (t) => {
  const at = scratch.fresh();
  const dead = startChild('builder', ['hold', at]);
  await dead.line();
  t.equal(await codeOf(() => create(at)), 'LOCKED', 'it lives');
  const live = `${at}-2`;
  const holder = startChild('builder', ['hold', live]);
  await holder.line();
  dead.process.kill('SIGKILL');
  await dead.ended;
  t.equal(beside(at).length, 2, 'it left its folder');
  const cousin = create(`${at}-3`);
  cousin.appendSync(records(0, 3));
  await cousin.close();
  t.ok(await isWhole(`${at}-3`, 3), 'a path beside it works at once');
  await assertFree(t, at, 'the path of the dead one');
  t.equal(await codeOf(() => create(live)), 'LOCKED', 'the live one was left alone');
  holder.process.kill('SIGKILL');
  await holder.ended;
  await assertFree(t, live, 'when it is dead too');
});

// ---- descriptors and space ----

/** Open files and folders. Not pipes, which children of earlier tests may give back at any moment. */
function descriptorCount(): number {
  return readdirSync('/proc/self/fd').filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith('/');
    } catch {
      // That of the listing itself.
      return false;
    }
  }).length;
}

t.test('descriptors: 10,000 times open and close (B25)', linuxOnly, async (t) => {
  const at = scratch.fresh();
  const writer = create(at);
  writer.appendSync(records(0, 10));
  writer.closeSync();
  open(at).closeSync();
  const before = descriptorCount();
  let right = 0;
  for (let round = 0; round < 10_000; round += 1) {
    const reader = Dense.open(at, { dtype: 'uint32' });
    if (round % 100 === 0)
      right += reader.record(round % 10).data[0] === itemOf(round % 10, 0) ? 1 : 0;
    if (round % 2 === 0) reader.closeSync();
    else await reader.close();
  }
  t.equal(descriptorCount(), before);
  t.equal(right, 100);
});

t.test('descriptors: 1,000 opens that fail (B25)', linuxOnly, async (t) => {
  const make = (dataShards: number): string => {
    const at = scratch.fresh();
    const writer = create(at, dataShards);
    writer.appendSync(records(0, 300));
    writer.closeSync();
    return at;
  };
  const breakages: readonly (readonly [string, string, string])[] = [
    [
      'a page that is no page',
      breakFile(make(4), 'meta.zr', (file) => writeFileSync(file, Buffer.alloc(8192, 0xff))),
      'MALFORMED',
    ],
    [
      'an empty meta.zr',
      breakFile(make(4), 'meta.zr', (file) => truncateSync(file, 0)),
      'MALFORMED',
    ],
    ['no meta.zr', breakFile(make(4), 'meta.zr', (file) => rmSync(file)), 'NOT_FOUND'],
    [
      'shard 200 of 255 missing',
      breakFile(make(255), 'data_200.zr', (file) => rmSync(file)),
      'MALFORMED',
    ],
    [
      'shard 254 cut',
      breakFile(make(255), 'data_254.zr', (file) => truncateSync(file, 1)),
      'MALFORMED',
    ],
    ['no folder', scratch.fresh(), 'NOT_FOUND'],
  ];
  const before = descriptorCount();
  for (const [what, at, expected] of breakages) {
    const codes = new Set<string>();
    for (let round = 0; round < 200; round += 1) codes.add(await codeOf(() => open(at)));
    t.strictSame([...codes], [expected], what);
  }
  const good = make(2);
  for (let round = 0; round < 200; round += 1) {
    await codeOf(() => Dense.open(good, { dtype: 'float32' }));
    await codeOf(() => Ragged.open(good));
    await codeOf(() => create(good));
  }
  t.equal(descriptorCount(), before, 'none is left open');
});

function breakFile(at: string, name: string, act: (file: string) => void): string {
  act(path.join(at, name));
  return at;
}

t.test('descriptors: builds that end in every way', linuxOnly, async (t) => {
  const before = descriptorCount();
  for (let round = 0; round < 100; round += 1) {
    const writer = create(scratch.fresh(), 20);
    writer.appendSync(records(0, 5));
    if (round % 4 === 0) await writer.close();
    else if (round % 4 === 1) writer.closeSync();
    else if (round % 4 === 2) writer.abort();
    else await writer[Symbol.asyncDispose]();
  }
  t.equal(descriptorCount(), before);
});

t.test('descriptors: a limit of 300 (B25)', linuxOnly, async (t) => {
  const at = scratch.fresh();
  const writer = create(at, 255);
  writer.appendSync(records(0, 300));
  writer.closeSync();
  const prefix = ['/bin/sh', '-c', 'ulimit -n 300; exec "$@"', 'sh'];
  const { code, stdout, stderr } = await runChild('builder', ['descriptors', at], { prefix });
  t.equal(code, 0, stderr);
  t.strictSame(JSON.parse(stdout), {
    codes: ['IO'],
    leaked: 0,
    left: ['store'],
    works: true,
    worksAgain: true,
  });
});

t.test('space of a small container (B26)', linuxOnly, async (t) => {
  for (const dataShards of [4, 255]) {
    const at = scratch.fresh();
    const writer = Dense.create(at, { codec: 'raw', dtype: 'uint8', itemShape: [10], dataShards });
    await writer.append(ndarray('uint8', [1, 10], new Uint8Array(10).fill(1)));
    await writer.close();
    const allocated = readdirSync(at)
      .map((name) => statSync(path.join(at, name)).blocks * 512)
      .reduce((sum, bytes) => sum + bytes, 0);
    t.ok(allocated <= 8192 + 4096, `${dataShards} shards, 1 used: ${allocated} bytes`);
  }
});

// ---- closing while reading ----

t.test('gather against close, 10,000 times (B24)', async (t) => {
  const at = scratch.fresh();
  const writer = create(at);
  writer.appendSync(records(0, 1000));
  writer.closeSync();
  const random = new Random(seed, 'close');
  const expected = records(0, 1000).data;
  const ends: Record<string, number> = {};
  const wrong: string[] = [];
  for (let round = 0; round < 10_000; round += 1) {
    const reader = Dense.open(at, { dtype: 'uint32' });
    const ids = Uint32Array.from({ length: 256 }, () => random.between(0, 999));
    const running = reader.gather(ids);
    if (round % 3 === 1) await new Promise((resolve) => setImmediate(resolve));
    if (round % 3 === 2) spin(random.between(0, 100));
    const closing: Promise<void>[] = [];
    const how = await codeOf(() => {
      if (random.chance(0.5)) closing.push(reader.close(), reader.close());
      else reader.closeSync();
    });
    ends[`close ${how}`] = (ends[`close ${how}`] ?? 0) + 1;
    const { data } = await running;
    const id = ids[round % 256] ?? 0;
    if (data[(round % 256) * items] !== expected[id * items]) wrong.push(`round ${round}: data`);
    const later = await codeOf(() => reader.gather([0]));
    const isOpen = how === 'BUSY';
    if (later !== (isOpen ? 'ok' : 'CLOSED')) wrong.push(`round ${round}: ${how}, then ${later}`);
    await Promise.all(closing);
    await reader.close();
  }
  t.strictSame(wrong, []);
  t.comment(JSON.stringify(ends));
  t.strictSame(
    Object.keys(ends).filter((end) => !/^close (ok|BUSY)$/.test(end)),
    [],
  );
});

function spin(us: number): void {
  const end = performance.now() + us / 1000;
  while (performance.now() < end);
}

// ---- what is at the path ----

t.test('anything at the path is EXISTS, and is left alone', async (t) => {
  const things: readonly (readonly [string, (at: string) => void, (at: string) => boolean])[] = [
    ['an empty folder', (at) => mkdirSync(at), (at) => readdirSync(at).length === 0],
    [
      'a folder with something in it',
      (at) => mkdirSync(path.join(at, 'x'), { recursive: true }),
      (at) => existsSync(path.join(at, 'x')),
    ],
    ['a file', (at) => writeFileSync(at, 'mine'), (at) => statSync(at).size === 4],
    [
      'a symbolic link to nowhere',
      (at) => symlinkSync('nowhere', at),
      (at) => readlinkSync(at) === 'nowhere',
    ],
    [
      'a symbolic link to a folder',
      (at) => symlinkSync(path.dirname(at), at),
      (at) => readlinkSync(at) === path.dirname(at),
    ],
    [
      'a container',
      (at) => {
        const elsewhere = scratch.fresh();
        create(elsewhere).closeSync();
        renameSync(elsewhere, at);
      },
      (at) => open(at).length === 0,
    ],
  ];
  for (const [what, make, isLeft] of things) {
    const at = scratch.fresh();
    make(at);
    t.equal(await outcomeOf(() => create(at)), 'LoaderxError EXISTS', `${what}, at create`);
    t.ok(isLeft(at), `${what} is left alone`);
    t.strictSame(beside(at), ['store']);

    const later = scratch.fresh();
    for (const close of [
      (writer: DenseWriter) => writer.close(),
      (writer: DenseWriter) => writer.closeSync(),
    ]) {
      const writer = create(later);
      writer.appendSync(records(0, 3));
      make(later);
      t.equal(await codeOf(() => close(writer)), 'EXISTS', `${what}, at close`);
      t.equal(await codeOf(() => close(writer)), 'EXISTS', 'each close has the same outcome');
      t.ok(isLeft(later), `${what} is left alone`);
      t.strictSame(beside(later), ['store'], 'and the build is discarded');
      rmSync(later, { recursive: true, force: true });
    }
  }
});

t.test('a link that has the name of a dead build: what it leads to is left alone', async (t) => {
  const at = scratch.fresh();
  const folder = path.dirname(at);
  const precious = path.join(folder, 'precious');
  const writer = create(precious);
  writer.appendSync(records(0, 3));
  writer.closeSync();
  const link = path.join(folder, `.${path.basename(at)}.build-000000000000`);
  symlinkSync('precious', link);
  create(at).closeSync();
  t.equal(open(precious).length, 3);
  t.equal(readlinkSync(link), 'precious');
  create(`${at}-2`).abort();
  t.equal(open(precious).length, 3);
});

t.test('a container never has the name of a build', async (t) => {
  const folder = path.dirname(scratch.fresh());
  for (const name of ['.c.build-0123456789ab', '..build-0123456789ab']) {
    t.equal(await codeOf(() => create(path.join(folder, name))), 'UNSUPPORTED', name);
  }
  for (const name of [
    'c.build-0123456789ab',
    '.c.build-0123456789',
    '.c.build-0123456789xy',
    '.build-0123456789ab',
  ]) {
    create(path.join(folder, name)).closeSync();
    t.equal(open(path.join(folder, name)).length, 0, name);
  }
});

t.test('the parent may be a link to a folder', async (t) => {
  const folder = path.dirname(scratch.fresh());
  mkdirSync(path.join(folder, 'real'));
  symlinkSync('real', path.join(folder, 'link'));
  for (const name of ['a', 'new/b', 'new/deep/c']) {
    create(path.join(folder, 'link', name)).closeSync();
    t.equal(open(path.join(folder, 'real', name)).length, 0, name);
  }
  symlinkSync('nowhere', path.join(folder, 'dangling'));
  t.equal(await codeOf(() => create(path.join(folder, 'dangling', 'x'))), 'IO');
  // No folder can be made there, and the system says that it is not there: not asked again and again.
  if (process.platform === 'linux') t.equal(await codeOf(() => create('/proc/x/y')), 'IO');
  writeFileSync(path.join(folder, 'file'), '');
  t.equal(await codeOf(() => create(path.join(folder, 'file', 'x'))), 'IO');
});

t.test('siblings: the live, the dead, and those of others', async (t) => {
  const at = scratch.fresh();
  const folder = path.dirname(at);
  const live = create(at);
  live.appendSync(records(0, 3));
  const [sibling = ''] = beside(at);
  t.match(sibling, /^\.store\.build-[0-9a-f]{12}$/, 'a hidden folder beside it');
  t.equal(await codeOf(() => open(path.join(folder, sibling))), 'LOCKED', 'it does not open');
  const error = await failureOf(() => create(at));
  t.equal(outcomeOfError(error), 'LoaderxError LOCKED');
  t.match(error.message, sibling, 'the message names it');
  await live.close();

  const others = [
    '.store.build-',
    '.store.build-xyz',
    '.store2.build-0123456789ab',
    '.store',
    'store.build-0123456789ab',
  ];
  for (const name of others) mkdirSync(path.join(folder, name));
  rmSync(at, { recursive: true });
  const dead = path.join(folder, '.store.build-0123456789ab');
  mkdirSync(dead);
  writeFileSync(path.join(dead, 'meta.zr'), Buffer.alloc(4096));
  writeFileSync(path.join(dead, 'data_0.zr'), 'x');
  writeFileSync(path.join(dead, 'dict.zr'), 'x');
  t.equal(await codeOf(() => open(dead)), 'NOT_PUBLISHED', 'a dead one does not open');
  create(at).abort();
  t.strictSame(beside(at), [...others].sort(), 'the dead one is gone, others are left alone');
});

t.test('a foreign file in a dead sibling is never removed', async (t) => {
  const at = scratch.fresh();
  const dead = path.join(path.dirname(at), '.store.build-0123456789ab');
  mkdirSync(dead);
  writeFileSync(path.join(dead, 'meta.zr'), Buffer.alloc(4096));
  writeFileSync(path.join(dead, 'thesis.txt'), 'mine');
  const writer = create(at);
  writer.appendSync(records(0, 3));
  await writer.close();
  t.ok(await isWhole(at, 3));
  t.ok(existsSync(path.join(dead, 'thesis.txt')));
});

t.test('the build folder is taken away midway', async (t) => {
  const at = scratch.fresh();
  const writer = create(at);
  writer.appendSync(records(0, 3));
  const [sibling = ''] = beside(at);
  renameSync(path.join(path.dirname(at), sibling), `${at}-elsewhere`);
  const error = await failureOf(() => writer.close());
  t.match(error.code, /^(IO|NOT_FOUND)$/, 'a typed error');
  t.notOk(existsSync(at));
});

t.test('an unpublished container of Python is NOT_PUBLISHED', async (t) => {
  const at = scratch.fresh();
  const writer = create(at, 1);
  writer.appendSync(records(0, 3));
  writer.closeSync();
  const meta = path.join(at, 'meta.zr');
  const page = readFileSync(meta);
  page.fill(0, 0, 8);
  page.fill(0, 16, 24);
  writeFileSync(meta, page);
  t.equal(await codeOf(() => open(at)), 'NOT_PUBLISHED');
});

// ---- names ----

t.test('every way to name a path', async (t) => {
  const folder = scratch.folder();
  const before = process.cwd();
  t.teardown(() => process.chdir(before));
  process.chdir(folder);
  const names: readonly (readonly [string, string | URL | Uint8Array, string])[] = [
    ['absolute', path.join(folder, 'a'), 'a'],
    ['relative', 'b', 'b'],
    ['relative with ./', './c', 'c'],
    ['relative with ../', `../${path.basename(folder)}/d`, 'd'],
    ['parents are made', 'e/f/g', 'e/f/g'],
    ['trailing slashes', 'h//', 'h'],
    ['doubled slashes', 'e//i', 'e/i'],
    ['a file: URL', pathToFileURL(path.join(folder, 'j k#?%20')), 'j k#?%20'],
    ['a Buffer', Buffer.from(path.join(folder, 'l')), 'l'],
    ['a relative Buffer', Buffer.from('m'), 'm'],
  ];
  for (const [what, name, where] of names) {
    const writer = create(name);
    writer.appendSync(records(0, 4));
    await writer.close();
    t.ok(await isWhole(path.join(folder, where), 4), what);
    t.ok(await isWhole(name, 4), `${what}: opened by the same name`);
  }
  const writer = create('moved');
  mkdirSync('other');
  process.chdir('other');
  writer.appendSync(records(0, 4));
  await writer.close();
  t.ok(await isWhole(path.join(folder, 'moved'), 4), 'published where it was begun');
  process.chdir(folder);
  const reader: DenseReader = Dense.open('moved');
  process.chdir('other');
  t.equal((await reader.slice()).shape[0], 4, 'and read from where it was opened');
  await reader.close();
  for (const [what, at] of [
    ['the root', '/'],
    ['a dot', '.'],
    ['two dots', '..'],
  ] as const) {
    t.equal(await codeOf(() => create(at)), 'EXISTS', what);
  }
});

t.test('names (B66)', posixOnly, async (t) => {
  const folder = path.join(scratch.folder(), `Ünï cøde 日本 #1 %20 'q'`);
  const names = [
    ' blank in front and behind ',
    'new\nline',
    'tab\tand "quotes" \'both\' `kinds`',
    'back\\slash',
    'ü'.normalize('NFC'),
    'ü'.normalize('NFD'),
    '日本語',
    'שלום',
    '🎲🎲🎲',
    '👩‍👩‍👧‍👦',
    '%20',
    '#?*[]{}$~!&|;<>',
    '-rf',
    '...',
    '.hidden',
    'x'.repeat(240),
    'x'.repeat(255),
    `${'x'.repeat(243)}.y`,
    '日'.repeat(80),
    '🎲'.repeat(60),
    'con',
    'a.zr',
    'meta.zr',
  ];
  for (const name of names) {
    const at = path.join(folder, name);
    const shown = JSON.stringify(name.length > 30 ? `${name.slice(0, 30)}…` : name);
    const absent = await failureOf(() => open(at));
    t.ok(absent.code === 'NOT_FOUND' && absent.path === at, `${shown}: errors show the name`);
    t.ok(absent.message.includes(at), shown);
    const writer = create(at);
    t.equal(await codeOf(() => create(at)), 'LOCKED', `${shown}: built once`);
    writer.appendSync(records(0, 4));
    await writer.close();
    t.ok(await isWhole(at, 4), shown);
    t.equal(await codeOf(() => create(at)), 'EXISTS');
  }
  t.strictSame(
    readdirSync(folder).sort(),
    [...names].sort(),
    'exactly these names, and no leftovers',
  );
  const similar = ['y'.repeat(240), 'y'.repeat(241)].map((name) => path.join(folder, name));
  const writers = similar.map((at) => create(at));
  t.pass('long names that begin alike do not lock each other');
  for (const writer of writers) writer.abort();
  const tooLong = await failureOf(() => create(path.join(folder, 'z'.repeat(256))));
  t.strictSame([tooLong.code, tooLong.osCode], ['IO', 'ENAMETOOLONG']);
});

t.test('names that are not UTF-8 (B66)', linuxOnly, async (t) => {
  const folder = scratch.folder();
  const at = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x66, 0xff, 0xfe, 0x6f])]);
  const absent = await failureOf(() => open(at));
  t.equal(absent.code, 'NOT_FOUND');
  t.equal(absent.path, `${folder}/f\\xff\\xfeo`, 'shown with escapes');
  const writer = create(at);
  t.equal(await codeOf(() => create(at)), 'LOCKED');
  writer.appendSync(records(0, 4));
  await writer.close();
  t.ok(await isWhole(at, 4));
  const names = readdirSync(Buffer.from(folder), { encoding: 'buffer' });
  t.strictSame(names, [Buffer.from([0x66, 0xff, 0xfe, 0x6f])], 'the very bytes');
  const below = Buffer.concat([at, Buffer.from('/inside')]);
  t.equal(await codeOf(() => create(Buffer.concat([at, Buffer.from('-2/inside')]))), 'ok');
  t.equal(await codeOf(() => open(below)), 'NOT_FOUND');
  t.equal(
    await outcomeOf(() => create(Buffer.concat([at, Buffer.from([0])]))),
    'RangeError INVALID_ARGUMENT',
    'a NUL byte',
  );
  t.equal(await outcomeOf(() => create('half \ud800 a pair')), 'RangeError INVALID_ARGUMENT');
});

t.test('files and folders get the usual permissions', linuxOnly, async (t) => {
  const before = process.umask(0o022);
  t.teardown(() => process.umask(before));
  const at = scratch.fresh();
  create(at).closeSync();
  t.equal(statSync(at).mode & 0o777, 0o755);
  for (const name of readdirSync(at))
    t.equal(statSync(path.join(at, name)).mode & 0o777, 0o644, name);
});

// ---- durable ----

t.test('durable: files, folder and parent are synced around the rename', async (t) => {
  for (const durable of [true, false, undefined]) {
    const at = scratch.fresh();
    const writer = create(at);
    await writer.append(records(0, 100));
    await writer.close({ durable });
    t.ok(await isWhole(at, 100), `durable: ${durable}`);
    const sync = scratch.fresh();
    const other = create(sync);
    other.appendSync(records(0, 100));
    other.closeSync({ durable });
    t.ok(await isWhole(sync, 100), `closeSync, durable: ${durable}`);
  }
  for (const options of [{ durable: 1 }, { durable: null }, { durably: true }, null, true]) {
    using writer = create(scratch.fresh());
    t.equal(await outcomeOf(() => writer.close(options as never)), 'TypeError INVALID_ARGUMENT');
    t.equal(
      await outcomeOf(() => writer.closeSync(options as never)),
      'TypeError INVALID_ARGUMENT',
    );
    writer.appendSync(records(0, 1));
    t.equal(writer.length, 1, 'the writer is as it was');
  }
});

t.test('durable: the order of system calls', async (t) => {
  const trace = ['strace', '-f', '-y', '-e', 'trace=fsync,fdatasync,rename,renameat,renameat2'];
  if (!onLinux || spawnSync('strace', ['-f', '-e', 'trace=none', 'true']).status !== 0) {
    t.pass('the order of system calls', { skip: 'strace is not at hand' });
    return;
  }
  const at = scratch.fresh();
  const { code, stderr } = await runChild('builder', ['durable', at], { prefix: trace });
  t.equal(code, 0, stderr);
  const calls = stderr.split('\n').flatMap((line) => {
    // Without the closing bracket: strace cuts a line where another thread comes in between.
    const sync = /f(?:data)?sync\(\d+<([^>]*)>/.exec(line);
    if (sync !== null) {
      const file = sync[1] ?? '';
      if (file === path.dirname(at)) return ['parent'];
      return [/\.build-[0-9a-f]+$/.test(file) ? 'folder' : path.basename(file)];
    }
    return /rename/.test(line) && line.includes('.store.build-') ? ['rename'] : [];
  });
  t.strictSame(
    calls,
    ['data_0.zr', 'data_1.zr', 'meta.zr', 'meta.zr', 'folder', 'rename', 'parent'],
    'table before page, all before the rename, the parent after it',
  );
});
