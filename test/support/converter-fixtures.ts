// The shared fixtures of the converter: small hub repositories, and what Python's converter made of them.
// Here their folders are read as they are; the hub's part of the work is tested elsewhere.
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'yaml';
import type { DatasetSplits, FileName } from '../../ts/converter/dataset.js';
import { featuresOfCard } from '../../ts/converter/features.js';
import { parquetFolder, parquetSplits } from '../../ts/converter/parquet.js';
import { dtypeFromNumpy, isRefusal } from '../../ts/dtype.js';
import { open } from '../../ts/store/open.js';
import { fixture, readFixture } from './fixtures.js';

export interface Entry {
  readonly kind: 'dense' | 'ragged';
  readonly dtype: string;
  readonly item_shape?: readonly number[];
  readonly ndim?: number;
  readonly length: number;
  readonly codec: string;
  readonly data_shards: number;
  readonly records: Readonly<Record<string, { sha256: string; dims?: readonly number[] }>>;
  readonly all_sha256: string;
  readonly all_dims_sha256?: string;
}

export type Result = Readonly<Record<string, Readonly<Record<string, Entry>>>>;

export interface Call {
  readonly config: string | null;
  readonly revision: string;
  readonly codec: 'raw' | 'zstd';
  readonly result?: Result;
  readonly result_as_call?: number;
  readonly error?: { readonly stage: string; readonly class: string; readonly message: string };
  readonly better?: string;
  readonly note?: string;
}

export interface Case {
  readonly about: string;
  readonly refs: Readonly<Record<string, { readonly folder: string; readonly commit: string }>>;
  readonly calls: readonly Call[];
}

export function readCase(name: string): Case {
  return readFixture<Case>(`converter/${name}/expected.json`);
}

interface Card {
  readonly configs?: readonly { readonly config_name: string; readonly data_files?: DataFiles }[];
  readonly dataset_info?: unknown;
}
type DataFiles =
  | string
  | readonly (string | { readonly split: string; readonly path: string | readonly string[] })[];

/** The splits of a call, found by the simplest of the card's forms. */
export async function datasetOf(name: string, call: Call): Promise<DatasetSplits> {
  const { refs } = readCase(name);
  const ref = refs[call.revision] ?? Object.values(refs).find((r) => r.commit === call.revision);
  const folder = fixture(`converter/${name}/${ref?.folder}`);
  const readme = path.join(folder, 'README.md');
  const front = existsSync(readme) ? readFileSync(readme, 'utf8').split(/^---$/m)[1] : undefined;
  const card = (front === undefined ? {} : parse(front)) as Card;
  const infos = Array.isArray(card.dataset_info) ? card.dataset_info : [card.dataset_info];
  const configName = call.config ?? 'default';
  const config = card.configs?.find((each) => each.config_name === configName) ?? card.configs?.[0];
  const info = infos.find(
    (each) => (each?.config_name ?? 'default') === (config?.config_name ?? configName),
  );
  const features = featuresOfCard(info);
  if (config?.data_files === undefined) return parquetFolder(folder, { features });
  const files = new Map<string, FileName[]>();
  const list = typeof config.data_files === 'string' ? [config.data_files] : config.data_files;
  for (const entry of list) {
    const { split, path: patterns } =
      typeof entry === 'string' ? { split: 'train', path: entry } : entry;
    const members = [patterns].flat().flatMap((pattern) => matching(folder, pattern));
    files.set(split, [...(files.get(split) ?? []), ...members]);
  }
  return parquetSplits(files, { features });
}

function matching(folder: string, pattern: string): FileName[] {
  const names = pattern.includes('*') ? glob(folder, pattern) : [pattern];
  return names.map((name) => ({ path: path.join(folder, name), name }));
}

function glob(folder: string, pattern: string): string[] {
  const source = pattern.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*/g, '[^/]*');
  const wanted = new RegExp(`^${source}$`);
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .map((file) => file.split(path.sep).join('/'))
    .filter((file) => wanted.test(file))
    .sort();
}

/** What differs between a container and what it should be; empty where nothing does. */
export function differences(container: string, entry: Entry): string[] {
  const found: string[] = [];
  const expect = (what: string, came: unknown, wanted: unknown): void => {
    if (JSON.stringify(came) === JSON.stringify(wanted)) return;
    found.push(`${what} is ${JSON.stringify(came)}, wanted ${JSON.stringify(wanted)}`);
  };
  const reader = open(container);
  try {
    const dtype = dtypeFromNumpy(entry.dtype);
    expect('kind', reader.kind, entry.kind);
    expect('dtype', reader.dtype, isRefusal(dtype) ? dtype.reason : dtype.name);
    expect('codec', reader.codec, entry.codec);
    expect('data_shards', reader.dataShards, entry.data_shards);
    expect('length', reader.length, entry.length);
    if (reader.kind === 'dense') expect('item_shape', reader.itemShape, entry.item_shape);
    else expect('ndim', reader.ndim, entry.ndim);
    if (found.length > 0) return found;
    const all = createHash('sha256');
    const allDims = createHash('sha256');
    for (let id = 0; id < entry.length; id += 1) {
      const { data, shape } = reader.record(id);
      const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
      all.update(bytes);
      allDims.update(new Uint8Array(BigUint64Array.from(shape, BigInt).buffer));
      const wanted = entry.records[id];
      if (wanted === undefined) continue;
      if (reader.kind === 'ragged') expect(`dims of ${id}`, shape, wanted.dims);
      expect(`record ${id}`, createHash('sha256').update(bytes).digest('hex'), wanted.sha256);
    }
    expect('all records', all.digest('hex'), entry.all_sha256);
    if (reader.kind === 'ragged') expect('all dims', allDims.digest('hex'), entry.all_dims_sha256);
    return found;
  } finally {
    reader.closeSync();
  }
}
