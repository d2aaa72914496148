/**
 * What a command is: its name, its help, its options, and what it does. The commands are data, so that
 * parsing, `--help` and the overview need no code of their own.
 */
import { LoaderxError } from '../errors.js';
import type { Terminal } from './terminal.js';

/** One option of a command. */
export interface OptionSpec {
  readonly type: 'boolean' | 'string';
  readonly short?: string;
  /** What stands for the value in the help; of a string. */
  readonly value?: string;
  readonly help: string;
}

/** What was said on the command line, by name of option. */
export type OptionValues = Readonly<Record<string, string | boolean | undefined>>;

export interface Command {
  readonly name: string;
  /** One line for the overview. */
  readonly summary: string;
  /** What stands behind the name. */
  readonly usage: string;
  /** What it does, in lines. */
  readonly about: readonly string[];
  readonly options: Readonly<Record<string, OptionSpec>>;
  /** Command lines without `npx loaderx`, each with what it is for. */
  readonly examples: readonly (readonly [line: string, what: string])[];
  /** What exit codes 0 and 1 mean. */
  readonly exits: readonly (readonly [code: 0 | 1, meaning: string])[];
  /** Does it; the exit code. */
  readonly run: (
    positionals: readonly string[],
    values: OptionValues,
    terminal: Terminal,
  ) => Promise<number>;
}

/** Exit codes, the same for every command. */
export const exitCodes = {
  done: 0,
  /** The command ran, and what it looked for is wrong: a fault, a difference. */
  wrong: 1,
  usage: 2,
  failed: 3,
  /** 128 and the number of SIGINT, as shells have it. */
  interrupted: 130,
} as const;

/** A command line that cannot be meant. */
export class UsageError extends Error {}

/** The text of an option, if it was given. */
export function textOf(values: OptionValues, name: string): string | undefined {
  const value = values[name];
  return typeof value === 'string' ? value : undefined;
}

/** Names with commas between them. */
export function listOf(values: OptionValues, name: string): readonly string[] | undefined {
  return textOf(values, name)?.split(',');
}

export function isGiven(values: OptionValues, name: string): boolean {
  return values[name] === true;
}

/** A whole number of an option, if it was given. */
export function numberOf(values: OptionValues, name: string): number | undefined {
  const text = textOf(values, name);
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw new UsageError(`--${name} wants a whole number, got ${text}`);
  return Number(text);
}

/** Part K of N, counted from 0. Who makes it judges the numbers. */
export function partOf(
  values: OptionValues,
): { readonly part: number; readonly of: number } | undefined {
  const text = textOf(values, 'part');
  if (text === undefined) return undefined;
  const match = /^(\d{1,6})\/(\d{1,6})$/.exec(text);
  if (match === null) throw new UsageError(`--part wants K/N, such as 3/64, got ${text}`);
  return { part: Number(match[1]), of: Number(match[2]) };
}

/** One of some words of an option, if it was given. */
export function choiceOf<T extends string>(
  values: OptionValues,
  name: string,
  choices: readonly T[],
): T | undefined {
  const text = textOf(values, name);
  if (text === undefined) return undefined;
  const found = choices.find((choice) => choice === text);
  if (found !== undefined) return found;
  throw new UsageError(`--${name} wants ${choices.join(' or ')}, got ${text}`);
}

/** Wants a fixed number of arguments. */
export function assertCount(
  positionals: readonly string[],
  least: number,
  most: number,
  what: string,
): void {
  if (positionals.length < least) throw new UsageError(`${what} is missing`);
  if (positionals.length > most) {
    throw new UsageError(`${positionals[most]} is too much: ${what} is all that is wanted`);
  }
}

/** A failure of the file system, as an error of this package. */
export function fileError(file: string, doing: string, cause: unknown): LoaderxError {
  const osCode = (cause as { readonly code?: unknown } | null)?.code;
  const code = typeof osCode === 'string' ? osCode : 'EUNKNOWN';
  return new LoaderxError(
    code === 'EEXIST' ? 'EXISTS' : 'IO',
    code === 'EEXIST'
      ? `${file}: it is there already; --force writes over it`
      : `${file}: ${doing} failed (${code})`,
    { path: file, osCode: code },
    { cause },
  );
}
