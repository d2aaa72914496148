// @ts-check
// zstd frames put together by hand (RFC 8878): valid ones of every kind that no ordinary compressor
// makes, and ones that lie about themselves.
//
//     magic 28 B5 2F FD | descriptor | window? | dictionary id? | content size? | blocks | checksum?

const magic = Buffer.from('28b52ffd', 'hex');
const contentSizeCodes = /** @type {const} */ ({ 1: 0, 2: 1, 4: 2, 8: 3 });

/**
 * @typedef {object} FrameOptions
 * @property {bigint | number} [contentSize] declared; left out: no content size
 * @property {1 | 2 | 4 | 8} [contentSizeBytes] of the field; 8 unless given
 * @property {number} [window] the window descriptor's byte; left out: single segment if there is a
 *   content size, else a window of 1 MiB
 * @property {number} [dictionaryId] 4 bytes
 * @property {boolean | bigint} [checksum] `true` wants `content`; a number is written as it is
 * @property {Buffer} [content] what the blocks decode to
 */

/**
 * @param {readonly Buffer[]} blocks
 * @param {FrameOptions} [options]
 * @returns {Buffer}
 */
export function frame(blocks, options = {}) {
  const { contentSize, contentSizeBytes = 8, dictionaryId, checksum = false } = options;
  const hasSize = contentSize !== undefined;
  const isSingleSegment = hasSize && options.window === undefined;
  const window = options.window ?? 0x50;
  const descriptor =
    ((hasSize ? contentSizeCodes[contentSizeBytes] : 0) << 6) |
    (isSingleSegment ? 0x20 : 0) |
    (checksum === false ? 0 : 0x04) |
    (dictionaryId === undefined ? 0 : 0x03);
  /** @type {Buffer[]} */
  const parts = [magic, Buffer.from([descriptor])];
  if (!isSingleSegment) parts.push(Buffer.from([window]));
  if (dictionaryId !== undefined) parts.push(little(BigInt(dictionaryId), 4));
  if (hasSize)
    parts.push(little(sizeField(BigInt(contentSize), contentSizeBytes), contentSizeBytes));
  parts.push(...blocks);
  if (checksum !== false) {
    const value = checksum === true ? xxh64(options.content ?? Buffer.alloc(0)) : BigInt(checksum);
    parts.push(little(value & 0xffff_ffffn, 4));
  }
  return Buffer.concat(parts);
}

/** Two bytes hold the size minus 256. @param {bigint} size @param {number} bytes */
function sizeField(size, bytes) {
  return bytes === 2 ? size - 256n : size;
}

/** @param {bigint} value @param {number} bytes */
function little(value, bytes) {
  const result = Buffer.alloc(bytes);
  for (let at = 0; at < bytes; at += 1) result[at] = Number((value >> BigInt(at * 8)) & 0xffn);
  return result;
}

const blockBytesMax = 128 * 1024;

/** A block header. @param {number} type 0 stored, 1 one byte repeated, 2 compressed, 3 reserved @param {number} size @param {boolean} isLast */
export function blockHeader(type, size, isLast) {
  return little(BigInt((size << 3) | (type << 1) | (isLast ? 1 : 0)), 3);
}

/** `bytes` in stored blocks; none but an empty last one for no bytes. @param {Buffer} bytes @returns {Buffer[]} */
export function storedBlocks(bytes) {
  const blocks = [];
  let at = 0;
  do {
    const part = bytes.subarray(at, at + blockBytesMax);
    at += part.length;
    blocks.push(blockHeader(0, part.length, at >= bytes.length), part);
  } while (at < bytes.length);
  return blocks;
}

/** Blocks of one byte repeated: four bytes for up to 128 KiB each. @param {number} byte @param {number} count @returns {Buffer[]} */
export function repeatedBlocks(byte, count) {
  const blocks = [];
  let left = count;
  do {
    const size = Math.min(left, blockBytesMax);
    left -= size;
    blocks.push(blockHeader(1, size, left === 0), Buffer.from([byte]));
  } while (left > 0);
  return blocks;
}

/** A frame that decoders pass over. @param {Buffer} content @returns {Buffer} */
export function skippable(content) {
  return Buffer.concat([
    Buffer.from('502a4d18', 'hex'),
    little(BigInt(content.length), 4),
    content,
  ]);
}

/** `bytes` in one frame of stored blocks. @param {Buffer} bytes @param {FrameOptions} [options] @returns {Buffer} */
export function storedFrame(bytes, options = {}) {
  return frame(storedBlocks(bytes), { contentSize: bytes.length, content: bytes, ...options });
}

const [prime1, prime2, prime3, prime4, prime5] = [
  0x9e3779b185ebca87n,
  0xc2b2ae3d27d4eb4fn,
  0x165667b19e3779f9n,
  0x85ebca77c2b2ae63n,
  0x27d4eb2f165667c5n,
];

/** @param {bigint} value */
const wrap = (value) => BigInt.asUintN(64, value);

/** @param {bigint} value @param {bigint} bits */
const rotate = (value, bits) => wrap(value << bits) | (value >> (64n - bits));

/** @param {bigint} lane @param {bigint} input */
const round = (lane, input) => wrap(rotate(wrap(lane + input * prime2), 31n) * prime1);

/** XXH64 with seed 0, which frames carry the low half of. @param {Buffer} bytes @returns {bigint} */
export function xxh64(bytes) {
  let at = 0;
  let hash = prime5;
  if (bytes.length >= 32) {
    const lanes = [wrap(prime1 + prime2), prime2, 0n, wrap(-prime1)];
    for (; at + 32 <= bytes.length; at += 32) {
      for (let lane = 0; lane < 4; lane += 1) {
        lanes[lane] = round(lanes[lane] ?? 0n, bytes.readBigUInt64LE(at + lane * 8));
      }
    }
    const shifts = [1n, 7n, 12n, 18n];
    hash = wrap(lanes.reduce((sum, lane, index) => sum + rotate(lane, shifts[index] ?? 0n), 0n));
    for (const lane of lanes) hash = wrap((hash ^ round(0n, lane)) * prime1 + prime4);
  }
  hash = wrap(hash + BigInt(bytes.length));
  for (; at + 8 <= bytes.length; at += 8) {
    hash = wrap(rotate(hash ^ round(0n, bytes.readBigUInt64LE(at)), 27n) * prime1 + prime4);
  }
  for (; at + 4 <= bytes.length; at += 4) {
    const word = BigInt(bytes.readUInt32LE(at));
    hash = wrap(rotate(hash ^ wrap(word * prime1), 23n) * prime2 + prime3);
  }
  for (; at < bytes.length; at += 1) {
    hash = wrap(rotate(hash ^ wrap(BigInt(bytes[at] ?? 0) * prime5), 11n) * prime1);
  }
  hash = wrap((hash ^ (hash >> 33n)) * prime2);
  hash = wrap((hash ^ (hash >> 29n)) * prime3);
  return hash ^ (hash >> 32n);
}
