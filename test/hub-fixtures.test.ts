// The shared fixtures as repositories of a hub on loopback, converted: what Python's converter made of them,
// found, loaded, read and written here.

import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { convert } from '../ts/converter/convert.js';
import { type Call, differences, readCase } from './support/converter-fixtures.js';
import { fixture, withoutFixtures } from './support/fixtures.js';
import { Caller } from './support/hub.js';
import { HubServer } from './support/hub-server.js';
import { isFull } from './support/limits.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

/** Those that are about revisions, configs, splits and files; the others need no hub. */
const ofTheHub =
  /^(configs-|names-splits|converted-branch|revisions|splits-by|whole-dataset|metadata-|empty-things$)/;

function filesOf(folder: string): Record<string, Uint8Array> {
  return Object.fromEntries(
    readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => path.join(parentPath, name))
      .map((file) => [path.relative(folder, file).split(path.sep).join('/'), readFileSync(file)]),
  );
}

const isWrong = ({ error, better }: Call): boolean =>
  error !== undefined || /^(refuse|check|equal bytes, or refuse)/.test(better ?? '');

t.test('the fixtures by way of a hub', { skip: withoutFixtures }, async (t) => {
  const server = await HubServer.start(t, { pageEntries: 5 });
  for (const name of readdirSync(fixture('converter')).sort()) {
    if (!existsSync(fixture(`converter/${name}/expected.json`))) continue;
    if (!isFull && !ofTheHub.test(name)) continue;
    const { refs, calls } = readCase(name);
    const repo = `fx/${name}`;
    for (const [revision, { folder, commit }] of Object.entries(refs)) {
      server.commit(repo, revision, filesOf(fixture(`converter/${name}/${folder}`)), commit);
    }
    const caller = new Caller(scratch, server);
    for (const call of calls) {
      const { config, revision, codec } = call;
      const title = `${name}, config ${config}, revision ${revision}`;
      const root = scratch.fresh('root');
      const names = name === 'names-odd' ? 'any' : 'portable';
      try {
        const options = { revision, ...(config === null ? {} : { config }) };
        const dataset = await caller.dataset(repo, options);
        t.match(dataset.source, {
          name: repo,
          revision,
          commit: refs[revision]?.commit ?? revision,
        });
        await convert(dataset, root, { codec, names });
      } catch (error) {
        if (!/^(skip|an empty row group)/.test(call.better ?? '')) {
          t.ok(isWrong(call), `${title}: ${(error as Error).message}`);
        } else throw error;
        t.strictSame(readdirSync(path.dirname(root)), [], `${title} leaves nothing`);
        continue;
      }
      if (call.better !== undefined || call.note?.includes('as good')) continue;
      t.notOk(call.error, `${title} is converted`);
      const wanted = call.result ?? calls[call.result_as_call ?? -1]?.result ?? {};
      for (const [split, columns] of Object.entries(wanted)) {
        for (const [column, entry] of Object.entries(columns)) {
          const found = differences(path.join(root, split, column), { ...entry, codec });
          t.strictSame(found, [], `${title}: ${split}/${column}`);
        }
      }
      t.strictSame(readdirSync(root).sort(), Object.keys(wanted).sort(), `${title}: splits`);
    }
  }
});
