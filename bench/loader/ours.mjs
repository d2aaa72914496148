// @ts-check
// This package's DataLoader as a backend of the loader bench.
//
//     mode    step-disposed, step-dropped, completion-disposed, completion-dropped
//             pool-N, function: with the transform, by N threads or on this one
import { listen } from '../backends/serve.mjs';
import { delaysDuring } from '../delays.mjs';
import { ownAnonymousMib } from '../processes.mjs';
import { median } from '../statistics.mjs';
import { consume, Photos } from './photos.mjs';
import { runFor, timesOf } from './turns.mjs';

// Before the package is loaded.
const bareMib = ownAnonymousMib();
const { DataLoader, open } = await import('../loaderx.mjs');

const transformUrl = new URL('./colour.mjs', import.meta.url);

/** @param {string} mode */
function settingsOf(mode) {
  const [how = '', what] = mode.split('-');
  if (how === 'pool')
    return { transform: transformUrl, transformWorkers: Number(what), keeps: false };
  if (how === 'function') return { isFunction: true, keeps: false };
  return { order: how, keeps: what === 'dropped' };
}

class Session {
  /** When the first batch was asked for. @type {number | undefined} */
  startedMs;

  /** @param {any} reader @param {any} loader @param {boolean} keeps batches are dropped, not disposed of */
  constructor(reader, loader, keeps) {
    this.reader = reader;
    this.loader = loader;
    this.keeps = keeps;
  }

  /** @param {{target: string, mode: string, batch: number, seed: number}} request */
  static async open({ target, mode, batch, seed }) {
    const { isFunction = false, keeps, ...settings } = settingsOf(mode);
    const options = /** @type {any} */ ({ batchSize: batch, seed, ...settings });
    if (isFunction) options.transform = (await import('./colour.mjs')).default;
    /** @type {any} */
    const reader = open(`${target}/store`);
    return new Session(reader, new DataLoader({ image: reader }, options), keeps);
  }

  /** One batch, from asking for it until it is done with. */
  async turn() {
    this.startedMs ??= performance.now();
    const { value } = await this.loader.next();
    consume(value.image.data);
    if (!this.keeps) value[Symbol.dispose]();
  }

  async close() {
    await this.loader.close();
    await this.reader.close();
  }

  /** What `stats()` says, beside what the clock says. */
  stats() {
    const { elapsedMs, drawMs, gatherMs, transformMs, consumerMs, dataMs, ...rest } =
      this.loader.stats();
    const wallMs = performance.now() - (this.startedMs ?? Number.NaN);
    const sumMs = drawMs + gatherMs + transformMs + consumerMs + dataMs;
    const stages = { drawMs, gatherMs, transformMs, consumerMs, dataMs };
    return { ...rest, ...stages, elapsedMs, wallMs, sumMs };
  }
}

/** @type {Session | undefined} */
let session;
const current = () => {
  if (session === undefined) throw new Error('nothing is open');
  return session;
};

listen({
  about: () => ({ node: process.version, V8: process.versions.v8 ?? '' }),

  async check(request) {
    const isCorrected = /^(pool|function)/.test(request.mode);
    const photos = new Photos(request.workload, isCorrected);
    const checked = await Session.open(request);
    for (let count = 0; count < request.batches; count += 1) {
      const { value } = await checked.loader.next();
      photos.check(value.image.data, request.batch);
    }
    await checked.close();
    return { hash: photos.hash() };
  },

  async start(request) {
    const baseMib = ownAnonymousMib();
    session = await Session.open(request);
    await runFor(() => current().turn(), request.seconds, request.batches);
    return { bareMib, baseMib };
  },

  async time({ seconds, batches, withDelays }) {
    const turn = () => current().turn();
    /** @type {number[]} */
    let times = [];
    const body = async () => {
      times = await runFor(turn, seconds, batches);
    };
    const delays = withDelays ? await delaysDuring(body) : await body();
    return { ...timesOf(times), delays: delays ?? undefined, stats: current().stats() };
  },

  async hold({ seconds, batches }) {
    return timesOf(await runFor(() => current().turn(), seconds, batches));
  },

  async close() {
    await session?.close();
    session = undefined;
    return {};
  },

  /**
   * What step order costs: loaders of both orders by turns, in this process, so that nothing else
   * differs. Seconds of a batch are medians over the segments.
   */
  async compare({ modes, segments, segmentSeconds, ...request }) {
    /** @type {Record<string, number[]>} */
    const seconds = Object.fromEntries(modes.map((/** @type {string} */ mode) => [mode, []]));
    for (let segment = 0; segment < segments; segment += 1) {
      // A B, then B A: what drifts, drifts for both.
      for (const mode of segment % 2 === 0 ? modes : [...modes].reverse()) {
        const one = await Session.open({ ...request, mode });
        await runFor(() => one.turn(), 0, request.batches);
        const times = await runFor(() => one.turn(), segmentSeconds, request.batches);
        seconds[mode]?.push(timesOf(times).seconds / times.length);
        await one.close();
      }
    }
    return Object.fromEntries(
      Object.entries(seconds).map(([mode, each]) => [mode, { batchesPerS: 1 / median(each) }]),
    );
  },
});
