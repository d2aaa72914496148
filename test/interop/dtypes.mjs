// @ts-check
// The dtypes that are exchanged. Written out here rather than taken from the package, which is what
// is under test.

/** @typedef {import('../../ts/index.js').DType} DType */

/**
 * @typedef {object} Exchanged
 * @property {DType} ours its name in this package
 * @property {string} stored what Python 2.4.6 stores, and what its reader says
 * @property {readonly string[]} spelled what Python's creator is given
 * @property {number} itemBytes
 * @property {ArrayConstructor} array the typed array that holds the items
 * @property {'bits' | 'bool' | 'text' | 'float' | 'integer'} content which items are special
 * @property {number} partBytes bytes of one number: half an item for complex, else all of it
 * @property {boolean} bigEndian
 */

/**
 * @typedef {typeof Uint8Array | typeof Int8Array | typeof Uint16Array | typeof Int16Array
 *   | typeof Uint32Array | typeof Int32Array | typeof Float32Array | typeof Float64Array
 *   | typeof BigInt64Array | typeof BigUint64Array} ArrayConstructor
 */

/**
 * @param {DType} ours
 * @param {string} stored
 * @param {number} itemBytes
 * @param {ArrayConstructor} array
 * @param {Exchanged['content']} content
 * @param {readonly string[]} [alsoSpelled]
 * @returns {Exchanged}
 */
function dtype(ours, stored, itemBytes, array, content, alsoSpelled = []) {
  const isComplex = /c\d+$/.test(stored);
  return {
    ours,
    stored,
    spelled: [stored, ...alsoSpelled],
    itemBytes,
    array,
    content,
    partBytes: isComplex ? itemBytes / 2 : itemBytes,
    bigEndian: stored.startsWith('>'),
  };
}

/** A dtype without a name of its own here. @param {string} stored @param {number} itemBytes
 *  @param {Exchanged['content']} content @param {readonly string[]} [alsoSpelled] */
function numpy(stored, itemBytes, content, alsoSpelled) {
  return dtype(`numpy:${stored}`, stored, itemBytes, Uint8Array, content, alsoSpelled);
}

/** A little-endian time. @param {string} stored @param {readonly string[]} [alsoSpelled] */
function time(stored, alsoSpelled) {
  return dtype(`numpy:${stored}`, stored, 8, BigInt64Array, 'integer', alsoSpelled);
}

/** Every kind of dtype that loaderx 2.4.6 stores. @type {readonly Exchanged[]} */
export const dtypes24 = [
  dtype('bool', '|b1', 1, Uint8Array, 'bool', ['?', '>?', 'bool']),
  dtype('int8', '|i1', 1, Int8Array, 'integer', ['i1', '>i1']),
  dtype('uint8', '|u1', 1, Uint8Array, 'integer', ['u1']),
  dtype('int16', '<i2', 2, Int16Array, 'integer', ['i2']),
  dtype('uint16', '<u2', 2, Uint16Array, 'integer', ['u2']),
  dtype('int32', '<i4', 4, Int32Array, 'integer', ['i4', '=i4', 'int32']),
  dtype('uint32', '<u4', 4, Uint32Array, 'integer', ['u4']),
  dtype('int64', '<i8', 8, BigInt64Array, 'integer', ['i8']),
  dtype('uint64', '<u8', 8, BigUint64Array, 'integer', ['u8']),
  dtype('float16', '<f2', 2, Uint16Array, 'float', ['f2']),
  dtype('float32', '<f4', 4, Float32Array, 'float', ['f4']),
  dtype('float64', '<f8', 8, Float64Array, 'float', ['f8']),
  dtype('complex64', '<c8', 8, Float32Array, 'float', ['c8']),
  dtype('complex128', '<c16', 16, Float64Array, 'float', ['c16']),
  time('<M8[ns]', ['M8[ns]']),
  time('<M8[25us]'),
  time('<M8[D]'),
  time('<M8'),
  time('<m8[s]', ['m8[s]']),
  time('<m8'),
  numpy('>i2', 2, 'integer'),
  numpy('>u2', 2, 'integer'),
  numpy('>i4', 4, 'integer'),
  numpy('>u4', 4, 'integer'),
  numpy('>i8', 8, 'integer'),
  numpy('>u8', 8, 'integer'),
  numpy('>f2', 2, 'float'),
  numpy('>f4', 4, 'float'),
  numpy('>f8', 8, 'float'),
  numpy('>c8', 8, 'float'),
  numpy('>c16', 16, 'float'),
  numpy('>M8[ns]', 8, 'integer'),
  numpy('>m8[s]', 8, 'integer'),
  numpy('<f16', 16, 'bits', ['g']),
  numpy('>f16', 16, 'bits'),
  numpy('<c32', 32, 'bits', ['G']),
  numpy('|S1', 1, 'bits'),
  numpy('|S5', 5, 'bits', ['S5']),
  numpy('|S70000', 70_000, 'bits'),
  numpy('<U3', 12, 'text', ['U3']),
  numpy('>U3', 12, 'text'),
  numpy('|V8', 8, 'bits', ['V8']),
  numpy('|V3', 3, 'bits'),
];

/** Every dtype that loaderx 2.8.19 stores. Its names are ours. @type {readonly Exchanged[]} */
export const dtypes28 = [
  ...dtypes24
    .filter(({ ours }) => !ours.startsWith('numpy:'))
    .map((known) => ({ ...known, stored: known.ours, spelled: [known.ours] })),
  dtype('bfloat16', 'bfloat16', 2, Uint16Array, 'bits'),
  dtype('float8_e4m3fn', 'float8_e4m3fn', 1, Uint8Array, 'bits'),
  dtype('float8_e4m3fnuz', 'float8_e4m3fnuz', 1, Uint8Array, 'bits'),
  dtype('float8_e5m2', 'float8_e5m2', 1, Uint8Array, 'bits'),
  dtype('float8_e5m2fnuz', 'float8_e5m2fnuz', 1, Uint8Array, 'bits'),
  dtype('float8_e8m0fnu', 'float8_e8m0fnu', 1, Uint8Array, 'bits'),
];

/**
 * Bit patterns of one number that copies get wrong when they go through arithmetic: negative zero,
 * infinities, quiet and signalling NaNs with a payload, denormals, the extremes of integers (the
 * least one is NaT for times). Little-endian.
 *
 * @param {Exchanged} dtype
 * @returns {Uint8Array[]}
 */
export function specialNumbers({ content, partBytes, bigEndian }) {
  if (content !== 'float' && content !== 'integer') return [];
  const bits = BigInt(partBytes * 8);
  const sign = 1n << (bits - 1n);
  const all = (1n << bits) - 1n;
  const exponentBits = partBytes === 2 ? 5n : partBytes === 4 ? 8n : 11n;
  const fractionBits = bits - 1n - exponentBits;
  const infinity = ((1n << exponentBits) - 1n) << fractionBits;
  const quiet = 1n << (fractionBits - 1n);
  const patterns =
    content === 'integer'
      ? [0n, 1n, all, sign, sign - 1n, sign + 1n]
      : [
          sign,
          infinity,
          infinity | sign,
          infinity | quiet | 0x155n,
          infinity | quiet | sign | 0x2an,
          infinity | 1n,
          infinity | sign | 0x123n,
          1n,
          sign | 0x7n,
          (1n << fractionBits) - 1n,
          all,
        ];
  return patterns.map((pattern) => {
    const bytes = new Uint8Array(partBytes);
    for (let at = 0; at < partBytes; at += 1) {
      bytes[bigEndian ? partBytes - 1 - at : at] = Number((pattern >> BigInt(at * 8)) & 0xffn);
    }
    return bytes;
  });
}
