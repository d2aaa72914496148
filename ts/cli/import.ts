/** `npx loaderx import`: files as containers. */
import fs from 'node:fs';
import type { ImportedContainer, ImportResult, ReadOptions } from '../importers/import.js';
import {
  type Command,
  choiceOf,
  exitCodes,
  isGiven,
  listOf,
  numberOf,
  type OptionValues,
  textOf,
  UsageError,
} from './command.js';
import { bytesOf } from './files.js';
import { partIn, partOption } from './part.js';
import type { Terminal } from './terminal.js';
import { bytesText, countText, grouped, plain, tableLines } from './text.js';

export const importCommand: Command = {
  name: 'import',
  summary: 'files as containers: arrays, tables, pictures, text, tar archives',
  usage: '[NAME=]SOURCE… TARGET --codec raw|zstd|zstd_dict',
  about: [
    'Makes one container of each column: TARGET/COLUMN; a single array becomes TARGET itself. Several',
    'sources are columns of one data set: they have as many records, and appear together or not at all.',
    'NAME=SOURCE names the column of an array; otherwise the file does.',
    'Values are kept as they are, in C order and little-endian; what no record can hold is an error that',
    'names file, column and row. Memory stays bounded. A dictionary for zstd_dict is trained on the',
    'first records of each column.',
    'Tar archives, or a folder of them, are shards of one WebDataset. With --part many processes make',
    'it together; npx loaderx concat reads the parts as one.',
  ],
  options: {
    codec: { type: 'string', value: 'CODEC', help: 'raw, zstd or zstd_dict' },
    dict: { type: 'string', value: 'FILE', help: 'a dictionary for zstd_dict, for all columns' },
    shards: { type: 'string', value: 'N', help: 'data files of each container, 1 to 255 (4)' },
    integrity: { type: 'boolean', help: 'with integrity files' },
    'dry-run': { type: 'boolean', help: 'tell what would be made, and write nothing' },
    format: {
      type: 'string',
      value: 'F',
      help: 'npy, npz, csv, tsv, jsonl, parquet, images, text or webdataset; else by name',
    },
    tokenizer: {
      type: 'string',
      value: 'P[:E]',
      help: 'tokens of text, by a package or its export',
    },
    dtypes: {
      type: 'string',
      value: 'A=D,…',
      help: 'dtypes of columns of text files; * is all others',
    },
    strings: { type: 'string', value: 'utf8', help: 'keep text, as ragged bytes' },
    size: { type: 'string', value: 'HxW', help: 'resize pictures of a folder to this size' },
    layout: {
      type: 'string',
      value: 'L',
      help: 'of pictures of a size: HWC (unless given) or CHW',
    },
    mode: { type: 'string', value: 'M', help: 'L, RGB or RGBA: convert pictures to it' },
    columns: { type: 'string', value: 'A,B', help: 'only these columns' },
    names: { type: 'string', value: 'any', help: 'names that other systems may not take, too' },
    part: partOption,
    pictures: {
      type: 'string',
      value: 'ragged',
      help: 'pictures are ragged even if all are of one size',
    },
  },
  examples: [
    ['import pictures.npy pictures --codec raw', 'one array as one container'],
    ['import image=x.npy label=y.npy set --codec zstd', 'set/image and set/label'],
    ['import rows.csv rows --codec zstd --dtypes price=float32,*=int64', 'a table of numbers'],
    ['import notes.txt notes --codec zstd --tokenizer ./letters.mjs', 'a record of tokens a line'],
    ['import shards digits --codec zstd', 'a folder of tar archives: digits/png and so on'],
    ['import mnist.npz mnist --codec zstd --dry-run', 'what would become of each array'],
  ],
  exits: [[0, 'TARGET is complete, or what would be made is told']],
  run: async (positionals, values, terminal) => {
    const isDry = isGiven(values, 'dry-run');
    const target = positionals[positionals.length - 1];
    const words = positionals.slice(0, -1);
    if (target === undefined || words.length === 0) {
      throw new UsageError('SOURCE or TARGET is missing');
    }
    const codec = choiceOf(values, 'codec', ['raw', 'zstd', 'zstd_dict']);
    if (codec === undefined && !isDry) {
      throw new UsageError('--codec is missing: there is no default');
    }
    const sources = sourcesOf(words);
    const dict = textOf(values, 'dict');
    const dataShards = numberOf(values, 'shards');
    // What it takes to read files is loaded for this command alone.
    const { importFiles, surveyFiles } = await import('../importers/import.js');
    const result = await terminal.long(`import ${plain(words.join(' '))}`, (long) => {
      const options: ReadOptions = { ...readOptions(values, terminal), ...long };
      if (isDry || codec === undefined) return surveyFiles(sources, target, options);
      return importFiles(sources, target, {
        ...options,
        codec,
        ...(dict === undefined ? {} : { dictBytes: bytesOf(dict) }),
        ...(dataShards === undefined ? {} : { dataShards }),
        integrity: isGiven(values, 'integrity'),
      });
    });
    if (terminal.json) terminal.answer(isDry ? { dryRun: true, ...result } : result);
    else for (const line of linesOf(result, isDry, terminal)) terminal.line(line);
    return exitCodes.done;
  },
};

function readOptions(values: OptionValues, terminal: Terminal): ReadOptions {
  const format = textOf(values, 'format');
  const names = choiceOf(values, 'names', ['portable', 'any']);
  const columns = listOf(values, 'columns');
  const strings = choiceOf(values, 'strings', ['refuse', 'utf8']);
  const dtypes = listOf(values, 'dtypes')?.map((pair) => {
    const match = /^(.+)=([a-z0-9]+)$/s.exec(pair);
    if (match === null) throw new UsageError(`--dtypes wants COLUMN=DTYPE, got ${pair}`);
    return [match[1], match[2]];
  });
  const layout = choiceOf(values, 'layout', ['HWC', 'CHW']);
  const mode = textOf(values, 'mode');
  const tokenizer = textOf(values, 'tokenizer');
  const part = partIn(values, terminal);
  const pictures = choiceOf(values, 'pictures', ['ragged']);
  const size = sizeOf(textOf(values, 'size'));
  return {
    ...(size === undefined ? {} : { size }),
    ...(layout === undefined ? {} : { layout }),
    ...(mode === undefined ? {} : { mode: mode as NonNullable<ReadOptions['mode']> }),
    ...(tokenizer === undefined ? {} : { tokenizer }),
    // The importer says which there are.
    ...(format === undefined ? {} : { format: format as NonNullable<ReadOptions['format']> }),
    ...(strings === undefined ? {} : { strings }),
    ...(dtypes === undefined ? {} : { dtypes: Object.fromEntries(dtypes) }),
    ...(names === undefined ? {} : { names }),
    ...(columns === undefined ? {} : { columns }),
    ...(part === undefined ? {} : { part }),
    ...(pictures === undefined ? {} : { pictures }),
  };
}

function sizeOf(text: string | undefined): readonly [number, number] | undefined {
  if (text === undefined) return undefined;
  const match = /^(\d{1,5})(?:x(\d{1,5}))?$/.exec(text);
  if (match === null) throw new UsageError(`--size wants HEIGHTxWIDTH or one side, got ${text}`);
  return [Number(match[1]), Number(match[2] ?? match[1])];
}

/** A word is a path, or NAME=PATH where no file is called so. */
function sourcesOf(words: readonly string[]): readonly string[] | Readonly<Record<string, string>> {
  const pairs = words.map((word) => {
    const match = fs.existsSync(word) ? null : /^([^=/\\]+)=(.+)$/s.exec(word);
    return [match?.[1], match?.[2] ?? word] as const;
  });
  if (pairs.every(([name]) => name === undefined)) return words;
  const named: Record<string, string> = Object.create(null);
  for (const [name, file] of pairs) {
    if (name === undefined) {
      throw new UsageError(`${file} has no name, and others have: give all of them as NAME=SOURCE`);
    }
    if (name in named) throw new UsageError(`${name} is given twice`);
    named[name] = file;
  }
  return named;
}

function linesOf(
  { path: target, containers, isSingle, wasThere }: ImportResult,
  isDry: boolean,
  terminal: Terminal,
): string[] {
  const head = isDry
    ? `${plain(target)} would be made:`
    : `${terminal.style('green', plain(target))}: ${countText(containers.length, 'container')}${wasThere === true ? ', there already' : ''}`;
  const title = ['', 'kind', 'dtype', 'shape', 'records', 'items', isDry ? 'raw' : 'on disk'];
  const rows = containers.map((each) => [
    isSingle ? plain(target) : plain(each.column),
    each.kind,
    each.dtype,
    typeof each.shape === 'number' ? `rank ${each.shape}` : `[${each.shape.join(', ')}]`,
    grouped(each.records),
    bytesText(each.itemBytes),
    bytesText(each.diskBytes ?? rawBytesOf(each)),
  ]);
  const indent = (line: string): string => `  ${line}`.trimEnd();
  return [head, ...tableLines([title, ...rows], new Set([4, 5, 6])).map(indent)];
}

/** Of a container without compression: items, dimensions, an entry of 16 bytes for each record, a page. */
function rawBytesOf({ itemBytes, records, shape }: ImportedContainer): number {
  const dims = typeof shape === 'number' ? shape * 8 : 0;
  return itemBytes + records * (16 + dims) + 4096;
}
