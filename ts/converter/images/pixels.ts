/**
 * Decoded pictures, and what is done to pixels once they are there: turning and changing the mode.
 *
 * Modes are called as in Pillow, because datasets name them so. They decide what a picture becomes:
 *
 * ```text
 * 1     bool    [height, width]       L, P   uint8   [height, width]      LA    uint8   [height, width, 2]
 * I;16  uint16  [height, width]       RGB    uint8   [height, width, 3]   RGBA, CMYK    [height, width, 4]
 * ```
 *
 * and with `;16` their uint16 twins, which Pillow would cut to 8 bits. Of mode 1 true is the byte 255, as Pillow
 * hands it to NumPy and Python's converter writes it.
 */
import { LoaderxError } from '../../errors.js';
import type { NdArray } from '../../ndarray.js';

/** What a decoded picture is: bool, uint8 or uint16, `[height, width]` or `[height, width, channels]`. */
export type Picture = NdArray<'bool' | 'uint8' | 'uint16'>;

export type Mode =
  | '1'
  | 'L'
  | 'I;16'
  | 'P'
  | 'LA'
  | 'RGB'
  | 'RGBA'
  | 'CMYK'
  | 'LA;16'
  | 'RGB;16'
  | 'RGBA;16';

const channelsOf: Readonly<Record<Mode, number>> = {
  '1': 1,
  L: 1,
  'I;16': 1,
  P: 1,
  LA: 2,
  RGB: 3,
  RGBA: 4,
  CMYK: 4,
  'LA;16': 2,
  'RGB;16': 3,
  'RGBA;16': 4,
};

/** Samples of one mode in C order, not yet an array. */
export interface Pixels {
  readonly mode: Mode;
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array | Uint16Array;
}

export function channelCount(mode: Mode): number {
  return channelsOf[mode];
}

/** A mode by its name; undefined where there is none of it. */
export function modeOf(name: string | undefined): Mode | undefined {
  return name !== undefined && Object.hasOwn(channelsOf, name) ? (name as Mode) : undefined;
}

export function isDeep(mode: Mode): boolean {
  return mode.endsWith('16');
}

/** The picture as it is stored. `[height, width]` where there is one channel. */
export function pictureOf({ mode, width, height, data }: Pixels): Picture {
  const channels = channelsOf[mode];
  const shape = channels === 1 ? [height, width] : [height, width, channels];
  if (isDeep(mode)) return { dtype: 'uint16', shape, data: data as Uint16Array };
  return { dtype: mode === '1' ? 'bool' : 'uint8', shape, data: data as Uint8Array };
}

/**
 * EXIF's eight ways that a picture can lie, 1 upright. What is done about each: from which source pixel
 * the first one of the result comes, and where the next ones in a row and in a column lie.
 */
export type Orientation = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8;

/** Turns and mirrors a picture until it is upright. */
export function upright(pixels: Pixels, orientation: Orientation): Pixels {
  if (orientation === 1) return pixels;
  const { mode, width, height, data } = pixels;
  const swaps = orientation >= 5;
  const last = width * height - 1;
  // [first source pixel, step along a row of the result, step along a column of it]
  const [first, along, down] = {
    2: [width - 1, -1, width],
    3: [last, -1, -width],
    4: [last - width + 1, 1, -width],
    5: [0, width, 1],
    6: [last - width + 1, -width, 1],
    7: [last, -width, -1],
    8: [width - 1, width, -1],
  }[orientation] as [number, number, number];
  const targetWidth = swaps ? height : width;
  const targetHeight = swaps ? width : height;
  const channels = channelsOf[mode];
  const target = new (data.constructor as Uint8ArrayConstructor | Uint16ArrayConstructor)(
    data.length,
  );
  let to = 0;
  for (let y = 0; y < targetHeight; y += 1) {
    let from = (first + y * down) * channels;
    const step = along * channels;
    for (let x = 0; x < targetWidth; x += 1) {
      for (let channel = 0; channel < channels; channel += 1) {
        target[to] = data[from + channel] ?? 0;
        to += 1;
      }
      from += step;
    }
  }
  return { mode, width: targetWidth, height: targetHeight, data: target };
}

/** What changing the mode needs to know beside the pixels. */
export interface Colours {
  /** Of mode P: red, green and blue of each index. */
  readonly palette?: Uint8Array | undefined;
  /** Whether the file names a colour, or colours of its palette, as transparent. */
  readonly isKeyed: boolean;
}

/**
 * The picture in the mode that a dataset asks for, as Pillow's `convert` computes it.
 *
 * @throws LoaderxError UNSUPPORTED for a change that is not done here
 */
export function inMode(pixels: Pixels, wanted: string, colours: Colours): Pixels {
  const { mode, width, height, data } = pixels;
  if (mode === wanted) return pixels;
  const steps = stepsTo(mode, wanted, colours);
  if (steps === undefined) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `a picture of mode ${mode} is not converted to ${wanted}, which the feature asks for: remove mode from it`,
    );
  }
  const { toRgba, target } = steps;
  const from = channelsOf[mode];
  const channels = channelsOf[target];
  const count = width * height;
  const out = new Uint8Array(count * channels);
  const rgba = new Uint8Array(4);
  for (let pixel = 0; pixel < count; pixel += 1) {
    toRgba(data as Uint8Array, pixel * from, rgba);
    const [red = 0, green = 0, blue = 0, alpha = 0] = rgba;
    const at = pixel * channels;
    if (channels >= 3) {
      out[at] = red;
      out[at + 1] = green;
      out[at + 2] = blue;
    } else {
      // Grey stays what it is: the weights add up to 65,536.
      out[at] = (red * 19595 + green * 38470 + blue * 7471 + 0x8000) >> 16;
    }
    if (channels === 4 || channels === 2) out[at + channels - 1] = alpha;
  }
  return { mode: target, width, height, data: out };
}

type ToRgba = (data: Uint8Array, at: number, rgba: Uint8Array) => void;

function stepsTo(
  mode: Mode,
  wanted: string,
  { palette, isKeyed }: Colours,
): { readonly toRgba: ToRgba; readonly target: Mode } | undefined {
  if (wanted !== 'L' && wanted !== 'LA' && wanted !== 'RGB' && wanted !== 'RGBA') return undefined;
  // Alpha would come of the key.
  if (isKeyed && (wanted === 'LA' || wanted === 'RGBA')) return undefined;
  const toRgba = rgbaReader(mode, palette);
  return toRgba === undefined ? undefined : { toRgba, target: wanted };
}

function rgbaReader(mode: Mode, palette: Uint8Array | undefined): ToRgba | undefined {
  switch (mode) {
    case '1':
      return (data, at, rgba) => {
        rgba.fill(data[at] === 0 ? 0 : 255, 0, 3);
        rgba[3] = 255;
      };
    case 'L':
      return (data, at, rgba) => {
        rgba.fill(data[at] ?? 0, 0, 3);
        rgba[3] = 255;
      };
    case 'LA':
      return (data, at, rgba) => {
        rgba.fill(data[at] ?? 0, 0, 3);
        rgba[3] = data[at + 1] ?? 0;
      };
    case 'P':
      return (data, at, rgba) => {
        const index = (data[at] ?? 0) * 3;
        for (let channel = 0; channel < 3; channel += 1) {
          rgba[channel] = palette?.[index + channel] ?? 0;
        }
        rgba[3] = 255;
      };
    case 'RGB':
    case 'RGBA':
      return (data, at, rgba) => {
        rgba[0] = data[at] ?? 0;
        rgba[1] = data[at + 1] ?? 0;
        rgba[2] = data[at + 2] ?? 0;
        rgba[3] = mode === 'RGBA' ? (data[at + 3] ?? 0) : 255;
      };
    default:
      return undefined;
  }
}
