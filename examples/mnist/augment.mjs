// @ts-check
// The transform of the training stream, run in worker threads: bytes become floats from 0 to 1, and each
// digit is moved by up to two pixels either way. Where to depends on seed, step and the digit's place in the
// batch alone, so it is the same in every run, however many workers there are and wherever it was resumed.
const side = 28;
const reach = 2;

/**
 * @param {{image: import('loaderx').DenseBatch<'uint8'>, label: import('loaderx').DenseBatch<'uint8'>}} batch
 * @param {import('loaderx').TransformContext} context
 */
export default function augment({ image, label }, { rng }) {
  const count = label.data.length;
  const pixels = new Float32Array(image.data.length);
  for (let at = 0; at < count; at += 1) {
    const own = rng.at(at);
    const down = own.int(2 * reach + 1) - reach;
    const right = own.int(2 * reach + 1) - reach;
    const first = at * side * side;
    for (let row = Math.max(0, down); row < Math.min(side, side + down); row += 1) {
      for (let column = Math.max(0, right); column < Math.min(side, side + right); column += 1) {
        const from = first + (row - down) * side + (column - right);
        pixels[first + row * side + column] = image.data[from] / 255;
      }
    }
  }
  return { pixels, labels: Int32Array.from(label.data) };
}
