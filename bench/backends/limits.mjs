// @ts-check
// The machine's limits as a backend: runs the helper of limits/limits.c, which measures by itself.
//
//     variant   copy, stream, pread, or a codec whose container `store` is decoded
//     mode      TARGET-THREADS: kept, fresh or huge, and a number; `gcc-` before it: gcc's build
import { spawnSync } from 'node:child_process';
import { limitsProgram } from '../paths.mjs';
import { serve } from './serve.mjs';

serve({
  about: () => {
    const { zstd, compiler } = ask(false, ['what=version']);
    return { zstd, compiler };
  },
  measure: ({ workload, target, variant, mode, seconds }) => {
    const [, gcc, kind, threads] = /^(gcc-)?(kept|fresh|huge)-(\d+)$/.exec(mode) ?? [];
    const { source, planFile, recordItems, itemBytes, ndim, batch } = workload;
    const isFrames = variant === 'zstd' || variant === 'zstd_dict';
    const records =
      workload.geometry === 'dense'
        ? [`record_bytes=${recordItems * itemBytes}`]
        : [
            `offsets=${workload.offsetsFile.file}`,
            `offsets_at=${workload.offsetsFile.at}`,
            `item_bytes=${itemBytes}`,
          ];
    return ask(gcc !== undefined, [
      `what=${isFrames ? 'zstd' : variant}`,
      `target=${kind}`,
      `threads=${threads}`,
      `seconds=${seconds}`,
      `plan=${planFile.file}`,
      `plan_at=${planFile.at}`,
      `batch=${batch}`,
      ...(isFrames
        ? [
            `container=${target}/store`,
            `dim_bytes=${workload.geometry === 'dense' ? 0 : ndim * dimensionBytes}`,
          ]
        : [`payload=${source.file}`, `payload_at=${source.at}`, ...records]),
    ]);
  },
});

/** Of one dimension of a ragged record, in the 2.4 dialect. */
const dimensionBytes = 8;

/** @param {boolean} isGcc @param {string[]} args @returns {any} */
function ask(isGcc, args) {
  const { stdout, stderr, status, error } = spawnSync(limitsProgram(isGcc), args, {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`bench-limits: ${stderr.trim()} ${error?.message ?? ''}`);
  return JSON.parse(stdout);
}
