// A signal that ends an import or a survey, before it and at every turn of it: ABORTED, or done.
import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { exportNpy } from '../ts/exporters.js';
import { type ImportOptions, importFiles, surveyFiles } from '../ts/importers/import.js';
import { Dense } from '../ts/index.js';
import { outcomeOf } from './support/outcome.js';
import { beside, Scratch } from './support/scratch.js';

const scratch = new Scratch(t);
const folder = scratch.fresh('sources');
mkdirSync(folder);

/** A file of each kind, of some hundred records. */
async function sources(): Promise<readonly (readonly [string, Partial<ImportOptions>])[]> {
  const at = (name: string): string => path.join(folder, name);
  const rows = Array.from({ length: 400 }, (_, row) => row);
  writeFileSync(at('table.csv'), `a,b\n${rows.map((row) => `${row},${row / 4}\n`).join('')}`);
  writeFileSync(at('lines.jsonl'), rows.map((row) => `{"a":${row}}\n`).join(''));
  writeFileSync(at('text.txt'), rows.map((row) => `line ${row}\n`).join(''));
  const writer = Dense.create(at('store'), { dtype: 'int16', itemShape: [4], codec: 'raw' });
  await writer.append({ dtype: 'int16', shape: [400, 4], data: new Int16Array(1600) });
  await writer.close();
  await exportNpy(at('store'), at('array.npy'));
  mkdirSync(at('samples'));
  for (const row of rows) writeFileSync(at(`samples/${row}.cls`), String(row));
  execFileSync('tar', ['-cf', at('shard.tar'), '-C', at('samples'), '.']);
  const utf8 = { strings: 'utf8' } as const;
  return [
    [at('table.csv'), {}],
    [at('lines.jsonl'), {}],
    [at('text.txt'), utf8],
    [at('text.txt'), { ...utf8, part: { part: 1, of: 2 } }],
    [at('text.txt'), { tokenizer: { encode: () => [1, 2] } }],
    [at('array.npy'), {}],
    [at('shard.tar'), {}],
  ];
}

t.test('before it begins, and at each of its first turns', async (t) => {
  for (const [file, options] of await sources()) {
    const name = `${path.basename(file)} ${Object.keys(options).join(' ')}`;
    for (let turns = 0; turns <= 24; turns += 1) {
      for (const work of ['import', 'survey'] as const) {
        const stop = new AbortController();
        const target = scratch.fresh();
        if (turns === 0) stop.abort();
        const all = { ...options, signal: stop.signal };
        const running =
          work === 'import'
            ? importFiles(file, target, { ...all, codec: 'raw' })
            : surveyFiles(file, target, all);
        const outcome = outcomeOf(() => running);
        for (let count = 0; count < turns; count += 1) await turn();
        stop.abort();
        const found = await outcome;
        const isAborted = found === 'LoaderxError ABORTED';
        t.ok(
          isAborted || (turns > 0 && found === 'ok'),
          `${name}, ${work}, turn ${turns}: ${found}`,
        );
        // The folder that parts share may be there, with none in it.
        const left = beside(target).flatMap((entry) =>
          entry === 'store' ? readdirSync(target) : entry,
        );
        if (isAborted) t.strictSame(left, [], 'nothing is left');
      }
    }
  }
});
