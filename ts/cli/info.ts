/** `npx loaderx info`: what containers are. */
import type { ContainerFacts } from '../inspect/facts.js';
import { type ContainerInfo, info } from '../inspect/info.js';
import { type Command, exitCodes, UsageError } from './command.js';
import { eachContainer, errorsOf } from './several.js';
import type { Terminal } from './terminal.js';
import { barsText, bytesText, countText, digits3, grouped, plain, tableLines } from './text.js';

export const infoCommand: Command = {
  name: 'info',
  summary: 'what a container is, and how large',
  usage: 'PATH…',
  about: [
    'Tells kind, dtype, shape, codec, shards, sizes, dictionary, integrity file, and which loaderx opens',
    'it; for ragged containers how long records are. Reads page and table, no record. A folder of',
    'containers becomes a table, and so do several paths; their record counts are compared.',
  ],
  options: {},
  examples: [
    ['info train/image', 'one container'],
    ['info train', 'every container in the folder: do they have as many records?'],
    ['info train/image --json', 'for a program'],
  ],
  exits: [[0, 'told, also where record counts differ']],
  run: async (positionals, _, terminal) => {
    if (positionals.length === 0) throw new UsageError('PATH is missing');
    const { results, failures } = await eachContainer(positionals, terminal, (path) =>
      terminal.long(`info ${plain(path)}`, (options) => info(path, options)),
    );
    const [first] = results;
    if (terminal.json) {
      terminal.answer({
        containers: results,
        ...comparedFact(results, failures.length),
        ...errorsOf(failures),
      });
    } else if (results.length === 1 && first !== undefined && failures.length === 0) {
      for (const line of detail(first, terminal)) terminal.line(line);
    } else if (results.length > 0) {
      for (const line of overviewOf(results, failures.length, terminal)) terminal.line(line);
    }
    return failures.length === 0 ? exitCodes.done : exitCodes.failed;
  },
};

/** `dense float32 [3, 8, 8]`, `ragged int32 of 1 dimension`. */
export function formText(facts: ContainerFacts): string {
  const shape =
    facts.kind === 'dense'
      ? shapeText(facts)
      : `of ${facts.ndim} dimension${facts.ndim === 1 ? '' : 's'}`;
  return `${facts.kind} ${plain(facts.dtype)} ${shape}`;
}

const sizesShown = 6;

/** Sizes, but not sixty of them. */
function shapeText({ itemShape = [] }: ContainerFacts): string {
  if (itemShape.length <= sizesShown) return `[${itemShape.join(', ')}]`;
  const ends = [...itemShape.slice(0, sizesShown - 2), '…', ...itemShape.slice(-1)];
  return `[${ends.join(', ')}] (${itemShape.length} dimensions)`;
}

function detail(one: ContainerInfo, terminal: Terminal): string[] {
  const { dict, lengths, ratio } = one;
  const dictText =
    dict === undefined
      ? undefined
      : `${countText(dict.bytes, 'byte')}${dict.id === undefined ? ', raw content' : `, id ${dict.id}`}`;
  const rows: (readonly [string, string | undefined])[] = [
    ['records', `${grouped(one.records)}, ${formText(one)}`],
    ...formRows(one),
    ['items', bytesText(one.logicalBytes)],
    [
      'stored',
      `${bytesText(one.storedBytes)}${ratio === undefined ? '' : `, ratio ${digits3(ratio)}`}`,
    ],
    ['on disk', `${bytesText(one.diskBytes)} in all files`],
    ['dictionary', dictText],
    ['lengths', lengths === undefined ? undefined : lengthText(lengths)],
    [
      '',
      lengths === undefined
        ? undefined
        : `${lengths.min} ${barsText(lengths.histogram)} ${lengths.max}`,
    ],
    ['integrity', integrityText(one)],
    ['opened by', one.openedBy.join(', ')],
  ];
  return [
    terminal.style('bold', plain(one.path)),
    ...rows.flatMap(([name, text]) =>
      text === undefined ? [] : [`  ${terminal.style('dim', name.padEnd(10))}  ${text}`],
    ),
  ];
}

/** How the records are stored: of a set a row for each form that its containers have. */
function formRows(one: ContainerInfo): (readonly [string, string])[] {
  const text = ({ codec, dataShards, dialect }: NonNullable<ContainerInfo['parts']>[number]) =>
    `${codec}, ${countText(dataShards, 'shard')}, dialect ${dialect}`;
  if (one.parts === undefined) return [['codec', text({ ...one, length: one.records })]];
  const forms = new Map<string, number>();
  for (const part of one.parts) forms.set(text(part), (forms.get(text(part)) ?? 0) + 1);
  return [
    ['parts', grouped(one.parts.length)],
    ...[...forms].map(([form, count], index): readonly [string, string] => [
      index === 0 ? 'codec' : '',
      forms.size === 1 ? form : `${form}: ${countText(count, 'part')}`,
    ]),
  ];
}

function lengthText(lengths: NonNullable<ContainerInfo['lengths']>): string {
  const { min, p10, p50, p90, max, mean } = lengths;
  const parts = [
    `min ${grouped(min)}`,
    `p10 ${grouped(p10)}`,
    `median ${grouped(p50)}`,
    `p90 ${grouped(p90)}`,
    `max ${grouped(max)}`,
    `mean ${digits3(mean)}`,
  ];
  return `${parts.join(', ')} items`;
}

function integrityText({ integrity, logicalDigest, parts }: ContainerInfo): string {
  if (parts !== undefined) {
    if (integrity === 'damaged') return 'the integrity.zr of a part is damaged';
    return integrity === 'present' ? 'integrity.zr in every part' : 'not in every part';
  }
  if (integrity === 'none') return 'no integrity.zr; npx loaderx digest makes one';
  if (integrity === 'damaged') return 'integrity.zr is damaged';
  return `integrity.zr, logical digest ${logicalDigest?.slice(0, 16)}…`;
}

function overviewOf(infos: readonly ContainerInfo[], failed: number, terminal: Terminal): string[] {
  const folder = commonFolder(infos.map(({ path }) => path));
  const titles = ['', 'kind', 'dtype', 'shape', 'codec', 'shards', 'records'];
  const rows = infos.map((one) => [
    plain(one.path.slice(folder.length)),
    one.kind,
    plain(one.dtype),
    one.kind === 'dense' ? shapeText(one) : `rank ${one.ndim}`,
    one.codec,
    String(one.dataShards),
    grouped(one.records),
    bytesText(one.logicalBytes),
    bytesText(one.diskBytes),
    one.ratio === undefined ? '–' : digits3(one.ratio),
    one.dialect,
    one.integrity === 'present' ? 'yes' : one.integrity === 'none' ? 'no' : one.integrity,
  ]);
  const [first = '', ...lines] = tableLines(
    [[...titles, 'items', 'on disk', 'ratio', 'dialect', 'integrity'], ...rows],
    new Set([5, 6, 7, 8, 9]),
  );
  return [
    ...(folder === '' ? [] : [terminal.style('bold', plain(folder))]),
    terminal.style('dim', first),
    ...lines,
    '',
    comparedText(infos, failed, terminal),
  ];
}

/** The folder that all paths are in, with its separator; empty where there is none. */
function commonFolder(paths: readonly string[]): string {
  const [first = ''] = paths;
  const folder = first.slice(0, first.lastIndexOf('/') + 1);
  return paths.every((path) => path.startsWith(folder)) ? folder : '';
}

function sameLength(infos: readonly ContainerInfo[]): boolean {
  return infos.every(({ records }) => records === infos[0]?.records);
}

/** Nothing is said of containers that could not be looked at, and nothing of none. */
function comparedFact(infos: readonly ContainerInfo[], failed: number): { sameLength?: boolean } {
  if (!sameLength(infos)) return { sameLength: false };
  return failed > 0 || infos.length === 0 ? {} : { sameLength: true };
}

function comparedText(infos: readonly ContainerInfo[], failed: number, terminal: Terminal): string {
  if (sameLength(infos)) {
    const records = countText(infos[0]?.records ?? 0, 'record');
    if (failed > 0) {
      const others = `${countText(failed, 'container')} could not be looked at`;
      return terminal.style('yellow', `${others}; the rest: ${records} each.`);
    }
    return terminal.style('green', `All have ${countText(infos[0]?.records ?? 0, 'record')}.`);
  }
  const counts = [...new Set(infos.map(({ records }) => records))].sort((a, b) => a - b);
  return terminal.style('yellow', `Record counts differ: ${counts.map(grouped).join(', ')}.`);
}
