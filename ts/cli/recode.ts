/** `npx loaderx recode`: the same records in another form. */
import { type MergeOptions, type RecodeResult, recode } from '../inspect/recode.js';
import {
  assertCount,
  type Command,
  choiceOf,
  exitCodes,
  isGiven,
  numberOf,
  type OptionValues,
  textOf,
  UsageError,
} from './command.js';
import { bytesOf } from './files.js';
import type { Terminal } from './terminal.js';
import { bytesText, countText, digits3, plain } from './text.js';

/** What recode and merge say of the container that they make, beside its codec and dictionary. */
export const formOptions: Command['options'] = {
  shards: { type: 'string', value: 'N', help: 'data files, 1 to 255' },
  dialect: { type: 'string', value: 'D', help: '2.4 or 2.8: which Python loaderx reads it' },
  integrity: { type: 'boolean', help: 'with an integrity file' },
  durable: { type: 'boolean', help: 'on the disk when it is done' },
};

type Form = Pick<MergeOptions, 'dictBytes' | 'dataShards' | 'dialect' | 'integrity' | 'durable'>;

/** What was said of it. A dictionary is read when the work begins. */
export function formOf(values: OptionValues): () => Form {
  const dict = textOf(values, 'dict');
  const dataShards = numberOf(values, 'shards');
  const dialect = choiceOf(values, 'dialect', ['2.4', '2.8']);
  return () => ({
    ...(dict === undefined ? {} : { dictBytes: bytesOf(dict) }),
    ...(dataShards === undefined ? {} : { dataShards }),
    ...(dialect === undefined ? {} : { dialect }),
    integrity: isGiven(values, 'integrity'),
    durable: isGiven(values, 'durable'),
  });
}

export const recodeCommand: Command = {
  name: 'recode',
  summary: 'the same records with another codec, dialect or number of shards',
  usage: 'SOURCE TARGET --codec raw|zstd|zstd_dict',
  about: [
    'Writes the records of SOURCE, in order, to a new container TARGET; their logical digests are equal.',
    'Memory stays bounded, and TARGET appears when it is complete or not at all. A dictionary is trained',
    'on SOURCE unless one is given. What is not said stays as it is at SOURCE.',
  ],
  options: {
    codec: { type: 'string', value: 'CODEC', help: 'raw, zstd or zstd_dict' },
    dict: {
      type: 'string',
      value: 'FILE',
      help: 'the dictionary for zstd_dict, as train-dict makes it',
    },
    ...formOptions,
  },
  examples: [
    ['recode train/text train/text-small --codec zstd_dict', 'smaller, with a dictionary'],
    ['recode a b --codec raw --shards 8 --integrity', 'fastest to read, and trusted'],
    ['recode a b --codec zstd --dialect 2.8', 'for Python loaderx 2.8'],
  ],
  exits: [[0, 'TARGET is complete']],
  run: async (positionals, values, terminal) => {
    assertCount(positionals, 2, 2, 'SOURCE TARGET');
    const [source = '', target = ''] = positionals;
    const codec = choiceOf(values, 'codec', ['raw', 'zstd', 'zstd_dict']);
    if (codec === undefined) throw new UsageError('--codec is missing: there is no default');
    const form = formOf(values);
    const result = await terminal.long(`recode ${plain(source)}`, (options) =>
      recode(source, target, { ...options, ...form(), codec }),
    );
    if (terminal.json) terminal.answer({ path: target, ...result });
    else for (const line of linesOf(source, target, result, terminal)) terminal.line(line);
    return exitCodes.done;
  },
};

/** What a new container came to, against what it was made of. */
export function linesOf(
  source: string,
  target: string,
  result: RecodeResult,
  terminal: Terminal,
): string[] {
  const { source: from, target: to, sourceBytes, targetBytes, itemBytes, dictBytes } = result;
  const ratio = targetBytes === 0 ? '' : `, ratio ${digits3(itemBytes / targetBytes)}`;
  const withDict = dictBytes === undefined ? '' : `, a dictionary of ${bytesText(dictBytes)}`;
  const form = (facts: typeof from, bytes: number): string =>
    `${facts.codec}, ${countText(facts.dataShards, 'shard')}, dialect ${facts.dialect}, ${bytesText(bytes)}`;
  return [
    `${terminal.style('green', plain(target))}: ${countText(to.records, 'record')} of ${plain(source)}`,
    `  from  ${form(from, sourceBytes)}`,
    `  to    ${form(to, targetBytes)}${ratio}${withDict}`,
  ];
}
