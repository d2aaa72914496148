// @ts-check
// Containers in both directions: each plan is written by Python and by us, read by the other, and
// the two folders are compared. Both then have an integrity file and one logical digest, and Python
// reads its own again, with the file in it.
import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { compareFolders, isDeterministic } from './layout.mjs';
import { Group } from './ledger.mjs';
import { checkOurs, randomIds, writeOurs } from './ours.mjs';
import { combinations, dimensionBytes, gathered, planContainer, recordBytes } from './plan.mjs';
import { Random } from './random.mjs';

/** @typedef {import('./plan.mjs').Plan} Plan */

/**
 * @typedef {object} Setting
 * @property {import('./ours.mjs').Loaderx} loaderx
 * @property {import('./worker.mjs').PythonWorker} python
 * @property {'2.4' | '2.8'} dialect
 * @property {string} version of Python's loaderx
 * @property {number} lanes of Python's loaderx
 * @property {string} folder empty, for this part alone
 * @property {string} seed
 * @property {number} count how much of it
 * @property {(part: string, index: number) => boolean} isWanted
 */

/** @param {Setting} setting @returns {Promise<Group[]>} */
export async function exchangeContainers(setting) {
  const { dialect, version, seed, count, isWanted } = setting;
  const reading = new Group(`${version} writes, we read`);
  const writing = new Group(`we write, ${version} reads`);
  const files = new Group(
    dialect === '2.4' ? `our files against ${version}'s` : `our records against ${version}'s`,
  );
  const part = `exchange-${dialect}`;
  const vouching = new Group(`${version} reads what integrity.zr vouches for`);
  let exactCount = 0;
  for (const [index, combination] of combinations(
    dialect,
    count,
    new Random(seed, part),
  ).entries()) {
    if (!isWanted(part, index)) continue;
    const random = new Random(seed, part, index);
    const plan = await withDictionary(setting.loaderx, planContainer(combination, random));
    const name = `--seed ${seed} --case ${part}:${index} (${words(plan)})`;
    const folder = path.join(setting.folder, String(index));
    const [theirs, ours] = [path.join(folder, 'python é'), path.join(folder, 'ours')];
    const inputs = writeInputs(folder, plan);

    const isRead = await reading.check(name, async () => {
      const length = await setting.python.call('write', { path: theirs, ...inputs });
      assert.equal(length, plan.shapes.length, "the length of Python's writer");
      await checkOurs(setting.loaderx, theirs, plan, dialect, random);
    });

    const isWritten = await writing.check(name, async () => {
      const twin =
        isRead && combination.kind === 'ragged' ? setting.loaderx.Ragged.open(theirs) : undefined;
      try {
        await writeOurs(setting.loaderx, ours, plan, dialect, twin);
      } finally {
        await twin?.close();
      }
      await checkPython(setting, ours, folder, plan, random);
    });

    let isSame = false;
    if (isRead && isWritten) {
      isSame = await files.check(name, () => {
        const isExact = dialect === '2.4' && isDeterministic(plan, setting.lanes);
        compareFolders(ours, theirs, plan, isExact);
        if (isExact) exactCount += 1;
      });
    }
    let isVouched = false;
    if (isSame) {
      isVouched = await vouching.check(name, async () => {
        await checkVouched(setting.loaderx, ours, theirs);
        await checkPython(setting, theirs, folder, plan, random);
      });
    }
    if (isVouched) fs.rmSync(folder, { recursive: true, force: true });
  }
  if (dialect === '2.4') files.note = `${exactCount} byte for byte, others record for record`;
  return [reading, writing, files, vouching];
}

/**
 * The plan with a trained dictionary, if it is to have one and there is enough to train on. That
 * Python trains the same is shown elsewhere: dictionaries.mjs.
 *
 * @param {Setting['loaderx']} loaderx
 * @param {Plan} plan
 * @returns {Promise<Plan>}
 */
async function withDictionary(loaderx, plan) {
  if (!plan.isTrainable) return plan;
  try {
    const records = plan.shapes.map((_, id) => recordBytes(plan, id));
    return { ...plan, dictionary: await loaderx.trainDict(records) };
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code !== 'UNEXPECTED') return plan;
    throw error;
  }
}

/** What Python needs to write the plan; bulk goes to files. @param {string} folder @param {Plan} plan */
function writeInputs(folder, plan) {
  const { combination, itemShape, ndim, items, appends, dictionary } = plan;
  const { dtype, kind, codec, shards } = combination;
  fs.mkdirSync(folder, { recursive: true });
  const file = (/** @type {string} */ name, /** @type {Uint8Array} */ bytes) => {
    fs.writeFileSync(path.join(folder, name), bytes);
    return path.join(folder, name);
  };
  return {
    kind,
    // Any spelling gives the same stored text.
    dtype: dtype.spelled[plan.shapes.length % dtype.spelled.length],
    codec,
    shards,
    items: file('items', items),
    appends,
    ...(dictionary === undefined ? {} : { dictionary: file('dictionary', dictionary) }),
    ...(kind === 'dense'
      ? { item_shape: itemShape }
      : { ndim, dims: file('dims', dimensionBytes(plan)) }),
  };
}

/**
 * Has Python read a container of ours and holds what it says to the plan.
 *
 * @param {Setting} setting
 * @param {string} container
 * @param {string} folder
 * @param {Plan} plan
 * @param {Random} random
 */
async function checkPython({ python }, container, folder, plan, random) {
  const { combination, itemShape, ndim, shapes } = plan;
  const { dtype, kind, codec, shards } = combination;
  const picks = randomIds(shapes.length, random);
  const items = path.join(folder, 'items.read');
  const dims = path.join(folder, 'dims.read');
  const facts = await python.call('read', { path: container, kind, items, dims, picks });
  assert.deepEqual(facts, {
    dtype: dtype.stored,
    ndim,
    item_shape: kind === 'dense' ? itemShape : null,
    codec,
    shards,
    has_dict: codec === 'zstd_dict',
    length: shapes.length,
  });
  assert.ok(fs.readFileSync(items).equals(plan.items), 'the bytes that Python read differ');
  const picked = fs.readFileSync(`${items}.picked`);
  assert.ok(picked.equals(gathered(plan, picks)), 'the bytes that Python picked differ');
  if (kind === 'dense') return;
  assert.ok(fs.readFileSync(dims).equals(dimensionBytes(plan)), 'the dims that Python read differ');
  const pickedDims = fs.readFileSync(`${dims}.picked`);
  assert.ok(pickedDims.equals(dimensionBytes(plan, picks)), 'the dims that Python picked differ');
}

/**
 * Both containers are sound, and their logical digests one.
 *
 * @param {Setting['loaderx']} loaderx
 * @param {string} ours
 * @param {string} theirs
 */
async function checkVouched(loaderx, ours, theirs) {
  const digests = [];
  for (const container of [ours, theirs]) {
    const { logicalDigest } = await loaderx.digest(container);
    const { faults, warnings, integrity } = await loaderx.verify(container);
    assert.deepEqual(
      { faults, warnings, integrity },
      { faults: [], warnings: [], integrity: 'checked' },
    );
    digests.push(logicalDigest);
  }
  assert.equal(digests[0], digests[1], 'the logical digests');
}

/** @param {Plan} plan */
function words({ combination, itemShape, ndim, shapes, items, dictionary }) {
  const { dtype, kind, codec, shards } = combination;
  const coded = dictionary === undefined ? codec : `${codec} of ${dictionary.length} bytes`;
  const shape = kind === 'dense' ? `[${itemShape}]` : `ndim ${ndim}`;
  return `${kind} ${dtype.stored} ${shape} ${coded}, ${shards} shards, ${shapes.length} records, ${items.length} bytes`;
}
