/**
 * Some records, and records as a person wants to see them: pictures in blocks of colour, text as text,
 * everything else as numbers in a grid.
 */
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import { arrayParts, type NdArray } from '../ndarray.js';
import { openStore } from '../store/container.js';
import { knownFields } from '../store/fields.js';
import { type Ids, idArray } from '../store/ids.js';
import type { ContainerPath } from '../store/path.js';
import { idPieces } from '../store/walk.js';
import { type ContainerFacts, factsOf, readerOf } from './facts.js';
import { itemTexts } from './numbers.js';
import { type Colours, drawn, pictureOf, shrunk } from './picture.js';
import { plain } from './plain.js';
import { countOf } from './settings.js';

/** Which records. */
export interface HeadOptions {
  /** These, in this order; the first `count` unless given. */
  readonly ids?: Ids | undefined;
  /** How many from the beginning; 5 unless given. */
  readonly count?: number | undefined;
}

/** A record of {@link head}. */
export interface HeadRecord {
  /** 0 .. number of records - 1. */
  readonly id: number;
  /** The record: `itemShape`, or the shape of its own. */
  readonly array: NdArray;
}

/** What {@link head} gives. */
export interface HeadResult {
  /** The container. */
  readonly facts: ContainerFacts;
  /** In the order that was asked for. */
  readonly records: readonly HeadRecord[];
}

const countDefault = 5;
const countMax = 65_536;

/**
 * Some records of a container, each as an array of its own.
 *
 * @throws LoaderxError as `open` and `gather`; TypeError, RangeError for ids that are not there
 */
export async function head(path: ContainerPath, options?: HeadOptions): Promise<HeadResult> {
  const records: HeadRecord[] = [];
  let facts: ContainerFacts | undefined;
  for await (const piece of headPieces(path, options)) {
    facts = piece.facts;
    for (const record of piece.records) records.push(record);
  }
  // There is a piece also where there is no record.
  return { facts: facts as ContainerFacts, records };
}

/**
 * As {@link head}, a few records at a time: about 8 MiB of items, or one record that is larger. There is one
 * piece at the least.
 */
export async function* headPieces(
  path: ContainerPath,
  options?: HeadOptions,
): AsyncGenerator<HeadResult, void, undefined> {
  const fields = knownFields(options, ['ids', 'count']);
  const count = countOf(fields.count, 'count', countDefault, countMax);
  const opened = openStore(path);
  try {
    const reader = readerOf(opened);
    const facts = factsOf(opened);
    const first = Math.min(count, reader.length);
    const ids = idArray(fields.ids ?? Array.from({ length: first }, (_, id) => id), reader.length);
    for (const some of ids.length === 0 ? [ids] : idPieces(reader, ids)) {
      const batch = await reader.gather(some);
      const arrays = 'offsets' in batch ? batch.toArray() : rowsOf(batch.shape, batch);
      const records = arrays.map((array, index) => ({ id: Number(some[index]), array }));
      yield { facts, records };
    }
  } finally {
    await opened.handle.close();
  }
}

/** The records of a dense batch, as views. */
function rowsOf([count = 0, ...shape]: readonly number[], batch: NdArray): NdArray[] {
  const { dtype, data } = batch;
  const width = count === 0 ? 0 : data.length / count;
  return Array.from({ length: count }, (_, index) => ({
    dtype,
    shape,
    data: data.subarray(index * width, (index + 1) * width),
  }));
}

/** How an array is shown. */
export interface ShowOptions {
  /** Letters of a line; 80 unless given. */
  readonly columns?: number | undefined;
  /** What the terminal can show; no colours unless given. */
  readonly colours?: Colours | undefined;
  /** As what; `'auto'`, which looks at dtype, shape and content, unless given. */
  readonly as?: 'auto' | 'picture' | 'text' | 'numbers' | undefined;
}

const columnsDefault = 80;
/** Lines that a picture takes at the most. */
const pictureLines = 24;
const textLines = 12;

/** A text is judged by so many bytes: more than can be shown. */
const textBytesMax = 2 ** 20;

/**
 * An array in text, without a line break at the end. Long ones are shortened, which `…` shows: the work is
 * bounded by what is shown, and bytes are text if the first MiB of them is. What a terminal would obey
 * (controls, signs that turn the direction of writing) is U+FFFD in a text.
 *
 * @throws TypeError for `as: 'picture'` or `'text'` of an array that is none
 */
export function showArray(array: NdArray, options?: ShowOptions): string {
  const fields = knownFields(options, ['columns', 'colours', 'as']);
  arrayParts(array, 'array');
  const columns = countOf(fields.columns, 'columns', columnsDefault, 10_000);
  const { as = 'auto', colours = 'none' } = fields;
  if (as !== 'auto' && as !== 'picture' && as !== 'text' && as !== 'numbers') {
    throw new ArgumentTypeError(
      'as',
      `as must be 'auto', 'picture', 'text' or 'numbers', got ${show(as)}`,
    );
  }
  if (colours !== 'none' && colours !== '256' && colours !== 'true') {
    throw new ArgumentTypeError(
      'colours',
      `colours must be 'none', '256' or 'true', got ${show(colours)}`,
    );
  }
  const width = Math.max(1, columns);
  if (as === 'picture' || as === 'auto') {
    const picture = pictureOf(array, as === 'picture');
    if (picture !== undefined) {
      return drawn(shrunk(picture, width, pictureLines * 2), colours).join('\n');
    }
    if (as === 'picture') throw notThat(array, 'picture');
  }
  if (as === 'text' || as === 'auto') {
    const text = textOf(array);
    if (text !== undefined && (as === 'text' || text.length > 1)) {
      return wrapped(text, width, array.data.length > textBytesMax);
    }
    if (as === 'text') throw notThat(array, 'text');
  }
  return grid(array, width);
}

function notThat(array: NdArray, what: string): ArgumentRangeError {
  return new ArgumentRangeError(
    'array',
    `array is no ${what}: ${array.dtype} of shape [${array.shape.join(', ')}]`,
  );
}

/** One dimension of bytes that are UTF-8 without the controls of ASCII: the beginning of the text. */
function textOf(array: NdArray): string | undefined {
  if (array.dtype !== 'uint8' || array.shape.length !== 1) return undefined;
  const bytes = array.data as Uint8Array;
  const isCut = bytes.length > textBytesMax;
  try {
    // The end may cut a letter in two: that is no fault of the text.
    const decoder = new TextDecoder('utf-8', { fatal: true });
    const text = decoder.decode(bytes.subarray(0, textBytesMax), { stream: isCut });
    // biome-ignore lint/suspicious/noControlCharactersInRegex: it is they that are looked for.
    return /[\u0000-\u0008\u000b-\u001f\u007f]/.test(text) ? undefined : text;
  } catch {
    return undefined;
  }
}

function wrapped(text: string, width: number, hasMore: boolean): string {
  const shownMax = width * textLines;
  // A letter has two units at the most.
  const some = text.slice(0, 2 * (shownMax + 1));
  const letters = [...plain(some.replaceAll('\n', '⏎').replaceAll('\t', '⇥'))];
  const lines: string[] = [];
  for (let at = 0; at < letters.length && lines.length < textLines; at += width) {
    lines.push(letters.slice(at, at + width).join(''));
  }
  if (hasMore || letters.length > shownMax) {
    lines[textLines - 1] =
      `${letters.slice(width * (textLines - 1), width * textLines - 1).join('')}…`;
  }
  return lines.join('\n');
}

// ---- numbers ----

const rowsMax = 10;
const planesMax = 3;

/** Numbers in lines: the last two dimensions as a table, the others one table after the other. */
function grid(array: NdArray, width: number): string {
  const { shape } = array;
  const text = itemTexts(array);
  if (shape.includes(0)) return '(no items)';
  if (shape.length === 0) return text(0);
  if (shape.length === 1) return flow(shape[0] ?? 0, text, width);
  const columnCount = shape.at(-1) ?? 1;
  const rowCount = shape.at(-2) ?? 1;
  const outer = shape.slice(0, -2);
  const planes = outer.reduce((product, size) => product * size, 1);
  const lines: string[] = [];
  for (let plane = 0; plane < Math.min(planes, planesMax); plane += 1) {
    if (outer.length > 0) lines.push(`[${indexOf(plane, outer).join(', ')}, :, :]`);
    const first = plane * rowCount * columnCount;
    lines.push(...table(rowCount, columnCount, (index) => text(first + index), width));
  }
  if (planes > planesMax) lines.push(`… ${planes} of these`);
  return lines.join('\n');
}

function indexOf(plane: number, outer: readonly number[]): number[] {
  const index: number[] = [];
  let rest = plane;
  for (const size of [...outer].reverse()) {
    index.unshift(rest % size);
    rest = Math.floor(rest / size);
  }
  return index;
}

/** Items one after the other, all equally wide. */
function flow(count: number, text: (index: number) => string, width: number): string {
  const shownMax = 200;
  const texts = Array.from({ length: Math.min(count, shownMax) }, (_, index) => text(index));
  const itemWidth = Math.max(...texts.map((item) => item.length));
  const perLine = Math.max(1, Math.floor((width + 1) / (itemWidth + 1)));
  const fitting = Math.min(texts.length, perLine * rowsMax);
  const lines: string[] = [];
  for (let at = 0; at < fitting; at += perLine) {
    lines.push(
      texts
        .slice(at, Math.min(at + perLine, fitting))
        .map((item) => item.padStart(itemWidth))
        .join(' '),
    );
  }
  if (fitting < count) lines.push(`… ${count} in all`);
  return lines.join('\n');
}

/** Rows and columns, of which the middle is left out where there is no room. */
function table(
  rowCount: number,
  columnCount: number,
  text: (index: number) => string,
  width: number,
): string[] {
  const rows = some(rowCount, rowsMax);
  // A column takes two letters at the least.
  let columns = some(columnCount, Math.max(2, Math.floor((width + 1) / 2)));
  let cells: string[][] = [];
  let itemWidth = 1;
  for (;;) {
    cells = rows.map((row) =>
      columns.map((column) => (row < 0 || column < 0 ? '…' : text(row * columnCount + column))),
    );
    itemWidth = Math.max(...cells.flat().map((cell) => cell.length));
    const fitting = Math.max(2, Math.floor((width + 1) / (itemWidth + 1)));
    if (columns.length <= fitting) break;
    columns = some(columnCount, Math.min(fitting, columns.length - 1));
  }
  return cells.map((line) => line.map((cell) => cell.padStart(itemWidth)).join(' '));
}

/** Indices 0 .. count - 1; where there are too many the first and last ones with -1 between. */
function some(count: number, most: number): number[] {
  if (count <= most) return Array.from({ length: count }, (_, index) => index);
  const last = Math.max(0, Math.floor((most - 1) / 3));
  const first = Math.max(1, most - 1 - last);
  return [
    ...Array.from({ length: first }, (_, index) => index),
    -1,
    ...Array.from({ length: last }, (_, index) => count - last + index),
  ];
}
