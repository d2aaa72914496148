/**
 * Records that are pictures: told from their dtype and shape, scaled, and drawn in a terminal.
 *
 *     [H, W]  [H, W, C]  [C, H, W]      uint8, C 1 (grey), 3 (RGB) or 4 (RGBA)
 *
 * Where both ends of a shape could be channels the last one is taken.
 */
import type { NdArray } from '../ndarray.js';

/** A picture: where its pixels lie in an array, of which nothing is copied. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
  /** 1, 3 or 4. */
  readonly channels: number;
  /** Elements from one pixel, row and channel to the next. */
  readonly pixelStep: number;
  readonly rowStep: number;
  readonly channelStep: number;
}

/** Smaller arrays are tables of numbers, unless the caller knows better. */
const sideMin = 8;
/** Longer ones too: a picture that fits a terminal would be a line. */
const sidesRatioMax = 16;

/** The picture that an array is; undefined where it is none. */
export function pictureOf(array: NdArray, anySize = false): Picture | undefined {
  if (array.dtype !== 'uint8') return undefined;
  const layout = layoutOf(array.shape);
  if (layout === undefined) return undefined;
  const shorter = Math.min(layout.width, layout.height);
  const longer = Math.max(layout.width, layout.height);
  if (shorter === 0) return undefined;
  if (!anySize && (shorter < sideMin || longer > sidesRatioMax * shorter)) return undefined;
  return { ...layout, data: array.data as Uint8Array };
}

function layoutOf(shape: readonly number[]): Omit<Picture, 'data'> | undefined {
  const [a = 0, b = 0, c = 0] = shape;
  if (shape.length === 2) {
    return { width: b, height: a, channels: 1, pixelStep: 1, rowStep: b, channelStep: 0 };
  }
  if (shape.length !== 3) return undefined;
  if (isChannels(c)) {
    return { width: b, height: a, channels: c, pixelStep: c, rowStep: b * c, channelStep: 1 };
  }
  if (isChannels(a)) {
    return { width: c, height: b, channels: a, pixelStep: 1, rowStep: c, channelStep: b * c };
  }
  return undefined;
}

function isChannels(size: number): boolean {
  return size === 1 || size === 3 || size === 4;
}

/** Red (0), green, blue or opacity (3) of a pixel, which is in the picture. */
export function channelAt(picture: Picture, x: number, y: number, channel: number): number {
  const { data, channels, pixelStep, rowStep, channelStep } = picture;
  if (channel === 3 && channels !== 4) return 255;
  const own = channels === 1 ? 0 : channel * channelStep;
  return data[y * rowStep + x * pixelStep + own] ?? 0;
}

/** Pixels that are looked at each way for one that is shown. */
const samplesMax = 16;

/**
 * The picture with each side at most so large, by averaging; never enlarged. The work is bounded by what is
 * shown: of many pixels evenly spread ones are looked at.
 */
export function shrunk(picture: Picture, widthMax: number, heightMax: number): Picture {
  const scale = Math.min(1, widthMax / picture.width, heightMax / picture.height);
  if (scale === 1) return picture;
  const width = Math.max(1, Math.round(picture.width * scale));
  const height = Math.max(1, Math.round(picture.height * scale));
  const { channels } = picture;
  const data = new Uint8Array(width * height * channels);
  for (let y = 0; y < height; y += 1) {
    const rows = partOf(picture.height, y, height);
    for (let x = 0; x < width; x += 1) {
      const columns = partOf(picture.width, x, width);
      for (let channel = 0; channel < channels; channel += 1) {
        let sum = 0;
        let count = 0;
        for (let row = rows.first; row < rows.end; row += rows.step) {
          for (let column = columns.first; column < columns.end; column += columns.step) {
            sum += channelAt(picture, column, row, channel);
            count += 1;
          }
        }
        data[(y * width + x) * channels + channel] = Math.round(sum / count);
      }
    }
  }
  const rowStep = width * channels;
  return { width, height, data, channels, pixelStep: channels, rowStep, channelStep: 1 };
}

/** The pixels of a side that part `index` of `count` stands for. */
function partOf(side: number, index: number, count: number) {
  const first = Math.floor((index * side) / count);
  const end = Math.max(first + 1, Math.floor(((index + 1) * side) / count));
  return { first, end, step: Math.ceil((end - first) / samplesMax) };
}

/** How many colours a terminal has: all of them, 256, or none that may be used. */
export type Colours = 'true' | '256' | 'none';

/** From dark to bright, each about as much brighter. */
const shades = ' .:-=+*#%@';

/**
 * Lines of half blocks in colour, each two pixels high; without colours, of letters that are as bright.
 * Opacity is over black.
 */
export function drawn(picture: Picture, colours: Colours): string[] {
  const lines: string[] = [];
  for (let y = 0; y < picture.height; y += 2) {
    let line = '';
    let before = '';
    for (let x = 0; x < picture.width; x += 1) {
      const top = pixelAt(picture, x, y);
      const bottom = y + 1 < picture.height ? pixelAt(picture, x, y + 1) : black;
      if (colours === 'none') {
        line += shadeOf((brightness(top) + brightness(bottom)) / 2);
        continue;
      }
      const code = `${codeOf(38, top, colours)};${codeOf(48, bottom, colours)}`;
      if (code !== before) line += `\u001b[${code}m`;
      line += '▀';
      before = code;
    }
    lines.push(colours === 'none' ? line.trimEnd() : `${line}\u001b[0m`);
  }
  return lines;
}

type Pixel = readonly [red: number, green: number, blue: number];
const black: Pixel = [0, 0, 0];

function pixelAt(picture: Picture, x: number, y: number): Pixel {
  const opacity = channelAt(picture, x, y, 3) / 255;
  const part = (channel: number): number => Math.round(channelAt(picture, x, y, channel) * opacity);
  return [part(0), part(1), part(2)];
}

function brightness([red, green, blue]: Pixel): number {
  return (red * 0.299 + green * 0.587 + blue * 0.114) / 255;
}

function shadeOf(bright: number): string {
  return shades[Math.min(shades.length - 1, Math.floor(bright * shades.length))] ?? ' ';
}

function codeOf(layer: 38 | 48, pixel: Pixel, colours: Colours): string {
  const [red, green, blue] = pixel;
  if (colours === 'true') return `${layer};2;${red};${green};${blue}`;
  return `${layer};5;${nearestOf256(pixel)}`;
}

/** Amounts of each colour in the cube of 6 × 6 × 6 that begins at 16; they are not evenly apart. */
const cubeLevels = [0, 95, 135, 175, 215, 255];
/** The 24 greys that begin at 232 are 8, 18, … 238. */
const greyCount = 24;

/** The number of the colour among the terminal's 256 that differs least. */
function nearestOf256(pixel: Pixel): number {
  const [red, green, blue] = pixel.map(nearestLevel) as unknown as Pixel;
  const cubed: Pixel = [cubeLevels[red] ?? 0, cubeLevels[green] ?? 0, cubeLevels[blue] ?? 0];
  const mean = (pixel[0] + pixel[1] + pixel[2]) / 3;
  const step = Math.max(0, Math.min(greyCount - 1, Math.round((mean - 8) / 10)));
  const grey = 8 + 10 * step;
  if (distance(pixel, [grey, grey, grey]) < distance(pixel, cubed)) return 232 + step;
  return 16 + 36 * red + 6 * green + blue;
}

function nearestLevel(value: number): number {
  let best = 0;
  for (const [index, level] of cubeLevels.entries()) {
    if (Math.abs(level - value) < Math.abs((cubeLevels[best] ?? 0) - value)) best = index;
  }
  return best;
}

function distance(a: Pixel, b: Pixel): number {
  return (a[0] - b[0]) ** 2 + (a[1] - b[1]) ** 2 + (a[2] - b[2]) ** 2;
}
