// @ts-check
// A batch of streams.mjs becomes one number.
import { hashOf, idsOf } from '../streams.mjs';

/** @param {import('../streams.mjs').StreamsBatch} batch */
export default function hash(batch) {
  return hashOf(idsOf(batch));
}
