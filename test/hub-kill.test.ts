// Conversions of a hub's dataset in a process of its own: killed at any moment, and on full disks.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { open } from '../ts/store/open.js';
import { answerOf, startChild } from './support/child.js';
import { entriesBelow } from './support/hub.js';
import { gitId, HubServer, sha256 } from './support/hub-server.js';
import { isFull } from './support/limits.js';
import { numbersFile, rowsOfFile } from './support/parquet.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const repo = 'fx/a';

interface Answer {
  readonly root?: string;
  readonly error?: {
    readonly code: string;
    readonly osCode: string;
    readonly path: string;
    readonly message: string;
  };
  readonly beside: readonly string[];
}

/** A hub with a dataset of so many train files and one test file. */
async function hub(t: Test, trainFiles: number): Promise<HubServer> {
  const server = await HubServer.start(t);
  const train = Array.from({ length: trainFiles }, (_, index) => [
    `data/train-000${index + 10}-of-000${trainFiles + 10}.parquet`,
    numbersFile(index),
  ]);
  server.commit(repo, 'main', {
    ...Object.fromEntries(train),
    'data/test-00000-of-00001.parquet': numbersFile(99),
    'README.md': '---\nlicense: mit\n---\n',
  });
  return server;
}

t.test(
  'killed at any moment, nothing is half there, and another run completes it (B84)',
  async (t) => {
    const server = await hub(t, 3);
    const args = (cache: string, root: string) => [server.endpoint, repo, cache, root];
    const expectedRoot = scratch.fresh('root');
    const answer = await answerOf(t, 'hub-converter', args(scratch.folder(), expectedRoot));
    t.match(answer, { root: expectedRoot, beside: ['root'] });
    const requests = server.taken().length;
    const expected = entriesBelow(expectedRoot);
    for (const [split, rows] of [
      ['train', 3 * rowsOfFile],
      ['test', rowsOfFile],
    ] as const) {
      const reader = open(path.join(expectedRoot, split, 'x'));
      t.equal(reader.length, rows, split);
      reader.closeSync();
    }

    const seed = Number(process.env.LOADERX_SEED ?? Math.floor(Math.random() * 2 ** 31));
    t.comment(`LOADERX_SEED=${seed}`);
    const kills = isFull ? 20 : 5;
    for (let kill = 0; kill < kills; kill += 1) {
      const cache = scratch.folder();
      const root = scratch.fresh('root');
      // At a request, in the middle of what it answers, or while the containers are written.
      const spread = (seed + kill * 7919) % 1000;
      const moment = 1 + Math.floor((kill * (requests + 4)) / kills);
      const child = startChild('hub-converter', args(cache, root));
      let seen = 0;
      server.intercept = () => {
        seen += 1;
        if (seen === moment) setTimeout(() => child.process.kill('SIGKILL'), spread / 100);
        return undefined;
      };
      server.cutAt = (_, __, bytes) =>
        seen >= moment ? Math.floor((bytes * spread) / 1000) : undefined;
      if (moment > requests) {
        await child.said('loaded').catch(() => {});
        setTimeout(() => child.process.kill('SIGKILL'), spread / 20);
      }
      await child.ended;
      server.intercept = undefined;
      server.cutAt = undefined;

      const about = `killed at request ${moment} of ${requests}`;
      if (existsSync(root)) t.strictSame(entriesBelow(root), expected, `${about}: complete`);
      const blobs = path.join(cache, 'datasets--fx--a', 'blobs');
      const names = existsSync(blobs) ? readdirSync(blobs) : [];
      for (const name of names.filter((one) => !one.endsWith('.incomplete'))) {
        const data = readFileSync(path.join(blobs, name));
        t.equal(name.length === 64 ? sha256(data) : gitId(data), name, `${about}: whole content`);
      }
      if (existsSync(root)) continue;
      const after = await answerOf(t, 'hub-converter', args(cache, root));
      t.match(after, { root, beside: ['root'] }, `${about}: then done, and nothing is left beside`);
      t.strictSame(entriesBelow(root), expected, `${about}: as if it had not been`);
      const left = readdirSync(blobs).filter((one) => /^[0-9a-f]{40,64}\.loaderx/.test(one));
      t.strictSame(left, [], `${about}: no content is left half loaded`);
    }
  },
);

t.test('the command line takes datasets of a hub, and never says the token', async (t) => {
  const token = 'hf_WouldBeATokenIfItWereOne';
  const server = await hub(t, 2);
  const cli = fileURLToPath(new URL('../dist/cli.js', import.meta.url));
  const home = scratch.folder();
  /** Not spawnSync: the hub is in this process. */
  const run = (args: readonly string[], more: Record<string, string> = {}) =>
    new Promise<{ code: number | null; stdout: string; stderr: string }>((resolve) => {
      const { NODE_OPTIONS: _, ...inherited } = process.env;
      const env = {
        ...inherited,
        HF_HOME: home,
        HF_ENDPOINT: server.endpoint,
        HF_TOKEN: token,
        ...more,
      };
      const child = spawn(process.execPath, [cli, 'convert', ...args], { env });
      const said = { stdout: '', stderr: '' };
      for (const name of ['stdout', 'stderr'] as const) {
        child[name].on('data', (text) => {
          said[name] += text;
        });
      }
      child.on('close', (code) => {
        t.notMatch(said.stdout + said.stderr, /WouldBeAToken|secret-of-the-url/);
        resolve({ code, ...said });
      });
    });

  const root = scratch.fresh('root');
  t.match(await run([`hf://${repo}`, root, '--codec', 'raw', '--split', 'train']), {
    code: 0,
    stderr: '',
  });
  t.strictSame(readdirSync(root), ['train']);
  t.equal(server.taken('storage').length, 2, 'only the files of that split were loaded');
  const reader = open(path.join(root, 'train', 'x'));
  t.equal(reader.length, 2 * rowsOfFile);
  reader.closeSync();

  const target = scratch.fresh('root');
  const args = [`hf://${repo}`, target, '--codec', 'raw'];
  t.match(await run([...args, '--revision', 'nosuch']), {
    code: 3,
    stderr: /no branch, tag or commit "nosuch"/,
  });
  t.match(await run([...args, '--config', 'nosuch']), {
    code: 2,
    stderr: /no config "nosuch"; it has "default"/,
  });
  t.match(await run(args, { HF_HUB_OFFLINE: '1' }), {
    code: 3,
    stderr: /test-00000-of-00001.parquet" is not in the cache/,
  });
  t.match(await run(['hf://../x', target, '--codec', 'raw']), { code: 2 });
  server.intercept = () => ({ status: 403, headers: { 'x-error-code': 'GatedRepo' }, body: token });
  t.match(await run([...args, '--json']), { code: 3, stdout: /"code": "GATED"/ });
  t.strictSame(readdirSync(path.dirname(target)), []);
});

/** Runs what follows with a file system of 1 MiB at the folder. */
function onSmallDisk(folder: string): readonly string[] {
  return [
    ...['unshare', '--mount', ...(process.getuid?.() === 0 ? [] : ['--map-root-user'])],
    ...['/bin/sh', '-c', 'mount -t tmpfs -o size=1m tmpfs "$0" && exec "$@"', folder],
  ];
}

t.test('a full disk is named, whichever it is (B86)', async (t) => {
  const [command = '', ...rest] = onSmallDisk(scratch.folder());
  if (process.platform !== 'linux' || spawnSync(command, [...rest, 'true']).status !== 0) {
    t.pass('full disks', { skip: 'nothing can be mounted here' });
    return;
  }
  const server = await hub(t, 20);
  for (const which of ['cache', 'output']) {
    const cache = scratch.folder();
    const out = scratch.folder();
    mkdirSync(path.join(out, 'o'));
    const root = path.join(out, 'o', 'root');
    const small = which === 'cache' ? cache : path.dirname(root);
    const prefix = onSmallDisk(small);
    const answer = (await answerOf(t, 'hub-converter', [server.endpoint, repo, cache, root], {
      prefix,
    })) as Answer;
    t.match(
      answer.error,
      { code: /^(IO|BUILD_FAILED)$/, osCode: 'ENOSPC' },
      `${which}: ${answer.error?.message}`,
    );
    t.ok(answer.error?.path.startsWith(small), `${answer.error?.path} is on the full disk`);
    t.strictSame(answer.beside, [], 'no root, and nothing beside it');
    if (which === 'cache') t.match(answer.error?.message, /set HF_HUB_CACHE or cacheDir/);
  }
});
