// @ts-check
// Parts by the ranks of mpirun. It listens on all addresses, so it gets a network of its own where this may be
// made. Readers under mpirun and torchrun are tried by test/ranks.test.ts.
import fs from 'node:fs';
import { ask } from '../child.mjs';
import { inRoot } from '../script.mjs';
import { cli, programAt, Scene } from './scene.mjs';

const parts = 4;

export async function ranks() {
  const scene = new Scene('mpirun');
  const mpirun = programAt('mpirun');
  const canUnshare = ask('unshare', ['--net', 'true']).ok;
  if (mpirun === undefined || !canUnshare) {
    scene.skip(
      mpirun === undefined
        ? 'mpirun is not installed'
        : 'it would listen on all addresses, and no network of its own can be made for it here',
    );
    fs.rmSync(scene.folder, { recursive: true });
    return scene.tally;
  }
  try {
    await scene.begin();
    const target = scene.at('out');
    const line = (/** @type {number} */ count) => [
      ...['--net', 'sh', '-c', 'ip link set lo up; exec "$@"', 'sh', mpirun],
      ...['--allow-run-as-root', '--oversubscribe', '-n', String(count), process.execPath, cli],
      ...['convert', scene.source, target, '--codec', 'zstd', '--integrity'],
    ];
    const made = scene.start('unshare', [...line(parts), '--part', 'env']);
    scene.check((await made.ended) === 0, `${parts} ranks make ${parts} parts`, made.output);
    const concat = scene.start(process.execPath, [
      inRoot('examples', 'concat-parts.mjs'),
      ...[target, String(parts)],
    ]);
    scene.check((await concat.ended) === 0, 'the sets are made', concat.output);
    await scene.checkTarget(target, parts, 'ranks');
    const other = scene.start('unshare', [...line(2), '--part', `env/${parts}`]);
    await other.ended;
    scene.check(
      /to be 4 parts, and Open MPI says OMPI_COMM_WORLD_SIZE=2/.test(other.output),
      'another number of ranks is refused',
      other.output,
    );
  } catch (error) {
    scene.check(false, 'the example', error instanceof Error ? error.message : error);
  } finally {
    await scene.end();
  }
  return scene.tally;
}
