/** What messages of the library advise, in words of the command line. */

/** Options as callers write them, and as a command line does. */
const words: readonly (readonly [RegExp, string])[] = [
  [/; strings: 'utf8' stores/, '; --strings utf8 stores'],
  [/and a tokenizer makes tokens of it/, 'and --tokenizer PACKAGE makes tokens of it'],
  [/; names: 'any' takes/, '; --names any takes'],
  [/; dtypes makes numbers of it\)/, '; --dtypes makes numbers of it)'],
  [/; mode: 'RGB' makes/, '; --mode RGB makes'],
  [/([:;]) format says/, '$1 --format says'],
  [/by naming the columns that are wanted$/, 'by naming those that are wanted with --columns'],
  [/is among the columns that are wanted$/, 'is among those of --columns: leave it out there'],
  [/^(dtypes|size|layout|mode|pictures) (has|is) /, '--$1 $2 '],
  [
    /^pictures: 'ragged' is for (.*), and size gives/,
    '--pictures ragged is for $1, and --size gives',
  ],
  [/^layout: 'CHW' is for/, '--layout CHW is for'],
  [/^strings keeps /, '--strings keeps '],
];

/** The same message for whoever typed a command. */
export function commandText(message: string): string {
  return words.reduce((text, [pattern, word]) => text.replace(pattern, word), message);
}
