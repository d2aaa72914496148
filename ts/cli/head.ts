/** `npx loaderx head`: records as a person wants to see them. */
import { ArgumentRangeError, LoaderxError } from '../errors.js';
import { type HeadRecord, type HeadResult, headPieces, showArray } from '../inspect/head.js';
import { itemNumbers } from '../inspect/numbers.js';
import { pictureOf } from '../inspect/picture.js';
import { contactSheet } from '../inspect/png.js';
import type { NdArray } from '../ndarray.js';
import {
  type Command,
  choiceOf,
  exitCodes,
  isGiven,
  numberOf,
  textOf,
  UsageError,
} from './command.js';
import { writeOut } from './files.js';
import { formText } from './info.js';
import type { Terminal } from './terminal.js';
import { countText, grouped, plain, plainJson } from './text.js';

const kinds = ['auto', 'picture', 'text', 'numbers'] as const;

export const headCommand: Command = {
  name: 'head',
  summary: 'some records: pictures, text, numbers; or a contact sheet',
  usage: 'PATH [ID | FIRST-LAST]…',
  about: [
    'Shows the first records, or those of the ids. Pictures (uint8, [H, W], [H, W, C] or [C, H, W]',
    'with 1, 3 or 4 channels, 8 pixels or more each way) become blocks of colour on a terminal that',
    'has them, and letters elsewhere; bytes that are text become text; all else numbers in a grid.',
    'With --json the items themselves, at most 262,144 of a record: itemsLeftOut tells of more.',
  ],
  options: {
    count: {
      type: 'string',
      short: 'n',
      value: 'N',
      help: 'so many from the beginning; 5 unless given',
    },
    as: { type: 'string', value: 'KIND', help: 'auto (unless given), picture, text or numbers' },
    tokenizer: {
      type: 'string',
      value: 'P[:E]',
      help: 'show tokens as text, by a package or its export',
    },
    png: { type: 'string', value: 'FILE', help: 'write a contact sheet of the pictures instead' },
    columns: { type: 'string', value: 'N', help: 'pictures in a row of the sheet' },
    force: { type: 'boolean', help: 'write over FILE' },
  },
  examples: [
    ['head train/image', 'the first five'],
    ['head train/text 0 17 100-103', 'these six'],
    ['head train/image -n 100 --png sheet.png', 'a contact sheet of a hundred'],
  ],
  exits: [[0, 'shown']],
  run: async ([path, ...words], values, terminal) => {
    if (path === undefined) throw new UsageError('PATH is missing');
    const as = choiceOf(values, 'as', kinds) ?? 'auto';
    const count = numberOf(values, 'count');
    const columns = numberOf(values, 'columns');
    const png = textOf(values, 'png');
    const ids = words.flatMap(idsOf);
    const force = isGiven(values, 'force');
    if (png === undefined && (columns !== undefined || force)) {
      throw new UsageError(`--${force ? 'force' : 'columns'} is for --png, which is missing`);
    }
    if (png !== undefined && (as === 'text' || as === 'numbers')) {
      throw new UsageError(`--as ${as} and --png: a sheet is of pictures`);
    }
    const spec = textOf(values, 'tokenizer');
    if (spec !== undefined && png !== undefined) {
      throw new UsageError('--tokenizer and --png: a sheet is of pictures');
    }
    const decode = spec === undefined ? undefined : await decoderOf(spec);
    const pieces = headPieces(path, {
      ...(ids.length > 0 ? { ids } : {}),
      ...(count === undefined ? {} : { count }),
    });
    try {
      if (png !== undefined) {
        const arrays = await allOf(path, pieces, terminal);
        const sheet = contactSheet(arrays, columns === undefined ? {} : { columns });
        writeOut(png, sheet, force);
        if (terminal.json) terminal.answer({ path, file: png, records: arrays.length });
        else
          terminal.line(`${plain(png)}: ${countText(arrays.length, 'record')} of ${plain(path)}`);
        return exitCodes.done;
      }
      if (terminal.json) return await answer(path, pieces, terminal, decode);
      await showPieces(path, pieces, as, terminal, decode);
      return exitCodes.done;
    } finally {
      await pieces.return();
    }
  },
};

/** The text of a record of tokens. */
type Decode = (array: NdArray) => Promise<string>;

async function decoderOf(spec: string): Promise<Decode> {
  const { loadTokenizer } = await import('../importers/tokenizer.js');
  const tokenizer = await loadTokenizer(spec);
  if (tokenizer.decode === undefined) {
    throw new UsageError(`--tokenizer ${spec} has no decode, which makes text of tokens`);
  }
  return async (array) => {
    if (array.shape.length !== 1 || !/^u?int/.test(array.dtype)) {
      throw new UsageError(
        `--tokenizer is for lists of whole numbers, and records are ${array.dtype} of ${array.shape.length} dimensions`,
      );
    }
    return String(await tokenizer.decode?.(Array.from(array.data as Int32Array, Number)));
  };
}

type Pieces = AsyncGenerator<HeadResult, void, undefined>;

async function nextOf(
  path: string,
  pieces: Pieces,
  terminal: Terminal,
): Promise<HeadResult | undefined> {
  const { value, done } = await terminal.brief(`head ${plain(path)}`, pieces.next());
  return done === true ? undefined : value;
}

/** More bytes of pictures than fit on a sheet are not even read. */
const sheetBytesMax = 2 ** 30;

async function allOf(path: string, pieces: Pieces, terminal: Terminal): Promise<NdArray[]> {
  const arrays: NdArray[] = [];
  let bytes = 0;
  for (let piece = await nextOf(path, pieces, terminal); piece !== undefined; ) {
    for (const { array } of piece.records) {
      arrays.push(array);
      bytes += array.data.byteLength;
    }
    if (bytes > sheetBytesMax) {
      throw new ArgumentRangeError(
        'arrays',
        `${arrays.length} pictures of ${bytes} bytes are too large for a sheet: take fewer`,
        'TOO_LARGE',
      );
    }
    piece = await nextOf(path, pieces, terminal);
  }
  return arrays;
}

/** The answer in JSON, a record at a time: all of it need not fit into memory. */
async function answer(
  path: string,
  pieces: Pieces,
  terminal: Terminal,
  decode: Decode | undefined,
): Promise<number> {
  let piece = await nextOf(path, pieces, terminal);
  const facts = JSON.stringify(piece?.facts, undefined, 2).replaceAll('\n', '\n  ');
  terminal.line(plainJson(`{\n  "path": ${JSON.stringify(path)},\n  "facts": ${facts},`));
  let line = '  "records": [';
  let failure: LoaderxError | undefined;
  for (let isFirst = true; piece !== undefined; ) {
    for (const record of piece.records) {
      terminal.line(isFirst ? line : `${line},`);
      const text = decode === undefined ? {} : { text: await decode(record.array) };
      line = `    ${plainJson(JSON.stringify({ ...jsonOf(record), ...text }))}`;
      isFirst = false;
    }
    if (!(await terminal.isRead())) return exitCodes.done;
    try {
      piece = await nextOf(path, pieces, terminal);
    } catch (error) {
      if (!(error instanceof LoaderxError)) throw error;
      failure = error;
      break;
    }
  }
  terminal.line(line);
  terminal.line(failure === undefined ? '  ]' : '  ],');
  if (failure !== undefined) terminal.line(plainJson(`  "error": ${JSON.stringify(failure)}`));
  terminal.line('}');
  return failure === undefined ? exitCodes.done : exitCodes.failed;
}

async function showPieces(
  path: string,
  pieces: Pieces,
  as: (typeof kinds)[number],
  terminal: Terminal,
  decode: Decode | undefined,
): Promise<void> {
  let isTitled = false;
  for (let piece = await nextOf(path, pieces, terminal); piece !== undefined; ) {
    const { facts, records } = piece;
    // Before the first line: an array that is not what it is to be shown as is an error.
    const texts =
      decode === undefined
        ? textsOf(records, as, terminal)
        : await Promise.all(records.map(async ({ array }) => plain(await decode(array))));
    if (!isTitled) {
      const title = `${plain(path)}: ${countText(facts.records, 'record')}, ${formText(facts)}`;
      terminal.line(terminal.style('bold', title));
      isTitled = true;
    }
    showAll(records, texts, as, terminal);
    if (!(await terminal.isRead())) return;
    piece = await nextOf(path, pieces, terminal);
  }
}

const idsMax = 65_536;

function idsOf(word: string): number[] {
  const match = /^(\d{1,15})(?:-(\d{1,15}))?$/.exec(word);
  if (match === null) throw new UsageError(`${word} is no id, and no range FIRST-LAST`);
  const first = Number(match[1]);
  const last = match[2] === undefined ? first : Number(match[2]);
  if (last < first || last - first >= idsMax) {
    throw new UsageError(`${word} goes down, or is of more than ${idsMax} records`);
  }
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** Items of a record that JSON shows: a picture of 256 x 256 in colour has fewer. */
const jsonItemsMax = 262_144;

/** Items as JSON has them: bigints as texts, numbers that are none as texts too. */
function jsonOf({ id, array }: HeadRecord): object {
  const { dtype, shape } = array;
  const data = Array.from(itemNumbers(array, jsonItemsMax), (item) =>
    typeof item === 'bigint' || !Number.isFinite(item) ? String(item) : item,
  );
  const items = shape.reduce((product, size) => product * size, 1);
  const leftOut = Math.max(0, items - jsonItemsMax);
  return { id, dtype, shape, data, ...(leftOut === 0 ? {} : { itemsLeftOut: leftOut }) };
}

const gap = 3;

function columnsOf(terminal: Terminal): number {
  return Math.max(1, terminal.columns - 1);
}

function textsOf(
  records: readonly HeadRecord[],
  as: (typeof kinds)[number],
  terminal: Terminal,
): string[] {
  const { colours } = terminal;
  const columns = columnsOf(terminal);
  return records.map(({ array }) => showArray(array, { as, columns, colours }));
}

function showAll(
  records: readonly HeadRecord[],
  texts: readonly string[],
  as: (typeof kinds)[number],
  terminal: Terminal,
): void {
  const columns = columnsOf(terminal);
  const isPicture = ({ array }: HeadRecord): boolean =>
    (as === 'auto' && pictureOf(array) !== undefined) || as === 'picture';
  let row: Shown[] = [];
  let width = 0;
  for (const [index, record] of records.entries()) {
    const text = texts[index] ?? '';
    const title = `record ${grouped(record.id)}${shapeNote(record)}`;
    if (record.array.shape.length === 0) {
      terminal.line(`${terminal.style('dim', title)}  ${text}`);
      continue;
    }
    if (!isPicture(record)) {
      flush(row, terminal);
      row = [];
      width = 0;
      terminal.line();
      terminal.line(terminal.style('dim', title));
      for (const line of text.split('\n')) terminal.line(line);
      continue;
    }
    const lines = text.split('\n');
    const own = Math.max(title.length, ...lines.map(visibleLetters));
    if (width > 0 && width + gap + own > columns) {
      flush(row, terminal);
      row = [];
      width = 0;
    }
    row.push({ title, lines, width: own });
    width += (width > 0 ? gap : 0) + own;
  }
  flush(row, terminal);
}

interface Shown {
  readonly title: string;
  readonly lines: readonly string[];
  readonly width: number;
}

/** Pictures side by side. */
function flush(row: readonly Shown[], terminal: Terminal): void {
  if (row.length === 0) return;
  terminal.line();
  const height = Math.max(...row.map(({ lines }) => lines.length));
  const titles = row.map(({ title, width }) => title.padEnd(width));
  terminal.line(terminal.style('dim', titles.join(' '.repeat(gap)).trimEnd()));
  for (let at = 0; at < height; at += 1) {
    const parts = row.map(({ lines, width }) => {
      const line = lines[at] ?? '';
      return line + ' '.repeat(Math.max(0, width - visibleLetters(line)));
    });
    terminal.line(parts.join(' '.repeat(gap)).trimEnd());
  }
}

function visibleLetters(line: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: colours begin with one.
  return [...line.replace(/\u001b\[[\d;]*m/g, '')].length;
}

function shapeNote({ array }: HeadRecord): string {
  return array.shape.length === 0 ? '' : ` [${array.shape.join(', ')}]`;
}
