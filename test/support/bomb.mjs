// @ts-check
// Opens containers that are made to cost much and says what each did cost: processor time, and the
// most memory beyond what was there before.
//
//     node bomb.mjs CASES.json       [{"name", "path", "ids"?}]; without ids it is only opened
//
// One JSON text a line: {"name", "outcome", "record"?, "cpuMs", "addedBytes"}.
import fs from 'node:fs';
import { loaderx } from './package.mjs';

const isLinux = process.platform === 'linux';

/** A field of the status that Linux keeps of this process, in bytes. @param {string} field */
function statusBytes(field) {
  const status = fs.readFileSync('/proc/self/status', 'utf8');
  return Number(new RegExp(`${field}:\\s*(\\d+) kB`).exec(status)?.[1]) * 1024;
}

/** Lets the high-water mark of resident memory begin anew. */
function resetPeak() {
  if (isLinux) fs.writeFileSync('/proc/self/clear_refs', '5');
}

/** @param {number} beforeBytes */
function addedBytes(beforeBytes) {
  if (!isLinux) return 0;
  return Math.max(0, statusBytes('VmHWM') - beforeBytes);
}

/**
 * @param {{name: string, path: string, ids?: number[], maxBatchBytes?: number, isAsync?: boolean}} bomb
 */
async function explode({ path, ids, maxBatchBytes, isAsync }) {
  /** @type {import('../../ts/index.js').DenseReader | import('../../ts/index.js').RaggedReader | undefined} */
  let reader;
  try {
    reader = loaderx.open(path, { maxBatchBytes });
    if (ids === undefined) return { outcome: `opened ${reader.length}` };
    const batch = isAsync ? await reader.gather(ids) : reader.gatherSync(ids);
    const { byteLength } = 'values' in batch ? batch.values : batch.data;
    return { outcome: `read ${byteLength}` };
  } catch (error) {
    if (!(error instanceof loaderx.LoaderxError)) throw error;
    return { outcome: error.code, record: error.record };
  } finally {
    await reader?.close();
  }
}

/** @type {Parameters<typeof explode>[0][]} */
const bombs = JSON.parse(fs.readFileSync(process.argv[2] ?? '', 'utf8'));
for (const bomb of bombs) {
  resetPeak();
  const beforeBytes = isLinux ? statusBytes('VmRSS') : 0;
  const startCpu = process.cpuUsage();
  const ending = await explode(bomb);
  const { user, system } = process.cpuUsage(startCpu);
  const added = addedBytes(beforeBytes);
  const cpuMs = (user + system) / 1000;
  process.stdout.write(
    `${JSON.stringify({ name: bomb.name, ...ending, cpuMs, addedBytes: added })}\n`,
  );
}
