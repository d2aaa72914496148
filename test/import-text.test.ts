// Text as tokens, by a tokenizer of the user's own.
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';

import { textLines } from '../ts/importers/bytes.js';
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

t.test('bytes that are no UTF-8 are refused with their line, wherever a block ends', async (t) => {
  const block = 256 * 1024;
  const latin = Buffer.from('M\xfcller', 'latin1');
  const filler = (bytes: number): Buffer => Buffer.alloc(bytes, 'ab\n');
  /** A header of CSV or the first line, then lines; what is wrong is in the line that is told. */
  const cases: readonly (readonly [string, Buffer, number])[] = [
    ['Latin-1', Buffer.concat([Buffer.from('one\n'), latin, Buffer.from('\nthree\n')]), 2],
    ['lone returns', Buffer.concat([Buffer.from('one\rtwo\r'), latin, Buffer.from('\r')]), 3],
    ['returns and feeds', Buffer.concat([Buffer.from('one\r\ntwo\r\n'), latin]), 3],
    ['UTF-16', Buffer.from('\ufeffname\nMüller\n', 'utf16le'), 1],
    ['gzip', gzipSync('name\nvalue\n'), 1],
    ['cut off', Buffer.from('one\ntwo é').subarray(0, -1), 2],
    ['half of a pair', Buffer.from([0x61, 0x0a, 0xed, 0xa0, 0x80, 0x0a]), 2],
    ['too long a form', Buffer.from([0x61, 0x0a, 0xc0, 0xaf, 0x0a]), 2],
    ['the next block', Buffer.concat([filler(block), latin]), Math.floor(block / 3) + 1],
    ...[1, 2, 3].map((behind): [string, Buffer, number] => [
      `begun ${behind} before a block's end`,
      Buffer.concat([filler(block - behind), Buffer.from([0xf0, 0x9d, 0x84]), filler(9)]),
      Math.floor((block - behind) / 3) + 1,
    ]),
  ];
  for (const [what, bytes, line] of cases) {
    for (const [kind, options] of [
      ['txt', { strings: 'utf8' }],
      ['txt', { tokenizer: letters }],
      ['csv', { tokenizer: letters }],
      ['tsv', { strings: 'utf8' }],
    ] as const) {
      const file = scratch.fresh(`x.${kind}`);
      writeFileSync(file, bytes);
      const target = scratch.fresh('out');
      const error = await failureOf(() => importFiles(file, target, { ...raw, ...options }));
      const message = `${file}: line ${line} is no UTF-8: `;
      t.match(error, { code: 'MALFORMED', path: file }, what);
      t.equal(error.message.slice(0, message.length), message, `${what} ${kind}`);
      t.strictSame(beside(target), []);
    }
  }
  const lines = scratch.fresh('x.jsonl');
  writeFileSync(lines, Buffer.from('{"a":"x"}\n{"a":"M\xfcller"}\n', 'latin1'));
  t.match(await failureOf(() => importFiles(lines, scratch.fresh(), { ...raw, strings: 'utf8' })), {
    code: 'MALFORMED',
    message: /line 2 is no UTF-8: .*iconv/,
  });
  writeFileSync(lines, '{"a":"x"}\n{"a":"\\ud800"}\n');
  t.match(await failureOf(() => importFiles(lines, scratch.fresh(), { ...raw, strings: 'utf8' })), {
    code: 'SOURCE',
    message: /row 1 \(line 2\): has half of a surrogate pair/,
  });
});

/** A name that stays on one line. */
function shownSigns(text: string): string {
  return Array.from(text, (sign) => sign.codePointAt(0)?.toString(16)).join(' ');
}

t.test('text is kept to the byte, wherever a block ends', async (t) => {
  const block = 256 * 1024;
  for (const end of ['\n', '\r\n', '\r']) {
    for (const sign of ['a', 'é', '€', '𝄞', '\u2028', end]) {
      for (let before = 0; before <= 4; before += 1) {
        const long = 'x'.repeat(block - before);
        const file = fileOf('x.txt', `\ufeff${long.slice(3)}${sign}z${end}${end}last\u2028one`);
        const texts: string[] = [];
        for await (const line of textLines(file)) texts.push(line);
        const first = sign === end ? [long.slice(3), 'z'] : [`${long.slice(3)}${sign}z`];
        // Compared by hand: a difference would print a block.
        const wanted = [...first, '', 'last\u2028one'];
        const isSame = texts.join('|') === wanted.join('|');
        t.ok(isSame, `${shownSigns(end)} ${shownSigns(sign)} ${before}`);
      }
    }
  }
  const csv = fileOf('x.csv', '\ufeffname\n" é, "" \u2028"\n');
  const rows = scratch.fresh('out');
  await importFiles(csv, rows, { ...raw, strings: 'utf8' });
  await using reader = open(path.join(rows, 'name'));
  t.equal(Buffer.from(reader.record(0).data as Uint8Array).toString(), ' é, " \u2028');
  const lines = fileOf('x.jsonl', '\ufeff{"a":"\u2028\u2029"}\n');
  const json = scratch.fresh('out');
  await importFiles(lines, json, { ...raw, strings: 'utf8' });
  await using other = open(path.join(json, 'a'));
  t.equal(Buffer.from(other.record(0).data as Uint8Array).toString(), '\u2028\u2029');
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
