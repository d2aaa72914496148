/**
 * Datasets of a Hugging Face hub: from a repository's name to Parquet files on this machine.
 *
 * ```text
 * revision ──► commit ──► list of files ┐
 *                    └──► card ─────────┴► data files by split ──► cache ──► Dataset of each split
 * ```
 *
 * A revision is looked up once, and everything after that is of the commit it stood for. Nothing is asked
 * that the cache already knows: a commit's list and files never change.
 */
import fs from 'node:fs';
import os from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from '../errors.js';
import { signalOf } from '../signal.js';
import { knownFields } from '../store/fields.js';
import type { DatasetSplits, Features } from './dataset.js';
import { featuresOfCard, featuresOfMetadata } from './features.js';
import { HubCache } from './hub/cache.js';
import { type Card, cardAdditionName, cardName, cardOf, oldInfosName } from './hub/card.js';
import { HubClient, type HubFile } from './hub/client.js';
import {
  convertedFilesOf,
  type DataFiles,
  dataFilesOf,
  defaultConfigOf,
} from './hub/data-files.js';
import { isParquet } from './hub/formats.js';
import { type HubProgress, type Loading, loadFiles } from './hub/load.js';
import { assertSafePath, isCommit, repoOf, revisionOf } from './hub/names.js';
import { type HubSettings, type Surroundings, settingsOf } from './hub/settings.js';
import { Wire } from './hub/wire.js';
import { type ParquetLimits, parquetSplits } from './parquet.js';

export type { HubProgress, Surroundings };

/** What {@link huggingface} is told. */
export interface HubOptions {
  /** A branch, a tag, `refs/…` or a commit; `main` unless given. */
  readonly revision?: string | undefined;
  /** The dataset's config; its default one unless given. */
  readonly config?: string | undefined;
  /** Only these splits are loaded; all unless given. */
  readonly splits?: readonly string[] | undefined;
  /**
   * Who asks. Unless given: HF_TOKEN, or what Python's login left; null asks as nobody. It is sent to the
   * endpoint and to no other host, and stands in no message.
   */
  readonly token?: string | null | undefined;
  /** The hub's address. Unless given: HF_ENDPOINT, or the public hub. */
  readonly endpoint?: string | undefined;
  /** The folder of the cache. Unless given: HF_HUB_CACHE, or the folder `hub` of HF_HOME. */
  readonly cacheDir?: string | undefined;
  /** Ends the work: it rejects with ABORTED. What was loaded is kept. */
  readonly signal?: AbortSignal | undefined;
  /** Called now and then while files are loaded. What it throws ends the work. */
  readonly onProgress?: ((progress: HubProgress) => void) | undefined;
  /** What a Parquet file may ask for. */
  readonly limits?: ParquetLimits | undefined;
}

/** A dataset's files on this machine. */
export interface HubFiles {
  readonly repo: string;
  readonly revision: string;
  /** What the revision stood for. */
  readonly commit: string;
  /** The commit of the hub's Parquet copy, where the files are from there. */
  readonly parquetCommit?: string;
  readonly config: string;
  /** The config's `dataset_info` of the card, parsed. */
  readonly info?: Readonly<Record<string, unknown>>;
  /** By split, in order; `name` is the path in the repository. */
  readonly splits: ReadonlyMap<string, readonly { readonly path: string; readonly name: string }[]>;
}

const parquetRevision = 'refs/convert/parquet';
/** Cards of real datasets have some KiB, with thousands of configs a few MiB. */
const cardBytesMax = 32 * 1024 * 1024;

const optionNames = [
  ...['revision', 'config', 'splits', 'token', 'endpoint', 'cacheDir', 'signal', 'onProgress'],
  'limits',
] as const;

const thisProcess: Surroundings = {
  env: process.env,
  homeFolder: os.homedir(),
  platform: process.platform,
  wait: async (ms, signal) => {
    await sleep(ms, undefined, { signal });
  },
};

/**
 * A dataset of the hub: its Parquet files are loaded into the cache, which Python's client shares, and read
 * from there batch by batch.
 *
 * The revision is looked up once; all that is read is of the commit that it stood for, and `source` names
 * it. Data files are those that the repository's card names, else those of the usual layouts. Only for
 * revision `main`, and only if there is no Parquet file at all, they are those of the hub's own Parquet
 * copy, whose commit `source.parquetCommit` is. The package `@huggingface/hub` must be installed, except
 * offline.
 *
 * @param repo `owner/name`
 * @throws ArgumentTypeError, ArgumentRangeError INVALID_ARGUMENT for options that cannot be, with `field`
 *   config where the dataset has no such config, or several and no default; LoaderxError GATED,
 *   UNAUTHORIZED, NOT_FOUND, OFFLINE, RATE_LIMITED, NETWORK for what the hub does not give; MALFORMED for a
 *   card that cannot be followed, UNSUPPORTED for data that is not Parquet, paths that leave the cache, and
 *   a missing `@huggingface/hub`; IO with `path` and `osCode` for the disk of the cache; ABORTED; and as
 *   {@link parquetSplits}
 */
export function huggingface(repo: string, options?: HubOptions): Promise<DatasetSplits> {
  return hubDataset(repo, options, thisProcess);
}

/** {@link huggingface} with surroundings of its own. */
export async function hubDataset(
  repo: string,
  options: HubOptions | undefined,
  around: Surroundings,
): Promise<DatasetSplits> {
  const files = await hubFiles(repo, options, around);
  const { splits, info, revision, commit, parquetCommit, config } = files;
  const source = { name: repo, revision, commit, config };
  return parquetSplits(splits, {
    features: info === undefined ? undefined : featuresOf(info),
    limits: options?.limits,
    source: parquetCommit === undefined ? source : { ...source, parquetCommit },
    signal: options?.signal,
  });
}

/** A card has a list of them, `dataset_infos.json` an object as Parquet files have it. */
function featuresOf(info: Readonly<Record<string, unknown>>): Features | undefined {
  const { features } = info;
  const isList = Array.isArray(features) || features === undefined || features === null;
  return isList ? featuresOfCard(info) : featuresOfMetadata(JSON.stringify({ info: { features } }));
}

/**
 * Loads a dataset's Parquet files into the cache.
 *
 * @throws as {@link huggingface}
 */
export async function hubFiles(
  repo: string,
  options: HubOptions | undefined,
  around: Surroundings,
): Promise<HubFiles> {
  const fields = knownFields(options, optionNames);
  const asked = {
    repo: repoOf(repo),
    revision: fields.revision === undefined ? 'main' : revisionOf(fields.revision),
    config: textOf('config', fields.config),
    splits: splitsOf(fields.splits),
  };
  const settings = settingsOf(fields, around);
  const onProgress = progressOf(fields.onProgress);
  const stopping = new AbortController();
  const given = signalOf(fields.signal);
  const signal = given === undefined ? stopping.signal : AbortSignal.any([given, stopping.signal]);
  const repository = new Repository(asked.repo, settings, around, signal, () => stopping.abort());

  const commit = await repository.commitOf(asked.revision);
  const files = await repository.filesOf(commit, asked.revision);
  const card = await repository.cardOf(commit, files);
  const isCopyWanted = asked.revision === 'main' && !files.some(({ path }) => isParquet(path));
  const source = isCopyWanted
    ? await repository.copyOf(commit, card, asked.config)
    : { commit, files, data: repository.dataOf(asked.revision, files, card, asked.config) };

  const wanted = wantedOf(asked.repo, source.data, asked.splits);
  repository.assertAllParts([...wanted.values()].flat(), source.files);
  const byPath = new Map(source.files.map((file) => [file.path, file]));
  const chosen = [...wanted.values()].flat().map((path) => byPath.get(path) as Listed);
  const places = await repository.load(source.commit, chosen, onProgress);
  const placeOf = new Map(chosen.map(({ path }, index) => [path, places[index] ?? '']));
  const info = card.infos.get(source.data.config);
  return {
    repo: asked.repo,
    revision: asked.revision,
    commit,
    ...(isCopyWanted ? { parquetCommit: source.commit } : {}),
    config: source.data.config,
    ...(info === undefined ? {} : { info }),
    splits: new Map(
      [...wanted].map(([split, names]) => [
        split,
        names.map((name) => ({ name, path: placeOf.get(name) ?? '' })),
      ]),
    ),
  };
}

/** A file of a list; without an etag it was found in a snapshot whose list is not known. */
type Listed =
  | HubFile
  | { readonly path: string; readonly bytes: number; readonly etag?: undefined };

/** A dataset's repository, by way of the cache. Offline there is no client. */
class Repository {
  readonly #repo: string;
  readonly #cache: HubCache;
  readonly #platform: NodeJS.Platform;
  readonly #loading: Loading | undefined;

  constructor(
    repo: string,
    settings: HubSettings,
    around: Surroundings,
    signal: AbortSignal,
    stop: () => void,
  ) {
    this.#repo = repo;
    this.#platform = around.platform;
    this.#cache = new HubCache(settings.cacheFolder, repo);
    if (settings.isOffline) return;
    const wire = new Wire({ settings, repo, around, signal });
    const client = new HubClient(repo, settings, wire);
    this.#loading = { repo, cache: this.#cache, client, wire, stop };
  }

  async commitOf(revision: string): Promise<string> {
    if (isCommit(revision)) return revision;
    if (this.#loading === undefined) {
      const commit = this.#cache.refOf(revision);
      if (commit === undefined) throw this.#offline(`revision ${show(revision)}`);
      return commit;
    }
    const commit = await this.#loading.client.commitOf(revision);
    this.#cache.writeRef(revision, commit);
    return commit;
  }

  async filesOf(commit: string, revision: string): Promise<readonly Listed[]> {
    const known = this.#cache.filesOf(commit);
    if (known !== undefined) return known;
    if (this.#loading === undefined) {
      const found = this.#cache.snapshotOf(commit);
      if (found === undefined) throw this.#offline(`revision ${show(revision)}`);
      return found;
    }
    const files = await this.#loading.client.filesOf(commit);
    this.#cache.writeFiles(commit, files);
    return files;
  }

  async cardOf(commit: string, files: readonly Listed[]): Promise<Card> {
    const textOf = async (name: string): Promise<string | undefined> => {
      const file = files.find(({ path }) => path === name);
      if (file === undefined) return undefined;
      if (file.bytes > cardBytesMax) {
        throw new LoaderxError(
          'TOO_LARGE',
          `${this.#repo}: ${name} has ${file.bytes} bytes; a card has at most ${cardBytesMax}`,
          { path: this.#repo, file: name },
        );
      }
      const [place = ''] = await this.load(commit, [file], () => {});
      return fs.readFileSync(place, 'utf8');
    };
    return cardOf(this.#repo, {
      card: await textOf(cardName),
      addition: await textOf(cardAdditionName),
      oldInfos: await textOf(oldInfosName),
    });
  }

  dataOf(
    revision: string,
    files: readonly Listed[],
    card: Card,
    config: string | undefined,
  ): DataFiles {
    const paths = files.map(({ path }) => path);
    const named = { name: this.#repo, paths, card };
    // The copy's own layout, asked for by name: what is partial is called so in the split's name.
    if (revision === parquetRevision && card.configs.length === 0) {
      return convertedFilesOf(named, config, { allowPartial: true });
    }
    return dataFilesOf(named, config);
  }

  /** The hub's own Parquet copy of a repository that has none. */
  async copyOf(
    mainCommit: string,
    card: Card,
    config: string | undefined,
  ): Promise<{ commit: string; files: readonly Listed[]; data: DataFiles }> {
    const none = (): LoaderxError =>
      new LoaderxError(
        'NOT_FOUND',
        `${this.#repo}: there are no Parquet files in commit ${mainCommit}, and the hub has no Parquet copy of it (${parquetRevision})`,
        { path: this.#repo },
      );
    let commit: string;
    try {
      commit = await this.commitOf(parquetRevision);
    } catch (error) {
      const isMissing =
        error instanceof LoaderxError && error.code === 'NOT_FOUND' && error.field === 'revision';
      throw isMissing ? none() : error;
    }
    const files = await this.filesOf(commit, parquetRevision);
    if (!files.some(({ path }) => isParquet(path))) throw none();
    const paths = files.map(({ path }) => path);
    const preferred = defaultConfigOf(card);
    const options = { preferred, allowPartial: false };
    return { commit, files, data: convertedFilesOf({ name: this.#repo, paths }, config, options) };
  }

  /**
   * Refuses numbered files of which some are missing. Only where the list is not known: a snapshot may hold
   * a part of the commit's files.
   */
  assertAllParts(paths: readonly string[], files: readonly Listed[]): void {
    if (files.every(({ etag }) => etag !== undefined)) return;
    const present = new Set(paths);
    for (const path of paths) {
      const [, head, count, tail] = /^(.*-)\d{5}(-of-\d{5})([^/]*)$/s.exec(path) ?? [];
      if (head === undefined || count === undefined) continue;
      const total = Number(count.slice('-of-'.length));
      for (let part = 0; part < total; part += 1) {
        const name = `${head}${String(part).padStart(5, '0')}${count}${tail}`;
        if (!present.has(name)) throw this.#offline(show(name));
      }
    }
  }

  async load(
    commit: string,
    files: readonly Listed[],
    onProgress: (progress: HubProgress) => void,
  ): Promise<readonly string[]> {
    for (const { path } of files) assertSafePath(this.#repo, path, this.#platform);
    const listed = files.filter((file): file is HubFile => file.etag !== undefined);
    if (this.#loading !== undefined && listed.length === files.length) {
      return loadFiles(this.#loading, commit, listed, onProgress);
    }
    return files.map((file) => {
      // One that was found in the snapshot is there.
      const place =
        file.etag === undefined
          ? this.#cache.pathOf(commit, file.path)
          : this.#cache.placeOf(commit, file);
      if (place === undefined) throw this.#offline(show(file.path));
      return place;
    });
  }

  #offline(what: string): LoaderxError {
    return new LoaderxError(
      'OFFLINE',
      `${this.#repo}: ${what} is not in the cache (${this.#cache.folder}), and HF_HUB_OFFLINE allows no request; run once without it`,
      { path: this.#repo },
    );
  }
}

/** The splits that are asked for, in the dataset's order. */
function wantedOf(
  repo: string,
  { splits, config }: DataFiles,
  asked: readonly string[] | undefined,
): ReadonlyMap<string, readonly string[]> {
  if (asked === undefined) return splits;
  const missing = asked.find((split) => !splits.has(split));
  if (missing !== undefined) {
    const known = [...splits.keys()].map((split) => show(split)).join(', ');
    throw new ArgumentRangeError(
      'splits',
      `${repo} has no split ${show(missing)} in config ${show(config)}; it has ${known}`,
    );
  }
  return new Map([...splits].filter(([split]) => asked.includes(split)));
}

function textOf(field: string, value: unknown): string | undefined {
  if (value === undefined || typeof value === 'string') return value;
  throw new ArgumentTypeError(field, `${field} must be a string, got ${show(value)}`);
}

function splitsOf(value: unknown): readonly string[] | undefined {
  if (value === undefined) return undefined;
  if (Array.isArray(value) && value.length > 0 && value.every((one) => typeof one === 'string')) {
    return value;
  }
  throw new ArgumentTypeError('splits', `splits must be a list of names, got ${show(value)}`);
}

function progressOf(value: unknown): (progress: HubProgress) => void {
  if (value === undefined) return () => {};
  if (typeof value === 'function') return value as (progress: HubProgress) => void;
  throw new ArgumentTypeError('onProgress', `onProgress must be a function, got ${show(value)}`);
}
