// @ts-check
// Whether the tests bite: one operator of the code that validates and plans is changed, and a test must
// fail.
//
//     npm run mutants -- [--only ts|zig] [--count N] [--seed S]
//     npm run mutants -- --at FILE:LINE [--at FILE:LINE]...
//
// Each file has tests that are for it, and costlier ones that are run where those pass. Tests of ts/ are
// bundled with the change in them; Zig's are compiled with it. --count of all mutants are picked by the
// seed, 200 unless given. What lives is listed; what means the same as before is in `equals` below, with the
// reason, and is not counted, but must live: a row that no longer fits the code, or that a test catches,
// fails. The last line is `N passed, N failed`; a survivor has failed.
import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bootstrap, build } from './build.mjs';
import { Failure, inRoot } from './script.mjs';
import { countingEntry, single, sum } from './tally.mjs';

const usage = 'npm run mutants -- [--only ts|zig] [--count N] [--seed S] [--at FILE:LINE]...';

/** @typedef {{file: string, at: number, from: string, to: string}} Mutant */

/** What validates in ts/: the tests that are for it, then costlier ones. @type {Readonly<Record<string, readonly string[]>>} */
const rooms = {
  'ts/dtype.ts': ['dtype', 'ndarray', 'golden', 'behaviour'],
  'ts/ndarray.ts': ['ndarray', 'golden', 'behaviour'],
  'ts/schema-walk.ts': ['schema', 'hostile-schemas', 'malformed'],
  'ts/schema.ts': ['schema', 'golden', 'behaviour', 'hostile-schemas'],
  'ts/store/ids.ts': ['ids', 'behaviour', 'known-faults'],
  'ts/store/options.ts': ['options', 'behaviour', 'capability'],
  'ts/loader/options.ts': ['options', 'loader'],
  'ts/converter/names.ts': ['options', 'hub-rules', 'converter'],
  'ts/converter/layout.ts': ['options', 'converter', 'image-columns'],
};

/** In Zig: whether its own tests are all that it needs to be run alone. */
const zigFiles = new Map([
  ['zig-src/store/plan.zig', { hasTests: true }],
  ['zig-src/store/format.zig', { hasTests: true }],
  ['zig-src/store/gather.zig', { hasTests: false }],
]);

/** Of the suite, what writes and reads records, in Debug. */
const zigSuite = [
  ...['round-trip', 'agree with the source', 'rewind forgets', 'do not depend on the lanes'],
  ...['a file cut under', 'every changed byte', 'words of ragged records', 'the layout', 'replay'],
];

/**
 * What means the same as before, by the line as it stands there. `from` is what is changed in it,
 * with what stands before that where there are several; so is `after`, the line before.
 *
 * @type {readonly {file: string, after?: string, line: string, from: string, why: string}[]}
 */
const equals = [
  {
    file: 'ts/store/ids.ts',
    line: "if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < recordCount) continue;",
    from: '>=',
    why: 'an id of 0 takes the slow way, which says the same of it',
  },
  {
    file: 'ts/store/ids.ts',
    line: "if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < recordCount) continue;",
    from: '===',
    why: 'every number takes the slow way; what is no number is no integer either',
  },
  {
    file: 'ts/store/ids.ts',
    line: 'for (let index = 0; index < count; index += 1) {',
    from: '<',
    why: 'a typed array takes no item past its end',
  },
  {
    file: 'ts/store/ids.ts',
    after: 'const { words, halves } = newWords(list.length);',
    line: 'for (let index = 0; index < list.length; index += 1) {',
    from: '<',
    why: 'a typed array takes no item past its end',
  },
  {
    file: 'ts/store/ids.ts',
    line: 'const goesUp = stride > 0;',
    from: '>',
    why: 'a step of 0 is refused on the line before',
  },
  {
    file: 'ts/schema.ts',
    line: "text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);",
    from: 'ignoreBOM: true',
    why: 'bytes that begin with a mark are taken for MsgPack before',
  },
  {
    file: 'ts/schema.ts',
    line: "if (typeof value !== 'number' || !Number.isInteger(value)) return undefined;",
    from: '||',
    why: 'numbers with a fraction are refused before, by the walk and by the pattern',
  },
  {
    file: 'ts/loader/options.ts',
    line: "if (typeof value !== 'object' || value === null) return false;",
    from: '||',
    why: 'null is refused before, and what is no object has no href',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: '} else if (target.len > direct_bytes_min) {',
    from: '>',
    why: 'which way a record is read, not what',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'const per_lane: u32 = if (volume.codec == .raw) (if (is_large) 8 else 1) else if (is_large) 32 else 4;',
    from: '==',
    why: 'how finely work is cut, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'const is_large = bytes >= 4 << 20;',
    from: '>=',
    why: 'how finely work is cut, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'if (first >= volume.length) return outOfRange(volume, first, fault);',
    from: '>=',
    why: 'the last id of the run is held against the length too',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'if (id_count < fault_watch_ids_min or volume.advised_batches.load(.monotonic) > 1) return .{ .before = null };',
    from: 'or',
    why: 'when page faults are watched, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'if (at >= outcome.failed_at.load(.monotonic)) return;',
    from: '>=',
    why: 'a position fails once',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'if (location.phys_length > volume.tails[shard] or location.offset > volume.tails[shard] - location.phys_length) continue;',
    from: '>',
    why: 'what is asked for ahead, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: '.block_count = if (map == null or ids.len >= 1 << 16) blockCount(volume, null, ids.len, 0) else 1,',
    from: 'or',
    why: 'how finely work is cut, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'if (lanes == 1 or id_count <= 1 or !worth_it) return 1;',
    from: '<=',
    why: 'of one record there is one block either way',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'if (run.volume.codec == .raw or run.locations[index].logic_length <= in_place_bytes_min) return false;',
    from: '==',
    why: 'whether memory of the target is worked in, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'const watch: Watch = .begin(volume, if (run.map == null) 0 else end - at.*);',
    from: '-',
    why: 'how many records are watched for page faults, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: '} or (map == null and id_count >= read_fan_out_ids_min);',
    from: 'or',
    why: 'how finely work is cut, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'if (id_count < fault_watch_ids_min or volume.advised_batches.load(.monotonic) > 1) return .{ .before = null };',
    from: '>',
    why: 'when page faults are watched, not what is read',
  },
  {
    file: 'zig-src/store/gather.zig',
    line: 'if (at >= end) return;',
    from: '>=',
    why: 'of a block of no records none is read',
  },
];

/** @type {readonly (readonly [RegExp, string])[]} */
const tsChanges = [
  [/ === /g, ' !== '],
  [/ !== /g, ' === '],
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ && /g, ' || '],
  [/ \|\| /g, ' && '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
  [/ \* /g, ' + '],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
];

/** @type {readonly (readonly [RegExp, string])[]} */
const zigChanges = [
  [/ == /g, ' != '],
  [/ != /g, ' == '],
  [/ < /g, ' <= '],
  [/ <= /g, ' < '],
  [/ > /g, ' >= '],
  [/ >= /g, ' > '],
  [/ and /g, ' or '],
  [/ or /g, ' and '],
  [/ \+ /g, ' - '],
  [/ - /g, ' + '],
];

/**
 * Every change of code, comments and texts aside.
 *
 * @param {string} file
 * @param {readonly (readonly [RegExp, string])[]} changes
 * @returns {Mutant[]}
 */
function mutantsOf(file, changes) {
  const text = fs.readFileSync(inRoot(file), 'utf8');
  const end = file.endsWith('.zig') ? text.search(/^test "/m) : -1;
  const code = blanked(end < 0 ? text : text.slice(0, end));
  return changes.flatMap(([what, to]) =>
    [...code.matchAll(what)].map((match) => ({ file, at: match.index, from: match[0], to })),
  );
}

/** The same length, with blanks in place of comments, texts, types' arrows and imports. @param {string} text */
function blanked(text) {
  const blank = (/** @type {string} */ part) => part.replace(/[^\n]/g, '_');
  return text
    .replace(/\/\*[\s\S]*?\*\//g, blank)
    .replace(/\/\/[^\n]*/g, blank)
    .replace(/'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, blank)
    .replace(/^(?:import|export type|type|assert)\b[^;]*;/gm, blank)
    .replace(/\bassert\([^;]*;/g, blank);
}

/** Whether a program ends well; one that a change keeps from ending does not. @param {string} command @param {readonly string[]} args @param {string} [cwd] */
function endsWell(command, args, cwd = inRoot()) {
  // Tests have their own limit of 30 s otherwise, and go on after a failure.
  const env = { ...process.env, TAP_TIMEOUT: '300', TAP_BAIL: '1' };
  const options = /** @type {const} */ ({
    stdio: 'ignore',
    timeout: 300_000,
    killSignal: 'SIGKILL',
  });
  return spawnSync(command, args, { ...options, env, cwd }).status === 0;
}

/** @param {Mutant} mutant */
function changed({ file, at, from, to }) {
  const text = fs.readFileSync(inRoot(file), 'utf8');
  return text.slice(0, at) + to + text.slice(at + from.length);
}

/** The line that a mutant changes, its number, and the line before it. @param {Mutant} mutant */
function lineOf({ file, at }) {
  const source = fs.readFileSync(inRoot(file), 'utf8');
  const number = source.slice(0, at).split('\n').length;
  const [before = '', text = ''] = ['', ...source.split('\n')].slice(number - 1);
  return { number, text: text.trim(), before: before.trim() };
}

/** @param {Mutant} mutant */
function named(mutant) {
  const { number, text } = lineOf(mutant);
  return `${mutant.file}:${number} ${mutant.from.trim()} → ${mutant.to.trim()} in: ${text}`;
}

/** Why a mutant means the same; undefined where it does not. @param {Mutant} mutant */
function equalRow(mutant) {
  const { text, before } = lineOf(mutant);
  const source = fs.readFileSync(inRoot(mutant.file), 'utf8');
  const upTo = source.slice(0, mutant.at + mutant.from.length).trimEnd();
  return equals.find(
    ({ file, line, from, after = before }) =>
      file === mutant.file &&
      line === text &&
      after === before &&
      from.endsWith(mutant.from.trim()) &&
      upTo.endsWith(from),
  );
}

/**
 * Whether the tests of `file` pass with `mutant` in place of it; null is none.
 *
 * @typedef {(mutant: Mutant | null, file: string) => Promise<boolean>} Judge
 */

/** @param {string} folder @returns {Promise<Judge>} */
async function tsJudge(folder) {
  const { build: bundle, transform } = await import('esbuild');
  return async (mutant, file) => {
    for (const name of rooms[file] ?? []) {
      const outfile = path.join(folder, `${name}.mjs`);
      await bundle({
        entryPoints: [inRoot('test', `${name}.test.ts`)],
        ...{ bundle: true, format: 'esm', platform: 'node', outfile, logLevel: 'silent' },
        ...{ target: 'node20', packages: 'external' },
        plugins: [
          {
            name: 'mutant',
            setup(build) {
              build.onLoad({ filter: /\.(?:ts|mjs)$/ }, async ({ path: loaded }) => {
                const isChanged = mutant !== null && loaded === inRoot(mutant.file);
                const contents = isChanged ? changed(mutant) : fs.readFileSync(loaded, 'utf8');
                const loader = loaded.endsWith('.ts') ? 'ts' : 'js';
                if (!contents.includes('import.meta')) return { contents, loader };
                // Where a module lies is where its source lies, not the bundle.
                const define = {
                  'import.meta.url': JSON.stringify(pathToFileURL(loaded).href),
                  'import.meta.dirname': JSON.stringify(path.dirname(loaded)),
                  'import.meta.filename': JSON.stringify(loaded),
                };
                const options = /** @type {const} */ ({ loader, define, target: 'node20' });
                return { contents: (await transform(contents, options)).code, loader: 'js' };
              });
            },
          },
        ],
      });
      if (!endsWell(process.execPath, [outfile])) return false;
    }
    return true;
  };
}

/** @param {string} folder a checkout of its own, as far as Zig sees it @param {string} zig @returns {Judge} */
function zigJudge(folder, zig) {
  for (const part of [
    'build.zig',
    'build.zig.zon',
    'zig-src',
    'test/fuzz/corpus',
    'bench/limits',
  ]) {
    fs.cpSync(inRoot(part), path.join(folder, part), { recursive: true });
  }
  for (const link of ['.deps', 'node_modules'])
    fs.symlinkSync(inRoot(link), path.join(folder, link));
  const alone = [...zigFiles].filter(([, { hasTests }]) => hasTests);
  const imports = alone.map(([file]) => `    _ = @import("${file.slice('zig-src/'.length)}");\n`);
  const root = path.join(folder, 'zig-src', 'mutants.zig');
  fs.writeFileSync(root, `test {\n${imports.join('')}}\n`);
  const filters = zigSuite.map((name) => `-Dtest-filter=${name}`);
  return async (mutant, file) => {
    const place = path.join(folder, file);
    fs.writeFileSync(place, mutant === null ? fs.readFileSync(inRoot(file)) : changed(mutant));
    try {
      const { hasTests } = /** @type {{hasTests: boolean}} */ (zigFiles.get(file));
      if (hasTests && !endsWell(zig, ['test', root, '-lc'], folder)) return false;
      if (!endsWell(zig, ['build', 'test-exe', '-Dtests=debug', ...filters], folder)) return false;
      return endsWell(path.join(folder, 'zig-out', 'bin', 'zig-debug'), [], folder);
    } finally {
      fs.copyFileSync(inRoot(file), place);
    }
  };
}

/** @param {string[]} args */
function parse(args) {
  /** @type {string[]} */
  const at = [];
  const options = { at, only: '', count: 200, seed: randomBytes(4).toString('hex') };
  for (let index = 0; index < args.length; index += 2) {
    const [name, value = ''] = [args[index], args[index + 1]];
    if (name === '--only' && (value === 'ts' || value === 'zig')) options.only = value;
    else if (name === '--seed' && value !== '') options.seed = value;
    else if (name === '--at' && /:\d+$/.test(value)) at.push(value);
    else if (name === '--count' && /^\d{1,6}$/.test(value)) options.count = Number(value);
    else throw new Failure(`npm run mutants does not know ${name} ${value}`, usage);
  }
  return options;
}

/**
 * `count` of `all`, by the seed, and what became of each.
 *
 * @param {readonly Mutant[]} all
 * @param {number} count
 * @param {string} seed
 * @param {Judge} judge
 */
async function judged(all, count, seed, judge) {
  const { Random } = await import('../test/interop/random.mjs');
  const random = new Random(seed, 'mutants');
  const left = [...all];
  const picked = [];
  while (left.length > 0 && picked.length < count) {
    picked.push(...left.splice(random.between(0, left.length - 1), 1));
  }
  for (const file of new Set(picked.map((mutant) => mutant.file))) {
    if (!(await judge(null, file))) throw new Failure(`the tests of ${file} fail without a change`);
  }
  const results = [];
  let same = 0;
  for (const [index, mutant] of picked.entries()) {
    if (index > 0 && index % 20 === 0) process.stdout.write(`${index} of ${picked.length}\n`);
    const survives = await judge(mutant, mutant.file);
    const row = equalRow(mutant);
    if (row === undefined) {
      if (survives) process.stdout.write(`survives: ${named(mutant)}\n`);
      results.push(single(!survives));
    } else if (survives) {
      same += 1;
    } else {
      process.stdout.write(`caught, and listed as the same: ${named(mutant)}\n`);
      results.push(single(false));
    }
  }
  const { passed, failed } = sum(results);
  process.stdout.write(
    `seed ${seed}: of ${all.length} mutants ${picked.length} picked, ${same} of them mean the same; ` +
      `caught ${passed} of ${passed + failed}\n`,
  );
  return sum(results);
}

/** @param {string[]} args */
async function mutants(args) {
  const { at, only, count, seed } = parse(args);
  const tools = await bootstrap();
  await build(tools);
  const ofTs = Object.keys(rooms).flatMap((file) => mutantsOf(file, tsChanges));
  const ofZig = [...zigFiles.keys()].flatMap((file) => mutantsOf(file, zigChanges));
  for (const row of equals) {
    if ([...ofTs, ...ofZig].some((mutant) => equalRow(mutant) === row)) continue;
    throw new Failure(`what is listed as the same is not there: ${row.file}: ${row.line}`);
  }
  // Inside the checkout, so that packages are found.
  fs.mkdirSync(inRoot('build'), { recursive: true });
  const folder = fs.mkdtempSync(inRoot('build', 'mutants-'));
  const zigFolder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-mutants-'));
  try {
    const ts = await tsJudge(folder);
    const zig = zigJudge(zigFolder, tools.zig);
    const all = (only === 'ts' ? ofTs : only === 'zig' ? ofZig : [...ofTs, ...ofZig]).filter(
      (it) => at.length === 0 || at.includes(`${it.file}:${lineOf(it).number}`),
    );
    const judge = /** @type {Judge} */ (
      (mutant, file) => (file.endsWith('.zig') ? zig(mutant, file) : ts(mutant, file))
    );
    return await judged(all, count, seed, judge);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
    fs.rmSync(zigFolder, { recursive: true, force: true });
  }
}

await countingEntry(import.meta, mutants);
