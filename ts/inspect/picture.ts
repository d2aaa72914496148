/**
 * Records that are pictures: told from their dtype and shape, scaled, and drawn in a terminal.
 *
 *     [H, W]  [H, W, C]  [C, H, W]      uint8, C 1 (grey), 3 (RGB) or 4 (RGBA)
 *
 * Where both ends of a shape could be channels the last one is taken.
 */
import type { NdArray } from '../ndarray.js';

/** Red, green, blue and opacity of each pixel, row by row. */
export interface Picture {
  readonly width: number;
  readonly height: number;
  /** 4 bytes for each pixel. */
  readonly pixels: Uint8Array;
  /** Whether every pixel is grey and opaque. */
  readonly isGrey: boolean;
  readonly isOpaque: boolean;
}

/** Smaller arrays are tables of numbers, unless the caller knows better. */
const sideMin = 8;

interface Layout {
  readonly width: number;
  readonly height: number;
  readonly channels: number;
  /** Elements from one pixel, row and channel to the next. */
  readonly pixelStep: number;
  readonly rowStep: number;
  readonly channelStep: number;
}

/** The picture that an array is; undefined where it is none. */
export function pictureOf(array: NdArray, anySize = false): Picture | undefined {
  if (array.dtype !== 'uint8') return undefined;
  const layout = layoutOf(array.shape);
  if (layout === undefined) return undefined;
  const { width, height, channels, pixelStep, rowStep, channelStep } = layout;
  if (!anySize && Math.min(width, height) < sideMin) return undefined;
  if (width * height === 0) return undefined;
  const data = array.data as Uint8Array;
  const pixels = new Uint8Array(width * height * 4);
  for (let y = 0; y < height; y += 1) {
    for (let x = 0; x < width; x += 1) {
      const from = y * rowStep + x * pixelStep;
      const to = (y * width + x) * 4;
      const first = data[from] ?? 0;
      pixels[to] = first;
      pixels[to + 1] = channels === 1 ? first : (data[from + channelStep] ?? 0);
      pixels[to + 2] = channels === 1 ? first : (data[from + 2 * channelStep] ?? 0);
      pixels[to + 3] = channels === 4 ? (data[from + 3 * channelStep] ?? 0) : 255;
    }
  }
  return { width, height, pixels, isGrey: channels === 1, isOpaque: channels !== 4 };
}

function layoutOf(shape: readonly number[]): Layout | undefined {
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

/** The picture with each side at most so large, by averaging; never enlarged. */
export function shrunk(picture: Picture, widthMax: number, heightMax: number): Picture {
  const scale = Math.min(1, widthMax / picture.width, heightMax / picture.height);
  if (scale === 1) return picture;
  const width = Math.max(1, Math.round(picture.width * scale));
  const height = Math.max(1, Math.round(picture.height * scale));
  const pixels = new Uint8Array(width * height * 4);
  for (let y = 0; y < height; y += 1) {
    const top = Math.floor((y * picture.height) / height);
    const bottom = Math.max(top + 1, Math.floor(((y + 1) * picture.height) / height));
    for (let x = 0; x < width; x += 1) {
      const left = Math.floor((x * picture.width) / width);
      const right = Math.max(left + 1, Math.floor(((x + 1) * picture.width) / width));
      const sums = [0, 0, 0, 0];
      for (let row = top; row < bottom; row += 1) {
        for (let column = left; column < right; column += 1) {
          const from = (row * picture.width + column) * 4;
          for (let channel = 0; channel < 4; channel += 1) {
            sums[channel] = (sums[channel] ?? 0) + (picture.pixels[from + channel] ?? 0);
          }
        }
      }
      const count = (bottom - top) * (right - left);
      for (let channel = 0; channel < 4; channel += 1) {
        pixels[(y * width + x) * 4 + channel] = Math.round((sums[channel] ?? 0) / count);
      }
    }
  }
  return { ...picture, width, height, pixels };
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

function pixelAt({ width, pixels }: Picture, x: number, y: number): Pixel {
  const at = (y * width + x) * 4;
  const opacity = (pixels[at + 3] ?? 255) / 255;
  const part = (channel: number): number => Math.round((pixels[at + channel] ?? 0) * opacity);
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
