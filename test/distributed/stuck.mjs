// @ts-check
// Loaded before the command line with --import: once a part's hidden folder is there, the process stands still
// in the midst of it, and says so by making the file that STUCK names.
import fs from 'node:fs';
import path from 'node:path';

const { STUCK: sign } = process.env;
if (sign !== undefined) {
  const { renameSync } = fs;
  fs.renameSync = (from, to) => {
    // The part is complete but for its name.
    if (path.basename(String(from)) === 'root') {
      fs.writeFileSync(sign, `${process.pid}`);
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    }
    renameSync(from, to);
  };
}
