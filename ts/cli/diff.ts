/** `npx loaderx diff`: whether two containers hold the same. */
import { type DiffReport, diff } from '../inspect/diff.js';
import { assertCount, type Command, exitCodes } from './command.js';
import { formText } from './info.js';
import type { Terminal } from './terminal.js';
import { countText, grouped, plain } from './text.js';

export const diffCommand: Command = {
  name: 'diff',
  summary: 'whether two containers hold the same records',
  usage: 'A B',
  about: [
    'Compares kind, dtype, shape and every record; codec, shards, dialect and dictionary do not matter.',
    'Tells the first record that differs and how many do. Of containers of different length the records',
    'that both have are compared.',
  ],
  options: {},
  examples: [['diff train/image backup/image', 'is the copy still the same?']],
  exits: [
    [0, 'they hold the same'],
    [1, 'they differ'],
  ],
  run: async (positionals, _, terminal) => {
    assertCount(positionals, 2, 2, 'A B');
    const [a = '', b = ''] = positionals;
    const report = await terminal.long('diff', (options) => diff(a, b, options));
    if (terminal.json) terminal.answer(report);
    else for (const line of linesOf(report, terminal)) terminal.line(line);
    return report.equal ? exitCodes.done : exitCodes.wrong;
  },
};

function linesOf(report: DiffReport, terminal: Terminal): string[] {
  if (report.equal) {
    return [
      `${terminal.style('green', 'equal')}: ${countText(report.compared, 'record')}, ${formText(report.a)}`,
    ];
  }
  const lines = report.facts.map(
    ({ fact, a, b }) =>
      `${terminal.style('red', 'differ')} in ${fact}: ${plain(a)} and ${plain(b)}`,
  );
  if (report.differing > 0) {
    lines.push(
      `${terminal.style('red', 'differ')} in ${grouped(report.differing)} of ${countText(report.compared, 'record')}`,
    );
  } else if (report.compared > 0) {
    lines.push(`the ${countText(report.compared, 'record')} that both have are equal`);
  }
  const { first } = report;
  if (first !== undefined) {
    const where = first.what === 'shape' ? 'shape' : `item [${(first.index ?? []).join(', ')}]`;
    lines.push(
      `first: record ${grouped(first.record)}, ${where}: ${plain(first.a)} and ${plain(first.b)}`,
    );
  }
  return lines;
}
