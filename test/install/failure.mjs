// @ts-check
// Says, as JSON, how the installed package fails where it cannot load its native part. Arguments: the
// platform and processor to pretend, or `-`; `glibc` or `musl` to pretend that C library.
import os from 'node:os';

const [platform = '-', arch = '-', libc = '-'] = process.argv.slice(2);
if (platform !== '-') {
  Object.defineProperty(process, 'platform', { value: platform });
  os.platform = () => /** @type {NodeJS.Platform} */ (platform);
}
if (arch !== '-') {
  Object.defineProperty(process, 'arch', { value: arch });
  os.arch = () => /** @type {NodeJS.Architecture} */ (arch);
}
if (libc !== '-' && process.report !== undefined) {
  const header = libc === 'musl' ? {} : { glibcVersionRuntime: '2.36' };
  Object.defineProperty(process.report, 'getReport', { value: () => ({ header }) });
}

/** @type {string} of no literal type: what is installed is not looked at when types are checked */
const name = 'loaderx';
const { Sampler } = await import(name);
try {
  new Sampler({ length: 1, batchSize: 1, mode: 'iid', seed: 1 }).draw();
  console.log('{}');
} catch (error) {
  const { code, message } = /** @type {import('../../ts/index.js').LoaderxError} */ (error);
  console.log(JSON.stringify({ code, message }));
}
