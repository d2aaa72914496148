// @ts-check
// examples/slurm/ by Slurm's own daemons: munged, slurmctld and slurmd, all of this process and on the loopback.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ask } from '../child.mjs';
import { Failure, inRoot } from '../script.mjs';
import { cli, freePort, programAt, Scene } from './scene.mjs';

const parts = 8;
const programs = ['munged', 'slurmctld', 'slurmd', 'sbatch', 'scontrol'];

export async function slurm() {
  const scene = new Scene('slurm');
  const missing = programs.find((name) => programAt(name) === undefined);
  const isRoot = process.getuid?.() === 0;
  if (missing !== undefined || !isRoot) {
    scene.skip(missing === undefined ? 'its daemons want root' : `${missing} is not installed`);
    fs.rmSync(scene.folder, { recursive: true });
    return scene.tally;
  }
  let cluster;
  try {
    await scene.begin();
    cluster = await Cluster.start(scene);
    await play(scene, cluster);
  } catch (error) {
    scene.check(false, 'the example', error instanceof Error ? error.message : error);
    process.stdout.write(cluster?.logs() ?? '');
  } finally {
    await cluster?.stop();
    await scene.end();
  }
  return scene.tally;
}

/** @param {Scene} scene @param {Cluster} cluster */
async function play(scene, cluster) {
  const target = scene.at('out');
  const submitted = cluster.ask('bash', [
    ...[inRoot('examples', 'slurm', 'submit.sh'), scene.source, target, String(parts)],
    `--chdir=${scene.folder}`,
  ]);
  const [array = '', concat = ''] = submitted.split(' ');
  // The first time, the third task waits in the middle of its part until it is killed: by the scheduler, which
  // puts it back.
  await scene.until(() => fs.existsSync(scene.at('stuck')), 'task 3 has begun its part');
  scene.check(
    fs.readdirSync(target).some((name) => name.startsWith('.part-00003')),
    'half of a part is there, hidden',
  );
  cluster.ask('scontrol', ['requeue', `${array}_3`]);
  await scene.until(
    () => cluster.state(`${array}_3`).startsWith('PENDING'),
    'task 3 is back in the queue',
  );
  // Slurm lets what was requeued wait for two minutes: what it gave the first run has expired then.
  const waits = cluster.ask('scontrol', ['-o', 'show', 'job', `${array}_3`]);
  process.stdout.write(
    `        ${/ StartTime=\S+/.exec(waits)?.[0]?.trim()}, ${new Date().toISOString()}\n`,
  );
  await scene.until(() => cluster.state(concat) === 'COMPLETED', 'the sets', 300_000);
  const log = fs.readFileSync(scene.at('parts-3.log'), 'utf8');
  scene.check(/part-00003-of-00008: 1 container/.test(log), 'task 3 made its part after all', log);
  scene.check(fs.readFileSync(scene.at('starts'), 'utf8') === '0\n1\n', 'and it was a restart');
  await scene.checkTarget(target, parts, 'array');

  // All of it once more: nothing is made twice.
  const again = cluster.ask('bash', [
    ...[inRoot('examples', 'slurm', 'submit.sh'), scene.source, target, String(parts)],
    `--chdir=${scene.folder}`,
  ]);
  const last = again.split(' ')[1] ?? '';
  await scene.until(() => cluster.state(last) === 'COMPLETED', 'the second run', 120_000);
  scene.check(
    /there already/.test(fs.readFileSync(scene.at('parts-0.log'), 'utf8')),
    'a second run finds the parts there',
  );
  await scene.checkTarget(target, parts, 'again');

  // One task alone cannot take itself for the whole.
  const alone = cluster.ask(
    'sbatch',
    [
      ...['--parsable', '--array=3', `--chdir=${scene.folder}`, '--output=alone.log'],
      inRoot('examples', 'slurm', 'parts.sbatch'),
    ],
    { SOURCE: scene.source, TARGET: target, PARTS: String(parts) },
  );
  await scene.until(() => cluster.state(`${alone}_3`).startsWith('FAILED'), 'the lone task');
  scene.check(
    /the array has one task, 3, which would be all of the build/.test(
      fs.readFileSync(scene.at('alone.log'), 'utf8'),
    ),
    'one task of an array is no build of one part',
  );
}

class Cluster {
  #scene;
  /** @type {NodeJS.ProcessEnv} */
  #env;
  /** @type {ReturnType<Scene['start']>[]} */
  #daemons = [];

  /** @param {Scene} scene @param {NodeJS.ProcessEnv} env */
  constructor(scene, env) {
    this.#scene = scene;
    this.#env = env;
  }

  /** @param {Scene} scene */
  static async start(scene) {
    const host = os.hostname().split('.')[0] ?? '';
    const place = scene.at('slurm');
    for (const name of ['', 'state', 'spool']) fs.mkdirSync(path.join(place, name));
    const at = (/** @type {string} */ name) => path.join(place, name);
    fs.writeFileSync(at('key'), randomBytes(1024), { mode: 0o400 });
    const [port, nodePort] = [await freePort(), await freePort()];
    const cpus = 2;
    fs.writeFileSync(
      at('slurm.conf'),
      `${[
        'ClusterName=test',
        `SlurmctldHost=${host}(127.0.0.1)`,
        ...[`SlurmctldPort=${port}`, `SlurmdPort=${nodePort}`],
        ...['SlurmUser=root', 'SlurmdUser=root', 'AuthType=auth/munge'],
        `AuthInfo=socket=${at('munge.socket')}`,
        'CommunicationParameters=NoInAddrAny,NoCtldInAddrAny',
        ...['ProctrackType=proctrack/linuxproc', 'TaskPlugin=task/none'],
        ...['JobAcctGatherType=jobacct_gather/none', 'SelectType=select/cons_tres'],
        ...['SelectTypeParameters=CR_CPU', 'SlurmdParameters=config_overrides'],
        ...['ReturnToService=2', 'JobRequeue=1', 'MpiDefault=none', 'SwitchType=switch/none'],
        ...['SchedulerParameters=sched_interval=2', 'MinJobAge=600', 'KillWait=2'],
        ...[`StateSaveLocation=${at('state')}`, `SlurmdSpoolDir=${at('spool')}`],
        ...[`SlurmctldPidFile=${at('ctld.pid')}`, `SlurmdPidFile=${at('d.pid')}`],
        ...[`SlurmctldLogFile=${at('ctld.log')}`, `SlurmdLogFile=${at('d.log')}`],
        `NodeName=${host} NodeAddr=127.0.0.1 CPUs=${cpus} RealMemory=1000 State=UNKNOWN`,
        `PartitionName=p Nodes=${host} Default=YES MaxTime=10 State=UP`,
      ].join('\n')}\n`,
    );
    const cluster = new Cluster(scene, {
      SLURM_CONF: at('slurm.conf'),
      // What stands for `npx --no-install loaderx`: one task waits, the first time.
      LOADERX: `bash ${at('loaderx.sh')}`,
      // examples/ finds the package by its name.
      NODE_OPTIONS: '',
    });
    fs.writeFileSync(
      at('loaderx.sh'),
      `if [[ $SLURM_ARRAY_TASK_ID == 3 && $SLURM_ARRAY_TASK_COUNT == ${parts} ]]; then
  echo "\${SLURM_RESTART_COUNT:-0}" >> ${scene.at('starts')}
  [[ -z \${SLURM_RESTART_COUNT:-} ]] && export STUCK=${scene.at('stuck')}
fi
exec ${process.execPath} --import ${inRoot('test', 'distributed', 'stuck.mjs')} ${cli} "$@"
`,
    );
    const munged = programAt('munged') ?? '';
    cluster.#start(munged, [
      ...['--force', '--foreground', '--key-file', at('key'), '--socket', at('munge.socket')],
      ...['--pid-file', at('munge.pid'), '--log-file', at('munge.log')],
      ...['--seed-file', at('munge.seed')],
    ]);
    await scene.until(() => fs.existsSync(at('munge.socket')), 'the start of munged');
    cluster.#start(programAt('slurmctld') ?? '', ['-D', '-f', at('slurm.conf')]);
    cluster.#start(programAt('slurmd') ?? '', ['-D', '-f', at('slurm.conf'), '-N', host]);
    await scene.until(() => {
      const { ok, stdout } = ask('sinfo', ['-h', '-o', '%T'], { env: cluster.#env });
      return ok && stdout === 'idle';
    }, 'an idle node');
    return cluster;
  }

  /** @param {string} program @param {readonly string[]} args */
  #start(program, args) {
    this.#daemons.push(this.#scene.start(program, args, this.#env));
  }

  /** What a command of Slurm answers. @param {string} command @param {string[]} args @param {NodeJS.ProcessEnv} [env] */
  ask(command, args, env = {}) {
    const answer = ask(command, args, { env: { ...this.#env, ...env }, cwd: this.#scene.folder });
    if (answer.ok) return answer.stdout;
    throw new Failure(`${command} ${args.join(' ')}: ${answer.output}`);
  }

  /** @param {string} job */
  state(job) {
    const { stdout } = ask('scontrol', ['-o', 'show', 'job', job], { env: this.#env });
    return / JobState=(\S+)/.exec(stdout)?.[1] ?? '';
  }

  logs() {
    const place = this.#scene.folder;
    const names = fs.readdirSync(place).filter((name) => name.endsWith('.log'));
    const files = [...names, 'slurm/ctld.log', 'slurm/d.log'];
    return files
      .map((name) => path.join(place, name))
      .filter((file) => fs.existsSync(file))
      .map((file) => `--- ${file}\n${fs.readFileSync(file, 'utf8').slice(-3000)}\n`)
      .join('');
  }

  async stop() {
    ask('scancel', ['-u', 'root'], { env: this.#env });
    ask('scontrol', ['shutdown'], { env: this.#env });
    for (const { child } of this.#daemons.toReversed()) child.kill('SIGTERM');
    await Promise.race([
      Promise.all(this.#daemons.map(({ ended }) => ended)),
      new Promise((resolve) => setTimeout(resolve, 10_000)),
    ]);
  }
}
