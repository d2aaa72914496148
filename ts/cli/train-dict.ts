/** `npx loaderx train-dict`: a dictionary for records like those of a container. */
import { trainDict } from '../dict.js';
import { open } from '../store/open.js';
import { assertCount, type Command, exitCodes, isGiven, textOf, UsageError } from './command.js';
import { writeOut } from './files.js';
import { countText, plain } from './text.js';

export const trainDictCommand: Command = {
  name: 'train-dict',
  summary: 'a dictionary trained on a container',
  usage: 'SOURCE -o FILE',
  about: [
    'Trains a zstd dictionary on up to 4 MiB of records that are spread evenly over SOURCE, and writes it',
    'to FILE: at most 32 KiB. The same records give the same bytes, here and with Python loaderx. recode',
    '--dict FILE uses it; so does any program as dictBytes.',
  ],
  options: {
    output: { type: 'string', short: 'o', value: 'FILE', help: 'where to write it' },
    force: { type: 'boolean', help: 'write over FILE' },
  },
  examples: [['train-dict train/text -o text.dict', 'for containers of the same kind of text']],
  exits: [[0, 'FILE is written']],
  run: async (positionals, values, terminal) => {
    assertCount(positionals, 1, 1, 'SOURCE');
    const [source = ''] = positionals;
    const file = textOf(values, 'output');
    if (file === undefined) throw new UsageError('-o FILE is missing');
    const reader = open(source);
    try {
      const bytes = await terminal.brief(`train-dict ${plain(source)}`, trainDict(reader));
      writeOut(file, bytes, isGiven(values, 'force'));
      const id = new DataView(bytes.buffer, bytes.byteOffset).getUint32(4, true);
      if (terminal.json) terminal.answer({ file, bytes: bytes.byteLength, id, source });
      else {
        terminal.line(
          `${plain(file)}: ${countText(bytes.byteLength, 'byte')}, id ${id}, trained on ${plain(source)}`,
        );
      }
    } finally {
      await reader.close();
    }
    return exitCodes.done;
  },
};
