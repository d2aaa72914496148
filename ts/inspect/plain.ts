/**
 * Text of others on a terminal: names, messages and records must not move its cursor, change its colours or
 * turn its direction of writing.
 */

/**
 * Controls (C0, DEL, C1) and the signs that turn the direction of what follows. The one list of them; the
 * texts of errors escape the same.
 */
// biome-ignore lint/suspicious/noControlCharactersInRegex: it is they that are looked for.
const obeyed = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** The text with U+FFFD for whatever a terminal would obey, line breaks among it. */
export function plain(text: string): string {
  return text.replace(obeyed, '\ufffd');
}

/** JSON with those signs as escapes, which a program reads as the same. Line breaks stay. */
export function plainJson(json: string): string {
  return json.replace(obeyed, (sign) =>
    sign === '\n' ? sign : `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
