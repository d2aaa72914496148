// @ts-check
// A process in which calls to the system and allocations fail (test/native/faults.c):
//
//     node child.mjs COMMAND CONFIGURATION FOLDER ARGUMENT…
//
// LOADERX_FAULTS is the file that tells what is to fail. Each command says what came of it as one
// line of JSON.
import fs from 'node:fs';
import path from 'node:path';
import { loaderx } from '../support/package.mjs';
import { Faults } from './control.mjs';
import { builds, lifeOf } from './life.mjs';

/** @typedef {import('./life.mjs').Life} Life */
/** @typedef {import('./control.mjs').Action} Action */

/** @param {unknown} line */
const say = (line) => fs.writeSync(1, `${JSON.stringify(line)}\n`);

const faults = new Faults(process.env.LOADERX_FAULTS ?? '');

/** @typedef {{[field in 'code' | 'osCode' | 'path' | 'file']?: string | undefined} & {message: string}} Said */

/** @param {unknown} error @returns {Said} */
function saidBy(error) {
  if (!(error instanceof Error)) return { message: `threw ${String(error)}` };
  const { code, osCode, path: at, file, message } = /** @type {Error & Said} */ (error);
  return { code, osCode, path: at, file, message };
}

/** @param {() => unknown} act @returns {Promise<Said | null>} null: it did not fail */
async function failureOf(act) {
  try {
    await act();
    return null;
  } catch (error) {
    return saidBy(error);
  }
}

const descriptors = () => fs.readdirSync('/proc/self/fd').length;

/**
 * What is wrong at a path where a build or a reading failed, or did not.
 *
 * @param {Life} life
 * @param {string} at
 * @param {boolean} mayHidden whether the build may have left its folder, for the next to remove
 */
async function wrongAt(life, at, mayHidden) {
  const wrong = [];
  const hidden = fs.readdirSync(path.dirname(at)).filter((name) => name.startsWith('.'));
  if (hidden.length > 0 && !mayHidden) wrong.push(`left over: ${hidden}`);
  const absent = await failureOf(() => loaderx.open(at).closeSync());
  if (absent === null) {
    const failure = await failureOf(() => life.check(at));
    if (failure !== null)
      wrong.push(`what is at the path is not what was built: ${failure.message}`);
  } else if (absent.code !== 'NOT_FOUND') {
    wrong.push(`half a container: ${absent.code} ${absent.message}`);
  }
  return wrong;
}

/** @type {Record<string, (life: Life, folder: string, ...args: string[]) => unknown>} */
const commands = {
  /** One build, for whoever watches or ends it. */
  async build(life, folder) {
    await failureOf(() => loaderx.open('nowhere')); // Loads the addon, whose files are not the build's.
    await life.build(path.join(folder, 'store'));
    say('built');
  },

  /** Builds 0, 1, … of this and every other kind in turn, until somebody kills the process. */
  async loop(_life, folder) {
    await failureOf(() => loaderx.open('nowhere'));
    say('ready');
    for (let index = 0; ; index += 1) {
      const turn = builds[index % builds.length];
      if (turn === undefined) throw new Error('there are no builds');
      await lifeOf(turn, loaderx).build(path.join(folder, String(index)));
    }
  },

  /** Fails every call of a build, or of reading, in every way that is asked for. */
  async errors(life, folder, phase = 'build', list = '') {
    /** @type {{cases: number, ended: Record<string, number>, wrong: string[]}} */
    const report = { cases: 0, ended: {}, wrong: [] };
    const at = path.join(folder, 'store');
    const act = () => (phase === 'build' ? life.build(at) : life.read(at));
    const reset = async () => {
      if (phase === 'build') fs.rmSync(folder, { recursive: true, force: true });
      fs.mkdirSync(folder, { recursive: true });
      if (phase === 'read' && !fs.existsSync(at)) await life.build(at);
    };
    await reset();
    await act();
    const before = descriptors();
    for (const action of /** @type {Action[]} */ (list.split(','))) {
      for (const lasting of [false, true]) {
        // A call that is interrupted for ever is repeated for ever.
        if (lasting && action === 'EINTR') continue;
        // One call more than there are: the last round strikes nothing.
        for (let call = 0; ; call += 1) {
          await reset();
          faults.arm({ mode: 'calls', prefix: folder, at: call, action, lasting });
          const failure = await failureOf(act);
          const { struck, calls } = faults.disarm();
          if (struck === 0) {
            if (failure !== null)
              report.wrong.push(`${action}, nothing struck: ${failure.message}`);
            break;
          }
          report.cases += 1;
          const where = `${action}${lasting ? ', lasting,' : ''} at call ${call}, ${calls[call]}`;
          const isRetried = action === 'short' || action === 'EINTR';
          const [name] = (calls[call] ?? '').split(' ');
          const how = failure === null ? 'carried on' : `${failure.code} ${failure.osCode ?? ''}`;
          const key = `${action} at ${name}: ${how.trim()}`;
          report.ended[key] = (report.ended[key] ?? 0) + 1;
          if (failure !== null) {
            const isTyped = failure.code === 'IO' && failure.path === at;
            const names = failure.message.includes(at) && failure.osCode !== undefined;
            if (isRetried || !isTyped || !names) {
              report.wrong.push(`${where}: ${JSON.stringify(failure)}`);
            }
          }
          for (const fault of await wrongAt(life, at, lasting || name === 'unlinkat')) {
            report.wrong.push(`${where}: ${fault}`);
          }
          if (descriptors() !== before) {
            report.wrong.push(`${where}: ${descriptors() - before} descriptors are left open`);
          }
          if (failure !== null) {
            const next = await failureOf(() =>
              phase === 'build' && !fs.existsSync(at) ? life.build(at) : life.read(at),
            );
            if (next !== null) report.wrong.push(`${where}: after it, ${next.message}`);
          }
          if (call > 2000) throw new Error('it never ends');
        }
      }
    }
    say(report);
  },

  /** Refuses every allocation of the addon. */
  async memory(life, folder, lasting = '') {
    /** @type {{cases: number, ended: Record<string, number>, wrong: string[]}} */
    const report = { cases: 0, ended: {}, wrong: [] };
    await failureOf(() => loaderx.open('nowhere'));
    faults.watch(path.basename(process.env.LOADERX_ADDON ?? 'loaderx.node'));
    const at = path.join(folder, 'store');
    const before = descriptors();
    for (let call = 0; ; call += 1) {
      fs.rmSync(folder, { recursive: true, force: true });
      fs.mkdirSync(folder);
      faults.arm({ mode: 'allocations', at: call, action: 'ENOMEM', lasting: lasting !== '' });
      const failure = await failureOf(async () => {
        await life.build(at);
        await life.read(at);
        await life.others();
      });
      const { struck } = faults.disarm();
      if (struck === 0) {
        if (failure !== null) report.wrong.push(`after ${call} allocations: ${failure.message}`);
        break;
      }
      report.cases += 1;
      const how = failure === null ? 'carried on' : `${failure.code}`;
      report.ended[how] = (report.ended[how] ?? 0) + 1;
      const where = `allocation ${call}`;
      if (failure !== null && failure.code !== 'OUT_OF_MEMORY') {
        report.wrong.push(`${where}: ${JSON.stringify(failure)}`);
      }
      for (const fault of await wrongAt(life, at, false)) report.wrong.push(`${where}: ${fault}`);
      if (descriptors() !== before) report.wrong.push(`${where}: descriptors are left open`);
      if (call > 20_000) throw new Error('it never ends');
    }
    say(report);
  },
};

const [command = '', name = '', folder = '', ...args] = process.argv.slice(2);
const build = builds.find((candidate) => candidate.name === name);
const run = commands[command];
if (run === undefined || build === undefined) throw new Error(`there is no ${command} ${name}`);
await run(lifeOf(build, loaderx), folder, ...args);
