/** What the functions that look at whole containers tell while they work. */

/** How far it has come. Totals hold from the first call on. */
export interface Progress {
  /** Records that are finished. */
  readonly recordsDone: number;
  /** Records that there are in all. */
  readonly recordsTotal: number;
  /** Bytes that were looked at: stored ones for `verify`, items for the others. */
  readonly bytesDone: number;
}

/** Options of every function that looks at a whole container. */
export interface LongOptions {
  /** Called now and then, on the event loop. What it throws ends the work. */
  readonly onProgress?: ((progress: Progress) => void) | undefined;
  /** Ends the work: it rejects with ABORTED. */
  readonly signal?: AbortSignal | undefined;
}

/** The two, checked. */
export interface LongWork {
  readonly onProgress: (progress: Progress) => void;
  readonly signal: AbortSignal | undefined;
}
