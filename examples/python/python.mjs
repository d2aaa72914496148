// @ts-check
// Containers that are written here are read by Python's loaderx, and one that Python writes is read here.
//
//     npm run example -- python
//
// It wants a Python with `pip install loaderx==2.4.6`; $PYTHON names it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Dense, ndarray, Ragged } from 'loaderx';

const python = process.env.PYTHON ?? (process.platform === 'win32' ? 'python' : 'python3');
const run = (/** @type {string[]} */ ...args) => spawnSync(python, args, { encoding: 'utf8' });

if (run('-c', 'import loaderx.zrecord').status !== 0) {
  console.log(
    'skipped: this Python has no loaderx (pip install loaderx==2.4.6; $PYTHON names another)',
  );
} else {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'loaderx-python-'));
  const vectors = Dense.create(path.join(folder, 'vectors'), {
    ...{ dtype: 'float64', itemShape: [3], codec: 'zstd' },
  });
  const values = Float64Array.from({ length: 300 }, (_, at) => at / 8);
  await vectors.append(ndarray('float64', [100, 3], values));
  await vectors.close();
  const words = Ragged.create(path.join(folder, 'words'), {
    dtype: 'int32',
    ndim: 1,
    codec: 'raw',
  });
  await words.append(
    Array.from({ length: 100 }, (_, i) =>
      ndarray('int32', [1 + (i % 4)], new Int32Array(1 + (i % 4)).fill(i)),
    ),
  );
  await words.close();

  const { status, stdout, stderr } = run(path.join(import.meta.dirname, 'read.py'), folder);
  process.stdout.write(stdout);
  assert.equal(status, 0, stderr);
  const back = Dense.open(path.join(folder, 'doubled'), { dtype: 'float64', itemShape: [3] });
  const { data } = await back.gather([99, 1]);
  console.log(`from Python: ${data}`);
  assert.deepEqual(
    [...data],
    [...values.subarray(297), ...values.subarray(3, 6)].map((x) => 2 * x),
  );
  await back.close();
  fs.rmSync(folder, { recursive: true });
}
