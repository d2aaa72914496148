/** Pictures of one size, by `sharp`: cut to the wanted shape in their middle, then resized (Lanczos). */
import { LoaderxError } from '../../errors.js';
import type { NdArray } from '../../ndarray.js';
import type { Picture } from './pixels.js';
import { loadSharp } from './sharp.js';

/** Modes of 8 bits that are resized. */
export type Colours = 'L' | 'RGB' | 'RGBA';

/**
 * A picture that has the size already stays as it is.
 *
 * @param mode that of the picture
 * @throws LoaderxError UNSUPPORTED without sharp, and for pictures of 16 bits
 */
export async function resized(
  { dtype, shape, data }: Picture,
  [height, width]: readonly [number, number],
  mode: Colours,
): Promise<NdArray<'uint8'>> {
  if (dtype !== 'uint8') {
    throw new LoaderxError('UNSUPPORTED', `the picture is ${dtype}, and uint8 ones are resized`);
  }
  const [ownHeight = 0, ownWidth = 0] = shape;
  const pixels = data as Uint8Array;
  if (ownHeight === height && ownWidth === width) return { dtype, shape, data: pixels };
  const sharp = await loadSharp('pictures are resized');
  const channels = { L: 1, RGB: 3, RGBA: 4 }[mode] as 1 | 3 | 4;
  const raw = { width: ownWidth, height: ownHeight, channels };
  const made = await sharp(pixels, { raw })
    .resize(width, height, { fit: 'cover', kernel: 'lanczos3' })
    .toColourspace(mode === 'L' ? 'b-w' : 'srgb')
    .raw()
    .toBuffer();
  const items = new Uint8Array(made);
  const wanted = mode === 'L' ? [height, width] : [height, width, channels];
  if (items.length !== height * width * channels) {
    throw new LoaderxError(
      'UNEXPECTED',
      `sharp gave ${items.length} bytes for ${wanted.join(' x ')}`,
    );
  }
  return { dtype, shape: wanted, data: items };
}
