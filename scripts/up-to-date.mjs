// @ts-check
// Skips work whose inputs and outputs are what they were when it was last done. Both are compared by
// content, so a checkout that only touches time stamps rebuilds nothing, and a deleted or edited
// output is made again.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { inRoot } from './script.mjs';

/**
 * @param {object} work
 * @param {string} work.name names the record of this work in build/records/
 * @param {() => string[]} work.inputs files that decide the result
 * @param {readonly string[]} [work.facts] what else decides it
 * @param {() => string[]} work.outputs files it makes; none means that it was never done
 * @param {() => Promise<void>} work.make
 */
export async function unlessUpToDate({ name, inputs, facts = [], outputs, make }) {
  const recordFile = inRoot('build', 'records', name);
  // Taken before the work: an input that changes meanwhile makes the next run do it again.
  const inputsHash = hashOf(inputs(), facts);
  if (outputs().length > 0 && read(recordFile) === `${inputsHash}\n${hashOf(outputs(), [])}\n`) {
    return;
  }
  fs.rmSync(recordFile, { force: true });
  await make();
  fs.mkdirSync(path.dirname(recordFile), { recursive: true });
  fs.writeFileSync(recordFile, `${inputsHash}\n${hashOf(outputs(), [])}\n`);
}

/**
 * Every file below a folder of the checkout, sorted; none if there is no such folder.
 *
 * @param {string} folder
 * @param {(file: string) => boolean} [wanted]
 * @returns {string[]}
 */
export function filesBelow(folder, wanted = () => true) {
  if (!fs.existsSync(folder)) return [];
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((item) => item.isFile())
    .map((item) => path.join(item.parentPath, item.name))
    .filter(wanted)
    .sort();
}

/** @param {string[]} files @param {readonly string[]} facts */
function hashOf(files, facts) {
  const hash = createHash('sha256');
  for (const file of files) {
    const content = createHash('sha256').update(fs.readFileSync(file)).digest('hex');
    hash.update(`${content} ${path.relative(inRoot(), file)}\n`);
  }
  for (const fact of facts) hash.update(`${fact}\n`);
  return hash.digest('hex');
}

/** @param {string} file */
function read(file) {
  return fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null;
}
