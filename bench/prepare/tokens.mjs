// @ts-check
// OUT/text.bin -> OUT/tokens.npy int32[T], OUT/offsets.npy int64[R + 1]: GPT-2's byte pair encoding by
// npm gpt-tokenizer, checked against npm gpt-3-encoder on a sample.
//
//     node tokens.mjs SOURCES OUT
//
// Every paragraph ends with the token of a line break. Paragraphs shorter than 16 tokens are joined
// with what follows, records are cut at 512; a rest below 16 goes to the next record.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const tokensMin = 16;
const tokensMax = 512;
const lineBreak = 198;
/** Every so many paragraphs one is encoded by both, so many in all. */
const [checkStride, checksMax] = [997, 300];

const [sources = '', out = ''] = process.argv.slice(2);
const { encode } = await import(
  pathToFileURL(path.resolve(sources, 'npm/gpt-tokenizer/esm/encoding/gpt2.js')).href
);
const reference = createRequire(import.meta.url)(path.resolve(sources, 'npm/gpt-3-encoder'));
const paragraphs = fs.readFileSync(path.join(out, 'text.bin'), 'utf8').split('\0');
/** Text that looks like a special token is text. */
const options = { allowedSpecial: new Set(), disallowedSpecial: new Set() };

const checked = compareTokenizers();
const { tokens, offsets } = records();
save('tokens.npy', '<i4', tokens);
save('offsets.npy', '<i8', BigInt64Array.from(offsets, BigInt));
const facts = {
  tokenizer: 'GPT-2 by npm gpt-tokenizer',
  checkedParagraphs: checked,
  tokens: tokens.length,
  records: offsets.length - 1,
  tokensSha256: sha256(tokens),
};
fs.writeFileSync(path.join(out, 'tokens.json'), `${JSON.stringify(facts, null, 1)}\n`);
process.stdout.write(`${JSON.stringify(facts)}\n`);

/** On printable ASCII, where the reference is known to be right. */
function compareTokenizers() {
  let count = 0;
  for (let index = 0; index < paragraphs.length && count < checksMax; index += checkStride) {
    const text = paragraphs[index] ?? '';
    if (!/^[\t\n -~]*$/.test(text)) continue;
    if (String(encode(text, options)) !== String(reference.encode(text))) {
      throw new Error(`the two tokenizers disagree on paragraph ${index}`);
    }
    count += 1;
  }
  return count;
}

function records() {
  let tokens = new Int32Array(2 ** 25);
  let length = 0;
  const offsets = [0];
  /** @type {number[]} */
  let pending = [];
  for (const paragraph of paragraphs) {
    for (const token of encode(paragraph, options)) pending.push(token);
    pending.push(lineBreak);
    while (pending.length >= tokensMin) {
      const taken = Math.min(tokensMax, pending.length);
      if (length + taken > tokens.length) {
        const larger = new Int32Array(tokens.length * 2);
        larger.set(tokens);
        tokens = larger;
      }
      for (let index = 0; index < taken; index += 1) tokens[length + index] = pending[index] ?? 0;
      length += taken;
      offsets.push(length);
      pending = pending.slice(taken);
    }
  }
  return { tokens: tokens.slice(0, length), offsets };
}

/** @param {string} name @param {string} descr @param {Int32Array | BigInt64Array} items */
function save(name, descr, items) {
  const fixedBytes = 10;
  const text = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${items.length},), }`;
  const padding = 63 - ((fixedBytes + text.length) % 64);
  const head = Buffer.alloc(fixedBytes);
  head.write('\x93NUMPY\x01\x00', 'latin1');
  head.writeUInt16LE(text.length + padding + 1, 8);
  const parts = [head, `${text}${' '.repeat(padding)}\n`, bytesOf(items)];
  const file = fs.openSync(path.join(out, name), 'w');
  for (const part of parts) fs.writeFileSync(file, part);
  fs.closeSync(file);
}

/** @param {ArrayBufferView} view */
function bytesOf(view) {
  return Buffer.from(view.buffer, view.byteOffset, view.byteLength);
}

/** @param {ArrayBufferView} view */
function sha256(view) {
  return createHash('sha256').update(bytesOf(view)).digest('hex');
}
