// @ts-check
// A transform that costs processor time for every pixel: colours are corrected in linear light, in
// place. Integers and tables alone, so that colour.py makes the same bytes of the same bytes; and no
// branch depends on a pixel, so that it takes as long for one picture as for another.

const unit = 4096;
/** Rows give red, green and blue of red, green and blue; each adds up to 1. */
const matrix = Int32Array.of(5100, -700, -304, -300, 4900, -504, -100, -900, 5096);

/** Linear light, 0 .. 4095, of a stored value. */
const toLinear = Int32Array.from({ length: 256 }, (_, value) =>
  Math.floor((value * value * (unit - 1) + 32_512) / 65_025),
);

/** What is stored of linear light; sums below 0 and above 4095 are cut off by the table. */
const toStored = Uint8Array.from({ length: 3 * unit }, (_, index) => {
  const light = Math.min(unit - 1, Math.max(0, index - unit));
  return Math.floor(Math.sqrt((light * 65_025) / (unit - 1)) + 0.5);
});

/**
 * @param {Uint8Array} data photos [count, 3, height, width], changed in place
 * @param {number} plane height times width
 */
export function correctColours(data, plane) {
  const [rr = 0, rg = 0, rb = 0, gr = 0, gg = 0, gb = 0, br = 0, bg = 0, bb = 0] = matrix;
  for (let photo = 0; photo < data.length; photo += 3 * plane) {
    const end = photo + plane;
    for (let at = photo; at < end; at += 1) {
      const red = toLinear[/** @type {number} */ (data[at])] ?? 0;
      const green = toLinear[/** @type {number} */ (data[at + plane])] ?? 0;
      const blue = toLinear[/** @type {number} */ (data[at + 2 * plane])] ?? 0;
      data[at] = toStored[((rr * red + rg * green + rb * blue) >> 12) + unit] ?? 0;
      data[at + plane] = toStored[((gr * red + gg * green + gb * blue) >> 12) + unit] ?? 0;
      data[at + 2 * plane] = toStored[((br * red + bg * green + bb * blue) >> 12) + unit] ?? 0;
    }
  }
}

/** The transform of a loader over a stream `image`. @param {any} batch */
export default function transform(batch) {
  const [, , height, width] = batch.image.shape;
  correctColours(batch.image.data, height * width);
  return batch;
}
