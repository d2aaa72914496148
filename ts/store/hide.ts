/**
 * Makes fields invisible to whatever lists fields: `console.log`, `JSON.stringify`, a copy by spreading. For
 * what subclasses share and users have no use for.
 */
export function hide<T extends object>(object: T, names: readonly string[]): void {
  for (const name of names) Object.defineProperty(object, name, { enumerable: false });
}
