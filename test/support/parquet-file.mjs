// @ts-check
// Parquet files as pyarrow 26 writes them: one required int32 column `x`, one page, nothing compressed and no
// statistics, so that only the numbers differ from file to file. The bytes around them were taken from a file
// of write_table(…, compression='NONE', use_dictionary=False, write_statistics=False, store_schema=False).

export const rowsOfFile = 20_000;

const front = '5041523115001580e2091580e2092c15c0b8021500150615061c000000';
const back =
  '1504192c35001806736368656d61150200150225001801780016c0b802191c191c26001c1502192506001918017815' +
  '0016c0b80216b2e20916b2e2092608491c15001500150200000016b2e20916c0b802260816b2e209002820706172' +
  '717565742d6370702d6172726f772076657273696f6e2032362e302e30191c1c0000008000000050415231';

/** A file of {@link rowsOfFile} numbers. @param {Uint8Array} numbers their bytes */
export function fileOfNumbers(numbers) {
  return Buffer.concat([Buffer.from(front, 'hex'), numbers, Buffer.from(back, 'hex')]);
}
