// @ts-check
// Runs the command lines that docs/cli.md shows, in order, and puts what they print below them.
//
//     npm run transcripts               writes docs/cli.md anew
//
// A transcript is a block of the language `console`: lines that begin with `$ ` are run, in a folder of
// containers that is made for it; all else is output. `npx loaderx` is the built package. What a reader
// needs not see stands in comments:
//
//     <!-- copy FROM TO -->             a container, once more
//     <!-- flip FILE BYTE -->           the lowest bit of one byte becomes another
//
// That the document is current is checked by test/transcripts.test.ts.
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { bootstrap, build } from './build.mjs';
import { entry, Failure, inRoot } from './script.mjs';

export const document = inRoot('docs', 'cli.md');

/** Every so many of the 10,000 digits: a thousand, of all kinds. */
const digitStride = 10;

/**
 * The document with the output of every command line as it is now. Wants the built package.
 *
 * @param {string} markdown
 * @returns {Promise<string>}
 */
export async function renewed(markdown) {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-transcripts-'));
  try {
    await makeContainers(folder);
    return rewrite(markdown, folder);
  } finally {
    fs.rmSync(folder, { recursive: true, force: true });
  }
}

/** @param {string} folder */
async function makeContainers(folder) {
  /** @type {typeof import('../ts/index.js')} */
  const { Dense, ndarray, Ragged } = await import(pathToFileURL(inRoot('dist', 'index.js')).href);
  const { readDigits, side } = await import('../examples/digits.mjs');
  const digits = await readDigits();
  const ids = Array.from({ length: digits.count / digitStride }, (_, index) => index * digitStride);
  const pixelCount = side * side;
  const pixels = new Uint8Array(ids.length * pixelCount);
  for (const [index, id] of ids.entries()) {
    pixels.set(
      digits.image.data.subarray(id * pixelCount, (id + 1) * pixelCount),
      index * pixelCount,
    );
  }
  const at = (/** @type {string} */ name) => path.join(folder, name);

  const image = Dense.create(at('train/image'), {
    ...{ dtype: 'uint8', itemShape: [side, side], codec: 'raw' },
  });
  await image.append(ndarray('uint8', [ids.length, side, side], pixels));
  await image.close();

  const label = Dense.create(at('train/label'), { dtype: 'uint8', itemShape: [], codec: 'raw' });
  const labels = Uint8Array.from(ids, (id) => digits.label.data[id] ?? 0);
  await label.append(ndarray('uint8', [ids.length], labels));
  await label.close();

  const ink = Ragged.create(at('train/ink'), { dtype: 'int16', ndim: 2, codec: 'zstd' });
  await ink.append(ids.map((id) => digits.ink[id] ?? ndarray('int16', [1, 2], new Int16Array(2))));
  await ink.close();

  const lines = fs.readFileSync(inRoot('LICENSE'), 'utf8').split(/\r?\n/);
  const text = Ragged.create(at('licence'), { dtype: 'uint8', ndim: 1, codec: 'zstd' });
  await text.append(
    lines
      .filter((line) => line !== '')
      .map((line) => new TextEncoder().encode(line))
      .map((data) => ndarray('uint8', [data.length], data)),
  );
  await text.close();

  await makeShards(folder, labels);

  fs.writeFileSync(at('measures.csv'), 'day,celsius\n1,19.5\n2,-0.25\n3,21.0\n');

  fs.writeFileSync(at('notes.txt'), 'A first line.\n\nAnd one more, of other words.\n');
  fs.writeFileSync(
    at('letters.mjs'),
    'export const encode = (text) => Array.from(text, (sign) => sign.codePointAt(0));\n' +
      'export const decode = (ids) => String.fromCodePoint(...ids);\n',
  );

  // What pyarrow wrote for the converter's tests serves as somebody's dataset.
  const files = JSON.parse(fs.readFileSync(inRoot('test', 'parquet', 'files.json'), 'utf8'));
  const file = files.find((/** @type {{ name: string }} */ { name }) => name === 'SNAPPY 2.0');
  fs.mkdirSync(at('parquet'));
  fs.writeFileSync(at('parquet/train.parquet'), Buffer.from(file.parquet, 'base64'));
}

/** @param {string} markdown @param {string} folder */
function rewrite(markdown, folder) {
  /** @type {string[]} */
  const lines = [];
  let exitCode = 0;
  let isTranscript = false;
  for (const line of markdown.split('\n')) {
    if (!isTranscript) {
      lines.push(line);
      isTranscript = line === '```console';
      const step = /^<!-- (copy|flip) (\S+) (\S+) -->$/.exec(line);
      if (step !== null) doStep(folder, step[1] ?? '', step[2] ?? '', step[3] ?? '');
    } else if (line === '```') {
      lines.push(line);
      isTranscript = false;
    } else if (line.startsWith('$ ')) {
      lines.push(line);
      const command = line.slice('$ '.length);
      if (command === 'echo $?') {
        lines.push(String(exitCode));
        continue;
      }
      const ran = runCommand(folder, command);
      exitCode = ran.exitCode;
      lines.push(...ran.lines);
    }
  }
  if (isTranscript) throw new Failure('docs/cli.md: the last transcript does not end');
  return lines.join('\n');
}

/**
 * Two tar archives of pictures and labels.
 *
 * @param {string} folder
 * @param {Uint8Array} labels
 */
async function makeShards(folder, labels) {
  const module = pathToFileURL(inRoot('dist', 'exporters.js')).href;
  /** @type {typeof import('../ts/exporters.js')} */
  const { exportPictures } = await import(module);
  const { tarOf } = await import('../test/support/tar.mjs');
  const pictures = path.join(folder, 'png');
  await exportPictures(path.join(folder, 'train', 'image'), pictures);
  fs.mkdirSync(path.join(folder, 'shards'));
  for (const shard of [0, 1]) {
    const entries = Array.from({ length: 50 }, (_, index) => {
      const id = shard * 50 + index;
      const key = String(id).padStart(6, '0');
      const bytes = fs.readFileSync(path.join(pictures, `${key}.png`));
      return [
        { name: `${key}.png`, bytes },
        { name: `${key}.cls`, bytes: String(labels[id]) },
      ];
    });
    fs.writeFileSync(
      path.join(folder, 'shards', `digits-00000${shard}.tar`),
      tarOf(entries.flat()),
    );
  }
  fs.rmSync(pictures, { recursive: true });
}

/** @param {string} folder @param {string} what @param {string} first @param {string} second */
function doStep(folder, what, first, second) {
  const file = path.join(folder, first);
  if (what === 'copy') {
    fs.cpSync(file, path.join(folder, second), { recursive: true });
    return;
  }
  const bytes = fs.readFileSync(file);
  const byte = bytes[Number(second)];
  if (byte === undefined) throw new Failure(`docs/cli.md: ${first} has no byte ${second}`);
  bytes[Number(second)] = byte ^ 1;
  fs.writeFileSync(file, bytes);
}

/** @param {string} folder @param {string} command */
function runCommand(folder, command) {
  const [npx, name, ...args] = command.split(' ');
  if (npx !== 'npx' || name !== 'loaderx') {
    throw new Failure(`docs/cli.md: ${command} is not run here, only npx loaderx and echo $?`);
  }
  const ran = spawnSync(process.execPath, [inRoot('dist', 'cli.js'), ...args], {
    cwd: folder,
    encoding: 'utf8',
    // One after the other, as a terminal shows them. No command here writes to both in turn.
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (ran.error !== undefined || ran.status === null) {
    throw new Failure(`docs/cli.md: ${command} did not end: ${ran.error ?? ran.signal}`);
  }
  const text = `${ran.stdout}${ran.stderr}`;
  return { exitCode: ran.status, lines: text.split('\n').slice(0, -1) };
}

await entry(import.meta, async (args) => {
  if (args.length > 0) throw new Failure(`npm run transcripts does not know ${args.join(' ')}`);
  await build(await bootstrap());
  const before = fs.readFileSync(document, 'utf8');
  const after = await renewed(before);
  fs.writeFileSync(document, after);
  process.stdout.write(after === before ? 'docs/cli.md was current\n' : 'docs/cli.md is new\n');
  return 0;
});
