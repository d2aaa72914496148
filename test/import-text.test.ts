// Text as tokens, by a tokenizer of the user's own.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';

import { importFiles } from '../ts/importers/import.js';
import { loadTokenizer } from '../ts/importers/tokenizer.js';
import { open } from '../ts/index.js';
import { told } from './support/command.js';
import { codeOf, failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const raw = { codec: 'raw' } as const;
const letters = {
  encode: (text: string): number[] => Array.from(text, (sign) => sign.codePointAt(0) ?? 0),
  decode: (ids: number[]): string => String.fromCodePoint(...ids),
};

function fileOf(name: string, text: string): string {
  const file = scratch.fresh(name);
  writeFileSync(file, text);
  return file;
}

t.test('a line is a record; blank ones are none', async (t) => {
  const file = fileOf('x.txt', 'one\r\n\n  \nzwei é\n𝄞');
  const target = scratch.fresh('out');
  const { isSingle, containers } = await importFiles(file, target, { ...raw, tokenizer: letters });
  t.equal(isSingle, true);
  t.match(containers, [{ kind: 'ragged', dtype: 'int32', shape: 1, records: 3 }]);
  await using reader = open(target);
  const texts = [0, 1, 2].map((id) =>
    letters.decode(Array.from(reader.record(id).data as Int32Array)),
  );
  t.strictSame(texts, ['one', 'zwei é', '𝄞']);
  const bytes = scratch.fresh('bytes');
  await importFiles(file, bytes, { ...raw, strings: 'utf8' });
  await using plain = open(bytes);
  t.equal(Buffer.from(plain.record(1).data as Uint8Array).toString(), 'zwei é');
  t.equal(await codeOf(() => importFiles(file, scratch.fresh('no'), raw)), 'UNSUPPORTED');
});

t.test('columns of text in tables, and a promise as an answer', async (t) => {
  const file = fileOf('x.jsonl', '{"id":1,"text":"ab"}\n{"id":2,"text":"c"}');
  const target = scratch.fresh('out');
  const later = { encode: async (text: string) => Uint32Array.from(letters.encode(text)) };
  await importFiles(file, target, { ...raw, tokenizer: later });
  await using reader = open(path.join(target, 'text'));
  t.strictSame(Array.from(reader.record(0).data as Int32Array), [97, 98]);
});

t.test('what a tokenizer gives is held to what tokens are', async (t) => {
  const file = fileOf('x.txt', 'one\ntwo\n');
  const failing = (text: string): number[] => {
    if (text === 'two') throw new Error('no such word');
    return [1];
  };
  for (const [encode, message] of [
    [() => [], /row 0: has no tokens/],
    [() => [1, -1], /row 0: token 1 is -1/],
    [() => [0.5], /token 0 is 0.5/],
    [() => [2 ** 31], /token 0 is 2147483648/],
    [() => 'ab', /token 0 is "a"/],
    [() => undefined, /gave undefined/],
    [failing, /row 1: the tokenizer failed: no such word/],
  ] as const) {
    const target = scratch.fresh('out');
    const tokenizer = { encode: encode as unknown as (text: string) => number[] };
    const error = await failureOf(() => importFiles(file, target, { ...raw, tokenizer }));
    t.match(error, { code: 'SOURCE', field: 'x', message });
    t.strictSame(beside(target), []);
  }
  const numbers = fileOf('x.csv', 'a\n1\n');
  const wrong = { ...raw, tokenizer: letters };
  t.equal(await codeOf(() => importFiles(numbers, scratch.fresh(), wrong)), 'INVALID_ARGUMENT');
});

t.test('a tokenizer is found from the working folder', async (t) => {
  const folder = scratch.folder();
  const put = (name: string, text: string): void => {
    const file = path.join(folder, name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  };
  put(
    'own.mjs',
    'export const encode = () => [1]; export const other = () => [2]; export const no = 3;',
  );
  put('node_modules/plain/package.json', '{"main":"x.cjs"}');
  put('node_modules/plain/x.cjs', 'module.exports = { encode: () => [3] };');
  put(
    'node_modules/@a/modern/package.json',
    '{"type":"module","exports":{".":{"types":"./x.d.ts","import":{"default":"./x.js"}}}}',
  );
  put('node_modules/@a/modern/x.js', 'export default () => [4];');
  const first = async (spec: string): Promise<unknown> => {
    const { encode } = await loadTokenizer(spec, folder);
    return (await encode('x'))[0];
  };
  t.equal(await first('./own.mjs'), 1);
  t.equal(await first('./own.mjs:other'), 2);
  t.equal(await first('plain'), 3);
  t.equal(await first('@a/modern'), 4);
  t.equal(await first(path.join(folder, 'own.mjs')), 1);
  for (const [spec, message] of [
    ['./own.mjs:no', /is no tokenizer: encode\(text\) is wanted/],
    ['./own.mjs:gone', /has .*encode/],
    ['./gone.mjs', /cannot be loaded/],
    ['gone', /npm install it there/],
  ] as const) {
    t.match(await failureOf(() => loadTokenizer(spec, folder)), {
      code: 'INVALID_ARGUMENT',
      message,
    });
  }
});

t.test('head shows tokens as text', async (t) => {
  const file = fileOf('x.txt', 'a line\nanother\n');
  const target = scratch.fresh('out');
  await importFiles(file, target, { ...raw, tokenizer: letters });
  const module = scratch.fresh('letters.mjs');
  writeFileSync(
    module,
    'export const encode = () => []; export const decode = (ids) => String.fromCodePoint(...ids);',
  );
  const shown = await told('head', target, '--tokenizer', module);
  t.match(shown, { code: 0, out: /a line[\s\S]*another/, err: '' });
  const { out } = await told('head', target, '--tokenizer', module, '--json');
  t.match(JSON.parse(out).records, [{ text: 'a line' }, { text: 'another' }]);
  t.match(await told('head', target, '--tokenizer', './gone.mjs'), { code: 2 });
});
