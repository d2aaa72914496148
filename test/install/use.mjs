// @ts-check
// What every installed copy must be able to do: containers of both kinds in every codec, read back by
// both kinds of call and held against the source, with digests that do not depend on the codec. Plain
// JavaScript that is given the package, so that it serves every way of loading it.
import assert from 'node:assert/strict';
import path from 'node:path';

/** @typedef {typeof import('../../ts/index.js')} Loaderx */

/** Of the records below, in every codec, on every platform and Node. */
const wantedDigest = '2311dd87eb74b218208853f1b008e65302bf8302b180ad1b70f00c252595c1ed';

/**
 * @param {Loaderx} loaderx
 * @param {string} folder for the containers; must exist
 */
export async function use(loaderx, folder) {
  const { Dense, Ragged, Sampler, digest, ndarray, trainDict } = loaderx;
  const count = 600;
  const data = Int32Array.from({ length: count * 12 }, (_, index) => (index * 2654435761) >> 22);
  const records = ndarray('int32', [count, 3, 4], data);
  const dictBytes = await trainDict(records);
  const sampler = new Sampler({ length: count, batchSize: 64, mode: 'cyclic', seed: 7 });
  const ids = sampler.draw().slice();

  for (const codec of /** @type {const} */ (['raw', 'zstd', 'zstd_dict'])) {
    const place = path.join(folder, `dense-${codec}`);
    const options = { dtype: /** @type {const} */ ('int32'), itemShape: [3, 4] };
    const writer = Dense.create(
      place,
      codec === 'zstd_dict' ? { ...options, codec, dictBytes } : { ...options, codec },
    );
    await writer.append(records);
    await writer.close();

    const reader = Dense.open(place, options);
    for (const batch of [await reader.gather(ids), reader.gatherSync(ids)]) {
      assert.deepEqual(batch.shape, [64, 3, 4]);
      ids.forEach((id, index) => {
        const from = Number(id) * 12;
        assert.deepEqual(
          batch.data.slice(index * 12, index * 12 + 12),
          data.slice(from, from + 12),
        );
      });
    }
    await reader.close();
    assert.equal((await digest(place)).logicalDigest, wantedDigest);
  }

  const place = path.join(folder, 'ragged');
  const words = ['drei', 'Wörter', '和', 'noch eins'].map((word) => new TextEncoder().encode(word));
  const writer = Ragged.create(place, { dtype: 'uint8', ndim: 1, codec: 'zstd' });
  await writer.append(words.map((word) => ndarray('uint8', [word.length], word)));
  await writer.close();
  const reader = Ragged.open(place);
  const batch = await reader.gather([3, 0, 2]);
  const read = Array.from(batch, (word) =>
    new TextDecoder().decode(/** @type {any} */ (word.data)),
  );
  assert.deepEqual(read, ['noch eins', 'drei', '和']);
  await reader.close();
  sampler.close();
}

/**
 * Stores with names in which paths built by hand go wrong: written, found by their very name, and named
 * rightly by the error when they are not there.
 *
 * @param {Loaderx} loaderx
 * @param {string} folder for the containers; must exist
 */
export async function useNames({ Dense, ndarray }, folder) {
  /** @type {(string | Uint8Array)[]} */
  const names = ["Ünï cøde 日本 #1 %20 'q'", '🙂', 'x'.repeat(240), 'caf\u00e9', 'cafe\u0301'];
  // Windows cannot have these two; there they are not asked for.
  if (process.platform !== 'win32') names.push('trailing ', Uint8Array.of(0x61, 0xff, 0x62));
  const places = names.map((name) =>
    typeof name === 'string'
      ? path.join(folder, name)
      : Buffer.concat([Buffer.from(`${folder}/`), name]),
  );
  for (const [index, place] of places.entries()) {
    const shown = typeof place === 'string' ? place : `${folder}/a\\xffb`;
    const absent = catchError(() => Dense.open(place));
    assert.equal(absent.code, 'NOT_FOUND', shown);
    assert.ok(absent.message.includes(shown), absent.message);
    const writer = Dense.create(place, { dtype: 'uint8', itemShape: [], codec: 'raw' });
    await writer.append(ndarray('uint8', [1], Uint8Array.of(index)));
    await writer.close();
  }
  for (const [index, place] of places.entries()) {
    const reader = Dense.open(place);
    assert.deepEqual(reader.record(0).data, Uint8Array.of(index));
    await reader.close();
  }
}

/** @param {() => unknown} body @returns {import('../../ts/index.js').LoaderxError} */
function catchError(body) {
  try {
    body();
  } catch (error) {
    return /** @type {import('../../ts/index.js').LoaderxError} */ (error);
  }
  throw new Error('there is no error');
}
