// @ts-check
// The three streams of the demo: how each is written, and how what is read is held against its source.
import { Dense, Ragged, trainDict } from 'loaderx';

/** @typedef {import('loaderx').CodecOptions} CodecOptions */
/** @typedef {{dtype: import('loaderx').DType, shape: readonly number[], data: import('loaderx').DataOf<import('loaderx').DType>}} Items */
/** @typedef {import('loaderx').DenseBatch | import('loaderx').RaggedBatch} Batch */

/**
 * @typedef {object} Stream
 * @property {string} name
 * @property {number} count records
 * @property {number} logicalBytes of all records' items
 * @property {() => Promise<Uint8Array>} train a dictionary for it
 * @property {(path: string, codec: CodecOptions) => Promise<void>} write
 * @property {(batch: Batch, ids: ArrayLike<number | bigint>) => void} check throws a Difference
 */

/** A record that was not read as it was written. */
export class Difference extends Error {}

/**
 * Records that all have one shape.
 *
 * @param {string} name
 * @param {Items} source
 * @returns {Stream}
 */
export function denseStream(name, source) {
  const { dtype, shape } = source;
  const [count = 0, ...itemShape] = shape;
  const all = bytesOf(source.data);
  const recordBytes = all.length / count;
  return {
    name,
    count,
    logicalBytes: all.length,
    train: () => trainDict(source),
    async write(path, codec) {
      const writer = Dense.create(path, { ...codec, dtype, itemShape });
      await writer.append(source);
      await writer.close();
    },
    check(batch, ids) {
      const { data, shape } = /** @type {import('loaderx').DenseBatch} */ (batch);
      sameShape(name, 'the batch', shape, [ids.length, ...itemShape]);
      const bytes = bytesOf(data);
      for (let index = 0; index < ids.length; index += 1) {
        const id = Number(ids[index]);
        sameBytes(name, id, part(bytes, index, recordBytes), part(all, id, recordBytes));
      }
    },
  };
}

/**
 * Records whose shapes differ.
 *
 * @param {string} name
 * @param {Items[]} source at least one
 * @returns {Stream}
 */
export function raggedStream(name, source) {
  const [first] = source;
  if (first === undefined) throw new Error(`${name} has no records`);
  const { dtype, shape } = first;
  return {
    name,
    count: source.length,
    logicalBytes: source.reduce((sum, { data }) => sum + data.byteLength, 0),
    train: () => trainDict(source),
    async write(path, codec) {
      const writer = Ragged.create(path, { ...codec, dtype, ndim: shape.length });
      await writer.append(source);
      await writer.close();
    },
    check(batch, ids) {
      const records = /** @type {import('loaderx').RaggedBatch} */ (batch).toArray();
      if (records.length !== ids.length) {
        throw new Difference(`${name}: ${ids.length} records asked for, ${records.length} came`);
      }
      records.forEach((record, index) => {
        const id = Number(ids[index]);
        const wanted = source[id];
        if (wanted === undefined) throw new Difference(`${name}: there is no record ${id}`);
        sameShape(name, `record ${id}`, record.shape, wanted.shape);
        sameBytes(name, id, bytesOf(record.data), bytesOf(wanted.data));
      });
    },
  };
}

/** @param {ArrayBufferView} view */
const bytesOf = ({ buffer, byteOffset, byteLength }) => Buffer.from(buffer, byteOffset, byteLength);

/** @param {Buffer} bytes @param {number} index @param {number} size */
const part = (bytes, index, size) => bytes.subarray(index * size, (index + 1) * size);

/** @param {string} name @param {string} what @param {readonly number[]} read @param {readonly number[]} wanted */
function sameShape(name, what, read, wanted) {
  if (read.length === wanted.length && read.every((size, axis) => size === wanted[axis])) return;
  throw new Difference(`${name}: ${what} has shape [${read}], its source [${wanted}]`);
}

/** @param {string} name @param {number} id @param {Buffer} read @param {Buffer} wanted */
function sameBytes(name, id, read, wanted) {
  if (read.equals(wanted)) return;
  const at = wanted.findIndex((byte, index) => byte !== read[index]);
  throw new Difference(
    `${name}: record ${id} differs from its source from byte ${at} on: ${wanted[at]} was written, ${read[at]} was read`,
  );
}
