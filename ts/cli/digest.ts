/** `npx loaderx digest`: integrity files, and what a container holds as one number. */
import { type DigestResult, digest } from '../inspect/digest.js';
import { type Command, exitCodes, isGiven, UsageError } from './command.js';
import { eachContainer, errorsOf } from './several.js';
import { countText, plain } from './text.js';

const notes: Readonly<Record<DigestResult['integrity'], string>> = {
  written: 'integrity.zr written',
  kept: 'as its integrity.zr says',
  none: 'nothing written',
};

/** What stands behind a digest. A set's file has no integrity file of its own: its parts have, or not. */
function noteOf({ integrity, parts }: DigestResult): string {
  if (parts === undefined) return notes[integrity];
  const { count, withIntegrity } = parts;
  const set = `a set of ${countText(count, 'part')}`;
  if (withIntegrity === count) return `${set}, each with integrity.zr`;
  const without =
    withIntegrity === 0 ? 'without integrity.zr' : `${count - withIntegrity} without integrity.zr`;
  return `${set}, ${without}: npx loaderx digest PART writes one`;
}

export const digestCommand: Command = {
  name: 'digest',
  summary: 'give a container an integrity file; what it holds as one number',
  usage: 'PATH…',
  about: [
    'Reads everything, prints the logical digest (SHA-256 over dtype, shapes and items: the same for',
    'every codec, number of shards and dialect), and puts integrity.zr into the container: checksums of',
    'all that a reader uses. Python loaderx opens the container as before. A container that has the file',
    'is verified against it instead, and keeps it.',
  ],
  options: {
    'dry-run': { type: 'boolean', help: 'only print the logical digest' },
    replace: { type: 'boolean', help: 'write a new file in place of one that does not fit' },
  },
  examples: [
    ['digest train/image', 'from now on verify and open(…, { verify }) find every changed byte'],
    ['digest --dry-run a b', 'do a and b hold the same?'],
  ],
  exits: [
    [0, 'every container has a file that fits, or it was a dry run'],
    [1, 'a container is not what its integrity.zr vouches for'],
  ],
  run: async (positionals, values, terminal) => {
    if (positionals.length === 0) throw new UsageError('PATH is missing');
    const asked = { dryRun: isGiven(values, 'dry-run'), replace: isGiven(values, 'replace') };
    const { results, failures } = await eachContainer(positionals, terminal, async (path) => {
      const result = await terminal.long(`digest ${plain(path)}`, (options) =>
        digest(path, { ...options, ...asked }),
      );
      if (!terminal.json) {
        terminal.line(`${result.logicalDigest}  ${plain(result.path)}  ${noteOf(result)}`);
      }
      return result;
    });
    if (terminal.json) terminal.answer({ containers: results, ...errorsOf(failures) });
    if (failures.some(({ code }) => code !== 'INTEGRITY')) return exitCodes.failed;
    return failures.length === 0 ? exitCodes.done : exitCodes.wrong;
  },
};
