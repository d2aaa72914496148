/**
 * From a command line to an exit code.
 */
import fs from 'node:fs';
import { parseArgs } from 'node:util';
import { ArgumentRangeError, ArgumentTypeError, LoaderxError } from '../errors.js';
import { benchCommand } from './bench.js';
import { catCommand } from './cat.js';
import {
  type Command,
  choiceOf,
  exitCodes,
  isGiven,
  type OptionSpec,
  type OptionValues,
  UsageError,
} from './command.js';
import { concatCommand } from './concat.js';
import { convertCommand } from './convert.js';
import { diffCommand } from './diff.js';
import { digestCommand } from './digest.js';
import { exportCommand } from './export.js';
import { headCommand } from './head.js';
import { importCommand } from './import.js';
import { infoCommand } from './info.js';
import { mergeCommand } from './merge.js';
import { recodeCommand } from './recode.js';
import { type ColourWish, Interrupted, type Surroundings, Terminal } from './terminal.js';
import { plain, plainJson } from './text.js';
import { trainDictCommand } from './train-dict.js';
import { verifyCommand } from './verify.js';
import { commandText } from './words.js';

/** All commands, in the order of the overview. */
export const commands: readonly Command[] = [
  infoCommand,
  headCommand,
  verifyCommand,
  digestCommand,
  diffCommand,
  recodeCommand,
  concatCommand,
  mergeCommand,
  trainDictCommand,
  convertCommand,
  importCommand,
  exportCommand,
  catCommand,
  benchCommand,
];

/** Options of every command. */
const everywhere: Readonly<Record<string, OptionSpec>> = {
  json: { type: 'boolean', help: 'the answer as JSON, on stdout' },
  color: { type: 'string', value: 'WHEN', help: 'auto (unless given), always or never' },
  help: { type: 'boolean', short: 'h', help: 'this text' },
};

const colourWishes: readonly ColourWish[] = ['auto', 'always', 'never'];

/**
 * Runs a command line, without the program's name.
 *
 * @returns the exit code: 0 done, 1 something is wrong with what was looked at, 2 a command line that
 *   cannot be meant, 3 it could not be done, 130 interrupted
 * @throws what is a defect of this package
 */
export async function main(args: readonly string[], around: Surroundings): Promise<number> {
  const [name, ...rest] = args;
  if (name === '--version' || name === '-V') {
    around.stdout.write(`${version()}\n`);
    return exitCodes.done;
  }
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    const about = commands.find((command) => command.name === rest[0]);
    around.stdout.write(`${(about === undefined ? overview() : helpOf(about)).join('\n')}\n`);
    return name === undefined ? exitCodes.usage : exitCodes.done;
  }
  const command = commands.find((candidate) => candidate.name === name);
  if (command === undefined) {
    around.stderr.write(`loaderx: there is no command ${plain(name)}\n`);
    around.stderr.write(`  known are ${commands.map((one) => one.name).join(', ')}\n`);
    return exitCodes.usage;
  }
  return runCommand(command, rest, around);
}

/** The package's own, so that a bug report can name it. */
function version(): string {
  // package.json lies beside dist/, from which this module is one folder down.
  const file = new URL('../../package.json', import.meta.url);
  return (JSON.parse(fs.readFileSync(file, 'utf8')) as { readonly version: string }).version;
}

async function runCommand(
  command: Command,
  args: readonly string[],
  around: Surroundings,
): Promise<number> {
  // Whether the answer to a wrong command line is to be JSON too.
  const wantsJson = args.includes('--json');
  try {
    const { positionals, values } = parsed(command, args);
    if (isGiven(values, 'help')) {
      around.stdout.write(`${helpOf(command).join('\n')}\n`);
      return exitCodes.done;
    }
    const wish = choiceOf(values, 'color', colourWishes) ?? 'auto';
    const terminal = new Terminal(around, isGiven(values, 'json'), wish);
    return await command.run(positionals, values, terminal);
  } catch (error) {
    return failed(command, error, around, wantsJson);
  }
}

function parsed(
  command: Command,
  args: readonly string[],
): { positionals: readonly string[]; values: OptionValues } {
  const options: Record<string, { type: 'boolean' | 'string'; short?: string }> = {};
  for (const [name, spec] of Object.entries({ ...command.options, ...everywhere })) {
    options[name] =
      spec.short === undefined ? { type: spec.type } : { type: spec.type, short: spec.short };
  }
  try {
    const { positionals, values } = parseArgs({
      args: [...args],
      options,
      allowPositionals: true,
      strict: true,
    });
    return { positionals, values: values as OptionValues };
  } catch (cause) {
    const { code, message } = cause as Error & { readonly code?: string };
    if (code?.startsWith('ERR_PARSE_ARGS') !== true) throw cause;
    throw new UsageError(parsingText(message), { cause });
  }
}

/** What Node says of a command line, without advice over several lines. */
function parsingText(message: string): string {
  const [first = ''] = message.split(/\. |\.?\n/);
  const flag = /^Option '(?:-\w, )?(--?[\w-]+).*is ambiguous/.exec(first)?.[1];
  if (flag === undefined) return first;
  const whole = flag.startsWith('--') ? `${flag}=-VALUE` : `${flag}-VALUE`;
  return `${flag} wants a value; one that begins with a dash is given as ${whole}`;
}

function failed(command: Command, error: unknown, around: Surroundings, json: boolean): number {
  if (error instanceof Interrupted) {
    around.stderr.write('loaderx: interrupted\n');
    return exitCodes.interrupted;
  }
  const isUsage =
    error instanceof UsageError ||
    error instanceof ArgumentTypeError ||
    error instanceof ArgumentRangeError;
  if (!isUsage && !(error instanceof LoaderxError)) throw error;
  const { message } = error;
  if (json) {
    const record =
      error instanceof UsageError
        ? { code: 'INVALID_ARGUMENT', message }
        : { ...error.toJSON(), message: commandText(message) };
    around.stdout.write(`${plainJson(JSON.stringify({ error: record }, undefined, 2))}\n`);
  } else {
    around.stderr.write(`loaderx ${command.name}: ${plain(commandText(message))}\n`);
    if (isUsage) around.stderr.write(`  npx loaderx ${command.name} --help\n`);
  }
  return isUsage ? exitCodes.usage : exitCodes.failed;
}

// ---- help ----

const exitLines = [
  'Exit codes: 0 done; 1 something is wrong with what was looked at; 2 a command line that',
  'cannot be meant; 3 it could not be done; 130 interrupted.',
];

function overview(): string[] {
  return [
    'npx loaderx COMMAND …: look at containers, trust them, change their form',
    '',
    ...columns(commands.map(({ name, summary }) => [name, summary])),
    '',
    ...exitLines,
    'Each command takes --json and --help; the help has examples. --version prints the version.',
  ];
}

function helpOf(command: Command): string[] {
  const specs = Object.entries({ ...command.options, ...everywhere });
  return [
    `npx loaderx ${command.name} ${command.usage}`,
    '',
    ...command.about,
    '',
    'Options:',
    ...columns(specs.map(([name, spec]) => [optionText(name, spec), spec.help])),
    '',
    'Examples:',
    ...command.examples.flatMap(([line, what]) => [`  npx loaderx ${line}`, `      ${what}`]),
    '',
    'Exit codes:',
    ...columns([
      ...command.exits.map(([code, meaning]) => [String(code), meaning] as const),
      ['2', 'a command line that cannot be meant'],
      ['3', 'it could not be done'],
      ['130', 'interrupted'],
    ]),
  ];
}

function optionText(name: string, { short, value }: OptionSpec): string {
  const long = value === undefined ? `--${name}` : `--${name} ${value}`;
  return short === undefined ? long : `-${short}, ${long}`;
}

function columns(rows: readonly (readonly [string, string])[]): string[] {
  const width = Math.max(...rows.map(([left]) => left.length));
  return rows.map(([left, right]) => `  ${left.padEnd(width)}  ${right}`);
}
