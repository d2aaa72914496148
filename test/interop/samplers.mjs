// @ts-check
// The sampler, index for index against Python's, over random options, seeks and draws.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { Group } from './ledger.mjs';
import { Random } from './random.mjs';

/** @typedef {import('./exchange.mjs').Setting} Setting */

const modes = /** @type {const} */ (['sequential', 'iid', 'cyclic']);
const u64Max = 2n ** 64n - 1n;
/** Indices that a seek in the 2.4 iid stream may have to throw away. */
const discardedMax = 300_000n;
const samplersPerRequest = 200;

/**
 * @typedef {object} Draws
 * @property {bigint} length
 * @property {number} batch
 * @property {typeof modes[number]} mode
 * @property {bigint} seed
 * @property {readonly (number | {seek: bigint})[]} moves a count of draws, or a seek
 */

/** @param {Setting} setting @returns {Promise<Group[]>} */
export async function drawSamplers(setting) {
  const { version, dialect, seed, count, isWanted } = setting;
  const group = new Group(`indices drawn as ${version} draws`);
  const part = `samplers-${dialect}`;
  const wanted = Array.from({ length: count }, (_, index) => index)
    .filter((index) => isWanted(part, index))
    .map((index) => ({ index, draws: planDraws(dialect, new Random(seed, part, index)) }));
  let indexCount = 0;
  for (let from = 0; from < wanted.length; from += samplersPerRequest) {
    const some = wanted.slice(from, from + samplersPerRequest);
    const target = path.join(setting.folder, `${from}.indices`);
    const answer = await setting.python.call('samplers', {
      target,
      samplers: some.map(({ draws }) => ({
        length: String(draws.length),
        batch: draws.batch,
        mode: modes.indexOf(draws.mode),
        seed: String(draws.seed),
        moves: draws.moves.map((move) =>
          typeof move === 'number' ? move : { seek: String(move.seek) },
        ),
      })),
    });
    const drawn = fs.readFileSync(target);
    fs.rmSync(target);
    let start = 0;
    for (const [place, { index, draws }] of some.entries()) {
      const end = start + answer.counts[place] * 8;
      const theirs = drawn.subarray(start, end);
      start = end;
      const name = `--seed ${seed} --case ${part}:${index} (${words(draws)})`;
      await group.check(name, () =>
        compareDraws(setting.loaderx, dialect, draws, theirs, answer.errors[place]),
      );
      indexCount += theirs.length / 8;
    }
  }
  group.note = `${indexCount} indices`;
  return [group];
}

/** @param {Draws} draws */
function words({ length, batch, mode, seed, moves }) {
  const shown = moves.map((move) =>
    typeof move === 'number' ? `draw ${move}` : `seek ${move.seek}`,
  );
  return `${mode}, length ${length}, batch ${batch}, seed ${seed}: ${shown.join(', ')}`;
}

/** @param {'2.4' | '2.8'} dialect @param {Random} random @returns {Draws} */
function planDraws(dialect, random) {
  const mode = random.pick(modes);
  const length = someU64(random, 1n);
  const batch = random.pick([1, 2, 3, 7, 32, 255, 256, random.between(1, 900)]);
  const seed = random.chance(0.2) ? random.pick([0n, 1n, 42n, u64Max]) : someU64(random, 0n);
  /** @type {Draws['moves'][number][]} */
  const moves = [random.between(1, 4)];
  for (let turn = random.between(0, 3); turn > 0; turn -= 1) {
    moves.push({ seek: someStep(dialect, mode, BigInt(batch), random) }, random.between(1, 3));
  }
  return { length, batch, mode, seed, moves };
}

/** Small numbers, powers of two and their neighbours, and anything. @param {Random} random @param {bigint} least */
function someU64(random, least) {
  const choice = random.between(0, 3);
  const power = 2n ** BigInt(random.between(0, 64));
  const value =
    choice === 0
      ? BigInt(random.between(0, 40))
      : choice === 1
        ? power + BigInt(random.between(-2, 2))
        : random.u64() >> BigInt(random.between(0, 63));
  return value < least ? least : value > u64Max ? u64Max : value;
}

/** @param {'2.4' | '2.8'} dialect @param {Draws['mode']} mode @param {bigint} batch @param {Random} random */
function someStep(dialect, mode, batch, random) {
  const step = someU64(random, 0n);
  if (dialect === '2.8' || mode !== 'iid') return step;
  // step x batch counts, cut to 64 bits: a far step can be near.
  const near = step % (discardedMax / batch);
  const isPowerOfTwo = (batch & (batch - 1n)) === 0n;
  return isPowerOfTwo && batch > 1n && random.chance(0.3) ? near + 2n ** 64n / batch : near;
}

/**
 * @param {Setting['loaderx']} loaderx
 * @param {'2.4' | '2.8'} dialect
 * @param {Draws} draws
 * @param {Buffer} theirs
 * @param {string | null} theirError ended Python's draws early
 */
async function compareDraws(loaderx, dialect, draws, theirs, theirError) {
  const { length, batch, mode, seed, moves } = draws;
  const sampler = new loaderx.Sampler({ length, batchSize: batch, mode, seed, stream: dialect });
  /** @type {Buffer[]} */
  const chunks = [];
  /** @type {unknown} */
  let ourError = null;
  let step = 0n;
  try {
    for (const move of moves) {
      if (typeof move !== 'number') {
        if (move.seek % 2n === 0n) sampler.seek(move.seek);
        else await sampler.seekAsync(move.seek);
        step = move.seek;
        assert.equal(sampler.step, step, 'step after a seek');
        continue;
      }
      for (let turn = 0; turn < move; turn += 1) {
        const ids = sampler.draw();
        chunks.push(Buffer.from(new Uint8Array(ids.buffer, ids.byteOffset, ids.byteLength)));
        step += 1n;
        if (step <= u64Max) assert.equal(sampler.step, step, 'step after a draw');
      }
    }
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error;
    ourError = error;
  } finally {
    sampler.close();
  }
  const ours = Buffer.concat(chunks);
  if (theirError === null && ourError !== null) throw ourError;
  const length8 = Math.min(ours.length, theirs.length);
  for (let at = 0; at < length8; at += 8) {
    if (ours.readBigUInt64LE(at) === theirs.readBigUInt64LE(at)) continue;
    assert.equal(ours.readBigUInt64LE(at), theirs.readBigUInt64LE(at), `index number ${at / 8}`);
  }
  assert.equal(ours.length, theirs.length, 'bytes of the indices drawn');
  if (theirError !== null) assert.ok(ourError !== null, `Python raised ${theirError}, we did not`);
}
