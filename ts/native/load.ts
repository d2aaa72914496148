/**
 * Finds and loads the addon.
 *
 * It is loaded at the first use, not at import, so what needs no native code works everywhere.
 * Looked for, in this order: the file that `LOADERX_ADDON` names, `build/Release` of a source
 * checkout, and the prebuilt file of this platform in `prebuilds/`.
 */
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { type LoaderxError as LoadError, LoaderxError } from '../errors.js';
import { abiVersion, type Native } from './binding.js';

/** Platforms that the published package carries a prebuilt addon for. */
export const coveredPlatforms: readonly string[] = [
  'linux-x64 (glibc 2.28 or newer)',
  'linux-arm64 (glibc 2.28 or newer)',
  'darwin-arm64',
  'win32-x64',
];

let loaded: Native | undefined;
let failure: LoadError | undefined;

/**
 * The addon's functions.
 *
 * @throws LoaderxError UNSUPPORTED that says what was looked for, what is covered, and how to build
 */
export function native(): Native {
  if (loaded !== undefined) return loaded;
  if (failure !== undefined) throw failure;
  try {
    loaded = load();
    return loaded;
  } catch (error) {
    if (error instanceof LoaderxError) failure = error;
    throw error;
  }
}

function load(): Native {
  const require = createRequire(import.meta.url);
  const named = process.env.LOADERX_ADDON;
  if (named !== undefined && named !== '') {
    return checked(
      attempt(() => require(path.resolve(named)), `LOADERX_ADDON=${named}`),
      named,
    );
  }
  const root = packageRoot();
  if (root === undefined) {
    throw new LoaderxError(
      'UNSUPPORTED',
      "loaderx's folder was not found from here, as happens when its code is bundled: mark " +
        '"loaderx" as external, or set LOADERX_ADDON to the path of its .node file',
    );
  }
  const find = require('node-gyp-build') as (root: string) => unknown;
  return checked(
    attempt(
      () => find(root),
      `${path.join(root, 'build', 'Release')} and ${path.join(root, 'prebuilds')}`,
    ),
    root,
  );
}

function attempt(loadAddon: () => unknown, looked: string): unknown {
  try {
    return loadAddon();
  } catch (cause) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `no loaderx addon for ${platformHere()} could be loaded from ${looked}. Covered are ` +
        `${coveredPlatforms.join(', ')}; elsewhere build it from source: ` +
        'git clone the repository and `npm run build` in it. ' +
        `The loader said: ${cause instanceof Error ? firstLine(cause.message) : String(cause)}`,
      {},
      { cause },
    );
  }
}

function checked(addon: unknown, from: string): Native {
  const candidate = addon as Partial<Native> | null | undefined;
  const version =
    typeof candidate?.abiVersion === 'function' ? candidate.abiVersion() : 'no version at all';
  if (version !== abiVersion) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `the addon in ${from} has interface ${version}, and this loaderx needs ${abiVersion}: two ` +
        'versions are mixed. Install loaderx again, or `npm run build` in a source checkout',
    );
  }
  return candidate as Native;
}

/** The folder of this package: the nearest one above whose package.json has its name. */
function packageRoot(): string | undefined {
  let folder = path.dirname(fileURLToPath(import.meta.url));
  for (;;) {
    try {
      const manifest: unknown = JSON.parse(readFileSync(path.join(folder, 'package.json'), 'utf8'));
      const name = (manifest as { readonly name?: unknown } | null)?.name;
      return name === 'loaderx' ? folder : undefined;
    } catch {
      // No package.json here: one folder up.
    }
    const parent = path.dirname(folder);
    if (parent === folder) return undefined;
    folder = parent;
  }
}

function platformHere(): string {
  const triple = `${process.platform}-${process.arch}`;
  if (process.platform !== 'linux') return triple;
  const report = process.report?.getReport() as
    | { readonly header?: { readonly glibcVersionRuntime?: string } }
    | undefined;
  const glibc = report?.header?.glibcVersionRuntime;
  return `${triple} (${glibc === undefined ? 'musl or another C library' : `glibc ${glibc}`})`;
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
