/** `npx loaderx head`: records as a person wants to see them. */
import fs from 'node:fs';
import { type HeadRecord, head, showArray } from '../inspect/head.js';
import { pictureOf } from '../inspect/picture.js';
import { contactSheet } from '../inspect/png.js';
import {
  type Command,
  choiceOf,
  exitCodes,
  fileError,
  isGiven,
  numberOf,
  textOf,
  UsageError,
} from './command.js';
import { formText } from './info.js';
import type { Terminal } from './terminal.js';
import { countText, grouped, plain } from './text.js';

const kinds = ['auto', 'picture', 'text', 'numbers'] as const;

export const headCommand: Command = {
  name: 'head',
  summary: 'some records: pictures, text, numbers; or a contact sheet',
  usage: 'PATH [ID | FIRST-LAST]…',
  about: [
    'Shows the first records, or those of the ids. Pictures (uint8, [H, W], [H, W, C] or [C, H, W]',
    'with 1, 3 or 4 channels, 8 pixels or more each way) become blocks of colour on a terminal that',
    'has them, and letters elsewhere; bytes that are text become text; all else numbers in a grid.',
  ],
  options: {
    count: {
      type: 'string',
      short: 'n',
      value: 'N',
      help: 'so many from the beginning; 5 unless given',
    },
    as: { type: 'string', value: 'KIND', help: 'auto (unless given), picture, text or numbers' },
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
    const { facts, records } = await terminal.brief(
      `head ${plain(path)}`,
      head(path, {
        ...(ids.length > 0 ? { ids } : {}),
        ...(count === undefined ? {} : { count }),
      }),
    );
    if (png !== undefined) {
      const sheet = contactSheet(
        records.map(({ array }) => array),
        columns === undefined ? {} : { columns },
      );
      write(png, sheet, isGiven(values, 'force'));
      if (terminal.json) terminal.answer({ path, file: png, records: records.length });
      else terminal.line(`${plain(png)}: ${countText(records.length, 'record')} of ${plain(path)}`);
    } else if (terminal.json) {
      terminal.answer({ path, facts, records: records.map(jsonOf) });
    } else {
      // Before the first line: an array that is not what it is to be shown as is an error.
      const texts = textsOf(records, as, terminal);
      const title = `${plain(path)}: ${countText(facts.records, 'record')}, ${formText(facts)}`;
      terminal.line(terminal.style('bold', title));
      showAll(records, texts, as, terminal);
    }
    return exitCodes.done;
  },
};

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

function write(file: string, bytes: Uint8Array, force: boolean): void {
  try {
    fs.writeFileSync(file, bytes, { flag: force ? 'w' : 'wx' });
  } catch (error) {
    throw fileError(file, 'writing it', error);
  }
}

/** Items as JSON has them: bigints as texts, numbers that are none as texts too. */
function jsonOf({ id, array }: HeadRecord): object {
  const items = Array.from(array.data as ArrayLike<number | bigint>, (item) =>
    typeof item === 'bigint' || !Number.isFinite(item) ? String(item) : item,
  );
  return { id, dtype: array.dtype, shape: array.shape, data: items };
}

const gap = 3;

function columnsOf(terminal: Terminal): number {
  return Math.max(20, terminal.columns - 1);
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
