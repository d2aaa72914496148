// The kept corpus of the schema target once more (the native ones: zig-src/fuzz/replay_test.zig), and
// that the target sees what it is for.
import t from 'tap';
import { LoaderxError } from '../ts/errors.js';
import { decodeSchema, encodeSchema, type Schema } from '../ts/schema.js';
import { readCorpus } from './fuzz/corpus.mjs';
import { tryOne } from './fuzz/schema-target.mjs';

const parts = { LoaderxError, decodeSchema, encodeSchema };

t.test('the corpus of schemas', async (t) => {
  const inputs = readCorpus('schema');
  t.ok(inputs.length >= 20, `${inputs.length} inputs`);
  for (const input of inputs) {
    try {
      tryOne(parts, input);
    } catch (error) {
      t.fail(`${input.toString('hex')}: ${error}`);
    }
  }
});

t.test('the target sees what it is for', async (t) => {
  const sound = readCorpus('schema').find((input) => {
    try {
      return decodeSchema(input).kind === 'dense';
    } catch {
      return false;
    }
  });
  if (sound === undefined) throw new Error('the corpus holds no sound schema');
  t.doesNotThrow(() => tryOne(parts, sound));
  const taken = decodeSchema(sound) as Schema & { readonly kind: 'dense' };
  const faults: readonly (readonly [string, Partial<typeof parts>])[] = [
    ['a foreign error', { decodeSchema: () => never(new RangeError('of no family')) }],
    ['another code', { decodeSchema: () => never(new LoaderxError('IO', 'no', { field: 'x' })) }],
    ['no field', { decodeSchema: () => never(new LoaderxError('MALFORMED', 'no')) }],
    ['a size of 0', { decodeSchema: () => ({ ...taken, itemShape: [0] }) }],
    ['a huge record', { decodeSchema: () => ({ ...taken, itemShape: [2 ** 31, 2] }) }],
    ['another schema written', { encodeSchema: () => encodeSchema({ ...taken, itemShape: [] }) }],
    ['an input that is written to', { decodeSchema: (bytes) => decodeSchema(bytes.fill(0, 0, 1)) }],
  ];
  for (const [what, fault] of faults) {
    t.throws(() => tryOne({ ...parts, ...fault }, sound), what);
  }
});

function never(error: Error): never {
  throw error;
}

t.test('corpora stay small', async (t) => {
  for (const target of ['page', 'gather', 'dictionary', 'schema']) {
    const inputs = readCorpus(target);
    const bytes = inputs.reduce((sum, { length }) => sum + length, 0);
    t.ok(inputs.length >= 10 && inputs.length <= 400, `${target}: ${inputs.length} inputs`);
    t.ok(bytes < 2 ** 18, `${target}: ${bytes} bytes`);
    t.ok(
      inputs.every(({ length }) => length <= 4096),
      `${target}: none is long`,
    );
  }
});
