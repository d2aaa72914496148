/**
 * PNG's pixels, decoded here.
 *
 * Why not by a library: sharp gives the colours of a palette and not its indices, drops the grey of grey with
 * alpha, and takes a millisecond even for a picture of 28 by 28. fast-png reads interlaced pictures below 8 bits
 * wrongly, takes pixels that are missing as 0, and inflates whatever there is. Inflating is Node's own, in one call
 * that is told how many bytes there may be; what is left are the filters and the order of the samples.
 *
 * ```text
 * inflated   filter │ row │ filter │ row │ …          once, or for each of seven passes when interlaced
 * row        samples of `bitDepth` bits, padded to a byte; 16 bits big-endian
 * ```
 */
import { inflate, inflateSync } from 'node:zlib';
import { damaged, type PngFile } from './file.js';
import { channelCount, isDeep, type Pixels } from './pixels.js';

/** One pass: which pixels of the picture it has. */
interface Pass {
  readonly x: number;
  readonly y: number;
  readonly dx: number;
  readonly dy: number;
  readonly width: number;
  readonly height: number;
  /** Of one row, its filter not counted. */
  readonly rowBytes: number;
}

/** Up to here starting a job on another thread takes longer than the job. */
const atOnceBytesMax = 32 * 1024;

/**
 * All pixels. Those of large pictures are inflated on another thread.
 *
 * @throws LoaderxError MALFORMED where there are too few bytes, or too many, or they are damaged
 */
export async function decodeScanlines(file: PngFile): Promise<Pixels> {
  const passes = passesOf(file);
  let bytes = 0;
  for (const { height, rowBytes } of passes) bytes += height * (1 + rowBytes);
  const lines = await inflated(file.deflated(), bytes);
  if (lines.byteLength !== bytes) {
    throw damaged('PNG', `it has ${lines.byteLength} of ${bytes} bytes of pixels`);
  }
  const { mode, width, height, bitDepth } = file;
  const channels = channelCount(mode);
  const step = Math.max(1, (bitDepth * channels) >> 3);
  const size = width * height * channels;
  const data = isDeep(mode) ? new Uint16Array(size) : new Uint8Array(size);
  const row = isDeep(mode) ? new Uint16Array(width * channels) : new Uint8Array(width * channels);
  // Grey goes up to 255. So does 1-bit grey, since that is the byte Python's containers have for true.
  const factor = mode === 'L' || mode === '1' ? 255 / (2 ** bitDepth - 1) : 1;
  let at = 0;
  for (const pass of passes) {
    const stride = 1 + pass.rowBytes;
    for (let y = 0; y < pass.height; y += 1) {
      unfilter(lines, at, y === 0 ? -1 : at - stride, pass.rowBytes, step);
      const first = (pass.y + y * pass.dy) * width + pass.x;
      const packed = lines.subarray(at + 1, at + stride);
      if (bitDepth === 8 && pass.dx === 1) {
        data.set(packed, first * channels);
      } else {
        const samples = row.subarray(0, pass.width * channels);
        unpack(packed, bitDepth, factor, samples);
        place(samples, channels, data, first * channels, pass.dx * channels);
      }
      at += stride;
    }
  }
  return { mode, width, height, data };
}

const adam7: readonly (readonly [x: number, y: number, dx: number, dy: number])[] = [
  [0, 0, 8, 8],
  [4, 0, 8, 8],
  [0, 4, 4, 8],
  [2, 0, 4, 4],
  [0, 2, 2, 4],
  [1, 0, 2, 2],
  [0, 1, 1, 2],
];

function passesOf({ mode, width, height, bitDepth, isInterlaced }: PngFile): readonly Pass[] {
  const bits = bitDepth * channelCount(mode);
  const passes: Pass[] = [];
  for (const [x, y, dx, dy] of isInterlaced ? adam7 : ([[0, 0, 1, 1]] as const)) {
    const passWidth = Math.ceil((width - x) / dx);
    const passHeight = Math.ceil((height - y) / dy);
    if (passWidth <= 0 || passHeight <= 0) continue;
    const rowBytes = Math.ceil((passWidth * bits) / 8);
    passes.push({ x, y, dx, dy, width: passWidth, height: passHeight, rowBytes });
  }
  return passes;
}

/** At most `bytes` bytes; a stream that has more is refused before they are there. */
async function inflated(deflated: Uint8Array, bytes: number): Promise<Uint8Array> {
  const options = { maxOutputLength: bytes, chunkSize: Math.max(64, Math.min(bytes + 1, 2 ** 20)) };
  try {
    if (bytes <= atOnceBytesMax) return inflateSync(deflated, options);
    return await new Promise((resolve, reject) => {
      inflate(deflated, options, (error, result) => {
        if (error === null) resolve(result);
        else reject(error);
      });
    });
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const what =
      code === 'ERR_BUFFER_TOO_LARGE'
        ? `it inflates to more than the ${bytes} bytes of its size`
        : `its pixels do not inflate (${message})`;
    throw damaged('PNG', what, cause);
  }
}

/** Undoes the filter of the row at `at`, in place. `above` is the row before, or -1. */
function unfilter(lines: Uint8Array, at: number, above: number, rowBytes: number, step: number) {
  const begin = at + 1;
  const end = begin + rowBytes;
  const up = above - at;
  switch (lines[at]) {
    case 0:
      return;
    case 1:
      for (let i = begin + step; i < end; i += 1) lines[i] = lines[i]! + lines[i - step]!;
      return;
    case 2:
      if (above < 0) return;
      for (let i = begin; i < end; i += 1) lines[i] = lines[i]! + lines[i + up]!;
      return;
    case 3:
      for (let i = begin; i < end; i += 1) {
        const left = i < begin + step ? 0 : lines[i - step]!;
        const higher = above < 0 ? 0 : lines[i + up]!;
        lines[i] = lines[i]! + ((left + higher) >> 1);
      }
      return;
    case 4:
      for (let i = begin; i < end; i += 1) {
        const left = i < begin + step ? 0 : lines[i - step]!;
        const higher = above < 0 ? 0 : lines[i + up]!;
        const corner = above < 0 || i < begin + step ? 0 : lines[i + up - step]!;
        lines[i] = lines[i]! + nearest(left, higher, corner);
      }
      return;
    default:
      throw damaged('PNG', `there is no filter ${lines[at]}`);
  }
}

/** Paeth's choice: of the three, the one nearest to left + higher - corner. */
function nearest(left: number, higher: number, corner: number): number {
  const toLeft = Math.abs(higher - corner);
  const toHigher = Math.abs(left - corner);
  const toCorner = Math.abs(left + higher - 2 * corner);
  if (toLeft <= toHigher && toLeft <= toCorner) return left;
  return toHigher <= toCorner ? higher : corner;
}

/** Samples of one row as numbers, each times `factor`. */
function unpack(
  packed: Uint8Array,
  bitDepth: number,
  factor: number,
  samples: Uint8Array | Uint16Array,
): void {
  if (bitDepth === 8) {
    samples.set(packed.subarray(0, samples.length));
  } else if (bitDepth === 16) {
    for (let i = 0; i < samples.length; i += 1) {
      samples[i] = (packed[i * 2]! << 8) | packed[i * 2 + 1]!;
    }
  } else {
    const perByte = 8 / bitDepth;
    const mask = 2 ** bitDepth - 1;
    for (let i = 0; i < samples.length; i += 1) {
      const shift = 8 - bitDepth * (1 + (i % perByte));
      samples[i] = ((packed[(i / perByte) | 0]! >> shift) & mask) * factor;
    }
  }
}

/** Puts a row's pixels `step` samples apart. */
function place(
  samples: Uint8Array | Uint16Array,
  channels: number,
  data: Uint8Array | Uint16Array,
  first: number,
  step: number,
): void {
  if (step === channels) {
    data.set(samples, first);
    return;
  }
  for (let from = 0, to = first; from < samples.length; from += channels, to += step) {
    for (let channel = 0; channel < channels; channel += 1) {
      data[to + channel] = samples[from + channel]!;
    }
  }
}
