/**
 * Single values of tables, and whether a dtype keeps them.
 *
 * A number with a point or an exponent stands beside its text: `0.1` is no double, and its double is what it
 * means. It is kept where the double (or float), written with as many digits as the text has, is the text. So
 * all numbers that programs print are kept, and 17 digits more than a double has are not.
 */
import { dtypeOf, integerRange } from '../dtype.js';

/** A number that was written with a point or an exponent, or is no whole number. */
export class Decimal {
  readonly value: number;
  readonly text: string;

  constructor(value: number, text: string) {
    this.value = value;
    this.text = text;
  }
}

/** A number with a zero before other digits, as codes have it: no number gives its text back. */
export class Padded {
  readonly number: number | bigint | Decimal;
  readonly text: string;

  constructor(number: number | bigint | Decimal, text: string) {
    this.number = number;
    this.text = text;
  }
}

export type Cell =
  | null
  | boolean
  /** A whole number up to 2^53. */
  | number
  /** One beyond. */
  | bigint
  | Decimal
  | Padded
  | string
  | readonly Cell[]
  /** What no column holds, in words. */
  | { readonly unsupported: string };

export function isDecimal(cell: Cell): cell is Decimal {
  return cell instanceof Decimal;
}

const wholePattern = /^[+-]?\d+$/;
const decimalPattern = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/;
const notFinite: ReadonlyMap<string, number> = new Map([
  ['nan', Number.NaN],
  ['inf', Number.POSITIVE_INFINITY],
  ['+inf', Number.POSITIVE_INFINITY],
  ['-inf', Number.NEGATIVE_INFINITY],
  ['infinity', Number.POSITIVE_INFINITY],
  ['-infinity', Number.NEGATIVE_INFINITY],
]);

/** The number that a text is; undefined where it is none. */
export function numberOf(text: string): number | bigint | Decimal | undefined {
  if (wholePattern.test(text)) {
    const value = Number(text);
    // Minus zero is no whole number.
    if (Object.is(value, -0)) return new Decimal(value, text);
    return Number.isSafeInteger(value) ? value : BigInt(text.replace('+', ''));
  }
  if (decimalPattern.test(text)) return new Decimal(Number(text), text);
  const value = notFinite.get(text.toLowerCase());
  return value === undefined ? undefined : new Decimal(value, text);
}

/** What columns of tables may be declared to hold. */
export const tableDTypes = [
  ...(['bool', 'int8', 'uint8', 'int16', 'uint16', 'int32', 'uint32', 'int64', 'uint64'] as const),
  ...(['float32', 'float64'] as const),
] as const;

export type TableDType = (typeof tableDTypes)[number];

/** Why a dtype does not keep a value; undefined where it does. */
export function misfit(cell: Cell, dtype: TableDType): string | undefined {
  if (dtype === 'bool') {
    return typeof cell === 'boolean' || cell === 0 || cell === 1 ? undefined : 'is no truth value';
  }
  if (typeof cell !== 'number' && typeof cell !== 'bigint' && !isDecimal(cell)) {
    return 'is no number';
  }
  if (dtype === 'float32' || dtype === 'float64') return floatMisfit(cell, dtype);
  const exact = isDecimal(cell) ? wholeOf(cell) : cell;
  if (exact === undefined) return 'is no whole number';
  const [least, most] = ranges.get(dtype) as readonly [bigint, bigint];
  return exact < least || exact > most ? `is outside of ${dtype}` : undefined;
}

/** `3.0` and `1e3` are whole numbers. */
function wholeOf({ value }: Decimal): number | undefined {
  return Number.isSafeInteger(value) && !Object.is(value, -0) ? value : undefined;
}

/** Of each dtype of integers; worked out once, since every cell is held against them. */
const ranges: ReadonlyMap<TableDType, readonly [bigint, bigint]> = new Map(
  tableDTypes
    .filter((dtype) => /^u?int/.test(dtype))
    .map((dtype) => [dtype, integerRange(dtypeOf(dtype))]),
);

/** Any text of so few digits comes back from its double, or its float, as it was. */
const sureDigits = { float64: 15, float32: 6 } as const;

function floatMisfit(
  cell: number | bigint | Decimal,
  dtype: 'float32' | 'float64',
): string | undefined {
  const kept = (value: number): number => (dtype === 'float32' ? Math.fround(value) : value);
  if (!isDecimal(cell)) {
    const float = kept(Number(cell));
    const isSame = Number.isFinite(float) && BigInt(float) === BigInt(cell);
    return isSame ? undefined : `is not kept by ${dtype}, which has ${float}`;
  }
  const { value, text } = cell;
  if (!Number.isFinite(value)) {
    return /\d/.test(text) ? `is outside of ${dtype}` : undefined;
  }
  const float = kept(value);
  if (!Number.isFinite(float)) return `is outside of ${dtype}`;
  const digits = digitsOf(text);
  if (digits === '') return undefined;
  if (float === 0) return `is not kept by ${dtype}, which has 0`;
  const isNormal = Math.abs(float) >= (dtype === 'float32' ? 2 ** -126 : 2 ** -1022);
  if (isNormal && digits.length <= sureDigits[dtype]) return undefined;
  const count = Math.min(digits.length, 100);
  if (digitsOf(float.toPrecision(count)) === digits) return undefined;
  // The shortest text that is read back as this number is right, even where a nearer one has as many digits.
  if (dtype === 'float64' && digitsOf(String(float)) === digits) return undefined;
  if (dtype === 'float32' && digits.length <= 9 && isShortestFloat(float, value, count)) {
    return undefined;
  }
  return `is not kept by ${dtype}, which has ${float}`;
}

/** Digits that count, without zeros at both ends. */
function digitsOf(text: string): string {
  const [mantissa = ''] = text.replace(/^[+-]/, '').split(/e/i);
  return mantissa.replace('.', '').replace(/^0+/, '').replace(/0+$/, '');
}

/** Of the smallest numbers of a binade and of those below the normal ones. */
function isShortestFloat(float: number, value: number, digits: number): boolean {
  if (digits < 2) return true;
  const shorter = Number(value.toPrecision(digits - 1));
  return Math.fround(value) === float && Math.fround(shorter) !== float;
}
