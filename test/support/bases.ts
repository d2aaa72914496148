// Intact containers for tests that damage them: small, made by our own writer, with the geometry of
// the `base_*` containers of the shared fixtures, so that one table of damage serves both.
import path from 'node:path';
import { type CodecOptions, Dense, ndarray, Ragged, trainDict } from '../../ts/index.js';
import { type Files, readFiles } from './files.mjs';

export const baseNames = [
  'base_dense_raw',
  'base_dense_zstd',
  'base_dense_zstd40',
  'base_ragged_raw',
  'base_ragged_zstd',
  'base_dict_trained',
  'base_dict_content',
  'base28_dense_raw',
  'base28_ragged_raw',
] as const;
export type BaseName = (typeof baseNames)[number];

/** Writes every base into `folder` and reads its files back. */
export async function makeBases(folder: string): Promise<ReadonlyMap<BaseName, Files>> {
  const bases = new Map<BaseName, Files>();
  for (const name of baseNames) {
    const place = path.join(folder, name);
    await makers[name](place);
    bases.set(name, readFiles(place));
  }
  return bases;
}

const makers: Record<BaseName, (place: string) => Promise<void>> = {
  base_dense_raw: (place) => makeDense(place, { codec: 'raw' }),
  base_dense_zstd: (place) => makeDense(place, { codec: 'zstd' }),
  base_dense_zstd40: makeDense40,
  base_ragged_raw: (place) => makeRagged(place, { codec: 'raw' }),
  base_ragged_zstd: (place) => makeRagged(place, { codec: 'zstd' }),
  base_dict_trained: makeTrained,
  base_dict_content: (place) =>
    makeText(place, new TextEncoder().encode(wordsFrom(500, 30)), textsOf(5)),
  base28_dense_raw: (place) => makeDense(place, { codec: 'raw' }, '2.8'),
  base28_ragged_raw: (place) => makeRagged(place, { codec: 'raw' }, '2.8'),
};

/** Five records of three int32, all of different bytes. */
async function makeDense(
  place: string,
  codec: CodecOptions,
  dialect: '2.4' | '2.8' = '2.4',
): Promise<void> {
  const writer = Dense.create(place, {
    ...codec,
    dtype: 'int32',
    itemShape: [3],
    dataShards: 2,
    dialect,
  });
  const data = Int32Array.from({ length: 15 }, (_, index) => (index + 1) * 1_000_003);
  await writer.append(ndarray('int32', [5, 3], data));
  await writer.close();
}

/** Five records of forty bytes that compress to a block of literals and a few sequences. */
async function makeDense40(place: string): Promise<void> {
  const writer = Dense.create(place, {
    dtype: 'uint8',
    itemShape: [40],
    dataShards: 2,
    codec: 'zstd',
  });
  const data = Uint8Array.from({ length: 200 }, (_, index) => {
    const inRecord = index % 40;
    return inRecord < 20 ? index : (index - inRecord + 3) & 0xff;
  });
  await writer.append(ndarray('uint8', [5, 40], data));
  await writer.close();
}

const raggedShapes = [
  [2, 3],
  [1, 1],
  [4, 2],
  [3, 3],
] as const;

/** Four records of uint16 with two dimensions. */
async function makeRagged(
  place: string,
  codec: CodecOptions,
  dialect: '2.4' | '2.8' = '2.4',
): Promise<void> {
  const writer = Ragged.create(place, {
    ...codec,
    dtype: 'uint16',
    ndim: 2,
    dataShards: 2,
    dialect,
  });
  await writer.append(
    raggedShapes.map(([rows, columns], id) => {
      const data = Uint16Array.from(
        { length: rows * columns },
        (_, index) => 0x0101 * (id + 1) + index,
      );
      return ndarray('uint16', [rows, columns], data);
    }),
  );
  await writer.close();
}

/** Every one begins with words of the dictionary's first forty bytes. */
function textsOf(count: number): Uint8Array[] {
  return Array.from({ length: count }, (_, id) =>
    new TextEncoder().encode(wordsFrom(500 + id, 12)),
  );
}

/** Words of six letters, the same ones for the same numbers. */
function wordsFrom(first: number, count: number): string {
  return Array.from({ length: count }, (_, index) => {
    let state = Math.imul(first + index, 0x9e3779b1);
    return Array.from({ length: 6 }, () => {
      state = (Math.imul(state, 1_103_515_245) + 12_345) | 0;
      return String.fromCharCode(97 + ((state >>> 16) % 26));
    }).join('');
  }).join(' ');
}

async function makeTrained(place: string): Promise<void> {
  // The last five of many similar texts, and a dictionary of all of them.
  const texts = Array.from({ length: 400 }, (_, id) =>
    new TextEncoder().encode(wordsFrom((id * 7) % 40, 12)),
  );
  await makeText(place, await trainDict(texts), texts.slice(-5));
}

async function makeText(
  place: string,
  dictBytes: Uint8Array,
  records: readonly Uint8Array[],
): Promise<void> {
  const writer = Ragged.create(place, {
    dtype: 'uint8',
    ndim: 1,
    dataShards: 2,
    codec: 'zstd_dict',
    dictBytes,
  });
  await writer.append(records.map((bytes) => ndarray('uint8', [bytes.length], bytes)));
  await writer.close();
}
