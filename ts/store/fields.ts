/**
 * An options object as it comes: checked to be one, and to have no fields but known ones.
 */
import { ArgumentTypeError, show } from '../errors.js';

export type Fields = Readonly<Record<string, unknown>>;

/** The options object, if it is one and has only fields that are known. */
export function knownFields(options: unknown, known: readonly string[]): Fields {
  if (options === undefined) return {};
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    throw new ArgumentTypeError('options', `options must be an object, got ${show(options)}`);
  }
  for (const key of Object.keys(options)) {
    if (!known.includes(key)) {
      throw new ArgumentTypeError(
        key,
        `there is no option ${show(key)} here; known are ${known.join(', ')}`,
      );
    }
  }
  return options as Fields;
}
