// @ts-check
// Makes a folder appear complete or not at all, also when two processes want it at the same time or
// one is killed midway: it is prepared under another name and renamed into place. Whoever comes
// second finds the first one's work current and drops its own.
import fs from 'node:fs';
import path from 'node:path';
import { depsFolder } from './script.mjs';

const leftoverAgeMs = 6 * 60 * 60 * 1000;

/**
 * @param {object} install
 * @param {string} install.target the folder that shall appear
 * @param {() => boolean} install.isCurrent whether `target` is there and is what is wanted
 * @param {(scratch: string) => Promise<string> | string} install.prepare makes the folder somewhere
 *   in `scratch`, an empty private folder, and returns its path
 */
export async function installFolder({ target, isCurrent, prepare }) {
  if (isCurrent()) return;
  fs.mkdirSync(depsFolder, { recursive: true });
  removeLeftovers();
  // In .deps and not in the system's temporary folder: a rename does not cross file systems.
  const scratch = fs.mkdtempSync(path.join(depsFolder, 'incoming-'));
  try {
    const prepared = await prepare(scratch);
    fs.chmodSync(prepared, 0o755);
    fs.mkdirSync(path.dirname(target), { recursive: true });
    for (let attempt = 0; !isCurrent(); attempt += 1) {
      moveAside(target, path.join(scratch, `outdated-${attempt}`));
      try {
        fs.renameSync(prepared, target);
        return;
      } catch (error) {
        // Somebody put a folder there in between: look again whether it is current.
        if (!isTaken(error) || attempt === 20) throw error;
      }
    }
  } finally {
    fs.rmSync(scratch, { recursive: true, force: true });
  }
}

/** @param {string} folder @param {string} aside */
function moveAside(folder, aside) {
  try {
    fs.renameSync(folder, aside);
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
  }
}

/** @param {unknown} error */
function isTaken(error) {
  return ['ENOTEMPTY', 'EEXIST', 'EPERM'].includes(codeOf(error));
}

/** @param {unknown} error @returns {string} */
function codeOf(error) {
  return error instanceof Error && 'code' in error ? String(error.code) : '';
}

/** Removes what killed installs left behind. */
function removeLeftovers() {
  for (const name of fs.readdirSync(depsFolder)) {
    if (!name.startsWith('incoming-')) continue;
    const folder = path.join(depsFolder, name);
    const age =
      Date.now() - (fs.statSync(folder, { throwIfNoEntry: false })?.mtimeMs ?? Date.now());
    if (age > leftoverAgeMs) fs.rmSync(folder, { recursive: true, force: true });
  }
}
