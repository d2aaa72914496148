// @ts-check
// What the bench runs: this package, the limits helper, and the peers, installed into .bench/ and
// never into the package's own node_modules. A peer that cannot be had is missing alone, by name and
// with the reason; it stops nothing.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { bootstrap, build } from '../scripts/build.mjs';
import { ask, npm, run } from '../scripts/child.mjs';
import { environmentOf, generations } from '../scripts/interop.mjs';
import { ensurePythonEnvironment } from '../scripts/python-environment.mjs';
import { explain, Failure, inRoot } from '../scripts/script.mjs';
import { ensureZstd } from '../scripts/toolchain.mjs';
import { inBench, limitsProgram } from './paths.mjs';

/** @typedef {import('../scripts/python-environment.mjs').Environment} Environment */

/** A Python, or why there is none. @typedef {{environment: Environment} | {missing: string}} Python */

/**
 * @typedef {object} Environments
 * @property {Record<'peers' | 'loaders' | 'loaderx-2.4' | 'loaderx-2.8', Python>} python
 * @property {string | null} nodeMissing why there are no npm peers
 * @property {boolean} hasGcc gcc's build of the limits is there
 */

/**
 * @param {(name: string) => boolean} isWanted of `node`, `gcc` and the Pythons
 * @returns {Promise<Environments>}
 */
export async function ensureEnvironments(isWanted) {
  const tools = await bootstrap();
  await build(tools);
  if ((await run(tools.zig, ['build', 'bench-limits', '--color', 'off'])) !== 0) {
    throw new Failure('the limits helper does not build', 'The compiler said why, above.');
  }
  const unwanted = { missing: 'not asked for' };
  return {
    python: {
      peers: isWanted('peers') ? peersPython() : unwanted,
      loaders: isWanted('loaders') ? loadersPython() : unwanted,
      'loaderx-2.4': isWanted('loaderx-2.4')
        ? attempt(() => environmentOf(generations['2.4']))
        : unwanted,
      'loaderx-2.8': isWanted('loaderx-2.8')
        ? attempt(() => environmentOf(generations['2.8']))
        : unwanted,
    },
    nodeMissing: isWanted('node') ? await ensureNodePeers() : unwanted.missing,
    hasGcc: isWanted('gcc') && (await ensureGccLimits()),
  };
}

/** @param {() => Environment | null} make @returns {Python} */
function attempt(make) {
  try {
    const environment = make();
    return environment === null ? { missing: 'no Python is new enough' } : { environment };
  } catch (error) {
    return { missing: explain(error) };
  }
}

/** The Python of the peers, and of prepare.mjs. */
export function peersPython() {
  return pythonOf('python', inRoot('bench', 'requirements.txt'));
}

/** The Python of the loader bench: Numba must be where loaderx is. */
function loadersPython() {
  return pythonOf('python-loaders', inRoot('bench', 'loader', 'requirements.txt'));
}

/** @param {string} name of its folder @param {string} requirements a file: NumPy, and then what is installed one by one */
function pythonOf(name, requirements) {
  return attempt(() => {
    const lines = fs
      .readFileSync(requirements, 'utf8')
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'));
    const isBase = (/** @type {string} */ line) => line.startsWith('numpy');
    fs.mkdirSync(inBench(), { recursive: true });
    const base = inBench('numpy.txt');
    fs.writeFileSync(base, `${lines.filter(isBase).join('\n')}\n`);
    const environment = ensurePythonEnvironment({
      name,
      parent: inBench(),
      versionMin: [3, 10],
      pinned: base,
      probe: 'import numpy',
    });
    if (environment !== null) {
      for (const line of lines) if (!isBase(line)) installPython(name, environment, line, base);
    }
    return environment;
  });
}

/** What is missing shows when its backend is asked about itself. @param {string} name @param {Environment} environment @param {string} line @param {string} base */
function installPython(name, { python, env }, line, base) {
  const stamp = inBench(name, `installed-${line}`);
  if (fs.existsSync(stamp)) return;
  process.stdout.write(`installing ${line}\n`);
  const target = env.PYTHONPATH === undefined ? [] : ['--target', env.PYTHONPATH];
  const answer = ask(python, [
    ...['-m', 'pip', 'install', '--disable-pip-version-check', '--no-input', '--quiet'],
    ...['--retries', '2', '--timeout', '60', '--progress-bar', 'off'],
    ...['--only-binary', ':all:', '--constraint', base, ...target, line],
  ]);
  if (answer.ok) fs.writeFileSync(stamp, '');
  else process.stdout.write(`  not to be had: ${lastLine(answer.output)}\n`);
}

/** Packages whose scripts may run: they compile their native part, having none for every Node. */
const compiled = ['@riaskov/mmap-io', 'better-sqlite3'];

/** @returns {Promise<string | null>} why there are none; null when they are there */
async function ensureNodePeers() {
  const folder = inBench('node');
  const lock = inRoot('bench', 'package-lock.json');
  const wish = createHash('sha256').update(fs.readFileSync(lock)).digest('hex');
  const stamp = path.join(folder, 'installed.sha256');
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === wish) return null;

  process.stdout.write('installing the npm peers into .bench/node (two are compiled: minutes)\n');
  fs.rmSync(folder, { recursive: true, force: true });
  fs.mkdirSync(folder, { recursive: true });
  for (const file of [lock, inRoot('bench', 'package.json'), inRoot('.npmrc')]) {
    fs.copyFileSync(file, path.join(folder, path.basename(file)));
  }
  const [command, ...args] = npm();
  const quiet = ['--no-audit', '--no-fund'];
  const options = { cwd: folder };
  const installed = ask(command, [...args, 'ci', '--ignore-scripts', ...quiet], options);
  if (!installed.ok) return `npm ci: ${lastLine(installed.output)}`;
  for (const name of compiled) {
    // Headers that came with this Node, where they did: node-gyp would fetch them otherwise.
    const home = path.dirname(path.dirname(process.execPath));
    const headers = fs.existsSync(path.join(home, 'include', 'node', 'node.h'))
      ? { npm_config_nodedir: home }
      : {};
    const rebuild = [...args, 'rebuild', name, '--ignore-scripts=false', ...quiet];
    const answer = ask(command, rebuild, { ...options, env: headers });
    if (!answer.ok) process.stdout.write(`  ${name}: ${lastLine(answer.output)}\n`);
  }
  // A module's imports are resolved from where it lies.
  fs.writeFileSync(path.join(folder, 'load.mjs'), 'export const load = (name) => import(name);\n');
  fs.writeFileSync(stamp, wish);
  return null;
}

/** gcc's build of the same sources, where there is a gcc: for information beside ours. */
async function ensureGccLimits() {
  if (!ask('gcc', ['--version']).ok) return false;
  const lib = await ensureZstd();
  const source = inRoot('bench', 'limits', 'limits.c');
  const program = limitsProgram(true);
  const wish = createHash('sha256').update(fs.readFileSync(source)).update(lib).digest('hex');
  const stamp = `${program}.sha256`;
  if (fs.existsSync(stamp) && fs.readFileSync(stamp, 'utf8') === wish) return true;
  process.stdout.write('building the limits with gcc, too\n');
  fs.mkdirSync(inBench(), { recursive: true });
  const sources = ['common', 'compress', 'decompress', 'dictBuilder'].flatMap((part) =>
    fs
      .readdirSync(path.join(lib, part))
      .filter((name) => /\.[cS]$/.test(name))
      .map((name) => path.join(lib, part, name)),
  );
  const answer = ask('gcc', [
    ...['-O3', '-DNDEBUG', '-pthread', '-DZSTD_LEGACY_SUPPORT=0', `-I${lib}`],
    ...[source, ...sources, '-o', program],
  ]);
  if (!answer.ok) {
    process.stdout.write(`  gcc: ${lastLine(answer.output)}\n`);
    return false;
  }
  fs.writeFileSync(stamp, wish);
  return true;
}

/** Addresses may carry credentials. @param {string} output */
function lastLine(output) {
  const lines = output
    .replace(/\b[a-z]+:\/\/\S+/gi, '<address>')
    .trim()
    .split('\n');
  return lines.filter((line) => /error|not|no /i.test(line)).at(-1) ?? lines.at(-1) ?? '';
}
