/** Lines of text files, and columns of text as columns of tokens. */
import { isUtf8 } from 'node:buffer';
import type { ColumnValues, Dataset, Feature, RowBatch } from '../converter/dataset.js';
import { LoaderxError, show } from '../errors.js';
import { textLines } from './bytes.js';
import type { Tokenizer } from './tokenizer.js';

const batchRows = 1024;
const batchCharacters = 2 ** 20;

/** A text file: a record for each line that is not blank. */
export function textDataset(path: string, column: string): Dataset {
  return {
    features: new Map([[column, { kind: 'value', dtype: 'string' }]]),
    batches: (options) => lineBatches(path, column, options?.signal),
  };
}

async function* lineBatches(
  path: string,
  column: string,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  let bytes: Uint8Array[] = [];
  let characters = 0;
  const taken = (): RowBatch => {
    const batch = { rowCount: bytes.length, columns: new Map([[column, { bytes }]]) };
    bytes = [];
    characters = 0;
    return batch;
  };
  for await (const line of textLines(path)) {
    signal?.throwIfAborted();
    if (line.trim() === '') continue;
    bytes.push(Buffer.from(line));
    characters += line.length;
    if (bytes.length === batchRows || characters >= batchCharacters) yield taken();
  }
  if (bytes.length > 0) yield taken();
}

/** How many records {@link textDataset} has: all of it is read for that. */
export async function textRows(path: string, signal: AbortSignal | undefined): Promise<number> {
  let rows = 0;
  for await (const line of textLines(path)) {
    signal?.throwIfAborted();
    if (line.trim() !== '') rows += 1;
  }
  return rows;
}

function isText(feature: Feature): boolean {
  return feature.kind === 'value' && feature.dtype === 'string';
}

/** Whether a dataset has a column of text. */
export function hasText({ features }: Dataset): boolean {
  return [...features.values()].some(isText);
}

/** The same dataset with int32 tokens, ragged, where it has text. */
export function tokenized(dataset: Dataset, tokenizer: Tokenizer, firstRow = 0): Dataset {
  const features = new Map<string, Feature>();
  for (const [name, feature] of dataset.features) {
    const tokens: Feature = { kind: 'list', item: { kind: 'value', dtype: 'int32' } };
    features.set(name, isText(feature) ? tokens : feature);
  }
  const { rowCount } = dataset;
  const range = dataset.range?.bind(dataset);
  return {
    features,
    ...(rowCount === undefined ? {} : { rowCount }),
    ...(range === undefined
      ? {}
      : { range: (from, end) => tokenized(range(from, end), tokenizer, firstRow + from) }),
    async *batches(options) {
      let first = firstRow;
      for await (const batch of dataset.batches(options)) {
        const columns = new Map<string, ColumnValues>();
        for (const [name, values] of batch.columns) {
          const feature = dataset.features.get(name);
          const isTokens = feature !== undefined && isText(feature) && 'bytes' in values;
          columns.set(
            name,
            isTokens ? await tokensOf(name, values.bytes, first, tokenizer) : values,
          );
        }
        first += batch.rowCount;
        yield { ...batch, columns };
      }
    },
  };
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

async function tokensOf(
  column: string,
  texts: readonly (Uint8Array | null)[],
  first: number,
  tokenizer: Tokenizer,
): Promise<ColumnValues> {
  const offsets = new Uint32Array(texts.length + 1);
  const tokens: number[] = [];
  for (const [index, bytes] of texts.entries()) {
    const fault = (reason: string, cause?: unknown): LoaderxError =>
      new LoaderxError(
        'SOURCE',
        `column ${show(column)}, row ${first + index}: ${reason}`,
        { field: column, record: first + index },
        { cause },
      );
    if (bytes === null) throw fault('is null, and containers hold no nulls');
    if (!isUtf8(bytes)) throw fault('is no UTF-8, and a tokenizer takes text');
    let ids: ArrayLike<number>;
    try {
      ids = await tokenizer.encode(utf8.decode(bytes));
    } catch (cause) {
      const said = cause instanceof Error ? cause.message : String(cause);
      throw fault(`the tokenizer failed: ${said}`, cause);
    }
    if (typeof ids?.length !== 'number')
      throw fault(`the tokenizer gave ${show(ids)}, and ids are wanted`);
    if (ids.length === 0) throw fault('has no tokens, and a record of a container has an item');
    for (let at = 0; at < ids.length; at += 1) {
      const id = ids[at];
      if (typeof id !== 'number' || !Number.isInteger(id) || id < 0 || id > 0x7fffffff) {
        throw fault(`token ${at} is ${show(id)}, and 0 to 2^31 - 1 are tokens`);
      }
      tokens.push(id);
    }
    offsets[index + 1] = tokens.length;
  }
  return { values: Int32Array.from(tokens), offsets: [offsets] };
}
