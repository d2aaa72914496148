/** `npx loaderx concat`: the file of a set, by which several containers are read as one. */
import { makeSet } from '../inspect/set.js';
import { type Command, exitCodes, isGiven, textOf, UsageError } from './command.js';
import { countText, plain } from './text.js';

export const concatCommand: Command = {
  name: 'concat',
  summary: 'several containers as one: a small file that leads to them',
  usage: 'PART… -o SET.json',
  about: [
    'Writes SET.json, which every command and open() take for one container: the records of the first',
    'PART, then those of the second, … They are of one kind, dtype and shape; codecs, shards and dialects',
    'may differ. The file has their paths, lengths and logical digests; those of parts without an',
    'integrity file are computed, which reads them. Parts lie below the folder of SET.json. Of parts that',
    'are named part-00003-of-00064 all have to be there, in order.',
  ],
  options: {
    output: { type: 'string', short: 'o', value: 'SET.json', help: 'the file that is made' },
    durable: { type: 'boolean', help: 'on the disk when it is done' },
  },
  examples: [
    ['concat a backup/image -o both.json', 'the records of both; of parts of a conversion as well'],
  ],
  exits: [[0, 'SET.json is complete']],
  run: async (positionals, values, terminal) => {
    if (positionals.length === 0) throw new UsageError('PART is missing');
    const target = textOf(values, 'output');
    if (target === undefined) throw new UsageError('-o SET.json is missing');
    const durable = isGiven(values, 'durable');
    const result = await terminal.long(`concat ${plain(target)}`, (options) =>
      makeSet(positionals, target, { ...options, durable }),
    );
    if (terminal.json) {
      terminal.answer(result);
      return exitCodes.done;
    }
    const { records, parts } = result;
    const text = `${countText(records, 'record')} of ${countText(parts.length, 'part')}`;
    terminal.line(`${terminal.style('green', plain(target))}: ${text}`);
    return exitCodes.done;
  },
};
