// Tar archives of samples as containers: WebDataset's rules for keys, each kind of member, shards, parts; and each
// fault that an archive may have, refused by name.
import { execFileSync } from 'node:child_process';
import { readFileSync, truncateSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { importFiles, surveyFiles } from '../ts/importers/import.js';
import { npyHeader } from '../ts/importers/npy-header.js';
import { webDataset } from '../ts/importers/webdataset.js';
import { concat, logicalDigest, type NdArray, open } from '../ts/index.js';
import { encodePng } from '../ts/inspect/png.js';
import { codeOf, failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';
import { paxEntry, type TarEntry, tarOf } from './support/tar.mjs';

const scratch = new Scratch(t);
const raw = { codec: 'raw' } as const;

function npy(dtype: 'float32' | 'int16', shape: readonly number[], seed: number): Buffer {
  const count = shape.reduce((product, size) => product * size, 1);
  const items = dtype === 'float32' ? new Float32Array(count) : new Int16Array(count);
  for (let at = 0; at < count; at += 1) items[at] = seed * 100 + at;
  return Buffer.concat([npyHeader(dtype, shape), new Uint8Array(items.buffer)]);
}

function png(seed: number, width = 6, height = 4): Uint8Array {
  const pixels = Uint8Array.from({ length: width * height * 3 }, (_, at) => (at * 7 + seed) & 255);
  return encodePng(width, height, 3, pixels);
}

/** A sample of a picture, an array, a label and a text. */
function sample(index: number): TarEntry[] {
  const key = `./train/${String(index).padStart(6, '0')}`;
  return [
    { name: `${key}.png`, bytes: png(index) },
    { name: `${key}.left.npy`, bytes: npy('float32', [2, 3], index) },
    { name: `${key}.cls`, bytes: `${index % 5}\n` },
    { name: `${key}.txt`, bytes: `text ${index}` },
  ];
}

function archive(entries: readonly TarEntry[], name = 'a.tar'): string {
  const file = scratch.fresh(name);
  writeFileSync(file, tarOf(entries));
  return file;
}

async function record(container: string, id: number): Promise<NdArray> {
  await using reader = open(container);
  return reader.record(id);
}

async function items(container: string, id: number): Promise<(number | bigint)[]> {
  return [...(await record(container, id)).data];
}

async function digestOf(...containers: readonly string[]): Promise<string> {
  await using reader =
    containers.length === 1
      ? open(containers[0] as string)
      : concat(containers.map((each) => open(each)));
  return await logicalDigest(reader);
}

const utf8 = { ...raw, strings: 'utf8' } as const;

t.test('each kind of member, by the ends of their names', async (t) => {
  const file = archive([0, 1, 2, 3, 4, 5, 6].flatMap(sample));
  const target = scratch.fresh('out');
  const survey = await surveyFiles(file, target, { strings: 'utf8' });
  const { containers, isSingle } = await importFiles(file, target, utf8);
  t.equal(isSingle, false);
  t.strictSame(
    survey.containers,
    containers.map(({ diskBytes: _, ...rest }) => rest),
  );
  t.match(containers, [
    { column: 'png', kind: 'dense', dtype: 'uint8', shape: [4, 6, 3], records: 7 },
    { column: 'left.npy', kind: 'dense', dtype: 'float32', shape: [2, 3] },
    { column: 'cls', kind: 'dense', dtype: 'int64', shape: [] },
    { column: 'txt', kind: 'ragged', dtype: 'uint8', shape: 1 },
  ]);
  t.strictSame(await items(path.join(target, 'left.npy'), 5), [500, 501, 502, 503, 504, 505]);
  t.strictSame((await record(path.join(target, 'cls'), 6)).data[0], 1n);
  t.equal(
    Buffer.from((await record(path.join(target, 'txt'), 3)).data as Uint8Array).toString(),
    'text 3',
  );
  t.equal((await record(path.join(target, 'png'), 2)).data[1], 9);
  const ids = scratch.fresh('tokens');
  await importFiles(file, ids, {
    ...raw,
    columns: ['txt'],
    tokenizer: { encode: (text) => [...text].map((letter) => letter.codePointAt(0) ?? 0) },
  });
  t.strictSame((await record(path.join(ids, 'txt'), 3)).data[5], '3'.charCodeAt(0));
});

t.test('shards: files, a folder, packed; the same records', async (t) => {
  const folder = scratch.folder();
  const shards = [0, 1, 2].map((shard) => {
    const file = path.join(folder, `x-00000${shard}.tar`);
    writeFileSync(file, tarOf([0, 1, 2, 3].flatMap((at) => sample(shard * 4 + at))));
    return file;
  });
  const whole = scratch.fresh('whole');
  await importFiles(archive(Array.from({ length: 12 }, (_, at) => sample(at)).flat()), whole, utf8);
  const packed = shards.map((shard) => {
    const file = scratch.fresh('x.tar.gz');
    writeFileSync(file, gzipSync(readFileSync(shard)));
    return file;
  });
  for (const sources of [shards, folder, packed, [packed[0], shards[1], packed[2]] as string[]]) {
    const target = scratch.fresh('out');
    await importFiles(sources, target, { ...utf8, codec: 'zstd' });
    for (const name of ['png', 'left.npy', 'cls', 'txt']) {
      t.equal(
        await digestOf(path.join(target, name)),
        await digestOf(path.join(whole, name)),
        name,
      );
    }
  }
  writeFileSync(path.join(folder, 'lone.png'), png(1));
  t.match(await failureOf(() => surveyFiles(folder, 'x')), {
    code: 'INVALID_ARGUMENT',
    message: /tar archives and pictures, such as lone\.png/,
  });
  const named = { set: shards[0] as string };
  t.match(await failureOf(() => surveyFiles(named, 'x')), {
    message: /has columns of its own \(png/,
  });
});

t.test('parts have the same records as one', async (t) => {
  const many = Array.from({ length: 2500 }, (_, at): TarEntry[] => [
    { name: `${at}.npy`, bytes: npy('int16', [1 + (at % 3)], at % 300) },
    { name: `${at}.cls`, bytes: String(at) },
  ]);
  const shards = [many.slice(0, 1300), many.slice(1300)].map((each) => archive(each.flat()));
  const whole = scratch.fresh('whole');
  await importFiles(shards, whole, raw);
  const packed = scratch.fresh('x.tgz');
  writeFileSync(packed, gzipSync(tarOf(many.flat())));
  for (const [sources, of] of [
    [shards, 1],
    [shards, 2],
    [shards, 7],
    [packed, 3],
  ] as const) {
    const target = scratch.fresh('parts');
    const places: string[] = [];
    for (let part = 0; part < of; part += 1) {
      const made = await importFiles(sources, target, { ...raw, part: { part, of } });
      places.push(made.path);
      t.equal(made.wasThere, undefined);
    }
    for (const name of ['npy', 'cls']) {
      const parts = places.map((place) => path.join(place, name));
      t.equal(await digestOf(...parts), await digestOf(path.join(whole, name)), `${of} of ${name}`);
    }
  }
});

t.test('arrays of several shapes are ragged; of both orders and byte orders', async (t) => {
  const fortran = Buffer.from(npy('int16', [2, 3], 0));
  fortran.write('True, ', fortran.indexOf('False,'), 'latin1');
  const big = Buffer.from(npy('int16', [2, 3], 0));
  big.write('>', big.indexOf('<i2'), 'latin1');
  const file = archive([
    { name: 'a.npy', bytes: npy('int16', [2, 3], 0) },
    { name: 'b.npy', bytes: fortran },
    { name: 'c.npy', bytes: big },
    { name: 'd.npy', bytes: npy('int16', [1, 2], 0) },
  ]);
  const target = scratch.fresh('out');
  const { containers } = await importFiles(file, target, raw);
  t.match(containers, [{ kind: 'ragged', dtype: 'int16', shape: 2, records: 4 }]);
  const container = path.join(target, 'npy');
  t.strictSame(await items(container, 0), [0, 1, 2, 3, 4, 5]);
  t.strictSame(await items(container, 1), [0, 2, 4, 1, 3, 5]);
  t.strictSame(await items(container, 2), [0, 256, 512, 768, 1024, 1280]);
  t.strictSame((await record(container, 3)).shape, [1, 2]);
});

t.test('a size for all pictures', async (t) => {
  const file = archive([
    { name: 'a.png', bytes: png(1) },
    { name: 'b.png', bytes: png(2, 9, 9) },
  ]);
  const target = scratch.fresh('out');
  const sized = { ...raw, size: [4, 6], layout: 'CHW' } as const;
  t.match(await importFiles(file, target, sized), {
    containers: [{ shape: [3, 4, 6], kind: 'dense' }],
  });
  t.strictSame((await items(path.join(target, 'png'), 0)).slice(0, 2), [1, 22]);
});

t.test('names: longer ones, odd ones, and ways out that lead nowhere', async (t) => {
  const far = `${'deep/'.repeat(60)}${'k'.repeat(120)}`;
  const entries: TarEntry[] = [
    { name: 'dir/', type: '5' },
    { name: '../../../etc/passwd.cls', bytes: '1' },
    { name: '/etc/shadow.cls', bytes: '2' },
    paxEntry({ path: `${far}.cls`, mtime: '1.5' }),
    { name: 'cut', bytes: '3' },
    { name: '././@LongLink', type: 'L', bytes: `${far}.2.cls\0`, magic: 'gnu' },
    { name: 'cut', bytes: '4', magic: 'gnu' },
    { name: 'a.cls', prefix: 'p'.repeat(150), bytes: '5' },
    { name: '._a.cls', bytes: 'of a Mac' },
    { name: '__meta__', bytes: 'of WebDataset' },
    { name: '__meta__/a.cls', bytes: 'of WebDataset' },
    { name: '\xff\xfe.cls', bytes: '6', magic: 'old' },
    { name: '\xff\xfd.CLS', bytes: '7', type: '\0' },
    paxEntry({ comment: 'git archive' }, 'g'),
    { name: 'x.cls', bytes: '-8', size: Buffer.from([0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]) },
  ];
  const target = scratch.fresh('out');
  const failure = await failureOf(() => importFiles(archive(entries), target, raw));
  t.match(failure, { code: 'SOURCE', field: '2.cls', record: 2 });
  await importFiles(archive(entries), target, { ...raw, columns: ['cls'] });
  await using reader = open(path.join(target, 'cls'));
  const { data } = (await reader.gather([0, 1, 2, 3, 4, 5, 6])) as unknown as NdArray<'int64'>;
  t.strictSame(Array.from(data), [1n, 2n, 3n, 5n, 6n, 7n, -8n]);
  t.strictSame(beside(target), ['out'], 'nothing else was written');
});

t.test('what is no archive, or a damaged one', async (t) => {
  const good = tarOf(sample(0).concat(sample(1)));
  const body = good.subarray(0, good.length - 1024);
  const faults: readonly (readonly [string, Uint8Array, string, RegExp])[] = [
    ['empty', Buffer.alloc(0), 'MALFORMED', /it is empty/],
    ['zeros', Buffer.alloc(1024), 'SOURCE', /there are no samples/],
    ['noise', Buffer.alloc(2048, 'noise'), 'MALFORMED', /it is no tar archive/],
    ['no end', body, 'MALFORMED', /cut off at byte \d+: the blocks of zeros/],
    ['within a header', good.subarray(0, 512 * 3 + 100), 'MALFORMED', /cut off/],
    [
      'within a member',
      good.subarray(0, 600),
      'MALFORMED',
      /000000\.png": it is cut off: it has \d+ bytes/,
    ],
    ['two archives', Buffer.concat([good, good]), 'MALFORMED', /something behind its end/],
    [
      'sum',
      tarOf([
        { name: 'a.cls', bytes: '1' },
        { name: 'b.cls', bytes: '1', sumFault: 1 },
      ]),
      'MALFORMED',
      /the header at byte 1024 is damaged/,
    ],
    [
      'size',
      tarOf([{ name: 'a.cls', bytes: '1', size: Buffer.from('12x') }]),
      'MALFORMED',
      /no size that can be/,
    ],
    [
      'negative',
      tarOf([{ name: 'a.cls', size: Buffer.alloc(12, 0xff) }]),
      'MALFORMED',
      /no size that can be/,
    ],
    [
      'lying size',
      tarOf([{ name: 'a.npy', size: 2 ** 28, bytes: 'x' }]),
      'MALFORMED',
      /it is cut off/,
    ],
    [
      'pax length',
      tarOf([{ name: 'p', type: 'x', bytes: '99 path=a\n' }]),
      'MALFORMED',
      /PAX header at byte 0 is damaged/,
    ],
    [
      'pax size',
      tarOf([paxEntry({ size: '-1' }), { name: 'a.cls', bytes: '1' }]),
      'MALFORMED',
      /cannot be/,
    ],
    [
      'pax for nothing',
      tarOf([paxEntry({ path: 'a.cls' })]),
      'MALFORMED',
      /the member of a header is missing/,
    ],
    ['long name', tarOf([{ name: 'L', type: 'L', size: 2 ** 21 }]), 'TOO_LARGE', /2097152 bytes/],
    [
      'long name without an end',
      tarOf([
        { name: 'L', type: 'L', size: 1, bytes: 'a.cls\0' },
        { name: 'b.cls', bytes: '1' },
      ]),
      'MALFORMED',
      /long name at byte 0 does not end/,
    ],
    [
      'two names',
      tarOf([
        paxEntry({ path: 'a.cls' }),
        { name: 'L', type: 'L', bytes: 'b.cls\0' },
        { name: 'c.cls', bytes: '1' },
      ]),
      'MALFORMED',
      /the header at byte 1024 gives the next member another name or size/,
    ],
    [
      'two sizes',
      tarOf([paxEntry({ size: '1' }), paxEntry({ size: '2' }), { name: 'c.cls', bytes: '12' }]),
      'MALFORMED',
      /another name or size/,
    ],
    [
      'folder with bytes',
      tarOf([
        { name: 'a/', type: '5', size: 512 },
        { name: 'a/b.cls', bytes: '1' },
      ]),
      'MALFORMED',
      /the header at byte 0 is a folder/,
    ],
    [
      'file of a folder’s name',
      tarOf([
        { name: 'a.cls/', bytes: '1' },
        { name: 'b.cls', bytes: '1' },
      ]),
      'MALFORMED',
      /the header at byte 0 is a folder/,
    ],
    ['link', tarOf([{ name: 'a.cls', type: '1' }]), 'UNSUPPORTED', /"a\.cls": it is a link/],
    ['symbolic link', tarOf([{ name: 'a.cls', type: '2' }]), 'UNSUPPORTED', /a symbolic link/],
    ['device', tarOf([{ name: 'a.cls', type: '3' }]), 'UNSUPPORTED', /a device/],
    ['block device', tarOf([{ name: 'a.cls', type: '4' }]), 'UNSUPPORTED', /a device/],
    ['pipe', tarOf([{ name: 'a.cls', type: '6' }]), 'UNSUPPORTED', /a pipe/],
    ['sparse', tarOf([{ name: 'a.cls', type: 'S', bytes: '1' }]), 'UNSUPPORTED', /a sparse file/],
    [
      'sparse by PAX',
      tarOf([paxEntry({ 'GNU.sparse.major': '1' }), { name: 'a.cls', bytes: '1' }]),
      'UNSUPPORTED',
      /a sparse file/,
    ],
    [
      'path for all',
      tarOf([paxEntry({ path: 'x' }, 'g'), { name: 'a.cls', bytes: '1' }]),
      'UNSUPPORTED',
      /for all that follow/,
    ],
    ['volume', tarOf([{ name: 'a.cls', type: 'V' }]), 'UNSUPPORTED', /of the unknown kind "V"/],
  ];
  for (const [name, bytes, code, message] of faults) {
    const file = scratch.fresh('a.tar');
    writeFileSync(file, bytes);
    const target = scratch.fresh('out');
    const failure = await failureOf(() => importFiles(file, target, utf8));
    t.match(failure, { code, message, path: file }, name);
    t.strictSame(beside(target), [], 'nothing stays behind');
    const packed = scratch.fresh('a.tar.gz');
    writeFileSync(packed, gzipSync(bytes));
    t.equal(await codeOf(() => importFiles(packed, target, utf8)), code, `${name}, packed`);
  }
  const cut = scratch.fresh('a.tar.gz');
  const zipped = gzipSync(good);
  writeFileSync(cut, zipped.subarray(0, zipped.length - 9));
  t.match(await failureOf(() => surveyFiles(cut, 'x')), {
    code: 'MALFORMED',
    message: /cannot be unpacked/,
  });
  writeFileSync(cut, good);
  t.equal(await codeOf(() => surveyFiles(cut, 'x')), 'MALFORMED', 'not packed at all');
  t.equal(await codeOf(() => surveyFiles('no-such.tar', 'x')), 'NOT_FOUND');
  t.equal(
    await codeOf(() => surveyFiles(scratch.folder(), 'x', { format: 'webdataset' })),
    'SOURCE',
  );
});

t.test('zeros behind the end are not read for ever', async (t) => {
  const file = archive(sample(0));
  const target = scratch.fresh('out');
  truncateSync(file, 32 * 2 ** 20);
  await importFiles(file, target, utf8);
  // A hole: it takes no room on the disk.
  truncateSync(file, 2 ** 36);
  t.match(await failureOf(() => importFiles(file, scratch.fresh('out'), utf8)), {
    code: 'TOO_LARGE',
    message: /behind its end/,
    path: file,
  });
});

t.test(
  'a pipe of such a name is not waited for',
  { skip: process.platform === 'win32' && 'Windows has no mkfifo' },
  async (t) => {
    const folder = scratch.folder();
    execFileSync('mkfifo', [path.join(folder, 'a.tar')]);
    const target = scratch.fresh('out');
    t.equal(await codeOf(() => importFiles(folder, target, utf8)), 'UNSUPPORTED');
    t.strictSame(beside(target), []);
  },
);

t.test('two ends that are no UTF-8 do not become one column', async (t) => {
  const file = archive([
    { name: 'a.\xff.cls', bytes: '1' },
    { name: 'b.\xfe.cls', bytes: '2' },
  ]);
  const failure = await failureOf(() => importFiles(file, scratch.fresh('out'), raw));
  t.match(failure, { code: 'UNSUPPORTED', message: /no UTF-8/ });
});

t.test('samples that are not alike, and members that cannot be', async (t) => {
  const label = (name: string, bytes = '1'): TarEntry => ({ name, bytes });
  const array = (name: string, bytes: Uint8Array): TarEntry => ({ name, bytes });
  const one = npy('int16', [2], 1);
  const faults: readonly (readonly [string, readonly TarEntry[], object])[] = [
    [
      'a member is missing',
      [label('a.cls'), label('a.id'), label('b.cls')],
      {
        code: 'SOURCE',
        field: 'id',
        record: 1,
        message: /sample "b" \(row 1\) has no member "id"/,
      },
    ],
    [
      'a member too many',
      [label('a.cls'), label('b.cls'), label('b.id')],
      {
        code: 'SOURCE',
        field: 'id',
        record: 1,
        message: /has a member "id", and the first one has none/,
      },
    ],
    [
      'samples in pieces',
      [label('b.cls'), label('a.id'), label('a.cls'), label('b.id')],
      {
        code: 'SOURCE',
        record: 1,
        message: /the members of sample "b" do not stand beside each other.*tar --sort=name/,
      },
    ],
    [
      'samples in pieces, with the later one in two',
      [label('c.cls'), label('a.id'), label('a.cls'), label('b.cls'), label('a.count')],
      { code: 'SOURCE', message: /sample "a" do not stand beside each other/ },
    ],
    [
      'a member twice',
      [label('a.cls'), label('a.cls')],
      { code: 'SOURCE', field: 'cls', message: /"a\.cls": sample "a" has a member "cls" already/ },
    ],
    [
      'twice but for case',
      [label('a.cls'), label('a.CLS')],
      { code: 'SOURCE', message: /"a\.CLS": sample "a"/ },
    ],
    [
      'another kind',
      [label('a.cls'), label('a.pickle')],
      { code: 'UNSUPPORTED', message: /"a\.pickle" is of a kind that is not read: \.npy, / },
    ],
    [
      'no dot',
      [label('a.cls'), label('README')],
      { code: 'UNSUPPORTED', message: /"README" has no dot/ },
    ],
    [
      'other dtypes',
      [array('a.npy', one), array('b.npy', npy('float32', [2], 1))],
      {
        code: 'SOURCE',
        record: 1,
        message:
          /sample "b" \(row 1\) has a "npy" that is float32 of shape \[2\], and the first one is int16/,
      },
    ],
    [
      'other ranks',
      [array('a.npy', one), array('b.npy', npy('int16', [2, 1], 1))],
      { code: 'SOURCE', record: 1, message: /one dtype and one rank/ },
    ],
    [
      'a damaged array',
      [array('a.npy', one.subarray(0, one.length - 1))],
      {
        code: 'MALFORMED',
        field: 'npy',
        record: 0,
        message: /"a\.npy": it has 131 bytes, and its header tells of 132/,
      },
    ],
    ['no array', [array('a.npy', Buffer.from('text'))], { code: 'MALFORMED', message: /"a\.npy"/ }],
    [
      'an empty array',
      [array('a.npy', Buffer.from(npyHeader('int16', [0])))],
      { code: 'SOURCE', message: /is empty/ },
    ],
    [
      'objects',
      [array('a.npy', Buffer.from(one.toString('latin1').replace("'<i2'", "'|O' "), 'latin1'))],
      { code: 'UNSUPPORTED', message: /object/ },
    ],
    [
      'a damaged picture',
      [array('a.png', png(1)), array('b.png', png(1).subarray(0, 60))],
      { code: 'MALFORMED', field: 'png', record: 1, message: /"b\.png": column "png", row 1: / },
    ],
    [
      'no picture',
      [array('a.png', Buffer.from('GIF89a'))],
      { code: 'UNSUPPORTED', record: 0, message: /"a\.png": column "png", row 0: .*GIF/ },
    ],
    [
      'no number',
      [label('a.cls', 'cat')],
      { code: 'SOURCE', message: /column "cls", row 0: .*"cat" is no whole number/ },
    ],
    [
      'a decimal',
      [label('a.cls', '1.5')],
      { code: 'SOURCE', message: /"1\.5" is no whole number/ },
    ],
    [
      'too many digits',
      [label('a.cls', '9223372036854775808')],
      { code: 'SOURCE', message: /no whole number of int64/ },
    ],
    ['a long number', [label('a.cls', ' '.repeat(80))], { code: 'TOO_LARGE', message: /80 bytes/ }],
    [
      'an empty member',
      [label('a.cls'), label('b.cls', '')],
      { code: 'SOURCE', record: 1, message: /"b\.cls" \(row 1\) is empty/ },
    ],
    [
      'text that is not wanted',
      [label('a.txt')],
      { code: 'UNSUPPORTED', message: /strings: 'utf8'/ },
    ],
  ];
  for (const [name, entries, expected] of faults) {
    const target = scratch.fresh('out');
    const file = archive(entries);
    t.match(await failureOf(() => importFiles(file, target, raw)), { ...expected }, name);
    t.strictSame(beside(target), [], 'nothing stays behind');
  }
  const sized = { ...raw, size: [2, 2] } as const;
  const pictures = archive([array('a.png', png(1)), array('b.png', png(1).subarray(0, 60))]);
  t.match(await failureOf(() => importFiles(pictures, scratch.fresh('out'), sized)), {
    code: 'MALFORMED',
    record: 1,
    message: /"b\.png": column "png", row 1/,
  });
  const large = archive([array('a.npy', npy('int16', [600], 1))]);
  t.match(
    await failureOf(() =>
      importFiles(large, scratch.fresh('x'), { ...raw, limits: { memberBytes: 1000 } }),
    ),
    {
      code: 'TOO_LARGE',
      message: /"a\.npy" \(row 0\) has 1328 bytes, and limits\.memberBytes allows 1000/,
    },
  );
  for (const memberBytes of [0, 1.5, '9']) {
    const limits = { memberBytes } as never;
    t.equal(await codeOf(() => surveyFiles(large, 'x', { limits })), 'INVALID_ARGUMENT');
  }
  const left = archive([label('a.cls'), label('a.pickle'), label('README')]);
  t.match(await importFiles(left, scratch.fresh('out'), { ...raw, columns: ['cls'] }), {
    containers: [{ column: 'cls', records: 1 }],
  });
  t.match(await failureOf(() => surveyFiles(left, 'x', { columns: ['jpg'] })), { code: 'SOURCE' });
});

t.test('an archive that changes between the two readings', async (t) => {
  const file = archive([0, 1, 2].flatMap(sample));
  const size = readFileSync(file).length;
  const { dataset } = await webDataset([file], {});
  const readAll = async (): Promise<void> => {
    for await (const _ of dataset.batches({ columns: ['cls'] }));
  };
  t.equal(await codeOf(readAll), 'ok');
  truncateSync(file, size - 4096);
  t.equal(await codeOf(readAll), 'MALFORMED');
  writeFileSync(file, tarOf(sample(0)));
  t.match(await failureOf(readAll), { code: 'MALFORMED', message: /it changed while it was read/ });
});
