/**
 * Which container a column becomes. The declared type alone decides, never the values: a list column whose rows
 * happen to have one length is ragged all the same.
 */
import type { NumberDType } from '../dtype.js';
import { ArgumentTypeError, LoaderxError, show } from '../errors.js';
import type { Feature } from './dataset.js';
import { featureText } from './features.js';
import { numberBytes } from './parquet/numbers.js';

/** What items are: numbers as Parquet and JSON have them, and NumPy's complex ones. */
export type ItemDType = NumberDType | 'complex64' | 'complex128';

const complexDTypes: ReadonlySet<string> = new Set(['complex64', 'complex128']);

/** The container of a column. */
export type Layout =
  | { readonly kind: 'dense'; readonly dtype: ItemDType; readonly itemShape: readonly number[] }
  | {
      readonly kind: 'ragged';
      readonly dtype: NumberDType;
      /** Of each dimension; null where records differ. */
      readonly sizes: readonly (number | null)[];
    }
  /** Text as bytes of UTF-8: ragged, uint8. */
  | { readonly kind: 'text' }
  /** Arrays: dense as long as all have one shape, ragged from the first other one on. */
  | { readonly kind: 'arrays' }
  /** Pictures, or lists of them; the pictures decide the rest. */
  | { readonly kind: 'image'; readonly mode: string | undefined; readonly isList: boolean };

/** What becomes of columns of strings: an error, or bytes. */
export type StringRule = 'refuse' | 'utf8';

/**
 * @throws LoaderxError UNSUPPORTED, with the column's name as `field`, for what no container holds
 */
export function layoutOf(column: string, feature: Feature, strings: StringRule): Layout {
  assertFeature(column, feature, new Set());
  const sizes: (number | null)[] = [];
  let leaf = feature;
  while (leaf.kind === 'list') {
    sizes.push(leaf.length ?? null);
    leaf = leaf.item;
  }
  if (leaf.kind === 'array') {
    sizes.push(...leaf.shape);
    leaf = { kind: 'value', dtype: leaf.dtype };
  }
  if (leaf.kind === 'arrays' && sizes.length === 0) return { kind: 'arrays' };
  if (leaf.kind === 'image' && sizes.length <= 1 && (sizes[0] ?? null) === null) {
    return { kind: 'image', mode: leaf.mode, isList: sizes.length === 1 };
  }
  if (leaf.kind === 'value' && leaf.dtype === 'string' && sizes.length === 0) {
    if (strings === 'utf8') return { kind: 'text' };
    throw refusal(column, feature, "; strings: 'utf8' stores their bytes, ragged");
  }
  const dtype = leaf.kind === 'class-label' ? 'int64' : leaf.kind === 'value' ? leaf.dtype : '';
  if (leaf.kind === 'value' && leaf.dtype === 'null') {
    throw new LoaderxError(
      'SOURCE',
      `column ${show(column)}, row 0: is null, as all of its rows are, and containers hold no nulls`,
      { field: column, record: 0 },
    );
  }
  const isFixed = sizes.every((size) => size !== null);
  if (!numberBytes.has(dtype) && !(isFixed && complexDTypes.has(dtype))) {
    throw refusal(column, feature, '');
  }
  if (sizes.some((size) => size === 0)) throw refusal(column, feature, ': its records are empty');
  return isFixed
    ? { kind: 'dense', dtype: dtype as ItemDType, itemShape: sizes }
    : { kind: 'ragged', dtype: dtype as NumberDType, sizes };
}

/** Deeper than any file has them. */
const depthMax = 100;

/** A dataset may be anybody's: a feature may be nothing, or hold itself. */
function assertFeature(column: string, feature: unknown, above: ReadonlySet<unknown>): void {
  const { kind, dtype, item, fields, shape } = (feature ?? {}) as Partial<Record<string, unknown>>;
  const hasDType = kind === 'value' || kind === 'array';
  const isSound =
    typeof kind === 'string' &&
    (!hasDType || typeof dtype === 'string') &&
    (kind !== 'struct' || fields instanceof Map) &&
    (kind !== 'array' || Array.isArray(shape));
  if (!isSound || above.has(feature) || above.size > depthMax) {
    const came = above.has(feature)
      ? 'one that holds itself'
      : above.size > depthMax
        ? `one that is nested more than ${depthMax} deep`
        : show(feature);
    throw new ArgumentTypeError(
      'dataset',
      `the feature of column ${show(column)} must be {kind, …} as Feature has it, got ${came}`,
    );
  }
  if (kind === 'list') assertFeature(column, item, new Set(above).add(feature));
  if (kind !== 'struct') return;
  for (const each of (fields as Map<unknown, unknown>).values()) {
    assertFeature(column, each, new Set(above).add(feature));
  }
}

function refusal(column: string, feature: Feature, hint: string): LoaderxError {
  return new LoaderxError(
    'UNSUPPORTED',
    `column ${show(column)} is ${featureText(feature)}, which no container holds${hint}; leave it out by naming the columns that are wanted`,
    { field: column },
  );
}
