/**
 * The door of a ragged reader that tells how large records are without reading them. A symbol, because
 * it is for this package's own rooms.
 */

/** Names the method that tells records' payload bytes. */
export const payloadBytesOf = Symbol('loaderx.payloadBytesOf');

/** A reader with this door. */
export interface SizedReader {
  /** Bytes of each record's items, dimensions not counted. `ids` are below `length`. */
  [payloadBytesOf](ids: BigUint64Array): number[];
}
