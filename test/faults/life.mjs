// @ts-check
// Builds to be disturbed, one of each geometry and codec: small, with several appends and shards,
// published with all that a publication can have.
import assert from 'node:assert/strict';

/** @typedef {import('../support/package.mjs').Loaderx} Loaderx */
/** @typedef {{name: string, kind: 'dense' | 'ragged', codec: 'raw' | 'zstd' | 'zstd_dict'}} Build */

/** @type {readonly Build[]} */
export const builds = /** @type {const} */ (['dense', 'ragged']).flatMap((kind) =>
  /** @type {const} */ (['raw', 'zstd', 'zstd_dict']).map((codec) => {
    return { name: `${kind}-${codec}`, kind, codec };
  }),
);

/**
 * @typedef {object} Life
 * @property {(at: string) => Promise<void>} build
 * @property {(at: string) => Promise<void>} read everything, in every way; fails where it is not what was built
 * @property {(at: string) => Promise<void>} check the same as far as a published container needs it
 * @property {() => Promise<void>} others what needs memory and no container
 */

const count = 30;
const items = 40;
const item = (/** @type {number} */ id, /** @type {number} */ at) => (id * 7 + at * at) & 0xff;
const lengthOf = (/** @type {number} */ id) => 1 + ((id * 13) % items);
const dictBytes = Buffer.from('0123456789abcdef what all records have in common '.repeat(8));

/** @param {Build} build @param {Loaderx} loaderx @returns {Life} */
export function lifeOf({ kind, codec }, loaderx) {
  const { Dense, Ragged, ndarray } = loaderx;
  const coding = codec === 'zstd_dict' ? { codec, dictBytes } : { codec };
  const options = /** @type {const} */ ({ ...coding, dtype: 'uint8', dataShards: 2 });
  const record = (/** @type {number} */ id) =>
    Uint8Array.from({ length: kind === 'dense' ? items : lengthOf(id) }, (_, at) => item(id, at));
  const ids = (/** @type {number} */ from, /** @type {number} */ to) =>
    Array.from({ length: to - from }, (_, index) => from + index);
  const batchOf = (/** @type {number} */ from, /** @type {number} */ to) =>
    ndarray(
      'uint8',
      [to - from, items],
      Uint8Array.from(ids(from, to).flatMap((id) => [...record(id)])),
    );
  const recordsOf = (/** @type {number} */ from, /** @type {number} */ to) =>
    ids(from, to).map((id) => ndarray('uint8', [lengthOf(id)], record(id)));

  /** @param {string} at @param {boolean} inEveryWay */
  async function read(at, inEveryWay) {
    const asked = [...ids(0, count).reverse(), 3, 3];
    const wanted = Buffer.concat(asked.map(record));
    if (kind === 'dense') {
      const reader = Dense.open(at, { dtype: 'uint8', itemShape: [items] });
      try {
        assert.equal(reader.length, count);
        assert.ok(wanted.equals((await reader.gather(asked)).data), 'what gather reads');
        if (!inEveryWay) return;
        assert.ok(wanted.equals(reader.gatherSync(asked).data), 'what gatherSync reads');
        assert.deepEqual(reader.record(5).data, record(5));
      } finally {
        await reader.close();
      }
    } else {
      const reader = Ragged.open(at, { dtype: 'uint8', ndim: 1 });
      try {
        assert.equal(reader.length, count);
        assert.ok(wanted.equals((await reader.gather(asked)).values), 'what gather reads');
        if (!inEveryWay) return;
        const batch = reader.gatherSync(asked);
        assert.ok(wanted.equals(batch.values), 'what gatherSync reads');
        assert.deepEqual(batch.pad({ value: 0 }).data.shape, [asked.length, items]);
      } finally {
        await reader.close();
      }
    }
  }

  return {
    async build(at) {
      const writer =
        kind === 'dense'
          ? Dense.create(at, { ...options, itemShape: [items] })
          : Ragged.create(at, { ...options, ndim: 1 });
      /** @type {any} */
      const batch = kind === 'dense' ? batchOf : recordsOf;
      try {
        writer.appendSync(batch(0, 7));
        await writer.append(batch(7, count));
        await writer.close({ durable: true, integrity: true });
      } finally {
        writer.abort();
      }
    },
    read: (at) => read(at, true),
    async check(at) {
      await read(at, false);
      const report = await loaderx.verify(at);
      assert.deepEqual([report.ok, report.integrity], [true, 'checked'], JSON.stringify(report));
    },
    async others() {
      const samples = Uint8Array.from({ length: count * items }, (_, at) => item(at, at % items));
      const dict = await loaderx.trainDict(ndarray('uint8', [count, items], samples));
      assert.ok(dict.length > 0);
      for (const mode of /** @type {const} */ (['iid', 'cyclic', 'sequential'])) {
        const sampler = new loaderx.Sampler({ length: 100, batchSize: 10, mode, seed: 1 });
        assert.equal(sampler.draw().length, 10);
        await sampler.seekAsync(1000);
        sampler.close();
      }
    },
  };
}
