// @ts-check
// Random numbers of each record.
/**
 * @param {import('../streams.mjs').StreamsBatch} batch
 * @param {import('../../../ts/index.js').TransformContext} context
 */
export default function random(batch, { rng }) {
  return Array.from({ length: batch.text.length }, (_, index) => {
    const own = rng.at(index);
    return [own.uint32(), own.int(10), own.float()];
  }).flat();
}
