// Content on its way into the cache: broken off, wrong, loaded by two, killed, on a full disk, read by
// Python's client. The real client of the hub loads from a hub on loopback.

import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { bytesOf, Caller, contentsOf, entriesBelow, failureOf } from './support/hub.js';
import { etagOf, HubServer, sha256 } from './support/hub-server.js';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const repo = 'fx/a';

const big = bytesOf(300_000, 1);
const name = 'data/train-00000-of-00001.parquet';

async function begin(
  t: Test,
  files: Readonly<Record<string, string | Uint8Array>> = { [name]: big },
) {
  const server = await HubServer.start(t);
  const commit = server.commit(repo, 'main', files);
  return { server, commit, caller: new Caller(scratch, server) };
}

const incompleteIn = (caller: Caller): string[] =>
  readdirSync(path.join(caller.folder(repo), 'blobs')).filter((one) => one.endsWith('.incomplete'));

t.test('a connection that is cut at any offset is gone on with from there', async (t) => {
  const count = isFull ? 50 : 12;
  const offsets = [0, 1, big.length - 1, big.length];
  while (offsets.length < count) {
    offsets.push(Math.floor((big.length * (offsets.length - 3)) / (count - 3)));
  }
  const whole = { train: { [name]: sha256(big) } };
  const { server } = await begin(t);
  const undisturbed = new Caller(scratch, server);
  await undisturbed.load(repo);
  const expected = entriesBelow(undisturbed.folder(repo));
  for (const offset of offsets) {
    const caller = new Caller(scratch, server);
    let cuts = 0;
    server.cutAt = (_, file) => {
      cuts += 1;
      return file === name && cuts === 1 ? offset : undefined;
    };
    server.taken();
    t.strictSame(contentsOf(await caller.load(repo)), whole, `cut at ${offset}`);
    t.strictSame(entriesBelow(caller.folder(repo)), expected, `the cache is as if it had not been`);
    const ranges = server.taken('storage').map(({ headers }) => headers.range);
    t.equal(ranges[0], undefined);
    for (const range of ranges.slice(1)) t.match(range ?? 'none', /^(?:bytes=\d+-299999|none)$/);
  }
});

t.test('cut again and again, it gets on', async (t) => {
  const { server, caller } = await begin(t);
  server.cutAt = (_, __, bytes) => Math.min(bytes, 20_000);
  t.strictSame(contentsOf(await caller.load(repo)), { train: { [name]: sha256(big) } });
  const from = server
    .taken('storage')
    .map(({ headers }) => Number(/\d+/.exec(String(headers.range ?? 'bytes=0'))?.[0]));
  t.strictSame(
    from,
    [...from].sort((left, right) => left - right),
    'never from further in front',
  );
  t.ok(from.length >= 15);

  server.cutAt = () => 0;
  const stuck = new Caller(scratch, server);
  t.match(await failureOf(stuck.load(repo)), { code: 'NETWORK' });
  t.strictSame(stuck.waits, [1000, 2000, 4000, 8000], 'without any byte it ends');
});

t.test('a server without ranges is heard out', async (t) => {
  const { server, caller } = await begin(t);
  server.hasRanges = false;
  let cuts = 0;
  server.cutAt = () => {
    cuts += 1;
    return cuts < 4 ? 50_000 * cuts : undefined;
  };
  t.strictSame(contentsOf(await caller.load(repo)), { train: { [name]: sha256(big) } });
});

t.test('what an attempt before has loaded is not loaded again', async (t) => {
  const { server, caller } = await begin(t);
  server.cutAt = (_, __, bytes) => (bytes === big.length ? 100_000 : 0);
  t.match(await failureOf(caller.load(repo)), { code: 'NETWORK' });
  const [left = ''] = incompleteIn(caller);
  t.match(left, /^[0-9a-f]{64}\.loaderx-[0-9a-f]{8}-0-[0-9a-f]{8}\.incomplete$/);
  server.cutAt = undefined;
  server.taken();
  t.strictSame(contentsOf(await caller.load(repo)), { train: { [name]: sha256(big) } });
  t.strictSame(
    server.taken('storage').map(({ headers }) => headers.range),
    ['bytes=100000-299999'],
  );
  t.strictSame(incompleteIn(caller), []);
});

t.test('what a process before has left is taken over, if it is right', async (t) => {
  const etag = sha256(big);
  const gone = spawnSync(process.execPath, ['-e', '']).pid;
  const lefts: readonly (readonly [string, Uint8Array, number])[] = [
    ['a part', big.subarray(0, 123_456), 1],
    ['all', big, 0],
    ['nothing', new Uint8Array(0), 1],
    ['too much', bytesOf(300_001, 1), 1],
    ['something else', bytesOf(1000, 9), 2],
    ['all of something else', bytesOf(300_000, 9), 1],
  ];
  for (const [what, left, requests] of lefts) {
    const { server, caller } = await begin(t);
    await caller.load(repo, { splits: ['train'] });
    const blobs = path.join(caller.folder(repo), 'blobs');
    const [machine] = /(?<=loaderx-)[0-9a-f]{8}/.exec(await ownNameOf(t)) ?? [];
    renameSync(path.join(blobs, etag), path.join(blobs, 'away'));
    writeFileSync(path.join(blobs, `${etag}.loaderx-${machine}-${gone}-00000000.incomplete`), left);
    server.taken();
    t.strictSame(contentsOf(await caller.load(repo)), { train: { [name]: etag } }, what);
    t.equal(server.taken('storage').length, requests, `${what}: requests`);
    t.strictSame(incompleteIn(caller), [], what);
  }

  // One that is being loaded is left alone.
  const { caller } = await begin(t);
  const blobs = path.join(caller.folder(repo), 'blobs');
  mkdirSync(blobs, { recursive: true });
  const [machine] = /(?<=loaderx-)[0-9a-f]{8}/.exec(await ownNameOf(t)) ?? [];
  const others = [
    `${etag}.loaderx-${machine}-${process.ppid}-00000000.incomplete`,
    `${etag}.loaderx-ffffffff-${gone}-00000000.incomplete`,
    `${etag}.incomplete`,
  ];
  for (const other of others) writeFileSync(path.join(blobs, other), 'theirs');
  t.strictSame(contentsOf(await caller.load(repo)), { train: { [name]: etag } });
  t.strictSame(incompleteIn(caller).sort(), others.sort());
  for (const other of others) t.equal(readFileSync(path.join(blobs, other), 'utf8'), 'theirs');
});

/** The name that a load on this machine gives to what is not whole. */
async function ownNameOf(t: Test): Promise<string> {
  const { server, caller } = await begin(t);
  server.cutAt = () => 0;
  await failureOf(caller.load(repo));
  return incompleteIn(caller)[0] ?? '';
}

t.test('what is not of its hash never stands at its name', async (t) => {
  const wrong = bytesOf(big.length, 2);
  const { server, commit, caller } = await begin(t);
  server.intercept = ({ host }) => (host === 'storage' ? { status: 200, body: wrong } : undefined);
  t.match(await failureOf(caller.load(repo)), {
    code: 'NETWORK',
    message: /not what the hub's list has, by its hash/,
  });
  t.strictSame(readdirSync(path.join(caller.folder(repo), 'blobs')), [], 'nor is it kept');

  const faulty: readonly (readonly [string, Parameters<typeof answer>[0], RegExp])[] = [
    [
      'too long by its header',
      { body: bytesOf(300_001, 1), headers: { 'content-length': '300001' } },
      /sends "300001" bytes where its list has 300000/,
    ],
    [
      'too short by its header',
      { body: bytesOf(299_999, 1), headers: { 'content-length': '299999' } },
      /sends "299999" bytes/,
    ],
    [
      'too long',
      { body: bytesOf(300_001, 1), headers: { 'transfer-encoding': 'chunked' } },
      /more came/,
    ],
    ['a status of success that is none', { status: 203, body: big }, /status 203/],
    [
      'part that was not asked for',
      { status: 206, body: big, headers: { 'content-range': 'bytes 0-299999/300001' } },
      /bytes 0-299999\/300001/,
    ],
    ['part without a range', { status: 206, body: big }, /no range/],
    ['no such range', { status: 416, headers: { 'content-range': 'bytes */1' } }, /status 416/],
  ];
  function answer(one: { status?: number; body?: Uint8Array; headers?: Record<string, string> }) {
    return { status: 200, ...one };
  }
  for (const [what, one, message] of faulty) {
    const fresh = new Caller(scratch, server);
    server.intercept = ({ host }) => (host === 'storage' ? answer(one) : undefined);
    t.match(await failureOf(fresh.load(repo)), { code: 'NETWORK', message }, what);
    t.notOk(entriesBelow(fresh.folder(repo))[`blobs/${sha256(big)}`], what);
  }

  // The hub names another content than its list has.
  const renamed = new Caller(scratch, server);
  server.intercept = ({ url }) =>
    url.includes('/resolve/')
      ? { status: 302, headers: { location: '/x', 'x-linked-etag': `"${'0'.repeat(64)}"` } }
      : url === '/x'
        ? { status: 200, body: big }
        : undefined;
  t.match(await failureOf(renamed.load(repo)), {
    code: 'NETWORK',
    message: /content "0+"… .* where its list has/,
  });

  // The content changes between two attempts.
  const changed = new Caller(scratch, server);
  let answers = 0;
  server.intercept = ({ host }) => {
    if (host !== 'storage') return undefined;
    answers += 1;
    if (answers === 1) return undefined;
    return { status: 200, body: big, headers: { etag: '"other"' } };
  };
  server.cutAt = () => 1000;
  t.match(await failureOf(changed.load(repo)), {
    code: 'NETWORK',
    message: /its content changed while it was read/,
  });
  t.ok(commit);
});

t.test('empty files, files outside of the large file storage, and one content twice', async (t) => {
  const csv = Buffer.from('---\nlicense: mit\n---\n');
  const { server, caller } = await begin(t, {
    'README.md': csv,
    'a.parquet': new Uint8Array(0),
    'b.parquet': big,
    'c/b again.parquet': big,
  });
  t.strictSame(contentsOf(await caller.load(repo)), {
    train: {
      'a.parquet': sha256(new Uint8Array(0)),
      'b.parquet': sha256(big),
      'c/b again.parquet': sha256(big),
    },
  });
  t.equal(server.taken('storage').length, 1);
  t.ok(entriesBelow(caller.folder(repo))[`blobs/${etagOf('README.md', csv)}`], "by git's hash");
});

t.test('no more than four files come at a time, and all of them do', async (t) => {
  const names = Array.from(
    { length: 12 },
    (_, index) => `data/train-000${index + 10}-of-00012.parquet`,
  );
  const { server, caller } = await begin(
    t,
    Object.fromEntries(names.map((one, index) => [one, bytesOf(5000 + index, index)])),
  );
  let open = 0;
  let most = 0;
  let release = (): void => {};
  const four = new Promise<void>((resolve) => {
    release = resolve;
  });
  server.onContent = async () => {
    open += 1;
    most = Math.max(most, open);
    if (open === 4) release();
    await four;
    open -= 1;
  };
  const files = await caller.load(repo);
  t.equal(files.splits.get('train')?.length, 12);
  t.equal(most, 4);
});

t.test('when a file fails the others stop, and what they have is kept', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f'].map((one) => `${one}.parquet`);
  const { server, caller } = await begin(
    t,
    Object.fromEntries(names.map((one, index) => [one, bytesOf(50_000 + index, index)])),
  );
  server.intercept = ({ host, url }) =>
    host === 'storage' && url.includes('/b.parquet') ? { status: 418 } : undefined;
  t.match(await failureOf(caller.load(repo)), { code: 'NETWORK', file: 'b.parquet' });
  server.intercept = undefined;
  const files = await caller.load(repo);
  t.equal(files.splits.get('train')?.length, 6);
  t.strictSame(incompleteIn(caller), []);
});

t.test('two load the same at a time', async (t) => {
  const { server, caller } = await begin(t);
  const both = await Promise.all([caller.load(repo), caller.load(repo), caller.load(repo)]);
  for (const files of both) t.strictSame(contentsOf(files), { train: { [name]: sha256(big) } });
  t.strictSame(incompleteIn(caller), []);
  t.ok(server);
});

t.test('folders are as open as the process makes them', async (t) => {
  if (process.platform === 'win32') {
    t.pass('permissions', { skip: 'Windows has others' });
    return;
  }
  const { caller, commit } = await begin(t);
  await caller.load(repo);
  const umask = process.umask();
  t.equal(
    statSync(path.join(caller.folder(repo), 'snapshots', commit)).mode & 0o777,
    0o777 & ~umask,
  );
  t.equal(
    statSync(path.join(caller.folder(repo), 'blobs', sha256(big))).mode & 0o777,
    0o666 & ~umask,
  );
});
