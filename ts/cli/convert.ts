/** `npx loaderx convert`: datasets of the Hugging Face hub, or of a folder, as containers. */
import type { ConvertOptions } from '../converter/convert.js';
import type { DatasetSplits } from '../converter/dataset.js';
import type { LongOptions } from '../inspect/progress.js';
import {
  assertCount,
  type Command,
  choiceOf,
  exitCodes,
  isGiven,
  listOf,
  numberOf,
  type OptionValues,
  partOf,
  textOf,
  UsageError,
} from './command.js';
import { bytesOf } from './files.js';
import { countText, plain } from './text.js';

const hubScheme = 'hf://';

export const convertCommand: Command = {
  name: 'convert',
  summary: 'a dataset of the Hugging Face hub, or a folder of Parquet files, as containers',
  usage: 'SOURCE TARGET --codec raw|zstd|zstd_dict',
  about: [
    'Makes one container of each column of each split: TARGET/SPLIT/COLUMN. SOURCE is hf://OWNER/NAME, a',
    'folder of Parquet files, or one such file. Numbers and fixed shapes become dense containers, lists',
    'ragged ones, pictures are decoded; every value is kept, and what cannot be is an error that names',
    'column and row. TARGET appears when it is complete or not at all. With --part many processes make it',
    'together, each a part of all rows; npx loaderx concat reads the parts as one.',
    'Files of the hub go through the same cache as those of Python, and HF_TOKEN, HF_HOME, HF_ENDPOINT',
    'and HF_HUB_OFFLINE mean the same.',
  ],
  options: {
    codec: { type: 'string', value: 'CODEC', help: 'raw, zstd or zstd_dict' },
    dict: { type: 'string', value: 'FILE', help: 'a dictionary for zstd_dict' },
    revision: { type: 'string', value: 'R', help: 'branch, tag or commit of the hub (main)' },
    config: { type: 'string', value: 'C', help: 'which of the dataset’s configurations' },
    split: { type: 'string', value: 'A,B', help: 'only these splits' },
    columns: { type: 'string', value: 'A,B', help: 'only these columns' },
    strings: { type: 'string', value: 'utf8', help: 'keep strings, as ragged bytes' },
    names: { type: 'string', value: 'any', help: 'names that other systems may not take, too' },
    shards: { type: 'string', value: 'N', help: 'data files of each container, 1 to 255 (4)' },
    integrity: { type: 'boolean', help: 'with integrity files' },
    part: {
      type: 'string',
      value: 'K/N',
      help: 'only part K of N, from 0: TARGET/part-0000K-of-0000N',
    },
    pictures: {
      type: 'string',
      value: 'ragged',
      help: 'pictures are ragged even if all are of one size',
    },
  },
  examples: [
    ['convert hf://ylecun/mnist mnist --codec zstd', 'all splits of a dataset'],
    ['convert hf://ylecun/mnist mnist --codec raw --split test --columns label', 'a part of it'],
    ['convert hf://OWNER/NAME out --codec zstd --revision v1.0 --config en', 'of a tag'],
    ['convert parquet/ out --codec zstd --strings utf8', 'a folder of Parquet files'],
    [
      'convert parquet/ out --codec zstd --strings utf8 --part 3/4',
      'the last of 4 parts, by itself',
    ],
  ],
  exits: [[0, 'TARGET is complete']],
  run: async (positionals, values, terminal) => {
    assertCount(positionals, 2, 2, 'SOURCE TARGET');
    const [source = '', target = ''] = positionals;
    const settings = settingsOf(values);
    // What it takes to read Parquet is loaded for this command alone.
    const { conversion } = await import('../converter/convert.js');
    const result = await terminal.long(`convert ${plain(source)}`, async (options) => {
      const { signal, onProgress } = options;
      const dataset = await sourceOf(source, values, options);
      return conversion(dataset, target, {
        ...settings,
        ...(signal === undefined ? {} : { signal }),
        ...(onProgress === undefined ? {} : { onProgress }),
      });
    });
    if (terminal.json) {
      terminal.answer(result);
      return exitCodes.done;
    }
    const { columns } = result;
    const containers = countText(columns.length, 'container');
    const note = result.wasThere === true ? ', there already' : '';
    terminal.line(`${terminal.style('green', plain(result.path))}: ${containers}${note}`);
    for (const split of new Set(columns.map((each) => each.split))) {
      const members = columns.filter((each) => each.split === split);
      const names = members.map(({ column }) => plain(column)).join(', ');
      const records = countText(members[0]?.rowCount ?? 0, 'record');
      terminal.line(`  ${plain(split ?? '')}  ${records} of ${names}`);
    }
    return exitCodes.done;
  },
};

function settingsOf(values: OptionValues): ConvertOptions {
  const codec = choiceOf(values, 'codec', ['raw', 'zstd', 'zstd_dict']);
  if (codec === undefined) throw new UsageError('--codec is missing: there is no default');
  const dict = textOf(values, 'dict');
  const dataShards = numberOf(values, 'shards');
  const strings = choiceOf(values, 'strings', ['refuse', 'utf8']);
  const names = choiceOf(values, 'names', ['portable', 'any']);
  const columns = listOf(values, 'columns');
  const part = partOf(values);
  const pictures = choiceOf(values, 'pictures', ['ragged']);
  const splits = listOf(values, 'split');
  // `convert` judges whether a dictionary is wanted.
  const form = { codec, ...(dict === undefined ? {} : { dictBytes: bytesOf(dict) }) };
  return {
    ...(form as ConvertOptions),
    ...(dataShards === undefined ? {} : { dataShards }),
    ...(strings === undefined ? {} : { strings }),
    ...(names === undefined ? {} : { names }),
    ...(columns === undefined ? {} : { columns }),
    ...(splits === undefined ? {} : { splits }),
    ...(part === undefined ? {} : { part }),
    ...(pictures === undefined ? {} : { pictures }),
    integrity: isGiven(values, 'integrity'),
  };
}

async function sourceOf(
  source: string,
  values: OptionValues,
  { signal }: LongOptions,
): Promise<DatasetSplits> {
  const config = textOf(values, 'config');
  const revision = textOf(values, 'revision');
  if (!source.startsWith(hubScheme)) {
    if (config !== undefined || revision !== undefined) {
      throw new UsageError(`--config and --revision are of the hub, and ${source} is a folder`);
    }
    const { parquetFolder } = await import('../converter/parquet.js');
    return parquetFolder(source, { signal });
  }
  const { huggingface } = await import('../converter/hub.js');
  const splits = listOf(values, 'split');
  return huggingface(source.slice(hubScheme.length), { config, revision, splits, signal });
}
