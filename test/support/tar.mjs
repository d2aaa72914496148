// @ts-check
// Tar archives for tests, with every fault that is wanted: a header is made of fields that can be set one by one.

/**
 * @typedef {object} TarEntry
 * @property {string} name latin1: a character for each byte
 * @property {Uint8Array | string} [bytes]
 * @property {string} [type] `0` unless given
 * @property {number | Uint8Array} [size] what the header says, if it is not the length of the bytes
 * @property {string} [prefix]
 * @property {'posix' | 'gnu' | 'old'} [magic] `posix` unless given
 * @property {number} [sumFault] added to the sum of the header
 */

const magics = { posix: 'ustar\x0000', gnu: 'ustar  \0', old: '' };

/**
 * A member, filled up.
 *
 * @param {TarEntry} entry
 * @returns {Buffer}
 */
export function tarEntry({ name, bytes = '', type = '0', prefix = '', ...entry }) {
  const { magic = 'posix', sumFault = 0 } = entry;
  const body = typeof bytes === 'string' ? Buffer.from(bytes) : Buffer.from(bytes);
  const { size = body.length } = entry;
  const header = Buffer.alloc(512);
  header.write(name.slice(0, 100), 0, 'latin1');
  header.write('0000644\0', 100, 'latin1');
  header.write('0000000\0', 108, 'latin1');
  header.write('0000000\0', 116, 'latin1');
  if (typeof size !== 'number') header.set(size, 124);
  else header.write(`${size.toString(8).padStart(11, '0')}\0`, 124, 'latin1');
  header.write('00000000000\0', 136, 'latin1');
  header.write(type, 156, 'latin1');
  header.write(magics[magic], 257, 'latin1');
  header.write(prefix, 345, 'latin1');
  header.fill(0x20, 148, 156);
  const sum = header.reduce((total, byte) => total + byte, 0) + sumFault;
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148, 'latin1');
  return Buffer.concat([header, body, Buffer.alloc((512 - (body.length % 512)) % 512)]);
}

/**
 * An archive with its end.
 *
 * @param {readonly TarEntry[]} entries
 */
export function tarOf(entries) {
  return Buffer.concat([...entries.map(tarEntry), Buffer.alloc(1024)]);
}

/**
 * A PAX header for the next member.
 *
 * @param {Readonly<Record<string, string>>} records
 * @returns {TarEntry}
 */
export function paxEntry(records, type = 'x') {
  const lines = Object.entries(records).map(([key, value]) => {
    const rest = Buffer.from(` ${key}=${value}\n`);
    let length = rest.length + 1;
    while (String(length).length + rest.length !== length) length += 1;
    return Buffer.concat([Buffer.from(String(length)), rest]);
  });
  return { name: 'PaxHeaders/x', type, bytes: Buffer.concat(lines) };
}
