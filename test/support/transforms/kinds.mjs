// @ts-check
// Returns something else at each step: what a pool hands over (checked by `checkKind` of loaders.mjs).
import { idsOf } from '../streams.mjs';

const { WebAssembly } = /** @type {any} */ (globalThis);
const wasm = new WebAssembly.Memory({ initial: 1 });

/**
 * @param {import('../streams.mjs').StreamsBatch} batch
 * @param {import('../../../ts/index.js').TransformContext} context
 */
export default async function kinds(batch, { step }) {
  const ids = idsOf(batch);
  switch (step % 10) {
    case 0:
      return batch;
    case 1:
      return { step, inner: { batch } };
    case 2:
      return [batch.image, { text: batch.text }];
    case 3:
      return Uint32Array.from(ids);
    case 4: {
      const half = batch.image.data.subarray(0, 2);
      return { half, same: half };
    }
    case 5:
      return {
        map: new Map([['ids', Uint32Array.from(ids)]]),
        set: new Set(['a', 1n]),
        when: new Date(step),
      };
    case 6:
      return Buffer.from(`step ${step}`);
    case 7:
      batch.image[Symbol.dispose]();
      return undefined;
    case 8: {
      new Uint8Array(wasm.buffer)[0] = 7;
      /** @type {Record<string, unknown>} */
      const value = {
        list: [1, 'two', null, undefined, 3n, true],
        shared: new SharedArrayBuffer(8),
        wasm: new Uint8Array(wasm.buffer, 0, 8),
      };
      value.self = value;
      return value;
    }
    default:
      return { one: batch, other: batch };
  }
}
