// What a call came to, as one short text: `ok`, or the error's class and code.

/** The error that `act` throws or rejects with. Fails when it does neither. */
export async function failureOf(act: () => unknown): Promise<Error & Failure> {
  try {
    await act();
  } catch (error) {
    if (error instanceof Error) return error as Error & Failure;
    throw new Error(`it threw ${String(error)}, which is no error object`, { cause: error });
  }
  throw new Error('it was expected to fail, and it did not');
}

/** The fields that errors of this package may have. */
export interface Failure {
  readonly code?: string;
  readonly path?: string;
  readonly file?: string;
  readonly shard?: number;
  readonly record?: number | bigint;
  readonly field?: string;
  readonly osCode?: string;
}

/** `ok`, `TypeError INVALID_ARGUMENT`, `LoaderxError CLOSED`, … */
export async function outcomeOf(act: () => unknown): Promise<string> {
  try {
    await act();
    return 'ok';
  } catch (error) {
    return outcomeOfError(error);
  }
}

export function outcomeOfError(error: unknown): string {
  if (!(error instanceof Error)) return `threw ${String(error)}`;
  const base = error instanceof TypeError ? 'TypeError' : undefined;
  const name = base ?? (error instanceof RangeError ? 'RangeError' : error.name);
  const { code } = error as Error & Failure;
  return code === undefined ? name : `${name} ${code}`;
}

/** `ok` or only the code; `threw NAME` where an error has none. */
export async function codeOf(act: () => unknown): Promise<string> {
  const outcome = await outcomeOf(act);
  const [name, code] = outcome.split(' ');
  if (outcome === 'ok') return 'ok';
  return code ?? `threw ${name}`;
}
