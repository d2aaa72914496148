// Pictures without sharp: what needs it says so, and PNG needs it never.
import { readFileSync } from 'node:fs';
import { register } from 'node:module';
import path from 'node:path';
import t from 'tap';
import { decodeImage } from '../ts/converter/images/decode.js';
import { resized } from '../ts/converter/images/resize.js';
import { sharpVersion } from '../ts/converter/images/sharp.js';
import { createImageColumn } from '../ts/converter/images.js';
import { ndarray } from '../ts/index.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

// From here on `import('sharp')` finds nothing, as where it was not installed.
register(
  `data:text/javascript,${encodeURIComponent(`
    export async function resolve(specifier, context, next) {
      if (specifier !== 'sharp') return next(specifier, context);
      const error = new Error("Cannot find package 'sharp'");
      throw Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' });
    }
  `)}`,
);

interface Case {
  readonly name: string;
  readonly bytes: string;
  readonly pixels?: { readonly shape: readonly number[]; readonly sha256: string };
}

const cases = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'golden', 'images.json'), 'utf8'),
) as readonly Case[];

function bytesOf(name: string): Buffer {
  const found = cases.find((each) => each.name === name);
  if (found === undefined) throw new Error(`there is no case ${name}`);
  return Buffer.from(found.bytes, 'base64');
}

const manifest = JSON.parse(
  readFileSync(path.join(import.meta.dirname, '..', 'package.json'), 'utf8'),
);

t.test('JPEG and WebP say what to install', async (t) => {
  t.equal(manifest.devDependencies.sharp, sharpVersion);
  t.equal(manifest.peerDependenciesMeta.sharp.optional, true);
  for (const name of ['jpeg 4:2:0', 'webp lossy']) {
    await t.rejects(decodeImage(bytesOf(name)), {
      code: 'UNSUPPORTED',
      message: new RegExp(`sharp.*npm install sharp@${sharpVersion}`),
    });
  }
  const create = { codec: 'raw' } as const;
  const column = createImageColumn({ column: 'photo', path: scratch.fresh(), create });
  await t.rejects(column.append([bytesOf('jpeg 4:2:0')], 5), {
    code: 'UNSUPPORTED',
    field: 'photo',
    record: 5,
    message: /column "photo", row 5.*npm install/,
  });
  await column.abort();
});

t.test('so does resizing, of whatever picture', async (t) => {
  const picture = ndarray('uint8', [2, 2], Uint8Array.of(1, 2, 3, 4));
  t.same(await resized(picture, [2, 2], 'L'), picture, 'nothing is to be done');
  await t.rejects(resized(picture, [1, 1], 'L'), {
    code: 'UNSUPPORTED',
    message: new RegExp(`^pictures are resized by sharp, .*npm install sharp@${sharpVersion}`),
  });
});

t.test('every PNG is decoded all the same', async (t) => {
  const { createHash } = await import('node:crypto');
  for (const { name, bytes, pixels } of cases) {
    if (!name.startsWith('png ') || pixels === undefined) continue;
    const { data } = await decodeImage(Buffer.from(bytes, 'base64'));
    const stored = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    t.equal(createHash('sha256').update(stored).digest('hex'), pixels.sha256, name);
  }
});
