/** Numbers in the variables of the environment, as launchers and schedulers set them. */
import { ArgumentTypeError, show } from './errors.js';

/** Variables by name. */
export type Variables = Readonly<Record<string, string | undefined>>;

/**
 * The number that a variable holds: digits alone, up to 2^53 - 1. An empty variable is none.
 *
 * @throws TypeError naming the variable
 */
export function integerIn(env: Variables, name: string): number | undefined {
  const text: unknown = Object.hasOwn(env, name) ? env[name] : undefined;
  if (text === undefined || text === '') return undefined;
  const value = Number(text);
  if (typeof text === 'string' && /^\d+$/.test(text) && Number.isSafeInteger(value)) return value;
  throw new ArgumentTypeError(name, `${name} must be an integer, got ${show(text)}`);
}
