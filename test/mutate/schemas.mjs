// @ts-check
// Schemas that no writer made: nearly right in MsgPack or JSON, or wrong from the ground.
import { Random } from '../interop/random.mjs';
import { schemaBytesMax, u64 } from '../support/page.mjs';

/** Where arithmetic on 64 and 32 bits, doubles, and signed numbers changes. */
export const boundaries = [
  ...[0n, 1n, 2n, 7n, 8n, 15n, 16n, 127n, 128n, 255n, 256n, 2040n, 2041n, 4095n, 4096n],
  ...[0xffffn, 0x1_0000n, 1n << 30n, (1n << 31n) - 1n, 1n << 31n, (1n << 31n) + 1n],
  ...[(1n << 32n) - 1n, 1n << 32n, (1n << 53n) - 1n, 1n << 53n, 1n << 59n, 1n << 60n],
  ...[(1n << 63n) - 4096n, (1n << 63n) - 1n, 1n << 63n, -4096n, -16n, -1n],
];

/** Texts that are dtypes, once were, or nearly are. */
const dtypes = [
  ...['<i2', '<u2', '<i4', '<f4', '<f8', '<c16', '>i2', '>f8', '|u1', '|b1', '|S5', '<U3', '|V8'],
  ...['<M8[ns]', '<m8[s]', '>M8[us]', '<M8[25us]', '<m8', '<f16', '<c32', '<f2', 'int16', 'i2'],
  ...['=i2', '|i2', '!i2', '<i3', '<i16', '<f1', '|O', 'O', 'l', 'long', 'int', 'p', 'q', 'e', 'g'],
  ...['S', 'U', 'V', 'S0', '|S0', '<U0', '|V0', 'a5', 'M8', 'M8[', 'M8[xs]', '<M8[0s]', '<m8[-1s]'],
  ...['i2,i2', '(2,)i2', '2i2', 'float64', 'complex128', 'datetime64[ns]', 'str', 'bytes_', 'void'],
  ...['?', '>?', 'b', 'B', '<B', 'c', '>c', 'T', 'f8 ', ' f8', '<<i2', '<', '', 'i', 'i02', 'f4\0'],
  ...['|S2147483647', '<U536870911', '|V4294967296', '<f४', 'ƒ4', 'bfloat16', '<i2\n'],
];

const dtypes28 = [
  ...['bool', 'int8', 'int16', 'uint32', 'float64', 'bfloat16', 'float8_e4m3fn', 'float8_e8m0fnu'],
  ...[
    'complex128',
    'float8_e3m4',
    'Int16',
    'int16 ',
    '<i2',
    'float',
    '',
    '__proto__',
    'constructor',
  ],
];

/** @param {string} value */
function packedText(value) {
  const bytes = Buffer.from(value);
  return Buffer.concat([
    bytes.length < 32
      ? Buffer.from([0xa0 | bytes.length])
      : Buffer.from([0xd9, bytes.length & 0xff]),
    bytes,
  ]);
}

/** An integer in one of its spellings. @param {Random} random @param {bigint} value */
function packedInteger(random, value) {
  const width = random.pick([0, 1, 2, 4, 8]);
  if (width === 0 || random.chance(0.5)) return Buffer.from([Number(BigInt.asUintN(7, value))]);
  const tag = { 1: 0xcc, 2: 0xcd, 4: 0xce, 8: 0xcf }[width] ?? 0xcf;
  const bytes = u64(value).subarray(0, width).reverse();
  return Buffer.concat([Buffer.from([random.chance(0.3) ? tag + 4 : tag]), bytes]);
}

/** A size, as often as not the right one. @param {Random} random @param {number} right */
function size(random, right) {
  return random.chance(0.6) ? BigInt(right) : random.pick(boundaries);
}

/** @param {Random} random */
function anyShape(random) {
  return random.chance(0.6) ? [2, 12] : Array.from({ length: random.between(0, 70) }, () => 1);
}

/** A schema of the 2.4 dialect, or nearly. @param {Random} random @param {boolean} isDense @returns {Buffer} */
export function msgpackSchema(random, isDense) {
  const shape = anyShape(random);
  const fields = [
    [packedText('dtype'), packedText(random.chance(0.4) ? '<i2' : random.pick(dtypes))],
    [packedText('ndim'), packedInteger(random, size(random, isDense ? shape.length : 2))],
  ];
  if (isDense) {
    const sizes = shape.map((right) => packedInteger(random, size(random, right)));
    const head = shape.length < 16 ? [0x90 | shape.length] : [0xdc, 0, shape.length];
    fields.push([packedText('item_shape'), Buffer.concat([Buffer.from(head), ...sizes])]);
  }
  if (random.chance(0.1)) {
    fields.push([packedText(random.pick(['user', 'ndim', '__proto__'])), Buffer.from([1])]);
  }
  if (random.chance(0.05)) fields.pop();
  const shuffled = random.chance(0.3) ? random.shuffled(fields) : fields;
  const count = random.chance(0.95) ? shuffled.length : random.between(0, 15);
  const head = random.chance(0.9) ? [0x80 | count] : [0xde, 0, count];
  return Buffer.concat([Buffer.from(head), ...shuffled.flat()]);
}

/** A schema of the 2.8 dialect, or nearly. @param {Random} random @param {boolean} isDense @returns {Buffer} */
export function jsonSchema(random, isDense) {
  const dtype = JSON.stringify(random.chance(0.4) ? 'int16' : random.pick(dtypes28));
  const odd = ['1.0', '1e0', 'true', 'null', '"1"', '-0', '01', '[1]', '{}', '+1', 'NaN'];
  const number = (/** @type {number} */ right) =>
    random.chance(0.9) ? String(size(random, right)) : random.pick(odd);
  const fields = [
    `"dtype": ${dtype}`,
    isDense ? `"item_shape": [${anyShape(random).map(number).join(', ')}]` : `"ndim": ${number(2)}`,
  ];
  if (random.chance(0.1)) {
    fields.push(random.pick(['"user": 1', '"dtype": "int16"', '"__proto__": 1', '"ndim": 2']));
  }
  if (random.chance(0.05)) fields.pop();
  const order = random.chance(0.3) ? random.shuffled(fields) : fields;
  const text = `{${order.join(random.pick([', ', ',', ' ,\n']))}}`;
  const behind = random.chance(0.9) ? '' : random.pick([' ', '\n', '\0', 'x', '{}', ',']);
  return Buffer.from(text + behind);
}

/** Bytes put in, taken out or doubled. @param {Random} random @param {Buffer} bytes @returns {Buffer} */
export function spliced(random, bytes) {
  const at = random.between(0, bytes.length);
  const until = Math.min(bytes.length, at + random.between(0, 4));
  const extra = Buffer.alloc(random.between(0, 4));
  random.fill(extra);
  const middle = random.chance(0.3) ? bytes.subarray(0, until) : extra;
  return Buffer.concat([bytes.subarray(0, at), middle, bytes.subarray(until)]);
}

/** Headers that promise far more than there is, over and over. @param {Random} random */
function promises(random) {
  const heads = ['dcffff', 'ddffffffff', 'dd01312d00', 'deffff', 'dfffffffff', 'dbffffffff'];
  const nests = ['91', '81', '9f', '8f', '81a161', '5b', '7b2261223a', '93', 'c7ff00', 'd800'];
  const piece = Buffer.from(random.pick([...heads, ...nests]), 'hex');
  const bytes = Buffer.alloc(
    random.chance(0.5) ? schemaBytesMax : random.magnitude(1, schemaBytesMax),
  );
  for (let at = 0; at < bytes.length; at += piece.length) piece.copy(bytes, at);
  return bytes;
}

/** @param {Random} random */
function noise(random) {
  const bytes = Buffer.alloc(random.magnitude(1, schemaBytesMax));
  random.fill(bytes);
  return bytes;
}

/** Any of all this, of 1 to 2040 bytes. @param {Random} random @returns {Buffer} */
export function hostileSchema(random) {
  const isDense = random.chance(0.6);
  const nearly = random.chance(0.5) ? msgpackSchema(random, isDense) : jsonSchema(random, isDense);
  const bytes = random.pick([
    () => nearly,
    () => nearly,
    () => spliced(random, nearly),
    () => spliced(random, spliced(random, nearly)),
    () => Buffer.concat([nearly.subarray(0, random.between(0, nearly.length)), promises(random)]),
    () => promises(random),
    () => noise(random),
  ])();
  return bytes.length === 0 ? Buffer.from([0x80]) : bytes.subarray(0, schemaBytesMax);
}
