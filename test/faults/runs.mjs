// @ts-check
// Runs of processes in which something fails at a chosen moment, and the judgement of what they leave:
// at the path of a build there is nothing, or all that was built.
//
// All of it wants Linux and glibc (test/native/faults.c); `faultsLibrary` is null elsewhere.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { Random } from '../interop/random.mjs';
import { loaderx } from '../support/package.mjs';
import { Faults } from './control.mjs';
import { builds, lifeOf } from './life.mjs';

/** @typedef {import('./life.mjs').Build} Build */
/** @typedef {import('./control.mjs').Action} Action */

/**
 * @typedef {object} Report
 * @property {number} cases
 * @property {Record<string, number>} ended how often each came
 * @property {string[]} wrong what must not be, each with its case
 */

const childFile = path.join(import.meta.dirname, 'child.mjs');
const unpublished = ['NOT_FOUND', 'NOT_PUBLISHED', 'MALFORMED', 'LOCKED'];

/** @returns {Report} */
const nothing = () => ({ cases: 0, ended: {}, wrong: [] });

/** @param {Report} report @param {string} how */
function count(report, how) {
  report.cases += 1;
  report.ended[how] = (report.ended[how] ?? 0) + 1;
}

/** @param {readonly Report[]} reports @returns {Report} */
export function sumOf(reports) {
  const all = nothing();
  for (const { cases, ended, wrong } of reports) {
    all.cases += cases;
    all.wrong.push(...wrong);
    for (const [how, times] of Object.entries(ended))
      all.ended[how] = (all.ended[how] ?? 0) + times;
  }
  return all;
}

/**
 * A process of child.mjs.
 *
 * @param {readonly string[]} args
 * @param {NodeJS.ProcessEnv} env
 */
function start(args, env) {
  // What makes a test's own process compile TypeScript is not for children.
  const { NODE_OPTIONS: _, ...inherited } = process.env;
  const child = spawn(process.execPath, [childFile, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...inherited, ...env },
  });
  let [stdout, stderr] = ['', ''];
  child.stdout.setEncoding('utf8').on('data', (text) => {
    stdout += text;
  });
  child.stderr.setEncoding('utf8').on('data', (text) => {
    stderr += text;
  });
  /** @type {Promise<{code: number | null, signal: string | null, stdout: string, stderr: string}>} */
  const ended = new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
  const spoke = new Promise((resolve) => {
    child.stdout.once('data', resolve);
    child.once('close', resolve);
  });
  return { child, ended, spoke };
}

/** @param {() => unknown} act */
async function codeOf(act) {
  try {
    await act();
    return 'ok';
  } catch (error) {
    return /** @type {{code?: string}} */ (error).code ?? String(error);
  }
}

/**
 * What a killed build left: `absent` or `complete`; everything else is in `wrong`.
 *
 * @param {Build} build
 * @param {string} at
 * @param {string[]} wrong
 */
async function judge(build, at, wrong) {
  const life = lifeOf(build, loaderx);
  const folder = path.dirname(at);
  const hiddenBy = () =>
    fs.readdirSync(folder).filter((name) => name.startsWith(`.${path.basename(at)}.build-`));
  for (const name of hiddenBy()) {
    const hidden = path.join(folder, name);
    const code = await codeOf(() => loaderx.open(hidden).closeSync());
    // Killed between the page and the rename it is whole, under a name that nobody asks for.
    const said = code === 'ok' ? await codeOf(() => life.check(hidden)) : code;
    if (said !== 'ok' && !unpublished.includes(said)) wrong.push(`the hidden folder: ${said}`);
    if (code === 'ok' && said !== 'ok') wrong.push(`the hidden folder opens: ${said}`);
  }
  const isThere = fs.existsSync(at);
  if (isThere) {
    const said = await codeOf(() => life.check(at));
    if (said !== 'ok') wrong.push(`there is half a container: ${said}`);
    if (hiddenBy().length > 0) wrong.push('published, and a hidden folder is left');
    return 'complete';
  }
  const again = await codeOf(async () => {
    await life.build(at);
    await life.check(at);
  });
  if (again !== 'ok') wrong.push(`the next build fails: ${again}`);
  if (hiddenBy().length > 0) wrong.push('the next build left the hidden folder');
  return 'absent';
}

/**
 * Kills a build before, after and in the midst of each call that changes something: a third process for
 * each of these.
 *
 * @param {string} library test/native/faults.c, built
 * @param {Build} build
 * @param {string} folder an empty one
 * @param {readonly Action[]} [ways]
 * @returns {Promise<Report>}
 */
export async function killAtEveryCall(library, build, folder, ways = killings) {
  const report = nothing();
  for (const action of ways) {
    // The last round ends by itself: there is no such call any more.
    for (let call = 0; ; call += 1) {
      const place = path.join(folder, `${action.replace(' ', '-')}-${call}`);
      fs.mkdirSync(place);
      const file = path.join(folder, 'control');
      const faults = new Faults(file);
      faults.arm({ mode: 'writes', prefix: place, at: call, action });
      const { ended } = start(['build', build.name, place], {
        LD_PRELOAD: library,
        LOADERX_FAULTS: file,
      });
      const { code, signal, stderr } = await ended;
      const { calls, struck } = faults.told();
      faults.close();
      const where = `${build.name} ${action} call ${call}, ${calls[call]}`;
      const isEnd = struck === 0;
      if (isEnd ? code !== 0 : signal !== 'SIGKILL') {
        report.wrong.push(`${where}: it ended by ${code ?? signal} ${stderr}`);
      }
      /** @type {string[]} */
      const wrong = [];
      const what = await judge(build, path.join(place, 'store'), wrong);
      report.wrong.push(...wrong.map((fault) => `${where}: ${fault}`));
      fs.rmSync(place, { recursive: true, force: true });
      if (isEnd) {
        if (what !== 'complete') report.wrong.push(`${where}: ${what} although it ended well`);
        break;
      }
      count(report, what);
    }
  }
  return report;
}

/** @type {readonly Action[]} */
const killings = ['killed before', 'killed after', 'killed midway'];

/**
 * Kills processes that build without end, each after a random while.
 *
 * @param {{folder: string, seed: string, kills: number, done?: () => boolean, onProgress?: (kills: number) => void}} run
 * @returns {Promise<Report>}
 */
export async function killAtRandomMoments({ folder, seed, kills, done = () => false, onProgress }) {
  const report = nothing();
  const random = new Random(seed, 'moments');
  for (let kill = 0; kill < kills && !done(); kill += 1) {
    const place = path.join(folder, `kill-${kill}`);
    fs.mkdirSync(place);
    const control = path.join(folder, 'control');
    new Faults(control).close();
    const afterMs = random.between(0, 40_000) / 1000;
    const { child, ended, spoke } = start(['loop', builds[0]?.name ?? '', place], {
      LOADERX_FAULTS: control,
    });
    await spoke;
    await new Promise((resolve) => setTimeout(resolve, afterMs));
    child.kill('SIGKILL');
    const { signal, stderr } = await ended;
    if (signal !== 'SIGKILL') report.wrong.push(`kill ${kill}: it ended by ${signal} ${stderr}`);
    const published = fs.readdirSync(place).filter((name) => !name.startsWith('.')).length;
    /** @type {string[]} */
    const wrong = [];
    for (let index = 0; index <= published; index += 1) {
      const build = builds[index % builds.length];
      if (build === undefined) throw new Error('there are no builds');
      const what = await judge(build, path.join(place, String(index)), wrong);
      if (what !== (index < published ? 'complete' : 'absent')) wrong.push(`${index} is ${what}`);
    }
    const left = fs.readdirSync(place).filter((name) => name.startsWith('.'));
    if (left.length > 0) wrong.push(`left over are ${left}`);
    report.wrong.push(...wrong.map((fault) => `kill ${kill}: ${fault}`));
    count(report, `after ${published} builds`);
    fs.rmSync(place, { recursive: true, force: true });
    onProgress?.(kill + 1);
  }
  return report;
}

/** A command of child.mjs that reports. @param {string} library @param {string} folder @param {readonly string[]} args */
async function reportOf(library, folder, args) {
  const control = path.join(folder, 'control');
  new Faults(control).close();
  const [command = '', name = '', ...rest] = args;
  const place = path.join(folder, 'place');
  const { code, signal, stdout, stderr } = await start([command, name, place, ...rest], {
    LD_PRELOAD: library,
    LOADERX_FAULTS: control,
  }).ended;
  if (code !== 0) {
    return { ...nothing(), wrong: [`${args.join(' ')}: it ended by ${code ?? signal}: ${stderr}`] };
  }
  fs.rmSync(place, { recursive: true, force: true });
  /** @type {Report} */
  const report = JSON.parse(stdout);
  return { ...report, wrong: report.wrong.map((fault) => `${name}: ${fault}`) };
}

/**
 * Fails each call of a build, or of reading, once and from then on.
 *
 * @param {string} library
 * @param {Build} build
 * @param {string} folder an empty one
 * @param {'build' | 'read'} phase
 * @param {readonly Action[]} actions
 * @returns {Promise<Report>}
 */
export function failEveryCall(library, build, folder, phase, actions = failures) {
  return reportOf(library, folder, ['errors', build.name, phase, actions.join(',')]);
}

/** @type {readonly Action[]} */
export const failures = ['ENOSPC', 'EIO', 'EDQUOT', 'EFBIG', 'EROFS', 'EMFILE', 'EINTR', 'short'];

/**
 * Refuses each allocation of the addon once, and from then on.
 *
 * @param {string} library
 * @param {Build} build
 * @param {string} folder an empty one
 * @returns {Promise<Report>}
 */
export async function refuseEveryAllocation(library, build, folder) {
  const reports = [];
  for (const lasting of [[], ['lasting']]) {
    reports.push(await reportOf(library, folder, ['memory', build.name, ...lasting]));
  }
  return sumOf(reports);
}
