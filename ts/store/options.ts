/**
 * The options of `create` and `open`, checked once. An option that is not known is an error: a
 * misspelt one would be silently without effect.
 */
import { type DTypeInfo, isHonest, typedArrayName } from '../dtype.js';
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import {
  type Dialect,
  denseRankMax,
  raggedRankMax,
  recordBytesMax,
  recordBytesOf,
} from '../schema.js';
import type { Codec } from './capability.js';
import { type Fields, knownFields } from './fields.js';

/** Native numbers of the codecs, by position. */
export const codecs: readonly Codec[] = ['raw', 'zstd', 'zstd_dict'];

const shardsDefault = 4;
const shardsMax = 255;
const batchBytesDefault = 4 * 2 ** 30;

/** What every new container is told, checked. */
export interface CreateSettings {
  readonly codec: Codec;
  readonly dataShards: number;
  readonly dialect: Dialect;
  readonly dict: Uint8Array | undefined;
}

export const createFields = ['codec', 'dictBytes', 'dataShards', 'dialect', 'dtype'] as const;

export function createSettings(fields: Fields, dtype: DTypeInfo): CreateSettings {
  const codec = fields.codec;
  if (codec !== 'raw' && codec !== 'zstd' && codec !== 'zstd_dict') {
    throw new ArgumentTypeError(
      'codec',
      `codec must be 'raw', 'zstd' or 'zstd_dict', got ${show(codec)}; there is no default`,
    );
  }
  const { dataShards = shardsDefault, dialect = '2.4' } = fields;
  if (typeof dataShards !== 'number' || !Number.isInteger(dataShards)) {
    throw new ArgumentTypeError(
      'dataShards',
      `dataShards must be an integer, got ${show(dataShards)}`,
    );
  }
  if (dataShards < 1 || dataShards > shardsMax) {
    throw new ArgumentRangeError(
      'dataShards',
      `dataShards must be 1 to ${shardsMax}, got ${dataShards}`,
    );
  }
  if (dialect !== '2.4' && dialect !== '2.8') {
    throw new ArgumentTypeError('dialect', `dialect must be '2.4' or '2.8', got ${show(dialect)}`);
  }
  if ((dialect === '2.4' ? dtype.numpy : dtype.name28) === undefined) {
    const other = dialect === '2.4' ? '2.8' : '2.4';
    throw new ArgumentTypeError(
      'dtype',
      `dtype ${show(dtype.name)} is not of the ${dialect} dialect; dialect: '${other}' has it`,
    );
  }
  return { codec, dataShards, dialect, dict: dictOf(codec, fields.dictBytes) };
}

function dictOf(codec: Codec, dictBytes: unknown): Uint8Array | undefined {
  if (codec !== 'zstd_dict') {
    if (dictBytes === undefined) return undefined;
    throw new ArgumentTypeError('dictBytes', `codec '${codec}' takes no dictBytes`);
  }
  if (typedArrayName(dictBytes) !== 'Uint8Array' || !isHonest(dictBytes as Uint8Array)) {
    throw new ArgumentTypeError(
      'dictBytes',
      `codec 'zstd_dict' needs dictBytes, a Uint8Array, got ${show(dictBytes)}; trainDict() makes one`,
    );
  }
  const bytes = dictBytes as Uint8Array;
  if (bytes.byteLength === 0) {
    throw new ArgumentRangeError('dictBytes', 'dictBytes is empty; trainDict() makes a dictionary');
  }
  // A copy: the caller's memory may be shared with a thread that changes it.
  return new Uint8Array(bytes);
}

/** The checked `itemShape` of a dense container. */
export function itemShapeOf(itemShape: unknown, dtype: DTypeInfo): readonly number[] {
  if (!Array.isArray(itemShape)) {
    throw new ArgumentTypeError(
      'itemShape',
      `itemShape must be a list of integers ([] for scalar records), got ${show(itemShape)}`,
    );
  }
  if (itemShape.length > denseRankMax) {
    throw new ArgumentRangeError(
      'itemShape',
      `itemShape has ${itemShape.length} dimensions, and ${denseRankMax} is the most`,
    );
  }
  const shape: number[] = [];
  for (let axis = 0; axis < itemShape.length; axis += 1) {
    const size: unknown = itemShape[axis];
    if (typeof size !== 'number' || !Number.isInteger(size)) {
      throw new ArgumentTypeError(
        'itemShape',
        `itemShape[${axis}] must be an integer, got ${show(size)}`,
      );
    }
    if (size < 1) {
      throw new ArgumentRangeError(
        'itemShape',
        `itemShape[${axis}] must be 1 or more, got ${size}`,
      );
    }
    shape.push(size);
  }
  const recordBytes = recordBytesOf(dtype, shape);
  if (recordBytes > recordBytesMax) {
    throw new ArgumentRangeError(
      'itemShape',
      `records of shape ${show(shape)} have ${recordBytes} bytes, and 2^31 is the most`,
      'TOO_LARGE',
    );
  }
  return Object.freeze(shape);
}

/** The checked `ndim` of a ragged container. */
export function ndimOf(ndim: unknown): number {
  if (typeof ndim !== 'number' || !Number.isInteger(ndim)) {
    throw new ArgumentTypeError('ndim', `ndim must be an integer, got ${show(ndim)}`);
  }
  if (ndim < 1 || ndim > raggedRankMax) {
    throw new ArgumentRangeError(
      'ndim',
      `ndim must be 1 to ${raggedRankMax}, got ${ndim}; scalar records are Dense with itemShape []`,
    );
  }
  return ndim;
}

/** The checked `maxBatchBytes`. */
export function batchBytesMaxOf(value: unknown): number {
  if (value === undefined) return batchBytesDefault;
  if (typeof value !== 'number' || !Number.isSafeInteger(value)) {
    throw new ArgumentTypeError(
      'maxBatchBytes',
      `maxBatchBytes must be an integer, got ${show(value)}`,
    );
  }
  if (value < 1) {
    throw new ArgumentRangeError('maxBatchBytes', `maxBatchBytes must be 1 or more, got ${value}`);
  }
  return value;
}

/** How a build is published, checked. */
export interface CloseSettings {
  readonly durable: boolean;
  readonly integrity: boolean;
}

/** The checked options of `close`. */
export function closeSettings(options: unknown): CloseSettings {
  const fields = knownFields(options, ['durable', 'integrity']);
  return {
    durable: flagOf(fields.durable, 'durable'),
    integrity: flagOf(fields.integrity, 'integrity'),
  };
}

function flagOf(value: unknown, field: string): boolean {
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  throw new ArgumentTypeError(field, `${field} must be true or false, got ${show(value)}`);
}

/** Which containers `verify` asks to be held against their integrity files. */
export function verifyingOf(verify: unknown): 'none' | 'all' {
  if (verify === undefined) return 'none';
  if (verify === 'digest') return 'all';
  throw new ArgumentTypeError(
    'verify',
    `verify must be 'digest' or be left out, got ${show(verify)}`,
  );
}
