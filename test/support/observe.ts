// Opens a container in every way there is, reads every record in every way there is, and holds the
// answers against each other: what one call refuses, no other may deliver.
import { strict as assert } from 'node:assert';
import {
  Dense,
  type DenseReader,
  type ErrorCode,
  LoaderxError,
  open,
  Ragged,
  type RaggedReader,
} from '../../ts/index.js';

/** One record: its shape, and its items' bytes in hex. */
export interface Read {
  readonly shape: readonly number[];
  readonly bytes: string;
}

/** What came of a container. */
export type Observed =
  | { readonly open: ErrorCode; readonly error: LoaderxError }
  | {
      readonly open: 'accepts';
      readonly kind: 'dense' | 'ragged';
      readonly dtype: string;
      /** Each record alone: what it is, or why it was refused. */
      readonly records: readonly (Read | ErrorCode)[];
    };

/** Codes that say that a container is damaged or odd, and no other way of saying so will do. */
const refusals: ReadonlySet<ErrorCode> = new Set([
  ...(['NOT_FOUND', 'NOT_PUBLISHED', 'MALFORMED', 'SCHEMA', 'CODEC', 'DICTIONARY', 'IO'] as const),
  ...(['TOO_LARGE', 'UNSUPPORTED'] as const),
]);

/** The code of an error that may come of bytes on disk. Throws for any other error. */
export function refusalOf(error: unknown, path: string): ErrorCode {
  assert.ok(error instanceof LoaderxError, `an error outside the family: ${String(error)}`);
  const { code } = error;
  assert.ok(refusals.has(code), `${code} is no answer to damaged bytes: ${error.message}`);
  assert.equal(error.path, path, 'the path of the error');
  assert.ok(error.message.startsWith(`${path}: `), `the message names no path: ${error.message}`);
  const text = JSON.stringify(error);
  assert.equal((JSON.parse(text) as { readonly code: unknown }).code, code, 'the error as JSON');
  return code;
}

/**
 * @param openAs how to open it; `open()` tells the geometry by itself
 * @throws AssertionError where two ways of reading disagree, or an error is not of the family
 */
export async function observe(path: string, openAs?: 'dense' | 'ragged'): Promise<Observed> {
  let reader: DenseReader | RaggedReader;
  try {
    reader = opened(path, openAs);
  } catch (error) {
    const code = refusalOf(error, path);
    return { open: code, error: error as LoaderxError };
  }
  try {
    const records: (Read | ErrorCode)[] = [];
    for (let id = 0; id < reader.length; id += 1) records.push(readOne(reader, id));
    await checkBatches(reader, records);
    return { open: 'accepts', kind: reader.kind, dtype: reader.dtype, records };
  } finally {
    await reader.close();
  }
}

function opened(path: string, openAs: 'dense' | 'ragged' | undefined): DenseReader | RaggedReader {
  if (openAs === 'dense') return Dense.open(path);
  if (openAs === 'ragged') return Ragged.open(path);
  return open(path);
}

function readOne(reader: DenseReader | RaggedReader, id: number): Read | ErrorCode {
  try {
    const { shape, data } = reader.record(id);
    return { shape, bytes: hex(data) };
  } catch (error) {
    const code = refusalOf(error, reader.path);
    assert.equal((error as LoaderxError).record, id, 'the record that the error names');
    return code;
  }
}

/** Lists of ids, each read at once and off the event loop: alike, and equal to the records alone. */
async function checkBatches(
  reader: DenseReader | RaggedReader,
  records: readonly (Read | ErrorCode)[],
): Promise<void> {
  const all = records.map((_, id) => id);
  const intact = all.filter((id) => typeof records[id] === 'object');
  // Backwards, and some twice.
  const mixed = [...all].reverse().flatMap((id) => (id % 2 === 0 ? [id, id] : [id]));
  for (const ids of [all, intact, mixed]) {
    for (const call of [
      () => reader.gather(ids),
      async () => reader.gatherSync(ids),
      ...(ids === all ? [() => reader.slice()] : []),
    ]) {
      await checkBatch(reader, records, ids, call);
    }
  }
}

async function checkBatch(
  reader: DenseReader | RaggedReader,
  records: readonly (Read | ErrorCode)[],
  ids: readonly number[],
  call: () => Promise<Batch>,
): Promise<void> {
  let batch: Batch;
  try {
    batch = await call();
  } catch (error) {
    const code = refusalOf(error, reader.path);
    const { record } = error as LoaderxError;
    if (code === 'TOO_LARGE' && record === undefined) return;
    assert.ok(typeof record === 'number', `the error names no record: ${String(error)}`);
    assert.ok(ids.includes(record), 'the error names a record that was not asked for');
    assert.equal(code, records[record], `record ${record} in a batch and alone`);
    return;
  }
  const reads = readsOf(reader, batch);
  assert.equal(reads.length, ids.length, 'records of a batch');
  for (const [index, id] of ids.entries()) {
    assert.deepEqual(reads[index], records[id], `record ${id} in a batch and alone`);
  }
}

type Batch = Awaited<ReturnType<DenseReader['gather']> | ReturnType<RaggedReader['gather']>>;

function readsOf(reader: DenseReader | RaggedReader, batch: Batch): Read[] {
  if ('toArray' in batch) {
    return batch.toArray().map(({ shape, data }) => ({ shape, bytes: hex(data) }));
  }
  const [count = 0, ...shape] = batch.shape;
  const bytes = hex(batch.data);
  const width = count === 0 ? 0 : bytes.length / count;
  assert.equal(reader.kind, 'dense');
  return Array.from({ length: count }, (_, index) => ({
    shape,
    bytes: bytes.slice(index * width, (index + 1) * width),
  }));
}

function hex(data: ArrayBufferView): string {
  return Buffer.from(data.buffer, data.byteOffset, data.byteLength).toString('hex');
}
