/** CSV files, by csv-parse: quotes and line ends as RFC 4180 and spreadsheets have them. */
import { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { LoaderxError, show } from '../errors.js';
import { utf8Blocks } from './bytes.js';
import { type Cell, numberOf, Padded } from './cells.js';
import type { TableFile, TableRow } from './table.js';

const truths: ReadonlyMap<string, boolean> = new Map([
  ['true', true],
  ['false', false],
]);

/** What csv-parse says beside a record. */
interface Told {
  readonly record: readonly string[];
  readonly info: { readonly lines: number };
}

/** @param delimiter what stands between cells */
export function csvFile(path: string, delimiter: string): TableFile {
  return { name: path, rows: (signal, texts) => rows(path, delimiter, signal, texts) };
}

async function* rows(
  path: string,
  delimiter: string,
  signal: AbortSignal | undefined,
  texts: ReadonlySet<string> | undefined,
): AsyncGenerator<TableRow, void, undefined> {
  const file = Readable.from(utf8Blocks(path), { objectMode: false });
  const parser = parse({ delimiter, info: true, skip_empty_lines: true });
  file.on('error', (error) => parser.destroy(error));
  let names: readonly string[] | undefined;
  try {
    for await (const told of file.pipe(parser) as AsyncIterable<Told>) {
      signal?.throwIfAborted();
      const { record, info } = told;
      if (names === undefined) {
        names = headerOf(path, record);
        continue;
      }
      const cells = new Map<string, Cell>();
      for (const [index, name] of names.entries()) {
        const text = record[index] ?? '';
        cells.set(name, texts?.has(name) === true ? textOf(text) : cellOf(text, texts));
      }
      yield { line: info.lines, cells };
    }
  } catch (cause) {
    if (!(cause instanceof CsvError)) throw cause;
    throw new LoaderxError('MALFORMED', `${path}: ${cause.message}`, { path }, { cause });
  } finally {
    file.destroy();
    parser.destroy();
  }
}

function headerOf(path: string, record: readonly string[]): readonly string[] {
  const names = record.map((name) => name.trim());
  if (names.every((name) => numberOf(name) !== undefined)) {
    throw new LoaderxError(
      'SOURCE',
      `${path}: its first line has nothing but numbers, and the names of columns are wanted there`,
      { path },
    );
  }
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return names;
  throw new LoaderxError('SOURCE', `${path}: column ${show(twice)} is there twice`, {
    path,
    field: twice,
  });
}

function textOf(text: string): Cell {
  return text.trim() === '' ? null : text;
}

const padded = /^[+-]?0\d/;

/** @param texts undefined as long as it is not known which columns are text */
function cellOf(text: string, texts: ReadonlySet<string> | undefined): Cell {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  const number = numberOf(trimmed);
  if (number === undefined) return truths.get(trimmed.toLowerCase()) ?? text;
  return texts === undefined && padded.test(trimmed) ? new Padded(number, trimmed) : number;
}
