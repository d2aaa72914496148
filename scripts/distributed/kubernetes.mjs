// @ts-check
// examples/kubernetes/: both manifests held against the API's schemas, offline, and their commands run as local
// processes with the variables that Kubernetes sets: as many at a time as the Job says, one of them killed and
// tried again, as the Job says too.
import fs from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import { ask } from '../child.mjs';
import { ensurePythonEnvironment } from '../python-environment.mjs';
import { inRoot } from '../script.mjs';
import { cli, Scene } from './scene.mjs';

/**
 * @typedef {{ spec: { completions?: number, parallelism?: number, backoffLimitPerIndex?: number,
 *   template: { spec: { containers: { command: string[], env?: { name: string, value: string }[] }[] } } } }} Job
 */

const folder = inRoot('examples', 'kubernetes');

export async function kubernetes() {
  const scene = new Scene('kubernetes');
  try {
    validate(scene);
    await scene.begin();
    await run(scene);
  } catch (error) {
    scene.check(false, 'the example', error instanceof Error ? error.message : error);
  } finally {
    await scene.end();
  }
  return scene.tally;
}

/** @param {Scene} scene */
function validate(scene) {
  const python = ensurePythonEnvironment({
    name: 'kubernetes-validate',
    versionMin: [3, 9],
    pinned: inRoot('test', 'distributed', 'requirements.txt'),
    probe: 'import kubernetes_validate',
  });
  if (python === null) {
    scene.skip('no Python for kubernetes-validate');
    return;
  }
  const program = 'from kubernetes_validate.__main__ import main; import sys; sys.exit(main())';
  const judge = (/** @type {string} */ file) =>
    ask(python.python, ['-c', program, '--strict', file], { env: python.env });
  for (const name of ['parts.yaml', 'concat.yaml']) {
    const { ok, output } = judge(path.join(folder, name));
    scene.check(ok, `${name} is what the API takes`, output);
  }
  // And a judge that takes everything is none.
  const text = fs.readFileSync(path.join(folder, 'parts.yaml'), 'utf8');
  for (const [right, wrong] of [
    ['completions: 8', 'completions: eight'],
    ['completionMode:', 'completionMood:'],
  ]) {
    const file = scene.at('wrong.yaml');
    fs.writeFileSync(file, text.replace(String(right), String(wrong)));
    scene.check(!judge(file).ok, `${wrong} is refused`);
  }
}

/** @param {string} name @returns {Job} */
const jobOf = (name) => parse(fs.readFileSync(path.join(folder, name), 'utf8'));

/** @param {Scene} scene */
async function run(scene) {
  const job = jobOf('parts.yaml');
  const { completions = 0, parallelism = 0, backoffLimitPerIndex = 0 } = job.spec;
  const waiting = Array.from({ length: completions }, (_, index) => ({ index, tries: 0 }));
  const stuck = scene.at('stuck');
  let killed = 0;
  const work = async () => {
    for (let pod = waiting.shift(); pod !== undefined; pod = waiting.shift()) {
      const isFirst = pod.index === 3 && pod.tries === 0;
      const program = start(scene, job, {
        JOB_COMPLETION_INDEX: String(pod.index),
        ...(isFirst ? { STUCK: stuck } : {}),
      });
      if (isFirst) {
        // The node goes, with half of a part written.
        await scene.until(() => fs.existsSync(stuck), 'part 3 has begun');
        program.child.kill('SIGKILL');
        killed += 1;
      }
      if ((await program.ended) === 0) continue;
      pod.tries += 1;
      if (pod.tries > backoffLimitPerIndex) throw new Error(program.output);
      waiting.push(pod);
    }
  };
  await Promise.all(Array.from({ length: parallelism }, work));
  scene.check(killed === 1, 'one pod was killed, and its part made by another');
  const concat = start(scene, jobOf('concat.yaml'), {});
  const code = await concat.ended;
  scene.check(code === 0, 'the sets are made', concat.output);
  await scene.checkTarget(scene.at('out'), completions, 'the Job');
}

/** The container of a Job as a process. @param {Scene} scene @param {Job} job @param {NodeJS.ProcessEnv} env */
function start(scene, job, env) {
  const [container] = job.spec.template.spec.containers;
  const words = container?.command ?? [];
  const at = (/** @type {string} */ word) => word.replace(/^\/data(?=\/)/, scene.folder);
  const own = Object.fromEntries((container?.env ?? []).map(({ name, value }) => [name, value]));
  const [npx, flag, loaderx] = words;
  const args =
    npx === 'npx' && flag === '--no-install' && loaderx === 'loaderx'
      ? ['--import', inRoot('test', 'distributed', 'stuck.mjs'), cli, ...words.slice(3).map(at)]
      : [inRoot('examples', words[1] ?? ''), ...words.slice(2).map(at)];
  return scene.start(process.execPath, args, { ...own, ...env });
}
