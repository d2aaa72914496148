/**
 * Memory for batches.
 *
 * New memory is dear: the first touch of each page costs more than reading the records into it. So
 * disposing a batch gives its memory back, and the next batch of that size takes it. What is kept:
 *
 * - per thread, at most {@link keptCountMax} buffers of together {@link keptBytesMax}, and at most
 *   {@link keptPerSizeMax} of one size; when one more comes, the oldest are let go;
 * - nothing below {@link keptBytesMin}, which is cheaper to make than to find.
 *
 * Memory that is given back is first transferred to a new `ArrayBuffer`, so views that somebody
 * still holds become empty and can neither read nor change the next batch.
 *
 * Memory is handed out uninitialised: whoever takes it must fill it before a caller may see it, and
 * give it back or drop it when that fails.
 */
import { types } from 'node:util';
import { LoaderxError } from '../errors.js';
import { native } from '../native/load.js';

export const keptBytesMin = 16 * 1024;
export const keptBytesMax = 256 * 1024 * 1024;
export const keptCountMax = 16;
export const keptPerSizeMax = 4;

/** Oldest first. */
const kept: ArrayBuffer[] = [];
let keptBytes = 0;

/** From here on the pages of new memory are a good part of a gather's time. */
const largeBytesMin = 4 * 1024 * 1024;

/** Below this a zeroed buffer is made faster than one that is not. */
const zeroedBytesMax = 1024;

/** A buffer of exactly `bytes`, its content unspecified. Throws LoaderxError OUT_OF_MEMORY. */
export function take(bytes: number): ArrayBuffer {
  if (bytes >= keptBytesMin) {
    for (let index = kept.length - 1; index >= 0; index -= 1) {
      const buffer = kept[index];
      if (buffer?.byteLength === bytes) return remove(index);
    }
  }
  if (bytes <= zeroedBytesMax) return new ArrayBuffer(bytes);
  try {
    const buffer = Buffer.allocUnsafeSlow(bytes).buffer as ArrayBuffer;
    if (bytes >= largeBytesMin) native().preferLargePages(buffer);
    return buffer;
  } catch (cause) {
    throw new LoaderxError(
      'OUT_OF_MEMORY',
      `no memory for a batch of ${bytes} bytes`,
      {},
      { cause },
    );
  }
}

/**
 * The largest kept buffer of `bytesMin` to four times as many bytes; undefined when there is none.
 * For results whose size is known only while they are made.
 */
export function takeSpare(bytesMin: number): ArrayBuffer | undefined {
  let best = -1;
  let bestBytes = Math.max(bytesMin, 1) - 1;
  for (let index = 0; index < kept.length; index += 1) {
    const bytes = kept[index]?.byteLength ?? 0;
    if (bytes > bestBytes && bytes <= bytesMin * 4) {
      best = index;
      bestBytes = bytes;
    }
  }
  return best < 0 ? undefined : remove(best);
}

/** Takes memory back. Every view of `buffer` becomes empty. A detached buffer is ignored. */
export function give(buffer: ArrayBufferLike): void {
  const own = transferred(buffer);
  if (own !== undefined) keep(own);
}

/** Takes back memory that no caller has ever seen: nothing has to be made empty. */
export function keep(buffer: ArrayBuffer): void {
  const bytes = buffer.byteLength;
  if (bytes < keptBytesMin || bytes > keptBytesMax) return;
  if (kept.filter((other) => other.byteLength === bytes).length >= keptPerSizeMax) return;
  kept.push(buffer);
  keptBytes += bytes;
  while (keptBytes > keptBytesMax || kept.length > keptCountMax) remove(0);
}

/** All kept memory, which nobody else keeps then. */
export function takeAllKept(): ArrayBuffer[] {
  keptBytes = 0;
  return kept.splice(0);
}

/** Lets all kept memory go. */
export function dropKept(): void {
  kept.length = 0;
  keptBytes = 0;
}

/** The same memory under a new owner; undefined when it cannot be had: detached, shared, native. */
export function transferred(buffer: ArrayBufferLike): ArrayBuffer | undefined {
  if (!types.isArrayBuffer(buffer) || buffer.byteLength === 0) return undefined;
  if ((buffer as { readonly resizable?: boolean }).resizable === true) return undefined;
  try {
    const own = structuredClone(buffer, { transfer: [buffer] });
    // Node 20 copies what cannot be transferred, memory that an addon made, and says nothing.
    return buffer.byteLength === 0 ? own : undefined;
  } catch {
    return undefined;
  }
}

function remove(index: number): ArrayBuffer {
  const [buffer] = kept.splice(index, 1);
  if (buffer === undefined) throw new RangeError('no kept buffer there');
  keptBytes -= buffer.byteLength;
  return buffer;
}
