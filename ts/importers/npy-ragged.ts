/**
 * Two arrays that are one ragged column, as `exportNpz` writes it: the items of all records back to back, and
 * the sizes of each record, `[records, rank]`.
 */
import type { Dataset, Feature, RowBatch } from '../converter/dataset.js';
import { LoaderxError, show } from '../errors.js';
import type { ByteSource } from './bytes.js';
import { checkedHeader, npyItems } from './npy.js';

const rowsMax = 4096;
const batchBytes = 8 * 2 ** 20;
const recordItemsMax = 2 ** 31;

/**
 * @throws LoaderxError as for arrays; SOURCE where the two do not fit together
 */
export async function raggedNpyDataset(
  items: ByteSource,
  dims: ByteSource,
  column: string,
): Promise<Dataset> {
  const itemsHeader = await checkedHeader(items);
  const dimsHeader = await checkedHeader(dims);
  const [rowCount = 0, rank = 0] = dimsHeader.shape;
  const isFit =
    itemsHeader.shape.length === 1 &&
    dimsHeader.shape.length === 2 &&
    dimsHeader.dtype === 'uint64' &&
    !dimsHeader.isFortran;
  if (!isFit) {
    throw new LoaderxError(
      'SOURCE',
      `${dims.name}: it is ${dimsHeader.dtype} of shape (${dimsHeader.shape.join(', ')}), and sizes of the records of ${show(column)} are wanted: uint64, (records, rank)`,
      { path: dims.name, field: column },
    );
  }
  let feature: Feature = { kind: 'value', dtype: itemsHeader.dtype };
  for (let axis = 0; axis < rank; axis += 1) feature = { kind: 'list', item: feature };
  return rowsOf(
    { items, dims, column, rank, features: new Map([[column, feature]]), whole: rowCount },
    { first: 0, end: rowCount },
  );
}

interface Pair {
  readonly items: ByteSource;
  readonly dims: ByteSource;
  readonly column: string;
  readonly rank: number;
  readonly features: Dataset['features'];
  /** Records of the whole. */
  readonly whole: number;
}

/** Records from `first` to `end - 1`. */
interface Rows {
  readonly first: number;
  readonly end: number;
}

function rowsOf(pair: Pair, rows: Rows): Dataset {
  const { first, end } = rows;
  return {
    features: pair.features,
    rowCount: end - first,
    range: (from, to) => rowsOf(pair, { first: first + from, end: first + to }),
    batches: (options) => batches(pair, rows, options?.signal),
  };
}

async function* batches(
  { items, dims, column, rank, whole }: Pair,
  rows: Rows,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  await using values = await npyItems(items);
  await using sizes = await npyItems(dims);
  const { itemBytes } = values.header.info;
  let left = values.header.shape[0] ?? 0;
  // Where the first record's items begin, only the sizes of all before it say.
  for (let first = 0; first < rows.end; ) {
    const isBefore = first < rows.first;
    const count = Math.min(rowsMax, (isBefore ? rows.first : rows.end) - first);
    const read = await sizes.read(count * rank);
    const numbers = Array.from(read as BigUint64Array, Number);
    for (let from = 0; from < count; ) {
      signal?.throwIfAborted();
      let to = from;
      let taken = 0;
      for (; to < count; to += 1) {
        const record = itemsOf(numbers, to, rank);
        if (record > recordItemsMax || record > left - taken) {
          throw new LoaderxError(
            'SOURCE',
            `column ${show(column)}, row ${first + to}: ${dims.name} tells of ${record} items, and ${left - taken} are left in ${items.name}`,
            { field: column, record: first + to },
          );
        }
        if (!isBefore && to > from && (taken + record) * itemBytes > batchBytes) break;
        taken += record;
      }
      left -= taken;
      if (isBefore) {
        await values.skip(taken);
        break;
      }
      const offsets = offsetsOf(numbers.slice(from * rank, to * rank), to - from, rank);
      yield {
        rowCount: to - from,
        columns: new Map([[column, { values: await values.read(taken), offsets }]]),
      };
      from = to;
    }
    first += count;
  }
  if (rows.end === whole && left > 0) {
    throw new LoaderxError('SOURCE', `${items.name}: ${left} items are left over by ${dims.name}`, {
      field: column,
    });
  }
}

function itemsOf(dims: readonly number[], row: number, rank: number): number {
  let product = 1;
  for (let axis = 0; axis < rank; axis += 1) product *= dims[row * rank + axis] as number;
  return product;
}

/** Boundaries of nested lists of which each row's are of one length on each level. */
function offsetsOf(dims: readonly number[], rowCount: number, rank: number): Uint32Array[] {
  return Array.from({ length: rank }, (_, level) => {
    const offsets = [0];
    let at = 0;
    for (let row = 0; row < rowCount; row += 1) {
      let lists = 1;
      for (let axis = 0; axis < level; axis += 1) lists *= dims[row * rank + axis] as number;
      const length = dims[row * rank + level] as number;
      for (let list = 0; list < lists; list += 1) {
        at += length;
        offsets.push(at);
      }
    }
    return Uint32Array.from(offsets);
  });
}
