/**
 * One error family.
 *
 * What goes wrong in a container, the operating system or zstd is a {@link LoaderxError}. What is
 * wrong with an argument is a `TypeError` or `RangeError` of JavaScript that carries a `code` too,
 * so `error.code` is enough to tell all of them apart. All of them survive `JSON.stringify`.
 */

/** Every value of `error.code`, with what it means. */
const meanings = {
  /** No container at the path. */
  NOT_FOUND: 'no container at the path',
  /** A build is at the path that was never published. */
  NOT_PUBLISHED: 'a build that was never published',
  /** The path is taken. */
  EXISTS: 'the path is taken',
  /** A live writer holds the path. */
  LOCKED: 'a live writer holds the path',
  /** The bytes on disk are not of the format. */
  MALFORMED: 'the bytes on disk are not of the format',
  /** The container holds something else than the caller expects. */
  SCHEMA: 'the container holds something else than expected',
  /** zstd refused a record. */
  CODEC: 'zstd refused a record',
  /** A dictionary is missing, unusable, or cannot be trained. */
  DICTIONARY: 'a dictionary is missing, unusable or not trainable',
  /** The operating system refused; `osCode` says how. */
  IO: 'the operating system refused',
  /** A record over 2 GiB, or a batch over `maxBatchBytes`. */
  TOO_LARGE: 'too large',
  /** Memory could not be had. */
  OUT_OF_MEMORY: 'memory could not be had',
  /** A record id or a position is outside of what there is. */
  OUT_OF_RANGE: 'outside of what there is',
  /** An argument of the wrong type or value. */
  INVALID_ARGUMENT: 'an argument of the wrong type or value',
  /** The reader, writer, sampler or batch is closed. */
  CLOSED: 'it is closed',
  /** Work is in flight that this call cannot overlap. */
  BUSY: 'work is in flight',
  /** An earlier append of this build failed; `cause` says how. */
  BUILD_FAILED: 'an earlier append of this build failed',
  /** A transform's worker ended, its module has no transform, or its result cannot change threads. */
  TRANSFORM: 'a transform cannot run, or its result cannot be handed over',
  /** Bytes are not those that the container's integrity file vouches for, or it has no such file. */
  INTEGRITY: 'not what the integrity file vouches for',
  /** The dataset's owner lets in only who has agreed to conditions. */
  GATED: 'only for those who agreed to conditions',
  /** The hub does not show it without a token, or not for this one. */
  UNAUTHORIZED: 'not without a token, or not with this one',
  /** It is not in the cache, and no request may be made. */
  OFFLINE: 'not in the cache, and no request may be made',
  /** The hub has had too many requests. */
  RATE_LIMITED: 'too many requests',
  /** The hub cannot be reached, broke off, or answered what cannot be. */
  NETWORK: 'the hub cannot be reached, or its answer cannot be used',
  /** The caller's signal was aborted; `cause` is its reason. */
  ABORTED: 'the signal was aborted',
  /** What is to be converted cannot be: a null, an empty list, values that do not fit what is declared. */
  SOURCE: 'what is to be converted cannot be',
  /** This platform, file system or stored dtype is not covered. */
  UNSUPPORTED: 'not covered here',
  /** A defect of this package: please report it. */
  UNEXPECTED: 'a defect of this package',
} as const;

/** What kind of failure an error is. Stable: match on this, not on the message. */
export type ErrorCode = keyof typeof meanings;

/** All codes, for tables and exhaustive tests. */
export const errorCodes: readonly ErrorCode[] = Object.freeze(Object.keys(meanings) as ErrorCode[]);

/** Where a failure is: each field is present only when it is known. */
export interface ErrorPlace {
  /** The container, as the caller named it; or the file that its records were to be taken from. */
  readonly path?: string;
  /** The file inside the container: `meta.zr`, `data_3.zr`, `dict.zr`, `integrity.zr`. */
  readonly file?: string;
  /** The data file's number. */
  readonly shard?: number;
  /** The record id; a bigint only above 2^53 - 1. */
  readonly record?: number | bigint;
  /** The argument, option or schema field that is at fault. */
  readonly field?: string;
  /** The operating system's name for it, such as `ENOSPC`. */
  readonly osCode?: string;
}

/** A failure as plain data. A record id above 2^53 - 1 is a string here. */
export interface ErrorRecord {
  /** `LoaderxError`, `TypeError` or `RangeError`. */
  readonly name: string;
  /** What went wrong; stable over versions. */
  readonly code: ErrorCode;
  /** What went wrong, where, and what to do; not stable. */
  readonly message: string;
  /** The container. */
  readonly path?: string;
  /** The file of the container. */
  readonly file?: string;
  /** The number of its data file. */
  readonly shard?: number;
  /** The record; a string of digits above 2^53 - 1. */
  readonly record?: number | string;
  /** The argument, column or field of the format. */
  readonly field?: string;
  /** The system's reason: `ENOSPC`, `EACCES`, … */
  readonly osCode?: string;
}

/** A failure of a container, the operating system, zstd, or of the state a handle is in. */
export class LoaderxError extends Error {
  /** Always `LoaderxError`. */
  override readonly name: string = 'LoaderxError';
  /** What kind of failure it is. */
  readonly code: ErrorCode;
  /** The container, as the caller named it. */
  declare readonly path?: string;
  /** The file inside the container: `meta.zr`, `data_3.zr`, `dict.zr`. */
  declare readonly file?: string;
  /** The data file's number. */
  declare readonly shard?: number;
  /** The record id; a bigint only above 2^53 - 1. */
  declare readonly record?: number | bigint;
  /** The argument, option or schema field that is at fault. */
  declare readonly field?: string;
  /** The operating system's name for it, such as `ENOSPC`. */
  declare readonly osCode?: string;

  /** `message` is one sentence: what was wrong, where, and what to do. */
  constructor(code: ErrorCode, message: string, place: ErrorPlace = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    setPlace(this, place);
  }

  /** The error as data that `JSON.stringify` takes; `cause` and `stack` are left out. */
  toJSON(): ErrorRecord {
    return toRecord(this);
  }
}

/** The codes of argument errors. */
export type ArgumentCode = 'INVALID_ARGUMENT' | 'OUT_OF_RANGE' | 'TOO_LARGE';

/** A `TypeError` with a `code`: an argument is of the wrong kind. */
export class ArgumentTypeError extends TypeError {
  readonly code: ArgumentCode = 'INVALID_ARGUMENT';
  /** The argument or option that is at fault. */
  declare readonly field?: string;

  constructor(field: string, message: string, options?: ErrorOptions) {
    super(message, options);
    setPlace(this, { field });
  }

  /** The error as data that `JSON.stringify` takes. */
  toJSON(): ErrorRecord {
    return toRecord(this);
  }
}

/** A `RangeError` with a `code`: an argument is of the right kind and of a value that cannot be. */
export class ArgumentRangeError extends RangeError {
  readonly code: ArgumentCode;
  /** The argument or option that is at fault. */
  declare readonly field?: string;
  /** The id that was asked for, where one is at fault. */
  declare readonly record?: number | bigint;

  constructor(
    field: string,
    message: string,
    code: ArgumentCode = 'INVALID_ARGUMENT',
    record?: number | bigint,
  ) {
    super(message);
    this.code = code;
    setPlace(this, record === undefined ? { field } : { field, record });
  }

  /** The error as data that `JSON.stringify` takes. */
  toJSON(): ErrorRecord {
    return toRecord(this);
  }
}

/** Whether `error` is about an argument, so that nothing was begun or changed. */
export function isArgumentError(error: unknown): error is ArgumentTypeError | ArgumentRangeError {
  return error instanceof ArgumentTypeError || error instanceof ArgumentRangeError;
}

/** What the native side throws; `status` is a `ZR_*` of zrecord.h. */
export interface NativeStatus extends Error {
  readonly status: number;
  readonly fileKind: number;
  readonly shard?: number;
  readonly part?: number;
  readonly record?: number | bigint;
  readonly osCode?: string;
}

const codeOfStatus: ReadonlyMap<number, ErrorCode> = new Map([
  [-1, 'OUT_OF_MEMORY'],
  [-2, 'EXISTS'],
  [-3, 'NOT_FOUND'],
  [-4, 'LOCKED'],
  [-5, 'MALFORMED'],
  [-6, 'IO'],
  [-7, 'CODEC'],
  [-8, 'OUT_OF_RANGE'],
  [-9, 'TOO_LARGE'],
  [-10, 'BUILD_FAILED'],
  [-11, 'UNEXPECTED'],
  [-12, 'NOT_PUBLISHED'],
  [-13, 'DICTIONARY'],
  [-14, 'ABORTED'],
  [-15, 'UNSUPPORTED'],
  [-16, 'INTEGRITY'],
]);

function isNativeStatus(error: unknown): error is NativeStatus {
  // By its fields: an error may be of another realm.
  if (typeof error !== 'object' || error === null) return false;
  const { status, fileKind, message } = error as Partial<NativeStatus>;
  return typeof status === 'number' && typeof fileKind === 'number' && typeof message === 'string';
}

function fileOf(failure: NativeStatus): string | undefined {
  switch (failure.fileKind) {
    case 2:
      return 'meta.zr';
    case 3:
      return failure.shard === undefined ? undefined : `data_${failure.shard}.zr`;
    case 4:
      return 'dict.zr';
    case 5:
      return 'integrity.zr';
    default:
      return undefined;
  }
}

/**
 * Turns what a native call threw into a {@link LoaderxError} that names the container.
 * Anything else (a `TypeError` of the shim, say) is returned as it came.
 *
 * @param parts the containers that are joined in one: what lies in one of them names it as its `path`,
 *   and `record` counts in it
 * @param source the file that records are taken from: what is wrong with it names it instead of the container
 */
export function fromNative(
  error: unknown,
  path?: string,
  parts?: readonly string[],
  source?: string,
): unknown {
  if (!isNativeStatus(error)) return error;
  if (error.fileKind === sourceKind && source !== undefined) return asNative(error, source);
  return asNative(error, path, parts);
}

/** `ZR_FILE_SOURCE`. */
const sourceKind = 6;

function asNative(
  error: NativeStatus,
  path: string | undefined,
  parts?: readonly string[],
): LoaderxError {
  const code = codeOfStatus.get(error.status) ?? 'UNEXPECTED';
  const file = fileOf(error);
  const isPlaced = file !== undefined || error.record !== undefined;
  const part = isPlaced && error.part !== undefined ? parts?.[error.part] : undefined;
  const where = [
    file,
    error.record === undefined ? undefined : `record ${error.record}`,
    // Some messages end with it already.
    error.osCode !== undefined && error.message.endsWith(error.osCode) ? undefined : error.osCode,
  ].filter((text) => text !== undefined);
  const subject = [path, part].map((name) => (name === undefined ? '' : `${name}: `)).join('');
  const detail = where.length === 0 ? '' : ` (${where.join(', ')})`;
  const said = error.message === '' ? meanings[code] : error.message;
  const message = `${subject}${said}${detail}`;
  const place: { -readonly [Key in keyof ErrorPlace]: ErrorPlace[Key] } = {};
  if (path !== undefined) place.path = part ?? path;
  if (file !== undefined) place.file = file;
  if (error.shard !== undefined) place.shard = error.shard;
  if (error.record !== undefined) place.record = error.record;
  if (error.osCode !== undefined) place.osCode = error.osCode;
  return new LoaderxError(code, message, place);
}

const placeKeys = ['path', 'file', 'shard', 'record', 'field', 'osCode'] as const;

function setPlace(target: Error, place: ErrorPlace): void {
  for (const key of placeKeys) {
    const value = place[key];
    if (value === undefined) continue;
    Object.defineProperty(target, key, { value, enumerable: true, configurable: true });
  }
}

function toRecord(error: Error & ErrorPlace & { readonly code: ErrorCode }): ErrorRecord {
  const record: Record<string, string | number> = {
    name: error.name,
    code: error.code,
    message: error.message,
  };
  for (const key of placeKeys) {
    const value = error[key];
    if (value === undefined) continue;
    record[key] = typeof value === 'bigint' ? value.toString() : value;
  }
  return record as unknown as ErrorRecord;
}

const shownCharsMax = 60;

/** A short text for "what came" in a message. Runs no code of the value beyond its class name. */
export function show(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return value.length <= shownCharsMax
        ? quoted(value)
        : `${quoted(value.slice(0, shownCharsMax))}… (${value.length} characters)`;
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value);
    case 'bigint':
      return `${value}n`;
    case 'function':
      return 'a function';
    case 'symbol':
      return 'a symbol';
    case 'object':
      return value === null ? 'null' : showObject(value);
    default:
      return String(value);
  }
}

/** As JSON does it, and without what JSON leaves and terminals obey: more controls, and turns of direction. */
export function quoted(text: string): string {
  return JSON.stringify(text).replace(
    /[\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g,
    (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

function showObject(value: object): string {
  try {
    if (Array.isArray(value)) return showList(value);
    const maker: unknown = value.constructor;
    const name = typeof maker === 'function' ? maker.name : '';
    if (ArrayBuffer.isView(value)) return `${name || 'a view'} of ${value.byteLength} bytes`;
    return name === '' || name === 'Object' ? 'an object' : `an object of class ${name}`;
  } catch {
    return 'an object';
  }
}

function showList(list: readonly unknown[]): string {
  const shownCount = 8;
  const parts = list
    .slice(0, shownCount)
    .map((item) => (typeof item === 'object' && item !== null ? '{…}' : show(item)));
  if (list.length > shownCount) parts.push(`… ${list.length} in all`);
  return `[${parts.join(', ')}]`;
}
