// @ts-check
// What every script here shares: where things are, how one starts, and how one says that it cannot
// go on. Scripts need Node alone; what they need besides they fetch first (toolchain.mjs,
// dependencies.mjs).
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** The checkout. Scripts work from any folder. */
export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** Fetched and not in git: the toolchain, and half-done work of installs. */
export const depsFolder = path.join(root, '.deps');

/** @param {...string} parts @returns {string} a path in the checkout */
export const inRoot = (...parts) => path.join(root, ...parts);

/** A path as it is shown: relative to the checkout when it lies inside. @param {string} file */
export function shown(file) {
  const relative = path.relative(root, file);
  return relative.startsWith('..') || path.isAbsolute(relative) ? file : relative;
}

/** A failure that has an explanation: no stack, but what to do. */
export class Failure extends Error {
  /**
   * @param {string} what what is wrong, one sentence
   * @param {string} [advice] what the reader can do about it
   */
  constructor(what, advice) {
    super(advice === undefined ? what : `${what}\n  ${advice.replaceAll('\n', '\n  ')}`);
    this.name = 'Failure';
  }
}

/** An error as it is printed. @param {unknown} error @returns {string} */
export function explain(error) {
  if (error instanceof Failure) return error.message;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/**
 * Runs `body` if the module is the program that was started, not when it is imported. The exit
 * code is what `body` returns; 1 after an error.
 *
 * @param {ImportMeta} meta `import.meta` of the script
 * @param {(args: string[]) => Promise<number | undefined> | number | undefined} body
 */
export async function entry(meta, body) {
  const started = process.argv[1];
  if (started === undefined || !isSameFile(started, fileURLToPath(meta.url))) return;
  try {
    process.exitCode = (await body(process.argv.slice(2))) ?? 0;
  } catch (error) {
    process.stderr.write(`\n${explain(error)}\n`);
    process.exitCode = 1;
  }
}

/** @param {string} a @param {string} b */
function isSameFile(a, b) {
  try {
    return fs.realpathSync(a) === fs.realpathSync(b);
  } catch {
    return false;
  }
}
