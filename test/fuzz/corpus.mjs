// @ts-check
// The kept corpora: one text file for each target, a line for each input in hexadecimal digits, in
// order. They are replayed by zig-src/fuzz/replay_test.zig and test/fuzz.test.ts.
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/** @param {string} target */
export function corpusFile(target) {
  return fileURLToPath(new URL(`./corpus/${target}.txt`, import.meta.url));
}

/** @param {string} target @returns {Buffer[]} */
export function readCorpus(target) {
  const file = corpusFile(target);
  if (!fs.existsSync(file)) return [];
  const lines = fs.readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => Buffer.from(line, 'hex'));
}

/** @param {string} target @param {readonly Buffer[]} inputs */
export function writeCorpus(target, inputs) {
  const lines = [...new Set(inputs.map((input) => input.toString('hex')))];
  lines.sort((a, b) => a.length - b.length || (a < b ? -1 : 1));
  fs.writeFileSync(
    corpusFile(target),
    lines
      .filter((line) => line !== '')
      .join('\n')
      .concat('\n'),
  );
}

/** Each input in a file of its own, as fuzzers want them. @param {string} folder @param {readonly Buffer[]} inputs */
export function writeInputs(folder, inputs) {
  fs.mkdirSync(folder, { recursive: true });
  for (const [index, input] of inputs.entries()) {
    fs.writeFileSync(path.join(folder, String(index).padStart(5, '0')), input);
  }
}

/** @param {string} folder @returns {Buffer[]} */
export function readInputs(folder) {
  return fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((item) => item.isFile() && item.name !== 'README.txt')
    .map((item) => item.name)
    .sort()
    .map((name) => fs.readFileSync(path.join(folder, name)));
}
