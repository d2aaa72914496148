/**
 * Record ids on their way in: checked as a whole, then copied once into the u64 array that the
 * native side reads. They are written as two 32-bit halves: `BigInt()` costs twenty times as much.
 *
 * The native side checks ids against the record count again, so memory that somebody else changes
 * between check and copy can give an error and no more.
 */
import { isHonest, trueLength, typedArrayName } from '../dtype.js';
import { ArgumentRangeError, ArgumentTypeError, show } from '../errors.js';

/** Record ids: integers 0 .. length - 1, in any order, repeats allowed. Never from the end. */
export type Ids = readonly number[] | Uint32Array | BigUint64Array;

const word = 2 ** 32;

/**
 * A private copy of `ids`, all below `recordCount`.
 *
 * @throws TypeError for anything but the three kinds of list and for an element that is no integer;
 *   RangeError OUT_OF_RANGE for an id that is not there. Nothing is allocated before either.
 */
export function idArray(ids: unknown, recordCount: number): BigUint64Array {
  if (Array.isArray(ids)) {
    const list: readonly unknown[] = ids;
    for (let index = 0; index < list.length; index += 1) {
      const id = list[index];
      if (typeof id === 'number' && Number.isInteger(id) && id >= 0 && id < recordCount) continue;
      checkedId(id, recordCount, `ids[${index}]`, 'ids');
    }
    return wordsOf(list as readonly number[]);
  }
  const name = typedArrayName(ids);
  if (name !== undefined) assertAttached(ids as ArrayBufferView);
  if ((name === 'Uint32Array' || name === 'BigUint64Array') && !isHonest(ids as Uint32Array)) {
    throw new ArgumentTypeError(
      'ids',
      `ids say another length or memory of themselves than they have: give a plain ${name}`,
    );
  }
  if (name === 'Uint32Array') {
    const list = ids as Uint32Array;
    for (let index = 0; index < list.length; index += 1) {
      if ((list[index] ?? 0) >= recordCount) throw outOfRange(list[index] ?? 0, recordCount, index);
    }
    return wordsOf(list);
  }
  if (name === 'BigUint64Array') {
    const list = ids as BigUint64Array;
    const count = trueLength(list);
    if (count > keptIdsMax) {
      assertBelow(new Uint32Array(list.buffer, list.byteOffset, count * 2), recordCount);
      return new BigUint64Array(list);
    }
    // Copied first: a view of a few ids costs more than a copy of them.
    const short = newWords(count);
    copyIds(list, short.words);
    try {
      assertBelow(short.halves, recordCount);
    } catch (error) {
      giveIds(short.words);
      throw error;
    }
    return short.words;
  }
  throw new ArgumentTypeError(
    'ids',
    `ids must be an array of integers, a Uint32Array or a BigUint64Array, got ${show(ids)}`,
  );
}

/** As many ids as `words` holds. Another thread may make a list in shared memory longer meanwhile. */
function copyIds(list: BigUint64Array, words: BigUint64Array): void {
  try {
    words.set(list);
  } catch {
    for (let index = 0; index < words.length; index += 1) words[index] = list[index] ?? 0n;
  }
}

/** @throws RangeError OUT_OF_RANGE for the first of these ids, each as two halves, that is not there */
function assertBelow(halves: Uint32Array, recordCount: number): void {
  for (let index = 0; index < halves.length; index += 2) {
    const id = (halves[index + 1] ?? 0) * word + (halves[index] ?? 0);
    if (id < recordCount) continue;
    const exact = (BigInt(halves[index + 1] ?? 0) << 32n) | BigInt(halves[index] ?? 0);
    throw outOfRange(exact, recordCount, index / 2);
  }
}

/** Memory that was transferred away, or that shrank before a view's end, reads as a list of no ids. */
function assertAttached(list: ArrayBufferView): void {
  if (list.byteLength > 0) return;
  try {
    // Of all that reads nothing, only methods tell such a view from an empty one.
    Uint8Array.prototype.at.call(list, 0);
  } catch {
    throw new ArgumentTypeError('ids', 'the memory of ids was transferred away or shrank');
  }
}

/** One id, checked; -0 is 0. `name` is what messages call it. */
export function checkedId(id: unknown, recordCount: number, name: string, field: string): number {
  if (typeof id !== 'number' || !Number.isInteger(id)) {
    const hint = typeof id === 'bigint' ? ' (a list of bigints is a BigUint64Array)' : '';
    throw new ArgumentTypeError(field, `${name} must be an integer, got ${show(id)}${hint}`);
  }
  if (id < 0 || id >= recordCount) {
    throw new ArgumentRangeError(field, rangeText(name, id, recordCount), 'OUT_OF_RANGE', id);
  }
  return id + 0;
}

function outOfRange(id: number | bigint, recordCount: number, index: number): ArgumentRangeError {
  const record = typeof id === 'bigint' && id <= Number.MAX_SAFE_INTEGER ? Number(id) : id;
  const text = rangeText(`ids[${index}]`, id, recordCount);
  return new ArgumentRangeError('ids', text, 'OUT_OF_RANGE', record);
}

function rangeText(name: string, id: number | bigint, recordCount: number): string {
  const held = recordCount === 0 ? 'the container is empty' : `ids go from 0 to ${recordCount - 1}`;
  return `${name} is ${id}, and ${held}${id < 0 ? ', never from the end' : ''}`;
}

/** Whole numbers from 0 to 2^53 - 1, as the native side reads them. */
export function wordsOf(list: ArrayLike<number>): BigUint64Array {
  const { words, halves } = newWords(list.length);
  // A getter may make the list shorter; what was in the words before must not stay.
  for (let index = 0; index < words.length; index += 1) {
    const id = list[index] ?? 0;
    halves[index * 2] = id;
    halves[index * 2 + 1] = id < word ? 0 : Math.floor(id / word);
  }
  return words;
}

/** The same memory twice. */
interface Words {
  readonly words: BigUint64Array;
  readonly halves: Uint32Array;
}

/**
 * Two typed arrays cost as much as the rest of a gather of one record. Those of longer lists cost more
 * than their own time: while 32 MiB of young batches live, V8 collects the young generation for each
 * array that it makes, however small, and batches that survive two of these wait for a full collection.
 */
const keptIdsMax = 8192;
const keptListsMax = 16;
/** Oldest first. */
const kept: Words[] = [];
const handedOut = new WeakMap<BigUint64Array, Words>();

function newWords(count: number): Words {
  for (let index = kept.length - 1; index >= 0; index -= 1) {
    const spare = kept[index];
    if (spare?.words.length !== count) continue;
    // Whoever fills it may call back here: nobody else has it meanwhile.
    if (index === kept.length - 1) kept.pop();
    else kept.splice(index, 1);
    return spare;
  }
  const halves = new Uint32Array(count * 2);
  const made = { words: new BigUint64Array(halves.buffer), halves };
  if (count >= 1 && count <= keptIdsMax) handedOut.set(made.words, made);
  return made;
}

/** Takes a list back that nobody reads any more. */
export function giveIds(ids: BigUint64Array): void {
  if (ids.length > keptIdsMax) return;
  const words = handedOut.get(ids);
  if (words === undefined || kept.includes(words)) return;
  if (kept.length === keptListsMax) kept.shift();
  kept.push(words);
}

/** The ids `first`, `first + step`, … */
export interface IdRange {
  readonly first: number;
  readonly step: number;
  readonly count: number;
}

/** The ids of a range, as the native side reads them. */
export function rangeArray({ first, step, count }: IdRange): BigUint64Array {
  const { words, halves } = newWords(count);
  let id = first;
  for (let index = 0; index < count; index += 1) {
    halves[index * 2] = id;
    halves[index * 2 + 1] = id < word ? 0 : Math.floor(id / word);
    id += step;
  }
  return words;
}

/**
 * What a slice selects, as Python's slices do: ends past the last record are clipped, a negative
 * step goes down, and its omitted ends are the last record and the one before the first.
 *
 * @throws TypeError for a part that is no integer; RangeError for a negative start or end
 *   (OUT_OF_RANGE: nothing counts from the end) and for step 0
 */
export function sliceRange(
  recordCount: number,
  start: unknown,
  end: unknown,
  step: unknown,
): IdRange {
  const stride = step === undefined ? 1 : integer(step, 'step');
  if (stride === 0) throw new ArgumentRangeError('step', 'step must not be 0');
  const goesUp = stride > 0;
  const last = goesUp ? recordCount : recordCount - 1;
  const from = start === undefined ? (goesUp ? 0 : last) : Math.min(position(start, 'start'), last);
  const until = end === undefined ? (goesUp ? last : -1) : Math.min(position(end, 'end'), last);
  const span = goesUp ? until - from : from - until;
  return { first: from, step: stride, count: Math.max(0, Math.ceil(span / Math.abs(stride))) };
}

function integer(value: unknown, field: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value)) {
    throw new ArgumentTypeError(field, `${field} must be an integer, got ${show(value)}`);
  }
  return value;
}

function position(value: unknown, field: string): number {
  const at = integer(value, field);
  if (at < 0) {
    throw new ArgumentRangeError(
      field,
      `${field} must be 0 or more, got ${at}: nothing counts from the end`,
      'OUT_OF_RANGE',
    );
  }
  return at + 0;
}
