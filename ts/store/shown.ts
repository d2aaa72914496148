/** What `console.log` and `JSON.stringify` show of a reader or writer: what its container is. */

/** Node's name for how an object is shown. */
export const inspected = Symbol.for('nodejs.util.inspect.custom');

/** How Node shows what an object holds. */
export type Inspect = (value: unknown, options: unknown) => string;

/** The fields of `object` but the `internal` ones, which subclasses share and users have no use for. */
export function shownFields(object: object, internal: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(object).filter(([name]) => !internal.includes(name)));
}

/** `object` as `console.log` shows it. */
export function shownText(
  object: object,
  fields: Record<string, unknown>,
  options: unknown,
  inspect: Inspect,
): string {
  return `${object.constructor.name} ${inspect(fields, options)}`;
}
