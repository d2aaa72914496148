/**
 * Which files of a repository are the data, and of which split: the rules of `datasets`, as a function of
 * the list of files and of the card. Nothing is read or asked here.
 */
import { ArgumentRangeError, LoaderxError, show } from '../../errors.js';
import { type Card, type CardConfig, cardName, patternsOf, type SplitPatterns } from './card.js';
import { isData, isParquet, isWrappedParquet, kindOf } from './formats.js';
import { globOf, hasMagic } from './glob.js';
import { byCodePoint, isSplitName } from './names.js';

/** The data of one config. */
export interface DataFiles {
  readonly config: string;
  /** Parquet files by split, both in their order. No split is without a file. */
  readonly splits: ReadonlyMap<string, readonly string[]>;
}

/** What is chosen from. */
export interface Repository {
  /** What messages call it. */
  readonly name: string;
  /** All files of the commit. */
  readonly paths: readonly string[];
  readonly card: Card;
}

/**
 * The data files of a config, or of the default one.
 *
 * @throws ArgumentRangeError INVALID_ARGUMENT with `field` config where that config is not there, or none
 *   is given and several are; LoaderxError NOT_FOUND where it has no data files, UNSUPPORTED where they are
 *   not Parquet, MALFORMED where the card cannot be followed
 */
export function dataFilesOf(repository: Repository, config: string | undefined): DataFiles {
  const { name, card } = repository;
  if (card.configs.length === 0) {
    if (config !== undefined && config !== 'default') throw noConfig(name, config, ['default']);
    return { config: 'default', splits: layoutSplits(repository, '') };
  }
  const chosen = configOf(name, card.configs, config);
  const folder = folderOf(name, chosen);
  const patterns = patternsOf(name, chosen);
  const splits =
    patterns === undefined
      ? layoutSplits(repository, folder)
      : resolved(repository, folder, patterns, `config ${show(chosen.name)} of its card`);
  return { config: chosen.name, splits };
}

/**
 * The data files of the hub's own Parquet copy, `CONFIG/SPLIT/0000.parquet`.
 *
 * @param preferred the config that the repository's own card has for its default
 * @throws as {@link dataFilesOf}; UNSUPPORTED where the copy holds only a part of a split and
 *   `allowPartial` is false
 */
export function convertedFilesOf(
  repository: Pick<Repository, 'name' | 'paths'>,
  config: string | undefined,
  { preferred, allowPartial }: { preferred?: string | undefined; allowPartial: boolean },
): DataFiles {
  const { name, paths } = repository;
  const configs = new Map<string, Map<string, string[]>>();
  for (const path of [...paths].sort(byCodePoint)) {
    const [folder, split, file, ...rest] = path.split('/');
    if (folder === undefined || split === undefined || file === undefined) continue;
    if (rest.length > 0 || !isParquet(file)) continue;
    const splits = configs.get(folder) ?? new Map<string, string[]>();
    configs.set(folder, splits);
    splits.set(split, [...(splits.get(split) ?? []), path]);
  }
  const names = [...configs.keys()];
  const asked = config ?? defaultOf(names, preferred);
  const splits = asked === undefined ? undefined : configs.get(asked);
  if (asked === undefined || splits === undefined) throw noConfig(name, config, names);
  const partial = [...splits.keys()].find((split) => split.startsWith('partial-'));
  if (partial !== undefined && !allowPartial) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `${name}: the hub's Parquet copy holds only a part of split ${show(partial.slice('partial-'.length))} of config ${show(asked)}, so it is not the whole dataset; revision refs/convert/parquet gives what there is, as ${show(partial)}`,
      { path: name },
    );
  }
  const order = [...splits.keys()].sort(bySplit);
  return { config: asked, splits: new Map(order.map((split) => [split, splits.get(split) ?? []])) };
}

/** The config that is meant where none is given, or undefined where that is open. */
export function defaultConfigOf(card: Card): string | undefined {
  if (card.configs.length === 0) return undefined;
  return defaultsOf(card.configs)[0]?.name;
}

function defaultOf(names: readonly string[], preferred: string | undefined): string | undefined {
  if (preferred !== undefined && names.includes(preferred)) return preferred;
  if (names.length === 1) return names[0];
  return names.includes('default') ? 'default' : undefined;
}

function defaultsOf(configs: readonly CardConfig[]): readonly CardConfig[] {
  return configs.filter(
    ({ name, isDefault }) => configs.length === 1 || isDefault || name === 'default',
  );
}

function configOf(
  name: string,
  configs: readonly CardConfig[],
  config: string | undefined,
): CardConfig {
  const known = configs.map((one) => one.name);
  if (config !== undefined) {
    const found = configs.find((one) => one.name === config);
    if (found === undefined) throw noConfig(name, config, known);
    return found;
  }
  const [first, second] = defaultsOf(configs);
  if (second !== undefined) {
    throw new LoaderxError(
      'MALFORMED',
      `${name}: its card has two default configs, ${show(first?.name)} and ${show(second.name)}; give config`,
      { path: name, file: cardName },
    );
  }
  if (first === undefined) throw noConfig(name, undefined, known);
  return first;
}

function noConfig(
  name: string,
  config: string | undefined,
  known: readonly string[],
): ArgumentRangeError {
  const shown = known.slice(0, 20).map((one) => show(one));
  if (known.length > shown.length) shown.push(`… ${known.length} in all`);
  return new ArgumentRangeError(
    'config',
    config === undefined
      ? `${name} has several configs and no default: config must be one of ${shown.join(', ')}`
      : `${name} has no config ${show(config)}; it has ${shown.join(', ') || 'none'}`,
  );
}

/** A config's folder, with a slash behind it; empty for the whole repository. */
function folderOf(name: string, config: CardConfig): string {
  if (config.dataDir === undefined) return '';
  const folder = typeof config.dataDir === 'string' ? normalised(config.dataDir) : undefined;
  if (folder === undefined) {
    throw new LoaderxError(
      'MALFORMED',
      `${name}: config ${show(config.name)} of its card has the data_dir ${show(config.dataDir)}, which is no folder of the repository`,
      { path: name, file: cardName, field: 'data_dir' },
    );
  }
  return folder === '' ? '' : `${folder}/`;
}

/** Without `.` and empty parts; undefined where it leads out of the repository. */
function normalised(path: string): string | undefined {
  if (path.startsWith('/') || /^[A-Za-z][\w+.-]*:/.test(path) || path.includes('\\'))
    return undefined;
  const parts = path.split('/').filter((part) => part !== '' && part !== '.');
  return parts.includes('..') ? undefined : parts.join('/');
}

// ---- the usual layouts ----

const usualSplits = ['train', 'validation', 'test'] as const;

const wordsOfSplits = {
  train: ['train', 'training'],
  validation: ['validation', 'valid', 'dev', 'val'],
  test: ['test', 'testing', 'eval', 'evaluation'],
} as const;

/** What may stand beside a word that names a split. */
const between = '[-._ 0-9]';
const numberedTail = '-[0-9][0-9][0-9][0-9][0-9]-of-[0-9][0-9][0-9][0-9][0-9]*.*';

const byWord = (forms: (word: string) => readonly string[]): readonly SplitPatterns[] =>
  usualSplits.map((split) => ({ split, patterns: wordsOfSplits[split].flatMap(forms) }));

/** In this order: the first of which any file is there is taken for all. */
const layouts: readonly (readonly SplitPatterns[])[] = [
  [{ split: 'logs', patterns: ['**/*.eval'] }],
  [{ split: 'test', patterns: ['**/task.toml', '**/instruction.md'] }],
  byWord((word) => [
    `**/${word}/**`,
    `**/${word}${between}*/**`,
    `**/*${between}${word}/**`,
    `**/*${between}${word}${between}*/**`,
  ]),
  byWord((word) => [`**/${word}${between}*`, `**/*${between}${word}${between}*`]),
  [{ split: 'train', patterns: ['**'] }],
];

/** Train, validation and test first, then by name. */
function bySplit(left: string, right: string): number {
  const rank = (split: string): number => {
    const at = (usualSplits as readonly string[]).indexOf(split);
    return at < 0 ? usualSplits.length : at;
  };
  return rank(left) - rank(right) || byCodePoint(left, right);
}

function layoutSplits(
  repository: Repository,
  folder: string,
): ReadonlyMap<string, readonly string[]> {
  const { name, paths } = repository;
  const where = folder === '' ? 'the repository' : `the folder ${show(folder)}`;
  return resolved(repository, folder, layoutOf(name, paths, folder), where);
}

function layoutOf(
  name: string,
  paths: readonly string[],
  folder: string,
): readonly SplitPatterns[] {
  const numbered = matching(paths, folder, `data/*${numberedTail}`) ?? [];
  if (numbered.length > 0) {
    const splits = new Set(
      numbered.map((path) => {
        const base = path.slice(path.lastIndexOf('/') + 1);
        return /(.+)-[0-9]{5}-of-[0-9]{4}[0-9]*.*/s.exec(base)?.[1] ?? '';
      }),
    );
    for (const split of splits) {
      if (isSplitName(split)) continue;
      throw new LoaderxError(
        'UNSUPPORTED',
        `${name}: by the names of its files a split is called ${show(split)}; a name is letters, digits and _, in words joined by dots`,
        { path: name },
      );
    }
    return [...splits]
      .sort(bySplit)
      .map((split) => ({ split, patterns: [`data/${split}${numberedTail}`] }));
  }
  for (const layout of layouts) {
    const found = layout.filter(({ patterns }) =>
      patterns.some((pattern) => (matching(paths, folder, pattern) ?? []).length > 0),
    );
    if (found.length > 0) return found;
  }
  return [];
}

// ---- patterns to files ----

const ignoredNames = [
  cardName,
  'config.json',
  'dataset_info.json',
  'dataset_infos.json',
  'dummy_data.zip',
  'dataset_dict.json',
];

/** The files that a pattern means, sorted; undefined where it is no pattern. */
function matching(
  paths: readonly string[],
  folder: string,
  pattern: string,
): readonly string[] | undefined {
  const whole = `${folder}${pattern}`;
  // What a file is called is that file, whatever signs are in its name.
  if (paths.includes(whole)) return [whole];
  if (!hasMagic(pattern)) return [];
  // The folder is a name too, so it is not part of what is read as a pattern.
  const glob = globOf(pattern);
  if (glob === undefined) return undefined;
  const ignored = ignoredNames.filter((name) => name !== pattern.split('/').at(-1));
  return paths
    .filter((path) => path.startsWith(folder))
    .filter((path) => glob.matches(path.slice(folder.length)))
    .filter((path) => !ignored.includes(path.split('/').at(-1) ?? ''))
    .filter((path) => !isHidden(path, whole))
    .sort(byCodePoint);
}

/** Whether a part of the path is hidden (`.x`, folders `__x`) without the pattern saying so. */
function isHidden(path: string, pattern: string): boolean {
  const dotted = (text: string): number =>
    text.split('/').filter((part) => part.startsWith('.') && /[^.]/.test(part)).length;
  const special = (text: string): number =>
    text
      .split('/')
      .slice(0, -1)
      .filter((part) => part.startsWith('__')).length;
  return dotted(path) !== dotted(pattern) || special(path) !== special(pattern);
}

function resolved(
  { name, paths }: Repository,
  folder: string,
  splits: readonly SplitPatterns[],
  where: string,
): ReadonlyMap<string, readonly string[]> {
  const files = new Map<string, readonly string[]>();
  for (const { split, patterns } of splits) {
    const found = patterns.flatMap((pattern) => {
      const clean = normalised(pattern);
      const matched = clean === undefined ? undefined : matching(paths, folder, clean);
      if (matched === undefined) {
        throw new LoaderxError(
          'MALFORMED',
          `${name}: ${where} wants the files ${show(pattern)}, which is no pattern of files in the repository`,
          { path: name, file: cardName },
        );
      }
      if (matched.length === 0 && !hasMagic(pattern)) {
        throw new LoaderxError(
          'NOT_FOUND',
          `${name}: ${where} wants the file ${show(pattern)}, which is not there`,
          { path: name, file: pattern },
        );
      }
      return matched.filter(isData);
    });
    files.set(split, parquetOf(name, split, found));
  }
  const all = [...files.values()].flat();
  if (all.length === 0) {
    throw new LoaderxError(
      'NOT_FOUND',
      splits.length === 0
        ? `${name}: there are no data files in ${where}`
        : `${name}: there are no Parquet files for ${where}`,
      { path: name },
    );
  }
  const empty = [...files].find(([, found]) => found.length === 0)?.[0];
  if (empty !== undefined) {
    throw new LoaderxError(
      'NOT_FOUND',
      `${name}: there are no files of split ${show(empty)}, which ${where} has`,
      { path: name },
    );
  }
  return files;
}

/** The Parquet files among a split's, if that is what most of them are. */
function parquetOf(name: string, split: string, found: readonly string[]): readonly string[] {
  const kind = kindOf(found);
  if (kind !== undefined && kind !== '.parquet') {
    throw new LoaderxError(
      'UNSUPPORTED',
      `${name}: most data files of split ${show(split)} are ${kind}, and only Parquet is read here; revision refs/convert/parquet is the hub's Parquet copy, if it made one`,
      { path: name },
    );
  }
  const odd = found.find(isWrappedParquet);
  if (odd !== undefined) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `${name}: ${show(odd)} is a Parquet file in another wrapping, which is not read here`,
      { path: name, file: odd },
    );
  }
  return found.filter(isParquet);
}
