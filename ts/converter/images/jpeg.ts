/**
 * JPEG's segments, up to the pixels.
 *
 * ```text
 * FFD8 | FF marker, length, body | … | FFC0 size and components | … | FFDA scan … | FFD9
 * ```
 */
import { damaged, notRead, type PictureFile } from './file.js';
import { orientationOf, startsWith } from './orientation.js';
import type { Mode } from './pixels.js';

const modes: Readonly<Record<number, Mode>> = { 1: 'L', 3: 'RGB', 4: 'CMYK' };

const xmpName = 'http://ns.adobe.com/xap/1.0/\0';

export function isJpeg(bytes: Uint8Array): boolean {
  return bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff;
}

interface Frame {
  readonly width: number;
  readonly height: number;
  readonly mode: Mode;
}

/** @throws LoaderxError MALFORMED, UNSUPPORTED */
export function readJpeg(bytes: Uint8Array): PictureFile & { readonly format: 'JPEG' } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const kept: Uint8Array[] = [bytes.subarray(0, 2)];
  const exif: Uint8Array[] = [];
  let xmp: Uint8Array | undefined;
  let frame: Frame | undefined;
  let at = 2;
  for (;;) {
    // What stands between segments is passed over, and any number of FF before a marker.
    while (at < bytes.byteLength && bytes[at] !== 0xff) at += 1;
    while (bytes[at + 1] === 0xff) at += 1;
    const marker = bytes[at + 1];
    if (marker === undefined) throw damaged('JPEG', 'it ends in its header');
    if (marker === 0xda) break;
    if (marker === 0 || (marker >= 0xd0 && marker <= 0xd7)) {
      at += 2;
      continue;
    }
    if (marker < 0xc0 || marker === 0xd8 || marker === 0xd9) {
      throw damaged('JPEG', `marker ${marker.toString(16)} stands in its header`);
    }
    if (at + 4 > bytes.byteLength) throw damaged('JPEG', 'it ends in its header');
    const end = at + 2 + view.getUint16(at + 2);
    if (end < at + 4 || end > bytes.byteLength) throw damaged('JPEG', 'it ends in its header');
    const body = bytes.subarray(at + 4, end);
    if (isFrame(marker)) frame ??= frameOf(marker, body);
    if (marker === 0xe1 && startsWith(body, 'Exif\0\0')) {
      exif.push(exif.length === 0 ? body : body.subarray(6));
    } else if (marker === 0xe1 && startsWith(body, xmpName)) xmp = body.subarray(xmpName.length);
    if (decides(marker)) kept.push(bytes.subarray(at, end));
    at = end;
  }
  if (frame === undefined) throw damaged('JPEG', 'it has no frame');
  kept.push(bytes.subarray(at));
  return {
    format: 'JPEG',
    ...frame,
    isKeyed: false,
    orientation: orientationOf({ exif: exif.length === 0 ? undefined : Buffer.concat(exif), xmp }),
    bare: () => Buffer.concat(kept),
  };
}

/** SOF0 to SOF15; C4, C8 and CC are something else. */
function isFrame(marker: number): boolean {
  return marker >= 0xc0 && marker <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(marker);
}

/** Whether the pixels depend on a segment: of APP0 to APP15 and comments, only JFIF's and Adobe's. */
function decides(marker: number): boolean {
  const isRemark = (marker >= 0xe0 && marker <= 0xef) || marker === 0xfe;
  return !isRemark || marker === 0xe0 || marker === 0xee;
}

function frameOf(marker: number, body: Uint8Array): Frame {
  const [precision, heightHigh, heightLow, widthHigh, widthLow, components] = body;
  if (components === undefined) throw damaged('JPEG', 'its frame is cut');
  if (marker >= 0xc9) throw notRead('arithmetic coded JPEG');
  if (marker > 0xc2) throw notRead(marker === 0xc3 ? 'lossless JPEG' : 'hierarchical JPEG');
  if (precision !== 8) throw notRead(`${precision}-bit JPEG`);
  const mode = modes[components];
  if (mode === undefined) throw notRead(`JPEG of ${components} components`);
  const height = ((heightHigh ?? 0) << 8) | (heightLow ?? 0);
  const width = ((widthHigh ?? 0) << 8) | (widthLow ?? 0);
  if (width === 0 || height === 0) throw damaged('JPEG', `it is ${width} by ${height} pixels`);
  return { width, height, mode };
}
