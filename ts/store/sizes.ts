/**
 * The doors of a reader that tell how large records are without reading them, and how large a batch may be.
 * Symbols, because they are for this package's own rooms.
 */

/** Names the method that tells records' payload bytes. */
export const payloadBytesOf = Symbol('loaderx.payloadBytesOf');

/** A reader with this door. */
export interface SizedReader {
  /** Bytes of each record's items, dimensions not counted. `ids` are below `length`. */
  [payloadBytesOf](ids: BigUint64Array): number[];
}

/** Names the property that tells the most bytes of a batch: `maxBatchBytes` of whoever opened the reader. */
export const batchBytesMaxOf = Symbol('loaderx.batchBytesMaxOf');

/** A reader with this door. */
export interface BoundedReader {
  readonly [batchBytesMaxOf]: number;
}
