// Folders of pictures as containers and back.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { exportPictures } from '../ts/exporters/pictures.js';
import { importFiles, surveyFiles } from '../ts/importers/import.js';
import { logicalDigest, open } from '../ts/index.js';
import { encodePng } from '../ts/inspect/png.js';
import { told } from './support/command.js';
import { codeOf, failureOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';
import { tarOf } from './support/tar.mjs';

const scratch = new Scratch(t);
const raw = { codec: 'raw' } as const;

/** 6 pictures of 2 classes, 8 x 12 pixels of RGB. */
function classes(): string {
  const folder = scratch.fresh('pictures');
  for (const [number, name] of ['cat', 'dog'].entries()) {
    mkdirSync(path.join(folder, name), { recursive: true });
    for (let index = 0; index < 3; index += 1) {
      const pixels = Uint8Array.from({ length: 8 * 12 * 3 }, (_, at) => at * (1 + index) + number);
      writeFileSync(path.join(folder, name, `${index}.png`), encodePng(12, 8, 3, pixels));
    }
  }
  writeFileSync(path.join(folder, 'cat', 'notes.txt'), 'no picture');
  return folder;
}

async function digestOf(container: string): Promise<string> {
  await using reader = open(container);
  return await logicalDigest(reader);
}

t.test('classes are folders: pictures as they are, labels, names; out and in again', async (t) => {
  const folder = classes();
  const target = scratch.fresh('out');
  const survey = await surveyFiles(folder, target);
  const { containers } = await importFiles(folder, target, raw);
  t.strictSame(
    survey.containers,
    containers.map(({ diskBytes: _, ...rest }) => rest),
  );
  t.match(containers, [
    { column: 'image', kind: 'dense', shape: [8, 12, 3], records: 6 },
    { column: 'label', dtype: 'int64', records: 6 },
  ]);
  t.strictSame(JSON.parse(readFileSync(path.join(target, 'classes.json'), 'utf8')), {
    label: ['cat', 'dog'],
  });
  await using labels = open(path.join(target, 'label'));
  const batch = await labels.gather([0, 1, 2, 3, 4, 5]);
  t.strictSame('offsets' in batch ? [] : Array.from(batch.data as BigInt64Array), [
    0n,
    0n,
    0n,
    1n,
    1n,
    1n,
  ]);
  await using image = open(path.join(target, 'image'));
  t.strictSame(Array.from((image.record(4).data as Uint8Array).subarray(0, 4)), [1, 3, 5, 7]);

  const back = scratch.fresh('back');
  await exportPictures(path.join(target, 'image'), back, { labels: path.join(target, 'label') });
  t.strictSame(readdirSync(back).sort(), ['cat', 'dog']);
  t.strictSame(readdirSync(path.join(back, 'dog')), ['000003.png', '000004.png', '000005.png']);
  const again = scratch.fresh('again');
  await importFiles(back, again, raw);
  for (const name of ['image', 'label']) {
    t.equal(await digestOf(path.join(again, name)), await digestOf(path.join(target, name)), name);
  }
  t.equal(await codeOf(() => exportPictures(path.join(target, 'image'), back)), 'EXISTS');
  const lone = scratch.fresh('lone');
  t.equal(await codeOf(() => exportPictures(path.join(target, 'label'), lone)), 'UNSUPPORTED');
  t.strictSame(beside(lone), [], 'nothing stays behind');
  const few = path.join(again, 'image');
  t.equal(await codeOf(() => exportPictures(few, scratch.fresh('x'), { labels: few })), 'SOURCE');
});

t.test('a size: rows and columns first or channels first', async (t) => {
  const folder = classes();
  const [whole, planes, grey, small] = ['a', 'b', 'c', 'd'].map((name) => scratch.fresh(name)) as [
    string,
    string,
    string,
    string,
  ];
  await importFiles(folder, whole, { ...raw, size: [8, 12] });
  await importFiles(folder, planes, { ...raw, size: [8, 12], layout: 'CHW' });
  await using one = open(path.join(whole, 'image'));
  await using other = open(path.join(planes, 'image'));
  t.match(one, { itemShape: [8, 12, 3] });
  t.match(other, { itemShape: [3, 8, 12] });
  const [pixels, channels] = [one.record(2).data, other.record(2).data];
  for (const [y, x, c] of [
    [0, 0, 0],
    [7, 11, 2],
    [3, 5, 1],
  ] as const) {
    t.equal(pixels[(y * 12 + x) * 3 + c], channels[(c * 8 + y) * 12 + x]);
  }
  await importFiles(folder, grey, { ...raw, size: [4, 4], mode: 'L' });
  await using third = open(path.join(grey, 'image'));
  t.match(third, { itemShape: [4, 4] });
  const plane = scratch.fresh('plane');
  await importFiles(folder, plane, { ...raw, size: [4, 4], mode: 'L', layout: 'CHW' });
  await using own = open(path.join(plane, 'image'));
  t.match(own, { itemShape: [1, 4, 4] });
  t.strictSame(own.record(0).data, third.record(0).data);
  await importFiles(folder, small, { ...raw, size: [4, 6] });
  await using fourth = open(path.join(small, 'image'));
  t.match(fourth, { itemShape: [4, 6, 3] });
});

t.test('a plain colour stays that colour, whatever the size', async (t) => {
  const folder = scratch.folder();
  writeFileSync(
    path.join(folder, 'x.png'),
    encodePng(31, 17, 3, new Uint8Array(31 * 17 * 3).fill(77)),
  );
  const target = scratch.fresh('out');
  await importFiles(folder, target, { ...raw, size: [9, 14] });
  t.strictSame(readdirSync(target), ['image'], 'no labels where there are no classes');
  await using image = open(path.join(target, 'image'));
  t.ok(image.record(0).data.every((value) => value === 77));
});

t.test('refusals', async (t) => {
  const folder = classes();
  const target = scratch.fresh('out');
  const refused = (from: string, options: object): Promise<Error & { code?: string }> =>
    failureOf(() => importFiles(from, target, { ...raw, ...options }));
  t.match(await refused(folder, { size: [0, 4] }), { code: 'INVALID_ARGUMENT' });
  t.match(await refused(folder, { layout: 'CHW' }), { code: 'INVALID_ARGUMENT' });
  t.match(await refused(folder, { size: [4, 4], mode: 'CMYK' }), { code: 'INVALID_ARGUMENT' });
  t.match(await refused(scratch.folder(), {}), { code: 'SOURCE', message: /no PNG, JPEG or WebP/ });
  const mixed = scratch.fresh('mixed');
  cpSync(folder, mixed, { recursive: true });
  cpSync(path.join(folder, 'cat', '0.png'), path.join(mixed, 'lost.png'));
  t.match(await refused(mixed, {}), { code: 'SOURCE', message: /lost.png/ });
  writeFileSync(path.join(folder, 'dog', '1.png'), 'no picture');
  t.match(await refused(folder, {}), { code: 'MALFORMED', field: 'image', record: 4 });
  t.match(await refused(folder, { size: [4, 4] }), {
    code: 'MALFORMED',
    record: 4,
    message: /dog.*1\.png/,
  });
  t.strictSame(beside(target), []);
  const file = path.join(folder, 'dog', '0.png');
  t.match(await refused(file, { format: 'images' }), {
    code: 'SOURCE',
    message: `${file}: it is no folder, and pictures lie in one`,
  });
});

t.test('a grey picture among others is named, with what makes them alike', async (t) => {
  const folder = scratch.folder();
  const grey = encodePng(4, 3, 1, new Uint8Array(12).fill(9));
  const colours = encodePng(4, 3, 3, new Uint8Array(36).fill(9));
  for (let at = 0; at < 300; at += 1) {
    writeFileSync(path.join(folder, `${1000 + at}.png`), at === 270 ? grey : colours);
  }
  const archive = scratch.fresh('x.tar');
  const samples = [colours, colours, grey].map((bytes, at) => ({ name: `${at}.png`, bytes }));
  writeFileSync(archive, tarOf(samples));
  for (const [source, name, column, record] of [
    [folder, path.join(folder, '1270.png'), 'image', 270],
    [archive, `${archive}, member "2.png"`, 'png', 2],
  ] as const) {
    const target = scratch.fresh('out');
    const wanted = {
      code: 'SOURCE',
      field: column,
      record,
      message: /the first one is uint8 \[3, ?4, ?3\].*; mode: 'RGB' makes them alike$/,
    };
    const surveyed = await failureOf(() => surveyFiles(source, target));
    const imported = await failureOf(() => importFiles(source, target, raw));
    for (const error of [surveyed, imported]) {
      t.match(error, wanted);
      t.ok(error.message.split(': column')[0]?.endsWith(name), error.message);
    }
    t.strictSame(beside(target), []);
    const { code, err } = await told('import', source, target, '--codec', 'raw');
    t.equal(code, 3);
    t.match(err, /; --mode RGB makes them alike\n/);
    const { containers } = await importFiles(source, target, { ...raw, mode: 'RGB' });
    t.match(containers, [{ column, kind: 'dense', shape: [3, 4, 3] }]);
  }
});

t.test(
  'a pipe among pictures is not waited for',
  { skip: process.platform === 'win32' && 'Windows has no mkfifo' },
  async (t) => {
    const folder = classes();
    const pipe = path.join(folder, 'dog', 'pipe.png');
    execFileSync('mkfifo', [pipe]);
    const refused = { code: 'UNSUPPORTED', message: /it is no plain file/ };
    t.match(await failureOf(() => importFiles(folder, scratch.fresh('out'), raw)), refused);
    const linked = classes();
    symlinkSync(pipe, path.join(linked, 'cat', 'link.png'));
    t.match(await failureOf(() => importFiles(linked, scratch.fresh('out'), raw)), refused);
  },
);
