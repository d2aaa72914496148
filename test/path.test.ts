// Where a container is: what callers may say, and what the native side is told.
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { locate } from '../ts/store/path.js';

const onWindows = process.platform === 'win32';

t.test(
  'relative paths are put behind the current folder, and nothing else is changed',
  async (t) => {
    t.same(locate('a/b'), { shown: 'a/b', native: path.join(process.cwd(), 'a/b') });
    const absolute = path.resolve('x');
    t.same(locate(absolute), { shown: absolute, native: absolute });
    if (onWindows) return;
    t.equal(locate('a/../b').native, `${process.cwd()}/a/../b`, 'a may be a link');
    t.equal(locate('/a//').native, '/a');
    t.equal(locate('/').native, '/');
    t.equal(locate('a ').native, `${process.cwd()}/a `);
  },
);

t.test('file URLs', async (t) => {
  const target = path.resolve('Ünï cøde 日本 #1 %20 q');
  t.same(locate(pathToFileURL(target)), { shown: target, native: target });
  for (const url of ['https://example.org/a', 'data:,a', 'file:///a%2Fb', 'file:///a%FF']) {
    t.throws(() => locate(new URL(url)), { name: 'TypeError', code: 'INVALID_ARGUMENT' }, url);
  }
  t.throws(() => locate(new URL('file:///a%00b')), { name: 'RangeError', field: 'path' });
});

t.test('bytes', async (t) => {
  t.same(locate(Buffer.from('日本')), { shown: '日本', native: path.resolve('日本') });
  t.same(locate(new TextEncoder().encode('a')).shown, 'a');
  if (onWindows) return;
  const foreign = locate(Buffer.from([0x2f, 0x61, 0xff, 0x2f]));
  t.equal(foreign.shown, '/a\\xff/');
  t.same([...(foreign.native as Uint8Array)], [0x2f, 0x61, 0xff]);
  const relative = locate(Buffer.from([0xff])).native as Uint8Array;
  t.equal(Buffer.from(relative).toString('latin1'), `${process.cwd()}/\xff`);
  const shared = new Uint8Array(new SharedArrayBuffer(2)).fill(0xfe);
  const copy = locate(shared);
  shared.fill(0x61);
  t.equal(copy.shown, '\\xfe\\xfe');
});

t.test('what no path is', async (t) => {
  for (const value of [undefined, null, 1, {}, [], true, Symbol('a'), ['a'], new String('a')]) {
    t.throws(() => locate(value), { name: 'TypeError', code: 'INVALID_ARGUMENT', field: 'path' });
  }
  for (const value of [
    '',
    Buffer.alloc(0),
    'a\0b',
    '\0',
    Buffer.from('a\0'),
    'a\ud800',
    '\udfffa',
  ]) {
    t.throws(() => locate(value), { name: 'RangeError', code: 'INVALID_ARGUMENT', field: 'path' });
  }
  if (!onWindows) t.throws(() => locate(Buffer.from([0xff, 0])), { name: 'RangeError' });
  t.equal(locate('a😀').shown, 'a😀', 'a whole pair is a character');
});
