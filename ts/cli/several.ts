/** What commands do that take several paths: one container after the other, whatever becomes of each. */
import { type ErrorRecord, LoaderxError } from '../errors.js';
import { containersAt } from '../inspect/info.js';
import type { Terminal } from './terminal.js';
import { plain } from './text.js';

/** What became of the containers of a command line. */
export interface Several<T> {
  readonly results: readonly T[];
  readonly failures: readonly LoaderxError[];
}

/**
 * Runs `look` for the containers at the paths. One that cannot be looked at is told on stderr, and the
 * others are looked at all the same.
 *
 * @throws what is no LoaderxError, and an interruption
 */
export async function eachContainer<T>(
  paths: readonly string[],
  terminal: Terminal,
  look: (path: string) => Promise<T>,
): Promise<Several<T>> {
  const results: T[] = [];
  const failures: LoaderxError[] = [];
  for (const path of paths.flatMap(containersAt)) {
    try {
      results.push(await look(path));
    } catch (error) {
      if (!(error instanceof LoaderxError)) throw error;
      failures.push(error);
      if (!terminal.json) terminal.note(`loaderx: ${plain(error.message)}`);
    }
  }
  return { results, failures };
}

/** The failures as a field of an answer in JSON; none where there are none. */
export function errorsOf(failures: readonly LoaderxError[]): {
  readonly errors?: readonly ErrorRecord[];
} {
  return failures.length === 0 ? {} : { errors: failures.map((failure) => failure.toJSON()) };
}
