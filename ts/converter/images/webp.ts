/**
 * WebP's chunks.
 *
 * ```text
 * RIFF size WEBP | VP8 lossy            or  VP8L lossless
 *                | VP8X flags, canvas   then  ICCP, ANIM, ANMF …, ALPH, VP8 or VP8L, EXIF, XMP
 * ```
 */
import { damaged, notRead, type PictureFile } from './file.js';
import { orientationOf, startsWith } from './orientation.js';

export function isWebp(bytes: Uint8Array): boolean {
  return startsWith(bytes, 'RIFF') && startsWith(bytes, 'WEBP', 8);
}

const alphaFlag = 0x10;
const animationFlag = 0x02;

/** @throws LoaderxError MALFORMED, UNSUPPORTED */
export function readWebp(bytes: Uint8Array): PictureFile & { readonly format: 'WebP' } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks = chunksOf(bytes, view);
  const [first] = chunks;
  if (first === undefined) throw damaged('WebP', 'it has no chunk');
  const { width, height, hasAlpha } =
    first.kind === 'VP8X' ? extended(first.body, chunks) : single(first);
  if (width === 0 || height === 0) throw damaged('WebP', `it is ${width} by ${height} pixels`);
  const remark = (kind: string): Uint8Array | undefined =>
    first.kind === 'VP8X' ? chunks.find((chunk) => chunk.kind === kind)?.body : undefined;
  return {
    format: 'WebP',
    width,
    height,
    mode: hasAlpha ? 'RGBA' : 'RGB',
    isKeyed: false,
    orientation: orientationOf({ exif: remark('EXIF'), xmp: remark('XMP ') }),
    bare: () => bytes,
  };
}

interface Chunk {
  readonly kind: string;
  readonly body: Uint8Array;
}

function chunksOf(bytes: Uint8Array, view: DataView): readonly Chunk[] {
  const end = 8 + view.getUint32(4, true);
  if (end > bytes.byteLength) throw damaged('WebP', 'its bytes end too early');
  const chunks: Chunk[] = [];
  let at = 12;
  while (at + 8 <= end) {
    const kind = String.fromCharCode(...bytes.subarray(at, at + 4));
    const size = view.getUint32(at + 4, true);
    if (at + 8 + size > end) throw damaged('WebP', 'its bytes end too early');
    chunks.push({ kind, body: bytes.subarray(at + 8, at + 8 + size) });
    at += 8 + size + (size % 2);
  }
  return chunks;
}

interface Canvas {
  readonly width: number;
  readonly height: number;
  readonly hasAlpha: boolean;
}

function single({ kind, body }: Chunk): Canvas {
  if (kind === 'VP8L' && body[0] === 0x2f && body.byteLength >= 5) {
    const bits = new DataView(body.buffer, body.byteOffset).getUint32(1, true);
    return {
      width: (bits & 0x3fff) + 1,
      height: ((bits >>> 14) & 0x3fff) + 1,
      hasAlpha: ((bits >>> 28) & 1) === 1,
    };
  }
  if (kind === 'VP8 ' && body.byteLength >= 10 && startsWith(body, '\x9d\x01\x2a', 3)) {
    const sizes = new DataView(body.buffer, body.byteOffset);
    return {
      width: sizes.getUint16(6, true) & 0x3fff,
      height: sizes.getUint16(8, true) & 0x3fff,
      hasAlpha: false,
    };
  }
  throw damaged('WebP', 'its header is not one');
}

function extended(body: Uint8Array, chunks: readonly Chunk[]): Canvas {
  if (body.byteLength < 10) throw damaged('WebP', 'its header is cut');
  const flags = body[0] ?? 0;
  const width = uint24(body, 4) + 1;
  const height = uint24(body, 7) + 1;
  if ((flags & animationFlag) !== 0) {
    const frame = chunks.find(({ kind }) => kind === 'ANMF')?.body;
    if (frame === undefined || frame.byteLength < 16) throw damaged('WebP', 'it has no picture');
    const fills =
      uint24(frame, 0) === 0 &&
      uint24(frame, 3) === 0 &&
      uint24(frame, 6) + 1 === width &&
      uint24(frame, 9) + 1 === height;
    // What shows beside it is a matter of taste, and decoders differ.
    if (!fills) throw notRead('animated WebP whose first picture does not fill it');
    return { width, height, hasAlpha: (flags & alphaFlag) !== 0 };
  }
  const picture = chunks.find(({ kind }) => kind === 'VP8 ' || kind === 'VP8L');
  if (picture === undefined) throw damaged('WebP', 'it has no picture');
  const inner = single(picture);
  if (inner.width !== width || inner.height !== height) {
    // Whichever is larger counts for the limits; the decoder refuses the picture.
    return {
      width: Math.max(width, inner.width),
      height: Math.max(height, inner.height),
      hasAlpha: false,
    };
  }
  // Of a lossless picture only its own header counts.
  const hasAlpha =
    picture.kind === 'VP8L' ? inner.hasAlpha : chunks.some(({ kind }) => kind === 'ALPH');
  return { width, height, hasAlpha };
}

function uint24(bytes: Uint8Array, at: number): number {
  return (bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16);
}
