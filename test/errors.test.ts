// One error family: codes, places, JSON, and what a native failure becomes.
import { inspect } from 'node:util';
import t from 'tap';
import {
  ArgumentRangeError,
  ArgumentTypeError,
  type ErrorCode,
  errorCodes,
  fromNative,
  isArgumentError,
  LoaderxError,
  show,
} from '../ts/errors.js';

function nativeFailure(status: number, fields: Record<string, unknown> = {}): Error {
  return Object.assign(new Error('a frame is damaged'), { status, fileKind: 0, ...fields });
}

t.test('the codes that callers match on are all there', async (t) => {
  const contract =
    'NOT_FOUND NOT_PUBLISHED EXISTS LOCKED MALFORMED SCHEMA CODEC DICTIONARY IO TOO_LARGE ' +
    'OUT_OF_MEMORY OUT_OF_RANGE INVALID_ARGUMENT CLOSED BUSY BUILD_FAILED ABORTED UNSUPPORTED';
  for (const code of contract.split(' ')) t.ok(errorCodes.includes(code as ErrorCode), code);
  t.ok(Object.isFrozen(errorCodes));
});

t.test('a LoaderxError has the fields that are known and no others', async (t) => {
  const cause = new Error('below');
  const error = new LoaderxError('IO', 'it failed', { path: '/a', osCode: 'ENOSPC' }, { cause });
  t.ok(error instanceof Error);
  t.match(error, { name: 'LoaderxError', code: 'IO', path: '/a', osCode: 'ENOSPC', cause });
  t.notOk('record' in error);
  t.notOk('file' in error);
  t.equal(String(error), 'LoaderxError: it failed');
  t.match(error.stack, /errors\.test/);
  t.match(inspect(error), /ENOSPC/);
});

t.test('every native status has its code', async (t) => {
  const codes = [
    'OUT_OF_MEMORY',
    'EXISTS',
    'NOT_FOUND',
    'LOCKED',
    'MALFORMED',
    'IO',
    'CODEC',
    'OUT_OF_RANGE',
    'TOO_LARGE',
    'BUILD_FAILED',
    'UNEXPECTED',
    'NOT_PUBLISHED',
    'DICTIONARY',
    'ABORTED',
    'UNSUPPORTED',
  ];
  for (const [index, code] of codes.entries()) {
    t.match(fromNative(nativeFailure(-1 - index), '/a'), {
      name: 'LoaderxError',
      code,
      path: '/a',
    });
  }
  t.match(fromNative(nativeFailure(-99)), { code: 'UNEXPECTED' });
  const folder = { ...nativeFailure(-6), message: 'making it failed: ENOENT', osCode: 'ENOENT' };
  t.match(fromNative(folder, '/a'), { message: /^\/a: making it failed: ENOENT$/ });
});

t.test('a native failure names container, file, record and the system code', async (t) => {
  const error = fromNative(
    nativeFailure(-7, { fileKind: 3, shard: 2, record: 17, osCode: 'EIO' }),
    '/a',
  ) as LoaderxError;
  t.match(error, { path: '/a', file: 'data_2.zr', shard: 2, record: 17, osCode: 'EIO' });
  t.equal(error.message, '/a: a frame is damaged (data_2.zr, record 17, EIO)');
  t.match(fromNative(nativeFailure(-5, { fileKind: 2 }), '/a'), { file: 'meta.zr' });
  t.match(fromNative(nativeFailure(-13, { fileKind: 4 }), '/a'), { file: 'dict.zr' });
  t.notOk('file' in (fromNative(nativeFailure(-6, { fileKind: 1 }), '/a') as object));
  t.equal((fromNative(nativeFailure(-3)) as Error).message, 'a frame is damaged');
  const source = nativeFailure(-6, { fileKind: 6, osCode: 'EIO' });
  const ofSource = fromNative(source, '/a', undefined, 'b.npy') as LoaderxError;
  t.match(ofSource, { path: 'b.npy', osCode: 'EIO', message: 'b.npy: a frame is damaged (EIO)' });
  t.notOk('file' in ofSource);
  t.match(fromNative(nativeFailure(-6, { fileKind: 3, shard: 0 }), '/a', undefined, 'b.npy'), {
    path: '/a',
    file: 'data_0.zr',
  });
});

t.test('what is no native failure stays as it is', async (t) => {
  for (const error of [new TypeError('x'), 'text', undefined, null, { status: -1 }]) {
    t.equal(fromNative(error, '/a'), error);
  }
});

t.test('argument errors are TypeError and RangeError with a code', async (t) => {
  const wrongKind = new ArgumentTypeError('ids', 'ids must be a list');
  t.ok(wrongKind instanceof TypeError);
  t.match(wrongKind, { name: 'TypeError', code: 'INVALID_ARGUMENT', field: 'ids' });
  const tooFar = new ArgumentRangeError('ids', 'there is no record 7', 'OUT_OF_RANGE', 7);
  t.ok(tooFar instanceof RangeError);
  t.match(tooFar, { name: 'RangeError', code: 'OUT_OF_RANGE', field: 'ids', record: 7 });
  t.ok(isArgumentError(wrongKind) && isArgumentError(tooFar));
  t.notOk(isArgumentError(new TypeError('x')));
  t.notOk(isArgumentError(new LoaderxError('INVALID_ARGUMENT', 'x')));
});

t.test('all of them survive JSON', async (t) => {
  const far = new LoaderxError('OUT_OF_RANGE', 'far', { path: '/a', record: 2n ** 53n + 1n });
  t.same(JSON.parse(JSON.stringify(far)), {
    name: 'LoaderxError',
    code: 'OUT_OF_RANGE',
    message: 'far',
    path: '/a',
    record: '9007199254740993',
  });
  t.same(JSON.parse(JSON.stringify({ error: new ArgumentTypeError('a', 'b') })), {
    error: { name: 'TypeError', code: 'INVALID_ARGUMENT', message: 'b', field: 'a' },
  });
  t.same(JSON.parse(JSON.stringify(new ArgumentRangeError('a', 'b', 'TOO_LARGE'))), {
    name: 'RangeError',
    code: 'TOO_LARGE',
    message: 'b',
    field: 'a',
  });
});

t.test('show is short, and never throws', async (t) => {
  // A dtype of a stored schema is shown so; nothing in it may reach a terminal as a command.
  const signs = '\u0007\u001b]0;x\u007f\u009b2J\u202eabc\u2066';
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is they that are looked for.
  t.notMatch(show(signs), /[\u0000-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/);
  t.equal(JSON.parse(show(signs)), signs, 'it is still readable');
  const cases: readonly (readonly [unknown, string])[] = [
    ['a', '"a"'],
    [-0, '-0'],
    [Number.NaN, 'NaN'],
    [3n, '3n'],
    [null, 'null'],
    [undefined, 'undefined'],
    [true, 'true'],
    [() => 1, 'a function'],
    [Symbol('x'), 'a symbol'],
    [{}, 'an object'],
    [new Map(), 'an object of class Map'],
    [new Uint8Array(5), 'Uint8Array of 5 bytes'],
    [[1, 'a', [2], null], '[1, "a", {…}, null]'],
    [Object.create(null), 'an object'],
  ];
  for (const [value, text] of cases) t.equal(show(value), text);
  t.ok(show('x'.repeat(1e6)).length < 120);
  t.ok(show(new Array(1e6).fill(1)).length < 120);
  const hostile = new Proxy(
    {},
    {
      get() {
        throw new Error('no');
      },
    },
  );
  t.equal(show(hostile), 'an object');
});
