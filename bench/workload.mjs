// @ts-check
// A prepared workload: real records, and the batches that every backend gathers. The folder is made
// by prepare.mjs and is all that a backend reads.
//
//     workload.json    {name, geometry, dtype, itemsize, records, payload_bytes, item_shape | ndim, batch}
//     records.npy      dense: [records, ...item_shape]
//     values.npy       ragged: all items, record after record
//     offsets.npy      ragged: int64 [records + 1], in items
//     shapes.npy       ragged: int64 [records, ndim]
//     plan_check.npy   uint32 [n, batch]: what is compared before timing
//     plan_time.npy    uint32 [n, batch]: what is timed
import fs from 'node:fs';
import path from 'node:path';

/**
 * @typedef {object} Npy
 * @property {string} file
 * @property {string} descr NumPy's dtype string
 * @property {number[]} shape
 * @property {number} at the first item's byte
 */

/** Reads the head of an .npy file of C order. @param {string} file @returns {Npy} */
export function npy(file) {
  const descriptor = fs.openSync(file, 'r');
  try {
    const head = Buffer.alloc(4096);
    const got = fs.readSync(descriptor, head, 0, head.length, 0);
    if (got < 12 || head.toString('latin1', 0, 6) !== '\x93NUMPY') {
      throw new Error(`${file} is no .npy file`);
    }
    const [sizeBytes, headBytes] =
      head[6] === 1 ? [2, head.readUInt16LE(8)] : [4, head.readUInt32LE(8)];
    const at = 8 + sizeBytes + headBytes;
    const text = head.toString('latin1', 8 + sizeBytes, at);
    const descr = /'descr': '([^']+)'/.exec(text)?.[1];
    const shape = /'shape': \(([^)]*)\)/.exec(text)?.[1];
    if (descr === undefined || shape === undefined || /'fortran_order': True/.test(text)) {
      throw new Error(`${file} is not in C order, or of records: ${text.trim()}`);
    }
    return { file, descr, shape: shape.split(',').filter(isGiven).map(Number), at };
  } finally {
    fs.closeSync(descriptor);
  }
}

/** @param {string} text */
const isGiven = (text) => text.trim() !== '';

/** All items of an .npy file, in memory of their own. @param {Npy} head @returns {ArrayBuffer} */
export function npyBytes({ file, at }) {
  const bytes = new Uint8Array(fs.statSync(file).size - at);
  const descriptor = fs.openSync(file, 'r');
  try {
    for (let done = 0; done < bytes.length; ) {
      const wanted = Math.min(bytes.length - done, 2 ** 30);
      const got = fs.readSync(descriptor, bytes, done, wanted, at + done);
      if (got === 0) throw new Error(`${file} ends early`);
      done += got;
    }
  } finally {
    fs.closeSync(descriptor);
  }
  return bytes.buffer;
}

/** dtypes of the workloads: NumPy's string, ours, and the typed array. */
const dtypes = /** @type {const} */ ({
  '|u1': { dtype: 'uint8', array: Uint8Array },
  '<i4': { dtype: 'int32', array: Int32Array },
});

/** @typedef {Uint8Array<ArrayBuffer> | Int32Array<ArrayBuffer>} Items */

export class Workload {
  #folder;
  /** @type {Items | undefined} */
  #items;
  /** @type {{ dtype: 'uint8' | 'int32', shape: number[], data: Items }[] | undefined} */
  #arrays;

  /** @param {string} folder */
  constructor(folder) {
    this.#folder = folder;
    const facts = JSON.parse(fs.readFileSync(path.join(folder, 'workload.json'), 'utf8'));
    const known = dtypes[/** @type {keyof typeof dtypes} */ (facts.dtype)];
    if (known === undefined) throw new Error(`${folder}: dtype ${facts.dtype} is not covered`);
    /** @type {string} */
    this.name = facts.name;
    /** @type {'dense' | 'ragged'} */
    this.geometry = facts.geometry;
    /** @type {'uint8' | 'int32'} */
    this.dtype = known.dtype;
    /** @type {Uint8ArrayConstructor | Int32ArrayConstructor} */
    this.array = known.array;
    /** @type {number} */
    this.itemBytes = facts.itemsize;
    /** @type {number} */
    this.records = facts.records;
    /** @type {number} */
    this.payloadBytes = facts.payload_bytes;
    /** @type {number} records of a batch */
    this.batch = facts.batch;
    /** @type {number[]} dense: the shape of each record */
    this.itemShape = facts.item_shape ?? [];
    /** @type {number} axes of each record */
    this.ndim = facts.ndim ?? this.itemShape.length;
    /** Dense: items of each record. */
    this.recordItems = this.itemShape.reduce((product, size) => product * size, 1);
    /** @type {Float64Array | undefined} ragged: the first item of each record, and the end */
    this.offsets = undefined;
    /** @type {Float64Array | undefined} ragged: sizes, `ndim` for each record */
    this.shapes = undefined;
    if (this.geometry === 'ragged') {
      this.offsets = numbers(this.#npy('offsets'));
      this.shapes = numbers(this.#npy('shapes'));
    }
  }

  /** @param {string} name */
  #npy(name) {
    return npy(path.join(this.#folder, `${name}.npy`));
  }

  /** The file that holds all items in order. */
  get source() {
    return this.#npy(this.geometry === 'dense' ? 'records' : 'values');
  }

  get offsetsFile() {
    return this.#npy('offsets');
  }

  get planFile() {
    return this.#npy('plan_time');
  }

  /** All items in order, in memory. */
  get items() {
    this.#items ??= new this.array(npyBytes(this.source));
    return this.#items;
  }

  /** @param {number} id @returns {number} its first item; `records` gives the end */
  start(id) {
    return this.offsets === undefined ? id * this.recordItems : (this.offsets[id] ?? 0);
  }

  /** @param {number} id */
  bytesOf(id) {
    return (this.start(id + 1) - this.start(id)) * this.itemBytes;
  }

  /** @param {number} id @returns {number[]} */
  shapeOf(id) {
    if (this.shapes === undefined) return this.itemShape;
    return [...this.shapes.subarray(id * this.ndim, (id + 1) * this.ndim)];
  }

  /** A record's items, a view. @param {number} id @returns {Items} */
  record(id) {
    return this.items.subarray(this.start(id), this.start(id + 1));
  }

  /** A record's bytes, a view. @param {number} id */
  bytes(id) {
    const { items } = this;
    return Buffer.from(items.buffer, this.start(id) * this.itemBytes, this.bytesOf(id));
  }

  /** Every record as an array of this package's form, views of `items`. Made once. */
  arrays() {
    this.#arrays ??= Array.from({ length: this.records }, (_, id) => ({
      dtype: this.dtype,
      shape: this.shapeOf(id),
      data: this.record(id),
    }));
    return this.#arrays;
  }

  /** Batches of record ids, one after the other. @param {'check' | 'time'} which */
  plan(which) {
    return new Uint32Array(npyBytes(this.#npy(`plan_${which}`)));
  }

  /** The largest batch of the timed plan, in bytes. */
  batchBytesMax() {
    const plan = this.plan('time');
    let most = 0;
    for (let from = 0; from < plan.length; from += this.batch) {
      let bytes = 0;
      for (let index = from; index < from + this.batch; index += 1) {
        bytes += this.bytesOf(plan[index] ?? 0);
      }
      most = Math.max(most, bytes);
    }
    return most;
  }
}

/** int64 as numbers. @param {Npy} head */
function numbers(head) {
  return Float64Array.from(new BigInt64Array(npyBytes(head)), Number);
}
