// What hub tests share: surroundings that read nothing of this machine, and what was asked and written.
import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import type { DatasetSplits } from '../../ts/converter/dataset.js';
import {
  type HubFiles,
  type HubOptions,
  hubDataset,
  hubFiles,
  type Surroundings,
} from '../../ts/converter/hub.js';
import type { LoaderxError } from '../../ts/errors.js';
import type { HubServer } from './hub-server.js';
import type { Scratch } from './scratch.js';

/** A caller of the hub with an own cache and home, and variables that the test gives. */
export class Caller {
  readonly cacheDir: string;
  readonly homeFolder: string;
  /** Every wait before another attempt, in milliseconds. None of them is waited. */
  readonly waits: number[] = [];
  readonly env: Record<string, string> = {};

  constructor(scratch: Scratch, server?: HubServer) {
    this.homeFolder = scratch.folder();
    this.cacheDir = path.join(this.homeFolder, '.cache', 'huggingface', 'hub');
    if (server !== undefined) this.env.HF_ENDPOINT = server.endpoint;
  }

  load(repo: string, options: HubOptions = {}, platform?: NodeJS.Platform): Promise<HubFiles> {
    return hubFiles(repo, options, this.#around(platform));
  }

  dataset(repo: string, options: HubOptions = {}): Promise<DatasetSplits> {
    return hubDataset(repo, options, this.#around(undefined));
  }

  #around(platform: NodeJS.Platform | undefined): Surroundings {
    return {
      env: this.env,
      homeFolder: this.homeFolder,
      platform: platform ?? process.platform,
      wait: async (ms, signal) => {
        signal.throwIfAborted();
        this.waits.push(ms);
      },
    };
  }

  /** The folder of a repository in the cache. */
  folder(repo: string): string {
    return path.join(this.cacheDir, `datasets--${repo.replace('/', '--')}`);
  }
}

/** What the loaded files hold, by split and name. */
export function contentsOf({ splits }: HubFiles): Record<string, Record<string, string>> {
  const hash = (file: string): string =>
    createHash('sha256').update(readFileSync(file)).digest('hex');
  return Object.fromEntries(
    [...splits].map(([split, files]) => [
      split,
      Object.fromEntries(files.map(({ name, path: file }) => [name, hash(file)])),
    ]),
  );
}

/** Every entry below a folder: files by the hash of their bytes, links by where they lead. */
export function entriesBelow(folder: string): Record<string, string> {
  if (!existsSync(folder)) return {};
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, encoding: 'utf8' })
      .sort()
      .flatMap((name) => {
        const at = path.join(folder, name);
        const stat = lstatSync(at);
        if (stat.isDirectory()) return [];
        const what = stat.isSymbolicLink()
          ? `-> ${readlinkSync(at)}`
          : createHash('sha256').update(readFileSync(at)).digest('hex');
        return [[name.split(path.sep).join('/'), what]];
      }),
  );
}

/** Bytes that differ from place to place. */
export function bytesOf(count: number, seed: number): Uint8Array {
  const bytes = new Uint8Array(count);
  let state = (seed * 2654435761 + 1) >>> 0;
  for (let at = 0; at < count; at += 1) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    bytes[at] = state >>> 24;
  }
  return bytes;
}

/** What a call that was begun rejects with. */
export async function failureOf(call: Promise<unknown>): Promise<LoaderxError> {
  try {
    await call;
  } catch (error) {
    return error as LoaderxError;
  }
  throw new Error('it went well');
}
