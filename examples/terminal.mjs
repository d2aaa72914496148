// @ts-check
// What the demo shows: a table, and pictures made of characters.

/**
 * @typedef {object} Column
 * @property {readonly [string, string]} title two lines
 * @property {number} width in characters; numbers stand at its right
 * @property {boolean} [isText] stands at its left
 */

/** Lines above a table's rows. @param {readonly Column[]} columns */
export function tableHead(columns) {
  const titles = [0, 1].map((line) =>
    tableRow(
      columns,
      columns.map(({ title }) => title[line] ?? ''),
    ),
  );
  return [...titles, columns.map(({ width }) => '-'.repeat(width)).join('  ')];
}

/** One row of a table. @param {readonly Column[]} columns @param {readonly string[]} cells */
export function tableRow(columns, cells) {
  return columns
    .map(({ width, isText }, column) => {
      const cell = cells[column] ?? '';
      return isText ? cell.padEnd(width) : cell.padStart(width);
    })
    .join('  ')
    .trimEnd();
}

/** 12345678 as 12,345,678. @param {number} value */
export const grouped = (value) => value.toLocaleString('en-US', { maximumFractionDigits: 0 });

/** Pixels along each side of a picture as it is shown: what the ink of an MNIST digit fits into. */
const shownSide = 20;
const gap = '   ';
const shades = ' .:-=+*#%@';

/**
 * Whether the stream is a terminal that shows grey. It is not where NO_COLOR is set.
 *
 * @param {NodeJS.WriteStream} stream
 */
export const showsGrey = (stream) => stream.isTTY === true && stream.hasColors(256);

/** How many pictures fit side by side. @param {number} columns of the terminal */
export const pictureCount = (columns) =>
  Math.max(1, Math.min(6, Math.floor((columns + gap.length) / (shownSide + gap.length))));

/**
 * Lines of pictures side by side, each with a line of text below.
 *
 * @param {readonly {pixels: Uint8Array, side: number, caption: string}[]} pictures
 * @param {boolean} grey half blocks in shades of grey; otherwise ASCII
 */
export function gallery(pictures, grey) {
  const drawn = pictures.map(({ pixels, side }) => {
    const cut = inkOnly(pixels, side);
    return grey ? halfBlocks(cut) : ascii(cut);
  });
  const lines = Array.from({ length: shownSide / 2 }, (_, row) =>
    drawn.map((picture) => picture[row]).join(gap),
  );
  const captions = pictures.map(({ caption }) => caption.padEnd(shownSide)).join(gap);
  return [...lines, captions].map((line) => line.trimEnd());
}

/**
 * The part of a picture around its ink, in the middle of `shownSide` × `shownSide` pixels.
 *
 * @param {Uint8Array} pixels
 * @param {number} side
 */
function inkOnly(pixels, side) {
  let [top, bottom, left, right] = [side, -1, side, -1];
  pixels.forEach((value, at) => {
    if (value === 0) return;
    const [row, column] = [Math.floor(at / side), at % side];
    top = Math.min(top, row);
    bottom = Math.max(bottom, row);
    left = Math.min(left, column);
    right = Math.max(right, column);
  });
  const rowShift = top - Math.floor((shownSide - (bottom - top + 1)) / 2);
  const columnShift = left - Math.floor((shownSide - (right - left + 1)) / 2);
  return (/** @type {number} */ row, /** @type {number} */ column) => {
    const [y, x] = [row + rowShift, column + columnShift];
    return y < 0 || y >= side || x < 0 || x >= side ? 0 : (pixels[y * side + x] ?? 0);
  };
}

/** A character is two pixels high: their mean. @param {(row: number, column: number) => number} at */
function ascii(at) {
  return lines((row, column) => {
    const mean = (at(row * 2, column) + at(row * 2 + 1, column)) / 2;
    return shades[Math.round((mean / 255) * (shades.length - 1))] ?? ' ';
  });
}

/** The upper pixel is the character, the lower one what is behind it. @param {(row: number, column: number) => number} at */
function halfBlocks(at) {
  const level = (/** @type {number} */ value) => 232 + Math.round((value / 255) * 23);
  return lines((row, column) => {
    const [upper, lower] = [at(row * 2, column), at(row * 2 + 1, column)];
    return `\x1b[38;5;${level(upper)};48;5;${level(lower)}m▀`;
  }).map((line) => `${line}\x1b[0m`);
}

/** @param {(row: number, column: number) => string} cell */
function lines(cell) {
  return Array.from({ length: shownSide / 2 }, (_, row) =>
    Array.from({ length: shownSide }, (_, column) => cell(row, column)).join(''),
  );
}
