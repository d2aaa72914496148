/**
 * What a loader asks of a reader, beyond what everybody can: the door between the two rooms.
 */

/** Names the door of a reader. It is a symbol because it is for this package's own rooms. */
export const streamOf = Symbol('loaderx.stream');

/** A reader as a loader sees it. */
export interface StreamSource<Batch> {
  /** Throws CLOSED once a close was asked for. */
  assertOpen(): void;
  /**
   * As `gather`, for ids that are known to be below `length` and that nobody changes before the
   * promise settles: they are neither checked nor copied.
   *
   * @param cancel element 0 becomes 1 to give up: the gather rejects with ABORTED then
   */
  gather(ids: BigUint64Array, cancel: Uint32Array): Promise<Batch>;
  /** Bytes of the items of a batch of these records. Reads no payloads. */
  batchBytes(ids: BigUint64Array): number;
}
