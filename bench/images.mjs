// @ts-check
// Pictures: a column of them converted, beside the bare decoder.
//
//     node bench/images.mjs [--seconds N]
//
// `bare` is sharp alone, told to decode to raw pixels, with as many pictures in flight as are decoded at one
// time here: nothing is looked at, nothing kept. `convert` is the whole way of a dataset with one column of
// pictures into a raw container. Both take turns within a round; the median of the rounds counts. By the clock,
// and by the time of processors, which says more on a machine that others use too. Pictures are made here,
// smooth with noise, so that they compress about as photographs do.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import sharp from 'sharp';
import { bootstrap, build } from '../scripts/build.mjs';
import { inRoot } from '../scripts/script.mjs';

/** @typedef {typeof import('../ts/converter.js')} Converter */

const rounds = 3;
const inFlight = Math.max(8, 4 * os.availableParallelism());

/** What is converted. `space` is what the decoder must be told to leave the picture as it is. */
const kinds = [
  { name: 'JPEG 224 x 224', size: 224, channels: 3, format: /** @type {const} */ ('jpeg') },
  { name: 'JPEG 500 x 500', size: 500, channels: 3, format: /** @type {const} */ ('jpeg') },
  { name: 'PNG 224 x 224', size: 224, channels: 3, format: /** @type {const} */ ('png') },
  { name: 'WebP 224 x 224', size: 224, channels: 3, format: /** @type {const} */ ('webp') },
  { name: 'grey PNG 28 x 28', size: 28, channels: 1, format: /** @type {const} */ ('png') },
];

/**
 * @param {typeof kinds[number]} kind
 * @param {number} count
 */
async function picturesOf({ size, channels, format }, count) {
  const pictures = [];
  for (let index = 0; index < count; index += 1) {
    const data = new Uint8Array(size * size * channels);
    let noise = index * 7919 + 1;
    for (let at = 0; at < data.length; at += 1) {
      noise = (Math.imul(noise, 1664525) + 1013904223) >>> 0;
      const pixel = Math.floor(at / channels);
      const smooth = 128 + 90 * Math.sin((pixel % size) / 19 + index) * Math.cos(pixel / size / 23);
      data[at] = smooth + ((noise >>> 28) - 8);
    }
    const raw = /** @type {import('sharp').CreateRaw} */ ({ width: size, height: size, channels });
    const source = sharp(data, { raw });
    const encoded = format === 'jpeg' ? source.jpeg({ quality: 88 }) : source.toFormat(format);
    pictures.push(await encoded.toBuffer());
  }
  return pictures;
}

/** @param {readonly Buffer[]} pictures @param {number} channels */
async function bare(pictures, channels) {
  let next = 0;
  const lane = async () => {
    for (let index = next++; index < pictures.length; index = next++) {
      const source = sharp(pictures[index], { ignoreIcc: true });
      const pipeline = channels === 1 ? source.toColourspace('b-w') : source;
      await pipeline.raw().toBuffer();
    }
  };
  await Promise.all(Array.from({ length: inFlight }, lane));
}

/** @param {Converter} converter @param {readonly Buffer[]} pictures @param {string} target */
async function converted(converter, pictures, target) {
  /** @type {import('../ts/converter.js').Dataset} */
  const dataset = {
    features: new Map([['image', { kind: 'image' }]]),
    async *batches() {
      for (let first = 0; first < pictures.length; first += 1000) {
        const bytes = pictures.slice(first, first + 1000);
        yield { rowCount: bytes.length, columns: new Map([['image', { bytes }]]) };
      }
    },
  };
  await converter.convert(dataset, target, { codec: 'raw' });
}

/** Seconds by the clock, and of processors, that `work` takes. @param {() => Promise<void>} work */
async function timed(work) {
  const begin = performance.now();
  const used = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(used);
  return { wall: (performance.now() - begin) / 1000, processor: (user + system) / 1e6 };
}

/** @param {readonly number[]} values */
function median(values) {
  return [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? Number.NaN;
}

await build(await bootstrap());
/** @type {Converter} */
const converter = await import(new URL('../dist/converter.js', import.meta.url).href);
const { values } = parseArgs({ options: { seconds: { type: 'string', default: '1' } } });
const seconds = Number(values.seconds);
const folder = fs.mkdtempSync(path.join(inRoot('build'), 'bench-images-'));
const baseRss = process.memoryUsage().rss;
let peakRss = baseRss;
const sampler = setInterval(() => {
  peakRss = Math.max(peakRss, process.memoryUsage().rss);
}, 20);
try {
  console.log(
    `${os.availableParallelism()} processors, ${inFlight} pictures in flight; load ${os.loadavg()[0]?.toFixed(1)}`,
  );
  console.log('pictures a second   by the clock            of processor time');
  console.log('                      bare convert  ratio      bare convert  ratio');
  for (const kind of kinds) {
    const sample = await picturesOf(kind, 64);
    const { wall: trial } = await timed(() => bare(sample, kind.channels));
    const count = Math.max(64, Math.ceil((64 * seconds) / trial));
    const pictures = Array.from({ length: count }, (_, index) => sample[index % 64] ?? sample[0]);
    const all = /** @type {Buffer[]} */ (pictures);
    /** @typedef {{wall: number, processor: number}} Took */
    /** @type {{bare: Took[], convert: Took[]}} */
    const took = { bare: [], convert: [] };
    for (let round = 0; round < rounds; round += 1) {
      took.bare.push(await timed(() => bare(all, kind.channels)));
      const target = path.join(folder, `${kind.size}-${kind.format}-${round}`);
      took.convert.push(await timed(() => converted(converter, all, target)));
      fs.rmSync(target, { recursive: true });
    }
    /** @param {keyof typeof took} what @param {keyof Took} of */
    const rate = (what, of) => count / median(took[what].map((each) => each[of]));
    const columns = (/** @type {keyof Took} */ of) => {
      const ratio = (rate('convert', of) / rate('bare', of)).toFixed(2);
      return `${rate('bare', of).toFixed(0).padStart(6)} ${rate('convert', of).toFixed(0).padStart(7)} ${ratio.padStart(6)}`;
    };
    console.log(`${kind.name.padEnd(18)} ${columns('wall')}    ${columns('processor')}`);
  }
  console.log(`memory: ${((peakRss - baseRss) / 2 ** 20).toFixed(0)} MiB above the start at most`);
} finally {
  clearInterval(sampler);
  fs.rmSync(folder, { recursive: true });
}
