/**
 * What is known of an encoded picture before any pixel of it is decoded: format, size, mode, how it lies.
 *
 * Each format's file gives one: from its own headers, never from a decoder, so that limits are held before
 * memory is taken, and so that a decoder's answer can be held against what the file says.
 */
import { LoaderxError } from '../../errors.js';
import type { Colours, Mode, Orientation } from './pixels.js';

export interface PictureFile extends Colours {
  readonly format: 'PNG' | 'JPEG' | 'WebP';
  /** As stored: a quarter turn swaps them. */
  readonly width: number;
  readonly height: number;
  readonly mode: Mode;
  readonly orientation: Orientation;
  /** The same picture without what does not concern the pixels: profiles, texts, thumbnails. */
  readonly bare: () => Uint8Array;
}

/** A PNG, whose scanlines can be decoded here. */
export interface PngFile extends PictureFile {
  readonly format: 'PNG';
  readonly bitDepth: number;
  readonly isInterlaced: boolean;
  /** The compressed scanlines: the bodies of the IDAT chunks, in one piece. */
  readonly deflated: () => Uint8Array;
}

export type AnyPictureFile = PngFile | (PictureFile & { readonly format: 'JPEG' | 'WebP' });

/** The bytes are not what they begin as. */
export function damaged(format: string, what: string, cause?: unknown): LoaderxError {
  return new LoaderxError(
    'MALFORMED',
    `the ${format} picture is damaged: ${what}`,
    {},
    cause === undefined ? {} : { cause },
  );
}

/** The bytes may well be good, and are not decoded here. */
export function notRead(what: string): LoaderxError {
  return new LoaderxError(
    'UNSUPPORTED',
    `${what} is not read: store PNG, JPEG or WebP pictures, or decode the column before`,
  );
}
