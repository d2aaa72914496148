// @ts-check
// What goes wrong in a part's process, loaded before it with --import. FAULTS is a folder; a file in it that is
// named as the part says what:
//
//     part-3          fail N      the process ends itself as often as the number says, then works
//                     always      it does so every time
//                     refuse      the source cannot be read, by an error that no further try mends
//                     hang        it keeps its thread busy for ever
//                     slow MS     its thread is busy that long before it begins
import fs from 'node:fs';
import path from 'node:path';
import { isMainThread } from 'node:worker_threads';

const [, , , name = ''] = process.argv;
const part = /^part (\d+) of/.exec(name)?.[1];
const file = path.join(process.env.FAULTS ?? '', `part-${part}`);
if (isMainThread && part !== undefined && fs.existsSync(file)) {
  const [what, number] = fs.readFileSync(file, 'utf8').trim().split(' ');
  fs.appendFileSync(`${file}.tries`, `${process.pid}\n`);
  const tries = fs.readFileSync(`${file}.tries`, 'utf8').split('\n').length - 1;
  if (what === 'always' || (what === 'fail' && tries <= Number(number))) {
    process.kill(process.pid, 'SIGKILL');
  }
  if (what === 'refuse') {
    process.prependListener('message', (/** @type {{ task?: { spec: { columns?: string[] } } }} */ order) => {
      if (order.task !== undefined) order.task.spec.columns = ['no such column'];
    });
  }
  const busyMs = what === 'hang' ? Number.POSITIVE_INFINITY : what === 'slow' ? Number(number) : 0;
  // Once it has its task: it answers no message then, as a synchronous loop of a decoder would.
  process.prependListener('message', () => {
    const endMs = Date.now() + busyMs;
    while (Date.now() < endMs);
  });
}
