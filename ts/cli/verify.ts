/** `npx loaderx verify`: everything that can be wrong with containers. */
import { type VerifyFault, type VerifyReport, verify } from '../inspect/verify.js';
import { type Command, exitCodes, numberOf, UsageError } from './command.js';
import { eachContainer, errorsOf } from './several.js';
import type { Terminal } from './terminal.js';
import { bytesText, countText, grouped, plain } from './text.js';

const shownDefault = 20;

export const verifyCommand: Command = {
  name: 'verify',
  summary: 'everything that can be wrong with a container',
  usage: 'PATH…',
  about: [
    'Checks page, tails, files, dictionary and schema; all locations (inside their files, over one',
    'another, bytes that no record names); every record as it is stored, every frame and every ragged',
    "record's dimensions; and, where there is an integrity.zr, each byte that a reader uses against it.",
    'Names file, shard and record of each fault. A warning is something that readers do not mind.',
  ],
  options: {
    faults: {
      type: 'string',
      value: 'N',
      help: `show so many for each container; ${shownDefault} unless given`,
    },
  },
  examples: [
    ['verify train/image', 'one container'],
    ['verify train', 'every container in the folder'],
    ['verify train --json', 'for a program: up to 1000 faults of each'],
  ],
  exits: [
    [0, 'no fault; there may be warnings'],
    [1, 'faults were found'],
  ],
  run: async (positionals, values, terminal) => {
    if (positionals.length === 0) throw new UsageError('PATH is missing');
    const faultsShown = numberOf(values, 'faults');
    const { results, failures } = await eachContainer(positionals, terminal, async (path) => {
      const report = await terminal.long(`verify ${plain(path)}`, (options) =>
        verify(path, faultsShown === undefined ? options : { ...options, faultsMax: faultsShown }),
      );
      if (!terminal.json) {
        const lines = linesOf(report, faultsShown ?? shownDefault, terminal);
        for (const line of lines) terminal.line(line);
      }
      return report;
    });
    if (terminal.json) terminal.answer({ containers: results, ...errorsOf(failures) });
    if (failures.length > 0) return exitCodes.failed;
    return results.every(({ ok }) => ok) ? exitCodes.done : exitCodes.wrong;
  },
};

function linesOf(report: VerifyReport, shown: number, terminal: Terminal): string[] {
  const faults = report.faults.slice(0, shown);
  const lines = [`${verdict(report, terminal)}  ${plain(report.path)}  ${summary(report)}`];
  for (const fault of faults) {
    const where = `${partText(fault.part)}${placeText(fault)}`;
    lines.push(`  ${terminal.style('red', 'fault')}    ${where}${plain(fault.message)}`);
  }
  if (report.faultCount > faults.length) {
    lines.push(`  … and ${grouped(report.faultCount - faults.length)} more`);
  }
  for (const { part, file, bytes, message } of report.warnings.slice(0, shown)) {
    const where = `${partText(part)}${file}`;
    lines.push(`  ${terminal.style('yellow', 'warning')}  ${where}: ${grouped(bytes)} ${message}`);
  }
  if (report.warnings.length > shown) {
    lines.push(`  … and ${countText(report.warnings.length - shown, 'warning')} more`);
  }
  return lines;
}

/** Of a set: which of its containers. */
function partText(part: string | undefined): string {
  return part === undefined ? '' : `${plain(part)}: `;
}

function verdict(report: VerifyReport, terminal: Terminal): string {
  return report.ok ? terminal.style('green', 'ok    ') : terminal.style('red', 'FAULTY');
}

function summary(report: VerifyReport): string {
  const parts: string[] = [];
  if (report.parts !== undefined) parts.push(countText(report.parts.length, 'part'));
  if (report.records !== undefined) parts.push(countText(report.records, 'record'));
  if (report.storedBytes !== undefined) parts.push(bytesText(report.storedBytes));
  if (report.faultCount > 0) parts.push(countText(report.faultCount, 'fault'));
  if (report.integrity === 'checked')
    parts.push(report.ok ? 'every byte as integrity.zr says' : 'held against integrity.zr');
  else if (report.integrity === 'none') parts.push('no integrity.zr');
  else parts.push('integrity.zr cannot be used');
  return parts.join(', ');
}

/** `data_2.zr, record 6: ` or `meta.zr, shard 2, record 6: `. */
function placeText({ file, shard, record }: VerifyFault): string {
  const saysShard = file?.startsWith('data_') === true || shard === undefined;
  const parts = [
    file,
    saysShard ? undefined : `shard ${shard}`,
    record === undefined ? undefined : `record ${record}`,
  ].filter((part) => part !== undefined);
  return parts.length === 0 ? '' : `${parts.join(', ')}: `;
}
