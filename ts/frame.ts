/**
 * zstd frames that are no records, such as pages of other files, by the core's own decoder.
 */
import { fromNative } from './errors.js';
import { native } from './native/load.js';

/**
 * Decompresses what frames `source` holds, one after the other, into `target`, and nothing past its end.
 *
 * @param source at least one byte
 * @param target at least one byte
 * @returns how many bytes of `target` they fill
 * @throws LoaderxError CODEC for what is damaged, cut, or longer than the target; OUT_OF_MEMORY
 */
export function decompressFrame(source: Uint8Array, target: Uint8Array): number {
  try {
    return native().decompressFrame(source, target);
  } catch (error) {
    throw fromNative(error);
  }
}
