/**
 * PNG's chunks.
 *
 * ```text
 * signature | length "IHDR" size, depth, colour type, interlacing, CRC | … | IDAT … | … | IEND
 * ```
 *
 * All chunks are looked at, because how the picture lies may be said behind the pixels.
 */
import { crc32, inflateSync } from 'node:zlib';
import { LoaderxError } from '../../errors.js';
import { damaged, type PngFile } from './file.js';
import { orientationOf, startsWith } from './orientation.js';
import type { Mode } from './pixels.js';

const signature = Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a);
const headerBytes = 13;
/** Length, kind and CRC of a chunk. */
const frameBytes = 12;
/** As Pillow's MAX_TEXT_CHUNK. */
const textBytesMax = 2 ** 20;

/** Colour type and bits of a sample. */
const modes: Readonly<Record<string, Mode>> = {
  '0 1': '1',
  '0 2': 'L',
  '0 4': 'L',
  '0 8': 'L',
  '0 16': 'I;16',
  '2 8': 'RGB',
  '2 16': 'RGB;16',
  '3 1': 'P',
  '3 2': 'P',
  '3 4': 'P',
  '3 8': 'P',
  '4 8': 'LA',
  '4 16': 'LA;16',
  '6 8': 'RGBA',
  '6 16': 'RGBA;16',
};

export function isPng(bytes: Uint8Array): boolean {
  return signature.every((byte, index) => bytes[index] === byte);
}

interface Chunk {
  readonly kind: string;
  readonly body: Uint8Array;
  /** The chunk with its length and CRC. */
  readonly whole: Uint8Array;
}

/** @throws LoaderxError MALFORMED; TOO_LARGE for a text that inflates to more than 1 MiB */
export function readPng(bytes: Uint8Array): PngFile {
  const [header, ...chunks] = chunksOf(bytes);
  if (header?.kind !== 'IHDR' || header.body.byteLength !== headerBytes) {
    throw damaged('PNG', 'it does not begin with its header');
  }
  const facts = headerOf(header);
  const data = chunks.filter(({ kind }) => kind === 'IDAT');
  if (data.length === 0) throw damaged('PNG', 'it has no pixels');
  const palette = chunks.find(({ kind }) => kind === 'PLTE');
  if (palette !== undefined) assertCrc(palette);
  if (facts.mode === 'P' && palette === undefined) throw damaged('PNG', 'its palette is missing');
  return {
    format: 'PNG',
    ...facts,
    palette: facts.mode === 'P' ? palette?.body : undefined,
    isKeyed: chunks.some(({ kind }) => kind === 'tRNS'),
    orientation: orientationOf(remarksOf(chunks)),
    bare: () => Buffer.concat([signature, header.whole, ...data.map(({ whole }) => whole), end]),
    deflated: () => {
      for (const chunk of data) assertCrc(chunk);
      const [first] = data;
      return data.length === 1 && first !== undefined
        ? first.body
        : Buffer.concat(data.map(({ body }) => body));
    },
  };
}

/** An IEND chunk. */
const end = Uint8Array.of(0, 0, 0, 0, 0x49, 0x45, 0x4e, 0x44, 0xae, 0x42, 0x60, 0x82);

/** All chunks up to IEND. Once there are pixels, bytes that end too early are like an IEND. */
function chunksOf(bytes: Uint8Array): readonly Chunk[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const chunks: Chunk[] = [];
  let at = signature.byteLength;
  let hasPixels = false;
  for (;;) {
    const left = bytes.byteLength - at;
    const length = left < frameBytes ? 0 : view.getUint32(at);
    const kind = left < 8 ? '' : String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    if (left < frameBytes + length) {
      if (hasPixels && kind !== 'IDAT') return chunks;
      throw damaged('PNG', 'its bytes end too early');
    }
    if (kind === 'IEND') return chunks;
    if (!/^[A-Za-z]{4}$/.test(kind)) throw damaged('PNG', 'a chunk has no name');
    hasPixels ||= kind === 'IDAT';
    const next = at + frameBytes + length;
    chunks.push({
      kind,
      body: bytes.subarray(at + 8, next - 4),
      whole: bytes.subarray(at, next),
    });
    at = next;
  }
}

function assertCrc({ kind, body, whole }: Chunk): void {
  const said = new DataView(whole.buffer, whole.byteOffset + 8 + body.byteLength).getUint32(0);
  if (crc32(whole.subarray(4, 8 + body.byteLength)) === said) return;
  throw damaged('PNG', `the checksum of its ${kind} is wrong`);
}

type HeaderFacts = Pick<PngFile, 'width' | 'height' | 'mode' | 'bitDepth' | 'isInterlaced'>;

function headerOf(header: Chunk): HeaderFacts {
  assertCrc(header);
  const { body } = header;
  const view = new DataView(body.buffer, body.byteOffset);
  const width = view.getUint32(0);
  const height = view.getUint32(4);
  const [bitDepth = 0, colour = 0, compression, filter, interlace] = body.subarray(8);
  if (width === 0 || height === 0) throw damaged('PNG', `it is ${width} by ${height} pixels`);
  const mode = modes[`${colour} ${bitDepth}`];
  if (mode === undefined) {
    throw damaged('PNG', `there is no colour type ${colour} with ${bitDepth} bits`);
  }
  if (compression !== 0 || filter !== 0 || (interlace !== 0 && interlace !== 1)) {
    throw damaged('PNG', 'its compression, filter or interlacing is not of the format');
  }
  return { width, height, mode, bitDepth, isInterlaced: interlace === 1 };
}

function remarksOf(chunks: readonly Chunk[]): { exif?: Uint8Array; xmp?: Uint8Array } {
  let exif: Uint8Array | undefined;
  let profile: Uint8Array | undefined;
  let xmp: Uint8Array | undefined;
  for (const { kind, body } of chunks) {
    if (kind === 'eXIf') exif = body;
    else if (kind === 'iTXt' && startsWith(body, xmpKey)) xmp = internationalText(body);
    else if (kind === 'tEXt' && startsWith(body, profileKey)) {
      profile = body.subarray(profileKey.length);
    } else if (kind === 'zTXt' && startsWith(body, profileKey)) {
      profile = inflatedText(body.subarray(profileKey.length + 1));
    }
  }
  exif ??= profile === undefined ? undefined : bytesOfProfile(profile);
  return { ...(exif === undefined ? {} : { exif }), ...(xmp === undefined ? {} : { xmp }) };
}

const xmpKey = 'XML:com.adobe.xmp\0';
const profileKey = 'Raw profile type exif\0';

/** Keyword, flag and method of compression, language and translated keyword, text. */
function internationalText(body: Uint8Array): Uint8Array | undefined {
  const flags = xmpKey.length;
  const language = body.indexOf(0, flags + 2);
  const translated = language < 0 ? -1 : body.indexOf(0, language + 1);
  if (translated < 0) return undefined;
  const text = body.subarray(translated + 1);
  return body[flags] === 0 ? text : inflatedText(text);
}

function inflatedText(deflated: Uint8Array): Uint8Array | undefined {
  try {
    return inflateSync(deflated, { maxOutputLength: textBytesMax });
  } catch (cause) {
    if ((cause as { readonly code?: unknown }).code !== 'ERR_BUFFER_TOO_LARGE') return undefined;
    throw new LoaderxError(
      'TOO_LARGE',
      'the PNG picture has a text that inflates to more than 1 MiB',
      {},
      { cause },
    );
  }
}

/** ImageMagick's way: a line feed, the name, the length, and the bytes in hex. */
function bytesOfProfile(text: Uint8Array): Uint8Array {
  const lines = Buffer.from(text.buffer, text.byteOffset, text.byteLength)
    .toString('latin1')
    .split('\n');
  return Buffer.from(lines.slice(3).join(''), 'hex');
}
