// @ts-check
// A user's program, in a folder where loaderx is installed:
//
//     node program.mjs HOW SCRATCH-FOLDER [OTHER-COPY]
//
// HOW says how the package is loaded. The last line is `used: HOW FILE...` with the native files that
// this process has loaded.
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { use, useNames } from './use.mjs';

const require = createRequire(import.meta.url);

// A name of no literal type: what is installed is not looked at when types are checked.
/** @type {string} */
const name = 'loaderx';

/** @returns {Promise<import('./use.mjs').Loaderx>} */
const load = () => import(name);

/** @param {string} name @param {string} scratch an empty folder of its own @returns {string} */
function folderIn(name, scratch) {
  const folder = path.join(scratch, name);
  fs.mkdirSync(folder);
  return folder;
}

/** Uses the package in a worker that ends. @param {string} folder @returns {Promise<string[]>} */
function inWorker(folder) {
  const worker = new Worker(new URL(import.meta.url), { workerData: { folder } });
  return new Promise((resolve, reject) => {
    /** @type {string[]} */
    let files = [];
    worker.once('message', (message) => {
      files = message;
    });
    worker.once('error', reject).once('exit', (code) => {
      if (code === 0) resolve(files);
      else reject(new Error(`the worker ended with ${code}`));
    });
  });
}

/** The addons that this process has loaded. */
function nativeFiles() {
  const report = /** @type {{sharedObjects?: string[]} | undefined} */ (
    /** @type {unknown} */ (process.report?.getReport())
  );
  return (report?.sharedObjects ?? []).filter((file) => file.endsWith('.node'));
}

/** @type {Record<string, (scratch: string, other: string) => Promise<string[]>>} */
const ways = {
  import: async (scratch) => {
    await use(await load(), scratch);
    return nativeFiles();
  },
  'stores of every name': async (scratch) => {
    await useNames(await load(), scratch);
    return nativeFiles();
  },
  require: async (scratch) => {
    await use(require(name), scratch);
    return nativeFiles();
  },
  'only in workers, one after the other': async (scratch) => {
    const files = await inWorker(folderIn('first', scratch));
    await inWorker(folderIn('second', scratch));
    return files;
  },
  'in the main thread and 16 workers': async (scratch) => {
    const main = use(await load(), folderIn('main', scratch));
    const workers = Array.from({ length: 16 }, (_, index) =>
      inWorker(folderIn(`worker-${index}`, scratch)),
    );
    await Promise.all([main, ...workers]);
    return nativeFiles();
  },
  'two copies at once': async (scratch, other) => {
    const second = await import(pathToFileURL(path.join(other, 'dist', 'index.js')).href);
    const first = await load();
    if (first.Dense === second.Dense) throw new Error('it is the same copy');
    await Promise.all([
      use(first, folderIn('first', scratch)),
      use(second, folderIn('second', scratch)),
    ]);
    return nativeFiles();
  },
};

if (isMainThread) {
  const [how = '', scratch = '', other = ''] = process.argv.slice(2);
  const files = await ways[how]?.(scratch, other);
  console.log(`used: ${how} ${JSON.stringify(files)}`);
} else {
  await use(await load(), workerData.folder);
  parentPort?.postMessage(nativeFiles());
}
