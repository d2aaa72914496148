/**
 * Parts of a build: what one of many processes makes of the whole, by itself.
 *
 * Which rows belong to a part is a function of their number alone, so nobody has to hand them out; a part
 * appears at its path complete, by one rename, so it can be killed, run again, and run twice.
 */
import fs from 'node:fs';
import path from 'node:path';
import { Staging } from './converter/staging.js';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError, show } from './errors.js';
import { type Location, locateUtf8 } from './store/path.js';

/** Part `part` of `of`, counted from 0. */
export interface Part {
  /** 0 .. `of` - 1. */
  readonly part: number;
  /** How many parts there are, at least 1. */
  readonly of: number;
}

/** Rows from `first` to `end - 1`. */
export interface PartRange {
  /** The first row. */
  readonly first: number;
  /** One past the last row; equal to `first` where the part is empty. */
  readonly end: number;
}

/** More parts make no set. */
export const partsMax = 65_536;

/**
 * The rows of a part of `count` rows: `⌊part × count / of⌋` to `⌊(part + 1) × count / of⌋ - 1`. All parts
 * together have each row once, in order; their sizes differ by one at most.
 *
 * @throws TypeError, RangeError for a count that is no integer from 0 to 2^53 - 1, or a part that is none
 */
export function partRange(count: number, part: Part): PartRange {
  if (typeof count !== 'number' || !Number.isSafeInteger(count)) {
    throw new ArgumentTypeError('count', `count must be an integer, got ${show(count)}`);
  }
  if (count < 0) throw new ArgumentRangeError('count', `count must be 0 or more, got ${count}`);
  const { part: index, of } = partOf(part);
  // The product may pass 2^53.
  const edge = (at: number): number => Number((BigInt(at) * BigInt(count)) / BigInt(of));
  return { first: edge(index), end: edge(index + 1) };
}

/**
 * The name of a part's folder: `part-00003-of-00064`. Names sort as parts do.
 *
 * @throws TypeError, RangeError (INVALID_ARGUMENT) for no such part
 */
export function partName(part: Part): string {
  const { part: index, of } = partOf(part);
  const digits = (value: number): string => String(value).padStart(5, '0');
  return `part-${digits(index)}-of-${digits(of)}`;
}

/** A part that was checked. */
export function partOf(value: unknown): Part {
  if (typeof value !== 'object' || value === null) {
    throw new ArgumentTypeError('part', `part must be { part, of }, got ${show(value)}`);
  }
  const { part, of } = value as Partial<Record<keyof Part, unknown>>;
  if (typeof part !== 'number' || typeof of !== 'number') {
    throw new ArgumentTypeError(
      'part',
      `part must be two integers, { part, of }, got ${show(part)} and ${show(of)}`,
    );
  }
  if (!Number.isInteger(of) || of < 1 || of > partsMax) {
    throw new ArgumentRangeError('part', `there are 1 to ${partsMax} parts, got ${of}`);
  }
  if (!Number.isInteger(part) || part < 0 || part >= of) {
    throw new ArgumentRangeError('part', `parts of ${of} go from 0 to ${of - 1}, got ${part}`);
  }
  return { part, of };
}

/**
 * Builds a part in a folder of its own, and moves it to `path/part-00003-of-00064` when `build` has resolved.
 * What is there already is taken for done, and `build` is not called. When it fails, or the process is
 * killed, nothing is there; what a killed one left is removed by the next.
 *
 * @param build puts containers into the folder it is given; it must not use that name later
 * @returns the path of the part, and whether it was there already
 * @throws what `build` throws; TypeError, RangeError; LoaderxError LOCKED while another process builds the
 *   same part, IO
 */
export async function writePart(
  target: string | URL,
  part: Part,
  build: (folder: string) => Promise<void>,
): Promise<{
  /** The part's folder. */
  readonly path: string;
  /** Whether it was there already, and `build` was not called. */
  readonly wasThere: boolean;
}> {
  const result = await partBuilt(locateUtf8(target), part, async (folder) => {
    const staging = Staging.begin(folder);
    try {
      await build(staging.root);
      await staging.publish();
    } catch (error) {
      await staging.discard();
      throw error;
    }
  });
  return { path: result.path, wasThere: result.wasThere };
}

/** What messages call a part of `target`. */
export function partShown(target: string, part: Part): string {
  return `${target.replace(/[/\\]+$/, '')}/${partName(part)}`;
}

/**
 * Runs `build` for a part's folder, unless that is there already, or another process has made it meanwhile.
 *
 * @param build makes the folder, complete or not at all; `shown` is what messages call it
 */
export async function partBuilt<T>(
  { native, shown }: Location & { readonly native: string },
  part: Part,
  build: (folder: string, shown: string) => Promise<T>,
): Promise<{ readonly path: string; readonly wasThere: boolean; readonly built?: T }> {
  const folder = path.join(native, partName(part));
  const own = partShown(shown, part);
  const there = { path: own, wasThere: true };
  if (fs.existsSync(folder)) return there;
  const isFirst = !fs.existsSync(native);
  try {
    return { path: own, wasThere: false, built: await build(folder, own) };
  } catch (error) {
    const isTaken = error instanceof LoaderxError && error.code === 'EXISTS';
    if (isTaken && fs.existsSync(folder)) return there;
    if (isFirst) removeEmpty(native);
    throw error;
  }
}

/** Removes the folder of parts of which none was made, unless another process begins one at this moment. */
function removeEmpty(folder: string): void {
  try {
    fs.rmdirSync(folder);
  } catch {
    // Somebody has put something into it.
  }
}
