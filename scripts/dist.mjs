// @ts-check
// The JavaScript that users get: dist/, module by module as in ts/, with its type declarations.
//
// Relative imports stay imports, so each module, class and path relative to a module is there once
// and as in the source. What comes from development packages is folded in: users install one
// package, node-gyp-build. msgpackr's entry for Node would look for its native part; the entry
// without it is taken.
import fs from 'node:fs';
import path from 'node:path';
import { run } from './child.mjs';
import { lockHash } from './dependencies.mjs';
import { installFolder } from './install.mjs';
import { Failure, inRoot } from './script.mjs';
import { filesBelow, unlessUpToDate } from './up-to-date.mjs';

/** Development packages whose code may be folded into dist/. Their licences ship: licences.mjs. */
export const foldedPackages = ['msgpackr'];

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

/** @param {string} folder */
async function bundle(folder) {
  const { build } = await import('esbuild');
  const manifest = JSON.parse(fs.readFileSync(inRoot('package.json'), 'utf8'));
  const result = await build({
    absWorkingDir: inRoot(),
    entryPoints: filesBelow(sources, (file) => file.endsWith('.ts') && !file.endsWith('.d.ts')),
    outbase: sources,
    outdir: folder,
    bundle: true,
    splitting: true,
    chunkNames: 'chunks/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    sourcemap: true,
    metafile: true,
    logLevel: 'warning',
    external: Object.keys({ ...manifest.dependencies, ...manifest.peerDependencies }),
    alias: { msgpackr: inRoot('node_modules', 'msgpackr', 'index.js') },
    plugins: [keepOwnModulesApart],
  });

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

/** @type {import('esbuild').Plugin} */
const keepOwnModulesApart = {
  name: 'keep-own-modules-apart',
  setup: (bundler) => {
    bundler.onResolve({ filter: /^\.{1,2}\// }, (request) =>
      request.kind !== 'entry-point' && request.importer.startsWith(sources + path.sep)
        ? { path: request.path, external: true }
        : undefined,
    );
  },
};
