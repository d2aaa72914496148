// Conversions of a hub's dataset in a process of its own: killed at any moment, and on full disks.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t, { type Test } from 'tap';
import { open } from '../ts/store/open.js';
import { answerOf, startChild } from './support/child.js';
import { entriesBelow } from './support/hub.js';
import { gitId, HubServer, sha256 } from './support/hub-server.js';
import { numbersFile, rowsOfFile } from './support/parquet.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const repo = 'fx/a';
const isFull = process.env.LOADERX_FULL === '1';

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
