/** `npx loaderx merge`: several containers as one, copied. */
import { merge } from '../inspect/recode.js';
import { type Command, choiceOf, exitCodes, textOf, UsageError } from './command.js';
import { formOf, formOptions, linesOf } from './recode.js';
import { countText, plain } from './text.js';

export const mergeCommand: Command = {
  name: 'merge',
  summary: 'several containers as one, copied',
  usage: 'PART… -o TARGET',
  about: [
    'Writes the records of all parts, in order, to a new container TARGET. Its logical digest is that of',
    'a single build. A PART may be the file of a set. Memory stays bounded, and TARGET appears when it is',
    'complete or not at all. What is not said stays as it is at the parts: the codec where all have one,',
    'shards and dialect as at the first.',
  ],
  options: {
    output: { type: 'string', short: 'o', value: 'TARGET', help: 'the container that is made' },
    codec: { type: 'string', value: 'CODEC', help: 'raw, zstd or zstd_dict' },
    dict: { type: 'string', value: 'FILE', help: 'the dictionary for zstd_dict' },
    ...formOptions,
  },
  examples: [
    ['merge a backup/image -o both', 'two containers, or a set, as one'],
    ['merge a backup/image -o small --codec zstd --integrity', 'in another form'],
  ],
  exits: [[0, 'TARGET is complete']],
  run: async (positionals, values, terminal) => {
    if (positionals.length === 0) throw new UsageError('PART is missing');
    const target = textOf(values, 'output');
    if (target === undefined) throw new UsageError('-o TARGET is missing');
    const codec = choiceOf(values, 'codec', ['raw', 'zstd', 'zstd_dict']);
    const form = formOf(values);
    const result = await terminal.long(`merge ${plain(target)}`, (options) =>
      merge(positionals, target, {
        ...options,
        ...form(),
        ...(codec === undefined ? {} : { codec }),
      }),
    );
    const [first = '', ...others] = positionals;
    const source = others.length === 0 ? first : countText(positionals.length, 'part');
    if (terminal.json) terminal.answer({ path: target, ...result });
    else for (const line of linesOf(source, target, result, terminal)) terminal.line(line);
    return exitCodes.done;
  },
};
