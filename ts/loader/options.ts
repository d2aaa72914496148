/**
 * What a loader is told, checked once, before anything is made. An option that is not known is an
 * error: a misspelt one would be silently without effect.
 */
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import { type SamplerMode, u64 } from '../sampler.js';
import { signalOf } from '../signal.js';
import { type StreamSource, streamOf } from '../store/stream.js';
import type { AnyStreamBatch, NamedStream } from './batch.js';
import { type CheckedShard, shardOf } from './shard.js';
import type { TransformFunction } from './transform-module.js';

/** A loader's options, complete. */
export interface Settings {
  readonly batchSize: number;
  readonly mode: SamplerMode;
  readonly seed: bigint;
  readonly step: number;
  /** Batches drawn and not delivered. */
  readonly prefetch: number;
  readonly maxBytes: number | undefined;
  readonly order: 'step' | 'completion';
  readonly once: boolean;
  readonly signal: AbortSignal | undefined;
  readonly shard: CheckedShard;
  readonly transform: TransformFunction | URL | undefined;
  readonly transformWorkers: number;
}

const known = [
  ...['batchSize', 'mode', 'seed', 'step', 'prefetch', 'maxBytes', 'order', 'once', 'signal'],
  ...['shard', 'transform', 'transformWorkers'],
];

const batchSizeDefault = 256;
const seedDefault = 42;
const prefetchDefault = 4;
const workersDefault = 4;
/** Batches ahead when only bytes are bounded: more would be bookkeeping without use. */
const prefetchWithBytes = 1024;
const workersMax = 1024;

/** The checked options of a loader. */
export function settingsOf(options: unknown): Settings {
  const fields = fieldsOf(options);
  const once = flag(fields.once, 'once');
  const maxBytes =
    fields.maxBytes === undefined ? undefined : positive(fields.maxBytes, 'maxBytes');
  return {
    batchSize: positive(fields.batchSize ?? batchSizeDefault, 'batchSize'),
    mode: modeOf(fields.mode, once),
    seed: u64(fields.seed ?? seedDefault, 'seed', 0n),
    step: stepOf(fields.step ?? 0),
    prefetch: positive(
      fields.prefetch ?? (maxBytes === undefined ? prefetchDefault : prefetchWithBytes),
      'prefetch',
    ),
    maxBytes,
    order: orderOf(fields.order),
    once,
    signal: signalOf(fields.signal),
    shard: shardOf(fields.shard),
    transform: transformOf(fields.transform),
    transformWorkers: workersOf(fields.transformWorkers ?? workersDefault),
  };
}

function fieldsOf(options: unknown): Readonly<Record<string, unknown>> {
  if (options === undefined) return {};
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new ArgumentTypeError('options', `options must be an object, got ${show(options)}`);
  }
  for (const [key, value] of Object.entries(options)) {
    if (!known.includes(key)) {
      throw new ArgumentTypeError(
        key,
        `there is no option ${show(key)} here; known are ${known.join(', ')}`,
      );
    }
    if (value === null) {
      throw new ArgumentTypeError(key, `${key} is null: leave it out, or give a value`);
    }
  }
  return options as Readonly<Record<string, unknown>>;
}

/** The checked step of a loader: 0 .. 2^53 - 1. */
export function stepOf(step: unknown): number {
  return integer(step, 'step', 0);
}

function positive(value: unknown, field: string): number {
  return integer(value, field, 1);
}

function integer(value: unknown, field: string, least: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    const hint = typeof value === 'bigint' ? ', as number' : '';
    throw new ArgumentTypeError(field, `${field} must be an integer${hint}, got ${show(value)}`);
  }
  if (value < least || value > Number.MAX_SAFE_INTEGER) {
    throw new ArgumentRangeError(field, `${field} must be ${least} to 2^53 - 1, got ${value}`);
  }
  return value + 0;
}

function workersOf(value: unknown): number {
  const count = integer(value, 'transformWorkers', 0);
  if (count <= workersMax) return count;
  throw new ArgumentRangeError(
    'transformWorkers',
    `transformWorkers must be 0 to ${workersMax}, got ${count}`,
  );
}

function flag(value: unknown, field: string): boolean {
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  throw new ArgumentTypeError(field, `${field} must be true or false, got ${show(value)}`);
}

/** What the sampler says about an unknown mode is said there. */
function modeOf(mode: unknown, once: boolean): SamplerMode {
  if (!once) return (mode ?? 'cyclic') as SamplerMode;
  if (mode === undefined || mode === 'sequential') return 'sequential';
  throw new ArgumentTypeError(
    'mode',
    `once makes one pass in order, which is mode 'sequential', got ${show(mode)}`,
  );
}

function orderOf(order: unknown): 'step' | 'completion' {
  if (order === undefined) return 'step';
  if (order === 'step' || order === 'completion') return order;
  throw new ArgumentTypeError('order', `order must be 'step' or 'completion', got ${show(order)}`);
}

function transformOf(transform: unknown): TransformFunction | URL | undefined {
  if (transform === undefined) return undefined;
  if (typeof transform === 'function') return transform as TransformFunction;
  if (isUrl(transform)) return transform;
  const hint =
    typeof transform === 'string' ? ": name a module as new URL('./name.js', import.meta.url)" : '';
  throw new ArgumentTypeError(
    'transform',
    `transform must be a function, or the URL of a module, got ${show(transform)}${hint}`,
  );
}

/** By its fields: it may be of another realm. */
function isUrl(value: unknown): value is URL {
  if (typeof value !== 'object' || value === null) return false;
  const { href, protocol } = value as Partial<URL>;
  return typeof href === 'string' && typeof protocol === 'string';
}

/** The checked streams of a loader. */
export interface Streams {
  readonly named: readonly NamedStream[];
  /** Records of each. */
  readonly length: number;
}

/**
 * Open readers by name, all of one length, at least one of either.
 *
 * @throws TypeError, RangeError naming the stream; LoaderxError CLOSED for a closed reader
 */
export function streamsOf(streams: unknown): Streams {
  if (typeof streams !== 'object' || streams === null || Array.isArray(streams)) {
    throw new ArgumentTypeError(
      'streams',
      `streams must be an object of open readers by name, got ${show(streams)}`,
    );
  }
  const entries = Object.entries(streams);
  const first = entries[0];
  if (first === undefined) {
    throw new ArgumentRangeError('streams', 'streams has no reader: give at least one, by name');
  }
  const named = entries.map(([name, value]) => ({ name, source: sourceOf(name, value) }));
  const length = lengthOf(first[1]);
  for (const [name, value] of entries) {
    if (lengthOf(value) === length) continue;
    throw new ArgumentRangeError(
      'streams',
      `streams must have one length: ${show(first[0])} has ${length} records, and ${show(name)} has ${lengthOf(value)}`,
    );
  }
  if (length === 0) throw new ArgumentRangeError('streams', 'the containers of streams are empty');
  return { named, length };
}

function sourceOf(name: string, value: unknown): StreamSource<AnyStreamBatch> {
  const source =
    typeof value === 'object' && value !== null
      ? (value as { readonly [streamOf]?: StreamSource<AnyStreamBatch> })[streamOf]
      : undefined;
  if (source === undefined) {
    const isWriter = typeof value === 'object' && value !== null && 'append' in value;
    const hint = isWriter ? ': close the writer, and open what it built' : '';
    throw new ArgumentTypeError(
      'streams',
      `streams[${show(name)}] must be an open reader, got ${show(value)}${hint}`,
    );
  }
  source.assertOpen();
  return source;
}

function lengthOf(reader: unknown): number {
  return (reader as { readonly length: number }).length;
}
