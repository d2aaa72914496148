/**
 * Rows of a column that nobody has read: where they lie in a file, from which the core copies them.
 *
 * No dataset of a user's meets this. The conversion says in the request of `batches` for which columns it takes
 * such rows ({@link fileColumnsOf}), and only datasets of this package look there.
 */
import type { BatchOptions, ColumnValues } from './dataset.js';

/** Records of one size, back to back in a plain file, as a raw container stores them. */
export interface FilePlace {
  /** Absolute. */
  readonly path: string;
  /** What messages call it. */
  readonly name: string;
  /** @throws LoaderxError where another file has taken its place since it was opened first */
  assertSame(): Promise<void>;
}

/** The rows of one column in one batch, as they lie in a file. */
export class FileColumn {
  readonly place: FilePlace;
  /** Where the first row begins. */
  readonly offsetBytes: number;
  readonly recordBytes: number;

  constructor(place: FilePlace, offsetBytes: number, recordBytes: number) {
    this.place = place;
    this.offsetBytes = offsetBytes;
    this.recordBytes = recordBytes;
  }

  /** As rows of a batch travel; {@link isFileColumn} tells it from the others. */
  asValues(): ColumnValues {
    return this as unknown as ColumnValues;
  }
}

export function isFileColumn(values: unknown): values is FileColumn {
  return values instanceof FileColumn;
}

const fileColumns: unique symbol = Symbol('fileColumns');

interface FileRequest extends BatchOptions {
  readonly [fileColumns]?: ReadonlySet<string>;
}

/** The request, which also says whose rows may stay in their file. */
export function withFileColumns(request: BatchOptions, columns: ReadonlySet<string>): BatchOptions {
  const asked: FileRequest = { ...request, [fileColumns]: columns };
  return asked;
}

/** The columns whose rows may stay in their file. */
export function fileColumnsOf(request: BatchOptions | undefined): ReadonlySet<string> {
  return (request as FileRequest | undefined)?.[fileColumns] ?? none;
}

/** The request without that: of who looks at the rows. */
export function withoutFileColumns(request: BatchOptions | undefined): BatchOptions {
  return withFileColumns(request ?? {}, none);
}

const none: ReadonlySet<string> = new Set();
