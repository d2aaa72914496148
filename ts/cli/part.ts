/** `--part K/N`, and `--part env`: which part of a build a command makes. */
import { isArgumentError } from '../errors.js';
import { partFromEnv } from '../part-env.js';
import type { Part } from '../parts.js';
import { type OptionSpec, type OptionValues, textOf, UsageError } from './command.js';
import type { Terminal } from './terminal.js';

export const partOption: OptionSpec = {
  type: 'string',
  value: 'K/N',
  help: 'part K of N, from 0, or env[/N]: TARGET/part-0000K-of-0000N',
};

/** Part K of N, counted from 0. Whoever makes it judges the numbers. */
export function partIn(values: OptionValues, terminal: Terminal): Part | undefined {
  const text = textOf(values, 'part');
  if (text === undefined) return undefined;
  const match = /^(env|\d{1,6})(?:\/(\d{1,6}))?$/.exec(text);
  const [, index, count] = match ?? [];
  if (index === undefined || (index !== 'env' && count === undefined)) {
    throw new UsageError(`--part wants K/N, such as 3/64, or env, or env/N, got ${text}`);
  }
  if (index !== 'env') return { part: Number(index), of: Number(count) };
  try {
    return partFromEnv({
      env: terminal.env,
      ...(count === undefined ? {} : { of: Number(count) }),
    });
  } catch (error) {
    if (!isArgumentError(error)) throw error;
    throw new UsageError(`--part ${text}: ${error.message}`);
  }
}
