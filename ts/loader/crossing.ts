/**
 * Values and errors on their way between threads.
 *
 * `postMessage` clones plain data and moves memory, and knows nothing of batches. So a value is
 * packed first: batches in it are replaced by their parts, with a note of where, and all memory it
 * holds is listed, to be moved. Errors keep what an error has: name, message, stack, cause, fields.
 */
import { types } from 'node:util';
import { type ErrorCode, errorCodes, LoaderxError, show } from '../errors.js';
import { type BatchParts, batchFrom, partsOf } from '../store/hand-over.js';
import { Batch } from './batch.js';

/** Where a batch was, as the keys that lead there. */
interface Mark {
  readonly path: readonly (string | number)[];
  readonly kind: 'stream' | 'batch';
}

/** A value that can be posted. */
export interface Packed {
  readonly value: unknown;
  /** The deepest first. */
  readonly marks: readonly Mark[];
}

/** A packed value, and the memory in it. */
export interface Parcel {
  readonly packed: Packed;
  /** All ordinary memory that is reachable from the value. */
  readonly memory: ReadonlySet<ArrayBuffer>;
  /** Memory of which a Node `Buffer` has a part only: others may have the rest. */
  readonly pooled: ReadonlySet<ArrayBuffer>;
}

/** Packs `value`, which is left as it is. */
export function pack(value: unknown): Parcel {
  const packer = new Packer();
  const packed = { value: packer.visit(value, []), marks: packer.marks };
  return { packed, memory: packer.memory, pooled: packer.pooled };
}

/** The value of a packed one that has arrived, which is used up. */
export function unpack({ value, marks }: Packed): unknown {
  const root: Record<string | number, unknown> = { value };
  for (const { path, kind } of marks) {
    let holder = root;
    let key: string | number = 'value';
    for (const step of path) {
      holder = holder[key] as Record<string | number, unknown>;
      key = step;
    }
    const found = holder[key] as BatchParts;
    set(holder, key, kind === 'stream' ? batchFrom(found) : new Batch(Object.entries(found)));
  }
  return root.value;
}

type Path = readonly (string | number)[];

class Packer {
  readonly marks: Mark[] = [];
  readonly memory = new Set<ArrayBuffer>();
  readonly pooled = new Set<ArrayBuffer>();
  /** What stands for each object that was visited: two ways to one object stay that. */
  readonly #seen = new Map<object, unknown>();

  /** What stands for `value`: itself, unless a batch is in it. */
  visit(value: unknown, path: Path): unknown {
    if (typeof value !== 'object' || value === null) return value;
    const parts = partsOf(value);
    if (parts !== undefined) {
      this.#addMemory(parts.data);
      if (parts.kind === 'ragged') {
        this.#addMemory(parts.offsets);
        this.#addMemory(parts.dims);
      }
      this.marks.push({ path, kind: 'stream' });
      return parts;
    }
    const known = this.#seen.get(value);
    if (known !== undefined) return known;
    this.#seen.set(value, value);
    const standIn = this.#visitNew(value, path);
    this.#seen.set(value, standIn);
    return standIn;
  }

  #visitNew(value: object, path: Path): unknown {
    if (ArrayBuffer.isView(value)) return this.#addMemory(value);
    if (types.isArrayBuffer(value)) {
      this.memory.add(value);
      return value;
    }
    if (value instanceof Batch) {
      const copy = this.#copyOf({ ...value }, path, true);
      this.marks.push({ path, kind: 'batch' });
      return copy;
    }
    if (Array.isArray(value)) return this.#listOf(value, path);
    if (types.isMap(value)) {
      for (const pair of value) this.#look(pair);
      return value;
    }
    if (types.isSet(value)) {
      for (const item of value) this.#look(item);
      return value;
    }
    const prototype: unknown = Object.getPrototypeOf(value);
    if (prototype === Object.prototype || prototype === null) {
      return this.#copyOf(value as Record<string, unknown>, path, false);
    }
    // An instance of some class is cloned as plain data; errors have a cause beside.
    for (const item of Object.values(value)) this.#look(item);
    if (types.isNativeError(value)) this.#look((value as Error).cause);
    return value;
  }

  /** Looks for memory only. Where a path cannot lead, a batch is cloned as what it looks like. */
  #look(value: unknown): void {
    if (typeof value !== 'object' || value === null) return;
    const markCount = this.marks.length;
    this.visit(value, []);
    this.marks.length = markCount;
  }

  /** Copies on the first change. */
  #listOf(source: readonly unknown[], path: Path): readonly unknown[] {
    let copy: unknown[] | undefined;
    for (let index = 0; index < source.length; index += 1) {
      const item = source[index];
      if (typeof item !== 'object' || item === null) continue;
      const replaced = this.visit(item, [...path, index]);
      if (replaced === item) continue;
      copy ??= [...source];
      copy[index] = replaced;
    }
    return copy ?? source;
  }

  /** Copies on the first change, unless the object is a copy already. */
  #copyOf(source: Record<string, unknown>, path: Path, isCopy: boolean): Record<string, unknown> {
    let copy = isCopy ? source : undefined;
    for (const [name, item] of Object.entries(source)) {
      if (typeof item !== 'object' || item === null) continue;
      const replaced = this.visit(item, [...path, name]);
      if (replaced === item) continue;
      copy ??= { ...source };
      set(copy, name, replaced);
    }
    return copy ?? source;
  }

  #addMemory<T extends ArrayBufferView>(view: T): T {
    const { buffer } = view;
    // Shared memory stays where it is.
    if (!types.isArrayBuffer(buffer)) return view;
    this.memory.add(buffer);
    const isPart = view.byteLength < buffer.byteLength;
    if (isPart && Buffer.isBuffer(view)) this.pooled.add(buffer);
    return view;
  }
}

/** Sets an own property, whatever it is called. */
function set(target: Record<string | number, unknown>, key: string | number, value: unknown): void {
  Object.defineProperty(target, key, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

// ---- errors ---------------------------------------------------------------------------------------

/** What was thrown, as data. */
export type PackedThrown =
  | { readonly kind: 'value'; readonly value: unknown }
  | {
      readonly kind: 'error';
      readonly name: string;
      readonly message: string;
      readonly stack: string | undefined;
      readonly cause: PackedThrown | undefined;
      /** Of an AggregateError. */
      readonly errors: readonly PackedThrown[] | undefined;
      /** Other own fields that can be cloned. */
      readonly fields: Readonly<Record<string, unknown>>;
    };

/** Causes of causes beyond this are left out. */
const causesMax = 8;

/** Packs what was thrown. Never throws. `subject` is what a message calls the thrower. */
export function packThrown(thrown: unknown, subject: string, depth = 0): PackedThrown {
  try {
    if (isErrorLike(thrown)) return packError(thrown, subject, depth);
    return { kind: 'value', value: structuredClone(thrown) };
  } catch {
    const message = `${subject} threw ${show(thrown)}, which cannot be handed to another thread`;
    return packError(
      new LoaderxError('TRANSFORM', message, { field: 'transform' }),
      subject,
      depth,
    );
  }
}

/** The error, or other value, that was thrown on another thread. */
export function unpackThrown(packed: PackedThrown): unknown {
  if (packed.kind === 'value') return packed.value;
  const { name, message, stack, cause, errors, fields } = packed;
  const error = newError(name, message, fields);
  const hidden = (key: string, value: unknown): void => {
    Object.defineProperty(error, key, {
      value,
      enumerable: false,
      configurable: true,
      writable: true,
    });
  };
  if (error.name !== name) hidden('name', name);
  if (stack !== undefined) hidden('stack', stack);
  if (cause !== undefined) hidden('cause', unpackThrown(cause));
  if (errors !== undefined) hidden('errors', errors.map(unpackThrown));
  for (const [key, value] of Object.entries(fields)) {
    set(error as unknown as Record<string, unknown>, key, value);
  }
  return error;
}

function isErrorLike(thrown: unknown): thrown is Error {
  return types.isNativeError(thrown) || thrown instanceof Error;
}

function packError(error: Error, subject: string, depth: number): PackedThrown {
  const { cause, errors } = error as { readonly cause?: unknown; readonly errors?: unknown };
  const inner = (value: unknown): PackedThrown => packThrown(value, subject, depth + 1);
  const isDeep = depth >= causesMax;
  return {
    kind: 'error',
    name: String(error.name),
    message: String(error.message),
    stack: typeof error.stack === 'string' ? error.stack : undefined,
    cause: cause === undefined || isDeep ? undefined : inner(cause),
    errors: Array.isArray(errors) && !isDeep ? errors.map(inner) : undefined,
    fields: fieldsOf(error),
  };
}

const packedApart: readonly string[] = ['name', 'message', 'stack', 'cause', 'errors'];

function fieldsOf(error: Error): Readonly<Record<string, unknown>> {
  const fields: Record<string, unknown> = {};
  for (const key of Object.keys(error)) {
    if (packedApart.includes(key)) continue;
    try {
      set(fields, key, structuredClone((error as unknown as Record<string, unknown>)[key]));
    } catch {
      // A field that cannot cross stays behind.
    }
  }
  return fields;
}

const builtins: readonly ErrorConstructor[] = [
  TypeError,
  RangeError,
  SyntaxError,
  ReferenceError,
  EvalError,
  URIError,
];

function newError(name: string, message: string, fields: Readonly<Record<string, unknown>>): Error {
  const { code } = fields;
  if (name === 'LoaderxError' && errorCodes.includes(code as ErrorCode)) {
    return new LoaderxError(code as ErrorCode, message);
  }
  if (name === 'AggregateError') return new AggregateError([], message);
  const builtin = builtins.find((maker) => maker.name === name) ?? Error;
  return new builtin(message);
}
