// @ts-check
// prebuilds/: an addon for every row of build.zig's table, examined as its loader would and tried in
// real Nodes of its platform.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { run, runIntoFile } from './child.mjs';
import { hostsFor } from './foreign-host.mjs';
import { zigLibFolder } from './licences.mjs';
import { explain, Failure, inRoot, root } from './script.mjs';
import { compareVersions, readSharedLibrary } from './shared-library.mjs';
import { filesBelow } from './up-to-date.mjs';

/** @typedef {import('./checks.mjs').Checks} Checks */
/** @typedef {import('./targets.mjs').Target} Target */
/** @typedef {import('./foreign-host.mjs').Host} Host */
/** @typedef {import('./shared-library.mjs').SharedLibrary} SharedLibrary */

/** Largest addon, in bytes. */
const bytesMax = 1.5 * 1024 * 1024;
const entryPoint = 'napi_register_module_v1';
const nodeApiVersion = 9;

/**
 * What each format's addon may export besides the entry point. Only ELF's exports could get in the way
 * of others'; Zig's linker has no list of them for the other two.
 */
const otherExports = {
  ELF: /^node_api_module_get_api_version_v1$/,
  'Mach-O':
    /^(node_api_module_get_api_version_v1|z[rs]_\w+|_Zn[wa]\w+|_Zd[la]\w+|__dso_handle|_mh_dylib_header)$/,
  PE: /^(node_api_module_get_api_version_v1|DllMain|loaderx_napi_table)$/,
};

/** The libraries that an addon may ask for: the system's. */
const systemLibraries = {
  glibc: /^(lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-(x86-64|aarch64)\.so\.\d)$/,
  // musl's loader takes every one of its names for itself.
  musl: /^libc\.so$/,
  darwin: /^\/usr\/lib\/libSystem\.B\.dylib$/,
  // Not node.exe: the host may have another name (napi/win_napi.zig).
  win32: /^(kernel32|ntdll|advapi32|ucrtbase|api-ms-win-crt-[a-z]+-l1-1-0)\.dll$/i,
};

/** @param {string} zig @param {readonly Target[]} targets @param {Checks} checks */
export async function buildPrebuilds(zig, targets, checks) {
  const folder = inRoot('prebuilds');
  fs.rmSync(folder, { recursive: true, force: true });
  process.stdout.write('cross-compiling (the first time, with zstd and libc++ each: minutes)\n');
  const code = await run(zig, ['build', 'prebuilds', '--color', 'off']);
  checks.check('prebuilds', 'zig build', code === 0 ? '' : 'the compiler said why, above');
  const built = filesBelow(folder).map((file) => path.relative(root, file));
  const wanted = targets.map(({ prebuilt }) => prebuilt).sort();
  const isWhole = built.join() === wanted.join();
  const found = `built ${built.join(', ') || 'nothing'}`;
  checks.check('prebuilds', 'every platform of the table and no other', isWhole ? '' : found);
}

/**
 * Everything about an addon that can be seen without its platform.
 *
 * @param {Target} target
 * @param {string} zig
 * @param {Checks} checks
 */
export function examine(target, zig, checks) {
  const check = (/** @type {string} */ what, /** @type {string} */ reason) =>
    checks.check(target.name, what, reason);
  const file = inRoot(target.prebuilt);
  const content = fs.existsSync(file) ? fs.readFileSync(file) : null;
  if (content === null) {
    check(target.prebuilt, 'it is missing');
    return;
  }
  const isLarge = content.length > bytesMax;
  check(`at most ${bytesMax} bytes (${content.length})`, isLarge ? 'too large to ship' : '');
  check(
    'no path of this machine inside',
    machinePaths()
      .filter((text) => content.includes(text))
      .join(', '),
  );
  /** @type {SharedLibrary} */
  let library;
  try {
    library = readSharedLibrary(content);
  } catch (error) {
    check('a shared library', explain(error));
    return;
  }
  const kind = `${library.format} ${library.machine}`;
  const wantedKind = `${target.format} ${target.arch}`;
  check(wantedKind, kind === wantedKind ? '' : `it is ${kind}`);
  check(`exports ${entryPoint}`, exportsReason(library));
  check('imports Node-API and the system only', importsReason(library, target, zig));
  if (target.least !== '') {
    check(`runs from ${target.least} on`, leastReason(library.least, target.least));
  }
  if (library.signature !== undefined && target.arch === 'arm64') {
    check('the code signature holds', library.signature);
  }
}

/** @param {SharedLibrary} library */
function exportsReason({ format, exports }) {
  if (!exports.includes(entryPoint)) return `it exports ${exports.join(', ') || 'nothing'}`;
  const strange = exports.filter((name) => name !== entryPoint && !otherExports[format].test(name));
  return strange.length > 0 ? `it also exports ${strange.join(', ')}` : '';
}

/** @param {SharedLibrary} library @param {Target} target @param {string} zig */
function importsReason({ libraries, imports }, target, zig) {
  const system =
    systemLibraries[/** @type {keyof typeof systemLibraries} */ (target.libc || target.platform)];
  const strangeLibraries = libraries.filter((name) => !system.test(name));
  if (strangeLibraries.length > 0) return `it asks for ${strangeLibraries.join(', ')}`;

  const nodeApi = nodeApiNames();
  const inMusl = target.libc === 'musl' ? muslNames(zig) : new Set();
  const strange = imports
    .filter(({ name, from }) => {
      if (target.platform === 'win32') return from === '';
      if (nodeApi.has(name)) return from !== '';
      return target.libc === 'musl' ? !inMusl.has(name) : !system.test(from);
    })
    .map(({ name, from }) => (from === '' ? name : `${name} of ${from}`));
  return strange.length > 0 ? `nobody has ${strange.join(', ')}` : '';
}

/** The functions of the Node-API that the oldest supported Node has. */
function nodeApiNames() {
  const { symbols } = createRequire(import.meta.url)('node-api-headers');
  const { js_native_api_symbols: engine, node_api_symbols: node } = symbols[`v${nodeApiVersion}`];
  return new Set([...engine, ...node]);
}

/** Every symbol of musl, as Zig knows it. @param {string} zig */
function muslNames(zig) {
  const stubs = path.join(zigLibFolder(zig), 'libc', 'musl', 'libc.S');
  const names = fs.readFileSync(stubs, 'utf8').matchAll(/^(?:\.globl|\.weak|WEAK\w*) (\w+)$/gm);
  const found = new Set([...names].map(([, name]) => name));
  if (!found.has('malloc')) throw new Failure(`${stubs} does not list musl's symbols`);
  return found;
}

/** @param {string} found @param {string} wanted as `glibc 2.28` */
function leastReason(found, wanted) {
  const [kind = '', version = ''] = found.split(' ');
  const [wantedKind = '', wantedVersion = ''] = wanted.split(' ');
  const fine = kind === wantedKind && compareVersions(version, wantedVersion) <= 0;
  return fine ? '' : `it asks for ${found || 'no known system'}`;
}

/** Texts that would tell where the addon was built. */
function machinePaths() {
  return [root, fs.realpathSync(inRoot('.deps')), os.homedir()].filter((text) => text.length > 1);
}

/**
 * Where each addon was tried, by name of the target: the labels of the hosts it passed in.
 * @typedef {Map<string, string[]>} Tried
 */

/**
 * Loads each addon on its platform and lets it read and write.
 *
 * @param {readonly Target[]} targets
 * @param {Checks} checks
 * @param {string} scratch a private folder
 * @returns {Promise<Tried>}
 */
export async function tryAll(targets, checks, scratch) {
  /** @type {Tried} */
  const tried = new Map();
  for (const target of targets) {
    /** @type {string[]} */
    const passed = [];
    tried.set(target.name, passed);
    if (!fs.existsSync(inRoot(target.prebuilt))) continue;
    for (const host of await hostsFor(target, targets, scratch)) {
      const what = 'golden containers, what it wrote, workers and exits';
      if (typeof host === 'string') {
        checks.skip(target.name, what, `only inspected: ${host}`);
        continue;
      }
      const reason = runIn(host, smokeProgram, [inRoot(target.prebuilt)], scratch, {
        end: smokeEnd,
      });
      checks.check(target.name, `${what}, in ${host.label}`, reason);
      if (reason === '') passed.push(host.label);
    }
  }
  return tried;
}

const smokeProgram = inRoot('test', 'support', 'smoke.mjs');
const smokeEnd = /^smoke: \d+ checks passed$/m;

/**
 * @typedef {object} Expected
 * @property {RegExp} end what it says when all went well
 * @property {string[]} [after] arguments after the folder
 * @property {NodeJS.ProcessEnv} [env]
 * @property {(output: string) => string} [reject] what is wrong with what it said; empty: nothing
 */

/**
 * Runs a script in a host, in an empty folder, whose path follows its arguments.
 *
 * @param {Host} host
 * @param {string} script
 * @param {string[]} args
 * @param {string} scratch
 * @param {Expected} expected
 * @returns {string} empty, or what it said
 */
export function runIn(host, script, args, scratch, { end, after = [], env = {}, reject }) {
  const folder = fs.mkdtempSync(path.join(scratch, 'run-'));
  const { ok, output } = runIntoFile(
    host.command,
    [...host.args, script, ...args, folder, ...after],
    {
      env: { ...host.env, ...env },
      cwd: folder,
      file: path.join(scratch, 'run.log'),
      secondsMax: 600,
    },
  );
  fs.rmSync(folder, { recursive: true, force: true });
  if (!ok || !end.test(output)) return `\n${output || 'it said nothing'}`;
  return reject?.(output) ?? '';
}

/** @param {Target} target @returns {string} hexadecimal SHA-256 of its addon */
export function digestOf(target) {
  return createHash('sha256')
    .update(fs.readFileSync(inRoot(target.prebuilt)))
    .digest('hex');
}
