/** What a container is, in the words of this room. */
import type { DType } from '../dtype.js';
import type { Dialect, Schema } from '../schema.js';
import type { Codec, DenseReader, RaggedReader } from '../store/capability.js';
import type { OpenedStore } from '../store/container.js';
import { denseReader } from '../store/dense.js';
import { raggedReader } from '../store/ragged.js';

/** What every record of a container has in common. */
export interface ContainerFacts {
  /** Whether its records have one shape. */
  readonly kind: 'dense' | 'ragged';
  /** Of its items. */
  readonly dtype: DType;
  /** Of dense records. */
  readonly itemShape?: readonly number[];
  /** Of ragged records: how many dimensions each has. */
  readonly ndim?: number;
  /** How many there are. */
  readonly records: number;
  /** How they are stored. */
  readonly codec: Codec;
  /** Data files, 1 .. 255. */
  readonly dataShards: number;
  /** Which Python loaderx reads it. */
  readonly dialect: Dialect;
}

/** The facts of an opened container. */
export function factsOf(opened: OpenedStore): ContainerFacts {
  const { schema, recordCount, codec, dataShards } = opened;
  return {
    kind: schema.kind,
    dtype: schema.dtype.name,
    ...shapeFact(schema),
    records: recordCount,
    codec,
    dataShards,
    dialect: schema.dialect,
  };
}

function shapeFact(schema: Schema): { itemShape: readonly number[] } | { ndim: number } {
  return schema.kind === 'dense' ? { itemShape: schema.itemShape } : { ndim: schema.ndim };
}

/** The facts of a reader. */
export function factsOfReader(reader: DenseReader | RaggedReader): ContainerFacts {
  return {
    kind: reader.kind,
    dtype: reader.dtype,
    ...(reader.kind === 'dense' ? { itemShape: reader.itemShape } : { ndim: reader.ndim }),
    records: reader.length,
    codec: reader.codec,
    dataShards: reader.dataShards,
    dialect: reader.dialect,
  };
}

/** A reader of an opened container without a bound on its batches: this room bounds them itself. */
export function readerOf(opened: OpenedStore): DenseReader | RaggedReader {
  const { schema } = opened;
  return schema.kind === 'dense'
    ? denseReader(opened, Number.MAX_SAFE_INTEGER)
    : raggedReader(opened, Number.MAX_SAFE_INTEGER);
}
