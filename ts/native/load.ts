/**
 * Finds and loads the addon.
 *
 * It is loaded at the first use, not at import, so what needs no native code works everywhere.
 * Looked for, in this order: the file that `LOADERX_ADDON` names, `build/Release` of a source
 * checkout, and the prebuilt file of this platform in `prebuilds/`.
 */
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread } from 'node:worker_threads';
import { type LoaderxError as LoadError, LoaderxError, show } from '../errors.js';
import { abiVersion, type Native } from './binding.js';

/** Platforms that the published package carries a prebuilt addon for: one for each row of build.zig. */
export const coveredPlatforms: readonly string[] = [
  'linux-x64 (glibc 2.28 or newer, or musl)',
  'linux-arm64 (glibc 2.28 or newer, or musl)',
  'darwin-arm64',
  'darwin-x64',
  'win32-x64',
  'win32-arm64',
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
    warnOfLanes();
    return loaded;
  } catch (error) {
    if (error instanceof LoaderxError) failure = error;
    throw error;
  }
}

/** The addon takes no notice of a number that cannot be; whoever set it is told, once for the process. */
function warnOfLanes(): void {
  const text = process.env.LOADERX_LANES;
  if (!isMainThread || text === undefined || text === '') return;
  const lanes = Number(text);
  if (/^\d+$/.test(text) && lanes >= 1 && lanes <= lanesMax) return;
  process.emitWarning(
    `LOADERX_LANES must be a whole number, 1 to ${lanesMax}, got ${show(text)}: it is ignored`,
    { type: 'LoaderxWarning', code: 'LOADERX_LANES' },
  );
}

/** Lanes that a process may have. */
export const lanesMax = 1024;

function load(): Native {
  const named = process.env.LOADERX_ADDON;
  if (named !== undefined && named !== '') {
    const file = path.resolve(named);
    if (!existsSync(file)) {
      throw unsupported(`LOADERX_ADDON names ${file}, where there is no file`, undefined);
    }
    return checked(loadFile(file), file);
  }
  const root = packageRoot();
  if (root === undefined) {
    throw unsupported(
      "loaderx's folder was not found from here, as happens when its code is bundled: mark " +
        '"loaderx" as external, or copy the .node file of your platform from its prebuilds folder ' +
        'and set LOADERX_ADDON to the path of the copy',
      undefined,
    );
  }
  const file = find(root);
  return checked(loadFile(file), file);
}

/**
 * The addon's file, found by node-gyp-build. It tells musl by Alpine's release file; other systems with
 * musl, and a Node with a C library other than its system's, are told by asking Node itself.
 */
function find(root: string): string {
  const require = createRequire(path.join(root, 'package.json'));
  const gyp = require('node-gyp-build') as { readonly path: (root: string) => string };
  let found: string;
  try {
    found = gyp.path(root);
  } catch (cause) {
    const { npm_config_platform: platform, npm_config_arch: arch } = process.env;
    const asked = `${platform ?? process.platform}-${arch ?? process.arch}`;
    throw asked === tripleHere() ? missing(root, cause) : misled(asked);
  }
  const asked = path.basename(path.dirname(found));
  const isPrebuilt = path.basename(path.dirname(path.dirname(found))) === 'prebuilds';
  if (isPrebuilt && asked !== tripleHere()) throw misled(asked);
  const tag = /\.(glibc|musl)\.node$/.exec(found)?.[1];
  const here = tag === undefined ? undefined : cLibraryHere()?.name;
  if (tag === here || here === undefined) return found;
  const twin = found.replace(/\.(?:glibc|musl)\.node$/, `.${here}.node`);
  if (!existsSync(twin)) throw missing(root, undefined);
  return twin;
}

function loadFile(file: string): unknown {
  const loaded = { exports: {} };
  try {
    // A stand-in for the addon may be JavaScript.
    if (!file.endsWith('.node')) return createRequire(file)(file);
    // What require() does with an addon. Bundlers rewrite a require() that they see.
    process.dlopen(loaded, path.toNamespacedPath(file));
    return loaded.exports;
  } catch (cause) {
    const said = cause instanceof Error ? firstLine(cause.message) : String(cause);
    throw unsupported(
      `${file} is there and could not be loaded on ${platformHere()} (${said})`,
      cause,
    );
  }
}

function missing(root: string, cause: unknown): LoadError {
  const prebuilds = path.join(root, 'prebuilds');
  const isCovered = coveredPlatforms.some((covered) => covered.split(' ')[0] === tripleHere());
  return unsupported(
    isCovered
      ? `the file for ${platformHere()} is missing from ${prebuilds}, so install loaderx again`
      : `there is no file for ${platformHere()} in ${prebuilds}`,
    cause,
  );
}

/** npm's settings for installing on behalf of another machine reach node-gyp-build at run time too. */
function misled(asked: string): LoadError {
  return unsupported(
    `npm_config_platform and npm_config_arch ask for ${asked}, and this is ${platformHere()}, so ` +
      'unset them',
    undefined,
  );
}

/** One sentence: what was found, what is covered, how to get on. */
function unsupported(found: string, cause: unknown): LoadError {
  return new LoaderxError(
    'UNSUPPORTED',
    `loaderx cannot load its native part: ${found}; covered are ` +
      `${coveredPlatforms.join(', ')}, and elsewhere a source build is \`git clone\` of the ` +
      'repository and `npm run build` in it',
    {},
    cause === undefined ? undefined : { cause },
  );
}

function checked(addon: unknown, from: string): Native {
  const candidate = addon as Partial<Native> | null | undefined;
  const version =
    typeof candidate?.abiVersion === 'function' ? candidate.abiVersion() : 'no version at all';
  if (version !== abiVersion) {
    throw new LoaderxError(
      'UNSUPPORTED',
      `the addon ${from} has interface ${version}, and this loaderx needs ${abiVersion}: two ` +
        'versions are mixed. Install loaderx again, or `npm run build` in a source checkout',
    );
  }
  return candidate as Native;
}

/** The folder of this package: the nearest one above whose package.json has its name. */
function packageRoot(): string | undefined {
  // A bundler that makes CommonJS of this leaves no address of the module.
  const here: string | undefined = import.meta.url;
  if (!here?.startsWith('file:')) return undefined;
  let folder = path.dirname(fileURLToPath(here));
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

function tripleHere(): string {
  return `${process.platform}-${process.arch}`;
}

function platformHere(): string {
  const library = cLibraryHere();
  return library === undefined ? tripleHere() : `${tripleHere()} (${library.shown})`;
}

/** On Linux, the C library that this Node runs with. */
function cLibraryHere(): { name: 'glibc' | 'musl'; shown: string } | undefined {
  if (process.platform !== 'linux' || process.report === undefined) return undefined;
  // Looking up the names of open connections, which a report does besides, can take seconds.
  const settings = process.report as { excludeNetwork?: boolean };
  const before = settings.excludeNetwork;
  settings.excludeNetwork = true;
  const report = process.report.getReport() as {
    readonly header?: { readonly glibcVersionRuntime?: string };
  };
  if (before !== undefined) settings.excludeNetwork = before;
  const glibc = report.header?.glibcVersionRuntime;
  return glibc === undefined
    ? { name: 'musl', shown: 'musl' }
    : { name: 'glibc', shown: `glibc ${glibc}` };
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? '';
}
