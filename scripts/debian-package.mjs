// @ts-check
// musl's loader, from Debian's package of it: a tool to try addons with, like qemu and wine, but one
// that is unpacked and not installed, for another processor too. apt keeps what it needs for this in a
// folder of ours; the machine's own apt stays as it is.
import fs from 'node:fs';
import path from 'node:path';
import { ask } from './child.mjs';
import { installFolder } from './install.mjs';
import { depsFolder, Failure } from './script.mjs';
import { compareVersions } from './shared-library.mjs';
import { filesBelow } from './up-to-date.mjs';

/** The first Debian whose musl reads packed relocations, which the pinned Node's libraries have. */
const suite = 'trixie';
const leastVersion = '1.2.4';
const keyring = '/usr/share/keyrings/debian-archive-keyring.gpg';

/**
 * @param {string} arch as in `process.arch`
 * @returns {Promise<{file: string, version: string}>} the loader
 * @throws {Failure} why it is not to be had
 */
export async function muslLoader(arch) {
  const target = path.join(depsFolder, 'musl', arch);
  const versionFile = path.join(target, 'version');
  await installFolder({
    target,
    isCurrent: () => fs.existsSync(versionFile),
    prepare: (scratch) => {
      process.stdout.write(`fetching musl for ${arch}\n`);
      const apt = aptFor(arch === 'x64' ? 'amd64' : arch, scratch);
      apt('update');
      apt('download', 'musl');
      const name = fs.readdirSync(scratch).find((file) => file.endsWith('.deb'));
      const version = /^musl_([\d.]+)/.exec(name ?? '')?.[1];
      if (name === undefined || version === undefined) throw new Failure('apt-get left no musl');
      if (compareVersions(version, leastVersion) < 0) {
        throw new Failure(`musl ${version} is older than ${leastVersion}`);
      }
      const folder = path.join(scratch, 'unpacked');
      if (!ask('dpkg-deb', ['--extract', path.join(scratch, name), folder]).ok) {
        throw new Failure('dpkg-deb could not unpack musl');
      }
      fs.writeFileSync(path.join(folder, 'version'), version);
      return folder;
    },
  });
  const [file] = filesBelow(target, (candidate) => path.basename(candidate) === 'libc.so');
  if (file === undefined) throw new Failure("there is no libc.so in Debian's musl");
  return { file, version: fs.readFileSync(versionFile, 'utf8') };
}

/**
 * @param {string} architecture Debian's name
 * @param {string} folder
 * @returns {(...args: string[]) => void} runs apt-get with a state of its own
 */
function aptFor(architecture, folder) {
  const targets = ask('apt-get', ['indextargets', '--format', '$(SITE) $(ORIGIN) $(COMPONENT)']);
  const line = /^(\S+) Debian main$/m.exec(targets.stdout);
  if (!targets.ok || line === null || !fs.existsSync(keyring)) {
    throw new Failure(
      "musl comes from Debian's packages, and this machine's apt has no such source",
    );
  }
  for (const place of ['lists/partial', 'cache/archives/partial']) {
    fs.mkdirSync(path.join(folder, place), { recursive: true });
  }
  const sources = path.join(folder, 'sources.list');
  fs.writeFileSync(sources, `deb [signed-by=${keyring}] ${line[1]} ${suite} main\n`);
  const settings = [
    `APT::Architecture=${architecture}`,
    `APT::Architectures=${architecture}`,
    // apt's own user may not write into a private folder.
    `APT::Sandbox::User=root`,
    'Acquire::Languages=none',
    `Dir::Etc::sourcelist=${sources}`,
    'Dir::Etc::sourceparts=/dev/null',
    `Dir::State::Lists=${path.join(folder, 'lists')}`,
    'Dir::State::Status=/dev/null',
    `Dir::Cache=${path.join(folder, 'cache')}`,
  ].flatMap((setting) => ['-o', setting]);
  return (...args) => {
    const answer = ask('apt-get', [...settings, '--quiet', ...args], { cwd: folder });
    if (!answer.ok) throw new Failure(`apt-get ${args.join(' ')} failed for ${architecture}`);
  };
}
