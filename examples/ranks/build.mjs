// @ts-check
// One part of a build, by itself: which records it makes is a function of its number.
//
//     node examples/ranks/build.mjs FOLDER PART OF
//
// A scheduler starts it for each part, in any order, on any machine that sees FOLDER, and starts it again
// when it was killed. A part that is there already is left as it is.
import path from 'node:path';
import { Dense, ndarray, partRange, writePart } from 'loaderx';

/** What all parts together hold: record i is four numbers that only i has. */
export const recordCount = 10_000;
const width = 4;

/** @param {number} first @param {number} end */
function records(first, end) {
  const data = new Uint32Array((end - first) * width);
  for (let at = 0; at < data.length; at += 1) {
    data[at] = Math.imul(first * width + at, 0x9e3779b1) >>> 0;
  }
  return ndarray('uint32', [end - first, width], data);
}

/** @param {string} folder @param {import('loaderx').Part} part */
export function buildPart(folder, part) {
  return writePart(folder, part, async (place) => {
    const { first, end } = partRange(recordCount, part);
    const writer = Dense.create(path.join(place, 'record'), {
      ...{ codec: 'zstd', dtype: 'uint32', itemShape: [width] },
    });
    for (let at = first; at < end; at += 1000) {
      await writer.append(records(at, Math.min(end, at + 1000)));
    }
    await writer.close({ integrity: true });
  });
}

if (process.argv[1] === import.meta.filename) {
  const [folder = '', part, of] = process.argv.slice(2);
  const { path: place, wasThere } = await buildPart(folder, { part: Number(part), of: Number(of) });
  console.log(`${place}${wasThere ? ' was there already' : ''}`);
}
