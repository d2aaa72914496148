// The shared fixtures whose columns are pictures: what Python's converter made of them, or what it should
// have made.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { convert } from '../ts/converter/convert.js';
import { LoaderxError } from '../ts/errors.js';
import { open } from '../ts/index.js';
import { type Call, datasetOf, differences, readCase } from './support/converter-fixtures.js';
import { fixture, withoutFixtures } from './support/fixtures.js';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const skip = withoutFixtures;

async function converted(name: string, call: Call): Promise<string | LoaderxError> {
  const target = scratch.fresh('out');
  try {
    return await convert(await datasetOf(name, call), target, { codec: call.codec });
  } catch (error) {
    if (!(error instanceof LoaderxError)) throw error;
    return error;
  } finally {
    t.strictSame(
      beside(target).filter((each) => each !== 'out'),
      [],
      `${name} leaves nothing`,
    );
  }
}

/** Formats that are refused by their name. */
const refusedFormats: Readonly<Record<string, string>> = {
  bmp: 'BMP',
  gif: 'GIF',
  tiff: 'TIFF',
  tiff16: 'TIFF',
  tiff_float: 'TIFF',
};

t.test('pictures as Python converts them', { skip }, async (t) => {
  for (const name of readdirSync(fixture('converter'))) {
    if (!name.startsWith('images-') && name !== 'whole-dataset') continue;
    for (const call of readCase(name).calls) {
      const title = `${name} ${call.config ?? ''}`.trim();
      const made = await converted(name, call);
      if (
        call.config !== null &&
        name === 'images-other-formats' &&
        call.config in refusedFormats
      ) {
        if (!(made instanceof LoaderxError)) throw new Error(`${title} converts`);
        t.match(made, { code: 'UNSUPPORTED', field: 'image', record: 0 }, title);
        t.match(made.message, refusedFormats[call.config] ?? '');
        continue;
      }
      if (title === 'images-size-change-late late') {
        t.type(made, 'string');
        const reader = open(path.join(String(made), 'train', 'image'));
        t.equal(reader.kind, 'ragged');
        t.equal(reader.length > 70, true);
        t.not(String(reader.record(70).shape), String(reader.record(69).shape));
        await reader.close();
        continue;
      }
      if (call.result === undefined || call.better?.startsWith('refuse') === true) {
        t.type(made, LoaderxError, title);
        if (!(made instanceof LoaderxError)) continue;
        t.type(made.field, 'string', `${title}: ${made.message}`);
        if (/row/.test(call.better ?? '')) t.type(made.record, 'number', title);
        continue;
      }
      if (made instanceof LoaderxError) {
        t.fail(`${title}: ${made.message}`);
        continue;
      }
      for (const [split, columns] of Object.entries(call.result)) {
        t.strictSame(readdirSync(path.join(made, split)).sort(), Object.keys(columns).sort());
        for (const [column, entry] of Object.entries(columns)) {
          const container = path.join(made, split, column);
          if (column === 'rgb16') {
            const reader = open(container);
            t.match(reader, { kind: 'dense', dtype: 'uint16', itemShape: [6, 8, 3] });
            await reader.close();
            continue;
          }
          const wanted = { ...entry, codec: call.codec };
          t.strictSame(differences(container, wanted), [], `${title}: ${split}/${column}`);
        }
      }
    }
  }
});

t.test('rows without a picture', { skip }, async (t) => {
  for (const call of readCase('nulls-lists').calls) {
    if (!/^image_/.test(call.config ?? '')) continue;
    const made = await converted('nulls-lists', call);
    t.match(made, { code: 'SOURCE', message: /row \d+.*null/s }, call.config ?? '');
    if (!(made instanceof LoaderxError)) continue;
    t.type(made.field, 'string');
    t.type(made.record, 'number');
  }
});
