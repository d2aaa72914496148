// Pictures decoded: pixel by pixel what Pillow, datasets and NumPy read. golden/images.json was made by
// golden/make-images.py and holds both, so that neither is needed here.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { decodeImage } from '../ts/converter/images/decode.js';
import { LoaderxError } from '../ts/errors.js';

interface Case {
  readonly name: string;
  readonly bytes: string;
  readonly mode?: string;
  readonly pixels?: {
    readonly dtype: string;
    readonly shape: readonly number[];
    readonly sha256: string;
  };
  readonly code?: string;
  readonly says?: string;
}

const cases = JSON.parse(
  readFileSync(path.join(import.meta.dirname, 'golden', 'images.json'), 'utf8'),
) as readonly Case[];

for (const group of ['png', 'jpeg', 'webp', 'mode', 'other']) {
  t.test(`${group}: what Pillow reads, or a refusal`, async (t) => {
    for (const { name, bytes, mode, pixels, code, says } of cases) {
      if (!name.startsWith(`${group} `)) continue;
      const decoding = decodeImage(Buffer.from(bytes, 'base64'), { mode });
      if (pixels !== undefined) {
        const { dtype, shape, data } = await decoding;
        const stored = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
        const sha256 = createHash('sha256').update(stored).digest('hex');
        t.strictSame({ dtype, shape, sha256 }, pixels, name);
        continue;
      }
      const error = await decoding.catch((reason: unknown) => reason);
      if (!(error instanceof LoaderxError)) {
        t.fail(`${name} is refused`, { error });
        continue;
      }
      t.equal(error.code, code, `${name}: ${error.message}`);
      t.ok(error.message.includes(says ?? ''), `${name}: ${error.message}`);
    }
  });
}
