/**
 * loaderx: record containers for training data. Begin with {@link Dense} and {@link Ragged}.
 *
 * @packageDocumentation
 */
export {
  type BenchOptions,
  type BenchResult,
  type BenchWay,
  bench,
  type ProcessMemory,
} from './bench/container.js';
export { benchLoader, type LoaderBenchOptions, type LoaderBenchResult } from './bench/loader.js';
export { configure, type Settings } from './configure.js';
export { type DictSource, trainDict } from './dict.js';
export type { DataOf, DType, NativeOf } from './dtype.js';
export { type ErrorCode, type ErrorPlace, type ErrorRecord, LoaderxError } from './errors.js';
export {
  type DiffReport,
  diff,
  type FactDifference,
  type RecordDifference,
} from './inspect/diff.js';
export {
  type DigestOptions,
  type DigestResult,
  digest,
  logicalDigest,
} from './inspect/digest.js';
export type { ContainerFacts } from './inspect/facts.js';
export {
  type HeadOptions,
  type HeadRecord,
  type HeadResult,
  head,
  type ShowOptions,
  showArray,
} from './inspect/head.js';
export {
  type ContainerInfo,
  containersAt,
  type DictInfo,
  info,
  type LengthInfo,
} from './inspect/info.js';
export { contactSheet, type SheetOptions } from './inspect/png.js';
export type { LongOptions, Progress } from './inspect/progress.js';
export {
  type MergeOptions,
  merge,
  type RecodeOptions,
  type RecodeResult,
  recode,
} from './inspect/recode.js';
export { makeSet, type SetOptions, type SetResult } from './inspect/set.js';
export {
  type VerifyFault,
  type VerifyOptions,
  type VerifyPart,
  type VerifyReport,
  type VerifyWarning,
  verify,
} from './inspect/verify.js';
export type { BatchOf, Stream, StreamBatch } from './loader/batch.js';
export {
  DataLoader,
  type DataLoaderOptions,
  type LoaderStats,
  type Transform,
} from './loader/data-loader.js';
export type { Random, Rng } from './loader/rng.js';
export { type Shard, type ShardFromEnvOptions, shardFromEnv, type Uneven } from './loader/shard.js';
export type { TransformContext } from './loader/transform.js';
export { type NdArray, ndarray, toNative } from './ndarray.js';
export { type PartFromEnvOptions, partFromEnv } from './part-env.js';
export { type Part, type PartRange, partName, partRange, writePart } from './parts.js';
export { Sampler, type SamplerMode, type SamplerOptions, type SamplerRecord } from './sampler.js';
export type { Dialect } from './schema.js';
export type {
  CloseOptions,
  Codec,
  CodecOptions,
  CreateOptions,
  DenseBatch,
  DenseReader,
  DenseWriter,
  GatherInto,
  GatherNew,
  GatherOptions,
  OpenOptions,
  PadOptions,
  RaggedBatch,
  RaggedInput,
  RaggedReader,
  RaggedWriter,
  Reader,
  Writer,
} from './store/capability.js';
export { Concat, type Concatenated, type ConcatOptions, concat } from './store/concat.js';
export type { JoinedPart } from './store/container.js';
export { Dense, type DenseCreateOptions, type DenseExpected } from './store/dense.js';
export type { Ids } from './store/ids.js';
export { open } from './store/open.js';
export type { ContainerPath } from './store/path.js';
export { Ragged, type RaggedCreateOptions, type RaggedExpected } from './store/ragged.js';
export type { SetPart } from './store/set-file.js';
