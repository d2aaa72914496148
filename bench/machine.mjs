// @ts-check
// What machine this is: the table at the head of every report.
import { execFileSync, spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import { inRoot } from '../scripts/script.mjs';
import { limitsProgram } from './paths.mjs';

/** @param {string} command @param {string[]} args */
function said(command, args) {
  try {
    return execFileSync(command, args, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return '';
  }
}

/** @param {string} file */
function read(file) {
  try {
    return fs.readFileSync(file, 'utf8').trim();
  } catch {
    return '';
  }
}

/** @param {string} folder where stores are written */
export function machineTable(folder) {
  const cpuinfo = said('lscpu', []);
  const field = (/** @type {string} */ name) =>
    new RegExp(`^\\s*${name}:\\s*(.+)$`, 'm').exec(cpuinfo)?.[1] ?? '';
  const quota = read('/sys/fs/cgroup/cpu.max');
  const caches = ['L1d', 'L1i', 'L2', 'L3'].map((name) => [name, field(`${name}(?: cache)?`)]);
  const [kind = ''] = said('stat', ['-f', '-c', '%T', folder]).split('\n');
  const release = /^PRETTY_NAME="?([^"\n]+)/m.exec(read('/etc/os-release'))?.[1] ?? os.type();
  const changed = said('git', [
    '-C',
    inRoot(),
    'status',
    '--porcelain',
    '--',
    'ts',
    'zig-src',
    'build.zig',
  ]);
  const commit = said('git', ['-C', inRoot(), 'rev-parse', '--short', 'HEAD']);
  return {
    CPU: `${field('Model name') || os.cpus()[0]?.model || 'unknown'}, ${os.availableParallelism()} of ${os.cpus().length} processors`,
    virtual: field('Hypervisor vendor') === '' ? 'no, or not known' : field('Hypervisor vendor'),
    caches: caches
      .filter(([, size]) => size !== '')
      .map((each) => each.join(' '))
      .join(', '),
    memory: `${(os.totalmem() / 2 ** 30).toFixed(1)} GiB`,
    'cgroup quota': quota === '' || quota.startsWith('max') ? 'none' : quota,
    'file system': kind,
    system: `${release}, ${os.type()} ${os.release()} ${os.arch()}`,
    node: `${process.version}, V8 ${process.versions.v8}`,
    checkout: `${commit || 'unknown'}${changed === '' ? '' : ', with changes'}`,
  };
}

/** The machine alone: copies, a small read, a page fault. @param {string} file any larger one */
export function machineLimits(file) {
  const { stdout, status } = spawnSync(
    limitsProgram(false),
    ['what=machine', 'seconds=0.5', `file=${file}`],
    {
      encoding: 'utf8',
    },
  );
  return status === 0 ? JSON.parse(stdout) : null;
}
