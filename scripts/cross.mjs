// @ts-check
// Builds the addon for every platform and examines each file as its loader would; where a host for
// it is at hand, the addon also reads and writes real containers there. The last line is
// `N passed, N failed`.
//
//     npm run cross
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap } from './build.mjs';
import { run, runIntoFile } from './child.mjs';
import { hostFor } from './foreign-host.mjs';
import { collectLicences } from './licences.mjs';
import { entry, explain, Failure, inRoot, root } from './script.mjs';
import { compareVersions, readSharedLibrary } from './shared-library.mjs';
import { closingLine, exitCode } from './tally.mjs';

/** @typedef {import('./shared-library.mjs').SharedLibrary} SharedLibrary */

/**
 * What a platform's addon must be. Written apart from build.zig's table on purpose: the one says
 * what is built, the other what is promised.
 * @typedef {object} Promised
 * @property {string} platform
 * @property {string} file
 * @property {SharedLibrary['format']} format
 * @property {string} machine
 * @property {RegExp} libraries each library it may ask for
 * @property {string} least the newest system it may ask for
 */

const glibcLibraries = /^(lib(c|m|dl|pthread|rt)\.so\.\d+|ld-linux-(x86-64|aarch64)\.so\.\d)$/;

/** @type {Promised[]} */
const promised = [
  {
    platform: 'linux-x64',
    file: 'loaderx.glibc.node',
    format: 'ELF',
    machine: 'x64',
    libraries: glibcLibraries,
    least: 'glibc 2.28',
  },
  {
    platform: 'linux-arm64',
    file: 'loaderx.glibc.node',
    format: 'ELF',
    machine: 'arm64',
    libraries: glibcLibraries,
    least: 'glibc 2.28',
  },
  {
    platform: 'darwin-arm64',
    file: 'loaderx.node',
    format: 'Mach-O',
    machine: 'arm64',
    libraries: /^\/usr\/lib\/libSystem\.B\.dylib$/,
    least: 'macOS 11.0',
  },
  {
    platform: 'win32-x64',
    file: 'loaderx.node',
    format: 'PE',
    machine: 'x64',
    // Not node.exe: the host may have another name (napi/win_napi.zig).
    libraries: /^(kernel32|ntdll|advapi32|ucrtbase|api-ms-win-crt-[a-z]+-l1-1-0)\.dll$/i,
    least: '',
  },
];

const bytesMax = 1.5 * 1024 * 1024;
const entryPoint = 'napi_register_module_v1';
const elfExports = ['napi_register_module_v1', 'node_api_module_get_api_version_v1'];

const tally = { passed: 0, failed: 0, skipped: 0 };

/** One counted check: passes if `reason` is empty. @param {string} what @param {string} reason */
function check(what, reason) {
  tally[reason === '' ? 'passed' : 'failed'] += 1;
  process.stdout.write(reason === '' ? `ok      ${what}\n` : `FAILED  ${what}: ${reason}\n`);
}

/** @param {string} what @param {string} reason */
function skip(what, reason) {
  tally.skipped += 1;
  process.stdout.write(`skipped ${what}: not run: ${reason}\n`);
}

async function cross() {
  const { zig } = await bootstrap();
  const folder = inRoot('prebuilds');
  fs.rmSync(folder, { recursive: true, force: true });
  process.stdout.write('cross-compiling (the first time, with zstd and libc++ each: minutes)\n');
  const code = await run(zig, ['build', 'prebuilds', '--color', 'off']);
  check('zig build prebuilds', code === 0 ? '' : 'the compiler said why, above');

  const built = fs.existsSync(folder) ? fs.readdirSync(folder).sort() : [];
  const wanted = promised.map(({ platform }) => platform).sort();
  check(
    'the platforms are those that are promised',
    built.join() === wanted.join() ? '' : `built ${built.join(', ') || 'nothing'}`,
  );

  const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-cross-'));
  try {
    for (const promise of promised) await examine(promise, scratch);
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
  check(
    'the licences of what is linked in',
    reasonOf(() => collectLicences(zig)),
  );
}

/** @param {Promised} promise @param {string} scratch */
async function examine(promise, scratch) {
  const { platform } = promise;
  const file = inRoot('prebuilds', platform, promise.file);
  const content = fs.existsSync(file) ? fs.readFileSync(file) : null;
  if (content === null) {
    check(`${platform}: ${promise.file}`, 'it is missing');
    return;
  }
  check(
    `${platform}: at most ${bytesMax} bytes (${content.length})`,
    content.length <= bytesMax ? '' : 'too large to ship',
  );
  const paths = machinePaths.filter((text) => content.includes(text));
  check(`${platform}: no path of this machine inside`, paths.join(', '));

  /** @type {SharedLibrary} */
  let library;
  try {
    library = readSharedLibrary(content);
  } catch (error) {
    check(`${platform}: a shared library`, explain(error));
    return;
  }
  const kind = `${library.format} ${library.machine}`;
  const wantedKind = `${promise.format} ${promise.machine}`;
  check(`${platform}: ${wantedKind}`, kind === wantedKind ? '' : `it is ${kind}`);
  check(`${platform}: exports ${entryPoint}`, exportsReason(library));
  const strange = library.libraries.filter((name) => !promise.libraries.test(name));
  check(`${platform}: needs system libraries only`, strange.join(', '));
  if (promise.least !== '') {
    check(`${platform}: runs from ${promise.least} on`, leastReason(library.least, promise.least));
  }
  if (library.signature !== undefined) {
    check(`${platform}: the code signature holds`, library.signature);
  }
  await smoke(platform, file, scratch);
}

/** @param {SharedLibrary} library */
function exportsReason({ format, exports }) {
  if (!exports.includes(entryPoint)) return `it exports ${exports.join(', ') || 'nothing'}`;
  const extra = exports.filter((name) => !elfExports.includes(name));
  return format === 'ELF' && extra.length > 0 ? `it also exports ${extra.join(', ')}` : '';
}

/** @param {string} found @param {string} wanted as `glibc 2.28` */
function leastReason(found, wanted) {
  const [kind = '', version = ''] = found.split(' ');
  const [wantedKind = '', wantedVersion = ''] = wanted.split(' ');
  const fine = kind === wantedKind && compareVersions(version, wantedVersion) <= 0;
  return fine ? '' : `it asks for ${found || 'no known system'}`;
}

/**
 * Loads the addon on its platform and lets it read and write.
 *
 * @param {string} platform
 * @param {string} file
 * @param {string} scratch
 */
async function smoke(platform, file, scratch) {
  const what = `${platform}: reads golden containers, and what it wrote itself`;
  const host = await hostFor(platform, scratch);
  if (typeof host === 'string') {
    skip(what, host);
    return;
  }
  const folder = path.join(scratch, platform);
  fs.mkdirSync(folder);
  const { ok, output } = runIntoFile(
    host.command,
    [...host.args, inRoot('test', 'support', 'smoke.mjs'), file, folder],
    { env: host.env, cwd: folder, file: path.join(scratch, `${platform}.log`), secondsMax: 600 },
  );
  const done = /^smoke: \d+ checks passed$/m.test(output);
  check(what, ok && done ? '' : `\n${output || 'it said nothing'}`);
}

/** Texts that would tell where the addon was built. */
const machinePaths = [root, os.homedir()].filter((text) => text.length > 1);

/** @param {() => void} body */
function reasonOf(body) {
  try {
    body();
    return '';
  } catch (error) {
    return explain(error);
  }
}

await entry(import.meta, async (args) => {
  try {
    if (args.length > 0)
      throw new Failure(`npm run cross takes no arguments, not ${args.join(' ')}`);
    await cross();
  } catch (error) {
    check('cross', explain(error));
  }
  process.stdout.write(`\n${closingLine(tally)}\n`);
  return exitCode(tally);
});
