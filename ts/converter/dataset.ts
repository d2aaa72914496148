/**
 * What is converted: named columns, and batches of their rows.
 *
 * The converter knows nothing else of where rows come from: Parquet files of a hub repository, of a local
 * folder, or anything a caller makes these types of. Rows travel column by column, numbers in typed arrays
 * and list boundaries in offsets, so that no value is an object of its own:
 *
 * ```text
 * rows of a list<list<int32>> column   [[1, 2], [3]]   [[4]]
 *   offsets[0]  rows → inner lists     0               2     3
 *   offsets[1]  inner lists → items    0       2    3        4
 *   values                             1 2     3    4
 * ```
 */
import type { Data } from '../dtype.js';
import type { NdArray } from '../ndarray.js';

/** What a column is declared to hold. */
export type Feature =
  | {
      /** One value a row. */
      readonly kind: 'value';
      /** A name of `datasets`: `int64`, `float16`, `bool`, `string`, `binary`, `timestamp[ns]`. */
      readonly dtype: string;
    }
  | {
      /** An integer that stands for a name; stored as int64, whatever the names are. */
      readonly kind: 'class-label';
      /** Name i is what i stands for. */
      readonly names?: readonly string[];
    }
  | {
      /** An encoded picture (PNG, JPEG, …), stored decoded. */
      readonly kind: 'image';
      /** Of the records, as Pillow names it: `RGB`, `L`, …; pictures of other modes are converted. */
      readonly mode?: string;
    }
  | {
      /** A list. */
      readonly kind: 'list';
      /** What the list holds. */
      readonly item: Feature;
      /** Exactly so many items in every row, where it is given. */
      readonly length?: number;
    }
  | {
      /** An array of numbers. */
      readonly kind: 'array';
      /** Its sizes. One that is null differs from row to row. */
      readonly shape: readonly (number | null)[];
      /** A name of `datasets`, as for a value. */
      readonly dtype: string;
    }
  | {
      /**
       * An {@link ArrayColumn} whose rows tell their own dtype, the same for all, and shape, of one rank. Dense
       * as long as all have one shape, ragged from the first other one on.
       */
      readonly kind: 'arrays';
    }
  | {
      /** Several columns under one name. */
      readonly kind: 'struct';
      /** By name, in their order. */
      readonly fields: ReadonlyMap<string, Feature>;
    }
  | {
      /** What no container holds. */
      readonly kind: 'unsupported';
      /** What messages call it. */
      readonly name: string;
    };

/** Columns by name, in their order. */
export type Features = ReadonlyMap<string, Feature>;

/** Numbers of all rows back to back: typed arrays as in `DataOf` (bool in Uint8Array, float16 in Uint16Array as bits, 64-bit integers in BigInt64Array). */
export interface NumberColumn {
  /** The dtype's typed array, all rows back to back. */
  readonly values: Data;
  /**
   * One entry for each level of lists, outermost first: n + 1 positions, of which the first is 0, each
   * not below the one before. May be left out where the feature's shape is fixed.
   */
  readonly offsets?: readonly Uint32Array[];
}

/** Bytes of each value: of a string in UTF-8, of an encoded picture. `null` fails, naming column and row. */
export interface BytesColumn {
  /** One entry for each value. */
  readonly bytes: readonly (Uint8Array | null)[];
  /** Of lists, as for numbers. */
  readonly offsets?: readonly Uint32Array[];
  /** What messages call each value, such as the file that a picture was; its row alone, unless given. */
  readonly names?: readonly string[];
}

/** One array for each row: the comfortable form for datasets made by hand. */
export interface ArrayColumn {
  /** One entry for each row. */
  readonly arrays: readonly NdArray[];
}

/** The rows of one column in one batch. */
export type ColumnValues = NumberColumn | BytesColumn | ArrayColumn;

/** A bounded run of rows: every column of the dataset, each with `rowCount` rows. */
export interface RowBatch {
  /** At least 1. */
  readonly rowCount: number;
  /** By the names of the features. */
  readonly columns: ReadonlyMap<string, ColumnValues>;
  /** Called once the rows are written, if they are: from then on their memory may hold others. */
  readonly done?: () => void;
}

/** What {@link Dataset.batches} is asked for. */
export interface BatchOptions {
  /** The columns that are wanted; all, unless given. */
  readonly columns?: readonly string[];
  /** Ends the reading. */
  readonly signal?: AbortSignal;
}

/** Rows with named columns. */
export interface Dataset {
  /** What each column holds. */
  readonly features: Features;
  /**
   * All rows from the first on, in order; each call begins anew. A batch's memory is the conversion's, unchanged,
   * until its `done` is called, or the conversion is over where it has none: up to 32,768 rows or 32 MiB wait to be
   * written while the next are asked for. Some 10 MiB or 32,768 rows are a good size.
   */
  batches(options?: BatchOptions): AsyncIterable<RowBatch>;
  /** How many rows there are, where it is known before they are read: for progress, for parts, and to miss none. */
  readonly rowCount?: number;
  /**
   * The rows `first` to `end - 1` as a dataset of their own, which reads little more than these. Without it a
   * part is made by reading all rows before it too.
   */
  range?(first: number, end: number): Dataset;
}

/** A local file of a split: where it is, and what messages call it. */
export interface FileName {
  /** Absolute, or below the working folder. */
  readonly path: string;
  /** What messages call it. */
  readonly name: string;
}

/** Where splits come from. */
export interface DatasetSource {
  /** The repository, or the folder. */
  readonly name: string;
  /** What was asked for, and the immutable commit it stood for. */
  readonly revision?: string;
  /** 40 hexadecimal digits. */
  readonly commit?: string;
  /** The commit of the hub's own Parquet copy, where rows come from there. */
  readonly parquetCommit?: string;
  /** The configuration, where the repository has several. */
  readonly config?: string;
}

/** Datasets by the name of their split, in their order. */
export interface DatasetSplits {
  /** By name: `train`, `test`, … */
  readonly splits: ReadonlyMap<string, Dataset>;
  /** Written down beside what is converted. */
  readonly source?: DatasetSource;
}

/**
 * The container of one column of encoded pictures while it is built (images.ts): dense as long as all are
 * of one size, ragged from the first other size on.
 */
export interface ImageColumn {
  /**
   * Decodes and writes the next rows.
   *
   * @param firstRow the first one's number in the split: errors name column and row
   */
  append(images: readonly (Uint8Array | null)[], firstRow: number): Promise<void>;
  /** Publishes the container. */
  close(): Promise<void>;
  /** Leaves nothing; may be called at any time, and twice. */
  abort(): Promise<void>;
}
