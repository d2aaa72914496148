// @ts-check
// The schema target as a server of bridge.c: instrumented, one input after the other.
//
//     node served.mjs TARGET.cjs INSTRUMENTER MAP
//
// TARGET.cjs exports `fuzz`; INSTRUMENTER is the folder that istanbul-lib-instrument is in; MAP is the file
// for the counters. What went wrong goes to stderr.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

const [target = '', instrumenter = '', map = ''] = process.argv.slice(2);
const [fromBridge, toBridge] = [3, 4];
const countersMax = 8192;
/** AFL++ tells no more than this apart. */
const passesMax = 128;

/** Statements, functions and branches of a file, and how often each was passed. @typedef {{s: Record<string, number>, f: Record<string, number>, b: Record<string, number[]>}} Passed */

const load = createRequire(path.join(instrumenter, 'package.json'));
const { createInstrumenter } =
  /** @type {{createInstrumenter: (options: object) => {instrumentSync(source: string, file: string): string}}} */ (
    load('istanbul-lib-instrument')
  );
const source = fs.readFileSync(target, 'utf8');
const coverageVariable = '__passed__';
const instrumented = createInstrumenter({
  ...{ coverageVariable, esModules: false, compact: true },
}).instrumentSync(source, target);
const file = path.join(path.dirname(target), 'instrumented.cjs');
fs.writeFileSync(file, instrumented);
/** @type {(bytes: Uint8Array) => void} */
const fuzz = createRequire(file)(file).fuzz;
/** @type {Passed} */
const passed = Object.values(Reflect.get(globalThis, coverageVariable))[0];
const counters = fs.openSync(map, 'r+');
const counts = Buffer.alloc(countersMax);

/** Takes all counts, and begins anew. @returns {number} how many there are */
function take() {
  let at = 0;
  for (const group of [passed.s, passed.f]) {
    for (const name in group) {
      counts[at] = Math.min(group[name] ?? 0, passesMax);
      group[name] = 0;
      at += 1;
    }
  }
  for (const name in passed.b) {
    const ways = passed.b[name] ?? [];
    for (let way = 0; way < ways.length; way += 1) {
      counts[at] = Math.min(ways[way] ?? 0, passesMax);
      ways[way] = 0;
      at += 1;
    }
  }
  return at;
}

/** Fills `room`; false: the bridge is gone. @param {Buffer} room */
function receive(room) {
  let at = 0;
  while (at < room.length) {
    const bytes = fs.readSync(fromBridge, room, at, room.length - at, null);
    if (bytes === 0) return false;
    at += bytes;
  }
  return true;
}

Error.stackTraceLimit = 5;
if (take() > countersMax) throw new Error(`more than ${countersMax} counters`);
const head = Buffer.alloc(4);
while (receive(head)) {
  const input = Buffer.alloc(head.readUInt32LE());
  if (!receive(input)) break;
  take();
  let answer = 'o';
  try {
    fuzz(input);
  } catch (error) {
    process.stderr.write(`${input.toString('hex')}: ${error}\n`);
    answer = 'x';
  }
  fs.writeSync(counters, counts, 0, take(), 0);
  fs.writeSync(toBridge, answer);
}
