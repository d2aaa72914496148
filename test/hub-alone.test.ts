// The hub without @huggingface/hub: what needs it says so, and what is in the cache does not need it.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { register } from 'node:module';
import path from 'node:path';
import t from 'tap';
import { libraryVersion } from '../ts/converter/hub/client.js';
import { Caller, contentsOf } from './support/hub.js';
import { sha256 } from './support/hub-server.js';
import { Scratch } from './support/scratch.js';

const scratch = new Scratch(t);

// From here on `import('@huggingface/hub')` finds nothing, as where it was not installed.
register(
  `data:text/javascript,${encodeURIComponent(`
    export async function resolve(specifier, context, next) {
      if (specifier !== '@huggingface/hub') return next(specifier, context);
      const error = new Error("Cannot find package '@huggingface/hub'");
      throw Object.assign(error, { code: 'ERR_MODULE_NOT_FOUND' });
    }
  `)}`,
);

t.test('the package is optional, and of the version that is tested', async (t) => {
  const manifest = JSON.parse(
    readFileSync(path.join(import.meta.dirname, '..', 'package.json'), 'utf8'),
  );
  t.equal(manifest.devDependencies['@huggingface/hub'], libraryVersion);
  t.equal(manifest.peerDependenciesMeta['@huggingface/hub'].optional, true);
  const document = readFileSync(path.join(import.meta.dirname, '..', 'docs', 'hub.md'), 'utf8');
  t.match(document, `npm install @huggingface/hub@${libraryVersion}`);
});

t.test('it is missing: the error says what to install, and nothing is written', async (t) => {
  const caller = new Caller(scratch);
  await t.rejects(caller.load('fx/a', { endpoint: 'http://127.0.0.1:1' }), {
    name: 'LoaderxError',
    code: 'UNSUPPORTED',
    message: new RegExp(`npm install @huggingface/hub@${libraryVersion}$`),
  });
});

t.test('what is in the cache needs no package', async (t) => {
  const caller = new Caller(scratch);
  const commit = 'a'.repeat(40);
  const snapshot = path.join(caller.folder('fx/a'), 'snapshots', commit);
  mkdirSync(snapshot, { recursive: true });
  mkdirSync(path.join(caller.folder('fx/a'), 'refs'));
  writeFileSync(path.join(caller.folder('fx/a'), 'refs', 'main'), commit);
  writeFileSync(path.join(snapshot, 'x.parquet'), 'content');
  caller.env.HF_HUB_OFFLINE = '1';
  t.strictSame(contentsOf(await caller.load('fx/a')), {
    train: { 'x.parquet': sha256(Buffer.from('content')) },
  });
});
