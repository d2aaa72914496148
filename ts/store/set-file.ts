/**
 * The file of a set: which containers, one after the other, are read as one.
 *
 *     {
 *       "format": "loaderx set 1",
 *       "kind": "dense",                      or "ragged"
 *       "dtype": "uint8",
 *       "itemShape": [28, 28],                ragged: "ndim": 1
 *       "length": 70000,                      the sum of those below
 *       "parts": [
 *         { "path": "part-00000-of-00002/image", "length": 35000, "logicalDigest": "…64 digits…" },
 *         …
 *       ]
 *     }
 *
 * A part's path is below the folder of the file, with `/` between its names: the folder can be moved as a
 * whole, and a file from elsewhere leads to nothing outside of it. The file is UTF-8, has at most 16 MiB and
 * 65,536 parts, and no fields but these: what it does not say as it should is MALFORMED, and nothing is
 * opened then.
 */
import fs from 'node:fs';
import { type DType, dtypeOf } from '../dtype.js';
import { type ErrorPlace, LoaderxError, show } from '../errors.js';
import { denseRankMax, raggedRankMax } from '../schema.js';

/** What all parts of a set have in common. */
export type SetForm =
  | { readonly kind: 'dense'; readonly dtype: DType; readonly itemShape: readonly number[] }
  | { readonly kind: 'ragged'; readonly dtype: DType; readonly ndim: number };

/** One container of a set, as the file of the set names it. */
export interface SetPart {
  /** Below the folder of the set's file. */
  readonly path: string;
  /** Records. */
  readonly length: number;
  /** 64 hexadecimal digits: what the container held when the set was made. */
  readonly logicalDigest: string;
}

export interface SetFile {
  readonly form: SetForm;
  readonly length: number;
  readonly parts: readonly SetPart[];
}

const format = 'loaderx set 1';
const fileBytesMax = 16 * 2 ** 20;
export const partsMax = 65_536;

/** The file's text. */
export function encodeSetFile({ form, length, parts }: SetFile): string {
  const shape = form.kind === 'dense' ? { itemShape: form.itemShape } : { ndim: form.ndim };
  const { kind, dtype } = form;
  const lines = parts.map((part) => `    ${JSON.stringify(part)}`).join(',\n');
  const head = JSON.stringify({ format, kind, dtype, ...shape, length }, undefined, 2);
  return `${head.slice(0, -2)},\n  "parts": [\n${lines}\n  ]\n}\n`;
}

/**
 * What a set's file says.
 *
 * @returns undefined where the file is no JSON object, so no set
 * @throws LoaderxError MALFORMED with `field`; IO
 */
export function readSetFile(file: string | Uint8Array, shown: string): SetFile | undefined {
  const bytes = bytesOf(file, shown);
  if (bytes === undefined) return undefined;
  const place: ErrorPlace = { path: shown };
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    throw malformed(place, 'it is not UTF-8');
  }
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw malformed(place, 'it is not JSON', undefined, cause);
  }
  return new Parser(place).setFile(json);
}

/** Whether a file begins as that of a set does; whether it is one, `readSetFile` tells. */
export function looksLikeSet(file: string): boolean {
  try {
    const descriptor = fs.openSync(file, 'r');
    try {
      const head = new Uint8Array(256);
      const there = head.subarray(0, fs.readSync(descriptor, head));
      return /^\s*\{.*"loaderx set /s.test(new TextDecoder().decode(there));
    } finally {
      fs.closeSync(descriptor);
    }
  } catch {
    return false;
  }
}

/** Undefined for what does not begin as a JSON object does. */
function bytesOf(file: string | Uint8Array, shown: string): Uint8Array | undefined {
  try {
    const descriptor = fs.openSync(typeof file === 'string' ? file : Buffer.from(file), 'r');
    try {
      const { size } = fs.fstatSync(descriptor);
      const head = new Uint8Array(64);
      const there = new TextDecoder().decode(head.subarray(0, fs.readSync(descriptor, head)));
      if (!/^\s*\{/.test(there)) return undefined;
      if (size > fileBytesMax) {
        const reason = `it has ${size} bytes, and a set's file at most ${fileBytesMax}`;
        throw malformed({ path: shown }, reason);
      }
      const bytes = new Uint8Array(size);
      let done = 0;
      while (done < size) {
        const count = fs.readSync(descriptor, bytes, done, size - done, done);
        if (count === 0) break;
        done += count;
      }
      return bytes.subarray(0, done);
    } finally {
      fs.closeSync(descriptor);
    }
  } catch (cause) {
    if (cause instanceof LoaderxError) throw cause;
    const osCode = (cause as { readonly code?: unknown }).code;
    const code = typeof osCode === 'string' ? osCode : 'EUNKNOWN';
    const place = { path: shown, osCode: code };
    throw new LoaderxError('IO', `${shown}: reading it failed (${code})`, place, { cause });
  }
}

/** Of fields an object has itself, whatever its prototype has. */
type Own = ReadonlyMap<string, unknown>;

class Parser {
  readonly #place: ErrorPlace;

  constructor(place: ErrorPlace) {
    this.#place = place;
  }

  setFile(json: unknown): SetFile {
    const root = this.#object(json, 'the file', ['format', 'kind', 'dtype', 'length', 'parts'], {
      optional: ['itemShape', 'ndim'],
    });
    if (root.get('format') !== format) {
      this.#fail('format', `format is ${show(root.get('format'))}, and ${show(format)} is known`);
    }
    const form = this.#form(root);
    const length = this.#count(root.get('length'), 'length');
    const list = root.get('parts');
    if (!Array.isArray(list) || list.length === 0)
      this.#fail('parts', 'parts is no list, or empty');
    const entries = list as unknown[];
    if (entries.length > partsMax) {
      this.#fail('parts', `there are ${entries.length} parts, and ${partsMax} is the most`);
    }
    const parts = entries.map((entry, index) => this.#part(entry, `parts[${index}]`));
    const seen = new Map<string, number>();
    let sum = 0;
    for (const [index, { path, length: records }] of parts.entries()) {
      const before = seen.get(path);
      if (before !== undefined) {
        const field = `parts[${index}].path`;
        this.#fail(field, `${field} is ${show(path)}, as parts[${before}].path is`);
      }
      seen.set(path, index);
      sum += records;
      if (!Number.isSafeInteger(sum)) {
        this.#fail('length', 'the parts have more than 2^53 - 1 records');
      }
    }
    if (sum !== length) {
      this.#fail('length', `length is ${length}, and the parts have ${sum} records`);
    }
    return { form, length, parts };
  }

  #form(root: Own): SetForm {
    const kind = root.get('kind');
    let dtype: DType;
    try {
      dtype = dtypeOf(root.get('dtype') as DType).name;
    } catch {
      this.#fail('dtype', `dtype is ${show(root.get('dtype'))}, which is not known`);
    }
    if (kind === 'dense' && !root.has('ndim')) {
      const shape = root.get('itemShape');
      if (!Array.isArray(shape) || shape.length > denseRankMax) {
        this.#fail('itemShape', `itemShape is ${show(shape)}, no list of up to ${denseRankMax}`);
      }
      const sizes = (shape as unknown[]).map((size, axis) => {
        const field = `itemShape[${axis}]`;
        const count = this.#count(size, field);
        if (count === 0) this.#fail(field, `${field} is 0`);
        return count;
      });
      return { kind, dtype, itemShape: sizes };
    }
    if (kind === 'ragged' && !root.has('itemShape')) {
      const ndim = this.#count(root.get('ndim'), 'ndim');
      if (ndim < 1 || ndim > raggedRankMax) {
        this.#fail('ndim', `ndim is ${ndim}, and must be 1 to ${raggedRankMax}`);
      }
      return { kind, dtype, ndim };
    }
    this.#fail(
      'kind',
      `kind is ${show(kind)}, and must be 'dense' with an itemShape or 'ragged' with an ndim`,
    );
  }

  #part(json: unknown, where: string): SetPart {
    const part = this.#object(json, where, ['path', 'length', 'logicalDigest'], {});
    const path = part.get('path');
    if (typeof path !== 'string') {
      this.#fail(`${where}.path`, `${where}.path must be text, got ${show(path)}`);
    }
    const fault = pathFault(path);
    if (fault !== undefined) {
      this.#fail(`${where}.path`, `${where}.path is ${show(path)}, ${fault}`);
    }
    const logicalDigest = part.get('logicalDigest');
    if (typeof logicalDigest !== 'string' || !/^[0-9a-f]{64}$/.test(logicalDigest)) {
      this.#fail(
        `${where}.logicalDigest`,
        `${where}.logicalDigest must be 64 hexadecimal digits, got ${show(logicalDigest)}`,
      );
    }
    return { path, length: this.#count(part.get('length'), `${where}.length`), logicalDigest };
  }

  #object(
    json: unknown,
    where: string,
    wanted: readonly string[],
    { optional = [] }: { readonly optional?: readonly string[] },
  ): Own {
    if (typeof json !== 'object' || json === null || Array.isArray(json)) {
      this.#fail(where, `${where} must be an object, got ${show(json)}`);
    }
    const own = new Map<string, unknown>(Object.entries(json));
    for (const name of own.keys()) {
      if (!wanted.includes(name) && !optional.includes(name)) {
        this.#fail(where, `${where} has a field ${show(name)}, which is not known`);
      }
    }
    for (const name of wanted) {
      if (!own.has(name)) this.#fail(where, `${where} has no field ${name}`);
    }
    return own;
  }

  #count(value: unknown, field: string): number {
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value + 0;
    this.#fail(field, `${field} must be an integer from 0 to 2^53 - 1, got ${show(value)}`);
  }

  #fail(field: string, reason: string): never {
    throw malformed(this.#place, reason, field);
  }
}

/** Why a path cannot be that of a part; undefined when it can. */
export function pathFault(path: string): string | undefined {
  if (path === '') return 'which is empty';
  if (path.length > 4096) return 'which is too long';
  if (/[\0\\]/.test(path)) return 'which has a NUL or a backslash in it';
  if (/\p{Surrogate}/u.test(path)) return 'which has half a surrogate pair in it';
  if (path.startsWith('/') || /^[a-z]:/i.test(path)) {
    return 'which is no path below the folder of the file';
  }
  if (path.split('/').some((name) => name === '' || name === '.' || name === '..')) {
    return "which has an empty name, '.' or '..' in it";
  }
  return undefined;
}

function malformed(
  place: ErrorPlace,
  reason: string,
  field?: string,
  cause?: unknown,
): LoaderxError {
  return new LoaderxError(
    'MALFORMED',
    `${place.path}: as the file of a set: ${reason}`,
    field === undefined ? place : { ...place, field },
    cause === undefined ? {} : { cause },
  );
}
