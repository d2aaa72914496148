// @ts-check
// The schema function with one input. What comes of it is a schema that could have been written, or a
// refusal of the family; anything else is thrown on. Fuzzed with Jazzer.js (scripts/fuzz.mjs), replayed by
// test/fuzz.test.ts.
import assert from 'node:assert/strict';

/**
 * What is tried: of the sources in a test, of dist/ under a fuzzer.
 *
 * @typedef {object} Parts
 * @property {typeof import('../../ts/errors.js').LoaderxError} LoaderxError
 * @property {typeof import('../../ts/schema.js').decodeSchema} decodeSchema
 * @property {typeof import('../../ts/schema.js').encodeSchema} encodeSchema
 */

/** Longer texts do not fit a page; a few bytes more are still for the function to refuse. */
const bytesMax = 2048;

/** @param {Parts} parts @param {Uint8Array} data */
export function tryOne({ LoaderxError, decodeSchema, encodeSchema }, data) {
  if (data.length === 0) return;
  const bytes = Uint8Array.from(data.subarray(0, bytesMax));
  const before = Uint8Array.from(bytes);
  /** @type {import('../../ts/schema.js').Schema} */
  let schema;
  try {
    schema = decodeSchema(bytes);
  } catch (error) {
    if (!(error instanceof LoaderxError)) throw error;
    assert.ok(error.code === 'MALFORMED' || error.code === 'UNSUPPORTED', error.code);
    assert.ok(error.field !== undefined, 'a refusal names a field');
    assert.ok(error.message.length < 1000, 'a message is short');
    return;
  } finally {
    // Its bytes: msgpackr hangs a view of its own on what it reads.
    assert.equal(Buffer.compare(bytes, before), 0, 'the input is left alone');
  }
  assert.ok(bytes.length <= 2040, 'what does not fit a page is no schema');
  const sizes = schema.kind === 'dense' ? schema.itemShape : [schema.ndim];
  assert.ok(sizes.every((size) => Number.isInteger(size) && size >= 1 && size <= 2 ** 31));
  assert.ok(schema.kind === 'dense' ? sizes.length <= 63 : schema.ndim <= 64);
  assert.ok(schema.dtype.itemBytes >= 1);
  if (schema.kind === 'dense') {
    const bytesOfRecord = sizes.reduce((product, size) => product * size, schema.dtype.itemBytes);
    assert.ok(bytesOfRecord <= 2 ** 31, 'a record of at most 2 GiB');
  }
  // Written again and read again it is the same. A dtype has several spellings; one of them is written.
  assert.deepEqual(decodeSchema(encodeSchema(schema)), schema);
  assert.equal(Object.keys(Object.prototype).length, 0, 'no prototype was touched');
}
