/** What processes say to each other: the worker, and its child that makes a part or the sets. */
import type { ErrorRecord } from '../errors.js';
import type { ConversionSpec, MadeColumn } from './spec.js';

/** What a child is to do. */
export type Task =
  | { readonly kind: 'part'; readonly spec: ConversionSpec; readonly part: number }
  | {
      readonly kind: 'sets';
      readonly spec: ConversionSpec;
      readonly columns: readonly MadeColumn[];
    };

/** What a part made. */
export interface MadePart {
  readonly part: number;
  readonly columns: readonly MadeColumn[];
  /** Whether it was there already. */
  readonly wasThere: boolean;
}

/** A set over all parts: one column of one split. */
export interface MadeSet extends MadeColumn {
  /** Its file, `TARGET/SPLIT.COLUMN.json`; without a split `TARGET/COLUMN.json`. */
  readonly path: string;
  /** Of all parts together. */
  readonly records: number;
}

/** How far a part has come. */
export interface PartProgress {
  /** Rows that were read, over all splits; 0 before the part has told anything. */
  readonly recordsDone: number;
  /** Rows of the part, over all splits; 0 before it has told anything. */
  readonly recordsTotal: number;
}

/** To the child. */
export type Order =
  | { readonly kind: 'run'; readonly task: Task }
  | { readonly kind: 'abort'; readonly reason: string };

/** From the child: `ready` once it listens, any number of `progress`, then one of the others. */
export type Answer =
  | { readonly kind: 'ready' }
  | ({ readonly kind: 'progress' } & PartProgress)
  | { readonly kind: 'done'; readonly result: MadePart | readonly MadeSet[] }
  | {
      readonly kind: 'failed';
      readonly error: ErrorRecord | Pick<ErrorRecord, 'name' | 'message'>;
    };

/** The descriptor by which a child sees that its worker is gone: the other end closes. */
export const lifeline = 4;
