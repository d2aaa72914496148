/**
 * What is to be converted, as plain data: it lies in Redis, and every worker checks it again.
 */
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';
import { partsMax } from '../parts.js';
import type { Codec } from '../store/capability.js';
import { type Fields, knownFields } from '../store/fields.js';

/** A conversion in parts. Workers see source and target at these paths. */
export interface ConversionSpec {
  /** `hf://OWNER/NAME`, a folder of Parquet files, or one such file. */
  readonly source: string;
  /** The folder for the parts and their sets. */
  readonly target: string;
  /** How many parts, 1 .. 65,536. */
  readonly parts: number;
  /** How records are stored. */
  readonly codec: Codec;
  /** The file of a dictionary, for `codec: 'zstd_dict'`. */
  readonly dict?: string | undefined;
  /** Data files of each container of a part, 1 .. 255; 4 unless given. */
  readonly dataShards?: number | undefined;
  /** Also give each container an integrity file, which spares the sets a reading of all records. */
  readonly integrity?: boolean | undefined;
  /** Only these splits. */
  readonly splits?: readonly string[] | undefined;
  /** Only these columns. */
  readonly columns?: readonly string[] | undefined;
  /** `'utf8'`: strings become ragged bytes. They are refused unless given. */
  readonly strings?: 'refuse' | 'utf8' | undefined;
  /** `'any'`: names of splits and columns that only this system may take, such as `con`, or two that differ by case. */
  readonly names?: 'portable' | 'any' | undefined;
  /** `'ragged'`: pictures are, even if all of a part are of one size. */
  readonly pictures?: 'ragged' | undefined;
  /** Branch, tag or commit of the hub; `main` unless given. A branch may move between two parts: give a commit. */
  readonly revision?: string | undefined;
  /** Which of the dataset's configurations; of the hub. */
  readonly config?: string | undefined;
}

/** What lies in Redis for the last job of a conversion: everything about it. */
export interface SetsData {
  readonly spec: ConversionSpec;
  /** Why it was cancelled, if it was. */
  readonly cancelled?: string;
}

/** What lies there for a part: the rest is with the last job. */
export interface PartData {
  readonly run: string;
  readonly part: number;
}

/** A column of what a part made. */
export interface MadeColumn {
  /** The folder of the split in each part; undefined where the source has no splits. */
  readonly split?: string | undefined;
  /** The folder of its container in there. */
  readonly column: string;
}

/** Where a source is a dataset of the hub. */
export const hubScheme = 'hf://';

type Check = (value: unknown, name: string) => void;

const text: Check = (value, name) => {
  if (typeof value === 'string' && value !== '' && !value.includes('\0')) return;
  throw new ArgumentTypeError(name, `${name} must be a text, got ${show(value)}`);
};

const oneOf =
  (...words: readonly string[]): Check =>
  (value, name) => {
    if (words.some((word) => word === value)) return;
    const list = words.map((word) => `'${word}'`).join(' or ');
    throw new ArgumentTypeError(name, `${name} must be ${list}, got ${show(value)}`);
  };

const integer =
  (least: number, most: number): Check =>
  (value, name) => {
    if (typeof value !== 'number' || !Number.isInteger(value)) {
      throw new ArgumentTypeError(name, `${name} must be an integer, got ${show(value)}`);
    }
    if (value >= least && value <= most) return;
    throw new ArgumentRangeError(name, `${name} must be ${least} to ${most}, got ${value}`);
  };

const texts: Check = (value, name) => {
  if (!Array.isArray(value)) {
    throw new ArgumentTypeError(name, `${name} must be a list of texts, got ${show(value)}`);
  }
  for (const [index, each] of value.entries()) text(each, `${name}[${index}]`);
};

const flag: Check = (value, name) => {
  if (typeof value === 'boolean') return;
  throw new ArgumentTypeError(name, `${name} must be true or false, got ${show(value)}`);
};

const checks: Readonly<Record<keyof ConversionSpec, Check>> = {
  source: text,
  target: text,
  parts: integer(1, partsMax),
  codec: oneOf('raw', 'zstd', 'zstd_dict'),
  dict: text,
  dataShards: integer(1, 255),
  integrity: flag,
  splits: texts,
  columns: texts,
  strings: oneOf('refuse', 'utf8'),
  names: oneOf('portable', 'any'),
  pictures: oneOf('ragged'),
  revision: text,
  config: text,
};

const required = ['source', 'target', 'parts', 'codec'];

/**
 * The spec, checked: of known fields alone, and without those that are undefined.
 *
 * @throws TypeError, RangeError with the `field`
 */
export function specOf(value: unknown): ConversionSpec {
  const fields = value === undefined ? undefined : knownFields(value, Object.keys(checks));
  if (fields === undefined) {
    throw new ArgumentTypeError('spec', 'spec must be an object, got undefined');
  }
  const checked: Record<string, unknown> = {};
  for (const [name, check] of Object.entries(checks)) {
    const given = fields[name];
    if (given === undefined && !required.includes(name)) continue;
    check(given, name);
    checked[name] = given;
  }
  assertTogether(checked);
  return checked as unknown as ConversionSpec;
}

function assertTogether({ source, codec, dict, revision, config }: Fields): void {
  if ((codec === 'zstd_dict') !== (dict !== undefined)) {
    throw new ArgumentTypeError(
      'dict',
      codec === 'zstd_dict'
        ? "codec 'zstd_dict' wants dict, the file of a dictionary that all parts share"
        : `codec ${show(codec)} takes no dict`,
    );
  }
  const isOfHub = typeof source === 'string' && source.startsWith(hubScheme);
  if (!isOfHub && (revision !== undefined || config !== undefined)) {
    const field = revision === undefined ? 'config' : 'revision';
    throw new ArgumentTypeError(field, `${field} is of the hub, and ${show(source)} is a path`);
  }
}

/** Ids of conversions. */
export const idForm = /^[A-Za-z][\w.-]{0,99}$/;

/**
 * The data of a part's job, checked.
 *
 * @throws TypeError, RangeError with the `field`
 */
export function partDataOf(value: unknown): PartData {
  const { run, part } = knownFields(value, ['run', 'part']);
  if (typeof run !== 'string' || !idForm.test(run)) {
    throw new ArgumentTypeError('run', `run must be the id of a conversion, got ${show(run)}`);
  }
  integer(0, partsMax - 1)(part, 'part');
  return { run, part: part as number };
}

/**
 * The columns that a part says it made, checked: they become paths below the target.
 *
 * @throws TypeError with the `field`
 */
export function madeColumnsOf(value: unknown): readonly MadeColumn[] {
  if (!Array.isArray(value)) {
    throw new ArgumentTypeError('columns', `columns must be a list, got ${show(value)}`);
  }
  return value.map((each: unknown) => {
    const { split, column } = knownFields(each, ['split', 'column']);
    folderName(column, 'column');
    if (split === undefined || split === null) return { column: column as string };
    folderName(split, 'split');
    return { split: split as string, column: column as string };
  });
}

const folderName: Check = (value, name) => {
  text(value, name);
  if (!/^\.{1,2}$|[/\\]/.test(value as string)) return;
  throw new ArgumentTypeError(name, `${name} must be the name of a folder, got ${show(value)}`);
};
