/**
 * What a repository says of itself: the YAML block in front of README.md, and the two other files that
 * `datasets` reads (`.huggingface.yaml` in addition to it, `dataset_infos.json` of old repositories).
 */
import { parseDocument, type Tags } from 'yaml';
import { LoaderxError, show } from '../../errors.js';
import { isSplitName } from './names.js';

export const cardName = 'README.md';
export const cardAdditionName = '.huggingface.yaml';
export const oldInfosName = 'dataset_infos.json';

/** One entry of the card's `configs`, as it stands there. It is read where it is asked for. */
export interface CardConfig {
  readonly name: string;
  readonly isDefault: boolean;
  readonly dataFiles: unknown;
  readonly dataDir: unknown;
}

/** A card, in pieces. An empty one where the repository has none. */
export interface Card {
  readonly configs: readonly CardConfig[];
  /** The parsed `dataset_info` of each config that has one; `default` where none is named. */
  readonly infos: ReadonlyMap<string, Readonly<Record<string, unknown>>>;
}

/** The texts a card is made of, as far as they are there. */
export interface CardTexts {
  readonly card?: string | undefined;
  readonly addition?: string | undefined;
  readonly oldInfos?: string | undefined;
}

type Fields = Readonly<Record<string, unknown>>;

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** @throws LoaderxError MALFORMED with `file` where a text cannot be read as what it should be */
export function cardOf(repo: string, texts: CardTexts): Card {
  const wrong = (file: string, why: string, cause?: unknown): LoaderxError =>
    new LoaderxError('MALFORMED', `${repo}: ${file}: ${why}`, { path: repo, file }, { cause });

  const block = texts.card === undefined ? undefined : blockOf(texts.card);
  const said = block === undefined ? {} : yamlOf(block, (...why) => wrong(cardName, ...why));
  const added =
    texts.addition === undefined
      ? {}
      : yamlOf(texts.addition, (...why) => wrong(cardAdditionName, ...why));
  const all = { ...said, ...added };
  return {
    configs: configsOf(all.configs, (why) => wrong(cardName, why)),
    infos: new Map([
      ...oldInfosOf(texts.oldInfos, (...why) => wrong(oldInfosName, ...why)),
      ...infosOf(all.dataset_info),
    ]),
  };
}

type Wrong = (why: string, cause?: unknown) => LoaderxError;

/** What stands between the first two lines of three dashes, if the text begins with one. */
function blockOf(text: string): string | undefined {
  return /^\uFEFF?\s*---[\r\n]+([\S\s]*?)[\r\n]+---(?:\r\n|\n|$)/.exec(text)?.[1];
}

/** YAML 1.1 has `y` and `n` for booleans too. PyYAML has not, and columns are called so. */
function asPython(tag: Tags[number]): Tags[number] {
  if (typeof tag === 'string' || tag.tag !== 'tag:yaml.org,2002:bool') return tag;
  const { test } = tag;
  if (test === undefined) return tag;
  return { ...tag, test: new RegExp(`^(?![YyNn]$)(?:${test.source})`, test.flags) };
}

function yamlOf(text: string, wrong: Wrong): Fields {
  let value: unknown;
  try {
    // 1.1 is what Python reads. Aliases may not blow up a small text.
    const document = parseDocument(text, {
      version: '1.1',
      customTags: (tags) => tags.map(asPython),
      logLevel: 'silent',
    });
    const [error] = document.errors;
    if (error !== undefined) throw error;
    value = document.toJS({ maxAliasCount: 100 });
  } catch (cause) {
    const [line] = (cause as Error).message.split('\n');
    throw wrong(`its YAML cannot be read: ${line}`, cause);
  }
  if (value === null || value === undefined) return {};
  if (!isFields(value)) throw wrong('its YAML is not a list of fields');
  return value;
}

function configsOf(configs: unknown, wrong: Wrong): readonly CardConfig[] {
  if (!configs || (Array.isArray(configs) && configs.length === 0)) return [];
  if (!Array.isArray(configs)) throw wrong(`configs must be a list, got ${show(configs)}`);
  const byName = new Map<string, CardConfig>();
  for (const config of configs) {
    const name = isFields(config) ? config.config_name : undefined;
    if (!isFields(config) || (typeof name !== 'string' && typeof name !== 'number')) {
      throw wrong(`each of its configs needs a config_name, got ${show(config)}`);
    }
    byName.set(String(name), {
      name: String(name),
      isDefault: config.default === true,
      dataFiles: config.data_files ?? undefined,
      dataDir: config.data_dir ?? undefined,
    });
  }
  return [...byName.values()];
}

function infosOf(infos: unknown): readonly (readonly [string, Fields])[] {
  return (Array.isArray(infos) ? infos : [infos])
    .filter(isFields)
    .map((info) => [String(info.config_name ?? 'default'), info]);
}

function oldInfosOf(
  text: string | undefined,
  wrong: Wrong,
): readonly (readonly [string, Fields])[] {
  if (text === undefined) return [];
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw wrong('it is not JSON', cause);
  }
  if (!isFields(value)) throw wrong('it is not an object');
  const infos = Object.entries(value).filter((entry): entry is [string, Fields] =>
    isFields(entry[1]),
  );
  // The only config of an old repository is called owner--name there.
  const [only] = infos;
  return infos.length === 1 && only !== undefined ? [['default', only[1]]] : infos;
}

/** One split of a config's `data_files`: its name and its patterns. */
export interface SplitPatterns {
  readonly split: string;
  readonly patterns: readonly string[];
}

/**
 * Reads a config's `data_files`: a pattern, a list of patterns, or a list of `{split, path}`.
 *
 * @returns undefined where the config leaves files to the usual layouts
 */
export function patternsOf(repo: string, config: CardConfig): readonly SplitPatterns[] | undefined {
  const { dataFiles } = config;
  if (dataFiles === undefined) return undefined;
  const wrong = (why: string): LoaderxError =>
    new LoaderxError('MALFORMED', `${repo}: config ${show(config.name)} of the card: ${why}`, {
      path: repo,
      file: cardName,
      field: 'data_files',
    });
  if (typeof dataFiles === 'string') return [{ split: 'train', patterns: [dataFiles] }];
  if (!Array.isArray(dataFiles)) {
    throw wrong(
      `data_files must be a path, a list of paths, or a list of {split, path}, got ${show(dataFiles)}`,
    );
  }
  if (dataFiles.every((item) => typeof item === 'string')) {
    return [{ split: 'train', patterns: dataFiles }];
  }
  const splits = dataFiles.map((item: unknown): SplitPatterns => {
    const { split, path, ...rest } = isFields(item) ? item : { rest: item };
    const name = typeof split === 'number' ? String(split) : split;
    const patterns = typeof path === 'string' ? [path] : path;
    if (typeof name !== 'string' || Object.keys(rest).length > 0) {
      throw wrong(`each of data_files must be {split, path}, got ${show(item)}`);
    }
    if (!isSplitName(name)) {
      throw wrong(
        `a split is called ${show(name)}; a name is letters, digits and _, in words joined by dots, and not "all"`,
      );
    }
    if (!Array.isArray(patterns) || !patterns.every((one) => typeof one === 'string')) {
      throw wrong(`the path of split ${show(name)} must be a path or a list of paths`);
    }
    return { split: name, patterns };
  });
  const names = splits.map(({ split }) => split);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw wrong(`split ${show(twice)} is there twice`);
  return splits;
}
