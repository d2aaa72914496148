/**
 * Python literals, as far as headers of `.npy` files have them: dictionaries, tuples, lists, texts, integers,
 * True, False and None. Read by hand, since no npm package does: npyjs puts double quotes for single ones and
 * lets `JSON.parse` judge, which takes a quote or bracket in a name for one of the header's.
 *
 * Nothing is evaluated. Nesting is bounded, and the time is linear in the text.
 */

/** What a literal means: dictionaries with texts as keys are Maps, tuples and lists arrays. */
export type Literal =
  | string
  | number
  | bigint
  | boolean
  | null
  | readonly Literal[]
  | ReadonlyMap<string, Literal>;

/** The text is no literal of those kinds. `position` is in characters. */
export class NoLiteral extends Error {
  override readonly name = 'NoLiteral';

  constructor(reason: string, position: number) {
    super(`${reason} at character ${position}`);
  }
}

const depthMax = 32;

/** @throws NoLiteral */
export function parseLiteral(text: string): Literal {
  const parser = new Parser(text);
  const value = parser.value(0);
  parser.end();
  return value;
}

const escapes: ReadonlyMap<string, string> = new Map([
  ['\\', '\\'],
  ["'", "'"],
  ['"', '"'],
  ['n', '\n'],
  ['r', '\r'],
  ['t', '\t'],
  ['a', '\u0007'],
  ['b', '\b'],
  ['f', '\f'],
  ['v', '\v'],
  ['\n', ''],
]);

class Parser {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  value(depth: number): Literal {
    if (depth > depthMax) throw this.#fault('too many levels');
    this.#blanks();
    const sign = this.#text[this.#at];
    if (sign === '{') return this.#dictionary(depth);
    if (sign === '(' || sign === '[') return this.#sequence(sign === '(' ? ')' : ']', depth);
    if (sign === "'" || sign === '"') return this.#string();
    return this.#word();
  }

  end(): void {
    this.#blanks();
    if (this.#at < this.#text.length) throw this.#fault('something follows the value');
  }

  #dictionary(depth: number): ReadonlyMap<string, Literal> {
    const entries = new Map<string, Literal>();
    this.#at += 1;
    while (!this.#takes('}')) {
      const key = this.value(depth + 1);
      if (typeof key !== 'string') throw this.#fault('a key that is no text');
      if (entries.has(key)) throw this.#fault(`the key ${JSON.stringify(key)} twice`);
      if (!this.#takes(':')) throw this.#fault('no colon behind a key');
      entries.set(key, this.value(depth + 1));
      if (this.#takes(',')) continue;
      if (!this.#takes('}')) throw this.#fault('neither a comma nor the end of the dictionary');
      break;
    }
    return entries;
  }

  /** A tuple or list; `(x)` is x, as in Python. */
  #sequence(end: ')' | ']', depth: number): Literal {
    const items: Literal[] = [];
    this.#at += 1;
    while (!this.#takes(end)) {
      items.push(this.value(depth + 1));
      if (this.#takes(',')) continue;
      if (!this.#takes(end)) throw this.#fault('neither a comma nor the end of the sequence');
      if (end === ')' && items.length === 1) return items[0] as Literal;
      break;
    }
    return items;
  }

  #string(): string {
    const quote = this.#text[this.#at];
    this.#at += 1;
    let value = '';
    for (;;) {
      const sign = this.#text[this.#at];
      if (sign === undefined || sign === '\n') throw this.#fault('a text that does not end');
      this.#at += 1;
      if (sign === quote) return value;
      value += sign === '\\' ? this.#escape() : sign;
    }
  }

  #escape(): string {
    const sign = this.#text[this.#at] ?? '';
    this.#at += 1;
    const known = escapes.get(sign);
    if (known !== undefined) return known;
    const digits = { x: 2, u: 4, U: 8 }[sign];
    const hex = digits === undefined ? '' : this.#text.slice(this.#at, this.#at + digits);
    if (digits === undefined || hex.length !== digits || !/^[0-9a-f]+$/i.test(hex)) {
      throw this.#fault('an escape that is not known');
    }
    this.#at += digits;
    const code = Number.parseInt(hex, 16);
    if (code > 0x10ffff) throw this.#fault('an escape that is no character');
    return String.fromCodePoint(code);
  }

  #word(): Literal {
    // An integer of Python 2 may end with L.
    const pattern = /-?\d+L?|[A-Za-z_]\w*/y;
    pattern.lastIndex = this.#at;
    const word = pattern.exec(this.#text)?.[0];
    if (word === undefined) throw this.#fault('no value');
    this.#at += word.length;
    if (word === 'True') return true;
    if (word === 'False') return false;
    if (word === 'None') return null;
    if (!/^-?\d{1,30}L?$/.test(word)) throw this.#fault('a word or number that is not known');
    const exact = BigInt(word.replace('L', ''));
    const number = Number(exact);
    return Number.isSafeInteger(number) ? number : exact;
  }

  #takes(sign: string): boolean {
    this.#blanks();
    if (this.#text[this.#at] !== sign) return false;
    this.#at += 1;
    return true;
  }

  #blanks(): void {
    while (/[ \t\r\n\f]/.test(this.#text[this.#at] ?? '')) this.#at += 1;
  }

  #fault(reason: string): NoLiteral {
    return new NoLiteral(reason, this.#at);
  }
}
