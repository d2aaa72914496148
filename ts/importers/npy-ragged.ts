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
  return {
    features: new Map([[column, feature]]),
    rowCount,
    batches: (options) => batches(items, dims, column, rowCount, rank, options?.signal),
  };
}

async function* batches(
  items: ByteSource,
  dims: ByteSource,
  column: string,
  rowCount: number,
  rank: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<RowBatch, void, undefined> {
  await using values = await npyItems(items);
  await using sizes = await npyItems(dims);
  const { itemBytes } = values.header.info;
  let left = values.header.shape[0] ?? 0;
  for (let first = 0; first < rowCount; first += rowsMax) {
    const count = Math.min(rowsMax, rowCount - first);
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
        if (to > from && (taken + record) * itemBytes > batchBytes) break;
        taken += record;
      }
      left -= taken;
      const offsets = offsetsOf(numbers.slice(from * rank, to * rank), to - from, rank);
      yield {
        rowCount: to - from,
        columns: new Map([[column, { values: await values.read(taken), offsets }]]),
      };
      from = to;
    }
  }
  if (left > 0) {
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
