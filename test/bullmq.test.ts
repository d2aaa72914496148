// What loaderx/bullmq does without a Redis: options, the address that answers nobody, and missing peers. With one it
// is tried by `npm run test:distributed`.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import t from 'tap';
import { bullmqVersion, ioredisVersion } from '../ts/bullmq/peers.js';
import { madeColumnsOf, partDataOf } from '../ts/bullmq/spec.js';
import {
  type ConversionSpec,
  type EnqueueOptions,
  enqueueConversion,
  findConversion,
  type WorkerOptions,
  worker,
} from '../ts/bullmq.js';
import { Staging } from '../ts/converter/staging.js';
import { failureOf } from './support/outcome.js';
import { numbersFile } from './support/parquet.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const root = path.resolve(import.meta.dirname, '..');
const spec: ConversionSpec = { source: 'parquet', target: 'out', parts: 8, codec: 'zstd' };
const place: EnqueueOptions = { connection: { port: 1 } };

t.test('what cannot be is refused before anything is connected', async (t) => {
  const specs: readonly (readonly [string, unknown])[] = [
    ['spec', undefined],
    ['options', null],
    ['options', 'out'],
    ['source', { ...spec, source: '' }],
    ['source', { ...spec, source: 'a\0b' }],
    ['target', { ...spec, target: 7 }],
    ['parts', { ...spec, parts: 0 }],
    ['parts', { ...spec, parts: 65_537 }],
    ['parts', { ...spec, parts: '8' }],
    ['codec', { ...spec, codec: 'gzip' }],
    ['dict', { ...spec, codec: 'zstd_dict' }],
    ['dict', { ...spec, dict: 'file' }],
    ['dataShards', { ...spec, dataShards: 256 }],
    ['integrity', { ...spec, integrity: 1 }],
    ['splits', { ...spec, splits: 'train' }],
    ['columns[1]', { ...spec, columns: ['x', 3] }],
    ['strings', { ...spec, strings: 'latin1' }],
    ['names', { ...spec, names: 'all' }],
    ['pictures', { ...spec, pictures: 'dense' }],
    ['revision', { ...spec, revision: 'main' }],
    ['config', { ...spec, config: 'en' }],
    ['part', { ...spec, part: 3 }],
    ['__proto__', JSON.parse('{"source":"a","target":"b","parts":1,"codec":"raw","__proto__":1}')],
  ];
  for (const [field, value] of specs) {
    const error = await failureOf(() => enqueueConversion(value as ConversionSpec, place));
    t.match(error, { code: 'INVALID_ARGUMENT', field }, `spec: ${field}`);
  }
  const options: readonly (readonly [string, unknown])[] = [
    ['connection', {}],
    ['connection', { connection: 'redis' }],
    ['connection', { connection: { port: 0 } }],
    ['connection', { connection: { host: '' } }],
    ['connection', { connection: { url: 'x' } }],
    ['queue', { ...place, queue: 'a:b' }],
    ['queue', { ...place, queue: '' }],
    ['prefix', { ...place, prefix: 7 }],
    ['id', { ...place, id: '7' }],
    ['id', { ...place, id: 'a:b' }],
    ['attempts', { ...place, attempts: 0 }],
    ['backoffMs', { ...place, backoffMs: -1 }],
    ['retries', { ...place, retries: 3 }],
  ];
  for (const [field, value] of options) {
    const error = await failureOf(() => enqueueConversion(spec, value as EnqueueOptions));
    t.match(error, { code: 'INVALID_ARGUMENT', field }, `options: ${field}`);
  }
  const works: readonly (readonly [string, unknown])[] = [
    ['concurrency', { ...place, concurrency: 0 }],
    ['lockMs', { ...place, lockMs: 1.5 }],
    ['stallsMax', { ...place, stallsMax: -1 }],
    ['execArgv', { ...place, execArgv: '--x' }],
    ['onEvent', { ...place, onEvent: 'log' }],
  ];
  for (const [field, value] of works) {
    const error = await failureOf(() => worker(value as WorkerOptions));
    t.match(error, { code: 'INVALID_ARGUMENT', field }, `worker: ${field}`);
  }
  const wrong = await failureOf(() => findConversion('7', place));
  t.match(wrong, { code: 'INVALID_ARGUMENT', field: 'id' });
});

t.test(
  'where nobody answers, or no Redis does, all three say so',
  { timeout: 60_000 },
  async (t) => {
    const server = net.createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => {
      server.listen(0, '127.0.0.1', resolve);
    });
    const { port } = server.address() as net.AddressInfo;
    t.teardown(() => server.close());
    const there = { connection: { port } };
    const nowhere = { connection: { port: 1, password: 'secret' } };
    const said = await Promise.all([
      failureOf(() => enqueueConversion(spec, nowhere)),
      failureOf(() => worker(nowhere)),
      failureOf(() => findConversion('a', there)),
    ]);
    for (const error of said) {
      t.match(error, { code: 'NETWORK', message: /^Redis at 127\.0\.0\.1:\d+ cannot be reached/ });
      t.notMatch((error as Error).message, 'secret');
    }
  },
);

t.test('without the peers one sentence says what to install', (t) => {
  const app = scratch.folder();
  const installed = path.join(app, 'node_modules', 'loaderx');
  mkdirSync(installed, { recursive: true });
  cpSync(path.join(root, 'dist'), path.join(installed, 'dist'), { recursive: true });
  cpSync(path.join(root, 'package.json'), path.join(installed, 'package.json'));
  for (const name of ['build', 'prebuilds', 'node_modules/node-gyp-build']) {
    const target = path.join(app, name.startsWith('node') ? name : `node_modules/loaderx/${name}`);
    if (existsSync(path.join(root, name))) symlinkSync(path.join(root, name), target, 'junction');
  }
  writeFileSync(path.join(app, 'package.json'), '{ "type": "module" }\n');
  writeFileSync(
    path.join(app, 'use.js'),
    `import { worker } from 'loaderx/bullmq';
     await worker({ connection: {} }).catch(({ code, message }) => console.log(JSON.stringify({ code, message })));`,
  );
  const { stdout, stderr } = spawnSync(process.execPath, ['use.js'], {
    cwd: app,
    encoding: 'utf8',
  });
  t.match(JSON.parse(stdout || '{}'), { code: 'UNSUPPORTED' }, stderr);
  t.match(stdout, `npm install bullmq@${bullmqVersion} ioredis@${ioredisVersion}`);
  const { devDependencies } = JSON.parse(
    spawnSync(process.execPath, ['-p', 'JSON.stringify(require("./package.json"))'], {
      cwd: root,
      encoding: 'utf8',
    }).stdout,
  );
  t.equal(devDependencies.bullmq, bullmqVersion, 'the versions that are tested');
  t.equal(devDependencies.ioredis, ioredisVersion);
  t.end();
});

/** The process of a part, as a worker starts it. */
function startTask(source: string, target: string, busy: boolean) {
  const code = `data:text/javascript,${encodeURIComponent(`
    import fs from 'node:fs';
    import { isMainThread } from 'node:worker_threads';
    const { send } = process;
    if (isMainThread && ${busy}) process.send = (answer, ...rest) => {
      send.call(process, answer, ...rest);
      if (answer.kind === 'progress') for (;;);
    };
  `)}`;
  const child = spawn(
    process.execPath,
    ['--import', code, path.join(root, 'dist', 'bullmq', 'task-process.js')],
    { stdio: ['ignore', 'inherit', 'inherit', 'ipc', 'pipe'] },
  );
  const ended = new Promise<string>((resolve) => {
    child.once('exit', (exit, signal) => resolve(signal ?? String(exit)));
  });
  const answers: string[] = [];
  const said = (kind: string): Promise<void> =>
    new Promise((resolve) => {
      child.on('message', (answer: { kind: string }) => {
        answers.push(answer.kind);
        if (answer.kind === kind) resolve();
      });
    });
  const task = { kind: 'part', spec: { source, target, parts: 2, codec: 'raw' }, part: 1 };
  return { child, ended, said, answers, run: () => child.send({ kind: 'run', task }) };
}

t.test('the process of a part: it ends with its worker, busy or not', async (t) => {
  const source = scratch.folder();
  writeFileSync(path.join(source, 'train-0.parquet'), numbersFile(1));
  const target = scratch.fresh('out');
  const busy = startTask(source, target, true);
  const begun = busy.said('progress');
  await busy.said('ready');
  busy.run();
  await begun;
  // As if the worker were gone: its end of the pipe closes. The thread that converts hears nothing of it.
  busy.child.stdio[4]?.destroy();
  t.equal(await busy.ended, 'SIGKILL');
  t.match(readdirSync(target), [/^\.part-00001-of-00002\.convert-/], 'half of it is left');
  Staging.sweep(target, 'part-00000-of-00002');
  t.equal(readdirSync(target).length, 1, 'what is of another part stays');
  Staging.sweep(target);
  t.same(readdirSync(target), [], 'and goes with the next sweep');

  const idle = startTask(source, target, false);
  await idle.said('ready');
  idle.child.disconnect();
  t.match(await idle.ended, /^(1|SIGKILL)$/);

  const whole = startTask(source, target, false);
  const done = whole.said('done');
  await whole.said('ready');
  for (const signal of ['SIGINT', 'SIGTERM'] as const) whole.child.kill(signal);
  whole.run();
  await done;
  t.equal(await whole.ended, '0', 'signals of a terminal are for the worker');
  t.same(readdirSync(target), ['part-00001-of-00002']);
});

t.test('what another may have put into Redis', async (t) => {
  const parts: readonly (readonly [string, unknown])[] = [
    ['options', null],
    ['options', 'c-1'],
    ['run', { run: '../c', part: 0 }],
    ['run', { run: { toString: 'c' }, part: 0 }],
    ['part', { run: 'c', part: '../../etc' }],
    ['part', { run: 'c', part: -1 }],
    ['part', { run: 'c', part: 65_536 }],
    ['spec', { run: 'c', part: 0, spec }],
  ];
  for (const [field, data] of parts) {
    const failure = await failureOf(() => partDataOf(data));
    t.match(failure, { code: 'INVALID_ARGUMENT', field }, JSON.stringify(data));
  }
  t.strictSame(partDataOf({ run: 'c', part: 3 }), { run: 'c', part: 3 });
  const columns: readonly (readonly [string, unknown])[] = [
    ['columns', null],
    ['columns', { length: 1 }],
    ['options', [null]],
    ['column', [{ column: '../../up' }]],
    ['column', [{ column: '..' }]],
    ['column', [{ column: 'a\\b' }]],
    ['column', [{ column: 'a\0' }]],
    ['split', [{ split: '/etc', column: 'x' }]],
    ['__proto__', [JSON.parse('{ "column": "x", "__proto__": {} }')]],
  ];
  for (const [field, made] of columns) {
    const failure = await failureOf(() => madeColumnsOf(made));
    t.match(failure, { code: 'INVALID_ARGUMENT', field }, JSON.stringify(made));
  }
  t.strictSame(madeColumnsOf([{ column: 'x' }, { split: 'train', column: '__proto__' }]), [
    { column: 'x' },
    { split: 'train', column: '__proto__' },
  ]);
});
