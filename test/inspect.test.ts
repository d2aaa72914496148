// info, head, pictures, diff and recode: what they tell of containers that are known to the last byte.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { inflateSync } from 'node:zlib';
import t from 'tap';
import {
  contactSheet,
  containersAt,
  Dense,
  diff,
  digest,
  head,
  info,
  type NdArray,
  ndarray,
  open,
  Ragged,
  recode,
  showArray,
  trainDict,
  verify,
} from '../ts/index.js';
import { fixture, readFixture, withoutFixtures } from './support/fixtures.js';
import { codeOf, failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

async function denseOf(
  values: ArrayLike<number>,
  itemShape: number[],
  codec: 'raw' | 'zstd' = 'raw',
): Promise<string> {
  const place = scratch.fresh();
  const writer = Dense.create(place, { dtype: 'float64', itemShape, codec });
  const width = itemShape.reduce((product, size) => product * size, 1);
  await writer.append(
    ndarray('float64', [values.length / width, ...itemShape], Float64Array.from(values)),
  );
  await writer.close();
  return place;
}

async function raggedOf(lengths: readonly number[], seed = 1): Promise<string> {
  const place = scratch.fresh();
  const writer = Ragged.create(place, { dtype: 'int32', ndim: 1, codec: 'zstd' });
  await writer.append(
    lengths.map((length, id) =>
      ndarray(
        'int32',
        [length],
        Int32Array.from({ length }, (_, at) => at * seed + id),
      ),
    ),
  );
  await writer.close();
  return place;
}

// ---- info ----

t.test('info of a dense container', async (t) => {
  const place = await denseOf(
    Array.from({ length: 600 }, () => 1),
    [2, 3],
    'zstd',
  );
  const found = await info(place);
  t.match(found, {
    path: place,
    kind: 'dense',
    dtype: 'float64',
    itemShape: [2, 3],
    records: 100,
    codec: 'zstd',
    dataShards: 4,
    dialect: '2.4',
    logicalBytes: 4800,
    integrity: 'none',
    openedBy: ['loaderx for Node', 'Python loaderx 2.4.x'],
  });
  t.equal(found.diskBytes, found.storedBytes + 4096 + 1600);
  t.equal(found.ratio, 4800 / found.storedBytes);
  t.equal(found.lengths, undefined);
  const { logicalDigest } = await digest(place);
  t.match(await info(place), { integrity: 'present', logicalDigest });
  t.equal((await info(place)).diskBytes, found.diskBytes + 128 + 101 * 8 + 32);
  writeFileSync(path.join(place, 'integrity.zr'), Buffer.alloc(300));
  t.match(await info(place), { integrity: 'damaged', logicalDigest: undefined });
});

t.test('info of a ragged container: how long records are', async (t) => {
  // 1 .. 101, so that every percentile is a number of its own.
  const place = await raggedOf(Array.from({ length: 101 }, (_, id) => ((id * 37) % 101) + 1));
  const { lengths, logicalBytes, ndim, itemShape } = await info(place);
  t.match(lengths, { min: 1, p10: 11, p50: 51, p90: 91, max: 101, mean: 51, records: 101 });
  t.equal(lengths?.histogram.length, 16);
  t.equal(
    lengths?.histogram.reduce((sum, count) => sum + count, 0),
    101,
  );
  t.equal(logicalBytes, 4 * ((101 * 102) / 2));
  t.equal(ndim, 1);
  t.equal(itemShape, undefined);
  const alike = await info(await raggedOf([7, 7, 7]));
  t.match(alike.lengths, { min: 7, max: 7, histogram: [3] });
  const empty = scratch.fresh();
  await Ragged.create(empty, { dtype: 'int8', ndim: 2, codec: 'raw', dialect: '2.8' }).close();
  const found = await info(empty);
  t.match(found, { records: 0, logicalBytes: 0, openedBy: [String, 'Python loaderx 2.8.x'] });
  t.equal(found.ratio, undefined);
  t.equal(found.lengths, undefined);
});

t.test('info of dictionaries', async (t) => {
  const texts = Array.from({ length: 90 }, (_, id) =>
    ndarray('uint8', [40], new TextEncoder().encode(`text ${id}`.padEnd(40, 'of words '))),
  );
  const trained = await trainDict(texts);
  for (const [dictBytes, dict] of [
    [trained, { bytes: trained.byteLength, id: Buffer.from(trained).readUInt32LE(4) }],
    [new Uint8Array(9).fill(65), { bytes: 9 }],
  ] as const) {
    const place = scratch.fresh();
    const writer = Ragged.create(place, { dtype: 'uint8', ndim: 1, codec: 'zstd_dict', dictBytes });
    await writer.append(texts);
    await writer.close();
    t.strictSame((await info(place)).dict, dict);
  }
});

t.test('info of what is none, and wrong options', async (t) => {
  t.equal(await codeOf(() => info(scratch.fresh())), 'NOT_FOUND');
  const place = await raggedOf([1, 2]);
  t.equal(await codeOf(() => info(place, { signal: AbortSignal.abort() })), 'ABORTED');
  // @ts-expect-error There is no such option.
  t.match(await failureOf(() => info(place, { all: true })), { field: 'all' });
});

t.test('the containers of a folder: also broken ones', async (t) => {
  const folder = scratch.folder();
  const source = await denseOf([1, 2], []);
  for (const name of ['b', 'a', 'broken', '.hidden']) {
    cpSync(source, path.join(folder, name), { recursive: true });
  }
  rmSync(path.join(folder, 'broken', 'meta.zr'));
  mkdirSync(path.join(folder, 'notes'));
  writeFileSync(path.join(folder, 'notes', 'data_of_mine.zr'), '');
  writeFileSync(path.join(folder, 'readme'), '');
  const inside = ['a', 'b', 'broken'].map((name) => `${folder}/${name}`);
  t.same(containersAt(folder), inside, 'by name');
  t.same(containersAt(`${folder}/`), inside, 'however the folder is written');
  for (const one of ['a', 'broken', 'notes', 'readme', 'nothing']) {
    t.same(
      containersAt(path.join(folder, one)),
      [path.join(folder, one)],
      `${one} stands for itself`,
    );
  }
});

// ---- head ----

t.test('head gives records, dense and ragged', async (t) => {
  const dense = await denseOf([0, 1, 2, 3, 4, 5, 6, 7], [2]);
  const { facts, records } = await head(dense, { ids: [3, 0, 3] });
  t.match(facts, { kind: 'dense', records: 4 });
  t.same(
    records.map(({ id, array }) => [id, array.shape, [...(array.data as Float64Array)]]),
    [
      [3, [2], [6, 7]],
      [0, [2], [0, 1]],
      [3, [2], [6, 7]],
    ],
  );
  t.equal((await head(dense)).records.length, 4, 'no more than there are');
  t.equal((await head(dense, { count: 1 })).records.length, 1);
  const ragged = await raggedOf([3, 1]);
  t.same(
    (await head(ragged, { ids: BigUint64Array.of(1n) })).records.map(({ id, array }) => [
      id,
      array.shape,
    ]),
    [[1, [1]]],
  );
  t.equal(await codeOf(() => head(ragged, { ids: [2] })), 'OUT_OF_RANGE');
  t.equal(await codeOf(() => head(ragged, { count: -1 })), 'INVALID_ARGUMENT');
});

const show = (array: NdArray, options?: Parameters<typeof showArray>[1]): string =>
  showArray(array, options);

t.test('numbers, whatever the dtype', async (t) => {
  const cases: readonly (readonly [NdArray, string])[] = [
    [ndarray('int8', [3], Int8Array.of(-1, 0, 100)), ' -1   0 100'],
    [ndarray('uint64', [], BigUint64Array.of(2n ** 64n - 1n)), '18446744073709551615'],
    [ndarray('bool', [2], Uint8Array.of(0, 1)), 'false  true'],
    [ndarray('float32', [3], Float32Array.of(0.1, 1e9, -0)), '       0.1 1000000000          0'],
    [
      ndarray('float64', [3], Float64Array.of(Number.NaN, -Infinity, 1 / 3)),
      '    nan    -inf 0.33333',
    ],
    [
      ndarray('float16', [4], Uint16Array.of(0x3c00, 0xc000, 0x7c00, 0x0001)),
      '        1        -2       inf 5.9605e-8',
    ],
    [ndarray('bfloat16', [2], Uint16Array.of(0x3f80, 0xc040)), ' 1 -3'],
    [
      ndarray('float8_e4m3fn', [4], Uint8Array.of(0x38, 0x7e, 0x7f, 0x01)),
      '        1       448       nan 0.0019531',
    ],
    [ndarray('float8_e5m2', [2], Uint8Array.of(0x3c, 0x7c)), '  1 inf'],
    [ndarray('float8_e8m0fnu', [2], Uint8Array.of(127, 128)), '1 2'],
    [ndarray('complex64', [2], Float32Array.of(1, -2, 0, 0.5)), '  1-2i 0+0.5i'],
    [ndarray('numpy:>i2', [2], Uint8Array.of(1, 0, 0, 1)), '256   1'],
    [ndarray('numpy:|S3', [2], Uint8Array.of(97, 98, 0, 99, 0, 0)), '"ab"  "c"'],
    [ndarray('numpy:|S2', [], Uint8Array.of(0xff, 0)), 'ff00'],
    [ndarray('numpy:<U2', [], Uint8Array.of(0xe9, 0, 0, 0, 0x31, 0, 0, 0)), '"é1"'],
    [ndarray('numpy:|V2', [], Uint8Array.of(1, 254)), '01fe'],
    [ndarray('numpy:<M8[D]', [2], BigInt64Array.of(0n, -1n)), '1970-01-01 1969-12-31'],
    [
      ndarray('numpy:<M8[ns]', [], BigInt64Array.of(1_500_000_001n)),
      '1970-01-01T00:00:01.500000001',
    ],
    [ndarray('numpy:<M8[Y]', [], BigInt64Array.of(54n)), '2024'],
    [ndarray('numpy:<M8[M]', [], BigInt64Array.of(-1n)), '1969-12'],
    [ndarray('numpy:<M8[25s]', [], BigInt64Array.of(4n)), '1970-01-01T00:01:40'],
    [ndarray('numpy:<m8[ms]', [2], BigInt64Array.of(7n, -(2n ** 63n))), '7 ms  NaT'],
  ];
  for (const [array, text] of cases) t.equal(show(array), text, array.dtype);
});

t.test('grids are shortened where there is no room', async (t) => {
  const many = ndarray(
    'int32',
    [1000],
    Int32Array.from({ length: 1000 }, (_, at) => at),
  );
  t.match(show(many, { columns: 40 }), /^ *0 .*\n(.*\n)*… 1000 in all$/);
  for (const line of show(many, { columns: 40 }).split('\n')) t.ok(line.length <= 40, line);
  const table = ndarray(
    'int32',
    [30, 30],
    Int32Array.from({ length: 900 }, (_, at) => at),
  );
  const lines = show(table, { columns: 40 }).split('\n');
  t.ok(lines.length <= 10, 'few lines');
  for (const line of lines) t.ok(line.length <= 40, line);
  t.match(lines.at(-1), /899$/, 'the last item is seen');
  t.match(lines[0], /^ *0 /, 'and the first');
  const deep = ndarray(
    'int8',
    [2, 3, 2, 2],
    Int8Array.from({ length: 24 }, (_, at) => at),
  );
  t.equal(
    show(deep),
    [
      ...['[0, 0, :, :]', '0 1', '2 3', '[0, 1, :, :]', '4 5', '6 7'],
      ...['[0, 2, :, :]', ' 8  9', '10 11', '… 6 of these'],
    ].join('\n'),
  );
  t.equal(show(ndarray('int8', [0, 3], new Int8Array(0))), '(no items)');
});

t.test('text is text', async (t) => {
  const bytes = (text: string): NdArray => {
    const data = new TextEncoder().encode(text);
    return ndarray('uint8', [data.length], data);
  };
  t.equal(show(bytes('two\nlines, é')), 'two⏎lines, é');
  t.equal(
    show(bytes('x'.repeat(50)), { columns: 20 }),
    `${'x'.repeat(20)}\n${'x'.repeat(20)}\n${'x'.repeat(10)}`,
  );
  t.match(show(bytes('y'.repeat(5000)), { columns: 80 }), /…$/);
  t.equal(show(bytes('ab'), { as: 'numbers' }), '97 98');
  t.equal(
    show(ndarray('uint8', [3], Uint8Array.of(1, 2, 3))),
    '1 2 3',
    'control characters are none',
  );
  t.equal(
    show(ndarray('uint8', [2], Uint8Array.of(0xff, 0x41))),
    '255  65',
    'nor what is not UTF-8',
  );
  t.match(
    await failureOf(async () => show(ndarray('int8', [2], Int8Array.of(1, 2)), { as: 'text' })),
    {
      message: /array is no text: int8 of shape \[2\]/,
    },
  );
});

/** Red, green, blue and so on of a 8 x 8 picture whose left half is one colour and right half another. */
function halves(channels: number, planar: boolean, left: number[], right: number[]): NdArray {
  const data = new Uint8Array(64 * channels);
  for (let y = 0; y < 8; y += 1) {
    for (let x = 0; x < 8; x += 1) {
      for (let channel = 0; channel < channels; channel += 1) {
        const value = (x < 4 ? left : right)[channel] ?? 0;
        data[planar ? channel * 64 + y * 8 + x : (y * 8 + x) * channels + channel] = value;
      }
    }
  }
  return ndarray('uint8', planar ? [channels, 8, 8] : [8, 8, channels], data);
}

t.test('pictures are blocks of colour, or letters', async (t) => {
  const grey = ndarray(
    'uint8',
    [8, 8],
    Uint8Array.from({ length: 64 }, (_, at) => (at % 8) * 36),
  );
  t.equal(show(grey), Array(4).fill(' .:=+#%@').join('\n'));
  const red = halves(3, false, [255, 0, 0], [0, 0, 255]);
  const line =
    '\u001b[38;2;255;0;0;48;2;255;0;0m▀▀▀▀\u001b[38;2;0;0;255;48;2;0;0;255m▀▀▀▀\u001b[0m';
  t.equal(show(red, { colours: 'true' }), Array(4).fill(line).join('\n'));
  t.equal(
    show(halves(3, true, [255, 0, 0], [0, 0, 255]), { colours: 'true' }),
    show(red, { colours: 'true' }),
    'planes too',
  );
  const few = show(red, { colours: '256' }).split('\n')[0];
  t.equal(few, '\u001b[38;5;196;48;5;196m▀▀▀▀\u001b[38;5;21;48;5;21m▀▀▀▀\u001b[0m');
  const picked = (colour: number[]): string | undefined =>
    /38;5;(\d+)/.exec(show(halves(3, false, colour, colour), { colours: '256' }))?.[1];
  const nearest: readonly (readonly [number[], string])[] = [
    [[0, 0, 0], '16'],
    [[255, 255, 255], '231'],
    [[128, 128, 128], '244'],
    [[60, 20, 50], '236'],
    [[100, 30, 90], '53'],
    [[95, 135, 175], '67'],
    [[214, 60, 40], '166'],
  ];
  for (const [colour, number] of nearest) t.equal(picked(colour), number, colour.join(', '));
  const seen = halves(4, false, [255, 0, 0, 0], [0, 0, 255, 255]);
  const clear = show(seen, { colours: 'true' }).startsWith('\u001b[38;2;0;0;0;');
  t.ok(clear, 'what is transparent is black');
  const wide = ndarray('uint8', [100, 400], new Uint8Array(40_000).fill(255));
  const lines = show(wide, { columns: 40 }).split('\n');
  t.equal(lines[0], '@'.repeat(40), 'as wide as there is room');
  t.equal(lines.length, 5, 'and as high as it is then');
  const small = ndarray('uint8', [2, 2], Uint8Array.of(0, 255, 255, 0));
  t.equal(show(small), '  0 255\n255   0', 'small ones are numbers');
  t.equal(show(small, { as: 'picture' }), '++', 'unless they are to be pictures');
  t.match(await failureOf(async () => show(small, { colours: 'many' as never })), {
    field: 'colours',
  });
});

// ---- PNG ----

interface Png {
  readonly width: number;
  readonly height: number;
  readonly colourType: number;
  readonly pixels: Buffer;
}

/** Reads a PNG of 8 bits a channel back, filters and all. */
function decodePng(file: Uint8Array): Png {
  const bytes = Buffer.from(file);
  const width = bytes.readUInt32BE(16);
  const height = bytes.readUInt32BE(20);
  const colourType = bytes[25] ?? 0;
  const channels = { 0: 1, 2: 3, 6: 4 }[colourType] ?? 0;
  const parts: Buffer[] = [];
  for (let at = 8; at < bytes.length; ) {
    const length = bytes.readUInt32BE(at);
    const name = bytes.toString('latin1', at + 4, at + 8);
    if (name === 'IDAT') parts.push(bytes.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  const rows = inflateSync(Buffer.concat(parts));
  const rowBytes = width * channels;
  const pixels = Buffer.alloc(rowBytes * height);
  for (let y = 0; y < height; y += 1) {
    const filter = rows[y * (rowBytes + 1)];
    for (let x = 0; x < rowBytes; x += 1) {
      const left = x < channels ? 0 : (pixels[y * rowBytes + x - channels] ?? 0);
      const up = y === 0 ? 0 : (pixels[(y - 1) * rowBytes + x] ?? 0);
      const predicted = filter === 0 ? 0 : filter === 1 ? left : up;
      pixels[y * rowBytes + x] = (rows[y * (rowBytes + 1) + 1 + x] ?? 0) + predicted;
    }
  }
  return { width, height, colourType, pixels };
}

t.test('a contact sheet is a PNG with each picture in its place', async (t) => {
  const sheet = decodePng(
    contactSheet([
      halves(3, false, [250, 1, 2], [3, 4, 251]),
      ndarray('uint8', [8, 8], new Uint8Array(64).fill(99)),
      halves(3, true, [9, 8, 7], [6, 5, 4]),
    ]),
  );
  // Two columns of pictures that are enlarged twelve times, two pixels between.
  t.match(sheet, { width: 2 + 2 * 98, height: 2 + 2 * 98, colourType: 2 });
  const pixel = (x: number, y: number): number[] => [
    ...sheet.pixels.subarray((y * sheet.width + x) * 3, (y * sheet.width + x) * 3 + 3),
  ];
  t.same(pixel(0, 0), [32, 32, 32], 'the gap');
  t.same(pixel(2, 2), [250, 1, 2]);
  t.same(pixel(97, 97), [3, 4, 251]);
  t.same(pixel(98, 50), [32, 32, 32]);
  t.same(pixel(150, 50), [99, 99, 99]);
  t.same(pixel(2, 100), [9, 8, 7]);
  t.same(pixel(150, 150), [32, 32, 32], 'no fourth');
  const grey = contactSheet([ndarray('uint8', [200, 100], new Uint8Array(20_000).fill(7))]);
  t.match(decodePng(grey), { width: 104, height: 204, colourType: 0 }, 'large ones as they are');
  t.ok(grey.byteLength < 2000, 'compressed');
  const clear = decodePng(contactSheet([halves(4, false, [1, 2, 3, 4], [5, 6, 7, 8])]));
  t.equal(clear.colourType, 6);
  t.same([...clear.pixels.subarray((2 * clear.width + 2) * 4).subarray(0, 4)], [1, 2, 3, 4]);
  const row = decodePng(contactSheet(Array(3).fill(halves(3, false, [1], [2])), { columns: 3 }));
  t.ok(row.width > row.height * 2);
});

t.test('what is no contact sheet', async (t) => {
  const refused = (arrays: NdArray[], options?: object): Promise<Error> =>
    failureOf(async () => contactSheet(arrays, options));
  t.match(await refused([]), { message: /no picture/ });
  t.match(await refused([ndarray('uint8', [5], new Uint8Array(5))]), {
    message: /arrays\[0\] is no picture/,
  });
  t.match(await refused([ndarray('int8', [8, 8], new Int8Array(64))]), {
    message: /int8 of shape/,
  });
  const huge = ndarray('uint8', [20_000, 1], new Uint8Array(20_000));
  t.match(
    await refused(
      Array(2)
        .fill(huge)
        .concat(ndarray('uint8', [1, 20_000], new Uint8Array(20_000))),
    ),
    {
      code: 'TOO_LARGE',
    },
  );
  t.match(await refused([halves(3, false, [1], [2])], { columns: 0 }), { field: 'columns' });
});

// ---- diff ----

t.test('diff: the same, and each way of not being the same', async (t) => {
  const values = Array.from({ length: 40_000 }, (_, at) => at);
  const a = await denseOf(values, [4]);
  const same = await denseOf(values, [4], 'zstd');
  const equal = await diff(a, same);
  t.match(equal, { equal: true, compared: 10_000, differing: 0, facts: [] });
  t.equal(equal.first, undefined);

  const changed = [...values];
  changed[4 * 77 + 2] = -1;
  changed[4 * 9000] = Number.NaN;
  const b = await denseOf(changed, [4]);
  t.strictSame((await diff(a, b)).first, {
    record: 77,
    what: 'items',
    index: [2],
    a: '310',
    b: '-1',
  });
  t.match(await diff(a, b), { equal: false, differing: 2, compared: 10_000, facts: [] });
  t.match((await diff(b, a)).first, { a: '-1', b: '310' }, 'the other way round');

  const zeros = await diff(await denseOf([0, 1], []), await denseOf([-0, 1], []));
  t.match(zeros.first, { a: '0x0000000000000000', b: '0x0000000000000080' }, 'bytes decide');

  const shorter = await denseOf(values.slice(0, 400), [4]);
  const cut = await diff(a, shorter);
  t.match(cut, { equal: false, compared: 100, differing: 0 });
  t.strictSame(cut.facts, [{ fact: 'records', a: '10000', b: '100' }]);
  t.match(await diff(shorter, a), { compared: 100, facts: [{ a: '100', b: '10000' }] });

  const reshaped = await diff(a, await denseOf(values, [2, 2]));
  t.match(reshaped, {
    equal: false,
    compared: 0,
    facts: [{ fact: 'itemShape', a: '[4]', b: '[2, 2]' }],
  });
  const other = await diff(a, await raggedOf([1]));
  t.same(
    other.facts.map(({ fact }) => fact),
    ['kind', 'dtype', 'itemShape', 'ndim', 'records'],
  );
});

t.test('diff of ragged containers', async (t) => {
  const a = await raggedOf([3, 1, 4, 1, 5]);
  t.match(await diff(a, await raggedOf([3, 1, 4, 1, 5])), { equal: true, compared: 5 });
  t.strictSame((await diff(a, await raggedOf([3, 2, 3, 1, 5]))).first, {
    record: 1,
    what: 'shape',
    a: '[1]',
    b: '[2]',
  });
  t.match(await diff(a, await raggedOf([3, 1, 4, 1, 5], 2)), {
    differing: 3,
    first: { record: 0, what: 'items', index: [1], a: '1', b: '2' },
  });
});

t.test('diff: what cannot be compared', async (t) => {
  const a = await denseOf([1, 2], []);
  t.equal(await codeOf(() => diff(a, scratch.fresh())), 'NOT_FOUND');
  t.equal(await codeOf(() => diff(a, a, { signal: AbortSignal.abort() })), 'ABORTED');
  const progress: number[] = [];
  await diff(a, a, { onProgress: ({ recordsDone }) => progress.push(recordsDone) });
  t.same(progress, [2]);
});

// ---- recode ----

t.test('recode: every codec, dialect and number of shards; the same digest', async (t) => {
  const texts = Array.from({ length: 500 }, (_, id) => {
    const data = new TextEncoder().encode(
      `line ${id % 50} of a text that says the same `.repeat(1 + (id % 4)),
    );
    return ndarray('uint8', [data.length], data);
  });
  const source = scratch.fresh();
  const writer = Ragged.create(source, { dtype: 'uint8', ndim: 1, codec: 'raw', dataShards: 3 });
  await writer.append(texts);
  await writer.close();
  const { logicalDigest } = await digest(source);
  const dictBytes = await trainDict(texts);
  for (const codec of ['raw', 'zstd', 'zstd_dict'] as const) {
    for (const [dataShards, dialect] of [
      [undefined, undefined],
      [1, '2.8'],
      [255, '2.4'],
    ] as const) {
      const target = scratch.fresh();
      const result = await recode(source, target, { codec, dataShards, dialect, integrity: true });
      t.match(result.target, {
        codec,
        dataShards: dataShards ?? 3,
        dialect: dialect ?? '2.4',
        records: 500,
      });
      const report = await verify(target);
      t.match(report, { ok: true, integrity: 'checked', logicalDigest }, `${codec} ${dialect}`);
      t.equal(result.targetBytes, report.storedBytes);
      t.equal((await diff(source, target)).equal, true);
      t.equal(result.dictBytes !== undefined, codec === 'zstd_dict');
    }
  }
  const given = scratch.fresh();
  const withDict = await recode(source, given, { codec: 'zstd_dict', dictBytes });
  t.equal(withDict.dictBytes, dictBytes.byteLength);
  t.match(await verify(given), { ok: true, integrity: 'none' }, 'no file unless it is asked for');
  const reader = open(given);
  t.same(
    await trainDict(reader),
    dictBytes,
    'a dictionary trained on the way is that of the records',
  );
  await reader.close();
});

t.test('recode in bounded memory, and dense', async (t) => {
  // 96 MiB of records, 8 MiB of them at one time.
  const source = scratch.fresh();
  const writer = Dense.create(source, { dtype: 'uint8', itemShape: [2 ** 20], codec: 'zstd' });
  const data = new Uint8Array(2 ** 20);
  for (let id = 0; id < 96; id += 1) {
    await writer.append(ndarray('uint8', [1, 2 ** 20], data.fill(id)));
  }
  await writer.close();
  const before = process.memoryUsage().arrayBuffers;
  let most = 0;
  const target = scratch.fresh();
  const result = await recode(source, target, {
    codec: 'raw',
    onProgress: () => {
      most = Math.max(most, process.memoryUsage().arrayBuffers);
    },
  });
  t.equal(result.itemBytes, 96 * 2 ** 20);
  t.ok(most - before < 64 * 2 ** 20, `${((most - before) / 2 ** 20).toFixed(0)} MiB at the most`);
  t.ok((await diff(source, target)).equal);
});

t.test('recode does not copy damage that the integrity file knows of', async (t) => {
  const source = await denseOf([1, 2, 3, 4, 5, 6], []);
  await digest(source);
  const file = path.join(source, 'data_1.zr');
  const bytes = readFileSync(file);
  bytes[9] = (bytes[9] ?? 0) ^ 1;
  writeFileSync(file, bytes);
  for (const codec of ['raw', 'zstd'] as const) {
    const target = scratch.fresh();
    const failure = await failureOf(() => recode(source, target, { codec, integrity: true }));
    t.match(failure, { code: 'INTEGRITY', file: 'data_1.zr', record: 5, path: source }, codec);
    t.same(beside(target), [], 'nothing is there');
  }
  rmSync(path.join(source, 'integrity.zr'));
  const target = scratch.fresh();
  t.equal(
    await codeOf(() => recode(source, target, { codec: 'raw' })),
    'ok',
    'without it nobody can know',
  );
});

t.test('recode leaves nothing when it fails', async (t) => {
  const source = await denseOf([1, 2, 3], []);
  const target = scratch.fresh();
  const refused = async (options: object): Promise<unknown> => {
    const failure = await failureOf(() => recode(source, target, options as never));
    t.same(beside(target), [], 'nothing is there');
    return failure;
  };
  t.match(await refused({}), { field: 'codec' });
  t.match(await refused({ codec: 'gzip' }), { field: 'codec' });
  t.match(await refused({ codec: 'raw', dataShards: 256 }), { field: 'dataShards' });
  t.match(await refused({ codec: 'raw', dictBytes: new Uint8Array(9) }), { field: 'dictBytes' });
  t.match(await refused({ codec: 'raw', speed: 1 }), { field: 'speed' });
  t.match(await refused({ codec: 'zstd_dict' }), { code: 'DICTIONARY' }, 'too few to train on');
  t.match(await refused({ codec: 'raw', signal: AbortSignal.abort() }), { code: 'ABORTED' });
  const foreign = scratch.fresh();
  const writer = Dense.create(foreign, { dtype: 'numpy:>f4', itemShape: [], codec: 'raw' });
  await writer.close();
  const failure = await failureOf(() => recode(foreign, target, { codec: 'raw', dialect: '2.8' }));
  t.match(failure, { field: 'dtype' }, 'a dtype that the dialect lacks');
  t.equal(await codeOf(() => recode(source, source, { codec: 'raw' })), 'EXISTS');
  t.same(beside(target), []);
});

t.test('containers of the original, recoded', { skip: withoutFixtures }, async (t) => {
  const { containers } = readFixture<{ containers: readonly { readonly name: string }[] }>(
    'containers/manifest.json',
  );
  for (const { name } of containers.slice(0, 40)) {
    const source = fixture(`containers/${name}`);
    const target = scratch.fresh();
    await recode(source, target, { codec: 'zstd' });
    t.ok((await diff(source, target)).equal, name);
  }
});
