/**
 * `loaderx/bullmq`: conversions in parts by the workers of a BullMQ queue. Begin with {@link enqueueConversion}
 * and {@link worker}. Wants the peers `bullmq` and `ioredis`, and a Redis server.
 *
 * @packageDocumentation
 */
export {
  type CancelOptions,
  type ConversionProgress,
  type ConversionResult,
  type DoneOptions,
  type EnqueueOptions,
  enqueueConversion,
  findConversion,
  type QueuedConversion,
} from './bullmq/conversion.js';
export type { QueuePlace, RedisAddress } from './bullmq/place.js';
export type { ConversionSpec, MadeColumn } from './bullmq/spec.js';
export type { MadeSet, PartProgress } from './bullmq/task.js';
export { type PartWorker, type WorkerEvent, type WorkerOptions, worker } from './bullmq/worker.js';
