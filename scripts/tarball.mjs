// @ts-check
// The npm tarball: made by npm, and looked into. What may be in it is a list; whatever else npm packs
// is a fault.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { untar } from './archive.mjs';
import { ask, npm } from './child.mjs';
import { Failure, inRoot } from './script.mjs';
import { filesBelow } from './up-to-date.mjs';

/** @typedef {import('./checks.mjs').Checks} Checks */
/** @typedef {import('./targets.mjs').Target} Target */

/** Largest tarball, in bytes. */
const bytesMax = 6_000_000;

/** Texts that must come along: what is linked into the addons or folded into dist/. */
const licencesWanted = ['zstd', 'node-addon-api', 'libc++', 'libc++abi', 'musl', 'msgpackr'];

/** What may be inside, besides the addons of the table. */
const allowed = [
  /^package\.json$/,
  /^README\.md$/,
  /^LICENSE$/,
  /^dist\/[\w/-]+\.js$/,
  /^dist\/[\w/-]+\.d\.ts$/,
  /^licences\/[\w+-]+\.txt$/,
];

/**
 * @param {string} checkout a folder in which everything is built
 * @param {string} folder where the tarball goes
 * @returns {string} its path
 */
export function pack(checkout, folder) {
  const [command, ...args] = npm();
  const options = ['pack', '--ignore-scripts', '--silent', '--pack-destination', folder];
  const answer = ask(command, [...args, ...options], { cwd: checkout });
  const name = answer.stdout.split('\n').at(-1) ?? '';
  const file = path.join(folder, name);
  if (!answer.ok || !name.endsWith('.tgz') || !fs.existsSync(file)) {
    throw new Failure('npm pack failed', answer.output);
  }
  return file;
}

/** @param {string} file @returns {string} hexadecimal SHA-256 */
export function sha256Of(file) {
  return createHash('sha256').update(fs.readFileSync(file)).digest('hex');
}

/**
 * @param {string} tarball
 * @param {readonly Target[]} targets
 * @param {string} scratch a private folder
 * @param {Checks} checks
 */
export function examineTarball(tarball, targets, scratch, checks) {
  const check = (/** @type {string} */ what, /** @type {string} */ reason) =>
    checks.check('tarball', what, reason);
  const { size } = fs.statSync(tarball);
  check(`at most ${bytesMax} bytes (${size})`, size <= bytesMax ? '' : 'too large');

  const folder = path.join(scratch, 'tarball');
  untar(fs.readFileSync(tarball), folder, (name) => name);
  const files = filesBelow(folder).map((file) =>
    path.relative(path.join(folder, 'package'), file).replaceAll(path.sep, '/'),
  );
  const addons = targets.map(({ prebuilt }) => prebuilt.replaceAll(path.sep, '/'));
  const strange = files.filter(
    (file) => !addons.includes(file) && !allowed.some((pattern) => pattern.test(file)),
  );
  check('JavaScript, types, addons and licences only', strange.join(', '));
  const wanted = [
    ...addons,
    ...licencesWanted.map((name) => `licences/${name}.txt`),
    ...['LICENSE', 'README.md', 'dist/index.js', 'dist/index.d.ts', 'dist/cli.js'],
  ];
  check(
    'every addon, every licence and the entries',
    wanted.filter((file) => !files.includes(file)).join(', '),
  );
  const changed = targets.filter(
    ({ prebuilt }) =>
      sha256Of(path.join(folder, 'package', prebuilt)) !== sha256Of(inRoot(prebuilt)),
  );
  check('the addons are those that were examined', changed.map(({ name }) => name).join(', '));

  const manifest = JSON.parse(fs.readFileSync(path.join(folder, 'package/package.json'), 'utf8'));
  check('runs nothing when it is installed', installReason(path.join(folder, 'package')));
  const native = ['gypfile', 'os', 'cpu', 'libc'].filter((field) => field in manifest);
  check('installs everywhere', native.map((field) => `package.json has ${field}`).join(', '));
}

/**
 * What npm would run for a package: scripts of the manifest, and node-gyp where there is a binding.gyp.
 *
 * @param {string} folder of the package
 * @returns {string} empty: nothing
 */
export function installReason(folder) {
  const { scripts = {} } = JSON.parse(fs.readFileSync(path.join(folder, 'package.json'), 'utf8'));
  const lifecycle = [
    'preinstall',
    'install',
    'postinstall',
    'prepare',
    'preprepare',
    'postprepare',
  ];
  const found = lifecycle.filter((name) => name in scripts);
  const gyp = filesBelow(folder, (file) => path.basename(file) === 'binding.gyp');
  return [...found, ...gyp.map((file) => path.basename(file))].join(', ');
}
