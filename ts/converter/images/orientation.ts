/**
 * How a picture lies, as the places say it that Pillow looks at: the EXIF tag, and where there is none,
 * XMP.
 */
import type { Orientation } from './pixels.js';

/** What a file says beside its pixels. */
export interface Remarks {
  /** A TIFF header and its directory, perhaps behind `Exif\0\0`. */
  readonly exif?: Uint8Array | undefined;
  readonly xmp?: Uint8Array | undefined;
}

const tagOfOrientation = 0x0112;
const entryBytes = 12;

/** What is unreadable says nothing: then the picture is taken as it lies. */
export function orientationOf({ exif, xmp }: Remarks): Orientation {
  const said = exif === undefined ? undefined : exifOrientation(exif);
  const value = said ?? (xmp === undefined ? undefined : xmpOrientation(xmp));
  return value !== undefined && Number.isInteger(value) && value >= 1 && value <= 8
    ? (value as Orientation)
    : 1;
}

/** The tag's value, 0 where it is of a type that counts for nothing; undefined where it is not there. */
function exifOrientation(exif: Uint8Array): number | undefined {
  let bytes = exif;
  for (let times = 0; times < 2 && startsWith(bytes, 'Exif\0\0'); times += 1) {
    bytes = bytes.subarray(6);
  }
  if (bytes.byteLength < 10) return undefined;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const little = startsWith(bytes, 'II');
  if (!little && !startsWith(bytes, 'MM')) return undefined;
  if (view.getUint16(2, little) !== 42) return undefined;
  const directory = view.getUint32(4, little);
  if (directory + 2 > bytes.byteLength) return undefined;
  const count = view.getUint16(directory, little);
  let found: number | undefined;
  for (let index = 0; index < count; index += 1) {
    const at = directory + 2 + index * entryBytes;
    if (at + entryBytes > bytes.byteLength) break;
    if (view.getUint16(at, little) !== tagOfOrientation) continue;
    found = tagValue(view, at, little);
  }
  return found;
}

function tagValue(view: DataView, at: number, little: boolean): number {
  const value = at + 8;
  switch (view.getUint16(at + 2, little)) {
    case 3:
      return view.getUint16(value, little);
    case 4:
    case 13:
      return view.getUint32(value, little);
    case 8:
      return view.getInt16(value, little);
    case 9:
      return view.getInt32(value, little);
    default:
      return 0;
  }
}

function xmpOrientation(xmp: Uint8Array): number | undefined {
  const text = Buffer.from(xmp.buffer, xmp.byteOffset, xmp.byteLength).toString('latin1');
  const digit = /tiff:Orientation(?:="|>)([0-9])/.exec(text)?.[1];
  return digit === undefined ? undefined : Number(digit);
}

/** Whether `bytes` begin with the ASCII characters of `text`. */
export function startsWith(bytes: Uint8Array, text: string, at = 0): boolean {
  if (bytes.byteLength < at + text.length) return false;
  for (let index = 0; index < text.length; index += 1) {
    if (bytes[at + index] !== text.charCodeAt(index)) return false;
  }
  return true;
}
