/**
 * PNG files: what a contact sheet needs of them, over the deflate and CRC that Node has.
 */
import { crc32, deflateSync } from 'node:zlib';
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import { arrayParts, type NdArray } from '../ndarray.js';
import { knownFields } from '../store/fields.js';
import { channelAt, type Picture, pictureOf } from './picture.js';

/** How pictures lie on a contact sheet. */
export interface SheetOptions {
  /** Pictures in a row; as many as make the sheet about square, unless given. */
  readonly columns?: number | undefined;
}

const gapPixels = 2;
/** Pictures are enlarged, by whole numbers, until their longer side is about this. */
const sideWanted = 96;
/** A sheet of more pixels is refused: it would not fit in memory or into a viewer. */
const pixelsMax = 2 ** 28;

/**
 * One PNG with many pictures, in rows: dark between them, small ones enlarged by whole numbers.
 *
 * @param arrays `uint8` of shape `[H, W]`, `[H, W, C]` or `[C, H, W]`, C being 1, 3 or 4
 * @returns the file
 * @throws TypeError, RangeError for an array that is no picture, or a sheet of over 2^28 pixels
 */
export function contactSheet(arrays: readonly NdArray[], options?: SheetOptions): Uint8Array {
  const fields = knownFields(options, ['columns']);
  const pictures = picturesOf(arrays);
  const columns = columnsOf(fields.columns, pictures.length);
  const rows = Math.ceil(pictures.length / columns);
  let [widest, highest] = [0, 0];
  for (const picture of pictures) {
    widest = Math.max(widest, picture.width);
    highest = Math.max(highest, picture.height);
  }
  const scale = Math.max(1, Math.floor(sideWanted / Math.max(widest, highest)));
  const cellWidth = widest * scale;
  const cellHeight = highest * scale;
  const width = columns * (cellWidth + gapPixels) + gapPixels;
  const height = rows * (cellHeight + gapPixels) + gapPixels;
  if (width * height > pixelsMax) {
    throw new ArgumentRangeError(
      'arrays',
      `a sheet of ${width} x ${height} pixels is too large: take fewer pictures`,
      'TOO_LARGE',
    );
  }
  const isOpaque = pictures.every((picture) => picture.channels !== 4);
  const isGrey = pictures.every((picture) => picture.channels === 1);
  const channels = !isOpaque ? 4 : isGrey ? 1 : 3;
  const sheet = new Uint8Array(width * height * channels).fill(32);
  if (channels === 4) for (let at = 3; at < sheet.length; at += 4) sheet[at] = 255;
  for (const [index, picture] of pictures.entries()) {
    const left = gapPixels + (index % columns) * (cellWidth + gapPixels);
    const top = gapPixels + Math.floor(index / columns) * (cellHeight + gapPixels);
    put(picture, scale, sheet, width, channels, left, top);
  }
  return encodePng(width, height, channels, sheet);
}

function picturesOf(arrays: unknown): Picture[] {
  if (!Array.isArray(arrays)) {
    throw new ArgumentTypeError('arrays', `arrays must be a list of arrays, got ${show(arrays)}`);
  }
  if (arrays.length === 0) throw new ArgumentRangeError('arrays', 'arrays has no picture');
  const pictures: Picture[] = [];
  // By index: a hole is an array that is missing, too.
  for (let index = 0; index < arrays.length; index += 1) {
    const array = arrays[index] as NdArray;
    arrayParts(array, `arrays[${index}]`);
    const picture = pictureOf(array, true);
    if (picture === undefined) {
      throw new ArgumentTypeError(
        'arrays',
        `arrays[${index}] is no picture: ${array.dtype} of shape [${array.shape.join(', ')}], and uint8 of [H, W], [H, W, C] or [C, H, W] with 1, 3 or 4 channels is one`,
      );
    }
    pictures.push(picture);
  }
  return pictures;
}

function columnsOf(value: unknown, count: number): number {
  if (value === undefined) return Math.ceil(Math.sqrt(count));
  if (typeof value === 'number' && Number.isInteger(value) && value >= 1) {
    return Math.min(value, count);
  }
  throw new ArgumentRangeError(
    'columns',
    `columns must be an integer, 1 or more, got ${show(value)}`,
  );
}

function put(
  picture: Picture,
  scale: number,
  sheet: Uint8Array,
  sheetWidth: number,
  channels: number,
  left: number,
  top: number,
): void {
  for (let y = 0; y < picture.height * scale; y += 1) {
    for (let x = 0; x < picture.width * scale; x += 1) {
      const to = ((top + y) * sheetWidth + left + x) * channels;
      for (let channel = 0; channel < channels; channel += 1) {
        const value = channelAt(picture, Math.floor(x / scale), Math.floor(y / scale), channel);
        sheet[to + channel] = value;
      }
    }
  }
}

// ---- the file ----

const signature = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a];
const colourTypes: Readonly<Record<number, number>> = { 1: 0, 3: 2, 4: 6 };

/** A PNG of 8 bits a channel: 1 (grey), 3 (RGB) or 4 (RGBA). */
export function encodePng(
  width: number,
  height: number,
  channels: number,
  pixels: Uint8Array,
): Uint8Array {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header[8] = 8;
  header[9] = colourTypes[channels] ?? 0;
  return Buffer.concat([
    Buffer.from(signature),
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(filtered(width, height, channels, pixels))),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function chunk(name: string, data: Uint8Array): Buffer {
  const body = Buffer.concat([Buffer.from(name, 'latin1'), data]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.byteLength);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

/** Each row behind the number of its filter: the one whose bytes are smallest, as the standard advises. */
function filtered(width: number, height: number, channels: number, pixels: Uint8Array): Uint8Array {
  const rowBytes = width * channels;
  const out = new Uint8Array(height * (rowBytes + 1));
  const tried = [new Uint8Array(rowBytes), new Uint8Array(rowBytes), new Uint8Array(rowBytes)];
  for (let y = 0; y < height; y += 1) {
    const row = pixels.subarray(y * rowBytes, (y + 1) * rowBytes);
    const above = y === 0 ? undefined : pixels.subarray((y - 1) * rowBytes, y * rowBytes);
    let best = 0;
    let bestSum = Number.POSITIVE_INFINITY;
    for (const [filter, target] of tried.entries()) {
      let sum = 0;
      for (let at = 0; at < rowBytes; at += 1) {
        const predicted =
          filter === 0 ? 0 : filter === 1 ? (row[at - channels] ?? 0) : (above?.[at] ?? 0);
        const byte = ((row[at] ?? 0) - predicted) & 0xff;
        target[at] = byte;
        sum += byte < 128 ? byte : 256 - byte;
      }
      if (sum < bestSum) {
        best = filter;
        bestSum = sum;
      }
    }
    out[y * (rowBytes + 1)] = best;
    out.set(tried[best] ?? row, y * (rowBytes + 1) + 1);
  }
  return out;
}
