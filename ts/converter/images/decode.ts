/**
 * One encoded picture to its pixels, as Pillow, `datasets` and NumPy give them to Python's converter.
 */
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../../errors.js';
import { recordBytesMax } from '../../schema.js';
import { type AnyPictureFile, notRead } from './file.js';
import { isJpeg, readJpeg } from './jpeg.js';
import { startsWith } from './orientation.js';
import { channelCount, inMode, isDeep, type Picture, pictureOf, upright } from './pixels.js';
import { isPng, readPng } from './png.js';
import { decodeScanlines } from './scanlines.js';
import { decodeBySharp, hasSharp } from './sharp.js';
import { isWebp, readWebp } from './webp.js';

/** What a picture may be at most. */
export interface ImageLimits {
  /**
   * Height × width of one picture, as its header says it: what has more is refused before any memory is
   * taken for it. 178,956,970 unless given, which is where Python's decoder stops too.
   */
  readonly maxPixels?: number | undefined;
}

const pixelsByDefault = 178_956_970;

/** The checked limit. */
export function maxPixelsOf(limits: ImageLimits | undefined): number {
  const value: unknown = limits?.maxPixels;
  if (value === undefined) return pixelsByDefault;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new ArgumentTypeError('maxPixels', `maxPixels must be an integer, got ${show(value)}`);
  }
  if (value < 1) {
    throw new ArgumentRangeError('maxPixels', `maxPixels must be 1 or more, got ${value}`);
  }
  return value;
}

/**
 * What the headers say.
 *
 * @throws LoaderxError MALFORMED for what is no picture or a damaged one, UNSUPPORTED for other formats,
 *   TOO_LARGE over the limit
 */
export function readPicture(bytes: Uint8Array, maxPixels: number): AnyPictureFile {
  const file = parsed(bytes);
  const { width, height, mode } = file;
  if (width * height > maxPixels) {
    throw new LoaderxError(
      'TOO_LARGE',
      `the ${file.format} picture is ${width} by ${height} pixels, and maxPixels allows ${maxPixels}: raise it if the file is to be trusted`,
    );
  }
  if (decodedBytes(file) > recordBytesMax) {
    throw new LoaderxError(
      'TOO_LARGE',
      `the ${file.format} picture is ${width} by ${height} pixels of mode ${mode}, and a record has 2^31 bytes at most`,
    );
  }
  return file;
}

function parsed(bytes: Uint8Array): AnyPictureFile {
  if (isPng(bytes)) return readPng(bytes);
  if (isJpeg(bytes)) return readJpeg(bytes);
  if (isWebp(bytes)) return readWebp(bytes);
  if (bytes.byteLength === 0) throw new LoaderxError('MALFORMED', 'the picture has no bytes');
  const other = otherFormat(bytes);
  if (other !== undefined) throw notRead(other);
  throw new LoaderxError('MALFORMED', 'the bytes are no picture: no format begins as they do');
}

/** What each begins with, and where. */
const otherFormats: readonly (readonly [name: string, mark: string, at?: number])[] = [
  ['GIF', 'GIF8'],
  ['BMP', 'BM'],
  ['TIFF', 'II*\0'],
  ['TIFF', 'MM\0*'],
  ['TIFF', 'II+\0'],
  ['TIFF', 'MM\0+'],
  ['AVIF', 'ftypavi', 4],
  ['HEIF', 'ftyphei', 4],
  ['HEIF', 'ftypmif', 4],
  ['JPEG 2000', 'jP  ', 4],
  ['JPEG 2000', '\xffO\xffQ'],
  ['JPEG XL', '\xff\x0a'],
  ['JPEG XL', 'JXL ', 4],
  ['ICO', '\0\0\x01\0'],
  ['ICO', '\0\0\x02\0'],
  ['Netpbm', 'P1'],
  ['Netpbm', 'P2'],
  ['Netpbm', 'P3'],
  ['Netpbm', 'P4'],
  ['Netpbm', 'P5'],
  ['Netpbm', 'P6'],
  ['Photoshop', '8BPS'],
  ['DDS', 'DDS '],
  ['SVG', '<svg'],
  ['SVG', '<?xml'],
  ['PDF', '%PDF'],
];

function otherFormat(bytes: Uint8Array): string | undefined {
  return otherFormats.find(([, mark, at]) => startsWith(bytes, mark, at))?.[0];
}

/** Bytes of the decoded picture. */
export function decodedBytes({ width, height, mode }: AnyPictureFile): number {
  return width * height * channelCount(mode) * (isDeep(mode) ? 2 : 1);
}

/**
 * From here on sharp's threads together are faster than this one. Starting sharp takes about 0.6 ms of
 * processor time, in which 24 KiB of scanlines are decoded here.
 */
const sharpBytesMin = 24 * 1024;

/**
 * The picture, upright and in the mode that is wanted.
 *
 * @throws LoaderxError MALFORMED, UNSUPPORTED
 */
export async function decodePicture(
  file: AnyPictureFile,
  mode: string | undefined,
): Promise<Picture> {
  const pixels =
    file.format === 'PNG' && !(await isForSharp(file))
      ? upright(await decodeScanlines(file), file.orientation)
      : await decodeBySharp(file);
  return pictureOf(mode === undefined ? pixels : inMode(pixels, mode, file));
}

/** Large PNGs, if sharp is there, and of the kinds whose samples it leaves as they are. */
async function isForSharp(file: AnyPictureFile & { readonly format: 'PNG' }): Promise<boolean> {
  if (file.bitDepth < 8 || ['P', 'LA', 'LA;16'].includes(file.mode)) return false;
  return decodedBytes(file) >= sharpBytesMin && (await hasSharp());
}

/** How one picture is decoded. */
export interface DecodeImageOptions {
  /** The mode to convert it to, as in `Image(mode='RGB')`. The file's own unless given. */
  readonly mode?: string | undefined;
  readonly limits?: ImageLimits | undefined;
}

/**
 * Decodes one picture: PNG of all kinds, JPEG, WebP (its first picture).
 *
 * The result is what Python's converter stores: `[height, width, channels]`, or `[height, width]` where there is
 * one channel; palettes give indices, 1-bit PNG gives bool, EXIF's orientation is applied, profiles and gamma
 * are not. 16 bits of colour stay 16 bits, where Pillow cuts them to 8.
 *
 * @throws LoaderxError MALFORMED for damaged pictures, UNSUPPORTED for other formats and for modes that
 *   cannot be had, or without `sharp` where it is needed; TOO_LARGE over the limits
 */
export async function decodeImage(
  bytes: Uint8Array,
  options: DecodeImageOptions = {},
): Promise<Picture> {
  const file = readPicture(bytes, maxPixelsOf(options.limits));
  return decodePicture(file, options.mode);
}
