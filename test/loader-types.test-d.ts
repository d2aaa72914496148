// What a loader's batches are, as types. Nothing here runs: `tsc --noEmit` over test/ is the test, and
// a line under @ts-expect-error that does compile is an error.
import {
  type BatchOf,
  DataLoader,
  Dense,
  type DenseBatch,
  type DenseReader,
  type LoaderStats,
  open,
  Ragged,
  type RaggedBatch,
  type RaggedReader,
  type Rng,
  type Shard,
  type Stream,
  shardFromEnv,
  type TransformContext,
} from '../ts/index.js';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only for `true`. */
function is<T extends true>(_?: T): void {}

const image = Dense.open('image', { dtype: 'uint8' });
const label = Dense.open('label', { dtype: 'int64' });
const tokens = Ragged.open('tokens', { dtype: 'int32' });
const unknown = open('unknown');

// ---- batches have the streams' names and types ----
const plain = new DataLoader({ image, label, tokens });
for await (const batch of plain) {
  is<Equal<typeof batch.image, DenseBatch<'uint8'>>>();
  is<Equal<typeof batch.image.data, Uint8Array>>();
  is<Equal<typeof batch.label.data, BigInt64Array>>();
  is<Equal<typeof batch.tokens, RaggedBatch<'int32'>>>();
  is<Equal<typeof batch.tokens.values, Int32Array>>();
  batch[Symbol.dispose]();
  // @ts-expect-error there is no such stream
  batch.images;
  // @ts-expect-error a ragged batch has no shape
  batch.tokens.shape;
  // @ts-expect-error a batch is not to be changed
  batch.image = await image.gather([0]);
}
const { value, done } = await plain.next();
if (done !== true) is<Equal<typeof value.label, DenseBatch<'int64'>>>();
else is<Equal<typeof value, undefined>>();
is<Equal<typeof plain.step, number>>();
is<Equal<ReturnType<typeof plain.stats>, LoaderStats>>();
// @ts-expect-error the step is for reading
plain.step = 3;

// ---- streams whose kind is not known ----
const either = new DataLoader({ unknown });
for await (const batch of either) {
  is<Equal<typeof batch.unknown, DenseBatch | RaggedBatch>>();
  if ('toArray' in batch.unknown) batch.unknown.toArray();
}
const dynamic: Record<string, Stream> = { image, tokens };
for await (const batch of new DataLoader(dynamic)) {
  is<Equal<(typeof batch)[string], DenseBatch | RaggedBatch>>();
}

// ---- a transform decides what comes ----
const sizes = new DataLoader(
  { image, tokens },
  {
    transform: (batch, { step, rng, signal }) => {
      is<Equal<typeof batch.image.data, Uint8Array>>();
      is<Equal<typeof step, number>>();
      is<Equal<typeof rng, Rng>>();
      is<Equal<typeof signal, AbortSignal>>();
      return batch.image.data.length + rng.at(0).int(3);
    },
  },
);
for await (const size of sizes) is<Equal<typeof size, number>>();
const later = new DataLoader(
  { image },
  { transform: async ({ image: one }) => ({ pixels: one.data, count: one.shape[0] }) },
);
for await (const { pixels, count } of later) {
  is<Equal<typeof pixels, Uint8Array>>();
  is<Equal<typeof count, number | undefined>>();
}
const streams = { image, label } as const;
function named(batch: BatchOf<typeof streams>, _: TransformContext): bigint {
  return batch.label.data[0] ?? 0n;
}
for await (const first of new DataLoader(streams, { transform: named })) {
  is<Equal<typeof first, bigint>>();
}

// ---- a module's result cannot be inferred: it is the batch, unless said otherwise ----
const url = new URL('./transform.mjs', import.meta.url);
for await (const batch of new DataLoader({ image }, { transform: url })) {
  is<Equal<typeof batch.image.data, Uint8Array>>();
}
const typed = new DataLoader<{ image: typeof image }, Float32Array>({ image }, { transform: url });
for await (const array of typed) is<Equal<typeof array, Float32Array>>();

// ---- what cannot be a loader ----
const writer = Dense.create('new', { dtype: 'uint8', itemShape: [], codec: 'raw' });
// @ts-expect-error a writer is no stream
new DataLoader({ writer });
// @ts-expect-error streams have names
new DataLoader([image]);
// @ts-expect-error a module is named by a URL
new DataLoader({ image }, { transform: './transform.mjs' });
// @ts-expect-error there is no such option
new DataLoader({ image }, { batch_size: 3 });
// @ts-expect-error there is no such mode
new DataLoader({ image }, { mode: 'random' });
// @ts-expect-error a step is a number
new DataLoader({ image }, { step: 3n });
// @ts-expect-error a rank is one of a world
new DataLoader({ image }, { shard: { rank: 0 } });
new DataLoader({ image }, { shard: shardFromEnv(), seed: 2n ** 63n, once: true });
is<Equal<ReturnType<typeof shardFromEnv>, Shard>>();

// ---- readers of any dtype are streams ----
function generic(
  dense: DenseReader<'float32'>,
  ragged: RaggedReader,
): DataLoader<{
  readonly dense: DenseReader<'float32'>;
  readonly ragged: RaggedReader;
}> {
  return new DataLoader({ dense, ragged });
}
generic(Dense.open('x', { dtype: 'float32' }), tokens);

// ---- it is an async iterator and disposable ----
const iterator: AsyncIterableIterator<BatchOf<{ image: typeof image }>> = new DataLoader({ image });
const disposable: AsyncDisposable = plain;

export { disposable, iterator };
