// @ts-check
// A build that its process leaves without close:
//
//     node leaver.mjs PATH exit|end|kill
import { batchOf, loaderx } from './package.mjs';

const [path = '', how] = process.argv.slice(2);
const writer = loaderx.Dense.create(path, { codec: 'raw', dtype: 'uint32', itemShape: [12] });
await writer.append(batchOf(0, 100, 12));
if (how === 'exit') process.exit(0);
if (how === 'kill') process.kill(process.pid, 'SIGKILL');
