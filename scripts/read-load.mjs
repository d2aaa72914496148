// @ts-check
// What hosts ask of a shared file system when all of them read one set: a calculation, nothing is measured.
//
//     node scripts/read-load.mjs                         1,000 hosts, as in docs/distributed.md
//     node scripts/read-load.mjs --hosts 64 --ranks 4 --parts 16 --shards 1 --records 1e7 \
//         --record-bytes 2048 --batch 4096 --seconds 0.2 --copy-gib 2 --lookups 4
import { parseArgs } from 'node:util';
import { entry, Failure } from './script.mjs';

/** Everything that may be said, with what it is unless said. */
export const defaults = {
  hosts: 1000,
  /** Processes of a host that open the set. */
  ranks: 8,
  parts: 64,
  shards: 4,
  records: 1_280_000,
  /** As they are stored. */
  'record-bytes': 110_000,
  /** Records of a step, over all ranks. */
  batch: 32_768,
  /** A step takes. */
  seconds: 1,
  /** GiB a second that a host copies with. */
  'copy-gib': 1.45,
  /** Calls for a part beside the opens of its files: two lookups of its folder, a lock, an attribute. */
  lookups: 4,
};

/** @typedef {typeof defaults} Numbers */

/** @param {Numbers} numbers */
export function loadOf(numbers) {
  const { hosts, ranks, parts, shards, records, batch, seconds, lookups } = numbers;
  const readers = hosts * ranks;
  // The page and table, the shards, and the folder itself.
  const filesOfPart = shards + 2;
  const recordBytes = numbers['record-bytes'];
  const setBytes = records * recordBytes;
  const batchBytes = batch * recordBytes;
  const epochSeconds = (records / batch) * seconds;
  return {
    readers,
    filesOfPart,
    opens: readers * parts * filesOfPart,
    calls: readers * parts * (filesOfPart + lookups),
    descriptorsOfReader: parts * (shards + 1),
    descriptorsOfHost: ranks * parts * (shards + 1),
    recordsOfRank: batch / readers,
    hostBytesPerSecond: batchBytes / hosts / seconds,
    storeBytesPerSecond: batchBytes / seconds,
    setBytes,
    copySeconds: setBytes / (numbers['copy-gib'] * 2 ** 30),
    copiedBytes: setBytes * hosts,
    epochSeconds,
    /** Of the records, what a host has read after an epoch. */
    seen: 1 / hosts,
  };
}

/** @param {Numbers} numbers */
export function linesOf(numbers) {
  const load = loadOf(numbers);
  const count = (/** @type {number} */ value) => Math.round(value).toLocaleString('en-US');
  const rows = [
    [
      'opening',
      `${count(load.readers)} ranks x ${numbers.parts} parts x ${load.filesOfPart} files`,
      `${count(load.opens)} opens, ${count(load.calls)} with lookups and locks`,
    ],
    [
      'descriptors',
      `${count(load.descriptorsOfReader)} a reader`,
      `${count(load.descriptorsOfHost)} a host`,
    ],
    [
      'read load',
      `${load.recordsOfRank.toFixed(2)} records a rank and step`,
      `${bytes(load.hostBytesPerSecond)}/s a host, ${bytes(load.storeBytesPerSecond)}/s of the whole store`,
    ],
    [
      'copied first',
      `${bytes(load.setBytes)} a host, once`,
      `${count(load.copySeconds)} s at ${numbers['copy-gib']} GiB/s; ${bytes(load.copiedBytes)} out of the store in all`,
    ],
    [
      'page cache',
      `after an epoch of ${count(load.epochSeconds)} s`,
      `a host has seen ${(load.seen * 100).toPrecision(1)} % of the records`,
    ],
  ];
  return rows.map(([name = '', what = '', comes = '']) =>
    `${name.padEnd(12)}  ${what.padEnd(35)}  ${comes}`.trimEnd(),
  );
}

/** @param {number} value */
function bytes(value) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let at = 0;
  let left = value;
  while (left >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${left >= 100 ? Math.round(left) : left.toFixed(2)} ${units[at]}`;
}

await entry(import.meta, async (args) => {
  const names = /** @type {(keyof Numbers)[]} */ (Object.keys(defaults));
  const { values } = parseArgs({
    args: [...args],
    options: Object.fromEntries(
      [...names, 'help'].map((name) => [name, { type: name === 'help' ? 'boolean' : 'string' }]),
    ),
  });
  if (values.help === true) {
    console.log(`node scripts/read-load.mjs ${names.map((name) => `[--${name} N]`).join(' ')}`);
    return 0;
  }
  const numbers = { ...defaults };
  for (const name of names) {
    if (values[name] === undefined) continue;
    const value = Number(values[name]);
    if (!(value > 0)) throw new Failure(`--${name} wants a number above 0, got ${values[name]}`);
    numbers[name] = value;
  }
  console.log(linesOf(numbers).join('\n'));
  return 0;
});
