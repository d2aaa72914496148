/**
 * A tokenizer of the user's own: a package or file that is found from where the program runs, and not one that
 * this package brings. Whatever has `encode(text)` will do, and `decode(ids)` to see text again.
 */
import fs from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { ArgumentTypeError, show } from '../errors.js';

/** What is wanted of a tokenizer. Both may answer at once or with a promise. */
export interface Tokenizer {
  /** The tokens of a text: integers that fit into int32, at least one. */
  encode(text: string): ArrayLike<number> | Promise<ArrayLike<number>>;
  /** The text of tokens, to show it again. */
  decode?(ids: number[]): string | Promise<string>;
}

/**
 * @param spec `PACKAGE`, `PACKAGE/PATH` or `./FILE`, and behind a colon the export that is meant; otherwise the
 *   module itself or its default export
 * @param from the folder that the package is looked for from
 * @throws TypeError (INVALID_ARGUMENT) where there is no such module or export, or it has no `encode`
 */
export async function loadTokenizer(
  spec: string,
  from: string = process.cwd(),
): Promise<Tokenizer> {
  // A drive's letter stands before a colon too.
  const match = /^(.{2,}?)(?::([\w$]+))?$/s.exec(spec);
  const [, name = spec, wanted] = match ?? [];
  let module: Readonly<Record<string, unknown>>;
  try {
    module = await import(pathToFileURL(resolved(name, from)).href);
  } catch (cause) {
    const said = cause instanceof Error ? (cause.message.split('\n')[0] ?? '') : String(cause);
    throw new ArgumentTypeError(
      'tokenizer',
      `the tokenizer ${show(name)} cannot be loaded from ${from} (${said}): npm install it there`,
      { cause },
    );
  }
  const candidates = wanted === undefined ? [module, module.default] : [module[wanted]];
  for (const candidate of candidates) {
    const found = tokenizerOf(candidate);
    if (found !== undefined) return found;
  }
  const names = Object.keys(module).slice(0, 8).join(', ');
  throw new ArgumentTypeError(
    'tokenizer',
    `${show(spec)} is no tokenizer: encode(text) is wanted, and its module has ${names || 'no exports'}; PACKAGE:EXPORT names one of them`,
  );
}

function tokenizerOf(value: unknown): Tokenizer | undefined {
  const { encode } = (value ?? {}) as Partial<Tokenizer>;
  if (typeof encode === 'function') return value as Tokenizer;
  return typeof value === 'function' ? { encode: value as Tokenizer['encode'] } : undefined;
}

function resolved(name: string, from: string): string {
  if (/^\.{0,2}[/\\]/.test(name) || path.isAbsolute(name)) return path.resolve(from, name);
  try {
    return createRequire(path.join(from, 'program.js')).resolve(name);
  } catch (cause) {
    // A package for `import` alone.
    if ((cause as NodeJS.ErrnoException).code !== 'ERR_PACKAGE_PATH_NOT_EXPORTED') throw cause;
    const found = importOnly(name, from);
    if (found === undefined) throw cause;
    return found;
  }
}

function importOnly(name: string, from: string): string | undefined {
  for (let folder = path.resolve(from); ; folder = path.dirname(folder)) {
    const own = path.join(folder, 'node_modules', name);
    const manifest = path.join(own, 'package.json');
    if (fs.existsSync(manifest)) {
      const { exports } = JSON.parse(fs.readFileSync(manifest, 'utf8')) as { exports?: unknown };
      const all = exports as Readonly<Record<string, unknown>> | string | undefined;
      const entry = typeof all === 'object' && '.' in all ? all['.'] : all;
      const file = forImport(entry);
      return file === undefined ? undefined : path.join(own, file);
    }
    if (path.dirname(folder) === folder) return undefined;
  }
}

function forImport(entry: unknown): string | undefined {
  if (typeof entry === 'string') return entry;
  if (typeof entry !== 'object' || entry === null) return undefined;
  for (const [condition, value] of Object.entries(entry)) {
    if (!['node', 'import', 'default'].includes(condition)) continue;
    const found = forImport(value);
    if (found !== undefined) return found;
  }
  return undefined;
}
