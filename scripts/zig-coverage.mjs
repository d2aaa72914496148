// @ts-check
// What of the Zig core its own tests run: lines, and for the files that validate and plan also which way
// each conditional jump went. Part of `npm run coverage -- --zig`.
//
// The Debug test program runs under test/native/visited.c, which stops it once at each place that its
// debug information names. A line counts when one of its places was come by. A jump counts when it went
// both ways; those that only guard a safety check of the build mode, and asserts, are for our own mistakes
// and are left out, as is what Debug does where an error is returned, to keep its trace. What no test calls is not compiled in Debug, so it cannot be counted at all: the
// table says how many functions of a file that is.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ask } from './child.mjs';
import { Failure, inRoot } from './script.mjs';

/** Where each branch is looked at. */
const branchFiles = new Set(['store/format.zig', 'store/plan.zig']);

/**
 * Branches that go one way only, by the text of their line, and why.
 *
 * @type {readonly {file: string, line: string, why: string}[]}
 */
const oneWay = [
  {
    file: 'store/format.zig',
    line: '_ = try tableEnd(page.length, fault);',
    why: 'Debug asks again whether it is an error, to keep its trace',
  },
  {
    file: 'store/plan.zig',
    line: 'return @intCast(@as(u128, count) * index / block_count);',
    why: 'the check that the quotient fits: at most count',
  },
];

/** @typedef {{file: string, line: number}} Place */

/** @param {string} command @param {readonly string[]} args */
function outputOf(command, args) {
  const { status, stdout, error } = spawnSync(command, args, {
    encoding: 'utf8',
    maxBuffer: 2 ** 30,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  if (status !== 0) throw new Failure(`${command} ${args[0]} fails`, error?.message);
  return stdout;
}

/** Addresses of the program's debug information, in its order; null ends a stretch. @param {string} program */
function placesOf(program) {
  /** @type {{address: number, place: Place | null}[]} */
  const rows = [];
  let file = '';
  for (const text of outputOf('objdump', ['--dwarf=decodedline', program]).split('\n')) {
    const named = /^(.+\.zig):$/.exec(text)?.[1];
    if (named !== undefined) {
      const [, within = ''] = /[/\\]zig-src[/\\](.+)$/.exec(named) ?? [];
      file = within;
      continue;
    }
    const row = /\s(-|\d+)\s+0x([0-9a-f]+)\b/.exec(text);
    if (row === null) continue;
    const [, line = '', address = ''] = row;
    const place = line === '-' || file === '' ? null : { file, line: Number(line) };
    rows.push({ address: Number.parseInt(address, 16), place });
  }
  return rows.sort((a, b) => a.address - b.address);
}

/** Lines of a file that are not a test's, by number. @param {string} file */
function codeOf(file) {
  let inTest = false;
  /** @type {Map<number, string>} */
  const lines = new Map();
  fs.readFileSync(inRoot('zig-src', file), 'utf8')
    .split('\n')
    .forEach((text, index) => {
      if (/^test\b/.test(text)) inTest = true;
      if (!inTest) lines.set(index + 1, text.trim());
      if (text === '}') inTest = false;
    });
  return lines;
}

/** Of the files that a user's program runs. @param {string} file */
const isCore = (file) => !/^(?:testing|fuzz)\/|(?:_test|tests|tidy|fuzz)\.zig$/.test(file);

/**
 * Conditional jumps but those of safety checks: one of the two ways leads straight to a panic. `keepsTrace`:
 * one leads straight to where Debug notes a returned error.
 *
 * @param {string} program
 * @returns {{address: number, keepsTrace: boolean}[]}
 */
function jumpsOf(program) {
  /** @type {Map<number, string>} */
  const code = new Map();
  /** @type {number[]} */
  const order = [];
  for (const text of outputOf('objdump', ['-d', '--no-show-raw-insn', program]).split('\n')) {
    const [, at, instruction] = /^ +([0-9a-f]+):\t(.*)$/.exec(text) ?? [];
    if (at === undefined || instruction === undefined) continue;
    const address = Number.parseInt(at, 16);
    code.set(address, instruction);
    order.push(address);
  }
  const indexOf = new Map(order.map((address, index) => [address, index]));
  /** @param {number} address */
  const leadsTo = (address) => {
    let index = indexOf.get(address);
    for (let steps = 0; index !== undefined && steps < 20; steps += 1) {
      const instruction = code.get(order[index] ?? 0) ?? '';
      if (/^call/.test(instruction)) {
        return /[Pp]anic/.test(instruction)
          ? 'panic'
          : /returnError/.test(instruction)
            ? 'trace'
            : '';
      }
      if (/^(?:ret|j[^m]|ud2)/.test(instruction)) return '';
      const [, target] = /^jmp +([0-9a-f]+)/.exec(instruction) ?? [];
      index = target === undefined ? index + 1 : indexOf.get(Number.parseInt(target, 16));
    }
    return '';
  };
  return order.flatMap((address, index) => {
    const [, target] = /^j(?!mp)\w+ +([0-9a-f]+)/.exec(code.get(address) ?? '') ?? [];
    if (target === undefined) return [];
    const ways = [leadsTo(order[index + 1] ?? 0), leadsTo(Number.parseInt(target, 16))];
    return ways.includes('panic') ? [] : [{ address, keepsTrace: ways.includes('trace') }];
  });
}

/** @param {string} zig @returns {number} the exit code */
export function zigCoverage(zig) {
  if (process.platform !== 'linux' || process.arch !== 'x64') {
    throw new Failure('coverage of Zig is taken on Linux x64 alone');
  }
  for (const step of [['visited'], ['test-exe', '-Dtests=debug']]) {
    const { ok, output } = ask(zig, ['build', ...step, '--color', 'off']);
    if (!ok) throw new Failure(`zig build ${step[0]} fails`, output);
  }
  const program = inRoot('zig-out', 'bin', 'zig-debug');
  const rows = placesOf(program);
  const code = new Map(
    [...new Set(rows.flatMap(({ place }) => place?.file ?? []))]
      .filter(isCore)
      .map((file) => [file, codeOf(file)]),
  );
  /** @param {Place | null | undefined} place */
  const textOf = (place) => (place ? code.get(place.file)?.get(place.line) : undefined);

  const jumps = jumpsOf(program).flatMap(({ address, keepsTrace }) => {
    // The last row at or before it.
    let [low, high] = [0, rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((rows[middle]?.address ?? 0) <= address) low = middle + 1;
      else high = middle;
    }
    const place = rows[low - 1]?.place;
    const text = textOf(place);
    if (!place || text === undefined || /^assert\(/.test(text)) return [];
    if (keepsTrace && /\breturn\b/.test(text)) return [];
    return branchFiles.has(place.file) ? [{ address, place }] : [];
  });

  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-coverage-'));
  const [asked, answered] = [path.join(folder, 'places'), path.join(folder, 'result')];
  const wanted = rows.filter(({ place }) => textOf(place) !== undefined);
  fs.writeFileSync(
    asked,
    [
      ...wanted.map(({ address }) => `l ${address.toString(16)}\n`),
      ...jumps.map(({ address }) => `j ${address.toString(16)}\n`),
    ].join(''),
  );
  const visitor = inRoot('zig-out', 'bin', 'visited');
  const { status } = spawnSync(visitor, [asked, answered, program], { stdio: 'inherit' });
  const seen = new Set(fs.readFileSync(answered, 'utf8').split('\n'));
  fs.rmSync(folder, { recursive: true });
  report(wanted, jumps, seen, code);
  return status ?? 1;
}

/**
 * @param {readonly {address: number, place: Place | null}[]} wanted
 * @param {readonly {address: number, place: Place}[]} jumps
 * @param {ReadonlySet<string>} seen
 * @param {ReadonlyMap<string, ReadonlyMap<number, string>>} code
 */
function report(wanted, jumps, seen, code) {
  /** @type {Map<string, Map<number, boolean>>} */
  const lines = new Map();
  for (const { address, place } of wanted) {
    if (place === null) continue;
    const ofFile = lines.get(place.file) ?? new Map();
    lines.set(place.file, ofFile);
    const visited = seen.has(`l ${address.toString(16)}`);
    ofFile.set(place.line, visited || ofFile.get(place.line) === true);
  }
  let [linesAll, linesRun] = [0, 0];
  process.stdout.write('\nfile                      lines    run       %  not run\n');
  for (const [file, ofFile] of [...lines].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const missed = [...ofFile].filter(([, visited]) => !visited).map(([line]) => line);
    const run = ofFile.size - missed.length;
    linesAll += ofFile.size;
    linesRun += run;
    process.stdout.write(row(file, ofFile.size, run, missed.sort((a, b) => a - b).join(' ')));
  }
  process.stdout.write(row('all', linesAll, linesRun, ''));

  let [ways, gone] = [0, 0];
  const used = new Set();
  for (const { address, place } of jumps) {
    const taken = seen.has(`t ${address.toString(16)}`);
    const notTaken = seen.has(`f ${address.toString(16)}`);
    const line = code.get(place.file)?.get(place.line) ?? '';
    ways += 2;
    gone += Number(taken) + Number(notTaken);
    if (taken && notTaken) continue;
    const argued = oneWay.find((it) => it.file === place.file && it.line === line);
    if (argued !== undefined) used.add(argued);
    const how = taken || notTaken ? 'one way only' : 'never come to';
    const why = argued === undefined ? '' : ` (${argued.why})`;
    process.stdout.write(`${place.file}:${place.line} ${how}${why}: ${line}\n`);
  }
  process.stdout.write(
    `branches of ${[...branchFiles].join(' and ')}: ${gone} of ${ways} ways gone, ${used.size} lines argued\n`,
  );
}

/** @param {string} file @param {number} all @param {number} run @param {string} missed */
function row(file, all, run, missed) {
  const percent = ((100 * run) / all).toFixed(1);
  return `${file.padEnd(24)} ${String(all).padStart(6)} ${String(run).padStart(6)} ${percent.padStart(7)}  ${missed}\n`;
}
