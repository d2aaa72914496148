/**
 * The pixels of JPEG, WebP and large PNG pictures, by `sharp`: on its own threads, off JavaScript's.
 *
 * sharp is an optional peer and is loaded when the first picture needs it. It is told to do nothing but
 * decode: no profile, no turning by itself, no alpha that the file's header does not have.
 */
import { LoaderxError } from '../../errors.js';
import { type AnyPictureFile, damaged } from './file.js';
import { channelCount, isDeep, type Mode, type Orientation, type Pixels } from './pixels.js';

/** What is used of the package: its default export. */
type Sharp = typeof import('sharp')['default'];
type Pipeline = import('sharp').Sharp;

/** The version that is tested, as in package.json. */
export const sharpVersion = '0.35.5';

let loading: Promise<Sharp> | undefined;

/** @param purpose what it is for, in words */
export async function loadSharp(
  purpose = 'JPEG, WebP and large PNG pictures are decoded',
): Promise<Sharp> {
  const module = loading ?? import('sharp').then((all) => all.default);
  loading = module;
  try {
    return await module;
  } catch (cause) {
    loading = undefined;
    const said = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
    throw new LoaderxError(
      'UNSUPPORTED',
      `${purpose} by sharp, which cannot be loaded (${said}): npm install sharp@${sharpVersion}`,
      {},
      { cause },
    );
  }
}

/** Whether sharp is there. */
export async function hasSharp(): Promise<boolean> {
  try {
    await loadSharp();
    return true;
  } catch {
    return false;
  }
}

/**
 * Warnings of libjpeg about what does not touch the pixels: a few bytes too many, odd headers. Then it goes on,
 * as Pillow does. All its other warnings are about pixels that it makes up.
 */
const harmless =
  /\b\d{1,2} extraneous bytes|Invalid SOS parameters|unknown JFIF revision|Unknown Adobe color transform/;

/**
 * The picture, upright.
 *
 * @throws LoaderxError MALFORMED where the decoder refuses the file, or finds another picture than its
 *   header announces; UNSUPPORTED without sharp
 */
export async function decodeBySharp(file: AnyPictureFile): Promise<Pixels> {
  const sharp = await loadSharp();
  const bytes = file.bare();
  try {
    return await run(sharp, file, bytes, 'warning');
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    if (file.format === 'JPEG' && harmless.test(said)) {
      try {
        return await run(sharp, file, bytes, 'error');
      } catch (cause) {
        throw refusal(file, cause);
      }
    }
    throw refusal(file, error);
  }
}

function refusal({ format }: AnyPictureFile, error: unknown): unknown {
  if (error instanceof LoaderxError) return error;
  const said = error instanceof Error ? error.message : String(error);
  return damaged(format, said.trim().replace(/\s*\n\s*/g, '; '), error);
}

async function run(
  sharp: Sharp,
  file: AnyPictureFile,
  bytes: Uint8Array,
  failOn: 'warning' | 'error',
): Promise<Pixels> {
  const { mode, orientation } = file;
  // Limits were held against the header already.
  const source = sharp(bytes, { failOn, ignoreIcc: true, limitInputPixels: false, pages: 1 });
  const pipeline = turned(inSpace(source, mode), orientation);
  const raw = pipeline.raw({ depth: isDeep(mode) ? 'ushort' : 'uchar' });
  const { data, info } = await raw.toBuffer({ resolveWithObject: true });
  const [width, height] = orientation >= 5 ? [file.height, file.width] : [file.width, file.height];
  if (info.width !== width || info.height !== height || info.channels !== channelCount(mode)) {
    throw damaged(
      file.format,
      `its header says ${width} by ${height} pixels of mode ${mode}, and there are ${info.width} by ${info.height} of ${info.channels} channels`,
    );
  }
  // A plain view: a Buffer would be one more class for those who look at it.
  const samples = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { mode, width, height, data: isDeep(mode) ? words(samples) : samples };
}

/** Each mode as it is, without a way through another colour space. */
function inSpace(source: Pipeline, mode: Mode): Pipeline {
  switch (mode) {
    case 'L':
      return source.toColourspace('b-w');
    case 'I;16':
      return source.toColourspace('grey16');
    case 'CMYK':
      return source.pipelineColourspace('cmyk').toColourspace('cmyk');
    case 'RGB':
      return source.removeAlpha();
    case 'RGB;16':
    case 'RGBA;16':
      return source.toColourspace('rgb16');
    default:
      return source;
  }
}

/** sharp mirrors first, whatever the order of the calls, and turns then. */
function turned(source: Pipeline, orientation: Orientation): Pipeline {
  switch (orientation) {
    case 2:
      return source.flop();
    case 3:
      return source.rotate(180);
    case 4:
      return source.flip();
    case 5:
      return source.flip().rotate(90);
    case 6:
      return source.rotate(90);
    case 7:
      return source.flop().rotate(90);
    case 8:
      return source.rotate(270);
    default:
      return source;
  }
}

function words(bytes: Uint8Array): Uint16Array {
  if (bytes.byteOffset % 2 === 0) {
    return new Uint16Array(bytes.buffer, bytes.byteOffset, bytes.byteLength / 2);
  }
  const copy = Uint8Array.from(bytes);
  return new Uint16Array(copy.buffer);
}
