// What compiles and what does not. Nothing here runs: `tsc --noEmit` over test/ is the test, and a
// line under @ts-expect-error that does compile is an error.
import {
  type CodecOptions,
  type CreateOptions,
  type DataOf,
  Dense,
  type DenseBatch,
  type DenseReader,
  type DenseWriter,
  type DType,
  type ErrorCode,
  type Ids,
  LoaderxError,
  type NativeOf,
  type NdArray,
  ndarray,
  open,
  Ragged,
  type RaggedBatch,
  type RaggedReader,
  type RaggedWriter,
  type Reader,
  Sampler,
  toNative,
  trainDict,
  type Writer,
} from '../ts/index.js';

type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
/** Compiles only for `true`. */
function is<T extends true>(_?: T): void {}

// ---- a dtype decides its typed array ----
is<Equal<DataOf<'bool'>, Uint8Array>>();
is<Equal<DataOf<'int8'>, Int8Array>>();
is<Equal<DataOf<'uint8'>, Uint8Array>>();
is<Equal<DataOf<'int16'>, Int16Array>>();
is<Equal<DataOf<'uint16'>, Uint16Array>>();
is<Equal<DataOf<'int32'>, Int32Array>>();
is<Equal<DataOf<'uint32'>, Uint32Array>>();
is<Equal<DataOf<'int64'>, BigInt64Array>>();
is<Equal<DataOf<'uint64'>, BigUint64Array>>();
is<Equal<DataOf<'float16'>, Uint16Array>>();
is<Equal<DataOf<'bfloat16'>, Uint16Array>>();
is<Equal<DataOf<'float8_e4m3fn'>, Uint8Array>>();
is<Equal<DataOf<'float32'>, Float32Array>>();
is<Equal<DataOf<'float64'>, Float64Array>>();
is<Equal<DataOf<'complex64'>, Float32Array>>();
is<Equal<DataOf<'complex128'>, Float64Array>>();
is<Equal<DataOf<'numpy:<M8[ns]'>, BigInt64Array>>();
is<Equal<DataOf<'numpy:<m8'>, BigInt64Array>>();
is<Equal<DataOf<'numpy:>M8[ns]'>, Uint8Array>>();
is<Equal<DataOf<'numpy:>f4'>, Uint8Array>>();
is<Equal<DataOf<'numpy:|S5'>, Uint8Array>>();
is<Equal<DataOf<'numpy:<f16'>, Uint8Array>>();
is<Equal<DataOf<`numpy:${string}`>, BigInt64Array | Uint8Array>>();
is<Equal<DataOf<'int8' | 'float32'>, Int8Array | Float32Array>>();
is<Float32Array extends DataOf<DType> ? true : false>();
is<Equal<NativeOf<'numpy:>f4'>, 'float32'>>();
is<Equal<NativeOf<'numpy:>c16'>, 'complex128'>>();
is<Equal<NativeOf<'numpy:>M8[25us]'>, 'numpy:<M8[25us]'>>();
is<Equal<NativeOf<'int32'>, 'int32'>>();
is<Equal<NativeOf<DType>, DType>>();

ndarray('float32', [2], new Float32Array(2));
ndarray('numpy:>f4', [2], new Uint8Array(8));
// @ts-expect-error a float32 is a Float32Array
ndarray('float32', [2], new Float64Array(2));
// @ts-expect-error an int64 is a BigInt64Array
ndarray('int64', [2], new BigUint64Array(2));
// @ts-expect-error a list is no typed array
ndarray('float32', [2], [1, 2]);
// @ts-expect-error there is no such dtype
ndarray('float31', [2], new Float32Array(2));
// @ts-expect-error a NumPy string alone is no name here
ndarray('<f4', [2], new Float32Array(2));
is<Equal<typeof swapped, NdArray<'float32'>>>();
const swapped = toNative(ndarray('numpy:>f4', [2], new Uint8Array(8)));

// ---- codecs ----
const dictBytes = new Uint8Array(9);
const codecs: CodecOptions[] = [
  { codec: 'raw' },
  { codec: 'zstd' },
  { codec: 'zstd_dict', dictBytes },
  // @ts-expect-error a dictionary codec needs its dictionary
  { codec: 'zstd_dict' },
  // @ts-expect-error no other codec takes one
  { codec: 'zstd', dictBytes },
  // @ts-expect-error there is no such codec
  { codec: 'lz4' },
];
void codecs;
const withAll: CreateOptions = { codec: 'raw', dataShards: 8, dialect: '2.8' };
void withAll;

const dense = Dense.create('/a', { dtype: 'float32', itemShape: [28, 28], codec: 'raw' });
const ragged = Ragged.create(new URL('file:///b'), { dtype: 'int16', ndim: 2, codec: 'zstd' });
is<Equal<typeof dense, DenseWriter<'float32'>>>();
is<Equal<typeof ragged, RaggedWriter<'int16'>>>();
Dense.create(Buffer.from('/a'), { dtype: 'bool', itemShape: [], codec: 'zstd_dict', dictBytes });
// @ts-expect-error codec has no default
Dense.create('/a', { dtype: 'float32', itemShape: [] });
// @ts-expect-error nor has the dictionary
Dense.create('/a', { dtype: 'float32', itemShape: [], codec: 'zstd_dict' });
// @ts-expect-error dense records have a shape
Dense.create('/a', { dtype: 'float32', codec: 'raw' });
// @ts-expect-error ragged ones have a rank
Ragged.create('/a', { dtype: 'float32', codec: 'raw' });
// @ts-expect-error and no shape
Ragged.create('/a', { dtype: 'float32', ndim: 1, itemShape: [2], codec: 'raw' });
// @ts-expect-error a path is no number
Dense.create(3, { dtype: 'float32', itemShape: [], codec: 'raw' });

// ---- what goes in ----
const batch = ndarray('float32', [1, 28, 28], new Float32Array(784));
const record = ndarray('int16', [1, 2], new Int16Array(2));
async function* records(): AsyncGenerator<NdArray<'int16'>> {
  yield record;
}
async function append(): Promise<void> {
  await dense.append(batch);
  dense.appendSync({ dtype: 'float32', shape: [1, 28, 28], data: new Float32Array(784) });
  await ragged.append([record]);
  await ragged.append(new Set([record]));
  await ragged.append(records());
  ragged.appendSync([record]);
  // @ts-expect-error another dtype
  await dense.append(ndarray('float64', [1, 28, 28], new Float64Array(784)));
  // @ts-expect-error one record is not a batch of records
  await ragged.append(record);
  // @ts-expect-error appendSync cannot wait
  ragged.appendSync(records());
  // @ts-expect-error another dtype
  await ragged.append([ndarray('int8', [1, 2], new Int8Array(2))]);
  await dense.close({ durable: true });
  dense.closeSync();
  dense.abort();
}
void append;

// ---- a writer does not read, a reader does not write ----
// @ts-expect-error
void dense.gather;
// @ts-expect-error
void dense.record;
// @ts-expect-error
void ragged.slice;
// @ts-expect-error
void ragged.batches;

const reader = Dense.open('/a', { dtype: 'float32' });
const raggedReader = Ragged.open('/b', { dtype: 'int16', ndim: 2, maxBatchBytes: 1e6 });
is<Equal<typeof reader, DenseReader<'float32'>>>();
is<Equal<typeof raggedReader, RaggedReader<'int16'>>>();
// @ts-expect-error
void reader.append;
// @ts-expect-error
void reader.abort;
// @ts-expect-error
void raggedReader.appendSync;
// @ts-expect-error length is what it is
reader.length = 3;
is<Equal<ReturnType<typeof Dense.open>, DenseReader>>();

// ---- what comes out ----
async function read(): Promise<void> {
  const ids: Ids[] = [[1, 2], new Uint32Array(2), new BigUint64Array(2)];
  void ids;
  // @ts-expect-error ids are integers
  await reader.gather(['1']);
  // @ts-expect-error not of this kind
  await reader.gather(new Int32Array(2));
  const gathered = await reader.gather([1, 2]);
  is<Equal<typeof gathered, DenseBatch<'float32'>>>();
  is<Equal<typeof gathered.data, Float32Array>>();
  is<Equal<ReturnType<typeof gathered.toNative>, NdArray<'float32'>>>();
  is<Equal<Awaited<ReturnType<typeof reader.slice>>, DenseBatch<'float32'>>>();
  is<Equal<ReturnType<typeof reader.record>, NdArray<'float32'>>>();
  is<Equal<ReturnType<typeof reader.batches>, AsyncIterable<DenseBatch<'float32'>>>>();
  const signal = AbortSignal.timeout(5);
  is<Equal<typeof signalled, DenseBatch<'float32'>>>();
  const signalled = await reader.gather([1], { signal });
  const filled = await reader.gather([1], { out: batch, signal });
  is<Equal<typeof filled, NdArray<'float32'>>>();
  const again = reader.gatherSync([1], { out: gathered });
  is<Equal<typeof again, DenseBatch<'float32'>>>();
  // @ts-expect-error out is of the container's dtype
  await reader.gather([1], { out: ndarray('int8', [1], new Int8Array(1)) });

  const packed = raggedReader.gatherSync([1, 2]);
  is<Equal<typeof packed, RaggedBatch<'int16'>>>();
  is<Equal<typeof packed.values, Int16Array>>();
  is<Equal<ReturnType<typeof packed.at>, NdArray<'int16'>>>();
  is<Equal<ReturnType<typeof packed.toArray>, NdArray<'int16'>[]>>();
  for (const each of packed) is<Equal<typeof each, NdArray<'int16'>>>();
  const padded = packed.pad({ value: 0, length: [3, 4] });
  is<Equal<typeof padded, { data: NdArray<'int16'>; mask: NdArray<'bool'> }>>();
  // @ts-expect-error padding has no default
  packed.pad({});
  await ragged.append(packed);
  ragged.appendSync(packed);
  is<Equal<typeof refilled, RaggedBatch<'int16'>>>();
  const refilled = await raggedReader.gather([1], { out: packed });
  // @ts-expect-error out of a ragged reader is a batch of one
  await raggedReader.gather([1], { out: record });
}
void read;

// ---- open tells by kind ----
const either = open('/a');
if (either.kind === 'dense') {
  is<Equal<typeof either, DenseReader>>();
  void either.itemShape;
} else {
  is<Equal<typeof either, RaggedReader>>();
  // @ts-expect-error ragged records have no shape in common
  void either.itemShape;
}
void (async () => {
  for await (const some of either.batches(3)) {
    if ('values' in some) void some.offsets;
    else void some.shape;
  }
});

// ---- readers of any dtype go where readers go ----
function streams(_: Record<string, DenseReader | RaggedReader>): void {}
streams({ image: reader, tokens: raggedReader, other: either });
function anyWriter(_: Writer<never, never>): void {}
anyWriter(dense);
anyWriter(ragged);
function anyReader(_: Reader<'dense' | 'ragged', DType, unknown, unknown>): void {}
anyReader(reader);

// ---- dictionaries, sampler, errors ----
void trainDict(batch);
void trainDict([record, new Uint8Array(3)]);
void trainDict(reader);
void trainDict(raggedReader);
// @ts-expect-error a writer is no source
void trainDict(dense);

const sampler = new Sampler({ length: 10n, batchSize: 4, mode: 'cyclic', seed: 7 });
is<Equal<ReturnType<typeof sampler.draw>, BigUint64Array>>();
is<Equal<typeof sampler.step, bigint>>();
void reader.gather(sampler.draw());
for (const ids of sampler) is<Equal<typeof ids, BigUint64Array>>();
// @ts-expect-error mode has no default
new Sampler({ length: 10, batchSize: 4 });
// @ts-expect-error there is no such mode
new Sampler({ length: 10, batchSize: 4, mode: 'random' });

const failure = new LoaderxError('IO', 'x');
is<Equal<typeof failure.code, ErrorCode>>();
// @ts-expect-error no such code
void (failure.code === 'OTHER');
// @ts-expect-error errors do not change
failure.code = 'IO';

// ---- scopes ----
async function scopes(): Promise<void> {
  await using writer = Dense.create('/a', { dtype: 'int8', itemShape: [], codec: 'raw' });
  using readerHere = open('/a');
  using batchHere = reader.gatherSync([1]);
  using drawn = new Sampler({ length: 1, batchSize: 1, mode: 'iid' });
  void [writer, readerHere, batchHere, drawn];
}
void scopes;

// ---- what holds one dtype is also what holds any ----
export async function anyDType(
  bytes: DenseReader<'uint8'>,
  tokens: RaggedReader<'int32'>,
): Promise<void> {
  const array: NdArray = ndarray('uint8', [1], new Uint8Array(1));
  const readers: (DenseReader | RaggedReader)[] = [bytes, tokens];
  await trainDict(array);
  await trainDict(bytes);
  for (const reader of readers) await reader.close();
}
