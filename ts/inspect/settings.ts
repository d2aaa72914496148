/** Options of this room's functions, checked. */
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import { signalOf } from '../signal.js';
import type { Fields } from '../store/fields.js';
import type { LongWork, Progress } from './progress.js';

export const longFields = ['onProgress', 'signal'] as const;

export function longWorkOf(fields: Fields): LongWork {
  const { onProgress } = fields;
  if (onProgress !== undefined && typeof onProgress !== 'function') {
    throw new ArgumentTypeError(
      'onProgress',
      `onProgress must be a function, got ${show(onProgress)}`,
    );
  }
  const tell = onProgress as ((progress: Progress) => void) | undefined;
  return { onProgress: tell ?? ignore, signal: signalOf(fields.signal) };
}

export function countOf(value: unknown, field: string, byDefault: number, most: number): number {
  if (value === undefined) return byDefault;
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw new ArgumentTypeError(field, `${field} must be an integer, got ${show(value)}`);
  }
  if (value < 0 || value > most) {
    throw new ArgumentRangeError(field, `${field} must be 0 to ${most}, got ${value}`);
  }
  return value;
}

export function flagOf(value: unknown, field: string): boolean {
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  throw new ArgumentTypeError(field, `${field} must be true or false, got ${show(value)}`);
}

function ignore(): void {}
