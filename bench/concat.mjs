// @ts-check
// What a set costs against one container, and what parts gain.
//
//     node bench/concat.mjs                     all of it, some minutes
//     node bench/concat.mjs --rounds 300        rounds of the gathers (100)
//     node bench/concat.mjs --rows 2000000      rows that are converted (1,000,000)
//     node bench/concat.mjs --only gather       or parts
//
// Goals: a gather of a set of 8 at most 3 % slower than one of a container; two parts at once, one lane each,
// at least 1.7 times as fast as all by one process with one lane; 8 parts one after the other at most 5 %
// slower than all at once. Wants the built package and an idle machine.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';

/** @type {typeof import('../ts/index.js')} */
const { concat, Dense, makeSet, partName } = await import(
  new URL('../dist/index.js', import.meta.url).href
);
/** @type {typeof import('../ts/converter.js')} */
const { convert } = await import(new URL('../dist/converter.js', import.meta.url).href);

const batchSize = 256;
const listsKept = 64;
const callsPerRound = 20;

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '100' },
    rows: { type: 'string', default: '1000000' },
    only: { type: 'string' },
    /** Of a child: which part, of how many, where to. */
    part: { type: 'string' },
    of: { type: 'string', default: '1' },
    target: { type: 'string', default: '' },
  },
});
const rowsTotal = Number(values.rows);

if (values.part !== undefined) {
  const part = { part: Number(values.part), of: Number(values.of) };
  await convert(rows(0, rowsTotal), values.target, { codec: 'zstd', part });
} else {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-concat-'));
  try {
    console.log(`${os.cpus().length} cores, load ${os.loadavg()[0]?.toFixed(1)}`);
    if (values.only !== 'parts') await gathers(folder);
    if (values.only !== 'gather') await parts(folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

// ---- gathers ----

/** @param {string} folder */
async function gathers(folder) {
  console.log(
    '\ngather of 256 records, median µs of CPU and its ratio to one container, all in turn',
  );
  for (const { recordBytes, count } of [
    { recordBytes: 784, count: 100_000 },
    { recordBytes: 2048, count: 50_000 },
    { recordBytes: 12_288, count: 10_000 },
  ]) {
    for (const codec of /** @type {const} */ (['raw', 'zstd'])) {
      const readers = await makeReaders(folder, recordBytes, count, codec);
      const medians = measured(readers, recordBytes, count);
      const one = medians.get('1 container') ?? 1;
      const cells = [...medians].map(([name, us]) => {
        const ratio = name === '1 container' ? '' : ` ${(us / one).toFixed(3)}`;
        return `${name} ${us.toFixed(1)}${ratio}`;
      });
      console.log(`${recordBytes} bytes, ${codec}: ${cells.join(' | ')}`);
      for (const reader of readers.values()) await reader.close();
      fs.rmSync(path.join(folder, 'gather'), { recursive: true });
    }
  }
}

/**
 * One container and sets of the same records.
 *
 * @param {string} folder
 * @param {number} recordBytes
 * @param {number} count
 * @param {'raw' | 'zstd'} codec
 * @returns {Promise<Map<string, import('../ts/index.js').DenseReader<'uint8'>>>}
 */
async function makeReaders(folder, recordBytes, count, codec) {
  /** @type {Map<string, import('../ts/index.js').DenseReader<'uint8'>>} */
  const readers = new Map();
  for (const of of [0, 1, 8, 64]) {
    const members = [];
    for (let part = 0; part < Math.max(1, of); part += 1) {
      const place = path.join(folder, 'gather', `${of}-${part}`);
      const [from, end] = [part, part + 1].map((at) => Math.floor((at * count) / Math.max(1, of)));
      const writer = Dense.create(place, { codec, dtype: 'uint8', itemShape: [recordBytes] });
      const size = (end ?? 0) - (from ?? 0);
      const data = new Uint8Array(size * recordBytes);
      for (let at = 0; at < data.length; at += 1)
        data[at] = (Math.imul(at, 0x9e3779b1) >>> 13) & 31;
      await writer.append({ dtype: 'uint8', shape: [size, recordBytes], data });
      await writer.close();
      members.push(Dense.open(place, { dtype: 'uint8' }));
    }
    const [first] = members;
    if (of === 0 && first !== undefined) readers.set('1 container', first);
    else readers.set(`set of ${of}`, concat(members));
  }
  return readers;
}

/**
 * @param {Map<string, import('../ts/index.js').DenseReader<'uint8'>>} readers
 * @param {number} recordBytes
 * @param {number} count
 */
function measured(readers, recordBytes, count) {
  const out = {
    dtype: /** @type {const} */ ('uint8'),
    shape: [batchSize, recordBytes],
    data: new Uint8Array(batchSize * recordBytes),
  };
  const lists = Array.from({ length: listsKept }, () =>
    Array.from({ length: batchSize }, () => Math.floor(Math.random() * count)),
  );
  /** @type {Map<string, number[]>} */
  const times = new Map([...readers.keys()].map((name) => [name, []]));
  const names = [...readers.keys()];
  for (let round = -5; round < Number(values.rounds); round += 1) {
    // Each round begins at another one.
    for (let turn = 0; turn < names.length; turn += 1) {
      const name = names[(turn + round + 5) % names.length] ?? '';
      const reader = readers.get(name);
      const before = process.cpuUsage();
      for (let call = 0; call < callsPerRound; call += 1) {
        reader?.gatherSync(lists[(round + 5 + call) % listsKept] ?? [], { out });
      }
      // Time on the processor: what others do on a busy machine counts less.
      const { user, system } = process.cpuUsage(before);
      const us = (user + system) / callsPerRound;
      if (round >= 0) times.get(name)?.push(us);
    }
  }
  return new Map([...times].map(([name, each]) => [name, median(each)]));
}

/** @param {readonly number[]} numbers */
function median(numbers) {
  return [...numbers].sort((a, b) => a - b)[numbers.length >> 1] ?? Number.NaN;
}

// ---- parts ----

/**
 * Rows that take some work to compress.
 *
 * @param {number} first
 * @param {number} end
 * @returns {import('../ts/converter.js').Dataset}
 */
function rows(first, end) {
  const width = 128;
  return {
    features: new Map([
      ['x', { kind: 'list', item: { kind: 'value', dtype: 'int32' }, length: width }],
    ]),
    rowCount: end - first,
    range: (from, until) => rows(first + from, first + until),
    async *batches() {
      for (let at = first; at < end; at += 8192) {
        const count = Math.min(8192, end - at);
        const numbers = new Int32Array(count * width);
        for (let index = 0; index < numbers.length; index += 1) {
          numbers[index] = (Math.imul(at * width + index, 0x9e3779b1) >>> 20) & 1023;
        }
        yield { rowCount: count, columns: new Map([['x', { values: numbers }]]) };
      }
    },
  };
}

/** Seconds that children take together. @param {readonly (readonly [part: number, of: number])[]} wanted @param {string} target @param {Record<string, string>} env */
async function seconds(wanted, target, env) {
  const begun = performance.now();
  await Promise.all(
    wanted.map(([part, of]) => {
      const args = ['--part', part, '--of', of, '--target', target, '--rows', rowsTotal].map(
        String,
      );
      const child = spawn(process.execPath, [import.meta.filename, ...args], {
        stdio: 'inherit',
        env: { ...process.env, ...env },
      });
      return new Promise((resolve, reject) => {
        child.once('error', reject);
        child.once('close', (code) => {
          if (code === 0) resolve(undefined);
          else reject(new Error(`part ${part} of ${of} ended with ${code}`));
        });
      });
    }),
  );
  return (performance.now() - begun) / 1000;
}

/** @param {string} folder */
async function parts(folder) {
  console.log(`\n${rowsTotal} rows of int32[128], zstd`);
  const lane = { LOADERX_LANES: '1' };
  const at = (/** @type {string} */ name) => path.join(folder, name);
  const alone = await seconds([[0, 1]], at('alone'), lane);
  const both = await seconds(
    [
      [0, 2],
      [1, 2],
    ],
    at('both'),
    lane,
  );
  console.log(
    `one lane each: all by one ${alone.toFixed(2)} s, two parts at once ${both.toFixed(2)} s: ${(alone / both).toFixed(2)} times as fast`,
  );
  const direct = await seconds([[0, 1]], at('direct'), {});
  let inTurn = 0;
  for (let part = 0; part < 8; part += 1) inTurn += await seconds([[part, 8]], at('eight'), {});
  console.log(
    `default settings: all by one ${direct.toFixed(2)} s, 8 parts in turn ${inTurn.toFixed(2)} s: ${(inTurn / direct).toFixed(3)}`,
  );
  const places = Array.from({ length: 8 }, (_, part) =>
    path.join(at('eight'), partName({ part, of: 8 }), 'x'),
  );
  const set = await makeSet(places, path.join(at('eight'), 'x.json'));
  console.log(`the parts are ${set.records} records together`);
}
