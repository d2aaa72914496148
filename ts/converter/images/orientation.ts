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

/** The tag's value; undefined where there is none. */
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
  for (let index = 0; index < count; index += 1) {
    const at = directory + 2 + index * entryBytes;
    if (at + entryBytes > bytes.byteLength) break;
    if (view.getUint16(at, little) !== tagOfOrientation) continue;
    const value = tagValue(view, at, little);
    if (value !== undefined) return value;
  }
  return undefined;
}

/** Bytes of one value, by the type's number. */
const valueBytes: Readonly<Record<number, number>> = {
  ...{ 1: 1, 2: 1, 3: 2, 4: 4, 5: 8, 6: 1, 7: 1, 8: 2 },
  ...{ 9: 4, 10: 8, 11: 4, 12: 8, 13: 4, 16: 8 },
};

/** The first value of an entry; 0 for types that count for nothing, undefined where none is there. */
function tagValue(view: DataView, at: number, little: boolean): number | undefined {
  const type = view.getUint16(at + 2, little);
  const bytes = (valueBytes[type] ?? 0) * view.getUint32(at + 4, little);
  if (bytes === 0) return undefined;
  // What is longer than its place lies elsewhere.
  const value = bytes <= 4 ? at + 8 : view.getUint32(at + 8, little);
  if (value + bytes > view.byteLength) return undefined;
  switch (type) {
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
