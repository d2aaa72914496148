// @ts-check
// Coverage-guided fuzzing, one target after the other:
//
//     page         the first page of meta.zr                        AFL++, Zig core
//     gather       locations, stored bytes, open, gather, checks    AFL++, Zig core and zstd
//     dictionary   dictionaries, frames, training                   AFL++, Zig core and zstd
//     schema       MsgPack and JSON schemas                         AFL++, the built package in Node
//
//     npm run fuzz -- [--minutes N] [--target T]... [--keep]
//
// N minutes for each target, 5 if not said. Wants AFL++ and clang on PATH (Debian: apt-get install
// afl++ clang). The core has coverage and its safety checks, zstd coverage and AddressSanitizer. The
// TypeScript part gets its counters from istanbul-lib-instrument, which comes with npm into .deps/. A
// fuzzer begins with the kept corpus; --keep writes what it found worth keeping back into
// test/fuzz/corpus, minimised. Inputs that end a target stay in build/fuzz/findings. Each target that
// finds none passes; the last line is `N passed, N failed`.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from './build.mjs';
import { ask, npm, run } from './child.mjs';
import { installFolder } from './install.mjs';
import { depsFolder, Failure, inRoot, shown } from './script.mjs';
import { countingEntry, single, sum } from './tally.mjs';
import { ensureZstd, findOnPath } from './toolchain.mjs';
import { filesBelow, unlessUpToDate } from './up-to-date.mjs';

const nativeTargets = ['page', 'gather', 'dictionary'];
const targets = [...nativeTargets, 'schema'];
const usage = `npm run fuzz -- [--minutes N] [--target ${targets.join('|')}]... [--keep]`;
const inBuild = (/** @type {string[]} */ ...parts) => inRoot('build', 'fuzz', ...parts);

/** Longest input, and longest of a kept one: every path is reached by far shorter ones. */
const inputBytesMax = 4096;
/** Kept inputs of a target, the smallest first. */
const keptMax = 400;

/** @param {string[]} args */
function parse(args) {
  const options = { minutes: 5, wanted: /** @type {string[]} */ ([]), keeps: false };
  for (let index = 0; index < args.length; index += 1) {
    const name = args[index];
    if (name === '--keep') {
      options.keeps = true;
      continue;
    }
    index += 1;
    const value = args[index] ?? '';
    if (name === '--minutes' && Number(value) > 0) options.minutes = Number(value);
    else if (name === '--target' && targets.includes(value)) options.wanted.push(value);
    else throw new Failure(`npm run fuzz does not know ${name} ${value}`, usage);
  }
  return { ...options, wanted: options.wanted.length > 0 ? options.wanted : targets };
}

// ---- the native targets ----

/** zstd's sources as build.zig takes them: all but the legacy decoders. */
const zstdFolders = ['common', 'compress', 'decompress', 'dictBuilder'];
export const zstdDefines = [
  ...['-DXXH_NAMESPACE=ZSTD_', '-DZSTD_LEGACY_SUPPORT=0', '-DZSTD_TRACE=0', '-DDEBUGLEVEL=0'],
  '-DZSTD_DISABLE_ASM=1',
  // Memory goes through Zig, which overwrites what it frees: what zstd poisons inside its own blocks
  // would be reported.
  '-DZSTD_ASAN_DONT_POISON_WORKSPACE',
];

/** @param {string} lib @returns {string[]} */
export function zstdSources(lib) {
  return zstdFolders.flatMap((folder) =>
    filesBelow(path.join(lib, folder), (file) => file.endsWith('.c')),
  );
}

/** @returns {string} the compiler of AFL++ */
function needAfl() {
  const clang = findOnPath('afl-clang-fast');
  if (clang !== null && findOnPath('afl-fuzz') !== null) return clang;
  throw new Failure('there is no AFL++ on PATH', 'On Debian: apt-get install afl++ clang.');
}

/** The driver with core and zstd in it. @param {string} zig @returns {Promise<string>} its path */
async function buildDriver(zig) {
  const clang = needAfl();
  process.stdout.write('building the driver, the core and zstd (the first time: minutes)\n');
  if ((await run(zig, ['build', 'fuzz-core', '--color', 'off'])) !== 0) {
    throw new Failure('the core does not build for fuzzing', 'The compiler said why, above.');
  }
  const core = inRoot('zig-out', 'lib', 'libloaderx-fuzz.a');
  const driver = inBuild('driver');
  const lib = await ensureZstd();
  const sources = zstdSources(lib);
  const own = inRoot('test', 'fuzz', 'driver.c');
  const flags = ['-O2', '-g', '-std=gnu11', ...zstdDefines];
  const env = { AFL_USE_ASAN: '1', AFL_QUIET: '1' };
  fs.mkdirSync(inBuild('zstd'), { recursive: true });
  const objects = sources.map((source) => inBuild('zstd', `${path.basename(source, '.c')}.o`));
  await unlessUpToDate({
    name: 'fuzz-zstd',
    inputs: () => sources,
    facts: [...flags, clang],
    outputs: () => objects.filter((file) => fs.existsSync(file)),
    make: async () => {
      for (const [index, source] of sources.entries()) {
        await compile(clang, [...flags, '-c', source, '-o', objects[index] ?? ''], env);
      }
    },
  });
  await unlessUpToDate({
    name: 'fuzz-driver',
    inputs: () => [own, core, ...objects],
    facts: [...flags, clang],
    outputs: () => [driver].filter((file) => fs.existsSync(file)),
    make: () => compile(clang, [...flags, own, ...objects, core, '-o', driver, '-lpthread'], env),
  });
  return driver;
}

/** @param {string} clang @param {string[]} args @param {NodeJS.ProcessEnv} env */
async function compile(clang, args, env) {
  if ((await run(clang, args, { env })) !== 0) {
    throw new Failure(`${clang} failed`, 'It said why, above.');
  }
}

/**
 * A folder on a file system in memory, where there is one: targets write files by the thousand.
 *
 * @param {string} name
 */
function fastFolder(name) {
  const parent = fs.existsSync('/dev/shm') ? '/dev/shm' : os.tmpdir();
  return fs.mkdtempSync(path.join(parent, `loaderx-fuzz-${name}-`));
}

/** What every run of a driver has in its environment. */
const driverEnv = {
  ASAN_OPTIONS: 'abort_on_error=1:symbolize=0:detect_leaks=0:allocator_may_return_null=1',
};

/**
 * What AFL++ runs.
 *
 * @typedef {object} Program
 * @property {(scratch: string) => string[]} command with an empty folder that it may write in
 * @property {() => Promise<readonly Buffer[]>} first the inputs to begin with, beside the corpus
 * @property {number} timeoutMs of one input
 */

/** @param {string} driver @param {string} target @returns {Program} */
function nativeProgram(driver, target) {
  return {
    command: (scratch) => [driver, target, scratch],
    first: async () => {
      const { firstInputs } = await import('../test/fuzz/seeds.mjs');
      return (await firstInputs()).get(target) ?? [];
    },
    timeoutMs: 1000,
  };
}

/**
 * @param {string} target
 * @param {Program} program
 * @param {number} minutes
 * @param {boolean} keeps
 */
async function fuzzOne(target, program, minutes, keeps) {
  const corpus = await import('../test/fuzz/corpus.mjs');
  const work = fastFolder(target);
  try {
    const [input, output] = [path.join(work, 'in'), path.join(work, 'out')];
    const scratch = path.join(work, 'scratch');
    fs.mkdirSync(scratch);
    corpus.writeInputs(input, [...(await program.first()), ...corpus.readCorpus(target)]);
    const seconds = Math.round(minutes * 60);
    const size = ['-g', '1', '-G', String(inputBytesMax)];
    const limits = ['-m', 'none', '-t', String(program.timeoutMs), '-V', String(seconds), ...size];
    const command = program.command(scratch);
    const args = ['-i', input, '-o', output, ...limits, '--', ...command];
    const env = {
      ...driverEnv,
      ...{ AFL_NO_UI: '1', AFL_QUIET: '1', AFL_NO_AFFINITY: '1', AFL_SKIP_CPUFREQ: '1' },
      ...{ AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES: '1', AFL_NO_WARN_INSTABILITY: '1' },
      // A busy machine is no reason to take an input for a hang.
      AFL_HANG_TMOUT: '30000',
    };
    const code = await run('afl-fuzz', args, { env, quiet: true });
    const place = path.join(output, 'default');
    if (!fs.existsSync(path.join(place, 'fuzzer_stats'))) {
      await run('afl-fuzz', args, { env: { ...env, AFL_DEBUG: '1' } });
      throw new Failure(`afl-fuzz did not start (exit code ${code})`, 'It said why, above.');
    }
    const stats = readStats(path.join(place, 'fuzzer_stats'));
    const crashes = corpus.readInputs(path.join(place, 'crashes'));
    const hangs = corpus.readInputs(path.join(place, 'hangs'));
    process.stdout.write(
      `${target}: ${stats.get('execs_done')} inputs in ${stats.get('run_time')} s (${stats.get('execs_per_sec')} a second), ` +
        `${stats.get('edges_found')} of ${stats.get('total_edges')} edges, ${stats.get('corpus_count')} inputs worth keeping, ` +
        `${crashes.length} crashes, ${hangs.length} hangs\n`,
    );
    saveFindings(target, [...crashes, ...hangs]);
    if (keeps) await keep(target, command, path.join(place, 'queue'));
    return single(crashes.length + hangs.length === 0 && Number(stats.get('execs_done')) > 0);
  } finally {
    fs.rmSync(work, { recursive: true, force: true });
  }
}

/** @param {string} file @returns {Map<string, string>} */
function readStats(file) {
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  return new Map(
    lines.map((line) => {
      const [name = '', ...value] = line.split(':');
      return [name.trim(), value.join(':').trim()];
    }),
  );
}

/** @param {string} target @param {readonly Buffer[]} inputs */
function saveFindings(target, inputs) {
  for (const input of inputs) {
    const name = createHash('sha256').update(input).digest('hex').slice(0, 16);
    const file = inBuild('findings', target, name);
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, input);
    process.stdout.write(`  ${shown(file)}: ${input.length} bytes\n`);
  }
}

/**
 * Writes the corpus: few inputs, small ones first, that pass together through everything that the whole
 * queue passes through.
 *
 * @param {string} target
 * @param {readonly string[]} command
 * @param {string} queue
 */
async function keep(target, command, queue) {
  // Not below /dev: what afl-showmap writes to there must be a device.
  const traces = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-fuzz-traces-'));
  try {
    const few = await fewest(queue, traces, command);
    const corpus = await import('../test/fuzz/corpus.mjs');
    corpus.writeCorpus(target, few);
    process.stdout.write(`  ${shown(corpus.corpusFile(target))}: ${few.length} inputs\n`);
  } finally {
    fs.rmSync(traces, { recursive: true, force: true });
  }
}

/** @param {string} queue @param {string} traces @param {readonly string[]} command @returns {Promise<Buffer[]>} */
async function fewest(queue, traces, command) {
  /** @type {string[]} */
  const lines = [];
  const args = ['-q', '-i', queue, '-o', traces, '-m', 'none', '-t', '20000', '--', ...command];
  const code = await run('afl-showmap', args, {
    env: driverEnv,
    quiet: true,
    onLine: (line) => lines.push(line),
  });
  const names = fs.readdirSync(traces).filter((name) => name.startsWith('id:'));
  if (code !== 0 || names.length === 0) {
    throw new Failure('afl-showmap failed', lines.slice(-20).join('\n'));
  }
  const inputs = names
    .map((name) => ({
      input: fs.readFileSync(path.join(queue, name)),
      // A line is a place and how often it was passed, in AFL++'s classes.
      passed: fs.readFileSync(path.join(traces, name), 'utf8').split('\n').filter(Boolean),
    }))
    .sort((a, b) => a.input.length - b.input.length);
  /** @type {Set<string>} */
  const reached = new Set();
  const kept = inputs.filter(({ passed }) => {
    const before = reached.size;
    for (const place of passed) reached.add(place);
    return reached.size > before;
  });
  return kept.slice(0, keptMax).map(({ input }) => input);
}

// ---- the schema ----

/** What gives JavaScript its counters. @returns {Promise<string>} the folder it is in */
async function ensureInstrumenter() {
  const lock = inRoot('test', 'fuzz', 'instrument', 'package-lock.json');
  const wish = createHash('sha256').update(fs.readFileSync(lock)).digest('hex');
  const target = path.join(depsFolder, 'fuzz-instrument');
  const stamp = 'installed.sha256';
  await installFolder({
    target,
    isCurrent: () => {
      const file = path.join(target, stamp);
      return fs.existsSync(file) && fs.readFileSync(file, 'utf8') === wish;
    },
    prepare: (scratch) => {
      process.stdout.write('installing istanbul-lib-instrument into .deps/\n');
      const folder = path.join(scratch, 'prepared');
      fs.mkdirSync(folder);
      for (const file of [lock, path.join(path.dirname(lock), 'package.json'), inRoot('.npmrc')]) {
        fs.copyFileSync(file, path.join(folder, path.basename(file)));
      }
      const [command, ...args] = npm();
      const quiet = ['--ignore-scripts', '--no-audit', '--no-fund'];
      const answer = ask(command, [...args, 'ci', ...quiet], { cwd: folder });
      if (!answer.ok) throw new Failure('npm ci failed', answer.output.slice(-2000));
      fs.writeFileSync(path.join(folder, stamp), wish);
      return folder;
    },
  });
  return target;
}

/** What served.mjs loads: the target over the built package. */
const schemaEntry = `
  import { LoaderxError } from './dist/errors.js';
  import { decodeSchema, encodeSchema } from './dist/schema.js';
  import { tryOne } from './test/fuzz/schema-target.mjs';
  export const fuzz = (bytes) => tryOne({ LoaderxError, decodeSchema, encodeSchema }, bytes);
`;

/** @returns {Promise<Program>} */
async function schemaProgram() {
  const clang = needAfl();
  const instrumenter = await ensureInstrumenter();
  const { build: bundle } = await import('esbuild');
  const target = inBuild('schema', 'target.cjs');
  // One file: schema, dtypes and msgpackr, which reads the bytes.
  await bundle({
    stdin: { contents: schemaEntry, resolveDir: inRoot() },
    ...{ bundle: true, platform: 'node', format: 'cjs', outfile: target, logLevel: 'silent' },
  });
  const bridge = inBuild('bridge');
  const source = inRoot('test', 'fuzz', 'bridge.c');
  const flags = ['-O2', '-std=gnu11'];
  await unlessUpToDate({
    name: 'fuzz-bridge',
    inputs: () => [source],
    facts: [...flags, clang],
    outputs: () => [bridge].filter((file) => fs.existsSync(file)),
    make: () => compile(clang, [...flags, source, '-o', bridge], { AFL_QUIET: '1' }),
  });
  const server = inRoot('test', 'fuzz', 'served.mjs');
  return {
    // Compiled once and for all paths: what the optimiser does later is no coverage.
    command: (scratch) => {
      const map = path.join(scratch, 'map');
      return [bridge, map, process.execPath, server, target, instrumenter, map];
    },
    first: async () => (await import('../test/fuzz/schema-inputs.mjs')).hostileSchemas(),
    // The bridge has a time limit of its own, and AFL++ would end it and not Node.
    timeoutMs: 20_000,
  };
}

/** @param {string[]} args */
async function fuzz(args) {
  const { minutes, wanted, keeps } = parse(args);
  const tools = await bootstrap();
  await build(tools);
  const isNative = wanted.some((target) => nativeTargets.includes(target));
  const driver = isNative ? await buildDriver(tools.zig) : '';
  const results = [];
  for (const target of wanted) {
    process.stdout.write(`${target}: ${minutes} minutes\n`);
    const program = target === 'schema' ? await schemaProgram() : nativeProgram(driver, target);
    results.push(await fuzzOne(target, program, minutes, keeps));
  }
  return sum(results);
}

await countingEntry(import.meta, fuzz);
