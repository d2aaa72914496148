// @ts-check
// The hash of integrity.zr's words, written down again from its public description (final version 3, with
// the four numbers of its default secret), so that the file's documentation is held against something
// that is not the package.

const secret = [0xa0761d6478bd642fn, 0xe7037ed1a0b428dbn, 0x8ebc6af09c88c6e3n, 0x589965cc75374cc3n];
const mask = (1n << 64n) - 1n;

/** @param {bigint} a @param {bigint} b */
function mix(a, b) {
  const product = a * b;
  return (product & mask) ^ (product >> 64n);
}

/** @param {bigint} seed @param {Buffer} bytes @returns {bigint} */
export function wyhash(seed, bytes) {
  const length = bytes.length;
  const [s0 = 0n, s1 = 0n, s2 = 0n, s3 = 0n] = secret;
  const u64 = (/** @type {number} */ at) => bytes.readBigUInt64LE(at);
  const u32 = (/** @type {number} */ at) => BigInt(bytes.readUInt32LE(at));
  let state = seed ^ mix(seed ^ s0, s1);
  let a = 0n;
  let b = 0n;
  if (length <= 16) {
    if (length >= 4) {
      const quarter = (length >> 3) << 2;
      a = (u32(0) << 32n) | u32(quarter);
      b = (u32(length - 4) << 32n) | u32(length - 4 - quarter);
    } else if (length > 0) {
      const byte = (/** @type {number} */ at) => BigInt(bytes[at] ?? 0);
      a = (byte(0) << 16n) | (byte(length >> 1) << 8n) | byte(length - 1);
    }
  } else {
    let at = 0;
    if (length > 48) {
      let second = state;
      let third = state;
      for (; at + 48 < length; at += 48) {
        state = mix(u64(at) ^ s1, u64(at + 8) ^ state);
        second = mix(u64(at + 16) ^ s2, u64(at + 24) ^ second);
        third = mix(u64(at + 32) ^ s3, u64(at + 40) ^ third);
      }
      state ^= second ^ third;
    }
    for (; at + 16 < length; at += 16) state = mix(u64(at) ^ s1, u64(at + 8) ^ state);
    a = u64(length - 16);
    b = u64(length - 8);
  }
  const product = (a ^ s1) * (b ^ state);
  const low = product & mask;
  const high = product >> 64n;
  return mix(low ^ s0 ^ BigInt(length), high ^ s1);
}
