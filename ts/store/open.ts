/** Opens a container without knowing its geometry. */
import type { DenseReader, OpenOptions, RaggedReader } from './capability.js';
import { openStore } from './container.js';
import { denseReader } from './dense.js';
import { knownFields } from './fields.js';
import { batchBytesMaxOf, verifyingOf } from './options.js';
import type { ContainerPath } from './path.js';
import { raggedReader } from './ragged.js';

/**
 * Opens a published container, dense or ragged: `reader.kind` tells, and narrows the type.
 *
 * @throws LoaderxError NOT_FOUND, NOT_PUBLISHED, LOCKED, MALFORMED, DICTIONARY, IO, UNSUPPORTED, INTEGRITY
 */
export function open(path: ContainerPath, options?: OpenOptions): DenseReader | RaggedReader {
  const { maxBatchBytes, verify } = knownFields(options, ['maxBatchBytes', 'verify']);
  const batchBytesMax = batchBytesMaxOf(maxBatchBytes);
  const opened = openStore(path, verifyingOf(verify));
  return opened.schema.kind === 'dense'
    ? denseReader(opened, batchBytesMax)
    : raggedReader(opened, batchBytesMax);
}
