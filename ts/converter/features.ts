/**
 * What columns are declared to hold, in the three spellings that `datasets` uses: the JSON that it puts into
 * Parquet files, the YAML of a repository's card, and Arrow types.
 */
import { LoaderxError, show } from '../errors.js';
import type { Feature, Features } from './dataset.js';

type Fields = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const depthMax = 64;

/** Names of value types whose meaning has another name. */
const aliases: ReadonlyMap<string, string> = new Map([
  ['float', 'float32'],
  ['double', 'float64'],
  ['boolean', 'bool'],
  ['large_string', 'string'],
  ['string_view', 'string'],
  ['large_binary', 'binary'],
  ['binary_view', 'binary'],
]);

function value(dtype: string): Feature {
  return { kind: 'value', dtype: aliases.get(dtype) ?? dtype };
}

function list(item: Feature, length: unknown): Feature {
  if (typeof length !== 'number' || length < 0) return { kind: 'list', item };
  return { kind: 'list', item, length };
}

function array(shape: unknown, dtype: unknown): Feature {
  const isShape =
    Array.isArray(shape) &&
    shape.every((size) => size === null || (Number.isInteger(size) && size > 0));
  if (!isShape || typeof dtype !== 'string') {
    return { kind: 'unsupported', name: `an array of shape ${show(shape)}` };
  }
  return { kind: 'array', shape: shape as readonly (number | null)[], dtype };
}

// ---- the JSON in files ----

/**
 * Features of the value of a Parquet file's `huggingface` metadata.
 *
 * @returns undefined where the text says nothing of features
 */
export function featuresOfMetadata(text: string): Features | undefined {
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    return undefined;
  }
  const info = isRecord(parsed) ? parsed.info : undefined;
  const features = isRecord(info) ? info.features : undefined;
  if (!isRecord(features)) return undefined;
  return new Map(Object.entries(features).map(([name, each]) => [name, ofJson(each, 0)]));
}

function ofJson(feature: unknown, depth: number): Feature {
  if (depth > depthMax) return { kind: 'unsupported', name: 'too many levels' };
  if (Array.isArray(feature)) return list(ofJson(feature[0], depth + 1), undefined);
  if (!isRecord(feature)) return { kind: 'unsupported', name: show(feature) };
  const type = feature._type;
  switch (type) {
    case 'Value':
      return typeof feature.dtype === 'string'
        ? value(feature.dtype)
        : { kind: 'unsupported', name: 'Value' };
    case 'ClassLabel':
      return classLabel(feature.names);
    case 'Image':
      return image(feature);
    case 'Sequence':
    case 'List':
    case 'LargeList':
      return list(ofJson(feature.feature, depth + 1), feature.length);
    case 'Array2D':
    case 'Array3D':
    case 'Array4D':
    case 'Array5D':
      return array(feature.shape, feature.dtype);
    default:
  }
  if (typeof type === 'string') return { kind: 'unsupported', name: type };
  const fields = Object.entries(feature).map(
    ([name, each]) => [name, ofJson(each, depth + 1)] as const,
  );
  return { kind: 'struct', fields: new Map(fields) };
}

function image({ mode, decode }: Fields): Feature {
  // The bytes themselves are asked for.
  if (decode === false) return { kind: 'unsupported', name: 'an image that is not decoded' };
  return typeof mode === 'string' ? { kind: 'image', mode } : { kind: 'image' };
}

function classLabel(names: unknown): Feature {
  // A card has them by number.
  const known = Array.isArray(names) ? names : isRecord(names) ? Object.values(names) : undefined;
  if (known?.every((name) => typeof name === 'string') !== true) return { kind: 'class-label' };
  return { kind: 'class-label', names: known as string[] };
}

// ---- the YAML of cards ----

/**
 * Features of one entry of a card's `dataset_info`, as a YAML parser gives it.
 *
 * @returns undefined where the entry lists none
 * @throws LoaderxError SOURCE where what it lists cannot be understood
 */
export function featuresOfCard(info: unknown): Features | undefined {
  const features = isRecord(info) ? info.features : undefined;
  if (features === undefined || features === null) return undefined;
  return fieldsOfCard(features, 'the dataset_info of the card', 0);
}

function fieldsOfCard(entries: unknown, where: string, depth: number): Features {
  const fields = new Map<string, Feature>();
  if (!Array.isArray(entries)) throw cardError(where, 'features must be a list');
  for (const entry of entries) {
    if (!isRecord(entry)) throw cardError(where, `a feature must be a mapping, got ${show(entry)}`);
    // YAML reads a bare `1` or `null` as what it looks like.
    const name = typeof entry.name === 'number' ? String(entry.name) : entry.name;
    if (typeof name !== 'string') throw cardError(where, 'a feature has no name');
    if (fields.has(name)) throw cardError(where, `feature ${show(name)} is there twice`);
    fields.set(name, ofCard(entry, `${where}, feature ${show(name)}`, depth));
  }
  return fields;
}

function ofCard(entry: unknown, where: string, depth: number): Feature {
  if (depth > depthMax) throw cardError(where, 'has too many levels');
  if (typeof entry === 'string') return namedOfCard(entry);
  if (Array.isArray(entry)) {
    return { kind: 'struct', fields: fieldsOfCard(entry, where, depth + 1) };
  }
  if (!isRecord(entry)) throw cardError(where, `cannot be ${show(entry)}`);
  for (const key of ['sequence', 'list', 'large_list'] as const) {
    if (entry[key] === undefined) continue;
    return list(ofCard(entry[key], where, depth + 1), lengthOf(entry, key));
  }
  if (entry.struct !== undefined) return ofCard(entry.struct, where, depth + 1);
  if (entry.dtype !== undefined) return ofCard(entry.dtype, where, depth + 1);
  for (const [key, settings] of Object.entries(entry)) {
    if (key === 'name') continue;
    const parts = isRecord(settings) ? settings : {};
    if (key === 'class_label') return classLabel(parts.names);
    if (key === 'image') return image(parts);
    if (/^array[2-5]_?d$/i.test(key)) return array(parts.shape, parts.dtype);
    return { kind: 'unsupported', name: key };
  }
  throw cardError(where, 'has no dtype');
}

/** `{list: int32, length: 2}`, and also `{sequence: {dtype: int32, length: 2}}`. */
function lengthOf(entry: Fields, key: string): unknown {
  if (entry.length !== undefined) return entry.length;
  const inner = entry[key];
  return isRecord(inner) && inner.dtype !== undefined ? inner.length : undefined;
}

function namedOfCard(name: string): Feature {
  if (name === 'image') return { kind: 'image' };
  if (['audio', 'video', 'pdf', 'nifti', 'json', 'mesh'].includes(name)) {
    return { kind: 'unsupported', name };
  }
  return value(name);
}

function cardError(where: string, reason: string): LoaderxError {
  return new LoaderxError('SOURCE', `${where}: ${reason}`, { field: 'dataset_info' });
}

// ---- what types say ----

/** How messages call a feature. */
export function featureText(feature: Feature): string {
  switch (feature.kind) {
    case 'value':
      return feature.dtype;
    case 'class-label':
      return 'class label';
    case 'image':
      return 'image';
    case 'list': {
      const size = feature.length === undefined ? '' : `, ${feature.length}`;
      return `list<${featureText(feature.item)}${size}>`;
    }
    case 'array':
      return `array<${feature.dtype}, ${feature.shape.map((size) => size ?? '?').join(' × ')}>`;
    case 'struct': {
      const fields = [...feature.fields].slice(0, 4).map(([n, f]) => `${n}: ${featureText(f)}`);
      return `struct<${fields.join(', ')}${feature.fields.size > 4 ? ', …' : ''}>`;
    }
    case 'arrays':
      return 'arrays';
    case 'unsupported':
      return feature.name;
  }
}

/**
 * What a column of a file is: the feature that its `huggingface` metadata names counts where its Arrow type
 * is the column's own, as `datasets` has it; otherwise Arrow's type alone.
 */
export function declared(own: Feature, named: Feature | undefined): Feature {
  return named !== undefined && isTypeOf(named, own) ? named : own;
}

function isTypeOf(named: Feature, own: Feature): boolean {
  switch (named.kind) {
    case 'value':
      return own.kind === 'value' && baseName(own.dtype) === baseName(named.dtype);
    case 'class-label':
      return own.kind === 'value' && own.dtype === 'int64';
    case 'image':
      return own.kind === 'struct' && own.fields.has('bytes') && own.fields.has('path');
    case 'list':
      return own.kind === 'list' && own.length === named.length && isTypeOf(named.item, own.item);
    case 'array':
      return (
        own.kind === 'array' &&
        own.dtype === named.dtype &&
        own.shape.length === named.shape.length &&
        own.shape.every((size, axis) => size === named.shape[axis])
      );
    case 'struct':
      return (
        own.kind === 'struct' &&
        own.fields.size === named.fields.size &&
        [...named.fields].every(([name, each]) => {
          const field = own.fields.get(name);
          return field !== undefined && isTypeOf(each, field);
        })
      );
    case 'arrays':
      return false;
    case 'unsupported':
      return true;
  }
}

/** `timestamp` of `timestamp[ns, tz=UTC]`: units do not matter for what no container holds. */
function baseName(dtype: string): string {
  return /^(u?int|float)\d+$/.test(dtype) ? dtype : dtype.replace(/[\d[(].*$/s, '');
}
