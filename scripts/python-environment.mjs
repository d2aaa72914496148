// @ts-check
// A Python of our own with exact packages, in .deps/: a venv, or, where Python comes without venv, a
// folder of packages that is put on PYTHONPATH. Nothing is installed into any Python of the machine.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ask } from './child.mjs';
import { depsFolder, Failure, shown } from './script.mjs';

/**
 * How to run a Python that has the packages.
 *
 * @typedef {object} Environment
 * @property {string} python
 * @property {NodeJS.ProcessEnv} env to be added
 */

/**
 * @typedef {object} Wanted
 * @property {string} name of the folder in .deps/
 * @property {string} [parent] the folder to use instead of .deps/
 * @property {readonly [major: number, minor: number]} versionMin of Python
 * @property {string} [hashed] a requirements file with hashes, installed without dependencies
 * @property {string} pinned a requirements file with exact versions, only as wheels
 * @property {string} probe Python text that fails unless the packages work
 */

/**
 * What an earlier run installed, if it is what is wanted now and works.
 *
 * @param {Wanted} wanted
 * @returns {Environment | null}
 */
export function installedPythonEnvironment(wanted) {
  const known = readStamp(stampFile(wanted));
  return known?.wish === wishOf(wanted) && works(known.environment, wanted.probe)
    ? known.environment
    : null;
}

/**
 * @param {Wanted} wanted
 * @returns {Environment | null} null: no Python of that version
 */
export function ensurePythonEnvironment(wanted) {
  const installed = installedPythonEnvironment(wanted);
  if (installed !== null) return installed;

  const folder = folderOf(wanted);
  const python = findPython(wanted.versionMin);
  if (python === null) return null;
  process.stdout.write(`installing ${wanted.name} into ${shown(folder)}\n`);
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  const environment = install(python, folder, wanted);
  const answer = ask(environment.python, ['-c', wanted.probe], { env: environment.env });
  if (!answer.ok) {
    throw new Failure(
      `the packages of ${wanted.name} do not work`,
      withoutAddresses(answer.output),
    );
  }
  fs.writeFileSync(stampFile(wanted), JSON.stringify({ wish: wishOf(wanted), environment }));
  return environment;
}

/** @param {Wanted} wanted */
function folderOf({ name, parent = depsFolder }) {
  return path.join(parent, name);
}

/** @param {Wanted} wanted */
function stampFile(wanted) {
  return path.join(folderOf(wanted), 'installed.json');
}

/** Changes with what is to be installed. @param {Wanted} wanted */
function wishOf({ hashed, pinned }) {
  const hash = createHash('sha256');
  if (hashed !== undefined) hash.update(fs.readFileSync(hashed));
  return hash.update(fs.readFileSync(pinned)).digest('hex');
}

/**
 * @param {string} python
 * @param {string} folder empty
 * @param {Wanted} wanted
 * @returns {Environment}
 */
function install(python, folder, wanted) {
  const venv = path.join(folder, 'venv');
  if (ask(python, ['-m', 'venv', venv]).ok) {
    const own = path.join(
      venv,
      ...(process.platform === 'win32' ? ['Scripts', 'python.exe'] : ['bin', 'python']),
    );
    pip(own, [], wanted);
    return { python: own, env: {} };
  }
  // Debian's python3 comes without ensurepip, and with that without a working venv.
  fs.rmSync(venv, { recursive: true, force: true });
  const packages = path.join(folder, 'packages');
  pip(python, ['--target', packages], wanted);
  return { python, env: { PYTHONPATH: packages } };
}

/** @param {string} python @param {readonly string[]} where @param {Wanted} wanted */
function pip(python, where, { name, hashed, pinned }) {
  const byHash =
    hashed === undefined ? [] : [['--require-hashes', '--no-deps', '--requirement', hashed]];
  for (const what of [...byHash, ['--only-binary', ':all:', '--requirement', pinned]]) {
    const answer = ask(python, [
      ...['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', '--quiet'],
      ...['--retries', '2', '--timeout', '60', '--progress-bar', 'off', '--upgrade'],
      ...where,
      ...what,
    ]);
    if (answer.ok) continue;
    const said = withoutAddresses(answer.output).split('\n').slice(-8).join('\n');
    throw new Failure(
      `pip could not install what ${name} needs into ${python}`,
      `Check the network and pip's settings (pip config list). pip said:\n${said}`,
    );
  }
}

/**
 * The first Python that is new enough: the one PYTHON names, those on PATH, those of pyenv.
 *
 * @param {readonly [major: number, minor: number]} versionMin
 * @returns {string | null} its absolute path
 */
export function findPython([major, minor]) {
  const named = process.env.PYTHON;
  // The least versions first: wheels for the newest come late.
  const onPath = ['python3', ...[10, 11, 12, 13, 14].map((each) => `python3.${each}`), 'python'];
  for (const candidate of [...(named === undefined ? [] : [named]), ...onPath, ...pyenvPythons()]) {
    const test = `import sys; assert sys.version_info >= (${major}, ${minor}); print(sys.executable)`;
    const answer = ask(candidate, ['-c', test]);
    if (answer.ok && path.isAbsolute(answer.stdout)) return answer.stdout;
  }
  return null;
}

/** pyenv's own Pythons, oldest first; on PATH it shows only the ones that are switched on. */
function pyenvPythons() {
  const versions = path.join(
    process.env.PYENV_ROOT ?? path.join(os.homedir(), '.pyenv'),
    'versions',
  );
  if (!fs.existsSync(versions)) return [];
  return fs
    .readdirSync(versions)
    .sort((left, right) => left.localeCompare(right, 'en', { numeric: true }))
    .map((version) => path.join(versions, version, 'bin', 'python3'));
}

/** @param {Environment} environment @param {string} probe */
function works(environment, probe) {
  return ask(environment.python, ['-c', probe], { env: environment.env }).ok;
}

/** @param {string} file @returns {{wish: string, environment: Environment} | null} */
function readStamp(file) {
  try {
    return JSON.parse(fs.readFileSync(file, 'utf8'));
  } catch {
    return null;
  }
}

/** Index addresses may carry a user's credentials. @param {string} output */
function withoutAddresses(output) {
  return output
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, '<address>')
    .replace(/host='[^']*'/g, "host='...'");
}
