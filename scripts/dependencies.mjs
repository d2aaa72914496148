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
import { entry, Failure, inRoot, shown } from './script.mjs';

/** The hash of the lock file that node_modules was installed from. */
const stampFile = '.loaderx-lock.sha256';

/** @returns {string} */
export function lockHash() {
  return createHash('sha256')
    .update(fs.readFileSync(inRoot('package-lock.json')))
    .digest('hex');
}

/** Installs what package-lock.json names, unless it is there. */
export function ensureDependencies() {
  return installLocked(inRoot(), inRoot('node_modules'));
}

/**
 * Installs what a lock file names, unless it is there.
 *
 * @param {string} folder of package.json and package-lock.json
 * @param {string} target the node_modules that shall appear
 */
export async function installLocked(folder, target) {
  const wanted = createHash('sha256')
    .update(fs.readFileSync(path.join(folder, 'package-lock.json')))
    .digest('hex');
  await installFolder({
    target,
    isCurrent: () => readOrNull(path.join(target, stampFile)) === wanted,
    prepare: async (scratch) => {
      const label = shown(path.join(folder, 'package-lock.json'));
      process.stdout.write(`installing the npm packages of ${label}\n`);
      for (const name of ['package.json', 'package-lock.json']) {
        fs.copyFileSync(path.join(folder, name), path.join(scratch, name));
      }
      fs.copyFileSync(inRoot('.npmrc'), path.join(scratch, '.npmrc'));
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
      const modules = path.join(scratch, 'node_modules');
      fs.writeFileSync(path.join(modules, stampFile), wanted);
      return modules;
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
