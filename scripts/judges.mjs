// @ts-check
// Others' judgement of a packed release: publint and attw (Are The Types Wrong) on the tarball, and
// TypeScript on a user's program under every way to resolve modules.
import fs from 'node:fs';
import path from 'node:path';
import { ask } from './child.mjs';
import { installLocked } from './dependencies.mjs';
import { depsFolder, inRoot } from './script.mjs';

/** @typedef {import('./checks.mjs').Checks} Checks */

/** The tools of scripts/release-tools, installed. @returns {Promise<string>} their node_modules */
export async function releaseTools() {
  const target = path.join(depsFolder, 'release-tools', 'node_modules');
  await installLocked(inRoot('scripts', 'release-tools'), target);
  return target;
}

/** @param {string} tarball @param {string} tools @param {Checks} checks */
export function judgePackage(tarball, tools, checks) {
  const publint = path.join(tools, 'publint', 'src', 'cli.js');
  const attw = path.join(tools, '@arethetypeswrong', 'cli', 'dist', 'index.js');
  const lint = ask(process.execPath, [publint, tarball, '--strict']);
  checks.check('package', 'publint --strict', lint.ok ? '' : `\n${lint.output}`);
  const types = ask(process.execPath, [attw, tarball, '--profile', 'esm-only', '--no-emoji']);
  checks.check('package', 'attw --profile esm-only', types.ok ? '' : `\n${types.output}`);
}

const program = `
import { DataLoader, Dense, LoaderxError, ndarray, open, Ragged, Sampler } from 'loaderx';
import type { NdArray } from 'loaderx';

export async function main(): Promise<number> {
  const writer = Dense.create('a', { dtype: 'uint8', itemShape: [2], codec: 'raw' });
  await writer.append(ndarray('uint8', [1, 2], new Uint8Array(2)));
  await writer.close();
  const reader = Dense.open('a', { dtype: 'uint8', itemShape: [2] });
  const batch = await reader.gather([0]);
  const bytes: Uint8Array = batch.data;
  const one: NdArray<'uint8'> = reader.record(0);
  // @ts-expect-error: there is no such dtype
  Ragged.create('b', { dtype: 'float3', ndim: 1, codec: 'raw' });
  // @ts-expect-error: the codec has no default
  Ragged.create('b', { dtype: 'uint8', ndim: 1 });
  try {
    open('b');
  } catch (error) {
    if (error instanceof LoaderxError && error.code === 'NOT_FOUND') return bytes.length;
  }
  const step: bigint = new Sampler({ length: 3, batchSize: 1, mode: 'iid', seed: 1 }).step;
  return Number(step) + one.data.length;
}
export { DataLoader };
`;

/**
 * @param {string} app a folder in which the package is installed
 * @param {Checks} checks
 */
export function judgeTypes(app, checks) {
  // Types of Node come with the user's own project.
  const types = path.join(app, 'node_modules', '@types');
  fs.mkdirSync(types, { recursive: true });
  fs.cpSync(inRoot('node_modules', '@types', 'node'), path.join(types, 'node'), {
    recursive: true,
  });
  const undici = inRoot('node_modules', 'undici-types');
  fs.cpSync(undici, path.join(app, 'node_modules', 'undici-types'), { recursive: true });
  const tsc = inRoot('node_modules', 'typescript', 'bin', 'tsc');
  for (const [resolution, module] of [
    ['node16', 'node16'],
    ['nodenext', 'nodenext'],
    ['bundler', 'esnext'],
  ]) {
    fs.writeFileSync(path.join(app, 'user.mts'), program);
    const answer = ask(
      process.execPath,
      [
        ...[tsc, 'user.mts', '--noEmit', '--strict', '--target', 'es2022', '--types', 'node'],
        ...['--skipLibCheck', 'false', '--exactOptionalPropertyTypes'],
        ...['--module', module ?? '', '--moduleResolution', resolution ?? '', '--pretty', 'false'],
      ],
      { cwd: app },
    );
    checks.check('types', `moduleResolution ${resolution}`, answer.ok ? '' : `\n${answer.output}`);
  }
  for (const name of ['@types', 'undici-types']) {
    fs.rmSync(path.join(app, 'node_modules', name), { recursive: true });
  }
  fs.rmSync(path.join(app, 'user.mts'));
}
