// @ts-check
// The package as it is built into dist/, for child processes and workers, which run plain JavaScript.
// Types come from the sources: dist/ need not be there when types are checked.

/** @typedef {typeof import('../../ts/index.js')} Loaderx */

/** @type {Loaderx} */
export const loaderx = await import(new URL('../../dist/index.js', import.meta.url).href);

/** @param {number} id @param {number} items items of one record @returns {Uint32Array} */
export function recordOf(id, items) {
  const record = new Uint32Array(items);
  for (let item = 0; item < items; item += 1) record[item] = itemOf(id, item);
  return record;
}

/** Item `item` of record `id`: every place of a container has a value of its own. */
export function itemOf(/** @type {number} */ id, /** @type {number} */ item) {
  return (Math.imul(id, 0x9e3779b1) + Math.imul(item, 0x85ebca6b)) >>> 0;
}

/** Records `from` to `from + count`. @param {number} from @param {number} count @param {number} items */
export function batchOf(from, count, items) {
  const data = new Uint32Array(count * items);
  for (let index = 0; index < count; index += 1)
    data.set(recordOf(from + index, items), index * items);
  return loaderx.ndarray('uint32', [count, items], data);
}

/**
 * Whether `data` holds the records `ids` of `items` values.
 *
 * @param {ArrayLike<number>} data
 * @param {ArrayLike<number>} ids
 * @param {number} items
 */
export function holds(data, ids, items) {
  if (data.length !== ids.length * items) return false;
  for (let index = 0; index < ids.length; index += 1) {
    for (let item = 0; item < items; item += 1) {
      if (data[index * items + item] !== itemOf(ids[index] ?? 0, item)) return false;
    }
  }
  return true;
}
