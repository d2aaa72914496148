// @ts-check
// loaderx/bullmq against a real Redis on the loopback and two workers, all of which may be killed.
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { inRoot } from '../script.mjs';
import { freePort, programAt, Scene } from './scene.mjs';

/** @type {typeof import('../../ts/bullmq.js')} */
const bullmq = await import(new URL('../../dist/bullmq.js', import.meta.url).href);

const parts = 8;

/** @param {string | undefined} only the name of a play */
export async function queue(only) {
  const scene = new Scene('bullmq');
  if (programAt('redis-server') === undefined) {
    scene.skip('redis-server is not installed');
    fs.rmSync(scene.folder, { recursive: true });
    return scene.tally;
  }
  const stage = new Stage(scene, await freePort());
  try {
    await scene.begin();
    await stage.startRedis();
    stage.hire();
    stage.hire();
    for (const [name, play] of Object.entries(plays)) {
      if (only !== undefined && name !== only) continue;
      stage.clearFaults();
      try {
        await play(stage, scene, name);
      } catch (error) {
        scene.check(false, name, error instanceof Error ? error.message : error);
        for (const { output } of stage.workers) process.stdout.write(`${output}\n`);
      }
    }
    if (process.env.SHOW)
      for (const { output } of stage.workers) process.stdout.write(`${output}\n----\n`);
    await stage.dismiss();
  } finally {
    await stage.close();
    await scene.end();
  }
  return scene.tally;
}

/** A conversion that takes longer is stuck. */
const patience = () => ({ pollMs: 50, signal: AbortSignal.timeout(60_000) });

/** Redis, workers and faults. */
class Stage {
  /** @type {ReturnType<Scene['start']>[]} */
  workers = [];
  faults;
  /** @type {ReturnType<Scene['start']> | undefined} */
  #redis;
  #scene;
  #place;

  /** @param {Scene} scene @param {number} port */
  constructor(scene, port) {
    this.#scene = scene;
    this.#place = { connection: { port } };
    this.faults = scene.at('faults');
    fs.mkdirSync(this.faults);
    fs.mkdirSync(scene.at('redis'));
  }

  async startRedis() {
    const { port } = this.#place.connection;
    this.#redis = this.#scene.start('redis-server', [
      ...['--bind', '127.0.0.1', '--port', String(port), '--protected-mode', 'yes'],
      ...['--dir', this.#scene.at('redis'), '--save', '', '--appendonly', 'yes'],
      ...['--appendfsync', 'everysec', '--maxmemory-policy', 'noeviction'],
    ]);
    const redis = this.#redis;
    await this.#scene.until(
      () => /ready to accept connections/i.test(redis.output),
      'the start of redis-server',
    );
  }

  /** @param {NodeJS.Signals} signal */
  async stopRedis(signal) {
    this.#redis?.child.kill(signal);
    await this.#redis?.ended;
  }

  /** Starts a worker. */
  hire() {
    const program = inRoot('test', 'distributed', 'worker.mjs');
    const { port } = this.#place.connection;
    const worker = this.#scene.start(process.execPath, [program, String(port), this.faults], {
      FAULTS: this.faults,
    });
    this.workers.push(worker);
    return worker;
  }

  /** What workers said, of a conversion. @param {string} id */
  events(id) {
    const all = this.workers.flatMap(({ events }) => events);
    return all.filter(({ job }) => typeof job === 'string' && job.startsWith(id));
  }

  /** @param {number} part @param {string} what */
  fault(part, what) {
    fs.writeFileSync(path.join(this.faults, `part-${part}`), what);
  }

  clearFaults() {
    for (const name of fs.readdirSync(this.faults)) fs.rmSync(path.join(this.faults, name));
  }

  /** Whether a part has begun to write, for the so manieth time. @param {number} part */
  hasBegun(part, time = 1) {
    return fs.existsSync(path.join(this.faults, `part-${part}.begun-${time}`));
  }

  /** The processes that tried a part. @param {number} part */
  tries(part) {
    const file = path.join(this.faults, `part-${part}.tries`);
    return fs.existsSync(file) ? fs.readFileSync(file, 'utf8').trim().split('\n').map(Number) : [];
  }

  /** @param {string} id */
  enqueue(id, target = this.#scene.at(id)) {
    return bullmq.enqueueConversion(
      { source: this.#scene.source, target, parts, codec: 'zstd', integrity: true },
      { ...this.#place, id, backoffMs: 100 },
    );
  }

  /** @param {string} id */
  find(id) {
    return bullmq.findConversion(id, this.#place);
  }

  /** @param {string} id @param {import('../../ts/bullmq.js').QueuedConversion} conversion */
  async finished(id, conversion) {
    const { sets } = await conversion.done(patience());
    await conversion.remove();
    await conversion.close();
    this.#scene.check(sets.length === 1, `${id}: one set`, sets);
    await this.#scene.checkTarget(this.#scene.at(id), parts, id);
  }

  /** Closes the workers as a service manager does. */
  async dismiss() {
    const alive = this.workers.filter(({ child }) => child.exitCode === null && !child.killed);
    for (const { child } of alive) child.kill('SIGTERM');
    const codes = await Promise.all(alive.map(({ ended }) => ended));
    this.#scene.check(codes.join() === '0,0', 'workers end when they are told to', codes);
  }

  async close() {
    await this.stopRedis('SIGTERM');
  }
}

/** @param {number} pid */
function isAlive(pid) {
  try {
    process.kill(pid, 0);
    // What nobody has asked for yet is gone all the same.
    return !/^State:\s+Z/m.test(fs.readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** @type {Readonly<Record<string, (stage: Stage, scene: Scene, id: string) => Promise<void>>>} */
const plays = {
  async plain(stage, scene, id) {
    const conversion = await stage.enqueue(id);
    const again = await stage.enqueue(id);
    await again.close();
    await stage.finished(id, conversion);
    const done = stage.events(id).filter(({ kind }) => kind === 'done');
    scene.check(done.length === parts + 1, `${id}: each job once`, done);
    scene.check((await stage.find(id)) === undefined, `${id}: nothing is left in the queue`);
  },

  // One worker is killed while a child of it is busy in the middle of a part.
  async killed(stage, scene, id) {
    stage.fault(3, 'hang 1');
    const conversion = await stage.enqueue(id);
    await scene.until(() => stage.hasBegun(3), 'part 3 has begun');
    const hidden = fs.readdirSync(scene.at(id)).filter((name) => name.startsWith('.part-00003'));
    scene.check(hidden.length === 1, `${id}: half a part is there, hidden`, hidden);
    const victim = stage.workers.find(({ events }) =>
      events.some(({ kind, job }) => kind === 'started' && job === `${id}-3`),
    );
    victim?.child.kill('SIGKILL');
    const [orphan = 0] = stage.tries(3);
    await scene.until(() => !isAlive(orphan), 'the end of the child of a killed worker', 5000);
    scene.check(true, `${id}: a busy child ends with its worker`);
    await stage.finished(id, conversion);
    scene.check(stage.tries(3).length === 2, `${id}: the part was made again`, stage.tries(3));
    const stalled = stage.events(id).filter(({ kind }) => kind === 'stalled');
    scene.check(stalled.length >= 1, `${id}: it was taken from the dead worker`, stalled);
    stage.workers = stage.workers.filter((each) => each !== victim);
    stage.hire();
  },

  // A part is busy for longer than its lock lasts, without a turn of its event loop.
  async busy(stage, scene, id) {
    stage.fault(2, 'slow 5000');
    await stage.finished(id, await stage.enqueue(id));
    scene.check(stage.tries(2).length === 1, `${id}: no lock was lost`, stage.tries(2));
    const stalled = stage.events(id).filter(({ kind }) => kind === 'stalled');
    scene.check(stalled.length === 0, `${id}: nothing stalled`, stalled);
  },

  // Redis is stopped in order, and comes back.
  async restarted(stage, scene, id) {
    for (let part = 0; part < parts; part += 1) stage.fault(part, 'slow 700');
    const conversion = await stage.enqueue(id);
    await scene.until(() => stage.hasBegun(1), 'part 1 has begun');
    await stage.stopRedis('SIGTERM');
    await wait(800);
    await stage.startRedis();
    await stage.finished(id, conversion);
  },

  // Redis is killed, for longer than locks last.
  async crashed(stage, scene, id) {
    for (let part = 0; part < parts; part += 1) stage.fault(part, 'slow 700');
    const conversion = await stage.enqueue(id);
    await scene.until(() => stage.hasBegun(1), 'part 1 has begun');
    // What was enqueued is on the disk by then: everysec.
    await wait(1200);
    await stage.stopRedis('SIGKILL');
    await wait(3000);
    await stage.startRedis();
    await stage.finished(id, conversion);
  },

  async twice(stage, scene, id) {
    stage.fault(5, 'fail 2');
    await stage.finished(id, await stage.enqueue(id));
    scene.check(stage.tries(5).length === 3, `${id}: two failures and a success`, stage.tries(5));
  },

  // A part that never works: the failure names its cause; what was made is gone on from.
  async never(stage, scene, id) {
    stage.fault(4, 'always');
    const conversion = await stage.enqueue(id);
    const error = await failureOf(conversion.done(patience()));
    scene.check(
      error.code === 'BUILD_FAILED' &&
        /part 4 of 8: its process was ended by SIGKILL/.test(error.message),
      `${id}: the failure says which part and why`,
      error,
    );
    scene.check(stage.tries(4).length === 3, `${id}: it was tried three times`, stage.tries(4));
    await scene.until(async () => {
      const { running } = await conversion.progress();
      return running.length === 0;
    }, 'the end of the parts that ran');
    const names = fs.readdirSync(scene.at(id));
    scene.check(!names.includes('train.x.json'), `${id}: there is no set`, names);
    await conversion.remove();
    await conversion.close();
    stage.clearFaults();
    await stage.finished(id, await stage.enqueue(id));
    const there = stage.events(id).filter(({ wasThere }) => wasThere === true);
    scene.check(there.length > 0, `${id}: parts that were there were left as they were`);
  },

  // An error that no further try mends is not tried again.
  async hopeless(stage, scene, id) {
    stage.fault(0, 'refuse');
    const conversion = await stage.enqueue(id);
    const error = await failureOf(conversion.done(patience()));
    scene.check(
      error.code === 'SOURCE' && /part 0 of 8: .*no such column/.test(error.message),
      `${id}: the failure has the part's code`,
      error,
    );
    scene.check(stage.tries(0).length === 1, `${id}: it was tried once`, stage.tries(0));
    await conversion.cancel();
    await conversion.close();
  },

  // Cancelled while parts run, one of which hears nothing.
  async cancelled(stage, scene, id) {
    for (let part = 0; part < parts; part += 1) stage.fault(part, 'slow 400');
    stage.fault(1, 'hang 9');
    const conversion = await stage.enqueue(id);
    await scene.until(() => stage.hasBegun(1) && stage.hasBegun(0), 'parts 0 and 1 have begun');
    const waiting = failureOf(conversion.done(patience()));
    await conversion.cancel({ reason: 'not wanted' });
    const error = await waiting;
    scene.check(error.code === 'ABORTED', `${id}: whoever waits is told`, error);
    scene.check((await stage.find(id)) === undefined, `${id}: nothing is left in the queue`);
    scene.check(
      stage.tries(1).every((pid) => !isAlive(pid)),
      `${id}: no child is left`,
    );
    const before = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((part) => stage.tries(part)).length;
    await wait(1000);
    const after = [0, 1, 2, 3, 4, 5, 6, 7].flatMap((part) => stage.tries(part)).length;
    scene.check(before === after && after < parts, `${id}: no further part was begun`, after);
    const names = fs.readdirSync(scene.at(id)).filter((name) => !name.startsWith('part-'));
    scene.check(names.length === 0, `${id}: nothing half is left`, names);
    await conversion.close();
    stage.clearFaults();
    await stage.finished(id, await stage.enqueue(id));
  },
};

/** @param {Promise<unknown>} work @returns {Promise<{ code: string, message: string }>} */
async function failureOf(work) {
  try {
    await work;
    return { code: 'none', message: 'it did not fail' };
  } catch (error) {
    const { code, message } = /** @type {{ code: string, message: string }} */ (error);
    return { code, message };
  }
}
