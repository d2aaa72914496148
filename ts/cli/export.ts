/** `npx loaderx export`: containers as files of others. */
import type { ExportResult } from '../exporters/npy.js';
import type { LongOptions } from '../inspect/progress.js';
import {
  assertCount,
  type Command,
  choiceOf,
  exitCodes,
  isGiven,
  type OptionValues,
  textOf,
  UsageError,
} from './command.js';
import { bytesText, countText, plain } from './text.js';

const kinds = ['npy', 'npz', 'parquet', 'png'] as const;
const compressions = ['gzip', 'none'] as const;
type Kind = (typeof kinds)[number];

export const exportCommand: Command = {
  name: 'export',
  summary: 'containers as files: .npy, .npz, Parquet, folders of PNG',
  usage: 'SOURCE TARGET',
  about: [
    'Writes a container, or those of a folder, to a file of the kind that its name tells. What import',
    'makes of that file has the same logical digests. The file appears when it is complete or not at',
    'all.',
    '.npy is for one dense container; .npz for any: a ragged one becomes two arrays, items and dims.',
    '.parquet is for containers of equal counts, each of which is a column: a value, lists of fixed',
    'lengths, or lists. png makes a folder with a file for each record.',
  ],
  options: {
    to: {
      type: 'string',
      value: 'KIND',
      help: 'npy, npz, parquet or png, if not by the name of TARGET',
    },
    compression: {
      type: 'string',
      value: 'C',
      help: 'of Parquet: gzip (unless given) or none',
    },
    labels: { type: 'string', value: 'PATH', help: 'put PNG into folders of these classes' },
    force: { type: 'boolean', help: 'write over TARGET' },
  },
  examples: [
    ['export train/image image.npy', 'one array'],
    ['export train train.npz', 'all containers of a folder'],
    ['export train train.parquet', 'all of them as the columns of a table'],
    ['export train/image pictures --to png', 'pictures/000000.png and so on'],
  ],
  exits: [[0, 'TARGET is complete']],
  run: async (positionals, values, terminal) => {
    assertCount(positionals, 2, 2, 'SOURCE TARGET');
    const [source = '', target = ''] = positionals;
    const kind = kindOf(values, target);
    const force = isGiven(values, 'force');
    const labels = textOf(values, 'labels');
    const compression = choiceOf(values, 'compression', compressions);
    if (kind !== 'parquet' && compression !== undefined) {
      throw new UsageError('--compression is for Parquet');
    }
    if (kind === 'png' && force) throw new UsageError('--force is for files, and png is a folder');
    if (kind !== 'png' && labels !== undefined) throw new UsageError('--labels is for --to png');
    const result = await terminal.long(`export ${plain(source)}`, (long) =>
      run(kind, source, target, { long, force, labels, compression }),
    );
    if (terminal.json) {
      terminal.answer(result);
      return exitCodes.done;
    }
    const { containers, itemBytes } = result;
    const records = countText(containers[0]?.records ?? 0, 'record');
    const names = containers.map(({ path }) => plain(path)).join(', ');
    terminal.line(
      `${terminal.style('green', plain(target))}: ${records} of ${names}, ${bytesText(itemBytes)} of items`,
    );
    return exitCodes.done;
  },
};

function kindOf(values: OptionValues, target: string): Kind {
  const said = choiceOf(values, 'to', kinds);
  if (said !== undefined) return said;
  const found = kinds.find((kind) => target.toLowerCase().endsWith(`.${kind}`));
  if (found !== undefined) return found;
  throw new UsageError(`${target} does not tell what it is to be: --to ${kinds.join(' or ')}`);
}

interface Settings {
  readonly long: LongOptions;
  readonly force: boolean;
  readonly labels: string | undefined;
  readonly compression: (typeof compressions)[number] | undefined;
}

async function run(
  kind: Kind,
  source: string,
  target: string,
  { long, force, labels, compression }: Settings,
): Promise<ExportResult> {
  if (kind === 'png') {
    const { exportPictures } = await import('../exporters/pictures.js');
    return exportPictures(source, target, { ...long, labels });
  }
  if (kind === 'parquet') {
    const { exportParquet } = await import('../exporters/parquet.js');
    return exportParquet(source, target, { ...long, force, compression });
  }
  const { exportNpy, exportNpz } = await import('../exporters/npy.js');
  const options = { ...long, force };
  return kind === 'npy' ? exportNpy(source, target, options) : exportNpz(source, target, options);
}
