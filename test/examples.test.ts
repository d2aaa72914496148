// Every example that needs no packages of its own runs here and checks itself; the others are run by
// `npm run examples`. Each has its line in the README.
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';
import { examplesByName } from '../scripts/examples.mjs';

const root = path.resolve(import.meta.dirname, '..');
const examples = examplesByName();

/** What each says when it did what it is there for. The rest has tests of its own, or own packages. */
const last: Readonly<Record<string, RegExp>> = {
  quickstart: /^10000 records, zstd, \d+ bytes on the disk$/m,
  'multi-stream': /^2000 records: picture, label and words belong together$/m,
  'ragged-tokens': /^packed: 14 tokens, offsets \[0,9,11,14\]$/m,
  resume: /^1280 records in 40 steps: the same as without a break$/m,
  augment: /^one worker, four, and none: the same pictures$/m,
  'convert-local': /^SOURCE: column weight, record 1$/m,
  python: /^(?:from Python: 74\.25|skipped: this Python has no loaderx)/m,
};
const testedElsewhere = ['demo', 'ranks'];

/** The Python that `npm run interop` has made, if it has. */
function python(): NodeJS.ProcessEnv {
  const record = path.join(root, '.deps', 'python-2.4', 'installed.json');
  if (!existsSync(record)) return {};
  const { environment } = JSON.parse(readFileSync(record, 'utf8')) as {
    environment: { python: string; env: NodeJS.ProcessEnv };
  };
  return { ...environment.env, PYTHON: environment.python };
}

t.test('each does what it says', (t) => {
  for (const [name, file] of examples) {
    if (existsSync(path.join(path.dirname(file), 'package.json'))) continue;
    if (testedElsewhere.includes(name)) continue;
    const { status, stdout, stderr } = spawnSync(process.execPath, [file], {
      encoding: 'utf8',
      env: { ...process.env, NODE_OPTIONS: '', ...python() },
    });
    t.equal(status, 0, `${name}: ${stderr}`);
    t.match(stdout, last[name] ?? /^this example is to be named in the test$/, name);
  }
  t.end();
});

t.test('each has its line in the README', (t) => {
  const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
  const lines = [...readme.matchAll(/^\| \[([a-z-]+)\]\((examples\/[^)]+)\)(?:, \d+ MB)? \|/gm)];
  const shown = lines.map(([, name = '', file = '']) => `${name} ${path.join(root, file)}`);
  t.strictSame(shown.sort(), [...examples].map(([name, file]) => `${name} ${file}`).sort());
  t.end();
});

t.test('their packages are pinned, and none is the core’s', (t) => {
  const core = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  t.strictSame(Object.keys(core.dependencies), ['node-gyp-build']);
  for (const file of examples.values()) {
    const own = path.join(path.dirname(file), 'package.json');
    if (!existsSync(own)) continue;
    const { dependencies } = JSON.parse(readFileSync(own, 'utf8')) as {
      dependencies: Record<string, string>;
    };
    for (const [name, version] of Object.entries(dependencies)) {
      t.match(version, /^\d+\.\d+\.\d+$/, `${own}: ${name}`);
    }
  }
  t.end();
});
