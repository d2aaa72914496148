// @ts-check
// Memory errors, looked for by programs that see every access:
//
//     valgrind   the Zig tests in Debug and ReleaseFast, and test/native/teardown.c over the C ABI
//     clang      zstd and teardown.c with AddressSanitizer and UndefinedBehaviorSanitizer over the core
//                with its checks; then every kept input of the fuzzers
//     addon      the N-API shim and zstd with both, inside Node: a smoke test, and damaged containers
//
//     npm run sanitize -- [--only valgrind|clang|addon]... [--mutants N] [--seed S]
//
// Wants valgrind and clang on PATH (Debian: apt-get install valgrind clang). A finding is an error, or
// memory that is definitely lost. Each program counts; the last line is `N passed, N failed`.
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { bootstrap, build } from './build.mjs';
import { ask, run } from './child.mjs';
import { zstdDefines, zstdSources } from './fuzz.mjs';
import { described } from './mutate.mjs';
import { Failure, inRoot } from './script.mjs';
import { countingEntry, single, sum } from './tally.mjs';
import { ensureZstd, findOnPath } from './toolchain.mjs';
import { unlessUpToDate } from './up-to-date.mjs';

/** @typedef {import('./tally.mjs').Tally} Tally */
/** @typedef {{zig: string, folder: string, mutants: number, seed: string}} Scene */

const inBuild = (/** @type {string[]} */ ...parts) => inRoot('build', 'sanitize', ...parts);
const usage = 'npm run sanitize -- [--only valgrind|clang|addon]... [--mutants N] [--seed S]';

/** @param {string} name @returns {string} */
function program(name) {
  const found = findOnPath(name);
  if (found !== null) return found;
  throw new Failure(`there is no ${name} on PATH`, `On Debian: apt-get install ${name}.`);
}

/** @param {string} zig @param {readonly string[]} args */
async function zigBuild(zig, args) {
  if ((await run(zig, ['build', ...args, '--color', 'off'])) !== 0) {
    throw new Failure(`zig build ${args.join(' ')} failed`, 'The compiler said why, above.');
  }
}

/** An empty folder of its own in the scene's. @param {Scene} scene @param {string} name */
function fresh(scene, name) {
  return fs.mkdtempSync(path.join(scene.folder, `${name}-`));
}

/** @param {string} name @param {boolean} ok */
function verdict(name, ok) {
  process.stdout.write(`${ok ? 'ok' : 'NOT OK'}: ${name}\n`);
  return single(ok);
}

/** Whether a tool sees each fault that is made on purpose. @param {readonly string[]} faults @param {(fault: string) => Promise<number>} look its exit code */
async function seesFaults(faults, look) {
  for (const fault of [...faults, 'nothing']) {
    const code = await look(fault);
    if ((code === 0) !== (fault === 'nothing')) {
      process.stdout.write(`faulty ${fault}: exit code ${code}\n`);
      return false;
    }
  }
  return true;
}

const faultySource = inRoot('test', 'native', 'faulty.c');

// ---- valgrind ----

/** @param {Scene} scene @returns {Promise<Tally>} */
async function underValgrind(scene) {
  const valgrind = program('valgrind');
  await zigBuild(scene.zig, ['test-exe', 'teardown', '-Dvalgrind']);
  const bin = (/** @type {string} */ name) => inRoot('zig-out', 'bin', name);
  const options = ['--leak-check=full', '--errors-for-leak-kinds=definite', '--error-exitcode=9'];
  const faulty = inBuild('faulty-valgrind');
  fs.mkdirSync(inBuild(), { recursive: true });
  await compile(program('clang'), ['-g', faultySource, '-o', faulty]);
  const sees = await seesFaults(['read', 'leak'], (fault) =>
    run(valgrind, [...options, faulty, fault], { quiet: true }),
  );
  const results = [verdict('valgrind sees a read behind a block and a lost block', sees)];
  for (const [name, command] of /** @type {const} */ ([
    ['zig-debug', [bin('zig-debug')]],
    ['zig-fast', [bin('zig-fast')]],
    ['teardown', [bin('teardown'), fresh(scene, 'valgrind'), '12']],
  ])) {
    /** @type {string[]} */
    const lines = [];
    const code = await run(valgrind, [...options, '--num-callers=30', ...command], {
      quiet: true,
      onLine: (line) => lines.push(line),
    });
    const told = (/** @type {RegExp} */ what) => lines.find((line) => what.test(line)) ?? '';
    const errors = told(/ERROR SUMMARY: /).replace(/^==\d+== /, '');
    const leaks = told(/definitely lost: |no leaks are possible/).replace(/^==\d+==\s+/, '');
    const ok = code === 0 && /^ERROR SUMMARY: 0 errors/.test(errors) && leaks !== '';
    const isClean = /^definitely lost: 0 bytes|no leaks are possible/.test(leaks);
    if (!ok || !isClean) process.stdout.write(`${lines.slice(-120).join('\n')}\n`);
    results.push(verdict(`${name} under valgrind: ${errors}; ${leaks}`, ok && isClean));
  }
  return sum(results);
}

// ---- clang's sanitizers ----

const checked = [
  ...['-O1', '-g', '-fPIC', '-fno-omit-frame-pointer'],
  ...['-fsanitize=address,undefined', '-fno-sanitize-recover=undefined'],
];
/** Leaks are for the run that ends in order. SIGBUS is the core's to handle. */
const sanitizerEnv = (/** @type {boolean} */ leaks) => ({
  ASAN_OPTIONS: `detect_leaks=${leaks ? 1 : 0}:handle_sigbus=0:allocator_may_return_null=1:abort_on_error=0:exitcode=9`,
  UBSAN_OPTIONS: 'print_stacktrace=1',
});

/** zstd's objects with both. @returns {Promise<string[]>} */
async function checkedZstd() {
  const clang = program('clang');
  const sources = zstdSources(await ensureZstd());
  const objects = sources.map((source) => inBuild(`${path.basename(source, '.c')}.o`));
  const flags = [...checked, '-std=c11', ...zstdDefines];
  fs.mkdirSync(inBuild(), { recursive: true });
  await unlessUpToDate({
    name: 'sanitize-zstd',
    inputs: () => sources,
    facts: flags,
    outputs: () => objects.filter((file) => fs.existsSync(file)),
    make: async () => {
      process.stdout.write('compiling zstd with sanitizers\n');
      for (const [index, source] of sources.entries()) {
        await compile(clang, [...flags, '-c', source, '-o', objects[index] ?? '']);
      }
    },
  });
  return objects;
}

/** @param {string} compiler @param {readonly string[]} args */
async function compile(compiler, args) {
  if ((await run(compiler, args)) !== 0) throw new Failure(`${compiler} failed`, 'It said why.');
}

/** @param {Scene} scene @returns {Promise<Tally>} */
async function underClang(scene) {
  const clang = program('clang');
  await zigBuild(scene.zig, ['core', 'fuzz-core']);
  const zstd = await checkedZstd();
  const library = (/** @type {string} */ name) => inRoot('zig-out', 'lib', name);
  const native = (/** @type {string[]} */ ...parts) => inRoot('test', ...parts);

  const teardown = inBuild('teardown');
  const include = ['-I', inRoot('zig-src', 'capi')];
  const libs = ['-lpthread', '-lm'];
  await compile(clang, [
    ...[...checked, '-std=gnu11', ...include, native('native', 'teardown.c')],
    ...[...zstd, library('libzrecord.a'), ...libs, '-o', teardown],
  ]);
  const driver = inBuild('driver');
  await compile(clang, [
    ...[...checked, '-std=gnu11', native('fuzz', 'driver.c')],
    ...[...zstd, library('libloaderx-fuzz.a'), ...libs, '-o', driver],
  ]);

  const faulty = inBuild('faulty');
  await compile(clang, [...checked, faultySource, '-o', faulty]);
  const sees = await seesFaults(['read', 'leak', 'shift'], (fault) =>
    run(faulty, [fault], { quiet: true, env: sanitizerEnv(true) }),
  );
  const args = [fresh(scene, 'clang'), '40'];
  const results = [
    verdict('the sanitizers see a read behind a block, a lost block, a shift too far', sees),
    verdict(
      'teardown with AddressSanitizer and UndefinedBehaviorSanitizer, leaks too',
      (await run(teardown, args, { env: sanitizerEnv(true) })) === 0,
    ),
  ];
  const corpus = await import('../test/fuzz/corpus.mjs');
  for (const target of ['page', 'gather', 'dictionary']) {
    const inputs = corpus.readCorpus(target);
    const folder = fresh(scene, target);
    corpus.writeInputs(folder, inputs);
    const files = fs.readdirSync(folder).map((name) => path.join(folder, name));
    const command = [target, fresh(scene, 'scratch'), ...files];
    const code = await run(driver, command, { env: sanitizerEnv(true) });
    results.push(
      verdict(
        `${inputs.length} kept inputs of ${target} with both`,
        code === 0 && files.length > 0,
      ),
    );
  }
  return sum(results);
}

/** The addon with both in zstd and in the shim. @param {Scene} scene */
async function checkedAddon({ zig }) {
  await zigBuild(zig, ['core']);
  const zstd = await checkedZstd();
  const shim = ['module.cc', 'value.cc', 'work.cc', 'calls.cc'];
  const addon = inBuild('loaderx.node');
  await compile(program('clang++'), [
    ...[...checked, '-std=c++17', '-fno-exceptions', '-fno-rtti', '-shared', '-shared-libasan'],
    ...['-fvisibility=hidden', '-DNAPI_EXTERN=', '-DNAPI_VERSION=9'],
    ...['-DNODE_ADDON_API_DISABLE_CPP_EXCEPTIONS', '-DNODE_ADDON_API_DISABLE_DEPRECATED'],
    '-DNODE_API_SWALLOW_UNTHROWABLE_EXCEPTIONS',
    // It looks into the C++ library of its host, which has no types to look at.
    '-fno-sanitize=vptr',
    ...['-I', inRoot('node_modules', 'node-api-headers', 'include')],
    ...['-I', inRoot('node_modules', 'node-addon-api')],
    ...shim.map((file) => inRoot('zig-src', 'napi', file)),
    ...[...zstd, inRoot('zig-out', 'lib', 'libzrecord.a')],
    `-Wl,--version-script=${inRoot('zig-src', 'napi', 'exports.map')}`,
    ...['-o', addon],
  ]);
  return addon;
}

/** @param {Scene} scene @returns {Promise<Tally>} */
async function insideNode(scene) {
  const addon = await checkedAddon(scene);
  const name = `libclang_rt.asan-${os.machine()}.so`;
  const runtime = ask(program('clang'), [`-print-file-name=${name}`]).stdout;
  if (!path.isAbsolute(runtime)) throw new Failure(`clang has no ${name}`);
  // The library of C++ first: AddressSanitizer wants to find what it watches when it starts.
  const env = { ...sanitizerEnv(false), LD_PRELOAD: runtime, LOADERX_ADDON: addon };
  const smoke = inRoot('test', 'support', 'smoke.mjs');
  const results = [
    verdict(
      'the addon’s smoke test',
      (await run(process.execPath, [smoke, addon, fresh(scene, 'smoke')], { env })) === 0,
    ),
  ];
  const { runMutants } = await import('../test/mutate/pool.mjs');
  const report = await runMutants({
    ...{ count: scene.mutants, run: scene.seed, children: 1, python: null, env },
    ...{ hangCpuMs: 20_000, watchesGrowth: false },
  });
  process.stdout.write(`seed ${scene.seed}: ${described(report)}\n`);
  const ok = report.findings.length === 0 && report.mutants === scene.mutants;
  results.push(verdict(`${report.mutants} damaged containers`, ok));
  return sum(results);
}

// ---- all of it ----

const parts = { valgrind: underValgrind, clang: underClang, addon: insideNode };

/** @param {string[]} args */
function parse(args) {
  const options = { only: /** @type {string[]} */ ([]), mutants: 3000 };
  let seed = randomBytes(4).toString('hex');
  for (let index = 0; index < args.length; index += 2) {
    const [name, value = ''] = [args[index], args[index + 1]];
    if (name === '--only' && value in parts) options.only.push(value);
    else if (name === '--mutants' && /^\d{1,7}$/.test(value)) options.mutants = Number(value);
    else if (name === '--seed' && value !== '') seed = value;
    else throw new Failure(`npm run sanitize does not know ${name} ${value}`, usage);
  }
  return { ...options, seed };
}

/** @param {string[]} args */
async function sanitize(args) {
  const { only, mutants, seed } = parse(args);
  const tools = await bootstrap();
  await build(tools);
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-sanitize-'));
  const scene = { zig: tools.zig, folder, mutants, seed };
  try {
    const results = [];
    for (const [name, part] of Object.entries(parts)) {
      if (only.length > 0 && !only.includes(name)) continue;
      process.stdout.write(`\n== ${name}\n`);
      results.push(await part(scene));
    }
    return sum(results);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

await countingEntry(import.meta, sanitize);
