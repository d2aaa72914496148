/**
 * Loads a transform module: its default export is the transform.
 */
import { LoaderxError, show } from '../errors.js';

/** A transform, whatever it takes and gives. */
export type TransformFunction = (batch: unknown, context: unknown) => unknown;

/**
 * The transform of the module at `href`.
 *
 * @throws what loading or evaluating the module threw; LoaderxError TRANSFORM when it has no function
 *   as default export
 */
export async function loadTransform(href: string): Promise<TransformFunction> {
  const module = (await import(href)) as { readonly default?: unknown };
  if (typeof module.default === 'function') return module.default as TransformFunction;
  const names = Object.keys(module);
  const exported = names.length === 0 ? 'nothing' : names.map((name) => show(name)).join(', ');
  throw new LoaderxError(
    'TRANSFORM',
    `the transform module ${href} must export a function as default; it exports ${exported}` +
      (names.includes('default') ? `, and the default is ${show(module.default)}` : ''),
    { field: 'transform' },
  );
}
