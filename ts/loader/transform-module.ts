/**
 * Loads a transform module: its default export is the transform.
 */
import { LoaderxError, show } from '../errors.js';

/** A transform, whatever it takes and gives. */
export type TransformFunction = (batch: unknown, context: unknown) => unknown;

/**
 * The transform of the module at `href`.
 *
 * @throws what loading or evaluating the module threw, a syntax error with the module in its message; LoaderxError TRANSFORM when it has no function
 *   as default export
 */
export async function loadTransform(href: string): Promise<TransformFunction> {
  const module = (await imported(href)) as { readonly default?: unknown };
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

/** The module. Why it does not load is told by the original error, which names the module in any case. */
async function imported(href: string): Promise<unknown> {
  try {
    return await import(href);
  } catch (error) {
    // Node's syntax errors say neither in their message nor in their stack where they are.
    if (error instanceof SyntaxError) name(error, href);
    throw error;
  }
}

function name(error: SyntaxError, href: string): void {
  const { message, stack } = error;
  if (message.includes(href)) return;
  const named = `the transform module ${href} does not load: ${message}`;
  error.message = named;
  if (typeof stack === 'string') error.stack = stack.replace(message, () => named);
}
