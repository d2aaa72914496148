// @ts-check
// One process among those that read one stream together. What it is it learns from its launcher:
//
//     torchrun --nproc-per-node=4 --no-python node examples/ranks/rank.mjs SET OUT FROM TO
//     mpirun -n 4 node examples/ranks/rank.mjs SET OUT FROM TO
//     RANK=2 WORLD_SIZE=4 node examples/ranks/rank.mjs SET OUT FROM TO
//
// It takes its slice of each batch of the steps FROM to TO - 1 and writes it to OUT/step-FROM.rank-WORLD-RANK.
// Nobody tells it more: the batch of a step is a function of seed and step alone, so ranks need neither each
// other nor the number of ranks that there were before.
import fs from 'node:fs';
import path from 'node:path';
import { DataLoader, open, shardFromEnv } from 'loaderx';

const [set = '', out = '', from = '0', to = '0'] = process.argv.slice(2);
const shard = shardFromEnv();
const record = open(set);
const loader = new DataLoader(
  { record },
  { batchSize: 130, mode: 'cyclic', seed: 11, step: Number(from), shard },
);
for (let step = Number(from); step < Number(to); step += 1) {
  const { value: batch } = await loader.next();
  if (batch === undefined) throw new Error('the stream ended');
  if (!('data' in batch.record)) throw new TypeError(`${set} holds ragged records`);
  const { buffer, byteOffset, byteLength } = batch.record.data;
  const name = `step-${step}.rank-${shard.world}-${shard.rank}`;
  fs.writeFileSync(path.join(out, name), new Uint8Array(buffer, byteOffset, byteLength));
  batch.record[Symbol.dispose]();
}
await loader.close();
await record.close();
