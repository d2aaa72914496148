/**
 * Compressed pages, decompressed to exactly the length that their header says: a stream that gives more
 * or less is refused, so a page never takes more memory than was agreed to.
 */
import zlib from 'node:zlib';
import type { CompressionCodec } from 'hyparquet';
import { LoaderxError } from '../../errors.js';
import { decompressFrame } from '../../frame.js';

/**
 * @param bytes of the page
 * @returns a new array, or `input` itself where it is not compressed
 * @throws Error where the stream is damaged, has another length or is of a codec that is not known
 */
export function decompressed(
  codec: CompressionCodec,
  input: Uint8Array,
  bytes: number,
): Uint8Array {
  if (codec === 'UNCOMPRESSED') return exact(input, bytes);
  if (bytes === 0) return new Uint8Array(0);
  switch (codec) {
    case 'SNAPPY':
      return snappy(input, Buffer.allocUnsafeSlow(bytes));
    case 'GZIP':
      return exact(zlib.gunzipSync(input, { maxOutputLength: bytes }), bytes);
    case 'BROTLI':
      return exact(zlib.brotliDecompressSync(input, { maxOutputLength: bytes }), bytes);
    case 'ZSTD': {
      if (input.byteLength === 0) throw new Error('a page without a frame of zstd');
      // The core's own decoder: Node has one since 22.15 only.
      const output = Buffer.allocUnsafeSlow(bytes);
      return exact(output.subarray(0, zstd(input, output)), bytes);
    }
    case 'LZ4_RAW':
      return lz4Block(input, Buffer.allocUnsafeSlow(bytes), 0, bytes);
    case 'LZ4':
      return lz4Hadoop(input, bytes);
    default:
      throw new Error(`the compression ${codec} is not known here`);
  }
}

function zstd(input: Uint8Array, output: Uint8Array): number {
  try {
    return decompressFrame(input, output);
  } catch (error) {
    const isDamaged = error instanceof LoaderxError && error.code === 'CODEC';
    // The caller says where; what is no fault of the page passes as it is.
    throw isDamaged ? new Error(error.message, { cause: error }) : error;
  }
}

function exact(output: Uint8Array, bytes: number): Uint8Array {
  if (output.byteLength === bytes) return output;
  throw new Error(`a page of ${output.byteLength} bytes, and its header says ${bytes}`);
}

/** Copies of fewer bytes are made byte by byte, which costs less than a call. */
const bulkBytesMin = 24;

/**
 * Fills `output` with what a Snappy block holds. hyparquet's own copies everything byte by byte: numbers
 * hardly compress, and that was a third of the time of their conversion.
 */
function snappy(input: Uint8Array, output: Buffer): Uint8Array {
  let from = 0;
  let to = 0;
  // The length of the whole, which the page's header has said already.
  while ((input[from++] ?? failSnappy()) >= 128);
  while (from < input.length) {
    const tag = input[from++] as number;
    let length = (tag >> 2) + 1;
    const kind = tag & 3;
    if (kind === 0) {
      if (length > 60) {
        const lengthBytes = length - 60;
        length = 1;
        for (let byte = 0; byte < lengthBytes; byte += 1) {
          length += (input[from++] ?? failSnappy()) * 2 ** (8 * byte);
        }
      }
      if (length > input.length - from || length > output.length - to) failSnappy();
      if (length >= bulkBytesMin) output.set(input.subarray(from, from + length), to);
      else {
        for (let at = 0; at < length; at += 1) output[to + at] = input[from + at] as number;
      }
      from += length;
    } else {
      let distance: number;
      if (kind === 1) {
        length = ((tag >> 2) & 7) + 4;
        distance = ((tag >> 5) << 8) | (input[from++] ?? failSnappy());
      } else {
        distance = (input[from++] ?? failSnappy()) | ((input[from++] ?? failSnappy()) << 8);
        if (kind === 3) {
          const upper = (input[from++] ?? failSnappy()) | ((input[from++] ?? failSnappy()) << 8);
          distance += upper * 2 ** 16;
        }
      }
      if (distance === 0 || distance > to || length > output.length - to) failSnappy();
      if (distance >= length && length >= bulkBytesMin) {
        output.copyWithin(to, to - distance, to - distance + length);
      } else {
        // The copy may reach into what it makes itself.
        for (let at = to; at < to + length; at += 1) output[at] = output[at - distance] as number;
      }
    }
    to += length;
  }
  if (to !== output.length) failSnappy();
  return output;
}

function failSnappy(): never {
  throw new Error('the Snappy block is damaged');
}

/**
 * What Parquet first called LZ4: blocks as Hadoop frames them, each behind its two lengths in big-endian
 * order, or one bare block. Which of both is only seen by trying.
 */
function lz4Hadoop(input: Uint8Array, bytes: number): Uint8Array {
  const view = new DataView(input.buffer, input.byteOffset, input.byteLength);
  const output = Buffer.allocUnsafeSlow(bytes);
  let from = 0;
  let to = 0;
  while (from + 8 <= input.byteLength) {
    const blockBytes = view.getUint32(from);
    const packedBytes = view.getUint32(from + 4);
    if (blockBytes > bytes - to || packedBytes > input.byteLength - from - 8) break;
    try {
      lz4Block(input.subarray(from + 8, from + 8 + packedBytes), output, to, to + blockBytes);
    } catch {
      break;
    }
    from += 8 + packedBytes;
    to += blockBytes;
  }
  if (from === input.byteLength && to === bytes) return output;
  return lz4Block(input, output, 0, bytes);
}

/** Decompresses a block to the bytes `start` to `end` of `output`, which it has to fill. */
function lz4Block(input: Uint8Array, output: Buffer, start: number, end: number): Uint8Array {
  let from = 0;
  let to = start;
  const longer = (length: number): number => {
    let sum = length;
    if (length !== 15) return sum;
    for (;;) {
      const byte = input[from++] ?? fail();
      sum += byte;
      if (byte !== 255) return sum;
    }
  };
  while (from < input.length) {
    const token = input[from++] ?? fail();
    const literals = longer(token >> 4);
    if (from + literals > input.length || to + literals > end) fail();
    output.set(input.subarray(from, from + literals), to);
    from += literals;
    to += literals;
    if (from === input.length) break;
    const distance = (input[from++] ?? fail()) | ((input[from++] ?? fail()) << 8);
    const length = longer(token & 15) + 4;
    if (distance === 0 || distance > to - start || to + length > end) fail();
    if (distance >= length) output.copyWithin(to, to - distance, to - distance + length);
    else for (let at = 0; at < length; at += 1) output[to + at] = output[to + at - distance] ?? 0;
    to += length;
  }
  if (to !== end) fail();
  return output;
}

function fail(): never {
  throw new Error('the LZ4 block is damaged');
}
