// @ts-check
// The last job of a build in parts, whoever scheduled it: one set for each column that the parts have.
//
//     node examples/concat-parts.mjs TARGET PARTS
//
// TARGET/part-00000-of-00008/train/image and its brothers become TARGET/train.image.json. Sets that are there are
// left as they are, so it may be killed and run again.
import fs from 'node:fs';
import path from 'node:path';
import { makeSet, partName } from 'loaderx';

/** The containers of a part. @param {string} folder @returns {string[]} */
function containersIn(folder) {
  if (fs.existsSync(path.join(folder, 'meta.zr'))) return [folder];
  const folders = fs
    .readdirSync(folder, { withFileTypes: true })
    .filter((each) => each.isDirectory());
  return folders.flatMap(({ name }) => containersIn(path.join(folder, name)));
}

const [target = '', count] = process.argv.slice(2);
const parts = Array.from({ length: Number(count) }, (_, part) =>
  path.join(target, partName({ part, of: Number(count) })),
);
const [first = ''] = parts;
for (const container of containersIn(first)) {
  const column = path.relative(first, container);
  const set = path.join(target, `${column.split(path.sep).join('.')}.json`);
  if (fs.existsSync(set)) continue;
  const { records } = await makeSet(
    parts.map((part) => path.join(part, column)),
    set,
  );
  console.log(`${set}: ${records} records of ${count} parts`);
}
