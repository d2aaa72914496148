// One cache for this package and Python's client: what the one loaded the other reads, without a request.

import { spawn } from 'node:child_process';
import path from 'node:path';
import t from 'tap';
import { ensurePythonEnvironment } from '../scripts/python-environment.mjs';
import { bytesOf, Caller, contentsOf } from './support/hub.js';
import { gitId, HubServer, sha256 } from './support/hub-server.js';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const repo = 'fx/a';
const folder = path.join(import.meta.dirname, 'hub');

const skip = isFull ? false : 'it installs a Python package: LOADERX_FULL=1';

const train = bytesOf(200_000, 1);
const test = bytesOf(3_000, 2);
const again = Uint8Array.from(train);
const readme = Buffer.from('---\nlicense: mit\n---\n');
const files = {
  'README.md': readme,
  'data/c#/train a b%20[1]@x.parquet': train,
  'data/test.parquet': test,
  'data/train-again.parquet': again,
};
const hashes = Object.fromEntries(
  Object.entries(files).map(([name, data]) => [name, sha256(data)]),
);

interface Answer {
  readonly commit: string;
  readonly files: Readonly<Record<string, string>>;
  readonly tree: readonly string[];
  readonly refs: readonly string[];
  readonly warnings: readonly string[];
  readonly incomplete: number;
}

t.test("Python's client and this one share a cache", { skip, timeout: 280_000 }, async (t) => {
  const python = ensurePythonEnvironment({
    name: 'python-hub',
    versionMin: [3, 10],
    pinned: path.join(folder, 'requirements.txt'),
    probe: 'import huggingface_hub',
  });
  if (python === null) {
    t.pass('Python', { skip: 'there is no Python 3.10 or newer' });
    return;
  }
  const ask = (what: string, revision: string, env: Record<string, string>): Promise<Answer> =>
    new Promise((resolve, reject) => {
      const args = [path.join(folder, 'cache.py'), what, repo, revision];
      const child = spawn(python.python, args, { env: { ...process.env, ...python.env, ...env } });
      let stdout = '';
      let stderr = '';
      child.stdout.on('data', (text) => {
        stdout += text;
      });
      child.stderr.on('data', (text) => {
        stderr += text;
      });
      child.on('error', reject);
      child.on('close', (code) => {
        if (code === 0) resolve(JSON.parse(stdout.trim().split('\n').at(-1) ?? '') as Answer);
        else reject(new Error(`${what}: ${stderr}`));
      });
    });
  const server = await HubServer.start(t);
  const revisions = ['main', 'v1', 'refs/pr/1'];
  const commit = server.commit(repo, 'main', files);
  for (const revision of revisions.slice(1)) server.commit(repo, revision, files, commit);

  // Ours, read by Python.
  const caller = new Caller(scratch, server);
  for (const revision of revisions) await caller.load(repo, { revision });
  server.taken();
  for (const revision of [...revisions, commit]) {
    const answer = await ask('read', revision, {
      HF_HUB_CACHE: caller.cacheDir,
      HF_HUB_OFFLINE: '1',
    });
    t.equal(answer.commit, commit, revision);
    t.strictSame(answer.files, hashes, 'every file, byte for byte');
    t.strictSame(answer.tree, Object.keys(files).sort());
    t.strictSame(
      [answer.refs, answer.warnings, answer.incomplete],
      [['main', 'refs/pr/1', 'v1'], [], 0],
    );
  }
  t.strictSame(server.taken(), []);
  const online = {
    HF_HUB_CACHE: caller.cacheDir,
    HF_ENDPOINT: server.endpoint,
    HF_HUB_DISABLE_XET: '1',
  };
  await ask('fill', 'main', online);
  t.strictSame(server.taken('storage'), [], 'with a hub it loads nothing again');

  // Python's, read by us.
  const theirs = new Caller(scratch, server);
  const filled = await ask('fill', 'main', { ...online, HF_HUB_CACHE: theirs.cacheDir });
  t.strictSame(filled.files, hashes);
  server.taken();
  const loaded = contentsOf(await theirs.load(repo));
  t.strictSame(
    loaded,
    {
      train: {
        'data/c#/train a b%20[1]@x.parquet': sha256(train),
        'data/train-again.parquet': sha256(again),
      },
      test: { 'data/test.parquet': sha256(test) },
    },
    'by the list that it left',
  );
  t.strictSame(
    server.taken().map(({ url }) => url.split('?')[0]),
    ['/api/datasets/fx/a/revision/main'],
  );
  theirs.env.HF_HUB_OFFLINE = '1';
  t.strictSame(contentsOf(await theirs.load(repo)), loaded);
  t.strictSame(server.taken(), []);
  t.ok(gitId(readme));
});
