// @ts-check
// The built package, which users get. Imported by its path at run time: the type check runs before
// there is a dist/.
import { pathToFileURL } from 'node:url';
import { inRoot } from '../scripts/script.mjs';

/** @type {typeof import('../ts/index.js')} */
const loaderx = await import(pathToFileURL(inRoot('dist', 'index.js')).href);

export const { DataLoader, Dense, digest, open, Ragged, Sampler, trainDict, verify } = loaderx;

/** `ndarray` for a dtype that is known only at run time. */
export const ndarray =
  /** @type {(dtype: string, shape: readonly number[], data: ArrayBufferView) => any} */ (
    /** @type {unknown} */ (loaderx.ndarray)
  );
