// @ts-check
// The JavaScript that users get: dist/, with the type declarations module by module as in ts/.
//
// The modules themselves are put together, since Node takes half a millisecond for every file that it
// imports: the entries at their places, and what they share in a few files beside. So each module and
// class is there once. The code is written to be read; there are no source maps, which would carry the
// sources into the package. What comes from development packages is folded in: users install one
// package, node-gyp-build. msgpackr's entry for Node would look for its native part; the entry
// without it is taken. yaml's entry for Node is CommonJS, which cannot be folded into modules; the one
// for browsers is the same code as modules.
import fs from 'node:fs';
import path from 'node:path';
import { run } from './child.mjs';
import { lockHash } from './dependencies.mjs';
import { installFolder } from './install.mjs';
import { Failure, inRoot } from './script.mjs';
import { filesBelow, unlessUpToDate } from './up-to-date.mjs';

/** Development packages whose code may be folded into dist/. Their licences ship: licences.mjs. */
export const foldedPackages = [
  ...['msgpackr', 'hyparquet', 'yaml'],
  ...['csv-parse', 'lossless-json'],
];

const sources = inRoot('ts');
const dist = inRoot('dist');

/** Builds dist/ unless it is what ts/ gives. */
export function buildDist() {
  return unlessUpToDate({
    name: 'dist',
    inputs: () => [
      ...filesBelow(sources),
      inRoot('tsconfig.json'),
      inRoot('package.json'),
      inRoot('scripts', 'dist.mjs'),
    ],
    facts: [lockHash()],
    outputs: () => filesBelow(dist),
    make: async () => {
      process.stdout.write('building dist/\n');
      await installFolder({
        target: dist,
        isCurrent: () => false,
        prepare: async (scratch) => {
          const folder = path.join(scratch, 'dist');
          await declare(folder);
          await bundle(folder);
          return folder;
        },
      });
    },
  });
}

/** Checks the types and writes the declarations. @param {string} folder */
async function declare(folder) {
  const tsc = inRoot('node_modules', 'typescript', 'bin', 'tsc');
  const options = ['--emitDeclarationOnly', '--outDir', folder, '--pretty', 'false'];
  if ((await run(process.execPath, [tsc, '--project', 'tsconfig.json', ...options])) !== 0) {
    throw new Failure('ts/ does not compile', 'The compiler said why, above.');
  }
}

/** Modules that are imported by their own path, besides what users import and what runs in workers. */
const innerEntries = ['dtype', 'errors', 'schema'];

/** `new URL('./worker.js', import.meta.url)`, wherever the module that says so ends up. */
const neighbour = /new URL\(\s*'(\.[^']+)',\s*import\.meta\.url,?\s*\)/g;
const distMarker = 'loaderx-dist:';

/**
 * The files that a module finds by its own place, relative to ts/ and so to dist/.
 *
 * @param {string} file
 * @param {string} text
 */
function neighboursOf(file, text) {
  return [...text.matchAll(neighbour)].flatMap(([said, relative = '']) => {
    const target = path.resolve(path.dirname(file), relative);
    const isThere = fs.existsSync(target) || fs.existsSync(target.replace(/\.js$/, '.ts'));
    return isThere ? [{ said, target: slashed(path.relative(sources, target)) }] : [];
  });
}

/** @param {string} file */
const slashed = (file) => file.replaceAll(path.sep, '/');

/** @param {string} folder */
async function bundle(folder) {
  const { build } = await import('esbuild');
  const manifest = JSON.parse(fs.readFileSync(inRoot('package.json'), 'utf8'));
  const modules = filesBelow(sources, (file) => file.endsWith('.ts') && !file.endsWith('.d.ts'));
  const workers = modules
    .flatMap((file) => neighboursOf(file, fs.readFileSync(file, 'utf8')))
    .filter(({ target }) => target.endsWith('.js'))
    .map(({ target }) => target);
  const entries = new Set([
    ...[manifest.exports, manifest.bin].flatMap((value) => distFiles(value)),
    ...workers,
    ...innerEntries.map((name) => `${name}.js`),
  ]);
  const result = await build({
    absWorkingDir: inRoot(),
    entryPoints: [...entries].map((name) => path.join(sources, name.replace(/\.js$/, '.ts'))),
    outbase: sources,
    outdir: folder,
    bundle: true,
    splitting: true,
    chunkNames: 'shared/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    metafile: true,
    logLevel: 'warning',
    external: Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }),
    alias: {
      msgpackr: inRoot('node_modules', 'msgpackr', 'index.js'),
      yaml: inRoot('node_modules', 'yaml', 'browser', 'index.js'),
    },
    plugins: [rememberPlaces],
  });
  for (const file of filesBelow(folder, (name) => name.endsWith('.js'))) {
    const toDist = path.relative(path.dirname(file), folder);
    const text = fs.readFileSync(file, 'utf8');
    const base = toDist === '' ? './' : `${slashed(toDist)}/`;
    fs.writeFileSync(file, text.replaceAll(distMarker, base));
  }

  for (const input of Object.keys(result.metafile.inputs)) {
    const name = /(?:^|\/)node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1];
    if (name === undefined || foldedPackages.includes(name)) continue;
    throw new Failure(
      `ts/ imports ${name}, which users do not get`,
      'Make it a dependency in package.json, or fold it in: `foldedPackages` in scripts/dist.mjs.',
    );
  }
  for (const file of filesBelow(folder, (name) => name.endsWith('.js'))) {
    if (!fs.readFileSync(file, 'utf8').includes('msgpackr-extract')) continue;
    throw new Failure(`${path.basename(file)} asks for msgpackr-extract, a native package`);
  }
}

/** The built files that a part of the manifest names. @param {unknown} value @returns {string[]} */
function distFiles(value) {
  if (typeof value === 'object' && value !== null) return Object.values(value).flatMap(distFiles);
  const name = typeof value === 'string' ? /^(?:\.\/)?dist\/(.*\.js)$/.exec(value)?.[1] : undefined;
  return name === undefined ? [] : [name];
}

/**
 * Writes what modules find by their place relative to dist/; `bundle` puts the way there in front.
 *
 * @type {import('esbuild').Plugin}
 */
const rememberPlaces = {
  name: 'remember-places',
  setup: (bundler) => {
    bundler.onLoad({ filter: /\.ts$/ }, ({ path: file }) => {
      let contents = fs.readFileSync(file, 'utf8');
      for (const { said, target } of neighboursOf(file, contents)) {
        contents = contents.replaceAll(said, `new URL('${distMarker}${target}', import.meta.url)`);
      }
      return { contents, loader: 'ts' };
    });
  },
};
