// @ts-check
// Fetches one file of a Python package by its hash, with the pip of the machine. pip is used as a
// downloader only: it knows the machine's mirrors and proxies, and picks the file for the platform.
// Nothing is installed into any Python.
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { ask } from './child.mjs';
import { Failure } from './script.mjs';

/**
 * @typedef {object} Pin
 * @property {string} version what the package carries
 * @property {string} package
 * @property {string} packageVersion
 * @property {string} folderInPackage
 * @property {readonly string[]} sha256 of every file that may be taken, one per platform
 */

/**
 * @param {Pin} pin
 * @param {object} how
 * @param {'wheel' | 'sources'} how.kind
 * @param {string} how.folder an existing folder; gets a folder of its own in it
 * @param {string} how.otherwise what else would do, for the failure's advice
 * @param {string} [how.platform] pip's name of the platform; default: this machine's
 * @returns {Buffer} the file's bytes, with one of the pin's hashes
 */
export function fetchPackage(pin, { kind, folder, otherwise, platform }) {
  const label = `${pin.package} ${pin.packageVersion}`;
  const python = pythonWithPip(label, otherwise);
  const requirements = path.join(folder, 'requirements.txt');
  const hashes = pin.sha256.map((hash) => `--hash=sha256:${hash}`).join(' ');
  fs.writeFileSync(requirements, `${pin.package}==${pin.packageVersion} ${hashes}\n`);

  const download = path.join(folder, 'download');
  const answer = ask(python, [
    ...['-m', 'pip', 'download', '--disable-pip-version-check', '--no-input'],
    ...['--retries', '2', '--timeout', '30', '--progress-bar', 'off'],
    ...['--no-deps', '--require-hashes', '--ignore-requires-python'],
    ...(platform === undefined ? [] : ['--platform', platform]),
    ...(kind === 'wheel' ? ['--only-binary', ':all:'] : ['--no-binary', pin.package]),
    ...['--requirement', requirements, '--dest', download],
  ]);
  if (!answer.ok) throw explainPip(label, answer.output, otherwise);

  const names = fs.readdirSync(download);
  const [name] = names;
  if (name === undefined || names.length !== 1) {
    throw new Failure(`pip was to download ${label} and left ${names.length} files`);
  }
  const bytes = fs.readFileSync(path.join(download, name));
  const sha256 = createHash('sha256').update(bytes).digest('hex');
  if (!pin.sha256.includes(sha256)) throw hashMismatch(label, `${name} has sha256 ${sha256}`);
  return bytes;
}

/** @param {string} label @param {string} otherwise */
function pythonWithPip(label, otherwise) {
  const candidates = [process.env.PYTHON, 'python3', 'python'].filter((name) => name !== undefined);
  let withoutPip = null;
  for (const python of candidates) {
    if (!ask(python, ['-c', 'import sys; sys.exit(sys.version_info < (3, 8))']).ok) continue;
    if (ask(python, ['-m', 'pip', '--version']).ok) return python;
    withoutPip ??= python;
  }
  if (withoutPip !== null) {
    throw new Failure(
      `${label} is fetched with pip, and ${withoutPip} has none`,
      `Install it (Debian, Ubuntu: apt-get install python3-pip; elsewhere: ${withoutPip} -m ensurepip), or ${otherwise}.`,
    );
  }
  throw new Failure(
    `${label} is fetched with Python's pip, and there is no Python 3.8 or later`,
    `Install python3 with pip, or name one with PYTHON=/path/to/python3, or ${otherwise}.`,
  );
}

/** @param {string} label @param {string} output what pip said @param {string} otherwise */
function explainPip(label, output, otherwise) {
  const said = withoutAddresses(output).split('\n').slice(-8).join('\n');
  if (/DO NOT MATCH THE HASHES/i.test(output)) return hashMismatch(label, said);
  if (/connection|resolution|resolve|timed out|unreachable|proxy|certificate/i.test(output)) {
    return new Failure(
      `pip could not reach its package index for ${label}`,
      `Check the network and pip's settings (pip config list), or ${otherwise}. pip said:\n${said}`,
    );
  }
  if (/no matching distribution/i.test(output)) {
    return new Failure(
      `there is no ${label} for this platform (${process.platform} ${process.arch}) in pip's package index`,
      `Please ${otherwise}. pip said:\n${said}`,
    );
  }
  return new Failure(`pip could not download ${label}`, `Please ${otherwise}. pip said:\n${said}`);
}

/** @param {string} label @param {string} detail */
function hashMismatch(label, detail) {
  return new Failure(
    `the ${label} that pip found is not the one that scripts/toolchain.lock.json names`,
    `It was not used. Look at the mirror that pip is set to (pip config list).\n${detail}`,
  );
}

/** Index addresses may carry a user's credentials. @param {string} output */
function withoutAddresses(output) {
  return output
    .replace(/\b[a-z][a-z0-9+.-]*:\/\/\S+/gi, '<address>')
    .replace(/host='[^']*'/g, "host='...'");
}
