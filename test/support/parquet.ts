// Parquet files of one column of numbers that look like noise.
import { bytesOf } from './hub.js';
import { fileOfNumbers, rowsOfFile } from './parquet-file.mjs';

export { rowsOfFile };

/** A file of {@link rowsOfFile} numbers, others for each seed. */
export function numbersFile(seed: number): Uint8Array {
  return fileOfNumbers(bytesOf(rowsOfFile * 4, seed));
}
