// @ts-check
// The fields of `meta.zr` by name, for tests that read or damage them. Written from the format's
// description, not from the package.
//
//     0 length u64 | 8 schema_length u16 | 10 data_shards u8 | 11 codec u8 | 12 reserved, 4 bytes
//     16 tails, 255 x u64 | 2056 schema, 2040 bytes | 4096 locations: offset u64, phys u32, logic u32

export const pageBytes = 4096;
export const tailsAt = 16;
export const tailCount = 255;
export const schemaAt = 2056;
export const schemaBytesMax = 2040;
export const locationBytes = 16;

/**
 * @typedef {object} Page
 * @property {bigint} length
 * @property {number} dataShards
 * @property {number} codec 0 raw, 1 zstd, 2 zstd with a dictionary
 * @property {Buffer} schema
 * @property {readonly bigint[]} tails one for each shard
 */

/**
 * @typedef {object} Location
 * @property {bigint} offset
 * @property {number} stored bytes as they are stored
 * @property {number} logical bytes after decoding
 */

/** @param {Buffer} meta @returns {Page} */
export function readPage(meta) {
  const dataShards = meta.readUInt8(10);
  return {
    length: meta.readBigUInt64LE(0),
    dataShards,
    codec: meta.readUInt8(11),
    schema: meta.subarray(schemaAt, schemaAt + meta.readUInt16LE(8)),
    tails: Array.from({ length: dataShards }, (_, shard) => meta.readBigUInt64LE(tailAt(shard))),
  };
}

/** A page as a writer makes it. @param {Page} page @returns {Buffer} */
export function makePage({ length, dataShards, codec, schema, tails }) {
  const page = Buffer.alloc(pageBytes);
  page.writeBigUInt64LE(length, 0);
  page.writeUInt16LE(schema.length, 8);
  page.writeUInt8(dataShards, 10);
  page.writeUInt8(codec, 11);
  for (const [shard, tail] of tails.entries()) page.writeBigUInt64LE(tail, tailAt(shard));
  schema.copy(page, schemaAt);
  return page;
}

/** @param {number} shard */
export function tailAt(shard) {
  return tailsAt + shard * 8;
}

/** Where the location of record `id` is. @param {number} id */
export function locationAt(id) {
  return pageBytes + id * locationBytes;
}

/** @param {Buffer} meta @param {number} id @returns {Location} */
export function readLocation(meta, id) {
  const at = locationAt(id);
  return {
    offset: meta.readBigUInt64LE(at),
    stored: meta.readUInt32LE(at + 8),
    logical: meta.readUInt32LE(at + 12),
  };
}

/** @param {Location} location @returns {Buffer} */
export function makeLocation({ offset, stored, logical }) {
  const bytes = Buffer.alloc(locationBytes);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, offset), 0);
  bytes.writeUInt32LE(stored, 8);
  bytes.writeUInt32LE(logical, 12);
  return bytes;
}

/** @param {bigint} value @returns {Buffer} */
export function u64(value) {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
  return bytes;
}

/** @param {number} value @returns {Buffer} */
export function u32(value) {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
}
