// @ts-check
// npm @riaskov/mmap-io: the file mapped once, records copied out of it. There is no guard: a file
// that shrinks ends the process.
import fs from 'node:fs';
import { peer, peerVersion } from './peer.mjs';
import { fileIn, plainModes, preparePlainWrite } from './plain.mjs';
import { serve } from './serve.mjs';

const { default: mmap } = await peer('@riaskov/mmap-io');

serve({
  about: () => peerVersion('@riaskov/mmap-io'),
  prepareWrite: preparePlainWrite,
  async open({ workload, target }) {
    const file = fs.openSync(fileIn(target), 'r');
    const map = mmap.map(fs.fstatSync(file).size, mmap.PROT_READ, mmap.MAP_SHARED, file);
    const modes = plainModes(workload, (bytes, at, from, length) => {
      bytes.set(map.subarray(from, from + length), at);
    });
    return { modes, close: () => fs.closeSync(file) };
  },
});
