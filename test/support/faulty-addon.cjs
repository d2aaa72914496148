// @ts-check
// The addon with a fault built in, for tests of the harness that is to find such faults. LOADERX_ADDON
// names this file; LOADERX_FAULT says what happens at the 300th open: `signal`, `hang`, `wrong` (a
// bit of every record), `foreign` (an error of no family) or `hungry` (memory that nobody asked for).
const path = require('node:path');

const real = require(path.join(__dirname, '..', '..', 'build', 'Release', 'loaderx.node'));
const fault = process.env.LOADERX_FAULT ?? '';
const openAt = 300;
let opens = 0;
/** @type {Buffer[]} */
const hoard = [];

module.exports = {
  ...real,
  storeOpen(/** @type {unknown} */ place) {
    opens += 1;
    if (opens === openAt && fault === 'signal') process.kill(process.pid, 'SIGSEGV');
    if (opens === openAt && fault === 'hang') for (;;);
    if (opens === openAt && fault === 'foreign') throw new Error('of no family');
    if (opens > openAt && fault === 'hungry') hoard.push(Buffer.allocUnsafeSlow(2 ** 28));
    return real.storeOpen(place);
  },
  gatherFixedSync(
    /** @type {unknown} */ store,
    /** @type {unknown} */ ids,
    /** @type {unknown} */ recordBytes,
    /** @type {Uint8Array | ArrayBuffer} */ target,
  ) {
    real.gatherFixedSync(store, ids, recordBytes, target);
    const bytes = target instanceof ArrayBuffer ? new Uint8Array(target) : target;
    if (opens > openAt && fault === 'wrong') bytes[0] = (bytes[0] ?? 0) ^ 1;
  },
};
