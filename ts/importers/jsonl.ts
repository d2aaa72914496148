/**
 * JSON lines: an object a line. `JSON.parse` makes doubles of all numbers; lines in which that could lose
 * something are parsed by lossless-json, which gives a number's text.
 */
import { parse } from 'lossless-json';
import { LoaderxError } from '../errors.js';
import { textLines } from './bytes.js';
import { type Cell, Decimal, numberOf } from './cells.js';
import type { TableFile, TableRow } from './table.js';

/** A point or an exponent, minus zero, or more digits than a double is sure to keep. */
const needsTexts = /\d[.eE]|-0|\d{16}/;

export function jsonLinesFile(path: string): TableFile {
  return { name: path, rows: (signal) => rows(path, signal) };
}

async function* rows(
  path: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<TableRow, void, undefined> {
  let line = 0;
  for await (const text of textLines(path)) {
    signal?.throwIfAborted();
    line += 1;
    if (text.trim() === '') continue;
    yield { line, cells: cellsOf(path, line, text) };
  }
}

function cellsOf(path: string, line: number, text: string): ReadonlyMap<string, Cell> {
  let value: unknown;
  try {
    value = needsTexts.test(text)
      ? parse(text, undefined, (number) => numberOf(number))
      : JSON.parse(text);
  } catch (cause) {
    const { message } = cause as Error;
    throw new LoaderxError(
      'MALFORMED',
      `${path}, line ${line}: it is no JSON: ${message}`,
      { path },
      { cause },
    );
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new LoaderxError('MALFORMED', `${path}, line ${line}: it is no object`, { path });
  }
  return new Map(Object.entries(value).map(([name, each]) => [name, cellOf(each, 0)]));
}

/** What is nested deeper is no record: a stack is not to be used up by what others wrote. */
const depthMax = 32;

function cellOf(value: unknown, depth: number): Cell {
  switch (typeof value) {
    case 'number':
    case 'bigint':
    case 'boolean':
    case 'string':
      return value;
    default:
  }
  if (value === null) return null;
  if (Array.isArray(value)) {
    if (depth === depthMax) return { unsupported: `a list of more than ${depthMax} levels` };
    return value.map((each) => cellOf(each, depth + 1));
  }
  return value instanceof Decimal ? value : { unsupported: 'an object' };
}
