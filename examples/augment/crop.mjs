// @ts-check
// A transform module: each picture is cropped to 28 x 28 somewhere, mirrored or not, made [channel, row,
// column] and floats from 0 to 1. It works in memory that it makes; the batch's goes back to the loader.
const [from, to] = [32, 28];

/**
 * @param {{picture: import('loaderx').DenseBatch<'uint8'>}} batch
 * @param {import('loaderx').TransformContext} context
 */
export default function crop({ picture }, { rng }) {
  const count = picture.shape[0] ?? 0;
  const data = new Float32Array(count * 3 * to * to);
  for (let at = 0; at < count; at += 1) {
    const own = rng.at(at);
    const top = own.int(from - to + 1);
    const left = own.int(from - to + 1);
    const isMirrored = own.float() < 0.5;
    for (let row = 0; row < to; row += 1) {
      for (let column = 0; column < to; column += 1) {
        const source = isMirrored ? left + to - 1 - column : left + column;
        const pixel = ((at * from + top + row) * from + source) * 3;
        for (let channel = 0; channel < 3; channel += 1) {
          const value = picture.data[pixel + channel] ?? 0;
          data[((at * 3 + channel) * to + row) * to + column] = value / 255;
        }
      }
    }
  }
  return { dtype: 'float32', shape: [count, 3, to, to], data };
}
