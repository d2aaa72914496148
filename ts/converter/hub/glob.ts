/**
 * Patterns of data files, with the meaning that `datasets` gives them:
 *
 * ```text
 * *      any characters but /          ?       one character but /
 * **     any folders, a whole part     [a-z]   one of these, [!a-z] none of them
 * ```
 *
 * Patterns come from the card of a repository, so from strangers: matching takes no more steps than the
 * product of the lengths, whatever the pattern is.
 */

type Token =
  | { readonly kind: 'character'; readonly character: string }
  | { readonly kind: 'any' }
  | { readonly kind: 'star' }
  | {
      readonly kind: 'set';
      readonly isNegated: boolean;
      readonly ranges: readonly (readonly [low: string, high: string])[];
    };

/** `folders` is `**`; a text is a part without signs, `{text}` so that a folder may be called so. */
type Part = 'folders' | { readonly text: string } | readonly Token[];

/** A pattern that can be held against paths. */
export interface Glob {
  matches(path: string): boolean;
}

/** Whether the text can mean more than one path. */
export function hasMagic(text: string): boolean {
  return /[*?[]/.test(text);
}

/** @returns undefined where `**` is only a piece of a part, which has no meaning */
export function globOf(pattern: string): Glob | undefined {
  const parts: Part[] = [];
  for (const text of pattern.split('/')) {
    if (text === '**') {
      // Twice in a row means the same as once.
      if (parts.at(-1) !== 'folders') parts.push('folders');
    } else if (text.includes('**')) {
      return undefined;
    } else {
      parts.push(hasMagic(text) ? tokensOf(text) : { text });
    }
  }
  return { matches: (path) => matchesParts(parts, path.split('/')) };
}

function tokensOf(part: string): readonly Token[] {
  const characters = [...part];
  const tokens: Token[] = [];
  let at = 0;
  while (at < characters.length) {
    const character = characters[at] ?? '';
    at += 1;
    if (character === '*') {
      tokens.push({ kind: 'star' });
    } else if (character === '?') {
      tokens.push({ kind: 'any' });
    } else if (character === '[') {
      // A ] right behind the opening is one of the set.
      const first = characters[at] === '!' ? at + 1 : at;
      const end = characters.indexOf(']', first + 1);
      if (end < 0) {
        tokens.push({ kind: 'character', character });
      } else {
        tokens.push(setOf(characters.slice(first, end), first > at));
        at = end + 1;
      }
    } else {
      tokens.push({ kind: 'character', character });
    }
  }
  return tokens;
}

function setOf(characters: readonly string[], isNegated: boolean): Token {
  const ranges: (readonly [string, string])[] = [];
  for (let at = 0; at < characters.length; at += 1) {
    const low = characters[at] ?? '';
    const isRange = characters[at + 1] === '-' && at + 2 < characters.length;
    ranges.push([low, isRange ? (characters[at + 2] ?? '') : low]);
    if (isRange) at += 2;
  }
  return { kind: 'set', isNegated, ranges };
}

/** Part by part; after a mismatch the last `**` takes one folder more. */
function matchesParts(parts: readonly Part[], path: readonly string[]): boolean {
  return matchesWithStars(
    parts.length,
    path.length,
    (part) => parts[part] === 'folders',
    (part, at) => matchesPart(parts[part] ?? 'folders', path[at] ?? ''),
    // `**` at the end stands for the file too, so for one part at least.
    parts.at(-1) === 'folders' ? 1 : 0,
  );
}

function matchesPart(part: Part, text: string): boolean {
  if (part === 'folders') return false;
  if ('text' in part) return part.text === text;
  const characters = [...text];
  return matchesWithStars(
    part.length,
    characters.length,
    (token) => part[token]?.kind === 'star',
    (token, at) => matchesOne(part[token] as Token, characters[at] ?? ''),
    0,
  );
}

function matchesOne(token: Token, character: string): boolean {
  switch (token.kind) {
    case 'character':
      return token.character === character;
    case 'any':
      return true;
    case 'star':
      return false;
    case 'set': {
      const point = character.codePointAt(0) ?? 0;
      const isIn = token.ranges.some(
        ([low, high]) => (low.codePointAt(0) ?? 0) <= point && point <= (high.codePointAt(0) ?? 0),
      );
      return isIn !== token.isNegated;
    }
  }
}

/**
 * Whether a row of patterns, of which some are stars, covers a row of things exactly. Only the last star
 * is ever gone back to: what an earlier one would take more, the later one can take.
 */
function matchesWithStars(
  patternCount: number,
  thingCount: number,
  isStar: (pattern: number) => boolean,
  fits: (pattern: number, thing: number) => boolean,
  lastStarLeast: 0 | 1,
): boolean {
  let pattern = 0;
  let thing = 0;
  let star = -1;
  let starEnd = 0;
  while (thing < thingCount) {
    if (pattern < patternCount && isStar(pattern)) {
      star = pattern;
      starEnd = thing;
      pattern += 1;
    } else if (pattern < patternCount && fits(pattern, thing)) {
      pattern += 1;
      thing += 1;
    } else if (star >= 0) {
      starEnd += 1;
      thing = starEnd;
      pattern = star + 1;
    } else {
      return false;
    }
  }
  // All is covered, so what is left of the pattern may only be a star that stands for nothing.
  while (pattern < patternCount && isStar(pattern) && lastStarLeast === 0) pattern += 1;
  return pattern === patternCount;
}
