// @ts-check
// The npm packages of package-lock.json, in node_modules. Installed again when the lock file is not
// the one they were installed from.
//
//     node scripts/dependencies.mjs
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { npm, run } from './child.mjs';
import { installFolder } from './install.mjs';
import { entry, Failure, inRoot } from './script.mjs';

/** The hash of the lock file that node_modules was installed from. */
const stampFile = '.loaderx-lock.sha256';

/** @returns {string} */
export function lockHash() {
  return createHash('sha256')
    .update(fs.readFileSync(inRoot('package-lock.json')))
    .digest('hex');
}

/** Installs what package-lock.json names, unless it is there. */
export async function ensureDependencies() {
  const target = inRoot('node_modules');
  const wanted = lockHash();
  await installFolder({
    target,
    isCurrent: () => readOrNull(path.join(target, stampFile)) === wanted,
    prepare: async (scratch) => {
      process.stdout.write('installing the npm packages of package-lock.json\n');
      for (const name of ['package.json', 'package-lock.json', '.npmrc']) {
        fs.copyFileSync(inRoot(name), path.join(scratch, name));
      }
      const [command, ...args] = npm();
      /** @type {string[]} */
      const said = [];
      // NODE_ENV=production or an `omit` setting would leave out the tools of the build.
      const code = await run(
        command,
        [
          ...args,
          'ci',
          '--ignore-scripts',
          '--include=dev',
          '--include=optional',
          '--no-audit',
          '--no-fund',
        ],
        { cwd: scratch, quiet: true, onLine: (line) => said.push(line) },
      );
      if (code !== 0) throw explainNpm(said.join('\n'));
      const folder = path.join(scratch, 'node_modules');
      fs.writeFileSync(path.join(folder, stampFile), wanted);
      return folder;
    },
  });
}

/** @param {string} output what npm said */
function explainNpm(output) {
  const said = output
    .replace(/\b[a-z]+:\/\/\S+/gi, '<address>')
    .split('\n')
    .slice(-8)
    .join('\n');
  if (/EINTEGRITY/.test(output)) {
    return new Failure(
      'an npm package is not the one that package-lock.json names',
      `It was not used. Look at the registry that npm is set to (npm config get registry).\n${said}`,
    );
  }
  if (/ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|network/i.test(output)) {
    return new Failure(
      'npm could not reach its registry',
      `Check the network and npm's settings (npm config ls). npm said:\n${said}`,
    );
  }
  return new Failure('npm ci failed', `npm said:\n${said}`);
}

/** @param {string} file */
function readOrNull(file) {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

await entry(import.meta, async () => {
  await ensureDependencies();
  return 0;
});
