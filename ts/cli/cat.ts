/** `npx loaderx cat`: a container to stdout, as a file of NumPy. */
import { npyBytes, npyFacts } from '../exporters/npy.js';
import { assertCount, type Command, exitCodes, UsageError } from './command.js';
import { plain } from './text.js';

export const catCommand: Command = {
  name: 'cat',
  summary: 'a dense container to stdout, as an .npy file',
  usage: 'PATH',
  about: [
    'Writes the records to stdout, byte for byte as np.save would: to a file, or a program in a pipe.',
    'A few MiB are in memory at one time. np.load seeks, and no pipe can: Python takes',
    'np.load(io.BytesIO(sys.stdin.buffer.read())). Ragged containers have no .npy form: npx loaderx',
    'export has others.',
  ],
  options: {},
  examples: [
    ['cat train/image', 'to a file with >, or to a program with |'],
    ['cat train/image --json', 'what it would be'],
  ],
  exits: [[0, 'written, or nobody reads on']],
  run: async (positionals, _values, terminal) => {
    assertCount(positionals, 1, 1, 'PATH');
    const [path = ''] = positionals;
    if (terminal.json) {
      terminal.answer({ path, ...npyFacts(path) });
      return exitCodes.done;
    }
    if (terminal.isTTY)
      throw new UsageError('stdout is a terminal: send it to a file or a program');
    await terminal.long(`cat ${plain(path)}`, async (options) => {
      for await (const bytes of npyBytes(path, options)) {
        if (!(await terminal.bytes(bytes))) return;
      }
    });
    return exitCodes.done;
  },
};
