// @ts-check
// What goes wrong in a part's process, loaded before it with --import. FAULTS is a folder; a file in it that is
// named as the part says what:
//
//     fail N      the process is killed as often as the number says, then works
//     always      it is killed every time
//     refuse      the source has no such column, an error that no further try mends
//     hang N      it is busy for ever, as often as the number says, once it has begun to write
//     slow MS     it is busy that long at that point, as a synchronous loop of a decoder would be
import fs from 'node:fs';
import path from 'node:path';
import { isMainThread } from 'node:worker_threads';

const [, , , name = ''] = process.argv;
const part = /^part (\d+) of/.exec(name)?.[1];
const file = path.join(process.env.FAULTS ?? '', `part-${part}`);

/** Sees what comes from the worker before the program does. @param {(order: any) => void} look */
function onOrder(look) {
  /** @type {NodeJS.EventEmitter} */ (process).prependListener('message', look);
}

if (isMainThread && part !== undefined) {
  fs.appendFileSync(`${file}.tries`, `${process.pid}\n`);
  const tries = fs.readFileSync(`${file}.tries`, 'utf8').split('\n').length - 1;
  const [what, number] = fs.existsSync(file) ? fs.readFileSync(file, 'utf8').split(' ') : [];
  if (what === 'always' || (what === 'fail' && tries <= Number(number))) {
    onOrder(() => process.kill(process.pid, 'SIGKILL'));
  }
  if (what === 'refuse') {
    onOrder((order) => {
      if (order.kind === 'run') order.task.spec.columns = ['no such column'];
    });
  }
  const hangs = what === 'hang' && tries <= Number(number);
  const busyMs = hangs ? Number.POSITIVE_INFINITY : what === 'slow' ? Number(number) : 0;
  const send = process.send?.bind(process);
  let hasBegun = false;
  // Its first word is of rows that were read: by then its folder is there, and half of it is not written.
  process.send = (/** @type {any} */ answer, /** @type {any} */ ...rest) => {
    if (!hasBegun && answer.kind === 'progress') {
      hasBegun = true;
      fs.writeFileSync(`${file}.begun-${tries}`, '');
      const endMs = Date.now() + busyMs;
      while (Date.now() < endMs);
    }
    return send?.(answer, ...rest) ?? false;
  };
}
