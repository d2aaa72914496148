// @ts-check
// The package as users have it: installed by npm from the tarball into an empty folder, with scripts
// disabled. What it must do there is in test/install/; here it is arranged, broken and judged.
import fs from 'node:fs';
import path from 'node:path';
import { ask, npm } from './child.mjs';
import { hostsFor } from './foreign-host.mjs';
import { runIn } from './prebuilds.mjs';
import { Failure, inRoot } from './script.mjs';
import { installReason } from './tarball.mjs';
import { ownTarget } from './targets.mjs';

/** @typedef {import('./checks.mjs').Checks} Checks */
/** @typedef {import('./targets.mjs').Target} Target */

/** A folder as users have them, in which most ways to build a path or URL by hand go wrong. */
const awkwardName = "Ünï cøde 日本 #1 %20 'q' 🙂";
const used = /^used: /m;

/** What importing may take at most, in milliseconds: the best of several processes. */
export const importMsMax = 30;
/** Packages that an installation may have at most. */
export const packagesMax = 2;

/**
 * @param {string} tarball
 * @param {string} folder a new folder of this name is made
 * @returns {string} the same folder
 */
export function installInto(tarball, folder) {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true }\n');
  npmIn(folder, ['install', '--ignore-scripts', tarball]);
  for (const name of ['use.mjs', 'program.mjs', 'failure.mjs']) {
    fs.copyFileSync(inRoot('test', 'install', name), path.join(folder, name));
  }
  return folder;
}

/** @param {string} folder @param {string[]} args */
function npmIn(folder, args) {
  const [command, ...before] = npm();
  const quiet = ['--no-audit', '--no-fund', '--silent'];
  const answer = ask(command, [...before, ...args, ...quiet], { cwd: folder });
  if (!answer.ok) throw new Failure(`npm ${args.join(' ')} failed`, answer.output);
}

/**
 * @param {object} release
 * @param {string} release.tarball
 * @param {readonly Target[]} release.targets
 * @param {string} release.tools node_modules of the release tools
 * @param {string} release.scratch a private folder
 * @param {Checks} release.checks
 * @returns {Promise<string>} the folder where it is installed
 */
export async function judgeInstalled({ tarball, targets, tools, scratch, checks }) {
  const app = installInto(tarball, path.join(scratch, awkwardName));
  judgeTree(app, checks);
  await judgeUse({ app, tarball, targets, scratch, checks });
  judgeNames(app, targets, checks);
  judgeLockFile(tarball, scratch, checks);
  judgeCommandLine(app, checks);
  await judgeBundles(app, tools, targets, scratch, checks);
  judgeFailures(app, targets, checks);
  return app;
}

/** @param {string} app @param {Checks} checks */
function judgeTree(app, checks) {
  const modules = path.join(app, 'node_modules');
  const lock = JSON.parse(fs.readFileSync(path.join(app, 'package-lock.json'), 'utf8'));
  const names = Object.keys(lock.packages).filter((name) => name !== '');
  checks.check(
    'install',
    `at most ${packagesMax} packages (${names.length})`,
    names.length <= packagesMax ? '' : names.join(', '),
  );
  const active = names.flatMap((name) => {
    const reason = installReason(path.join(app, name));
    return reason === '' ? [] : [`${path.relative(modules, name)}: ${reason}`];
  });
  checks.check('install', 'no install script and no binding.gyp in the tree', active.join('; '));
}

/**
 * Every way of loading, in every Node of this platform; importing in every other host.
 *
 * @param {{app: string, tarball: string, targets: readonly Target[], scratch: string, checks: Checks}} it
 */
async function judgeUse({ app, tarball, targets, scratch, checks }) {
  const own = ownTarget(targets);
  const second = installInto(tarball, path.join(scratch, 'second'));
  const copy = path.join(second, 'node_modules', 'loaderx');
  for (const target of targets) {
    const ways = [['import'], ['require'], ['stores of every name']];
    if (target.name === own?.name) {
      ways.push(
        ['only in workers, one after the other'],
        ['in the main thread and 16 workers'],
        ['two copies at once', copy],
      );
    }
    for (const host of await hostsFor(target, targets, scratch)) {
      // tryAll has said that it is only inspected.
      if (typeof host === 'string') continue;
      for (const [how = '', other] of ways) {
        const what = `installed: ${how}`;
        const reason = runIn(host, path.join(app, 'program.mjs'), [how], scratch, {
          end: used,
          after: other === undefined ? [] : [other],
          // The native file is the one of this very target, and no other.
          reject: (output) => wrongFile(output, target, how.startsWith('two') ? 2 : 1),
        });
        checks.check(target.name, `${what}, in ${host.label}`, reason);
      }
    }
  }
}

/** @param {string} output @param {Target} target @param {number} count */
function wrongFile(output, target, count) {
  /** @type {string[]} */
  const files = JSON.parse(/^used: .*?(\[.*\])\r?$/m.exec(output)?.[1] ?? '[]');
  const ends = files.map((file) => file.replaceAll('\\', '/'));
  const fine = ends.every((file) => file.endsWith(target.prebuilt.replaceAll('\\', '/')));
  return fine && files.length === count ? '' : `it loaded ${files.join(', ') || 'nothing'}`;
}

/** node-gyp-build finds each file for its platform. @param {string} app @param {readonly Target[]} targets @param {Checks} checks */
function judgeNames(app, targets, checks) {
  const root = path.join(app, 'node_modules', 'loaderx');
  const ask1 = `console.log(require('node-gyp-build').path(${JSON.stringify(root)}))`;
  for (const target of targets) {
    const env = {
      npm_config_platform: target.platform,
      npm_config_arch: target.arch,
      ...(target.libc === '' ? {} : { LIBC: target.libc }),
    };
    const answer = ask(process.execPath, ['-e', ask1], { cwd: app, env });
    const wanted = path.join(root, target.prebuilt);
    checks.check(
      target.name,
      'node-gyp-build finds it by its name',
      answer.stdout === wanted ? '' : answer.output,
    );
  }
}

/** A lock file that was made on another platform installs what works here. @param {string} tarball @param {string} scratch @param {Checks} checks */
function judgeLockFile(tarball, scratch, checks) {
  const folder = path.join(scratch, 'locked-elsewhere');
  fs.mkdirSync(folder);
  fs.writeFileSync(path.join(folder, 'package.json'), '{ "private": true }\n');
  npmIn(folder, ['install', '--package-lock-only', '--os=win32', '--cpu=arm64', tarball]);
  npmIn(folder, ['ci', '--ignore-scripts']);
  const program = "import('loaderx').then(({ Dense }) => Dense.open('nowhere'))";
  const answer = ask(process.execPath, ['-e', program], { cwd: folder });
  const fine = answer.output.includes('NOT_FOUND');
  checks.check('install', 'a lock file of another platform', fine ? '' : answer.output);
}

/** @param {string} app @param {Checks} checks */
function judgeCommandLine(app, checks) {
  const shim = path.join(app, 'node_modules', '.bin', 'loaderx');
  const [command, ...args] = process.platform === 'win32' ? ['cmd.exe', '/d', '/c', shim] : [shim];
  const answer = ask(command ?? shim, [...args, '--help'], { cwd: app });
  const fine = answer.ok && answer.stdout.includes('verify');
  checks.check('install', 'the command loaderx', fine ? '' : answer.output);
}

/**
 * Bundled by esbuild and webpack, with the package outside and inside; inside a single executable.
 *
 * @param {string} app
 * @param {string} tools
 * @param {readonly Target[]} targets
 * @param {string} scratch
 * @param {Checks} checks
 */
async function judgeBundles(app, tools, targets, scratch, checks) {
  const addon = ownTarget(targets)?.prebuilt;
  if (addon === undefined) {
    checks.skip('bundle', 'esbuild, webpack, single executable', 'no addon is for this machine');
    return;
  }
  const copied = path.join(scratch, 'copied.node');
  fs.copyFileSync(path.join(app, 'node_modules', 'loaderx', addon), copied);
  const source = path.join(app, 'bundled.mjs');
  fs.writeFileSync(
    source,
    `import * as loaderx from 'loaderx';
import { use } from './use.mjs';
use(loaderx, process.argv.at(-1)).then(
  () => console.log('used: bundled'),
  (error) => console.log(JSON.stringify({ code: error.code, message: error.message })),
);
`,
  );
  const { build } = await import('esbuild');
  for (const format of /** @type {const} */ (['esm', 'cjs'])) {
    for (const external of [true, false]) {
      const outfile = path.join(
        external ? app : scratch,
        `esbuild-${format}-${external}.${format === 'esm' ? 'mjs' : 'cjs'}`,
      );
      await build({
        entryPoints: [source],
        outfile,
        format,
        bundle: true,
        platform: 'node',
        target: 'node20.19',
        logLevel: 'silent',
        external: external ? ['loaderx'] : [],
      });
      judgeBundle(`esbuild, ${format}`, outfile, { external, copied, scratch, checks });
    }
  }

  const configuration = path.join(scratch, 'webpack.mjs');
  for (const external of [true, false]) {
    const outfile = path.join(external ? app : scratch, `webpack-${external}.mjs`);
    fs.writeFileSync(
      configuration,
      `import webpack from ${JSON.stringify(path.join(tools, 'webpack', 'lib', 'index.js'))};
webpack({
  mode: 'production', target: 'node20', entry: ${JSON.stringify(source)}, context: ${JSON.stringify(app)},
  experiments: { outputModule: true }, externalsType: 'module',
  externals: ${external ? "{ loaderx: 'module loaderx' }" : '{}'},
  output: { path: ${JSON.stringify(path.dirname(outfile))}, filename: ${JSON.stringify(path.basename(outfile))},
    module: true, chunkFormat: 'module', library: { type: 'module' } },
}, (error, stats) => {
  const problems = error ?? (stats.hasErrors() ? stats.toString({ all: false, errors: true }) : '');
  if (problems !== '') { console.log(String(problems)); process.exitCode = 1; }
});
`,
    );
    const packed = ask(process.execPath, [configuration]);
    if (!packed.ok) checks.check('bundle', 'webpack', packed.output);
    else judgeBundle('webpack', outfile, { external, copied, scratch, checks });
  }
  await judgeSingleExecutable(
    path.join(scratch, 'esbuild-cjs-false.cjs'),
    { copied, scratch, checks },
    tools,
  );
}

/**
 * @param {string} name
 * @param {string} file
 * @param {{external: boolean, copied: string, scratch: string, checks: Checks}} how
 */
function judgeBundle(name, file, { external, copied, scratch, checks }) {
  const host = { label: '', command: process.execPath, args: [], env: {} };
  const end = /^used: bundled/m;
  if (external) {
    checks.check('bundle', `${name}, loaderx external`, runIn(host, file, [], scratch, { end }));
    return;
  }
  const env = { LOADERX_ADDON: copied };
  const withCopy = runIn(host, file, [], scratch, { end, env });
  checks.check('bundle', `${name}, loaderx inside, LOADERX_ADDON names the copied file`, withCopy);
  // Somewhere without an installed loaderx above it.
  const lonely = path.join(scratch, path.basename(file));
  const answer = ask(process.execPath, [lonely, scratch], { env: { LOADERX_ADDON: '' } });
  const reason = sentenceReason(answer.output, ['LOADERX_ADDON', 'external']);
  checks.check('bundle', `${name}, loaderx inside and no file named: says what to set`, reason);
}

/**
 * @param {string} bundle CommonJS
 * @param {{copied: string, scratch: string, checks: Checks}} how
 * @param {string} tools
 */
async function judgeSingleExecutable(bundle, { copied, scratch, checks }, tools) {
  const what = 'a single executable, LOADERX_ADDON names the copied file';
  const blob = path.join(scratch, 'single.blob');
  const configuration = path.join(scratch, 'single.json');
  fs.writeFileSync(
    configuration,
    JSON.stringify({ main: bundle, output: blob, disableExperimentalSEAWarning: true }),
  );
  const made = ask(process.execPath, ['--experimental-sea-config', configuration]);
  if (!made.ok) {
    checks.check('bundle', what, made.output);
    return;
  }
  const program = path.join(scratch, process.platform === 'win32' ? 'single.exe' : 'single');
  fs.copyFileSync(process.execPath, program);
  const postject = path.join(tools, 'postject', 'dist', 'cli.js');
  const fuse = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2';
  const segment = process.platform === 'darwin' ? ['--macho-segment-name', 'NODE_SEA'] : [];
  const injected = ask(process.execPath, [
    ...[postject, program, 'NODE_SEA_BLOB', blob, '--sentinel-fuse', fuse],
    ...segment,
  ]);
  const folder = fs.mkdtempSync(path.join(scratch, 'single-'));
  const answer = injected.ok
    ? ask(program, [folder], { cwd: folder, env: { LOADERX_ADDON: copied } })
    : injected;
  checks.check('bundle', what, answer.output.includes('used: bundled') ? '' : answer.output);
}

/**
 * What an installation says that has no file for where it runs.
 *
 * @param {string} app
 * @param {readonly Target[]} targets
 * @param {Checks} checks
 */
function judgeFailures(app, targets, checks) {
  const covered = [...new Set(targets.map(({ folder }) => folder))];
  const prebuilds = path.join(app, 'node_modules', 'loaderx', 'prebuilds');
  /** @param {string} what @param {string[]} args @param {string[]} wanted @param {NodeJS.ProcessEnv} [env] */
  const says = (what, args, wanted, env = {}) => {
    const answer = ask(process.execPath, ['failure.mjs', ...args], { cwd: app, env });
    const reason = sentenceReason(answer.output, [
      ...wanted,
      ...covered,
      'git clone',
      'npm run build',
    ]);
    checks.check('failure', what, reason);
  };

  says('an unknown platform', ['sunos', 's390x'], ['sunos-s390x']);
  says('an unknown processor', ['linux', 'riscv64', 'glibc'], ['linux-riscv64 (glibc 2.36)']);
  const elsewhere = process.arch === 'x64' ? 'arm64' : 'x64';
  says(
    `${elsewhere} asked for by npm's settings`,
    [],
    [`ask for ${process.platform}-${elsewhere}`],
    {
      npm_config_arch: elsewhere,
    },
  );

  // Each file taken away from the installed package, as seen from its platform.
  for (const target of targets) {
    const file = path.join(app, 'node_modules', 'loaderx', target.prebuilt);
    const content = fs.readFileSync(file);
    fs.rmSync(file);
    const libc = target.libc === '' ? [] : [target.libc];
    const shown = target.libc === 'glibc' ? 'glibc 2.36' : target.libc;
    says(
      `${target.name}: its file is missing`,
      [target.platform, target.arch, ...libc],
      [
        `the file for ${target.folder}${shown === '' ? '' : ` (${shown})`} is missing`,
        prebuilds,
        'install loaderx again',
      ],
    );
    fs.writeFileSync(file, content, { mode: 0o755 });
  }
}

/**
 * A failure is one typed error whose message is one sentence with all of `wanted`, and nothing of what
 * the loader of the system or a stack would say.
 *
 * @param {string} output JSON, by failure.mjs or a bundle
 * @param {string[]} wanted
 * @returns {string} empty: it is
 */
function sentenceReason(output, wanted) {
  /** @type {{code?: string, message?: string}} */
  let said;
  try {
    said = JSON.parse(output);
  } catch {
    return `\n${output}`;
  }
  const { code, message = '' } = said;
  if (code !== 'UNSUPPORTED') return `the code is ${code}: ${message}`;
  const absent = wanted.filter((text) => !message.includes(text));
  if (absent.length > 0) return `it does not say ${absent.join(', ')}: ${message}`;
  if (/\n|\. [A-Z]|symbol|\bat .*:\d+:\d+/.test(message)) return `not one sentence: ${message}`;
  return '';
}

/**
 * @param {string} app
 * @returns {{bestMs: number, medianMs: number, runs: number}} of `import 'loaderx'`, in new processes
 */
export function measureImport(app) {
  const program = `const before = performance.now();
import('loaderx').then(() => console.log(performance.now() - before));`;
  const times = Array.from({ length: 15 }, () =>
    Number(ask(process.execPath, ['-e', program], { cwd: app }).stdout),
  ).sort((a, b) => a - b);
  return { bestMs: times[0] ?? Number.NaN, medianMs: times[7] ?? Number.NaN, runs: times.length };
}
